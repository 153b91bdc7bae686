//! One TCP packet as a capture shows it.

use std::net::SocketAddr;

use airwire::options::Options;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

/// Nanoseconds since 1970 by the clock of the capturing machine, which may go backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Seconds from `earlier` to `self`; negative if `earlier` is later.
    pub fn since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1e9
    }
}

/// The headers of a TCP packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// The frame number: counted from 1 as in Wireshark.
    pub number: u64,
    /// When it was captured.
    pub at: Timestamp,
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// The sequence number.
    pub seq: Seq,
    /// The acknowledgment number, if the ACK flag is set.
    pub ack: Option<Seq>,
    /// The flags, reserved bits included.
    pub flags: Flags,
    /// As it stands in the header, unscaled.
    pub window: u16,
    /// The ECN bits of the IP header.
    pub ecn: Ecn,
    /// Octets of payload by the IP header's length, however many of them the capture has kept.
    pub len: u32,
    /// The identification of an IPv4 header, which tells a retransmission from a copy that the network made.
    pub ip_id: Option<u16>,
    /// Those that can be read.
    pub options: Options,
    /// The capture has kept only the first of the options.
    pub options_cut: bool,
}

impl Packet {
    /// Octets of sequence space: payload, SYN and FIN.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }
}
