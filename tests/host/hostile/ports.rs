//! Many connections at one host: SYN floods, reused ports, and listeners that come and go.

use std::net::SocketAddr;

use airtcp::host::{Host, IoError};
use airtcp::profile::Profile;
use airtcp::tcp::{SocketOptions, State};
use airtcp_testkit::hostile::segment_of;
use airtcp_testkit::pair::{LEFT, Peer, RIGHT};
use airwire::options::Options;
use airwire::segment::Flags;
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use crate::common::{PROFILES, START, host, pair, path, profile};

fn syn(port: u16, seq: u32, flags: Flags) -> Vec<u8> {
    let offer = Options { mss: Some(1460), ..Options::default() };
    let ends = ((RIGHT, port).into(), (LEFT, 80).into());
    segment_of(ends, flags, (Seq(seq), Seq(0)), &offer, &[])
}

fn drain(host: &mut Host, now: Instant) -> Vec<Vec<u8>> {
    let (mut packets, mut packet) = (vec![], vec![]);
    while host.poll_packet(now, &mut packet) {
        packets.push(packet.clone());
    }
    packets
}

#[test]
fn syn_flood_uses_no_more_than_backlog() {
    for backlog in [1, 2, 7, 128] {
        let profile: Profile = profile("default");
        let mut host = host("newreno", profile.clone());
        let listener = host.listen((LEFT, 80).into(), backlog, SocketOptions::of(&profile)).unwrap();
        let mut now = START;
        let mut answers = 0;
        for i in 0..50_000_u32 {
            host.handle_packet(now, &syn(1024 + i as u16 % 60_000, i, Flags::SYN));
            answers += drain(&mut host, now).len();
        }
        // Every SYN is answered once, and no state is kept for SYNs beyond the backlog.
        assert_eq!((host.connections(), answers), (backlog, 50_000));
        assert_eq!(host.counters().gate.cookies_sent, 50_000 - backlog as u64);
        assert_eq!(host.counters().syns_dropped, 0);
        while let Some(at) = host.next_deadline() {
            now = at;
            host.handle_deadline(now);
            answers += drain(&mut host, now).len();
        }
        assert_eq!(answers, 50_000 + backlog * profile.handshake.syn_retries as usize);
        assert_eq!((host.connections(), host.accept(listener)), (0, None));
        // The listener works again.
        host.handle_packet(now, &syn(9, 9, Flags::SYN));
        assert_eq!((drain(&mut host, now).len(), host.connections()), (1, 1));
    }
}

#[test]
fn changed_backlog_applies_to_next_syn() {
    let profile: Profile = profile("default");
    let mut host = host("newreno", profile.clone());
    let listener = host.listen((LEFT, 80).into(), 1, SocketOptions::of(&profile)).unwrap();
    let mut answered = |backlog: usize| {
        host.set_backlog(listener, backlog);
        for port in 1024..1034 {
            host.handle_packet(START, &syn(port, 1, Flags::SYN));
        }
        drain(&mut host, START);
        host.connections()
    };
    assert_eq!([answered(1), answered(3), answered(2)], [1, 3, 3]);
}

#[test]
fn segment_without_connection_gets_at_most_one_reset() {
    let mut host = host("newreno", profile("default"));
    host.listen((LEFT, 81).into(), 1, SocketOptions::of(&profile("default"))).unwrap();
    for flags in 0..1 << 12 {
        // One combination per second, so that the limit on resets per second does not apply.
        let now = START + Duration::from_secs(flags.into());
        let flags = Flags(flags);
        host.handle_packet(now, &syn(7, 1, flags));
        let expected = usize::from(!flags.contains(Flags::RST));
        assert_eq!(drain(&mut host, now).len(), expected, "{flags:?}");
    }
    let now = START + Duration::from_secs(1 << 12);
    // The queue of replies is bounded, even if very many packets arrive before the queue drains.
    for _ in 0..100_000 {
        host.handle_packet(now, &syn(7, 1, Flags::ACK));
    }
    assert!(drain(&mut host, now).len() <= 256);
    assert_eq!(host.connections(), 0);
}

