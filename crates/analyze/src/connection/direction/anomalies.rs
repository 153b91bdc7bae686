//! State of a direction that is needed only after a loss, reordering, a duplicate ACK or a retransmission.
//! Most connections never need it.

use std::collections::VecDeque;
use std::ops::Range;

use super::congestion::Congestion;
use super::outages::Outages;
use super::recovery::RecoveryStart;
use super::sender::SenderEvidence;
use crate::compact::{ALLOCATOR_OVERHEAD, CompactOption, heap_of_vec};
use crate::connection::clock_order::AfterResponse;
use crate::connection::findings::{AckFindings, Arrivals, Retransmissions};
use crate::trace::Proof;

/// A retransmission that may still prove to be spurious.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    pub(super) range: Range<u64>,
    pub(super) tsval: Option<u32>,
    pub(super) starts: Option<RecoveryStart>,
    pub(super) is_spurious: bool,
    /// Whether the retransmission repairs the loss of a segment that was sent after the second-to-last
    /// timeout.
    pub(super) is_repair: bool,
    /// Index of the segment in the trace.
    pub(super) index: usize,
}

/// Number of retransmissions remembered. Evidence that one was spurious arrives within one or two round
/// trips.
const REMEMBERED: usize = 128;

/// Evidence about timeouts whose first retransmission was spurious according to D-SACK. Such a timeout was not
/// spurious if the ACK for the earlier copy and all other segments were lost: without the timeout, no ACK would
/// have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeoutProofs {
    /// Number of timeouts whose first retransmission was spurious. Whether other segments were lost is still
    /// unknown.
    proven: u16,
    /// Whether a segment was lost that was outstanding at the last timeout.
    has_lost: bool,
    /// The pass before the last timeout, or before the first of several timeouts without progress. A loss of
    /// segments from earlier passes led to an earlier timeout.
    pub(super) pass: u32,
}

/// Data that was acknowledged before the capture contained it.
#[derive(Clone, Debug)]
pub(super) struct Uncaptured {
    pub(super) range: Range<u64>,
    /// The time of the ACK. `echo` is the timestamp that it echoed.
    pub(super) at: i64,
    pub(super) echo: Option<u32>,
    /// The end of the part that this ACK covers. Later ACKs cover the rest, and `echo` is from the last of
    /// them.
    pub(super) first_end: u64,
}

/// The holes that contain the data of a packet.
pub(super) struct MissedPacket {
    /// The end of the missing data.
    pub(super) end: u64,
    /// The time of the ACK that covers the packet, and the timestamp that it echoed. If holes were merged,
    /// an earlier ACK determines the time.
    pub(super) at: i64,
    pub(super) is_exact: bool,
    pub(super) echo: Option<u32>,
}

/// Maximum number of remembered holes ([`Uncaptured`]). Packets that fill a hole usually follow immediately.
/// If the directions have different clocks, they may follow after a round trip. Each ACK yields a hole.
const HOLES: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Anomalies {
    pub(super) retransmissions: Retransmissions,
    /// The most recent retransmissions, oldest first.
    pub(super) recent: VecDeque<Retransmission>,
    /// The time when all data outstanding at the last timeout was acknowledged.
    pub(super) timeout_recovered: CompactOption,
    pub(super) timeout_proofs: TimeoutProofs,
    /// Send time of the newest copy that is known to have arrived (RACK.xmit_ts, RFC 8985 §5.2). It is 0
    /// until the first anomaly: without anomalies, no data that was sent earlier than an arrived copy is
    /// outstanding.
    pub(super) newest_arrived: i64,
    /// For the oldest outstanding copy: its send time, and the time when the first segment sent later was
    /// known to have arrived.
    pub(super) oldest_overtaken: Option<[i64; 2]>,
    pub(super) sender: SenderEvidence,
    pub(super) congestion: Congestion,
    pub(super) arrivals: Arrivals,
    /// All counts except `packets`, which is counted for every connection.
    pub(super) acks: AckFindings,
    pub(super) acked_uncaptured: u64,
    /// Packets that are later in the capture than their ACKs.
    pub(super) after_ack: AfterResponse,
    /// The most recent holes, oldest first.
    pub(super) uncaptured: VecDeque<Uncaptured>,
    pub(super) outages: Outages,
    pub(super) zero_windows: u64,
    pub(super) shrunk: u64,
}

impl Anomalies {
    /// Returns the state with the counts from `at` on.
    pub(super) fn continued(&self, at: i64) -> Self {
        Self {
            recent: self.recent.clone(),
            timeout_recovered: self.timeout_recovered,
            timeout_proofs: self.timeout_proofs.clone(),
            newest_arrived: self.newest_arrived,
            oldest_overtaken: self.oldest_overtaken,
            after_ack: self.after_ack,
            uncaptured: self.uncaptured.clone(),
            outages: self.outages.continued(at),
            ..Self::default()
        }
    }

    /// Adds a retransmission to `recent`, and returns its index.
    pub(super) fn remember(&mut self, retransmission: Retransmission) -> usize {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(retransmission);
        self.recent.len() - 1
    }

    /// Returns whether one of the last retransmissions contains `range`.
    pub(super) fn has_resent(&self, range: &Range<u64>) -> bool {
        const LAST: usize = 32;
        let mut last = self.recent.iter().rev().take(LAST);
        last.any(|copy| copy.range.start <= range.start && range.end <= copy.range.end)
    }

