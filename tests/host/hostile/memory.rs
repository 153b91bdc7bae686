//! The memory that a peer can make a host use, and the behaviour of a host with little memory.

use std::net::SocketAddr;

use airtcp::host::{ConnId, Host, IoError};
use airtcp::memory::RESERVE;
use airtcp::profile::Profile;
use airtcp::tcp::{SocketOptions, State};
use airtcp_testkit::exchange::Exchange;
use airtcp_testkit::hostile::segment_of;
use airtcp_testkit::pair::{Impairments, LEFT, Peer, RIGHT};
use airwire::options::Options;
use airwire::segment::{self, Flags};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use crate::common::{PROFILES, START, VARIANTS, host, pair, path, plan};

const WINDOW: u64 = 4 << 20;

/// A listening host, and clients whose packets the test writes.
struct LoadedServer {
    now: Instant,
    host: Host,
    clients: Vec<Client>,
}

#[derive(Clone)]
struct Client {
    addr: SocketAddr,
    /// `None` until the server has accepted the connection.
    id: Option<ConnId>,
    iss: Seq,
    /// The acknowledgement number that the client sends: one past the host's SYN.
    ack: Seq,
    /// The highest right edge of the window that the host has advertised.
    edge: u64,
    scale: u8,
    /// Whether the right edge has moved to the left.
    shrunk: bool,
}

const CLIENT_ISS: Seq = Seq(0xffff_0000);

impl LoadedServer {
    fn new(profile: &str, clients: u16) -> Self {
        let profile = Profile::by_name(profile).unwrap();
        let options = SocketOptions { recv_buffer: Some(WINDOW as usize), ..SocketOptions::of(&profile) };
        let mut server = Self { now: START, host: host("sack", profile), clients: vec![] };
        // The host counts its memory only if it has a limit.
        server.host.limit_memory(1 << 30);
        let listener = server.host.listen((LEFT, 80).into(), 1000, options).unwrap();
        for n in 0..clients {
            server.open(n);
            server.clients.last_mut().unwrap().id = server.host.accept(listener);
        }
        server
    }

