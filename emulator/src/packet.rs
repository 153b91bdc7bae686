//! IP packets inside the network, and the information that their bytes reveal.

use std::ops::{Deref, DerefMut};

pub use airwire::direction::{Direction, PerDirection};
use airwire::time::Instant;
use airwire::view::View;
use serde::Serialize;

/// Number of a packet. The packets of a path are numbered in order of arrival, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PacketId(pub u64);

/// The creator of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A host at one of the two ends.
    Host,
    /// A traffic source inside the network. Such a packet never reaches a host. It leaves the path after the
    /// stage with this index.
    Background {
        /// Index of the stage, counted from 0 at the fixed side.
        leaves_after: u16,
    },
}

/// An IP packet inside a path. It is a handle, because packets are moved often.
#[derive(Clone, Debug)]
pub struct Packet(Box<Counted>);

/// A packet, and its memory in the path's account.
#[derive(Clone, Debug)]
struct Counted {
    content: Content,
    memory: u32,
    /// Number of bytes on the wire that an abbreviated packet does not contain.
    omitted: u32,
}

/// Memory of a packet in addition to its bytes: its data, its place in a queue, and the overhead of the
/// allocator.
const OVERHEAD: usize = 128;

/// Data of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Number of the packet, unique in its path.
    pub id: PacketId,
    /// Direction. It never changes.
    pub direction: Direction,
    /// Creator of the packet. It never changes.
    pub origin: Origin,
    /// Time at which the packet entered the path.
    pub entered: Instant,
    /// The packet, starting with the IP header.
    pub bytes: Vec<u8>,
}

impl From<Content> for Counted {
    fn from(content: Content) -> Self {
        let memory = content.bytes.capacity().saturating_add(OVERHEAD);
        Self { content, memory: u32::try_from(memory).unwrap_or(u32::MAX), omitted: 0 }
    }
}

impl From<Content> for Packet {
    fn from(content: Content) -> Self {
        Self(Box::new(content.into()))
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Packet {}

impl Deref for Packet {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.0.content
    }
}

impl DerefMut for Packet {
    fn deref_mut(&mut self) -> &mut Content {
        &mut self.0.content
    }
}

/// Purpose of a packet, for loss models that spare some packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The packet carries payload of any protocol, or opens or closes a TCP connection.
    Data,
    /// A TCP segment that only acknowledges.
    PureAck,
}

impl Purpose {
    /// Like [`Packet::purpose`].
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let view = View::complete(packet)?;
        let is_pure_ack = view.tcp().is_some_and(|segment| segment.is_pure_ack());
        Some(if is_pure_ack { Self::PureAck } else { Self::Data })
    }
}

impl Packet {
    /// Replaces the whole packet, to reuse the memory of its handle.
    pub(crate) fn replace(&mut self, content: Content) {
        *self.0 = content.into();
    }

    /// Memory of the packet when it was created, in bytes. It does not change when a stage changes the
    /// packet's bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.0.memory.into()
    }

    /// Length on the wire in bytes, including the IP header.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.0.omitted as usize
    }

    /// Computes the length of an abbreviated packet from its IP header.
    pub(crate) fn note_omitted(&mut self) {
        let end = View::without_extensions(&self.bytes).map_or(0, |view| view.end);
        self.0.omitted = end.saturating_sub(self.bytes.len()) as u32;
    }

    /// Whether the packet has no bytes. A path accepts such a packet, but a stage may refuse it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The purpose of the packet. `None`: not a complete IP packet (truncated, or of another protocol).
    pub fn purpose(&self) -> Option<Purpose> {
        Purpose::of(&self.bytes)
    }
}
