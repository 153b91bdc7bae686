//! Non-congestion packet loss detection (Samaraweera 1999; Ni et al. 2002, §3.2). Compares the delay at a
//! loss with the delay at the knee of Jain's load-delay curve (Ni et al. 2002, Fig. 2). Below the knee, more
//! load adds hardly any delay.
//!
//! A loss counts as congestion if the RTT is above the delay at the knee. Otherwise it is attributed to the
//! radio link. Before the first RTT sample, every loss counts as congestion.
//!
//! Choice: Ni et al. 2002 only say that the algorithm compares the delay with the delay measured without
//! congestion. This implementation uses Jain's definition of the knee: the point with the highest power,
//! where power is throughput divided by delay. It keeps a smoothed RTT for each window size W (gain 1/8, as
//! for SRTT) and computes the power as W/RTT². The delay at the knee is the smoothed RTT of the window with
//! the highest power. Samaraweera's own estimator is not reproduced.
//!
//! Choice: Ni et al. 2002 mention no tolerance, so the default is zero. But half of the samples at the knee
//! exceed their own mean; `ncpld-tolerance` prevents wrong verdicts about such samples.
//!
//! Choice: The delay at a loss is the last RTT sample before the loss.

use airwire::Cause;

use super::Attribute;
use super::sample::Monitor;
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, View};

pub(crate) const TOLERANCE: Parameter = Parameter::number(
    "ncpld-tolerance",
    (0.0, 10.0, ""),
    "ncpld: congestion only if the delay exceeds the delay at the knee by more than this share (0)",
    "Ni et al. 2002, §3.2, which has none",
);

/// Largest window, in segments, with its own smoothed RTT. Larger windows share this entry.
const LARGEST: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Ncpld {
    /// Tolerance as a fraction of the delay at the knee.
    tolerance: f64,
    monitor: Monitor,
    latest_rtt: Option<f64>,
    /// Smoothed RTT in seconds for each window. The index is the window in segments.
    means: Vec<Option<f64>>,
}

impl Ncpld {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        Self { tolerance: arguments.number(&TOLERANCE).unwrap_or_default(), ..Self::default() }
    }

    fn rtt_at_the_knee(&self) -> Option<f64> {
        let measured = self.means.iter().enumerate().filter_map(|(w, mean)| Some((w as f64, (*mean)?)));
        let power = |(w, rtt): &(f64, f64)| w / (rtt * rtt);
        measured.max_by(|a, b| power(a).total_cmp(&power(b))).map(|(_, rtt)| rtt)
    }
}

impl Attribute for Ncpld {
    fn on_sent(&mut self, view: &View<'_>) {
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

    #[test]
    fn knee_has_greatest_power() {
        // The power is 4/0.2² = 100 for the window of four.
        // For the window of two, it is 2/0.15² = 89, 2/0.1² = 200 or 2/0.201² = 50.
        let after = |rtt| judged(&mut window_of_four_becomes_two("ncpld", rtt));
        assert_eq!(after(150), Cause::Radio, "the knee is still at 200 ms");
        assert_eq!(after(100), Cause::Radio, "the RTT is at the knee");
        assert_eq!(after(201), Cause::Congestion, "the RTT is above the knee at 200 ms");
    }

    #[test]
    fn knee_delay_is_smoothed_rtt() {
        // Segment 5 took 100 ms. Segment 6, under the same window, raises the smoothed RTT by an eighth of
        // the difference.
        let after = |rtt: u64| {
            let mut sender = window_of_four_becomes_two("ncpld", 100);
            sender.wait(ms(rtt - 100)).ack(6);
            sender
        };
        assert_eq!(judged(&mut after(108)), Cause::Congestion, "above 101 ms");
        // Segment 7 was sent when segment 5 arrived, at 100 ms. Its RTT of 101 ms equals the smoothed RTT.
        let mut sender = after(108);
        sender.wait(ms(93)).ack(7);
        assert_eq!(judged(&mut sender), Cause::Radio);
    }

    #[test]
    fn tolerance_is_fraction_of_knee_delay() {
        // The knee is at 200 ms.
        let after = |recipe, rtt| judged(&mut window_of_four_becomes_two(recipe, rtt));
        for (rtt, cause) in [(219, Cause::Radio), (221, Cause::Congestion)] {
            assert_eq!(after("ncpld+ncpld-tolerance=0.1", rtt), cause, "{rtt} ms");
            assert_eq!(after("ncpld", rtt), Cause::Congestion, "{rtt} ms");
        }
    }
}
