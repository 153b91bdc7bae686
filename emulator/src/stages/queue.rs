//! A drop-tail queue, bounded by packets, by octets, or by both. It belongs to whatever transmits behind it.

use serde::{Deserialize, Serialize};

use crate::units::Size;

/// `{ packets = 50 }`, `{ bytes = "64kB" }`, both, or `{}` for a queue without an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
}
