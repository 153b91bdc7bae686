//! The memory and time that a misbehaving peer costs `airtcp-serve` and its other clients.

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
use airtcp_testkit::promises::record;
use airtcp_testkit::sample::size;
use airwire::options::Options;
use airwire::segment::{self, Flags};
use airwire::seq::Seq;

use super::setup::{SERVER, Serving, TIMEOUT, fetches, listener, serve_pages, strangers_device};

const TARGET: &str = "127.0.0.1:8080";

/// Initial sequence number of every simulated peer.
const ISS: Seq = Seq(1000);

/// Peers behind a separate device, whose packets the test writes.
struct SimulatedPeers {
    tun: Tun,
    mss: u16,
    views: BTreeMap<SocketAddr, PeerView>,
}

/// A peer's view of the server's connection.
#[derive(Clone, Copy)]
struct PeerView {
    iss: Seq,
    scale: u8,
    /// The right edge of the server's window, as an offset of the peer's stream.
    edge: u64,
    /// One past the highest offset of the server's stream that has arrived.
    max: u64,
    /// Whether a SACK block has arrived.
    blocks: bool,
}

impl SimulatedPeers {
    fn new(namespace: &Namespace, mss: u16) -> Self {
        namespace.enter(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap()).unwrap();
        let tun = strangers_device(namespace);
        Self { tun, mss, views: BTreeMap::new() }
    }

    fn send(&self, from: SocketAddr, flags: Flags, seq: u64, ack: Seq, offer: &Options, text: &[u8]) {
        let ends = (from, SERVER.parse().unwrap());
        let packet = segment_of(ends, flags, (ISS.at(seq), ack), offer, text);
        self.tun.send(&packet).unwrap();
    }

    fn text(&self, from: SocketAddr, seq: u64, text: &[u8]) {
        let ack = self.views[&from].iss.at(1);
        self.send(from, Flags::ACK, seq, ack, &Options::default(), text);
    }

    /// Processes all packets that have arrived.
    fn receive(&mut self) {
        let mut buffer = vec![0; 65_536];
        while let Ok(Some(len)) = self.tun.recv(&mut buffer) {
            let Ok(segment) = segment::parse(&buffer[..len]) else { continue };
            let first = PeerView { iss: segment.seq, scale: 0, edge: 0, max: 1, blocks: false };
            let view = self.views.entry(segment.dst).or_insert(first);
            if segment.flags.contains(Flags::SYN) {
                view.scale = segment.options.window_scale.unwrap_or(0);
                continue;
            }
            let acked = segment.ack.offset(ISS, view.edge.max(1)).unwrap();
            view.edge = view.edge.max(acked + (u64::from(segment.window) << view.scale));
            view.blocks |= !segment.options.sack.as_slice().is_empty();
            let start = segment.seq.offset(view.iss, view.max).unwrap();
            view.max = view.max.max(start + segment.payload.len() as u64);
        }
    }

    /// Processes packets until `condition` returns true.
    fn receive_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !condition(self) {
            assert!(begin.elapsed() < TIMEOUT, "timed out while waiting for {what}");
            thread::sleep(Duration::from_millis(1));
            self.receive();
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
        self.receive_until("a SYN,ACK", |peers| peers.views.contains_key(&from));
        self.text(from, 1, &[]);
    }
}

fn peer_addr(n: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(198, 18, (n / 200) as u8, 1 + (n % 200) as u8).into(), 10_000 + n)
}

/// Accepts connections and keeps them open without sending.
fn accept_only(listener: TcpListener) {
    thread::spawn(move || {
        let mut streams = vec![];
        while let Ok((stream, _)) = listener.accept() {
            streams.push(stream);
        }
    });
}

