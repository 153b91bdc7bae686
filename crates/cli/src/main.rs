//! The program `airtcp`: one file per subcommand, which holds its definition and what it does.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic if the reader is gone: see shared/say.rs"
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

use std::io::Write;
use std::process::ExitCode;

use airlogs::LogArgs;
use clap::{CommandFactory, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

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

/// The subcommands for people. Generators of completions and manual pages would name a hidden one too.
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
    let cli: Cli = airhelp::command_line::parse();
    let log = match cli.log.start("airtcp", LevelFilter::WARN) {
        Ok(log) => log,
        Err(error) => return shared::failure::report(&error.into()),
    };
    let ended = cli.run().and_then(|()| Ok(shared::say::out().flush()?));
    let code = match ended {
        Ok(()) if log.is_whole() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => shared::failure::report(&error),
    };
    shared::say::finish();
    code
}

/// The definition, for generators of completions and manual pages.
fn command() -> clap::Command {
    Cli::<Command>::command()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        super::Cli::<super::Any>::command().debug_assert();
    }

    /// Beside `tests/programs/options.rs`, which sees what help says and not what is made of a value.
    #[test]
    fn an_option_takes_the_same_in_every_command() {
        // A lab's recipes may be the kernel's senders; its events go where its directory has a place; packetdrill's own
        // options take what packetdrill gives them; a sweep compares values of an axis; between real hosts data may go both
        // ways at once.
        let different = ["recipe", "events", "mtu", "against", "direction"];
        let types = airhelp::options::value_types(&super::command());
        let several: Vec<_> = types.iter().filter(|(_, types)| types.len() > 1).collect();
        let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
        let mut expected = different.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{several:#?}");
    }
}
