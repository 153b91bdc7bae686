use airwire::Cause;

use super::super::decisions::LogError;
use super::super::trace::AckSeen;
use super::*;

const MS: i64 = 1_000_000;

fn segment(ms: i64, number: u64, start: u64, sending: Sending) -> SentSegment {
    let (dupacks, in_flight, fate) = (0, 0, Fate::Unknown);
    SentSegment { at: ms * MS, number, start, end: start + 1000, sending, dupacks, in_flight, fate }
}

fn ack(ms: i64, number: u64, ack: u64) -> AckSeen {
    AckSeen { at: ms * MS, number, ack, edge: ack + 65_535, duplicate: false, sack: vec![] }
}

/// Sent at 0 ms, acknowledged at 100 ms; sent on at 100 ms, and again at 300 ms.
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

/// Decisions, at times since the trace's beginning; the sender started half a second before.
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
    comments.most = Some((0, trace()));
    let elsewhere = comments.add_decisions();
    (comments.by_frame.into_iter().collect(), elsewhere)
}

fn frames(decisions: &[(f64, &str)]) -> Vec<u64> {
    comments(decisions).0.into_iter().map(|(frame, _)| frame).collect()
}

#[test]
fn a_packet_tells_why_it_was_sent_and_new_data_need_no_reason() {
    let mut trace = trace();
    trace.segments[1].fate = Fate::Lost(Loss::Airlink(Cause::Radio));
    trace.segments[2].fate = Fate::Unneeded { proof: Proof::Timestamp };
    let texts: Vec<_> = trace.segments.iter().map(why_sent).collect();
    let expected = [
        None,
        Some("lost cause=radio".to_owned()),
        Some("resent fast dupacks=3 flight=4 spurious proof=timestamp".to_owned()),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_decision_goes_to_what_was_sent_upon_it_or_else_to_what_it_was_decided_upon() {
    // At one instant, as in virtual time, and a moment later, as in ours.
    assert_eq!(frames(&[(0.1, r#""window","cwnd":2.0"#)]), [3]);
    assert_eq!(frames(&[(0.299, r#""window","cwnd":2.0"#)]), [4], "the next packet is an ACK");
    assert_eq!(frames(&[(0.25, r#""window","cwnd":2.0"#)]), [4]);
    assert_eq!(frames(&[(0.45, r#""leave","phase":"recovery""#)]), [7], "nothing comes after it");
    assert_eq!(frames(&[(0.0, r#""window","cwnd":2.0"#)]), [1]);
}

#[test]
fn what_leads_to_a_retransmission_stands_beside_it() {
    let window = r#""window","cwnd":2.0,"was_cwnd":4.0,"ssthresh":2.0"#;
    let decisions = [
        (0.2, r#""lost","offset":1001,"segments":1"#),
        (0.2, window),
        (0.2, r#""resend","offset":1001"#),
        (0.2, r#""enter","phase":"recovery","recover":5001"#),
    ];
    let (comments, elsewhere) = comments(&decisions);
    let text = "sack: 1 segment lost from 1001 (because) | sack: cwnd 4.0 → 2.0, ssthresh ∞ → 2.0 (because) | \
                sack: retransmit 1001 (because) | sack: enter recovery until 5001 (because)";
    assert_eq!((comments, elsewhere), (vec![(6, text.to_owned())], 0));
    // 299 ms later it is another transmission.
    assert_eq!(frames(&[(0.001, r#""resend","offset":2500"#)]), [1]);
}

#[test]
fn decisions_of_another_time_are_counted_and_nowhere_shown() {
    let (comments, elsewhere) = comments(&[(-3600.0, r#""window""#), (3600.0, r#""window""#)]);
    assert_eq!((comments, elsewhere), (vec![], 2));
}

#[test]
fn a_comment_is_one_line_of_bounded_length() {
    let mut comments = Comments::default();
    comments.add(1, "“one”\nline\0");
    assert_eq!(comments.by_frame[&1], "“one” line ");
    for _ in 0..1000 {
        comments.add(1, "the same again");
    }
    assert!(comments.by_frame[&1].len() < LONGEST + 10 && comments.by_frame[&1].ends_with("again | …"));
}

#[test]
fn a_log_that_cannot_be_used_says_why() {
    let line = |more: &str| {
        format!(r#"{{"time":1.0,"question":"window","by":"aimd","what":"window","why":"ACK"{more}}}"#)
    };
    assert_eq!(Log::read("{}\nnonsense"), Err(LogError::NotALog));
    assert_eq!(Log::read(&line("")), Err(LogError::NoWall));
    let several = [line(r#","wall":2.0,"connection":1"#), line(r#","wall":2.0,"connection":2"#)].join("\n");
    assert_eq!(Log::read(&several), Err(LogError::Several));
    let cut = line(r#","wall":2.0"#) + "\n{\"time\":1";
    assert_eq!(Log::read(&cut).map(|log| (log.lines.len(), log.start)), Ok((1, 1_000_000_000)));
    assert!(Log::read("").is_ok_and(|log| log.lines.is_empty()), "nothing was decided");
}
