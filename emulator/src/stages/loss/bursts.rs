//! A Gilbert–Elliott channel described by measurable quantities: the mean loss rate and the mean burst
//! length.
//!
//! The good state loses no packets and the bad state loses all. With a mean loss rate m and a mean burst
//! length of L steps, the probability of leaving the bad state is β = 1/L. Since α/(α + β) = m, the
//! probability of leaving the good state is α = m / (L (1 − m)).

use std::fmt;

use airwire::time::Duration;
use airwire::units::Probability;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::{LossConfig, Step};
use crate::settings::Invalid;

/// Average length of a burst of losses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Burst {
    /// A number of steps.
    Steps(f64),
    /// A duration, for channels that step in time.
    Time(Duration),
}

const EXPECTED: &str = "a number of steps such as 4, or a time such as \"40ms\"";

impl<'de> Deserialize<'de> for Burst {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTime;
        impl Visitor<'_> for NumberOrTime {
            type Value = Burst;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_f64<E: de::Error>(self, steps: f64) -> Result<Burst, E> {
                Ok(Burst::Steps(steps))
            }
            fn visit_i64<E: de::Error>(self, steps: i64) -> Result<Burst, E> {
                Ok(Burst::Steps(steps as f64))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Burst, E> {
                let time = text.parse().map(Burst::Time);
                time.map_err(|_| E::custom(format!("`{text}` is not a burst length: write {EXPECTED}")))
            }
        }
        deserializer.deserialize_any(NumberOrTime)
    }
}

/// A Gilbert–Elliott channel as a scenario describes it: by four probabilities, or by mean loss rate and mean
/// burst length.
pub(crate) struct TwoStates {
    /// `good`, `bad`, `good_to_bad` and `bad_to_good`.
    pub(crate) four: [Option<Probability>; 4],
    pub(crate) mean: Option<Probability>,
    pub(crate) burst: Option<Burst>,
    /// Interval between steps. `None`: the channel steps with each packet.
    pub(crate) step: Option<Duration>,
}

const PROBABILITY_KEYS: [&str; 4] = ["good", "bad", "good_to_bad", "bad_to_good"];

impl TwoStates {
    /// Returns the four probabilities, or `None` if a setting is missing.
    pub(crate) fn probabilities(&self) -> Option<[f64; 4]> {
        if let (Some(mean), Some(burst)) = (self.mean, self.burst) {
            let (mean, steps) = (mean.value(), self.in_steps(burst).ok()?);
            return Some([0.0, 1.0, (mean / (steps * (1.0 - mean))).min(1.0), 1.0 / steps]);
        }
        let [good, bad, good_to_bad, bad_to_good] = self.four;
        Some([good?, bad?, good_to_bad?, bad_to_good?].map(Probability::value))
    }

    /// Converts the mean burst length to steps.
    fn in_steps(&self, burst: Burst) -> Result<f64, Invalid> {
        match (burst, self.step) {
            (Burst::Steps(steps), _) => Ok(steps),
            (Burst::Time(time), Some(step)) => Ok(time.as_nanos() as f64 / step.as_nanos() as f64),
            (Burst::Time(_), None) => Err(Invalid::new(
                "burst",
                "a burst length in time needs steps in time: add `step = \"10ms\"`, or write a number of packets",
            )),
        }
    }

    /// Checks that either the four probabilities or both `mean` and `burst` are present, and that they are
    /// possible.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        let mut four = PROBABILITY_KEYS.into_iter().zip(self.four);
        let Some(used_instead) = self.mean.map(|_| "mean").or_else(|| self.burst.map(|_| "burst")) else {
            return four.find(|(_, probability)| probability.is_none()).map_or(Ok(()), |(key, _)| {
                Err(Invalid::new(
                    key,
                    format!(
                        "required by the model \"gilbert-elliott\": add `{key} = …`, or `mean` and `burst` in place of all four probabilities"
                    ),
                ))
            });
        };
        if let Some((key, _)) = four.find(|(_, probability)| probability.is_some()) {
            return Err(Invalid::new(
                key,
                format!("`mean` and `burst` replace this probability: remove `{key}` or `{used_instead}`"),
            ));
        }
        let needed =
            |key| Invalid::new(key, format!("`mean` and `burst` are used together: add `{key} = …`"));
        let mean = self.mean.ok_or_else(|| needed("mean"))?;
        let steps = self.in_steps(self.burst.ok_or_else(|| needed("burst"))?)?;
        if !(1.0..=1e12).contains(&steps) {
            return Err(Invalid::new("burst", "must be at least one step: write for example 4"));
        }
        let highest = steps / (steps + 1.0);
        // Tolerate rounding errors in a mean at the upper limit.
        if mean.value() > highest * (1.0 + 1e-12) {
            return Err(Invalid::new(
                "mean",
                format!(
                    "bursts of {steps} steps lose at most {:.2} %, because at least one step between two bursts is good",
                    100.0 * highest
                ),
            ));
        }
        Ok(())
    }
}

impl LossConfig {
    fn as_chain(&self) -> TwoStates {
        let step = match self.step.unwrap_or_default() {
            Step::Packet => None,
            Step::Every(time) => Some(time),
        };
        let four = [self.good, self.bad, self.good_to_bad, self.bad_to_good];
        TwoStates { four, mean: self.mean, burst: self.burst, step }
    }

    /// Returns the probabilities `good`, `bad`, `good_to_bad` and `bad_to_good` of the model
    /// `gilbert-elliott`, computed from `mean` and `burst` if necessary.
    pub fn two_states(&self) -> Option<[f64; 4]> {
        self.as_chain().probabilities()
    }

    pub(super) fn validate_two_states(&self) -> Result<(), Invalid> {
        self.as_chain().validate()
    }
}
