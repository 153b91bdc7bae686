//! The connections that a transit agent remembers: a bounded number, the least recently used forgotten first.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::header::Segment;
use super::ranges::Transited;
use crate::packet::{Direction, PerDirection};

/// A connection's ends, on the fixed side and on the mobile side; IPv4 addresses are mapped. So both directions
/// of a connection have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key([(Ipv6Addr, u16); 2]);

impl Key {
    pub(super) fn of(segment: &Segment, direction: Direction) -> Self {
        Self(segment.ends(direction))
    }
}

/// What is known of a connection. Only of one whose handshake was seen: of any other it cannot be said that
/// something did *not* go past.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// What each side sends.
    halves: PerDirection<Option<Half>>,
    /// A SYN opens a connection, or another one between the same ends, or is an old duplicate that means nothing
    /// (RFC 9293 §3.5): the answer will tell.
    pending: PerDirection<Option<Syn>>,
}

#[derive(Clone, Debug)]
pub(super) struct Half {
    isn: u32,
    pub(super) transited: Transited,
    pub(super) second: bool,
}

/// What a SYN says, with or without an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub(super) isn: u32,
    /// Payload with the SYN (RFC 7413).
    pub(super) octets: u32,
    /// Another agent, nearer to the sender, sees what is sent.
    pub(super) second: bool,
}

impl Half {
    fn new(syn: Syn) -> Self {
        Self {
            isn: syn.isn,
            transited: Transited::new(syn.isn.wrapping_add(1), syn.octets),
            second: syn.second,
        }
    }

    fn again(&mut self, syn: Syn) {
        self.second = syn.second;
        // Astray once the connection is past its first gigabyte: then it adds nothing.
        let _ = self.transited.record(syn.isn.wrapping_add(1), syn.octets);
    }
}

impl Flow {
    pub(super) fn half(&self, direction: Direction) -> Option<&Half> {
        self.halves[direction].as_ref()
    }

    pub(super) fn half_mut(&mut self, direction: Direction) -> Option<&mut Half> {
        self.halves[direction].as_mut()
    }

    /// This station does not see everything that goes this way, and so knows nothing.
    pub(super) fn give_up(&mut self, direction: Direction) {
        self.halves[direction] = None;
    }

    /// A SYN without an ACK goes past.
    pub(super) fn syn(&mut self, direction: Direction, syn: Syn) {
        match &mut self.halves[direction] {
            Some(half) if half.isn == syn.isn => half.again(syn),
            _ => self.pending[direction] = Some(syn),
        }
    }

    /// A SYN with an ACK goes past.
    pub(super) fn syn_ack(&mut self, direction: Direction, syn: Syn, ack: u32) {
        let (asker, answered) = (direction.reversed(), ack.wrapping_sub(1));
        if let Some(confirmed) = self.pending[asker].take_if(|pending| pending.isn == answered) {
            self.halves[asker] = Some(Half::new(confirmed));
            self.pending[direction] = None;
            match &mut self.halves[direction] {
                // Both sides opened at once: this one's SYN was confirmed before.
                Some(half) if half.isn == syn.isn => half.again(syn),
                half => *half = Some(Half::new(syn)),
            }
        } else if self.half(asker).is_some_and(|half| half.isn == answered) {
            match &mut self.halves[direction] {
                Some(half) if half.isn == syn.isn => half.again(syn),
                // Two different answers to one SYN: it cannot be told which of them counts.
                half => *half = None,
            }
        }
    }

    fn heap(&self) -> usize {
        self.halves.iter().filter_map(|(_, half)| half.as_ref()).map(|half| half.transited.heap()).sum()
    }
}

/// The flows, and the order in which they were last used.
#[derive(Debug)]
pub(super) struct Flows {
    index: BTreeMap<Key, u32>,
    slots: Vec<Slot>,
    newest: Option<u32>,
    oldest: Option<u32>,
    capacity: usize,
    pub(super) evicted: u64,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    flow: Flow,
    newer: Option<u32>,
    older: Option<u32>,
}

