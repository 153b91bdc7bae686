//! Property tests: invariants of every bearer configuration under every load.

use airlink::mac::scheduler::Scheduling;
use airlink::rlc::config::DirectionConfig;
use airlink::rlc::rrc::{BegunPackets, Inactivity, ReestablishmentConfig, RrcConfig, Scheduled, Sides};
use airlink::rlc::switching::{Change, Switching};
use airlink::rlc::umts::codec::IndicatorSize;
use airlink::rlc::umts::config::{FlexibleConfig, FormatConfig, PollConfig, ReceiverConfig, SenderConfig};
use airlink::rlc::umts::dch::Dch;
use airlink::rlc::umts::hs::config::{FastFading, HsdpaConfig};
use airlink::stages::queue::{CodelConfig, Discipline, FqCodelConfig, PieConfig, QueueConfig, RedConfig};
use airlink::stages::times::Intervals;
use airtcp_testkit::sample::{cases, size};
use airwire::units::Size;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Load {
    gap_micros: u64,
    direction: Direction,
    length: usize,
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let length = prop_oneof![4_usize..60, Just(40), Just(80), 60_usize..1501, Just(9000)];
    let load = (0_u64..60_000, any::<bool>(), length).prop_map(|(gap_micros, up, length)| Load {
        gap_micros,
        direction: if up { Direction::Up } else { Direction::Down },
        length,
    });
    prop::collection::vec(load, 1..120)
}

fn errors() -> impl Strategy<Value = BlockErrors> {
    let p = || (0.0..0.5).prop_map(Probability::new);
    prop_oneof![
        p().prop_map(|bler| BlockErrors::Independent { bler }),
        p().prop_map(|bler| BlockErrors::PerTti { bler }),
        (p(), p(), p(), p()).prop_map(|(good, bad, good_to_bad, bad_to_good)| {
            BlockErrors::gilbert_elliott(good, bad, good_to_bad, bad_to_good)
        }),
        (1_u32..200, 0_u32..20).prop_map(|(speed, margin)| BlockErrors::Rayleigh {
            speed: format!("{speed}km/h").parse().unwrap(),
            carrier: "2GHz".parse().unwrap(),
            margin: format!("{margin}dB").parse().unwrap(),
            deviation: Some("4dB".parse().unwrap()),
            decorrelation: Some("20m".parse().unwrap()),
        }),
    ]
}

fn senders() -> impl Strategy<Value = SenderConfig> {
    let discard = prop_oneof![
        (1_u8..8).prop_map(|max_dat| Discard::ResetAfterMaxDat { max_dat }),
        (1_u8..8, 1_u8..5).prop_map(|(max_dat, max_mrw)| {
            Discard::MrwAfterMaxDat { max_dat, timer_mrw: ms(100), max_mrw }
        }),
        (50_u64..800, 1_u8..5).prop_map(|(time, max_mrw)| {
            Discard::Timer { timer_discard: ms(time), timer_mrw: ms(100), max_mrw }
        }),
    ];
    let window = prop::sample::select(vec![1, 8, 32, 128, 512, 2047, 2560]);
    let max_rst = prop::sample::select(vec![1, 4, 32]);
    let ignore = prop::option::weighted(0.2, (20_u64..500).prop_map(ms));
    (discard, window, max_rst, polls(), any::<bool>(), ignore).prop_map(
        |(discard, window, max_rst, poll, send_mrw, ignore_nack_within)| SenderConfig {
            window,
            discard,
            max_rst,
            timer_rst: ms(300),
            poll,
            send_mrw,
            ignore_nack_within,
            suspend: None,
        },
    )
}

/// All poll triggers, except that four are always on. Without Timer_Poll, a lost poll may be the last one. Without
/// Poll_Window, a full window waits forever. Without polls in the last PDU and the last retransmission, the loss of
/// that PDU is not detected.
fn polls() -> impl Strategy<Value = PollConfig> {
    let time = || prop::option::of((50_u64..400).prop_map(ms));
    let (flags, timers) = (any::<(bool, bool)>(), (50_u64..400, time(), time()));
    let counts = (prop::option::of(1_u16..200), prop::option::of(1_u16..20), 1_u8..101);
    (flags, timers, counts).prop_map(|(flags, timers, counts)| PollConfig {
        last_pdu: true,
        last_retransmission: true,
        timer_poll: Some(ms(timers.0)),
        timer_poll_periodic: timers.1.filter(|_| flags.0),
        timer_poll_prohibit: timers.2,
        poll_pdu: counts.0,
        poll_sdu: counts.1,
        poll_window: Some(counts.2),
        poll_sufi: flags.1,
    })
}

