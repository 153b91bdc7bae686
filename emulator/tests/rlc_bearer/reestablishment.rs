//! RLC failures and re-establishments: packets lost and time needed, depending on the RRC settings.

use airlink::rlc::rrc::{BegunPackets, Scheduled, Sides};
use airlink::stages::times::Intervals;

use super::*;

/// The downlink loses everything until `until`. Its sender gives up after two RESETs.
///
/// The sequence is: first transmission, retransmission by Timer_Poll (200 ms), RESET at its next expiry (200 ms),
/// second RESET (500 ms), unrecoverable error (500 ms). The times are counted from the TTI at 0 ms.
fn dead_downlink(until: u64) -> RlcConfig {
    let mut config = RlcConfig::wcdma_384();
    config.down.sender.discard = Discard::ResetAfterMaxDat { max_dat: 3 };
    config.down.sender.max_rst = 3;
    config.down.channel.outage = Some(Intervals { at: vec![ms(0)], lasts: ms(until), every: None });
    config
}

/// Time of the unrecoverable error of [`dead_downlink`] plus one TTI, in milliseconds.
const ERROR: u64 = 1410;

/// MaxRST RESETs stay unanswered. The stage re-establishes the bearer, as RRC would do.
#[test]
fn failed_bearer_is_reestablished() {
    let config = dead_downlink(1450);
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 100));
    run.until(at(1350));
    assert_eq!(run.path.held(), 1);
    run.send(at(1350), Direction::Down, numbered(1, 100));
    run.until(at(1450));
    assert_eq!(run.path.totals().down.dropped_for(DropReason::RlcReset), 1);
    assert_eq!(run.path.stats()["radio"]["reestablished"], 1);
    run.until(at(3000));
    // The second packet was still queued at the error, so it is delivered afterwards.
    assert_eq!(run.left.len(), 1);
    assert_eq!(run.left[0].2, numbered(1, 100));
    run.check_conservation();
}

#[test]
fn nothing_is_delivered_until_rrc_answers() {
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
    assert_eq!((run.left.len(), run.path.held()), (0, 4), "the failed entity neither sends nor receives");
    run.until(at(4000));
    assert_eq!(reestablished(&run), Some(1));
    let left: Vec<_> =
        run.left.iter().map(|(at, direction, bytes)| (*at, *direction, number_of(bytes))).collect();
    // Packet 3 was transmitted, and is lost together with the receiving entity.
    assert_eq!(left.iter().map(|left| left.2).collect::<Vec<_>>(), [1, 2]);
    assert!(left[0].0 >= at(3400) && left[0].0 <= at(3480), "{left:?}");
    // Downlink: packet 0, with which RLC failed. Uplink: packet 3, which was partly transmitted.
    assert_eq!(run.path.totals().down.dropped_for(DropReason::RlcReset), 1);
    assert_eq!(run.path.totals().up.dropped_for(DropReason::RlcReset), 1);
    run.check_conservation();
}

#[test]
fn bearer_without_reestablishment_stays_dead_holding_packets() {
    let mut config = dead_downlink(1450);
    config.rrc.reestablishment.after = None;
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 100));
    run.send(at(2000), Direction::Down, numbered(1, 100));
    run.until(at(60_000));
    assert_eq!((run.left.len(), run.path.held()), (0, 2));
    run.check_conservation();
}

/// Sends one packet in each direction. Both are on the air when RLC is re-established at 100 ms.
fn reestablished_at_100_ms(of: Sides) -> Run {
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
fn one_sided_reestablishment_keeps_the_other_direction() {
    for (of, lost, arrive) in
        [(Sides::Both, [1, 1], vec![]), (Sides::Down, [1, 0], vec![1]), (Sides::Up, [0, 1], vec![0])]
    {
        let run = reestablished_at_100_ms(of);
        let totals = run.path.totals();
        assert_eq!(
            [&totals.down, &totals.up].map(|totals| totals.dropped_for(DropReason::RlcReset)),
            lost,
            "{of:?}"
        );
        assert_eq!(run.numbers(), arrive, "{of:?}");
    }
}

#[test]
fn both_sides_are_reestablished_during_an_unanswered_reset() {
    let mut config = dead_downlink(1200);
    // RESETs are sent at 410 and 910 ms. The second one would fail.
    config.rrc.reestablishment.scheduled =
        Some(Scheduled { at: vec![ms(700)], every: None, of: Sides::Down });
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 100));
    run.send(at(660), Direction::Up, numbered(1, 100));
    run.until(at(5000));
    assert_eq!(run.path.totals().up.dropped_for(DropReason::RlcReset), 1);
    assert_eq!(run.path.stats()["radio"]["reestablished"], 1);
}

