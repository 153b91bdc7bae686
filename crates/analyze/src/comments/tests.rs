use airwire::Cause;

use super::*;
use crate::decisions::LogError;
use crate::trace::AckSeen;

const MS: i64 = 1_000_000;

fn segment(ms: i64, number: u64, start: u64, sending: Sending) -> SentSegment {
    let (dupacks, in_flight, fate) = (0, 0, Fate::Unknown);
    SentSegment { at: ms * MS, number, start, end: start + 1000, sending, dupacks, in_flight, fate }
}

fn ack(ms: i64, number: u64, ack: u64) -> AckSeen {
    AckSeen { at: ms * MS, number, ack, edge: ack + 65_535, duplicate: false, sack: vec![] }
}

/// A segment at 0 ms, acknowledged at 100 ms. The next segment leaves at 100 ms and is retransmitted at 300
/// ms.
fn trace() -> Trace {
    Trace {
        origin: 1_000_000_000_000,
        segments: vec![
            segment(0, 1, 1, Sending::New),
            segment(100, 3, 1001, Sending::New),
            SentSegment { dupacks: 3, in_flight: 4, ..segment(300, 6, 1001, Sending::Fast) },
        ],
        acks: vec![ack(100, 2, 1001), ack(200, 4, 1001), ack(300, 5, 1001), ack(400, 7, 2001)],
        ..Trace::default()
    }
}

/// A log of decisions at these times after the trace's origin. The sender started 0.5 s before the origin.
fn log(decisions: &[(f64, &str)]) -> Log {
    let line = |(at, rest): &(f64, &str)| {
        let (time, wall) = (at + 0.5, 1000.0 + at);
        format!(
            r#"{{"time":{time},"wall":{wall},"question":"repair","by":"sack","why":"because","what":{rest}}}"#
        )
    };
    Log::read(&decisions.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap()
}

fn comments(decisions: &[(f64, &str)]) -> (Vec<(u64, String)>, usize) {
    let mut comments = Comments::new(Some(log(decisions)));
    comments.largest = Some((0, trace()));
    let unassigned = comments.add_decisions();
    (comments.by_frame.into_iter().collect(), unassigned)
}

fn frames(decisions: &[(f64, &str)]) -> Vec<u64> {
    comments(decisions).0.into_iter().map(|(frame, _)| frame).collect()
}

#[test]
fn only_losses_and_retransmissions_get_comments() {
    let mut trace = trace();
    trace.segments[1].fate = Fate::Lost(Loss::Airlink(Cause::Radio));
    trace.segments[2].fate = Fate::Spurious { proof: Proof::Timestamp };
    let texts: Vec<_> = trace.segments.iter().map(why_sent).collect();
    let expected = [
        None,
        Some("lost cause=radio".to_owned()),
        Some("resent fast dupacks=3 flight=4 spurious proof=timestamp".to_owned()),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn decision_annotates_triggered_segment_or_preceding_packet() {
    // At the same instant, as in virtual time, and shortly afterwards, as in real time.
    assert_eq!(frames(&[(0.1, r#""window","cwnd":2.0"#)]), [3]);
    assert_eq!(frames(&[(0.299, r#""window","cwnd":2.0"#)]), [4], "the next packet is an ACK");
    assert_eq!(frames(&[(0.25, r#""window","cwnd":2.0"#)]), [4]);
    assert_eq!(frames(&[(0.45, r#""leave","phase":"recovery""#)]), [7], "no packet follows");
    assert_eq!(frames(&[(0.0, r#""window","cwnd":2.0"#)]), [1]);
}

#[test]
fn decisions_annotate_resulting_retransmission() {
    let window = r#""window","cwnd":2.0,"was_cwnd":4.0,"ssthresh":2.0"#;
    let decisions = [
        (0.2, r#""lost","offset":1001,"segments":1"#),
        (0.2, window),
        (0.2, r#""resend","offset":1001"#),
        (0.2, r#""enter","phase":"recovery","recover":5001"#),
    ];
    let (comments, unassigned) = comments(&decisions);
    let text = "sack: 1 segment lost from 1001 (because) | sack: cwnd 4.0 → 2.0, ssthresh ∞ → 2.0 (because) | \
                sack: retransmit 1001 (because) | sack: enter recovery until 5001 (because)";
    assert_eq!((comments, unassigned), (vec![(6, text.to_owned())], 0));
    // 299 ms later, the segment is a different transmission.
    assert_eq!(frames(&[(0.001, r#""resend","offset":2500"#)]), [1]);
}

#[test]
fn decisions_outside_capture_time_are_only_counted() {
    let (comments, unassigned) = comments(&[(-3600.0, r#""window""#), (3600.0, r#""window""#)]);
    assert_eq!((comments, unassigned), (vec![], 2));
}

#[test]
fn comment_is_single_line_of_bounded_length() {
    let mut comments = Comments::default();
    comments.add(1, "“one”\nline\0");
    assert_eq!(comments.by_frame[&1], "“one” line ");
    for _ in 0..1000 {
        comments.add(1, "the same again");
    }
    assert!(comments.by_frame[&1].len() < MAX_LENGTH + 10 && comments.by_frame[&1].ends_with("again | …"));
}

#[test]
fn unusable_decision_log_is_rejected_with_reason() {
    let line = |more: &str| {
        format!(r#"{{"time":1.0,"question":"window","by":"aimd","what":"window","why":"ACK"{more}}}"#)
    };
    assert_eq!(Log::read("{}\nnonsense"), Err(LogError::NotALog));
    assert_eq!(Log::read(&line("")), Err(LogError::NoWall));
    let several = [line(r#","wall":2.0,"connection":1"#), line(r#","wall":2.0,"connection":2"#)].join("\n");
    assert_eq!(Log::read(&several), Err(LogError::Several));
    let cut = line(r#","wall":2.0"#) + "\n{\"time\":1";
    assert_eq!(Log::read(&cut).map(|log| (log.lines.len(), log.start)), Ok((1, 1_000_000_000)));
    assert!(Log::read("").is_ok_and(|log| log.lines.is_empty()), "an empty log has no decisions");
}
