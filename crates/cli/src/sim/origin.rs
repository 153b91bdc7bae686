//! The origin of a run: the options of the command line, or a file.

use std::path::{Path, PathBuf};

use airfiles::{PathSource, limits};
use airtcp_sim::run::Run;
use airtcp_sim::sweep::setup::{Setup, quoted};
use anyhow::Context;

use crate::shared::failure;

#[derive(Clone, Debug)]
pub(super) enum Origin {
    Options(Setup),
    File(PathBuf),
}

impl Origin {
    /// Returns the command that repeats the run with this seed.
    pub(super) fn command(&self, seed: u64) -> String {
        match self {
            Self::Options(setup) => setup.command(seed),
            Self::File(path) => {
                let path = quoted(&path.display().to_string());
                format!("airtcp sim --run {path} --seed {seed}")
            }
        }
    }
}

/// Reads the run in a file.
pub(super) fn read(path: &Path) -> anyhow::Result<Run> {
    let text = airfiles::read_text(path, PathSource::User, limits::RESULT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Run::from_json(&text).map_err(|error| failure::usage(format!("{}: {error}", path.display())))
}
