//! A cell whose mobiles share the downlink: the `rlc` stage with `hsdpa`.
//!
//! The mobile on the path and all other mobiles have their own bearers. TTIs of the downlink form a grid of 2
//! ms. A scheduler assigns each TTI to one of the mobiles that have data to send. No TTI begins while all
//! mobiles are idle.
//!
//! Choice: packets of the other mobiles do not leave this stage. They have no packet numbers, and do not
//! appear in the path's records and totals; only the statistics of this stage include them. The path's
//! records are therefore limited to the packets of hosts and of the scenario's background traffic. An
//! additional mobile changes these records only by its effect on these packets.

use std::any::Any;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use serde_json::{Value, json};

use super::bearer::Bearer;
use super::config::RlcConfig;
use super::umts::hs::TTI;
use super::umts::hs::config::{HsdpaConfig, OthersConfig};
use crate::mac::grid::{Grid, Pattern, Slot};
use crate::mac::scheduler::Scheduler;
use crate::packet::{Direction, Origin, Packet};
use crate::settings::Invalid;
use crate::stage::{DropReason, Outbox, ReconfigureError, Recording, Stage};
use crate::stages::duplex::OneWay;
use crate::stages::traffic::{Traffic, numbered, udp_to_discard};

/// A cell as a stage of a path.
pub struct Cell {
    hsdpa: HsdpaConfig,
    /// The bearer of the mobile on the path.
    own: Bearer,
    others: Vec<OtherMobile>,
    scheduler: Scheduler,
    grid: Grid,
    /// End of the last TTI that was assigned.
    unassigned_from: Instant,
    deadline: Option<Instant>,
    /// Memory of the other mobiles' packets, as last counted.
    others_memory: u64,
}

/// A mobile that is not on the path, and shares the downlink.
struct OtherMobile {
    bearer: Bearer,
    source: TrafficSource,
    out: Outbox,
    sent: u64,
    /// Packets delivered to the mobile.
    delivered: u64,
    delivered_bytes: u64,
    /// Sum of the delays of all delivered packets.
    delays: Duration,
}

enum TrafficSource {
    Traffic(Box<Traffic>),
    FullBuffer(FullBuffer),
}

/// A source that always keeps a full block of data waiting.
struct FullBuffer {
    template: Vec<u8>,
    /// Time of the first packet. `None` once the source has started.
    starts: Option<Instant>,
    /// Size of the largest block in bytes.
    max_block: u64,
}

impl Cell {
    /// Creates the cell of the stage `name`.
    pub fn new(config: &RlcConfig, seed: u64, name: &str) -> Result<Self, Invalid> {
        let Some(hsdpa) = &config.hsdpa else {
            return Err(Invalid::new("hsdpa", "a cell has a shared downlink: add `hsdpa = {}`"));
        };
        let own = Bearer::new(config, seed, name)?;
        let mobiles = hsdpa.others.as_ref().map_or(0, |others| others.mobiles);
        let others = hsdpa.others.iter().flat_map(|others| (0..others.mobiles).map(move |n| (others, n)));
        let others = others.map(|(others, n)| {
            let bearer =
                Bearer::with_snr(config, hsdpa.others_snr(n), seed, &format!("{name}/other-{}", n + 1))?;
            OtherMobile::new(bearer, others, seed, &format!("{name}/other-{}/down/traffic", n + 1))
        });
        let mut cell = Self {
            own,
            others: others.collect::<Result<_, _>>()?,
            scheduler: Scheduler::new(1 + mobiles as usize),
            hsdpa: hsdpa.clone(),
            grid: Grid::new(TTI, Pattern::fdd()),
            unassigned_from: Instant::ZERO,
            deadline: None,
            others_memory: 0,
        };
        cell.compute_deadline(Instant::ZERO);
        Ok(cell)
    }

    /// The bearer of the mobile on the path.
    pub fn bearer(&self) -> &Bearer {
        &self.own
    }

    fn bearers(&self) -> impl Iterator<Item = &Bearer> {
        std::iter::once(&self.own).chain(self.others.iter().map(|other| &other.bearer))
    }

    /// The first unassigned TTI that begins at or after `at`.
    fn next_tti(&self, at: Instant) -> Slot {
        self.grid.next(Direction::Down, at.max(self.unassigned_from))
    }

    /// Assigns the TTI that begins at `now` to a mobile, if a mobile can use it.
    fn transmit(&mut self, now: Instant, out: &mut Outbox) {
        let Slot { number: tti, start } = self.next_tti(now);
        if start > now {
            return;
        }
        self.unassigned_from = start + TTI;
        let bits = |octets: usize| 8.0 * octets as f64;
        let sendable = self.bearers().map(|bearer| bearer.sendable_octets(now)).enumerate();
        let sendable = sendable.filter_map(|(mobile, octets)| Some((mobile, bits(octets?))));
        let HsdpaConfig { scheduler: scheduling, average, .. } = self.hsdpa;
        let Some(mobile) = self.scheduler.choose(scheduling, average, tti, sendable) else { return };
        let sent = match mobile.checked_sub(1) {
            None => self.own.use_tti(now, out),
            Some(index) => self.others[index].use_tti(now, out),
        };
        self.scheduler.record(average, tti, mobile, bits(sent));
    }

    fn compute_deadline(&mut self, now: Instant) {
        let ttis = self.bearers().filter_map(Bearer::earliest_tti);
        let ttis = ttis.map(|at| self.next_tti(at.max(now)).start);
        let bearers = self.bearers().filter_map(Bearer::next_deadline);
        let sources = self.others.iter().filter_map(|other| other.source.next_deadline());
        self.deadline = ttis.chain(bearers).chain(sources).min();
    }
}