/// One client port, many successive connections. Each finds its predecessor in TIME-WAIT at one of the two
/// hosts.
#[test]
fn short_connections_reuse_one_port() {
    for profile_name in PROFILES {
        let mut pair = pair(1, "newreno", profile_name, path(1));
        let options = SocketOptions::of(&profile(profile_name));
        let listener = pair.right.listen((RIGHT, 80).into(), 16, options.clone()).unwrap();
        for round in 0..3000_u32 {
            let local = (LEFT, 5000).into();
            let id = pair.left.connect(pair.now, Some(local), (RIGHT, 80).into(), options.clone()).unwrap();
            let peer = loop {
                assert!(pair.step(), "round {round}: no connection");
                if let Some(peer) = pair.right.accept(listener) {
                    break peer;
                }
            };
            let hello = round.to_be_bytes();
            // The server closes first, so its host keeps the TIME-WAIT that the next SYN must get past.
            pair.right.write(pair.now, peer, &hello).unwrap();
            pair.right.close(pair.now, peer);
            let mut buffer = [0; 8];
            let received = loop {
                assert!(pair.step(), "round {round}: no data");
                match pair.left.read(id, &mut buffer) {
                    Ok(n) => break n,
                    Err(IoError::WouldBlock) => {}
                    Err(error) => panic!("round {round}: {error}"),
                }
            };
            assert_eq!(buffer[..received], hello);
            pair.left.close(pair.now, id);
            while pair.left.connections() > 0 {
                assert!(pair.step(), "round {round}: the client's connection remains");
            }
        }
        assert_eq!(pair.right.connections(), 1, "the last TIME-WAIT");
        while pair.step() {}
        assert_eq!((pair.left.connections(), pair.right.connections()), (0, 0));
    }
}

/// The client can connect again after it has aborted its connections on all ephemeral ports.
#[test]
fn ephemeral_ports_are_reusable_after_exhaustion() {
    let mut pair = pair(1, "newreno", "default", path(0));
    let options = SocketOptions::of(&profile("default"));
    pair.right.listen((RIGHT, 80).into(), 1, options.clone()).unwrap();
    let mut ids = vec![];
    let error = loop {
        match pair.left.connect(pair.now, None, (RIGHT, 80).into(), options.clone()) {
            Ok(id) => ids.push(id),
            Err(error) => break error,
        }
    };
    assert_eq!(ids.len(), 65_536 - 49_152, "{error}");
    for id in ids {
        pair.left.abort(id);
        pair.left.close(pair.now, id);
    }
    pair.drain();
    assert_eq!(pair.left.connections(), 0);
    pair.left.connect(pair.now, None, (RIGHT, 80).into(), options).unwrap();
}

/// RFC 6056 §3.3.4: a destination cannot count the host's connections to others by the port numbers of its
/// own connections. Few destinations share one of the 1024 counters.
#[test]
fn ports_do_not_reveal_connections_to_other_destinations() {
    let ports = |other: Option<u8>| {
        let mut host = host("newreno", profile("default"));
        let options = SocketOptions::of(&profile("default"));
        let mut connect = |to: SocketAddr| {
            let id = host.connect(START, None, to, options.clone()).unwrap();
            host.connection(id).unwrap().local().port()
        };
        let first = connect((RIGHT, 80).into());
        if let Some(other) = other {
            connect(([203, 0, 113, other], 80).into());
        }
        [first, connect((RIGHT, 80).into())]
    };
    let alone = ports(None);
    let revealed = (0..200).filter(|other| ports(Some(*other)) != alone).count();
    assert!(revealed <= 2, "{revealed} of 200 destinations share a counter");
}

#[test]
fn closed_listener_resets_unaccepted_connections() {
    let mut pair = pair(1, "newreno", "default", path(1));
    let options = SocketOptions::of(&profile("default"));
    let listener = pair.right.listen((RIGHT, 80).into(), 4, options.clone()).unwrap();
    let id = pair.left.connect(pair.now, None, (RIGHT, 80).into(), options.clone()).unwrap();
    while pair.left.connection(id).unwrap().state() != State::Established {
        assert!(pair.step());
    }
    pair.step();
    pair.right.unlisten(listener);
    assert_eq!(pair.right.accept(listener), None);
    while pair.step() {}
    assert_eq!(pair.host(Peer::Right).connections(), 0);
    let state = pair.left.connection(id).unwrap();
    assert_eq!((state.state(), state.ended().is_some()), (State::Closed, true));
    pair.right.listen((RIGHT, 80).into(), 4, options).unwrap();
}

#[test]
fn time_wait_lasts_one_minute() {
    let mut pair = pair(1, "newreno", "default", path(1));
    let options = SocketOptions::of(&profile("default"));
    let listener = pair.right.listen((RIGHT, 80).into(), 4, options.clone()).unwrap();
    let id = pair.left.connect(pair.now, None, (RIGHT, 80).into(), options).unwrap();
    let peer = loop {
        assert!(pair.step());
        if let Some(peer) = pair.right.accept(listener) {
            break peer;
        }
    };
    pair.left.close(pair.now, id);
    while pair.right.connection(peer).unwrap().state() != State::CloseWait {
        assert!(pair.step());
    }
    pair.right.close(pair.now, peer);
    while pair.right.connections() > 0 {
        assert!(pair.step());
    }
    let begin = pair.now;
    while pair.step() {}
    assert_eq!(pair.left.connections(), 0);
    assert!(pair.now >= begin + Duration::from_secs(60) - Duration::from_millis(10), "{}", pair.now);
    assert!(pair.now < begin + Duration::from_secs(61), "{}", pair.now);
}
