//! Matches the packets of two captures of one path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use airwire::direction::{Direction, PerDirection};
use airwire::time::Instant;

use crate::clock::{Clock, OffsetRange};
use crate::identity::{Identity, identify};
use crate::{Crossing, Recorded, Recording};

/// The packets captured at one end.
#[derive(Clone, Debug, Default)]
pub struct Observed(Vec<CapturedPacket>);

impl Observed {
    /// Adds a packet, with its time in nanoseconds of this end's clock and its captured bytes. Data other
    /// than IP is ignored.
    pub fn packet(&mut self, at: i64, packet: &[u8]) {
        self.0.extend(identify(packet).map(|identity| CapturedPacket { at, identity }));
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
pub struct NoCommonPackets;

#[derive(Clone, Copy, Debug)]
struct CapturedPacket {
    at: i64,
    identity: Identity,
}

/// Source and destination.
type Flow = (IpAddr, IpAddr);

/// Matches the packets of two captures, the first at the fixed end of a path and the second at its mobile
/// end. `ahead` is the offset of the second clock in nanoseconds, if known.
pub fn match_captures(
    first: Observed,
    second: Observed,
    ahead: Option<i64>,
) -> Result<Matched, NoCommonPackets> {
    let [first, second] = [first, second].map(|Observed(mut packets)| {
        // A capture of several interfaces may not be in order.
        packets.sort_by_key(|packet| packet.at);
        packets
    });
    let pairs = pairs(&first, &second);
    let flows = offsets(&first, &second, &pairs);
    if flows.is_empty() {
        return Err(NoCommonPackets);
    }
    let directions = directions(&flows, ahead.unwrap_or(0));
    let clock = match ahead {
        Some(ahead_ns) => Clock::Given { ahead_ns },
        None => {
            Clock::estimated(flows.iter().map(|(flow, range)| (directions[flow] == Direction::Down, *range)))
        }
    };
    let mut pairs_of_first = vec![None; first.len()];
    for (index, pair) in pairs.iter().enumerate().filter_map(|(index, pair)| Some((index, (*pair)?))) {
        pairs_of_first[pair] = Some(index);
    }
    let first = Capture { packets: &first, pairs: &pairs_of_first, ahead: 0 };
    let second = Capture { packets: &second, pairs: &pairs, ahead: clock.ahead() };
    Ok(recording(&first, &second, &directions, clock))
}

/// Returns, for each packet of the second capture, its index in the first. Identical packets are
/// distinguished by their order: a candidate that a later packet has overtaken counts as lost if another
/// candidate exists.
fn pairs(first: &[CapturedPacket], second: &[CapturedPacket]) -> Vec<Option<usize>> {
    let mut open: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
    for (index, packet) in first.iter().enumerate() {
        open.entry(packet.identity.hash).or_default().push_back(index);
    }
    let mut newest: BTreeMap<Flow, usize> = BTreeMap::new();
    let find = |packet: &CapturedPacket| {
        let candidates = open.get_mut(&packet.identity.hash)?;
        let newest = newest.entry(packet.identity.flow).or_default();
        while candidates.len() > 1 && candidates[0] < *newest {
            candidates.pop_front();
        }
        let index = candidates.pop_front()?;
        *newest = index.max(*newest);
        Some(index)
    };
    second.iter().map(find).collect()
}

/// Time differences between the captures, per flow.
fn offsets(
    first: &[CapturedPacket],
    second: &[CapturedPacket],
    pairs: &[Option<usize>],
) -> BTreeMap<Flow, OffsetRange> {
    let mut flows: BTreeMap<Flow, OffsetRange> = BTreeMap::new();
    for (packet, index) in second.iter().zip(pairs).filter_map(|(packet, index)| Some((packet, (*index)?))) {
        let range = OffsetRange::of(first[index].at, packet.at);
        flows.entry(packet.identity.flow).and_modify(|known| *known = known.and(range)).or_insert(range);
    }
    flows
}

/// Direction of each flow.
fn directions(flows: &BTreeMap<Flow, OffsetRange>, ahead: i64) -> BTreeMap<Flow, Direction> {
    let direction = |(flow, range): (&Flow, &OffsetRange)| {
        let is_down = range.is_forward(flows.get(&(flow.1, flow.0)).copied(), ahead);
        (*flow, if is_down { Direction::Down } else { Direction::Up })
    };
    flows.iter().map(direction).collect()
}

/// The packets of one capture, and their indices in the other one.
struct Capture<'a> {
    packets: &'a [CapturedPacket],
    pairs: &'a [Option<usize>],
    /// Nanoseconds by which this capture's clock is ahead of the first one's.
    ahead: i64,
}

impl Capture<'_> {
    /// Time of a packet in the clock of the first capture.
    fn at(&self, index: usize) -> i64 {
        self.packets[index].at.saturating_sub(self.ahead)
    }

