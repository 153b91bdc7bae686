//! SDU discard with explicit signalling (§11.6).

use super::*;

fn by_max_dat(max_dat: u8) -> EntityConfig {
    let mut config = polling(PollConfig {
        last_pdu: true,
        last_retransmission: true,
        timer_poll: Some(ms(200)),
        ..PollConfig::NONE
    });
    config.sender.discard = Discard::MrwAfterMaxDat { max_dat, timer_mrw: ms(100), max_mrw: 4 };
    config.receiver.missing_pdu_indicator = true;
    config.receiver.timer_status_prohibit = Some(ms(100));
    config
}

fn by_time(timer_discard: Duration) -> EntityConfig {
    let mut config = by_max_dat(3);
    config.sender.discard = Discard::Timer { timer_discard, timer_mrw: ms(100), max_mrw: 4 };
    config
}

fn all_transmissions(sn: u16) -> impl FnMut(&LogEntry) -> bool {
    move |entry| matches!(&entry.kind, PduKind::Data { sn: sent, .. } if sent.get() == sn)
}

/// (time, super-field) of the MRWs and MRW_ACKs that an end has sent.
fn mrws(pair: &Pair, from: usize) -> Vec<(u64, Sufi)> {
    let all =
        pair.statuses(from).into_iter().flat_map(|(at, sufis)| sufis.into_iter().map(move |sufi| (at, sufi)));
    all.filter(|(_, sufi)| matches!(sufi, Sufi::Mrw(_) | Sufi::MrwAck(_))).collect()
}

#[test]
fn reaching_max_dat_discards_sdu_with_mrw() {
    let mut pair = Pair::new(by_max_dat(3)).losing(all_transmissions(2));
    pair.send_pdus(A, 6);
    pair.run_until(at(3_000));
    assert_eq!(pair.transmissions(A, 2), 2, "MaxDAT − 1");
    let procedure: Vec<_> = [A, B].iter().flat_map(|end| mrws(&pair, *end)).collect();
    // PDU 2 is reported missing at 40 ms and, after Timer_Status_Prohibit has expired, at 140 ms.
    assert_eq!(procedure, [(180, mrw(&[3], 0)), (220, mrw_ack(6, 0))]);
    assert_eq!(pair.arrived(B), [0, 1, 3, 4, 5]);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [2]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [0, 1, 3, 4, 5]);
    assert_eq!(pair.ends[A].stats().resets(), 0);
}

#[test]
fn mrw_has_nlength_when_next_sdu_shares_pdu() {
    let mut pair = Pair::new(by_max_dat(2)).losing(all_transmissions(0));
    // The 50 bytes fill PDU 0 and ten bytes of PDU 1, in which SDU 1 ends and SDU 2 begins.
    for octets in [50, 10, 60] {
        pair.send(A, octets);
    }
    pair.run_until(at(3_000));
    assert_eq!(mrws(&pair, A)[0].1, mrw(&[1], 1));
    assert_eq!(mrws(&pair, B)[0].1, mrw_ack(4, 0), "PDU 1 has arrived, so VR(R) has moved past it");
    assert_eq!(pair.arrived(B), [1, 2]);
    assert_eq!(pair.delivered[B][1].len(), 60);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0]);
}

#[test]
fn mrw_ack_has_n_while_pdu_is_missing() {
    let mut pair = Pair::new(by_time(ms(150)))
        .losing(|entry| all_transmissions(0)(entry) || all_transmissions(1)(entry));
    pair.run_until(at(1));
    pair.send(A, 50);
    pair.run_until(at(9));
    pair.send(A, 100);
    pair.run_until(at(250));
    // Timer_Discard expires at 151 ms for the first SDU, and at 159 ms for the second one, whose MRW has to
    // wait.
    assert_eq!(mrws(&pair, A), [(160, mrw(&[1], 1)), (240, mrw(&[4], 0))]);
    assert_eq!(mrws(&pair, B), [(200, mrw_ack(1, 1))]);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0]);
    pair.run_until(at(1_000));
    assert_eq!(mrws(&pair, B)[1..], [(280, mrw_ack(4, 0))]);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0, 1]);
}

