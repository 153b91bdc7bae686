//! Status reports (§9.7.2): their triggers, the timers that prohibit them, and their content.

use super::*;

fn reporting(change: impl FnOnce(&mut ReceiverConfig)) -> EntityConfig {
    let mut config = quiet();
    change(&mut config.receiver);
    config
}

#[test]
fn poll_triggers_status_report() {
    let mut pair = Pair::new(quiet()).losing_answers();
    pair.inject_data(B, 0, false);
    pair.run_until(at(35));
    assert_eq!(pair.statuses(B), []);
    pair.inject_data(B, 1, true);
    pair.run_until(at(100));
    assert_eq!(pair.statuses(B), [(40, vec![ack(2)])]);
}

#[test]
fn new_gap_triggers_report_only_if_configured() {
    for (configured, reports) in [(false, vec![]), (true, vec![(0, vec![1], 3)])] {
        let mut pair =
            Pair::new(reporting(|receiver| receiver.missing_pdu_indicator = configured)).losing_answers();
        pair.inject_data(B, 0, false);
        pair.inject_data(B, 2, false);
        pair.inject_data_at(10, B, 3, false);
        pair.run_until(at(100));
        assert_eq!(pair.reported(B), reports, "an old gap does not trigger a report");
    }
}

#[test]
fn periodic_status_timer_keeps_reporting() {
    let mut pair =
        Pair::new(reporting(|receiver| receiver.timer_status_periodic = Some(ms(100)))).losing_answers();
    pair.inject_data(B, 0, false);
    pair.inject_data(B, 2, false);
    pair.run_until(at(350));
    assert_eq!(pair.reports(B), [100, 200, 300]);
}

#[test]
fn status_prohibit_merges_triggers_into_one_current_report() {
    let mut pair =
        Pair::new(reporting(|receiver| receiver.timer_status_prohibit = Some(ms(100)))).losing_answers();
    pair.inject_data_at(5, B, 0, true);
    // The report is sent at 10 ms, so acknowledgement is prohibited until 110 ms.
    for (time, sn) in [(20, 2), (40, 4), (60, 6)] {
        pair.inject_data_at(time, B, sn, true);
    }
    pair.run_until(at(109));
    assert_eq!(pair.statuses(B), [(10, vec![ack(1)])]);
    pair.inject_data(B, 4, false);
    pair.inject_data(B, 1, false);
    pair.run_until(at(1_000));
    assert_eq!(pair.reported(B)[1..], [(110, vec![3, 5], 7)]);
    pair.inject_data(B, 3, true);
    pair.run_until(at(2_000));
    assert_eq!(pair.reports(B)[2..], [1_000], "no report is delayed after the timer has expired");
}

#[test]
fn reset_cancels_report_that_waits_for_status_prohibit() {
    let mut pair =
        Pair::new(reporting(|receiver| receiver.timer_status_prohibit = Some(ms(300)))).losing_answers();
    pair.inject_data_at(5, B, 0, true);
    // The report is sent at 10 ms, so the next one would be sent at 310 ms.
    pair.inject_data_at(20, B, 1, true);
    pair.inject(B, &Pdu::Reset(Reset { rsn: false, hfni: 0 }));
    pair.inject_data_at(400, B, 0, true);
    pair.run_until(at(2_000));
    assert_eq!(pair.reports(B), [10, 400]);
}

#[test]
fn zero_status_prohibit_has_no_effect() {
    let reports = |tsp| {
        let mut pair = Pair::new(reporting(|receiver| receiver.timer_status_prohibit = tsp)).losing_answers();
        for (time, sn) in [(0, 1), (5, 3), (15, 5), (25, 7)] {
            pair.inject_data_at(time, B, sn, true);
        }
        pair.run_until(at(1_000));
        pair.reports(B)
    };
    assert_eq!(reports(Some(ms(0))), reports(None));
    assert_eq!(reports(None), [0, 10, 20, 30], "each poll is answered in the next TTI");
}

