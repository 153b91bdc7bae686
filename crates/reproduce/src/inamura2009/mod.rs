//! The figures of Inamura et al. 2009: TCP over W-CDMA.

mod data_size;
mod eifel;
pub mod handover;
mod jitter;
mod persistence;
mod prohibit;
mod sack_edge;
mod setting;
mod story;
mod systems;
mod twice_lost;

use crate::{By, Figure, Paper, Seeds, Shared};

const fn figure(
    id: &'static str,
    title: &'static str,
    run: fn(&crate::Effort) -> Result<crate::Finding, airtcp_sim::world::WorldError>,
) -> Figure {
    Figure { id, paper: Paper::Inamura2009, title, run, seeds: Seeds::Each }
}

pub const SHARED: &[Shared] = &[
    Shared {
        by: By::These(&["p2-fig2", "p2-fig3", "p2-fig5", "p2-fig6", "p2-fig7"]),
        choices: setting::choices,
    },
    Shared { by: By::These(&["p2-fig2", "p2-fig3"]), choices: setting::choices_of_opnet },
    Shared { by: By::These(&["p2-fig5", "p2-fig6", "p2-fig7"]), choices: jitter::choices },
    Shared { by: By::These(&["p2-fig12", "p2-fig13", "p2-fig14", "p2-fig15"]), choices: twice_lost::choices },
];

pub const FIGURES: &[Figure] = &[
    figure("p2-fig2", "throughput against Timer Status Prohibit (TSP)", prohibit::figure_2),
    figure("p2-fig3", "throughput and lost segments against MAX DAT", persistence::figure_3),
    figure("p2-fig5", "timeouts by sender timer and block error rate (BLER)", jitter::figure_5),
    figure("p2-fig6", "throughput by sender timer and block error rate (BLER)", jitter::figure_6),
    figure("p2-fig7", "gain of Eifel by block error rate (BLER)", eifel::figure_7),
    figure("p2-fig12", "Fast Timeout if the retransmission is lost", twice_lost::figure_12),
    figure("p2-fig13", "Fast Timeout with loss retransmission", twice_lost::figure_13),
    figure("p2-fig14", "throughput against data size if the retransmission is lost", data_size::figure_14),
    figure("p2-fig15", "loss retransmission with SACK and further losses", sack_edge::figure_15),
];
