//! The columns of a table of senders, for a terminal, a page and a spreadsheet.

use airtcp_numbers::csv::record;
use airtcp_numbers::statistics::Mean;
use airtcp_numbers::table::{self, Table};
use airtcp_numbers::verdict::percent_digits;
use airtcp_report::html::table::Cell;

use super::csv::exact;
use super::{Row, profile};

/// A column of the table.
pub(crate) struct Column {
    /// The heading on a page.
    pub(crate) name: &'static str,
    /// The heading in a spreadsheet, which must be clear without any context.
    csv: &'static str,
    pub(crate) meaning: &'static str,
    value: fn(&Row) -> Value,
    /// The form on a terminal. `None` if only the page has the column.
    terminal: Option<Terminal>,
    presence: Presence,
}

/// The tables that have a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Always,
    /// Tables in which at least one row has a value for the column.
    WhereKnown,
}

/// The value of a column for a row.
enum Value {
    Text(String),
    /// A number with this number of decimal places.
    Number(Option<f64>, usize),
    /// A number with its sign, and its number of decimal places.
    Gain(Option<f64>, usize),
    /// A part, and the total.
    Share(usize, usize),
}

/// The form of a column on a terminal, where headings are narrow.
struct Terminal {
    group: &'static str,
    name: &'static str,
    before: &'static str,
    after: &'static str,
    nothing: &'static str,
    is_joined: bool,
    /// A narrow table leaves out the columns with the smallest ranks first. `None` keeps the column.
    rank: Option<u8>,
}

const PLAIN: Terminal =
    Terminal { group: "", name: "", before: "", after: "", nothing: "-", is_joined: false, rank: None };

/// A column with the same heading on a terminal and on a page.
const fn column(name: &'static str, meaning: &'static str, value: fn(&Row) -> Value) -> Column {
    let terminal = Terminal { name, ..PLAIN };
    Column { name, csv: name, meaning, value, terminal: Some(terminal), presence: Presence::Always }
}

/// A column for half the width of an interval, placed after its mean and in the same group.
const fn half(
    csv: &'static str,
    group: &'static str,
    unit: &'static str,
    meaning: &'static str,
    value: fn(&Row) -> Value,
) -> Column {
    let terminal = Terminal { group, before: "± ", after: unit, nothing: "", is_joined: true, ..PLAIN };
    Column { name: "±", csv, meaning, value, terminal: Some(terminal), presence: Presence::Always }
}

impl Column {
    /// On a terminal, the column belongs to a group with a common unit.
    const fn with_terminal(self, group: &'static str, name: &'static str) -> Self {
        Self { terminal: Some(Terminal { group, name, ..PLAIN }), ..self }
    }

    /// Only pages and spreadsheets have the column.
    const fn without_terminal(self) -> Self {
        Self { terminal: None, ..self }
    }

    /// A narrow table may leave the column out.
    const fn optional(self, rank: u8) -> Self {
        let terminal = match self.terminal {
            Some(terminal) => Some(Terminal { rank: Some(rank), ..terminal }),
            None => None,
        };
        Self { terminal, ..self }
    }

    /// The table has the column only if at least one row has a value for the column.
    const fn where_known(self) -> Self {
        Self { presence: Presence::WhereKnown, ..self }
    }
}

const GOODPUT: &str = "goodput, kbit/s";
const RETRANSMISSIONS: &str = "retransmissions";
const TIMEOUTS: &str = "timeouts";

