//! A cell whose mobiles share the downlink: the `rlc` stage with `hsdpa`.
//!
//! The mobile on the path and all other mobiles have their own bearers. TTIs of the downlink form a grid of 2
//! ms. A scheduler assigns each TTI to one of the mobiles that have data to send. No TTI begins while all
//! mobiles are idle.
//!
//! Choice: packets of the other mobiles do not leave this stage. They have no packet numbers, and do not
//! appear in the path's records and totals; only the statistics of this stage include them. The path's
//! records are therefore limited to the packets of hosts and of the scenario's background traffic, and an
//! additional mobile changes those records only by its effect on those packets.

use std::any::Any;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use serde_json::{Value, json};

use super::bearer::Bearer;
use super::config::RlcConfig;
use super::umts::hs::TTI;
use super::umts::hs::config::HsdpaConfig;
use super::umts::hs::scheduler::Scheduler;
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
    others: Vec<Other>,
    scheduler: Scheduler,
    /// Number of the first TTI that has not begun.
    next_tti: u64,
    deadline: Option<Instant>,
    /// Memory of the other mobiles' packets, as last counted.
    others_memory: u64,
}

/// A mobile that is not on the path, and shares the downlink.
struct Other {
    bearer: Bearer,
    source: Source,
    out: Outbox,
    sent: u64,
    /// Packets delivered to the mobile.
    delivered: u64,
    delivered_bytes: u64,
    /// Sum of the delays of all delivered packets.
    delays: Duration,
}

enum Source {
    Traffic(Box<Traffic>),
    /// A source that always keeps a full block of data waiting.
    Full(Full),
}

struct Full {
    template: Vec<u8>,
    /// Time of the first packet. `None` once the source has started.
    begins: Option<Instant>,
    octets: u64,
}

impl Cell {
    /// Creates the cell of the stage `name`.
    pub fn new(config: &RlcConfig, seed: u64, name: &str) -> Result<Self, Invalid> {
        let Some(hsdpa) = config.hsdpa.clone() else {
            return Err(Invalid::new("hsdpa", "a cell has a shared downlink: add `hsdpa = {}`"));
        };
        let own = Bearer::new(config, seed, name)?;
        let mobiles = hsdpa.others.as_ref().map_or(0, |others| others.mobiles);
        let others =
            (0..mobiles).map(|n| Other::new(config, &hsdpa, n, seed, &format!("{name}/other-{}", n + 1)));
        let mut cell = Self {
            own,
            others: others.collect::<Result<_, _>>()?,
            scheduler: Scheduler::new(1 + mobiles as usize),
            hsdpa,
            next_tti: 0,
            deadline: None,
            others_memory: 0,
        };
        cell.plan(Instant::ZERO);
        Ok(cell)
    }

    /// The bearer of the mobile on the path.
    pub fn bearer(&self) -> &Bearer {
        &self.own
    }

    fn bearers(&self) -> impl Iterator<Item = &Bearer> {
        std::iter::once(&self.own).chain(self.others.iter().map(|other| &other.bearer))
    }

    /// Starts the TTI that is due at `now`, if a mobile can use it.
    fn transmit(&mut self, now: Instant, out: &mut Outbox) {
        self.advance(now);
        let tti = self.next_tti;
        if begin(tti) > now {
            return;
        }
        let bits = |octets: usize| 8.0 * octets as f64;
        let bids = self.bearers().map(|bearer| bearer.bid(now)).enumerate();
        let bids = bids.filter_map(|(mobile, octets)| Some((mobile, bits(octets?))));
        let HsdpaConfig { scheduler: scheduling, average, .. } = self.hsdpa;
        let Some(mobile) = self.scheduler.choose(scheduling, average, tti, bids) else {
            self.next_tti += 1;
            return;
        };
        self.next_tti += 1;
        let sent = match mobile.checked_sub(1) {
            None => self.own.serve(now, out),
            Some(index) => self.others[index].serve(now, out),
        };
        self.scheduler.serve(average, tti, mobile, bits(sent));
    }

