//! The settings of each direction, as the command line has them.

use std::str::FromStr;

/// Nanoseconds.
pub type Time = u64;

/// What a sender does about a PDU that was transmitted MaxDAT - 1 times in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// It resets both ends.
    Reset,
    /// It gives the SDU up and tells the receiver with an MRW.
    Mrw,
}

/// The "RLC PDU size".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// Fixed.
    Fixed,
    /// Flexible, with "Length Indicators" of so many bits.
    Flexible(u8),
}

/// The settings of one direction: of the sender that pushes data that way, and of the receiver at its other end. `None`
/// is not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Length of a TTI.
    pub tti: Time,
    /// Where the grid of TTIs begins. `None`: the first PDU of the direction stands on it.
    pub phase: Option<Time>,
    /// The numbers of PDUs that a TTI may have; empty is not checked.
    pub blocks: Vec<u16>,
    /// From a PDU's transmission to its arrival.
    pub flight: Time,
    /// Octets of a PDU, or the most.
    pub pdu: usize,
    /// Whether all PDUs have that size.
    pub sizing: Sizing,
    /// The sender's window as configured, in PDUs.
    pub window: u64,
    /// The HFN of the first PDU.
    pub hfn: u32,
    /// MaxDAT.
    pub max_dat: Option<u32>,
    /// What follows when MaxDAT is reached.
    pub discard: Discard,
    /// Timer_Status_Prohibit of the receiver of this direction's data.
    pub tsp: Option<Time>,
    /// Timer_Poll.
    pub timer_poll: Option<Time>,
    /// Timer_Poll_Prohibit.
    pub poll_prohibit: Option<Time>,
    /// The share of the PDUs that the channel damages.
    pub bler: Option<f64>,
}

impl FromStr for Direction {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut direction = Self {
            tti: 10_000_000,
            phase: None,
            blocks: Vec::new(),
            flight: 10_000_000,
            pdu: 42,
            sizing: Sizing::Fixed,
            window: 512,
            hfn: 0,
            max_dat: None,
            discard: Discard::Reset,
            tsp: None,
            timer_poll: None,
            poll_prohibit: None,
            bler: None,
        };
        for setting in text.split(',') {
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("`{setting}` is not KEY=VALUE"))?;
            let bad = || format!("`{value}` is no value of `{key}`");
            match key {
                "tti" => direction.tti = time(value).ok_or_else(bad)?,
                "phase" => direction.phase = Some(time(value).ok_or_else(bad)?),
                "flight" => direction.flight = time(value).ok_or_else(bad)?,
                "pdu" => direction.pdu = value.parse().map_err(|_| bad())?,
                "flexible" => {
                    direction.sizing = match value {
                        "7bit" => Sizing::Flexible(7),
                        "15bit" => Sizing::Flexible(15),
                        _ => return Err(bad()),
                    }
                }
                "window" => direction.window = value.parse().map_err(|_| bad())?,
                "hfn" => direction.hfn = value.parse().map_err(|_| bad())?,
                "max-dat" => direction.max_dat = Some(value.parse().map_err(|_| bad())?),
                "tsp" => direction.tsp = Some(time(value).ok_or_else(bad)?),
                "poll" => direction.timer_poll = Some(time(value).ok_or_else(bad)?),
                "prohibit" => direction.poll_prohibit = Some(time(value).ok_or_else(bad)?),
                "bler" => direction.bler = Some(value.parse().map_err(|_| bad())?),
                "discard" => {
                    direction.discard = match value {
                        "reset" => Discard::Reset,
                        "mrw" => Discard::Mrw,
                        _ => return Err(bad()),
                    }
                }
                "blocks" => {
                    direction.blocks =
                        value.split('+').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?;
                }
                _ => return Err(format!("there is no setting `{key}`")),
            }
        }
        Ok(direction)
    }
}

impl Direction {
    /// The "Length Indicator" that announces a report (§9.2.2.8) has 7 bits in PDUs of a fixed size up to 126 octets.
    pub fn announces_report(&self) -> u16 {
        match self.sizing {
            Sizing::Fixed if self.pdu <= 126 => 126,
            Sizing::Flexible(7) => 126,
            Sizing::Fixed | Sizing::Flexible(_) => 32_766,
        }
    }
}

/// Reads a time such as `10ms` or `500us`.
pub fn time(text: &str) -> Option<Time> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1_000_000),
        None => (text.strip_suffix("us")?, 1_000),
    };
    number.parse::<Time>().ok().map(|number| number * unit)
}
