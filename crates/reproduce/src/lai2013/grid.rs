//! Runs several senders at several error rates and compares their goodput.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;

use super::setting::{Extent, Radio, Site, Variant, plan};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::{across, one_run_gain, pooled_gains};
use crate::{Effort, Judged, Table, cell, mean};

pub(super) struct Grid {
    extent: Extent,
    senders: Vec<Variant>,
    /// In Mbit/s, by sender, then by error rate, then by seed.
    goodput: Vec<Vec<f64>>,
    /// Spurious retransmissions as a share of all data packets: by sender, then by error rate, then by seed.
    needless: Vec<Vec<f64>>,
}

/// Goodput of NewReno in ns-2.35 over the same path, in Mbit/s, by error rate in percent.
const ORACLE: [(u32, f64); 7] =
    [(0, 1.923), (2, 0.474), (4, 0.308), (6, 0.236), (8, 0.193), (10, 0.161), (12, 0.135)];

impl Grid {
    pub(super) fn run(
        effort: &Effort,
        radio: Radio,
        site: Site,
        senders: &[Variant],
        extent: &Extent,
    ) -> Result<Self, WorldError> {
        let mut points = Vec::new();
        for sender in senders {
            for percent in extent.error_rates {
                points.push(plan(radio, site, *percent, &[*sender], extent)?);
            }
        }
        let samples = effort.sample(
            &points,
            |point, seed| Run { seed, ..point.clone() },
            |_, report| {
                let flow = &report.flows[0];
                let lost = report.dropped_by_queues + report.dropped_by_radio;
                let needless = flow.counters.resent().saturating_sub(lost) as f64;
                (flow.goodput_bit_per_s / 1e6, needless / flow.data_segments as f64)
            },
        )?;
        let (goodput, needless) = samples.into_iter().map(|point| point.into_iter().unzip()).unzip();
        Ok(Self { extent: *extent, senders: senders.to_vec(), goodput, needless })
    }

