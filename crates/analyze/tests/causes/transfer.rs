//! Two hosts with applications, joined by a path, in virtual time.

use airlink::capture::{InMemory, Tap};
use airlink::machine::{Machine, Port, catch_up, drain};
use airlink::path::{FIXED, MOBILE, Path};
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airtcp::host::{ConnId, Host, HostConfig, ListenId};
use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airwire::time::{Duration, Instant};

/// The behaviour of the two applications. The server is at the fixed side.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// The server writes this number of bytes at full speed.
    Bulk(usize),
    /// The server writes chunks of this size, with pauses.
    Chunks { bytes: usize, pause: Duration },
    /// The client sends requests one after the other. Both ends may think before they send.
    Requests { answer: usize, client_thinks: Duration, server_thinks: Duration },
    /// The server writes two short pieces for each of the client's requests.
    Pieces([usize; 2]),
}

/// A transfer and its conditions.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub scenario: String,
    /// The path changes at this time into this one.
    pub later: Option<(Duration, String)>,
    pub pattern: Pattern,
    /// The server's recipe.
    pub recipe: &'static str,
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
    /// Bytes per second that the client reads.
    pub read_rate: Option<u64>,
    pub window_scaling: bool,
    pub nagle: bool,
    /// Whether the client delays every ACK, without the quick ACKs of Linux.
    pub delays_acks: bool,
    /// Whether the client connects to a port without a server.
    pub is_refused: bool,
    pub client_closes_after: Option<Duration>,
    /// The path drops longer packets of the server.
    pub drops_longer_than: Option<usize>,
    pub lasts: Duration,
}

impl Transfer {
    /// A bulk transfer from a Linux sender.
    pub(crate) fn over(scenario: String) -> Self {
        Self {
            scenario,
            later: None,
            pattern: Pattern::Bulk(usize::MAX),
            recipe: "linux",
            send_buffer: None,
            receive_buffer: None,
            read_rate: None,
            window_scaling: true,
            nagle: false,
            delays_acks: false,
            is_refused: false,
            client_closes_after: None,
            drops_longer_than: None,
            lasts: Duration::from_secs(12),
        }
    }

    /// Runs the transfer. Returns the captures at the server and at the client.
    pub(crate) fn run(&self, seed: u64) -> [Vec<u8>; 2] {
        let mut run = Run::new(self, seed);
        if let Some((at, scenario)) = &self.later {
            run.to(Instant::ZERO + *at);
            let scenario = Scenario::parse(scenario, "later").unwrap();
            run.path = scenario.build(Some(seed + 1), Recording::Off, false).unwrap();
        }
        run.to(Instant::ZERO + self.lasts);
        run.taps.map(InMemory::into_octets)
    }
}

const SERVER: &str = "10.0.0.1:80";
const NO_SERVER: &str = "10.0.0.1:81";
const PORTS: [Port; 2] = [FIXED, MOBILE];
const REQUEST: usize = 200;

struct Run {
    transfer: Transfer,
    now: Instant,
    path: Path,
    /// The server and the client.
    hosts: [Host; 2],
    connections: [Option<ConnId>; 2],
    listener: ListenId,
    taps: [InMemory; 2],
    arrivals: Vec<(Port, Vec<u8>)>,
    /// Bytes that the server still has to write, and that each end still has to read.
    to_write: usize,
    to_read: [usize; 2],
    second_piece: Option<usize>,
    /// When each application acts next.
    acts_at: [Option<Instant>; 2],
    read: u64,
    begun: Instant,
    closes_at: Option<Instant>,
}

