//! The recipes that are compared: every part of the catalogue by itself, and combinations.

use std::collections::BTreeSet;

use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue::{Build, CATALOGUE, Need, Row};

use super::super::Paper;

/// What the papers propose themselves. P1 proposes nothing; these are the judges that it tried.
pub(super) const PROPOSALS: [(Paper, &[&str]); 5] = [
    (Paper::P0, &["tahoe+sifest+liw", "reno+sifest", "newreno+sifest"]),
    (Paper::P1, &["newreno+vegas", "newreno+ntg", "newreno+ndg", "newreno+ncpld"]),
    (Paper::P2, &["newreno+eifel", "newreno+fast-timeout+loss-retransmission"]),
    (Paper::P3, &["newreno+rebate", "sack+pr+rebate"]),
    (Paper::P4, &["etcp", "etcp+early-marks"]),
];

/// Well-known senders, for comparison. The last is what most of the world runs today.
pub(super) const KNOWN: [&str; 6] = ["tahoe", "reno", "newreno", "sack", "sack+limited-transmit", TODAYS];

/// The kernel's own sender, with its profile.
pub(super) const TODAYS: &str = "linux";

/// Those who know why each packet was lost, from the path's own records: no sender of the world does. What knowing is
/// worth depends on how a sender repairs, so three of them stand for it.
pub(super) const CEILING: [&str; 3] = ["newreno+oracle", "sack+oracle", "sack+rack+oracle"];

/// The same proposals as a kernel of today would have them: with its timer, its initial window and its growth.
pub(super) fn proposals_today() -> Vec<String> {
    let proposals = ["newreno"].into_iter().chain(proposals());
    proposals.map(|recipe| format!("{recipe}@linux")).collect()
}

pub(super) fn proposals() -> Vec<&'static str> {
    PROPOSALS.iter().flat_map(|(_, recipes)| recipes.iter().copied()).collect()
}

/// The parts that may make a sender better: every answer but the ordinary ones, and the options that concern a sender.
pub(super) fn parts() -> impl Iterator<Item = &'static str> {
    /// These are for receivers, switch off what other parts need, or fit one scenario only.
    const NOT: [&str; 7] =
        ["reordering-alarm", "delack", "no-delack", "no-sack", "offer-sack", "no-timestamps", "ecn"];
    let fits = |row: &&Row| {
        !matches!(row.build, Build::Number(..) | Build::Repair(_) | Build::Judges(_) | Build::Alias(_))
            && !row.ordinary
            && !knows_the_truth(row)
            && !NOT.contains(&row.name)
    };
    CATALOGUE.iter().filter(fits).map(|row| row.name)
}

/// No sender of the world has what it goes by.
fn knows_the_truth(row: &Row) -> bool {
    row.needs.contains(&Need::Truth)
}

pub(super) fn repairs() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().filter(|row| matches!(row.build, Build::Repair(_))).map(|row| row.name)
}

/// What parts are tried on.
pub(super) const BASES: [&str; 2] = ["newreno", "sack"];

/// Every way to repair, and both bases with each part that goes with them.
pub(super) fn singles() -> BTreeSet<String> {
    let with = |base: &'static str| parts().map(move |part| format!("{base}+{part}"));
    let all = BASES.into_iter().flat_map(with).chain(repairs().map(str::to_owned));
    all.filter_map(|name| canonical(&name)).collect()
}

/// `recipe` with one of `parts` added, with one part removed, or with one replaced by another.
pub(super) fn neighbours(recipe: &str, parts: &[&str]) -> BTreeSet<String> {
    let named: Vec<&str> = recipe.split('+').collect();
    let more = parts.iter().map(|part| format!("{recipe}+{part}"));
    let less = (1..named.len()).map(|left_out| {
        let rest = named.iter().enumerate().filter(|(index, _)| *index != left_out);
        rest.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
    });
    let less: Vec<_> = less.collect();
    let other = less.iter().flat_map(|rest| parts.iter().map(move |part| format!("{rest}+{part}")));
    let all: BTreeSet<_> =
        more.chain(other).filter_map(|name| canonical(&name)).chain(less.clone()).collect();
    all.into_iter().filter(|other| other != recipe).collect()
}

/// The recipe's own name for itself; `None` if its parts do not go together.
pub(super) fn canonical(name: &str) -> Option<String> {
    name.parse::<Recipe>().ok().map(|recipe| recipe.canonical())
}

#[cfg(test)]
mod tests {
    use airtcp::sender::SenderSpec;

    use super::*;

    #[test]
    fn all_that_are_named_are_recipes() {
        let named = proposals().into_iter().chain(KNOWN).chain(CEILING).map(str::to_owned);
        for name in named.chain(proposals_today()) {
            assert!(name.parse::<SenderSpec>().is_ok(), "{name}");
        }
    }

    #[test]
    fn who_knows_the_truth_is_no_candidate() {
        let all = singles().into_iter().chain(neighbours("sack+sifest", &parts().collect::<Vec<_>>()));
        for recipe in all {
            assert!(!recipe.split('+').any(|part| part == "oracle" || part == "rebate-ideal"), "{recipe}");
        }
    }

    #[test]
    fn every_answer_of_the_catalogue_has_its_turn() {
        let singles = singles();
        let answers = CATALOGUE.iter().filter(|row| row.is_the_answer() && !row.ordinary);
        let answers = answers.filter(|row| !knows_the_truth(row));
        for answer in answers {
            let named = |recipe: &&String| recipe.split('+').any(|part| part == answer.name);
            assert!(singles.iter().any(|recipe| named(&recipe)), "{}", answer.name);
        }
    }

    #[test]
    fn a_neighbour_has_a_part_more_or_less_or_another() {
        let near = neighbours("sack+sifest", &["rack", "eifel"]);
        assert!(near.contains("sack") && near.contains("sack+sifest+eifel") && near.contains("sack+rack"));
        assert!(!near.contains("sack+sifest"));
        assert!(near.iter().all(|name| name.parse::<Recipe>().is_ok()));
    }
}
