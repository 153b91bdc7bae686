//! The differences between recipes and this kernel's senders: the line under a table that contains both.
//!
//! New namespaces use the kernel's defaults for all of these features (`tcp_sk_init`), whatever the machine's
//! settings.

use std::fs;

use airtcp::Profile;
use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue::Question;

use super::sender::{Kind, Sender};

/// A kernel sender.
struct Kernel<'a> {
    /// The congestion control.
    control: &'a str,
    /// True if the queue (`fq`) delays packets until their departure time.
    queue_paces: bool,
}

/// A recipe's sender.
struct Ours<'a> {
    recipe: &'a Recipe,
    /// The profile, including the recipe's options.
    profile: Profile,
}

/// A feature of a kernel sender.
struct Thing {
    /// The name of the feature, given the congestion controls of the kernel senders.
    what: fn(&[&str]) -> String,
    theirs: fn(&Kernel<'_>) -> bool,
    ours: fn(&Ours<'_>, &Kernel<'_>) -> bool,
}

/// All features that the line can name, in order. When a sender learns a feature, its entry changes.
const THINGS: &[Thing] = &[
    Thing {
        what: |_| "profile linux (timer, window growth, dialect of CUBIC)".to_owned(),
        theirs: |_| true,
        ours: |ours, _| ours.profile.name == "linux",
    },
    Thing {
        what: |controls| format!("congestion control {}", controls.join(" or ")),
        theirs: |_| true,
        ours: |ours, kernel| ours.controls_like(kernel.control),
    },
    Thing {
        what: |_| "SACK".to_owned(),
        theirs: |_| true,
        ours: |ours, _| {
            ours.profile.handshake.sack.is_offered(ours.recipe.wants_sack())
                && ours.answers(Question::Repair, "sack")
        },
    },
    Thing {
        what: |_| "RACK-TLP".to_owned(),
        theirs: |_| true,
        ours: |ours, _| ours.answers(Question::Detect, "rack"),
    },
    // BBR also sets the window in recovery (`tcp_cong_control`), so the kernel does not use PRR with it.
    Thing {
        what: |_| "PRR".to_owned(),
        theirs: |kernel| kernel.control != "bbr",
        ours: |ours, _| ours.names("prr"),
    },
    Thing {
        what: |_| "F-RTO".to_owned(),
        theirs: |_| true,
        ours: |ours, _| ours.answers(Question::Timeout, "frto"),
    },
    // The kernel undoes a reduction after timestamps or D-SACK show that it was spurious
    // (`tcp_try_undo_recovery`).
    Thing {
        what: |_| "undo of spurious reductions".to_owned(),
        theirs: |_| true,
        ours: |ours, _| !ours.answers(Question::Undo, "never"),
    },
    Thing {
        what: |_| "HyStart".to_owned(),
        theirs: |kernel| kernel.control == "cubic",
        ours: |ours, _| ours.names("hystart"),
    },
    // BBR requests pacing (`bbr_init`). The queue paces other senders if it can (`fq_enqueue`).
    Thing {
        what: |_| "pacing".to_owned(),
        theirs: |kernel| kernel.queue_paces || kernel.control == "bbr",
        ours: |ours, _| ours.names("pacing") || ours.answers(Question::Window, "bbr"),
    },
    // With segmentation offload, the kernel waits instead of sending a short segment
    // (`tcp_tso_should_defer`).
    Thing {
        what: |_| "bursts of several segments".to_owned(),
        theirs: |_| true,
        ours: |ours, _| ours.profile.sending.defers,
    },
];

impl Ours<'_> {
    fn answers(&self, question: Question, name: &str) -> bool {
        self.recipe.answer(question).is_some_and(|row| row.name == name)
    }

    fn names(&self, name: &str) -> bool {
        self.recipe.parts().any(|(row, _)| row.name == name)
    }

