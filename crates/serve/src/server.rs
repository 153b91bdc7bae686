//! The server's sessions, all in the driver's thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::ControlFlow;

use airtcp::host::{ConnId, Host, ListenId};
use airtcp_tun::{Application, Descriptors, Driver, Readiness};
use airwire::time::{Duration, Instant};

use crate::idle::IdleSelector;
use crate::log::{Log, SessionEnding};
use crate::session::{Next, Session, SharedState, TurnContext};
use crate::targets::Targets;

pub(crate) struct Settings {
    /// True if servers receive the address of the client.
    pub(crate) proxy_protocol: bool,
    pub(crate) connections: usize,
    pub(crate) connect: Duration,
    pub(crate) backend: Duration,
    pub(crate) idle: Duration,
    /// Idle time after which a session can be reset to make room.
    pub(crate) min_idle: Duration,
    pub(crate) grace: Duration,
}

pub(crate) struct Server {
    listeners: Vec<ListenId>,
    targets: Targets,
    max_connections: usize,
    idle_sessions: IdleSelector,
    /// Selects among the sessions that hold data.
    idle_holders: IdleSelector,
    /// Number of connections that had been refused when memory was last available.
    refused_before: u64,
    /// The session that was last reset to make room, and the time at which another one can be.
    resetting: Option<u64>,
    next_reset: Option<Instant>,
    grace: Duration,
    service: Service,
    /// Sessions by their number in the log.
    sessions: BTreeMap<u64, Entry>,
    numbers: BTreeMap<ConnId, u64>,
    next_number: u64,
    /// Sessions that may have work to do.
    queue: VecDeque<u64>,
    /// One entry per session. It may be too early: then the session's actual deadline is inserted.
    deadlines: BTreeSet<(Instant, u64)>,
    shared: SharedState,
    error: Option<io::Error>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    Open,
    /// No more connections are accepted. Sessions that are still open at `until` are reset.
    Stopping {
        until: Instant,
    },
}

/// A resource that is exhausted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shortage {
    Connections,
    Memory,
}

/// Returns true if resetting the connection would free memory.
fn holds_data(host: &Host, conn: ConnId) -> bool {
    host.connection(conn).is_some_and(|connection| connection.unacknowledged() + connection.readable() > 0)
}

struct Entry {
    session: Session,
    /// True if the session is in the server's queue.
    queued: bool,
    /// The entry in `deadlines` for this session.
    due: Instant,
}

/// Bytes that one turn relays in each direction, and therefore the maximum that waits between the two sides.
const CHUNK: usize = 64 << 10;
/// Maximum number of turns before the driver serves the device again.
const MAX_TURNS: usize = 16;

impl Server {
    pub(crate) fn new(
        listeners: Vec<ListenId>,
        targets: Targets,
        settings: Settings,
        descriptors: Descriptors,
        log: Log,
    ) -> Self {
        Self {
            listeners,
            targets,
            max_connections: settings.connections,
            idle_sessions: IdleSelector::new(settings.min_idle),
            idle_holders: IdleSelector::new(settings.min_idle),
            refused_before: 0,
            resetting: None,
            next_reset: None,
            grace: settings.grace,
            service: Service::Open,
            sessions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_number: 1,
            queue: VecDeque::new(),
            deadlines: BTreeSet::new(),
            shared: SharedState {
                descriptors,
                log,
                chunk: vec![0; CHUNK].into(),
                proxy_protocol: settings.proxy_protocol,
                connect_timeout: settings.connect,
                backend_timeout: settings.backend,
                idle_timeout: settings.idle,
            },
            error: None,
        }
    }

