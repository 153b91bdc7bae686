//! Pacing: sending segments at the rate that the recipe sets, and not as fast as the window allows.
//!
//! The pacer keeps a schedule. `next` is the time at which the last segment ends, at the rate in force when
//! it was sent. Everything scheduled for the next millisecond is sent at once, so a real-time driver wakes at
//! most a thousand times a second. A segment that takes longer is sent alone, or with the rest of its burst
//! (`defer`). A driver that is late by less than a millisecond does not slow down the schedule.
//!
//! The rate counts bytes of data without headers, like the delivery rates that are derived from ACKs.

use airwire::time::{Duration, Instant};

/// The part of the schedule that is sent at once.
const BURST: Duration = Duration::from_millis(1);

/// The schedule of a paced connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    /// The time at which the schedule continues.
    next: Instant,
    /// The end of the part of the schedule that may be sent now.
    burst_end: Instant,
    /// True if a segment was delayed until `next`.
    is_delaying: bool,
}

impl Pacer {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now, burst_end: now, is_delaying: false }
    }

    /// Returns true if a segment may be sent now.
    pub(super) fn permits(&mut self, now: Instant) -> bool {
        if self.next >= self.burst_end || now >= self.burst_end {
            if now < self.next {
                self.is_delaying = true;
                return false;
            }
            if now - self.next >= BURST {
                // Time in which nothing was sent does not permit a longer burst.
                self.next = now;
            }
            self.burst_end = self.next + BURST;
        }
        self.is_delaying = false;
        true
    }

    /// Records that `bytes` bytes were sent, at `rate` bytes per second.
    pub(super) fn on_sent(&mut self, bytes: u64, rate: f64) {
        // A rate close to zero must not stop the sender forever.
        let takes = (bytes as f64 / rate).clamp(0.0, 60.0);
        self.next += Duration::from_secs_f64(takes);
    }

    /// Clears an expired deadline. A sender that still has data calls [`Self::permits`] again.
    pub(super) fn on_deadline(&mut self, now: Instant) {
        self.is_delaying &= now < self.next;
    }

    /// Returns when the delayed segment may be sent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.is_delaying.then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times and sizes of the bursts until `until`, in segments of 1250 bytes, for a driver that
    /// runs `late` after each deadline.
    fn departures(rate: f64, late: Duration, until: Instant) -> Vec<(Instant, u32)> {
        let mut pacer = Pacer::new(Instant::ZERO);
        let (mut now, mut bursts) = (Instant::ZERO, Vec::new());
        while now < until {
            let mut segments = 0;
            while pacer.permits(now) {
                pacer.on_sent(1250, rate);
                segments += 1;
            }
            bursts.push((now, segments));
            now = pacer.deadline().unwrap().max(now) + late;
        }
        bursts
    }

    #[test]
    fn slow_sender_sends_single_segments() {
        // 1 Mbit/s: 10 ms each.
        let bursts = departures(125_000.0, Duration::ZERO, Instant::from_millis(35));
        let at = |ms| (Instant::from_millis(ms), 1);
        assert_eq!(bursts, [at(0), at(10), at(20), at(30)]);
    }

    #[test]
    fn fast_sender_sends_one_millisecond_bursts() {
        // 1 Gbit/s: 100 segments per millisecond.
        let bursts = departures(125e6, Duration::ZERO, Instant::from_millis(5));
        assert_eq!(bursts.len(), 5);
        assert!(bursts.iter().all(|(_, segments)| (100..=101).contains(segments)), "{bursts:?}");
    }

    #[test]
    fn late_driver_keeps_rate() {
        let until = Instant::from_secs(1);
        for late in [Duration::from_micros(60), Duration::from_micros(900)] {
            let bursts = departures(12.5e6, late, until);
            let all: u32 = bursts.iter().map(|(_, segments)| segments).sum();
            // 100 Mbit/s: 10,000 segments per second.
            assert!((9_980..=10_020).contains(&all), "{all}");
            assert!(bursts.iter().all(|(_, segments)| *segments <= 11), "no burst exceeds 11 segments");
        }
    }

    #[test]
    fn idle_time_accumulates_at_most_one_burst() {
        let mut pacer = Pacer::new(Instant::ZERO);
        assert!(pacer.permits(Instant::ZERO));
        pacer.on_sent(1250, 12.5e6);
        let later = Instant::from_secs(10);
        let mut segments = 0;
        while pacer.permits(later) {
            pacer.on_sent(1250, 12.5e6);
            segments += 1;
        }
        assert_eq!(segments, 10, "one millisecond at the rate");
        assert_eq!(pacer.deadline(), Some(later + BURST));
    }

    #[test]
    fn pacer_sets_deadline_only_for_delayed_segments() {
        let mut pacer = Pacer::new(Instant::ZERO);
        assert!(pacer.permits(Instant::ZERO));
        pacer.on_sent(1250, 125_000.0);
        assert_eq!(pacer.deadline(), None, "no segment is delayed");
        assert!(!pacer.permits(Instant::from_millis(3)));
        assert_eq!(pacer.deadline(), Some(Instant::from_millis(10)));
    }
}
