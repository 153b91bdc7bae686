//! `airlink bridge`: a perfect wire between two devices.

use std::path::PathBuf;
use std::process::ExitCode;

use airhelp::options::number;
use airlink::capture::Capture;
use airlink::driver::{self, Endpoint, Traffic};
use airlink::machine::Crossover;
use airlink::netns;
use airlink::prefix::Prefix;
use airlink::reactor::{Clock, Reactor};
use airlink::tun::{Tun, TunConfig};
use airwire::time::Duration;
use airwire::units::typed_time;
use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::console;
use super::device::{self, DeviceArgs, DeviceSummary};

const EXAMPLES: &str = "\
Examples:
  Two namespaces that can ping each other:
    ip netns add fixed; ip netns add mobile
    airlink bridge --fixed-netns fixed --fixed-addr 10.0.0.1/24 \\
      --mobile-netns mobile --mobile-addr 10.0.0.2/24 &
    ip netns exec fixed ping 10.0.0.2

  Two subnets, and a capture at the mobile side:
    airlink bridge --fixed-netns fixed --fixed-addr 10.1.0.1/24 \\
      --fixed-route 10.2.0.0/24 --mobile-netns mobile \\
      --mobile-addr 10.2.0.1/24 --mobile-route 10.1.0.0/24 \\
      --pcap-mobile mobile.pcap";

/// Connect two TUN devices with a perfect wire
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bridge {
    /// Network namespace of the fixed side: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Fixed side")]
    fixed_netns: Option<PathBuf>,
    /// Name of the fixed side's device; %d is replaced by the next free number
    #[arg(long, value_name = "NAME", default_value = "airtcp%d", help_heading = "Fixed side")]
    fixed_dev: String,
    /// Address of the kernel on the fixed side (repeatable; IPv4 and IPv6)
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Fixed side")]
    fixed_addr: Vec<Prefix>,
    /// Additional network that the fixed side's kernel reaches through the device (repeatable)
    #[arg(long, value_name = "NET/LEN", help_heading = "Fixed side")]
    fixed_route: Vec<Prefix>,
    /// Write the packets at the fixed side to a pcap file (nanosecond timestamps)
    #[arg(long, value_name = "FILE", help_heading = "Fixed side")]
    pcap_fixed: Option<PathBuf>,

    /// Network namespace of the mobile side: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Mobile side")]
    mobile_netns: Option<PathBuf>,
    /// Name of the mobile side's device; %d is replaced by the next free number
    #[arg(long, value_name = "NAME", default_value = "airtcp%d", help_heading = "Mobile side")]
    mobile_dev: String,
    /// Address of the kernel on the mobile side (repeatable; IPv4 and IPv6)
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Mobile side")]
    mobile_addr: Vec<Prefix>,
    /// Additional network that the mobile side's kernel reaches through the device (repeatable)
    #[arg(long, value_name = "NET/LEN", help_heading = "Mobile side")]
    mobile_route: Vec<Prefix>,
    /// Write the packets at the mobile side to a pcap file (nanosecond timestamps)
    #[arg(long, value_name = "FILE", help_heading = "Mobile side")]
    pcap_mobile: Option<PathBuf>,

    #[command(flatten)]
    device: DeviceArgs,
    /// Largest packet in bytes, on both sides
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = number::<u16>(68..=65_535))]
    mtu: u16,
    /// Stop after this time
    #[arg(long = "for", alias = "duration", value_name = "TIME", value_parser = typed_time)]
    duration: Option<Duration>,
    /// Print JSON instead of text: one object, at the end
    #[arg(long)]
    json: bool,
}

