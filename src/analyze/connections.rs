//! Tells connections apart, and lets go of those that are over, so that memory does not grow with the capture.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::connection::{Connection, Ended, Keep};
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
    /// Nanoseconds for which a connection that is over waits for late packets: 2 MSL, as in Linux and BSD 60 s, and
    /// as long again for retransmissions of the FIN.
    pub linger: i64,
}

/// Some 7 KiB each while there is little in flight.
const OPEN: usize = 20_000;

impl Default for Limits {
    fn default() -> Self {
        Self { open: OPEN, linger: 120 * 1_000_000_000 }
    }
}

pub struct Connections {
    traces: Traces,
    limits: Limits,
    slots: Vec<Option<Box<Open>>>,
    free: Vec<usize>,
    by_ends: BTreeMap<Ends, usize>,
    /// Whose the last packet was: the next one is often of the same.
    last: Option<(Ends, usize)>,
    /// Also the number of the next one.
    count: u64,
    since_sweep: usize,
}

struct Open {
    number: u64,
    ends: Ends,
    connection: Connection,
}

/// The same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ends(SocketAddr, SocketAddr);

impl Ends {
    fn of(packet: &Packet) -> Self {
        Self(packet.src.min(packet.dst), packet.src.max(packet.dst))
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

    pub fn take(&mut self, packet: &Packet, problems: &mut Problems, finished: &mut dyn FnMut(Finished)) {
        self.since_sweep += 1;
        let ends = Ends::of(packet);
        let at = match self.last {
            Some((last, at)) if last == ends => Some(at),
            _ => self.by_ends.get(&ends).copied(),
        };
        let at = at.filter(|at| match &mut self.slots[*at] {
            Some(open) if !open.connection.begins_anew(packet) => {
                open.connection.take(packet);
                true
            }
            _ => false,
        });
        let at = match at {
            Some(at) => at,
            None => {
                self.end(ends, finished);
                if !self.has_room(packet, problems, finished) {
                    return problems.note(Problem::NotFollowed, packet.number);
                }
                self.begin(ends, packet)
            }
        };
        self.last = Some((ends, at));
        if self.since_sweep > self.by_ends.len().max(SWEEP) {
            self.let_go(packet.at, finished);
        }
    }

    fn begin(&mut self, ends: Ends, packet: &Packet) -> usize {
        let number = self.count;
        self.count += 1;
        let mut connection = Connection::new(packet, self.traces.keep(number));
        connection.take(packet);
        let open = Open { number, ends, connection };
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(Box::new(open));
        self.by_ends.insert(ends, at);
        at
    }

    fn end(&mut self, ends: Ends, finished: &mut dyn FnMut(Finished)) {
        let Some(at) = self.by_ends.remove(&ends) else { return };
        self.last = None;
        self.free.push(at);
        if let Some(open) = self.slots[at].take() {
            finished(Finished { number: open.number, ended: open.connection.finish() });
        }
    }

    /// Hands out what has been over for a while.
    pub fn let_go(&mut self, now: Timestamp, finished: &mut dyn FnMut(Finished)) {
        self.since_sweep = 0;
        let gone = |connection: &Connection| {
            connection.is_over() && now.0.saturating_sub(connection.last_packet().0) > self.limits.linger
        };
        let open = self.slots.iter().flatten();
        let gone: Vec<_> = open.filter(|open| gone(&open.connection)).map(|open| open.ends).collect();
        for ends in gone {
            self.end(ends, finished);
        }
    }

    /// Looks at all of them for one to let go only so often that it costs no more than packets do; then up to an
    /// eighth goes.
    fn has_room(
        &mut self,
        packet: &Packet,
        problems: &mut Problems,
        finished: &mut dyn FnMut(Finished),
    ) -> bool {
        let share = (self.limits.open / 8).max(1);
        if self.by_ends.len() < self.limits.open || self.since_sweep < share {
            return self.by_ends.len() < self.limits.open;
        }
        self.since_sweep = 0;
        let open =
            self.slots.iter().flatten().map(|open| {
                (!open.connection.is_over(), open.connection.last_packet(), open.number, open.ends)
            });
        let silent = |last: Timestamp| packet.at.0.saturating_sub(last.0) >= SILENT;
        let mut going: Vec<_> =
            open.filter(|(is_going_on, last, ..)| !is_going_on || silent(*last)).collect();
        if going.len() > share {
            going.select_nth_unstable(share - 1);
            going.truncate(share);
        }
        going.sort_unstable();
        let cut_off = going.iter().filter(|(is_going_on, ..)| *is_going_on).count();
        problems.add(Problem::Crowded, packet.number, cut_off as u64);
        for (.., ends) in going {
            self.end(ends, finished);
        }
        self.by_ends.len() < self.limits.open
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

/// Nanoseconds of silence after which a connection makes room.
const SILENT: i64 = 10_000_000_000;
/// Packets between two looks at all connections, at least.
const SWEEP: usize = 1024;

#[cfg(test)]
mod tests;
