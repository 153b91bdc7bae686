//! The results for a connection, serialized as JSON. `Display` formats them as text.
//!
//! A result that the capture does not show is `null`, `unknown` or `undetermined`. Fields are never
//! omitted.

mod direction;
mod round_trips;
mod sender;
mod verdict;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

pub use aircaptures::icmp::IcmpKind;
pub use direction::*;
pub use round_trips::*;
pub use sender::*;
use serde::Serialize;
pub use verdict::*;

/// All results for a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionFindings {
    /// The answer to the question why the connection was slow.
    pub verdict: Verdict,
    /// The two ends. The first end is the one that opened the connection or, if the SYN is missing, that sent
    /// the first packet.
    pub ends: [SocketAddr; 2],
    /// The frame number of the first packet.
    pub first_packet: u64,
    /// The time of the first packet, in nanoseconds since 1970.
    pub begin_unix_ns: i64,
    /// Time from the first packet to the last.
    pub seconds: f64,
    /// Number of packets in both directions, including copies.
    pub packets: u64,
    /// Number of packets captured twice, because of the network or the capture. They are included only here
    /// and in `packets`.
    pub copies: u64,
    /// Number of packets with an earlier timestamp than the packet before. The time of that packet is used
    /// instead.
    pub clock_went_back: u64,
    /// The resolution of the capture's clock: all times are multiples of this value. The file format limits
    /// it. `None` if there are too few frames.
    pub clock_resolution_seconds: Option<f64>,
    /// The smallest possible difference between the clocks with which the two directions were recorded, if
    /// packets are later in the capture than their responses. `None` without evidence of a difference.
    /// Otherwise the capture shows neither round trips nor the flight, and causes of retransmissions only
    /// where there was silence.
    pub clock_difference_seconds: Option<f64>,
    /// The client's name for the server. `None` if the first bytes do not contain it or were not captured.
    pub name: Option<Name>,
    /// The handshake.
    pub handshake: Handshake,
    /// The capture point.
    pub capture_at: CapturePoint,
    /// The minimum time from a packet at the capture point to the response of each end. The capture point is
    /// derived from these times.
    pub answers_after_seconds: [Option<f64>; 2],
    /// Whether and how the connection ended.
    pub close: Close,
    /// Whether timestamps (RFC 7323) are in use: both SYNs have the option, or a packet has it if a SYN is
    /// missing.
    pub timestamps: bool,
    /// Whether SACK (RFC 2018) is in use, determined in the same way.
    pub sack: bool,
    /// Whether any packet is ECN-capable (RFC 3168).
    pub ecn: bool,
    /// Response times: from data of `ends[0]` to the next data of `ends[1]`.
    pub answers: ResponseTimeFindings,
    /// The time that the applications of `ends[0]` and of `ends[1]` waited before they sent data.
    pub turns: [TurnFindings; 2],
    /// The time from the first packet to the last one with data.
    pub active_seconds: f64,
    /// ICMP errors about packets of either end: one entry per kind and sender, at most eight.
    pub icmp: Vec<IcmpFindings>,
    /// The data of `ends[0]`, then of `ends[1]`.
    pub directions: [DirectionFindings; 2],
}

/// The handshake as captured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Handshake {
    /// The captured part of the handshake.
    pub seen: HandshakeSeen,
    /// The outcome of the handshake.
    pub outcome: HandshakeOutcome,
    /// Number of RSTs before the connection was open.
    pub resets: u64,
    /// The SYNs of `ends[0]` and `ends[1]`. `None` if the capture does not contain the SYN.
    pub syns: [Option<SynFindings>; 2],
    /// Time from the SYN to the SYN-ACK: the round trip from the capture point to `ends[1]`.
    pub syn_to_syn_ack_seconds: Option<f64>,
    /// Time from the SYN-ACK to its ACK: the round trip from the capture point to `ends[0]`.
    pub syn_ack_to_ack_seconds: Option<f64>,
    /// The sum of both, which is the whole round trip. `None` if it is shorter than a step of the clock.
    pub rtt_seconds: Option<f64>,
}

/// The captured part of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeSeen {
    /// Both SYNs.
    Whole,
    /// One of the two SYNs.
    Part,
    /// No SYN: the capture began later.
    None,
}

