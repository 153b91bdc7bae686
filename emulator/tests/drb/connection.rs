//! Order and loss: t-Reordering, out-of-order delivery, discardTimer, handover and radio link failure.

use airlink::drb::config::{CountAt, HandoverConfig, LteConfig, NrConfig};
use airlink::packet::Direction;
use airlink::rlc::config::BlockErrors;
use airlink::settings::Settings;
use airlink::stage::{DropReason, IncidentKind, Recording};
use airwire::time::{Duration, Instant};

use crate::run::{Run, at, ms, numbered};
use crate::{fdd, is_in_order, send_down, set_bler};

const DOWN: Direction = Direction::Down;

/// A downlink on which RLC alone recovers losses of 5 % of the transport blocks.
fn without_harq() -> NrConfig {
    let mut config = fdd(6_000, 2_000);
    config.down.harq.transmissions = 1;
    set_bler(&mut config.down.harq, 0.05, 0.0);
    config
}

/// Runs a downlink of 60 Mbit/s for two seconds, and one more without packets.
fn run(config: &dyn Settings) -> Run {
    let mut run = Run::recording(config, 3, Recording::Incidents, false);
    send_down(&mut run, 5_000, Duration::from_secs(2));
    run.until(Instant::from_secs(4));
    run.check_conservation();
    assert_eq!(run.counter(DOWN, "unknown_sdus"), 0);
    run
}

fn dropped(run: &Run, why: DropReason) -> u64 {
    run.path.totals().down.dropped_for(why)
}

#[test]
fn sufficient_t_reordering_hides_losses_from_ip() {
    let run = run(&without_harq());
    assert_eq!(run.left.len(), 10_000);
    assert!(is_in_order(&run.numbers()));
    assert!(run.counter(DOWN, "sender/pdus_resent") > 100);
    assert_eq!(run.counter(DOWN, "pdcp/t_reordering_expiries"), 0);
}

#[test]
fn short_t_reordering_turns_retransmission_into_loss() {
    let mut config = without_harq();
    // RLC reports a gap after t-Reassembly of 20 ms.
    config.down.pdcp.t_reordering = Some(ms(10));
    let run = run(&config);
    let late = dropped(&run, DropReason::PdcpLate);
    assert!(late > 300, "{late}: most of 5 % of 10,000");
    assert_eq!(run.left.len() as u64 + late, 10_000);
    assert_eq!(run.counter(DOWN, "pdcp_late"), late);
    assert!(is_in_order(&run.numbers()));
}

#[test]
fn out_of_order_delivery_reorders_without_loss() {
    let mut config = without_harq();
    config.down.pdcp.out_of_order = true;
    let run = run(&config);
    let mut numbers = run.numbers();
    assert!(!is_in_order(&numbers));
    assert_eq!(run.counter(DOWN, "pdcp/held"), 0);
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..10_000));
}

#[test]
fn lte_delivers_in_order_although_harq_reorders() {
    let mut config = LteConfig::default();
    set_bler(&mut config.down.harq, 0.1, 0.1);
    let run = run(&config);
    assert_eq!(run.numbers(), Vec::from_iter(0..10_000));
}

#[test]
fn short_pdcp_numbers_limit_unconfirmed_packets() {
    let mut config = without_harq();
    config.down.pdcp.sn = 12;
    let mut run = Run::new(&config, 3);
    send_down(&mut run, 1_000_000, ms(6));
    run.until(Instant::from_secs(10));
    assert_eq!(run.numbers(), Vec::from_iter(0..6_000), "three times as many packets as the window has");
}

#[test]
fn block_too_small_for_segment_wastes_slot() {
    let mut run = Run::new(&fdd(5, 2_000), 3);
    run.send(Instant::ZERO, DOWN, numbered(0, 100));
    run.until(Instant::from_secs(1));
    assert_eq!((run.left.len(), run.counter(DOWN, "blocks")), (0, 0));
}

