//! A schedule file: a rate, a delay or both that change over time, with one line per change.
//!
//! The first line names the columns in any order: `time,rate,delay`, `time,rate` or `time,delay`. A column
//! name may include a unit (`time s,rate kbit`); otherwise each cell of the column has its own. A line stays
//! in effect until the time of the next one.

use std::path::Path;
use std::sync::Arc;

use airwire::time::{Duration, Instant};
use airwire::units::Rate;

use crate::stages::file::{self, FileError};

/// The content of a schedule file, and what happens after its last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    lines: Arc<[Line]>,
    has_rate: bool,
    has_delay: bool,
    /// The schedule repeats after this time, in nanoseconds. `None`: the last line stays in effect.
    period: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    at: u64,
    /// `None`: the transmitter is stopped.
    rate: Option<Rate>,
    delay: Duration,
}

/// Minimum time between changes. The link needs a deadline for each change, so denser ones would keep it
/// busy.
const MIN_SPACING: Duration = Duration::from_micros(100);
const COLUMNS: &str = "the first line names the columns: `time`, and `rate`, `delay` or both, such as \
                       `time s,rate kbit,delay ms`";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Time,
    Rate,
    Delay,
}

impl Schedule {
    /// Loads a schedule file that a scenario names.
    pub fn load(path: &Path, is_looped: bool) -> Result<Self, FileError> {
        Self::parse(&file::read(path)?, is_looped)
    }

    /// Parses the text of a schedule file.
    pub fn parse(text: &str, is_looped: bool) -> Result<Self, FileError> {
        let mut rows = text.lines().zip(1..);
        let columns =
            rows.next().map_or_else(|| Err(COLUMNS.to_owned()), |(header, _)| parse_columns(header));
        let columns = columns.map_err(|wrong| FileError::Line { line: 1, wrong })?;
        let mut lines: Vec<Line> = Vec::new();
        let mut last = 1;
        for (row, line) in rows {
            let parsed = parse_line(row, &columns).and_then(|line| check_order(lines.last(), line));
            lines.push(parsed.map_err(|wrong| FileError::Line { line, wrong })?);
            last = line;
        }
        let has = |quantity| columns.iter().any(|(column, _)| *column == quantity);
        let mut schedule = Self {
            lines: Arc::default(),
            has_rate: has(Quantity::Rate),
            has_delay: has(Quantity::Delay),
            period: None,
        };
        let wrong = |wrong: &str| Err(FileError::Line { line: last, wrong: wrong.to_owned() });
        if is_looped {
            // The last line only sets the period.
            schedule.period = lines.pop().map(|line| line.at);
        }
        if lines.is_empty() {
            return wrong(if is_looped {
                "a schedule with `loop = true` needs at least two lines: the last one sets the period"
            } else {
                "the schedule is empty: write a line for each change, the first one at the time 0"
            });
        }
        if schedule.has_rate && lines.iter().all(|line| line.rate.is_none()) {
            return wrong("the rate is always 0: no packet would ever be sent");
        }
        schedule.lines = lines.into();
        Ok(schedule)
    }

    /// Returns whether the schedule sets the rate.
    pub fn has_rate(&self) -> bool {
        self.has_rate
    }

    /// Returns whether the schedule sets the delay.
    pub fn has_delay(&self) -> bool {
        self.has_delay
    }

    /// Returns the start of the current period in nanoseconds and the index of the line in effect.
    fn line_at(&self, now: Instant) -> (u64, usize) {
        let now = now.as_nanos();
        let into = self.period.map_or(now, |period| now % period);
        // The first line is at time 0, so there is always a line in effect.
        (now - into, self.lines.partition_point(|line| line.at <= into) - 1)
    }

    /// Returns the rate in effect at `now`. `None`: the transmitter is stopped.
    pub(super) fn rate_at(&self, now: Instant) -> Option<Rate> {
        self.lines[self.line_at(now).1].rate
    }

    pub(super) fn delay_at(&self, now: Instant) -> Duration {
        self.lines[self.line_at(now).1].delay
    }

