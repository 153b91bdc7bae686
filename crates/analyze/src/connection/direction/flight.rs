//! The data that one end has sent and the other has not acknowledged, according to the capture.

use std::collections::VecDeque;
use std::ops::Range;

use airtcp::ranges::RangeSet;

use crate::compact::{ALLOCATOR_OVERHEAD, CompactOption, heap_of_vec};

/// Maximum number of segments remembered. It exceeds any realistic flight, and bounds the memory for captures
/// without ACKs.
const MAX_SEGMENTS: usize = 1 << 16;
/// The same limit before the first ACK, when few segments are needed.
const MAX_UNACKNOWLEDGED: usize = 1 << 10;

/// Initial capacity. Most connections do not have more segments in flight.
const INITIAL_CAPACITY: usize = 3;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) first_at: i64,
    pub(super) last_at: i64,
    pub(super) first_tsval: u32,
    pub(super) last_tsval: u32,
    /// Number of transmissions in the capture.
    pub(super) times: u32,
    /// The pass of the segment's last transmission. Every timeout starts a new pass.
    pub(super) pass: u32,
    /// IP identification of the last transmission.
    pub(super) ip_id: Option<u16>,
    pub(super) sacked: bool,
    /// Whether the segment was sent into a closed window, so that the receiver was free to drop it.
    pub(super) probe: bool,
}

/// The segments in flight, disjoint and sorted. Holes between segments are data that the capture does not
/// contain.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    segments: VecDeque<Segment>,
    /// `None` if no data is SACKed.
    sacked: Option<Box<Sacked>>,
    /// One past the last byte sent in the current pass. After a timeout it is below `max`.
    pub(super) pass_next: u64,
    pub(super) pass: u32,
    una: CompactOption,
    /// One past the highest byte that was sent or acknowledged.
    pub(super) max: u64,
}

#[derive(Clone, Debug, Default)]
struct Sacked {
    ranges: RangeSet,
    bytes: u64,
}

impl Flight {
    pub(super) fn begin(&mut self, at: u64) {
        (self.max, self.pass_next) = (at, at);
    }

    pub(super) fn is_outstanding(&self) -> bool {
        self.una().is_none_or(|una| una < self.max) && !self.segments.is_empty()
    }

    /// Returns SND.UNA. At the first ACK of the capture, `ack`, it is the lowest captured byte.
    pub(super) fn initialize_una(&mut self, ack: u64) -> u64 {
        let first = self.segments.front().map_or(self.max, |segment| segment.start);
        let una = self.una().unwrap_or_else(|| first.min(ack));
        self.una = CompactOption::offset(una);
        una
    }

    /// Returns SND.UNA, or `None` before the first ACK of the capture.
    pub(super) fn una(&self) -> Option<u64> {
        self.una.as_offset()
    }

    /// Returns the segments that overlap `range`.
    pub(super) fn overlapping(&mut self, range: &Range<u64>) -> impl Iterator<Item = &mut Segment> {
        let (first, end) = (self.first_beyond(range.start), range.end);
        self.segments.range_mut(first..).take_while(move |segment| segment.start < end)
    }

    pub(super) fn first_overlapping(&self, range: &Range<u64>) -> Option<Segment> {
        let first = self.first_beyond(range.start);
        self.segments.get(first).filter(|segment| segment.start < range.end).copied()
    }

    /// Returns the index of the first segment that ends after `start`. Most packets are new and lie after all
    /// segments.
    fn first_beyond(&self, start: u64) -> usize {
        match self.segments.back() {
            Some(last) if last.end > start => self.segments.partition_point(|segment| segment.end <= start),
            _ => self.segments.len(),
        }
    }

    /// Returns the lowest relevant byte.
    pub(super) fn lowest(&self) -> u64 {
        self.una().or_else(|| Some(self.segments.front()?.start)).unwrap_or(0)
    }

    /// Records that everything below `end` has been sent.
    pub(super) fn reach(&mut self, end: u64) {
        self.max = self.max.max(end);
        self.pass_next = self.pass_next.max(end);
    }

    pub(super) fn oldest(&self) -> Option<&Segment> {
        self.segments.front()
    }

    pub(super) fn newest(&self) -> Option<&Segment> {
        self.segments.back()
    }

