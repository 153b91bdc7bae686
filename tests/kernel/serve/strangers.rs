//! Unknown clients of `airtcp-serve`: forged SYNs during downloads by kernel clients, idle connections, and
//! one source that opens connections without limit.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::hostile::segment_of;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{bytes, digest, namespace};
use airtcp_testkit::promises::record;
use airwire::options::{Options, Timestamps};
use airwire::segment::Flags;
use airwire::seq::Seq;

use super::setup::{
    SERVER, Serving, connect, fetch, fetches, listener, read_to_end, serve_pages, strangers_device,
};

const TARGET: &str = "127.0.0.1:8080";

const PATH: &str = r#"
schema = 1
description = "50 Mbit/s, 20 ms"
[[stage]]
kind = "link"
name = "wire"
both = { rate = "50Mbit", delay = "10ms", queue = { packets = 200 } }
"#;

/// Forged segment number `i`. Addresses and ports differ, and no host exists at these addresses.
fn forged(i: u32, flags: Flags) -> Vec<u8> {
    let addr = Ipv4Addr::from_bits(0xc612_0000 | i & 0xffff).into();
    forged_from(SocketAddr::new(addr, 1024 + (i % 60_000) as u16), i, flags)
}

fn forged_from(src: SocketAddr, i: u32, flags: Flags) -> Vec<u8> {
    let offer = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: i, ecr: 0 }),
        ..Options::default()
    };
    let numbers = (Seq(i.wrapping_mul(77_777)), Seq(0));
    segment_of((src, SERVER.parse().unwrap()), flags, numbers, &offer, &[])
}

/// Forged segments from a network behind a separate device.
struct Flood {
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    thread: Option<JoinHandle<u64>>,
}

impl Flood {
    fn start(namespace: &Namespace, per_second: u64, flags: Flags) -> Self {
        Self::of(namespace, per_second, move |i| forged(i, flags))
    }

