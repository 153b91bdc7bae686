//! A chain of stages between the fixed side and the mobile side, as one machine that a driver runs.
//!
//! A path moves packets from stage to stage, counts them, and tracks the earliest deadline of all stages. It
//! also performs two tasks that need a view of all stages. It takes background packets off the path after the
//! stage that their source names, and it reports to measuring stages which packets crossed their radio link.

use std::collections::VecDeque;

use airwire::time::Instant;
use serde_json::{Map, Value};

use crate::machine::{Machine, Port};
pub use crate::memory::{DEFAULT_MEMORY, OutOfMemory};
use crate::packet::{Direction, Origin, Packet, PerDirection};
use crate::settings::Settings;
use crate::stage::{
    Event, Incident, Outbox, RadioLayer, RadioOutcome, RadioPdu, ReconfigureError, Record, Recording, Stage,
};
use crate::totals::Accounts;
pub use crate::totals::Totals;

mod deadlines;
mod lookahead;

use deadlines::Deadlines;
use lookahead::Chain;

/// The port that leads to the host on the fixed side.
pub const FIXED: Port = Port(0);
/// The port that leads to the host on the mobile side.
pub const MOBILE: Port = Port(1);

/// A stage and its name.
pub struct NamedStage {
    /// Name, unique in its path.
    pub name: String,
    /// The stage.
    pub stage: Box<dyn Stage>,
}

/// Stages in order from the fixed side to the mobile side.
pub struct Path {
    stages: Vec<NamedStage>,
    out: Outbox,
    /// Forwarded packets that have not reached their next stop yet.
    moving: VecDeque<(Stop, Packet)>,
    outgoing: VecDeque<(Port, Vec<u8>)>,
    radio_links: Vec<RadioLink>,
    deadlines: Deadlines,
    /// Empty unless the path looks ahead.
    chains: Vec<Chain>,
    /// For each stage and direction, the chain that begins there.
    chain_at: Vec<PerDirection<Option<usize>>>,
    /// For each stage and direction, the chain whose packets leave at the stage's deadline.
    chain_until: Vec<PerDirection<Option<usize>>>,
    /// Whether a deadline is being handled.
    at_deadline: bool,
    /// The time up to which the path has been run.
    now: Instant,
}

/// Next stop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The stage with this index.
    Stage(usize),
    /// The end of the path in the packet's direction.
    Out,
}

/// A stage that measures a radio link, and the stages that form this link.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RadioLink {
    measured_by: usize,
    stages: std::ops::Range<usize>,
}

impl RadioLink {
    fn of(stages: &[NamedStage]) -> Vec<Self> {
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

    /// The last stage of the link in this direction. A packet that leaves it has crossed the link.
    fn last(&self, direction: Direction) -> usize {
        match direction {
            Direction::Down => self.stages.end - 1,
            Direction::Up => self.stages.start,
        }
    }
}

impl Path {
    /// Creates a path of `stages`, in order from the fixed side to the mobile side. `recording` determines
    /// what [`Path::take_records`] returns, `radio` whether [`Path::take_pdus`] returns anything.
    pub fn new(stages: Vec<NamedStage>, recording: Recording, radio: bool) -> Self {
        let deadlines = Deadlines::new(stages.iter().map(|named| named.stage.next_deadline()));
        let mut out = Outbox::new(recording, radio);
        out.memory.set_stages(stages.len());
        Self {
            radio_links: RadioLink::of(&stages),
            chain_at: vec![PerDirection::default(); stages.len()],
            chain_until: vec![PerDirection::default(); stages.len()],
            stages,
            out,
            moving: VecDeque::new(),
            outgoing: VecDeque::new(),
            deadlines,
            chains: Vec::new(),
            at_deadline: false,
            now: Instant::ZERO,
        }
    }

    /// Calls a stage that may use the outbox. Every such call must go through here, so that records name the
    /// right stage and its new deadline becomes known.
    fn call<T>(
        &mut self,
        now: Instant,
        stage: usize,
        call: impl FnOnce(&mut dyn Stage, &mut Outbox) -> T,
    ) -> T {
        let called = &mut *self.stages[stage].stage;
        self.out.begin(now, Some(stage));
        let result = call(called, &mut self.out);
        self.deadlines.set(stage, called.next_deadline());
        result
    }

    /// Switches lazy mode on or off. In lazy mode, stages may defer internal events until a packet leaves or
    /// [`catch_up`](Self::catch_up) runs. Do not use it for a path that records events, because deferred
    /// events get the time of the later call.
    pub fn be_lazy(&mut self, is_lazy: bool) {
        for (index, NamedStage { stage, .. }) in self.stages.iter_mut().enumerate() {
            stage.be_lazy(is_lazy);
            self.deadlines.set(index, stage.next_deadline());
        }
        self.deadlines.settle();
    }

