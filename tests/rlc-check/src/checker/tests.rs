//! Tests of the checker: a trace without violations, and for each invariant a trace that violates it.

use super::*;
use crate::trace::Direction;

const MS: Time = 1_000_000;

fn settings(text: &str) -> DirectionSettings {
    text.parse().unwrap()
}

fn down() -> DirectionSettings {
    settings("tti=10ms,blocks=1+2+4,flight=20ms,window=8,max-dat=3,tsp=100ms,poll=200ms,prohibit=50ms")
}

fn up() -> DirectionSettings {
    settings("tti=20ms,blocks=1+2,flight=20ms,window=8,max-dat=3")
}

fn pdu(at: Time, direction: Direction, kind: PduKind) -> Pdu {
    Pdu {
        frame: 0,
        at: at * MS,
        direction,
        lost: false,
        octets: 42,
        padded: false,
        epoch: 1,
        kind,
        objections: String::new(),
        packet_objections: String::new(),
    }
}

fn data(at: Time, sn: u16) -> Pdu {
    pdu(at, Direction::Down, PduKind::Data { sn, poll: false, piggybacked: None })
}

fn poll(at: Time, sn: u16) -> Pdu {
    pdu(at, Direction::Down, PduKind::Data { sn, poll: true, piggybacked: None })
}

fn lost(pdu: Pdu) -> Pdu {
    Pdu { lost: true, ..pdu }
}

fn status(at: Time, missing: &[u16], lsn: u16) -> Pdu {
    let status = Status { lsn: Some(lsn), missing: missing.to_vec(), ..Status::default() };
    pdu(at, Direction::Up, PduKind::Status(status))
}

fn reset(at: Time, rsn: bool, hfni: u32) -> Pdu {
    pdu(at, Direction::Down, PduKind::Reset { rsn, hfni })
}

fn reset_ack(at: Time, rsn: bool, hfni: u32) -> Pdu {
    pdu(at, Direction::Up, PduKind::ResetAck { rsn, hfni })
}

fn window(at: Time, wsn: u16, lsn: u16) -> Pdu {
    let status = Status { window: Some(wsn), lsn: Some(lsn), ..Status::default() };
    pdu(at, Direction::Up, PduKind::Status(status))
}

fn mrw(at: Time, length: u16) -> Pdu {
    pdu(at, Direction::Down, PduKind::Status(Status { mrw: Some((length, 0)), ..Status::default() }))
}

fn mrw_ack(at: Time, sn: u16) -> Pdu {
    pdu(at, Direction::Up, PduKind::Status(Status { mrw_ack: Some((sn, 0)), ..Status::default() }))
}

/// Returns the violated invariants, without consecutive duplicates.
fn violations_with(down: DirectionSettings, trace: &[Pdu]) -> Vec<Invariant> {
    violations_until(down, trace, None)
}

