//! A queue that is bounded by packets, by bytes or by both, and managed by one of several disciplines. It
//! belongs to the transmitter that follows it.
//!
//! A discipline decides which packets are dropped or marked, and which packet is next. [`Queue`] and its
//! `Desk` carry out these decisions, count them and record them. A queue has no timers: a discipline catches
//! up on the elapsed time when the next packet arrives or leaves.

use std::collections::VecDeque;

use airwire::rewrite::{Marking, mark_ce};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use serde_json::{Value, json};

use crate::packet::Packet;
use crate::stage::{Event, Mark, Outbox, Why};

mod codel;
mod config;
mod draws;
mod flow;
mod fq_codel;
mod length;
mod pie;
mod red;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod written;

use codel::Codel;
pub use config::{Bounds, CodelConfig, Discipline, FqCodelConfig, PieConfig, QueueConfig, RedConfig};
use draws::Draws;
use flow::FlowHash;
use fq_codel::FqCodel;
pub use length::Length;
use pie::Pie;
use red::Red;

/// A packet queue with its discipline.
#[derive(Debug)]
pub struct Queue {
    bounds: Bounds,
    manager: Manager,
    /// Waiting packets in order of arrival. Empty with FQ-CoDel, which has queues of its own.
    line: VecDeque<Waiting>,
    tally: Tally,
    draws: Draws,
    hash: FlowHash,
}

/// A discipline with its settings and state.
#[derive(Debug)]
enum Manager {
    DropTail,
    Codel(CodelConfig, Codel),
    FqCodel(FqCodelConfig, Box<FqCodel>),
    Pie(PieConfig, Pie),
    Red(RedConfig, Red),
}

#[derive(Clone, Debug)]
struct Waiting {
    since: Instant,
    packet: Packet,
}

/// The current length of the queue, and counters since the start.
#[derive(Debug, Default)]
struct Tally {
    packets: usize,
    bytes: u64,
    most_packets: usize,
    most_bytes: u64,
    refused: u64,
    dropped: u64,
    marked: u64,
}

/// The decision of a discipline about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Signal congestion to the sender: mark the packet if possible, otherwise drop it.
    Signal,
    Drop,
}

/// The context of one call, in which packets are taken, marked and dropped.
struct Desk<'a> {
    now: Instant,
    tally: &'a mut Tally,
    out: &'a mut Outbox,
}

impl Desk<'_> {
    /// Removes and returns the first packet of `line`.
    fn take(&mut self, line: &mut VecDeque<Waiting>) -> Option<Waiting> {
        let waiting = line.pop_front()?;
        self.tally.packets -= 1;
        self.tally.bytes -= waiting.packet.len() as u64;
        Some(waiting)
    }

    /// Marks the packet to signal congestion. Returns false if it cannot be marked and must be dropped
    /// instead.
    fn mark(&mut self, packet: &mut Packet, ecn: bool) -> bool {
        match if ecn { mark_ce(&mut packet.bytes) } else { Marking::Impossible } {
            Marking::Marked => {
                self.tally.marked += 1;
                self.out.note(packet, Event::Marked { what: Mark::Congestion });
                true
            }
            Marking::AlreadyMarked => true,
            Marking::Impossible => false,
        }
    }

    /// Signals congestion to the sender. Marks the packet and returns it if possible, otherwise drops it.
    fn signal(&mut self, mut waiting: Waiting, ecn: bool) -> Option<Waiting> {
        if self.mark(&mut waiting.packet, ecn) {
            return Some(waiting);
        }
        self.drop(waiting.packet, Why::Aqm);
        None
    }

    /// Drops a packet for lack of room or by decision of a discipline.
    fn drop(&mut self, packet: Packet, why: Why) {
        match why {
            Why::QueueFull => self.tally.refused += 1,
            _ => self.tally.dropped += 1,
        }
        self.out.drop(packet, why);
    }
}

impl Tally {
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
        self.most_packets = self.most_packets.max(self.packets);
        self.most_bytes = self.most_bytes.max(self.bytes);
    }
}

impl Bounds {
    /// Returns whether a packet of `octets` bytes may join a queue of this length.
    pub(crate) fn have_room(&self, packets: usize, bytes: u64, octets: usize) -> bool {
        self.packets.is_none_or(|limit| packets < limit)
            && self.bytes.is_none_or(|limit| bytes + octets as u64 <= limit.as_bytes())
    }

    fn are_exceeded(&self, tally: &Tally) -> bool {
        self.packets.is_some_and(|limit| tally.packets > limit)
            || self.bytes.is_some_and(|limit| tally.bytes > limit.as_bytes())
    }
}

