//! Window probes (RFC 9293 §3.8.6.1).

use airwire::time::Duration;

/// The format and the timing of window probes.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Persist {
    /// The format of a window probe.
    pub probe: WindowProbe,
    /// Each ACK from a peer whose window stays closed postpones the next window probe (Linux,
    /// tcp_ack_probe()).
    pub restarted_by_acks: bool,
    /// Minimum time between two window probes, if the RTO is shorter.
    pub min: Duration,
    /// Maximum time between two window probes (RFC 9293 §3.8.6.1).
    pub max: Duration,
}

/// The format of a window probe (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum WindowProbe {
    /// One byte of new data.
    NewByte,
    /// No data, and a sequence number that is already acknowledged (Linux).
    OldSequence,
}
