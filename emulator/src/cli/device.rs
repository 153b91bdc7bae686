//! Options, counters and checks for the devices of a link.

use airlink::driver::{Endpoint, Traffic};
use airlink::prefix::Prefix;
use airlink::tun::TunConfig;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::failure;

/// Options for opening both devices.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct DeviceArgs {
    /// Exchange several segments at once with the kernel, which is faster
    ///
    /// The link still handles each packet separately, and its captures show each packet. tcpdump on a device
    /// shows the large pieces instead of the packets on the wire.
    #[arg(long, value_name = "on|off", value_enum, default_value_t = Offload::Off, help_heading = "Devices")]
    offload: Offload,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Offload {
    On,
    Off,
}

impl DeviceArgs {
    pub(super) fn apply_to(self, config: &TunConfig) -> TunConfig {
        TunConfig { offload: self.offload == Offload::On, ..config.clone() }
    }
}

#[derive(Serialize)]
pub(super) struct DeviceSummary {
    pub(super) device: String,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
    /// Packets that the kernel dropped before they could be read.
    pub(super) dropped_by_kernel: u64,
}

impl DeviceSummary {
    pub(super) fn new(endpoint: &Endpoint, dropped_by_kernel: u64) -> Self {
        Self { device: endpoint.name().to_owned(), traffic: endpoint.traffic(), dropped_by_kernel }
    }
}

/// Refuses an address that both sides have, since packets to this address would never cross the link.
pub(super) fn check_addresses(fixed: &TunConfig, mobile: &TunConfig) -> anyhow::Result<()> {
    let has = |prefix: &&Prefix| mobile.addrs.iter().any(|other| other.addr() == prefix.addr());
    fixed.addrs.iter().find(has).map_or(Ok(()), |both| {
        let addr = both.addr();
        Err(failure::usage(format!("both sides have the address {addr}: use different addresses")))
    })
}
