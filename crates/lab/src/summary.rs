//! What each sender's transfers add up to: the row of a table, and its columns as a terminal and a page show them.

use airtcp::sender::shared;
use airtcp_numbers::statistics::{Mean, median};
use airtcp_numbers::verdict::Comparison;
use airtcp_report::html::table::Cell;
use serde::{Deserialize, Serialize};

use super::sender::Sender;
use super::transfer::Outcome;

/// What a sender's transfers add up to. Means are of those that succeeded and that the machine did not spoil, and `None` if
/// there are none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// A recipe, with its profile where those of the experiment differ, or `linux:` and a congestion control.
    pub sender: String,
    /// The sender's. `None`: it is the kernel's own, or the file is older than this field.
    #[serde(default)]
    pub profile: Option<String>,
    /// Transfers in which every octet arrived and nothing else.
    pub succeeded: usize,
    pub failed: usize,
    /// Goodput from the first SYN to the last ACK.
    pub kbit_per_s: Option<Mean>,
    /// The median of the same. `None`: none succeeded, or the file is older than this field.
    #[serde(default)]
    pub median_kbit_per_s: Option<f64>,
    /// Goodput beside that of the sender that all are compared with, of the rounds in which both succeeded. `None`: it is
    /// that sender, or the file is older than this field.
    #[serde(default)]
    pub against: Option<Comparison>,
    /// Segments sent again, as the sender counts them: a mean, and 0 if no transfer succeeded.
    pub fast: f64,
    pub timeout: f64,
    pub probe: f64,
    /// Of the retransmission timer.
    pub timeouts: f64,
    /// Timeouts that the sender has noticed to be a mistake.
    pub spurious: f64,
    /// As the capture on the sender's side shows it.
    pub resent_packets: f64,
    /// Silence on the sender's side that ended with a retransmission.
    pub idle_seconds: Option<Mean>,
}

/// A column of the table.
pub(crate) struct Column {
    /// Its heading on a page.
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    value: fn(&Row) -> Value,
    /// `None`: a page has it and a terminal has not.
    terminal: Option<Terminal>,
}

/// What a column has for a row.
enum Value {
    Text(String),
    /// With so many digits behind the point.
    Number(Option<f64>, usize),
    /// The same, with its sign.
    Gain(Option<f64>, usize),
    /// Of so many in all.
    Share(usize, usize),
}

/// How a terminal, where headings are narrow, shows a column otherwise than a page.
struct Terminal {
    name: &'static str,
    before: &'static str,
    after: &'static str,
    nothing: &'static str,
}

/// As on a page.
const fn column(name: &'static str, meaning: &'static str, value: fn(&Row) -> Value) -> Column {
    let terminal = Terminal { name, before: "", after: "", nothing: "-" };
    Column { name, meaning, value, terminal: Some(terminal) }
}

/// Half an interval, to the right of its mean.
const fn half(unit: &'static str, meaning: &'static str, value: fn(&Row) -> Value) -> Column {
    let terminal = Terminal { name: "", before: "± ", after: unit, nothing: "" };
    Column { name: "±", meaning, value, terminal: Some(terminal) }
}

pub(crate) const COLUMNS: [Column; 14] = [
    column("sender", "a recipe, or the kernel's own", |row| Value::Text(row.sender.clone())),
    column("kbit/s", "goodput from the first SYN to the last ACK: the mean", |row| mean(row.kbit_per_s, 1)),
    half("", "half the width of its 95 % interval", |row| {
        Value::Number(row.kbit_per_s.and_then(|mean| mean.half_width), 1)
    }),
    column("median", "of the same", |row| Value::Number(row.median_kbit_per_s, 1)),
    Column {
        terminal: Some(Terminal { name: "gain", before: "", after: " %", nothing: "" }),
        ..column(
            "gain %",
            "what it has more than the sender that all are compared with, of that one's mean",
            |row| Value::Gain(row.gain().map(|gain| 100.0 * gain.mean), 1),
        )
    },
    half(" %", "half the width of the 95 % interval of the differences, round by round", |row| {
        Value::Number(row.gain().and_then(|gain| gain.half_width).map(|half| 100.0 * half), 1)
    }),
    Column {
        terminal: None,
        ..column("verdict", "what that interval says", |row| {
            Value::Text(row.against.map_or_else(String::new, |against| against.verdict.to_string()))
        })
    },
    column(
        "resent: fast",
        "segments sent again after duplicate ACKs or SACK, as the sender counts them",
        |row| count(row.fast),
    ),
    column("timeout", "segments sent again after a timeout", |row| count(row.timeout)),
    column("probe", "segments sent again to provoke an ACK", |row| count(row.probe)),
    column("timeouts", "of the retransmission timer", |row| count(row.timeouts)),
    column("spurious", "timeouts that the sender has noticed to be a mistake", |row| count(row.spurious)),
    Column {
        terminal: Some(Terminal { name: "idle", before: "", after: " s", nothing: "-" }),
        ..column("idle s", "silence that ended with a retransmission", |row| mean(row.idle_seconds, 2))
    },
    column("exact", "transfers in which every octet arrived and nothing else", |row| {
        Value::Share(row.succeeded, row.succeeded + row.failed)
    }),
];

