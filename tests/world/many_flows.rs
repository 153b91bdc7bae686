//! A world with thousands of flows. All flows complete, and an event costs no more than in a small world.

use airlink::scenario::Scenario;
use airtcp_sim::world::{Flow, HostSpec, Length, World, WorldConfig};
use airtcp_testkit::sample::size;
use airwire::time::{Duration, Instant};

const SEGMENT: u64 = 1448;
const SEGMENTS: u64 = 8;

/// Creates flows with 100 kbit/s each, which start within the first ten seconds.
fn world(flows: usize) -> World {
    let scenario = format!(
        "schema = 1\n\
         [[stage]]\nkind = \"link\"\nboth = {{ rate = \"{}kbit\", delay = \"50ms\", queue = {{ packets = {} }} }}\n\
         [[stage]]\nkind = \"loss\"\ndown = {{ model = \"uniform\", per = \"1%\" }}\n",
        100 * flows,
        20 * flows
    );
    let start = |flow: usize| Instant::ZERO + Duration::from_secs(10) * flow as u64 / flows as u64;
    let flow = |flow| Flow { start: start(flow), ..Flow::down(Length::Octets(SEGMENTS * SEGMENT)) };
    World::new(WorldConfig {
        scenario: Scenario::parse(&scenario, "many flows").unwrap(),
        seed: 1,
        fixed: HostSpec::sender("newreno".parse().unwrap()),
        mobile: HostSpec::receiver(),
        flows: (0..flows).map(flow).collect(),
    })
    .unwrap()
}

/// Returns the number of events in a complete run, and the number of its data segments.
fn run(flows: usize) -> (u64, u64) {
    let mut world = world(flows);
    let mut events = 0;
    while !world.is_closed() && world.step_until(Instant::from_secs(600)).unwrap() {
        events += 1;
    }
    assert!(world.is_complete(), "{flows} flows are not complete at {}", world.now());
    let results = world.results();
    assert!(results.iter().all(|result| result.delivered == SEGMENTS * SEGMENT && result.ended.is_none()));
    (events, results.iter().map(|result| result.statistics.data_segments_out).sum())
}

/// The number of events per segment is counted. The cost of an event could only be measured with a clock, but
/// if each packet cost a scan of all flows, this test would take minutes.
#[test]
fn events_per_segment_are_independent_of_flow_count() {
    let per_segment = |flows| {
        let (events, segments) = run(flows);
        assert!(segments >= SEGMENTS * flows as u64);
        events as f64 / segments as f64
    };
    let flows = size(3000, 10_000);
    let [few, many] = [per_segment(10), per_segment(flows)];
    assert!(many < 1.5 * few, "{many:.2} events per segment with {flows} flows, {few:.2} with 10");
}
