//! How well a judge told why packets were lost: judged against what was true.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use airlink::time::Instant;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::truth::{Losses, Truth};
use crate::recovery::attribute::Cause;
use crate::recovery::{Decision, What};

/// Counts of judgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Confusion {
    /// Judged congestion and judged wireless, each by truth.
    counts: [[u64; Truth::ALL.len()]; 2],
}

const CAUSES: [Cause; 2] = [Cause::Congestion, Cause::Wireless];

impl Confusion {
    pub fn add(&mut self, judged: Cause, truth: Truth) {
        self.counts[judged as usize][truth as usize] += 1;
    }

    pub fn count(&self, judged: Cause, truth: Truth) -> u64 {
        self.counts[judged as usize][truth as usize]
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// Judgements about something that was in truth so.
    pub fn of(&self, truth: Truth) -> u64 {
        CAUSES.iter().map(|judged| self.count(*judged, truth)).sum()
    }

    /// Right ones among the judgements about congestion losses. `None`: there were none.
    pub fn congestion_accuracy(&self) -> Option<f64> {
        ratio(self.count(Cause::Congestion, Truth::Congestion), self.of(Truth::Congestion))
    }

    /// Right ones among the judgements about wireless losses. `None`: there were none.
    pub fn wireless_accuracy(&self) -> Option<f64> {
        ratio(self.count(Cause::Wireless, Truth::Wireless), self.of(Truth::Wireless))
    }

    /// Right ones among the judgements about real losses. `None`: there were none.
    pub fn accuracy(&self) -> Option<f64> {
        let right =
            self.count(Cause::Congestion, Truth::Congestion) + self.count(Cause::Wireless, Truth::Wireless);
        ratio(right, self.of(Truth::Congestion) + self.of(Truth::Wireless))
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl AddAssign for Confusion {
    fn add_assign(&mut self, other: Self) {
        for (mine, its) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *mine += its;
        }
    }
}

/// As a table: in each truth, the counts of both judgements.
impl Serialize for Confusion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = serializer.serialize_map(Some(Truth::ALL.len()))?;
        for truth in Truth::ALL {
            let [congestion, wireless] = CAUSES.map(|judged| self.count(judged, truth));
            table.serialize_entry(
                truth.name(),
                &BTreeMap::from([("congestion", congestion), ("wireless", wireless)]),
            )?;
        }
        table.end()
    }
}

/// In each truth: how many were judged congestion, and how many wireless.
impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, truth) in Truth::ALL.into_iter().enumerate() {
            let [congestion, wireless] = CAUSES.map(|judged| self.count(judged, truth));
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}: {congestion} c {wireless} w", truth.name())?;
        }
        match self.accuracy() {
            Some(accuracy) => write!(f, " ({:.1} % right)", 100.0 * accuracy),
            None => Ok(()),
        }
    }
}

/// What a decision says about the cause of a loss, by an answer in charge or by one that only watches.
fn judgement(what: &What) -> Option<Cause> {
    match what {
        What::Cause(cause) | What::Judged(cause) => Some(*cause),
        _ => None,
    }
}

/// Everybody who judged a loss, in the order of their first judgement.
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
/// A judgement is about the segment found lost at the same instant or, if a repair under way asked again, about the
/// one then sent again. A drop answers for one detection: if the same segment is found lost again and no copy
/// of it was dropped since, that was a mistake. Packets that a stage refused are left out.
pub fn score(decisions: &[Decision], losses: &Losses, judge: &str) -> Confusion {
    let mut confusion = Confusion::default();
    let mut found: BTreeMap<u64, Instant> = BTreeMap::new();
    for instant in decisions.chunk_by(|a, b| a.at == b.at) {
        for (i, decision) in instant.iter().enumerate() {
            let Some(judged) = judgement(&decision.what).filter(|_| decision.by == judge) else { continue };
            let Some(offset) = subject(&instant[..i], &instant[i..]) else { continue };
            let truth = match losses.between(offset, found.get(&offset).copied(), decision.at) {
                Some(dropped) => dropped.truth(),
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
