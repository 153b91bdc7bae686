//! `expected.toml`: the known differences, each with its reason.

use std::collections::BTreeSet;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    difference: Vec<Row>,
}

/// A known difference. It explains every difference that has all of its words.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// `a|b` matches one of several words, and `!a` matches if a word is absent.
    words: Vec<String>,
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

impl Row {
    pub(crate) fn explains(&self, words: &BTreeSet<String>) -> bool {
        self.words.iter().all(|wanted| match wanted.strip_prefix('!') {
            Some(unwanted) => !unwanted.split('|').any(|word| words.contains(word)),
            None => wanted.split('|').any(|word| words.contains(word)),
        })
    }

    /// The words of the row, for messages.
    pub(crate) fn name(&self) -> String {
        self.words.join(" ")
    }
}

/// Reads the rows. Each must have words, a kernel and a reason.
pub(crate) fn read(text: &str) -> Result<Vec<Row>, String> {
    let File { difference: rows } = toml::from_str(text).map_err(|error| error.to_string())?;
    for row in &rows {
        if row.words.is_empty() || row.reason.is_empty() || row.kernel.is_empty() {
            return Err(format!("a row needs words, a kernel and a reason: {row:?}"));
        }
    }
    Ok(rows)
}
