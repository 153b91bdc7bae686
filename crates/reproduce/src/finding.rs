//! The result of a figure: Markdown for people, data for programs.

use std::fmt::Write;

use airtcp_numbers::statistics::Mean;
use serde::{Deserialize, Serialize};

use crate::chart::Chart;
use crate::judge::Judged;

/// The result of a figure. All texts are Markdown.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Finding {
    /// Our numbers, with the paper's beside them where it has any.
    pub tables: Vec<Table>,
    /// The figure as the paper draws it.
    pub charts: Vec<Chart>,
    /// What the paper says of it.
    pub claims: Vec<Claim>,
    /// What was chosen for this figure alone where the paper is silent, a sentence for each. What it has in common with
    /// others is in [`Figure::shared`](crate::Figure::shared).
    pub choices: Vec<String>,
    /// What else a reader should know: why a claim does not hold, what an independent simulator says.
    pub remarks: Vec<String>,
}

/// A table of text.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Table {
    /// Printed above the table.
    pub title: String,
    /// Headings.
    pub columns: Vec<String>,
    /// Each has as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table under its title.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}\n\n{}|{}\n{rows}\n", self.title, line(&self.columns), "---|".repeat(self.columns.len()))
    }
}

/// A sentence of the paper, and whether it holds here. It is one claim, however many curves it speaks of.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claim {
    /// The sentence in the paper's words, in quotation marks; behind it, if need be, what is meant by them here.
    pub paper: String,
    /// Where it stands: "§4.3.1", "Fig. 5", "Table 3".
    pub place: String,
    /// Whether it is one of those that are counted.
    pub counts: Counts,
    /// What was found here.
    pub ours: String,
    /// Whether it holds.
    pub judged: Judged,
}

/// Whether a claim is one of those that are counted. One that is not is shown, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// The paper says it, and it might have come out otherwise.
    Yes,
    /// A parameter was chosen so that it comes out; which one.
    Calibrated(String),
    /// It follows from how sender and path are made, whatever the runs do; why.
    ByConstruction(String),
    /// The paper does not say it: an addition; why it is here.
    Own(String),
}

impl Counts {
    /// What stands beside the verdict of one that is not counted.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Yes => None,
            Self::Calibrated(what) => Some(format!("calibrated: {what}")),
            Self::ByConstruction(why) => Some(format!("by construction: {why}")),
            Self::Own(why) => Some(format!("not the paper's: {why}")),
        }
    }
}

/// What was chosen, as a list in Markdown.
pub fn listed(choices: &[String]) -> String {
    choices.iter().map(|choice| format!("- {choice}\n")).collect()
}

/// A mean with its interval, as tables show it.
pub fn shown(mean: &Mean, digits: usize) -> String {
    match mean.half_width {
        Some(width) => format!("{:.digits$} ± {width:.digits$}", mean.mean),
        None => format!("{:.digits$}", mean.mean),
    }
}

/// The mean of samples; NaN if there are none.
pub(crate) fn mean(samples: &[f64]) -> Mean {
    Mean::of(samples).unwrap_or(Mean { mean: f64::NAN, half_width: None, samples: 0 })
}

/// The mean of samples as a cell of a table; a dash if there are none.
pub(crate) fn cell(samples: &[f64], digits: usize) -> String {
    Mean::of(samples).map_or_else(|| "–".to_owned(), |mean| shown(&mean, digits))
}

impl Finding {
    /// The finding as Markdown, without a heading, and without what was chosen.
    pub fn markdown(&self) -> String {
        let tables: String = self.tables.iter().map(Table::markdown).collect();
        tables + &self.claims_markdown() + &self.remarks_markdown()
    }

    /// A table of the claims, with their verdicts; nothing if there are none.
    pub fn claims_markdown(&self) -> String {
        if self.claims.is_empty() {
            return String::new();
        }
        let mut text = "| the paper | here | |\n|---|---|---|\n".to_owned();
        for Claim { paper, place, counts, ours, judged } in &self.claims {
            let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
            let verdict = match counts.note() {
                None => format!("**{}**", judged.name()),
                Some(note) => format!("{}; not counted, {note}", judged.name()),
            };
            // Writing into a string does not fail.
            let _ = writeln!(text, "| {paper}{place} | {ours} | {verdict} |");
        }
        text.push('\n');
        text
    }

    /// A paragraph for each remark.
    pub fn remarks_markdown(&self) -> String {
        self.remarks.iter().map(|remark| format!("{remark}\n\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_not_counted_says_why() {
        let claim = |counts| Claim {
            paper: "\"more\"".to_owned(),
            place: "§4".to_owned(),
            counts,
            ours: "+3 %".to_owned(),
            judged: Judged::Holds,
        };
        let claims = vec![claim(Counts::Yes), claim(Counts::Calibrated("the delay".to_owned()))];
        let text = Finding { claims, ..Finding::default() }.markdown();
        assert!(text.contains("| \"more\" (§4) | +3 % | **holds** |"), "{text}");
        assert!(text.contains("| holds; not counted, calibrated: the delay |"), "{text}");
    }
}
