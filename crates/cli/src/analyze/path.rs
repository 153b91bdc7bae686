//! `--path`: follows each packet through captures at several points of one path.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aircaptures::capture::STANDARD_INPUT;
use airtcp_analyze::connections::Finished;
use airtcp_analyze::path::judges::{self, Scores};
use airtcp_analyze::path::sender_log::{SenderComparison, SenderError, SenderLog};
use airtcp_analyze::path::{self, Fates, Files, Keep, PathError, PathFindings};
use airtcp_numbers::table::wrapped_lines;
use airtcp_numbers::units;
use airwire::time::Duration;
use clap::Args;
use serde::Serialize;

use crate::shared::{console, failure};

#[derive(Debug, Args)]
#[command(next_help_heading = "Path")]
pub(super) struct PathOptions {
    /// Treat the captures as points of one path, in order from end to end, and report losses and delays between them
    ///
    /// All other results are about the first capture.
    #[arg(long, conflicts_with = "interface")]
    path: bool,
    /// Time by which the clock of each capture is ahead of the first one's, from the second capture on: 3ms,-20us
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = offset,
        requires = "path"
    )]
    clock_offset: Vec<i64>,
    /// Ground truth about each packet: the file of `airlink run --events`
    ///
    /// The first capture must be from the fixed side of that path.
    #[arg(long, value_name = "FILE", requires = "path")]
    truth: Option<PathBuf>,
    /// Score the judges of loss causes (vegas, ntg, ndg, ncpld) on each loss
    ///
    /// The true cause is taken from --truth. Without it, losses between the last two captures count as radio losses, and all
    /// others as congestion.
    #[arg(long, requires = "path")]
    judges: bool,
}

impl PathOptions {
    /// Returns the captures that all other results are about: with `--path`, only the first one.
    pub(super) fn reported_captures<'a>(&self, files: &'a [PathBuf]) -> anyhow::Result<&'a [PathBuf]> {
        if self.path && files.iter().any(|file| file == Path::new(STANDARD_INPUT)) {
            return Err(failure::usage(PathError::Pipe.to_string()));
        }
        Ok(if self.path { &files[..files.len().min(1)] } else { files })
    }
}

fn offset(text: &str) -> Result<i64, String> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text),
    };
    let duration: Duration = units::duration(text).map_err(|error| error.to_string())?;
    Ok(sign * duration.as_nanos() as i64)
}

/// `--sender-log`: compares the sender's own counters with what the first capture shows.
pub(super) struct SenderLogComparison {
    log: SenderLog,
    comparison: Option<SenderComparison>,
}

impl SenderLogComparison {
    pub(super) fn new(file: &Path) -> anyhow::Result<Self> {
        let log = SenderLog::read(file);
        let log = log
            .map_err(|error @ (SenderError::Read { .. } | SenderError::NoEnd(_))| failure::usage_of(error))?;
        Ok(Self { log, comparison: None })
    }

    pub(super) fn take(&mut self, finished: &Finished) {
        self.comparison = self.comparison.take().or_else(|| self.log.compare(&finished.ended.findings));
    }

    pub(super) fn write(&self, json: bool, width: Option<usize>) -> io::Result<()> {
        if json {
            let json = serde_json::to_string(&self.comparison)?;
            return write!(console::stdout(), ",\"sender\":{json}");
        }
        writeln!(console::stdout())?;
        self.write_text(width)
    }

    fn write_text(&self, width: Option<usize>) -> io::Result<()> {
        let text = match &self.comparison {
            Some(comparison) => comparison.to_string(),
            None => "the first capture does not have the connection of the sender's log\n".to_owned(),
        };
        write!(console::stdout(), "{}", wrapped_lines(&text, width))
    }
}

/// The findings of `--path`.
pub(super) struct PathAnalysis {
    report: PathFindings,
    fates: Fates,
    captures: usize,
    scores: Option<Scores>,
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    report: &'a PathFindings,
    sender: Option<&'a SenderComparison>,
    judges: &'a Option<Scores>,
}

impl PathAnalysis {
    /// Returns `None` without `--path`. With `traces`, the outcome of each packet is kept too.
    pub(super) fn new(
        options: &PathOptions,
        files: &[PathBuf],
        filter: Option<&str>,
        traces: bool,
    ) -> anyhow::Result<Option<Self>> {
        if !options.path {
            return Ok(None);
        }
        if options.judges && options.truth.is_none() && files.len() < 3 {
            return Err(failure::usage(
                "--judges needs to know why packets were lost: add --truth, or a capture at the base station between \
                 the two",
            ));
        }
        let wanted = Files {
            captures: files.to_vec(),
            filter: filter.map(str::to_owned),
            ahead: (!options.clock_offset.is_empty()).then(|| options.clock_offset.clone()),
            truth: options.truth.clone(),
        };
        let keep = if options.judges || traces { Keep::Fates } else { Keep::Findings };
        let (report, fates) = path::read(&wanted, keep).map_err(failed)?;
        let scores = options.judges.then(Scores::default);
        Ok(Some(Self { report, fates, captures: files.len(), scores }))
    }

    pub(super) fn wants_traces(&self) -> bool {
        self.scores.is_some()
    }

    /// Adds the packets' fates to a connection of the first capture, and scores the judges on it.
    pub(super) fn take(&mut self, finished: &mut Finished) {
        let directions = finished.ended.findings.directions.iter();
        for (trace, direction) in finished.ended.traces.iter_mut().flatten().zip(directions) {
            self.fates.apply_to(trace);
            if let Some(scores) = &mut self.scores {
                let longest = u64::from(direction.sender.longest_segment_bytes);
                judges::judge(trace, longest, self.captures, scores);
            }
        }
    }

    pub(super) fn write(
        &self,
        json: bool,
        sender: Option<&SenderLogComparison>,
        width: Option<usize>,
    ) -> io::Result<()> {
        let Self { report, scores, .. } = self;
        let mut out = console::stdout();
        if json {
            let sender = sender.and_then(|sender| sender.comparison.as_ref());
            let json = serde_json::to_string(&Json { report, sender, judges: scores })?;
            return write!(out, ",\"path\":{json}");
        }
        write!(out, "\n{}", wrapped_lines(&report.to_string(), width))?;
        if let Some(sender) = sender {
            sender.write_text(width)?;
        }
        let scores = scores.as_ref().map(ToString::to_string).unwrap_or_default();
        write!(out, "{}", wrapped_lines(&scores, width))
    }
}

fn failed(error: PathError) -> anyhow::Error {
    match error {
        PathError::Capture(error) => super::failed(error),
        error => failure::usage_of(error),
    }
}
