//! The log of a server: an event when a connection opens and closes, and totals at regular intervals.

use std::fmt::{self, Display};
use std::io;
use std::net::SocketAddr;

use airtcp::host::Host;
use airtcp::tcp::Connection;
use airtcp_command::console;
use airtcp_command::counters::{Arrivals, Device, Handshake, Retransmissions, Timeouts};
use airtcp_command::decisions::DecisionLog;
use airtcp_command::failure;
use airtcp_command::reporter::Reporter;
use airtcp_command::unanswered::UnansweredReports;
use airtcp_numbers::units::{show_bytes, show_rate};
use airtcp_tun::Driver;
use airwire::time::{Duration, Instant};
use serde::Serialize;
use serde_json::json;

use crate::admission::AdmissionCounters;

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SessionEnding {
    /// Both streams ended normally.
    Done,
    /// No server accepted the connection.
    Refused,
    /// The client on the radio side reset the connection, or stopped responding.
    RadioFailed,
    TargetFailed,
    /// No data moved for too long.
    Idle,
    /// The connection was idle, and was reset to make room for another one.
    GaveWay,
    /// The connection was still open when the server stopped.
    Stopped,
}

impl Display for SessionEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::RadioFailed => "radio side failed",
            Self::TargetFailed => "server failed",
            Self::Idle => "idle",
            Self::GaveWay => "gave way",
            Self::Stopped => "stopped",
        })
    }
}

/// Totals over all connections.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    connections: u64,
    most_at_once: usize,
    done: u64,
    refused: u64,
    radio_failed: u64,
    target_failed: u64,
    idle: u64,
    gave_way: u64,
    stopped: u64,
    down_bytes: u64,
    up_bytes: u64,
    retransmissions: u64,
    timeouts: u64,
}

impl Totals {
    fn counter(&mut self, outcome: SessionEnding) -> &mut u64 {
        match outcome {
            SessionEnding::Done => &mut self.done,
            SessionEnding::Refused => &mut self.refused,
            SessionEnding::RadioFailed => &mut self.radio_failed,
            SessionEnding::TargetFailed => &mut self.target_failed,
            SessionEnding::Idle => &mut self.idle,
            SessionEnding::GaveWay => &mut self.gave_way,
            SessionEnding::Stopped => &mut self.stopped,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Closed<'a> {
    pub(crate) connection: u64,
    pub(crate) outcome: SessionEnding,
    /// Details in addition to the outcome.
    pub(crate) reason: Option<&'a str>,
    pub(crate) radio: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) target: Option<SocketAddr>,
    /// Bytes that the client acknowledged.
    down_bytes: u64,
    /// Bytes that the server accepted.
    up_bytes: u64,
    /// Time from accepting the connection to its last byte.
    seconds: f64,
    down_bit_per_s: f64,
    up_bit_per_s: f64,
    srtt_ms: f64,
    handshake: Handshake,
    retransmissions: Retransmissions,
    timeouts: Timeouts,
    arrivals: Arrivals,
    /// A sentence for each part of the recipe whose information did not arrive.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notices: &'a [String],
}

/// Memory that the data of all connections uses, and data that was refused for lack of memory.
#[derive(Serialize)]
struct Memory {
    used: usize,
    out_of_order: usize,
    most: usize,
    /// Bytes of out-of-order data that were dropped.
    pruned_bytes: u64,
    /// Segments and SYNs that were refused for lack of memory.
    refused_segments: u64,
    refused_connections: u64,
}

impl Memory {
    fn of(host: &Host) -> Self {
        let memory = host.memory();
        Self {
            used: memory.used,
            out_of_order: memory.out_of_order,
            most: memory.peak,
            pruned_bytes: memory.pruned,
            refused_segments: memory.refused_segments,
            refused_connections: memory.refused_connections,
        }
    }
}

/// Formats a line if memory was short, and nothing otherwise.
impl Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, pruned_bytes, refused_segments, refused_connections, .. } = self;
        if pruned_bytes + refused_segments + refused_connections == 0 {
            return Ok(());
        }
        writeln!(
            f,
            "memory        at most {} in use; {} of out-of-order data dropped, {refused_segments} segments and \
             {refused_connections} connections refused",
            show_bytes(*most as u64),
            show_bytes(*pruned_bytes)
        )
    }
}