    /// Skips the TTIs that begin before `now`.
    fn advance(&mut self, now: Instant) {
        self.next_tti = self.next_tti.max((now - Instant::ZERO).as_nanos().div_ceil(TTI.as_nanos()));
    }

    fn plan(&mut self, now: Instant) {
        self.advance(now);
        let next = begin(self.next_tti);
        let grid = |at: Instant| begin((at - Instant::ZERO).as_nanos().div_ceil(TTI.as_nanos())).max(next);
        let ttis = self.bearers().filter_map(Bearer::wants_tti).map(grid);
        let bearers = self.bearers().filter_map(Bearer::next_deadline);
        let sources = self.others.iter().filter_map(|other| other.source.next_deadline());
        self.deadline = ttis.chain(bearers).chain(sources).min();
    }
}

fn begin(tti: u64) -> Instant {
    Instant::ZERO + TTI * tti
}

impl Other {
    fn new(config: &RlcConfig, hsdpa: &HsdpaConfig, n: u32, seed: u64, name: &str) -> Result<Self, Invalid> {
        let bearer = Bearer::receiving(config, hsdpa.others_snr(n), seed, name)?;
        let others =
            hsdpa.others.as_ref().ok_or_else(|| Invalid::new("others", "there are no other mobiles"))?;
        let stream = Stream::new(seed, &format!("{name}/down/traffic"));
        let source = match others.traffic() {
            Some(traffic) => Source::Traffic(Box::new(Traffic::new(&traffic, Direction::Down, 0, stream)?)),
            None => Source::Full(Full {
                template: udp_to_discard(others.packet.as_bytes() as usize),
                begins: Some(Instant::ZERO + others.starts),
                octets: bearer.largest_block(),
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
        self.count(now);
        self.load(now, path);
    }

    /// Passes the packets that the source has sent by `now` to the bearer, or drops them if the cell has no
    /// memory left in its path.
    fn load(&mut self, now: Instant, path: &mut Outbox) {
        let packets = match &mut self.source {
            Source::Traffic(traffic) => {
                traffic.handle_deadline(now, &mut self.out);
                self.out.take()
            }
            Source::Full(full) => full.fill(now, self.bearer.waiting_down(), self.sent, &mut self.out),
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
        self.count(now);
    }

    fn serve(&mut self, now: Instant, path: &mut Outbox) -> usize {
        self.out.begin(now, None);
        let sent = self.bearer.serve(now, &mut self.out);
        self.count(now);
        self.load(now, path);
        sent
    }

    /// Counts the packets that have reached the mobile.
    fn count(&mut self, now: Instant) {
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

impl Source {
    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Traffic(traffic) => traffic.next_deadline(),
            // A source that has started is refilled whenever the bearer is served.
            Self::Full(full) => full.begins,
        }
    }
}

impl Full {
    /// Returns the packets that are missing for a full block. `waiting` is the number of waiting bytes,
    /// `sent` the number of packets sent so far.
    fn fill(&mut self, now: Instant, waiting: u64, sent: u64, out: &mut Outbox) -> Vec<Packet> {
        if self.begins.is_some_and(|at| at > now) {
            return Vec::new();
        }
        self.begins = None;
        let missing = self.octets.saturating_sub(waiting).div_ceil(self.template.len() as u64);
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
        self.plan(now);
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
        self.plan(now);
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
            stats["others"] = self.others.iter().map(Other::stats).collect();
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
        self.own.share(config, hsdpa.snr.value());
        for (n, other) in (0..).zip(&mut self.others) {
            other.out.begin(now, None);
            other.bearer.reconfigure(now, settings, &mut other.out)?;
            other.bearer.share(config, hsdpa.others_snr(n));
            other.count(now);
        }
        self.hsdpa = hsdpa.clone();
        self.plan(now);
        Ok(())
    }
}
