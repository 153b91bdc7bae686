//! Data radio bearers of LTE and NR: the stages `lte` and `nr`.
//!
//! A bearer consists of two ends, the network and the terminal. Each has a PDCP and an RLC AM entity. In each
//! direction, a shared channel with HARQ carries transport blocks on a grid of slots.
//!
//! - [`config`] defines the settings;
//! - `am_entity` and `pdcp_receiver` select the machine of the generation;
//! - `shared_channel` is the DL-SCH or the UL-SCH: it decides which slots the bearer can use, and what arrives;
//! - `transmission` and `reception` move data between the layers;
//! - `connection` performs handovers and re-establishment after a radio link failure;
//! - `radio_log` records radio PDUs in the order of their first transmission.
//!
//! At the same instant, transport blocks arrive first, then timers expire, then a handover begins, then slots
//! begin.

mod am_entity;
pub mod config;
mod connection;
mod pdcp_receiver;
mod radio_log;
mod reception;
mod reconfiguration;
mod shared_channel;
mod statistics;
mod transmission;

use std::any::Any;

use airwire::rng::Stream;
use airwire::time::{Instant, earlier};
use serde_json::Value;

use am_entity::AmEntity;
use config::{DirectionSettings, DrbConfig, DrbSettings, Generation, OthersConfig};
use pdcp_receiver::PdcpReceiver;
use radio_log::RadioLog;
use shared_channel::SharedChannel;

use crate::mac::drx::Drx;
use crate::mac::grid::Grid;
use crate::mac::link_adaptation::{LinkAdaptation, State};
use crate::mac::other_users::{Demand, OtherUsers};
use crate::packet::{Direction, Packet, PerDirection};
use crate::pdcp::transmitter::Transmitter;
use crate::rlc::ledger::Ledger;
use crate::rlc::service::Event;
use crate::settings::{Invalid, Position, Settings};
use crate::stage::{DropReason, Event as PacketEvent, Outbox, ReconfigureError, Stage};
use crate::stages::queue::Queue;

/// Maximum size of a PDCP SDU in bytes (TS 38.323 §4.3.1).
const MAX_SDU: usize = 9_000;
/// Memory of an SDU in the entities in addition to its bytes.
const SDU_OVERHEAD: u64 = 160;

/// A data radio bearer as a stage of a path.
pub struct Drb {
    settings: DrbSettings,
    /// Index of the current cell in the settings.
    cell: usize,
    grid: Grid,
    /// Indexed by the direction in which an entity sends data: `down` is the network's entity, `up` the
    /// terminal's.
    entities: PerDirection<AmEntity>,
    directions: PerDirection<DirectionState>,
    others: OtherUsers,
    drx: Option<Drx>,
    /// End of the last interruption by a handover or a radio link failure.
    suspended_until: Instant,
    next_handover: Option<Instant>,
    handovers: u64,
    radio_link_failures: u64,
    deadline: Option<Instant>,
    /// Events of RLC that have not been handled. Empty between calls.
    events: Vec<Event>,
}

/// One direction, from the PDCP of its sender to the PDCP of its receiver.
struct DirectionState {
    /// Packets that PDCP has not numbered.
    queue: Queue,
    ledger: Ledger,
    pdcp: Transmitter,
    channel: SharedChannel,
    receiver: PdcpReceiver,
    radio_log: RadioLog,
    counters: Counters,
    /// Number of status reports that the receiver has sent.
    reports: u64,
    /// Memory of the copies in PDCP and of blocks in flight, as last counted.
    counted_memory: u64,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    packets: u64,
    bytes: u64,
    delivered: u64,
    delivered_bytes: u64,
    queue_full: u64,
    pdcp_discard: u64,
    pdcp_late: u64,
    handover: u64,
    /// Packets refused because they were empty or too long.
    refused: u64,
    /// PDCP PDUs that were submitted to RLC again after a re-establishment.
    retransmitted_sdus: u64,
    /// Delivered SDUs that match no submitted packet, and PDUs that a peer refused. A count above 0 indicates
    /// a bug in this code.
    unknown_sdus: u64,
}

impl<G: Generation> Settings for DrbConfig<G> {
    fn validate(&self) -> Result<(), Invalid> {
        // Not a recursion: an inherent function takes precedence over a trait's function.
        Self::validate(self)
    }

    fn build(&self, position: Position<'_>, seed: u64) -> Result<Box<dyn Stage>, String> {
        let drb = Drb::new(self, seed, position.name());
        drb.map(|drb| Box::new(drb) as _).map_err(|invalid| invalid.to_string())
    }
}

