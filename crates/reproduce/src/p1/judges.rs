//! The four judges of §3.2, compared with the true causes of losses: as onlookers, and in charge of a NewReno sender.

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp_numbers::statistics::{gains, ratios};
use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, cell};
use super::setting::{CHOICES, Loss, Setting, Timing, Topology, above_zero, paired, throughput};

const JUDGES: [&str; 4] = ["vegas", "ntg", "ndg", "ncpld"];
/// A judge works from a score of `WORKS` on, and fails below `FAILS`.
const WORKS: f64 = 0.8;
const FAILS: f64 = 0.7;
const PER: f64 = 0.02;

/// One for each judge.
type Matrices = [Confusion; 4];

fn setting(path: &str, recipe: &str) -> Result<Setting, WorldError> {
    Ok(Setting { timing: Timing::EverySegment, ..Setting::new(path, recipe)? })
}

/// What all four say about the losses of the same NewReno sender, by path and by seed.
fn onlookers(effort: &Effort, paths: &[String]) -> Result<Vec<Vec<Matrices>>, WorldError> {
    let points = paths.iter().map(|path| Ok(Setting { score: true, ..setting(path, "newreno+judges")? }));
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

/// The mean of the shares of congestion losses and of radio losses that were judged right: 0.5 for a coin, and for a
/// judge that always says the same. Without congestion, the share of radio losses alone.
fn score(topology: Topology, confusion: &Confusion) -> Option<f64> {
    let wireless = confusion.radio_accuracy()?;
    if topology == Topology::LastHop {
        return Some(wireless);
    }
    Some(f64::midpoint(wireless, confusion.congestion_accuracy()?))
}

fn scores(topology: Topology, runs: &[Matrices], judge: usize) -> Vec<f64> {
    runs.iter().filter_map(|matrices| score(topology, &matrices[judge])).collect()
}

fn percent(samples: &[f64]) -> String {
    cell(&samples.iter().map(|share| 100.0 * share).collect::<Vec<_>>(), 0)
}

fn above(samples: &[f64], bound: f64) -> Judged {
    above_zero(&samples.iter().map(|share| share - bound).collect::<Vec<_>>())
}

fn works(samples: &[f64]) -> Judged {
    match (above(samples, WORKS), above(samples, FAILS)) {
        (Judged::Holds, _) => Judged::Holds,
        (Judged::DoesNotHold, Judged::Holds) => Judged::HoldsInPart,
        (_, Judged::DoesNotHold) => Judged::DoesNotHold,
        _ => Judged::Undecided,
    }
}

fn fails(samples: &[f64]) -> Judged {
    match works(samples) {
        Judged::Holds => Judged::DoesNotHold,
        Judged::DoesNotHold => Judged::Holds,
        between => between,
    }
}

/// What the paper expects of round-trip times on a path.
struct Expectation {
    paper: &'static str,
    judged: fn(&[f64]) -> Judged,
}

const DISTINGUISH: Expectation = Expectation {
    paper: "\"RTT variation computing can be used to distinguish the wireless packet loss from congestion loss in such conditions\" (Figs. 12, 13)",
    judged: works,
};
const EASY: Expectation =
    Expectation { paper: "with long queues \"it is easy to distinguish\" the two (Fig. 17)", judged: works };
const IMPOSSIBLE: Expectation = Expectation {
    paper: "\"it is not possible to distinguish wireless packet loss from congestion loss by RTT variation metrics\" (Figs. 18, 19)",
    judged: fails,
};

fn expectation(topology: Topology) -> Expectation {
    match topology {
        Topology::LastHop | Topology::Congestion => DISTINGUISH,
        Topology::LongQueue => EASY,
        Topology::SmallQueue | Topology::Narrow => IMPOSSIBLE,
    }
}

fn choices(more: &[String]) -> Vec<String> {
    let own = [
        "The sender is NewReno and measures every segment that it sends once, as the paper did from its traces: ns-2's own timer, one segment at a time in ticks of 100 ms, would tell the judges little.".to_owned(),
        format!(
            "Score: the mean of the shares of congestion losses and of radio losses that were judged right. From {:.0} % on a judge works, below {:.0} % it fails, between the two is in part.",
            100.0 * WORKS,
            100.0 * FAILS
        ),
        "What the judges' rules leave open (thresholds, W, which change of the window counts) is stated in `src/recovery/attribute/`.".to_owned(),
    ];
    CHOICES.map(str::to_owned).into_iter().chain(own).chain(more.iter().cloned()).collect()
}

fn onlookers_table(topology: Topology, title: &str, runs: &[Matrices]) -> Table {
    let mut table = Table::new(
        title,
        &[
            "judge",
            "congestion judged right, %",
            "radio judged right, %",
            "score, %",
            "losses judged (congestion / radio / none lost)",
        ],
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
            percent(&shares(Confusion::congestion_accuracy)),
            percent(&shares(Confusion::radio_accuracy)),
            percent(&scores(topology, runs, i)),
            Truth::ALL.map(count).join(" / "),
        ]);
    }
    table
}

