//! Summaries of a sweep: means and medians of each point's runs, compared with the reference point.

use std::collections::BTreeMap;

use airtcp_numbers::statistics::{Mean, Median};
use airtcp_numbers::verdict;
use serde_json::{Value, json};

use super::against::{Against, Reference, ReferenceError};
use super::error::StoreError;
use super::labels::Labels;
use super::metric::Metric;
use super::results::Results;

/// A point of a sweep with its values of each requested metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The axes and their values.
    pub point: Labels,
    /// The profiles of the senders, each once. Empty if the results were written before this field
    /// existed.
    pub profiles: Vec<String>,
    /// Number of results.
    pub runs: usize,
    /// The notices about missing information, each with its recipe and the number of runs that have
    /// it.
    pub notices: BTreeMap<String, usize>,
    /// Values in the order of the metrics. `None` if no run has the metric. There may be fewer
    /// samples than runs.
    pub numbers: Vec<Option<Values>>,
}

/// Statistics of one metric over the runs of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// Mean and 95 % interval.
    pub mean: Mean,
    /// Median, its 95 % interval, and the quartiles.
    pub median: Median,
    /// Comparison with the reference point. `None` without a reference, for the reference itself,
    /// or if no pair of runs has the metric.
    pub against: Option<Against>,
}

/// Error when a summary is calculated.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// The results cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The reference is not among the results.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

impl Line {
    /// Returns a JSON object with the names of axes and metrics as keys. `metrics` must be the metrics of
    /// this line.
    pub fn json(&self, metrics: &[Metric]) -> Value {
        let of = |value: fn(&Values) -> Option<Value>| -> serde_json::Map<String, Value> {
            let numbers = metrics.iter().zip(&self.numbers);
            numbers
                .map(|(metric, numbers)| (metric.to_string(), numbers.as_ref().and_then(value).into()))
                .collect()
        };
        let mut json = json!({
            "point": self.point,
            "profiles": self.profiles,
            "runs": self.runs,
            "means": of(|numbers| Some(json!(numbers.mean))),
            "medians": of(|numbers| Some(json!(numbers.median.median))),
            "median_intervals": of(|numbers| Some(json!(numbers.median.interval?))),
            "quartiles": of(|numbers| Some(json!(numbers.median.quartiles))),
            "against": of(|numbers| numbers.against.map(|against| against.json())),
        });
        if !self.notices.is_empty() {
            json["notices"] = json!(self.notices);
        }
        json
    }
}

/// The numbers of one point's runs.
struct Samples {
    line: Line,
    /// For each metric, the pairs `(seed, number)` of the runs that have it.
    numbers: Vec<Vec<(u64, f64)>>,
}

/// Reads the numbers of these metrics from all results, by point, in the order of the plan.
fn collect(results: &Results, metrics: &[Metric]) -> Result<Vec<Samples>, SummaryError> {
    let mut all: Vec<Samples> = Vec::new();
    for row in results.rows() {
        let row = row?;
        // The runs of a point are adjacent.
        if all.last().is_none_or(|samples| samples.line.point != row.point) {
            let point = row.point.clone();
            let line =
                Line { point, profiles: Vec::new(), runs: 0, notices: BTreeMap::new(), numbers: Vec::new() };
            all.push(Samples { line, numbers: vec![Vec::new(); metrics.len()] });
        }
        let Some(Samples { line, numbers }) = all.last_mut() else { continue };
        line.runs += 1;
        row.add_profiles(&mut line.profiles);
        for notice in row.notices() {
            *line.notices.entry(notice).or_default() += 1;
        }
        for (metric, numbers) in metrics.iter().zip(numbers) {
            numbers.extend(metric.of(&row.report).map(|number| (row.seed, number)));
        }
    }
    Ok(all)
}

/// Returns the number of each run that has this metric, by point, in the order of the plan.
pub fn distributions(results: &Results, metric: &Metric) -> Result<Vec<(Labels, Vec<f64>)>, SummaryError> {
    let all = collect(results, std::slice::from_ref(metric))?;
    let numbers =
        |samples: Samples| samples.numbers.into_iter().flatten().map(|(_, number)| number).collect();
    Ok(all.into_iter().map(|samples| (samples.line.point.clone(), numbers(samples))).collect())
}

/// Calculates these metrics for each point that has results, in the order of the plan. Gains up to
/// `margin` count as no difference.
pub fn summarise(
    results: &Results,
    metrics: &[Metric],
    reference: Option<&Reference>,
    margin: f64,
) -> Result<Vec<Line>, SummaryError> {
    let all = collect(results, metrics)?;
    if let Some(reference) = reference {
        reference.check(&all.iter().map(|samples| &samples.line.point).collect::<Vec<_>>())?;
    }
    let lines = all.iter().map(|samples| {
        let without =
            reference.filter(|reference| !reference.matches(&samples.line.point)).and_then(|reference| {
                all.iter().find(|other| {
                    let point = &other.line.point;
                    reference.matches(point) && reference.differ_only_in_axis(point, &samples.line.point)
                })
            });
        let numbers = metrics.iter().enumerate().map(|(index, metric)| {
            let mine = &samples.numbers[index];
            let values: Vec<f64> = mine.iter().map(|(_, number)| *number).collect();
            let against = without.and_then(|without| {
                let (with, without): (Vec<f64>, Vec<f64>) = pairs(mine, &without.numbers[index]).unzip();
                Against::of(&with, &without, metric, margin)
            });
            Some(Values { mean: Mean::of(&values)?, median: Median::of(&values)?, against })
        });
        Line { numbers: numbers.collect(), ..samples.line.clone() }
    });
    let mut lines: Vec<Line> = lines.collect();
    // Each metric has a separate table, so the correction for multiple comparisons covers one metric.
    for metric in 0..metrics.len() {
        let values = lines.iter_mut().filter_map(|line| line.numbers[metric].as_mut());
        let comparisons = values.filter_map(|values| Some(&mut values.against.as_mut()?.comparison));
        verdict::correct(&mut comparisons.collect::<Vec<_>>());
    }
    Ok(lines)
}

/// Pairs the numbers of runs with the same seed.
fn pairs<'a>(one: &'a [(u64, f64)], other: &'a [(u64, f64)]) -> impl Iterator<Item = (f64, f64)> + 'a {
    let other: BTreeMap<u64, f64> = other.iter().copied().collect();
    one.iter().filter_map(move |(seed, number)| Some((*number, *other.get(seed)?)))
}
