//! The four judges of §3.2, compared with the true causes of losses. First, all judges record verdicts on the losses of
//! one NewReno sender. Then each judge becomes the attribution of such a sender.
//!
//! The paper describes these rules but does not simulate them, so no claim here is counted.

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp_numbers::statistics::{differences, gains};
use airtcp_sim::world::WorldError;
use serde::Serialize;

use super::panels::NO_BOTTLENECK;
use super::setting::{Loss, Place, Queues, Setting, Timing, Topology, not, percent, throughput};
use crate::grid::Grid;
use crate::{At, Counts, Effort, Finding, Judged, Table, cell, claim, column, mean};

pub(super) const JUDGES: [&str; 4] = ["vegas", "ntg", "ndg", "ncpld"];
const PER: f64 = 0.02;

/// One matrix per judge, in the order of `JUDGES`.
pub(super) type Matrices = [Confusion; 4];

pub(super) fn own() -> Counts {
    Counts::Own("§3.2 describes the judges, but the paper does not simulate them".to_owned())
}

pub(super) fn setting(place: &Place, recipe: &str) -> Result<Setting, WorldError> {
    Ok(Setting { timing: Timing::EverySegment, ..Setting::new(place, recipe)? })
}

/// The verdicts of all four judges on the losses of the same NewReno sender, by place and by seed.
fn recorded_verdicts(effort: &Effort, places: &[Place]) -> Result<Vec<Vec<Matrices>>, WorldError> {
    tolerant_verdicts(effort, places, 0.0)
}

/// Like [`recorded_verdicts`], with a tolerance for NCPLD.
pub(super) fn tolerant_verdicts(
    effort: &Effort,
    places: &[Place],
    tolerance: f64,
) -> Result<Vec<Vec<Matrices>>, WorldError> {
    let recipe = format!("newreno+judges+ncpld-tolerance={tolerance}");
    let points = places.iter().map(|place| Ok(Setting { score: true, ..setting(place, &recipe)? }));
    let points: Vec<_> = points.collect::<Result<_, WorldError>>()?;
    effort.sample_named(
        "verdicts of vegas, ntg, ndg and ncpld",
        &points,
        |setting, seed| setting.run(seed),
        |_, report| {
            JUDGES.map(|name| {
                let judge = report.flows[0].judges.iter().find(|judge| judge.name == name);
                judge.map(|judge| judge.confusion).unwrap_or_default()
            })
        },
    )
}

/// The mean of two shares: congestion losses judged correctly and radio losses judged correctly. A random guess and a
/// constant verdict both score 0.5. On the path without congestion, the score is the share of radio losses judged
/// correctly.
fn score(topology: Topology, confusion: &Confusion) -> Option<f64> {
    let wireless = confusion.radio_accuracy()?;
    if topology == Topology::LastHop {
        return Some(wireless);
    }
    Some(f64::midpoint(wireless, confusion.congestion_accuracy()?))
}

pub(super) fn scores(topology: Topology, runs: &[Matrices], judge: usize) -> Vec<f64> {
    runs.iter().filter_map(|matrices| score(topology, &matrices[judge])).collect()
}

/// Whether a judge is considerably better than a random guess.
pub(super) fn works(scores: &[f64]) -> Judged {
    let over_random_guess: Vec<_> = scores.iter().map(|score| score / 0.5 - 1.0).collect();
    Judged::considerably(&mean(&over_random_guess))
}

fn fails(scores: &[f64]) -> Judged {
    not(works(scores))
}

/// A sentence of the paper about round-trip times on a path, and the function that judges it.
struct Expectation {
    paper: &'static str,
    judged: fn(&[f64]) -> Judged,
}

const DISTINGUISH: Expectation = Expectation {
    paper: "“RTT variation computing can be used to distinguish the wireless packet loss from congestion \
            loss in such conditions”",
    judged: works,
};
const EASY: Expectation = Expectation {
    paper: "“it is easy to distinguish the wireless packet loss from congestion loss”",
    judged: works,
};
const IMPOSSIBLE: Expectation = Expectation {
    paper: "“it is not possible to distinguish wireless packet loss from congestion loss by RTT variation \
            metrics”",
    judged: fails,
};

fn expectation(topology: Topology) -> Expectation {
    match topology {
        Topology::LastHop | Topology::Congestion => DISTINGUISH,
        Topology::LongQueue => EASY,
        Topology::SmallQueue | Topology::Narrow(_) | Topology::Shared => IMPOSSIBLE,
    }
}

fn verdicts_table(topology: Topology, title: &str, runs: &[Matrices]) -> Table {
    let shares = |share: fn(&Confusion) -> Option<f64>| {
        move |judge: &usize| {
            let shares: Vec<_> = runs.iter().filter_map(|matrices| share(&matrices[*judge])).collect();
            percent(&shares, 0)
        }
    };
    let count = |judge: usize, truth| {
        let total: u64 = runs.iter().map(|matrices| matrices[judge].of(truth)).sum();
        format!("{:.0}", total as f64 / runs.len().max(1) as f64)
    };
    Table::of(
        title,
        [
            column("judge", |judge: &usize| JUDGES[*judge].to_owned()),
            column("congestion correct, %", shares(Confusion::congestion_accuracy)),
            column("radio correct, %", shares(Confusion::radio_accuracy)),
            column("score, %", |judge: &usize| percent(&scores(topology, runs, *judge), 0)),
            column("verdicts by true cause", |judge: &usize| {
                Truth::ALL.map(|truth| count(*judge, truth)).join(" / ")
            }),
        ],
        0..JUDGES.len(),
    )
}

