//! `expected.toml`: the known differences, each with its reason.

use std::collections::BTreeSet;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    difference: Vec<Row>,
}

/// Number of exchanges that [`Row::most`] refers to.
pub(crate) const FULL_RUN: usize = 10_000;

/// The names of fields: of a segment, of its time, of the result of a call. `missing` and `extra` stand for a
/// whole segment.
const FIELDS: [&str; 17] = [
    "flags", "seq", "len", "ack", "sack", "options", "mss", "scale", "ecr", "window", "ecn", "ip", "psh",
    "time", "missing", "extra", "result",
];

/// A known difference. It explains every difference with its field and direction that has all of its words.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// `a|b` stands for one of several fields.
    field: String,
    more: More,
    /// `a|b` matches one of several words, and `!a` matches if a word is absent.
    words: Vec<String>,
    /// Maximum number of differences in a full run.
    most: usize,
    /// The difference continues without being visible, so the rest of the exchange is not compared.
    #[serde(default)]
    pub(crate) lasts: bool,
    /// Not every full run has this difference, so its absence is not an error.
    #[serde(default)]
    pub(crate) rare: bool,
    /// The kernel with which the difference was observed (`uname -r`).
    pub kernel: String,
    pub reason: String,
}

/// The direction of a difference: the side with the greater value.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
enum More {
    Kernel,
    Ours,
    /// The row allows both directions.
    Either,
}

impl Row {
    pub(crate) fn explains(&self, words: &BTreeSet<String>) -> bool {
        let directed = match self.more {
            More::Kernel => words.contains("more:kernel"),
            More::Ours => words.contains("more:ours"),
            More::Either => true,
        };
        directed
            && self.field.split('|').any(|field| words.contains(&format!("field:{field}")))
            && self.words.iter().all(|wanted| match wanted.strip_prefix('!') {
                Some(unwanted) => !unwanted.split('|').any(|word| words.contains(word)),
                None => wanted.split('|').any(|word| words.contains(word)),
            })
    }

    /// The maximum number of differences in a run with this number of exchanges. A short run may exceed its
    /// share by chance.
    pub(crate) fn most_in(&self, exchanges: usize) -> usize {
        let share = self.most as f64 * exchanges as f64 / FULL_RUN as f64;
        let chance = if exchanges < FULL_RUN { 4.0 * share.sqrt() + 2.0 } else { 0.0 };
        (share + chance).ceil() as usize
    }

    /// The conditions of the row, for messages.
    pub(crate) fn name(&self) -> String {
        let more = match self.more {
            More::Kernel => "more:kernel",
            More::Ours => "more:ours",
            More::Either => "more:either",
        };
        format!("field:{} {more} {}", self.field, self.words.join(" "))
    }
}

/// Reads the rows. Each must have known fields, words, a maximum, a kernel and a reason.
pub(crate) fn read(text: &str) -> Result<Vec<Row>, String> {
    let File { difference: rows } = toml::from_str(text).map_err(|error| error.to_string())?;
    for row in &rows {
        if row.words.is_empty() || row.most == 0 || row.reason.is_empty() || row.kernel.is_empty() {
            return Err(format!("a row needs words, a maximum, a kernel and a reason: {row:?}"));
        }
        if let Some(field) = row.field.split('|').find(|field| !FIELDS.contains(field)) {
            return Err(format!("unknown field `{field}`; use one of {}", FIELDS.join(" ")));
        }
    }
    Ok(rows)
}
