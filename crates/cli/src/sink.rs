//! `airtcp sink`: a receiver on the kernel's TCP.

use std::io::{self, BufWriter, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::linux::net::TcpStreamExt;
use std::path::PathBuf;

use airhelp::options::number;
use airlink::netns;
use airlink::reactor::{Clock, Interest, Reactor, Token, Wakeup};
use airtcp_lab::pattern::{FirstDifference, PatternCheck};
use airtcp_numbers::units::{self, show_rate};
use airwire::time::{Duration, Instant};
use anyhow::Context;
use clap::Args;
use nix::sys::socket::{setsockopt, sockopt};
use serde::Serialize;
use serde_json::json;

use crate::shared::console;
use crate::shared::digest::Hasher;
use crate::shared::failure::{self, Failure};
use crate::shared::pace::Pace;
use crate::shared::reporter::{Reporter, Reporting};
use crate::shared::store::Output;

/// Receive on the kernel's TCP, and report bytes, rate and SHA-256
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sink {
    /// Port to listen on
    #[arg(value_parser = number::<u16>(1..=65_535))]
    port: u16,
    /// Network namespace of the kernel's TCP: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS")]
    netns: Option<PathBuf>,
    /// Kernel address to listen on [default: all, IPv4 and IPv6]
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V6(Ipv6Addr::UNSPECIFIED), hide_default_value = true)]
    addr: IpAddr,
    /// Number of connections to receive, one after the other, before exiting
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<u32>(1..=u32::MAX.into()))]
    count: u32,
    /// Receive buffer size (SO_RCVBUF; the kernel doubles it) [default: the kernel's auto-tuning]
    #[arg(long, alias = "rcvbuf", value_name = "SIZE", value_parser = units::buffer_size)]
    receive_buffer: Option<usize>,
    /// Shrink the receive buffer to this size after the first 64 KiB, so that the kernel shrinks its advertised window
    #[arg(long, value_name = "SIZE", value_parser = units::buffer_size)]
    shrink_to: Option<usize>,
    /// Delay ACKs from the first segment on (TCP_QUICKACK off)
    ///
    /// Without this option the kernel starts a connection with quick ACKs.
    #[arg(long)]
    delayed_ack: bool,
    /// Limit on the rate at which the receiver reads, such as 50kB/s or 400kbit/s: its buffer fills and the window closes
    #[arg(long, value_name = "RATE", value_parser = units::bytes_per_second)]
    read_rate: Option<u64>,
    /// Compare the data with the test pattern of `airtcp send --bytes` and `airtcp source`
    ///
    /// Reports the first difference, and exits with code 1 if there is one.
    #[arg(long)]
    expect_pattern: bool,
    /// File to write (received data); - is stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Answer with the SHA-256 of the received data after the sender's FIN
    #[arg(long, conflicts_with = "no_digest")]
    echo_digest: bool,
    /// Do not compute the SHA-256
    #[arg(long)]
    no_digest: bool,
    /// Print JSON instead of text: one line per event (start, end, error)
    #[arg(long)]
    json: bool,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Prints a line to stderr when it starts to listen, and one line per connection
to stdout.

Example (as root):
  ip netns add mobile; ip -n mobile link set lo up
  airtcp sink 9000 --netns mobile --echo-digest &
  airtcp send --bytes 100M 10.83.0.1:9000 --netns mobile --verify

Exit codes:
  0  all data was received, and is as expected
  1  data is missing or not as expected
  2  usage error
  3  environment error: missing privilege or namespace
  130  stopped with Ctrl-C (128 + N: by signal N)";

const LISTENER: Token = Token(0);
const STREAM: Token = Token(1);
const BUFFER: usize = 256 << 10;
/// Bytes to receive before `--shrink-to` takes effect.
const BEFORE_SHRINKING: u64 = 64 << 10;
/// Pause between reads while data flows. The kernel wakes a reader that sleeps in `read` for every segment,
/// inside the sender's `write`, which would slow the sender down.
const PAUSE: Duration = Duration::from_micros(200);
/// Number of pauses without data after which the reader sleeps until data arrives.
const MAX_PAUSES: u32 = 10;

#[derive(Serialize)]
struct Received {
    peer: String,
    bytes: u64,
    seconds: f64,
    bit_per_s: f64,
    sha256: Option<String>,
    /// `None` without a difference, or without `--expect-pattern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_difference: Option<FirstDifference>,
}

