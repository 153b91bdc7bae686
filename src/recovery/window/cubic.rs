//! CUBIC (RFC 9438): between two losses the window is a cubic function of the time since the last loss, flat
//! around the window at that loss. It is never smaller than Reno's window.
//!
//! C = 0.4, β_cubic = 0.7, α_cubic = 3 · (1 − β_cubic) / (1 + β_cubic). Slow start and the counting of ACKs
//! are the same as in [`Aimd`]. Windows are in segments, times in seconds.
//!
//! - Choice: the decrease is β_cubic and ignores the option `beta`, because α_cubic and the flat part depend
//!   on it. It is applied to the amount that the profile selects (FlightSize in the RFCs; §4.6 also permits
//!   cwnd).
//! - Choice: while the application or the receiver limits the sender, the clock of the epoch stops (§5.8).
//! - Choice: slow start after an idle time ends the epoch, and the next epoch returns to the same W_max.
//! - Choice: HyStart++ (RFC 9406) is not included; the add-on `hystartpp` provides it.
//!
//! The receiver needs no special support.

use airwire::time::Instant;

use super::aimd::{counted, may_raise, window_was_used};
use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::{Ack, View};

const C: f64 = 0.4;
const BETA_CUBIC: f64 = 0.7;
const ALPHA_CUBIC: f64 = 3.0 * (1.0 - BETA_CUBIC) / (1.0 + BETA_CUBIC);

#[derive(Debug, Default)]
pub(crate) struct Cubic {
    aimd: Aimd,
    state: State,
    /// The state before the last reduction (§4.9).
    before: State,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    /// Zero before the first loss and after a timeout.
    w_max: f64,
    cwnd_prior: f64,
    /// The current stage of congestion avoidance.
    epoch: Option<Epoch>,
}

#[derive(Debug, Clone, Copy)]
struct Epoch {
    t_epoch: Instant,
    k: f64,
    w_max: f64,
    w_est: f64,
    /// Time since which something other than the window has limited the sender.
    idle_since: Option<Instant>,
}

impl Epoch {
    fn new(now: Instant, w_max: f64, cwnd_epoch: f64) -> Self {
        // §4.10: no loss at a larger window is known, so the window probes from here.
        let w_max = w_max.max(cwnd_epoch);
        let k = ((w_max - cwnd_epoch) / C).cbrt();
        Self { t_epoch: now, k, w_max, w_est: cwnd_epoch, idle_since: None }
    }

    /// Equation 1.
    fn w_cubic(&self, t: f64) -> f64 {
        C * (t - self.k).powi(3) + self.w_max
    }
}

