//! A chain of stages between the fixed side and the mobile: the machine that a driver runs.

use std::collections::VecDeque;

use airwire::Cause;
use airwire::time::Instant;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::machine::{Machine, Port};
use crate::packet::{Direction, Origin, Packet, PerDirection};
use crate::stage::{Event, NotLive, Outbox, RadioFate, RadioPdu, Record, Recording, Stage, Why};
use crate::stages::StageConfig;

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
    outgoing: VecDeque<(Port, Vec<u8>)>,
    totals: PerDirection<Totals>,
    background: PerDirection<Totals>,
    radio_links: Vec<RadioLink>,
    /// What each stage said when it was last touched: asking all of them for each event would cost more than the
    /// events.
    deadlines: Vec<Option<Instant>>,
    /// The earliest of them.
    next: Option<Instant>,
}

/// The stages that are the radio link of one that measures it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RadioLink {
    measured_by: usize,
    stages: std::ops::Range<usize>,
}

impl RadioLink {
    fn of(stages: &[Named]) -> Vec<Self> {
        let measures = |index: usize| stages[index].stage.radio_side();
        let link = |measured_by: usize| {
            let stages = match measures(measured_by)? {
                Direction::Down => {
                    let from = measured_by + 1;
                    from..(from..stages.len())
                        .find(|stage| measures(*stage).is_some())
                        .unwrap_or(stages.len())
                }
                Direction::Up => {
                    let before = (0..measured_by).rfind(|stage| measures(*stage).is_some());
                    before.map_or(0, |stage| stage + 1)..measured_by
                }
            };
            (!stages.is_empty()).then_some(Self { measured_by, stages })
        };
        (0..stages.len()).filter_map(link).collect()
    }

    /// The stage behind which a packet has crossed the link.
    fn last(&self, direction: Direction) -> usize {
        match direction {
            Direction::Down => self.stages.end - 1,
            Direction::Up => self.stages.start,
        }
    }
}

/// What became of the packets in one direction: of those of hosts, or of those of traffic sources. At any time
/// `entered` is the sum of `left`, of all `dropped`, and of what is inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub entered: u64,
    pub entered_bytes: u64,
    pub left: u64,
    pub left_bytes: u64,
    pub dropped: [u64; Why::ALL.len()],
}

impl Totals {
    fn enter(&mut self, bytes: usize) {
        self.entered += 1;
        self.entered_bytes += bytes as u64;
    }

    fn leave(&mut self, bytes: usize) {
        self.left += 1;
        self.left_bytes += bytes as u64;
    }

    pub fn dropped_for(&self, why: Why) -> u64 {
        self.dropped[why as usize]
    }
}

impl Path {
    pub fn new(stages: Vec<Named>, recording: Recording, radio: bool) -> Self {
        let deadlines: Vec<_> = stages.iter().map(|named| named.stage.next_deadline()).collect();
        Self {
            radio_links: RadioLink::of(&stages),
            stages,
            out: Outbox::new(recording, radio),
            moving: VecDeque::new(),
            outgoing: VecDeque::new(),
            totals: PerDirection::default(),
            background: PerDirection::default(),
            next: deadlines.iter().flatten().min().copied(),
            deadlines,
        }
    }

    /// `stage` may have another deadline than before.
    fn touched(&mut self, stage: usize) {
        self.deadlines[stage] = self.stages[stage].stage.next_deadline();
    }

    /// Everything rests again.
    fn settle(&mut self) {
        self.next = None;
        for deadline in self.deadlines.iter().flatten() {
            if self.next.is_none_or(|next| *deadline < next) {
                self.next = Some(*deadline);
            }
        }
    }

    /// What became of the hosts' packets.
    pub fn totals(&self) -> &PerDirection<Totals> {
        &self.totals
    }

    /// What became of the packets of traffic sources.
    pub fn background(&self) -> &PerDirection<Totals> {
        &self.background
    }

    fn totals_of(&mut self, direction: Direction, origin: Origin) -> &mut Totals {
        match origin {
            Origin::Host => &mut self.totals[direction],
            Origin::Background { .. } => &mut self.background[direction],
        }
    }

    /// Packets, of hosts and of sources, that are inside. What waits for `poll_packet` has left.
    pub fn held(&self) -> usize {
        self.stages.iter().map(|named| named.stage.held()).sum()
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
        self.touched(stage);
        let alone = self.take_over(stage);
        self.run(now, alone);
        self.settle();
        Ok(())
    }

