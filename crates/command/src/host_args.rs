//! Options of `airtcp send`, `airtcp recv` and `airtcp-serve` for the host and its TUN device.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use airhelp::options::number;
use airlink::capture::Capture;
use airlink::prefix::Prefix;
use airlink::reactor::{Clock, Reactor};
use airlink::tun::{Tun, TunConfig};
use airtcp::host::{ConnectError, Host, HostConfig};
use airtcp::profile::{FastOpenRules, MtuProbing, OpeningErrors, ProfileName};
use airtcp::sender::SenderSpec;
use airtcp::tcp::{FastOpenOptions, KeepAlive, Patience, SocketOptions, Threshold};
use airtcp_numbers::units;
use airtcp_tun::Driver;
use airwire::time::Duration;
use clap::Args;

use crate::failure::usage;
use crate::senders::{ProfileParser, SenderParser, one_profile};

/// Options of a userspace host and its TUN device.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// Recipe, optionally with a profile: newreno@linux (see `airtcp algorithms`)
    #[arg(long, value_name = "RECIPE[@PROFILE]", default_value = "newreno", value_parser = SenderParser, hide_possible_values = true, help_heading = "Host")]
    recipe: SenderSpec,
    /// TCP stack to imitate in everything the recipe does not set [default: the recipe's, or `default`]
    #[arg(long, value_parser = ProfileParser, help_heading = "Host")]
    profile: Option<ProfileName>,
    /// Seed of all random numbers: initial sequence numbers and ports [default: random]
    #[arg(long, value_name = "NUMBER", help_heading = "Host")]
    pub seed: Option<u64>,
    /// Send buffer size [default: the profile's]
    #[arg(long, value_name = "SIZE", value_parser = units::buffer_size, help_heading = "Host")]
    send_buffer: Option<usize>,
    /// Receive buffer size [default: the profile's]
    #[arg(long, alias = "recv-buffer", value_name = "SIZE", value_parser = units::buffer_size, help_heading = "Host")]
    receive_buffer: Option<usize>,
    /// Find a segment size that the path delivers, without ICMP errors: never, after timeouts, or from the start [default: the profile's]
    #[arg(long, value_name = "WHEN", value_enum, help_heading = "Host")]
    mtu_probing: Option<MtuProbingArg>,

    /// Report a segment that is unacknowledged after this many retransmissions or this time, such as 3 or 10s [default: the profile's]
    ///
    /// This is R1 of RFC 9293, section 3.8.3.
    #[arg(long, value_name = "COUNT|TIME", value_parser = threshold, help_heading = "Timeouts")]
    r1: Option<Threshold>,
    /// Give up a connection if a segment is unacknowledged after this many retransmissions or this time, such as 15 or 100s [default: the profile's]
    ///
    /// This is R2 of RFC 9293, section 3.8.3.
    #[arg(long, value_name = "COUNT|TIME", value_parser = threshold, help_heading = "Timeouts")]
    r2: Option<Threshold>,
    /// Give up a connection if its SYN or SYN,ACK is unacknowledged after this many retransmissions or this time [default: the profile's; at least 3m with `default`]
    #[arg(long, value_name = "COUNT|TIME", value_parser = threshold, help_heading = "Timeouts")]
    syn_r2: Option<Threshold>,
    /// Give up a connection if data is unacknowledged for this time (TCP_USER_TIMEOUT)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Timeouts")]
    user_timeout: Option<Duration>,
    /// Send keep-alive probes to a silent peer; implied by the three options below
    #[arg(long, help_heading = "Timeouts")]
    keepalive: bool,
    /// Idle time before the first keep-alive probe [default: 2h]
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Timeouts")]
    keepalive_idle: Option<Duration>,
    /// Time between keep-alive probes [default: 75s]
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Timeouts")]
    keepalive_interval: Option<Duration>,
    /// Number of unanswered keep-alive probes that end the connection [default: 9]
    #[arg(long, value_name = "COUNT", value_parser = number::<u32>(1..=u32::MAX.into()), help_heading = "Timeouts")]
    keepalive_probes: Option<u32>,
    /// ICMP errors that end a connection attempt: the hard errors of RFC 9293, all errors, or those that FreeBSD accepts [default: the profile's]
    #[arg(long, value_name = "WHICH", value_enum, help_heading = "Timeouts")]
    opening_errors: Option<OpeningErrorsArg>,

    /// Name of the TUN device; %d is replaced by the next free number
    #[arg(long, value_name = "NAME", default_value = "airtcp%d", help_heading = "Device")]
    tun: String,
    /// Network namespace of the kernel's TCP (and the device): a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Device")]
    netns: Option<PathBuf>,
    /// Address of the userspace host (repeatable) [default: 10.83.0.2, fd83::2]
    #[arg(long, value_name = "ADDR", help_heading = "Device")]
    addr: Vec<IpAddr>,
    /// Address of the kernel on the device (repeatable) [default: 10.83.0.1/24, fd83::1/64]
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Device")]
    kernel_addr: Vec<Prefix>,
    /// Largest packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = number::<u16>(68..=65_535), help_heading = "Device")]
    mtu: u16,
    /// Exchange several segments at once with the kernel, which is faster [default: on for serve, off for send and recv]
    ///
    /// The kernel splits the large pieces and computes the checksums. tcpdump on the device shows these pieces. --pcap, and
    /// captures anywhere behind the device, show the packets on the wire.
    #[arg(long, value_name = "on|off", value_enum, help_heading = "Device")]
    offload: Option<Offload>,
    /// Write every packet to a pcap file (nanosecond timestamps)
    #[arg(long, value_name = "FILE", help_heading = "Device")]
    pcap: Option<PathBuf>,
    /// Set by [`HostArgs::with_fast_open`].
    #[arg(skip)]
    fast_open: Option<FastOpenOptions>,
}

