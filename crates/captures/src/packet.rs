//! The headers of one TCP packet in a capture.

use std::net::SocketAddr;

use airwire::options::Options;
use airwire::segment::{Ecn, Flags};
use airwire::seq::Seq;

/// Nanoseconds since 1970 by the clock of the capturing machine. This clock may jump backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the seconds from `earlier` to `self`. The result is negative if `earlier` is later.
    pub fn since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1e9
    }
}

/// The headers of a TCP packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// The frame number, counted from 1 as in Wireshark.
    pub number: u64,
    /// The capture time.
    pub at: Timestamp,
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// The sequence number.
    pub seq: Seq,
    /// The acknowledgment number, if the ACK flag is set.
    pub ack: Option<Seq>,
    /// The flags, including the reserved bits.
    pub flags: Flags,
    /// The window field of the header, not scaled.
    pub window: u16,
    /// The ECN bits of the IP header.
    pub ecn: Ecn,
    /// Bytes of payload according to the IP header. The capture may contain fewer.
    pub len: u32,
    /// The identification field of an IPv4 header. It distinguishes a retransmission from a copy that the
    /// network made.
    pub ip_id: Option<u16>,
    /// The options that can be parsed.
    pub options: Options,
    /// Whether the capture contains only the first of the options.
    pub options_cut: bool,
}

impl Packet {
    /// Returns the sequence space of the packet in bytes: payload, SYN and FIN.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }
}