fn mean(mean: Option<Mean>, digits: usize) -> Value {
    Value::Number(mean.map(|mean| mean.mean), digits)
}

fn count(mean: f64) -> Value {
    Value::Number(Some(mean), 1)
}

impl Column {
    /// For a page.
    pub(crate) fn cell(&self, row: &Row) -> Cell {
        match (self.value)(row) {
            Value::Text(text) => Cell::text(text),
            Value::Number(Some(number), digits) => Cell::number(number, digits),
            Value::Gain(Some(number), digits) => {
                Cell { text: format!("{number:+.digits$}"), value: Some(number) }
            }
            Value::Number(None, _) | Value::Gain(None, _) => Cell::nothing(),
            Value::Share(part, all) => Cell { text: format!("{part}/{all}"), value: Some(part as f64) },
        }
    }

    fn text(&self, terminal: &Terminal, row: &Row) -> String {
        let Terminal { before, after, nothing, .. } = terminal;
        match (self.value)(row) {
            Value::Number(Some(number), digits) => format!("{before}{number:.digits$}{after}"),
            Value::Gain(Some(number), digits) => format!("{before}{number:+.digits$}{after}"),
            Value::Number(None, _) | Value::Gain(None, _) => (*nothing).to_owned(),
            Value::Text(_) | Value::Share(..) => self.cell(row).text,
        }
    }
}

/// What a table says over its rows, if all recipes in it have the same profile. Otherwise the rows say it.
pub(crate) fn profile<'a>(profiles: impl IntoIterator<Item = Option<&'a str>>) -> Option<String> {
    let profile = shared(profiles.into_iter().flatten())?;
    Some(format!("recipes with profile {profile}"))
}

impl Row {
    fn gain(&self) -> Option<Mean> {
        self.against?.gain
    }
}

/// For a terminal.
pub(super) fn table(rows: &[Row]) -> String {
    let profile = profile(rows.iter().map(|row| row.profile.as_deref()));
    let over = profile.map(|profile| format!("{profile}\n")).unwrap_or_default();
    let columns = || COLUMNS.iter().filter_map(|column| Some((column, column.terminal.as_ref()?)));
    let heading = columns().map(|(_, terminal)| terminal.name.to_owned()).collect::<Vec<_>>();
    let rows =
        rows.iter().map(|row| columns().map(|(column, terminal)| column.text(terminal, row)).collect());
    over + &aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>())
}

/// A sentence for each sender that is compared with `against`.
pub(super) fn verdicts(rows: &[Row], against: &str) -> String {
    let said = rows.iter().filter_map(|row| Some(row.against?.sentence(&row.sender, against) + "\n"));
    said.collect()
}

/// What was made again, and what counts for nothing, because the machine has spoiled it. `None`: nothing.
pub(super) fn spoiled(transfers: &[Outcome]) -> Option<String> {
    let again: Vec<_> = transfers.iter().flat_map(|outcome| &outcome.made_again).collect();
    let left: Vec<_> = transfers.iter().filter_map(|outcome| outcome.spoiled.as_ref()).collect();
    let example = left.first().or_else(|| again.first())?;
    Some(format!(
        "this machine has spoiled transfers: {} were made again, {} are left out; for example, {example}",
        again.len(),
        left.len()
    ))
}

