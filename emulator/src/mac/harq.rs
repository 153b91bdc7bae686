//! HARQ of one direction: stop-and-wait in several processes. A transport block whose transmission fails is
//! retransmitted after the round trip, so later blocks overtake it.
//!
//! The round trip is the same for all blocks, so queues in order of time are enough.

use std::collections::{BTreeSet, VecDeque};

use airwire::time::{Duration, Instant};

/// Settings of HARQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarqConfig {
    /// Number of processes: transport blocks that can await their feedback.
    pub processes: usize,
    /// Time from the beginning of a transmission to the earliest retransmission in the same process.
    pub round_trip: Duration,
    /// Maximum number of transmissions of a transport block, including the first.
    pub transmissions: u32,
}

/// A transport block with its content.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<T> {
    /// The content.
    pub content: T,
    /// Number of transmissions so far.
    pub transmissions: u32,
    /// Number of the process, from 0.
    pub process: usize,
}

/// Effect of the radio channel on a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// The receiver decodes the block.
    Decoded,
    /// The receiver cannot decode the block. The sender reads its NACK.
    Nack,
    /// The receiver cannot decode the block. The sender reads its NACK as an ACK.
    NackReadAsAck,
}

/// Result of a transmission.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The block arrives.
    Decoded(T),
    /// The block will be retransmitted.
    Retransmits,
    /// The block is lost for HARQ. RLC has to recover its content.
    Lost(T),
}

/// The HARQ entity of one direction.
#[derive(Debug)]
pub struct Harq<T> {
    config: HarqConfig,
    /// Blocks that the receiver could not decode, with the earliest time of their retransmission.
    nacked: VecDeque<(Instant, Block<T>)>,
    /// Processes that await an ACK, and the times from which they are free again.
    acknowledged: VecDeque<(Instant, usize)>,
    /// Processes that have been used and are free.
    free: BTreeSet<usize>,
    /// Number of processes that have been used.
    used: usize,
    counters: HarqCounters,
}

/// Counters of HARQ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HarqCounters {
    /// Transmissions, where the index 0 counts first transmissions.
    pub attempts: Vec<u64>,
    /// Transmissions that the receiver could not decode.
    pub failed: u64,
    /// Blocks that were lost after the maximum number of transmissions.
    pub exhausted: u64,
    /// Blocks that were lost because a NACK was read as an ACK.
    pub nack_to_ack: u64,
}

impl HarqCounters {
    /// Number of transport blocks.
    pub fn blocks(&self) -> u64 {
        self.attempts.first().copied().unwrap_or_default()
    }

    /// Transport blocks that were lost for HARQ.
    pub fn lost(&self) -> u64 {
        self.exhausted + self.nack_to_ack
    }
}

impl<T> Harq<T> {
    /// Creates the entity. All processes are free.
    pub fn new(config: HarqConfig) -> Self {
        Self {
            config,
            nacked: VecDeque::new(),
            acknowledged: VecDeque::new(),
            free: BTreeSet::new(),
            used: 0,
            counters: HarqCounters::default(),
        }
    }

    /// Changes the settings. Blocks that await feedback keep their times.
    pub fn reconfigure(&mut self, config: HarqConfig) {
        self.config = config;
    }

    /// Current counters.
    pub fn counters(&self) -> &HarqCounters {
        &self.counters
    }

    /// Discards all blocks that await retransmission (MAC reset), and returns their contents.
    pub fn reset(&mut self) -> impl Iterator<Item = T> {
        self.acknowledged.clear();
        self.free.clear();
        self.used = 0;
        self.nacked.drain(..).map(|(_, block)| block.content)
    }

    /// Blocks that await retransmission.
    pub fn awaiting_retransmission(&self) -> impl Iterator<Item = &T> {
        self.nacked.iter().map(|(_, block)| &block.content)
    }

    /// Earliest time of the next retransmission.
    pub fn retransmission_from(&self) -> Option<Instant> {
        self.nacked.front().map(|(at, _)| *at)
    }

    /// Earliest time from `now` on at which a process is free for a new block. `None`: all processes have
    /// blocks to retransmit.
    pub fn free_from(&self, now: Instant) -> Option<Instant> {
        let busy = self.nacked.len() + self.acknowledged.len();
        if busy < self.config.processes {
            return Some(now);
        }
        // With more than one process too many, after a change of the settings, several must become free.
        self.acknowledged.get(busy - self.config.processes).map(|(at, _)| now.max(*at))
    }

    /// Takes the block whose retransmission has been possible for the longest time.
    pub fn take_retransmission(&mut self, now: Instant) -> Option<Block<T>> {
        Some(self.nacked.pop_front_if(|(at, _)| *at <= now)?.1)
    }

    /// Releases the processes whose ACKs have arrived.
    pub fn release(&mut self, now: Instant) {
        while let Some((_, process)) = self.acknowledged.pop_front_if(|(at, _)| *at <= now) {
            self.free.insert(process);
        }
    }

