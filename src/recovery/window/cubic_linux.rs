//! CUBIC as in the Linux kernel (Linux 6.18, net/ipv4/tcp_cubic.c), which is older than RFC 9438.
//! Differences:
//!
//! - It computes with integers, and its time counts ticks.
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
use super::{Aimd, Loss, Reduction, Window};
use crate::profile::jiffies::{self, HZ};
use crate::recovery::{Ack, Transmission, View};

const BETA: f64 = 717.0 / 1024.0;
/// `cube_rtt_scale`: C in units of 2^-10.
const CUBE_RTT_SCALE: u64 = 410;
/// BICTCP_HZ: the cubic function counts time in units of 2^-10 s.
const BICTCP_HZ: u32 = 10;
/// `beta_scale`: eight times the number of delivered windows after which Reno would have grown by one segment.
const BETA_SCALE: u32 = 15;
/// Maximum distance from the plateau, 128 s. Beyond it, the target exceeds every real window.
const MAX_OFFS: u64 = 1 << 17;
/// Number of ticks for which `cnt` is reused while cwnd does not change.
const HOLDS: u32 = HZ / 32;

/// The names are from `struct bictcp`. Times are the lower 32 bits of ticks, as in the kernel.
#[derive(Debug, Default)]
pub(crate) struct CubicLinux {
    aimd: Aimd,
    delay_min: Option<Duration>,
    last_max_cwnd: u32,
    /// `None` from a reduction to the next evaluation of the cubic function.
    epoch_start: Option<u32>,
    bic_k: u32,
    bic_origin_point: u32,
    tcp_cwnd: u32,
    ack_cnt: u32,
    /// Time and window of the last evaluation of the cubic function. A window of 0: there was none.
    last_time: u32,
    last_cwnd: u32,
    /// The result of that evaluation: cwnd grows by one segment per `cnt` delivered segments.
    cnt: u32,
    /// Number of segments delivered towards the next segment.
    snd_cwnd_cnt: u32,
    /// Time of the last transmission.
    lsndtime: u32,
}

fn tick(now: Instant) -> u32 {
    jiffies::ticks(now) as u32
}

/// Returns the cube root, as inexact as the kernel's: it divides by three with a factor of 341/1024.
fn cubic_root(a: u64) -> u64 {
    let x = (a as f64).cbrt() as u64;
    if x < 2 { x } else { ((2 * x + a / (x * (x - 1))) * 341) >> 10 }
}

impl CubicLinux {
    /// bictcp_update()
    fn update(&mut self, now: u32, cwnd: u32, acked: u32) {
        self.ack_cnt += acked;
        let since = now.wrapping_sub(self.last_time);
        if self.last_cwnd == cwnd && since <= HOLDS {
            return;
        }
        if self.epoch_start.is_none() || since > 0 {
            (self.last_cwnd, self.last_time) = (cwnd, now);
            self.evaluate(now, cwnd, acked);
        }
        let window = cwnd.saturating_mul(BETA_SCALE) >> 3;
        if window > 0 && self.ack_cnt > window {
            let grown = (self.ack_cnt - 1) / window;
            self.ack_cnt -= grown * window;
            self.tcp_cwnd += grown;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
        self.cnt = self.cnt.max(2);
    }

    /// Evaluates the cubic function.
    fn evaluate(&mut self, now: u32, cwnd: u32, acked: u32) {
        let epoch_start = *self.epoch_start.get_or_insert_with(|| {
            let below = self.last_max_cwnd.saturating_sub(cwnd);
            (self.ack_cnt, self.tcp_cwnd) = (acked, cwnd);
            self.bic_k = cubic_root((1 << (10 + 3 * BICTCP_HZ)) / CUBE_RTT_SCALE * u64::from(below)) as u32;
            self.bic_origin_point = self.last_max_cwnd.max(cwnd);
            now
        });
        let ahead = jiffies::ticks_in(self.delay_min.unwrap_or_default());
        let t = ((u64::from(now.wrapping_sub(epoch_start)) + ahead) << BICTCP_HZ) / u64::from(HZ);
        let offs = t.abs_diff(self.bic_k.into()).min(MAX_OFFS);
        let delta = ((CUBE_RTT_SCALE * offs.pow(3)) >> (10 + 3 * BICTCP_HZ)) as u32;
        let bic_target = match t < self.bic_k.into() {
            true => self.bic_origin_point.saturating_sub(delta),
            false => self.bic_origin_point.saturating_add(delta),
        };
        self.cnt = if bic_target > cwnd { cwnd / (bic_target - cwnd) } else { cwnd.saturating_mul(100) };
        // The available bandwidth is still unknown.
        if self.last_max_cwnd == 0 {
            self.cnt = self.cnt.min(20);
        }
    }

    /// Returns the number of segments by which cwnd grows (tcp_cong_avoid_ai()).
    fn growth(&mut self, acked: u32) -> u32 {
        let cnt = self.cnt.max(1);
        let mut growth = 0;
        if self.snd_cwnd_cnt >= cnt {
            (self.snd_cwnd_cnt, growth) = (0, 1);
        }
        self.snd_cwnd_cnt += acked;
        growth += self.snd_cwnd_cnt / cnt;
        self.snd_cwnd_cnt %= cnt;
        growth
    }
}

impl Window for CubicLinux {
    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        let now = tick(view.now);
        // CA_EVENT_TX_START: time without data to send does not count.
        if let Some(epoch_start) = &mut self.epoch_start
            && view.flight.una() == transmission.start
            && view.flight.max() == transmission.end
        {
            let age = now.wrapping_sub(*epoch_start);
            *epoch_start = epoch_start.wrapping_add(now.wrapping_sub(self.lsndtime).min(age));
        }
        self.lsndtime = now;
    }

