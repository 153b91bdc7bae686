//! The options, and the setup of the server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use airhelp::options::number;
use airtcp::host::{Limits as HostLimits, ListenId};
use airtcp::tcp::SocketOptions;
use airtcp_command::console;
use airtcp_command::decisions::DecisionLog;
use airtcp_command::failure::{self, Failure};
use airtcp_command::host_args::{Families, HostArgs, Offload};
use airtcp_command::reporter::{self, Channel, Reporting};
use airtcp_numbers::units;
use airtcp_tun::Driver;
use airwire::time::Duration;
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::PROGRAM;
use crate::log::Log;
use crate::privileges;
use crate::server::{Server, Settings};
use crate::targets::Targets;

/// The options.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address and port to listen on, or a port on all addresses of the userspace host (repeatable)
    #[arg(long, required = true, value_name = "ADDR:PORT|PORT")]
    listen: Vec<Listen>,
    /// Server to forward to (repeatable: connections are distributed in turn, skipping servers that do not answer)
    #[arg(long, required = true, value_name = "HOST:PORT")]
    forward: Vec<String>,
    /// Begin each connection to a server with a PROXY protocol header (version 2), which names the client's address
    #[arg(long)]
    proxy_protocol: bool,
    /// Maximum number of open connections; further ones wait in the backlog
    #[arg(long, value_name = "NUMBER", default_value_t = 256, value_parser = number::<u32>(1..=100_000))]
    max_connections: u32,
    /// Maximum number of connections per --listen that are opening or waiting to be accepted
    ///
    /// Further SYNs are answered with SYN cookies. While this many complete connections wait, SYNs are dropped.
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = number::<u32>(1..=100_000))]
    backlog: u32,
    /// Accept data in the SYN (TCP Fast Open)
    ///
    /// A connection whose SYN has a valid cookie is forwarded before its handshake is complete. At most --backlog such
    /// connections per --listen are accepted.
    #[arg(long)]
    fast_open: bool,
    /// Maximum number of open connections per source, an IPv4 address or an IPv6 /64 [default: no limit]
    #[arg(long, value_name = "NUMBER", value_parser = number::<u32>(1..=100_000))]
    max_per_source: Option<u32>,
    /// Idle time after which a connection can be reset to make room for a new one
    ///
    /// If --max-connections or --memory is exhausted, the connection that has been idle for longest is reset.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    give_way: Duration,
    /// Memory limit: data of all connections that is not yet read, out of order, or not yet acknowledged
    #[arg(long, value_name = "SIZE", default_value = "256Mi", value_parser = memory_size)]
    memory: usize,
    /// Time within which a server must accept a connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    connect_timeout: Duration,
    /// Reset a connection if the server does not answer the client for this time
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = units::duration)]
    backend_timeout: Duration,
    /// Reset a connection that has been idle for this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = units::duration)]
    idle_timeout: Duration,
    /// Time that open connections have to end after SIGINT or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    grace: Duration,
    /// User to switch to once the device and files are open; all capabilities are dropped (`root`: keep them)
    #[arg(long, value_name = "NAME", default_value = privileges::NOBODY)]
    user: String,
    #[command(flatten)]
    host_args: HostArgs,
    /// Write every recovery decision to this file (JSON lines): time, algorithm, action and reason
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    decisions: Option<PathBuf>,
    #[command(flatten)]
    reporting: Reporting,
}

pub(crate) const EXAMPLES: &str = "\
Data read from one side waits here (for a server, at most 64 KiB) until the
other side takes it, so a slow reader slows down only its own connection. Each
connection uses at most --send-buffer and --receive-buffer of memory, and all
connections together use at most --memory. Above three quarters of --memory,
out-of-order data is dropped, and windows and buffers shrink. When it is
nearly exhausted, a new connection is accepted only after a connection that
holds data and has been idle for --give-way was reset.

SYNs beyond the backlog are answered with cookies (RFC 4987), and no state is
kept for them. A source gets at most 100 resets per second. A connection sends
at most one challenge ACK per 500 ms. At most 4096 closed connections wait for
the peer, and 16384 are in TIME-WAIT. `gate` in the events `interval` and
`end` counts what the limits did.

The first SIGINT or SIGTERM ends listening, the second one resets the open
connections.

