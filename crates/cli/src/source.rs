//! `airtcp source`: a sender on the kernel's TCP, for comparison. The counterpart of `sink`.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;

use airlink::reactor::Clock;
use airtcp_lab::{counters, sender};
use airtcp_numbers::units::{self, show_rate};
use airwire::time::Duration;
use anyhow::Context;
use clap::Args;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::shared::digest::Hasher;
use crate::shared::failure::{self, Failure};
use crate::shared::input::Input;
use crate::shared::reporter::{Channel, Reporter, Reporting};

/// Send a test pattern on the kernel's TCP
///
/// Runs in the current network namespace and reports its retransmission counters, so no other program should use
/// TCP in that namespace. `airtcp lab` ensures this.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Source {
    /// Destination
    #[arg(value_name = "ADDR:PORT")]
    remote: SocketAddr,
    /// Bytes to send
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, required_unless_present = "time")]
    bytes: Option<u64>,
    /// Stop after this time (from the end of the handshake), instead of after --bytes
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, conflicts_with = "bytes")]
    time: Option<Duration>,
    /// Congestion control, one of net.ipv4.tcp_available_congestion_control [default: the namespace's]
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Print JSON instead of text: one line per event (start, end, error)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Example: this kernel's CUBIC over a W-CDMA link to a sink on the other side
  airlink run -s wcdma-384 --server 'sleep 1; airtcp source --bytes 1M \\
    --congestion-control cubic $AIRLINK_MOBILE:9000' -- airtcp sink 9000";

const CHUNK: usize = 64 << 10;
/// Size of a write with `--for`. A write into a full buffer blocks until the path has made room, so this size
/// determines how late the stream can end.
const TIMED_CHUNK: usize = 4 << 10;
/// Time that the peer has to close the connection after the last write. The peer closes when it has read
/// everything.
const TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Serialize)]
struct Summary {
    congestion_control: String,
    remote: String,
    bytes: u64,
    /// Seconds from the end of the handshake to the peer's FIN.
    seconds: f64,
    bit_per_s: f64,
    sha256: Option<String>,
    /// Increases of the namespace's counters (`nstat`).
    kernel: Map<String, Value>,
    /// TCP_INFO after the last byte was written, as `ss -ti` shows it.
    tcp_info: Option<String>,
}

impl Source {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let clock = Clock::start();
        let reporting = Reporting { json: self.json, interval: None };
        reporting.reported(true, Channel::Stdout, clock, |reporter| self.send(clock, &reporter))
    }

    fn send(&self, clock: Clock, reporter: &Reporter) -> anyhow::Result<()> {
        let remote = self.remote;
        reporter.start(&json!({ "remote": remote.to_string() }), "")?;
        let before = counters()?;
        let mut stream = self.connect()?;
        let congestion_control =
            nix::sys::socket::getsockopt(&stream, sockopt::TcpCongestion)?.to_string_lossy().into_owned();
        let start = clock.now();
        let input = self.bytes.map_or(Input::Endless, Input::Pattern);
        let (mut input, mut hasher, mut bytes) = (input.open()?, Hasher::new(true), 0);
        let end = self.time.map(|time| start + time);
        let mut chunk = vec![0; if end.is_some() { TIMED_CHUNK } else { CHUNK }];
        let broke = || format!("{remote}: the connection ended too early");
        while end.is_none_or(|end| clock.now() < end) {
            let len = input.read(&mut chunk)?;
            if len == 0 {
                break;
            }
            bytes += len as u64;
            hasher.update(&chunk[..len]);
            stream.write_all(&chunk[..len]).with_context(broke)?;
        }
        let tcp_info = tcp_info(&stream);
        stream.shutdown(std::net::Shutdown::Write).with_context(broke)?;
        stream.set_read_timeout(Some(std::time::Duration::from_nanos(TIMEOUT.as_nanos())))?;
        loop {
            match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(failure::run(format!(
                        "{remote}: the receiver has not closed the connection {} s after the last write: is the path still up?",
                        TIMEOUT.as_secs_f64()
                    )));
                }
                Err(error) => return Err(error).with_context(broke),
            }
        }
        let seconds = (clock.now() - start).as_secs_f64();
        let after = counters()?;
        let value_before =
            |name: &str| before.iter().find(|(other, _)| other == name).map_or(0, |(_, value)| *value);
        let increases = after.into_iter().map(|(name, value)| (value - value_before(&name), name));
        let increases = increases.filter(|(increase, _)| *increase != 0);
        let kernel = increases.map(|(increase, name)| (name, Value::from(increase))).collect();
        let bit_per_s = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let summary = Summary {
            congestion_control,
            remote: remote.to_string(),
            bytes,
            seconds,
            bit_per_s,
            sha256: hasher.finish(),
            kernel,
            tcp_info,
        };
        let text = format!(
            "sent          {} bytes to {remote} in {seconds:.3} s: {} ({})\nsha256        {}\n",
            summary.bytes,
            show_rate(bit_per_s),
            summary.congestion_control,
            summary.sha256.as_deref().unwrap_or_default()
        );
        reporter.end(&summary, &text)?;
        Ok(())
    }

    fn connect(&self) -> anyhow::Result<TcpStream> {
        let remote = self.remote;
        if let Some(name) = &self.congestion_control {
            sender::check_congestion_control(name)
                .map_err(|error| Failure::Environment(error.to_string()))?;
        }
        let family = if remote.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        // Set before the handshake, because a connection keeps some state of its first congestion control
        // (BBR's pacing).
        if let Some(name) = &self.congestion_control {
            setsockopt(&socket, sockopt::TcpCongestion, &name.into())
                .with_context(|| format!("cannot use the congestion control `{name}`"))?;
        }
        connect(socket.as_raw_fd(), &SockaddrStorage::from(remote)).map_err(|error| match error {
            Errno::ECONNREFUSED => failure::run(format!(
                "{remote}: refused: start a receiver there first, for example `airtcp sink {}`",
                remote.port()
            )),
            _ => failure::run(format!("{remote}: {}", error.desc())),
        })?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Returns the namespace's TCP counters, as `nstat -a` lists them.
fn counters() -> anyhow::Result<Vec<(String, i64)>> {
    let all = counters::read().context("cannot read the namespace's counters in /proc")?;
    let of_tcp = all.into_iter().filter(|counter| counter.protocol.starts_with("Tcp"));
    Ok(of_tcp.map(|counter| (counter.name, counter.value)).collect())
}

fn tcp_info(stream: &TcpStream) -> Option<String> {
    let port = stream.local_addr().ok()?.port();
    let output = Command::new("ss").args(["-HtinO", "sport", "=", &format!(":{port}")]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}
