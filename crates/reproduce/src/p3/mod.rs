//! The figures of P3: AIMD with a tax rebate.

mod fairness;
mod flows;
mod goodput;
mod grid;
mod rate;
mod sensitivity;
mod sentences;
pub mod setting;
mod theorem;
mod variants;

pub use fairness::{beside, jain_index};
pub use goodput::{against_newreno, against_pr, out_of_order, underestimated};
pub use rate::rate_adaptation;
pub use sensitivity::paths;
use setting::Extent;
pub use theorem::overlay;
pub use variants::{approximation, other_differentiators, rules};

use super::{By, Effort, Figure, Paper, Seeds, Shared};

/// A table of many paths is for directions.
const SEEDS_PER_PATH: u32 = 10;

const fn figure(
    id: &'static str,
    title: &'static str,
    run: fn(&Effort) -> Result<super::Finding, airtcp_sim::world::WorldError>,
) -> Figure {
    Figure { id, paper: Paper::P3, title, run, seeds: Seeds::Each }
}

pub const SHARED: &[Shared] = &[
    Shared { by: By::All, choices: setting::choices },
    Shared {
        by: By::These(&[
            "p3-fig2a",
            "p3-fig2b",
            "p3-fig2c",
            "p3-underestimation",
            "p3-rr-dcr",
            "p3-approximation",
            "p3-rules",
            "p3-sensitivity",
        ]),
        choices: setting::choices_of_one_flow,
    },
    Shared {
        by: By::These(&[
            "p3-fig2b",
            "p3-fig2c",
            "p3-fig4",
            "p3-underestimation",
            "p3-rr-dcr",
            "p3-approximation",
            "p3-rules",
            "p3-sensitivity",
        ]),
        choices: setting::choices_of_pr,
    },
    Shared {
        by: By::These(&["p3-fig4", "p3-equation1", "p3-theorem1", "p3-sensitivity", "p3-fairness"]),
        choices: fairness::choices_of_the_dumbbell,
    },
];

pub const FIGURES: &[Figure] = &[
    figure("p3-fig2a", "NewReno, Westwood and NewReno+ under random loss", |effort| {
        against_newreno(effort, &Extent::FULL)
    }),
    figure("p3-fig2b", "TCP-PR, Westwood and TCP-PR+ under random loss", |effort| {
        against_pr(effort, &Extent::FULL)
    }),
    figure("p3-fig2c", "all of them where the radio link repairs its losses and reorders", |effort| {
        out_of_order(effort, &Extent::FULL)
    }),
    figure("p3-fig4", "Jain's index of 12 equal flows through one radio link", |effort| {
        jain_index(effort, &Extent::FULL)
    }),
    figure("p3-underestimation", "half of the tax is not known", |effort| {
        underestimated(effort, &Extent::UNDERESTIMATION)
    }),
    figure("p3-rr-dcr", "RR-TCP and TCP-DCR with the rebate", |effort| {
        other_differentiators(effort, &Extent::FEW)
    }),
    figure(
        "p3-approximation",
        "the rebate beside the ideal compensators and the ideal differentiator",
        |effort| approximation(effort, &Extent::FEW),
    ),
    figure("p3-rules", "alpha, and what the paper leaves open in its algorithm", |effort| {
        rules(effort, &Extent::FEW)
    }),
    figure("p3-equation1", "where equation (1) settles, and whether flows go there", |effort| {
        rate_adaptation(effort, &Extent::MODEL)
    }),
    figure("p3-theorem1", "equation (16) over the throughput of NewReno+", |effort| {
        overlay(effort, &Extent::THEOREM)
    }),
    Figure {
        seeds: Seeds::UpTo(SEEDS_PER_PATH),
        ..figure("p3-sensitivity", "what does not hold, on other paths", |effort| {
            paths(&effort.at_most(SEEDS_PER_PATH), &Extent::SENSITIVITY)
        })
    },
    figure("p3-fairness", "six NewReno+ beside six NewReno", |effort| beside(effort, &Extent::FULL)),
];
