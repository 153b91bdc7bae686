//! The RLC reset procedure (§11.4).

use super::*;

/// With MaxDAT = 3, a PDU is transmitted twice before there is a RESET.
fn resetting() -> EntityConfig {
    let mut config = polling(PollConfig {
        last_pdu: true,
        last_retransmission: true,
        timer_poll: Some(ms(200)),
        ..PollConfig::NONE
    });
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 3 };
    config.receiver.missing_pdu_indicator = true;
    config
}

/// Loses every transmission of an SN before the first RESET.
fn all_transmissions(sn: u16) -> impl FnMut(&LogEntry) -> bool {
    move |entry| entry.epoch == 0 && matches!(&entry.kind, PduKind::Data { sn: sent, .. } if sent.get() == sn)
}

#[test]
fn reset_follows_max_dat_minus_one_transmissions() {
    for max_dat in [2, 3, 4, 7] {
        let mut config = resetting();
        config.sender.discard = Discard::ResetAfterMaxDat { max_dat };
        let mut pair = Pair::new(config).losing(all_transmissions(1));
        pair.send_pdus(A, 5);
        pair.run_until(at(3_000));
        assert_eq!(pair.transmissions(A, 1), usize::from(max_dat) - 1);
        assert_eq!(pair.resets(A).len(), 1);
        assert_eq!(pair.ends[A].stats().resets_max_dat, 1);
    }
}

#[test]
fn max_dat_1_is_treated_as_2() {
    let mut config = resetting();
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 1 };
    let mut pair = Pair::new(config).losing(all_transmissions(1));
    pair.send_pdus(A, 5);
    pair.run_until(at(3_000));
    assert_eq!((pair.transmissions(A, 1), pair.resets(A).len()), (1, 1));
}

#[test]
fn reset_discards_started_sdus_and_keeps_unsent() {
    let mut config = resetting();
    config.sender.window = 4;
    let mut pair = Pair::new(config).losing(all_transmissions(0));
    // PDUs 0 to 3 fill the window and carry 160 bytes: a segment of SDU 3 was sent, but nothing of SDUs 4 and
    // 5.
    for octets in [39, 39, 39, 100, 50, 50] {
        pair.send(A, octets);
    }
    pair.run_until(at(5_000));
    let (reset_at, reset) = pair.resets(A)[0];
    assert_eq!(reset, Reset { rsn: false, hfni: 0 });
    assert_eq!(pair.reset_acks(B), [(reset_at + 40, reset)]);
    assert_eq!(pair.outcomes(A, SduOutcome::Reset), [0, 1, 2, 3]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [4, 5]);
    assert_eq!(pair.arrived(B), [4, 5]);
    let restarted = pair.data(A).into_iter().find(|(time, ..)| *time > reset_at);
    assert_eq!(restarted, Some((reset_at + 80, 0, false)), "data restarts from SN 0 after the RESET ACK");
    assert_eq!(pair.log.last().map(|entry| entry.epoch >> 12), Some(1));
}

#[test]
fn pending_reset_blocks_sending_and_receiving() {
    let mut pair =
        Pair::new(resetting()).losing(|entry| entry.kind == PduKind::ResetAck && entry.at < at(500));
    pair.send_pdus(A, 3);
    pair.inject_status_at(15, A, vec![ack(9)]);
    pair.inject_data_at(35, A, 0, true);
    pair.inject_status(A, vec![ack(3)]);
    pair.send_pdus(A, 3);
    pair.run_until(at(500));
    let from_a: Vec<_> = pair.from(A).skip(3).map(|entry| entry.kind.clone()).collect();
    assert_eq!(from_a, [PduKind::Reset]);
    assert_eq!((pair.arrived(A).len(), pair.outcomes[A].len()), (0, 0));
}

#[test]
fn lost_reset_ack_is_repeated_without_second_reset() {
    let mut config = resetting();
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 40 };
    let mut acks = 0;
    let mut pair = Pair::new(config).losing(move |entry| {
        acks += u32::from(entry.kind == PduKind::ResetAck);
        entry.kind == PduKind::ResetAck && acks == 1
    });
    pair.send_pdus(A, 3);
    pair.inject_status_at(15, A, vec![ack(9)]);
    pair.run_until(at(100));
    // B has already been reset. The SDUs that it sends now must survive the repeated RESET.
    pair.send_pdus(B, 2);
    pair.run_until(at(5_000));
    let reset = Reset { rsn: false, hfni: 0 };
    assert_eq!(pair.resets(A), [(20, reset), (520, reset)], "Timer_RST repeats the same RESET");
    assert_eq!(pair.reset_acks(B).len(), 2);
    assert_eq!(pair.reset_acks(B)[0].1, pair.reset_acks(B)[1].1);
    assert_eq!(pair.ends[B].stats().resets_by_peer, 1);
    assert_eq!(pair.arrived(A), [3, 4], "the repeated RESET discarded no SDU");
    assert_eq!(pair.ends[A].stats().resets(), 1);
}

#[test]
fn rsn_alternates_and_hfni_grows_per_reset() {
    let mut pair = Pair::new(resetting());
    // More RESETs than MaxRST = 4: each one that is acknowledged sets VT(RST) to 0.
    for _ in 0..5 {
        pair.send_pdus(A, 1);
        pair.run_for(ms(15));
        pair.inject_status(A, vec![ack(9)]);
        pair.run_for(ms(500));
    }
    let resets: Vec<_> = pair.resets(A).iter().map(|(_, reset)| (reset.rsn, reset.hfni)).collect();
    assert_eq!(resets, [(false, 0), (true, 1), (false, 2), (true, 3), (false, 4)]);
}

