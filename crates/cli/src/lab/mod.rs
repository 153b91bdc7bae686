//! `airtcp lab`: the whole experiment in one command.

mod matrix;
mod run;
mod shell;

use std::path::PathBuf;

use airtcp_lab::{LabError, agent, receiver};
use clap::{Args, Subcommand};

use crate::shared::failure::{self, Failure};

/// Transfers between unmodified hosts over an emulated path: built, run, checked and cleaned up.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Matrix(matrix::Matrix),
    Shell(shell::Shell),
    Receivers(Receivers),
    /// What `lab run` starts on either side of the path
    #[command(hide = true)]
    Agent,
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Run(command) => command.run(),
            Command::Matrix(command) => command.run(),
            Command::Shell(command) => command.run(),
            Command::Receivers(command) => command.run(),
            Command::Agent => Ok(agent::serve()?),
        }
    }
}

/// Where receivers that are not this kernel are.
#[derive(Clone, Debug, Args)]
struct Stacks {
    /// Directory in which interop/receivers/setup.sh has built other stacks
    #[arg(long, value_name = "DIR", env = "AIRTCP_RECEIVERS", default_value = "target/receivers")]
    stacks: PathBuf,
}

/// List the receivers: this kernel's profiles, and the stacks that are built.
#[derive(Debug, Args)]
struct Receivers {
    #[command(flatten)]
    stacks: Stacks,
}

impl Receivers {
    fn run(self) -> anyhow::Result<()> {
        for profile in receiver::KERNEL_PROFILES {
            println!("{:<22} this kernel, {}", profile.name, profile.summary);
        }
        for receiver in receiver::built(&self.stacks.stacks) {
            println!("{:<22} {}", receiver.name(), receiver.version());
        }
        Ok(())
    }
}

/// As an exit code and a line.
fn failed(error: LabError) -> anyhow::Error {
    match error {
        LabError::Environment(what) => Failure::Environment(what).into(),
        LabError::Taken { .. } => failure::usage(error.to_string()),
        LabError::Transfer(_) | LabError::File { .. } => failure::run(error.to_string()),
    }
}
