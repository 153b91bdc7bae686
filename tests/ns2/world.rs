//! Runs a scenario: senders, links and receivers share one event queue.

use std::collections::BTreeMap;

use crate::path::{Content, Events, Link, LinkEvent, Packet};
use crate::sink::{Ack, Answer, Sink};
use crate::vector::{Flow, LossPoint, Vector};

/// A segment as a sender emits it.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) tsval: Option<u32>,
    /// The sender's state after the transmission, for failure reports.
    pub(crate) note: String,
}

/// The sender of one flow: an airtcp host, or a recording of ns-2.
pub(crate) trait FlowSender {
    fn start(&mut self, now: f64) -> Vec<Segment>;
    fn ack(&mut self, now: f64, ack: &Ack) -> Vec<Segment>;
    fn next_deadline(&self) -> Option<f64>;
    fn deadline(&mut self, now: f64) -> Vec<Segment>;
    /// Returns the error that invalidates the run, if there is one.
    fn fault(&self) -> Option<&str> {
        None
    }
}

/// The recorded events of one flow.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) tx: Vec<(f64, Segment)>,
    /// Time and content of each ACK that the receiver sent.
    pub(crate) acks: Vec<(f64, Ack)>,
    /// Time at which each ACK reached the sender, and its ACK number.
    pub(crate) arrivals: Vec<(f64, i64)>,
    pub(crate) fault: Option<String>,
}

enum WorldEvent {
    Start(usize),
    /// A packet arrives at the queue of a link.
    Offer(LinkName, Packet),
    Link(LinkName, LinkEvent),
    /// The delayed ACK timer of this flow expires. The second value identifies the wait, because the receiver
    /// may have started a newer one.
    AckTimer(usize, u64),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Forward,
    Reverse,
}

/// Name of a link. Each sending host has its own access link, identified by the host's first flow. All flows
/// share the other links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinkName {
    direction: Direction,
    /// Number of links between the senders and this one.
    hop: usize,
    host: usize,
}

struct World<'a> {
    flows: &'a [Flow],
    senders: Vec<Box<dyn FlowSender + 'a>>,
    sinks: Vec<Sink>,
    ack_waits: Vec<u64>,
    links: BTreeMap<LinkName, Link>,
    transmissions: Vec<BTreeMap<u32, u32>>,
    logs: Vec<Log>,
    events: Events<WorldEvent>,
}

/// Runs a scenario until it ends, or until a sender has sent far more than was recorded.
pub(crate) fn run<'a>(vector: &'a Vector, senders: Vec<Box<dyn FlowSender + 'a>>) -> Vec<Log> {
    let flows = &vector.flows;
    let mut world = World {
        flows,
        senders,
        sinks: flows.iter().map(Sink::new).collect(),
        ack_waits: vec![0; flows.len()],
        links: BTreeMap::new(),
        transmissions: vec![BTreeMap::new(); flows.len()],
        logs: flows.iter().map(|_| Log::default()).collect(),
        events: Events::new(),
    };
    world.lay_links();
    for (index, flow) in flows.iter().enumerate() {
        world.events.at(flow.start, WorldEvent::Start(index));
    }
    while let Some(now) = world.step(vector.stop) {
        for (flow, log) in flows.iter().zip(&mut world.logs) {
            if log.tx.len() > 3 * flow.tx.0.len() + 50 {
                log.fault = Some(format!("stopped at {now:.6}: it sends far more than was recorded"));
            }
        }
        if world.logs.iter().any(|log| log.fault.is_some()) {
            break;
        }
    }
    for (log, sender) in world.logs.iter_mut().zip(&world.senders) {
        log.fault = log.fault.take().or_else(|| sender.fault().map(str::to_owned));
    }
    world.logs
}

