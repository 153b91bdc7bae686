//! The ranking: recipes from the whole catalogue, compared on paths of all five papers.
//!
//! First, each part is tried on its own. Then a beam search starts from the best of these recipes and changes one
//! part per step. The best recipes of the search run again with other seeds. The best of these run with yet other
//! seeds, together with the papers' own proposals. So the seeds of the printed results were not used for any
//! selection.

mod candidates;
mod capacity;
mod paths;
mod scores;
mod search;
mod tables;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::world::WorldError;

use self::candidates::{KNOWN, LINUX, ORACLES, proposals, proposals_as_linux, singles};
use self::paths::PATHS;
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
const SEARCH_DIVISOR: u32 = 10;
/// The number of recipes from the search that run again to find the finalists.
const SEMIFINALISTS: usize = 24;
/// The semifinal uses one seed in this number.
const SEMIFINAL_DIVISOR: u32 = 3;
const FINALISTS: usize = 8;
/// The seeds of the semifinal are above this number, where the search has used none.
const SEMIFINAL_SEEDS_AFTER: u64 = 1000;
/// The seeds of the final are above this number.
const FINAL_SEEDS_AFTER: u64 = 2000;

/// The approximate number of runs. The end of a search cannot be predicted.
pub(super) fn forecast(seeds: u32) -> u64 {
    search::forecast(search_seeds(seeds), first_recipes().len()) + after_search(seeds)
}

/// Runs one recipe on all paths.
pub(super) fn sample(effort: &Effort) -> Result<(), WorldError> {
    evaluate(&effort.at_most(1), 0, &["newreno".to_owned()]).map(drop)
}

fn search_seeds(seeds: u32) -> u32 {
    (seeds / SEARCH_DIVISOR).max(2).min(seeds)
}

fn semifinal_seeds(seeds: u32) -> u32 {
    (seeds / SEMIFINAL_DIVISOR).max(2).min(seeds)
}

/// The number of runs for this number of recipes: on each path, alone and with a competing NewReno.
fn runs(seeds: u32, recipes: usize) -> u64 {
    u64::from(seeds) * (2 * PATHS.len() * recipes) as u64
}

/// The maximum number of runs of the semifinal and the final.
fn after_search(seeds: u32) -> u64 {
    let in_every_final = in_every_final().len();
    runs(semifinal_seeds(seeds), SEMIFINALISTS + in_every_final)
        + runs(seeds, FINALISTS + in_every_final + proposals_as_linux().len())
}

/// The first recipes of the search.
fn first_recipes() -> BTreeSet<String> {
    singles().into_iter().chain(proposals().into_iter().map(str::to_owned)).collect()
}

/// The recipes that are always in the final.
fn in_every_final() -> Vec<String> {
    KNOWN.into_iter().chain(proposals()).chain(ORACLES).map(str::to_owned).collect()
}

fn ranking(effort: &Effort) -> Result<Finding, WorldError> {
    let search = effort.at_most(search_seeds(effort.seeds));
    let after = after_search(effort.seeds);
    let mut found = Search::begin(&search, first_recipes())?;
    let (parts, without_effect) = tables::of_parts(&found.seen, search.seeds);
    let steps = found.climb(&search, after)?;

    effort.expects(after);
    let in_every_final = in_every_final();
    let again = effort.at_most(semifinal_seeds(effort.seeds));
    let semifinal: BTreeSet<_> =
        best(&found.seen, SEMIFINALISTS).into_iter().chain(in_every_final.clone()).collect();
    let semifinal = run(&again, SEMIFINAL_SEEDS_AFTER, semifinal)?;
    let chosen = best(&semifinal, FINALISTS).into_iter();
    let finalists = run(effort, FINAL_SEEDS_AFTER, chosen.chain(in_every_final).collect())?;
    let today = run(effort, FINAL_SEEDS_AFTER, proposals_as_linux().into_iter().collect())?;

    let capacities = PATHS.iter().map(|path| path.capacity()).collect::<Result<Vec<_>, _>>()?;
    let tables = vec![
        tables::of_finalists(&finalists),
        tables::of_shares(&finalists, &capacities),
        tables::of_proposals_as_linux(&finalists[LINUX], &today),
        steps,
        parts,
    ];
    let mut remarks = tables::verdict(&finalists, &capacities, search.seeds);
    remarks.push(without_effect);
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
        ("{paths}", names_of_paths()),
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

fn names_of_paths() -> String {
    let names = PATHS.iter().map(|path| format!("{}: {}", path.paper.cited(), path.name));
    names.collect::<Vec<_>>().join("; ")
}
