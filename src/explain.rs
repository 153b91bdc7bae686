//! Descriptions of recipes, which `airtcp explain` prints: the answers and their sources, the states of the
//! loss recovery and its transitions, and what a capture of the handshake shows.

use crate::profile::Profile;
use crate::recovery::catalogue::{Question, Row};
use crate::recovery::{Recipe, RecoveryState, Transition};

/// An answer, an add-on or an option.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Part {
    /// The question that the part answers, in one word.
    pub question: &'static str,
    /// The part's name in recipes.
    pub name: &'static str,
    /// The part's numeric value, if the part takes one.
    pub value: Option<f64>,
    /// One-line summary.
    pub summary: &'static str,
    /// The publication, RFC or kernel function that defines it.
    pub citation: &'static str,
    /// True for a default answer, which the recipe does not name.
    pub default: bool,
    /// Names of the features that it requires.
    pub needs: Vec<&'static str>,
    /// The question to which the part belongs.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub of: Question,
}

/// A state that the sender can be in.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct State {
    /// The state's name.
    pub state: &'static str,
    /// The profile that these transitions apply to.
    pub profile: &'static str,
    /// The sender's behaviour in this state.
    pub meaning: &'static str,
    /// Transitions out of this state, ordered by target state.
    #[cfg_attr(feature = "serde", serde(rename = "moves"))]
    pub transitions: Vec<OutgoingTransition>,
}

/// A transition out of a state.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct OutgoingTransition {
    /// The target state.
    pub to: &'static str,
    /// Machine-readable name of the trigger.
    pub condition: &'static str,
    /// Human-readable description of the trigger.
    pub text: &'static str,
}

/// Returns the recipe's answer to each question, its add-ons and its options.
pub fn parts(recipe: &Recipe) -> Vec<Part> {
    let part = |(row, value): (&'static Row, Option<f64>), default| Part {
        question: row.question().name(),
        name: row.name,
        value,
        summary: row.summary,
        citation: row.citation,
        default,
        needs: row.needs.iter().map(|need| need.name()).collect(),
        of: row.question(),
    };
    let mut parts = Vec::new();
    for question in Question::ALL {
        let named = |row: &Row| recipe.parts().any(|(named, _)| named.name == row.name);
        let answer = recipe.answer(question).map(|row| part((row, None), !named(row)));
        parts.extend(answer);
        let add_ons = recipe.parts().filter(|(row, _)| row.question() == question && !row.is_answer());
        parts.extend(add_ons.map(|named| part(named, false)));
    }
    parts
}

/// Returns the states that a sender with this recipe can be in. `tuned` is its profile with the recipe's
/// options applied.
pub fn states(recipe: &Recipe, tuned: &Profile) -> Vec<State> {
    let mut all = recipe.transitions(tuned);
    all.sort_by_key(|transition| transition.to);
    let from = |state: RecoveryState| {
        let transitions = all.iter().filter(|transition| transition.from == state);
        let outgoing = transitions.map(|Transition { to, condition, .. }| OutgoingTransition {
            to: to.name(),
            condition: condition.name(),
            text: condition.text(),
        });
        let (name, meaning) = (state.name(), state.meaning());
        State { state: name, profile: tuned.name, meaning, transitions: outgoing.collect() }
    };
    RecoveryState::ALL.into_iter().map(from).filter(|state| !state.transitions.is_empty()).collect()
}

/// Describes the options that a capture of the handshake will show.
pub fn on_the_wire(recipe: &Recipe, tuned: &Profile) -> String {
    let offers = |what, offered| if offered { format!("{what} offered") } else { format!("no {what}") };
    let sack = tuned.handshake.sack.is_offered(recipe.wants_sack());
    let ecn = if tuned.handshake.ecn { ", ECN offered" } else { "" };
    format!("{}, {}{ecn}", offers("SACK", sack), offers("timestamps", tuned.handshake.timestamps))
}
