//! The figures of Ni et al. 2002: four TCP versions over paths with a wired and a wireless part, and whether round-trip
//! times show the cause of a loss.
//!
//! The paper's text states only two numbers from its figures: 6 s and 1.8 times (§4.2.2, Figs. 8 to 11). All other
//! claims are statements about curves.

mod goodput;
mod judges;
mod judges_everywhere;
mod observed;
mod panels;
mod readings;
mod round_trips;
mod rtt;
pub(crate) mod setting;
mod traces;
mod transfer;

pub(crate) use readings::FACTORS;

use crate::{Figure, Paper, Reproduce};

const fn figure(id: &'static str, title: &'static str, run: Reproduce) -> Figure {
    Figure::new(Paper::Ni2002, id, title, run)
}

/// All figures of the paper.
pub const FIGURES: &[Figure] = &[
    figure("p1-fig4", "Figs. 4 to 7: throughput of four TCP versions by loss rate", goodput::figures_4_to_7),
    figure("p1-fig8", "Figs. 8 to 11: time to transfer 100 kB at 2 % loss", transfer::figures_8_to_11),
    figure("p1-fig12", "Figs. 12, 13: last-hop RTTs without and with congestion", rtt::figures_12_and_13),
    figure("p1-fig14", "Figs. 14 to 19: RTTs over broad and narrow backbones", rtt::figures_14_to_19),
    figure(
        "p1-judges-last-hop",
        "judges of loss causes over a last hop without congestion",
        judges::last_hop,
    ),
    figure(
        "p1-judges-congestion",
        "judges of loss causes over a last hop with congestion",
        judges_everywhere::congestion,
    ),
    figure(
        "p1-judges-long-queue",
        "judges of loss causes over a broad backbone, long queues",
        judges::long_queue,
    ),
    figure(
        "p1-judges-small-queue",
        "judges of loss causes over a broad backbone, small queues",
        judges::small_queue,
    ),
    figure("p1-judges-narrow", "judges of loss causes over a narrow backbone", judges::narrow),
    figure(
        "p1-judges-overall",
        "judges of loss causes over all paths: is one reliable? (§5)",
        judges_everywhere::overall,
    ),
];
