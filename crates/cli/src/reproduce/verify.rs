//! Verification of a record. Its figures run again with the recorded seeds and must give the same bytes.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use airtcp_reproduce::{Figure, Runs, figures};
use anyhow::Context;

use super::plan::SeedPlan;
use super::record::{Record, Recorded};
use super::{FinishedFigure, bundle, runs, select};
use crate::shared::{console, failure};

pub(super) struct Verification<'a> {
    directory: &'a Path,
    record: Record,
    verified: usize,
    differing: usize,
}

impl<'a> Verification<'a> {
    pub(super) fn open(directory: &'a Path) -> anyhow::Result<Self> {
        let record = Record::read(directory)?;
        if figures().iter().all(|figure| record.section(figure.id).is_none()) {
            return Err(failure::usage(format!(
                "{} has no recorded figures: `airtcp reproduce FIGURE --record DIR` writes some",
                directory.display()
            )));
        }
        if let Some(changed) = bundle::changed(directory)? {
            if !changed.is_empty() {
                let files = changed.join(", ");
                return Err(failure::run(format!("these files differ from SHA256SUMS: {files}")));
            }
            console::print_status(format_args!("all files have the checksums in SHA256SUMS"));
        }
        Ok(Self { directory, record, verified: 0, differing: 0 })
    }

    /// Returns the runs to fill in for a figure, if the record has set-ups.
    pub(super) fn recording(&self) -> Option<Arc<Runs>> {
        self.directory.join(runs::IN_BUNDLE).is_dir().then(Arc::default)
    }

    /// Returns the figures with these names and their seeds. Without names, all recorded figures.
    pub(super) fn select(&self, names: &[String]) -> anyhow::Result<Vec<(Figure, SeedPlan)>> {
        let known = figures();
        let recorded = || known.iter().filter(|figure| self.record.section(figure.id).is_some()).copied();
        let selected = if names.is_empty() { recorded().collect() } else { select(&known, names)? };
        selected.into_iter().map(|figure| Ok((figure, self.plan(&figure)?))).collect()
    }

    /// Returns the seeds of a recorded figure, from its command.
    fn plan(&self, figure: &Figure) -> anyhow::Result<SeedPlan> {
        let section = self.record.section(figure.id);
        let command = section.and_then(|section| section.split('`').nth(1));
        command.and_then(|command| SeedPlan::of_command(command, figure.id)).ok_or_else(|| {
            failure::usage(format!(
                "{} does not have {}: `airtcp reproduce {} --record {}` adds it",
                self.directory.display(),
                figure.id,
                figure.id,
                self.directory.display()
            ))
        })
    }

    /// Compares a figure and its runs with the record, and prints the result.
    pub(super) fn check(&mut self, made: &FinishedFigure, runs: Option<&Runs>) -> anyhow::Result<()> {
        let Recorded { section, mut files, stale } = Recorded::of(made)?;
        let id = made.figure.id;
        let setups = runs.map(|runs| runs::files(id, runs)).unwrap_or_default();
        let in_bundle =
            |(name, text): (String, String)| (format!("{}/{name}", runs::IN_BUNDLE), text.into_bytes());
        files.extend(setups.into_iter().map(in_bundle));
        let mut differing = Vec::new();
        if self.record.section(id) != Some(&section) {
            differing.push(format!("its section in {}.md", made.figure.paper.name()));
        }
        for (name, bytes) in files {
            if self.file(&name)?.is_none_or(|recorded| recorded != bytes) {
                differing.push(name);
            }
        }
        for name in stale {
            if self.file(&name)?.is_some() {
                differing.push(name);
            }
        }
        self.verified += 1;
        match differing.is_empty() {
            true => console::print_status(format_args!("{id}: as recorded")),
            false => {
                self.differing += 1;
                console::print_status(format_args!("{id}: differs in {}", differing.join(", ")));
            }
        }
        Ok(())
    }

    /// Compares the pages around the figures, and returns an error if anything differs.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let mut differing = Vec::new();
        for (name, text) in self.record.pages() {
            if self.file(&name)?.is_none_or(|recorded| recorded != text.as_bytes()) {
                differing.push(name);
            }
        }
        let pages = match differing.is_empty() {
            true => "the pages around them are as recorded".to_owned(),
            false => format!("the text around them differs in {}", differing.join(", ")),
        };
        let summary = format!("{} of {} figures differ; {pages}", self.differing, self.verified);
        if self.differing > 0 || !differing.is_empty() {
            return Err(failure::run(summary));
        }
        console::print_status(format_args!("{summary}"));
        Ok(())
    }

    /// Returns a file of the record. `None` if there is none.
    fn file(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let path = self.directory.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}
