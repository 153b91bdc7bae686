//! The in-flight list: every segment sent and not yet acknowledged, with the SACK scoreboard (RFC 6675 §3).
//!
//! Plain bookkeeping: it records what was sent, acknowledged, SACKed and judged lost, and keeps the sums
//! (`pipe`, outstanding, lost, …) up to date at each step, so that an ACK costs the same with ten segments
//! outstanding as with ten thousand. What counts as lost and what is sent next is decided elsewhere.

mod search;

use std::collections::VecDeque;
use std::ops::Range;

use airwire::time::Instant;

use self::search::{Hint, Rare, Steps};
use crate::ranges::RangeSet;

/// What has become of a segment, as far as the sender can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// On its way, as far as anybody knows.
    InFlight,
    /// Judged lost and not sent again since.
    Lost,
    /// Judged lost and sent again: the new copy is on its way.
    Resent,
    /// Sent again without having been judged lost: both copies count (RFC 6675 §4, SetPipe).
    InDoubt,
    /// The receiver has reported it by SACK.
    Sacked,
}

/// One segment on the list. SYN and FIN take an offset each, like an octet.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Stream offset of its first octet.
    pub start: u64,
    /// Offset behind its last octet.
    pub end: u64,
    /// When its first copy left.
    pub first_sent: Instant,
    /// When its newest copy left.
    pub last_sent: Instant,
    /// How often it was sent, the first time included.
    pub transmissions: u16,
    /// What the sender believes about it.
    pub fate: Fate,
    /// Timestamp value (RFC 7323) of the newest copy.
    pub tsval: u32,
    /// `Flight::delivered` when the newest copy left: what a rate estimate needs.
    pub delivered_when_sent: u64,
}

impl Sent {
    /// Sequence numbers that it takes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Never true of a segment on the list: each takes a sequence number.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn delivery(&self) -> Delivery {
        let resent = self.transmissions > 1;
        Delivery { sent_at: self.last_sent, end: self.end, tsval: self.tsval, resent }
    }
}

/// The segment among those newly delivered that had left last (RFC 8985 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its newest copy left.
    pub sent_at: Instant,
    /// Offset behind its last octet.
    pub end: u64,
    /// Timestamp value of its newest copy.
    pub tsval: u32,
    /// It was sent more than once: which copy arrived is in doubt.
    pub resent: bool,
}

impl Delivery {
    fn order(self) -> (Instant, u64) {
        (self.sent_at, self.end)
    }

    /// RACK_sent_after() of RFC 8985 §5.2: of two sent at the same moment the one that ends later.
    pub(crate) fn later(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(first), Some(second)) if first.order() > second.order() => a,
            (_, Some(_)) => b,
            (_, None) => a,
        }
    }
}

/// Segments newly delivered that were sent only once: there is no doubt which copy arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Originals {
    /// End of the lowest of them.
    pub lowest: Option<u64>,
    /// The one that had left last.
    pub newest: Option<Delivery>,
}

impl Originals {
    fn add(&mut self, delivery: Delivery) {
        let end = delivery.end;
        self.lowest = Some(self.lowest.map_or(end, |lowest| lowest.min(end)));
        self.newest = Delivery::later(self.newest, Some(delivery));
    }

    /// These and those of `other`, as if one ACK had brought both.
    pub(crate) fn merge(&mut self, other: Self) {
        self.lowest = self.lowest.into_iter().chain(other.lowest).min();
        self.newest = Delivery::later(self.newest, other.newest);
    }
}

/// Octets and segments, always moved together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Octets; a SYN and a FIN count as one each.
    pub bytes: u64,
    /// Segments, as they stand on the list.
    pub segments: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64, segments: u64) {
        self.bytes += bytes;
        self.segments += segments;
    }

    fn sub(&mut self, bytes: u64, segments: u64) {
        self.bytes -= bytes;
        self.segments -= segments;
    }
}

/// What a cumulative ACK took off the list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// All of it. A segment acknowledged in part adds octets but no segment.
    pub amount: Amount,
    /// Part of it had been SACKed before: delivered earlier, only now acknowledged in sequence.
    pub sacked_before: Amount,
    /// At least one of the segments had been sent more than once (Karn).
    pub any_resent: bool,
    /// Sending time of the oldest segment covered that was sent only once and not SACKed before.
    pub oldest_unambiguous: Option<Instant>,
    /// The segment not SACKed before whose newest copy had left last.
    pub newest: Option<Delivery>,
    /// Those not SACKed before that had been sent only once.
    pub originals: Originals,
    /// Timestamp of the newest copy of the last segment covered.
    pub last_tsval: Option<u32>,
}