/// A row for each sender, in this order; all others are compared with the one at `against`. Transfers of one sender are in
/// the order of the rounds.
pub(super) fn rows(senders: &[Sender], against: usize, transfers: &[Outcome]) -> Vec<Row> {
    let of = |sender: &Sender| {
        let name = sender.name.clone();
        transfers.iter().filter(move |outcome| outcome.sender == name)
    };
    let counts = |outcome: &Outcome| outcome.failure.is_none() && outcome.spoiled.is_none();
    let goodput = |outcome: &Outcome| counts(outcome).then_some(outcome.kbit_per_s);
    let theirs: Vec<_> =
        senders.get(against).map(|sender| of(sender).map(goodput).collect()).unwrap_or_default();
    senders
        .iter()
        .enumerate()
        .map(|(at, sender)| {
            let all: Vec<_> = of(sender).collect();
            let failed = all.iter().filter(|outcome| outcome.failure.is_some()).count();
            let good: Vec<_> = all.iter().filter(|outcome| counts(outcome)).collect();
            let values = |value: &dyn Fn(&Outcome) -> f64| -> Vec<f64> {
                good.iter().map(|outcome| value(outcome)).collect()
            };
            let mean = |value: &dyn Fn(&Outcome) -> f64| Mean::of(&values(value));
            let count = |value: &dyn Fn(&Outcome) -> u64| {
                mean(&|outcome| value(outcome) as f64).map(|mean| mean.mean).unwrap_or_default()
            };
            // Rounds in which both succeeded.
            let pairs = all.iter().zip(&theirs).filter_map(|(outcome, other)| goodput(outcome).zip(*other));
            let (own, others): (Vec<_>, Vec<_>) = pairs.unzip();
            Row {
                sender: sender.name.clone(),
                profile: sender.profile(),
                succeeded: all.len() - failed,
                failed,
                kbit_per_s: mean(&|outcome| outcome.kbit_per_s),
                median_kbit_per_s: median(&values(&|outcome| outcome.kbit_per_s)),
                against: (at != against).then(|| Comparison::of(&own, &others)),
                fast: count(&|outcome| outcome.repair.fast),
                timeout: count(&|outcome| outcome.repair.timeout),
                probe: count(&|outcome| outcome.repair.probe),
                timeouts: count(&|outcome| outcome.repair.timeouts),
                spurious: count(&|outcome| outcome.repair.spurious),
                resent_packets: count(&|outcome| outcome.capture.resent_packets),
                idle_seconds: mean(&|outcome| outcome.capture.idle_seconds),
            }
        })
        .collect()
}

/// The first column to the left, the others to the right.
pub(super) fn aligned(rows: &[impl AsRef<[String]>]) -> String {
    let mut width: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.as_ref().iter().enumerate() {
            width.resize(width.len().max(column + 1), 0);
            width[column] = width[column].max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.as_ref().iter().zip(&width).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            let (before, after) = if column == 0 { ("", gap.as_str()) } else { (gap.as_str(), "") };
            text.push_str(&format!("{before}{cell}{after}  "));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use airtcp_numbers::verdict::Verdict;

    use super::*;

    #[test]
    fn a_terminal_has_signs_and_units_where_a_page_has_headings() {
        let mean = |mean, half_width| Some(Mean { mean, half_width, samples: 3 });
        let none = Row {
            sender: "newreno".to_owned(),
            profile: Some("linux".to_owned()),
            succeeded: 0,
            failed: 3,
            kbit_per_s: None,
            median_kbit_per_s: None,
            against: None,
            fast: 0.0,
            timeout: 0.0,
            probe: 0.0,
            timeouts: 0.0,
            spurious: 0.0,
            resent_packets: 0.0,
            idle_seconds: None,
        };
        let some = Row {
            sender: "linux:cubic".to_owned(),
            profile: None,
            succeeded: 2,
            failed: 1,
            kbit_per_s: mean(310.25, Some(12.34)),
            median_kbit_per_s: Some(299.96),
            against: Some(Comparison { gain: mean(0.2345, Some(0.123)), verdict: Verdict::Better }),
            fast: 12.0,
            idle_seconds: mean(0.5, None),
            ..none.clone()
        };
        let expected = "\
recipes with profile linux
sender       kbit/s          median     gain            resent: fast  timeout  probe  timeouts  spurious    idle  exact
newreno           -               -                              0.0      0.0    0.0       0.0       0.0       -    0/3
linux:cubic   310.2  ± 12.3   300.0  +23.4 %  ± 12.3 %          12.0      0.0    0.0       0.0       0.0  0.50 s    2/3
";
        assert_eq!(table(&[none.clone(), some.clone()]), expected);
        let cells = |row| COLUMNS.map(|column: Column| column.cell(row).text).join(" ");
        assert_eq!(cells(&none), "newreno – – – – –  0.0 0.0 0.0 0.0 0.0 – 0/3");
        assert_eq!(
            cells(&some),
            "linux:cubic 310.2 12.3 300.0 +23.4 12.3 better 12.0 0.0 0.0 0.0 0.0 0.50 2/3"
        );
        assert_eq!(
            verdicts(&[none, some], "newreno"),
            "linux:cubic is better than newreno: +23.4 ± 12.3 % in 3 pairs\n"
        );
    }
}
