//! The program `airlink`.

mod cli;

use std::process::ExitCode;

use cli::Cli;
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let cli: Cli = airhelp::command_line::parse(cli::grouped);
    let log = match cli.log().start("airlink", LevelFilter::INFO) {
        Ok(log) => log,
        Err(error) => return cli::report(&error.into()),
    };
    match cli.run() {
        Ok(code) if code == ExitCode::SUCCESS && !log.is_complete() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => cli::report(&error),
    }
}
