//! In-order release after HARQ: how many transport blocks wait for their own retransmission or for the
//! retransmission of an earlier block, and how long they wait.

use std::collections::BTreeMap;

use airlink::mac::harq::{Block, Harq, HarqConfig, Outcome, Reception};
use airlink::mac::in_flight::InFlight;
use airlink::pdcp::nr_receiver::{NrReceiver, NrReceiverConfig};
use airlink::pdcp::pdu::Format;
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

struct Release {
    residual: f64,
    held: f64,
    mean: f64,
    /// p50, p95, p99 in ms.
    quantiles: [f64; 3],
}

const BLOCKS: u64 = 400_000;

/// A downlink whose first transmissions fail with the probability `first`. RLC recovers a lost block after 40
/// to 60 ms.
struct Downlink {
    slot: Duration,
    first: f64,
    harq: Harq<u64>,
    in_flight: InFlight<u64>,
    draws: Stream,
}

impl Downlink {
    fn transmit(&mut self, now: Instant, block: Block<u64>) {
        let fails = self.draws.chance(if block.transmissions == 0 { self.first } else { 0.1 });
        let reception = match fails {
            false => Reception::Decoded,
            true if self.draws.chance(1e-3) => Reception::NackReadAsAck,
            true => Reception::Nack,
        };
        match self.harq.transmit(now, block, reception) {
            Outcome::Decoded(number) => self.in_flight.launch(now + self.slot, 0, number),
            Outcome::Retransmits => {}
            Outcome::Lost(number) => {
                let recovery = Duration::from_secs_f64(0.040 + 0.020 * self.draws.unit());
                self.in_flight.launch(now + self.slot + recovery, 0, number);
            }
        }
    }
}

/// Number of blocks by the nanoseconds for which in-order delivery delays them.
struct Delays(BTreeMap<u64, u64>);

impl Delays {
    /// Mean delay in ms.
    fn mean(&self) -> f64 {
        self.0.iter().map(|(delay, count)| millis(*delay) * *count as f64).sum::<f64>() / BLOCKS as f64
    }

    /// The delay in ms that this share of the blocks does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let mut below = 0;
        let reaches = |(_, count): &(&u64, &u64)| {
            below += **count;
            below as f64 >= share * BLOCKS as f64
        };
        millis(*self.0.iter().find(reaches).unwrap().0)
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Sends a new transport block in each slot, in addition to retransmissions of earlier blocks.
fn release(slot: Duration, round_trip: Duration, first: f64) -> Release {
    let harq = Harq::new(HarqConfig { processes: 1_000, round_trip, transmissions: 4 });
    let draws = Stream::new(1, "draws");
    let mut downlink = Downlink { slot, first, harq, in_flight: InFlight::default(), draws };
    let config = NrReceiverConfig { t_reordering: None, out_of_order: false };
    let mut receiver = NrReceiver::new(Format::Nr18, config);
    let mut delays = Delays(BTreeMap::new());
    for n in 0..BLOCKS + 1_000 {
        let now = Instant::ZERO + slot * n;
        while let Some(at) = downlink.in_flight.next_arrival().filter(|at| *at <= now) {
            let number: u64 = downlink.in_flight.take(now).unwrap();
            receiver.receive(at, Format::Nr18.sn(number), number);
            while let Some((_, number)) = receiver.poll_pdu() {
                let earliest = Instant::ZERO + slot * (number + 1);
                *delays.0.entry((at - earliest).as_nanos()).or_default() += 1;
            }
        }
        downlink.harq.release(now);
        while let Some(block) = downlink.harq.take_retransmission(now) {
            downlink.transmit(now, block);
        }
        if n < BLOCKS {
            let block = downlink.harq.start(n);
            downlink.transmit(now, block);
        }
    }
    let held = BLOCKS - delays.0.get(&0).copied().unwrap_or_default();
    Release {
        residual: downlink.harq.counters().lost() as f64 / BLOCKS as f64,
        held: held as f64 / BLOCKS as f64,
        mean: delays.mean(),
        quantiles: [0.5, 0.95, 0.99].map(|share| delays.quantile(share)),
    }
}

#[test]
fn held_back_share_and_delay_match_reference() {
    // With short slots, only about 80 recoveries by RLC, which delay 400 blocks each, determine the mean and
    // the higher quantiles.
    for (slot, round_trip, first, held, mean, quantiles, exact) in [
        (1_000, 8, 0.1, 0.61, 4.2, [3.0, 13.0, 24.0], true),
        (500, 5, 0.1, 0.69, 3.3, [2.5, 9.0, 32.0], true),
        (500, 10, 0.1, 0.90, 8.7, [8.0, 19.5, 38.0], true),
        (125, 2, 0.1, 0.85, 2.8, [1.5, 11.5, 36.0], false),
        (500, 5, 0.01, 0.11, 0.4, [0.0, 3.5, 7.0], true),
    ] {
        let slot = Duration::from_micros(slot);
        let release = release(slot, Duration::from_millis(round_trip), first);
        let case = format!("slot {slot}, round trip {round_trip} ms, BLER {first}");
        // All four transmissions fail, or a NACK is misread.
        let residual = first * (1e-3 * 1.11 + 1e-3);
        assert!((release.residual / residual - 1.0).abs() < 0.6, "{case}: {}", release.residual);
        assert!((release.held - held).abs() < 0.02, "{case}: {}", release.held);
        let tolerance = if exact { 0.05 * mean + 0.1 } else { 0.4 * mean };
        assert!((release.mean - mean).abs() < tolerance, "{case}: {}", release.mean);
        let quantiles = release.quantiles.into_iter().zip(quantiles).take(if exact { 3 } else { 1 });
        for (found, expected) in quantiles {
            assert!((found - expected).abs() <= 0.5 + 0.15 * expected, "{case}: {:?}", release.quantiles);
        }
        // Lower bound: a block waits if it, or a block of the preceding round trip, is retransmitted.
        let slots = Duration::from_millis(round_trip).as_nanos() / slot.as_nanos();
        assert!(release.held >= 1.0 - (1.0 - first).powi(slots as i32) - 0.01, "{case}");
    }
}
