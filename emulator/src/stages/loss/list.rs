//! Deterministic losses: exactly the packets that a list names.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use airwire::segment::Flags;
use airwire::view::{Tcp, View};
use serde::{Deserialize, Serialize};

/// One item of a drop list: "segment 50", "segment 50 retransmission 1", "segments 50-53", "packet 7",
/// "packets 100-110", "ack 3".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DropItem {
    kind: ItemKind,
    first: u64,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Packet,
    Ack,
    /// The first transmission has the number 0.
    Segment {
        retransmission: u64,
    },
}

/// A text that does not name a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not name a packet: write \"segment 50\", \"segment 50 retransmission 1\", \"packet 7\", \
     \"packets 100-110\" or \"ack 3\", all counted from 1"
)]
pub struct ParseDropItemError(String);

impl FromStr for DropItem {
    type Err = ParseDropItemError;

    fn from_str(text: &str) -> Result<Self, ParseDropItemError> {
        let wrong = || ParseDropItemError(text.to_owned());
        let number = |text: &str| text.parse().ok().filter(|n: &u64| *n > 0).ok_or_else(wrong);
        let words: Vec<&str> = text.split_whitespace().collect();
        let (kind, numbers) = match words[..] {
            ["packet" | "packets", numbers] => (ItemKind::Packet, numbers),
            ["ack" | "acks", numbers] => (ItemKind::Ack, numbers),
            ["segment" | "segments", numbers] => (ItemKind::Segment { retransmission: 0 }, numbers),
            ["segment" | "segments", numbers, "retransmission", n] => {
                (ItemKind::Segment { retransmission: number(n)? }, numbers)
            }
            _ => return Err(wrong()),
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        Ok(Self { kind, first, last })
    }
}

impl fmt::Display for DropItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ItemKind::Packet => "packet",
            ItemKind::Ack => "ack",
            ItemKind::Segment { .. } => "segment",
        })?;
        if self.first == self.last {
            write!(f, " {}", self.first)?;
        } else {
            write!(f, "s {}-{}", self.first, self.last)?;
        }
        match self.kind {
            ItemKind::Segment { retransmission: n @ 1.. } => write!(f, " retransmission {n}"),
            _ => Ok(()),
        }
    }
}

impl TryFrom<String> for DropItem {
    type Error = ParseDropItemError;
    fn try_from(text: String) -> Result<Self, ParseDropItemError> {
        text.parse()
    }
}

impl From<DropItem> for String {
    fn from(item: DropItem) -> Self {
        item.to_string()
    }
}

impl DropItem {
    fn covers(&self, kind: ItemKind, number: u64) -> bool {
        self.kind == kind && (self.first..=self.last).contains(&number)
    }

    fn retransmission_of(&self, segment: u64) -> Option<u64> {
        match self.kind {
            ItemKind::Segment { retransmission: n @ 1.. } if (self.first..=self.last).contains(&segment) => {
                Some(n)
            }
            _ => None,
        }
    }
}

/// The list and the state of each flow.
#[derive(Debug)]
pub(super) struct DropList {
    items: Vec<DropItem>,
    /// Flows in this direction, by their endpoints. When there are `MAX_FLOWS`, a new flow replaces the least
    /// recently used one.
    flows: BTreeMap<Endpoints, Flow>,
    /// Number of TCP segments so far. It orders flows by their last use.
    segments: u64,
}

const MAX_FLOWS: usize = 4096;
/// Maximum number of segments per flow whose retransmissions are counted. A new segment replaces the oldest
/// one.
const MAX_TRACKED: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Endpoints {
    from: SocketAddr,
    to: SocketAddr,
}

#[derive(Clone, Debug)]
struct Flow {
    /// Sequence number of the stream offset `end`.
    end_seq: u32,
    /// Stream offset after the highest byte so far, counted from 0.
    end: i64,
    /// Sequence number of the SYN. It distinguishes a retransmitted SYN from the SYN of a new connection.
    isn: Option<u32>,
    segments: u64,
    acks: u64,
    tracked: Vec<TrackedSegment>,
    last_use: u64,
}

/// A segment with retransmissions in the list.
#[derive(Clone, Copy, Debug)]
struct TrackedSegment {
    segment: u64,
    first_byte: i64,
    retransmissions: u64,
}

/// A TCP segment of a flow.
struct Segment<'a> {
    endpoints: Endpoints,
    tcp: Tcp<'a>,
}

impl Segment<'_> {
    fn seq(&self) -> u32 {
        self.tcp.header.seq.0
    }

    fn is_syn(&self) -> bool {
        self.tcp.header.flags.contains(Flags::SYN)
    }
}

