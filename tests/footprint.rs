//! Memory of connections and of a path that looks ahead, measured with a counting allocator.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait; every call is passed on as it came")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use airlink::machine::Machine;
use airlink::path::FIXED;
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airtcp::host::{ConnId, Host, IoError};
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::{SocketOptions, State};
use airtcp_testkit::pair::{Impairments, Pair, RIGHT};
use airtcp_testkit::sample::size;
use airwire::segment::{self, Ecn, Header};
use airwire::time::{Duration, Instant};

struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every method passes its arguments to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller upholds the contract of GlobalAlloc.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn in_use() -> isize {
    IN_USE.load(Relaxed)
}

/// Upper bound on heap bytes per end of a connection.
const LIMIT: isize = 2048;

fn pump(host: &mut Host, id: ConnId, octets: usize) -> usize {
    let mut buffer = [0; 4096];
    let mut total = 0;
    while total < octets {
        match host.read(id, &mut buffer) {
            Ok(n) => total += n,
            Err(IoError::WouldBlock) => break,
            Err(error) => panic!("{error}"),
        }
    }
    total
}

/// Serializes the tests: the allocator counts the memory of the whole process.
static COUNTED: Mutex<()> = Mutex::new(());

#[test]
fn segment_at_window_edge_allocates_no_buffer() {
    let _counted = COUNTED.lock().unwrap();
    let profile = Profile::default();
    let recipe: Recipe = "sack".parse().unwrap();
    let path = Impairments::lossless(Duration::from_millis(1));
    let mut pair = Pair::new(1, (&recipe, &recipe), (&profile, &profile), path);
    let options = SocketOptions::of(&profile);
    let listener = pair.right.listen((RIGHT, 80).into(), 16, options.clone()).unwrap();
    let id = pair.left.connect(pair.now, None, (RIGHT, 80).into(), options.clone()).unwrap();
    let peer = loop {
        assert!(pair.step());
        if let Some(peer) = pair.right.accept(listener) {
            break peer;
        }
    };
    // Transfer data until the receive window has grown to its maximum, then drain both ends.
    for _ in 0..200 {
        let _ = pair.left.write(pair.now, id, &[7; 50_000]);
        assert!(pair.step());
        pump(&mut pair.right, peer, usize::MAX);
    }
    while pair.step() {
        pump(&mut pair.right, peer, usize::MAX);
    }
    let mut packet = Vec::new();
    assert_eq!(pair.left.write(pair.now, id, b"x"), Ok(1));
    assert!(pair.left.poll_packet(pair.now, &mut packet));
    // Forge a segment with the same byte at a much higher sequence number; `emit` computes new checksums.
    let tcp = segment::parse(&packet).unwrap();
    let far = u64::from(profile.acks.recv_buffer as u32) - 100_000;
    let header = Header {
        src: tcp.src,
        dst: tcp.dst,
        seq: tcp.seq.at(far),
        ack: tcp.ack,
        flags: tcp.flags,
        window: tcp.window,
        ecn: Ecn::NotEct,
        tos: 0,
        ttl: 64,
        dont_fragment: true,
        ident: 0,
    };
    let (mut octets, mut forged) = (Vec::new(), Vec::new());
    tcp.options.write(airwire::options::Layout::Linux, &mut octets);
    segment::emit(&mut forged, &header, &octets, (b"x", &[]));
    let before = in_use();
    pair.right.handle_packet(pair.now, &forged);
    while pair.right.poll_packet(pair.now, &mut packet) {}
    let connection = pair.right.connection(peer).unwrap();
    assert_eq!(connection.statistics().out_of_order_segments_in, 1, "it lies inside the window");
    let grown = in_use() - before;
    println!("{grown} bytes for a one-byte segment at {far}");
    assert!(grown < 4096, "{grown} bytes for a one-byte segment");
}

