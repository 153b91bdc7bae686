//! What there is to remember only while segments wait, to be read or for a hole to be filled.

use super::acks::Compressed;
use super::memory::Memory;
use super::sacks::Sacks;

/// In a box that an idle connection has not.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) memory: Memory,
    pub(super) sacks: Sacks,
    pub(super) compressed: Compressed,
    /// What the next ACK is to say, if it was decided on before all of the last segment, or a read, was looked at.
    pub(super) chosen: Chosen,
}

/// Parts of an ACK that is on its way out.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// RCV.NXT, and the window.
    pub(super) window: Option<(u64, u64)>,
    pub(super) sacks: Option<Sacks>,
}

impl Held {
    pub(super) fn is_over(&self) -> bool {
        let Chosen { window, sacks } = &self.chosen;
        self.memory.used() == 0
            && self.sacks.as_slice().is_empty()
            && !self.compressed.is_compressing()
            && window.is_none()
            && sacks.is_none()
    }
}
