//! The figures of P1: four ordinary TCPs over hybrid paths, and what round-trip times tell about the cause of a loss.
//!
//! The text gives two numbers of its figures, 6 s and 1.8 times (§4.2, Figs. 8 to 11). All else is compared with what
//! the text says about the curves.

mod goodput;
mod judges;
mod judges_everywhere;
mod observed;
mod panels;
mod rtt;
pub(crate) mod setting;
mod traces;
mod transfer;
mod trips;

use self::setting::{Queues, Topology};
use super::{By, Figure, Paper, Seeds, Shared};

pub const SHARED: &[Shared] = &[
    Shared { by: By::All, choices: setting::choices },
    Shared {
        by: By::These(&["p1-fig4", "p1-fig12", "p1-judges-last-hop", "p1-judges-overall"]),
        choices: || vec![Topology::LastHop.choice()],
    },
    Shared {
        by: By::These(&["p1-fig4", "p1-fig8", "p1-fig12", "p1-judges-congestion", "p1-judges-overall"]),
        choices: || vec![Topology::Congestion.choice()],
    },
    Shared {
        by: By::These(&["p1-fig4", "p1-fig14", "p1-judges-small-queue", "p1-judges-overall"]),
        choices: || vec![Topology::SmallQueue.choice()],
    },
    Shared {
        by: By::These(&["p1-fig4", "p1-fig14", "p1-judges-long-queue", "p1-judges-overall"]),
        choices: || vec![Topology::LongQueue.choice()],
    },
    Shared {
        by: By::These(&["p1-fig14", "p1-judges-narrow", "p1-judges-overall"]),
        choices: || vec![Topology::Narrow(Queues::Small).choice()],
    },
    Shared { by: By::These(&["p1-fig12", "p1-fig14"]), choices: rtt::choices },
    Shared {
        by: By::These(&[
            "p1-judges-last-hop",
            "p1-judges-congestion",
            "p1-judges-long-queue",
            "p1-judges-small-queue",
            "p1-judges-narrow",
            "p1-judges-overall",
        ]),
        choices: judges::choices,
    },
];

pub const FIGURES: &[Figure] = &[
    Figure {
        id: "p1-fig4",
        paper: Paper::P1,
        title: "Figs. 4 to 7: Tahoe, Reno, NewReno and SACK over a last hop and a broad backbone",
        run: goodput::figures_4_to_7,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-fig8",
        paper: Paper::P1,
        title: "Figs. 8 to 11: how long 100 kB take at 2 %",
        run: transfer::figures_8_to_11,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-fig12",
        paper: Paper::P1,
        title: "Figs. 12, 13: round-trip times over a last hop, without and with congestion",
        run: rtt::figures_12_and_13,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-fig14",
        paper: Paper::P1,
        title: "Figs. 14 to 19: round-trip times before losses, broad and narrow backbones",
        run: rtt::figures_14_to_19,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-last-hop",
        paper: Paper::P1,
        title: "the four judges over a last hop without congestion",
        run: judges::last_hop,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-congestion",
        paper: Paper::P1,
        title: "the four judges over a last hop with congestion before it",
        run: judges::congestion,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-long-queue",
        paper: Paper::P1,
        title: "the four judges over a broad backbone with long queues",
        run: judges::long_queue,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-small-queue",
        paper: Paper::P1,
        title: "the four judges over a broad backbone with small queues",
        run: judges::small_queue,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-narrow",
        paper: Paper::P1,
        title: "the four judges over a narrow backbone",
        run: judges::narrow,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-overall",
        paper: Paper::P1,
        title: "the four judges over all of them: is there one to rely on? (§5)",
        run: judges_everywhere::overall,
        seeds: Seeds::Each,
    },
];