impl Flows {
    pub(super) fn new(capacity: std::num::NonZeroU32) -> Self {
        Self {
            index: BTreeMap::new(),
            slots: Vec::new(),
            newest: None,
            oldest: None,
            capacity: capacity.get() as usize,
            evicted: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Octets of memory, the index's own overhead apart.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.index.len() * size_of::<(Key, u32)>()
            + self.slots.iter().map(|slot| slot.flow.heap()).sum::<usize>()
    }

    /// The flow, which thereby becomes the most recently used.
    pub(super) fn find(&mut self, key: Key) -> Option<&mut Flow> {
        let slot = *self.index.get(&key)?;
        self.refresh(slot);
        Some(&mut self.slots[slot as usize].flow)
    }

    pub(super) fn find_or_insert(&mut self, key: Key) -> &mut Flow {
        let slot = match self.index.get(&key) {
            Some(slot) => {
                let slot = *slot;
                self.refresh(slot);
                slot
            }
            None => {
                let new = Slot { key, flow: Flow::default(), newer: None, older: None };
                let slot = match self.oldest.filter(|_| self.slots.len() >= self.capacity) {
                    Some(oldest) => {
                        self.unlink(oldest);
                        self.index.remove(&self.slots[oldest as usize].key);
                        self.slots[oldest as usize] = new;
                        self.evicted += 1;
                        oldest
                    }
                    None => {
                        self.slots.push(new);
                        (self.slots.len() - 1) as u32
                    }
                };
                self.index.insert(key, slot);
                self.link_newest(slot);
                slot
            }
        };
        &mut self.slots[slot as usize].flow
    }

    fn refresh(&mut self, slot: u32) {
        if self.newest != Some(slot) {
            self.unlink(slot);
            self.link_newest(slot);
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match newer {
            Some(newer) => self.slots[newer as usize].older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => self.slots[older as usize].newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let previous = self.newest.replace(slot);
        match previous {
            Some(previous) => self.slots[previous as usize].newer = Some(slot),
            None => self.oldest = Some(slot),
        }
        self.slots[slot as usize].older = previous;
        self.slots[slot as usize].newer = None;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use Direction::{Down, Up};

    use super::*;

    fn key(port: u16) -> Key {
        Key([(Ipv6Addr::LOCALHOST, port), (Ipv6Addr::LOCALHOST, 80)])
    }

    fn syn(isn: u32) -> Syn {
        Syn { isn, octets: 0, second: false }
    }

    fn isns(flow: &Flow) -> [Option<u32>; 2] {
        [Down, Up].map(|direction| flow.half(direction).map(|half| half.isn))
    }

    #[test]
    fn a_handshake_begins_both_halves_and_its_retransmissions_nothing() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        assert_eq!(isns(&flow), [None, None], "a SYN alone may be an old duplicate");
        flow.syn_ack(Up, syn(900), 101);
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
        flow.half_mut(Down).unwrap().transited.record(101, 50).unwrap();
        flow.syn(Down, syn(100));
        flow.syn_ack(Up, syn(900), 101);
        assert_eq!(flow.half(Down).unwrap().transited.has(150), super::super::ranges::Transit::Seen);
    }

    #[test]
    fn both_sides_may_open_at_once() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn(Up, syn(900));
        flow.syn_ack(Up, syn(900), 101);
        flow.syn_ack(Down, syn(100), 901);
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
    }

    #[test]
    fn another_connection_between_the_same_ends_begins_with_its_answer() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn_ack(Up, syn(900), 101);
        flow.syn(Down, syn(70_000));
        assert_eq!(isns(&flow), [Some(100), Some(900)], "so far it may be an old duplicate");
        flow.syn_ack(Up, syn(80_000), 70_001);
        assert_eq!(isns(&flow), [Some(70_000), Some(80_000)]);
    }

    #[test]
    fn old_duplicates_of_a_handshake_change_nothing() {
        let mut flow = Flow::default();
        flow.syn(Down, syn(100));
        flow.syn_ack(Up, syn(900), 101);
        flow.syn_ack(Up, syn(5), 6);
        assert_eq!(isns(&flow), [Some(100), Some(900)]);
        flow.syn_ack(Up, syn(5), 101);
        assert_eq!(isns(&flow), [Some(100), None], "two answers to one SYN");
    }

    #[test]
    fn a_syn_ack_whose_syn_went_another_way_tells_nothing() {
        let mut flow = Flow::default();
        flow.syn_ack(Up, syn(900), 101);
        assert_eq!(isns(&flow), [None, None]);
    }

    #[test]
    fn the_least_recently_used_flow_is_forgotten() {
        let mut flows = Flows::new(NonZeroU32::new(3).unwrap());
        for port in [1, 2, 3] {
            flows.find_or_insert(key(port)).syn(Down, syn(u32::from(port)));
        }
        assert!(flows.find(key(1)).is_some());
        flows.find_or_insert(key(4));
        let left: Vec<u16> = (1..=4).filter(|port| flows.find(key(*port)).is_some()).collect();
        assert_eq!((left, flows.len(), flows.evicted), (vec![1, 3, 4], 3, 1));
        for port in 10..100 {
            flows.find_or_insert(key(port));
        }
        assert_eq!((flows.len(), flows.index.len()), (3, 3));
    }

    #[test]
    fn ten_thousand_busy_flows_take_a_few_hundred_octets_each() {
        let mut flows = Flows::new(NonZeroU32::new(10_000).unwrap());
        for port in 0..10_000 {
            let flow = flows.find_or_insert(key(port));
            flow.syn(Down, syn(0));
            flow.syn_ack(Up, syn(0), 1);
            for direction in Direction::BOTH {
                let transited = &mut flow.half_mut(direction).unwrap().transited;
                for segment in 0..1000 {
                    transited.record(1 + segment * 1000, 1000).unwrap();
                }
            }
        }
        let each = flows.memory() / 10_000;
        println!("{each} octets for each flow");
        assert!(each < 512, "{each} octets for each flow");

        // At worst every second segment is missing, everywhere.
        for port in 0..10_000 {
            for direction in Direction::BOTH {
                let flow = flows.find(key(port)).unwrap();
                for segment in 0..1000 {
                    flow.half_mut(direction)
                        .unwrap()
                        .transited
                        .record(2_000_000 + segment * 2000, 1000)
                        .unwrap();
                }
            }
        }
        let worst = flows.memory() / 10_000;
        println!("{worst} octets at worst");
        assert!(worst < 9_000, "{worst} octets for each flow");
    }
}
