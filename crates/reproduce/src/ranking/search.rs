//! The search: each step tries all recipes that differ from the best ones in one part. It ends when none is better.

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::world::WorldError;

use super::candidates::{BASES, ORACLES, canonical, neighbours, parts};
use super::paths::PATHS;
use super::scores::{Scores, evaluate_for, paths};
use super::trial::Trial;
use super::{SEMIFINALISTS, run, runs};
use crate::{Effort, Paper, Table};

/// The number of recipes that are kept for the next step of the search.
pub(super) const BEAM: usize = 2;
const STEPS: usize = 6;
/// A part is useful if it gains more than this. A smaller gain can be chance.
pub(super) const USEFUL: f64 = 0.03;

/// The order in which a recipe runs on the paths of the papers. The runs for the last two take most of the time.
const PAPERS: [Paper; 5] =
    [Paper::Pan2004, Paper::Inamura2009, Paper::Ni2002, Paper::Lai2013, Paper::Chandra2003];
/// The number of recipes that run together: enough for all cores, and few enough that their results can rule out
/// others.
const BATCH: usize = 24;

/// The usual number of steps until a search ends.
const USUAL_STEPS: usize = 5;
/// The number of recipes that a search with this number of steps tries, as a multiple of the first recipes.
const TRIED: usize = 8;
/// The search makes about this share of all runs. It gives up some recipes before they have run on all paths.
const USUAL_SHARE: f64 = 0.55;

/// Results of a search.
pub(super) struct Search {
    /// Recipes that have run on all paths.
    pub(super) seen: BTreeMap<String, Scores>,
    /// Recipes that were given up before, because they cannot reach the semifinal.
    given_up: BTreeSet<String>,
    /// The number of recipes that were tried because they are similar to the best ones.
    tried: usize,
    /// The total number of paths that these recipes have run on.
    paths_run: usize,
}

/// A recipe that has run on the paths of some papers.
struct Attempt {
    recipe: String,
    scores: Scores,
    /// The number of these papers: the first ones of [`PAPERS`].
    papers: usize,
    /// Shortfall in the settings of these papers.
    shortfall: f64,
}

impl Attempt {
    fn new(recipe: String) -> Self {
        Self { recipe, scores: Scores::default(), papers: 0, shortfall: 0.0 }
    }
}

/// The approximate number of runs of a search.
pub(super) fn forecast(seeds: u32, first_recipes: usize) -> u64 {
    runs(seeds, first_recipes) + (USUAL_SHARE * runs(seeds, (TRIED - 1) * first_recipes) as f64) as u64
}

/// The approximate number of recipes that the search still tries, if step number `step` tries `recipes`. With every
/// step, the best recipes have one more part that can be changed.
fn remaining_trials(recipes: usize, step: usize) -> usize {
    (step..=USUAL_STEPS.max(step)).map(|later| recipes * (later + 1) / (step + 1)).sum()
}

impl Search {
    /// Runs the first recipes on all paths.
    pub(super) fn begin(effort: &Effort, recipes: BTreeSet<String>) -> Result<Self, WorldError> {
        Ok(Self { seen: run(effort, 0, recipes)?, given_up: BTreeSet::new(), tried: 0, paths_run: 0 })
    }

