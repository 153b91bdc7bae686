//! Offload: the kernels exchange many segments per read and write, but the link handles each packet separately.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use airlink::capture::Capture;
use airlink::driver::{self, DriverError, Endpoint, Observer, Round, Traffic};
use airlink::netns::Namespace;
use airlink::packet::Direction;
use airlink::path::{Path, Totals};
use airlink::reactor::{Clock, Reactor};
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airlink::tun::{Tun, TunConfig};
use airtcp_testkit::temporary::TempDir;
use airwire::segment;
use airwire::time::{Duration, Instant};
use common::{airlink, namespace, summary, text};

const MTU: usize = 1500;

const LOSSY: &str = r#"
schema = 1
[[stage]]
kind = "link"
both = { rate = "200Mbit", delay = "2ms", queue = { packets = 1000 } }
[[stage]]
kind = "loss"
down = { model = "uniform", per = "1%" }
"#;

const CORRUPTING: &str = r#"
schema = 1
[[stage]]
kind = "corrupt"
down = { chance = "1%" }
"#;

const EMPTY: &str = "schema = 1\nstage = []\n";

/// Ends the link when `done` is set, which it checks every 20 ms.
struct StopWhenDone<'a> {
    done: &'a AtomicBool,
    next_check: Instant,
}

impl Observer<Path> for StopWhenDone<'_> {
    fn after(&mut self, round: Round<'_, Path>) -> Result<ControlFlow<()>, DriverError> {
        self.next_check = round.now + Duration::from_millis(20);
        Ok(if self.done.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.next_check)
    }
}

/// Results of a transfer from the fixed to the mobile side.
struct Transfer {
    /// Packets that the fixed side sent.
    entered: Vec<Vec<u8>>,
    /// Packets that the mobile side received.
    left: Vec<Vec<u8>>,
    /// Counters of the devices: fixed, mobile.
    traffic: [Traffic; 2],
    totals: Totals,
    up_totals: Totals,
    lateness_packets: u64,
}

/// The packets of a pcap file that go to the mobile side.
fn down_packets(file: &str) -> Vec<Vec<u8>> {
    let file = fs::read(file).unwrap();
    let mut rest = &file[24..];
    let mut packets = Vec::new();
    while let Some((header, data)) = rest.split_at_checked(16) {
        let len = u32::from_ne_bytes(header[8..12].try_into().unwrap()) as usize;
        let packet = &data[..len];
        // A damaged header may contain any address. Such a packet counts as downlink.
        if packet[16..20] != [10, 8, 0, 1] {
            packets.push(packet.to_vec());
        }
        rest = &data[len..];
    }
    packets
}

fn endpoint(namespace: &Namespace, addr: &str, offload: bool, capture: Capture) -> Endpoint {
    let config = TunConfig {
        namespace: Some(namespace.path().to_path_buf()),
        addrs: vec![addr.parse().unwrap()],
        mtu: MTU as u16,
        offload,
        ..TunConfig::default()
    };
    Endpoint::new(Tun::open(&config).unwrap(), Some(capture))
}

/// One kernel sends `length` bytes to another one.
fn transfer(name: &str, scenario: &str, offload: bool, length: usize) -> Transfer {
    let (fixed, mobile) = (namespace(), namespace());
    let directory = TempDir::new(name);
    let clock = Clock::start();
    let capture = |file| Capture::create(directory.path(file), clock.wall_zero()).unwrap();
    let mut endpoints = [
        endpoint(&fixed, "10.8.0.1/24", offload, capture("fixed.pcap")),
        endpoint(&mobile, "10.8.0.2/24", offload, capture("mobile.pcap")),
    ];
    let scenario = Scenario::parse(scenario, "test").unwrap();
    let mut path = scenario.build(Some(7), Recording::Off, false).unwrap();
    let mut reactor = Reactor::new(clock).unwrap();
    let listener = mobile.enter(|| TcpListener::bind("10.8.0.2:5000").unwrap()).unwrap();
    let data: Vec<u8> = (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let done = AtomicBool::new(false);
    let lateness = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut arrived = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
            done.store(true, Ordering::Relaxed);
            arrived
        });
        scope.spawn(|| {
            let mut stream = fixed.enter(|| TcpStream::connect("10.8.0.2:5000").unwrap()).unwrap();
            stream.write_all(&data).unwrap();
        });
        let mut observer = StopWhenDone { done: &done, next_check: Instant::ZERO };
        let lateness = driver::run(&mut path, &mut endpoints, &mut reactor, None, &mut observer).unwrap();
        assert!(receiver.join().unwrap() == data, "the received data differs from the sent data");
        lateness
    });
    Transfer {
        entered: down_packets(&directory.path("fixed.pcap")),
        left: down_packets(&directory.path("mobile.pcap")),
        traffic: endpoints.each_ref().map(Endpoint::traffic),
        totals: path.totals()[Direction::Down].clone(),
        up_totals: path.totals()[Direction::Up].clone(),
        lateness_packets: lateness.packets(),
    }
}

