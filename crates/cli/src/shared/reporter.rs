//! Reports the events of a run: text for users, or JSON lines for programs.

use std::io::{self, IsTerminal, Write};
use std::time::SystemTime;

use airlink::reactor::Clock;
use airtcp_numbers::units::{self, show_bytes, show_rate};
use airwire::time::{Duration, Instant};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{failure, say};

pub(crate) const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, Debug, Args)]
pub(crate) struct Reporting {
    /// Print JSON instead of text: one line per event (start, interval, end, error)
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Time between progress lines [default: 1s if stderr is a terminal, or with --json]
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) interval: Option<Duration>,
    #[arg(from_global)]
    pub(crate) quiet: bool,
}

impl Reporting {
    pub(crate) fn every(&self) -> Duration {
        self.interval.unwrap_or(Duration::from_secs(1))
    }

    /// Calls `run` with a reporter. With `--json`, reports an error as an event too, because `main` prints it
    /// to stderr only.
    pub(crate) fn reported(
        &self,
        channel: Channel,
        clock: Clock,
        run: impl FnOnce(Reporter) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let result = run(Reporter::new(self, channel, clock));
        if let Err(error) = &result {
            Reporter::new(self, channel, clock).error(error);
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
pub(crate) enum Channel {
    Stdout,
    /// Used if stdout carries the received data.
    Stderr,
}

#[derive(Serialize)]
pub(crate) struct Interval {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) bytes: u64,
    pub(crate) bit_per_s: f64,
    pub(crate) total_bytes: u64,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: Option<u32>,
    pub(crate) in_flight: u32,
    pub(crate) srtt_ms: f64,
    pub(crate) rto_ms: f64,
    pub(crate) retransmissions: u32,
    pub(crate) timeouts: u64,
}

pub(crate) struct Reporter {
    json: bool,
    quiet: bool,
    progress: bool,
    channel: Channel,
    clock: Clock,
    intervals: u64,
}

impl Reporter {
    fn new(options: &Reporting, channel: Channel, clock: Clock) -> Self {
        let wanted = options.json || options.interval.is_some() || io::stderr().is_terminal();
        let (json, quiet) = (options.json, options.quiet);
        Self { json, quiet, progress: wanted && !quiet, channel, clock, intervals: 0 }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the wall-clock time of `Instant::ZERO`.
    pub(crate) fn wall_zero(&self) -> SystemTime {
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
        writeln!(say::out(), "{line}")
    }

    pub(crate) fn start(&self, data: &impl Serialize, text: &str) -> io::Result<()> {
        if self.json {
            self.event("start", data)
        } else {
            if self.progress {
                say::aside(text);
            }
            Ok(())
        }
    }

    /// Reports the start of a host that listens. Unlike [`start`](Self::start), it writes the text even if
    /// progress is not shown, because users wait for this line before they connect.
    pub(crate) fn listening(&self, data: &impl Serialize, text: &str) -> io::Result<()> {
        match (self.json, self.quiet) {
            (true, _) => self.event("start", data),
            (false, true) => Ok(()),
            (false, false) => {
                say::aside(text);
                Ok(())
            }
        }
    }

    /// Reports an event of one of several connections. The text goes to stdout.
    pub(crate) fn happened(&self, name: &str, data: &impl Serialize, text: &str) -> io::Result<()> {
        if self.json { self.event(name, data) } else { writeln!(say::out(), "{text}") }
    }

    /// Reports progress. The text goes to stderr.
    pub(crate) fn progress(&self, name: &str, data: &impl Serialize, text: &str) -> io::Result<()> {
        match (self.progress, self.json) {
            (false, _) => Ok(()),
            (true, true) => self.event(name, data),
            (true, false) => {
                say::aside(text);
                Ok(())
            }
        }
    }

    pub(crate) fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        if !self.progress {
            return Ok(());
        }
        if self.json {
            return self.event("interval", interval);
        }
        if self.intervals.is_multiple_of(20) {
            say::aside(format_args!(
                "{:>9}  {:>10}  {:>13}  {:>14}  {:>10}  {:>6}  {:>8}",
                "time", "bytes", "rate", "cwnd, segments", "srtt", "retr.", "timeouts"
            ));
        }
        self.intervals += 1;
        let Interval { to, bytes, bit_per_s, cwnd, srtt_ms, retransmissions, timeouts, .. } = interval;
        say::aside(format_args!(
            "{to:>7.1} s  {:>10}  {:>13}  {cwnd:>14}  {srtt_ms:>7.2} ms  {retransmissions:>6}  {timeouts:>8}",
            show_bytes(*bytes),
            show_rate(*bit_per_s)
        ));
        Ok(())
    }

    pub(crate) fn end(&self, data: &impl Serialize, text: &str) -> io::Result<()> {
        match (self.json, self.channel) {
            (true, _) => self.event("end", data),
            (false, Channel::Stdout) => write!(say::out(), "{text}"),
            (false, Channel::Stderr) => {
                say::aside(text.trim_end_matches('\n'));
                Ok(())
            }
        }
    }

    fn error(&self, error: &anyhow::Error) {
        if self.json {
            let data = json!({ "message": failure::told(error), "exit_code": failure::exit_code(error) });
            // If stdout is closed, the error cannot be reported there.
            let _ = self.event("error", &data);
        }
    }
}
