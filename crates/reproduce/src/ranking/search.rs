//! The search: from the best recipes to those that differ from them in one part, until none of these is better.

use std::collections::{BTreeMap, BTreeSet};

use airtcp_sim::world::WorldError;

use super::super::{Effort, Paper, Table};
use super::candidates::{BASES, CEILING, canonical, neighbours, parts};
use super::places::PLACES;
use super::scores::{Scores, evaluate_for, places};
use super::trial::Trial;
use super::{SEMIFINALISTS, run, runs};

/// The search goes on from so many recipes at each step.
pub(super) const BEAM: usize = 2;
const STEPS: usize = 6;
/// A part that gains more than this is useful; less may be chance.
pub(super) const USEFUL: f64 = 0.03;

/// What a recipe runs for one after the other. The runs for the last two take most of the time.
const PAPERS: [Paper; 5] = [Paper::P0, Paper::P2, Paper::P1, Paper::P3, Paper::P4];
/// So many recipes have their turn together: enough for all cores, and few enough that what they show counts for the others.
const TURN: usize = 24;

/// After about so many steps a search has come to its end.
const USUAL_STEPS: usize = 5;
/// By then it has tried so many times the recipes that it began with.
const TRIED: usize = 8;
/// Of the runs of those at all places it makes such a share.
const USUAL_SHARE: f64 = 0.55;

/// What a search has found.
pub(super) struct Search {
    /// Recipes that have run everywhere.
    pub(super) seen: BTreeMap<String, Scores>,
    /// Those that were given up before, because they were no good enough for the semifinal already.
    given_up: BTreeSet<String>,
    /// Of recipes that are tried for being near the best: how many, and at how many places together.
    tried: usize,
    at_places: usize,
}

/// A recipe that has run for some of the papers.
struct Attempt {
    recipe: String,
    scores: Scores,
    /// The first so many of [`PAPERS`].
    papers: usize,
    /// In their settings.
    lacks: f64,
}

impl Attempt {
    fn new(recipe: String) -> Self {
        Self { recipe, scores: Scores::default(), papers: 0, lacks: 0.0 }
    }
}

/// How many runs a search makes, about.
pub(super) fn forecast(seeds: u32, beginning: usize) -> u64 {
    runs(seeds, beginning) + (USUAL_SHARE * runs(seeds, (TRIED - 1) * beginning) as f64) as u64
}

/// How many recipes the search still tries, about, if this step tries so many: with each part that the best have more, it
/// can change one more.
fn still_tried(recipes: usize, step: usize) -> usize {
    (step..=USUAL_STEPS.max(step)).map(|later| recipes * (later + 1) / (step + 1)).sum()
}

