//! Eifel (P2 §3.1): the timestamp that an ACK echoes tells whether it answers the original or the copy sent again.
//!
//! Detection is that of RFC 3522, in `spurious.rs`. The first acceptable ACK after the retransmission that began loss
//! recovery decides, whether that was a timeout or a fast retransmit. Nothing that is sent again later in the same
//! recovery is judged, not even a timeout in the middle of it: there something was really lost, and FlightSize is full
//! of it. As long as nothing is acknowledged, further timeouts belong to the first: RetransmitTS and what is to be
//! restored stay the same. The response is that of RFC 4015, in `response.rs`.
//!
//! It needs nothing from the receiver but RFC 7323's timestamps: any kernel will do. Without them nothing is ever
//! undone, and the trace says so once. D-SACK is no part of it, except that RFC 3522 step (5) uses it to rule out that
//! all ACKs of a window were lost: that is why an ACK of everything outstanding proves something only once the peer is
//! known to report duplicates. A single outstanding segment can therefore hardly ever be judged.
//!
//! Deviation: step (10) of RFC 4015 is about RFC 2861, which this sender does not implement.

use super::response::{Adaptation, Before};
use super::{Restore, Undo};
use crate::recovery::spurious::EifelDetection;
use crate::recovery::window::LossKind;
use crate::recovery::{Ack, Congestion, Departure, Entered, Phase, View};

/// The Eifel algorithm (P2 §3.1; RFC 3522, RFC 4015).
#[derive(Debug, Default)]
pub(crate) struct Eifel {
    detection: EifelDetection,
    before: Option<Before>,
    adaptation: Option<Adaptation>,
}

impl Undo for Eifel {
    fn name(&self) -> &'static str {
        "eifel"
    }

    fn needs_timestamps(&self) -> bool {
        true
    }

    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        if self.detection.is_pending(view) {
            self.before.iter_mut().for_each(|first| first.on_further_reduction(kind));
            return;
        }
        // The first acceptable ACK of this loss recovery has been seen already.
        if matches!(before.phase(), Phase::Recovery | Phase::Restarted) {
            return;
        }
        let entered = match kind {
            LossKind::Timeout => Entered::ByTimeout,
            LossKind::Duplicates | LossKind::EcnEcho => Entered::ByDuplicates,
        };
        self.detection.on_event(view, entered);
        self.before = Some(Before::new(view, before, kind));
    }

    fn on_sent(&mut self, _view: &View<'_>, departure: &Departure) {
        self.detection.on_sent(departure);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        let timer = self.adaptation.and_then(|adaptation| adaptation.with_sample(view, ack));
        if timer.is_some() {
            self.adaptation = None;
        }
        let spurious = self.detection.on_ack(view, ack);
        if let Some((entered, before)) = spurious.zip(self.before) {
            self.adaptation = before.adaptation(view).or(self.adaptation);
            let why = match entered {
                Entered::ByTimeout => "older timestamp echo: the timeout was spurious",
                Entered::ByDuplicates => "older timestamp echo: the fast retransmission was spurious",
            };
            let window = before.reversed(view, ack);
            // Step (8) does not depend on what happens to the window.
            let resume = window.is_some() || entered == Entered::ByTimeout;
            return Some(Restore { window, resume, reordered: false, timer, why });
        }
        timer.map(|timer| Restore {
            window: None,
            resume: false,
            reordered: false,
            timer: Some(timer),
            why: "first sample after a spurious timeout",
        })
    }
}

#[cfg(test)]
mod tests;
