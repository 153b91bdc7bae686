//! The window that the receiver of the data advertises.

use airwire::segment::Flags;

use crate::compact::CompactOption;
use aircaptures::packet::Packet;

/// The scale of the window fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scale {
    /// Unknown, because the capture does not contain both SYNs.
    #[default]
    Unknown,
    Shift(u8),
}

#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverWindow {
    pub(super) scale: Scale,
    /// The last window field, not scaled.
    in_header: Option<u16>,
    /// One past the last byte that the receiver accepts.
    edge: CompactOption,
    max: u32,
    /// Valid if `in_header` is set.
    min: u32,
}

/// The change from the previous window to a new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowChange {
    pub(super) closes: bool,
    /// Whether the right edge moves to the left.
    pub(super) shrinks: bool,
}

impl ReceiverWindow {
    /// Returns this state, but with a new measurement of the largest and the smallest window.
    pub(super) fn continued(&self) -> Self {
        let shift = if let Scale::Shift(shift) = self.scale { shift } else { 0 };
        let window = self.in_header.map_or(0, |window| u32::from(window) << shift);
        Self { max: window, min: window, ..self.clone() }
    }

    /// Records the window of a packet that acknowledges everything up to `ack`.
    pub(super) fn update(&mut self, packet: &Packet, ack: u64) -> WindowChange {
        let shift = match self.scale {
            // RFC 7323 §2.2: the window field of a segment with SYN must not be scaled.
            Scale::Shift(shift) if !packet.flags.contains(Flags::SYN) => shift,
            _ => 0,
        };
        let window = u32::from(packet.window) << shift;
        let edge = ack + u64::from(window);
        let change = WindowChange {
            closes: packet.window == 0 && self.in_header.is_some_and(|before| before > 0),
            shrinks: self.edge().is_some_and(|before| edge < before),
        };
        self.max = self.max.max(window);
        self.min = if self.in_header.is_some() { self.min.min(window) } else { window };
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

    /// Returns whether the window field of `packet` equals the last one.
    pub(super) fn equals_field_of(&self, packet: &Packet) -> bool {
        self.in_header == Some(packet.window)
    }

    /// Returns the number of bytes that may be sent from `next` on, if the window is known.
    pub(super) fn room(&self, next: u64) -> Option<u64> {
        if self.scale == Scale::Unknown {
            return None;
        }
        Some(self.edge()?.saturating_sub(next))
    }

    pub(super) fn max(&self) -> u32 {
        self.max
    }

    pub(super) fn min(&self) -> Option<u32> {
        self.in_header.map(|_| self.min)
    }
}