#[test]
fn out_of_order_bytes_do_not_pin_buffers() {
    const CLIENTS: u16 = 256;
    let namespace = namespace();
    accept_only(listener(&namespace, 8080));
    // The peers never close, so a short grace period lets the server stop soon.
    let serving = Serving::start(&namespace, &[TARGET], &["--recipe=sack", "--grace=300ms"]);
    let mut peers = SimulatedPeers::new(&namespace, 1460);
    (0..CLIENTS).for_each(|n| peers.open(peer_addr(n)));
    serving.events("opened", CLIENTS.into(), |_| true);
    let before = serving.memory("VmRSS");
    for n in 0..CLIENTS {
        peers.text(peer_addr(n), 1, b"x");
    }
    peers.receive_until("open windows", |peers| peers.views.values().all(|view| view.edge > 0));
    for n in 0..CLIENTS {
        let edge = peers.views[&peer_addr(n)].edge;
        peers.text(peer_addr(n), edge - 1, b"x");
    }
    peers.receive_until("SACK blocks", |peers| peers.views.values().all(|view| view.blocks));
    let growth = serving.memory("VmHWM") - before;
    println!("memory grew by {growth} kB for two bytes from each of {CLIENTS} clients");
    assert!(growth < 8_000, "memory grew by {growth} kB");
    let end = serving.stop();
    assert!(end["memory"]["most"].as_u64() < Some(1 << 20), "{end}");
    record(
        "256 clients send a byte at the right window edge",
        "out-of-order data costs only the bytes received",
        format_args!("memory grew by {growth} kB"),
    );
}

/// Number of segments in flight before the attack begins.
const SEGMENTS: u64 = 2000;

