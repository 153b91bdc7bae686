//! A host that hands over pieces sends what it sends packet by packet, octet for octet, and for the same reasons.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use airtcp::host::{Host, HostConfig};
use airtcp::profile::Profile;
use airtcp::recovery::{Decision, Recipe};
use airtcp::tcp::SocketOptions;
use airtcp_testkit::exchange::Exchange;
use airtcp_testkit::pair::{Peer, Polled};
use airtcp_testkit::pieces::cut;
use airwire::piece::Piece;
use airwire::segment::{parse_ip, parse_tcp};
use airwire::time::{Duration, Instant};

use crate::catalogue::{bad_world, every_recipe};

type Recording = Vec<(Instant, Peer, Vec<u8>)>;

/// All that both hosts have sent, when, and why the left one has.
fn run(mut exchange: Exchange, polled: Polled) -> (Recording, Vec<Decision>) {
    exchange.pair.polled = polled;
    exchange.recording = Some(Recording::new());
    let mut trace = Vec::new();
    while !exchange.is_complete() {
        assert!(exchange.step().unwrap() || exchange.is_complete(), "it stands still");
        trace.extend(exchange.take_trace(Peer::Left));
    }
    (exchange.recording.unwrap_or_default(), trace)
}

#[test]
fn every_recipe_sends_the_same_in_pieces_on_a_bad_path() {
    every_recipe("pieces", 20, 1, |recipe, seed| {
        let world = |polled| run(bad_world(recipe, seed).0, polled);
        let (packets, why) = world(Polled::Packets);
        assert!(packets.len() > 100, "{} packets are no test", packets.len());
        for polled in [Polled::Pieces, Polled::ByTurns(false)] {
            let (pieces, why_in_pieces) = world(polled);
            let differs = packets.iter().zip(&pieces).position(|(a, b)| a != b);
            let around = differs.map(|at| (&packets[at], &pieces[at]));
            assert!(packets == pieces, "{polled:?}, {differs:?}: {around:?}");
            assert!(why == why_in_pieces, "{polled:?}: decisions differ");
        }
    });
}

/// Three connections of IPv6 with different amounts to send, in pieces or packets by turns: each has its own stream of packets.
#[test]
fn connections_side_by_side_each_send_the_same() {
    let packets = sent_by_three(|_| Polled::Packets);
    let texts: Vec<usize> = packets.values().map(|sent| sent.iter().map(Vec::len).sum()).collect();
    assert!(texts.iter().all(|octets| *octets > 5_000), "{texts:?}");
    assert!(sent_by_three(|_| Polled::Pieces) == packets);
    // And asked now so, now so.
    let by_turns = |polls: usize| if polls.is_multiple_of(2) { Polled::Pieces } else { Polled::Packets };
    assert!(sent_by_three(by_turns) == packets);
}

/// What each port has sent, if the host is asked in these ways.
fn sent_by_three(polled: impl Fn(usize) -> Polled) -> BTreeMap<u16, Vec<Vec<u8>>> {
    let addrs = ["fd00::1", "fd00::2"].map(|addr| addr.parse::<IpAddr>().unwrap());
    let [mut client, mut server] = addrs.map(|addr| {
        let (profile, recipe) = (Profile::default(), Recipe::ordinary());
        Host::new(HostConfig { addrs: vec![addr], mtu: 1400, profile, recipe, seed: 5 })
    });
    let (port, options) = (SocketAddr::new(addrs[1], 80), SocketOptions::of(client.profile()));
    let listener = server.listen(port, 8, options.clone()).unwrap();
    let mut now = Instant::ZERO;
    let ids = [(); 3].map(|()| client.connect(now, None, port, options.clone()).unwrap());
    let (mut packet, mut piece, mut sent) = (Vec::new(), Piece::default(), BTreeMap::<_, Vec<_>>::new());
    let mut polls = 0;
    for round in 0..12 {
        for (id, octets) in ids.into_iter().zip([40_000, 9_000, 800]) {
            // The handshake takes the first rounds.
            if (3..10).contains(&round) {
                client.write(now, id, &vec![round; octets]).unwrap();
            } else if round == 10 {
                client.shutdown_write(now, id).unwrap();
            }
        }
        loop {
            polls += 1;
            let packets = match polled(polls) {
                Polled::Packets if client.poll_packet(now, &mut packet) => vec![packet.clone()],
                Polled::Pieces if client.poll_piece(now, &mut piece) => cut(&piece),
                _ => break,
            };
            for packet in packets {
                server.handle_packet(now, &packet);
                let port = parse_tcp(&parse_ip(&packet).unwrap()).unwrap().src.port();
                sent.entry(port).or_default().push(packet);
            }
        }
        while let Some(id) = server.accept(listener) {
            // Whoever reads nothing has a window that closes.
            server.set_options(now, id, SocketOptions { recv_buffer: 1 << 20, ..options.clone() });
        }
        while server.poll_packet(now, &mut packet) {
            client.handle_packet(now, &packet);
        }
        now += Duration::from_millis(50);
        client.handle_deadline(now);
        server.handle_deadline(now);
    }
    sent
}
