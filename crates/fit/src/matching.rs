//! Matches the packets of two captures of one path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use airwire::direction::{Direction, PerDirection};
use airwire::time::Instant;

use crate::clock::{Clock, Later};
use crate::identity::{Identity, identify};
use crate::{Crossing, Recorded, Recording};

/// The packets captured at one end.
#[derive(Clone, Debug, Default)]
pub struct Observed(Vec<Seen>);

impl Observed {
    /// Adds a packet, with its time in nanoseconds of this end's clock and its captured bytes. Data other
    /// than IP is ignored.
    pub fn packet(&mut self, at: i64, packet: &[u8]) {
        self.0.extend(identify(packet).map(|identity| Seen { at, identity }));
    }

    /// Whether the capture is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Result of matching two captures.
#[derive(Clone, Debug)]
pub struct Matched {
    /// Entry and exit of each packet.
    pub recording: Recording,
    /// Relation of the two clocks.
    pub clock: Clock,
    /// Packets that left the path without an entry, although other packets of the same flow were matched.
    pub unmatched_arrivals: u64,
    /// Packets longer than the MTU of Ethernet: the kernel has joined segments, or not split them yet.
    pub coalesced: u64,
}

/// Error for two captures that do not share any packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no packet is in both captures: they are from different paths or different times, or a router between them \
     translates addresses (NAT)"
)]
pub struct NothingFound;

/// A packet in one capture.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: i64,
    identity: Identity,
}

/// Source and destination.
type Flow = (IpAddr, IpAddr);

/// Matches the packets of two captures, the first at the fixed end of a path and the second at its mobile
/// end. `ahead` is the offset of the second clock in nanoseconds, if known.
pub fn find(first: Observed, second: Observed, ahead: Option<i64>) -> Result<Matched, NothingFound> {
    let [here, there] = [first, second].map(|Observed(mut seen)| {
        // A capture of several interfaces may not be in order.
        seen.sort_by_key(|seen| seen.at);
        seen
    });
    let pairs = pairs(&here, &there);
    let flows = later(&here, &there, &pairs);
    if flows.is_empty() {
        return Err(NothingFound);
    }
    let sides = sides(&flows, ahead.unwrap_or(0));
    let clock = match ahead {
        Some(ahead_ns) => Clock::Given { ahead_ns },
        None => Clock::estimated(flows.iter().map(|(flow, later)| (sides[flow] == Direction::Down, *later))),
    };
    Ok(recording(&here, &there, &pairs, &sides, clock))
}

/// Returns, for each packet of the second capture, its index in the first. Identical packets are
/// distinguished by their order: a candidate that a later packet has overtaken counts as lost, if there is
/// another candidate.
fn pairs(here: &[Seen], there: &[Seen]) -> Vec<Option<usize>> {
    let mut open: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
    for (index, seen) in here.iter().enumerate() {
        open.entry(seen.identity.hash).or_default().push_back(index);
    }
    let mut newest: BTreeMap<Flow, usize> = BTreeMap::new();
    let find = |seen: &Seen| {
        let candidates = open.get_mut(&seen.identity.hash)?;
        let newest = newest.entry(seen.identity.flow).or_default();
        while candidates.len() > 1 && candidates[0] < *newest {
            candidates.pop_front();
        }
        let index = candidates.pop_front()?;
        *newest = index.max(*newest);
        Some(index)
    };
    there.iter().map(find).collect()
}

fn later(here: &[Seen], there: &[Seen], pairs: &[Option<usize>]) -> BTreeMap<Flow, Later> {
    let mut flows: BTreeMap<Flow, Later> = BTreeMap::new();
    for (seen, index) in there.iter().zip(pairs) {
        let Some(index) = index else { continue };
        let later = Later::of(here[*index].at, seen.at);
        flows.entry(seen.identity.flow).and_modify(|known| *known = known.and(later)).or_insert(later);
    }
    flows
}

/// Direction of each flow.
fn sides(flows: &BTreeMap<Flow, Later>, ahead: i64) -> BTreeMap<Flow, Direction> {
    let direction = |(flow, later): (&Flow, &Later)| {
        let is_down = later.goes_forth(flows.get(&(flow.1, flow.0)).copied(), ahead);
        (*flow, if is_down { Direction::Down } else { Direction::Up })
    };
    flows.iter().map(direction).collect()
}

