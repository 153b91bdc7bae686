//! Three recipes share a lossy link for two minutes of virtual time. Prints the goodput of each and the fairness.
//!
//! `cargo run -p airtcp-sim --example three_flows`

use airlink::scenario::Scenario;
use airtcp_sim::{Flow, HostSpec, Length, Run, Until, run};
use airwire::time::{Duration, Instant};

/// A bottleneck of 2 Mbit/s with a round-trip time of 80 ms and a queue of 30 packets, followed by a radio link. In its
/// rare bad periods, the radio link loses a third of the packets.
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
            // The flows start half a second apart, so that their slow starts are not synchronised.
            start: Instant::ZERO + Duration::from_millis(500) * number,
            ..Flow::down(Length::Endless)
        });
    }
    let report = run(&Run {
        scenario: Scenario::parse(PATH, "three_flows")?,
        seed: 1,
        // Every flow names its recipe, so this one is not used.
        fixed: HostSpec::sender("newreno".parse()?),
        mobile: HostSpec::receiver(),
        flows,
        until: Until::At(Instant::from_secs(120)),
        // The measurement excludes the first ten seconds.
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
