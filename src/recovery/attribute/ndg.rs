//! Normalised delay gradient (Jain 1989; P1 §3.2): does the delay rise and fall with the window?
//!
//! NDG = ((RTT_i − RTT_j) / (RTT_i + RTT_j)) / ((W_i − W_j) / (W_i + W_j)), of which only the sign counts.
//! If it is above zero, the two rise or fall together: Jain would shrink the window, and a loss is congestion. Else he
//! would open it, and a loss is the radio's.
//!
//! Choice: as for [`ntg`](super::Ntg), i is the newest sample and j the last one under another window; before
//! the first change it is congestion. No threshold: the least change of the RTT has a sign, whatever caused it.
//!
//! A queue that is full cannot delay more than before: where the window goes on growing, the radio gets the
//! blame at the very moment of the overflow.

use airwire::Cause;

use super::Attribute;
use super::sample::{Change, Monitor};
use crate::recovery::{Ack, Departure, View};

/// Normalised delay gradient (Jain 1989; P1 §3.2).
#[derive(Debug)]
pub(crate) struct Ndg {
    monitor: Monitor,
    change: Change,
    judgement: (Cause, &'static str),
}

impl Default for Ndg {
    fn default() -> Self {
        let judgement = (Cause::Congestion, "no change of the window measured yet");
        Self { monitor: Monitor::default(), change: Change::default(), judgement }
    }
}

impl Attribute for Ndg {
    fn name(&self) -> &'static str {
        "ndg"
    }

    fn on_sent(&mut self, view: &View<'_>, _departure: &Departure) {
        self.monitor.on_sent(view);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        let Some(i) = self.monitor.on_ack(view, ack) else { return };
        let Some((j, i)) = self.change.on_sample(i) else { return };
        // The sums are positive, and the window has changed.
        let positive = (i.rtt > j.rtt && i.w > j.w) || (i.rtt < j.rtt && i.w < j.w);
        self.judgement = if positive {
            (Cause::Congestion, "NDG > 0: the delay follows the window")
        } else {
            (Cause::Radio, "NDG <= 0: the delay does not follow the window")
        };
    }

    fn cause(&mut self, _view: &View<'_>, _lost: u64) -> Option<(Cause, &'static str)> {
        Some(self.judgement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::attribute::tests::{judged, ms, slow_start_of_one, window_of_four_becomes_two};
    use crate::recovery::testing::BareSender;

    #[test]
    fn the_sign_of_both_changes() {
        let larger = |rtt| judged(&mut slow_start_of_one("ndg", rtt));
        assert_eq!(larger(101), Cause::Congestion, "W rises, RTT rises");
        assert_eq!(larger(100), Cause::Radio, "W rises, RTT stays");
        assert_eq!(larger(99), Cause::Radio, "W rises, RTT falls");
        let smaller = |rtt| judged(&mut window_of_four_becomes_two("ndg", rtt));
        assert_eq!(smaller(199), Cause::Congestion, "W falls, RTT falls");
        assert_eq!(smaller(200), Cause::Radio, "W falls, RTT stays");
        assert_eq!(smaller(201), Cause::Radio, "W falls, RTT rises");
    }

    #[test]
    fn while_the_window_stays_the_newest_delay_is_compared_with_the_one_before_the_change() {
        // Segments 2 and 3 left under the same window; 3 takes 110 ms.
        let mut sender = slow_start_of_one("ndg", 95);
        sender.wait(ms(15)).ack(3);
        assert_eq!(judged(&mut sender), Cause::Congestion);
    }

    #[test]
    fn before_the_first_change_it_is_congestion() {
        let mut sender = BareSender::new("reno+ndg").under_way(10.0, 8.0, ms(100));
        sender.wait(ms(100)).ack(1);
        assert_eq!(judged(&mut sender), Cause::Congestion);
    }
}