    /// The packets in this direction, each with its index here and its index in the other capture.
    fn packets_in(
        &self,
        direction: Direction,
        directions: &BTreeMap<Flow, Direction>,
    ) -> impl Iterator<Item = (usize, &CapturedPacket, Option<usize>)> {
        let packets = self.packets.iter().zip(self.pairs).enumerate();
        let packets = packets.map(|(index, (packet, pair))| (index, packet, *pair));
        packets.filter(move |(_, packet, _)| directions.get(&packet.identity.flow) == Some(&direction))
    }
}

fn recording(
    first: &Capture<'_>,
    second: &Capture<'_>,
    directions: &BTreeMap<Flow, Direction>,
    clock: Clock,
) -> Matched {
    // Outside of the period that both captures cover, a packet in only one capture is not necessarily lost.
    let begin = first.at(0).max(second.at(0));
    let end = first.at(first.packets.len() - 1).min(second.at(second.packets.len() - 1));
    let origin = first.at(0).min(second.at(0));
    let instant = |at: i64| Instant::from_nanos(at.saturating_sub(origin).max(0) as u64);
    let (mut coalesced, mut unmatched_arrivals) = (0, 0);
    let directions = PerDirection::from_fn(|direction| {
        let (entry, exit) = if direction == Direction::Down { (first, second) } else { (second, first) };
        let mut crossings = Vec::new();
        for (index, packet, pair) in entry.packets_in(direction, directions) {
            let (entered, octets) = (entry.at(index), packet.identity.octets);
            if pair.is_some() || (begin..=end).contains(&entered) {
                let left = pair.map(|pair| instant(exit.at(pair)));
                crossings.push(Crossing { entered: instant(entered), octets, left });
                coalesced += u64::from(octets > MAX_ETHERNET);
            }
        }
        remove_unfinished(&mut crossings, instant(end));
        let entered: BTreeSet<u64> = entry.packets.iter().map(|packet| packet.identity.hash).collect();
        let mut copies = 0;
        let arrivals = exit.packets_in(direction, directions);
        for (index, packet, _) in arrivals.filter(|(_, _, pair)| pair.is_none()) {
            if entered.contains(&packet.identity.hash) {
                copies += 1;
            } else if exit.at(index) > begin {
                unmatched_arrivals += 1;
            }
        }
        Recorded { crossings, copies }
    });
    let recording = Recording { directions, duration: instant(end) - Instant::ZERO };
    Matched { recording, clock, unmatched_arrivals, coalesced }
}

/// The longest packet of an Ethernet with VLAN tags.
const MAX_ETHERNET: u32 = 1514;

