//! A flow: the application that writes a known stream, the one that checks it, and what comes of it.

use std::net::SocketAddr;

use airlink::packet::Direction;
use airtcp::host::{ConnId, Host, IoError, ListenId};
use airtcp::profile::Profile;
use airtcp::recovery::{Counters, Decision, Recipe};
use airtcp::tcp::{Connection, Ended, Statistics};
use airwire::time::{Duration, Instant};

use super::stream::Stream;
use super::watch::Watch;

/// One connection that carries data one way.
#[derive(Clone)]
pub struct Flow {
    /// Which way the data goes; the sender opens the connection.
    pub direction: Direction,
    /// How much the sender writes.
    pub length: Length,
    /// When the SYN leaves.
    pub start: Instant,
    /// The sender's recipe. `None`: that of its side.
    pub recipe: Option<Recipe>,
    /// The sender's profile, before the recipe's options are applied to it. `None`: that of its side.
    pub profile: Option<Profile>,
    /// The receiver's buffer in octets. `None`: that of its side's profile.
    pub receive_buffer: Option<usize>,
    /// What is kept of it.
    pub watch: Watch,
}

/// How much a flow's sender writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// This much; then the sender ends the stream.
    Octets(u64),
    /// As long as the run.
    Endless,
}

impl Flow {
    /// From the fixed side to the mobile, from time zero, with its side's recipe and profile; only results are kept.
    pub fn down(length: Length) -> Self {
        Self {
            direction: Direction::Down,
            length,
            start: Instant::ZERO,
            recipe: None,
            profile: None,
            receive_buffer: None,
            watch: Watch::Results,
        }
    }

    /// The same from the mobile side to the fixed.
    pub fn up(length: Length) -> Self {
        Self { direction: Direction::Up, ..Self::down(length) }
    }
}

/// What has come of a flow so far.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// When its SYN left, or will leave.
    pub started: Instant,
    /// Octets that the receiving application has read, every one of them right.
    pub delivered: u64,
    /// When the last octet was read. `None`: the flow has no end, or has not come to it.
    pub completed: Option<Instant>,
    /// Why either end gave the connection up. `None`: neither did.
    pub ended: Option<Ended>,
    /// Of the sender's loss recovery.
    pub counters: Counters,
    /// Of the sender's connection.
    pub statistics: Statistics,
}

impl FlowResult {
    /// From the first SYN to the last octet, once it is read.
    pub fn took(&self) -> Option<Duration> {
        Some(self.completed?.saturating_since(self.started))
    }
}

/// What arrived is not what was written: the TCP under test is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// The octet at this offset, from zero, differs or was never written.
    #[error("byte {0} of the stream is wrong")]
    Wrong(u64),
    /// The receiver saw an orderly end after so many octets, and there should be more.
    #[error("the stream ended after {0} bytes")]
    Short(u64),
}

/// The two ends of a flow; the sender opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Sender,
    Receiver,
}

/// What of a [`Flow`] is needed once its hosts are known: there may be very many.
pub(super) struct Plan {
    pub(super) length: Length,
    pub(super) start: Instant,
    pub(super) watch: Watch,
}

pub(super) struct FlowState {
    pub(super) flow: Plan,
    stream: Stream,
    /// Indices of both hosts, by role.
    pub(super) sites: [usize; 2],
    pub(super) remote: SocketAddr,
    pub(super) listener: ListenId,
    pub(super) connections: [Option<ConnId>; 2],
    pub(super) completed: Option<Instant>,
    /// Decisions taken over from the connection so far.
    pub(super) decisions: Vec<Decision>,
    written: u64,
    delivered: u64,
    shut: bool,
    /// By role: the application is done with its connection.
    closed: [bool; 2],
    ended: Option<Ended>,
    /// What the sender's connection left behind.
    left: Option<Box<(Counters, Statistics)>>,
}

/// What one read takes at most.
const READ: usize = 64 << 10;
/// A sender writes so many segments at once, or more: few large writes cost less than many small ones.
const AT_ONCE: u64 = 2;

/// Scratch space between an application and its connection; all flows share it.
pub(super) struct Buffers {
    /// What the stream ought to be.
    stream: Vec<u8>,
    read: Box<[u8]>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { stream: Vec::new(), read: vec![0; READ].into() }
    }
}

