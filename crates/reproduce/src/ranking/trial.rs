//! The conditions for calling a recipe `best`, and its shortfall.

use std::collections::BTreeMap;

use airtcp_numbers::statistics::Mean;

use super::candidates::PROPOSALS;
use super::scores::Scores;
use crate::{Judged, Paper};

/// A recipe is harmless if a competing NewReno loses at most this share of its goodput.
pub(super) const HARMLESS: f64 = 0.05;

/// Results of a recipe in the setting of one paper.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) paper: Paper,
    /// Gains over each of the paper's own proposals.
    pub(super) gains: Vec<(&'static str, Mean)>,
    /// The share of its goodput that a competing NewReno loses.
    pub(super) cost: Mean,
}

/// Results of a recipe in several settings.
#[derive(Clone, Debug)]
pub(super) struct Trial(pub(super) Vec<Setting>);

impl Setting {
    /// Whether the recipe beats all proposals of the paper: the interval of each paired gain is above zero.
    pub(super) fn beats(&self) -> Judged {
        Judged::all(self.gains.iter().map(|(_, gain)| Judged::better(gain)))
    }

    pub(super) fn is_harmless(&self) -> Judged {
        Judged::between(&self.cost, f64::NEG_INFINITY, HARMLESS)
    }

    /// The proposal over which it gains least, and this gain.
    pub(super) fn smallest_gain(&self) -> (&'static str, &Mean) {
        let least = self.gains.iter().min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
        least.map(|(name, gain)| (*name, gain)).expect("each paper has a proposal")
    }

    fn shortfall(&self) -> f64 {
        (-self.smallest_gain().1.mean).max(0.0) + (self.cost.mean - HARMLESS).max(0.0)
    }
}

impl Trial {
    /// `all` contains NewReno and the proposals, with the same seeds.
    pub(super) fn of(scores: &Scores, all: &BTreeMap<String, Scores>) -> Self {
        Self::of_papers(&Paper::ALL, scores, all)
    }

    /// Like [`Self::of`], in the settings of these papers only. Their shortfall is a lower bound.
    pub(super) fn of_papers(papers: &[Paper], scores: &Scores, all: &BTreeMap<String, Scores>) -> Self {
        let setting = |(paper, proposals): &(Paper, &[&'static str])| Setting {
            paper: *paper,
            gains: proposals.iter().map(|name| (*name, scores.gain_over(&all[*name], *paper))).collect(),
            cost: scores.cost(&all["newreno"], *paper),
        };
        Self(PROPOSALS.iter().filter(|(paper, _)| papers.contains(paper)).map(setting).collect())
    }

    /// Whether the recipe is `best`: it beats each paper's own proposals in the paper's setting, and is harmless in
    /// all settings.
    pub(super) fn is_best(&self) -> Judged {
        Judged::all(self.0.iter().flat_map(|setting| [setting.beats(), setting.is_harmless()]))
    }

    /// The shortfall, which the search minimizes. It is calculated from means: the share by which the recipe is below
    /// the best proposal, plus the competitor's loss beyond [`HARMLESS`], added up over the settings. In a sum,
    /// progress in one setting counts even if another setting is out of reach.
    pub(super) fn shortfall(&self) -> f64 {
        self.0.iter().map(Setting::shortfall).sum()
    }

    /// The papers whose proposals it beats.
    pub(super) fn beaten_papers(&self) -> impl Iterator<Item = Paper> {
        self.0.iter().filter(|setting| setting.beats() == Judged::Holds).map(|setting| setting.paper)
    }

    /// The setting with the largest loss of the competitor.
    pub(super) fn costliest(&self) -> &Setting {
        let most = self.0.iter().max_by(|a, b| a.cost.mean.total_cmp(&b.cost.mean));
        most.expect("there are five settings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::candidates::proposals;
    use crate::ranking::scores::tests::scores;

    /// All recipes have 1000 in all settings, except for `sack+pr+rebate`.
    fn world() -> BTreeMap<String, Scores> {
        let all = proposals().into_iter().chain(["newreno"]);
        let mut all: BTreeMap<_, _> =
            all.map(|name| (name.to_owned(), scores([1000.0; 5], [1000.0; 5]))).collect();
        let rebate = scores([9000.0, 9000.0, 9000.0, 1200.0, 9000.0], [1000.0; 5]);
        all.insert("sack+pr+rebate".to_owned(), rebate);
        all
    }

    #[test]
    fn best_recipe_beats_each_paper_in_own_setting() {
        let good = Trial::of(&scores([1100.0, 1100.0, 1100.0, 1300.0, 1100.0], [980.0; 5]), &world());
        assert_eq!(good.is_best(), Judged::Holds);
        assert_eq!(good.shortfall(), 0.0);
        let less = Trial::of(&scores([1100.0, 1100.0, 1100.0, 1100.0, 1100.0], [980.0; 5]), &world());
        assert_eq!(less.is_best(), Judged::DoesNotHold);
        assert!((less.shortfall() - 100.0 / 1200.0).abs() < 1e-9);
        assert_eq!(less.beaten_papers().count(), 4);
        assert_eq!(less.0[3].smallest_gain().0, "sack+pr+rebate");
    }

    #[test]
    fn recipe_costing_competitor_over_5_percent_is_harmful() {
        let neighbours = [990.0, 990.0, 900.0, 990.0, 990.0];
        let greedy = Trial::of(&scores([1300.0; 5], neighbours), &world());
        assert_eq!(greedy.is_best(), Judged::DoesNotHold);
        assert_eq!(greedy.costliest().paper, Paper::Inamura2009);
        assert!((greedy.shortfall() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn proposal_does_not_beat_itself() {
        let world = world();
        let itself = Trial::of(&world["newreno+sifest"], &world);
        assert_eq!(itself.0[0].beats(), Judged::DoesNotHold);
    }
}
