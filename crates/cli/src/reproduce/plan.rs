//! The seeds and readings of a figure, on the command line and in a record.

use airhelp::options::number;
use clap::{Args, Parser};
use serde::{Deserialize, Serialize};

const FIRST_SEED: u32 = 1;
const SEEDS: u32 = 30;
/// Allows four tests of a claim (with 1, 2, 4 and 8 times [`SEEDS`]), as the deciding intervals assume
/// ([`airtcp_reproduce::judge::WIDER`]).
const MAX_SEEDS: u32 = 8 * SEEDS;

/// The number of seeds, and whether all readings are judged.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeedPlan {
    /// Number of seeds: runs per point
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = number::<u32>(1..=u32::MAX.into()))]
    pub(super) seeds: u32,
    /// Maximum number of seeds; the number doubles while a claim is undecided
    #[arg(long, value_name = "N", default_value_t = MAX_SEEDS)]
    pub(super) most_seeds: u32,
    /// First seed; the others follow it
    #[arg(long, value_name = "N", default_value_t = FIRST_SEED, value_parser = number::<u32>(0..=u32::MAX.into()))]
    pub(super) first_seed: u32,
    /// Judge the claims in all readings of their paper, not only in the chosen one
    ///
    /// A reading is another value of a detail that the paper leaves open. A verdict that changes with it says so. Takes
    /// longer for each reading.
    #[arg(long)]
    pub(super) readings: bool,
}

impl Default for SeedPlan {
    fn default() -> Self {
        Self { seeds: SEEDS, most_seeds: MAX_SEEDS, first_seed: FIRST_SEED, readings: false }
    }
}

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    plan: SeedPlan,
}

impl SeedPlan {
    /// Returns the command that runs a figure with this plan.
    pub(super) fn command(&self, figure: &str) -> String {
        let usual = Self::default();
        let numbers = [
            ("--seeds", self.seeds, usual.seeds),
            ("--most-seeds", self.most_seeds, usual.most_seeds),
            ("--first-seed", self.first_seed, usual.first_seed),
        ];
        let changed = numbers.iter().filter(|(_, value, usual)| value != usual);
        let options: String = changed.map(|(option, value, _)| format!(" {option} {value}")).collect();
        let readings = if self.readings { " --readings" } else { "" };
        format!("airtcp reproduce {figure}{options}{readings}")
    }

    /// Parses a command from [`Self::command`]. `None` if it is not one for this figure.
    pub(super) fn of_command(command: &str, figure: &str) -> Option<Self> {
        let mut words = command.split_whitespace();
        let begin: Vec<&str> = words.by_ref().take(3).collect();
        if begin != ["airtcp", "reproduce", figure] {
            return None;
        }
        Options::try_parse_from(std::iter::once(figure).chain(words)).ok().map(|options| options.plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_contains_what_differs_from_default() {
        let usual = SeedPlan::default();
        assert_eq!(usual.command("p0-fig5"), "airtcp reproduce p0-fig5");
        let changed = SeedPlan { seeds: 10, most_seeds: 40, readings: true, ..usual };
        let command = "airtcp reproduce p3-fig2a --seeds 10 --most-seeds 40 --readings";
        assert_eq!(changed.command("p3-fig2a"), command);
        assert_eq!(SeedPlan::of_command(command, "p3-fig2a"), Some(changed));
        let wrapped = "airtcp reproduce\np0-fig5\n--first-seed 7";
        assert_eq!(SeedPlan::of_command(wrapped, "p0-fig5"), Some(SeedPlan { first_seed: 7, ..usual }));
        for other in ["airtcp reproduce p0-fig6", "airtcp reproduce p0-fig5 --json", "airtcp sim"] {
            assert_eq!(SeedPlan::of_command(other, "p0-fig5"), None);
        }
    }
}
