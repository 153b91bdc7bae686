//! One direction of a connection, event by event in time: what pictures are drawn from.
//!
//! A [`Trace`] is kept only for connections that [`Traces`](crate::connections::Traces) asks for. Findings do not
//! need it.

use airwire::Cause;
use serde::{Serialize, Serializer};

use crate::connection::findings::RttOf;

/// The data that one end sent, and what came back for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace {
    /// `10.83.0.2:52279 → 100.64.0.2:9000`.
    pub name: String,
    /// The connection's first packet in nanoseconds since 1970: `at` = 0 everywhere below.
    pub origin: i64,
    /// In the order of the capture.
    pub segments: Vec<SentSegment>,
    /// In the order of the capture.
    pub acks: Vec<AckSeen>,
    /// In the order of the ACKs that brought them.
    pub rtt: Vec<RttSample>,
    /// What these measure.
    pub rtt_of: RttOf,
    /// One point for each change.
    pub windows: Vec<WindowPoint>,
    /// Silence that ended with a timeout.
    pub idle: Vec<Idle>,
    /// What the sender itself decided. Empty unless its own log was laid over the trace.
    pub decisions: Vec<DecisionSeen>,
    /// When the sender was repairing a loss, or had reduced its window. Empty unless its own log was laid over the trace.
    pub episodes: Vec<EpisodeSeen>,
}

/// Nanoseconds since the trace's `origin`.
pub type Offset = i64;

/// A packet with payload, a SYN or a FIN.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentSegment {
    /// When it came past the capture.
    pub at: Offset,
    /// Frame number.
    pub number: u64,
    /// First octet of sequence space, the SYN being 0.
    pub start: u64,
    /// One past the last octet of sequence space.
    pub end: u64,
    /// Why it was sent.
    pub sending: Sending,
    /// Duplicate ACKs that had come when it left.
    pub dupacks: u32,
    /// Segments in flight when it left, without this one.
    pub in_flight: u32,
    /// What became of it.
    pub fate: Fate,
}

/// Why a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// For the first time.
    New,
    /// Again: after duplicate ACKs, for a hole that SACK or a partial ACK showed, or because what left later has
    /// arrived.
    Fast,
    /// Again: by the retransmission timer, or in the recovery that a timeout began.
    Timeout,
    /// Again: the last segment, before the timer would have sent it.
    Tail,
    /// One octet into a closed window, or a keep-alive.
    Probe,
    /// Again, but nothing in the capture tells why.
    Unexplained,
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Fate {
    /// One capture alone does not say.
    #[default]
    Unknown,
    /// It came to the receiver's end.
    Arrived {
        /// When it came past the receiver's capture.
        at: Offset,
    },
    /// It was lost.
    Lost(Loss),
    /// The receiver had all of it already: sending it again was a mistake.
    Unneeded {
        /// What shows that.
        proof: Proof,
    },
}

/// What is known about the loss of a packet.
///
/// As JSON it is `{"place":"between","before":1}`, `{"place":"congestion"}` or `{"place":"radio"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It was lost between two captures; why is not known.
    Between {
        /// The first capture that does not have it, counted from 0 in the order of the path.
        before: usize,
    },
    /// airlink's events say why it was dropped.
    Airlink(Cause),
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "kebab-case", tag = "place")]
        enum Row {
            Between { before: usize },
            Congestion,
            Radio,
        }
        let row = match *self {
            Self::Between { before } => Row::Between { before },
            Self::Airlink(Cause::Congestion) => Row::Congestion,
            Self::Airlink(Cause::Radio) => Row::Radio,
        };
        row.serialize(serializer)
    }
}

/// What shows that a retransmission was a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The ACK echoes a timestamp from before the retransmission (Eifel, RFC 3522).
    Timestamp,
    /// The receiver reported a duplicate (D-SACK, RFC 2883).
    Dsack,
    /// Both copies are in the capture of the receiver's end.
    Arrival,
    /// The ACK for it had come past before.
    Acked,
}

/// A packet that acknowledges data of this direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AckSeen {
    /// When it came past the capture.
    pub at: Offset,
    /// Frame number.
    pub number: u64,
    /// The next octet that the receiver expects.
    pub ack: u64,
    /// The right edge of the receiver's window: `ack` plus the scaled window.
    pub edge: u64,
    /// A duplicate ACK in the sense of RFC 5681 §2.
    pub duplicate: bool,
    /// The blocks of the SACK option, from the first octet to one past the last.
    pub sack: Vec<(u64, u64)>,
}

/// One measured round trip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RttSample {
    /// When the ACK came that ended it.
    pub at: Offset,
    /// How long it was.
    pub seconds: f64,
    /// Measured by timestamps; else from a segment that was sent once (Karn).
    pub timestamps: bool,
}

/// The sender's window at a moment, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowPoint {
    /// Since when it holds.
    pub at: Offset,
    /// Octets in flight.
    pub in_flight: u64,
    /// The sender's window as what is in flight shows it.
    pub estimated: u64,
    /// What the sender's own log says; `None` without a log.
    pub cwnd: Option<f64>,
    /// What the sender's own log says; `None` without a log, or while it is arbitrarily high.
    pub ssthresh: Option<f64>,
}

/// Silence that ended with a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Idle {
    /// The last packet before it.
    pub from: Offset,
    /// The retransmission that ended it.
    pub to: Offset,
}

/// A decision in the sender's own log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionSeen {
    /// When it was taken.
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

/// A time in which a sender's loss recovery was in one state, by its own log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EpisodeSeen {
    /// The begin.
    pub from: Offset,
    /// The end.
    pub to: Offset,
    /// `reduced`, `recovery` or `restarted`: not `open`.
    pub state: String,
    /// What began it.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_written_beside_the_fate() {
        for (loss, json) in [
            (Loss::Between { before: 2 }, r#"{"is":"lost","place":"between","before":2}"#),
            (Loss::Airlink(Cause::Congestion), r#"{"is":"lost","place":"congestion"}"#),
            (Loss::Airlink(Cause::Radio), r#"{"is":"lost","place":"radio"}"#),
        ] {
            assert_eq!(serde_json::to_string(&Fate::Lost(loss)).unwrap(), json);
        }
    }
}
