//! Kernel TCP on both sides of a base station: the station's header changes must not disturb it.

mod common;

use std::any::Any;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use airlink::driver::{self, Endpoint};
use airlink::netns::Namespace;
use airlink::packet::{Direction, Packet};
use airlink::path::{NamedStage, Path};
use airlink::reactor::{Clock, Reactor};
use airlink::stage::{DropReason, Outbox, ReconfigureError, Recording, Stage};
use airlink::stages::station::{Station, StationConfig};
use airlink::tun::{Tun, TunConfig};
use airwire::time::{Duration, Instant};
use serde_json::Value;

/// A radio link that loses every `n`th long packet in the downlink.
struct Radio {
    n: u32,
    seen: u32,
}

impl Stage for Radio {
    fn handle_packet(&mut self, _: Instant, packet: Packet, out: &mut Outbox) {
        let data = packet.direction == Direction::Down && packet.len() > 500;
        self.seen += u32::from(data);
        if data && self.seen.is_multiple_of(self.n) {
            out.drop(packet, DropReason::Loss);
        } else {
            out.forward(packet);
        }
    }
    fn handle_deadline(&mut self, _: Instant, _: &mut Outbox) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> usize {
        0
    }
    fn stats(&self) -> Value {
        Value::Null
    }
    fn reconfigure(&mut self, _: Instant, _: &dyn Any, _: &mut Outbox) -> Result<(), ReconfigureError> {
        Ok(())
    }
}

fn namespace_with_ecn() -> Namespace {
    let namespace = common::namespace();
    // Reserved bits on a SYN must not confuse a host that negotiates ECN with other bits of the SYN.
    namespace.sysctl("net.ipv4.tcp_ecn", "1").unwrap();
    namespace
}

fn device(namespace: &Namespace, addrs: [&str; 2], routes: [&str; 2]) -> Tun {
    Tun::open(&TunConfig {
        namespace: Some(namespace.path().to_owned()),
        addrs: addrs.map(|addr| addr.parse().unwrap()).to_vec(),
        routes: routes.map(|route| route.parse().unwrap()).to_vec(),
        ..TunConfig::default()
    })
    .unwrap()
}

/// The byte of the transferred data at `index`.
fn byte_at(index: usize) -> u8 {
    (index / 251 + index) as u8
}

/// Timeout for reads and writes: a failure must also end the threads.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

fn send(mut stream: &TcpStream, size: usize) {
    let sent: Vec<u8> = (0..size).map(byte_at).collect();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(&sent).unwrap();
}

/// Accepts a connection, and reads to the end of its stream.
fn receive(listener: &TcpListener) -> io::Result<Vec<u8>> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received)?;
    Ok(received)
}

/// A station, and a radio link that loses every `n`th long packet.
fn path_with_station(n: u32) -> Path {
    let config = StationConfig { transit_marks: true, loss_report: true, ..StationConfig::default() };
    Path::new(
        vec![
            NamedStage { name: "station".to_owned(), stage: Box::new(Station::new(&config)) },
            NamedStage { name: "radio".to_owned(), stage: Box::new(Radio { n, seen: 0 }) },
        ],
        Recording::Off,
        false,
    )
}

/// One kernel sends `size` bytes to another through a station and a radio link. Returns the station's counters.
fn transfer(to: &str, size: usize, n: u32) -> Value {
    let (fixed, mobile) = (namespace_with_ecn(), namespace_with_ecn());
    let mut endpoints = [
        Endpoint::new(device(&fixed, ["10.1.0.1/24", "fd01::1/64"], ["10.2.0.0/24", "fd02::/64"]), None),
        Endpoint::new(device(&mobile, ["10.2.0.1/24", "fd02::1/64"], ["10.1.0.0/24", "fd01::/64"]), None),
    ];
    let mut path = path_with_station(n);
    let mut reactor = Reactor::new(Clock::start()).unwrap();
    let to: SocketAddr = to.parse().unwrap();
    let done = AtomicBool::new(false);
    let listener = mobile.enter(|| TcpListener::bind(to)).unwrap().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| send(&fixed.enter(|| TcpStream::connect(to)).unwrap().unwrap(), size));
        let receiver = scope.spawn(|| {
            let received = receive(&listener);
            done.store(true, Ordering::Release);
            received.unwrap()
        });
        let clock = reactor.clock();
        let latest = clock.now() + Duration::from_secs(120);
        while !done.load(Ordering::Acquire) {
            assert!(clock.now() < latest, "the transfer hangs: {}", path.stats());
            let slice = clock.now() + Duration::from_millis(50);
            driver::run(&mut path, &mut endpoints, &mut reactor, Some(slice), &mut ()).unwrap();
        }
        let received = receiver.join().unwrap();
        assert_eq!(received.len(), size);
        assert!(received.iter().enumerate().all(|(index, byte)| *byte == byte_at(index)));
    });
    path.stats()["station"].clone()
}

fn check(stats: &Value, at_least: u64) {
    let count = |group: &str, name: &str| stats[group][name].as_u64().unwrap();
    // A SYN and a SYN-ACK.
    assert!(count("transit", "announced") >= 2);
    assert_eq!(
        ["out_of_range", "learned_without_handshake", "bypassed"].map(|name| count("transit", name)),
        [0; 3]
    );
    assert!(count("counters", "inserted") > at_least);
    assert_eq!(count("counters", "options_malformed"), 0);
}

#[test]
fn kernel_sender_tolerates_marks_and_reports_on_acks() {
    for to in ["10.2.0.1:5001", "[fd02::1]:5001"] {
        let stats = transfer(to, 20_000_000, u32::MAX);
        // One ACK of the kernel covers many segments.
        check(&stats, 500);
        assert_eq!(stats["radio"]["down"]["damaged"], 0);
        assert_eq!(stats["counters"]["options_full"], 0);
    }
}

#[test]
fn kernel_sender_recovers_with_reports_and_sack_blocks() {
    let stats = transfer("10.2.0.1:5001", 20_000_000, 50);
    check(&stats, 50);
    assert!(stats["radio"]["down"]["damaged"].as_u64().unwrap() > 200);
    let rate = stats["radio"]["down"]["rate"].as_f64().unwrap();
    assert!((0.015..0.025).contains(&rate), "every 50th packet is lost, but the reported rate is {rate}");
    assert!(stats["counters"]["options_full"].as_u64().unwrap() > 0, "three SACK blocks leave no room");
}
