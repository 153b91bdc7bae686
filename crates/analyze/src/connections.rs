//! Assigns packets to connections, and finishes connections that have ended, so that memory remains bounded.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::connection::findings::RecentFindings;
use super::connection::{ClockVote, Connection, Ended, Keep};
use super::endpoints::Endpoints;
use super::recent::Recent;
use super::resolution::Resolution;
use aircaptures::icmp::IcmpError;
use aircaptures::packet::{Packet, Timestamp};
use aircaptures::problem::{Problem, Problems};

/// A connection for which no more packets are expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The number of the connection, counted from 0 in the order of the first packets. It is Wireshark's
    /// `tcp.stream`.
    pub number: u64,
    /// The results.
    pub ended: Ended,
    /// The verdict about the last seconds, if the survey [judges](crate::survey::Survey::judging_recent) them.
    pub recent: Option<Box<RecentFindings>>,
}

/// The captured part of a connection that is still followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The number of the connection, as in [`Finished::number`].
    pub number: u64,
    /// The two ends, in the order of
    /// [`ConnectionFindings::ends`](crate::connection::findings::ConnectionFindings::ends).
    pub ends: [SocketAddr; 2],
    /// Data of each end in bytes: acknowledged data if the capture contains ACKs, otherwise sent data.
    pub bytes: [u64; 2],
    /// Whether data of either end is outstanding.
    pub has_outstanding: bool,
}

/// Selects the connections whose packets are kept as a [`Trace`](crate::trace::Trace).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Traces {
    /// No connection. Memory does not grow with the capture.
    #[default]
    None,
    /// The connection with this number.
    Of(u64),
    /// The connections with these numbers.
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

/// Limits on the connections that are followed at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections. At the limit, a new connection displaces connections that have ended,
    /// then the ones that have been idle longest. If all are busy, the new connection is not followed.
    pub open: usize,
    /// Maximum memory in bytes. Above it, the connections that have been idle longest are finished, even if
    /// they are busy.
    pub memory: usize,
    /// Nanoseconds for which an ended connection waits for late packets. The default is 120 s: 2 MSL (60 s in
    /// Linux and BSD), and the same again for retransmissions of the FIN.
    pub linger: i64,
}

/// Default of [`Limits::open`]. A connection with little data in flight takes about 1.5 KiB.
const OPEN: usize = 110_000;
/// Default of [`Limits::memory`]. With it, the whole program takes at most 200 MB.
const MEMORY: usize = 178_000_000;

impl Default for Limits {
    fn default() -> Self {
        Self { open: OPEN, memory: MEMORY, linger: 120 * 1_000_000_000 }
    }
}

/// The connections that are currently followed.
pub(crate) struct Connections {
    traces: Traces,
    limits: Limits,
    slots: Vec<Option<Box<Open>>>,
    free: Vec<usize>,
    by_ends: BTreeMap<Endpoints, usize>,
    /// The slot of the last packet's connection. The next packet often belongs to the same one.
    last: Option<usize>,
    /// Number of connections so far, which is also the number of the next one.
    count: u64,
    /// Memory of all open connections in bytes.
    memory: usize,
    /// Number of packets since the last pass over all connections.
    since_sweep: usize,
    resolution: Resolution,
    /// The last seconds of each connection, if they are judged.
    recent: Option<Recent>,
}

struct Open {
    number: u64,
    /// Memory of the connection at the last measurement.
    memory: usize,
    connection: Connection,
}

/// Bytes of a slot and of an entry in a tree whose nodes are half full.
const INDEX_ENTRY: usize = size_of::<usize>() + 2 * size_of::<(Endpoints, usize)>();

