//! A channel that damages packets.

use serde::{Deserialize, Serialize};

use crate::time::Duration;
use crate::units::Probability;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    #[serde(flatten)]
    pub model: Model,
    #[serde(default)]
    pub affects: Affects,
}

/// Which packets the channel can damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Affects {
    #[default]
    All,
    Data,
    Acks,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "model")]
pub enum Model {
    None,
    /// Each packet with the same probability.
    Uniform {
        per: Probability,
    },
    /// Each bit with the same probability: long packets are lost more often.
    BitErrors {
        ber: Probability,
    },
    Markov {
        states: Vec<State>,
        step: Step,
    },
    /// Exactly these: "segment 50", "segment 50 retransmission 1", "packet 7", "packets 100-110", "ack 3".
    List {
        drop: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub name: String,
    pub per: Probability,
    /// Probability of each other state next, by name; per packet, or per `Step::Time` interval.
    pub to: std::collections::BTreeMap<String, Probability>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    Packet,
    Every(Duration),
}
