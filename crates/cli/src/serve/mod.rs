//! `airtcp serve`: our TCP in front of an ordinary server.

mod crowd;
mod endpoints;
mod gate;
mod log;
mod privileges;
mod server;
mod session;
mod targets;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use airtcp::host::{Limits as HostLimits, ListenId};
use airtcp::tcp::SocketOptions;
use airtcp_numbers::units;
use airtcp_tun::Driver;
use airwire::time::Duration;
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;

use self::log::Log;
use self::server::{Limits, Server};
use self::targets::Targets;
use crate::shared::decisions::DecisionLog;
use crate::shared::failure::{self, Failure};
use crate::shared::reporter::{self, Channel, Reporting};
use crate::shared::say;
use crate::shared::station::{Families, Offload, Station};

/// Put our TCP in front of an ordinary server, as the sender towards the radio side.
///
/// A TUN device is made, and this host listens behind it. For each connection that arrives, one of the kernel's TCP
/// is opened to the server, from the namespace that this command was started in, and both streams are carried over:
/// data, its end in each direction, and resets.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Where to listen: an address for this host and a port, or a port at all its addresses (repeatable)
    #[arg(long, required = true, value_name = "ADDR:PORT|PORT")]
    listen: Vec<Listen>,
    /// The server (repeatable: connections go to them in turn, and to the next one if one does not answer)
    #[arg(long, required = true, value_name = "HOST:PORT")]
    forward: Vec<String>,
    /// Connections at once; others wait in the backlog until one ends or gives way
    #[arg(long, value_name = "NUMBER", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: u32,
    /// Connections that may be opening or wait for their turn, for each --listen; more SYNs get SYN cookies, and none
    /// is answered while as many wait
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    backlog: u32,
    /// Connections at once of one source, which is an IPv4 address or an IPv6 network of 64 bits [default: no limit]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_per_source: Option<u32>,
    /// When all --max-connections or all --memory are taken, the one over which nothing has moved for longest gives way to
    /// a newcomer, if that is this time or more
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    give_way: Duration,
    /// Memory for the data of all connections together: received and not taken, out of order, sent and not acknowledged
    #[arg(long, value_name = "SIZE", default_value = "256Mi", value_parser = memory_size)]
    memory: usize,
    /// How long the server may take to accept a connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    connect_timeout: Duration,
    /// Reset a connection whose server has answered nothing for this time to what the client has sent
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::duration)]
    backend_timeout: Duration,
    /// Reset a connection over which nothing has moved for this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::duration)]
    idle_timeout: Duration,
    /// How long connections may go on after SIGINT or SIGTERM, before they are reset
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    grace: Duration,
    /// Who to be, in place of root, as soon as the device and the files are open: no capability is kept. `root` keeps them
    #[arg(long, value_name = "NAME", default_value = privileges::NOBODY)]
    user: String,
    #[command(flatten)]
    station: Station,
    /// Write every decision about losses and the window to this file: who, what and why (JSON lines)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    decisions: Option<PathBuf>,
    #[command(flatten)]
    reporting: Reporting,
}

const EXAMPLES: &str = "\
What is read from one side waits here, at most 64 KiB for a server, until the other side takes it; so a slow reader
slows down its own server connection and no other. Each connection uses at most --send-buffer and --receive-buffer
of memory, and no more than the peer's window asks for. All together use --memory: when three quarters of it are in use,
data out of order is dropped, windows and buffers get smaller, and when nearly all is, new connections are not taken before
one that holds data and over which nothing has moved for --give-way has given way; no other is ended.

Strangers can take what the limits above give them, and little besides: SYNs that find no room are answered with
cookies (RFC 4987), of which nothing is kept; resets, and ACKs to what may be forged, are at most 1000 a second each; at
most 4096 connections wait for the peer's last word, and 16384 for the end of TIME-WAIT. `gate` in the events `interval`
and `end` counts all of it.

The first SIGINT or SIGTERM ends the listening, the second one resets what is still open.

