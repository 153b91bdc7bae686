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
    pub(super) decided: Decided,
}

/// Parts of the next ACK that are already decided. Later events do not change them.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// RCV.NXT and the window.
    pub(super) window: Option<(u64, u64)>,
    pub(super) sacks: Option<Sacks>,
}

impl Held {
    pub(super) fn is_unused(&self) -> bool {
        let Decided { window, sacks } = &self.decided;
        self.memory.used() == 0
            && self.sacks.as_slice().is_empty()
            && !self.compressed.is_compressing()
            && window.is_none()
            && sacks.is_none()
    }
}