/// What the SACK blocks of one ACK said that was not known before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sacked {
    /// All of it, in whole segments.
    pub amount: Amount,
    /// End of the highest octet newly SACKed.
    pub highest: Option<u64>,
    /// The newly SACKed segment whose newest copy had left last.
    pub newest: Option<Delivery>,
    /// Those newly SACKed that had been sent only once.
    pub originals: Originals,
    /// When the first of these left.
    pub oldest_original: Option<Instant>,
}

/// The list of one connection's segments, oldest first, and its sums.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    segments: VecDeque<Sent>,
    /// SND.UNA as a stream offset.
    una: u64,
    /// Highest offset ever sent, plus one (RFC 6675's HighData + 1). SND.NXT equals it except after a rewind.
    max: u64,
    /// Segments below this index have been sent in the present pass; above it they wait (go-back-N).
    next: usize,
    /// Bytes of the segments below `next`.
    passed_bytes: u64,
    sacked_ranges: RangeSet,
    sacked: Amount,
    lost: Amount,
    resent: Amount,
    in_doubt: Amount,
    /// No segment below this index is `Lost`, but those of `lost_early`. A cache: looking may move it up.
    lost_hint: Hint,
    /// All segments from `next` up to this index are `Sacked`. A cache as well.
    sacked_hint: Hint,
    /// In a box, because an idle connection has none of it.
    rare: Option<Box<Rare>>,
    /// What lies below this offset and is not SACKed has been judged lost already.
    lost_edge: u64,
    /// Octets known to have reached the receiver, in or out of order.
    delivered: u64,
    steps: Steps,
}

impl Flight {
    /// SND.UNA as a stream offset: everything below is acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The highest offset ever sent, plus one (RFC 6675's HighData + 1).
    pub fn max(&self) -> u64 {
        self.max
    }

    /// SND.NXT: where the present pass goes on. Below `max` after a rewind.
    pub fn nxt(&self) -> u64 {
        self.segments.get(self.next).map_or(self.max, |s| s.start)
    }

    /// Nothing waits for an acknowledgment.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Octets of memory that the list takes.
    pub(crate) fn cost(&self) -> usize {
        self.segments.capacity() * size_of::<Sent>()
    }

    /// Segments on the list.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// The oldest segment: what the next new ACK must cover.
    pub fn head(&self) -> Option<&Sent> {
        self.segments.front()
    }