    /// Records data that was acknowledged but is not in the capture. If there are too many holes, or if
    /// `merge` is set, adjacent holes are merged.
    pub(super) fn add_uncaptured(&mut self, missing: Uncaptured, merge: bool) {
        self.acked_uncaptured += missing.range.end - missing.range.start;
        let is_full = self.uncaptured.len() >= HOLES;
        if merge || is_full {
            let last = self.uncaptured.back_mut();
            if let Some(last) = last.filter(|last| last.range.end == missing.range.start) {
                (last.range.end, last.echo) = (missing.range.end, missing.echo);
                return;
            }
        }
        if is_full {
            self.uncaptured.pop_front();
        }
        self.uncaptured.push_back(missing);
    }

    /// Returns the indices of the adjacent holes that contain `range`.
    fn holes_with(&self, range: &Range<u64>) -> Option<Range<usize>> {
        let first = self.uncaptured.iter().position(|hole| hole.range.contains(&range.start))?;
        let (mut last, mut end) = (first, self.uncaptured[first].range.end);
        while end < range.end {
            last += 1;
            let next = self.uncaptured.get(last).filter(|hole| hole.range.start == end)?;
            end = next.range.end;
        }
        Some(first..last + 1)
    }

    /// Describes the holes that contain `range`.
    pub(super) fn uncaptured_covering(&self, range: &Range<u64>) -> Option<MissedPacket> {
        let holes = self.holes_with(range)?;
        let last = &self.uncaptured[holes.end - 1];
        let mut end = last.range.end;
        for next in self.uncaptured.range(holes.end..) {
            if next.range.start == end {
                end = next.range.end;
            }
        }
        Some(MissedPacket { end, at: last.at, is_exact: range.end <= last.first_end, echo: last.echo })
    }

    /// Removes data from the holes that appears in the capture after all.
    pub(super) fn remove_captured(&mut self, range: &Range<u64>) {
        let Some(holes) = self.holes_with(range).filter(|_| !range.is_empty()) else { return };
        self.acked_uncaptured -= range.end - range.start;
        let (first, last) = (self.uncaptured[holes.start].clone(), self.uncaptured[holes.end - 1].clone());
        let before = Uncaptured { range: first.range.start..range.start, ..first };
        let after = Uncaptured { range: range.end..last.range.end, ..last };
        let at = holes.start;
        self.uncaptured.drain(holes);
        for rest in [after, before].into_iter().filter(|rest| !rest.range.is_empty()) {
            self.uncaptured.insert(at, rest);
        }
    }

    /// Records that `recent[index]` was spurious. Returns its index in the trace, or `None` if this was
    /// already known. `is_recovering` means that data from before the last timeout is still outstanding.
    pub(super) fn mark_spurious(&mut self, index: usize, proof: Proof, is_recovering: bool) -> Option<usize> {
        let retransmission = &mut self.recent[index];
        if std::mem::replace(&mut retransmission.is_spurious, true) {
            return None;
        }
        let spurious = &mut self.retransmissions.spurious;
        spurious.packets += 1;
        match proof {
            Proof::Timestamp => spurious.by_timestamp += 1,
            Proof::Dsack => spurious.by_dsack += 1,
            Proof::Acked => spurious.by_ack += 1,
            Proof::Arrival => {}
        }
        match retransmission.starts {
            None => {}
            Some(RecoveryStart::FastRetransmit) => spurious.fast_retransmits += 1,
            // A D-SACK may be the response to the retransmission. The other proofs are responses to an earlier
            // copy, which would have arrived without the timeout.
            Some(RecoveryStart::Timeout) if proof != Proof::Dsack => spurious.timeouts += 1,
            Some(RecoveryStart::Timeout) if is_recovering => self.timeout_proofs.proven += 1,
            Some(RecoveryStart::Timeout) => spurious.timeouts += u64::from(!self.timeout_proofs.has_lost),
        }
        Some(retransmission.index)
    }

    /// Records that all data outstanding at the last timeout was acknowledged.
    pub(super) fn timeout_recovery_ended(&mut self) {
        let proven = std::mem::take(&mut self.timeout_proofs.proven);
        if !self.timeout_proofs.has_lost {
            self.retransmissions.spurious.timeouts += u64::from(proven);
        }
    }

    /// Records a timeout in this pass, which retransmits from the offset `start`.
    pub(super) fn timeout(&mut self, start: u64, pass: u32) {
        let is_timeout = |copy: &&Retransmission| copy.starts == Some(RecoveryStart::Timeout);
        let last = self.recent.iter().rfind(is_timeout);
        if last.is_none_or(|last| last.range.start != start) {
            self.timeout_recovery_ended();
            self.timeout_proofs = TimeoutProofs { pass, ..TimeoutProofs::default() };
        }
    }

    /// Records that a retransmission of `range` after a timeout has arrived before the original.
    pub(super) fn repaired_after_timeout(&mut self, range: &Range<u64>) {
        // The first retransmission after a timeout may still prove to be spurious.
        let is_first = |copy: &Retransmission| copy.starts == Some(RecoveryStart::Timeout);
        let overlaps = |copy: &&Retransmission| copy.range.start < range.end && range.start < copy.range.end;
        let copies = || self.recent.iter().filter(overlaps);
        let is_loss =
            copies().any(|copy| copy.is_repair) && !copies().any(|copy| copy.is_spurious || is_first(copy));
        self.timeout_proofs.has_lost |= is_loss;
    }

    /// Returns the heap memory in bytes, including this struct.
    pub(super) fn heap(&self) -> usize {
        size_of::<Self>()
            + ALLOCATOR_OVERHEAD
            + heap_of_vec::<Retransmission>(self.recent.capacity())
            + heap_of_vec::<Uncaptured>(self.uncaptured.capacity())
            + self.congestion.heap()
    }
}
