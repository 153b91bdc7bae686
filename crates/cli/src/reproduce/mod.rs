//! `airtcp reproduce`: reproduces the papers' figures and tables in virtual time.

mod bundle;
mod cache;
mod page;
mod picture;
mod plan;
mod progress;
mod record;
mod runs;
mod verify;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use airtcp_numbers::table::wrapped;
use airtcp_report::plot::Format;
use airtcp_reproduce::chart::Chart;
use airtcp_reproduce::{Effort, Figure, Finding, Paper, Runs, Seeds, Watcher, figures, listed};
use anyhow::Context;
use clap::Args;
use serde_json::json;

use self::cache::ResultCache;
use self::plan::SeedPlan;
use self::progress::{Cost, Progress};
use self::record::{CHOICES, Record};
use self::verify::Verification;
use crate::shared::progress::format_duration;
use crate::shared::{console, failure, stop};

/// Reproduce the papers' figures and tables in virtual time
///
/// Senders that are compared run with the same seeds, and each claim is judged by the 95 % confidence interval of the
/// differences. Choices that a paper leaves open are listed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Reproduce {
    /// Figures such as p0-fig11a, or papers such as p0 (Pan et al. 2004) [default: list papers and figures]
    #[arg(value_name = "FIGURE")]
    figure: Vec<String>,
    /// Run all figures
    #[arg(long, conflicts_with = "figure")]
    all: bool,
    #[command(flatten)]
    plan: SeedPlan,
    /// Draw the charts as SVG files in this directory: FIGURE.svg, FIGURE-2.svg, …
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    plot: Option<PathBuf>,
    /// Write an HTML page with a summary, and each figure with its claims
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// Write the figures to this directory instead of stdout: one page per paper, an index of claims, pictures and CSV files
    ///
    /// Other figures in the directory remain.
    #[arg(long, value_name = "DIR", help_heading = "Output", conflicts_with = "json")]
    record: Option<PathBuf>,
    /// Write the set-up of each point to this directory as FIGURE-POINT.json, and the value of each seed as FIGURE-seeds.csv
    ///
    /// `airtcp sim --run` repeats the run of a set-up. FIGURE-points.csv lists the settings in which the set-ups differ.
    /// With `--record DIR --setups DIR/setups`, the record becomes a bundle for evaluators: BUNDLE.md has instructions,
    /// and SHA256SUMS the checksums of all files.
    #[arg(long, value_name = "DIR", help_heading = "Output", conflicts_with = "keep")]
    setups: Option<PathBuf>,
    /// Run recorded figures again with the recorded seeds, and compare with the record in this directory byte for byte
    ///
    /// Without FIGURE, all recorded figures. The exit code is 1 if anything differs.
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Output",
        conflicts_with_all = ["record", "setups", "json", "html", "plot", "keep", "seeds", "most_seeds", "first_seed", "readings"]
    )]
    verify_record: Option<PathBuf>,
    /// Save each result in this directory, and reuse results that an earlier run of the same program saved there
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    keep: Option<PathBuf>,
    /// Print JSON instead of text: one object per figure, one per line
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  One figure:
    airtcp reproduce p0-fig11a
  A quick look at one paper:
    airtcp reproduce p3 --seeds 5 --most-seeds 5
  One paper as an HTML page with pictures:
    airtcp reproduce p1 --html papers.html
  All figures; the command prints how long this takes, and can be resumed:
    airtcp reproduce --all --keep found --html papers.html
  The set-ups of a figure, one of which is then repeated:
    airtcp reproduce p0-fig6 --seeds 5 --most-seeds 5 --setups runs
    airtcp sim --run runs/p0-fig6-1.json --seed 5
  One figure, updated in the record:
    airtcp reproduce p2-fig12 --record docs/evidence/papers
  A paper as a bundle for evaluators, which one command verifies:
    airtcp reproduce p0 --record bundle --setups bundle/setups
    airtcp reproduce --verify-record bundle
  The same figure, compared with the record:
    airtcp reproduce p2-fig12 --verify-record docs/evidence/papers";

