//! Runs several senders at several error rates and compares their goodput.

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;
use serde::Serialize;

use super::readings::REPETITIONS;
use super::setting::{Extent, Radio, Site, Variant, plan};
use crate::chart::{Axis, Chart, Curve, Scale, Style};
use crate::judge::{across, gain_of_repetitions, trends};
use crate::{Effort, Found, Judged, Table, column, grid, mean};

/// One flow in one run.
#[derive(Clone, Copy, Serialize)]
struct Sample {
    #[serde(rename = "goodput, Mbit/s")]
    goodput: f64,
    #[serde(rename = "spurious retransmissions, share of data packets")]
    spurious: f64,
}

fn goodput(sample: &Sample) -> f64 {
    sample.goodput
}

/// The goodput of senders by error rate in percent.
pub(super) struct Comparison {
    extent: Extent,
    cells: grid::Grid<Variant, u32, Sample>,
}

/// Goodput of NewReno in ns-2.35 over the same path, in Mbit/s, by error rate in percent.
const NS2_GOODPUT: [(u32, f64); 7] =
    [(0, 1.923), (2, 0.474), (4, 0.308), (6, 0.236), (8, 0.193), (10, 0.161), (12, 0.135)];

impl Comparison {
    pub(super) fn run(
        effort: &Effort,
        radio: Radio,
        site: Site,
        senders: &[Variant],
        extent: &Extent,
    ) -> Result<Self, WorldError> {
        let plan = |sender, percent| plan(radio, site, percent, &[sender], extent);
        let cells = grid::Grid::run(senders, extent.error_rates, plan, |plans| {
            effort.sample(
                plans,
                |plan, seed| Run { seed, ..plan.clone() },
                |_, report| {
                    let flow = &report.flows[0];
                    let lost = report.dropped_by_queues + report.dropped_by_radio;
                    let spurious = flow.counters.resent().saturating_sub(lost) as f64;
                    let spurious = spurious / flow.data_segments as f64;
                    Sample { goodput: flow.goodput_bit_per_s / 1e6, spurious }
                },
            )
        })?;
        Ok(Self { extent: *extent, cells })
    }

    /// The error rates above zero for which `wanted` holds. An error rate of zero does not distinguish the senders.
    pub(super) fn rates(&self, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        self.extent.error_rates.iter().copied().filter(|percent| *percent > 0 && wanted(*percent)).collect()
    }

    /// Gain in goodput of `sender` over `reference`, from pairs of runs with the same seed.
    pub(super) fn gain(&self, sender: Variant, reference: Variant, percent: u32) -> Mean {
        self.cells.gain(sender, reference, percent, goodput)
    }

    /// The gain per seed, averaged over several error rates.
    pub(super) fn gains(&self, sender: Variant, reference: Variant, rates: &[u32]) -> Vec<f64> {
        across(&self.cells.only(|percent| rates.contains(&percent)).gains(sender, reference, goodput))
    }

    /// The gain, averaged over several error rates.
    pub(super) fn pooled(&self, sender: Variant, reference: Variant, rates: &[u32]) -> Mean {
        mean(&self.gains(sender, reference, rates))
    }

    /// Gain of `sender` over `reference`, averaged over `first_rates`, minus the gain averaged over `second_rates`.
    pub(super) fn contrast(
        &self,
        sender: Variant,
        reference: Variant,
        first_rates: &[u32],
        second_rates: &[u32],
    ) -> Mean {
        mean(&differences(
            &self.gains(sender, reference, first_rates),
            &self.gains(sender, reference, second_rates),
        ))
    }

    /// Judges the gain of `sender` over `reference` at every error rate above zero.
    pub(super) fn everywhere(
        &self,
        sender: Variant,
        reference: Variant,
        judge: impl Fn(&Mean) -> Judged,
    ) -> Judged {
        Judged::all(self.rates(|_| true).into_iter().map(|at| judge(&self.gain(sender, reference, at))))
    }

    /// The error rate above zero with the largest gain, and this gain. With a `sign` of −1, the smallest gain.
    fn extreme(&self, sender: Variant, reference: Variant, sign: f64) -> Option<(u32, Mean)> {
        let gains = self.rates(|_| true).into_iter().map(|at| (at, self.gain(sender, reference, at)));
        gains.max_by(|(_, one), (_, other)| (sign * one.mean).total_cmp(&(sign * other.mean)))
    }

    /// The deviation of a gain that the paper calculates from its repetitions with each sender.
    fn tolerance(&self, sender: Variant, reference: Variant, percent: u32) -> f64 {
        let [with, without] = [sender, reference].map(|sender| self.cells.at(sender, percent, goodput));
        self.extent.scaled_to_the_paper(gain_of_repetitions(&with, &without, REPETITIONS))
    }

