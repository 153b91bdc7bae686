//! A flow: an application writes a known stream, and another one verifies it.

use std::net::SocketAddr;

use airlink::packet::Direction;
use airtcp::host::{ConnId, Host, IoError, ListenId};
use airtcp::profile::Profile;
use airtcp::recovery::{Counters, Decision, Inputs, Recipe};
use airtcp::tcp::{Connection, Ended, Statistics};
use airwire::text::Known;
use airwire::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::watch::Watch;

/// A connection that carries data in one direction.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Direction of the data. The sender opens the connection.
    pub direction: Direction,
    /// Amount of data.
    pub length: Length,
    /// Time at which the SYN is sent.
    pub start: Instant,
    /// The sender's recipe. `None`: the recipe of its side.
    pub recipe: Option<Recipe>,
    /// The sender's profile, before the recipe's options are applied. `None`: the profile of its
    /// side.
    pub profile: Option<Profile>,
    /// Size of the receive buffer in bytes. `None`: given by the profile of the receiver's side.
    pub receive_buffer: Option<usize>,
    /// Level of detail that is recorded. It is not part of files, because it does not affect the report.
    #[serde(skip)]
    pub watch: Watch,
}

/// Amount of data that a sender writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// This number of bytes. Then the sender closes the stream.
    #[serde(rename = "bytes")]
    Octets(u64),
    /// The sender writes until the run ends.
    Endless,
}

impl Flow {
    /// Creates a flow down that starts at time zero, with its side's recipe and profile. Only its
    /// results are recorded.
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

    /// Creates the same flow from the mobile to the fixed side.
    pub fn up(length: Length) -> Self {
        Self { direction: Direction::Up, ..Self::down(length) }
    }
}

/// The result of a flow so far.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Time of the SYN, which may be in the future.
    pub started: Instant,
    /// Bytes that the receiving application has read and verified.
    pub delivered: u64,
    /// Time at which the last byte was read. `None` if the flow is endless or not complete.
    pub completed: Option<Instant>,
    /// The reason why either end gave the connection up. `None` if neither did.
    pub ended: Option<Ended>,
    /// Counters of the sender's loss recovery.
    pub counters: Counters,
    /// Statistics of the sender's connection.
    pub statistics: Statistics,
    /// The kinds of information that have arrived at the sender.
    pub inputs: Inputs,
}

impl FlowResult {
    /// Returns the time from the first SYN to the last byte. `None` if the flow is not complete.
    pub fn took(&self) -> Option<Duration> {
        Some(self.completed?.saturating_since(self.started))
    }
}

/// Error: the received data differs from the data written. This is a bug in the TCP under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// The byte at this offset, from zero, is wrong or was never written.
    #[error("byte {0} of the stream is wrong")]
    Wrong(u64),
    /// The stream was closed after this number of bytes, but should be longer.
    #[error("the stream ended after {0} bytes")]
    Short(u64),
}

/// The two ends of a flow. The sender opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Sender,
    Receiver,
}

/// The parts of a [`Flow`] that are needed after its hosts are created. This struct is small because a world
/// may have very many flows.
pub(super) struct FlowPlan {
    pub(super) length: Length,
    pub(super) start: Instant,
    pub(super) watch: Watch,
}

pub(super) struct FlowState {
    pub(super) flow: FlowPlan,
    /// Position in the known stream of the first byte that the sender writes.
    first: u64,
    /// Indices of both hosts, by role.
    pub(super) hosts: [usize; 2],
    pub(super) remote: SocketAddr,
    pub(super) listener: ListenId,
    pub(super) connections: [Option<ConnId>; 2],
    pub(super) completed: Option<Instant>,
    /// The decisions so far.
    pub(super) decisions: Vec<Decision>,
    written: u64,
    delivered: u64,
    is_shut: bool,
    /// Whether the application at each end has closed its connection, by role.
    closed: [bool; 2],
    ended: Option<Ended>,
    /// Final state of the sender's connection.
    final_numbers: Option<Box<Numbers>>,
}

