//! The transmission window and retransmissions (§9.4, §11.3.2), and settings that deadlock.

use super::*;

fn windowed(window: u16, poll: PollConfig) -> EntityConfig {
    let mut config = polling(poll);
    config.sender.window = window;
    config.receiver.window = window;
    config
}

#[test]
fn full_window_blocks_new_data_but_allows_poll() {
    let poll = PollConfig { timer_poll_periodic: Some(ms(100)), ..PollConfig::NONE };
    let mut pair = Pair::new(windowed(8, poll)).losing(|entry| entry.from == B && entry.at < at(200));
    pair.send_pdus(A, 12);
    pair.run_until(at(199));
    let mut sent: Vec<_> = (0..8).map(|sn| (u64::from(sn) / 4 * 10, sn, false)).collect();
    sent.push((100, 7, true));
    assert_eq!(pair.data(A), sent);
    assert_eq!(pair.ends[A].stats().window_stalls, 1);
    pair.run_until(at(1_000));
    assert_eq!(pair.arrived(B), (0..12).collect::<Vec<_>>());
}

/// §11.3.4.2: AMD PDUs outside the reception window.
#[test]
fn sn_within_window_below_vr_r_is_duplicate() {
    let mut pair = Pair::new(windowed(8, PollConfig::NONE));
    (0..10).for_each(|sn| pair.inject_data(B, sn, false));
    let entry = |pair: &Pair| (pair.ends[B].stats().duplicates, pair.ends[B].stats().outside_window);
    assert_eq!(entry(&pair), (0, 0));
    pair.inject_data(B, 2, false);
    assert_eq!(entry(&pair), (1, 0));
    pair.inject_data(B, 1, false);
    assert_eq!(entry(&pair), (1, 1));
    pair.inject_data(B, 17, false);
    assert_eq!(entry(&pair), (1, 1), "the last SN of the window");
    pair.inject_data(B, 18, false);
    assert_eq!(entry(&pair), (1, 2));
}

#[test]
fn narrowed_window_blocks_retransmissions_except_last_pdu() {
    let mut pair = Pair::new(windowed(8, PollConfig::NONE));
    pair.send_pdus(A, 8);
    pair.inject_status_at(100, A, vec![Sufi::Window { wsn: 2 }, list(&[1, 2, 5, 7]), ack(0)]);
    pair.run_until(at(200));
    assert_eq!(pair.data(A)[8..], [(100, 1, false), (100, 7, false)]);
    pair.inject_status(A, vec![Sufi::Window { wsn: 0 }, Sufi::NoMore]);
    pair.run_until(at(300));
    assert_eq!(pair.data(A).len(), 10, "WSN = 0 is ignored");
    pair.inject_status(A, vec![Sufi::Window { wsn: 4000 }, Sufi::NoMore]);
    pair.run_until(at(400));
    assert_eq!(pair.data(A)[10..], [(300, 2, false), (300, 5, false)]);
    pair.send_pdus(A, 20);
    pair.run_until(at(500));
    assert_eq!(pair.data(A).len(), 12, "never more than Configured_Tx_Window_Size");
}

#[test]
fn only_nacked_pdus_are_retransmitted_in_sn_order() {
    let poll = PollConfig { last_pdu: true, last_retransmission: true, ..PollConfig::NONE };
    let mut pair = Pair::new(windowed(128, poll)).losing(first_of(A, &[2, 5, 6]));
    pair.send_pdus(A, 9);
    pair.run_until(at(1_000));
    assert_eq!(pair.data(A)[9..], [(100, 2, false), (100, 5, false), (100, 6, true)]);
    assert_eq!(pair.arrived(B), (0..9).collect::<Vec<_>>());
    assert_eq!(pair.ends[B].stats().duplicates, 0);
}

#[test]
fn retransmissions_precede_new_data() {
    let mut pair = Pair::new(quiet());
    pair.send_pdus(A, 3);
    pair.inject_status_at(10, A, vec![list(&[0, 2]), ack(3)]);
    pair.send_pdus(A, 3);
    pair.run_until(at(30));
    assert_eq!(pair.sns(A)[3..], [0, 2, 3, 4, 5]);
}