    fn observe(&mut self, view: &View<'_>, ack: &Ack) {
        // If the ACK covers a retransmission, only its timestamp tells the delay (tcp_ack_update_rtt()).
        let delay = match ack.any_resent && ack.newly_sacked.segments == 0 {
            true => ack.rtt,
            false => ack.originals.newest.map(|newest| view.now - newest.sent_at),
        };
        // Delays after a recovery do not reflect the path.
        let counts = self.epoch_start.is_none_or(|start| tick(view.now).wrapping_sub(start) >= HZ);
        if let Some(delay) = delay.filter(|_| counts) {
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
            self.update(tick(view.now), cwnd as u32, acked as u32);
            cwnd += f64::from(self.growth(acked as u32));
        }
        (cwnd > view.cc.cwnd).then_some(cwnd)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        let cwnd = loss.window_when_sent.unwrap_or(view.cc.cwnd) as u32;
        self.epoch_start = None;
        self.snd_cwnd_cnt = 0;
        // Fast convergence: make room for new flows.
        let makes_room = cwnd < self.last_max_cwnd;
        self.last_max_cwnd = if makes_room { (f64::from(cwnd) * (1.0 + BETA) / 2.0) as u32 } else { cwnd };
        self.aimd.decrease(view, loss, BETA)
    }

    /// bictcp_reset()
    fn after_timeout(&mut self) {
        let aimd = std::mem::take(&mut self.aimd);
        *self = Self { aimd, lsndtime: self.lsndtime, ..Self::default() };
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

    /// The result is reused for seven ticks, also if more than 28 ms but less than 32 ms have passed.
    #[test]
    fn cubic_function_counts_ticks() {
        let after = |ticks: u32| {
            let mut cubic = CubicLinux { last_max_cwnd: 20, ..CubicLinux::default() };
            cubic.update(1000, 14, 1);
            let before = cubic.last_time;
            cubic.update(1000 + ticks, 14, 1);
            cubic.last_time - before
        };
        assert_eq!([after(7), after(8)], [0, 8]);
    }

    /// K is the cube root of 6 / 0.4, which is 2.466 s: 2525 units, of which the kernel's division loses 2.
    #[test]
    fn plateau_is_as_inexact_as_in_kernel() {
        let mut cubic = CubicLinux { last_max_cwnd: 20, ..CubicLinux::default() };
        cubic.update(1000, 14, 1);
        assert!((2520..=2524).contains(&cubic.bic_k), "{}", cubic.bic_k);
    }

    /// If the epoch began after the last transmission, the whole idle time would move it into the future.
    #[test]
    fn idle_time_moves_epoch_to_now_at_most() {
        for (last_sent, epoch_start) in [(11, 11), (7, 12)] {
            let mut test = TestView::new(sender(1.0, 50.0));
            test.sender.now = Instant::from_secs(12);
            let mut cubic =
                CubicLinux { epoch_start: Some(10 * HZ), lsndtime: last_sent * HZ, ..CubicLinux::default() };
            let transmission = Transmission {
                start: 0,
                end: 1000,
                kind: TransmissionKind::New,
                tsval: 0,
                is_window_probe: false,
            };
            cubic.on_sent(&test.view(), &transmission);
            assert_eq!(cubic.epoch_start, Some(epoch_start * HZ));
        }
    }
}
