//! What judges said about the causes of losses, compared with what happened.

use std::collections::BTreeMap;

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, What};
use airwire::Cause;
use airwire::time::Instant;

use super::truth::Losses;

/// The cause of a loss that a decision names, be it by the answer in charge or by one that only watches.
fn judgement(what: &What) -> Option<Cause> {
    match what {
        What::Cause(cause) | What::Judged(cause) => Some(*cause),
        _ => None,
    }
}

/// The names of all who judged a loss, in the order of their first judgement.
pub fn judges(decisions: &[Decision]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for decision in decisions.iter().filter(|decision| judgement(&decision.what).is_some()) {
        if !names.contains(&decision.by) {
            names.push(decision.by);
        }
    }
    names
}

/// Compares what `judge` said with what happened.
///
/// A judgement is about the segment found lost at the same instant or, if a repair under way asked for one more, about
/// the segment that was then sent again. One drop explains one detection: if the segment is found lost again and no copy
/// of it was dropped since, it was not lost. Packets that a stage refused are left out.
pub fn score(decisions: &[Decision], losses: &Losses, judge: &str) -> Confusion {
    let mut confusion = Confusion::default();
    let mut found: BTreeMap<u64, Instant> = BTreeMap::new();
    for instant in decisions.chunk_by(|a, b| a.at == b.at) {
        for (i, decision) in instant.iter().enumerate() {
            let Some(judged) = judgement(&decision.what).filter(|_| decision.by == judge) else { continue };
            let Some(offset) = subject(&instant[..i], &instant[i..]) else { continue };
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

/// The segment that a judgement between these decisions of one instant is about.
fn subject(before: &[Decision], after: &[Decision]) -> Option<u64> {
    let lost = before.iter().rev().find_map(|decision| match decision.what {
        What::Lost { offset, .. } | What::Timeout { offset } => Some(offset),
        _ => None,
    });
    lost.or_else(|| {
        after.iter().find_map(|decision| match decision.what {
            What::Resend { offset } => Some(offset),
            _ => None,
        })
    })
}
