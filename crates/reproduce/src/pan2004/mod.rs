//! The figures of Pan et al. 2004: the effect of radio losses on a TCP sender, and of segment-in-flight
//! estimation (sifest).

mod clusters;
mod decomposition;
mod events;
mod fairness;
mod judging;
mod limits;
mod literal;
mod readings;
mod reordering;
mod senders;
pub mod setting;
mod sifest;
mod text;
mod throughput;
mod trace;

pub(crate) use readings::FACTORS;

use crate::{Figure, Paper, Reproduce};

const fn figure(id: &'static str, title: &'static str, run: Reproduce) -> Figure {
    Figure::new(Paper::Pan2004, id, title, run)
}

/// All figures of the paper.
pub const FIGURES: &[Figure] = &[
    figure("p0-fig5", "Fig. 5: acknowledged packets by loss rate", throughput::figure_5),
    figure("p0-fig6", "Fig. 6: Tahoe with clustered and with random errors", throughput::figure_6),
    figure("p0-fig7", "Fig. 7: loss of two consecutive packets, Tahoe and Reno", events::figure_7),
    figure("p0-fig8", "Fig. 8: a tiny congestion window, Tahoe", events::figure_8),
    figure("p0-fig9", "Fig. 9: loss of retransmitted packets, Tahoe", events::figure_9),
    figure("p0-fig10", "Fig. 10: triggers of retransmissions, Tahoe", decomposition::figure_10),
    figure(
        "p0-fig11a",
        "Fig. 11a: sifest with and without a larger initial window (LIW) at x = 0.01, y = 0.15",
        sifest::figure_11a,
    ),
    figure("p0-fig11b", "Fig. 11b: Tahoe with and without sifest by loss rate", sifest::figure_11b),
    figure(
        "p0-fig12",
        "Fig. 12: triggers of retransmissions with and without sifest",
        decomposition::figure_12,
    ),
    figure("p0-fig13", "Fig. 13: an ordinary sender competing with a sifest sender", fairness::figure_13),
    figure(
        "p0-limits",
        "§4.1 and §5: small receiver windows, short transfers and Limited Transmit",
        limits::small_windows_and_sessions,
    ),
    figure(
        "p0-reordering",
        "§4.2: duplicate ACKs that late packets cause, with link-layer retransmission",
        reordering::late_packets,
    ),
    figure(
        "p0-text",
        "§2.3, §3.1 and §4.2: the formulas, and other interpretations of the setup and of sifest",
        text::formulas_and_interpretations,
    ),
];