/// A client with an MSS of 64 sends ACKs that SACK all data except the first segment. Each new ACK advances
/// by one segment only, and so reneges on the data that the previous one SACKed.
#[test]
fn reneging_peer_does_not_delay_other_clients() {
    let namespace = namespace();
    serve_pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--recipe=sack", "--grace=300ms"]);
    let alone = fetches(&namespace, 20);
    let mut peers = SimulatedPeers::new(&namespace, 64);
    let attacker = peer_addr(1);
    peers.open(attacker);
    peers.text(attacker, 1, b"much");
    // First let the congestion window open. After that, acknowledge no more data.
    let (begin, mut una) = (Instant::now(), 1);
    while begin.elapsed() < Duration::from_secs(30) && peers.views[&attacker].max < una + 64 * SEGMENTS {
        peers.receive();
        let PeerView { iss, max, .. } = peers.views[&attacker];
        // Acknowledge every second segment, as receivers do, until enough segments are in flight.
        while una + 128 <= max && max < una + 64 * SEGMENTS {
            una += 128;
            peers.send(attacker, Flags::ACK, 5, iss.at(una), &Options::default(), &[]);
        }
    }
    let outstanding = (peers.views[&attacker].max - una) / 64;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let attack = thread::spawn(move || {
        let (begin, mut acks) = (Instant::now(), 0_u32);
        while !stopped.load(Ordering::Relaxed) {
            peers.receive();
            let PeerView { iss, max, .. } = peers.views[&attacker];
            // 1 Mbit/s of ACKs that are 88 bytes long, including the link layer's overhead.
            while f64::from(acks) < begin.elapsed().as_secs_f64() * 1400.0 && una + 128 < max {
                una += 64;
                let mut blocks = Options::default();
                blocks.sack.push(iss.at(una + 1), iss.at(max));
                peers.send(attacker, Flags::ACK, 5, iss.at(una), &blocks, &[]);
                acks += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        acks
    });
    thread::sleep(Duration::from_millis(200));
    let attacked = fetches(&namespace, 20);
    stop.store(true, Ordering::Relaxed);
    let acks = attack.join().unwrap();
    let text = format!(
        "the slowest of 20 pages takes {:?} alone, {:?} during the attack: {acks} ACKs, {outstanding} segments in flight",
        alone[19], attacked[19]
    );
    println!("{text}; alone: {alone:?}; attacked: {attacked:?}");
    assert!(outstanding >= SEGMENTS, "{text}");
    assert!(attacked[19] < Duration::from_secs(2), "{text}");
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    serving.end();
    record("a client reneges on SACKed data with every ACK", "other clients are not delayed", text);
}

/// Opens up to `most` connections that request endless data and do not read, so that each window closes.
fn non_reading_clients(namespace: &Namespace, most: usize) -> Vec<TcpStream> {
    let soon = Duration::from_millis(300);
    let connect = || TcpStream::connect_timeout(&SERVER.parse().unwrap(), soon);
    let connected = (0..most).map_while(|_| namespace.enter(connect).unwrap().ok());
    let crowd: Vec<TcpStream> = connected.collect();
    for mut stream in &crowd {
        stream.write_all(b"much").unwrap();
    }
    // Long enough to fill all buffers.
    thread::sleep(Duration::from_secs(1));
    crowd
}

#[test]
fn non_reading_clients_do_not_delay_others() {
    const CROWD: usize = 200;
    let namespace = namespace();
    serve_pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--recipe=sack"]);
    let alone = fetches(&namespace, 20);
    let before = serving.memory("RssAnon");
    let crowd = non_reading_clients(&namespace, CROWD);
    assert_eq!(crowd.len(), CROWD);
    let attacked = fetches(&namespace, 20);
    let growth = serving.memory("RssAnon").saturating_sub(before);
    // Each client is still served: reading makes room for more data.
    for mut stream in crowd {
        // More than all buffers on the path can hold.
        let mut much = vec![0; size(1_500_000, 5_000_000)];
        stream.read_exact(&mut much).unwrap();
        assert!(much.iter().all(|byte| *byte == 7));
    }
    let text = format!(
        "the slowest of 20 pages takes {:.1?} alone, {:.1?} with these clients; memory grew by {growth} kB",
        alone[19], attacked[19]
    );
    assert!(attacked[19] < Duration::from_secs(2), "{text}");
    // Per client, a 128 KiB buffer that holds the 64 KiB to be sent, and the state of the connection.
    assert!(growth < 150 * CROWD as u64, "{text}");
    serving.stop();
    record("200 clients with closed windows", "others are not delayed; at most 150 kB per client", text);
}

#[test]
fn memory_exhaustion_evicts_connections_for_new_clients() {
    const MEMORY: u64 = 1 << 10;
    // Each page waits until one connection of the crowd is closed to make room.
    const PAGES: usize = 5;
    let namespace = namespace();
    serve_pages(listener(&namespace, 8080));
    let more = ["--recipe=sack", "--memory=1Mi", "--give-way=300ms", "--grace=300ms"];
    let serving = Serving::start(&namespace, &[TARGET], &more);
    let before = serving.memory("RssAnon");
    let mut crowds = vec![];
    let (mut growth, mut begin) = (0, Instant::now());
    while !serving.has_outcome("gave-way") {
        let clients = crowds.iter().map(Vec::len).sum::<usize>();
        assert!(clients < 400, "the memory was sufficient for all 400 clients");
        crowds.push(non_reading_clients(&namespace, 20));
        growth = serving.memory("RssAnon").saturating_sub(before);
        // A client that was not admitted found the memory full, or the machine was slow.
        if crowds.last().unwrap().len() < 20 {
            begin = Instant::now();
            assert_eq!(fetches(&namespace, PAGES).len(), PAGES);
        }
    }
    let clients: usize = crowds.iter().map(Vec::len).sum();
    let text = format!(
        "{clients} clients: memory grew by {growth} kB, then {PAGES} pages took {:.1?}",
        begin.elapsed()
    );
    println!("{text}");
    assert!(growth < MEMORY + 20 * clients as u64, "{text}");
    assert!(serving.outcome("gave-way")["reason"].as_str().unwrap().contains("other connections"));
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    serving.end();
    record(
        "closed windows use all of --memory=1Mi",
        "the limit holds; the idlest gives way to a new client",
        text,
    );
}
