//! The program `airtcp`. Each subcommand has a file with its definition and implementation.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic if the reader is gone: see crates/command/src/console.rs"
)]

mod algorithms;
mod analyze;
mod completions;
mod demo;
mod explain;
mod lab;
mod man;
mod playground;
mod recv;
mod report;
mod reproduce;
mod script;
mod send;
mod serve;
mod shared;
mod sim;
mod sink;
mod source;
mod sweep;
mod values;

use std::process::ExitCode;

use airhelp::groups::{Group, grouped};
use airhelp::man::CommonSections;
use airlogs::LogArgs;
use clap::{CommandFactory, Parser, Subcommand};

/// A userspace TCP for Linux with swappable loss recovery
///
/// Runs over a TUN device against the kernel's own TCP, and against any program that uses it.
#[derive(Debug, Parser)]
#[command(name = "airtcp", version, max_term_width = 110, after_help = AFTER_HELP)]
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
    Values(values::Values),
}

/// The groups in which `airtcp --help` lists the subcommands.
const GROUPS: [Group<'_>; 5] = [
    ("Run real transfers", &["demo", "lab", "send", "recv", "serve", "source", "sink"]),
    ("Simulate in virtual time", &["sim", "sweep", "playground", "reproduce"]),
    ("Analyze", &["analyze", "report"]),
    ("Look up", &["algorithms", "explain"]),
    ("Tools", &["script", "completions", "man"]),
];

/// Sections that all manual pages share.
const COMMON: CommonSections<'_> = CommonSections {
    environment: &[
        (
            "RUST_LOG",
            "Log levels of the targets that it names, such as airtcp::recovery=debug. -v and -q set the rest.",
        ),
        ("NO_COLOR", "If set, help and error messages have no colour."),
    ],
    files: &[
        ("/dev/net/tun", "Commands that run real transfers create their TUN devices here."),
        ("/run/netns", "Network namespaces that --netns names."),
    ],
    see_also: &["airtcp-serve(1)", "airlink(1)", "tcpdump(8)", "wireshark(1)", "ip-netns(8)"],
};

/// The public subcommands. Hidden ones are in [`Any`], because generators of completions and manual pages
/// list those too.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Send(send::Send),
    Recv(recv::Recv),
    Serve(serve::Serve),
    Sink(sink::Sink),
    Source(source::Source),
    Demo(demo::Demo),
    Lab(lab::Lab),
    Sim(sim::Sim),
    Playground(playground::Playground),
    Sweep(sweep::Sweep),
    Reproduce(reproduce::Reproduce),
    Analyze(analyze::Analyze),
    Report(report::Report),
    Algorithms(algorithms::Algorithms),
    Explain(explain::Explain),
    Script(script::Script),
    Completions(completions::Completions),
    Man(man::Man),
}

const AFTER_HELP: &str = "\
Example (as root): send to a receiver on the kernel's TCP in another namespace
  ip netns add mobile; ip -n mobile link set lo up
  airtcp sink 9000 --netns mobile --echo-digest &
  airtcp send --bytes 100M 10.83.0.1:9000 --netns mobile --verify

Exit codes:
  0  success
  1  the run failed
  2  usage error, missing input, unknown name, or output directory not empty
  3  environment error: missing privilege, device or program
  130  stopped with Ctrl-C (128 + N: by signal N) before the work was complete

Results go to stdout; progress, errors and logs go to stderr.

Log levels (default: warnings):
  -v    connections opened and closed, ICMP errors, path MTU
  -vv   SYN options, states, recovery decisions, expired timers, zero windows,
        refused segments
  -vvv  every segment as tcpdump prints it, every timer that is set
  -q    errors only, and no progress messages

RUST_LOG sets the levels of the targets that it names, such as
airtcp::recovery=debug,airtcp::segment=trace; -v and -q set the rest. A level
alone, such as debug, names all targets.";

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let command = match self.command {
            Any::Values(values) => return values.run(),
            Any::Command(command) => command,
        };
        match *command {
            Command::Send(command) => command.run(),
            Command::Recv(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Sink(command) => command.run(),
            Command::Source(command) => command.run(),
            Command::Demo(command) => command.run(),
            Command::Lab(command) => command.run(),
            Command::Sim(command) => command.run(),
            Command::Playground(command) => command.run(),
            Command::Sweep(command) => command.run(),
            Command::Reproduce(command) => command.run(),
            Command::Analyze(command) => command.run(),
            Command::Report(command) => command.run(),
            Command::Algorithms(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Script(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

fn main() -> ExitCode {
    let cli: Cli = airhelp::command_line::parse(|command| grouped(command, &GROUPS));
    let log = cli.log.clone();
    airtcp_command::execute("airtcp", &log, || cli.run())
}

/// Returns the command definition for generators of completions and manual pages.
fn command() -> clap::Command {
    Cli::<Command>::command()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        super::Cli::<super::Any>::command().debug_assert();
    }

    #[test]
    fn help_lists_each_subcommand_in_one_group() {
        let grouped: Vec<&str> = super::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = super::command();
        let mut names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let mut sorted = grouped.clone();
        sorted.sort_unstable();
        names.sort_unstable();
        assert_eq!(sorted, names);
    }

    /// Compares the types of the values. `tests/programs/options.rs` compares the help texts.
    #[test]
    fn option_takes_same_value_type_in_every_command() {
        // The following options differ on purpose. `lab --recipe` also accepts kernel senders. `lab --events`
        // takes no file, because the output directory has a fixed place for the events. The options of
        // `script` follow packetdrill. `sweep --against` takes a value of an axis. `lab --direction` allows
        // both directions at once.
        let different = ["recipe", "events", "mtu", "against", "direction"];
        let types = airhelp::options::value_types(&super::command());
        let several: Vec<_> = types.iter().filter(|(_, types)| types.len() > 1).collect();
        let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
        let mut expected = different.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{several:#?}");
    }
}
