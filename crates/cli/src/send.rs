//! `airtcp send`: sends data to a program on the kernel's TCP.

mod outgoing;
mod time_limit;

use std::io::Read;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use airtcp::host::{ConnId, Host, IoError};
use airtcp::tcp::{Ended, State};
use airtcp_numbers::units;
use airtcp_tun::{Application, Driver, Finished};
use airwire::time::{Duration, Instant};
use clap::Args;
use outgoing::Outgoing;
use serde_json::json;

use crate::shared::cookies;
use crate::shared::digest;
use crate::shared::failure;
use crate::shared::host_args::{Families, HostArgs};
use crate::shared::input::Input;
use crate::shared::monitor::Monitor;
use crate::shared::reporter::{Channel, Reporter, Reporting};
use crate::shared::summary::{Direction, Ending, Summary};

/// Send data to a receiver on the kernel's TCP
///
/// Creates a TUN device, gives the kernel an address on it, and uses another address of the same network itself.
/// The receiver can be any program. It must be listening already.
#[derive(Debug, Args)]
#[command(
    override_usage = "airtcp send [OPTIONS] [FILE|-] ADDR:PORT\n       airtcp send [OPTIONS] --bytes SIZE ADDR:PORT\n       airtcp send [OPTIONS] --for TIME ADDR:PORT",
    after_help = EXAMPLES
)]
pub(crate) struct Send {
    /// File to send (`-` or omitted: standard input), and the destination
    #[arg(required = true, num_args = 1..=2, value_name = "FILE|- ADDR:PORT")]
    input_and_destination: Vec<String>,
    /// Bytes to send, from a test pattern instead of a file
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    bytes: Option<u64>,
    /// Stop after this time (from the end of the handshake), sending a test pattern instead of a file
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, conflicts_with = "bytes")]
    time: Option<Duration>,
    /// Wait for the receiver's SHA-256 after the FIN, and fail if it differs
    #[arg(long, conflicts_with = "no_digest")]
    verify: bool,
    /// Do not compute the SHA-256
    #[arg(long)]
    no_digest: bool,
    /// Send the first data in the SYN (TCP Fast Open), with the server's cookie from this file
    ///
    /// If the file has no cookie of the server, or does not exist, the SYN requests one. Cookies are written to the file.
    #[arg(long, value_name = "FILE")]
    cookies: Option<PathBuf>,
    /// Give up after this time without progress (nothing acknowledged) [default: when the profile stops retransmitting]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    host_args: HostArgs,
    /// Write every recovery decision to this file (JSON lines): time, algorithm, action and reason
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    decisions: Option<PathBuf>,
    #[command(flatten)]
    reporting: Reporting,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Sizes are written 1500, 64Ki, 20M or 1G, and times 150ms, 1s or 2m.

--verify expects a line that starts with 64 hexadecimal digits. `airtcp sink
--echo-digest` sends one. sha256sum works too, run by a program that keeps the
connection open after the sender's FIN.

Examples (as root):
  Create a network namespace for the receiver:
    ip netns add mobile; ip -n mobile link set lo up
  Send 20 MB and verify the received data:
    ip netns exec mobile socat TCP-LISTEN:9000,reuseaddr SYSTEM:sha256sum &
    airtcp send --bytes 20M 10.83.0.1:9000 --netns mobile \\
      --recipe sack+limited-transmit --verify
  Send a file, and comment the capture for Wireshark:
    airtcp send file.iso 10.83.0.1:9000 --netns mobile --pcap send.pcap \\
      --decisions send.jsonl
    airtcp analyze send.pcap --decisions send.jsonl --comments send.pcapng
  Send standard input over IPv6:
    tar c . | airtcp send - [fd83::1]:9000 --netns mobile --json";

/// Time that the peer has to close the connection after everything was acknowledged, if no answer is
/// expected.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes of the answer to keep. A digest line is shorter.
const ANSWER_LIMIT: usize = 1024;

