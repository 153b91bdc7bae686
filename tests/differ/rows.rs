//! `expected.toml`: the known differences, each with its reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// Number of exchanges that [`Row::most`] refers to.
pub(crate) const FULL_RUN: usize = 10_000;

/// The names of fields: parts of a segment, its time, and the result of a call. `missing` and `extra` mean a
/// whole segment.
const FIELDS: [&str; 17] = [
    "flags", "seq", "len", "ack", "sack", "options", "mss", "scale", "ecr", "window", "ecn", "ip", "psh",
    "time", "missing", "extra", "result",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    difference: Vec<Row>,
}

/// A known difference. It explains every difference in one of its fields and directions that has all of its
/// words.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// `a|b` matches one of several words, and `!a` matches if a word is absent.
    words: Vec<String>,
    /// Maximum number of exchanges with the difference in a full run, by field and direction.
    pub(crate) most: BTreeMap<String, usize>,
    /// Whether the difference has invisible effects, so that the rest of the exchange is not compared.
    #[serde(default)]
    pub(crate) lasts: bool,
    /// Whether some full runs do not have this difference, so that its absence is not an error.
    #[serde(default)]
    pub(crate) rare: bool,
    /// The kernel with which the difference was observed (`uname -r`).
    pub kernel: String,
    pub reason: String,
}

impl Row {
    /// Returns whether the row explains a difference in this field and direction with these words.
    pub(crate) fn explains(&self, key: &str, words: &BTreeSet<String>) -> bool {
        self.most.contains_key(key)
            && self.words.iter().all(|wanted| match wanted.strip_prefix('!') {
                Some(unwanted) => !unwanted.split('|').any(|word| words.contains(word)),
                None => wanted.split('|').any(|word| words.contains(word)),
            })
    }

    /// The words of the row, for messages.
    pub(crate) fn name(&self) -> String {
        self.words.join(" ")
    }

    /// Returns an error if the row is incomplete or has an unknown field or direction.
    fn check(&self) -> Result<(), String> {
        if self.words.is_empty() || self.most.is_empty() || self.reason.is_empty() || self.kernel.is_empty() {
            return Err(format!("a row needs words, maxima, a kernel and a reason: {self:?}"));
        }
        let known = |key: &str| {
            key.split_once('-')
                .is_some_and(|(field, more)| FIELDS.contains(&field) && matches!(more, "kernel" | "ours"))
        };
        match self.most.keys().find(|key| !known(key)) {
            Some(key) => Err(format!("unknown key `{key}`: write a field, `-`, and `kernel` or `ours`")),
            None => Ok(()),
        }
    }
}

/// Returns the maximum for a run with this number of exchanges. A short run may exceed its share by chance.
pub(crate) fn most_in(most: usize, exchanges: usize) -> usize {
    let share = most as f64 * exchanges as f64 / FULL_RUN as f64;
    let chance = if exchanges < FULL_RUN { 4.0 * share.sqrt() + 2.0 } else { 0.0 };
    (share + chance).ceil() as usize
}

/// Reads the rows.
pub(crate) fn read(text: &str) -> Result<Vec<Row>, String> {
    let File { difference: rows } = toml::from_str(text).map_err(|error| error.to_string())?;
    rows.iter().try_for_each(Row::check)?;
    Ok(rows)
}
