//! The tables of a scene for a terminal and for a page.

use airtcp_numbers::statistics::Mean;
use airtcp_numbers::table::{self as text, wrapped, wrapped_lines};
use airtcp_report::html::chart::{self, Chart};
use airtcp_report::html::table::{Cell, Table};

use super::{Row, SceneMeans, SceneResult};
use crate::page::interval;
use crate::sender::RetransmissionCounts;

/// The page's table: the heading of each column, its meaning and the cell for a sender.
type Column = (&'static str, &'static str, fn(&Row) -> Cell);

const COLUMNS: [Column; 12] = [
    ("sender", "a recipe, or a kernel sender", |row| Cell::text(&row.sender)),
    ("virtual: kbit/s", "mean goodput over all seeds, from the first SYN to the last ACK", |row| {
        Cell::number(row.in_virtual_time.kbit_per_s.mean, 1)
    }),
    ("±", "half the width of the 95 % interval of the mean", |row| {
        half_width(Some(row.in_virtual_time.kbit_per_s), 1.0)
    }),
    ("gain %", "mean difference from the first sender, in percent of its mean", |row| {
        let gain = gain(row).map(|gain| 100.0 * gain.mean);
        gain.map_or_else(Cell::nothing, |gain| Cell { text: format!("{gain:+.1}"), value: Some(gain) })
    }),
    ("±", "half the width of the 95 % interval of the differences between pairs", |row| {
        half_width(gain(row), 100.0)
    }),
    ("verdict", "verdict from the interval of the gain", |row| Cell::text(verdict(row))),
    (
        "retransmissions",
        "mean number of retransmitted segments over all seeds, as the sender counts them",
        |row| Cell::number(row.in_virtual_time.resent.mean, 1),
    ),
    ("timeouts", "mean number of timeouts over all seeds", |row| {
        Cell::number(row.in_virtual_time.timeouts.mean, 1)
    }),
    ("TUN: kbit/s", "goodput of the transfer over TUN devices to this machine's kernel", |row| {
        real(row, |_| row.real.kbit_per_s, 1)
    }),
    ("retransmissions", "retransmitted segments in that transfer, as the sender counts them", |row| {
        real(row, |counts| counts.retransmitted() as f64, 0)
    }),
    ("timeouts", "timeouts in that transfer", |row| real(row, |counts| counts.timeouts as f64, 0)),
    ("rank", "share of the virtual runs that were slower than that transfer", |row| {
        row.faster_than.map_or_else(Cell::nothing, |share| Cell {
            text: format!("{:.0} %", 100.0 * share),
            value: Some(share),
        })
    }),
];

fn gain(row: &Row) -> Option<Mean> {
    row.against?.gain
}

fn verdict(row: &Row) -> String {
    row.against.map_or_else(String::new, |against| against.verdict.to_string())
}

fn half_width(mean: Option<Mean>, factor: f64) -> Cell {
    let half = mean.and_then(|mean| mean.half_width);
    half.map_or_else(Cell::nothing, |half| Cell::number(factor * half, 1))
}

fn real(row: &Row, number: impl Fn(&RetransmissionCounts) -> f64, digits: usize) -> Cell {
    row.real_counts().map_or_else(Cell::nothing, |counts| Cell::number(number(counts), digits))
}

impl SceneResult {
    /// Formats the scene for a terminal: the simulated runs with their sentences, then the real transfers.
    /// `width` limits the columns; `None` shows all.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut text = format!("{}\n\nvirtual time, {} seeds\n", self.title, self.seeds);
        text += &self.in_virtual_time().render(width);
        text.push('\n');
        for sentence in &self.sentences {
            text += &wrapped("- ", &sentence.text, width.unwrap_or(usize::MAX));
        }
        let notices = self.notices().map(|(sender, notice)| format!("{sender}: {notice}\n"));
        text += &wrapped_lines(&notices.collect::<String>(), width);
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
            let SceneMeans { kbit_per_s, resent, timeouts } = &row.in_virtual_time;
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
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let counts = row.real_counts();
            table.push([
                row.sender.clone(),
                or_dash(counts.map(|_| format!("{:.1}", row.real.kbit_per_s))),
                or_dash(counts.map(|counts| counts.retransmitted().to_string())),
                or_dash(counts.map(|counts| counts.timeouts.to_string())),
                or_dash(row.faster_than.map(|share| format!("{:.0} %", 100.0 * share))),
            ]);
        }
        table
    }

    /// The table for a page. `runs_of` has the runs that each sender's row displays.
    pub(crate) fn table(&self, runs_of: &[Vec<usize>]) -> Table {
        let rows = self.rows.iter().zip(runs_of).map(|(row, runs)| {
            let cells = COLUMNS.iter().map(|(_, _, cell)| cell(row)).collect();
            (runs.clone(), cells)
        });
        let columns = COLUMNS.iter().map(|(heading, meaning, _)| (*heading, *meaning)).collect();
        Table { caption: self.caption(), columns, rows: rows.collect() }
    }

    fn caption(&self) -> String {
        let Self { seeds, bytes, profile, against, .. } = self;
        let models = self.rows.iter().filter_map(|row| {
            Some(format!("; in virtual time, recipe {} models {}", row.modelled_by.as_ref()?, row.sender))
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
        let senders = self.rows.iter().zip(runs_of).map(|(row, runs)| chart::Sender {
            name: row.sender.clone(),
            runs: runs.clone(),
            goodput: Some(interval(row.in_virtual_time.kbit_per_s, 1.0)),
            transfers: row.real.counts().then_some(row.real.kbit_per_s).into_iter().collect(),
            gain: gain(row).map(|gain| interval(gain, 100.0)),
            verdict: verdict(row),
        });
        Chart { against: self.against.clone(), senders: senders.collect() }
    }
}