/// The part of a [`FlowResult`] that the sender's connection supplies.
type Numbers = (Counters, Statistics, Inputs);

fn numbers(connection: &Connection) -> Numbers {
    let recovery = connection.recovery();
    (recovery.counters().clone(), connection.statistics().clone(), recovery.inputs())
}

/// Size of the read buffer.
const READ_BUFFER_LEN: usize = 64 << 10;
/// Minimum size of an application's write in segments, because few large writes cost less than many
/// small ones.
const MIN_WRITE_SEGMENTS: u64 = 2;

/// Buffer shared by the applications of all flows. They use it for data that arrives as bytes.
pub(super) struct ReadBuffer(Box<[u8]>);

impl Default for ReadBuffer {
    fn default() -> Self {
        Self(vec![0; READ_BUFFER_LEN].into())
    }
}

/// Maximum length of a flow, as a power of two.
const MAX_LENGTH_BITS: u32 = 43;

/// Returns the position in the known stream of a flow's first byte. Flows do not overlap, so mix-ups are detected.
fn first_position(direction: Direction, index: usize) -> u64 {
    (2 * index as u64 + direction as u64) << MAX_LENGTH_BITS
}

impl FlowState {
    pub(super) fn new(
        flow: Flow,
        index: usize,
        hosts: [usize; 2],
        (remote, listener): (SocketAddr, ListenId),
    ) -> Self {
        Self {
            first: first_position(flow.direction, index),
            flow: FlowPlan { length: flow.length, start: flow.start, watch: flow.watch },
            hosts,
            remote,
            listener,
            connections: [None; 2],
            completed: None,
            decisions: Vec::new(),
            written: 0,
            delivered: 0,
            is_shut: false,
            closed: [false; 2],
            ended: None,
            final_numbers: None,
        }
    }

    /// Returns the index of the sender's host.
    pub(super) fn sender_host(&self) -> usize {
        self.hosts[Role::Sender as usize]
    }

    pub(super) fn sender_connection(&self) -> Option<ConnId> {
        self.connections[Role::Sender as usize]
    }

    pub(super) fn has_end(&self) -> bool {
        self.flow.length != Length::Endless
    }

    pub(super) fn delivered_fraction(&self) -> f64 {
        match self.flow.length {
            Length::Octets(octets) if octets > 0 => self.delivered as f64 / octets as f64,
            _ => 0.0,
        }
    }

    /// Returns whether at least one end has not closed the connection yet.
    pub(super) fn is_open(&self) -> bool {
        self.closed != [true; 2]
    }

    pub(super) fn result(&self, sender: Option<&Connection>) -> FlowResult {
        let final_numbers = self.final_numbers.as_deref().cloned();
        let (counters, statistics, inputs) =
            final_numbers.or_else(|| sender.map(numbers)).unwrap_or_default();
        FlowResult {
            started: self.flow.start,
            delivered: self.delivered,
            completed: self.completed,
            ended: self.ended.or_else(|| sender?.ended()),
            counters,
            statistics,
            inputs,
        }
    }

    /// Runs the application at one end. Returns the number of bytes written if the application has
    /// more to write. The caller must run it again after these bytes were sent.
    pub(super) fn run(
        &mut self,
        role: Role,
        now: Instant,
        host: &mut Host,
        buffer: &mut ReadBuffer,
    ) -> Result<usize, StreamError> {
        let Some(id) = self.connections[role as usize].filter(|_| !self.closed[role as usize]) else {
            return Ok(0);
        };
        match role {
            Role::Sender => {
                let wrote = self.write(now, host, id);
                // The sender receives nothing except the end of the stream.
                self.read(now, host, id, role, buffer)?;
                Ok(wrote)
            }
            Role::Receiver => {
                self.read(now, host, id, role, buffer)?;
                Ok(0)
            }
        }
    }

