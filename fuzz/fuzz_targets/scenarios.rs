//! Arbitrary text as a scenario. Either parsing reports at least one problem, or the scenario is
//! the same when written and parsed again, and its path carries packets.

#![cfg_attr(fuzzing, no_main)]

mod target;

use airlink::machine::Machine;
use airlink::path::{FIXED, MOBILE};
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airtcp_testkit::frames::{ACK, Tcp};
use airwire::time::{Duration, Instant};

target::run!(run);

/// Maximum number of deadlines per run. A traffic source never stops setting deadlines.
const DEADLINES: u32 = 2_000;

fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scenario = match Scenario::parse(text, "fuzz/seeds/scenarios/none/x.toml") {
        Ok(scenario) => scenario,
        Err(error) => return assert!(!error.problems().is_empty() && !error.to_string().is_empty()),
    };
    let written = scenario.to_toml();
    let reparsed =
        Scenario::parse(&written, "written.toml").unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(reparsed.to_toml(), written);
    assert_eq!(reparsed.stages, scenario.stages);
    let _ = scenario.to_json();
    let _ = scenario.remarks();

    // Building fails if a file that the scenario names is missing.
    let Ok(mut path) = scenario.build(None, Recording::Bytes, true) else { return };
    let (fixed, mobile) = (
        "10.0.0.1:80".parse().expect("the address is valid"),
        "10.0.0.2:5000".parse().expect("the address is valid"),
    );
    let mut deadlines = 0;
    let mut now = Instant::ZERO;
    for number in 0..20 {
        let down = Tcp::new(fixed, mobile, ACK, number * 1000, 1, 1000).packet();
        let up = Tcp::new(mobile, fixed, ACK, 1, number * 1000, 0).packet();
        for (port, packet) in [(FIXED, down), (MOBILE, up)] {
            path.handle_packet(now, port, packet);
            while path.poll_packet(now).is_some() {}
        }
        let until = now + Duration::from_millis(50);
        while let Some(at) = path.next_deadline().filter(|at| *at <= until) {
            deadlines += 1;
            if deadlines > DEADLINES {
                return;
            }
            now = now.max(at);
            path.handle_deadline(now);
            while path.poll_packet(now).is_some() {}
        }
        now = until;
        path.take_records();
        path.take_incidents();
        path.take_pdus();
    }
    let _ = path.stats();
}