#[test]
fn timer_discard_discards_expired_sdu_and_earlier_ones() {
    let mut pair = Pair::new(by_time(ms(300))).losing(|entry| entry.from == B && entry.at < at(320));
    pair.send_pdus(A, 2);
    pair.send_pdus_at(100, A, 2);
    pair.run_until(at(3_000));
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0, 1]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [2, 3]);
    assert_eq!(mrws(&pair, A), [(300, mrw(&[2], 0))]);
    assert_eq!(mrws(&pair, B), [(340, mrw_ack(4, 0))], "the MRW is obsolete, because VR(R) has passed it");
    assert_eq!(pair.ends[B].stats().mrws_obsolete, 1);
    assert_eq!(pair.arrived(B), [0, 1, 2, 3], "all SDUs had arrived, but the reports were lost");
}

#[test]
fn unsent_sdu_is_discarded_without_signalling() {
    let mut config = by_time(ms(300));
    config.sender.window = 1;
    let mut pair = Pair::new(config).losing(|_| true);
    pair.send(A, 39);
    pair.send(A, 39);
    pair.inject_status_at(299, A, vec![ack(1)]);
    pair.ends[A].submit(pair.now, SduId(7), vec![7; 39]);
    pair.blocks = 0;
    pair.run_until(at(300));
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Acknowledged), (1, SduOutcome::Discarded)]);
    assert_eq!(pair.ends[A].unsent(), (1, 39));
    assert_eq!(pair.ends[A].stats().discards, 0);
}

#[test]
fn timer_discard_applies_after_withdrawal_of_discarded_sdus() {
    let mut config = by_time(ms(300));
    config.sender.window = 1;
    let mut pair = Pair::new(config).losing(|_| true);
    // SDU 1 is discarded without a transmission.
    pair.send_pdus(A, 2);
    pair.run_until(at(310));
    assert_eq!(pair.ends[A].stats().sdus_discarded, 2);
    let now = pair.now;
    for end in &mut pair.ends {
        end.withdraw();
        end.reestablish(now, 7);
    }
    pair.send_pdus(A, 1);
    pair.run_for(ms(310));
    assert_eq!(pair.ends[A].stats().sdus_discarded, 3);
}

#[test]
fn discarded_partial_sdu_is_not_joined_with_next() {
    // Until 550 ms, the peer receives every PDU except the MRWs.
    let mut pair = Pair::new(by_time(ms(400)))
        .losing(|entry| entry.from == A && entry.kind == PduKind::Status && entry.at < at(550));
    pair.blocks = 1;
    pair.send(A, 4_000);
    pair.run_until(at(395));
    pair.send(A, 77);
    pair.run_until(at(590));
    // PDU 40 would have continued the first SDU. It is never sent.
    assert_eq!(mrws(&pair, A), [(400, mrw(&[41], 0)), (500, mrw(&[41], 0))]);
    assert_eq!((pair.transmissions(A, 39), pair.transmissions(A, 40)), (1, 0));
    assert!(pair.transmissions(A, 42) > 0);
    assert!(pair.arrived(B).is_empty());
    pair.run_until(at(1_000));
    assert_eq!((pair.arrived(B), pair.delivered[B][0].len()), (vec![1], 77));
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Discarded), (1, SduOutcome::Acknowledged)]);
    assert_eq!(pair.ends[A].stats().resets(), 0);
}

#[test]
fn mrw_from_full_window_signals_sn_beyond_window() {
    let mut config = by_time(ms(100));
    config.sender.window = 4;
    config.receiver.window = 4;
    let mut pair =
        Pair::new(config).losing(|entry| matches!(entry.kind, PduKind::Data { .. }) && entry.at < at(90));
    pair.send(A, 400);
    pair.run_until(at(50));
    pair.send(A, 39);
    pair.run_until(at(1_000));
    assert_eq!(mrws(&pair, A)[0], (100, long_mrw(5)));
    assert_eq!(mrws(&pair, B)[0], (140, mrw_ack(5, 0)));
    assert!(pair.outcomes(A, SduOutcome::Discarded).contains(&0));
}