JSON events: start, opened, closed (with bytes, goodput and what recovery did), interval, stopping, left-out, end, error.

Nobody waits for who reads this: where stdout, stderr, the log or --decisions take no more (a full disk, a stopped
reader), lines are left out, counted in their place and at the end, and the connections go on.

Example (as root): nginx and our TCP in a network of their own, and curl behind a W-CDMA bearer
  unshare --net sh
    ip link set lo up; sysctl -w net.ipv4.ip_forward=1; nginx
    airtcp serve --listen 10.83.0.2:80 --forward 127.0.0.1:80 --recipe sack+sifest+liw &
    airlink run --scenario wcdma-384 --linger 1s -- curl -o /dev/null http://10.83.0.2/";

/// A command-line address of `--listen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Listen {
    At(SocketAddr),
    Everywhere(u16),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not an address and port: write for example 10.83.0.2:80, [fd83::2]:80 or 80")
        };
        let listen = match text.parse::<SocketAddr>() {
            Ok(addr) if addr.ip().is_unspecified() => Self::Everywhere(addr.port()),
            Ok(addr) => Self::At(addr),
            Err(_) => Self::Everywhere(text.parse().map_err(|_| wrong())?),
        };
        if listen.port() == 0 { Err(wrong()) } else { Ok(listen) }
    }
}

impl Listen {
    fn port(self) -> u16 {
        match self {
            Self::At(addr) => addr.port(),
            Self::Everywhere(port) => port,
        }
    }

    /// The addresses of this host that it stands for.
    fn addrs(self, own: &[IpAddr]) -> Vec<SocketAddr> {
        match self {
            Self::At(addr) => vec![addr],
            Self::Everywhere(port) => own.iter().map(|ip| SocketAddr::new(*ip, port)).collect(),
        }
    }

    /// What the host listens at.
    fn listeners(self) -> Vec<SocketAddr> {
        match self {
            Self::At(addr) => vec![addr],
            Self::Everywhere(port) => {
                let any = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
                any.map(|ip| SocketAddr::new(ip, port)).to_vec()
            }
        }
    }
}

/// Descriptors that are not connections: the device, captures, logs, epoll, timers, standard streams.
const SPARE_DESCRIPTORS: u64 = 64;

/// Less would leave the connections nothing but what each is granted in any case.
const LEAST_MEMORY: usize = 1 << 20;

