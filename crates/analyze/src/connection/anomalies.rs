//! What is remembered of a direction once something was lost, overtaken, sent again or asked for: most of many
//! connections have none of it.

use std::collections::VecDeque;
use std::ops::Range;

use super::compact::{ALLOCATION, vector};
use super::findings::{AckFindings, Arrivals, Retransmissions};
use super::guess::Guess;
use crate::trace::Proof;

/// A retransmission that may yet turn out to be a mistake.
#[derive(Clone, Debug)]
pub(super) struct Resent {
    pub(super) range: Range<u64>,
    pub(super) tsval: Option<u32>,
    pub(super) begins: Begins,
    pub(super) proven: bool,
    /// Its place in the trace.
    pub(super) index: usize,
}

/// What a retransmission is the first of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    Nothing,
    FastRetransmit,
    Timeout,
}

/// Proofs come within a round trip or two.
const REMEMBERED: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Trouble {
    pub(super) again: Retransmissions,
    pub(super) resent: VecDeque<Resent>,
    /// When everything that had been outstanding at the last timeout was acknowledged.
    pub(super) restarted: Option<i64>,
    /// When the newest copy left that is known to have arrived (RACK.xmit_ts of RFC 8985 §5.2). As long as there is no
    /// trouble, nothing that is outstanding left before it.
    pub(super) arrived: i64,
    pub(super) guess: Guess,
    pub(super) arrivals: Arrivals,
    /// Without the count of all.
    pub(super) acks: AckFindings,
    pub(super) acked_unseen: u64,
    pub(super) zero_windows: u64,
    pub(super) shrunk: u64,
}

impl Trouble {
    pub(super) fn remember(&mut self, resent: Resent) {
        if self.resent.len() == REMEMBERED {
            self.resent.pop_front();
        }
        self.resent.push_back(resent);
    }

    /// The retransmission in place `at` was a mistake. Returns its place in the trace, unless that was known.
    pub(super) fn prove(&mut self, at: usize, proof: Proof) -> Option<usize> {
        let resent = &mut self.resent[at];
        if std::mem::replace(&mut resent.proven, true) {
            return None;
        }
        let spurious = &mut self.again.spurious;
        spurious.packets += 1;
        match proof {
            Proof::Timestamp => spurious.by_timestamp += 1,
            Proof::Dsack => spurious.by_dsack += 1,
            Proof::Arrival => {}
        }
        match resent.begins {
            Begins::Nothing => {}
            Begins::FastRetransmit => spurious.fast_retransmits += 1,
            Begins::Timeout => spurious.timeouts += 1,
        }
        Some(resent.index)
    }

    /// Octets of heap, itself included.
    pub(super) fn heap(&self) -> usize {
        size_of::<Self>() + ALLOCATION + vector::<Resent>(self.resent.capacity())
    }
}
