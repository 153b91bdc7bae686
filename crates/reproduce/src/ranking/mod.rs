//! Which recipe wins: the whole catalogue, and combinations of its parts, on paths of all five papers.
//!
//! First every part is tried by itself. Then a beam search starts from the best of these and changes one part at each
//! step. At last the best recipes found run beside the papers' own proposals, with seeds that the search has not seen.

mod candidates;
mod capacity;
mod places;
mod scores;

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::world::WorldError;

use self::candidates::{
    KNOWN, TODAYS, canonical, neighbours, parts, proposals, proposals_today, repairs, singles,
};
use self::places::PLACES;
use self::scores::{Scores, evaluate};
use super::{Effort, Figure, Finding, Paper, Table, shown};

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "ranking",
    paper: Paper::Every,
    title: "the whole catalogue on all papers' paths",
    run: ranking,
}];

/// The search goes on from so many recipes at each step.
const BEAM: usize = 2;
const STEPS: usize = 6;
/// So many of the best recipes that the search found run again at last.
const FINALISTS: usize = 8;
/// The search tries thousands of recipes, so it runs one seed in so many.
const SEARCH: u32 = 10;
/// A part that gains more than this, in per cent, is useful; less may be chance.
const USEFUL: f64 = 3.0;
/// The last runs have seeds above this, which the search has not used.
const FRESH: u64 = 1000;
/// A recipe is harmless if a competing flow loses at most this, in per cent.
const HARMLESS: f64 = 5.0;
/// The winner has to beat all proposals in so many of the five settings.
const ENOUGH: usize = 4;

fn ranking(effort: &Effort) -> Result<Finding, WorldError> {
    let search = effort.at_most((effort.seeds / SEARCH).max(2));
    let mut seen = BTreeMap::new();
    let first = singles().into_iter().chain(proposals().into_iter().map(str::to_owned));
    look(&search, first.collect(), &mut seen)?;
    let catalogue = table_of_singles(&seen);
    let useful = useful(&seen);
    let mut steps = Table::new(
        "The search, step by step, with profile `default`:",
        &["step", "recipes tried", "the best so far", "its margin"],
    );
    let mut beam = best(&seen, BEAM);
    steps.row(step(0, &seen, &beam));
    for number in 1..=STEPS {
        let next = beam.iter().flat_map(|recipe| neighbours(recipe, &useful)).collect();
        look(&search, next, &mut seen)?;
        let better = best(&seen, BEAM);
        if better == beam {
            break;
        }
        beam = better;
        steps.row(step(number, &seen, &beam));
    }

    let mut last = best(&seen, FINALISTS);
    let named = KNOWN.into_iter().chain(proposals()).map(str::to_owned);
    last.extend(named.filter(|name| !last.contains(name)).collect::<Vec<_>>());
    let finalists: BTreeMap<_, _> = last.iter().cloned().zip(evaluate(effort, FRESH, &last)?).collect();
    let today = proposals_today();
    let scores = evaluate(effort, FRESH, &today)?;
    let today = table_of_today(&finalists[TODAYS], today.iter().zip(&scores).collect());
    Ok(finding(&finalists, &last, [today, steps, catalogue], search.seeds))
}

/// Evaluates the recipes that `seen` does not have yet.
fn look(
    effort: &Effort,
    recipes: BTreeSet<String>,
    seen: &mut BTreeMap<String, Scores>,
) -> Result<(), WorldError> {
    let new: Vec<String> = recipes.into_iter().filter(|name| !seen.contains_key(name)).collect();
    let scores = evaluate(effort, 0, &new)?;
    seen.extend(new.into_iter().zip(scores));
    Ok(())
}

/// The parts that make some repair better in at least one setting; the search tries no others.
fn useful(seen: &BTreeMap<String, Scores>) -> Vec<&'static str> {
    let helps = |part: &&'static str| {
        repairs().any(|repair| {
            let with = canonical(&format!("{repair}+{part}")).and_then(|name| seen.get(&name));
            with.zip(seen.get(repair)).is_some_and(|(with, without)| {
                Paper::ALL.into_iter().any(|paper| with.gain_over(without, paper).mean > USEFUL)
            })
        })
    };
    parts().filter(helps).collect()
}

