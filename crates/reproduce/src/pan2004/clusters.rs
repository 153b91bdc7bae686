//! The claims about Figs. 8, 10, 12 and 13 and of §5, with longer clusters of errors. The paper states α = β only for
//! Fig. 5.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::judging::{Measured, gain, negated, packets, percent};
use super::senders::{Curve, LIMITED, SIFEST, TAHOE, change_column, measured, planned, run, seeded, traced};
use super::setting::{Channel, MIN_FLIGHT, RARE, SECONDS, Setting};
use crate::finding::Column;
use crate::grid::Grid;
use crate::judge::{across, gain_of_repetitions, pooled_gains};
use crate::{Effort, Judged, Table, column, mean, named, unnamed};

type Count = fn(&Measured) -> f64;

/// Values of α = β in addition to 0.3.
const CHANGES: [f64; 3] = [0.1, 0.03, 0.01];

/// A result, with the verdict on the figure's claim in parentheses.
fn verdict(result: &Mean, judge: fn(&Mean) -> Judged) -> String {
    format!("{} ({})", percent(result), judge(result).name())
}

/// A table by α = β.
fn by_change<'a>(title: &str, columns: impl IntoIterator<Item = Column<'a, f64>>) -> Table {
    let title = format!("{title}, with longer clusters of errors:");
    Table::of(title, [change_column()].into_iter().chain(columns), CHANGES)
}

/// Each α = β with each rate z.
fn points(rates: &[f64]) -> Vec<(f64, f64)> {
    CHANGES.iter().flat_map(|change| rates.iter().map(move |z| (*change, *z))).collect()
}

fn channel((change, z): (f64, f64)) -> Channel {
    Channel::overall(z).changing(change)
}

/// Fig. 8: the share of time with a tiny cwnd.
pub(super) fn tiny_windows(effort: &Effort) -> Result<Table, WorldError> {
    const BELOW: &str = "share of time with cwnd below four segments";
    let plan = |_, change| Ok(Setting::new("tahoe", RARE.changing(change)));
    let cells = Grid::run(&[TAHOE], &CHANGES, plan, |settings| {
        traced(effort, settings, |_, trace| named(BELOW, trace.share_below(MIN_FLIGHT, SECONDS as f64)))
            .map(unnamed)
    })?;
    let title = "Share of time with Tahoe's cwnd below four segments, at y = 0.09";
    let share = |change: &f64| mean(cells.samples(TAHOE, *change));
    let column = column("share of time", |change: &f64| verdict(&share(change), Judged::considerably));
    Ok(by_change(title, [column]))
}

/// Fig. 10: triggers of retransmissions at low z (2 and 3 %) and at high z (6, 9 and 12 %).
pub(super) fn triggers(effort: &Effort) -> Result<Table, WorldError> {
    const RATES: [f64; 5] = [0.02, 0.03, 0.06, 0.09, 0.12];
    let cells = run(effort, &[TAHOE], &points(&RATES), channel)?;
    type Wanted = fn(f64) -> bool;
    // The excess of one kind of event over another, averaged over the wanted z.
    let excess = |change: &f64, wanted: Wanted, more: Count, less: Count| {
        let cells = cells.only(|(at, z)| at == *change && wanted(z));
        pooled_gains(&cells.of(TAHOE, more), &cells.of(TAHOE, less))
    };
    let (low, high): (Wanted, Wanted) = (|z| z < 0.05, |z| z > 0.05);
    let (timeouts, fast): (Count, Count) = (|one| one.timeouts, |one| one.succeeded);
    let title = "Tahoe: excess of fast retransmissions over timeouts at z = 2 and 3 %, excess of timeouts \
                 over fast retransmissions at z = 6 to 12 %, and share of avoidable timeouts at z = 6 to 12 \
                 %";
    let columns = [
        column("excess fast retransmissions", |change: &f64| {
            verdict(&mean(&excess(change, low, fast, timeouts)), Judged::better)
        }),
        column("excess timeouts", |change: &f64| {
            verdict(&mean(&excess(change, high, timeouts, fast)), Judged::better)
        }),
        column("avoidable timeouts", |change: &f64| {
            let avoidable = excess(change, high, |one| one.failed - one.failed_alone, timeouts);
            let share: Vec<_> = avoidable.iter().map(|gain| 1.0 + gain).collect();
            verdict(&mean(&share), Judged::considerably)
        }),
    ];
    Ok(by_change(title, columns))
}

