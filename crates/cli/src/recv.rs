//! `airtcp recv`: receives one connection from a program on the kernel's TCP.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::PathBuf;

use airhelp::options::number;
use airtcp::host::{ConnId, Host, IoError, ListenId};
use airtcp::tcp::State;
use airtcp_numbers::units;
use airtcp_tun::{Application, Driver, Finished};
use airwire::time::{Duration, Instant};
use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::shared::failure;
use crate::shared::host_args::{Families, HostArgs};
use crate::shared::monitor::Monitor;
use crate::shared::pace::Pace;
use crate::shared::reporter::{Reporter, Reporting};
use crate::shared::store::{Output, Store};
use crate::shared::summary::{Direction, Ending, Summary};

/// Receive one connection from a program on the kernel's TCP
///
/// Creates a TUN device, gives the kernel an address on it, and listens at another address of the same network.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Recv {
    /// Port to listen on
    #[arg(value_parser = number::<u16>(1..=65_535))]
    port: u16,
    /// File to write (received data); - is stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Answer with the SHA-256 of the received data after the sender's FIN
    #[arg(long, conflicts_with = "no_digest")]
    echo_digest: bool,
    /// Do not compute the SHA-256
    #[arg(long)]
    no_digest: bool,
    /// Limit on the rate at which the receiver reads, such as 50kB/s or 400kbit/s: its buffer fills and the window closes
    #[arg(long, value_name = "RATE", value_parser = units::bytes_per_second)]
    read_rate: Option<u64>,
    /// Accept data in the SYN (TCP Fast Open)
    #[arg(long)]
    fast_open: bool,
    /// Give up after this time without progress (nothing received) [default: never]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    host_args: HostArgs,
    #[command(flatten)]
    reporting: Reporting,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples (as root):
  Create a network namespace for the sender, and receive a file from it:
    ip netns add mobile; ip -n mobile link set lo up
    airtcp recv 9000 --netns mobile --output copy.iso &
    ip netns exec mobile socat -u OPEN:file.iso TCP:10.83.0.2:9000
  Receive over IPv6 without delayed ACKs, and answer with the SHA-256:
    airtcp recv 9000 --netns mobile --recipe newreno+no-delack \\
      --echo-digest &
    ip netns exec mobile sh -c 'socat -t9 - TCP:[fd83::2]:9000 < file.iso'";

impl Recv {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let output = Output::named(self.output.as_deref());
        let channel = output.report_channel(self.reporting.json)?;
        self.host_args.check_profile()?;
        let writer = output.create()?;
        let host_args = match self.fast_open {
            true => self.host_args.clone().with_fast_open(1),
            false => self.host_args.clone(),
        };
        let mut driver = host_args.open(Families::Both)?;
        driver.start_writer()?;
        let clock = driver.clock();
        self.reporting.reported(self.quiet, channel, clock, |reporter| {
            self.transfer(&host_args, &mut driver, reporter, writer)
        })
    }

    fn transfer(
        &self,
        host_args: &HostArgs,
        driver: &mut Driver,
        reporter: Reporter,
        writer: Box<dyn Write + Send>,
    ) -> anyhow::Result<()> {
        let store = Store::start(writer, !self.no_digest, driver.waker())?;
        let monitor = Monitor::new(reporter, None, self.timeout, self.reporting.every())?;
        let mut listeners = Vec::new();
        for family in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            let addr = SocketAddr::new(family, self.port);
            listeners.push(driver.host.listen(addr, 1, host_args.options())?);
        }
        let addrs: Vec<String> =
            driver.host.addrs().iter().map(|ip| SocketAddr::new(*ip, self.port).to_string()).collect();
        let recipe = driver.host.recipe().to_string();
        let start = json!({
            "recipe": recipe,
            "profile": self.host_args.profile().as_str(),
            "device": driver.device(),
            "listening": addrs,
            "interval_seconds": self.reporting.every().as_secs_f64(),
        });
        let text = format!("listening on {} through {}: {recipe}", addrs.join(" and "), driver.device());
        monitor.reporter.listening(&start, &text)?;
        let mut receiver = Receiving {
            listeners,
            id: None,
            output: Output::named(self.output.as_deref()),
            store,
            echo: self.echo_digest,
            stream: Stream::Open,
            digest: None,
            pace: Pace::new(self.read_rate),
            next_read: None,
            monitor,
            error: None,
        };
        let finished = driver.run(&mut receiver)?;
        receiver.conclude(driver, finished)
    }
}

#[derive(Clone, PartialEq, Eq)]
enum Stream {
    Open,
    /// The sender's FIN has arrived, and received data is still being written.
    Ended,
    /// These bytes of the answer remain to be sent, followed by a FIN.
    Answering(Vec<u8>),
    Closed,
}

struct Receiving {
    listeners: Vec<ListenId>,
    id: Option<ConnId>,
    output: Output,
    store: Store,
    echo: bool,
    stream: Stream,
    digest: Option<String>,
    pace: Pace,
    /// The time at which the read rate allows the next read. `None` if it does not delay reading.
    next_read: Option<Instant>,
    monitor: Monitor,
    error: Option<anyhow::Error>,
}

