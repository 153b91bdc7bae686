//! §IV-B: fairness between twelve flows that share one radio link.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;

use super::grid::percent_shown;
use super::setting::{Extent, NR, NR_PLUS, PR, PR_PLUS, Plus, Radio, Scheme, Site, Variant, plan};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};

const FLOWS: usize = 12;

/// The paper's bound for good fairness (§IV-B): "all the test cases … beyond 0.9".
const GOOD: f64 = 0.9;

/// Jain's index and total goodput of twelve flows with the same sender.
pub(super) struct Shares {
    senders: Vec<Variant>,
    error_rates: &'static [u32],
    /// By error rate, then by sender, then by seed.
    jain: Vec<Vec<Vec<f64>>>,
    /// Total goodput in Mbit/s: by error rate, then by sender, then by seed.
    together: Vec<Vec<Vec<f64>>>,
}

impl Shares {
    pub(super) fn run(
        effort: &Effort,
        site: Site,
        senders: &[Variant],
        over: &Extent,
    ) -> Result<Self, WorldError> {
        let mut points = Vec::new();
        for percent in over.error_rates {
            for sender in senders {
                points.push(plan(Radio::Shared, site, *percent, &[*sender; FLOWS], over)?);
            }
        }
        let samples = effort.sample(
            &points,
            |point, seed| Run { seed, ..point.clone() },
            |_, report| {
                let together: f64 = report.flows.iter().map(|flow| flow.goodput_bit_per_s / 1e6).sum();
                (report.jain, together)
            },
        )?;
        let (jain, together): (Vec<_>, Vec<_>) =
            samples.into_iter().map(|point| point.into_iter().unzip::<f64, f64, Vec<_>, Vec<_>>()).unzip();
        let by_rate = |points: Vec<Vec<f64>>| points.chunks(senders.len()).map(<[_]>::to_vec).collect();
        Ok(Self {
            senders: senders.to_vec(),
            error_rates: over.error_rates,
            jain: by_rate(jain),
            together: by_rate(together),
        })
    }

    /// A sender's index, by error rate and then by seed. The error rate of zero is left out: without a tax, the rebate
    /// changes nothing.
    fn lossy(&self, sender: Variant) -> Vec<&[f64]> {
        let Some(index) = self.senders.iter().position(|known| *known == sender) else { return Vec::new() };
        let rows = self.error_rates.iter().zip(&self.jain);
        rows.filter(|(percent, _)| **percent > 0).map(|(_, row)| row[index].as_slice()).collect()
    }

    /// The lowest mean index of these senders over the error rates above zero.
    fn least(&self, senders: &[Variant]) -> String {
        let all = senders.iter().flat_map(|sender| self.lossy(*sender)).map(mean);
        let least = all.min_by(|one, other| one.mean.total_cmp(&other.mean));
        least.map_or_else(String::new, |mean| crate::shown(&mean, 3))
    }

    /// Whether the indices of these senders exceed 0.9 at every error rate above zero.
    fn are_good(&self, senders: &[Variant]) -> Judged {
        let all = senders.iter().flat_map(|sender| self.lossy(*sender));
        Judged::all(all.map(|index| Judged::between(&mean(index), GOOD, f64::INFINITY)))
    }

    /// Relative difference of the index of `plus` from the index of `plain`, by error rate above zero.
    fn gains(&self, plus: Variant, plain: Variant) -> Vec<Mean> {
        let pairs = self.lossy(plus).into_iter().zip(self.lossy(plain));
        pairs.map(|(plus, plain)| mean(&gains(plus, plain))).collect()
    }

    /// The largest of these differences, in either direction.
    fn furthest(&self, plus: Variant, plain: Variant) -> String {
        let gains = self.gains(plus, plain);
        let furthest = gains.iter().max_by(|one, other| one.mean.abs().total_cmp(&other.mean.abs()));
        furthest.map_or_else(String::new, percent_shown)
    }

