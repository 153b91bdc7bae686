//! Tests of the common behaviour of all disciplines, of each discipline, and of their agreement with the
//! kernel.

use airwire::time::{Duration, Instant};
use airwire::units::Size;

use super::testing::{Bench, ect, udp};
use super::{Bounds, CodelConfig, Discipline, FqCodelConfig, Length, PieConfig, QueueConfig, RedConfig};
use crate::packet::Direction;
use crate::stage::{DropReason, Outbox, Recording};
use crate::stages::testing::packet;

mod codel;
mod fq_codel;
mod kernel;
mod pie;
mod red;

fn ms(milliseconds: u64) -> Instant {
    Instant::from_millis(milliseconds)
}

fn all() -> [Discipline; 5] {
    [
        Discipline::DropTail,
        Discipline::Codel(CodelConfig::default()),
        Discipline::FqCodel(FqCodelConfig::default()),
        Discipline::Pie(PieConfig::default()),
        Discipline::Red(RedConfig {
            min: Length::Packets(50),
            max: Length::Packets(150),
            ..RedConfig::default()
        }),
    ]
}

#[test]
fn bounds_hold_for_all_disciplines() {
    for discipline in all() {
        let bounds = Bounds { packets: Some(5), bytes: Some(Size::bytes(3500)) };
        let mut bench = Bench::with(QueueConfig { bounds, discipline }, 1);
        // Five short packets fit, but not a sixth. Then three packets of 1000 bytes fit, but not a fourth.
        for (octets, fit) in [(100, 5), (1000, 3)] {
            for n in 0..fit + 2 {
                bench.push(ms(0), udp(n, 1, octets));
                assert!(
                    bench.queue.len() <= usize::from(fit) && bench.queue.bytes() <= 3500,
                    "{discipline:?}"
                );
            }
            let drops = bench.drops();
            assert_eq!(drops.len(), 2, "{discipline:?}");
            assert!(drops.iter().all(|(_, _, why)| *why == DropReason::QueueFull), "{discipline:?}");
            while bench.pop(ms(0)).is_some() {}
            assert!(bench.queue.is_empty() && bench.queue.bytes() == 0);
        }
    }
}

#[test]
fn changing_discipline_keeps_packets_in_order() {
    for first in all() {
        for second in all() {
            let mut bench = Bench::new(first);
            for n in 0..40 {
                bench.push(ms(n / 2), udp(n as u8 % 7, 1, 60 + n as usize));
            }
            bench.reconfigure(ms(20), second.into());
            let bytes: u64 = (60..100).sum();
            assert_eq!((bench.queue.len(), bench.queue.bytes()), (40, bytes));
            let mut order: Vec<u64> = std::iter::from_fn(|| bench.pop(ms(20))).map(|(id, _)| id).collect();
            if matches!(second, Discipline::FqCodel(_)) {
                order.sort_unstable();
            }
            assert_eq!(order, (0..40).collect::<Vec<_>>(), "{first:?}, then {second:?}");
            assert!(bench.drops().is_empty() && bench.queue.is_empty() && bench.queue.bytes() == 0);
        }
    }
}

#[test]
fn new_settings_of_same_discipline_keep_its_state() {
    let codel = CodelConfig::default();
    let mut bench = Bench::new(Discipline::Codel(codel));
    bench.fill(ms(0), 1000);
    let drops_by = |bench: &mut Bench, from: u64, to: u64| {
        bench.pop_each(from..to);
        bench.drops().len()
    };
    // The delay exceeds the target from 5 ms on. Drops follow at 105 ms, 205 ms and so on.
    assert_eq!(drops_by(&mut bench, 0, 206), 2);
    let discipline = Discipline::Codel(CodelConfig { ecn: true, ..codel });
    bench.reconfigure(ms(206), discipline.into());
    assert_eq!(drops_by(&mut bench, 206, 277), 1, "the third drop follows 70.7 ms after the second");
}

#[test]
fn packet_does_not_wait_for_idle_transmitter() {
    for discipline in all() {
        let mut bench = Bench::new(discipline);
        let mut out = Outbox::new(Recording::Events, false);
        let packet = packet(7, Direction::Down, ms(1), ect(udp(1, 1, 1000)));
        assert_eq!(bench.queue.pass(ms(1), packet.clone(), &mut out), Some(packet), "{discipline:?}");
        assert!(bench.queue.is_empty() && out.take_records().is_empty());
    }
}

#[test]
fn invalid_setting_error_names_key() {
    let zero = Duration::ZERO;
    let codel = CodelConfig::default();
    let fq_codel = FqCodelConfig::default();
    let pie = PieConfig::default();
    let red = RedConfig::default();
    let packets = Length::Packets;
    for (key, discipline) in [
        ("target", Discipline::Codel(CodelConfig { target: zero, ..codel })),
        ("interval", Discipline::Codel(CodelConfig { interval: zero, ..codel })),
        ("target", Discipline::Codel(CodelConfig { target: codel.interval, ..codel })),
        ("flows", Discipline::FqCodel(FqCodelConfig { flows: 0, ..fq_codel })),
        ("flows", Discipline::FqCodel(FqCodelConfig { flows: 65_537, ..fq_codel })),
        ("quantum", Discipline::FqCodel(FqCodelConfig { quantum: Size::bytes(0), ..fq_codel })),
        (
            "interval",
            Discipline::FqCodel(FqCodelConfig { codel: CodelConfig { interval: zero, ..codel }, ..fq_codel }),
        ),
        ("target", Discipline::Pie(PieConfig { target: zero, ..pie })),
        ("t_update", Discipline::Pie(PieConfig { t_update: Duration::from_micros(999), ..pie })),
        ("alpha", Discipline::Pie(PieConfig { alpha: -0.1, ..pie })),
        ("beta", Discipline::Pie(PieConfig { beta: f64::NAN, ..pie })),
        ("max", Discipline::Red(RedConfig { max: red.min, ..red })),
        ("max", Discipline::Red(RedConfig { min: packets(5), max: Length::Bytes(Size::bytes(9000)), ..red })),
        ("weight", Discipline::Red(RedConfig { weight: airwire::units::Probability::ZERO, ..red })),
        ("max_p", Discipline::Red(RedConfig { max_p: airwire::units::Probability::ZERO, ..red })),
    ] {
        let invalid = QueueConfig::from(discipline).validate().unwrap_err();
        assert_eq!(invalid.key, key, "{discipline:?}: {invalid}");
    }
    for discipline in all() {
        assert_eq!(QueueConfig::from(discipline).validate(), Ok(()));
    }
}
