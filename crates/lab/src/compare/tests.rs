//! Synthetic transfers that differ for one reason each.

use airlink::stage::DropReason;
use airtcp::recovery::catalogue::Question;
use airtcp::recovery::{Decision, RecoveryState, What};
use airtcp_analyze::decisions::Line;
use airwire::segment::Flags;
use airwire::time::Instant;

use super::divergence::compare;
use super::trace::{CapturePoint, Disturbances, ObservedPacket, PathFate, Segment, TimedDecision, Trace};
use super::*;

/// The points that a packet and its ACK pass after the packet left the sender.
const AFTER_SENDER: [CapturePoint; 3] =
    [CapturePoint::ReceiverIn, CapturePoint::ReceiverOut, CapturePoint::SenderIn];
/// The points that an ACK passes.
const OF_ACKS: [CapturePoint; 2] = [CapturePoint::ReceiverOut, CapturePoint::SenderIn];

const MS: i64 = 1_000_000;
const LEN: u32 = 1000;

fn data(number: usize) -> Segment {
    Segment::Data { offset: 1 + number as u64 * u64::from(LEN), len: LEN, flags: Flags::NONE }
}

fn ack(number: usize) -> Segment {
    let ack = 1 + (number as u64 + 1) * u64::from(LEN);
    Segment::Ack { ack, sack: Vec::new(), flags: Flags::NONE, edge: ack + 65_535, moves_window: false }
}

fn decided(at: i64, cwnd: f64) -> TimedDecision {
    let what = What::Window { cwnd, ssthresh: 100.0, was_cwnd: cwnd - 1.0, was_ssthresh: 100.0 };
    let (state, question) = (RecoveryState::Open, Question::Window);
    let at_instant = Instant::from_nanos(at.max(0) as u64);
    let decision = Decision { at: at_instant, state, question, by: "aimd", what, why: "ACK" };
    TimedDecision { at, line: Line::of(&decision).unwrap() }
}

/// A segment every 10 ms, with 30 ms of delay each way. Each segment is acknowledged at once, and each ACK
/// increases the window by one.
fn transfer(segments: usize) -> Trace {
    let mut trace = Trace::default();
    for number in 0..segments {
        let sent = 10 * MS * number as i64;
        for (point, at, segment) in [
            (CapturePoint::SenderOut, sent, data(number)),
            (CapturePoint::ReceiverIn, sent + 30 * MS, data(number)),
            (CapturePoint::ReceiverOut, sent + 30 * MS, ack(number)),
            (CapturePoint::SenderIn, sent + 60 * MS, ack(number)),
        ] {
            trace.observed[point as usize].push(ObservedPacket { at, segment });
        }
        trace.fates.down.push(PathFate::Passed);
        trace.fates.up.push(PathFate::Passed);
        trace.decisions.push(decided(sent + 60 * MS, 10.0 + number as f64));
    }
    trace
}

/// Changes the window in all decisions from `number` on.
fn change_decisions(trace: &mut Trace, number: usize) {
    for decided in &mut trace.decisions[number..] {
        let cwnd = decided.line.number("cwnd").unwrap() / 2.0;
        *decided = self::decided(decided.at, cwnd);
    }
}

/// Delays all packets from `number` on at these points, and all decisions from `number` on.
fn delay(trace: &mut Trace, points: &[CapturePoint], number: usize, by: i64) {
    for point in points {
        trace.observed[*point as usize][number..].iter_mut().for_each(|packet| packet.at += by);
    }
    trace.decisions[number..].iter_mut().for_each(|decision| decision.at += by);
}

/// Replaces the n-th ACK by a copy of the previous ACK.
fn repeat_ack(trace: &mut Trace, number: usize) {
    for point in OF_ACKS {
        trace.observed[point as usize][number].segment = ack(number - 1);
    }
}

/// Removes the n-th packet and its ACK after the packet left the sender.
fn lose(trace: &mut Trace, number: usize) {
    for point in AFTER_SENDER {
        trace.observed[point as usize].remove(number);
    }
}

fn divergence_of(real: &Trace, other: &Trace) -> (usize, Cause, String) {
    let decisions = compare(real, other);
    let Divergence { cause, evidence, .. } = decisions.divergence.expect("the traces differ");
    (decisions.same, cause, evidence)
}

