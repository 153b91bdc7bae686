//! A rate, a delay or both that change with time, as a file has them: a line for each change.
//!
//! The first line names the columns, `time,rate,delay`, `time,rate` or `time,delay`, in any order, each with a unit
//! (`time s,rate kbit`) or without one; then the cells have theirs. What a line says holds until the next one.

use std::path::Path;
use std::sync::Arc;

use airfiles::{By, limits};
use airwire::time::{Duration, Instant};
use airwire::units::Rate;

/// What a file says, with what comes after its last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    lines: Arc<[Line]>,
    has_rate: bool,
    has_delay: bool,
    /// It begins again after this time. `None`: the last line holds for ever.
    period: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    at: u64,
    /// `None`: nothing is sent.
    rate: Option<Rate>,
    delay: Duration,
}

/// Why a file is not such a schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The file, and what the operating system said.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// A line that does not say what it should.
    #[error("line {line}: {wrong}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        wrong: String,
    },
}

/// A change takes a deadline of the link: with more of them it would do nothing else.
const CLOSEST: Duration = Duration::from_micros(100);
const COLUMNS: &str = "the first line names the columns: `time`, and `rate`, `delay` or both, such as \
                       `time s,rate kbit,delay ms`";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Time,
    Rate,
    Delay,
}

impl Schedule {
    /// Reads a file, which a scenario names. The error does not repeat the file's name, except where it cannot be read,
    /// and nothing of what is in it.
    pub fn load(file: &Path, is_looped: bool) -> Result<Self, ScheduleError> {
        let text = airfiles::read(file, By::File, limits::TRACE);
        let text = text.map_err(|error| ScheduleError::Unreadable(file.display().to_string(), error))?;
        Self::parse(&String::from_utf8_lossy(&text), is_looped)
    }

    /// Reads the text of such a file.
    pub fn parse(text: &str, is_looped: bool) -> Result<Self, ScheduleError> {
        let mut rows = text.lines().zip(1..);
        let columns = rows.next().map_or_else(|| Err(COLUMNS.to_owned()), |(header, _)| columns(header));
        let columns = columns.map_err(|wrong| ScheduleError::Line { line: 1, wrong })?;
        let mut lines: Vec<Line> = Vec::new();
        let mut last = 1;
        for (row, line) in rows {
            let read = read(row, &columns).and_then(|read| follows(lines.last(), read));
            lines.push(read.map_err(|wrong| ScheduleError::Line { line, wrong })?);
            last = line;
        }
        let has = |quantity| columns.iter().any(|(column, _)| *column == quantity);
        let mut schedule = Self {
            lines: Arc::default(),
            has_rate: has(Quantity::Rate),
            has_delay: has(Quantity::Delay),
            period: None,
        };
        let wrong = |wrong: &str| Err(ScheduleError::Line { line: last, wrong: wrong.to_owned() });
        if is_looped {
            // It only says when the first one holds again.
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

    /// It says how fast.
    pub fn has_rate(&self) -> bool {
        self.has_rate
    }

    /// It says how far.
    pub fn has_delay(&self) -> bool {
        self.has_delay
    }

    /// When the present lap began, and the line that holds.
    fn place(&self, now: Instant) -> (u64, usize) {
        let now = now.as_nanos();
        let into = self.period.map_or(now, |period| now % period);
        // The first line is at 0.
        (now - into, self.lines.partition_point(|line| line.at <= into) - 1)
    }

    /// `None`: nothing is sent.
    pub(super) fn rate_at(&self, now: Instant) -> Option<Rate> {
        self.lines[self.place(now).1].rate
    }

    pub(super) fn delay_at(&self, now: Instant) -> Duration {
        self.lines[self.place(now).1].delay
    }

    /// When another line holds.
    pub(super) fn next_after(&self, now: Instant) -> Option<Instant> {
        let (lap, index) = self.place(now);
        let next = self.lines.get(index + 1).map(|line| line.at).or(self.period)?;
        Some(Instant::from_nanos(lap.saturating_add(next)))
    }
}

/// The columns in their order, each with its unit.
fn columns(header: &str) -> Result<Vec<(Quantity, &str)>, String> {
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
        let one = format!("1{unit}");
        let is_unit = match quantity {
            Quantity::Rate => one.parse::<Rate>().is_ok(),
            Quantity::Time | Quantity::Delay => one.parse::<Duration>().is_ok(),
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
    let is_whole = columns.len() > 1 && columns.iter().any(|(quantity, _)| *quantity == Quantity::Time);
    if is_whole { Ok(columns) } else { Err(format!("columns are missing: {COLUMNS}")) }
}

/// A scenario may name any file, and whoever wrote it may see the error: what stands in the line is not repeated.
fn read(row: &str, columns: &[(Quantity, &str)]) -> Result<Line, String> {
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
            Quantity::Rate => line.rate = rate(&text)?,
        }
    }
    Ok(line)
}

/// 0 of any unit is nothing.
fn rate(text: &str) -> Result<Option<Rate>, String> {
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

/// Whether the line may stand behind the one before.
fn follows(before: Option<&Line>, line: Line) -> Result<Line, String> {
    match before {
        None if line.at > 0 => Err("the first line must be at the time 0".to_owned()),
        Some(before) if line.at <= before.at => {
            Err("the time is not later than on the line before: times count from the start and increase"
                .to_owned())
        }
        Some(before) if line.at - before.at < CLOSEST.as_nanos() => {
            Err(format!("the time is less than {CLOSEST} after the line before"))
        }
        _ => Ok(line),
    }
}
