//! The Eifel response (RFC 4015 §3.1): the reaction to an episode that any detection has found to be
//! spurious.
//!
//! Choice: RFC 4015 responds to spurious timeouts and leaves spurious fast retransmissions open (§1). Here,
//! the response to both restores cwnd and ssthresh in the same way. But duplicate ACKs release new segments,
//! which FlightSize includes. Therefore cwnd never exceeds its old value, and pipe_prev excludes segments
//! that Limited Transmit sent. The timer is adapted only after a timeout, because a fast retransmission does
//! not depend on the timer.

use airwire::time::Duration;

use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, View};

/// Step (0): the state recorded when loss recovery begins, before cwnd and ssthresh change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    pipe_prev: f64,
    /// The larger of cwnd and FlightSize.
    window_prev: f64,
    srtt_prev: Option<Duration>,
    rttvar_prev: Duration,
    by_timeout: bool,
}

impl Before {
    pub(super) fn new(view: &View<'_>, before: &Congestion, kind: LossKind) -> Self {
        let flight_size = view.flight_size();
        Self {
            pipe_prev: flight_size.max(before.ssthresh),
            window_prev: flight_size.max(before.cwnd),
            srtt_prev: view.rtt.srtt().map(|srtt| srtt + view.rtt.style().granularity() * 2),
            rttvar_prev: view.rtt.rttvar(),
            by_timeout: kind == LossKind::Timeout,
        }
    }

    /// Called when the same episode reduces the window again before anything was acknowledged.
    pub(super) fn on_further_reduction(&mut self, kind: LossKind) {
        self.by_timeout |= kind == LossKind::Timeout;
    }

    /// Step (9): returns the window to restore. An ECN echo is a sign of congestion, so the reduction stays.
    pub(super) fn reversed(&self, view: &View<'_>, ack: &Ack) -> Option<Reduction> {
        if ack.ece {
            return None;
        }
        let flight_size = view.segments(view.flight.outstanding());
        let initial_window = view.rules.initial.window.segments(view.smss);
        let cwnd = flight_size + view.segments(ack.acked).min(initial_window);
        Some(Reduction { cwnd: cwnd.min(self.window_prev).max(1.0), ssthresh: self.pipe_prev })
    }

    /// Returns the data for step (11) if the episode includes a timeout, which shows that the timer was
    /// wrong.
    pub(super) fn adaptation(&self, view: &View<'_>) -> Option<Adaptation> {
        let srtt_prev = self.srtt_prev.filter(|_| self.by_timeout)?;
        Some(Adaptation { srtt_prev, rttvar_prev: self.rttvar_prev, new_from: view.flight.max() })
    }
}

/// Step (11): a more conservative timer, from the first sample of the current path. Samples of the delayed
/// data would make the timer far too slow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adaptation {
    srtt_prev: Duration,
    rttvar_prev: Duration,
    /// Data from this offset on was unsent when the timeout turned out to be spurious.
    new_from: u64,
}

impl Adaptation {
    /// Returns SRTT and RTTVAR after the first RTT sample of new data.
    pub(super) fn with_sample(&self, view: &View<'_>, ack: &Ack) -> Option<(Duration, Duration)> {
        let only_new = view.flight.una() - ack.acked.bytes >= self.new_from;
        let sample = ack.rtt.filter(|_| only_new)?;
        Some((self.srtt_prev.max(sample), self.rttvar_prev.max(sample / 2)))
    }
}
