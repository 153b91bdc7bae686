//! `airlink inside`: the first process in the namespaces of `airlink run`. Not for direct use.

use std::ffi::OsString;
use std::process::ExitCode;

use airlink::program;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Inside {
    #[arg(long)]
    alive: i32,
    #[arg(long)]
    started: i32,
    #[arg(long)]
    fixed: Option<i32>,
    #[arg(long)]
    server: Option<OsString>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Inside {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { alive, started, fixed, server, command } = self;
        Ok(ExitCode::from(program::Init { alive, started, fixed, server, command }.run()?))
    }
}