const COLUMNS: [Column; 26] = [
    column("sender", "a recipe, or a kernel sender", |row| Value::Text(row.sender.clone())),
    column(
        "kbit/s",
        "mean goodput from the first SYN to the last ACK, or during the time set by --for",
        |row| mean(row.kbit_per_s, 1),
    )
    .with_terminal(GOODPUT, "mean"),
    half("kbit/s ±", GOODPUT, "", "half the width of the 95 % interval of the mean goodput", |row| {
        half_width(row.kbit_per_s, 1)
    }),
    column("median kbit/s", "median goodput", |row| Value::Number(row.median_kbit_per_s, 1))
        .with_terminal(GOODPUT, "median")
        .optional(3),
    column("median low kbit/s", "lower end of the 95 % interval of the median (bootstrap)", |row| {
        Value::Number(row.median_interval.map(|(low, _)| low), 1)
    })
    .without_terminal()
    .where_known(),
    column("median high kbit/s", "upper end of the 95 % interval of the median (bootstrap)", |row| {
        Value::Number(row.median_interval.map(|(_, high)| high), 1)
    })
    .without_terminal()
    .where_known(),
    column("first quartile kbit/s", "a quarter of the transfers had at most this goodput", |row| {
        Value::Number(row.quartiles.map(|(low, _)| low), 1)
    })
    .without_terminal()
    .where_known(),
    column("third quartile kbit/s", "three quarters of the transfers had at most this goodput", |row| {
        Value::Number(row.quartiles.map(|(_, high)| high), 1)
    })
    .without_terminal()
    .where_known(),
    column("down kbit/s", "goodput towards the mobile side", |row| mean(row.down_kbit_per_s, 1))
        .with_terminal(GOODPUT, "down")
        .where_known(),
    column("up kbit/s", "goodput towards the fixed side", |row| mean(row.up_kbit_per_s, 1))
        .with_terminal(GOODPUT, "up")
        .where_known(),
    column("competitor kbit/s", "goodput of the competing senders", |row| mean(row.competitor_kbit_per_s, 1))
        .with_terminal(GOODPUT, "competitor")
        .optional(8)
        .where_known(),
    Column {
        terminal: Some(Terminal { name: "share", after: " %", ..PLAIN }),
        ..column("share %", "share of all bytes while all connections were sending", |row| {
            mean(row.share.map(percent), 1)
        })
        .where_known()
    },
    half("share ± %", "", " %", "half the width of the 95 % interval of the share", |row| {
        half_width(row.share.map(percent), 1)
    })
    .where_known(),
    column("Jain's index", "fairness among the sender's own connections while all were sending", |row| {
        mean(row.fairness, 3)
    })
    .where_known(),
    Column {
        terminal: Some(Terminal { name: "gain", after: " %", nothing: "", ..PLAIN }),
        ..column("gain %", "mean difference from the reference sender, in percent of its mean", |row| {
            Value::Gain(row.gain().map(|gain| 100.0 * gain.mean), row.gain().map_or(1, percent_digits))
        })
    },
    half(
        "gain ± %",
        "",
        " %",
        "half the width of the 95 % interval of the differences between pairs",
        |row| {
            let half = row.gain().and_then(|gain| gain.half_width).map(|half| 100.0 * half);
            Value::Number(half, row.gain().map_or(1, percent_digits))
        },
    ),
    column("verdict", "verdict from the interval of the gain", |row| {
        Value::Text(row.against.map_or_else(String::new, |against| against.verdict.to_string()))
    })
    .without_terminal(),
    column(
        "retransmissions: fast",
        "segments retransmitted after duplicate ACKs or SACK, as the sender counts them",
        |row| count(row.fast),
    )
    .with_terminal(RETRANSMISSIONS, "fast")
    .optional(5),
    column("retransmissions: timeout", "segments retransmitted after a timeout", |row| count(row.timeout))
        .with_terminal(RETRANSMISSIONS, "timeout")
        .optional(6),
    column("retransmissions: probe", "segments retransmitted to provoke an ACK", |row| count(row.probe))
        .with_terminal(RETRANSMISSIONS, "probe")
        .optional(2),
    column("timeouts", "expiries of the retransmission timer on an open connection", |row| {
        count(row.timeouts)
    })
    .with_terminal(TIMEOUTS, "all")
    .optional(7),
    column("spurious timeouts", "timeouts that the sender found to be spurious", |row| count(row.spurious))
        .with_terminal(TIMEOUTS, "spurious")
        .optional(4),
    Column {
        terminal: Some(Terminal { name: "idle", after: " s", ..PLAIN }),
        ..column("idle s", "silence that ended with a retransmission", |row| mean(row.idle_seconds, 2))
    }
    .optional(1),
    column("exact transfers", "transfers that delivered exactly the bytes sent", |row| {
        Value::Share(row.succeeded, row.succeeded + row.failed)
    })
    .with_terminal("transfers", "exact"),
    column("n", "rounds that all figures of the row cover", |row| Value::Number(Some(row.counted as f64), 0))
        .with_terminal("transfers", "n"),
    // On a terminal, the notices are below the table.
    column("notices", "information that the recipe uses and that did not arrive", |row| {
        Value::Text(row.notices.join("; "))
    })
    .without_terminal()
    .where_known(),
];

