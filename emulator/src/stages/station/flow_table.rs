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
/// Choice: live and opening flows have separate limits. A burst of SYNs, or of other packets with spoofed
/// addresses, therefore displaces only opening flows.
#[derive(Debug)]
pub(super) struct Flows {
    index: BTreeMap<Key, Slot>,
    entries: Vec<Entry>,
    /// Entries of evicted flows, for reuse.
    free: Vec<Slot>,
    opening: LruList,
    live: LruList,
}

/// The index of a flow's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u32);

#[derive(Debug)]
struct Entry {
    key: Key,
    flow: Flow,
    state: FlowState,
    newer: Option<Slot>,
    older: Option<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowState {
    /// The handshake is not complete, or only one side has sent packets.
    Opening,
    Live,
}

/// Flows in the same state, in the order of their last use.
#[derive(Debug)]
struct LruList {
    newest: Option<Slot>,
    oldest: Option<Slot>,
    len: usize,
    capacity: usize,
    evicted: u64,
}

impl LruList {
    fn new(capacity: usize) -> Self {
        Self { newest: None, oldest: None, len: 0, capacity, evicted: 0 }
    }
}

impl Index<Slot> for Flows {
    type Output = Flow;

    fn index(&self, slot: Slot) -> &Flow {
        &self.entries[slot.0 as usize].flow
    }
}

impl IndexMut<Slot> for Flows {
    fn index_mut(&mut self, slot: Slot) -> &mut Flow {
        &mut self.entries[slot.0 as usize].flow
    }
}

impl Flows {
    /// Creates a table with entries for `capacity` live flows and a quarter as many opening ones.
    pub(super) fn new(capacity: NonZeroU32) -> Self {
        let live = capacity.get() as usize;
        Self {
            index: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            opening: LruList::new(live.div_ceil(4)),
            live: LruList::new(live),
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
        self.entries.capacity() * size_of::<Entry>()
            + self.free.capacity() * size_of::<Slot>()
            + self.index.len() * size_of::<(Key, Slot)>()
            + self.entries.iter().map(|entry| entry.flow.heap_bytes()).sum::<usize>()
    }

    /// Finds a flow and makes it the most recently used one of its state.
    pub(super) fn find(&mut self, key: Key) -> Option<Slot> {
        let slot = *self.index.get(&key)?;
        let state = self.entry(slot).state;
        if self.list(state).newest != Some(slot) {
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
            self.evict_oldest(FlowState::Opening);
        }
        let new = Entry { key, flow: Flow::default(), state: FlowState::Opening, newer: None, older: None };
        let slot = match self.free.pop() {
            Some(slot) => {
                *self.entry(slot) = new;
                slot
            }
            None => {
                self.entries.push(new);
                Slot((self.entries.len() - 1) as u32)
            }
        };
        self.index.insert(key, slot);
        self.link_newest(slot);
        slot
    }

    /// Moves the flow to the live flows once it has become live.
    pub(super) fn update_state(&mut self, slot: Slot) {
        if self.entry(slot).state == FlowState::Live || !self[slot].is_live() {
            return;
        }
        if self.live.len == self.live.capacity {
            self.evict_oldest(FlowState::Live);
        }
        self.unlink(slot);
        self.entry(slot).state = FlowState::Live;
        self.link_newest(slot);
    }

    fn evict_oldest(&mut self, state: FlowState) {
        let Some(slot) = self.list(state).oldest else { return };
        self.unlink(slot);
        self.list(state).evicted += 1;
        let Entry { key, flow, .. } = self.entry(slot);
        let key = *key;
        *flow = Flow::default();
        self.index.remove(&key);
        self.free.push(slot);
    }

    fn entry(&mut self, slot: Slot) -> &mut Entry {
        &mut self.entries[slot.0 as usize]
    }

    fn list(&mut self, state: FlowState) -> &mut LruList {
        match state {
            FlowState::Opening => &mut self.opening,
            FlowState::Live => &mut self.live,
        }
    }

    fn unlink(&mut self, slot: Slot) {
        let Entry { state, newer, older, .. } = *self.entry(slot);
        match newer {
            Some(newer) => self.entry(newer).older = older,
            None => self.list(state).newest = older,
        }
        match older {
            Some(older) => self.entry(older).newer = newer,
            None => self.list(state).oldest = newer,
        }
        self.list(state).len -= 1;
    }

    fn link_newest(&mut self, slot: Slot) {
        let state = self.entry(slot).state;
        let previous = self.list(state).newest.replace(slot);
        match previous {
            Some(previous) => self.entry(previous).newer = Some(slot),
            None => self.list(state).oldest = Some(slot),
        }
        self.entry(slot).older = previous;
        self.entry(slot).newer = None;
        self.list(state).len += 1;
    }
}

#[cfg(test)]
mod tests {
    use Direction::{Down, Up};

