//! The program `airlink`.

use std::io::IsTerminal;
use std::process::ExitCode;

use airlink::cli::{self, Cli};
use clap::Parser;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = <Cli>::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(terminal)
        .with_writer(std::io::stderr)
        // It would say so on stderr, and panic.
        .log_internal_errors(false)
        .init();
    cli.run().unwrap_or_else(|error| cli::report(&error))
}
