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
pub struct Listed {
    what: What,
    first: u64,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Packet,
    Ack,
    /// 0 is the first transmission.
    Segment {
        retransmission: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not name a packet: write \"segment 50\", \"segment 50 retransmission 1\", \"packet 7\", \
     \"packets 100-110\" or \"ack 3\", all counted from 1"
)]
/// A text that does not name a packet.
pub struct NotListed(String);

impl FromStr for Listed {
    type Err = NotListed;

    fn from_str(text: &str) -> Result<Self, NotListed> {
        let wrong = || NotListed(text.to_owned());
        let number = |text: &str| text.parse().ok().filter(|n: &u64| *n > 0).ok_or_else(wrong);
        let words: Vec<&str> = text.split_whitespace().collect();
        let (what, numbers, retransmission) = match words[..] {
            [what, numbers] => (what, numbers, 0),
            [what @ ("segment" | "segments"), numbers, "retransmission", n] => (what, numbers, number(n)?),
            _ => return Err(wrong()),
        };
        let what = match what {
            "packet" | "packets" => What::Packet,
            "ack" | "acks" => What::Ack,
            "segment" | "segments" => What::Segment { retransmission },
            _ => return Err(wrong()),
        };
        let (first, last) = match numbers.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(numbers)?, number(numbers)?),
        };
        if first > last {
            return Err(wrong());
        }
        Ok(Self { what, first, last })
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            What::Packet => "packet",
            What::Ack => "ack",
            What::Segment { .. } => "segment",
        })?;
        if self.first == self.last {
            write!(f, " {}", self.first)?;
        } else {
            write!(f, "s {}-{}", self.first, self.last)?;
        }
        match self.what {
            What::Segment { retransmission: n @ 1.. } => write!(f, " retransmission {n}"),
            _ => Ok(()),
        }
    }
}

impl TryFrom<String> for Listed {
    type Error = NotListed;
    fn try_from(text: String) -> Result<Self, NotListed> {
        text.parse()
    }
}

impl From<Listed> for String {
    fn from(listed: Listed) -> Self {
        listed.to_string()
    }
}

impl Listed {
    fn covers(&self, what: What, number: u64) -> bool {
        self.what == what && (self.first..=self.last).contains(&number)
    }

    fn retransmission_of(&self, segment: u64) -> Option<u64> {
        match self.what {
            What::Segment { retransmission: n @ 1.. } if (self.first..=self.last).contains(&segment) => {
                Some(n)
            }
            _ => None,
        }
    }
}

/// The list and the state of each flow.
#[derive(Debug)]
pub(super) struct DropList {
    listed: Vec<Listed>,
    /// Flows in this direction, by their endpoints. When there are `FLOWS`, a new flow replaces the least
    /// recently used one.
    flows: BTreeMap<Ends, Flow>,
    /// Counts TCP segments, as a clock for the least recently used flow.
    ticks: u64,
}

const FLOWS: usize = 4096;
/// Maximum number of segments per flow whose retransmissions the list waits for. A new segment replaces the
/// oldest one.
const AWAITED: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    from: SocketAddr,
    to: SocketAddr,
}

#[derive(Clone, Debug)]
struct Flow {
    /// Sequence number of the stream offset `end`.
    end_seq: u32,
    /// Stream offset after the highest byte seen, counted from 0.
    end: i64,
    /// Sequence number of the SYN. It distinguishes a retransmitted SYN from the SYN of a new connection.
    isn: Option<u32>,
    segments: u64,
    acks: u64,
    awaited: Vec<Awaited>,
    last_tick: u64,
}

/// A segment with retransmissions in the list.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    segment: u64,
    first_octet: i64,
    retransmissions: u64,
}

/// A TCP segment of a flow.
struct Segment<'a> {
    ends: Ends,
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
    pub(super) fn new(listed: &[Listed]) -> Self {
        Self { listed: listed.to_vec(), flows: BTreeMap::new(), ticks: 0 }
    }

    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn go_on_from(&mut self, old: &mut Self) {
        self.flows = std::mem::take(&mut old.flows);
        self.ticks = old.ticks;
    }

    /// Returns whether the list names this packet, which is the `number`-th one through the stage.
    pub(super) fn names(&mut self, number: u64, bytes: &[u8]) -> bool {
        // Always evaluate the segment, because every packet updates the state of its flow.
        let as_segment = segment_of(bytes).is_some_and(|segment| self.names_segment(&segment));
        as_segment || self.listed.iter().any(|listed| listed.covers(What::Packet, number))
    }

    fn names_segment(&mut self, segment: &Segment<'_>) -> bool {
        self.ticks += 1;
        let Self { listed, flows, ticks } = self;
        if !flows.contains_key(&segment.ends) && flows.len() == FLOWS {
            let oldest = flows.iter().min_by_key(|(_, flow)| flow.last_tick).map(|(ends, _)| *ends);
            oldest.and_then(|ends| flows.remove(&ends));
        }
        let flow = flows.entry(segment.ends).or_insert_with(|| Flow::new(segment));
        if segment.is_syn() && flow.isn != Some(segment.seq()) {
            *flow = Flow::new(segment);
        }
        flow.last_tick = *ticks;
        flow.names(listed, segment)
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
            awaited: Vec::new(),
            last_tick: 0,
        }
    }

    fn names(&mut self, listed: &[Listed], segment: &Segment<'_>) -> bool {
        let payload = segment.tcp.payload.len();
        if payload == 0 {
            if !segment.tcp.is_pure_ack() {
                return false;
            }
            self.acks += 1;
            return listed.iter().any(|listed| listed.covers(What::Ack, self.acks));
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
        if is_new { self.names_new(listed, start) } else { self.names_again(listed, start..end) }
    }

    fn names_new(&mut self, listed: &[Listed], first_octet: i64) -> bool {
        self.segments += 1;
        let segment = self.segments;
        if listed.iter().any(|listed| listed.retransmission_of(segment).is_some()) {
            if self.awaited.len() == AWAITED {
                self.awaited.remove(0);
            }
            self.awaited.push(Awaited { segment, first_octet, retransmissions: 0 });
        }
        listed.iter().any(|listed| listed.covers(What::Segment { retransmission: 0 }, segment))
    }

    fn names_again(&mut self, listed: &[Listed], octets: std::ops::Range<i64>) -> bool {
        let mut named = false;
        self.awaited.retain_mut(|awaited| {
            if !octets.contains(&awaited.first_octet) {
                return true;
            }
            awaited.retransmissions += 1;
            let n = awaited.retransmissions;
            let mut later = listed.iter().filter_map(|listed| listed.retransmission_of(awaited.segment));
            named |= later.clone().any(|retransmission| retransmission == n);
            later.any(|retransmission| retransmission > n)
        });
        named
    }
}

/// Parses the packet. Returns `None` if it is not a TCP segment with a complete header, or if it is a
/// fragment.
fn segment_of(bytes: &[u8]) -> Option<Segment<'_>> {
    let view = View::complete(bytes).filter(|view| view.fragment.is_none())?;
    let tcp = view.tcp()?;
    let from = SocketAddr::new(view.source(), tcp.header.src_port);
    let to = SocketAddr::new(view.destination(), tcp.header.dst_port);
    Some(Segment { ends: Ends { from, to }, tcp })
}
