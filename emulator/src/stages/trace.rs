//! Delivery opportunities as mahimahi records them: one time in milliseconds per line.
//!
//! As mm-link reads it: each line is the chance to deliver 1504 octets at that time; several lines may name the
//! same time; the last time is also the period after which the trace starts over. A packet costs its length and
//! the 4 octets of a TUN device's own header, so one of 1500 octets takes exactly one opportunity. A packet that
//! is longer than what an opportunity has left takes the rest of it and goes on with the next; what is left when
//! nothing waits is lost.

use std::path::Path;
use std::sync::Arc;

use airfiles::{By, limits};
use airwire::time::Instant;

/// Octets that one opportunity delivers.
pub const OPPORTUNITY: usize = 1504;
/// What each packet costs beyond its own length.
pub const TUN_HEADER: usize = 4;

/// The times of one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    millis: Arc<[u64]>,
}

/// Why a file is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file, and what the operating system said.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// A line that is not a time, or goes back.
    #[error("line {line}: {wrong}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        wrong: String,
    },
    /// There are no lines.
    #[error("the trace is empty: write the time of each delivery opportunity in milliseconds, one per line")]
    Empty,
    /// All times are 0.
    #[error(
        "line {line}: the last time is 0, but it is also the period after which the trace repeats: \
             write at least one time after 0"
    )]
    NoPeriod {
        /// The last one, counted from 1.
        line: usize,
    },
}

/// More than a century: a number beyond it was not meant.
const LATEST: u64 = 4_000_000_000_000;

impl Trace {
    /// Reads a trace file, which a scenario names. The error does not repeat the file's name, except where it cannot be
    /// read, and nothing of what is in it.
    pub fn load(file: &Path) -> Result<Self, TraceError> {
        let text = airfiles::read(file, By::File, limits::TRACE);
        let text = text.map_err(|error| TraceError::Unreadable(file.display().to_string(), error))?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// Reads the text of a trace file.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut millis = Vec::new();
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            let wrong = |wrong| TraceError::Line { line, wrong };
            let at: u64 = match content.trim().parse() {
                Ok(at) if at <= LATEST => at,
                _ => return Err(wrong(misread(content.trim()))),
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
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoPeriod { line: millis.len() }),
            Some(_) => Ok(Self { millis: millis.into() }),
        }
    }

    /// Opportunities in one period.
    pub fn len(&self) -> usize {
        self.millis.len()
    }

    /// Never: a trace has at least one opportunity.
    pub fn is_empty(&self) -> bool {
        self.millis.is_empty()
    }

    /// After this time the trace starts over.
    pub fn period_millis(&self) -> u64 {
        self.millis.last().copied().unwrap_or_default()
    }
}

/// A scenario may name any file, and whoever wrote it may see the error: what stands in the line is not repeated.
fn misread(content: &str) -> String {
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

/// The next opportunity not used yet.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    trace: Trace,
    /// When the current period began.
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

    /// Lets everything go by that is not after `now`.
    pub(super) fn skip_through(&mut self, now: Instant) {
        if self.next() > now {
            return;
        }
        let now = now.as_millis();
        let period = self.trace.period_millis();
        // The last opportunity of a period and an opportunity at 0 of the next one fall together, hence one period
        // less than it seems.
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
    fn a_bad_line_is_named_with_what_was_meant() {
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
            // It may be any file: a scenario names it.
            assert!(!error.contains("secret") && !error.contains("1500"), "{error}");
        }
    }

    #[test]
    fn a_trace_without_a_period_or_without_a_line_is_refused() {
        assert!(Trace::parse("0\n0\n").unwrap_err().to_string().starts_with("line 2: the last time is 0"));
        assert!(matches!(Trace::parse(""), Err(TraceError::Empty)));
        let missing = Trace::load(Path::new("/nonexistent/trace")).unwrap_err().to_string();
        assert!(missing.starts_with("/nonexistent/trace cannot be read"), "{missing}");
    }

    #[test]
    fn skipping_gets_to_the_same_place_as_using_one_after_the_other() {
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
