//! The figures of Inamura et al. 2009: TCP over W-CDMA.

mod data_size;
mod eifel;
pub mod handover;
mod jitter;
mod pdu_size;
mod persistence;
mod prohibit;
mod readings;
mod sack_edge;
mod setting;
mod systems;
mod timeline;
mod twice_lost;

pub(crate) use readings::FACTORS;

use crate::{Figure, Paper, Reproduce};

const fn figure(id: &'static str, title: &'static str, run: Reproduce) -> Figure {
    Figure::new(Paper::Inamura2009, id, title, run)
}

/// The path of Figs. 12 to 15 for senders with RFC 6298's timer.
pub(crate) fn lost_retransmission() -> String {
    handover::path(&[twice_lost::ONCE, twice_lost::TWICE], Some(twice_lost::SHORT_HANDOVER))
}

/// The fixed detail of figures without a handover.
const NO_HANDOVER: &[&str] = &[readings::HANDOVER];

/// All figures of the paper.
pub const FIGURES: &[Figure] = &[
    figure("p2-pdu", "§2.1: throughput by the size of a PDU", pdu_size::sizes).fixing(NO_HANDOVER),
    figure("p2-fig2", "throughput against Timer Status Prohibit (TSP)", prohibit::figure_2)
        .fixing(NO_HANDOVER),
    figure("p2-fig3", "throughput and lost segments against MAX DAT", persistence::figure_3)
        .fixing(NO_HANDOVER),
    figure("p2-fig5", "timeouts by sender timer and block error rate (BLER)", jitter::figure_5)
        .fixing(NO_HANDOVER),
    figure("p2-fig6", "throughput by sender timer and block error rate (BLER)", jitter::figure_6)
        .fixing(NO_HANDOVER),
    figure("p2-fig7", "gain of Eifel by block error rate (BLER)", eifel::figure_7).fixing(NO_HANDOVER),
    figure("p2-fig12", "Fast Timeout if the retransmission is lost", twice_lost::figure_12).once(),
    figure("p2-fig13", "Fast Timeout with loss retransmission", twice_lost::figure_13).once(),
    figure("p2-fig14", "throughput against data size if the retransmission is lost", data_size::figure_14)
        .once(),
    figure("p2-fig15", "loss retransmission with SACK and further losses", sack_edge::figure_15).once(),
];