/// The best of the recipes that are harmless on average (with few seeds, the worst place says nothing). The fourth best
/// of the five settings decides, because the winner has to win in four. Of several that do the same, the one with the
/// shortest name is kept.
fn best(seen: &BTreeMap<String, Scores>, count: usize) -> Vec<String> {
    let against = proposed(seen);
    let mut all: Vec<_> = seen
        .iter()
        .filter(|(_, scores)| scores.mean_harm(&seen["newreno"]) <= HARMLESS)
        .map(|(name, scores)| (scores.margin(&against), name.clone()))
        .collect();
    all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut chosen: Vec<String> = Vec::new();
    for (_, name) in all {
        let same = chosen.iter().position(|other| seen[other].does_the_same(&seen[&name]));
        match same {
            Some(index) if name.len() < chosen[index].len() => chosen[index] = name,
            Some(_) => {}
            None if chosen.len() < count => chosen.push(name),
            None => break,
        }
    }
    chosen
}

fn proposed(seen: &BTreeMap<String, Scores>) -> Vec<&Scores> {
    proposals().into_iter().filter_map(|name| seen.get(name)).collect()
}

fn step(number: usize, seen: &BTreeMap<String, Scores>, beam: &[String]) -> [String; 4] {
    let name = beam.first().cloned().unwrap_or_default();
    let margin = seen.get(&name).map_or(f64::NAN, |scores| scores.margin(&proposed(seen)));
    [number.to_string(), seen.len().to_string(), format!("`{name}`"), format!("{margin:+.1} %")]
}

const COLUMNS: [&str; 9] = [
    "recipe",
    Paper::P0.cited(),
    Paper::P1.cited(),
    Paper::P2.cited(),
    Paper::P3.cited(),
    Paper::P4.cited(),
    "timeouts / NewReno's",
    "what it costs a NewReno beside it, on average",
    "at most",
];

fn row(name: &str, scores: &Scores, newreno: &Scores) -> Vec<String> {
    let gains = Paper::ALL.map(|paper| shown(&scores.gain_over(newreno, paper), 1));
    let (place, harm) = scores.worst_harm(newreno);
    let cost = format!("{} % ({})", shown(&harm, 1), PLACES[place].name);
    let mut cells = vec![format!("`{name}`")];
    cells.extend(gains);
    let average = format!("{:.1} %", scores.mean_harm(newreno));
    cells.extend([format!("{:.2}", scores.timeouts() / newreno.timeouts().max(1.0)), average, cost]);
    cells
}

fn table_of_singles(seen: &BTreeMap<String, Scores>) -> Table {
    let newreno = &seen["newreno"];
    let mut table = Table::new(
        "The catalogue, a part at a time, with profile `default`, gain over NewReno in per cent (few seeds: a first look):",
        &COLUMNS,
    );
    let mut all: Vec<_> =
        seen.iter().map(|(name, scores)| (scores.mean_gain(newreno), name, scores)).collect();
    all.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    for (_, name, scores) in all {
        table.row(row(name, scores, newreno));
    }
    table
}

/// Whether a proposal makes the sender of today better: like beside like, and seed by seed.
fn table_of_today(todays: &Scores, mut senders: Vec<(&String, &Scores)>) -> Table {
    let columns = [
        &["sender"],
        &Paper::ALL.map(Paper::cited)[..],
        &["timeouts / those of `linux`", "gains over `linux` in"],
    ];
    let columns = columns.concat();
    let mut table = Table::new(
        "The papers' own proposals with profile `linux`, gain over `linux`, the kernel's own sender, in per cent:",
        &columns,
    );
    senders.sort_by(|(_, a), (_, b)| b.mean_gain(todays).total_cmp(&a.mean_gain(todays)));
    for (name, scores) in senders {
        let mut cells = vec![format!("`{name}`")];
        cells.extend(Paper::ALL.map(|paper| shown(&scores.gain_over(todays, paper), 1)));
        cells.push(format!("{:.2}", scores.timeouts() / todays.timeouts().max(1.0)));
        cells.push(beaten(scores, &[todays]));
        table.row(cells);
    }
    table
}

