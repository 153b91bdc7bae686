//! JTCP (Wu, Chen: *JTCP: Jitter-Based TCP for Heterogeneous Wireless Networks*, IEEE JSAC 22 (2004)): the
//! jitter ratio over the last window distinguishes a loss that follows a growing queue from a random loss.
//!
//! Additive increase sends one more segment in each round trip. If the path is full, this segment queues, and
//! the last w segments take longer to arrive than they took to be sent. With S the time when a segment was
//! sent and R the time when it arrived,
//!
//! > Jr = ((R_n − R_(n−w)) − (S_n − S_(n−w))) / (R_n − R_(n−w))
//!
//! is the share of the window that queues. One segment is a share of 1/w. A loss found by duplicate ACKs is
//! congestion only if Jr exceeds k/w, with k = 1. Otherwise recovery is immediate: the segment is
//! retransmitted, and the window does not change.
//!
//! The paper itself was not available, only descriptions in other publications. Choice or reconstruction:
//! - R is the time when the ACK arrives, not the receiver's timestamp. So the return path counts too, and the
//!   receiver may be any kernel (each kernel's timestamp clock has its own granularity).
//! - ACKs of retransmissions are not samples. Growth is the same as in AIMD.
//! - Until there is a window of samples, every loss is congestion. Timeouts and ECN echoes always are.
//! - Immediate recovery sets ssthresh to cwnd, so the window grows by one segment per round trip afterwards.
//! - k counts the segments by which the window has grown in the meantime: one segment, or half a segment with
//!   delayed ACKs. More than half of these segments must queue. A sender alone on a full path, whose
//!   additional segments all queue, has Jr = 1/(w + 1), which would never exceed 1/w.

use std::collections::VecDeque;

use airwire::time::Instant;

use super::aimd::exit_window;
use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::{Ack, View};

/// k: a loss is congestion if more than this number of segments of a window queue.
const K: f64 = 1.0;

#[derive(Debug, Default)]
pub(crate) struct Jtcp {
    aimd: Aimd,
    /// The latest segments that have arrived, at most two windows.
    arrivals: VecDeque<Arrival>,
    /// cwnd after the last reduction.
    reduced_to: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Arrival {
    end: u64,
    /// S: time when it was sent.
    sent: Instant,
    /// R: time when its ACK arrived.
    acked: Instant,
    /// cwnd when its ACK arrived.
    cwnd: f64,
}

/// The measurement over the last window.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Jitter {
    /// Jr.
    ratio: f64,
    /// Number of segments by which cwnd has grown.
    grown: f64,
}

impl Jtcp {
    /// Returns the jitter over the last window. `None`: there is less than a window of samples.
    fn jitter(&self, view: &View<'_>) -> Option<Jitter> {
        // A drop at the queue makes room for the following segments, so the window ends at the hole.
        let una = view.flight.una();
        let last = self.arrivals.iter().rev().find(|arrival| arrival.end <= una)?;
        let window = (view.cc.cwnd * view.smss as f64) as u64;
        let first = self.arrivals.iter().rev().find(|first| first.end + window <= last.end)?;
        let received = (last.acked - first.acked).as_secs_f64();
        let sent = (last.sent - first.sent).as_secs_f64();
        (received > 0.0)
            .then(|| Jitter { ratio: (received - sent) / received, grown: last.cwnd - first.cwnd })
    }
}

