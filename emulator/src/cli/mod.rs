//! The command line of `airlink`: one file per subcommand, with its definition and what it does.

mod bridge;
mod check;
mod compare;
mod completions;
mod ctl;
mod device;
mod failure;
mod fit;
mod inside;
mod log;
mod man;
mod run;
mod say;
mod session;
mod show;
mod sim;
mod standing;

use std::process::ExitCode;

use airlogs::LogArgs;
use clap::{CommandFactory, Parser, Subcommand};
pub(crate) use failure::report;

/// Emulate a network path, such as a radio or satellite link, between two TUN devices
#[derive(Debug, Parser)]
#[command(name = "airlink", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Cli<C: Subcommand = Any> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Any {
    #[command(flatten)]
    Command(Box<Command>),
    #[command(hide = true)]
    Inside(inside::Inside),
    #[command(hide = true)]
    Values(completions::Values),
}

/// The subcommands for people. Generators of completions and manual pages would name a hidden one too.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Sim(sim::Sim),
    Up(standing::Up),
    Down(standing::Down),
    Status(standing::Status),
    Ctl(ctl::Ctl),
    Show(show::Show),
    Check(check::Check),
    Compare(compare::Compare),
    Fit(fit::Fit),
    Bridge(bridge::Bridge),
    Completions(completions::Completions),
    Man(man::Man),
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  the run failed
  2  usage, or an error in a scenario
  3  environment: privileges, devices, namespaces
  4  packets left later than --max-lateness allows
`airlink run` exits with the exit code of its command.

The log on stderr shows links and namespaces that are created and removed,
RLC resets, outages and handovers.
  -v   also packets that are dropped, marked, delayed or retransmitted by a
       link layer, with the reason
  -vv  also every packet at every stage, as tcpdump prints it where it enters
       and leaves the path
  -q   warnings only
RUST_LOG sets the level of the targets that it names (for example debug, or
airlink::packet=trace); -v and -q set the rest.";

/// Exit code: packets left later than `--max-lateness` allows.
const TIMING: u8 = 4;

impl Cli {
    pub(crate) fn log(&self) -> &LogArgs {
        &self.log
    }

    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let command = match self.command {
            Any::Inside(inside) => return inside.run(),
            Any::Values(values) => return values.run(),
            Any::Command(command) => command,
        };
        match *command {
            Command::Run(command) => command.run(),
            Command::Sim(command) => command.run(),
            Command::Up(command) => command.run(),
            Command::Down(command) => command.run(),
            Command::Status(command) => command.run(),
            Command::Ctl(command) => command.run(),
            Command::Show(command) => command.run(),
            Command::Check(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Fit(command) => command.run(),
            Command::Bridge(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

/// The definition, for generators of completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Cli::<Command>::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_takes_the_same_in_every_command() {
        let types = airhelp::options::value_types(&command());
        let several: Vec<_> = types.iter().filter(|(_, types)| types.len() > 1).collect();
        assert!(several.is_empty(), "{several:#?}");
    }

    #[test]
    fn the_definition_is_consistent_and_names_what_people_may_use() {
        Cli::<Any>::command().debug_assert();
        assert!(command().get_subcommands().all(|command| !command.is_hide_set()));
    }
}
