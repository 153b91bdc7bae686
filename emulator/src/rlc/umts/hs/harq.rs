//! HARQ of one mobile: stop-and-wait in several processes (TS 25.321 §11.6.1). The transmissions of a block
//! are combined (chase combining): their signal-to-noise ratios add up.
//!
//! Choice: ACK and NACK are never damaged, and retransmissions have priority over new blocks.

use airwire::time::{Duration, Instant};

use super::cqi::Cqi;

pub(super) struct Harq<T> {
    processes: Vec<Process<T>>,
}

struct Process<T> {
    /// Time at which the answer to the last transmission arrives.
    free_from: Instant,
    /// Block that must be retransmitted.
    block: Option<Block<T>>,
}

pub(super) struct Block<T> {
    /// Number of the block, counted from 0. Its TSN is this number modulo 64.
    pub(super) number: u64,
    /// CQI that determines the coding.
    pub(super) cqi: Cqi,
    pub(super) content: T,
    pub(super) transmissions: u8,
    /// Sum of the signal-to-noise ratios of all transmissions.
    pub(super) energy: f64,
}

/// A transmission that is possible now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextTransmission {
    /// Retransmission of the block that the process holds.
    Retransmission { process: usize },
    /// Transmission of a new block.
    New { process: usize },
}

/// Result of a transmission.
pub(super) enum TransmissionResult<T> {
    Arrives(Block<T>),
    /// The last transmission of the block was damaged.
    Lost(Block<T>),
    /// The block will be retransmitted.
    Retransmits,
}

impl<T> Harq<T> {
    pub(super) fn new(processes: u8) -> Self {
        let process = || Process { free_from: Instant::ZERO, block: None };
        Self { processes: std::iter::repeat_with(process).take(processes.into()).collect() }
    }

    /// Cancels all retransmissions.
    pub(super) fn reset(&mut self) {
        self.processes.iter_mut().for_each(|process| process.block = None);
    }

    /// Number of the oldest block that must be retransmitted.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.processes.iter().filter_map(|process| Some(process.block.as_ref()?.number)).min()
    }

    /// Earliest time at which something can be transmitted. `new` is true if there is data for a new block.
    pub(super) fn ready_at(&self, new: bool) -> Option<Instant> {
        let usable = self.processes.iter().filter(|process| new || process.block.is_some());
        usable.map(|process| process.free_from).min()
    }

    /// Selects the transmission at `now`: the oldest block that must be retransmitted. Without such a block,
    /// a new block if there is data.
    pub(super) fn next_transmission(&self, now: Instant, new: bool) -> Option<NextTransmission> {
        let free_processes =
            || self.processes.iter().enumerate().filter(|(_, process)| process.free_from <= now);
        let oldest =
            free_processes().filter_map(|(n, process)| Some((process.block.as_ref()?.number, n))).min();
        match oldest {
            Some((_, process)) => Some(NextTransmission::Retransmission { process }),
            None if new => free_processes()
                .find(|(_, process)| process.block.is_none())
                .map(|(process, _)| NextTransmission::New { process }),
            None => None,
        }
    }

    /// Takes the block that the process holds.
    pub(super) fn take(&mut self, process: usize) -> Option<Block<T>> {
        self.processes[process].block.take()
    }

    /// Transmits `block` at `now`, with a signal-to-noise ratio of `snr` (not in dB). `is_lost` decides from
    /// the sum of the ratios of all transmissions.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        process: usize,
        mut block: Block<T>,
        snr: f64,
        settings: HarqSettings,
        is_lost: impl FnOnce(Cqi, f64) -> bool,
    ) -> TransmissionResult<T> {
        block.transmissions += 1;
        block.energy += snr;
        let process = &mut self.processes[process];
        process.free_from = now + settings.round_trip;
        if !is_lost(block.cqi, block.energy) {
            TransmissionResult::Arrives(block)
        } else if block.transmissions >= settings.transmissions {
            TransmissionResult::Lost(block)
        } else {
            process.block = Some(block);
            TransmissionResult::Retransmits
        }
    }
}

