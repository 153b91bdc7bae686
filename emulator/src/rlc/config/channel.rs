//! What can be set about a transport channel of a bearer's own: its TTIs, and which blocks it damages.

use airwire::time::Duration;
use airwire::units::Probability;
use serde::{Deserialize, Serialize};

use crate::fading::FadingConfig;
use crate::fading::units::{Decibels, Distance, Frequency, Speed};
use crate::rlc::switching::Switching;
use crate::rlc::umts::dch::Dch;
use crate::rlc::values::length;
use crate::settings::Invalid;
use crate::stages::loss::bursts::{Burst, TwoStates};
use crate::stages::times::Spells;

/// The transport channel: how many PDUs it takes per TTI, how long they need, and how many are damaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChannelConfig {
    /// The rate, in place of `tti` and `blocks`. Absent: what those say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dch: Option<Dch>,
    /// When the rate changes. Default: never.
    pub switching: Switching,
    /// TTIs begin at whole multiples of this (plus `phase`). Default: 10 ms down, 20 ms up.
    pub tti: Duration,
    /// How long after the zero of time the first TTI begins. Default: 0.
    pub phase: Duration,
    /// The transport format set: how many blocks a TTI can carry, ascending. The last is the rate; 12 blocks of 320
    /// bits of payload per 10 ms are 384 kbit/s. A TTI takes the largest that does not exceed what there is
    /// to send. Default: 1, 2, 4, 8, 12 down; 1, 2, 3, 4 up.
    pub blocks: Vec<u16>,
    /// Whether every count up to the largest of `blocks` may be used too. Default: listed.
    pub counts: Counts,
    /// From the end of a TTI until its PDUs are at the other end. Default: 40 ms.
    pub delay: Duration,
    /// Which blocks are damaged, data and control alike. Default: none.
    pub errors: BlockErrors,
    /// Times without coverage, such as a deep fade or a handover: no block of a TTI that begins then arrives. What has
    /// begun before arrives. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Spells>,
}

/// How many blocks a TTI may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Only what `blocks` lists.
    #[default]
    Listed,
    /// Anything up to the largest.
    Any,
}

/// Which blocks the channel damages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "model", deny_unknown_fields)]
pub enum BlockErrors {
    /// Each block for itself.
    Independent {
        /// The block error rate.
        bler: Probability,
    },
    /// A whole TTI is damaged, or none of it.
    PerTti {
        /// The probability that a TTI is damaged.
        bler: Probability,
    },
    /// Gilbert–Elliott: the block error rates of a good and a bad state, and how likely a TTI leaves its state for
    /// the other. Time passes for it whether or not anything is transmitted.
    GilbertElliott {
        /// The block error rate in the good state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        good: Option<Probability>,
        /// The block error rate in the bad state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad: Option<Probability>,
        /// The probability at each TTI to leave the good state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        good_to_bad: Option<Probability>,
        /// The probability at each TTI to leave the bad state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad_to_good: Option<Probability>,
        /// In place of the four: the share of blocks that is damaged on average, all of them in bursts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mean: Option<Probability>,
        /// With `mean`: how many TTIs a burst has on average.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burst: Option<f64>,
    },
    /// Fast fading: a TTI is damaged if the power that the mobile receives at its beginning is below what is needed.
    Rayleigh {
        /// How fast the mobile moves.
        speed: Speed,
        /// The frequency of the carrier.
        carrier: Frequency,
        /// How far the mean of the power (with slow fading: its median) is above what is needed.
        margin: Decibels,
        /// Slow fading besides: its standard deviation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deviation: Option<Decibels>,
        /// With `deviation`: the distance over which its correlation falls to 1/e.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decorrelation: Option<Distance>,
    },
    /// Slow fading alone.
    Shadowing {
        /// How fast the mobile moves.
        speed: Speed,
        /// How far the median of the power is above what is needed.
        margin: Decibels,
        /// The standard deviation.
        deviation: Decibels,
        /// The distance over which the correlation falls to 1/e.
        decorrelation: Distance,
    },
    /// Exactly these, counted from 0 in the order of transmission in this direction.
    Listed {
        /// The numbers of the blocks.
        lost: Vec<u64>,
    },
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self::downlink_384()
    }
}

impl ChannelConfig {
    /// 12 blocks per TTI of 10 ms.
    pub fn downlink_384() -> Self {
        Self {
            dch: None,
            switching: Switching::Never {},
            tti: Duration::from_millis(10),
            phase: Duration::ZERO,
            blocks: vec![1, 2, 4, 8, 12],
            counts: Counts::Listed,
            delay: Duration::from_millis(40),
            errors: BlockErrors::default(),
            outage: None,
        }
    }

    /// 4 blocks per TTI of 20 ms.
    pub fn uplink_64() -> Self {
        Self { tti: Duration::from_millis(20), blocks: vec![1, 2, 3, 4], ..Self::downlink_384() }
    }

    /// The TTI at the start.
    pub fn tti(&self) -> Duration {
        self.dch.map_or(self.tti, Dch::tti)
    }

    /// The transport format set at the start.
    pub fn blocks(&self) -> &[u16] {
        match self.dch {
            Some(dch) => dch.blocks(),
            None => &self.blocks,
        }
    }

    /// The most blocks that a TTI carries at the start.
    pub fn largest(&self) -> u16 {
        self.blocks().last().copied().unwrap_or(1)
    }