impl Open {
    /// Measures the memory again, and updates the `total` of all connections.
    fn remeasure(&mut self, total: &mut usize) {
        let own = size_of::<Self>() - size_of::<Connection>();
        let memory = own + self.connection.memory() + self.connection.ends().heap() + INDEX_ENTRY;
        *total = *total - std::mem::replace(&mut self.memory, memory) + memory;
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
            memory: 0,
            since_sweep: 0,
            resolution: Resolution::default(),
            recent: None,
        }
    }

    /// Also judges the last seconds of each connection that begins from now on.
    pub(crate) fn judge_recent(&mut self) {
        self.recent = Some(Recent::default());
    }

    /// Returns what the packet shows about the time since the last packet of its connection.
    pub(crate) fn clock_vote(&self, packet: &Packet) -> Option<ClockVote> {
        let open = self.slots[self.find(packet)?].as_ref()?;
        open.connection.clock_vote(packet)
    }

    /// Returns the resolution of the capture's clock.
    pub(crate) fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    /// Returns the number of connections so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    #[cfg(test)]
    fn open(&self) -> usize {
        self.by_ends.len()
    }

    /// Returns the approximate memory of all open connections in bytes.
    fn memory(&self) -> usize {
        self.memory + self.recent.as_ref().map_or(0, Recent::memory)
    }

    /// Passes the packet to its connection. Calls `finished` with the connections that end.
    pub(crate) fn process(
        &mut self,
        packet: &Packet,
        problems: &mut Problems,
        finished: &mut dyn FnMut(Finished),
    ) {
        self.since_sweep += 1;
        self.resolution.add(packet.at);
        let known = self.find(packet);
        let at = match known.and_then(|at| Some((at, self.slots[at].as_mut()?))) {
            Some((at, open)) if !open.connection.starts_new_connection(packet) => {
                if let Some(recent) = &mut self.recent {
                    recent.process(at, &open.connection, packet);
                }
                open.connection.process(packet);
                if open.connection.notices_clocks() {
                    problems.record(Problem::ClocksDiffer, packet.number);
                }
                if self.memory > self.limits.memory / 2
                    || open.connection.packets().is_multiple_of(MEASURED_EVERY)
                {
                    open.remeasure(&mut self.memory);
                }
                at
            }
            _ => {
                if let Some(at) = known {
                    self.end(at, finished);
                }
                if !self.has_room(packet, problems, finished) {
                    return problems.record(Problem::NotFollowed, packet.number);
                }
                self.begin(packet)
            }
        };
        self.last = Some(at);
        if self.memory() > self.limits.memory && self.since_sweep >= self.share() {
            self.make_room(0, packet, problems, finished);
        }
        if self.since_sweep > self.by_ends.len().max(MIN_SWEEP) {
            self.finish_old(packet.at, finished);
        }
    }

    /// Returns whether the packet's payload may be needed. Returns false only if the last packet's connection
    /// is known not to need it.
    pub(crate) fn may_want_payload(&self, packet: &Packet) -> bool {
        let last = self.last.and_then(|at| self.slots[at].as_ref());
        let last = last.filter(|open| open.connection.ends().is_between(packet.src, packet.dst));
        last.is_none_or(|open| open.connection.wants_payload(packet))
    }

    /// Passes the captured payload of the last packet to its connection, if the connection needs it.
    pub(crate) fn process_payload(&mut self, packet: &Packet, payload: &[u8]) {
        let Some(at) = self.last else { return };
        let Some(open) = &mut self.slots[at] else { return };
        let connection = &open.connection;
        if !connection.ends().is_between(packet.src, packet.dst) || !connection.wants_payload(packet) {
            return;
        }
        open.connection.process_payload(packet, payload);
        open.remeasure(&mut self.memory);
    }

    /// Passes the ICMP error of frame `number` to its connection. Returns whether that connection is
    /// followed.
    pub(crate) fn process_icmp(&mut self, error: &IcmpError, number: u64, at: Timestamp) -> bool {
        let [from, to] = error.about;
        let Some(slot) = self.by_ends.get(&Endpoints::sorted(from, to)) else { return false };
        let Some(open) = self.slots[*slot].as_mut() else { return false };
        open.connection.process_icmp(error, number, at);
        open.remeasure(&mut self.memory);
        true
    }

    #[inline]
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
        connection.process(packet);
        let mut open = Box::new(Open { number, memory: 0, connection });
        open.remeasure(&mut self.memory);
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
        self.memory -= open.memory;
        finished(finish(at, *open, self.recent.as_mut(), self.resolution.step()));
    }

    /// Returns the open connections with their slots.
    fn followed(&self) -> impl Iterator<Item = (usize, &Open)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.as_deref()?)))
    }

    /// Returns the open connections in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Followed> {
        self.followed().filter(|(_, open)| !open.connection.is_over()).map(|(_, open)| Followed {
            number: open.number,
            ends: open.connection.ends().both(),
            bytes: open.connection.transferred(),
            has_outstanding: open.connection.has_outstanding(),
        })
    }

    fn between(&self, ends: [SocketAddr; 2]) -> Option<(usize, &Open)> {
        let at = *self.by_ends.get(&Endpoints::sorted(ends[0], ends[1]))?;
        Some((at, self.slots[at].as_deref()?))
    }

    /// Returns the results for an open connection as if its last packet had been captured.
    pub(crate) fn results_so_far(&self, ends: [SocketAddr; 2]) -> Option<Ended> {
        Some(self.between(ends)?.1.connection.clone().finish(self.resolution.step()))
    }

    /// Returns the verdict about the last seconds of an open connection before `now`.
    pub(crate) fn recent(&self, ends: [SocketAddr; 2], now: Timestamp) -> Option<RecentFindings> {
        let (at, open) = self.between(ends)?;
        Some(self.recent.as_ref()?.findings(at, &open.connection, now, self.resolution.step()))
    }

    /// Finishes the connections that ended longer ago than `linger`.
    pub(crate) fn finish_old(&mut self, now: Timestamp, finished: &mut dyn FnMut(Finished)) {
        self.since_sweep = 0;
        if let Some(recent) = &mut self.recent {
            recent.forget_idle(now);
        }
        let is_old = |connection: &Connection| {
            connection.is_over() && now.0.saturating_sub(connection.last_packet().0) > self.limits.linger
        };
        let old = self.followed().filter(|(_, open)| is_old(&open.connection));
        let old: Vec<_> = old.map(|(at, _)| at).collect();
        for at in old {
            self.end(at, finished);
        }
    }

    /// Returns an eighth of the number of open connections. At most this number is finished at once to make
    /// room, and at least this number of packets passes until the next time. A pass over all connections thus
    /// costs no more than the packets between two passes.
    fn share(&self) -> usize {
        (self.by_ends.len() / 8).max(1)
    }

    fn is_full(&self) -> bool {
        // Leave a reserve, because the open connections still grow.
        let for_new = self.limits.memory - self.limits.memory / 32;
        self.by_ends.len() >= self.limits.open || self.memory() >= for_new
    }

    fn has_room(
        &mut self,
        packet: &Packet,
        problems: &mut Problems,
        finished: &mut dyn FnMut(Finished),
    ) -> bool {
        if self.is_full() && self.since_sweep >= self.share() {
            self.make_room(MIN_IDLE, packet, problems, finished);
        }
        !self.is_full()
    }

    /// Finishes a share of the connections: ended connections first, then the ones that have been idle
    /// longest, if idle for at least `min_idle` nanoseconds.
    fn make_room(
        &mut self,
        min_idle: i64,
        packet: &Packet,
        problems: &mut Problems,
        finished: &mut dyn FnMut(Finished),
    ) {
        self.since_sweep = 0;
        let share = self.share();
        let open = self
            .followed()
            .map(|(at, open)| (!open.connection.is_over(), open.connection.last_packet(), open.number, at));
        let is_idle = |last: Timestamp| packet.at.0.saturating_sub(last.0) >= min_idle;
        let mut candidates: Vec<_> = open.filter(|(is_open, last, ..)| !is_open || is_idle(*last)).collect();
        if candidates.len() > share {
            candidates.select_nth_unstable(share - 1);
            candidates.truncate(share);
        }
        candidates.sort_unstable();
        let cut_off = candidates.iter().filter(|(is_open, ..)| *is_open).count();
        problems.add(Problem::Crowded, packet.number, cut_off as u64);
        for (.., at) in candidates {
            self.end(at, finished);
        }
    }

    /// Finishes the remaining connections in the order of their numbers.
    pub(crate) fn finish(self, finished: &mut dyn FnMut(Finished)) {
        let (resolution, mut recent) = (self.resolution.step(), self.recent);
        let slots = self.slots.into_iter().enumerate();
        let mut open: Vec<_> = slots.filter_map(|(at, open)| Some((at, open?))).collect();
        open.sort_unstable_by_key(|(_, open)| open.number);
        for (at, open) in open {
            finished(finish(at, *open, recent.as_mut(), resolution));
        }
    }
}

/// Returns the results of the connection in slot `at`.
fn finish(at: usize, open: Open, recent: Option<&mut Recent>, resolution: i64) -> Finished {
    let Open { number, connection, .. } = open;
    let recent = recent.map(|recent| {
        let findings = recent.findings(at, &connection, connection.last_packet(), resolution);
        recent.forget(at);
        Box::new(findings)
    });
    Finished { number, ended: connection.finish(resolution), recent }
}

/// Number of packets of a connection between two measurements of its memory, while total memory is below half
/// of the limit.
const MEASURED_EVERY: u64 = 8;
/// Nanoseconds of silence after which a connection may be finished to make room.
const MIN_IDLE: i64 = 10_000_000_000;
/// Minimum number of packets between two passes over all connections.
const MIN_SWEEP: usize = 1024;

#[cfg(test)]
mod tests;
