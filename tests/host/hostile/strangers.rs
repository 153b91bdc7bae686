//! Unknown clients: floods of forged SYNs, sources that take too much, and packets whose only purpose is to
//! provoke answers to a third party.

use std::net::{IpAddr, SocketAddr};

use airtcp::host::{ConnId, Host, HostConfig, IoError, Limits, ListenId};
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::{SocketOptions, State};
use airtcp_testkit::hostile::segment_of;
use airtcp_testkit::pair::{LEFT, Pair, RIGHT};
use airwire::options::{Options, Timestamps};
use airwire::segment::{self, Flags, Segment};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use crate::common::{PROFILES, START, host, pair, path, profile};

pub(super) const SERVER: SocketAddr = SocketAddr::new(LEFT, 80);

/// SYN number `i` of a flood. Each has a different source address, and no host exists there.
fn forged(i: u32, to: SocketAddr) -> Vec<u8> {
    let source = SocketAddr::new([198, 18, (i >> 8) as u8, i as u8].into(), 1024 + (i % 60_000) as u16);
    segment_of((source, to), Flags::SYN, (Seq(i.wrapping_mul(77_777)), Seq(0)), &full(), &[])
}

/// The options of a typical SYN.
pub(super) fn full() -> Options {
    Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: 1000, ecr: 0 }),
        ..Options::default()
    }
}

fn mss_only() -> Options {
    Options { mss: Some(1400), ..Options::default() }
}

/// A packet that left the host.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Reply {
    pub(super) to: SocketAddr,
    pub(super) flags: Flags,
    pub(super) seq: Seq,
    pub(super) ack: Seq,
    pub(super) options: Options,
}

/// A listening host whose clients are the test itself.
pub(super) struct Server {
    pub(super) now: Instant,
    host: Host,
    listener: ListenId,
}

impl Server {
    pub(super) fn new(profile: Profile, backlog: usize, limits: Limits) -> Self {
        let options = SocketOptions::of(&profile);
        let mut host = host("sack", profile);
        host.set_limits(limits);
        let listener = host.listen(SERVER, backlog, options).unwrap();
        Self { now: START, host, listener }
    }

    pub(super) fn handle(&mut self, packet: &[u8]) -> Vec<Reply> {
        self.host.handle_packet(self.now, packet);
        self.out()
    }

    fn out(&mut self) -> Vec<Reply> {
        let (mut all, mut packet) = (vec![], vec![]);
        while self.host.poll_packet(self.now, &mut packet) {
            let Segment { dst: to, flags, seq, ack, options, .. } = segment::parse(&packet).unwrap();
            all.push(Reply { to, flags, seq, ack, options });
        }
        all
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.host.next_deadline().filter(|at| *at <= until) {
            self.now = at;
            self.host.handle_deadline(at);
            self.out();
        }
        self.now = until;
    }

    /// Fills the backlog with half-open connections.
    fn fill(&mut self, backlog: u32) {
        for i in 0..backlog {
            assert_eq!(self.handle(&forged(i, SERVER)).len(), 1);
        }
        assert_eq!(self.host.counters().gate.cookies_sent, 0);
    }

    pub(super) fn syn(&mut self, from: SocketAddr, options: &Options) -> Client {
        let mut out = self.handle(&segment_of((from, SERVER), Flags::SYN, (Seq(9), Seq(0)), options, &[]));
        assert_eq!(out.len(), 1, "{out:?}");
        let answer = out.remove(0);
        assert_eq!((answer.flags, answer.ack), (Flags::SYN.with(Flags::ACK), Seq(10)));
        Client { from, answer }
    }

    /// Completes the handshake with an ACK that carries data.
    fn ack(&mut self, client: &Client, text: &[u8]) -> Vec<Reply> {
        let timestamps = client.answer.options.timestamps.map(|ts| Timestamps { val: 1001, ecr: ts.val });
        let options = Options { timestamps, ..Options::default() };
        let numbers = (Seq(10), client.answer.seq.at(1));
        self.handle(&segment_of((client.from, SERVER), Flags::ACK, numbers, &options, text))
    }

    fn accept(&mut self) -> Option<ConnId> {
        self.host.accept(self.listener)
    }

    fn connect(&mut self, from: SocketAddr) -> Option<ConnId> {
        let client = self.syn(from, &full());
        self.ack(&client, &[]);
        self.accept()
    }

