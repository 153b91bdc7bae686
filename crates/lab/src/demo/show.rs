//! The tables of a scene for a terminal and for a page.

use airtcp_numbers::statistics::Mean;
use airtcp_numbers::table::{self as text, wrapped, wrapped_lines};
use airtcp_report::html::chart::{self, Chart, Interval};
use airtcp_report::html::table::{Cell, Shows, Table};

use super::{Many, Played, Row};
use crate::sender::Repair;

/// A column of the page's table: its heading, its meaning and the value for a sender.
struct Column {
    page: &'static str,
    meaning: &'static str,
    value: fn(&Row) -> Value,
}

/// The value of a cell.
enum Value {
    Text(String),
    Number(f64, usize),
    /// Per cent, with a sign.
    Gain(f64),
    Share(f64),
    Nothing,
}

const COLUMNS: [Column; 12] = [
    Column {
        page: "sender",
        meaning: "a recipe, or a kernel sender",
        value: |row| Value::Text(row.sender.clone()),
    },
    Column {
        page: "virtual: kbit/s",
        meaning: "mean goodput over all seeds, from the first SYN to the last ACK",
        value: |row| Value::Number(row.in_virtual_time.kbit_per_s.mean, 1),
    },
    Column {
        page: "±",
        meaning: "half the width of the 95 % interval of the mean",
        value: |row| half(row.in_virtual_time.kbit_per_s, 1.0, 1),
    },
    Column {
        page: "gain %",
        meaning: "mean difference from the first sender, in percent of its mean",
        value: |row| gain(row).map_or(Value::Nothing, |gain| Value::Gain(100.0 * gain.mean)),
    },
    Column {
        page: "±",
        meaning: "half the width of the 95 % interval of the differences between pairs",
        value: |row| gain(row).map_or(Value::Nothing, |gain| half(gain, 100.0, 1)),
    },
    Column {
        page: "verdict",
        meaning: "verdict from the interval of the gain",
        value: |row| Value::Text(row.against.map_or_else(String::new, |against| against.verdict.to_string())),
    },
    Column {
        page: "retransmissions",
        meaning: "mean number of retransmitted segments over all seeds, as the sender counts them",
        value: |row| Value::Number(row.in_virtual_time.resent.mean, 1),
    },
    Column {
        page: "timeouts",
        meaning: "mean number of timeouts over all seeds",
        value: |row| Value::Number(row.in_virtual_time.timeouts.mean, 1),
    },
    Column {
        page: "TUN: kbit/s",
        meaning: "goodput of the transfer over TUN devices to this machine's kernel",
        value: |row| real(row, |_| row.real.kbit_per_s, 1),
    },
    Column {
        page: "retransmissions",
        meaning: "retransmitted segments in that transfer, as the sender counts them",
        value: |row| real(row, |counted| counted.resent() as f64, 0),
    },
    Column {
        page: "timeouts",
        meaning: "timeouts in that transfer",
        value: |row| real(row, |counted| counted.timeouts as f64, 0),
    },
    Column {
        page: "rank",
        meaning: "share of the virtual runs that were slower than that transfer",
        value: |row| row.faster_than.map_or(Value::Nothing, Value::Share),
    },
];

fn gain(row: &Row) -> Option<Mean> {
    row.against?.gain
}

fn half(mean: Mean, unit: f64, digits: usize) -> Value {
    mean.half_width.map_or(Value::Nothing, |half| Value::Number(unit * half, digits))
}

fn real(row: &Row, number: impl Fn(&Repair) -> f64, digits: usize) -> Value {
    row.counted().map_or(Value::Nothing, |counted| Value::Number(number(counted), digits))
}

impl Value {
    fn cell(&self) -> Cell {
        match self {
            Self::Text(text) => Cell::text(text),
            Self::Number(number, digits) => Cell::number(*number, *digits),
            Self::Gain(gain) => Cell { text: format!("{gain:+.1}"), value: Some(*gain) },
            Self::Share(share) => Cell { text: format!("{:.0} %", 100.0 * share), value: Some(*share) },
            Self::Nothing => Cell::nothing(),
        }
    }
}

impl Played {
    /// Formats the scene for a terminal: the simulated runs with their sentences, then the real transfers.
    /// `width` limits the columns; `None` shows all.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut text = format!("{}\n\nvirtual time, {} seeds\n", self.title, self.seeds);
        text += &self.in_virtual_time().render(width);
        text.push('\n');
        for sentence in &self.sentences {
            text += &wrapped("- ", &sentence.text, width.unwrap_or(usize::MAX));
        }
        let missing = self.notices().map(|(sender, notice)| format!("{sender}: {notice}\n"));
        text += &wrapped_lines(&missing.collect::<String>(), width);
        text += "\nTUN devices, one transfer to this machine's kernel\n";
        text += &self.over_tun().render(width);
        let real = self.rows.iter().flat_map(|row| {
            row.real.notices().into_iter().map(|notice| format!("{}: {notice}\n", row.sender))
        });
        let failed = self.failures().map(|(sender, why)| format!("{sender} failed: {why}\n"));
        let invalid =
            self.invalid().map(|(sender, why)| format!("{sender} is invalid and left out: {why}\n"));
        text + &wrapped_lines(&real.chain(failed).chain(invalid).collect::<String>(), width)
    }

    fn in_virtual_time(&self) -> text::Table {
        const GOODPUT: &str = "goodput, kbit/s";
        let mut table = text::Table::new([
            text::Column::new("sender").left(),
            text::Column::new("mean").of(GOODPUT),
            text::Column::new("").of(GOODPUT).joined(),
            text::Column::new("gain"),
            text::Column::new("").joined(),
            text::Column::new("retrans").optional(1),
            text::Column::new("timeouts").optional(0),
        ]);
        for row in &self.rows {
            let Many { kbit_per_s, resent, timeouts } = &row.in_virtual_time;
            let half = |mean: Mean, unit: f64, sign: &str| {
                mean.half_width.map_or_else(String::new, |half| format!("± {:.1}{sign}", unit * half))
            };
            let gain = gain(row);
            table.push([
                row.sender.clone(),
                format!("{:.1}", kbit_per_s.mean),
                half(*kbit_per_s, 1.0, ""),
                gain.map_or_else(String::new, |gain| format!("{:+.1} %", 100.0 * gain.mean)),
                gain.map_or_else(String::new, |gain| half(gain, 100.0, " %")),
                format!("{:.1}", resent.mean),
                format!("{:.1}", timeouts.mean),
            ]);
        }
        table
    }

    fn over_tun(&self) -> text::Table {
        let headings = ["kbit/s", "retrans", "timeouts", "rank"];
        let columns = headings.map(text::Column::new);
        let mut table = text::Table::new([text::Column::new("sender").left()].into_iter().chain(columns));
        for row in &self.rows {
            let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let counted = row.counted();
            table.push([
                row.sender.clone(),
                known(counted.map(|_| format!("{:.1}", row.real.kbit_per_s))),
                known(counted.map(|counted| counted.resent().to_string())),
                known(counted.map(|counted| counted.timeouts.to_string())),
                known(row.faster_than.map(|share| format!("{:.0} %", 100.0 * share))),
            ]);
        }
        table
    }

    /// The table for a page. `runs_of` has the runs that each sender's row displays.
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

    /// The chart for a page. The intervals are from virtual time, and the marks are the transfers over TUN
    /// devices.
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