#[test]
fn delayed_report_covers_gaps_at_transmission_time() {
    let mut pair = Pair::new(reporting(|receiver| {
        receiver.status_delay = Some(ms(100));
        receiver.missing_pdu_indicator = true;
    }))
    .losing_answers();
    for (time, sn) in [(0, 1), (45, 3), (300, 5)] {
        pair.inject_data_at(time, B, sn, false);
    }
    pair.run_until(at(1_000));
    assert_eq!(pair.reported(B), [(100, vec![0, 2], 4), (400, vec![0, 2, 4], 6)]);
}

#[test]
fn ue_status_prohibit_starts_at_tti_end() {
    let mut config = reporting(|receiver| receiver.timer_status_prohibit = Some(ms(100)));
    config.timers = TimersStart::WhenTransmitted { tti: TTI };
    let mut pair = Pair::new(config).losing_answers();
    pair.inject_data(B, 0, true);
    pair.inject_data_at(1, B, 1, true);
    pair.run_until(at(1_000));
    assert_eq!(pair.reports(B), [0, 110]);
}

#[test]
fn status_prohibit_exempts_mrw_ack_and_window() {
    let mut pair =
        Pair::new(reporting(|receiver| receiver.timer_status_prohibit = Some(ms(500)))).losing_answers();
    pair.inject_data(B, 0, true);
    pair.inject_data_at(15, B, 2, true);
    pair.inject_status(B, vec![mrw(&[2], 0), Sufi::NoMore]);
    pair.ends[B].advertise_window(64);
    pair.run_until(at(400));
    let undelayed = vec![mrw_ack(3, 0), Sufi::Window { wsn: 64 }, Sufi::NoMore];
    assert_eq!(pair.statuses(B), [(0, vec![ack(1)]), (20, undelayed)]);
    pair.run_until(at(600));
    assert_eq!(pair.statuses(B)[2..], [(500, vec![Sufi::Window { wsn: 64 }, ack(3)])]);
}

/// A pair in which B must report more gaps than fit in one STATUS PDU, and has one block per TTI. B has
/// received a poll.
fn pair_with_split_report() -> (Pair, Vec<u16>) {
    let mut config = reporting(|receiver| {
        receiver.timer_status_prohibit = Some(ms(100));
        receiver.window = 2047;
    });
    config.sender.window = 2047;
    let mut pair = Pair::new(config).losing_answers();
    pair.blocks = 1;
    // A random pattern, which no encoding can shorten.
    let mut rng = airwire::rng::Stream::new(1, "gaps");
    let mut missing = Vec::new();
    for sn in 0..700 {
        if rng.chance(0.5) || sn == 0 {
            missing.push(sn);
        } else {
            pair.inject_data(B, sn, false);
        }
    }
    pair.inject_data(B, 700, true);
    (pair, missing)
}

#[test]
fn status_prohibit_starts_at_last_report_part() {
    let (mut pair, missing) = pair_with_split_report();
    pair.inject_data_at(1, B, 701, true);
    pair.run_until(at(1_000));
    let reports = pair.reports(B);
    let parts = reports.len() / 2;
    assert!(parts >= 3, "{reports:?}");
    let last = (parts as u64 - 1) * 10;
    assert_eq!(reports[parts - 1], last);
    assert_eq!(reports[parts], last + 100, "the timer starts with the last part of the first report");
    let mut reported = Vec::new();
    for (_, sufis) in &pair.statuses(B)[..parts] {
        let content = status_report::interpret(&Status(sufis.clone())).expect("the report is consistent");
        assert_eq!(
            content.lsn,
            Some(Sn::ZERO),
            "no part acknowledges PDUs that another part reports missing"
        );
        reported.extend(content.missing.iter().map(|sn| sn.get()));
    }
    reported.sort_unstable();
    assert_eq!(reported, missing);
}

