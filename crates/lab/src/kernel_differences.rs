//! The differences between recipes and this kernel's senders: the line under a table that contains both.
//!
//! New namespaces use the kernel's defaults for all of these features (`tcp_sk_init`), independent of the
//! machine's settings.

use std::fs;

use airtcp::Profile;
use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue::Question;

use super::sender::{Kind, Sender};

/// A kernel sender.
struct KernelSender<'a> {
    /// The congestion control.
    control: &'a str,
    /// True if the queue (`fq`) delays packets until their departure time.
    queue_paces: bool,
}

/// A recipe's sender.
struct RecipeSender<'a> {
    recipe: &'a Recipe,
    /// The profile, including the recipe's options.
    profile: Profile,
}

/// A feature of a kernel sender.
struct Feature {
    /// The name of the feature, given the congestion controls of the kernel senders.
    name: fn(&[&str]) -> String,
    /// Returns true if the kernel sender has the feature.
    in_kernel: fn(&KernelSender<'_>) -> bool,
    /// Returns true if the recipe has the feature as the kernel sender has it.
    in_recipe: fn(&RecipeSender<'_>, &KernelSender<'_>) -> bool,
}

const ALWAYS: fn(&KernelSender<'_>) -> bool = |_| true;

/// All features that the line can name, in order. When a sender learns a feature, the entry of this feature
/// must be changed.
const FEATURES: &[Feature] = &[
    Feature {
        name: |_| "profile linux (timer, window growth, dialect of CUBIC)".to_owned(),
        in_kernel: ALWAYS,
        in_recipe: |recipe, _| recipe.profile.name == "linux",
    },
    Feature {
        name: |controls| format!("congestion control {}", controls.join(" or ")),
        in_kernel: ALWAYS,
        in_recipe: |recipe, kernel| recipe.controls_like(kernel.control),
    },
    Feature {
        name: |_| "SACK".to_owned(),
        in_kernel: ALWAYS,
        in_recipe: |recipe, _| {
            recipe.profile.handshake.sack.is_offered(recipe.recipe.wants_sack())
                && recipe.answers(Question::Repair, "sack")
        },
    },
    Feature {
        name: |_| "RACK-TLP".to_owned(),
        in_kernel: ALWAYS,
        in_recipe: |recipe, _| recipe.answers(Question::Detect, "rack"),
    },
    // BBR also sets the window in recovery (`tcp_cong_control`), so the kernel does not use PRR with BBR.
    Feature {
        name: |_| "PRR".to_owned(),
        in_kernel: |kernel| kernel.control != "bbr",
        in_recipe: |recipe, _| recipe.names("prr"),
    },
    Feature {
        name: |_| "F-RTO".to_owned(),
        in_kernel: ALWAYS,
        in_recipe: |recipe, _| recipe.answers(Question::Timeout, "frto"),
    },
    // The kernel undoes a reduction after timestamps or D-SACK show that it was spurious
    // (`tcp_try_undo_recovery`).
    Feature {
        name: |_| "undo of spurious reductions".to_owned(),
        in_kernel: ALWAYS,
        in_recipe: |recipe, _| !recipe.answers(Question::Undo, "never"),
    },
    Feature {
        name: |_| "HyStart".to_owned(),
        in_kernel: |kernel| kernel.control == "cubic",
        in_recipe: |recipe, _| recipe.names("hystart"),
    },
    // BBR requests pacing (`bbr_init`). The queue paces other senders if it can (`fq_enqueue`).
    Feature {
        name: |_| "pacing".to_owned(),
        in_kernel: |kernel| kernel.queue_paces || kernel.control == "bbr",
        in_recipe: |recipe, _| recipe.names("pacing") || recipe.answers(Question::Window, "bbr"),
    },
    // With segmentation offload, the kernel waits instead of sending a short segment
    // (`tcp_tso_should_defer`).
    Feature {
        name: |_| "bursts of several segments".to_owned(),
        in_kernel: ALWAYS,
        in_recipe: |recipe, _| recipe.profile.sending.defers,
    },
];

impl RecipeSender<'_> {
    fn answers(&self, question: Question, name: &str) -> bool {
        self.recipe.answer(question).is_some_and(|row| row.name == name)
    }

    fn names(&self, name: &str) -> bool {
        self.recipe.parts().any(|(row, _)| row.name == name)
    }

    /// Returns true if the window grows and shrinks as with the kernel's congestion control.
    fn controls_like(&self, control: &str) -> bool {
        match control {
            "reno" => self.answers(Question::Window, "aimd") && self.profile.recovery.decrease.beta == 0.5,
            "vegas" => self.answers(Question::Window, "vegas-window"),
            other => self.answers(Question::Window, other),
        }
    }
}

/// The features that a recipe lacks, as indices into [`FEATURES`], compared with the most similar kernel
/// sender.
fn missing_features(recipe: &RecipeSender<'_>, controls: &[&str], queue_paces: bool) -> Vec<usize> {
    let compared_with = |control: &&str| {
        let kernel = KernelSender { control, queue_paces };
        let is_missing =
            |feature: &Feature| (feature.in_kernel)(&kernel) && !(feature.in_recipe)(recipe, &kernel);
        (0..FEATURES.len()).filter(|index| is_missing(&FEATURES[*index])).collect()
    };
    controls.iter().map(compared_with).min_by_key(Vec::len).unwrap_or_default()
}

/// Returns true if new devices on this machine have a queue that paces.
pub(super) fn paces_by_queue() -> bool {
    fs::read_to_string("/proc/sys/net/core/default_qdisc").is_ok_and(|queue| queue.trim() == "fq")
}

/// If more senders than this lack a feature, the line gives their number instead of their names.
const MAX_NAMES: usize = 3;

/// The line. `None` unless there are both kernel senders and recipes.
pub(super) fn line(senders: &[Sender], queue_paces: bool) -> Option<String> {
    let controls = senders.iter().filter_map(|sender| match &sender.kind {
        Kind::Kernel(control) => Some(control.as_str()),
        Kind::Recipe { .. } => None,
    });
    let controls: Vec<_> = controls.collect();
    let recipes = senders.iter().filter_map(|sender| match &sender.kind {
        Kind::Recipe { recipe, profile } => {
            let recipe = RecipeSender { recipe, profile: recipe.tune(&profile.profile()) };
            Some((sender.name.as_str(), missing_features(&recipe, &controls, queue_paces)))
        }
        Kind::Kernel(_) => None,
    });
    let recipes: Vec<_> = recipes.collect();
    if controls.is_empty() || recipes.is_empty() {
        return None;
    }
    // Group the features by the senders that lack them. Features that all senders lack come first.
    let all = recipes.iter().map(|(name, _)| *name).collect();
    let mut groups: Vec<(Vec<&str>, Vec<String>)> = vec![(all, Vec::new())];
    for (index, feature) in FEATURES.iter().enumerate() {
        let without = recipes.iter().filter(|(_, missing)| missing.contains(&index));
        let without: Vec<_> = without.map(|(name, _)| *name).collect();
        let feature = (feature.name)(&controls);
        match groups.iter_mut().find(|(senders, _)| *senders == without) {
            _ if without.is_empty() => {}
            Some((_, features)) => features.push(feature),
            None => groups.push((without, vec![feature])),
        }
    }
    let differences = groups.iter().filter(|(_, features)| !features.is_empty()).map(|(names, features)| {
        let senders = match names.len() {
            1 => format!("{} lacks", names[0]),
            count if count == recipes.len() => "all recipes lack".to_owned(),
            count if count > MAX_NAMES => format!("{count} of {} recipes lack", recipes.len()),
            _ => format!("{} lack", names.join(", ")),
        };
        format!("{senders} {}", features.join(", "))
    });
    let differences = differences.collect::<Vec<_>>().join("; ");
    Some(match differences.as_str() {
        "" => "similar to the kernel senders in all known parts (docs/reference/receivers.md)".to_owned(),
        _ => format!("differences from the kernel senders: {differences}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::resolve;

    fn difference_line(senders: &[&str], queue_paces: bool) -> Option<String> {
        let typed: Vec<_> = senders.iter().map(|text| text.parse().unwrap()).collect();
        line(&resolve(&typed, None).unwrap(), queue_paces)
    }

    #[test]
    fn difference_line_requires_recipe_and_kernel_sender() {
        assert_eq!(difference_line(&["newreno", "sack"], false), None);
        assert_eq!(difference_line(&["linux:cubic", "linux:bbr"], false), None);
    }

    #[test]
    fn plain_recipe_lists_missing_kernel_algorithms() {
        let expected = "differences from the kernel senders: newreno lacks congestion control cubic, SACK, RACK-TLP, PRR, F-RTO, \
                        undo of spurious reductions, HyStart, bursts of several segments";
        assert_eq!(difference_line(&["newreno", "linux:cubic"], false).as_deref(), Some(expected));
    }

    #[test]
    fn matching_recipe_parts_are_not_listed_as_missing() {
        let like = "sack+rack+cubic+prr+frto+dsack";
        let expected = "differences from the kernel senders: all recipes lack HyStart, bursts of several segments; newreno lacks \
                        congestion control cubic, SACK, RACK-TLP, PRR, F-RTO, undo of spurious reductions";
        assert_eq!(difference_line(&[like, "newreno", "linux:cubic"], false).as_deref(), Some(expected));
        let expected = "similar to the kernel senders in all known parts (docs/reference/receivers.md)";
        assert_eq!(difference_line(&["linux", "linux:cubic"], false).as_deref(), Some(expected));
    }

    #[test]
    fn recipe_with_other_profile_is_named() {
        let line = difference_line(&["newreno@default", "newreno", "linux:cubic"], false).unwrap();
        let end = "; newreno@default lacks profile linux (timer, window growth, dialect of CUBIC)";
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn missing_parts_depend_on_compared_kernel_sender() {
        let lacks = |senders: &[&str], queue_paces| difference_line(senders, queue_paces).unwrap();
        assert!(!lacks(&["sack", "linux:cubic"], false).contains("pacing"));
        assert!(lacks(&["sack", "linux:cubic"], true).contains("pacing"));
        let bbr = lacks(&["sack", "linux:bbr"], false);
        assert!(bbr.contains("pacing") && !bbr.contains("HyStart") && !bbr.contains("PRR"), "{bbr}");
        // With profile `linux`, a loss multiplies the window by 0.7.
        assert!(lacks(&["newreno", "linux:reno"], false).contains("congestion control reno"));
        assert!(!lacks(&["newreno+beta=0.5", "linux:reno"], false).contains("congestion control"));
        // Each recipe is compared with the most similar kernel sender.
        let all = ["reno-linux", "linux", "bbr-linux", "linux:cubic", "linux:reno", "linux:bbr"];
        assert!(lacks(&all, false).starts_with("similar to the kernel senders"));
    }

    #[test]
    fn few_senders_are_named_and_many_counted() {
        let senders = ["reno", "newreno", "tahoe", "sack", "sack+prr", "linux:cubic"];
        let line = difference_line(&senders, false).unwrap();
        assert!(line.contains("; reno, newreno, tahoe lack SACK; 4 of 5 recipes lack PRR"), "{line}");
    }
}