#[test]
fn nack_for_queued_retransmission_does_not_count_twice() {
    let mut config = quiet();
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 3 };
    let mut pair = Pair::new(config);
    pair.send_pdus(A, 3);
    pair.run_until(at(10));
    for _ in 0..5 {
        pair.inject_status(A, vec![list(&[1]), ack(3)]);
    }
    pair.run_until(at(50));
    assert_eq!((pair.transmissions(A, 1), pair.resets(A).len()), (2, 0));
}

#[test]
fn acknowledged_pdu_leaves_retransmission_queue() {
    let mut pair = Pair::new(quiet());
    pair.send_pdus(A, 3);
    pair.inject_status_at(10, A, vec![list(&[1]), ack(3)]);
    pair.inject_status(A, vec![ack(3)]);
    pair.run_until(at(50));
    assert_eq!(pair.data(A).len(), 3);
}

#[test]
fn ignore_nack_within_prevents_duplicate_retransmissions() {
    let mut config = polling(PollConfig { poll_pdu: Some(1), ..PollConfig::NONE });
    config.receiver.timer_status_prohibit = Some(ms(20));
    for (ignore, copies) in [(None, 3), (Some(ms(70)), 0)] {
        config.sender.ignore_nack_within = ignore;
        let mut pair = Pair::new(config.clone()).losing(first_of(A, &[1]));
        for _ in 0..30 {
            pair.send_pdus(A, 1);
            pair.run_for(ms(10));
        }
        pair.run_for(ms(500));
        // Reports at 60, 80, 100 and 120 ms request SN 1. The copy that the first one requested arrives at
        // 140 ms.
        assert_eq!(pair.ends[B].stats().duplicates, copies);
        assert_eq!(pair.arrived(B).len(), 30);
    }
}

#[test]
fn only_timer_poll_recovers_lost_tail() {
    let mut config = polling(PollConfig { last_pdu: true, ..PollConfig::NONE });
    config.receiver.missing_pdu_indicator = true;
    for (timer_poll, arrived) in [(None, 2), (Some(ms(200)), 4)] {
        config.sender.poll.timer_poll = timer_poll;
        let mut pair = Pair::new(config.clone()).losing(first_of(A, &[2, 3]));
        pair.send_pdus(A, 4);
        pair.run_until(at(10_000));
        assert_eq!(pair.arrived(B).len(), arrived, "without Timer_Poll this configuration deadlocks");
    }
}

#[test]
fn only_timer_poll_recovers_lost_status() {
    let mut config = windowed(4, PollConfig { last_pdu: true, poll_window: Some(99), ..PollConfig::NONE });
    config.receiver.missing_pdu_indicator = true;
    for (timer_poll, arrived) in [(None, 4), (Some(ms(200)), 8)] {
        config.sender.poll.timer_poll = timer_poll;
        let mut pair = Pair::new(config.clone()).losing(|entry| entry.from == B && entry.at < at(60));
        pair.send_pdus(A, 8);
        pair.run_until(at(10_000));
        assert_eq!(pair.arrived(B).len(), arrived, "without Timer_Poll this configuration deadlocks");
    }
}

#[test]
fn sdus_arrive_across_sequence_number_wrap() {
    let mut config = windowed(
        512,
        PollConfig { last_pdu: true, last_retransmission: true, poll_window: Some(50), ..PollConfig::NONE },
    );
    config.sender.poll.timer_poll = Some(ms(200));
    config.receiver.missing_pdu_indicator = true;
    let mut pair = Pair::new(config).losing(first_of(A, &[4094, 4095, 0, 1]));
    for _ in 0..340 {
        pair.send(A, 1_500);
        pair.run_for(ms(200));
    }
    pair.run_for(ms(2_000));
    assert_eq!(pair.arrived(B).len(), 340);
    assert!(pair.delivered[B].iter().zip(0_u64..).all(|(sdu, n)| *sdu == vec![n as u8; 1_500]));
    // A PDU that is retransmitted after the wrap keeps its epoch, so (epoch, SN) identifies it.
    let mut first = std::collections::BTreeSet::new();
    let mut again = 0;
    for entry in pair.from(A) {
        let PduKind::Data { sn, transmission, .. } = &entry.kind else { continue };
        let new = first.insert((entry.epoch, sn.get()));
        assert_eq!(new, *transmission == 1, "epoch {}, SN {sn}", entry.epoch);
        again += u32::from(!new);
    }
    assert!(again >= 14 && first.last().is_some_and(|(epoch, _)| *epoch == 3), "{again}");
}