    fn open(&mut self, n: u16) -> bool {
        let addr = SocketAddr::from((RIGHT, 10_000 + n));
        let offer =
            Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..Options::default() };
        let before = self.clients.len();
        self.packet(addr, Flags::SYN, 0, Seq(0), &offer, &[]);
        if self.clients.len() == before {
            return false;
        }
        let ack = self.clients.last().unwrap().ack;
        self.packet(addr, Flags::ACK, 1, ack, &Options::default(), &[]);
        true
    }

    fn packet(&mut self, addr: SocketAddr, flags: Flags, seq: u64, ack: Seq, offer: &Options, text: &[u8]) {
        let numbers = (CLIENT_ISS.at(seq), ack);
        let packet = segment_of((addr, (LEFT, 80).into()), flags, numbers, offer, text);
        self.host.handle_packet(self.now, &packet);
        self.drain();
    }

    fn drain(&mut self) {
        let mut packet = vec![];
        while self.host.poll_packet(self.now, &mut packet) {
            let segment = segment::parse(&packet).unwrap();
            if segment.flags.contains(Flags::SYN) {
                self.clients.push(Client {
                    addr: segment.dst,
                    id: None,
                    iss: segment.seq,
                    ack: segment.seq.at(1),
                    edge: 1 + u64::from(segment.window),
                    scale: segment.options.window_scale.unwrap(),
                    shrunk: false,
                });
                continue;
            }
            let client = self.clients.iter_mut().find(|client| client.addr == segment.dst).unwrap();
            let acked = segment.ack.offset(CLIENT_ISS, 1).unwrap();
            let edge = acked + (u64::from(segment.window) << client.scale);
            // Windows are advertised in units of 2^scale (RFC 7323 §2.4), so the edge may move by less than
            // one unit.
            client.shrunk |= edge + (1 << client.scale) <= client.edge;
            client.edge = client.edge.max(edge);
        }
    }

    fn text(&mut self, client: usize, seq: u64, text: &[u8]) {
        let Client { addr, ack, .. } = self.clients[client];
        self.packet(addr, Flags::ACK, seq, ack, &Options::default(), text);
    }

    /// Sends the segments `first..400` of each client, as far as the window of the host permits.
    fn fill_windows(&mut self, first: u64) {
        for at in (first..400).map(|segment| 1 + 1400 * segment) {
            for client in 0..self.clients.len() {
                if at + 1400 <= self.clients[client].edge {
                    self.text(client, at, &[b'x'; 1400]);
                }
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.host.handle_deadline(self.now);
        self.drain();
    }

    fn id(&self, client: usize) -> ConnId {
        self.clients[client].id.expect("the connection was accepted")
    }

    fn connection(&self, client: usize) -> &airtcp::Connection {
        self.host.connection(self.id(client)).unwrap()
    }

    fn read_all(&mut self, client: usize) -> usize {
        let (id, mut total, mut buffer) = (self.id(client), 0, vec![0; 65_536]);
        loop {
            match self.host.read(id, &mut buffer) {
                Ok(count) => total += count,
                Err(IoError::WouldBlock) => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.drain();
        total
    }
}

#[test]
fn byte_at_window_edge_costs_little_memory() {
    for profile in ["default", "linux"] {
        let mut server = LoadedServer::new(profile, 256);
        for client in 0..256 {
            // Each client sends two bytes, the second one at the right edge of the window.
            server.text(client, 1, b"x");
            server.wait(Duration::from_millis(500));
            let edge = server.clients[client].edge;
            server.text(client, edge - 1, b"x");
            assert_eq!(server.connection(client).statistics().out_of_order_segments_in, 1);
        }
        let used = server.host.memory().used;
        assert!(used < 256 * 1024, "{profile}: {used} bytes used for 512");
        assert!(server.host.memory().out_of_order > 0);
    }
}

#[test]
fn memory_for_single_bytes_with_holes_is_bounded() {
    let mut server = LoadedServer::new("default", 1);
    server.text(0, 1, &[b'x'; 1400]);
    server.text(0, 1401, &[b'x'; 1400]);
    let edge = server.clients[0].edge;
    let (mut at, mut segments) = (edge - 1, 0);
    // The bytes arrive in descending order, so each byte is needed earlier than all previous bytes.
    while at > 10_000 && segments < 20_000 {
        server.text(0, at, b"x");
        (at, segments) = (at - 3, segments + 1);
    }
    let memory = server.host.memory();
    assert!(memory.out_of_order < 1 << 20, "{memory:?} for {segments} bytes");
    assert!(memory.pruned > 0, "{memory:?}: no range was pruned");
}

/// With little memory all data still arrives, and the window never shrinks.
#[test]
fn host_with_little_memory_keeps_all_connections() {
    // In the profile `linux` the window stays small until the application reads.
    for (profile, limit) in [("default", 8 << 20), ("linux", 2 << 20)] {
        let mut server = LoadedServer::new(profile, 40);
        server.host.limit_memory(limit);
        let text = [b'x'; 1400];
        // Each client sends everything that its window permits except the first segment.
        server.fill_windows(1);
        let memory = server.host.memory();
        assert!(memory.peak <= limit, "{profile}: {memory:?}");
        assert!(memory.pruned > 0, "{profile}: {memory:?}");
        // Then the clients send in order while the application does not read.
        server.fill_windows(0);
        let memory = server.host.memory();
        let most = limit + 40 * 2 * RESERVE;
        assert!(memory.peak <= most && memory.refused_segments > 0, "{profile}: {memory:?}");
        println!("{profile}: {memory:?}");
        for client in 0..40 {
            assert_eq!(server.connection(client).state(), State::Established);
            assert!(server.connection(client).readable() >= 2800, "each client delivered its first segments");
            assert!(!server.clients[client].shrunk, "{profile}: the right edge of a window moved left");
        }
        assert!(!server.open(900), "{profile}: a SYN was answered without memory: {memory:?}");
        assert_eq!(server.host.memory().refused_connections, 1);
        // When the application reads there is room again, and all clients complete.
        for client in 0..40 {
            let mut got = server.read_all(client) as u64;
            while got < 1400 * 400 {
                server.text(client, 1 + got, &text);
                let read = server.read_all(client) as u64;
                assert!(read > 0, "{profile}: client {client} is stalled at {got}");
                got += read;
            }
        }
        assert!(server.open(901), "memory is available again");
        let memory = server.host.memory();
        assert!(memory.used < limit / 8, "{profile}: {memory:?}");
    }
}

#[test]
fn senders_share_limited_memory() {
    const LIMIT: usize = 8 << 20;
    let mut server = LoadedServer::new("default", 40);
    server.host.limit_memory(LIMIT);
    let data = vec![b'y'; 1 << 20];
    for client in 0..40 {
        let id = server.id(client);
        let taken = server.host.write(server.now, id, &data).unwrap();
        assert!(taken >= RESERVE, "{taken} bytes of client {client}");
        server.drain();
    }
    let memory = server.host.memory();
    assert!(memory.peak <= LIMIT + 40 * 2 * RESERVE, "{memory:?}");
    assert_eq!(server.connection(39).writable(), 0);
    // Acknowledged data makes room.
    let first = server.clients[0].clone();
    while server.connection(0).unacknowledged() > 0 {
        let end = server.connection(0).flight().max();
        server.packet(first.addr, Flags::ACK, 1, first.iss.at(end), &Options::default(), &[]);
    }
    assert!(server.host.memory().used < memory.used - (1 << 20));
    assert!(server.connection(0).writable() >= RESERVE);
}

/// Two applications send to each other over a lossy path, with a fortieth of the memory that they would use.
#[test]
fn streams_arrive_exact_with_little_memory() {
    for recipe in VARIANTS {
        for profile in PROFILES {
            let lossy = Impairments { loss: 0.02, ..path(20) };
            let mut pair = pair(7, recipe, profile, lossy);
            for side in [Peer::Left, Peer::Right] {
                pair.host(side).limit_memory(100_000);
            }
            let what = format!("{recipe} {profile}");
            let mut exchange = Exchange::new(pair, plan(profile, [200_000, 50_000])).unwrap();
            exchange.complete(Duration::from_secs(3600)).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}
