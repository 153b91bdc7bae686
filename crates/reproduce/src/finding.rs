//! The result of a figure, as data and as Markdown.

use airtcp_numbers::statistics::Mean;
use airtcp_numbers::table::wrapped;
use serde::{Deserialize, Serialize};

use crate::chart::Chart;
use crate::judge::Judged;

/// Lines of Markdown are at most this long.
pub(crate) const WIDTH: usize = 100;

/// The result of a figure. All texts are Markdown.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Finding {
    /// Our numbers, compared with the paper's numbers if it has any.
    pub tables: Vec<Table>,
    /// Charts with the axes and curves of the paper's figure.
    pub charts: Vec<Chart>,
    /// The paper's claims about the figure.
    pub claims: Vec<Claim>,
    /// Choices for this figure alone, where the paper leaves something open.
    /// [`Figure::shared`](crate::Figure::shared) has the choices for several figures.
    pub choices: Vec<String>,
    /// Additional information, such as the reason why a claim does not hold, or the result of another simulator.
    pub remarks: Vec<String>,
}

/// A table of text.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Table {
    /// Printed above the table.
    pub title: String,
    /// Headings.
    pub columns: Vec<String>,
    /// Every row has one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table: its heading, and its cell in each row.
pub(crate) struct Column<'a, R> {
    heading: String,
    cell: Box<dyn Fn(&R) -> String + 'a>,
}

/// Creates a column.
pub(crate) fn column<'a, R>(heading: impl Into<String>, cell: impl Fn(&R) -> String + 'a) -> Column<'a, R> {
    Column { heading: heading.into(), cell: Box::new(cell) }
}

impl Table {
    /// Creates a table with a row for each of `rows`.
    pub(crate) fn of<'a, R>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = Column<'a, R>>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let columns: Vec<_> = columns.into_iter().collect();
        let row = |row: R| columns.iter().map(|column| (column.cell)(&row)).collect();
        let rows = rows.into_iter().map(row).collect();
        Self {
            title: title.into(),
            columns: columns.into_iter().map(|column| column.heading).collect(),
            rows,
        }
    }

    /// Creates a table without rows.
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

    /// The title and the table in Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}\n\n{}|{}\n{rows}\n", self.title, line(&self.columns), "---|".repeat(self.columns.len()))
    }
}

/// A sentence of the paper, and whether it holds here. It is one claim even if it covers several curves.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claim {
    /// The verbatim sentence in quotation marks. If it needs one, an interpretation follows.
    pub paper: String,
    /// Its place in the paper: "§4.3.1", "Fig. 5", "Table 3".
    pub place: String,
    /// Whether it counts in the summary.
    pub counts: Counts,
    /// Our result.
    #[serde(rename = "result")]
    pub ours: String,
    /// Whether it holds.
    #[serde(rename = "verdict")]
    pub judged: Judged,
}

/// Whether a claim counts in the summary. A claim that does not count is shown with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// It counts: it is in the paper, and the runs could contradict it.
    Yes,
    /// This parameter was chosen so that the claim holds.
    Calibrated(String),
    /// It follows from the construction of senders and paths, for this reason.
    ByConstruction(String),
    /// It is not in the paper. The reason is the explanation for adding it.
    Own(String),
}

impl Counts {
    /// The reason why it does not count, for display after the verdict.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Yes => None,
            Self::Calibrated(what) => Some(format!("calibrated: {what}")),
            Self::ByConstruction(why) => Some(format!("by construction: {why}")),
            Self::Own(why) => Some(format!("not the paper's: {why}")),
        }
    }
}

/// A place in a paper: "§4.3.1", "Fig. 5", "Table 3".
#[derive(Clone, Copy)]
pub(crate) struct At<'a>(pub(crate) &'a str);

/// A claim that counts: a sentence of the paper, our result and the verdict.
pub(crate) fn claim(At(place): At<'_>, paper: &str, ours: String, judged: Judged) -> Claim {
    Claim { paper: paper.to_owned(), place: place.to_owned(), counts: Counts::Yes, ours, judged }
}

/// Our result for a sentence of a paper, and the verdict.
pub(crate) type Found = (String, Judged);

/// Like [`claim`].
pub(crate) fn found(at: At<'_>, paper: &str, (ours, judged): Found) -> Claim {
    claim(at, paper, ours, judged)
}

/// Choices as a list in Markdown.
pub fn listed(choices: &[String]) -> String {
    choices.iter().map(|choice| wrapped("- ", choice, WIDTH)).collect()
}

/// A mean and the half width of its interval, in the format of the tables.
pub fn shown(mean: &Mean, digits: usize) -> String {
    match mean.half_width {
        Some(width) => format!("{:.digits$} ± {width:.digits$}", mean.mean),
        None => format!("{:.digits$}", mean.mean),
    }
}

/// The mean of samples. NaN if there are none.
pub(crate) fn mean(samples: &[f64]) -> Mean {
    Mean::of(samples).unwrap_or(Mean { mean: f64::NAN, half_width: None, samples: 0 })
}

/// The mean of samples as a table cell. A dash if there are none.
pub(crate) fn cell(samples: &[f64], digits: usize) -> String {
    Mean::of(samples).map_or_else(|| "–".to_owned(), |mean| shown(&mean, digits))
}

impl Finding {
    /// The finding in Markdown, without a heading and without choices.
    pub fn markdown(&self) -> String {
        let tables: String = self.tables.iter().map(Table::markdown).collect();
        tables + &self.claims_markdown() + &self.remarks_markdown()
    }

    /// A list of the claims, each with its verdict and our result. Empty if there are none.
    pub fn claims_markdown(&self) -> String {
        let claims: String = self.claims.iter().map(Claim::markdown).collect();
        if claims.is_empty() { claims } else { claims + "\n" }
    }

    /// One paragraph per remark.
    pub fn remarks_markdown(&self) -> String {
        self.remarks.iter().map(|remark| wrapped("", remark, WIDTH) + "\n").collect()
    }
}

impl Claim {
    /// The same claim, which does not count for this reason.
    pub(crate) fn not_counted(self, counts: Counts) -> Self {
        Self { counts, ..self }
    }

    /// A list item. The verdict of a claim that counts is bold.
    fn markdown(&self) -> String {
        let Self { paper, place, counts, ours, judged } = self;
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        let verdict = match counts.note() {
            None => format!("**{}**", judged.name()),
            Some(note) => format!("{}, not counted ({note})", judged.name()),
        };
        let claim = wrapped("- ", &format!("{verdict}: {paper}{place}"), WIDTH);
        format!("{claim}\n{}", wrapped("  ", &format!("Here: {ours}"), WIDTH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncounted_claim_states_reason() {
        let claim = |counts| Claim {
            paper: "\"more\"".to_owned(),
            place: "§4".to_owned(),
            counts,
            ours: "+3 %".to_owned(),
            judged: Judged::Holds,
        };
        let claims = vec![claim(Counts::Yes), claim(Counts::Calibrated("the delay".to_owned()))];
        let text = Finding { claims, ..Finding::default() }.markdown();
        assert!(text.contains("- **holds**: \"more\" (§4)\n\n  Here: +3 %\n"), "{text}");
        assert!(text.contains("- holds, not counted (calibrated: the delay): \"more\""), "{text}");
    }
}