    fn write(&mut self, now: Instant, host: &mut Host, id: ConnId) -> usize {
        let remaining = match self.flow.length {
            Length::Octets(octets) => octets - self.written,
            Length::Endless => u64::MAX,
        };
        // Applications write and close only after the connection is established.
        let Some(connection) = host.connection_mut(id).filter(|c| c.state().is_synchronized()) else {
            return 0;
        };
        // Write only what keeps the connection supplied, because more unsent data would only use
        // memory.
        let (unsent, enough) = (connection.unsent() as u64, connection.enough_unsent(now));
        let wanted =
            if unsent < enough { enough - unsent + MIN_WRITE_SEGMENTS * connection.smss() } else { 0 };
        let count = remaining.min(wanted).min(connection.writable() as u64);
        let mut wrote = 0;
        if count > 0 {
            wrote = host.write_known(now, id, self.known(self.written, count)).unwrap_or(0);
            self.written += wrote as u64;
        }
        if Length::Octets(self.written) == self.flow.length && !self.is_shut {
            // If the connection has ended, the next read reports it.
            self.is_shut = host.shutdown_write(id).is_ok();
        }
        if count < wanted { wrote } else { 0 }
    }

    fn read(
        &mut self,
        now: Instant,
        host: &mut Host,
        id: ConnId,
        role: Role,
        ReadBuffer(buffer): &mut ReadBuffer,
    ) -> Result<(), StreamError> {
        let waits =
            |host: &Host| host.connection(id).is_some_and(|c| c.readable() == 0 && !c.at_end_of_stream());
        // Most segments carry no data to the sender, and at most one read buffer of data to the
        // receiver, so a check is cheaper than an empty read.
        while !waits(host) {
            if let Some(known) = host.read_known(id, buffer.len()) {
                self.check(role, known.len(), |expected| match expected.start() == known.start() {
                    true => expected.len(),
                    false => 0,
                })?;
                self.complete(now);
                continue;
            }
            match host.read(id, buffer) {
                Ok(0) => {
                    if role == Role::Receiver && self.flow.length != Length::Octets(self.delivered) {
                        return Err(StreamError::Short(self.delivered));
                    }
                    self.complete(now);
                    self.close(now, host, id, role);
                    return Ok(());
                }
                Ok(count) => {
                    self.check(role, count, |expected| expected.matching_len(&buffer[..expected.len()]))?;
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

    /// Checks `count` bytes that were read. `matching_len` returns how many bytes equal the expected ones.
    fn check(
        &mut self,
        role: Role,
        count: usize,
        matching_len: impl FnOnce(Known) -> usize,
    ) -> Result<(), StreamError> {
        let expected = match (role, self.flow.length) {
            (Role::Sender, _) => 0,
            (Role::Receiver, Length::Octets(length)) => (count as u64).min(length - self.delivered),
            (Role::Receiver, Length::Endless) => count as u64,
        };
        let correct = matching_len(self.known(self.delivered, expected));
        self.delivered += correct as u64;
        if correct < count { Err(StreamError::Wrong(self.delivered)) } else { Ok(()) }
    }

    /// Returns `count` bytes of the stream from this offset on.
    fn known(&self, offset: u64, count: u64) -> Known {
        let start = self.first + offset;
        Known::new(start..start + count)
    }

    fn complete(&mut self, now: Instant) {
        if self.completed.is_none() && self.flow.length == Length::Octets(self.delivered) {
            self.completed = Some(now);
        }
    }

    fn close(&mut self, now: Instant, host: &mut Host, id: ConnId, role: Role) {
        if let Some(connection) = host.connection_mut(id).filter(|_| role == Role::Sender) {
            self.final_numbers = Some(Box::new(numbers(connection)));
            self.decisions.append(&mut connection.recovery_mut().take_trace());
        }
        host.close(now, id);
        self.closed[role as usize] = true;
    }
}

#[cfg(test)]
mod tests;