/// All parts of a report have LSN = VR(R) of the time when it was written. After an MRW_ACK, this is an
/// "erroneous Sequence Number" for the peer, and initiates a reset.
#[test]
fn mrw_ack_does_not_overtake_split_report() {
    let (mut pair, _) = pair_with_split_report();
    pair.inject_status_at(5, B, vec![mrw(&[600], 0), Sufi::NoMore]);
    pair.run_until(at(1_000));
    let all = pair.statuses(B);
    let vr_r = |sufi: &Sufi| match sufi {
        Sufi::Ack { lsn } => Some(lsn.get()),
        Sufi::MrwAck(MrwAck { sn_ack, .. }) => Some(sn_ack.get()),
        _ => None,
    };
    let content: Vec<_> = all.iter().flat_map(|(_, sufis)| sufis.iter().filter_map(vr_r)).collect();
    assert!(content.is_sorted() && content.len() >= 4 && content.last() >= Some(&600), "{content:?}");
    let times: Vec<_> = all.iter().map(|(at, _)| *at).collect();
    assert_eq!(
        times,
        (0..all.len() as u64).map(|tti| tti * 10).collect::<Vec<_>>(),
        "one STATUS PDU per TTI"
    );
}

#[test]
fn epc_timer_reports_still_missing_pdus_again() {
    let mut config = reporting(|receiver| receiver.timer_epc = Some(ms(100)));
    config.incoming.blocks = 2;
    let mut pair = Pair::new(config).losing_answers();
    for sn in [0, 2, 4, 6] {
        pair.inject_data(B, sn, sn == 6);
    }
    pair.run_until(at(110));
    // VR(EP) = 3: the next report is due after Timer_EPC and two TTIs of two blocks.
    assert_eq!(pair.reports(B), [0]);
    pair.inject_data(B, 1, false);
    pair.inject_data(B, 3, false);
    pair.run_until(at(125));
    assert_eq!(pair.reported(B)[1..], [(120, vec![5], 7)]);
    pair.inject_data(B, 5, false);
    pair.run_until(at(1_000));
    assert_eq!(pair.reports(B), [0, 120], "no PDU is missing, so no further report follows");
}

#[test]
fn epc_counter_follows_current_channel_rate() {
    let config = reporting(|receiver| receiver.timer_epc = Some(ms(100)));
    let mut pair = Pair::new(config.clone()).losing_answers();
    let slower = Incoming { tti: TTI, blocks: 1 };
    let config = EntityConfig { incoming: slower, ..config };
    pair.ends[B].reconfigure(pair.now, &config);
    for sn in [0, 2, 4, 6] {
        pair.inject_data(B, sn, sn == 6);
    }
    pair.run_until(at(150));
    assert_eq!(pair.reports(B), [0, 130], "Timer_EPC and three TTIs of one block");
}

#[test]
fn epc_report_waits_for_status_prohibit() {
    let mut pair = Pair::new(reporting(|receiver| {
        receiver.timer_epc = Some(ms(100));
        receiver.timer_status_prohibit = Some(ms(300));
    }))
    .losing_answers();
    pair.inject_data(B, 0, false);
    pair.inject_data(B, 2, true);
    pair.run_until(at(450));
    assert_eq!(pair.reports(B), [0, 300]);
}

#[test]
fn report_is_piggybacked_only_if_configured() {
    for (piggyback, alone) in [(true, 0), (false, 1)] {
        let mut config = polling(PollConfig { last_pdu: true, ..PollConfig::NONE });
        config.receiver.piggyback = piggyback;
        let mut pair = Pair::new(config);
        pair.send(A, 39);
        pair.run_until(at(35));
        pair.send(B, 10);
        // A's poll arrives, and the next TTI carries both the report and the data.
        pair.run_until(at(45));
        assert_eq!(pair.statuses(B).len(), alone);
        assert_eq!(pair.ends[B].stats().piggybacked as usize, 1 - alone);
        // A retransmission has padding in place of the report, which would be outdated.
        pair.inject_status(B, vec![list(&[0]), ack(1)]);
        pair.run_until(at(1_000));
        assert_eq!(pair.arrived(A), [1]);
        assert_eq!(pair.outcomes(A, SduOutcome::Acknowledged), [0]);
        let mut again = pair.from(B).filter_map(|entry| match &entry.pdu {
            Pdu::Amd(amd) => Some(&amd.rest),
            _ => None,
        });
        assert_eq!(again.next_back(), Some(&Rest::Padding));
    }
}

