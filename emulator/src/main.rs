//! The program `airlink`.

mod cli;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use cli::Cli;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

fn main() -> ExitCode {
    let cli = <Cli>::parse();
    let chosen = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = chosen.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // It would say so on stderr, and panic.
        .log_internal_errors(false);
    tracing_subscriber::registry().with(log).with(filter).init();
    cli.run().unwrap_or_else(|error| cli::report(&error))
}
