//! The world of virtual time. Streams arrive intact, runs are bit-identical, and the ground truth about
//! losses is correct.

use airlink::packet::Direction;
use airlink::scenario::Scenario;
use airlink::stage::DropReason;
use airtcp::ProfileName;
use airtcp::profile::recovery::InitialWindow;
use airtcp::recovery::catalogue::Question;
use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, Recipe, RecoveryState, What};
use airtcp::tcp::Ended;
use airtcp_sim::world::{
    Flow, HostSpec, Length, PacketKind, Watch, World, WorldConfig, WorldError, judges, score,
};
use airtcp_testkit::sample::is_everything;
use airwire::Cause;
use airwire::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(3600);

/// 2 Mbit/s and a round trip of 100 ms.
const LINK: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "2Mbit", delay = "50ms" }
"#;

fn link_and(more: &str) -> String {
    format!("{LINK}{more}")
}

fn lossy(direction: &str) -> String {
    link_and(&format!(
        "[[stage]]\nkind = \"loss\"\n{direction} = {{ model = \"uniform\", per = \"3%\", affects = \"data\" }}\n"
    ))
}

fn small_queue(packets: u32) -> String {
    LINK.replace("delay = \"50ms\"", &format!("delay = \"50ms\", queue = {{ packets = {packets} }}"))
}

fn sender(recipe: &str) -> HostSpec {
    HostSpec::sender(recipe.parse().expect("a valid recipe"))
}

fn world(scenario: &str, seed: u64, flows: Vec<Flow>) -> World {
    let scenario = Scenario::parse(scenario, "test").unwrap();
    let (fixed, mobile) = (sender("newreno"), sender("newreno"));
    World::new(WorldConfig { scenario, seed, fixed, mobile, flows }).unwrap()
}

/// The configuration of a world with a default receiver at the mobile side.
fn config(scenario: &str, fixed: HostSpec, flows: Vec<Flow>) -> WorldConfig {
    let scenario = Scenario::parse(scenario, "test").unwrap();
    WorldConfig { scenario, seed: 1, fixed, mobile: HostSpec::receiver(), flows }
}

/// Runs until all data has arrived, or panics with the time-sequence trace of flow 0.
fn finish(world: &mut World) {
    match world.run_to_end(LIMIT) {
        Ok(true) => {}
        Ok(false) => panic!(
            "not complete at {} {:?} {:?}:\n{}",
            world.now(),
            world.next_event(),
            world.results().iter().map(|r| r.delivered).collect::<Vec<_>>(),
            world.time_sequence(0)
        ),
        Err(error) => panic!("{error}\n{}", world.time_sequence(0)),
    }
}

#[test]
fn stream_arrives_intact_over_every_path_type() {
    let preset = |name| Scenario::source(name).unwrap();
    let paths = [preset("lossless"), preset("wcdma-384"), lossy("both"), small_queue(5)];
    for (path, scenario) in paths.iter().enumerate() {
        for flow in [Flow::down(Length::Octets(200_000)), Flow::up(Length::Octets(200_000))] {
            let direction = flow.direction;
            let mut world = world(scenario, 1, vec![Flow { watch: Watch::Packets, ..flow }]);
            finish(&mut world);
            let result = world.result(0);
            assert_eq!((result.delivered, result.ended), (200_000, None), "path {path} {direction}");
            assert_eq!(result.statistics.bytes_acked, 200_000, "path {path} {direction}");
            let lost = world.losses(0).as_slice().len() as u64;
            assert_eq!(lost > 0, path >= 2, "path {path} {direction}: {lost} lost");
        }
    }
}

#[test]
fn bidirectional_flows_share_path_without_mixing() {
    let flows = vec![
        Flow::down(Length::Octets(300_000)),
        Flow { start: Instant::from_millis(700), ..Flow::up(Length::Octets(150_000)) },
        Flow { receive_buffer: Some(8000), ..Flow::down(Length::Octets(100_000)) },
        Flow::down(Length::Octets(0)),
    ];
    let mut world = world(&lossy("both"), 3, flows);
    finish(&mut world);
    let results = world.results();
    let delivered: Vec<u64> = results.iter().map(|result| result.delivered).collect();
    assert_eq!(delivered, [300_000, 150_000, 100_000, 0]);
    assert!(results[1].completed > Some(Instant::from_millis(700)));
    // With a receive buffer of 8000 bytes, at most 8000 bytes arrive per round trip.
    assert!(results[2].took() > Some(Duration::from_millis(100 * 100_000 / 8000)), "{:?}", results[2]);
}

