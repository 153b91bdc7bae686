//! Compares senders in virtual time with ns-2.35: in the same scenarios, with different random numbers, the
//! means must agree.
//!
//! `tests/ns2` compares one sender with ns-2 event by event, over ns-2's own links. These tests cover the
//! whole system: hosts that exchange real packets, airlink's queues, links and channels, and the statistics
//! of a figure.
//!
//! If a recorded mean is not reproduced, the test states the cause and the difference. In these cases ns-2
//! was run again (`tests/world/oracle/ns2`), and the new means must be reproduced.
//!
//! For a change, some of the means are compared, with fewer seeds and therefore wider intervals. To compare
//! all means:
//!
//!     AIRTCP_TESTS=all cargo test --release -p airtcp-tests --test world oracle -- \
//!         --include-ignored --nocapture

mod comparison;
mod scenarios;
mod tables;

use std::ops::Range;

use airtcp_reproduce::pan2004::setting::{Acks, Channel, Interpretation, MSS, Setting};
use airtcp_sim::run::{self, Report, Run};
use airtcp_testkit::sample::{is_everything, size};
use comparison::{Cause, Comparison, Measure};
use scenarios::{NS2_PERIOD, PACKET, SENDERS, SHORT_PERIOD, backbone, dumbbell, last_hop};
use tables::Published;

/// Returns the acknowledged packets. ns-2's first packet corresponds to our SYN, which counts as one more.
fn packets(report: &Report) -> f64 {
    (report.flows[0].acked / u64::from(MSS)) as f64 + 1.0
}

/// Returns the goodput of all flows in bit/s, where a packet with `mss` bytes of data counts as 1000 bytes.
fn goodput(report: &Report, mss: u16) -> f64 {
    let bytes: f64 = report.flows.iter().map(|flow| flow.goodput_bit_per_s).sum();
    bytes * f64::from(PACKET) / f64::from(mss)
}

fn timeouts(report: &Report) -> f64 {
    report.flows[0].counters.timeouts as f64
}

fn fast_retransmits(report: &Report) -> f64 {
    report.flows[0].counters.fast_retransmits as f64
}

fn p0(recipe: &'static str, channel: Channel, acks: Acks) -> Run {
    Setting { acks, interpretation: Interpretation::AsInNs2, ..Setting::new(recipe, channel) }.plan().unwrap()
}

/// Creates a comparison in units of packets.
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
        // With few losses, the point of loss matters. Only many seeds show the known difference: `LOST_BEFORE_QUEUE`.
        if (x, y) == (0.03, 0.03) && !is_everything() {
            continue;
        }
        let name = format!("{recipe} {acks:?} ({x}, {y})");
        let plan = p0(recipe, Channel::new(x, y), acks);
        comparison.add(seeds, &plan, &[Measure::new(name, *mean, &packets)]);
    }
}

#[test]
fn p0_capacity_left_by_voice_matches_ns2() {
    let report = run::run(&p0("tahoe", Channel::new(0.0, 0.0), Acks::Delayed)).unwrap();
    // The SYN is shorter than ns-2's first packet, and the last delayed ACK may arrive just after the end.
    assert!((packets(&report) - tables::NO_LOSS).abs() <= 1.0, "{}", packets(&report));
}

/// With ns-2 run again at x = y = 0.02, Tahoe has 1465 ± 7 packets if they are lost before the queue of the
/// radio link, and 1444 ± 6 if they are lost after the link. At 0.03, the numbers are 1376 ± 9 and 1354 ± 9.
const LOST_BEFORE_QUEUE: &str = "recorded with losses before the queue, where they cost no capacity; here packets are lost after the link";
/// One in twenty means is expected outside its 95 % interval.
const BY_CHANCE: &str = "by chance: not with 200 seeds";
/// Outside the interval by chance, with the few seeds of a change.
const BY_CHANCE_OF_FEW: &str = "by chance: not with 30 seeds or more";

#[test]
fn p0_sender_means_match_ns2_on_all_channels() {
    let mut comparison = p0_comparison();
    for (recipe, theirs) in SENDERS.into_iter().zip(&tables::R1) {
        p0_table(&mut comparison, recipe, Acks::Delayed, theirs, size(8, 40));
    }
    let before_queue = Cause {
        differences: &[
            ("tahoe Delayed (0.03, 0.03)", -39.9),
            ("reno Delayed (0.03, 0.03)", -46.0),
            ("newreno Delayed (0.03, 0.03)", -42.3),
            ("sack Delayed (0.03, 0.03)", -45.5),
        ],
        why: LOST_BEFORE_QUEUE,
    };
    let by_chance = Cause { differences: &[("reno Delayed (0.01, 0.15)", 60.4)], why: BY_CHANCE_OF_FEW };
    comparison.check(&[if is_everything() { before_queue } else { by_chance }]);
}

#[test]
fn p0_limited_transmit_and_undelayed_acks_match_ns2() {
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
        why: LOST_BEFORE_QUEUE,
    }]);
}

