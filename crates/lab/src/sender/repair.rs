//! What senders count of what they send again.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counters::Counters;

/// What a sender says about its retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// Segments sent again after duplicate ACKs or SACK.
    pub fast: u64,
    /// Segments sent again after a timeout.
    pub timeout: u64,
    /// Segments sent again to provoke an ACK.
    pub probe: u64,
    /// Of the retransmission timer, once the connection is open: loss recovery begins there.
    pub timeouts: u64,
    /// Timeouts that were a mistake, as far as the sender has noticed.
    pub spurious: u64,
}

impl Repair {
    /// All segments sent again.
    pub fn resent(&self) -> u64 {
        self.fast + self.timeout + self.probe
    }

    /// What one of our senders says at its end.
    pub(crate) fn of_recipe(end: &Value) -> Self {
        let number = |path: &str| end.pointer(path).and_then(Value::as_u64).unwrap_or_default();
        Self {
            fast: number("/retransmissions/fast") + number("/retransmissions/recovery"),
            timeout: number("/retransmissions/timeout"),
            probe: number("/retransmissions/probe"),
            timeouts: number("/timeouts/timeouts"),
            spurious: number("/timeouts/spurious_timeouts"),
        }
    }

    /// What a kernel has counted from which only senders of one kind have sent.
    pub(crate) fn of_kernel(counters: &Counters) -> Self {
        let number = |name: &str| counters.get(name).map_or(0, |value| (*value).max(0) as u64);
        let [resent, fast, probe, syns] =
            ["TcpRetransSegs", "TcpExtTCPFastRetrans", "TcpExtTCPLossProbes", "TcpExtTCPSynRetrans"]
                .map(number);
        Self {
            fast,
            // The kernel has no counter of all copies that a timeout causes: they are what is left.
            timeout: resent.saturating_sub(fast + probe + syns),
            probe,
            timeouts: number("TcpExtTCPTimeouts").saturating_sub(syns),
            spurious: number("TcpExtTCPSpuriousRTOs"),
        }
    }
}

impl AddAssign for Repair {
    fn add_assign(&mut self, other: Self) {
        let Self { fast, timeout, probe, timeouts, spurious } = other;
        self.fast += fast;
        self.timeout += timeout;
        self.probe += probe;
        self.timeouts += timeouts;
        self.spurious += spurious;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_syn_that_was_sent_again_counts_for_nobody() {
        // Each has lost its SYN once, and later a segment to its timer, which sent two again.
        let of_ours = json!({
            "retransmissions": { "segments": 4, "fast": 1, "timeout": 2, "handshake": 1 },
            "timeouts": { "timeouts": 1 },
        });
        let of_kernel = [
            ("TcpRetransSegs", 4),
            ("TcpExtTCPFastRetrans", 1),
            ("TcpExtTCPSynRetrans", 1),
            ("TcpExtTCPTimeouts", 2),
        ];
        let of_kernel = of_kernel.map(|(name, value)| (name.to_owned(), value)).into();
        let expected = Repair { fast: 1, timeout: 2, timeouts: 1, ..Repair::default() };
        assert_eq!(Repair::of_recipe(&of_ours), expected);
        assert_eq!(Repair::of_kernel(&of_kernel), expected);
    }
}
