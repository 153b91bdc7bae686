//! The tables and remarks of the ranking.

use std::collections::BTreeMap;

use airtcp_numbers::statistics::Mean;

use super::candidates::{BASES, NEWRENO_AS_LINUX, ORACLES, canonical, parts, repairs};
use super::paths::PATHS;
use super::scores::Scores;
use super::search::BEAM;
use super::trial::{HARMLESS, Setting, Trial};
use crate::{Judged, Paper, Table, shown};

fn code(name: &str) -> String {
    format!("`{name}`")
}

/// A share in percent.
fn percent(mean: &Mean, digits: usize) -> String {
    let width = mean.half_width.map(|width| 100.0 * width);
    shown(&Mean { mean: 100.0 * mean.mean, half_width: width, ..*mean }, digits)
}

/// Recipes by mean gain over `base`, the largest first.
fn sorted<'a>(all: &'a BTreeMap<String, Scores>, base: &Scores) -> Vec<(&'a String, &'a Scores)> {
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by(|(_, a), (_, b)| b.mean_gain(base).total_cmp(&a.mean_gain(base)));
    all
}

fn labelled(name: &str) -> String {
    if ORACLES.contains(&name) { format!("{} (bounds attribution)", code(name)) } else { code(name) }
}

pub(super) fn of_finalists(all: &BTreeMap<String, Scores>) -> Table {
    let newreno = &all["newreno"];
    let columns = [
        &["recipe"],
        &Paper::ALL.map(Paper::cited)[..],
        &[
            "timeouts relative to NewReno",
            "competitor's mean loss",
            "competitor's largest loss",
            "beats proposals or judges of",
        ],
    ];
    let mut table = Table::new(
        "Gain over NewReno in percent, for the finalists, the papers' own proposals (Ni et al.: judges), \
         common senders, and recipes that know the cause of each loss, which bound attribution and not \
         goodput. Profile `default`, except for `linux`. The competitor's loss is the goodput that a NewReno \
         loses if it competes with the recipe instead of with another NewReno.",
        &columns.concat(),
    );
    for (name, scores) in sorted(all, newreno) {
        let trial = Trial::of(scores, all);
        let costliest = trial.costliest();
        let mut cells = vec![labelled(name)];
        cells.extend(Paper::ALL.map(|paper| percent(&scores.gain_over(newreno, paper), 1)));
        cells.extend([
            format!("{:.2}", scores.timeouts() / newreno.timeouts().max(1.0)),
            format!("{:.1} %", 100.0 * scores.mean_cost(newreno)),
            format!("{} % ({})", percent(&costliest.cost, 1), costliest.paper.cited()),
            trial.beaten_papers().map(Paper::cited).collect::<Vec<_>>().join(", "),
        ]);
        table.row(cells);
    }
    table
}

/// Goodput of each recipe on each path, in percent of capacity × (1 − loss).
pub(super) fn of_shares(all: &BTreeMap<String, Scores>, capacities: &[f64]) -> Table {
    let paths = PATHS.iter().map(|path| format!("{}: {}", path.paper.cited(), path.name));
    let columns: Vec<String> = ["recipe".to_owned()].into_iter().chain(paths).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(
        "Goodput in percent of capacity × (1 − loss). The first row is capacity × (1 − loss) in kbit/s.",
        &columns,
    );
    let limits = capacities.iter().map(|capacity| format!("{:.0}", capacity / 1e3));
    table.row(["capacity × (1 − loss)".to_owned()].into_iter().chain(limits));
    for (name, scores) in sorted(all, &all["newreno"]) {
        let shares = (0..PATHS.len()).map(|path| percent(&scores.share(path, capacities), 0));
        table.row([labelled(name)].into_iter().chain(shares));
    }
    table
}

/// Whether a proposal improves on today's sender, and on NewReno: all have profile `linux` and the same seeds.
pub(super) fn of_proposals_as_linux(linux: &Scores, senders: &BTreeMap<String, Scores>) -> Table {
    let newreno = &senders[NEWRENO_AS_LINUX];
    let columns = [
        &["sender"],
        &Paper::ALL.map(Paper::cited)[..],
        &["timeouts relative to `linux`", "better than `linux` in", "better than NewReno in"],
    ];
    let mut table = Table::new(
        "Gain of the papers' own proposals (Ni et al.: judges) with profile `linux` over `linux`, the recipe \
         of the Linux kernel, in percent. The last column compares them with `newreno@linux`: where this \
         sender is better than `linux` as well, a proposal gains only what exceeds its gain.",
        &columns.concat(),
    );
    for (name, scores) in sorted(senders, linux) {
        let gains = Paper::ALL.map(|paper| scores.gain_over(linux, paper));
        let better_than = |other: &Scores| {
            let gains = |paper: &&Paper| Judged::better(&scores.gain_over(other, **paper)) == Judged::Holds;
            Paper::ALL.iter().filter(gains).map(|paper| paper.cited()).collect::<Vec<_>>().join(", ")
        };
        let mut cells = vec![code(name)];
        cells.extend(gains.iter().map(|gain| percent(gain, 1)));
        cells.push(format!("{:.2}", scores.timeouts() / linux.timeouts().max(1.0)));
        cells.extend([linux, newreno].map(better_than));
        table.row(cells);
    }
    table
}