impl Manager {
    fn new(discipline: &Discipline, now: Instant, hash: FlowHash) -> Self {
        match *discipline {
            Discipline::DropTail => Self::DropTail,
            Discipline::Codel(config) => Self::Codel(config, Codel::default()),
            Discipline::FqCodel(config) => Self::FqCodel(config, Box::new(FqCodel::new(&config, hash))),
            Discipline::Pie(config) => Self::Pie(config, Pie::new(&config, now)),
            Discipline::Red(config) => Self::Red(config, Red::default()),
        }
    }

    /// Takes over new settings and keeps the state. Returns false if the discipline or its number of queues
    /// changes.
    fn reconfigure(&mut self, discipline: &Discipline, now: Instant, tally: &Tally) -> bool {
        match (self, *discipline) {
            (Self::DropTail, Discipline::DropTail) => {}
            (Self::Codel(config, _), Discipline::Codel(new)) => *config = new,
            (Self::FqCodel(config, _), Discipline::FqCodel(new)) if config.flows == new.flows => {
                *config = new
            }
            (Self::Pie(config, pie), Discipline::Pie(new)) => {
                if *config != new {
                    pie.catch_up(config, now, tally);
                    pie.reconfigure(&new, now);
                }
                *config = new;
            }
            (Self::Red(config, _), Discipline::Red(new)) => *config = new,
            _ => return false,
        }
        true
    }

    fn ecn(&self) -> bool {
        match self {
            Self::DropTail => false,
            Self::Codel(config, _) => config.ecn,
            Self::FqCodel(config, _) => config.codel.ecn,
            Self::Pie(config, _) => config.ecn,
            Self::Red(config, _) => config.ecn,
        }
    }
}

impl Queue {
    /// Creates an empty queue. `draws` is for disciplines that make random decisions.
    pub fn new(config: QueueConfig, draws: Stream) -> Self {
        let mut draws = draws;
        let hash = FlowHash(draws.bits());
        Self {
            bounds: config.bounds,
            manager: Manager::new(&config.discipline, Instant::ZERO, hash),
            line: VecDeque::new(),
            tally: Tally::default(),
            draws: Draws::Stream(draws),
            hash,
        }
    }

    /// Creates a drop-tail queue.
    pub fn bounded(bounds: Bounds) -> Self {
        Self::new(bounds.into(), Stream::new(0, "drop-tail"))
    }

    /// Uses these numbers for random decisions from now on, for comparison with another implementation.
    #[cfg(test)]
    pub(super) fn draw_from(&mut self, numbers: impl IntoIterator<Item = f64>) {
        self.draws = Draws::Given(numbers.into_iter().collect());
    }

    /// Applies new settings to packets that arrive from now on. Packets that wait already stay, even if they
    /// exceed the new bounds. A new discipline takes them over in order of arrival.
    pub fn reconfigure(&mut self, now: Instant, config: QueueConfig, out: &mut Outbox) {
        self.bounds = config.bounds;
        if self.manager.reconfigure(&config.discipline, now, &self.tally) {
            return;
        }
        if let Manager::FqCodel(_, flows) = &mut self.manager {
            self.line.extend(flows.drain());
            self.line.make_contiguous().sort_by_key(|waiting| (waiting.since, waiting.packet.id));
        }
        self.manager = Manager::new(&config.discipline, now, self.hash);
        if let Manager::FqCodel(config, flows) = &mut self.manager {
            let mut desk = Desk { now, tally: &mut self.tally, out };
            for waiting in self.line.drain(..) {
                flows.enqueue(config, &Bounds::default(), waiting, &mut desk);
            }
        }
    }

    /// Returns whether the discipline is drop-tail: packets leave in order of arrival, and a packet is
    /// dropped only if it finds no room.
    pub fn is_drop_tail(&self) -> bool {
        matches!(self.manager, Manager::DropTail)
    }

    /// Returns the number of waiting packets.
    pub fn len(&self) -> usize {
        self.tally.packets
    }

    /// Returns whether no packet is waiting.
    pub fn is_empty(&self) -> bool {
        self.tally.packets == 0
    }

    /// Returns the number of waiting bytes.
    pub fn bytes(&self) -> u64 {
        self.tally.bytes
    }

    /// Returns whether there is room for a packet of this length.
    pub fn has_room_for(&self, octets: usize) -> bool {
        self.bounds.have_room(self.tally.packets, self.tally.bytes, octets)
    }

    /// Queues the packet or drops it, and records the outcome.
    pub fn push(&mut self, now: Instant, mut packet: Packet, out: &mut Outbox) {
        let (packets, bytes) = (self.tally.packets, self.tally.bytes);
        match self.admit(now, &mut packet, out) {
            Ok(()) => {
                out.note(&packet, Event::Queued { packets, bytes });
                self.append(Waiting { since: now, packet }, out);
            }
            Err(why) => self.desk(now, out).drop(packet, why),
        }
    }

