//! Time in integer nanoseconds, supplied by a driver.
//!
//! Real time and virtual time have the same type, so the code that uses it behaves identically in both.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time, in nanoseconds since the driver's start of time, up to `u64::MAX - 1`.
///
/// Stored plus one, because an `Option<Instant>` then takes eight bytes instead of sixteen. Connections hold
/// many of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// Defines the conversions from and to the units above a nanosecond.
macro_rules! conversions {
    ($type:ident, $a_value:literal) => {
        impl $type {
            #[doc = concat!("Returns ", $a_value, " from a number of microseconds.")]
            pub const fn from_micros(micros: u64) -> Self {
                Self::from_nanos(micros * 1_000)
            }

            #[doc = concat!("Returns ", $a_value, " from a number of milliseconds.")]
            pub const fn from_millis(millis: u64) -> Self {
                Self::from_nanos(millis * 1_000_000)
            }

            #[doc = concat!("Returns ", $a_value, " from a number of seconds.")]
            pub const fn from_secs(secs: u64) -> Self {
                Self::from_nanos(secs * 1_000_000_000)
            }

            /// Returns the number of microseconds, rounded down.
            pub const fn as_micros(self) -> u64 {
                self.as_nanos() / 1_000
            }

            /// Returns the number of milliseconds, rounded down.
            pub const fn as_millis(self) -> u64 {
                self.as_nanos() / 1_000_000
            }

            /// Returns the number of seconds, to the precision of a float.
            pub fn as_secs_f64(self) -> f64 {
                self.as_nanos() as f64 / 1e9
            }
        }
    };
}

conversions!(Instant, "an instant");
conversions!(Duration, "a duration");

/// Returns the earlier of two times, each of which may be absent.
#[inline]
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Instant {
    /// The driver's start of time. In a simulation, this is the beginning.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// Returns an instant from a number of nanoseconds. `u64::MAX` becomes the largest instant.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Returns the exact number of nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Duration {
    /// A length of zero.
    pub const ZERO: Self = Self(0);
    /// The longest time, about 584 years. It serves as "for ever".
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a duration from a number of nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the exact number of nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns a duration of `secs` seconds. Negative values and NaN become zero. Values out of range become
    /// [`Duration::MAX`].
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    /// Returns true only for [`Duration::ZERO`].
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the difference, or zero if `other` is longer. The operator `-` does the same.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the product, at most [`Duration::MAX`]. The operator `*` does the same.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// Returns the absolute difference.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Saturates: adding to the largest instant leaves it unchanged.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(rhs.0))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, rhs: Self) -> Duration {
        self.saturating_since(rhs)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        self.saturating_sub(rhs)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, rhs: u64) -> Self {
        self.saturating_mul(rhs)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, rhs: u64) -> Self {
        Self(self.0 / rhs)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.as_nanos();
        write!(f, "{}.{:06}", nanos / 1_000_000_000, nanos % 1_000_000_000 / 1_000)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}s")
    }
}

impl fmt::Display for Duration {
    /// Writes the largest unit that keeps the number readable: `1.500s`, `12.300ms`, `40us`, `7ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => {
                write!(f, "{}.{:03}s", n / 1_000_000_000, n % 1_000_000_000 / 1_000_000)
            }
            n if n >= 1_000_000 => write!(f, "{}.{:03}ms", n / 1_000_000, n % 1_000_000 / 1_000),
            n if n >= 1_000 => write!(f, "{}us", n / 1_000),
            n => write!(f, "{n}ns"),
        }
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Instant::ZERO - Instant::from_secs(1), Duration::ZERO);
        assert_eq!(Instant::from_secs(1) + Duration::MAX, Instant::from_nanos(u64::MAX));
        assert_eq!(Instant::from_nanos(u64::MAX).as_nanos(), u64::MAX - 1);
        assert_eq!(Instant::from_secs(1) - Duration::from_secs(2), Instant::ZERO);
        assert_eq!(Duration::from_secs(1) - Duration::from_secs(2), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
    }

    #[test]
    fn optional_instant_takes_eight_bytes() {
        assert_eq!(size_of::<Option<Instant>>(), 8);
        assert_eq!(Instant::from_nanos(0), Instant::ZERO);
        assert_eq!(Instant::from_nanos(1_234_567_890).as_nanos(), 1_234_567_890);
    }

    #[test]
    fn durations_print_in_largest_fitting_unit() {
        assert_eq!(Duration::from_millis(1500).to_string(), "1.500s");
        assert_eq!(Duration::from_micros(12_300).to_string(), "12.300ms");
        assert_eq!(Duration::from_micros(40).to_string(), "40us");
        assert_eq!(Duration::from_nanos(7).to_string(), "7ns");
    }
}
