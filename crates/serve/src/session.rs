//! One connection of a client on the radio side, and the connection to the server that its data is relayed
//! to.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use airtcp::host::{ConnId, Host};
use airtcp::relay::{Endpoint, Leg, Relay, RelayStatus};
use airtcp::tcp::State;
use airtcp_command::counters::notices;
use airtcp_command::unanswered::UnansweredReports;
use airtcp_tun::{Descriptors, Readiness};
use airwire::time::{Duration, Instant};

use crate::endpoints::{Connecting, KernelEndpoint, RadioEndpoint};
use crate::log::{Log, SessionEnding, SessionSummary};
use crate::proxy_protocol;

/// State that all sessions share.
pub(crate) struct SharedState {
    pub(crate) descriptors: Descriptors,
    pub(crate) log: Log,
    /// Scratch buffer. Its length limits the bytes that one turn relays in each direction.
    pub(crate) chunk: Box<[u8]>,
    /// True if servers receive the address of the client.
    pub(crate) proxy_protocol: bool,
    pub(crate) connect_timeout: Duration,
    pub(crate) backend_timeout: Duration,
    pub(crate) idle_timeout: Duration,
}

/// The environment of a turn.
pub(crate) struct TurnContext<'a> {
    pub(crate) now: Instant,
    pub(crate) host: &'a mut Host,
    pub(crate) shared: &'a mut SharedState,
}

/// The next step after a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Run another turn after the other sessions had theirs.
    Again,
    /// Wait for an event.
    Wait,
    /// Remove the session: it is over.
    Over,
}

