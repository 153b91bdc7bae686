//! How many packets per second a path forwards, beside a bare loop that copies from one device to another.
//!
//! Both run in every round, in turn, so that what else the machine does hits both; each between devices of its own,
//! in one thread, fed by another thread with UDP datagrams. Where other programs share the processors, the rate is
//! what they leave over; the processor time per packet says more then.
//!
//! Needs root and two cores: `cargo bench -p airlink --bench forward [-- ROUNDS SECONDS]`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use airlink::driver::{self, Endpoint, Observer};
use airlink::machine::{Crossover, Machine};
use airlink::netns::Anonymous;
use airlink::reactor::{Clock, Interest, Reactor, Token};
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airlink::tun::{Tun, TunConfig};
use airwire::time::{Duration, Instant};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, send, setsockopt, socket, sockopt,
};
use nix::time::{ClockId, clock_gettime};

const MTU: u16 = 1500;
const BATCH: usize = 64;
/// What is sent there leaves by the first device; behind the second nobody forwards it.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

/// A queue, a wire that is faster than any device here, and losses.
const CHAIN: &str = r#"
schema = 1
description = "queue, wire, loss"
[[stage]]
kind = "link"
name = "wire"
both = { rate = "100Gbit", delay = "0ms", queue = { packets = 1000 } }
[[stage]]
kind = "loss"
name = "loss"
both = { model = "uniform", per = "0.1%" }
"#;

/// The same with a propagation delay, so that every packet is held and has a deadline.
const DELAY: &str = r#"
schema = 1
description = "queue, wire with a delay, loss"
[[stage]]
kind = "link"
name = "wire"
both = { rate = "100Gbit", delay = "5ms", queue = { packets = 1000 } }
[[stage]]
kind = "loss"
name = "loss"
both = { model = "uniform", per = "0.1%" }
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yardstick {
    BareCopy,
    Crossover,
    Chain,
    Delay,
}

const YARDSTICKS: [Yardstick; 4] =
    [Yardstick::BareCopy, Yardstick::Crossover, Yardstick::Chain, Yardstick::Delay];

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<f64>().ok());
    let rounds = numbers.next().unwrap_or(11.0) as usize;
    let seconds = Duration::from_secs_f64(numbers.next().unwrap_or(1.0));
    let mut samples = vec![Vec::new(); YARDSTICKS.len()];
    for round in 1..=rounds {
        for (yardstick, samples) in YARDSTICKS.into_iter().zip(&mut samples) {
            let sample = yardstick.run(seconds);
            eprintln!("round {round}: {:<10} {sample:.0?}", format!("{yardstick:?}"));
            samples.push(sample);
        }
    }
    let bare: Vec<Sample> = samples[0].clone();
    println!(
        "{:<10} {:>11} {:>20}   {:>12} {:>20}",
        "", "kpackets/s", "of the bare copy", "ns of CPU", "of the bare copy"
    );
    for (yardstick, samples) in YARDSTICKS.into_iter().zip(samples) {
        let median = |of: fn(&Sample) -> f64| spread(samples.iter().map(of).collect())[1];
        let ratio = |of: fn(&Sample) -> f64| {
            let ratios = samples.iter().zip(&bare).map(|(sample, bare)| of(sample) / of(bare));
            spread(ratios.collect()).map(|ratio| format!("{ratio:>6.2}")).concat()
        };
        println!(
            "{:<10} {:>11.0} {:>20}   {:>12.0} {:>20}",
            format!("{yardstick:?}"),
            median(|sample| sample.per_second / 1e3),
            ratio(|sample| sample.per_second),
            median(|sample| sample.cpu_ns),
            // Packets per processor time, so that more is better here too.
            ratio(|sample| 1.0 / sample.cpu_ns),
        );
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    per_second: f64,
    /// Processor time of the forwarding thread per packet.
    cpu_ns: f64,
}

fn cpu_time() -> f64 {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has it");
    now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64
}

/// Smallest, median, largest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

impl Yardstick {
    fn run(self, seconds: Duration) -> Sample {
        let namespaces: [Anonymous; 2] =
            std::array::from_fn(|_| Anonymous::create().expect("this needs root"));
        let device = |namespace: &Anonymous, addr: &str, routes: &[&str]| {
            Tun::open(&TunConfig {
                namespace: Some(namespace.path()),
                addrs: vec![addr.parse().expect("an address")],
                routes: routes.iter().map(|route| route.parse().expect("a network")).collect(),
                mtu: MTU,
                ..TunConfig::default()
            })
            .expect("this needs root and /dev/net/tun")
        };
        let from = device(&namespaces[0], "10.9.0.1/24", &["10.99.0.0/16"]);
        let to = device(&namespaces[1], "10.9.0.2/24", &[]);
        let blaster = namespaces[0].enter(blaster).expect("the namespace is there").expect("a UDP socket");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| blast(&blaster, &stop));
            let before = cpu_time();
            let packets = match self {
                Self::BareCopy => copy(&from, &to, seconds),
                Self::Crossover => drive(&mut Crossover::default(), from, to, seconds),
                Self::Chain | Self::Delay => {
                    let text = if self == Self::Chain { CHAIN } else { DELAY };
                    let scenario = Scenario::parse(text, "chain").expect("the scenario is right");
                    let mut path = scenario.build(None, Recording::Off, false).expect("it can be built");
                    drive(&mut path, from, to, seconds)
                }
            };
            stop.store(true, Ordering::Relaxed);
            let (packets, cpu) = (packets as f64, cpu_time() - before);
            Sample { per_second: packets / seconds.as_secs_f64(), cpu_ns: cpu / packets }
        })
    }
}

/// As little as there can be.
fn copy(from: &Tun, to: &Tun, seconds: Duration) -> u64 {
    let clock = Clock::start();
    let mut reactor = Reactor::new(clock).expect("epoll");
    reactor.register(from, Token(0), Interest::Read).expect("epoll");
    let end = clock.now() + seconds;
    let mut buffer = [0; MTU as usize];
    let mut packets = 0;
    while clock.now() < end {
        let mut idle = true;
        for _ in 0..BATCH {
            let Some(len) = from.recv(&mut buffer).expect("the device is there") else { break };
            to.send(&buffer[..len]).expect("the device is there");
            packets += 1;
            idle = false;
        }
        if idle {
            let _ = reactor.wait(Some(end)).expect("epoll");
        }
    }
    packets
}

fn drive<M: Machine>(machine: &mut M, from: Tun, to: Tun, seconds: Duration) -> u64
where
    (): Observer<M>,
{
    let clock = Clock::start();
    let mut reactor = Reactor::new(clock).expect("epoll");
    let mut endpoints = [Endpoint::new(from, None), Endpoint::new(to, None)];
    let until: Option<Instant> = Some(clock.now() + seconds);
    driver::run(machine, &mut endpoints, &mut reactor, until, &mut ()).expect("the devices are there");
    endpoints[1].traffic().received_packets
}

fn blaster() -> nix::Result<OwnedFd> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(NOWHERE, 9)))?;
    // One call hands over many packets: otherwise the blaster would be the slower thread.
    setsockopt(&socket, sockopt::UdpGsoSegment, &(i32::from(MTU) - 28))?;
    Ok(socket)
}

fn blast(socket: &OwnedFd, stop: &AtomicBool) {
    let datagrams = vec![0; (usize::from(MTU) - 28) * 40];
    while !stop.load(Ordering::Relaxed) {
        // A full queue drops, which is not an error to stop for.
        let _ = send(socket.as_raw_fd(), &datagrams, MsgFlags::empty());
    }
}