    /// Adds the parts of `segment` that are not present yet.
    pub(super) fn insert(&mut self, segment: Segment) {
        self.max = self.max.max(segment.end);
        self.pass_next = self.pass_next.max(segment.end);
        if self.segments.capacity() == 0 {
            self.segments.reserve_exact(INITIAL_CAPACITY);
        }
        if self.segments.back().is_none_or(|last| last.end <= segment.start) {
            self.segments.push_back(segment);
        } else {
            let mut start = segment.start;
            while start < segment.end {
                let at = self.segments.partition_point(|other| other.end <= start);
                let next = self.segments.get(at).map_or(u64::MAX, |other| other.start);
                if start < next {
                    self.segments.insert(at, Segment { start, end: segment.end.min(next), ..segment });
                }
                start = self.segments.get(at).map_or(u64::MAX, |other| other.end).max(start + 1);
            }
        }
        let max = if self.una().is_some() { MAX_SEGMENTS } else { MAX_UNACKNOWLEDGED };
        while self.segments.len() > max {
            self.segments.pop_front();
        }
    }

    /// Starts a new pass at `to` after a timeout.
    pub(super) fn rewind(&mut self, to: u64) {
        self.pass += 1;
        self.pass_next = to;
    }

    /// Records that everything below `ack` has arrived. Calls `acknowledged` with each segment that is completely
    /// below `ack`. Returns the part of another segment that is below `ack`.
    pub(super) fn acknowledge(&mut self, ack: u64, mut acknowledged: impl FnMut(&Segment)) -> Range<u64> {
        let mut part = ack..ack;
        self.una = CompactOption::offset(ack);
        self.max = self.max.max(ack);
        self.pass_next = self.pass_next.max(ack);
        while let Some(front) = self.segments.front_mut() {
            if front.end <= ack {
                acknowledged(front);
                self.segments.pop_front();
            } else {
                part.start = front.start.min(ack);
                front.start = front.start.max(ack);
                break;
            }
        }
        if let Some(Sacked { ranges, bytes }) = self.sacked.as_deref_mut() {
            while let Some(first) = ranges.first().filter(|range| range.start < ack).cloned() {
                *bytes -= first.end.min(ack) - first.start;
                ranges.remove_below(first.end.min(ack));
            }
        }
        self.sacked.take_if(|sacked| sacked.ranges.is_empty());
        // Free the memory of idle connections.
        if self.segments.is_empty() && self.segments.capacity() > 0 {
            self.segments = VecDeque::new();
        }
        part
    }

    /// Records a SACK block. Calls `arrived` with each segment that is SACKed for the first time. Returns
    /// whether the block contains new information.
    pub(super) fn sack(&mut self, block: Range<u64>, mut arrived: impl FnMut(&Segment)) -> bool {
        let (segments, mut fresh_bytes) = (&mut self.segments, 0);
        let outer = block.clone();
        let sacked = self.sacked.get_or_insert_default();
        sacked.ranges.insert_with(block, |fresh| {
            fresh_bytes += fresh.end - fresh.start;
            let first = segments.partition_point(|segment| segment.end <= fresh.start);
            for segment in segments.range_mut(first..).take_while(|segment| segment.start < fresh.end) {
                if !segment.sacked && outer.start <= segment.start && segment.end <= outer.end {
                    segment.sacked = true;
                    arrived(segment);
                }
            }
        });
        sacked.bytes += fresh_bytes;
        fresh_bytes > 0
    }

    /// Returns whether any data above `offset` is SACKed.
    pub(super) fn sacked_above(&self, offset: u64) -> bool {
        let last = self.sacked.as_ref().and_then(|sacked| sacked.ranges.last());
        last.is_some_and(|range| range.end > offset)
    }

    /// Returns one past the highest SACKed byte, or 0.
    pub(super) fn sacked_end(&self) -> u64 {
        self.sacked.as_ref().and_then(|sacked| sacked.ranges.last()).map_or(0, |range| range.end)
    }

    pub(super) fn has_sacked(&self, range: &Range<u64>) -> bool {
        self.sacked.as_ref().is_some_and(|sacked| sacked.ranges.contains_range(range))
    }

    pub(super) fn sacked_bytes(&self) -> u64 {
        self.sacked.as_ref().map_or(0, |sacked| sacked.bytes)
    }

    pub(super) fn has_any_sacked(&self) -> bool {
        self.sacked.is_some()
    }

