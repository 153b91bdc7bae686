//! Details of the simulations (§IV) that the paper leaves open.

use airtcp::recovery::Recipe;
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;

use crate::reading::{Factor, Value};

/// "a total of 20 runs, each lasting 2000 seconds and using different random seeds" (§IV).
pub(super) const REPETITIONS: u32 = 20;

pub(super) const TAU: &str = "Westwood's time constant τ";
pub(super) const RATE: &str = "the rate of the radio link";

pub(crate) static FACTORS: [Factor; 3] = [
    Factor {
        name: "the receiver's window",
        chosen: "1000 segments",
        others: &[
            // ns-2's default.
            Value { name: "20 segments", apply: |run| window(run, 20) },
            Value { name: "64 segments", apply: |run| window(run, 64) },
        ],
    },
    Factor {
        name: TAU,
        chosen: "0.5 s",
        others: &[
            Value { name: "0.1 s", apply: |run| tau(run, "100") },
            Value { name: "1 s", apply: |run| tau(run, "1000") },
        ],
    },
    Factor { name: RATE, chosen: "2 Mbit/s", others: &[Value { name: "5 Mbit/s", apply: rate }] },
];

fn window(run: &mut Run, segments: usize) -> Result<(), WorldError> {
    let profile = &mut run.mobile.profile;
    profile.acks.recv_buffer = segments * usize::from(profile.handshake.mss.unwrap_or(1000));
    Ok(())
}

/// Sets Westwood's time constant for each Westwood sender whose recipe does not set one.
fn tau(run: &mut Run, milliseconds: &str) -> Result<(), WorldError> {
    let flows = run.flows.iter_mut().filter_map(|flow| flow.recipe.as_mut());
    for recipe in flows.chain([&mut run.fixed.recipe]) {
        let named = recipe.to_string();
        if named.split('+').any(|part| part == "westwood") && !named.contains("westwood-") {
            *recipe = format!("{named}+westwood-tau={milliseconds}").parse::<Recipe>()?;
        }
    }
    Ok(())
}

/// Changes the links of Figs. 1 and 3 in proportion.
fn rate(run: &mut Run) -> Result<(), WorldError> {
    let names: Vec<String> = run.scenario.stages.iter().map(|stage| stage.name.clone()).collect();
    for (stage, rate) in [
        ("radio", "5Mbit"),
        ("radio-2", "5Mbit"),
        ("radio-3", "5Mbit"),
        ("wire", "25Mbit"),
        ("access", "250Mbit"),
    ] {
        if names.iter().any(|name| name == stage) {
            for direction in ["down", "up"] {
                run.scenario.set(&format!("{stage}.{direction}.rate"), rate)?;
            }
        }
    }
    Ok(())
}
