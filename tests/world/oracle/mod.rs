//! The ordinary senders in the world of virtual time against ns-2.35: the same scenarios, other random numbers, the
//! same means.
//!
//! `tests/ns2` compares one sender event for event over ns-2's own links. This is about everything together: hosts that
//! exchange real packets, airlink's queues, links and channels, and the statistics that a figure is made of.
//!
//! Where a recorded mean is not met the cause is named, with the difference; ns-2 was asked again there, and has to be
//! met (`tests/world/oracle/ns2`).
//!
//! For a change some of the means are compared, with fewer seeds and intervals that are wider accordingly. All of them:
//!
//!     AIRTCP_TESTS=all cargo test --release -p airtcp-tests --test world oracle -- --include-ignored --nocapture

mod comparison;
mod scenarios;
mod tables;

use std::ops::Range;

use airtcp_reproduce::p0::setting::{Acks, Channel, MSS, Reading, Setting};
use airtcp_sim::run::{self, Report, Run};
use airtcp_testkit::sample::{is_everything, size};
use comparison::{Cause, Comparison, Measure};
use scenarios::{AS_NS2, PACKET, SENDERS, SOONER, backbone, dumbbell, last_hop};
use tables::Published;

/// ns-2's first packet is our SYN: one more is acknowledged.
fn packets(report: &Report) -> f64 {
    (report.flows[0].acked / u64::from(MSS)) as f64 + 1.0
}

/// Of all flows together, where a packet with `mss` octets of data counts 1000.
fn goodput(report: &Report, mss: u16) -> f64 {
    let octets: f64 = report.flows.iter().map(|flow| flow.goodput_bit_per_s).sum();
    octets * f64::from(PACKET) / f64::from(mss)
}

fn timeouts(report: &Report) -> f64 {
    report.flows[0].counters.timeouts as f64
}

fn fast_retransmits(report: &Report) -> f64 {
    report.flows[0].counters.fast_retransmits as f64
}

fn p0(recipe: &'static str, channel: Channel, acks: Acks) -> Run {
    Setting { acks, reading: Reading::AsInNs2, ..Setting::new(recipe, channel) }.plan().unwrap()
}

/// In packets.
fn p0_comparison() -> Comparison {
    Comparison::new(tables::P0_SEEDS, 0.5)
}

fn p0_table(
    comparison: &mut Comparison,
    recipe: &'static str,
    acks: Acks,
    theirs: &[Published; 4],
    seeds: u64,
) {
    for ((x, y), mean) in tables::TABLE_1.into_iter().zip(theirs) {
        // Where losses are few their place decides, and only many seeds show the known difference: `IN_FRONT`.
        if (x, y) == (0.03, 0.03) && !is_everything() {
            continue;
        }
        let name = format!("{recipe} {acks:?} ({x}, {y})");
        let plan = p0(recipe, Channel::new(x, y), acks);
        comparison.add(seeds, &plan, &[Measure::new(name, *mean, &packets)]);
    }
}

#[test]
fn p0_without_losses_the_voice_leaves_as_much() {
    let report = run::run(&p0("tahoe", Channel::new(0.0, 0.0), Acks::Delayed)).unwrap();
    // The SYN is shorter than ns-2's first packet, and the last delayed ACK may just miss the end.
    assert!((packets(&report) - tables::NO_LOSS).abs() <= 1.0, "{}", packets(&report));
}

/// Asked again at x = y = 0.02, ns-2's Tahoe has 1465 ± 7 packets if they are lost in front of the radio's queue, and
/// 1444 ± 6 if behind the link; at 0.03 1376 ± 9 and 1354 ± 9.
const IN_FRONT: &str =
    "recorded with losses in front of the queue, where they cost no capacity; here they are behind the link";
/// One in twenty is outside.
const BY_CHANCE: &str = "by chance: not with 200 seeds";
/// The same with the few seeds of a change.
const BY_CHANCE_OF_FEW: &str = "by chance: not with 30 seeds or more";

#[test]
fn p0_the_four_senders_over_the_four_channels() {
    let mut comparison = p0_comparison();
    for (recipe, theirs) in SENDERS.into_iter().zip(&tables::R1) {
        p0_table(&mut comparison, recipe, Acks::Delayed, theirs, size(8, 40));
    }
    let in_front = Cause {
        differences: &[
            ("tahoe Delayed (0.03, 0.03)", -39.9),
            ("reno Delayed (0.03, 0.03)", -46.0),
            ("newreno Delayed (0.03, 0.03)", -42.3),
            ("sack Delayed (0.03, 0.03)", -45.5),
        ],
        why: IN_FRONT,
    };
    let by_chance = Cause { differences: &[("reno Delayed (0.01, 0.15)", 60.4)], why: BY_CHANCE_OF_FEW };
    comparison.check(&[if is_everything() { in_front } else { by_chance }]);
}

