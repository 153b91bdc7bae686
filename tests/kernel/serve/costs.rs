//! What a peer that plays by no rules costs `airtcp serve` and its other clients: in memory, and in time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airlink::tun::Tun;
use airtcp_testkit::hostile::segment_of;
use airtcp_testkit::machine::namespace;
use airtcp_testkit::promises::seen;
use airtcp_testkit::sample::size;
use airwire::options::Options;
use airwire::segment::{self, Flags};
use airwire::seq::Seq;

use super::stand::{PATIENCE, SERVED, Serving, connect, listener, strangers_device};

const TARGET: &str = "127.0.0.1:8080";

/// Of every stranger.
const ISS: Seq = Seq(1000);

/// Peers behind a device of their own, of which this test says every word.
struct Strangers {
    tun: Tun,
    mss: u16,
    seen: BTreeMap<SocketAddr, Seen>,
}

/// What a stranger knows of the other side.
#[derive(Clone, Copy)]
struct Seen {
    iss: Seq,
    scale: u8,
    /// The right edge of the window, as an offset of the stranger's stream.
    edge: u64,
    /// One past the highest offset that has arrived of the other's.
    max: u64,
    /// A SACK block has come.
    blocks: bool,
}

impl Strangers {
    fn new(namespace: &Namespace, mss: u16) -> Self {
        namespace.enter(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap()).unwrap();
        let tun = strangers_device(namespace);
        Self { tun, mss, seen: BTreeMap::new() }
    }

    fn send(&self, from: SocketAddr, flags: Flags, seq: u64, ack: Seq, offer: &Options, text: &[u8]) {
        let ends = (from, SERVED.parse().unwrap());
        let packet = segment_of(ends, flags, (ISS.at(seq), ack), offer, text);
        self.tun.send(&packet).unwrap();
    }

    fn text(&self, from: SocketAddr, seq: u64, text: &[u8]) {
        let ack = self.seen[&from].iss.at(1);
        self.send(from, Flags::ACK, seq, ack, &Options::default(), text);
    }

    /// Takes in what has come.
    fn hear(&mut self) {
        let mut buffer = vec![0; 65_536];
        while let Ok(Some(len)) = self.tun.recv(&mut buffer) {
            let Ok(ip) = segment::parse_ip(&buffer[..len]) else { continue };
            let Ok(segment) = segment::parse_tcp(&ip) else { continue };
            let first = Seen { iss: segment.seq, scale: 0, edge: 0, max: 1, blocks: false };
            let seen = self.seen.entry(segment.dst).or_insert(first);
            if segment.flags.contains(Flags::SYN) {
                seen.scale = segment.options.window_scale.unwrap_or(0);
                continue;
            }
            let acked = segment.ack.offset(ISS, seen.edge.max(1)).unwrap();
            seen.edge = seen.edge.max(acked + (u64::from(segment.window) << seen.scale));
            seen.blocks |= !segment.options.sack.as_slice().is_empty();
            let start = segment.seq.offset(seen.iss, seen.max).unwrap();
            seen.max = seen.max.max(start + segment.payload.len() as u64);
        }
    }

    /// Takes in what comes until this is so.
    fn hear_until(&mut self, what: &str, so: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !so(self) {
            assert!(begin.elapsed() < PATIENCE, "waited for {what}");
            thread::sleep(Duration::from_millis(1));
            self.hear();
        }
    }

    fn open(&mut self, from: SocketAddr) {
        let offer = Options {
            mss: Some(self.mss),
            window_scale: Some(14),
            sack_permitted: true,
            ..Options::default()
        };
        self.send(from, Flags::SYN, 0, Seq(0), &offer, &[]);
        self.hear_until("a SYN,ACK", |strangers| strangers.seen.contains_key(&from));
        self.text(from, 1, &[]);
    }
}

fn stranger(n: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(198, 18, (n / 200) as u8, 1 + (n % 200) as u8).into(), 10_000 + n)
}

/// Keeps its connections, and has nothing to say.
fn silent(listener: TcpListener) {
    thread::spawn(move || {
        let mut kept = vec![];
        while let Ok((stream, _)) = listener.accept() {
            kept.push(stream);
        }
    });
}

