//! HyStart++ (RFC 9406): when the delay grows, slow start continues more slowly for a while, to find out
//! whether the delay stays high.
//!
//! Each round trip records its minimum round-trip time. If, after eight samples, the minimum exceeds the
//! previous round's by an eighth (at least by MIN_RTT_THRESH, at most by MAX_RTT_THRESH), the window enters
//! Conservative Slow Start, where it opens at a quarter of the normal speed. If the delay falls below its
//! value at the beginning of that phase, slow start resumes. After CSS_ROUNDS round trips, ssthresh becomes
//! cwnd. A loss or an ECN echo ends both phases (§4.2).
//!
//! HyStart++ is an add-on to the window and covers only the first slow start (§4.3).
//!
//! - Choice: §4.2 lets an ACK open the window by at most L = 8 segments, or by everything that it
//!   acknowledges if the sender paces. Here the profile decides, as for every window: by one segment, or by
//!   everything (`linux`).
//! - Choice: round-trip times are the samples of the retransmission timer. So without timestamps, an ACK of a
//!   retransmission yields none.

use airwire::time::Duration;

use super::slow_start::{SlowStart, Step};
use crate::recovery::{Ack, View};

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct HyStartPp {
    state: State,
    /// The round is over when this offset is acknowledged. `None`: the first ACK sets it to everything sent
    /// so far.
    window_end: Option<u64>,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    rtt_sample_count: u32,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    SlowStart,
    /// Conservative Slow Start.
    Css {
        baseline_min_rtt: Duration,
        rounds: u32,
    },
    Done,
}

impl SlowStart for HyStartPp {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Step {
        // An episode or an ECN echo has occurred.
        if view.cc.recover.is_some() {
            self.state = State::Done;
        }
        if matches!(self.state, State::Done) {
            return Step::Continue;
        }
        if let Some(rtt) = ack.rtt {
            self.current_round_min_rtt = Some(self.current_round_min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.rtt_sample_count += 1;
        }
        let round_is_over = view.flight.una() >= *self.window_end.get_or_insert_with(|| view.flight.max());
        let step = self.decide(round_is_over);
        if round_is_over {
            self.begin_round(view);
        }
        step
    }
}

impl HyStartPp {
    fn begin_round(&mut self, view: &View<'_>) {
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        self.window_end = Some(view.flight.max());
    }

    fn decide(&mut self, round_is_over: bool) -> Step {
        let enough = self.rtt_sample_count >= N_RTT_SAMPLE;
        let current = self.current_round_min_rtt.filter(|_| enough);
        match &mut self.state {
            State::SlowStart => {
                if let (Some(current), Some(last)) = (current, self.last_round_min_rtt) {
                    let thresh = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                    if current >= last + thresh {
                        self.state = State::Css { baseline_min_rtt: current, rounds: 0 };
                        return Step::Slowly { divisor: CSS_GROWTH_DIVISOR };
                    }
                }
                Step::Continue
            }
            State::Css { baseline_min_rtt, rounds } => {
                *rounds += u32::from(round_is_over);
                if current.is_some_and(|current| current < *baseline_min_rtt) {
                    self.state = State::SlowStart;
                    return Step::Continue;
                }
                // The round in which the phase began counts as the first, even if it was nearly over (§4.2).
                if *rounds >= CSS_ROUNDS {
                    self.state = State::Done;
                    return Step::Leave { why: "the delay grew and stayed high" };
                }
                Step::Slowly { divisor: CSS_GROWTH_DIVISOR }
            }
            State::Done => Step::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::What;
    use crate::recovery::testing::BareSender;

    fn sender() -> BareSender {
        let profile = crate::profile::Profile::linux();
        let mut sender = BareSender::in_profile("newreno+hystartpp", profile);
        sender.send();
        sender.trace();
        sender
    }

    /// Acknowledges the window in flight segment by segment, after this number of milliseconds. Returns the
    /// new cwnd.
    fn round(sender: &mut BareSender, rtt: u64) -> f64 {
        sender.wait(Duration::from_millis(rtt)).ack_each(Duration::ZERO)
    }

    fn end_of_slow_start(sender: &mut BareSender) -> Option<f64> {
        let end = sender.trace().into_iter().find(|decision| decision.by == "hystartpp")?;
        match end.what {
            What::Window { ssthresh, .. } => Some(ssthresh),
            other => panic!("unexpected decision: {other:?}"),
        }
    }

    #[test]
    fn delay_increase_starts_css_for_five_rounds() {
        let mut sender = sender();
        assert_eq!(round(&mut sender, 100), 20.0);
        assert_eq!(round(&mut sender, 100), 40.0);
        // 113 ms is an eighth more, but this round began with the last two segments of the previous one.
        assert_eq!(round(&mut sender, 113), 80.0);
        // Six samples of the next round had already arrived. From the eighth sample on, each ACK counts for a
        // quarter.
        assert_eq!(round(&mut sender, 113), 81.0 + 79.0 / 4.0);
        let mut cwnd = sender.cc().cwnd;
        for _ in 0..3 {
            let grown = round(&mut sender, 113);
            assert!((1.2..1.26).contains(&(grown / cwnd)), "{cwnd} → {grown}");
            cwnd = grown;
        }
        assert_eq!(end_of_slow_start(&mut sender), None);
        // The round in which the phase began was the first of five.
        round(&mut sender, 113);
        let ssthresh = end_of_slow_start(&mut sender).expect("slow start did not end in the fifth round");
        assert!((cwnd..1.25 * cwnd).contains(&ssthresh), "{ssthresh}");
    }

    #[test]
    fn delay_increase_of_exactly_one_eighth_starts_css() {
        let mut sender = sender();
        for (rtt, cwnd) in [(96, 20.0), (96, 40.0), (108, 80.0), (108, 81.0 + 79.0 / 4.0)] {
            assert_eq!(round(&mut sender, rtt), cwnd);
        }
    }

    #[test]
    fn falling_delay_resumes_slow_start() {
        let mut sender = sender();
        for rtt in [100, 100, 120, 120] {
            round(&mut sender, rtt);
        }
        let conservative = sender.cc().cwnd;
        // The eighth sample of this round is below the baseline.
        assert!(round(&mut sender, 105) > 1.8 * conservative);
        assert_eq!(end_of_slow_start(&mut sender), None);
    }

    #[test]
    fn small_delay_increase_is_ignored() {
        let mut sender = sender();
        for (rtt, cwnd) in [(100, 20.0), (112, 40.0), (124, 80.0), (137, 160.0)] {
            assert_eq!(round(&mut sender, rtt), cwnd);
        }
    }

    #[test]
    fn only_first_slow_start_is_monitored() {
        let mut sender = sender();
        round(&mut sender, 100);
        sender.timeout();
        for rtt in [100, 100, 100, 150, 150] {
            round(&mut sender, rtt);
        }
        assert_eq!(end_of_slow_start(&mut sender), None);
    }
}
