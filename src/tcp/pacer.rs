//! Segments that leave one after the other, at the rate that the sender's answer gives, rather than as fast as the
//! window lets them.
//!
//! There is a schedule: `next` is when the last segment is over, at the rate that held when it left. What the schedule
//! has for the next millisecond leaves at once, so that a driver in real time wakes a thousand times a second at most;
//! a segment that takes longer leaves alone, or with the rest of its piece (`defer`). A driver that wakes late does not
//! slow the schedule down, as long as it is late by less than that.
//!
//! Choice: octets of text count, without headers, as the rates that ACKs deliver are counted.

use airwire::time::{Duration, Instant};

/// What leaves at once.
const BURST: Duration = Duration::from_millis(1);

/// When text may leave. A connection whose sender gives no rate has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    /// Where the schedule goes on.
    next: Instant,
    /// The part of the schedule that may leave now ends here.
    burst_end: Instant,
    /// Something was held back: it wants to leave at `next`.
    holds: bool,
}

impl Pacer {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now, burst_end: now, holds: false }
    }

    /// May something leave?
    pub(super) fn permits(&mut self, now: Instant) -> bool {
        if self.next >= self.burst_end || now >= self.burst_end {
            if now < self.next {
                self.holds = true;
                return false;
            }
            if now - self.next >= BURST {
                // What was not sent in time is not made up for.
                self.next = now;
            }
            self.burst_end = self.next + BURST;
        }
        self.holds = false;
        true
    }

    /// `octets` have left, at `rate` octets a second.
    pub(super) fn on_sent(&mut self, octets: u64, rate: f64) {
        // A rate of next to nothing must not silence the sender for good.
        let takes = (octets as f64 / rate).clamp(0.0, 60.0);
        self.next += Duration::from_secs_f64(takes);
    }

    /// The time has come; who still wants to send asks again.
    pub(super) fn on_deadline(&mut self, now: Instant) {
        self.holds &= now < self.next;
    }

    /// When what was held back may leave.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.holds.then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many segments of 1250 octets leave, and when, if the driver looks whenever it is told to and `late` after
    /// that, until `until`.
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
    fn a_slow_sender_sends_segment_by_segment() {
        // 1 Mbit/s: 10 ms each.
        let bursts = departures(125_000.0, Duration::ZERO, Instant::from_millis(35));
        let at = |ms| (Instant::from_millis(ms), 1);
        assert_eq!(bursts, [at(0), at(10), at(20), at(30)]);
    }

    #[test]
    fn a_fast_one_sends_what_the_rate_has_for_a_millisecond() {
        // 1 Gbit/s: 100 segments a millisecond.
        let bursts = departures(125e6, Duration::ZERO, Instant::from_millis(5));
        assert_eq!(bursts.len(), 5);
        assert!(bursts.iter().all(|(_, segments)| (100..=101).contains(segments)), "{bursts:?}");
    }

    #[test]
    fn a_late_driver_keeps_the_rate() {
        let until = Instant::from_secs(1);
        for late in [Duration::from_micros(60), Duration::from_micros(900)] {
            let bursts = departures(12.5e6, late, until);
            let all: u32 = bursts.iter().map(|(_, segments)| segments).sum();
            // 100 Mbit/s: 10,000 segments a second.
            assert!((9_980..=10_020).contains(&all), "{all}");
            assert!(bursts.iter().all(|(_, segments)| *segments <= 11), "no burst is longer for it");
        }
    }

    #[test]
    fn time_in_which_there_was_nothing_to_send_is_lost() {
        let mut pacer = Pacer::new(Instant::ZERO);
        assert!(pacer.permits(Instant::ZERO));
        pacer.on_sent(1250, 12.5e6);
        let later = Instant::from_secs(10);
        let mut segments = 0;
        while pacer.permits(later) {
            pacer.on_sent(1250, 12.5e6);
            segments += 1;
        }
        assert_eq!(segments, 10, "a millisecond's worth");
        assert_eq!(pacer.deadline(), Some(later + BURST));
    }

    #[test]
    fn who_holds_nothing_back_wakes_nobody() {
        let mut pacer = Pacer::new(Instant::ZERO);
        assert!(pacer.permits(Instant::ZERO));
        pacer.on_sent(1250, 125_000.0);
        assert_eq!(pacer.deadline(), None, "nobody wanted more");
        assert!(!pacer.permits(Instant::from_millis(3)));
        assert_eq!(pacer.deadline(), Some(Instant::from_millis(10)));
    }
}
