//! The senders of several figures, and the runs of senders over channels.

use airtcp_sim::run::Run;
use airtcp_sim::world::{Watch, WorldError};
use serde::Serialize;

use super::judging::Measured;
use super::setting::{Acks, Channel, Setting};
use super::trace::Trace;
use crate::chart::{self, Axis, Chart, Scale};
use crate::finding::Column;
use crate::grid::Grid;
use crate::{Effort, column};

/// z in Figs. 5 and 10 to 12: "from 0.01 to 0.13 in a step of 0.005" (§3.2.1).
pub(super) fn overall_rates() -> Vec<f64> {
    (0..25).map(|step| 0.01 + 0.005 * f64::from(step)).collect()
}

/// Whether z is between `from` and `to`, including both.
pub(super) fn within(from: f64, to: f64) -> impl Fn(f64) -> bool {
    move |z| (from - 1e-9..=to + 1e-9).contains(&z)
}

/// A sender and its name in the paper's legends.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) recipe: &'static str,
    acks: Acks,
}

impl Curve {
    pub(super) const fn new(name: &'static str, recipe: &'static str) -> Self {
        Self { name, recipe, acks: Acks::Delayed }
    }

    /// ND: without delayed ACKs.
    pub(super) const fn undelayed(name: &'static str, recipe: &'static str) -> Self {
        Self { name, recipe, acks: Acks::Each }
    }

    pub(super) fn over(&self, channel: Channel) -> Setting {
        Setting { acks: self.acks, ..Setting::new(self.recipe, channel) }
    }
}

pub(super) const TAHOE: Curve = Curve::new("Tahoe", "tahoe");
pub(super) const RENO: Curve = Curve::new("Reno", "reno");
pub(super) const NEWRENO: Curve = Curve::new("NewReno", "newreno");
pub(super) const SACK: Curve = Curve::new("SACK", "sack");
pub(super) const VARIANTS: [Curve; 4] = [TAHOE, RENO, NEWRENO, SACK];
/// Tahoe with additions.
pub(super) const SIFEST: Curve = Curve::new("sifest", "tahoe+sifest");
pub(super) const LIW: Curve = Curve::new("sifest, LIW", "tahoe+sifest+liw");
pub(super) const LIMITED: Curve = Curve::new("Limited Transmit", "tahoe+limited-transmit");

/// Runs each sender over the channel of each point.
pub(super) fn run<X: Copy + PartialEq>(
    effort: &Effort,
    senders: &[Curve],
    points: &[X],
    channel: impl Fn(X) -> Channel,
) -> Result<Grid<Curve, X, Measured>, WorldError> {
    let plan = |sender: Curve, point| Ok(sender.over(channel(point)));
    Grid::run(senders, points, plan, |settings| measured(effort, settings))
}

/// The first column of a table by z.
pub(super) fn z_column<'a>() -> Column<'a, f64> {
    column("z", |z: &f64| format!("{:.1} %", 100.0 * z))
}

/// The first column of a table by α = β.
pub(super) fn change_column<'a>() -> Column<'a, f64> {
    column("α = β", f64::to_string)
}

/// A chart over z.
pub(super) fn over_z(title: &str, y: &str, curves: Vec<chart::Curve>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: Axis::new("overall packet loss rate z", Scale::FromZero),
        y: Axis::new(y, Scale::FromZero),
        curves,
    }
}

/// Measures each setting with all seeds. Returns the measurements by setting, then by seed.
pub(super) fn measured(effort: &Effort, settings: &[Setting]) -> Result<Vec<Vec<Measured>>, WorldError> {
    let plans = planned(settings)?;
    effort.sample(&plans, seeded, |(setting, _), report| Measured::of(setting, &report.flows[0]))
}

/// Like [`measured`], for measurements that need the events of each packet.
pub(super) fn traced<T: Clone + Send + Serialize + 'static>(
    effort: &Effort,
    settings: &[Setting],
    measure: impl Fn(&Measured, &Trace) -> T + Sync,
) -> Result<Vec<Vec<T>>, WorldError> {
    let settings: Vec<_> =
        settings.iter().map(|setting| Setting { watch: Watch::Packets, ..setting.clone() }).collect();
    effort.watch(&planned(&settings)?, seeded, |(setting, _), report, world| {
        measure(&Measured::of(setting, &report.flows[0]), &Trace::of(world, 0, setting.interpretation.mss()))
    })
}

pub(super) fn planned(settings: &[Setting]) -> Result<Vec<(Setting, Run)>, WorldError> {
    settings.iter().map(|setting| Ok((setting.clone(), setting.plan()?))).collect()
}

pub(super) fn seeded((_, plan): &(Setting, Run), seed: u64) -> Run {
    Run { seed, ..plan.clone() }
}
