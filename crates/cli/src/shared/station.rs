//! The options that put a host behind a TUN device: those of `send`, `recv` and `serve`.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use airlink::capture::Capture;
use airlink::prefix::Prefix;
use airlink::reactor::{Clock, Reactor};
use airlink::tun::{Tun, TunConfig};
use airtcp::host::{ConnectError, Host, HostConfig};
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue;
use airtcp::tcp::SocketOptions;
use airtcp_numbers::units;
use airtcp_tun::Driver;
use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};

use super::failure::usage;

#[derive(Clone, Debug, Args)]
pub(crate) struct Station {
    /// Algorithms joined by `+`, for example sack+limited-transmit (see `airtcp algorithms`)
    #[arg(long, default_value = "newreno", value_parser = RecipeParser, hide_possible_values = true, help_heading = "Host")]
    pub(crate) recipe: Recipe,
    /// Whose TCP to look like in everything but the recipe
    #[arg(long, default_value = "default", value_parser = Profile::NAMES, help_heading = "Host")]
    pub(crate) profile: String,
    /// Seed of initial sequence numbers and ports [default: random]
    #[arg(long, value_name = "NUMBER", help_heading = "Host")]
    pub(crate) seed: Option<u64>,
    /// Send buffer [default: the profile's]
    #[arg(long, value_name = "SIZE", value_parser = units::buffer_size, help_heading = "Host")]
    send_buffer: Option<usize>,
    /// Receive buffer [default: the profile's]
    #[arg(long, value_name = "SIZE", value_parser = units::buffer_size, help_heading = "Host")]
    recv_buffer: Option<usize>,

    /// Name of the TUN device; %d stands for the next free number
    #[arg(long, value_name = "NAME", default_value = "airtcp%d", help_heading = "Device")]
    tun: String,
    /// Namespace of the device, and so of the kernel behind it: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Device")]
    netns: Option<PathBuf>,
    /// This host's own address (repeatable) [default: 10.83.0.2, fd83::2]
    #[arg(long, value_name = "ADDR", help_heading = "Device")]
    addr: Vec<IpAddr>,
    /// Address that the kernel gets on the device (repeatable) [default: 10.83.0.1/24, fd83::1/64]
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Device")]
    kernel_addr: Vec<Prefix>,
    /// Largest packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(68..), help_heading = "Device")]
    mtu: u16,
    /// Write every packet to a pcap file (nanoseconds)
    #[arg(long, value_name = "FILE", help_heading = "Device")]
    pcap: Option<PathBuf>,
}

/// The addresses of one family: the host's and the kernel's.
const DEFAULT_V4: (IpAddr, &str) = (IpAddr::V4(Ipv4Addr::new(10, 83, 0, 2)), "10.83.0.1/24");
const DEFAULT_V6: (IpAddr, &str) = (IpAddr::V6(Ipv6Addr::new(0xfd83, 0, 0, 0, 0, 0, 0, 2)), "fd83::1/64");

/// Which addresses are wanted where the command line names none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Families {
    V4,
    V6,
    Both,
}

impl Families {
    fn wants(self, addr: IpAddr) -> bool {
        match self {
            Self::V4 => addr.is_ipv4(),
            Self::V6 => addr.is_ipv6(),
            Self::Both => true,
        }
    }
}

/// Both ends' addresses.
struct Addresses {
    addrs: Vec<IpAddr>,
    kernel: Vec<Prefix>,
    routes: Vec<Prefix>,
}

impl Station {
    /// Brings the device up and a host behind it. Signals are caught from here on, so no thread may run before.
    pub(crate) fn open(&self, families: Families) -> anyhow::Result<Driver> {
        let addresses = self.addresses(families)?;
        let clock = Clock::start();
        let mut reactor = Reactor::new(clock)?;
        reactor.catch_stop_signals()?;
        let tun = Tun::open(&TunConfig {
            name: self.tun.clone(),
            namespace: self.netns.clone(),
            addrs: addresses.kernel,
            routes: addresses.routes,
            mtu: self.mtu,
            ..TunConfig::default()
        })?;
        let capture = self.pcap.as_ref().map(|path| Capture::create(path, clock.wall_zero())).transpose()?;
        let host = Host::new(HostConfig {
            addrs: addresses.addrs,
            mtu: usize::from(self.mtu),
            profile: self.profile(),
            recipe: self.recipe.clone(),
            // Otherwise the kernel, which remembers the last run's ports, would meet them again.
            seed: self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
        });
        Ok(Driver::new(host, tun, reactor, capture)?)
    }

    /// Refuses a target that no host could connect to, or that is this host itself.
    pub(crate) fn check_target(&self, families: Families, remote: SocketAddr) -> anyhow::Result<()> {
        let unicast = match remote.ip() {
            IpAddr::V4(addr) => !(addr.is_broadcast() || addr.is_multicast() || addr.is_unspecified()),
            IpAddr::V6(addr) => !(addr.is_multicast() || addr.is_unspecified()),
        };
        if remote.port() == 0 || !unicast {
            return Err(ConnectError::BadRemote(remote).into());
        }
        if self.addresses(families)?.addrs.contains(&remote.ip()) {
            return Err(usage(format!(
                "{remote} is this host's own address: the receiver runs on the kernel's, see --kernel-addr"
            )));
        }
        Ok(())
    }