#[test]
fn idle_connection_uses_under_two_kilobytes() {
    let _counted = COUNTED.lock().unwrap();
    for (recipe, profile) in [("newreno", "default"), ("sack", "default"), ("sack", "linux")] {
        let per_end = measure(recipe, profile, size(500, 10_000));
        println!("{recipe} {profile}: {per_end} bytes per idle connection");
        assert!(per_end < LIMIT, "{recipe} {profile}: {per_end} bytes per idle connection");
        let half_open = measure_half_open(recipe, profile);
        println!("{recipe} {profile}: {half_open} bytes per half-open connection");
        assert!(
            half_open < HALF_OPEN_LIMIT,
            "{recipe} {profile}: {half_open} bytes per half-open connection"
        );
    }
}

/// A sender stores its unacknowledged data and little else, even if its window was large before.
#[test]
fn busy_connection_stores_little_besides_its_data() {
    let _counted = COUNTED.lock().unwrap();
    let busy = size(50, 500);
    const LARGE: usize = 200_000;
    const WAITING: usize = 8_000;
    for (recipe, profile) in [("newreno", "default"), ("sack", "linux")] {
        let recipe: Recipe = recipe.parse().unwrap();
        let profile = Profile::by_name(profile).unwrap();
        let path = Impairments::lossless(Duration::from_millis(1));
        let mut pair = Pair::new(1, (&recipe, &recipe), (&profile, &profile), path);
        let options = SocketOptions::of(&profile);
        let listener = pair.right.listen((RIGHT, 80).into(), 16, options.clone()).unwrap();
        let mut packet = Vec::with_capacity(2000);
        let mut ids = Vec::with_capacity(busy);
        let before = in_use();
        for _ in 0..busy {
            let id = pair.left.connect(pair.now, None, (RIGHT, 80).into(), options.clone()).unwrap();
            let peer = loop {
                assert!(pair.step());
                if let Some(peer) = pair.right.accept(listener) {
                    break peer;
                }
            };
            assert_eq!(pair.left.write(pair.now, id, &[7; LARGE]), Ok(LARGE));
            let mut received = 0;
            while received < LARGE {
                assert!(pair.step());
                received += pump(&mut pair.right, peer, usize::MAX);
            }
            while pair.left.connection(id).unwrap().unacknowledged() > 0 {
                assert!(pair.step());
            }
            ids.push(id);
        }
        for id in ids {
            assert_eq!(pair.left.write(pair.now, id, &[7; WAITING]), Ok(WAITING));
            // Lose these segments.
            while pair.left.poll_packet(pair.now, &mut packet) {}
            // The last, partial segment may wait for an ACK (Nagle's algorithm).
            assert!(pair.left.connection(id).unwrap().unsent() < 1448);
        }
        let per_end = (in_use() - before) / (2 * busy as isize);
        println!("{per_end} bytes per end of a busy connection");
        // Only one of the two ends stores the data, so each end accounts for half.
        let limit = LIMIT + (WAITING + WAITING / 4) as isize / 2;
        assert!(per_end < limit, "{per_end} bytes per end of a busy connection");
    }
}

/// Background traffic that full queues drop takes no memory, even if no other packet enters the path for a
/// long time.
#[test]
fn dropped_background_traffic_takes_no_memory() {
    let _counted = COUNTED.lock().unwrap();
    let traffic = "[[stage]]\nkind = \"traffic\"\n\
        down = { source = \"cbr\", rate = \"90Mbit\", packet = \"300B\", leaves_after = \"end\" }\n";
    let delay = "[[stage]]\nkind = \"link\"\ndown = { delay = \"4s\" }\n";
    let links = "[[stage]]\nkind = \"link\"\nname = \"wire\"\n\
        down = { rate = \"2Mbit\", queue.packets = 30 }\n\
        [[stage]]\nkind = \"link\"\nname = \"end\"\ndown = { delay = \"1ms\" }\n";
    for stages in [[traffic, links].concat(), [delay, traffic, links].concat()] {
        let scenario = Scenario::parse(&format!("schema = 1\n{stages}"), "test").unwrap();
        let mut path = scenario.build(Some(1), Recording::Off, false).unwrap();
        path.be_lazy(true);
        path.look_ahead(0);
        let before = in_use();
        path.handle_packet(Instant::ZERO, FIXED, vec![0; 100]);
        let ahead = in_use() - before;
        let behind = [5, 20].map(|seconds| {
            path.catch_up(Instant::from_secs(seconds));
            in_use() - before
        });
        // The queue and the delay contain some packets. A change per packet of background traffic would take megabytes.
        assert!(path.background().down.entered > 700_000, "{:?}", path.background());
        assert!(ahead < 200_000 && behind[0] < 200_000, "{ahead}, then {behind:?} bytes: {stages}");
        assert!(behind[1] < behind[0] + 10_000, "{behind:?} bytes: {stages}");
    }
}