impl Application for Receiving {
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()> {
        match self.step(now, host) {
            Ok(flow) => flow,
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn observe(&mut self, now: Instant, host: &Host) {
        if let Some(connection) = self.id.and_then(|id| host.connection(id)) {
            self.monitor.observe(now, connection);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.monitor.next_deadline().into_iter().chain(self.next_read).min()
    }
}

impl Receiving {
    fn step(&mut self, now: Instant, host: &mut Host) -> anyhow::Result<ControlFlow<()>> {
        let Some(id) = self.accept(host) else {
            if self.monitor.check_progress(now).is_err() {
                let waited = self.monitor.timeout().unwrap_or_default();
                return Err(failure::run(format!(
                    "no connection in {waited}: the sender must run in the namespace of the device"
                )));
            }
            return Ok(ControlFlow::Continue(()));
        };
        if let Some(connection) = host.connection_mut(id) {
            self.monitor.run(now, connection)?;
        }
        self.read(now, host, id)?;
        self.answer(now, host, id)?;
        self.check(now, host, id)
    }

    /// Accepts the first connection, and closes the listeners so that no other one is accepted.
    fn accept(&mut self, host: &mut Host) -> Option<ConnId> {
        if self.id.is_none() {
            self.id = self.listeners.iter().find_map(|listener| host.accept(*listener));
            if self.id.is_some() {
                self.listeners.drain(..).for_each(|listener| host.unlisten(listener));
            }
        }
        self.id
    }

    fn read(&mut self, now: Instant, host: &mut Host, id: ConnId) -> anyhow::Result<()> {
        self.next_read = None;
        while self.stream == Stream::Open && self.store.has_room() {
            if let Some(until) = self.pace.next_read(now) {
                self.next_read = Some(until);
                break;
            }
            let mut buffer = self.store.buffer();
            buffer.truncate(self.pace.read_size(buffer.len()));
            match host.read(id, &mut buffer) {
                Ok(0) => self.stream = Stream::Ended,
                Ok(len) => {
                    self.pace.record(now, len);
                    buffer.truncate(len);
                    self.store.put(buffer);
                }
                // `check` handles a connection that has ended.
                Err(_) => break,
            }
        }
        if self.stream == Stream::Ended {
            self.store.end();
        }
        let finished = if self.digest.is_none() { self.store.finished() } else { Ok(None) };
        if let Some(digest) = finished.with_context(|| self.output.cannot_write())? {
            let line = digest.as_ref().filter(|_| self.echo).map(|digest| format!("{digest}\n"));
            self.stream = Stream::Answering(line.unwrap_or_default().into_bytes());
            self.digest = digest;
        }
        Ok(())
    }

    fn answer(&mut self, now: Instant, host: &mut Host, id: ConnId) -> anyhow::Result<()> {
        let Stream::Answering(line) = &mut self.stream else { return Ok(()) };
        if !line.is_empty() {
            match host.write(now, id, line) {
                Ok(taken) => drop(line.drain(..taken)),
                Err(_) => return Ok(()),
            }
        }
        if line.is_empty() {
            // `check` handles a connection that has ended.
            let _ = host.shutdown_write(id);
            self.stream = Stream::Closed;
        }
        Ok(())
    }

    fn check(&self, now: Instant, host: &Host, id: ConnId) -> anyhow::Result<ControlFlow<()>> {
        let connection = host.connection(id).ok_or(IoError::NotConnected)?;
        let (remote, received) = (connection.remote(), connection.statistics().bytes_received);
        if let Some(why) = connection.ended() {
            return Err(failure::run(format!("{remote}: {why} after {received} bytes were received")));
        }
        if self.stream == Stream::Closed && matches!(connection.state(), State::TimeWait | State::Closed) {
            return Ok(ControlFlow::Break(()));
        }
        if self.monitor.check_progress(now).is_err() {
            let waited = self.monitor.timeout().unwrap_or_default();
            return Err(failure::run(format!(
                "{remote}: nothing arrived for {waited}, after {received} bytes: is the sender still running?"
            )));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn conclude(mut self, driver: &mut Driver, finished: Finished) -> anyhow::Result<()> {
        let verdict = match (self.error.take(), finished) {
            (Some(error), _) => Err(error),
            (None, Finished::BySignal(signal)) => {
                Err(failure::stopped(signal, "stopped by a signal before the sender closed the connection"))
            }
            (None, Finished::ByApplication) => Ok(()),
        };
        let ending = Ending::of(&verdict, finished);
        let Some(id) = self.id else { return verdict };
        if let Some(connection) = driver.host.connection(id) {
            let mut summary = Summary::new(ending, Direction::Received, driver, connection, &self.monitor)?;
            summary.sha256 = self.digest.take();
            self.monitor.reporter.end(&summary, &summary.text())?;
        }
        ending.close_connection(driver, id)?;
        verdict
    }
}