fn receivers() -> impl Strategy<Value = ReceiverConfig> {
    let tsp = prop::option::of((10_u64..400).prop_map(ms));
    let epc = prop::option::of((50_u64..400).prop_map(ms));
    let delay = prop::option::weighted(0.2, (0_u64..400).prop_map(ms));
    (tsp, delay, epc, any::<(bool, bool, bool)>()).prop_map(|(tsp, delay, epc, flags)| ReceiverConfig {
        timer_status_prohibit: tsp,
        status_delay: delay,
        timer_epc: epc,
        missing_pdu_indicator: flags.0,
        in_sequence: flags.1,
        piggyback: flags.2,
        ..ReceiverConfig::default()
    })
}

fn formats() -> impl Strategy<Value = FormatConfig> {
    let sizes = prop::sample::select(vec![16_u64, 17, 42, 82, 126, 127, 300]);
    (sizes, any::<bool>()).prop_map(|(length, he_special)| FormatConfig {
        pdu: Size::bytes(length),
        he_special,
        ..FormatConfig::default()
    })
}

/// PDU formats of flexible size for the shared downlink.
fn flexible() -> impl Strategy<Value = FlexibleConfig> {
    let short = FlexibleConfig { most: Size::bytes(42), indicators: IndicatorSize::Bits7 };
    let most = |length| FlexibleConfig { most: Size::bytes(length), ..FlexibleConfig::default() };
    prop::sample::select(vec![
        FlexibleConfig::default(),
        FlexibleConfig::default(),
        most(16),
        most(400),
        short,
    ])
}

fn directions() -> impl Strategy<Value = DirectionConfig> {
    let sensitive_codel = CodelConfig { target: ms(1), interval: ms(5), ..CodelConfig::default() };
    let sensitive_pie = PieConfig { t_update: ms(1), max_burst: ms(0), alpha: 100.0, ..PieConfig::default() };
    let disciplines = prop::sample::select(vec![
        Discipline::DropTail,
        Discipline::DropTail,
        Discipline::Codel(sensitive_codel),
        Discipline::FqCodel(FqCodelConfig { codel: sensitive_codel, ..FqCodelConfig::default() }),
        Discipline::Pie(sensitive_pie),
        Discipline::Red(RedConfig { weight: Probability::new(1.0), ..RedConfig::default() }),
    ]);
    let bounds = Bounds { packets: Some(20), bytes: None };
    let queues = disciplines.prop_map(move |discipline| QueueConfig { bounds, discipline });
    let blocks = prop::sample::select(vec![vec![1], vec![1, 2, 4, 8, 12], vec![40, 80]]);
    let outage = prop::option::weighted(
        0.3,
        (0_u64..4000, 1_u64..3000).prop_map(|(at, lasts)| Intervals {
            at: vec![ms(at), ms(at + 5000)],
            lasts: ms(lasts),
            every: None,
        }),
    );
    let parts = (senders(), receivers(), formats(), errors(), blocks, outage, rates(), queues);
    parts.prop_map(|(sender, receiver, format, errors, blocks, outage, (dch, switching), queue)| {
        let receiver = ReceiverConfig { window: sender.window, ..receiver };
        let channel =
            ChannelConfig { dch, switching, errors, blocks, outage, ..ChannelConfig::downlink_384() };
        DirectionConfig { sender, receiver, format, channel, strict: false, queue }
    })
}

fn rates() -> impl Strategy<Value = (Option<Dch>, Switching)> {
    let dch = || prop::sample::select(vec![Dch::Kbit64, Dch::Kbit128, Dch::Kbit384]);
    let scheduled = (prop::collection::btree_set(0_u64..6000, 1..6), prop::collection::vec(dch(), 6))
        .prop_map(|(times, rates)| {
            let changes = times.into_iter().zip(rates).map(|(at, dch)| Change { at: ms(at), dch }).collect();
            (None, Switching::Scheduled { changes })
        });
    let by_occupancy =
        (dch(), 0_u64..500, 0_u64..500, 0_u64..800).prop_map(|(dch, above_for, below_for, takes)| {
            let switching = Switching::ByOccupancy {
                between: vec![Dch::Kbit64, Dch::Kbit128, Dch::Kbit384],
                above: Size::bytes(1000),
                above_for: ms(above_for),
                below: Size::bytes(0),
                below_for: ms(below_for),
                takes: ms(takes),
            };
            (Some(dch), switching)
        });
    prop_oneof![3 => Just((None, Switching::Never {})), 1 => scheduled, 1 => by_occupancy]
}

