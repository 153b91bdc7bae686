//! `airtcp explain`: what a recipe answers to each question.

use std::io::{self, Write};

use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::recovery::catalogue::{Question, Row};
use clap::Args;
use serde::Serialize;

use super::algorithms::need_name;
use crate::shared::decisions;

/// Print which answer each question gets under a recipe, and where it comes from.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The recipe, e.g. sack+eifel (see `airtcp algorithms`)
    recipe: Recipe,
    /// Print one JSON object per part
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A question that the recipe leaves out gets the ordinary answer, marked with *.

Examples:
  airtcp explain etcp
  airtcp explain sack+rack+prr+cubic --json | jq -r .citation";

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

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let parts = parts(&self.recipe);
        let mut out = io::stdout().lock();
        if self.json {
            for part in &parts {
                writeln!(out, "{}", serde_json::to_string(part)?)?;
            }
            return Ok(());
        }
        writeln!(out, "{}", self.recipe)?;
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
        writeln!(out, "\n{}", on_the_wire(&self.recipe))?;
        Ok(())
    }
}

fn parts(recipe: &Recipe) -> Vec<Part> {
    let part = |(row, value): (&'static Row, Option<f64>), ordinary| Part {
        question: decisions::name(row.question()),
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

fn label(part: &Part) -> String {
    match part.value {
        Some(value) => format!("{}={value}", part.name),
        None => part.name.to_owned(),
    }
}

/// What a capture of its handshake will show.
fn on_the_wire(recipe: &Recipe) -> String {
    let profile = recipe.tune(&Profile::default());
    let offers = |what, offered| if offered { format!("{what} offered") } else { format!("no {what}") };
    let sack = profile.sack.is_offered(recipe.wants_sack());
    let ecn = if profile.ecn { ", ECN offered" } else { "" };
    format!(
        "On the wire (profile default): {}, {}{ecn}.",
        offers("SACK", sack),
        offers("timestamps", profile.timestamps)
    )
}