impl World<'_> {
    fn lay_links(&mut self) {
        for (index, flow) in self.flows.iter().enumerate() {
            for (hop, &kind) in flow.forward.iter().enumerate() {
                let pause = if hop == 0 { flow.access_pause } else { None };
                let name = self.name(Direction::Forward, index, hop);
                self.links.entry(name).or_insert_with(|| Link::new(kind, pause));
            }
            for (hop, &kind) in flow.reverse.iter().rev().enumerate() {
                let name = self.name(Direction::Reverse, index, hop);
                self.links.entry(name).or_insert_with(|| Link::new(kind, None));
            }
        }
    }

    fn name(&self, direction: Direction, flow: usize, hop: usize) -> LinkName {
        let host = &self.flows[flow].host;
        let first = self.flows.iter().position(|other| other.host == *host).unwrap_or(flow);
        LinkName { direction, hop, host: if hop == 0 { first } else { 0 } }
    }

    /// Handles one event and returns its time, or `None` if no event is left before `stop`.
    fn step(&mut self, stop: f64) -> Option<f64> {
        let timer = (0..self.senders.len())
            .filter_map(|flow| Some((self.senders[flow].next_deadline()?, flow)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let event = self.events.next_time();
        match (timer, event) {
            // If a timer and a packet are due at the same time, the timer is handled first, because it was set
            // before the packet was sent.
            (Some((at, flow)), next) if next.is_none_or(|next| at <= next) && at <= stop => {
                let sent = self.senders[flow].deadline(at);
                self.send(at, flow, sent);
                Some(at)
            }
            (_, Some(next)) if next <= stop => {
                let (now, event) = self.events.pop()?;
                self.handle(now, event);
                Some(now)
            }
            _ => None,
        }
    }

    fn handle(&mut self, now: f64, event: WorldEvent) {
        match event {
            WorldEvent::Start(flow) => {
                let sent = self.senders[flow].start(now);
                self.send(now, flow, sent);
            }
            WorldEvent::Offer(name, packet) => self.offer(now, name, packet),
            WorldEvent::Link(name, LinkEvent::Arrive(packet)) => self.arrive(now, name, packet),
            WorldEvent::Link(name, LinkEvent::Free) => {
                let next = self.links.get_mut(&name).map(|link| link.free(now));
                self.schedule(name, next.unwrap_or_default());
            }
            WorldEvent::AckTimer(flow, wait) => {
                if wait == self.ack_waits[flow]
                    && let Some(ack) = self.sinks[flow].expire()
                {
                    self.answer(now, flow, ack);
                }
            }
        }
    }

    fn send(&mut self, now: f64, index: usize, segments: Vec<Segment>) {
        let flow = &self.flows[index];
        for segment in segments {
            let count = self.transmissions[index].entry(segment.number).or_insert(0);
            *count += 1;
            let nth = *count;
            let content = Content::Segment { segment: segment.number, nth, tsval: segment.tsval };
            let bytes = if segment.number == 0 { flow.first_bytes } else { flow.data_bytes };
            let packet = Packet { flow: index, bytes, content };
            let name = self.name(Direction::Forward, index, 0);
            match flow.delayed {
                Some((number, n, by)) if (number, n) == (segment.number, nth) => {
                    self.events.at(now + by, WorldEvent::Offer(name, packet));
                }
                _ => self.offer(now, name, packet),
            }
            self.logs[index].tx.push((now, segment));
        }
    }

    fn offer(&mut self, now: f64, name: LinkName, packet: Packet) {
        if self.is_lost(name, &packet, LossPoint::Queue) {
            return;
        }
        let next = self.links.get_mut(&name).map(|link| link.offer(now, packet));
        self.schedule(name, next.unwrap_or_default());
    }

    fn schedule(&mut self, name: LinkName, events: Vec<(f64, LinkEvent)>) {
        for (at, event) in events {
            self.events.at(at, WorldEvent::Link(name, event));
        }
    }

    fn is_lost(&self, name: LinkName, packet: &Packet, point: LossPoint) -> bool {
        let flow = &self.flows[packet.flow];
        if flow.loss_point != point {
            return false;
        }
        match packet.content {
            Content::Segment { segment, nth, .. } => {
                name.hop == flow.loss_hop && flow.drops.0.contains(&(segment, nth))
            }
            Content::Ack { index, .. } => {
                name.hop + 1 == flow.reverse.len() && flow.ack_drops.contains(&index)
            }
        }
    }

    fn arrive(&mut self, now: f64, at: LinkName, packet: Packet) {
        if self.is_lost(at, &packet, LossPoint::FarEnd) {
            return;
        }
        let index = packet.flow;
        let next_hop = match at.direction {
            Direction::Forward => (at.hop + 1 < self.flows[index].forward.len()).then_some(at.hop + 1),
            Direction::Reverse => at.hop.checked_sub(1),
        };
        if let Some(hop) = next_hop {
            self.offer(now, self.name(at.direction, index, hop), packet);
            return;
        }
        match packet.content {
            Content::Segment { segment, tsval, .. } => {
                self.ack_waits[index] += 1;
                match self.sinks[index].receive(i64::from(segment), tsval) {
                    Answer::Ack(ack) => self.answer(now, index, ack),
                    Answer::Wait(delay) => {
                        self.events.at(now + delay, WorldEvent::AckTimer(index, self.ack_waits[index]));
                    }
                }
            }
            Content::Ack { ack, .. } => {
                self.logs[index].arrivals.push((now, ack.ack));
                let sent = self.senders[index].ack(now, &ack);
                self.send(now, index, sent);
            }
        }
    }

    fn answer(&mut self, now: f64, index: usize, ack: Ack) {
        // ns-2's ACKs have 40 bytes, and 8 more per SACK block.
        let bytes = 40 + 8 * ack.sack.len() as u32;
        let count = self.logs[index].acks.len();
        self.logs[index].acks.push((now, ack.clone()));
        let packet = Packet { flow: index, bytes, content: Content::Ack { index: count, ack } };
        let last = self.flows[index].reverse.len() - 1;
        self.offer(now, self.name(Direction::Reverse, index, last), packet);
    }
}