fn rrcs() -> impl Strategy<Value = RrcConfig> {
    let of = prop::sample::select(vec![Sides::Both, Sides::Down, Sides::Up]);
    let begun = prop::sample::select(vec![BegunPackets::Lost, BegunPackets::Requeued]);
    let scheduled = prop::option::of(prop::collection::btree_set(0_u64..6000, 1..5));
    let inactivity = prop::option::weighted(
        0.3,
        (10_u64..500, 0_u64..800)
            .prop_map(|(after, promotion)| Inactivity { after: ms(after), promotion: ms(promotion) }),
    );
    (0_u64..2000, of, begun, scheduled, inactivity).prop_map(|(after, of, begun, scheduled, inactivity)| {
        RrcConfig {
            inactivity,
            reestablishment: ReestablishmentConfig {
                after: Some(ms(after)),
                begun,
                scheduled: scheduled.map(|at| Scheduled {
                    at: at.into_iter().map(ms).collect(),
                    every: None,
                    of,
                }),
            },
        }
    })
}

/// Shared downlinks without other mobiles, because their traffic never ends.
fn hsdpas() -> impl Strategy<Value = HsdpaConfig> {
    let fading = prop::option::of((20_u32..200).prop_map(|speed| FastFading {
        speed: format!("{speed}km/h").parse().unwrap(),
        carrier: "2GHz".parse().unwrap(),
    }));
    let window = prop::sample::select(vec![4, 8, 16, 32]);
    let parts = (5_i32..20, fading, 1_u8..=8, 1_u8..=5, window, 5_u64..60, 0_u64..30);
    parts.prop_map(|(snr, fading, processes, transmissions, window, t1, delay)| HsdpaConfig {
        category: 10,
        snr: format!("{snr}dB").parse().unwrap(),
        fading,
        cqi_delay: ms(delay),
        processes,
        transmissions,
        window,
        t1: ms(t1),
        ..HsdpaConfig::default()
    })
}

/// Runs the load and checks the invariants.
fn check(config: &RlcConfig, loads: &[Load], seed: u64) -> Result<(), TestCaseError> {
    let mut run = Run::recording(config, seed, Recording::Events, false);
    let mut sent = Vec::new();
    let mut now = Instant::ZERO;
    for (n, load) in loads.iter().enumerate() {
        now += Duration::from_micros(load.gap_micros);
        run.step_through(now);
        let packet = numbered(n as u32, load.length);
        sent.push(packet.clone());
        run.send(now, load.direction, packet);
        run.check_conservation();
    }
    // A packet that is requeued at every re-establishment may never be delivered.
    let requeues = config.rrc.reestablishment.begun == BegunPackets::Requeued;
    run.step_through(now + Duration::from_secs(if requeues { 60 } else { 7200 }));
    for direction in Direction::BOTH {
        check_direction(config, direction, &run, &sent)?;
    }
    prop_assert_eq!(count_ended(&mut run)? + run.path.held(), loads.len());
    prop_assert!(
        requeues || run.path.held() == 0,
        "packets still held after two hours: {:#}",
        run.path.stats()
    );
    Ok(())
}

/// Checks that packets leave unchanged, and in order if the bearer ensures it.
fn check_direction(
    config: &RlcConfig,
    direction: Direction,
    run: &Run,
    sent: &[Vec<u8>],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(run.counter(direction, "unknown_sdus"), 0, "{} {:#}", direction, run.path.stats());
    // With a larger window, a late duplicate can be mistaken for a PDU of the next sequence number cycle.
    let side = config.direction(direction);
    if side.sender.window <= 2047 {
        let erroneous = run.counter(direction, "sender/resets_erroneous_sn");
        prop_assert_eq!(erroneous, 0, "{} {:#}", direction, run.path.stats());
    }
    let left: Vec<_> = run.left.iter().filter(|left| left.1 == direction).collect();
    for (_, _, bytes) in &left {
        prop_assert_eq!(bytes, &sent[number_of(bytes) as usize]);
    }
    let in_order = left.is_sorted_by(|a, b| number_of(&a.2) < number_of(&b.2));
    prop_assert!(in_order || !side.receiver.in_sequence, "{}: reordered", direction);
    Ok(())
}

/// Counts the packets that left or were dropped. Checks that each did so only once.
fn count_ended(run: &mut Run) -> Result<usize, TestCaseError> {
    let mut ends = BTreeMap::new();
    for record in run.path.take_records() {
        if matches!(record.event, Event::Left | Event::Dropped { .. }) {
            *ends.entry(record.packet).or_insert(0) += 1;
        }
    }
    prop_assert!(ends.values().all(|times| *times == 1));
    Ok(ends.len())
}

