//! The table of a scene, virtual time and TUN side by side, for a terminal and for a page.

use airtcp_numbers::statistics::Mean;
use airtcp_report::html::chart::{self, Chart, Interval};
use airtcp_report::html::table::{Cell, Shows, Table};

use super::{Played, Row};
use crate::sender::Repair;
use crate::summary::aligned;

/// A column: its heading on a terminal and on a page, what it means, and what it has for a sender.
struct Column {
    terminal: &'static str,
    page: &'static str,
    meaning: &'static str,
    value: fn(&Row) -> Value,
}

/// What both show alike; only a terminal needs the signs.
enum Value {
    Text(String),
    Number(f64, usize),
    /// Half of an interval, with so many digits, in per cent or not.
    Half(f64, usize, &'static str),
    /// With its sign, in per cent.
    Gain(f64),
    Share(f64),
    Nothing,
}

const COLUMNS: [Column; 12] = [
    Column {
        terminal: "sender",
        page: "sender",
        meaning: "a recipe, or the kernel's own",
        value: |row| Value::Text(row.sender.clone()),
    },
    Column {
        terminal: "virtual: kbit/s",
        page: "virtual: kbit/s",
        meaning: "goodput from the first SYN to the last ACK: the mean over all seeds",
        value: |row| Value::Number(row.in_virtual_time.kbit_per_s.mean, 1),
    },
    Column {
        terminal: "",
        page: "±",
        meaning: "half the width of its 95 % interval",
        value: |row| half(row.in_virtual_time.kbit_per_s, 1.0, 1, ""),
    },
    Column {
        terminal: "gain",
        page: "gain %",
        meaning: "what it has more than the first sender, of that one's mean",
        value: |row| gain(row).map_or(Value::Nothing, |gain| Value::Gain(100.0 * gain.mean)),
    },
    Column {
        terminal: "",
        page: "±",
        meaning: "half the width of the 95 % interval of the differences, seed by seed",
        value: |row| gain(row).map_or(Value::Nothing, |gain| half(gain, 100.0, 1, " %")),
    },
    Column {
        terminal: "",
        page: "verdict",
        meaning: "what that interval says",
        value: |row| Value::Text(row.against.map_or_else(String::new, |against| against.verdict.to_string())),
    },
    Column {
        terminal: "resent",
        page: "resent",
        meaning: "segments sent again, as the sender counts them: the mean over all seeds",
        value: |row| Value::Number(row.in_virtual_time.resent.mean, 1),
    },
    Column {
        terminal: "timeouts",
        page: "timeouts",
        meaning: "of the retransmission timer: the mean over all seeds",
        value: |row| Value::Number(row.in_virtual_time.timeouts.mean, 1),
    },
    Column {
        terminal: "TUN: kbit/s",
        page: "TUN: kbit/s",
        meaning: "goodput of the one transfer over real devices, to this machine's kernel",
        value: |row| real(row, |_| row.real.kbit_per_s, 1),
    },
    Column {
        terminal: "resent",
        page: "resent",
        meaning: "segments sent again, as the sender counts them, in that transfer",
        value: |row| real(row, |counted| counted.resent() as f64, 0),
    },
    Column {
        terminal: "timeouts",
        page: "timeouts",
        meaning: "of the retransmission timer, in that transfer",
        value: |row| real(row, |counted| counted.timeouts as f64, 0),
    },
    Column {
        terminal: "faster than",
        page: "faster than",
        meaning: "so many of the seeds in virtual time are slower than that transfer",
        value: |row| row.faster_than.map_or(Value::Nothing, Value::Share),
    },
];

fn gain(row: &Row) -> Option<Mean> {
    row.against?.gain
}

fn half(mean: Mean, unit: f64, digits: usize, sign: &'static str) -> Value {
    mean.half_width.map_or(Value::Nothing, |half| Value::Half(unit * half, digits, sign))
}

fn real(row: &Row, number: impl Fn(&Repair) -> f64, digits: usize) -> Value {
    row.counted().map_or(Value::Nothing, |counted| Value::Number(number(counted), digits))
}

/// Sentences are that wide on a terminal.
const WIDTH: usize = 110;

/// Broken between words: `- ` before the first line, and the others under it.
fn in_lines(text: &str) -> String {
    let mut lines = vec!["-".to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.chars().count() + 1 + word.chars().count() <= WIDTH {
            line.extend([" ", word]);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines.join("\n") + "\n"
}

impl Value {
    fn terminal(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number, digits) => format!("{number:.digits$}"),
            Self::Half(half, digits, sign) => format!("± {half:.digits$}{sign}"),
            Self::Gain(gain) => format!("{gain:+.1} %"),
            Self::Share(share) => format!("{:.0} %", 100.0 * share),
            Self::Nothing => String::new(),
        }
    }

    fn cell(&self) -> Cell {
        match self {
            Self::Text(text) => Cell::text(text),
            Self::Number(number, digits) | Self::Half(number, digits, _) => Cell::number(*number, *digits),
            Self::Gain(gain) => Cell { text: format!("{gain:+.1}"), value: Some(*gain) },
            Self::Share(share) => Cell { text: format!("{:.0} %", 100.0 * share), value: Some(*share) },
            Self::Nothing => Cell::nothing(),
        }
    }
}

impl Played {
    /// For a terminal: title, table, sentences.
    pub fn text(&self) -> String {
        let heading = COLUMNS.iter().map(|column| column.terminal.to_owned()).collect::<Vec<_>>();
        let rows = self.rows.iter().map(|row| COLUMNS.iter().map(|it| (it.value)(row).terminal()).collect());
        let mut text = format!("{}\n", self.title);
        text += &aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>());
        for sentence in &self.sentences {
            text += &in_lines(&sentence.text);
        }
        for (sender, why) in self.failures() {
            text += &format!("  {sender} failed over TUN: {why}\n");
        }
        for (sender, why) in self.spoiled() {
            text += &format!("  {sender}: spoiled over TUN, left out: {why}\n");
        }
        text
    }

