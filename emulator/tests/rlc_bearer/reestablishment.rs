//! RLC fails and starts anew: what it costs, by how RRC is set.

use airlink::rlc::rrc::{Begun, Scheduled, Sides};
use airlink::stages::times::Spells;

use super::*;

/// The downlink is dead until `until`, and its sender needs two RESETs to give up: the first transmission, one more for
/// Timer_Poll, at its next expiry a RESET, another one. That is an error at 200 + 200 + 2 · 500 ms after the TTI of 0.
fn dead_downlink(until: u64) -> RlcConfig {
    let mut config = RlcConfig::wcdma_384();
    config.down.sender.discard = Discard::ResetAfterMaxDat { max_dat: 3 };
    config.down.sender.max_rst = 3;
    config.down.channel.outage = Some(Spells { at: vec![ms(0)], lasts: ms(until), every: None });
    config
}

/// When the error of [`dead_downlink`] comes, or a TTI later.
const ERROR: u64 = 1410;

/// MaxRST: a dead uplink answers no RESET. RRC would re-establish the bearer, and so does the stage.
#[test]
fn a_bearer_that_failed_is_established_anew() {
    let config = dead_downlink(1450);
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 100));
    run.until(at(1350));
    assert_eq!(run.path.held(), 1);
    run.send(at(1350), Direction::Down, numbered(1, 100));
    run.until(at(1450));
    assert_eq!(run.path.totals().down.dropped_for(Why::RlcReset), 1);
    assert_eq!(run.path.stats()["radio"]["reestablished"], 1);
    run.until(at(3000));
    // The packet that had not begun was begun after that, and was lost once.
    assert_eq!(run.left.len(), 1);
    assert_eq!(run.left[0].2, numbered(1, 100));
    run.check_conservation();
}

#[test]
fn until_rrc_has_answered_nothing_gets_through() {
    let mut config = dead_downlink(1450);
    config.rrc.reestablishment.after = Some(ms(2000));
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 100));
    run.send(at(1000), Direction::Down, numbered(1, 100));
    run.until(at(ERROR));
    let reestablished = |run: &Run| run.path.stats()["radio"]["reestablished"].as_u64();
    assert_eq!((run.path.held(), reestablished(&run)), (2, Some(0)));
    run.send(at(1500), Direction::Down, numbered(2, 100));
    run.send(at(1500), Direction::Up, numbered(3, 100));
    run.until(at(3300));
    assert_eq!((run.left.len(), run.path.held()), (0, 4), "the entity is silent, and deaf");
    run.until(at(4000));
    assert_eq!(reestablished(&run), Some(1));
    let left: Vec<_> =
        run.left.iter().map(|(at, direction, bytes)| (*at, *direction, number_of(bytes))).collect();
    // 3 was transmitted, and is lost with the entity that was to receive it.
    assert_eq!(left.iter().map(|left| left.2).collect::<Vec<_>>(), [1, 2]);
    assert!(left[0].0 >= at(3400) && left[0].0 <= at(3480), "{left:?}");
    // Of 3 something had been transmitted, and 0 is what RLC failed with.
    assert_eq!(run.path.totals().down.dropped_for(Why::RlcReset), 1);
    assert_eq!(run.path.totals().up.dropped_for(Why::RlcReset), 1);
    run.check_conservation();
}

#[test]
fn a_bearer_that_is_never_started_anew_stays_dead_and_keeps_what_it_has() {
    let mut config = dead_downlink(1450);
    config.rrc.reestablishment.after = None;
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 100));
    run.send(at(2000), Direction::Down, numbered(1, 100));
    run.until(at(60_000));
    assert_eq!((run.left.len(), run.path.held()), (0, 2));
    run.check_conservation();
}

/// A packet goes each way, and is on the air when RLC starts anew.
fn started_anew_at_100_ms(of: Sides) -> Run {
    let mut config = RlcConfig::wcdma_384();
    config.rrc.reestablishment.scheduled = Some(Scheduled { at: vec![ms(100)], every: None, of });
    let mut run = Run::new(&config, 1);
    run.send(at(75), Direction::Down, numbered(0, 100));
    run.send(at(75), Direction::Up, numbered(1, 100));
    run.until(at(5000));
    run.check_conservation();
    assert_eq!(run.path.held(), 0);
    run
}

#[test]
fn one_sided_reestablishment_leaves_the_other_direction_as_it_is() {
    for (of, lost, arrive) in
        [(Sides::Both, [1, 1], vec![]), (Sides::Down, [1, 0], vec![1]), (Sides::Up, [0, 1], vec![0])]
    {
        let run = started_anew_at_100_ms(of);
        let totals = run.path.totals();
        assert_eq!(
            [&totals.down, &totals.up].map(|totals| totals.dropped_for(Why::RlcReset)),
            lost,
            "{of:?}"
        );
        assert_eq!(run.left.iter().map(|left| number_of(&left.2)).collect::<Vec<_>>(), arrive, "{of:?}");
    }
}

