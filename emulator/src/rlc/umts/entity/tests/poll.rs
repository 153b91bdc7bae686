//! Poll triggers (§9.7.1), and the timers that repeat or prohibit polls.

use super::*;

#[test]
fn last_pdu_in_buffer_polls() {
    let mut pair = Pair::new(polling(PollConfig { last_pdu: true, ..PollConfig::NONE }));
    pair.send_pdus(A, 6);
    pair.run_until(at(1_000));
    assert_eq!(pair.polls(A), [(10, 5)]);
    assert_eq!(pair.statuses(B), [(50, vec![ack(6)])]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn last_pdu_in_retransmission_buffer_polls() {
    let poll = PollConfig { last_retransmission: true, ..PollConfig::NONE };
    let mut pair = Pair::new(polling(poll));
    pair.send_pdus(A, 6);
    pair.run_until(at(100));
    assert_eq!(pair.polls(A), []);
    pair.inject_status(A, vec![list(&[1, 3]), ack(6)]);
    pair.run_until(at(200));
    assert_eq!(pair.data(A)[6..], [(100, 1, false), (100, 3, true)]);
}

#[test]
fn poll_pdu_trigger_counts_new_and_retransmitted_pdus() {
    let mut pair = Pair::new(polling(PollConfig { poll_pdu: Some(4), ..PollConfig::NONE }));
    pair.send_pdus(A, 10);
    pair.run_until(at(20));
    assert_eq!(pair.polls(A), [(0, 3), (10, 7)]);
    pair.inject_status(A, vec![list(&[0, 1]), ack(10)]);
    pair.run_until(at(50));
    assert_eq!(pair.polls(A)[2..], [(30, 1)], "SN 8, 9, 0 and 1 count as four PDUs");
}

#[test]
fn poll_sdu_trigger_polls_with_last_segment() {
    let mut pair = Pair::new(polling(PollConfig { poll_sdu: Some(2), ..PollConfig::NONE }));
    for _ in 0..4 {
        pair.send(A, 99);
    }
    pair.run_until(at(1_000));
    // Each SDU takes 100 bytes with its Length Indicator: the second SDU ends in PDU 4, the fourth in PDU 9.
    assert_eq!(pair.polls(A), [(10, 4), (20, 9)]);
}

#[test]
fn window_based_polling_starts_at_configured_share() {
    let mut config = polling(PollConfig { poll_window: Some(50), ..PollConfig::NONE });
    config.sender.window = 8;
    let mut pair = Pair::new(config).losing_answers();
    pair.send_pdus(A, 8);
    pair.run_until(at(1_000));
    // J = (VT(S) + 1 − VT(A)) / VT(WS), with VT(S) before the PDU: 4/8 with SN 3.
    assert_eq!(pair.polls(A).iter().map(|(_, sn)| *sn).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
}

#[test]
fn timer_poll_repeats_unanswered_poll() {
    let mut config = polling(PollConfig { last_pdu: true, timer_poll: Some(ms(200)), ..PollConfig::NONE });
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 4 };
    let mut pair = Pair::new(config).losing(|entry| entry.from == B && entry.at < at(400));
    pair.send_pdus(A, 3);
    pair.run_until(at(2_000));
    assert_eq!(
        pair.polls(A),
        [(0, 2), (200, 2), (400, 2)],
        "VT(S) − 1 carries the poll until it is answered"
    );
    assert_eq!(pair.reports(B), [40, 240, 440]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [0, 1, 2]);
    assert_eq!(pair.ends[A].next_deadline(), None);
}

#[test]
fn timer_poll_stops_only_when_poll_is_answered() {
    let config = polling(PollConfig { last_pdu: true, timer_poll: Some(ms(200)), ..PollConfig::NONE });
    for (name, other, answer) in
        [("ACK", vec![ack(2)], vec![ack(3)]), ("NACK", vec![list(&[1]), ack(3)], vec![list(&[2]), ack(3)])]
    {
        let mut pair = Pair::new(config.clone()).losing_answers();
        pair.send_pdus(A, 3);
        pair.inject_status_at(100, A, other);
        assert_eq!(pair.ends[A].next_deadline(), Some(at(200)), "{name} for another PDU");
        pair.inject_status(A, answer);
        assert_eq!(pair.ends[A].next_deadline(), None, "{name}");
    }
    // PDU 3 was sent after the poll.
    let poll = PollConfig { poll_pdu: Some(3), timer_poll: Some(ms(200)), ..PollConfig::NONE };
    let mut pair = Pair::new(polling(poll)).losing_answers();
    pair.send_pdus(A, 4);
    pair.inject_status_at(100, A, vec![list(&[1, 3]), ack(4)]);
    assert_eq!(pair.ends[A].next_deadline(), Some(at(200)), "NACK for a later PDU");
}

#[test]
fn new_poll_restarts_timer_poll() {
    let config = polling(PollConfig { last_pdu: true, timer_poll: Some(ms(200)), ..PollConfig::NONE });
    let mut pair = Pair::new(config).losing_answers();
    pair.send_pdus(A, 1);
    pair.send_pdus_at(150, A, 1);
    pair.run_until(at(360));
    assert_eq!(pair.polls(A), [(0, 0), (150, 1), (350, 1)]);
}

#[test]
fn timer_poll_prohibit_merges_polls_at_expiry() {
    let poll = PollConfig { last_pdu: true, timer_poll_prohibit: Some(ms(100)), ..PollConfig::NONE };
    let mut pair = Pair::new(polling(poll)).losing_answers();
    for _ in 0..4 {
        pair.send_pdus(A, 1);
        pair.run_for(ms(20));
    }
    pair.run_until(at(1_000));
    // SN 1, 2 and 3 would have polled. Nothing is scheduled at 100 ms, so VT(S) − 1 is retransmitted.
    assert_eq!(pair.data(A), [(0, 0, true), (20, 1, false), (50, 2, false), (60, 3, false), (100, 3, true)]);
}

#[test]
fn delayed_poll_is_dropped_after_full_acknowledgement() {
    let poll = PollConfig { last_pdu: true, timer_poll_prohibit: Some(ms(100)), ..PollConfig::NONE };
    let mut pair = Pair::new(polling(poll)).losing_answers();
    pair.send_pdus(A, 1);
    pair.send_pdus_at(20, A, 1);
    pair.inject_status_at(80, A, vec![ack(2)]);
    pair.send_pdus_at(150, A, 5);
    pair.run_until(at(1_000));
    assert_eq!(pair.polls(A), [(0, 0), (160, 6)], "the dropped poll does not return with later data");
}

#[test]
fn periodic_timer_polls_while_data_is_unacknowledged() {
    let poll = PollConfig { timer_poll_periodic: Some(ms(100)), ..PollConfig::NONE };
    let mut pair = Pair::new(polling(poll)).losing(|entry| entry.from == B && entry.at < at(250));
    pair.send_pdus_at(110, A, 2);
    pair.run_until(at(1_050));
    assert_eq!(pair.polls(A), [(200, 1), (300, 1)]);
    assert_eq!(pair.ends[A].next_deadline(), Some(at(1_100)), "the timer keeps running");
}

#[test]
fn ue_poll_timer_starts_at_tti_end() {
    let poll = PollConfig { last_pdu: true, timer_poll: Some(ms(200)), ..PollConfig::NONE };
    let config = EntityConfig { timers: TimersStart::WhenTransmitted { tti: TTI }, ..polling(poll) };
    let mut pair = Pair::new(config).losing_answers();
    pair.send_pdus(A, 1);
    pair.run_until(at(250));
    assert_eq!(pair.polls(A), [(0, 0), (210, 0)]);
}

#[test]
fn poll_sufi_polls_without_data_and_recovers_tail() {
    let poll = PollConfig { last_pdu: true, timer_poll: Some(ms(200)), poll_sufi: true, ..PollConfig::NONE };
    let mut pair = Pair::new(polling(poll)).losing(first_of(A, &[2, 3]));
    pair.send_pdus(A, 4);
    pair.run_until(at(1_000));
    assert_eq!(pair.statuses(A), [(200, vec![Sufi::Poll { sn: Sn::new(3) }, Sufi::NoMore])]);
    assert!(matches!(pair.statuses(B)[0], (240, ref sufis) if sufis.last() == Some(&ack(4))));
    assert_eq!(pair.data(A)[4..], [(280, 2, false), (280, 3, false)]);
    assert_eq!(pair.arrived(B), [0, 1, 2, 3]);
}

#[test]
fn large_window_polls_only_with_last_pdu() {
    for (window, carried_by) in [(2047, 0), (2560, 2)] {
        let mut config = polling(PollConfig { timer_poll_periodic: Some(ms(100)), ..PollConfig::NONE });
        config.sender.window = window;
        let mut pair = Pair::new(config).losing_answers();
        pair.send_pdus(A, 3);
        pair.inject_status_at(50, A, vec![list(&[0]), ack(3)]);
        pair.run_until(at(110));
        assert_eq!(pair.polls(A), [(100, carried_by)], "{window}");
    }
}
