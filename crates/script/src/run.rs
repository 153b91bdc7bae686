//! The runner: plays a script's events in virtual time.
//!
//! If an event and a timer of the host are due at the same instant, the timer runs first.

mod calls;
mod outbound;
mod times;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use airtcp::tcp::Connection;
use airwire::time::{Duration, Instant};

use self::times::{CallEnd, PreviousLine};
use super::ast::{
    Action, Addressing, Call, FlowName, Icmp, Inbound, Position, Script, ScriptEvent, Segment, TimeBase, When,
};
use super::parse::{self, ParseError};
use super::python::{Block, BlockOutput, Variables};
use super::script_flow::ScriptFlow;
use super::setup::{RunMode, RunOptions, Setup, UnlistedPackets};
use super::sockets::{Sent, Sockets, Stuck};
use super::syscall::{Fd, Ticket};
use super::tcp_info;
use super::verdict::{Failure, Passed, Problem, ScriptError, Step, clock};
use super::wire::{IcmpError, Packet, icmp_numbers};

/// Time of the host's clock when the script starts.
const ORIGIN: Instant = Instant::from_secs(100);

/// Maximum wait for the packet of a line without a time, and for the next packet after a failed line.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// First port that the script's side uses for connections that it opens.
const FIRST_REMOTE_PORT: u16 = 50_000;
const REMOTE_PORTS: usize = 15_000;

const RECENT_PACKETS: usize = 12;

/// Reads and runs a script.
pub fn run_file(path: &Path, options: &RunOptions) -> Result<Passed, ScriptError> {
    run(&parse::load(path, defines(options)?)?, path, options)
}

/// Runs a script given as text. `path` is its name; includes and helper scripts are found relative to this
/// path.
pub fn run_text(text: &str, path: &Path, options: &RunOptions) -> Result<Passed, ScriptError> {
    run(&parse::text(path, text, defines(options)?)?, path, options)
}

fn defines(options: &RunOptions) -> Result<parse::Defines, ScriptError> {
    let given = options.flags.iter().filter(|(name, _)| name == "define");
    given
        .map(|(_, value)| {
            parse::definition(value.as_deref().unwrap_or_default()).map_err(|message| ScriptError::Setup {
                position: Position::of_line(Rc::new("command line".into()), 0),
                message,
            })
        })
        .collect()
}

pub(super) fn run(script: &Script, path: &Path, options: &RunOptions) -> Result<Passed, ScriptError> {
    let setup = Setup::new(script, options, path.parent().unwrap_or_else(|| Path::new("")))?;
    let mut runner = Runner::new(setup);
    let events = if runner.setup.mode == RunMode::Dry { &[] } else { script.events.as_slice() };
    let first = script.events.iter().find(|event| !matches!(event.action, Action::Shell(_)));
    let Some(first) = first else {
        let position = Position::of_line(Rc::new(path.to_owned()), 0);
        return Err(ParseError::new(position, "the script is empty; it needs a line with a time").into());
    };
    if let When::At(_, start) | When::Window(_, start, _) | When::Blocking(_, start, _) = first.when
        && !start.is_zero()
    {
        let message = format!("the first line has to be at time 0, not {}", clock(start));
        return Err(ParseError::new(first.position.clone(), message).into());
    }
    for event in events {
        let before = runner.setup.notes.len();
        let result = runner.event(event);
        runner.setup.locate_notes(before, &event.position);
        let step =
            Step { position: event.position.clone(), at: runner.now() - ORIGIN, text: event.text.clone() };
        match result {
            Ok(()) => runner.done.push(step),
            Err(problem) => return Err(runner.failure(step, problem)),
        }
    }
    runner.finish().map_err(|(step, problem)| runner.failure(step, problem))?;
    Ok(Passed {
        path: path.to_owned(),
        events: events.len(),
        checked: runner.checked,
        unchecked: runner.unchecked + runner.host_packets.len(),
        duration: runner.now() - ORIGIN,
        notes: std::mem::take(&mut runner.setup.notes),
        output: std::mem::take(&mut runner.output),
    })
}

