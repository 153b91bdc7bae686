//! Parsing and formatting of numbers with units.

use airwire::time::Duration;
use airwire::units::{Rate, Size, typed_time};

/// Parses a size in the notation of scenarios: `1500`, `10k`, `20M`, `1.5G`, `64Ki`, `4Mi`, each
/// optionally followed by `B`.
pub fn bytes(text: &str) -> Result<u64, String> {
    text.parse::<Size>().map(Size::as_bytes).map_err(|error| error.to_string())
}

/// Parses a rate in bytes per second: `50kB/s` or `50k`, or in bits `400kbit/s`. The `/s` is
/// optional.
pub fn bytes_per_second(text: &str) -> Result<u64, String> {
    let quantity = text.strip_suffix("/s").unwrap_or(text).trim_end();
    let octets = match quantity.ends_with("bit") {
        true => quantity.replace(' ', "").parse::<Rate>().ok().map(|rate| rate.as_bits_per_second() / 8),
        false => bytes(quantity).ok(),
    };
    let wrong = || {
        format!("`{text}` is not a rate of at least one byte per second; use for example 50kB/s or 400kbit/s")
    };
    octets.filter(|octets| *octets > 0).ok_or_else(wrong)
}

/// Parses the size of a socket buffer, from 1 byte to 1 GiB.
pub fn buffer_size(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        size @ 1..=0x4000_0000 => Ok(size as usize),
        _ => Err("a buffer has a size from 1 byte to 1Gi".to_owned()),
    }
}

/// Parses a time above zero: `150ms`, `2.5s`, `1m`. A bare number means seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    match typed_time(text).map_err(|error| error.to_string())? {
        Duration::ZERO => Err(format!("`{text}` is too short; use a time above zero")),
        time => Ok(time),
    }
}

/// Parses a share above zero and at most one, typed in percent: `5%`, `2.5 %`, `5`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let share = number.filter(|number| *number > 0.0 && *number <= 100.0).map(|number| number / 100.0);
    share.ok_or_else(|| format!("`{text}` is not a percentage from above 0 to 100; use for example 5%"))
}

/// Formats a size with three digits and a decimal prefix: `12.3 MB`.
pub fn show_bytes(bytes: u64) -> String {
    scaled(bytes as f64, "B")
}

/// Formats a rate with three digits and a decimal prefix: `1.52 Gbit/s`.
pub fn show_rate(bit_per_s: f64) -> String {
    scaled(bit_per_s, "bit/s")
}

fn scaled(value: f64, unit: &str) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match steps.into_iter().find(|(factor, _)| value >= *factor) {
        Some((factor, prefix)) => {
            let value = value / factor;
            let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
            format!("{value:.digits$} {prefix}{unit}")
        }
        None => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_parsed_in_bytes_or_bits() {
        for (text, octets) in
            [("50kB/s", 50_000), ("50k", 50_000), ("400kbit/s", 50_000), ("1.5 Mbit/s", 187_500)]
        {
            assert_eq!(bytes_per_second(text), Ok(octets), "{text}");
        }
        for text in ["", "0", "/s", "fast", "7bit/s", "-1kB/s"] {
            assert!(bytes_per_second(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_are_above_zero_and_at_most_hundred() {
        assert_eq!(["5%", "2.5 %", "100"].map(|text| percent(text).unwrap()), [0.05, 0.025, 1.0]);
        for text in ["", "%", "0", "-1%", "101", "NaN", "five"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_decimal_without_binary_prefix() {
        for (text, size) in [
            ("0", 0),
            ("1500", 1500),
            ("10k", 10_000),
            ("20M", 20_000_000),
            ("1.5G", 1_500_000_000),
            ("1.1k", 1100),
            ("1e3", 1000),
            ("64Ki", 65_536),
            ("4MiB", 4 << 20),
            ("3 MB", 3_000_000),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "M", "ten", "10X", "-1", "99999999999G", "1.5.5M"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(buffer_size("0").is_err());
    }

    #[test]
    fn durations_accept_units_and_reject_zero() {
        assert_eq!(duration("150ms"), Ok(Duration::from_millis(150)));
        assert_eq!(duration("2.5s"), Ok(Duration::from_millis(2500)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        assert_eq!(duration("1m"), Ok(Duration::from_secs(60)));
        for text in ["", "0s", "-1s", "1 week", "s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    /// Scenarios use the same units, except that a time must have a unit there.
    #[test]
    fn options_and_scenarios_parse_units_alike() {
        for text in ["1500", "1500B", "10k", "64kB", "20M", "1.5GB", "64Ki", "4MiB", "1GiB"] {
            assert_eq!(text.parse::<Size>().map(Size::as_bytes).ok(), bytes(text).ok(), "{text}");
        }
        for text in ["1.5", "0.5B", "1.2345k", "10X", "", "-1"] {
            assert!(text.parse::<Size>().is_err() && bytes(text).is_err(), "{text}");
        }
        for text in ["7ns", "20us", "150ms", "2.5s", "2m", "1.5min", "1h"] {
            assert_eq!(text.parse::<Duration>().ok(), duration(text).ok(), "{text}");
        }
    }

    #[test]
    fn numbers_are_shown_with_three_significant_digits() {
        assert_eq!(show_bytes(999), "999 B");
        assert_eq!(show_bytes(1_230_000), "1.23 MB");
        assert_eq!(show_rate(1.524e9), "1.52 Gbit/s");
        assert_eq!(show_rate(98_765_432.0), "98.8 Mbit/s");
        assert_eq!(show_rate(384_000.0), "384 kbit/s");
    }
}
