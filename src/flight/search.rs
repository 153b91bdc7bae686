//! Searches on the list that do not visit the same segments again with each ACK. Otherwise the peer, which
//! decides what is SACKed, could make each ACK as expensive as it likes.

use std::cell::Cell;
use std::collections::BTreeSet;

use super::{Flight, SegmentState, Sent};

/// A cached index that searches advance.
#[derive(Clone, Debug, Default)]
pub(super) struct Hint(Cell<u32>);

impl Hint {
    pub(super) fn get(&self) -> usize {
        self.0.get() as usize
    }

    pub(super) fn set(&self, index: usize) {
        self.0.set(u32::try_from(index).unwrap_or(0));
    }
}

/// State that few lists need.
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    /// Start offsets of segments that were marked lost below `lost_hint`. They keep searches from visiting
    /// the same segments again.
    pub(super) lost_early: BTreeSet<u64>,
    /// Number of segments to send before a reneging peer may clear the scoreboard again.
    pub(super) to_leave: usize,
}

/// Counts how many segments searches visit. Only tests of the cost of an ACK use it.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    #[cfg(test)]
    count: Cell<u64>,
}

impl Steps {
    #[inline(always)]
    pub(super) fn take(&self, _steps: usize) {
        #[cfg(test)]
        self.count.set(self.count.get() + _steps as u64);
    }
}

impl Flight {
    /// Returns the first segment that waits in the current pass and is not SACKed.
    pub fn next_in_pass(&self) -> Option<&Sent> {
        let from = self.next.max(self.sacked_hint.get()).min(self.segments.len());
        let waiting = self.segments.range(from..).inspect(|_| self.steps.take(1));
        let skipped = waiting.take_while(|s| s.state == SegmentState::Sacked).count();
        self.sacked_hint.set(from + skipped);
        self.segments.get(from + skipped)
    }

    /// Returns the first segment that waits in the current pass, SACKed or not.
    pub fn head_of_pass(&self) -> Option<&Sent> {
        self.segments.get(self.next)
    }

    /// Returns the first segment that is marked lost and not yet retransmitted.
    // Called for every ACK and every transmission, and usually there is none.
    #[inline]
    pub fn first_lost(&self) -> Option<&Sent> {
        if self.lost.segments == 0 { None } else { self.look_for_lost() }
    }

    fn look_for_lost(&self) -> Option<&Sent> {
        if let Some(start) = self.rare.as_ref().and_then(|rare| rare.lost_early.first()) {
            return self.segments.get(self.index_of(*start));
        }
        let from = self.lost_hint.get();
        let found = from
            + self
                .segments
                .range(from..)
                .inspect(|_| self.steps.take(1))
                .position(|s| s.state == SegmentState::Lost)?;
        self.lost_hint.set(found);
        self.segments.get(found)
    }

    /// Returns the first segment that is marked lost, whether retransmitted or not.
    pub fn first_lost_or_resent(&self) -> Option<&Sent> {
        let any = self.lost.segments + self.resent.segments > 0;
        let mut segments = self.segments.iter().filter(|_| any).inspect(|_| self.steps.take(1));
        segments.find(|s| matches!(s.state, SegmentState::Lost | SegmentState::Resent))
    }

    /// Returns the first segment at or above `from` that is neither SACKed nor retransmitted.
    pub fn first_unsacked_from(&self, from: u64) -> Option<&Sent> {
        let mut at = from.max(self.una);
        loop {
            // Skip SACKed data by whole ranges.
            at = self.sacked_ranges.containing(at).map_or(at, |range| range.end);
            let segment = self.segments.get(self.index_of(at))?;
            self.steps.take(1);
            if matches!(segment.state, SegmentState::InFlight | SegmentState::Lost) {
                return Some(segment);
            }
            at = segment.end;
        }
    }

    /// Returns the last segment that is not SACKed, marked lost or retransmitted.
    pub fn last_in_flight(&self) -> Option<&Sent> {
        let known = self.sacked.segments + self.lost().segments + self.in_doubt.segments;
        let mut index = if known < self.segments.len() as u64 { self.segments.len() } else { 0 };
        while let Some(segment) = index.checked_sub(1).and_then(|at| self.segments.get(at)) {
            self.steps.take(1);
            // Skip SACKed data by whole ranges. The first segment of a range may be covered only partly.
            let range = self.sacked_ranges.containing(segment.start).filter(|range| segment.end <= range.end);
            index = match range {
                Some(range) if range.start < segment.start => (self.index_of(range.start) + 1).min(index - 1),
                None if segment.state == SegmentState::InFlight => return Some(segment),
                _ => index - 1,
            };
        }
        None
    }

    /// Returns the first segment at or above `from` that is not SACKed, whether retransmitted or not.
    pub fn first_hole_from(&self, from: u64) -> Option<&Sent> {
        let index = self.index_of(from).min(self.segments.len());
        self.segments.range(index..).find(|s| s.state != SegmentState::Sacked)
    }

    /// Returns the offset below which IsLost() (RFC 6675) holds for all data that is not SACKed: above it are
    /// `dup_thresh` discontiguous SACKed ranges, or more than `dup_thresh - 1` full segments.
    pub fn is_lost_edge(&self, dup_thresh: u32, smss: u64) -> u64 {
        let need = u64::from(dup_thresh.saturating_sub(1)) * smss;
        let (mut bytes, mut ranges) = (0, 0);
        for range in self.sacked_ranges.iter().rev() {
            self.steps.take(1);
            bytes += range.end - range.start;
            ranges += 1;
            if bytes > need || ranges >= dup_thresh {
                return range.start;
            }
        }
        self.una
    }

    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.steps.count.get()
    }

    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(super) fn take_lost_early(&mut self, start: u64) -> bool {
        self.rare.as_mut().is_some_and(|rare| rare.lost_early.remove(&start))
    }

    #[inline]
    pub(super) fn note_departure(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.to_leave = rare.to_leave.saturating_sub(1);
        }
    }
}
