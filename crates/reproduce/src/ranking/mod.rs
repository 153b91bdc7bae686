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

use self::candidates::{CEILING, KNOWN, TODAYS, proposals, proposals_today, singles};
use self::places::PLACES;
use self::scores::{Scores, evaluate};
use self::search::{BEAM, Search, USEFUL, best};
use self::trial::HARMLESS;
use crate::{Effort, Figure, Finding, Paper, Seeds};

pub(super) const FIGURES: &[Figure] = &[Figure {
    id: "ranking",
    paper: Paper::Every,
    title: "recipes from the whole catalogue on the paths of all five papers",
    run: ranking,
    seeds: Seeds::Search,
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
        format!(
            "Each recipe runs alone, and again together with a competing NewReno to measure its cost. A run \
             is an endless transfer of 60 s (Inamura et al.: 25 s, about the time of a megabyte). The paths \
             come from the papers' own figures, and the paths of one paper have equal weight: {}.",
            names_of_places()
        ),
        "Segment size, receive window, ACK policy, clock granularity and minimum timeout also come from the \
         paper's figures. For Chandra et al., so do the minimum ssthresh of 1 and the absence of timestamps. \
         The rest is profile `default`. `linux` and the recipes with `@linux` have the timer, initial window \
         and window growth of the Linux kernel on all paths. The competing NewReno has profile `default` \
         with the paper's values."
            .to_owned(),
        "All paths have a base station that marks ACKs and reports its loss rate, so every proposal has the \
         information that it needs. On the narrow backbone of Ni et al., a congested wire follows the radio \
         link, and the station attributes the drops of this wire to the radio. `rebate` gets the loss rate \
         from the station. Ni et al. do not propose an algorithm, so the judges that they examined are used \
         as their proposals."
            .to_owned(),
        "Capacity × (1 − loss) is the payload that the narrowest link could carry during the run (without 40 \
         bytes of headers per packet), minus the losses on this link and after it. A sender's share is the \
         payload that arrives in order. The bound is calculated from the scenario, without a run. The \
         constant voice traffic of Pan et al. is subtracted, because no queue drops it. The on/off sources \
         of Ni et al. are not subtracted, because a sender can displace them in the queue; they offer 333 \
         kbit/s to the first wire of 500 kbit/s. On W-CDMA, damaged blocks are subtracted. Stalls of the RLC \
         window, which occur where status reports are held back, are not."
            .to_owned(),
        "`oracle` knows from the path why each packet was lost. It exists only in virtual time and is not a \
         candidate. `newreno+oracle` is the fair ceiling for a proposal that only judges losses and \
         retransmits like NewReno. The ceiling for all recipes is the best of the three `oracle` recipes in \
         each setting, because other recipes detect and repair losses better than NewReno. This is a ceiling \
         for attribution only: a sender that keeps more data in flight than AIMD can reach a higher goodput, \
         at the expense of other flows."
            .to_owned(),
        format!(
            "The search uses {search} seeds. Each step continues with the {BEAM} best recipes and tries all \
             recipes with one part added, removed or replaced. It uses only parts that gain more than {:.0} \
             % on their own in at least one setting. The search minimizes the shortfall of a recipe. The \
             shortfall adds up, over the five settings, the goodput by which the recipe is below the paper's \
             best proposal, and the loss of a competing NewReno beyond {limit} %. The best {SEMIFINALISTS} \
             recipes run again with {semifinal} other seeds, and the best {FINALISTS} of them with {last} \
             further seeds. So the seeds that judge a recipe did not select it.",
            100.0 * USEFUL
        ),
        format!(
            "A recipe beats a paper's own proposals if it gains over each of them in the paper's own \
             setting. It is harmless if a competing NewReno loses at most {limit} % of the goodput that it \
             has when it competes with another NewReno, in each of the five settings. As for all claims, the \
             interval of the paired differences decides both."
        ),
    ]
}

fn names_of_places() -> String {
    let names = PLACES.iter().map(|place| format!("{}: {}", place.paper.cited(), place.name));
    names.collect::<Vec<_>>().join("; ")
}