impl Sink {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let clock = Clock::start();
        let output = Output::named(self.output.as_deref());
        let channel = output.report_channel(self.json)?;
        let reporting = Reporting { json: self.json, interval: None };
        reporting.reported(true, channel, clock, |reporter| self.serve(clock, &output, &reporter))
    }

    fn serve(&self, clock: Clock, output: &Output, reporter: &Reporter) -> anyhow::Result<()> {
        let mut reactor = Reactor::new(clock)?;
        reactor.catch_stop_signals()?;
        let mut writer = BufWriter::new(output.create()?);
        let listener = self.listen()?;
        let local = listener.local_addr()?;
        reporter.start(&json!({ "listening": local.to_string() }), "")?;
        if !self.json && !self.quiet {
            console::print_status(format_args!("listening on {local}"));
        }
        let mut differ = 0;
        for _ in 0..self.count {
            reactor.register(&listener, LISTENER, Interest::Read)?;
            let (stream, peer) = loop {
                match listener.accept() {
                    Ok(accepted) => break accepted,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&mut reactor, None)?,
                    Err(error) => return Err(error).context("cannot accept a connection"),
                }
            };
            // The next connection waits in the kernel's accept queue.
            reactor.deregister(&listener, LISTENER)?;
            let received = self
                .receive(stream, peer, &mut reactor, &mut writer)
                .with_context(|| format!("{peer}: the transfer was not completed"))?;
            let Received { bytes, seconds, bit_per_s, sha256, first_difference, .. } = &received;
            let text = format!(
                "received      {bytes} bytes from {peer} in {seconds:.3} s: {}\n{}{}",
                show_rate(*bit_per_s),
                sha256.as_ref().map(|digest| format!("sha256        {digest}\n")).unwrap_or_default(),
                self.pattern_line(*first_difference)
            );
            reporter.end(&received, &text)?;
            differ += u32::from(first_difference.is_some());
        }
        match (differ, self.count) {
            (0, _) => Ok(()),
            (_, 1) => Err(failure::run("the received data is not the test pattern")),
            (differ, all) => {
                Err(failure::run(format!("{differ} of {all} connections did not carry the test pattern")))
            }
        }
    }

    fn cannot_write(&self) -> String {
        Output::named(self.output.as_deref()).cannot_write()
    }

    fn pattern_line(&self, first: Option<FirstDifference>) -> String {
        match first {
            _ if !self.expect_pattern => String::new(),
            None => "pattern       all bytes match the test pattern\n".to_owned(),
            Some(FirstDifference { at, expected, received }) => {
                format!("pattern       byte at offset {at} is {received:#04x}, expected {expected:#04x}\n")
            }
        }
    }

    fn listen(&self) -> anyhow::Result<TcpListener> {
        let addr = SocketAddr::new(self.addr, self.port);
        let bind = || TcpListener::bind(addr);
        let listener = match &self.netns {
            Some(namespace) => netns::enter(namespace, bind)?,
            None => bind(),
        };
        let listener = listener.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => failure::run(format!(
                "port {} is in use: stop the other program, or choose another port",
                self.port
            )),
            io::ErrorKind::PermissionDenied => anyhow::Error::from(Failure::Environment(format!(
                "not allowed to listen on port {}: run as root, or choose port 1024 or higher",
                self.port
            ))),
            _ => anyhow::Error::from(error).context(format!("cannot listen on {addr}")),
        })?;
        if let Some(size) = self.receive_buffer {
            // Before a SYN arrives, because accepted sockets inherit the size, and the window scale depends
            // on it.
            setsockopt(&listener, sockopt::RcvBuf, &size).context("cannot set the receive buffer")?;
        }
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    fn receive(
        &self,
        mut stream: TcpStream,
        peer: SocketAddr,
        reactor: &mut Reactor,
        output: &mut impl Write,
    ) -> anyhow::Result<Received> {
        stream.set_nonblocking(true)?;
        if self.delayed_ack {
            stream.set_quickack(false)?;
        }
        let mut shrink_to = self.shrink_to;
        let clock = reactor.clock();
        let mut hasher = Hasher::new(!self.no_digest);
        let mut check = self.expect_pattern.then(PatternCheck::default);
        let mut pace = Pace::new(self.read_rate);
        let mut buffer = vec![0; pace.read_size(BUFFER)];
        let start = clock.now();
        let (mut bytes, mut last, mut pauses) = (0, start, 0);
        loop {
            if let Some(until) = pace.next_read(clock.now()) {
                wait(reactor, Some(until))?;
                continue;
            }
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => {
                    (bytes, last, pauses) = (bytes + len as u64, clock.now(), 0);
                    pace.record(last, len);
                    hasher.update(&buffer[..len]);
                    if let Some(check) = &mut check {
                        check.take(&buffer[..len]);
                    }
                    if let Some(size) = shrink_to.take_if(|_| bytes >= BEFORE_SHRINKING) {
                        setsockopt(&stream, sockopt::RcvBuf, &size)
                            .context("cannot set the receive buffer")?;
                    }
                    output.write_all(&buffer[..len]).with_context(|| self.cannot_write())?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pauses += 1;
                    pause(reactor, &stream, (pauses <= MAX_PAUSES).then(|| clock.now() + PAUSE))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        output.flush().with_context(|| self.cannot_write())?;
        let sha256 = hasher.finish();
        if let (true, Some(digest)) = (self.echo_digest, &sha256) {
            stream.set_nonblocking(false)?;
            stream.write_all(format!("{digest}\n").as_bytes())?;
        }
        let seconds = (last - start).as_secs_f64();
        let bit_per_s = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let first_difference = check.and_then(|check| check.first);
        Ok(Received { peer: peer.to_string(), bytes, seconds, bit_per_s, sha256, first_difference })
    }
}

/// Waits until the given time, or until data arrives if there is none.
fn pause(reactor: &mut Reactor, stream: impl AsFd, until: Option<Instant>) -> anyhow::Result<()> {
    if until.is_some() {
        return wait(reactor, until);
    }
    reactor.register(&stream, STREAM, Interest::Read)?;
    let result = wait(reactor, None);
    reactor.deregister(&stream, STREAM)?;
    result
}

fn wait(reactor: &mut Reactor, until: Option<Instant>) -> anyhow::Result<()> {
    match Wakeup::stop_signal(reactor.wait(until)?) {
        Some(signal) => Err(failure::stopped(signal, "stopped by a signal")),
        None => Ok(()),
    }
}
