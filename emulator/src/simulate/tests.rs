use super::*;

/// All packets that entered or left the path.
#[derive(Default)]
struct Log(Vec<(Instant, Port, Vec<u8>)>);

impl PacketObserver for Log {
    type Error = std::convert::Infallible;
    fn packet(&mut self, at: Instant, end: Port, packet: &[u8]) {
        self.0.push((at, end, packet.to_vec()));
    }
    fn after(&mut self, _: Instant, _: &mut Path) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn workload(down: &str, up: &str) -> Workload {
    Workload {
        loads: PerDirection { down: down.parse().unwrap(), up: up.parse().unwrap() },
        sizes: Sizes::Fixed(1000),
        family: Family::V4,
        seed: 1,
        until: Instant::from_secs(1),
        drain: Duration::from_secs(1),
    }
}

fn empty_path() -> Path {
    Path::new(Vec::new(), crate::stage::Recording::Off, false)
}

fn simulated(workload: &Workload) -> (Log, PerDirection<Arrived>) {
    let mut log = Log::default();
    let Ok((_, arrived)) = run(&mut empty_path(), workload, &mut log);
    (log, arrived)
}

#[test]
fn constant_rate_sends_at_equal_intervals_from_start() {
    let (log, arrived) = simulated(&workload("cbr:80kbit", "none"));
    let sent: Vec<u64> =
        log.0.iter().filter(|(_, end, _)| *end == FIXED).map(|(at, ..)| at.as_millis()).collect();
    assert_eq!(sent, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
    assert_eq!(arrived.down, Arrived { intact: 10, damaged: 0, late: 0 });
}

#[test]
fn every_second_packet_is_acknowledged() {
    let (log, _) = simulated(&workload("cbr:80kbit", "acks"));
    let acks: Vec<_> = log.0.iter().filter(|(_, end, packet)| *end == MOBILE && packet.len() == 40).collect();
    assert_eq!(acks.len(), 5);
    assert_eq!(acks[0].0.as_millis(), 100);
}

#[test]
fn ack_crosses_empty_path_without_delay() {
    let (log, _) = simulated(&workload("cbr:80kbit", "acks"));
    let acks = |border| {
        let at = log.0.iter().filter(|(_, end, packet)| *end == border && packet.len() == 40);
        at.map(|(at, ..)| *at).collect::<Vec<_>>()
    };
    assert_eq!(acks(FIXED).len(), 5);
    assert_eq!(acks(FIXED), acks(MOBILE));
    assert!(log.0.is_sorted_by_key(|(at, ..)| *at));
}

#[test]
fn saturating_load_on_empty_path_advances_clock() {
    let (_, arrived) = simulated(&workload("saturate", "saturate:3"));
    assert_eq!(arrived.down.intact, 1000, "one packet per millisecond");
    assert_eq!(arrived.up.intact, 1000);
}

#[test]
fn poisson_load_has_requested_mean_rate() {
    let (_, arrived) = simulated(&workload("poisson:8Mbit", "none"));
    // 1000 expected, standard deviation 32. Less than one seed in 10,000 deviates by more than 4 standard
    // deviations.
    assert!((872..=1128).contains(&arrived.down.intact), "{arrived:?}");
}

#[test]
fn packets_of_any_size_carry_sequence_number() {
    for family in [Family::V4, Family::V6] {
        for len in (family.header()..200).chain([1500, 65_535]) {
            let packet = sequenced(family, Direction::Up, 65_538, len);
            assert_eq!(packet.len(), len);
            assert_eq!(sequence_bits(&packet), Some(2), "{len} octets");
        }
    }
    assert_eq!(sequence_bits(&acknowledgment(Family::V4, Direction::Up, 7)), None);
}

#[test]
fn damaged_and_late_packets_are_counted() {
    let mut source = LoadSource::new(Direction::Down, &workload("none", "none"));
    let packet = |number| sequenced(Family::V4, Direction::Down, number, 100);
    source.arrived(&packet(0));
    source.arrived(&packet(2));
    source.arrived(&packet(1));
    let mut damaged = packet(3);
    damaged[99] ^= 1;
    source.arrived(&damaged);
    assert_eq!(source.arrived, Arrived { intact: 3, damaged: 1, late: 1 });
}

#[test]
fn invalid_load_error_shows_example() {
    for text in ["", "cbr", "cbr:64", "saturate:0", "saturate:x", "flood", "acks:3"] {
        let error = text.parse::<Load>().unwrap_err().to_string();
        assert!(["kbit", "saturate:64"].iter().any(|example| error.contains(example)), "{error}");
    }
    for text in ["", "19", "65536", "big"] {
        assert!(text.parse::<Sizes>().is_err(), "{text}");
    }
}
