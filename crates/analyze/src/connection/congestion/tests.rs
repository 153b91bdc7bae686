//! The rounds of senders of Linux 6.1 and 7.2 over emulated links: 10 to 40 s of each congestion control. The
//! links had 7 Mbit/s, 40 ms and a queue of 2.6 bandwidth-delay products (NV: 19 Mbit/s, 60 ms and 1.8).

use super::models::{MODELS, Path, State};
use super::replay::Replay;
use super::signs::{hybla_starts, min_rtt_probes};
use super::*;
use crate::connection::findings::{Confidence, CongestionControl as Name, CongestionControlFindings};

/// A line has the time, the duration, the flight, the acknowledged bytes, the ACKs, the minimum and the mean RTT, the
/// event, and the maximum RTT. The first line has the segment and the initial window.
fn parse(text: &str) -> (Vec<Round>, u32, u64) {
    let mut lines = text.lines();
    let head: Vec<u32> =
        lines.next().unwrap().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let round = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse().unwrap();
        Round {
            ended: number(0),
            lasted: number(1),
            flight: number(2),
            acked: number(3),
            acks: number(4) as u16,
            min_rtt: number(5),
            mean_rtt: number(6),
            max_rtt: number(8),
            event: match words[7] {
                "Round" => Event::Round,
                "Loss" => Event::Loss,
                "Limited" => Event::Limited,
                _ => Event::Timeout,
            },
        }
    };
    (lines.map(round).collect(), head[0], head[1].into())
}

fn identify_text(text: &str, scale: u32) -> CongestionControlFindings {
    let (mut rounds, segment, initial) = parse(text);
    for round in &mut rounds {
        round.flight = round.flight * scale / 100;
        round.acked = round.acked * scale / 100;
        round.acks = (u32::from(round.acks) * scale / 100) as u16;
    }
    identify(&Observed {
        rounds,
        segment,
        initial_segments: Some(initial),
        base_rtt: None,
        shortest_rtt: None,
        syn_is_ecn_capable: false,
    })
}

const KERNELS: [(Name, &str); 15] = [
    (Name::Reno, include_str!("rounds/reno.txt")),
    (Name::Cubic, include_str!("rounds/cubic.txt")),
    (Name::Bbr, include_str!("rounds/bbr.txt")),
    (Name::Bic, include_str!("rounds/bic.txt")),
    (Name::Cdg, include_str!("rounds/cdg.txt")),
    (Name::HighSpeed, include_str!("rounds/highspeed.txt")),
    (Name::HTcp, include_str!("rounds/htcp.txt")),
    (Name::Hybla, include_str!("rounds/hybla.txt")),
    (Name::Illinois, include_str!("rounds/illinois.txt")),
    (Name::Nv, include_str!("rounds/nv.txt")),
    (Name::Scalable, include_str!("rounds/scalable.txt")),
    (Name::Vegas, include_str!("rounds/vegas.txt")),
    (Name::Veno, include_str!("rounds/veno.txt")),
    (Name::Westwood, include_str!("rounds/westwood.txt")),
    (Name::Yeah, include_str!("rounds/yeah.txt")),
];

/// A link with 3.1 Mbit/s, 48 ms, a queue of 1.1 bandwidth-delay products, and random losses of 0.7 %.
const UNDER_RANDOM_LOSS: [(Name, &str); 6] = [
    (Name::Bic, include_str!("rounds/losses/bic.txt")),
    (Name::Cdg, include_str!("rounds/losses/cdg.txt")),
    (Name::HTcp, include_str!("rounds/losses/htcp.txt")),
    (Name::Hybla, include_str!("rounds/losses/hybla.txt")),
    (Name::Illinois, include_str!("rounds/losses/illinois.txt")),
    (Name::Nv, include_str!("rounds/losses/nv.txt")),
];

/// Random paths with 2.3 to 3.9 Mbit/s, 22 to 141 ms, and at most 0.3 % of random losses. Most windows have fewer
/// than 30 segments. TCP-LP counts as Reno.
const SMALL_WINDOWS: [(Name, &str); 5] = [
    (Name::Bic, include_str!("rounds/small/bic.txt")),
    (Name::Cdg, include_str!("rounds/small/cdg.txt")),
    (Name::Hybla, include_str!("rounds/small/hybla.txt")),
    (Name::Nv, include_str!("rounds/small/nv.txt")),
    (Name::Reno, include_str!("rounds/small/lp.txt")),
];

#[test]
fn small_windows_leave_one_name() {
    for (truth, text) in SMALL_WINDOWS {
        let found = identify_text(text, 100);
        assert_eq!((found.name, found.or.as_slice()), (Some(truth), &[][..]), "{:?}", found.evidence);
    }
}

/// Below 15 segments, Illinois halves the window and adds one segment per round trip. The ACK that ends a recovery adds
/// another one.
#[test]
fn small_window_of_illinois_does_not_exclude_it() {
    let found = identify_text(include_str!("rounds/small/illinois.txt"), 100);
    assert_eq!(found.name, Some(Name::Illinois), "{:?}", found.evidence);
}