impl Search {
    /// Runs what it begins with, everywhere.
    pub(super) fn begin(effort: &Effort, recipes: BTreeSet<String>) -> Result<Self, WorldError> {
        Ok(Self { seen: run(effort, 0, recipes)?, given_up: BTreeSet::new(), tried: 0, at_places: 0 })
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

    /// Changes one part of the best at each step, until that makes none better. `after`: runs that come after the search.
    pub(super) fn climb(&mut self, effort: &Effort, after: u64) -> Result<Table, WorldError> {
        let useful = self.useful();
        let mut steps = Table::new(
            "The search, step by step, with profile `default`:",
            &["step", "recipes tried", "the best so far", "what it lacks"],
        );
        let mut beam = best(&self.seen, BEAM);
        steps.row(self.step(0, &beam));
        for number in 1..=STEPS {
            let next: BTreeSet<_> = beam.iter().flat_map(|recipe| neighbours(recipe, &useful)).collect();
            let new = next.iter().filter(|name| !self.knows(name)).count();
            let still = runs(effort.seeds, still_tried(new, number));
            effort.expects((self.share() * still as f64) as u64 + after);
            self.look(next, |names, paper| evaluate_for(effort, names, paper))?;
            let better = best(&self.seen, BEAM);
            if better == beam {
                break;
            }
            beam = better;
            steps.row(self.step(number, &beam));
        }
        Ok(steps)
    }

    /// Of what the runs of new recipes at all places would be, the share that was made so far.
    fn share(&self) -> f64 {
        if self.tried == 0 { USUAL_SHARE } else { self.at_places as f64 / (self.tried * PLACES.len()) as f64 }
    }

    fn knows(&self, recipe: &str) -> bool {
        self.seen.contains_key(recipe) || self.given_up.contains(recipe)
    }

    /// Runs the recipes that are new, paper by paper, and first those that lack least so far. Who lacks more already than the
    /// last that the semifinal would take now is given up: no further setting makes that less, and what the semifinal takes
    /// only gets better. So what is found is the same as if all had run everywhere.
    fn look(
        &mut self,
        recipes: BTreeSet<String>,
        run: impl Fn(&[String], Paper) -> Result<Vec<Scores>, WorldError>,
    ) -> Result<(), WorldError> {
        let new = recipes.into_iter().filter(|name| !self.knows(name));
        let mut waiting: Vec<Attempt> = new.map(Attempt::new).collect();
        self.tried += waiting.len();
        while !waiting.is_empty() {
            let limit = self.limit();
            let hopeless = waiting.extract_if(.., |attempt| attempt.lacks > limit);
            self.given_up.extend(hopeless.map(|attempt| attempt.recipe));
            waiting.sort_by(|a, b| a.lacks.total_cmp(&b.lacks).then_with(|| a.recipe.cmp(&b.recipe)));
            // Each of them for one paper more: those that have come farthest first.
            for (papers, paper) in PAPERS.into_iter().enumerate().rev() {
                let turn = waiting.iter_mut().take(TURN);
                let turn = Vec::from_iter(turn.filter(|attempt| attempt.papers == papers));
                let names = Vec::from_iter(turn.iter().map(|attempt| attempt.recipe.clone()));
                self.at_places += names.len() * places(paper).count();
                for (attempt, scores) in turn.into_iter().zip(run(&names, paper)?) {
                    attempt.scores.add(paper, scores);
                    attempt.papers += 1;
                    let trial = Trial::of_papers(&PAPERS[..attempt.papers], &attempt.scores, &self.seen);
                    attempt.lacks = trial.lacks();
                }
            }
            let complete = waiting.extract_if(.., |attempt| attempt.papers == PAPERS.len());
            self.seen.extend(complete.map(|attempt| (attempt.recipe, attempt.scores)));
        }
        Ok(())
    }

    /// What the last lacks that the semifinal would take now.
    fn limit(&self) -> f64 {
        /// The order in which numbers are added up makes no recipe better or worse.
        const ROUNDING: f64 = 1e-9;
        let best = best(&self.seen, SEMIFINALISTS);
        let last = best.get(SEMIFINALISTS - 1);
        last.map_or(f64::INFINITY, |last| Trial::of(&self.seen[last], &self.seen).lacks() + ROUNDING)
    }

    fn step(&self, number: usize, beam: &[String]) -> [String; 4] {
        let name = beam.first().cloned().unwrap_or_default();
        let lacks = self.seen.get(&name).map_or(f64::NAN, |scores| Trial::of(scores, &self.seen).lacks());
        let tried = self.seen.len() + self.given_up.len();
        [number.to_string(), tried.to_string(), format!("`{name}`"), format!("{:.0} %", 100.0 * lacks)]
    }
}

/// Those that lack least of what is asked of `best`. Of several that do the same, the one with the shortest name is kept.
pub(super) fn best(seen: &BTreeMap<String, Scores>, count: usize) -> Vec<String> {
    let candidates = seen.iter().filter(|(name, _)| !CEILING.contains(&name.as_str()));
    let mut all: Vec<_> =
        candidates.map(|(name, scores)| (Trial::of(scores, seen).lacks(), name.clone())).collect();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
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

#[cfg(test)]
mod tests {
    use airtcp_testkit::sample::size;
    use airwire::rng::Stream;

    use super::super::candidates::proposals;
    use super::super::scores::tests::scores;
    use super::*;

    /// What a recipe reaches in a world, by its name alone. Many do the same as others.
    fn drawn(world: u64, recipe: &str) -> Scores {
        let like = Stream::new(world, recipe).below(150);
        let mut stream = Stream::new(world, &format!("like {like}"));
        let mut draw = || [(); 5].map(|()| 800.0 + 400.0 * stream.unit());
        scores(draw(), draw())
    }

    #[test]
    fn who_is_given_up_would_not_have_been_chosen() {
        for world in 0..size(2, 30) {
            let run = |recipe: &str| (recipe.to_owned(), drawn(world, recipe));
            let mut all: BTreeMap<_, _> = proposals().into_iter().chain(["newreno"]).map(run).collect();
            let mut search = Search { seen: all.clone(), given_up: BTreeSet::new(), tried: 0, at_places: 0 };
            for step in 1..=4 {
                let recipes: BTreeSet<_> = (0..100 * step).map(|number| format!("recipe {number}")).collect();
                all.extend(recipes.iter().map(|recipe| run(recipe)));
                let found = |names: &[String], _| Ok(names.iter().map(|name| run(name).1).collect());
                search.look(recipes, found).unwrap();
                assert_eq!(search.seen.len() + search.given_up.len(), all.len());
                assert_eq!(best(&search.seen, SEMIFINALISTS), best(&all, SEMIFINALISTS), "world {world}");
            }
            assert!(!search.given_up.is_empty() && search.share() < 1.0);
        }
    }

    #[test]
    fn what_the_search_still_tries_is_told_by_the_step_that_it_takes() {
        // The recorded search tried 60, 112, 159 and 172, and one step more.
        assert_eq!(still_tried(60, 1), 60 + 90 + 120 + 150 + 180);
        assert_eq!(still_tried(172, 4), 172 + 206);
        // It goes on for longer than usual.
        assert_eq!(still_tried(100, USUAL_STEPS + 1), 100);
    }
}
