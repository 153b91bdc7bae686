//! The figures of P4: E-TCP, which is told where a packet was lost.

mod causes;
mod free;
mod goodput;
mod measured;
pub mod setting;
mod table3;
mod window;

use airtcp_sim::world::WorldError;
use airwire::time::Duration;
pub use causes::causes;
pub use free::free;
pub use goodput::{fig6, fig7, fig8};
pub use table3::table3;
pub use window::window;

use super::{By, Effort, Figure, Finding, Paper, Seeds, Shared};

/// Of Table 3: Reno-TCP receives about as many packets as there.
const LENGTH: Duration = Duration::from_secs(600);
/// Of all else, where packets are not compared with the paper's.
const SHORT: Duration = Duration::from_secs(100);

pub const SHARED: &[Shared] = &[Shared { by: By::All, choices: setting::choices }];

pub const FIGURES: &[Figure] = &[
    figure("p4-table3", "E-TCP against Reno at a bit error rate of 1e-3, in three directions", |effort| {
        table3(effort, LENGTH)
    }),
    figure("p4-fig6", "goodput against the bit error rate, from a fixed host to a mobile one", |effort| {
        fig6(effort, SHORT)
    }),
    figure("p4-fig7", "goodput against the bit error rate, from a mobile host to a fixed one", |effort| {
        fig7(effort, SHORT)
    }),
    figure("p4-fig8", "goodput against the bit error rate, from a mobile host to another", |effort| {
        fig8(effort, SHORT)
    }),
    figure("p4-causes", "§III D and §V: how often the marks tell why a packet was lost", |effort| {
        causes(effort, SHORT)
    }),
    figure(
        "p4-window",
        "§IV and §V: the window that is kept, and how soon a lost packet is sent again",
        |effort| window(effort, SHORT),
    ),
    figure("p4-free", "§V, over what the paper does not say", |effort| free(effort, SHORT)),
];

const fn figure(
    id: &'static str,
    title: &'static str,
    run: fn(&Effort) -> Result<Finding, WorldError>,
) -> Figure {
    Figure { id, paper: Paper::P4, title, run, seeds: Seeds::Each }
}