JSON events: start, opened, closed (with bytes, goodput and recovery
counters), interval, stopping, left-out, end, error.

Output never blocks the server: if stdout, stderr, the log or --decisions
cannot be written (full disk, stopped reader), lines are dropped and counted,
and connections continue.

Exit codes:
  0  success, also if a signal stopped the server
  1  the run failed
  2  usage error, or a server's name that cannot be resolved
  3  environment error: missing privilege, device or user

Log levels (default: warnings):
  -v    connections opened and closed, ICMP errors, path MTU
  -vv   SYN options, states, recovery decisions, expired timers, zero windows,
        refused segments
  -vvv  every segment as tcpdump prints it, every timer that is set
  -q    errors only, and no progress messages

Example (as root): nginx behind this TCP in a separate network namespace, and
curl over a W-CDMA bearer
  unshare --net sh
    ip link set lo up; sysctl -w net.ipv4.ip_forward=1; nginx
    airtcp-serve --listen 10.83.0.2:80 --forward 127.0.0.1:80 \\
      --recipe sack+sifest+liw &
    airlink run --scenario wcdma-384 --linger 1s -- \\
      curl -o /dev/null http://10.83.0.2/";

/// An argument of `--listen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Listen {
    At(SocketAddr),
    AllAddrs(u16),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not an address and port: use for example 10.83.0.2:80, [fd83::2]:80 or 80")
        };
        let listen = match text.parse::<SocketAddr>() {
            Ok(addr) if addr.ip().is_unspecified() => Self::AllAddrs(addr.port()),
            Ok(addr) => Self::At(addr),
            Err(_) => Self::AllAddrs(text.parse().map_err(|_| wrong())?),
        };
        if listen.port() == 0 { Err(wrong()) } else { Ok(listen) }
    }
}

impl Listen {
    fn port(self) -> u16 {
        match self {
            Self::At(addr) => addr.port(),
            Self::AllAddrs(port) => port,
        }
    }

    /// Returns the addresses of this host that the argument covers.
    fn addrs(self, local_ips: &[IpAddr]) -> Vec<SocketAddr> {
        match self {
            Self::At(addr) => vec![addr],
            Self::AllAddrs(port) => local_ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect(),
        }
    }

    /// Returns the addresses that the host listens on.
    fn listeners(self) -> Vec<SocketAddr> {
        match self {
            Self::At(addr) => vec![addr],
            Self::AllAddrs(port) => {
                let any = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
                any.map(|ip| SocketAddr::new(ip, port)).to_vec()
            }
        }
    }
}

/// Descriptors that are not connections: device, captures, logs, epoll, timers, standard streams.
const SPARE_DESCRIPTORS: u64 = 64;

/// Minimum of `--memory` in bytes. Each connection is granted some memory in any case, and a smaller limit
/// would leave no more than that.
const MIN_MEMORY: usize = 1 << 20;

fn memory_size(text: &str) -> Result<usize, String> {
    let size = usize::try_from(units::bytes(text)?).unwrap_or(usize::MAX);
    if size < MIN_MEMORY { Err("must be at least 1Mi".to_owned()) } else { Ok(size) }
}

impl Serve {
    pub(crate) fn run(self, quiet: bool) -> anyhow::Result<()> {
        self.host_args.check_profile()?;
        let mut host_args = self.host_args.clone().offload_or(Offload::On);
        if self.fast_open {
            host_args = host_args.with_fast_open(self.backlog as usize);
        }
        let host_args = self.listen.iter().fold(host_args, |host_args, listen| match listen {
            Listen::At(addr) => host_args.with_addr(addr.ip()),
            Listen::AllAddrs(_) => host_args,
        });
        // Resolve the servers before the device is created, so that mistakes in the command line are reported
        // without privileges.
        let targets = Targets::resolve(&self.forward)?;
        for target in targets.iter() {
            host_args.check_target(Families::Both, target)?;
        }
        reserve_descriptors(u64::from(self.max_connections))?;
        let mut driver = host_args.open(Families::Both)?;
        let clock = driver.clock();
        let mut decisions =
            self.decisions.as_deref().map(|path| DecisionLog::create(path, clock.wall_zero())).transpose()?;
        let user = privileges::drop_privileges(&self.user)?;
        // From here on, separate threads write the output, so that a slow reader does not delay the
        // connections. They must start after `drop_privileges`, because threads keep their privileges.
        decisions.as_mut().map_or(Ok(()), |log| log.write_in_background(PROGRAM))?;
        driver.start_writer()?;
        console::write_in_background(PROGRAM, if self.reporting.json { gap_in_json } else { gap_in_text })?;
        self.reporting.reported(quiet, Channel::Stdout, clock, |reporter| {
            let log = Log::new(reporter, decisions, self.reporting.every());
            self.serve(&host_args, &mut driver, targets, log, &user)
        })
    }