fn recording(
    here: &[Seen],
    there: &[Seen],
    pairs: &[Option<usize>],
    sides: &BTreeMap<Flow, Direction>,
    clock: Clock,
) -> Matched {
    let mut found = vec![None; here.len()];
    for (at, index) in pairs.iter().enumerate() {
        if let Some(index) = index {
            found[*index] = Some(at);
        }
    }
    let there_at = |at: usize| there[at].at.saturating_sub(clock.ahead());
    // Outside of the period that both captures cover, a packet in only one of them is not necessarily lost.
    let begin = here[0].at.max(there_at(0));
    let end = here[here.len() - 1].at.min(there_at(there.len() - 1));
    let first = here[0].at.min(there_at(0));
    let instant = |at: i64| Instant::from_nanos(at.saturating_sub(first).max(0) as u64);
    let mut directions = PerDirection::<Recorded>::default();
    let mut coalesced = 0;
    let mut add = |direction: Direction, entered: i64, octets: u32, left: Option<i64>| {
        if left.is_some() || (begin..=end).contains(&entered) {
            let crossing = Crossing { entered: instant(entered), octets, left: left.map(instant) };
            directions[direction].crossings.push(crossing);
            coalesced += u64::from(octets > LONGEST);
        }
    };
    let direction = |seen: &Seen| sides.get(&seen.identity.flow).copied();
    for (seen, found) in here.iter().zip(&found) {
        if direction(seen) == Some(Direction::Down) {
            add(Direction::Down, seen.at, seen.identity.octets, found.map(there_at));
        }
    }
    let mut unmatched_arrivals = 0;
    let known: BTreeSet<u64> = here.iter().map(|seen| seen.identity.hash).collect();
    let mut copies = PerDirection::<u64>::default();
    for (at, (seen, index)) in there.iter().zip(pairs).enumerate() {
        match (direction(seen), index) {
            (Some(Direction::Up), index) => {
                add(Direction::Up, there_at(at), seen.identity.octets, index.map(|index| here[index].at));
            }
            (Some(Direction::Down), None) if known.contains(&seen.identity.hash) => copies.down += 1,
            (Some(Direction::Down), None) if there_at(at) > begin => unmatched_arrivals += 1,
            _ => {}
        }
    }
    let sent: BTreeSet<u64> = there.iter().map(|seen| seen.identity.hash).collect();
    for (seen, found) in here.iter().zip(&found) {
        if direction(seen) == Some(Direction::Up) && found.is_none() {
            if sent.contains(&seen.identity.hash) {
                copies.up += 1;
            } else if seen.at > begin {
                unmatched_arrivals += 1;
            }
        }
    }
    for direction in Direction::BOTH {
        let recorded = &mut directions[direction];
        recorded.copies = copies[direction];
        without_untold(&mut recorded.crossings, instant(end));
    }
    let recording = Recording { directions, duration: instant(end) - Instant::ZERO };
    Matched { recording, clock, unmatched_arrivals, coalesced }
}

/// The longest packet of an Ethernet with VLAN tags.
const LONGEST: u32 = 1514;

