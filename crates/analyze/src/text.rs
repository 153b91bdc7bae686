//! Formats counts and times.

use std::fmt;

/// Formats the counts that are not 0: `3 fast, 2 tail`.
pub(crate) fn list(counts: &[(u64, &str)]) -> String {
    let some: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    some.join(", ")
}

/// Formats a time in s, ms or µs.
pub(crate) struct Seconds(pub(crate) f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds if seconds >= 1.0 => write!(f, "{seconds:.2} s"),
            seconds if seconds >= 1e-3 => write!(f, "{:.1} ms", seconds * 1e3),
            seconds => write!(f, "{:.0} µs", seconds * 1e6),
        }
    }
}