    /// On a page. `runs_of`: the runs that each sender's row shows.
    pub(crate) fn table(&self, runs_of: &[Vec<usize>]) -> Table {
        let rows = self.rows.iter().zip(runs_of).map(|(row, runs)| {
            let cells = COLUMNS.iter().map(|column| (column.value)(row).cell()).collect();
            (Shows { runs: runs.clone() }, cells)
        });
        Table {
            caption: self.caption(),
            columns: COLUMNS.iter().map(|column| (column.page, column.meaning)).collect(),
            rows: rows.collect(),
        }
    }

    fn caption(&self) -> String {
        let Self { seeds, bytes, profile, against, .. } = self;
        let models = self.rows.iter().filter_map(|row| {
            Some(format!("; in virtual time recipe {} stands for {}", row.modelled_by.as_ref()?, row.sender))
        });
        format!(
            "{seeds} seeds in virtual time, and one transfer over TUN to this machine's kernel; {bytes} bytes, recipes with \
             profile {profile}, compared with {against}{}",
            models.collect::<String>()
        )
    }

    /// The intervals are those of virtual time, the marks the transfers over real devices.
    pub(crate) fn chart(&self, runs_of: &[Vec<usize>]) -> Chart {
        let interval = |mean: Mean, unit: f64| Interval {
            mean: unit * mean.mean,
            half_width: mean.half_width.map(|half| unit * half),
        };
        let senders = self.rows.iter().zip(runs_of).map(|(row, runs)| chart::Sender {
            name: row.sender.clone(),
            shows: Shows { runs: runs.clone() },
            goodput: Some(interval(row.in_virtual_time.kbit_per_s, 1.0)),
            transfers: row.real.counts().then_some(row.real.kbit_per_s).into_iter().collect(),
            gain: gain(row).map(|gain| interval(gain, 100.0)),
            verdict: row.against.map_or_else(String::new, |against| against.verdict.to_string()),
        });
        Chart { against: self.against.clone(), senders: senders.collect() }
    }
}
