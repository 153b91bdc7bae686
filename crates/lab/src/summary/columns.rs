//! The columns of a table of senders, and the forms that they take: on a terminal, on a page, and in a spreadsheet.

use airtcp_numbers::statistics::Mean;
use airtcp_report::html::table::Cell;

use super::{Row, aligned, profile};

/// A column of the table.
pub(crate) struct Column {
    /// Its heading on a page.
    pub(crate) name: &'static str,
    /// Its heading where there is nothing else to say what it is: in a file for a spreadsheet.
    csv: &'static str,
    pub(crate) meaning: &'static str,
    value: fn(&Row) -> Value,
    /// `None`: a page has it and a terminal has not.
    terminal: Option<Terminal>,
    presence: Presence,
}

/// Which tables have a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Always,
    /// Those in which a row has a value for it.
    WhereKnown,
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
    Column { name, csv: name, meaning, value, terminal: Some(terminal), presence: Presence::Always }
}

/// Half an interval, to the right of its mean.
const fn half(
    csv: &'static str,
    unit: &'static str,
    meaning: &'static str,
    value: fn(&Row) -> Value,
) -> Column {
    let terminal = Terminal { name: "", before: "± ", after: unit, nothing: "" };
    Column { name: "±", csv, meaning, value, terminal: Some(terminal), presence: Presence::Always }
}

impl Column {
    const fn with_csv(self, csv: &'static str) -> Self {
        Self { csv, ..self }
    }

    /// On a terminal columns stand in groups, whose first has the unit of all: `kbit/s: mean  median`.
    const fn with_terminal(self, name: &'static str) -> Self {
        Self { terminal: Some(Terminal { name, before: "", after: "", nothing: "-" }), ..self }
    }

    /// Only where a row has a value for it.
    const fn where_known(self) -> Self {
        Self { presence: Presence::WhereKnown, ..self }
    }
}

const COLUMNS: [Column; 20] = [
    column("sender", "a recipe, or the kernel's own", |row| Value::Text(row.sender.clone())),
    column(
        "kbit/s",
        "goodput from the first SYN to the last ACK, or in the time that --for gives it: the mean",
        |row| mean(row.kbit_per_s, 1),
    )
    .with_terminal("kbit/s: mean"),
    half("kbit/s ±", "", "half the width of its 95 % interval", |row| half_width(row.kbit_per_s, 1)),
    column("median kbit/s", "of the same", |row| Value::Number(row.median_kbit_per_s, 1))
        .with_terminal("median"),
    column("down kbit/s", "of it towards the mobile side", |row| mean(row.down_kbit_per_s, 1))
        .with_terminal("down")
        .where_known(),
    column("up kbit/s", "of it towards the fixed side", |row| mean(row.up_kbit_per_s, 1))
        .with_terminal("up")
        .where_known(),
    column("beside kbit/s", "goodput of those that compete with it", |row| mean(row.beside_kbit_per_s, 1))
        .with_terminal("beside")
        .where_known(),
    Column {
        terminal: Some(Terminal { name: "share", before: "", after: " %", nothing: "-" }),
        ..column("share %", "its part of all octets, while all connections were sending", |row| {
            mean(row.share.map(percent), 1)
        })
        .where_known()
    },
    half("share ± %", " %", "half the width of its 95 % interval", |row| {
        half_width(row.share.map(percent), 1)
    })
    .where_known(),
    column("Jain's index", "of fairness among its own connections, while all were sending", |row| {
        mean(row.fairness, 3)
    })
    .where_known(),
    Column {
        terminal: Some(Terminal { name: "gain", before: "", after: " %", nothing: "" }),
        ..column(
            "gain %",
            "what it has more than the sender that all are compared with, of that one's mean",
            |row| Value::Gain(row.gain().map(|gain| 100.0 * gain.mean), 1),
        )
    },
    half("gain ± %", " %", "half the width of the 95 % interval of the differences, round by round", |row| {
        Value::Number(row.gain().and_then(|gain| gain.half_width).map(|half| 100.0 * half), 1)
    }),
    Column {
        terminal: None,
        ..column("verdict", "what that interval says", |row| {
            Value::Text(row.against.map_or_else(String::new, |against| against.verdict.to_string()))
        })
    },
    column(
        "segments resent: fast",
        "segments sent again after duplicate ACKs or SACK, as the sender counts them",
        |row| count(row.fast),
    )
    .with_csv("resent segments: fast"),
    column("segments resent: timeout", "segments sent again after a timeout", |row| count(row.timeout))
        .with_csv("resent segments: timeout")
        .with_terminal("timeout"),
    column("segments resent: probe", "segments sent again to provoke an ACK", |row| count(row.probe))
        .with_csv("resent segments: probe")
        .with_terminal("probe"),
    column("timeouts", "of the retransmission timer, once the connection is open", |row| count(row.timeouts))
        .with_terminal("timeouts: all"),
    column("spurious timeouts", "timeouts that the sender has noticed to be a mistake", |row| {
        count(row.spurious)
    })
    .with_csv("spurious")
    .with_terminal("spurious"),
    Column {
        terminal: Some(Terminal { name: "idle", before: "", after: " s", nothing: "-" }),
        ..column("idle s", "silence that ended with a retransmission", |row| mean(row.idle_seconds, 2))
    },
    column("exact transfers", "transfers in which every octet arrived and nothing else", |row| {
        Value::Share(row.succeeded, row.succeeded + row.failed)
    })
    .with_csv("exact"),
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

/// Those of a table with these rows.
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

impl Row {
    fn gain(&self) -> Option<Mean> {
        self.against?.gain
    }
}

/// For a terminal.
pub(crate) fn table(rows: &[Row]) -> String {
    let profile = profile(rows.iter().map(|row| row.profile.as_deref()));
    let over = profile.map(|profile| format!("{profile}\n")).unwrap_or_default();
    let all = columns(rows);
    let columns = || all.iter().filter_map(|column| Some((column, column.terminal.as_ref()?)));
    let heading = columns().map(|(_, terminal)| terminal.name.to_owned()).collect::<Vec<_>>();
    let rows =
        rows.iter().map(|row| columns().map(|(column, terminal)| column.text(terminal, row)).collect());
    over + &aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>())
}

