//! RLC unacknowledged mode: packets that HARQ loses are lost, all others arrive in order, and each packet is
//! counted once.

use airlink::drb::config::{DirectionConfig, Generation, HandoverConfig, LteConfig, NrConfig, RlcMode};
use airlink::packet::Direction;
use airlink::settings::Settings;
use airlink::stage::{DropReason, Recording};
use airtcp_testkit::sample::{seed, size};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Size};

use crate::run::{Run, bler, ms, numbered};
use crate::{fdd, is_in_order};

const DOWN: Direction = Direction::Down;

/// Changes both directions.
fn both<G: Generation>([down, up]: [&mut DirectionConfig<G>; 2], change: impl Fn(&mut DirectionConfig<G>)) {
    change(down);
    change(up);
}

fn nr(sn: u32, harq: [f64; 3], transmissions: u32) -> NrConfig {
    let mut config = fdd(3_000, 2_000);
    both([&mut config.down, &mut config.up], |direction| {
        (direction.rlc.mode, direction.rlc.sn) = (RlcMode::Um, Some(sn));
        direction.pdcp.t_reordering = Some(ms(80));
        set_harq(&mut direction.harq, harq, transmissions);
    });
    config
}

fn lte(sn: u32, harq: [f64; 3], transmissions: u32) -> LteConfig {
    let mut config = LteConfig::default();
    both([&mut config.down, &mut config.up], |direction| {
        (direction.tbs, direction.blocks) = (Some(Size::bytes(3_000)), Some(2));
        (direction.rlc.mode, direction.rlc.sn) = (RlcMode::Um, Some(sn));
        set_harq(&mut direction.harq, harq, transmissions);
    });
    config
}

/// Probabilities that a first transmission and a retransmission fail, and that a NACK is misread.
fn set_harq<G: Generation>(
    harq: &mut airlink::drb::config::HarqSettings<G>,
    [first, again, misread]: [f64; 3],
    transmissions: u32,
) {
    harq.transmissions = transmissions;
    harq.bler = bler(first);
    harq.retx_bler = Probability::new(again);
    harq.nack_to_ack = Probability::new(misread);
}

/// Runs both directions with packets of all sizes, and checks after each deadline that no packet is counted twice
/// or forgotten.
fn run(config: &dyn Settings, packets: u32, seed: u64) -> Run {
    let mut run = Run::recording(config, seed, Recording::Incidents, false);
    let mut draws = Stream::new(seed, "packets");
    let mut now = Instant::ZERO;
    for n in 0..packets {
        now += Duration::from_micros(draws.below(1_000));
        let direction = if draws.chance(0.2) { Direction::Up } else { DOWN };
        run.step_through(now);
        run.send(now, direction, numbered(n, 4 + draws.below(1_500) as usize));
    }
    run.step_through(now + Duration::from_secs(30));
    assert_eq!(run.path.held(), 0, "{:#}", run.path.stats());
    for direction in Direction::BOTH {
        assert_eq!(run.counter(direction, "unknown_sdus"), 0);
        assert_eq!(run.counter(direction, "sender/pdus_resent"), 0);
        let left = run.left.iter().filter(|(_, other, _)| *other == direction);
        let numbers: Vec<u32> = left.map(|(_, _, bytes)| crate::run::number_of(bytes)).collect();
        assert!(is_in_order(&numbers), "{direction}");
        let totals = &run.path.totals()[direction];
        let reasons = [DropReason::RlcLoss, DropReason::PdcpLate, DropReason::Handover];
        let lost: u64 = reasons.iter().map(|why| totals.dropped_for(*why)).sum();
        assert_eq!(run.counter(direction, "rlc_loss"), totals.dropped_for(DropReason::RlcLoss));
        assert_eq!(run.counter(direction, "packets"), numbers.len() as u64 + lost);
    }
    run
}

fn lost(run: &Run) -> u64 {
    let dropped = |direction| run.path.totals()[direction].dropped.iter().sum::<u64>();
    Direction::BOTH.into_iter().map(dropped).sum()
}

#[test]
fn everything_arrives_without_errors() {
    for config in [
        &nr(6, [0.0; 3], 1) as &dyn Settings,
        &nr(12, [0.0; 3], 1),
        &lte(5, [0.0; 3], 1),
        &lte(10, [0.0; 3], 1),
    ] {
        let run = run(config, size(2_000, 20_000) as u32, seed());
        assert_eq!(lost(&run), 0);
    }
}

#[test]
fn harq_hides_errors_that_it_repairs() {
    for config in [&nr(12, [0.1, 0.1, 0.0], 32) as &dyn Settings, &lte(10, [0.1, 0.1, 0.0], 32)] {
        let run = run(config, size(2_000, 20_000) as u32, seed());
        assert_eq!(lost(&run), 0);
    }
}

#[test]
fn lost_transport_blocks_lose_their_packets() {
    for n in 0..size(3, 30) {
        for config in [
            &nr(6, [0.1, 0.1, 0.02], 2) as &dyn Settings,
            &nr(12, [0.05, 0.0, 0.0], 1),
            &lte(5, [0.1, 0.1, 0.02], 2),
            &lte(10, [0.05, 0.0, 0.0], 1),
        ] {
            let run = run(config, 2_000, seed() + n);
            let lost = lost(&run);
            assert!((5..400).contains(&lost), "{lost}");
        }
    }
}

/// HARQ takes longer than the receiver's timers.
#[test]
fn late_segments_are_lost() {
    for n in 0..size(3, 30) {
        let mut nr = nr(6, [0.3, 0.3, 0.0], 8);
        both([&mut nr.down, &mut nr.up], |direction| {
            direction.tbs = Some(Size::bytes(700));
            direction.rlc.t_reassembly = ms(5);
            direction.pdcp.t_reordering = Some(ms(10));
        });
        let mut lte = lte(5, [0.3, 0.3, 0.0], 8);
        both([&mut lte.down, &mut lte.up], |direction| {
            direction.tbs = Some(Size::bytes(700));
            direction.rlc.t_reordering = ms(5);
        });
        for config in [&nr as &dyn Settings, &lte] {
            assert!(lost(&run(config, 1_000, seed() + n)) > 20);
        }
    }
}

#[test]
fn handover_continues_with_packets_that_wait() {
    for forwarding in [true, false] {
        for n in 0..size(3, 30) {
            let mut nr = nr(12, [0.1, 0.1, 0.0], 4);
            let mut lte = lte(10, [0.1, 0.1, 0.0], 4);
            let handover = HandoverConfig {
                at: vec![ms(50)],
                every: Some(ms(150)),
                interruption: ms(40),
                forwarding,
                cell: None,
            };
            (nr.handover, lte.handover) = (Some(handover.clone()), Some(handover));
            for config in [&nr as &dyn Settings, &lte] {
                let run = run(config, 2_000, seed() + n);
                let handovers = run.path.stats()["radio"]["handovers"].as_u64().unwrap();
                let dropped = run.path.totals().down.dropped_for(DropReason::Handover);
                assert!(handovers > 5);
                // About 50 packets arrive in each interruption.
                assert_eq!(dropped > 0, !forwarding, "{dropped}");
                assert!(lost(&run) < 30 * handovers || !forwarding, "{} of {handovers}", lost(&run));
            }
        }
    }
}
