//! What is remembered of a direction once something was lost, overtaken, acknowledged twice or sent again. Most
//! connections have none of it.

use std::collections::VecDeque;
use std::ops::Range;

use super::compact::{ALLOCATOR_OVERHEAD, heap_of_vec};
use super::congestion::Congestion;
use super::findings::{AckFindings, Arrivals, Retransmissions};
use super::guess::Guess;
use crate::trace::Proof;

/// A retransmission that may yet turn out to be a mistake.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    pub(super) range: Range<u64>,
    pub(super) tsval: Option<u32>,
    pub(super) begins: Begins,
    pub(super) proven: bool,
    /// Its index in the trace.
    pub(super) index: usize,
}

/// The loss recovery that a retransmission is the first of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    Nothing,
    FastRetransmit,
    Timeout,
}

/// Retransmissions that are kept in mind: the proof that one was a mistake comes within a round trip or two.
const REMEMBERED: usize = 128;

/// Octets that were acknowledged before the capture had them.
#[derive(Clone, Debug)]
pub(super) struct Unseen {
    pub(super) range: Range<u64>,
    /// When, and which timestamp the ACK echoed.
    pub(super) at: i64,
    pub(super) echo: Option<u32>,
}

/// Such holes that are kept in mind: what fills one comes at once.
const HOLES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Anomalies {
    pub(super) retransmissions: Retransmissions,
    /// The last retransmissions, the newest at the end.
    pub(super) recent: VecDeque<Retransmission>,
    /// When everything that had been outstanding at the last timeout was acknowledged.
    pub(super) timeout_repaired: Option<i64>,
    /// When the newest copy left that is known to have arrived (RACK.xmit_ts of RFC 8985 §5.2). It is 0 until the
    /// first anomaly: up to then nothing that left earlier is outstanding.
    pub(super) newest_arrived: i64,
    /// Of the oldest copy outstanding: when it left, and when something was first known to have arrived that left later.
    pub(super) oldest_overtaken: Option<[i64; 2]>,
    pub(super) guess: Guess,
    pub(super) congestion: Congestion,
    pub(super) arrivals: Arrivals,
    /// All but `packets`, which is counted for every connection.
    pub(super) acks: AckFindings,
    pub(super) acked_unseen: u64,
    /// The last of them, the newest at the end.
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

    /// The capture has not had these octets, and an ACK has come for them.
    pub(super) fn miss(&mut self, unseen: Unseen) {
        self.acked_unseen += unseen.range.end - unseen.range.start;
        if self.unseen.len() == HOLES {
            self.unseen.pop_front();
        }
        self.unseen.push_back(unseen);
    }

    /// The last ACK for all of `range`, of which nothing had been seen.
    pub(super) fn missed(&self, range: &Range<u64>) -> Option<&Unseen> {
        let holds = |hole: &&Unseen| hole.range.start <= range.start && range.end <= hole.range.end;
        self.unseen.iter().rev().find(holds)
    }

    /// They have come after all.
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

    /// Notes that `recent[at]` was a mistake. Returns its index in the trace, unless that was known before.
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

    /// Octets of heap, itself included.
    pub(super) fn heap(&self) -> usize {
        size_of::<Self>()
            + ALLOCATOR_OVERHEAD
            + heap_of_vec::<Retransmission>(self.recent.capacity())
            + heap_of_vec::<Unseen>(self.unseen.capacity())
            + self.congestion.heap()
    }
}
