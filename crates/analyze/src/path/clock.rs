//! Compares the captures' clocks by the packets at their beginnings.
//!
//! A packet takes d one way, and another takes d′ back. If the second clock is ahead by o, they seem to take d + o and
//! d′ − o. From both together follows which host is on which side, whatever o is.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::Way;
use super::reader::Reader;
use super::tracker::key;

/// Packets of each capture that are looked at.
const HEAD: usize = 20_000;
/// Nanoseconds by which a capturing program may stamp a packet too late.
const JITTER: i64 = 1_000_000;

/// What a capture's clock was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Clock {
    /// The same as the first one's: nothing speaks against it.
    Same,
    /// The user says by how much it is ahead.
    Given {
        /// Nanoseconds; negative if it is behind.
        ahead_ns: i64,
    },
    /// With the first one's clock, packets would have arrived before they left. It is taken to be ahead by so much that
    /// the least delay is the same both ways.
    Estimated {
        /// Nanoseconds; negative if it is behind.
        ahead_ns: i64,
    },
}

impl Clock {
    pub(super) fn ahead(self) -> i64 {
        match self {
            Self::Same => 0,
            Self::Given { ahead_ns } | Self::Estimated { ahead_ns } => ahead_ns,
        }
    }
}

#[derive(Debug)]
pub(super) struct Clocks {
    pub(super) captures: Vec<Clock>,
    /// The end of the path at which each host is.
    pub(super) sides: BTreeMap<IpAddr, Way>,
    /// When the last of the captures began, in the first one's clock.
    pub(super) all_began: i64,
}

type Addresses = (SocketAddr, SocketAddr);

/// When each packet came by; `None` for packets that cannot be told from one another.
type Head = BTreeMap<(Addresses, u64), Option<i64>>;

fn head(reader: &mut Reader) -> (i64, Head) {
    let mut head = Head::new();
    let mut begin = i64::MIN;
    for _ in 0..HEAD {
        let Some(packet) = reader.take() else { break };
        if begin == i64::MIN {
            begin = packet.at.0;
        }
        let once = head.entry(((packet.src, packet.dst), key(&packet)));
        once.and_modify(|at| *at = None).or_insert(Some(packet.at.0));
    }
    (begin, head)
}

/// How much later packets with the same addresses seem to be at another capture, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Later {
    least: i64,
    most: i64,
}

fn later(first: &Head, other: &Head) -> BTreeMap<Addresses, Later> {
    let mut flows: BTreeMap<Addresses, Later> = BTreeMap::new();
    for ((flow, key), at) in first {
        let (Some(at), Some(Some(there))) = (at, other.get(&(*flow, *key))) else { continue };
        let by = there - at;
        let known = flows.entry(*flow).or_insert(Later { least: by, most: by });
        (known.least, known.most) = (known.least.min(by), known.most.max(by));
    }
    flows
}

pub(super) fn compare(readers: &mut [Reader], given: Option<&[i64]>) -> Clocks {
    let heads: Vec<_> = readers.iter_mut().map(head).collect();
    let mut sides = BTreeMap::new();
    let mut captures = vec![Clock::Same];
    let mut all_began = heads[0].0;
    // The last capture comes first: being the farthest, it tells best which host is at which end.
    for at in (1..heads.len()).rev() {
        let flows = later(&heads[0].1, &heads[at].1);
        let ahead = given.map(|given| given[at - 1]);
        for ((from, to), there) in &flows {
            let back = flows.get(&(*to, *from));
            let forth = match back {
                Some(back) => there.least + there.most > back.least + back.most,
                None => there.least - ahead.unwrap_or(0) >= 0,
            };
            let way = if forth { Way::Forth } else { Way::Back };
            sides.entry(from.ip()).or_insert(way);
            sides.entry(to.ip()).or_insert_with(|| way.turned());
        }
        let clock = match ahead {
            Some(ahead_ns) => Clock::Given { ahead_ns },
            None => estimate(&flows, &sides),
        };
        captures.insert(1, clock);
        if heads[at].0 != i64::MIN {
            all_began = all_began.max(heads[at].0 - clock.ahead());
        }
    }
    Clocks { captures, sides, all_began }
}

fn estimate(flows: &BTreeMap<Addresses, Later>, sides: &BTreeMap<IpAddr, Way>) -> Clock {
    let of = |way| flows.iter().filter(move |((from, _), _)| sides.get(&from.ip()) == Some(&way));
    let forth = of(Way::Forth).map(|(_, later)| later.least).min();
    let back = of(Way::Back).map(|(_, later)| later.most).max();
    let is_possible = forth.is_none_or(|least| least >= -JITTER) && back.is_none_or(|most| most <= JITTER);
    match (forth, back) {
        _ if is_possible => Clock::Same,
        (Some(least), Some(most)) => Clock::Estimated { ahead_ns: least / 2 + most / 2 },
        (Some(by), None) | (None, Some(by)) => Clock::Estimated { ahead_ns: by },
        (None, None) => Clock::Same,
    }
}
