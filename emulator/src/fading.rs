//! Fading of a radio link: decides from the received power whether a transmission arrives.
//!
//! There are two processes, which work alone or together (Suzuki fading): fast fading by multipath
//! propagation, and slow fading by obstacles (shadowing). A transmission is lost while the received power is
//! below a threshold, which is `margin` below the mean power. With slow fading the reference is the mean in
//! dB, which is the median.

mod rayleigh;
mod shadowing;
pub mod units;

use std::f64::consts::LN_10;

use airwire::rng::Stream;
use airwire::time::Instant;

use crate::maths;
use crate::settings::Invalid;
pub(crate) use rayleigh::Rayleigh;
use shadowing::Shadowing;
use units::{Decibels, Distance, Frequency, Speed};

/// Settings of fast and slow fading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FadingConfig {
    pub(crate) speed: Speed,
    pub(crate) margin: Decibels,
    /// Fast fading: the carrier frequency.
    pub(crate) carrier: Option<Frequency>,
    /// Slow fading: the standard deviation, and the distance at which the correlation has fallen to 1/e.
    pub(crate) slow: Option<(Decibels, Distance)>,
}

/// Speed of light in m/s.
const LIGHT: f64 = 299_792_458.0;
/// Upper bound on the speed in m/s. A satellite in low orbit moves at 7600 m/s.
const MAX_SPEED: f64 = 20_000.0;

/// Converts dB to a ratio.
pub(crate) fn ratio(decibels: f64) -> f64 {
    maths::exp(decibels / 10.0 * LN_10)
}

/// Maximum Doppler shift in Hz.
pub(crate) fn doppler(speed: Speed, carrier: Frequency) -> f64 {
    speed.metres_per_second() / LIGHT * carrier.hertz()
}

impl FadingConfig {
    /// Refuses values out of range. The error names the key as the settings spell it.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        let speed = self.speed.metres_per_second();
        if !(1e-3..=MAX_SPEED).contains(&speed) {
            return Err(Invalid::new(
                "speed",
                "must be from 0.001m/s to 20000m/s (\"3km/h\" is a pedestrian): without movement the loss would never change",
            ));
        }
        if self.carrier.is_some_and(|carrier| !(1e6..=1e12).contains(&carrier.hertz())) {
            return Err(Invalid::new("carrier", "must be from 1MHz to 1000GHz, such as \"2GHz\""));
        }
        if self.margin.value().abs() > 60.0 {
            return Err(Invalid::new("margin", "must be from -60dB to 60dB, such as \"10dB\""));
        }
        if let Some((deviation, decorrelation)) = self.slow {
            if !(0.1..=30.0).contains(&deviation.value()) {
                return Err(Invalid::new(
                    "deviation",
                    "must be from 0.1dB to 30dB; 8dB is common for cities",
                ));
            }
            if !(0.1..=100_000.0).contains(&decorrelation.metres()) {
                return Err(Invalid::new(
                    "decorrelation",
                    "must be from 0.1m to 100km; 20m is common for cities",
                ));
            }
        }
        Ok(())
    }

    fn doppler(&self) -> Option<f64> {
        self.carrier.map(|carrier| doppler(self.speed, carrier))
    }

    /// Describes the average behaviour. `units` is "packets" or "blocks".
    pub(crate) fn remark(&self, units: &str) -> String {
        let below = 1.0 / ratio(self.margin.value());
        match (self.doppler(), self.slow) {
            (Some(doppler), None) => {
                let (lost, rho) = (-maths::exp_m1(-below), below.sqrt());
                let crossings = (2.0 * std::f64::consts::PI).sqrt() * doppler * rho * maths::exp(-below);
                format!(
                    "{:.2} % of the {units} are lost on average, if they are spread evenly in time; {crossings:.3} fades per \
                     second, each {:.4} s long on average (Doppler shift {doppler:.2} Hz)",
                    100.0 * lost,
                    lost / crossings
                )
            }
            (None, Some((deviation, _))) => {
                let lost = maths::upper_tail(self.margin.value() / deviation.value());
                format!(
                    "{:.2} % of the {units} are lost on average, if they are spread evenly in time",
                    100.0 * lost
                )
            }
            (Some(doppler), Some(_)) => {
                format!("fast and slow fading together (Doppler shift {doppler:.2} Hz)")
            }
            (None, None) => String::new(),
        }
    }
}

/// The received power as a function of time.
#[derive(Clone, Debug)]
pub(crate) struct Fading {
    threshold: f64,
    fast: Option<Rayleigh>,
    slow: Option<Shadowing>,
    seeds: [u64; 2],
}

impl Fading {
    /// Creates the process from valid settings. The number of draws from the stream does not depend on
    /// `config`.
    pub(crate) fn new(config: &FadingConfig, stream: &mut Stream) -> Self {
        let mut fading =
            Self { threshold: 0.0, fast: None, slow: None, seeds: [stream.bits(), stream.bits()] };
        fading.set(config);
        fading
    }

    /// Applies new settings at run time. Fast fading at another Doppler shift keeps its propagation paths.
    /// Slow fading continues from its current value.
    pub(crate) fn set(&mut self, config: &FadingConfig) {
        let [fast, slow] = self.seeds;
        self.threshold = 1.0 / ratio(config.margin.value());
        self.fast = config.doppler().map(|doppler| Rayleigh::new(doppler, Stream::new(fast, "rayleigh")));
        let speed = config.speed.metres_per_second();
        self.slow = config.slow.map(|(deviation, decorrelation)| {
            let (deviation, decorrelation_time) = (deviation.value(), decorrelation.metres() / speed);
            match self.slow.take() {
                Some(before) => before.with_parameters(deviation, decorrelation_time),
                None => Shadowing::new(deviation, decorrelation_time, Stream::new(slow, "shadowing")),
            }
        });
    }

    /// Received power relative to the mean without slow fading. `now` must not decrease.
    fn power(&mut self, now: Instant) -> f64 {
        let fast = self.fast.as_ref().map_or(1.0, |fast| fast.power(now.as_secs_f64()));
        let slow = self.slow.as_mut().map_or(1.0, |slow| ratio(slow.decibels(now)));
        fast * slow
    }

    /// Whether a transmission at `now` is lost. `now` must not decrease.
    pub(crate) fn loses(&mut self, now: Instant) -> bool {
        self.power(now) < self.threshold
    }
}

#[cfg(test)]
mod tests;