/// Returns the server's host and the client's.
fn hosts(transfer: &Transfer, mtu: usize, seed: u64) -> [Host; 2] {
    let profile = Profile::linux().with(|profile| {
        if !transfer.window_scaling {
            profile.handshake.window_scale = None;
        }
    });
    let host = |address: &str, recipe: &str, profile: &Profile, seed: u64| {
        Host::new(HostConfig {
            addrs: vec![address.parse().unwrap()],
            mtu,
            profile: profile.clone(),
            recipe: recipe.parse().unwrap(),
            seed,
        })
    };
    let client = match transfer.delays_acks {
        true => host("10.128.0.1", "newreno+delack", &Profile::default(), seed + 1),
        false => host("10.128.0.1", transfer.recipe, &profile, seed + 1),
    };
    [host("10.0.0.1", transfer.recipe, &profile, seed), client]
}

fn listen(host: &mut Host, transfer: &Transfer) -> ListenId {
    let mut options = SocketOptions::of(host.profile());
    options.nodelay = !transfer.nagle;
    options.send_buffer = transfer.send_buffer.unwrap_or(options.send_buffer);
    host.listen(SERVER.parse().unwrap(), 1, options).unwrap()
}

fn connect(host: &mut Host, transfer: &Transfer) -> ConnId {
    let mut options = SocketOptions::of(host.profile());
    options.nodelay = true;
    options.recv_buffer = transfer.receive_buffer;
    let server = if transfer.is_refused { NO_SERVER } else { SERVER };
    host.connect(Instant::ZERO, None, server.parse().unwrap(), options).unwrap()
}

impl Run {
    fn new(transfer: &Transfer, seed: u64) -> Self {
        let scenario = Scenario::parse(&transfer.scenario, "scenario").unwrap();
        let mut hosts = hosts(transfer, scenario.mtu.into(), seed);
        let listener = listen(&mut hosts[0], transfer);
        let client = connect(&mut hosts[1], transfer);
        Self {
            path: scenario.build(Some(seed), Recording::Off, false).unwrap(),
            transfer: transfer.clone(),
            now: Instant::ZERO,
            hosts,
            connections: [None, Some(client)],
            listener,
            taps: Default::default(),
            arrivals: Vec::new(),
            to_write: 0,
            to_read: [0; 2],
            second_piece: None,
            acts_at: [None; 2],
            read: 0,
            begun: Instant::ZERO,
            closes_at: transfer.client_closes_after.map(|after| Instant::ZERO + after),
        }
    }

    fn to(&mut self, end: Instant) {
        while self.now < end {
            while self.step() {}
            let deadlines = self.hosts.iter().map(Host::next_deadline).chain(self.acts_at);
            let next = deadlines.chain([self.path.next_deadline(), self.closes_at]).flatten().min();
            let Some(next) = next.filter(|next| *next < end) else { return };
            self.now = next.max(self.now);
            let arrivals = &mut self.arrivals;
            catch_up(&mut self.path, self.now, |_, port, packet| arrivals.push((port, packet)));
            for host in &mut self.hosts {
                host.handle_deadline(self.now);
            }
        }
    }

    /// Does everything that is possible at this instant. Returns whether anything happened.
    fn step(&mut self) -> bool {
        let mut has_changed = self.applications();
        let mut packet = Vec::new();
        for (side, port) in PORTS.into_iter().enumerate() {
            while self.hosts[side].poll_packet(self.now, &mut packet) {
                has_changed = true;
                self.taps[side].packet(self.now, &packet);
                let is_too_long = self.transfer.drops_longer_than.is_some_and(|most| packet.len() > most);
                if side == 0 && is_too_long {
                    packet.clear();
                    continue;
                }
                self.path.handle_packet(self.now, port, std::mem::take(&mut packet));
                let arrivals = &mut self.arrivals;
                drain(&mut self.path, self.now, |_, port, packet| arrivals.push((port, packet)));
            }
        }
        for (port, packet) in std::mem::take(&mut self.arrivals) {
            has_changed = true;
            self.taps[port.0].packet(self.now, &packet);
            self.hosts[port.0].handle_packet(self.now, &packet);
        }
        has_changed
    }

