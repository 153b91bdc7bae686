//! Segment-in-Flight Estimation exactly as printed in Pan et al. 2004, §4.2. It is the baseline for the
//! choices of `sifest`.
//!
//! `sifest_` grows by one with each new data packet, and a new ACK subtracts what it covers. It is zero after
//! a timeout, or when the sender "has been idle for more than one rtt". When `sifest_ - 1` duplicate ACKs or
//! the fixed threshold are reached "and if the most unacknowledged packet has not been resent in the last
//! rtt", that packet is retransmitted at once, as a fast retransmission.
//!
//! Time alone decides both conditions. A sender is idle if it has sent nothing for one smoothed RTT, and a
//! retransmission is overdue if it is older than that. Nothing prevents a retransmission: neither `recover`
//! (RFC 6582 §3.2), nor a go-back-N pass after a timeout, nor duplicate ACKs caused by spurious
//! retransmissions.
//!
//! The algorithm equals `sifest` with five of its parameters. As a separate file, it can be compared with the
//! paper line by line.
//!
//! Choice: Retransmissions after a timeout count, because the paper excludes only copies "triggered by
//! schemes other than a timeout".
//!
//! Choice: "rtt" is the smoothed RTT.
//!
//! Choice: A duplicate ACK is required, because other ACKs are not a sign of a loss.
//!
//! Choice: With a scoreboard, IsLost() of RFC 6675 applies in addition.

use airwire::time::Instant;

use super::sifest::round_trip;
use super::{Detect, ThreeDupacks, Verdict};
use crate::recovery::{Ack, Transmission, TransmissionKind, View};

#[derive(Debug, Default)]
pub(crate) struct SifestLiteral {
    three_dupacks: ThreeDupacks,
    /// `sifest_`: the estimated number of segments in flight.
    sifest: u64,
    /// Whether a timeout began the go-back-N pass, and not duplicate ACKs (Tahoe).
    timed_out: bool,
    /// Time of the last transmission.
    last_sent: Option<Instant>,
}

impl Detect for SifestLiteral {
    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        // "or the sender has been idle for more than one rtt": the sender then probes the network again.
        if self.last_sent.is_some_and(|at| view.now.saturating_since(at) > round_trip(view)) {
            self.sifest = 0;
        }
        self.last_sent = Some(view.now);
        let counts = match transmission.kind {
            TransmissionKind::New => true,
            TransmissionKind::Timeout => self.timed_out,
            _ => false,
        };
        self.sifest += u64::from(counts);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        if ack.advances() {
            self.sifest = self.sifest.saturating_sub(ack.acked.segments);
        }
        let by_default = self.three_dupacks.on_ack(view, ack);
        let Some(head) = view.flight.head().filter(|_| ack.duplicate) else { return by_default };
        let dupacks = u64::from(view.cc.dupacks());
        let enough = dupacks + 1 >= self.sifest || dupacks >= u64::from(view.rules.detection.dup_thresh);
        let resent_lately =
            head.transmissions > 1 && view.now.saturating_since(head.last_sent) < round_trip(view);
        match by_default {
            _ if head.transmissions > 1 && enough && !resent_lately => {
                Verdict::RetransmittedHead { new_episode: true, why: "not retransmitted in the last RTT" }
            }
            Verdict::Below { .. } => by_default,
            _ if !enough || resent_lately => Verdict::Nothing,
            _ => Verdict::HeadDespiteRecover { why: "sifest - 1 duplicate ACKs" },
        }
    }

    fn on_episode(&mut self, _view: &View<'_>) {
        self.timed_out = false;
    }

    fn on_timeout(&mut self, _view: &View<'_>) {
        self.sifest = 0;
        self.timed_out = true;
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.rules.detection.dup_thresh.min(self.sifest.saturating_sub(1).max(1) as u32)
    }
}

#[cfg(test)]
mod tests {
    use crate::recovery::testing::{BareSender, RTT, resent};

    fn sender(recipe: &str, cwnd: f64) -> BareSender {
        let mut sender = BareSender::new(recipe).under_way(cwnd, 64.0, RTT);
        sender.wait(RTT / 2);
        sender
    }

    #[test]
    fn small_window_needs_fewer_duplicate_acks() {
        for (window, needed) in [(2, 1), (3, 2), (4, 3), (9, 3)] {
            let mut sender = sender("newreno+sifest-literal", f64::from(window));
            assert_eq!(sender.dupacks(needed - 1), "", "window {window}");
            assert_eq!(resent(&sender.dupacks(1), 1), 1, "window {window}");
        }
    }

    /// `sifest` waits until a segment sent after the retransmission arrives. Here, time alone decides.
    #[test]
    fn queued_retransmission_is_repeated_after_round_trip() {
        let repetitions = |recipe| {
            let mut sender = sender(recipe, 8.0);
            assert_eq!(sender.dupacks(3), "1r");
            // A duplicate ACK from a segment sent before the retransmission.
            resent(&sender.wait(RTT + RTT / 2).dupacks(1), 1)
        };
        assert_eq!(repetitions("newreno+sifest-literal"), 1);
        assert_eq!(repetitions("newreno+sifest"), 0);
    }

    /// `sifest` allows for duplicate ACKs caused by spurious retransmissions.
    #[test]
    fn spurious_retransmission_is_mistaken_for_loss() {
        let retransmissions = |recipe| {
            let mut sender = sender(recipe, 4.0);
            assert_eq!(sender.timeout(), "1r");
            sender.wait(RTT).ack(1);
            // 2r fills the hole, so 3r is spurious.
            assert_eq!(sender.wait(RTT).ack(4), "5 6");
            resent(&sender.dupacks(1), 5)
        };
        assert_eq!(retransmissions("newreno+sifest-literal"), 1);
        assert_eq!(retransmissions("newreno+sifest"), 0);
    }

    /// Eight segments are in flight, and nothing was sent for more than one round trip, so the estimate
    /// starts again at zero.
    #[test]
    fn sender_waiting_for_acks_counts_as_idle() {
        let retransmissions = |recipe| {
            let mut sender = sender(recipe, 8.0);
            assert_eq!(sender.wait(RTT * 2).ack(1), "9 10");
            resent(&sender.dupacks(1), 2)
        };
        assert_eq!(retransmissions("newreno+sifest-literal"), 1);
        assert_eq!(retransmissions("newreno+sifest"), 0);
    }
}
