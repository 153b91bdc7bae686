//! Three recipes share a lossy link for two minutes of virtual time: who gets how much, and how fair is that?
//!
//! `cargo run -p airtcp-sim --example three_flows`

use airlink::scenario::Scenario;
use airtcp_sim::{Flow, HostSpec, Length, Run, Until, run};
use airwire::time::{Duration, Instant};

/// A bottleneck of 2 Mbit/s with a round trip of 80 ms and a queue of 30 packets. Behind it a radio that is mostly good
/// and now and then loses a third of the packets for a while.
const PATH: &str = r#"
schema = 1

[[stage]]
kind = "link"
name = "bottleneck"
both = { rate = "2Mbit", delay = "40ms" }
down.queue = { packets = 30 }

[[stage]]
kind = "loss"
name = "radio"

[stage.down]
model = "gilbert-elliott"
good = "0.2%"
bad = "33%"
good_to_bad = "0.2%"
bad_to_good = "20%"
step = "packet"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recipes = ["newreno", "sack+cubic+prr", "sack+westwood"];
    let mut flows = Vec::new();
    for (number, recipe) in (0..).zip(recipes) {
        flows.push(Flow {
            recipe: Some(recipe.parse()?),
            // Half a second apart, so that they do not slow-start as one.
            start: Instant::ZERO + Duration::from_millis(500) * number,
            ..Flow::down(Length::Endless)
        });
    }
    let report = run(&Run {
        scenario: Scenario::parse(PATH, "three_flows")?,
        seed: 1,
        // Every flow names its own recipe; this one would be for those that do not.
        fixed: HostSpec::sender("newreno".parse()?),
        mobile: HostSpec::receiver(),
        flows,
        until: Until::At(Instant::from_secs(120)),
        // The first ten seconds are not measured.
        from: Instant::from_secs(10),
        score: false,
    })?;
    println!("{:<16} {:>14} {:>9} {:>15}", "recipe", "goodput", "timeouts", "retransmissions");
    for flow in &report.flows {
        println!(
            "{:<16} {:>7.1} kbit/s {:>9} {:>15}",
            flow.recipe,
            flow.goodput_bit_per_s / 1e3,
            flow.counters.timeouts,
            flow.counters.resent(),
        );
    }
    println!("Jain's index {:.3}", report.jain);
    println!("dropped: {} by the queue, {} by the radio", report.dropped_by_queues, report.dropped_by_radio);
    Ok(())
}