    /// Lets packets cross consecutive stages ahead of the clock, if these stages know at once when a packet
    /// leaves. Each packet then takes fewer steps. The results are the same, except for the order of packets
    /// of different directions that leave at the same time. `hosts` is an upper bound on the memory of the
    /// hosts' packets inside the path, in bytes. If it is near the memory limit, the call has no effect,
    /// because the limit is checked when packets arrive at a stage. Must be called before the first packet,
    /// and only for a path that records nothing. The path cannot be reconfigured afterwards. Returns whether
    /// no stage reads or changes the bytes of packets, so that
    /// [`handle_abbreviated_packet`](Self::handle_abbreviated_packet) is possible.
    pub fn look_ahead(&mut self, hosts: u64) -> bool {
        if !self.radio_links.is_empty() || hosts > self.out.memory.limit() / 16 {
            return false;
        }
        for direction in Direction::BOTH {
            self.chains.extend(Chain::find(&mut self.stages, direction));
        }
        for (number, chain) in self.chains.iter_mut().enumerate() {
            self.chain_at[chain.first][chain.direction] = Some(number);
            self.chain_until[chain.delays][chain.direction] = Some(number);
            chain.prepare(&mut self.stages);
        }
        // The stages no longer have deadlines of their own in the directions in which they look ahead.
        self.be_lazy(true);
        let Self { chains, stages, .. } = self;
        chains.iter().map(Chain::len).sum::<usize>() == 2 * stages.len()
            && !chains.iter().any(|chain| chain.reads_packets(stages))
    }

    /// Like [`Machine::handle_packet`], for a packet that may be [abbreviated](airwire::segment::abbreviate). It
    /// leaves as it entered.
    pub fn handle_abbreviated_packet(&mut self, now: Instant, port: Port, bytes: Vec<u8>) {
        let direction = self.begin_arrival(now, port);
        let packet = self.out.originate_abbreviated(direction, bytes);
        self.arrive(now, packet);
    }

    fn begin_arrival(&mut self, now: Instant, port: Port) -> Direction {
        self.now = now;
        self.out.begin(now, None);
        if port == FIXED { Direction::Down } else { Direction::Up }
    }

    fn arrive(&mut self, now: Instant, packet: Packet) {
        let first = self.first_stop(packet.direction);
        if let Stop::Stage(stage) = first {
            self.out.memory.shift(None, Some(stage), packet.direction, packet.memory());
        }
        self.run(now, Some((first, packet)));
        self.deadlines.settle();
    }

    /// Processes all events up to `now` that lazy stages have deferred. Without effect for times before the
    /// last call of any method.
    pub fn catch_up(&mut self, now: Instant) {
        let now = self.now.max(now);
        self.now = now;
        for chain in &mut self.chains {
            chain.settle(&mut self.stages, now, &mut self.out.accounts);
        }
        for stage in 0..self.stages.len() {
            self.call(now, stage, |stage, out| stage.catch_up(now, out));
        }
        self.deadlines.settle();
    }

    /// Counters of the hosts' packets.
    pub fn totals(&self) -> PerDirection<Totals> {
        self.counters_at(self.now).hosts
    }

    /// Counters of background traffic. In a path that looks ahead, they are complete after
    /// [`catch_up`](Self::catch_up).
    pub fn background(&self) -> PerDirection<Totals> {
        self.counters_at(self.now).background
    }

    /// Counters of the hosts' packets at `now`. Events before `now` must have been processed, except in
    /// stages that look ahead.
    pub fn totals_at(&self, now: Instant) -> PerDirection<Totals> {
        self.counters_at(now).hosts
    }

    fn counters_at(&self, now: Instant) -> Accounts {
        let mut accounts = self.out.accounts.clone();
        for chain in &self.chains {
            chain.add_changes(now, &mut accounts);
        }
        accounts
    }

    /// Number of packets inside the path, from hosts and traffic sources. Packets that wait for `poll_packet`
    /// have left.
    pub fn held(&self) -> usize {
        self.stages.iter().map(|named| named.stage.held()).sum()
    }

    /// Sets the upper bound on the memory of the packets inside, in bytes. The default is [`DEFAULT_MEMORY`].
    /// A stage that has no room drops the packets that enter it, like a full queue.
    pub fn limit_memory(&mut self, bytes: u64) {
        self.out.memory.set_limit(bytes);
    }

    /// Memory of the packets inside, in bytes.
    pub fn memory(&self) -> u64 {
        self.out.memory.used()
    }

