//! Throughput of a saturated downlink, and other terminals.

use airlink::drb::config::{CountAt, DirectionConfig, Lte, LteConfig, OthersConfig};
use airlink::mac::scheduler::Scheduling;
use airlink::packet::Direction;
use airlink::settings::Settings;
use airtcp_testkit::sample::size;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Rate, Size};

use crate::run::{Run, ms};
use crate::{fdd, is_in_order, send_down, set_bler};

fn saturated(config: &dyn Settings, packets_per_second: u64, length: Duration) -> Run {
    let mut run = Run::new(config, 7);
    send_down(&mut run, packets_per_second, length);
    // The slot that begins at the end does not count.
    run.until(Instant::ZERO + length - Duration::from_nanos(1));
    run
}

/// Checks that the downlink is never idle, and that the arrived data fills the transport blocks.
/// `overhead` is the number of header octets per packet and per block.
fn check_throughput(run: &Run, slots: u64, per_slot: u64, [first, again]: [f64; 2], overhead: [f64; 2]) {
    let stat = |name| run.counter(Direction::Down, name);
    // The first packet does not fill the first slot.
    assert!(stat("blocks").abs_diff(slots * per_slot) <= 1, "a slot was not used");
    let blocks = stat("harq/transport_blocks") as f64;
    // Each block needs 1 + p + p·r + … transmissions.
    let transmissions = 1.0 + first * (1.0 + again + again * again);
    assert!((blocks * transmissions / (slots * per_slot) as f64 - 1.0).abs() < 0.005, "{blocks}");
    let lost = (stat("harq/exhausted") + stat("harq/nack_to_ack")) as f64 / blocks;
    let [per_packet, per_block] = overhead;
    let payload = (stat("harq/block_bytes") as f64 - per_block * blocks) * (1.0 - lost);
    let expected = payload * 1500.0 / (1500.0 + per_packet);
    let ratio = stat("delivered_bytes") as f64 / expected;
    assert!((ratio - 1.0).abs() < 0.005, "delivered / expected = {ratio}");
    assert_eq!(stat("unknown_sdus"), 0);
    assert!(is_in_order(&run.numbers()));
    run.check_conservation();
}

#[test]
fn nr_throughput_is_transport_blocks_less_residual_errors() {
    let seconds = size(5, 60);
    for (first, again, nack_to_ack) in
        [(0.0, 0.0, 0.0), (0.1, 0.1, 0.0), (0.1, 0.1, 0.02), (0.02, 0.5, 0.001)]
    {
        let mut config = fdd(10_000, 2_000);
        set_bler(&mut config.down.harq, first, again);
        config.down.harq.nack_to_ack = Probability::new(nack_to_ack);
        config.down.harq.transmissions = 4;
        let run = saturated(&config, 14_000, Duration::from_secs(seconds));
        // Each packet has 3 octets of PDCP, 3 of RLC and 3 of MAC. A block begins and ends with segments of
        // packets. The first segment has 2 octets of SO, and a packet in two blocks has two headers.
        check_throughput(&run, 2_000 * seconds, 1, [first, again], [9.0, 8.0]);
    }
}

#[test]
fn lte_throughput_is_transport_blocks_less_residual_errors() {
    let seconds = size(5, 60);
    for (first, again) in [(0.0, 0.0), (0.1, 0.1)] {
        let mut config = LteConfig::default();
        config.both(|direction| {
            direction.rlc.sn = Some(16);
            direction.pdcp.sn = 18;
        });
        set_bler(&mut config.down.harq, first, again);
        let run = saturated(&config, 8_500, Duration::from_secs(seconds));
        // Each packet has 3 octets of PDCP and a Length Indicator of 1.5 octets. Each block has an RLC header
        // of 3 octets and 1 octet of MAC.
        check_throughput(&run, 1_000 * seconds, 2, [first, again], [4.5, 3.0]);
    }
}

trait Both {
    fn both(&mut self, change: impl Fn(&mut DirectionConfig<Lte>));
}

impl Both for LteConfig {
    fn both(&mut self, change: impl Fn(&mut DirectionConfig<Lte>)) {
        change(&mut self.down);
        change(&mut self.up);
    }
}

#[test]
fn other_terminal_takes_half_of_slots() {
    for scheduler in [Scheduling::RoundRobin, Scheduling::ProportionalFair] {
        let mut config = fdd(10_000, 2_000);
        config.others = Some(OthersConfig { users: 1, rate: None, tbs: None, scheduler, average: 1_000 });
        let run = saturated(&config, 14_000, Duration::from_secs(2));
        let blocks = run.counter(Direction::Down, "blocks");
        assert!(blocks.abs_diff(2_000) <= 20, "{scheduler:?}: {blocks}");
    }
}

#[test]
fn terminal_with_constant_rate_takes_needed_slots() {
    let mut config = fdd(10_000, 2_000);
    let rate = Some(Rate::bits_per_second(16_000_000));
    let scheduler = Scheduling::RoundRobin;
    config.others = Some(OthersConfig { users: 1, rate, tbs: None, scheduler, average: 1_000 });
    let run = saturated(&config, 14_000, Duration::from_secs(2));
    let octets = run.path.stats()["radio"]["others"]["bytes"][0].as_u64().unwrap();
    assert!(octets.abs_diff(4_000_000) <= 10_000, "{octets}");
}

#[test]
fn processes_limit_blocks_per_round_trip() {
    let mut config = fdd(10_000, 2_000);
    // A round trip of 10 slots.
    config.down.harq.processes = 4;
    let run = saturated(&config, 14_000, Duration::from_secs(2));
    assert_eq!(run.counter(Direction::Down, "blocks"), 4_000 * 4 / 10);
}

#[test]
fn queue_is_limited_in_packets_and_bytes() {
    for count_at in [CountAt::Submission, CountAt::FirstTransmission] {
        for (packets, bytes) in [(Some(100), None), (None, Some(Size::bytes(150_000)))] {
            let mut config = fdd(2_000, 2_000);
            config.down.pdcp.count_at = count_at;
            (config.down.queue.bounds.packets, config.down.queue.bounds.bytes) = (packets, bytes);
            let mut run = Run::new(&config, 7);
            send_down(&mut run, 1_000_000, ms(1));
            run.until(Instant::from_secs(1));
            let delivered = run.left.len();
            assert!((100..=105).contains(&delivered), "{count_at:?} {packets:?}: {delivered}");
            run.check_conservation();
        }
    }
}

#[test]
fn blocked_channel_transmits_nothing() {
    let mut config = fdd(10_000, 2_000);
    config.down.tbs = Some(Size::bytes(0));
    let run = saturated(&config, 100, Duration::from_secs(1));
    assert_eq!((run.left.len(), run.counter(Direction::Down, "blocks")), (0, 0));
    run.check_conservation();
}
