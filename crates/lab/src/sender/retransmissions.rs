//! Retransmissions as senders count them.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counters::Counters;

/// A sender's own counts of its retransmissions and timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetransmissionCounts {
    /// Segments retransmitted after duplicate ACKs or SACK.
    pub fast: u64,
    /// Segments retransmitted after a timeout.
    pub timeout: u64,
    /// Segments retransmitted to provoke an ACK.
    pub probe: u64,
    /// Expiries of the retransmission timer after the handshake, which loss recovery does not cover.
    pub timeouts: u64,
    /// Timeouts that the sender detected as spurious.
    pub spurious: u64,
}

impl RetransmissionCounts {
    /// All retransmitted segments.
    pub fn retransmitted(&self) -> u64 {
        self.fast + self.timeout + self.probe
    }

    /// Reads the counts from the final report of a recipe's sender.
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

    /// Derives the counts from a kernel's counters. All senders on this kernel must be of one kind.
    pub(crate) fn of_kernel(counters: &Counters) -> Self {
        let number = |name: &str| counters.get(name).map_or(0, |value| (*value).max(0) as u64);
        let [resent, fast, probe, syns] =
            ["TcpRetransSegs", "TcpExtTCPFastRetrans", "TcpExtTCPLossProbes", "TcpExtTCPSynRetrans"]
                .map(number);
        Self {
            fast,
            // The kernel does not count the retransmissions caused by timeouts; they are the remaining ones.
            timeout: resent.saturating_sub(fast + probe + syns),
            probe,
            timeouts: number("TcpExtTCPTimeouts").saturating_sub(syns),
            spurious: number("TcpExtTCPSpuriousRTOs"),
        }
    }
}

impl AddAssign for RetransmissionCounts {
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
    fn syn_retransmissions_are_not_counted() {
        // Each sender lost its SYN once, and later had one timeout that retransmitted two segments.
        let of_recipe = json!({
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
        let expected =
            RetransmissionCounts { fast: 1, timeout: 2, timeouts: 1, ..RetransmissionCounts::default() };
        assert_eq!(RetransmissionCounts::of_recipe(&of_recipe), expected);
        assert_eq!(RetransmissionCounts::of_kernel(&of_kernel), expected);
    }
}
