//! `airtcp sweep slurm`: prints an sbatch script that runs a sweep as an array of jobs.

use std::io::Write;
use std::path::{Path, PathBuf};

use airhelp::options::number;
use airtcp_sim::sweep::setup::quoted;
use anyhow::Context;
use clap::Args;

use crate::shared::{console, failure};

/// Print an sbatch script that runs a sweep as an array of jobs
///
/// Each job runs one part of the sweep. If jobs did not finish, submit the script again: a job whose runs all have results
/// ends at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Slurm {
    /// Sweep file, in a directory that all machines share
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Results directory [default: FILE.results]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Number of jobs, at most one per run
    #[arg(long, value_name = "N", value_parser = number::<usize>(1..=u32::MAX.into()))]
    tasks: usize,
    /// Cores per job
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::<u16>(1..=65_535))]
    cpus: u16,
}

const EXAMPLES: &str = "\
Examples:
  airtcp sweep slurm loss.toml --tasks 64 > loss.sh
  sbatch --wait loss.sh && airtcp sweep summary loss.results

Options on the command line of sbatch override those in the script:
  sbatch --time=60 --mem-per-cpu=1G loss.sh";

impl Slurm {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let plan = super::read(&self.file)?;
        let tasks = self.tasks.min(plan.runs());
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let store = self.store.clone().unwrap_or_else(|| super::store_of(&self.file));
        let name = self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let [program, file, store] = [absolute(&program)?, absolute(&self.file)?, absolute(&store)?];
        let cpus = self.cpus;
        let script = format!(
            "#!/bin/sh\n\
             #SBATCH --job-name={name}\n\
             #SBATCH --array=1-{tasks}\n\
             #SBATCH --ntasks=1\n\
             #SBATCH --cpus-per-task={cpus}\n\
             #SBATCH --requeue\n\
             #SBATCH --open-mode=append\n\
             #SBATCH --output={name}-%A-%a.log\n\
             exec {program} sweep run {file} --store {store} --jobs {cpus} --shard \"$SLURM_ARRAY_TASK_ID\"/{tasks}\n"
        );
        Ok(console::stdout().write_all(script.as_bytes())?)
    }
}

/// Returns the absolute path as a word of a shell script.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?;
    let text = path.to_str().filter(|text| !text.contains('\n'));
    text.map(quoted).ok_or_else(|| failure::usage(format!("{} cannot be used in a script", path.display())))
}