proptest! {
    #![proptest_config(cases(size(40, 150)))]

    #[test]
    fn packets_are_delivered_dropped_or_held_exactly_once(
        loads in loads(),
        down in directions(),
        up in directions(),
        rrc in rrcs(),
        hsdpa in prop::option::weighted(0.4, hsdpas()),
        flexible in prop::option::of(flexible()),
        uplink_is_slow in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut config = RlcConfig { down, up, rrc, hsdpa };
        if config.hsdpa.is_some() {
            config.down.channel = ChannelConfig { delay: config.down.channel.delay, ..ChannelConfig::default() };
            if flexible.is_some() {
                let he_special = config.down.format.he_special;
                config.down.format = FormatConfig { flexible, he_special, ..FormatConfig::default() };
            }
        }
        if uplink_is_slow {
            let errors = config.up.channel.errors;
            config.up.channel = ChannelConfig { errors, ..ChannelConfig::uplink_64() };
        }
        check(&config, &loads, seed)?;
    }

    /// The totals of the path do not include packets of other mobiles in the cell.
    #[test]
    fn other_mobiles_do_not_change_the_path_totals(
        loads in loads(),
        hsdpa in hsdpas(),
        (mobiles, average) in (1_u32..5, 1_u32..2000),
        scheduler in prop::sample::select(vec![
            Scheduling::RoundRobin, Scheduling::ProportionalFair, Scheduling::MaxCqi,
        ]),
        source in prop::sample::select(vec![
            "source = \"full-buffer\"",
            "source = \"cbr\"\nrate = \"300kbit\"\npacket = \"400B\"",
            "source = \"pareto-on-off\"\nrate = \"1Mbit\"\nshape = 1.5\nmean_on = \"200ms\"\nmean_off = \"100ms\"",
        ]),
        seed in any::<u64>(),
    ) {
        let others = toml::from_str(&format!("mobiles = {mobiles}\nspread = \"3dB\"\n{source}")).unwrap();
        let hsdpa = HsdpaConfig { scheduler, average, others: Some(others), ..hsdpa };
        let mut config = RlcConfig { hsdpa: Some(hsdpa), ..RlcConfig::wcdma_384() };
        config.down.queue.bounds.packets = Some(2);
        let mut run = Run::recording(&config, seed, Recording::Events, false);
        let mut now = Instant::ZERO;
        for (n, load) in loads.iter().enumerate() {
            now += Duration::from_micros(load.gap_micros);
            run.step_through(now);
            run.send(now, load.direction, numbered(n as u32, load.length));
            run.check_conservation();
        }
        run.step_through(now + ms(500));
        let entered = run.path.totals().iter().map(|(_, totals)| totals.entered).sum::<u64>();
        prop_assert_eq!(entered, loads.len() as u64);
        prop_assert_eq!(run.counter(Direction::Down, "unknown_sdus"), 0);
        let stats = run.path.stats();
        for other in stats.pointer("/radio/others").and_then(serde_json::Value::as_array).unwrap() {
            let count = |name: &str| other[name].as_u64().unwrap();
            prop_assert_eq!(count("packets"), count("delivered") + count("dropped") + count("held"), "{:#}", other);
        }
    }

    /// With a high loss rate, a report needs several PDUs, each of which waits for its own TTI.
    #[test]
    fn multi_pdu_reports_do_not_contradict_later_reports(
        sender in senders(),
        receiver in receivers(),
        length in prop::sample::select(vec![16_u64, 42]),
        (p, q) in (0.2..0.5, 0.0..0.3),
        seed in any::<u64>(),
    ) {
        let window = sender.window.max(512);
        let sender = SenderConfig { window, max_rst: 32, ..sender };
        let receiver = ReceiverConfig { window, ..receiver };
        let format = FormatConfig { pdu: Size::bytes(length), ..FormatConfig::default() };
        let mut config = RlcConfig::wcdma_384();
        for (direction, p) in [(&mut config.down, p), (&mut config.up, q)] {
            direction.channel.errors = bler(p);
            (direction.sender, direction.receiver, direction.format) = (sender.clone(), receiver.clone(), format);
        }
        config.up.channel.blocks = vec![1];
        let loads: Vec<_> = (0..100)
            .map(|n| match n % 10 {
                0 => Load { gap_micros: 60_000, direction: Direction::Up, length: 40 },
                _ => Load { gap_micros: 20_000, direction: Direction::Down, length: 1500 },
            })
            .collect();
        check(&config, &loads, seed)?;
    }
}
