//! The connections that a transit agent remembers: a bounded number, so that nobody's packets can fill its memory.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use super::flow::Flow;
use super::header::Segment;
use crate::packet::Direction;

/// A connection's ends, on the fixed side and on the mobile side; IPv4 addresses are mapped. So both directions
/// of a connection have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key([(Ipv6Addr, u16); 2]);

impl Key {
    pub(super) fn of(segment: &Segment, direction: Direction) -> Self {
        Self(segment.ends(direction))
    }
}

/// The flows, and the order in which they were last used.
///
/// Choice: live flows, and those of which only one side has been heard, have places of their own. So a burst of SYNs,
/// or of any other packets with addresses that nobody answers for, displaces only its like.
#[derive(Debug)]
pub(super) struct Flows {
    index: BTreeMap<Key, Slot>,
    places: Vec<Place>,
    /// Places of flows that were forgotten, to be used again.
    free: Vec<Slot>,
    opening: Queue,
    live: Queue,
}

/// Where a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

#[derive(Debug)]
struct Place {
    key: Key,
    flow: Flow,
    standing: Standing,
    newer: Option<Slot>,
    older: Option<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its handshake is not over, or only one side has been heard.
    Opening,
    Live,
}

/// Flows of one standing, by when they were last used.
#[derive(Debug)]
struct Queue {
    newest: Option<Slot>,
    oldest: Option<Slot>,
    len: usize,
    capacity: usize,
    evicted: u64,
}

impl Queue {
    fn new(capacity: usize) -> Self {
        Self { newest: None, oldest: None, len: 0, capacity, evicted: 0 }
    }
}

impl Index<Slot> for Flows {
    type Output = Flow;

    fn index(&self, slot: Slot) -> &Flow {
        &self.places[slot.0 as usize].flow
    }
}

impl IndexMut<Slot> for Flows {
    fn index_mut(&mut self, slot: Slot) -> &mut Flow {
        &mut self.places[slot.0 as usize].flow
    }
}

impl Flows {
    /// So many live ones, and a quarter as many that are not yet.
    pub(super) fn new(capacity: NonZeroU32) -> Self {
        let live = capacity.get() as usize;
        Self {
            index: BTreeMap::new(),
            places: Vec::new(),
            free: Vec::new(),
            opening: Queue::new(live.div_ceil(4)),
            live: Queue::new(live),
        }
    }

    pub(super) fn live(&self) -> usize {
        self.live.len
    }

    pub(super) fn opening(&self) -> usize {
        self.opening.len
    }

    /// Live flows that were forgotten to make room.
    pub(super) fn evicted(&self) -> u64 {
        self.live.evicted
    }

    /// Octets of memory, the index's own overhead apart.
    pub(super) fn memory(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
            + self.free.capacity() * size_of::<Slot>()
            + self.index.len() * size_of::<(Key, Slot)>()
            + self.places.iter().map(|place| place.flow.heap()).sum::<usize>()
    }

    /// The flow, which thereby becomes the most recently used of its standing.
    pub(super) fn find(&mut self, key: Key) -> Option<Slot> {
        let slot = *self.index.get(&key)?;
        let standing = self.place(slot).standing;
        if self.queue(standing).newest != Some(slot) {
            self.unlink(slot);
            self.link_newest(slot);
        }
        Some(slot)
    }

    /// The same; if there is none, a new one, of which nothing is known.
    pub(super) fn find_or_insert(&mut self, key: Key) -> Slot {
        if let Some(slot) = self.find(key) {
            return slot;
        }
        if self.opening.len == self.opening.capacity {
            self.forget_oldest(Standing::Opening);
        }
        let new = Place { key, flow: Flow::default(), standing: Standing::Opening, newer: None, older: None };
        let slot = match self.free.pop() {
            Some(slot) => {
                *self.place(slot) = new;
                slot
            }
            None => {
                self.places.push(new);
                Slot((self.places.len() - 1) as u32)
            }
        };
        self.index.insert(key, slot);
        self.link_newest(slot);
        slot
    }

    /// Counts the flow among the live ones from the moment when it is one.
    pub(super) fn settle(&mut self, slot: Slot) {
        if self.place(slot).standing == Standing::Live || !self[slot].is_live() {
            return;
        }
        if self.live.len == self.live.capacity {
            self.forget_oldest(Standing::Live);
        }
        self.unlink(slot);
        self.place(slot).standing = Standing::Live;
        self.link_newest(slot);
    }

    fn forget_oldest(&mut self, standing: Standing) {
        let Some(slot) = self.queue(standing).oldest else { return };
        self.unlink(slot);
        self.queue(standing).evicted += 1;
        let Place { key, flow, .. } = self.place(slot);
        let key = *key;
        *flow = Flow::default();
        self.index.remove(&key);
        self.free.push(slot);
    }

    fn place(&mut self, slot: Slot) -> &mut Place {
        &mut self.places[slot.0 as usize]
    }

    fn queue(&mut self, standing: Standing) -> &mut Queue {
        match standing {
            Standing::Opening => &mut self.opening,
            Standing::Live => &mut self.live,
        }
    }

