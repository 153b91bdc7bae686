//! The runner: one event after another, in virtual time.
//!
//! An event at the same instant as a timer of the host comes after the timer.

mod calls;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;

use airwire::time::{Duration, Instant};

use super::ast::{
    Action, Addressing, Base, Call, Flags, FlowName, Icmp, Inbound, Script, ScriptEvent, Segment, TcpOption,
    When,
};
use super::check;
use super::expr::Check;
use super::parse;
use super::script_flow::ScriptFlow;
use super::setup::{Cut, End, RunOptions, Setup};
use super::sockets::{Sent, Sockets, Stuck};
use super::syscall::{Fd, Ticket};
use super::tcp_info;
use super::verdict::{Failure, Passed, Problem, ScriptError, Step, clock};
use super::wire::{IcmpError, Packet, icmp_numbers};

/// Where the host's clock stands when the script starts.
const ORIGIN: Instant = Instant::from_secs(100);

/// How long a line without a time waits for its packet, and how far a failed line looks for it.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The script's side uses ports from here on for the connections that it opens.
const FIRST_REMOTE_PORT: u16 = 50_000;

const RECENT_PACKETS: usize = 12;

/// Reads and runs one script.
pub fn run_file(path: &Path, options: &RunOptions) -> Result<Passed, ScriptError> {
    run(&parse::load(path)?, path, options)
}

pub(super) fn run(script: &Script, path: &Path, options: &RunOptions) -> Result<Passed, ScriptError> {
    let setup = Setup::new(script, options)?;
    let mut runner = Runner::new(setup);
    for event in &script.events {
        let result = runner.event(event);
        let step = Step { place: event.place.clone(), at: runner.now() - ORIGIN, text: event.text.clone() };
        match result {
            Ok(()) => runner.done.push(step),
            Err(problem) => return Err(runner.failure(step, problem)),
        }
    }
    runner.finish().map_err(|(step, problem)| runner.failure(step, problem))?;
    Ok(Passed {
        path: path.to_owned(),
        events: script.events.len(),
        checked: runner.checked,
        unchecked: runner.seen.len(),
        duration: runner.now() - ORIGIN,
        notes: std::mem::take(&mut runner.setup.notes),
    })
}

struct Runner {
    setup: Setup,
    /// Made by the first event that needs it, so that the sysctls before it count.
    sockets: Option<Sockets>,
    /// What the host sent and no line was compared with yet.
    seen: VecDeque<Seen>,
    flows: Vec<ScriptFlow>,
    /// The connection that a packet line without `[fd N]` speaks of.
    current: Option<usize>,
    /// Where `+` counts from.
    previous: Instant,
    blocked: Option<Blocked>,
    files: BTreeMap<Fd, Streams>,
    /// The descriptor that short forms speak of.
    latest: Option<Fd>,
    checked: usize,
    done: Vec<Step>,
    recent: VecDeque<String>,
}

/// How far an application's streams have got, to know what each octet must be.
#[derive(Clone, Copy, Debug, Default)]
struct Streams {
    written: u32,
    read: u32,
}

/// A call that has not returned.
struct Blocked {
    ticket: Ticket,
    call: calls::Checked,
    until: Instant,
    step: Step,
}

#[derive(Clone, Debug)]
struct Seen {
    at: Instant,
    packet: Packet,
    flow: usize,
}