#[test]
fn report_precedes_data_that_has_no_padding() {
    let mut pair = Pair::new(reporting(|receiver| receiver.piggyback = true));
    pair.inject_data(B, 0, true);
    pair.send(B, 1_000);
    pair.run_until(at(5));
    let kinds: Vec<_> = pair.from(B).map(|entry| entry.kind == PduKind::Status).collect();
    assert_eq!(kinds, [true, false, false, false]);
}

#[test]
fn poll_outside_receive_window_is_answered() {
    let mut pair = Pair::new(quiet()).losing_answers();
    pair.inject_data(B, 128, true);
    pair.run_until(at(100));
    assert_eq!(pair.statuses(B), [(0, vec![ack(0)])]);
    assert_eq!(pair.ends[B].stats().outside_window, 1);
    pair.inject_data(B, 127, true);
    pair.run_until(at(200));
    assert_eq!(pair.ends[B].stats().pdus_received, 1, "VR(MR) − 1 is inside the window");
}

#[test]
fn poll_in_duplicate_pdu_is_answered() {
    let mut pair = Pair::new(quiet()).losing_answers();
    pair.inject_data(B, 0, false);
    pair.inject_data(B, 0, true);
    pair.run_until(at(100));
    assert_eq!(pair.statuses(B), [(0, vec![ack(1)])]);
    assert_eq!((pair.ends[B].stats().duplicates, pair.arrived(B).len()), (1, 1));
}

/// §10.1. A STATUS PDU with an erroneous sequence number requests no retransmission.
#[test]
fn erroneous_sn_triggers_reset_and_voids_status() {
    let cases = [3, 4, 4095].map(|lsn| (vec![ack(lsn)], lsn > 3));
    let nacks = [2, 3, 4095].map(|sn| (vec![list(&[0]), list(&[sn]), Sufi::NoMore], sn > 2));
    for (sufis, erroneous) in cases.into_iter().chain(nacks) {
        let mut pair = Pair::new(quiet());
        pair.send_pdus(A, 3);
        pair.inject_status_at(10, A, sufis.clone());
        pair.run_until(at(500));
        let resets =
            [pair.ends[A].stats().erroneous_sns as usize, pair.resets(A).len(), pair.reset_acks(B).len()];
        assert_eq!(resets, [usize::from(erroneous); 3], "{sufis:?}");
        let retransmitted = sufis.len() > 1 && !erroneous;
        assert_eq!(pair.transmissions(A, 0), 1 + usize::from(retransmitted), "{sufis:?}");
    }
}

#[test]
fn contradictory_or_malformed_status_is_ignored() {
    let mut pair = Pair::new(quiet());
    pair.send_pdus(A, 3);
    pair.inject_status_at(10, A, vec![list(&[0]), Sufi::Bitmap { fsn: Sn::ZERO, bits: vec![0xff] }, ack(3)]);
    // LIST of length 0, and control PDU type 5.
    for octets in [[0x03, 0x00, 0x20, 0x03], [0x50, 0, 0, 0]] {
        pair.ends[A].handle_pdu(at(10), &octets);
    }
    pair.run_until(at(500));
    assert_eq!((pair.ends[A].stats().statuses_refused, pair.ends[A].stats().decode_errors), (1, 2));
    assert_eq!((pair.data(A).len(), pair.resets(A).len()), (3, 0));
}
