//! The settings of a direction, parsed from the command line.

use std::str::FromStr;

use crate::settings::{Time, time};

/// The settings of the sender of one direction, and of the receiver at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectionSettings {
    /// pollPDU.
    pub poll_pdu: Option<u32>,
    /// pollByte.
    pub poll_byte: Option<u64>,
    /// t-PollRetransmit.
    pub poll_retransmit: Time,
    /// maxRetxThreshold.
    pub max_retx: u32,
    /// t-Reassembly (NR) or t-Reordering (LTE).
    pub reassembly: Time,
    /// t-StatusProhibit.
    pub status_prohibit: Time,
    /// Time from the transmission of a PDU to its arrival, if the capture does not contain it.
    pub flight: Time,
    /// Maximum time for which a sender waits for a transport block. `None`: late reactions are not checked.
    pub patience: Option<Time>,
}

impl FromStr for DirectionSettings {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut settings = Self {
            poll_pdu: None,
            poll_byte: None,
            poll_retransmit: 100_000_000,
            max_retx: 32,
            reassembly: 20_000_000,
            status_prohibit: 0,
            flight: 0,
            patience: None,
        };
        for setting in text.split(',') {
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("`{setting}` is not KEY=VALUE"))?;
            let bad = || format!("`{value}` is not a value of `{key}`");
            let duration = || time(value).ok_or_else(bad);
            match key {
                "poll-pdu" => settings.poll_pdu = Some(value.parse().map_err(|_| bad())?),
                "poll-byte" => settings.poll_byte = Some(value.parse().map_err(|_| bad())?),
                "poll-retransmit" => settings.poll_retransmit = duration()?,
                "max-retx" => settings.max_retx = value.parse().map_err(|_| bad())?,
                "reassembly" | "reordering" => settings.reassembly = duration()?,
                "status-prohibit" => settings.status_prohibit = duration()?,
                "flight" => settings.flight = duration()?,
                "patience" => settings.patience = Some(duration()?),
                _ => return Err(format!("unknown setting `{key}`")),
            }
        }
        Ok(settings)
    }
}
