//! A point of a sweep beside the one that it is compared with, by the differences between runs with the same seed: they
//! scatter less than the runs.

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_numbers::verdict::{Comparison, Verdict};
use serde_json::{Value, json};

use super::labels::Labels;
use super::metric::{Better, Metric};

/// The value of an axis that its other values are compared with. A person writes it `recipe=newreno`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The axis by its name in the sweep's file.
    pub axis: String,
    /// The value as tables show it.
    pub value: String,
}

impl std::str::FromStr for Base {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (axis, value) = text.split_once('=').ok_or("expected AXIS=VALUE, for example recipe=newreno")?;
        Ok(Self { axis: axis.to_owned(), value: value.to_owned() })
    }
}

impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.axis, self.value)
    }
}

/// The axis whose first value others are compared with if nobody says otherwise.
const USUAL: &str = "recipe";

impl Base {
    /// The first recipe, if there are several.
    pub fn usual<'a>(points: impl IntoIterator<Item = &'a Labels>) -> Option<Self> {
        let mut values = points.into_iter().filter_map(|point| point.of(USUAL));
        let first = values.next()?;
        values.any(|value| value != first).then(|| Self { axis: USUAL.to_owned(), value: first.to_owned() })
    }

    /// Whether others are compared with this point.
    pub(super) fn is(&self, point: &Labels) -> bool {
        point.of(&self.axis) == Some(self.value.as_str())
    }

    /// Whether the two are equal in everything but the axis.
    pub(super) fn pairs(&self, one: &Labels, other: &Labels) -> bool {
        let rest = |point: &Labels| -> Vec<(String, String)> {
            point.0.iter().filter(|(axis, _)| *axis != self.axis).cloned().collect()
        };
        rest(one) == rest(other)
    }

    pub(super) fn check(&self, points: &[&Labels]) -> Result<(), BaseError> {
        let Some(first) = points.first() else { return Ok(()) };
        let axis = self.axis.clone();
        if first.of(&axis).is_none() {
            let known = first.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(BaseError::NoAxis { axis, known });
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
        Err(BaseError::NoValue { axis, value: self.value.clone(), known: values.join(", ") })
    }
}

/// Why nothing can be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseError {
    /// The base names an axis that the sweep has not.
    #[error("unknown axis `{axis}`; the axes of this sweep are {known}")]
    NoAxis {
        /// As the base has it.
        axis: String,
        /// All axes, separated by commas.
        known: String,
    },
    /// The base names a value that no result has.
    #[error("unknown value `{value}` of the axis `{axis}`; its values are {known}")]
    NoValue {
        /// As the base has it.
        axis: String,
        /// As the base has it.
        value: String,
        /// All values of the axis, separated by commas.
        known: String,
    },
}

/// One metric of a point beside the same of the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// Of the pairs, in the metric's unit.
    pub difference: Mean,
    /// The same as a share of the base's mean, and what it says: *better* is what the metric calls so.
    pub comparison: Comparison,
    better: Option<Better>,
}

impl Beside {
    /// Runs with the same index are a pair. `None`: there is no pair.
    pub(super) fn of(with: &[f64], without: &[f64], metric: &Metric) -> Option<Self> {
        let difference = Mean::of(&differences(with, without))?;
        let mut comparison = Comparison::of(with, without);
        if comparison.gain.is_none() {
            // There is no share of nothing, and still more or less than it.
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

    /// The verdict in words. A number that is neither good nor bad is higher or lower.
    pub fn verdict(&self) -> String {
        match (self.comparison.verdict, self.better) {
            (Verdict::Better, None) => "higher".to_owned(),
            (Verdict::Worse, None) => "lower".to_owned(),
            (verdict, _) => verdict.to_string(),
        }
    }

    /// For programs: `difference`, `gain`, `verdict`, and `more`, if more pairs are needed.
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
    use super::*;

    fn beside(metric: &str, with: &[f64], without: &[f64]) -> Beside {
        Beside::of(with, without, &metric.parse().unwrap()).unwrap()
    }

    #[test]
    fn what_is_better_the_metric_says() {
        let (more, less) = ([150.0, 151.0, 149.0], [100.0, 101.0, 99.0]);
        for (metric, up, down) in
            [("goodput", "better", "worse"), ("took", "worse", "better"), ("dupacks", "higher", "lower")]
        {
            assert_eq!(beside(metric, &more, &less).verdict(), up, "{metric}");
            assert_eq!(beside(metric, &less, &more).verdict(), down, "{metric}");
        }
        let json = beside("dupacks", &more, &less).json();
        assert_eq!((&json["verdict"], &json["difference"]["mean"]), (&json!("higher"), &json!(50.0)));
        assert_eq!(json["gain"]["mean"], 0.5);
    }

    #[test]
    fn more_than_nothing_is_no_share_of_it_and_still_more() {
        let some = beside("timeouts", &[2.0, 3.0, 2.0, 3.0], &[0.0; 4]);
        assert_eq!((some.comparison.gain, some.verdict().as_str()), (None, "worse"));
        assert_eq!(beside("timeouts", &[0.0; 4], &[0.0; 4]).verdict(), "no difference");
        assert_eq!(beside("timeouts", &[0.0, 1.0], &[0.0; 2]).verdict(), "undecided");
    }

    #[test]
    fn the_first_recipe_is_the_usual_base() {
        let point = |recipe: &str| Labels(vec![("recipe".to_owned(), recipe.to_owned())]);
        let [reno, sack] = [point("reno"), point("sack")];
        assert_eq!(Base::usual([&reno, &sack]).map(|base| base.to_string()).as_deref(), Some("recipe=reno"));
        assert_eq!(Base::usual([&reno, &reno]), None);
        assert_eq!(Base::usual([&Labels::default()]), None);
    }
}