impl Send {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (input, remote) = self.input_and_remote()?;
        self.host_args.check_profile()?;
        let families = if remote.is_ipv4() { Families::V4 } else { Families::V6 };
        self.host_args.check_target(families, remote)?;
        // Open the input before the device is created, so that mistakes in the command line are reported
        // without privileges.
        let input = input.open()?;
        let host_args = match self.cookies {
            Some(_) => self.host_args.clone().with_fast_open(0),
            None => self.host_args.clone(),
        };
        let servers = self.cookies.as_deref().map(cookies::read).transpose()?;
        let mut driver = host_args.open(families)?;
        servers.into_iter().flatten().for_each(|server| driver.host.add_fast_open_server(server));
        driver.start_writer()?;
        let clock = driver.clock();
        self.reporting.reported(self.quiet, Channel::Stdout, clock, |reporter| {
            self.transfer(&host_args, &mut driver, reporter, input, remote)
        })
    }

    fn input_and_remote(&self) -> anyhow::Result<(Input, SocketAddr)> {
        let pattern = self.bytes.map(Input::Pattern).or_else(|| self.time.map(|_| Input::Endless));
        let (input, target) = match (self.input_and_destination.as_slice(), pattern) {
            ([target], Some(pattern)) => (pattern, target),
            ([target], None) => (Input::Stdin, target),
            ([_, _], Some(_)) => {
                return Err(failure::usage("a file cannot be combined with --bytes or --for: choose one"));
            }
            ([file, target], None) if file == "-" => (Input::Stdin, target),
            ([file, target], None) => (Input::File(file.into()), target),
            // clap ensures that there are one or two arguments.
            _ => return Err(failure::usage("missing file or destination: use `airtcp send FILE ADDR:PORT`")),
        };
        let remote = target.parse().map_err(|_| {
            failure::usage(format!(
                "`{target}` is not an address and port: use for example 10.83.0.1:9000 or [fd83::1]:9000"
            ))
        })?;
        Ok((input, remote))
    }

    fn transfer(
        &self,
        host_args: &HostArgs,
        driver: &mut Driver,
        reporter: Reporter,
        input: Box<dyn Read + std::marker::Send>,
        remote: SocketAddr,
    ) -> anyhow::Result<()> {
        let outgoing = Outgoing::start(input, !self.no_digest, self.time, driver.waker())?;
        let monitor =
            Monitor::new(reporter, self.decisions.as_deref(), self.timeout, self.reporting.every())?;
        if monitor.logs_decisions() {
            driver.host.trace_decisions();
        }
        let now = driver.clock().now();
        let id = driver.host.connect(now, None, remote, host_args.options())?;
        let recipe = driver.host.recipe().to_string();
        let start = json!({
            "recipe": recipe,
            "profile": self.host_args.profile().as_str(),
            "device": driver.device(),
            "remote": remote.to_string(),
            "interval_seconds": self.reporting.every().as_secs_f64(),
        });
        let text = format!("sending to {remote} through {}: {recipe}", driver.device());
        monitor.reporter.start(&start, &text)?;
        let mut sender = Sending {
            id,
            remote,
            outgoing,
            answer: Answer::new(self.verify),
            acknowledged_at: None,
            monitor,
            error: None,
        };
        let finished = driver.run(&mut sender)?;
        if let Some(path) = &self.cookies {
            cookies::write(path, &driver.host)?;
        }
        sender.conclude(driver, finished)
    }
}

/// The data that the peer sends back.
enum Answer {
    Discarded,
    Awaited { text: Vec<u8>, ended: bool },
}

impl Answer {
    fn new(verify: bool) -> Self {
        if verify { Self::Awaited { text: Vec::new(), ended: false } } else { Self::Discarded }
    }
}

struct Sending {
    id: ConnId,
    remote: SocketAddr,
    outgoing: Outgoing,
    answer: Answer,
    /// Time at which our FIN, and therefore all data, was acknowledged.
    acknowledged_at: Option<Instant>,
    monitor: Monitor,
    error: Option<anyhow::Error>,
}

impl Application for Sending {
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()> {
        match self.step(now, host) {
            Ok(flow) => flow,
            Err(error) => {
                self.error = Some(error);
                host.abort(self.id);
                ControlFlow::Break(())
            }
        }
    }

    fn observe(&mut self, now: Instant, host: &Host) {
        if let Some(connection) = host.connection(self.id) {
            self.monitor.observe(now, connection);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let closing = self.acknowledged_at.map(|at| at + CLOSE_TIMEOUT);
        let closing = closing.filter(|_| matches!(self.answer, Answer::Discarded));
        let time_is_up = self.outgoing.next_deadline();
        self.monitor.next_deadline().into_iter().chain(closing).chain(time_is_up).min()
    }
}

impl Sending {
    fn step(&mut self, now: Instant, host: &mut Host) -> anyhow::Result<ControlFlow<()>> {
        if let Some(connection) = host.connection_mut(self.id) {
            self.monitor.run(now, connection)?;
        }
        self.outgoing.write(now, host, self.id)?;
        self.read(host)?;
        self.check(now, host)
    }

