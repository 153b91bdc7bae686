//! Sorts packets by connection, and finishes connections that are over so that memory does not grow with the capture.

use std::collections::BTreeMap;

use super::connection::{Connection, Ended, Keep};
use super::endpoints::Endpoints;
use aircaptures::icmp::IcmpError;
use aircaptures::packet::{Packet, Timestamp};
use aircaptures::problem::{Problem, Problems};

/// A connection of which no more packets are expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Counted from 0 in the order of the first packets: Wireshark's `tcp.stream`.
    pub number: u64,
    /// What is said about it.
    pub ended: Ended,
}

/// The connections whose every packet is kept, as a [`Trace`](crate::trace::Trace).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Traces {
    /// None of them: memory does not grow with the capture.
    #[default]
    None,
    /// The one with this number.
    Of(u64),
    /// Those with these numbers.
    Among(Vec<u64>),
    /// Every connection.
    All,
}

impl Traces {
    fn keep(&self, number: u64) -> Keep {
        let wanted = match self {
            Self::None => false,
            Self::Of(wanted) => *wanted == number,
            Self::Among(wanted) => wanted.contains(&number),
            Self::All => true,
        };
        if wanted { Keep::Trace } else { Keep::Findings }
    }
}

/// How many connections are followed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections. When one more begins, those that are over are finished, then those that were silent
    /// longest; if all are busy, the new one is not followed.
    pub open: usize,
    /// The most octets of memory. If the connections that are followed outgrow it, those that were silent longest are
    /// finished even if they are busy.
    pub octets: usize,
    /// Nanoseconds for which a connection that is over waits for late packets. The default is 120 s: 2 MSL, which are
    /// 60 s in Linux and BSD, and as long again for retransmissions of the FIN.
    pub linger: i64,
}

/// A connection takes some 1.5 KiB while there is little in flight.
const OPEN: usize = 110_000;
/// The whole program takes 200 MB at most.
const OCTETS: usize = 178_000_000;

impl Default for Limits {
    fn default() -> Self {
        Self { open: OPEN, octets: OCTETS, linger: 120 * 1_000_000_000 }
    }
}

/// The connections that are followed.
pub(crate) struct Connections {
    traces: Traces,
    limits: Limits,
    slots: Vec<Option<Box<Open>>>,
    free: Vec<usize>,
    by_ends: BTreeMap<Endpoints, usize>,
    /// The slot of the last packet's connection: the next packet is often of the same one.
    last: Option<usize>,
    /// How many there have been, which is also the number of the next one.
    count: u64,
    /// The memory of all that are open.
    octets: usize,
    /// Packets since all connections were last looked at.
    since_sweep: usize,
}

struct Open {
    number: u64,
    /// Its memory when it was last weighed.
    octets: usize,
    connection: Connection,
}

/// Octets of a slot and of an entry in a tree whose nodes are half full.
const INDEXED: usize = size_of::<usize>() + 2 * size_of::<(Endpoints, usize)>();

impl Open {
    fn weigh(&self) -> usize {
        let own = size_of::<Self>() - size_of::<Connection>();
        own + self.connection.octets() + self.connection.ends().heap() + INDEXED
    }
}

