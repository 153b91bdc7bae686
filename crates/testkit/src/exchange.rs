//! Two applications on a [`Pair`] that exchange known streams and check every received byte.

use airtcp::host::{ConnId, Host, IoError, ListenId};
use airtcp::recovery::Decision;
use airtcp::tcp::{Connection, SocketOptions, State};
use airwire::segment::{self, Flags};
use airwire::time::{Duration, Instant};

use super::hostile::Eavesdropper;
use super::pair::{LEFT, Pair, Peer, RIGHT, stream_byte};

/// How the connection is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// Left connects to right, which listens.
    Passive,
    /// Both connect to each other (simultaneous open, RFC 9293 §3.5).
    Simultaneous,
}

/// Behaviour of the two applications.
#[derive(Clone, Debug)]
pub struct ExchangeSpec {
    /// How the connection is opened.
    pub opening: Opening,
    /// Whether applications write, and shut down writing, before the handshake is complete.
    pub eager: bool,
    /// Socket options at both ends.
    pub options: SocketOptions,
    /// Number of bytes that left and right send.
    pub bytes: [u64; 2],
    /// Maximum size of a read in bytes.
    pub read_at_most: usize,
    /// Time between two reads of an application, to simulate a busy one.
    pub read_every: Duration,
    /// How to handle an application's error.
    pub faults: Faults,
}

/// How to handle an application's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Faults {
    /// The exchange fails.
    Fail,
    /// The application closes the connection and stops, because a forged packet may have reset the connection
    /// or inserted data into the stream.
    Close,
}

#[derive(Debug)]
struct App {
    side: Peer,
    id: Option<ConnId>,
    to_send: u64,
    sent: u64,
    expected: u64,
    received: u64,
    shut: bool,
    at_end: bool,
    closed: bool,
    next_read: Instant,
}

impl App {
    /// Writes what the host accepts. Shuts down writing after the last byte.
    fn write(&mut self, host: &mut Host, id: ConnId, now: Instant) -> Result<(), String> {
        while self.sent < self.to_send {
            let offsets = self.sent..self.to_send.min(self.sent + 4096);
            let chunk: Vec<u8> = offsets.map(|offset| stream_byte(self.side, offset)).collect();
            match host.write(now, id, &chunk) {
                Ok(n) => self.sent += n as u64,
                Err(IoError::WouldBlock) => break,
                Err(error) => return Err(format!("write: {error}")),
            }
        }
        if self.sent == self.to_send && !self.shut {
            self.shut = true;
            host.shutdown_write(id).map_err(|error| format!("shutdown: {error}"))?;
        }
        Ok(())
    }

    /// Reads once, and checks the received bytes.
    fn read(&mut self, host: &mut Host, id: ConnId, at_most: usize) -> Result<(), String> {
        let mut buffer = vec![0; at_most];
        match host.read(id, &mut buffer) {
            Ok(0) if self.received == self.expected => self.at_end = true,
            Ok(0) => return Err(format!("the stream ended after {} bytes", self.received)),
            Ok(n) => {
                for byte in &buffer[..n] {
                    if *byte != stream_byte(self.side.other(), self.received)
                        || self.received >= self.expected
                    {
                        return Err(format!("byte {} is wrong", self.received));
                    }
                    self.received += 1;
                }
            }
            Err(IoError::WouldBlock) => {}
            Err(error) => return Err(format!("read after {} bytes: {error}", self.received)),
        }
        Ok(())
    }
}

/// Two hosts, an application on each, and their connection.
pub struct Exchange {
    /// The hosts and their path.
    pub pair: Pair,
    /// The attacker's knowledge about the connection.
    pub eavesdropper: Eavesdropper,
    /// If `Some`, records every packet that leaves a host, with its time and its sender.
    pub recording: Option<Vec<(Instant, Peer, Vec<u8>)>>,
    spec: ExchangeSpec,
    listener: Option<ListenId>,
    apps: [App; 2],
}

const PORTS: [u16; 2] = [40_000, 80];

