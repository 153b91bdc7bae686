//! A radio bearer: two RLC entities, with a transport channel in each direction between them. The `rlc`
//! stage.
//!
//! Each direction has its own TTI grid. When a TTI begins, the sending entity fills as many blocks as the
//! transport format set allows, including STATUS and RESET PDUs. The blocks that the channel has not damaged
//! arrive together, one TTI and the delay later. No TTI begins while an entity has nothing to send.
//!
//! At the same instant, PDUs arrive first, then timers expire, then RRC acts, then TTIs begin. An event at
//! the start of a TTI can therefore still affect the content of that TTI.
//!
//! On a downlink that several mobiles share, the cell assigns the TTIs (`shared`).

mod live;
mod renewal;
mod sending;
mod settling;
mod shared;
pub(super) mod statistics;

use std::any::Any;

use airwire::rng::Stream;
use airwire::time::Instant;
use serde_json::Value;

use super::carrier::Carrier;
use super::config::{DirectionConfig, RlcConfig};
use super::incidents::Told;
use super::ledger::Ledger;
use super::rrc::{Readiness, Rrc};
use super::switching::Switcher;
use crate::packet::{Direction, Packet, PerDirection};
use crate::rlc::umts::entity::{Entity, EntityConfig, Incoming, Outgoing, TimersStart};
use crate::rlc::umts::room::Room;
use crate::settings::Invalid;
use crate::stage::{DropReason, Event, IncidentKind, Outbox, ReconfigureError, Stage};
use crate::stages::queue::Queue;
use sending::{pull, put_on_air, submit, technology};

/// Maximum size of an SDU in bytes, which is the maximum size of an IP packet.
const LONGEST: usize = 65_535;
/// Memory of an SDU in an entity in addition to its bytes.
const SDU_OVERHEAD: usize = 96;

/// A radio bearer as a stage of a path.
pub struct Bearer {
    config: RlcConfig,
    /// Indexed by the direction in which an entity sends data: `down` is the network's entity, `up` the
    /// terminal's.
    entities: PerDirection<Entity>,
    lanes: PerDirection<Lane>,
    rrc: Rrc,
    deadline: Option<Instant>,
    /// Earliest time at which data for a shared downlink can be sent. `None` if the queue is empty.
    shared_from: Option<Instant>,
    reestablished: u64,
}

/// State of one direction.
struct Lane {
    air: Carrier,
    switcher: Switcher,
    /// Queue for packets that the entity does not have yet, so that a queue discipline can drop or select
    /// them. It is always empty with drop-tail, where the entity holds all packets.
    front: Queue,
    ledger: Ledger,
    counters: Counters,
    told: Told,
    /// Memory of the entity's own copies of packets and of the PDUs in flight, as last counted.
    copies: u64,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    packets: u64,
    bytes: u64,
    delivered: u64,
    delivered_bytes: u64,
    queue_full: u64,
    rlc_discard: u64,
    rlc_reset: u64,
    /// Packets refused because they were empty or too long.
    refused: u64,
    /// Delivered SDUs that match no submitted packet. A count above 0 indicates a bug in this code.
    unknown_sdus: u64,
}

impl Bearer {
    /// Creates the bearer of the stage `name`. Block errors of each direction have their own random stream.
    /// With a shared downlink, the stage of a path is a [`Cell`](super::cell::Cell).
    pub fn new(config: &RlcConfig, seed: u64, name: &str) -> Result<Self, Invalid> {
        let snr = config.hsdpa.as_ref().map_or(0.0, |hsdpa| hsdpa.snr.value());
        Self::receiving(config, snr, seed, name)
    }

    /// Like `new`, for a terminal that receives a shared downlink with a signal-to-noise ratio of `snr` dB.
    pub(super) fn receiving(config: &RlcConfig, snr: f64, seed: u64, name: &str) -> Result<Self, Invalid> {
        config.validate()?;
        let lane = |direction: Direction| {
            let DirectionConfig { sender, channel, queue, .. } = of(config, direction);
            let air = shared::carrier(config, direction, snr, seed, &format!("{name}/{direction}"));
            Lane {
                air,
                switcher: Switcher::new(channel.switching.clone(), Instant::ZERO),
                front: Queue::new(*queue, Stream::new(seed, &format!("{name}/{direction}/queue"))),
                ledger: Ledger::new(queue.bounds),
                counters: Counters::default(),
                told: Told::new(sender.window),
                copies: 0,
            }
        };
        let lanes = PerDirection::from_fn(lane);
        let entity = |direction| Entity::new(end(config, direction, &lanes), Instant::ZERO);
        let mut bearer = Self {
            config: config.clone(),
            entities: PerDirection::from_fn(entity),
            lanes,
            rrc: Rrc::new(config.rrc.clone()),
            deadline: None,
            shared_from: None,
            reestablished: 0,
        };
        bearer.plan(Instant::ZERO, Instant::ZERO);
        Ok(bearer)
    }

