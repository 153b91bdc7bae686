//! `--read-rate`: limits the rate at which a receiver reads, so that its buffer fills and its window closes.

use airwire::time::{Duration, Instant};

/// Reads per second while data is available.
const READS_PER_SECOND: u64 = 20;

/// Determines when the receiver may read again, and how much. Reads that were missed while no data arrived
/// are not made up for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bytes per second. `None`: no limit.
    rate: Option<u64>,
    next: Instant,
}

impl Pace {
    pub(crate) fn new(rate: Option<u64>) -> Self {
        Self { rate, next: Instant::ZERO }
    }

    /// Returns the time of the next read, or `None` if the receiver may read now.
    pub(crate) fn next_read(&self, now: Instant) -> Option<Instant> {
        (self.next > now).then_some(self.next)
    }

    /// Returns the maximum size of one read.
    pub(crate) fn read_size(&self, buffer: usize) -> usize {
        self.rate.map_or(buffer, |rate| buffer.min((rate / READS_PER_SECOND).max(1) as usize))
    }

    /// Records a read of this number of bytes.
    pub(crate) fn record(&mut self, now: Instant, bytes: usize) {
        if let Some(rate) = self.rate {
            let nanos = (bytes as u128 * 1_000_000_000).div_ceil(u128::from(rate));
            self.next = self.next.max(now) + Duration::from_nanos(nanos as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_reads_at_configured_rate() {
        for rate in [1, 19, 1000, 50_000, 125_000_000] {
            let (mut pace, mut now, mut read) = (Pace::new(Some(rate)), Instant::from_secs(5), 0);
            let end = now + Duration::from_secs(4);
            while now < end {
                let size = pace.read_size(256 << 10);
                read += size as u64;
                pace.record(now, size);
                now = pace.next_read(now).unwrap();
            }
            let size = pace.read_size(256 << 10) as u64;
            assert!((4 * rate..4 * rate + size).contains(&read), "{read} in 4 s at {rate} a second");
        }
    }

    #[test]
    fn pace_does_not_catch_up_after_silence() {
        let mut pace = Pace::new(Some(1000));
        pace.record(Instant::from_secs(1), 50);
        let late = Instant::from_secs(60);
        assert_eq!(pace.next_read(late), None);
        pace.record(late, 50);
        assert_eq!(pace.next_read(late), Some(late + Duration::from_millis(50)));
    }

    #[test]
    fn pace_without_rate_never_pauses() {
        let mut pace = Pace::new(None);
        pace.record(Instant::from_secs(1), 1 << 20);
        assert_eq!((pace.next_read(Instant::ZERO), pace.read_size(4096)), (None, 4096));
    }
}
