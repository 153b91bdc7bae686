//! The sequence numbers of one direction as offsets that do not wrap.

use std::ops::Range;

use airwire::seq::Seq;

use super::compact::CompactOption;

/// Offset of the first number seen. There is room below it for what was sent before the capture began.
pub(super) const BASE: u64 = 1 << 32;

#[derive(Debug)]
pub(super) struct Numbering {
    /// The number that has offset [`BASE`].
    base: Option<Seq>,
    /// The offset that is shown as 0: the SYN's, even if it was not seen.
    zero: u64,
    pub(super) syn_seen: bool,
    /// The MSS option of the SYN.
    pub(super) syn_mss: Option<u16>,
    /// One past the FIN.
    pub(super) fin: CompactOption,
    pub(super) fin_acked: bool,
    /// Packets in a row whose numbers cannot belong to this connection as it is known.
    pub(super) strays: u8,
}

impl Numbering {
    pub(super) fn new() -> Self {
        Self {
            base: None,
            zero: BASE,
            syn_seen: false,
            syn_mss: None,
            fin: CompactOption::default(),
            fin_acked: false,
            strays: 0,
        }
    }

    /// Takes `seq` for the number of [`BASE`] if it is the first one seen, be it sent or acknowledged. Returns whether
    /// it is.
    pub(super) fn begin(&mut self, seq: Seq) -> bool {
        let is_first = self.base.is_none();
        if is_first {
            self.base = Some(seq);
            // A SYN that the capture does not have came before it.
            self.zero = BASE - 1;
        }
        is_first
    }

    /// The same for a SYN.
    pub(super) fn begin_with_syn(&mut self, seq: Seq) -> bool {
        let is_first = self.base.is_none();
        self.base.get_or_insert(seq);
        is_first
    }

    /// The SYN is here.
    pub(super) fn set_zero(&mut self, offset: u64) {
        self.zero = offset;
    }

    /// The offset of `seq`, the one of those that it may have that is nearest to `max`.
    pub(super) fn offset(&self, seq: Seq, max: u64) -> Option<u64> {
        seq.offset(self.base?, max)
    }

    /// Whether a SYN with this number belongs to the stream that is known already, of which `max` is the end.
    pub(super) fn may_begin_with(&self, seq: Seq, max: u64) -> bool {
        match self.offset(seq, max) {
            None => self.base.is_none(),
            Some(offset) if self.syn_seen => offset == self.zero,
            // The first data overtook the SYN.
            Some(offset) => offset == BASE - 1 && max < BASE + (1 << 16),
        }
    }

    /// As a person counts: from the SYN on.
    pub(super) fn shown(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.zero)
    }

    /// The SYN's place in sequence space; empty if it was not seen.
    pub(super) fn syn_range(&self) -> Range<u64> {
        if self.syn_seen { self.zero..self.zero + 1 } else { 0..0 }
    }
}