    /// The segments from SND.UNA on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Sent> + ExactSizeIterator {
        self.segments.iter()
    }

    /// The segment that holds `offset`.
    pub fn segment_at(&self, offset: u64) -> Option<&Sent> {
        self.segments.get(self.index_of(offset)).filter(|s| s.start <= offset)
    }

    /// FlightSize (RFC 5681 §2): everything sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> Amount {
        Amount { bytes: self.max - self.una, segments: self.segments.len() as u64 }
    }

    /// What lies between SND.UNA and SND.NXT: the same as `outstanding`, except after a rewind.
    pub fn passed(&self) -> Amount {
        Amount { bytes: self.passed_bytes, segments: self.next as u64 }
    }

    /// What the receiver reports to hold above SND.UNA, in whole segments.
    pub fn sacked(&self) -> Amount {
        self.sacked
    }

    /// Octets known to have reached the receiver since the connection began, in or out of order.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Judged lost, whether sent again or not.
    pub fn lost(&self) -> Amount {
        Amount {
            bytes: self.lost.bytes + self.resent.bytes,
            segments: self.lost.segments + self.resent.segments,
        }
    }

    /// Judged lost and not sent again since.
    pub fn lost_and_not_resent(&self) -> Amount {
        self.lost
    }

    /// Sent again and not acknowledged since.
    pub fn resent(&self) -> Amount {
        Amount {
            bytes: self.resent.bytes + self.in_doubt.bytes,
            segments: self.resent.segments + self.in_doubt.segments,
        }
    }

    /// `pipe` (RFC 6675 §4): not SACKed and not lost, plus copies sent again.
    pub fn pipe(&self) -> Amount {
        let all = self.outstanding();
        Amount {
            bytes: all.bytes - self.sacked.bytes - self.lost.bytes + self.in_doubt.bytes,
            segments: all.segments - self.sacked.segments - self.lost.segments + self.in_doubt.segments,
        }
    }

    /// The ranges above SND.UNA that SACK blocks have covered, parts of segments included.
    pub fn sacked_ranges(&self) -> &RangeSet {
        &self.sacked_ranges
    }

    /// A go-back-N pass is under way: SND.NXT is below the highest offset sent.
    pub fn has_rewound(&self) -> bool {
        self.next < self.segments.len()
    }

    /// Is anything to be sent again: a pass over the window goes on, or a segment is judged lost?
    pub fn has_old_to_send(&self) -> bool {
        self.has_rewound() || self.lost.segments > 0
    }

    // ----- what happened -----

    /// A segment never sent before leaves.
    pub fn on_new(&mut self, end: u64, now: Instant, tsval: u32) {
        debug_assert!(end > self.max);
        // SACKed segments at the end of a rewound pass need not be sent again.
        self.advance_pass(self.segments.len());
        self.note_departure();
        let sent = Sent {
            start: self.max,
            end,
            first_sent: now,
            last_sent: now,
            transmissions: 1,
            fate: Fate::InFlight,
            tsval,
            delivered_when_sent: self.delivered,
        };
        self.passed_bytes += sent.len();
        self.segments.push_back(sent);
        self.next = self.segments.len();
        self.max = end;
    }

    /// A copy of the segment that starts at `start` leaves. SND.NXT moves past it.
    pub fn on_resent(&mut self, start: u64, now: Instant, tsval: u32) {
        self.on_resent_apart(start, now, tsval);
        let index = self.index_of(start);
        if index >= self.next && index < self.segments.len() {
            self.advance_pass(index + 1);
        }
    }

    /// The same, and SND.NXT stays: a go-back-N pass will send this segment once more.
    pub(crate) fn on_resent_apart(&mut self, start: u64, now: Instant, tsval: u32) {
        let index = self.index_of(start);
        let Some(segment) = self.segments.get_mut(index) else { return };
        segment.last_sent = now;
        segment.transmissions = segment.transmissions.saturating_add(1);
        segment.tsval = tsval;
        segment.delivered_when_sent = self.delivered;
        self.note_departure();
        let in_doubt = matches!(self.segments[index].fate, Fate::InFlight | Fate::InDoubt);
        self.set_fate(index, if in_doubt { Fate::InDoubt } else { Fate::Resent });
    }

    /// Cuts the segment that starts at `start` so that it ends at `end` (a smaller MSS after an ICMP).
    pub(crate) fn split(&mut self, start: u64, end: u64) {
        let index = self.index_of(start);
        let Some(segment) = self.segments.get_mut(index) else { return };
        if end <= segment.start || end >= segment.end {
            return;
        }
        let mut rest = segment.clone();
        segment.end = end;
        rest.start = end;
        let fate = rest.fate;
        self.segments.insert(index + 1, rest);
        self.fate_sum(fate, |sum| sum.segments += 1);
        if index < self.next {
            self.next += 1;
        }
        if index < self.sacked_hint.get() {
            self.sacked_hint.set(self.sacked_hint.get() + 1);
        }
        if index < self.lost_hint.get() {
            self.lost_hint.set(self.lost_hint.get() + 1);
            if fate == Fate::Lost {
                self.rare().lost_early.insert(end);
            }
        }
    }

    /// SND.UNA moves up to `una`.
    pub fn on_ack(&mut self, una: u64) -> Acked {
        let mut acked = Acked::default();
        debug_assert!(una <= self.max);
        acked.amount.bytes = una - self.una;
        while let Some(front) = self.segments.front() {
            if front.start >= una {
                break;
            }
            self.steps.take(1);
            let front = front.clone();
            let taken = front.end.min(una) - front.start;
            let whole = front.end <= una;
            let segments = u64::from(whole);
            self.fate_sum(front.fate, |sum| sum.sub(taken, segments));
            acked.amount.segments += segments;
            acked.last_tsval = Some(front.tsval);
            let sacked = front.fate == Fate::Sacked;
            if sacked {
                acked.sacked_before.add(taken, segments);
            }
            if front.transmissions > 1 {
                acked.any_resent = true;
                if !sacked {
                    acked.newest = Delivery::later(acked.newest, Some(front.delivery()));
                }
            } else if !sacked {
                acked.oldest_unambiguous.get_or_insert(front.last_sent);
                acked.originals.add(front.delivery());
            }
            if self.next > 0 {
                self.passed_bytes -= taken;
            }
            let early = front.fate == Fate::Lost && self.take_lost_early(front.start);
            if !whole {
                self.segments[0].start = una;
                if early {
                    self.rare().lost_early.insert(una);
                }
                break;
            }
            self.segments.pop_front();
            self.next = self.next.saturating_sub(1);
            self.lost_hint.set(self.lost_hint.get().saturating_sub(1));
            self.sacked_hint.set(self.sacked_hint.get().saturating_sub(1));
        }
        acked.newest = Delivery::later(acked.newest, acked.originals.newest);
        // An idle connection owns no list.
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

    /// One SACK block, already clipped to what is outstanding.
    pub fn on_sack(&mut self, block: Range<u64>, news: &mut Sacked) {
        // Nobody receives more separate pieces than were sent: a peer that says so wants to keep us busy.
        if self.sacked_ranges.len() > self.segments.len() {
            return;
        }
        let mut fresh: [Range<u64>; 8] = Default::default();
        let mut count = 0;
        let mut more = Vec::new();
        self.sacked_ranges.insert_with(block, |range| {
            if count < fresh.len() {
                fresh[count] = range;
                count += 1;
            } else {
                more.push(range);
            }
        });
        for range in fresh.into_iter().take(count).chain(more) {
            self.mark_sacked(range, news);
        }
        self.delivered = self.delivered.max(self.una + self.sacked.bytes);
    }

    fn mark_sacked(&mut self, range: Range<u64>, news: &mut Sacked) {
        let mut index = self.index_of(range.start);
        while let Some(segment) = self.segments.get(index) {
            if segment.start >= range.end {
                break;
            }
            self.steps.take(1);
            // A block that covers only part of a segment counts once the rest is covered too.
            let whole = self.sacked_ranges.contains_range(&(segment.start..segment.end));
            if whole && segment.fate != Fate::Sacked {
                let (bytes, end) = (segment.len(), segment.end);
                news.amount.add(bytes, 1);
                news.highest = news.highest.max(Some(end));
                news.newest = Delivery::later(news.newest, Some(segment.delivery()));
                if segment.transmissions == 1 {
                    news.originals.add(segment.delivery());
                    news.oldest_original = news.oldest_original.into_iter().chain([segment.first_sent]).min();
                }
                self.set_fate(index, Fate::Sacked);
            }
            index += 1;
        }
    }

    // ----- what was decided -----

    /// Judges the head of the list lost. False if it was so judged before, is SACKed, or there is none.
    pub(crate) fn mark_head_lost(&mut self) -> bool {
        match self.segments.front() {
            Some(head) if !matches!(head.fate, Fate::Lost | Fate::Sacked) => {
                self.set_fate(0, Fate::Lost);
                true
            }
            _ => false,
        }
    }

    /// Judges the head of the list lost unless it is SACKed. False if it is, or there is none.
    pub(crate) fn mark_head_lost_if_unsacked(&mut self) -> bool {
        let sacked = self.segments.front().is_none_or(|head| head.fate == Fate::Sacked);
        if !sacked {
            self.mark_head_lost();
        }
        !sacked
    }

    /// Judges the segment that starts at `start` lost. False if there is none, or nothing changes.
    pub(crate) fn mark_lost(&mut self, start: u64) -> bool {
        let index = self.index_of(start);
        match self.segments.get(index) {
            Some(s)
                if s.start == start && matches!(s.fate, Fate::InFlight | Fate::Resent | Fate::InDoubt) =>
            {
                self.set_fate(index, Fate::Lost);
                true
            }
            _ => false,
        }
    }

    /// Judges the segments below `edge` lost that are not SACKed and were sent once; returns where the first of them begins, and
    /// how many they are.
    pub(crate) fn mark_lost_below(&mut self, edge: u64) -> Option<(u64, u64)> {
        let mut marked: Option<(u64, u64)> = None;
        let mut index = self.index_of(self.lost_edge.max(self.una));
        while let Some(segment) = self.segments.get(index) {
            if segment.end > edge {
                break;
            }
            self.steps.take(1);
            if segment.fate == Fate::InDoubt {
                // The original is lost after all; the copy is still on its way.
                self.set_fate(index, Fate::Resent);
            } else if segment.fate == Fate::InFlight {
                let start = segment.start;
                self.set_fate(index, Fate::Lost);
                marked = Some(marked.map_or((start, 1), |(first, segments)| (first, segments + 1)));
            }
            index += 1;
        }
        self.lost_edge = self.lost_edge.max(edge);
        marked
    }

    /// Go-back-N: everything the receiver has not reported counts as lost, and SND.NXT returns to SND.UNA.
    pub(crate) fn rewind(&mut self) {
        self.steps.take(self.segments.len());
        self.lost_hint.set(0);
        if let Some(rare) = &mut self.rare {
            rare.lost_early.clear();
        }
        self.sacked_hint.set(0);
        for index in 0..self.segments.len() {
            if self.segments[index].fate != Fate::Sacked {
                self.set_fate(index, Fate::Lost);
            }
        }
        self.lost_edge = self.max;
        self.next = 0;
        self.passed_bytes = 0;
    }

    /// After a rewind: the first segment is on its way already.
    pub(crate) fn skip_head(&mut self) {
        if !self.segments.is_empty() {
            self.set_fate(0, Fate::Resent);
            self.advance_pass(1);
        }
    }

    /// SND.NXT = SND.MAX: what waited to be sent again is taken to be on its way after all.
    pub(crate) fn resume_at_max(&mut self) {
        while let Some((start, copies)) = self.first_lost().map(|lost| (lost.start, lost.transmissions)) {
            let index = self.index_of(start);
            self.set_fate(index, if copies > 1 { Fate::Resent } else { Fate::InFlight });
        }
        self.lost_edge = self.una;
        self.advance_pass(self.segments.len());
    }

    /// Whether a peer that takes back what it has SACKed is worth a pass over the list now: one for each window that leaves,
    /// because a peer may say so with every ACK.
    pub(crate) fn may_forget_sacks(&self) -> bool {
        self.rare.as_ref().is_none_or(|rare| rare.to_leave == 0)
    }

    /// Forgets what was SACKed: the receiver may have reneged (RFC 2018 §8).
    pub(crate) fn forget_sacks(&mut self) {
        self.lost_edge = self.una;
        self.sacked_ranges.clear();
        if self.sacked.segments == 0 {
            return;
        }
        self.steps.take(self.segments.len());
        for index in 0..self.segments.len() {
            if self.segments[index].fate == Fate::Sacked {
                self.set_fate(index, Fate::InFlight);
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
        // Most questions are about the head.
        if self.segments.front().is_none_or(|head| offset < head.end) {
            return 0;
        }
        // Nearly all segments have one size, so look first where it would be then: a search touches cold memory.
        let share = (offset - self.una) as f64 / (self.max - self.una) as f64;
        let guess = (share * self.segments.len() as f64) as usize;
        match self.segments.get(guess) {
            Some(s) if s.start <= offset && offset < s.end => guess,
            _ => self.segments.partition_point(|s| s.end <= offset),
        }
    }

    fn set_fate(&mut self, index: usize, fate: Fate) {
        let old = self.segments[index].fate;
        if old == fate {
            return;
        }
        let bytes = self.segments[index].len();
        self.fate_sum(old, |sum| sum.sub(bytes, 1));
        self.fate_sum(fate, |sum| sum.add(bytes, 1));
        self.segments[index].fate = fate;
        let start = self.segments[index].start;
        let is_early = index < self.lost_hint.get();
        match (old, fate) {
            (_, Fate::Lost) if is_early => drop(self.rare().lost_early.insert(start)),
            (Fate::Lost, _) if is_early => drop(self.take_lost_early(start)),
            _ => {}
        }
        if old == Fate::Sacked {
            self.sacked_hint.set(self.sacked_hint.get().min(index));
        }
    }

    fn fate_sum(&mut self, fate: Fate, change: impl FnOnce(&mut Amount)) {
        match fate {
            Fate::InFlight => {}
            Fate::Lost => change(&mut self.lost),
            Fate::Resent => change(&mut self.resent),
            Fate::InDoubt => change(&mut self.in_doubt),
            Fate::Sacked => change(&mut self.sacked),
        }
    }
}

#[cfg(test)]
mod tests;
