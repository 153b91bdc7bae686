//! The claims about Figs. 8, 10, 12 and 13 and of §5, with longer clusters of errors. The paper states α = β only for
//! Fig. 5.

use airtcp_sim::world::WorldError;

use super::events::{ENOUGH, RARE};
use super::judging::{Measured, gain, percent, points, turned};
use super::setting::{Channel, SECONDS, Setting};
use super::{Curve, grid, measured, planned, seeded, traced};
use crate::judge::{across, one_run_gain, pooled_gains};
use crate::{Effort, Judged, Table, mean};

/// Values of α = β in addition to 0.3.
const CHANGES: [f64; 3] = [0.1, 0.03, 0.01];

/// A table by α = β. Each cell has a result and the verdict on the figure's claim with that α = β.
fn by_change(title: &str, columns: &[&str], mut of: impl FnMut(usize) -> Vec<(String, Judged)>) -> Table {
    let mut all = vec!["α = β"];
    all.extend(columns);
    let mut table = Table::new(format!("{title}, with longer clusters of errors:"), &all);
    for (at, change) in CHANGES.iter().enumerate() {
        let cells = of(at).into_iter().map(|(found, judged)| format!("{found} ({})", judged.name()));
        table.row(std::iter::once(change.to_string()).chain(cells));
    }
    table
}

/// Fig. 8: the share of time with a tiny cwnd.
pub(super) fn tiny_windows(effort: &Effort) -> Result<Table, WorldError> {
    let settings = CHANGES.map(|change| Setting::new("tahoe", RARE.changing(change)));
    let below = traced(effort, &settings, |_, trace| trace.below(ENOUGH, SECONDS as f64))?;
    let title = "Share of time with Tahoe's cwnd below four segments, at y = 0.09";
    Ok(by_change(title, &["share of time"], |at| {
        let share = mean(&below[at]);
        vec![(percent(&share), Judged::considerably(&share))]
    }))
}

/// Fig. 10: low z (2 and 3 %) and high z (6, 9 and 12 %).
pub(super) fn triggers(effort: &Effort) -> Result<Table, WorldError> {
    const RATES: [f64; 5] = [0.02, 0.03, 0.06, 0.09, 0.12];
    const TAHOE: [Curve; 1] = [Curve::new("Tahoe", "tahoe")];
    let outcomes = grid(effort, &TAHOE, &over(&RATES))?.remove(0);
    let title = "Tahoe: excess of fast retransmissions over timeouts at z = 2 and 3 %, excess of timeouts over fast retransmissions at z = 6 to 12 %, and share of avoidable timeouts at z = 6 to 12 %";
    let columns = ["excess fast retransmissions", "excess timeouts", "avoidable timeouts"];
    Ok(by_change(title, &columns, |at| {
        let outcomes = &outcomes[at * RATES.len()..][..RATES.len()];
        let of = |value: fn(&Measured) -> f64| points(outcomes, value);
        let (timeouts, fast) = (of(|one| one.timeouts), of(|one| one.succeeded));
        let could_come = of(|one| one.failed - one.failed_alone);
        let early = mean(&pooled_gains(&fast[..2], &timeouts[..2]));
        let late = mean(&pooled_gains(&timeouts[2..], &fast[2..]));
        let avoidable = pooled_gains(&could_come[2..], &timeouts[2..]);
        let avoidable = mean(&avoidable.iter().map(|gain| 1.0 + gain).collect::<Vec<_>>());
        vec![
            (percent(&early), Judged::better(&early)),
            (percent(&late), Judged::better(&late)),
            (percent(&avoidable), Judged::considerably(&avoidable)),
        ]
    }))
}