/// Fig. 12: timeouts that sifest replaces, at z = 5, 9 and 13 %.
pub(super) fn replaced_timeouts(effort: &Effort) -> Result<Table, WorldError> {
    const RATES: [f64; 3] = [0.05, 0.09, 0.13];
    let cells = run(effort, &[TAHOE, SIFEST], &points(&RATES), channel)?;
    let at = |change: &f64| cells.only(|(at, _)| at == *change);
    let pooled = |change: &f64, value: Count| at(change).pooled(SIFEST, TAHOE, value);
    let share: Count = |one| one.per_thousand(one.timeouts);
    let title = "Tahoe with sifest compared with plain Tahoe, averaged over z = 5, 9 and 13 %: packets, \
                 timeouts, and timeouts per 1000 packets (about half as many in the paper)";
    let columns = [
        column("more packets", |change: &f64| verdict(&pooled(change, packets), Judged::better)),
        column("fewer timeouts", |change: &f64| {
            verdict(&negated(&pooled(change, |one| one.timeouts)), Judged::better)
        }),
        column("fewer per 1000 packets", |change: &f64| {
            let replaced = negated(&pooled(change, share));
            let [with, without] = [SIFEST, TAHOE].map(|curve| across(&at(change).of(curve, share)));
            let judged = Judged::effect(&replaced, 0.5, gain_of_repetitions(&with, &without, 1));
            format!("{} ({})", percent(&replaced), judged.name())
        }),
    ];
    Ok(by_change(title, columns))
}

/// Fig. 13: fairness at z = 9 %.
pub(super) fn fairness(effort: &Effort) -> Result<Table, WorldError> {
    const Z: f64 = 0.09;
    let plan = |competitor: &'static str, change| {
        Ok(Setting {
            recipes: vec!["tahoe".to_owned(), competitor.to_owned()],
            radio: 192,
            ..Setting::new("tahoe", Channel::overall(Z).changing(change))
        })
    };
    let cells = Grid::run(&["tahoe", "tahoe+sifest"], &CHANGES, plan, |settings| {
        effort.sample_named(
            "packets acknowledged of both flows",
            &planned(settings)?,
            seeded,
            |(setting, _), report| [0, 1].map(|flow| setting.acknowledged(&report.flows[flow])),
        )
    })?;
    let acknowledged =
        |competitor, change: &f64, flow: usize| cells.at(competitor, *change, |both: &[f64; 2]| both[flow]);
    let title = "Tahoe at z = 9 %: gain of the sifest flow over its ordinary competitor, and change of the \
                 ordinary flow when its competitor uses sifest";
    let columns = [
        column("sifest's gain", |change: &f64| {
            let over_competitor =
                gain(&acknowledged("tahoe+sifest", change, 1), &acknowledged("tahoe+sifest", change, 0));
            verdict(&over_competitor, Judged::considerably)
        }),
        column("ordinary flow's change", |change: &f64| {
            let [with, without] =
                ["tahoe+sifest", "tahoe"].map(|competitor| acknowledged(competitor, change, 0));
            verdict(&gain(&with, &without), Judged::similar)
        }),
    ];
    Ok(by_change(title, columns))
}

/// §5: gain of sifest at receiver windows of 3 to 6 segments.
pub(super) fn small_windows(
    effort: &Effort,
    channel: Channel,
    windows: &[usize],
) -> Result<Table, WorldError> {
    let points: Vec<_> =
        CHANGES.iter().flat_map(|change| windows.iter().map(move |window| (*change, *window))).collect();
    let plan =
        |curve: Curve, (change, window)| Ok(Setting { window, ..curve.over(channel.changing(change)) });
    let cells = Grid::run(&[TAHOE, LIMITED, SIFEST], &points, plan, |settings| measured(effort, settings))?;
    let gain_over = |reference| {
        let cells = &cells;
        move |change: &f64| {
            let gain = cells.only(|(at, _)| at == *change).pooled(SIFEST, reference, packets);
            verdict(&gain, Judged::better)
        }
    };
    let columns =
        [column("over plain Tahoe", gain_over(TAHOE)), column("over Limited Transmit", gain_over(LIMITED))];
    let title = "Gain of sifest in packets, Tahoe at receiver windows of 3 to 6 segments";
    Ok(by_change(title, columns))
}
