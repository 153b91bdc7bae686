//! A radio bearer: two RLC entities and their two transport channels, one per direction. The `rlc`
//! stage.
//!
//! Each direction has its own TTI grid. When a TTI begins, the sending entity fills as many blocks as the
//! transport format set allows, including STATUS and RESET PDUs. The blocks that the channel has not damaged
//! arrive together, one TTI and the delay later. No TTI begins while an entity has nothing to send.
//!
//! At the same instant, PDUs arrive first, then timers expire, then RRC acts, then TTIs begin. An event at
//! the start of a TTI can therefore still affect the content of that TTI.
//!
//! On a downlink that several mobiles share, the cell assigns the TTIs (`shared_downlink`).

mod outcomes;
mod pdus;
mod reconfiguration;
mod reestablishment;
mod shared_downlink;
pub(super) mod statistics;

use std::any::Any;

use airwire::rng::Stream;
use airwire::time::{Instant, earlier};
use serde_json::Value;

use super::config::{DirectionConfig, RlcConfig};
use super::incidents::ReportedState;
use super::ledger::{Ledger, refusal};
use super::rrc::{Readiness, Rrc};
use super::switching::RateSwitch;
use super::transport_channel::TransportChannel;
use crate::packet::{Direction, Packet, PerDirection};
use crate::rlc::umts::capacity::Room;
use crate::rlc::umts::entity::{Entity, EntityConfig, Incoming, Outgoing, TimersStart};
use crate::settings::Invalid;
use crate::stage::{DropReason, Event, IncidentKind, Outbox, ReconfigureError, Stage};
use crate::stages::queue::Queue;
use pdus::{pull, record_pdu, submit};

/// Why a link that runs refuses a setting.
pub(crate) const AGREED: &str = "both ends have to agree on it: restart the link";
/// Maximum size of an SDU in bytes, which is the maximum size of an IP packet.
const MAX_SDU: usize = 65_535;
/// Memory of an SDU in an entity in addition to its bytes.
const SDU_OVERHEAD: usize = 96;

/// A radio bearer as a stage of a path.
pub struct Bearer {
    config: RlcConfig,
    /// Indexed by the direction in which an entity sends data: `down` is the network's entity, `up` the
    /// terminal's.
    entities: PerDirection<Entity>,
    directions: PerDirection<DirectionState>,
    rrc: Rrc,
    deadline: Option<Instant>,
    /// Earliest time at which new data can be sent on a shared downlink. `None` if there is none.
    shared_from: Option<Instant>,
    reestablished: u64,
}