/// Fig. 12, at z = 5, 9 and 13 %.
pub(super) fn replaced(effort: &Effort) -> Result<Table, WorldError> {
    const RATES: [f64; 3] = [0.05, 0.09, 0.13];
    const CURVES: [Curve; 2] = [Curve::new("Tahoe", "tahoe"), Curve::new("sifest", "tahoe+sifest")];
    let outcomes = grid(effort, &CURVES, &over(&RATES))?;
    let title = "Tahoe with sifest compared with plain Tahoe, averaged over z = 5, 9 and 13 %: packets, timeouts, and timeouts per 1000 packets (about half as many in the paper)";
    let columns = ["more packets", "fewer timeouts", "fewer per 1000 packets"];
    Ok(by_change(title, &columns, |at| {
        let of = |curve: usize, value: fn(&Measured) -> f64| {
            points(&outcomes[curve][at * RATES.len()..][..RATES.len()], value)
        };
        let pooled = |value: fn(&Measured) -> f64| mean(&pooled_gains(&of(1, value), &of(0, value)));
        let share: fn(&Measured) -> f64 = |one| one.per_thousand(one.timeouts);
        let (packets, fewer) = (pooled(|one| one.acked), turned(&pooled(|one| one.timeouts)));
        let replaced = turned(&pooled(share));
        let spread = one_run_gain(&across(&of(1, share)), &across(&of(0, share)));
        vec![
            (percent(&packets), Judged::better(&packets)),
            (percent(&fewer), Judged::better(&fewer)),
            (percent(&replaced), Judged::number(&replaced, 0.5, spread)),
        ]
    }))
}

/// Fig. 13, at z = 9 %.
pub(super) fn fairness(effort: &Effort) -> Result<Table, WorldError> {
    const Z: f64 = 0.09;
    let setting = |beside: &str, change: f64| Setting {
        recipes: vec!["tahoe".to_owned(), beside.to_owned()],
        radio: 192,
        ..Setting::new("tahoe", Channel::overall(Z).changing(change))
    };
    let settings: Vec<_> = ["tahoe", "tahoe+sifest"]
        .iter()
        .flat_map(|beside| CHANGES.map(|change| setting(beside, change)))
        .collect();
    let found = effort.sample(&planned(&settings)?, seeded, |(setting, _), report| {
        [0, 1].map(|flow| setting.acknowledged(&report.flows[flow]))
    })?;
    let of = |at: usize, flow: usize| -> Vec<f64> { found[at].iter().map(|both| both[flow]).collect() };
    let title = "Tahoe at z = 9 %: gain of the sifest flow over its ordinary competitor, and change of the ordinary flow when its competitor uses sifest";
    let columns = ["sifest's gain", "ordinary flow's change"];
    Ok(by_change(title, &columns, |at| {
        let with = CHANGES.len() + at;
        let (ahead, cost) = (gain(&of(with, 1), &of(with, 0)), gain(&of(with, 0), &of(at, 0)));
        vec![(percent(&ahead), Judged::considerably(&ahead)), (percent(&cost), Judged::similar(&cost))]
    }))
}

/// §5: receiver windows of 3 to 6 segments.
pub(super) fn small_windows(
    effort: &Effort,
    channel: Channel,
    windows: &[usize],
) -> Result<Table, WorldError> {
    const RECIPES: [&str; 3] = ["tahoe", "tahoe+limited-transmit", "tahoe+sifest"];
    let settings: Vec<_> = CHANGES
        .iter()
        .flat_map(|change| {
            RECIPES.iter().flat_map(|recipe| {
                let setting = Setting::new(recipe, channel.changing(*change));
                windows.iter().map(move |window| Setting { window: *window, ..setting.clone() })
            })
        })
        .collect();
    let found = measured(effort, &settings)?;
    let columns = ["over plain Tahoe", "over Limited Transmit"];
    Ok(by_change("Gain of sifest in packets, Tahoe at receiver windows of 3 to 6 segments", &columns, |at| {
        let of = |recipe: usize| {
            let first = (at * RECIPES.len() + recipe) * windows.len();
            points(&found[first..][..windows.len()], |one| one.acked)
        };
        let over = |than: usize| mean(&pooled_gains(&of(2), &of(than)));
        [0, 1].map(|than| (percent(&over(than)), Judged::better(&over(than)))).to_vec()
    }))
}

/// Channels for each α = β and, within it, each z.
fn over(rates: &[f64]) -> Vec<Channel> {
    let at = |change: f64| rates.iter().map(move |z| Channel::overall(*z).changing(change));
    CHANGES.iter().flat_map(|change| at(*change)).collect()
}