    fn unlink(&mut self, slot: Slot) {
        let Place { standing, newer, older, .. } = *self.place(slot);
        match newer {
            Some(newer) => self.place(newer).older = older,
            None => self.queue(standing).newest = older,
        }
        match older {
            Some(older) => self.place(older).newer = newer,
            None => self.queue(standing).oldest = newer,
        }
        self.queue(standing).len -= 1;
    }

    fn link_newest(&mut self, slot: Slot) {
        let standing = self.place(slot).standing;
        let previous = self.queue(standing).newest.replace(slot);
        match previous {
            Some(previous) => self.place(previous).newer = Some(slot),
            None => self.queue(standing).oldest = Some(slot),
        }
        self.place(slot).older = previous;
        self.place(slot).newer = None;
        self.queue(standing).len += 1;
    }
}

#[cfg(test)]
mod tests {
    use Direction::{Down, Up};

    use super::super::flow::{Other, Said, Syn};
    use super::super::ranges::Reach;
    use super::*;

    fn key(port: u16) -> Key {
        Key([(Ipv6Addr::LOCALHOST, port), (Ipv6Addr::LOCALHOST, 80)])
    }

    fn few(capacity: u32) -> Flows {
        Flows::new(NonZeroU32::new(capacity).unwrap())
    }

    const SYN: Syn = Syn { isn: 0, octets: 0, other: Other::Absent };

    /// A SYN that nobody answers.
    fn knock(flows: &mut Flows, port: u16) {
        let slot = flows.find_or_insert(key(port));
        flows[slot].syn(Down, SYN);
        flows.settle(slot);
    }

    fn reach() -> Reach {
        Reach::new(Reach::LARGEST)
    }

    /// A whole handshake.
    fn open(flows: &mut Flows, port: u16) {
        knock(flows, port);
        let slot = flows.find_or_insert(key(port));
        flows[slot].syn_ack(Up, SYN, 1, reach());
        flows.settle(slot);
        let slot = flows.find_or_insert(key(port));
        flows[slot].pass(Down, Said { seq: 1, octets: 0, ack: 1 }, reach());
        flows.settle(slot);
    }

    fn left(flows: &mut Flows, ports: std::ops::RangeInclusive<u16>) -> Vec<u16> {
        ports.filter(|port| flows.find(key(*port)).is_some()).collect()
    }

    #[test]
    fn the_least_recently_used_live_flow_is_forgotten() {
        let mut flows = few(3);
        for port in [1, 2, 3] {
            open(&mut flows, port);
        }
        assert!(flows.find(key(1)).is_some());
        open(&mut flows, 4);
        assert_eq!((left(&mut flows, 1..=4), flows.live(), flows.evicted()), (vec![1, 3, 4], 3, 1));
        for port in 10..100 {
            open(&mut flows, port);
        }
        assert_eq!((flows.live(), flows.index.len(), flows.opening()), (3, 3, 0));
        assert!(flows.places.len() <= 4, "places are used again: {}", flows.places.len());
    }

    #[test]
    fn a_burst_of_syns_displaces_only_its_like() {
        let mut flows = few(8);
        for port in 1..=8 {
            open(&mut flows, port);
        }
        for port in 100..10_000 {
            knock(&mut flows, port);
        }
        assert_eq!(left(&mut flows, 1..=8), (1..=8).collect::<Vec<_>>());
        assert_eq!((flows.live(), flows.opening(), flows.evicted()), (8, 2, 0));
        assert_eq!((flows.index.len(), flows.places.len()), (10, 10), "the table is bounded");
        // A connection that opens in the middle of it finds a place: the oldest live one makes room.
        open(&mut flows, 50);
        assert_eq!((left(&mut flows, 1..=50).len(), flows.evicted()), (8, 1));
    }

    #[test]
    fn an_answer_to_a_forged_syn_is_not_a_live_flow() {
        let mut flows = few(2);
        open(&mut flows, 1);
        open(&mut flows, 2);
        for port in 100..200 {
            // The mobile host listens there, and its answer goes to somebody who has not asked.
            knock(&mut flows, port);
            let slot = flows.find_or_insert(key(port));
            flows[slot].syn_ack(Up, SYN, 1, reach());
            flows.settle(slot);
        }
        assert_eq!((left(&mut flows, 1..=2), flows.evicted()), (vec![1, 2], 0));
    }

    #[test]
    fn a_busy_flow_takes_a_few_hundred_octets() {
        const FLOWS: u16 = 1_000;
        let mut flows = few(FLOWS.into());
        let send = |flow: &mut Flow, seq| {
            for direction in Direction::BOTH {
                flow.pass(direction, Said { seq, octets: 1000, ack: 1 }, reach());
            }
        };
        for port in 0..FLOWS {
            open(&mut flows, port);
            let slot = flows.find(key(port)).unwrap();
            (0..1000).for_each(|segment| send(&mut flows[slot], 1 + segment * 1000));
        }
        let each = flows.memory() / usize::from(FLOWS);
        println!("{each} octets for each flow");
        assert!(each < 512, "{each} octets for each flow");

        // At worst every second segment is missing, everywhere.
        for port in 0..FLOWS {
            let slot = flows.find(key(port)).unwrap();
            (0..1000).for_each(|segment| send(&mut flows[slot], 2_000_000 + segment * 2000));
        }
        let worst = flows.memory() / usize::from(FLOWS);
        println!("{worst} octets at worst");
        assert!(worst < 9_000, "{worst} octets for each flow");
    }
}