    fn applications(&mut self) -> bool {
        if self.connections[0].is_none() {
            self.connections[0] = self.hosts[0].accept(self.listener);
            if self.connections[0].is_none() {
                return false;
            }
            self.begin();
        }
        if self.closes_at.is_some_and(|at| at <= self.now) {
            self.closes_at = None;
            self.hosts[1].close(self.now, self.connections[1].unwrap());
        }
        let mut has_changed = self.write_second_piece();
        for side in 0..2 {
            if self.acts_at[side].is_some_and(|at| at <= self.now) {
                self.acts_at[side] = None;
                self.act(side);
                has_changed = true;
            }
        }
        has_changed |= self.write_rest();
        has_changed | self.read_all(0) | self.read_all(1)
    }

    fn write_second_piece(&mut self) -> bool {
        let Some(bytes) = self.second_piece.take() else { return false };
        let id = self.connections[0].unwrap();
        let _ = self.hosts[0].write(self.now, id, &vec![2; bytes]);
        true
    }

    fn begin(&mut self) {
        self.begun = self.now;
        match self.transfer.pattern {
            Pattern::Bulk(bytes) => self.to_write = bytes,
            Pattern::Chunks { .. } => self.acts_at[0] = Some(self.now),
            Pattern::Requests { .. } | Pattern::Pieces(_) => self.acts_at[1] = Some(self.now),
        }
    }

    /// Lets an application send after its pause.
    fn act(&mut self, side: usize) {
        match self.transfer.pattern {
            Pattern::Bulk(_) => {}
            Pattern::Chunks { bytes, pause } => {
                self.to_write = self.to_write.saturating_add(bytes);
                self.acts_at[0] = Some(self.now + pause);
            }
            Pattern::Requests { answer, .. } => self.send_message(side, answer),
            Pattern::Pieces(pieces) => self.send_message(side, pieces.iter().sum()),
        }
    }

    fn send_message(&mut self, side: usize, answer: usize) {
        if side == 1 {
            let id = self.connections[1].unwrap();
            let _ = self.hosts[1].write(self.now, id, &[1; REQUEST]);
            (self.to_read[0], self.to_read[1]) = (REQUEST, answer);
        } else if let Pattern::Pieces(pieces) = self.transfer.pattern {
            let id = self.connections[0].unwrap();
            // The first piece leaves before the second one is written.
            let _ = self.hosts[0].write(self.now, id, &vec![2; pieces[0]]);
            self.second_piece = Some(pieces[1]);
        } else {
            self.to_write = answer;
        }
    }

    fn write_rest(&mut self) -> bool {
        let id = self.connections[0].unwrap();
        let mut has_changed = false;
        while self.to_write > 0 {
            let chunk = [0; 16_384];
            let Ok(written) = self.hosts[0].write(self.now, id, &chunk[..self.to_write.min(chunk.len())])
            else {
                break;
            };
            self.to_write -= written;
            has_changed = true;
        }
        has_changed
    }

    fn read_all(&mut self, side: usize) -> bool {
        let Some(id) = self.connections[side] else { return false };
        let mut buffer = [0; 4096];
        let mut has_changed = false;
        loop {
            if side == 1
                && let Some(rate) = self.transfer.read_rate
            {
                let due = self.begun + Duration::from_secs_f64(self.read as f64 / rate as f64);
                if due > self.now {
                    self.acts_at[1] = Some(due);
                    return has_changed;
                }
            }
            let Ok(read @ 1..) = self.hosts[side].read(id, &mut buffer) else { return has_changed };
            has_changed = true;
            self.read += if side == 1 { read as u64 } else { 0 };
            let pending = &mut self.to_read[side];
            if *pending > 0 {
                *pending = pending.saturating_sub(read);
                if *pending == 0 {
                    let pause = match self.transfer.pattern {
                        Pattern::Requests { client_thinks, server_thinks, .. } => {
                            [server_thinks, client_thinks][side]
                        }
                        _ => Duration::ZERO,
                    };
                    self.acts_at[side] = Some(self.now + pause);
                }
            }
        }
    }
}