    /// Returns the number of segments outstanding in the current pass, including SACKed segments.
    pub(super) fn outstanding_segments(&self) -> u32 {
        if self.pass_next >= self.max {
            return self.segments.len() as u32;
        }
        self.segments.partition_point(|segment| segment.start < self.pass_next) as u32
    }

    /// Returns the bytes that may still be in flight: the data outstanding in this pass, minus the SACKed
    /// data, or without SACK, minus one segment per duplicate ACK.
    pub(super) fn bytes(&self, dupacks: u32, segment: u32) -> u64 {
        let Some(una) = self.una().or_else(|| Some(self.segments.front()?.start)) else { return 0 };
        let outstanding = self.pass_next.saturating_sub(una);
        let arrived = match &self.sacked {
            None => u64::from(dupacks) * u64::from(segment),
            Some(sacked) if self.pass_next >= self.max => sacked.bytes,
            Some(sacked) => {
                let below = sacked.ranges.iter().take_while(|range| range.start < self.pass_next);
                below.map(|range| range.end.min(self.pass_next) - range.start).sum()
            }
        };
        outstanding.saturating_sub(arrived)
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap(&self) -> usize {
        let sacked = self.sacked.as_ref().map_or(0, |sacked| {
            size_of::<Sacked>() + ALLOCATOR_OVERHEAD + heap_of_vec::<Range<u64>>(sacked.ranges.len())
        });
        heap_of_vec::<Segment>(self.segments.capacity()) + sacked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: u64, end: u64) -> Segment {
        Segment {
            start,
            end,
            first_at: 0,
            last_at: 0,
            first_tsval: 0,
            last_tsval: 0,
            times: 1,
            pass: 0,
            ip_id: None,
            sacked: false,
            probe: false,
        }
    }

    fn flight(segments: &[(u64, u64)]) -> Flight {
        let mut flight = Flight::default();
        for (start, end) in segments {
            flight.insert(segment(*start, *end));
        }
        flight
    }

    fn ranges(flight: &Flight) -> Vec<(u64, u64)> {
        flight.segments.iter().map(|segment| (segment.start, segment.end)).collect()
    }

    #[test]
    fn late_segment_fills_only_holes() {
        let mut flight = flight(&[(1, 11), (21, 31), (41, 51)]);
        flight.insert(segment(5, 60));
        assert_eq!(ranges(&flight), [(1, 11), (11, 21), (21, 31), (31, 41), (41, 51), (51, 60)]);
        assert_eq!(flight.max, 60);
    }

    #[test]
    fn sacked_bytes_do_not_count_as_flight() {
        let mut flight = flight(&[(1, 11), (11, 21), (21, 31), (31, 41)]);
        flight.una = CompactOption::offset(1);
        assert!(flight.sack(21..31, |_| {}) && !flight.sack(21..31, |_| {}) && flight.sack(21..36, |_| {}));
        assert_eq!((flight.bytes(9, 10), flight.outstanding_segments()), (25, 4));
        assert_eq!(
            flight.segments.iter().filter(|segment| segment.sacked).count(),
            1,
            "only complete segments"
        );
        flight.acknowledge(33, |_| ());
        assert_eq!((flight.bytes(0, 10), ranges(&flight)), (5, vec![(33, 41)]));
        flight.acknowledge(41, |_| ());
        assert_eq!((flight.bytes(0, 10), flight.is_outstanding()), (0, false));
    }

    #[test]
    fn flight_after_rewind_counts_only_new_pass() {
        let mut flight = flight(&[(1, 11), (11, 21), (21, 31)]);
        flight.una = CompactOption::offset(1);
        flight.rewind(1);
        assert_eq!((flight.bytes(0, 10), flight.outstanding_segments()), (0, 0));
        flight.pass_next = 11;
        assert_eq!((flight.bytes(0, 10), flight.outstanding_segments()), (10, 1));
        flight.acknowledge(31, |_| ());
        assert_eq!((flight.pass_next, flight.bytes(0, 10)), (31, 0));
    }

    #[test]
    fn memory_is_bounded_without_acks() {
        let mut flight = Flight::default();
        for at in 0..100_000 {
            flight.insert(segment(at * 10, at * 10 + 10));
        }
        assert_eq!(flight.segments.len(), MAX_UNACKNOWLEDGED);
    }
}
