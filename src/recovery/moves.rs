//! Which of the [`MOVES`] a recipe can make: what `airtcp explain` prints.
//!
//! The catalogue says of each part what it moves a sender by, and in which states. Two parts together may rule out a move
//! that each alone allows, so the list may be longer than what happens. It is never shorter.

use std::collections::BTreeSet;

use super::catalogue::{Build, Need, Question, Row};
use super::episode::{Cue, MOVES, Move, Phase};
use super::recipe::Recipe;
use crate::profile::Profile;
use crate::profile::knobs::{Careful, Knobs};

impl Recipe {
    /// The moves that a sender of this recipe can make, in the order of [`MOVES`]. `profile` is what [`Recipe::tune`]
    /// returned.
    pub fn moves(&self, profile: &Profile) -> Vec<Move> {
        let rows = self.rows();
        let possible: Vec<Move> =
            MOVES.iter().copied().filter(|made| self.may_make(*made, &rows, profile)).collect();
        let mut reached = BTreeSet::from([Phase::Open]);
        while let Some(next) =
            possible.iter().find(|made| reached.contains(&made.from) && !reached.contains(&made.to))
        {
            reached.insert(next.to);
        }
        possible.into_iter().filter(|made| reached.contains(&made.from)).collect()
    }

    /// Its six answers, and everything else that it names.
    fn rows(&self) -> Vec<&'static Row> {
        let answers = Question::ALL.into_iter().filter_map(|question| self.answer(question));
        let beside = self.parts().map(|(row, _)| row).filter(|row| !row.is_the_answer());
        answers.chain(beside).collect()
    }

    fn may_make(&self, made: Move, rows: &[&Row], profile: &Profile) -> bool {
        let mut by = rows.iter().filter(|row| self.moves_by(row, made.cue));
        match made.cue {
            Cue::Timeout | Cue::Acknowledged => true,
            Cue::EcnEcho => profile.ecn || profile.ecn_passive,
            Cue::Loss | Cue::RestartingLoss => {
                by.next().is_some() && begins_an_event_in(made.from, rows, &profile.recovery)
            }
            Cue::Collapse | Cue::TimeoutWithDuplicates | Cue::RepairedByProbe | Cue::Mistake => {
                by.any(|row| row.heard_in.contains(&made.from))
            }
        }
    }

    /// What is said of single segments takes a scoreboard.
    fn moves_by(&self, row: &Row, cue: Cue) -> bool {
        let has_scoreboard =
            || self.answer(Question::Repair).is_some_and(|repair| repair.needs.contains(&Need::Sack));
        row.cues.contains(&cue) && (!row.marks_segments || has_scoreboard())
    }
}

/// Whether a loss that is found in this state begins a loss event.
fn begins_an_event_in(state: Phase, rows: &[&Row], knobs: &Knobs) -> bool {
    let finds = |row: &Row| matches!(row.build, Build::Repair(_) | Build::Detect(_) | Build::Witness(_));
    let is_careful = matches!(knobs.careful, Careful::Yes | Careful::Less) && knobs.careless_at.is_none();
    // Nothing is missing yet in `Reduced`, and so every loss begins an event there.
    state == Phase::Reduced
        || rows.iter().any(|row| finds(row) && row.heard_in.contains(&state))
        || !is_careful && state != Phase::Recovery
}

#[cfg(test)]
mod tests;
