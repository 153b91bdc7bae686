//! The random numbers of PIE and RED.

use airwire::rng::Stream;

/// The source of the random numbers.
#[derive(Clone, Debug)]
pub(super) enum Draws {
    Stream(Stream),
    /// Numbers drawn by the implementation with which a test compares this one.
    #[cfg(test)]
    Given(std::collections::VecDeque<f64>),
}

impl Draws {
    /// Returns a number from a uniform distribution on [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        match self {
            Self::Stream(stream) => stream.unit(),
            #[cfg(test)]
            Self::Given(numbers) => numbers.pop_front().expect("the test provides a number for each draw"),
        }
    }
}