impl FlowState {
    pub(super) fn new(
        flow: Flow,
        index: usize,
        sites: [usize; 2],
        (remote, listener): (SocketAddr, ListenId),
    ) -> Self {
        Self {
            stream: Stream::new(flow.direction, index),
            flow: Plan { length: flow.length, start: flow.start, watch: flow.watch },
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

    pub(super) fn share(&self) -> f64 {
        match self.flow.length {
            Length::Octets(octets) if octets > 0 => self.delivered as f64 / octets as f64,
            _ => 0.0,
        }
    }

    /// At least one end is not done yet.
    pub(super) fn is_open(&self) -> bool {
        self.closed != [true; 2]
    }

    pub(super) fn result(&self, sender: Option<&Connection>) -> FlowResult {
        let of = |connection: &Connection| {
            (connection.recovery().counters().clone(), connection.statistics().clone())
        };
        let left = self.left.as_deref().cloned();
        let (counters, statistics) = left.or_else(|| sender.map(of)).unwrap_or_default();
        FlowResult {
            started: self.flow.start,
            delivered: self.delivered,
            completed: self.completed,
            ended: self.ended.or_else(|| sender?.ended()),
            counters,
            statistics,
        }
    }

    /// Lets the application at one end run. Returns how many octets it wrote, if it wanted to write more: then it is to run
    /// once again when they have left.
    pub(super) fn run(
        &mut self,
        role: Role,
        now: Instant,
        host: &mut Host,
        buffers: &mut Buffers,
    ) -> Result<usize, StreamError> {
        let Some(id) = self.connections[role as usize].filter(|_| !self.closed[role as usize]) else {
            return Ok(0);
        };
        match role {
            Role::Sender => {
                let wrote = self.write(now, host, id, buffers);
                // Nothing comes back but the end of the stream.
                self.read(now, host, id, role, buffers)?;
                Ok(wrote)
            }
            Role::Receiver => {
                self.read(now, host, id, role, buffers)?;
                Ok(0)
            }
        }
    }

    fn write(&mut self, now: Instant, host: &mut Host, id: ConnId, buffers: &mut Buffers) -> usize {
        let left = match self.flow.length {
            Length::Octets(octets) => octets - self.written,
            Length::Endless => u64::MAX,
        };
        // An application writes, and closes, when its connection stands.
        let Some(connection) = host.connection_mut(id).filter(|c| c.state().is_synchronized()) else {
            return 0;
        };
        // Nothing waits for the application, and what more it had ready would only fill memory.
        let (unsent, enough) = (connection.unsent() as u64, connection.enough_unsent(now));
        let wanted = if unsent < enough { enough - unsent + AT_ONCE * connection.smss() } else { 0 };
        let count = left.min(wanted).min(connection.writable() as u64);
        let mut wrote = 0;
        if count > 0 {
            let octets = self.stream.octets(self.written..self.written + count, &mut buffers.stream);
            wrote = host.write(now, id, octets).unwrap_or(0);
            self.written += wrote as u64;
        }
        if Length::Octets(self.written) == self.flow.length && !self.shut {
            // A connection that is gone shows when it is read from.
            self.shut = host.shutdown_write(now, id).is_ok();
        }
        if count < wanted { wrote } else { 0 }
    }

    fn read(
        &mut self,
        now: Instant,
        host: &mut Host,
        id: ConnId,
        role: Role,
        buffers: &mut Buffers,
    ) -> Result<(), StreamError> {
        let waits =
            |host: &Host| host.connection(id).is_some_and(|c| c.readable() == 0 && !c.at_end_of_stream());
        // Most segments bring the sender nothing to read, and the receiver no more than one read takes.
        while !waits(host) {
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
                    self.check(role, &buffers.read[..count], &mut buffers.stream)?;
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
        Ok(())
    }

    fn check(&mut self, role: Role, octets: &[u8], scratch: &mut Vec<u8>) -> Result<(), StreamError> {
        let expected = match (role, self.flow.length) {
            (Role::Sender, _) => 0,
            (Role::Receiver, Length::Octets(length)) => {
                octets.len().min((length - self.delivered).try_into().unwrap_or(usize::MAX))
            }
            (Role::Receiver, Length::Endless) => octets.len(),
        };
        let right = self.stream.agreeing(self.delivered, &octets[..expected], scratch);
        self.delivered += right as u64;
        if right < octets.len() { Err(StreamError::Wrong(self.delivered)) } else { Ok(()) }
    }

    fn complete(&mut self, now: Instant) {
        if self.completed.is_none() && self.flow.length == Length::Octets(self.delivered) {
            self.completed = Some(now);
        }
    }

    fn close(&mut self, now: Instant, host: &mut Host, id: ConnId, role: Role) {
        if let Some(connection) = host.connection_mut(id).filter(|_| role == Role::Sender) {
            let counters = connection.recovery().counters().clone();
            self.left = Some(Box::new((counters, connection.statistics().clone())));
            self.decisions.append(&mut connection.recovery_mut().take_trace());
        }
        host.close(now, id);
        self.closed[role as usize] = true;
    }
}

#[cfg(test)]
mod tests;