/// The same as comma-separated values (RFC 4180), with three digits more. What a cell of the table says of transfers that were
/// exact has two columns here.
pub(crate) fn csv(rows: &[Row]) -> String {
    let columns = columns(rows);
    let headings = columns.iter().flat_map(|column| match column.csv {
        "sender" => vec!["sender", "profile"],
        "exact" => vec!["exact", "transfers"],
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
    lines
        .iter()
        .map(|cells| cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n")
        .collect()
}

/// With so many digits behind the point, as far as they are not zero.
fn exact(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// In quotes where a spreadsheet needs them.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use airtcp_numbers::verdict::{Comparison, Verdict};

    use super::super::verdicts;
    use super::*;

    #[test]
    fn a_terminal_has_signs_and_units_where_a_page_has_headings() {
        let mean = |mean, half_width| Some(Mean { mean, half_width, samples: 3 });
        let none = Row {
            sender: "newreno".to_owned(),
            profile: Some("linux".to_owned()),
            failed: 3,
            ..Row::default()
        };
        let some = Row {
            sender: "linux:cubic".to_owned(),
            profile: None,
            succeeded: 2,
            failed: 1,
            kbit_per_s: mean(310.25, Some(12.34)),
            median_kbit_per_s: Some(299.96),
            against: Some(Comparison { gain: mean(0.2345, Some(0.123)), verdict: Verdict::Better }),
            fast: Some(12.0),
            timeout: Some(0.0),
            probe: Some(0.0),
            timeouts: Some(0.0),
            spurious: Some(0.0),
            idle_seconds: mean(1.0 / 3.0, None),
            ..none.clone()
        };
        let expected = "\
recipes with profile linux
sender       kbit/s: mean          median     gain            segments resent: fast  timeout  probe  timeouts: all  spurious    idle  exact transfers
newreno                 -               -                                         -        -      -              -         -       -              0/3
linux:cubic         310.2  ± 12.3   300.0  +23.4 %  ± 12.3 %                   12.0      0.0    0.0            0.0       0.0  0.33 s              2/3
";
        assert_eq!(table(&[none.clone(), some.clone()]), expected);
        let rows = [none.clone(), some.clone()];
        let cells =
            |row| columns(&rows).iter().map(|column| column.cell(row).text).collect::<Vec<_>>().join(" ");
        assert_eq!(cells(&none), "newreno – – – – –  – – – – – – 0/3");
        assert_eq!(
            cells(&some),
            "linux:cubic 310.2 12.3 300.0 +23.4 12.3 better 12.0 0.0 0.0 0.0 0.0 0.33 2/3"
        );
        assert_eq!(
            verdicts(&[none.clone(), some.clone()], "newreno"),
            "linux:cubic is better than newreno: +23.4 ± 12.3 % in 3 pairs\n"
        );
        let competes = Row {
            sender: "x,\"y\"".to_owned(),
            beside_kbit_per_s: mean(100.0, None),
            share: mean(0.25, Some(0.125)),
            fast: None,
            ..some
        };
        let text = table(&[none.clone(), competes.clone()]);
        let words = |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1)[1..7], ["kbit/s:", "mean", "median", "beside", "share", "gain"]);
        assert_eq!(words(3)[1..7], ["310.2", "±", "12.3", "300.0", "100.0", "25.0"]);
        let expected = "\
sender,profile,kbit/s,kbit/s ±,median kbit/s,beside kbit/s,share %,share ± %,gain %,gain ± %,verdict,resent segments: fast,resent segments: timeout,resent segments: probe,timeouts,spurious,idle s,exact,transfers
newreno,linux,,,,,,,,,,,,,,,,0,3
\"x,\"\"y\"\"\",,310.25,12.34,299.96,100,25,12.5,23.45,12.3,better,,0,0,0,0,0.33333,2,3
";
        assert_eq!(csv(&[none, competes]), expected);
    }
}
