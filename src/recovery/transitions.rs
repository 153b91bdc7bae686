//! The [`TRANSITIONS`] (state transitions) that a recipe can make, as printed by `airtcp explain`.
//!
//! For each part, the catalogue lists the conditions by which the part moves a sender, and the states in
//! which it reacts to these conditions. Two parts may each allow a move that they prevent together. So the
//! result contains every possible move, but may also contain moves that never happen.

use std::collections::BTreeSet;

use super::catalogue::{Build, Need, Question, Row};
use super::episode::{Condition, RecoveryState, TRANSITIONS, Transition};
use super::recipe::Recipe;
use crate::profile::Profile;
use crate::profile::recovery::{Careful, RecoveryRules};

impl Recipe {
    /// Returns the moves that a sender of this recipe can make, in the order of [`TRANSITIONS`]. `profile` is the
    /// result of [`Recipe::tune`].
    pub fn transitions(&self, profile: &Profile) -> Vec<Transition> {
        let rows = self.rows();
        let possible: Vec<Transition> =
            TRANSITIONS.iter().copied().filter(|made| self.may_make(*made, &rows, profile)).collect();
        let mut reached = BTreeSet::from([RecoveryState::Open]);
        while let Some(next) =
            possible.iter().find(|made| reached.contains(&made.from) && !reached.contains(&made.to))
        {
            reached.insert(next.to);
        }
        possible.into_iter().filter(|made| reached.contains(&made.from)).collect()
    }

    /// Returns the rows of its six answers and of everything else that it names.
    fn rows(&self) -> Vec<&'static Row> {
        let answers = Question::ALL.into_iter().filter_map(|question| self.answer(question));
        let add_ons = self.parts().map(|(row, _)| row).filter(|row| !row.is_answer());
        answers.chain(add_ons).collect()
    }

    fn may_make(&self, made: Transition, rows: &[&Row], profile: &Profile) -> bool {
        let mut by = rows.iter().filter(|row| self.moves_by(row, made.condition));
        match made.condition {
            Condition::Timeout | Condition::Acknowledged => true,
            Condition::EcnEcho => profile.handshake.ecn || profile.handshake.ecn_passive,
            Condition::Loss | Condition::RestartingLoss => {
                by.next().is_some() && begins_episode_in(made.from, rows, &profile.recovery)
            }
            Condition::Collapse
            | Condition::TimeoutWithDuplicates
            | Condition::RepairedByProbe
            | Condition::Mistake => by.any(|row| row.active_states.contains(&made.from)),
        }
    }

    /// Returns whether `row` reacts to `condition`. A part that marks single segments as lost reacts only
    /// with a scoreboard.
    fn moves_by(&self, row: &Row, condition: Condition) -> bool {
        let has_scoreboard =
            || self.answer(Question::Repair).is_some_and(|repair| repair.needs.contains(&Need::Sack));
        row.conditions.contains(&condition) && (!row.marks_segments || has_scoreboard())
    }
}

/// Returns whether a loss found in this state begins an episode.
fn begins_episode_in(state: RecoveryState, rows: &[&Row], rules: &RecoveryRules) -> bool {
    let finds =
        |row: &Row| matches!(row.build, Build::Repair(_) | Build::Detect(_) | Build::AdditionalDetector(_));
    let is_careful = matches!(rules.fast_recovery.careful, Careful::Yes | Careful::Less)
        && rules.fast_recovery.relaxed_recover_at.is_none();
    // In `Reduced` no segment is missing yet, so every loss begins an episode.
    state == RecoveryState::Cwr
        || rows.iter().any(|row| finds(row) && row.active_states.contains(&state))
        || !is_careful && state != RecoveryState::Recovery
}

#[cfg(test)]
mod tests;