impl DropList {
    pub(super) fn new(items: &[DropItem]) -> Self {
        Self { items: items.to_vec(), flows: BTreeMap::new(), segments: 0 }
    }

    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn continue_from(&mut self, old: &mut Self) {
        self.flows = std::mem::take(&mut old.flows);
        self.segments = old.segments;
    }

    /// Returns whether an item covers this packet, which is the `number`-th one through the stage.
    pub(super) fn matches(&mut self, number: u64, bytes: &[u8]) -> bool {
        // Always evaluate the segment, because every packet updates the state of its flow.
        let is_listed_segment = segment_of(bytes).is_some_and(|segment| self.matches_segment(&segment));
        is_listed_segment || self.items.iter().any(|item| item.covers(ItemKind::Packet, number))
    }

    fn matches_segment(&mut self, segment: &Segment<'_>) -> bool {
        self.segments += 1;
        let Self { items, flows, segments } = self;
        if !flows.contains_key(&segment.endpoints) && flows.len() == MAX_FLOWS {
            let oldest = flows.iter().min_by_key(|(_, flow)| flow.last_use).map(|(endpoints, _)| *endpoints);
            oldest.and_then(|endpoints| flows.remove(&endpoints));
        }
        let flow = flows.entry(segment.endpoints).or_insert_with(|| Flow::new(segment));
        if segment.is_syn() && flow.isn != Some(segment.seq()) {
            *flow = Flow::new(segment);
        }
        flow.last_use = *segments;
        flow.matches(items, segment)
    }
}

impl Flow {
    fn new(segment: &Segment<'_>) -> Self {
        Self {
            end_seq: segment.seq().wrapping_add(segment.is_syn().into()),
            end: 0,
            isn: segment.is_syn().then_some(segment.seq()),
            segments: 0,
            acks: 0,
            tracked: Vec::new(),
            last_use: 0,
        }
    }

    fn matches(&mut self, items: &[DropItem], segment: &Segment<'_>) -> bool {
        let payload = segment.tcp.payload.len();
        if payload == 0 {
            if !segment.tcp.is_pure_ack() {
                return false;
            }
            self.acks += 1;
            return items.iter().any(|item| item.covers(ItemKind::Ack, self.acks));
        }
        let first_seq = segment.seq().wrapping_add(segment.is_syn().into());
        // The distance is below 2^31 in both directions, because windows are at most 2^30 (RFC 7323 §2.3).
        let start = self.end + i64::from(first_seq.wrapping_sub(self.end_seq) as i32);
        let end = start + payload as i64;
        let is_new = start >= self.end;
        if end > self.end {
            self.end = end;
            self.end_seq = first_seq.wrapping_add(payload as u32);
        }
        if is_new { self.matches_new(items, start) } else { self.matches_retransmission(items, start..end) }
    }

    fn matches_new(&mut self, items: &[DropItem], first_byte: i64) -> bool {
        self.segments += 1;
        let segment = self.segments;
        if items.iter().any(|item| item.retransmission_of(segment).is_some()) {
            if self.tracked.len() == MAX_TRACKED {
                self.tracked.remove(0);
            }
            self.tracked.push(TrackedSegment { segment, first_byte, retransmissions: 0 });
        }
        items.iter().any(|item| item.covers(ItemKind::Segment { retransmission: 0 }, segment))
    }

    fn matches_retransmission(&mut self, items: &[DropItem], bytes: std::ops::Range<i64>) -> bool {
        let mut is_listed = false;
        self.tracked.retain_mut(|tracked| {
            if !bytes.contains(&tracked.first_byte) {
                return true;
            }
            tracked.retransmissions += 1;
            let current = tracked.retransmissions;
            let mut listed = items.iter().filter_map(|item| item.retransmission_of(tracked.segment));
            is_listed |= listed.clone().any(|retransmission| retransmission == current);
            listed.any(|retransmission| retransmission > current)
        });
        is_listed
    }
}

/// Parses the packet. Returns `None` if it is not a TCP segment with a complete header, or if it is a
/// fragment.
fn segment_of(bytes: &[u8]) -> Option<Segment<'_>> {
    let view = View::complete(bytes).filter(|view| view.fragment.is_none())?;
    let tcp = view.tcp()?;
    let from = SocketAddr::new(view.source(), tcp.header.src_port);
    let to = SocketAddr::new(view.destination(), tcp.header.dst_port);
    Some(Segment { endpoints: Endpoints { from, to }, tcp })
}
