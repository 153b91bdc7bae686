//! §11.6: SDU discard with explicit signalling.

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

fn never(sn: u16) -> impl FnMut(&Seen) -> bool {
    move |seen| matches!(&seen.kind, PduKind::Data { sn: sent, .. } if sent.get() == sn)
}

/// The MRW and MRW_ACK super-fields of one end.
fn mrws(pair: &Pair, from: usize) -> Vec<(u64, Sufi)> {
    let all =
        pair.statuses(from).into_iter().flat_map(|(at, sufis)| sufis.into_iter().map(move |sufi| (at, sufi)));
    all.filter(|(_, sufi)| matches!(sufi, Sufi::Mrw { .. } | Sufi::MrwAck { .. })).collect()
}

fn mrw(sns: &[u16], nlength: u8) -> Sufi {
    Sufi::Mrw { sns: sns.iter().map(|sn| Sn::new(*sn)).collect(), long_distance: false, nlength }
}

fn mrw_ack(sn_ack: u16, n: u8) -> Sufi {
    Sufi::MrwAck { n, sn_ack: Sn::new(sn_ack) }
}

#[test]
fn after_max_dat_the_sdus_of_the_window_up_to_that_pdu_are_discarded() {
    let mut pair = Pair::new(by_max_dat(3)).losing(never(2));
    pair.send_pdus(A, 6);
    pair.run_until(at(3_000));
    assert_eq!(pair.transmissions(A, 2), 2, "MaxDAT − 1");
    let procedure: Vec<_> = [A, B].iter().flat_map(|end| mrws(&pair, *end)).collect();
    // It is reported missing at 40 ms, and at 140 ms, when Timer_Status_Prohibit has expired.
    assert_eq!(procedure, [(180, mrw(&[3], 0)), (220, mrw_ack(6, 0))]);
    assert_eq!(pair.arrived(B), [0, 1, 3, 4, 5]);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [2]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [0, 1, 3, 4, 5]);
    assert_eq!(pair.ends[A].stats().resets(), 0);
}

#[test]
fn mrw_with_n_when_another_sdu_begins_in_the_pdu_where_the_discarded_one_ends() {
    let mut pair = Pair::new(by_max_dat(2)).losing(never(0));
    // 50 octets: PDU 0 and ten octets of PDU 1, where SDU 1 ends too and SDU 2 begins.
    for octets in [50, 10, 60] {
        pair.send(A, octets);
    }
    pair.run_until(at(3_000));
    assert_eq!(mrws(&pair, A)[0].1, mrw(&[1], 1));
    assert_eq!(mrws(&pair, B)[0].1, mrw_ack(4, 0), "PDU 1 is there, so VR(R) is further on");
    assert_eq!(pair.arrived(B), [1, 2]);
    assert_eq!(pair.delivered[B][1].len(), 60);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0]);
}

#[test]
fn mrw_ack_with_n_when_that_pdu_is_still_missing() {
    let mut pair = Pair::new(by_time(ms(150))).losing(|seen| never(0)(seen) || never(1)(seen));
    pair.run_until(at(1));
    pair.send(A, 50);
    pair.run_until(at(9));
    pair.send(A, 100);
    pair.run_until(at(250));
    // Timer_Discard of the first SDU expires at 151 ms, that of the second at 159 ms, whose MRW has to wait.
    assert_eq!(mrws(&pair, A), [(160, mrw(&[1], 1)), (240, mrw(&[4], 0))]);
    assert_eq!(mrws(&pair, B), [(200, mrw_ack(1, 1))]);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0]);
    pair.run_until(at(1_000));
    assert_eq!(mrws(&pair, B)[1..], [(280, mrw_ack(4, 0))]);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0, 1]);
}

