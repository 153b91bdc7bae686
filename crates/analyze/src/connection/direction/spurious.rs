//! Detects spurious retransmissions.

use std::ops::Range;

use super::DirectionAnalysis;
use super::flight::Segment;
use crate::trace::{Fate, Proof};

impl DirectionAnalysis {
    /// Records that the retransmission `anomalies.recent[index]` was spurious.
    pub(super) fn mark_spurious(&mut self, index: usize, proof: Proof) {
        let is_recovering = self.recovery.after_timeout().is_some_and(|recover| self.una() < recover);
        let anomalies = self.anomalies.get_or_default();
        let Some(segment) = anomalies.mark_spurious(index, proof, is_recovering) else { return };
        if let Some(segment) = self.trace.as_mut().and_then(|trace| trace.segments.get_mut(segment)) {
            segment.fate = Fate::Spurious { proof };
        }
    }

    /// Processes a D-SACK (RFC 2883): the last retransmission of this data, if there was one, was spurious.
    pub(super) fn process_dsack(&mut self, block: &Range<u64>) {
        let Some(anomalies) = self.anomalies.get() else { return };
        let mut recent = anomalies.recent.iter();
        if let Some(last) = recent.rposition(|copy| !copy.is_spurious && overlap(&copy.range, block)) {
            self.mark_spurious(last, Proof::Dsack);
        }
    }

    /// Applies the Eifel detection (RFC 3522 §3.2). The ACK echoes the timestamp of the *first* segment that it
    /// acknowledges (RFC 7323 §4.3). If this timestamp is older than a retransmission of that segment, the
    /// retransmission was spurious. The ACK does not prove anything about later segments.
    pub(super) fn compare_timestamps(&mut self, first: &Segment, echo: u32) {
        if first.times < 2 || is_older(echo, first.first_tsval) {
            return;
        }
        let Some(anomalies) = self.anomalies.get() else { return };
        let first = first.start..first.end;
        let recent = anomalies.recent.iter().enumerate();
        let spurious = recent.filter(|(_, copy)| {
            overlap(&copy.range, &first) && copy.tsval.is_some_and(|tsval| is_older(echo, tsval))
        });
        for index in spurious.map(|(index, _)| index).collect::<Vec<_>>() {
            self.mark_spurious(index, Proof::Timestamp);
        }
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn is_older(tsval: u32, than: u32) -> bool {
    (tsval.wrapping_sub(than) as i32) < 0
}
