//! The settings of each direction, parsed from the command line.

use std::str::FromStr;

/// A time or a duration in nanoseconds.
pub type Time = u64;

/// Reaction of a sender when a PDU was transmitted MaxDAT − 1 times and is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// Reset both ends.
    Reset,
    /// Discard the SDU, and send an MRW to the receiver.
    Mrw,
}

/// The parameter "RLC PDU size".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// All PDUs have the same size.
    Fixed,
    /// PDUs have any size up to a maximum, and "Length Indicators" of this many bits.
    Flexible(u8),
}

/// The settings of the sender of one direction, and of the receiver at the other end.
/// Rules with a setting of `None` are not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionSettings {
    /// Length of a TTI.
    pub tti: Time,
    /// Start of the TTI grid. `None`: it starts with the first PDU of the direction.
    pub phase: Option<Time>,
    /// Permitted numbers of PDUs in a TTI. Not checked if empty.
    pub blocks: Vec<u16>,
    /// Time from the transmission of a PDU to its arrival.
    pub flight: Time,
    /// Size of a PDU in bytes; the maximum if the size is flexible.
    pub pdu: usize,
    /// Whether the size is fixed or flexible.
    pub sizing: Sizing,
    /// The sender's configured window, in PDUs.
    pub window: u64,
    /// The HFN of the first PDU.
    pub hfn: u32,
    /// MaxDAT.
    pub max_dat: Option<u32>,
    /// Reaction when MaxDAT is reached.
    pub discard: Discard,
    /// Timer_Status_Prohibit of the receiver of this direction's data.
    pub tsp: Option<Time>,
    /// Timer_Poll.
    pub timer_poll: Option<Time>,
    /// Timer_Poll_Prohibit.
    pub poll_prohibit: Option<Time>,
    /// Fraction of the PDUs that the channel damages.
    pub bler: Option<f64>,
}

impl Default for DirectionSettings {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl FromStr for DirectionSettings {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut direction = Self::default();
        for setting in text.split(',') {
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("`{setting}` is not KEY=VALUE"))?;
            direction.set(key, value)?;
        }
        Ok(direction)
    }
}

impl DirectionSettings {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let bad = || format!("`{value}` is not a value of `{key}`");
        match key {
            "tti" => self.tti = time(value).ok_or_else(bad)?,
            "phase" => self.phase = Some(time(value).ok_or_else(bad)?),
            "flight" => self.flight = time(value).ok_or_else(bad)?,
            "pdu" => self.pdu = value.parse().map_err(|_| bad())?,
            "flexible" => {
                self.sizing = match value {
                    "7bit" => Sizing::Flexible(7),
                    "15bit" => Sizing::Flexible(15),
                    _ => return Err(bad()),
                }
            }
            "window" => self.window = value.parse().map_err(|_| bad())?,
            "hfn" => self.hfn = value.parse().map_err(|_| bad())?,
            "max-dat" => self.max_dat = Some(value.parse().map_err(|_| bad())?),
            "tsp" => self.tsp = Some(time(value).ok_or_else(bad)?),
            "poll" => self.timer_poll = Some(time(value).ok_or_else(bad)?),
            "prohibit" => self.poll_prohibit = Some(time(value).ok_or_else(bad)?),
            "bler" => self.bler = Some(value.parse().map_err(|_| bad())?),
            "discard" => {
                self.discard = match value {
                    "reset" => Discard::Reset,
                    "mrw" => Discard::Mrw,
                    _ => return Err(bad()),
                }
            }
            "blocks" => {
                self.blocks =
                    value.split('+').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?;
            }
            _ => return Err(format!("unknown setting `{key}`")),
        }
        Ok(())
    }

    /// Returns the "Length Indicator" of a piggybacked STATUS PDU (§9.2.2.8). It has 7 bits in PDUs
    /// of a fixed size of at most 126 octets, and 15 bits in larger ones.
    pub fn piggyback_indicator(&self) -> u16 {
        match self.sizing {
            Sizing::Fixed if self.pdu <= 126 => 126,
            Sizing::Flexible(7) => 126,
            Sizing::Fixed | Sizing::Flexible(_) => 32_766,
        }
    }
}

/// Parses a time such as `10ms` or `500us`.
pub fn time(text: &str) -> Option<Time> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1_000_000),
        None => (text.strip_suffix("us")?, 1_000),
    };
    number.parse::<Time>().ok().map(|number| number * unit)
}
