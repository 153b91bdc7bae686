//! Time-sequence data of one direction of a connection, from which graphs are drawn.
//!
//! A [`Trace`] is kept only for the connections that [`Traces`](crate::connections::Traces) selects. The
//! findings do not depend on it.

use airwire::Cause;
use serde::{Serialize, Serializer};

use crate::connection::findings::RttOf;

/// The data that one end sent, and the ACKs for this data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace {
    /// Sender and receiver: `10.83.0.2:52279 → 100.64.0.2:9000`.
    pub name: String,
    /// The time of the connection's first packet, in nanoseconds since 1970. All offsets below are relative
    /// to this time.
    pub origin: i64,
    /// The segments, in the order of the capture.
    pub segments: Vec<SentSegment>,
    /// The ACKs, in the order of the capture.
    pub acks: Vec<AckSeen>,
    /// The RTT samples, in the order of the ACKs that completed them.
    pub rtt: Vec<RttSample>,
    /// The part of the round trip that `rtt` measures.
    pub rtt_of: RttOf,
    /// The windows, with one point per change.
    pub windows: Vec<WindowPoint>,
    /// Idle periods that a timeout ended.
    pub idle: Vec<Idle>,
    /// The sender's decisions. Empty unless its decision log was merged into the trace.
    pub decisions: Vec<DecisionSeen>,
    /// Times when the sender was in loss recovery or had a reduced window. Empty unless its decision log was
    /// merged.
    pub episodes: Vec<EpisodeSeen>,
}

/// Nanoseconds since the trace's `origin`.
pub type Offset = i64;

/// A packet with payload, a SYN or a FIN.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentSegment {
    /// The time when the segment passed the capture point.
    pub at: Offset,
    /// The frame number.
    pub number: u64,
    /// The first byte of the segment's sequence space. The SYN is 0.
    pub start: u64,
    /// One past the last byte of its sequence space.
    pub end: u64,
    /// The reason why the segment was sent.
    pub sending: Sending,
    /// Number of duplicate ACKs received when the segment was sent.
    pub dupacks: u32,
    /// Number of segments in flight when the segment was sent, without this one.
    pub in_flight: u32,
    /// The fate of the segment.
    pub fate: Fate,
}

/// The reason why a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// New data.
    New,
    /// A fast retransmission: after duplicate ACKs, for a hole that SACK or a partial ACK revealed, or
    /// because data sent later has arrived.
    Fast,
    /// A retransmission by the retransmission timer, or during the recovery after a timeout.
    Timeout,
    /// A tail loss probe: the last segment, retransmitted before the timer expires.
    Tail,
    /// A zero-window probe of one byte, or a keep-alive.
    Probe,
    /// A retransmission whose reason the capture does not show.
    Unexplained,
}

/// The fate of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Fate {
    /// Unknown, because one capture alone does not show it.
    #[default]
    Unknown,
    /// The segment arrived at the receiver's end.
    Arrived {
        /// The time when the segment passed the receiver's capture point.
        at: Offset,
    },
    /// The segment was lost.
    Lost(Loss),
    /// A spurious retransmission: the receiver already had all of its data.
    Spurious {
        /// The evidence.
        proof: Proof,
    },
}

/// The known facts about the loss of a packet.
///
/// The JSON form is `{"place":"between","before":1}`, `{"place":"congestion"}` or `{"place":"radio"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The packet was lost between two captures, for an unknown reason.
    Between {
        /// The first capture without the packet, counted from 0 in the order of the path.
        before: usize,
    },
    /// airlink's events state why the packet was dropped.
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

/// The evidence that a retransmission was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The ACK echoes a timestamp from before the retransmission (Eifel, RFC 3522).
    Timestamp,
    /// The receiver reported a duplicate (D-SACK, RFC 2883).
    Dsack,
    /// Both copies are in the capture at the receiver's end.
    Arrival,
    /// The data had been acknowledged before.
    Acked,
}

/// A packet that acknowledges data of this direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AckSeen {
    /// The time when the ACK passed the capture point.
    pub at: Offset,
    /// The frame number.
    pub number: u64,
    /// The next byte that the receiver expects.
    pub ack: u64,
    /// The right edge of the receiver's window: `ack` plus the scaled window.
    pub edge: u64,
    /// A duplicate ACK in the sense of RFC 5681 §2.
    pub duplicate: bool,
    /// The SACK blocks, each from the first byte to one past the last.
    pub sack: Vec<(u64, u64)>,
}

/// One RTT sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RttSample {
    /// The time of the ACK that completed the sample.
    pub at: Offset,
    /// The measured RTT.
    pub seconds: f64,
    /// Whether timestamps were used. Otherwise, the segment was transmitted only once (Karn's algorithm).
    pub timestamps: bool,
}

/// The sender's window at a point in time, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowPoint {
    /// The time from which the values apply.
    pub at: Offset,
    /// The bytes in flight.
    pub in_flight: u64,
    /// The sender's window, estimated from the data in flight.
    pub estimated: u64,
    /// The congestion window in the decision log. `None` without a log.
    pub cwnd: Option<f64>,
    /// The threshold in the decision log. `None` without a log, or while the threshold is arbitrarily high.
    pub ssthresh: Option<f64>,
}

/// An idle period that a timeout ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Idle {
    /// The time of the last packet before the period.
    pub from: Offset,
    /// The time of the retransmission that ended the period.
    pub to: Offset,
}

/// A decision in the sender's log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionSeen {
    /// The time of the decision.
    pub at: Offset,
    /// The name of the algorithm that decided.
    pub by: String,
    /// The kind of decision: `lost`, `resend`, `window`, `undo` …
    pub what: String,
    /// The whole decision in one readable line.
    pub text: String,
    /// The range of sequence space that the decision concerns.
    pub about: Option<(u64, u64)>,
}

/// A period during which the sender's loss recovery was in one state, according to its log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EpisodeSeen {
    /// The beginning.
    pub from: Offset,
    /// The end.
    pub to: Offset,
    /// The state: `reduced`, `recovery` or `restarted`. `open` is not an episode.
    pub state: String,
    /// The event that started it.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_fate_serializes_with_loss_place() {
        for (loss, json) in [
            (Loss::Between { before: 2 }, r#"{"is":"lost","place":"between","before":2}"#),
            (Loss::Airlink(Cause::Congestion), r#"{"is":"lost","place":"congestion"}"#),
            (Loss::Airlink(Cause::Radio), r#"{"is":"lost","place":"radio"}"#),
        ] {
            assert_eq!(serde_json::to_string(&Fate::Lost(loss)).unwrap(), json);
        }
    }
}
