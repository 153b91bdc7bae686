//! A host that faces strangers: floods of forged SYNs, sources that take too much, and packets that are sent for the sake
//! of the answer.

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

use super::world::{PROFILES, START, host, pair, path, profile};

const SERVER: SocketAddr = SocketAddr::new(LEFT, 80);

/// The SYN number `i` of a flood: each has another source, and nobody is there.
fn forged(i: u32, to: SocketAddr) -> Vec<u8> {
    let source = SocketAddr::new([198, 18, (i >> 8) as u8, i as u8].into(), 1024 + (i % 60_000) as u16);
    segment_of((source, to), Flags::SYN, (Seq(i.wrapping_mul(77_777)), Seq(0)), &full(), &[])
}

/// What a SYN of today offers.
fn full() -> Options {
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

/// What left the host.
#[derive(Debug)]
struct Out {
    to: SocketAddr,
    flags: Flags,
    seq: Seq,
    ack: Seq,
    options: Options,
}

/// A host that listens, and strangers who are played by hand.
struct Door {
    now: Instant,
    host: Host,
    listener: ListenId,
}

impl Door {
    fn new(profile: Profile, backlog: usize, limits: Limits) -> Self {
        let options = SocketOptions::of(&profile);
        let mut host = host("sack", profile);
        host.set_limits(limits);
        let listener = host.listen(SERVER, backlog, options).unwrap();
        Self { now: START, host, listener }
    }

    fn handle(&mut self, packet: &[u8]) -> Vec<Out> {
        self.host.handle_packet(self.now, packet);
        self.out()
    }

    fn out(&mut self) -> Vec<Out> {
        let (mut all, mut packet) = (vec![], vec![]);
        while self.host.poll_packet(self.now, &mut packet) {
            let ip = segment::parse_ip(&packet).unwrap();
            let Segment { dst: to, flags, seq, ack, options, .. } = segment::parse_tcp(&ip).unwrap();
            all.push(Out { to, flags, seq, ack, options });
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

    /// As many half-open connections as there is room for.
    fn fill(&mut self, backlog: u32) {
        for i in 0..backlog {
            assert_eq!(self.handle(&forged(i, SERVER)).len(), 1);
        }
        assert_eq!(self.host.counters().gate.cookies_sent, 0);
    }

    fn syn(&mut self, from: SocketAddr, options: &Options) -> Client {
        let mut out = self.handle(&segment_of((from, SERVER), Flags::SYN, (Seq(9), Seq(0)), options, &[]));
        assert_eq!(out.len(), 1, "{out:?}");
        let answer = out.remove(0);
        assert_eq!((answer.flags, answer.ack), (Flags::SYN.with(Flags::ACK), Seq(10)));
        Client { from, answer }
    }

    /// The third segment of the handshake, with text.
    fn ack(&mut self, client: &Client, text: &[u8]) -> Vec<Out> {
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
        let count = self.host.read(self.now, id, &mut text).unwrap();
        text.truncate(count);
        text
    }
}

struct Client {
    from: SocketAddr,
    answer: Out,
}

fn client(n: u16) -> SocketAddr {
    SocketAddr::new(RIGHT, 5000 + n)
}

fn is_reset(out: &[Out]) -> bool {
    matches!(out, [only] if only.flags.contains(Flags::RST))
}

// ----- forged SYNs -----

/// So many forged SYNs in a second, as time goes by.
struct Flood {
    per_second: u64,
    sent: u64,
    since: Instant,
}

impl Flood {
    fn go_on(&mut self, pair: &mut Pair) {
        let due = (pair.now - self.since).as_millis() * self.per_second / 1000;
        while self.sent < due {
            let now = pair.now;
            pair.right.handle_packet(now, &forged(self.sent as u32, (RIGHT, 80).into()));
            pair.drain();
            self.sent += 1;
        }
    }
}

/// From the SYN to the last of 50,000 octets.
fn fetch(pair: &mut Pair, listener: ListenId, flood: &mut Flood, options: &SocketOptions) -> Duration {
    let begin = pair.now;
    let id = pair.left.connect(begin, None, (RIGHT, 80).into(), options.clone()).unwrap();
    let (mut served, mut got, mut buffer) = (None, 0, [0; 4096]);
    loop {
        assert!(pair.step());
        flood.go_on(pair);
        if served.is_none() {
            served = pair.right.accept(listener);
            if let Some(peer) = served {
                assert_eq!(pair.right.write(pair.now, peer, &[7; 50_000]), Ok(50_000));
                pair.right.close(pair.now, peer);
            }
        }
        match pair.left.read(pair.now, id, &mut buffer) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(IoError::WouldBlock) => {}
            Err(error) => panic!("after {got} octets: {error}"),
        }
    }
    assert_eq!(got, 50_000);
    pair.left.close(pair.now, id);
    pair.now - begin
}

#[test]
fn under_five_thousand_forged_syns_a_second_clients_are_as_fast_as_without() {
    const FETCHES: u64 = 30;
    for name in PROFILES {
        for timestamps in [true, false] {
            let times = |per_second| {
                let mut pair = pair(1, "sack", name, path(10));
                let client = Profile { timestamps, ..profile(name) };
                let recipe: Recipe = "sack".parse().unwrap();
                pair.left = Host::new(HostConfig {
                    addrs: vec![LEFT],
                    mtu: 1500,
                    profile: client.clone(),
                    recipe,
                    seed: 2,
                });
                let options = SocketOptions { recv_buffer: 60_000, ..SocketOptions::of(&client) };
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
fn a_connection_from_a_cookie_has_all_that_was_offered() {
    for name in PROFILES {
        let door = |flooded: bool| {
            let mut door = Door::new(profile(name), 4, Limits::default());
            if flooded {
                door.fill(4);
            }
            let client = door.syn(client(0), &full());
            let offered = client.answer.options;
            door.now += Duration::from_millis(30);
            assert_eq!(door.ack(&client, &[]).len(), 0);
            let id = door.accept().unwrap();
            assert_eq!(door.host.counters().gate.cookies_accepted, u64::from(flooded));
            let info = door.host.connection(id).unwrap().info();
            let agreed =
                (info.snd_mss, info.snd_wscale, info.rcv_wscale, info.sack, info.timestamps, info.snd_wnd);
            let offer = (offered.mss, offered.window_scale, offered.sack_permitted);
            let ours = offered.timestamps.unwrap();
            assert_eq!(ours.ecr, 1000);
            (agreed, offer, ours.val)
        };
        let (plain, from_cookie) = (door(false), door(true));
        assert_eq!((plain.0, plain.1), (from_cookie.0, from_cookie.1), "{name}");
        let back = plain.2.wrapping_sub(from_cookie.2);
        assert!(back < 64, "{name}: its timestamp lies {back} ticks back");
    }
}

#[test]
fn without_timestamps_a_cookie_offers_the_mss_alone() {
    let mut door = Door::new(profile("default"), 1, Limits::default());
    door.fill(1);
    let offer = Options { timestamps: None, ..full() };
    let client = door.syn(client(0), &offer);
    let Options { mss, window_scale, sack_permitted, timestamps, .. } = client.answer.options;
    assert_eq!((mss, window_scale, sack_permitted, timestamps), (Some(1460), None, false, None));
    door.ack(&client, &[]);
    let id = door.accept().unwrap();
    assert_eq!(door.host.connection(id).unwrap().info().snd_mss, 1460);
}

#[test]
fn text_that_comes_with_the_cookie_is_taken() {
    for options in [full(), mss_only()] {
        let mut door = Door::new(profile("default"), 1, Limits::default());
        door.fill(1);
        let client = door.syn(client(0), &options);
        let out = door.ack(&client, b"GET / HTTP/1.0\r\n\r\n");
        assert!(out.iter().all(|out| out.flags == Flags::ACK), "{out:?}");
        let id = door.accept().unwrap();
        assert_eq!(door.read(id), b"GET / HTTP/1.0\r\n\r\n");
        // And the connection goes on: what it sends is numbered from the cookie on.
        assert_eq!(door.host.write(door.now, id, b"yes"), Ok(3));
        let out = door.out();
        assert_eq!((out.len(), out[0].seq, out[0].ack), (1, client.answer.seq.at(1), Seq(28)));
    }
}

#[test]
fn a_wrong_cookie_and_an_old_one_get_a_reset() {
    let mut door = Door::new(profile("default"), 2, Limits::default());
    // Before any cookie was sent, an ACK of no connection is that and nothing else.
    let stranger = Client { from: client(9), answer: door.syn(client(8), &full()).answer };
    assert!(is_reset(&door.ack(&stranger, &[])));
    assert_eq!(door.host.counters().gate.cookies_refused, 0);
    door.fill(1);
    let good = door.syn(client(0), &full());
    assert_eq!(door.host.counters().gate.cookies_sent, 1);
    let another_port = Client { from: client(1), answer: door.syn(client(0), &full()).answer };
    assert!(is_reset(&door.ack(&another_port, &[])));
    assert_eq!(door.host.counters().gate.cookies_refused, 1);
    door.wait(Duration::from_secs(127));
    assert!(is_reset(&door.ack(&good, &[])), "older than a slot and the next one");
    assert_eq!((door.host.counters().gate.cookies_refused, door.accept()), (2, None));
    // Once no cookie can be good any more, none is looked for.
    door.wait(Duration::from_secs(10));
    assert!(is_reset(&door.ack(&good, &[])));
    assert_eq!(door.host.counters().gate.cookies_refused, 2);
}

#[test]
fn the_oldest_half_open_connection_gives_way_after_three_seconds() {
    let mut door = Door::new(profile("default"), 8, Limits::default());
    let oldest = door.syn(client(0), &full());
    door.wait(Duration::from_millis(100));
    door.fill(7);
    door.wait(Duration::from_millis(2890));
    door.syn(client(1), &full());
    let gate = door.host.counters().gate;
    assert_eq!((gate.half_open_evicted, gate.cookies_sent), (0, 1));
    door.wait(Duration::from_millis(20));
    door.syn(client(2), &full());
    let gate = door.host.counters().gate;
    assert_eq!((gate.half_open_evicted, gate.cookies_sent), (1, 1));
    assert_eq!(door.host.connections(), 8);
    assert!(is_reset(&door.ack(&oldest, &[])), "it is unknown by now");
}

#[test]
fn syns_are_dropped_only_while_nobody_accepts() {
    let mut door = Door::new(profile("default"), 2, Limits::default());
    for n in 0..2 {
        let client = door.syn(client(n), &full());
        door.ack(&client, &[]);
    }
    let syn = segment_of((client(2), SERVER), Flags::SYN, (Seq(9), Seq(0)), &full(), &[]);
    assert_eq!((door.handle(&syn).len(), door.host.waiting(door.listener)), (0, 2));
    assert_eq!(door.host.counters().syns_dropped, 1);
    assert!(door.accept().is_some());
    assert_eq!(door.handle(&syn).len(), 1);
}

// ----- shares -----

fn share(per_source: usize) -> Limits {
    Limits { per_source: Some(per_source), ..Limits::default() }
}

#[test]
fn a_source_gets_its_share_and_another_one_when_it_gives_one_back() {
    let mut door = Door::new(profile("default"), 64, share(3));
    let ids: Vec<_> = (0..3).map(|n| door.connect(client(n)).unwrap()).collect();
    let syn = segment_of((client(3), SERVER), Flags::SYN, (Seq(9), Seq(0)), &full(), &[]);
    assert_eq!(door.handle(&syn).len(), 0);
    let counters = door.host.counters();
    assert_eq!((counters.gate.over_source, counters.syns_dropped), (1, 1));
    let elsewhere = SocketAddr::new([203, 0, 113, 7].into(), 5000);
    assert!(door.connect(elsewhere).is_some(), "others are not concerned");
    // What the application has closed counts no longer, whatever the peer does about it.
    door.host.close(door.now, ids[0]);
    door.out();
    assert!(door.connect(client(4)).is_some());
    assert_eq!(door.handle(&syn).len(), 0);
}

/// SYNs prove nothing: whoever forges them with somebody's address must not use up that one's share.
#[test]
fn forged_syns_do_not_use_up_the_share_of_whose_name_they_bear() {
    let mut door = Door::new(profile("default"), 64, share(3));
    for n in 0..1000 {
        door.syn(client(n), &full());
    }
    assert_eq!(door.host.connections(), 3, "no more than its share is kept");
    assert!(door.connect(client(2000)).is_some(), "by a cookie");
}

#[test]
fn handshakes_that_complete_together_do_not_exceed_a_share() {
    let mut door = Door::new(profile("default"), 64, share(3));
    let clients: Vec<_> = (0..10).map(|n| door.syn(client(n), &full())).collect();
    let resets = clients.iter().rev().filter(|client| is_reset(&door.ack(client, &[]))).count();
    assert_eq!((resets, door.host.counters().gate.over_source), (7, 7));
    assert_eq!((0..10).filter_map(|_| door.accept()).count(), 3);
}

// ----- answers that others are to get -----

#[test]
fn resets_are_no_echo() {
    let mut door = Door::new(profile("default"), 1, Limits { resets: 100, ..Limits::default() });
    let stray = segment_of((client(0), SERVER), Flags::ACK, (Seq(1), Seq(1)), &Options::default(), &[]);
    let mut seen = vec![];
    for second in 1..=50 {
        door.now = Instant::from_secs(second);
        seen.push((0..500).filter(|_| is_reset(&door.handle(&stray))).count());
    }
    assert!(seen.iter().all(|count| (50..=100).contains(count)), "{seen:?}");
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 20, "how many others got can be counted: {seen:?}");
    let counters = door.host.counters();
    assert_eq!(counters.resets_sent + counters.gate.resets_withheld, 25_000);
}

#[test]
fn acks_of_what_lies_far_outside_the_window_are_limited_and_those_of_copies_are_not() {
    let mut door = Door::new(profile("default"), 1, Limits { answers: 100, ..Limits::default() });
    let client = door.syn(client(0), &mss_only());
    door.ack(&client, &[b'x'; 1000]);
    let mut answers = |seq: u32, flags: Flags| {
        let ends = (client.from, SERVER);
        let numbers = (Seq(seq), client.answer.seq.at(1));
        let packet = segment_of(ends, flags, numbers, &Options::default(), &[b'x'; 1000]);
        (0..500).map(|_| door.handle(&packet).len()).sum::<usize>()
    };
    let forged = answers(1 << 31, Flags::ACK);
    assert!((50..=100).contains(&forged), "{forged}");
    assert_eq!(answers(1 << 30, Flags::ACK) + answers(9, Flags::SYN), 0, "the second's allowance is used up");
    // What the peer sends again because our ACK was lost is answered, so that it can go on.
    assert_eq!(answers(10, Flags::ACK), 500);
    assert_eq!(door.host.counters().gate.answers_withheld, 1000 - forged as u64 + 100);
}

#[test]
fn nobody_is_answered_who_cannot_be_there() {
    let mut door = Door::new(profile("default"), 1, Limits::default());
    let mut answers = |from: IpAddr| {
        let ends = (SocketAddr::new(from, 80), SERVER);
        door.handle(&segment_of(ends, Flags::SYN, (Seq(1), Seq(0)), &full(), &[])).len()
    };
    assert_eq!(answers(LEFT), 0, "LAND: to itself");
    for nobody in [[255; 4], [224, 0, 0, 1], [0; 4]] {
        assert_eq!(answers(nobody.into()), 0, "{nobody:?}");
    }
    let counters = door.host.counters();
    assert_eq!((counters.gate.from_self, counters.bad.values().sum()), (1, 3));
    assert_eq!(door.host.connections(), 0);
}

// ----- what is left of connections -----

/// A connection that the server has closed, in FIN-WAIT-1.
fn closed(door: &mut Door, n: u16) -> Client {
    let client = door.syn(client(n), &mss_only());
    door.ack(&client, &[]);
    let id = door.accept().unwrap();
    door.host.close(door.now, id);
    assert_eq!(door.out()[0].flags, Flags::FIN.with(Flags::ACK));
    door.now += Duration::from_millis(1);
    client
}

fn finish(door: &mut Door, client: &Client) {
    let fin = (Flags::FIN.with(Flags::ACK), (Seq(10), client.answer.seq.at(2)));
    door.handle(&segment_of((client.from, SERVER), fin.0, fin.1, &Options::default(), &[]));
}

#[test]
fn closed_connections_that_nobody_acknowledges_are_bounded() {
    let mut door = Door::new(profile("default"), 4, Limits { orphans: 10, ..Limits::default() });
    let mut clients: Vec<_> = (0..10).map(|n| closed(&mut door, n)).collect();
    finish(&mut door, &clients.remove(3));
    clients.push(closed(&mut door, 10));
    assert_eq!((door.host.connections(), door.host.counters().gate.orphans_evicted), (11, 0));
    let client = door.syn(client(11), &mss_only());
    door.ack(&client, &[]);
    let id = door.accept().unwrap();
    door.host.close(door.now, id);
    let out = door.out();
    let reset: Vec<_> = out.iter().filter(|out| out.flags.contains(Flags::RST)).map(|out| out.to).collect();
    assert_eq!(reset, [clients[0].from], "the oldest is told");
    assert_eq!((door.host.connections(), door.host.counters().gate.orphans_evicted), (11, 1));
}

#[test]
fn time_waits_are_bounded() {
    let mut door = Door::new(profile("default"), 4, Limits { time_wait: 10, ..Limits::default() });
    for n in 0..25 {
        let client = closed(&mut door, n);
        finish(&mut door, &client);
    }
    assert_eq!((door.host.in_time_wait(), door.host.connections()), (10, 10));
    assert_eq!(door.host.counters().gate.time_wait_evicted, 15);
    door.wait(Duration::from_secs(61));
    assert_eq!((door.host.connections(), door.host.counters().gate.time_wait_evicted), (0, 15));
}

#[test]
fn a_connection_that_is_in_use_is_no_orphan() {
    let mut door = Door::new(profile("default"), 4, Limits { orphans: 0, time_wait: 0, ..Limits::default() });
    let id = door.connect(client(0)).unwrap();
    door.host.shutdown_write(door.now, id).unwrap();
    door.out();
    assert_eq!(door.host.connection(id).unwrap().state(), State::FinWait1);
    assert_eq!(door.host.counters().gate, Default::default());
}