/// The data of a [`Closed`] event that the session provides.
pub(crate) struct SessionSummary<'a> {
    pub(crate) connection: u64,
    pub(crate) outcome: SessionEnding,
    pub(crate) reason: Option<&'a str>,
    pub(crate) target: Option<SocketAddr>,
    pub(crate) up_bytes: u64,
    pub(crate) lasted: Duration,
    pub(crate) notices: &'a [String],
}

impl<'a> Closed<'a> {
    fn new(summary: &SessionSummary<'a>, connection: &Connection) -> Self {
        let (down_bytes, seconds) = (connection.statistics().bytes_acked, summary.lasted.as_secs_f64());
        let rate = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Self {
            connection: summary.connection,
            outcome: summary.outcome,
            reason: summary.reason,
            radio: connection.remote(),
            local: connection.local(),
            target: summary.target,
            down_bytes,
            up_bytes: summary.up_bytes,
            seconds,
            down_bit_per_s: rate(down_bytes),
            up_bit_per_s: rate(summary.up_bytes),
            srtt_ms: connection.info().rtt.as_secs_f64() * 1e3,
            handshake: Handshake::of(connection),
            retransmissions: Retransmissions::of(connection),
            timeouts: Timeouts::of(connection),
            arrivals: Arrivals::of(connection),
            notices: summary.notices,
        }
    }

    fn text(&self) -> String {
        let target = self.target.map_or_else(|| "no server".to_owned(), |target| target.to_string());
        let reason = self.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let notices: String = self.notices.iter().map(|notice| format!("; {notice}")).collect();
        format!(
            "#{} {} -> {target}: {}{reason}, {} down, {} up in {:.3} s, {}; {} segments retransmitted, {} \
             timeouts{notices}",
            self.connection,
            self.radio,
            self.outcome,
            show_bytes(self.down_bytes),
            show_bytes(self.up_bytes),
            self.seconds,
            show_rate(self.down_bit_per_s.max(self.up_bit_per_s)),
            self.retransmissions.segments,
            self.timeouts.timeouts
        )
    }
}

pub(crate) struct Log {
    reporter: Reporter,
    decisions: Option<DecisionLog>,
    every: Duration,
    /// Begin and end of the current interval, and the byte totals at its begin.
    from: Instant,
    to: Instant,
    before: (u64, u64),
    totals: Totals,
}

impl Log {
    pub(crate) fn new(reporter: Reporter, decisions: Option<DecisionLog>, every: Duration) -> Self {
        let from = reporter.now();
        let to = from + every;
        Self { reporter, decisions, every, from, to, before: (0, 0), totals: Totals::default() }
    }

    pub(crate) fn logs_decisions(&self) -> bool {
        self.decisions.is_some()
    }

    pub(crate) fn start(&self, data: &impl Serialize, text: &str) -> io::Result<()> {
        self.reporter.listening(data, text)
    }

    /// Logs the decisions of the connection's recovery since the last call.
    pub(crate) fn write_decisions(&mut self, number: u64, connection: &mut Connection) -> io::Result<()> {
        match &mut self.decisions {
            Some(log) => log.write(Some(number), &connection.recovery_mut().take_trace()),
            None => Ok(()),
        }
    }

    /// Reports that the client does not answer, if that is the case.
    pub(crate) fn check_silence(
        &self,
        now: Instant,
        number: u64,
        unanswered_reports: &mut UnansweredReports,
        connection: &Connection,
    ) -> io::Result<()> {
        unanswered_reports.report(now, Some(number), connection, &self.reporter)
    }

    /// Adds bytes that were relayed.
    pub(crate) fn count_bytes(&mut self, down: u64, up: u64) {
        self.totals.down_bytes += down;
        self.totals.up_bytes += up;
    }

    pub(crate) fn count_connection(&mut self, open: usize) {
        self.totals.connections += 1;
        self.totals.most_at_once = self.totals.most_at_once.max(open);
    }

    pub(crate) fn opened(&self, number: u64, connection: &Connection, target: SocketAddr) -> io::Result<()> {
        let (radio, local) = (connection.remote(), connection.local());
        let data = json!({ "connection": number, "radio": radio, "local": local, "target": target });
        self.reporter.progress("opened", &data, &format!("#{number} {radio} -> {target}"))
    }

