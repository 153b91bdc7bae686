//! Comparison of a sweep's points with a reference point. Differences between runs with the same
//! seed vary less than the runs themselves.

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_numbers::verdict::{Comparison, Verdict, p_of};
use serde_json::{Value, json};

use super::labels::Labels;
use super::metric::{Better, Metric};

/// The reference: the value of an axis that the other values are compared with, written
/// `recipe=newreno`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Name of the axis in the sweep's file.
    pub axis: String,
    /// The value as tables show it.
    pub value: String,
}

impl std::str::FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (axis, value) = text.split_once('=').ok_or("expected AXIS=VALUE, for example recipe=newreno")?;
        Ok(Self { axis: axis.to_owned(), value: value.to_owned() })
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.axis, self.value)
    }
}

/// The axis whose first value is the reference by default.
const DEFAULT_AXIS: &str = "recipe";

impl Reference {
    /// Returns the default reference: the first recipe, if there are several.
    pub fn first_recipe<'a>(points: impl IntoIterator<Item = &'a Labels>) -> Option<Self> {
        let mut values = points.into_iter().filter_map(|point| point.of(DEFAULT_AXIS));
        let first = values.next()?;
        values
            .any(|value| value != first)
            .then(|| Self { axis: DEFAULT_AXIS.to_owned(), value: first.to_owned() })
    }

    /// Returns whether this point has the reference value.
    pub(super) fn matches(&self, point: &Labels) -> bool {
        point.of(&self.axis) == Some(self.value.as_str())
    }

    /// Returns whether two points are equal in all axes except the reference's.
    pub(super) fn differ_only_in_axis(&self, one: &Labels, other: &Labels) -> bool {
        let rest = |point: &Labels| -> Vec<(String, String)> {
            point.0.iter().filter(|(axis, _)| *axis != self.axis).cloned().collect()
        };
        rest(one) == rest(other)
    }

    pub(super) fn check(&self, points: &[&Labels]) -> Result<(), ReferenceError> {
        let Some(first) = points.first() else { return Ok(()) };
        let axis = self.axis.clone();
        if first.of(&axis).is_none() {
            let known = first.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(ReferenceError::NoAxis { axis, known });
        }
        let mut values: Vec<&str> = Vec::new();
        for value in points.iter().filter_map(|point| point.of(&axis)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.contains(&self.value.as_str()) {
            return Ok(());
        }
        Err(ReferenceError::NoValue { axis, value: self.value.clone(), known: values.join(", ") })
    }
}

/// Error: the points cannot be compared with the reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The sweep does not have the axis of the reference.
    #[error("unknown axis `{axis}`; the axes of this sweep are {known}")]
    NoAxis {
        /// The unknown axis.
        axis: String,
        /// All axes, separated by commas.
        known: String,
    },
    /// No result has the value of the reference.
    #[error("unknown value `{value}` of the axis `{axis}`; its values are {known}")]
    NoValue {
        /// The axis of the reference.
        axis: String,
        /// The unknown value.
        value: String,
        /// All values of the axis, separated by commas.
        known: String,
    },
}

/// A metric of a point compared with the reference point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Against {
    /// Mean difference of the pairs, in the metric's unit.
    pub difference: Mean,
    /// The difference as a fraction of the reference's mean, with the verdict. *Better* follows the
    /// metric's preferred direction.
    pub comparison: Comparison,
    better: Option<Better>,
}

impl Against {
    /// Compares samples whose equal indices form pairs. Gains up to `margin` count as no difference.
    /// Returns `None` if no pairs exist.
    pub(super) fn of(with: &[f64], without: &[f64], metric: &Metric, margin: f64) -> Option<Self> {
        let difference = Mean::of(&differences(with, without))?;
        let mut comparison = Comparison::within(margin, with, without);
        if comparison.gain.is_none() {
            // The reference's mean is zero, so a fraction is undefined, but the difference still
            // has a sign.
            comparison.p = p_of(difference);
            comparison.verdict = match difference {
                Mean { mean, half_width: Some(half), .. } if mean - half > 0.0 => Verdict::Better,
                Mean { mean, half_width: Some(half), .. } if mean + half < 0.0 => Verdict::Worse,
                Mean { mean: 0.0, half_width: Some(0.0), .. } => Verdict::NoDifference,
                _ => Verdict::NotEnough { more: None },
            };
        }
        let better = metric.better();
        if better == Some(Better::Less) {
            comparison.verdict = match comparison.verdict {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                other => other,
            };
        }
        Some(Self { difference, comparison, better })
    }

    /// Returns the verdict as text. Values of a metric without a preferred direction are higher or
    /// lower.
    pub fn verdict(&self) -> String {
        match (self.comparison.verdict, self.better) {
            (Verdict::Better, None) => "higher".to_owned(),
            (Verdict::Worse, None) => "lower".to_owned(),
            (verdict, _) => verdict.to_string(),
        }
    }

    /// Returns JSON with `difference`, `gain`, `verdict`, and `more` if more pairs are needed.
    pub fn json(&self) -> Value {
        let mut json = json!(self.comparison);
        json["difference"] = json!(self.difference);
        if self.better.is_none() && matches!(self.comparison.verdict, Verdict::Better | Verdict::Worse) {
            json["verdict"] = self.verdict().into();
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use airtcp_numbers::verdict::MARGIN;

    use super::*;

    fn compare(metric: &str, with: &[f64], without: &[f64]) -> Against {
        Against::of(with, without, &metric.parse().unwrap(), MARGIN).unwrap()
    }

    #[test]
    fn metric_determines_which_direction_is_better() {
        let (more, less) = ([150.0, 151.0, 149.0], [100.0, 101.0, 99.0]);
        for (metric, up, down) in
            [("goodput", "better", "worse"), ("took", "worse", "better"), ("dupacks", "higher", "lower")]
        {
            assert_eq!(compare(metric, &more, &less).verdict(), up, "{metric}");
            assert_eq!(compare(metric, &less, &more).verdict(), down, "{metric}");
        }
        let json = compare("dupacks", &more, &less).json();
        assert_eq!((&json["verdict"], &json["difference"]["mean"]), (&json!("higher"), &json!(50.0)));
        assert_eq!(json["gain"]["mean"], 0.5);
    }

    #[test]
    fn zero_reference_gives_verdict_without_gain() {
        let some = compare("timeouts", &[2.0, 3.0, 2.0, 3.0], &[0.0; 4]);
        assert_eq!((some.comparison.gain, some.verdict().as_str()), (None, "worse"));
        assert!(some.comparison.p.is_some_and(|p| p < 0.05), "it is corrected like the others");
        assert_eq!(compare("timeouts", &[0.0; 4], &[0.0; 4]).verdict(), "no difference");
        assert_eq!(compare("timeouts", &[0.0, 1.0], &[0.0; 2]).verdict(), "undecided");
    }

    #[test]
    fn first_recipe_is_default_reference() {
        let point = |recipe: &str| Labels(vec![("recipe".to_owned(), recipe.to_owned())]);
        let [reno, sack] = [point("reno"), point("sack")];
        assert_eq!(
            Reference::first_recipe([&reno, &sack]).map(|reference| reference.to_string()).as_deref(),
            Some("recipe=reno")
        );
        assert_eq!(Reference::first_recipe([&reno, &reno]), None);
        assert_eq!(Reference::first_recipe([&Labels::default()]), None);
    }
}