/// Settings that can change during a run.
#[derive(Clone, Copy)]
pub(super) struct HarqSettings {
    pub(super) round_trip: Duration,
    pub(super) transmissions: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: HarqSettings = HarqSettings { round_trip: Duration::from_millis(12), transmissions: 3 };

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn block(number: u64) -> Block<u64> {
        Block { number, cqi: Cqi::of(0.0), content: number, transmissions: 0, energy: 0.0 }
    }

    /// Performs a transmission that is certainly lost, or certainly arrives.
    fn transmit(
        harq: &mut Harq<u64>,
        now: u64,
        process: usize,
        block: Block<u64>,
        lost: bool,
    ) -> TransmissionResult<u64> {
        harq.transmit(at(now), process, block, 1.0, SETTINGS, |_, _| lost)
    }

    #[test]
    fn reset_cancels_retransmissions() {
        let mut harq = Harq::new(2);
        assert!(matches!(transmit(&mut harq, 0, 0, block(0), true), TransmissionResult::Retransmits));
        harq.reset();
        assert_eq!(harq.oldest(), None);
        assert_eq!(harq.next_transmission(at(12), true), Some(NextTransmission::New { process: 0 }));
    }

    #[test]
    fn harq_retransmits_after_feedback_before_new_blocks() {
        let mut harq = Harq::new(2);
        assert_eq!(harq.ready_at(true), Some(Instant::ZERO));
        assert_eq!(harq.ready_at(false), None);
        assert!(matches!(transmit(&mut harq, 0, 0, block(0), true), TransmissionResult::Retransmits));
        assert_eq!(harq.next_transmission(at(2), true), Some(NextTransmission::New { process: 1 }));
        assert!(matches!(
            transmit(&mut harq, 2, 1, block(1), false),
            TransmissionResult::Arrives(Block { number: 1, .. })
        ));
        assert_eq!((harq.next_transmission(at(4), true), harq.ready_at(true)), (None, Some(at(12))));
        assert_eq!((harq.oldest(), harq.ready_at(false)), (Some(0), Some(at(12))));
        assert_eq!(
            harq.next_transmission(at(12), true),
            Some(NextTransmission::Retransmission { process: 0 })
        );
        assert_eq!(
            harq.next_transmission(at(14), true),
            Some(NextTransmission::Retransmission { process: 0 }),
            "even though process 1 is free"
        );
        let again = harq.take(0).unwrap();
        assert!(matches!(transmit(&mut harq, 14, 0, again, false), TransmissionResult::Arrives(_)));
        assert_eq!(harq.next_transmission(at(14), false), None);
        assert_eq!(harq.next_transmission(at(14), true), Some(NextTransmission::New { process: 1 }));
    }

    #[test]
    fn oldest_block_is_retransmitted_first() {
        let mut harq = Harq::new(2);
        transmit(&mut harq, 0, 0, block(5), true);
        transmit(&mut harq, 2, 1, block(3), true);
        assert_eq!(
            harq.next_transmission(at(12), true),
            Some(NextTransmission::Retransmission { process: 0 }),
            "process 1 has no feedback yet"
        );
        assert_eq!(
            harq.next_transmission(at(14), true),
            Some(NextTransmission::Retransmission { process: 1 })
        );
    }

    #[test]
    fn block_is_lost_after_last_allowed_transmission() {
        let mut harq = Harq::new(1);
        assert!(matches!(transmit(&mut harq, 0, 0, block(7), true), TransmissionResult::Retransmits));
        let again = harq.take(0).unwrap();
        assert!(matches!(transmit(&mut harq, 12, 0, again, true), TransmissionResult::Retransmits));
        let again = harq.take(0).unwrap();
        assert!(matches!(
            transmit(&mut harq, 24, 0, again, true),
            TransmissionResult::Lost(Block { transmissions: 3, .. })
        ));
        assert_eq!(harq.oldest(), None);
    }

    #[test]
    fn snr_accumulates_over_transmissions() {
        let mut harq = Harq::new(1);
        let mut next = Some(block(0));
        let mut energies = Vec::new();
        for (n, snr) in (0..).zip([1.0, 0.5, 4.0]) {
            let block = next.take().or_else(|| harq.take(0)).unwrap();
            harq.transmit(at(12 * n), 0, block, snr, SETTINGS, |_, energy| {
                energies.push(energy);
                true
            });
        }
        assert_eq!(energies, [1.0, 1.5, 5.5]);
    }
}