/// A finished figure.
struct FinishedFigure {
    figure: Figure,
    seeds: u32,
    plan: SeedPlan,
    finding: Finding,
    /// The information that parts of the recipes need, but that no run provided. One line for each part.
    notices: Vec<String>,
}

impl FinishedFigure {
    /// The command that runs the figure with these seeds.
    fn command(&self) -> String {
        self.plan.command(self.figure.id)
    }

    /// The number of seeds. `None` if nothing in the figure is random.
    fn seeds_shown(&self) -> Option<u32> {
        (self.figure.seeds != Seeds::One).then_some(self.seeds)
    }

    /// One of its charts as a picture.
    fn svg(&self, chart: &Chart) -> std::io::Result<Vec<u8>> {
        Format::Svg.render(&picture::figure(chart, self.figure.paper.cited(), self.seeds_shown()).draw())
    }

    fn runs(&self) -> String {
        self.seeds_shown().map_or_else(
            || "a single run, because nothing is random".to_owned(),
            |seeds| format!("{seeds} seeds"),
        )
    }
}

/// A figure for which only the first seed has run.
struct PendingFigure {
    figure: Figure,
    plan: SeedPlan,
    /// Contains the results of the first seed.
    effort: Effort,
    /// The runs of the figure, with `--setups` or for a record with set-ups.
    runs: Option<Arc<Runs>>,
    cost: Cost,
}

enum Step {
    Cached(FinishedFigure),
    Pending(PendingFigure),
}

