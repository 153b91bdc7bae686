//! HyStart as in the Linux kernel (Ha and Rhee, *Taming the elephants: new TCP slow start*, 2011; Linux 6.18,
//! net/ipv4/tcp_cubic.c): slow start ends before the queue is full.
//!
//! In each round trip, either of two signs shows that the path is full:
//! - **ACK train**: ACKs follow each other within 2 ms for half of the minimum round-trip time since the
//!   round began. The data in flight occupies the link for that time.
//! - **Delay**: the minimum of the first eight round-trip times of this round exceeds the overall minimum by
//!   one eighth (at least by 4 ms, at most by 16 ms).
//!
//! On either sign, ssthresh becomes cwnd. The search begins at a window of 16 segments and ends with the
//! first sign. After that, slow start ends at ssthresh. A timeout resets the detection.
//!
//! HyStart is an add-on to the window and does not change the window's growth. The receiver needs no special
//! support, but delayed ACKs make the trains shorter.
//!
//! - Choice: pacing stretches a train to twice its length. With pacing, the threshold is therefore the whole
//!   minimum round-trip time, plus at most one millisecond for data sent in one burst (hystart_ack_delay()).
//! - Choice: the most recently sent segment among the newly reported ones yields the round-trip time, if it
//!   was sent once (ca_rtt_us in the kernel).

use airwire::time::{Duration, Instant};

use super::slow_start::{SlowStart, Step};
use crate::recovery::{Ack, View};

/// hystart_low_window, in segments.
const LOW_WINDOW: f64 = 16.0;
/// hystart_ack_delta_us
const ACK_DELTA: Duration = Duration::from_millis(2);
/// HYSTART_MIN_SAMPLES
const MIN_SAMPLES: u32 = 8;
/// HYSTART_DELAY_MIN and HYSTART_DELAY_MAX
const DELAY_THRESH: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// GSO_MAX_SIZE in bytes. hystart_ack_delay() allows for four times this size.
const GSO_MAX_SIZE: f64 = 65_536.0;

#[derive(Debug, Default)]
pub(crate) struct HyStart {
    delay_min: Option<Duration>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// The first round begins with the next ACK.
    #[default]
    Fresh,
    Round(Round),
    /// The capacity of the path was found.
    Found,
}

#[derive(Debug)]
struct Round {
    round_start: Instant,
    /// The round is over when an ACK exceeds this offset.
    end_seq: u64,
    last_ack: Instant,
    curr_rtt: Duration,
    sample_cnt: u32,
}

impl Round {
    fn new(view: &View<'_>) -> Self {
        Self {
            round_start: view.now,
            end_seq: view.flight.max(),
            last_ack: view.now,
            curr_rtt: Duration::MAX,
            sample_cnt: 0,
        }
    }
}

impl SlowStart for HyStart {
    fn on_established(&mut self, view: &View<'_>) {
        self.state = State::Round(Round::new(view));
    }

