//! A chain of stages between the fixed side and the mobile: the machine that a driver runs.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::machine::{Machine, Port};
use crate::packet::{Direction, Origin, Packet, PacketId, PerDirection};
use crate::stage::{Event, NotLive, Outbox, RadioPdu, Record, Recording, Stage, Why};
use crate::stages::StageConfig;
use crate::time::Instant;

/// Where a path meets the fixed side's host.
pub const FIXED: Port = Port(0);
/// Where a path meets the mobile side's host.
pub const MOBILE: Port = Port(1);

/// A stage that has a name.
pub struct Named {
    pub name: String,
    pub stage: Box<dyn Stage>,
}

/// The stages in their order from the fixed side to the mobile.
pub struct Path {
    stages: Vec<Named>,
    out: Outbox,
    /// On its way to the stage of this index; one past the ends means out.
    moving: VecDeque<(usize, Packet)>,
    outgoing: VecDeque<Packet>,
    next_id: u64,
    totals: PerDirection<Totals>,
}

/// What became of the hosts' packets in one direction. At any time `entered` is the sum of `left`, of all
/// `dropped`, and of what the stages hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub entered: u64,
    pub entered_bytes: u64,
    pub left: u64,
    pub left_bytes: u64,
    pub dropped: [u64; Why::ALL.len()],
}

impl Totals {
    pub fn dropped_for(&self, why: Why) -> u64 {
        self.dropped[why as usize]
    }
}

impl Path {
    pub fn new(stages: Vec<Named>, recording: Recording, radio: bool) -> Self {
        Self {
            stages,
            out: Outbox::new(recording, radio),
            moving: VecDeque::new(),
            outgoing: VecDeque::new(),
            next_id: 0,
            totals: PerDirection::default(),
        }
    }

    pub fn totals(&self) -> &PerDirection<Totals> {
        &self.totals
    }

    /// Packets, of hosts and of sources, that are inside.
    pub fn held(&self) -> usize {
        self.stages.iter().map(|named| named.stage.held()).sum::<usize>() + self.outgoing.len()
    }

    pub fn stage_names(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().map(|named| named.name.as_str())
    }

    /// Each stage's live counters, by its name.
    pub fn stats(&self) -> Value {
        Value::Object(
            self.stages.iter().map(|named| (named.name.clone(), named.stage.stats())).collect::<Map<_, _>>(),
        )
    }

    pub fn reconfigure(&mut self, now: Instant, stage: usize, config: &StageConfig) -> Result<(), NotLive> {
        self.out.begin(now, Some(stage));
        self.stages[stage].stage.reconfigure(now, config, &mut self.out)?;
        self.take_over(stage);
        self.run(now);
        Ok(())
    }

    /// What was put on record since the last call.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.out.take_records()
    }

    pub fn take_pdus(&mut self) -> Vec<RadioPdu> {
        self.out.take_pdus()
    }

    /// What `stage` has put into the outbox goes to its neighbours.
    fn take_over(&mut self, stage: usize) {
        for (direction, why) in self.out.dropped.drain(..) {
            self.totals[direction].dropped[why as usize] += 1;
        }
        for packet in self.out.leaving.drain(..) {
            if packet.origin == (Origin::Background { leaves_after: stage }) {
                continue;
            }
            // Index 0 is the fixed end, and stage i has the index i + 1.
            let next = match packet.direction {
                Direction::Down => stage + 2,
                Direction::Up => stage,
            };
            self.moving.push_back((next, packet));
        }
    }

    /// Moves packets from stage to stage until each rests in one, or is out.
    fn run(&mut self, now: Instant) {
        while let Some((index, packet)) = self.moving.pop_front() {
            match index.checked_sub(1).filter(|stage| *stage < self.stages.len()) {
                Some(stage) => {
                    self.out.begin(now, Some(stage));
                    self.stages[stage].stage.handle_packet(now, packet, &mut self.out);
                    self.take_over(stage);
                }
                None => self.leave(now, packet),
            }
        }
    }

    fn leave(&mut self, now: Instant, packet: Packet) {
        if packet.origin != Origin::Host {
            return;
        }
        let totals = &mut self.totals[packet.direction];
        totals.left += 1;
        totals.left_bytes += packet.len() as u64;
        self.out.begin(now, None);
        self.out.note(&packet, Event::Left);
        self.outgoing.push_back(packet);
    }
}

impl Machine for Path {
    fn handle_packet(&mut self, now: Instant, port: Port, bytes: Vec<u8>) {
        let direction = if port == FIXED { Direction::Down } else { Direction::Up };
        let packet =
            Packet { id: PacketId(self.next_id), direction, origin: Origin::Host, entered: now, bytes };
        self.next_id += 1;
        let totals = &mut self.totals[direction];
        totals.entered += 1;
        totals.entered_bytes += packet.len() as u64;
        self.out.begin(now, None);
        self.out.note(&packet, Event::Entered { bytes: packet.len() });
        let first = match direction {
            Direction::Down => 1,
            Direction::Up => self.stages.len(),
        };
        self.moving.push_back((first, packet));
        self.run(now);
    }

    fn handle_deadline(&mut self, now: Instant) {
        for stage in 0..self.stages.len() {
            if self.stages[stage].stage.next_deadline().is_some_and(|deadline| deadline <= now) {
                self.out.begin(now, Some(stage));
                self.stages[stage].stage.handle_deadline(now, &mut self.out);
                self.take_over(stage);
                self.run(now);
            }
        }
    }

    fn poll_packet(&mut self, _now: Instant) -> Option<(Port, Vec<u8>)> {
        let packet = self.outgoing.pop_front()?;
        let port = match packet.direction {
            Direction::Down => MOBILE,
            Direction::Up => FIXED,
        };
        Some((port, packet.bytes))
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.stages.iter().filter_map(|named| named.stage.next_deadline()).min()
    }
}
