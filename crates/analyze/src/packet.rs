//! One TCP packet as a capture shows it, whoever sent it and however much of it was kept.

use std::net::SocketAddr;

use airwire::options::Options;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

/// Nanoseconds since 1970, as the capturing machine's clock had it: unlike a machine's own time it may go backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Seconds from `earlier` to here, negative if it is later.
    pub fn since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1e9
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Its place in the capture, from 1: Wireshark's frame number.
    pub number: u64,
    pub at: Timestamp,
    pub src: SocketAddr,
    pub dst: SocketAddr,
    pub seq: Seq,
    /// If the ACK flag is set.
    pub ack: Option<Seq>,
    pub flags: Flags,
    /// As it stands in the header, unscaled.
    pub window: u16,
    pub ecn: Ecn,
    /// Octets of payload by the IP header's length, however many of them the capture has kept.
    pub len: u32,
    /// The identification of an IPv4 header, which tells a retransmission from a copy that the network made.
    pub ip_id: Option<u16>,
    pub options: Options,
    /// The capture has kept the beginning of them only.
    pub options_cut: bool,
}

impl Packet {
    /// Sequence space that it takes.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }
}