    fn read(&mut self, id: ConnId) -> Vec<u8> {
        let mut text = vec![0; 4096];
        let count = self.host.read(id, &mut text).unwrap();
        text.truncate(count);
        text
    }
}

pub(super) struct Client {
    from: SocketAddr,
    pub(super) answer: Reply,
}

pub(super) fn client(n: u16) -> SocketAddr {
    SocketAddr::new(RIGHT, 5000 + n)
}

fn is_reset(out: &[Reply]) -> bool {
    matches!(out, [only] if only.flags.contains(Flags::RST))
}

// ----- forged SYNs -----

/// Forged SYNs at a constant rate.
struct Flood {
    per_second: u64,
    sent: u64,
    since: Instant,
}

impl Flood {
    fn advance(&mut self, pair: &mut Pair) {
        let due = (pair.now - self.since).as_millis() * self.per_second / 1000;
        while self.sent < due {
            let now = pair.now;
            pair.right.handle_packet(now, &forged(self.sent as u32, (RIGHT, 80).into()));
            pair.drain();
            self.sent += 1;
        }
    }
}

/// Returns the time from the SYN to the last of 50,000 bytes.
fn fetch(pair: &mut Pair, listener: ListenId, flood: &mut Flood, options: &SocketOptions) -> Duration {
    let begin = pair.now;
    let id = pair.left.connect(begin, None, (RIGHT, 80).into(), options.clone()).unwrap();
    let (mut served, mut got, mut buffer) = (None, 0, [0; 4096]);
    loop {
        assert!(pair.step());
        flood.advance(pair);
        if served.is_none() {
            served = pair.right.accept(listener);
            if let Some(peer) = served {
                assert_eq!(pair.right.write(pair.now, peer, &[7; 50_000]), Ok(50_000));
                pair.right.close(pair.now, peer);
            }
        }
        match pair.left.read(id, &mut buffer) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(IoError::WouldBlock) => {}
            Err(error) => panic!("after {got} bytes: {error}"),
        }
    }
    assert_eq!(got, 50_000);
    pair.left.close(pair.now, id);
    pair.now - begin
}

#[test]
fn syn_flood_does_not_slow_down_clients() {
    const FETCHES: u64 = 30;
    for name in PROFILES {
        for timestamps in [true, false] {
            let times = |per_second| {
                let mut pair = pair(1, "sack", name, path(10));
                let client = profile(name).with(|it| it.handshake.timestamps = timestamps);
                let recipe: Recipe = "sack".parse().unwrap();
                pair.left = Host::new(HostConfig {
                    addrs: vec![LEFT],
                    mtu: 1500,
                    profile: client.clone(),
                    recipe,
                    seed: 2,
                });
                let options = SocketOptions { recv_buffer: Some(60_000), ..SocketOptions::of(&client) };
                let listener = pair.right.listen((RIGHT, 80).into(), 64, options.clone()).unwrap();
                let mut flood = Flood { per_second, sent: 0, since: pair.now };
                let mut times: Vec<_> =
                    (0..FETCHES).map(|_| fetch(&mut pair, listener, &mut flood, &options)).collect();
                times.sort();
                let gate = pair.right.counters().gate;
                assert_eq!(gate.cookies_accepted > FETCHES * 9 / 10, per_second > 0, "{name}: {gate:?}");
                assert_eq!(gate.cookies_refused, 0);
                assert!(
                    pair.right.connections() < 64 + FETCHES as usize + 1,
                    "{} connections",
                    pair.right.connections()
                );
                (times[FETCHES as usize / 2], times[FETCHES as usize - 1])
            };
            let (without, with) = (times(0), times(5000));
            println!("{name}, timestamps {timestamps}: median and most {without:?} without, {with:?} with");
            assert!(with.0 < without.0 * 2 && with.1 < without.1 * 2, "{name}: {without:?}, {with:?}");
        }
    }
}