/// Upper bound on heap bytes per half-open connection: the connection, its SYN,ACK in flight, and its entries
/// in the lists of the host.
const HALF_OPEN_LIMIT: isize = 2560;

/// Sends as many SYNs as the backlog holds, and the same number again. The second half must use (almost) no
/// memory.
fn measure_half_open(recipe: &str, profile: &str) -> isize {
    // Twice this number must not exceed the ephemeral ports of one client.
    let half_open = size(1000, 8000);
    let recipe: Recipe = recipe.parse().unwrap();
    let profile = Profile::by_name(profile).unwrap();
    let path = Impairments::lossless(Duration::from_millis(1));
    let mut pair = Pair::new(1, (&recipe, &recipe), (&profile, &profile), path);
    let options = SocketOptions::of(&profile);
    pair.right.listen((RIGHT, 80).into(), half_open, options.clone()).unwrap();
    let mut syns = Vec::with_capacity(2 * half_open);
    for _ in 0..2 * half_open {
        pair.left.connect(pair.now, None, (RIGHT, 80).into(), options.clone()).unwrap();
        let mut syn = Vec::new();
        assert!(pair.left.poll_packet(pair.now, &mut syn));
        syns.push(syn);
    }
    let (mut before, mut kept, mut answer) = (in_use(), 0, Vec::new());
    for (count, syn) in syns.iter().enumerate() {
        if count == half_open {
            kept = in_use() - before;
            before = in_use();
        }
        pair.right.handle_packet(pair.now, syn);
        assert!(pair.right.poll_packet(pair.now, &mut answer));
    }
    assert_eq!(pair.right.counters().gate.cookies_sent, half_open as u64);
    assert!(in_use() - before < LIMIT, "{} bytes for SYNs beyond the backlog", in_use() - before);
    kept / half_open as isize
}

fn measure(recipe: &str, profile: &str, connections: usize) -> isize {
    let recipe: Recipe = recipe.parse().unwrap();
    let profile = Profile::by_name(profile).unwrap();
    let path = Impairments::lossless(Duration::from_millis(1));
    let mut pair = Pair::new(1, (&recipe, &recipe), (&profile, &profile), path);
    let options = SocketOptions::of(&profile);
    let listener = pair.right.listen((RIGHT, 80).into(), 16, options.clone()).unwrap();
    let before = in_use();
    let mut ids = Vec::with_capacity(connections);
    let list = in_use() - before;
    for _ in 0..connections {
        let id = pair.left.connect(pair.now, None, (RIGHT, 80).into(), options.clone()).unwrap();
        let peer = loop {
            assert!(pair.step());
            if let Some(peer) = pair.right.accept(listener) {
                break peer;
            }
        };
        // Send 20,000 bytes in each direction, so that every buffer and list has been used.
        let octets = [7; 20_000];
        assert_eq!(pair.left.write(pair.now, id, &octets), Ok(octets.len()));
        assert_eq!(pair.right.write(pair.now, peer, &octets), Ok(octets.len()));
        let mut received = [0, 0];
        while received != [octets.len(); 2] {
            assert!(pair.step());
            received[0] += pump(&mut pair.left, id, octets.len());
            received[1] += pump(&mut pair.right, peer, octets.len());
        }
        ids.push((id, peer));
    }
    while pair.step() {}
    for (left, right) in &ids {
        assert_eq!(pair.left.connection(*left).map(|c| c.state()), Some(State::Established));
        assert_eq!(pair.right.connection(*right).map(|c| c.state()), Some(State::Established));
    }
    (in_use() - before - list) / (2 * connections as isize)
}
