//! Changes of a sweep since its store was last opened: added runs, and runs that are no longer in
//! the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::manifest::{NamedPoint, RequestedRuns};

/// The changes of a plan since its store was last opened. It is printed as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    parts: Vec<String>,
}

/// Maximum number of changed values that are named. The others are only counted.
const MAX_NAMED: usize = 6;

impl Change {
    /// Compares two plans. Returns `None` if they ask for the same runs.
    pub(super) fn between(before: &RequestedRuns, now: &RequestedRuns) -> Option<Self> {
        let mut parts = Vec::new();
        let seeds =
            |requested: &RequestedRuns| requested.seeds.iter().map(u64::to_string).collect::<Vec<_>>();
        differ(("seed", "seeds"), &seeds(before), &seeds(now), &mut parts);
        let (old_axes, new_axes) = (axes(before), axes(now));
        let names = |axes: &[(String, Vec<String>)]| -> Vec<String> {
            axes.iter().map(|(name, _)| name.clone()).collect()
        };
        differ(("axis", "axes"), &names(&old_axes), &names(&new_axes), &mut parts);
        for (name, values) in &new_axes {
            if let Some((_, before)) = old_axes.iter().find(|(axis, _)| axis == name) {
                differ((name, name), before, values, &mut parts);
            }
        }
        if names(&old_axes) == names(&new_axes) {
            differ_with_same_labels(&before.points, &now.points, &mut parts);
        }
        if parts.is_empty() && before != now {
            parts.push("the order of the runs has changed".to_owned());
        }
        (!parts.is_empty()).then_some(Self { parts })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join("; "))
    }
}

/// Returns the axes with their values, in their original order.
fn axes(requested: &RequestedRuns) -> Vec<(String, Vec<String>)> {
    let mut axes: Vec<(String, Vec<String>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (axis, value) in requested.points.iter().flat_map(|point| &point.labels.0) {
        if !seen.insert((axis, value)) {
            continue;
        }
        match axes.iter_mut().find(|(name, _)| name == axis) {
            Some((_, values)) => values.push(value.clone()),
            None => axes.push((axis.clone(), vec![value.clone()])),
        }
    }
    axes
}

/// Describes the added and removed values. `one` and `many` are the singular and the plural of their
/// name.
fn differ((one, many): (&str, &str), before: &[String], now: &[String], parts: &mut Vec<String>) {
    for (values, others, state) in [(now, before, "new"), (before, now, "no longer in the plan")] {
        let known: BTreeSet<&String> = others.iter().collect();
        let only: Vec<&str> =
            values.iter().filter(|value| !known.contains(value)).map(String::as_str).collect();
        if !only.is_empty() {
            let (noun, are) = if only.len() == 1 { (one, "is") } else { (many, "are") };
            parts.push(format!("{noun} {} {are} {state}", listed(&only)));
        }
    }
}

/// Describes the points that have the same labels as before, but different settings.
fn differ_with_same_labels(before: &[NamedPoint], now: &[NamedPoint], parts: &mut Vec<String>) {
    let known: BTreeMap<String, &str> =
        before.iter().map(|point| (point.labels.to_string(), point.content_hash.as_str())).collect();
    let other = |point: &&NamedPoint| {
        known.get(&point.labels.to_string()).is_some_and(|content_hash| *content_hash != point.content_hash)
    };
    let others: Vec<&NamedPoint> = now.iter().filter(other).collect();
    let Some(first) = others.first() else { return };
    let subject = match (others.len(), now.len()) {
        (1, 1) => "its only point is".to_owned(),
        (1, _) => format!("the point {} is", first.labels),
        (some, all) if some == all => format!("all {all} points are"),
        (some, _) => format!("{some} points ({}, …) are", first.labels),
    };
    parts.push(format!("{subject} different (a fixed option, a case or a scenario has changed)"));
}

/// Formats a list: `a, b and c`.
fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let (last, shown) = match names[..names.len() - more].split_last() {
        Some((last, shown)) if more == 0 => ((*last).to_owned(), shown),
        _ => (format!("{more} more"), &names[..names.len() - more]),
    };
    if shown.is_empty() { last } else { format!("{} and {last}", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::labels::Labels;

    /// A plan with a point for each combination of recipe and number of flows.
    fn requested(seeds: &[u64], recipes: &[&str], flows: &[&str], fixed: &str) -> RequestedRuns {
        let points = recipes.iter().flat_map(|recipe| {
            flows.iter().map(move |flows| NamedPoint {
                content_hash: format!("{recipe} {flows} {fixed}"),
                labels: Labels(vec![
                    ("recipe".to_owned(), (*recipe).to_owned()),
                    ("flows".to_owned(), (*flows).to_owned()),
                ]),
            })
        });
        RequestedRuns { seeds: seeds.to_vec(), points: points.collect() }
    }

    #[test]
    fn added_and_removed_values_are_named() {
        let before = requested(&[1, 2, 3], &["reno", "sack"], &["1"], "");
        let change = |now: &RequestedRuns| Change::between(&before, now).map(|change| change.to_string());
        assert_eq!(change(&before), None);
        assert_eq!(
            change(&requested(&[1, 2, 3, 4, 5], &["reno", "tahoe"], &["1", "2"], "")).as_deref(),
            Some(
                "seeds 4 and 5 are new; recipe tahoe is new; recipe sack is no longer in the plan; flows 2 is new"
            )
        );
        assert_eq!(
            change(&requested(&[1, 2, 3], &["reno", "sack"], &["1"], "other")).as_deref(),
            Some("all 2 points are different (a fixed option, a case or a scenario has changed)")
        );
        assert_eq!(
            change(&requested(&[1, 2, 3], &["sack", "reno"], &["1"], "")).as_deref(),
            Some("the order of the runs has changed")
        );
        let many: Vec<u64> = (1..=30).collect();
        assert_eq!(
            change(&requested(&many, &["reno", "sack"], &["1"], "")).as_deref(),
            Some("seeds 4, 5, 6, 7, 8, 9 and 21 more are new")
        );
    }
}