impl Reproduce {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let known = figures();
        let mut verification = self.verify_record.as_deref().map(Verification::open).transpose()?;
        if self.figure.is_empty() && !self.all && verification.is_none() {
            return list(&known);
        }
        let planned: Vec<(Figure, SeedPlan)> = match &verification {
            Some(verification) => verification.select(&self.figure)?,
            None => {
                let selected = if self.all { known } else { select(&known, &self.figure)? };
                selected.into_iter().map(|figure| (figure, self.plan)).collect()
            }
        };
        let selected: Vec<Figure> = planned.iter().map(|(figure, _)| *figure).collect();
        for directory in self.plot.iter().chain(&self.setups) {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        let cache =
            self.keep.as_deref().map(|directory| ResultCache::open(directory, self.plan)).transpose()?;
        let mut record = self.record.as_deref().map(Record::open).transpose()?;
        let progress = Progress::new(self.quiet);
        // Number of complete figures. The lock is held while a figure is written, so that a signal does not
        // leave half a figure.
        let complete = Arc::new(Mutex::new(0));
        self.stop_on_signal(Arc::clone(&progress), Arc::clone(&complete), selected.len())?;
        let recording = || match &verification {
            Some(verification) => verification.recording(),
            None => self.setups.as_ref().map(|_| Arc::default()),
        };
        let steps = self.run_first_seeds(&planned, cache.as_ref(), recording, &progress)?;
        let mut finished = Vec::new();
        let all = steps.len();
        for (index, step) in steps.into_iter().enumerate() {
            let (figure, runs) = match step {
                Step::Cached(finished) => (finished, None),
                Step::Pending(pending) => {
                    let runs = pending.runs.clone();
                    let figure = self.make(pending, &format!("[{}/{all}]", index + 1), &progress)?;
                    if let Some(cache) = &cache {
                        cache.put(&figure)?;
                    }
                    if let (Some(directory), Some(runs)) = (&self.setups, &runs) {
                        runs::write(directory, figure.figure.id, runs, self.quiet)?;
                    }
                    (figure, runs)
                }
            };
            let mut complete = complete.lock().unwrap_or_else(PoisonError::into_inner);
            progress.clear();
            if let Some(directory) = &self.plot {
                plot(directory, &figure)?;
            }
            figure.notices.iter().for_each(|notice| tracing::warn!("{}: {notice}", figure.figure.id));
            match (&mut record, &mut verification) {
                (Some(record), _) => record.put(&figure)?,
                (None, Some(verification)) => verification.check(&figure, runs.as_deref())?,
                (None, None) => self.print(&figure, finished.last(), &selected)?,
            }
            finished.push(figure);
            *complete += 1;
        }
        if let Some(file) = &self.html {
            airfiles::write(file, page::page(&finished)?)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        if let (Some(directory), Some(first)) = (&self.record, selected.first())
            && bundle::is_bundle(self.record.as_deref(), self.setups.as_deref())
        {
            bundle::write(directory, first.id)?;
        }
        verification.map_or(Ok(()), Verification::finish)
    }

    /// Arranges for SIGINT, SIGTERM and SIGHUP to report the number of complete figures. Must be called before
    /// any other thread starts.
    fn stop_on_signal(
        &self,
        progress: Arc<Progress>,
        complete: Arc<Mutex<usize>>,
        all: usize,
    ) -> anyhow::Result<()> {
        let resume = match &self.keep {
            Some(_) => "the same command continues",
            None => "with --keep DIR, the same command would continue",
        };
        stop::on_signal(move || {
            let held = complete.lock().unwrap_or_else(PoisonError::into_inner);
            progress.clear();
            console::print_status(format_args!(
                "airtcp: stopped by a signal: {} of {all} figures are complete; {resume}",
                *held
            ));
            std::mem::forget(held);
        })
    }

    /// Runs the first seed of each figure that is not saved, to estimate the total duration.
    fn run_first_seeds(
        &self,
        planned: &[(Figure, SeedPlan)],
        cache: Option<&ResultCache>,
        recording: impl Fn() -> Option<Arc<Runs>>,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<Vec<Step>> {
        let all = planned.len();
        let mut steps = Vec::new();
        for (index, (figure, plan)) in planned.iter().copied().enumerate() {
            if let Some(made) = cache.map(|cache| cache.take(&figure)).transpose()?.flatten() {
                steps.push(Step::Cached(made));
                continue;
            }
            let mut effort = Effort::watched(1, Arc::clone(progress) as Arc<dyn Watcher>)
                .starting_at(plan.first_seed.into());
            let runs = recording();
            if let Some(runs) = &runs {
                effort = effort.recording(Arc::clone(runs));
            }
            progress.begin_first_seed(format!("[{}/{all}] {}", index + 1, figure.id));
            figure.run_first_seed(&effort).with_context(|| format!("cannot run {}", figure.id))?;
            let readings = if plan.readings { figure.readings().len() as u64 } else { 0 };
            // Most readings are decided with a quarter of the seeds.
            let reread = readings * u64::from(plan.seeds.div_ceil(4));
            let cost = progress.cost(|first| figure.remaining_runs(first, plan.seeds) + reread * first);
            steps.push(Step::Pending(PendingFigure { figure, plan, effort, runs, cost }));
        }
        progress.clear();
        let to_do = steps.iter().filter_map(|step| match step {
            Step::Cached(_) => None,
            Step::Pending(pending) => Some(pending),
        });
        let costs: Vec<Cost> = to_do.clone().map(|pending| pending.cost).collect();
        let takes = progress.begin(&costs);
        if !self.quiet && to_do.clone().count() < all {
            console::print_status(format_args!(
                "{} of {all} figures are saved from an earlier run",
                all - to_do.clone().count()
            ));
        }
        if !self.quiet && costs.len() > 1 {
            console::print_status(format_args!(
                "{} figures take about {} on this machine, and longer if claims remain undecided",
                costs.len(),
                format_duration(takes)
            ));
        }
        Ok(steps)
    }

    fn make(
        &self,
        pending: PendingFigure,
        place: &str,
        progress: &Progress,
    ) -> anyhow::Result<FinishedFigure> {
        let PendingFigure { figure, plan, effort, cost, .. } = pending;
        progress.clear();
        if !self.quiet {
            console::print_status(format_args!("{place} {}: {}", figure.id, figure.title));
        }
        progress.figure(format!("{place} {}", figure.id), cost);
        let report_undecided = |seeds: u32, undecided: usize| {
            if undecided == 0 || seeds >= plan.most_seeds {
                return;
            }
            progress.more(seeds);
            progress.clear();
            if !self.quiet {
                let claims = if undecided == 1 { "claim" } else { "claims" };
                console::print_status(format_args!(
                    "{}: {undecided} {claims} undecided with {seeds} seeds",
                    figure.id
                ));
            }
        };
        let missing = effort.missing();
        let seeds = if figure.seeds == Seeds::One { 1 } else { plan.seeds };
        let for_readings = effort.fresh(seeds);
        let fails = || format!("cannot run {}", figure.id);
        let (mut finding, seeds) =
            figure.decide(effort.with_seeds(seeds), plan.most_seeds, report_undecided).with_context(fails)?;
        if plan.readings {
            figure.judge_readings(&mut finding, &for_readings).with_context(fails)?;
        }
        progress.done();
        Ok(FinishedFigure { figure, seeds, plan, finding, notices: missing.notices() })
    }

    /// Prints one figure. `before` is the previous figure, and `selected` contains all requested figures. If
    /// several figures of a paper were requested, their shared choices appear once, before the first one. A
    /// single figure lists all its choices itself.
    fn print(
        &self,
        made: &FinishedFigure,
        before: Option<&FinishedFigure>,
        selected: &[Figure],
    ) -> anyhow::Result<()> {
        let FinishedFigure { figure, seeds, finding, notices, .. } = made;
        let Figure { id, title, paper, .. } = figure;
        if self.json {
            let finding = Finding { choices: figure.choices(finding), ..finding.clone() };
            let mut line = json!({ "figure": id, "title": title, "seeds": seeds, "first_seed": made.plan.first_seed, "finding": finding });
            if !notices.is_empty() {
                line["notices"] = json!(notices);
            }
            writeln!(console::stdout(), "{line}")?;
            return Ok(());
        }
        let figures_of_paper = of(*paper, selected);
        if before.is_none_or(|before| before.figure.paper != *paper) {
            writeln!(console::stdout(), "## {}\n", paper.reference())?;
            if figures_of_paper.len() > 1 {
                writeln!(console::stdout(), "{CHOICES}:\n")?;
                let shared: String =
                    paper.shared_by(&figures_of_paper).map(|shared| shared.markdown()).collect();
                write!(console::stdout(), "{shared}")?;
            }
        }
        write!(console::stdout(), "### `{id}`: {title}\n\n{}.\n\n{}", made.runs(), finding.markdown())?;
        let choices =
            if figures_of_paper.len() > 1 { finding.choices.clone() } else { figure.choices(finding) };
        if !choices.is_empty() {
            writeln!(console::stdout(), "{CHOICES}:\n\n{}", listed(&choices))?;
        }
        Ok(())
    }
}

/// Returns the figures of a paper.
fn of(paper: Paper, figures: &[Figure]) -> Vec<Figure> {
    figures.iter().filter(|figure| figure.paper == paper).copied().collect()
}

/// Writes each chart to a file.
fn plot(directory: &Path, made: &FinishedFigure) -> anyhow::Result<()> {
    for (index, chart) in made.finding.charts.iter().enumerate() {
        let file = directory.join(record::numbered(made.figure.id, index, "svg"));
        let svg = made.svg(chart)?;
        airfiles::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Lists the figures paper by paper, each paper with the name that selects all its figures.
fn list(known: &[Figure]) -> anyhow::Result<()> {
    let mut out = console::stdout();
    let width = console::width(false).unwrap_or(usize::MAX);
    let longest = known.iter().map(|figure| figure.id.len()).max().unwrap_or(0);
    let mut paper: Option<Paper> = None;
    for Figure { id, title, paper: of, .. } in known {
        if paper.replace(*of) != Some(*of) {
            let first = id.split_once('-').map_or_else(String::new, |(whole, _)| format!("{whole}: "));
            write!(out, "{}", wrapped(&first, of.reference(), width))?;
        }
        write!(out, "{}", wrapped(&format!("  {id:<longest$}  "), title, width))?;
    }
    Ok(())
}

fn select(known: &[Figure], names: &[String]) -> anyhow::Result<Vec<Figure>> {
    let mut selected = Vec::new();
    for name in names {
        let prefix = format!("{name}-");
        let before = selected.len();
        selected.extend(
            known.iter().filter(|figure| figure.id == name || figure.id.starts_with(&prefix)).copied(),
        );
        if selected.len() == before {
            return Err(failure::usage(format!(
                "unknown figure `{name}`: `airtcp reproduce` lists the figures"
            )));
        }
    }
    Ok(selected)
}