#[test]
fn unordered_delivery_forwards_complete_sdus() {
    for (in_sequence, arrived) in [(true, vec![0, 1, 2, 3]), (false, vec![0, 3, 1, 2])] {
        let mut config = windowed(128, PollConfig { last_pdu: true, ..PollConfig::NONE });
        config.receiver.in_sequence = in_sequence;
        let mut pair = Pair::new(config).losing(first_of(A, &[1]));
        pair.send_pdus(A, 4);
        pair.run_until(at(1_000));
        // Only PDU 1 shows whether SDU 2 begins with PDU 2.
        assert_eq!(pair.arrived(B), arrived);
    }
}

/// With such a window, only VT(S) − 1 may carry a poll (§11.3.2), even if it has been acknowledged.
#[test]
fn large_window_repeats_polls_with_acknowledged_pdu() {
    let (max_dat, timer_mrw, max_mrw) = (4, ms(100), 4);
    for discard in
        [Discard::MrwAfterMaxDat { max_dat, timer_mrw, max_mrw }, Discard::ResetAfterMaxDat { max_dat }]
    {
        let poll = PollConfig { last_pdu: true, timer_poll: Some(ms(200)), ..PollConfig::NONE };
        let mut config = windowed(2048, poll);
        config.sender.discard = discard;
        config.receiver.missing_pdu_indicator = true;
        config.receiver.timer_status_prohibit = Some(ms(100));
        // PDU 0 never arrives. Only the first of the reports before 2 s arrives.
        let mut pair = Pair::new(config).losing(|entry| {
            let report = entry.from == B && entry.at > at(50) && entry.at < at(2_000);
            report || matches!(&entry.kind, PduKind::Data { sn, .. } if sn.get() == 0)
        });
        pair.send_pdus(A, 3);
        pair.run_until(at(1_999));
        assert_eq!(pair.transmissions(A, 2), 10, "{discard:?}: one poll every 200 ms");
        assert_eq!((pair.transmissions(A, 0), pair.outcomes[A].len()), (2, 0), "{discard:?}");
        assert_eq!((pair.resets(A).len(), pair.ends[A].stats().discards), (0, 0));
        pair.run_until(at(5_000));
        assert_eq!(pair.transmissions(A, 0), 3, "{discard:?}: MaxDAT applies to PDU 0");
        let stats = pair.ends[A].stats();
        match discard {
            Discard::ResetAfterMaxDat { .. } => assert_eq!((stats.resets_max_dat, stats.discards), (1, 0)),
            _ => assert_eq!((stats.resets(), pair.outcomes(A, SduOutcome::Discarded)), (0, vec![0])),
        }
    }
}

#[test]
fn no_poll_is_sent_without_unacknowledged_data() {
    let poll = PollConfig { last_pdu: true, timer_poll: Some(ms(195)), ..PollConfig::NONE };
    let mut config = windowed(2560, poll);
    config.sender.discard = Discard::MrwAfterMaxDat { max_dat: 3, timer_mrw: ms(100), max_mrw: 4 };
    let mut pair = Pair::new(config).losing(|_| true);
    pair.send_pdus(A, 4);
    for time in [50, 197] {
        pair.inject_status_at(time, A, vec![list(&[0]), ack(4)]);
    }
    // Timer_Poll expired at 195 ms. At 197 ms PDU 0 was given up. The other PDUs are acknowledged.
    pair.run_until(at(290));
    assert_eq!((pair.transmissions(A, 0), pair.transmissions(A, 3)), (2, 1));
    assert_eq!(pair.statuses(A).len(), 1, "only the MRW");
}

#[test]
fn first_nack_is_never_ignored() {
    let poll = PollConfig { last_pdu: true, timer_poll: Some(ms(100)), poll_sufi: true, ..PollConfig::NONE };
    let mut config = polling(poll);
    config.receiver.missing_pdu_indicator = true;
    for ignore in [70, 90, 200, 10_000] {
        config.sender.ignore_nack_within = Some(ms(ignore));
        let mut pair = Pair::new(config.clone()).losing(first_of(A, &[1, 3]));
        pair.send_pdus(A, 4);
        pair.run_until(at(1_000));
        assert_eq!(pair.arrived(B), [0, 1, 2, 3], "{ignore} ms");
        assert_eq!(pair.ends[A].stats().nacks_ignored, 0);
    }
}

