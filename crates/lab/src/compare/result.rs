//! The result of a comparison, as `lab.json` has it.

use std::collections::BTreeMap;
use std::fmt;

use airtcp_numbers::statistics::Mean;
use serde::{Deserialize, Serialize};

use super::divergence::{Cause, DecisionComparison};

/// The comparison of one recipe. Kernel senders have no model in virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderComparison {
    /// The recipe, with its profile if the profiles in the experiment differ.
    pub sender: String,
    /// The profile in both kinds of time.
    pub profile: String,
    /// The receiver in virtual time: the model of the experiment's receiver, or `linux` if it has none.
    pub receiver: String,
    /// Goodput in real time in kbit/s, over the rounds that succeeded in both kinds of time and are valid.
    /// `None` if there are none.
    pub real_kbit_per_s: Option<Mean>,
    /// Goodput of the same rounds in virtual time in kbit/s.
    pub virtual_kbit_per_s: Option<Mean>,
    /// The paired ratio of virtual to real goodput over these rounds.
    pub ratio: Option<Mean>,
    /// The verdict on the ratio.
    pub verdict: RatioVerdict,
    /// The median of [`DecisionComparison::same`].
    pub median_same: Option<f64>,
    /// The number of rounds that differ, by cause. Rounds without a difference are not counted.
    pub causes: BTreeMap<Cause, usize>,
    /// The rounds, in order.
    pub rounds: Vec<Round>,
}

/// The verdict from the 95 % interval of the paired ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatioVerdict {
    /// The interval lies within 5 % of 1.
    Equal,
    /// The interval does not contain 1, and is not within 5 % of 1.
    Differs,
    /// The interval is too wide for either.
    TooFewRounds,
}

/// The comparison of one transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The number of the round, from 1.
    pub round: u32,
    /// The seed of the path.
    pub seed: u64,
    /// The reason why the round cannot be compared. `None` if it can.
    pub failure: Option<String>,
    /// Goodput in real time, in kbit/s.
    pub real_kbit_per_s: Option<f64>,
    /// Goodput in virtual time, in kbit/s.
    pub virtual_kbit_per_s: Option<f64>,
    /// The comparison of the decisions.
    pub decisions: Option<DecisionComparison>,
}

/// The largest deviation of the ratio from 1 that counts as equal.
const TOLERANCE: f64 = 0.05;

impl RatioVerdict {
    /// The verdict on a ratio. Without a ratio there are too few rounds.
    pub fn of(ratio: Option<Mean>) -> Self {
        let Some(Mean { mean, half_width: Some(width), .. }) = ratio else { return Self::TooFewRounds };
        let deviation = (mean - 1.0).abs();
        match () {
            () if deviation + width <= TOLERANCE => Self::Equal,
            () if deviation > width => Self::Differs,
            () => Self::TooFewRounds,
        }
    }
}

impl fmt::Display for RatioVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equal => "equal within 5 %",
            Self::Differs => "differs",
            Self::TooFewRounds => "too few rounds",
        })
    }
}
