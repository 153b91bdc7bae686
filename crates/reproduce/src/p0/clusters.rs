//! What the paper says of Figs. 8, 10, 12 and 13 and in §5, where the errors come in longer clusters: it states α = β for
//! Fig. 5 alone.

use airtcp_sim::world::WorldError;

use super::super::judge::{across, one_run_gain, pooled_gains};
use super::super::{Effort, Judged, Table, mean};
use super::events::{ENOUGH, RARE};
use super::judging::{Measured, gain, percent, points, turned};
use super::setting::{Channel, SECONDS, Setting};
use super::{Curve, grid, measured, planned, seeded, traced};

/// α = β, beside 0.3.
const CHANGES: [f64; 3] = [0.1, 0.03, 0.01];

/// A table by α = β: what was found, and whether the figure's sentence holds there too.
fn by_change(title: &str, columns: &[&str], mut of: impl FnMut(usize) -> Vec<(String, Judged)>) -> Table {
    let mut all = vec!["α = β"];
    all.extend(columns);
    let mut table = Table::new(format!("{title}, in longer clusters:"), &all);
    for (at, change) in CHANGES.iter().enumerate() {
        let cells = of(at).into_iter().map(|(found, judged)| format!("{found} ({})", judged.name()));
        table.row(std::iter::once(change.to_string()).chain(cells));
    }
    table
}

/// Fig. 8: how long cwnd is tiny.
pub(super) fn tiny_windows(effort: &Effort) -> Result<Table, WorldError> {
    let settings = CHANGES.map(|change| Setting::new("tahoe", RARE.changing(change)));
    let below = traced(effort, &settings, |_, trace| trace.below(ENOUGH, SECONDS as f64))?;
    Ok(by_change("Tahoe at y = 0.09", &["share of the time below four segments"], |at| {
        let share = mean(&below[at]);
        vec![(percent(&share), Judged::considerably(&share))]
    }))
}

/// Fig. 10, at z of 2 and 3 %, and of 6, 9 and 12 %.
pub(super) fn triggers(effort: &Effort) -> Result<Table, WorldError> {
    const RATES: [f64; 5] = [0.02, 0.03, 0.06, 0.09, 0.12];
    const TAHOE: [Curve; 1] = [Curve::new("Tahoe", "tahoe")];
    let outcomes = grid(effort, &TAHOE, &over(&RATES))?.remove(0);
    let columns = [
        "fast retransmits over timeouts, z = 2 and 3 %",
        "timeouts over fast retransmits, z = 6 to 12 %",
        "timeouts that could be avoided, z = 6 to 12 %",
    ];
    Ok(by_change("Tahoe", &columns, |at| {
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

/// Fig. 12, at z of 5, 9 and 13 %.
pub(super) fn replaced(effort: &Effort) -> Result<Table, WorldError> {
    const RATES: [f64; 3] = [0.05, 0.09, 0.13];
    const CURVES: [Curve; 2] = [Curve::new("Tahoe", "tahoe"), Curve::new("sifest", "tahoe+sifest")];
    let outcomes = grid(effort, &CURVES, &over(&RATES))?;
    let columns = ["packets, z = 5, 9 and 13 %", "fewer timeouts", "fewer per 1000 packets: about an half"];
    Ok(by_change("sifest against Tahoe", &columns, |at| {
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

/// Fig. 13, at z of 9 %.
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
    let columns = ["sifest over the ordinary flow beside it", "that flow over one beside its like"];
    Ok(by_change("Tahoe at z = 9 %", &columns, |at| {
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
    let columns = ["sifest over plain", "sifest over Limited Transmit"];
    Ok(by_change("Tahoe's packets at receiver windows of 3 to 6 segments", &columns, |at| {
        let of = |recipe: usize| {
            let first = (at * RECIPES.len() + recipe) * windows.len();
            points(&found[first..][..windows.len()], |one| one.acked)
        };
        let over = |than: usize| mean(&pooled_gains(&of(2), &of(than)));
        [0, 1].map(|than| (percent(&over(than)), Judged::better(&over(than)))).to_vec()
    }))
}

/// These z at each α = β.
fn over(rates: &[f64]) -> Vec<Channel> {
    let at = |change: f64| rates.iter().map(move |z| Channel::overall(*z).changing(change));
    CHANGES.iter().flat_map(|change| at(*change)).collect()
}