/// Gain of each part over the same sender without the part, in whole percent, where the interval excludes
/// zero. Also returns a remark that lists the parts without such a gain.
pub(super) fn of_parts(seen: &BTreeMap<String, Scores>, seeds: u32) -> (Table, String) {
    let columns = [&["recipe", "compared with"], &Paper::ALL.map(Paper::cited)[..]].concat();
    let mut table = Table::new(
        format!(
            "Gain of each part of the catalogue over the same sender without it, in percent, with profile \
             `default` and {seeds} seeds. A dash means that the 95 % interval contains zero. For parts \
             without effect, one number in twenty appears by chance."
        ),
        &columns,
    );
    let with = |base: &'static str| {
        let with = parts().filter_map(move |part| canonical(&format!("{base}+{part}")));
        with.map(move |name| (base, name))
    };
    let repairs =
        repairs().filter(|repair| *repair != "newreno").map(|repair| ("newreno", repair.to_owned()));
    let found = repairs.chain(BASES.into_iter().flat_map(with)).filter(|(base, name)| name != base);
    let mut found: Vec<_> = found.filter_map(|(base, name)| Some((base, seen.get(&name)?, name))).collect();
    found.sort_by(|(base, a, _), (other, b, _)| {
        b.mean_gain(&seen[*other]).total_cmp(&a.mean_gain(&seen[*base]))
    });
    found.dedup_by(|(_, _, a), (_, _, b)| a == b);
    let mut without_effect = Vec::new();
    for (base, scores, name) in found {
        let gains = Paper::ALL.map(|paper| scores.gain_over(&seen[base], paper));
        if gains.iter().all(|gain| significant(gain).is_none()) {
            without_effect.push(code(&name));
            continue;
        }
        let cells = gains.iter().map(|gain| significant(gain).unwrap_or_else(|| "–".to_owned()));
        table.row([code(&name), code(base)].into_iter().chain(cells));
    }
    without_effect.sort();
    let without_effect = match without_effect.as_slice() {
        [] => "With this number of seeds, every part makes a difference in at least one setting.".to_owned(),
        without_effect => format!(
            "With this number of seeds, these recipes cannot be distinguished in any setting from the \
             recipe that they are compared with: {}.",
            without_effect.join(", ")
        ),
    };
    (table, without_effect)
}

/// The gain in percent, if its interval excludes zero.
fn significant(gain: &Mean) -> Option<String> {
    let width = gain.half_width?;
    (gain.mean.abs() > width).then(|| format!("{:+.0}", 100.0 * gain.mean))
}

