//! A line of a decision log.

use serde::Serialize;

use crate::recovery::{Decision, RecoveryState, What};

/// A decision as a line of a decision log. Offsets are bytes of the stream, with the SYN at 0. Windows are in
/// segments.
///
/// `time` is relative to the program's start. `wall` is relative to 1970, like the timestamps of captures.
/// `episode` is the state of loss recovery at the time of the decision.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<u64>,
    time: f64,
    wall: f64,
    episode: RecoveryState,
    question: &'static str,
    by: &'static str,
    #[serde(flatten)]
    what: What,
    why: &'static str,
}

impl DecisionLine {
    /// Creates a line. `zero` is the time of the sender's `Instant::ZERO` in seconds since 1970. `connection` is
    /// the connection's number, counted from 1, in a log that several connections share.
    pub fn new(decision: &Decision, zero: f64, connection: Option<u64>) -> Self {
        let Decision { at, state, question, by, what, why } = decision;
        let time = at.as_secs_f64();
        let (wall, question, what) = (zero + time, question.name(), what.clone());
        Self { connection, time, wall, episode: *state, question, by, what, why }
    }
}

#[cfg(test)]
mod tests {
    use airwire::Cause;
    use airwire::time::Instant;

    use super::*;
    use crate::recovery::catalogue::Question;

    #[test]
    fn decision_line_serializes_all_fields() {
        let decision = Decision {
            at: Instant::from_millis(1500),
            state: RecoveryState::Recovery,
            question: Question::Window,
            by: "aimd",
            what: What::Window { cwnd: 5.0, ssthresh: 5.0, was_cwnd: 10.0, was_ssthresh: f64::INFINITY },
            why: "loss",
        };
        let expected = r#"{"time":1.5,"wall":1000.5,"episode":"recovery","question":"window","by":"aimd","what":"window","cwnd":5.0,"ssthresh":5.0,"was_cwnd":10.0,"was_ssthresh":null,"why":"loss"}"#;
        assert_eq!(serde_json::to_string(&DecisionLine::new(&decision, 999.0, None)).unwrap(), expected);
        let shared = serde_json::to_string(&DecisionLine::new(&decision, 999.0, Some(3))).unwrap();
        assert_eq!(shared, expected.replacen('{', r#"{"connection":3,"#, 1));
    }

    #[test]
    fn line_name_matches_decision_name() {
        let (offset, cause, state, recover) = (1, Cause::Radio, RecoveryState::Recovery, 2);
        let window = What::Window { cwnd: 1.0, ssthresh: 1.0, was_cwnd: 2.0, was_ssthresh: 2.0 };
        for what in [
            What::Lost { offset, segments: 1 },
            What::Cause { offset, cause },
            What::Judged { offset, cause },
            What::Enter { state, recover },
            What::Extend { recover },
            What::Leave { state },
            window,
            What::Resend { offset },
            What::Probe { offset },
            What::Timeout { offset },
            What::Resume { at: offset },
            What::Fallback { to: "newreno" },
        ] {
            let name = what.name();
            let decision = Decision {
                at: Instant::ZERO,
                state: RecoveryState::Open,
                question: Question::Repair,
                by: "sack",
                what,
                why: "",
            };
            assert_eq!(serde_json::to_value(DecisionLine::new(&decision, 0.0, None)).unwrap()["what"], name);
        }
    }

    #[test]
    fn judge_verdict_serializes_as_judged_line() {
        let decision = Decision {
            at: Instant::from_millis(250),
            state: RecoveryState::Open,
            question: Question::Attribute,
            by: "vegas",
            what: What::Judged { offset: 2896, cause: Cause::Radio },
            why: "f < alpha: no queue",
        };
        let expected = r#"{"time":0.25,"wall":999.25,"episode":"open","question":"attribute","by":"vegas","what":"judged","offset":2896,"cause":"radio","why":"f < alpha: no queue"}"#;
        assert_eq!(serde_json::to_string(&DecisionLine::new(&decision, 999.0, None)).unwrap(), expected);
    }
}