#[test]
fn unanswered_mrw_repeats_then_resets_at_max_mrw() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|entry| {
        let mrw = matches!(&entry.pdu, Pdu::Status(Status(sufis)) if matches!(sufis[0], Sufi::Mrw(_)));
        mrw || all_transmissions(0)(entry) && entry.epoch == 0
    });
    pair.send_pdus(A, 2);
    pair.run_until(at(1_000));
    // PDU 0 is reported missing at 40 ms. Timer_MRW is 100 ms, and MaxMRW is 4.
    assert_eq!(
        mrws(&pair, A),
        [80, 180, 280, 380].map(|at| (at, mrw(&[1], 0))),
        "every repetition is identical"
    );
    assert_eq!(pair.resets(A).iter().map(|(at, _)| *at).collect::<Vec<_>>(), [480]);
    assert_eq!(pair.ends[A].stats().resets_max_mrw, 1);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0]);
}

#[test]
fn repeated_mrw_is_answered_again() {
    let mut pair = Pair::new(quiet());
    for _ in 0..2 {
        pair.inject_status(B, vec![mrw(&[5], 0), Sufi::NoMore]);
        pair.run_for(ms(20));
    }
    pair.inject_data(B, 5, false);
    pair.inject_status(B, vec![mrw(&[5], 0), Sufi::NoMore]);
    pair.run_for(ms(20));
    let acks: Vec<_> = mrws(&pair, B).into_iter().map(|(_, sufi)| sufi).collect();
    assert_eq!(acks, [mrw_ack(5, 0), mrw_ack(5, 0), mrw_ack(6, 0)]);
    assert_eq!(pair.ends[B].stats().mrws_obsolete, 1);
}

/// §11.6.3: SN_MRW1 is less than VR(MR), so an SN_MRW1 equal to VR(MR) is treated as one below VR(R).
#[test]
fn mrw_starting_at_vr_mr_is_obsolete() {
    let mut config = quiet();
    config.receiver.window = 8;
    let mut pair = Pair::new(config);
    for (sn, obsolete) in [(8, 1), (7, 1)] {
        pair.inject_status(B, vec![mrw(&[sn], 0), Sufi::NoMore]);
        pair.run_for(ms(20));
        assert_eq!(pair.ends[B].stats().mrws_obsolete, obsolete, "{sn}");
    }
    let acks: Vec<_> = mrws(&pair, B).into_iter().map(|(_, sufi)| sufi).collect();
    assert_eq!(acks, [mrw_ack(0, 0), mrw_ack(7, 0)]);
}

/// With LENGTH = 0, SN_MRW1 is VR(R) or above. Only an MRW at most one window below VR(R) is known to be
/// late.
#[test]
fn long_mrw_is_obsolete_within_one_window() {
    for (below, obsolete) in [(8, 1), (9, 0)] {
        let mut config = quiet();
        config.receiver.window = 8;
        let mut pair = Pair::new(config).losing_answers();
        (0..20).for_each(|sn| pair.inject_data(B, sn, false));
        pair.inject_status(B, vec![long_mrw(20 + Sn::MODULUS - below), Sufi::NoMore]);
        assert_eq!(pair.ends[B].stats().mrws_obsolete, obsolete, "{below} below VR(R)");
    }
}

#[test]
fn unexpected_or_mismatched_mrw_ack_is_ignored() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|entry| entry.from == B || all_transmissions(0)(entry));
    for octets in [50, 10, 60] {
        pair.send(A, octets);
    }
    pair.inject_status(A, vec![mrw_ack(0, 0), Sufi::NoMore]);
    pair.inject_status_at(50, A, vec![list(&[0]), ack(4)]);
    pair.run_until(at(70));
    for (sn_ack, n) in [(0, 0), (1, 0), (1, 2), (2, 1), (9, 0)] {
        pair.inject_status(A, vec![mrw_ack(sn_ack, n), Sufi::NoMore]);
        assert_eq!(pair.outcomes[A], [], "SN_ACK {sn_ack}, N {n}");
    }
    pair.inject_status(A, vec![mrw_ack(1, 1), Sufi::NoMore]);
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Discarded)]);
    assert_eq!(pair.ends[A].stats().resets(), 0);
}

