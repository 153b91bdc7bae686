//! §IV-B: fairness between twelve flows that share one radio link.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{FlowReport, Report, Run};
use airtcp_sim::world::WorldError;
use serde::Serialize;

use super::comparison::percent_shown;
use super::setting::{Extent, NR, NR_PLUS, PR, PR_PLUS, Plus, Radio, Scheme, Site, Variant, plan};
use crate::chart::{Axis, Chart, Scale};
use crate::grid::{Grid, Series};
use crate::{At, Counts, Effort, Finding, Judged, Table, claim, column, mean};

const FLOWS: usize = 12;

/// The paper's bound for good fairness (§IV-B): "all the test cases … beyond 0.9".
const GOOD: f64 = 0.9;

/// Twelve flows with the same sender in one run.
#[derive(Clone, Copy, Serialize)]
struct Twelve {
    #[serde(rename = "Jain's index")]
    jain: f64,
    #[serde(rename = "total goodput, Mbit/s")]
    total: f64,
}

fn jain(twelve: &Twelve) -> f64 {
    twelve.jain
}

/// The runs of twelve flows by sender and error rate in percent.
pub(super) struct Shares(Grid<Variant, u32, Twelve>);

fn mbit(flow: &FlowReport) -> f64 {
    flow.goodput_bit_per_s / 1e6
}

impl Shares {
    pub(super) fn run(
        effort: &Effort,
        site: Site,
        senders: &[Variant],
        extent: &Extent,
    ) -> Result<Self, WorldError> {
        let plan = |sender, percent| plan(Radio::Shared, site, percent, &[sender; FLOWS], extent);
        let grid = Grid::run(senders, extent.error_rates, plan, |plans| {
            effort.sample(
                plans,
                |plan, seed| Run { seed, ..plan.clone() },
                |_, report| Twelve { jain: report.jain, total: report.flows.iter().map(mbit).sum() },
            )
        })?;
        Ok(Self(grid))
    }

    /// A sender's index, by error rate and then by seed. The error rate of zero is left out: without a tax, the rebate
    /// changes nothing.
    fn lossy(&self, sender: Variant) -> Series {
        self.0.only(|percent| percent > 0).of(sender, jain)
    }

    /// The lowest mean index of these senders over the error rates above zero.
    fn least(&self, senders: &[Variant]) -> String {
        let all = senders.iter().flat_map(|sender| self.lossy(*sender)).map(|index| mean(&index));
        let least = all.min_by(|one, other| one.mean.total_cmp(&other.mean));
        least.map_or_else(String::new, |mean| crate::shown(&mean, 3))
    }

    /// Whether the indices of these senders exceed 0.9 at every error rate above zero.
    fn are_good(&self, senders: &[Variant]) -> Judged {
        let all = senders.iter().flat_map(|sender| self.lossy(*sender));
        Judged::all(all.map(|index| Judged::between(&mean(&index), GOOD, f64::INFINITY)))
    }

    /// Relative difference of the index of `plus` from the index of `plain`, by error rate above zero.
    fn gains(&self, plus: Variant, plain: Variant) -> Vec<Mean> {
        let gains = self.0.only(|percent| percent > 0).gains(plus, plain, jain);
        gains.iter().map(|gains| mean(gains)).collect()
    }

    /// The largest difference that [`Self::gains`] returns, in either direction.
    fn largest_difference(&self, plus: Variant, plain: Variant) -> String {
        let gains = self.gains(plus, plain);
        let largest = gains.iter().max_by(|one, other| one.mean.abs().total_cmp(&other.mean.abs()));
        largest.map_or_else(String::new, percent_shown)
    }

    /// "Similar results" (§IV-B): an index above 0.9 and similar to the index of the sender without the rebate.
    pub(super) fn are_similar(&self, plus: Variant, plain: Variant) -> Judged {
        let similar = Judged::all(self.gains(plus, plain).iter().map(Judged::similar));
        Judged::all([self.are_good(&[plus]), similar])
    }

    fn table(&self, title: &str, value: fn(&Twelve) -> f64, digits: usize) -> Table {
        let rate = column("error rate", |percent: &u32| format!("{percent} %"));
        let ours = self.0.senders().iter();
        let ours = ours.map(|sender| self.0.column(sender.name(), *sender, digits, value));
        Table::of(title, [rate].into_iter().chain(ours), self.0.points().iter().copied())
    }

    fn chart(&self, title: &str, shown: &[Variant]) -> Chart {
        let line = |sender: &Variant| self.0.line(*sender, sender.name(), f64::from, jain);
        Chart {
            title: title.to_owned(),
            x: Axis::new("packet error rate, %", Scale::FromZero),
            y: Axis::new("F(x)", Scale::ValueRange),
            curves: shown.iter().map(line).collect(),
        }
    }
}