impl Connections {
    pub(crate) fn new(traces: Traces, limits: Limits) -> Self {
        Self {
            traces,
            limits,
            slots: Vec::new(),
            free: Vec::new(),
            by_ends: BTreeMap::new(),
            last: None,
            count: 0,
            octets: 0,
            since_sweep: 0,
        }
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    #[cfg(test)]
    fn open(&self) -> usize {
        self.by_ends.len()
    }

    /// The memory of all that are open, about.
    #[cfg(test)]
    fn octets(&self) -> usize {
        self.octets
    }

    pub(crate) fn take(
        &mut self,
        packet: &Packet,
        problems: &mut Problems,
        finished: &mut dyn FnMut(Finished),
    ) {
        self.since_sweep += 1;
        let known = self.find(packet);
        let at = match known.and_then(|at| Some((at, self.slots[at].as_mut()?))) {
            Some((at, open)) if !open.connection.begins_anew(packet) => {
                open.connection.take(packet);
                if self.octets > self.limits.octets / 2 || open.connection.packets().is_multiple_of(WEIGHED) {
                    let octets = open.weigh();
                    self.octets = self.octets - std::mem::replace(&mut open.octets, octets) + octets;
                }
                at
            }
            _ => {
                if let Some(at) = known {
                    self.end(at, finished);
                }
                if !self.has_room(packet, problems, finished) {
                    return problems.note(Problem::NotFollowed, packet.number);
                }
                self.begin(packet)
            }
        };
        self.last = Some(at);
        if self.octets > self.limits.octets && self.since_sweep >= self.share() {
            self.make_room(0, packet, problems, finished);
        }
        if self.since_sweep > self.by_ends.len().max(SWEEP) {
            self.finish_old(packet.at, finished);
        }
    }

    /// Whether the packet's octets are worth keeping: the last packet's connection may have no more use for them.
    pub(crate) fn may_want_octets(&self, packet: &Packet) -> bool {
        let last = self.last.and_then(|at| self.slots[at].as_ref());
        let its = last.filter(|open| open.connection.ends().is_between(packet.src, packet.dst));
        its.is_none_or(|open| open.connection.wants_octets(packet))
    }

    /// Takes in what was kept of the payload of the packet that was taken in last, if it is of any interest.
    pub(crate) fn take_octets(&mut self, packet: &Packet, octets: &[u8]) {
        let Some(at) = self.last else { return };
        let is_its = |open: &&mut Box<Open>| {
            open.connection.ends().is_between(packet.src, packet.dst) && open.connection.wants_octets(packet)
        };
        let Some(open) = self.slots[at].as_mut().filter(is_its) else { return };
        open.connection.take_octets(packet, octets);
        let octets = open.weigh();
        self.octets = self.octets - std::mem::replace(&mut open.octets, octets) + octets;
    }

    /// Takes in an error in frame `number`. Returns whether it is about a connection that is followed.
    pub(crate) fn take_icmp(&mut self, error: &IcmpError, number: u64, at: Timestamp) -> bool {
        let [from, to] = error.about;
        let Some(slot) = self.by_ends.get(&Endpoints::sorted(from, to)) else { return false };
        let Some(open) = self.slots[*slot].as_mut() else { return false };
        open.connection.take_icmp(error, number, at);
        let octets = open.weigh();
        self.octets = self.octets - std::mem::replace(&mut open.octets, octets) + octets;
        true
    }

    fn find(&self, packet: &Packet) -> Option<usize> {
        let is_of = |at: &usize| {
            self.slots[*at]
                .as_ref()
                .is_some_and(|open| open.connection.ends().is_between(packet.src, packet.dst))
        };
        let search = || self.by_ends.get(&Endpoints::sorted(packet.src, packet.dst)).copied();
        self.last.filter(is_of).or_else(search)
    }

    fn begin(&mut self, packet: &Packet) -> usize {
        let number = self.count;
        self.count += 1;
        let mut connection = Connection::new(packet, self.traces.keep(number));
        connection.take(packet);
        let mut open = Box::new(Open { number, octets: 0, connection });
        open.octets = open.weigh();
        self.octets += open.octets;
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.by_ends.insert(Endpoints::sorted(packet.src, packet.dst), at);
        self.slots[at] = Some(open);
        at
    }

    fn end(&mut self, at: usize, finished: &mut dyn FnMut(Finished)) {
        let Some(open) = self.slots[at].take() else { return };
        let [one, other] = open.connection.ends().both();
        self.by_ends.remove(&Endpoints::sorted(one, other));
        self.last = None;
        self.free.push(at);
        self.octets -= open.octets;
        finished(Finished { number: open.number, ended: open.connection.finish() });
    }

    /// The open connections, each with its slot.
    fn followed(&self) -> impl Iterator<Item = (usize, &Open)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.as_deref()?)))
    }

    /// Finishes the connections that have been over for longer than they linger.
    pub(crate) fn finish_old(&mut self, now: Timestamp, finished: &mut dyn FnMut(Finished)) {
        self.since_sweep = 0;
        let is_gone = |connection: &Connection| {
            connection.is_over() && now.0.saturating_sub(connection.last_packet().0) > self.limits.linger
        };
        let gone = self.followed().filter(|(_, open)| is_gone(&open.connection));
        let gone: Vec<_> = gone.map(|(at, _)| at).collect();
        for at in gone {
            self.end(at, finished);
        }
    }

    /// An eighth of the open connections. So many are finished at a time to make room, and at least so many packets pass
    /// until it happens again: thus looking at all of them costs no more than the packets do.
    fn share(&self) -> usize {
        (self.by_ends.len() / 8).max(1)
    }

    fn is_full(&self) -> bool {
        // The connections that are open need room to grow.
        let for_new = self.limits.octets - self.limits.octets / 32;
        self.by_ends.len() >= self.limits.open || self.octets >= for_new
    }

    fn has_room(
        &mut self,
        packet: &Packet,
        problems: &mut Problems,
        finished: &mut dyn FnMut(Finished),
    ) -> bool {
        if self.is_full() && self.since_sweep >= self.share() {
            self.make_room(SILENT, packet, problems, finished);
        }
        !self.is_full()
    }

    /// Finishes a share of the connections: those that are over, then those that were silent longest and for at least
    /// `silent` nanoseconds.
    fn make_room(
        &mut self,
        silent: i64,
        packet: &Packet,
        problems: &mut Problems,
        finished: &mut dyn FnMut(Finished),
    ) {
        self.since_sweep = 0;
        let share = self.share();
        let open = self
            .followed()
            .map(|(at, open)| (!open.connection.is_over(), open.connection.last_packet(), open.number, at));
        let is_silent = |last: Timestamp| packet.at.0.saturating_sub(last.0) >= silent;
        let mut going: Vec<_> =
            open.filter(|(is_going_on, last, ..)| !is_going_on || is_silent(*last)).collect();
        if going.len() > share {
            going.select_nth_unstable(share - 1);
            going.truncate(share);
        }
        going.sort_unstable();
        let cut_off = going.iter().filter(|(is_going_on, ..)| *is_going_on).count();
        problems.add(Problem::Crowded, packet.number, cut_off as u64);
        for (.., at) in going {
            self.end(at, finished);
        }
    }

    /// Finishes the rest, in the order of their numbers.
    pub(crate) fn finish(self, finished: &mut dyn FnMut(Finished)) {
        let mut open: Vec<_> = self.slots.into_iter().flatten().collect();
        open.sort_unstable_by_key(|open| open.number);
        for open in open {
            let Open { number, connection, .. } = *open;
            finished(Finished { number, ended: connection.finish() });
        }
    }
}

/// Packets of a connection after which its memory is weighed again, while less than half of the limit is taken.
const WEIGHED: u64 = 8;
/// Nanoseconds of silence after which a connection may be finished to make room.
const SILENT: i64 = 10_000_000_000;
/// The least number of packets between two looks at all connections.
const SWEEP: usize = 1024;

#[cfg(test)]
mod tests;
