//! A radio bearer: two RLC entities, and between them a transport channel in each direction. The `rlc` stage.
//!
//! Each direction has TTIs on a grid of its own. When one begins, the sending entity fills as many blocks as the
//! transport format set allows, STATUS and RESET PDUs among them; one TTI and the delay later those that the channel
//! has not damaged arrive together. While an entity has nothing to send, no TTI begins.
//!
//! At one and the same instant PDUs arrive first, then timers expire, then RRC acts, then TTIs begin: what happens just
//! when a TTI begins is still in time for it.
//!
//! A downlink that mobiles share has its TTIs from the cell (`shared`).

mod shared;

use std::any::Any;

use airwire::rng::Stream;
use airwire::time::Instant;
use serde_json::{Value, json};

use super::air::OneLess;
use super::carrier::Carrier;
use super::cell::Cell;
use super::config::{DirectionConfig, RlcConfig};
use super::incidents::Told;
use super::ledger::Ledger;
use super::rrc::{Begun, Readiness, Rrc, Sides};
use super::switching::Switcher;
use super::umts::codec::Format;
use super::umts::config::{Discard, FormatConfig};
use super::umts::dch::Dch;
use crate::packet::{Direction, Packet, PerDirection};
use crate::rlc::umts::entity::{
    Entity, EntityConfig, Incoming, Outgoing, PduKind, Room, SduId, SduOutcome, TimersStart,
};
use crate::settings::{Invalid, Position, Settings};
use crate::stage::{Event, Mishap, NotLive, Outbox, RadioPdu, Stage, Technology, Why};
use crate::stages::queue::Queue;

/// An SDU is an IP packet: longer ones do not exist.
const LONGEST: usize = 65_535;

/// The stage.
pub struct Bearer {
    config: RlcConfig,
    /// By the direction in which each sends data: the network's end is `down`, the terminal's `up`.
    entities: PerDirection<Entity>,
    lanes: PerDirection<Lane>,
    rrc: Rrc,
    deadline: Option<Instant>,
    /// There is something for a downlink that mobiles share, from then on.
    shared_from: Option<Instant>,
    reestablished: u64,
}

/// What belongs to one direction.
struct Lane {
    air: Carrier,
    switcher: Switcher,
    /// Where packets wait that the entity does not have, so that a discipline can drop them or choose among them. With
    /// drop-tail it is always empty: the entity has them all.
    front: Queue,
    ledger: Ledger,
    counters: Counters,
    told: Told,
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
    /// Refused: empty, or too long.
    refused: u64,
    /// Packets that came out and had not gone in. There are none, unless this code has a mistake.
    foreign: u64,
}

impl Settings for RlcConfig {
    fn validate(&self) -> Result<(), Invalid> {
        // Not a recursion: a type's own function goes before a trait's.
        Self::validate(self)
    }

    fn build(&self, position: Position<'_>, seed: u64) -> Result<Box<dyn Stage>, String> {
        let stage: Result<Box<dyn Stage>, Invalid> = match &self.hsdpa {
            None => Bearer::new(self, seed, position.name()).map(|bearer| Box::new(bearer) as _),
            Some(_) => Cell::new(self, seed, position.name()).map(|cell| Box::new(cell) as _),
        };
        stage.map_err(|invalid| invalid.to_string())
    }
}

impl Bearer {
    /// `name` is the stage's: each direction's block errors have their own stream. Where mobiles share the downlink, the
    /// stage is a [`Cell`].
    pub fn new(config: &RlcConfig, seed: u64, name: &str) -> Result<Self, Invalid> {
        let snr = config.hsdpa.as_ref().map_or(0.0, |hsdpa| hsdpa.snr.value());
        Self::receiving(config, snr, seed, name)
    }

    /// `snr`: with which a downlink that mobiles share is received, in dB.
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

    /// Blocks that were transmitted in this direction, and how many of them were damaged.
    pub fn blocks(&self, direction: Direction) -> (u64, u64) {
        let counters = self.lanes[direction].air.counters();
        (counters.blocks, counters.lost)
    }

    /// What arrives in `direction` at `now` is handed to the entity at that end.
    fn land(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        while let Some(flight) = self.lanes[direction].air.land(now) {
            for block in &flight.blocks {
                self.entities[direction.reversed()].handle_pdu(now, block);
            }
            self.collect(now, out);
        }
    }

