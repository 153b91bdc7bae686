//! A queue that is bounded by packets, by bytes or by both, and managed by one of several disciplines. It
//! belongs to the transmitter that follows it.
//!
//! A discipline decides which packets are dropped or marked, and which packet is next. [`Queue`] carries out
//! these decisions, counts them and records them. A queue has no timers: a discipline catches up on the
//! elapsed time when the next packet arrives or leaves.

use std::collections::VecDeque;

use airwire::rewrite::{Marking, mark_ce};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use serde_json::{Value, json};

use crate::packet::Packet;
use crate::stage::{DropReason, Event, Mark, Outbox};

mod codel;
mod config;
mod flow;
mod fq_codel;
mod length;
mod pie;
mod red;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use codel::Codel;
pub use config::{Bounds, CodelConfig, Discipline, FqCodelConfig, PieConfig, QueueConfig, RedConfig};
use flow::FlowHash;
use fq_codel::FqCodel;
pub use length::Length;
use pie::Pie;
use red::Red;

/// A packet queue with its discipline.
#[derive(Debug)]
pub struct Queue {
    config: QueueConfig,
    discipline: DisciplineState,
    /// Waiting packets in order of arrival. Empty with FQ-CoDel, which has one queue per flow.
    packets: VecDeque<QueuedPacket>,
    counters: QueueCounters,
    random: RandomNumbers,
    hash: FlowHash,
}

/// A discipline with its settings and state.
#[derive(Debug)]
enum DisciplineState {
    DropTail,
    Codel(CodelConfig, Codel),
    FqCodel(FqCodelConfig, Box<FqCodel>),
    Pie(PieConfig, Pie),
    Red(RedConfig, Red),
}

#[derive(Clone, Debug)]
struct QueuedPacket {
    queued_at: Instant,
    packet: Packet,
}

/// The current length of the queue, and counters since the start.
#[derive(Debug, Default)]
struct QueueCounters {
    packets: usize,
    bytes: u64,
    most_packets: usize,
    most_bytes: u64,
    refused: u64,
    dropped: u64,
    marked: u64,
}

/// The source of the random numbers of PIE and RED.
#[derive(Clone, Debug)]
enum RandomNumbers {
    Stream(Stream),
    /// Numbers drawn by the implementation with which a test compares this one.
    #[cfg(test)]
    Given(VecDeque<f64>),
}

impl RandomNumbers {
    /// Returns a number from a uniform distribution on [0, 1).
    fn unit(&mut self) -> f64 {
        match self {
            Self::Stream(stream) => stream.unit(),
            #[cfg(test)]
            Self::Given(numbers) => numbers.pop_front().expect("the test provides a number for each draw"),
        }
    }
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
struct CallContext<'a> {
    now: Instant,
    counters: &'a mut QueueCounters,
    out: &'a mut Outbox,
}

impl CallContext<'_> {
    /// Removes and returns the first packet.
    fn take(&mut self, packets: &mut VecDeque<QueuedPacket>) -> Option<QueuedPacket> {
        let head = packets.pop_front()?;
        self.counters.packets -= 1;
        self.counters.bytes -= head.packet.len() as u64;
        Some(head)
    }

    /// Marks the packet to signal congestion. Returns false if it cannot be marked and must be dropped
    /// instead.
    fn mark(&mut self, packet: &mut Packet, ecn: bool) -> bool {
        match if ecn { mark_ce(&mut packet.bytes) } else { Marking::Impossible } {
            Marking::Marked => {
                self.counters.marked += 1;
                self.out.note(packet, Event::Marked { mark: Mark::Congestion });
                true
            }
            Marking::AlreadyMarked => true,
            Marking::Impossible => false,
        }
    }

    /// Signals congestion to the sender. Marks the packet and returns it if possible, otherwise drops it.
    fn signal(&mut self, mut waiting: QueuedPacket, ecn: bool) -> Option<QueuedPacket> {
        if self.mark(&mut waiting.packet, ecn) {
            return Some(waiting);
        }
        self.drop(waiting.packet, DropReason::Aqm);
        None
    }

    /// Drops a packet for lack of room or by decision of a discipline.
    fn drop(&mut self, packet: Packet, reason: DropReason) {
        match reason {
            DropReason::QueueFull => self.counters.refused += 1,
            _ => self.counters.dropped += 1,
        }
        self.out.drop(packet, reason);
    }
}

impl QueueCounters {
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
        self.most_packets = self.most_packets.max(self.packets);
        self.most_bytes = self.most_bytes.max(self.bytes);
    }
}

impl Bounds {
    /// Returns whether a packet of `length` bytes may join a queue of this length.
    pub(crate) fn have_room(&self, packets: usize, bytes: u64, length: usize) -> bool {
        self.packets.is_none_or(|limit| packets < limit)
            && self.bytes.is_none_or(|limit| bytes + length as u64 <= limit.as_bytes())
    }