pub(crate) struct Session {
    number: u64,
    conn: ConnId,
    phase: Phase,
    /// Servers that have not been tried yet.
    candidates: VecDeque<SocketAddr>,
    target: Option<SocketAddr>,
    opened: Instant,
    /// Bytes written to the server, and bytes read from the server.
    up: u64,
    down: u64,
    counts: ByteCounts,
    unanswered_reports: UnansweredReports,
    last_activity: Instant,
    /// Time at which the client last sent data, or the server last accepted some. `None` if the server has
    /// sent data since.
    unanswered: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ByteCounts {
    /// Bytes that the radio side acknowledged, and bytes that it sent.
    acked: u64,
    received: u64,
    /// Bytes written to the server.
    up: u64,
    /// Bytes read from the server.
    down: u64,
}

enum Phase {
    Connecting {
        kernel: KernelEndpoint,
        since: Instant,
    },
    Relaying {
        kernel: KernelEndpoint,
        relay: Relay,
    },
    /// Nothing is left to relay. The client has not acknowledged everything yet, or the reset to the client
    /// was not sent yet.
    Closing {
        outcome: SessionEnding,
        reason: Option<String>,
    },
}

impl Session {
    pub(crate) fn open(
        number: u64,
        conn: ConnId,
        candidates: VecDeque<SocketAddr>,
        context: &mut TurnContext<'_>,
    ) -> Self {
        let now = context.now;
        let mut session = Self {
            number,
            conn,
            phase: Phase::Closing { outcome: SessionEnding::Refused, reason: None },
            candidates,
            target: None,
            opened: now,
            up: 0,
            down: 0,
            counts: ByteCounts::default(),
            unanswered_reports: UnansweredReports::default(),
            last_activity: now,
            unanswered: None,
        };
        session.try_next_target(context, None);
        session
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn conn(&self) -> ConnId {
        self.conn
    }

    pub(crate) fn last_activity(&self) -> Instant {
        self.last_activity
    }

    pub(crate) fn ready(&mut self, readiness: Readiness) {
        if let Phase::Connecting { kernel, .. } | Phase::Relaying { kernel, .. } = &mut self.phase {
            kernel.ready(readiness);
        }
    }

    pub(crate) fn turn(&mut self, context: &mut TurnContext<'_>) -> io::Result<Next> {
        let Some(connection) = context.host.connection_mut(self.conn) else { return Ok(Next::Over) };
        context.shared.log.write_decisions(self.number, connection)?;
        context.shared.log.check_silence(
            context.now,
            self.number,
            &mut self.unanswered_reports,
            connection,
        )?;
        let (state, ended) = (connection.state(), connection.ended().map(|why| why.to_string()));
        self.record_progress(context);
        match &mut self.phase {
            // The server may have accepted the connection already, so it must be reset.
            Phase::Connecting { .. } if ended.is_some() => {
                self.reset(context, SessionEnding::RadioFailed, ended);
                Ok(Next::Again)
            }
            Phase::Connecting { kernel, .. } => match kernel.connecting() {
                Connecting::Pending => Ok(Next::Wait),
                Connecting::Failed(error) => {
                    self.try_next_target(context, Some(error.to_string()));
                    Ok(Next::Again)
                }
                Connecting::Done => self.start_relay(context),
            },
            Phase::Relaying { kernel, relay } => {
                let TurnContext { now, host, shared } = context;
                let mut radio = RadioEndpoint::new(*now, host, self.conn);
                let turn = relay.forward(&mut radio, kernel, &mut shared.chunk);
                (self.up, self.down) = (relay.carried_up(), relay.carried_down());
                let answered = relay.target_has_answered();
                self.record_progress(context);
                if answered {
                    self.unanswered = None;
                }
                Ok(match turn {
                    RelayStatus::Again => Next::Again,
                    RelayStatus::Waiting => Next::Wait,
                    RelayStatus::Finished => self.start_closing(SessionEnding::Done, None),
                    RelayStatus::Failed(Leg::Radio) => self.start_closing(SessionEnding::RadioFailed, ended),
                    RelayStatus::Failed(Leg::Target) => self.start_closing(SessionEnding::TargetFailed, None),
                })
            }
            Phase::Closing { .. } if !matches!(state, State::Closed | State::TimeWait) => Ok(Next::Wait),
            Phase::Closing { outcome, reason } => {
                if *outcome == SessionEnding::Done && ended.is_some() {
                    (*outcome, *reason) = (SessionEnding::RadioFailed, ended);
                }
                Ok(Next::Over)
            }
        }
    }

    /// Returns the time at which [`Session::expire`] is due if nothing happens before.
    pub(crate) fn deadline(&self, shared: &SharedState) -> Instant {
        match self.phase {
            Phase::Connecting { since, .. } => since + shared.connect_timeout,
            Phase::Closing { .. } => self.last_activity + shared.idle_timeout,
            Phase::Relaying { .. } => {
                let idle = self.last_activity + shared.idle_timeout;
                self.unanswered.map_or(idle, |since| idle.min(since + shared.backend_timeout))
            }
        }
    }

    /// Handles an expired deadline: tries the next server, or resets the connection.
    pub(crate) fn expire(&mut self, context: &mut TurnContext<'_>) {
        match &self.phase {
            Phase::Connecting { .. } => {
                let why = format!("no answer in {}", context.shared.connect_timeout);
                self.try_next_target(context, Some(why));
            }
            Phase::Relaying { .. } if self.server_is_silent(context) => {
                let why = format!("no answer for {}", context.shared.backend_timeout);
                self.reset(context, SessionEnding::TargetFailed, Some(why));
            }
            Phase::Relaying { .. } | Phase::Closing { .. } => {
                let why = format!("idle for {}", context.shared.idle_timeout);
                self.reset(context, SessionEnding::Idle, Some(why));
            }
        }
    }

    fn server_is_silent(&self, context: &TurnContext<'_>) -> bool {
        self.unanswered.is_some_and(|since| since + context.shared.backend_timeout <= context.now)
    }

    /// Resets the connection, which has been idle for longest, to make room for others.
    pub(crate) fn reset_when_idle(&mut self, context: &mut TurnContext<'_>) {
        let why =
            format!("idle for {}, and other connections were waiting", context.now - self.last_activity);
        self.reset(context, SessionEnding::GaveWay, Some(why));
    }

    /// Resets both sides.
    pub(crate) fn reset(
        &mut self,
        context: &mut TurnContext<'_>,
        outcome: SessionEnding,
        reason: Option<String>,
    ) {
        if let Phase::Connecting { kernel, .. } | Phase::Relaying { kernel, .. } = &mut self.phase {
            kernel.reset();
        }
        context.host.abort(self.conn);
        self.phase = Phase::Closing { outcome, reason };
        // Restarts the idle timeout for the `Closing` phase.
        self.last_activity = context.now;
    }

    /// Logs the end of the session, and closes the connection.
    pub(crate) fn close(self, context: &mut TurnContext<'_>) -> io::Result<()> {
        let (outcome, reason) = match &self.phase {
            Phase::Closing { outcome, reason } => (*outcome, reason.as_deref()),
            Phase::Connecting { .. } | Phase::Relaying { .. } => (SessionEnding::Stopped, None),
        };
        let connection = context.host.connection(self.conn);
        let notices = connection.map(|connection| notices(context.host.recipe(), connection));
        let end = SessionSummary {
            connection: self.number,
            outcome,
            reason,
            target: self.target,
            up_bytes: self.up,
            lasted: self.last_activity - self.opened,
            notices: notices.as_deref().unwrap_or_default(),
        };
        let logged = match context.host.connection_mut(self.conn) {
            Some(connection) => context.shared.log.closed(&end, connection),
            None => Ok(()),
        };
        context.host.close(context.now, self.conn);
        logged
    }

    /// Connects to the next server. `why` is the error of the previous one.
    fn try_next_target(&mut self, context: &mut TurnContext<'_>, mut why: Option<String>) {
        while let Some(target) = self.candidates.pop_front() {
            self.target = Some(target);
            match KernelEndpoint::connect(target, &context.shared.descriptors, self.number) {
                Ok(kernel) => {
                    self.phase = Phase::Connecting { kernel, since: context.now };
                    return;
                }
                Err(error) => why = Some(error.to_string()),
            }
        }
        self.reset(context, SessionEnding::Refused, why);
    }

    fn start_relay(&mut self, context: &mut TurnContext<'_>) -> io::Result<Next> {
        let placeholder = Phase::Closing { outcome: SessionEnding::Stopped, reason: None };
        if let Phase::Connecting { mut kernel, .. } = std::mem::replace(&mut self.phase, placeholder) {
            if context.shared.proxy_protocol
                && let Some(connection) = context.host.connection(self.conn)
                && let Err(error) =
                    kernel.begin(&proxy_protocol::header(connection.remote(), connection.local()))
            {
                self.try_next_target(context, Some(error.to_string()));
                return Ok(Next::Again);
            }
            self.phase = Phase::Relaying { kernel, relay: Relay::default() };
        }
        // The time spent waiting for the server does not count as idle.
        self.last_activity = context.now;
        self.unanswered = self.unanswered.map(|_| context.now);
        if let (Some(connection), Some(target)) = (context.host.connection(self.conn), self.target) {
            context.shared.log.opened(self.number, connection, target)?;
        }
        Ok(Next::Again)
    }

    /// Closes the connection to the server.
    fn start_closing(&mut self, outcome: SessionEnding, reason: Option<String>) -> Next {
        self.phase = Phase::Closing { outcome, reason };
        Next::Again
    }

    fn record_progress(&mut self, context: &mut TurnContext<'_>) {
        let Some(connection) = context.host.connection(self.conn) else { return };
        let statistics = connection.statistics();
        let (acked, received) = (statistics.bytes_acked, statistics.bytes_received);
        let counts = ByteCounts { acked, received, up: self.up, down: self.down };
        if counts.down != self.counts.down {
            self.unanswered = None;
        } else if (counts.received, counts.up) != (self.counts.received, self.counts.up) {
            self.unanswered = Some(context.now);
        }
        if counts != self.counts {
            context.shared.log.count_bytes(counts.acked - self.counts.acked, counts.up - self.counts.up);
            (self.counts, self.last_activity) = (counts, context.now);
        }
    }
}