    fn serve(
        &self,
        host_args: &HostArgs,
        driver: &mut Driver,
        targets: Targets,
        log: Log,
        user: &str,
    ) -> anyhow::Result<()> {
        if log.logs_decisions() {
            driver.host.trace_decisions();
        }
        driver.host.note_changes();
        let per_source = self.max_per_source.map(|max| max as usize);
        driver.host.set_limits(HostLimits { per_source, ..HostLimits::default() });
        driver.host.limit_memory(self.memory);
        // The server has already decided whether to send small segments, so Nagle's algorithm is off.
        let options = SocketOptions { nodelay: true, ..host_args.options() };
        let mut listeners: Vec<ListenId> = Vec::new();
        for addr in self.listen.iter().flat_map(|listen| listen.listeners()) {
            listeners.push(driver.host.listen(addr, self.backlog as usize, options.clone())?);
        }
        let local_ips = driver.host.addrs();
        let addrs: Vec<String> = self
            .listen
            .iter()
            .flat_map(|listen| listen.addrs(local_ips))
            .map(|addr| addr.to_string())
            .collect();
        let recipe = driver.host.recipe().to_string();
        let start = json!({
            "recipe": recipe,
            "profile": host_args.profile().as_str(),
            "device": driver.device(),
            "listening": addrs,
            "forward": self.forward,
            "max_connections": self.max_connections,
            "user": user,
            "max_per_source": self.max_per_source,
            "memory": self.memory,
            "interval_seconds": self.reporting.every().as_secs_f64(),
        });
        let text = format!(
            "listening on {} through {}, forwarding to {}: {recipe}",
            addrs.join(" and "),
            driver.device(),
            self.forward.join(" and ")
        );
        log.start(&start, &text)?;
        let settings = Settings {
            proxy_protocol: self.proxy_protocol,
            connections: self.max_connections as usize,
            connect: self.connect_timeout,
            backend: self.backend_timeout,
            idle: self.idle_timeout,
            min_idle: self.give_way,
            grace: self.grace,
        };
        let mut server = Server::new(listeners, targets, settings, driver.descriptors()?, log);
        driver.run(&mut server)?;
        // Send the resets of the connections that were still open.
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
    format!("{lines} lines were dropped here: the reader was too slow\n")
}

/// Raises the soft limit of open files to the required number, if the hard limit allows it.
fn reserve_descriptors(connections: u64) -> anyhow::Result<()> {
    let needed = connections + SPARE_DESCRIPTORS;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        let fit = hard.saturating_sub(SPARE_DESCRIPTORS);
        return Err(Failure::Environment(format!(
            "{connections} connections need {needed} open files, but the limit is {hard}: raise it (ulimit -Hn), or \
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
    fn listener_parses_port_or_address_with_port() {
        let local_ips: [IpAddr; 2] = ["10.83.0.2".parse().unwrap(), "fd83::2".parse().unwrap()];
        let addrs = |text: &str| {
            let listen = text.parse::<Listen>()?;
            Ok::<_, String>(
                listen.addrs(&local_ips).iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" "),
            )
        };
        assert_eq!(addrs("10.83.0.9:80").unwrap(), "10.83.0.9:80");
        assert_eq!(addrs("[fd83::9]:80").unwrap(), "[fd83::9]:80");
        assert_eq!(addrs("80").unwrap(), "10.83.0.2:80 [fd83::2]:80");
        assert_eq!(addrs("0.0.0.0:80").unwrap(), addrs("80").unwrap());
        for wrong in ["", "0", "10.83.0.2", "10.83.0.2:0", "localhost:80", "70000"] {
            assert!(addrs(wrong).unwrap_err().contains("use for example"), "{wrong}");
        }
    }
}