/// Measurements of a run with a judge as the sender's attribution.
#[derive(Clone, Copy, Serialize)]
struct AttributionRun {
    #[serde(rename = "throughput, kbit/s")]
    goodput: f64,
    #[serde(rename = "packets dropped by queues")]
    drops: f64,
}

/// Plain NewReno, which comes first, and NewReno with each judge as its attribution.
const SENDERS: [&str; 5] = ["newreno", "newreno+vegas", "newreno+ntg", "newreno+ndg", "newreno+ncpld"];

type AttributionRuns = Grid<&'static str, (), AttributionRun>;

fn goodput(run: &AttributionRun) -> f64 {
    run.goodput
}

fn drops(run: &AttributionRun) -> f64 {
    run.drops
}

fn run_attributions(effort: &Effort, place: &Place) -> Result<AttributionRuns, WorldError> {
    Grid::run(
        &SENDERS,
        &[()],
        |recipe, ()| setting(place, recipe),
        |settings| {
            effort.sample(settings, Setting::run, |_, report| AttributionRun {
                goodput: throughput(&report.flows[0]),
                drops: report.dropped_by_queues as f64,
            })
        },
    )
}

fn attribution_table(runs: &AttributionRuns) -> Table {
    Table::of(
        "Judges as the sender's attribution: no window reduction for a loss attributed to the radio",
        [
            column("sender", |sender: &&'static str| (*sender).to_owned()),
            column("throughput, kbit/s", |sender: &&'static str| cell(&runs.at(*sender, (), goodput), 0)),
            column("gain over newreno, %", |sender: &&'static str| {
                percent(&gains(&runs.at(*sender, (), goodput), &runs.at(SENDERS[0], (), goodput)), 1)
            }),
            column("packets dropped by queues", |sender: &&'static str| {
                cell(&runs.at(*sender, (), drops), 0)
            }),
        ],
        SENDERS,
    )
}

/// The result of a comparison of two senders, in words.
fn comparison(one: &[f64], other: &[f64]) -> &'static str {
    let more = |a, b| Judged::above_zero(&mean(&differences(a, b))) == Judged::Holds;
    match () {
        () if more(one, other) => "higher",
        () if more(other, one) => "lower",
        () if one == other => "equal",
        () => "not significantly different",
    }
}

/// The effect of each judge on throughput and queue drops.
fn attribution_remark(runs: &AttributionRuns) -> String {
    let [plain, judged @ ..] = SENDERS;
    let verdicts = judged.map(|sender| {
        let compared = |value: fn(&AttributionRun) -> f64| {
            comparison(&runs.at(sender, (), value), &runs.at(plain, (), value))
        };
        format!("{sender}: throughput {}, queue drops {}", compared(goodput), compared(drops))
    });
    format!("Judges as attribution, compared with plain newreno. {}.", verdicts.join("; "))
}

/// Uniform loss on the path without congestion, two-state loss on all other paths.
pub(super) fn place(topology: Topology) -> Place {
    let loss = match topology {
        Topology::LastHop => Loss::Uniform(PER),
        _ => Loss::two_state(PER),
    };
    Place::new(topology, loss)
}

pub(super) fn figure(effort: &Effort, topology: Topology) -> Result<Finding, WorldError> {
    let chosen = place(topology);
    let mut places = vec![chosen];
    if topology == Topology::LastHop {
        places.push(Place { links: NO_BOTTLENECK, ..chosen });
    }
    let runs = recorded_verdicts(effort, &places)?;
    let attributions = run_attributions(effort, &chosen)?;
    let titles = [
        "Judges that only record verdicts; verdicts per run by true cause: congestion / radio / not lost",
        "The same with 10 Mbit/s on both links, where not even the sender's own window causes a queue",
    ];
    let mut tables: Vec<_> =
        runs.iter().zip(titles).map(|(runs, title)| verdicts_table(topology, title, runs)).collect();
    tables.push(attribution_table(&attributions));
    let Expectation { paper, judged } = expectation(topology);
    let by_judge = JUDGES.iter().enumerate().map(|(i, name)| {
        let by_place = runs.iter().map(|runs| scores(topology, runs, i));
        let shown = by_place.map(|scores| format!("{} %", percent(&scores, 0))).collect::<Vec<_>>();
        let judged = judged(&scores(topology, &runs[0], i));
        (format!("{name} {} ({})", shown.join(", with 10 Mbit/s on both links "), judged.name()), judged)
    });
    let (shown, judged): (Vec<_>, Vec<_>) = by_judge.unzip();
    let claim = claim(At("§4.2.2"), paper, format!("Scores: {}.", shown.join("; ")), Judged::all(judged));
    Ok(Finding {
        claims: vec![claim.not_counted(own())],
        tables,
        remarks: vec![attribution_remark(&attributions)],
        ..Finding::default()
    })
}

pub(super) fn last_hop(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::LastHop)
}

pub(super) fn long_queue(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::LongQueue)
}

pub(super) fn small_queue(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::SmallQueue)
}

pub(super) fn narrow(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::Narrow(Queues::Small))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_runs_compare_as_equal() {
        let drops = [3.0, 4.0, 5.0, 4.0];
        let more = drops.map(|drops| drops + 10.0);
        assert_eq!((comparison(&more, &drops), comparison(&drops, &more)), ("higher", "lower"));
        assert_eq!((comparison(&drops, &drops), comparison(&[0.0; 4], &[0.0; 4])), ("equal", "equal"));
        assert_eq!(comparison(&[3.0, 5.0, 4.0, 4.0], &drops), "not significantly different");
    }
}
