//! `airtcp lab`: experiments in real time, over an emulated path.

mod format;
mod matrix;
mod run;
mod shell;
mod show;
mod workload;

use std::io::Write;
use std::path::{Path, PathBuf};

use airtcp_lab::sender::{Kind, Sender};
use airtcp_lab::{LabError, agent, receiver};
use airtcp_numbers::table::wrapped_lines;
use airtcp_sim::sweep::setup::quoted;
use clap::{Args, Subcommand};

use crate::shared::console;
use crate::shared::failure::{self, Failure};

/// Run transfers between unmodified TCP stacks over an emulated path
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples (as root, or as an ordinary user who can open /dev/net/tun):
  airtcp lab run --scenario geo --recipe sack --sender linux:cubic
  airtcp lab show lab/001-geo";

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
    /// of the current directory, of this program's file, and of its source directory.
    pub(crate) fn directory(&self) -> PathBuf {
        const BUILT: &str = "target/receivers";
        if let Some(stacks) = &self.stacks {
            return stacks.clone();
        }
        let [current, program] = [std::env::current_dir().ok(), std::env::current_exe().ok()];
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let starts = [current.as_deref(), program.as_deref(), Some(sources)].into_iter().flatten();
        let built = starts.flat_map(Path::ancestors).map(|directory| directory.join(BUILT));
        built.into_iter().find(|built| built.is_dir()).unwrap_or_else(|| BUILT.into())
    }
}

/// Returns the directory given with `--output`, or creates `lab/NNN-name`.
pub(crate) fn output_directory(output: Option<&PathBuf>, name: &str) -> anyhow::Result<PathBuf> {
    match output {
        Some(directory) => Ok(directory.clone()),
        None => run::create_numbered_directory(Path::new("lab"), name),
    }
}

/// Returns the command line of this process, for a shell.
pub(crate) fn command_line() -> String {
    std::env::args().map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// List the receivers: profiles of this kernel, and third-party stacks that are built
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airtcp lab receivers")]
struct Receivers {
    #[command(flatten)]
    stacks: Stacks,
}

impl Receivers {
    fn run(self) -> anyhow::Result<()> {
        let mut out = console::stdout();
        let mut row = |name: &str, about: &str| {
            write!(out, "{}", wrapped_lines(&format!("{name:<20}  {about}"), console::width(false)))
        };
        for profile in receiver::KERNEL_PROFILES {
            row(profile.name, &format!("this kernel, {}", profile.summary))?;
        }
        for receiver in receiver::built(&self.stacks.directory()) {
            row(receiver.name(), &receiver.version())?;
        }
        Ok(())
    }
}

/// Refuses recipes that need the ground truth of virtual time.
fn check_real_time<'a>(senders: impl IntoIterator<Item = &'a Sender>) -> anyhow::Result<()> {
    for sender in senders {
        if let Kind::Recipe { recipe, .. } = &sender.kind {
            airtcp_tun::check_real_time(recipe).map_err(|error| failure::usage(error.to_string()))?;
        }
    }
    Ok(())
}

/// Converts an error of the lab to an exit code and a message.
pub(crate) fn failed(error: LabError) -> anyhow::Error {
    match error {
        LabError::Environment(message) => Failure::Environment(message).into(),
        LabError::Taken { .. } => failure::usage(error.to_string()),
        LabError::Transfer(_) | LabError::Full { .. } | LabError::File { .. } => failure::run_of(error),
    }
}
