//! Named random streams. Each component draws from its own stream, derived from (seed, component), so an
//! additional draw in one component does not change the values that other components draw.

use std::hash::Hasher;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use siphasher::sip::SipHasher13;

/// A sequence of random numbers that is identical in every run with the same seed.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// Returns the stream of `component`, a name that is unique within the run.
    pub fn new(seed: u64, component: &str) -> Self {
        let mut hasher = SipHasher13::new_with_keys(seed, 0x7374_7265_616d);
        hasher.write(component.as_bytes());
        Self(Pcg64Mcg::seed_from_u64(hasher.finish()))
    }

    /// Draws 64 uniformly distributed bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a uniform number in [0, 1) with 53 bits of precision.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with this probability, from 0 (never) to 1 (always). Always draws exactly once.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Draws a uniform number in `0..n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
}
