//! TCP-FIT (Wang, Wen, Zhang, Han: *TCP-FIT: An Improved TCP Congestion Control Algorithm and its
//! Performance*, IEEE INFOCOM 2011, §III): one connection behaves like N Reno connections, and N is as large
//! as the queue permits.
//!
//! Each round trip adds N segments, and each loss takes 2/(3N + 1) of the window, as N virtual sessions with
//! a window of w/N would do together. N follows the queue,
//!
//! > N ← max(1, N + 1 − Q/(α·w) · N), Q = (average RTT − shortest RTT) / average RTT · w,
//!
//! so it converges where Q is α/N of the window. With N = 1 the algorithm is Reno.
//!
//! - Choice: α = 1/2, and N is updated every half second. It is not updated while the application or the
//!   receiver's window limits the sender, because an empty queue shows nothing then. N never exceeds the
//!   window.
//! - Choice: if the factor is not 1/2 (option `beta`), a loss takes 1 − β for N = 1 and proportionally less
//!   for larger N.
//! - Choice: a timeout changes ssthresh like any other loss.
//!
//! The receiver needs no special support.

use airwire::time::{Duration, Instant};

use super::aimd::window_was_used;
use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::{Ack, View};

const ALPHA: f64 = 0.5;
const PERIOD: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct TcpFit {
    aimd: Aimd,
    /// N.
    sessions: f64,
    rtt_min: Option<Duration>,
    period: Period,
}

#[derive(Debug, Default)]
struct Period {
    began: Option<Instant>,
    /// Sum and number of the round-trip times, in seconds.
    sum: f64,
    count: u32,
    /// Whether the window limited the sender at least once.
    used: bool,
}

impl Default for TcpFit {
    fn default() -> Self {
        Self { aimd: Aimd::default(), sessions: 1.0, rtt_min: None, period: Period::default() }
    }
}

impl TcpFit {
    fn renew(&mut self, cwnd: f64) {
        let Some(rtt_min) = self.rtt_min.filter(|_| self.period.count > 0 && self.period.used) else {
            return;
        };
        let average = self.period.sum / f64::from(self.period.count);
        // Q / w.
        let queued = ((average - rtt_min.as_secs_f64()) / average).max(0.0);
        self.sessions = (self.sessions + 1.0 - queued / ALPHA * self.sessions).min(cwnd).max(1.0);
    }
}

impl Window for TcpFit {
    fn observe(&mut self, view: &View<'_>, ack: &Ack) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
            self.period.sum += rtt.as_secs_f64();
            self.period.count += 1;
        }
        self.period.used |= window_was_used(view, ack);
        let began = *self.period.began.get_or_insert(view.now);
        if view.now - began >= PERIOD {
            self.renew(view.cc.cwnd);
            self.period = Period { began: Some(view.now), ..Period::default() };
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        self.aimd.increase(view, ack, self.sessions)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        // An ECN mark is direct evidence of a queue.
        let sessions = if loss.kind == LossKind::EcnEcho { 1.0 } else { self.sessions };
        // With β = 1/2 this is 1 − 2 / (3N + 1).
        let beta = 1.0 - 4.0 * (1.0 - view.rules.decrease.beta) / (3.0 * sessions + 1.0);
        self.aimd.decrease(view, loss, beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::Amount;
    use crate::recovery::testing::{BareSender, RTT, TestView};

    /// Returns N after half a second with a window of 20 and round trips of `average` seconds.
    fn sessions_after_update(sessions: f64, average: f64) -> f64 {
        let rtt_min = Some(RTT);
        let period = Period { began: None, sum: 5.0 * average, count: 5, used: true };
        let mut fit = TcpFit { sessions, rtt_min, period, ..TcpFit::default() };
        fit.renew(20.0);
        fit.sessions
    }

    #[test]
    fn session_count_adapts_to_queue() {
        assert_eq!(sessions_after_update(1.0, 0.1), 2.0);
        assert_eq!(sessions_after_update(7.0, 0.1), 8.0);
        // N = 4, Q = w/8: 4 + 1 − (1/8) / (1/2) · 4 = 4. The average is then 100 / (1 − 1/8) ms.
        assert!((sessions_after_update(4.0, 0.1 / 0.875) - 4.0).abs() < 1e-12);
        // Half of the window queues: 4 + 1 − 4.
        assert!((sessions_after_update(4.0, 0.2) - 1.0).abs() < 1e-12);
        assert_eq!(sessions_after_update(1.0, 10.0), 1.0, "at least one session");
        assert_eq!(sessions_after_update(20.0, 0.1), 20.0, "at most one session per segment");
    }

    #[test]
    fn unused_window_keeps_session_count() {
        let period = Period { began: None, sum: 0.5, count: 5, used: false };
        let mut fit = TcpFit { rtt_min: Some(RTT), period, ..TcpFit::default() };
        fit.renew(20.0);
        assert_eq!(fit.sessions, 1.0);
    }

    /// Acknowledges this number of windows, each at once after 100 ms.
    fn rounds(sender: &mut BareSender, count: u64) {
        for _ in 0..count {
            sender.wait(RTT).ack_each(Duration::ZERO);
        }
    }

    #[test]
    fn loss_reduction_depends_on_session_count() {
        let mut sender = BareSender::new("tcp-fit").under_way(20.0, 10.0, RTT);
        // Six round trips of 100 ms without a queue: N is updated at 600 ms, counted from the first ACK at
        // 100 ms.
        rounds(&mut sender, 6);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        // N = 2: 1 − 2/7.
        assert!(
            (sender.cc().ssthresh - flight * 5.0 / 7.0).abs() < 1e-9,
            "{} of {flight}",
            sender.cc().ssthresh
        );
    }

    #[test]
    fn round_trip_adds_n_segments() {
        let mut sender = BareSender::new("tcp-fit").under_way(20.0, 10.0, RTT);
        rounds(&mut sender, 6);
        let before = sender.cc().cwnd;
        rounds(&mut sender, 1);
        let grown = sender.cc().cwnd - before;
        // A little less than two, because cwnd grows in the meantime and its fraction is not in flight.
        assert!((1.8..=2.0).contains(&grown), "{grown}");
    }

    #[test]
    fn one_session_behaves_like_reno() {
        let mut sender = BareSender::new("tcp-fit").under_way(20.0, 10.0, RTT);
        sender.wait(RTT);
        sender.ack(1);
        assert_eq!(sender.cc().cwnd, 20.0 + 1.0 / 20.0);
        let flight = sender.flight.outstanding().segments as f64;
        sender.dupacks(3);
        assert_eq!(sender.cc().ssthresh, flight / 2.0);
    }

    #[test]
    fn window_at_most_doubles_per_round_trip() {
        let mut fit = TcpFit { sessions: 1e9, ..TcpFit::default() };
        let sender = BareSender::new("tcp-fit").under_way(4.0, 2.0, RTT);
        let test = TestView::new(sender);
        let (one, flight_before) = (Amount { bytes: 1000, segments: 1 }, test.sender.flight.outstanding());
        let ack = Ack { acked: one, delivered: one, flight_before, ..Ack::default() };
        assert_eq!(fit.on_ack(&test.view(), &ack), Some(5.0));
    }
}
