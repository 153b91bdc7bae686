//! `airtcp serve`: starts the program `airtcp-serve`.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::shared::failure;

/// Start airtcp-serve, which puts this TCP in front of a server
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Serve {
    /// Arguments of airtcp-serve
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

impl Serve {
    /// Replaces this process by `airtcp-serve` from the same directory. Returns only if that fails.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // Options before `serve`, such as `-v`, are for `airtcp-serve` too.
        let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
        if let Some(at) = arguments.iter().position(|argument| argument == "serve") {
            arguments.remove(at);
        }
        let program = env::current_exe()?.with_file_name("airtcp-serve");
        let error = Command::new(&program).args(arguments).exec();
        Err(failure::environment(format!(
            "cannot start {}: {error}; install airtcp-serve in this directory",
            program.display()
        )))
    }
}
