//! Time limits in Slurm's format.

use std::fmt;
use std::str::FromStr;

/// A time limit, written as `90` (minutes), `90:30`, `1:30:00`, `2-12`, `2-12:30` or `2-12:30:00`: days,
/// hours, minutes and seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    seconds: u64,
}

impl Limit {
    /// Returns the limit for a job that takes this many seconds here, in whole minutes. It is generous,
    /// because other machines may be slower or busy.
    pub(super) fn for_job(seconds: f64) -> Self {
        let minutes = (4.0 * seconds / 60.0).ceil().max(10.0);
        Self { seconds: 60 * minutes as u64 }
    }

    /// Returns the limit in seconds, or `None` if the time is not limited.
    pub(super) fn seconds(self) -> Option<f64> {
        (self.seconds > 0).then_some(self.seconds as f64)
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a Slurm time such as 90 (minutes), 1:30:00 or 2-12:00");
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (Some(days), rest),
            None => (None, text),
        };
        let number = |text: &str| -> Result<u64, String> {
            let digits = (1..=6).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit());
            if digits { text.parse().map_err(|_| wrong()) } else { Err(wrong()) }
        };
        let fields = rest.split(':').map(number).collect::<Result<Vec<_>, _>>()?;
        let seconds = match (days, fields.as_slice()) {
            (None, [minutes]) => 60 * minutes,
            (None, [minutes, seconds]) => 60 * minutes + seconds,
            (_, [hours, minutes, seconds]) => 3600 * hours + 60 * minutes + seconds,
            (Some(_), [hours]) => 3600 * hours,
            (Some(_), [hours, minutes]) => 3600 * hours + 60 * minutes,
            _ => return Err(wrong()),
        };
        Ok(Self { seconds: seconds + 86_400 * days.map_or(Ok(0), number)? })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds } = *self;
        if seconds % 60 == 0 {
            return write!(f, "{}", seconds / 60);
        }
        write!(f, "{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slurm_time_format_is_parsed() {
        for (text, seconds, written) in [
            ("90", 5400, "90"),
            ("90:30", 5430, "1:30:30"),
            ("1:30:00", 5400, "90"),
            ("2-12", 216_000, "3600"),
            ("2-12:30", 217_800, "3630"),
            ("2-12:30:05", 217_805, "60:30:05"),
        ] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!((limit.seconds, limit.to_string().as_str()), (seconds, written), "{text}");
            assert_eq!(written.parse::<Limit>().unwrap(), limit);
        }
        assert_eq!("0".parse::<Limit>().unwrap().seconds(), None, "Slurm's notation for no limit");
        for text in
            ["", ":", "::", "-", "1:2:3:4", "1-", "-1", "1h", "1 0", "1-2-3", "1-1:2:3:4", "+1", "1234567"]
        {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }

    #[test]
    fn job_limit_quadruples_estimate_with_ten_minute_minimum() {
        for (seconds, minutes) in [(0.1, "10"), (150.0, "10"), (151.0, "11"), (300.0, "20"), (3600.0, "240")]
        {
            assert_eq!(Limit::for_job(seconds).to_string(), minutes);
        }
    }
}
