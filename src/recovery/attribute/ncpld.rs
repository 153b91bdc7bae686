//! Non-congestion packet loss detection (Samaraweera 1999; P1 §3.2): the delay at the loss against the delay at
//! the knee of Jain's curve (P1 Fig. 2), up to which more load costs hardly any delay.
//!
//! If the RTT is above that of the knee, it is congestion, else the radio. Before the first sample it is congestion.
//!
//! Choice: P1 says no more than "compares it to the measured delay when there is no congestion". The knee is Jain's
//! term, and so is its definition here: where the power, throughput over delay, is greatest. So each window has its
//! mean round-trip time (a moving one, with the gain 1/8 of SRTT) and the power W/RTT²; the delay at the knee is the
//! mean of the window with the most power. Samaraweera's own estimate is not reproduced. P1 speaks of no tolerance, so
//! there is none; half of the samples at the knee itself are above their mean, and `ncpld-tolerance` allows for these.
//!
//! "At the loss" is the last sample before it.

use airwire::Cause;

use super::Attribute;
use super::sample::Monitor;
use crate::recovery::parameter::{Given, Parameter};
use crate::recovery::{Ack, Departure, View};

pub(crate) const TOLERANCE: Parameter = Parameter::number(
    "ncpld-tolerance",
    (0.0, 10.0, ""),
    "ncpld: congestion only if the delay exceeds the delay at the knee by more than this share (0)",
    "Ni et al. 2002, §3.2, which has none",
);

/// In segments; larger windows share the last mean.
const LARGEST: usize = 4096;

/// Non-congestion packet loss detection (Samaraweera 1999; P1 §3.2).
#[derive(Debug, Default)]
pub(crate) struct Ncpld {
    /// As a share of the delay at the knee.
    tolerance: f64,
    monitor: Monitor,
    latest_rtt: Option<f64>,
    /// The mean round-trip time under each window, in seconds.
    means: Vec<Option<f64>>,
}

impl Ncpld {
    pub(crate) fn new(given: &Given<'_>) -> Self {
        Self { tolerance: given.number(&TOLERANCE).unwrap_or_default(), ..Self::default() }
    }

    fn rtt_at_the_knee(&self) -> Option<f64> {
        let measured = self.means.iter().enumerate().filter_map(|(w, mean)| Some((w as f64, (*mean)?)));
        let power = |(w, rtt): &(f64, f64)| w / (rtt * rtt);
        measured.max_by(|a, b| power(a).total_cmp(&power(b))).map(|(_, rtt)| rtt)
    }
}

impl Attribute for Ncpld {
    fn name(&self) -> &'static str {
        "ncpld"
    }

    fn on_sent(&mut self, view: &View<'_>, _departure: &Departure) {
        self.monitor.on_sent(view);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) {
        let Some(sample) = self.monitor.on_ack(view, ack) else { return };
        self.latest_rtt = Some(sample.rtt);
        let window = (sample.w as usize).min(LARGEST);
        if self.means.len() <= window {
            self.means.resize(window + 1, None);
        }
        let mean = self.means[window].get_or_insert(sample.rtt);
        *mean += (sample.rtt - *mean) / 8.0;
    }

    fn cause(&mut self, _view: &View<'_>, _lost: u64) -> Option<(Cause, &'static str)> {
        let (Some(latest), Some(knee)) = (self.latest_rtt, self.rtt_at_the_knee()) else {
            return Some((Cause::Congestion, "no round-trip time measured yet"));
        };
        Some(if latest > knee * (1.0 + self.tolerance) {
            (Cause::Congestion, "the delay is above the delay at the knee")
        } else {
            (Cause::Radio, "the delay is not above the delay at the knee")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::attribute::tests::{judged, ms, window_of_four_becomes_two};
    use crate::recovery::testing::BareSender;

    #[test]
    fn the_knee_is_where_the_power_is_greatest() {
        // Power: 4/0.2² = 100 for the window of four, then 2/0.15² = 89, 2/0.1² = 200 or 2/0.201² = 50.
        let after = |rtt| judged(&mut window_of_four_becomes_two("ncpld", rtt));
        assert_eq!(after(150), Cause::Radio, "the knee is still at 200 ms");
        assert_eq!(after(100), Cause::Radio, "this is the knee");
        assert_eq!(after(201), Cause::Congestion, "above the first");
    }

    #[test]
    fn the_delay_at_the_knee_is_a_mean() {
        // Segment 5 took 100 ms. Segment 6, under the same window, brings the mean up by an eighth.
        let after = |rtt: u64| {
            let mut sender = window_of_four_becomes_two("ncpld", 100);
            sender.wait(ms(rtt - 100)).ack(6);
            sender
        };
        assert_eq!(judged(&mut after(108)), Cause::Congestion, "above 101 ms");
        // Segment 7 left when 5 arrived, at 100 ms: it takes 101 ms, and the mean has been 101 ms since.
        let mut sender = after(108);
        sender.wait(ms(93)).ack(7);
        assert_eq!(judged(&mut sender), Cause::Radio);
    }

    #[test]
    fn a_tolerance_is_a_share_of_the_delay_at_the_knee() {
        // The knee is at 200 ms.
        let after = |recipe, rtt| judged(&mut window_of_four_becomes_two(recipe, rtt));
        for (rtt, cause) in [(219, Cause::Radio), (221, Cause::Congestion)] {
            assert_eq!(after("ncpld+ncpld-tolerance=0.1", rtt), cause, "{rtt} ms");
            assert_eq!(after("ncpld", rtt), Cause::Congestion, "{rtt} ms");
        }
    }

    #[test]
    fn before_the_first_round_trip_it_is_congestion() {
        let mut sender = BareSender::new("reno+ncpld").under_way(10.0, 8.0, ms(100));
        assert_eq!(judged(&mut sender), Cause::Congestion);
    }
}
