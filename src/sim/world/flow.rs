//! A flow: the application that writes a known stream, the one that checks it, and what comes of it.

use std::net::SocketAddr;

use airlink::packet::Direction;
use airlink::time::{Duration, Instant};

use super::watch::Watch;
use crate::host::{ConnId, Host, IoError, ListenId};
use crate::recovery::{Counters, Decision, Recipe};
use crate::sim::exchange::octet;
use crate::sim::pair::Side;
use crate::tcp::{Connection, Ended, Statistics};

#[derive(Clone)]
pub struct Flow {
    pub direction: Direction,
    pub length: Length,
    pub start: Instant,
    /// The sender's, if it is not its side's.
    pub recipe: Option<Recipe>,
    /// The receiver's, in octets, if it is not its profile's.
    pub receive_buffer: Option<usize>,
    pub watch: Watch,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    Octets(u64),
    /// As long as the run.
    Endless,
}

impl Flow {
    /// From the fixed side to the mobile, at once, and with what is ordinary there.
    pub fn down(length: Length) -> Self {
        Self {
            direction: Direction::Down,
            length,
            start: Instant::ZERO,
            recipe: None,
            receive_buffer: None,
            watch: Watch::Results,
        }
    }

    /// The other way.
    pub fn up(length: Length) -> Self {
        Self { direction: Direction::Up, ..Self::down(length) }
    }
}

/// What came of a flow, or has come of it so far.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    pub started: Instant,
    /// Octets that the receiving application has read, every one of them right.
    pub delivered: u64,
    /// When the last octet of a flow that has an end was read.
    pub completed: Option<Instant>,
    /// The connection was given up.
    pub ended: Option<Ended>,
    /// The sender's.
    pub counters: Counters,
    /// The sender's.
    pub statistics: Statistics,
}

impl FlowResult {
    /// From the first SYN to the last octet.
    pub fn took(&self) -> Option<Duration> {
        Some(self.completed?.saturating_since(self.started))
    }
}

/// A stream that is not what was written: the TCP under test is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    #[error("octet {0} of the stream is wrong")]
    Wrong(u64),
    #[error("the stream ended after {0} octets")]
    Short(u64),
}

/// The two ends of a flow; the sender opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Sender,
    Receiver,
}

pub(super) struct FlowState {
    pub(super) flow: Flow,
    /// Indices of both hosts, by role.
    pub(super) sites: [usize; 2],
    pub(super) remote: SocketAddr,
    pub(super) listener: ListenId,
    pub(super) connections: [Option<ConnId>; 2],
    pub(super) completed: Option<Instant>,
    /// Decisions that have been taken over from the connection.
    pub(super) decisions: Vec<Decision>,
    written: u64,
    delivered: u64,
    shut: bool,
    /// By role: the application is done with its connection.
    closed: [bool; 2],
    ended: Option<Ended>,
    /// What the sender's connection left behind.
    left: Option<(Counters, Statistics)>,
}

/// Octets that a sender keeps ready beyond what has left: more would only fill memory.
const READY: usize = 64 << 10;

/// Between an application and its connection; shared by all.
pub(super) struct Buffers {
    write: Vec<u8>,
    read: Box<[u8]>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { write: Vec::new(), read: vec![0; READY].into() }
    }
}

impl FlowState {
    pub(super) fn new(flow: Flow, sites: [usize; 2], (remote, listener): (SocketAddr, ListenId)) -> Self {
        Self {
            flow,
            sites,
            remote,
            listener,
            connections: [None; 2],
            completed: None,
            decisions: Vec::new(),
            written: 0,
            delivered: 0,
            shut: false,
            closed: [false; 2],
            ended: None,
            left: None,
        }
    }

    pub(super) fn has_end(&self) -> bool {
        self.flow.length != Length::Endless
    }

    /// At least one end is not done yet.
    pub(super) fn is_open(&self) -> bool {
        self.closed != [true; 2]
    }

    pub(super) fn result(&self, sender: Option<&Connection>) -> FlowResult {
        let of = |connection: &Connection| {
            (connection.recovery().counters().clone(), connection.statistics().clone())
        };
        let (counters, statistics) = self.left.clone().or_else(|| sender.map(of)).unwrap_or_default();
        FlowResult {
            started: self.flow.start,
            delivered: self.delivered,
            completed: self.completed,
            ended: self.ended.or_else(|| sender?.ended()),
            counters,
            statistics,
        }
    }