#[test]
fn each_flow_uses_its_own_recipe() {
    let with = |recipe: &str| Flow {
        recipe: Some(recipe.parse::<Recipe>().unwrap()),
        watch: Watch::Decisions,
        ..Flow::down(Length::Octets(400_000))
    };
    let mut world = world(&lossy("down"), 1, vec![with("tahoe"), with("reno"), with("tahoe")]);
    finish(&mut world);
    let restarts = |decisions: &[Decision]| {
        let lost = decisions.iter().filter(|d| matches!(d.what, What::Lost { .. })).count();
        let recovered = decisions.iter().filter(|d| d.by == "reno" || d.why == "recovery ends").count();
        (lost > 0, recovered > 0)
    };
    let seen: Vec<_> = (0..3).map(|flow| restarts(world.decisions(flow))).collect();
    assert_eq!(seen, [(true, false), (true, true), (true, false)], "only Reno leaves a fast recovery");
}

#[test]
fn each_flow_uses_its_own_profile() {
    let with = |profile: Option<ProfileName>| Flow {
        profile: profile.map(ProfileName::profile),
        watch: Watch::Packets,
        ..Flow::down(Length::Octets(100_000))
    };
    let flows = [None, Some(ProfileName::Ns2), Some(ProfileName::Default)].map(with);
    let mut world = world(LINK, 1, flows.into());
    // The segments sent before the first ACK of data can arrive are the initial window.
    world.run_until(Instant::from_millis(150)).unwrap();
    let first = |flow| {
        let left = world.device_packets(flow).iter().map(|packet| &packet.kind);
        left.filter(|seen| matches!(seen, PacketKind::Sent { offset: 1.., .. })).count()
    };
    // Ten segments (RFC 6928), and one for ns-2's agents.
    assert_eq!([first(0), first(1), first(2)], [10, 1, 10]);
    assert_eq!(
        (0..3).map(|flow| world.sender(flow).unwrap().profile().name).collect::<Vec<_>>(),
        ["default", "ns2", "default"]
    );
    finish(&mut world);
    assert!(world.results().iter().all(|result| result.delivered == 100_000));
}

#[test]
fn endless_flow_runs_until_time_limit() {
    let mut world = world(LINK, 1, vec![Flow::down(Length::Endless)]);
    world.run_until(Instant::from_secs(20)).unwrap();
    assert_eq!(world.now(), Instant::from_secs(20));
    let result = world.result(0);
    // 1448 of 1500 bytes are payload, and the start takes a few round trips.
    let most = 20.0 * 2e6 / 8.0 * 1448.0 / 1500.0;
    assert!((0.9 * most..most).contains(&(result.delivered as f64)), "{} of {most}", result.delivered);
    assert_eq!(result.completed, None);
}

#[test]
fn two_segment_send_buffer_completes_transfer() {
    let mut fixed = sender("newreno");
    fixed.profile.sending.send_buffer = 3000;
    let flows = vec![Flow::down(Length::Octets(50_000))];
    let mut world = World::new(config(&lossy("both"), fixed, flows)).unwrap();
    finish(&mut world);
    assert_eq!(world.result(0).delivered, 50_000);
}

#[test]
fn abandoned_connection_reports_timeout() {
    let outage = link_and(
        "[[stage]]\nkind = \"outage\"\nboth = { at = [\"1s\"], lasts = \"1000min\", packets = \"dropped\" }\n",
    );
    let mut fixed = sender("newreno");
    fixed.profile.timers.retries = 3;
    let flows = vec![Flow { watch: Watch::Decisions, ..Flow::down(Length::Octets(1_000_000)) }];
    let mut world = World::new(config(&outage, fixed, flows)).unwrap();
    assert!(!world.run_to_end(LIMIT).unwrap(), "all packets are lost after a second");
    let result = world.result(0);
    assert_eq!((result.ended, result.completed), (Some(Ended::TimedOut), None), "{}", world.time_sequence(0));
    assert!((1..1_000_000).contains(&result.delivered), "{result:?}");
    let losses = world.losses(0).as_slice();
    assert!(!losses.is_empty() && losses.iter().all(|lost| lost.why == DropReason::Outage), "{losses:?}");
}

