//! Runs senders over every preset of airlink, and compares the retransmissions in the captures with the
//! senders' counters.

use airtcp_testkit::sample::{is_everything, sample, size};

use super::sender_counters::{retransmissions, run};

/// The sum of a sender's counter over all runs, and the sum of the differences from the captures.
#[derive(Clone, Copy, Debug, Default)]
struct Deviation {
    sender: u64,
    difference: u64,
}

impl Deviation {
    fn add(&mut self, sender: u64, capture: u64) {
        self.sender += sender;
        self.difference += sender.abs_diff(capture);
    }

    fn percent(self) -> f64 {
        100.0 * self.difference as f64 / self.sender.max(1) as f64
    }
}

fn short_queue(packets: u32) -> String {
    format!(
        "schema = 1\nextends = \"wcdma-384\"\n[[stage]]\nname = \"radio\"\ndown.queue.packets = {packets}\n"
    )
}

/// Returns the scenarios. With short queues, an ACK arrives shortly before most timeouts.
fn scenarios() -> impl Iterator<Item = String> {
    let presets = airlink::scenario::presets::ALL.iter();
    let plain = presets.map(|preset| format!("schema = 1\nextends = \"{}\"\n", preset.name));
    plain.chain([20, 50].map(short_queue))
}

/// Compares seeds that were not used for tuning. Timers and ACKs cannot always be distinguished, and a sender
/// with RACK has several timers. The limits are percentages for losses detected without a timeout, timeouts,
/// and fast retransmissions.
#[test]
fn capture_counts_match_sender_counters_over_presets() {
    // The limits apply to sums over all scenarios, so only the recipes are reduced.
    let ordinary = ["newreno", "sack", "linux"];
    let (seeds, least) = size((&[31][..], [50, 25]), (&[31, 32], [100, 50]));
    for (recipe, limits) in [
        ("newreno", [2.0, 2.0, 3.0]),
        ("newreno+no-timestamps", [2.0, 2.0, 3.0]),
        ("sack", [2.0, 2.0, 4.0]),
        ("reno", [3.0, 6.0, 15.0]),
        // Tahoe treats a fast retransmit as a restart and attributes the following retransmissions to the
        // timer. A capture does not show this.
        ("tahoe", [3.0, 3.0, f64::INFINITY]),
        ("sack+rack", [8.0, 12.0, 15.0]),
        ("linux", [8.0, 12.0, 15.0]),
    ] {
        if !is_everything() && !ordinary.contains(&recipe) {
            continue;
        }
        let mut deviations = [Deviation::default(); 3];
        for (scenario, seed) in
            scenarios().flat_map(|scenario| seeds.iter().map(move |seed| (scenario.clone(), *seed)))
        {
            let run = run(&scenario, recipe, 500_000, seed);
            let (sender, found) = (&run.truth.counters, retransmissions(&run.sender));
            assert_eq!(found.packets, sender.resent(), "{recipe}, seed {seed}: {scenario}");
            deviations[0].add(sender.fast_retransmits, found.fast_retransmits);
            deviations[1].add(sender.timeouts, found.timeouts);
            deviations[2].add(sender.resent_fast + sender.resent_recovery, found.fast);
        }
        let [losses, timeouts, _] = deviations;
        assert!(losses.sender > least[0] && timeouts.sender > least[1], "{recipe}: {deviations:?}");
        println!("{recipe}: {deviations:?}");
        for (deviation, limit) in deviations.iter().zip(limits) {
            assert!(deviation.percent() <= limit, "{recipe}: {deviations:?}");
        }
    }
}

/// Checks all counts of one run. A single undetected timeout makes all later counts wrong.
fn assert_counts_match(recipe: &str, packets: u32, seed: u64) {
    let run = run(&short_queue(packets), recipe, 2_000_000, seed);
    let (sender, found) = (&run.truth.counters, retransmissions(&run.sender));
    let counted = (sender.timeouts, sender.fast_retransmits, sender.resent_timeout);
    let captured = (found.timeouts, found.fast_retransmits, found.timeout);
    assert_eq!(captured, counted, "{recipe}, {packets} packets, seed {seed}");
}

#[test]
fn timeout_shortly_after_ack_is_recognised() {
    for (packets, seed) in [(20, 1), (50, 1), (20, 2), (35, 7), (50, 8)] {
        assert_counts_match("newreno", packets, seed);
    }
}

/// Duplicate ACKs for spurious retransmissions after a timeout do not cause a fast retransmit (RFC 6582 §3.2,
/// step 2). One or two duplicate ACKs after Reno has left its recovery do not cause one either. In both
/// cases, the timer expires earlier than the analysis expects.
#[test]
fn timeout_after_ineffective_duplicate_acks_is_recognised() {
    for (recipe, packets, seed) in [
        ("newreno", 50, 12),
        ("newreno", 50, 20),
        ("newreno+no-timestamps", 50, 12),
        ("reno", 50, 4),
        ("reno", 50, 27),
        ("reno", 20, 21),
        ("reno", 20, 26),
    ] {
        assert_counts_match(recipe, packets, seed);
    }
    let further = ["reno", "newreno"].into_iter().flat_map(|it| (401..=410).map(move |seed| (it, seed)));
    for (recipe, seed) in sample("timeouts", further, 4) {
        assert_counts_match(recipe, 50, seed);
    }
}

/// No ACK requests a second copy, and the sender has not shown that it detects lost retransmissions, as RACK
/// does.
#[test]
fn timeout_during_sack_recovery_is_recognised() {
    for (packets, seed) in [(50, 23), (50, 38), (50, 39)] {
        assert_counts_match("sack", packets, seed);
    }
}
