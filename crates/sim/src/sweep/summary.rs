//! The points of a sweep in numbers: means and medians over each point's runs, beside those of the point that it is
//! compared with.

use airtcp_numbers::statistics::{Mean, median};
use serde_json::{Value, json};

use super::against::{Base, BaseError, Beside};
use super::error::StoreError;
use super::labels::Labels;
use super::metric::Metric;
use super::results::Results;

/// One point of a sweep, with its numbers for each metric asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What was varied, and to which values.
    pub point: Labels,
    /// The profiles of its senders, in their order, each once. None: the results are older than this field.
    pub profiles: Vec<String>,
    /// How many results there are.
    pub runs: usize,
    /// In the order of the metrics. `None`: no run has such a number. There may be fewer samples than runs.
    pub numbers: Vec<Option<Values>>,
}

/// What one metric was in the runs of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// With half the width of its 95 % interval.
    pub mean: Mean,
    /// The middle one.
    pub median: f64,
    /// Beside the base's. `None`: there is no base, this is it, or no pair of runs has the number.
    pub beside: Option<Beside>,
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// The results cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The base is none of theirs.
    #[error(transparent)]
    Base(#[from] BaseError),
}

impl Line {
    /// As an object with the names of the axes and of the metrics. `metrics` are those that the line was made with.
    pub fn json(&self, metrics: &[Metric]) -> Value {
        let of = |value: fn(&Values) -> Option<Value>| -> serde_json::Map<String, Value> {
            let numbers = metrics.iter().zip(&self.numbers);
            numbers
                .map(|(metric, numbers)| (metric.to_string(), numbers.as_ref().and_then(value).into()))
                .collect()
        };
        json!({
            "point": self.point,
            "profiles": self.profiles,
            "runs": self.runs,
            "means": of(|numbers| Some(json!(numbers.mean))),
            "medians": of(|numbers| Some(json!(numbers.median))),
            "against": of(|numbers| numbers.beside.map(|beside| beside.json())),
        })
    }
}

/// The numbers of one point's runs.
struct Samples {
    line: Line,
    /// For each metric the runs that have it, as `(seed, number)`.
    numbers: Vec<Vec<(u64, f64)>>,
}

/// The numbers of these metrics for each point that has results, in the order of the plan.
pub fn summarise(
    results: &Results,
    metrics: &[Metric],
    base: Option<&Base>,
) -> Result<Vec<Line>, SummaryError> {
    let mut all: Vec<Samples> = Vec::new();
    for row in results.rows() {
        let row = row?;
        // The runs of a point follow one another.
        if all.last().is_none_or(|samples| samples.line.point != row.point) {
            let point = row.point.clone();
            let line = Line { point, profiles: Vec::new(), runs: 0, numbers: Vec::new() };
            all.push(Samples { line, numbers: vec![Vec::new(); metrics.len()] });
        }
        let Some(Samples { line, numbers }) = all.last_mut() else { continue };
        line.runs += 1;
        row.add_profiles(&mut line.profiles);
        for (metric, numbers) in metrics.iter().zip(numbers) {
            numbers.extend(metric.of(&row.report).map(|number| (row.seed, number)));
        }
    }
    if let Some(base) = base {
        base.check(&all.iter().map(|samples| &samples.line.point).collect::<Vec<_>>())?;
    }
    let lines = all.iter().map(|samples| {
        let without = base.filter(|base| !base.is(&samples.line.point)).and_then(|base| {
            let is_mine =
                |one: &&Samples| base.is(&one.line.point) && base.pairs(&one.line.point, &samples.line.point);
            all.iter().find(is_mine)
        });
        let numbers = metrics.iter().enumerate().map(|(index, metric)| {
            let mine = &samples.numbers[index];
            let values: Vec<f64> = mine.iter().map(|(_, number)| *number).collect();
            let beside = without.and_then(|base| {
                let (with, without): (Vec<f64>, Vec<f64>) = pairs(mine, &base.numbers[index]).unzip();
                Beside::of(&with, &without, metric)
            });
            Some(Values { mean: Mean::of(&values)?, median: median(&values)?, beside })
        });
        Line { numbers: numbers.collect(), ..samples.line.clone() }
    });
    Ok(lines.collect())
}

/// The numbers of runs with the same seed.
fn pairs<'a>(one: &'a [(u64, f64)], other: &'a [(u64, f64)]) -> impl Iterator<Item = (f64, f64)> + 'a {
    let beside: std::collections::BTreeMap<u64, f64> = other.iter().copied().collect();
    one.iter().filter_map(move |(seed, number)| Some((*number, *beside.get(seed)?)))
}
