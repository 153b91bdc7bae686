//! Compares the clocks of captures, using the packets at their beginnings.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use airlink_fit::clock::{Clock, OffsetRange};
use airwire::direction::Direction;

use super::reader::Reader;
use super::tracker::key;

/// Number of packets of each capture that are compared.
const COMPARED_PACKETS: usize = 20_000;

#[derive(Debug)]
pub(super) struct Clocks {
    pub(super) captures: Vec<Clock>,
    /// The end of the path at which each host is located.
    pub(super) sides: BTreeMap<IpAddr, Direction>,
    /// The time when the last capture began, in the clock of the first capture.
    pub(super) all_began: i64,
}

type Addresses = (SocketAddr, SocketAddr);

/// The time of each packet. `None` for packets that cannot be distinguished from each other.
type Head = BTreeMap<(Addresses, u64), Option<i64>>;

fn head(reader: &mut Reader) -> (i64, Head) {
    let mut head = Head::new();
    // The beginning of an empty capture does not matter.
    let begin = reader.peek().map_or(i64::MIN, |packet| packet.at.0);
    for _ in 0..COMPARED_PACKETS {
        let Some(packet) = reader.take() else { break };
        let once = head.entry(((packet.src, packet.dst), key(&packet)));
        once.and_modify(|at| *at = None).or_insert(Some(packet.at.0));
    }
    (begin, head)
}

fn later(first: &Head, other: &Head) -> BTreeMap<Addresses, OffsetRange> {
    let mut flows: BTreeMap<Addresses, OffsetRange> = BTreeMap::new();
    for ((flow, key), at) in first {
        let (Some(at), Some(Some(there))) = (at, other.get(&(*flow, *key))) else { continue };
        let later = OffsetRange::of(*at, *there);
        flows.entry(*flow).and_modify(|known| *known = known.and(later)).or_insert(later);
    }
    flows
}

pub(super) fn compare(readers: &mut [Reader], given: Option<&[i64]>) -> Clocks {
    let heads: Vec<_> = readers.iter_mut().map(head).collect();
    let mut sides = BTreeMap::new();
    let mut captures = vec![Clock::Same];
    let mut all_began = heads[0].0;
    // Begin with the last capture: it is the farthest, so it shows best at which end each host is.
    for at in (1..heads.len()).rev() {
        let flows = later(&heads[0].1, &heads[at].1);
        let ahead = given.map(|given| given[at - 1]);
        for ((from, to), there) in &flows {
            let back = flows.get(&(*to, *from));
            let forth = there.is_forward(back.copied(), ahead.unwrap_or(0));
            let direction = if forth { Direction::Down } else { Direction::Up };
            sides.entry(from.ip()).or_insert(direction);
            sides.entry(to.ip()).or_insert_with(|| direction.reversed());
        }
        let clock = match ahead {
            Some(ahead_ns) => Clock::Given { ahead_ns },
            None => Clock::estimated(
                flows.iter().map(|((from, _), later)| (sides[&from.ip()] == Direction::Down, *later)),
            ),
        };
        captures.insert(1, clock);
        all_began = all_began.max(heads[at].0.saturating_sub(clock.ahead()));
    }
    Clocks { captures, sides, all_began }
}
