//! Normalised delay gradient (Jain 1989; Ni et al. 2002, §3.2). Checks whether the delay rises and falls with
//! the window.
//!
//! NDG = ((RTT_i − RTT_j) / (RTT_i + RTT_j)) / ((W_i − W_j) / (W_i + W_j)). Only its sign matters. A positive
//! NDG means that delay and window change in the same direction. Jain would then reduce the window, so a loss
//! counts as congestion. Otherwise Jain would increase the window, and a loss is attributed to the radio
//! link.
//!
//! Choice: As for [`ntg`](super::Ntg), i is the newest sample and j is the last sample under another window.
//! Before the first change of the window, every loss counts as congestion. No threshold applies: even the
//! smallest change of the RTT has a sign.
//!
//! Limitation: A full queue cannot add more delay. If the window keeps growing, the judge attributes a loss
//! to the radio link at the very moment when the queue overflows.

use airwire::Cause;

use super::Attribute;
use super::sample::{Change, Monitor};
use crate::recovery::{Ack, View};

#[derive(Debug, Default)]
pub(crate) struct Ndg {
    monitor: Monitor,
    change: Change,
    judgement: Option<(Cause, &'static str)>,
}

impl Attribute for Ndg {
    fn on_sent(&mut self, view: &View<'_>) {
        self.monitor.on_sent(view);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        let Some(i) = self.monitor.on_ack(view, ack) else { return };
        let Some((j, i)) = self.change.on_sample(i) else { return };
        // The two sums are positive and the window has changed, so the signs of the differences decide.
        let positive = (i.rtt > j.rtt && i.w > j.w) || (i.rtt < j.rtt && i.w < j.w);
        self.judgement = Some(if positive {
            (Cause::Congestion, "NDG > 0: the delay follows the window")
        } else {
            (Cause::Radio, "NDG <= 0: the delay does not follow the window")
        });
    }

    fn cause(&mut self, _view: &View<'_>, _lost: u64) -> Option<(Cause, &'static str)> {
        self.judgement.or(Some((Cause::Congestion, "no change of the window measured yet")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::attribute::tests::{judged, ms, slow_start_of_one, window_of_four_becomes_two};

    #[test]
    fn loss_is_congestion_if_rtt_follows_window() {
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
    fn newest_rtt_compares_with_rtt_of_previous_window() {
        // Segments 2 and 3 were sent under the same window. Segment 3 takes 110 ms.
        let mut sender = slow_start_of_one("ndg", 95);
        sender.wait(ms(15)).ack(3);
        assert_eq!(judged(&mut sender), Cause::Congestion);
    }
}