/// Linux measures RTTs in whole ticks. With a minimum of 3 ticks and a maximum of 5, H-TCP keeps 3/5 of the window, and
/// then assumes a maximum of 4.
#[test]
fn maximum_rtt_of_htcp_fades_by_whole_ticks() {
    let model = MODELS.iter().rfind(|model| model.name == Name::HTcp).unwrap();
    let mut path = Path::new(0.025, 0.0);
    path.observe(&Measured { min_rtt: 0.025, mean_rtt: 0.03, max_rtt: 0.045, ..Measured::default() });
    let mut state = State::default();
    (model.learn)(&mut state, &path, 100.0);
    let [first, second] = [0; 2].map(|_| (model.reduce)(&mut state, &path, 100.0)[0]);
    assert_eq!((first, second), (60.0, 75.0));
}

#[test]
fn random_losses_leave_one_name() {
    for (truth, text) in UNDER_RANDOM_LOSS {
        let found = identify_text(text, 100);
        assert_eq!((found.name, found.or.as_slice()), (Some(truth), &[][..]), "{:?}", found.evidence);
    }
}

#[test]
fn names_the_congestion_controls_of_linux() {
    let mut undetermined = Vec::new();
    for (truth, text) in KERNELS {
        let found = identify_text(text, 100);
        let names: Vec<_> = found.name.into_iter().chain(found.or).collect();
        match names.as_slice() {
            [] => undetermined.push(truth),
            names => assert!(names.contains(&truth), "{truth}: {names:?}, {:?}", found.evidence),
        }
    }
    assert!(undetermined.len() <= 1, "{undetermined:?}");
}

/// The second-best model fits far worse, although its errors scatter.
#[test]
fn clear_difference_in_short_capture_leaves_one_name() {
    for (truth, text) in
        KERNELS.into_iter().filter(|(name, _)| [Name::Illinois, Name::Westwood].contains(name))
    {
        let count = text.lines().count() * 2 / 5;
        let first: String = text.lines().take(count).flat_map(|line| [line, "\n"]).collect();
        let found = identify_text(&first, 100);
        assert_eq!((found.name, found.or.as_slice()), (Some(truth), &[][..]), "{:?}", found.evidence);
    }
}

/// If each round trip carries half as much again, neither the growth nor the RTTs match any congestion control.
#[test]
fn other_windows_have_no_certain_name() {
    for (truth, text) in KERNELS {
        let found = identify_text(text, 150);
        let is_wrong = found.name.is_some_and(|name| name != truth);
        assert!(!is_wrong || found.confidence != Confidence::High, "{truth}: {found:?}");
    }
}

#[test]
fn ecn_capable_syn_is_dctcp() {
    let found = identify(&Observed {
        rounds: Vec::new(),
        segment: 1448,
        initial_segments: None,
        base_rtt: None,
        shortest_rtt: None,
        syn_is_ecn_capable: true,
    });
    assert_eq!((found.name, found.confidence), (Some(Name::Dctcp), Confidence::High));
}

#[test]
fn few_rounds_are_undetermined() {
    for (truth, text) in KERNELS {
        let few: String = text.lines().take(20).flat_map(|line| [line, "\n"]).collect();
        let found = identify_text(&few, 100);
        assert_eq!(found.name, None, "{truth}");
    }
}

fn round(ended: f64, segments: u32, event: Event) -> Round {
    Round {
        ended: (ended * 1e6) as u32,
        lasted: 20_000,
        flight: segments * 1000,
        acked: segments * 1000,
        min_rtt: 20_000,
        mean_rtt: 20_000,
        max_rtt: 20_000,
        acks: 10,
        event,
    }
}

#[test]
fn loss_may_precede_min_rtt_probe() {
    let probes = |low_rounds: u32, next: u32| {
        let mut rounds = vec![round(10.0, 30, Event::Round), round(10.02, 30, Event::Loss)];
        rounds.extend((1..=low_rounds).map(|n| Round {
            lasted: 200_000 / low_rounds,
            ..round(10.02 + 0.2 * f64::from(n) / f64::from(low_rounds), 4, Event::Round)
        }));
        rounds.extend([round(10.3, next, Event::Round), round(10.4, 25, Event::Round)]);
        min_rtt_probes(&rounds, 1000.0)
    };
    assert_eq!((probes(5, 25), probes(2, 8)), (1, 0), "slow start is as low as a probe for two rounds");
    assert_eq!(probes(2, 25), 1, "slow start does not grow by a factor of six");
}

/// TCP-LP begins with one segment after it has reduced a small window.
#[test]
fn small_window_needs_steady_flight_for_min_rtt_probe() {
    let probes = |flights: &[u32]| {
        let flights = [12, 12].iter().chain(flights).chain(&[12]).zip(1..);
        let rounds = flights.map(|(flight, number)| Round {
            lasted: 50_000,
            ..round(10.0 + 0.05 * f64::from(number), *flight, Event::Round)
        });
        min_rtt_probes(&rounds.collect::<Vec<_>>(), 1000.0)
    };
    assert_eq!((probes(&[4, 4, 4, 4]), probes(&[1, 2, 4])), (1, 0));
}