#[test]
fn cookie_connection_keeps_all_offered_options() {
    for name in PROFILES {
        let server = |flooded: bool| {
            let mut server = Server::new(profile(name), 4, Limits::default());
            if flooded {
                server.fill(4);
            }
            let client = server.syn(client(0), &full());
            let offered = client.answer.options;
            server.now += Duration::from_millis(30);
            assert_eq!(server.ack(&client, &[]).len(), 0);
            let id = server.accept().unwrap();
            assert_eq!(server.host.counters().gate.cookies_accepted, u64::from(flooded));
            let info = server.host.connection(id).unwrap().info();
            let agreed =
                (info.snd_mss, info.snd_wscale, info.rcv_wscale, info.sack, info.timestamps, info.snd_wnd);
            let offer = (offered.mss, offered.window_scale, offered.sack_permitted);
            let ours = offered.timestamps.unwrap();
            assert_eq!(ours.ecr, 1000);
            (agreed, offer, ours.val)
        };
        let (plain, from_cookie) = (server(false), server(true));
        assert_eq!((plain.0, plain.1), (from_cookie.0, from_cookie.1), "{name}");
        let back = plain.2.wrapping_sub(from_cookie.2);
        assert!(back < 64, "{name}: its timestamp is {back} ticks behind");
    }
}

#[test]
fn cookie_without_timestamps_offers_only_mss() {
    let mut server = Server::new(profile("default"), 1, Limits::default());
    server.fill(1);
    let offer = Options { timestamps: None, ..full() };
    let client = server.syn(client(0), &offer);
    let Options { mss, window_scale, sack_permitted, timestamps, .. } = client.answer.options;
    assert_eq!((mss, window_scale, sack_permitted, timestamps), (Some(1460), None, false, None));
    server.ack(&client, &[]);
    let id = server.accept().unwrap();
    assert_eq!(server.host.connection(id).unwrap().info().snd_mss, 1460);
}

#[test]
fn data_in_cookie_ack_is_accepted() {
    for options in [full(), mss_only()] {
        let mut server = Server::new(profile("default"), 1, Limits::default());
        server.fill(1);
        let client = server.syn(client(0), &options);
        let out = server.ack(&client, b"GET / HTTP/1.0\r\n\r\n");
        assert!(out.iter().all(|out| out.flags == Flags::ACK), "{out:?}");
        let id = server.accept().unwrap();
        assert_eq!(server.read(id), b"GET / HTTP/1.0\r\n\r\n");
        // The connection continues, with sequence numbers that follow the cookie.
        assert_eq!(server.host.write(server.now, id, b"yes"), Ok(3));
        let out = server.out();
        assert_eq!((out.len(), out[0].seq, out[0].ack), (1, client.answer.seq.at(1), Seq(28)));
    }
}

/// A cookie is valid, but the host has no memory for the connection. It does not answer, so the client
/// retransmits.
#[test]
fn valid_cookie_without_memory_is_refused_and_counted() {
    let mut server = Server::new(profile("default"), 1, Limits::default());
    server.host.limit_memory(1 << 30);
    let id = server.connect(client(9)).unwrap();
    assert_eq!(server.host.write(server.now, id, &[7; 50_000]), Ok(50_000));
    server.out();
    server.fill(1);
    let client = server.syn(client(0), &full());
    server.host.limit_memory(server.host.memory().used);
    assert!(server.ack(&client, &[]).is_empty());
    assert_eq!((server.accept(), server.host.memory().refused_connections), (None, 1));
    server.host.limit_memory(1 << 30);
    server.ack(&client, &[]);
    assert!(server.accept().is_some(), "the repeated ACK opens the connection");
    assert_eq!(server.host.memory().refused_connections, 1);
}

#[test]
fn wrong_or_expired_cookie_gets_reset() {
    let mut server = Server::new(profile("default"), 2, Limits::default());
    // Before any cookie was sent, a stray ACK does not count as a wrong cookie.
    let stranger = Client { from: client(9), answer: server.syn(client(8), &full()).answer };
    assert!(is_reset(&server.ack(&stranger, &[])));
    assert_eq!(server.host.counters().gate.cookies_refused, 0);
    server.fill(1);
    let good = server.syn(client(0), &full());
    assert_eq!(server.host.counters().gate.cookies_sent, 1);
    let another_port = Client { from: client(1), answer: server.syn(client(0), &full()).answer };
    assert!(is_reset(&server.ack(&another_port, &[])));
    assert_eq!(server.host.counters().gate.cookies_refused, 1);
    server.wait(Duration::from_secs(127));
    assert!(is_reset(&server.ack(&good, &[])), "the cookie is older than two slots");
    assert_eq!((server.host.counters().gate.cookies_refused, server.accept()), (2, None));
    // When all cookies have expired, ACKs are no longer checked for cookies.
    server.wait(Duration::from_secs(10));
    assert!(is_reset(&server.ack(&good, &[])));
    assert_eq!(server.host.counters().gate.cookies_refused, 2);
}

