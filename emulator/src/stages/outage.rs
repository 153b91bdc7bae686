//! Times at which nothing gets through: coverage holes and handovers.

use serde::{Deserialize, Serialize};

use crate::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageConfig {
    /// When it begins, since the start.
    pub at: Vec<Duration>,
    pub lasts: Duration,
    /// Begins again after this time, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// What becomes of packets that arrive meanwhile.
    pub packets: Meanwhile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meanwhile {
    Dropped,
    /// They are queued again at the new cell: go on when it is over, in order.
    Requeued,
}
