//! The command line of `airlink`. Completions and man pages are generated from `command()`.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::prefix::Prefix;
use crate::tun::TunConfig;

/// The network below IP, between two TUN devices.
#[derive(Debug, Parser)]
#[command(name = "airlink", version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Join two TUN devices by a perfect wire, until SIGINT (Ctrl-C) or SIGTERM.
    #[command(after_help = BRIDGE_EXAMPLES)]
    Bridge(Bridge),
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the run did not succeed, 2 usage, 3 environment (privilege, device).
Logs go to stderr; RUST_LOG chooses them (default: info).";

const BRIDGE_EXAMPLES: &str = "\
Examples:
  Two namespaces that can ping each other:
    ip netns add fixed; ip netns add mobile
    airlink bridge --fixed-netns fixed --fixed-addr 10.0.0.1/24 \\
                   --mobile-netns mobile --mobile-addr 10.0.0.2/24 &
    ip netns exec fixed ping 10.0.0.2

  Two subnets, and a capture of what the mobile side sees:
    airlink bridge --fixed-netns fixed --fixed-addr 10.1.0.1/24 --fixed-route 10.2.0.0/24 \\
                   --mobile-netns mobile --mobile-addr 10.2.0.1/24 --mobile-route 10.1.0.0/24 \\
                   --pcap-mobile mobile.pcap";

#[derive(Debug, Args)]
pub struct Bridge {
    /// Namespace of the fixed side's device: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Fixed side")]
    pub fixed_netns: Option<PathBuf>,
    /// Name of the fixed side's device; %d stands for the next free number
    #[arg(long, value_name = "NAME", default_value = "airtcp%d", help_heading = "Fixed side")]
    pub fixed_dev: String,
    /// Address of the kernel on the fixed side (repeatable; IPv4 and IPv6)
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Fixed side")]
    pub fixed_addr: Vec<Prefix>,
    /// What else the fixed side's kernel sends into the device (repeatable)
    #[arg(long, value_name = "NET/LEN", help_heading = "Fixed side")]
    pub fixed_route: Vec<Prefix>,
    /// Write what crosses the fixed side's device to a pcap file (nanoseconds)
    #[arg(long, value_name = "FILE", help_heading = "Fixed side")]
    pub pcap_fixed: Option<PathBuf>,

    /// Namespace of the mobile side's device: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Mobile side")]
    pub mobile_netns: Option<PathBuf>,
    /// Name of the mobile side's device; %d stands for the next free number
    #[arg(long, value_name = "NAME", default_value = "airtcp%d", help_heading = "Mobile side")]
    pub mobile_dev: String,
    /// Address of the kernel on the mobile side (repeatable; IPv4 and IPv6)
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Mobile side")]
    pub mobile_addr: Vec<Prefix>,
    /// What else the mobile side's kernel sends into the device (repeatable)
    #[arg(long, value_name = "NET/LEN", help_heading = "Mobile side")]
    pub mobile_route: Vec<Prefix>,
    /// Write what crosses the mobile side's device to a pcap file (nanoseconds)
    #[arg(long, value_name = "FILE", help_heading = "Mobile side")]
    pub pcap_mobile: Option<PathBuf>,

    /// Largest packet in bytes, on both sides
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(68..))]
    pub mtu: u16,
    /// Stop by itself after this time
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<f64>,
    /// At the end print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

impl Bridge {
    pub fn fixed(&self) -> TunConfig {
        TunConfig {
            name: self.fixed_dev.clone(),
            namespace: self.fixed_netns.clone(),
            addrs: self.fixed_addr.clone(),
            routes: self.fixed_route.clone(),
            mtu: self.mtu,
            ..TunConfig::default()
        }
    }

    pub fn mobile(&self) -> TunConfig {
        TunConfig {
            name: self.mobile_dev.clone(),
            namespace: self.mobile_netns.clone(),
            addrs: self.mobile_addr.clone(),
            routes: self.mobile_route.clone(),
            mtu: self.mtu,
            ..TunConfig::default()
        }
    }
}

/// The definition itself, for generators.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_bridge_takes_addresses_of_both_families_and_names_what_it_does_not_understand() {
        let parse = |args: &str| Cli::try_parse_from(format!("airlink bridge {args}").split_whitespace());
        let Command::Bridge(bridge) =
            parse("--fixed-addr 10.0.0.1/24 --fixed-addr fd00::1/64 --mobile-netns m").unwrap().command;
        assert_eq!(bridge.fixed().addrs.len(), 2);
        assert_eq!(bridge.mobile().namespace, Some("m".into()));
        let error = parse("--fixed-addr 10.0.0/24").unwrap_err().to_string();
        assert!(error.contains("10.0.0.1/24 or fd00::1/64"), "{error}");
        assert!(parse("--mtu 67").is_err());
    }
}