#[test]
fn p0_losses_after_link_match_ns2() {
    let mut comparison = p0_comparison();
    for (recipe, acks, per, theirs) in tables::R1_RERUN {
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
        // With few losses, `LOST_BEFORE_QUEUE` also applies.
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
            // ns-2's counts are known for Tahoe only.
            comparison.add(seeds, &plan, if recipe == "tahoe" { &all } else { &all[..1] });
        }
        let plan = p0("tahoe", channel, Acks::Each);
        let theirs = tables::SWEEP_UNDELAYED[point];
        comparison.add(seeds, &plan, &[Measure::new(format!("tahoe ND z = {z}"), theirs, &packets)]);
    }
    comparison
}

#[test]
fn p0_loss_sweep_matches_ns2() {
    let before_queue = Cause {
        differences: &[
            ("tahoe z = 0.02", -22.9),
            ("reno z = 0.02", -29.2),
            ("newreno z = 0.02", -17.1),
            ("sack z = 0.02", -22.7),
            ("tahoe ND z = 0.02", -22.8),
        ],
        why: LOST_BEFORE_QUEUE,
    };
    if is_everything() {
        let by_chance = Cause { differences: &[("tahoe z = 0.12 timeouts", 3.0)], why: BY_CHANCE };
        return p0_sweep(30).check(&[before_queue, by_chance]);
    }
    let differences = &[("tahoe z = 0.04 timeouts", 4.1), ("reno z = 0.1", 69.6)];
    p0_sweep(8).check(&[Cause { differences, why: BY_CHANCE_OF_FEW }]);
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p0_loss_sweep_matches_ns2_with_200_seeds() {
    p0_sweep(200).check(&[Cause {
        differences: &[
            ("tahoe z = 0.02", -23.6),
            ("reno z = 0.02", -26.3),
            ("newreno z = 0.02", -18.4),
            ("sack z = 0.02", -22.8),
            ("tahoe ND z = 0.02", -17.8),
        ],
        why: LOST_BEFORE_QUEUE,
    }]);
}

/// Returns the goodput in Mbit/s.
fn p3_goodput(report: &Report) -> f64 {
    goodput(report, PACKET) / 1e6
}

/// With many seeds, two of the six P3 means and Sack1's mean at P1 are 1 % below ns-2's. The cause is not
/// the phase of the tick (ns-2 gets the same means with one phase for all seeds), nor D-SACK, nor the point
/// of loss.
const BELOW_NS2: &str = "about 1 % less than ns-2; the cause is unknown";

fn compare_p3(seeds: u64, measured: &Range<u64>, known: &[(&str, f64)]) {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0);
    for (recipe, per, theirs) in tables::BACKBONE_RERUN {
        let name = format!("{recipe} PER {per}");
        let plan = backbone(recipe, per, measured.clone());
        comparison.add(seeds, &plan, &[Measure::new(name, theirs, &p3_goodput)]);
    }
    comparison.check(&[Cause { differences: known, why: BELOW_NS2 }]);
}

#[test]
fn p3_newreno_and_sack_match_ns2() {
    if is_everything() {
        compare_p3(6, &NS2_PERIOD, &[("newreno+limited-transmit PER 0.08", -0.004)]);
    } else {
        compare_p3(6, &SHORT_PERIOD, &[]);
    }
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p3_means_match_ns2_with_40_seeds() {
    compare_p3(
        40,
        &NS2_PERIOD,
        &[("newreno+limited-transmit PER 0.04", -0.003), ("newreno+limited-transmit PER 0.08", -0.003)],
    );
}

/// When ns-2 itself was run again in this scenario, it had a higher goodput (`BACKBONE_RERUN`). The
/// difference in settings is not recorded.
const NOT_REPRODUCED_BY_NS2: &str = "a new run of ns-2 does not reproduce it either";

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p3_means_match_original_record() {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0005);
    for (recipe, theirs) in tables::BACKBONE {
        for (per, mean) in tables::BACKBONE_PER.into_iter().zip(theirs) {
            let name = format!("{recipe} PER {per}");
            comparison.add(
                10,
                &backbone(recipe, per, NS2_PERIOD),
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
    comparison.check(&[Cause { differences: &known, why: NOT_REPRODUCED_BY_NS2 }]);
}

#[test]
fn p3_twelve_flows_share_evenly_like_ns2() {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0005);
    for (per, theirs) in tables::DUMBBELL {
        // ns-2's mean without loss is exact to a packet per second, so the comparison needs the whole
        // duration.
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
            beside.push(Measure::new(name(", again"), tables::DUMBBELL_RERUN, &measure));
        }
        comparison.add(3, &dumbbell(per, size(SHORT_PERIOD, NS2_PERIOD)), &beside);
    }
    comparison.check(&[]);
}

/// Returns the goodput in kbit/s.
fn p1_goodput(report: &Report) -> f64 {
    goodput(report, PACKET - 40) / 1e3
}

fn compare_p1(seeds: u64) {
    let mut comparison = Comparison::new(tables::SEEDS, 0.0);
    for (per, means) in tables::LAST_HOP_RERUN {
        // For a change, only the middle loss rate is compared.
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
fn p1_uniform_loss_matches_ns2() {
    compare_p1(size(5, 10));
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p1_uniform_loss_matches_ns2_with_80_seeds() {
    compare_p1(80);
}

#[test]
#[ignore = "nightly: takes minutes without optimisation"]
fn p1_means_match_original_record() {
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
        why: NOT_REPRODUCED_BY_NS2,
    }]);
}
