//! The ranking: recipes from the whole catalogue, compared on paths of all five papers.
//!
//! First, each part is tried on its own. Then a beam search starts from the best of these recipes and changes one
//! part per step. The best recipes of the search run again with other seeds. The best of these run with yet other
//! seeds, together with the papers' own proposals. So the printed results come from seeds that were not used for any
//! selection.

mod candidates;
mod capacity;
mod places;
mod scores;
mod search;
mod tables;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::world::WorldError;

use self::candidates::{KNOWN, ORACLES, TODAYS, proposals, proposals_today, singles};
use self::places::PLACES;
use self::scores::{Scores, evaluate};
use self::search::{BEAM, Search, USEFUL, best};
use self::trial::HARMLESS;
use crate::{Effort, Figure, Finding, Paper, Seeds};

pub(super) const FIGURES: &[Figure] = &[Figure {
    seeds: Seeds::Search,
    ..Figure::new(
        Paper::Every,
        "ranking",
        "recipes from the whole catalogue on the paths of all five papers",
        ranking,
    )
}];

/// The search tries hundreds of recipes, so it uses only one seed in this number.
const SEARCH: u32 = 10;
/// The number of recipes from the search that run again to find the finalists.
const SEMIFINALISTS: usize = 24;
/// The semifinal uses one seed in this number.
const SEMIFINAL: u32 = 3;
const FINALISTS: usize = 8;
/// The seeds of the semifinal are above this number, where the search has used none.
const OTHER: u64 = 1000;
/// The seeds of the final are above this number.
const FRESH: u64 = 2000;

/// The approximate number of runs. The end of a search cannot be predicted.
pub(super) fn forecast(seeds: u32) -> u64 {
    search::forecast(for_search(seeds), beginning().len()) + after_search(seeds)
}

/// Runs one recipe on all paths.
pub(super) fn sample(effort: &Effort) -> Result<(), WorldError> {
    evaluate(&effort.at_most(1), 0, &["newreno".to_owned()]).map(drop)
}

fn for_search(seeds: u32) -> u32 {
    (seeds / SEARCH).max(2).min(seeds)
}

fn for_semifinal(seeds: u32) -> u32 {
    (seeds / SEMIFINAL).max(2).min(seeds)
}

/// The number of runs for this number of recipes: on each path, alone and with a competing NewReno.
fn runs(seeds: u32, recipes: usize) -> u64 {
    u64::from(seeds) * (2 * PLACES.len() * recipes) as u64
}

/// The maximum number of runs of the semifinal and the final.
fn after_search(seeds: u32) -> u64 {
    let named = named().len();
    runs(for_semifinal(seeds), SEMIFINALISTS + named)
        + runs(seeds, FINALISTS + named + proposals_today().len())
}

/// The recipes that the search begins with.
fn beginning() -> BTreeSet<String> {
    singles().into_iter().chain(proposals().into_iter().map(str::to_owned)).collect()
}

/// The recipes that are always in the final.
fn named() -> Vec<String> {
    KNOWN.into_iter().chain(proposals()).chain(ORACLES).map(str::to_owned).collect()
}

fn ranking(effort: &Effort) -> Result<Finding, WorldError> {
    let search = effort.at_most(for_search(effort.seeds));
    let after = after_search(effort.seeds);
    let mut found = Search::begin(&search, beginning())?;
    let (parts, idle) = tables::of_parts(&found.seen, search.seeds);
    let steps = found.climb(&search, after)?;

    effort.expects(after);
    let named = named();
    let again = effort.at_most(for_semifinal(effort.seeds));
    let semifinal: BTreeSet<_> = best(&found.seen, SEMIFINALISTS).into_iter().chain(named.clone()).collect();
    let semifinal = run(&again, OTHER, semifinal)?;
    let chosen = best(&semifinal, FINALISTS).into_iter();
    let finalists = run(effort, FRESH, chosen.chain(named).collect())?;
    let today = run(effort, FRESH, proposals_today().into_iter().collect())?;

    let most = PLACES.iter().map(|place| place.most()).collect::<Result<Vec<_>, _>>()?;
    let tables = vec![
        tables::of_finalists(&finalists),
        tables::of_shares(&finalists, &most),
        tables::of_today(&finalists[TODAYS], &today),
        steps,
        parts,
    ];
    let mut remarks = tables::verdict(&finalists, &most, search.seeds);
    remarks.push(idle);
    let choices = choices(search.seeds, again.seeds, effort.seeds);
    Ok(Finding { tables, choices, remarks, ..Finding::default() })
}

fn run(effort: &Effort, after: u64, names: BTreeSet<String>) -> Result<BTreeMap<String, Scores>, WorldError> {
    let names: Vec<String> = names.into_iter().collect();
    let scores = evaluate(effort, after, &names)?;
    Ok(names.into_iter().zip(scores).collect())
}

/// The choices, with these numbers of seeds.
fn choices(search: u32, semifinal: u32, last: u32) -> Vec<String> {
    let values = [
        ("{paths}", names_of_places()),
        ("{limit}", (100.0 * HARMLESS).to_string()),
        ("{search}", search.to_string()),
        ("{beam}", BEAM.to_string()),
        ("{useful}", format!("{:.0}", 100.0 * USEFUL)),
        ("{semifinalists}", SEMIFINALISTS.to_string()),
        ("{semifinal}", semifinal.to_string()),
        ("{finalists}", FINALISTS.to_string()),
        ("{last}", last.to_string()),
    ];
    let filled = |text: String| values.iter().fold(text, |text, (name, value)| text.replace(name, value));
    Paper::Every.own_choices("ranking").into_iter().map(filled).collect()
}

fn names_of_places() -> String {
    let names = PLACES.iter().map(|place| format!("{}: {}", place.paper.cited(), place.name));
    names.collect::<Vec<_>>().join("; ")
}
