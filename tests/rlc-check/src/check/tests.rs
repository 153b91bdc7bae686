//! Tests of the checker: a trace without violations, and for each invariant a trace that violates it.

use super::*;
use crate::trace::Way;

const MS: Time = 1_000_000;

fn settings(text: &str) -> Direction {
    text.parse().unwrap()
}

fn down() -> Direction {
    settings("tti=10ms,blocks=1+2+4,flight=20ms,window=8,max-dat=3,tsp=100ms,poll=200ms,prohibit=50ms")
}

fn up() -> Direction {
    settings("tti=20ms,blocks=1+2,flight=20ms,window=8,max-dat=3")
}

fn pdu(at: Time, way: Way, kind: PduKind) -> Pdu {
    Pdu {
        frame: 0,
        at: at * MS,
        way,
        lost: false,
        octets: 42,
        padded: false,
        epoch: 1,
        kind,
        objections: String::new(),
        inside: String::new(),
    }
}

fn data(at: Time, sn: u16) -> Pdu {
    pdu(at, Way::Down, PduKind::Data { sn, poll: false, piggybacked: None })
}

fn poll(at: Time, sn: u16) -> Pdu {
    pdu(at, Way::Down, PduKind::Data { sn, poll: true, piggybacked: None })
}

fn lost(pdu: Pdu) -> Pdu {
    Pdu { lost: true, ..pdu }
}

fn status(at: Time, missing: &[u16], lsn: u16) -> Pdu {
    let status = Status { lsn: Some(lsn), missing: missing.to_vec(), ..Status::default() };
    pdu(at, Way::Up, PduKind::Status(status))
}

fn reset(at: Time, rsn: bool, hfni: u32) -> Pdu {
    pdu(at, Way::Down, PduKind::Reset { rsn, hfni })
}

fn reset_ack(at: Time, rsn: bool, hfni: u32) -> Pdu {
    pdu(at, Way::Up, PduKind::ResetAck { rsn, hfni })
}

fn window(at: Time, wsn: u16, lsn: u16) -> Pdu {
    let status = Status { window: Some(wsn), lsn: Some(lsn), ..Status::default() };
    pdu(at, Way::Up, PduKind::Status(status))
}

fn mrw(at: Time, length: u16) -> Pdu {
    pdu(at, Way::Down, PduKind::Status(Status { mrw: Some((length, 0)), ..Status::default() }))
}

fn mrw_ack(at: Time, sn: u16) -> Pdu {
    pdu(at, Way::Up, PduKind::Status(Status { mrw_ack: Some((sn, 0)), ..Status::default() }))
}

/// Returns the violated invariants, without consecutive duplicates.
fn judged_with(down: Direction, trace: &[Pdu]) -> Vec<Invariant> {
    judged_until(down, trace, None)
}

/// Returns the violated invariants of a capture that ends at `until`, in ms.
fn judged_until(down: Direction, trace: &[Pdu], until: Option<Time>) -> Vec<Invariant> {
    let mut checker = Checker::new(down, up());
    for (index, pdu) in trace.iter().enumerate() {
        checker.pdu(&Pdu { frame: index as u64 + 1, ..pdu.clone() });
    }
    let violations = checker.finish(until.map(|until| until * MS)).violations;
    // Shown if the test fails.
    println!("{violations:?}");
    let mut found: Vec<_> = violations.into_iter().map(|found| found.invariant).collect();
    found.dedup();
    found
}

fn judged(trace: &[Pdu]) -> Vec<Invariant> {
    judged_with(down(), trace)
}

/// Two PDUs, the second of which is lost, and a third with a poll. A report follows, then the retransmission,
/// which carries a poll, a fourth PDU, and a report.
fn good() -> Vec<Pdu> {
    vec![
        data(0, 0),
        lost(data(0, 1)),
        poll(10, 2),
        status(40, &[1], 3),
        poll(60, 1),
        data(80, 3),
        status(140, &[], 4),
    ]
}

/// Returns `good` with one PDU replaced.
fn with(index: usize, pdu: Pdu) -> Vec<Pdu> {
    let mut trace = good();
    trace[index] = pdu;
    trace
}

#[test]
fn valid_trace_passes() {
    assert_eq!(judged(&good()), []);
}