    /// Returns an error if a stage has ever dropped packets because of [`limit_memory`](Self::limit_memory).
    /// In virtual time, results are then meaningless.
    #[inline]
    pub fn check_memory(&self) -> Result<(), OutOfMemory> {
        self.out.memory.check(|stage| self.stages[stage].name.as_str())
    }

    /// Names of the stages, from the fixed side to the mobile side.
    pub fn stage_names(&self) -> impl Iterator<Item = &str> {
        self.stages.iter().map(|named| named.name.as_str())
    }

    /// Current counters of each stage, by the stage's name.
    pub fn stats(&self) -> Value {
        Value::Object(
            self.stages.iter().map(|named| (named.name.clone(), named.stage.stats())).collect::<Map<_, _>>(),
        )
    }

    /// Applies new settings to the stage with this index. After an error the stage is unchanged.
    ///
    /// # Panics
    /// Panics if the path does not have this stage, or if it looks ahead.
    pub fn reconfigure(
        &mut self,
        now: Instant,
        stage: usize,
        settings: &dyn Settings,
    ) -> Result<(), ReconfigureError> {
        assert!(self.chains.is_empty(), "a path that looks ahead has already decided about its packets");
        self.call(now, stage, |stage, out| stage.reconfigure(now, settings, out))?;
        let single = self.take_over(stage);
        self.run(now, single);
        self.deadlines.settle();
        Ok(())
    }

    /// Returns the events recorded since the last call, in order.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.out.take_records()
    }

    /// Returns the incidents recorded since the last call.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        self.out.take_incidents()
    }

    /// Starts the recording of the radio PDUs of a layer for [`take_pdus`](Self::take_pdus). A UMTS stage
    /// records RLC for any layer.
    pub fn record_radio(&mut self, layer: RadioLayer) {
        self.out.record_radio(layer);
    }

    /// Returns the radio PDUs of all stages since the last call, in order of transmission.
    pub fn take_pdus(&mut self) -> Vec<RadioPdu> {
        self.out.take_pdus()
    }

    /// Takes the packets of `stage` out of the outbox and determines their next stops. A single packet, which
    /// is the usual case, is returned at once and does not pass through `moving`.
    fn take_over(&mut self, stage: usize) -> Option<(Stop, Packet)> {
        while let Some(direction) = self.out.damaged.pop() {
            self.report_radio_outcome(stage, direction, RadioOutcome::Damaged);
        }
        match self.out.leaving.len() {
            0 => return None,
            1 if self.moving.is_empty() => {
                let packet = self.out.leaving.pop()?;
                return self.next_stop(stage, packet);
            }
            _ => {}
        }
        // Put the list back below to keep its capacity.
        let mut leaving = std::mem::take(&mut self.out.leaving);
        for packet in leaving.drain(..) {
            if let Some(next) = self.next_stop(stage, packet) {
                self.moving.push_back(next);
            }
        }
        self.out.leaving = leaving;
        None
    }

    /// Determines the next stop of a packet that leaves `stage`. `None`: it was background traffic and has
    /// left here.
    fn next_stop(&mut self, stage: usize, packet: Packet) -> Option<(Stop, Packet)> {
        match packet.origin {
            Origin::Background { leaves_after } if usize::from(leaves_after) == stage => {
                leave(Some(stage), packet, &mut self.out, &mut self.outgoing);
                return None;
            }
            Origin::Background { .. } => {}
            Origin::Host => self.report_radio_outcome(stage, packet.direction, RadioOutcome::Arrived),
        }
        let next = match packet.direction {
            Direction::Down => Some(stage + 1).filter(|next| *next < self.stages.len()),
            Direction::Up => stage.checked_sub(1),
        };
        self.out.memory.shift(Some(stage), next, packet.direction, packet.memory());
        Some((next.map_or(Stop::Out, Stop::Stage), packet))
    }

    /// First stop of a packet that a host sent.
    fn first_stop(&self, direction: Direction) -> Stop {
        let last = self.stages.len().checked_sub(1);
        last.map_or(Stop::Out, |last| match direction {
            Direction::Down => Stop::Stage(0),
            Direction::Up => Stop::Stage(last),
        })
    }

    /// Reports the outcome of a packet to the stations whose radio link includes `stage`.
    fn report_radio_outcome(&mut self, stage: usize, direction: Direction, outcome: RadioOutcome) {
        for link in &self.radio_links {
            let has_ended = outcome == RadioOutcome::Damaged || link.last(direction) == stage;
            if link.stages.contains(&stage) && has_ended {
                let measuring = &mut self.stages[link.measured_by].stage;
                measuring.report_radio_outcome(direction, outcome);
                self.deadlines.set(link.measured_by, measuring.next_deadline());
            }
        }
    }

    /// Moves packets from stage to stage until each one is held by a stage or has left.
    fn run(&mut self, now: Instant, first: Option<(Stop, Packet)>) {
        let mut next = first;
        loop {
            next = match next {
                Some((Stop::Stage(stage), packet)) => {
                    if let Some(chain) = self.chain_at[stage][packet.direction] {
                        next = self.enter_chain(now, chain, packet);
                        continue;
                    }
                    if self.out.memory.has_room(stage, packet.direction) {
                        self.call(now, stage, |stage, out| stage.handle_packet(now, packet, out));
                    } else {
                        self.out.begin(now, Some(stage));
                        self.out.refuse(packet);
                    }
                    self.take_over(stage)
                }
                Some((Stop::Out, packet)) => {
                    self.out.begin(now, None);
                    leave(None, packet, &mut self.out, &mut self.outgoing);
                    None
                }
                None => match self.moving.pop_front() {
                    None => return,
                    waiting => waiting,
                },
            };
        }
    }

    /// Lets a packet cross a chain of stages. Returns its next stop if it has crossed them without delay.
    fn enter_chain(&mut self, now: Instant, number: usize, packet: Packet) -> Option<(Stop, Packet)> {
        let chain = &mut self.chains[number];
        let (first, last, delays) = (chain.first, chain.last, chain.delays);
        let direction = packet.direction;
        let left = chain.enter(&mut self.stages, now, self.at_deadline, &packet, &mut self.out.accounts);
        self.out.memory.shift(Some(first), Some(last), direction, packet.memory());
        match left {
            Some(at) if at == now && chain.is_empty() => return self.next_stop(last, packet),
            Some(at) => {
                if chain.is_empty() {
                    self.deadlines.set_departure(delays, direction, Some(at));
                }
                chain.keep(at, packet);
            }
            None => {
                self.out.begin(now, Some(last));
                self.out.release(packet);
            }
        }
        chain.apply_changes(now, &mut self.out.accounts);
        None
    }

    /// Forwards the packets that leave the chain whose last delaying stage is this one.
    fn leave_chain(&mut self, now: Instant, stage: usize, direction: Direction) {
        let Some(number) = self.chain_until[stage][direction] else { return };
        let next = loop {
            let chain = &mut self.chains[number];
            let last = chain.last;
            match chain.depart(now) {
                Ok(packet) if chain.reaches_end => {
                    self.out.begin(now, None);
                    leave(Some(last), packet, &mut self.out, &mut self.outgoing);
                }
                Ok(packet) => {
                    let next = self.next_stop(last, packet);
                    self.run(now, next);
                }
                Err(next) => break next,
            }
        };
        self.deadlines.set_departure(stage, direction, next);
    }
}