    /// Returns the time of the next line after `now`.
    pub(super) fn next_after(&self, now: Instant) -> Option<Instant> {
        let (period_start, index) = self.line_at(now);
        let next = self.lines.get(index + 1).map(|line| line.at).or(self.period)?;
        Some(Instant::from_nanos(period_start.saturating_add(next)))
    }
}

/// Parses the column names and their units.
fn parse_columns(header: &str) -> Result<Vec<(Quantity, &str)>, String> {
    let mut columns = Vec::new();
    for name in header.split(',') {
        let (name, unit) = name.trim().split_once(' ').unwrap_or_else(|| (name.trim(), ""));
        let unit = unit.trim();
        let quantity = match name {
            "time" => Quantity::Time,
            "rate" => Quantity::Rate,
            "delay" => Quantity::Delay,
            _ => return Err(format!("unknown column: {COLUMNS}")),
        };
        let example = format!("1{unit}");
        let is_unit = match quantity {
            Quantity::Rate => example.parse::<Rate>().is_ok(),
            Quantity::Time | Quantity::Delay => example.parse::<Duration>().is_ok(),
        };
        if !unit.is_empty() && !is_unit {
            let units = if quantity == Quantity::Rate {
                "bit, kbit, Mbit or Gbit"
            } else {
                "ns, us, ms, s, min or h"
            };
            return Err(format!("the column `{name}` has an unknown unit: write {units}"));
        }
        if columns.iter().any(|(other, _)| *other == quantity) {
            return Err(format!("two columns are called `{name}`: {COLUMNS}"));
        }
        columns.push((quantity, unit));
    }
    let is_complete = columns.len() > 1 && columns.iter().any(|(quantity, _)| *quantity == Quantity::Time);
    if is_complete { Ok(columns) } else { Err(format!("columns are missing: {COLUMNS}")) }
}

/// Parses a line. Errors do not quote it: a scenario may name any file, and its author may see the errors.
fn parse_line(row: &str, columns: &[(Quantity, &str)]) -> Result<Line, String> {
    let cells = row.split(',').count();
    if row.trim().is_empty() {
        return Err("the line is empty: write a cell for each column".to_owned());
    }
    if cells != columns.len() {
        return Err(format!("the line has {cells} cells, but there are {} columns", columns.len()));
    }
    let mut line = Line { at: 0, rate: None, delay: Duration::ZERO };
    for (cell, (quantity, unit)) in row.split(',').zip(columns) {
        let text = format!("{}{unit}", cell.trim());
        let time = |name| {
            let example = if unit.is_empty() {
                "a number and its unit, such as 150ms"
            } else {
                "a number of 0 or more"
            };
            text.parse::<Duration>().map_err(|_| format!("the {name} is invalid: write {example}"))
        };
        match quantity {
            Quantity::Time => line.at = time("time")?.as_nanos(),
            Quantity::Delay => line.delay = time("delay")?,
            Quantity::Rate => line.rate = parse_rate(&text)?,
        }
    }
    Ok(line)
}

/// Parses a rate. 0 in any unit means that the transmitter is stopped (`None`).
fn parse_rate(text: &str) -> Result<Option<Rate>, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '/' || c == ' ');
    let has_unit = number.len() < text.len();
    match text.parse() {
        Ok(rate) => Ok(Some(rate)),
        Err(_) if has_unit && number.parse() == Ok(0.0) => Ok(None),
        Err(_) => Err("the rate is invalid: write a number and a unit, such as 384kbit, or only a number if the first line \
                       names the unit"
            .to_owned()),
    }
}

/// Checks that a line may follow the previous one.
fn check_order(before: Option<&Line>, line: Line) -> Result<Line, String> {
    match before {
        None if line.at > 0 => Err("the first line must be at the time 0".to_owned()),
        Some(before) if line.at <= before.at => {
            Err("the time is not later than on the line before: times count from the start and increase"
                .to_owned())
        }
        Some(before) if line.at - before.at < MIN_SPACING.as_nanos() => {
            Err(format!("the time is less than {MIN_SPACING} after the line before"))
        }
        _ => Ok(line),
    }
}
