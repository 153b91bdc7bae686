//! The in-flight list: every segment that was sent and is not yet acknowledged, with the SACK scoreboard (RFC
//! 6675 §3).
//!
//! The list records which segments were sent, acknowledged, SACKed and marked lost. It updates its sums
//! (`pipe`, outstanding, lost, …) at each step, so an ACK costs the same with ten segments outstanding as
//! with ten thousand. Other modules decide which segments are lost and what is sent next.

mod search;
mod segment;

use std::collections::VecDeque;
use std::ops::Range;

use airwire::time::Instant;

use self::search::{Hint, Rare, Steps};
pub use self::segment::{Acked, Amount, Delivery, Originals, Sacked, SegmentState, Sent};
use crate::ranges::RangeSet;

/// Maximum number of segments that [`Flight::resent_within`] visits: as many as one packet of 64 KB can
/// contain.
const MAX_REPORTED: usize = 64;

/// The in-flight segments of one connection, oldest first, with their sums.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    segments: VecDeque<Sent>,
    /// SND.UNA as a stream offset.
    una: u64,
    /// Highest offset ever sent, plus one (RFC 6675's HighData + 1). SND.NXT equals it except after a rewind.
    max: u64,
    /// Index of SND.NXT. Segments below it have been sent in the current go-back-N pass; all others still
    /// wait for this pass.
    next: usize,
    /// Bytes of the segments below `next`.
    passed_bytes: u64,
    sacked_ranges: RangeSet,
    sacked: Amount,
    lost: Amount,
    resent: Amount,
    in_doubt: Amount,
    /// A cached lower bound: below this index only the segments in `lost_early` are `Lost`. Searches may
    /// raise it.
    lost_hint: Hint,
    /// A cached bound: all segments from `next` up to this index are `Sacked`.
    sacked_hint: Hint,
    /// Boxed because most connections do not need it.
    rare: Option<Box<Rare>>,
    /// Everything below this offset that is not SACKed has already been marked lost.
    lost_edge: u64,
    /// Bytes known to have reached the receiver, in or out of order.
    delivered: u64,
    steps: Steps,
}

impl Flight {
    /// Returns SND.UNA as a stream offset: everything below is acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Returns the highest offset ever sent, plus one (RFC 6675's HighData + 1).
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns SND.NXT, where the current pass continues. It is below `max` after a rewind.
    pub fn nxt(&self) -> u64 {
        self.segments.get(self.next).map_or(self.max, |s| s.start)
    }

    /// Returns true if no segment is outstanding.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the bytes of memory that the list uses.
    pub(crate) fn cost(&self) -> usize {
        self.segments.capacity() * size_of::<Sent>()
    }

    /// Returns the number of segments on the list.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the oldest segment, which the next new ACK must cover.
    pub fn head(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// Iterates over the segments, from SND.UNA on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> + ExactSizeIterator {
        self.segments.iter()
    }

    /// Returns the segment that contains `offset`.
    pub fn segment_at(&self, offset: u64) -> Option<&Sent> {
        self.segments.get(self.index_of(offset)).filter(|s| s.start <= offset)
    }

    /// Returns the number of whole segments within `range` that were sent more than once. Only the first
    /// [`MAX_REPORTED`] segments count, because a peer may report a large range with every ACK.
    pub(crate) fn resent_within(&self, range: Range<u64>) -> u64 {
        let from = self.index_of(range.start);
        let reported = self.segments.range(from..).take(MAX_REPORTED).inspect(|_| self.steps.take(1));
        let whole = reported.take_while(|sent| sent.end <= range.end);
        whole.filter(|sent| range.start <= sent.start && sent.transmissions > 1).count() as u64
    }

