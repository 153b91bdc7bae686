//! The connections that a transit agent remembers. Their number is bounded, so that no host can fill the
//! agent's memory.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use airwire::rewrite::TcpInPacket;

use super::flow::Flow;
use crate::packet::Direction;

/// The endpoints of a connection on the fixed side and on the mobile side, the same for both directions. IPv4
/// addresses are mapped to IPv6 ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key([(Ipv6Addr, u16); 2]);

impl Key {
    pub(super) fn of(segment: &TcpInPacket, direction: Direction) -> Self {
        let mapped = |end: SocketAddr| match end.ip() {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), end.port()),
            IpAddr::V6(address) => (address, end.port()),
        };
        let (source, destination) = segment.ends();
        match direction {
            Direction::Down => Self([mapped(source), mapped(destination)]),
            Direction::Up => Self([mapped(destination), mapped(source)]),
        }
    }
}

/// The flows and the order of their last use.
///
/// Choice: live flows and flows of which only one side has been seen have separate places. A burst of SYNs,
/// or of other packets with spoofed addresses, therefore displaces only flows of the second kind.
#[derive(Debug)]
pub(super) struct Flows {
    index: BTreeMap<Key, Slot>,
    places: Vec<Place>,
    /// Places of forgotten flows, for reuse.
    free: Vec<Slot>,
    opening: Queue,
    live: Queue,
}

/// The index of a flow's place.
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
    /// The handshake is not complete, or only one side has been seen.
    Opening,
    Live,
}

/// Flows of one standing in the order of their last use.
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
    /// Creates a table with places for `capacity` live flows and a quarter as many opening ones.
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

    /// Returns the number of live flows that were forgotten to make room.
    pub(super) fn evicted(&self) -> u64 {
        self.live.evicted
    }

    /// Returns the memory in bytes, without the overhead of the index.
    pub(super) fn memory(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
            + self.free.capacity() * size_of::<Slot>()
            + self.index.len() * size_of::<(Key, Slot)>()
            + self.places.iter().map(|place| place.flow.heap()).sum::<usize>()
    }

    /// Finds a flow and makes it the most recently used one of its standing.
    pub(super) fn find(&mut self, key: Key) -> Option<Slot> {
        let slot = *self.index.get(&key)?;
        let standing = self.place(slot).standing;
        if self.queue(standing).newest != Some(slot) {
            self.unlink(slot);
            self.link_newest(slot);
        }
        Some(slot)
    }

    /// Like `find`, but inserts an empty flow if there is none.
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

    /// Moves the flow to the live ones if it has become live.
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

    use super::*;
    use crate::stages::station::flow::{Other, Said, Syn};
    use crate::stages::station::ranges::Reach;

    fn key(port: u16) -> Key {
        Key([(Ipv6Addr::LOCALHOST, port), (Ipv6Addr::LOCALHOST, 80)])
    }

    fn table(capacity: u32) -> Flows {
        Flows::new(NonZeroU32::new(capacity).unwrap())
    }

    const SYN: Syn = Syn { isn: 0, octets: 0, other: Other::Absent };

    /// Handles a SYN without an answer.
    fn send_syn(flows: &mut Flows, port: u16) {
        let slot = flows.find_or_insert(key(port));
        flows[slot].syn(Down, SYN);
        flows.settle(slot);
    }

    fn reach() -> Reach {
        Reach::new(Reach::LARGEST)
    }

    /// Handles a complete handshake.
    fn open(flows: &mut Flows, port: u16) {
        send_syn(flows, port);
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
    fn least_recently_used_live_flow_is_evicted() {
        let mut flows = table(3);
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
        assert!(flows.places.len() <= 4, "places are reused: {}", flows.places.len());
    }

    #[test]
    fn syn_burst_evicts_only_opening_flows() {
        let mut flows = table(8);
        for port in 1..=8 {
            open(&mut flows, port);
        }
        for port in 100..10_000 {
            send_syn(&mut flows, port);
        }
        assert_eq!(left(&mut flows, 1..=8), (1..=8).collect::<Vec<_>>());
        assert_eq!((flows.live(), flows.opening(), flows.evicted()), (8, 2, 0));
        assert_eq!((flows.index.len(), flows.places.len()), (10, 10), "the table is bounded");
        // A connection that opens during the burst finds a place: the oldest live flow makes room.
        open(&mut flows, 50);
        assert_eq!((left(&mut flows, 1..=50).len(), flows.evicted()), (8, 1));
    }

    #[test]
    fn answered_forged_syn_is_not_live_flow() {
        let mut flows = table(2);
        open(&mut flows, 1);
        open(&mut flows, 2);
        for port in 100..200 {
            // The mobile host listens on this port and answers a host that did not send the SYN.
            send_syn(&mut flows, port);
            let slot = flows.find_or_insert(key(port));
            flows[slot].syn_ack(Up, SYN, 1, reach());
            flows.settle(slot);
        }
        assert_eq!((left(&mut flows, 1..=2), flows.evicted()), (vec![1, 2], 0));
    }

    #[test]
    fn memory_per_busy_flow_is_bounded() {
        const FLOWS: u16 = 1_000;
        let mut flows = table(FLOWS.into());
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
        println!("{each} bytes per flow");
        assert!(each < 512, "{each} bytes per flow");

        // In the worst case, every second segment is missing.
        for port in 0..FLOWS {
            let slot = flows.find(key(port)).unwrap();
            (0..1000).for_each(|segment| send(&mut flows[slot], 2_000_000 + segment * 2000));
        }
        let worst = flows.memory() / usize::from(FLOWS);
        println!("{worst} bytes per flow in the worst case");
        assert!(worst < 9_000, "{worst} bytes per flow");
    }
}