/// Removes packets at the end that may still have been in transit.
fn without_untold(crossings: &mut Vec<Crossing>, end: Instant) {
    let longest = crossings.iter().filter_map(Crossing::delay).max().unwrap_or_default();
    crossings.retain(|crossing| crossing.left.is_some() || crossing.entered + longest <= end);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Returns an IPv4 packet between two hosts, with a number after the UDP header.
    fn packet(from: u8, to: u8, number: u64, length: u16) -> Vec<u8> {
        const UDP: u8 = 17;
        let mut packet = vec![0; length.into()];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        (packet[9], packet[15], packet[19]) = (UDP, from, to);
        packet[28..36].copy_from_slice(&number.to_be_bytes());
        packet
    }

    fn down(number: u64) -> Vec<u8> {
        packet(1, 2, number, 100)
    }

    fn up(number: u64) -> Vec<u8> {
        packet(2, 1, number, 80)
    }

    fn observed(packets: impl IntoIterator<Item = (i64, Vec<u8>)>) -> Observed {
        let mut observed = Observed::default();
        packets.into_iter().for_each(|(at, packet)| observed.packet(at * MS, &packet));
        observed
    }

    /// Packets every 10 ms in each direction, with a delay of 30 ms down and 20 ms up. The mobile end's clock
    /// is ahead by `ahead` milliseconds.
    fn ends(ahead: i64) -> [Observed; 2] {
        let numbers = || 0..100_u64;
        let at = |number: u64| 10 * number as i64;
        [
            observed(numbers().flat_map(|it| [(at(it), down(it)), (at(it) + 20, up(it))])),
            observed(numbers().flat_map(|it| [(at(it) + 30 + ahead, down(it)), (at(it) + ahead, up(it))])),
        ]
    }

    fn delays(matched: &Matched, direction: Direction) -> Vec<u64> {
        let crossings = matched.recording.directions[direction].crossings.iter();
        let mut delays: Vec<u64> = crossings.filter_map(|it| Some(it.delay()?.as_millis())).collect();
        delays.dedup();
        delays
    }

    #[test]
    fn packets_of_both_directions_match_with_delays() {
        let [fixed, mobile] = ends(0);
        let matched = find(fixed, mobile, None).unwrap();
        assert_eq!((matched.clock, matched.unmatched_arrivals, matched.coalesced), (Clock::Same, 0, 0));
        assert_eq!(
            (delays(&matched, Direction::Down), delays(&matched, Direction::Up)),
            (vec![30], vec![20])
        );
        let crossings = &matched.recording.directions.down.crossings;
        assert!(crossings.iter().all(|crossing| crossing.octets == 100 && crossing.left.is_some()));
    }

    #[test]
    fn packets_before_other_capture_begins_are_not_losses() {
        let sent = observed((0..100).map(|number| (10 * number as i64, down(number))));
        let arrived = observed((50..100).map(|number| (10 * number as i64 + 30, down(number))));
        let crossings = find(sent, arrived, None).unwrap().recording.directions.down.crossings;
        // The first packet that arrived entered at 500 ms and left at 530 ms.
        assert_eq!(crossings[0].entered.as_millis(), 500);
        assert!(crossings.iter().all(|crossing| crossing.left.is_some()));
    }

    #[test]
    fn clock_offset_is_estimated_unless_given() {
        for ahead in [-5000, -45, 61, 5000] {
            let [fixed, mobile] = ends(ahead);
            let matched = find(fixed.clone(), mobile.clone(), None).unwrap();
            // The smallest delay is then the same in both directions: half of 50 ms.
            assert_eq!(matched.clock, Clock::Estimated { ahead_ns: (ahead + 5) * MS }, "{ahead}");
            assert_eq!(
                (delays(&matched, Direction::Down), delays(&matched, Direction::Up)),
                (vec![25], vec![25])
            );
            let matched = find(fixed, mobile, Some(ahead * MS)).unwrap();
            assert_eq!(
                (delays(&matched, Direction::Down), delays(&matched, Direction::Up)),
                (vec![30], vec![20])
            );
        }
    }

    #[test]
    fn given_clock_offset_determines_direction_without_replies() {
        let fixed = observed((0..30).map(|number| (10 * number as i64, down(number))));
        let mobile = observed((0..30).map(|number| (10 * number as i64 + 30 - 5000, down(number))));
        let matched = find(fixed, mobile, Some(-5000 * MS)).unwrap();
        assert_eq!(delays(&matched, Direction::Down), [30]);
    }

    #[test]
    fn missing_packets_are_losses_and_repeated_are_copies() {
        let fixed = observed((0..100).map(|number| (10 * number as i64, down(number))));
        let arrives = |number: &u64| ![40, 41, 70].contains(number);
        let arrived = (0..100).filter(arrives).map(|number| (10 * number as i64 + 30, down(number)));
        let mobile = observed(arrived.chain([(505, down(20))]));
        let matched = find(fixed, mobile, None).unwrap();
        let crossings = &matched.recording.directions.down.crossings;
        let lost = crossings.iter().filter(|it| it.left.is_none()).map(|it| it.entered.as_millis());
        assert_eq!(lost.collect::<Vec<_>>(), [400, 410, 700]);
        assert_eq!((matched.recording.directions.down.copies, matched.unmatched_arrivals), (1, 0));
    }

    #[test]
    fn earlier_of_identical_packets_is_lost_if_overtaken() {
        let sent =
            [(0, down(1)), (10, down(2)), (20, down(3)), (500, down(1)), (510, down(4)), (520, down(5))];
        let arrived = [(40, down(2)), (50, down(3)), (530, down(1)), (540, down(4)), (550, down(5))];
        let matched = find(observed(sent), observed(arrived), None).unwrap();
        assert_eq!(delays(&matched, Direction::Down), [30]);
    }

    #[test]
    fn unmatched_arrivals_are_counted() {
        let [fixed, mobile] = ends(0);
        let mut more = mobile;
        more.packet(505 * MS, &down(1000));
        assert_eq!(find(fixed, more, None).unwrap().unmatched_arrivals, 1);
    }

    #[test]
    fn extreme_timestamps_do_not_panic() {
        let [mut fixed, mut mobile] = ends(0);
        for (end, at) in [(&mut fixed, i64::MAX), (&mut mobile, i64::MIN)] {
            end.packet(at, &down(7000));
            end.packet(at, &up(7000));
        }
        let _ = find(fixed, mobile, None).unwrap();
    }

    #[test]
    fn unrelated_captures_are_rejected() {
        let [fixed, _] = ends(0);
        let other = observed((500..600).map(|number| (number as i64, down(number))));
        assert_eq!(find(fixed.clone(), other, None).unwrap_err(), NothingFound);
        assert_eq!(find(fixed, Observed::default(), None).unwrap_err(), NothingFound);
    }
}
