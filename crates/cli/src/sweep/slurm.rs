//! `airtcp sweep slurm`: a sweep as an array of jobs.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use airtcp_sim::sweep::setup::quoted;
use anyhow::Context;
use clap::Args;

use crate::shared::{failure, say};

/// Print a script for sbatch: an array of jobs, each a part of the sweep, all into one store.
///
/// What a job did not get done in its time, the same script does when it is submitted again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Slurm {
    /// The sweep, in a directory that all machines see
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Directory of the results [default: FILE.results]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Into how many jobs it is cut; a sweep of fewer runs into one for each
    #[arg(long, value_name = "N", default_value = "8")]
    tasks: NonZeroUsize,
    /// Cores of each job
    #[arg(long, value_name = "N", default_value = "1")]
    cpus: NonZeroUsize,
    /// Jobs that run at once, at most [default: as many as there is room for]
    #[arg(long, value_name = "N")]
    at_once: Option<NonZeroUsize>,
    /// Limit of each job, as Slurm writes it: minutes, or hours:minutes:seconds
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// The program, as the machines know it [default: this one]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Example:
  airtcp sweep slurm loss.toml --tasks 64 --cpus 4 > loss.sh
  sbatch --wait loss.sh && airtcp sweep summary loss.results";

impl Slurm {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let plan = super::read(&self.file)?;
        // A job without a run would have nothing to do.
        let tasks = self.tasks.get().min(plan.runs());
        let time = self.time.as_deref().unwrap_or_default();
        if !time.chars().all(|c| c.is_ascii_digit() || c == ':' || c == '-') {
            return Err(failure::usage(format!(
                "--time: `{time}` is not a time of Slurm, such as 90 or 1:30:00"
            )));
        }
        let absolute = |path: PathBuf| {
            let path = std::path::absolute(&path).with_context(|| format!("where is {}?", path.display()))?;
            let text = path.to_str().filter(|text| !text.contains('\n'));
            text.map(quoted)
                .ok_or_else(|| failure::usage(format!("{} is no name for a script", path.display())))
        };
        let store = self.store.unwrap_or_else(|| super::store_of(&self.file));
        let program = match self.program {
            Some(program) => program,
            None => std::env::current_exe().context("where is this program?")?,
        };
        let name = self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
            .collect();
        let at_once = self.at_once.map(|jobs| format!("%{jobs}")).unwrap_or_default();
        let limit = if time.is_empty() { String::new() } else { format!("#SBATCH --time={time}\n") };
        // A name alone is looked for on the PATH of each machine.
        let program = if program.components().count() == 1 {
            quoted(&program.to_string_lossy())
        } else {
            absolute(program)?
        };
        let (file, store) = (absolute(self.file)?, absolute(store)?);
        write!(
            say::out(),
            "#!/bin/sh\n\
             # {runs} runs of plan {hash} in {tasks} jobs.\n\
             #SBATCH --job-name={name}\n\
             #SBATCH --array=1-{tasks}{at_once}\n\
             #SBATCH --ntasks=1\n\
             #SBATCH --cpus-per-task={cpus}\n\
             {limit}\
             #SBATCH --output={name}-%A-%a.log\n\
             exec {program} sweep run {file} --store {store} --jobs {cpus} --shard \"$SLURM_ARRAY_TASK_ID\"/{tasks}\n",
            runs = plan.runs(),
            hash = plan.hash,
            cpus = self.cpus,
        )?;
        Ok(())
    }
}
