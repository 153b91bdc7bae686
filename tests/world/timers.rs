//! Time-based senders end to end in virtual time: TCP-PR, RACK-TLP, and proportional rate reduction.

use airtcp::recovery::{Decision, RecoveryState, What};
use airtcp_sim::world::{FlowResult, PacketKind, World};
use airtcp_testkit::sample::size;
use airwire::Cause;
use airwire::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(3600);
const MSS: u64 = 1448;

/// 10 Mbit/s and a round trip of 100 ms.
const LINK: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "10Mbit", delay = "50ms" }
"#;

fn link_and(more: &str) -> String {
    format!("{LINK}{more}")
}

fn dropping(segments: &[&str]) -> String {
    link_and(&format!("[[stage]]\nkind = \"loss\"\ndown = {{ model = \"list\", drop = {segments:?} }}\n"))
}

/// A radio link that delivers later packets while it retransmits damaged ones. 2 % of the packets
/// arrive 10 ms late, after about eight later ones. No packet is lost.
fn reordering() -> String {
    link_and(
        r#"
[[stage]]
kind = "arq"
down = { per = "2%", retries = 20, rate = "10Mbit", delay = "5ms" }
"#,
    )
}

struct Run {
    world: World,
    result: FlowResult,
}

fn run_seed(scenario: &str, recipe: &str, bytes: u64, seed: u64) -> Run {
    let mut world = World::one_flow(scenario, recipe, bytes, seed).unwrap();
    match world.run_to_end(LIMIT) {
        Ok(true) => {}
        Ok(false) => panic!("{recipe} is not complete at {}:\n{}", world.now(), world.time_sequence(0)),
        Err(error) => panic!("{recipe}: {error}\n{}", world.time_sequence(0)),
    }
    let result = world.result(0);
    assert_eq!((result.delivered, result.ended.as_ref()), (bytes, None), "{recipe}");
    Run { world, result }
}

fn run(scenario: &str, recipe: &str, bytes: u64) -> Run {
    run_seed(scenario, recipe, bytes, 1)
}

impl Run {
    fn seconds(&self) -> f64 {
        self.result.took().unwrap().as_secs_f64()
    }

    fn resent(&self) -> u64 {
        self.result.counters.resent()
    }

    fn timeouts(&self) -> u64 {
        self.result.counters.timeouts
    }

    fn count(&mut self, wanted: impl Fn(&Decision) -> bool) -> usize {
        self.world.decisions(0).iter().filter(|decision| wanted(decision)).count()
    }

    fn lost(&mut self) -> usize {
        self.count(|decision| matches!(decision.what, What::Lost { .. }))
    }

    fn probes(&mut self) -> usize {
        self.count(|decision| matches!(decision.what, What::Probe { .. }))
    }

    fn sequence(&mut self) -> String {
        self.world.time_sequence(0)
    }
}

// ----- must not act -----

#[test]
fn jitter_without_loss_causes_no_retransmission() {
    // The link adds up to 20 ms of jitter, and its unlimited queue lets the round-trip time grow.
    let scenario = LINK.replace("delay = \"50ms\"", "delay = \"50ms\", jitter = \"20ms\"");
    for recipe in ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr", "sack+rack", "sack+rack+prr"] {
        let mut run = run(&scenario, recipe, size(4_000_000, 10_000_000));
        let counters = &run.result.counters;
        assert_eq!((counters.window_reductions, counters.resent()), (0, 0), "{recipe}");
        assert_eq!((run.lost(), run.probes()), (0, 0), "{recipe}: {}", run.sequence());
    }
}

#[test]
fn prr_does_not_change_lossless_transfer() {
    let (mut with, mut without) = (run(LINK, "sack+prr", 3_000_000), run(LINK, "sack", 3_000_000));
    assert_eq!(with.result, without.result);
    assert_eq!(with.sequence(), without.sequence());
}

#[test]
fn short_transfers_with_delayed_acks_cause_no_retransmission() {
    // One to five segments. The last ACK may be delayed by 40 ms, on a path with a round trip of 4 ms.
    let scenario = LINK.replace("50ms", "2ms");
    for recipe in ["sack+pr", "newreno+pr", "sack+rack"] {
        for segments in 1..=5 {
            let run = run(&scenario, recipe, segments * MSS - 100);
            assert_eq!(run.resent(), 0, "{recipe}, {segments} segments");
        }
    }
}

// ----- reordering -----