/// Goodput in kbit/s of a sender, and its packets that queues dropped, by seed.
struct Charge {
    recipe: String,
    goodput: Vec<f64>,
    drops: Vec<f64>,
}

/// NewReno without a judge, which comes first, and with each judge in charge.
fn in_charge(effort: &Effort, path: &str) -> Result<Vec<Charge>, WorldError> {
    let mut recipes = vec!["newreno".to_owned()];
    recipes.extend(JUDGES.map(|judge| format!("newreno+{judge}")));
    let points = recipes.iter().map(|recipe| setting(path, recipe)).collect::<Result<Vec<_>, _>>()?;
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
        "in charge: a loss that the judge puts down to the radio leaves the window as it is",
        &["sender", "goodput, kbit/s", "over newreno, %", "packets dropped by queues"],
    );
    for Charge { recipe, goodput, drops } in charges {
        let gain: Vec<_> = gains(goodput, &charges[0].goodput).into_iter().map(|gain| 100.0 * gain).collect();
        table.row([recipe.clone(), cell(goodput, 0), cell(&gain, 1), cell(drops, 0)]);
    }
    table
}

/// What it costs or gains here to trust the judges.
fn in_charge_remark(charges: &[Charge]) -> String {
    let Some((plain, judged)) = charges.split_first() else { return String::new() };
    let verdicts = judged.iter().map(|charge| {
        let goodput = above_zero(&paired(&charge.goodput, &plain.goodput, |a, b| a - b));
        let drops = above_zero(&paired(&charge.drops, &plain.drops, |a, b| a - b));
        let than = |judged, more: &str, less: &str| match judged {
            Judged::Holds => more.to_owned(),
            Judged::DoesNotHold => less.to_owned(),
            _ => "as much (within the interval)".to_owned(),
        };
        format!(
            "{} delivers {} and loses {} to queues",
            charge.recipe,
            than(goodput, "more", "less"),
            than(drops, "more", "less")
        )
    });
    format!("In charge, compared with newreno: {}.", verdicts.collect::<Vec<_>>().join("; "))
}

fn figure(effort: &Effort, topology: Topology) -> Result<Finding, WorldError> {
    // The preset's own loss of 2 %: uniform on the last hop without congestion, two-state elsewhere.
    let path = topology.path("");
    let mut paths = vec![path.clone()];
    if topology == Topology::LastHop {
        paths.push(topology.path(NO_OWN_QUEUE));
    }
    let runs = onlookers(effort, &paths)?;
    let charges = in_charge(effort, &path)?;
    let titles = [
        "looking on",
        "looking on, with links of 10 Mbit/s: not even the sender's own window waits anywhere",
    ];
    let mut tables: Vec<_> =
        runs.iter().zip(titles).map(|(runs, title)| onlookers_table(topology, title, runs)).collect();
    tables.push(in_charge_table(&charges));
    let Expectation { paper, judged } = expectation(topology);
    let claims = JUDGES.iter().enumerate().map(|(i, name)| {
        let of_path = scores(topology, &runs[0], i);
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("{paper}: {name}"),
            ours: format!("score {} %", percent(&of_path)),
            judged: judged(&of_path),
        }
    });
    Ok(Finding {
charts: Vec::new(),
        claims: claims.collect(),
        tables,
        choices: choices(&[topology.choice()]),
        remarks: vec![
            in_charge_remark(&charges),
            "What a judge could make of the same round-trip times that knew the best threshold beforehand is in `p1-fig12` to `p1-fig19`.".to_owned(),
        ],
    })
}

/// In the preset the wire is the bottleneck, and the sender's own window queues before it. Here it does not.
const NO_OWN_QUEUE: &str = "[[stage]]\nname = \"wire\"\nboth.rate = \"10Mbit\"\n[[stage]]\nname = \"radio\"\nboth.rate = \"10Mbit\"\n";

pub(super) fn last_hop(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::LastHop)
}

pub(super) fn congestion(effort: &Effort) -> Result<Finding, WorldError> {
    let mut finding = figure(effort, Topology::Congestion)?;
    samaraweera(effort, &mut finding)?;
    Ok(finding)
}