struct DirectionState {
    channel: TransportChannel,
    rate_switch: RateSwitch,
    /// Queue for packets that the entity does not have yet, so that a queue discipline can drop or select
    /// them. It is always empty with drop-tail, where the entity holds all packets.
    queue: Queue,
    ledger: Ledger,
    counters: Counters,
    reported: ReportedState,
    /// Memory of the entity's own copies of packets and of the PDUs in flight, as last counted.
    counted_memory: u64,
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
        Self::with_snr(config, snr, seed, name)
    }

    /// Like `new`, for a terminal that receives a shared downlink with a signal-to-noise ratio of `snr` dB.
    pub(super) fn with_snr(config: &RlcConfig, snr: f64, seed: u64, name: &str) -> Result<Self, Invalid> {
        config.validate()?;
        let directions = PerDirection::from_fn(|direction| {
            let DirectionConfig { sender, channel, queue, .. } = config.direction(direction);
            let stream = format!("{name}/{direction}");
            DirectionState {
                channel: shared_downlink::channel(config, direction, snr, seed, &stream),
                rate_switch: RateSwitch::new(channel.switching.clone(), Instant::ZERO),
                queue: Queue::new(*queue, Stream::new(seed, &format!("{stream}/queue"))),
                ledger: Ledger::new(queue.bounds),
                counters: Counters::default(),
                reported: ReportedState::new(sender.window),
                counted_memory: 0,
            }
        });
        let entity = |direction| Entity::new(entity_config(config, direction, &directions), Instant::ZERO);
        let mut bearer = Self {
            config: config.clone(),
            entities: PerDirection::from_fn(entity),
            directions,
            rrc: Rrc::new(config.rrc.clone()),
            deadline: None,
            shared_from: None,
            reestablished: 0,
        };
        let has_data = PerDirection::from_fn(|direction| bearer.has_data(direction));
        bearer.compute_deadline(Instant::ZERO, Instant::ZERO, has_data);
        Ok(bearer)
    }

    /// Number of blocks transmitted in this direction, and number of damaged blocks among them.
    pub fn blocks(&self, direction: Direction) -> (u64, u64) {
        let counters = self.directions[direction].channel.counters();
        (counters.blocks, counters.lost)
    }

    /// Hands the blocks that arrive in `direction` at `now` to the receiving entity.
    fn receive_blocks(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        loop {
            let receiver = &mut self.entities[direction.reversed()];
            let channel = &mut self.directions[direction].channel;
            if !channel.take_arrival(now, |octets| receiver.handle_pdu(now, octets)) {
                return;
            }
            self.handle_entity_results(now, out);
        }
    }

    /// Maximum number of PDU bytes in a TTI.
    fn max_octets(&self, direction: Direction) -> usize {
        self.directions[direction].channel.max_octets(self.config.direction(direction).format.max_pdu())
    }

    /// Refills the entity if a TTI of a dedicated channel begins now.
    fn refill_at_tti_start(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let Some(channel) = self.directions[direction].channel.dedicated_mut() else { return };
        channel.skip_ttis_before(now);
        if channel.next_tti_start() <= now && self.rrc.is_ready(now) {
            self.refill(now, direction, out);
        }
    }

    /// Moves packets from the queue to the entity until the entity can fill a TTI. Further packets remain
    /// under the control of the queue discipline. An entity whose window is full keeps its packets and gets
    /// no more.
    fn refill(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let max_octets = self.max_octets(direction);
        let DirectionState { queue, ledger, .. } = &mut self.directions[direction];
        if queue.is_drop_tail() {
            return;
        }
        let entity = &mut self.entities[direction];
        while entity.unsent().1 < max_octets
            && let Some((waited, packet)) = queue.pop(now, out)
        {
            submit(entity, ledger, now - waited, packet);
        }
        // Timer_Discard may have expired already for packets that waited in the queue.
        if entity.next_deadline().is_some_and(|at| at <= now) {
            entity.handle_deadline(now);
        }
        self.handle_entity_results(now, out);
    }

    /// Whether the queue has packets and the entity has room.
    fn needs_refill(&self, direction: Direction) -> bool {
        !self.directions[direction].queue.is_empty()
            && self.entities[direction].unsent().1 < self.max_octets(direction)
    }

    /// Transmits in the TTI that begins at `now`, if there is anything to send.
    fn transmit(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let DirectionState { channel, ledger, .. } = &mut self.directions[direction];
        let Some(channel) = channel.dedicated_mut() else { return };
        let entity = &mut self.entities[direction];
        channel.skip_ttis_before(now);
        let start = channel.next_tti_start();
        if start > now {
            return;
        }
        let sendable = entity.sendable_pdus(channel.max_blocks());
        if sendable == 0 || !self.rrc.is_ready(now) {
            return;
        }
        let blocks = channel.format_for(sendable);
        let fewer = channel.one_block_fewer(blocks);
        let pdus = pull(entity, ledger, start, Room::Pdus(blocks), fewer, out);
        let format = &self.config.direction(direction).format;
        let record = |pdu: &Outgoing, lost| record_pdu(direction, format, ledger, pdu, lost, out);
        if let Some(until) = channel.transmit(pdus, record) {
            out.report_incident(IncidentKind::Outage { direction, until });
        }
        self.rrc.record_transmission(channel.tti_end());
        self.handle_entity_results(now, out);
    }

    /// Handles the results of any change to an entity: forwards reassembled packets, drops discarded ones,
    /// reports incidents, and informs RRC of unrecoverable errors.
    fn handle_entity_results(&mut self, now: Instant, out: &mut Outbox) {
        self.settle_packets(out);
        if out.records_incidents() {
            for direction in Direction::BOTH {
                let (sender, receiver) = (&self.entities[direction], &self.entities[direction.reversed()]);
                self.directions[direction].reported.report_changes(direction, sender, receiver, out);
            }
        }
        for direction in Direction::BOTH {
            if self.entities[direction].is_unrecoverable() && self.rrc.record_failure(now, direction) {
                out.report_incident(IncidentKind::RlcFailed { direction });
            }
        }
        self.reestablish(now, out);
    }

    /// Changes the rate of this direction if a change is due.
    fn switch_rate(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let DirectionState { channel, rate_switch, .. } = &mut self.directions[direction];
        let current = channel.rate();
        let Some(rate) = rate_switch.take_due(now, current).filter(|rate| current != Some(*rate)) else {
            return;
        };
        if let Some(channel) = channel.dedicated_mut() {
            channel.change_rate(now, rate);
        }
        out.report_incident(IncidentKind::RateChanged { direction, rate: rate.name() });
        self.reconfigure_entities(now);
    }

    /// Passes changed settings and TTIs to the entities.
    fn reconfigure_entities(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            let config = entity_config(&self.config, direction, &self.directions);
            self.entities[direction].reconfigure(now, &config);
        }
    }

    /// Requests the dedicated channel from RRC if data is waiting, and computes the next deadline. Runs after
    /// every call.
    fn schedule(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            // The window bounds the copies that the entities keep of packets whose transmission has begun.
            let (sdus, octets) = self.entities[direction].unsent();
            let DirectionState { channel, counted_memory, .. } = &mut self.directions[direction];
            let bytes = (octets + sdus * SDU_OVERHEAD) as u64 + channel.in_flight();
            out.count_memory(direction, counted_memory, bytes);
        }
        let has_data = PerDirection::from_fn(|direction| self.has_data(direction));
        let from = if !has_data.down && !has_data.up {
            now
        } else {
            match self.rrc.request_channel(now) {
                Readiness::Ready => now,
                Readiness::From(at) => at,
                Readiness::PromotionStarted(at) => {
                    out.report_incident(IncidentKind::Promotion { until: at });
                    at
                }
            }
        };
        self.compute_deadline(now, from, has_data);
    }

    /// Whether the direction could use a TTI.
    fn has_data(&self, direction: Direction) -> bool {
        self.entities[direction].sendable_pdus(1) > 0 || self.needs_refill(direction)
    }

    /// Computes the next deadline. No TTI begins before `from`.
    fn compute_deadline(&mut self, now: Instant, from: Instant, has_data: PerDirection<bool>) {
        self.deadline = self.rrc.next_deadline();
        for direction in Direction::BOTH {
            let has_data = has_data[direction];
            let DirectionState { channel, queue, rate_switch, ledger, .. } = &mut self.directions[direction];
            let (_, waiting) = ledger.waiting();
            rate_switch.observe(now, waiting + queue.bytes(), channel.rate());
            let tti = match channel {
                TransportChannel::Dedicated(channel) => {
                    channel.skip_ttis_before(now);
                    has_data.then(|| channel.next_tti_start_from(from))
                }
                TransportChannel::Shared(_) => {
                    self.shared_from = has_data.then_some(from);
                    None
                }
            };
            let timers = earlier(rate_switch.next_deadline(), self.entities[direction].next_deadline());
            let events = earlier(earlier(channel.next_arrival(), tti), timers);
            self.deadline = earlier(self.deadline, events);
        }
    }
}

