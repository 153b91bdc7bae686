//! The state of a sender at one moment: its recovery state, its window, and the last decision on each
//! question.

use airtcp::explain;
use airtcp::recovery::catalogue::Question;
use airtcp::recovery::{Decision, What};
use airtcp_analyze::decisions::Line;
use serde_json::{Value, json};

use crate::Trouble;
use crate::run::StoredRun;

/// Returns the state as JSON. `micros` counts from the sender's first packet, as in the graphs.
pub(crate) fn moment(run: &StoredRun, flow: usize, micros: f64) -> Result<Value, Vec<Trouble>> {
    let missing = || vec![Trouble::new("run", flow, "this run has no such sender")];
    let flow = run.flows.get(flow).ok_or_else(missing)?;
    let at = |decision: &Decision| (decision.at.as_nanos() as i64 - flow.origin).div_euclid(1000);
    let until = micros.max(0.0) as i64;
    let past = &flow.decisions[..flow.decisions.partition_point(|decision| at(decision) <= until)];
    let state = past.last().map(|decision| {
        let state = decision.state;
        let since = past.iter().rposition(|earlier| earlier.state != state).map_or(0, |index| index + 1);
        json!({ "name": state.name(), "meaning": state.meaning(), "since": at(&past[since]) })
    });
    let window = past.iter().rev().find_map(|decision| match decision.what {
        // JSON has no infinity: an arbitrarily high threshold becomes null.
        What::Window { cwnd, ssthresh, .. } => Some(json!({ "cwnd": cwnd, "ssthresh": ssthresh })),
        _ => None,
    });
    let parts = explain::parts(&flow.sender.recipe);
    let answer = |question: Question| {
        let parts: Vec<_> = parts.iter().filter(|part| part.of == question).collect();
        let last = past.iter().rfind(|decision| decision.question == question);
        let last = last.and_then(|decision| {
            let line = Line::of(decision)?;
            let (at, text, offset) = (at(decision), line.detail(), line.offset());
            Some(json!({ "at": at, "by": line.by, "text": text, "offset": offset, "why": line.why }))
        });
        let is_latest = past.last().is_some_and(|decision| decision.question == question);
        json!({ "question": question.text(), "parts": parts, "last": last, "latest": is_latest })
    };
    let questions = Question::ALL.into_iter().filter(|question| *question != Question::Option);
    let after = flow.decisions.get(past.len()).map(at);
    Ok(json!({
        "state": state,
        "window": window,
        "answers": questions.map(answer).collect::<Vec<_>>(),
        "next": after,
    }))
}
