//! `airtcp explain`: shows a recipe's answer to each question, and the transitions between its recovery
//! states.

use std::io::Write;

use airtcp::explain::{OutgoingTransition, Part, State, on_the_wire, parts, states};
use airtcp::profile::ProfileName;
use airtcp::recovery::catalogue::Question;
use airtcp::sender::SenderSpec;
use airtcp_numbers::table::wrapped_lines;
use clap::Args;

use crate::shared::console;
use crate::shared::senders::{ProfileParser, SenderParser, one_profile};

/// Explain a recipe and its recovery states
///
/// Prints the answer to each question, with sources. For each state, lists the events that move the sender to another state.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// Recipe such as sack+eifel, optionally with a profile: sack+eifel@linux (see `airtcp algorithms`)
    #[arg(value_name = "RECIPE[@PROFILE]", value_parser = SenderParser, hide_possible_values = true)]
    sender: SenderSpec,
    /// TCP stack to imitate in everything the recipe does not set [default: the recipe's, or `default`]
    #[arg(long, value_name = "PROFILE", value_parser = ProfileParser)]
    profile: Option<ProfileName>,
    /// Print JSON instead of text: one object per part, then one per state
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A question that the recipe leaves out gets its default answer, marked with *.

Examples:
  airtcp explain etcp
  airtcp explain newreno@linux
  airtcp explain sack+rack+prr+cubic --json | jq -r '.citation // empty'
  airtcp explain tahoe+ecn --json |
    jq -c 'select(.state) | [.state, .moves[].to]'";

/// Column widths of a state's name, and of a name after an arrow.
const STATE: usize = 9;
const ARROW: usize = 11;

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let SenderSpec { recipe, .. } = &self.sender;
        let profile = one_profile(Some(&self.sender), self.profile)?.unwrap_or_default();
        let tuned = recipe.tune(&profile.profile());
        let (parts, states) = (parts(recipe), states(recipe, &tuned));
        let mut out = console::stdout();
        if self.json {
            for part in &parts {
                writeln!(out, "{}", serde_json::to_string(part)?)?;
            }
            for state in &states {
                writeln!(out, "{}", serde_json::to_string(state)?)?;
            }
            return Ok(());
        }
        let columns = console::width(false);
        writeln!(out, "{recipe}")?;
        let width = parts.iter().map(|part| label(part).len()).max().unwrap_or(0);
        for question in Question::ALL {
            let mut title = Some(question.text());
            for part in parts.iter().filter(|part| part.of == question) {
                if let Some(title) = title.take() {
                    writeln!(out, "\n{title}")?;
                }
                let mark = if part.default { '*' } else { ' ' };
                let line = format!("{mark} {:<width$}  {} ({})", label(part), part.summary, part.citation);
                write!(out, "{}", wrapped_lines(&line, columns))?;
            }
        }
        writeln!(out, "\nRecovery states, and the events that change them")?;
        for State { state, meaning, transitions, .. } in &states {
            write!(out, "{}", wrapped_lines(&format!("  {state:<STATE$}  {meaning}"), columns))?;
            // Consecutive transitions to the same state share one arrow.
            let mut last = "";
            for OutgoingTransition { to, text, .. } in transitions {
                let arrow = if *to == last { String::new() } else { format!("→ {to}") };
                write!(out, "{}", wrapped_lines(&format!("    {arrow:<ARROW$}  {text}"), columns))?;
                last = to;
            }
        }
        let profile = format!("Profile {profile}: {}.", profile.summary());
        let wire = format!("On the wire: {}.", on_the_wire(recipe, &tuned));
        write!(out, "\n{}{}", wrapped_lines(&profile, columns), wrapped_lines(&wire, columns))?;
        Ok(())
    }
}

fn label(part: &Part) -> String {
    match part.value {
        Some(value) => format!("{}={value}", part.name),
        None => part.name.to_owned(),
    }
}
