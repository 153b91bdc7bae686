//! What became of packets: counted whether or not anybody records events.

use serde::Serialize;

use crate::packet::{Direction, Origin, PerDirection};
use crate::stage::Why;

/// What became of the packets in one direction: of those of hosts, or of those of traffic sources. At any time
/// `entered` and `copied` together are the sum of `left`, of all `dropped`, and of what is inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets that came in.
    pub entered: u64,
    /// Their octets, IP headers included.
    pub entered_bytes: u64,
    /// Copies of packets that came into being inside.
    pub copied: u64,
    /// Packets that went out.
    pub left: u64,
    /// Their octets.
    pub left_bytes: u64,
    /// Packets that were dropped, by `Why as usize`.
    pub dropped: [u64; Why::ALL.len()],
}

impl Totals {
    pub(crate) fn enter(&mut self, bytes: usize) {
        self.entered += 1;
        self.entered_bytes += bytes as u64;
    }

    pub(crate) fn leave(&mut self, bytes: usize) {
        self.left += 1;
        self.left_bytes += bytes as u64;
    }

    /// Packets that are inside.
    pub fn inside(&self) -> u64 {
        self.entered + self.copied - self.left - self.dropped.iter().sum::<u64>()
    }

    /// Packets dropped for this reason.
    pub fn dropped_for(&self, why: Why) -> u64 {
        self.dropped[why as usize]
    }
}

/// The totals of a path.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// Of the hosts' packets.
    pub(crate) hosts: PerDirection<Totals>,
    /// Of the packets of traffic sources.
    pub(crate) background: PerDirection<Totals>,
}

impl Accounts {
    pub(crate) fn of(&mut self, direction: Direction, origin: Origin) -> &mut Totals {
        match origin {
            Origin::Host => &mut self.hosts[direction],
            Origin::Background { .. } => &mut self.background[direction],
        }
    }
}