/// Removes the last packets without an exit, which may have been on the path when the recording ended.
fn remove_unfinished(crossings: &mut Vec<Crossing>, end: Instant) {
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

    /// The delays in milliseconds down and up, without repetitions.
    fn delays(matched: &Matched) -> [Vec<u64>; 2] {
        Direction::BOTH.map(|direction| {
            let crossings = matched.recording.directions[direction].crossings.iter();
            let mut delays: Vec<u64> = crossings.filter_map(|it| Some(it.delay()?.as_millis())).collect();
            delays.dedup();
            delays
        })
    }

    #[test]
    fn packets_of_both_directions_match_with_delays() {
        let [fixed, mobile] = ends(0);
        let matched = match_captures(fixed, mobile, None).unwrap();
        assert_eq!((matched.clock, matched.unmatched_arrivals, matched.coalesced), (Clock::Same, 0, 0));
        assert_eq!(delays(&matched), [vec![30], vec![20]]);
        let crossings = &matched.recording.directions.down.crossings;
        assert!(crossings.iter().all(|crossing| crossing.octets == 100 && crossing.left.is_some()));
    }

    #[test]
    fn packets_before_other_capture_begins_are_not_losses() {
        let sent = observed((0..100).map(|number| (10 * number as i64, down(number))));
        let arrived = observed((50..100).map(|number| (10 * number as i64 + 30, down(number))));
        let crossings = match_captures(sent, arrived, None).unwrap().recording.directions.down.crossings;
        // The first packet that arrived entered at 500 ms and left at 530 ms.
        assert_eq!(crossings[0].entered.as_millis(), 500);
        assert!(crossings.iter().all(|crossing| crossing.left.is_some()));
    }

    #[test]
    fn clock_offset_is_estimated_unless_given() {
        for ahead in [-5000, -45, 61, 5000] {
            let [fixed, mobile] = ends(ahead);
            let matched = match_captures(fixed.clone(), mobile.clone(), None).unwrap();
            // The smallest delay is then the same in both directions: half of 50 ms.
            assert_eq!(matched.clock, Clock::Estimated { ahead_ns: (ahead + 5) * MS }, "{ahead}");
            assert_eq!(delays(&matched), [vec![25], vec![25]]);
            let matched = match_captures(fixed, mobile, Some(ahead * MS)).unwrap();
            assert_eq!(delays(&matched), [vec![30], vec![20]]);
        }
    }

    #[test]
    fn given_clock_offset_determines_direction_without_replies() {
        let fixed = observed((0..30).map(|number| (10 * number as i64, down(number))));
        let mobile = observed((0..30).map(|number| (10 * number as i64 + 30 - 5000, down(number))));
        let matched = match_captures(fixed, mobile, Some(-5000 * MS)).unwrap();
        assert_eq!(delays(&matched)[0], [30]);
    }

    #[test]
    fn missing_packets_are_losses_and_repeated_are_copies() {
        let fixed = observed((0..100).map(|number| (10 * number as i64, down(number))));
        let arrives = |number: &u64| ![40, 41, 70].contains(number);
        let arrived = (0..100).filter(arrives).map(|number| (10 * number as i64 + 30, down(number)));
        let mobile = observed(arrived.chain([(505, down(20))]));
        let matched = match_captures(fixed, mobile, None).unwrap();
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
        let matched = match_captures(observed(sent), observed(arrived), None).unwrap();
        assert_eq!(delays(&matched)[0], [30]);
    }

    #[test]
    fn unmatched_arrivals_are_counted() {
        let [fixed, mut mobile] = ends(0);
        mobile.packet(505 * MS, &down(1000));
        assert_eq!(match_captures(fixed, mobile, None).unwrap().unmatched_arrivals, 1);
    }

    #[test]
    fn extreme_timestamps_do_not_panic() {
        let [mut fixed, mut mobile] = ends(0);
        for (end, at) in [(&mut fixed, i64::MAX), (&mut mobile, i64::MIN)] {
            end.packet(at, &down(7000));
            end.packet(at, &up(7000));
        }
        let _ = match_captures(fixed, mobile, None).unwrap();
    }

    #[test]
    fn unrelated_captures_are_rejected() {
        let [fixed, _] = ends(0);
        let other = observed((500..600).map(|number| (number as i64, down(number))));
        assert_eq!(match_captures(fixed.clone(), other, None).unwrap_err(), NoCommonPackets);
        assert_eq!(match_captures(fixed, Observed::default(), None).unwrap_err(), NoCommonPackets);
    }
}
