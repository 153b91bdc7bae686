//! Queue disciplines in front of RLC: packets wait where the discipline sees them, and the radio notices nothing.

use airlink::machine::{Machine, catch_up};
use airlink::packet::Direction;
use airlink::path::{FIXED, Named, Path};
use airlink::rlc::bearer::Bearer;
use airlink::rlc::config::{BlockErrors, RlcConfig};
use airlink::stage::{Event, Mark, Recording, Why};
use airlink::stages::queue::{
    Bounds, CodelConfig, Discipline, FqCodelConfig, Length, PieConfig, QueueConfig, RedConfig,
};
use airwire::time::{Duration, Instant};
use airwire::units::Probability;

/// A bearer of 384 kbit/s, and what has come out of it: when, and which packet.
struct Run {
    path: Path,
    left: Vec<(Instant, Vec<u8>)>,
    pdus: Vec<Vec<u8>>,
}

impl Run {
    fn new(discipline: Discipline, bler: f64) -> Self {
        let config = config(discipline, bler);
        let stage = Box::new(Bearer::new(&config, 1, "radio").unwrap());
        let path = Path::new(vec![Named { name: "radio".to_owned(), stage }], Recording::Events, true);
        Self { path, left: Vec::new(), pdus: Vec::new() }
    }

    fn until(&mut self, now: Instant) {
        let Self { path, left, pdus } = self;
        catch_up(path, now, |at, _, bytes| left.push((at, bytes)));
        pdus.extend(path.take_pdus().into_iter().map(|pdu| pdu.bytes.to_vec()));
        let totals = &path.totals()[Direction::Down];
        let gone = totals.left + totals.dropped.iter().sum::<u64>();
        assert_eq!(totals.entered, gone + path.held() as u64, "{totals:?}");
    }

    fn send(&mut self, now: Instant, bytes: Vec<u8>) {
        self.until(now);
        self.path.handle_packet(now, FIXED, bytes);
    }

    fn dropped_for(&self, why: Why) -> u64 {
        self.path.totals()[Direction::Down].dropped_for(why)
    }
}

fn config(discipline: Discipline, bler: f64) -> RlcConfig {
    let mut config = RlcConfig::wcdma_384();
    config.down.queue = QueueConfig { bounds: Bounds::default(), discipline };
    config.down.channel.errors = BlockErrors::Independent { bler: Probability::new(bler) };
    config
}

fn at(milliseconds: u64) -> Instant {
    Instant::from_millis(milliseconds)
}

/// A UDP datagram of this flow, with its number in it.
fn udp(port: u16, number: u32, octets: usize) -> Vec<u8> {
    let mut bytes = vec![0; octets];
    bytes[0] = 0x45;
    bytes[1] = 2;
    bytes[2..4].copy_from_slice(&(octets as u16).to_be_bytes());
    bytes[9] = 17;
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[28..32].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[28..32].try_into().unwrap())
}

/// 1500 octets each 25 ms are 480 kbit/s, for so many seconds.
fn overload(discipline: Discipline, seconds: u64) -> Run {
    let mut run = Run::new(discipline, 0.05);
    for n in 0..seconds * 40 {
        run.send(at(25 * n), udp(1, n as u32, 1500));
    }
    run.until(at(1000 * seconds + 60_000));
    assert_eq!(run.path.held(), 0);
    run
}

/// Does nothing within the times of these tests.
fn patient() -> CodelConfig {
    CodelConfig {
        target: Duration::from_secs(1000),
        interval: Duration::from_secs(2000),
        ..CodelConfig::default()
    }
}

#[test]
fn what_waits_in_front_of_rlc_is_on_the_air_at_the_same_time_as_what_waits_in_it() {
    // Small packets, of which many fill a TTI, and large ones; a burst, silence, and a little now and then.
    let run = |discipline, bler| {
        let mut run = Run::new(discipline, bler);
        let mut now = Instant::ZERO;
        for n in 0..400_u32 {
            now += Duration::from_millis(if n % 50 == 0 { 600 } else { u64::from(n % 7 * 4) });
            let octets = [40, 1500, 52, 576, 41][n as usize % 5];
            run.send(now, udp(1, n, octets));
        }
        run.until(at(120_000));
        run
    };
    for bler in [0.0, 0.1, 0.3] {
        let (in_it, in_front) = (run(Discipline::DropTail, bler), run(Discipline::Codel(patient()), bler));
        assert!(in_it.left.len() > 300 && in_it.path.held() == 0);
        assert!(in_it.left == in_front.left && in_it.pdus == in_front.pdus, "block error rate {bler}");
    }
}