    /// Returns whether there is a limit of any kind.
    pub(crate) fn are_set(&self) -> bool {
        self.packets.is_some() || self.bytes.is_some()
    }

    fn are_exceeded(&self, counters: &QueueCounters) -> bool {
        self.packets.is_some_and(|limit| counters.packets > limit)
            || self.bytes.is_some_and(|limit| counters.bytes > limit.as_bytes())
    }
}

impl DisciplineState {
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
    fn reconfigure(&mut self, discipline: &Discipline, now: Instant, counters: &QueueCounters) -> bool {
        match (self, *discipline) {
            (Self::DropTail, Discipline::DropTail) => {}
            (Self::Codel(config, _), Discipline::Codel(new)) => *config = new,
            (Self::FqCodel(config, _), Discipline::FqCodel(new)) if config.flows == new.flows => {
                *config = new
            }
            (Self::Pie(config, pie), Discipline::Pie(new)) => {
                if *config != new {
                    pie.catch_up(config, now, counters);
                    pie.reconfigure(&new, now);
                }
                *config = new;
            }
            (Self::Red(config, _), Discipline::Red(new)) => *config = new,
            _ => return false,
        }
        true
    }
}

impl Queue {
    /// Creates an empty queue. `random` is for disciplines that make random decisions.
    pub fn new(config: QueueConfig, mut random: Stream) -> Self {
        let hash = FlowHash(random.bits());
        Self {
            config,
            discipline: DisciplineState::new(&config.discipline, Instant::ZERO, hash),
            packets: VecDeque::new(),
            counters: QueueCounters::default(),
            random: RandomNumbers::Stream(random),
            hash,
        }
    }

    /// Creates a drop-tail queue.
    pub fn bounded(bounds: Bounds) -> Self {
        Self::new(bounds.into(), Stream::new(0, "drop-tail"))
    }

    /// Replaces the random numbers, for comparison with another implementation.
    #[cfg(test)]
    pub(super) fn use_random_numbers(&mut self, numbers: impl IntoIterator<Item = f64>) {
        self.random = RandomNumbers::Given(numbers.into_iter().collect());
    }

    /// Applies new settings to packets that arrive from now on. Packets that wait already stay, even if they
    /// exceed the new bounds. A new discipline takes them over in order of arrival.
    pub fn reconfigure(&mut self, now: Instant, config: QueueConfig, out: &mut Outbox) {
        self.config = config;
        if self.discipline.reconfigure(&config.discipline, now, &self.counters) {
            return;
        }
        if let DisciplineState::FqCodel(_, flows) = &mut self.discipline {
            self.packets.extend(flows.drain());
            self.packets.make_contiguous().sort_by_key(|waiting| (waiting.queued_at, waiting.packet.id));
        }
        self.discipline = DisciplineState::new(&config.discipline, now, self.hash);
        if let DisciplineState::FqCodel(config, flows) = &mut self.discipline {
            let mut context = CallContext { now, counters: &mut self.counters, out };
            for waiting in self.packets.drain(..) {
                flows.enqueue(config, &Bounds::default(), waiting, &mut context);
            }
        }
    }

    /// Returns whether the discipline is drop-tail: packets leave in order of arrival, and a packet is
    /// dropped only if it finds no room.
    pub fn is_drop_tail(&self) -> bool {
        matches!(self.discipline, DisciplineState::DropTail)
    }

    /// Returns the limits on the queue's length.
    pub fn bounds(&self) -> &Bounds {
        &self.config.bounds
    }

    /// Returns the number of waiting packets.
    pub fn len(&self) -> usize {
        self.counters.packets
    }

    /// Returns whether no packet is waiting.
    pub fn is_empty(&self) -> bool {
        self.counters.packets == 0
    }

    /// Returns the number of waiting bytes.
    pub fn bytes(&self) -> u64 {
        self.counters.bytes
    }

    /// Returns whether there is room for a packet of this length.
    pub fn has_room_for(&self, length: usize) -> bool {
        self.config.bounds.have_room(self.counters.packets, self.counters.bytes, length)
    }

    /// Queues the packet or drops it, and records the outcome.
    pub fn push(&mut self, now: Instant, mut packet: Packet, out: &mut Outbox) {
        let (packets, bytes) = (self.counters.packets, self.counters.bytes);
        match self.admit(now, &mut packet, out) {
            Ok(()) => {
                out.note(&packet, Event::Queued { packets, bytes });
                self.append(QueuedPacket { queued_at: now, packet }, out);
            }
            Err(reason) => self.context(now, out).drop(packet, reason),
        }
    }

