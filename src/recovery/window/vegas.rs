//! The window of TCP Vegas (Brakmo, Peterson: *TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet*, IEEE JSAC 13 (1995), §III B and C): it keeps between α and β segments of its own in the queue,
//! and needs no loss to find that window.
//!
//! Once per round trip, Diff = Expected − Actual = cwnd/BaseRTT − cwnd/RTT, as Diff·BaseRTT in segments, is
//! compared with α = 1 and β = 3: below α the window grows by one segment, above β it shrinks by one. Slow
//! start doubles the window only every other round trip. It ends as soon as Diff exceeds γ = 1 after a round
//! trip with a constant window.
//!
//! The earlier retransmission of Vegas (§III A) answers another question and is not included. After a loss
//! the window behaves like AIMD.
//!
//! - Choice: RTT is the minimum of the round trip, so that a delayed ACK does not look like a queue.
//! - Choice: when slow start ends early, the window shrinks by an eighth, as in ns-2. The paper mentions only
//!   the change of mode.
//!
//! The receiver needs no special support.

use airwire::time::Duration;

use super::aimd::window_was_used;
use super::{Aimd, Loss, Reduction, Window};
use crate::recovery::{Ack, View};

const ALPHA: f64 = 1.0;
const BETA: f64 = 3.0;
const GAMMA: f64 = 1.0;

#[derive(Debug, Default)]
pub(crate) struct VegasWindow {
    aimd: Aimd,
    base_rtt: Option<Duration>,
    /// The minimum round-trip time measured in the current round trip.
    rtt: Option<Duration>,
    /// The current round trip is over when an ACK exceeds this offset.
    round_ends: u64,
    start: SlowStart,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SlowStart {
    #[default]
    Doubles,
    StandsStill,
    /// Slow start ended below ssthresh, because a queue was found.
    Over,
}

impl VegasWindow {
    /// Returns Diff · BaseRTT, in segments.
    fn diff(&self, cwnd: f64) -> Option<f64> {
        let (base_rtt, rtt) = (self.base_rtt?, self.rtt?);
        Some(cwnd * (1.0 - base_rtt.as_secs_f64() / rtt.as_secs_f64()))
    }

    /// Returns the new cwnd at the end of a round trip.
    fn judge(&mut self, cwnd: f64, in_slow_start: bool) -> f64 {
        let diff = self.diff(cwnd);
        if in_slow_start {
            self.start = match (self.start, diff) {
                (SlowStart::StandsStill, Some(diff)) if diff > GAMMA => SlowStart::Over,
                (SlowStart::StandsStill, _) => SlowStart::Doubles,
                (SlowStart::Doubles | SlowStart::Over, _) => SlowStart::StandsStill,
            };
            return if self.start == SlowStart::Over { (cwnd * 7.0 / 8.0).max(2.0) } else { cwnd };
        }
        match diff {
            Some(diff) if diff < ALPHA => cwnd + 1.0,
            Some(diff) if diff > BETA && cwnd > 2.0 => (cwnd - 1.0).max(2.0),
            _ => cwnd,
        }
    }
}

impl Window for VegasWindow {
    fn observe(&mut self, _view: &View<'_>, ack: &Ack) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            let shortest = |known: Option<Duration>| Some(known.map_or(rtt, |known| known.min(rtt)));
            self.base_rtt = shortest(self.base_rtt);
            self.rtt = shortest(self.rtt);
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        if !ack.advances() {
            return None;
        }
        let cwnd = view.cc.cwnd;
        let in_slow_start = view.in_slow_start() && self.start != SlowStart::Over;
        if view.flight.una() > self.round_ends {
            self.round_ends = view.flight.max();
            let judged = self.judge(cwnd, in_slow_start);
            self.rtt = None;
            if judged != cwnd {
                return (judged < cwnd || window_was_used(view, ack)).then_some(judged);
            }
        }
        if in_slow_start && self.start == SlowStart::Doubles { self.aimd.on_ack(view, ack) } else { None }
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        self.start = SlowStart::Doubles;
        self.aimd.on_loss(view, loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::{BareSender, RTT};

    /// Runs round trips of these durations in milliseconds, each with a whole window. Returns cwnd after
    /// each.
    fn rounds(sender: &mut BareSender, times: &[u64]) -> Vec<f64> {
        let round = |time: &u64| sender.wait(Duration::from_millis(*time)).ack_each(Duration::ZERO);
        times.iter().map(round).collect()
    }

    fn in_congestion_avoidance(cwnd: f64) -> BareSender {
        let mut sender = BareSender::new("vegas-window").under_way(cwnd, 2.0, RTT);
        rounds(&mut sender, &[100]);
        sender.recovery.put_window(cwnd, 2.0);
        sender
    }

    #[test]
    fn window_moves_by_one_outside_alpha_and_beta() {
        // Diff·BaseRTT = 20 · (1 − 100/RTT).
        let after = |rtt| {
            let mut sender = in_congestion_avoidance(20.0);
            // The first of these round trips ends a measurement whose minimum is 100 ms.
            rounds(&mut sender, &[rtt, rtt])[1] - rounds(&mut in_congestion_avoidance(20.0), &[rtt])[0]
        };
        assert_eq!(after(104), 1.0, "0.77 segments");
        assert_eq!(after(111), 0.0, "1.98 segments");
        assert_eq!(after(130), -1.0, "4.6 segments");
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip() {
        let mut sender = BareSender::new("vegas-window").under_way(2.0, f64::INFINITY, RTT);
        let windows = rounds(&mut sender, &[100; 6]);
        let doubled: Vec<bool> =
            [2.0].iter().chain(&windows).zip(&windows).map(|(before, after)| after > before).collect();
        let grown = doubled.iter().filter(|doubled| **doubled).count();
        assert_eq!(grown, 3, "{windows:?}");
        assert!(windows.windows(3).all(|three| three[0] == three[1] || three[1] == three[2]), "{windows:?}");
    }

    #[test]
    fn slow_start_ends_when_queue_builds() {
        let mut sender = BareSender::new("vegas-window").under_way(16.0, f64::INFINITY, RTT);
        let windows = rounds(&mut sender, &[100, 120, 120, 120, 120]);
        let largest = windows.iter().copied().fold(0.0, f64::max);
        let last = *windows.last().unwrap();
        assert!(largest <= 34.0 && last < largest, "{windows:?}");
        assert_eq!(sender.cc().ssthresh, f64::INFINITY, "no loss was needed");
    }

    #[test]
    fn loss_response_matches_aimd() {
        let mut sender = in_congestion_avoidance(20.0);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, flight / 2.0);
    }

    #[test]
    fn window_of_two_does_not_shrink() {
        let mut sender = in_congestion_avoidance(2.0);
        rounds(&mut sender, &[100]);
        sender.recovery.put_window(2.0, 2.0);
        let windows = rounds(&mut sender, &[2000, 2000, 2000]);
        assert!(windows.iter().all(|cwnd| *cwnd >= 2.0), "{windows:?}");
    }
}