    /// Returns true if the window grows and shrinks as with the kernel's congestion control.
    fn controls_like(&self, control: &str) -> bool {
        match control {
            "reno" => self.answers(Question::Window, "aimd") && self.profile.recovery.beta == 0.5,
            "vegas" => self.answers(Question::Window, "vegas-window"),
            other => self.answers(Question::Window, other),
        }
    }
}

/// The features that a recipe lacks, as indices into [`THINGS`], compared with the most similar kernel
/// sender.
fn lacks(ours: &Ours<'_>, controls: &[&str], queue_paces: bool) -> Vec<usize> {
    let beside = |control: &&str| {
        let kernel = Kernel { control, queue_paces };
        let missing = |thing: &Thing| (thing.theirs)(&kernel) && !(thing.ours)(ours, &kernel);
        (0..THINGS.len()).filter(|place| missing(&THINGS[*place])).collect()
    };
    controls.iter().map(beside).min_by_key(Vec::len).unwrap_or_default()
}

/// Returns true if new devices on this machine have a queue that paces.
pub(super) fn paces_by_queue() -> bool {
    fs::read_to_string("/proc/sys/net/core/default_qdisc").is_ok_and(|queue| queue.trim() == "fq")
}

/// If more senders than this lack a feature, the line gives their number instead of their names.
const MOST_NAMES: usize = 3;

/// The line. `None` unless there are both kernel senders and recipes.
pub(super) fn line(senders: &[Sender], queue_paces: bool) -> Option<String> {
    let controls = senders.iter().filter_map(|sender| match &sender.kind {
        Kind::Kernel(control) => Some(control.as_str()),
        Kind::Recipe { .. } => None,
    });
    let controls: Vec<_> = controls.collect();
    let ours = senders.iter().filter_map(|sender| match &sender.kind {
        Kind::Recipe { recipe, profile } => {
            let ours = Ours { recipe, profile: recipe.tune(&profile.profile()) };
            Some((sender.name.as_str(), lacks(&ours, &controls, queue_paces)))
        }
        Kind::Kernel(_) => None,
    });
    let ours: Vec<_> = ours.collect();
    if controls.is_empty() || ours.is_empty() {
        return None;
    }
    // Group the features by the senders that lack them. Features that all senders lack come first.
    let mut lacks: Vec<(Vec<&str>, Vec<String>)> =
        vec![(ours.iter().map(|(name, _)| *name).collect(), Vec::new())];
    for (place, thing) in THINGS.iter().enumerate() {
        let without = ours.iter().filter(|(_, lacks)| lacks.contains(&place));
        let without: Vec<_> = without.map(|(name, _)| *name).collect();
        let what = (thing.what)(&controls);
        match lacks.iter_mut().find(|(names, _)| *names == without) {
            _ if without.is_empty() => {}
            Some((_, whats)) => whats.push(what),
            None => lacks.push((without, vec![what])),
        }
    }
    let said = lacks.iter().filter(|(_, whats)| !whats.is_empty()).map(|(names, whats)| {
        let who = match names.len() {
            1 => format!("{} lacks", names[0]),
            count if count == ours.len() => "all recipes lack".to_owned(),
            count if count > MOST_NAMES => format!("{count} of {} recipes lack", ours.len()),
            _ => format!("{} lack", names.join(", ")),
        };
        format!("{who} {}", whats.join(", "))
    });
    let said: Vec<_> = said.collect();
    match said.is_empty() {
        true => {
            Some("similar to the kernel senders in all known parts (docs/reference/receivers.md)".to_owned())
        }
        false => Some(format!("differences from the kernel senders: {}", said.join("; "))),
    }
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
        let said = difference_line(&["newreno@default", "newreno", "linux:cubic"], false).unwrap();
        assert!(
            said.ends_with("; newreno@default lacks profile linux (timer, window growth, dialect of CUBIC)"),
            "{said}"
        );
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
        let said =
            difference_line(&["reno", "newreno", "tahoe", "sack", "sack+prr", "linux:cubic"], false).unwrap();
        assert!(said.contains("; reno, newreno, tahoe lack SACK; 4 of 5 recipes lack PRR"), "{said}");
    }
}
