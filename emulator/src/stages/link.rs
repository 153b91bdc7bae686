//! A queue and the wire behind it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::queue::QueueConfig;
use crate::time::Duration;
use crate::units::Rate;

/// `rate`, `trace` or neither (then nothing is ever serialised).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Delivery opportunities in mahimahi's format, in place of a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// Propagation.
    #[serde(default)]
    pub delay: Duration,
    /// Up to so much more propagation, uniform. Does not reorder: a packet never overtakes.
    #[serde(default)]
    pub jitter: Duration,
    #[serde(default)]
    pub queue: QueueConfig,
}
