//! The figures of Lai et al. 2013: AIMD with a tax rebate. The *tax* is the rate of losses and reordering without
//! congestion. The *rebate* gives back the part of the window that the tax costs.

mod comparison;
mod fairness;
mod flows;
mod goodput;
mod rate;
mod readings;
mod related;
mod sensitivity;
mod sentences;
pub mod setting;
mod theorem;
mod variants;

pub use fairness::{jain_index, mixed_flows};
pub use goodput::{against_newreno, against_pr, out_of_order, underestimated};
pub use rate::rate_adaptation;
pub use related::{ad_hoc, related_work};
pub use sensitivity::sensitivity_to_paths;
use setting::Extent;
pub use theorem::theorem_1;
pub use variants::{approximation, other_differentiators, rules};

pub(crate) use readings::FACTORS;
use readings::{RATE, TAU};

use crate::{Figure, Paper, Reproduce, Seeds};

/// Ten seeds show the direction of an effect. That is enough for a table of many paths.
const SEEDS_PER_PATH: u32 = 10;

const fn figure(id: &'static str, title: &'static str, run: Reproduce) -> Figure {
    Figure::new(Paper::Lai2013, id, title, run)
}

/// All figures of the paper.
pub const FIGURES: &[Figure] = &[
    figure("p3-fig2a", "Fig. 2a: goodput of NewReno, Westwood and NewReno+ under random loss", |effort| {
        against_newreno(effort, &Extent::FULL)
    }),
    figure("p3-fig2b", "Fig. 2b: goodput of TCP-PR, Westwood and TCP-PR+ under random loss", |effort| {
        against_pr(effort, &Extent::FULL)
    }),
    figure("p3-fig2c", "Fig. 2c: goodput with link-layer retransmission and reordering", |effort| {
        out_of_order(effort, &Extent::FULL)
    }),
    figure("p3-fig4", "Fig. 4: Jain's fairness index of 12 flows that share a radio link", |effort| {
        jain_index(effort, &Extent::FULL)
    })
    .fixing(&[TAU]),
    figure("p3-underestimation", "§IV-C: goodput when the sender underestimates the tax by half", |effort| {
        underestimated(effort, &Extent::UNDERESTIMATION)
    }),
    figure("p3-rr-dcr", "§III: RR-TCP and TCP-DCR with the tax rebate", |effort| {
        other_differentiators(effort, &Extent::FEW)
    })
    .fixing(&[TAU]),
    figure(
        "p3-approximation",
        "§V: the tax rebate compared with the ideal compensators and the ideal differentiator",
        |effort| approximation(effort, &Extent::FEW),
    )
    .fixing(&[TAU]),
    figure("p3-rules", "§III-A: the parameter α and variants of the algorithm", |effort| {
        rules(effort, &Extent::FEW)
    })
    .fixing(&[TAU]),
    figure(
        "p3-equation1",
        "§II-B: equilibrium of equation (1), compared with measured throughput",
        |effort| rate_adaptation(effort, &Extent::MODEL),
    )
    .fixing(&[TAU, RATE]),
    figure("p3-theorem1", "§III-C: measured throughput of NewReno+, compared with equation (16)", |effort| {
        theorem_1(effort, &Extent::THEOREM)
    })
    .fixing(&[TAU, RATE]),
    figure(
        "p3-related",
        "§II-A: senders that detect mistakes, and senders that estimate the load",
        |effort| related_work(effort, &Extent::SENSITIVITY),
    ),
    figure("p3-ad-hoc", "§IV, footnote 2: reordering over several radio links", |effort| {
        ad_hoc(effort, &Extent::SENSITIVITY)
    })
    .fixing(&[TAU]),
    Figure {
        seeds: Seeds::UpTo(SEEDS_PER_PATH),
        ..figure("p3-sensitivity", "the claims on other paths", |effort| {
            sensitivity_to_paths(&effort.at_most(SEEDS_PER_PATH), &Extent::SENSITIVITY)
        })
        .fixing(&[TAU, RATE])
    },
    figure("p3-fairness", "six NewReno flows competing with six NewReno+ flows", |effort| {
        mixed_flows(effort, &Extent::FULL)
    })
    .fixing(&[TAU]),
];
