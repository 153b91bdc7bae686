//! Goodput of several senders at several error rates, and how it compares.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;

use super::super::{Effort, Judged, Table, cell};
use super::setting::{Extent, Radio, Variant, plan};

pub(super) struct Grid {
    error_rates: &'static [u32],
    senders: Vec<Variant>,
    /// In Mbit/s, by sender, then by error rate, then by seed.
    samples: Vec<Vec<f64>>,
}

/// ns-2.35 over the same path: Mbit/s of NewReno and of Sack1.
const ORACLE: [(u32, f64, f64); 7] = [
    (0, 1.923, 1.923),
    (2, 0.474, 0.466),
    (4, 0.308, 0.299),
    (6, 0.236, 0.227),
    (8, 0.193, 0.183),
    (10, 0.161, 0.154),
    (12, 0.135, 0.129),
];

impl Grid {
    pub(super) fn run(
        effort: &Effort,
        radio: Radio,
        senders: &[Variant],
        extent: &Extent,
    ) -> Result<Self, WorldError> {
        let mut points = Vec::new();
        for sender in senders {
            for percent in extent.error_rates {
                points.push(plan(radio, *percent, &[*sender], extent)?);
            }
        }
        let samples = effort.sample(
            &points,
            |point, seed| Run { seed, ..point.clone() },
            |_, report| report.flows[0].goodput_bit_per_s / 1e6,
        )?;
        Ok(Self { error_rates: extent.error_rates, senders: senders.to_vec(), samples })
    }

    pub(super) fn of(&self, sender: Variant, percent: u32) -> &[f64] {
        let row = self.senders.iter().position(|known| *known == sender);
        let column = self.error_rates.iter().position(|known| *known == percent);
        match (row, column) {
            (Some(row), Some(column)) => &self.samples[row * self.error_rates.len() + column],
            _ => &[],
        }
    }

    /// The error rates above zero.
    pub(super) fn lossy(&self) -> Vec<u32> {
        self.error_rates.iter().copied().filter(|percent| *percent > 0).collect()
    }

    /// By what share of `over`'s goodput `sender` is above it, from pairs of the same seed.
    pub(super) fn gain(&self, sender: Variant, over: Variant, percent: u32) -> Option<Mean> {
        Mean::of(&gains(self.of(sender, percent), self.of(over, percent)))
    }

    /// Whether one is above the other at all of these error rates; in part, if it is below at some of them.
    pub(super) fn is_above(&self, sender: Variant, over: Variant, rates: &[u32]) -> Judged {
        let judged = rates.iter().filter_map(|percent| self.gain(sender, over, *percent));
        Judged::all(judged.map(|gain| Judged::above_zero(&gain)))
    }

    /// "Up to so much": the largest gain, and its error rate.
    pub(super) fn largest_gain(&self, sender: Variant, over: Variant) -> Option<(u32, Mean)> {
        let gains = self.lossy().into_iter().filter_map(|at| Some((at, self.gain(sender, over, at)?)));
        gains.max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean))
    }

    pub(super) fn table(&self, title: &str) -> Table {
        let names = self.senders.iter().map(|sender| sender.name());
        let columns: Vec<_> =
            ["error rate", "NewReno in ns-2", "Sack1 in ns-2"].into_iter().chain(names).collect();
        let mut table = Table::new(title, &columns);
        for percent in self.error_rates {
            let oracle = ORACLE.iter().find(|(known, ..)| known == percent);
            let known = oracle.map(|(_, newreno, sack)| [newreno, sack].map(|rate| format!("{rate:.3}")));
            let known = known.unwrap_or_else(|| ["–", "–"].map(str::to_owned));
            let ours = self.senders.iter().map(|sender| cell(self.of(*sender, *percent), 3));
            table.row([format!("{percent} %")].into_iter().chain(known).chain(ours));
        }
        table
    }

    /// The same without ns-2's columns.
    pub(super) fn table_alone(&self, title: &str) -> Table {
        let mut table = self.table(title);
        table.columns.drain(1..3);
        for row in &mut table.rows {
            row.drain(1..3);
        }
        table
    }

    /// The gains at every error rate, for a sentence.
    pub(super) fn gains_shown(&self, sender: Variant, over: Variant) -> String {
        let gains = self.lossy().into_iter().filter_map(|at| Some((at, self.gain(sender, over, at)?)));
        gains.map(|(at, gain)| format!("{} at {at} %", percent_shown(&gain))).collect::<Vec<_>>().join(", ")
    }
}

/// A share in per cent, for a sentence.
pub(super) fn percent_shown(share: &Mean) -> String {
    let sign = if share.mean < 0.0 { "−" } else { "+" };
    let width = share.half_width.map_or_else(String::new, |width| format!(" ± {:.0}", width * 100.0));
    format!("{sign}{:.0}{width} %", (share.mean * 100.0).abs())
}