#[test]
fn every_flood_renews_cookies() {
    let mut server = Server::new(profile("default"), 1, Limits::default());
    for flood in 0..3 {
        server.handle(&forged(flood, SERVER));
        let client = server.syn(client(flood as u16), &full());
        server.ack(&client, &[]);
        assert!(server.accept().is_some());
        assert_eq!(server.host.counters().gate.cookies_accepted, u64::from(flood) + 1);
        // All cookies of this flood expire.
        server.wait(Duration::from_secs(200));
    }
}

#[test]
fn half_open_connection_is_evicted_after_three_seconds() {
    let mut server = Server::new(profile("default"), 8, Limits::default());
    let oldest = server.syn(client(0), &full());
    server.wait(Duration::from_millis(100));
    server.fill(7);
    server.wait(Duration::from_millis(2890));
    server.syn(client(1), &full());
    let gate = server.host.counters().gate;
    assert_eq!((gate.half_open_evicted, gate.cookies_sent), (0, 1));
    server.wait(Duration::from_millis(20));
    server.syn(client(2), &full());
    let gate = server.host.counters().gate;
    assert_eq!((gate.half_open_evicted, gate.cookies_sent), (1, 1));
    assert_eq!(server.host.connections(), 8);
    assert!(is_reset(&server.ack(&oldest, &[])), "the evicted connection is unknown");
}

#[test]
fn syns_are_dropped_while_accept_queue_is_full() {
    let mut server = Server::new(profile("default"), 2, Limits::default());
    for n in 0..2 {
        let client = server.syn(client(n), &full());
        server.ack(&client, &[]);
    }
    let syn = segment_of((client(2), SERVER), Flags::SYN, (Seq(9), Seq(0)), &full(), &[]);
    assert_eq!((server.handle(&syn).len(), server.host.waiting(server.listener)), (0, 2));
    assert_eq!(server.host.counters().syns_dropped, 1);
    assert!(server.accept().is_some());
    assert_eq!(server.handle(&syn).len(), 1);
}

// ----- limits per source -----

fn share(per_source: usize) -> Limits {
    Limits { per_source: Some(per_source), ..Limits::default() }
}

#[test]
fn connections_per_source_are_limited() {
    let mut server = Server::new(profile("default"), 64, share(3));
    let ids: Vec<_> = (0..3).map(|n| server.connect(client(n)).unwrap()).collect();
    let syn = segment_of((client(3), SERVER), Flags::SYN, (Seq(9), Seq(0)), &full(), &[]);
    assert_eq!(server.handle(&syn).len(), 0);
    let counters = server.host.counters();
    assert_eq!((counters.gate.over_source, counters.syns_dropped), (1, 1));
    let elsewhere = SocketAddr::new([203, 0, 113, 7].into(), 5000);
    assert!(server.connect(elsewhere).is_some(), "other sources are not affected");
    // A connection that the application has closed does not count, even if the peer keeps it open.
    server.host.close(server.now, ids[0]);
    server.out();
    assert!(server.connect(client(4)).is_some());
    assert_eq!(server.handle(&syn).len(), 0);
}

/// The source of a SYN is unproven, so SYNs with a forged address must not use up the share of that address.
#[test]
fn forged_syns_do_not_exhaust_source_share() {
    let mut server = Server::new(profile("default"), 64, share(3));
    for n in 0..1000 {
        server.syn(client(n), &full());
    }
    assert_eq!(server.host.connections(), 3, "no more than the share is kept");
    assert!(server.connect(client(2000)).is_some(), "a cookie admits the real client");
}

#[test]
fn simultaneous_handshakes_do_not_exceed_source_share() {
    let mut server = Server::new(profile("default"), 64, share(3));
    let clients: Vec<_> = (0..10).map(|n| server.syn(client(n), &full())).collect();
    let resets = clients.iter().rev().filter(|client| is_reset(&server.ack(client, &[]))).count();
    assert_eq!((resets, server.host.counters().gate.over_source), (7, 7));
    assert_eq!((0..10).filter_map(|_| server.accept()).count(), 3);
}

// ----- reflection -----

