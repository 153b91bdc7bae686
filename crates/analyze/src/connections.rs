//! Tells connections apart, and lets go of those that are over, so that memory does not grow with the capture.

use std::collections::BTreeMap;

use super::connection::{Connection, Ended, Keep};
use super::endpoints::Ends;
use super::packet::{Packet, Timestamp};
use super::problem::{Problem, Problems};

/// A connection of which no more is expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// In the order of their first packets, from 0: Wireshark's `tcp.stream`.
    pub number: u64,
    pub ended: Ended,
}

/// Of which connections all is wanted that happened, for pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traces {
    #[default]
    None,
    Of(u64),
    All,
}

impl Traces {
    fn keep(self, number: u64) -> Keep {
        match self {
            Self::None => Keep::Findings,
            Self::Of(wanted) if wanted != number => Keep::Findings,
            Self::Of(_) | Self::All => Keep::Trace,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many are followed at a time. When a further one begins, what is over has to go, then what has been silent
    /// for longest; if all of them are busy, it is not followed itself.
    pub open: usize,
    /// Or as many as fit into so much memory. If those that are followed outgrow it, what is silent for longest goes
    /// even if it is busy.
    pub octets: usize,
    /// Nanoseconds for which a connection that is over waits for late packets: 2 MSL, as in Linux and BSD 60 s, and
    /// as long again for retransmissions of the FIN.
    pub linger: i64,
}

/// Some 1.5 KiB each while there is little in flight.
const OPEN: usize = 110_000;
/// Of 200 MB for the whole program.
const OCTETS: usize = 172_000_000;

impl Default for Limits {
    fn default() -> Self {
        Self { open: OPEN, octets: OCTETS, linger: 120 * 1_000_000_000 }
    }
}

pub struct Connections {
    traces: Traces,
    limits: Limits,
    slots: Vec<Option<Box<Open>>>,
    free: Vec<usize>,
    by_ends: BTreeMap<Ends, usize>,
    /// Whose the last packet was: the next one is often of the same.
    last: Option<usize>,
    /// Also the number of the next one.
    count: u64,
    /// What all of them take.
    octets: usize,
    since_sweep: usize,
}

struct Open {
    number: u64,
    /// What it took when it was weighed last.
    octets: usize,
    connection: Connection,
}

/// A slot and a place in a tree whose nodes are half full.
const INDEXED: usize = size_of::<usize>() + 2 * size_of::<(Ends, usize)>();

impl Open {
    fn weigh(&self) -> usize {
        let own = size_of::<Self>() - size_of::<Connection>();
        own + self.connection.octets() + self.connection.ends().heap() + INDEXED
    }
}

impl Connections {
    pub fn new(traces: Traces, limits: Limits) -> Self {
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
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn open(&self) -> usize {
        self.by_ends.len()
    }

    /// Of memory, about: what all that are open take.
    pub fn octets(&self) -> usize {
        self.octets
    }

    pub fn take(&mut self, packet: &Packet, problems: &mut Problems, finished: &mut dyn FnMut(Finished)) {
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
            self.let_go(packet.at, finished);
        }
    }

    fn find(&self, packet: &Packet) -> Option<usize> {
        let is_of = |at: &usize| {
            self.slots[*at].as_ref().is_some_and(|open| open.connection.ends().are(packet.src, packet.dst))
        };
        let search = || self.by_ends.get(&Ends::sorted(packet.src, packet.dst)).copied();
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
        self.by_ends.insert(Ends::sorted(packet.src, packet.dst), at);
        self.slots[at] = Some(open);
        at
    }

    fn end(&mut self, at: usize, finished: &mut dyn FnMut(Finished)) {
        let Some(open) = self.slots[at].take() else { return };
        let [one, other] = open.connection.ends().both();
        self.by_ends.remove(&Ends::sorted(one, other));
        self.last = None;
        self.free.push(at);
        self.octets -= open.octets;
        finished(Finished { number: open.number, ended: open.connection.finish() });
    }

    /// With its slot, each that is open.
    fn followed(&self) -> impl Iterator<Item = (usize, &Open)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.as_deref()?)))
    }

    /// Hands out what has been over for a while.
    pub fn let_go(&mut self, now: Timestamp, finished: &mut dyn FnMut(Finished)) {
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

    /// So many go at a time, and between two looks for some to go are so many packets: looking costs no more than
    /// packets do.
    fn share(&self) -> usize {
        (self.by_ends.len() / 8).max(1)
    }

    fn is_full(&self) -> bool {
        // Those that are followed must have room to grow.
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

    /// Ends an eighth: what is over, then what has been silent for longest, and for so many nanoseconds at least.
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

    /// What is left, in the order of its numbers.
    pub fn finish(self, finished: &mut dyn FnMut(Finished)) {
        let mut open: Vec<_> = self.slots.into_iter().flatten().collect();
        open.sort_unstable_by_key(|open| open.number);
        for open in open {
            let Open { number, connection, .. } = *open;
            finished(Finished { number, ended: connection.finish() });
        }
    }
}

/// Packets of a connection after which it is weighed again, as long as less than half of the memory is taken.
const WEIGHED: u64 = 8;
/// Nanoseconds of silence after which a connection makes room.
const SILENT: i64 = 10_000_000_000;
/// Packets between two looks at all connections, at least.
const SWEEP: usize = 1024;

#[cfg(test)]
mod tests;