struct Runner {
    setup: Setup,
    /// Created by the first event. Until a socket is bound or connected, a shell line replaces the
    /// host.
    sockets: Option<Sockets>,
    /// Packets of the host that have not been compared with a line yet.
    host_packets: VecDeque<HostPacket>,
    flows: Vec<ScriptFlow>,
    /// The connection that packet lines without `[fd N]` refer to.
    current: Option<usize>,
    /// Index of the first connection since the last `socket` call.
    first_new_flow: usize,
    previous: Option<PreviousLine>,
    blocked: Option<Blocked>,
    files: BTreeMap<Fd, Streams>,
    /// The descriptor that short forms refer to.
    latest: Option<Fd>,
    checked: usize,
    /// Packets that were skipped and not compared with a line.
    unchecked: usize,
    done: Vec<Step>,
    recent: VecDeque<String>,
    /// Variables of the code blocks, which later blocks share.
    variables: Variables,
    /// Lines that `print` wrote.
    output: Vec<String>,
}

/// Positions in an application's streams, which determine the expected bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Streams {
    written: u32,
    read: u32,
}

/// A call that has not returned yet.
struct Blocked {
    ticket: Ticket,
    call: calls::ActiveCall,
    end: CallEnd,
    step: Step,
}

#[derive(Clone, Debug)]
struct HostPacket {
    at: Instant,
    packet: Packet,
    flow: usize,
}