    /// Octets of packets that have not begun, with which the entity can fill any TTI.
    fn wanted_octets(&self, direction: Direction) -> usize {
        self.lanes[direction].air.largest_octets(of(&self.config, direction).format.most())
    }

    /// If a TTI begins now, the entity gets what it takes to fill it, and no more: the rest goes on waiting where the
    /// discipline sees it. An entity whose window is full keeps what it has got and gets nothing further.
    fn feed(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let Carrier::Dedicated(air) = &mut self.lanes[direction].air else { return };
        air.advance(now);
        if air.next_begin() <= now && self.rrc.is_ready(now) {
            self.fill_up(now, direction, out);
        }
    }

    /// A TTI begins.
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
        // Timer_Discard of what waited longer than it allows.
        if entity.next_deadline().is_some_and(|at| at <= now) {
            entity.handle_deadline(now);
        }
        self.collect(now, out);
    }

    /// The entity has room for packets that wait in front of it.
    fn is_to_be_fed(&self, direction: Direction) -> bool {
        !self.lanes[direction].front.is_empty()
            && self.entities[direction].waiting().1 < self.wanted_octets(direction)
    }

    /// The TTI that begins now, if one does and there is something to send.
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
            out.befall(Mishap::Outage { direction, until });
        }
        self.rrc.transmits(air.free());
        self.collect(now, out);
    }

    /// After everything that happens to an entity: hands on what has been put together, drops what was given up, and
    /// tells RRC if one of the ends has failed.
    fn collect(&mut self, now: Instant, out: &mut Outbox) {
        self.settle_packets(out);
        if out.tells_incidents() {
            for direction in Direction::BOTH {
                let (sender, receiver) = (&self.entities[direction], &self.entities[direction.reversed()]);
                self.lanes[direction].told.tell(direction, sender, receiver, out);
            }
        }
        for direction in Direction::BOTH {
            if self.entities[direction].is_unrecoverable() && self.rrc.failed(now, direction) {
                out.befall(Mishap::RlcFailed { direction });
            }
        }
        self.reestablish(now, out);
    }

    /// RRC starts RLC anew, if it is time.
    fn reestablish(&mut self, now: Instant, out: &mut Outbox) {
        let Some(sides) = self.rrc.due(now) else { return };
        // Choice: while a RESET has no answer, nobody knows whether the peer has reset both directions. So both start anew.
        let resets = self.entities.iter().any(|(_, entity)| entity.is_resetting());
        let sides = if resets { Sides::Both } else { sides };
        self.reestablished += 1;
        out.befall(Mishap::RlcReestablished);
        // What is on its way has numbers of before, STATUS PDUs about the other direction too.
        for direction in Direction::BOTH {
            self.lanes[direction].air.clear();
        }
        let hfn = self.start_value();
        let directions = match sides {
            Sides::Both => &Direction::BOTH[..],
            Sides::Down => &[Direction::Down],
            Sides::Up => &[Direction::Up],
        };
        match directions {
            [direction] => {
                self.entities[*direction].reestablish_transmitting(now, hfn);
                self.entities[direction.reversed()].reestablish_receiving(now, hfn);
            }
            _ => Direction::BOTH
                .into_iter()
                .for_each(|direction| self.entities[direction].reestablish(now, hfn)),
        }
        match self.rrc.begun() {
            Begun::Lost => {}
            Begun::Requeued => directions.iter().for_each(|direction| self.requeue(now, *direction, out)),
        }
        self.settle_packets(out);
    }

    /// After `direction` has started anew: what has not arrived is to be transmitted from its beginning.
    fn requeue(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        self.settle_outcomes(direction, Begun::Requeued, out);
        let entity = &mut self.entities[direction];
        entity.withdraw();
        self.lanes[direction].ledger.begin_again(now, |number, since, octets| {
            entity.submit(since, SduId(number), octets.to_vec());
        });
        // Timer_Discard of what waited longer than it allows.
        entity.handle_deadline(now);
    }

    /// Changes the rate of this direction, if it is time.
    fn switch(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let Lane { air, switcher, .. } = &mut self.lanes[direction];
        let Some(rate) = switcher.due(now, air.rate()) else { return };
        if air.rate() == Some(rate) {
            return;
        }
        air.change_rate(now, rate);
        out.befall(Mishap::RateChanged { direction, rate: rate.name() });
        self.adapt_entities(now);
    }

    /// The entities hear of settings, and of TTIs, that have changed.
    fn adapt_entities(&mut self, now: Instant) {
        for direction in Direction::BOTH {
            let entity = self.end(direction);
            self.entities[direction].reconfigure(now, &entity);
        }
    }

    /// What there is to say about the end that sends in `direction`.
    fn end(&self, direction: Direction) -> EntityConfig {
        end(&self.config, direction, &self.lanes)
    }

    /// TS 25.331 §8.5.9: RRC configures START, two more than the highest HFN of the bearer.
    fn start_value(&self) -> u32 {
        2 + self.entities.iter().map(|(_, entity)| entity.highest_hfn()).max().unwrap_or(0)
    }

    fn settle_packets(&mut self, out: &mut Outbox) {
        for direction in Direction::BOTH {
            let Lane { ledger, counters, .. } = &mut self.lanes[direction];
            while let Some(octets) = self.entities[direction.reversed()].poll_sdu() {
                match ledger.deliver(&octets) {
                    Some(packet) => {
                        counters.delivered += 1;
                        counters.delivered_bytes += packet.len() as u64;
                        out.forward(packet);
                    }
                    None => counters.foreign += 1,
                }
            }
            // What a failed sender gave up may still be on the air, and arrive until RLC starts anew.
            if !self.entities[direction].is_unrecoverable() {
                self.settle_outcomes(direction, Begun::Lost, out);
            }
        }
    }

    /// `begun`: what becomes of packets that a reset, or RLC's start anew, took.
    fn settle_outcomes(&mut self, direction: Direction, begun: Begun, out: &mut Outbox) {
        let Lane { ledger, counters, .. } = &mut self.lanes[direction];
        while let Some((SduId(number), outcome)) = self.entities[direction].poll_outcome() {
            if outcome == SduOutcome::Reset && begun == Begun::Requeued {
                continue;
            }
            let Some(packet) = ledger.settle(number) else { continue };
            let why = match outcome {
                // It was delivered, under the name of an earlier packet of the same octets, which was given up.
                SduOutcome::Acknowledged | SduOutcome::Discarded => {
                    counters.rlc_discard += 1;
                    Why::RlcDiscard
                }
                SduOutcome::Reset => {
                    counters.rlc_reset += 1;
                    Why::RlcReset
                }
            };
            out.drop(packet, why);
        }
    }

    /// After every call: when the next one is wanted.
    fn schedule(&mut self, now: Instant, out: &mut Outbox) {
        let wanted = self.entities.iter().any(|(_, entity)| entity.blocks_wanted(1) > 0)
            || Direction::BOTH.into_iter().any(|direction| self.is_to_be_fed(direction));
        let readiness = if wanted { self.rrc.call(now) } else { Readiness::Ready };
        let from = match readiness {
            Readiness::Ready => now,
            Readiness::From(at) => at,
            Readiness::Called(at) => {
                out.befall(Mishap::Promotion { until: at });
                at
            }
        };
        self.plan(now, from);
    }

    /// `from`: no TTI begins before it.
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

    /// What cannot change while PDUs of the old kind are on the air, or windows are in use.
    fn check(&self, direction: Direction, new: &DirectionConfig) -> Result<(), NotLive> {
        let old = of(&self.config, direction);
        let at_both_ends = "both ends have to agree on it: start the link anew";
        // A discard needs one more sequence number than the window has, and 4095 may be in use.
        let resets =
            |config: &DirectionConfig| matches!(config.sender.discard, Discard::ResetAfterMaxDat { .. });
        let cannot_discard = new.sender.window == 4095 && resets(old) && !resets(new);
        let fixed = [
            ("format.pdu", old.format.pdu != new.format.pdu, at_both_ends),
            ("format.flexible", old.format.flexible != new.format.flexible, at_both_ends),
            ("format.he_special", old.format.he_special != new.format.he_special, at_both_ends),
            ("sender.window", old.sender.window != new.sender.window, at_both_ends),
            (
                "sender.discard",
                cannot_discard,
                "a window of 4095 may be in use up to the last number, and a discard takes another one: start the \
                 link anew",
            ),
            ("receiver.window", old.receiver.window != new.receiver.window, at_both_ends),
            (
                "receiver.in_sequence",
                old.receiver.in_sequence != new.receiver.in_sequence,
                "packets that wait for their turn would be in disorder: start the link anew",
            ),
            (
                "channel.phase",
                old.channel.phase != new.channel.phase,
                "the grid of TTIs is laid out once: start the link anew",
            ),
        ];
        match fixed.iter().find(|(_, changed, _)| *changed) {
            Some((setting, _, why)) => Err(NotLive::new(format!("{direction}.{setting}"), *why)),
            None => Ok(()),
        }
    }
}

