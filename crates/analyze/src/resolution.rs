//! Determines the resolution of the clock of a capture, as the greatest common divisor of all times.

use aircaptures::packet::Timestamp;

/// Number of different times that are sufficient for the resolution. Fewer are sufficient if each time occurs
/// in this number of packets on average.
const ENOUGH_TIMES: u32 = 16;
/// Nanoseconds. A coarser clock affects the analysis.
const COARSE: i64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Resolution {
    first: Option<Timestamp>,
    last: Timestamp,
    divisor: u64,
    /// Number of packets whose time differs from the time of the packet before. `same` counts the others.
    different: u32,
    same: u32,
}

impl Resolution {
    pub(crate) fn add(&mut self, at: Timestamp) {
        let first = *self.first.get_or_insert(at);
        if at == self.last {
            self.same = self.same.saturating_add(1);
            return;
        }
        self.last = at;
        self.different = self.different.saturating_add(1);
        let passed = at.0.saturating_sub(first.0).unsigned_abs();
        if self.divisor == 0 || !passed.is_multiple_of(self.divisor) {
            self.divisor = greatest_common_divisor(passed, self.divisor);
        }
    }

    /// Returns the resolution in nanoseconds, or 0 if there are too few packets.
    pub(crate) fn step(&self) -> i64 {
        let is_shared = u64::from(self.same) >= u64::from(ENOUGH_TIMES) * u64::from(self.different);
        let is_known = self.different >= ENOUGH_TIMES || is_shared;
        if is_known { self.divisor.cast_signed() } else { 0 }
    }

    /// Returns the resolution in nanoseconds if it is so coarse that many packets have the same time.
    pub(crate) fn coarse(&self) -> Option<i64> {
        let is_coarse = self.step() >= COARSE && self.same >= ENOUGH_TIMES;
        is_coarse.then(|| self.step())
    }
}

pub(crate) fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
