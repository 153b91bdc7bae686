//! Points of a sweep against one of them: differences of runs with the same seed, which scatter less than the runs.

use airtcp_numbers::statistics::Mean;

use super::metric::Metric;
use super::store::{Results, StoreError};
use super::summary::{Labels, Line, rows};

/// One value of one axis, which the others are held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    pub axis: String,
    pub value: String,
}

impl std::str::FromStr for Base {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (axis, value) = text.split_once('=').ok_or("AXIS=VALUE is meant, such as recipe=newreno")?;
        Ok(Self { axis: axis.to_owned(), value: value.to_owned() })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`{axis}` is no axis of this sweep: it has {known}")]
    NoAxis { axis: String, known: String },
    #[error("`{axis}` is never `{value}`: it is {known}")]
    NoValue { axis: String, value: String, known: String },
}

/// A run's place in its point's list is its seed's: all points have the same seeds.
struct Samples {
    point: Labels,
    /// By metric and then as `(seed, number)`.
    numbers: Vec<Vec<(u64, f64)>>,
}

/// For each point the mean differences to the point that differs in `base` alone, whose own line is left out.
pub fn against(results: &Results, metrics: &[Metric], base: &Base) -> Result<Vec<Line>, AgainstError> {
    let mut all: Vec<Samples> = Vec::new();
    for row in rows(results) {
        let row = row?;
        if all.last().is_none_or(|samples| samples.point != row.point) {
            all.push(Samples { point: row.point, numbers: vec![Vec::new(); metrics.len()] });
        }
        if let Some(samples) = all.last_mut() {
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
