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

/// Emulate the network below IP, between two TUN devices.
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
Exit codes: 0 done, 1 the run did not succeed, 2 usage, 3 environment (privilege, device),
4 timing could not be kept. `run` exits with the code of the command that it ran.

The log, on stderr, shows links that come and go, resets of RLC, outages, handovers, and
  -v    what is dropped, marked, kept, and sent again locally, with the reason
  -vv   every packet at every stage, as tcpdump prints it where it enters and leaves
  -q    warnings only
What RUST_LOG names goes by RUST_LOG (debug, or airlink::packet=trace), everything else by -v and -q.";

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
