//! Rates, sizes, probabilities and times as people write them: "384kbit", "64kB", "10%", "150ms".

use std::fmt;
use std::str::FromStr;

use crate::time::Duration;

/// A rate in bits per second: "384kbit", "10Mbit", "1.5Gbit" or "64000bit", each with or without "/s".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

/// A size in bytes: "64kB", "1500", "2M" (powers of ten) or "64KiB" (powers of two). The B is optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

/// A probability from 0 to 1: "10%", "1e-3" or 0.02.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// The error for text that is not a valid quantity. The message shows the expected form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is {what}")]
pub struct UnitError {
    text: String,
    what: &'static str,
}

const RATE: &str = "not a rate: write a number and bit, kbit, Mbit or Gbit, such as \"384kbit\"";
const SIZE: &str =
    "not a size: write a number and k, M, G, Ki, Mi or Gi, with or without a B, such as \"64kB\"";
const TOO_LARGE: &str = "too large: a size is 1000G at most";
const PROBABILITY: &str = "not a probability: write a percentage such as \"10%\", or a number from 0 to 1";
const TIME: &str = "not a length of time: write a number and ns, us, ms, s, m, min or h, such as \"150ms\"";
const TOO_LONG: &str = "too long: 8760h, a year, is the longest time";

/// Longest accepted time in nanoseconds: one year. It is far below the values at which arithmetic saturates.
const LONGEST: f64 = 8760.0 * 3600e9;

impl Rate {
    /// Returns a rate of `bits` per second.
    ///
    /// # Panics
    /// If `bits` is 0, because such a link could never send anything.
    pub const fn bits_per_second(bits: u64) -> Self {
        assert!(bits > 0, "a rate of 0");
        Self(bits)
    }

    /// Returns the rate in bits per second, which is never 0.
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the time that this number of bytes takes at this rate, rounded to the nanosecond.
    pub const fn time_for(self, bytes: usize) -> Duration {
        let nanos = (bytes as u128 * 8 * 1_000_000_000 + self.0 as u128 / 2) / self.0 as u128;
        Duration::from_nanos(nanos as u64)
    }
}

impl Size {
    /// Returns a size of this number of bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the size in bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl Probability {
    /// The probability of an impossible event.
    pub const ZERO: Self = Self(0.0);

    /// Returns a probability.
    ///
    /// # Panics
    /// If `value` is not between 0 and 1.
    pub const fn new(value: f64) -> Self {
        assert!(value >= 0.0 && value <= 1.0, "a probability outside of 0 to 1");
        Self(value)
    }

    /// Returns the probability as a number from 0 to 1.
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// Returns the number multiplied by the factor of its unit. Returns `None` if the number is invalid or
/// negative, or the unit is unknown.
fn split(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E' || c == '%')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = [("bit", 1.0), ("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)];
        // The tables print rates with this suffix.
        let quantity = text.trim_end().strip_suffix("/s").unwrap_or(text);
        match split(quantity, &units).map(f64::round) {
            Some(bits) if (1.0..=1e12).contains(&bits) => Ok(Self(bits as u64)),
            _ => Err(UnitError { text: text.to_owned(), what: RATE }),
        }
    }
}

impl FromStr for Size {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = [
            ("", 1.0),
            ("k", 1e3),
            ("K", 1e3),
            ("M", 1e6),
            ("G", 1e9),
            ("Ki", 1024.0),
            ("Mi", 1_048_576.0),
            ("Gi", 1_073_741_824.0),
        ];
        let text = text.trim();
        match split(text.strip_suffix('B').unwrap_or(text), &units) {
            Some(bytes) if bytes > 1e12 => Err(UnitError { text: text.to_owned(), what: TOO_LARGE }),
            // Fractions of a byte are typing errors. The tolerance allows for rounding: 1.1 × 1000 exceeds
            // 1100.
            Some(bytes) if (bytes - bytes.round()).abs() <= bytes * 1e-12 => Ok(Self(bytes.round() as u64)),
            _ => Err(UnitError { text: text.to_owned(), what: SIZE }),
        }
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match split(text, &[("%", 0.01), ("", 1.0)]) {
            Some(value) if (0.0..=1.0).contains(&value) => Ok(Self(value)),
            _ => Err(UnitError { text: text.to_owned(), what: PROBABILITY }),
        }
    }
}

