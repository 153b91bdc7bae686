//! The input of the RTT-based judges (Ni et al. 2002, §3): an RTT sample and the window under which it was
//! measured.
//!
//! Ni et al. 2002 describe a monitored packet P_i with W_i and RTT_i. Here, every ACK that gives an RTT
//! sample provides one.
//!
//! Choice: W_i is the window when P_i was sent, because that window filled the queue in which P_i waited.
//! Only the used part of the window counts: min(cwnd, FlightSize), in whole segments. So an application that
//! writes little does not look like a network with long queues, and growth by a fraction of a segment is not
//! a change.

use std::collections::VecDeque;

use airwire::time::Instant;

use crate::recovery::{Ack, View};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sample {
    /// W_i in segments, at least one.
    pub(super) w: f64,
    /// RTT_i in seconds, greater than zero.
    pub(super) rtt: f64,
}

impl Sample {
    /// Returns T_i in segments per second.
    pub(super) fn throughput(&self) -> f64 {
        self.w / self.rtt
    }
}

/// Records the window at each transmission until the segment's round trip is over.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    sent: VecDeque<(Instant, f64)>,
}

impl Monitor {
    pub(super) fn on_sent(&mut self, view: &View<'_>) {
        let used = view.segments(view.flight.outstanding()).min(view.cc.cwnd);
        let w = used.floor().max(1.0);
        // Segments sent at the same instant belong to the same window.
        match self.sent.back_mut() {
            Some((at, known)) if *at == view.now => *known = w,
            _ => self.sent.push_back((view.now, w)),
        }
    }

    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Sample> {
        let sample = ack.rtt.and_then(|rtt| {
            let sent_at = view.now - rtt;
            while self.sent.get(1).is_some_and(|(at, _)| *at <= sent_at) {
                self.sent.pop_front();
            }
            let (_, w) = *self.sent.front()?;
            Some(Sample { w, rtt: rtt.as_secs_f64().max(1e-9) })
        });
        // No outstanding segment was sent before the head, so earlier entries are obsolete.
        let oldest = view.flight.head().map(|head| head.first_sent);
        while self.sent.front().is_some_and(|(at, _)| oldest.is_none_or(|oldest| *at < oldest)) {
            self.sent.pop_front();
        }
        sample
    }
}

/// The two samples around the last change of the window: the last one under the old window and the newest one
/// under the new window.
#[derive(Debug, Default)]
pub(super) struct Change {
    before: Option<Sample>,
    latest: Option<Sample>,
}

impl Change {
    /// Adds a sample. Returns `None` until the window has changed once.
    pub(super) fn on_sample(&mut self, sample: Sample) -> Option<(Sample, Sample)> {
        let last = self.latest.replace(sample);
        if last.is_some_and(|last| last.w != sample.w) {
            self.before = last;
        }
        Some((self.before?, sample))
    }
}
