//! How well a sender does at each place, alone and beside a NewReno.

use airtcp::sender::SenderSpec;
use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;

use super::super::{Effort, Judged, Paper, mean};
use super::places::PLACES;

/// What one sender reached, by place and seed.
#[derive(Clone, Debug)]
pub(super) struct Scores {
    goodput: Vec<Vec<f64>>,
    timeouts: Vec<Vec<f64>>,
    /// Goodput of a NewReno beside it.
    neighbour: Vec<Vec<f64>>,
}

/// Runs every sender at every place, alone and beside a NewReno. The first seed is the one after `after`.
pub(super) fn evaluate(effort: &Effort, after: u64, senders: &[String]) -> Result<Vec<Scores>, WorldError> {
    let newreno = spec("newreno");
    let mut plans = Vec::new();
    for sender in senders.iter().map(|name| spec(name)) {
        for place in &PLACES {
            plans.push(place.plan(&[&sender])?);
            plans.push(place.plan(&[&sender, &newreno])?);
        }
    }
    let seeded = |plan: &Run, seed: u64| Run { seed: seed + after, ..plan.clone() };
    let found = effort.sample(&plans, seeded, |_, report| {
        let flow = &report.flows[0];
        let last = report.flows.last().map_or(0.0, |flow| flow.goodput_bit_per_s);
        (flow.goodput_bit_per_s, flow.counters.timeouts as f64, last)
    })?;
    let by_place = |runs: &[Vec<(f64, f64, f64)>], of: fn(&(f64, f64, f64)) -> f64, beside: usize| {
        runs.chunks(2).map(|pair| pair[beside].iter().map(of).collect()).collect()
    };
    let scores = found.chunks(2 * PLACES.len()).map(|runs| Scores {
        goodput: by_place(runs, |run| run.0, 0),
        timeouts: by_place(runs, |run| run.1, 0),
        neighbour: by_place(runs, |run| run.2, 1),
    });
    Ok(scores.collect())
}

fn spec(name: &str) -> SenderSpec {
    name.parse().expect("candidates are senders")
}

/// How much more `ours` has than `theirs`, seed by seed, in per cent.
fn gain(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    gains(ours, theirs).into_iter().map(|gain| 100.0 * gain).collect()
}

impl Scores {
    /// The mean gain over `other` at both places of the paper, in per cent.
    pub(super) fn gain_over(&self, other: &Self, paper: Paper) -> Mean {
        let places = (0..PLACES.len()).filter(|place| PLACES[*place].paper == paper);
        let gains: Vec<_> = places.map(|place| gain(&self.goodput[place], &other.goodput[place])).collect();
        let seeds = gains.iter().map(Vec::len).min().unwrap_or(0);
        let over_places = |seed: usize| mean(&gains.iter().map(|place| place[seed]).collect::<Vec<_>>()).mean;
        mean(&(0..seeds).map(over_places).collect::<Vec<_>>())
    }

    pub(super) fn mean_gain(&self, other: &Self) -> f64 {
        mean(&Paper::ALL.map(|paper| self.gain_over(other, paper).mean)).mean
    }

    /// Whether it gains over each of the others in this paper's setting, by the intervals.
    pub(super) fn beats(&self, others: &[&Self], paper: Paper) -> bool {
        others.iter().all(|other| Judged::above_zero(&self.gain_over(other, paper)) == Judged::Holds)
    }

    /// The gain over the best of the others in the fourth best of the five settings, in per cent.
    pub(super) fn margin(&self, others: &[&Self]) -> f64 {
        let least = |paper| {
            let gains = others.iter().map(|other| self.gain_over(other, paper).mean);
            gains.fold(f64::INFINITY, f64::min)
        };
        let mut margins = Paper::ALL.map(least);
        margins.sort_by(f64::total_cmp);
        margins[1]
    }

    /// How much a NewReno loses beside it and not beside another NewReno: in per cent, the mean over all places.
    pub(super) fn mean_harm(&self, newreno: &Self) -> f64 {
        let places = self.neighbour.iter().zip(&newreno.neighbour);
        -mean(&places.map(|(beside, among)| mean(&gain(beside, among)).mean).collect::<Vec<_>>()).mean
    }

    /// Whether all goodputs are equal, as they are if both send the same packets.
    pub(super) fn does_the_same(&self, other: &Self) -> bool {
        self.goodput == other.goodput && self.neighbour == other.neighbour
    }

    /// The place where a NewReno loses most beside it, and how much, in per cent of what it has beside another NewReno.
    pub(super) fn worst_harm(&self, newreno: &Self) -> (usize, Mean) {
        let harm = |place: usize| {
            let more = mean(&gain(&self.neighbour[place], &newreno.neighbour[place]));
            (place, Mean { mean: -more.mean, ..more })
        };
        let all = (0..PLACES.len()).map(harm);
        all.max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean)).expect("there are places")
    }

    /// Timeouts in all runs in which it is alone.
    pub(super) fn timeouts(&self) -> f64 {
        self.timeouts.iter().map(|place| place.iter().sum::<f64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(goodput: [f64; 5], neighbour: f64) -> Scores {
        let by_place = |of: &dyn Fn(Paper) -> f64| {
            PLACES.iter().map(|place| vec![of(place.paper), of(place.paper) + 2.0]).collect()
        };
        let at = |paper: Paper| goodput[Paper::ALL.iter().position(|one| *one == paper).unwrap()];
        Scores { goodput: by_place(&at), timeouts: by_place(&|_| 1.0), neighbour: by_place(&|_| neighbour) }
    }

    #[test]
    fn four_of_five_are_enough() {
        let proposal = scores([99.0; 5], 99.0);
        let good = scores([119.0, 119.0, 109.0, 104.0, 49.0], 99.0);
        assert!((good.margin(&[&proposal]) - 5.0).abs() < 1e-9, "{}", good.margin(&[&proposal]));
        let beaten = Paper::ALL.map(|paper| good.beats(&[&proposal, &proposal], paper));
        assert_eq!(beaten, [true, true, true, true, false]);
    }

    #[test]
    fn harm_is_what_a_newreno_loses() {
        let newreno = scores([99.0; 5], 99.0);
        let greedy = scores([199.0; 5], 79.0);
        assert!((greedy.worst_harm(&newreno).1.mean - 20.0).abs() < 1e-9);
        assert!(newreno.worst_harm(&newreno).1.mean.abs() < 1e-9);
    }

    #[test]
    fn a_recipe_is_measured_alone_and_beside() {
        let found = evaluate(&Effort::new(1), 0, &["newreno".to_owned()]).unwrap();
        let newreno = &found[0];
        assert_eq!(newreno.goodput.len(), PLACES.len());
        // A run alone may have bad luck, but not at most of the places.
        let both = newreno.goodput.iter().zip(&newreno.neighbour);
        let less = both.filter(|(alone, beside)| alone[0] > beside[0]).count();
        assert!(less > PLACES.len() / 2, "two share what one has alone: {newreno:?}");
    }
}