/// Configuration of the entity that sends in `direction`.
fn entity_config(
    config: &RlcConfig,
    direction: Direction,
    directions: &PerDirection<DirectionState>,
) -> EntityConfig {
    let (sent, received) = (config.direction(direction), config.direction(direction.reversed()));
    let incoming = &directions[direction.reversed()].channel;
    EntityConfig {
        // TS 25.322 §9.5: in the UE, timers start when the lower layer has transmitted the PDU, at the end of
        // the TTI. In UTRAN, they start when the PDU is submitted to the lower layer.
        timers: match direction {
            Direction::Down => TimersStart::WhenSubmitted,
            Direction::Up => TimersStart::WhenTransmitted { tti: directions[direction].channel.tti() },
        },
        sender: sent.sender.clone(),
        receiver: received.receiver.clone(),
        sends: (&sent.format).into(),
        receives: (&received.format).into(),
        incoming: Incoming { tti: incoming.tti(), blocks: incoming.max_blocks() as u16 },
    }
}

impl Stage for Bearer {
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        let direction = packet.direction;
        let DirectionState { queue, ledger, counters, .. } = &mut self.directions[direction];
        counters.packets += 1;
        counters.bytes += packet.len() as u64;
        if let Some(why) = refusal(packet.len(), MAX_SDU) {
            counters.refused += 1;
            out.drop(packet, why);
            return;
        }
        if !queue.is_drop_tail() {
            queue.push(now, packet, out);
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
        self.handle_entity_results(now, out);
        self.schedule(now, out);
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            self.receive_blocks(now, direction, out);
        }
        for direction in Direction::BOTH {
            let entity = &mut self.entities[direction];
            if entity.next_deadline().is_some_and(|at| at <= now) {
                entity.handle_deadline(now);
                self.handle_entity_results(now, out);
            }
        }
        self.reestablish(now, out);
        for direction in Direction::BOTH {
            self.switch_rate(now, direction, out);
        }
        for direction in Direction::BOTH {
            self.refill_at_tti_start(now, direction, out);
            self.transmit(now, direction, out);
        }
        self.schedule(now, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn held(&self) -> usize {
        self.directions.iter().map(|(_, state)| state.ledger.held() + state.queue.len()).sum()
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
        self.apply_settings(now, settings, out)
    }
}