/// Which recipe is `best` after a search with this number of seeds, or the conditions that the recipe with the smallest
/// shortfall does not meet. The second remark is about the recipes that know the causes of losses.
pub(super) fn verdict(finalists: &BTreeMap<String, Scores>, capacities: &[f64], seeds: u32) -> Vec<String> {
    let nearest = |knows: bool| {
        let which = finalists.iter().filter(|(name, _)| ORACLES.contains(&name.as_str()) == knows);
        let trials = which.map(|(name, scores)| (name, Trial::of(scores, finalists)));
        let rank = |trial: &Trial| (trial.is_best() != Judged::Holds, trial.shortfall());
        let least = trials.min_by(|(_, a), (_, b)| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        least.expect("both kinds are among the finalists")
    };
    let limit = 100.0 * HARMLESS;
    let rule = format!(
        "beats each paper's own proposals (Ni et al.: judges) in the paper's own setting and takes at most \
         {limit} % from a competing NewReno"
    );
    let search = format!("beam search ({BEAM} recipes per step, {seeds} seeds)");
    let (name, trial) = nearest(false);
    let way = unmet_conditions(trial.0.iter(), name, finalists, capacities);
    let ours = match trial.is_best() {
        Judged::Holds => format!("`{name}` {rule}: it is `best`."),
        Judged::DoesNotHold => {
            format!(
                "The {search} found no recipe that {rule}, so none is called `best`. This does not prove that \
                 there is none. `{name}` has the smallest shortfall. Conditions not met or undecided: {way}."
            )
        }
        Judged::Undecided | Judged::NotTestable => format!(
            "The {search} found no recipe that certainly {rule}, so none is called `best`. `{name}` has the \
             smallest shortfall. Undecided conditions: {way}."
        ),
    };
    let (name, trial) = nearest(true);
    let way = unmet_conditions(trial.0.iter(), name, finalists, capacities);
    let truth = match trial.is_best() {
        Judged::Holds => format!(
            "`{name}`, which knows why each packet was lost, meets all conditions. The obstacle for real \
             senders is to find these causes."
        ),
        Judged::DoesNotHold | Judged::Undecided | Judged::NotTestable => format!(
            "Knowing why each packet was lost is not enough. `{name}` has the smallest shortfall of the \
             recipes that know it. Conditions not met or undecided: {way}."
        ),
    };
    vec![ours, truth]
}

/// The conditions that a recipe does not meet, or for which this is undecided, with the numbers.
fn unmet_conditions<'a>(
    settings: impl Iterator<Item = &'a Setting>,
    name: &str,
    finalists: &BTreeMap<String, Scores>,
    capacities: &[f64],
) -> String {
    let share = |name: &str, paper| 100.0 * finalists[name].share_of(paper, capacities);
    let but = |judged| if judged == Judged::Undecided { " (undecided)" } else { "" };
    let mut reasons = Vec::new();
    for setting in settings {
        let paper = setting.paper;
        let beats = setting.beats();
        if beats != Judged::Holds {
            let (other, gain) = setting.smallest_gain();
            let oracle = ORACLES.into_iter().max_by(|a, b| share(a, paper).total_cmp(&share(b, paper)));
            let mut all = vec![name, other];
            all.extend(oracle.filter(|oracle| *oracle != name));
            let carried = all.iter().map(|name| format!("`{name}` {:.0} %", share(name, paper)));
            reasons.push(format!(
                "in the setting of {}, it gains {} % over `{other}`{} (goodput relative to capacity × (1 − \
                 loss): {})",
                paper.cited(),
                percent(gain, 1),
                but(beats),
                carried.collect::<Vec<_>>().join(", ")
            ));
        }
        let harmless = setting.is_harmless();
        if harmless != Judged::Holds {
            reasons.push(format!(
                "in the setting of {}, a competing NewReno loses {} %{}",
                paper.cited(),
                percent(&setting.cost, 1),
                but(harmless)
            ));
        }
    }
    reasons.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::candidates::PROPOSALS;
    use crate::ranking::scores::tests::scores;

    /// The proposals have 1000 in their own settings. All other results are 400, except for `sack+sifest` and the
    /// oracle.
    fn verdict_on(ours: [f64; 5], competitor: [f64; 5], truth: [f64; 5]) -> Vec<String> {
        let mut all = BTreeMap::new();
        for name in ORACLES.into_iter().chain(["newreno"]) {
            all.insert(name.to_owned(), scores([400.0; 5], [1000.0; 5]));
        }
        for (paper, proposals) in PROPOSALS {
            let own = Paper::ALL.map(|other| if other == paper { 1000.0 } else { 400.0 });
            all.extend(proposals.iter().map(|name| ((*name).to_owned(), scores(own, [1000.0; 5]))));
        }
        all.insert("sack+sifest".to_owned(), scores(ours, competitor));
        all.insert("sack+oracle".to_owned(), scores(truth, [1000.0; 5]));
        verdict(&all, &[2000.0; PATHS.len()], 3)
    }

    #[test]
    fn recipe_meeting_all_conditions_is_best() {
        let remarks = verdict_on([1100.0; 5], [990.0; 5], [1500.0; 5]);
        assert!(remarks[0].starts_with("`sack+sifest` beats"), "{remarks:?}");
        assert!(remarks[0].ends_with("it is `best`."), "{remarks:?}");
        assert!(remarks[1].contains("The obstacle for real senders is to find these causes"), "{remarks:?}");
    }

    #[test]
    fn verdict_quantifies_unmet_conditions() {
        let ours = [1100.0, 1100.0, 1100.0, 600.0, 1100.0];
        let remarks =
            verdict_on(ours, [990.0, 800.0, 990.0, 990.0, 990.0], [900.0, 1500.0, 1500.0, 1500.0, 1500.0]);
        let found = "The beam search (2 recipes per step, 3 seeds) found no recipe that beats";
        assert!(remarks[0].starts_with(found), "{remarks:?}");
        assert!(remarks[0].contains("`sack+sifest` has the smallest shortfall"), "{remarks:?}");
        let shortfall = "in the setting of Lai et al. 2013, it gains -40.0 ± 0.0 % over `newreno+rebate` \
                     (goodput relative to capacity × (1 − loss): `sack+sifest` 30 %, `newreno+rebate` 50 %, \
                     `sack+oracle` 75 %)";
        assert!(remarks[0].contains(shortfall), "{remarks:?}");
        assert!(
            remarks[0].contains("in the setting of Ni et al. 2002, a competing NewReno loses 20.0 ± 0.0 %"),
            "{remarks:?}"
        );
        assert!(!remarks[0].contains("Pan"), "{remarks:?}");
        assert!(remarks[1].contains("not enough") && remarks[1].contains("Pan et al. 2004"), "{remarks:?}");
    }
}
