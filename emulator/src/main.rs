//! The program `airlink`.

mod cli;

use std::process::ExitCode;

use clap::Parser;
use cli::Cli;
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let cli = <Cli>::parse();
    let logs = cli.log().start(LevelFilter::INFO).map_err(anyhow::Error::from);
    logs.and_then(|()| cli.run()).unwrap_or_else(|error| cli::report(&error))
}