impl Drb {
    /// Creates the bearer of the stage `name`.
    pub fn new<G: Generation>(config: &DrbConfig<G>, seed: u64, name: &str) -> Result<Self, Invalid> {
        config.validate()?;
        let settings = config.settings();
        let cell = &settings.cells[0];
        let grid = Grid::new(cell.slot, cell.pattern.clone());
        let directions = PerDirection::from_fn(|direction| {
            let stream = format!("{name}/{direction}");
            let DirectionSettings { pdcp, queue, .. } = &settings.directions[direction];
            DirectionState {
                queue: Queue::new(*queue, Stream::new(seed, &format!("{stream}/queue"))),
                ledger: Ledger::new(queue.bounds),
                pdcp: Transmitter::new(pdcp.format, pdcp.discard_timer),
                channel: SharedChannel::new(
                    direction,
                    &settings.directions[direction],
                    &cell.blocks[direction],
                    seed,
                    &stream,
                ),
                receiver: PdcpReceiver::new(pdcp),
                radio_log: RadioLog::default(),
                counters: Counters::default(),
                reports: 0,
                counted_memory: 0,
            }
        });
        Ok(Self {
            cell: 0,
            grid,
            entities: PerDirection::from_fn(|direction| AmEntity::new(&settings, direction)),
            directions,
            others: other_users(settings.others.as_ref(), &cell.blocks.down.states, seed, name),
            drx: settings.drx.map(Drx::new),
            suspended_until: Instant::ZERO,
            next_handover: settings.handover.as_ref().and_then(|(times, _)| times.after(Instant::ZERO)),
            handovers: 0,
            radio_link_failures: 0,
            deadline: None,
            events: Vec::new(),
            settings,
        })
    }

    /// Computes the next deadline, and counts memory. Runs after every call.
    fn schedule(&mut self, now: Instant, out: &mut Outbox) {
        self.deadline = self.next_handover;
        for direction in Direction::BOTH {
            let slot = self.next_slot(now, direction);
            let state = &mut self.directions[direction];
            let unconfirmed = state.pdcp.tx_next() - state.pdcp.first_unconfirmed();
            let memory = state.pdcp.octets() + SDU_OVERHEAD * unconfirmed + state.channel.in_flight_octets();
            out.count_memory(direction, &mut state.counted_memory, memory);
            for at in [
                slot,
                state.channel.next_arrival(),
                state.pdcp.next_deadline(),
                state.receiver.next_deadline(),
                self.entities[direction].next_deadline(),
            ] {
                self.deadline = earlier(self.deadline, at);
            }
        }
    }
}

/// The other terminals of the cell. Without their own size, their transport blocks are as large as the bearer's
/// in its first state.
fn other_users(config: Option<&OthersConfig>, own: &[State], seed: u64, name: &str) -> OtherUsers {
    let Some(config) = config else { return OtherUsers::new(Default::default(), 1, []) };
    let octets = config.tbs.map_or(own[0].octets, |tbs| tbs.as_bytes() as usize);
    let demand = config.rate.map_or(Demand::FullBuffer, Demand::Constant);
    let users = (0..config.users).map(|n| {
        let stream = Stream::new(seed, &format!("{name}/other-{}", n + 1));
        let state = State { octets, ..own[0] };
        (demand, LinkAdaptation::new(vec![state], Instant::ZERO, stream))
    });
    OtherUsers::new(config.scheduler, config.average, users)
}

impl Stage for Drb {
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        let direction = packet.direction;
        let can_number = self.can_number(direction);
        let DirectionState { queue, ledger, counters, .. } = &mut self.directions[direction];
        counters.packets += 1;
        counters.bytes += packet.len() as u64;
        let refused = match packet.len() {
            0 => Some(DropReason::Malformed),
            1..=MAX_SDU => None,
            _ => Some(DropReason::TooLong),
        };
        if let Some(why) = refused {
            counters.refused += 1;
            out.drop(packet, why);
            return;
        }
        let settings = &self.settings.directions[direction];
        let (waiting, waiting_bytes) = ledger.waiting();
        let (packets, bytes) = (waiting + queue.len(), waiting_bytes + queue.bytes());
        if settings.queues_in_pdcp() {
            queue.push(now, packet, out);
        } else if !settings.queue.bounds.have_room(packets, bytes, packet.len()) {
            counters.queue_full += 1;
            out.drop(packet, DropReason::QueueFull);
            return;
        } else if can_number && queue.is_empty() {
            out.note(&packet, PacketEvent::Queued { packets, bytes });
            self.submit(now, direction, packet);
        } else {
            queue.push(now, packet, out);
        }
        self.schedule(now, out);
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            self.receive_blocks(now, direction, out);
        }
        for direction in Direction::BOTH {
            self.handle_timers(now, direction, out);
        }
        self.hand_over(now, out);
        for direction in Direction::BOTH {
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