#[test]
fn p0_limited_transmit_and_no_delayed_acks() {
    let mut comparison = p0_comparison();
    p0_table(&mut comparison, "tahoe+limited-transmit", Acks::Delayed, &tables::R1_LIMITED, size(8, 40));
    for (recipe, theirs) in ["tahoe", "newreno"].into_iter().zip(&tables::R1_UNDELAYED) {
        p0_table(&mut comparison, recipe, Acks::Each, theirs, size(6, 40));
    }
    let channel = Channel { change: 0.003, ..Channel::new(0.0, 0.06) };
    let plan = p0("tahoe", channel, Acks::Delayed);
    comparison.add(
        size(8, 40),
        &plan,
        &[Measure::new("tahoe, long states", tables::R1_VERY_CLUSTERED, &packets)],
    );
    comparison.check(&[Cause {
        differences: &[
            ("tahoe+limited-transmit Delayed (0.03, 0.03)", -19.2),
            ("tahoe Each (0.03, 0.03)", -25.9),
            ("newreno Each (0.03, 0.03)", -22.3),
        ],
        why: IN_FRONT,
    }]);
}

#[test]
fn p0_lost_behind_the_link() {
    let mut comparison = p0_comparison();
    for (recipe, acks, per, theirs) in tables::R1_AGAIN {
        let name = format!("{recipe} {acks:?} {per}");
        comparison.add(
            size(10, 40),
            &p0(recipe, Channel::new(per, per), acks),
            &[Measure::new(name, theirs, &packets)],
        );
    }
    comparison.check(&[]);
}

fn p0_sweep(seeds: u64) -> Comparison {
    let mut comparison = p0_comparison();
    for (point, z) in tables::SWEEP_Z.into_iter().enumerate() {
        // Where losses are few, `IN_FRONT` holds as well.
        if !(is_everything() || z == 0.04 || z == 0.10) {
            continue;
        }
        let channel = Channel::overall(z);
        let [to, fr] = tables::SWEEP_COUNTS.map(|counts| counts[point]);
        for (recipe, theirs) in SENDERS.into_iter().zip(&tables::SWEEP) {
            let name = |what: &str| format!("{recipe} z = {z}{what}");
            let plan = p0(recipe, channel, Acks::Delayed);
            let all = [
                Measure::new(name(""), theirs[point], &packets),
                Measure::new(name(" timeouts"), to, &timeouts),
                Measure::new(name(" fast retransmits"), fr, &fast_retransmits),
            ];
            // The counts are Tahoe's.
            comparison.add(seeds, &plan, if recipe == "tahoe" { &all } else { &all[..1] });
        }
        let plan = p0("tahoe", channel, Acks::Each);
        let theirs = tables::SWEEP_UNDELAYED[point];
        comparison.add(seeds, &plan, &[Measure::new(format!("tahoe ND z = {z}"), theirs, &packets)]);
    }
    comparison
}

#[test]
fn p0_as_losses_increase() {
    let in_front = Cause {
        differences: &[
            ("tahoe z = 0.02", -22.9),
            ("reno z = 0.02", -29.2),
            ("newreno z = 0.02", -17.1),
            ("sack z = 0.02", -22.7),
            ("tahoe ND z = 0.02", -22.8),
        ],
        why: IN_FRONT,
    };
    if is_everything() {
        let by_chance = Cause { differences: &[("tahoe z = 0.12 timeouts", 3.0)], why: BY_CHANCE };
        return p0_sweep(30).check(&[in_front, by_chance]);
    }
    let differences = &[("tahoe z = 0.04 timeouts", 4.1), ("reno z = 0.1", 69.6)];
    p0_sweep(8).check(&[Cause { differences, why: BY_CHANCE_OF_FEW }]);
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p0_as_losses_increase_with_200_seeds() {
    p0_sweep(200).check(&[Cause {
        differences: &[
            ("tahoe z = 0.02", -23.6),
            ("reno z = 0.02", -26.3),
            ("newreno z = 0.02", -18.4),
            ("sack z = 0.02", -22.8),
            ("tahoe ND z = 0.02", -17.8),
        ],
        why: IN_FRONT,
    }]);
}

/// Mbit/s.
fn p3_goodput(report: &Report) -> f64 {
    goodput(report, PACKET) / 1e6
}

/// With many seeds two of the six P3 means are 1 % below ns-2's, and Sack1's at P1. The tick's phase is not it (ns-2 has
/// the same with one phase for all seeds), nor are D-SACKs, nor where a packet is lost.
const A_LITTLE_LESS: &str = "about 1 % less than ns-2; why was not found";

fn p3_again(seeds: u64, measured: &Range<u64>, known: &[(&str, f64)]) {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0);
    for (recipe, per, theirs) in tables::BACKBONE_AGAIN {
        let name = format!("{recipe} PER {per}");
        let plan = backbone(recipe, per, measured.clone());
        comparison.add(seeds, &plan, &[Measure::new(name, theirs, &p3_goodput)]);
    }
    comparison.check(&[Cause { differences: known, why: A_LITTLE_LESS }]);
}