impl Exchange {
    /// Starts to connect the two hosts. An error is a host's refusal.
    pub fn new(mut pair: Pair, spec: ExchangeSpec) -> Result<Self, String> {
        pair.tap.get_or_insert_default();
        let app = |side: Peer| App {
            side,
            id: None,
            to_send: spec.bytes[side as usize],
            sent: 0,
            expected: spec.bytes[side.other() as usize],
            received: 0,
            shut: false,
            at_end: false,
            closed: false,
            next_read: Instant::ZERO,
        };
        let mut apps = [app(Peer::Left), app(Peer::Right)];
        let ends = [(LEFT, PORTS[0]).into(), (RIGHT, PORTS[1]).into()];
        let now = pair.now;
        let connected = pair.left.connect(now, Some(ends[0]), ends[1], spec.options.clone());
        apps[0].id = Some(connected.map_err(|error| error.to_string())?);
        let mut listener = None;
        match spec.opening {
            Opening::Passive => {
                let listening = pair.right.listen(ends[1], 5, spec.options.clone());
                listener = Some(listening.map_err(|error| error.to_string())?);
            }
            Opening::Simultaneous => {
                let connected = pair.right.connect(now, Some(ends[1]), ends[0], spec.options.clone());
                apps[1].id = Some(connected.map_err(|error| error.to_string())?);
            }
        }
        Ok(Self { pair, eavesdropper: Eavesdropper::default(), recording: None, spec, listener, apps })
    }

    /// Returns the connection of one side, or `None` if the host has not created it yet or has removed it.
    pub fn connection(&self, side: Peer) -> Option<&Connection> {
        self.pair.host_ref(side).connection(self.apps[side as usize].id?)
    }

    /// Returns the decisions of the connection of `side` since the last call.
    pub fn take_trace(&mut self, side: Peer) -> Vec<Decision> {
        let Some(id) = self.apps[side as usize].id else { return Vec::new() };
        let connection = self.pair.host(side).connection_mut(id);
        connection.map(|connection| connection.recovery_mut().take_trace()).unwrap_or_default()
    }

    /// Returns whether the handshake is complete at both ends.
    pub fn is_synchronized(&self) -> bool {
        let synchronized = |side| self.connection(side).is_some_and(|c| c.state().is_synchronized());
        synchronized(Peer::Left) && synchronized(Peer::Right)
    }

    /// Returns whether both applications have read the other's stream to its end.
    pub fn is_complete(&self) -> bool {
        self.apps.iter().all(|app| app.at_end)
    }

    /// Returns a number that grows with every byte sent or read at either end, to detect a standstill.
    pub fn progress(&self) -> u64 {
        self.apps.iter().map(|app| app.sent + app.received + u64::from(app.at_end)).sum()
    }

    /// Runs both applications, then handles the next event. Returns `false` if no more events will follow.
    pub fn step(&mut self) -> Result<bool, String> {
        self.run_apps()?;
        let mut alive = self.pair.step();
        self.record_packets();
        let waiting = self.apps.iter().filter(|app| !app.at_end && app.next_read > self.pair.now);
        if let (false, Some(at)) = (alive, waiting.map(|app| app.next_read).min()) {
            self.pair.now = at;
            alive = true;
        }
        Ok(alive)
    }

    /// Runs until both applications are done, for at most `limit` of virtual time.
    pub fn complete(&mut self, limit: Duration) -> Result<(), String> {
        let deadline = self.pair.now + limit;
        let mut last = (self.progress(), self.pair.now);
        let mut steps_without_progress = 0_u64;
        while !self.is_complete() {
            let alive = self.step()?;
            let progress = (self.progress(), self.pair.now);
            steps_without_progress = if progress == last { steps_without_progress + 1 } else { 0 };
            last = progress;
            if (!alive && steps_without_progress > 2) || steps_without_progress > 200_000 {
                return Err(format!("standstill at {}: {}", self.pair.now, self.describe()));
            }
            if self.pair.now > deadline {
                return Err(format!("not done at {}: {}", self.pair.now, self.describe()));
            }
        }
        self.audit()
    }

    /// Closes all open connections, and runs until all events are handled. Returns an error if a connection
    /// remains.
    pub fn close_all(&mut self) -> Result<(), String> {
        self.run_apps()?;
        while self.pair.step() {
            self.record_packets();
        }
        match (self.pair.left.connections(), self.pair.right.connections()) {
            (0, 0) => Ok(()),
            remaining => Err(format!("connections left behind: {remaining:?}")),
        }
    }

    /// Delivers a forged packet to `to`. Returns the number of packets without data that `to` sends in
    /// response.
    pub fn inject(&mut self, to: Peer, packet: &[u8]) -> usize {
        self.pair.drain();
        self.record_packets();
        let now = self.pair.now;
        self.pair.host(to).handle_packet(now, packet);
        self.pair.drain();
        let is_empty = |(_, from, packet): &(Instant, Peer, Vec<u8>)| *from == to && !carries_stream(packet);
        let replies = self.pair.tap.iter().flatten().filter(|entry| is_empty(entry)).count();
        self.record_packets();
        replies
    }

