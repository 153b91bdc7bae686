//! Queue disciplines in front of RLC: the discipline manages the waiting packets, and the radio traffic is unchanged.

use airlink::machine::{Machine, catch_up};
use airlink::packet::Direction;
use airlink::path::{FIXED, NamedStage, Path};
use airlink::rlc::bearer::Bearer;
use airlink::rlc::config::{BlockErrors, RlcConfig};
use airlink::stage::{DropReason, Event, Mark, Recording};
use airlink::stages::queue::{
    Bounds, CodelConfig, Discipline, FqCodelConfig, Length, PieConfig, QueueConfig, RedConfig,
};
use airwire::time::{Duration, Instant};
use airwire::units::Probability;

/// A bearer of 384 kbit/s, and the packets that have left it.
struct Run {
    path: Path,
    left: Vec<(Instant, Vec<u8>)>,
    pdus: Vec<Vec<u8>>,
}

impl Run {
    fn new(discipline: Discipline, bler: f64) -> Self {
        let config = config(discipline, bler);
        let stage = Box::new(Bearer::new(&config, 1, "radio").unwrap());
        let path = Path::new(vec![NamedStage { name: "radio".to_owned(), stage }], Recording::Events, true);
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

    fn dropped_for(&self, why: DropReason) -> u64 {
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

/// A UDP datagram that contains `number`. The port identifies its flow.
fn udp(port: u16, number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[0] = 0x45;
    bytes[1] = 2;
    bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    bytes[9] = 17;
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[28..32].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[28..32].try_into().unwrap())
}

/// Sends 480 kbit/s for this time: 1500 bytes every 25 ms.
fn overload(discipline: Discipline, seconds: u64) -> Run {
    let mut run = Run::new(discipline, 0.05);
    for n in 0..seconds * 40 {
        run.send(at(25 * n), udp(1, n as u32, 1500));
    }
    run.until(at(1000 * seconds + 60_000));
    assert_eq!(run.path.held(), 0);
    run
}

/// CoDel with such a long target that it drops nothing in these tests.
fn inactive_codel() -> CodelConfig {
    CodelConfig {
        target: Duration::from_secs(1000),
        interval: Duration::from_secs(2000),
        ..CodelConfig::default()
    }
}

#[test]
fn queue_before_rlc_does_not_change_transmissions() {
    // Small and large packets, with bursts, pauses and single packets.
    let run = |discipline, bler| {
        let mut run = Run::new(discipline, bler);
        let mut now = Instant::ZERO;
        for n in 0..400_u32 {
            now += Duration::from_millis(if n % 50 == 0 { 600 } else { u64::from(n % 7 * 4) });
            let length = [40, 1500, 52, 576, 41][n as usize % 5];
            run.send(now, udp(1, n, length));
        }
        run.until(at(120_000));
        run
    };
    for bler in [0.0, 0.1, 0.3] {
        let (inside, in_front) =
            (run(Discipline::DropTail, bler), run(Discipline::Codel(inactive_codel()), bler));
        assert!(inside.left.len() > 300 && inside.path.held() == 0);
        assert!(inside.left == in_front.left && inside.pdus == in_front.pdus, "block error rate {bler}");
    }
}

#[test]
fn each_discipline_limits_the_queue_before_rlc() {
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
        assert!(
            run.dropped_for(DropReason::Aqm) > 50,
            "{discipline:?}: {}",
            run.dropped_for(DropReason::Aqm)
        );
        assert_eq!(run.dropped_for(DropReason::QueueFull), 0);
        assert!(worst(&run) < worst(&without), "{discipline:?}: {}", worst(&run));
        assert!(
            run.left.is_sorted_by_key(|(_, bytes)| number(bytes)),
            "the packets of one flow must stay in order"
        );
    }
}

#[test]
fn fq_codel_lets_sparse_flows_pass_bulk_flows() {
    let run = |discipline| {
        let mut run = Run::new(discipline, 0.0);
        for n in 0..100 {
            run.send(at(0), udp(1, n, 1500));
        }
        run.send(at(1000), udp(2, 1000, 100));
        run.until(at(20_000));
        run.left.iter().find(|(_, bytes)| number(bytes) == 1000).unwrap().0 - at(1000)
    };
    let fair = FqCodelConfig { codel: inactive_codel(), ..FqCodelConfig::default() };
    let (fair_delay, fifo_delay) = (run(Discipline::FqCodel(fair)), run(Discipline::DropTail));
    // At most two packets are already in the RLC entity: 63 ms plus the delay.
    assert!(
        fair_delay < Duration::from_millis(200) && fifo_delay > Duration::from_secs(2),
        "{fair_delay} {fifo_delay}"
    );
}

#[test]
fn congestion_marks_arrive() {
    let mut run = overload(Discipline::Codel(CodelConfig { ecn: true, ..CodelConfig::default() }), 10);
    let marked = Event::Marked { mark: Mark::Congestion };
    let marks = run.path.take_records().into_iter().filter(|record| record.event == marked).count();
    let arrived = run.left.iter().filter(|(_, bytes)| bytes[1] == 3).count();
    assert!(marks > 10 && marks == arrived, "{marks} {arrived}");
    assert_eq!(run.left.len(), 400, "CoDel must mark, not drop");
}

#[test]
fn waiting_packets_and_their_waiting_times_are_reported() {
    let mut run = Run::new(Discipline::Codel(inactive_codel()), 0.0);
    for n in 0..10 {
        run.send(at(0), udp(1, n, 1500));
    }
    let stats = run.path.stats();
    let packets = stats["radio"]["down"]["queue_packets"].as_u64();
    // The first packet is on the air.
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
    // 480 bytes per 10 ms minus the headers: a packet takes about 32 ms.
    assert_eq!((waits.len(), waits[0]), (10, Duration::ZERO));
    assert!(waits.is_sorted() && (280..310).contains(&waits[9].as_millis()), "{waits:?}");
}

#[test]
fn discipline_can_be_changed_while_running() {
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
