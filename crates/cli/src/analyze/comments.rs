//! `--comments`: writes a copy of the capture with a comment on each packet.

use std::path::{Path, PathBuf};

use aircaptures::capture::{Capture, STANDARD_INPUT};
use airfiles::{PathSource, limits};
use airtcp_analyze::comments::Comments;
use airtcp_analyze::connections::Finished;
use airtcp_analyze::decisions::Log;
use anyhow::Context;
use clap::Args;

use crate::shared::{console, failure};

#[derive(Debug, Args)]
#[command(next_help_heading = "Comments")]
pub(super) struct CommentOptions {
    /// Write the capture as pcapng, with comments that say why each packet was sent
    #[arg(long, value_name = "FILE", conflicts_with = "interface")]
    comments: Option<PathBuf>,
    /// Add the sender's decisions to the comments, from the file of `airtcp send --decisions`
    #[arg(long, value_name = "FILE", requires = "comments")]
    decisions: Option<PathBuf>,
}

pub(super) struct Commenting {
    from: PathBuf,
    to: PathBuf,
    filter: Option<String>,
    decisions: Option<PathBuf>,
    comments: Comments,
}

impl Commenting {
    /// Returns `None` without `--comments`.
    pub(super) fn new(
        options: &CommentOptions,
        files: &[PathBuf],
        filter: Option<&str>,
    ) -> anyhow::Result<Option<Self>> {
        let CommentOptions { comments: Some(to), decisions } = options else { return Ok(None) };
        let [from] = files else {
            return Err(failure::usage("--comments needs exactly one capture: give one file"));
        };
        // The capture is read twice: once to analyse it, once to write the copy.
        if from == Path::new(STANDARD_INPUT) {
            return Err(failure::usage(
                "--comments reads the capture twice: give a file instead of standard input",
            ));
        }
        if let (Ok(from), Ok(to)) = (from.canonicalize(), to.canonicalize())
            && from == to
        {
            return Err(failure::usage("--comments would overwrite the capture: name another file"));
        }
        let log = decisions.as_deref().map(log).transpose()?;
        Ok(Some(Self {
            from: from.clone(),
            to: to.clone(),
            filter: filter.map(str::to_owned),
            decisions: decisions.clone(),
            comments: Comments::new(log),
        }))
    }

    pub(super) fn take(&mut self, finished: &Finished) {
        self.comments.add_connection(&finished.ended);
    }

    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let elsewhere = self.comments.add_decisions();
        if let (Some(path), 1..) = (&self.decisions, elsewhere) {
            console::print_status(format_args!(
                "airtcp: {elsewhere} decisions of {} were made before or after the connection: is it the same run?",
                path.display()
            ));
        }
        let mut capture = Capture::open(&self.from, self.filter.as_deref())?;
        self.comments
            .save(&mut capture, &self.to)
            .with_context(|| format!("cannot write {}", self.to.display()))
    }
}

fn log(path: &Path) -> anyhow::Result<Log> {
    let text = airfiles::read_text(path, PathSource::User, limits::RESULT)
        .map_err(|error| failure::cannot_read(path, error))?;
    Log::read(&text).map_err(|error| failure::usage(format!("{}: {error}", path.display())))
}
