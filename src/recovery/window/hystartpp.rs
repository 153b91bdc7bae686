//! HyStart++ (RFC 9406): when the delay grows, slow start goes on slowly for a while, to see whether it was a mistake.
//!
//! Each round trip keeps the smallest round-trip time. Once eight samples say that it is longer than that of the round
//! before by an eighth (at least by MIN_RTT_THRESH, at most by MAX_RTT_THRESH), the window is in Conservative Slow
//! Start, where it opens by a quarter of what it would. If the delay falls below what it was when that began, slow start
//! goes on; after CSS_ROUNDS round trips ssthresh becomes cwnd. A loss or an ECN echo ends both (§4.2).
//!
//! It stands beside the window. §4.3: it is about the first slow start only.
//!
//! Choice: §4.2 lets an ACK open the window by L = 8 segments at most, or by all that it acknowledges if the sender
//! paces. Here the profile says by how much, as ever: one segment, or all of it (`linux`).
//! Choice: a round-trip time is what the retransmission timer is told, so an ACK of a copy without timestamps has none.

use airwire::time::Duration;

use super::slow_start::{SlowStart, Step};
use crate::recovery::{Ack, View};

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// HyStart++ (RFC 9406).
#[derive(Debug, Default)]
pub(crate) struct HyStartPp {
    state: State,
    /// The round is over when this is acknowledged. `None`: the first ACK says how much has left.
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
    fn name(&self) -> &'static str {
        "hystartpp"
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Step {
        // There has been a loss event, or an echo.
        if view.cc.recover.is_some() {
            self.state = State::Done;
        }
        if matches!(self.state, State::Done) {
            return Step::GoOn;
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
                Step::GoOn
            }
            State::Css { baseline_min_rtt, rounds } => {
                *rounds += u32::from(round_is_over);
                if current.is_some_and(|current| current < *baseline_min_rtt) {
                    self.state = State::SlowStart;
                    return Step::GoOn;
                }
                // The round in which it began is the first, however little of it was left (§4.2).
                if *rounds >= CSS_ROUNDS {
                    self.state = State::Done;
                    return Step::Leave { why: "the delay grew and stayed high" };
                }
                Step::Slowly { divisor: CSS_GROWTH_DIVISOR }
            }
            State::Done => Step::GoOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::testing::BareSender;
    use crate::recovery::{Handshake, What};

    fn sender() -> BareSender {
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        let profile = crate::profile::Profile::linux();
        let mut sender = BareSender::with("newreno+hystartpp", profile, &handshake);
        sender.send();
        sender.trace();
        sender
    }

    /// The window in flight is acknowledged segment by segment, after so many milliseconds. Returns the new cwnd.
    fn round(sender: &mut BareSender, rtt: u64) -> f64 {
        sender.wait(Duration::from_millis(rtt));
        for segment in sender.flight.una() / 1000 + 1..=sender.flight.max() / 1000 {
            sender.ack(segment);
        }
        sender.cc().cwnd
    }

    fn end_of_slow_start(sender: &mut BareSender) -> Option<f64> {
        let left = sender.trace().into_iter().find(|decision| decision.by == "hystartpp")?;
        match left.what {
            What::Window { ssthresh, .. } => Some(ssthresh),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_longer_delay_makes_slow_start_conservative_and_five_rounds_end_it() {
        let mut sender = sender();
        assert_eq!(round(&mut sender, 100), 20.0);
        assert_eq!(round(&mut sender, 100), 40.0);
        // 113 ms is an eighth more, but this round began with the last two segments of the one before.
        assert_eq!(round(&mut sender, 113), 80.0);
        // Six samples of the next round had come: with the second more, ACKs count a quarter.
        assert_eq!(round(&mut sender, 113), 81.0 + 79.0 / 4.0);
        let mut cwnd = sender.cc().cwnd;
        for _ in 0..3 {
            let grown = round(&mut sender, 113);
            assert!((1.2..1.26).contains(&(grown / cwnd)), "{cwnd} → {grown}");
            cwnd = grown;
        }
        assert_eq!(end_of_slow_start(&mut sender), None);
        // The round in which it began was the first of five.
        round(&mut sender, 113);
        let ssthresh = end_of_slow_start(&mut sender).expect("the fifth round ends it");
        assert!((cwnd..1.25 * cwnd).contains(&ssthresh), "{ssthresh}");
    }

    #[test]
    fn a_delay_that_falls_again_was_a_mistake() {
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
    fn a_little_more_delay_is_noise() {
        let mut sender = sender();
        for (rtt, cwnd) in [(100, 20.0), (112, 40.0), (124, 80.0), (137, 160.0)] {
            assert_eq!(round(&mut sender, rtt), cwnd);
        }
    }

    #[test]
    fn only_the_first_slow_start_is_watched() {
        let mut sender = sender();
        round(&mut sender, 100);
        sender.timeout();
        for rtt in [100, 100, 100, 150, 150] {
            round(&mut sender, rtt);
        }
        assert_eq!(end_of_slow_start(&mut sender), None);
    }
}
