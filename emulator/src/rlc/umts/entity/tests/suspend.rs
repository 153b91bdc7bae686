//! The local suspend function (§9.7.5).

use super::*;

fn usual() -> EntityConfig {
    let mut config = polling(PollConfig::default());
    config.receiver.missing_pdu_indicator = true;
    config
}

#[test]
fn suspended_entity_sends_n_pdus_and_retransmissions() {
    let mut pair = Pair::new(usual()).losing(first_of(A, &[3, 5]));
    pair.send_pdus(A, 20);
    pair.run_until(at(5));
    assert_eq!(pair.ends[A].suspend(2), Sn::new(4), "the confirmation contains VT(S)");
    pair.send_pdus(B, 3);
    pair.run_until(at(2_000));
    let new = pair.from(A).filter(|entry| matches!(entry.kind, PduKind::Data { transmission: 1, .. }));
    assert_eq!(new.count(), 6, "below VT(S) + 2");
    assert_eq!(pair.arrived(B), [0, 1, 2, 3, 4, 5], "PDUs 3 and 5 were retransmitted");
    assert_eq!(pair.arrived(A), [20, 21, 22], "a suspended entity still receives");
    let stats = pair.ends[A].stats();
    assert_eq!(
        (stats.window_full, stats.window_stalls),
        (0, 0),
        "the suspension does not count as a full window"
    );
    assert_eq!(pair.ends[A].sendable_pdus(4), 0);
    pair.ends[A].resume();
    pair.run_until(at(4_000));
    assert_eq!(pair.arrived(B), (0..20).collect::<Vec<_>>());
}

#[test]
fn suspended_entity_stays_suspended_after_reset() {
    let mut config = usual();
    config.sender.timer_rst = ms(100);
    let mut pair = Pair::new(config);
    pair.send_pdus(A, 12);
    pair.run_until(at(5));
    pair.ends[A].suspend(1);
    pair.inject_status(A, vec![ack(9)]);
    pair.run_until(at(1_000));
    assert_eq!(pair.ends[B].stats().resets_by_peer, 1);
    // The reset discards the SDUs that were sent. N has not been used, so one more PDU may be sent.
    assert_eq!(pair.outcomes(A, SduOutcome::Reset), [0, 1, 2, 3]);
    let after = |pair: &Pair| pair.from(A).filter(|entry| entry.epoch >> 12 == 1).count();
    assert_eq!(pair.arrived(B)[pair.arrived(B).len() - 1], 4);
    assert!(after(&pair) >= 1);
    assert_eq!(pair.ends[A].unsent().0, 7);
    pair.ends[A].resume();
    pair.run_until(at(2_000));
    assert_eq!((pair.ends[A].unsent().0, pair.arrived(B).last()), (0, Some(&11)));
}

/// §9.7.1, trigger 1: "the last AMD PDU that is allowed to transmit".
#[test]
fn last_pdu_before_suspension_polls() {
    let mut pair = Pair::new(polling(PollConfig { last_pdu: true, ..PollConfig::NONE }));
    pair.send_pdus(A, 20);
    pair.run_until(at(5));
    pair.ends[A].suspend(2);
    assert_eq!(pair.ends[A].suspended(), Some(2));
    pair.run_until(at(500));
    assert_eq!(pair.polls(A), [(10, 5)]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [0, 1, 2, 3, 4, 5]);
    assert_eq!(pair.ends[A].suspended(), Some(0));
    pair.ends[A].resume();
    assert_eq!(pair.ends[A].suspended(), None);
    pair.run_until(at(1_000));
    assert_eq!(pair.polls(A), [(10, 5), (530, 19)]);
}
