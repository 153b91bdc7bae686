//! With offload the kernels hand over and take many segments in one; the link still sees each packet by itself.
//!
//! These tests make network namespaces and fail, saying so, when they are not run as root.

mod lab;

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
use airwire::segment;
use airwire::time::{Duration, Instant};
use lab::{Scratch, airlink, summary, text};

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

const NOTHING: &str = "schema = 1\nstage = []\n";

/// The link runs until this is set.
struct UntilOver<'a> {
    over: &'a AtomicBool,
    look: Instant,
}

impl Observer<Path> for UntilOver<'_> {
    fn after(&mut self, round: Round<'_, Path>) -> Result<ControlFlow<()>, DriverError> {
        self.look = round.now + Duration::from_millis(20);
        Ok(if self.over.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.look)
    }
}

/// What a transfer from the fixed side to the mobile left behind.
struct Transfer {
    /// Packets that left the fixed side, and that came to the mobile one.
    entered: Vec<Vec<u8>>,
    left: Vec<Vec<u8>>,
    /// Of the devices.
    traffic: [Traffic; 2],
    totals: Totals,
    upwards: Totals,
    lateness_packets: u64,
}

fn namespace() -> Namespace {
    Namespace::create().unwrap_or_else(|error| panic!("this test makes network namespaces: {error}"))
}

/// The packets of a pcap file that go to the mobile side.
fn downwards(file: &str) -> Vec<Vec<u8>> {
    let file = fs::read(file).unwrap();
    let mut rest = &file[24..];
    let mut packets = Vec::new();
    while let Some((header, behind)) = rest.split_at_checked(16) {
        let len = u32::from_ne_bytes(header[8..12].try_into().unwrap()) as usize;
        let packet = &behind[..len];
        // A damaged header may say anything: then who has it is told by the rest of the test.
        if packet[16..20] != [10, 8, 0, 1] {
            packets.push(packet.to_vec());
        }
        rest = &behind[len..];
    }
    packets
}

/// A kernel sends so many octets to another one.
fn transfer(name: &str, scenario: &str, offload: bool, octets: usize) -> Transfer {
    let (fixed, mobile) = (namespace(), namespace());
    let scratch = Scratch::new(name);
    let clock = Clock::start();
    let endpoint = |namespace: &Namespace, addr: &str, file: &str| {
        let config = TunConfig {
            namespace: Some(namespace.path().to_path_buf()),
            addrs: vec![addr.parse().unwrap()],
            mtu: MTU as u16,
            offload,
            ..TunConfig::default()
        };
        let capture = Capture::create(scratch.path(file), clock.wall_zero()).unwrap();
        Endpoint::new(Tun::open(&config).unwrap(), Some(capture))
    };
    let mut endpoints =
        [endpoint(&fixed, "10.8.0.1/24", "fixed.pcap"), endpoint(&mobile, "10.8.0.2/24", "mobile.pcap")];
    let scenario = Scenario::parse(scenario, "test").unwrap();
    let mut path = scenario.build(Some(7), Recording::Off, false).unwrap();
    let mut reactor = Reactor::new(clock).unwrap();
    let listener = mobile.enter(|| TcpListener::bind("10.8.0.2:5000").unwrap()).unwrap();
    let data: Vec<u8> = (0..octets as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let over = AtomicBool::new(false);
    let lateness = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut arrived = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
            over.store(true, Ordering::Relaxed);
            arrived
        });
        scope.spawn(|| {
            let mut stream = fixed.enter(|| TcpStream::connect("10.8.0.2:5000").unwrap()).unwrap();
            stream.write_all(&data).unwrap();
        });
        let mut observer = UntilOver { over: &over, look: Instant::ZERO };
        let lateness = driver::run(&mut path, &mut endpoints, &mut reactor, None, &mut observer).unwrap();
        assert!(receiver.join().unwrap() == data, "what arrived is not what was sent");
        lateness
    });
    Transfer {
        entered: downwards(&scratch.path("fixed.pcap")),
        left: downwards(&scratch.path("mobile.pcap")),
        traffic: endpoints.each_ref().map(Endpoint::traffic),
        totals: path.totals()[Direction::Down].clone(),
        upwards: path.totals()[Direction::Up].clone(),
        lateness_packets: lateness.packets(),
    }
}

/// Which packets of those that entered did not leave, by their number. What is inside at the end is not among them.
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
    assert_eq!(left.next(), None, "what left has entered, and in this order");
    lost
}

