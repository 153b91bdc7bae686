//! Number of UDP datagrams per second that one thread forwards from one device to another. A second thread sends
//! them.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use airlink::reactor::{Interest, Reactor, Token};
use airlink::scenario::Scenario;
use airlink::tun::Tun;
use airwire::time::{Duration, Instant};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, send, setsockopt, socket, sockopt,
};
use nix::time::ClockId;

use super::{Arguments, Emulated, MTU, cpu_time, device, namespaces, reactor, table, wire};

const BATCH: usize = 64;
/// A destination behind the first device. The kernel behind the second device drops packets to this
/// destination.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

const LOSS: &str =
    "[[stage]]\nkind = \"loss\"\nname = \"loss\"\nboth = { model = \"uniform\", per = \"0.1%\" }\n";

/// A bearer of NR that carries more than the devices: 2.4 Gbit/s, with HARQ, RLC AM and PDCP.
const BEARER: &str = "schema = 1\n[[stage]]\nkind = \"nr\"\nname = \"radio\"\npattern = \"D\"\n\
    down = { prb = 273, mcs = 27, layers = 4, queue = { packets = 10000 } }\n\
    both.harq.bler = { model = \"independent\", bler = \"10%\" }\n";

/// A bearer that carries less than the devices.
const PRESET: &str = "nr-fr1-100MHz";

/// The code that forwards.
enum Forwarder {
    BareCopy,
    /// A bare copy that holds each packet for this time, which shows the cost of a delay alone.
    BareDelay(Duration),
    Airlink(Emulated),
}

pub(super) fn run(arguments: &Arguments) {
    let preset = Scenario::load(PRESET).expect("the preset exists");
    let chain = |delay| Forwarder::Airlink(Emulated::Scenario(wire(delay) + LOSS));
    let mut rows = vec![
        ("bare copy", Forwarder::BareCopy),
        ("bare copy, after 5 ms", Forwarder::BareDelay(Duration::from_millis(5))),
        ("nothing between", Forwarder::Airlink(Emulated::Nothing)),
        ("queue + wire + loss", chain("0ms")),
        ("the same with a delay of 5 ms", chain("5ms")),
        ("NR bearer", Forwarder::Airlink(Emulated::Scenario(BEARER.to_owned()))),
        (PRESET, Forwarder::Airlink(Emulated::Scenario(preset.to_toml()))),
    ];
    rows.retain(|(name, _)| arguments.is_wanted(name));
    let samples = arguments.compare(&rows, |forwarder| forwarder.run(arguments));
    table("datagrams", [("kpackets/s", 0), ("ns of CPU", 0)], &rows, &samples, |sample| {
        [sample.per_second / 1e3, sample.cpu_ns]
    });
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    per_second: f64,
    /// Processor time of the forwarding thread per packet.
    cpu_ns: f64,
    #[expect(dead_code, reason = "it is printed, to divide counts of perf by it")]
    packets: u64,
}

impl Forwarder {
    fn run(&self, arguments: &Arguments) -> Sample {
        let namespaces = namespaces();
        let from = device(&namespaces[0], "10.9.0.1/24", &["10.99.0.0/16"], false);
        let to = device(&namespaces[1], "10.9.0.2/24", &[], false);
        let blaster = namespaces[0].enter(blaster).expect("the namespace is there").expect("a UDP socket");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| blast(&blaster, &stop));
            let before = cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID);
            let mut reactor = reactor();
            let until = reactor.clock().now() + arguments.duration;
            let packets = match self {
                Self::BareCopy => copy(&from, &to, &mut reactor, until),
                Self::BareDelay(delay) => copy_later(&from, &to, *delay, &mut reactor, until),
                Self::Airlink(emulated) => {
                    let (_, [_, to]) = emulated.drive([from, to], &mut reactor, until);
                    to.traffic().received_packets
                }
            };
            stop.store(true, Ordering::Relaxed);
            let cpu = cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID) - before;
            let per_second = packets as f64 / arguments.duration.as_secs_f64();
            Sample { per_second, cpu_ns: cpu / packets as f64, packets }
        })
    }
}

/// The least possible work.
fn copy(from: &Tun, to: &Tun, reactor: &mut Reactor, until: Instant) -> u64 {
    let clock = reactor.clock();
    reactor.register(from, Token(0), Interest::Read).expect("epoll");
    let mut buffer = [0; MTU as usize];
    let mut packets = 0;
    while clock.now() < until {
        let mut idle = true;
        for _ in 0..BATCH {
            let Some(len) = from.recv(&mut buffer).expect("the device is there") else { break };
            to.send(&buffer[..len]).expect("the device is there");
            packets += 1;
            idle = false;
        }
        if idle {
            let _ = reactor.wait(Some(until)).expect("epoll");
        }
    }
    packets
}

/// Like [`copy`], with a queue between the devices.
fn copy_later(from: &Tun, to: &Tun, delay: Duration, reactor: &mut Reactor, until: Instant) -> u64 {
    let clock = reactor.clock();
    reactor.register(from, Token(0), Interest::Read).expect("epoll");
    let mut buffer = [0; MTU as usize];
    let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut packets = 0;
    loop {
        let now = clock.now();
        if now >= until {
            return packets;
        }
        while let Some((_, packet)) = waiting.pop_front_if(|(due, _)| *due <= now) {
            to.send(&packet).expect("the device is there");
            spare.push(packet);
            packets += 1;
        }
        if let Some(len) = from.recv(&mut buffer).expect("the device is there") {
            let mut packet = spare.pop().unwrap_or_default();
            packet.clear();
            packet.extend_from_slice(&buffer[..len]);
            waiting.push_back((now + delay, packet));
        } else {
            let due = waiting.front().map_or(until, |(due, _)| *due);
            let _ = reactor.wait(Some(due.min(until))).expect("epoll");
        }
    }
}

fn blaster() -> nix::Result<OwnedFd> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(NOWHERE, 9)))?;
    // Each call sends many packets. Otherwise the sender would be slower than the forwarder.
    setsockopt(&socket, sockopt::UdpGsoSegment, &(i32::from(MTU) - 28))?;
    Ok(socket)
}

fn blast(socket: &OwnedFd, stop: &AtomicBool) {
    let datagrams = vec![0; (usize::from(MTU) - 28) * 40];
    while !stop.load(Ordering::Relaxed) {
        // A full queue drops packets, which is not a reason to stop.
        let _ = send(socket.as_raw_fd(), &datagrams, MsgFlags::empty());
    }
}