#[test]
fn mrw_ack_counts_only_after_mrw_is_sent() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|entry| entry.from == B || all_transmissions(0)(entry));
    pair.send_pdus(A, 4);
    pair.inject_status_at(55, A, vec![list(&[0]), ack(1)]);
    pair.inject_status(A, vec![mrw_ack(1, 0), Sufi::NoMore]);
    assert_eq!(pair.outcomes[A], [], "Timer_MRW is not running");
    pair.run_until(at(60));
    assert_eq!(mrws(&pair, A).len(), 1);
    // Timer_MRW expires, but no block is available for the MRW.
    pair.blocks = 0;
    pair.inject_status_at(165, A, vec![mrw_ack(1, 0), Sufi::NoMore]);
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Discarded)]);
}

#[test]
fn lsn_beyond_sn_mrw_ends_discard_procedure() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|entry| entry.from == B || all_transmissions(0)(entry));
    pair.send_pdus(A, 4);
    pair.inject_status_at(50, A, vec![list(&[0]), ack(1)]);
    pair.inject_status_at(60, A, vec![ack(3)]);
    assert_eq!(
        pair.outcomes[A],
        [(0, SduOutcome::Discarded), (1, SduOutcome::Acknowledged), (2, SduOutcome::Acknowledged)]
    );
    pair.run_until(at(195));
    assert_eq!(mrws(&pair, A).len(), 1, "Timer_MRW does not repeat the MRW");
}

#[test]
fn send_mrw_lists_every_sdu_fifteen_per_mrw() {
    let mut config = by_time(ms(300));
    config.sender.send_mrw = true;
    let mut pair =
        Pair::new(config).losing(|entry| matches!(entry.kind, PduKind::Data { .. }) && entry.at < at(310));
    pair.blocks = 12;
    pair.send_pdus(A, 20);
    pair.run_until(at(3_000));
    let all: Vec<u16> = (0..20).collect();
    // The last number is SN_MRW_LENGTH, where the Receiver continues.
    let first: Vec<u16> = all[..14].iter().copied().chain([15]).collect();
    let second: Vec<u16> = all[15..19].iter().copied().chain([20]).collect();
    let sent: Vec<_> = mrws(&pair, A).into_iter().map(|(_, sufi)| sufi).collect();
    assert_eq!(sent, [mrw(&first, 0), mrw(&second, 0)]);
    assert_eq!(
        mrws(&pair, B).into_iter().map(|(_, sufi)| sufi).collect::<Vec<_>>(),
        [mrw_ack(15, 0), mrw_ack(20, 0)]
    );
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded).len(), 20);
}

#[test]
fn sdu_delivered_before_discard_is_still_reported_discarded() {
    let mut pair = Pair::new(by_time(ms(45))).losing(|_| false);
    pair.send(A, 60);
    pair.run_until(at(49));
    assert_eq!(pair.outcomes[A], []);
    assert_eq!(pair.arrived(B), [0]);
    pair.run_until(at(1_000));
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Discarded)]);
    assert_eq!(pair.arrived(B), [0]);
}

#[test]
fn full_4095_window_leaves_room_for_discarded_pdu() {
    let mut config = by_time(ms(400));
    config.sender.window = 4095;
    config.receiver.window = 4095;
    let mut pair =
        Pair::new(config).losing(|entry| matches!(entry.kind, PduKind::Data { .. }) && entry.at < at(390));
    pair.blocks = 200;
    for _ in 0..4 {
        pair.send(A, 60_000);
    }
    pair.run_until(at(300));
    pair.send(A, 40);
    pair.run_until(at(3_000));
    assert_eq!(pair.ends[A].stats().resets(), 0);
    let mut discarded = pair.outcomes(A, SduOutcome::Discarded);
    discarded.sort_unstable();
    assert_eq!(discarded, [0, 1, 2, 3], "SDU 3 was not started, so it is discarded without an MRW");
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [4]);
    assert_eq!(pair.arrived(B), [4]);
}

#[test]
fn lsn_after_gap_does_not_end_discard_procedure() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|entry| entry.from == B || all_transmissions(0)(entry));
    pair.send_pdus(A, 4);
    pair.inject_status_at(50, A, vec![list(&[0]), ack(1)]);
    pair.inject_status_at(60, A, vec![list(&[0]), ack(4)]);
    pair.run_until(at(195));
    assert_eq!(mrws(&pair, A).len(), 2, "the peer still waits for the discarded PDU");
    assert_eq!(pair.outcomes[A], []);
}