impl OtherMobile {
    fn new(bearer: Bearer, config: &OthersConfig, seed: u64, stream: &str) -> Result<Self, Invalid> {
        let stream = Stream::new(seed, stream);
        let source = match config.traffic() {
            Some(traffic) => {
                TrafficSource::Traffic(Box::new(Traffic::new(&traffic, Direction::Down, 0, stream)?))
            }
            None => TrafficSource::FullBuffer(FullBuffer {
                template: udp_to_discard(config.packet.as_bytes() as usize),
                starts: Some(Instant::ZERO + config.starts),
                max_block: bearer.max_block(),
            }),
        };
        let out = Outbox::new(Recording::Off, false);
        Ok(Self { bearer, source, out, sent: 0, delivered: 0, delivered_bytes: 0, delays: Duration::ZERO })
    }

    fn handle_deadline(&mut self, now: Instant, path: &mut Outbox) {
        self.out.begin(now, None);
        if self.bearer.next_deadline().is_some_and(|at| at <= now) {
            self.bearer.handle_deadline(now, &mut self.out);
        }
        self.count_delivered(now);
        self.submit_traffic(now, path);
    }

    /// Passes the packets that the source has sent by `now` to the bearer, or drops them if the cell has no
    /// memory left in its path.
    fn submit_traffic(&mut self, now: Instant, path: &mut Outbox) {
        let packets = match &mut self.source {
            TrafficSource::Traffic(traffic) => {
                traffic.handle_deadline(now, &mut self.out);
                self.out.take()
            }
            TrafficSource::FullBuffer(source) => {
                source.fill(now, self.bearer.unsent_down(), self.sent, &mut self.out)
            }
        };
        self.sent += packets.len() as u64;
        for packet in packets {
            if path.has_room(Direction::Down) {
                self.bearer.handle_packet(now, packet, &mut self.out);
            } else {
                path.note_full(Direction::Down);
                self.out.drop(packet, DropReason::QueueFull);
            }
        }
        self.count_delivered(now);
    }

    fn use_tti(&mut self, now: Instant, path: &mut Outbox) -> usize {
        self.out.begin(now, None);
        let sent = self.bearer.use_tti(now, &mut self.out);
        self.count_delivered(now);
        self.submit_traffic(now, path);
        sent
    }

    /// Counts the packets that have reached the mobile.
    fn count_delivered(&mut self, now: Instant) {
        for packet in self.out.take() {
            self.delivered += 1;
            self.delivered_bytes += packet.len() as u64;
            self.delays += now - packet.entered;
            self.out.release(packet);
        }
    }

    fn stats(&self) -> Value {
        let delay = self.delays.as_secs_f64() / self.delivered.max(1) as f64;
        json!({
            "packets": self.sent,
            "dropped": self.out.accounts.background.down.dropped.iter().sum::<u64>(),
            "delivered": self.delivered,
            "delivered_bytes": self.delivered_bytes,
            "mean_delay_seconds": delay,
            "held": self.bearer.held(),
            "hsdpa": self.bearer.stats()["down"]["hsdpa"],
        })
    }
}

impl TrafficSource {
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Traffic(traffic) => traffic.next_deadline(),
            // After its start, the source is refilled after each TTI that the bearer has used.
            Self::FullBuffer(source) => source.starts,
        }
    }
}

impl FullBuffer {
    /// Returns the packets that complete a full block. `waiting` is the number of waiting bytes, `sent` the
    /// number of packets sent so far.
    fn fill(&mut self, now: Instant, waiting: u64, sent: u64, out: &mut Outbox) -> Vec<Packet> {
        if self.starts.is_some_and(|at| at > now) {
            return Vec::new();
        }
        self.starts = None;
        let missing = self.max_block.saturating_sub(waiting).div_ceil(self.template.len() as u64);
        let origin = Origin::Background { leaves_after: 0 };
        (sent..sent + missing)
            .map(|n| {
                let bytes = numbered(&self.template, n, out.buffer());
                out.originate(Direction::Down, origin, bytes)
            })
            .collect()
    }
}

impl Stage for Cell {
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        self.own.handle_packet(now, packet, out);
        self.compute_deadline(now);
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        if self.own.next_deadline().is_some_and(|at| at <= now) {
            self.own.handle_deadline(now, out);
        }
        for other in &mut self.others {
            other.handle_deadline(now, out);
        }
        self.transmit(now, out);
        let others: u64 = self.others.iter().map(|other| other.out.memory.used()).sum();
        out.count_memory(Direction::Down, &mut self.others_memory, others);
        self.compute_deadline(now);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn held(&self) -> usize {
        self.own.held()
    }

    fn stats(&self) -> Value {
        let mut stats = self.own.stats();
        if !self.others.is_empty() {
            stats["others"] = self.others.iter().map(OtherMobile::stats).collect();
        }
        stats
    }

    fn reconfigure(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError> {
        self.own.reconfigure(now, settings, out)?;
        let Some(config) = settings.downcast_ref::<RlcConfig>() else { return Ok(()) };
        let Some(hsdpa) = &config.hsdpa else { return Ok(()) };
        self.own.reconfigure_link(config, hsdpa.snr.value());
        for (n, other) in (0..).zip(&mut self.others) {
            other.out.begin(now, None);
            other.bearer.reconfigure(now, settings, &mut other.out)?;
            other.bearer.reconfigure_link(config, hsdpa.others_snr(n));
            other.count_delivered(now);
        }
        self.hsdpa = hsdpa.clone();
        self.compute_deadline(now);
        Ok(())
    }
}
