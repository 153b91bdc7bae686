//! Progress messages of commands that take minutes.

use airwire::time::Duration;

use super::console::{self, LiveLine};

/// How progress is shown.
pub(crate) enum ProgressDisplay {
    Quiet,
    Terminal(LiveLine),
    /// A line at long intervals, for a log.
    Lines,
}

impl ProgressDisplay {
    pub(crate) fn new(quiet: bool) -> Self {
        let line = LiveLine::new(!quiet);
        match quiet {
            true => Self::Quiet,
            false if line.is_shown() => Self::Terminal(line),
            false => Self::Lines,
        }
    }

    /// Returns the interval between messages, or `None` if nothing is shown.
    pub(crate) fn interval(&self) -> Option<Duration> {
        match self {
            Self::Quiet => None,
            Self::Terminal(_) => Some(Duration::from_millis(200)),
            Self::Lines => Some(Duration::from_secs(30)),
        }
    }

    pub(crate) fn show(&self, text: &str) {
        match self {
            Self::Terminal(line) => line.show(text),
            Self::Lines => console::print_status(text),
            Self::Quiet => {}
        }
    }

    pub(crate) fn clear(&self) {
        if let Self::Terminal(line) = self {
            line.clear();
        }
    }
}

/// Formats a time as `1 h 05 min`, `3 min 07 s` or `12 s`.
pub(crate) fn format_duration(time: Duration) -> String {
    match time.as_millis().div_ceil(1000) {
        s if s >= 3600 => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
        s if s >= 60 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_words() {
        let words = |seconds| format_duration(Duration::from_secs(seconds));
        assert_eq!(words(12), "12 s");
        assert_eq!(words(187), "3 min 07 s");
        assert_eq!(words(3_900), "1 h 05 min");
    }
}