#[test]
fn skipped_sequence_number_is_detected() {
    assert!(judged(&with(5, data(80, 4))).contains(&Invariant::Format));
    let mut shifted = good();
    shifted[0] = data(0, 5);
    assert!(judged(&shifted).contains(&Invariant::Format), "the first SN is 0");
}

#[test]
fn wrong_size_epoch_and_tshark_objections_are_detected() {
    assert_eq!(judged(&with(0, Pdu { octets: 41, ..data(0, 0) })), [Invariant::Format]);
    assert_eq!(judged(&with(0, Pdu { objections: "odd".into(), ..data(0, 0) })), [Invariant::Format]);
    assert_eq!(judged(&with(0, Pdu { inside: "odd".into(), ..data(0, 0) })), [Invariant::Format]);
    assert_eq!(judged(&with(0, Pdu { epoch: 2, ..data(0, 0) })), [Invariant::Format]);
}

#[test]
fn new_data_beyond_window_is_detected() {
    let window: Vec<Pdu> = (0..8).map(|sn| data(10 * u64::from(sn), sn)).collect();
    assert_eq!(judged(&window), []);
    let mut beyond = window;
    beyond.push(data(80, 8));
    assert_eq!(judged(&beyond), [Invariant::Window]);
}

#[test]
fn transmissions_beyond_max_dat_are_detected() {
    let mut trace = vec![
        data(0, 0),
        lost(data(0, 1)),
        poll(10, 2),
        status(40, &[1], 3),
        lost(poll(60, 1)),
        status(140, &[1], 3),
    ];
    let mut more = trace.clone();
    more.push(data(160, 1));
    assert!(judged(&more).contains(&Invariant::MaxDat));
    let mut silent = trace.clone();
    silent.push(data(160, 3));
    assert!(judged(&silent).contains(&Invariant::MaxDat), "new data instead of a RESET");
    trace.extend([reset(160, false, 0), reset_ack(180, false, 0)]);
    trace.push(Pdu { epoch: 4097, ..data(200, 0) });
    assert_eq!(judged(&trace), []);
}

#[test]
fn unrequested_retransmission_is_detected() {
    assert!(
        judged(&with(5, data(80, 2))).contains(&Invariant::Acknowledgement),
        "the PDU is already acknowledged"
    );
    assert!(judged(&with(5, data(80, 0))).contains(&Invariant::Format), "the PDU is below the window");
    let mut early = good();
    early[3] = data(30, 1);
    assert!(judged(&early).contains(&Invariant::Acknowledgement));
    let mut twice = good();
    twice.insert(5, data(70, 1));
    assert!(judged(&twice).contains(&Invariant::Acknowledgement), "one report requests one retransmission");
}

#[test]
fn incorrect_status_report_is_detected() {
    let with = |report| judged(&[data(0, 0), lost(data(0, 1)), poll(10, 2), report]);
    assert_eq!(with(status(60, &[1], 3)), []);
    assert_eq!(with(status(60, &[1], 2)), [], "a report need not acknowledge everything");
    let wrong = [Invariant::Acknowledgement];
    assert_eq!(with(status(60, &[0, 1], 3)), wrong, "SN 0 has arrived");
    assert_eq!(with(status(60, &[1, 3], 3)), wrong, "SN 3 is beyond VR(H)");
    assert_eq!(with(status(60, &[], 3)), wrong, "SN 1 has not arrived");
    assert_eq!(with(status(60, &[1], 4)), wrong, "SN 3 was never sent");
}

/// A run, and with it the grid of TTIs, starts at an arbitrary time of day.
#[test]
fn tti_grid_phase_is_taken_from_capture() {
    let late = |pdus: Vec<Pdu>| -> Vec<Pdu> {
        pdus.into_iter().map(|pdu| Pdu { at: pdu.at + 1_700_000_000_123_456_789, ..pdu }).collect()
    };
    assert_eq!(judged_with(down(), &late(good())), []);
    let mut one_beside = late(good());
    let last = one_beside.len() - 1;
    one_beside[last].at += 3 * MS;
    assert_eq!(judged_with(down(), &one_beside), [Invariant::Tti]);
}

/// Returns a trace of this many PDUs with a report after every eighth, and the time at its end.
fn laps(pdus: u64) -> (Vec<Pdu>, Time) {
    let (mut trace, mut now) = (Vec::new(), 0);
    for number in 0..pdus {
        trace.push(in_lap(number, data(now, (number % MODULUS) as u16)));
        now += 10;
        if number % 8 == 7 {
            now = now.next_multiple_of(20) + 20;
            trace.push(status(now, &[], ((number + 1) % MODULUS) as u16));
            now += 100;
        }
    }
    (trace, now)
}

