//! `airtcp script`: runs packetdrill scripts in virtual time.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use airtcp::{ProfileName, SenderSpec};
use airtcp_numbers::units;
use airtcp_script::{FlagInfo, RunOptions, Tolerance, UnlistedPackets, flags, run_file};
use airwire::time::Duration;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::shared::senders::{ProfileParser, SenderParser, one_profile};
use crate::shared::{console, failure};

/// Run packetdrill scripts against a host in virtual time
///
/// Needs neither a device nor privileges.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Script {
    /// Scripts to run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Recipe, optionally with a profile: newreno@linux (see `airtcp algorithms`), instead of the script's own `recipe` line
    #[arg(long, value_name = "RECIPE[@PROFILE]", value_parser = SenderParser, hide_possible_values = true)]
    recipe: Option<SenderSpec>,
    /// TCP stack to imitate in everything the recipe does not set, instead of the script's own `profile` line
    #[arg(long, value_parser = ProfileParser)]
    profile: Option<ProfileName>,
    /// Allowed deviation of times [default: as packetdrill, the larger of 4 ms and an eighth of the time since the previous line]
    #[arg(long, value_name = "TIME", value_parser = tolerance)]
    tolerance: Option<Duration>,
    /// Fail if the host sends packets that the script does not mention
    #[arg(long)]
    exact: bool,
    #[arg(from_global)]
    quiet: bool,
    #[command(flatten)]
    packetdrill: PacketdrillFlags,
}

const EXAMPLES: &str = "\
Examples:
  airtcp script tests/scripts/handshake/*.pkt
  airtcp script --tolerance 0 -D CC='\"reno\"' mine.pkt";

/// packetdrill's own options, with their original names. They override the options in the first lines of
/// scripts.
#[derive(Debug, Default)]
struct PacketdrillFlags(Vec<(String, Option<String>)>);

/// Returns packetdrill's options except `--verbose`, which every command has and which does not affect
/// scripts.
fn own_flags() -> impl Iterator<Item = (FlagInfo, bool)> {
    flags().filter(|(flag, _)| flag.name != "verbose")
}

/// Parses a tolerance. `0` requires exact times.
fn tolerance(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        text => units::duration(text).map_err(|error| error.to_string()),
    }
}

impl Script {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let profile = one_profile(self.recipe.as_ref(), self.profile)?;
        let options = RunOptions {
            recipe: self.recipe.map(|sender| sender.recipe.to_string()),
            profile: profile.map(|profile| profile.to_string()),
            tolerance: self.tolerance.map(|least| Tolerance { least, fraction: 0.0 }),
            unlisted: if self.exact { UnlistedPackets::Refused } else { UnlistedPackets::Ignored },
            flags: self.packetdrill.0,
        };

        options.check().map_err(failure::usage)?;
        for file in &self.files {
            File::open(file).map_err(|error| failure::cannot_read(file, error))?;
        }
        let mut failed = 0;
        for file in &self.files {
            match run_file(file, &options) {
                Ok(report) if !self.quiet => writeln!(console::stdout(), "{report}")?,
                Ok(_) => {}
                Err(error) => {
                    failed += 1;
                    console::print_status(error);
                }
            }
        }
        let all = self.files.len();
        match failed {
            0 if self.quiet => Ok(()),
            0 => Ok(writeln!(console::stdout(), "passed {all} of {all}")?),
            _ => Err(failure::run(format!("{failed} of {all} scripts failed"))),
        }
    }
}

impl Args for PacketdrillFlags {
    fn augment_args(command: Command) -> Command {
        command.next_help_heading("packetdrill's options").args(own_flags().map(|(flag, effect)| {
            let arg = Arg::new(flag.name).long(flag.name).help(flag.help).hide(!effect);
            let arg = match flag.name {
                "define" => arg.short('D'),
                _ => arg,
            };
            match (flag.name, flag.value) {
                ("define", Some(value)) => arg.value_name(value).action(ArgAction::Append),
                (_, Some(value)) => arg.value_name(value).action(ArgAction::Set),
                (_, None) => arg.action(ArgAction::SetTrue),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PacketdrillFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for (flag, _) in own_flags() {
            let name = flag.name.to_owned();
            match flag.value {
                Some(_) => {
                    let values = matches.get_many::<String>(flag.name).into_iter().flatten();
                    given.extend(values.map(|value| (name.clone(), Some(value.clone()))));
                }
                None if matches.get_flag(flag.name) => given.push((name, None)),
                None => {}
            }
        }
        Ok(Self(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