#[test]
fn two_octets_of_256_clients_pin_no_buffers() {
    const CLIENTS: u16 = 256;
    let namespace = namespace();
    silent(listener(&namespace, 8080));
    // The strangers never close: the server waits only for a moment when it is stopped.
    let serving = Serving::start(&namespace, &[TARGET], &["--recipe=sack", "--grace=300ms"]);
    let mut strangers = Strangers::new(&namespace, 1460);
    (0..CLIENTS).for_each(|n| strangers.open(stranger(n)));
    serving.events("opened", CLIENTS.into(), |_| true);
    let before = serving.memory("VmRSS");
    for n in 0..CLIENTS {
        strangers.text(stranger(n), 1, b"x");
    }
    strangers.hear_until("the windows", |strangers| strangers.seen.values().all(|seen| seen.edge > 0));
    for n in 0..CLIENTS {
        let edge = strangers.seen[&stranger(n)].edge;
        strangers.text(stranger(n), edge - 1, b"x");
    }
    strangers.hear_until("its blocks", |strangers| strangers.seen.values().all(|seen| seen.blocks));
    let growth = serving.memory("VmHWM") - before;
    println!("{growth} kB more for two octets of each of {CLIENTS} clients");
    assert!(growth < 8_000, "{growth} kB more");
    let end = serving.stop();
    assert!(end["memory"]["most"].as_u64() < Some(1 << 20), "{end}");
    seen(
        "256 clients send an octet at the window's far edge",
        "data out of order cost what arrived",
        format_args!("{growth} kB more"),
    );
}

/// Answers `page` with 20,000 octets, and anything else with as many as there is room for.
fn pages(listener: TcpListener) {
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                let mut request = [0; 4];
                if stream.read_exact(&mut request).is_err() {
                    return;
                }
                match &request {
                    b"page" => drop(stream.write_all(&[7; 20_000])),
                    _ => while stream.write_all(&[7; 100_000]).is_ok() {},
                }
            });
        }
    });
}

/// How long this many pages take, one after the other: sorted.
fn fetches(namespace: &Namespace, count: usize) -> Vec<Duration> {
    let mut times: Vec<_> = (0..count)
        .map(|_| {
            let begin = Instant::now();
            let mut stream = connect(namespace);
            stream.write_all(b"page").unwrap();
            let mut answer = vec![];
            stream.read_to_end(&mut answer).unwrap();
            assert_eq!(answer.len(), 20_000);
            begin.elapsed()
        })
        .collect();
    times.sort();
    times
}

/// So many are in flight before the attack begins.
const SEGMENTS: u64 = 2000;

