//! What triggers a retransmission: a timeout, or three duplicate ACKs (P0 §4.1, Figs. 10 and 12).

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, mean, shown};
use super::judging::{Measured, acked, across, signed, values};
use super::setting::{self, Channel};
use super::{Curve, grid, overall_rates};

/// The z at which the paper's two curves cross.
const CROSSING: f64 = 0.035;

pub(super) fn figure_10(effort: &Effort) -> Result<Finding, WorldError> {
    const TAHOE: [Curve; 1] = [Curve::new("Tahoe", "tahoe")];
    let rates = overall_rates();
    let outcomes = grid(effort, &TAHOE, &channels(&rates))?.remove(0);

    let mut table = Table::new(
        "Tahoe's timeouts in 100 s by how many duplicate ACKs had come, those that failed for want of packets, and its fast retransmits:",
        &["z", "0", "1", "2", "more", "all timeouts", "failed-dupack", "succeeded-dupack"],
    );
    for (z, samples) in rates.iter().zip(&outcomes) {
        let count = |value: &dyn Fn(&Measured) -> f64| shown(&mean(&values(samples, value)), 1);
        let by = (0..4).map(|dupacks| count(&|outcome: &Measured| outcome.by_dupacks[dupacks]));
        let sums = [
            count(&|outcome: &Measured| outcome.timeouts),
            count(&|outcome: &Measured| outcome.failed),
            count(&|outcome: &Measured| outcome.succeeded),
        ];
        table.row([format!("{:.1} %", 100.0 * z)].into_iter().chain(by).chain(sums));
    }

    let excess: Vec<Mean> =
        outcomes.iter().map(|samples| mean(&values(samples, |one| one.timeouts - one.succeeded))).collect();
    let crossing = crossing(&rates, &excess);
    let judged: Vec<_> = rates
        .iter()
        .zip(&excess)
        .filter(|(z, _)| (**z - CROSSING).abs() > 1e-9)
        .map(|(z, excess)| {
            let sign = if *z < CROSSING { -1.0 } else { 1.0 };
            Judged::above_zero(&Mean { mean: sign * excess.mean, ..*excess })
        })
        .collect();
    let at = |z: f64| rates.iter().position(|rate| (rate - z).abs() < 1e-9).unwrap_or(0);
    let failed = |z: f64| values(&outcomes[at(z)], |outcome| outcome.failed);
    let (before, after) = (failed(0.03), failed(0.1));
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "below z = 3.5 % losses are more likely recovered by three duplicate ACKs, above it timeouts dominate"
                .to_owned(),
            ours: match crossing {
                Some(z) => format!("timeouts overtake fast retransmits at z = {:.1} %", 100.0 * z),
                None => "the curves do not cross once".to_owned(),
            },
            judged: if crossing.is_some() { Judged::all(judged) } else { Judged::DoesNotHold },
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "meanwhile failed-dupack increases rapidly".to_owned(),
            ours: format!("{} at z = 3 %, {} at 10 %", shown(&mean(&before), 1), shown(&mean(&after), 1)),
            judged: Judged::above_zero(&mean(&differences(&after, &before))),
        },
    ];
    let remarks = vec!["ns-2 has its crossing at about z = 4.4 % in this reading.".to_owned()];
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices: setting::choices(), remarks })
}

fn channels(rates: &[f64]) -> Vec<Channel> {
    rates.iter().map(|z| Channel::overall(*z)).collect()
}

