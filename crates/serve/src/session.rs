//! One connection of a client on the radio side, and the connection to the server that its data is relayed
//! to.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use airtcp::host::{ConnId, Host};
use airtcp::relay::{Endpoint, Leg, Relay, Turn};
use airtcp::tcp::State;
use airtcp_command::counters::notices;
use airtcp_command::unanswered::Silence;
use airtcp_tun::{Descriptors, Readiness};
use airwire::time::{Duration, Instant};

use crate::endpoints::{Connecting, Kernel, Radio};
use crate::log::{End, Log, SessionEnding};
use crate::proxy_protocol;

/// State that all sessions share.
pub(crate) struct Tools {
    pub(crate) descriptors: Descriptors,
    pub(crate) log: Log,
    /// Scratch buffer. Its length limits the bytes that one turn relays in each direction.
    pub(crate) chunk: Box<[u8]>,
    /// Whether servers receive the address of the client.
    pub(crate) proxy_protocol: bool,
    pub(crate) connect_timeout: Duration,
    pub(crate) backend_timeout: Duration,
    pub(crate) idle_timeout: Duration,
}

/// The environment of a turn.
pub(crate) struct Around<'a> {
    pub(crate) now: Instant,
    pub(crate) host: &'a mut Host,
    pub(crate) tools: &'a mut Tools,
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
    /// Bytes written to the server, and read from it.
    up: u64,
    down: u64,
    moved: Moved,
    silence: Silence,
    moved_at: Instant,
    /// Time at which the client last sent data, or the server last accepted some. `None` if the server has
    /// sent data since.
    unanswered: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Moved {
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
        kernel: Kernel,
        since: Instant,
    },
    Carrying {
        kernel: Kernel,
        relay: Relay,
    },
    /// Nothing is left to relay. The client has not acknowledged everything yet, or the reset to it was not
    /// sent yet.
    Leaving {
        outcome: SessionEnding,
        reason: Option<String>,
    },
}

