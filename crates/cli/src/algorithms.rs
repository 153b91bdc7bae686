//! `airtcp algorithms`: prints the catalogue of algorithms and options as a table.

use std::io::Write;

use airtcp::ProfileName;
use airtcp::recovery::catalogue::{self, Question, Row};
use airtcp::recovery::parameter;
use airtcp_numbers::table::wrapped_lines;
use clap::Args;
use serde::Serialize;

use crate::shared::console;

/// List the algorithms and options for recipes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Algorithms {
    /// Print JSON instead of text: one object per line
    #[arg(long)]
    json: bool,
    /// Print the table of docs/reference/recipes.md
    #[arg(long, hide = true, conflicts_with = "json")]
    markdown: bool,
}

const EXAMPLES: &str = "\
A recipe has at most one answer to each question, and any number of add-ons
and options, joined by `+`: sack+limited-transmit+iw=4. A question that it
leaves out gets the answer marked with *. Rows marked with + are add-ons: they
work next to an answer. A profile can follow after an @: sack+cubic@linux.

Example:
  airtcp algorithms --json | jq -r 'select(.question == \"repair\") | .name'";

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    question: &'static str,
    summary: &'static str,
    citation: &'static str,
    default: bool,
    needs: Vec<&'static str>,
    number: Option<Range>,
}

#[derive(Serialize)]
struct Range {
    min: f64,
    max: f64,
    unit: &'static str,
}

impl Algorithms {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut out = console::stdout();
        if self.markdown {
            write!(out, "{}", catalogue::markdown())?;
            return Ok(());
        }
        if self.json {
            for row in catalogue::rows() {
                writeln!(out, "{}", serde_json::to_string(&entry(row))?)?;
            }
            return Ok(());
        }
        let columns = console::width(false);
        let width = catalogue::rows().map(|row| label(row).len()).max().unwrap_or(0);
        for (i, question) in Question::ALL.into_iter().enumerate() {
            let gap = if i > 0 { "\n" } else { "" };
            writeln!(out, "{gap}{}", question.text())?;
            for row in catalogue::rows().filter(|row| row.question() == question && !row.is_alias()) {
                let mark = match row {
                    Row { is_default: true, .. } => '*',
                    row if row.is_parameter() => ' ',
                    row if !row.is_answer() && question != Question::Option => '+',
                    _ => ' ',
                };
                let line = format!("{mark} {:<width$}  {} ({})", label(row), row.summary, row.citation);
                write!(out, "{}", wrapped_lines(&line, columns))?;
            }
        }
        writeln!(out, "\nAliases for whole recipes")?;
        for row in catalogue::rows().filter(|row| row.is_alias()) {
            let line = format!("  {:<width$}  {} ({})", row.name, row.summary, row.citation);
            write!(out, "{}", wrapped_lines(&line, columns))?;
        }
        writeln!(out, "\nProfiles, after an @: everything else in which TCP stacks differ")?;
        for profile in ProfileName::ALL {
            let mark = if profile == ProfileName::default() { '*' } else { ' ' };
            let line = format!("{mark} {profile:<width$}  {}", profile.summary());
            write!(out, "{}", wrapped_lines(&line, columns))?;
        }
        Ok(())
    }
}

fn label(row: &Row) -> String {
    match row.range() {
        Some(_) => format!("{}=N", row.name),
        None => row.name.to_owned(),
    }
}

fn entry(row: &'static Row) -> Entry {
    let number = row.range().map(|parameter::Range { min, max, unit }| Range { min, max, unit });
    Entry {
        name: row.name,
        question: row.question().name(),
        summary: row.summary,
        citation: row.citation,
        default: row.is_default,
        needs: row.needs.iter().map(|need| need.name()).collect(),
        number,
    }
}