#[test]
fn endless_flow_without_link_rate_is_rejected() {
    let lossless = Scenario::source("lossless").unwrap();
    let mut finite = world(&lossless, 1, vec![Flow::down(Length::Octets(100_000))]);
    assert!(finite.run_to_end(LIMIT).unwrap(), "a flow with a length completes");
    let mut world = world(&lossless, 1, vec![Flow::down(Length::Endless)]);
    let error = world.run_until(Instant::from_secs(1)).unwrap_err();
    assert!(error.to_string().contains("give a link of the scenario a `rate`"), "{error}");
}

/// Without queues, the initial windows of all flows arrive at the same time.
#[test]
#[ignore = "nightly: more than 200,000 packets"]
fn simultaneous_windows_do_not_trigger_stall_error() {
    // Small segments and a large initial window give many simultaneous packets with few handshakes.
    const FLOWS: usize = 5500;
    const SEGMENTS: u32 = 40;
    let mut fixed = sender("newreno");
    fixed.profile.handshake.mss = Some(100);
    fixed.profile.recovery.initial.window = InitialWindow::Segments(SEGMENTS);
    let no_queue = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { delay = \"50ms\" }";
    let flows = vec![Flow::down(Length::Endless); FLOWS];
    let mut world = World::new(config(no_queue, fixed, flows)).unwrap();
    world.run_until(Instant::from_millis(150)).unwrap();
    let arrived = world.totals().down.left;
    assert!(arrived > 200_000 + 2 * FLOWS as u64, "{arrived} packets");
}

#[test]
fn too_many_flows_are_rejected() {
    let flows = vec![Flow::down(Length::Octets(1)); 1_000_001];
    let config = config(&Scenario::source("lossless").unwrap(), sender("newreno"), flows);
    assert!(matches!(World::new(config), Err(WorldError::TooManyFlows(1_000_001))));
}

/// With more flows than ports, the host gets a second address, on which flow 50,000 uses the first port
/// again. All flows run only in `make nightly`.
#[test]
fn flows_beyond_port_range_stay_separate() {
    let bytes = |n: u64| 1 + n % 1000;
    let runs = |n: &u64| is_everything() || n % 50_000 < 100 || n.is_multiple_of(500);
    let flows = (0..50_100_u64).map(|n| {
        let length = Length::Octets(bytes(n));
        // The starts are spread, and the other flows never start.
        let start = if runs(&n) { Duration::from_micros(20 * n) } else { LIMIT };
        let flow = if n % 2 == 0 { Flow::down(length) } else { Flow::up(length) };
        Flow { start: Instant::ZERO + start, ..flow }
    });
    let fast = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"1Gbit\", delay = \"10ms\" }";
    let mut world = world(fast, 1, flows.collect());
    world.run_until(Instant::from_secs(60)).unwrap();
    let results = world.results();
    for n in (0..50_100).filter(runs) {
        assert_eq!(results[n as usize].delivered, bytes(n), "flow {n}");
    }
}

#[test]
fn same_seed_repeats_run_exactly() {
    let run = |seed| {
        let flows = vec![
            Flow { watch: Watch::Packets, ..Flow::down(Length::Octets(400_000)) },
            Flow { watch: Watch::Packets, ..Flow::up(Length::Octets(100_000)) },
        ];
        let mut world = world(&lossy("both"), seed, flows);
        finish(&mut world);
        let traces: Vec<_> = (0..2).map(|flow| world.time_sequence(flow)).collect();
        (world.results(), traces, world.losses(0).clone())
    };
    let (first, again, other) = (run(1), run(1), run(2));
    assert_eq!(first.0, again.0);
    assert!(first.1 == again.1, "the results agree, the traces do not");
    assert_eq!(first.2, again.2);
    assert_ne!(first.2, other.2);
}

#[test]
fn watch_level_does_not_change_run() {
    let run = |watch| {
        let mut world = world(&lossy("both"), 5, vec![Flow { watch, ..Flow::down(Length::Octets(400_000)) }]);
        finish(&mut world);
        (world.results(), world.now())
    };
    assert_eq!(run(Watch::Results), run(Watch::Decisions));
    assert_eq!(run(Watch::Results), run(Watch::Packets));
}

#[test]
fn listed_drops_hit_exact_segments_and_copies() {
    let scenario = link_and(
        r#"
[[stage]]
kind = "loss"
down = { model = "list", drop = ["segment 50", "segment 50 retransmission 1"] }
"#,
    );
    let mut world = World::one_flow(&scenario, "newreno", 300_000, 1).unwrap();
    finish(&mut world);
    let mss = world.device_packets(0).iter().find_map(|packet| match packet.kind {
        PacketKind::Sent { offset: 1, len, .. } => Some(len),
        _ => None,
    });
    let offset = 1 + 49 * mss.unwrap();
    let lost: Vec<_> =
        world.losses(0).as_slice().iter().map(|lost| (lost.offset, lost.copy, lost.why)).collect();
    let sequence = world.time_sequence(0);
    assert_eq!(lost, [(offset, 1, DropReason::Listed), (offset, 2, DropReason::Listed)], "{sequence}");
    assert_eq!(world.losses(0).count(Cause::Radio), 2);
    let [first, second] = world.losses(0).as_slice() else { unreachable!("two were counted") };
    let (first, second) = (*first, *second);
    let why = |at| world.losses(0).why(offset, at).map(|lost| lost.copy);
    assert_eq!(why(first.sent), None, "it was not lost before it was dropped\n{sequence}");
    assert_eq!(why(first.at), Some(1), "{sequence}");
    assert_eq!(why(second.at), Some(2), "{sequence}");
    assert_eq!(world.losses(0).why(offset + mss.unwrap(), world.now()), None, "its neighbour arrived");
    let resent = |copy| {
        let sent = PacketKind::Sent { offset, len: mss.unwrap(), copy };
        world.device_packets(0).iter().filter(|packet| packet.kind == sent).count()
    };
    assert_eq!((resent(1), resent(2), resent(3), resent(4)), (1, 1, 1, 0), "{sequence}");
    let dupacks = |packet: &&airtcp_sim::world::DevicePacket| {
        matches!(packet.kind, PacketKind::Ack { duplicate: true, .. })
    };
    let seen = world.device_packets(0).iter().filter(dupacks).count() as u64;
    assert_eq!(seen, world.result(0).counters.dupacks, "{sequence}");
}

#[test]
fn recorded_losses_match_path_totals() {
    let radio =
        "[[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"2%\", affects = \"data\" }\n";
    let scenario = format!("{}{radio}", small_queue(8));
    let flow = Flow { watch: Watch::Decisions, ..Flow::down(Length::Octets(4_000_000)) };
    // The flows start one after the other, so that no handshake coincides with another flow's initial burst.
    let flows = [0, 700, 1400].map(|start| Flow { start: Instant::from_millis(start), ..flow.clone() });
    let mut world = world(&scenario, 1, flows.to_vec());
    finish(&mut world);
    let count = |truth| (0..3).map(|flow| world.losses(flow).count(truth) as u64).sum::<u64>();
    let totals = &world.totals()[Direction::Down];
    // The pure ACKs of the three senders come when the queue has room, and the channel does not affect them.
    assert_eq!(count(Cause::Congestion), totals.dropped_for(DropReason::QueueFull));
    assert_eq!(count(Cause::Radio), totals.dropped_for(DropReason::Loss));
    assert!(count(Cause::Congestion) > 10 && count(Cause::Radio) > 10, "{totals:?}");
    // A judge that attributes every loss to congestion is right about queue drops only.
    let mut confusion = Confusion::default();
    for flow in 0..3 {
        assert_eq!(judges(world.decisions(flow)), ["always-congestion"]);
        confusion += world.confusion(flow, "always-congestion");
    }
    assert_eq!(
        (confusion.congestion_accuracy(), confusion.radio_accuracy()),
        (Some(1.0), Some(0.0)),
        "{confusion} {}",
        world.time_sequence(0)
    );
    assert!(confusion.of(Truth::Lost(Cause::Radio)) > 5, "{confusion}");
}

#[test]
fn rlc_discards_count_as_radio_loss() {
    let source = Scenario::source("wcdma-384-maxdat").unwrap();
    let mut world = World::one_flow(&source, "sack", 500_000, 1).unwrap();
    finish(&mut world);
    let totals = world.totals();
    let lost = world.losses(0);
    assert!(lost.count(Cause::Radio) > 0, "{totals:?}");
    assert_eq!(lost.count(Cause::Congestion), 0);
    let fallback = |decision: &Decision| matches!(decision.what, What::Fallback { .. });
    assert!(!world.decisions(0).iter().any(fallback), "an ordinary receiver permits SACK");
}

#[test]
fn two_hundred_flows_share_path_fairly() {
    let scenario = small_queue(300).replace("2Mbit", "20Mbit");
    let flow = |i: u64| Flow { start: Instant::from_millis(5 * i), ..Flow::down(Length::Octets(50_000)) };
    let mut world = world(&scenario, 1, (0..200).map(flow).collect());
    finish(&mut world);
    let took: Vec<f64> = world.results().iter().map(|result| result.took().unwrap().as_secs_f64()).collect();
    // The link needs 4.2 s for all data, but no flow has the link to itself.
    let longest = took.iter().copied().fold(0.0, f64::max);
    assert!(longest < 20.0, "{longest} s");
    let (sum, squares) = took.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let jain = sum * sum / (took.len() as f64 * squares);
    assert!(jain > 0.5, "Jain's index of the times {jain}");
}

/// Returns a hand-written trace with decisions at whole milliseconds.
fn trace(entries: &[(u64, &'static str, What)]) -> Vec<Decision> {
    let decision = |(at, by, what): &(u64, &'static str, What)| Decision {
        at: Instant::from_millis(*at),
        state: RecoveryState::Recovery,
        question: Question::Attribute,
        by,
        what: what.clone(),
        why: "by hand",
    };
    entries.iter().map(decision).collect()
}

#[test]
fn judge_is_scored_against_ground_truth() {
    // Segments 20 and 40 are lost on the radio link, and no others.
    let scenario = link_and(
        "[[stage]]\nkind = \"loss\"\ndown = { model = \"list\", drop = [\"segment 20\", \"segment 40\"] }\n",
    );
    let mut world = World::one_flow(&scenario, "newreno", 200_000, 1).unwrap();
    finish(&mut world);
    let losses = world.losses(0);
    let [a, b] = losses.as_slice() else { panic!("{losses:?}") };
    let late = a.at.max(b.at).as_millis() + 1000;
    let lost = |offset| What::Lost { offset, segments: 1 };
    let cause = |offset, cause| What::Cause { offset, cause };
    let watched = |offset| What::Judged { offset, cause: Cause::Congestion };
    let decisions = trace(&[
        (1, "detector", lost(a.offset)),
        (1, "judge", cause(a.offset, Cause::Radio)),
        (late, "detector", lost(a.offset)),
        (late, "watcher", watched(a.offset)),
        (late, "judge", cause(a.offset, Cause::Radio)),
        // The same segment again, although no other copy was dropped.
        (late + 10, "detector", lost(a.offset)),
        (late + 10, "watcher", watched(a.offset)),
        (late + 10, "judge", cause(a.offset, Cause::Congestion)),
        // The repair queries the cause of another hole.
        (late + 20, "judge", cause(b.offset, Cause::Congestion)),
    ]);
    let judge = score(&decisions, losses, "judge");
    let expected = "congestion: 0 c 0 r, radio: 1 c 1 r, not lost: 1 c 1 r (50.0 % right)";
    assert_eq!(judge.to_string(), expected, "{}", world.time_sequence(0));
    assert_eq!(judge.count(Cause::Radio, Truth::NotLost), 1, "judged before any copy was dropped");
    assert_eq!((judge.total(), judge.accuracy(), judge.congestion_accuracy()), (4, Some(0.5), None));
    let watcher = score(&decisions, losses, "watcher");
    assert_eq!(watcher.to_string(), "congestion: 0 c 0 r, radio: 1 c 0 r, not lost: 1 c 0 r (0.0 % right)");
    assert_eq!(judges(&decisions), ["judge", "watcher"]);
    assert_eq!(score(&decisions, losses, "nobody"), Confusion::default());
}