impl Runner {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            sockets: None,
            seen: VecDeque::new(),
            flows: Vec::new(),
            current: None,
            previous: ORIGIN,
            blocked: None,
            files: BTreeMap::new(),
            latest: None,
            checked: 0,
            done: Vec::new(),
            recent: VecDeque::new(),
        }
    }

    fn now(&self) -> Instant {
        self.sockets.as_ref().map_or(self.previous, Sockets::now)
    }

    fn sockets(&mut self) -> Result<&mut Sockets, Problem> {
        if self.sockets.is_none() {
            let config = self.setup.tuning.host_config(vec![self.setup.local.ip()], self.setup.mtu)?;
            self.sockets = Some(Sockets::new(config, self.previous));
        }
        Ok(self.sockets.as_mut().expect("made above"))
    }

    fn event(&mut self, event: &ScriptEvent) -> Result<(), Problem> {
        if let Action::Shell(command) = &event.action {
            return self.shell(command, event.when);
        }
        let start = self.start(event.when);
        if let Action::Outbound(addressing, segment) = &event.action {
            self.previous = self.outbound(event.when, start, *addressing, segment)?;
            return Ok(());
        }
        self.advance(start)?;
        match &event.action {
            Action::Inbound(addressing, Inbound::Tcp(segment)) => self.inbound(*addressing, segment)?,
            Action::Inbound(addressing, Inbound::Icmp(icmp)) => self.icmp(*addressing, icmp)?,
            Action::Call(call) => self.call(event, call)?,
            Action::Code(checks) => self.code(checks)?,
            Action::Outbound(..) | Action::Shell(_) => {}
        }
        self.collect()?;
        self.previous = start;
        Ok(())
    }

    /// The earliest instant at which the script wants this to happen.
    fn start(&self, when: When) -> Instant {
        match when {
            When::Here | When::Any => self.now(),
            When::At(base, start) | When::Window(base, start, _) | When::Blocking(base, start, _) => {
                self.base(base) + start
            }
        }
    }

    fn base(&self, base: Base) -> Instant {
        match base {
            Base::Start => ORIGIN,
            Base::Previous => self.previous,
        }
    }

    // What the script's side does.

    fn inbound(&mut self, addressing: Addressing, segment: &Segment) -> Result<(), Problem> {
        let opens = segment.has(Flags::SYN) && !segment.has(Flags::ACK);
        let flow = match addressing.flow {
            FlowName::Fd(fd) => self.flow_of(fd)?,
            FlowName::New => self.new_passive_flow(),
            FlowName::Current => match self.current {
                Some(flow) if !(opens && self.is_over(flow)) => flow,
                _ => self.new_passive_flow(),
            },
        };
        self.current = Some(flow);
        let now = self.sockets()?.now();
        self.note_packet(now, "<", &format!("{addressing}{segment}"));
        let bytes = self.flows[flow].make_live(segment, addressing.ip, now).bytes();
        self.sockets()?.deliver(&bytes);
        Ok(())
    }

    fn icmp(&mut self, addressing: Addressing, icmp: &Icmp) -> Result<(), Problem> {
        let flow = match addressing.flow {
            FlowName::Fd(fd) => self.flow_of(fd)?,
            FlowName::Current | FlowName::New => self.current.ok_or_else(|| {
                Problem::new("there is no connection yet that an ICMP error could be about")
            })?,
        };
        let now = self.sockets()?.now();
        self.note_packet(now, "<", &format!("{addressing}{icmp}"));
        let flow = &self.flows[flow];
        let (host, peer) = (flow.local, flow.remote);
        let Some(numbers) = icmp_numbers(&icmp.kind, host.is_ipv6()) else {
            return Err(Problem::new(format!("`{}` does not exist in this IP version", icmp.kind)));
        };
        let error = IcmpError {
            router: peer.ip(),
            host,
            peer,
            numbers,
            mtu: icmp.mtu.unwrap_or(0),
            quoted_seq: flow.local_seq(icmp.quoted_seq),
            quoted_len: icmp.quoted_len,
        };
        self.sockets()?.deliver(&error.bytes());
        Ok(())
    }

    fn shell(&mut self, command: &str, when: When) -> Result<(), Problem> {
        let start = self.start(when);
        if let Some(sockets) = &mut self.sockets {
            sockets.advance(start).map_err(stuck)?;
        }
        self.previous = start;
        for note in self.setup.tuning.shell(command)? {
            self.setup.notes.push(note);
        }
        Ok(())
    }

    fn code(&mut self, checks: &[Check]) -> Result<(), Problem> {
        let fd = self
            .latest
            .ok_or_else(|| Problem::new("there is no connection yet whose TCP_INFO could be looked at"))?;
        let sockets = self.sockets()?;
        let Some(connection) = sockets.connection(fd) else {
            return Err(Problem::new(format!("descriptor {} has no connection any more", fd.0)));
        };
        let info = connection.info();
        let names = |name: &str| tcp_info::value(&info, name);
        checks.iter().try_for_each(|check| check.hold(&names)).map_err(Problem::new)
    }

    // What the host is expected to do.

    /// Returns the instant that a following `+` counts from.
    fn outbound(
        &mut self,
        when: When,
        start: Instant,
        addressing: Addressing,
        expected: &Segment,
    ) -> Result<Instant, Problem> {
        self.sockets()?;
        let (earliest, latest) = match when {
            When::Any => (None, None),
            When::Window(base, _, end) => (Some(start), Some(self.base(base) + end)),
            _ => {
                self.advance(start)?;
                (Some(start), Some(start))
            }
        };
        let tolerance = self.setup.rules.tolerance;
        let limit = latest.map_or_else(|| self.now() + PATIENCE, |latest| latest + tolerance);
        self.wait_for_packet(limit)?;
        let Some(first) = self.seen.pop_front() else {
            return Err(self.nothing_came(expected, earliest));
        };
        self.current = Some(self.flow_for(&first, addressing)?);
        let packet = self.concatenate(&first, expected, limit)?;
        self.compare(&first, &packet, addressing, expected)?;
        let early = earliest.is_some_and(|earliest| first.at + tolerance < earliest);
        let late = latest.is_some_and(|latest| first.at > latest + tolerance);
        if early || late {
            return Err(self.wrong_time(&first, &packet, start, expected));
        }
        self.checked += 1;
        Ok(match when {
            When::Any | When::Window(..) => first.at,
            _ => start,
        })
    }

    fn wait_for_packet(&mut self, limit: Instant) -> Result<(), Problem> {
        while self.seen.is_empty() {
            if !self.sockets()?.step(limit).map_err(stuck)? {
                break;
            }
            self.collect()?;
        }
        Ok(())
    }

    /// The connection of the packet, which must be the one that the line speaks of.
    fn flow_for(&self, seen: &Seen, addressing: Addressing) -> Result<usize, Problem> {
        let expected = match addressing.flow {
            FlowName::Fd(fd) => self.flow_of(fd)?,
            FlowName::Current | FlowName::New => self.current.unwrap_or(seen.flow),
        };
        if expected == seen.flow {
            return Ok(expected);
        }
        let name = |flow: usize| match self.flows[flow].fd {
            Some(fd) => format!("the connection of descriptor {}", fd.0),
            None => format!("the connection with {}", self.flows[flow].remote),
        };
        Err(Problem::new(format!(
            "this packet belongs to {}, expected one of {}",
            name(seen.flow),
            name(expected)
        ))
        .with(self.line("actual", seen.at, &self.flows[seen.flow].to_script(&seen.packet))))
    }

    /// Joins equal segments until the length that the line speaks of.
    fn concatenate(&mut self, first: &Seen, expected: &Segment, limit: Instant) -> Result<Packet, Problem> {
        let mut packet = first.packet.clone();
        let size = packet.payload.len();
        while self.setup.cut == Cut::Concatenated && size > 0 && packet.payload.len() < expected.len as usize
        {
            self.wait_for_packet(limit)?;
            let next_seq = packet.seq.wrapping_add(packet.payload.len() as u32);
            let Some(next) = self.seen.front() else { break };
            let continues =
                next.flow == first.flow && next.packet.seq == next_seq && next.packet.ack == packet.ack;
            let fits = (1..=size).contains(&next.packet.payload.len());
            if !(continues && fits) || packet.flags.contains(Flags::FIN) {
                break;
            }
            packet.flags = packet.flags.with(next.packet.flags);
            packet.payload.extend_from_slice(&next.packet.payload);
            let shorter = next.packet.payload.len() < size;
            self.seen.pop_front();
            if shorter {
                break;
            }
        }
        Ok(packet)
    }

    fn compare(
        &mut self,
        first: &Seen,
        packet: &Packet,
        addressing: Addressing,
        expected: &Segment,
    ) -> Result<(), Problem> {
        let flow = &mut self.flows[first.flow];
        if expected.has(Flags::SYN) && packet.flags.contains(Flags::SYN) {
            flow.rebase(packet.seq, expected.seq);
        }
        if let Some(script) = named_timestamp(expected) {
            flow.name_timestamp(script, packet);
        }
        let actual = flow.to_script(packet);
        let mut found = check::differences(self.setup.rules, expected, &actual);
        found.extend(check::ip_differences(addressing.ip, packet));
        let skip = u32::from(actual.has(Flags::SYN));
        if packet.payload != flow.expected_payload(actual.seq.wrapping_add(skip), packet.payload.len()) {
            found.push("the payload is not what was written there".to_owned());
        }
        if found.is_empty() {
            return Ok(());
        }
        let start = Step { place: self.place(), at: first.at - ORIGIN, text: String::new() };
        Err(Problem::new(format!("the packet differs: {}", found.join("; ")))
            .with(format!("expected {:>11}  > {addressing}{expected}", clock(start.at)))
            .with(self.line("actual", first.at, &actual)))
    }

    fn nothing_came(&mut self, expected: &Segment, earliest: Option<Instant>) -> Problem {
        let at = earliest.unwrap_or_else(|| self.now());
        let waited = self.now();
        let ahead = self.wait_for_packet(waited + PATIENCE);
        let problem = Problem::new("the host sent nothing").with(self.line("expected", at, expected));
        match self.seen.front() {
            Some(next) => {
                let actual = self.flows[next.flow].to_script(&next.packet);
                problem.with(self.line("next is", next.at, &actual))
            }
            None if ahead.is_err() => problem,
            None => problem.with(format!("and would send nothing in the {PATIENCE} that follow")),
        }
    }

    fn wrong_time(&self, first: &Seen, packet: &Packet, start: Instant, expected: &Segment) -> Problem {
        let off = if first.at < start { start - first.at } else { first.at - start };
        let direction = if first.at < start { "early" } else { "late" };
        Problem::new(format!("the packet is right but {off} too {direction}"))
            .with(self.line("expected", start, expected))
            .with(self.line("actual", first.at, &self.flows[first.flow].to_script(packet)))
    }

    fn line(&self, what: &str, at: Instant, segment: &Segment) -> String {
        format!("{what:<8} {:>11}  > {segment}", clock(at - ORIGIN))
    }

    // Time.

    /// Runs the host up to `to`.
    fn advance(&mut self, to: Instant) -> Result<(), Problem> {
        self.sockets()?;
        loop {
            self.collect()?;
            if !self.sockets()?.step(to).map_err(stuck)? {
                break;
            }
        }
        self.sockets()?.skip_to(to);
        self.collect()
    }

    /// Takes over what the host did: packets, and the end of a call that waited.
    fn collect(&mut self) -> Result<(), Problem> {
        while let Some(sent) = self.sockets()?.take_sent() {
            self.sent(&sent)?;
        }
        let Some(blocked) = &self.blocked else { return Ok(()) };
        let ticket = blocked.ticket;
        let Some(finished) = self.sockets()?.take_finished(ticket) else { return Ok(()) };
        let Some(blocked) = self.blocked.take() else { return Ok(()) };
        self.returned(blocked, finished)
    }

    fn sent(&mut self, sent: &Sent) -> Result<(), Problem> {
        let packet = Packet::parse(&sent.bytes).map_err(|error| {
            Problem::new(format!("the host sent a packet that is not well-formed: {error}"))
                .with(format!("{:02x?}", sent.bytes))
        })?;
        let flow =
            match self.flows.iter().position(|flow| (flow.local, flow.remote) == (packet.src, packet.dst)) {
                Some(flow) => flow,
                None => {
                    let mut flow = ScriptFlow::new(packet.src, packet.dst);
                    // The only call that makes the host open a connection is the latest connect.
                    flow.fd = self.latest.filter(|fd| self.flows.iter().all(|flow| flow.fd != Some(*fd)));
                    self.flows.push(flow);
                    self.current = Some(self.flows.len() - 1);
                    self.flows.len() - 1
                }
            };
        self.flows[flow].observe(&packet);
        let segment = self.flows[flow].to_script(&packet);
        self.note_packet(sent.at, ">", &segment.to_string());
        self.seen.push_back(Seen { at: sent.at, packet, flow });
        Ok(())
    }

    // Connections.

    fn new_passive_flow(&mut self) -> usize {
        let port = FIRST_REMOTE_PORT + self.flows.len() as u16;
        self.flows.push(ScriptFlow::new(self.setup.local, SocketAddr::new(self.setup.remote.ip(), port)));
        self.flows.len() - 1
    }

    /// Whether the application has closed it, so that a SYN opens another.
    fn is_over(&self, flow: usize) -> bool {
        let fd = self.flows[flow].fd;
        fd.is_some_and(|fd| !self.sockets.as_ref().is_some_and(|sockets| sockets.is_open(fd)))
    }

    fn flow_of(&self, fd: i64) -> Result<usize, Problem> {
        self.flows
            .iter()
            .rposition(|flow| flow.fd.is_some_and(|known| i64::from(known.0) == fd))
            .ok_or_else(|| Problem::new(format!("descriptor {fd} was never connected or accepted")))
    }

    /// accept or connect has given this connection a descriptor.
    fn name_flow(&mut self, fd: Fd, remote: SocketAddr) {
        for flow in &mut self.flows {
            if flow.remote == remote {
                flow.fd = Some(fd);
            } else if flow.fd == Some(fd) {
                flow.fd = None;
            }
        }
    }

    // The end.

    fn finish(&mut self) -> Result<(), (Step, Problem)> {
        let step =
            Step { place: self.place(), at: self.now() - ORIGIN, text: "the end of the script".to_owned() };
        if let Some(blocked) = &self.blocked {
            let (until, step) = (blocked.until, blocked.step.clone());
            self.advance(until + self.setup.rules.tolerance).map_err(|problem| (step.clone(), problem))?;
            if self.blocked.is_some() {
                return Err((step, Problem::new("the call has not returned when it should have")));
            }
        }
        match self.seen.front() {
            Some(next) if self.setup.end == End::Exact => {
                let actual = self.flows[next.flow].to_script(&next.packet);
                let problem = Problem::new("the host has sent more than the script speaks of");
                Err((step, problem.with(self.line("actual", next.at, &actual))))
            }
            _ => Ok(()),
        }
    }

    fn place(&self) -> super::ast::Place {
        match self.done.last() {
            Some(step) => step.place.clone(),
            None => super::ast::Place { file: std::rc::Rc::default(), line: 0 },
        }
    }

    fn note_packet(&mut self, at: Instant, direction: &str, text: &str) {
        if self.recent.len() == RECENT_PACKETS {
            self.recent.pop_front();
        }
        self.recent.push_back(format!("{:>11}  {direction} {text}", clock(at - ORIGIN)));
    }

    fn failure(&mut self, failed: Step, problem: Problem) -> ScriptError {
        ScriptError::Failed(Box::new(Failure {
            place: failed.place.clone(),
            problem,
            done: std::mem::take(&mut self.done),
            failed,
            recent: self.recent.drain(..).collect(),
        }))
    }

    fn call(&mut self, event: &ScriptEvent, call: &Call) -> Result<(), Problem> {
        if let Some(blocked) = &self.blocked {
            return Err(Problem::new(format!(
                "the call of line {} has not returned yet",
                blocked.step.place.line
            )));
        }
        let until = match event.when {
            When::Blocking(base, _, end) => Some(self.base(base) + end),
            _ => None,
        };
        let at = self.now() - ORIGIN;
        self.run_call(call, until, Step { place: event.place.clone(), at, text: event.text.clone() })
    }
}

fn named_timestamp(segment: &Segment) -> Option<u32> {
    let super::ast::Options::Exactly(options) = &segment.options else { return None };
    options.iter().find_map(|option| match option {
        TcpOption::Timestamps { val, .. } => *val,
        _ => None,
    })
}

fn stuck(stuck: Stuck) -> Problem {
    Problem::new(stuck.to_string())
}
