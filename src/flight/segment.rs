//! One segment in flight, and what an ACK reports about segments.

use airwire::time::Instant;

/// The sender's knowledge about a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentState {
    /// Sent once and not reported as received or lost.
    InFlight,
    /// Marked lost and not retransmitted since.
    Lost,
    /// Marked lost and retransmitted: the retransmission is in flight.
    Resent,
    /// Retransmitted without having been marked lost: both transmissions count as in flight (RFC 6675 §4,
    /// SetPipe).
    InDoubt,
    /// Reported as received by SACK.
    Sacked,
}

/// A segment on the list. SYN and FIN take one offset each, like a byte.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Stream offset of its first byte.
    pub start: u64,
    /// Offset after its last byte.
    pub end: u64,
    /// Time of the segment's first transmission.
    pub first_sent: Instant,
    /// Time of the segment's latest transmission.
    pub last_sent: Instant,
    /// Number of transmissions, including the first.
    pub transmissions: u16,
    /// The sender's knowledge about the segment.
    pub state: SegmentState,
    /// True for an MTU probe and its parts: it was sent with more data than the path is known to deliver.
    pub probes_mtu: bool,
    /// Timestamp value (RFC 7323) of its latest transmission.
    pub tsval: u32,
    /// `Flight::delivered` at its latest transmission, for rate estimates.
    pub delivered_when_sent: u64,
}

impl Sent {
    /// Returns the number of sequence numbers that the segment takes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Returns true if the segment takes no sequence number. A segment on the list always takes one.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn delivery(&self) -> Delivery {
        let resent = self.transmissions > 1;
        Delivery { sent_at: self.last_sent, end: self.end, tsval: self.tsval, resent }
    }
}

/// The most recently sent segment among those newly delivered (RFC 8985 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time of the segment's latest transmission.
    pub sent_at: Instant,
    /// Offset after its last byte.
    pub end: u64,
    /// Timestamp value of its latest transmission.
    pub tsval: u32,
    /// True if the segment was sent more than once. It is then unclear which transmission arrived.
    pub resent: bool,
}

impl Delivery {
    fn order(self) -> (Instant, u64) {
        (self.sent_at, self.end)
    }

    /// Returns the later of two deliveries by RACK_sent_after() (RFC 8985 §5.2). If both were sent at the
    /// same time, it is the one with the higher end.
    pub(crate) fn later(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        b.map_or(a, |b| Some(b.or_later(a)))
    }

    /// Returns `other` if it is later, otherwise `self`.
    pub(super) fn or_later(self, other: Option<Self>) -> Self {
        other.filter(|other| other.order() > self.order()).unwrap_or(self)
    }
}

/// Newly delivered segments that were sent only once. It is clear which transmission arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Originals {
    /// The lowest segment: the offset of its first byte, and one past its last byte.
    pub lowest: Option<(u64, u64)>,
    /// The most recently sent segment.
    pub newest: Option<Delivery>,
}

impl Originals {
    pub(super) fn add(&mut self, sent: &Sent) {
        let range = (sent.start, sent.end);
        self.lowest = Some(self.lowest.map_or(range, |lowest| lowest.min(range)));
        self.newest = Some(sent.delivery().or_later(self.newest));
    }

    /// Adds the segments of `other`, which the same ACK delivered.
    pub(crate) fn merge(&mut self, other: Self) {
        self.lowest = self.lowest.into_iter().chain(other.lowest).min();
        self.newest = Delivery::later(self.newest, other.newest);
    }
}

/// A number of bytes and the corresponding number of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes; a SYN and a FIN count as one each.
    pub bytes: u64,
    /// Number of entries on the list.
    pub segments: u64,
}

impl Amount {
    pub(super) fn add(&mut self, bytes: u64, segments: u64) {
        self.bytes += bytes;
        self.segments += segments;
    }

    pub(super) fn sub(&mut self, bytes: u64, segments: u64) {
        self.bytes -= bytes;
        self.segments -= segments;
    }
}

/// The effect of a cumulative ACK on the list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// Everything acknowledged. A partly acknowledged segment adds bytes but no segment.
    pub amount: Amount,
    /// The part that had been SACKed before: delivered earlier and only now acknowledged in sequence.
    pub sacked_before: Amount,
    /// True if at least one of the segments had been retransmitted (Karn).
    pub any_resent: bool,
    /// Sending time of the oldest covered segment that was sent only once and had not been SACKed.
    pub oldest_unambiguous: Option<Instant>,
    /// The most recently sent of the segments that had not been SACKed.
    pub newest: Option<Delivery>,
    /// The last of these segments in sequence.
    pub last: Option<Delivery>,
    /// The segments sent only once that had not been SACKed.
    pub originals: Originals,
    /// Timestamp value of the latest transmission of the last covered segment.
    pub last_tsval: Option<u32>,
}

/// The new information in the SACK blocks of one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sacked {
    /// Everything newly SACKed, in whole segments.
    pub amount: Amount,
    /// The highest newly SACKed segment.
    pub highest: Option<Delivery>,
    /// The most recently sent of the newly SACKed segments.
    pub newest: Option<Delivery>,
    /// The newly SACKed segments that were sent only once.
    pub originals: Originals,
    /// Sending time of the oldest of these.
    pub oldest_original: Option<Instant>,
}