#[test]
fn timer_discard_takes_the_expired_sdu_and_all_before_it_and_nothing_later() {
    let mut pair = Pair::new(by_time(ms(300))).losing(|seen| seen.from == B && seen.at < at(320));
    pair.send_pdus(A, 2);
    pair.run_until(at(100));
    pair.send_pdus(A, 2);
    pair.run_until(at(3_000));
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0, 1]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [2, 3]);
    assert_eq!(mrws(&pair, A), [(300, mrw(&[2], 0))]);
    assert_eq!(mrws(&pair, B), [(340, mrw_ack(4, 0))], "obsolete: VR(R) was there already");
    assert_eq!(pair.ends[B].stats().mrws_obsolete, 1);
    assert_eq!(pair.arrived(B), [0, 1, 2, 3], "every one had arrived, only nobody knew");
}

#[test]
fn an_sdu_that_was_never_begun_is_dropped_without_a_word() {
    let mut config = by_time(ms(300));
    config.sender.window = 1;
    let mut pair = Pair::new(config).losing(|_| true);
    pair.send(A, 39);
    pair.send(A, 39);
    pair.run_until(at(299));
    pair.inject_status(A, vec![ack(1)]);
    pair.ends[A].submit(pair.now, SduId(7), vec![7; 39]);
    pair.blocks = 0;
    pair.run_until(at(300));
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Acknowledged), (1, SduOutcome::Discarded)]);
    assert_eq!(pair.ends[A].waiting(), (1, 39));
    assert_eq!(pair.ends[A].stats().discards, 0);
}

#[test]
fn an_sdu_that_was_sent_in_part_is_not_taken_for_the_beginning_of_the_next() {
    // For a while the peer gets every PDU, but no MRW.
    let mut pair = Pair::new(by_time(ms(400)))
        .losing(|seen| seen.from == A && seen.kind == PduKind::Status && seen.at < at(550));
    pair.blocks = 1;
    pair.send(A, 4_000);
    pair.run_until(at(395));
    pair.send(A, 77);
    pair.run_until(at(590));
    // PDU 40 would have been the next of the first SDU. It is never sent.
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
fn an_mrw_out_of_a_full_window_says_that_its_number_lies_beyond() {
    let mut config = by_time(ms(100));
    config.sender.window = 4;
    config.receiver.window = 4;
    let mut pair =
        Pair::new(config).losing(|seen| matches!(seen.kind, PduKind::Data { .. }) && seen.at < at(90));
    pair.send(A, 400);
    pair.run_until(at(50));
    pair.send(A, 39);
    pair.run_until(at(1_000));
    let long = Sufi::Mrw { sns: vec![Sn::new(5)], long_distance: true, nlength: 0 };
    assert_eq!(mrws(&pair, A)[0], (100, long));
    assert_eq!(mrws(&pair, B)[0], (140, mrw_ack(5, 0)));
    assert!(pair.outcomes(A, SduOutcome::Discarded).contains(&0));
}

#[test]
fn an_unanswered_mrw_is_repeated_and_after_max_mrw_there_is_a_reset() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|seen| {
        let mrw = matches!(&seen.pdu, Pdu::Status(Status(sufis)) if matches!(sufis[0], Sufi::Mrw { .. }));
        mrw || never(0)(seen) && seen.epoch == 0
    });
    pair.send_pdus(A, 2);
    pair.run_until(at(1_000));
    // It is reported missing at 40 ms; Timer_MRW is 100 ms, MaxMRW 4.
    assert_eq!(mrws(&pair, A), [80, 180, 280, 380].map(|at| (at, mrw(&[1], 0))), "always the same");
    assert_eq!(pair.resets(A).iter().map(|(at, _)| *at).collect::<Vec<_>>(), [480]);
    assert_eq!(pair.ends[A].stats().resets_max_mrw, 1);
    assert_eq!(pair.outcomes(A, SduOutcome::Discarded), [0]);
}

