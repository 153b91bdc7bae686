//! The figures of P0: what losses on a radio link do to a sender, and what segment-in-flight estimation changes.
//!
//! Here are the figures with numbers. Figs. 7 to 9 show single events: tests of the recovery answers repeat them.

mod decomposition;
mod fairness;
mod judging;
pub mod setting;
mod text;
mod throughput;

use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;

use self::judging::Measured;
use self::setting::{Acks, Channel, Setting};
use super::{Effort, Figure, Paper};

pub const FIGURES: &[Figure] = &[
    Figure {
        id: "p0-fig5",
        paper: Paper::P0,
        title: "Fig. 5: acknowledged packets as losses increase",
        run: throughput::figure_5,
    },
    Figure {
        id: "p0-fig6",
        paper: Paper::P0,
        title: "Fig. 6: clustered against random errors, Tahoe",
        run: throughput::figure_6,
    },
    Figure {
        id: "p0-fig10",
        paper: Paper::P0,
        title: "Fig. 10: what triggers retransmissions, Tahoe",
        run: decomposition::figure_10,
    },
    Figure {
        id: "p0-fig11a",
        paper: Paper::P0,
        title: "Fig. 11a: sifest and the larger initial window at x = 0.01, y = 0.15",
        run: throughput::figure_11a,
    },
    Figure {
        id: "p0-fig11b",
        paper: Paper::P0,
        title: "Fig. 11b: Tahoe with and without sifest as losses increase",
        run: throughput::figure_11b,
    },
    Figure {
        id: "p0-fig12",
        paper: Paper::P0,
        title: "Fig. 12: what triggers retransmissions with sifest",
        run: decomposition::figure_12,
    },
    Figure {
        id: "p0-fig13",
        paper: Paper::P0,
        title: "Fig. 13: an ordinary Tahoe beside one with sifest",
        run: fairness::figure_13,
    },
    Figure {
        id: "p0-text",
        paper: Paper::P0,
        title: "§2.3, §3 and §4.3.1: the formulas, and the numbers that stand in the text",
        run: text::numbers,
    },
];

/// z of Figs. 5 and 10 to 12: "from 0.01 to 0.13 in a step of 0.005".
fn overall_rates() -> Vec<f64> {
    (0..25).map(|step| 0.01 + 0.005 * f64::from(step)).collect()
}

/// A sender, with its name in the paper's figures.
#[derive(Clone, Copy)]
struct Curve {
    name: &'static str,
    recipe: &'static str,
    acks: Acks,
}

impl Curve {
    const fn new(name: &'static str, recipe: &'static str) -> Self {
        Self { name, recipe, acks: Acks::Delayed }
    }

    /// ND: without delayed ACKs.
    const fn undelayed(name: &'static str, recipe: &'static str) -> Self {
        Self { name, recipe, acks: Acks::Each }
    }
}

/// Runs each sender over each channel: `[curve][channel][seed]`.
fn grid(
    effort: &Effort,
    curves: &[Curve],
    channels: &[Channel],
) -> Result<Vec<Vec<Vec<Measured>>>, WorldError> {
    let mut plans = Vec::new();
    for Curve { recipe, acks, .. } in curves {
        for channel in channels {
            plans.push(Setting { acks: *acks, ..Setting::new(recipe, *channel) }.plan()?);
        }
    }
    let found = effort.sample(&plans, seeded, |_, report| Measured::of(&report.flows[0]))?;
    let mut rest = found.into_iter();
    Ok(curves.iter().map(|_| rest.by_ref().take(channels.len()).collect()).collect())
}

fn seeded(plan: &Run, seed: u64) -> Run {
    Run { seed, ..plan.clone() }
}
