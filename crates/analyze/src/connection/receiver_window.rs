//! The window that the receiver of the data offers.

use airwire::segment::Flags;

use super::compact::CompactOption;
use aircaptures::packet::Packet;

/// How the windows in the headers are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// The capture does not have both SYNs.
    Unknown,
    Shift(u8),
}

#[derive(Debug)]
pub(super) struct ReceiverWindow {
    pub(super) scale: Scale,
    /// The last one, as it stands in the header.
    in_header: Option<u16>,
    /// The last octet that the receiver takes, and one.
    edge: CompactOption,
    most: u32,
    /// Once there is one `in_header`.
    least: u32,
}

/// What a new window does to the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowChange {
    pub(super) closes: bool,
    /// Its right edge moves to the left.
    pub(super) shrinks: bool,
}

impl ReceiverWindow {
    pub(super) fn new() -> Self {
        Self { scale: Scale::Unknown, in_header: None, edge: CompactOption::default(), most: 0, least: 0 }
    }

    /// Takes in the window of a packet that acknowledges everything up to `ack`.
    pub(super) fn update(&mut self, packet: &Packet, ack: u64) -> WindowChange {
        let shift = match self.scale {
            // RFC 7323 §2.2: the window of a SYN is never scaled.
            Scale::Shift(shift) if !packet.flags.contains(Flags::SYN) => shift,
            _ => 0,
        };
        let window = u32::from(packet.window) << shift;
        let edge = ack + u64::from(window);
        let change = WindowChange {
            closes: packet.window == 0 && self.in_header.is_some_and(|before| before > 0),
            shrinks: self.edge().is_some_and(|before| edge < before),
        };
        self.most = self.most.max(window);
        self.least = if self.in_header.is_some() { self.least.min(window) } else { window };
        self.in_header = Some(packet.window);
        self.edge = CompactOption::offset(edge);
        change
    }

    pub(super) fn edge(&self) -> Option<u64> {
        self.edge.as_offset()
    }

    pub(super) fn forget_edge(&mut self) {
        self.edge = CompactOption::default();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.in_header == Some(0)
    }

    /// Whether the header of `packet` has the same window as the last one.
    pub(super) fn is_same_in(&self, packet: &Packet) -> bool {
        self.in_header == Some(packet.window)
    }

    /// Octets that may be sent from `next` on, as far as the window is known.
    pub(super) fn room(&self, next: u64) -> Option<u64> {
        if self.scale == Scale::Unknown {
            return None;
        }
        Some(self.edge()?.saturating_sub(next))
    }

    pub(super) fn most(&self) -> u32 {
        self.most
    }

    pub(super) fn least(&self) -> Option<u32> {
        self.in_header.map(|_| self.least)
    }
}