fn in_lap(number: u64, pdu: Pdu) -> Pdu {
    Pdu { epoch: 1 + (number / MODULUS) as u32, ..pdu }
}

#[test]
fn lsn_beyond_vr_h_is_detected_after_wraps() {
    for lap in 0..3 {
        let first = lap * MODULUS + 8;
        let (mut trace, now) = laps(first);
        assert_eq!(judged(&trace), []);
        // The first and the last of three PDUs are lost, but the report acknowledges the last one.
        for number in first..first + 3 {
            let at = now + 10 * (number - first);
            let pdu = in_lap(number, data(at, (number % MODULUS) as u16));
            trace.push(if number == first + 1 { pdu } else { lost(pdu) });
        }
        let report = (now + 50).next_multiple_of(20);
        trace.push(status(report, &[8], 11));
        assert_eq!(judged(&trace), [Invariant::Acknowledgement], "lap {lap}");
        // Nor does it count as the first part of a report that continues.
        trace.push(status(report + 20, &[8], 11));
        assert!(judged(&trace).contains(&Invariant::StatusProhibit), "lap {lap}");
    }
}

#[test]
fn report_during_status_prohibit_is_detected() {
    assert_eq!(judged(&with(6, status(120, &[], 4))), [Invariant::StatusProhibit]);
}

#[test]
fn unanswered_and_early_polls_are_detected() {
    let mut silent = good();
    silent.truncate(6);
    silent.push(data(250, 4));
    assert!(judged(&silent).contains(&Invariant::Polling));
    assert_eq!(judged(&with(5, poll(80, 3))), [Invariant::Polling], "20 ms after the previous poll");
}

#[test]
fn lost_poll_without_repetition_is_detected() {
    let mut trace = vec![data(0, 0), lost(poll(10, 1)), poll(210, 1), status(240, &[], 2)];
    assert_eq!(judged(&trace), []);
    trace.truncate(2);
    trace.push(data(250, 2));
    assert_eq!(judged(&trace), [Invariant::Polling]);
}

/// If the end of the capture is unknown, silence at its end proves nothing.
#[test]
fn missing_reaction_before_capture_end_is_detected() {
    let until = |trace: &[Pdu], until| judged_until(down(), trace, Some(until));
    assert_eq!(until(&good(), 10_000), []);
    let polls = [data(0, 0), poll(10, 1)];
    assert_eq!(judged(&polls), []);
    assert_eq!(until(&polls, 60), [], "the answer is not due yet");
    assert_eq!(until(&polls, 10_000), [Invariant::Polling]);
    let never_resent = [data(0, 0), lost(data(0, 1)), data(10, 2), status(40, &[1], 3)];
    assert_eq!(judged(&never_resent), []);
    assert_eq!(until(&never_resent, 400), [], "the retransmission is not due yet");
    assert_eq!(until(&never_resent, 10_000), [Invariant::Acknowledgement]);
}

#[test]
fn reset_without_cause_is_detected() {
    let trace = [data(0, 0), reset(10, false, 0), reset_ack(40, false, 0)];
    assert_eq!(judged(&trace), [Invariant::Reset]);
    let unknown = Direction { max_dat: None, ..down() };
    assert_eq!(judged_with(unknown, &trace), [], "MaxDAT is not known");
    let discarding = Direction { discard: Discard::Mrw, ..down() };
    assert_eq!(judged_with(discarding, &trace), [], "MaxMRW is not known");
    // A PDU with a poll is transmitted as often as allowed, but never answered.
    let trace = [data(0, 0), lost(poll(10, 1)), lost(poll(210, 1)), reset(410, false, 0)];
    assert_eq!(judged(&trace), []);
}

#[test]
fn received_pdu_may_carry_polls_beyond_max_dat() {
    let mut trace = vec![lost(data(0, 0)), poll(10, 1), status(40, &[0], 2), lost(data(60, 0))];
    for n in 1..4 {
        trace.push(poll(10 + 200 * n, 1));
        trace.push(status(60 + 200 * n, &[], 0));
    }
    // PDU 0 is not reported missing again, so it is sent twice. PDU 1 is sent four times.
    assert_eq!(judged(&trace), []);
}

