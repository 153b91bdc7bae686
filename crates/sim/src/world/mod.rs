//! Any number of flows between a fixed and a mobile side over one `airlink` path, in virtual time.
//!
//! Every sender writes a known stream, and every receiver verifies it; a wrong byte ends the run. If nothing
//! observes the run and no stage reads packets, they carry positions in the stream instead of its bytes, and
//! receivers verify the positions. The cost of an event does not depend on the number of flows, because only
//! the flow of the arriving packet is processed. All events are determined by the [`WorldConfig`].

mod error;
mod flow;
mod hosts;
mod memory;
mod score;
mod truth;
mod watch;

use std::collections::VecDeque;

use airlink::capture::Tap;
use airlink::machine::{Machine, Port, advance, catch_up, drain};
use airlink::packet::{Direction, PerDirection};
use airlink::path::{FIXED, MOBILE, Path, Totals};
use airlink::scenario::Scenario;
use airlink::stage::{RadioLayer, Recording};
use airtcp::events::Event;
use airtcp::host::Host;
use airtcp::recovery::confusion::Confusion;
use airtcp::recovery::{Decision, Truth};
use airtcp::tcp::{Connection, SocketOptions};
use airwire::time::{Duration, Instant, earlier};
pub use error::WorldError;
pub use flow::{Flow, FlowResult, Length, StreamError};
use flow::{FlowState, ReadBuffer, Role};
pub use hosts::HostSpec;
use hosts::{Destination, FIRST_PORT, PORTS_PER_ADDRESS, SideHosts, SimHost, address};
use memory::Records;
pub use score::{judges, score};
pub use truth::{Dropped, Losses};
use watch::Watcher;
pub use watch::{Content, DevicePacket, Observer, PacketKind, Passage, PathOutcome, Watch};

/// Maximum number of flows. Each takes about 12 kB.
pub(crate) const MAX_FLOWS: usize = 1_000_000;
/// Upper bound on path events handled per step, unless every event is a step.
const EVENTS_PER_STEP: u32 = 10_000;
/// Maximum number of packets that may arrive at one instant while an endless flow exists. A larger
/// number means that the path causes no delay.
const MAX_ARRIVALS: u64 = 200_000;
/// The same limit per flow, for many flows. Without queueing, the windows of all flows may arrive
/// at one instant.
const MAX_ARRIVALS_PER_FLOW: u64 = 5_000;

/// Receives the hosts' events and the packets at their devices, for example to write a log.
pub trait Listener {
    /// Called for each event at a host.
    fn host_event(&mut self, event: Event);
    /// Called when a host sends a packet. `side` is [`FIXED`] or [`MOBILE`].
    fn packet_sent(&mut self, at: Instant, side: Port, packet: &[u8]);
    /// Called when a packet arrives at a host of this side.
    fn packet_received(&mut self, at: Instant, side: Port, packet: &[u8]);
}

/// The configuration of a world.
pub struct WorldConfig {
    /// The path between the two sides.
    pub scenario: Scenario,
    /// Seed of all random choices: the path's losses and the hosts' random numbers.
    pub seed: u64,
    /// The hosts on the fixed side, which send the flows down and receive the flows up.
    pub fixed: HostSpec,
    /// The hosts on the mobile side, which send the flows up and receive the flows down.
    pub mobile: HostSpec,
    /// The flows. Methods of [`World`] refer to flows by index.
    pub flows: Vec<Flow>,
}

/// The hosts, the path that joins them, and the clock. Time advances only in the `step` and `run`
/// methods.
pub struct World {
    now: Instant,
    path: Path,
    /// Before the first step of a world that may look ahead: an upper bound on the memory of the packets of
    /// all flows, in bytes.
    windows: Option<u64>,
    /// Packets are abbreviated, because no stage reads them and no tap captures them.
    abbreviates: bool,
    hosts: Vec<SimHost>,
    flows: Vec<FlowState>,
    /// Flows that have not started, in descending order of their start.
    starts: Vec<(Instant, usize)>,
    /// Number of finite flows that at least one end has not closed.
    unfinished: usize,
    /// Packets that have left the path, until they are delivered to their hosts.
    arrivals: VecDeque<Vec<u8>>,
    arrived_now: u64,
    /// Upper bound on path events handled per step.
    step: u32,
    watcher: Option<Watcher>,
    records: Records,
    taps: [Option<Box<dyn Tap + Send>>; 2],
    listener: Option<Box<dyn Listener + Send>>,
    /// Reusable buffers of delivered packets.
    spare: Vec<Vec<u8>>,
    read_buffer: ReadBuffer,
}

