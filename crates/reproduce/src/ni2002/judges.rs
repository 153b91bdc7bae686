//! The four judges of §3.2, compared with the true causes of losses. They first only record verdicts on the losses of a
//! NewReno sender, then each becomes the attribution of such a sender.
//!
//! The paper describes these rules but does not simulate them, so no claim here is counted.

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp_numbers::statistics::{differences, gains};
use airtcp_sim::world::WorldError;

use super::judges_everywhere;
use super::panels::NO_BOTTLENECK;
use super::setting::{Loss, Place, Queues, Setting, Timing, Topology, not, percent, throughput};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};

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
fn onlookers(effort: &Effort, places: &[Place]) -> Result<Vec<Vec<Matrices>>, WorldError> {
    tolerant_onlookers(effort, places, 0.0)
}

/// The same with a tolerance for NCPLD.
pub(super) fn tolerant_onlookers(
    effort: &Effort,
    places: &[Place],
    tolerance: f64,
) -> Result<Vec<Vec<Matrices>>, WorldError> {
    let recipe = format!("newreno+judges+ncpld-tolerance={tolerance}");
    let points = places.iter().map(|place| Ok(Setting { score: true, ..setting(place, &recipe)? }));
    let points: Vec<_> = points.collect::<Result<_, WorldError>>()?;
    effort.sample(
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
/// constant verdict both score 0.5. Without congestion, the share of radio losses judged correctly.
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
    let over_a_coin: Vec<_> = scores.iter().map(|score| score / 0.5 - 1.0).collect();
    Judged::considerably(&mean(&over_a_coin))
}

fn fails(scores: &[f64]) -> Judged {
    not(works(scores))
}

/// A sentence of the paper about round-trip times on a path, and how it is judged.
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

fn onlookers_table(topology: Topology, title: &str, runs: &[Matrices]) -> Table {
    let mut table = Table::new(
        title,
        &["judge", "congestion correct, %", "radio correct, %", "score, %", "verdicts by true cause"],
    );
    for (i, name) in JUDGES.into_iter().enumerate() {
        let shares = |of: fn(&Confusion) -> Option<f64>| -> Vec<f64> {
            runs.iter().filter_map(|matrices| of(&matrices[i])).collect()
        };
        let count = |truth| {
            let total: u64 = runs.iter().map(|matrices| matrices[i].of(truth)).sum();
            format!("{:.0}", total as f64 / runs.len().max(1) as f64)
        };
        table.row([
            name.to_owned(),
            percent(&shares(Confusion::congestion_accuracy), 0),
            percent(&shares(Confusion::radio_accuracy), 0),
            percent(&scores(topology, runs, i), 0),
            Truth::ALL.map(count).join(" / "),
        ]);
    }
    table
}

/// Throughput of a sender in kbit/s, and how many of its packets queues dropped, by seed.
struct Charge {
    recipe: String,
    goodput: Vec<f64>,
    drops: Vec<f64>,
}

/// Plain NewReno, which comes first, and NewReno with each judge as its attribution.
fn in_charge(effort: &Effort, place: &Place) -> Result<Vec<Charge>, WorldError> {
    let mut recipes = vec!["newreno".to_owned()];
    recipes.extend(JUDGES.map(|judge| format!("newreno+{judge}")));
    let points = recipes.iter().map(|recipe| setting(place, recipe)).collect::<Result<Vec<_>, _>>()?;
    let samples = effort.sample(
        &points,
        |setting, seed| setting.run(seed),
        |_, report| (throughput(&report.flows[0]), report.dropped_by_queues as f64),
    )?;
    let charge = |(recipe, samples): (String, Vec<(f64, f64)>)| {
        let (goodput, drops) = samples.into_iter().unzip();
        Charge { recipe, goodput, drops }
    };
    Ok(recipes.into_iter().zip(samples).map(charge).collect())
}

fn in_charge_table(charges: &[Charge]) -> Table {
    let mut table = Table::new(
        "Judges as the sender's attribution: no window reduction for a loss attributed to the radio",
        &["sender", "throughput, kbit/s", "gain over newreno, %", "packets dropped by queues"],
    );
    for Charge { recipe, goodput, drops } in charges {
        let gain = gains(goodput, &charges[0].goodput);
        table.row([recipe.clone(), cell(goodput, 0), percent(&gain, 1), cell(drops, 0)]);
    }
    table
}

/// Compares two senders in words.
fn than(one: &[f64], other: &[f64]) -> &'static str {
    let more = |a, b| Judged::above_zero(&mean(&differences(a, b))) == Judged::Holds;
    match () {
        () if more(one, other) => "higher",
        () if more(other, one) => "lower",
        () if one == other => "equal",
        () => "not significantly different",
    }
}