#[test]
fn simultaneous_resets_complete_on_both_ends() {
    let mut pair = Pair::new(resetting());
    pair.send_pdus(A, 2);
    pair.send_pdus(B, 2);
    pair.run_until(at(15));
    for end in [A, B] {
        pair.inject_status(end, vec![ack(9)]);
    }
    pair.run_until(at(300));
    for end in [A, B] {
        assert_eq!(pair.resets(end).len(), 1);
        assert_eq!(pair.reset_acks(end).len(), 1);
        pair.send_pdus(end, 3);
    }
    pair.run_until(at(1_000));
    assert_eq!(pair.arrived(B), [4, 5, 6], "SDUs received while a RESET is pending are discarded");
    assert_eq!(pair.arrived(A), [7, 8, 9]);
    assert_eq!(pair.outcomes(A, SduOutcome::Reset), [0, 1]);
    assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [4, 5, 6]);
}

#[test]
fn peer_reset_leaves_vt_rst_unchanged() {
    let mut config = resetting();
    config.sender.max_rst = 3;
    let mut pair = Pair::new(config).losing(|entry| entry.from == A);
    pair.send_pdus(A, 1);
    pair.inject_status_at(5, A, vec![ack(9)]);
    pair.run_until(at(100));
    pair.inject(A, &Pdu::Reset(Reset { rsn: false, hfni: 7 }));
    pair.run_until(at(5_000));
    assert_eq!(pair.resets(A).len(), 2, "MaxRST − 1, and no more");
    assert!(pair.ends[A].is_unrecoverable());
    assert_eq!(
        pair.reset_acks(A),
        [(100, Reset { rsn: false, hfni: 0 })],
        "the peer's RESET is answered although one is pending"
    );
}

#[test]
fn unrecoverable_error_follows_max_rst_minus_one_resets() {
    for max_rst in [1, 4] {
        let mut config = resetting();
        config.sender.max_rst = max_rst;
        let mut pair = Pair::new(config).losing_answers();
        pair.send_pdus(A, 1);
        pair.inject_status_at(5, A, vec![ack(9)]);
        pair.send_pdus(A, 2);
        pair.run_until(at(10_000));
        assert_eq!(pair.resets(A).len(), usize::from(max_rst) - 1);
        assert!(pair.ends[A].is_unrecoverable());
        assert_eq!(pair.outcomes(A, SduOutcome::Reset), [0]);
        assert_eq!((pair.ends[A].sendable_pdus(9), pair.ends[A].next_deadline()), (0, None));
        // After re-establishment, both ends continue with the SDUs that had not been sent.
        pair.lose = Box::new(|_| false);
        let now = pair.now;
        for end in &mut pair.ends {
            end.reestablish(now, 7);
        }
        pair.run_for(ms(1_000));
        assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [1, 2]);
    }
}

#[test]
fn unexpected_reset_ack_is_ignored() {
    let mut pair = Pair::new(resetting()).losing_answers();
    pair.send_pdus(A, 1);
    pair.run_until(at(5));
    pair.inject(A, &Pdu::ResetAck(Reset { rsn: false, hfni: 0 }));
    pair.inject_status(A, vec![ack(9)]);
    pair.run_until(at(100));
    pair.inject(A, &Pdu::ResetAck(Reset { rsn: true, hfni: 0 }));
    assert_eq!(pair.outcomes[A], []);
    pair.inject(A, &Pdu::ResetAck(Reset { rsn: false, hfni: 0 }));
    assert_eq!(pair.outcomes(A, SduOutcome::Reset), [0]);
}

#[test]
fn periodic_timers_survive_reset() {
    let mut config = resetting();
    config.receiver.timer_status_periodic = Some(ms(100));
    config.sender.poll.timer_poll_periodic = Some(ms(100));
    let mut pair = Pair::new(config);
    pair.inject(A, &Pdu::Reset(Reset { rsn: false, hfni: 0 }));
    pair.run_until(at(350));
    assert_eq!(pair.reports(A), [100, 200, 300]);
    assert_eq!(pair.ends[A].next_deadline(), Some(at(400)));
}

#[test]
fn sdu_with_lost_acknowledgement_arrives_and_is_reset() {
    let mut pair = Pair::new(resetting()).losing(|entry| entry.kind == PduKind::Status);
    pair.send_pdus(A, 1);
    pair.run_until(at(5_000));
    assert_eq!(pair.arrived(B), [0]);
    assert_eq!(pair.outcomes[A], [(0, SduOutcome::Reset)]);
}

/// Deviation: §11.4.3 requires a copy of the old RESET ACK. A would then decipher with an HFN that B no
/// longer uses.
#[test]
fn repeated_reset_ack_reports_current_hfn() {
    let mut pair = Pair::new(resetting()).losing(|_| true);
    let of_a = Pdu::Reset(Reset { rsn: false, hfni: 5 });
    pair.inject(B, &of_a);
    pair.run_until(at(15));
    // The RESET ACK is lost. B initiates its own reset, and A answers it.
    pair.inject_status(B, vec![ack(9)]);
    pair.run_until(at(25));
    assert_eq!(pair.resets(B), [(20, Reset { rsn: false, hfni: 1 })]);
    pair.inject(B, &Pdu::ResetAck(Reset { rsn: false, hfni: 5 }));
    assert_eq!((pair.ends[B].highest_hfn(), pair.ends[B].hfn_of(Sn::ZERO)), (2, 6));
    pair.inject(B, &of_a);
    pair.run_until(at(40));
    let acks: Vec<_> = pair.reset_acks(B).iter().map(|(_, ack)| ack.hfni).collect();
    assert_eq!(acks, [0, 1], "A adds one and gets the HFN that B uses");
    assert_eq!(pair.ends[B].stats().resets_by_peer, 1);
}
