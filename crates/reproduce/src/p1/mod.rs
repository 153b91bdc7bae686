//! The figures of P1: four ordinary TCPs over hybrid paths, and what round-trip times tell about the cause of a loss.
//!
//! The text gives two numbers of its figures, 6 s and 1.8 times (§4.2, Figs. 8 to 11). All else is compared with what
//! the text says about the curves.

mod goodput;
mod judges;
mod rtt;
mod setting;
mod transfer;

use super::{Figure, Paper};

pub const FIGURES: &[Figure] = &[
    Figure {
        id: "p1-fig4",
        paper: Paper::P1,
        title: "Fig. 4: Tahoe, Reno, NewReno and SACK over a wireless last hop, no congestion",
        run: goodput::figure_4,
    },
    Figure {
        id: "p1-fig5",
        paper: Paper::P1,
        title: "Fig. 5: the four over a wireless last hop, two-state loss, congestion on the wire",
        run: goodput::figure_5,
    },
    Figure {
        id: "p1-fig6",
        paper: Paper::P1,
        title: "Fig. 6: the four over a broad wireless backbone, small queues",
        run: goodput::figure_6,
    },
    Figure {
        id: "p1-fig7",
        paper: Paper::P1,
        title: "Fig. 7: the four over a broad wireless backbone, long queues",
        run: goodput::figure_7,
    },
    Figure {
        id: "p1-fig8",
        paper: Paper::P1,
        title: "Figs. 8 to 11: how long 100 kB take at 2 %",
        run: transfer::figures_8_to_11,
    },
    Figure {
        id: "p1-fig12",
        paper: Paper::P1,
        title: "Figs. 12, 13: round-trip times over a last hop, without and with congestion",
        run: rtt::figures_12_and_13,
    },
    Figure {
        id: "p1-fig17",
        paper: Paper::P1,
        title: "Figs. 14, 17: round-trip times before losses, broad backbone, long queues",
        run: rtt::figures_14_and_17,
    },
    Figure {
        id: "p1-fig18",
        paper: Paper::P1,
        title: "Figs. 15, 18: round-trip times before losses, broad backbone, small queues",
        run: rtt::figures_15_and_18,
    },
    Figure {
        id: "p1-fig19",
        paper: Paper::P1,
        title: "Figs. 16, 19: round-trip times before losses, narrow backbone",
        run: rtt::figures_16_and_19,
    },
    Figure {
        id: "p1-judges-last-hop",
        paper: Paper::P1,
        title: "the four judges over a last hop without congestion",
        run: judges::last_hop,
    },
    Figure {
        id: "p1-judges-congestion",
        paper: Paper::P1,
        title: "the four judges over a last hop with congestion before it",
        run: judges::congestion,
    },
    Figure {
        id: "p1-judges-long-queue",
        paper: Paper::P1,
        title: "the four judges over a broad backbone with long queues",
        run: judges::long_queue,
    },
    Figure {
        id: "p1-judges-small-queue",
        paper: Paper::P1,
        title: "the four judges over a broad backbone with small queues",
        run: judges::small_queue,
    },
    Figure {
        id: "p1-judges-narrow",
        paper: Paper::P1,
        title: "the four judges over a narrow backbone",
        run: judges::narrow,
    },
    Figure {
        id: "p1-judges-overall",
        paper: Paper::P1,
        title: "the four judges over all of them: is there one to rely on? (§5)",
        run: judges::overall,
    },
];