    fn record_packets(&mut self) {
        for (at, from, packet) in self.pair.tap.iter_mut().flat_map(|tap| tap.drain(..)) {
            self.eavesdropper.observe(from, &packet);
            if let Some(recording) = &mut self.recording {
                recording.push((at, from, packet));
            }
        }
    }

    fn run_apps(&mut self) -> Result<(), String> {
        if self.apps[1].id.is_none()
            && let Some(listener) = self.listener
        {
            self.apps[1].id = self.pair.right.accept(listener);
        }
        for side in [Peer::Left, Peer::Right] {
            match self.run_app(side) {
                Ok(()) => {}
                Err(error) if self.spec.faults == Faults::Fail => {
                    return Err(format!("{side:?} at {}: {error}", self.pair.now));
                }
                Err(_) => self.stop(side),
            }
        }
        Ok(())
    }

    fn stop(&mut self, side: Peer) {
        let now = self.pair.now;
        let app = &mut self.apps[side as usize];
        (app.at_end, app.closed) = (true, true);
        if let Some(id) = app.id {
            self.pair.host(side).close(now, id);
        }
    }

    fn run_app(&mut self, side: Peer) -> Result<(), String> {
        let Self { pair, apps, spec, .. } = self;
        let app = &mut apps[side as usize];
        let Some(id) = app.id.filter(|_| !app.closed) else { return Ok(()) };
        let now = pair.now;
        let host = pair.host(side);
        let opening = |c: &Connection| matches!(c.state(), State::SynSent | State::SynReceived);
        if host.connection(id).is_none_or(|c| opening(c) && !spec.eager) {
            return Ok(());
        }
        app.write(host, id, now)?;
        if !app.at_end && now >= app.next_read {
            app.next_read = now + spec.read_every;
            app.read(host, id, spec.read_at_most)?;
        }
        if app.at_end && app.sent == app.to_send {
            app.closed = true;
            host.close(now, id);
        }
        Ok(())
    }

    /// Calls [`audit`] for both connections.
    pub fn audit(&self) -> Result<(), String> {
        [Peer::Left, Peer::Right].into_iter().filter_map(|side| self.connection(side)).try_for_each(audit)
    }

    fn describe(&self) -> String {
        let one = |side| match self.connection(side) {
            Some(c) => format!("{:?}\n", c.info()),
            None => "none\n".to_owned(),
        };
        format!("{:?}\nleft {}right {}", self.apps, one(Peer::Left), one(Peer::Right))
    }
}

/// Returns whether a packet has data, a SYN or a FIN.
fn carries_stream(packet: &[u8]) -> bool {
    segment::parse(packet).is_ok_and(|segment| {
        !segment.payload.is_empty() || segment.flags.intersects(Flags::SYN.with(Flags::FIN))
    })
}

/// Recomputes the totals that a connection keeps. An error names the wrong total.
pub fn audit(connection: &Connection) -> Result<(), String> {
    let flight = connection.flight();
    let (mut at, mut sacked, mut lost, mut resent, mut in_doubt) = (flight.una(), 0, 0, 0, 0);
    for segment in flight.iter() {
        use airtcp::flight::SegmentState;
        if segment.start != at || segment.is_empty() {
            return Err(format!("the in-flight list has a gap at {at}: {segment:?}"));
        }
        at = segment.end;
        match segment.state {
            SegmentState::InFlight => {}
            SegmentState::Sacked => sacked += segment.len(),
            SegmentState::Lost => lost += segment.len(),
            SegmentState::Resent => resent += segment.len(),
            SegmentState::InDoubt => in_doubt += segment.len(),
        }
    }
    let sums = (flight.sacked().bytes, flight.lost().bytes, flight.resent().bytes);
    let window = connection.recovery().congestion();
    let window_is_sane = window.cwnd.is_finite() && window.cwnd >= 0.0 && window.inflation() >= 0.0;
    if at != flight.max() {
        return Err(format!("the in-flight list ends at {at}, not at {}", flight.max()));
    }
    if sums != (sacked, lost + resent, resent + in_doubt) {
        return Err(format!("{sums:?} is not {sacked} {lost} {resent}"));
    }
    if !window_is_sane {
        return Err(format!("congestion window {window:?}"));
    }
    Ok(())
}
