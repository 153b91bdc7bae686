//! An IP packet on its way through the network, and what can be told from its bytes.

use std::fmt;
use std::ops::{Deref, DerefMut};

use airwire::time::Instant;
use serde::{Deserialize, Serialize};
use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket};

/// Numbers the packets of one path in the order in which they came in, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PacketId(pub u64);

/// Which way a packet goes. Nothing turns round inside a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the fixed side to the mobile: the downlink.
    Down,
    /// From the mobile side to the fixed: the uplink.
    Up,
}

/// One value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// That of the downlink.
    pub down: T,
    /// That of the uplink.
    pub up: T,
}

/// Who made a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A host at one of the two ends.
    Host,
    /// A traffic source inside the network. Such a packet never reaches a host: it leaves after the stage of
    /// this index.
    Background {
        /// Counted from 0 at the fixed side.
        leaves_after: u16,
    },
}

/// An IP packet inside a path: a handle, because a packet is moved many times on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet(Box<Content>);

/// What a packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Unique in its path.
    pub id: PacketId,
    /// Never changes.
    pub direction: Direction,
    /// Never changes.
    pub origin: Origin,
    /// When it came into the path.
    pub entered: Instant,
    /// From the IP header on.
    pub bytes: Vec<u8>,
}

impl From<Content> for Packet {
    fn from(content: Content) -> Self {
        Self(Box::new(content))
    }
}

impl Deref for Packet {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.0
    }
}

impl DerefMut for Packet {
    fn deref_mut(&mut self) -> &mut Content {
        &mut self.0
    }
}

/// What a packet is for, as far as a lossy link that was told to spare some of them needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Carries payload of any protocol, or opens or closes a TCP connection.
    Data,
    /// A TCP segment that only acknowledges.
    PureAck,
}

impl Direction {
    /// Down first.
    pub const BOTH: [Self; 2] = [Self::Down, Self::Up];

    /// The direction of the answers.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }

    /// `down` or `up`, as in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl<T> PerDirection<T> {
    /// Calls `make` for `Down` first.
    pub fn from_fn(mut make: impl FnMut(Direction) -> T) -> Self {
        Self { down: make(Direction::Down), up: make(Direction::Up) }
    }

    /// Calls `f` for `down` first.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection { down: f(self.down), up: f(self.up) }
    }

    /// `Down` first.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        [(Direction::Down, &self.down), (Direction::Up, &self.up)].into_iter()
    }
}

impl<T> std::ops::Index<Direction> for PerDirection<T> {
    type Output = T;
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

impl<T> std::ops::IndexMut<Direction> for PerDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}

impl Packet {
    /// In octets, IP header included.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// No octets at all. A path takes such a packet too; a stage may refuse it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// `None`: not a whole IP packet (truncated, or of another protocol).
    pub fn purpose(&self) -> Option<Purpose> {
        let (protocol, payload) = transport(&self.bytes)?;
        if protocol != IpProtocol::Tcp || is_later_fragment(&self.bytes) {
            return Some(Purpose::Data);
        }
        let Ok(segment) = TcpPacket::new_checked(payload) else { return Some(Purpose::Data) };
        let only_acknowledges = segment.ack()
            && !segment.syn()
            && !segment.fin()
            && !segment.rst()
            && segment.payload().is_empty();
        Some(if only_acknowledges { Purpose::PureAck } else { Purpose::Data })
    }
}

/// An IPv4 fragment without the transport header. (IPv6 says so in an extension header.)
fn is_later_fragment(bytes: &[u8]) -> bool {
    Ipv4Packet::new_checked(bytes).is_ok_and(|packet| packet.version() == 4 && packet.frag_offset() > 0)
}

/// The transport protocol of an IP packet, and its transport header and payload. Of a fragment that is not the
/// first, and of a packet with v6 extension headers, the payload is whatever follows the IP header.
pub fn transport(bytes: &[u8]) -> Option<(IpProtocol, &[u8])> {
    match bytes.first()? >> 4 {
        4 => {
            let packet = Ipv4Packet::new_checked(bytes).ok()?;
            let (from, to) = (usize::from(packet.header_len()), usize::from(packet.total_len()));
            let protocol = packet.next_header();
            Some((protocol, bytes.get(from..to)?))
        }
        6 => {
            let packet = Ipv6Packet::new_checked(bytes).ok()?;
            let protocol = packet.next_header();
            Some((protocol, bytes.get(40..40 + usize::from(packet.payload_len()))?))
        }
        _ => None,
    }
}
