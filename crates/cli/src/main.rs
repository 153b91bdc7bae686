//! The program `airtcp`: one file per subcommand, which holds its definition and what it does.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic where nobody reads: see shared/say.rs"
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

/// A TCP in user space whose loss recovery is put together from named parts.
///
/// It talks over a TUN device to the kernel's own TCP, and to any program on top of that.
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
Example (as root): a receiver on the kernel's TCP in a namespace, and a NewReno sender to it
  ip netns add mobile; ip -n mobile link set lo up
  airtcp sink 9000 --netns mobile --echo-digest &
  airtcp send --bytes 100M 10.83.0.1:9000 --netns mobile --recipe newreno --verify

Exit codes: 0 done, 1 the run did not succeed, 2 usage, 3 environment (privilege, device).
An input that is not there, an unknown name and an output directory that is not empty are usage.
Results go to stdout; progress, errors and logs to stderr.

The log shows warnings, and
  -v    connections that open and close, ICMP, path MTU
  -vv   offers, states, decisions of loss recovery, timers that fire, windows that close, refusals
  -vvv  every segment as tcpdump prints it, every timer that is set
  -q    errors only, and no progress
What RUST_LOG names goes by RUST_LOG, everything else by -v and -q. It says for example debug, or
airtcp::recovery=debug,airtcp::segment=trace.";

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