    fn of(namespace: &Namespace, per_second: u64, packet: impl Fn(u32) -> Vec<u8> + Send + 'static) -> Self {
        let tun = strangers_device(namespace);
        let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, answered) = (Arc::clone(&stop), Arc::clone(&answers));
        let thread = thread::spawn(move || {
            let (begin, mut sent, mut buffer) = (Instant::now(), 0, vec![0; 65_536]);
            while !stopped.load(Ordering::Relaxed) {
                let due = begin.elapsed().as_micros() as u64 * per_second / 1_000_000;
                while sent < due {
                    sent += u64::from(tun.send(&packet(sent as u32)).is_ok());
                }
                while let Ok(Some(_)) = tun.recv(&mut buffer) {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        Self { stop, answers, thread: Some(thread) }
    }

    /// Returns the number of segments sent and the number of answers.
    fn stop(mut self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.thread.take().unwrap().join().unwrap();
        (sent, self.answers.load(Ordering::Relaxed))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn syn_flood_does_not_slow_clients() {
    let link = EmulatedPath::new(PATH, 1);
    serve_pages(listener(&link.fixed, 8080));
    let serving = Serving::start(&link.fixed, &[TARGET], &[]);
    let without = fetches(&link.mobile, 40);
    let flood = Flood::start(&link.fixed, 5000, Flags::SYN);
    serving.event("interval", |interval| interval["gate"]["syn_cookies_sent"].as_u64() > Some(100));
    let with = fetches(&link.mobile, 40);
    let (sent, answered) = flood.stop();
    let text = format!(
        "median {:?} without and {:?} with the flood; {sent} forged SYNs, {answered} answers",
        without[20], with[20]
    );
    println!("{text}; all without: {without:?}; with: {with:?}");
    assert!(with[20] < without[20] * 2, "{text}");
    let end = serving.stop();
    let gate = |what: &str| end["gate"][what].as_u64().unwrap();
    assert!(gate("syn_cookies_sent") > sent * 9 / 10, "{end}");
    assert!(gate("syn_cookies_accepted") >= 30, "{end}");
    assert_eq!((gate("syn_cookies_refused"), gate("syns_dropped")), (0, 0), "{end}");
    assert_eq!(end["totals"]["done"], 80);
    // Each forged SYN gets one answer. Only those that hold a half-open connection get three before they are
    // evicted.
    assert!(answered < sent * 11 / 10, "{text}");
    let ratio = with[20].as_secs_f64() / without[20].as_secs_f64();
    record(
        "5000 forged SYNs per second",
        "clients are slower by less than a factor of 2",
        format_args!(
            "median {:.1?}, {ratio:.2} times that without flood; {answered} answers to {sent}",
            with[20]
        ),
    );
}

/// Resets go to the claimed source of segments without a connection. The server limits their rate.
#[test]
fn resets_to_one_source_are_rate_limited() {
    let namespace = namespace();
    serve_pages(listener(&namespace, 8080));
    namespace.sysctl("net.ipv4.ip_forward", "1").unwrap();
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    let begin = Instant::now();
    let source = Ipv4Addr::from_bits(0xc612_0001).into();
    let flood = Flood::of(&namespace, 5000, move |i| {
        forged_from(SocketAddr::new(source, 1024 + (i % 60_000) as u16), i, Flags::ACK)
    });
    thread::sleep(Duration::from_secs(2));
    fetch(&namespace);
    let (sent, answered) = flood.stop();
    // At most 100 in each second that has begun.
    let seconds = begin.elapsed().as_secs() + 2;
    assert!(
        sent > 5000 && answered > 0 && answered <= 100 * seconds,
        "{answered} answers to {sent} segments in {seconds} s"
    );
    let end = serving.stop();
    assert_eq!(end["gate"]["resets_sent"].as_u64(), end["resets_sent"].as_u64());
    assert!(end["gate"]["resets_withheld"].as_u64() > Some(1000), "{end}");
    record(
        "5000 ACKs without a connection per second",
        "at most 100 resets per second to one source",
        format_args!("{answered} resets to {sent} in {seconds} s at most"),
    );
}

/// An attacker who knows both endpoints of a connection but none of its sequence numbers (RFC 5961).
#[test]
fn blind_resets_and_syns_do_not_close_connections() {
    let link = EmulatedPath::new(PATH, 1);
    let server = listener(&link.fixed, 8080);
    let data = bytes(1, 3_000_000);
    let sent = data.clone();
    thread::spawn(move || {
        let (mut peer, _) = server.accept().unwrap();
        for part in sent.chunks(30_000) {
            peer.write_all(part).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
    });
    let serving = Serving::start(&link.fixed, &[TARGET], &[]);
    let client = connect(&link.mobile);
    let from = client.local_addr().unwrap();
    let flood = Flood::of(&link.fixed, 5000, move |i| {
        forged_from(from, i, [Flags::RST, Flags::SYN, Flags::RST.with(Flags::ACK)][i as usize % 3])
    });
    assert_eq!(digest(&read_to_end(&client)), digest(&data));
    drop(client);
    let (sent, _) = flood.stop();
    serving.outcome("done");
    let end = serving.stop();
    assert!(sent > 5000, "{sent}");
    assert_eq!(end["totals"]["radio_failed"], 0, "{end}");
    record(
        "5000 blind resets and SYNs per second",
        "a connection with unknown sequence numbers survives",
        format_args!("3 MB unchanged during {sent} segments"),
    );
}

#[test]
fn longest_idle_connection_gives_way_to_new_client() {
    let namespace = namespace();
    serve_pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--max-connections=3", "--give-way=500ms"]);
    let mut idle: Vec<TcpStream> = (0..3).map(|_| connect(&namespace)).collect();
    serving.events("opened", 3, |_| true);
    // Only the first connection has sent anything recently.
    thread::sleep(Duration::from_millis(300));
    idle[0].write_all(b"p").unwrap();
    let took = fetch(&namespace);
    assert!(took < Duration::from_secs(2), "{took:?}");
    let closed = serving.outcome("gave-way");
    assert_eq!(closed["connection"], 2, "{closed}");
    assert!(closed["reason"].as_str().unwrap().contains("other connections"), "{closed}");
    let mut rest = vec![];
    assert_eq!(idle[1].read_to_end(&mut rest).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // The connection that sent something continues.
    idle[0].write_all(b"age").unwrap();
    idle[0].read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 20_000);
    drop(idle);
    assert_eq!(serving.stop()["totals"]["gave_way"], 1);
    record(
        "idle connections reach --max-connections",
        "the idlest gives way to a client after --give-way",
        format_args!("served in {took:.1?} with --give-way=500ms"),
    );
}

#[test]
fn max_per_source_limits_connections_of_one_source() {
    let namespace = namespace();
    serve_pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--max-per-source=2", "--grace=300ms"]);
    let mut share: Vec<TcpStream> = (0..2).map(|_| connect(&namespace)).collect();
    let soon = Duration::from_millis(300);
    let another = |addr: &str| {
        let addr = addr.parse().unwrap();
        namespace.enter(|| TcpStream::connect_timeout(&addr, soon)).unwrap()
    };
    assert_eq!(another(SERVER).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(another("[fd83::2]:80").is_ok(), "a different address must count as another source");
    // After a connection has ended, the next client is admitted, at the latest when it retransmits its SYN.
    drop(share.pop());
    fetch(&namespace);
    drop(share);
    let end = serving.stop();
    assert!(end["gate"]["over_source"].as_u64() >= Some(1), "{end}");
    record(
        "one source opens as many connections as it can",
        "it gets --max-per-source, others are not affected",
        "2 of 3, and 1 of 1 from another source",
    );
}
