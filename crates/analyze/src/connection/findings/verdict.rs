//! The answer to the question why a connection was slow.

use std::fmt;

use serde::Serialize;

/// The reason why a connection was not faster, with its evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// The cause with the largest share of the time.
    pub cause: Cause,
    /// The whole verdict as a sentence.
    pub sentence: String,
    /// The direction that the verdict is about: an index in
    /// [`ConnectionFindings::directions`](super::ConnectionFindings::directions).
    pub direction: Option<usize>,
    /// The rate in bit/s that the cause permits, if it has one.
    pub ceiling: Option<f64>,
    /// The goodput in bit/s.
    pub reached: Option<f64>,
    /// Frames that show the cause.
    pub evidence: Vec<u64>,
    /// How certain the verdict is.
    pub confidence: Confidence,
    /// The next step: a remedy, or a capture that would decide.
    pub next: Option<String>,
    /// Further causes with a smaller share.
    pub also: Vec<Cause>,
}

/// The verdict about the last seconds of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RecentFindings {
    /// The length of this time.
    pub seconds: f64,
    /// The reason why the connection was not faster in this time.
    pub verdict: Verdict,
}

/// How certain a verdict is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The capture does not decide.
    #[default]
    Low,
    /// The evidence is clear, but another cause has a considerable share.
    Medium,
    /// The evidence is clear, and the cause has most of the time.
    High,
}

/// A cause of a slow connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The capture does not show the cause.
    #[default]
    Undetermined,
    /// Nothing was slow: the data was sent within one round trip.
    NotSlow,
    /// The connection was refused.
    HandshakeRefused,
    /// The SYN or the SYN-ACK was not answered, or an RST ended the handshake.
    HandshakeFailed,
    /// SYNs or SYN-ACKs were lost, so the connection opened late.
    HandshakeDelayed,
    /// The receiver's window, with a constant size.
    ReceiverWindow,
    /// The receiver's window is at most 65,535 bytes, because window scaling is not in use.
    NoWindowScaling,
    /// The receiver's window is small because its application reads slowly.
    SlowReader,
    /// The sender's buffer.
    SendBuffer,
    /// The sending application writes with pauses.
    SlowWriter,
    /// The server prepares its answers.
    ServerThinkTime,
    /// The client waits before its requests.
    ClientThinkTime,
    /// Each request waits for the answer to the previous request, so that each takes a round trip.
    SerialRequests,
    /// A short segment waits for an ACK that the receiver delays (RFC 896, RFC 9293 §3.8.6.3).
    NagleDelayedAck,
    /// The window starts small again after each pause (RFC 5681 §4.1).
    IdleRestart,
    /// The transfer ended in slow start.
    SlowStart,
    /// Single losses without a queue.
    RandomLoss,
    /// Losses in bursts without a queue.
    BurstLoss,
    /// A token bucket without a queue.
    Policer,
    /// A bottleneck with a long queue.
    Bufferbloat,
    /// A bottleneck with a short queue: the link is full.
    LinkRate,
    /// A queue that marks packets (ECN).
    EcnMarks,
    /// Packets arrive in another order.
    Reordering,
    /// The network duplicates packets.
    Duplication,
    /// ACKs are lost.
    AckLoss,
    /// The queue is on the way of the ACKs.
    ThinUplink,
    /// Timeouts although nothing was lost.
    SpuriousTimeouts,
    /// Nothing arrived for some time.
    Outage,
    /// Long packets do not arrive (RFC 2923).
    PathMtuBlackHole,
    /// The other end does not answer any more.
    PathDeath,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undetermined => "undetermined",
            Self::NotSlow => "not slow",
            Self::HandshakeRefused => "handshake refused",
            Self::HandshakeFailed => "handshake failed",
            Self::HandshakeDelayed => "handshake delayed",
            Self::ReceiverWindow => "receiver window",
            Self::NoWindowScaling => "no window scaling",
            Self::SlowReader => "slow reader",
            Self::SendBuffer => "send buffer",
            Self::SlowWriter => "slow writer",
            Self::ServerThinkTime => "server think time",
            Self::ClientThinkTime => "client think time",
            Self::SerialRequests => "serial requests",
            Self::NagleDelayedAck => "Nagle and delayed ACKs",
            Self::IdleRestart => "idle restart",
            Self::SlowStart => "slow start",
            Self::RandomLoss => "random loss",
            Self::BurstLoss => "burst loss",
            Self::Policer => "policer",
            Self::Bufferbloat => "bufferbloat",
            Self::LinkRate => "link rate",
            Self::EcnMarks => "ECN marks",
            Self::Reordering => "reordering",
            Self::Duplication => "duplication",
            Self::AckLoss => "ACK loss",
            Self::ThinUplink => "thin uplink",
            Self::SpuriousTimeouts => "spurious timeouts",
            Self::Outage => "outage",
            Self::PathMtuBlackHole => "path MTU black hole",
            Self::PathDeath => "path death",
        })
    }
}
