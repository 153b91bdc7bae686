//! Reports the events of a run: text for users, or JSON lines for programs.

use std::io::{self, IsTerminal, Write};
use std::time::SystemTime;

use airlink::reactor::Clock;
use airlogs::stderr::with_causes;
use airtcp_numbers::units::{self, show_bytes, show_rate};
use airwire::time::{Duration, Instant};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::{console, failure};

/// Version of the JSON events.
pub const SCHEMA_VERSION: u32 = 1;

/// Options of a command that reports events.
#[derive(Clone, Debug, Args)]
pub struct Reporting {
    /// Print JSON instead of text: one line per event (start, interval, end, error)
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Time between progress lines [default: 1s if stderr is a terminal, or with --json]
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "quiet", help_heading = "Output")]
    pub interval: Option<Duration>,
}

impl Reporting {
    /// Returns the time between progress lines.
    pub fn every(&self) -> Duration {
        self.interval.unwrap_or(Duration::from_secs(1))
    }

    /// Calls `run` with a reporter. With `--json`, reports an error as an event too, because `main` prints it
    /// to stderr only.
    ///
    /// # Errors
    /// The error of `run`.
    pub fn reported(
        &self,
        quiet: bool,
        channel: Channel,
        clock: Clock,
        run: impl FnOnce(Reporter) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let result = run(Reporter::new(self, quiet, channel, clock));
        if let Err(error) = &result {
            Reporter::new(self, quiet, channel, clock).error(error);
        }
        result
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    schema_version: u32,
    event: &'a str,
    time: f64,
    wall: f64,
    data: &'a T,
}

/// The stream for the text of the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// Results go to stdout.
    Stdout,
    /// Used if stdout carries the received data.
    Stderr,
}

/// The data of an `interval` event of one connection.
#[derive(Serialize)]
pub struct Interval {
    /// Start of the interval, in seconds after the handshake.
    pub from: f64,
    /// End of the interval, in seconds after the handshake.
    pub to: f64,
    /// Payload bytes in the interval.
    pub bytes: u64,
    /// Payload rate in the interval, in bit/s.
    pub bit_per_s: f64,
    /// Payload bytes since the start.
    pub total_bytes: u64,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments. `None` while it is arbitrarily high.
    pub ssthresh: Option<u32>,
    /// Unacknowledged segments.
    pub in_flight: u32,
    /// Smoothed round-trip time in milliseconds.
    pub srtt_ms: f64,
    /// Retransmission timeout in milliseconds.
    pub rto_ms: f64,
    /// Retransmitted segments since the start.
    pub retransmissions: u32,
    /// Timeouts since the start.
    pub timeouts: u64,
}

/// Writes the events.
pub struct Reporter {
    json: bool,
    quiet: bool,
    progress: bool,
    channel: Channel,
    clock: Clock,
    intervals: u64,
}

impl Reporter {
    fn new(options: &Reporting, quiet: bool, channel: Channel, clock: Clock) -> Self {
        let wanted = options.json || options.interval.is_some() || io::stderr().is_terminal();
        Self { json: options.json, quiet, progress: wanted && !quiet, channel, clock, intervals: 0 }
    }

    /// Returns the time since the start of the program.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the wall-clock time of `Instant::ZERO`.
    pub fn wall_zero(&self) -> SystemTime {
        self.clock.wall_zero()
    }

    /// Writes one JSON line. `time` is monotonic and starts with the program; `wall` counts from 1970. Both
    /// are in seconds.
    fn event(&self, name: &str, data: &impl Serialize) -> io::Result<()> {
        let now = self.clock.now();
        let zero = self.clock.wall_zero().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let wall = zero.as_secs_f64() + now.as_secs_f64();
        let event = Line { schema_version: SCHEMA_VERSION, event: name, time: now.as_secs_f64(), wall, data };
        let line = serde_json::to_string(&event)?;
        writeln!(console::stdout(), "{line}")
    }

    /// Reports the start. The text is progress.
    pub fn start(&self, data: &impl Serialize, text: &str) -> io::Result<()> {
        self.event_or_status("start", data, self.progress.then_some(text))
    }

    /// Reports the start of a host that listens. Unlike [`start`](Self::start), it writes the text even if
    /// progress is not shown, because users wait for this line before they connect.
    pub fn listening(&self, data: &impl Serialize, text: &str) -> io::Result<()> {
        self.event_or_status("start", data, (!self.quiet).then_some(text))
    }

    /// Writes a JSON line with `--json`, otherwise the text to stderr.
    fn event_or_status(&self, name: &str, data: &impl Serialize, text: Option<&str>) -> io::Result<()> {
        if self.json {
            return self.event(name, data);
        }
        if let Some(text) = text {
            console::print_status(text);
        }
        Ok(())
    }

    /// Reports an event of one of several connections. The text is printed on stdout.
    pub fn happened(&self, name: &str, data: &impl Serialize, text: &str) -> io::Result<()> {
        if self.json { self.event(name, data) } else { writeln!(console::stdout(), "{text}") }
    }

    /// Reports progress. The text is printed on stderr.
    pub fn progress(&self, name: &str, data: &impl Serialize, text: &str) -> io::Result<()> {
        if self.progress { self.event_or_status(name, data, Some(text)) } else { Ok(()) }
    }

    /// Reports an interval of one connection.
    pub fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        if !self.progress {
            return Ok(());
        }
        if self.json {
            return self.event("interval", interval);
        }
        if self.intervals.is_multiple_of(20) {
            console::print_status(format_args!(
                "{:>9}  {:>10}  {:>13}  {:>14}  {:>10}  {:>6}  {:>8}",
                "time", "bytes", "rate", "cwnd, segments", "srtt", "retr.", "timeouts"
            ));
        }
        self.intervals += 1;
        let Interval { to, bytes, bit_per_s, cwnd, srtt_ms, retransmissions, timeouts, .. } = interval;
        console::print_status(format_args!(
            "{to:>7.1} s  {:>10}  {:>13}  {cwnd:>14}  {srtt_ms:>7.2} ms  {retransmissions:>6}  {timeouts:>8}",
            show_bytes(*bytes),
            show_rate(*bit_per_s)
        ));
        Ok(())
    }

    /// Reports the end. The text is the summary.
    pub fn end(&self, data: &impl Serialize, text: &str) -> io::Result<()> {
        if !self.json && self.channel == Channel::Stdout {
            return write!(console::stdout(), "{text}");
        }
        self.event_or_status("end", data, Some(text.trim_end_matches('\n')))
    }

    fn error(&self, error: &anyhow::Error) {
        if self.json {
            let data = json!({ "message": with_causes(&**error), "exit_code": failure::exit_code(error) });
            // If stdout is closed, the error cannot be reported there.
            let _ = self.event("error", &data);
        }
    }
}
