//! Fast fading: many propagation paths of similar strength reach a moving mobile from all directions
//! (Clarke's model).
//!
//! Y. R. Zheng and C. Xiao, "Improved models for the generation of multiple uncorrelated Rayleigh fading
//! waveforms", IEEE Communications Letters 6(6), 2002: the in-phase and quadrature components are sums of M
//! sinusoids of equal strength. Their Doppler shifts are f_d cos α_n and f_d sin α_n, with the angles α_n =
//! (2πn − π + θ) / 4M. θ and all phases are uniform in [−π, π). Each component has the autocorrelation J0(2π
//! f_d τ), and the two are uncorrelated.
//!
//! Choice: this model, and not the one of the authors' paper of 2003. The sinusoids of that model share one
//! phase, so at the start, before their frequencies have separated them, the amplitude does not have a
//! Rayleigh distribution.

use airwire::rng::Stream;

use crate::maths::cos_turns;

/// Choice: more than the paper's 8. Deep fades need many paths that cancel each other. With 32, they are as
/// frequent as in theory, within about 1 %.
const M: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct Rayleigh {
    /// Sinusoids of the in-phase component: frequency in Hz and phase in turns. `quadrature` has the same
    /// form.
    in_phase: [(f64, f64); M],
    quadrature: [(f64, f64); M],
}

impl Rayleigh {
    pub(crate) fn new(doppler: f64, mut stream: Stream) -> Self {
        let theta = stream.unit() - 0.5;
        let mut phase = || stream.unit();
        let mut component = |quarter: f64| {
            std::array::from_fn(|n| {
                // In turns. sin α = cos(α − ¼ turn).
                let alpha = ((n + 1) as f64 - 0.5 + theta) / (4 * M) as f64;
                (doppler * cos_turns(alpha - quarter), phase())
            })
        };
        let in_phase = component(0.0);
        Self { in_phase, quadrature: component(0.25) }
    }

    /// Received power at a time in seconds. The mean is 1.
    pub(crate) fn power(&self, at: f64) -> f64 {
        let sum = |component: &[(f64, f64); M]| -> f64 {
            component.iter().map(|(frequency, phase)| cos_turns(frequency * at + phase)).sum()
        };
        // Each sum has the mean square M/2.
        let (x, y) = (sum(&self.in_phase), sum(&self.quadrature));
        (x * x + y * y) / M as f64
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::stages::testing::{SIGMAS, within_binomial};

    fn rayleigh(doppler: f64, seed: u64) -> Rayleigh {
        Rayleigh::new(doppler, Stream::new(seed, "test"))
    }

    /// The Bessel function J0, by numerical integration.
    fn j0(x: f64) -> f64 {
        const STEPS: u32 = 2_000;
        let values = (0..STEPS).map(|n| (x * ((f64::from(n) + 0.5) * PI / f64::from(STEPS)).sin()).cos());
        values.sum::<f64>() / f64::from(STEPS)
    }

    /// Asserts that the mean of independent values is `expected`, within the uncertainty that follows from
    /// their variance.
    #[track_caller]
    fn mean_is(values: &[f64], expected: f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let allowed = SIGMAS * (variance / n).sqrt();
        assert!((mean - expected).abs() <= allowed, "{mean}, expected {expected} ± {allowed}");
    }

    #[test]
    fn power_is_exponentially_distributed_at_any_time() {
        for at in [0.0, 0.013, 1e5] {
            let powers: Vec<f64> = (0..20_000).map(|seed| rayleigh(70.0, seed).power(at)).collect();
            mean_is(&powers, 1.0);
            for margin in [10.0_f64, 3.0, 1.0, 0.5] {
                let below = powers.iter().filter(|power| **power < 1.0 / margin).count();
                within_binomial(below, powers.len(), 1.0 - (-1.0 / margin).exp());
            }
        }
    }

    /// The power of two Gaussian components with the autocorrelation r has the covariance r².
    #[test]
    fn power_autocorrelation_follows_bessel_function() {
        let doppler = 50.0;
        for turns in [0.05, 0.1, 0.2, 0.3827, 0.6, 1.0, 2.3] {
            let both: Vec<f64> = (0..20_000)
                .map(|seed| {
                    let fading = rayleigh(doppler, seed);
                    (fading.power(3.0) - 1.0) * (fading.power(3.0 + turns / doppler) - 1.0)
                })
                .collect();
            mean_is(&both, j0(2.0 * PI * turns).powi(2));
        }
    }

    #[test]
    fn fade_rate_and_duration_match_theory() {
        let doppler = 20.0;
        let (step, seconds) = (4e-4, 5.0);
        let traces: Vec<Vec<f64>> = (0..100)
            .map(|seed| {
                let fading = rayleigh(doppler, seed);
                (0..(seconds / step) as u32).map(|n| fading.power(f64::from(n) * step)).collect()
            })
            .collect();
        for decibels in [0.0, 5.0, 10.0] {
            let below = 10.0_f64.powf(-decibels / 10.0);
            let rho = below.sqrt();
            let rate = (2.0 * PI).sqrt() * doppler * rho * (-below).exp();
            let runs: Vec<(f64, f64)> = traces
                .iter()
                .map(|powers| {
                    let faded: Vec<bool> = powers.iter().map(|power| *power < below).collect();
                    let fades = faded.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
                    (fades / seconds, faded.iter().filter(|lost| **lost).count() as f64 * step / seconds)
                })
                .collect();
            let (rates, shares): (Vec<f64>, Vec<f64>) = runs.iter().copied().unzip();
            mean_is(&rates, rate);
            mean_is(&shares, 1.0 - (-below).exp());
            // The mean duration T of a fade: in each run, the time in fades minus the number of fades times T
            // has the mean 0.
            let duration = (1.0 - (-below).exp()) / rate;
            let rest: Vec<f64> = runs.iter().map(|(rate, share)| share - rate * duration).collect();
            mean_is(&rest, 0.0);
        }
    }

    #[test]
    fn fading_scales_with_doppler_and_depends_on_seed() {
        let (slow, fast) = (rayleigh(10.0, 1), rayleigh(40.0, 1));
        for n in 0..100 {
            let at = f64::from(n) * 0.037;
            assert!((slow.power(4.0 * at) - fast.power(at)).abs() < 1e-9);
        }
        assert!((rayleigh(10.0, 1).power(0.3) - rayleigh(10.0, 2).power(0.3)).abs() > 1e-6);
    }
}