/// Checks the number of identical decisions, the cause, and the start of the evidence.
#[track_caller]
fn check(real: &Trace, other: &Trace, same: usize, cause: Cause, evidence_start: &str) {
    let (actual_same, actual_cause, evidence) = divergence_of(real, other);
    assert_eq!((actual_same, actual_cause), (same, cause), "{evidence}");
    assert!(evidence.starts_with(evidence_start), "{evidence}");
}

#[test]
fn identical_transfers_do_not_diverge() {
    let decisions = compare(&transfer(8), &transfer(8));
    let counts = (decisions.same, decisions.real, decisions.in_virtual_time);
    assert_eq!((counts, &decisions.divergence), ((8, 8, 8), &None));
    assert_eq!(decisions.to_string(), "all 8 decisions identical");
}

#[test]
fn different_ack_of_same_data_blames_receiver() {
    let mut real = transfer(8);
    repeat_ack(&mut real, 4);
    change_decisions(&mut real, 4);
    let expected = "ACK 5 of the same data: real ACK 4001, virtual ACK 5001; the data before it arrived with the same timing within 0.00 ms"
        .to_owned();
    assert_eq!(divergence_of(&real, &transfer(8)), (4, Cause::Receiver, expected));
}

#[test]
fn different_ack_after_different_timing_is_lateness() {
    let mut real = transfer(8);
    delay(&mut real, &AFTER_SENDER, 4, 25 * MS);
    repeat_ack(&mut real, 4);
    change_decisions(&mut real, 4);
    let evidence = "4001+1000 arrived 35 ms after the segment before it, in virtual time 10 ms;";
    check(&real, &transfer(8), 4, Cause::Lateness, evidence);
}

#[test]
fn late_identical_packets_are_reported_as_lateness() {
    let mut real = transfer(8);
    real.disturbances.max_lateness = 15 * MS;
    delay(&mut real, &AFTER_SENDER, 5, 14 * MS);
    change_decisions(&mut real, 6);
    let expected =
        "14 ms late at 0.094 s, first on the way down: 5001+1000; the emulator was at most 15 ms late";
    assert_eq!(divergence_of(&real, &transfer(8)), (6, Cause::Lateness, expected.to_owned()));
    delay(&mut real, &[CapturePoint::SenderIn], 6, MS);
    let evidence = "15 ms late at 0.135 s, first on the way down: 5001+1000, 14 ms late at 0.094 s";
    check(&real, &transfer(8), 6, Cause::Lateness, evidence);
}

#[test]
fn lateness_after_decision_does_not_explain_it() {
    let mut real = transfer(12);
    change_decisions(&mut real, 3);
    delay(&mut real, &CapturePoint::ALL, 10, 50 * MS);
    check(&real, &transfer(12), 3, Cause::Sender, "");
}

#[test]
fn different_packet_fate_blames_path() {
    let mut real = transfer(8);
    real.fates.down[4] = PathFate::Dropped(DropReason::QueueFull);
    delay(&mut real, &[CapturePoint::SenderOut], 4, 200_000);
    lose(&mut real, 4);
    change_decisions(&mut real, 4);
    let expected = "packet 5 down (4001+1000) real dropped (queue-full), virtual not dropped; it entered 0.20 ms later than \
                    in virtual time";
    assert_eq!(divergence_of(&real, &transfer(8)), (4, Cause::Path, expected.to_owned()));
}

#[test]
fn lost_ack_blames_path() {
    let mut other = transfer(8);
    other.fates.up[2] = PathFate::Dropped(DropReason::Loss);
    other.observed[CapturePoint::SenderIn as usize].remove(2);
    change_decisions(&mut other, 2);
    let evidence = "packet 3 up (ACK 3001) real not dropped, virtual dropped (loss);";
    check(&transfer(8), &other, 2, Cause::Path, evidence);
}

