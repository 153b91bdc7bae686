//! ns-2's receivers, in segment numbers: `Acker` (which acknowledges every segment), `DelAck`, and both with
//! SACK.
//!
//! The receivers follow the rules of `Sink` in ref_ns2.py, and have no window, no FIN, and no duplicate SACK
//! (RFC 2883).

use std::collections::BTreeSet;

use crate::vector::Flow;

#[derive(Clone, Debug)]
pub(crate) struct Ack {
    /// The highest segment received in order; −1 before the first.
    pub(crate) ack: i64,
    /// Blocks `[left, right)`, in the order sent.
    pub(crate) sack: Vec<(i64, i64)>,
    pub(crate) tsecr: Option<u32>,
}

/// The receiver's reaction to a segment.
#[derive(Debug)]
pub(crate) enum Answer {
    Ack(Ack),
    /// Wait this many seconds for a second segment, then call [`Sink::expire`].
    Wait(f64),
}

pub(crate) struct Sink {
    sack: bool,
    delayed_ack: Option<f64>,
    rfc2581_immediate_ack: bool,
    syn_immediate_ack: bool,

    next: i64,
    seen: BTreeSet<i64>,
    max: i64,
    /// The segment whose ACK is being delayed.
    waiting: Option<i64>,
    /// SACK blocks that earlier ACKs reported, newest first.
    stack: Vec<(i64, i64)>,
    /// TS.Recent and Last.ACK.sent (RFC 7323 §4.3).
    ts_recent: Option<u32>,
    last_ack_sent: i64,
}

impl Sink {
    pub(crate) fn new(flow: &Flow) -> Self {
        Self {
            sack: flow.sack,
            delayed_ack: flow.delayed_ack,
            rfc2581_immediate_ack: flow.rfc2581_immediate_ack,
            syn_immediate_ack: flow.syn_immediate_ack,
            next: 0,
            seen: BTreeSet::new(),
            max: 0,
            waiting: None,
            stack: Vec::new(),
            ts_recent: None,
            last_ack_sent: -1,
        }
    }

    pub(crate) fn receive(&mut self, segment: i64, tsval: Option<u32>) -> Answer {
        if segment <= self.last_ack_sent + 1 {
            self.ts_recent = tsval;
        }
        self.max = self.max.max(segment);
        if segment >= self.next {
            self.seen.insert(segment);
        }
        while self.seen.remove(&self.next) {
            self.next += 1;
        }

        let in_order = segment == self.next - 1;
        let fills_gap = self.rfc2581_immediate_ack && segment < self.max;
        let syn = self.syn_immediate_ack && segment == 0;
        if let Some(delay) = self.delayed_ack
            && self.waiting.is_none()
            && in_order
            && !fills_gap
            && !syn
        {
            self.waiting = Some(segment);
            return Answer::Wait(delay);
        }
        self.waiting = None;
        Answer::Ack(self.ack(segment))
    }

    /// Handles the delayed ACK timer. Returns `None` if a second segment has already been acknowledged.
    pub(crate) fn expire(&mut self) -> Option<Ack> {
        let segment = self.waiting.take()?;
        Some(self.ack(segment))
    }

    fn has(&self, segment: i64) -> bool {
        segment < self.next || self.seen.contains(&segment)
    }

    fn ack(&mut self, segment: i64) -> Ack {
        let ack = self.next - 1;
        self.last_ack_sent = ack;
        let sack = if self.sack { self.sack_blocks(ack, segment) } else { Vec::new() };
        Ack { ack, sack, tsecr: self.ts_recent }
    }

    /// Returns the SACK blocks: first the block of the segment that triggered this ACK, then those reported
    /// before (RFC 2018 §4).
    fn sack_blocks(&mut self, ack: i64, segment: i64) -> Vec<(i64, i64)> {
        let mut blocks = Vec::new();
        if ack >= self.max {
            self.stack.clear();
            return blocks;
        }
        let right = (segment..=self.max).find(|&s| !self.has(s)).unwrap_or(self.max + 1);
        let mut left = 0;
        if segment > ack {
            left = (ack + 1..right).rev().find(|&s| !self.has(s)).map_or(ack + 1, |hole| hole + 1);
            blocks.push((left, right));
        }
        let mut index = 0;
        while blocks.len() < 3 && index < self.stack.len() {
            let (l, r) = self.stack[index];
            if r > self.max + 1 {
                break;
            }
            if left <= l && right >= r {
                self.stack.remove(index);
                continue;
            }
            blocks.push((l, r));
            index += 1;
        }
        if segment > ack {
            self.stack.insert(0, (left, right));
            self.stack.truncate(3);
        }
        blocks
    }
}