    /// The parts that make a base better in at least one setting; the search tries no others.
    fn useful(&self) -> Vec<&'static str> {
        let helps = |part: &&'static str| {
            BASES.into_iter().any(|base| {
                let with = canonical(&format!("{base}+{part}")).and_then(|name| self.seen.get(&name));
                with.is_some_and(|with| {
                    Paper::ALL.into_iter().any(|paper| with.gain_over(&self.seen[base], paper).mean > USEFUL)
                })
            })
        };
        parts().filter(helps).collect()
    }

    /// Changes one part of the best recipes per step, until no change is better. `after`: number of runs after the
    /// search.
    pub(super) fn climb(&mut self, effort: &Effort, after: u64) -> Result<Table, WorldError> {
        let useful = self.useful();
        let mut steps = Table::new(
            "Steps of the search, with profile `default` (shortfall: see Choices)",
            &["step", "recipes tried", "best recipe so far", "its shortfall"],
        );
        let mut beam = best(&self.seen, BEAM);
        steps.row(self.step(0, &beam));
        for number in 1..=STEPS {
            let next: BTreeSet<_> = beam.iter().flat_map(|recipe| neighbours(recipe, &useful)).collect();
            let new = next.iter().filter(|name| !self.knows(name)).count();
            let remaining = runs(effort.seeds, remaining_trials(new, number));
            effort.expects((self.share() * remaining as f64) as u64 + after);
            self.evaluate_new(next, |names, paper| evaluate_for(effort, names, paper))?;
            let better = best(&self.seen, BEAM);
            if better == beam {
                break;
            }
            beam = better;
            steps.row(self.step(number, &beam));
        }
        Ok(steps)
    }

    /// The number of runs of the new recipes so far, as a share of the number of runs on all paths.
    fn share(&self) -> f64 {
        if self.tried == 0 { USUAL_SHARE } else { self.paths_run as f64 / (self.tried * PATHS.len()) as f64 }
    }

    fn knows(&self, recipe: &str) -> bool {
        self.seen.contains_key(recipe) || self.given_up.contains(recipe)
    }

    /// Runs the new recipes paper by paper, those with the smallest shortfall so far first. A recipe is given up if
    /// its shortfall exceeds the shortfall of the last recipe in the current semifinal: further settings cannot
    /// reduce a shortfall, and the semifinal only improves. So the result is the same as if all recipes had run on
    /// all paths.
    fn evaluate_new(
        &mut self,
        recipes: BTreeSet<String>,
        run: impl Fn(&[String], Paper) -> Result<Vec<Scores>, WorldError>,
    ) -> Result<(), WorldError> {
        let new = recipes.into_iter().filter(|name| !self.knows(name));
        let mut waiting: Vec<Attempt> = new.map(Attempt::new).collect();
        self.tried += waiting.len();
        while !waiting.is_empty() {
            let limit = self.limit();
            let hopeless = waiting.extract_if(.., |attempt| attempt.shortfall > limit);
            self.given_up.extend(hopeless.map(|attempt| attempt.recipe));
            waiting.sort_by(|a, b| a.shortfall.total_cmp(&b.shortfall).then_with(|| a.recipe.cmp(&b.recipe)));
            // Each recipe runs on the paths of one more paper. Recipes with the most finished papers come first.
            for (papers, paper) in PAPERS.into_iter().enumerate().rev() {
                let batch = waiting.iter_mut().take(BATCH);
                let batch = Vec::from_iter(batch.filter(|attempt| attempt.papers == papers));
                let names = Vec::from_iter(batch.iter().map(|attempt| attempt.recipe.clone()));
                self.paths_run += names.len() * paths(paper).count();
                for (attempt, scores) in batch.into_iter().zip(run(&names, paper)?) {
                    attempt.scores.add(paper, scores);
                    attempt.papers += 1;
                    let trial = Trial::of_papers(&PAPERS[..attempt.papers], &attempt.scores, &self.seen);
                    attempt.shortfall = trial.shortfall();
                }
            }
            let complete = waiting.extract_if(.., |attempt| attempt.papers == PAPERS.len());
            self.seen.extend(complete.map(|attempt| (attempt.recipe, attempt.scores)));
        }
        Ok(())
    }

    /// Shortfall of the last recipe in the current semifinal.
    fn limit(&self) -> f64 {
        /// The result must not depend on the order of additions.
        const ROUNDING: f64 = 1e-9;
        let best = best(&self.seen, SEMIFINALISTS);
        let last = best.get(SEMIFINALISTS - 1);
        last.map_or(f64::INFINITY, |last| Trial::of(&self.seen[last], &self.seen).shortfall() + ROUNDING)
    }

    fn step(&self, number: usize, beam: &[String]) -> [String; 4] {
        let name = beam.first().cloned().unwrap_or_default();
        let shortfall =
            self.seen.get(&name).map_or(f64::NAN, |scores| Trial::of(scores, &self.seen).shortfall());
        let tried = self.seen.len() + self.given_up.len();
        [number.to_string(), tried.to_string(), format!("`{name}`"), format!("{:.0} %", 100.0 * shortfall)]
    }
}

/// The recipes with the smallest shortfall. If several have the same results, only the one with the shortest name is
/// kept.
pub(super) fn best(seen: &BTreeMap<String, Scores>, count: usize) -> Vec<String> {
    let candidates = seen.iter().filter(|(name, _)| !ORACLES.contains(&name.as_str()));
    let mut all: Vec<_> =
        candidates.map(|(name, scores)| (Trial::of(scores, seen).shortfall(), name.clone())).collect();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut chosen: Vec<String> = Vec::new();
    for (_, name) in all {
        let same = chosen.iter().position(|other| seen[other].has_same_results(&seen[&name]));
        match same {
            Some(index) if name.len() < chosen[index].len() => chosen[index] = name,
            Some(_) => {}
            None if chosen.len() < count => chosen.push(name),
            None => break,
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use airtcp_testkit::sample::size;
    use airwire::rng::Stream;

    use super::*;
    use crate::ranking::candidates::proposals;
    use crate::ranking::scores::tests::scores;

    /// Random results of a recipe, determined by `world` and its name. Many recipes have the same results.
    fn drawn(world: u64, recipe: &str) -> Scores {
        let like = Stream::new(world, recipe).below(150);
        let mut stream = Stream::new(world, &format!("like {like}"));
        let mut draw = || [(); 5].map(|()| 800.0 + 400.0 * stream.unit());
        scores(draw(), draw())
    }

    #[test]
    fn abandoned_recipes_are_never_among_best() {
        for world in 0..size(2, 30) {
            let run = |recipe: &str| (recipe.to_owned(), drawn(world, recipe));
            let mut all: BTreeMap<_, _> = proposals().into_iter().chain(["newreno"]).map(run).collect();
            let mut search = Search { seen: all.clone(), given_up: BTreeSet::new(), tried: 0, paths_run: 0 };
            for step in 1..=4 {
                let recipes: BTreeSet<_> = (0..100 * step).map(|number| format!("recipe {number}")).collect();
                all.extend(recipes.iter().map(|recipe| run(recipe)));
                let found = |names: &[String], _| Ok(names.iter().map(|name| run(name).1).collect());
                search.evaluate_new(recipes, found).unwrap();
                assert_eq!(search.seen.len() + search.given_up.len(), all.len());
                assert_eq!(best(&search.seen, SEMIFINALISTS), best(&all, SEMIFINALISTS), "world {world}");
            }
            assert!(!search.given_up.is_empty() && search.share() < 1.0);
        }
    }

    #[test]
    fn remaining_trials_are_estimated_from_search_step() {
        // The recorded search tried 60, 112, 159 and 172 recipes, and took one more step.
        assert_eq!(remaining_trials(60, 1), 60 + 90 + 120 + 150 + 180);
        assert_eq!(remaining_trials(172, 4), 172 + 206);
        // The search takes more steps than usual.
        assert_eq!(remaining_trials(100, USUAL_STEPS + 1), 100);
    }
}
