//! Triggers of retransmissions: timeouts and three duplicate ACKs (§4.1, Figs. 10 and 12).

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::judging::{Measured, claim, percent, points, turned, values};
use super::throughput::over_z;
use super::{Curve, between, channels, clusters, grid, only, overall_rates};
use crate::chart::{Axis, Chart, Curve as Line, Scale};
use crate::judge::{across, one_run_gain, pooled_gains, trends};
use crate::{Effort, Finding, Judged, Table, mean, shown};

/// "When the overall error rate is less than 3.5%".
const CROSSING: f64 = 0.035;

pub(super) fn figure_10(effort: &Effort) -> Result<Finding, WorldError> {
    const TAHOE: [Curve; 1] = [Curve::new("Tahoe", "tahoe")];
    let rates = overall_rates();
    let outcomes = grid(effort, &TAHOE, &channels(&rates))?.remove(0);

    let mut table = Table::new(
        "Tahoe's events in 100 s: timeouts by the number of duplicate ACKs before them; timeouts after every outstanding packet but the first had caused a duplicate ACK (failed-dupack), and how many of these had a single packet outstanding; and fast retransmissions (succeeded-dupack):",
        &["z", "0", "1", "2", "more", "all timeouts", "failed-dupack", "single packet", "succeeded-dupack"],
    );
    for (z, samples) in rates.iter().zip(&outcomes) {
        let count = |value: &dyn Fn(&Measured) -> f64| shown(&mean(&values(samples, value)), 1);
        let by = (0..4).map(|dupacks| count(&|one: &Measured| one.by_dupacks[dupacks]));
        let sums = [
            count(&|one: &Measured| one.timeouts),
            count(&|one: &Measured| one.failed),
            count(&|one: &Measured| one.failed_alone),
            count(&|one: &Measured| one.succeeded),
        ];
        table.row([format!("{:.1} %", 100.0 * z)].into_iter().chain(by).chain(sums));
    }

    let (timeouts, fast) = (points(&outcomes, |one| one.timeouts), points(&outcomes, |one| one.succeeded));
    let failed = points(&outcomes, |one| one.failed);
    let could_come = points(&outcomes, |one| one.failed - one.failed_alone);
    let (few, many) = (between(&rates, 0.0, CROSSING - 0.001), between(&rates, CROSSING + 0.001, 1.0));
    let pooled = |more: &[Vec<f64>], less: &[Vec<f64>], at: &[usize]| {
        mean(&pooled_gains(&only(more, at), &only(less, at)))
    };
    let (early, late) = (pooled(&fast, &timeouts, &few), pooled(&timeouts, &fast, &many));
    let grows = [mean(&trends(&only(&failed, &many))), mean(&trends(&only(&could_come, &many)))];
    let avoidable = mean(&pooled_gains(&only(&could_come, &many), &only(&timeouts, &many)));
    let crossing = crossing(&rates, &timeouts, &fast);
    let claims = vec![
        claim(
            "§4.1, Fig. 10",
            "“When the overall error rate is less than 3.5%, packet losses are more likely detected and recovered by *triple-dupack*.”",
            format!(
                "{} more fast retransmissions than timeouts, averaged over z below 3.5 %. The curves cross {crossing}",
                percent(&early)
            ),
            Judged::better(&early),
        ),
        claim(
            "§4.1, Fig. 10",
            "“When the error rate goes higher, timeout becomes the dominant event for retransmission”",
            format!(
                "{} more timeouts than fast retransmissions, averaged over z above 3.5 %",
                percent(&late)
            ),
            Judged::better(&late),
        ),
        claim(
            "§4.1, Fig. 10",
            "“Meanwhile, the number of *failed-dupack* increases rapidly.” (Here: a straight line fitted over z above 3.5 % rises by at least 20 % of the mean.)",
            format!(
                "It rises by {}; without timeouts of a single outstanding packet, by {}",
                percent(&grows[0]),
                percent(&grows[1])
            ),
            Judged::considerably(&grows[0]),
        ),
        claim(
            "§4.1, Fig. 10",
            "“This fact suggests that there is a large number of timeouts that can actually be avoided”",
            format!(
                "At z above 3.5 %, {} of all timeouts come with at least two packets outstanding, after all of them but the first have caused a duplicate ACK",
                percent(&add_one(&avoidable))
            ),
            Judged::considerably(&add_one(&avoidable)),
        ),
    ];
    let by = |dupacks: usize| points(&outcomes, move |one| one.by_dupacks[dupacks]);
    let curves = vec![
        over_z("0-dupack", &rates, &by(0)),
        over_z("1-dupack", &rates, &by(1)),
        over_z("2-dupack", &rates, &by(2)),
        over_z("failed-dupack", &rates, &failed),
        over_z("timeout", &rates, &timeouts),
        over_z("succeeded-dupack", &rates, &fast),
    ];
    let charts = vec![events_over_z("Fig. 10: TCP Retransmission Decomposition", "events in 100 s", curves)];
    let remarks = vec!["failed-dupack follows the paper's definition and includes timeouts of a single outstanding packet (x = 0). No duplicate ACK can reveal the loss of such a packet.".to_owned()];
    let clusters = clusters::triggers(effort)?;
    Ok(Finding { tables: vec![table, clusters], charts, claims, remarks, ..Finding::default() })
}

