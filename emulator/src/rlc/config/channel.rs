//! Settings of a dedicated transport channel: its TTIs, its transport formats and its block errors.

use airwire::time::Duration;
use airwire::units::Probability;
use serde::{Deserialize, Serialize};

use crate::fading::FadingConfig;
use crate::fading::units::{Decibels, Distance, Frequency, Speed};
use crate::rlc::switching::Switching;
use crate::rlc::umts::dch::Dch;
use crate::rlc::values::positive_time;
use crate::settings::Invalid;
use crate::stages::loss::bursts::{Burst, TwoStates};
use crate::stages::times::Intervals;

/// Settings of a transport channel: blocks per TTI, delay and block errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChannelConfig {
    /// A named rate, in place of `tti` and `blocks`. Absent: those two apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dch: Option<Dch>,
    /// The times at which the rate changes. Default: never.
    pub switching: Switching,
    /// Length of a TTI. TTIs begin at multiples of this length, plus `phase`. Default: 10 ms down, 20 ms up.
    pub tti: Duration,
    /// Start of the first TTI, counted from time zero. Default: 0.
    pub phase: Duration,
    /// The transport format set: possible numbers of blocks per TTI, in ascending order. The last one
    /// determines the rate: 12 blocks with 320 bits of payload per 10 ms are 384 kbit/s. A TTI carries the
    /// largest number that does not exceed the blocks waiting. Default: 1, 2, 4, 8, 12 down; 1, 2, 3, 4 up.
    pub blocks: Vec<u16>,
    /// Whether all numbers up to the largest of `blocks` are possible. Default: only the listed ones.
    pub counts: Counts,
    /// Time from the end of a TTI to the arrival of its PDUs at the other end. Default: 40 ms.
    pub delay: Duration,
    /// The model of block errors, which does not distinguish data and control PDUs. Default: none.
    pub errors: BlockErrors,
    /// Times without coverage, such as a deep fade or a handover. A TTI that begins in an outage loses all
    /// its blocks. Blocks transmitted earlier still arrive. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Intervals>,
}

/// Possible numbers of blocks in a TTI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Only the numbers in `blocks`.
    #[default]
    Listed,
    /// All numbers up to the largest in `blocks`.
    Any,
}

/// Model of the block errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "model", deny_unknown_fields)]
pub enum BlockErrors {
    /// Blocks are damaged independently of each other.
    Independent {
        /// The block error rate.
        bler: Probability,
    },
    /// TTIs are damaged independently of each other, each with all its blocks.
    PerTti {
        /// The probability that a TTI is damaged.
        bler: Probability,
    },
    /// Gilbert–Elliott model: block error rates in a good and in a bad state, and the probabilities of a
    /// transition at each TTI. TTIs without a transmission also count.
    GilbertElliott {
        /// The block error rate in the good state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        good: Option<Probability>,
        /// The block error rate in the bad state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad: Option<Probability>,
        /// Probability of a transition from the good to the bad state at each TTI.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        good_to_bad: Option<Probability>,
        /// Probability of a transition from the bad to the good state at each TTI.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad_to_good: Option<Probability>,
        /// Mean share of damaged blocks, in place of the four settings above. All damaged blocks are in
        /// bursts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mean: Option<Probability>,
        /// With `mean`: mean length of a burst in TTIs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burst: Option<f64>,
    },
    /// Fast fading: a TTI is damaged if the received power at its beginning is below the required power.
    Rayleigh {
        /// Speed of the mobile.
        speed: Speed,
        /// Carrier frequency.
        carrier: Frequency,
        /// Margin of the mean received power (with slow fading: of its median) over the required power.
        margin: Decibels,
        /// Standard deviation of additional slow fading. Absent: fast fading only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deviation: Option<Decibels>,
        /// With `deviation`: distance over which the correlation of slow fading falls to 1/e.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decorrelation: Option<Distance>,
    },
    /// Slow fading without fast fading.
    Shadowing {
        /// Speed of the mobile.
        speed: Speed,
        /// Margin of the median received power over the required power.
        margin: Decibels,
        /// Standard deviation of the received power.
        deviation: Decibels,
        /// Distance over which the correlation falls to 1/e.
        decorrelation: Distance,
    },
    /// Exactly the listed blocks are damaged. Blocks are counted from 0 in the order of transmission in this
    /// direction.
    Listed {
        /// Numbers of the damaged blocks.
        lost: Vec<u64>,
    },
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self::downlink_384()
    }
}

impl ChannelConfig {
    /// Returns a channel of 384 kbit/s, with 12 blocks per TTI of 10 ms.
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

    /// Returns a channel of 64 kbit/s, with 4 blocks per TTI of 20 ms.
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

    /// Maximum number of blocks in a TTI at the start.
    pub fn max_blocks(&self) -> u16 {
        self.blocks().last().copied().unwrap_or(1)
    }

    /// Describes the average behaviour of a Gilbert–Elliott or fading channel. Empty for other models.
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
        positive_time("tti", self.tti)?;
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

    /// Refuses the settings of a dedicated channel, because the downlink is an HS-DSCH.
    pub(super) fn validate_shared(&self) -> Result<(), Invalid> {
        let default = Self::downlink_384();
        let settings = [
            ("dch", self.dch != default.dch),
            ("switching", self.switching != default.switching),
            ("tti", self.tti != default.tti),
            ("phase", self.phase != default.phase),
            ("blocks", self.blocks != default.blocks),
            ("counts", self.counts != default.counts),
            ("errors", self.errors != default.errors),
            ("outage", self.outage != default.outage),
        ];
        match settings.iter().find(|(_, changed)| *changed) {
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
    /// Returns the model `gilbert-elliott` with one step per TTI.
    pub fn gilbert_elliott(
        good: Probability,
        bad: Probability,
        good_to_bad: Probability,
        bad_to_good: Probability,
    ) -> Self {
        let [good, bad, good_to_bad, bad_to_good] = [good, bad, good_to_bad, bad_to_good].map(Some);
        Self::GilbertElliott { good, bad, good_to_bad, bad_to_good, mean: None, burst: None }
    }

    /// Returns the model `gilbert-elliott` with the given mean block error rate and mean burst length in
    /// TTIs.
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

    /// The four probabilities of `gilbert-elliott`, from any of its forms. `None` for other models.
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

    pub(crate) fn validate(&self) -> Result<(), Invalid> {
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