impl Bridge {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        device::check_addresses(&self.fixed(), &self.mobile())?;
        for name in netns::sweep() {
            tracing::info!("removed the namespace {name} of a process that was killed");
        }
        let clock = Clock::start();
        let mut reactor = Reactor::new(clock)?;
        reactor.catch_stop_signals()?;
        let capture =
            |path: &Option<_>| path.as_ref().map(|path| Capture::create(path, clock.wall_zero())).transpose();
        let endpoint = |config: &TunConfig, pcap| -> anyhow::Result<Endpoint> {
            Ok(Endpoint::new(Tun::open(&self.device.apply_to(config))?, capture(pcap)?))
        };
        let mut endpoints =
            [endpoint(&self.fixed(), &self.pcap_fixed)?, endpoint(&self.mobile(), &self.pcap_mobile)?];
        tracing::info!("bridging {} (fixed) and {} (mobile)", endpoints[0].name(), endpoints[1].name());

        let until = self.duration.map(|time| clock.now() + time);
        driver::run(&mut Crossover::default(), &mut endpoints, &mut reactor, until, &mut ())?;

        let summarize = |endpoint: &Endpoint| -> anyhow::Result<DeviceSummary> {
            Ok(DeviceSummary::new(endpoint, endpoint.kernel_drops()?))
        };
        let [fixed, mobile] = &endpoints;
        let summary = Summary {
            schema_version: 1,
            seconds: clock.now().as_secs_f64(),
            fixed: summarize(fixed)?,
            mobile: summarize(mobile)?,
        };
        console::print(if self.json {
            serde_json::to_string(&summary).context("writing the summary")? + "\n"
        } else {
            table(&summary)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn fixed(&self) -> TunConfig {
        self.device(&self.fixed_dev, &self.fixed_netns, &self.fixed_addr, &self.fixed_route)
    }

    fn mobile(&self) -> TunConfig {
        self.device(&self.mobile_dev, &self.mobile_netns, &self.mobile_addr, &self.mobile_route)
    }

    fn device(
        &self,
        name: &str,
        namespace: &Option<PathBuf>,
        addrs: &[Prefix],
        routes: &[Prefix],
    ) -> TunConfig {
        let (name, namespace) = (name.to_owned(), namespace.clone());
        let (addrs, routes) = (addrs.to_vec(), routes.to_vec());
        TunConfig { name, namespace, addrs, routes, mtu: self.mtu, ..TunConfig::default() }
    }
}

#[derive(Serialize)]
struct Summary {
    schema_version: u32,
    seconds: f64,
    fixed: DeviceSummary,
    mobile: DeviceSummary,
}

fn table(summary: &Summary) -> String {
    let mut table = format!(
        "{:.1} s\n{:<7} {:<15} {:>12} {:>15} {:>12} {:>15}  {:>16}  {:>8}\n",
        summary.seconds,
        "side",
        "device",
        "packets in",
        "bytes in",
        "packets out",
        "bytes out",
        "packets: refused",
        "dropped"
    );
    for (name, side) in [("fixed", &summary.fixed), ("mobile", &summary.mobile)] {
        let Traffic { sent_packets, sent_bytes, received_packets, received_bytes, refused_packets, .. } =
            side.traffic;
        table += &format!(
            "{name:<7} {:<15} {sent_packets:>12} {sent_bytes:>15} {received_packets:>12} {received_bytes:>15}  \
             {refused_packets:>16}  {:>8}\n",
            side.device, side.dropped_by_kernel
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bridge: Bridge,
    }

    #[test]
    fn bridge_parses_both_families_and_rejects_bad_values() {
        let parse = |args: &str| Program::try_parse_from(format!("airlink {args}").split_whitespace());
        let Program { bridge } =
            parse("--fixed-addr 10.0.0.1/24 --fixed-addr fd00::1/64 --mobile-netns m").unwrap();
        assert_eq!(bridge.fixed().addrs.len(), 2);
        assert_eq!(bridge.mobile().namespace, Some("m".into()));
        let error = parse("--fixed-addr 10.0.0/24").err().unwrap().to_string();
        assert!(error.contains("10.0.0.1/24 or fd00::1/64"), "{error}");
        assert!(parse("--mtu 67").is_err());
    }
}