    /// The values of one sender: by error rate, then by seed.
    fn row<'a>(&self, all: &'a [Vec<f64>], sender: Variant) -> &'a [Vec<f64>] {
        let rates = self.extent.error_rates.len();
        let index = self.senders.iter().position(|known| *known == sender);
        index.map_or(&[], |index| &all[index * rates..(index + 1) * rates])
    }

    pub(super) fn of(&self, sender: Variant, percent: u32) -> &[f64] {
        let column = self.extent.error_rates.iter().position(|known| *known == percent);
        column.and_then(|column| self.row(&self.goodput, sender).get(column)).map_or(&[], Vec::as_slice)
    }

    /// The error rates above zero for which `wanted` holds. An error rate of zero does not distinguish the senders.
    pub(super) fn rates(&self, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        self.extent.error_rates.iter().copied().filter(|percent| *percent > 0 && wanted(*percent)).collect()
    }

    fn at(&self, sender: Variant, rates: &[u32]) -> Vec<Vec<f64>> {
        rates.iter().map(|percent| self.of(sender, *percent).to_vec()).collect()
    }

    /// Gain in goodput of `sender` over `over`, from pairs of runs with the same seed.
    pub(super) fn gain(&self, sender: Variant, over: Variant, percent: u32) -> Mean {
        mean(&gains(self.of(sender, percent), self.of(over, percent)))
    }

    /// The gain, averaged over several error rates.
    pub(super) fn pooled(&self, sender: Variant, over: Variant, rates: &[u32]) -> Mean {
        mean(&pooled_gains(&self.at(sender, rates), &self.at(over, rates)))
    }

    /// Pooled gain of `sender` over `over` at the rates `these`, minus the gain at the rates `those`.
    pub(super) fn contrast(&self, sender: Variant, over: Variant, these: &[u32], those: &[u32]) -> Mean {
        let pooled = |rates: &[u32]| pooled_gains(&self.at(sender, rates), &self.at(over, rates));
        mean(&pooled(these).iter().zip(pooled(those)).map(|(one, other)| one - other).collect::<Vec<_>>())
    }

    /// Judges the gain of `sender` over `over` at every error rate above zero.
    pub(super) fn everywhere(
        &self,
        sender: Variant,
        over: Variant,
        judge: impl Fn(&Mean) -> Judged,
    ) -> Judged {
        Judged::all(self.rates(|_| true).into_iter().map(|at| judge(&self.gain(sender, over, at))))
    }

    /// A claim "up to `paper`": the largest mean gain, and whether it meets the paper's number.
    pub(super) fn up_to(&self, sender: Variant, over: Variant, paper: f64) -> (String, Judged) {
        let gains = self.rates(|_| true).into_iter().map(|at| (at, self.gain(sender, over, at)));
        let Some((at, gain)) = gains.max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean)) else {
            return (String::new(), Judged::Undecided);
        };
        let one_run = one_run_gain(self.of(sender, at), self.of(over, at));
        let one_run = self.extent.scaled_to_the_paper(one_run);
        let text =
            format!("largest gain {} at {at} % (one run: ± {:.0})", percent_shown(&gain), one_run * 100.0);
        (text, Judged::number(&gain, paper, one_run))
    }

    /// A claim "degradation up to `paper`": the largest loss of `part` compared with `whole`, judged in the same way.
    pub(super) fn down_by_up_to(&self, part: Variant, whole: Variant, paper: f64) -> (String, Judged) {
        let gains = self.rates(|_| true).into_iter().map(|at| (at, self.gain(part, whole, at)));
        let Some((at, gain)) = gains.min_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean)) else {
            return (String::new(), Judged::Undecided);
        };
        let one_run = one_run_gain(self.of(part, at), self.of(whole, at));
        let one_run = self.extent.scaled_to_the_paper(one_run);
        let text = format!("{} at {at} % (one run: ± {:.0})", percent_shown(&gain), one_run * 100.0);
        (text, Judged::number(&Mean { mean: -gain.mean, ..gain }, paper, one_run))
    }

    /// Fall in goodput from the lowest error rate to the highest, by a straight line, as a share of the mean goodput.
    pub(super) fn fall(&self, sender: Variant) -> Mean {
        let falls: Vec<_> = crate::judge::trends(self.row(&self.goodput, sender));
        mean(&falls.into_iter().map(|trend| -trend).collect::<Vec<_>>())
    }

    /// Share of spurious retransmissions in all data packets, averaged over the error rates above zero.
    pub(super) fn needless(&self, sender: Variant) -> Mean {
        let all = self.extent.error_rates.iter().zip(self.row(&self.needless, sender));
        let lossy: Vec<_> = all.filter(|(at, _)| **at > 0).map(|(_, samples)| samples.clone()).collect();
        mean(&across(&lossy))
    }

    pub(super) fn table(&self, title: &str) -> Table {
        let names: Vec<_> = ["error rate".to_owned()]
            .into_iter()
            .chain(self.senders.iter().map(|sender| sender.name()))
            .collect();
        let mut table = Table::new(title, &names.iter().map(String::as_str).collect::<Vec<_>>());
        for percent in self.extent.error_rates {
            let ours = self.senders.iter().map(|sender| cell(self.of(*sender, *percent), 3));
            table.row([format!("{percent} %")].into_iter().chain(ours));
        }
        table
    }

    /// The table with an additional column for NewReno in ns-2.
    pub(super) fn table_beside_ns2(&self, title: &str) -> Table {
        let mut table = self.table(title);
        table.columns.insert(1, "TCP-NR in ns-2".to_owned());
        for (percent, row) in self.extent.error_rates.iter().zip(&mut table.rows) {
            let oracle = ORACLE.iter().find(|(known, _)| known == percent);
            row.insert(1, oracle.map_or_else(|| "–".to_owned(), |(_, goodput)| format!("{goodput:.3}")));
        }
        table
    }

    /// A chart with the axes of the paper's Fig. 2 and one curve per sender.
    pub(super) fn chart(&self, title: &str, senders: &[Variant]) -> Chart {
        let points = |sender: &Variant| {
            let rates = self.extent.error_rates.iter().map(|percent| f64::from(*percent));
            let row = self.row(&self.goodput, *sender).iter().map(Vec::as_slice);
            Curve::line(sender.name(), rates.zip(row))
        };
        Chart {
            title: title.to_owned(),
            x: Axis::new("packet error rate, %", Scale::FromZero),
            y: Axis::new("connection goodput, Mbit/s", Scale::FromZero),
            curves: senders.iter().map(points).collect(),
        }
    }

    /// The gains at every error rate above zero, as text.
    pub(super) fn gains_shown(&self, sender: Variant, over: Variant) -> String {
        let shown = |at| format!("{} at {at} %", percent_shown(&self.gain(sender, over, at)));
        self.rates(|_| true).into_iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// A share in percent with its sign and interval, as text.
pub(super) fn percent_shown(share: &Mean) -> String {
    let sign = if share.mean < 0.0 { "−" } else { "+" };
    let width = share.half_width.map_or_else(String::new, |width| format!(" ± {:.0}", width * 100.0));
    format!("{sign}{:.0}{width} %", (share.mean * 100.0).abs())
}