impl Session {
    pub(crate) fn open(
        number: u64,
        conn: ConnId,
        candidates: VecDeque<SocketAddr>,
        around: &mut Around<'_>,
    ) -> Self {
        let now = around.now;
        let mut session = Self {
            number,
            conn,
            phase: Phase::Leaving { outcome: SessionEnding::Refused, reason: None },
            candidates,
            target: None,
            opened: now,
            up: 0,
            down: 0,
            moved: Moved::default(),
            silence: Silence::default(),
            moved_at: now,
            unanswered: None,
        };
        session.try_next_target(around, None);
        session
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn conn(&self) -> ConnId {
        self.conn
    }

    pub(crate) fn moved_at(&self) -> Instant {
        self.moved_at
    }

    pub(crate) fn ready(&mut self, readiness: Readiness) {
        if let Phase::Connecting { kernel, .. } | Phase::Carrying { kernel, .. } = &mut self.phase {
            kernel.ready(readiness);
        }
    }

    pub(crate) fn turn(&mut self, around: &mut Around<'_>) -> io::Result<Next> {
        let Some(connection) = around.host.connection_mut(self.conn) else { return Ok(Next::Over) };
        around.tools.log.decided(self.number, connection)?;
        around.tools.log.heard(around.now, self.number, &mut self.silence, connection)?;
        let (state, ended) = (connection.state(), connection.ended().map(|why| why.to_string()));
        self.note_progress(around);
        match &mut self.phase {
            // The server may have accepted the connection already, so it must be reset.
            Phase::Connecting { .. } if ended.is_some() => {
                self.cut(around, SessionEnding::RadioFailed, ended);
                Ok(Next::Again)
            }
            Phase::Connecting { kernel, .. } => match kernel.connecting() {
                Connecting::Pending => Ok(Next::Wait),
                Connecting::Failed(error) => {
                    self.try_next_target(around, Some(error.to_string()));
                    Ok(Next::Again)
                }
                Connecting::Done => self.carry(around),
            },
            Phase::Carrying { kernel, relay } => {
                let Around { now, host, tools } = around;
                let mut radio = Radio::new(*now, host, self.conn);
                let turn = relay.turn(&mut radio, kernel, &mut tools.chunk);
                (self.up, self.down) = (relay.carried_up(), relay.carried_down());
                let answered = relay.target_has_answered();
                self.note_progress(around);
                if answered {
                    self.unanswered = None;
                }
                Ok(match turn {
                    Turn::Again => Next::Again,
                    Turn::Waiting => Next::Wait,
                    Turn::Finished => self.leave(SessionEnding::Done, None),
                    Turn::Failed(Leg::Radio) => self.leave(SessionEnding::RadioFailed, ended),
                    Turn::Failed(Leg::Target) => self.leave(SessionEnding::TargetFailed, None),
                })
            }
            Phase::Leaving { .. } if !matches!(state, State::Closed | State::TimeWait) => Ok(Next::Wait),
            Phase::Leaving { outcome, reason } => {
                if *outcome == SessionEnding::Done && ended.is_some() {
                    (*outcome, *reason) = (SessionEnding::RadioFailed, ended);
                }
                Ok(Next::Over)
            }
        }
    }

    /// Returns the time at which [`Session::give_up`] is due if nothing happens before.
    pub(crate) fn deadline(&self, tools: &Tools) -> Instant {
        match self.phase {
            Phase::Connecting { since, .. } => since + tools.connect_timeout,
            Phase::Leaving { .. } => self.moved_at + tools.idle_timeout,
            Phase::Carrying { .. } => {
                let idle = self.moved_at + tools.idle_timeout;
                self.unanswered.map_or(idle, |since| idle.min(since + tools.backend_timeout))
            }
        }
    }

    /// Handles an expired deadline: tries the next server, or resets the connection.
    pub(crate) fn give_up(&mut self, around: &mut Around<'_>) {
        match &self.phase {
            Phase::Connecting { .. } => {
                let why = format!("no answer in {}", around.tools.connect_timeout);
                self.try_next_target(around, Some(why));
            }
            Phase::Carrying { .. } if self.hangs(around) => {
                let why = format!("no answer for {}", around.tools.backend_timeout);
                self.cut(around, SessionEnding::TargetFailed, Some(why));
            }
            Phase::Carrying { .. } | Phase::Leaving { .. } => {
                let why = format!("idle for {}", around.tools.idle_timeout);
                self.cut(around, SessionEnding::Idle, Some(why));
            }
        }
    }

    fn hangs(&self, around: &Around<'_>) -> bool {
        self.unanswered.is_some_and(|since| since + around.tools.backend_timeout <= around.now)
    }

    /// Resets the connection to make room for others, because it has been idle for longest.
    pub(crate) fn give_way(&mut self, around: &mut Around<'_>) {
        let why = format!("idle for {}, and other connections were waiting", around.now - self.moved_at);
        self.cut(around, SessionEnding::GaveWay, Some(why));
    }

    /// Resets both sides.
    pub(crate) fn cut(&mut self, around: &mut Around<'_>, outcome: SessionEnding, reason: Option<String>) {
        if let Phase::Connecting { kernel, .. } | Phase::Carrying { kernel, .. } = &mut self.phase {
            kernel.reset();
        }
        around.host.abort(self.conn);
        self.phase = Phase::Leaving { outcome, reason };
        // Restarts the idle timeout for the `Leaving` phase.
        self.moved_at = around.now;
    }

    /// Logs the end of the session, and closes the connection.
    pub(crate) fn close(self, around: &mut Around<'_>) -> io::Result<()> {
        let (outcome, reason) = match &self.phase {
            Phase::Leaving { outcome, reason } => (*outcome, reason.as_deref()),
            Phase::Connecting { .. } | Phase::Carrying { .. } => (SessionEnding::Stopped, None),
        };
        let connection = around.host.connection(self.conn);
        let notices = connection.map(|connection| notices(around.host.recipe(), connection));
        let end = End {
            connection: self.number,
            outcome,
            reason,
            target: self.target,
            up_bytes: self.up,
            lasted: self.moved_at - self.opened,
            notices: notices.as_deref().unwrap_or_default(),
        };
        let said = match around.host.connection_mut(self.conn) {
            Some(connection) => around.tools.log.closed(&end, connection),
            None => Ok(()),
        };
        around.host.close(around.now, self.conn);
        said
    }

    /// Connects to the next server. `why` is the error of the previous one.
    fn try_next_target(&mut self, around: &mut Around<'_>, mut why: Option<String>) {
        while let Some(target) = self.candidates.pop_front() {
            self.target = Some(target);
            match Kernel::connect(target, &around.tools.descriptors, self.number) {
                Ok(kernel) => {
                    self.phase = Phase::Connecting { kernel, since: around.now };
                    return;
                }
                Err(error) => why = Some(error.to_string()),
            }
        }
        self.cut(around, SessionEnding::Refused, why);
    }

    fn carry(&mut self, around: &mut Around<'_>) -> io::Result<Next> {
        let between = Phase::Leaving { outcome: SessionEnding::Stopped, reason: None };
        if let Phase::Connecting { mut kernel, .. } = std::mem::replace(&mut self.phase, between) {
            if around.tools.proxy_protocol
                && let Some(connection) = around.host.connection(self.conn)
                && let Err(error) =
                    kernel.begin(&proxy_protocol::header(connection.remote(), connection.local()))
            {
                self.try_next_target(around, Some(error.to_string()));
                return Ok(Next::Again);
            }
            self.phase = Phase::Carrying { kernel, relay: Relay::default() };
        }
        // The time spent waiting for the server does not count as idle.
        self.moved_at = around.now;
        self.unanswered = self.unanswered.map(|_| around.now);
        if let (Some(connection), Some(target)) = (around.host.connection(self.conn), self.target) {
            around.tools.log.opened(self.number, connection, target)?;
        }
        Ok(Next::Again)
    }

    /// Closes the connection to the server.
    fn leave(&mut self, outcome: SessionEnding, reason: Option<String>) -> Next {
        self.phase = Phase::Leaving { outcome, reason };
        Next::Again
    }

    fn note_progress(&mut self, around: &mut Around<'_>) {
        let Some(connection) = around.host.connection(self.conn) else { return };
        let statistics = connection.statistics();
        let (acked, received) = (statistics.bytes_acked, statistics.bytes_received);
        let moved = Moved { acked, received, up: self.up, down: self.down };
        if moved.down != self.moved.down {
            self.unanswered = None;
        } else if (moved.received, moved.up) != (self.moved.received, self.moved.up) {
            self.unanswered = Some(around.now);
        }
        if moved != self.moved {
            around.tools.log.moved(moved.acked - self.moved.acked, moved.up - self.moved.up);
            (self.moved, self.moved_at) = (moved, around.now);
        }
    }
}
