//! Which recipe wins: the whole catalogue, and combinations of its parts, on paths of all five papers.
//!
//! First every part is tried by itself. Then a beam search starts from the best of these and changes one part at each
//! step. The best that it found run again with other seeds, and the best of these beside the papers' own proposals with
//! yet others: what is printed of them is by seeds that have chosen nothing.

mod candidates;
mod capacity;
mod places;
mod scores;
mod search;
mod tables;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::world::WorldError;

use self::candidates::{CEILING, KNOWN, TODAYS, proposals, proposals_today, singles};
use self::places::PLACES;
use self::scores::{Scores, evaluate};
use self::search::{BEAM, Search, USEFUL, best};
use self::trial::HARMLESS;
use super::{Effort, Figure, Finding, Paper, Seeds};

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "ranking",
    paper: Paper::Every,
    title: "the whole catalogue on all papers' paths",
    run: ranking,
    seeds: Seeds::Search,
}];

/// The search tries hundreds of recipes, so it runs one seed in so many.
const SEARCH: u32 = 10;
/// So many of the best that the search found run again, one seed in so many, to find the finalists.
const SEMIFINALISTS: usize = 24;
const SEMIFINAL: u32 = 3;
const FINALISTS: usize = 8;
/// Seeds above these have not been used before.
const OTHER: u64 = 1000;
const FRESH: u64 = 2000;

/// How many runs the ranking makes, about: nobody knows where a search ends.
pub(super) fn forecast(seeds: u32) -> u64 {
    search::forecast(for_search(seeds), beginning().len()) + after_search(seeds)
}

/// One recipe at all places.
pub(super) fn sample(effort: &Effort) -> Result<(), WorldError> {
    evaluate(&effort.at_most(1), 0, &["newreno".to_owned()]).map(drop)
}

fn for_search(seeds: u32) -> u32 {
    (seeds / SEARCH).max(2).min(seeds)
}

fn for_semifinal(seeds: u32) -> u32 {
    (seeds / SEMIFINAL).max(2).min(seeds)
}

/// Of so many recipes: alone and beside a NewReno at each place.
fn runs(seeds: u32, recipes: usize) -> u64 {
    u64::from(seeds) * (2 * PLACES.len() * recipes) as u64
}

/// The most that the semifinal and the final make.
fn after_search(seeds: u32) -> u64 {
    let named = named().len();
    runs(for_semifinal(seeds), SEMIFINALISTS + named)
        + runs(seeds, FINALISTS + named + proposals_today().len())
}

/// What the search begins with.
fn beginning() -> BTreeSet<String> {
    singles().into_iter().chain(proposals().into_iter().map(str::to_owned)).collect()
}

/// What the final has in any case.
fn named() -> Vec<String> {
    KNOWN.into_iter().chain(proposals()).chain(CEILING).map(str::to_owned).collect()
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
    let mut remarks = tables::verdict(&finalists, &most);
    remarks.push(idle);
    let choices = choices(search.seeds, again.seeds, effort.seeds);
    Ok(Finding { tables, choices, remarks, ..Finding::default() })
}

fn run(effort: &Effort, after: u64, names: BTreeSet<String>) -> Result<BTreeMap<String, Scores>, WorldError> {
    let names: Vec<String> = names.into_iter().collect();
    let scores = evaluate(effort, after, &names)?;
    Ok(names.into_iter().zip(scores).collect())
}

fn choices(search: u32, semifinal: u32, last: u32) -> Vec<String> {
    let limit = 100.0 * HARMLESS;
    vec![
        format!("Each run is one endless transfer of 60 s (Inamura et al.: 25 s, a megabyte), and for the cost a NewReno beside it. The settings are the papers' own figures' paths, which count alike within a paper: {}.", names_of_places()),
        "Segments, the receiver's window and ACKs, the clock and the least timeout are those of the paper's figures, too, and for Chandra et al. the least ssthresh of 1 and no timestamps; the rest is profile `default`. `linux` and what has `@linux` behind its name have the kernel's timer, initial window and growth everywhere. The NewReno beside a sender has no profile of its own.".to_owned(),
        "All paths have a base station that marks ACKs and reports its loss rate, so that every proposal has what it asks for. On the narrow backbone of Ni et al. a congested wire follows the radio: what it drops looks to the station like the radio's. `rebate` learns the loss rate from the station; Ni et al. propose nothing, the judges that they examined stand in.".to_owned(),
        "Capacity × (1 − loss) is the data (without 40 octets of headers in each packet) that the narrowest link could carry in the time of the run, less what is damaged there and behind it; what a sender carries are the octets of data that arrive in order. It is reckoned from the scenario, without a run. The constant voice of Pan et al. is taken off, for nothing drops it; sources that come and go (Ni et al.) are not, for a sender can push them out of the queue, and they offer 333 kbit/s of 500 on the first wire. Over W-CDMA the blocks that are damaged are taken off; RLC's window stalls, too, where reports are held back, and that is not.".to_owned(),
        "`oracle` is told by the path why each packet was lost, in virtual time only, and is no candidate. The fair ceiling of a proposal that only judges losses and repairs like NewReno is `newreno+oracle`; that of all recipes is the best of the three in each setting, as others repair and detect better than NewReno does. It is a ceiling of attribution: a window that keeps more in flight than AIMD does can carry more, and takes it from others.".to_owned(),
        format!("The search goes by {search} seeds, at each step from the {BEAM} best recipes to all that have a part more, less or another; of parts that gain {:.0} % somewhere by themselves. It makes small what a recipe lacks: what the paper's proposals have more in their settings, and what it costs a NewReno beyond {limit} %, added up. {SEMIFINALISTS} of these run with {semifinal} other seeds, the best {FINALISTS} of them with {last} others again: no seed that has chosen a recipe judges it.", 100.0 * USEFUL),
        format!("To beat a paper's own proposals is to gain over each of them in the paper's own setting; to be harmless, that a NewReno loses no more than {limit} % of what it has beside another NewReno, in each of the five settings. Both go by the interval of paired differences, as all claims here do."),
    ]
}

fn names_of_places() -> String {
    let names = PLACES.iter().map(|place| format!("{}: {}", place.paper.cited(), place.name));
    names.collect::<Vec<_>>().join("; ")
}
