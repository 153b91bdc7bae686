//! Packet counters of a path. They count whether or not events are recorded.

use serde::Serialize;

use crate::packet::{Direction, Origin, PerDirection};
use crate::stage::DropReason;

/// Counters of the packets in one direction, either from hosts or from traffic sources. At any time,
/// `entered` plus `copied` equals `left` plus all `dropped` plus the number of packets inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets that entered.
    pub entered: u64,
    /// Bytes of these packets, including IP headers.
    pub entered_bytes: u64,
    /// Copies of packets that were created inside.
    pub copied: u64,
    /// Packets that left.
    pub left: u64,
    /// Bytes of these packets.
    pub left_bytes: u64,
    /// Dropped packets, indexed by `DropReason as usize`.
    pub dropped: [u64; DropReason::ALL.len()],
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

    /// Number of packets inside.
    pub fn inside(&self) -> u64 {
        self.entered + self.copied - self.left - self.dropped.iter().sum::<u64>()
    }

    /// Number of packets dropped for this reason.
    pub fn dropped_for(&self, why: DropReason) -> u64 {
        self.dropped[why as usize]
    }
}

/// Counters of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    /// Packets of the hosts.
    pub(crate) hosts: PerDirection<Totals>,
    /// Background traffic.
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
