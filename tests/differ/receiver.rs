//! The peer as a receiver of data: it loses segments, and acknowledges the others like a SACK receiver (RFC 2018,
//! RFC 2883).

use std::collections::VecDeque;

use crate::plan::Path;

/// An ACK of the receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledgment {
    pub next: u64,
    /// A D-SACK block if there is a duplicate to report, then the other blocks, most recent first.
    pub blocks: Vec<(u64, u64)>,
    pub has_dsack: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    path: Path,
    /// Number of segments with data that our side has sent, including the lost ones.
    sent: u16,
    /// Segments that have arrived and wait to be acknowledged.
    arrived: VecDeque<(u64, u64)>,
    /// RCV.NXT
    next: u64,
    /// The data above RCV.NXT, most recent first.
    held: Vec<(u64, u64)>,
}

impl Receiver {
    pub(crate) fn new(path: Path) -> Self {
        Self { path, sent: 0, arrived: VecDeque::new(), next: 1, held: Vec::new() }
    }

    /// Returns the number of segments with data that our side has sent.
    pub(crate) fn sent(&self) -> u16 {
        self.sent
    }

    /// Records a segment that our side has sent.
    pub(crate) fn observe(&mut self, start: u64, end: u64) {
        let number = self.sent;
        self.sent += 1;
        if self.path.losses.contains(&number) {
            return;
        }
        let len = self.arrived.len();
        let overtakes = self.path.delayed.is_some_and(|delayed| delayed + 1 == number) && len > 0;
        self.arrived.insert(if overtakes { len - 1 } else { len }, (start, end));
        if self.path.duplicated == Some(number) {
            self.arrived.push_back((start, end));
        }
    }

    /// Acknowledges up to `count` segments with one ACK.
    pub(crate) fn acknowledge(&mut self, count: u8) -> Option<Acknowledgment> {
        let mut answer = None;
        for _ in 0..count {
            let Some(segment) = self.arrived.pop_front() else { break };
            let was_in_order = segment.0 <= self.next && self.held.is_empty();
            let dsack = self.store(segment);
            let mut blocks: Vec<(u64, u64)> = dsack.into_iter().collect();
            blocks.extend(&self.held);
            answer = Some(Acknowledgment { next: self.next, blocks, has_dsack: dsack.is_some() });
            // Only an ACK of segments in order waits for the next one (RFC 5681 §4.2).
            if !was_in_order || dsack.is_some() {
                break;
            }
        }
        answer
    }

    /// Stores a segment. Returns the part that has arrived before.
    fn store(&mut self, (start, end): (u64, u64)) -> Option<(u64, u64)> {
        if start < self.next {
            let repeated = (start, end.min(self.next));
            self.advance(end);
            return Some(repeated);
        }
        let overlap = self.held.iter().find(|(from, to)| *from < end && start < *to);
        let repeated = overlap.map(|(from, to)| (start.max(*from), end.min(*to)));
        let mut block = (start, end);
        self.held.retain(|(from, to)| {
            let touches = *from <= block.1 && block.0 <= *to;
            if touches {
                block = (block.0.min(*from), block.1.max(*to));
            }
            !touches
        });
        if block.0 <= self.next {
            self.advance(block.1);
        } else {
            self.held.insert(0, block);
        }
        repeated
    }

    fn advance(&mut self, end: u64) {
        self.next = self.next.max(end);
        while let Some(at) = self.held.iter().position(|(from, _)| *from <= self.next) {
            self.next = self.next.max(self.held.remove(at).1);
        }
    }
}
