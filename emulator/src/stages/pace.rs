//! Transmission times without accumulated rounding errors.

use airwire::time::Duration;
use airwire::units::Rate;

/// Computes transmission times at a rate. Their sum is exact to the nanosecond, because the remainder of each
/// division carries over to the next packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: Rate,
    /// The remainder, in units of 1/rate nanoseconds. It starts at one half, so that times are rounded to the
    /// nearest nanosecond.
    carry: u64,
}

const NANO_BITS_PER_OCTET: u64 = 8 * 1_000_000_000;

impl Pace {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, carry: rate.as_bits_per_second() / 2 }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    pub(super) fn next(&mut self, octets: usize) -> Duration {
        let rate = self.rate.as_bits_per_second();
        // This would overflow only with 2^31 bytes, far more than a packet has.
        let total = octets as u64 * NANO_BITS_PER_OCTET + self.carry;
        self.carry = total % rate;
        Duration::from_nanos(total / rate)
    }

    /// Switches to the new rate. Converts the remaining time at the old rate to the remaining time at the new
    /// one.
    pub(super) fn change(&mut self, rate: Rate, remaining: Duration) -> Duration {
        let bits = u128::from(remaining.as_nanos()) * u128::from(self.rate.as_bits_per_second());
        let new = u128::from(rate.as_bits_per_second());
        *self = Self::new(rate);
        Duration::from_nanos(u64::try_from((bits + new / 2) / new).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_accumulates_no_rounding_error() {
        // 1 byte at 7 bit/s takes 1142857142.857… ns.
        let mut pace = Pace::new(Rate::bits_per_second(7));
        let total: Duration = (0..7).fold(Duration::ZERO, |sum, _| sum + pace.next(1));
        assert_eq!(total, Duration::from_secs(8));
        let mut pace = Pace::new(Rate::bits_per_second(999_999_937));
        let total = (0..999_999_937 / 8 / 1000).fold(Duration::ZERO, |sum, _| sum + pace.next(1000));
        let exact = 124_999_u128 * 8000 * 1_000_000_000 / 999_999_937;
        assert!(u128::from(total.as_nanos()).abs_diff(exact) <= 1, "{total}, expected {exact}ns");
    }

    #[test]
    fn single_packet_takes_time_given_by_rate() {
        for (bits, octets) in [(384_000, 1500), (7, 3), (100_000_000_000, 64), (1_000_003, 1499)] {
            let rate = Rate::bits_per_second(bits);
            assert_eq!(Pace::new(rate).next(octets), rate.time_for(octets));
        }
    }
}
