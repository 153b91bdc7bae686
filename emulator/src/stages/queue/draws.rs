//! The random numbers of PIE and RED.

use airwire::rng::Stream;

/// Where they come from.
#[derive(Clone, Debug)]
pub(super) enum Draws {
    Stream(Stream),
    /// Those that something else has drawn, which ours is compared with.
    #[cfg(test)]
    Given(std::collections::VecDeque<f64>),
}

impl Draws {
    /// Uniform in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        match self {
            Self::Stream(stream) => stream.unit(),
            #[cfg(test)]
            Self::Given(numbers) => numbers.pop_front().expect("as many as were drawn"),
        }
    }
}