/// The effect of each judge on throughput and queue drops.
fn in_charge_remark(charges: &[Charge]) -> String {
    let Some((plain, judged)) = charges.split_first() else { return String::new() };
    let verdicts = judged.iter().map(|charge| {
        let goodput = than(&charge.goodput, &plain.goodput);
        let drops = than(&charge.drops, &plain.drops);
        format!("{}: throughput {goodput}, queue drops {drops}", charge.recipe)
    });
    format!(
        "Judges as attribution, compared with plain newreno. {}.",
        verdicts.collect::<Vec<_>>().join("; ")
    )
}

/// Uniform loss on the path without congestion, two-state loss on the others.
pub(super) fn place(topology: Topology) -> Place {
    let loss = match topology {
        Topology::LastHop => Loss::Uniform(PER),
        _ => Loss::two_state(PER),
    };
    Place::new(topology, loss)
}

fn figure(effort: &Effort, topology: Topology) -> Result<Finding, WorldError> {
    let chosen = place(topology);
    let mut places = vec![chosen];
    if topology == Topology::LastHop {
        places.push(Place { links: NO_BOTTLENECK, ..chosen });
    }
    let runs = onlookers(effort, &places)?;
    let charges = in_charge(effort, &chosen)?;
    let titles = [
        "Judges that only record verdicts; verdicts per run by true cause: congestion / radio / not lost",
        "The same with 10 Mbit/s on both links, where not even the sender's own window causes a queue",
    ];
    let mut tables: Vec<_> =
        runs.iter().zip(titles).map(|(runs, title)| onlookers_table(topology, title, runs)).collect();
    tables.push(in_charge_table(&charges));
    let Expectation { paper, judged } = expectation(topology);
    let by_judge = JUDGES.iter().enumerate().map(|(i, name)| {
        let by_place = runs.iter().map(|runs| scores(topology, runs, i));
        let shown = by_place.map(|scores| format!("{} %", percent(&scores, 0))).collect::<Vec<_>>();
        let judged = judged(&scores(topology, &runs[0], i));
        (format!("{name} {} ({})", shown.join(", with 10 Mbit/s on both links "), judged.name()), judged)
    });
    let (shown, judged): (Vec<_>, Vec<_>) = by_judge.unzip();
    let claim = Claim {
        paper: paper.to_owned(),
        place: "§4.2.2".to_owned(),
        counts: own(),
        ours: format!("Scores: {}.", shown.join("; ")),
        judged: Judged::all(judged),
    };
    Ok(Finding {
        claims: vec![claim],
        tables,
        remarks: vec![in_charge_remark(&charges)],
        ..Finding::default()
    })
}

pub(super) fn last_hop(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::LastHop)
}

pub(super) fn congestion(effort: &Effort) -> Result<Finding, WorldError> {
    let mut finding = figure(effort, Topology::Congestion)?;
    judges_everywhere::samaraweera(effort, &mut finding)?;
    Ok(finding)
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
        assert_eq!((than(&more, &drops), than(&drops, &more)), ("higher", "lower"));
        assert_eq!((than(&drops, &drops), than(&[0.0; 4], &[0.0; 4])), ("equal", "equal"));
        assert_eq!(than(&[3.0, 5.0, 4.0, 4.0], &drops), "not significantly different");
    }
}