/// Returns the violated invariants of a capture that ends at `until`, in ms.
fn violations_until(down: DirectionSettings, trace: &[Pdu], until: Option<Time>) -> Vec<Invariant> {
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

fn violations(trace: &[Pdu]) -> Vec<Invariant> {
    violations_with(down(), trace)
}

/// PDU 1 is lost, and PDU 2 polls. A report, the retransmission of PDU 1 with a poll, PDU 3 and another
/// report follow.
fn valid_trace() -> Vec<Pdu> {
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
    let mut trace = valid_trace();
    trace[index] = pdu;
    trace
}

#[test]
fn valid_trace_passes() {
    assert_eq!(violations(&valid_trace()), []);
}

#[test]
fn skipped_sequence_number_is_detected() {
    assert!(violations(&with(5, data(80, 4))).contains(&Invariant::Format));
    assert!(violations(&with(0, data(0, 5))).contains(&Invariant::Format), "the first SN is 0");
}

#[test]
fn wrong_size_epoch_and_tshark_objections_are_detected() {
    assert_eq!(violations(&with(0, Pdu { octets: 41, ..data(0, 0) })), [Invariant::Format]);
    assert_eq!(violations(&with(0, Pdu { objections: "odd".into(), ..data(0, 0) })), [Invariant::Format]);
    assert_eq!(
        violations(&with(0, Pdu { packet_objections: "odd".into(), ..data(0, 0) })),
        [Invariant::Format]
    );
    assert_eq!(violations(&with(0, Pdu { epoch: 2, ..data(0, 0) })), [Invariant::Format]);
}

#[test]
fn new_data_beyond_window_is_detected() {
    let trace: Vec<Pdu> = (0..9).map(|sn| data(10 * u64::from(sn), sn)).collect();
    assert_eq!(violations(&trace[..8]), []);
    assert_eq!(violations(&trace), [Invariant::Window]);
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
    for (sn, name) in [(1, "another transmission"), (3, "new data instead of a RESET")] {
        let continued = [trace.clone(), vec![data(160, sn)]].concat();
        assert!(violations(&continued).contains(&Invariant::MaxDat), "{name}");
    }
    trace.extend([reset(160, false, 0), reset_ack(180, false, 0)]);
    trace.push(Pdu { epoch: 4097, ..data(200, 0) });
    assert_eq!(violations(&trace), []);
}

#[test]
fn unrequested_retransmission_is_detected() {
    assert!(
        violations(&with(5, data(80, 2))).contains(&Invariant::Acknowledgement),
        "the PDU is already acknowledged"
    );
    assert!(violations(&with(5, data(80, 0))).contains(&Invariant::Format), "the PDU is below the window");
    assert!(violations(&with(3, data(30, 1))).contains(&Invariant::Acknowledgement));
    let mut twice = valid_trace();
    twice.insert(5, data(70, 1));
    assert!(
        violations(&twice).contains(&Invariant::Acknowledgement),
        "one report requests one retransmission"
    );
}

#[test]
fn incorrect_status_report_is_detected() {
    let with = |report| violations(&[data(0, 0), lost(data(0, 1)), poll(10, 2), report]);
    assert_eq!(with(status(60, &[1], 3)), []);
    assert_eq!(with(status(60, &[1], 2)), [], "a report need not acknowledge everything");
    let wrong = [Invariant::Acknowledgement];
    assert_eq!(with(status(60, &[0, 1], 3)), wrong, "SN 0 has arrived");
    assert_eq!(with(status(60, &[1, 3], 3)), wrong, "SN 3 is beyond VR(H)");
    assert_eq!(with(status(60, &[], 3)), wrong, "SN 1 has not arrived");
    assert_eq!(with(status(60, &[1], 4)), wrong, "SN 3 was never sent");
}

/// A run and its grid of TTIs start at an arbitrary time of day.
#[test]
fn tti_grid_phase_is_taken_from_capture() {
    let late = |pdus: Vec<Pdu>| -> Vec<Pdu> {
        pdus.into_iter().map(|pdu| Pdu { at: pdu.at + 1_700_000_000_123_456_789, ..pdu }).collect()
    };
    assert_eq!(violations_with(down(), &late(valid_trace())), []);
    let mut off_grid = late(valid_trace());
    let last = off_grid.len() - 1;
    off_grid[last].at += 3 * MS;
    assert_eq!(violations_with(down(), &off_grid), [Invariant::Tti]);
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
        assert_eq!(violations(&trace), []);
        // The first and the last of three PDUs are lost, but the report acknowledges the last one.
        for number in first..first + 3 {
            let at = now + 10 * (number - first);
            let pdu = in_lap(number, data(at, (number % MODULUS) as u16));
            trace.push(if number == first + 1 { pdu } else { lost(pdu) });
        }
        let report = (now + 50).next_multiple_of(20);
        trace.push(status(report, &[8], 11));
        assert_eq!(violations(&trace), [Invariant::Acknowledgement], "lap {lap}");
        // The report does not count as the first part of a longer report, either.
        trace.push(status(report + 20, &[8], 11));
        assert!(violations(&trace).contains(&Invariant::StatusProhibit), "lap {lap}");
    }
}

#[test]
fn report_during_status_prohibit_is_detected() {
    assert_eq!(violations(&with(6, status(120, &[], 4))), [Invariant::StatusProhibit]);
}

#[test]
fn unanswered_and_early_polls_are_detected() {
    let silent = [&valid_trace()[..6], &[data(250, 4)]].concat();
    assert!(violations(&silent).contains(&Invariant::Polling));
    assert_eq!(violations(&with(5, poll(80, 3))), [Invariant::Polling], "20 ms after the previous poll");
}

#[test]
fn lost_poll_without_repetition_is_detected() {
    let begin = [data(0, 0), lost(poll(10, 1))];
    assert_eq!(violations(&[&begin[..], &[poll(210, 1), status(240, &[], 2)]].concat()), []);
    assert_eq!(violations(&[&begin[..], &[data(250, 2)]].concat()), [Invariant::Polling]);
}

