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

/// Formats a measured time. A time of 0 or `None` is shorter than a step of the capture's clock.
pub(crate) struct MeasuredTime {
    pub(crate) seconds: Option<f64>,
    pub(crate) resolution: Option<f64>,
}

impl fmt::Display for MeasuredTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.seconds.filter(|seconds| *seconds > 0.0), self.resolution) {
            (Some(seconds), _) => Seconds(seconds).fmt(f),
            (None, Some(resolution)) => write!(f, "below {}", Seconds(resolution.max(1e-6))),
            (None, None) => f.write_str("below the resolution of the clock"),
        }
    }
}
