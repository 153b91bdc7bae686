//! What a peer can cost in memory, and what a host does that has little.

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

use super::world::{PROFILES, START, VARIANTS, host, pair, path, plan};

const WINDOW: u64 = 4 << 20;

/// A host that listens, and clients that say what they like.
struct Served {
    now: Instant,
    host: Host,
    clients: Vec<Client>,
}

#[derive(Clone)]
struct Client {
    addr: SocketAddr,
    id: ConnId,
    iss: Seq,
    /// Of its last ACK.
    ack: Seq,
    /// The right edge of the window.
    edge: u64,
    scale: u8,
    /// That edge has moved to the left.
    shrunk: bool,
}

const CLIENT_ISS: Seq = Seq(0xffff_0000);

impl Served {
    fn new(profile: &str, clients: u16) -> Self {
        let profile = Profile::by_name(profile).unwrap();
        let options = SocketOptions { recv_buffer: WINDOW as usize, ..SocketOptions::of(&profile) };
        let mut served = Self { now: START, host: host("sack", profile), clients: vec![] };
        // So that it counts.
        served.host.limit_memory(1 << 30);
        let listener = served.host.listen((LEFT, 80).into(), 1000, options).unwrap();
        for n in 0..clients {
            served.open(n);
            let id = served.host.accept(listener).unwrap();
            served.clients.last_mut().unwrap().id = id;
        }
        served
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
            let ip = segment::parse_ip(&packet).unwrap();
            let segment = segment::parse_tcp(&ip).unwrap();
            if segment.flags.contains(Flags::SYN) {
                let id = self.clients.last().map_or_else(no_id, |client| client.id);
                self.clients.push(Client {
                    addr: segment.dst,
                    id,
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
            // What is promised is told in whole units (RFC 7323 §2.4).
            client.shrunk |= edge + (1 << client.scale) <= client.edge;
            client.edge = client.edge.max(edge);
        }
    }

    fn text(&mut self, client: usize, seq: u64, text: &[u8]) {
        let Client { addr, ack, .. } = self.clients[client];
        self.packet(addr, Flags::ACK, seq, ack, &Options::default(), text);
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.host.handle_deadline(self.now);
        self.drain();
    }

    fn connection(&self, client: usize) -> &airtcp::Connection {
        self.host.connection(self.clients[client].id).unwrap()
    }

    fn read_all(&mut self, client: usize) -> usize {
        let (id, mut total, mut buffer) = (self.clients[client].id, 0, vec![0; 65_536]);
        loop {
            match self.host.read(self.now, id, &mut buffer) {
                Ok(count) => total += count,
                Err(IoError::WouldBlock) => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.drain();
        total
    }
}

/// Of a host that has none: never used.
fn no_id() -> ConnId {
    let profile = Profile::default();
    let options = SocketOptions::of(&profile);
    host("sack", profile).connect(START, None, (RIGHT, 1).into(), options).unwrap()
}

#[test]
fn an_octet_at_the_far_edge_costs_little_more_than_an_octet() {
    for profile in ["default", "linux"] {
        let mut served = Served::new(profile, 256);
        for client in 0..256 {
            // Two octets each, the second at the edge of the window.
            served.text(client, 1, b"x");
            served.wait(Duration::from_millis(500));
            let edge = served.clients[client].edge;
            served.text(client, edge - 1, b"x");
            assert_eq!(served.connection(client).statistics().out_of_order_segments_in, 1);
        }
        let used = served.host.memory().used;
        assert!(used < 256 * 1024, "{profile}: {used} octets for 512");
        assert!(served.host.memory().out_of_order > 0);
    }
}

#[test]
fn single_octets_with_holes_between_them_are_limited_by_the_buffer() {
    let mut served = Served::new("default", 1);
    served.text(0, 1, &[b'x'; 1400]);
    served.text(0, 1401, &[b'x'; 1400]);
    let edge = served.clients[0].edge;
    let (mut at, mut segments) = (edge - 1, 0);
    // From the end, so that each of them is worth more than those before.
    while at > 10_000 && segments < 20_000 {
        served.text(0, at, b"x");
        (at, segments) = (at - 3, segments + 1);
    }
    let memory = served.host.memory();
    assert!(memory.out_of_order < 1 << 20, "{memory:?} for {segments} octets");
    assert!(memory.pruned > 0, "{memory:?}: the last of them made room");
}

/// However little memory there is, whatever is sent arrives, and no window is ever taken back.
#[test]
fn a_host_with_little_memory_prunes_and_offers_less_and_ends_nothing() {
    // A window of the profile `linux` is small until the application has read.
    for (profile, limit) in [("default", 8 << 20), ("linux", 2 << 20)] {
        let mut served = Served::new(profile, 40);
        served.host.limit_memory(limit);
        let text = [b'x'; 1400];
        // Each sends all its window permits but the first segment, as far as it is taken.
        for round in 1..400 {
            for client in 0..40 {
                let at = 1 + 1400 * round;
                if at + 1400 <= served.clients[client].edge {
                    served.text(client, at, &text);
                }
            }
        }
        let memory = served.host.memory();
        assert!(memory.most <= limit, "{profile}: {memory:?}");
        assert!(memory.pruned > 0, "{profile}: {memory:?}");
        // Then in order, and nobody reads.
        for round in 0..400 {
            for client in 0..40 {
                let at = 1 + 1400 * round;
                if at + 1400 <= served.clients[client].edge {
                    served.text(client, at, &text);
                }
            }
        }
        let memory = served.host.memory();
        let most = limit + 40 * 2 * RESERVE;
        assert!(memory.most <= most && memory.refused_segments > 0, "{profile}: {memory:?}");
        println!("{profile}: {memory:?}");
        for client in 0..40 {
            assert_eq!(served.connection(client).state(), State::Established);
            assert!(served.connection(client).readable() >= 2800, "each has got through");
            assert!(!served.clients[client].shrunk, "{profile}: a window was taken back");
        }
        assert!(!served.open(900), "{profile}: a SYN is answered: {memory:?}");
        assert_eq!(served.host.memory().refused_connections, 1);
        // When the application reads there is room again, and everybody comes to the end.
        for client in 0..40 {
            let mut got = served.read_all(client) as u64;
            while got < 1400 * 400 {
                served.text(client, 1 + got, &text);
                let read = served.read_all(client) as u64;
                assert!(read > 0, "{profile}: client {client} does not get on at {got}");
                got += read;
            }
        }
        assert!(served.open(901), "there is room again");
        let memory = served.host.memory();
        assert!(memory.used < limit / 8, "{profile}: {memory:?}");
    }
}

#[test]
fn senders_share_what_there_is() {
    const LIMIT: usize = 8 << 20;
    let mut served = Served::new("default", 40);
    served.host.limit_memory(LIMIT);
    let data = vec![b'y'; 1 << 20];
    for client in 0..40 {
        let id = served.clients[client].id;
        let taken = served.host.write(served.now, id, &data).unwrap();
        assert!(taken >= RESERVE, "{taken} octets of client {client}");
        served.drain();
    }
    let memory = served.host.memory();
    assert!(memory.most <= LIMIT + 40 * 2 * RESERVE, "{memory:?}");
    assert_eq!(served.connection(39).writable(), 0);
    // What is acknowledged makes room.
    let first = served.clients[0].clone();
    while served.connection(0).unacknowledged() > 0 {
        let end = served.connection(0).flight().max();
        served.packet(first.addr, Flags::ACK, 1, first.iss.at(end), &Options::default(), &[]);
    }
    assert!(served.host.memory().used < memory.used - (1 << 20));
    assert!(served.connection(0).writable() >= RESERVE);
}

/// Two programs that send to each other over a path with losses, with a fortieth of the memory that they would like.
#[test]
fn every_octet_arrives_however_little_memory_there_is() {
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