    /// A claim "up to `paper`": the largest mean gain, and whether it meets the paper's number.
    pub(super) fn up_to(&self, sender: Variant, reference: Variant, paper: f64) -> Found {
        let Some((at, gain)) = self.extreme(sender, reference, 1.0) else {
            return (String::new(), Judged::Undecided);
        };
        let tolerance = self.tolerance(sender, reference, at);
        let text =
            format!("largest gain {} at {at} % (tolerance ± {:.0})", percent_shown(&gain), tolerance * 100.0);
        (text, Judged::effect(&gain, paper, tolerance))
    }

    /// A claim "degradation up to `paper`": the largest loss of `part` compared with `whole`, judged in the same way.
    pub(super) fn down_by_up_to(&self, part: Variant, whole: Variant, paper: f64) -> Found {
        let Some((at, gain)) = self.extreme(part, whole, -1.0) else {
            return (String::new(), Judged::Undecided);
        };
        let tolerance = self.tolerance(part, whole, at);
        let text = format!("{} at {at} % (tolerance ± {:.0})", percent_shown(&gain), tolerance * 100.0);
        (text, Judged::effect(&Mean { mean: -gain.mean, ..gain }, paper, tolerance))
    }

    /// Fall in goodput from the lowest error rate to the highest, by a straight line, as a share of the mean goodput.
    pub(super) fn fall(&self, sender: Variant) -> Mean {
        let falls = trends(&self.cells.of(sender, goodput));
        mean(&falls.into_iter().map(|trend| -trend).collect::<Vec<_>>())
    }

    /// Share of spurious retransmissions in all data packets, averaged over the error rates above zero.
    pub(super) fn spurious(&self, sender: Variant) -> Mean {
        mean(&across(&self.cells.only(|percent| percent > 0).of(sender, |sample| sample.spurious)))
    }

    pub(super) fn table(&self, title: &str) -> Table {
        let rate = column("error rate", |percent: &u32| format!("{percent} %"));
        let ours = self.cells.senders().iter();
        let ours = ours.map(|sender| self.cells.column(sender.name(), *sender, 3, goodput));
        Table::of(title, [rate].into_iter().chain(ours), self.extent.error_rates.iter().copied())
    }

    /// The table with an additional column for NewReno in ns-2.
    pub(super) fn table_with_ns2(&self, title: &str) -> Table {
        let mut table = self.table(title);
        table.columns.insert(1, "TCP-NR in ns-2".to_owned());
        for (percent, row) in self.extent.error_rates.iter().zip(&mut table.rows) {
            let in_ns2 = NS2_GOODPUT.iter().find(|(known, _)| known == percent);
            row.insert(1, in_ns2.map_or_else(|| "–".to_owned(), |(_, goodput)| format!("{goodput:.3}")));
        }
        table
    }

    /// A chart with the axes of the paper's Fig. 2 and one curve per sender.
    pub(super) fn chart(&self, title: &str, senders: &[Variant]) -> Chart {
        let line = |sender: &Variant| self.cells.line(*sender, sender.name(), f64::from, goodput);
        Chart {
            title: title.to_owned(),
            x: Axis::new("packet error rate, %", Scale::FromZero),
            y: Axis::new("connection goodput, Mbit/s", Scale::FromZero),
            curves: senders.iter().map(line).collect(),
        }
    }

    /// The chart with the goodput of TCP-NR in ns-2.
    pub(super) fn chart_with_ns2(&self, title: &str, senders: &[Variant]) -> Chart {
        let mut chart = self.chart(title, senders);
        let known = NS2_GOODPUT.iter().filter(|(percent, _)| self.extent.error_rates.contains(percent));
        let points = known.map(|(percent, goodput)| {
            (f64::from(*percent), Mean { mean: *goodput, half_width: None, samples: 1 })
        });
        let (name, points) = ("TCP-NR in ns-2".to_owned(), points.collect());
        chart.curves.push(Curve { name, style: Style::Line, points, paper: Vec::new() });
        chart
    }

    /// The gains at every error rate above zero, as text.
    pub(super) fn gains_shown(&self, sender: Variant, reference: Variant) -> String {
        let shown = |at| format!("{} at {at} %", percent_shown(&self.gain(sender, reference, at)));
        self.rates(|_| true).into_iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// A share in percent with its sign and interval, as text.
pub(super) fn percent_shown(share: &Mean) -> String {
    let sign = if share.mean < 0.0 { "−" } else { "+" };
    let width = share.half_width.map_or_else(String::new, |width| format!(" ± {:.0}", width * 100.0));
    format!("{sign}{:.0}{width} %", (share.mean * 100.0).abs())
}
