//! State of a direction that is needed only after a loss, reordering, a duplicate ACK or a retransmission.
//! Most connections never need it.

use std::collections::VecDeque;
use std::ops::Range;

use super::compact::{ALLOCATOR_OVERHEAD, heap_of_vec};
use super::congestion::Congestion;
use super::findings::{AckFindings, Arrivals, Retransmissions};
use super::guess::Guess;
use crate::trace::Proof;

/// A retransmission that may still prove to be spurious.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    pub(super) range: Range<u64>,
    pub(super) tsval: Option<u32>,
    pub(super) begins: Begins,
    pub(super) proven: bool,
    /// Index of the segment in the trace.
    pub(super) index: usize,
}

/// The loss recovery that a retransmission starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    Nothing,
    FastRetransmit,
    Timeout,
}

/// Number of retransmissions remembered. Evidence that one was spurious arrives within one or two round
/// trips.
const REMEMBERED: usize = 128;

/// Data that was acknowledged before the capture contained it.
#[derive(Clone, Debug)]
pub(super) struct Unseen {
    pub(super) range: Range<u64>,
    /// The time of the ACK. `echo` is the timestamp that it echoed.
    pub(super) at: i64,
    pub(super) echo: Option<u32>,
}

/// Number of such holes remembered. Packets that fill them follow immediately.
const HOLES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Anomalies {
    pub(super) retransmissions: Retransmissions,
    /// The most recent retransmissions, oldest first.
    pub(super) recent: VecDeque<Retransmission>,
    /// The time when all data outstanding at the last timeout was acknowledged.
    pub(super) timeout_repaired: Option<i64>,
    /// Send time of the newest copy that is known to have arrived (RACK.xmit_ts, RFC 8985 §5.2). It is 0
    /// until the first anomaly; before that, nothing sent earlier is outstanding.
    pub(super) newest_arrived: i64,
    /// For the oldest outstanding copy: its send time, and the time when the first segment sent later was
    /// known to have arrived.
    pub(super) oldest_overtaken: Option<[i64; 2]>,
    pub(super) guess: Guess,
    pub(super) congestion: Congestion,
    pub(super) arrivals: Arrivals,
    /// All counts except `packets`, which is counted for every connection.
    pub(super) acks: AckFindings,
    pub(super) acked_unseen: u64,
    /// The most recent holes, oldest first.
    pub(super) unseen: VecDeque<Unseen>,
    pub(super) zero_windows: u64,
    pub(super) shrunk: u64,
}

impl Anomalies {
    pub(super) fn remember(&mut self, retransmission: Retransmission) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(retransmission);
    }

    /// Records data that was acknowledged but is not in the capture.
    pub(super) fn miss(&mut self, unseen: Unseen) {
        self.acked_unseen += unseen.range.end - unseen.range.start;
        if self.unseen.len() == HOLES {
            self.unseen.pop_front();
        }
        self.unseen.push_back(unseen);
    }

    /// Returns the most recent hole that contains `range`.
    pub(super) fn missed(&self, range: &Range<u64>) -> Option<&Unseen> {
        let holds = |hole: &&Unseen| hole.range.start <= range.start && range.end <= hole.range.end;
        self.unseen.iter().rev().find(holds)
    }

    /// Removes data from the holes that appears in the capture after all.
    pub(super) fn find(&mut self, range: &Range<u64>) {
        let holds = |hole: &Unseen| hole.range.start <= range.start && range.end <= hole.range.end;
        let Some(at) = self.unseen.iter().rposition(holds) else { return };
        let Some(hole) = self.unseen.remove(at) else { return };
        self.acked_unseen -= range.end - range.start;
        for rest in [hole.range.start..range.start, range.end..hole.range.end] {
            if !rest.is_empty() {
                self.unseen.push_back(Unseen { range: rest, ..hole });
            }
        }
    }

    /// Records that `recent[at]` was spurious. Returns its index in the trace, or `None` if this was already
    /// known.
    pub(super) fn prove(&mut self, at: usize, proof: Proof) -> Option<usize> {
        let retransmission = &mut self.recent[at];
        if std::mem::replace(&mut retransmission.proven, true) {
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
        match retransmission.begins {
            Begins::Nothing => {}
            Begins::FastRetransmit => spurious.fast_retransmits += 1,
            Begins::Timeout => spurious.timeouts += 1,
        }
        Some(retransmission.index)
    }

    /// Returns the heap memory in bytes, including this struct.
    pub(super) fn heap(&self) -> usize {
        size_of::<Self>()
            + ALLOCATOR_OVERHEAD
            + heap_of_vec::<Retransmission>(self.recent.capacity())
            + heap_of_vec::<Unseen>(self.unseen.capacity())
            + self.congestion.heap()
    }
}
