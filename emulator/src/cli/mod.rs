//! Command line of `airlink`. Each subcommand has its own file, with its options and its code.

mod bridge;
mod check;
mod compare;
mod completions;
mod console;
mod ctl;
mod device;
mod failure;
mod fit;
mod inside;
mod log;
mod man;
mod persistent;
mod run;
mod session;
mod show;
mod sim;

use std::process::ExitCode;

use airhelp::groups::{self, Group};
use airhelp::man::CommonSections;
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

/// Groups of subcommands in the output of `airlink --help`.
const GROUPS: [Group<'_>; 4] = [
    ("Run a link", &["run", "up", "down", "status", "ctl", "bridge"]),
    ("Simulate in virtual time", &["sim"]),
    ("Scenarios", &["show", "check", "compare", "fit"]),
    ("Tools", &["completions", "man"]),
];

/// Sections of the manual pages that all subcommands share.
const COMMON: CommonSections<'_> = CommonSections {
    environment: &[
        (
            "RUST_LOG",
            "Log levels of the targets that it names, such as airlink::packet=trace. -v and -q set the rest.",
        ),
        ("NO_COLOR", "If set, help and error messages have no colour."),
        (
            "AIRLINK_FIXED, AIRLINK_MOBILE",
            "Set by airlink run for its command and server: the IPv4 addresses of the two sides. \
         With the suffix _V6: the IPv6 addresses.",
        ),
        ("AIRLINK_SIDE", "Set by airlink run: mobile for its command, fixed for its server."),
        ("AIRLINK_CONTROL", "Set by airlink run: the control socket, for airlink ctl."),
    ],
    files: &[
        ("/dev/net/tun", "TUN devices of both sides are created here."),
        ("/run/netns", "Network namespaces of links that airlink up creates."),
    ],
    see_also: &["airtcp(1)", "tcpdump(8)", "tc-netem(8)", "ip-netns(8)"],
};

/// The public subcommands. Hidden ones are excluded, since generated completions and manual pages would list
/// them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Sim(sim::Sim),
    Up(persistent::Up),
    Down(persistent::Down),
    Status(persistent::Status),
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
airlink::packet=trace); -v and -q set the rest.

Examples:
  airlink show
  airlink run --scenario wcdma-384 -- bash";

/// Exit code if packets left later than `--max-lateness` allows.
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

pub(crate) fn grouped(command: clap::Command) -> clap::Command {
    groups::grouped(command, &GROUPS)
}

/// The command definition for generated completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Cli::<Command>::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_each_subcommand_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = command();
        let mut names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        names.sort_unstable();
        assert_eq!(grouped, names);
    }

    #[test]
    fn option_has_same_value_type_in_all_commands() {
        let types = airhelp::options::value_types(&command());
        let several: Vec<_> = types.iter().filter(|(_, types)| types.len() > 1).collect();
        assert!(several.is_empty(), "{several:#?}");
    }

    #[test]
    fn command_definition_is_valid_and_hides_no_subcommand() {
        Cli::<Any>::command().debug_assert();
        assert!(command().get_subcommands().all(|command| !command.is_hide_set()));
    }
}