#[test]
fn requeued_packets_are_sent_again_in_order() {
    // With this small window, a poll is due at half of the window. The error comes 100 ms earlier.
    let mut config = dead_downlink(ERROR - 105);
    config.rrc.reestablishment.begun = BegunPackets::Requeued;
    config.down.sender.window = 8;
    config.down.receiver.window = 8;
    let mut run = Run::new(&config, 1);
    for n in 0..6 {
        run.send(at(0), Direction::Down, numbered(n, 100));
    }
    run.until(at(ERROR - 110));
    // The window of 8 PDUs has room for two packets and a part of a third one.
    let waiting = run.counter(Direction::Down, "queue_packets");
    assert!((2..4).contains(&waiting), "{waiting}");
    run.until(at(10_000));
    assert_eq!(run.numbers(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(run.path.totals().down.dropped.iter().sum::<u64>(), 0);
}

#[test]
fn rnc_handover_reestablishes_rlc_on_schedule() {
    for (begun, arrive) in [(BegunPackets::Lost, false), (BegunPackets::Requeued, true)] {
        let mut config = RlcConfig::wcdma_384();
        config.rrc.reestablishment.begun = begun;
        config.rrc.reestablishment.scheduled =
            Some(Scheduled { at: vec![ms(1000)], every: Some(ms(1000)), of: Sides::Both });
        let mut run = Run::new(&config, 1);
        // 100 ms of downlink data. Some is on the air at 1 s, and requeued data may still be on the air at 2 s and 3 s.
        for n in 0..32 {
            run.send(at(980), Direction::Down, numbered(n, 150));
        }
        run.until(at(1990));
        let expected: Vec<u32> = if arrive { (0..32).collect() } else { run.numbers() };
        assert_eq!(run.numbers(), expected);
        let lost = run.path.totals().down.dropped_for(DropReason::RlcReset) as usize;
        assert_eq!(lost > 0, !arrive, "{begun:?}");
        assert_eq!((run.left.len() + lost, run.path.held()), (32, 0));
        run.until(at(5500));
        assert_eq!(run.path.stats()["radio"]["reestablished"], 5);
    }
}

#[test]
fn ttis_that_begin_in_an_outage_are_lost() {
    let mut config = saturated(0.0);
    config.down.channel.outage =
        Some(Intervals { at: vec![ms(1000)], lasts: ms(500), every: Some(ms(2000)) });
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    fill(&mut run, 10);
    run.until(at(5000));
    let pdus = run.take_down_pdus();
    let in_outage = |pdu: &RadioPdu| pdu.at >= at(1000) && (pdu.at - at(1000)).as_millis() % 2000 < 500;
    assert!(pdus.iter().all(|pdu| pdu.lost == in_outage(pdu)));
    let lost = pdus.iter().filter(|pdu| pdu.lost).count() as u64;
    assert!(lost > 0);
    assert_eq!(run.counter(Direction::Down, "blocks_lost_in_outage"), lost);
    assert_eq!(run.counter(Direction::Down, "blocks_lost"), lost);
}

/// For TCP, the outage is a delay: later packets wait for the packet that RLC retransmits.
#[test]
fn rlc_bridges_a_short_outage_without_loss() {
    let mut config = RlcConfig::wcdma_384();
    config.down.channel.outage = Some(Intervals { at: vec![ms(1000)], lasts: ms(700), every: None });
    let mut run = Run::new(&config, 1);
    for n in 0..40 {
        run.send(at(u64::from(n) * 50), Direction::Down, numbered(n, 500));
    }
    run.until(at(10_000));
    assert_eq!(run.numbers(), (0..40).collect::<Vec<_>>());
    let gaps = run.left.windows(2).map(|pair| pair[1].0 - pair[0].0);
    // Longer than the outage: it lasts until Timer_Poll expires and the STATUS PDU arrives.
    let longest = gaps.max().unwrap();
    assert!(longest >= ms(700) && longest < ms(1300), "{longest}");
}