    /// Handles a packet that arrives while the queue is empty and the transmitter is free. Returns it for
    /// immediate transmission, or `None` if the discipline drops it.
    pub fn pass(&mut self, now: Instant, mut packet: Packet, out: &mut Outbox) -> Option<Packet> {
        if self.is_drop_tail() {
            return Some(packet);
        }
        if let Err(why) = self.admit(now, &mut packet, out) {
            self.desk(now, out).drop(packet, why);
            return None;
        }
        self.append(Waiting { since: now, packet }, out);
        self.pop(now, out).map(|(_, packet)| packet)
    }

    fn desk<'a>(&'a mut self, now: Instant, out: &'a mut Outbox) -> Desk<'a> {
        Desk { now, tally: &mut self.tally, out }
    }

    /// Decides whether the packet may be queued, and marks it if the discipline signals congestion. An error
    /// is the reason to drop it.
    fn admit(&mut self, now: Instant, packet: &mut Packet, out: &mut Outbox) -> Result<(), Why> {
        let has_room = self.has_room_for(packet.len());
        let ecn = self.manager.ecn();
        let verdict = match &mut self.manager {
            Manager::DropTail | Manager::Codel(..) => Verdict::Pass,
            // FQ-CoDel makes room by dropping other packets.
            Manager::FqCodel(..) => return Ok(()),
            Manager::Pie(config, pie) if has_room => pie.arrive(config, now, &self.tally, &mut self.draws),
            Manager::Pie(..) => Verdict::Drop,
            Manager::Red(config, red) => red.arrive(config, now, &self.tally, &mut self.draws),
        };
        let admitted = match verdict {
            _ if !has_room => Err(Why::QueueFull),
            Verdict::Pass => Ok(()),
            Verdict::Signal if self.desk(now, out).mark(packet, ecn) => Ok(()),
            Verdict::Signal | Verdict::Drop => Err(Why::Aqm),
        };
        if let (Manager::Pie(_, pie), Err(_)) = (&mut self.manager, &admitted) {
            pie.dropped();
        }
        admitted
    }

    fn append(&mut self, waiting: Waiting, out: &mut Outbox) {
        self.tally.add(&waiting.packet);
        if let Manager::FqCodel(config, flows) = &mut self.manager {
            let mut desk = Desk { now: waiting.since, tally: &mut self.tally, out };
            flows.enqueue(config, &self.bounds, waiting, &mut desk);
        } else {
            self.line.push_back(waiting);
        }
    }

    /// Removes the next packet for transmission. Returns it with its waiting time, or `None` if the queue is
    /// empty.
    #[inline]
    pub fn pop(&mut self, now: Instant, out: &mut Outbox) -> Option<(Duration, Packet)> {
        let head = match self.manager {
            Manager::DropTail => Desk { now, tally: &mut self.tally, out }.take(&mut self.line),
            _ => self.choose(now, out),
        };
        head.map(|head| (now.saturating_since(head.since), head.packet))
    }

    /// Removes the packet that the discipline chooses.
    fn choose(&mut self, now: Instant, out: &mut Outbox) -> Option<Waiting> {
        let mut desk = Desk { now, tally: &mut self.tally, out };
        match &mut self.manager {
            Manager::DropTail => desk.take(&mut self.line),
            Manager::Codel(config, codel) => codel.dequeue(config, &mut self.line, &mut desk),
            Manager::FqCodel(config, flows) => flows.dequeue(config, &mut desk),
            Manager::Pie(config, pie) => {
                pie.catch_up(config, now, desk.tally);
                let head = desk.take(&mut self.line);
                if let Some(head) = &head {
                    pie.depart(now, now.saturating_since(head.since), desk.tally);
                }
                head
            }
            Manager::Red(_, red) => {
                let head = desk.take(&mut self.line);
                red.depart(now, head.is_some());
                head
            }
        }
    }

    /// Returns the counters since the start, for `Stage::stats`.
    pub fn stats(&self) -> Value {
        let Tally { packets, bytes, most_packets, most_bytes, refused, dropped, marked } = &self.tally;
        let mut stats = json!({
            "packets": packets,
            "bytes": bytes,
            "most_packets": most_packets,
            "most_bytes": most_bytes,
            "refused": refused,
        });
        let own = match &self.manager {
            Manager::DropTail => return stats,
            Manager::Codel(..) | Manager::FqCodel(..) => None,
            Manager::Pie(_, pie) => Some(("drop_prob", pie.drop_prob())),
            Manager::Red(_, red) => Some(("avg", red.avg())),
        };
        stats["dropped"] = json!(dropped);
        stats["marked"] = json!(marked);
        if let Some((name, number)) = own {
            stats[name] = json!(number);
        }
        stats
    }
}