    /// The same station with this address among the host's own.
    pub(crate) fn with_addr(mut self, addr: IpAddr) -> Self {
        if !self.addr.contains(&addr) {
            self.addr.push(addr);
        }
        self
    }

    pub(crate) fn options(&self) -> SocketOptions {
        let mut options = SocketOptions::of(&self.recipe.tune(&self.profile()));
        options.send_buffer = self.send_buffer.unwrap_or(options.send_buffer);
        options.recv_buffer = self.recv_buffer.unwrap_or(options.recv_buffer);
        options
    }

    fn profile(&self) -> Profile {
        // The parser lets only known names through.
        Profile::by_name(&self.profile).unwrap_or_default()
    }

    fn addresses(&self, families: Families) -> anyhow::Result<Addresses> {
        let mut addresses =
            Addresses { addrs: self.addr.clone(), kernel: self.kernel_addr.clone(), routes: Vec::new() };
        for (addr, kernel) in [DEFAULT_V4, DEFAULT_V6] {
            let same_family = |other: &IpAddr| other.is_ipv4() == addr.is_ipv4();
            // Who names addresses of one family alone does not want the other.
            let named = !self.addr.is_empty() && families == Families::Both;
            if !addresses.addrs.iter().any(same_family) && families.wants(addr) && !named {
                addresses.addrs.push(addr);
            }
            let used = addresses.addrs.iter().any(same_family);
            if used && !addresses.kernel.iter().any(|prefix| same_family(&prefix.addr())) {
                addresses.kernel.push(kernel.parse()?);
            }
        }
        for addr in &addresses.addrs {
            if addr.is_unspecified() || addr.is_multicast() {
                return Err(usage(format!("{addr} cannot be a host's own address")));
            }
            if addresses.kernel.iter().any(|prefix| prefix.addr() == *addr) {
                return Err(usage(format!(
                    "{addr} is the kernel's address on the device: choose another --addr or --kernel-addr"
                )));
            }
            if !addresses.kernel.iter().any(|prefix| prefix.contains(*addr)) {
                addresses.routes.push(Prefix::new(*addr, if addr.is_ipv4() { 32 } else { 128 })?);
            }
        }
        if self.mtu < 1280 && addresses.kernel.iter().any(|prefix| prefix.addr().is_ipv6()) {
            return Err(usage(format!(
                "IPv6 needs an MTU of at least 1280, not {}: raise --mtu, or use IPv4 addresses only",
                self.mtu
            )));
        }
        Ok(addresses)
    }
}

/// Takes any recipe; offers the names of the catalogue to shell completion.
#[derive(Clone)]
pub(crate) struct RecipeParser;

impl TypedValueParser for RecipeParser {
    type Value = Recipe;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Recipe, clap::Error> {
        let parse = |text: &str| text.parse::<Recipe>();
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(catalogue::rows().map(|row| PossibleValue::new(row.name).help(row.summary))))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        station: Station,
    }

    /// The host's addresses, the kernel's and the routes, as text.
    fn addresses(args: &str, families: Families) -> Result<[Vec<String>; 3], String> {
        let line = Line::try_parse_from(format!("x {args}").split_whitespace()).map_err(|e| e.to_string())?;
        let addresses = line.station.addresses(families).map_err(|e| e.to_string())?;
        let show = |prefixes: &[Prefix]| prefixes.iter().map(Prefix::to_string).collect();
        Ok([
            addresses.addrs.iter().map(IpAddr::to_string).collect(),
            show(&addresses.kernel),
            show(&addresses.routes),
        ])
    }

    #[test]
    fn addresses_not_named_are_filled_in_for_the_wanted_families() {
        let [addrs, kernel, routes] = addresses("", Families::Both).unwrap();
        assert_eq!(
            (addrs.join(" "), kernel.join(" ")),
            ("10.83.0.2 fd83::2".into(), "10.83.0.1/24 fd83::1/64".into())
        );
        assert!(routes.is_empty());
        assert_eq!(addresses("", Families::V6).unwrap()[0], ["fd83::2"]);
        let [addrs, kernel, _] = addresses("--addr 10.83.0.9", Families::Both).unwrap();
        assert_eq!((addrs.join(" "), kernel.join(" ")), ("10.83.0.9".into(), "10.83.0.1/24".into()));
    }

    #[test]
    fn an_address_outside_the_kernels_network_gets_a_route() {
        let [_, _, routes] = addresses("--addr 192.0.2.1", Families::V4).unwrap();
        assert_eq!(routes, ["192.0.2.1/32"]);
    }

    #[test]
    fn what_cannot_work_is_refused() {
        assert!(addresses("--addr 10.83.0.1", Families::V4).unwrap_err().contains("is the kernel's address"));
        assert!(addresses("--addr 224.0.0.1", Families::V4).unwrap_err().contains("cannot be"));
        assert!(addresses("--mtu 576", Families::V6).unwrap_err().contains("at least 1280"));
        assert!(addresses("--mtu 576", Families::V4).is_ok());
        assert!(addresses("--recipe newrno", Families::V4).unwrap_err().contains("did you mean `newreno`"));
    }
}
