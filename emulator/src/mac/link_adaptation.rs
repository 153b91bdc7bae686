//! Link adaptation: how the size of transport blocks changes over time.

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

/// A state of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Size of a transport block in octets. 0: the channel is blocked.
    pub octets: usize,
    /// Mean time in this state, which has an exponential distribution.
    pub mean: Duration,
}

/// The state of a channel over time. From each state, the channel moves to the previous or the next one, with
/// equal probability.
#[derive(Clone, Debug)]
pub struct LinkAdaptation {
    states: Vec<State>,
    current: usize,
    /// End of the current state. `None`: the state never ends.
    until: Option<Instant>,
    stream: Stream,
}

impl LinkAdaptation {
    /// Creates the chain in its first state. A chain with one state never changes.
    pub fn new(states: Vec<State>, now: Instant, stream: Stream) -> Self {
        let mut adaptation = Self { states, current: 0, until: None, stream };
        adaptation.draw_end(now);
        adaptation
    }

    /// Replaces the states. The first one becomes the current state.
    pub fn set(&mut self, states: Vec<State>, now: Instant) {
        if states != self.states {
            self.states = states;
            self.current = 0;
            self.draw_end(now);
        }
    }

    fn draw_end(&mut self, from: Instant) {
        self.until = (self.states.len() > 1).then(|| {
            let mean = self.states[self.current].mean.as_secs_f64();
            // 1 − u is above 0, so the logarithm is finite.
            from + Duration::from_secs_f64(-mean * (1.0 - self.stream.unit()).ln())
        });
    }

    /// Size of a transport block at `now`, in octets.
    pub fn octets(&mut self, now: Instant) -> usize {
        while let Some(until) = self.until.filter(|until| *until <= now) {
            let last = self.states.len() - 1;
            self.current = match self.current {
                0 => 1,
                current if current == last => last - 1,
                current if self.stream.chance(0.5) => current + 1,
                current => current - 1,
            };
            self.draw_end(until);
        }
        self.states[self.current].octets
    }

    /// The end of the current state.
    pub fn next_change(&self) -> Option<Instant> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(octets: usize, millis: u64) -> State {
        State { octets, mean: Duration::from_millis(millis) }
    }

    #[test]
    fn single_state_never_changes() {
        let mut one = LinkAdaptation::new(vec![state(100, 0)], Instant::ZERO, Stream::new(1, "x"));
        assert_eq!((one.octets(Instant::from_secs(1_000)), one.next_change()), (100, None));
    }

    #[test]
    fn chain_spends_time_in_states_as_configured() {
        // Both outer states lead to the middle one, so visits are 1 : 2 : 1.
        let states = vec![state(0, 100), state(1, 100), state(2, 400)];
        let mut chain = LinkAdaptation::new(states, Instant::ZERO, Stream::new(1, "x"));
        let mut times = [0.0_f64; 3];
        for ms in 0..2_000_000 {
            let octets = chain.octets(Instant::from_millis(ms));
            times[octets] += 1.0 / 2_000_000.0;
        }
        for (share, expected) in times.into_iter().zip([100.0 / 700.0, 200.0 / 700.0, 400.0 / 700.0]) {
            assert!((share - expected).abs() < 0.03, "{times:?}");
        }
    }
}