/// A downlink that is too slow for its packets, which are discarded after 100 ms.
fn discarding(count_at: CountAt) -> Run {
    let mut config = fdd(3_000, 2_000);
    config.down.pdcp.discard_timer = Some(ms(100));
    config.down.pdcp.count_at = count_at;
    run(&config)
}

#[test]
fn discard_after_numbering_makes_receiver_wait() {
    let run = discarding(CountAt::Submission);
    assert!(dropped(&run, DropReason::PdcpDiscard) > 1_000);
    assert!(run.counter(DOWN, "pdcp/t_reordering_expiries") > 0, "gaps in COUNT");
}

#[test]
fn discard_before_numbering_leaves_no_gap() {
    let run = discarding(CountAt::FirstTransmission);
    assert!(dropped(&run, DropReason::PdcpDiscard) > 1_000);
    assert_eq!(run.counter(DOWN, "pdcp/t_reordering_expiries"), 0);
}

fn handover(forwarding: bool) -> NrConfig {
    let mut config = fdd(10_000, 2_000);
    set_bler(&mut config.down.harq, 0.1, 0.1);
    let interruption = ms(59);
    config.handover =
        Some(HandoverConfig { at: vec![ms(1_000)], every: None, interruption, forwarding, cell: None });
    config
}

#[test]
fn forwarding_handover_only_pauses() {
    let run = run(&handover(true));
    assert_eq!(run.numbers(), Vec::from_iter(0..10_000));
    let pause = run.left.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
    assert!((59..75).contains(&pause.as_millis()), "{pause}");
    let stats = run.path.stats();
    assert_eq!(stats["radio"]["handovers"], 1);
    assert!(run.counter(DOWN, "pdcp/retransmitted_sdus") > 0);
}

#[test]
fn handover_retransmits_unconfirmed_sdus_only() {
    let config = handover(true);
    let mut run = Run::recording(&config, 3, Recording::Incidents, false);
    // All packets are confirmed when the handover begins, except the last three, which have just been submitted.
    for n in 0..20 {
        run.send(at(10 * u64::from(n)), DOWN, numbered(n, 1500));
    }
    for n in 20..23 {
        run.send(Instant::from_nanos(999_999_999), DOWN, numbered(n, 1500));
    }
    run.until(Instant::from_secs(3));
    assert_eq!(run.counter(DOWN, "pdcp/retransmitted_sdus"), 3);
    assert_eq!(run.numbers(), Vec::from_iter(0..23));
}

#[test]
fn handover_without_forwarding_loses_unconfirmed_packets() {
    let run = run(&handover(false));
    let lost = dropped(&run, DropReason::Handover);
    assert!(lost > 0);
    assert_eq!(run.left.len() as u64 + lost, 10_000);
    assert!(is_in_order(&run.numbers()));
    assert_eq!(run.counter(DOWN, "pdcp/retransmitted_sdus"), 0);
}

#[test]
fn handovers_repeat_between_cells() {
    let mut config = handover(true);
    let text = r#"
        schema = 1
        [[stage]]
        kind = "nr"
        handover = { every = "200ms", interruption = "20ms", cell = { slot = "125us", pattern = "DDDSU", down = { tbs = "6147B", blocks = 4 }, up = { tbs = "3329B" } } }
    "#;
    let scenario = airlink::Scenario::parse(text, "cells.toml").unwrap();
    let airlink::scenario::StageConfig::Nr(cells) = &scenario.stages[0].config else { panic!() };
    config.handover.clone_from(&cells.handover);
    let run = run(&config);
    assert_eq!(run.numbers(), Vec::from_iter(0..10_000));
    assert!(run.path.stats()["radio"]["handovers"].as_u64().unwrap() >= 19);
}

