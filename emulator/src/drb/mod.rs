//! Data radio bearers of LTE and NR: the stages `lte` and `nr`.
//!
//! A bearer has two ends, the network and the terminal. Each end has a PDCP and an RLC entity. In each
//! direction, a shared channel with HARQ carries transport blocks on a grid of slots. An optional second
//! bearer has priority in the same transport blocks.
//!
//! - [`config`] defines the settings;
//! - `bearer` and `reception` are the sending and the receiving part of one bearer;
//! - `rlc_entity` and `pdcp_receiver` select the implementation for the generation and mode;
//! - `shared_channel` is the DL-SCH or the UL-SCH: it decides which slots the bearers can use, and what arrives;
//! - `transmission` fills transport blocks;
//! - `connection` performs handovers and re-establishment after a radio link failure;
//! - `radio_log` records radio PDUs in the order of their first transmission.
//!
//! At the same instant, transport blocks arrive first, then timers expire, then a handover begins, then slots
//! begin.

mod bearer;
pub mod config;
mod connection;
mod pdcp_receiver;
mod radio_log;
mod reception;
mod reconfiguration;
mod rlc_entity;
mod shared_channel;
mod statistics;
mod transmission;

use std::any::Any;

use airwire::rng::Stream;
use airwire::time::{Instant, earlier};
use serde_json::Value;

use bearer::Bearer;
use config::{DrbConfig, DrbSettings, Generation, OthersConfig};
use radio_log::RadioLog;
use shared_channel::SharedChannel;

use crate::mac::drx::Drx;
use crate::mac::grid::Grid;
use crate::mac::link_adaptation::{LinkAdaptation, State};
use crate::mac::other_users::{Demand, OtherUsers};
use crate::packet::{Direction, Packet, PerDirection};
use crate::settings::{Invalid, Position, Settings};
use crate::stage::{Outbox, ReconfigureError, Stage};

/// The data radio bearers of a terminal as a stage of a path.
pub struct Drb {
    settings: DrbSettings,
    /// Index of the current cell in the settings.
    cell: usize,
    grid: Grid,
    channels: PerDirection<Channel>,
    /// In the order of their priority. The last one is the default bearer.
    bearers: Vec<Bearer>,
    others: OtherUsers,
    drx: Option<Drx>,
    /// End of the last interruption by a handover or a radio link failure.
    suspended_until: Instant,
    next_handover: Option<Instant>,
    handovers: u64,
    radio_link_failures: u64,
    deadline: Option<Instant>,
}

/// One direction of the radio link, which all bearers share.
struct Channel {
    shared: SharedChannel,
    radio_log: RadioLog,
    /// Memory of blocks in flight, as last counted.
    counted_memory: u64,
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
    /// Creates the stage. `name` is its name in the scenario.
    pub fn new<G: Generation>(config: &DrbConfig<G>, seed: u64, name: &str) -> Result<Self, Invalid> {
        config.validate()?;
        let settings = config.settings();
        let cell = &settings.cells[0];
        let grid = Grid::new(cell.slot, cell.pattern.clone());
        let channels = PerDirection::from_fn(|direction| Channel {
            shared: SharedChannel::new(
                direction,
                &settings.channels[direction],
                &cell.blocks[direction],
                seed,
                &format!("{name}/{direction}"),
            ),
            radio_log: RadioLog::default(),
            counted_memory: 0,
        });
        let bearers = settings.bearers.iter().map(|bearer| Bearer::new(bearer.clone(), seed, name));
        Ok(Self {
            cell: 0,
            grid,
            channels,
            bearers: bearers.collect(),
            others: other_users(settings.others.as_ref(), &cell.blocks.down.states, seed, name),
            drx: settings.drx.map(Drx::new),
            suspended_until: Instant::ZERO,
            next_handover: settings.handover.as_ref().and_then(|(times, _)| times.after(Instant::ZERO)),
            handovers: 0,
            radio_link_failures: 0,
            deadline: None,
            settings,
        })
    }

    /// Computes the next deadline, and counts memory. Runs after every call.
    fn schedule(&mut self, now: Instant, out: &mut Outbox) {
        self.deadline = self.next_handover;
        for direction in Direction::BOTH {
            let slot = self.next_slot(now, direction);
            let Channel { shared, counted_memory, .. } = &mut self.channels[direction];
            out.count_memory(direction, counted_memory, shared.in_flight_octets());
            self.deadline = earlier(earlier(self.deadline, slot), shared.next_arrival());
            for bearer in &mut self.bearers {
                bearer.count_memory(direction, out);
                self.deadline = earlier(self.deadline, bearer.next_deadline(direction));
            }
        }
    }
}

/// The other terminals of the cell. If the settings have no size for their transport blocks, the blocks have
/// the size of the first state in `own`.
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
        // The default bearer, which is the last one, carries every packet.
        let carrier = self.bearers.iter_mut().find(|bearer| bearer.carries(&packet));
        if let Some(bearer) = carrier {
            bearer.accept(now, packet, out);
        }
        self.schedule(now, out);
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        for direction in Direction::BOTH {
            self.receive_blocks(now, direction, out);
        }
        for direction in Direction::BOTH {
            for index in 0..self.bearers.len() {
                if self.bearers[index].handle_timers(now, direction, out) {
                    self.fail(now, direction, out);
                }
            }
        }
        self.hand_over(now, out);
        for direction in Direction::BOTH {
            self.transmit(now, direction, out);
            let is_idle = self.channels[direction].shared.is_idle();
            for bearer in &mut self.bearers {
                bearer.drop_lost(direction, is_idle, out);
            }
        }
        self.schedule(now, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn held(&self) -> usize {
        self.bearers.iter().map(Bearer::held).sum()
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
