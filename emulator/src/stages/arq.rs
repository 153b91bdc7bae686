//! Packet-level local retransmission with a limit and without in-order delivery (P3's LLRTX).

use serde::{Deserialize, Serialize};

use super::queue::QueueConfig;
use crate::time::Duration;
use crate::units::{Probability, Rate};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArqConfig {
    pub per: Probability,
    /// Retransmissions of one packet, at most.
    pub retries: u32,
    pub rate: Rate,
    pub delay: Duration,
    #[serde(default)]
    pub queue: QueueConfig,
}