    fn observe(&mut self, view: &View<'_>, ack: &Ack) {
        if let Some(delay) = delay_of(view, ack) {
            self.delay_min = Some(self.delay_min.map_or(delay, |min| min.min(delay)));
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Step {
        let (Some(delay), Some(delay_min)) = (delay_of(view, ack), self.delay_min) else {
            return Step::Continue;
        };
        let round = match &mut self.state {
            State::Found => return Step::Continue,
            State::Round(round) if view.flight.una() <= round.end_seq => round,
            state => {
                *state = State::Round(Round::new(view));
                let State::Round(round) = state else { return Step::Continue };
                round
            }
        };
        if view.cc.cwnd < LOW_WINDOW {
            return Step::Continue;
        }
        let why = round.ack_train(view, delay_min).or_else(|| round.delay(delay, delay_min));
        match why {
            Some(why) => {
                self.state = State::Found;
                Step::Leave { why }
            }
            None => Step::Continue,
        }
    }

    fn on_timeout(&mut self) {
        *self = Self::default();
    }
}

impl Round {
    fn ack_train(&mut self, view: &View<'_>, delay_min: Duration) -> Option<&'static str> {
        if view.now - self.last_ack > ACK_DELTA {
            return None;
        }
        self.last_ack = view.now;
        let threshold = match view.rules.transmission.pacing {
            None => delay_min / 2,
            Some(pacing) => delay_min + ack_delay(pacing.slow_start * view.cc.cwnd * view.smss as f64, view),
        };
        (view.now - self.round_start > threshold).then_some("the ACK train is half a round trip long")
    }

    fn delay(&mut self, delay: Duration, delay_min: Duration) -> Option<&'static str> {
        self.curr_rtt = self.curr_rtt.min(delay);
        if self.sample_cnt < MIN_SAMPLES {
            self.sample_cnt += 1;
            return None;
        }
        let (least, most) = DELAY_THRESH;
        let thresh = (delay_min / 8).clamp(least, most);
        (self.curr_rtt > delay_min + thresh).then_some("the delay has grown")
    }
}

/// Returns the time that the data of one burst may take, if this number of bytes is sent per round trip
/// (hystart_ack_delay()).
fn ack_delay(octets: f64, view: &View<'_>) -> Duration {
    let Some(srtt) = view.rtt.srtt() else { return Duration::ZERO };
    let takes = 4.0 * GSO_MAX_SIZE / octets * srtt.as_secs_f64();
    Duration::from_secs_f64(takes.min(0.001))
}

fn delay_of(view: &View<'_>, ack: &Ack) -> Option<Duration> {
    let newest = ack.originals.newest?;
    Some(view.now - newest.sent_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::What;
    use crate::recovery::testing::{BareSender, RTT, TestView};

    fn sender(recipe: &str) -> BareSender {
        let mut sender = BareSender::in_profile(recipe, crate::profile::Profile::linux());
        sender.send();
        sender.trace();
        sender
    }

    /// Acknowledges the window in flight, each segment one round trip after its transmission and `gap` after
    /// the previous segment. Returns the ssthresh at which slow start ended, and the reason.
    fn round(sender: &mut BareSender, rtt: Duration, gap: Duration) -> Option<(f64, &'static str)> {
        for segment in sender.una() + 1..=sender.last() {
            let sent_at = sender.flight.head().unwrap().last_sent;
            sender.now = (sent_at + rtt).max(sender.now + gap);
            sender.ack(segment);
        }
        let end = sender.trace().into_iter().find(|decision| decision.by == "hystart");
        end.map(|decision| match decision.what {
            What::Window { ssthresh, .. } => (ssthresh, decision.why),
            other => panic!("unexpected decision: {other:?}"),
        })
    }

    #[test]
    fn ack_train_of_half_rtt_ends_slow_start() {
        let mut sender = sender("cubic+hystart");
        // 10, 20 and 40 segments at 1 ms each: the ACK train is 10, 20 and 40 ms long.
        for _ in 0..3 {
            assert_eq!(round(&mut sender, RTT, Duration::from_millis(1)), None);
        }
        // 80 segments: the 52nd ACK is the first one more than 50 ms after the first.
        let (ssthresh, why) = round(&mut sender, RTT, Duration::from_millis(1)).unwrap();
        assert_eq!((ssthresh, why), (131.0, "the ACK train is half a round trip long"));
    }

    /// hystart_ack_delay(): four times GSO_MAX_SIZE at the rate of a window per round trip, at most 1 ms.
    #[test]
    fn burst_may_take_time_of_four_gso_packets() {
        let mut sender = sender("cubic+hystart");
        round(&mut sender, RTT, Duration::ZERO);
        let sender = TestView::new(sender);
        let srtt = sender.view().rtt.srtt().unwrap();
        let window = 1000.0 * 4.0 * GSO_MAX_SIZE;
        assert_eq!(ack_delay(window, &sender.view()), srtt / 1000);
        assert_eq!(ack_delay(window / 1000.0, &sender.view()), Duration::from_millis(1));
    }

    #[test]
    fn acks_with_gaps_do_not_form_train() {
        for (gap, found) in [(2000, true), (2100, false)] {
            let mut sender = sender("cubic+hystart");
            let gap = Duration::from_micros(gap);
            let rounds: Vec<_> = (0..3).map(|_| round(&mut sender, RTT, gap).is_some()).collect();
            assert_eq!(rounds, [false, false, found]);
        }
    }

    #[test]
    fn delay_increase_of_eighth_ends_slow_start() {
        let mut sender = sender("cubic+hystart");
        for rtt in [100, 100, 111] {
            assert_eq!(round(&mut sender, Duration::from_millis(rtt), Duration::ZERO), None);
        }
        let (ssthresh, why) = round(&mut sender, Duration::from_millis(115), Duration::ZERO).unwrap();
        assert_eq!((ssthresh, why), (88.0, "the delay has grown"), "at the ninth ACK of the round");
    }

    #[test]
    fn small_window_stays_in_slow_start() {
        let mut sender = sender("cubic+hystart+iw=2");
        for _ in 0..3 {
            assert_eq!(round(&mut sender, RTT, Duration::ZERO), None);
        }
        assert_eq!(sender.cc().cwnd, 16.0);
        assert_eq!(
            round(&mut sender, RTT * 3, Duration::ZERO).map(|(_, why)| why),
            Some("the delay has grown")
        );
    }

    #[test]
    fn timeout_resets_detection() {
        let mut sender = sender("cubic+hystart");
        while round(&mut sender, RTT, Duration::from_millis(1)).is_none() {}
        let mut again = HyStart { state: State::Found, delay_min: Some(RTT) };
        again.on_timeout();
        assert!(matches!(again.state, State::Fresh) && again.delay_min.is_none());
    }
}