impl Window for Cubic {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        if !may_raise(view, ack) {
            return None;
        }
        let (now, cwnd) = (view.now, view.cc.cwnd);
        if view.in_slow_start() {
            self.state.epoch = None;
            return self.aimd.on_ack(view, ack);
        }
        let State { w_max, cwnd_prior, .. } = self.state;
        let epoch = self.state.epoch.get_or_insert_with(|| Epoch::new(now, w_max, cwnd));
        if !window_was_used(view, ack) {
            epoch.idle_since.get_or_insert(now);
            return None;
        }
        if let Some(since) = epoch.idle_since.take() {
            epoch.t_epoch += now - since;
        }
        let t = (now - epoch.t_epoch).as_secs_f64();
        let segments_acked = counted(view, ack);
        // §4.3: beyond the window before the loss, the estimate grows as fast as Reno's window.
        let alpha = if epoch.w_est >= cwnd_prior { 1.0 } else { ALPHA_CUBIC };
        epoch.w_est += alpha * segments_acked / cwnd;
        let grown = if epoch.w_cubic(t) < epoch.w_est {
            epoch.w_est
        } else {
            let rtt = view.rtt.srtt().unwrap_or_default().as_secs_f64();
            // §4.2: the target lies one round trip ahead, and between cwnd and 1.5 cwnd.
            let target = epoch.w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
            (cwnd + (target - cwnd) / cwnd * segments_acked).min(target)
        };
        (grown > cwnd).then_some(grown)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        self.before = self.state;
        let cwnd = loss.window_when_sent.unwrap_or(view.cc.cwnd);
        let w_max = match loss.kind {
            // §4.8: the next epoch starts from its own window.
            LossKind::Timeout => 0.0,
            // §4.7, fast convergence: make room for new flows.
            _ if cwnd < self.state.w_max => cwnd * (1.0 + BETA_CUBIC) / 2.0,
            _ => cwnd,
        };
        self.state = State { w_max, cwnd_prior: cwnd, epoch: None };
        self.aimd.decrease(view, loss, BETA_CUBIC)
    }

    fn on_undo(&mut self) {
        self.state = self.before;
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;
    use crate::flight::Amount;
    use crate::profile::Profile;
    use crate::profile::recovery::ExitWindow;
    use crate::recovery::testing::{BareSender, RTT, TestView};

    /// Acknowledges whole windows, each evenly over a round trip of 100 ms, for this number of seconds.
    fn run(sender: &mut BareSender, seconds: f64) -> f64 {
        let until = sender.now + Duration::from_secs_f64(seconds);
        while sender.now < until {
            let window = sender.flight.outstanding().segments.max(1);
            sender.ack_each(RTT / window);
        }
        sender.cc().cwnd
    }

    fn sender(cwnd: f64) -> BareSender {
        let mut profile = Profile::default();
        profile.recovery.fast_recovery.exit_window = ExitWindow::Ssthresh;
        BareSender::in_profile("cubic", profile).under_way(cwnd, cwnd / 2.0, RTT)
    }

    /// Returns a sender after the recovery from a loss at a window of `cwnd`.
    fn after_a_loss(cwnd: f64) -> BareSender {
        let mut sender = sender(cwnd);
        sender.wait(RTT).dupacks(3);
        sender.wait(RTT).ack_all();
        assert_eq!(sender.window(), (0.7 * cwnd, 0.7 * cwnd));
        sender
    }

    #[test]
    fn window_follows_cubic_function_around_w_max() {
        // W_max = 100, cwnd_epoch = 70: K = cbrt(30 / 0.4) = 4.217 s.
        let mut sender = after_a_loss(100.0);
        let began = sender.now;
        // Reno's window would be at most 70 + 0.53 · 85 before the last of these times, and 128 at the last.
        for seconds in [1.0, 1.2, 2.0, 4.0] {
            let window = run(&mut sender, seconds);
            // The window aims at the value of the function one round trip ahead, and reaches it one round
            // trip later.
            let t = (sender.now - began).as_secs_f64();
            let w_cubic = |t: f64| 100.0 + 0.4 * (t - 4.217).powi(3);
            assert!((w_cubic(t) - 1.0..w_cubic(t + 0.1)).contains(&window), "{window} after {t} s");
        }
    }

    #[test]
    fn small_window_grows_like_reno() {
        // W_max = 10, K = cbrt(3 / 0.4) = 1.96 s: then the cubic function is back at 10. Reno with α = 0.53
        // needs 3 / 0.53 = 5.7 round trips, 0.57 s, and then continues with α = 1.
        let mut sender = after_a_loss(10.0);
        let window = run(&mut sender, 2.0);
        // 7 + 3 + about 20 − 6 − 1 further round trips.
        assert!((21.0..25.0).contains(&window), "{window}");
    }

    /// Returns the view of a sender in which only the time and the window matter.
    fn test_view() -> TestView {
        let mut test = TestView::new(BareSender::new("cubic"));
        (test.cc.cwnd, test.cc.ssthresh) = (100.0, 50.0);
        test
    }

    fn lose(test: &mut TestView, cubic: &mut Cubic, cwnd: f64, kind: LossKind) {
        test.cc.cwnd = cwnd;
        let Reduction { cwnd, ssthresh } =
            cubic.on_loss(&test.view(), &Loss { kind, window_when_sent: None });
        (test.cc.cwnd, test.cc.ssthresh) = (cwnd, ssthresh);
    }

    /// Processes an ACK of one segment in congestion avoidance. `used`: the window was in use.
    fn ack(test: &mut TestView, cubic: &mut Cubic, after: Duration, used: bool) -> Option<f64> {
        test.sender.now += after;
        let one = Amount { bytes: 1000, segments: 1 };
        let flight = if used { test.cc.cwnd } else { 1.0 };
        let flight_before = Amount { bytes: (flight * 1000.0) as u64, segments: flight as u64 };
        cubic.on_ack(&test.view(), &Ack { acked: one, delivered: one, flight_before, ..Ack::default() })
    }

    #[test]
    fn fast_convergence_lowers_w_max() {
        let (mut test, mut cubic) = (test_view(), Cubic::default());
        lose(&mut test, &mut cubic, 100.0, LossKind::Detected);
        assert_eq!((cubic.state.w_max, test.cc.cwnd), (100.0, 70.0));
        lose(&mut test, &mut cubic, 80.0, LossKind::Detected);
        // 80 · (1 + 0.7) / 2.
        assert_eq!((cubic.state.w_max, cubic.state.cwnd_prior), (68.0, 80.0));
        lose(&mut test, &mut cubic, 90.0, LossKind::EcnEcho);
        assert_eq!(cubic.state.w_max, 90.0);
    }

    #[test]
    fn epoch_after_timeout_starts_at_current_window() {
        let (mut test, mut cubic) = (test_view(), Cubic::default());
        lose(&mut test, &mut cubic, 100.0, LossKind::Timeout);
        assert_eq!(test.cc.ssthresh, 70.0);
        test.cc.cwnd = 70.0;
        ack(&mut test, &mut cubic, RTT, true);
        let epoch = cubic.state.epoch.unwrap();
        assert_eq!((epoch.k, epoch.w_max), (0.0, 70.0));
        assert_eq!(epoch.w_est, 70.0 + ALPHA_CUBIC / 70.0, "one ACK above the start of the epoch");
    }

    #[test]
    fn epoch_clock_stops_while_window_is_unused() {
        let (mut test, mut cubic) = (test_view(), Cubic::default());
        lose(&mut test, &mut cubic, 100.0, LossKind::Detected);
        ack(&mut test, &mut cubic, RTT, true);
        let began = test.sender.now;
        assert_eq!(ack(&mut test, &mut cubic, RTT, false), None);
        assert_eq!(ack(&mut test, &mut cubic, Duration::from_secs(60), false), None);
        let resumed = ack(&mut test, &mut cubic, Duration::from_secs(3), true).unwrap();
        assert_eq!(cubic.state.epoch.unwrap().t_epoch, began + Duration::from_secs(63));
        // t = 0.1 s. If the clock had not stopped, the window would have jumped to 1.5 cwnd.
        assert!(resumed < 70.2, "{resumed}");
    }

    #[test]
    fn window_growth_after_silence_is_capped() {
        let (mut test, mut cubic) = (test_view(), Cubic::default());
        lose(&mut test, &mut cubic, 100.0, LossKind::Detected);
        ack(&mut test, &mut cubic, RTT, true);
        let grown = ack(&mut test, &mut cubic, Duration::from_secs(1_000_000), true).unwrap();
        // (1.5 · 70 − 70) / 70 for one segment.
        assert!((grown - 70.5).abs() < 1e-9, "{grown}");
    }

    #[test]
    fn undone_reduction_restores_state() {
        let (mut test, mut cubic) = (test_view(), Cubic::default());
        lose(&mut test, &mut cubic, 100.0, LossKind::Detected);
        ack(&mut test, &mut cubic, RTT, true);
        let before = cubic.state;
        lose(&mut test, &mut cubic, 75.0, LossKind::Detected);
        assert_eq!(cubic.state.w_max, 63.75);
        cubic.on_undo();
        assert_eq!((cubic.state.w_max, cubic.state.cwnd_prior), (before.w_max, before.cwnd_prior));
        assert_eq!(cubic.state.epoch.map(|epoch| epoch.t_epoch), before.epoch.map(|epoch| epoch.t_epoch));
    }

    #[test]
    fn slow_start_matches_aimd() {
        let mut sender = BareSender::new("cubic").under_way(10.0, 100.0, RTT);
        sender.wait(RTT).ack(1);
        assert_eq!(sender.cc().cwnd, 11.0);
    }
}
