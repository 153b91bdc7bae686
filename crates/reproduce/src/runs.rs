//! The runs of a figure: the set-up of each point, and the values that the figure measured with each seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use airtcp_sim::run::Run;
use serde::Serialize;
use serde_json::Value;

use crate::finding::Table;

/// Records the runs of a figure, see [`Effort::recording`](crate::Effort::recording).
#[derive(Debug, Default)]
pub struct Runs(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    /// The number of each point, from zero, by its run with the first seed.
    points: BTreeMap<String, usize>,
    /// The measured values by point and seed, then by column.
    values: BTreeMap<(usize, u64), BTreeMap<String, String>>,
    /// The columns, in the order in which the figure measures them.
    columns: Vec<String>,
}

impl Runs {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers the points with these first runs. Points with the same run have the same number.
    pub(crate) fn number(&self, runs: &[Run]) -> Vec<usize> {
        let points = &mut self.lock().points;
        let mut number = |run: &Run| {
            let next = points.len();
            *points.entry(run.to_json()).or_insert(next)
        };
        runs.iter().map(&mut number).collect()
    }

    /// Adds what a figure measured in a run. The fields of `measured` become columns.
    pub(crate) fn measured(&self, point: usize, seed: u64, measured: &impl Serialize) {
        let Ok(measured) = serde_json::to_value(measured) else { return };
        let mut recorded = self.lock();
        let Recorded { values, columns, .. } = &mut *recorded;
        for (column, value) in fields(&measured, ": ", false) {
            let column = if column.is_empty() { "value".to_owned() } else { column };
            if !columns.contains(&column) {
                columns.push(column.clone());
            }
            values.entry((point, seed)).or_default().insert(column, value);
        }
    }

    /// The run with the first seed of each point, in the order of their numbers ([`Run::from_json`]).
    pub fn files(&self) -> Vec<String> {
        let recorded = self.lock();
        let mut files: Vec<_> = recorded.points.iter().map(|(run, number)| (*number, run.clone())).collect();
        files.sort_unstable();
        files.into_iter().map(|(_, run)| run).collect()
    }

    /// The fields in which the set-ups differ, with a row for each point.
    pub fn points(&self) -> Table {
        let point = |run: String| {
            let run: Value = serde_json::from_str(&run).unwrap_or_default();
            BTreeMap::from_iter(fields(&run["run"], ".", true))
        };
        let points: Vec<BTreeMap<String, String>> = self.files().into_iter().map(point).collect();
        let names: BTreeSet<&String> = points.iter().flat_map(BTreeMap::keys).collect();
        let differs =
            |name: &&&String| points.windows(2).any(|pair| pair[0].get(**name) != pair[1].get(**name));
        let names: Vec<&String> = names.iter().filter(differs).copied().collect();
        let columns: Vec<&str> =
            ["point"].into_iter().chain(names.iter().map(|name| name.as_str())).collect();
        let mut table = Table::new("Set-ups", &columns);
        for (number, point) in (1..).zip(&points) {
            let cells = names.iter().map(|name| point.get(*name).cloned().unwrap_or_default());
            table.row([number.to_string()].into_iter().chain(cells));
        }
        table
    }

    /// The measured values, with a row for each point and seed.
    pub fn seeds(&self) -> Table {
        let recorded = self.lock();
        let columns: Vec<&str> =
            ["point", "seed"].into_iter().chain(recorded.columns.iter().map(String::as_str)).collect();
        let mut table = Table::new("Values by seed", &columns);
        for ((point, seed), values) in &recorded.values {
            let cells = recorded.columns.iter().map(|column| values.get(column).cloned().unwrap_or_default());
            table.row([(point + 1).to_string(), seed.to_string()].into_iter().chain(cells));
        }
        table
    }
}

/// The fields inside of `json` that have a value, with their names joined by `separator`. `into_lists`:
/// whether to search lists too. The path to a field then contains the name or number of the list's item.
fn fields(json: &Value, separator: &str, into_lists: bool) -> Vec<(String, String)> {
    let inside = |name: String, inner: &Value| {
        let join =
            |rest: String| if rest.is_empty() { name.clone() } else { format!("{name}{separator}{rest}") };
        let fields = fields(inner, separator, into_lists).into_iter();
        fields.map(|(rest, value)| (join(rest), value)).collect::<Vec<_>>()
    };
    let named = |(number, inner): (usize, &Value)| {
        let name =
            inner.get("name").and_then(Value::as_str).map_or_else(|| number.to_string(), str::to_owned);
        inside(name, inner)
    };
    match json {
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, inner)| inside(name.clone(), inner)).collect()
        }
        Value::Array(items) if into_lists => (1..).zip(items).flat_map(named).collect(),
        Value::String(text) => vec![(String::new(), text.clone())],
        Value::Null => vec![(String::new(), String::new())],
        other => vec![(String::new(), other.to_string())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_columns() {
        #[derive(Serialize)]
        struct Measured {
            #[serde(rename = "goodput, kbit/s")]
            goodput: f64,
            causes: BTreeMap<&'static str, u64>,
            missing: Option<f64>,
            pair: (u64, f64),
        }
        let runs = Runs::default();
        let causes = BTreeMap::from([("radio", 2)]);
        runs.measured(0, 7, &Measured { goodput: 12.5, causes, missing: None, pair: (1, 0.5) });
        runs.measured(1, 7, &3.5);
        let table = runs.seeds();
        assert_eq!(
            table.columns,
            ["point", "seed", "causes: radio", "goodput, kbit/s", "missing", "pair", "value"]
        );
        assert_eq!(
            table.rows,
            [["1", "7", "2", "12.5", "", "[1,0.5]", ""], ["2", "7", "", "", "", "", "3.5"]]
        );
    }
}
