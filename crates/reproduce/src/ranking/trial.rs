//! Whether a recipe is to be called `best`, and what it lacks.

use std::collections::BTreeMap;

use airtcp_numbers::statistics::Mean;

use super::super::{Judged, Paper};
use super::candidates::PROPOSALS;
use super::scores::Scores;

/// A recipe is harmless if a NewReno beside it loses at most this share.
pub(super) const HARMLESS: f64 = 0.05;

/// What a recipe did in the setting of one paper.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) paper: Paper,
    /// Over each of the paper's own proposals.
    pub(super) gains: Vec<(&'static str, Mean)>,
    /// What a NewReno loses beside it.
    pub(super) cost: Mean,
}

/// What a recipe did in all of them.
#[derive(Clone, Debug)]
pub(super) struct Trial(pub(super) Vec<Setting>);

impl Setting {
    /// Whether it beats all of them: the interval of each paired gain is above zero.
    pub(super) fn beats(&self) -> Judged {
        Judged::all(self.gains.iter().map(|(_, gain)| Judged::better(gain)))
    }

    pub(super) fn is_harmless(&self) -> Judged {
        Judged::between(&self.cost, f64::NEG_INFINITY, HARMLESS)
    }

    /// The proposal over which it gains least, and how much that is.
    pub(super) fn hardest(&self) -> (&'static str, &Mean) {
        let least = self.gains.iter().min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
        least.map(|(name, gain)| (*name, gain)).expect("each paper has a proposal")
    }

    fn lacks(&self) -> f64 {
        (-self.hardest().1.mean).max(0.0) + (self.cost.mean - HARMLESS).max(0.0)
    }
}

impl Trial {
    /// `all` has NewReno and the proposals, of the same seeds.
    pub(super) fn of(scores: &Scores, all: &BTreeMap<String, Scores>) -> Self {
        Self::of_papers(&Paper::ALL, scores, all)
    }

    /// The same in the settings of these papers alone: what it lacks there it lacks at least.
    pub(super) fn of_papers(papers: &[Paper], scores: &Scores, all: &BTreeMap<String, Scores>) -> Self {
        let setting = |(paper, proposals): &(Paper, &[&'static str])| Setting {
            paper: *paper,
            gains: proposals.iter().map(|name| (*name, scores.gain_over(&all[*name], *paper))).collect(),
            cost: scores.cost(&all["newreno"], *paper),
        };
        Self(PROPOSALS.iter().filter(|(paper, _)| papers.contains(paper)).map(setting).collect())
    }

    /// Whether it is to be called `best`: it beats each paper's own proposals in the paper's setting, and is harmless in
    /// all of them.
    pub(super) fn is_best(&self) -> Judged {
        Judged::all(self.0.iter().flat_map(|setting| [setting.beats(), setting.is_harmless()]))
    }

    /// How much is missing by the means: what the proposals have more, and what it costs beyond [`HARMLESS`], as shares,
    /// added up over the settings. This is what the search makes small. No setting that is out of reach hides what
    /// is gained in another.
    pub(super) fn lacks(&self) -> f64 {
        self.0.iter().map(Setting::lacks).sum()
    }

    /// The settings in which it beats the paper's proposals.
    pub(super) fn beaten(&self) -> impl Iterator<Item = Paper> {
        self.0.iter().filter(|setting| setting.beats() == Judged::Holds).map(|setting| setting.paper)
    }

    /// The setting in which it costs most.
    pub(super) fn dearest(&self) -> &Setting {
        let most = self.0.iter().max_by(|a, b| a.cost.mean.total_cmp(&b.cost.mean));
        most.expect("there are five settings")
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidates::proposals;
    use super::super::scores::tests::scores;
    use super::*;

    /// Everyone has 1000 everywhere, but for what `sack+pr+rebate` has in its own setting and elsewhere.
    fn world() -> BTreeMap<String, Scores> {
        let all = proposals().into_iter().chain(["newreno"]);
        let mut all: BTreeMap<_, _> =
            all.map(|name| (name.to_owned(), scores([1000.0; 5], [1000.0; 5]))).collect();
        let rebate = scores([9000.0, 9000.0, 9000.0, 1200.0, 9000.0], [1000.0; 5]);
        all.insert("sack+pr+rebate".to_owned(), rebate);
        all
    }

    #[test]
    fn each_paper_is_beaten_in_its_own_setting() {
        let good = Trial::of(&scores([1100.0, 1100.0, 1100.0, 1300.0, 1100.0], [980.0; 5]), &world());
        assert_eq!(good.is_best(), Judged::Holds);
        assert_eq!(good.lacks(), 0.0);
        let less = Trial::of(&scores([1100.0, 1100.0, 1100.0, 1100.0, 1100.0], [980.0; 5]), &world());
        assert_eq!(less.is_best(), Judged::DoesNotHold);
        assert!((less.lacks() - 100.0 / 1200.0).abs() < 1e-9);
        assert_eq!(less.beaten().count(), 4);
        assert_eq!(less.0[3].hardest().0, "sack+pr+rebate");
    }

    #[test]
    fn who_takes_more_than_a_twentieth_is_not_harmless() {
        let neighbours = [990.0, 990.0, 900.0, 990.0, 990.0];
        let greedy = Trial::of(&scores([1300.0; 5], neighbours), &world());
        assert_eq!(greedy.is_best(), Judged::DoesNotHold);
        assert_eq!(greedy.dearest().paper, Paper::P2);
        assert!((greedy.lacks() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn a_proposal_does_not_beat_itself() {
        let world = world();
        let itself = Trial::of(&world["newreno+sifest"], &world);
        assert_eq!(itself.0[0].beats(), Judged::DoesNotHold);
    }
}