    /// What a Gilbert–Elliott channel or one that fades does on average; empty for other models.
    pub fn remarks(&self) -> Vec<String> {
        if let Some(fading) = self.errors.fading() {
            return vec![fading.remark("blocks")];
        }
        let Some([good, bad, alpha, beta]) = self.errors.two_states() else { return Vec::new() };
        let (mean, ttis) = ((good * beta + bad * alpha) / (alpha + beta), 1.0 / beta);
        if !mean.is_finite() || !ttis.is_finite() {
            return Vec::new();
        }
        vec![format!(
            "{:.2} % of the blocks are damaged on average; the bad state lasts {:.3} s on average",
            100.0 * mean,
            ttis * self.tti().as_secs_f64()
        )]
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        length("tti", self.tti)?;
        if self.phase >= self.tti() {
            let message = format!("{} is not shorter than the TTI of {}", self.phase, self.tti());
            return Err(Invalid::new("phase", message));
        }
        if self.blocks.is_empty() {
            return Err(Invalid::new(
                "blocks",
                "the list is empty: write the possible numbers of blocks per TTI, such as [1, 2, 4, 8, 12]",
            ));
        }
        if self.blocks[0] == 0 || !self.blocks.is_sorted_by(|a, b| a < b) {
            let message = format!(
                "{:?} is not in ascending order from 1 or more: write for example [1, 2, 4, 8, 12]",
                self.blocks
            );
            return Err(Invalid::new("blocks", message));
        }
        self.errors.validate().map_err(|invalid| invalid.within("errors"))?;
        self.switching.validate(self.dch).map_err(|invalid| invalid.within("switching"))?;
        match &self.outage {
            Some(outage) => outage.validate("outage").map_err(|invalid| invalid.within("outage")),
            None => Ok(()),
        }
    }

    /// The downlink is an HS-DSCH: nothing is said here of another channel.
    pub(super) fn validate_shared(&self) -> Result<(), Invalid> {
        let usual = Self::downlink_384();
        let settings = [
            ("dch", self.dch != usual.dch),
            ("switching", self.switching != usual.switching),
            ("tti", self.tti != usual.tti),
            ("phase", self.phase != usual.phase),
            ("blocks", self.blocks != usual.blocks),
            ("counts", self.counts != usual.counts),
            ("errors", self.errors != usual.errors),
            ("outage", self.outage != usual.outage),
        ];
        match settings.iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => {
                let message = "valid only for a dedicated channel, but with `hsdpa` the downlink is an HS-DSCH: remove one of them";
                Err(Invalid::new(*key, message))
            }
            None => Ok(()),
        }
    }
}

impl Default for BlockErrors {
    fn default() -> Self {
        Self::Independent { bler: Probability::ZERO }
    }
}

impl BlockErrors {
    /// The model `gilbert-elliott`, with steps of a TTI.
    pub fn gilbert_elliott(
        good: Probability,
        bad: Probability,
        good_to_bad: Probability,
        bad_to_good: Probability,
    ) -> Self {
        let [good, bad, good_to_bad, bad_to_good] = [good, bad, good_to_bad, bad_to_good].map(Some);
        Self::GilbertElliott { good, bad, good_to_bad, bad_to_good, mean: None, burst: None }
    }

    /// The same by the mean block error rate, and the mean burst in TTIs.
    pub fn bursts(mean: Probability, burst: f64) -> Self {
        let [good, bad, good_to_bad, bad_to_good] = [None; 4];
        Self::GilbertElliott { good, bad, good_to_bad, bad_to_good, mean: Some(mean), burst: Some(burst) }
    }

    fn as_chain(&self) -> Option<TwoStates> {
        let Self::GilbertElliott { good, bad, good_to_bad, bad_to_good, mean, burst } = *self else {
            return None;
        };
        let burst = burst.map(Burst::Steps);
        Some(TwoStates { four: [good, bad, good_to_bad, bad_to_good], mean, burst, step: None })
    }

    /// Of `gilbert-elliott`: the four probabilities, however they are written.
    pub(in crate::rlc) fn two_states(&self) -> Option<[f64; 4]> {
        self.as_chain()?.probabilities()
    }

    pub(in crate::rlc) fn fading(&self) -> Option<FadingConfig> {
        match *self {
            Self::Rayleigh { speed, carrier, margin, deviation, decorrelation } => Some(FadingConfig {
                speed,
                margin,
                carrier: Some(carrier),
                slow: deviation.zip(decorrelation),
            }),
            Self::Shadowing { speed, margin, deviation, decorrelation } => {
                Some(FadingConfig { speed, margin, carrier: None, slow: Some((deviation, decorrelation)) })
            }
            Self::Independent { .. }
            | Self::PerTti { .. }
            | Self::GilbertElliott { .. }
            | Self::Listed { .. } => None,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        if let Self::Rayleigh { deviation, decorrelation, .. } = self
            && deviation.is_some() != decorrelation.is_some()
        {
            let missing = if deviation.is_none() { "deviation" } else { "decorrelation" };
            let message = format!("`deviation` and `decorrelation` are used together: add `{missing} = …`");
            return Err(Invalid::new(missing, message));
        }
        if let Some(chain) = self.as_chain() {
            chain.validate()?;
        }
        self.fading().map_or(Ok(()), |fading| fading.validate())
    }
}
