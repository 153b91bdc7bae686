//! CUBIC as in the Linux kernel (Linux 6.18, net/ipv4/tcp_cubic.c), which is older than RFC 9438.
//! Differences:
//!
//! - cwnd grows by one segment per `cnt` delivered segments. The cubic function determines `cnt`, at most 32
//!   times per second while cwnd does not change. cwnd grows at most by half per round trip.
//! - Before the first loss and after a timeout, the window grows by at least a twentieth per round trip.
//! - The estimate of Reno's window (`tcp_cwnd`) always grows by 8/15 of a segment per round trip. In RFC 9438
//!   §4.3, it grows by a whole segment once it exceeds the window before the loss.
//! - The function looks ahead by the minimum round-trip time, not by the smoothed one.
//! - An undo does not restore the state from before the reduction.
//!
//! In the profile `linux`, it is the window `cubic`. Slow start is the same as in [`Aimd`], and
//! [`HyStart`](super::HyStart) ends it if the recipe includes that add-on. C = 0.4, β = 717/1024. Windows are
//! in segments.

use airwire::time::{Duration, Instant};

use super::aimd::{may_raise, newly_delivered, window_was_used};
use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::profile::jiffies::JIFFY;
use crate::recovery::{Ack, Transmission, View};

const C: f64 = 0.4;
const BETA: f64 = 717.0 / 1024.0;
/// `beta_scale` / 8: number of delivered windows after which Reno would have grown by one segment.
const RENO_WINDOWS: f64 = 15.0 / 8.0;
/// `ca->last_time`: time for which `cnt` is reused while cwnd does not change.
const HOLDS: Duration = Duration::from_nanos(31_250_000);
/// Time after a recovery in which delay samples are ignored, because they do not reflect the path.
const AFTER_RECOVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct CubicLinux {
    aimd: Aimd,
    delay_min: Option<Duration>,
    last_max_cwnd: f64,
    epoch: Option<Epoch>,
    /// Amount delivered towards the next segment (`snd_cwnd_cnt`).
    cwnd_cnt: f64,
    last_sent: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Epoch {
    epoch_start: Instant,
    /// In seconds.
    bic_k: f64,
    bic_origin_point: f64,
    tcp_cwnd: f64,
    ack_cnt: f64,
    /// Time and window of the last evaluation of the cubic function.
    last_time: Instant,
    last_cwnd: f64,
    /// The result of that evaluation.
    cnt: f64,
}

impl Epoch {
    fn new(now: Instant, cwnd: f64, last_max_cwnd: f64) -> Self {
        let below = (last_max_cwnd - cwnd).max(0.0);
        Self {
            epoch_start: now,
            bic_k: (below / C).cbrt(),
            bic_origin_point: last_max_cwnd.max(cwnd),
            tcp_cwnd: cwnd,
            ack_cnt: 0.0,
            last_time: now,
            last_cwnd: 0.0,
            cnt: 0.0,
        }
    }

    /// bictcp_update()
    fn update(&mut self, now: Instant, cwnd: f64, acked: f64, ahead: Duration, probes: bool) {
        self.ack_cnt += acked;
        let since = now - self.last_time;
        if self.last_cwnd == cwnd && since <= HOLDS {
            return;
        }
        if self.last_cwnd == 0.0 || since >= JIFFY {
            (self.last_cwnd, self.last_time) = (cwnd, now);
            let t = (now - self.epoch_start + ahead).as_secs_f64();
            // Whole segments, truncated on both sides of the origin: below it the target is rounded up.
            let delta = (C * (t - self.bic_k).abs().powi(3)).floor();
            let bic_target = self.bic_origin_point + if t < self.bic_k { -delta } else { delta };
            let short = bic_target - cwnd;
            self.cnt = if short >= 1.0 { (cwnd / short).floor() } else { 100.0 * cwnd };
            if probes {
                self.cnt = self.cnt.min(20.0);
            }
        }
        let window = (cwnd * RENO_WINDOWS).floor().max(1.0);
        if self.ack_cnt > window {
            let grown = (self.ack_cnt / window).ceil() - 1.0;
            self.ack_cnt -= grown * window;
            self.tcp_cwnd += grown;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min((cwnd / (self.tcp_cwnd - cwnd)).floor());
        }
        self.cnt = self.cnt.max(2.0);
    }
}

impl Window for CubicLinux {
    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        // CA_EVENT_TX_START: time without data to send does not count.
        if let (Some(last_sent), Some(epoch)) = (self.last_sent, &mut self.epoch)
            && view.flight.una() == transmission.start
            && view.flight.max() == transmission.end
        {
            epoch.epoch_start = (epoch.epoch_start + (view.now - last_sent)).min(view.now);
        }
        self.last_sent = Some(view.now);
    }

    fn observe(&mut self, view: &View<'_>, ack: &Ack) {
        let Some(newest) = ack.originals.newest else { return };
        if self.epoch.is_none_or(|epoch| view.now - epoch.epoch_start >= AFTER_RECOVERY) {
            let delay = view.now - newest.sent_at;
            self.delay_min = Some(self.delay_min.map_or(delay, |min| min.min(delay)));
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        if !may_raise(view, ack) || !window_was_used(view, ack) {
            return None;
        }
        let mut acked = newly_delivered(view, ack);
        let mut cwnd = view.cc.cwnd;
        if view.in_slow_start() {
            let grown = (cwnd + acked).min(view.cc.ssthresh);
            acked -= grown - cwnd;
            cwnd = grown;
        }
        if acked > 0.0 {
            let ahead = self.delay_min.unwrap_or_default();
            let (last_max_cwnd, now) = (self.last_max_cwnd, view.now);
            let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, last_max_cwnd));
            epoch.update(now, cwnd, acked, ahead, last_max_cwnd == 0.0);
            let cnt = epoch.cnt;
            // tcp_cong_avoid_ai()
            if self.cwnd_cnt >= cnt {
                self.cwnd_cnt = 0.0;
                cwnd += 1.0;
            }
            self.cwnd_cnt += acked;
            if self.cwnd_cnt >= cnt {
                let whole = (self.cwnd_cnt / cnt).floor();
                self.cwnd_cnt -= whole * cnt;
                cwnd += whole;
            }
        }
        (cwnd > view.cc.cwnd).then_some(cwnd)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        let cwnd = loss.window_when_sent.unwrap_or(view.cc.cwnd);
        self.epoch = None;
        self.cwnd_cnt = 0.0;
        // Fast convergence: make room for new flows.
        self.last_max_cwnd = if cwnd < self.last_max_cwnd { cwnd * (1.0 + BETA) / 2.0 } else { cwnd }.floor();
        if loss.kind == LossKind::Timeout {
            // bictcp_reset()
            (self.last_max_cwnd, self.delay_min) = (0.0, None);
        }
        self.aimd.decrease(view, loss, BETA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::recovery::TransmissionKind;
    use crate::recovery::testing::{BareSender, RTT, TestView};

    fn sender(cwnd: f64, ssthresh: f64) -> BareSender {
        BareSender::in_profile("sack+cubic", Profile::linux()).under_way(cwnd, ssthresh, RTT)
    }

    /// Acknowledges this number of windows, each segment by segment over a round trip.
    fn rounds(sender: &mut BareSender, count: u32) -> f64 {
        for _ in 0..count {
            sender.ack_each(RTT / (sender.last() - sender.una()));
        }
        sender.cc().cwnd
    }

    #[test]
    fn window_grows_by_twentieth_before_loss() {
        let mut sender = sender(100.0, 50.0);
        assert_eq!(rounds(&mut sender, 1), 105.0);
        assert_eq!(rounds(&mut sender, 1), 110.0);
    }

    #[test]
    fn window_plateaus_at_w_max_after_loss() {
        let mut sender = sender(100.0, 50.0);
        sender.wait(RTT).sack(&[2..5]);
        rounds(&mut sender, 1);
        assert_eq!(sender.window(), (70.0, 70.0));
        // K is the cube root of 30 / 0.4, which is 4.2 s.
        let window = rounds(&mut sender, 30);
        assert!((97.0..=100.0).contains(&window), "{window} after 3 s: rounded up");
        let window = rounds(&mut sender, 20);
        assert!((99.0..103.0).contains(&window), "{window} after 5 s");
    }

    #[test]
    fn small_window_grows_at_reno_friendly_rate() {
        let mut sender = sender(10.0, 5.0);
        sender.wait(RTT).sack(&[2..5]);
        rounds(&mut sender, 1);
        assert_eq!(sender.cc().cwnd, 7.0);
        let window = rounds(&mut sender, 15);
        assert!((14.0..=16.0).contains(&window), "{window}, expected 7 + 8");
    }

    #[test]
    fn idle_time_does_not_grow_window() {
        let mut sender = sender(100.0, 50.0);
        sender.wait(RTT).sack(&[2..5]);
        rounds(&mut sender, 10);
        sender.written = sender.last();
        sender.ack_all();
        let before = sender.cc().cwnd;
        sender.wait(Duration::from_secs(100));
        sender.written = u64::MAX / 1000;
        sender.send();
        let after = rounds(&mut sender, 2);
        assert!(after < before + 10.0, "{before} → {after}");
    }

    /// If the epoch began after the last transmission, the whole idle time would move it into the future.
    #[test]
    fn idle_time_moves_epoch_to_now_at_most() {
        for (last_sent, epoch_start) in [(11, 11), (7, 12)] {
            let mut test = TestView::new(sender(1.0, 50.0));
            test.sender.now = Instant::from_secs(12);
            let mut cubic = CubicLinux {
                epoch: Some(Epoch::new(Instant::from_secs(10), 50.0, 100.0)),
                last_sent: Some(Instant::from_secs(last_sent)),
                ..CubicLinux::default()
            };
            let transmission = Transmission { start: 0, end: 1000, kind: TransmissionKind::New, tsval: 0 };
            cubic.on_sent(&test.view(), &transmission);
            assert_eq!(cubic.epoch.unwrap().epoch_start, Instant::from_secs(epoch_start));
        }
    }
}
