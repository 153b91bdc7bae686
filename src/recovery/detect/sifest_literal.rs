//! Segment-in-Flight Estimation as P0 §4.2 prints it, without a thought of ours: what `sifest` beside it makes of the
//! same paragraphs is measured against this.
//!
//! `sifest_` grows by one with each new data packet, a new ACK takes off what it covers, and it is zero after a timeout
//! or when the sender "has been idle for more than one rtt". On a duplicate ACK, with `sifest_ - 1` of them or the fixed
//! threshold, "and if the most unacknowledged packet has not been resent in the last rtt", that packet is sent again at
//! once, as a fast retransmit does it.
//!
//! Each of these is read with the clock alone: idle is a sender that has sent nothing for a smoothed round trip, and a
//! copy that is older than that is overdue. Nothing holds a retransmission back: neither `recover` (RFC 6582 §3.2), nor a
//! pass after a timeout, nor duplicate ACKs of copies sent in vain.
//!
//! It is `sifest` with five of its parameters, in a file that can be read beside the paper; a test holds the two together.
//!
//! Choice: what a timeout sends again counts, since the paper excludes only copies "triggered by schemes other than a
//! timeout". Choice: the rtt is the smoothed one. Choice: it takes a duplicate ACK, as an ACK that brings none is no
//! sign of a loss. Choice: with a scoreboard RFC 6675's IsLost() is asked too.

use airwire::time::{Duration, Instant};

use super::{Detect, ThreeDupacks, Verdict};
use crate::recovery::{Ack, Departure, Transmission, View};

/// Segment-in-Flight Estimation by the paper's letter (P0 §4.2).
#[derive(Debug, Default)]
pub(crate) struct SifestLiteral {
    ordinary: ThreeDupacks,
    /// `sifest_`: the estimated number of segments in the path.
    sifest: u64,
    /// A timeout has begun the pass over the window, not duplicate ACKs (Tahoe).
    timed_out: bool,
    /// When the last segment left.
    left: Option<Instant>,
}

impl Detect for SifestLiteral {
    fn name(&self) -> &'static str {
        "sifest-literal"
    }

    fn on_sent(&mut self, view: &View<'_>, departure: &Departure) {
        // "or the sender has been idle for more than one rtt": it is going to probe the network again.
        if self.left.is_some_and(|left| view.now.saturating_since(left) > round_trip(view)) {
            self.sifest = 0;
        }
        self.left = Some(view.now);
        let counts = match departure.kind {
            Transmission::New => true,
            Transmission::Timeout => self.timed_out,
            _ => false,
        };
        self.sifest += u64::from(counts);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        if ack.advances() {
            self.sifest = self.sifest.saturating_sub(ack.acked.segments);
        }
        let ordinary = self.ordinary.on_ack(view, ack);
        let Some(head) = view.flight.head().filter(|_| ack.duplicate) else { return ordinary };
        let dupacks = u64::from(view.cc.dupacks());
        let enough = dupacks + 1 >= self.sifest || dupacks >= u64::from(view.knobs.dup_thresh);
        let resent_lately =
            head.transmissions > 1 && view.now.saturating_since(head.last_sent) < round_trip(view);
        match ordinary {
            _ if head.transmissions > 1 && enough && !resent_lately => {
                Verdict::HeadAgain { new_event: true, why: "not retransmitted in the last RTT" }
            }
            Verdict::Below { .. } => ordinary,
            _ if !enough || resent_lately => Verdict::Nothing,
            _ => Verdict::HeadBeyondDoubt { why: "sifest - 1 duplicate ACKs" },
        }
    }

    fn on_event(&mut self, _view: &View<'_>) {
        self.timed_out = false;
    }

    fn on_timeout(&mut self, _view: &View<'_>) {
        self.sifest = 0;
        self.timed_out = true;
    }

    fn dup_thresh(&self, view: &View<'_>) -> u32 {
        view.knobs.dup_thresh.min(self.sifest.saturating_sub(1).max(1) as u32)
    }
}

fn round_trip(view: &View<'_>) -> Duration {
    view.rtt.srtt().unwrap_or_else(|| view.rtt.rto().get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::BareSender;

    const RTT: Duration = Duration::from_millis(100);

    fn sender(recipe: &str, cwnd: f64) -> BareSender {
        let mut sender = BareSender::new(recipe).under_way(cwnd, 64.0, RTT);
        sender.wait(RTT / 2);
        sender
    }

    fn resent(sent: &str, segment: u64) -> usize {
        sent.split(' ').filter(|word| *word == format!("{segment}r")).count()
    }

    #[test]
    fn a_window_of_two_needs_one_duplicate_ack_and_a_wide_one_three() {
        for (window, needed) in [(2, 1), (3, 2), (4, 3), (9, 3)] {
            let mut sender = sender("newreno+sifest-literal", f64::from(window));
            assert_eq!(sender.dupacks(needed - 1), "", "window {window}");
            assert_eq!(resent(&sender.dupacks(1), 1), 1, "window {window}");
        }
    }

    /// `sifest` waits for something that left after the copy; here the clock is all.
    #[test]
    fn a_copy_behind_a_queue_is_sent_again_by_the_clock() {
        let copies = |recipe| {
            let mut sender = sender(recipe, 8.0);
            assert_eq!(sender.dupacks(3), "1r");
            // One that left before the copy.
            resent(&sender.wait(RTT + RTT / 2).dupacks(1), 1)
        };
        assert_eq!(copies("newreno+sifest-literal"), 1);
        assert_eq!(copies("newreno+sifest"), 0);
    }

    /// `sifest` allows for the duplicate ACKs of copies sent in vain.
    #[test]
    fn a_copy_sent_in_vain_is_taken_for_a_loss() {
        let taken_in = |recipe| {
            let mut sender = sender(recipe, 4.0);
            assert_eq!(sender.timeout(), "1r");
            sender.wait(RTT).ack(1);
            // 2r has filled the hole, and 3r arrives in vain.
            assert_eq!(sender.wait(RTT).ack(4), "5 6");
            resent(&sender.dupacks(1), 5)
        };
        assert_eq!(taken_in("newreno+sifest-literal"), 1);
        assert_eq!(taken_in("newreno+sifest"), 0);
    }

    /// Eight in the path, and nothing has left for longer than a round trip: the estimate begins anew.
    #[test]
    fn a_sender_that_waits_for_acks_is_idle() {
        let after_waiting = |recipe| {
            let mut sender = sender(recipe, 8.0);
            assert_eq!(sender.wait(RTT * 2).ack(1), "9 10");
            resent(&sender.dupacks(1), 2)
        };
        assert_eq!(after_waiting("newreno+sifest-literal"), 1);
        assert_eq!(after_waiting("newreno+sifest"), 0);
    }
}