impl Runner {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            sockets: None,
            host_packets: VecDeque::new(),
            flows: Vec::new(),
            current: None,
            first_new_flow: 0,
            previous: None,
            blocked: None,
            files: BTreeMap::new(),
            latest: None,
            checked: 0,
            unchecked: 0,
            done: Vec::new(),
            recent: VecDeque::new(),
            variables: Variables::new(),
            output: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.sockets.as_ref().map_or(ORIGIN, Sockets::now)
    }

    fn sockets(&mut self) -> Result<&mut Sockets, Problem> {
        if self.sockets.is_none() {
            let config = self.setup.tuning.host_config(vec![self.setup.local.ip()], self.setup.mtu)?;
            self.sockets = Some(Sockets::new(config, ORIGIN));
            self.set_fast_open_keys();
        }
        Ok(self.sockets.as_mut().expect("made above"))
    }

    fn set_fast_open_keys(&mut self) {
        if let Some(sockets) = &mut self.sockets {
            sockets.set_fast_open_keys(self.setup.tuning.fast_open_keys());
        }
    }

    fn event(&mut self, event: &ScriptEvent) -> Result<(), Problem> {
        let inbound = matches!(event.action, Action::Inbound(..));
        let absolute = matches!(event.when.base(), Some(TimeBase::Start));
        let anchor = match self.previous {
            Some(previous) if inbound && previous.inbound => previous.at,
            _ => self.now(),
        };
        let start = event.when.start(anchor);
        if let Some(previous) = self.previous
            && (previous.absolute && absolute && start < previous.at)
        {
            return Err(Problem::new(format!(
                "time goes backward: this line is at {}, the line before at {}",
                clock(start - ORIGIN),
                clock(previous.at - ORIGIN)
            )));
        }
        let tolerance = self.tolerance(start);
        match &event.action {
            Action::Outbound(addressing, segment) => {
                let times = event.when.times(anchor);
                self.outbound(times, tolerance, *addressing, segment)?;
            }
            action => {
                self.advance(start)?;
                let late = self.now().saturating_since(start);
                if late > tolerance {
                    return Err(Problem::new(format!(
                        "this line is reached at {}, {late} too late",
                        clock(self.now() - ORIGIN)
                    )));
                }
                match action {
                    Action::Inbound(addressing, Inbound::Tcp(segment)) => {
                        self.inbound(*addressing, segment)?
                    }
                    Action::Inbound(addressing, Inbound::Icmp(icmp)) => self.icmp(*addressing, icmp)?,
                    Action::Call(call) => self.call(event, anchor, call)?,
                    Action::Code(block, line) => self.code(block, *line)?,
                    Action::Shell(command) => self.shell(command, &event.position)?,
                    Action::Outbound(..) => {}
                }
                self.collect()?;
            }
        }
        self.previous = Some(PreviousLine { at: start, inbound, absolute });
        Ok(())
    }

    fn inbound(&mut self, addressing: Addressing, segment: &Segment) -> Result<(), Problem> {
        let flow = match addressing.flow {
            FlowName::Fd(fd) => self.flow_of(fd)?,
            FlowName::New => self.new_passive_flow(),
            FlowName::Current => match self.current {
                Some(flow) => flow,
                None => self.new_passive_flow(),
            },
        };
        self.current = Some(flow);
        let now = self.sockets()?.now();
        self.note_packet(now, "<", &format!("{addressing}{segment}"));
        let packet = self.flows[flow].make_live(segment, addressing.ip, self.setup.echo, now)?;
        self.sockets()?.deliver(&packet.bytes());
        Ok(())
    }

    fn icmp(&mut self, addressing: Addressing, icmp: &Icmp) -> Result<(), Problem> {
        let flow = match addressing.flow {
            FlowName::Fd(fd) => self.flow_of(fd)?,
            FlowName::Current | FlowName::New => {
                self.current.ok_or_else(|| Problem::new("no connection yet for an ICMP error"))?
            }
        };
        let now = self.sockets()?.now();
        self.note_packet(now, "<", &format!("{addressing}{icmp}"));
        let flow = &self.flows[flow];
        let (host, peer) = (flow.local, flow.remote);
        let Some(numbers) = icmp_numbers(&icmp.kind, host.is_ipv6()) else {
            return Err(Problem::new(format!("`{}` does not exist in this IP version", icmp.kind)));
        };
        if !host.is_ipv6() && icmp.mtu.is_some_and(|mtu| mtu > 0xffff) {
            return Err(Problem::new("the MTU of an ICMPv4 error is from 0 to 65535 (RFC 1191)"));
        }
        // Without a quoted segment, the error quotes an empty segment with the sequence number 0,
        // which is the host's SYN.
        let (quoted_seq, quoted_len) = icmp.quoted.unwrap_or_default();
        let error = IcmpError {
            router: peer.ip(),
            host,
            peer,
            numbers,
            mtu: icmp.mtu.unwrap_or(0),
            quoted_seq: flow.host_seq(quoted_seq),
            quoted_len,
        };
        self.sockets()?.deliver(&error.bytes());
        Ok(())
    }

    fn shell(&mut self, command: &str, position: &Position) -> Result<(), Problem> {
        let script_dir = position.file.parent().unwrap_or_else(|| Path::new(""));
        let before = self.setup.tuning.changes();
        self.setup.notes.extend(self.setup.tuning.shell(command, script_dir)?);
        // As in the library for packetdrill, the first bind or connect fixes the configuration of
        // the host.
        if self.sockets()?.is_pristine() {
            let config = self.setup.tuning.host_config(vec![self.setup.local.ip()], self.setup.mtu)?;
            self.sockets()?.replace_host(config);
            self.set_fast_open_keys();
        } else if self.setup.tuning.changes() > before {
            self.setup.notes.push(format!("`{command}` has no effect after the first bind or connect"));
        }
        Ok(())
    }

    /// Runs a code block whose `%{` is on this line.
    fn code(&mut self, block: &Block, line: usize) -> Result<(), Problem> {
        let latest = self.latest;
        let info = latest.and_then(|fd| self.sockets.as_ref()?.connection(fd)).map(Connection::info);
        let names = |name: &str| {
            let value = tcp_info::constant(name).or_else(|| tcp_info::field(info.as_ref()?, name));
            value.ok_or_else(|| match latest {
                _ if info.is_some() || !name.starts_with("tcpi_") => {
                    format!("`{name}` is neither a variable nor a member of TCP_INFO that airtcp supports")
                }
                Some(fd) => format!("descriptor {} no longer has a connection", fd.0),
                None => "no connection yet for TCP_INFO".to_owned(),
            })
        };
        let mut written = BlockOutput::default();
        let result = block.run(&mut self.variables, &names, &mut written);
        self.output.append(&mut written.output);
        self.setup.notes.append(&mut written.notes);
        result.map_err(|(offset, message)| Problem { line: Some(line + offset), ..Problem::new(message) })
    }

    /// Advances the clock to `to` and runs the host's timers that expire until then.
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

    /// Collects the packets that the host has sent, and the result of a blocked call that has
    /// returned.
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
            Problem::new(format!("the host sent a malformed packet: {error}"))
                .with(format!("{:02x?}", sent.bytes))
        })?;
        let flow =
            match self.flows.iter().position(|flow| (flow.local, flow.remote) == (packet.src, packet.dst)) {
                Some(flow) => flow,
                None => {
                    let mut flow = ScriptFlow::new(packet.src, packet.dst);
                    // The host opens connections only for connect, so this one belongs to the
                    // last connect call.
                    flow.fd = self.latest.filter(|fd| self.flows.iter().all(|flow| flow.fd != Some(*fd)));
                    self.flows.push(flow);
                    self.current = Some(self.flows.len() - 1);
                    self.flows.len() - 1
                }
            };
        self.flows[flow].observe(&packet);
        let segment = self.flows[flow].to_script(&packet);
        self.note_packet(sent.at, ">", &segment.to_string());
        self.host_packets.push_back(HostPacket { at: sent.at, packet, flow });
        Ok(())
    }

    fn new_passive_flow(&mut self) -> usize {
        let port = FIRST_REMOTE_PORT + (self.flows.len() % REMOTE_PORTS) as u16;
        self.flows.push(ScriptFlow::new(self.setup.local, SocketAddr::new(self.setup.remote.ip(), port)));
        self.flows.len() - 1
    }

    fn flow_of(&self, fd: i64) -> Result<usize, Problem> {
        self.flows
            .iter()
            .rposition(|flow| flow.fd.is_some_and(|known| i64::from(known.0) == fd))
            .ok_or_else(|| Problem::new(format!("descriptor {fd} was never connected or accepted")))
    }

    /// Assigns the descriptor from accept or connect to the connection with this peer.
    fn name_flow(&mut self, fd: Fd, remote: SocketAddr) {
        for flow in &mut self.flows {
            if flow.remote == remote {
                flow.fd = Some(fd);
            } else if flow.fd == Some(fd) {
                flow.fd = None;
            }
        }
    }

    fn finish(&mut self) -> Result<(), (Step, Problem)> {
        let step = Step {
            position: self.position(),
            at: self.now() - ORIGIN,
            text: "the end of the script".to_owned(),
        };
        if let Some(blocked) = &self.blocked {
            let (end, step) = (blocked.end, blocked.step.clone());
            self.advance(end.at + end.tolerance).map_err(|problem| (step.clone(), problem))?;
            if self.blocked.is_some() {
                return Err((step, Problem::new("the call did not return in time")));
            }
        }
        match self.host_packets.front() {
            Some(next) if self.setup.unlisted == UnlistedPackets::Refused => {
                let actual = self.flows[next.flow].to_script(&next.packet);
                let problem = Problem::new("the host sent packets that are not in the script");
                Err((step, problem.with(self.line("actual", next.at, &actual))))
            }
            _ => Ok(()),
        }
    }

    fn position(&self) -> Position {
        match self.done.last() {
            Some(step) => step.position.clone(),
            None => Position::of_line(Rc::default(), 0),
        }
    }

    fn note_packet(&mut self, at: Instant, direction: &str, text: &str) {
        if self.recent.len() == RECENT_PACKETS {
            self.recent.pop_front();
        }
        self.recent.push_back(format!("{:>11}  {direction} {text}", clock(at - ORIGIN)));
    }

    fn failure(&mut self, failed: Step, problem: Problem) -> ScriptError {
        let line = problem.line.unwrap_or(failed.position.line);
        ScriptError::Failed(Box::new(Failure {
            position: Position { line, ..failed.position.clone() },
            problem,
            done: std::mem::take(&mut self.done),
            failed,
            recent: self.recent.drain(..).collect(),
            notes: std::mem::take(&mut self.setup.notes),
            output: std::mem::take(&mut self.output),
        }))
    }

    fn call(&mut self, event: &ScriptEvent, anchor: Instant, call: &Call) -> Result<(), Problem> {
        if let Some(blocked) = &self.blocked {
            return Err(Problem::new(format!(
                "the call of line {} has not returned yet",
                blocked.step.position.line
            )));
        }
        let end = match (event.when, event.when.times(anchor)) {
            (When::Blocking(..), Some((start, at))) => {
                let tolerance = self.setup.rules.tolerance.after(at.saturating_since(start));
                Some(CallEnd { at, tolerance })
            }
            _ => None,
        };
        let at = self.now() - ORIGIN;
        self.run_call(call, end, Step { position: event.position.clone(), at, text: event.text.clone() })
    }
}

fn stuck(stuck: Stuck) -> Problem {
    Problem::new(stuck.to_string())
}
