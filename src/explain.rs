//! What a recipe means: its answers with where they come from, the states of its loss recovery and what moves it from one
//! to another, and what a capture of its handshake shows. `airtcp explain` prints it.

use crate::profile::Profile;
use crate::recovery::catalogue::{Question, Row};
use crate::recovery::{Move, Phase, Recipe};

/// An answer, something that adds to it, or an option.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Part {
    /// The question that it answers, in a word.
    pub question: &'static str,
    /// As recipes call it.
    pub name: &'static str,
    /// Its number, if it has one.
    pub value: Option<f64>,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Not named in the recipe.
    pub ordinary: bool,
    /// What it cannot do without.
    pub needs: Vec<&'static str>,
    /// The question.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub of: Question,
}

/// A state that the sender can be in.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct State {
    /// Its name.
    pub state: &'static str,
    /// With which profile the sender moves like this.
    pub profile: &'static str,
    /// What the sender does in it.
    pub meaning: &'static str,
    /// In the order of where they lead to.
    pub moves: Vec<Leaving>,
}

/// What moves it out of a state, and where to.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Leaving {
    /// The state that it leads to.
    pub to: &'static str,
    /// For programs.
    pub cue: &'static str,
    /// For people.
    pub text: &'static str,
}

/// Its answer to each question, what adds to them, and its options.
pub fn parts(recipe: &Recipe) -> Vec<Part> {
    let part = |(row, value): (&'static Row, Option<f64>), ordinary| Part {
        question: row.question().name(),
        name: row.name,
        value,
        summary: row.summary,
        citation: row.citation,
        ordinary,
        needs: row.needs.iter().map(|need| need.name()).collect(),
        of: row.question(),
    };
    let mut parts = Vec::new();
    for question in Question::ALL {
        let named = |row: &Row| recipe.parts().any(|(named, _)| named.name == row.name);
        let answer = recipe.answer(question).map(|row| part((row, None), !named(row)));
        parts.extend(answer);
        let beside = recipe.parts().filter(|(row, _)| row.question() == question && !row.is_the_answer());
        parts.extend(beside.map(|named| part(named, false)));
    }
    parts
}

/// The states that it can be in; `tuned` is its profile with the recipe's options applied.
pub fn states(recipe: &Recipe, tuned: &Profile) -> Vec<State> {
    let moves = recipe.moves(tuned);
    let leaving = |state: Phase| {
        let mut leaving: Vec<&Move> = moves.iter().filter(|made| made.from == state).collect();
        leaving.sort_by_key(|made| made.to);
        let told = |made: &Move| Leaving { to: made.to.name(), cue: made.cue.name(), text: made.cue.text() };
        leaving.into_iter().map(told).collect::<Vec<_>>()
    };
    let state = |state: Phase| State {
        state: state.name(),
        profile: tuned.name,
        meaning: state.meaning(),
        moves: leaving(state),
    };
    Phase::ALL.into_iter().map(state).filter(|state| !state.moves.is_empty()).collect()
}

/// What a capture of its handshake will show.
pub fn on_the_wire(recipe: &Recipe, tuned: &Profile) -> String {
    let offers = |what, offered| if offered { format!("{what} offered") } else { format!("no {what}") };
    let sack = tuned.sack.is_offered(recipe.wants_sack());
    let ecn = if tuned.ecn { ", ECN offered" } else { "" };
    format!("{}, {}{ecn}", offers("SACK", sack), offers("timestamps", tuned.timestamps))
}