impl World {
    /// Creates a world at time zero, before the first event.
    pub fn new(config: WorldConfig) -> Result<Self, WorldError> {
        let WorldConfig { scenario, seed, fixed, mobile, flows } = config;
        if flows.len() > MAX_FLOWS {
            return Err(WorldError::TooManyFlows(flows.len()));
        }
        let uses_truth = |flow: &Flow| {
            let side = if flow.direction == Direction::Down { &fixed } else { &mobile };
            flow.recipe.as_ref().unwrap_or(&side.recipe).needs_truth().is_some()
        };
        let uses_truth: Vec<bool> = flows.iter().map(uses_truth).collect();
        let watched = flows.iter().any(|flow| flow.watch > Watch::Results) || uses_truth.contains(&true);
        let packets = flows.iter().any(|flow| flow.watch == Watch::Packets);
        let recording = if watched { Recording::Events } else { Recording::Off };
        let mut path = scenario.build(Some(seed), recording, false)?;
        let windows = flows.iter().map(|flow| memory::of_window(flow, &scenario, &fixed, &mobile)).sum();
        if !watched {
            path.be_lazy(true);
        }
        let addresses = flows.len().div_ceil(PORTS_PER_ADDRESS).max(1);
        let mut hosts =
            SideHosts { seed, mtu: scenario.mtu.into(), addresses, fixed, mobile, list: Vec::new() };
        let backlog = flows.len();
        let mut flows = flows
            .into_iter()
            .enumerate()
            .map(|(index, flow)| {
                let (from, to) = match flow.direction {
                    Direction::Down => (FIXED, MOBILE),
                    Direction::Up => (MOBILE, FIXED),
                };
                let sender = hosts.index(from, flow.recipe.as_ref(), flow.profile.as_ref());
                let receiver = hosts.index(to, None, None);
                let listener = hosts.list[receiver].listener(flow.receive_buffer, backlog)?;
                Ok(FlowState::new(flow, index, [sender, receiver], listener))
            })
            .collect::<Result<Vec<_>, WorldError>>()?;
        // `collect` has reused the larger allocation of the input.
        flows.shrink_to_fit();
        let mut starts: Vec<_> = flows.iter().enumerate().map(|(i, state)| (state.flow.start, i)).collect();
        starts.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Self {
            now: Instant::ZERO,
            path,
            windows: (!watched).then_some(windows),
            abbreviates: false,
            hosts: hosts.list,
            unfinished: flows.iter().filter(|state| state.has_end()).count(),
            watcher: watched.then(|| Watcher::new(uses_truth, packets)),
            records: Records::default(),
            taps: [None, None],
            listener: None,
            flows,
            starts,
            arrivals: VecDeque::new(),
            arrived_now: 0,
            step: EVENTS_PER_STEP,
            spare: Vec::new(),
            read_buffer: ReadBuffer::default(),
        })
    }

    /// Creates a world with one flow of `octets` bytes down the path of a scenario given as text,
    /// from a sender with this recipe to a default receiver. Everything is recorded.
    pub fn one_flow(scenario: &str, recipe: &str, octets: u64, seed: u64) -> Result<Self, WorldError> {
        let flow = Flow { watch: Watch::Packets, ..Flow::down(Length::Octets(octets)) };
        Self::new(WorldConfig {
            scenario: Scenario::parse(scenario, "scenario")?,
            seed,
            fixed: HostSpec::sender(recipe.parse()?),
            mobile: HostSpec::receiver(),
            flows: vec![flow],
        })
    }

    /// Attaches a tap, which gets all packets that hosts of one side send and receive, like a capture at
    /// their devices. `side` is [`FIXED`] or [`MOBILE`].
    ///
    /// # Panics
    /// After the first step, if abbreviated packets may be on their way.
    pub fn tap(&mut self, side: Port, tap: impl Tap + Send + 'static) {
        assert!(!self.abbreviates, "attach the tap before the first step");
        self.taps[side.0] = Some(Box::new(tap));
    }

    /// Attaches a listener, which receives the hosts' events in order.
    ///
    /// # Panics
    /// After the first step, if abbreviated packets may be on their way.
    pub fn listen(&mut self, listener: impl Listener + Send + 'static) {
        assert!(!self.abbreviates, "attach the listener before the first step");
        self.hosts.iter_mut().for_each(|entry| entry.host.note_events());
        self.listener = Some(Box::new(listener));
    }

    /// Attaches an observer of incidents at the path's stages, of the PDUs of radio links, and of
    /// the packets of watched flows. It has no effect if no flow is watched, because the path then
    /// does not record events.
    pub fn observe(&mut self, observer: impl Observer + Send + 'static) {
        if let Some(watcher) = &mut self.watcher {
            self.path.record_radio(RadioLayer::Rlc);
            watcher.observe(Box::new(observer));
        }
    }

    /// Makes each event of the path a step of its own, for callers that inspect the world
    /// continuously. Call it before the first step.
    pub fn step_by_event(&mut self) {
        self.path.be_lazy(false);
        self.windows = None;
        self.step = 1;
    }

    /// Returns the virtual time of the last event handled.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the path, with the counters and the state of its stages at the current time.
    pub fn path(&mut self) -> &Path {
        self.path.catch_up(self.now);
        &self.path
    }

    /// Returns the numbers of delivered and dropped packets of the hosts.
    pub fn totals(&self) -> PerDirection<Totals> {
        self.path.totals_at(self.now)
    }

    /// Returns the time of the next event. `None` if no event is scheduled.
    pub fn next_event(&self) -> Option<Instant> {
        if !self.arrivals.is_empty() {
            return Some(self.now);
        }
        earlier(self.path.next_deadline(), self.next_host_event())
    }

    /// Returns the time of the next timer or start of a flow.
    fn next_host_event(&self) -> Option<Instant> {
        let start = self.starts.last().map(|(at, _)| *at);
        self.hosts.iter().map(|host| host.deadline).fold(start, earlier)
    }

    /// Handles everything up to the next event at a host, such as the arrival of a packet. After
    /// [`step_by_event`](Self::step_by_event), handles only the next event. Returns `false` if
    /// no event is scheduled.
    pub fn step(&mut self) -> Result<bool, WorldError> {
        self.step_until(Instant::ZERO + Duration::MAX)
    }

    /// Like [`step`](Self::step), but handles nothing later than `until`. Returns `false` and
    /// leaves the clock unchanged if nothing is due by then.
    pub fn step_until(&mut self, until: Instant) -> Result<bool, WorldError> {
        let has_stepped = self.advance_until(until)?;
        self.check_memory()?;
        Ok(has_stepped)
    }

    fn advance_until(&mut self, until: Instant) -> Result<bool, WorldError> {
        if let Some(windows) = self.windows.take() {
            let ignores_bytes = self.path.look_ahead(windows);
            self.abbreviates =
                ignores_bytes && self.listener.is_none() && self.taps.iter().all(Option::is_none);
        }
        if !self.arrivals.is_empty() {
            if until < self.now {
                return Ok(false);
            }
            return self.deliver_next().map(|()| true);
        }
        let hosts = self.next_host_event().filter(|at| *at <= until);
        let arrivals = &mut self.arrivals;
        let deliver = |_, _, packet| arrivals.push_back(packet);
        let bound = hosts.unwrap_or(until);
        let advanced = advance(&mut self.path, bound, self.step, deliver);
        let reached_bound =
            self.arrivals.is_empty() && self.path.next_deadline().is_none_or(|next| next > bound);
        match if reached_bound { hosts } else { advanced } {
            Some(at) => {
                self.advance_clock(at);
                if hosts.is_some_and(|due| due <= self.now) {
                    self.run_timers()?;
                }
                Ok(true)
            }
            None => {
                self.process_records();
                self.path.catch_up(until);
                Ok(false)
            }
        }
    }

    /// Handles everything up to and including `until`, and sets the clock to `until`.
    pub fn run_until(&mut self, until: Instant) -> Result<(), WorldError> {
        while self.step_until(until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Runs until every finite flow is complete and closed by both ends, no event is scheduled, or
    /// `limit` has passed. Returns whether all finite flows are complete.
    pub fn run_to_end(&mut self, limit: Duration) -> Result<bool, WorldError> {
        let until = self.now + limit;
        while !self.is_closed() && self.step_until(until)? {}
        Ok(self.is_complete())
    }

    /// Returns whether every byte of all finite flows has been delivered.
    pub fn is_complete(&self) -> bool {
        self.flows.iter().filter(|state| state.has_end()).all(|state| state.completed.is_some())
    }

    /// Returns whether all finite flows are also closed by both ends.
    pub fn is_closed(&self) -> bool {
        self.unfinished == 0
    }

    /// Returns the number of flows, including those that have not started.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Returns the result of one flow so far.
    pub fn result(&self, flow: usize) -> FlowResult {
        self.flows[flow].result(self.sender(flow))
    }

    /// Returns the results of all flows so far.
    pub fn results(&self) -> Vec<FlowResult> {
        (0..self.flows.len()).map(|flow| self.result(flow)).collect()
    }

    /// Returns the delivered fraction of a flow, from 0 to 1. Zero for an endless flow.
    pub fn delivered_fraction(&self, flow: usize) -> f64 {
        self.flows[flow].delivered_fraction()
    }

    /// Returns the sender's connection. `None` if the flow has not started, or if the host has
    /// removed the connection.
    pub fn sender(&self, flow: usize) -> Option<&Connection> {
        let state = &self.flows[flow];
        self.hosts[state.sender_host()].host.connection(state.sender_connection()?)
    }

    /// Returns the sender's decision trace so far. Empty unless the flow is watched for at least
    /// [`Watch::Decisions`].
    pub fn decisions(&mut self, flow: usize) -> &[Decision] {
        let state = &mut self.flows[flow];
        let host = &mut self.hosts[state.sender_host()].host;
        if let Some(connection) = state.sender_connection().and_then(|id| host.connection_mut(id)) {
            state.decisions.append(&mut connection.recovery_mut().take_trace());
        }
        &state.decisions
    }

    /// Returns the lost packets of a flow. Empty unless the flow is watched for at least
    /// [`Watch::Decisions`] or its recipe uses ground truth.
    pub fn losses(&self, flow: usize) -> &Losses {
        const NONE: &Losses = &Losses::NONE;
        self.watcher.as_ref().map_or(NONE, |watcher| watcher.losses(flow))
    }

    /// Returns the packets at the sender's device. Empty unless the flow is watched for
    /// [`Watch::Packets`].
    pub fn device_packets(&self, flow: usize) -> &[DevicePacket] {
        self.watcher.as_ref().map_or(&[], |watcher| watcher.device_packets(flow))
    }

    /// Returns the outcomes of the hosts' packets in this direction, in the order in which they
    /// entered the path. Empty unless a flow is watched for [`Watch::Packets`].
    pub fn outcomes(&self, direction: Direction) -> &[PathOutcome] {
        self.watcher.as_ref().map_or(&[], |watcher| watcher.outcomes(direction))
    }

    /// Compares the verdicts of `judge` on a flow's losses with the ground truth, like [`score`].
    pub fn confusion(&mut self, flow: usize, judge: &str) -> Confusion {
        self.decisions(flow);
        score(&self.flows[flow].decisions, self.losses(flow), judge)
    }

    /// Formats the records of a watched flow as text for debugging, one line per event.
    pub fn time_sequence(&mut self, flow: usize) -> String {
        self.decisions(flow);
        watch::time_sequence(self.device_packets(flow), self.losses(flow), &self.flows[flow].decisions)
    }

    fn deliver_next(&mut self) -> Result<(), WorldError> {
        let Some(packet) = self.arrivals.pop_front() else { return Ok(()) };
        self.arrived_now += 1;
        let most = MAX_ARRIVALS.max(MAX_ARRIVALS_PER_FLOW * self.flows.len() as u64);
        if self.arrived_now > most && self.flows.iter().any(|state| !state.has_end()) {
            return Err(WorldError::Standstill(self.now));
        }
        self.arrive(packet)
    }

    /// Moves the clock to `at`, which the path has already reached.
    fn advance_clock(&mut self, at: Instant) {
        if at > self.now {
            self.now = at;
            self.arrived_now = 0;
        }
        self.process_records();
    }

    /// Runs the hosts' timers and the starts of flows that are due.
    fn run_timers(&mut self) -> Result<(), WorldError> {
        for index in 0..self.hosts.len() {
            let SimHost { host, deadline, .. } = &mut self.hosts[index];
            if deadline.is_some_and(|deadline| deadline <= self.now) {
                host.handle_deadline(self.now);
                self.send_from(index);
            }
        }
        while let Some((_, flow)) = self.starts.pop_if(|(start, _)| *start <= self.now) {
            self.start_flow(flow)?;
        }
        Ok(())
    }

    fn start_flow(&mut self, flow: usize) -> Result<(), WorldError> {
        let state = &mut self.flows[flow];
        let index = state.sender_host();
        let entry = &mut self.hosts[index];
        let local =
            (address(entry.addr, flow / PORTS_PER_ADDRESS), FIRST_PORT + (flow % PORTS_PER_ADDRESS) as u16)
                .into();
        let host = &mut entry.host;
        let options = SocketOptions::of(host.profile());
        let connected = host.connect(self.now, Some(local), state.remote, options);
        let id = connected.map_err(|error| WorldError::Connect { flow, error })?;
        if state.flow.watch > Watch::Results
            && let Some(connection) = host.connection_mut(id)
        {
            connection.recovery_mut().start_trace();
        }
        if self.watcher.as_ref().is_some_and(|watcher| watcher.uses_truth(flow))
            && let Some(connection) = host.connection_mut(id)
        {
            connection.recovery_mut().on_truth(Truth::Begins);
        }
        state.connections[Role::Sender as usize] = Some(id);
        self.send_from(index);
        Ok(())
    }

    /// Advances the path to the current time.
    fn advance_path(&mut self) {
        if self.path.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            catch_up(&mut self.path, self.now, |_, _, packet| self.arrivals.push_back(packet));
            self.process_records();
        }
    }

    /// Passes the path's new records to the watcher.
    fn process_records(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.follow(&mut self.path);
            self.report_losses();
        }
    }

    /// Passes new losses to the senders whose recipes use ground truth.
    fn report_losses(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for (flow, truth) in watcher.take_new_losses() {
            let state = &self.flows[flow];
            let host = &mut self.hosts[state.sender_host()].host;
            if let Some(connection) = state.sender_connection().and_then(|id| host.connection_mut(id)) {
                connection.recovery_mut().on_truth(truth);
            }
        }
    }

    /// Passes all packets that a host has to send to the path.
    fn send_from(&mut self, index: usize) {
        match self.abbreviates {
            true => self.send_abbreviated_from(index),
            false => self.send_complete_from(index),
        }
    }

    /// Passes abbreviated packets to the path. Nothing observes them.
    fn send_abbreviated_from(&mut self, index: usize) {
        let Self { now, path, hosts, arrivals, spare, .. } = self;
        let SimHost { host, port, deadline, .. } = &mut hosts[index];
        let mut packet = spare.pop().unwrap_or_default();
        while host.poll_abbreviated_packet(*now, &mut packet) {
            if path.next_deadline().is_some_and(|deadline| deadline <= *now) {
                catch_up(path, *now, |_, _, packet| arrivals.push_back(packet));
            }
            let sent = std::mem::replace(&mut packet, spare.pop().unwrap_or_default());
            path.handle_abbreviated_packet(*now, *port, sent);
            drain(path, *now, |_, _, packet| arrivals.push_back(packet));
        }
        spare.push(packet);
        *deadline = host.next_deadline();
    }

    /// Passes complete packets to the path, and shows them to all observers.
    fn send_complete_from(&mut self, index: usize) {
        let port = self.hosts[index].port;
        let mut packet = self.spare.pop().unwrap_or_default();
        while self.hosts[index].host.poll_packet(self.now, &mut packet) {
            self.advance_path();
            self.report_events(index);
            if let Some(listener) = &mut self.listener {
                listener.packet_sent(self.now, port, &packet);
            }
            let destination = self.watcher.as_ref().and_then(|_| Destination::of(&packet, &self.flows));
            if let (Some(watcher), Some(Destination { flow, to })) = (&mut self.watcher, destination) {
                match to {
                    Role::Receiver => {
                        watcher.leaving(self.now, flow, self.flows[flow].flow.watch, &packet);
                    }
                    Role::Sender => watcher.acknowledging(self.now, flow, &packet),
                }
            }
            if let Some(tap) = &mut self.taps[port.0] {
                tap.packet(self.now, &packet);
            }
            let next = self.spare.pop().unwrap_or_default();
            let sent = std::mem::replace(&mut packet, next);
            self.path.handle_packet(self.now, port, sent);
            drain(&mut self.path, self.now, |_, _, packet| self.arrivals.push_back(packet));
            if let Some(watcher) = &mut self.watcher {
                watcher.entered(&mut self.path);
                self.report_losses();
            }
        }
        self.spare.push(packet);
        self.report_events(index);
        let SimHost { host, deadline, .. } = &mut self.hosts[index];
        *deadline = host.next_deadline();
    }

    /// Passes a host's new events to the listener.
    fn report_events(&mut self, index: usize) {
        let Some(listener) = &mut self.listener else { return };
        while let Some(event) = self.hosts[index].host.poll_event() {
            listener.host_event(event);
        }
    }

    /// Delivers a packet from the path to its host.
    fn arrive(&mut self, packet: Vec<u8>) -> Result<(), WorldError> {
        // Other packets are background traffic.
        let Some(Destination { flow, to }) = Destination::of(&packet, &self.flows) else { return Ok(()) };
        if self.abbreviates {
            let host = &mut self.hosts[self.flows[flow].hosts[to as usize]].host;
            host.handle_abbreviated_packet(self.now, &packet);
        } else {
            self.receive_complete(flow, to, &packet);
        }
        let state = &mut self.flows[flow];
        // A connection that can be accepted now was established by this packet.
        if state.connections[Role::Receiver as usize].is_none() && to == Role::Receiver {
            let host = &mut self.hosts[state.hosts[to as usize]].host;
            state.connections[to as usize] = host.accept(state.listener);
        }
        self.spare.push(packet);
        self.run_app(flow, to)
    }

    /// Passes a complete packet to its host, and shows it to all observers.
    fn receive_complete(&mut self, flow: usize, to: Role, packet: &[u8]) {
        let now = self.now;
        let state = &self.flows[flow];
        let SimHost { host, port, .. } = &mut self.hosts[state.hosts[to as usize]];
        if let Some(tap) = &mut self.taps[port.0] {
            tap.packet(now, packet);
        }
        if let Some(listener) = &mut self.listener {
            listener.packet_received(now, *port, packet);
        }
        let sender = state.sender_connection().filter(|_| to == Role::Sender);
        let dupacks = |host: &Host| Some(host.connection(sender?)?.recovery().counters().dupacks);
        let before = dupacks(host);
        host.handle_packet(now, packet);
        if let (Some(watcher), Watch::Packets, Some(before)) = (&mut self.watcher, state.flow.watch, before) {
            let duplicate = dupacks(host).is_some_and(|after| after > before);
            watcher.acknowledged(now, flow, packet, duplicate);
        }
    }

    /// Runs the application at one end, and sends the packets that this causes.
    fn run_app(&mut self, flow: usize, role: Role) -> Result<(), WorldError> {
        let index = self.flows[flow].hosts[role as usize];
        loop {
            let state = &mut self.flows[flow];
            let open = state.is_open();
            let ran = state.run(role, self.now, &mut self.hosts[index].host, &mut self.read_buffer);
            let wrote = ran.map_err(|error| WorldError::Stream { flow, at: self.now, error })?;
            if open && !state.is_open() && state.has_end() {
                self.unfinished -= 1;
            }
            self.send_from(index);
            // The window may be larger than the buffered data, so the application writes again.
            if wrote == 0 {
                return Ok(());
            }
        }
    }
}