/// The settings in which a sender gains over all `others`.
fn beaten(scores: &Scores, others: &[&Scores]) -> String {
    let beaten = Paper::ALL.into_iter().filter(|paper| scores.beats(others, *paper));
    beaten.map(Paper::cited).collect::<Vec<_>>().join(", ")
}

fn finding(
    finalists: &BTreeMap<String, Scores>,
    order: &[String],
    other_tables: [Table; 3],
    search_seeds: u32,
) -> Finding {
    let newreno = &finalists["newreno"];
    let against = proposed(finalists);
    let mut order: Vec<_> = order.iter().map(|name| (finalists[name].mean_gain(newreno), name)).collect();
    order.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut table = Table::new(
        "The finalists, the papers' own proposals, and what is in use, with profile `default` (`linux` with its own), gain over NewReno in per cent:",
        &[&COLUMNS[..], &["beats every proposal in"]].concat(),
    );
    let mut winners = Vec::new();
    for (_, name) in order {
        let scores = &finalists[name];
        let beats = |paper: &Paper| scores.beats(&against, *paper);
        let harm = scores.worst_harm(newreno).1.mean;
        if Paper::ALL.iter().filter(|paper| beats(paper)).count() >= ENOUGH && harm <= HARMLESS {
            winners.push((scores.margin(&against), name.clone()));
        }
        let mut cells = row(name, scores, newreno);
        cells.push(beaten(scores, &against));
        table.row(cells);
    }
    winners.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let verdict = match winners.first() {
        Some((_, name)) => format!(
            "`{name}` beats every paper's own proposal in at least {ENOUGH} of the five settings without costing a competing NewReno more than {HARMLESS} %."
        ),
        None => format!(
            "No recipe beats every paper's own proposal in {ENOUGH} of the five settings without costing a competing NewReno more than {HARMLESS} %: none is called `best`."
        ),
    };
    let mut choices = vec![
        format!("Each run is one endless transfer of 60 s (Inamura et al.: 25 s, a megabyte), and for the last column but one a NewReno beside it; two paths stand for each paper and count alike: {}.", names_of_places()),
        "All paths have a base station that marks ACKs and reports its loss rate, so that every proposal has what it asks for. Senders without a profile are `default` (a least timeout of 1 s), on the paths of Inamura et al. with the timer of Linux 2.2, whose timeouts the paper found spurious; `linux` and what has `@linux` behind its name have the kernel's timer, initial window and growth everywhere. The NewReno beside a sender is `default`. The receiver is a Linux one, with the paper's window.".to_owned(),
        format!("The search goes by {search_seeds} seeds, at each step from the {BEAM} best harmless recipes to all that have a part more, less or another; of parts that gain 3 % somewhere by themselves; better means: the fourth best of the five margins over the best of the papers' proposals. The first two tables are by other seeds."),
        "To beat means that the 95 % interval of the paired gain is above zero. The cost is of the goodput that a NewReno has beside another NewReno, at the path where it is highest.".to_owned(),
    ];
    choices.push("`rebate` learns the loss rate from the station; Ni et al. propose nothing, the judges that they examined stand in.".to_owned());
    let tables = [table].into_iter().chain(other_tables).collect();
    Finding { tables, choices, remarks: vec![verdict], ..Finding::default() }
}

fn names_of_places() -> String {
    PLACES
        .iter()
        .map(|place| format!("{}: {}", place.paper.cited(), place.name))
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, names_of_places};

    /// The runs take too long for a test.
    #[test]
    fn docs_reproduction_has_these_columns_and_places() {
        let made = include_str!("../../../../docs/reproduction.md");
        assert!(made.contains(&format!("\n| {} |", COLUMNS.join(" | "))), "other columns");
        assert!(made.contains(&format!("count alike: {}.\n", names_of_places())), "other places");
    }
}