/// If the end of the capture is unknown, silence at its end proves nothing.
#[test]
fn missing_reaction_before_capture_end_is_detected() {
    let until = |trace: &[Pdu], until| violations_until(down(), trace, Some(until));
    assert_eq!(until(&valid_trace(), 10_000), []);
    let polls = [data(0, 0), poll(10, 1)];
    assert_eq!(violations(&polls), []);
    assert_eq!(until(&polls, 60), [], "the answer is not due yet");
    assert_eq!(until(&polls, 10_000), [Invariant::Polling]);
    let never_resent = [data(0, 0), lost(data(0, 1)), data(10, 2), status(40, &[1], 3)];
    assert_eq!(violations(&never_resent), []);
    assert_eq!(until(&never_resent, 400), [], "the retransmission is not due yet");
    assert_eq!(until(&never_resent, 10_000), [Invariant::Acknowledgement]);
}

#[test]
fn reset_without_cause_is_detected() {
    let trace = [data(0, 0), reset(10, false, 0), reset_ack(40, false, 0)];
    assert_eq!(violations(&trace), [Invariant::Reset]);
    let unknown = DirectionSettings { max_dat: None, ..down() };
    assert_eq!(violations_with(unknown, &trace), [], "MaxDAT is not known");
    let discarding = DirectionSettings { discard: Discard::Mrw, ..down() };
    assert_eq!(violations_with(discarding, &trace), [], "MaxMRW is not known");
    // A PDU with a poll is transmitted as often as allowed, but never answered.
    let trace = [data(0, 0), lost(poll(10, 1)), lost(poll(210, 1)), reset(410, false, 0)];
    assert_eq!(violations(&trace), []);
}

#[test]
fn received_pdu_may_carry_polls_beyond_max_dat() {
    let mut trace = vec![lost(data(0, 0)), poll(10, 1), status(40, &[0], 2), lost(data(60, 0))];
    for n in 1..4 {
        trace.push(poll(10 + 200 * n, 1));
        trace.push(status(60 + 200 * n, &[], 0));
    }
    // PDU 0 is not reported missing again, so it is sent twice. PDU 1 is sent four times.
    assert_eq!(violations(&trace), []);
}

#[test]
fn off_grid_pdus_and_invalid_counts_are_detected() {
    assert_eq!(violations(&with(5, data(85, 3))), [Invariant::Tti]);
    let three: Vec<Pdu> = (0..3).map(|sn| data(0, sn)).collect();
    assert_eq!(violations(&three), [Invariant::Tti]);
}

#[test]
fn implausible_block_error_rate_is_detected() {
    let trace: Vec<Pdu> = (0..8).map(|sn| data(10 * u64::from(sn), sn)).collect();
    let all_lost: Vec<Pdu> = trace.iter().cloned().map(lost).collect();
    let half = DirectionSettings { bler: Some(0.5), ..down() };
    assert_eq!(
        violations_with(half.clone(), &all_lost),
        [],
        "at 50 %, 8 losses in 8 PDUs happen once in 256"
    );
    let rare = DirectionSettings { bler: Some(0.01), ..down() };
    assert_eq!(violations_with(rare, &all_lost), [Invariant::BlockErrors]);
}

#[test]
fn inconsistent_resets_are_detected() {
    let with = |second: Pdu, third: Pdu| {
        let again = |pdu| Pdu { epoch: 4097, ..pdu };
        // Without MaxDAT, the capture need not show the cause of a RESET.
        let down = DirectionSettings { max_dat: None, ..down() };
        let trace = [
            data(0, 0),
            lost(reset(10, false, 0)),
            second,
            reset_ack(240, false, 0),
            again(data(260, 0)),
            third,
            reset_ack(300, true, 1),
        ];
        violations_with(down, &trace)
    };
    assert_eq!(with(reset(210, false, 0), reset(270, true, 1)), []);
    assert!(with(reset(210, false, 1), reset(270, true, 2)).contains(&Invariant::Reset), "another HFNI");
    assert!(with(reset(210, true, 0), reset(270, true, 1)).contains(&Invariant::Reset), "another RSN");
    assert!(with(reset(210, false, 0), reset(270, false, 1)).contains(&Invariant::Reset), "the same RSN");
    assert!(with(reset(210, false, 0), reset(270, true, 0)).contains(&Invariant::Reset), "the same HFN");
    assert!(violations(&[data(0, 0), lost(reset(10, false, 0)), data(20, 1)]).contains(&Invariant::Reset));
    assert!(
        violations(&[data(0, 0), reset_ack(40, false, 0)]).contains(&Invariant::Reset),
        "there is no RESET to answer"
    );
}

