//! The recipes that are compared: each part of the catalogue on its own, and combinations.

use std::collections::BTreeSet;

use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue::{Build, CATALOGUE, Need, Row};

use crate::Paper;

/// The papers' own proposals. Ni et al. propose no algorithm; their entries are the judges that they
/// examined.
pub(super) const PROPOSALS: [(Paper, &[&str]); 5] = [
    (Paper::Pan2004, &["tahoe+sifest+liw", "reno+sifest", "newreno+sifest"]),
    (Paper::Ni2002, &["newreno+vegas", "newreno+ntg", "newreno+ndg", "newreno+ncpld"]),
    (Paper::Inamura2009, &["newreno+eifel", "newreno+fast-timeout+loss-retransmission"]),
    (Paper::Lai2013, &["newreno+rebate", "sack+pr+rebate"]),
    (Paper::Chandra2003, &["etcp", "etcp+early-marks"]),
];

/// Well-known senders, for comparison. The last one is the most common sender today.
pub(super) const KNOWN: [&str; 6] = ["tahoe", "reno", "newreno", "sack", "sack+limited-transmit", LINUX];

/// The recipe of the Linux kernel, with its profile.
pub(super) const LINUX: &str = "linux";

/// NewReno with the profile of [`LINUX`].
pub(super) const NEWRENO_AS_LINUX: &str = "newreno@linux";

/// Recipes that know from the path why each packet was lost. No real sender has this knowledge. These recipes
/// bound the benefit of better attribution. The value of the knowledge depends on the rest of the recipe, so
/// there are three oracles.
pub(super) const ORACLES: [&str; 3] = ["newreno+oracle", "sack+oracle", "sack+rack+oracle"];

/// NewReno and the proposals with profile `linux`: the kernel's timer, initial window and window growth.
pub(super) fn proposals_as_linux() -> Vec<String> {
    let proposals = proposals().into_iter().map(|recipe| format!("{recipe}@linux"));
    [NEWRENO_AS_LINUX.to_owned()].into_iter().chain(proposals).collect()
}

pub(super) fn proposals() -> Vec<&'static str> {
    PROPOSALS.iter().flat_map(|(_, recipes)| recipes.iter().copied()).collect()
}

/// The parts that can improve a sender: all answers except the default ones, and the options of a sender.
pub(super) fn parts() -> impl Iterator<Item = &'static str> {
    /// Parts for receivers, parts that disable what other parts need, and parts for a single scenario.
    const EXCLUDED: [&str; 9] = [
        "reordering-alarm",
        "delack",
        "no-delack",
        "no-sack",
        "offer-sack",
        "no-timestamps",
        "no-window-scale",
        "no-handshake-rtt",
        "ecn",
    ];
    let fits = |row: &&Row| {
        !matches!(row.build, Build::Number(..) | Build::Repair(_) | Build::Judges(_) | Build::Alias(_))
            && !row.is_default
            && !needs_ground_truth(row)
            && !EXCLUDED.contains(&row.name)
    };
    CATALOGUE.iter().filter(fits).map(|row| row.name)
}

/// Whether a part needs information that no real sender has.
fn needs_ground_truth(row: &Row) -> bool {
    row.needs.contains(&Need::Truth)
}

pub(super) fn repairs() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().filter(|row| matches!(row.build, Build::Repair(_))).map(|row| row.name)
}

/// The recipes that each part is added to.
pub(super) const BASES: [&str; 2] = ["newreno", "sack"];

/// Every answer to *What to retransmit?*, and every compatible combination of a base and a part.
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

/// The canonical name of a recipe. `None` if its parts cannot be combined.
pub(super) fn canonical(name: &str) -> Option<String> {
    name.parse::<Recipe>().ok().map(|recipe| recipe.canonical())
}

#[cfg(test)]
mod tests {
    use airtcp::sender::SenderSpec;

    use super::*;

    #[test]
    fn named_candidates_are_valid_senders() {
        let named = proposals().into_iter().chain(KNOWN).chain(ORACLES).map(str::to_owned);
        for name in named.chain(proposals_as_linux()) {
            assert!(name.parse::<SenderSpec>().is_ok(), "{name}");
        }
    }

    #[test]
    fn ground_truth_recipes_are_not_candidates() {
        let all = singles().into_iter().chain(neighbours("sack+sifest", &parts().collect::<Vec<_>>()));
        for recipe in all {
            assert!(!recipe.split('+').any(|part| part == "oracle" || part == "rebate-ideal"), "{recipe}");
        }
    }

    #[test]
    fn singles_cover_every_catalogue_answer() {
        let singles = singles();
        let answers = CATALOGUE.iter().filter(|row| row.is_answer() && !row.is_default);
        let answers = answers.filter(|row| !needs_ground_truth(row));
        for answer in answers {
            let named = |recipe: &&String| recipe.split('+').any(|part| part == answer.name);
            assert!(singles.iter().any(|recipe| named(&recipe)), "{}", answer.name);
        }
    }

    #[test]
    fn neighbours_add_remove_or_replace_one_part() {
        let near = neighbours("sack+sifest", &["rack", "eifel"]);
        assert!(near.contains("sack") && near.contains("sack+sifest+eifel") && near.contains("sack+rack"));
        assert!(!near.contains("sack+sifest"));
        assert!(near.iter().all(|name| name.parse::<Recipe>().is_ok()));
    }
}
