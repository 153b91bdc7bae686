//! The known differences in `expected.toml`, each with its reason.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::compare::{Kind, Line};
use crate::recording::Entry;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    difference: Vec<Row>,
}

/// Explains one kind of difference in some recordings.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Names of the recordings.
    recordings: Vec<String>,
    /// Kind of difference: `missing`, `extra`, `window`, `sack`, `late` or `other`.
    what: String,
    /// Upper bound on such differences, in percent of the kernel's ACKs.
    percent: f64,
    reason: String,
}

pub(crate) struct Rows {
    rows: Vec<Row>,
}

/// Compares the differences found so far with the known ones.
pub(crate) struct Judge<'a> {
    rows: &'a [Row],
    needed: Vec<usize>,
    unexplained: Vec<String>,
    /// The number of the kernel's ACKs, and the number of ACKs that the model also sent. The key is true for
    /// the recordings that were held out.
    totals: BTreeMap<bool, (usize, usize)>,
}

impl Rows {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| format!("expected.toml: {error}"))?;
        match file.difference.iter().find(|row| row.reason.trim().is_empty()) {
            Some(row) => Err(format!("expected.toml: no reason for {} of {:?}", row.what, row.recordings)),
            None => Ok(Self { rows: file.difference }),
        }
    }

    pub(crate) fn judge(&self) -> Judge<'_> {
        let needed = vec![0; self.rows.len()];
        Judge { rows: &self.rows, needed, unexplained: Vec::new(), totals: BTreeMap::new() }
    }
}

impl Judge<'_> {
    pub(crate) fn add(&mut self, entry: &Entry, lines: &[Line]) {
        let kernel = lines.iter().filter(|line| line.kernel.is_some()).count();
        let same = lines.iter().filter(|line| line.kind.is_none()).count();
        let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
        for kind in lines.iter().filter_map(|line| line.kind) {
            *kinds.entry(kind).or_default() += 1;
        }
        let listed: Vec<_> = kinds.iter().map(|(kind, count)| format!("{} {count}", kind.word())).collect();
        let percent = |count: usize| 100.0 * count as f64 / kernel.max(1) as f64;
        eprintln!("{:22} {same:5} of {kernel:5} {:6.1} %  {}", entry.name, percent(same), listed.join(", "));
        let total = self.totals.entry(entry.held_out).or_default();
        *total = (total.0 + kernel, total.1 + same);
        for (kind, count) in kinds {
            let row = self.rows.iter().position(|row| {
                row.what == kind.word()
                    && row.recordings.contains(&entry.name)
                    && percent(count) <= row.percent
            });
            match row {
                Some(row) => self.needed[row] += 1,
                None => self.unexplained.push(format!(
                    "{}: {} ACKs, {:.1} %: {}",
                    entry.name,
                    count,
                    percent(count),
                    kind.word()
                )),
            }
        }
    }

    pub(crate) fn end(self) -> Result<(), String> {
        for (held_out, (kernel, same)) in &self.totals {
            let which = if *held_out { "held out" } else { "examined" };
            eprintln!("{which:22} {same:5} of {kernel:5} {:6.1} %", 100.0 * *same as f64 / *kernel as f64);
        }
        let mut wrong = self.unexplained;
        let unneeded = self.rows.iter().zip(&self.needed).filter(|(_, needed)| **needed == 0);
        wrong.extend(unneeded.map(|(row, _)| {
            format!("expected.toml: no recording needs the row {} of {:?}", row.what, row.recordings)
        }));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }
}