/// The outcome of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum HandshakeOutcome {
    /// The connection was opened: the SYN-ACK was acknowledged, or data arrived.
    Open,
    /// The SYN was answered by an RST.
    Refused,
    /// An RST came between the SYN-ACK and its ACK, or from the end that sent the SYN.
    Reset {
        /// Index of the end in [`ConnectionFindings::ends`].
        by: usize,
    },
    /// ICMP reports that the SYN cannot reach its destination.
    Unreachable,
    /// The SYN was not answered.
    NoAnswer,
    /// The SYN-ACK was not acknowledged.
    HalfOpen,
    /// The capture does not contain a SYN.
    Unseen,
}

impl HandshakeOutcome {
    /// Returns whether the connection attempt failed.
    pub fn has_failed(self) -> bool {
        !matches!(self, Self::Open | Self::Unseen)
    }
}

/// The contents of the SYN of one end. If the SYN was retransmitted, the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SynFindings {
    /// Number of transmissions, limited to 255.
    pub times: u64,
    /// The MSS option: the longest segment that this end accepts.
    pub mss: Option<u16>,
    /// The window scale option (RFC 7323 §2). It is in effect only if both ends send it.
    pub window_scale: Option<u8>,
    /// The SACK-permitted option (RFC 2018 §2).
    pub sack_permitted: bool,
    /// The timestamps option (RFC 7323 §3).
    pub timestamps: bool,
    /// Whether the capture cut off some of the options.
    pub options_cut: bool,
}

/// A client's name for its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Name {
    /// The name as the client sent it, with control characters escaped.
    pub name: String,
    /// The protocol field that contains the name.
    pub by: NamedBy,
}

impl Name {
    pub(super) fn new(by: NamedBy, octets: &[u8]) -> Self {
        let text = String::from_utf8_lossy(octets);
        let escaped = text.chars().map(|c| match c {
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        });
        Self { name: escaped.collect(), by }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The protocol field that contains the name of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBy {
    /// The server name in a TLS ClientHello (RFC 6066 §3).
    TlsServerName,
    /// The Host field of an HTTP request (RFC 9110 §7.2).
    HttpHost,
}

/// Response times of `ends[1]`: from the last new data of `ends[0]` to the next new data of `ends[1]`. With a
/// capture at `ends[0]`, they include the round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ResponseTimeFindings {
    /// Number of times that data of `ends[1]` followed data of `ends[0]`.
    pub count: u64,
    /// The first response time.
    pub first_seconds: Option<f64>,
    /// The mean response time.
    pub mean_seconds: Option<f64>,
    /// The longest response time.
    pub max_seconds: Option<f64>,
}

/// ICMP errors of one kind, from one sender, about the packets of one end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IcmpFindings {
    /// The reason that the errors state.
    pub kind: IcmpKind,
    /// The ICMP type, or the ICMPv6 type if `from` is an IPv6 address.
    pub icmp_type: u8,
    /// The ICMP code.
    pub icmp_code: u8,
    /// The sender of the errors.
    pub from: IpAddr,
    /// The end whose packets caused the errors: an index in [`ConnectionFindings::ends`].
    pub caused_by_end: usize,
    /// Number of errors.
    pub count: u64,
    /// The frame number of the first error.
    pub first_frame: u64,
    /// The time of the first error, relative to the connection's first packet.
    pub first_seconds: f64,
    /// The smallest reported MTU of the next link.
    pub mtu: Option<u32>,
}

/// The capture point. The meaning of RTTs, of the order of events and of losses depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum CapturePoint {
    /// At an end, whose responses take less than a tenth of the round trip.
    End {
        /// Index of the end in [`ConnectionFindings::ends`].
        end: usize,
    },
    /// Between the ends.
    Between {
        /// The share of the round trip between the capture point and `ends[0]`, from 0 to 1.
        share: f64,
    },
    /// The capture does not show it.
    Unknown,
}

/// Whether and how a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Close {
    /// The connection did not end before the capture did, or it was idle for too long to be followed.
    Open,
    /// Both FINs were acknowledged.
    Closed,
    /// An RST ended it.
    Reset {
        /// Index of the end in [`ConnectionFindings::ends`].
        by: usize,
    },
}