/// Counts a packet that leaves the path. `stage` is the stage in whose memory it is counted. A host's packet is
/// queued for output, background traffic is discarded.
fn leave(stage: Option<usize>, packet: Packet, out: &mut Outbox, outgoing: &mut VecDeque<(Port, Vec<u8>)>) {
    out.accounts.of(packet.direction, packet.origin).leave(packet.len());
    out.memory.remove(stage, packet.direction, packet.memory());
    out.note(&packet, Event::Left);
    if packet.origin == Origin::Host {
        let port = match packet.direction {
            Direction::Down => MOBILE,
            Direction::Up => FIXED,
        };
        let bytes = out.strip(packet);
        outgoing.push_back((port, bytes));
    } else {
        out.recycle(packet);
    }
}

impl Machine for Path {
    fn handle_packet(&mut self, now: Instant, port: Port, bytes: Vec<u8>) {
        let direction = self.begin_arrival(now, port);
        let packet = self.out.originate(direction, Origin::Host, bytes);
        self.arrive(now, packet);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.now = now;
        self.at_deadline = true;
        let mut due = self.deadlines.due(0, now);
        while let Some(stage) = due {
            if self.deadlines.has_departures(stage, Direction::Down, now) {
                self.leave_chain(now, stage, Direction::Down);
            }
            if self.deadlines.is_due(stage, now) {
                self.call(now, stage, |stage, out| stage.handle_deadline(now, out));
                let single = self.take_over(stage);
                self.run(now, single);
            }
            if self.deadlines.has_departures(stage, Direction::Up, now) {
                self.leave_chain(now, stage, Direction::Up);
            }
            due = self.deadlines.due(stage + 1, now);
        }
        self.at_deadline = false;
        self.deadlines.settle();
    }

    #[inline]
    fn poll_packet(&mut self, _now: Instant) -> Option<(Port, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }
}
