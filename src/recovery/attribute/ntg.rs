//! Normalised throughput gradient (Wang and Crowcroft 1991, "Tri-S"; Ni et al. 2002, §3.2). Checks whether a
//! larger window still increases the throughput.
//!
//! With T = W/RTT, the gradient of the last change of the window is TG = (T_i − T_j) / (W_i − W_j). NTG is TG
//! divided by the gradient of the first packet, 1/RTT_1. NTG < 1/2 means that the additional segment brings
//! less than half the throughput of the first one. It waits in a queue, so a loss counts as congestion.
//! Otherwise a loss is attributed to the radio link.
//!
//! Choice: The same quotient applies when the window shrinks. If one segment less costs less than half the
//! throughput of the first segment, that segment was queued.
//!
//! Choice: NTG is computed for every sample, from the newest sample and the last one measured under another
//! window. While the window does not change, W_j stays the same. Before the first change, every loss counts
//! as congestion.

use airwire::Cause;

use super::Attribute;
use super::sample::{Change, Monitor};
use crate::recovery::{Ack, View};

#[derive(Debug, Default)]
pub(crate) struct Ntg {
    monitor: Monitor,
    change: Change,
    /// RTT_1 in seconds.
    first_rtt: Option<f64>,
    judgement: Option<(Cause, &'static str)>,
}

impl Attribute for Ntg {
    fn on_sent(&mut self, view: &View<'_>) {
        self.monitor.on_sent(view);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        let Some(i) = self.monitor.on_ack(view, ack) else { return };
        let first_rtt = *self.first_rtt.get_or_insert(i.rtt);
        let Some((j, i)) = self.change.on_sample(i) else { return };
        let tg = (i.throughput() - j.throughput()) / (i.w - j.w);
        let ntg = tg * first_rtt;
        self.judgement = Some(if ntg < 0.5 {
            (Cause::Congestion, "NTG < 1/2: a larger window does not increase the throughput")
        } else {
            (Cause::Radio, "NTG >= 1/2: the throughput follows the window")
        });
    }

    fn cause(&mut self, _view: &View<'_>, _lost: u64) -> Option<(Cause, &'static str)> {
        self.judgement.or(Some((Cause::Congestion, "no change of the window measured yet")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::attribute::tests::{judged, slow_start_of_one, window_of_four_becomes_two};

    #[test]
    fn throughput_gain_below_half_is_congestion() {
        // RTT_1 = 100 ms and T = 10/s. With a second segment, T = 2/RTT and NTG = (2/RTT − 10)·0.1.
        let after = |rtt| judged(&mut slow_start_of_one("ntg", rtt));
        assert_eq!(after(100), Cause::Radio, "NTG = 1");
        assert_eq!(after(133), Cause::Radio, "NTG = 0.504");
        assert_eq!(after(134), Cause::Congestion, "NTG = 0.493");
        assert_eq!(after(300), Cause::Congestion, "NTG = −0.33: the throughput has fallen");
    }

    #[test]
    fn unchanged_throughput_of_smaller_window_is_congestion() {
        // The window shrinks from 4 to 2, RTT_1 = 200 ms and T_j = 20/s, so NTG = (2/RTT − 20)/(−2)·0.2.
        let after = |rtt| judged(&mut window_of_four_becomes_two("ntg", rtt));
        assert_eq!(after(100), Cause::Congestion, "NTG = 0");
        assert_eq!(after(200), Cause::Radio, "NTG = 1");
    }
}