#[test]
fn resets_to_one_source_are_limited() {
    let mut server = Server::new(profile("default"), 1, Limits { resets: 10, ..Limits::default() });
    let mut resets = |second, from: SocketAddr| {
        server.now = Instant::from_secs(second);
        let stray = segment_of((from, SERVER), Flags::ACK, (Seq(1), Seq(1)), &Options::default(), &[]);
        (0..500).filter(|_| is_reset(&server.handle(&stray))).count()
    };
    let elsewhere = SocketAddr::new([203, 0, 113, 7].into(), 5000);
    assert_eq!([resets(1, client(0)), resets(1, client(1)), resets(1, elsewhere)], [10, 0, 10]);
    assert_eq!([resets(2, client(0)), resets(2, elsewhere)], [10, 10]);
    let counters = server.host.counters();
    assert_eq!((counters.resets_sent, counters.gate.resets_withheld), (40, 2460));
}

#[test]
fn impossible_source_address_gets_no_answer() {
    let mut server = Server::new(profile("default"), 1, Limits::default());
    let mut answers = |from: IpAddr| {
        let ends = (SocketAddr::new(from, 80), SERVER);
        server.handle(&segment_of(ends, Flags::SYN, (Seq(1), Seq(0)), &full(), &[])).len()
    };
    assert_eq!(answers(LEFT), 0, "LAND attack: source equals destination");
    for source in [[255; 4], [224, 0, 0, 1], [0; 4]] {
        assert_eq!(answers(source.into()), 0, "{source:?}");
    }
    let counters = server.host.counters();
    assert_eq!((counters.gate.from_self, counters.bad.values().sum()), (1, 3));
    assert_eq!(server.host.connections(), 0);
}

// ----- closed connections -----

/// A connection in FIN-WAIT-1 that the server has closed.
fn closed(server: &mut Server, n: u16) -> Client {
    let client = server.syn(client(n), &mss_only());
    server.ack(&client, &[]);
    let id = server.accept().unwrap();
    server.host.close(server.now, id);
    assert_eq!(server.out()[0].flags, Flags::FIN.with(Flags::ACK));
    server.now += Duration::from_millis(1);
    client
}

fn finish(server: &mut Server, client: &Client) {
    let fin = (Flags::FIN.with(Flags::ACK), (Seq(10), client.answer.seq.at(2)));
    server.handle(&segment_of((client.from, SERVER), fin.0, fin.1, &Options::default(), &[]));
}

#[test]
fn orphaned_connections_are_limited_in_number() {
    let mut server = Server::new(profile("default"), 4, Limits { orphans: 10, ..Limits::default() });
    let mut clients: Vec<_> = (0..10).map(|n| closed(&mut server, n)).collect();
    finish(&mut server, &clients.remove(3));
    clients.push(closed(&mut server, 10));
    assert_eq!((server.host.connections(), server.host.counters().gate.orphans_evicted), (11, 0));
    let client = server.syn(client(11), &mss_only());
    server.ack(&client, &[]);
    let id = server.accept().unwrap();
    server.host.close(server.now, id);
    let out = server.out();
    let reset: Vec<_> = out.iter().filter(|out| out.flags.contains(Flags::RST)).map(|out| out.to).collect();
    assert_eq!(reset, [clients[0].from], "the oldest orphan is reset");
    assert_eq!((server.host.connections(), server.host.counters().gate.orphans_evicted), (11, 1));
}

#[test]
fn time_wait_connections_are_limited_in_number() {
    let mut server = Server::new(profile("default"), 4, Limits { time_wait: 10, ..Limits::default() });
    for n in 0..25 {
        let client = closed(&mut server, n);
        finish(&mut server, &client);
    }
    assert_eq!((server.host.in_time_wait(), server.host.connections()), (10, 10));
    assert_eq!(server.host.counters().gate.time_wait_evicted, 15);
    server.wait(Duration::from_secs(61));
    assert_eq!((server.host.connections(), server.host.counters().gate.time_wait_evicted), (0, 15));
}

#[test]
fn half_closed_connection_does_not_count_as_orphan() {
    let mut server =
        Server::new(profile("default"), 4, Limits { orphans: 0, time_wait: 0, ..Limits::default() });
    let id = server.connect(client(0)).unwrap();
    server.host.shutdown_write(id).unwrap();
    server.out();
    assert_eq!(server.host.connection(id).unwrap().state(), State::FinWait1);
    assert_eq!(server.host.counters().gate, Default::default());
}