fn memory_size(text: &str) -> Result<usize, String> {
    let size = usize::try_from(units::bytes(text)?).unwrap_or(usize::MAX);
    if size < LEAST_MEMORY { Err("at least 1Mi is needed".to_owned()) } else { Ok(size) }
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.station.check_profile()?;
        let station = self.station.clone().offload_or(Offload::On);
        let station = self.listen.iter().fold(station, |station, listen| match listen {
            Listen::At(addr) => station.with_addr(addr.ip()),
            Listen::Everywhere(_) => station,
        });
        // Before the device is made, so that mistakes in the command line are reported without privileges.
        let targets = Targets::resolve(&self.forward)?;
        for target in targets.iter() {
            station.check_target(Families::Both, target)?;
        }
        reserve_descriptors(u64::from(self.max_connections))?;
        let mut driver = station.open(Families::Both)?;
        let clock = driver.clock();
        let mut decisions =
            self.decisions.as_deref().map(|path| DecisionLog::create(path, clock.wall_zero())).transpose()?;
        let user = privileges::give_up(&self.user)?;
        // Strangers are served, whoever reads what is said of them. From here on there are threads.
        decisions.as_mut().map_or(Ok(()), DecisionLog::write_apart)?;
        driver.write_apart()?;
        say::apart(if self.reporting.json { gap_in_json } else { gap_in_text })?;
        self.reporting.reported(Channel::Stdout, clock, |reporter| {
            let log = Log::new(reporter, decisions, self.reporting.every());
            self.serve(&station, &mut driver, targets, log, &user)
        })
    }

    fn serve(
        &self,
        station: &Station,
        driver: &mut Driver,
        targets: Targets,
        log: Log,
        user: &str,
    ) -> anyhow::Result<()> {
        if log.traces() {
            driver.host.trace_decisions();
        }
        driver.host.note_changes();
        let per_source = self.max_per_source.map(|most| most as usize);
        driver.host.set_limits(HostLimits { per_source, ..HostLimits::default() });
        driver.host.limit_memory(self.memory);
        // Small segments are the server's choice, which it has made already.
        let options = SocketOptions { nodelay: true, ..station.options() };
        let mut listeners: Vec<ListenId> = Vec::new();
        for addr in self.listen.iter().flat_map(|listen| listen.listeners()) {
            listeners.push(driver.host.listen(addr, self.backlog as usize, options.clone())?);
        }
        let own = driver.host.addrs();
        let addrs: Vec<String> =
            self.listen.iter().flat_map(|listen| listen.addrs(own)).map(|addr| addr.to_string()).collect();
        let recipe = driver.host.recipe().to_string();
        let start = json!({
            "recipe": recipe,
            "profile": station.profile().as_str(),
            "device": driver.device(),
            "listening": addrs,
            "forward": self.forward,
            "max_connections": self.max_connections,
            "user": user,
            "max_per_source": self.max_per_source,
            "memory": self.memory,
            "interval": self.reporting.every().as_secs_f64(),
        });
        let text = format!(
            "listening on {} through {} for {}: {recipe}",
            addrs.join(" and "),
            driver.device(),
            self.forward.join(" and ")
        );
        log.start(&start, &text)?;
        let limits = Limits {
            connections: self.max_connections as usize,
            connect: self.connect_timeout,
            backend: self.backend_timeout,
            idle: self.idle_timeout,
            spared: self.give_way,
            grace: self.grace,
        };
        let mut server = Server::new(listeners, targets, limits, driver.descriptors()?, log);
        driver.run(&mut server)?;
        // The resets of whatever was still open.
        driver.finish()?;
        server.conclude(driver)
    }
}

fn gap_in_json(lines: u64) -> String {
    json!({ "schema_version": reporter::SCHEMA_VERSION, "event": "left-out", "data": { "events": lines } })
        .to_string()
        + "\n"
}

fn gap_in_text(lines: u64) -> String {
    format!("{lines} lines were left out here: they were not read as fast as they came\n")
}

/// Raises the soft limit as far as needed, if the hard one lets it.
fn reserve_descriptors(connections: u64) -> anyhow::Result<()> {
    let needed = connections + SPARE_DESCRIPTORS;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        let fit = hard.saturating_sub(SPARE_DESCRIPTORS);
        return Err(Failure::Environment(format!(
            "{connections} connections need {needed} open files, and the limit is {hard}: raise it (ulimit -Hn), or \
             choose --max-connections {fit} or less"
        ))
        .into());
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard)
        .map_err(|error| failure::run(format!("cannot raise the limit of open files to {needed}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_an_address_and_port_or_a_port() {
        let own: [IpAddr; 2] = ["10.83.0.2".parse().unwrap(), "fd83::2".parse().unwrap()];
        let addrs = |text: &str| {
            let listen = text.parse::<Listen>()?;
            Ok::<_, String>(
                listen.addrs(&own).iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" "),
            )
        };
        assert_eq!(addrs("10.83.0.9:80").unwrap(), "10.83.0.9:80");
        assert_eq!(addrs("[fd83::9]:80").unwrap(), "[fd83::9]:80");
        assert_eq!(addrs("80").unwrap(), "10.83.0.2:80 [fd83::2]:80");
        assert_eq!(addrs("0.0.0.0:80").unwrap(), addrs("80").unwrap());
        for wrong in ["", "0", "10.83.0.2", "10.83.0.2:0", "localhost:80", "70000"] {
            assert!(addrs(wrong).unwrap_err().contains("write for example"), "{wrong}");
        }
    }
}