    pub(crate) fn conclude(mut self, driver: &Driver) -> anyhow::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error.into());
        }
        self.shared.log.end(driver)
    }

    fn step(&mut self, now: Instant, host: &mut Host) -> io::Result<ControlFlow<()>> {
        while let Some(conn) = host.poll_changed() {
            if let Some(&number) = self.numbers.get(&conn) {
                self.enqueue(number);
            }
        }
        self.expire_deadlines(now, host);
        for _ in 0..self.queue.len().min(MAX_TURNS) {
            if let Some(number) = self.queue.pop_front() {
                self.turn(now, host, number)?;
            }
        }
        self.accept(now, host);
        self.make_room(now, host);
        self.shared.log.run(now, self.sessions.len(), host)?;
        match self.service {
            Service::Stopping { until } if until <= now || self.sessions.is_empty() => {
                self.reset_all(now, host)?;
                Ok(ControlFlow::Break(()))
            }
            Service::Stopping { .. } | Service::Open => Ok(ControlFlow::Continue(())),
        }
    }

    fn turn(&mut self, now: Instant, host: &mut Host, number: u64) -> io::Result<()> {
        let Some(entry) = self.sessions.get_mut(&number) else { return Ok(()) };
        entry.queued = false;
        let mut context = TurnContext { now, host, shared: &mut self.shared };
        match entry.session.turn(&mut context)? {
            Next::Again => self.enqueue(number),
            Next::Wait => {}
            Next::Over => return self.close(now, host, number),
        }
        self.update_deadline(number);
        Ok(())
    }

    /// Accepts connections up to the limit. Further ones wait in the backlog.
    fn accept(&mut self, now: Instant, host: &mut Host) {
        while self.sessions.len() < self.max_connections {
            let Some(conn) = self.listeners.iter().find_map(|listener| host.accept(*listener)) else {
                return;
            };
            let number = self.next_number;
            self.next_number += 1;
            self.shared.log.count_connection(self.sessions.len() + 1);
            let candidates = self.targets.candidates();
            let mut context = TurnContext { now, host, shared: &mut self.shared };
            let session = Session::open(number, conn, candidates, &mut context);
            let due = session.deadline(&self.shared);
            self.deadlines.insert((due, number));
            self.numbers.insert(conn, number);
            self.sessions.insert(number, Entry { session, queued: false, due });
            // The client may have sent data already.
            self.enqueue(number);
        }
    }

    /// Resets the session that has been idle for longest if a new connection waits for a place or for memory.
    fn make_room(&mut self, now: Instant, host: &mut Host) {
        self.next_reset = None;
        // One at a time: a session that was reset is removed after its reset was sent.
        let is_resetting = self.resetting.is_some_and(|number| self.sessions.contains_key(&number));
        let (Some(shortage), false) = (self.shortage(host), is_resetting) else { return };
        let idle_sessions = match shortage {
            Shortage::Connections => &mut self.idle_sessions,
            Shortage::Memory => &mut self.idle_holders,
        };
        let frees_resource =
            |session: &&Session| shortage == Shortage::Connections || holds_data(host, session.conn());
        let sessions = self.sessions.values().map(|entry| &entry.session).filter(frees_resource);
        self.resetting =
            idle_sessions.idlest(now, sessions.map(|session| (session.number(), session.last_activity())));
        let Some(number) = self.resetting else {
            self.next_reset = Some(idle_sessions.next_deadline());
            return;
        };
        if let Some(entry) = self.sessions.get_mut(&number) {
            entry.session.reset_when_idle(&mut TurnContext { now, host, shared: &mut self.shared });
        }
        self.enqueue(number);
    }

    /// Returns the resource whose shortage delays new connections.
    fn shortage(&mut self, host: &Host) -> Option<Shortage> {
        let waits = || self.listeners.iter().any(|listener| host.waiting(*listener) > 0);
        if self.sessions.len() >= self.max_connections && waits() {
            return Some(Shortage::Connections);
        }
        let memory = host.memory();
        if !memory.full {
            self.refused_before = memory.refused_connections;
        }
        (memory.refused_connections > self.refused_before).then_some(Shortage::Memory)
    }

    fn expire_deadlines(&mut self, now: Instant, host: &mut Host) {
        while let Some((at, number)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, number));
            let Some(entry) = self.sessions.get_mut(&number) else { continue };
            if entry.session.deadline(&self.shared) <= now {
                entry.session.expire(&mut TurnContext { now, host, shared: &mut self.shared });
            }
            entry.due = entry.session.deadline(&self.shared);
            self.deadlines.insert((entry.due, number));
            self.enqueue(number);
        }
    }

    fn update_deadline(&mut self, number: u64) {
        let Some(entry) = self.sessions.get_mut(&number) else { return };
        let due = entry.session.deadline(&self.shared);
        if due < entry.due {
            self.deadlines.remove(&(entry.due, number));
            self.deadlines.insert((due, number));
            entry.due = due;
        }
    }

    fn enqueue(&mut self, number: u64) {
        if let Some(entry) = self.sessions.get_mut(&number)
            && !std::mem::replace(&mut entry.queued, true)
        {
            self.queue.push_back(number);
        }
    }

    fn close(&mut self, now: Instant, host: &mut Host, number: u64) -> io::Result<()> {
        let Some(entry) = self.sessions.remove(&number) else { return Ok(()) };
        self.numbers.remove(&entry.session.conn());
        self.deadlines.remove(&(entry.due, number));
        entry.session.close(&mut TurnContext { now, host, shared: &mut self.shared })
    }

    /// Resets all sessions. The resets are sent when the driver finishes.
    fn reset_all(&mut self, now: Instant, host: &mut Host) -> io::Result<()> {
        for mut entry in std::mem::take(&mut self.sessions).into_values() {
            let mut context = TurnContext { now, host, shared: &mut self.shared };
            entry.session.reset(&mut context, SessionEnding::Stopped, None);
            entry.session.close(&mut context)?;
        }
        Ok(())
    }

    fn start_stopping(&mut self, now: Instant, host: &mut Host) -> io::Result<()> {
        self.listeners.drain(..).for_each(|listener| host.unlisten(listener));
        self.service = Service::Stopping { until: now + self.grace };
        self.shared.log.stopping(self.sessions.len(), self.grace)
    }

    fn or_break(&mut self, result: io::Result<ControlFlow<()>>) -> ControlFlow<()> {
        result.unwrap_or_else(|error| {
            self.error = Some(error);
            ControlFlow::Break(())
        })
    }
}

impl Application for Server {
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()> {
        let result = self.step(now, host);
        self.or_break(result)
    }

    fn next_deadline(&self) -> Option<Instant> {
        if !self.queue.is_empty() {
            return Some(Instant::ZERO);
        }
        let session = self.deadlines.first().map(|(at, _)| *at);
        let stop = match self.service {
            Service::Open => None,
            Service::Stopping { until } => Some(until),
        };
        [session, stop, self.next_reset, Some(self.shared.log.next_deadline())].into_iter().flatten().min()
    }

    fn ready(&mut self, name: u64, readiness: Readiness) {
        if let Some(entry) = self.sessions.get_mut(&name) {
            entry.session.ready(readiness);
            self.enqueue(name);
        }
    }

    fn stop(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()> {
        let result = match self.service {
            Service::Open => self.start_stopping(now, host).map(|()| ControlFlow::Continue(())),
            Service::Stopping { .. } => self.reset_all(now, host).map(|()| ControlFlow::Break(())),
        };
        self.or_break(result)
    }
}