    /// Lets the application at one end run. Returns how many octets it wrote.
    pub(super) fn run(
        &mut self,
        role: Role,
        now: Instant,
        flow: usize,
        host: &mut Host,
        buffers: &mut Buffers,
    ) -> Result<usize, StreamError> {
        let Some(id) = self.connections[role as usize].filter(|_| !self.closed[role as usize]) else {
            return Ok(0);
        };
        match role {
            Role::Sender => {
                let wrote = self.write(now, flow, host, id, buffers);
                // Nothing comes back but the end of the stream.
                self.read(now, flow, host, id, role, buffers)?;
                Ok(wrote)
            }
            Role::Receiver => {
                self.read(now, flow, host, id, role, buffers)?;
                Ok(0)
            }
        }
    }

    fn write(
        &mut self,
        now: Instant,
        flow: usize,
        host: &mut Host,
        id: ConnId,
        buffers: &mut Buffers,
    ) -> usize {
        // An application writes, and closes, when its connection stands.
        let Some(connection) = host.connection(id).filter(|c| c.state().is_synchronized()) else { return 0 };
        let left = match self.flow.length {
            Length::Octets(octets) => octets - self.written,
            Length::Endless => u64::MAX,
        };
        let (unsent, room) = (connection.unsent(), connection.writable());
        // Few large writes cost less than many small ones.
        let wanted = if unsent < READY / 2 { READY - unsent } else { 0 };
        let count = left.min(wanted.min(room) as u64);
        let mut wrote = 0;
        if count > 0 {
            let stream = self.written..self.written + count;
            buffers.write.clear();
            buffers.write.extend(stream.map(|offset| stream_octet(self.flow.direction, flow, offset)));
            wrote = host.write(now, id, &buffers.write).unwrap_or(0);
            self.written += wrote as u64;
        }
        if Length::Octets(self.written) == self.flow.length && !self.shut {
            // A connection that is gone shows when it is read from.
            self.shut = host.shutdown_write(now, id).is_ok();
        }
        wrote
    }

    fn read(
        &mut self,
        now: Instant,
        flow: usize,
        host: &mut Host,
        id: ConnId,
        role: Role,
        buffers: &mut Buffers,
    ) -> Result<(), StreamError> {
        loop {
            match host.read(now, id, &mut buffers.read) {
                Ok(0) => {
                    if role == Role::Receiver && self.flow.length != Length::Octets(self.delivered) {
                        return Err(StreamError::Short(self.delivered));
                    }
                    self.complete(now);
                    self.close(now, host, id, role);
                    return Ok(());
                }
                Ok(count) => {
                    self.check(flow, role, &buffers.read[..count])?;
                    self.complete(now);
                }
                Err(IoError::Ended(ended)) => {
                    self.ended = Some(ended);
                    self.close(now, host, id, role);
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
    }

    fn check(&mut self, flow: usize, role: Role, octets: &[u8]) -> Result<(), StreamError> {
        for octet in octets {
            let inside = match self.flow.length {
                Length::Octets(octets) => self.delivered < octets,
                Length::Endless => true,
            };
            let expected = stream_octet(self.flow.direction, flow, self.delivered);
            if role != Role::Receiver || !inside || *octet != expected {
                return Err(StreamError::Wrong(self.delivered));
            }
            self.delivered += 1;
        }
        Ok(())
    }

    fn complete(&mut self, now: Instant) {
        if self.completed.is_none() && self.flow.length == Length::Octets(self.delivered) {
            self.completed = Some(now);
        }
    }

    fn close(&mut self, now: Instant, host: &mut Host, id: ConnId, role: Role) {
        if let Some(connection) = host.connection_mut(id).filter(|_| role == Role::Sender) {
            self.left = Some((connection.recovery().counters().clone(), connection.statistics().clone()));
            self.decisions.append(&mut connection.recovery_mut().take_trace());
        }
        host.close(now, id);
        self.closed[role as usize] = true;
    }
}

/// Each flow has a stream of its own, so that octets of another one are found out.
fn stream_octet(direction: Direction, flow: usize, offset: u64) -> u8 {
    let side = match direction {
        Direction::Down => Side::Left,
        Direction::Up => Side::Right,
    };
    octet(side, offset + 1_000_003 * flow as u64)
}