    fn read(&mut self, host: &mut Host) -> anyhow::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match (host.read(self.id, &mut buffer), &mut self.answer) {
                (Ok(0), Answer::Awaited { ended, .. }) => {
                    *ended = true;
                    return Ok(());
                }
                (Ok(0) | Err(_), _) => return Ok(()),
                (Ok(_), Answer::Discarded) => {}
                (Ok(len), Answer::Awaited { text, .. }) => {
                    let room = ANSWER_LIMIT.saturating_sub(text.len());
                    text.extend(&buffer[..len.min(room)]);
                }
            }
        }
    }

    fn check(&mut self, now: Instant, host: &mut Host) -> anyhow::Result<ControlFlow<()>> {
        let connection = host.connection(self.id).ok_or(IoError::NotConnected)?;
        if let Some(why) = connection.ended() {
            let acked = connection.statistics().bytes_acked;
            return Err(ended(why, self.remote, self.monitor.established().is_some(), acked));
        }
        let state = connection.state();
        if matches!(state, State::FinWait2 | State::TimeWait | State::Closed)
            && self.acknowledged_at.is_none()
        {
            self.acknowledged_at = Some(now);
        }
        if let Some(at) = self.acknowledged_at {
            let answered = match self.answer {
                Answer::Awaited { ended, .. } => ended,
                Answer::Discarded => at + CLOSE_TIMEOUT <= now,
            };
            if answered || matches!(state, State::TimeWait | State::Closed) {
                return Ok(ControlFlow::Break(()));
            }
        }
        if self.monitor.check_progress(now).is_err() {
            return Err(self.stalled(state));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn stalled(&self, state: State) -> anyhow::Error {
        let Self { remote, .. } = self;
        let waited = self.monitor.timeout().unwrap_or_default();
        let established = self.monitor.established().is_some();
        failure::run(match self.acknowledged_at {
            _ if !established => format!("{remote}: no answer in {waited}{NO_ANSWER_HINT}"),
            Some(_) => format!(
                "{remote} acknowledged everything but sent no digest in {waited}: does the receiver answer after the \
                 end of its input, as `airtcp sink --echo-digest` does?"
            ),
            None => format!(
                "{remote}: nothing was acknowledged for {waited} ({state:?}): is the receiver still reading?"
            ),
        })
    }

    /// Reports the result after the run.
    fn conclude(mut self, driver: &mut Driver, finished: Finished) -> anyhow::Result<()> {
        self.monitor.finish(driver.host.connection_mut(self.id))?;
        let verdict = self.verdict(finished);
        let ending = Ending::of(&verdict, finished);
        if let Some(connection) = driver.host.connection(self.id)
            && self.monitor.established().is_some()
        {
            let mut summary = Summary::new(ending, Direction::Sent, driver, connection, &self.monitor)?;
            summary.in_time = self.outgoing.in_time;
            summary.sha256 = self.outgoing.digest.take();
            summary.peer_sha256 = self.peer_digest();
            self.monitor.reporter.end(&summary, &summary.text())?;
        }
        ending.close_connection(driver, self.id)?;
        verdict
    }

    fn verdict(&mut self, finished: Finished) -> anyhow::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if let Finished::BySignal(signal) = finished {
            return Err(failure::stopped(signal, "stopped by a signal before the transfer was complete"));
        }
        let Answer::Awaited { text, .. } = &self.answer else { return Ok(()) };
        match (self.peer_digest(), &self.outgoing.digest) {
            (Some(received), Some(sent)) if received == *sent => Ok(()),
            (Some(received), _) => Err(failure::run(format!(
                "the receiver's SHA-256 is {received}: the received data differs from the sent data"
            ))),
            (None, _) => Err(failure::run(format!(
                "the receiver answered `{}`, not a SHA-256: see --verify in `airtcp send --help`",
                String::from_utf8_lossy(text).trim_end().escape_debug()
            ))),
        }
    }

    fn peer_digest(&self) -> Option<String> {
        match &self.answer {
            Answer::Awaited { text, .. } => digest::in_answer(text),
            Answer::Discarded => None,
        }
    }
}

/// Returns the error for a connection that ended before the transfer was complete.
fn ended(why: Ended, remote: SocketAddr, established: bool, acked: u64) -> anyhow::Error {
    let hint = match (why, established) {
        (Ended::Refused, _) | (Ended::Reset, false) => {
            let port = remote.port();
            format!(": start a receiver there first, for example `airtcp sink {port}`")
        }
        (Ended::Reset, true) => {
            format!(
                " after {acked} bytes were acknowledged: the receiving program ended early, see its own output"
            )
        }
        (Ended::TimedOut, false) => NO_ANSWER_HINT.to_owned(),
        (Ended::TimedOut, true) => format!(" after {acked} bytes were acknowledged: is the path still up?"),
        (Ended::Unreachable(_), _) => ": check the routes of the device's namespace".to_owned(),
        (Ended::Aborted, _) => String::new(),
    };
    failure::run(format!("{remote}: {why}{hint}"))
}

const NO_ANSWER_HINT: &str =
    ": is it an address of the kernel, or one that the kernel routes? `--pcap FILE` records the sent packets";
