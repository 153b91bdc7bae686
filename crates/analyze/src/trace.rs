//! What pictures of one direction of a connection are drawn from: everything that happened, in time.
//!
//! Kept only for the connections that somebody wants to see; findings need none of it.

use serde::Serialize;

/// The data that one end sent, and what came back for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace {
    /// `10.83.0.2:52279 → 100.64.0.2:9000`.
    pub name: String,
    /// Wall time of `at` = 0, in nanoseconds since 1970: the first packet of the capture.
    pub origin: i64,
    /// In the order of the capture.
    pub segments: Vec<SentSegment>,
    pub acks: Vec<AckSeen>,
    pub rtt: Vec<RttSample>,
    pub windows: Vec<WindowPoint>,
    pub idle: Vec<Idle>,
    /// Of the sender itself, if its own log is there.
    pub decisions: Vec<DecisionSeen>,
}

/// Nanoseconds since the trace's `origin`.
pub type Offset = i64;

/// A packet with payload, a SYN or a FIN.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentSegment {
    pub at: Offset,
    /// Frame number.
    pub number: u64,
    /// Of sequence space, the SYN being at 0.
    pub start: u64,
    pub end: u64,
    pub sending: Sending,
    /// Duplicate ACKs for it at this moment.
    pub dupacks: u32,
    /// Segments in flight at this moment, this one not counted.
    pub in_flight: u32,
    pub fate: Fate,
}

/// Why a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    New,
    /// After duplicate ACKs, for a hole that SACK or a partial ACK showed, or because what left later has arrived.
    Fast,
    Timeout,
    /// The last segment again, before the timer would have sent it.
    Tail,
    /// One octet into a closed window, or of a keep-alive.
    Probe,
    /// Again, but nothing in the capture tells why.
    Unexplained,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Fate {
    /// One capture alone does not say.
    #[default]
    Unknown,
    Arrived {
        at: Offset,
    },
    Lost(Place),
    /// It was there before: sending it again was a mistake.
    Unneeded {
        proof: Proof,
    },
}

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "place")]
pub enum Place {
    /// Between two captures: in front of capture `before` (1 is the second one) of those given in the path's order.
    Between {
        before: usize,
    },
    /// airlink says so.
    Congestion,
    Radio,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The ACK echoes a timestamp from before the retransmission (Eifel, RFC 3522).
    Timestamp,
    /// The receiver said so (RFC 2883).
    Dsack,
    /// The other capture had both copies.
    Arrival,
}

/// A packet that acknowledges data of this direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AckSeen {
    pub at: Offset,
    pub number: u64,
    /// The next octet that the receiver expects.
    pub ack: u64,
    /// The last octet that it would take: ACK and scaled window.
    pub edge: u64,
    pub duplicate: bool,
    pub sack: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RttSample {
    pub at: Offset,
    pub seconds: f64,
    /// Measured by timestamps; else from a segment that was sent once (Karn).
    pub timestamps: bool,
}

/// The sender's window, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowPoint {
    pub at: Offset,
    pub in_flight: u64,
    /// As it can be guessed from what is in flight.
    pub estimated: u64,
    /// What the sender itself says, if its log is there.
    pub cwnd: Option<f64>,
    pub ssthresh: Option<f64>,
}

/// Silence that ended with a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Idle {
    pub from: Offset,
    pub to: Offset,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionSeen {
    pub at: Offset,
    /// The name of the answer that decided.
    pub by: String,
    /// `lost`, `retransmit`, `window`, `undo` …
    pub what: String,
    /// All of it in a line, for a person.
    pub text: String,
    /// The sequence space that it is about.
    pub about: Option<(u64, u64)>,
}