    pub(crate) fn closed(
        &mut self,
        summary: &SessionSummary<'_>,
        connection: &mut Connection,
    ) -> io::Result<()> {
        self.write_decisions(summary.connection, connection)?;
        let closed = Closed::new(summary, connection);
        *self.totals.counter(summary.outcome) += 1;
        self.totals.retransmissions += closed.retransmissions.segments;
        self.totals.timeouts += closed.timeouts.timeouts;
        self.reporter.happened("closed", &closed, &closed.text())
    }

    pub(crate) fn stopping(&self, open: usize, grace: Duration) -> io::Result<()> {
        let data = json!({ "open": open, "grace_seconds": grace.as_secs_f64() });
        self.reporter.progress(
            "stopping",
            &data,
            &format!("stopping: {open} open connections have {grace} to end"),
        )
    }

    pub(crate) fn next_deadline(&self) -> Instant {
        self.to
    }

    /// Reports the current interval if it has ended.
    pub(crate) fn run(&mut self, now: Instant, open: usize, host: &Host) -> io::Result<()> {
        if now < self.to {
            return Ok(());
        }
        let (down, up) = (self.totals.down_bytes - self.before.0, self.totals.up_bytes - self.before.1);
        let seconds = (now - self.from).as_secs_f64();
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        let Totals { connections, .. } = self.totals;
        let data = json!({
            "from": self.from.as_secs_f64(),
            "to": now.as_secs_f64(),
            "open": open,
            "connections": connections,
            "down_bytes": down,
            "up_bytes": up,
            "down_bit_per_s": rate(down),
            "up_bit_per_s": rate(up),
            "host_connections": host.connections(),
            "time_wait": host.in_time_wait(),
            "gate": AdmissionCounters::of(host),
            "memory": Memory::of(host),
        });
        let text = format!(
            "{open:>5} open of {connections:>6}, {:>13} down, {:>13} up",
            show_rate(rate(down)),
            show_rate(rate(up))
        );
        self.reporter.progress("interval", &data, &text)?;
        self.before = (self.totals.down_bytes, self.totals.up_bytes);
        self.from = now;
        // After a late interval, skip the deadlines that have already passed.
        while self.to <= now {
            self.to += self.every;
        }
        Ok(())
    }

    /// Reports the totals, and the numbers of events, decisions and log lines that were dropped during the
    /// run.
    pub(crate) fn end(&mut self, driver: &Driver) -> anyhow::Result<()> {
        let written = self.decisions.as_mut().map_or(Ok(()), DecisionLog::flush);
        let decisions = self.decisions.as_ref().map_or(0, DecisionLog::dropped);
        let (events, log) = console::dropped_lines();
        let (counters, gate) = (driver.host.counters(), AdmissionCounters::of(&driver.host));
        let data = json!({
            "totals": self.totals,
            "host_connections": driver.host.connections(),
            "time_wait": driver.host.in_time_wait(),
            "syns_dropped": counters.syns_dropped,
            "resets_sent": counters.resets_sent,
            "gate": gate,
            "memory": Memory::of(&driver.host),
            "device": Device::of(driver)?,
            "left_out": { "events": events, "decisions": decisions, "log": log },
        });
        let Totals { connections, done, down_bytes, up_bytes, retransmissions, timeouts, .. } = &self.totals;
        let text = format!(
            "served        {connections} connections, {done} of them complete: {} down, {} up\n\
             retransmitted {retransmissions} segments, {timeouts} timeouts\n{}{}",
            show_bytes(*down_bytes),
            show_bytes(*up_bytes),
            gate.text(),
            Memory::of(&driver.host)
        );
        let dropped = [(events, "events"), (decisions, "decisions"), (log, "log lines")];
        let dropped = dropped.map(|(count, what)| match count {
            0 => String::new(),
            count => {
                format!("dropped       {count} {what}: they could not be written fast enough\n")
            }
        });
        self.reporter.end(&data, &(text + &dropped.concat()))?;
        written?;
        if decisions > 0 {
            return Err(failure::run(format!(
                "{decisions} decisions are missing in the file of --decisions"
            )));
        }
        Ok(())
    }
}