#[test]
fn time_based_detectors_tolerate_reordering() {
    let three_dupacks = run(&reordering(), "sack", 5_000_000);
    // This sender treats every late packet as lost.
    assert!(three_dupacks.result.counters.window_reductions > 10, "{:?}", three_dupacks.result.counters);
    assert_eq!(three_dupacks.world.losses(0).count(Cause::Radio), 0);

    for recipe in ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr"] {
        let mut run = run(&reordering(), recipe, 5_000_000);
        assert_eq!(run.resent(), 0, "{recipe}");
        assert_eq!(run.lost(), 0, "{recipe}");
        assert!(run.seconds() < three_dupacks.seconds() / 1.5, "{recipe}: {} s", run.seconds());
    }
    // RACK counts duplicate ACKs until it has detected reordering, so its first decisions include a few
    // mistakes.
    let run = run(&reordering(), "sack+rack", 5_000_000);
    assert!(run.result.counters.window_reductions <= 3, "{:?}", run.result.counters);
    assert!(run.seconds() < three_dupacks.seconds() / 1.5, "{} s", run.seconds());
}

// ----- losses -----

#[test]
fn pr_detects_loss_after_three_round_trips() {
    for (recipe, entered) in [("sack+pr", 1), ("newreno+pr", 1)] {
        // At 1 Gbit/s slow start, which continues past the holes, does not build a queue.
        let scenario = dropping(&["segment 200", "segment 203", "segment 206"]).replace("10Mbit", "1Gbit");
        let mut run = run(&scenario, recipe, 600 * MSS);
        let counters = run.result.counters.clone();
        assert_eq!((counters.window_reductions, counters.timeouts), (1, 0), "{recipe}: {}", run.sequence());
        assert_eq!(run.resent(), 3, "{recipe}: {}", run.sequence());
        let recoveries = run.count(|d| matches!(d.what, What::Enter { state: RecoveryState::Recovery, .. }));
        assert_eq!(recoveries, entered, "{recipe}");
        let left = sent_at(&run, 199 * MSS + 1, 1);
        let again = sent_at(&run, 199 * MSS + 1, 2);
        let waited = (again - left).as_secs_f64();
        // Three times the maximum RTT so far: 100 ms, or up to 140 ms where the ACK was delayed.
        assert!((0.3..0.42).contains(&waited), "{recipe}: {waited} s");
    }
}

fn sent_at(run: &Run, at: u64, number: u32) -> Instant {
    let sent = |kind: &PacketKind| match kind {
        PacketKind::Sent { offset, copy, .. } => (*offset, *copy) == (at, number),
        PacketKind::Ack { .. } => false,
    };
    let packet = run.world.device_packets(0).iter().find(|packet| sent(&packet.kind));
    packet.unwrap_or_else(|| panic!("copy {number} of {at} was never sent")).at
}

#[test]
fn pr_treats_outage_as_extreme_loss() {
    let outage =
        "[[stage]]\nkind = \"outage\"\ndown = { at = [\"2s\"], lasts = \"150ms\", packets = \"dropped\" }\n";
    let mut run = run(&link_and(outage), "sack+pr+iw10", 3_000_000);
    let lost = run.world.losses(0).as_slice().len();
    assert!(lost > 50, "{lost}");
    let collapsed = |d: &Decision| d.by == "pr" && matches!(d.what, What::Window { cwnd, .. } if cwnd == 1.0);
    assert_eq!(run.count(collapsed), 1, "{}", run.sequence());
    let at = run.world.decisions(0).iter().find(|decision| collapsed(decision)).unwrap().at;
    // TCP-PR pauses for at least one second after an extreme loss.
    let next =
        run.world.device_packets(0).iter().find(|s| s.at > at && matches!(s.kind, PacketKind::Sent { .. }));
    let pause = next.unwrap().at - at;
    assert!(pause >= Duration::from_secs(1), "{pause:?}");
    assert_eq!(run.timeouts(), 0, "{}", run.sequence());
}

#[test]
fn probe_repairs_lost_tail_without_timeout() {
    // The last two of 30 segments are lost.
    let scenario = dropping(&["segments 29-30"]);
    let mut rack = run(&scenario, "sack+rack", 30 * MSS);
    let mut plain = run(&scenario, "sack", 30 * MSS);
    assert_eq!(plain.timeouts(), 1, "{}", plain.sequence());
    assert_eq!(rack.timeouts(), 0, "{}", rack.sequence());
    assert_eq!(rack.probes(), 1, "{}", rack.sequence());
    // SRTT is about 105 ms. The probe leaves 2·SRTT after the last ACK, and segment 29 one round trip later.
    let left = sent_at(&rack, 29 * MSS + 1, 1);
    let probe = sent_at(&rack, 29 * MSS + 1, 2);
    let waited = (probe - left).as_secs_f64();
    assert!((0.2..0.35).contains(&waited), "{waited} s\n{}", rack.sequence());
    assert!(rack.seconds() + 0.5 < plain.seconds(), "{} s, {} s", rack.seconds(), plain.seconds());
}

#[test]
fn probe_repairs_single_lost_tail_segment() {
    let mut rack = run(&dropping(&["segment 30"]), "sack+rack", 30 * MSS);
    let counters = rack.result.counters.clone();
    assert_eq!(
        (counters.timeouts, counters.resent_probe, counters.resent()),
        (0, 1, 1),
        "{}",
        rack.sequence()
    );
}

