//! State that is needed only while segments wait to be read, or wait for a hole to be filled.

use super::acks::Compressed;
use super::memory::Memory;
use super::sacks::Sacks;

/// State that an idle connection does not allocate.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) memory: Memory,
    pub(super) sacks: Sacks,
    pub(super) compressed: Compressed,
    /// Contents of the next ACK that were decided before the last segment or read was fully processed.
    pub(super) chosen: Chosen,
}

/// Parts of an ACK that is about to be sent.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// RCV.NXT and the window.
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
