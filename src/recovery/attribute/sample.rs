//! What the RTT-based judges look at (P1 §3): a round-trip time, and the window under which it was measured.
//!
//! P1 speaks of a monitored packet P_i with W_i and RTT_i. Here every ACK that measures a round trip is one.
//!
//! Choice: W_i is the window when P_i left, which filled the queue that P_i then waited in, not the one when its ACK
//! comes. It counts as far as it was in use: min(cwnd, FlightSize), in whole segments, so that an application that
//! writes little is not taken for a network that holds much, and growth by fractions of a segment is no change.

use std::collections::VecDeque;

use airwire::time::Instant;

use crate::recovery::{Ack, View};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sample {
    /// W_i, at least one segment.
    pub(super) w: f64,
    /// RTT_i in seconds, above zero.
    pub(super) rtt: f64,
}

impl Sample {
    /// T_i, in segments per second.
    pub(super) fn throughput(&self) -> f64 {
        self.w / self.rtt
    }
}

/// Remembers the window of each departure until its round trip is over.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    left: VecDeque<(Instant, f64)>,
}

impl Monitor {
    pub(super) fn on_sent(&mut self, view: &View<'_>) {
        let used = view.segments(view.flight.outstanding()).min(view.cc.cwnd);
        let w = used.floor().max(1.0);
        // Everything that leaves at one moment leaves under one window.
        match self.left.back_mut() {
            Some((at, known)) if *at == view.now => *known = w,
            _ => self.left.push_back((view.now, w)),
        }
    }

    pub(super) fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Sample> {
        let sample = ack.rtt.and_then(|rtt| {
            let sent = view.now - rtt;
            while self.left.get(1).is_some_and(|(at, _)| *at <= sent) {
                self.left.pop_front();
            }
            let (_, w) = *self.left.front()?;
            Some(Sample { w, rtt: rtt.as_secs_f64().max(1e-9) })
        });
        // Nothing that is still outstanding left before the head did.
        let oldest = view.flight.head().map(|head| head.first_sent);
        while self.left.front().is_some_and(|(at, _)| oldest.is_none_or(|oldest| *at < oldest)) {
            self.left.pop_front();
        }
        sample
    }
}

/// The last change of the window: the last sample of the window before it, and the newest of the one after it.
#[derive(Debug, Default)]
pub(super) struct Change {
    before: Option<Sample>,
    latest: Option<Sample>,
}

impl Change {
    /// `None` until the window has changed once.
    pub(super) fn on_sample(&mut self, sample: Sample) -> Option<(Sample, Sample)> {
        let last = self.latest.replace(sample);
        if last.is_some_and(|last| last.w != sample.w) {
            self.before = last;
        }
        Some((self.before?, sample))
    }
}
