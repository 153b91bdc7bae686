//! HARQ of one mobile: stop and wait, in several processes (TS 25.321 §11.6.1). Transmissions of a block are combined (chase
//! combining): their signal-to-noise ratios add up.
//!
//! Choice: ACK and NACK are never damaged, and blocks that wait to be repeated go before new ones.

use airwire::time::{Duration, Instant};

use super::cqi::Cqi;

pub(super) struct Harq<T> {
    processes: Vec<Process<T>>,
}

struct Process<T> {
    /// When the answer to the last transmission has come.
    free: Instant,
    /// What has to be transmitted again.
    block: Option<Block<T>>,
}

pub(super) struct Block<T> {
    /// Counted from 0; its TSN is this modulo 64.
    pub(super) number: u64,
    /// By which it is coded.
    pub(super) cqi: Cqi,
    pub(super) content: T,
    pub(super) transmissions: u8,
    /// The sum of the signal-to-noise ratios of all transmissions.
    pub(super) energy: f64,
}

/// What can be transmitted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// What the process holds.
    Again { process: usize },
    /// A new block.
    New { process: usize },
}

/// What becomes of a transmission.
pub(super) enum Outcome<T> {
    Arrives(Block<T>),
    /// It was the last one.
    Lost(Block<T>),
    /// It will be repeated.
    Waits,
}

impl<T> Harq<T> {
    pub(super) fn new(processes: u8) -> Self {
        let process = || Process { free: Instant::ZERO, block: None };
        Self { processes: std::iter::repeat_with(process).take(processes.into()).collect() }
    }

    /// Nothing is repeated any more.
    pub(super) fn reset(&mut self) {
        self.processes.iter_mut().for_each(|process| process.block = None);
    }

    /// The oldest block that has to be repeated: its number.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.processes.iter().filter_map(|process| Some(process.block.as_ref()?.number)).min()
    }

    /// From when on something can be transmitted. `new`: whether there is anything for a new block.
    pub(super) fn ready(&self, new: bool) -> Option<Instant> {
        let usable = self.processes.iter().filter(|process| new || process.block.is_some());
        usable.map(|process| process.free).min()
    }

    /// What to transmit at `now`: the oldest that has to be repeated, or else something new, if there is any.
    pub(super) fn turn(&self, now: Instant, new: bool) -> Option<Turn> {
        let free = || self.processes.iter().enumerate().filter(|(_, process)| process.free <= now);
        let oldest = free().filter_map(|(n, process)| Some((process.block.as_ref()?.number, n))).min();
        match oldest {
            Some((_, process)) => Some(Turn::Again { process }),
            None if new => {
                free().find(|(_, process)| process.block.is_none()).map(|(process, _)| Turn::New { process })
            }
            None => None,
        }
    }

    /// The block that the process holds.
    pub(super) fn take(&mut self, process: usize) -> Option<Block<T>> {
        self.processes[process].block.take()
    }

    /// `block` is transmitted at `now`, with this signal-to-noise ratio (not in dB). `is_lost` decides, by the sum of them.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        process: usize,
        mut block: Block<T>,
        snr: f64,
        rules: Rules,
        is_lost: impl FnOnce(Cqi, f64) -> bool,
    ) -> Outcome<T> {
        block.transmissions += 1;
        block.energy += snr;
        let process = &mut self.processes[process];
        process.free = now + rules.round_trip;
        if !is_lost(block.cqi, block.energy) {
            Outcome::Arrives(block)
        } else if block.transmissions >= rules.transmissions {
            Outcome::Lost(block)
        } else {
            process.block = Some(block);
            Outcome::Waits
        }
    }
}

/// What can change under way.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) round_trip: Duration,
    pub(super) transmissions: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { round_trip: Duration::from_millis(12), transmissions: 3 };

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn block(number: u64) -> Block<u64> {
        Block { number, cqi: Cqi::of(0.0), content: number, transmissions: 0, energy: 0.0 }
    }

    /// A transmission that is lost for certain, or arrives for certain.
    fn transmit(
        harq: &mut Harq<u64>,
        now: u64,
        process: usize,
        block: Block<u64>,
        lost: bool,
    ) -> Outcome<u64> {
        harq.transmit(at(now), process, block, 1.0, RULES, |_, _| lost)
    }

    #[test]
    fn a_process_waits_for_its_answer_and_repeats_before_anything_new_begins() {
        let mut harq = Harq::new(2);
        assert_eq!(harq.ready(true), Some(Instant::ZERO));
        assert_eq!(harq.ready(false), None);
        assert!(matches!(transmit(&mut harq, 0, 0, block(0), true), Outcome::Waits));
        assert_eq!(harq.turn(at(2), true), Some(Turn::New { process: 1 }));
        assert!(matches!(
            transmit(&mut harq, 2, 1, block(1), false),
            Outcome::Arrives(Block { number: 1, .. })
        ));
        assert_eq!((harq.turn(at(4), true), harq.ready(true)), (None, Some(at(12))));
        assert_eq!((harq.oldest(), harq.ready(false)), (Some(0), Some(at(12))));
        assert_eq!(harq.turn(at(12), true), Some(Turn::Again { process: 0 }));
        assert_eq!(harq.turn(at(14), true), Some(Turn::Again { process: 0 }), "though process 1 is free");
        let again = harq.take(0).unwrap();
        assert!(matches!(transmit(&mut harq, 14, 0, again, false), Outcome::Arrives(_)));
        assert_eq!(harq.turn(at(14), false), None);
        assert_eq!(harq.turn(at(14), true), Some(Turn::New { process: 1 }));
    }

    #[test]
    fn of_blocks_to_be_repeated_the_oldest_goes_first() {
        let mut harq = Harq::new(2);
        transmit(&mut harq, 0, 0, block(5), true);
        transmit(&mut harq, 2, 1, block(3), true);
        assert_eq!(harq.turn(at(12), true), Some(Turn::Again { process: 0 }), "the other has no answer yet");
        assert_eq!(harq.turn(at(14), true), Some(Turn::Again { process: 1 }));
    }

    #[test]
    fn the_last_transmission_that_is_damaged_loses_the_block() {
        let mut harq = Harq::new(1);
        assert!(matches!(transmit(&mut harq, 0, 0, block(7), true), Outcome::Waits));
        let again = harq.take(0).unwrap();
        assert!(matches!(transmit(&mut harq, 12, 0, again, true), Outcome::Waits));
        let again = harq.take(0).unwrap();
        assert!(matches!(
            transmit(&mut harq, 24, 0, again, true),
            Outcome::Lost(Block { transmissions: 3, .. })
        ));
        assert_eq!(harq.oldest(), None);
    }

    #[test]
    fn signal_to_noise_ratios_of_transmissions_add_up() {
        let mut harq = Harq::new(1);
        let mut next = Some(block(0));
        let mut seen = Vec::new();
        for (n, snr) in (0..).zip([1.0, 0.5, 4.0]) {
            let block = next.take().or_else(|| harq.take(0)).unwrap();
            harq.transmit(at(12 * n), 0, block, snr, RULES, |_, energy| {
                seen.push(energy);
                true
            });
        }
        assert_eq!(seen, [1.0, 1.5, 5.5]);
    }
}