/// The z at which the curve rises through zero; `None` unless it does so exactly once.
fn crossing(rates: &[f64], excess: &[Mean]) -> Option<f64> {
    let mut found = rates.windows(2).zip(excess.windows(2)).filter_map(|(z, excess)| {
        let (low, high) = (excess[0].mean, excess[1].mean);
        (low < 0.0 && high >= 0.0).then(|| z[0] + (z[1] - z[0]) * low / (low - high))
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

pub(super) fn figure_12(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 3] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("sifest", "tahoe+sifest"),
        Curve::new("Limited Transmit", "tahoe+limited-transmit"),
    ];
    let rates = overall_rates();
    let outcomes = grid(effort, &CURVES, &channels(&rates))?;

    let columns =
        ["z", "Tahoe: timeouts", "fast", "sifest: timeouts", "fast", "Limited Transmit: timeouts", "fast"];
    let mut counts = Table::new("(a) Timeouts and fast retransmits in 100 s:", &columns);
    let mut shares = Table::new("(b) The same per 1000 acknowledged packets:", &columns);
    for (point, z) in rates.iter().enumerate() {
        let cells = |value: fn(&Measured, f64) -> f64| {
            let both = outcomes.iter().flat_map(|curve| {
                let samples = &curve[point];
                let timeouts = values(samples, |outcome| value(outcome, outcome.timeouts));
                let succeeded = values(samples, |outcome| value(outcome, outcome.succeeded));
                [shown(&mean(&timeouts), 1), shown(&mean(&succeeded), 1)]
            });
            [format!("{:.1} %", 100.0 * z)].into_iter().chain(both).collect::<Vec<_>>()
        };
        counts.row(cells(|_, count| count));
        shares.row(cells(Measured::per_thousand));
    }

    let many: Vec<usize> = (0..rates.len()).filter(|point| rates[*point] > 0.07 - 1e-9).collect();
    let of = |curve: usize, value: fn(&Measured) -> f64| -> Vec<Vec<f64>> {
        many.iter().map(|point| values(&outcomes[curve][*point], value)).collect()
    };
    let judged = |more: &[Vec<f64>], less: &[Vec<f64>]| -> Vec<Judged> {
        more.iter()
            .zip(less)
            .map(|(more, less)| Judged::above_zero(&mean(&differences(more, less))))
            .collect()
    };
    let total = |curve: usize, value: fn(&Measured) -> f64| mean(&across(&of(curve, value)));
    let timeouts: fn(&Measured) -> f64 = |outcome| outcome.timeouts;
    let per_thousand: fn(&Measured) -> f64 = |outcome| outcome.per_thousand(outcome.timeouts);
    let fast: fn(&Measured) -> f64 = |outcome| outcome.per_thousand(outcome.succeeded);
    let packets = |curve: usize| -> Vec<Vec<f64>> {
        many.iter().map(|point| acked(&outcomes[curve][*point])).collect()
    };
    let fewer = [judged(&of(0, timeouts), &of(1, timeouts)), judged(&packets(1), &packets(0))].concat();
    let left = |curve: usize| total(curve, per_thousand).mean / total(0, per_thousand).mean;
    let replaced = 100.0 * (1.0 - left(1));
    let both = [
        Judged::all(judged(&of(0, per_thousand), &of(1, per_thousand))),
        Judged::all(judged(&of(1, fast), &of(0, fast))),
    ];
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "sifest receives more packets, and has fewer timeouts all the same".to_owned(),
            ours: format!(
                "for z ≥ 7 % {} timeouts, Tahoe {}",
                shown(&total(1, timeouts), 1),
                shown(&total(0, timeouts), 1)
            ),
            judged: Judged::all(fewer),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "about a half of the timeouts per 1000 packets is replaced by fast retransmits".to_owned(),
            ours: format!(
                "for z ≥ 7 % {replaced:.0} % fewer timeouts, and fast retransmits go from {} to {}",
                shown(&total(0, fast), 1),
                shown(&total(1, fast), 1)
            ),
            judged: match Judged::all(both) {
                Judged::Holds if !(100.0 / 3.0..=200.0 / 3.0).contains(&replaced) => Judged::HoldsInPart,
                judged => judged,
            },
        },
    ];
    let over_limited = mean(&across(
        &of(2, per_thousand)
            .iter()
            .zip(&of(1, per_thousand))
            .map(|(l, s)| differences(l, s))
            .collect::<Vec<_>>(),
    ));
    let remarks = vec![format!(
        "Limited Transmit has {:.0} % fewer timeouts per 1000 packets than Tahoe for z ≥ 7 %; Limited Transmit − sifest is {} per 1000 packets.",
        100.0 * (1.0 - left(2)),
        signed(&over_limited, 1)
    )];
    let mut choices = setting::choices();
    choices.push("about a half means: between a third and two thirds.".to_owned());
    Ok(Finding { charts: Vec::new(), tables: vec![counts, shares], claims, choices, remarks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curves_cross_where_a_line_between_two_points_does() {
        let means = |values: &[f64]| -> Vec<Mean> { values.iter().map(|v| mean(&[*v])).collect() };
        let z = [0.03, 0.04, 0.05, 0.06];
        let found = crossing(&z, &means(&[-3.0, -1.0, 1.0, 2.0])).unwrap();
        assert!((found - 0.045).abs() < 1e-12, "{found}");
        assert_eq!(crossing(&z, &means(&[-3.0, 1.0, -1.0, 2.0])), None, "twice is not once");
        assert_eq!(crossing(&z, &means(&[1.0, 2.0, 3.0, 4.0])), None);
    }
}