pub(super) fn long_queue(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::LongQueue)
}

pub(super) fn small_queue(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::SmallQueue)
}

pub(super) fn narrow(effort: &Effort) -> Result<Finding, WorldError> {
    figure(effort, Topology::Narrow)
}

/// Tries what P1 §3.2 reports of NCPLD's own evaluation.
fn samaraweera(effort: &Effort, finding: &mut Finding) -> Result<(), WorldError> {
    /// A low rate and a high one.
    const RATES: [f64; 2] = [0.001, 0.08];
    /// "As well as" TCP.
    const AS_WELL: f64 = 0.95;
    let mut points = Vec::new();
    for per in RATES {
        for recipe in ["newreno", "newreno+ncpld"] {
            points.push(setting(&Topology::Congestion.path(&Loss::TwoState(per).stage()), recipe)?);
        }
    }
    let samples = effort.sample(
        &points,
        |setting, seed| setting.run(seed),
        |_, report| throughput(&report.flows[0]),
    )?;
    let [low, low_ncpld, high, high_ncpld] = samples.as_slice() else { return Ok(()) };
    for (paper, ratios, bound) in [
        (
            "NCPLD \"behaves as well as TCP when the wireless error rate is low\" (0.1 %; at least 95 %)",
            ratios(low_ncpld, low),
            AS_WELL,
        ),
        (
            "\"and improves throughput over TCP when the wireless error rate is high\" (8 %)",
            ratios(high_ncpld, high),
            1.0,
        ),
    ] {
        finding.claims.push(Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: paper.to_owned(),
            ours: format!("{} times newreno's goodput", cell(&ratios, 2)),
            judged: above(&ratios, bound),
        });
    }
    Ok(())
}

/// §5: over every topology, and with the three rates of cross traffic that §4.1 names.
pub(super) fn overall(effort: &Effort) -> Result<Finding, WorldError> {
    let load = |rate: u32| {
        Topology::Congestion
            .path(&format!("[[stage]]\nname = \"cross-traffic\"\ndown.rate = \"{rate}kbit\"\n"))
    };
    let mut places: Vec<(Topology, String, String)> = Vec::new();
    for topology in Topology::ALL {
        if topology == Topology::Congestion {
            for rate in [160, 200, 300] {
                places.push((topology, format!("{}, sources of {rate} kbit/s", topology.name()), load(rate)));
            }
        } else {
            places.push((topology, topology.name().to_owned(), topology.path("")));
        }
    }
    let paths: Vec<_> = places.iter().map(|(.., path)| path.clone()).collect();
    let runs = onlookers(effort, &paths)?;
    let mut columns = vec!["path"];
    columns.extend(JUDGES);
    let mut table =
        Table::new("score in % (on the path without congestion: of radio losses judged right)", &columns);
    let mut by_judge: Vec<Vec<(&str, Vec<f64>)>> = vec![Vec::new(); JUDGES.len()];
    for ((topology, name, _), runs) in places.iter().zip(&runs) {
        let of_place: Vec<_> = (0..JUDGES.len()).map(|i| scores(*topology, runs, i)).collect();
        table.row(std::iter::once(name.clone()).chain(of_place.iter().map(|scores| percent(scores))));
        for (judge, scores) in by_judge.iter_mut().zip(of_place) {
            judge.push((name, scores));
        }
    }
    let claims = JUDGES.iter().zip(&by_judge).map(|(name, places)| {
        let judged: Vec<_> = places.iter().map(|(_, scores)| works(scores)).collect();
        let named = |wanted| {
            let names = places.iter().zip(&judged).filter(|(_, judged)| **judged == wanted);
            let names: Vec<_> = names.map(|((name, _), _)| *name).collect();
            if names.is_empty() { "nowhere".to_owned() } else { names.join("; ") }
        };
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!(
                "\"simple RTT variation schemes can not always predict congestion from wireless link error well\": {name}"
            ),
            ours: format!("works: {}. Fails: {}", named(Judged::Holds), named(Judged::DoesNotHold)),
            judged: if judged.contains(&Judged::DoesNotHold) {
                Judged::Holds
            } else if Judged::all(judged.iter().copied()) == Judged::Holds {
                Judged::DoesNotHold
            } else {
                Judged::Undecided
            },
        }
    });
    Ok(Finding {
        charts: Vec::new(),
        claims: claims.collect(),
        tables: vec![table],
        choices: choices(&[format!("{:.0} % of the packets are lost by the radio everywhere.", 100.0 * PER)]),
        remarks: vec![],
    })
}
