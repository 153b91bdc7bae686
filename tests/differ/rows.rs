//! `expected.toml`: the differences that stay, each with its reason.

use std::collections::BTreeSet;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    difference: Vec<Row>,
}

/// Explains every difference that has all of its words.
#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// `a|b` is one of several, `!a` is the absence of one.
    words: Vec<String>,
    /// What is different stays so, though nobody can see it: the rest of the exchange is not compared.
    #[serde(default)]
    pub(crate) lasts: bool,
    /// Not every full run has one: its absence is no error.
    #[serde(default)]
    pub(crate) rare: bool,
    /// The kernel that was seen to do so (`uname -r`).
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

    /// For people.
    pub(crate) fn name(&self) -> String {
        self.words.join(" ")
    }
}

/// Reads the rows. Each has words, a reason and a kernel.
pub(crate) fn read(text: &str) -> Result<Vec<Row>, String> {
    let File { difference: rows } = toml::from_str(text).map_err(|error| error.to_string())?;
    for row in &rows {
        if row.words.is_empty() || row.reason.is_empty() || row.kernel.is_empty() {
            return Err(format!("a row needs words, a kernel and a reason: {row:?}"));
        }
    }
    Ok(rows)
}
