//! `airtcp explain`: what a recipe answers to each question, and what moves its sender from one state to another.

use std::io::Write;

use airtcp::profile::{Profile, ProfileName};
use airtcp::recovery::catalogue::{Question, Row};
use airtcp::recovery::{Move, Phase, Recipe};
use airtcp::sender::SenderSpec;
use clap::Args;
use serde::Serialize;

use super::algorithms::need_name;
use crate::shared::say;
use crate::shared::senders::{ProfileParser, SenderParser, one_profile};

/// Print which answer each question gets under a recipe, where it comes from, and how the sender deals with losses.
///
/// That is the states in which its loss recovery can be, and for each of them what moves it to another one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The recipe, e.g. sack+eifel (see `airtcp algorithms`), or with another profile than `default`, sack+eifel@linux
    #[arg(value_name = "RECIPE[@PROFILE]", value_parser = SenderParser, hide_possible_values = true)]
    sender: SenderSpec,
    /// Whose TCP to look like in everything but the recipe, if that does not name it [default: default]
    #[arg(long, value_name = "PROFILE", value_parser = ProfileParser)]
    profile: Option<ProfileName>,
    /// Print JSON instead of text: an object per part, then one per state
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A question that the recipe leaves out gets the ordinary answer, marked with *.

Examples:
  airtcp explain etcp
  airtcp explain newreno@linux
  airtcp explain sack+rack+prr+cubic --json | jq -r '.citation // empty'
  airtcp explain tahoe+ecn --json | jq -c 'select(.state) | [.state, .moves[].to]'";

/// The widths of a state's name, and of one with an arrow.
const STATE: usize = 9;
const ARROW: usize = 11;

/// An answer, something that adds to it, or an option.
#[derive(Serialize)]
struct Part {
    question: &'static str,
    name: &'static str,
    value: Option<f64>,
    summary: &'static str,
    citation: &'static str,
    /// Not named in the recipe.
    ordinary: bool,
    needs: Vec<&'static str>,
    #[serde(skip)]
    of: Question,
}

/// A state that the sender can be in.
#[derive(Serialize)]
struct State {
    state: &'static str,
    /// With which profile the sender moves like this.
    profile: &'static str,
    meaning: &'static str,
    moves: Vec<Leaving>,
}

/// What moves it out of a state, and where to.
#[derive(Serialize)]
struct Leaving {
    to: &'static str,
    cue: &'static str,
    text: &'static str,
}

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let SenderSpec { recipe, .. } = &self.sender;
        let profile = one_profile(Some(&self.sender), self.profile)?.unwrap_or_default();
        let tuned = recipe.tune(&profile.profile());
        let (parts, states) = (parts(recipe), states(recipe, &tuned));
        let mut out = say::out();
        if self.json {
            for part in &parts {
                writeln!(out, "{}", serde_json::to_string(part)?)?;
            }
            for state in &states {
                writeln!(out, "{}", serde_json::to_string(state)?)?;
            }
            return Ok(());
        }
        writeln!(out, "{recipe}")?;
        let width = parts.iter().map(|part| label(part).len()).max().unwrap_or(0);
        for question in Question::ALL {
            let mut title = Some(question.text());
            for part in parts.iter().filter(|part| part.of == question) {
                if let Some(title) = title.take() {
                    writeln!(out, "\n{title}")?;
                }
                let mark = if part.ordinary { '*' } else { ' ' };
                writeln!(out, "{mark} {:<width$}  {} ({})", label(part), part.summary, part.citation)?;
            }
        }
        writeln!(out, "\nStates of loss recovery, and what moves the sender to another")?;
        for State { state, meaning, moves, .. } in &states {
            writeln!(out, "  {state:<STATE$}  {meaning}")?;
            // What leads to the same state stands under each other.
            let mut last = "";
            for Leaving { to, text, .. } in moves {
                let arrow = if *to == last { String::new() } else { format!("→ {to}") };
                writeln!(out, "    {arrow:<ARROW$}  {text}")?;
                last = to;
            }
        }
        writeln!(out, "\nProfile {profile}: {}.", profile.summary())?;
        writeln!(out, "On the wire: {}.", on_the_wire(recipe, &tuned))?;
        Ok(())
    }
}

fn parts(recipe: &Recipe) -> Vec<Part> {
    let part = |(row, value): (&'static Row, Option<f64>), ordinary| Part {
        question: row.question().name(),
        name: row.name,
        value,
        summary: row.summary,
        citation: row.citation,
        ordinary,
        needs: row.needs.iter().map(need_name).collect(),
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

/// The states that it can be in.
fn states(recipe: &Recipe, tuned: &Profile) -> Vec<State> {
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

fn label(part: &Part) -> String {
    match part.value {
        Some(value) => format!("{}={value}", part.name),
        None => part.name.to_owned(),
    }
}

/// What a capture of its handshake will show.
fn on_the_wire(recipe: &Recipe, tuned: &Profile) -> String {
    let offers = |what, offered| if offered { format!("{what} offered") } else { format!("no {what}") };
    let sack = tuned.sack.is_offered(recipe.wants_sack());
    let ecn = if tuned.ecn { ", ECN offered" } else { "" };
    format!("{}, {}{ecn}", offers("SACK", sack), offers("timestamps", tuned.timestamps))
}