/// Fig. 4: Jain's index of twelve flows with the same sender.
pub fn jain_index(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let (on_newreno, plus_on_newreno) = (Scheme::PrOnNewReno.plain(), Scheme::PrOnNewReno.plus(Plus::Full));
    let senders = [NR, NR_PLUS, PR, PR_PLUS, on_newreno, plus_on_newreno];
    let shares = Shares::run(effort, Site::DUMBBELL, &senders, extent)?;
    let claims = vec![
        claim(
            At("§IV-B, Fig. 4a"),
            "“All the test cases can be observed to achieve F(x) beyond 0.9, thereby demonstrating good \
             inter-flow fairness.” (Here: TCP-NR and TCP-NR+.)",
            format!("lowest mean index: {}", shares.least(&[NR, NR_PLUS])),
            shares.are_good(&[NR, NR_PLUS]),
        ),
        claim(
            At("§IV-B, Fig. 4a"),
            "“TCP-NR+ essentially attains similar inter-flow fairness as that of TCP-NR.”",
            format!("largest difference from TCP-NR: {}", shares.largest_difference(NR_PLUS, NR)),
            Judged::all(shares.gains(NR_PLUS, NR).iter().map(Judged::similar)),
        ),
        claim(
            At("§IV-B"),
            "“Similar results are reported for TCP-PR+.” (Here: an index above 0.9, and similar to TCP-PR.)",
            format!(
                "lowest mean index: {}; largest difference from TCP-PR: {}. TCP-PR on NewReno: {} and {} \
                 ({})",
                shares.least(&[PR_PLUS]),
                shares.largest_difference(PR_PLUS, PR),
                shares.least(&[plus_on_newreno]),
                shares.largest_difference(plus_on_newreno, on_newreno),
                shares.are_similar(plus_on_newreno, on_newreno).name()
            ),
            shares.are_similar(PR_PLUS, PR),
        ),
    ];
    Ok(Finding {
        charts: vec![shares.chart("Fig. 4(a)", &[NR, NR_PLUS]), shares.chart("Fig. 4(b)", &[PR, PR_PLUS])],
        tables: vec![
            shares.table("Jain's fairness index of the goodput of twelve flows, equation (17)", jain, 4),
            shares.table("Total goodput of the twelve flows, in Mbit/s", |twelve| twelve.total, 3),
        ],
        claims,
        remarks: vec![
            "In ns-2, twelve NewReno flows on such a dumbbell reach a total of 1.923 Mbit/s without errors \
             and 1.602 Mbit/s with 12 % errors, and Jain's index never falls below 0.993. The paper's bound \
             of 0.9 is therefore a loose one. The verdicts use the error rates above zero."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

/// One run of twelve flows. The flows with odd numbers can have another sender.
#[derive(Clone, Copy, Serialize)]
struct Halves {
    #[serde(rename = "mean goodput of flows 0, 2, 4, …, Mbit/s")]
    even: f64,
    #[serde(rename = "mean goodput of flows 1, 3, 5, …, Mbit/s")]
    odd: f64,
    #[serde(rename = "Jain's index")]
    jain: f64,
}

impl Halves {
    fn of(report: &Report) -> Self {
        let half = |first: usize| {
            report.flows.iter().skip(first).step_by(2).map(mbit).sum::<f64>() / (FLOWS / 2) as f64
        };
        Self { even: half(0), odd: half(1), jain: report.jain }
    }
}

/// Six flows with the rebate compete with six flows without the rebate. The paper has no such figure, but
/// §IV-C concedes that the rebate may disrupt "the coexisting flows not enhanced by the tax rebates". This
/// figure measures how much.
pub fn mixed_flows(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let mixed: [Variant; FLOWS] = std::array::from_fn(|flow| if flow % 2 == 0 { NR } else { NR_PLUS });
    let plan = |is_mixed, percent| {
        plan(Radio::Shared, Site::DUMBBELL, percent, if is_mixed { &mixed } else { &[NR; FLOWS] }, extent)
    };
    let grid = Grid::run(&[false, true], extent.error_rates, plan, |plans| {
        effort.sample(plans, |plan, seed| Run { seed, ..plan.clone() }, |_, report| Halves::of(report))
    })?;
    let change = |percent: &u32| grid.gain(true, false, *percent, |halves| halves.even);
    let table = Table::of(
        "Goodput per flow in Mbit/s: twelve TCP-NR flows alone, and six TCP-NR flows mixed with six TCP-NR+ \
         flows",
        [
            column("error rate", |percent: &u32| format!("{percent} %")),
            grid.column("TCP-NR alone", false, 4, |halves| halves.even),
            grid.column("TCP-NR, mixed", true, 4, |halves| halves.even),
            grid.column("TCP-NR+, mixed", true, 4, |halves| halves.odd),
            column("change of TCP-NR", |percent: &u32| percent_shown(&change(percent))),
            grid.column("Jain's index, mixed", true, 3, |halves| halves.jain),
        ],
        extent.error_rates.iter().copied(),
    );
    let changes = extent.error_rates.iter().map(|percent| (*percent, change(percent)));
    let (wired, wireless): (Vec<_>, Vec<_>) = changes.partition(|(percent, _)| *percent == 0);
    let similar = |at: At<'_>, sentence: &str, points: &[(u32, Mean)]| {
        let shown = |(percent, change): &(u32, Mean)| format!("{} at {percent} %", percent_shown(change));
        let points_shown: Vec<_> = points.iter().map(shown).collect();
        claim(
            at,
            sentence,
            format!("goodput of a TCP-NR flow, mixed compared with alone: {}", points_shown.join(", ")),
            Judged::all(points.iter().map(|(_, change)| Judged::similar(change))),
        )
    };
    Ok(Finding {
        claims: vec![
            similar(
                At("Abstract"),
                "“In traditional wired networks, the new family of TCP variants with the proposed \
                 enhancements automatically preserves the same inter-flow fairness and TCP friendliness.”",
                &wired,
            )
            .not_counted(Counts::ByConstruction("the rebate is zero without a tax".to_owned())),
            similar(
                At(""),
                "A TCP-NR flow reaches a similar goodput against TCP-NR+ flows as against other TCP-NR \
                 flows.",
                &wireless,
            )
            .not_counted(Counts::Own(
                "the paper runs identical senders only, and concedes disruptions (§IV-C)".to_owned(),
            )),
        ],
        tables: vec![table],
        ..Finding::default()
    })
}
