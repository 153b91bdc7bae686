//! The base station: P4's transit agent and P3's loss-rate report.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StationConfig {
    /// Remember what went past, and mark ACKs with Ob and Db.
    #[serde(default)]
    pub transit_marks: bool,
    /// Add the measured loss rate of the radio link to what ACKs carry back.
    #[serde(default)]
    pub loss_report: bool,
}
