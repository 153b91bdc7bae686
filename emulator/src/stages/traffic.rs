//! Sources of background packets that share the queues.

use serde::{Deserialize, Serialize};

use crate::time::Duration;
use crate::units::{Rate, Size};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficConfig {
    #[serde(flatten)]
    pub source: Source,
    pub packet: Size,
    /// Name of the stage behind which it leaves the path.
    pub leaves_after: String,
    #[serde(default)]
    pub starts: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "source")]
pub enum Source {
    Cbr {
        rate: Rate,
    },
    /// Each of `sources` sends at `rate` while on; times on and off are Pareto.
    ParetoOnOff {
        sources: u32,
        rate: Rate,
        shape: f64,
        mean_on: Duration,
        mean_off: Duration,
    },
}