#[test]
fn each_packet_is_lost_or_not_by_itself_and_is_whole_in_every_capture() {
    let with = transfer("lossy-with", LOSSY, true, 6_000_000);
    let without = transfer("lossy-without", LOSSY, false, 1_500_000);
    for packet in with.entered.iter().chain(&with.left) {
        assert!(packet.len() <= MTU, "a packet of {} octets", packet.len());
        assert!(segment::parse(packet).is_ok(), "with its checksum: {packet:?}");
    }
    for Transfer { entered, left, traffic: [fixed, mobile], totals, upwards, lateness_packets } in
        [&with, &without]
    {
        assert_eq!(totals.entered, entered.len() as u64);
        assert_eq!((fixed.sent_packets, fixed.sent_bytes), (totals.entered, totals.entered_bytes));
        assert_eq!((mobile.received_packets, mobile.received_bytes), (totals.left, totals.left_bytes));
        assert_eq!(left.len() as u64, totals.left);
        assert_eq!(*lateness_packets, totals.left + upwards.left, "each was due at its own time");
        assert_eq!([fixed.refused_packets, mobile.refused_packets], [0, 0]);
    }
    let [fixed, _] = with.traffic;
    assert!(fixed.reads < fixed.sent_packets, "{} reads of {} packets", fixed.reads, fixed.sent_packets);
    let [fixed, _] = without.traffic;
    assert_eq!(fixed.reads, fixed.sent_packets);
    // The same seed has the same numbers for the same packets, in whatever pieces they came.
    let (with_lost, without_lost) = (lost(&with.entered, &with.left), lost(&without.entered, &without.left));
    let end = with.left.len().min(without.left.len());
    let until = |lost: &[usize]| lost.iter().copied().filter(|number| *number < end).collect::<Vec<_>>();
    assert_eq!(until(&with_lost), until(&without_lost));
    assert!(without_lost.len() >= 3, "of a thousand packets one in a hundred is lost: {without_lost:?}");
}

#[test]
fn a_bulk_transfer_takes_fewer_reads_and_writes_than_packets() {
    let Transfer { entered, left, traffic: [fixed, mobile], .. } =
        transfer("bulk", NOTHING, true, 20_000_000);
    assert!(entered == left, "nothing is lost, and all is in order");
    let data = entered.iter().filter(|packet| packet.len() == MTU).count();
    assert!(data > 13_000, "20 MB are more than {data} full packets");
    // The initial window is ten segments, and slow start sends by twos at first.
    for (count, what) in [(fixed.reads, "reads"), (mobile.writes, "writes")] {
        assert!(count < entered.len() as u64 / 4, "{count} {what} of {} packets", entered.len());
    }
}

/// A device fills in checksums: of a damaged packet nobody would know.
#[test]
fn what_the_link_has_damaged_is_found_by_the_kernel_behind_it() {
    let damaged = transfer("corrupting", CORRUPTING, true, 10_000_000);
    let harmed = std::iter::zip(&damaged.entered, &damaged.left).filter(|(was, is)| was != is).count();
    assert!(harmed > 30, "of seven thousand packets one in a hundred is damaged: {harmed}");
    let [_, mobile] = damaged.traffic;
    assert!(mobile.writes < mobile.received_packets, "{mobile:?}");
}

#[test]
fn a_run_with_offload_captures_and_counts_packets_of_the_wire() {
    let scratch = Scratch::new("offload");
    let [data, arrived, pcap] = ["data", "arrived", "packets.pcap"].map(|name| scratch.path(name));
    fs::write(&data, (0..5_000_000_u32).map(|at| (at.wrapping_mul(at) >> 8) as u8).collect::<Vec<_>>())
        .unwrap();
    let server = format!("socat -u FILE:{data} TCP-LISTEN:5006,reuseaddr");
    let client = format!("socat -u TCP:$AIRLINK_FIXED:5006,retry=100,interval=0.1 CREATE:{arrived}");
    let run = |offload: &str| {
        let output = airlink(&[
            "run",
            "-s",
            "lossless",
            "--offload",
            offload,
            "--json",
            "--pcap-mobile",
            &pcap,
            "--server",
            &server,
            "--",
            "sh",
            "-c",
            &client,
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(fs::read(&data).unwrap() == fs::read(&arrived).unwrap());
        let summary = summary(&output);
        let number = |side: &str, what: &str| summary[side][what].as_u64().unwrap();
        assert_eq!(number("down", "entered"), number("fixed", "sent_packets"));
        assert!(downwards(&pcap).iter().all(|packet| packet.len() <= MTU));
        number("fixed", "sent_packets") / number("fixed", "reads")
    };
    assert_eq!(run("off"), 1);
    assert!(run("on") >= 4);
}
