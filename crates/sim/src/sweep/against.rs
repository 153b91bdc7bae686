//! Points of a sweep compared with one of them, by the differences between runs with the same seed: they scatter less
//! than the runs.

use airtcp_numbers::statistics::Mean;

use super::metric::Metric;
use super::store::{Results, StoreError};
use super::summary::{Labels, Line, rows};

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
        let (axis, value) = text.split_once('=').ok_or("AXIS=VALUE is meant, such as recipe=newreno")?;
        Ok(Self { axis: axis.to_owned(), value: value.to_owned() })
    }
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    /// The results cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The base names an axis that the sweep has not.
    #[error("`{axis}` is no axis of this sweep: it has {known}")]
    NoAxis {
        /// As the base has it.
        axis: String,
        /// All axes, separated by commas.
        known: String,
    },
    /// The base names a value that no result has.
    #[error("`{axis}` is never `{value}`: it is {known}")]
    NoValue {
        /// As the base has it.
        axis: String,
        /// As the base has it.
        value: String,
        /// All values of the axis, separated by commas.
        known: String,
    },
}

/// The numbers of one point's runs.
struct Samples {
    point: Labels,
    /// Those of its senders.
    profiles: Vec<String>,
    /// For each metric the runs that have it, as `(seed, number)`.
    numbers: Vec<Vec<(u64, f64)>>,
}

/// For each point, the mean differences to the point that is equal but for having the value of `base`. Points with that
/// value get no line themselves.
pub fn against(results: &Results, metrics: &[Metric], base: &Base) -> Result<Vec<Line>, AgainstError> {
    let mut all: Vec<Samples> = Vec::new();
    for row in rows(results) {
        let row = row?;
        if all.last().is_none_or(|samples| samples.point != row.point) {
            let (point, numbers) = (row.point.clone(), vec![Vec::new(); metrics.len()]);
            all.push(Samples { point, profiles: Vec::new(), numbers });
        }
        if let Some(samples) = all.last_mut() {
            row.add_profiles(&mut samples.profiles);
            for (metric, numbers) in metrics.iter().zip(&mut samples.numbers) {
                numbers.extend(metric.of(&row.report).map(|number| (row.seed, number)));
            }
        }
    }
    check(&all, base)?;
    let is_base =
        |point: &Labels| point.0.iter().any(|(axis, label)| *axis == base.axis && *label == base.value);
    let others = |point: &Labels| -> Vec<(String, String)> {
        point.0.iter().filter(|(axis, _)| *axis != base.axis).cloned().collect()
    };
    let lines = all.iter().filter(|samples| !is_base(&samples.point)).map(|samples| {
        let beside =
            all.iter().find(|one| is_base(&one.point) && others(&one.point) == others(&samples.point));
        let differences = samples.numbers.iter().enumerate().map(|(metric, numbers)| {
            let base = &beside?.numbers[metric];
            let of_pair = |(seed, number): &(u64, f64)| {
                base.iter().find(|(other, _)| other == seed).map(|(_, base)| number - base)
            };
            Mean::of(&numbers.iter().filter_map(of_pair).collect::<Vec<_>>())
        });
        let means = differences.collect();
        Line {
            point: samples.point.clone(),
            profiles: samples.profiles.clone(),
            runs: samples.numbers.iter().map(Vec::len).max().unwrap_or(0),
            means,
        }
    });
    Ok(lines.collect())
}

fn check(all: &[Samples], base: &Base) -> Result<(), AgainstError> {
    let Some(first) = all.first() else { return Ok(()) };
    let axis = base.axis.clone();
    if !first.point.0.iter().any(|(name, _)| *name == axis) {
        let known = first.point.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(AgainstError::NoAxis { axis, known });
    }
    let mut values: Vec<&str> = Vec::new();
    for (name, label) in all.iter().flat_map(|samples| &samples.point.0) {
        if *name == axis && !values.contains(&label.as_str()) {
            values.push(label);
        }
    }
    if values.contains(&base.value.as_str()) {
        return Ok(());
    }
    Err(AgainstError::NoValue { axis, value: base.value.clone(), known: values.join(", ") })
}