fn mean(mean: Option<Mean>, digits: usize) -> Value {
    Value::Number(mean.map(|mean| mean.mean), digits)
}

fn half_width(mean: Option<Mean>, digits: usize) -> Value {
    Value::Number(mean.and_then(|mean| mean.half_width), digits)
}

fn count(mean: Option<f64>) -> Value {
    Value::Number(mean, 1)
}

fn percent(part: Mean) -> Mean {
    Mean { mean: 100.0 * part.mean, half_width: part.half_width.map(|half| 100.0 * half), ..part }
}

/// The columns of a table with these rows.
pub(crate) fn columns(rows: &[Row]) -> Vec<Column> {
    let is_known = |column: &Column| rows.iter().any(|row| (column.value)(row).is_known());
    COLUMNS.into_iter().filter(|column| column.presence == Presence::Always || is_known(column)).collect()
}

impl Value {
    fn is_known(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Number(number, _) | Self::Gain(number, _) => number.is_some(),
            Self::Share(..) => true,
        }
    }
}

impl Column {
    /// The cell on a page.
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

impl Terminal {
    fn column(&self) -> table::Column {
        let column = table::Column::new(self.name).of(self.group);
        let column = if self.is_joined { column.joined() } else { column };
        match self.rank {
            Some(rank) => column.optional(rank),
            None => column,
        }
    }
}

impl Row {
    fn gain(&self) -> Option<Mean> {
        self.against?.gain
    }
}

/// Formats the table for a terminal of this width. `None` shows all columns.
pub(crate) fn table(rows: &[Row], width: Option<usize>) -> String {
    let profile = profile(rows.iter().map(|row| row.profile.as_deref()));
    let heading = profile.map(|profile| format!("{profile}\n")).unwrap_or_default();
    let all = columns(rows);
    let columns: Vec<_> = all.iter().filter_map(|column| Some((column, column.terminal.as_ref()?))).collect();
    let mut table = Table::new(columns.iter().enumerate().map(|(index, (_, terminal))| match index {
        0 => terminal.column().left(),
        _ => terminal.column(),
    }));
    for row in rows {
        table.push(columns.iter().map(|(column, terminal)| column.text(terminal, row)));
    }
    heading + &table.render(width)
}

/// Formats the table as comma-separated values, with three more digits. The columns `sender` and
/// `exact transfers` become two columns each.
pub(crate) fn csv(rows: &[Row]) -> String {
    let columns = columns(rows);
    let headings = columns.iter().flat_map(|column| match column.csv {
        "sender" => vec!["sender", "profile"],
        "exact transfers" => vec!["exact", "transfers"],
        heading => vec![heading],
    });
    let mut lines = vec![headings.map(str::to_owned).collect::<Vec<_>>()];
    for row in rows {
        let profile = row.profile.clone().unwrap_or_default();
        let cells = columns.iter().flat_map(|column| match (column.value)(row) {
            Value::Text(text) if column.csv == "sender" => vec![text, profile.clone()],
            Value::Text(text) => vec![text],
            Value::Number(number, digits) | Value::Gain(number, digits) => {
                vec![number.map_or_else(String::new, |number| exact(number, digits + 3))]
            }
            Value::Share(part, all) => vec![part.to_string(), all.to_string()],
        });
        lines.push(cells.collect());
    }
    lines.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use airtcp_numbers::verdict::{Comparison, Verdict};

    use super::*;
    use crate::summary::verdicts;

    fn mean(mean: f64, half_width: Option<f64>) -> Option<Mean> {
        Some(Mean { mean, half_width, samples: 3 })
    }

    /// A sender without a valid transfer, and one with all figures.
    fn rows() -> [Row; 2] {
        let none = Row {
            sender: "newreno".to_owned(),
            profile: Some("linux".to_owned()),
            failed: 3,
            ..Row::default()
        };
        let gain = mean(0.2345, Some(0.123));
        let some = Row {
            sender: "linux:cubic".to_owned(),
            profile: None,
            succeeded: 2,
            failed: 1,
            counted: 2,
            kbit_per_s: mean(310.25, Some(12.34)),
            median_kbit_per_s: Some(299.96),
            against: Some(Comparison { gain, p: Some(0.02), verdict: Verdict::Better }),
            fast: Some(12.0),
            timeout: Some(0.0),
            probe: Some(0.0),
            timeouts: Some(0.0),
            spurious: Some(0.0),
            idle_seconds: mean(1.0 / 3.0, None),
            ..none.clone()
        };
        [none, some]
    }

    #[test]
    fn terminal_and_page_show_same_figures() {
        let rows = rows();
        let expected = [
            "recipes with profile linux\n",
            "             goodput, kbit/s ----                    retransmissions ----  timeouts ----          transfers\n",
            "sender        mean         median     gain           fast  timeout  probe  all  spurious    idle   exact  n\n",
            "newreno          -              -                       -        -      -    -         -       -     0/3  0\n",
            "linux:cubic  310.2 ± 12.3   300.0  +23.4 % ± 12.3 %  12.0      0.0    0.0  0.0       0.0  0.33 s     2/3  2\n",
        ]
        .concat();
        assert_eq!(table(&rows, None), expected);
        let narrow = table(&rows, Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("not shown: retransmissions (fast, timeout, probe), idle"), "{narrow}");
        let cells =
            |row| columns(&rows).iter().map(|column| column.cell(row).text).collect::<Vec<_>>().join(" ");
        assert_eq!(cells(&rows[0]), "newreno – – – – –  – – – – – – 0/3 0");
        let expected = "linux:cubic 310.2 12.3 300.0 +23.4 12.3 better 12.0 0.0 0.0 0.0 0.0 0.33 2/3 2";
        assert_eq!(cells(&rows[1]), expected);
        let expected = "linux:cubic is better than newreno: +23.4 ± 12.3 % in 3 pairs\n";
        assert_eq!(verdicts(&rows, "newreno"), expected);
    }

    #[test]
    fn columns_without_values_are_omitted() {
        let [none, some] = rows();
        let competes = Row {
            sender: "x,\"y\"".to_owned(),
            competitor_kbit_per_s: mean(100.0, None),
            share: mean(0.25, Some(0.125)),
            fast: None,
            ..some
        };
        let text = table(&[none.clone(), competes.clone()], None);
        let words = |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(2)[1..6], ["mean", "median", "competitor", "share", "gain"]);
        assert_eq!(words(4)[1..7], ["310.2", "±", "12.3", "300.0", "100.0", "25.0"]);
        let expected = "\
sender,profile,kbit/s,kbit/s ±,median kbit/s,competitor kbit/s,share %,share ± %,gain %,gain ± %,verdict,retransmissions: fast,retransmissions: timeout,retransmissions: probe,timeouts,spurious timeouts,idle s,exact,transfers,n
newreno,linux,,,,,,,,,,,,,,,,0,3,0
\"x,\"\"y\"\"\",,310.25,12.34,299.96,100,25,12.5,23.45,12.3,better,,0,0,0,0,0.33333,2,3,2
";
        assert_eq!(csv(&[none.clone(), competes]), expected);
        let without_marks = Row { notices: vec!["a".to_owned(), "b".to_owned()], ..none.clone() };
        let rows = csv(&[without_marks.clone(), none.clone()]);
        let ends: Vec<_> =
            rows.lines().map(|line| line.rsplit_once("3,").map_or(line, |(_, end)| end)).collect();
        assert_eq!(ends[1..], ["0,a; b", "0,"], "{rows}");
        assert!(ends[0].ends_with("exact,transfers,n,notices"), "{rows}");
        assert_eq!(table(&[without_marks], None), table(&[none], None));
    }
}