/// A client that offers an MSS of 64, and in whose every ACK all is SACKed but one segment, and taken back with the next.
#[test]
fn a_peer_that_reneges_with_every_ack_keeps_nobody_waiting() {
    let namespace = namespace();
    pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--recipe=sack", "--grace=300ms"]);
    let alone = fetches(&namespace, 20);
    let mut strangers = Strangers::new(&namespace, 64);
    let attacker = stranger(1);
    strangers.open(attacker);
    strangers.text(attacker, 1, b"much");
    // The congestion window opens, and then nothing is acknowledged.
    let (begin, mut una) = (Instant::now(), 1);
    while begin.elapsed() < Duration::from_secs(30) && strangers.seen[&attacker].max < una + 64 * SEGMENTS {
        strangers.hear();
        let Seen { iss, max, .. } = strangers.seen[&attacker];
        // Every second segment, as receivers do; when there are enough, no more.
        while una + 128 <= max && max < una + 64 * SEGMENTS {
            una += 128;
            strangers.send(attacker, Flags::ACK, 5, iss.at(una), &Options::default(), &[]);
        }
    }
    let outstanding = (strangers.seen[&attacker].max - una) / 64;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let attack = thread::spawn(move || {
        let (begin, mut acks) = (Instant::now(), 0_u32);
        while !stopped.load(Ordering::Relaxed) {
            strangers.hear();
            let Seen { iss, max, .. } = strangers.seen[&attacker];
            // A megabit a second: ACKs of 88 octets with what a link adds.
            while f64::from(acks) < begin.elapsed().as_secs_f64() * 1400.0 && una + 128 < max {
                una += 64;
                let mut blocks = Options::default();
                blocks.sack.push(iss.at(una + 1), iss.at(max));
                strangers.send(attacker, Flags::ACK, 5, iss.at(una), &blocks, &[]);
                acks += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        acks
    });
    thread::sleep(Duration::from_millis(200));
    let beside = fetches(&namespace, 20);
    stop.store(true, Ordering::Relaxed);
    let acks = attack.join().unwrap();
    let text = format!(
        "the slowest of 20 pages takes {:?} alone, {:?} beside {acks} such ACKs with {outstanding} segments in flight",
        alone[19], beside[19]
    );
    println!("{text}; alone: {alone:?}; beside: {beside:?}");
    assert!(outstanding >= SEGMENTS, "{text}");
    assert!(beside[19] < Duration::from_secs(2), "{text}");
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    serving.end();
    seen("a client takes back what it SACKed, ACK by ACK", "the others do not wait for it", text);
}

/// Clients that ask for all that there is and read nothing: the window of each closes.
fn crowd(namespace: &Namespace, most: usize) -> Vec<TcpStream> {
    let soon = Duration::from_millis(300);
    let connect = || TcpStream::connect_timeout(&SERVED.parse().unwrap(), soon);
    let connected = (0..most).map_while(|_| namespace.enter(connect).unwrap().ok());
    let crowd: Vec<TcpStream> = connected.collect();
    for mut stream in &crowd {
        stream.write_all(b"much").unwrap();
    }
    // Until all that has room for something is full.
    thread::sleep(Duration::from_secs(1));
    crowd
}

#[test]
fn a_crowd_that_reads_nothing_keeps_nobody_waiting() {
    const CROWD: usize = 200;
    let namespace = namespace();
    pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--recipe=sack"]);
    let alone = fetches(&namespace, 20);
    let before = serving.memory("RssAnon");
    let crowd = crowd(&namespace, CROWD);
    assert_eq!(crowd.len(), CROWD);
    let beside = fetches(&namespace, 20);
    let growth = serving.memory("RssAnon").saturating_sub(before);
    // Each is still served: what it reads makes room for more.
    for mut stream in crowd {
        // More than all buffers on the way hold.
        let mut much = vec![0; size(1_500_000, 5_000_000)];
        stream.read_exact(&mut much).unwrap();
        assert!(much.iter().all(|octet| *octet == 7));
    }
    let text = format!(
        "the slowest of 20 pages takes {:.1?} alone, {:.1?} beside them; {growth} kB more",
        alone[19], beside[19]
    );
    assert!(beside[19] < Duration::from_secs(2), "{text}");
    // Of each the 64 KiB that wait to leave, in a buffer of twice that, and what a connection is.
    assert!(growth < 150 * CROWD as u64, "{text}");
    serving.stop();
    seen("200 clients with closed windows", "the others do not wait; at most 150 kB for each", text);
}

#[test]
fn a_crowd_that_has_taken_all_memory_gives_way() {
    const MEMORY: u64 = 1 << 10;
    // Each waits until a connection of the crowd gives way.
    const PAGES: usize = 5;
    let namespace = namespace();
    pages(listener(&namespace, 8080));
    let more = ["--recipe=sack", "--memory=1Mi", "--give-way=300ms", "--grace=300ms"];
    let serving = Serving::start(&namespace, &[TARGET], &more);
    let before = serving.memory("RssAnon");
    let mut crowds = vec![];
    while crowds.iter().map(Vec::len).sum::<usize>() < 400 {
        crowds.push(crowd(&namespace, 20));
        if crowds.last().unwrap().len() < 20 {
            break;
        }
    }
    let came: usize = crowds.iter().map(Vec::len).sum();
    assert!(came < 400, "there was memory for all of them");
    let growth = serving.memory("RssAnon").saturating_sub(before);
    let begin = Instant::now();
    assert_eq!(fetches(&namespace, PAGES).len(), PAGES);
    let text =
        format!("with {came} of them: {growth} kB more, then {PAGES} pages in {:.1?}", begin.elapsed());
    println!("{text}");
    assert!(growth < MEMORY + 20 * came as u64, "{text}");
    assert!(serving.outcome("gave-way")["reason"].as_str().unwrap().contains("other connections"));
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    serving.end();
    seen(
        "closed windows take all of --memory=1Mi",
        "no more than that; the idlest gives way to a newcomer",
        text,
    );
}