    /// Number of blocks transmitted in this direction, and number of damaged blocks among them.
    pub fn blocks(&self, direction: Direction) -> (u64, u64) {
        let counters = self.lanes[direction].air.counters();
        (counters.blocks, counters.lost)
    }

    /// Hands the blocks that arrive in `direction` at `now` to the receiving entity.
    fn land(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        while let Some(flight) = self.lanes[direction].air.land(now) {
            for block in &flight.blocks {
                self.entities[direction.reversed()].handle_pdu(now, block);
            }
            self.collect(now, out);
        }
    }

    /// Bytes of untransmitted packets that the entity needs to fill any TTI.
    fn wanted_octets(&self, direction: Direction) -> usize {
        self.lanes[direction].air.largest_octets(of(&self.config, direction).format.most())
    }

    /// If a TTI begins now, moves as many packets to the entity as it needs to fill the TTI. The others
    /// remain in the queue, under the control of the queue discipline. An entity whose window is full keeps
    /// its packets and gets no more.
    fn feed(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let Carrier::Dedicated(air) = &mut self.lanes[direction].air else { return };
        air.advance(now);
        if air.next_begin() <= now && self.rrc.is_ready(now) {
            self.fill_up(now, direction, out);
        }
    }

    /// Moves packets from the queue to the entity when a TTI begins.
    fn fill_up(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let wanted = self.wanted_octets(direction);
        let Lane { front, ledger, .. } = &mut self.lanes[direction];
        if front.is_drop_tail() {
            return;
        }
        let entity = &mut self.entities[direction];
        while entity.waiting().1 < wanted
            && let Some((waited, packet)) = front.pop(now, out)
        {
            submit(entity, ledger, now - waited, packet);
        }
        // Timer_Discard may have expired already for packets that waited in the queue.
        if entity.next_deadline().is_some_and(|at| at <= now) {
            entity.handle_deadline(now);
        }
        self.collect(now, out);
    }

    /// Whether packets wait in the queue and the entity has room for them.
    fn is_to_be_fed(&self, direction: Direction) -> bool {
        !self.lanes[direction].front.is_empty()
            && self.entities[direction].waiting().1 < self.wanted_octets(direction)
    }

    /// Starts the TTI that is due at `now`, if there is anything to send.
    fn transmit(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let Lane { air: Carrier::Dedicated(air), ledger, .. } = &mut self.lanes[direction] else { return };
        let entity = &mut self.entities[direction];
        air.advance(now);
        let begins = air.next_begin();
        if begins > now {
            return;
        }
        let wanted = entity.blocks_wanted(air.largest());
        if wanted == 0 || !self.rrc.is_ready(now) {
            return;
        }
        let blocks = air.format_for(wanted);
        let pdus = pull(entity, ledger, begins, Room::Pdus(blocks), air.one_less(blocks), out);
        let technology = technology(&of(&self.config, direction).format);
        let on_air = |pdu: &Outgoing, lost| put_on_air(direction, technology, ledger, pdu, lost, out);
        if let Some(until) = air.launch(pdus, on_air, |pdu| pdu.octets) {
            out.report_incident(IncidentKind::Outage { direction, until });
        }
        self.rrc.transmits(air.free());
        self.collect(now, out);
    }

    /// Handles the results of any change to an entity: forwards reassembled packets, drops discarded ones,
    /// reports incidents, and informs RRC of unrecoverable errors.
    fn collect(&mut self, now: Instant, out: &mut Outbox) {
        self.settle_packets(out);
        if out.records_incidents() {
            for direction in Direction::BOTH {
                let (sender, receiver) = (&self.entities[direction], &self.entities[direction.reversed()]);
                self.lanes[direction].told.tell(direction, sender, receiver, out);
            }
        }
        for direction in Direction::BOTH {
            if self.entities[direction].is_unrecoverable() && self.rrc.failed(now, direction) {
                out.report_incident(IncidentKind::RlcFailed { direction });
            }
        }
        self.reestablish(now, out);
    }

    /// Changes the rate of this direction if a change is due.
    fn switch(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let Lane { air, switcher, .. } = &mut self.lanes[direction];
        let Some(rate) = switcher.due(now, air.rate()) else { return };
        if air.rate() == Some(rate) {
            return;
        }
        air.change_rate(now, rate);
        out.report_incident(IncidentKind::RateChanged { direction, rate: rate.name() });
        self.adapt_entities(now);
    }

