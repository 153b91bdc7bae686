//! Serialisation times that do not drift.

use airwire::time::Duration;
use airwire::units::Rate;

/// Hands out the times that octets take at a rate, so that the sum of any number of them is right to the
/// nanosecond: what rounding took from one is given to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: Rate,
    /// What is left over, in 1/rate nanoseconds. Begins at a half, which rounds to the nearest.
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
        // A packet has far less than the 2^31 octets that would not fit.
        let total = octets as u64 * NANO_BITS_PER_OCTET + self.carry;
        self.carry = total % rate;
        Duration::from_nanos(total / rate)
    }

    /// What has `remaining` time to go at this rate has the returned time to go at the new one.
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
    fn a_second_worth_of_packets_takes_a_second_at_any_rate() {
        // 1 octet at 7 bit/s is 1142857142.857… ns.
        let mut pace = Pace::new(Rate::bits_per_second(7));
        let total: Duration = (0..7).fold(Duration::ZERO, |sum, _| sum + pace.next(1));
        assert_eq!(total, Duration::from_secs(8));
        let mut pace = Pace::new(Rate::bits_per_second(999_999_937));
        let total = (0..999_999_937 / 8 / 1000).fold(Duration::ZERO, |sum, _| sum + pace.next(1000));
        let exact = 124_999_u128 * 8000 * 1_000_000_000 / 999_999_937;
        assert!(u128::from(total.as_nanos()).abs_diff(exact) <= 1, "{total} against {exact}ns");
    }

    #[test]
    fn one_packet_alone_takes_the_time_that_the_rate_says() {
        for (bits, octets) in [(384_000, 1500), (7, 3), (100_000_000_000, 64), (1_000_003, 1499)] {
            let rate = Rate::bits_per_second(bits);
            assert_eq!(Pace::new(rate).next(octets), rate.time_for(octets));
        }
    }
}