#[test]
fn off_grid_pdus_and_invalid_counts_are_detected() {
    assert_eq!(judged(&with(5, data(85, 3))), [Invariant::Tti]);
    let three: Vec<Pdu> = (0..3).map(|sn| data(0, sn)).collect();
    assert_eq!(judged(&three), [Invariant::Tti]);
}

#[test]
fn implausible_block_error_rate_is_detected() {
    let trace: Vec<Pdu> = (0..8).map(|sn| data(10 * u64::from(sn), sn)).collect();
    let all_lost: Vec<Pdu> = trace.iter().cloned().map(lost).collect();
    let half = Direction { bler: Some(0.5), ..down() };
    assert_eq!(judged_with(half.clone(), &all_lost), [], "at 50 %, 8 losses in 8 PDUs happen once in 256");
    let rare = Direction { bler: Some(0.01), ..down() };
    assert_eq!(judged_with(rare, &all_lost), [Invariant::BlockErrors]);
}

#[test]
fn inconsistent_resets_are_detected() {
    let with = |second: Pdu, third: Pdu| {
        let again = |pdu| Pdu { epoch: 4097, ..pdu };
        // Without MaxDAT, the capture need not show the cause of a RESET.
        let down = Direction { max_dat: None, ..down() };
        let trace = [
            data(0, 0),
            lost(reset(10, false, 0)),
            second,
            reset_ack(240, false, 0),
            again(data(260, 0)),
            third,
            reset_ack(300, true, 1),
        ];
        judged_with(down, &trace)
    };
    assert_eq!(with(reset(210, false, 0), reset(270, true, 1)), []);
    assert!(with(reset(210, false, 1), reset(270, true, 2)).contains(&Invariant::Reset), "another HFNI");
    assert!(with(reset(210, true, 0), reset(270, true, 1)).contains(&Invariant::Reset), "another RSN");
    assert!(with(reset(210, false, 0), reset(270, false, 1)).contains(&Invariant::Reset), "the same RSN");
    assert!(with(reset(210, false, 0), reset(270, true, 0)).contains(&Invariant::Reset), "the same HFN");
    assert!(judged(&[data(0, 0), lost(reset(10, false, 0)), data(20, 1)]).contains(&Invariant::Reset));
    assert!(
        judged(&[data(0, 0), reset_ack(40, false, 0)]).contains(&Invariant::Reset),
        "there is no RESET to answer"
    );
}

/// The first RESET is acknowledged; the second one crosses a RESET of the peer.
fn crossing(second_down: u32, second_up: u32, ack_up: u32, ack_down: u32) -> Vec<Invariant> {
    let down = Direction { max_dat: None, ..down() };
    let up = Direction { max_dat: None, ..up() };
    let again = |epoch, pdu| Pdu { epoch, ..pdu };
    let reset_up = |at, rsn, hfni| pdu(at, Way::Up, PduKind::Reset { rsn, hfni });
    let ack_of_down = |at, rsn, hfni| pdu(at, Way::Down, PduKind::ResetAck { rsn, hfni });
    let trace = [
        data(0, 0),
        reset(10, false, 0),
        reset_ack(40, false, 0),
        again(4097, data(70, 0)),
        reset(80, true, second_down),
        reset_up(80, false, second_up),
        reset_ack(100, true, ack_up),
        ack_of_down(100, false, ack_down),
        again(3 * 4096 + 1, data(130, 0)),
        reset(140, false, 2),
        reset_ack(160, false, 2),
    ];
    let mut checker = Checker::new(down, up);
    for pdu in trace {
        checker.pdu(&pdu);
    }
    checker.finish(None).violations.into_iter().map(|found| found.invariant).collect()
}

#[test]
fn wrong_hfn_in_crossing_resets_is_detected() {
    assert_eq!(crossing(1, 1, 1, 1), []);
    for (wrong, name) in [
        (crossing(2, 1, 1, 1), "RESET"),
        (crossing(1, 0, 1, 1), "the peer's RESET"),
        (crossing(1, 1, 2, 1), "RESET ACK while waiting for one, which alone increases the HFN"),
        (crossing(1, 1, 1, 0), "the peer's RESET ACK"),
    ] {
        assert_eq!(wrong, [Invariant::Reset], "{name}");
    }
}