    /// Handles a packet that arrives while the queue is empty and the transmitter is free. Returns it for
    /// immediate transmission, or `None` if the discipline drops it.
    pub fn pass(&mut self, now: Instant, mut packet: Packet, out: &mut Outbox) -> Option<Packet> {
        if self.is_drop_tail() {
            return Some(packet);
        }
        if let Err(reason) = self.admit(now, &mut packet, out) {
            self.context(now, out).drop(packet, reason);
            return None;
        }
        self.append(QueuedPacket { queued_at: now, packet }, out);
        self.pop(now, out).map(|(_, packet)| packet)
    }

    fn context<'a>(&'a mut self, now: Instant, out: &'a mut Outbox) -> CallContext<'a> {
        CallContext { now, counters: &mut self.counters, out }
    }

    /// Decides whether the packet may be queued, and marks it if the discipline signals congestion. An error
    /// is the reason to drop it.
    fn admit(&mut self, now: Instant, packet: &mut Packet, out: &mut Outbox) -> Result<(), DropReason> {
        let has_room = self.has_room_for(packet.len());
        let ecn = self.config.marks_ecn();
        let verdict = match &mut self.discipline {
            DisciplineState::DropTail | DisciplineState::Codel(..) => Verdict::Pass,
            // FQ-CoDel makes room by dropping other packets.
            DisciplineState::FqCodel(..) => return Ok(()),
            DisciplineState::Pie(config, pie) if has_room => {
                pie.arrive(config, now, &self.counters, &mut self.random)
            }
            DisciplineState::Pie(..) => Verdict::Drop,
            DisciplineState::Red(config, red) => red.arrive(config, now, &self.counters, &mut self.random),
        };
        let admitted = match verdict {
            _ if !has_room => Err(DropReason::QueueFull),
            Verdict::Pass => Ok(()),
            Verdict::Signal if self.context(now, out).mark(packet, ecn) => Ok(()),
            Verdict::Signal | Verdict::Drop => Err(DropReason::Aqm),
        };
        if let (DisciplineState::Pie(_, pie), Err(_)) = (&mut self.discipline, &admitted) {
            pie.dropped();
        }
        admitted
    }

    fn append(&mut self, waiting: QueuedPacket, out: &mut Outbox) {
        self.counters.add(&waiting.packet);
        if let DisciplineState::FqCodel(config, flows) = &mut self.discipline {
            let mut context = CallContext { now: waiting.queued_at, counters: &mut self.counters, out };
            flows.enqueue(config, &self.config.bounds, waiting, &mut context);
        } else {
            self.packets.push_back(waiting);
        }
    }

    /// Removes the next packet for transmission. Returns it with its waiting time, or `None` if the queue is
    /// empty.
    #[inline]
    pub fn pop(&mut self, now: Instant, out: &mut Outbox) -> Option<(Duration, Packet)> {
        let head = match self.discipline {
            DisciplineState::DropTail => {
                CallContext { now, counters: &mut self.counters, out }.take(&mut self.packets)
            }
            _ => self.take_next(now, out),
        };
        head.map(|head| (now.saturating_since(head.queued_at), head.packet))
    }

    /// Removes the packet that the discipline chooses.
    fn take_next(&mut self, now: Instant, out: &mut Outbox) -> Option<QueuedPacket> {
        let mut context = CallContext { now, counters: &mut self.counters, out };
        match &mut self.discipline {
            DisciplineState::DropTail => context.take(&mut self.packets),
            DisciplineState::Codel(config, codel) => codel.dequeue(config, &mut self.packets, &mut context),
            DisciplineState::FqCodel(config, flows) => flows.dequeue(config, &mut context),
            DisciplineState::Pie(config, pie) => {
                pie.catch_up(config, now, context.counters);
                let head = context.take(&mut self.packets);
                if let Some(head) = &head {
                    pie.depart(now, now.saturating_since(head.queued_at), context.counters);
                }
                head
            }
            DisciplineState::Red(_, red) => {
                let head = context.take(&mut self.packets);
                red.depart(now, head.is_some());
                head
            }
        }
    }

    /// Returns the counters since the start, for `Stage::stats`.
    pub fn stats(&self) -> Value {
        let QueueCounters { packets, bytes, most_packets, most_bytes, refused, dropped, marked } =
            &self.counters;
        let mut stats = json!({
            "packets": packets,
            "bytes": bytes,
            "most_packets": most_packets,
            "most_bytes": most_bytes,
            "refused": refused,
        });
        let state = match &self.discipline {
            DisciplineState::DropTail => return stats,
            DisciplineState::Codel(..) | DisciplineState::FqCodel(..) => None,
            DisciplineState::Pie(_, pie) => Some(("drop_prob", pie.drop_prob())),
            DisciplineState::Red(_, red) => Some(("avg", red.avg())),
        };
        stats["dropped"] = json!(dropped);
        stats["marked"] = json!(marked);
        if let Some((name, number)) = state {
            stats[name] = json!(number);
        }
        stats
    }
}