impl FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units =
            [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("min", 60e9), ("h", 3600e9)];
        match split(text, &units).map(f64::round) {
            Some(nanos) if nanos <= LONGEST => Ok(Self::from_nanos(nanos as u64)),
            Some(_) => Err(UnitError { text: text.to_owned(), what: TOO_LONG }),
            None => Err(UnitError { text: text.to_owned(), what: TIME }),
        }
    }
}

/// Parses a time from a command line: as in a scenario file, or a bare number of seconds.
pub fn typed_time(text: &str) -> Result<Duration, UnitError> {
    match split(text, &[("", 1e9)]).map(f64::round) {
        Some(_) => format!("{}s", text.trim()).parse(),
        None => text.parse(),
    }
    .map_err(|UnitError { what, .. }| UnitError { text: text.to_owned(), what })
}

/// Writes `value` in the largest unit that does not need a fraction.
fn exact(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let (unit, factor) =
        units.iter().find(|(_, factor)| value.is_multiple_of(*factor)).expect("the last factor is 1");
    f.pad(&format!("{}{unit}", value / factor))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exact(f, self.0, &[("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)])
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("0B"),
            bytes => exact(f, bytes, &[("MB", 1_000_000), ("kB", 1_000), ("B", 1)]),
        }
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{}%", self.0 * 100.0);
        // Write a percentage only if it parses back to the same number.
        if percent.len() <= 8 && percent.parse() == Ok(*self) {
            f.pad(&percent)
        } else {
            f.pad(&format!("{:e}", self.0))
        }
    }
}

/// Formats a time exactly, for files. `Duration`'s `Display` rounds.
pub fn exact_time(time: Duration) -> String {
    struct Exact(u64);
    impl fmt::Display for Exact {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {
                0 => f.pad("0ms"),
                nanos => {
                    exact(f, nanos, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
                }
            }
        }
    }
    Exact(time.as_nanos()).to_string()
}

#[cfg(feature = "serde")]
mod text;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_unit_spellings_are_parsed() {
        assert_eq!("384kbit".parse(), Ok(Rate(384_000)));
        assert_eq!("1.5 Mbit".parse(), Ok(Rate(1_500_000)));
        assert_eq!("384kbit/s".parse(), Ok(Rate(384_000)));
        assert_eq!("64kB".parse(), Ok(Size(64_000)));
        assert_eq!("64KiB".parse(), Ok(Size(65_536)));
        assert_eq!("10%".parse(), Ok(Probability(0.1)));
        assert_eq!("1e-3".parse(), Ok(Probability(0.001)));
        assert_eq!("2.5ms".parse(), Ok(Duration::from_micros(2_500)));
    }

    #[test]
    fn typed_time_accepts_plain_seconds() {
        assert_eq!(typed_time("60"), Ok(Duration::from_secs(60)));
        assert_eq!(typed_time("0"), Ok(Duration::ZERO));
        assert_eq!(typed_time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(typed_time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(typed_time("8760h"), Ok(Duration::from_secs(365 * 86_400)));
        for text in ["8761h", "31536001", "1e300"] {
            let error = typed_time(text).unwrap_err().to_string();
            assert_eq!(error, format!("`{text}` is too long: 8760h, a year, is the longest time"));
        }
        for text in ["", "s", "-1", "soon", "1 week"] {
            assert!(
                typed_time(text).unwrap_err().to_string().starts_with(&format!("`{text}` is not")),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_quantity_is_rejected_with_example() {
        for text in ["384", "384/s", "384kbps", "-1kbit", "0bit", "nanbit", ""] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("\"384kbit\""), "{error}");
        }
        for text in ["110%", "-0.1", "NaN", "ten"] {
            assert!(text.parse::<Probability>().is_err(), "{text}");
        }
        assert!("150".parse::<Duration>().is_err());
        assert!("0.5B".parse::<Size>().is_err());
    }

    #[test]
    fn quantities_round_trip_through_text() {
        for text in ["384kbit", "1Gbit", "1500500bit"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for value in [0.0, 0.1, 0.15, 1e-3, 1e-6, 1.0 / 3.0, 1.0] {
            assert_eq!(Probability(value).to_string().parse(), Ok(Probability(value)));
        }
        for text in ["150ms", "2s", "1500us", "7ns", "0ms"] {
            assert_eq!(exact_time(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn transmission_time_is_bits_divided_by_rate() {
        assert_eq!(Rate::bits_per_second(384_000).time_for(1500), Duration::from_micros(31_250));
    }
}