/// The value of `--offload`.
#[expect(missing_docs, reason = "clap would print the documentation of the variants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Offload {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum OpeningErrorsArg {
    Hard,
    All,
    Freebsd,
}

impl From<OpeningErrorsArg> for OpeningErrors {
    fn from(which: OpeningErrorsArg) -> Self {
        match which {
            OpeningErrorsArg::Hard => Self::Hard,
            OpeningErrorsArg::All => Self::All,
            OpeningErrorsArg::Freebsd => Self::FreeBsd,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum MtuProbingArg {
    /// Never
    Off,
    /// After timeouts that suggest a path that drops long packets
    OnLoss,
    /// From the start, with short segments first
    Always,
}

impl From<MtuProbingArg> for MtuProbing {
    fn from(when: MtuProbingArg) -> Self {
        match when {
            MtuProbingArg::Off => Self::Off,
            MtuProbingArg::OnLoss => Self::OnLoss,
            MtuProbingArg::Always => Self::Always,
        }
    }
}

/// Parses R1 or R2 (RFC 9293 §3.8.3): a bare number counts retransmissions, a number with a unit is a time.
fn threshold(text: &str) -> Result<Threshold, String> {
    match text.parse() {
        Ok(count) => Ok(Threshold::retransmissions(count)),
        Err(_) => units::duration(text)
            .map(Threshold::time)
            .map_err(|_| format!("`{text}` is neither a count such as 7 nor a time such as 90s or 3m")),
    }
}

/// Default addresses of each family: the host's, and the kernel's.
const DEFAULT_V4: (IpAddr, &str) = (IpAddr::V4(Ipv4Addr::new(10, 83, 0, 2)), "10.83.0.1/24");
const DEFAULT_V6: (IpAddr, &str) = (IpAddr::V6(Ipv6Addr::new(0xfd83, 0, 0, 0, 0, 0, 0, 2)), "fd83::1/64");

/// The address families to use if the command line does not name addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// Only IPv4.
    V4,
    /// Only IPv6.
    V6,
    /// IPv4 and IPv6.
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

/// Addresses and routes of the host and the kernel.
struct Addresses {
    addrs: Vec<IpAddr>,
    kernel: Vec<Prefix>,
    routes: Vec<Prefix>,
}

impl HostArgs {
    /// Checks that the recipe and `--profile` do not name different profiles.
    pub fn check_profile(&self) -> anyhow::Result<()> {
        one_profile(Some(&self.recipe), self.profile).map(drop)
    }

    /// Opens the device and creates a host behind it. Signals are caught from here on, so no other thread may
    /// run yet.
    pub fn open(&self, families: Families) -> anyhow::Result<Driver> {
        let addresses = self.addresses(families)?;
        let clock = Clock::start();
        let mut reactor = Reactor::new(clock)?;
        reactor.catch_stop_signals()?;
        let tun = Tun::open(&TunConfig {
            name: self.tun.clone(),
            namespace: self.netns.clone(),
            addrs: addresses.kernel,
            behind: addresses.addrs.clone(),
            routes: addresses.routes,
            mtu: self.mtu,
            offload: self.offload == Some(Offload::On),
            ..TunConfig::default()
        })?;
        let capture = self.pcap.as_ref().map(|path| Capture::create(path, clock.wall_zero())).transpose()?;
        let mut profile = self.profile().profile();
        if self.fast_open.is_some() {
            profile.handshake.fast_open =
                FastOpenRules { client: true, server: true, ..profile.handshake.fast_open };
        }
        let host = Host::new(HostConfig {
            addrs: addresses.addrs,
            mtu: usize::from(self.mtu),
            profile,
            recipe: self.recipe.recipe.clone(),
            // A random seed by default: the kernel remembers the ports of the last run, and the same seed
            // would use them again.
            seed: self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
        });
        Ok(Driver::new(host, tun, reactor, capture)?)
    }

    /// Checks that a host can connect to the target, and that the target is not this host itself.
    pub fn check_target(&self, families: Families, remote: SocketAddr) -> anyhow::Result<()> {
        let unicast = match remote.ip() {
            IpAddr::V4(addr) => !(addr.is_broadcast() || addr.is_multicast() || addr.is_unspecified()),
            IpAddr::V6(addr) => !(addr.is_multicast() || addr.is_unspecified()),
        };
        if remote.port() == 0 || !unicast {
            return Err(ConnectError::BadRemote(remote).into());
        }
        if self.addresses(families)?.addrs.contains(&remote.ip()) {
            return Err(usage(format!(
                "{remote} is the userspace host's own address: the receiver has the kernel's (see --kernel-addr)"
            )));
        }
        Ok(())
    }

    /// Adds this address to the host's own.
    pub fn with_addr(mut self, addr: IpAddr) -> Self {
        if !self.addr.contains(&addr) {
            self.addr.push(addr);
        }
        self
    }

    /// Enables TCP Fast Open for active opens and for listeners, with every profile. At most
    /// `pending` connections of a listener may be open before their handshake is complete.
    pub fn with_fast_open(mut self, pending: usize) -> Self {
        self.fast_open = Some(FastOpenOptions { connect: true, pending, ..FastOpenOptions::default() });
        self
    }

    /// Sets the offload, unless the command line sets it.
    pub fn offload_or(mut self, usual: Offload) -> Self {
        self.offload = self.offload.or(Some(usual));
        self
    }

    /// Returns the socket options that the arguments set.
    pub fn options(&self) -> SocketOptions {
        let mut options = SocketOptions::of(&self.recipe.recipe.tune(&self.profile().profile()));
        options.send_buffer = self.send_buffer.unwrap_or(options.send_buffer);
        options.recv_buffer = self.receive_buffer;
        options.opening_errors = self.opening_errors.map_or(options.opening_errors, OpeningErrors::from);
        options.mtu_probing = self.mtu_probing.map_or(options.mtu_probing, MtuProbing::from);
        let patience =
            Patience { r1: self.r1, r2: self.r2, syn_r2: self.syn_r2, user_timeout: self.user_timeout };
        options.patience = (patience != Patience::default()).then(|| Box::new(patience));
        options.keepalive = self.keepalive();
        options.fast_open = self.fast_open.clone().map(Arc::new);
        options
    }

    /// Returns the keep-alive settings, if `--keepalive` or one of its parameters is given.
    fn keepalive(&self) -> Option<KeepAlive> {
        let Self { keepalive, keepalive_idle, keepalive_interval, keepalive_probes, .. } = self;
        let usual = KeepAlive::default();
        let times = KeepAlive {
            idle: keepalive_idle.unwrap_or(usual.idle),
            interval: keepalive_interval.unwrap_or(usual.interval),
            probes: keepalive_probes.unwrap_or(usual.probes),
        };
        let enabled = *keepalive
            || keepalive_idle.is_some()
            || keepalive_interval.is_some()
            || keepalive_probes.is_some();
        enabled.then_some(times)
    }

    /// Returns the recipe's profile, or the one of `--profile`, or `default`.
    pub fn profile(&self) -> ProfileName {
        self.recipe.profile_or(self.profile.unwrap_or_default())
    }

    fn addresses(&self, families: Families) -> anyhow::Result<Addresses> {
        let mut addresses =
            Addresses { addrs: self.addr.clone(), kernel: self.kernel_addr.clone(), routes: Vec::new() };
        for (addr, kernel) in [DEFAULT_V4, DEFAULT_V6] {
            let same_family = |other: &IpAddr| other.is_ipv4() == addr.is_ipv4();
            // A user who names addresses of one family only does not want the other family.
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
                return Err(usage(format!("{addr} cannot be the address of a host")));
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

#[cfg(test)]
mod tests {
    use airtcp::Profile;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        host_args: HostArgs,
    }

    fn parse(args: &str) -> Result<HostArgs, String> {
        let line = CommandLine::try_parse_from(format!("x {args}").split_whitespace());
        line.map(|line| line.host_args).map_err(|error| error.to_string())
    }

    /// Returns the host's addresses, the kernel's addresses and the routes, as text.
    fn addresses(args: &str, families: Families) -> Result<[Vec<String>; 3], String> {
        let addresses = parse(args)?.addresses(families).map_err(|e| e.to_string())?;
        let show = |prefixes: &[Prefix]| prefixes.iter().map(Prefix::to_string).collect();
        Ok([
            addresses.addrs.iter().map(IpAddr::to_string).collect(),
            show(&addresses.kernel),
            show(&addresses.routes),
        ])
    }

    #[test]
    fn missing_addresses_are_filled_for_requested_families() {
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

    fn options(args: &str) -> Result<SocketOptions, String> {
        Ok(parse(args)?.options())
    }

    #[test]
    fn patience_options_override_profile() {
        assert_eq!(options("").unwrap(), SocketOptions::of(&Profile::default()));
        let patience =
            *options("--r1 2 --r2 90s --syn-r2 4m --user-timeout 1500ms").unwrap().patience.unwrap();
        let expected = Patience {
            r1: Some(Threshold::retransmissions(2)),
            r2: Some(Threshold::time(Duration::from_secs(90))),
            syn_r2: Some(Threshold::time(Duration::from_secs(240))),
            user_timeout: Some(Duration::from_millis(1500)),
        };
        assert_eq!(patience, expected);
        assert!(options("--r2 soon").unwrap_err().contains("neither a count such as 7 nor a time"));
    }

    #[test]
    fn keepalive_times_enable_keepalive() {
        assert_eq!(options("--keepalive").unwrap().keepalive, Some(KeepAlive::default()));
        let times = options("--keepalive-idle 10s --keepalive-probes 3").unwrap().keepalive.unwrap();
        let expected = KeepAlive { idle: Duration::from_secs(10), probes: 3, ..KeepAlive::default() };
        assert_eq!(times, expected);
    }

    #[test]
    fn opening_errors_option_overrides_profile() {
        let which = |args: &str| options(args).unwrap().opening_errors;
        assert_eq!(which(""), OpeningErrors::Hard);
        assert_eq!(which("--profile linux"), OpeningErrors::All);
        assert_eq!(which("--profile linux --opening-errors hard"), OpeningErrors::Hard);
    }

    #[test]
    fn mtu_probing_option_overrides_profile() {
        let when = |args: &str| options(args).unwrap().mtu_probing;
        assert_eq!(when("--profile linux"), MtuProbing::Off);
        assert_eq!(when("--mtu-probing on-loss"), MtuProbing::OnLoss);
        assert_eq!(when("--profile linux --mtu-probing always"), MtuProbing::Always);
    }

    #[test]
    fn recipe_and_profile_option_must_name_same_profile() {
        let profile = |args: &str| {
            let host_args = parse(args)?;
            host_args.check_profile().map_err(|error| error.to_string())?;
            Ok::<_, String>(host_args.profile())
        };
        for args in ["", "--recipe sack"] {
            assert_eq!(profile(args), Ok(ProfileName::Default), "{args}");
        }
        for args in
            ["--recipe sack --profile linux", "--recipe sack@linux", "--recipe sack@linux --profile linux"]
        {
            assert_eq!(profile(args), Ok(ProfileName::Linux), "{args}");
        }
        assert_eq!(
            profile("--recipe sack@linux --profile default").unwrap_err(),
            "sack@linux and --profile default name two profiles: leave one of them out"
        );
        for args in ["--profile linx", "--recipe sack@linx"] {
            assert!(profile(args).unwrap_err().contains("did you mean `linux`?"), "{args}");
        }
        assert_eq!(options("--recipe sack@linux").unwrap().opening_errors, OpeningErrors::All);
    }

    #[test]
    fn address_outside_kernel_network_gets_route() {
        let [_, _, routes] = addresses("--addr 192.0.2.1", Families::V4).unwrap();
        assert_eq!(routes, ["192.0.2.1/32"]);
    }

    #[test]
    fn invalid_station_options_are_rejected() {
        assert!(addresses("--addr 10.83.0.1", Families::V4).unwrap_err().contains("is the kernel's address"));
        assert!(addresses("--addr 224.0.0.1", Families::V4).unwrap_err().contains("cannot be"));
        assert!(addresses("--mtu 576", Families::V6).unwrap_err().contains("at least 1280"));
        assert!(addresses("--mtu 576", Families::V4).is_ok());
        assert!(addresses("--recipe newrno", Families::V4).unwrap_err().contains("did you mean `newreno`"));
    }
}