/// Numbers of the entered packets that did not leave. Packets still in the path at the end do not count.
fn lost(entered: &[Vec<u8>], left: &[Vec<u8>]) -> Vec<usize> {
    let mut left = left.iter().peekable();
    let mut lost = Vec::new();
    for (number, packet) in entered.iter().enumerate() {
        if left.peek().is_none() {
            break;
        }
        if left.next_if_eq(&packet).is_none() {
            lost.push(number);
        }
    }
    assert_eq!(left.next(), None, "packets must leave in the order in which they entered");
    lost
}

#[test]
fn offload_keeps_loss_and_captures_per_packet() {
    let with = transfer("lossy-with", LOSSY, true, 6_000_000);
    let without = transfer("lossy-without", LOSSY, false, 1_500_000);
    for packet in with.entered.iter().chain(&with.left) {
        assert!(packet.len() <= MTU, "a packet of {} bytes", packet.len());
        assert!(segment::parse(packet).is_ok(), "invalid segment or checksum: {packet:?}");
    }
    for Transfer { entered, left, traffic: [fixed, mobile], totals, up_totals, lateness_packets } in
        [&with, &without]
    {
        assert_eq!(totals.entered, entered.len() as u64);
        assert_eq!((fixed.sent_packets, fixed.sent_bytes), (totals.entered, totals.entered_bytes));
        assert_eq!((mobile.received_packets, mobile.received_bytes), (totals.left, totals.left_bytes));
        assert_eq!(left.len() as u64, totals.left);
        assert_eq!(*lateness_packets, totals.left + up_totals.left, "each packet has its own departure time");
        assert_eq!([fixed.refused_packets, mobile.refused_packets], [0, 0]);
    }
    let [fixed, _] = with.traffic;
    assert!(fixed.reads < fixed.sent_packets, "{} reads of {} packets", fixed.reads, fixed.sent_packets);
    let [fixed, _] = without.traffic;
    assert_eq!(fixed.reads, fixed.sent_packets);
    // The same seed loses the same packets, regardless of how many packets each read returned.
    let (with_lost, without_lost) = (lost(&with.entered, &with.left), lost(&without.entered, &without.left));
    let end = with.left.len().min(without.left.len());
    let until = |lost: &[usize]| lost.iter().copied().filter(|number| *number < end).collect::<Vec<_>>();
    assert_eq!(until(&with_lost), until(&without_lost));
    assert!(without_lost.len() >= 3, "too few losses in a thousand packets at 1 %: {without_lost:?}");
}

#[test]
fn bulk_transfer_needs_fewer_system_calls_than_packets() {
    let Transfer { entered, left, traffic: [fixed, mobile], .. } = transfer("bulk", EMPTY, true, 20_000_000);
    assert!(entered == left, "packets were lost or reordered");
    let data = entered.iter().filter(|packet| packet.len() == MTU).count();
    assert!(data > 13_000, "20 MB need more than {data} full packets");
    // Slow start sends small bursts at first, so the average is below the maximum batch.
    for (count, what) in [(fixed.reads, "reads"), (mobile.writes, "writes")] {
        assert!(count < entered.len() as u64 / 4, "{count} {what} of {} packets", entered.len());
    }
}

/// The device must not fill in the checksum of a damaged packet, because that would hide the damage from TCP.
#[test]
fn receiving_kernel_detects_packets_damaged_by_the_link() {
    let damaged = transfer("corrupting", CORRUPTING, true, 10_000_000);
    let changed = std::iter::zip(&damaged.entered, &damaged.left).filter(|(was, is)| was != is).count();
    assert!(changed > 30, "too few damaged packets in seven thousand at 1 %: {changed}");
    let [_, mobile] = damaged.traffic;
    assert!(mobile.writes < mobile.received_packets, "{mobile:?}");
}

#[test]
fn run_with_offload_captures_and_counts_wire_packets() {
    let directory = TempDir::new("offload");
    let [data, arrived, pcap] = ["data", "arrived", "packets.pcap"].map(|name| directory.path(name));
    fs::write(&data, (0..5_000_000_u32).map(|at| (at.wrapping_mul(at) >> 8) as u8).collect::<Vec<_>>())
        .unwrap();
    let server = format!("socat -u FILE:{data} TCP-LISTEN:5006,reuseaddr");
    let client = format!("socat -u TCP:$AIRLINK_FIXED:5006,retry=100,interval=0.1 CREATE:{arrived}");
    let run = |offload: &str| {
        let link = ["run", "-s", "lossless", "--json", "--offload", offload, "--pcap-mobile", &pcap];
        let output = airlink(&[&link[..], &["--server", &server, "--", "sh", "-c", &client]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(fs::read(&data).unwrap() == fs::read(&arrived).unwrap());
        let summary = summary(&output);
        let number = |side: &str, what: &str| summary[side][what].as_u64().unwrap();
        assert_eq!(number("down", "entered"), number("fixed", "sent_packets"));
        assert!(down_packets(&pcap).iter().all(|packet| packet.len() <= MTU));
        number("fixed", "sent_packets") / number("fixed", "reads")
    };
    assert_eq!(run("off"), 1);
    assert!(run("on") >= 4);
}
