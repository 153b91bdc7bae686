//! The points of a sweep in numbers: means over each point's runs with their 95 % intervals.

use std::fmt;

use airtcp_numbers::statistics::Mean;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

use super::metric::Metric;
use super::store::{Results, StoreError};

/// A row of a store: one run and its result.
#[derive(serde::Deserialize)]
pub struct Row {
    /// Its number in the plan.
    pub run: usize,
    /// The run's seed.
    pub seed: u64,
    /// What was varied, and to which values.
    pub point: Labels,
    /// The command line that repeats the run.
    pub command: String,
    /// A [`Report`](crate::run::Report) as JSON.
    pub report: Value,
}

impl Row {
    /// Adds the profiles of the run's senders that are not among `known`. Rows that are older than this field have none.
    pub(super) fn add_profiles(&self, known: &mut Vec<String>) {
        let flows = self.report["flows"].as_array().into_iter().flatten();
        for profile in flows.filter_map(|flow| flow["profile"].as_str()) {
            if !known.iter().any(|known| known == profile) {
                known.push(profile.to_owned());
            }
        }
    }
}

/// Axes and their values, in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(pub Vec<(String, String)>);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the values of the axes")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    labels.push(pair);
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// One point of a sweep, with a mean for each metric asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    #[serde(skip)]
    /// What was varied, and to which values.
    pub point: Labels,
    /// The profiles of its senders, in their order, each once. None: the results are older than this field.
    pub profiles: Vec<String>,
    /// How many results there are.
    pub runs: usize,
    /// In the order of the metrics. `None`: no run has such a number. There may be fewer samples than runs.
    pub means: Vec<Option<Mean>>,
}

impl Line {
    /// As an object with the names of the axes and of the metrics. `metrics` are those that the line was made with.
    pub fn json(&self, metrics: &[Metric]) -> Value {
        let point: serde_json::Map<_, _> =
            self.point.0.iter().map(|(name, label)| (name.clone(), label.as_str().into())).collect();
        let means: serde_json::Map<_, _> =
            metrics.iter().zip(&self.means).map(|(metric, mean)| (metric.to_string(), json!(mean))).collect();
        json!({ "point": point, "profiles": self.profiles, "runs": self.runs, "means": means })
    }
}

/// All rows, in the order of the plan.
pub fn rows(results: &Results) -> impl Iterator<Item = Result<Row, StoreError>> {
    results.lines().map(|line| {
        let line = line?;
        serde_json::from_slice(&line)
            .map_err(|error| StoreError::Read { path: "a row".into(), error: error.into() })
    })
}

/// Means of these metrics for each point that has results, in the order of the plan.
pub fn summarise(results: &Results, metrics: &[Metric]) -> Result<Vec<Line>, StoreError> {
    let mut lines: Vec<Line> = Vec::new();
    let mut samples: Vec<Vec<f64>> = Vec::new();
    let close = |lines: &mut Vec<Line>, samples: &[Vec<f64>]| {
        if let Some(line) = lines.last_mut() {
            line.means = samples.iter().map(|samples| Mean::of(samples)).collect();
        }
    };
    for row in rows(results) {
        let row = row?;
        // The runs of a point follow one another.
        if lines.last().is_none_or(|line| line.point != row.point) {
            close(&mut lines, &samples);
            samples = vec![Vec::new(); metrics.len()];
            let point = row.point.clone();
            lines.push(Line { point, profiles: Vec::new(), runs: 0, means: Vec::new() });
        }
        if let Some(line) = lines.last_mut() {
            line.runs += 1;
            row.add_profiles(&mut line.profiles);
        }
        for (metric, samples) in metrics.iter().zip(&mut samples) {
            samples.extend(metric.of(&row.report));
        }
    }
    close(&mut lines, &samples);
    Ok(lines)
}