#[test]
fn an_mrw_that_was_answered_before_is_answered_again() {
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

/// §11.6.3: SN_MRW1 is less than VR(MR), so VR(MR) itself lies behind.
#[test]
fn an_mrw_whose_first_number_is_vr_mr_is_obsolete() {
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

#[test]
fn an_mrw_ack_that_nobody_waits_for_or_that_does_not_match_is_ignored() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|seen| seen.from == B || never(0)(seen));
    for octets in [50, 10, 60] {
        pair.send(A, octets);
    }
    pair.inject_status(A, vec![mrw_ack(0, 0), Sufi::NoMore]);
    pair.run_until(at(50));
    pair.inject_status(A, vec![list(&[0]), ack(4)]);
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
fn an_mrw_ack_is_ignored_before_the_mrw_has_gone_out_and_heard_before_it_is_repeated() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|seen| seen.from == B || never(0)(seen));
    pair.send_pdus(A, 4);
    pair.run_until(at(55));
    pair.inject_status(A, vec![list(&[0]), ack(1)]);
    pair.inject_status(A, vec![mrw_ack(1, 0), Sufi::NoMore]);
    assert_eq!(pair.outcomes[A], [], "Timer_MRW does not run");
    pair.run_until(at(60));
    assert_eq!(mrws(&pair, A).len(), 1);
    // Timer_MRW expires, but there is no block for the MRW.
    pair.blocks = 0;
    pair.run_until(at(165));
    pair.inject_status(A, vec![mrw_ack(1, 0), Sufi::NoMore]);
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Discarded)]);
}

#[test]
fn an_lsn_beyond_sn_mrw_ends_the_procedure_too() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|seen| seen.from == B || never(0)(seen));
    pair.send_pdus(A, 4);
    pair.run_until(at(50));
    pair.inject_status(A, vec![list(&[0]), ack(1)]);
    pair.run_until(at(60));
    pair.inject_status(A, vec![ack(3)]);
    assert_eq!(
        pair.outcomes[A],
        [(0, SduOutcome::Discarded), (1, SduOutcome::Acknowledged), (2, SduOutcome::Acknowledged)]
    );
    pair.run_until(at(195));
    assert_eq!(mrws(&pair, A).len(), 1, "Timer_MRW does not repeat it");
}

#[test]
fn send_mrw_names_every_sdu_fifteen_at_a_time() {
    let mut config = by_time(ms(300));
    config.sender.send_mrw = true;
    let mut pair =
        Pair::new(config).losing(|seen| matches!(seen.kind, PduKind::Data { .. }) && seen.at < at(310));
    pair.blocks = 12;
    pair.send_pdus(A, 20);
    pair.run_until(at(3_000));
    let all: Vec<u16> = (0..20).collect();
    // SN_MRW_LENGTH is where the Receiver resumes.
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
fn an_sdu_that_arrived_before_its_discard_is_delivered_before_its_outcome_is_told() {
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
fn a_full_window_of_4095_leaves_room_for_the_pdu_that_a_discard_never_sends() {
    let mut config = by_time(ms(400));
    config.sender.window = 4095;
    config.receiver.window = 4095;
    let mut pair =
        Pair::new(config).losing(|seen| matches!(seen.kind, PduKind::Data { .. }) && seen.at < at(390));
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
    assert_eq!(discarded, [0, 1, 2, 3], "the last one without having been begun, hence at once");
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [4]);
    assert_eq!(pair.arrived(B), [4]);
}

#[test]
fn an_lsn_beyond_sn_mrw_with_a_hole_before_it_does_not_end_the_procedure() {
    let mut pair = Pair::new(by_max_dat(2)).losing(|seen| seen.from == B || never(0)(seen));
    pair.send_pdus(A, 4);
    pair.run_until(at(50));
    pair.inject_status(A, vec![list(&[0]), ack(1)]);
    pair.run_until(at(60));
    pair.inject_status(A, vec![list(&[0]), ack(4)]);
    pair.run_until(at(195));
    assert_eq!(mrws(&pair, A).len(), 2, "the peer still waits for what was discarded");
    assert_eq!(pair.outcomes[A], []);
}