/// The first RESET is acknowledged; the second one crosses a RESET of the peer.
fn crossing(second_down: u32, second_up: u32, ack_up: u32, ack_down: u32) -> Vec<Invariant> {
    let down = DirectionSettings { max_dat: None, ..down() };
    let up = DirectionSettings { max_dat: None, ..up() };
    let again = |epoch, pdu| Pdu { epoch, ..pdu };
    let reset_up = |at, rsn, hfni| pdu(at, Direction::Up, PduKind::Reset { rsn, hfni });
    let ack_of_down = |at, rsn, hfni| pdu(at, Direction::Down, PduKind::ResetAck { rsn, hfni });
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
        let down = DirectionSettings { max_dat: None, ..down() };
        let repeated = [
            data(0, 0),
            reset(10, false, 0),
            lost(reset_ack(40, false, 0)),
            reset(210, false, 0),
            reset_ack(240, false, hfni),
        ];
        violations_with(down, &repeated)
    };
    assert_eq!(with(0), []);
    assert_eq!(with(1), [Invariant::Reset]);
}

#[test]
fn sn_wrap_increments_hfn() {
    for (hfni, found) in [(0, vec![Invariant::Reset]), (1, vec![]), (2, vec![Invariant::Reset])] {
        let (mut trace, now) = laps(MODULUS + 8);
        trace.push(in_lap(MODULUS, reset(now, false, hfni)));
        let down = DirectionSettings { max_dat: None, ..down() };
        assert_eq!(violations_with(down, &trace), found, "HFNI {hfni}");
    }
}

#[test]
fn data_beyond_advertised_window_is_detected() {
    let after_window = |wsn: u16, then: &[Pdu]| {
        let mut trace = vec![data(0, 0), poll(10, 1), window(40, wsn, 2)];
        trace.extend_from_slice(then);
        violations(&trace)
    };
    let three: Vec<Pdu> = (2..5).map(|sn| data(50 + 10 * u64::from(sn), sn)).collect();
    assert_eq!(after_window(3, &three), []);
    assert_eq!(after_window(2, &three), [Invariant::Window]);
    assert_eq!(after_window(0, &three), [Invariant::Window], "a WINDOW of 0 is a violation");
    // A WINDOW larger than the configured window counts as the configured window.
    let nine: Vec<Pdu> = (2..11).map(|sn| data(50 + 10 * u64::from(sn), sn)).collect();
    assert_eq!(after_window(100, &nine[..8]), []);
    assert_eq!(after_window(100, &nine), [Invariant::Window]);
    // Retransmissions beyond the window are also violations, except for the last PDU.
    let shrinks = |copy: u16| {
        let lost: Vec<Pdu> = (0..4).map(|sn| lost(data(10 * u64::from(sn), sn))).collect();
        let report = Status { window: Some(1), lsn: Some(0), missing: vec![0, 1, 2, 3], ..Status::default() };
        let mut trace = lost;
        trace.extend([poll(40, 4), pdu(80, Direction::Up, PduKind::Status(report)), data(100, copy)]);
        violations(&trace)
    };
    assert_eq!(shrinks(0), []);
    assert_eq!(shrinks(1), [Invariant::Window]);
}

#[test]
fn mrw_ack_moves_sender_window() {
    let discarding = DirectionSettings { discard: Discard::Mrw, ..down() };
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
    assert_eq!(violations_with(discarding.clone(), &trace), []);
    let mut twice = trace.to_vec();
    twice.push(data(200, 1));
    assert!(violations_with(discarding, &twice).contains(&Invariant::Format), "the PDU is below the window");
}

/// The poll of PDU 1 is lost, and a POLL SUFI with its sequence number repeats it.
#[test]
fn poll_sufi_counts_as_poll() {
    let with_poll_sn = |sn| {
        let status = Status { poll_sn: Some(sn), ..Status::default() };
        [data(0, 0), lost(poll(10, 1)), lost(pdu(210, Direction::Down, PduKind::Status(status)))]
    };
    assert_eq!(violations_until(down(), &with_poll_sn(1), Some(300)), []);
    assert_eq!(violations_until(down(), &with_poll_sn(0), Some(300)), [Invariant::Polling]);
    assert_eq!(violations_until(down(), &with_poll_sn(1)[..2], Some(300)), [Invariant::Polling]);
}

#[test]
fn oversized_or_padded_flexible_pdus_are_detected() {
    let violations = |octets, padded| {
        let mut checker = Checker::new(settings("pdu=100,flexible=15bit"), up());
        checker.pdu(&Pdu { frame: 1, octets, padded, ..data(0, 0) });
        checker.finish(None).violations.len()
    };
    assert_eq!(
        [violations(3, false), violations(100, false), violations(101, false), violations(42, true)],
        [0, 0, 1, 1]
    );
}