    /// "Similar results" (§IV-B): an index above 0.9 and similar to the index of the sender without the rebate.
    pub(super) fn are_similar(&self, plus: Variant, plain: Variant) -> Judged {
        let similar = Judged::all(self.gains(plus, plain).iter().map(Judged::similar));
        Judged::all([self.are_good(&[plus]), similar])
    }

    fn table(&self, title: &str, values: &[Vec<Vec<f64>>], digits: usize) -> Table {
        let names: Vec<_> = ["error rate".to_owned()]
            .into_iter()
            .chain(self.senders.iter().map(|sender| sender.name()))
            .collect();
        let mut table = Table::new(title, &names.iter().map(String::as_str).collect::<Vec<_>>());
        for (percent, row) in self.error_rates.iter().zip(values) {
            let cells = row.iter().map(|samples| cell(samples, digits));
            table.row([format!("{percent} %")].into_iter().chain(cells));
        }
        table
    }

    fn chart(&self, title: &str, shown: &[Variant]) -> Chart {
        let curve = |sender: &Variant| {
            let index = self.senders.iter().position(|known| known == sender).unwrap_or_default();
            let rates = self.error_rates.iter().map(|percent| f64::from(*percent));
            Curve::line(sender.name(), rates.zip(self.jain.iter().map(|row| row[index].as_slice())))
        };
        Chart {
            title: title.to_owned(),
            x: Axis::new("packet error rate, %", Scale::FromZero),
            y: Axis::new("F(x)", Scale::Around),
            curves: shown.iter().map(curve).collect(),
        }
    }
}

