//! The result of a figure, as data and as Markdown.

use airtcp_numbers::statistics::Mean;
use airtcp_numbers::table::wrapped;
use serde::{Deserialize, Serialize};

use crate::chart::Chart;
use crate::judge::Judged;
use crate::reading::{Factor, REPETITIONS, Reading, ReadingVerdict, Repetitions, Values, Verdict};

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
    /// The text above the table.
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
    /// The paper's sentence, verbatim and in quotation marks. An interpretation follows if the sentence needs
    /// one.
    #[serde(rename = "paper")]
    pub sentence: String,
    /// The sentence's place in the paper: "§4.3.1", "Fig. 5", "Table 3".
    pub place: String,
    /// Whether the claim counts in the summary.
    pub counts: Counts,
    /// Our result.
    pub result: String,
    /// Whether the claim holds in the chosen reading.
    #[serde(rename = "verdict")]
    pub judged: Judged,
    /// Whether the claim holds in other readings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ReadingVerdict>,
    /// Details that the sentence itself fixes. Readings with other values do not apply to this claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<String>,
    /// Whether the figure has a single run, because nothing is random.
    #[serde(default)]
    pub once: bool,
}

/// Whether a claim counts in the summary. A claim that does not count is shown with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// The claim counts: it is in the paper, and the runs could contradict it.
    Yes,
    /// This parameter was chosen so that the claim holds.
    Calibrated(String),
    /// The claim follows from the construction of senders and paths, for this reason.
    ByConstruction(String),
    /// The claim is about the same result as this other claim, which counts.
    Repeats(String),
    /// The claim is not in the paper. The reason is the explanation for adding it.
    Own(String),
}

impl Counts {
    /// The reason why it does not count, for display after the verdict.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Yes => None,
            Self::Calibrated(what) => Some(format!("calibrated: {what}")),
            Self::ByConstruction(why) => Some(format!("by construction: {why}")),
            Self::Repeats(what) => Some(format!("repeats: {what}")),
            Self::Own(why) => Some(format!("not the paper's: {why}")),
        }
    }
}

/// A place in a paper: "§4.3.1", "Fig. 5", "Table 3".
#[derive(Clone, Copy)]
pub(crate) struct At<'a>(pub(crate) &'a str);

/// A claim that counts: a sentence of the paper, our result and the verdict.
pub(crate) fn claim(At(place): At<'_>, sentence: &str, result: String, judged: Judged) -> Claim {
    Claim::new(place, sentence, result, judged)
}

/// Our result for a sentence of a paper, and the verdict.
pub(crate) type Found = (String, Judged);

/// Like [`claim`], with our result and the verdict as one value.
pub(crate) fn found(at: At<'_>, sentence: &str, (result, judged): Found) -> Claim {
    claim(at, sentence, result, judged)
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

    /// The verdict on each claim in each reading, with a column per detail. `None` if only the chosen reading was
    /// judged. `factors` has the chosen values.
    pub fn readings(&self, factors: &[Factor]) -> Option<Table> {
        let with_readings = || self.claims.iter().filter(|claim| !claim.readings.is_empty());
        let mut details: Vec<&str> = factors.iter().map(|factor| factor.name).collect();
        for name in
            with_readings().flat_map(|claim| &claim.readings).flat_map(|verdict| verdict.reading.keys())
        {
            if !details.contains(&name.as_str()) {
                details.push(name);
            }
        }
        let headings: Vec<&str> =
            ["claim"].into_iter().chain(details.iter().copied()).chain(["verdict"]).collect();
        let mut table = Table::new("Verdicts by reading:", &headings);
        let chosen = |claim: &Claim, detail: &str| {
            let factor = factors.iter().find(|factor| factor.name == detail);
            let is_fixed = claim.fixed.iter().any(|fixed| fixed == detail);
            if is_fixed { "as in the claim" } else { factor.map_or("as chosen", |factor| factor.chosen) }
        };
        for claim in with_readings() {
            let first = ReadingVerdict { reading: Values::new(), judged: claim.judged };
            for ReadingVerdict { reading, judged } in [&first].into_iter().chain(&claim.readings) {
                let value =
                    |detail: &str| reading.get(detail).map_or_else(|| chosen(claim, detail), String::as_str);
                let values = details.iter().map(|detail| value(detail).to_owned());
                table.row(
                    [claim.sentence.clone()].into_iter().chain(values).chain([judged.name().to_owned()]),
                );
            }
        }
        (!table.rows.is_empty()).then_some(table)
    }

    /// One paragraph per remark.
    pub fn remarks_markdown(&self) -> String {
        self.remarks.iter().map(|remark| wrapped("", remark, WIDTH) + "\n").collect()
    }
}

impl Claim {
    /// A claim that counts: its place, the sentence of the paper, our result and the verdict.
    pub fn new(place: &str, sentence: &str, result: String, judged: Judged) -> Self {
        Self {
            sentence: sentence.to_owned(),
            place: place.to_owned(),
            counts: Counts::Yes,
            result,
            judged,
            readings: Vec::new(),
            fixed: Vec::new(),
            once: false,
        }
    }