/// A ratio from a gain.
fn add_one(gain: &Mean) -> Mean {
    Mean { mean: 1.0 + gain.mean, ..*gain }
}

fn events_over_z(title: &str, y: &str, curves: Vec<Line>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: Axis::new("overall packet loss rate z", Scale::FromZero),
        y: Axis::new(y, Scale::FromZero),
        curves,
    }
}

/// Where the mean of the rising curve exceeds the mean of the falling one, as part of a sentence.
fn crossing(rates: &[f64], rising: &[Vec<f64>], falling: &[Vec<f64>]) -> String {
    let above: Vec<f64> = rising.iter().zip(falling).map(|(r, f)| mean(r).mean - mean(f).mean).collect();
    let at = rates.windows(2).zip(above.windows(2)).find_map(|(z, above)| {
        (above[0] < 0.0 && above[1] >= 0.0).then(|| z[0] + (z[1] - z[0]) * above[0] / (above[0] - above[1]))
    });
    at.map_or_else(|| "nowhere".to_owned(), |z| format!("at z = {:.1} %", 100.0 * z))
}

pub(super) fn figure_12(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 3] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("sifest", "tahoe+sifest"),
        Curve::new("Limited Transmit", "tahoe+limited-transmit"),
    ];
    let rates = overall_rates();
    let outcomes = grid(effort, &CURVES, &channels(&rates))?;

    let columns = [
        "z",
        "Tahoe: timeouts",
        "Tahoe: fast",
        "sifest: timeouts",
        "sifest: fast",
        "Limited Transmit: timeouts",
        "Limited Transmit: fast",
    ];
    let mut counts = Table::new(
        "(a) Timeouts and fast retransmissions (fast) in 100 s, Tahoe alone, with sifest and with Limited Transmit:",
        &columns,
    );
    let mut shares =
        Table::new("(b) Timeouts and fast retransmissions (fast) per 1000 acknowledged packets:", &columns);
    for (point, z) in rates.iter().enumerate() {
        let cells = |value: fn(&Measured, f64) -> f64| {
            let both = outcomes.iter().flat_map(|curve| {
                let samples = &curve[point];
                let timeouts = values(samples, |one| value(one, one.timeouts));
                let succeeded = values(samples, |one| value(one, one.succeeded));
                [shown(&mean(&timeouts), 1), shown(&mean(&succeeded), 1)]
            });
            [format!("{:.1} %", 100.0 * z)].into_iter().chain(both).collect::<Vec<_>>()
        };
        counts.row(cells(|_, count| count));
        shares.row(cells(Measured::per_thousand));
    }

    let of = |curve: usize, value: fn(&Measured) -> f64| points(&outcomes[curve], value);
    let timeouts: fn(&Measured) -> f64 = |one| one.per_thousand(one.timeouts);
    let fast: fn(&Measured) -> f64 = |one| one.per_thousand(one.succeeded);
    let pooled = |more: &[Vec<f64>], less: &[Vec<f64>]| mean(&pooled_gains(more, less));
    let packets = pooled(&of(1, |one| one.acked), &of(0, |one| one.acked));
    let fewer = turned(&pooled(&of(1, |one| one.timeouts), &of(0, |one| one.timeouts)));
    let replaced = turned(&pooled(&of(1, timeouts), &of(0, timeouts)));
    let more_fast = pooled(&of(1, fast), &of(0, fast));
    // The paper's half is read off two curves of 25 single runs each.
    let spread = one_run_gain(&across(&of(1, timeouts)), &across(&of(0, timeouts)));
    let claims = vec![
        claim(
            "§4.3.1, Fig. 12a",
            "“Even when the *sifest*-enhanced Tahoe receives more packets, it has fewer timeouts.”",
            format!(
                "{} more packets and {} fewer timeouts, averaged over z",
                percent(&packets),
                percent(&fewer)
            ),
            Judged::all([Judged::better(&packets), Judged::better(&fewer)]),
        ),
        claim(
            "§4.3.1, Fig. 12b",
            "“It is obvious that about an half of the timeouts have been replaced by the more efficient Fast Retransmit with the *sifest* algorithm.”",
            format!(
                "Per 1000 packets, averaged over z: {} fewer timeouts and {} more fast retransmissions (± {:.1} % for the timeouts with one run per z)",
                percent(&replaced),
                percent(&more_fast),
                100.0 * spread
            ),
            Judged::all([Judged::number(&replaced, 0.5, spread), Judged::better(&more_fast)]),
        ),
    ];
    let limited = turned(&pooled(&of(2, timeouts), &of(0, timeouts)));
    let remarks = vec![format!(
        "Tahoe with Limited Transmit has {} fewer timeouts per 1000 packets than plain Tahoe, at a receiver window of 16 segments.",
        percent(&limited)
    )];
    let lines = |value: [fn(&Measured) -> f64; 2]| {
        let names =
            [["timeout, Tahoe", "succeeded-dupack, Tahoe"], ["timeout, sifest", "succeeded-dupack, sifest"]];
        let lines = names.into_iter().enumerate().flat_map(|(curve, names)| {
            let curves = names.into_iter().zip(value);
            curves.map(|(name, value)| over_z(name, &rates, &of(curve, value))).collect::<Vec<_>>()
        });
        lines.collect::<Vec<_>>()
    };
    let charts = vec![
        events_over_z(
            "Fig. 12(a): Retransmission Decomposition Comparison",
            "events in 100 s",
            lines([|one| one.timeouts, |one| one.succeeded]),
        ),
        events_over_z(
            "Fig. 12(b): Retransmission Decomposition Comparison, normalized",
            "events per 1000 acknowledged packets",
            lines([timeouts, fast]),
        ),
    ];
    let clusters = clusters::replaced(effort)?;
    Ok(Finding { tables: vec![counts, shares, clusters], charts, claims, remarks, ..Finding::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_crossing_is_interpolated_linearly() {
        let of = |values: [f64; 4]| values.map(|value| vec![value]).to_vec();
        let z = [0.03, 0.04, 0.05, 0.06];
        let falling = of([3.0, 3.0, 3.0, 3.0]);
        assert_eq!(crossing(&z, &of([0.0, 2.0, 4.0, 5.0]), &falling), "at z = 4.5 %");
        assert_eq!(crossing(&z, &of([4.0, 5.0, 6.0, 7.0]), &falling), "nowhere");
    }
}