/// Fig. 4.
pub fn jain_index(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let (on_newreno, plus_on_newreno) = (Scheme::PrOnNewReno.plain(), Scheme::PrOnNewReno.plus(Plus::Full));
    let senders = [NR, NR_PLUS, PR, PR_PLUS, on_newreno, plus_on_newreno];
    let shares = Shares::run(effort, Site::DUMBBELL, &senders, over)?;
    let claims = vec![
        Claim {
            paper:
                "“All the test cases can be observed to achieve F(x) beyond 0.9, thereby demonstrating good \
                    inter-flow fairness.” (Here: TCP-NR and TCP-NR+.)"
                    .to_owned(),
            place: "§IV-B, Fig. 4a".to_owned(),
            counts: Counts::Yes,
            ours: format!("lowest mean index: {}", shares.least(&[NR, NR_PLUS])),
            judged: shares.are_good(&[NR, NR_PLUS]),
        },
        Claim {
            paper: "“TCP-NR+ essentially attains similar inter-flow fairness as that of TCP-NR.”".to_owned(),
            place: "§IV-B, Fig. 4a".to_owned(),
            counts: Counts::Yes,
            ours: format!("largest difference from TCP-NR: {}", shares.furthest(NR_PLUS, NR)),
            judged: Judged::all(shares.gains(NR_PLUS, NR).iter().map(Judged::similar)),
        },
        Claim {
            paper: "“Similar results are reported for TCP-PR+.” (Here: an index above 0.9, and similar to \
                    TCP-PR.)"
                .to_owned(),
            place: "§IV-B".to_owned(),
            counts: Counts::Yes,
            ours: format!(
                "lowest mean index: {}; largest difference from TCP-PR: {}. TCP-PR on NewReno: {} and {} \
                 ({})",
                shares.least(&[PR_PLUS]),
                shares.furthest(PR_PLUS, PR),
                shares.least(&[plus_on_newreno]),
                shares.furthest(plus_on_newreno, on_newreno),
                shares.are_similar(plus_on_newreno, on_newreno).name()
            ),
            judged: shares.are_similar(PR_PLUS, PR),
        },
    ];
    Ok(Finding {
        charts: vec![shares.chart("Fig. 4(a)", &[NR, NR_PLUS]), shares.chart("Fig. 4(b)", &[PR, PR_PLUS])],
        tables: vec![
            shares.table(
                "Jain's fairness index of the goodput of twelve flows, equation (17)",
                &shares.jain,
                4,
            ),
            shares.table("Total goodput of the twelve flows, in Mbit/s", &shares.together, 3),
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

/// Six flows with the rebate compete with six flows without it. The paper has no such figure, but §IV-C concedes that
/// the rebate may disrupt "the coexisting flows not enhanced by the tax rebates". This figure measures how much.
pub fn beside(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let mixed: Vec<_> = (0..FLOWS).map(|flow| if flow % 2 == 0 { NR } else { NR_PLUS }).collect();
    let mut points = Vec::new();
    for percent in over.error_rates {
        points.push(plan(Radio::Shared, Site::DUMBBELL, *percent, &[NR; FLOWS], over)?);
        points.push(plan(Radio::Shared, Site::DUMBBELL, *percent, &mixed, over)?);
    }
    // Mean goodput in Mbit/s of the flows with even numbers and of the flows with odd numbers, and Jain's index.
    let samples = effort.sample(
        &points,
        |point, seed| Run { seed, ..point.clone() },
        |_, report| {
            let of = |half: usize| {
                let flows = report.flows.iter().skip(half).step_by(2);
                flows.map(|flow| flow.goodput_bit_per_s / 1e6).sum::<f64>() / (FLOWS / 2) as f64
            };
            (of(0), of(1), report.jain)
        },
    )?;
    let mut table = Table::new(
        "Goodput per flow in Mbit/s: twelve TCP-NR flows alone, and six TCP-NR flows mixed with six TCP-NR+ \
         flows",
        &[
            "error rate",
            "TCP-NR alone",
            "TCP-NR, mixed",
            "TCP-NR+, mixed",
            "change of TCP-NR",
            "Jain's index, mixed",
        ],
    );
    let mut changes = Vec::new();
    for (percent, row) in over.error_rates.iter().zip(samples.chunks(2)) {
        let [alone, beside] = row else { continue };
        let of = |samples: &[(f64, f64, f64)], value: fn(&(f64, f64, f64)) -> f64| {
            samples.iter().map(value).collect::<Vec<_>>()
        };
        let change = mean(&gains(&of(beside, |sample| sample.0), &of(alone, |sample| sample.0)));
        table.row([
            format!("{percent} %"),
            cell(&of(alone, |sample| sample.0), 4),
            cell(&of(beside, |sample| sample.0), 4),
            cell(&of(beside, |sample| sample.1), 4),
            percent_shown(&change),
            cell(&of(beside, |sample| sample.2), 3),
        ]);
        changes.push((*percent, change));
    }
    let (wired, wireless): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(percent, _)| *percent == 0);
    let claim = |paper: &str, place: &str, counts: Counts, points: &[(u32, Mean)]| {
        let shown = |(percent, change): &(u32, Mean)| format!("{} at {percent} %", percent_shown(change));
        Claim {
            paper: paper.to_owned(),
            place: place.to_owned(),
            counts,
            ours: format!(
                "goodput of a TCP-NR flow, mixed compared with alone: {}",
                points.iter().map(shown).collect::<Vec<_>>().join(", ")
            ),
            judged: Judged::all(points.iter().map(|(_, change)| Judged::similar(change))),
        }
    };
    Ok(Finding {
        claims: vec![
            claim(
                "“In traditional wired networks, the new family of TCP variants with the proposed \
                 enhancements automatically preserves the same inter-flow fairness and TCP friendliness.”",
                "Abstract",
                Counts::ByConstruction("the rebate is zero without a tax".to_owned()),
                &wired,
            ),
            claim(
                "A TCP-NR flow reaches a similar goodput against TCP-NR+ flows as against other TCP-NR \
                 flows.",
                "",
                Counts::Own(
                    "the paper runs identical senders only, and concedes disruptions (§IV-C)".to_owned(),
                ),
                &wireless,
            ),
        ],
        tables: vec![table],
        ..Finding::default()
    })
}
