//! Eifel (Inamura et al. 2009, §3.1): the timestamp that an ACK echoes shows whether the ACK answers the
//! original segment or the retransmission.
//!
//! Detection follows RFC 3522 (`spurious.rs`). The first acceptable ACK after the retransmission that began
//! the episode decides, whether it began with a timeout or with a fast retransmission. Later retransmissions
//! of the same recovery are not judged, not even after a timeout during it: then data was really lost, and
//! FlightSize still includes it. While nothing is acknowledged, further timeouts belong to the first one:
//! RetransmitTS and the state to restore do not change. The response follows RFC 4015 (`response.rs`).
//!
//! The receiver only needs the timestamps of RFC 7323, which every kernel supports. Without them nothing is
//! ever undone, which the decision trace reports once. D-SACK matters only in RFC 3522 step (5), which
//! excludes the case that all ACKs of a window were lost. So an ACK of everything outstanding is proof only
//! if the peer is known to report duplicates. For the same reason, a single outstanding segment can hardly
//! ever be judged.
//!
//! Deviation: step (10) of RFC 4015 is not implemented, because it concerns RFC 2861, which this sender does
//! not implement.

use super::response::{Adaptation, Before};
use super::{Restore, Undo};
use crate::recovery::spurious::EifelDetection;
use crate::recovery::window::LossKind;
use crate::recovery::{Ack, Congestion, Entered, RecoveryState, Transmission, View};

#[derive(Debug, Default)]
pub(crate) struct Eifel {
    detection: EifelDetection,
    before: Option<Before>,
    adaptation: Option<Adaptation>,
}

impl Undo for Eifel {
    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        if self.detection.is_pending(view.flight) {
            self.before.iter_mut().for_each(|first| first.on_further_reduction(kind));
            return;
        }
        // The first acceptable ACK of this recovery has already arrived.
        if matches!(before.state(), RecoveryState::Recovery | RecoveryState::Loss) {
            return;
        }
        let entered = match kind {
            LossKind::Timeout => Entered::ByTimeout,
            LossKind::Detected | LossKind::EcnEcho => Entered::ByLossDetection,
        };
        self.detection.on_episode(view.flight, entered);
        self.before = Some(Before::new(view, before, kind));
    }

    fn on_sent(&mut self, transmission: &Transmission) {
        self.detection.on_sent(transmission);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        let timer = self.adaptation.and_then(|adaptation| adaptation.with_sample(view, ack));
        if timer.is_some() {
            self.adaptation = None;
        }
        let spurious = self.detection.on_ack(view.flight, ack);
        if let Some((entered, before)) = spurious.zip(self.before) {
            self.adaptation = before.adaptation(view).or(self.adaptation);
            let why = match entered {
                Entered::ByTimeout => "older timestamp echo: the timeout was spurious",
                Entered::ByLossDetection => "older timestamp echo: the fast retransmission was spurious",
            };
            let window = before.reversed(view, ack);
            // Step (8) applies even if the window is not restored.
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
