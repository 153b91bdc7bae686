//! The figures of Chandra et al. 2003: E-TCP, which learns from marks in ACKs where a packet was lost.

mod causes;
mod goodput;
mod measured;
mod readings;
pub mod setting;
mod table3;
mod unstated;
mod window;

use airwire::time::Duration;
pub use causes::causes;
pub use goodput::{fig6, fig7, fig8};
pub use table3::table3;
pub use unstated::unstated;
pub use window::window;

pub(crate) use readings::FACTORS;

use crate::{Figure, Paper, Reproduce};

/// Duration of the runs of Table 3: Reno-TCP receives about as many packets as in the paper.
const LENGTH: Duration = Duration::from_secs(600);
/// Duration of all other runs, whose packets are not compared with the paper's.
const SHORT: Duration = Duration::from_secs(100);

const fn figure(id: &'static str, title: &'static str, run: Reproduce) -> Figure {
    Figure::new(Paper::Chandra2003, id, title, run)
}

/// All figures of the paper.
pub const FIGURES: &[Figure] = &[
    figure("p4-table3", "Table 3: packets received with E-TCP and with Reno-TCP at BER 1e-3", |effort| {
        table3(effort, LENGTH)
    }),
    figure("p4-fig6", "Fig. 6: goodput at four bit error rates, from a fixed to a mobile host", |effort| {
        fig6(effort, SHORT)
    }),
    figure("p4-fig7", "Fig. 7: goodput at four bit error rates, from a mobile to a fixed host", |effort| {
        fig7(effort, SHORT)
    }),
    figure("p4-fig8", "Fig. 8: goodput at four bit error rates, between two mobile hosts", |effort| {
        fig8(effort, SHORT)
    }),
    figure("p4-causes", "§III D and §V: how often the marks show the true cause of a loss", |effort| {
        causes(effort, SHORT)
    }),
    figure(
        "p4-window",
        "§IV and §V: size of the congestion window, and delay until a lost packet is retransmitted",
        |effort| window(effort, SHORT),
    ),
    figure("p4-free", "§V: gain of E-TCP with other values of parameters that the paper omits", |effort| {
        unstated(effort, SHORT)
    }),
];