fn of(config: &RlcConfig, direction: Direction) -> &DirectionConfig {
    match direction {
        Direction::Down => &config.down,
        Direction::Up => &config.up,
    }
}

/// The end that sends in `direction`.
fn end(config: &RlcConfig, direction: Direction, lanes: &PerDirection<Lane>) -> EntityConfig {
    let (out, back) = (&lanes[direction].air, &lanes[direction.reversed()].air);
    let (sends, receives) = (of(config, direction), of(config, direction.reversed()));
    EntityConfig {
        // The terminal's timers start when the TTI is over (§9.5).
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

/// What an entity counts as the sender of its direction. `configured`: its window, unless it was told another one.
fn sender_stats(entity: &Entity, configured: u16) -> Value {
    let stats = entity.stats();
    let window = entity.window();
    json!({
        "window": (window < configured).then_some(window),
        "windows_taken": stats.windows_taken,
        "pdus_new": stats.pdus_new,
        "pdus_resent": stats.pdus_resent,
        "poll_retransmissions": stats.poll_retransmissions,
        "polls": stats.polls,
        "timer_poll_expiries": stats.timer_poll_expiries,
        "nacks": stats.nacks,
        "nacks_ignored": stats.nacks_ignored,
        "window_full": stats.window_full,
        "window_stalls": stats.window_stalls,
        "statuses_received": stats.statuses_received,
        "statuses_refused": stats.statuses_refused,
        "resets": stats.resets(),
        "resets_max_dat": stats.resets_max_dat,
        "resets_max_mrw": stats.resets_max_mrw,
        "resets_erroneous_sn": stats.resets_erroneous_sn,
        "reset_pdus": stats.reset_pdus,
        "unrecoverable_errors": stats.unrecoverable_errors,
        "discards": stats.discards,
        "mrws_sent": stats.mrws_sent,
        "sdus_discarded": stats.sdus_discarded,
        "sdus_reset": stats.sdus_reset,
    })
}

/// What the entity at the other end of this direction counts as its receiver.
pub(super) fn receiver_stats(entity: &Entity) -> Value {
    let (stats, faults) = (entity.stats(), entity.faults());
    json!({
        "windows_told": stats.windows_told,
        "faults": faults,
        "pdus_received": stats.pdus_received,
        "duplicates": stats.duplicates,
        "outside_window": stats.outside_window,
        "polled": stats.polled,
        "statuses_sent": stats.statuses_sent,
        "piggybacked": stats.piggybacked,
        "mrws_received": stats.mrws_received,
        "mrws_obsolete": stats.mrws_obsolete,
        "decode_errors": stats.decode_errors,
        "ignored": stats.ignored,
    })
}

/// The entity gets a packet that waits since then.
fn submit(entity: &mut Entity, ledger: &mut Ledger, since: Instant, packet: Packet) {
    let octets = packet.bytes.clone();
    let number = ledger.submit(since, packet);
    entity.submit(since, SduId(number), octets);
}

/// The PDUs for a TTI that begins now.
fn pull(
    entity: &mut Entity,
    ledger: &mut Ledger,
    begins: Instant,
    room: Room,
    one_less: OneLess,
    out: &mut Outbox,
) -> Vec<Outgoing> {
    let pdus = entity.pull(begins, room, one_less);
    if let Some(SduId(last)) = pdus.iter().filter_map(|pdu| sdus(pdu).last()).max() {
        let begun = |packet: &Packet, since| out.note(packet, Event::Sent { waited: begins - since });
        ledger.begin_through(*last, begun);
    }
    pdus
}

fn technology(format: &FormatConfig) -> Technology {
    Technology::Umts { indicators: Format::from(format).indicator_size().bits() }
}

fn put_on_air(
    direction: Direction,
    technology: Technology,
    ledger: &Ledger,
    pdu: &Outgoing,
    lost: bool,
    out: &mut Outbox,
) {
    out.radio(|at, stage| RadioPdu {
        at,
        stage,
        direction,
        technology,
        bytes: pdu.octets.as_slice().into(),
        epoch: pdu.epoch,
        lost,
        transmission: match pdu.kind {
            PduKind::Data { transmission, .. } => transmission,
            PduKind::Status | PduKind::Reset | PduKind::ResetAck => 1,
        },
        packets: sdus(pdu).iter().filter_map(|SduId(number)| Some(ledger.packet(*number)?.id)).collect(),
    });
}

/// The packets of which it carries octets.
fn sdus(pdu: &Outgoing) -> &[SduId] {
    match &pdu.kind {
        PduKind::Data { sdus, .. } => sdus,
        PduKind::Status | PduKind::Reset | PduKind::ResetAck => &[],
    }
}

impl Stage for Bearer {
    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        let direction = packet.direction;
        let Lane { front, ledger, counters, .. } = &mut self.lanes[direction];
        counters.packets += 1;
        counters.bytes += packet.len() as u64;
        let refused = match packet.len() {
            0 => Some(Why::Malformed),
            1..=LONGEST => None,
            _ => Some(Why::TooLong),
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
            out.drop(packet, Why::QueueFull);
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
        let direction = |direction: Direction| {
            let Lane { air, front, ledger, counters, switcher: _, told: _ } = &self.lanes[direction];
            let (waiting, waiting_bytes) = ledger.waiting();
            let blocks = air.counters();
            let bler = if blocks.blocks == 0 { 0.0 } else { blocks.lost as f64 / blocks.blocks as f64 };
            let mut stats = json!({
                "packets": counters.packets,
                "bytes": counters.bytes,
                "delivered": counters.delivered,
                "delivered_bytes": counters.delivered_bytes,
                "queue_full": counters.queue_full,
                "rlc_discard": counters.rlc_discard,
                "rlc_reset": counters.rlc_reset,
                "refused": counters.refused,
                "foreign": counters.foreign,
                "queue_packets": waiting + front.len(),
                "queue_bytes": waiting_bytes + front.bytes(),
                "held": ledger.held() + front.len(),
                "rate": air.rate().map(Dch::name),
                "ttis": blocks.ttis,
                "blocks": blocks.blocks,
                "blocks_lost": blocks.lost,
                "blocks_lost_in_outage": blocks.lost_in_outage,
                "bler": bler,
                "sender": sender_stats(&self.entities[direction], of(&self.config, direction).sender.window),
                "receiver": receiver_stats(&self.entities[direction.reversed()]),
            });
            if !front.is_drop_tail() {
                stats["queue"] = front.stats();
            }
            stats
        };
        let mut down = direction(Direction::Down);
        if let Carrier::Shared(link) = &self.lanes.down.air {
            down["hsdpa"] = link.stats();
        }
        json!({
            "down": down,
            "up": direction(Direction::Up),
            "reestablished": self.reestablished,
        })
    }

    fn reconfigure(&mut self, now: Instant, settings: &dyn Any, out: &mut Outbox) -> Result<(), NotLive> {
        let Some(config) = settings.downcast_ref::<RlcConfig>() else {
            return Err(NotLive::new("kind", "another kind of stage takes a new link"));
        };
        config.validate().map_err(|invalid| NotLive::new(invalid.key, invalid.message))?;
        for direction in Direction::BOTH {
            self.check(direction, of(config, direction))?;
        }
        shared::check(self.config.hsdpa.as_ref(), config.hsdpa.as_ref())?;
        let old = std::mem::replace(&mut self.config, config.clone());
        self.rrc.reconfigure(now, config.rrc.clone());
        for direction in Direction::BOTH {
            let DirectionConfig { channel, queue, .. } = of(&self.config, direction);
            let lane = &mut self.lanes[direction];
            if let Carrier::Dedicated(air) = &mut lane.air {
                air.reconfigure(now, channel);
            }
            lane.ledger.set_bounds(queue.bounds);
            lane.front.reconfigure(now, *queue, out);
            if of(&old, direction).channel.switching != channel.switching {
                lane.switcher = Switcher::new(channel.switching.clone(), now);
            }
        }
        self.adapt_entities(now);
        for direction in Direction::BOTH {
            let Lane { front, ledger, .. } = &mut self.lanes[direction];
            while front.is_drop_tail()
                && let Some((waited, packet)) = front.pop(now, out)
            {
                submit(&mut self.entities[direction], ledger, now - waited, packet);
            }
        }
        self.collect(now, out);
        self.schedule(now, out);
        Ok(())
    }
}
