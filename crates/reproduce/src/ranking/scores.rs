//! Goodput and timeouts of a sender on each path, alone and with a competing NewReno.

use airtcp::sender::SenderSpec;
use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;

use super::paths::PATHS;
use crate::judge::across;
use crate::{Effort, Paper, mean};

/// Results of one sender by path, then by seed. Empty for paths without runs.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    /// Goodput of the sender alone, in bit/s.
    goodput: Vec<Vec<f64>>,
    timeouts: Vec<Vec<f64>>,
    /// Goodput of a competing NewReno, in bit/s.
    competitor: Vec<Vec<f64>>,
}

/// Runs every sender on every path, alone and with a competing NewReno. The first seed is `after` + 1.
pub(super) fn evaluate(effort: &Effort, after: u64, senders: &[String]) -> Result<Vec<Scores>, WorldError> {
    evaluate_at(effort, after, senders, &Vec::from_iter(0..PATHS.len()))
}

/// Like [`evaluate`], on the paths of one paper with the seeds from 1.
pub(super) fn evaluate_for(
    effort: &Effort,
    senders: &[String],
    paper: Paper,
) -> Result<Vec<Scores>, WorldError> {
    evaluate_at(effort, 0, senders, &Vec::from_iter(paths(paper)))
}

fn evaluate_at(
    effort: &Effort,
    after: u64,
    senders: &[String],
    paths: &[usize],
) -> Result<Vec<Scores>, WorldError> {
    const NAMES: &str = "goodput in bit/s, timeouts, and goodput of the last flow in bit/s";
    let newreno = spec("newreno");
    let mut plans = Vec::new();
    for sender in senders.iter().map(|name| spec(name)) {
        for path in paths.iter().map(|path| &PATHS[*path]) {
            plans.push(path.plan(&[&sender])?);
            plans.push(path.plan(&[&sender, &newreno])?);
        }
    }
    let seeded = |plan: &Run, seed: u64| Run { seed: seed + after, ..plan.clone() };
    let found = effort.sample_named(NAMES, &plans, seeded, |_, report| {
        let flow = &report.flows[0];
        let last = report.flows.last().map_or(0.0, |flow| flow.goodput_bit_per_s);
        (flow.goodput_bit_per_s, flow.counters.timeouts as f64, last)
    })?;
    let scores = found.chunks(2 * paths.len()).map(|runs| {
        let mut scores = Scores::default();
        for (path, pair) in paths.iter().zip(runs.chunks(2)) {
            let [alone, with_competitor] = [0, 1].map(|which| &pair[which]);
            scores.goodput[*path] = alone.iter().map(|run| run.0).collect();
            scores.timeouts[*path] = alone.iter().map(|run| run.1).collect();
            scores.competitor[*path] = with_competitor.iter().map(|run| run.2).collect();
        }
        scores
    });
    Ok(scores.collect())
}

impl Default for Scores {
    fn default() -> Self {
        let [goodput, timeouts, competitor] = [(); 3].map(|()| vec![Vec::new(); PATHS.len()]);
        Self { goodput, timeouts, competitor }
    }
}

fn spec(name: &str) -> SenderSpec {
    name.parse().expect("candidates are senders")
}

/// Indices of the paths of a paper.
pub(super) fn paths(paper: Paper) -> impl Iterator<Item = usize> {
    (0..PATHS.len()).filter(move |path| PATHS[*path].paper == paper)
}

impl Scores {
    /// Adds the results of the same sender on the paths of another paper.
    pub(super) fn add(&mut self, paper: Paper, mut more: Self) {
        for path in paths(paper) {
            self.goodput[path] = std::mem::take(&mut more.goodput[path]);
            self.timeouts[path] = std::mem::take(&mut more.timeouts[path]);
            self.competitor[path] = std::mem::take(&mut more.competitor[path]);
        }
    }

    /// The gain over `other` per seed, averaged over the paths of the paper with equal weight.
    pub(super) fn gain_over(&self, other: &Self, paper: Paper) -> Mean {
        let gains: Vec<_> =
            paths(paper).map(|path| gains(&self.goodput[path], &other.goodput[path])).collect();
        mean(&across(&gains))
    }

    pub(super) fn mean_gain(&self, other: &Self) -> f64 {
        mean(&Paper::ALL.map(|paper| self.gain_over(other, paper).mean)).mean
    }

    /// The share of its goodput that a NewReno loses if it competes with this sender instead of another NewReno. Per
    /// seed, averaged over the paths of the paper.
    pub(super) fn cost(&self, newreno: &Self, paper: Paper) -> Mean {
        let losses: Vec<_> = paths(paper)
            .map(|path| gains(&self.competitor[path], &newreno.competitor[path]))
            .map(|more| more.into_iter().map(|more| -more).collect())
            .collect();
        mean(&across(&losses))
    }

    /// [`Self::cost`], averaged over all papers.
    pub(super) fn mean_cost(&self, newreno: &Self) -> f64 {
        mean(&Paper::ALL.map(|paper| self.cost(newreno, paper).mean)).mean
    }

