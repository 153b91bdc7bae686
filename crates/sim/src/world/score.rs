//! Comparison of the judges' verdicts on the causes of losses with the ground truth.

use std::collections::BTreeMap;

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, What};
use airwire::Cause;
use airwire::time::Instant;

use super::truth::Losses;

/// Returns the segment and the cause of a verdict of the active answer or of a judge that only records.
fn judgement(what: &What) -> Option<(u64, Cause)> {
    match what {
        What::Cause { offset, cause } | What::Judged { offset, cause } => Some((*offset, *cause)),
        _ => None,
    }
}

/// Returns the names of all algorithms that gave a verdict on a loss, in the order of their first
/// verdicts.
pub fn judges(decisions: &[Decision]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for decision in decisions.iter().filter(|decision| judgement(&decision.what).is_some()) {
        if !names.contains(&decision.by) {
            names.push(decision.by);
        }
    }
    names
}

/// Compares the verdicts of `judge` with the ground truth.
///
/// Each drop explains one detection: if a segment is detected as lost again although none of its copies was
/// dropped since, it was not lost. Packets that a stage refused are left out.
pub fn score(decisions: &[Decision], losses: &Losses, judge: &str) -> Confusion {
    let mut confusion = Confusion::default();
    let mut found: BTreeMap<u64, Instant> = BTreeMap::new();
    for instant in decisions.chunk_by(|a, b| a.at == b.at) {
        for decision in instant.iter().filter(|decision| decision.by == judge) {
            let Some((offset, judged)) = judgement(&decision.what) else { continue };
            let truth = match losses.between(offset, found.get(&offset).copied(), decision.at) {
                Some(dropped) => dropped.cause().map(Truth::Lost),
                None => Some(Truth::NotLost),
            };
            if let Some(truth) = truth {
                confusion.add(judged, truth);
            }
        }
        for decision in instant {
            if let What::Lost { offset, .. } | What::Timeout { offset } = decision.what {
                found.insert(offset, decision.at);
            }
        }
    }
    confusion
}
