//! `airtcp lab`: experiments in real time, over an emulated path.

mod form;
mod load;
mod matrix;
mod run;
mod shell;
mod show;

use std::io::Write;
use std::path::{Path, PathBuf};

use airtcp_lab::sender::{Kind, Sender};
use airtcp_lab::{LabError, agent, receiver};
use clap::{Args, Subcommand};

pub(crate) use self::run::next_free;
use crate::shared::failure::{self, Failure};
use crate::shared::say;

/// Run transfers between unmodified TCP stacks over an emulated path
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Show(show::Show),
    Matrix(matrix::Matrix),
    Shell(shell::Shell),
    Receivers(Receivers),
    /// Agent that `lab run` starts on each side of the path
    #[command(hide = true)]
    Agent,
}

impl Lab {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Run(command) => command.run(),
            Command::Show(command) => command.run(),
            Command::Matrix(command) => command.run(),
            Command::Shell(command) => command.run(),
            Command::Receivers(command) => command.run(),
            Command::Agent => Ok(agent::serve()?),
        }
    }
}

/// The directory of the receivers that are not this kernel.
#[derive(Clone, Debug, Args)]
pub(crate) struct Stacks {
    /// Directory of the third-party stacks that interop/receivers/setup.sh has built [default: target/receivers of the sources]
    #[arg(long, value_name = "DIR", env = "AIRTCP_RECEIVERS")]
    stacks: Option<PathBuf>,
}

impl Stacks {
    /// Returns the directory given with `--stacks`. Otherwise searches for `target/receivers` in the parents
    /// of the current directory, of this program's file, and of the sources that it was built from.
    pub(crate) fn directory(&self) -> PathBuf {
        const BUILT: &str = "target/receivers";
        if let Some(named) = &self.stacks {
            return named.clone();
        }
        let here = std::env::current_dir().ok();
        let own = std::env::current_exe().ok();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let places = here.iter().chain(&own).flat_map(|place| place.ancestors()).chain(sources.ancestors());
        let found = places.map(|place| place.join(BUILT)).find(|built| built.is_dir());
        found.unwrap_or_else(|| BUILT.into())
    }
}

/// List the receivers: profiles of this kernel, and third-party stacks that are built
#[derive(Debug, Args)]
struct Receivers {
    #[command(flatten)]
    stacks: Stacks,
}

impl Receivers {
    fn run(self) -> anyhow::Result<()> {
        let mut out = say::out();
        for profile in receiver::KERNEL_PROFILES {
            writeln!(out, "{:<22} this kernel, {}", profile.name, profile.summary)?;
        }
        for receiver in receiver::built(&self.stacks.directory()) {
            writeln!(out, "{:<22} {}", receiver.name(), receiver.version())?;
        }
        Ok(())
    }
}

/// Refuses recipes that need the ground truth of virtual time.
fn in_real_time<'a>(senders: impl IntoIterator<Item = &'a Sender>) -> anyhow::Result<()> {
    for sender in senders {
        if let Kind::Recipe { recipe, .. } = &sender.kind {
            airtcp_tun::in_real_time(recipe).map_err(|error| failure::usage(error.to_string()))?;
        }
    }
    Ok(())
}

/// Converts an error of the lab to an exit code and a message.
pub(crate) fn failed(error: LabError) -> anyhow::Error {
    match error {
        LabError::Environment(what) => Failure::Environment(what).into(),
        LabError::Taken { .. } => failure::usage(error.to_string()),
        LabError::Transfer(_) | LabError::Full { .. } | LabError::File { .. } => {
            failure::run(error.to_string())
        }
    }
}