#[test]
fn reordering_blames_path_despite_later_drops() {
    let mut real = transfer(12);
    let received = &mut real.observed[CapturePoint::ReceiverIn as usize];
    (received[3].segment, received[4].segment) = (data(4), data(3));
    real.fates.down[10] = PathFate::Dropped(DropReason::Loss);
    change_decisions(&mut real, 3);
    let expected = "packet 4 out of the path, down: real 4001+1000, virtual 3001+1000".to_owned();
    assert_eq!(divergence_of(&real, &transfer(12)), (3, Cause::Path, expected));
}

#[test]
fn packet_dropped_outside_path_blames_machine() {
    let mut real = transfer(8);
    real.disturbances.dropped = 1;
    lose(&mut real, 4);
    change_decisions(&mut real, 4);
    let evidence = "kernels dropped 1 packets between two programs; real 5001+1000";
    check(&real, &transfer(8), 4, Cause::Machine, evidence);

    // A foreign packet uses the random number of one of the transfer's packets.
    real.disturbances = Disturbances { foreign: 2, ..Disturbances::default() };
    real.fates.down[1] = PathFate::Dropped(DropReason::Loss);
    assert_eq!(divergence_of(&real, &transfer(8)).1, Cause::Machine);
}

#[test]
fn different_decision_after_same_packets_blames_sender() {
    let mut real = transfer(8);
    delay(&mut real, &CapturePoint::ALL, 1, MS / 4);
    change_decisions(&mut real, 5);
    let expected = "all packets before it are identical and at the same time within 0.25 ms".to_owned();
    assert_eq!(divergence_of(&real, &transfer(8)), (5, Cause::Sender, expected));
}

#[test]
fn quarter_millisecond_delay_explains_timer_race() {
    // The two clocks may differ by a twentieth of a millisecond.
    for (late, cause, evidence) in
        [(MS / 4, Cause::Lateness, "0.25 ms late at "), (MS / 20, Cause::Sender, "")]
    {
        let mut real = transfer(8);
        delay(&mut real, &CapturePoint::ALL, 1, late);
        let mut other = transfer(8);
        other.decisions[5].line.by = "rack".to_owned();
        check(&real, &other, 5, cause, evidence);
    }
}

#[test]
fn segments_sent_after_decision_do_not_explain_it() {
    let mut real = transfer(10);
    real.observed[CapturePoint::SenderOut as usize][9] = ObservedPacket { at: 61 * MS, segment: data(0) };
    real.observed[CapturePoint::SenderOut as usize].sort_by_key(|packet| packet.at);
    change_decisions(&mut real, 0);
    let (same, cause, evidence) = divergence_of(&real, &transfer(10));
    assert_eq!((same, cause), (0, Cause::Sender));
    assert!(!evidence.contains("segment"), "{evidence}");
}

#[test]
fn unexplained_segment_blames_sender_and_is_shown() {
    let mut real = transfer(10);
    real.observed[CapturePoint::SenderOut as usize][3].segment = data(0);
    change_decisions(&mut real, 6);
    let (same, cause, evidence) = divergence_of(&real, &transfer(10));
    assert_eq!((same, cause), (6, Cause::Sender));
    assert!(evidence.ends_with("segment 4 real 1+1000, virtual 3001+1000"), "{evidence}");
}

#[test]
fn ack_delayed_by_timer_blames_receiver() {
    let delayed_by = |delay_ms| {
        let mut real = transfer(8);
        delay(&mut real, &OF_ACKS, 7, delay_ms * MS);
        change_decisions(&mut real, 7);
        divergence_of(&real, &transfer(8))
    };
    let expected = "ACK 8001 was sent 41 ms after the last data, in virtual time 0.00 ms".to_owned();
    assert_eq!(delayed_by(41), (7, Cause::Receiver, expected));
    let (_, cause, evidence) = delayed_by(5);
    assert_eq!(cause, Cause::Lateness, "no timer is that short");
    assert!(evidence.contains("first at the receiver: ACK 8001"), "{evidence}");
}

#[test]
fn segment_blocked_by_window_blames_receiver() {
    let mut real = transfer(12);
    for packet in &mut real.observed[CapturePoint::SenderIn as usize] {
        if let Segment::Ack { ack, edge, .. } = &mut packet.segment {
            *edge = *ack + 5000;
        }
    }
    delay(&mut real, &[CapturePoint::SenderOut], 9, 20 * MS);
    change_decisions(&mut real, 10);
    let (same, cause, evidence) = divergence_of(&real, &transfer(12));
    assert_eq!((same, cause), (10, Cause::Receiver));
    assert_eq!(evidence, "9001+1000 waited: the window ended at 9001, in virtual time at 69536");
}