    /// Passes changed settings and TTIs to the entities.
    fn adapt_entities(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            let entity = self.end(direction);
            self.entities[direction].reconfigure(now, &entity);
        }
    }

    /// Configuration of the entity that sends in `direction`.
    fn end(&self, direction: Direction) -> EntityConfig {
        end(&self.config, direction, &self.lanes)
    }

    /// Requests the dedicated channel from RRC if data is waiting, and computes the next deadline. Runs after
    /// every call.
    fn schedule(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            // The window bounds the copies that the entities keep of packets whose transmission has begun.
            let (sdus, octets) = self.entities[direction].waiting();
            let Lane { air, copies, .. } = &mut self.lanes[direction];
            let bytes = (octets + sdus * SDU_OVERHEAD) as u64 + air.in_flight();
            out.count_memory(direction, copies, bytes);
        }
        let wanted = self.entities.iter().any(|(_, entity)| entity.blocks_wanted(1) > 0)
            || Direction::BOTH.into_iter().any(|direction| self.is_to_be_fed(direction));
        let readiness = if wanted { self.rrc.call(now) } else { Readiness::Ready };
        let from = match readiness {
            Readiness::Ready => now,
            Readiness::From(at) => at,
            Readiness::Called(at) => {
                out.report_incident(IncidentKind::Promotion { until: at });
                at
            }
        };
        self.plan(now, from);
    }

    /// Computes the next deadline. No TTI begins before `from`.
    fn plan(&mut self, now: Instant, from: Instant) {
        self.deadline = self.rrc.next_deadline();
        for direction in Direction::BOTH {
            let to_be_fed = self.is_to_be_fed(direction);
            let Lane { air, front, switcher, ledger, .. } = &mut self.lanes[direction];
            air.advance(now);
            let (_, waiting) = ledger.waiting();
            switcher.observe(now, waiting + front.bytes(), air.rate());
            let entity = &self.entities[direction];
            let begins = (to_be_fed || entity.blocks_wanted(1) > 0).then_some(from);
            if matches!(air, Carrier::Shared(_)) {
                self.shared_from = begins;
            }
            let begins = begins.and_then(|from| air.next_begin_from(from));
            let (lands, switches) = (air.next_landing(), switcher.next_deadline());
            let deadlines = [begins, lands, switches, entity.next_deadline(), self.deadline];
            self.deadline = deadlines.into_iter().flatten().min();
        }
    }
}

fn of(config: &RlcConfig, direction: Direction) -> &DirectionConfig {
    match direction {
        Direction::Down => &config.down,
        Direction::Up => &config.up,
    }
}

/// Configuration of the entity that sends in `direction`.
fn end(config: &RlcConfig, direction: Direction, lanes: &PerDirection<Lane>) -> EntityConfig {
    let (out, back) = (&lanes[direction].air, &lanes[direction.reversed()].air);
    let (sends, receives) = (of(config, direction), of(config, direction.reversed()));
    EntityConfig {
        // In the UE, timers start when the lower layer has transmitted the PDU, at the end of the TTI (§9.5).
        timers: match direction {
            Direction::Down => TimersStart::WhenSubmitted,
            Direction::Up => TimersStart::WhenTransmitted { tti: out.tti() },
        },
        sender: sends.sender.clone(),
        receiver: receives.receiver.clone(),
        sends: (&sends.format).into(),
        receives: (&receives.format).into(),
        incoming: Incoming { tti: back.tti(), blocks: back.largest() as u16 },
    }
}

impl Stage for Bearer {
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        let direction = packet.direction;
        let Lane { front, ledger, counters, .. } = &mut self.lanes[direction];
        counters.packets += 1;
        counters.bytes += packet.len() as u64;
        let refused = match packet.len() {
            0 => Some(DropReason::Malformed),
            1..=LONGEST => None,
            _ => Some(DropReason::TooLong),
        };
        if let Some(why) = refused {
            counters.refused += 1;
            out.drop(packet, why);
            return;
        }
        if !front.is_drop_tail() {
            front.push(now, packet, out);
            self.schedule(now, out);
            return;
        }
        if !ledger.has_room_for(packet.len()) {
            counters.queue_full += 1;
            out.drop(packet, DropReason::QueueFull);
            return;
        }
        let (packets, bytes) = ledger.waiting();
        out.note(&packet, Event::Queued { packets, bytes });
        submit(&mut self.entities[direction], ledger, now, packet);
        self.collect(now, out);
        self.schedule(now, out);
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            self.land(now, direction, out);
        }
        for direction in Direction::BOTH {
            let entity = &mut self.entities[direction];
            if entity.next_deadline().is_some_and(|at| at <= now) {
                entity.handle_deadline(now);
                self.collect(now, out);
            }
        }
        self.reestablish(now, out);
        for direction in Direction::BOTH {
            self.switch(now, direction, out);
        }
        for direction in Direction::BOTH {
            self.feed(now, direction, out);
            self.transmit(now, direction, out);
        }
        self.schedule(now, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn held(&self) -> usize {
        self.lanes.iter().map(|(_, lane)| lane.ledger.held() + lane.front.len()).sum()
    }

    fn stats(&self) -> Value {
        self.statistics()
    }

    fn reconfigure(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError> {
        self.adopt(now, settings, out)
    }
}
