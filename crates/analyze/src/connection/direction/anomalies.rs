//! State of a direction that is needed only after a loss, reordering, a duplicate ACK or a retransmission.
//! Most connections never need it.

use std::collections::VecDeque;
use std::ops::Range;

use super::congestion::Congestion;
use super::recovery::RecoveryStart;
use super::sender::SenderEvidence;
use crate::compact::{ALLOCATOR_OVERHEAD, heap_of_vec};
use crate::connection::findings::{AckFindings, Arrivals, Retransmissions};
use crate::trace::Proof;

/// A retransmission that may still prove to be spurious.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    pub(super) range: Range<u64>,
    pub(super) tsval: Option<u32>,
    pub(super) starts: Option<RecoveryStart>,
    pub(super) is_spurious: bool,
    /// Index of the segment in the trace.
    pub(super) index: usize,
}

/// Number of retransmissions remembered. Evidence that one was spurious arrives within one or two round
/// trips.
const REMEMBERED: usize = 128;

/// Data that was acknowledged before the capture contained it.
#[derive(Clone, Debug)]
pub(super) struct Uncaptured {
    pub(super) range: Range<u64>,
    /// The time of the ACK. `echo` is the timestamp that it echoed.
    pub(super) at: i64,
    pub(super) echo: Option<u32>,
}

impl Uncaptured {
    fn contains(&self, range: &Range<u64>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }
}

/// Number of such holes remembered. Packets that fill them follow immediately.
const HOLES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Anomalies {
    pub(super) retransmissions: Retransmissions,
    /// The most recent retransmissions, oldest first.
    pub(super) recent: VecDeque<Retransmission>,
    /// The time when all data outstanding at the last timeout was acknowledged.
    pub(super) timeout_recovered: Option<i64>,
    /// Send time of the newest copy that is known to have arrived (RACK.xmit_ts, RFC 8985 §5.2). It is 0
    /// until the first anomaly; before that, nothing sent earlier is outstanding.
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
    /// The most recent holes, oldest first.
    pub(super) uncaptured: VecDeque<Uncaptured>,
    pub(super) zero_windows: u64,
    pub(super) shrunk: u64,
}

impl Anomalies {
    /// Adds a retransmission to `recent`, and returns its index.
    pub(super) fn remember(&mut self, retransmission: Retransmission) -> usize {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(retransmission);
        self.recent.len() - 1
    }

    /// Records data that was acknowledged but is not in the capture.
    pub(super) fn add_uncaptured(&mut self, missing: Uncaptured) {
        self.acked_uncaptured += missing.range.end - missing.range.start;
        if self.uncaptured.len() == HOLES {
            self.uncaptured.pop_front();
        }
        self.uncaptured.push_back(missing);
    }

    /// Returns the most recent hole that contains `range`.
    pub(super) fn uncaptured_covering(&self, range: &Range<u64>) -> Option<&Uncaptured> {
        self.uncaptured.iter().rfind(|hole| hole.contains(range))
    }

    /// Removes data from the holes that appears in the capture after all.
    pub(super) fn remove_captured(&mut self, range: &Range<u64>) {
        let Some(index) = self.uncaptured.iter().rposition(|hole| hole.contains(range)) else { return };
        let Some(hole) = self.uncaptured.remove(index) else { return };
        self.acked_uncaptured -= range.end - range.start;
        for rest in [hole.range.start..range.start, range.end..hole.range.end] {
            if !rest.is_empty() {
                self.uncaptured.push_back(Uncaptured { range: rest, ..hole });
            }
        }
    }

    /// Records that `recent[index]` was spurious. Returns its index in the trace, or `None` if this was
    /// already known.
    pub(super) fn mark_spurious(&mut self, index: usize, proof: Proof) -> Option<usize> {
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
            Some(RecoveryStart::Timeout) => spurious.timeouts += 1,
        }
        Some(retransmission.index)
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