#[test]
fn changed_hfn_in_repeated_reset_ack_is_detected() {
    let with = |hfni| {
        let down = Direction { max_dat: None, ..down() };
        let repeated = [
            data(0, 0),
            reset(10, false, 0),
            lost(reset_ack(40, false, 0)),
            reset(210, false, 0),
            reset_ack(240, false, hfni),
        ];
        judged_with(down, &repeated)
    };
    assert_eq!(with(0), []);
    assert_eq!(with(1), [Invariant::Reset]);
}

#[test]
fn sn_wrap_increments_hfn() {
    for (hfni, found) in [(0, vec![Invariant::Reset]), (1, vec![]), (2, vec![Invariant::Reset])] {
        let (mut trace, now) = laps(MODULUS + 8);
        trace.push(in_lap(MODULUS, reset(now, false, hfni)));
        let down = Direction { max_dat: None, ..down() };
        assert_eq!(judged_with(down, &trace), found, "HFNI {hfni}");
    }
}

#[test]
fn data_beyond_advertised_window_is_detected() {
    let told = |wsn: u16, then: &[Pdu]| {
        let mut trace = vec![data(0, 0), poll(10, 1), window(40, wsn, 2)];
        trace.extend_from_slice(then);
        judged(&trace)
    };
    let three: Vec<Pdu> = (2..5).map(|sn| data(50 + 10 * u64::from(sn), sn)).collect();
    assert_eq!(told(3, &three), []);
    assert_eq!(told(2, &three), [Invariant::Window]);
    assert_eq!(told(0, &three), [Invariant::Window], "a WINDOW of 0 is a violation");
    // A WINDOW larger than the configured window is limited to it.
    let nine: Vec<Pdu> = (2..11).map(|sn| data(50 + 10 * u64::from(sn), sn)).collect();
    assert_eq!(told(100, &nine[..8]), []);
    assert_eq!(told(100, &nine), [Invariant::Window]);
    // Retransmissions beyond the window are violations as well, except for the last PDU.
    let shrinks = |copy: u16| {
        let lost: Vec<Pdu> = (0..4).map(|sn| lost(data(10 * u64::from(sn), sn))).collect();
        let report = Status { window: Some(1), lsn: Some(0), missing: vec![0, 1, 2, 3], ..Status::default() };
        let mut trace = lost;
        trace.extend([poll(40, 4), pdu(80, Way::Up, PduKind::Status(report)), data(100, copy)]);
        judged(&trace)
    };
    assert_eq!(shrinks(0), []);
    assert_eq!(shrinks(1), [Invariant::Window]);
}

#[test]
fn mrw_ack_moves_sender_window() {
    let discarding = Direction { discard: Discard::Mrw, ..down() };
    let trace = [
        data(0, 0),
        lost(data(0, 1)),
        poll(10, 2),
        status(40, &[1], 3),
        lost(poll(60, 1)),
        status(140, &[1], 3),
        mrw(160, 2),
        data(160, 3),
        mrw_ack(180, 3),
    ];
    assert_eq!(judged_with(discarding.clone(), &trace), []);
    let mut twice = trace.to_vec();
    twice.push(data(200, 1));
    assert!(judged_with(discarding, &twice).contains(&Invariant::Format), "the PDU is below the window");
}

/// The poll of PDU 1 is lost, and a POLL SUFI with its sequence number repeats it.
#[test]
fn poll_sufi_counts_as_poll() {
    let with_poll_sn = |sn| {
        let status = Status { poll_sn: Some(sn), ..Status::default() };
        [data(0, 0), lost(poll(10, 1)), lost(pdu(210, Way::Down, PduKind::Status(status)))]
    };
    assert_eq!(judged_until(down(), &with_poll_sn(1), Some(300)), []);
    assert_eq!(judged_until(down(), &with_poll_sn(0), Some(300)), [Invariant::Polling]);
    assert_eq!(judged_until(down(), &with_poll_sn(1)[..2], Some(300)), [Invariant::Polling]);
}

#[test]
fn oversized_or_padded_flexible_pdus_are_detected() {
    let judged = |octets, padded| {
        let mut checker = Checker::new(settings("pdu=100,flexible=15bit"), up());
        checker.pdu(&Pdu { frame: 1, octets, padded, ..data(0, 0) });
        checker.finish(None).violations.len()
    };
    assert_eq!([judged(3, false), judged(100, false), judged(101, false), judged(42, true)], [0, 0, 1, 1]);
}