#[test]
fn ignored_nack_does_not_stop_timer_poll() {
    let poll = PollConfig {
        last_pdu: true,
        last_retransmission: true,
        timer_poll: Some(ms(100)),
        poll_sufi: true,
        ..PollConfig::NONE
    };
    let mut config = polling(poll);
    config.sender.ignore_nack_within = Some(ms(200));
    // The last PDU and its first copy are lost. The report about the copy arrives before the 200 ms are over.
    let mut pair = Pair::new(config).losing(
        |entry| matches!(&entry.kind, PduKind::Data { sn, transmission: 1 | 2, .. } if sn.get() == 3),
    );
    pair.send_pdus(A, 4);
    pair.run_until(at(10_000));
    assert!(pair.ends[A].stats().nacks_ignored > 0);
    assert_eq!(pair.arrived(B), [0, 1, 2, 3], "Timer_Poll stopped, so SN 3 was not requested again");
}

/// Maximum of VT(S) − VT(A) when an AMD PDU leaves A, from `since` (in ms) on. B's reports count from their
/// arrival at A.
fn most_outstanding(pair: &Pair, since: u64) -> u64 {
    let (mut vt_s, mut most) = (0, 0);
    for entry in pair.from(A).filter(|entry| matches!(entry.pdu, Pdu::Amd(_))) {
        vt_s += u64::from(matches!(entry.kind, PduKind::Data { transmission: 1, .. }));
        let arrived = |(sent, _, _): &(u64, Vec<u16>, u16)| *sent + 40 <= entry.at.as_millis();
        let reports = pair.reported(B);
        let vt_a = reports.iter().filter(|report| arrived(report)).map(|report| report.2).max().unwrap_or(0);
        if entry.at >= at(since) {
            most = most.max(vt_s - u64::from(vt_a));
        }
    }
    most
}

#[test]
fn sender_obeys_advertised_window_also_after_reset() {
    let poll = PollConfig { poll_window: Some(99), last_pdu: true, ..PollConfig::NONE };
    let mut config = windowed(128, poll);
    config.receiver.windows =
        vec![WindowAt { at: ms(500), window: 20 }, WindowAt { at: ms(1_000), window: 6 }];
    config.receiver.advertise_window = Some(40);
    let mut pair = Pair::new(config);
    pair.send_pdus(A, 1_000);
    for (end, window) in [(490, 40), (990, 20), (1_490, 6)] {
        let begin = pair.now.as_millis() + 200;
        pair.run_until(at(end));
        assert_eq!(pair.ends[A].window(), window);
        assert_eq!(most_outstanding(&pair, begin), u64::from(window));
    }
    let stats = pair.ends[A].stats();
    assert!(stats.window_full >= stats.window_stalls && stats.window_stalls > 10, "{stats:?}");
    assert!(stats.windows_applied > 10, "every report repeats the window");
    assert_eq!(stats.windows_applied, pair.ends[B].stats().windows_sent);
    pair.inject_status(A, vec![ack(4_000)]);
    assert_eq!(pair.ends[A].stats().resets(), 1);
    pair.run_for(ms(60));
    assert_eq!(pair.ends[B].stats().resets_by_peer, 1);
    pair.run_for(ms(100));
    assert_eq!(
        pair.ends[A].window(),
        6,
        "the window is advertised again although nothing else triggers a report"
    );
}

#[test]
fn disabling_window_advertisement_restores_configured_window() {
    let mut config = windowed(128, PollConfig::NONE);
    config.receiver.advertise_window = Some(8);
    let mut pair = Pair::new(config.clone());
    pair.run_until(at(100));
    assert_eq!((pair.ends[A].window(), pair.ends[B].window()), (8, 8));
    config.receiver.advertise_window = None;
    let now = pair.now;
    pair.ends[B].reconfigure(now, &config);
    pair.run_until(at(200));
    assert_eq!((pair.ends[A].window(), pair.ends[B].window()), (128, 8));
    // A new schedule applies from now on. Windows whose time has passed are skipped.
    config.receiver.windows = vec![WindowAt { at: ms(100), window: 1 }, WindowAt { at: ms(300), window: 2 }];
    let now = pair.now;
    pair.ends[B].reconfigure(now, &config);
    assert_eq!(pair.ends[B].next_deadline(), Some(at(300)));
    pair.run_until(at(299));
    assert_eq!(pair.ends[A].window(), 128);
    pair.run_until(at(400));
    assert_eq!(pair.ends[A].window(), 2);
}
