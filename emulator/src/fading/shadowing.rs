//! Slow fading: attenuation by obstacles, as a normally distributed number of dB that changes with the position.
//!
//! M. Gudmundson, "Correlation model for shadow fading in mobile radio systems", Electronics Letters 27(23),
//! 1991: over a distance d, the correlation falls to exp(−d/d_corr). This is a first-order autoregressive
//! process, so the value after any time follows from the last value in one step.

use airwire::rng::Stream;
use airwire::time::Instant;

use crate::maths;

#[derive(Clone, Debug)]
pub(super) struct Shadowing {
    deviation: f64,
    /// Time in which the mobile travels the decorrelation distance, in seconds.
    decorrelation_time: f64,
    stream: Stream,
    /// Time of the last query, and the value then, divided by the deviation.
    last: Option<(Instant, f64)>,
}

impl Shadowing {
    pub(super) fn new(deviation: f64, decorrelation_time: f64, stream: Stream) -> Self {
        Self { deviation, decorrelation_time, stream, last: None }
    }

    /// Continues from the current value with new parameters.
    pub(super) fn with_parameters(self, deviation: f64, decorrelation_time: f64) -> Self {
        Self { deviation, decorrelation_time, ..self }
    }

    /// Attenuation in dB. `now` must not decrease.
    pub(super) fn decibels(&mut self, now: Instant) -> f64 {
        let value = match self.last {
            Some((at, value)) if at == now => value,
            Some((at, value)) => {
                let elapsed = (now - at).as_secs_f64() / self.decorrelation_time;
                // 1 − r², accurate even where r is almost 1.
                let new = -maths::exp_m1(-2.0 * elapsed);
                maths::exp(-elapsed) * value + new.sqrt() * maths::normal(&mut self.stream)
            }
            None => maths::normal(&mut self.stream),
        };
        self.last = Some((now, value));
        self.deviation * value
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Duration;

    use super::*;
    use crate::stages::testing::{SIGMAS, within_binomial};

    #[test]
    fn shadowing_is_normal_regardless_of_earlier_queries() {
        let n = 20_000;
        for queries in [&[5_000_u64][..], &[0, 1, 2, 5_000], &[0, 4_999, 5_000]] {
            let values: Vec<f64> = (0..n)
                .map(|seed| {
                    let mut shadowing = Shadowing::new(8.0, 2.0, Stream::new(seed, "test"));
                    queries.iter().map(|at| shadowing.decibels(Instant::from_millis(*at))).last().unwrap()
                })
                .collect();
            let mean = values.iter().sum::<f64>() / n as f64;
            assert!(mean.abs() <= SIGMAS * 8.0 / (n as f64).sqrt(), "{mean}");
            for margin in [0.0, 8.0, 16.0, -4.0] {
                let below = values.iter().filter(|value| **value < -margin).count();
                within_binomial(below, n as usize, maths::upper_tail(margin / 8.0));
            }
        }
    }

    #[test]
    fn correlation_decays_exponentially_with_decorrelation_distance() {
        let n = 20_000;
        for (steps, passed) in [(1, 0.5), (1, 2.0), (10, 2.0), (100, 2.0), (1, 6.0)] {
            let products: Vec<f64> = (0..n)
                .map(|seed| {
                    let mut shadowing = Shadowing::new(1.0, 2.0, Stream::new(seed, "test"));
                    let first = shadowing.decibels(Instant::ZERO);
                    let step = Duration::from_secs_f64(passed / f64::from(steps));
                    let last =
                        (1..=u64::from(steps as u32)).map(|k| shadowing.decibels(Instant::ZERO + step * k));
                    first * last.last().unwrap()
                })
                .collect();
            let r = (-passed / 2.0_f64).exp();
            let mean = products.iter().sum::<f64>() / n as f64;
            // The product of two standard normal values with the correlation r has the variance 1 + r².
            let allowed = SIGMAS * ((1.0 + r * r) / n as f64).sqrt();
            assert!((mean - r).abs() <= allowed, "{steps} steps: {mean}, expected {r} ± {allowed}");
        }
    }

    #[test]
    fn repeated_query_returns_same_value() {
        let mut shadowing = Shadowing::new(8.0, 2.0, Stream::new(1, "test"));
        let one = shadowing.decibels(Instant::from_secs(1));
        assert_eq!(one.to_bits(), shadowing.decibels(Instant::from_secs(1)).to_bits());
        assert_ne!(one.to_bits(), shadowing.decibels(Instant::from_secs(2)).to_bits());
    }
}