impl Window for Jtcp {
    fn observe(&mut self, view: &View<'_>, ack: &Ack) {
        let Some(newest) = ack.newest.filter(|newest| !newest.resent) else { return };
        // A late SACK block reports a segment sent before the last known one.
        if self.arrivals.back().is_some_and(|last| newest.end <= last.end) {
            return;
        }
        self.arrivals.push_back(Arrival {
            end: newest.end,
            sent: newest.sent_at,
            acked: view.now,
            cwnd: view.cc.cwnd,
        });
        let kept = (2.0 * view.cc.cwnd * view.smss as f64) as u64;
        while self.arrivals.get(1).is_some_and(|second| second.end + kept <= newest.end) {
            self.arrivals.pop_front();
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        self.aimd.on_ack(view, ack)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        let quiet = self.jitter(view).is_some_and(|Jitter { ratio, grown }| {
            // In slow start half of the window is new, so growth counts for at most one segment. A window
            // that did not grow is treated like one with delayed ACKs.
            ratio * view.cc.cwnd <= K * grown.clamp(0.5, 1.0) / 2.0
        });
        self.reduced_to = None;
        if loss.kind == LossKind::Detected && quiet {
            let cwnd = view.cc.cwnd;
            self.reduced_to = Some(cwnd);
            return Reduction { cwnd, ssthresh: cwnd.max(view.rules.decrease.min_ssthresh) };
        }
        self.aimd.on_loss(view, loss)
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        exit_window(view, self.reduced_to.map_or(view.cc.ssthresh, |cwnd| cwnd.min(view.cc.ssthresh)))
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;
    use crate::recovery::Delivery;
    use crate::recovery::testing::{BareSender, RTT, TestView};

    /// How the path handles the additional segment of each round trip.
    #[derive(Clone, Copy)]
    enum Pipe {
        /// The segment arrives within the same round trip.
        Wide,
        /// The segment queues: the path delivers one segment per 10 ms.
        Full,
    }

    /// Returns a sender whose window of 10 has grown for four round trips.
    fn grown_sender(pipe: Pipe) -> BareSender {
        let mut sender = BareSender::new("jtcp").under_way(10.0, 5.0, RTT);
        sender.wait(RTT);
        for segment in 1..=45 {
            sender.ack(segment);
            sender.wait(match pipe {
                Pipe::Wide => RTT / sender.flight.outstanding().segments,
                Pipe::Full => Duration::from_millis(10),
            });
        }
        sender
    }

    #[test]
    fn jitter_ratio_is_queued_share_of_window() {
        let mut jtcp = Jtcp::default();
        // Ten segments that were sent within 100 ms arrive within 104 ms.
        for i in 0..=20_u64 {
            let sent = Instant::from_millis(100 + 10 * i);
            let acked = Instant::from_micros(300_000 + 10_400 * i);
            jtcp.arrivals.push_back(Arrival { end: 1000 * (i + 1), sent, acked, cwnd: 8.0 + 0.1 * i as f64 });
        }
        let mut sender = BareSender::new("jtcp").under_way(30.0, 5.0, RTT);
        sender.ack(21);
        let mut test = TestView::new(sender);
        test.cc.cwnd = 10.0;
        let view = test.view();
        let Jitter { ratio, grown } = jtcp.jitter(&view).unwrap();
        assert!((ratio - 4.0 / 104.0).abs() < 1e-12 && (grown - 1.0).abs() < 1e-12, "{ratio} {grown}");
        // 0.38 of ten segments queue, and one was added.
        let loss = Loss { kind: LossKind::Detected, window_when_sent: None };
        assert_eq!(jtcp.on_loss(&view, &loss), Reduction { cwnd: 10.0, ssthresh: 10.0 });
        // 10/110: 0.91 of the ten segments queue. Arrivals beyond the hole do not count.
        jtcp.arrivals.back_mut().unwrap().acked += Duration::from_millis(6);
        let beyond = Arrival { end: 22_000, ..*jtcp.arrivals.back().unwrap() };
        jtcp.arrivals.push_back(beyond);
        assert_eq!(jtcp.on_loss(&view, &loss), Reduction { cwnd: 5.0, ssthresh: 5.0 });
    }

    #[test]
    fn loss_with_delayed_acks_and_queue_halves_window() {
        let mut sender = BareSender::new("jtcp").under_way(10.0, 5.0, RTT);
        sender.wait(RTT);
        // One ACK for two segments every 20 ms.
        for segment in (2..=60).step_by(2) {
            sender.ack(segment);
            sender.wait(Duration::from_millis(20));
        }
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, flight / 2.0);
    }

    #[test]
    fn loss_without_jitter_keeps_window() {
        let mut sender = grown_sender(Pipe::Wide);
        let cwnd = sender.cc().cwnd;
        assert!(sender.dupacks(3).starts_with("46r"));
        assert_eq!(sender.window(), (cwnd, cwnd));
        sender.wait(RTT).ack_all();
        assert!(sender.cc().cwnd <= cwnd);
    }

    #[test]
    fn loss_with_growing_queue_halves_window() {
        let mut sender = grown_sender(Pipe::Full);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, flight / 2.0);
    }

    #[test]
    fn timeout_is_congestion_regardless_of_jitter() {
        let mut sender = grown_sender(Pipe::Wide);
        let flight = sender.flight.outstanding().segments as f64;
        sender.timeout();
        assert_eq!(sender.window(), (1.0, flight / 2.0));
    }

    #[test]
    fn loss_without_enough_samples_is_congestion() {
        let mut sender = BareSender::new("jtcp").under_way(10.0, 5.0, RTT);
        sender.wait(RTT).ack(4);
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, sender.flight.outstanding().segments as f64 / 2.0);
    }

    #[test]
    fn simultaneous_acks_show_no_jitter() {
        let mut jtcp = Jtcp::default();
        for i in 0..=20_u64 {
            let (sent, acked) = (Instant::from_millis(100 + 10 * i), Instant::from_millis(500));
            jtcp.arrivals.push_back(Arrival { end: 1000 * (i + 1), sent, acked, cwnd: 10.0 });
        }
        let mut sender = BareSender::new("jtcp").under_way(30.0, 5.0, RTT);
        sender.ack(21);
        let mut test = TestView::new(sender);
        test.cc.cwnd = 10.0;
        assert_eq!(jtcp.jitter(&test.view()), None);
    }

    #[test]
    fn sample_history_holds_two_windows() {
        let mut jtcp = Jtcp::default();
        let mut test = TestView::new(BareSender::new("jtcp"));
        test.cc.cwnd = 10.0;
        let view = test.view();
        for i in 1..1000 {
            let newest =
                Delivery { sent_at: Instant::from_millis(i), end: 1000 * i, tsval: 0, resent: false };
            jtcp.observe(&view, &Ack { newest: Some(newest), ..Ack::default() });
        }
        assert_eq!(jtcp.arrivals.len(), 21);
    }
}