    /// Creates a block in the free process with the lowest number. The caller must transmit it.
    pub fn start(&mut self, content: T) -> Block<T> {
        let process = self.free.pop_first().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        Block { content, transmissions: 0, process }
    }

    /// Transmits a block from [`start`](Self::start) or [`take_retransmission`](Self::take_retransmission).
    pub fn transmit(&mut self, now: Instant, mut block: Block<T>, reception: Reception) -> Outcome<T> {
        let attempt = block.transmissions as usize;
        block.transmissions += 1;
        if self.counters.attempts.len() <= attempt {
            self.counters.attempts.resize(attempt + 1, 0);
        }
        self.counters.attempts[attempt] += 1;
        let feedback = now + self.config.round_trip;
        self.counters.failed += u64::from(reception != Reception::Decoded);
        if reception == Reception::Nack && block.transmissions < self.config.transmissions {
            self.nacked.push_back((feedback, block));
            return Outcome::Retransmits;
        }
        self.acknowledged.push_back((feedback, block.process));
        match reception {
            Reception::Decoded => Outcome::Decoded(block.content),
            Reception::Nack => {
                self.counters.exhausted += 1;
                Outcome::Lost(block.content)
            }
            Reception::NackReadAsAck => {
                self.counters.nack_to_ack += 1;
                Outcome::Lost(block.content)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn harq(processes: usize) -> Harq<u32> {
        Harq::new(HarqConfig { processes, round_trip: Duration::from_millis(8), transmissions: 3 })
    }

    fn transmit(harq: &mut Harq<u32>, millis: u64, content: u32, reception: Reception) -> Outcome<u32> {
        let block = harq.start(content);
        harq.transmit(at(millis), block, reception)
    }

    #[test]
    fn later_blocks_overtake_retransmitted_one() {
        let mut harq = harq(8);
        assert_eq!(transmit(&mut harq, 0, 0, Reception::Nack), Outcome::Retransmits);
        for n in 1..8 {
            let outcome = transmit(&mut harq, n, n as u32, Reception::Decoded);
            assert_eq!(outcome, Outcome::Decoded(n as u32));
        }
        assert_eq!((harq.retransmission_from(), harq.take_retransmission(at(7))), (Some(at(8)), None));
        let block = harq.take_retransmission(at(8)).unwrap();
        assert_eq!(block.transmissions, 1);
        assert_eq!(harq.transmit(at(8), block, Reception::Decoded), Outcome::Decoded(0));
        assert_eq!(harq.counters().attempts, [8, 1]);
    }

    #[test]
    fn processes_limit_blocks_in_a_round_trip() {
        let mut harq = harq(2);
        transmit(&mut harq, 0, 0, Reception::Decoded);
        transmit(&mut harq, 1, 1, Reception::Nack);
        assert_eq!(harq.free_from(at(2)), Some(at(8)));
        harq.release(at(8));
        assert_eq!(harq.free_from(at(8)), Some(at(8)));
        transmit(&mut harq, 8, 2, Reception::Nack);
        assert_eq!(harq.free_from(at(8)), None, "both processes must retransmit");
        assert_eq!(harq.reset().collect::<Vec<_>>(), [1, 2]);
        assert_eq!((harq.free_from(at(9)), harq.retransmission_from()), (Some(at(9)), None));
    }

    #[test]
    fn block_is_lost_after_last_transmission_or_misread_feedback() {
        let mut harq = harq(4);
        let mut block = harq.start(0);
        for n in 0..2 {
            assert_eq!(harq.transmit(at(8 * n), block, Reception::Nack), Outcome::Retransmits);
            block = harq.take_retransmission(at(8 * n + 8)).unwrap();
        }
        assert_eq!(harq.transmit(at(16), block, Reception::Nack), Outcome::Lost(0));
        assert_eq!(transmit(&mut harq, 17, 1, Reception::NackReadAsAck), Outcome::Lost(1));
        let counters = harq.counters();
        assert_eq!((counters.exhausted, counters.nack_to_ack, counters.failed), (1, 1, 4));
        assert_eq!((counters.blocks(), counters.lost()), (2, 2));
        harq.release(at(30));
        assert_eq!(harq.free_from(at(30)), Some(at(30)));
    }

    #[test]
    fn new_block_uses_lowest_free_process() {
        let mut harq = harq(4);
        transmit(&mut harq, 0, 0, Reception::Nack);
        transmit(&mut harq, 1, 1, Reception::Decoded);
        transmit(&mut harq, 2, 2, Reception::Decoded);
        assert_eq!(harq.start(3).process, 3);
        harq.release(at(10));
        assert_eq!([harq.start(4).process, harq.start(5).process], [1, 2]);
        let block = harq.take_retransmission(at(10)).unwrap();
        assert_eq!((block.content, block.process), (0, 0), "a retransmission keeps its process");
        let _ = harq.reset();
        assert_eq!(harq.start(6).process, 0);
    }
}
