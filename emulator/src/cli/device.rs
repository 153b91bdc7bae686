//! What went through a device, for the summary of a run.

use airlink::driver::{Endpoint, Traffic};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct DeviceSummary {
    pub(super) device: String,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
    /// Packets that the kernel behind the device has lost before they could be read.
    pub(super) dropped_by_kernel: u64,
}

impl DeviceSummary {
    pub(super) fn new(endpoint: &Endpoint, dropped_by_kernel: u64) -> Self {
        Self { device: endpoint.name().to_owned(), traffic: endpoint.traffic(), dropped_by_kernel }
    }
}
