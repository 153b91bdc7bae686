//! The program `airtcp-serve`: a TCP proxy in front of an ordinary server, with this TCP towards the clients.
//! The program is for hosts that strangers can reach, so it contains no other features.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic if the reader is gone")]

mod admission;
mod commands;
mod endpoints;
mod idle;
mod log;
mod privileges;
mod proxy_protocol;
mod serve;
mod server;
mod session;
mod targets;

use std::process::ExitCode;

use airlogs::LogArgs;
use clap::{CommandFactory, Parser, Subcommand};
use commands::{Completions, Man, Values};
use serve::{EXAMPLES, Serve};

const PROGRAM: &str = "airtcp-serve";

const USAGE: &str = "\
airtcp-serve [OPTIONS] --listen <ADDR:PORT|PORT> --forward <HOST:PORT>
       airtcp-serve <COMMAND>";

/// Put this TCP in front of an ordinary server
///
/// Creates a TUN device and listens behind it. For each incoming connection, opens a kernel TCP connection to the server
/// from the namespace in which the command was started, and relays data, half-closes and resets in both directions.
#[derive(Debug, Parser)]
#[command(
    name = PROGRAM,
    version,
    max_term_width = 110,
    override_usage = USAGE,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Cli<C: Subcommand = Any> {
    #[command(flatten)]
    serve: Serve,
    #[command(subcommand)]
    command: Option<C>,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Subcommand)]
enum Any {
    #[command(flatten)]
    Tool(Tool),
    #[command(hide = true)]
    Values(Values),
}

/// The public subcommands. The hidden subcommands are only in [`Any`], because generators of completions and
/// manual pages would list them.
#[derive(Debug, Subcommand)]
enum Tool {
    Completions(Completions),
    Man(Man),
}

/// Returns the command definition for generators of completions and manual pages.
fn command() -> clap::Command {
    Cli::<Tool>::command()
}

fn main() -> ExitCode {
    let Cli::<Any> { serve, command, log } = airhelp::command_line::parse(|command| command);
    airtcp_command::execute(PROGRAM, &log, || match command {
        None => serve.run(log.quiet),
        Some(Any::Tool(Tool::Completions(completions))) => completions.run(),
        Some(Any::Tool(Tool::Man(man))) => man.run(),
        Some(Any::Values(values)) => values.run(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_definition_is_consistent() {
        super::Cli::<super::Any>::command().debug_assert();
    }
}
