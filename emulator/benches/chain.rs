//! Number of packets per second of processor time in short chains of stages, in virtual time.
//!
//! `cargo bench -p airlink --bench chain [-- NAME…]`. NAME selects chains by their complete names.

use airlink::machine::{Machine, catch_up, drain};
use airlink::path::{FIXED, MOBILE, NamedStage, Path};
use airlink::settings::Directions;
use airlink::stage::{Recording, Stage};
use airlink::stages::duplex::Duplex;
use airlink::stages::link::{Link, LinkConfig};
use airlink::stages::loss::{Loss, LossConfig};
use airlink::stages::queue::Bounds;
use airlink::stages::station::{Station, StationConfig};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Rate};
use nix::time::{ClockId, clock_gettime};

fn main() {
    let fast = |delay| LinkConfig {
        rate: Some(Rate::bits_per_second(100_000_000_000)),
        delay,
        queue: Bounds { packets: Some(1000), bytes: None }.into(),
        ..LinkConfig::default()
    };
    let uniform = LossConfig::uniform(Probability::new(0.01));
    let none = Duration::ZERO;
    measure("nothing", Vec::new);
    measure("loss", || vec![loss(&uniform)]);
    measure("link", || vec![link(&fast(none))]);
    measure("link + loss", || vec![link(&fast(none)), loss(&uniform)]);
    measure("link with delay + loss", || vec![link(&fast(Duration::from_millis(1))), loss(&uniform)]);
    for flows in [1, 1000] {
        transit(flows);
    }
}

/// Whether the command line names this chain, or no chain at all.
fn is_wanted(name: &str) -> bool {
    let mut names = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    names.peek().is_none() || names.any(|wanted| wanted == name)
}

fn link(config: &LinkConfig) -> Box<dyn Stage> {
    let make = |_, config: &LinkConfig| Link::new(config, Stream::new(1, "jitter").into());
    Box::new(Duplex::build(&both(config), make).expect("the settings are valid"))
}

fn loss(config: &LossConfig) -> Box<dyn Stage> {
    let make = |_, config: &LossConfig| Loss::new(config, Stream::new(1, "damage"), Stream::new(1, "state"));
    Box::new(Duplex::build(&both(config), make).expect("the settings are valid"))
}

fn both<T: Clone>(config: &T) -> Directions<T> {
    Directions { down: Some(config.clone()), up: Some(config.clone()) }
}

/// Processor time of this process.
fn cpu_time() -> std::time::Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every Linux has this clock").into()
}

/// Sends 1500-byte packets at a load just below the rate, in bursts of 32 as a TUN device delivers them. The buffers of
/// packets that left are reused, so that allocation is not measured.
fn measure(name: &str, stages: impl Fn() -> Vec<Box<dyn Stage>>) {
    const PACKETS: u32 = 3_000_000;
    const BURST: u32 = 32;
    if !is_wanted(name) {
        return;
    }
    report_best_of_three(name, || {
        let named = stages().into_iter().map(|stage| NamedStage { name: String::new(), stage });
        let mut path = Path::new(named.collect(), Recording::Off, false);
        let mut used: Vec<Vec<u8>> = Vec::new();
        let mut now = Instant::ZERO;
        let begin = cpu_time();
        for _ in 0..PACKETS / BURST {
            now += Duration::from_nanos(125 * u64::from(BURST));
            catch_up(&mut path, now, |_, _, bytes| used.push(bytes));
            for _ in 0..BURST {
                let packet = used.pop().unwrap_or_else(|| vec![0; 1500]);
                path.handle_packet(now, FIXED, packet);
                drain(&mut path, now, |_, _, bytes| used.push(bytes));
            }
        }
        (cpu_time() - begin).as_nanos() as f64 / f64::from(PACKETS)
    });
}

/// Prints the smallest of three measurements in nanoseconds per packet.
fn report_best_of_three(name: &str, mut measure: impl FnMut() -> f64) {
    let best = (0..3).map(|_| measure()).fold(f64::INFINITY, f64::min);
    println!("{name:24} {best:7.1} ns/packet {:12.0} packets/s", 1e9 / best);
}

/// A TCP segment in IPv4 without checksums, which a station does not verify.
fn segment(packet: &mut Vec<u8>, down: bool, flow: u16, flags: u8, seq: u32, ack: u32, payload: usize) {
    packet.clear();
    packet.resize(40 + payload, 0);
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
    packet[9] = 6;
    let (source, destination) = if down { (80, flow) } else { (flow, 80) };
    packet[12..20].copy_from_slice(&if down {
        [10, 1, 0, 1, 10, 2, 0, 1]
    } else {
        [10, 2, 0, 1, 10, 1, 0, 1]
    });
    packet[20..22].copy_from_slice(&source.to_be_bytes());
    packet[22..24].copy_from_slice(&destination.to_be_bytes());
    packet[24..28].copy_from_slice(&seq.to_be_bytes());
    packet[28..32].copy_from_slice(&ack.to_be_bytes());
    packet[32] = 0x50;
    packet[33] = flags;
}

/// Sends packets of several connections through a station with transit marks. Each round is two data segments in the
/// downlink and an ACK in the uplink of the next connection. In every 50th round, the data segments are reordered.
fn transit(flows: u16) {
    const ROUNDS: u32 = 1_000_000;
    const PAYLOAD: usize = 1460;
    let name = format!("station, {flows} flows");
    if !is_wanted(&name) {
        return;
    }
    report_best_of_three(&name, || {
        let config = StationConfig { transit_marks: true, ..StationConfig::default() };
        let stage: Box<dyn Stage> = Box::new(Station::new(&config));
        let mut path = Path::new(vec![NamedStage { name: String::new(), stage }], Recording::Off, false);
        let mut used = Vec::new();
        let mut pass = |from, flow, flags, seq, ack, payload| {
            let mut packet = used.pop().unwrap_or_default();
            segment(&mut packet, from == FIXED, flow, flags, seq, ack, payload);
            path.handle_packet(Instant::ZERO, from, packet);
            drain(&mut path, Instant::ZERO, |_, _, bytes| used.push(bytes));
        };
        for flow in 1..=flows {
            pass(FIXED, flow, 0x02, 0, 0, 0);
            pass(MOBILE, flow, 0x12, 0, 1, 0);
            pass(FIXED, flow, 0x10, 1, 1, 0);
        }
        let begin = cpu_time();
        for round in 0..ROUNDS {
            let flow = 1 + (round % u32::from(flows)) as u16;
            let seq = 1 + round / u32::from(flows) * 2 * PAYLOAD as u32;
            let (first, second) = (seq, seq + PAYLOAD as u32);
            let late = round % 50 == 0;
            let order = if late { [second, first] } else { [first, second] };
            for seq in order {
                pass(FIXED, flow, 0x10, seq, 1, PAYLOAD);
            }
            pass(MOBILE, flow, 0x10, 1, second + PAYLOAD as u32, 0);
        }
        (cpu_time() - begin).as_nanos() as f64 / f64::from(3 * ROUNDS)
    });
}
