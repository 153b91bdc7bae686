//! A host that emits multi-segment pieces sends the same bytes, for the same reasons, as one that emits
//! single packets.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use airtcp::host::{ConnId, Host, HostConfig, ListenId};
use airtcp::profile::Profile;
use airtcp::recovery::{Decision, Recipe};
use airtcp::tcp::SocketOptions;
use airtcp_testkit::exchange::Exchange;
use airtcp_testkit::pair::{Peer, Polled};
use airtcp_testkit::pieces::split;
use airwire::piece::Piece;
use airwire::segment::parse;
use airwire::time::{Duration, Instant};

use crate::catalogue::{bad_world, every_recipe};

type Recording = Vec<(Instant, Peer, Vec<u8>)>;

/// Returns all packets that both hosts sent, with their times, and the decisions of the left host.
fn run(mut exchange: Exchange, polled: Polled) -> (Recording, Vec<Decision>) {
    exchange.pair.polled = polled;
    exchange.recording = Some(Recording::new());
    let mut trace = Vec::new();
    while !exchange.is_complete() {
        assert!(exchange.step().unwrap() || exchange.is_complete(), "the exchange is stalled");
        trace.extend(exchange.take_trace(Peer::Left));
    }
    (exchange.recording.unwrap_or_default(), trace)
}

#[test]
fn every_recipe_sends_same_packets_in_pieces() {
    every_recipe("pieces", 20, 1, |recipe, seed| {
        let world = |polled| run(bad_world(recipe, seed).0, polled);
        let (packets, why) = world(Polled::Packets);
        assert!(packets.len() > 100, "only {} packets", packets.len());
        for polled in [Polled::Pieces, Polled::Alternating(false)] {
            let (pieces, why_in_pieces) = world(polled);
            let differs = packets.iter().zip(&pieces).position(|(a, b)| a != b);
            let around = differs.map(|at| (&packets[at], &pieces[at]));
            assert!(packets == pieces, "{polled:?}, {differs:?}: {around:?}");
            assert!(why == why_in_pieces, "{polled:?}: decisions differ");
        }
    });
}

/// Three IPv6 connections send different amounts of data, as pieces, as packets, or alternately. The packets
/// of each connection are the same in all cases.
#[test]
fn concurrent_connections_send_same_packets_in_pieces() {
    let packets = packets_by_port(|_| Polled::Packets);
    let texts: Vec<usize> = packets.values().map(|sent| sent.iter().map(Vec::len).sum()).collect();
    assert!(texts.iter().all(|octets| *octets > 5_000), "{texts:?}");
    assert!(packets_by_port(|_| Polled::Pieces) == packets);
    // Alternate between pieces and packets.
    let by_turns = |polls: usize| if polls.is_multiple_of(2) { Polled::Pieces } else { Polled::Packets };
    assert!(packets_by_port(by_turns) == packets);
}

/// Returns the packets from each port. `polled` chooses how the host is polled each time.
fn packets_by_port(polled: impl Fn(usize) -> Polled) -> BTreeMap<u16, Vec<Vec<u8>>> {
    let mut connections = Connections::open();
    let mut sent = BTreeMap::<_, Vec<_>>::new();
    let mut polls = 0;
    for round in 0..12 {
        connections.write(round);
        loop {
            polls += 1;
            let Some(packets) = connections.poll_client(polled(polls)) else { break };
            for packet in packets {
                connections.server.handle_packet(connections.now, &packet);
                let port = parse(&packet).unwrap().src.port();
                sent.entry(port).or_default().push(packet);
            }
        }
        connections.answer();
        connections.wait();
    }
    sent
}

/// Three connections between two hosts.
struct Connections {
    client: Host,
    server: Host,
    listener: ListenId,
    ids: [ConnId; 3],
    options: SocketOptions,
    piece: Piece,
    now: Instant,
}

impl Connections {
    fn open() -> Self {
        let addrs = ["fd00::1", "fd00::2"].map(|addr| addr.parse::<IpAddr>().unwrap());
        let [mut client, mut server] = addrs.map(|addr| {
            let (profile, recipe) = (Profile::default(), Recipe::default());
            Host::new(HostConfig { addrs: vec![addr], mtu: 1400, profile, recipe, seed: 5 })
        });
        let (port, options) = (SocketAddr::new(addrs[1], 80), SocketOptions::of(client.profile()));
        let listener = server.listen(port, 8, options.clone()).unwrap();
        let now = Instant::ZERO;
        let ids = [(); 3].map(|()| client.connect(now, None, port, options.clone()).unwrap());
        Self { client, server, listener, ids, options, piece: Piece::default(), now }
    }

    /// Writes data to each connection after the handshake, which takes the first three rounds, and closes the
    /// connections at the end.
    fn write(&mut self, round: u8) {
        for (id, octets) in self.ids.into_iter().zip([40_000, 9_000, 800]) {
            if (3..10).contains(&round) {
                self.client.write(self.now, id, &vec![round; octets]).unwrap();
            } else if round == 10 {
                self.client.shutdown_write(id).unwrap();
            }
        }
    }

    /// Returns the next packets of the client, if it has any.
    fn poll_client(&mut self, polled: Polled) -> Option<Vec<Vec<u8>>> {
        let mut packet = Vec::new();
        match polled {
            Polled::Packets if self.client.poll_packet(self.now, &mut packet) => Some(vec![packet]),
            Polled::Pieces if self.client.poll_piece(self.now, &mut self.piece) => Some(split(&self.piece)),
            _ => None,
        }
    }

    /// Delivers the packets of the server to the client.
    fn answer(&mut self) {
        while let Some(id) = self.server.accept(self.listener) {
            // The receiver does not read, so its buffer must hold the whole stream.
            let options = SocketOptions { recv_buffer: Some(1 << 20), ..self.options.clone() };
            self.server.set_options(self.now, id, options);
        }
        let mut packet = Vec::new();
        while self.server.poll_packet(self.now, &mut packet) {
            self.client.handle_packet(self.now, &packet);
        }
    }

    fn wait(&mut self) {
        self.now += Duration::from_millis(50);
        self.client.handle_deadline(self.now);
        self.server.handle_deadline(self.now);
    }
}