#[test]
fn shorter_trace_diverges_at_its_end() {
    let mut real = transfer(8);
    real.decisions.truncate(6);
    let decisions = compare(&real, &transfer(8));
    assert_eq!(decisions.same, 6);
    let text = decisions.to_string();
    let start = "6 of 8 decisions identical, then real no further decision, virtual aimd at 0.120 s: cwnd 15.0 → 16.0, \
                 ssthresh 100.0 (ACK): sender: ";
    assert!(text.starts_with(start), "{text}");
}

// Summaries of several rounds.

fn round(number: u32, real: f64, other: f64, same: usize, cause: Option<Cause>) -> Round {
    let divergence = cause.map(|cause| Divergence {
        real: None,
        in_virtual_time: None,
        cause,
        evidence: "14 ms late".to_owned(),
    });
    let decisions = Some(DecisionComparison { same, real: 50, in_virtual_time: 50, divergence });
    let (real_kbit_per_s, virtual_kbit_per_s) = (Some(real), Some(other));
    let seed = u64::from(number);
    Round { round: number, seed, failure: None, real_kbit_per_s, virtual_kbit_per_s, decisions }
}

#[test]
fn verdict_depends_only_on_paired_interval() {
    // The means overlap in any case, because the rounds differ much. Within each pair the values are close.
    let verdict = |factors: [f64; 4]| {
        let rounds = [100.0, 200.0, 400.0, 800.0].into_iter().zip(factors).enumerate();
        let rounds = rounds.map(|(n, (real, factor))| round(n as u32 + 1, real, real * factor, 50, None));
        SenderComparison::new("newreno", "linux", "linux", rounds.collect()).verdict
    };
    assert_eq!(verdict([1.0, 1.01, 1.0, 1.005]), RatioVerdict::Equal);
    assert_eq!(verdict([1.5, 1.5, 0.5, 1.5]), RatioVerdict::TooFewRounds);
    let differs: Vec<_> = (1..=4).map(|n| round(n, 100.0, 120.0 + f64::from(n), 50, None)).collect();
    assert_eq!(SenderComparison::new("newreno", "linux", "linux", differs).verdict, RatioVerdict::Differs);
    let one = SenderComparison::new("newreno", "linux", "linux", vec![round(1, 100.0, 100.0, 50, None)]);
    assert_eq!(one.verdict, RatioVerdict::TooFewRounds, "one pair has no interval");
}

#[test]
fn comparison_table_has_sender_rows_and_round_lines() {
    let failure = Some("in real time: not complete after 10 s".to_owned());
    let failed = Round { round: 3, seed: 3, failure, ..Round::default() };
    let rounds =
        vec![round(1, 100.0, 101.0, 50, None), round(2, 110.0, 109.0, 20, Some(Cause::Lateness)), failed];
    let compared = SenderComparison::new("newreno", "linux", "linux", rounds);
    assert_eq!((compared.median_same, compared.causes.get(&Cause::Lateness)), (Some(35.0), Some(&1)));
    let text = table(std::slice::from_ref(&compared), None);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "recipes with profile linux");
    let cells: Vec<_> = lines[3].split_whitespace().collect();
    assert_eq!((cells[0], &cells[cells.len() - 3..]), ("newreno", &["35", "lateness", "1"][..]), "{text}");
    assert_eq!(lines[4], "newreno, round 1: all 50 decisions identical");
    assert_eq!(
        lines[5],
        "newreno, round 2: 20 of 50 decisions identical, then real no further decision, virtual no further decision: lateness: 14 ms late"
    );
    assert_eq!(lines[6], "newreno, round 3: in real time: not complete after 10 s");

    let json = serde_json::to_string(&compared).unwrap();
    let read: SenderComparison = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (read.verdict, read.causes, read.rounds),
        (compared.verdict, compared.causes, compared.rounds)
    );
}
