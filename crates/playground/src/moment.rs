//! The state of a sender at one moment: its recovery state, its window, and the last decision on each
//! question.

use airtcp::explain;
use airtcp::recovery::catalogue::Question;
use airtcp::recovery::{Decision, What};
use airtcp_analyze::decisions::Line;
use serde_json::{Value, json};

use crate::Trouble;
use crate::run::Kept;

/// Returns the state as JSON. `micros` counts from the sender's first packet, as in the graphs.
pub(crate) fn moment(kept: &Kept, flow: usize, micros: f64) -> Result<Value, Vec<Trouble>> {
    let missing = || vec![Trouble::new("run", flow, "this run has no such sender")];
    let thoughts = kept.flows.get(flow).ok_or_else(missing)?;
    let at = |decision: &Decision| (decision.at.as_nanos() as i64 - thoughts.origin).div_euclid(1000);
    let until = micros.max(0.0) as i64;
    let past = &thoughts.decisions[..thoughts.decisions.partition_point(|decision| at(decision) <= until)];
    let state = past.last().map(|decision| {
        let present = decision.episode;
        let since =
            past.iter().rposition(|decision| decision.episode != present).map_or(0, |before| before + 1);
        json!({ "name": present.name(), "meaning": present.meaning(), "since": at(&past[since]) })
    });
    let window = past.iter().rev().find_map(|decision| match decision.what {
        // JSON has no infinity: an arbitrarily high threshold becomes null.
        What::Window { cwnd, ssthresh, .. } => Some(json!({ "cwnd": cwnd, "ssthresh": ssthresh })),
        _ => None,
    });
    let parts = explain::parts(&thoughts.sender.recipe);
    let answer = |question: Question| {
        let of: Vec<_> = parts.iter().filter(|part| part.of == question).collect();
        let last = past.iter().rfind(|decision| decision.question == question);
        let last = last.and_then(|decision| {
            let line = Line::of(decision)?;
            let (text, offset) = (line.detail(), line.offset());
            Some(
                json!({ "at": at(decision), "by": line.by, "text": text, "offset": offset, "why": line.why }),
            )
        });
        let is_latest = past.last().is_some_and(|decision| decision.question == question);
        json!({ "question": question.text(), "parts": of, "last": last, "latest": is_latest })
    };
    let questions = Question::ALL.into_iter().filter(|question| *question != Question::Option);
    let after = thoughts.decisions.get(past.len()).map(at);
    Ok(json!({
        "state": state,
        "window": window,
        "answers": questions.map(answer).collect::<Vec<_>>(),
        "next": after,
    }))
}