    /// Returns FlightSize (RFC 5681 §2): everything sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> Amount {
        Amount { bytes: self.max - self.una, segments: self.segments.len() as u64 }
    }

    /// Returns the data between SND.UNA and SND.NXT, which equals `outstanding` except after a rewind.
    pub fn passed(&self) -> Amount {
        Amount { bytes: self.passed_bytes, segments: self.next as u64 }
    }

    /// Returns the data above SND.UNA that was SACKed, in whole segments.
    pub fn sacked(&self) -> Amount {
        self.sacked
    }

    /// Returns the bytes known to have reached the receiver since the connection began, in or out of order.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the data marked lost, whether retransmitted or not.
    pub fn lost(&self) -> Amount {
        Amount {
            bytes: self.lost.bytes + self.resent.bytes,
            segments: self.lost.segments + self.resent.segments,
        }
    }

    /// Returns the data marked lost and not retransmitted since.
    pub fn lost_and_not_resent(&self) -> Amount {
        self.lost
    }

    /// Returns the data retransmitted and not acknowledged since.
    pub fn resent(&self) -> Amount {
        Amount {
            bytes: self.resent.bytes + self.in_doubt.bytes,
            segments: self.resent.segments + self.in_doubt.segments,
        }
    }

    /// Returns `pipe` (RFC 6675 §4): data that is neither SACKed nor lost, plus retransmissions.
    pub fn pipe(&self) -> Amount {
        let all = self.outstanding();
        Amount {
            bytes: all.bytes - self.sacked.bytes - self.lost.bytes + self.in_doubt.bytes,
            segments: all.segments - self.sacked.segments - self.lost.segments + self.in_doubt.segments,
        }
    }

    /// Returns the ranges above SND.UNA that SACK blocks cover, including parts of segments.
    pub fn sacked_ranges(&self) -> &RangeSet {
        &self.sacked_ranges
    }

    /// Returns true during a go-back-N pass: SND.NXT is below the highest offset sent.
    pub fn has_rewound(&self) -> bool {
        self.next < self.segments.len()
    }

    /// Returns true if there is anything to retransmit: a go-back-N pass is under way, or a segment is marked
    /// lost.
    pub fn has_old_to_send(&self) -> bool {
        self.has_rewound() || self.lost.segments > 0
    }

    /// Records the first transmission of a segment that ends at `end`.
    pub fn on_new(&mut self, end: u64, now: Instant, tsval: u32) {
        debug_assert!(end > self.max);
        if self.has_rewound() {
            // SACKed segments at the end of a go-back-N pass need no retransmission.
            self.advance_pass(self.segments.len());
        }
        self.note_departure();
        let sent = Sent {
            start: self.max,
            end,
            first_sent: now,
            last_sent: now,
            transmissions: 1,
            state: SegmentState::InFlight,
            probes_mtu: false,
            tsval,
            delivered_when_sent: self.delivered,
        };
        self.passed_bytes += sent.len();
        self.segments.push_back(sent);
        self.next = self.segments.len();
        self.max = end;
    }

    /// Records a retransmission of the segment that starts at `start`. SND.NXT moves past it.
    pub fn on_resent(&mut self, start: u64, now: Instant, tsval: u32) {
        self.on_resent_outside_pass(start, now, tsval);
        let index = self.index_of(start);
        if index >= self.next && index < self.segments.len() {
            self.advance_pass(index + 1);
        }
    }

    /// Records a retransmission without moving SND.NXT: a go-back-N pass will send this segment once more.
    pub(crate) fn on_resent_outside_pass(&mut self, start: u64, now: Instant, tsval: u32) {
        self.on_probe_resent(start, now, tsval);
        let index = self.index_of(start);
        if index == self.segments.len() {
            return;
        }
        let in_doubt = matches!(self.segments[index].state, SegmentState::InFlight | SegmentState::InDoubt);
        self.set_state(index, if in_doubt { SegmentState::InDoubt } else { SegmentState::Resent });
    }

    /// Records a retransmission that does not count as in flight: the tail loss probe of Linux
    /// (tcp_send_loss_probe()).
    pub(crate) fn on_probe_resent(&mut self, start: u64, now: Instant, tsval: u32) {
        let index = self.index_of(start);
        let Some(segment) = self.segments.get_mut(index) else { return };
        segment.last_sent = now;
        segment.transmissions = segment.transmissions.saturating_add(1);
        segment.tsval = tsval;
        segment.delivered_when_sent = self.delivered;
        self.note_departure();
    }

    /// Records whether the segment that ends at `end` is an MTU probe.
    pub(crate) fn set_probes_mtu(&mut self, end: u64, probes_mtu: bool) {
        let index = self.index_of(end - 1);
        if let Some(segment) = self.segments.get_mut(index) {
            segment.probes_mtu = probes_mtu;
        }
    }

    /// Splits the segment that starts at `start` at offset `end`, after the MSS was reduced.
    pub(crate) fn split(&mut self, start: u64, end: u64) {
        let index = self.index_of(start);
        let Some(segment) = self.segments.get_mut(index) else { return };
        if end <= segment.start || end >= segment.end {
            return;
        }
        let mut rest = segment.clone();
        segment.end = end;
        rest.start = end;
        let state = rest.state;
        self.segments.insert(index + 1, rest);
        self.sum_of(state, |sum| sum.segments += 1);
        if index < self.next {
            self.next += 1;
        }
        if index < self.sacked_hint.get() {
            self.sacked_hint.set(self.sacked_hint.get() + 1);
        }
        if index < self.lost_hint.get() {
            self.lost_hint.set(self.lost_hint.get() + 1);
            if state == SegmentState::Lost {
                self.rare().lost_early.insert(end);
            }
        }
    }

    /// Merges the segment that starts at `start` with the next one. The result has the state of the first.
    pub(crate) fn merge(&mut self, start: u64) {
        let index = self.index_of(start);
        let Some(next) = self.segments.get(index + 1).cloned() else { return };
        if next.state == SegmentState::Lost {
            self.take_lost_early(next.start);
        }
        self.sum_of(next.state, |sum| sum.sub(next.len(), 1));
        self.segments.remove(index + 1);
        let segment = &mut self.segments[index];
        segment.end = next.end;
        segment.transmissions = segment.transmissions.max(next.transmissions);
        let state = segment.state;
        self.sum_of(state, |sum| sum.bytes += next.len());
        match self.next {
            at if index + 1 < at => self.next -= 1,
            at if index < at => self.passed_bytes += next.len(),
            _ => {}
        }
        for hint in [&self.sacked_hint, &self.lost_hint] {
            if index + 1 < hint.get() {
                hint.set(hint.get() - 1);
            }
        }
    }

    /// Processes a cumulative ACK, which moves SND.UNA to `una`.
    pub fn on_ack(&mut self, una: u64) -> Acked {
        let mut acked = Acked::default();
        debug_assert!(una <= self.max);
        acked.amount.bytes = una - self.una;
        while let Some(segment) = self.segments.front().filter(|head| head.start < una).cloned() {
            self.steps.take(1);
            let bytes = segment.end.min(una) - segment.start;
            let is_whole = segment.end <= una;
            let segments = u64::from(is_whole);
            self.sum_of(segment.state, |sum| sum.sub(bytes, segments));
            acked.amount.segments += segments;
            acked.last_tsval = Some(segment.tsval);
            acked.any_resent |= segment.transmissions > 1;
            if segment.state == SegmentState::Sacked {
                acked.sacked_before.add(bytes, segments);
            } else {
                let delivery = segment.delivery();
                acked.last = Some(delivery);
                acked.newest = Some(delivery.or_later(acked.newest));
                if segment.transmissions == 1 {
                    acked.oldest_unambiguous.get_or_insert(segment.last_sent);
                    // A part of a segment is not evidence that the segment has arrived (tcp_clean_rtx_queue()).
                    if is_whole {
                        acked.originals.add(&segment);
                    }
                }
            }
            if self.next > 0 {
                self.passed_bytes -= bytes;
            }
            let was_lost_early = segment.state == SegmentState::Lost && self.take_lost_early(segment.start);
            if !is_whole {
                self.segments[0].start = una;
                if was_lost_early {
                    self.rare().lost_early.insert(una);
                }
                break;
            }
            self.segments.pop_front();
            self.next = self.next.saturating_sub(1);
            self.lost_hint.set(self.lost_hint.get().saturating_sub(1));
            self.sacked_hint.set(self.sacked_hint.get().saturating_sub(1));
        }
        // An idle connection must not own a list.
        if self.segments.is_empty() {
            self.segments = VecDeque::new();
            self.rare = None;
        }
        self.una = una;
        self.delivered += acked.amount.bytes - acked.sacked_before.bytes;
        self.lost_edge = self.lost_edge.max(una);
        self.sacked_ranges.remove_below(una);
        acked
    }

    /// Processes one SACK block, already clipped to the outstanding data.
    pub fn on_sack(&mut self, block: Range<u64>, news: &mut Sacked) {
        // A receiver cannot hold more separate ranges than segments were sent. A peer that reports more may
        // only want to cause work.
        if self.sacked_ranges.len() > self.segments.len() {
            return;
        }
        // An ACK repeats the blocks of earlier ones.
        if !self.sacked_ranges.contains_range(&block) {
            // A block rarely spans several holes, so the first fresh range needs no allocation.
            let (mut first, mut others) = (None, Vec::new());
            let merged = self.sacked_ranges.insert_with(block, |fresh| match first {
                None => first = Some(fresh),
                Some(_) => others.push(fresh),
            });
            for fresh in first.into_iter().chain(others) {
                self.mark_sacked(fresh, &merged, news);
            }
        }
        self.delivered = self.delivered.max(self.una + self.sacked.bytes);
    }

    /// Marks the segments of `range`, which is a part of the SACKed range `whole`.
    fn mark_sacked(&mut self, range: Range<u64>, whole: &Range<u64>, news: &mut Sacked) {
        let mut index = self.index_of(range.start);
        while let Some(segment) = self.segments.get(index) {
            if segment.start >= range.end {
                break;
            }
            self.steps.take(1);
            // A partly covered segment counts only once it is completely covered.
            let is_covered = whole.start <= segment.start && segment.end <= whole.end;
            if is_covered && segment.state != SegmentState::Sacked {
                let delivery = segment.delivery();
                news.amount.add(segment.len(), 1);
                if news.highest.is_none_or(|highest| highest.end < delivery.end) {
                    news.highest = Some(delivery);
                }
                news.newest = Some(delivery.or_later(news.newest));
                if segment.transmissions == 1 {
                    news.originals.add(segment);
                    news.oldest_original = news.oldest_original.into_iter().chain([segment.first_sent]).min();
                }
                self.set_state(index, SegmentState::Sacked);
            }
            index += 1;
        }
    }

    /// Marks the first segment lost. Returns false if it already was marked lost, is SACKed, or does not
    /// exist.
    pub(crate) fn mark_head_lost(&mut self) -> bool {
        match self.segments.front() {
            Some(head) if !matches!(head.state, SegmentState::Lost | SegmentState::Sacked) => {
                self.set_state(0, SegmentState::Lost);
                true
            }
            _ => false,
        }
    }

    /// Marks the first segment lost unless it is SACKed. Returns false if it is SACKed or does not exist.
    pub(crate) fn mark_head_lost_if_unsacked(&mut self) -> bool {
        let sacked = self.segments.front().is_none_or(|head| head.state == SegmentState::Sacked);
        if !sacked {
            self.mark_head_lost();
        }
        !sacked
    }

    /// Marks the segment that starts at `start` lost. Returns false if the segment does not exist or its
    /// state does not change.
    pub(crate) fn mark_lost(&mut self, start: u64) -> bool {
        let index = self.index_of(start);
        match self.segments.get(index) {
            Some(s)
                if s.start == start
                    && matches!(
                        s.state,
                        SegmentState::InFlight | SegmentState::Resent | SegmentState::InDoubt
                    ) =>
            {
                self.set_state(index, SegmentState::Lost);
                true
            }
            _ => false,
        }
    }

    /// Marks the original of a retransmitted segment lost. The retransmission counts as in flight. Returns false if
    /// the original was already marked lost, or the segment does not exist.
    pub(crate) fn mark_original_lost(&mut self, start: u64) -> bool {
        let index = self.index_of(start);
        let is_in_doubt =
            self.segments.get(index).is_some_and(|s| s.start == start && s.state == SegmentState::InDoubt);
        if is_in_doubt {
            self.set_state(index, SegmentState::Resent);
        }
        is_in_doubt
    }

    /// Marks lost all segments below `edge` that were sent once and are not SACKed. Returns the start of the
    /// first one and their number.
    pub(crate) fn mark_lost_below(&mut self, edge: u64) -> Option<(u64, u64)> {
        let mut marked: Option<(u64, u64)> = None;
        let mut index = self.index_of(self.lost_edge.max(self.una));
        while let Some(segment) = self.segments.get(index) {
            if segment.end > edge {
                break;
            }
            self.steps.take(1);
            if segment.state == SegmentState::InDoubt {
                // The original is lost after all; the retransmission is still in flight.
                self.set_state(index, SegmentState::Resent);
            } else if segment.state == SegmentState::InFlight {
                let start = segment.start;
                self.set_state(index, SegmentState::Lost);
                marked = Some(marked.map_or((start, 1), |(first, segments)| (first, segments + 1)));
            }
            index += 1;
        }
        self.lost_edge = self.lost_edge.max(edge);
        marked
    }

    /// Starts go-back-N: everything that is not SACKed is marked lost, and SND.NXT returns to SND.UNA.
    pub(crate) fn rewind(&mut self) {
        self.steps.take(self.segments.len());
        self.lost_hint.set(0);
        if let Some(rare) = &mut self.rare {
            rare.lost_early.clear();
        }
        self.sacked_hint.set(0);
        for index in 0..self.segments.len() {
            if self.segments[index].state != SegmentState::Sacked {
                self.set_state(index, SegmentState::Lost);
            }
        }
        self.lost_edge = self.max;
        self.next = 0;
        self.passed_bytes = 0;
    }

    /// After a rewind, treats the first segment as already retransmitted.
    pub(crate) fn skip_head(&mut self) {
        if !self.segments.is_empty() {
            self.set_state(0, SegmentState::Resent);
            self.advance_pass(1);
        }
    }

    /// Sets SND.NXT to SND.MAX: segments that wait for retransmission count as in flight again.
    pub(crate) fn resume_at_max(&mut self) {
        while let Some((start, copies)) = self.first_lost().map(|lost| (lost.start, lost.transmissions)) {
            let index = self.index_of(start);
            self.set_state(index, if copies > 1 { SegmentState::Resent } else { SegmentState::InFlight });
        }
        self.lost_edge = self.una;
        self.advance_pass(self.segments.len());
    }

    /// Withdraws all loss marks (Linux 6.18, tcp_undo_cwnd_reduction()). The retransmissions in flight stay there, next
    /// to the originals.
    pub(crate) fn unmark_losses(&mut self) {
        self.steps.take(self.segments.len());
        for index in 0..self.segments.len() {
            match self.segments[index].state {
                SegmentState::Lost => self.set_state(index, SegmentState::InFlight),
                SegmentState::Resent => self.set_state(index, SegmentState::InDoubt),
                _ => {}
            }
        }
        self.resume_at_max();
    }

    /// Returns true if a reneging peer may cause a pass over the list now. At most one pass per window of
    /// sent data is allowed, because a peer may renege with every ACK.
    pub(crate) fn may_forget_sacks(&self) -> bool {
        self.rare.as_ref().is_none_or(|rare| rare.to_leave == 0)
    }

    /// Clears all SACK information, because the receiver may have reneged (RFC 2018 §8).
    pub(crate) fn forget_sacks(&mut self) {
        self.lost_edge = self.una;
        self.sacked_ranges.clear();
        if self.sacked.segments == 0 {
            return;
        }
        self.steps.take(self.segments.len());
        for index in 0..self.segments.len() {
            if self.segments[index].state == SegmentState::Sacked {
                self.set_state(index, SegmentState::InFlight);
            }
        }
        self.rare().to_leave = self.segments.len();
    }

    fn advance_pass(&mut self, to: usize) {
        let skipped: u64 = self.segments.range(self.next..to).map(Sent::len).sum();
        self.passed_bytes += skipped;
        self.next = to;
    }

    fn index_of(&self, offset: u64) -> usize {
        // Most lookups are for the head.
        if self.segments.front().is_none_or(|head| offset < head.end) {
            return 0;
        }
        // Almost all segments have the same size, so the expected position is checked first: a binary search
        // touches cold memory.
        let guess = ((offset - self.una) * self.segments.len() as u64 / (self.max - self.una)) as usize;
        match self.segments.get(guess) {
            Some(s) if s.start <= offset && offset < s.end => guess,
            _ => self.segments.partition_point(|s| s.end <= offset),
        }
    }

    fn set_state(&mut self, index: usize, state: SegmentState) {
        let old = self.segments[index].state;
        if old == state {
            return;
        }
        let bytes = self.segments[index].len();
        self.sum_of(old, |sum| sum.sub(bytes, 1));
        self.sum_of(state, |sum| sum.add(bytes, 1));
        self.segments[index].state = state;
        let start = self.segments[index].start;
        let is_early = index < self.lost_hint.get();
        match (old, state) {
            (_, SegmentState::Lost) if is_early => drop(self.rare().lost_early.insert(start)),
            (SegmentState::Lost, _) if is_early => drop(self.take_lost_early(start)),
            _ => {}
        }
        if old == SegmentState::Sacked {
            self.sacked_hint.set(self.sacked_hint.get().min(index));
        }
    }

    fn sum_of(&mut self, state: SegmentState, change: impl FnOnce(&mut Amount)) {
        match state {
            SegmentState::InFlight => {}
            SegmentState::Lost => change(&mut self.lost),
            SegmentState::Resent => change(&mut self.resent),
            SegmentState::InDoubt => change(&mut self.in_doubt),
            SegmentState::Sacked => change(&mut self.sacked),
        }
    }
}

#[cfg(test)]
mod tests;
