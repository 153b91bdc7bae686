//! Delivery opportunities in mahimahi's format: one time in milliseconds per line.
//!
//! The file is read as mm-link reads it. Each line is an opportunity to deliver 1504 bytes at that time, and
//! several lines may have the same time. The last time is also the period after which the trace repeats. A
//! packet needs its length and the 4 bytes of a TUN device's header, so a packet of 1500 bytes takes exactly
//! one opportunity. A packet that does not fit uses the rest of an opportunity and continues in the next one.
//! Capacity that is left when no packet waits is lost.

use std::path::Path;
use std::sync::Arc;

use airwire::time::Instant;

use super::file::{self, FileError};

/// Number of bytes that one opportunity delivers.
pub const OPPORTUNITY: usize = 1504;
/// Number of bytes that each packet needs in addition to its length.
pub const TUN_HEADER: usize = 4;

/// A trace: the times of one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    millis: Arc<[u64]>,
}

const EMPTY: &str =
    "the trace is empty: write the time of each delivery opportunity in milliseconds, one per line";
const NO_PERIOD: &str = "the last time is 0, but it is also the period after which the trace repeats: \
                         write at least one time after 0";
/// More than a century: larger numbers must be mistakes.
const LATEST: u64 = 4_000_000_000_000;

impl Trace {
    /// Loads a trace file that a scenario names.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        Self::parse(&file::read(path)?)
    }

    /// Parses the text of a trace file.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let mut millis = Vec::new();
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            let wrong = |wrong| FileError::Line { line, wrong };
            let at: u64 = match content.trim().parse() {
                Ok(at) if at <= LATEST => at,
                _ => return Err(wrong(describe_invalid(content.trim()))),
            };
            if millis.last().is_some_and(|before| *before > at) {
                return Err(wrong(
                    "the time is earlier than on the line before: times count from the start of the trace and do not decrease"
                        .to_owned(),
                ));
            }
            millis.push(at);
        }
        match millis.last() {
            None => Err(FileError::Content(EMPTY.to_owned())),
            Some(0) => Err(FileError::Content(format!("line {}: {NO_PERIOD}", millis.len()))),
            Some(_) => Ok(Self { millis: millis.into() }),
        }
    }

    /// Returns the number of opportunities in one period.
    pub fn len(&self) -> usize {
        self.millis.len()
    }

    /// Returns `false`, because a trace has at least one opportunity.
    pub fn is_empty(&self) -> bool {
        self.millis.is_empty()
    }

    /// Returns the period after which the trace repeats, in milliseconds.
    pub fn period_millis(&self) -> u64 {
        self.millis.last().copied().unwrap_or_default()
    }
}

/// Describes an invalid line without quoting it: a scenario may name any file, and its author may see the
/// errors.
fn describe_invalid(content: &str) -> String {
    const WANTED: &str = "each line is the time of one delivery opportunity in whole milliseconds";
    if content.is_empty() {
        return format!("the line is empty: {WANTED}");
    }
    let words = content.split_whitespace().count();
    if words > 1 {
        return format!("the line has {words} columns: {WANTED}");
    }
    match content.parse::<f64>() {
        Ok(number) if number.is_finite() && number.fract() != 0.0 => {
            format!("the time has a fraction: {WANTED} (files with rates or seconds have another format)")
        }
        Ok(number) if number > LATEST as f64 => format!("the time is more than a century: {WANTED}"),
        Ok(number) if number < 0.0 => format!("the time is negative: {WANTED}"),
        _ => format!("the line is not a time: {WANTED}"),
    }
}

/// The next unused opportunity.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    trace: Trace,
    /// Start of the current period in milliseconds.
    base: u64,
    index: usize,
}

impl Cursor {
    pub(super) fn new(trace: Trace) -> Self {
        Self { trace, base: 0, index: 0 }
    }

    pub(super) fn next(&self) -> Instant {
        Instant::from_millis(self.base + self.trace.millis[self.index])
    }

    pub(super) fn advance(&mut self) {
        self.index += 1;
        if self.index == self.trace.len() {
            self.index = 0;
            self.base += self.trace.period_millis();
        }
    }

    /// Skips all opportunities up to and including `now`.
    pub(super) fn skip_through(&mut self, now: Instant) {
        if self.next() > now {
            return;
        }
        let now = now.as_millis();
        let period = self.trace.period_millis();
        // The last opportunity of a period coincides with one at 0 of the next period, so skip one period
        // less.
        let periods = (now.saturating_sub(self.base) / period).saturating_sub(1);
        if periods > 0 {
            self.base += periods * period;
            self.index = 0;
        }
        while self.base + self.trace.millis[self.index] <= now {
            let passed = self.trace.millis.partition_point(|at| self.base + at <= now);
            self.index = passed.max(self.index + 1) - 1;
            self.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_error_names_line_without_quoting_it() {
        for (text, line, hint) in [
            ("0\n1\n\n3\n", 3, "empty"),
            ("1\n2.5\n", 2, "fraction"),
            ("12 1500\n", 1, "2 columns"),
            ("5\n4\n", 2, "earlier than on the line before"),
            ("-1\n", 1, "negative"),
            ("1\nroot:secret\n", 2, "the line is not a time"),
            ("1\nroot secret\n", 2, "2 columns"),
            ("99999999999999999999\n", 1, "more than a century"),
            ("inf\n", 1, "more than a century"),
        ] {
            let error = Trace::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}:")) && error.contains(hint), "{error}");
            // A scenario may name any file, so errors must not quote its content.
            assert!(!error.contains("secret") && !error.contains("1500"), "{error}");
        }
    }

    #[test]
    fn empty_zero_length_or_missing_trace_is_rejected() {
        assert!(Trace::parse("0\n0\n").unwrap_err().to_string().starts_with("line 2: the last time is 0"));
        assert!(Trace::parse("").unwrap_err().to_string().starts_with("the trace is empty"));
        let missing = Trace::load(Path::new("/nonexistent/trace")).unwrap_err().to_string();
        assert!(missing.starts_with("/nonexistent/trace cannot be read"), "{missing}");
    }

    #[test]
    fn skipping_equals_advancing_step_by_step() {
        let trace = Trace::parse("0\n3\n3\n7\n10\n").unwrap();
        for now in 0..65 {
            let now = Instant::from_millis(now);
            let (mut one_by_one, mut at_once) = (Cursor::new(trace.clone()), Cursor::new(trace.clone()));
            while one_by_one.next() <= now {
                one_by_one.advance();
            }
            at_once.skip_through(now);
            assert_eq!((at_once.base, at_once.index), (one_by_one.base, one_by_one.index), "at {now}");
            assert!(at_once.next() > now);
        }
    }
}
