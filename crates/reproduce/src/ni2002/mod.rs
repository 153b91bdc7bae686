//! The figures of Ni et al. 2002: four TCP versions over paths with a wired and a wireless part, and whether round-trip times show
//! the cause of a loss.
//!
//! The paper's text states only two numbers from its figures: 6 s and 1.8 times (§4.2.2, Figs. 8 to 11). All other
//! claims are statements about curves.

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
use crate::{By, Figure, Paper, Seeds, Shared};

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
        paper: Paper::Ni2002,
        title: "Figs. 4 to 7: throughput of four TCP versions by loss rate",
        run: goodput::figures_4_to_7,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-fig8",
        paper: Paper::Ni2002,
        title: "Figs. 8 to 11: time to transfer 100 kB at 2 % loss",
        run: transfer::figures_8_to_11,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-fig12",
        paper: Paper::Ni2002,
        title: "Figs. 12, 13: last-hop RTTs without and with congestion",
        run: rtt::figures_12_and_13,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-fig14",
        paper: Paper::Ni2002,
        title: "Figs. 14 to 19: RTTs over broad and narrow backbones",
        run: rtt::figures_14_to_19,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-last-hop",
        paper: Paper::Ni2002,
        title: "judges of loss causes over a last hop without congestion",
        run: judges::last_hop,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-congestion",
        paper: Paper::Ni2002,
        title: "judges of loss causes over a last hop with congestion",
        run: judges::congestion,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-long-queue",
        paper: Paper::Ni2002,
        title: "judges of loss causes over a broad backbone, long queues",
        run: judges::long_queue,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-small-queue",
        paper: Paper::Ni2002,
        title: "judges of loss causes over a broad backbone, small queues",
        run: judges::small_queue,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-narrow",
        paper: Paper::Ni2002,
        title: "judges of loss causes over a narrow backbone",
        run: judges::narrow,
        seeds: Seeds::Each,
    },
    Figure {
        id: "p1-judges-overall",
        paper: Paper::Ni2002,
        title: "judges of loss causes over all paths: is one reliable? (§5)",
        run: judges_everywhere::overall,
        seeds: Seeds::Each,
    },
];
