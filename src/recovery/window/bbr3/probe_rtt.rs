//! The minimum round-trip time, and ProbeRTT, the state that measures it (§5.3.4, §5.5.7).

use airwire::time::{Duration, Instant};

use super::{AckPhase, Bbr3, ProbeBw, SmallFlight, State};
use crate::recovery::View;
use crate::recovery::rate::RateSample;

const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, view: &View<'_>, sample: &RateSample) {
        let (now, known) = (view.now, &mut self.min_rtt);
        known.probe_expired = now > known.probe_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (known.probe_min_delay.is_none_or(|delay| rtt < delay) || known.probe_expired)
        {
            known.probe_min_delay = Some(rtt);
            known.probe_min_stamp = now;
        }
        let expired = now > known.stamp + MIN_RTT_FILTER_LEN;
        let is_less = |delay: Duration| known.min_rtt.is_none_or(|min_rtt| delay < min_rtt);
        if let Some(delay) = known.probe_min_delay.filter(|delay| is_less(*delay) || expired) {
            known.min_rtt = Some(delay);
            known.stamp = known.probe_min_stamp;
        }
    }

    /// CheckProbeRTT(). Returns whether the sender is in ProbeRTT, where rate samples say nothing about the
    /// path.
    pub(super) fn check_probe_rtt(&mut self, view: &View<'_>, sample: &RateSample, cwnd: &mut f64) -> bool {
        let probes = |state| matches!(state, State::ProbeRtt { .. });
        if !probes(self.state) && self.min_rtt.probe_expired && !self.idle_restart {
            self.state = State::ProbeRtt { small: None };
            self.save_cwnd(view);
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        let probed = probes(self.state);
        if let State::ProbeRtt { small } = self.state {
            self.handle_probe_rtt(view, sample, small, cwnd);
        }
        if sample.measured.is_some_and(|measured| measured.delivered > 0.0) {
            self.idle_restart = false;
        }
        probed
    }

    pub(super) fn handle_probe_rtt(
        &mut self,
        view: &View<'_>,
        sample: &RateSample,
        small: Option<SmallFlight>,
        cwnd: &mut f64,
    ) {
        let Some(mut flight) = small else {
            if sample.totals.in_flight <= self.probe_rtt_cwnd() {
                let until = view.now + PROBE_RTT_DURATION;
                self.state = State::ProbeRtt { small: Some(SmallFlight { until, round_done: false }) };
                self.start_round();
            }
            return;
        };
        flight.round_done |= self.rounds.start;
        self.state = State::ProbeRtt { small: Some(flight) };
        let done = Some(flight).filter(|flight| flight.round_done);
        if self.probe_rtt_is_over(view.now, done) {
            *cwnd = cwnd.max(self.prior_cwnd);
        }
    }

    /// CheckProbeRTTDone(): returns whether ProbeRTT is over and the old window applies again.
    pub(super) fn probe_rtt_is_over(&mut self, now: Instant, small: Option<SmallFlight>) -> bool {
        if small.is_none_or(|small| now <= small.until) {
            return false;
        }
        self.min_rtt.probe_min_stamp = now;
        self.congestion.reset_shortterm();
        if self.full_bw.reached {
            self.start_down(now);
            self.state = State::ProbeBw(ProbeBw::Cruise);
        } else {
            self.state = State::Startup;
        }
        true
    }
}
