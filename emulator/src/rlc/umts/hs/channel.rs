//! The reception of one mobile: a mean signal-to-noise ratio and optional fading.

use std::f64::consts::LN_10;

use airwire::rng::Stream;
use airwire::time::Instant;

use super::config::FastFading;
use crate::fading::Rayleigh;
use crate::maths;

/// Lower bound for the result of `decibels`. The logarithm of 0 is undefined.
const DEEPEST: f64 = -100.0;

pub(super) struct RadioChannel {
    /// Mean signal-to-noise ratio in dB.
    mean: f64,
    fading: Option<Rayleigh>,
    seed: u64,
}

impl RadioChannel {
    pub(super) fn new(mean: f64, fading: Option<&FastFading>, mut stream: Stream) -> Self {
        let mut channel = Self { mean, fading: None, seed: stream.bits() };
        channel.set(mean, fading);
        channel
    }

    /// Sets the mean and the fading. Fading at another speed uses the same random paths.
    pub(super) fn set(&mut self, mean: f64, fading: Option<&FastFading>) {
        self.mean = mean;
        self.fading =
            fading.map(|fading| Rayleigh::new(fading.doppler(), Stream::new(self.seed, "rayleigh")));
    }

    /// Signal-to-noise ratio in dB.
    pub(super) fn snr(&self, at: Instant) -> f64 {
        let faded = self.fading.as_ref().map_or(0.0, |fading| decibels(fading.power(at.as_secs_f64())));
        self.mean + faded
    }
}

/// Converts a ratio to dB.
pub(super) fn decibels(ratio: f64) -> f64 {
    if ratio < 1e-10 { DEEPEST } else { 10.0 * maths::ln(ratio) / LN_10 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fading::ratio;

    #[test]
    fn decibel_conversion_inverts_ratio_conversion() {
        for value in [-40.0, -3.0, 0.0, 10.0, 33.3] {
            assert!((decibels(ratio(value)) - value).abs() < 1e-9);
        }
        assert_eq!(decibels(0.0), -100.0);
    }

    #[test]
    fn average_snr_equals_mean_with_and_without_fading() {
        let at = Instant::from_secs(3);
        assert_eq!(RadioChannel::new(7.0, None, Stream::new(1, "test")).snr(at), 7.0);
        let fading = FastFading { speed: "3km/h".parse().unwrap(), carrier: "2GHz".parse().unwrap() };
        let powers: Vec<f64> = (0..4000)
            .map(|seed| ratio(RadioChannel::new(7.0, Some(&fading), Stream::new(seed, "test")).snr(at)))
            .collect();
        // The standard deviation of an exponential distribution is equal to its mean.
        let mean = powers.iter().sum::<f64>() / 4000.0 / ratio(7.0);
        assert!((mean - 1.0).abs() < 3.29 / 4000.0_f64.sqrt(), "{mean}");
    }
}
