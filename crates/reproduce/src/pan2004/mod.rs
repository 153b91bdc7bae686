//! The figures of Pan et al. 2004: the effect of radio losses on a TCP sender, and of segment-in-flight
//! estimation (sifest).

mod clusters;
mod decomposition;
mod events;
mod fairness;
mod judging;
mod letter;
mod limits;
pub mod setting;
mod sifest;
mod text;
mod throughput;
mod trace;

use airtcp_sim::run::Run;
use airtcp_sim::world::{Watch, WorldError};

use self::judging::Measured;
use self::setting::{Acks, Channel, Setting};
use self::trace::Trace;
use crate::{Effort, Figure, Paper, Reproduce};

const fn figure(id: &'static str, title: &'static str, run: Reproduce) -> Figure {
    Figure::new(Paper::Pan2004, id, title, run)
}

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
        "p0-text",
        "§2.3, §3.1 and §4.2: the formulas, and other interpretations of the setup and of sifest",
        text::readings,
    ),
];

/// z in Figs. 5 and 10 to 12: "from 0.01 to 0.13 in a step of 0.005" (§3.2.1).
fn overall_rates() -> Vec<f64> {
    (0..25).map(|step| 0.01 + 0.005 * f64::from(step)).collect()
}

/// One channel for each z.
fn channels(rates: &[f64]) -> Vec<Channel> {
    rates.iter().map(|z| Channel::overall(*z)).collect()
}

/// Indices of the `rates` between `from` and `to`, including both.
fn between(rates: &[f64], from: f64, to: f64) -> Vec<usize> {
    (0..rates.len()).filter(|point| (from - 1e-9..=to + 1e-9).contains(&rates[*point])).collect()
}

/// The given points of a curve.
fn only(curve: &[Vec<f64>], points: &[usize]) -> Vec<Vec<f64>> {
    points.iter().map(|point| curve[*point].clone()).collect()
}

/// A sender and its name in the paper's legends.
#[derive(Clone, Copy)]
struct Curve {
    name: &'static str,
    recipe: &'static str,
    acks: Acks,
}

impl Curve {
    const fn new(name: &'static str, recipe: &'static str) -> Self {
        Self { name, recipe, acks: Acks::Delayed }
    }

    /// ND: without delayed ACKs.
    const fn undelayed(name: &'static str, recipe: &'static str) -> Self {
        Self { name, recipe, acks: Acks::Each }
    }

    fn over(&self, channel: Channel) -> Setting {
        Setting { acks: self.acks, ..Setting::new(self.recipe, channel) }
    }
}

/// Runs each sender over each channel: `[curve][channel][seed]`.
fn grid(
    effort: &Effort,
    curves: &[Curve],
    channels: &[Channel],
) -> Result<Vec<Vec<Vec<Measured>>>, WorldError> {
    let settings: Vec<_> =
        curves.iter().flat_map(|curve| channels.iter().map(|channel| curve.over(*channel))).collect();
    let found = measured(effort, &settings)?;
    Ok(found.chunks(channels.len()).map(<[_]>::to_vec).collect())
}

/// Runs each setting: `[setting][seed]`.
fn measured(effort: &Effort, settings: &[Setting]) -> Result<Vec<Vec<Measured>>, WorldError> {
    let plans = planned(settings)?;
    effort.sample(&plans, seeded, |(setting, _), report| Measured::of(setting, &report.flows[0]))
}

/// Like [`measured`], for measurements that need the events of each packet.
fn traced<T: Clone + Send + 'static>(
    effort: &Effort,
    settings: &[Setting],
    look: impl Fn(&Measured, &Trace) -> T + Sync,
) -> Result<Vec<Vec<T>>, WorldError> {
    let settings: Vec<_> =
        settings.iter().map(|setting| Setting { watch: Watch::Packets, ..setting.clone() }).collect();
    effort.watch(&planned(&settings)?, seeded, |(setting, _), report, world| {
        look(&Measured::of(setting, &report.flows[0]), &Trace::of(world, 0, setting.reading.mss()))
    })
}

fn planned(settings: &[Setting]) -> Result<Vec<(Setting, Run)>, WorldError> {
    settings.iter().map(|setting| Ok((setting.clone(), setting.plan()?))).collect()
}

fn seeded((_, plan): &(Setting, Run), seed: u64) -> Run {
    Run { seed, ..plan.clone() }
}