#[test]
fn slow_link_delays_data_more_than_handshake() {
    assert_eq!(hybla_starts(Some(1), 0.0524), Some(true), "ρ was below 2 in the handshake");
    assert_eq!(hybla_starts(Some(10), 0.0524), Some(false));
}

/// A link with 2.6 Mbit/s, 61 ms and a queue of 1.5 bandwidth-delay products.
#[test]
fn halving_without_loss_is_not_cdg() {
    let found = identify_text(include_str!("rounds/losses/lp.txt"), 100);
    let mut names = found.name.into_iter().chain(found.or);
    assert!(names.all(|name| name == Name::Reno), "{:?}", found.evidence);
}

fn observed(rounds: Vec<Round>, base_rtt: Option<u32>) -> Observed {
    Observed {
        rounds,
        segment: 1000,
        initial_segments: None,
        base_rtt,
        shortest_rtt: None,
        syn_is_ecn_capable: false,
    }
}

#[test]
fn minimum_rtt_includes_times_without_rounds() {
    let base_rtt = |known: Option<u32>| {
        let rounds = vec![round(1.0, 20, Event::Round), round(1.02, 21, Event::Round)];
        Replay::run(&observed(rounds, known), 1000.0).path.base_rtt
    };
    assert_eq!((base_rtt(None), base_rtt(Some(15_000))), (0.02, 0.015));
}

/// ρ belongs to the minimum of the smoothed RTT, which begins with the handshake. At 26 ms, ρ is still 1.
#[test]
fn hybla_counts_round_trip_of_handshake() {
    let growth_error = |shortest_rtt: Option<u32>| {
        let mut rounds = Vec::new();
        for epoch in 0..4 {
            for grown in 0..20 {
                let ended = 0.03 * f64::from(21 * epoch + grown);
                let (rtt, segments) = (32_000, 20 + grown / 2);
                let round = round(ended, segments, Event::Round);
                let acks = segments as u16 / 2;
                rounds.push(Round { min_rtt: rtt, mean_rtt: rtt, max_rtt: rtt, acks, ..round });
            }
            rounds.push(round(0.03 * f64::from(21 * epoch + 20), 30, Event::Loss));
        }
        let replay = Replay::run(&Observed { shortest_rtt, ..observed(rounds, None) }, 1000.0);
        let hybla = replay.candidates.iter().find(|candidate| candidate.model.name == Name::Hybla);
        hybla.unwrap().growth.mean().unwrap()
    };
    let [with, without] = [Some(26_000), None].map(growth_error);
    assert!(with < 0.02 && without > 0.15, "{with} {without}");
}

/// H-TCP keeps 0.8 of the window if the queue is short, and then grows by 0.4 segments per round trip.
#[test]
fn htcp_grows_slower_after_small_reduction() {
    let growth_error = |per_round: f64| {
        let round = |number: u32, segments: f64, event| Round {
            ended: number * 100_000,
            lasted: 100_000,
            flight: (segments * 1000.0) as u32,
            acked: (segments * 1000.0) as u32,
            acks: (segments / 2.0) as u16,
            min_rtt: 100_000,
            mean_rtt: 105_000,
            max_rtt: 110_000,
            event,
        };
        let mut rounds = Vec::new();
        let mut number = 0;
        for _ in 0..4 {
            for grown in 0..10 {
                number += 1;
                rounds.push(round(number, 80.0 + per_round * f64::from(grown), Event::Round));
            }
            number += 1;
            rounds.push(round(number, 100.0, Event::Loss));
        }
        let replay = Replay::run(&observed(rounds, None), 1000.0);
        let htcp = replay.candidates.iter().find(|candidate| candidate.model.name == Name::HTcp);
        htcp.unwrap().growth.mean().unwrap()
    };
    let [slow, fast] = [0.4, 1.0].map(growth_error);
    assert!(slow < fast, "{slow} {fast}");
}

/// A sender with Reno's growth, which leaves this part of 14 segments three times without a loss before it loses a
/// segment of 20.
fn reduces_without_loss(kept: f64) -> Observed {
    let mut windows = Vec::new();
    for _ in 0..8 {
        let mut window: f64 = 10.0;
        for reduction in 1..=4 {
            let most = if reduction <= 3 { 14.0 } else { 20.0 };
            while window <= most {
                windows.push((window, Event::Round));
                window += 1.0;
            }
            window = (most * kept).floor();
        }
        windows.push((20.0, Event::Loss));
    }
    let rounds = windows.into_iter().zip(1..).map(|((window, event), number)| Round {
        lasted: 50_000,
        acks: (window / 2.0) as u16,
        ..round(0.05 * f64::from(number), window as u32, event)
    });
    observed(rounds.collect(), None)
}

#[test]
fn reductions_without_loss_separate_cdg_from_tcp_lp() {
    let names = |kept: f64| {
        let found = identify(&reduces_without_loss(kept));
        found.name.into_iter().chain(found.or).collect::<Vec<_>>()
    };
    assert_eq!(names(0.5), [Name::Reno], "TCP-LP halves the window");
    assert_eq!(names(0.707), [Name::Cdg]);
}