    use super::*;
    use crate::stages::station::flow::{OtherAgent, SegmentNumbers, Syn};
    use crate::stages::station::ranges::Reach;

    fn key(port: u16) -> Key {
        Key([(Ipv6Addr::LOCALHOST, port), (Ipv6Addr::LOCALHOST, 80)])
    }

    fn table(capacity: u32) -> Flows {
        Flows::new(NonZeroU32::new(capacity).unwrap())
    }

    const SYN: Syn = Syn { isn: 0, octets: 0, other: OtherAgent::Absent };

    /// Handles a SYN without an answer.
    fn send_syn(flows: &mut Flows, port: u16) {
        let slot = flows.find_or_insert(key(port));
        flows[slot].syn(Down, SYN);
        flows.update_state(slot);
    }

    fn reach() -> Reach {
        Reach::new(Reach::LARGEST)
    }

    /// Handles a complete handshake.
    fn open(flows: &mut Flows, port: u16) {
        send_syn(flows, port);
        let slot = flows.find_or_insert(key(port));
        flows[slot].syn_ack(Up, SYN, 1, reach());
        flows.update_state(slot);
        let slot = flows.find_or_insert(key(port));
        flows[slot].pass(Down, SegmentNumbers { seq: 1, octets: 0, ack: 1 }, reach());
        flows.update_state(slot);
    }

    fn remembered(flows: &mut Flows, ports: std::ops::RangeInclusive<u16>) -> Vec<u16> {
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
        assert_eq!((remembered(&mut flows, 1..=4), flows.live(), flows.evicted()), (vec![1, 3, 4], 3, 1));
        for port in 10..100 {
            open(&mut flows, port);
        }
        assert_eq!((flows.live(), flows.index.len(), flows.opening()), (3, 3, 0));
        assert!(flows.entries.len() <= 4, "entries are reused: {}", flows.entries.len());
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
        assert_eq!(remembered(&mut flows, 1..=8), (1..=8).collect::<Vec<_>>());
        assert_eq!((flows.live(), flows.opening(), flows.evicted()), (8, 2, 0));
        assert_eq!((flows.index.len(), flows.entries.len()), (10, 10), "the table is bounded");
        // A connection that opens during the burst finds a place: the oldest live flow makes room.
        open(&mut flows, 50);
        assert_eq!((remembered(&mut flows, 1..=50).len(), flows.evicted()), (8, 1));
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
            flows.update_state(slot);
        }
        assert_eq!((remembered(&mut flows, 1..=2), flows.evicted()), (vec![1, 2], 0));
    }

    #[test]
    fn memory_per_busy_flow_is_bounded() {
        const FLOWS: u16 = 1_000;
        let mut flows = table(FLOWS.into());
        let send = |flow: &mut Flow, seq| {
            for direction in Direction::BOTH {
                flow.pass(direction, SegmentNumbers { seq, octets: 1000, ack: 1 }, reach());
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
