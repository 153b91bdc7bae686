//! Triggers of retransmissions: timeouts and three duplicate ACKs (§4.1, Figs. 10 and 12).

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::clusters;
use super::judging::{Measured, negated, packets, percent};
use super::readings::REPETITIONS;
use super::senders::{Curve, LIMITED, SIFEST, TAHOE, over_z, overall_rates, run, within, z_column};
use super::setting::Channel;
use crate::grid::Grid;
use crate::judge::{across, gain_of_repetitions, pooled_gains, trends};
use crate::{At, Claim, Effort, Finding, Judged, Table, claim, mean};

/// "When the overall error rate is less than 3.5%".
const CROSSING: f64 = 0.035;

type Cells = Grid<Curve, f64, Measured>;

fn timeouts(one: &Measured) -> f64 {
    one.timeouts
}

fn fast(one: &Measured) -> f64 {
    one.succeeded
}

/// Timeouts that duplicate ACKs of the outstanding packets could have replaced.
fn avoidable(one: &Measured) -> f64 {
    one.failed - one.failed_alone
}

pub(super) fn figure_10(effort: &Effort) -> Result<Finding, WorldError> {
    let rates = overall_rates();
    let cells = run(effort, &[TAHOE], &rates, Channel::overall)?;
    let count = |heading: &str, value: fn(&Measured) -> f64| cells.column(heading, TAHOE, 1, value);
    let by_dupacks: [fn(&Measured) -> f64; 4] =
        [|one| one.by_dupacks[0], |one| one.by_dupacks[1], |one| one.by_dupacks[2], |one| one.by_dupacks[3]];
    let table = Table::of(
        "Tahoe's events in 100 s: timeouts by the number of duplicate ACKs before them; timeouts after every \
         outstanding packet but the first had caused a duplicate ACK (failed-dupack), and how many of these \
         had a single packet outstanding; and fast retransmissions (succeeded-dupack):",
        [
            z_column(),
            count("0", by_dupacks[0]),
            count("1", by_dupacks[1]),
            count("2", by_dupacks[2]),
            count("more", by_dupacks[3]),
            count("all timeouts", timeouts),
            count("failed-dupack", |one| one.failed),
            count("single packet", |one| one.failed_alone),
            count("succeeded-dupack", fast),
        ],
        rates,
    );
    let line = |name: &str, value: fn(&Measured) -> f64| cells.line(TAHOE, name, |z| z, value);
    let curves = vec![
        line("0-dupack", by_dupacks[0]),
        line("1-dupack", by_dupacks[1]),
        line("2-dupack", by_dupacks[2]),
        line("failed-dupack", |one| one.failed),
        line("timeout", timeouts),
        line("succeeded-dupack", fast),
    ];
    Ok(Finding {
        tables: vec![table, clusters::triggers(effort)?],
        charts: vec![over_z("Fig. 10: TCP Retransmission Decomposition", "events in 100 s", curves)],
        claims: claims_10(&cells),
        remarks: vec![
            "failed-dupack follows the paper's definition and includes timeouts of a single outstanding \
             packet (x = 0). No duplicate ACK can reveal the loss of such a packet."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

fn claims_10(cells: &Cells) -> Vec<Claim> {
    let (few, many) = (cells.only(within(0.0, CROSSING - 0.001)), cells.only(within(CROSSING + 0.001, 1.0)));
    let excess = |cells: &Cells, more: fn(&Measured) -> f64, less: fn(&Measured) -> f64| {
        mean(&pooled_gains(&cells.of(TAHOE, more), &cells.of(TAHOE, less)))
    };
    let (early, late) = (excess(&few, fast, timeouts), excess(&many, timeouts, fast));
    let failed = |one: &Measured| one.failed;
    let grows = [mean(&trends(&many.of(TAHOE, failed))), mean(&trends(&many.of(TAHOE, avoidable)))];
    let avoidable = add_one(&excess(&many, avoidable, timeouts));
    let crossing = crossing(cells.points(), &cells.of(TAHOE, timeouts), &cells.of(TAHOE, fast));
    vec![
        claim(
            At("§4.1, Fig. 10"),
            "“When the overall error rate is less than 3.5%, packet losses are more likely detected and \
             recovered by *triple-dupack*.”",
            format!(
                "{} more fast retransmissions than timeouts, averaged over z below 3.5 %. The curves cross \
                 {crossing}",
                percent(&early)
            ),
            Judged::better(&early),
        ),
        claim(
            At("§4.1, Fig. 10"),
            "“When the error rate goes higher, timeout becomes the dominant event for retransmission”",
            format!(
                "{} more timeouts than fast retransmissions, averaged over z above 3.5 %",
                percent(&late)
            ),
            Judged::better(&late),
        ),
        claim(
            At("§4.1, Fig. 10"),
            "“Meanwhile, the number of *failed-dupack* increases rapidly.” (Here: a straight line fitted \
             over z above 3.5 % rises by at least 20 % of the mean.)",
            format!(
                "It rises by {}; without timeouts of a single outstanding packet, by {}",
                percent(&grows[0]),
                percent(&grows[1])
            ),
            Judged::considerably(&grows[0]),
        ),
        claim(
            At("§4.1, Fig. 10"),
            "“This fact suggests that there is a large number of timeouts that can actually be avoided”",
            format!(
                "At z above 3.5 %, {} of all timeouts come with at least two packets outstanding, after all \
                 of them but the first have caused a duplicate ACK",
                percent(&avoidable)
            ),
            Judged::considerably(&avoidable),
        ),
    ]
}

/// The ratio to which a gain corresponds.
fn add_one(gain: &Mean) -> Mean {
    Mean { mean: 1.0 + gain.mean, ..*gain }
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
    const CURVES: [Curve; 3] = [TAHOE, SIFEST, LIMITED];
    let rates = overall_rates();
    let cells = run(effort, &CURVES, &rates, Channel::overall)?;
    let table = |title: &str, value: fn(&Measured, f64) -> f64| {
        let cells = &cells;
        let column = |curve: Curve, name: &str, count: fn(&Measured) -> f64| {
            let heading = format!("{}: {name}", curve.name);
            cells.column(heading, curve, 1, move |one| value(one, count(one)))
        };
        let both = |curve| [column(curve, "timeouts", timeouts), column(curve, "fast", fast)];
        let columns = [z_column()].into_iter().chain(CURVES.into_iter().flat_map(both));
        Table::of(title, columns, rates.iter().copied())
    };
    let counts = table(
        "(a) Timeouts and fast retransmissions (fast) in 100 s, Tahoe alone, with sifest and with Limited \
         Transmit:",
        |_, count| count,
    );
    let shares = table(
        "(b) Timeouts and fast retransmissions (fast) per 1000 acknowledged packets:",
        Measured::per_thousand,
    );
    let lines = |value: [fn(&Measured) -> f64; 2]| {
        let names = ["timeout", "succeeded-dupack"].into_iter().zip(value);
        let names = || names.clone();
        let lines_of = |curve: Curve| {
            let line = move |(name, value)| (format!("{name}, {}", curve.name), curve, value);
            names().map(line)
        };
        let lines = [TAHOE, SIFEST].into_iter().flat_map(lines_of);
        lines.map(|(name, curve, value)| cells.line(curve, name, |z| z, value)).collect()
    };
    let charts = vec![
        over_z(
            "Fig. 12(a): Retransmission Decomposition Comparison",
            "events in 100 s",
            lines([timeouts, fast]),
        ),
        over_z(
            "Fig. 12(b): Retransmission Decomposition Comparison, normalized",
            "events per 1000 acknowledged packets",
            lines([timeout_share, fast_share]),
        ),
    ];
    let limited = negated(&cells.pooled(LIMITED, TAHOE, timeout_share));
    let remarks = vec![format!(
        "Tahoe with Limited Transmit has {} fewer timeouts per 1000 packets than plain Tahoe, at a receiver \
         window of 16 segments.",
        percent(&limited)
    )];
    let tables = vec![counts, shares, clusters::replaced_timeouts(effort)?];
    Ok(Finding { tables, charts, claims: claims_12(&cells), remarks, ..Finding::default() })
}

/// Timeouts per 1000 packets.
fn timeout_share(one: &Measured) -> f64 {
    one.per_thousand(one.timeouts)
}

fn fast_share(one: &Measured) -> f64 {
    one.per_thousand(one.succeeded)
}

fn claims_12(cells: &Cells) -> Vec<Claim> {
    let change = |value: fn(&Measured) -> f64| cells.pooled(SIFEST, TAHOE, value);
    let (more, fewer) = (change(packets), negated(&change(timeouts)));
    let (replaced, more_fast) = (negated(&change(timeout_share)), change(fast_share));
    // The paper's half is read off two curves of 25 single runs each.
    let [with, without] = [SIFEST, TAHOE].map(|curve| across(&cells.of(curve, timeout_share)));
    let spread = |repetitions| gain_of_repetitions(&with, &without, repetitions);
    let half = |repetitions| {
        let number = Judged::effect(&replaced, 0.5, spread(repetitions));
        Judged::all([number, Judged::better(&more_fast)])
    };
    vec![
        claim(
            At("§4.3.1, Fig. 12a"),
            "“Even when the *sifest*-enhanced Tahoe receives more packets, it has fewer timeouts.”",
            format!(
                "{} more packets and {} fewer timeouts, averaged over z",
                percent(&more),
                percent(&fewer)
            ),
            Judged::all([Judged::better(&more), Judged::better(&fewer)]),
        ),
        claim(
            At("§4.3.1, Fig. 12b"),
            "“It is obvious that about an half of the timeouts have been replaced by the more efficient Fast \
             Retransmit with the *sifest* algorithm.”",
            format!(
                "Per 1000 packets, averaged over z: {} fewer timeouts and {} more fast retransmissions (± \
                 {:.1} % for the timeouts with one run per z)",
                percent(&replaced),
                percent(&more_fast),
                100.0 * spread(1)
            ),
            half(REPETITIONS.chosen),
        )
        .repeated(REPETITIONS, half),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_crossing_is_interpolated_linearly() {
        let curve = |values: [f64; 4]| values.map(|value| vec![value]).to_vec();
        let z = [0.03, 0.04, 0.05, 0.06];
        let falling = curve([3.0, 3.0, 3.0, 3.0]);
        assert_eq!(crossing(&z, &curve([0.0, 2.0, 4.0, 5.0]), &falling), "at z = 4.5 %");
        assert_eq!(crossing(&z, &curve([4.0, 5.0, 6.0, 7.0]), &falling), "nowhere");
    }
}
