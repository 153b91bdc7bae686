//! Senders over every scenario that comes with airlink: what they sent again, and why, beside what they counted.

use airtcp::recovery::Counters;
use airtcp_testkit::sample::{is_everything, sample, size};

use super::super::findings::Retransmissions;
use super::truth::{again, run};

/// A count of the sender's over all runs, and how far those of the captures are from it, run by run.
#[derive(Clone, Copy, Debug, Default)]
struct Apart {
    sender: u64,
    apart: u64,
}

impl Apart {
    fn add(&mut self, sender: u64, capture: u64) {
        self.sender += sender;
        self.apart += sender.abs_diff(capture);
    }

    fn percent(self) -> f64 {
        100.0 * self.apart as f64 / self.sender.max(1) as f64
    }
}

#[derive(Debug, Default)]
struct Sums {
    losses_found: Apart,
    timeouts: Apart,
    resent_fast: Apart,
}

impl Sums {
    fn add(&mut self, sender: &Counters, found: &Retransmissions) {
        self.losses_found.add(sender.fast_retransmits, found.fast_retransmits);
        self.timeouts.add(sender.timeouts, found.timeouts);
        self.resent_fast.add(sender.resent_fast + sender.resent_recovery, found.fast);
    }
}

/// Over a queue that overflows, an ACK comes shortly before nearly every timeout.
fn scenarios() -> impl Iterator<Item = String> {
    let presets = airlink::scenario::presets::ALL.iter();
    let plain = presets.map(|preset| format!("schema = 1\nextends = \"{}\"\n", preset.name));
    let short_queues = [20, 50].map(|packets| {
        format!(
            "schema = 1\nextends = \"wcdma-384\"\n[[stage]]\nname = \"radio\"\ndown.queue.packets = {packets}\n"
        )
    });
    plain.chain(short_queues)
}

/// Seeds that nothing was tuned to. A timer and an ACK may look the same, and a sender with RACK has several timers: so
/// few per cent may be apart of losses found without a timeout, of timeouts, and of what was sent again fast.
#[test]
fn captures_tell_what_the_senders_counted_over_all_presets() {
    // The limits hold for sums over all scenarios, so the recipes are reduced and the scenarios are not.
    let ordinary = ["newreno", "sack", "linux"];
    let (seeds, least) = size((&[31][..], [50, 25]), (&[31, 32], [100, 50]));
    for (recipe, losses_found, timeouts, resent_fast) in [
        ("newreno", 2.0, 2.0, Some(3.0)),
        ("newreno+no-timestamps", 2.0, 2.0, Some(3.0)),
        ("sack", 2.0, 2.0, Some(4.0)),
        ("reno", 3.0, 6.0, Some(15.0)),
        // To Tahoe a fast retransmit is a restart: it has what follows on the timer's account, which no capture can.
        ("tahoe", 3.0, 3.0, None),
        ("sack+rack", 8.0, 12.0, Some(15.0)),
        ("linux", 8.0, 12.0, Some(15.0)),
    ] {
        if !is_everything() && !ordinary.contains(&recipe) {
            continue;
        }
        let mut sums = Sums::default();
        for (scenario, seed) in
            scenarios().flat_map(|scenario| seeds.iter().map(move |seed| (scenario.clone(), *seed)))
        {
            let run = run(&scenario, recipe, 500_000, seed);
            let (sender, found) = (&run.truth.counters, again(&run.sender));
            assert_eq!(found.packets, sender.resent(), "{recipe}, seed {seed}: {scenario}");
            sums.add(sender, found);
        }
        assert!(sums.losses_found.sender > least[0] && sums.timeouts.sender > least[1], "{recipe}: {sums:?}");
        println!("{recipe}: {sums:?}");
        assert!(sums.losses_found.percent() <= losses_found, "{recipe}: {sums:?}");
        assert!(sums.timeouts.percent() <= timeouts, "{recipe}: {sums:?}");
        if let Some(resent_fast) = resent_fast {
            assert!(sums.resent_fast.percent() <= resent_fast, "{recipe}: {sums:?}");
        }
    }
}

/// One timeout that is not seen puts everything behind it on the wrong account.
fn assert_accounts(recipe: &str, packets: u32, seed: u64) {
    let scenario = format!(
        "schema = 1\nextends = \"wcdma-384\"\n[[stage]]\nname = \"radio\"\ndown.queue.packets = {packets}\n"
    );
    let run = run(&scenario, recipe, 2_000_000, seed);
    let (sender, found) = (&run.truth.counters, again(&run.sender));
    let counted = (sender.timeouts, sender.fast_retransmits, sender.resent_timeout);
    let told = (found.timeouts, found.fast_retransmits, found.timeout);
    assert_eq!(told, counted, "{recipe}, {packets} packets, seed {seed}");
}

#[test]
fn a_timeout_shortly_after_an_ack_is_a_timeout() {
    for (packets, seed) in [(20, 1), (50, 1), (20, 2), (35, 7), (50, 8)] {
        assert_accounts("newreno", packets, seed);
    }
}

/// Those of what was sent again after a timeout without need are no cause of a fast retransmit (RFC 6582 §3.2, step 2), nor
/// are one or two that come when Reno has left its recovery; the timer comes sooner after them than it is thought to wait.
#[test]
fn a_timeout_after_duplicate_acks_that_begin_nothing_is_a_timeout() {
    for (recipe, packets, seed) in [
        ("newreno", 50, 12),
        ("newreno", 50, 20),
        ("newreno+no-timestamps", 50, 12),
        ("reno", 50, 4),
        ("reno", 50, 27),
        ("reno", 20, 21),
        ("reno", 20, 26),
    ] {
        assert_accounts(recipe, packets, seed);
    }
    let further = ["reno", "newreno"].into_iter().flat_map(|it| (401..=410).map(move |seed| (it, seed)));
    for (recipe, seed) in sample("timeouts", further, 4) {
        assert_accounts(recipe, 50, seed);
    }
}

/// No ACK asks for a second copy, and nothing that the sender did shows that it would find a copy lost, as RACK does.
#[test]
fn a_timeout_in_a_recovery_with_sack_is_a_timeout() {
    for (packets, seed) in [(50, 23), (50, 38), (50, 39)] {
        assert_accounts("sack", packets, seed);
    }
}
