//! What this kernel's senders have and ours have not: a line under a table that has both.
//!
//! A new namespace has the kernel's own defaults for all of it (`tcp_sk_init`), whatever the machine is set to.

use std::fs;

use airtcp::Profile;
use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue::Question;

use super::sender::{Kind, Sender};

/// A sender of the kernel.
struct Kernel<'a> {
    /// Its congestion control.
    control: &'a str,
    /// `fq` holds packets back until their time has come.
    queue_paces: bool,
}

/// One of our senders.
struct Ours<'a> {
    recipe: &'a Recipe,
    /// With the recipe's options.
    profile: Profile,
}

/// Something that a kernel sender has.
struct Thing {
    /// Its name, where these are the congestion controls of the kernel's senders.
    what: fn(&[&str]) -> String,
    theirs: fn(&Kernel<'_>) -> bool,
    ours: fn(&Ours<'_>, &Kernel<'_>) -> bool,
}

/// Everything that the line can name, in its order. What one of our senders learns is a change of its row.
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
            ours.profile.sack.is_offered(ours.recipe.wants_sack()) && ours.answers(Question::Repair, "sack")
        },
    },
    Thing {
        what: |_| "RACK-TLP".to_owned(),
        theirs: |_| true,
        ours: |ours, _| ours.answers(Question::Detect, "rack"),
    },
    // BBR sets its window in recovery, too (`tcp_cong_control`).
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
    // By timestamps and by D-SACK (`tcp_try_undo_recovery`).
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
    // BBR asks for it (`bbr_init`); others are paced where the queue does it (`fq_enqueue`).
    Thing {
        what: |_| "pacing".to_owned(),
        theirs: |kernel| kernel.queue_paces || kernel.control == "bbr",
        ours: |ours, _| ours.names("pacing") || ours.answers(Question::Window, "bbr"),
    },
    // A sender with segmentation offload waits rather than send a short piece (`tcp_tso_should_defer`).
    Thing {
        what: |_| "bursts of several segments".to_owned(),
        theirs: |_| true,
        ours: |ours, _| ours.profile.defers,
    },
];

impl Ours<'_> {
    fn answers(&self, question: Question, name: &str) -> bool {
        self.recipe.answer(question).is_some_and(|row| row.name == name)
    }

    fn names(&self, name: &str) -> bool {
        self.recipe.parts().any(|(row, _)| row.name == name)
    }

    /// Its window grows and shrinks like that of the kernel's congestion control.
    fn controls_like(&self, control: &str) -> bool {
        match control {
            "reno" => self.answers(Question::Window, "aimd") && self.profile.recovery.beta == 0.5,
            "vegas" => self.answers(Question::Window, "vegas-window"),
            other => self.answers(Question::Window, other),
        }
    }
}

/// The things, by their place in [`THINGS`], that one of our senders has not and the kernel's sender that is most like it
/// has.
fn lacks(ours: &Ours<'_>, controls: &[&str], queue_paces: bool) -> Vec<usize> {
    let beside = |control: &&str| {
        let kernel = Kernel { control, queue_paces };
        let missing = |thing: &Thing| (thing.theirs)(&kernel) && !(thing.ours)(ours, &kernel);
        (0..THINGS.len()).filter(|place| missing(&THINGS[*place])).collect()
    };
    controls.iter().map(beside).min_by_key(Vec::len).unwrap_or_default()
}

/// Whether a new device of this machine has a queue that paces.
pub(super) fn paces_by_queue() -> bool {
    fs::read_to_string("/proc/sys/net/core/default_qdisc").is_ok_and(|queue| queue.trim() == "fq")
}

/// More senders than this are counted and not named.
const MOST_NAMES: usize = 3;

/// The line. `None`: the kernel sends nothing here, or nobody else does.
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
    // What the same senders lack is said at once, and first what all of them lack.
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

    fn told(senders: &[&str], queue_paces: bool) -> Option<String> {
        let typed: Vec<_> = senders.iter().map(|text| text.parse().unwrap()).collect();
        line(&resolve(&typed, None).unwrap(), queue_paces)
    }

    #[test]
    fn where_nobody_can_be_compared_nothing_is_said() {
        assert_eq!(told(&["newreno", "sack"], false), None);
        assert_eq!(told(&["linux:cubic", "linux:bbr"], false), None);
    }

    #[test]
    fn a_plain_recipe_lacks_what_the_kernel_has_beside_its_profile() {
        let expected = "differences from the kernel senders: newreno lacks congestion control cubic, SACK, RACK-TLP, PRR, F-RTO, \
                        undo of spurious reductions, HyStart, bursts of several segments";
        assert_eq!(told(&["newreno", "linux:cubic"], false).as_deref(), Some(expected));
    }

    #[test]
    fn what_a_recipe_answers_as_the_kernel_does_is_not_missing() {
        let like = "sack+rack+cubic+prr+frto+dsack";
        let expected = "differences from the kernel senders: all recipes lack HyStart, bursts of several segments; newreno lacks \
                        congestion control cubic, SACK, RACK-TLP, PRR, F-RTO, undo of spurious reductions";
        assert_eq!(told(&[like, "newreno", "linux:cubic"], false).as_deref(), Some(expected));
        let expected = "similar to the kernel senders in all known parts (docs/reference/receivers.md)";
        assert_eq!(told(&["linux", "linux:cubic"], false).as_deref(), Some(expected));
    }

    #[test]
    fn another_profile_is_said_and_by_whom() {
        let said = told(&["newreno@default", "newreno", "linux:cubic"], false).unwrap();
        assert!(
            said.ends_with("; newreno@default lacks profile linux (timer, window growth, dialect of CUBIC)"),
            "{said}"
        );
    }

    #[test]
    fn only_what_this_kernel_does_is_missing() {
        let lacks = |senders: &[&str], queue_paces| told(senders, queue_paces).unwrap();
        assert!(!lacks(&["sack", "linux:cubic"], false).contains("pacing"));
        assert!(lacks(&["sack", "linux:cubic"], true).contains("pacing"));
        let bbr = lacks(&["sack", "linux:bbr"], false);
        assert!(bbr.contains("pacing") && !bbr.contains("HyStart") && !bbr.contains("PRR"), "{bbr}");
        // Its window is multiplied by 0.7 with profile `linux`.
        assert!(lacks(&["newreno", "linux:reno"], false).contains("congestion control reno"));
        assert!(!lacks(&["newreno+beta=0.5", "linux:reno"], false).contains("congestion control"));
        // Each is compared with the one that is most like it.
        let all = ["reno-linux", "linux", "bbr-linux", "linux:cubic", "linux:reno", "linux:bbr"];
        assert!(lacks(&all, false).starts_with("similar to the kernel senders"));
    }

    #[test]
    fn a_few_senders_are_named_and_many_are_counted() {
        let said = told(&["reno", "newreno", "tahoe", "sack", "sack+prr", "linux:cubic"], false).unwrap();
        assert!(said.contains("; reno, newreno, tahoe lack SACK; 4 of 5 recipes lack PRR"), "{said}");
    }
}