#[test]
fn while_a_reset_has_no_answer_both_sides_start_anew() {
    let mut config = dead_downlink(1200);
    // RESETs at 410 and 910 ms, the second of which would fail.
    config.rrc.reestablishment.scheduled =
        Some(Scheduled { at: vec![ms(700)], every: None, of: Sides::Down });
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 100));
    run.send(at(660), Direction::Up, numbered(1, 100));
    run.until(at(5000));
    assert_eq!(run.path.totals().up.dropped_for(Why::RlcReset), 1);
    assert_eq!(run.path.stats()["radio"]["reestablished"], 1);
}

#[test]
fn what_was_begun_goes_again_in_its_order_where_it_is_queued_again() {
    // Half of the window polls sooner than an empty buffer: the error comes 100 ms earlier.
    let mut config = dead_downlink(ERROR - 105);
    config.rrc.reestablishment.begun = Begun::Requeued;
    config.down.sender.window = 8;
    config.down.receiver.window = 8;
    let mut run = Run::new(&config, 1);
    for n in 0..6 {
        run.send(at(0), Direction::Down, numbered(n, 100));
    }
    run.until(at(ERROR - 110));
    // The window of 8 PDUs has room for two of them and the beginning of a third, or the end.
    let waiting = run.counter(Direction::Down, "queue_packets");
    assert!((2..4).contains(&waiting), "{waiting}");
    run.until(at(10_000));
    assert_eq!(run.left.iter().map(|left| number_of(&left.2)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(run.path.totals().down.dropped.iter().sum::<u64>(), 0);
}

#[test]
fn a_handover_to_another_rnc_starts_rlc_anew_when_it_is_scheduled() {
    for (begun, arrive) in [(Begun::Lost, false), (Begun::Requeued, true)] {
        let mut config = RlcConfig::wcdma_384();
        config.rrc.reestablishment.begun = begun;
        config.rrc.reestablishment.scheduled =
            Some(Scheduled { at: vec![ms(1000)], every: Some(ms(1000)), of: Sides::Both });
        let mut run = Run::new(&config, 1);
        // 100 ms of the downlink, on the air at 1 s and at 2 s, and all that is left of the second has not arrived by 3 s.
        for n in 0..32 {
            run.send(at(980), Direction::Down, numbered(n, 150));
        }
        run.until(at(1990));
        let expected: Vec<u32> =
            if arrive { (0..32).collect() } else { run.left.iter().map(|left| number_of(&left.2)).collect() };
        assert_eq!(run.left.iter().map(|left| number_of(&left.2)).collect::<Vec<_>>(), expected);
        let lost = run.path.totals().down.dropped_for(Why::RlcReset) as usize;
        assert_eq!(lost > 0, !arrive, "{begun:?}");
        assert_eq!((run.left.len() + lost, run.path.held()), (32, 0));
        run.until(at(5500));
        assert_eq!(run.path.stats()["radio"]["reestablished"], 5);
    }
}

#[test]
fn no_block_of_a_tti_that_begins_in_an_outage_arrives() {
    let mut config = saturated(0.0);
    config.down.channel.outage = Some(Spells { at: vec![ms(1000)], lasts: ms(500), every: Some(ms(2000)) });
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    fill(&mut run, 10);
    run.until(at(5000));
    let pdus: Vec<_> =
        run.path.take_pdus().into_iter().filter(|pdu| pdu.direction == Direction::Down).collect();
    let hole = |pdu: &RadioPdu| pdu.at >= at(1000) && (pdu.at - at(1000)).as_millis() % 2000 < 500;
    assert!(pdus.iter().all(|pdu| pdu.lost == hole(pdu)));
    let lost = pdus.iter().filter(|pdu| pdu.lost).count() as u64;
    assert!(lost > 0);
    assert_eq!(run.counter(Direction::Down, "blocks_lost_in_outage"), lost);
    assert_eq!(run.counter(Direction::Down, "blocks_lost"), lost);
}

/// One cause, as a stall that TCP sees: the packets behind the hole wait for the one that RLC repeats.
#[test]
fn rlc_bridges_a_hole_that_is_shorter_than_its_patience() {
    let mut config = RlcConfig::wcdma_384();
    config.down.channel.outage = Some(Spells { at: vec![ms(1000)], lasts: ms(700), every: None });
    let mut run = Run::new(&config, 1);
    for n in 0..40 {
        run.send(at(u64::from(n) * 50), Direction::Down, numbered(n, 500));
    }
    run.until(at(10_000));
    assert_eq!(
        run.left.iter().map(|left| number_of(&left.2)).collect::<Vec<_>>(),
        (0..40).collect::<Vec<_>>()
    );
    let gaps = run.left.windows(2).map(|pair| pair[1].0 - pair[0].0);
    // From the last packet before it, until Timer_Poll has asked and the answer has come: more than the hole alone.
    let longest = gaps.max().unwrap();
    assert!(longest >= ms(700) && longest < ms(1300), "{longest}");
}