    /// The same claim as one that does not count, with the reason.
    pub fn not_counted(self, counts: Counts) -> Self {
        Self { counts, ..self }
    }

    /// Adds the verdict with another value of a detail. The detail affects the judgement and not the runs.
    pub(crate) fn with(mut self, detail: &str, value: &str, judged: Judged) -> Self {
        let reading = Values::from([(detail.to_owned(), value.to_owned())]);
        self.readings.push(ReadingVerdict { reading, judged });
        self
    }

    /// Adds the verdicts of `judge` with the other numbers of repetitions.
    pub(crate) fn repeated(
        self,
        Repetitions { others, .. }: Repetitions,
        judge: impl Fn(u32) -> Judged,
    ) -> Self {
        others.iter().fold(self, |claim, &times| claim.with(REPETITIONS, &times.to_string(), judge(times)))
    }

    /// Names a detail that the sentence itself fixes.
    pub(crate) fn fixing(mut self, detail: &str) -> Self {
        self.fixed.push(detail.to_owned());
        self
    }

    /// Adds the verdicts on the same claim in runs of another reading.
    pub(crate) fn add_reading(&mut self, reading: &Reading, other: &Self) {
        let values = reading.values();
        if values.keys().any(|detail| self.fixed.contains(detail)) {
            return;
        }
        let with = |more: &Values| values.iter().chain(more).map(|(a, b)| (a.clone(), b.clone())).collect();
        self.readings.push(ReadingVerdict { reading: values.clone(), judged: other.judged });
        let combined = other
            .readings
            .iter()
            .map(|verdict| ReadingVerdict { reading: with(&verdict.reading), judged: verdict.judged });
        self.readings.extend(combined);
    }

    /// The verdict over all readings.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.judged, &self.readings)
    }

    /// The verdict in words.
    pub fn verdict_name(&self) -> String {
        if self.once { self.verdict().name_once() } else { self.verdict().name() }
    }

    /// The number of readings with each verdict, and the smallest changes that lead to another verdict. `None` if only
    /// the chosen reading was judged.
    pub fn readings_shown(&self) -> Option<String> {
        if self.readings.is_empty() {
            return None;
        }
        let counts = Judged::ALL.into_iter().filter_map(|judged| {
            let count = self.readings.iter().filter(|verdict| verdict.judged == judged).count();
            (count > 0).then(|| format!("{} in {count}", judged.name()))
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        let text = format!("Chosen reading: {}. Other readings: {counts}.", self.judged.name());
        let is_opposite =
            |verdict: &&ReadingVerdict| ![self.judged, Judged::Undecided].contains(&verdict.judged);
        let opposite = || self.readings.iter().filter(is_opposite);
        let Some(fewest) = opposite().map(|verdict| verdict.reading.len()).min() else { return Some(text) };
        let smallest = opposite().filter(|verdict| verdict.reading.len() == fewest).map(|verdict| {
            let values = verdict.reading.iter().map(|(detail, value)| format!("{detail}: {value}"));
            format!("{} ({})", values.collect::<Vec<_>>().join(" and "), verdict.judged.name())
        });
        Some(format!("{text} Another verdict with {}.", smallest.collect::<Vec<_>>().join("; ")))
    }

    /// The claim as a list item. The verdict of a claim that counts is bold.
    fn markdown(&self) -> String {
        let Self { sentence, place, counts, result, .. } = self;
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        let verdict = match counts.note() {
            None => format!("**{}**", self.verdict_name()),
            Some(note) => format!("{}, not counted ({note})", self.verdict_name()),
        };
        let claim = wrapped("- ", &format!("{verdict}: {sentence}{place}"), WIDTH);
        let here = wrapped("  ", &format!("Here: {result}"), WIDTH);
        let readings = self
            .readings_shown()
            .map_or_else(String::new, |text| format!("\n{}", wrapped("  ", &text, WIDTH)));
        format!("{claim}\n{here}{readings}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncounted_claim_states_reason() {
        let claim =
            |counts| claim(At("§4"), "\"more\"", "+3 %".to_owned(), Judged::Holds).not_counted(counts);
        let claims = vec![claim(Counts::Yes), claim(Counts::Calibrated("the delay".to_owned()))];
        let text = Finding { claims, ..Finding::default() }.markdown();
        assert!(text.contains("- **holds**: \"more\" (§4)\n\n  Here: +3 %\n"), "{text}");
        assert!(text.contains("- holds, not counted (calibrated: the delay): \"more\""), "{text}");
    }

    #[test]
    fn claim_lists_readings_with_other_verdict() {
        let claim = claim(At("§4"), "“more”", "+3 %".to_owned(), Judged::Holds).with(
            "the tick",
            "500 ms",
            Judged::DoesNotHold,
        );
        let text = claim.markdown();
        assert!(text.starts_with("- **depends on the tick**: “more” (§4)\n"), "{text}");
        let readings = "  Chosen reading: holds. Other readings: does not hold in 1. Another verdict with the tick: 500 ms\n  \
                        (does not hold).\n";
        assert!(text.contains(readings), "{text}");
    }
}