/// Number of radio link failures if the first `lost` transport blocks are lost. RLC gives up after `max_retx`
/// retransmissions.
fn failures(lost: u64, max_retx: u32) -> u64 {
    let mut config = fdd(6_000, 2_000);
    config.down.harq.transmissions = 1;
    config.down.harq.bler = BlockErrors::Listed { lost: (0..lost).collect() };
    config.down.rlc.max_retx = max_retx;
    let mut run = Run::recording(&config, 3, Recording::Incidents, false);
    run.send(Instant::ZERO, DOWN, numbered(0, 1500));
    run.until(Instant::from_secs(10));
    assert_eq!(run.numbers(), [0], "PDCP retransmits the packet after the failure");
    run.path.stats()["radio"]["radio_link_failures"].as_u64().unwrap()
}

#[test]
fn radio_link_fails_once_after_max_retx_retransmissions() {
    for max_retx in [1, 2, 4, 8] {
        let first = u64::from(max_retx) + 1;
        assert_eq!(failures(first - 1, max_retx), 0, "{max_retx}");
        assert_eq!(failures(first, max_retx), 1, "{max_retx}");
    }
}

#[test]
fn radio_link_failure_is_reported_and_recovers() {
    let mut config = without_harq();
    set_bler(&mut config.down.harq, 0.5, 0.0);
    config.down.rlc.max_retx = 2;
    config.rlf.recovery = ms(50);
    let mut run = Run::recording(&config, 3, Recording::Incidents, false);
    send_down(&mut run, 500, Duration::from_secs(2));
    run.until(Instant::from_secs(30));
    run.check_conservation();
    let failures = run.path.stats()["radio"]["radio_link_failures"].as_u64().unwrap();
    assert!(failures > 0);
    let incidents = run.path.take_incidents();
    let reported =
        |kind: fn(&IncidentKind) -> bool| incidents.iter().filter(|incident| kind(&incident.kind)).count();
    assert_eq!(reported(|kind| matches!(kind, IncidentKind::RadioLinkFailure { .. })) as u64, failures);
    assert_eq!(reported(|kind| matches!(kind, IncidentKind::RlcReestablished)) as u64, failures);
    assert!(is_in_order(&run.numbers()));
    assert_eq!(run.left.len() as u64 + dropped(&run, DropReason::PdcpLate), 1_000);
}

#[test]
fn running_bearer_refuses_only_agreed_settings() {
    let config = fdd(10_000, 2_000);
    let mut run = Run::new(&config, 3);
    let set = |run: &mut Run, now, change: &dyn Fn(&mut NrConfig)| {
        let mut changed = config.clone();
        change(&mut changed);
        run.until(now);
        run.path.reconfigure(now, 0, &changed).map_err(|error| error.to_string())
    };
    for (name, change) in [
        ("down.rlc", &(|config: &mut NrConfig| config.down.rlc.max_retx = 4) as &dyn Fn(&mut NrConfig)),
        ("up.pdcp.sn", &|config| config.up.pdcp.sn = 12),
        ("down.harq.processes", &|config| config.down.harq.processes = 0),
    ] {
        let error = set(&mut run, at(0), change).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
    // A packet waits until the link is unblocked.
    set(&mut run, at(1), &|config| config.down.tbs = Some("0B".parse().unwrap())).unwrap();
    run.send(at(2), DOWN, numbered(0, 1500));
    set(&mut run, at(100), &|config| {
        (config.down.tbs, config.down.prb, config.down.mcs) = (None, Some(273), Some(0));
    })
    .unwrap();
    // MCS 0 has blocks of 1152 bytes, so the packet needs two slots.
    run.until(at(200));
    assert_eq!(run.left.iter().map(|left| left.0).collect::<Vec<_>>(), [at(103)]);
    // A handover at a given time.
    let interruption = ms(50);
    let handover =
        HandoverConfig { at: vec![ms(300)], every: None, interruption, forwarding: true, cell: None };
    set(&mut run, at(250), &|config| config.handover = Some(handover.clone())).unwrap();
    run.send(at(310), DOWN, numbered(1, 1500));
    run.until(at(400));
    assert_eq!(run.left[1].0, Instant::from_nanos(352_500_000), "350 ms, one slot, and 2 ms");
    assert_eq!(run.path.stats()["radio"]["handovers"], 1);
}
