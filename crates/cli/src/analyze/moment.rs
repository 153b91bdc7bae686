//! Parses and formats points in time. Times of day are local time, as in tcpdump and Wireshark.

use airtcp_numbers::units;
use airwire::time::Duration;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A point in time as the user typed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Moment {
    /// Time of day, on the day of the capture's first packet.
    OfDay(Time),
    /// Date and time, in local time.
    On(DateTime),
    /// Nanoseconds since 1970.
    At(i64),
    /// Nanoseconds since the capture's first packet.
    After(i64),
}

const FORMS: &str = "a time of day (14:03:05.5), a date and time (2024-05-01T14:03:05), seconds since 1970 (1714572185.5), or a \
                     time since the first packet (90s, 250ms)";

impl Moment {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is not a time: use {FORMS}");
        if let Some(text) = text.strip_prefix('+') {
            return offset(text).map(Self::After).ok_or_else(unknown);
        }
        if text.contains('-') {
            return text.parse().map(Self::On).map_err(|_| unknown());
        }
        if text.contains(':') {
            return text.parse().map(Self::OfDay).map_err(|_| unknown());
        }
        if text.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.') {
            return epoch(text).map(Self::At).ok_or_else(unknown);
        }
        offset(text).map(Self::After).ok_or_else(unknown)
    }

    /// Returns nanoseconds since 1970. `first` is the time of the capture's first packet.
    pub(super) fn resolve(self, first: i64, zone: &TimeZone) -> i64 {
        let day = || local(first, zone).date();
        let civil = match self {
            Self::At(at) => return at,
            Self::After(offset) => return first.saturating_add(offset),
            Self::OfDay(time) => day().to_datetime(time),
            Self::On(civil) => civil,
        };
        let zoned = civil.to_zoned(zone.clone());
        zoned.map_or(i64::MAX, |zoned| zoned.timestamp().as_nanosecond().try_into().unwrap_or(i64::MAX))
    }
}

/// Parses a duration, which may be zero here.
fn offset(text: &str) -> Option<i64> {
    let is_zero = text.chars().all(|c| c == '0' || !c.is_ascii_digit());
    let text = if is_zero { text.replace('0', "1") } else { text.to_owned() };
    let duration: Duration = units::duration(&text).ok()?;
    Some(if is_zero { 0 } else { duration.as_nanos() as i64 })
}

/// Parses seconds with decimals to the nanosecond. A float would lose the last three digits.
fn epoch(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.get(..fraction.len().min(9))?;
    let nanos: i64 = format!("{digits:0<9}").parse().ok()?;
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
}

pub(super) fn local(nanos: i64, zone: &TimeZone) -> Zoned {
    Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default().to_zoned(zone.clone())
}

/// Formats a time as `2024-05-01 14:03:05.123456 +02:00`.
pub(crate) fn long(nanos: i64, zone: &TimeZone) -> String {
    local(nanos, zone).strftime("%Y-%m-%d %H:%M:%S.%6f %:z").to_string()
}

/// Formats a time as `14:03:05.123456`, like tcpdump.
pub(super) fn short(nanos: i64, zone: &TimeZone) -> String {
    local(nanos, zone).strftime("%H:%M:%S.%6f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_parses_clock_date_epoch_and_offset() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // 2024-05-01 14:03:05.25 at UTC+2.
        let first = 1_714_564_985_250_000_000;
        assert_eq!(long(first, &zone), "2024-05-01 14:03:05.250000 +02:00");
        assert_eq!(short(first, &zone), "14:03:05.250000");
        for (text, after) in [
            ("14:03:05.25", 0),
            ("14:04:05.25", 60_000_000_000),
            ("14:03", -5_250_000_000),
            ("2024-05-01T14:03:06.25", 1_000_000_000),
            ("2024-05-02 14:03:05.25", 86_400_000_000_000),
            ("1714564985.250000001", 1),
            ("1714564986", 750_000_000),
            ("250ms", 250_000_000),
            ("+2s", 2_000_000_000),
            ("0s", 0),
            ("+0.0s", 0),
        ] {
            let moment = Moment::parse(text).unwrap();
            assert_eq!(moment.resolve(first, &zone) - first, after, "{text}");
        }
        for text in ["", "noon", "25:00", "14.5.2024", "5 apples", "é", "99999999999999999999"] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
    }
}
