//! Random stages, alone and in chains: every packet is accounted for.

use std::collections::BTreeMap;

use airlink::machine::Port;
use airlink::packet::{Content, Origin, Packet, PacketId, PerDirection};
use airlink::stage::Outbox;
use airlink::stages::chosen::Affects;
use airlink::stages::corrupt::{Checksum, Corrupt, CorruptConfig, Part};
use airlink::stages::duplicate::{Duplicate, DuplicateConfig};
use airlink::stages::link::StepsConfig;
use airlink::stages::link::schedule::Schedule;
use airlink::stages::loss::{Loss, LossConfig};
use airlink::stages::outage::DuringOutage;
use airlink::stages::policer::{Policer, PolicerConfig};
use airlink::stages::queue::{
    Bounds, CodelConfig, Discipline, FqCodelConfig, Length, PieConfig, QueueConfig, RedConfig,
};
use airlink::stages::reorder::{Reorder, ReorderConfig};
use airlink::stages::truncate::{Truncate, TruncateConfig};
use airtcp_testkit::sample::cases;
use airwire::units::Size;
use proptest::prelude::*;

use super::traffic::{cbr, pareto};
use super::*;

#[derive(Clone, Debug)]
pub(super) enum StageConfig {
    Link(LinkConfig),
    Traced(&'static str),
    /// The schedule and the steps of the delay.
    Following(&'static str, StepsConfig),
    Loss(LossConfig),
    Outage(OutageConfig),
    Arq(ArqConfig),
    Traffic(TrafficConfig, usize),
    Reorder(ReorderConfig),
    Duplicate(DuplicateConfig),
    Corrupt(CorruptConfig),
    Truncate(TruncateConfig),
    Policer(PolicerConfig),
}

impl StageConfig {
    fn reorders(&self) -> bool {
        match self {
            Self::Arq(_) | Self::Reorder(_) => true,
            Self::Link(config) => matches!(config.queue.discipline, Discipline::FqCodel(_)),
            // Delayed copies leave after later packets.
            Self::Duplicate(config) => !config.gap.is_zero(),
            _ => false,
        }
    }

    fn duplicates(&self) -> bool {
        matches!(self, Self::Duplicate(_))
    }

    fn truncates(&self) -> bool {
        matches!(self, Self::Truncate(_))
    }

    /// Builds the stage with these settings in both directions.
    pub(super) fn stage(&self, index: usize, seed: u64) -> Box<dyn Stage> {
        let stream = |direction: Direction, what| Stream::new(seed, &format!("{index}/{direction}/{what}"));
        fn both<C: Clone>(config: &C) -> Directions<C> {
            Directions { down: Some(config.clone()), up: Some(config.clone()) }
        }
        match self {
            Self::Link(config) => duplex(&both(config), |d, c| {
                Link::new(c, LinkInputs { queue: stream(d, "queue"), ..stream(d, "jitter").into() })
            }),
            Self::Traced(trace) => {
                let trace = Some(Trace::parse(trace).unwrap());
                duplex(&both(&LinkConfig::default()), |d, c| {
                    Link::new(c, LinkInputs { trace: trace.clone(), ..stream(d, "jitter").into() })
                })
            }
            Self::Following(schedule, steps) => {
                let schedule = Some(Schedule::parse(schedule, true).unwrap());
                let config = LinkConfig { steps: Some(*steps), ..LinkConfig::default() };
                duplex(&both(&config), |d, c| {
                    Link::new(c, LinkInputs { schedule: schedule.clone(), ..stream(d, "jitter").into() })
                })
            }
            Self::Loss(config) => {
                duplex(&both(config), |d, c| Loss::new(c, stream(d, "damage"), stream(d, "state")))
            }
            Self::Outage(config) => duplex(&both(config), |_, c| Outage::new(c)),
            Self::Arq(config) => {
                duplex(&both(config), |d, c| Arq::new(c, stream(d, "damage"), stream(d, "queue")))
            }
            Self::Reorder(config) => {
                duplex(&both(config), |d, c| Reorder::new(c, stream(d, "chosen"), stream(d, "kept")))
            }
            Self::Duplicate(config) => duplex(&both(config), |d, c| Duplicate::new(c, stream(d, "chosen"))),
            Self::Corrupt(config) => {
                duplex(&both(config), |d, c| Corrupt::new(c, stream(d, "chosen"), stream(d, "bits")))
            }
            Self::Truncate(config) => {
                duplex(&both(config), |d, c| Truncate::new(c, stream(d, "chosen"), stream(d, "length")))
            }
            Self::Policer(config) => duplex(&both(config), |_, c| Policer::new(c)),
            Self::Traffic(config, reach) => duplex(&both(config), |direction, c| {
                let leaves_after = match direction {
                    Direction::Down => index + reach,
                    Direction::Up => index.saturating_sub(*reach),
                };
                Traffic::new(c, direction, leaves_after as u16, stream(direction, "times"))
            }),
        }
    }
}

pub(super) fn any_bounds() -> impl Strategy<Value = Bounds> {
    (proptest::option::of(1_usize..20), proptest::option::of(100_u64..20_000))
        .prop_map(|(packets, bytes)| Bounds { packets, bytes: bytes.map(Size::bytes) })
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let codel = (1_u64..20, 1_u64..100, 0_u64..3000, any::<bool>()).prop_map(|(target, more, mtu, ecn)| {
        CodelConfig { target: ms(target), interval: ms(target + more), mtu: Size::bytes(mtu), ecn }
    });
    let fq_codel = (1_u32..50, 100_u64..3000, codel.clone()).prop_map(|(flows, quantum, codel)| {
        Discipline::FqCodel(FqCodelConfig { flows, quantum: Size::bytes(quantum), codel })
    });
    let pie = (1_u64..30, 1_u64..30, 0.0..20.0, 0.0..200.0).prop_map(|(target, t_update, alpha, beta)| {
        let (target, t_update, max_burst, mtu) = (ms(target), ms(t_update), ms(5), Size::bytes(100));
        Discipline::Pie(PieConfig { target, t_update, alpha, beta, max_burst, mtu, ..PieConfig::default() })
    });
    let red = (0_u32..5, 1_u32..5, 0.01..1.0, 0.01..1.0, any::<bool>()).prop_map(
        |(min, more, weight, max_p, gentle)| {
            let (min, max) = (Length::Packets(min), Length::Packets(min + more));
            Discipline::Red(RedConfig { min, max, weight: p(weight), max_p: p(max_p), gentle, ecn: false })
        },
    );
    let discipline = prop_oneof![
        3 => Just(Discipline::DropTail),
        1 => codel.prop_map(Discipline::Codel),
        1 => fq_codel,
        1 => pie,
        1 => red,
    ];
    (any_bounds(), discipline).prop_map(|(bounds, discipline)| QueueConfig { bounds, discipline })
}

fn any_link() -> impl Strategy<Value = StageConfig> {
    (proptest::option::of(20_000_u64..50_000_000), 0_u64..50_000, 0_u64..5_000, any_queue()).prop_map(
        |(rate, delay, jitter, queue)| {
            StageConfig::Link(LinkConfig {
                rate: rate.map(Rate::bits_per_second),
                delay: us(delay),
                jitter: us(jitter),
                queue,
                ..LinkConfig::default()
            })
        },
    )
}

pub(super) fn any_loss() -> impl Strategy<Value = StageConfig> {
    prop_oneof![
        (0.0..0.5).prop_map(|per| LossConfig::uniform(p(per))),
        (0.0..1e-4).prop_map(|ber| LossConfig::bit_errors(p(ber))),
        (0.0..0.1, 0.3..1.0).prop_map(|(x, y)| LossConfig::gilbert_elliott(p(x), p(y), p(0.1), p(0.3))),
        Just(LossConfig::list(vec!["packets 3-5".parse().unwrap(), "packet 40".parse().unwrap()])),
    ]
    .prop_map(StageConfig::Loss)
}

fn any_outage() -> impl Strategy<Value = StageConfig> {
    (0_u64..300, 1_u64..100, any::<bool>(), any_bounds()).prop_map(|(at, lasts, requeue, queue)| {
        let packets = if requeue { DuringOutage::Requeued } else { DuringOutage::Dropped };
        StageConfig::Outage(OutageConfig {
            at: vec![ms(at)],
            lasts: ms(lasts),
            every: Some(ms(lasts + at)),
            packets,
            queue,
        })
    })
}

fn any_arq() -> impl Strategy<Value = StageConfig> {
    (0.0..0.6, 0_u32..4, 50_000_u64..10_000_000, 0_u64..20_000, any_queue()).prop_map(
        |(per, retries, rate, delay, queue)| {
            StageConfig::Arq(ArqConfig {
                per: p(per),
                retries,
                rate: Rate::bits_per_second(rate),
                delay: us(delay),
                feedback: None,
                queue,
            })
        },
    )
}

const NO_REORDERING: ReorderConfig = ReorderConfig {
    chance: Probability::ZERO,
    distance: None,
    distance_up_to: None,
    at_most: None,
    time: None,
    time_up_to: None,
    affects: Affects::All,
};

fn reorder_by_distance() -> impl Strategy<Value = ReorderConfig> {
    (0.0..1.0, 1_u32..8, 0_u32..8, 1_u64..100).prop_map(|(chance, minimum, more, at_most)| {
        let (distance, distance_up_to) = (Some(minimum), Some(minimum + more));
        let at_most = Some(ms(at_most));
        ReorderConfig { chance: p(chance), distance, distance_up_to, at_most, ..NO_REORDERING }
    })
}

fn reorder_by_time() -> impl Strategy<Value = ReorderConfig> {
    (0.0..1.0, 1_u64..50, 0_u64..50).prop_map(|(chance, minimum, more)| {
        let (time, time_up_to) = (Some(ms(minimum)), Some(ms(minimum + more)));
        ReorderConfig { chance: p(chance), time, time_up_to, ..NO_REORDERING }
    })
}

/// A stage that reorders, duplicates, corrupts or truncates packets.
fn any_impairment() -> impl Strategy<Value = StageConfig> {
    let chance = 0.0..1.0;
    let duplicate =
        (chance.clone(), 1_u32..4, prop_oneof![Just(0), 0_u64..20_000]).prop_map(|(chance, copies, gap)| {
            DuplicateConfig { chance: p(chance), copies, gap: us(gap), affects: Affects::All }
        });
    // At least the two bytes of the packet number remain.
    let truncate = (chance.clone(), 2_u64..2000).prop_map(|(chance, to)| TruncateConfig {
        chance: p(chance),
        to: Some(Size::bytes(to)),
        affects: Affects::All,
    });
    let corrupt = chance.prop_map(|chance| CorruptConfig {
        chance: p(chance),
        bits: Some(2),
        part: Part::default(),
        checksum: Checksum::default(),
        affects: Affects::All,
    });
    prop_oneof![
        reorder_by_distance().prop_map(StageConfig::Reorder),
        reorder_by_time().prop_map(StageConfig::Reorder),
        duplicate.prop_map(StageConfig::Duplicate),
        corrupt.prop_map(StageConfig::Corrupt),
        truncate.prop_map(StageConfig::Truncate),
    ]
}

pub(super) fn any_stage() -> impl Strategy<Value = StageConfig> {
    let traffic =
        (50_u64..1500, 10_u64..1000, any::<bool>(), 1_usize..4).prop_map(|(packet, rate, on_off, reach)| {
            let base = if on_off { pareto(1.5) } else { cbr() };
            let starts = ms(20);
            StageConfig::Traffic(
                TrafficConfig { packet: Size::bytes(packet), rate: kbit(rate), starts, ..base },
                reach,
            )
        });
    let schedules = prop_oneof![
        Just("time ms,rate kbit\n0,500\n10,0\n13,20000\n20,0\n"),
        Just("time,delay,rate\n0s,5ms,1Mbit\n1ms,40ms,1Mbit\n9ms,0ms,9kbit\n15ms,0s,0bit\n"),
        Just("time ms,delay ms\n0,30\n7,0\n9,0\n"),
    ];
    let following = (schedules, 1_u64..50, 1_u64..50).prop_map(|(schedule, every, within)| {
        StageConfig::Following(schedule, StepsConfig { every: ms(every), within: ms(within), at: None })
    });
    let policer = (1_000_u64..10_000_000, 1_u64..10_000).prop_map(|(rate, burst)| PolicerConfig {
        rate: Rate::bits_per_second(rate),
        burst: Size::bytes(burst),
    });
    prop_oneof![
        5 => any_impairment(),
        1 => policer.prop_map(StageConfig::Policer),
        3 => any_link(),
        1 => Just(StageConfig::Traced("0\n1\n1\n4\n9\n")),
        1 => following,
        3 => any_loss(),
        1 => any_outage(),
        2 => any_arq(),
        1 => traffic,
    ]
}

/// Packets at random times, from both sides: nanoseconds since the previous packet, whether it is for the mobile side, and length.
fn any_packets() -> impl Strategy<Value = Vec<(u64, bool, usize)>> {
    let gap = prop_oneof![Just(0), 0_u64..100_000, 0_u64..20_000_000];
    proptest::collection::vec((gap, any::<bool>(), 2_usize..3000), 0..150)
}

/// Checks that every packet that entered has left, was dropped or is still held.
fn check_conservation(path: &Path) {
    let sum = |totals: &PerDirection<airlink::path::Totals>| {
        totals.iter().fold((0, 0), |(entered, gone), (_, totals)| {
            (
                entered + totals.entered + totals.copied,
                gone + totals.left + totals.dropped.iter().sum::<u64>(),
            )
        })
    };
    let (hosts, hosts_gone) = sum(&path.totals());
    let (background, background_gone) = sum(&path.background());
    assert!(hosts >= hosts_gone && background >= background_gone);
    assert_eq!(hosts + background, hosts_gone + background_gone + path.held() as u64);
    assert_eq!(path.held() == 0, path.memory() == 0, "{} bytes", path.memory());
}

/// Runs a chain and checks conservation after each step. Returns the packets that left, with time and port.
fn run_checked(
    configs: &[StageConfig],
    seed: u64,
    packets: &[(u64, bool, usize)],
) -> Vec<(Instant, Port, Vec<u8>)> {
    let stages = configs.iter().enumerate().map(|(index, config)| config.stage(index, seed)).collect();
    let mut path = path(stages);
    let mut left: Vec<(Instant, Port, Vec<u8>)> = Vec::new();
    let mut now = Instant::ZERO;
    let step = |path: &mut Path, until: Instant, left: &mut Vec<_>| {
        while let Some(deadline) = path.next_deadline().filter(|deadline| *deadline <= until) {
            path.handle_deadline(deadline);
            drain(path, deadline, |now, port, bytes| left.push((now, port, bytes)));
            check_conservation(path);
        }
    };
    for (n, (gap, down, length)) in packets.iter().enumerate() {
        now += Duration::from_nanos(*gap);
        step(&mut path, now, &mut left);
        path.handle_packet(now, if *down { FIXED } else { MOBILE }, numbered(n, *length));
        drain(&mut path, now, |now, port, bytes| left.push((now, port, bytes)));
        check_conservation(&path);
    }
    step(&mut path, now + Duration::from_secs(1), &mut left);

    check_departures(configs, packets, &left);
    let copied: u64 = path.totals().iter().map(|(_, totals)| totals.copied).sum();
    assert!(copied == 0 || configs.iter().any(StageConfig::duplicates));
    left
}

/// Checks that the packets left as these stages allow: at the right port, unchanged, once and in order.
fn check_departures(
    configs: &[StageConfig],
    packets: &[(u64, bool, usize)],
    left: &[(Instant, Port, Vec<u8>)],
) {
    let any = |what: fn(&StageConfig) -> bool| configs.iter().any(what);
    let mut seen = BTreeMap::new();
    for (_, port, bytes) in left {
        let (_, down, length) = packets[number(bytes)];
        let complete = numbered(number(bytes), length);
        assert_eq!(*port, if down { MOBILE } else { FIXED });
        assert!(*bytes == complete || any(StageConfig::truncates) && complete.starts_with(bytes));
        let is_duplicate = seen.insert(number(bytes), ()).is_some();
        assert!(!is_duplicate || any(StageConfig::duplicates), "a packet left twice");
    }
    if !any(StageConfig::reorders) {
        for port in [FIXED, MOBILE] {
            let order = left.iter().filter(|(_, by, _)| *by == port).map(|(_, _, bytes)| number(bytes));
            assert!(order.is_sorted(), "these stages must not reorder");
        }
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn single_stage_conserves_packets_at_every_step(stage in any_stage(), packets in any_packets()) {
        run_checked(&[stage], 1, &packets);
    }

    #[test]
    fn chain_conserves_packets_and_is_reproducible(
        chain in proptest::collection::vec(any_stage(), 1..=6),
        packets in any_packets(),
        seed in any::<u64>(),
    ) {
        let first = run_checked(&chain, seed, &packets);
        prop_assert_eq!(first, run_checked(&chain, seed, &packets));
    }
}

#[test]
fn late_deadline_calls_do_not_delay_the_link() {
    let config = LinkConfig { rate: Some(kbit(80)), delay: ms(20), ..LinkConfig::default() };
    let mut stage = link(&config);
    let mut out = Outbox::new(Recording::Off, false);
    let packet = |n| {
        Packet::from(Content {
            id: PacketId(n),
            direction: Direction::Down,
            origin: Origin::Host,
            entered: Instant::ZERO,
            bytes: numbered(n as usize, 100),
        })
    };
    for n in 0..10 {
        stage.handle_packet(Instant::ZERO, packet(n), &mut out);
    }
    // One call at 75 ms handles all deadlines. With 10 ms per packet and 20 ms of propagation, 5 packets have left.
    stage.handle_deadline(at(ms(75)), &mut out);
    assert_eq!(out.take().len(), 5);
    assert_eq!(stage.next_deadline(), Some(at(ms(80))));
}