#[test]
fn lost_retransmission_is_repaired_without_timeout() {
    let scenario = dropping(&["segment 100", "segment 100 retransmission 1", "segment 100 retransmission 2"]);
    let mut plain = run(&scenario, "sack", 3000 * MSS);
    assert!(plain.timeouts() > 0, "{}", plain.sequence());
    for recipe in ["sack+rack", "sack+rack+prr"] {
        let mut run = run(&scenario, recipe, 3000 * MSS);
        let counters = run.result.counters.clone();
        assert_eq!(
            (counters.timeouts, counters.lost_retransmissions),
            (0, 2),
            "{recipe}: {}",
            run.sequence()
        );
        assert_eq!(counters.window_reductions, 1, "{recipe}: {}", run.sequence());
        assert!(run.seconds() < plain.seconds(), "{recipe}: {} s", run.seconds());
    }
    // TCP-PR treats the loss of each copy as a new drop. Slow start continues past the hole, so there must be
    // enough data to send and no queue to fill.
    let mut pr = run(&scenario.replace("10Mbit", "1Gbit"), "sack+pr", 3000 * MSS);
    let counters = pr.result.counters.clone();
    assert_eq!((counters.timeouts, counters.lost_retransmissions), (0, 2), "{}", pr.sequence());
    assert_eq!(counters.window_reductions, 3, "{}", pr.sequence());
}

#[test]
fn pr_timer_does_not_expire_while_mxrtt_grows() {
    // Slow start continues past the hole and fills an unlimited queue, so mxrtt grows after the timer was
    // set.
    let mut run = run(&dropping(&["segment 100"]), "sack+pr", 6000 * MSS);
    let counters = run.result.counters.clone();
    assert_eq!((counters.timeouts, run.resent()), (0, 1), "{}", run.sequence());
}

/// Returns the largest number of segments sent at one instant during recovery.
fn largest_burst(run: &mut Run) -> usize {
    let begins = run.world.decisions(0).iter().find(|d| matches!(d.what, What::Lost { .. })).map(|d| d.at);
    let ends = run.world.decisions(0).iter().find(|d| matches!(d.what, What::Leave { .. })).map(|d| d.at);
    let (begins, ends) = (begins.expect("a loss was detected"), ends.expect("the sender left recovery"));
    let sent = run.world.device_packets(0).iter().filter(|s| (begins..ends).contains(&s.at));
    let sent: Vec<_> = sent.filter(|s| matches!(s.kind, PacketKind::Sent { .. })).collect();
    sent.chunk_by(|a, b| a.at == b.at).map(<[_]>::len).max().unwrap_or(0)
}

#[test]
fn prr_sends_evenly_after_heavy_loss() {
    // 90 consecutive segments of a window of 111.
    let scenario = dropping(&["segments 201-290"]);
    let (mut plain, mut prr) = (run(&scenario, "sack", 800 * MSS), run(&scenario, "sack+prr", 800 * MSS));
    assert!(largest_burst(&mut plain) > 10, "{}", plain.sequence());
    // A delayed ACK reports two segments, for which SSRB (RFC 6937 §3) allows three to be sent.
    assert!(largest_burst(&mut prr) <= 3, "{}", prr.sequence());
    assert_eq!(prr.timeouts(), 0, "{}", prr.sequence());
    assert_eq!(prr.result.counters.window_reductions, 1);
    // Recovery ends with cwnd at ssthresh, where `aimd` takes over.
    let ends = prr.world.decisions(0).iter().position(|d| matches!(d.what, What::Leave { .. })).unwrap();
    let last = prr.world.decisions(0)[..ends].iter().rev().find_map(|d| match d.what {
        What::Window { cwnd, ssthresh, .. } => Some((cwnd, ssthresh)),
        _ => None,
    });
    let (cwnd, ssthresh) = last.unwrap();
    assert!(cwnd <= ssthresh && cwnd >= ssthresh - 2.0, "{cwnd} {ssthresh}");
}

#[test]
fn prr_does_not_pause_after_single_loss() {
    let scenario = dropping(&["segment 300"]);
    let pause = |recipe| {
        let mut run = run(&scenario, recipe, 800 * MSS);
        let begins = run.world.decisions(0).iter().find(|d| matches!(d.what, What::Lost { .. })).unwrap().at;
        let sent = run
            .world
            .device_packets(0)
            .iter()
            .filter(|s| s.at >= begins && matches!(s.kind, PacketKind::Sent { .. }));
        let times: Vec<_> = sent.map(|s| s.at).take(20).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
    };
    let (plain, prr) = (pause("sack"), pause("sack+prr"));
    // RFC 6675 waits until half of the window has left the network: half a round trip.
    assert!(plain > Duration::from_millis(40), "{plain:?}");
    assert!(prr < Duration::from_millis(10), "{prr:?}");
}
