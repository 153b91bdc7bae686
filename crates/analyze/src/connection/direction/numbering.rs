//! Converts the sequence numbers of one direction to offsets that do not wrap.

use std::ops::Range;

use airwire::seq::Seq;

use crate::compact::CompactOption;

/// Offset of the first number in the capture. The space below it is for data sent before the capture began.
pub(super) const BASE: u64 = 1 << 32;

#[derive(Clone, Debug)]
pub(super) struct Numbering {
    /// The sequence number with offset [`BASE`].
    base: Option<Seq>,
    /// The offset that is displayed as 0. It is the SYN's offset, even if the SYN was not captured.
    zero: u64,
    pub(super) syn_seen: bool,
    /// The MSS option of the SYN.
    pub(super) syn_mss: Option<u16>,
    /// One past the offset of the FIN.
    pub(super) fin: CompactOption,
    pub(super) fin_acked: bool,
    /// Number of consecutive packets whose sequence numbers do not fit this connection.
    pub(super) strays: u8,
}

impl Default for Numbering {
    fn default() -> Self {
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
}

impl Numbering {
    /// If `seq` is the first number in the capture, sent or acknowledged, makes it the number of [`BASE`].
    /// Returns whether it is the first.
    pub(super) fn begin(&mut self, seq: Seq) -> bool {
        let is_first = self.base.is_none();
        if is_first {
            self.base = Some(seq);
            // The SYN precedes this number, although the capture does not contain the SYN.
            self.zero = BASE - 1;
        }
        is_first
    }

    /// Does the same as [`begin`](Self::begin) for a SYN.
    pub(super) fn begin_with_syn(&mut self, seq: Seq) -> bool {
        let is_first = self.base.is_none();
        self.base.get_or_insert(seq);
        is_first
    }

    /// Forgets all numbers, because the connection continues with another SYN.
    pub(super) fn begin_again(&mut self) {
        *self = Self { syn_mss: self.syn_mss, ..Self::default() };
    }

    /// Sets the offset of the SYN.
    pub(super) fn set_zero(&mut self, offset: u64) {
        self.zero = offset;
    }

    /// Returns the offset of `seq`. If several are possible, returns the offset nearest to `max`.
    pub(super) fn offset(&self, seq: Seq, max: u64) -> Option<u64> {
        seq.offset(self.base?, max)
    }

    /// Returns whether a SYN with this number belongs to the known stream, whose end is `max`.
    pub(super) fn may_begin_with(&self, seq: Seq, max: u64) -> bool {
        match self.offset(seq, max) {
            None => self.base.is_none(),
            Some(offset) if self.syn_seen => offset == self.zero,
            // Data, or an ACK for data, has overtaken the SYN.
            Some(offset) => offset == BASE - 1,
        }
    }

    /// Returns the offset for display, relative to the SYN.
    pub(super) fn shown(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.zero)
    }

    /// Returns the initial sequence number, or `None` if the SYN was not captured.
    pub(super) fn isn(&self) -> Option<Seq> {
        let base = self.base.filter(|_| self.syn_seen)?;
        Some(base.at(self.zero.wrapping_sub(BASE)))
    }

    /// Returns the SYN's range of sequence space, or an empty range if it was not captured.
    pub(super) fn syn_range(&self) -> Range<u64> {
        if self.syn_seen { self.zero..self.zero + 1 } else { 0..0 }
    }
}