#[test]
fn p3_newreno_and_sack() {
    if is_everything() {
        p3_again(6, &AS_NS2, &[("newreno+limited-transmit PER 0.08", -0.004)]);
    } else {
        p3_again(6, &SOONER, &[]);
    }
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p3_newreno_and_sack_with_40_seeds() {
    p3_again(
        40,
        &AS_NS2,
        &[("newreno+limited-transmit PER 0.04", -0.003), ("newreno+limited-transmit PER 0.08", -0.003)],
    );
}

/// ns-2 itself, asked again in this scenario, has more: `BACKBONE_AGAIN`. What differed is not recorded.
const NOT_MET_BY_NS2: &str = "ns-2 does not meet it either, asked again";

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p3_as_it_was_recorded() {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0005);
    for (recipe, theirs) in tables::BACKBONE {
        for (per, mean) in tables::BACKBONE_PER.into_iter().zip(theirs) {
            let name = format!("{recipe} PER {per}");
            comparison.add(
                10,
                &backbone(recipe, per, AS_NS2),
                &[Measure::new(name, Published(mean, None), &p3_goodput)],
            );
        }
    }
    let known = [
        ("newreno+limited-transmit PER 0.02", 0.016),
        ("newreno+limited-transmit PER 0.04", 0.009),
        ("newreno+limited-transmit PER 0.06", 0.008),
        ("newreno+limited-transmit PER 0.08", 0.003),
        ("newreno+limited-transmit PER 0.1", 0.003),
        ("sack+limited-transmit PER 0.02", 0.020),
        ("sack+limited-transmit PER 0.04", 0.011),
        ("sack+limited-transmit PER 0.06", 0.010),
        ("sack+limited-transmit PER 0.08", 0.006),
        ("sack+limited-transmit PER 0.1", 0.004),
    ];
    comparison.check(&[Cause { differences: &known, why: NOT_MET_BY_NS2 }]);
}

#[test]
fn p3_twelve_flows_share_evenly() {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0005);
    for (per, theirs) in tables::DUMBBELL {
        // ns-2's mean without loss is exact to a packet a second, which takes the whole time to compare.
        if per == 0.0 && !is_everything() {
            continue;
        }
        let measure = |report: &Report| {
            assert!(report.jain >= tables::DUMBBELL_JAIN, "Jain {} at PER {per}", report.jain);
            p3_goodput(report)
        };
        let name = |what: &str| format!("twelve flows PER {per}{what}");
        let mut beside = vec![Measure::new(name(""), Published(theirs, None), &measure)];
        if per > 0.0 {
            beside.push(Measure::new(name(", again"), tables::DUMBBELL_AGAIN, &measure));
        }
        comparison.add(3, &dumbbell(per, size(SOONER, AS_NS2)), &beside);
    }
    comparison.check(&[]);
}

/// kbit/s.
fn p1_goodput(report: &Report) -> f64 {
    goodput(report, PACKET - 40) / 1e3
}

fn p1_again(seeds: u64) {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0);
    for (per, means) in tables::LAST_HOP_AGAIN {
        // A change is compared at the middle loss rate only.
        if per != 0.04 && !is_everything() {
            continue;
        }
        for (recipe, theirs) in SENDERS.into_iter().zip(means) {
            let name = format!("{recipe} PER {per}");
            comparison.add(seeds, &last_hop(recipe, per), &[Measure::new(name, theirs, &p1_goodput)]);
        }
    }
    comparison.check(&[]);
}

#[test]
fn p1_uniform_loss() {
    p1_again(size(5, 10));
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p1_uniform_loss_with_80_seeds() {
    p1_again(80);
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p1_as_it_was_recorded() {
    let mut comparison = Comparison::new(tables::SEEDS, 0.5);
    for (per, means) in tables::LAST_HOP {
        for (recipe, theirs) in SENDERS.into_iter().zip(means) {
            let name = format!("{recipe} PER {per}");
            comparison.add(
                40,
                &last_hop(recipe, per),
                &[Measure::new(name, Published(theirs, None), &p1_goodput)],
            );
        }
    }
    comparison.check(&[Cause {
        differences: &[
            ("newreno PER 0.02", 7.6),
            ("newreno PER 0.04", 15.3),
            ("sack PER 0.01", 3.0),
            ("sack PER 0.02", 9.5),
            ("sack PER 0.04", 17.8),
            ("tahoe PER 0.08", -8.8),
            ("reno PER 0.08", -7.3),
        ],
        why: NOT_MET_BY_NS2,
    }]);
}