    /// The goodput on a path as a share of its upper bound. `capacities`: upper bounds of all paths in bit/s.
    pub(super) fn share(&self, path: usize, capacities: &[f64]) -> Mean {
        mean(&self.goodput[path].iter().map(|goodput| goodput / capacities[path]).collect::<Vec<_>>())
    }

    /// [`Self::share`], averaged over the paths of a paper.
    pub(super) fn share_of(&self, paper: Paper, capacities: &[f64]) -> f64 {
        mean(&paths(paper).map(|path| self.share(path, capacities).mean).collect::<Vec<_>>()).mean
    }

    /// Whether all goodputs are equal, which is the case if both send the same packets.
    pub(super) fn has_same_results(&self, other: &Self) -> bool {
        self.goodput == other.goodput && self.competitor == other.competitor
    }

    /// The number of timeouts in all runs without a competitor.
    pub(super) fn timeouts(&self) -> f64 {
        self.timeouts.iter().map(|path| path.iter().sum::<f64>()).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use airtcp_testkit::sample::{is_everything, sample, size};

    use super::*;
    use crate::ranking::candidates::LINUX;

    /// Results of two seeds that deviate by 1 bit/s from these means.
    pub(in crate::ranking) fn scores(goodput: [f64; 5], competitor: [f64; 5]) -> Scores {
        let by_path = |of: [f64; 5]| {
            let at = |paper: Paper| of[Paper::ALL.iter().position(|one| *one == paper).unwrap()];
            PATHS.iter().map(|path| vec![at(path.paper) - 1.0, at(path.paper) + 1.0]).collect()
        };
        Scores { goodput: by_path(goodput), timeouts: by_path([1.0; 5]), competitor: by_path(competitor) }
    }

    #[test]
    fn cost_is_goodput_lost_by_competing_newreno() {
        let newreno = scores([100.0; 5], [100.0; 5]);
        let greedy = scores([200.0; 5], [100.0, 80.0, 100.0, 100.0, 100.0]);
        assert!((greedy.cost(&newreno, Paper::Ni2002).mean - 0.2).abs() < 1e-9);
        assert!(greedy.cost(&newreno, Paper::Pan2004).mean.abs() < 1e-9);
        assert!((greedy.mean_cost(&newreno) - 0.04).abs() < 1e-9);
        assert!((greedy.gain_over(&newreno, Paper::Lai2013).mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn per_paper_evaluation_matches_full_evaluation() {
        let (effort, senders) = (Effort::new(1), ["newreno".to_owned()]);
        let newreno = evaluate(&effort, 0, &senders).unwrap().remove(0);
        assert_eq!(newreno.goodput.len(), PATHS.len());
        // A single run alone can be unlucky, but not on most paths.
        let both = newreno.goodput.iter().zip(&newreno.competitor);
        let less = both.filter(|(alone, with_competitor)| alone[0] > with_competitor[0]).count();
        assert!(less > PATHS.len() / 2, "two flows share the path of one: {newreno:?}");

        let mut parts = Scores::default();
        for paper in sample("papers", Paper::ALL, 2) {
            assert!(!newreno.has_same_results(&parts));
            parts.add(paper, evaluate_for(&effort, &senders, paper).unwrap().remove(0));
            for path in paths(paper) {
                let of = |scores: &Scores| {
                    [&scores.goodput, &scores.timeouts, &scores.competitor].map(|of| of[path].clone())
                };
                assert_eq!(of(&newreno), of(&parts), "{}", PATHS[path].name);
            }
        }
        assert_eq!(newreno.has_same_results(&parts), is_everything());
    }

    /// This includes recipes that know the ground truth and one without congestion control.
    #[test]
    fn goodput_never_exceeds_path_capacity() {
        let named = ["sack+oracle", "sack", "sack+pr+rebate", "sack+bbr", "sack+receiver-window", LINUX];
        let papers = size(&[Paper::Lai2013, Paper::Chandra2003][..], &Paper::ALL);
        let named = named[..size(2, named.len())].iter().map(|name| (*name).to_owned());
        let named: Vec<_> = named.collect();
        let mut found = vec![Scores::default(); named.len()];
        for paper in papers {
            let more = evaluate_for(&Effort::new(1), &named, *paper).unwrap();
            found.iter_mut().zip(more).for_each(|(scores, more)| scores.add(*paper, more));
        }
        let capacities: Vec<f64> = PATHS.iter().map(|path| path.capacity().unwrap()).collect();
        for (name, scores) in named.iter().zip(&found) {
            for path in papers.iter().flat_map(|paper| paths(*paper)) {
                let share = scores.goodput[path][0] / capacities[path];
                // The random losses of a run can be slightly below average.
                assert!(share <= 1.01, "{name}, {}: {share}", PATHS[path].name);
            }
        }
        for paper in [Paper::Lai2013, Paper::Chandra2003] {
            let [oracle, sack] = [&found[0], &found[1]].map(|scores| scores.share_of(paper, &capacities));
            assert!(oracle > 2.0 * sack, "the ground truth increases the share: {oracle} and {sack}");
        }
    }
}
