//! Strangers before `airtcp serve`: forged SYNs while the kernel's clients fetch, idle crowds, and one source that wants
//! everything.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::hostile::segment_of;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{bytes, digest, namespace};
use airtcp_testkit::promises::seen;
use airwire::options::{Options, Timestamps};
use airwire::segment::Flags;
use airwire::seq::Seq;

use super::stand::{PATIENCE, SERVED, Serving, connect, listener, read_to_end, strangers_device};

const TARGET: &str = "127.0.0.1:8080";

const PATH: &str = r#"
schema = 1
description = "50 Mbit/s, 20 ms"
[[stage]]
kind = "link"
name = "wire"
both = { rate = "50Mbit", delay = "10ms", queue = { packets = 200 } }
"#;

/// Number `i` of many: sources and ports differ, and behind none of them is anybody.
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
    segment_of((src, SERVED.parse().unwrap()), flags, numbers, &offer, &[])
}

/// Forged segments from a network behind a device of its own.
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

    /// Returns how many were sent, and how many were answered.
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

/// Answers each request with 20,000 octets.
fn pages(listener: TcpListener) {
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                let mut request = [0; 4];
                stream.read_exact(&mut request).and_then(|()| stream.write_all(&[7; 20_000]))
            });
        }
    });
}

/// From the SYN to the end of the answer.
fn fetch(namespace: &Namespace) -> Duration {
    let begin = Instant::now();
    let mut stream = connect(namespace);
    stream.write_all(b"give").unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 20_000);
    begin.elapsed()
}

/// Sorted.
fn fetches(namespace: &Namespace, count: usize) -> Vec<Duration> {
    let mut times: Vec<_> = (0..count).map(|_| fetch(namespace)).collect();
    times.sort();
    times
}

#[test]
fn under_five_thousand_forged_syns_a_second_clients_are_as_fast_as_without() {
    let link = EmulatedPath::new(PATH, 1);
    pages(listener(&link.fixed, 8080));
    let serving = Serving::start(&link.fixed, &[TARGET], &[]);
    let without = fetches(&link.mobile, 40);
    let flood = Flood::start(&link.fixed, 5000, Flags::SYN);
    serving.event("interval", |interval| interval["gate"]["syn_cookies_sent"].as_u64() > Some(100));
    let with = fetches(&link.mobile, 40);
    let (sent, answered) = flood.stop();
    let text = format!(
        "median {:?} without and {:?} with; {sent} forged SYNs, {answered} answers",
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
    // Each is answered once, but for those that are kept: they are answered three times before they give way.
    assert!(answered < sent * 11 / 10, "{text}");
    let ratio = with[20].as_secs_f64() / without[20].as_secs_f64();
    seen(
        "5000 forged SYNs a second",
        "clients are as fast as without, within a factor of 2",
        format_args!("median {:.1?}, {ratio:.2} of that without; {answered} answers to {sent}", with[20]),
    );
}

/// Segments of no connection are answered with resets to wherever they claim to come from: not with as many.
#[test]
fn strays_are_not_answered_one_by_one() {
    let namespace = namespace();
    pages(listener(&namespace, 8080));
    namespace.sysctl("net.ipv4.ip_forward", "1").unwrap();
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    let begin = Instant::now();
    let flood = Flood::start(&namespace, 5000, Flags::ACK);
    thread::sleep(Duration::from_secs(2));
    fetch(&namespace);
    let (sent, answered) = flood.stop();
    // At most 1000 in each second that had begun.
    let seconds = begin.elapsed().as_secs() + 2;
    assert!(sent > 5000 && answered > 0 && answered <= 1000 * seconds, "{answered} of {sent} in {seconds} s");
    let end = serving.stop();
    assert_eq!(end["gate"]["resets_sent"].as_u64(), end["resets_sent"].as_u64());
    assert!(end["gate"]["resets_withheld"].as_u64() > Some(1000), "{end}");
    seen(
        "5000 ACKs of no connection a second",
        "at most 1000 resets a second",
        format_args!("{answered} resets to {sent} in {seconds} s at most"),
    );
}

/// Somebody who knows both ends of a connection, but none of its numbers (RFC 5961).
#[test]
fn blind_resets_and_syns_end_no_connection() {
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
    seen(
        "5000 blind resets and SYNs a second",
        "a connection whose numbers are not known goes on",
        format_args!(
            "3 MB exact beside {sent} of them, {} answers withheld",
            end["gate"]["answers_withheld"]
        ),
    );
}

#[test]
fn who_has_been_idle_for_longest_gives_way() {
    let namespace = namespace();
    pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--max-connections=3", "--give-way=500ms"]);
    let mut idle: Vec<TcpStream> = (0..3).map(|_| connect(&namespace)).collect();
    serving.events("opened", 3, |_| true);
    // The first one has the latest word.
    thread::sleep(Duration::from_millis(300));
    idle[0].write_all(b"g").unwrap();
    let took = fetch(&namespace);
    assert!(took < Duration::from_secs(2), "{took:?}");
    let closed = serving.outcome("gave-way");
    assert_eq!(closed["connection"], 2, "{closed}");
    assert!(closed["reason"].as_str().unwrap().contains("other connections"), "{closed}");
    let mut rest = vec![];
    assert_eq!(idle[1].read_to_end(&mut rest).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // The one that had something to say goes on.
    idle[0].write_all(b"ive").unwrap();
    idle[0].read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 20_000);
    drop(idle);
    assert_eq!(serving.stop()["totals"]["gave_way"], 1);
    seen(
        "idle connections take every place",
        "the idlest gives way to a newcomer after --give-way",
        format_args!("served in {took:.1?} with --give-way=500ms"),
    );
}

#[test]
fn one_source_gets_no_more_than_its_share() {
    let namespace = namespace();
    pages(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &["--max-per-source=2", "--grace=300ms"]);
    let mut share: Vec<TcpStream> = (0..2).map(|_| connect(&namespace)).collect();
    let soon = Duration::from_millis(300);
    let another = |addr: &str| {
        let addr = addr.parse().unwrap();
        namespace.enter(|| TcpStream::connect_timeout(&addr, soon)).unwrap()
    };
    assert_eq!(another(SERVED).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(another("[fd83::2]:80").is_ok(), "another address is another source");
    // One is given back: the next one finds room, when its SYN is sent again at the latest.
    drop(share.pop());
    let mut stream = connect(&namespace);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"give").unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 20_000);
    drop(share);
    let end = serving.stop();
    assert!(end["gate"]["over_source"].as_u64() >= Some(1), "{end}");
    seen(
        "one source wants every place",
        "it gets --max-per-source, others are not concerned",
        "2 of 3, and 1 of 1 from elsewhere",
    );
}