    /// What was put on record since the last call.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.out.take_records()
    }

    pub fn take_pdus(&mut self) -> Vec<RadioPdu> {
        self.out.take_pdus()
    }

    /// What `stage` has put into the outbox goes to its neighbours. A packet that goes alone, as most do, is
    /// handed back and spared the way through `moving`.
    fn take_over(&mut self, stage: usize) -> Option<(usize, Packet)> {
        while let Some((direction, origin, why)) = self.out.dropped.pop() {
            self.totals_of(direction, origin).dropped[why as usize] += 1;
            if origin == Origin::Host && why.cause() == Some(Cause::Radio) {
                self.radio_carried(stage, direction, RadioFate::Damaged);
            }
        }
        while let Some((direction, bytes)) = self.out.originated.pop() {
            self.background[direction].enter(bytes);
        }
        if self.out.leaving.is_empty() {
            return None;
        }
        if self.out.leaving.len() == 1 && self.moving.is_empty() {
            let packet = self.out.leaving.pop()?;
            return self.next_stop(stage, packet);
        }
        // The list goes back below: its capacity is worth keeping.
        let mut leaving = std::mem::take(&mut self.out.leaving);
        for packet in leaving.drain(..) {
            if let Some(next) = self.next_stop(stage, packet) {
                self.moving.push_back(next);
            }
        }
        self.out.leaving = leaving;
        None
    }

    /// Where a packet goes that leaves `stage`. `None`: it was a traffic source's and is gone.
    fn next_stop(&mut self, stage: usize, packet: Packet) -> Option<(usize, Packet)> {
        match packet.origin {
            Origin::Background { leaves_after } if leaves_after == stage => {
                self.leave(packet);
                return None;
            }
            Origin::Background { .. } => {}
            Origin::Host => self.radio_carried(stage, packet.direction, RadioFate::Arrived),
        }
        // Index 0 is the fixed end, and stage i has the index i + 1.
        let next = match packet.direction {
            Direction::Down => stage + 2,
            Direction::Up => stage,
        };
        Some((next, packet))
    }

    /// Whoever measures the radio link that `stage` is part of is told.
    fn radio_carried(&mut self, stage: usize, direction: Direction, fate: RadioFate) {
        for link in &self.radio_links {
            let over = fate == RadioFate::Damaged || link.last(direction) == stage;
            if link.stages.contains(&stage) && over {
                let measuring = &mut self.stages[link.measured_by].stage;
                measuring.radio_carried(direction, fate);
                self.deadlines[link.measured_by] = measuring.next_deadline();
            }
        }
    }

    /// Moves packets from stage to stage until each rests in one, or is out.
    fn run(&mut self, now: Instant, first: Option<(usize, Packet)>) {
        let mut alone = first;
        while let Some((index, packet)) = alone.take().or_else(|| self.moving.pop_front()) {
            match index.checked_sub(1).filter(|stage| *stage < self.stages.len()) {
                Some(stage) => {
                    self.out.begin(now, Some(stage));
                    self.stages[stage].stage.handle_packet(now, packet, &mut self.out);
                    self.touched(stage);
                    alone = self.take_over(stage);
                }
                None => {
                    self.out.begin(now, None);
                    self.leave(packet);
                }
            }
        }
    }

    /// A host's packet goes out; a traffic source's is gone.
    fn leave(&mut self, packet: Packet) {
        self.totals_of(packet.direction, packet.origin).leave(packet.len());
        self.out.note(&packet, Event::Left);
        if packet.origin == Origin::Host {
            let port = match packet.direction {
                Direction::Down => MOBILE,
                Direction::Up => FIXED,
            };
            self.outgoing.push_back((port, packet.bytes));
        }
    }
}

impl Machine for Path {
    fn handle_packet(&mut self, now: Instant, port: Port, bytes: Vec<u8>) {
        let direction = if port == FIXED { Direction::Down } else { Direction::Up };
        self.totals[direction].enter(bytes.len());
        self.out.begin(now, None);
        let packet = self.out.originate(direction, Origin::Host, bytes);
        let first = match direction {
            Direction::Down => 1,
            Direction::Up => self.stages.len(),
        };
        self.run(now, Some((first, packet)));
        self.settle();
    }

    fn handle_deadline(&mut self, now: Instant) {
        for stage in 0..self.stages.len() {
            if self.deadlines[stage].is_some_and(|deadline| deadline <= now) {
                self.out.begin(now, Some(stage));
                self.stages[stage].stage.handle_deadline(now, &mut self.out);
                self.touched(stage);
                let alone = self.take_over(stage);
                self.run(now, alone);
            }
        }
        self.settle();
    }

    fn poll_packet(&mut self, _now: Instant) -> Option<(Port, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next
    }
}