#[test]
fn each_discipline_keeps_the_queue_in_front_of_rlc_short() {
    let worst = |run: &Run| {
        run.left.iter().map(|(left, bytes)| *left - at(25 * u64::from(number(bytes)))).max().unwrap()
    };
    let without = overload(Discipline::DropTail, 20);
    assert!(worst(&without) > Duration::from_secs(4), "{}", worst(&without));
    let red = RedConfig {
        min: Length::Packets(5),
        max: Length::Packets(15),
        weight: Probability::new(0.05),
        max_p: Probability::new(0.5),
        ..RedConfig::default()
    };
    let pie = PieConfig { target: Duration::from_millis(100), ..PieConfig::default() };
    for discipline in [
        Discipline::Codel(CodelConfig::default()),
        Discipline::FqCodel(FqCodelConfig {
            codel: CodelConfig { ecn: false, ..CodelConfig::default() },
            ..FqCodelConfig::default()
        }),
        Discipline::Pie(pie),
        Discipline::Red(red),
    ] {
        let run = overload(discipline, 20);
        assert!(run.dropped_for(Why::Aqm) > 50, "{discipline:?}: {}", run.dropped_for(Why::Aqm));
        assert_eq!(run.dropped_for(Why::QueueFull), 0);
        assert!(worst(&run) < worst(&without), "{discipline:?}: {}", worst(&run));
        assert!(run.left.is_sorted_by_key(|(_, bytes)| number(bytes)), "one flow stays in order");
    }
}

#[test]
fn a_sparse_flow_does_not_wait_behind_a_bulk_one() {
    let run = |discipline| {
        let mut run = Run::new(discipline, 0.0);
        for n in 0..100 {
            run.send(at(0), udp(1, n, 1500));
        }
        run.send(at(1000), udp(2, 1000, 100));
        run.until(at(20_000));
        run.left.iter().find(|(_, bytes)| number(bytes) == 1000).unwrap().0 - at(1000)
    };
    let fair = FqCodelConfig { codel: patient(), ..FqCodelConfig::default() };
    let (alone, behind) = (run(Discipline::FqCodel(fair)), run(Discipline::DropTail));
    // What the entity has already is two packets at most: 63 ms, and the way.
    assert!(alone < Duration::from_millis(200) && behind > Duration::from_secs(2), "{alone} {behind}");
}

#[test]
fn a_packet_that_is_marked_arrives_marked() {
    let mut run = overload(Discipline::Codel(CodelConfig { ecn: true, ..CodelConfig::default() }), 10);
    let marked = Event::Marked { what: Mark::Congestion };
    let marks = run.path.take_records().into_iter().filter(|record| record.event == marked).count();
    let arrived = run.left.iter().filter(|(_, bytes)| bytes[1] == 3).count();
    assert!(marks > 10 && marks == arrived, "{marks} {arrived}");
    assert_eq!(run.left.len(), 400, "none was dropped");
}

#[test]
fn what_waits_is_told_with_how_long_it_waited() {
    let mut run = Run::new(Discipline::Codel(patient()), 0.0);
    for n in 0..10 {
        run.send(at(0), udp(1, n, 1500));
    }
    let stats = run.path.stats();
    let packets = stats["radio"]["down"]["queue_packets"].as_u64();
    // The first is on the air.
    assert_eq!((packets, run.path.held()), (Some(9), 10), "{stats}");
    run.until(at(5000));
    let waits: Vec<Duration> = run
        .path
        .take_records()
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Sent { waited } => Some(waited),
            _ => None,
        })
        .collect();
    // 480 octets each 10 ms, less the headers: a packet takes 32 ms or so.
    assert_eq!((waits.len(), waits[0]), (10, Duration::ZERO));
    assert!(waits.is_sorted() && (280..310).contains(&waits[9].as_millis()), "{waits:?}");
}

#[test]
fn a_discipline_can_come_and_go_under_way() {
    let mut run = Run::new(Discipline::DropTail, 0.0);
    for n in 0..30_u32 {
        if n % 10 == 5 {
            let disciplines =
                [Discipline::FqCodel(FqCodelConfig::default()), Discipline::Pie(PieConfig::default())];
            let discipline = if n == 25 { Discipline::DropTail } else { disciplines[n as usize / 10] };
            run.path.reconfigure(at(u64::from(n)), 0, &config(discipline, 0.0)).unwrap();
        }
        run.send(at(u64::from(n)), udp(1, n, 500));
    }
    run.until(at(30_000));
    let numbers: Vec<u32> = run.left.iter().map(|(_, bytes)| number(bytes)).collect();
    assert_eq!((numbers, run.path.held()), ((0..30).collect(), 0));
}
