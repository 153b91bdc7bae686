//! The page of `airtcp report`, made from the results of `airtcp lab run`: directories of experiments or of
//! single transfers.

mod transfer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aircaptures::capture::CaptureError;
use airtcp_analyze::path::PathError;
use airtcp_numbers::statistics::Mean;
use airtcp_report::html::chart::{self, Chart, Interval};
use airtcp_report::html::table::{Cell, Table};
use airtcp_report::html::{Experiment, Page};
use transfer::run;

use crate::LabError;
use crate::demo;
use crate::experiment::{Report, directory_name};
use crate::sender::RetransmissionCounts;
use crate::summary::{columns, invalid, never_together, notices, profile};
use crate::transfer::Outcome;

/// The reason why the page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// The directory contains neither an experiment nor a transfer.
    #[error(
        "{} is not a lab directory: it has neither lab.json nor fixed.pcap. Give a directory that `airtcp lab run \
         --output` made, one of the transfers in it, or a capture", .0.display()
    )]
    NotARun(PathBuf),
    /// A file of the directory cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The lab's files are missing or damaged.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The files about the emulated path cannot be read.
    #[error(transparent)]
    OnPath(#[from] PathError),
}

/// Puts all directories on one page. Each experiment gets its own table; single transfers share one. A
/// directory may also contain experiments.
///
/// # Errors
///
/// Returns an error if a directory contains no results, or if its files cannot be read.
pub fn page(directories: &[PathBuf]) -> Result<Page, RunDirError> {
    let mut page = Page::default();
    let mut single = Vec::new();
    for directory in directories {
        if directory.join("lab.json").is_file() {
            experiment(&mut page, directory)?;
        } else if directory.join("fixed.pcap").is_file() {
            single.push(directory.as_path());
        } else {
            let inside = experiments_in(directory);
            if inside.is_empty() {
                return Err(RunDirError::NotARun(directory.clone()));
            }
            inside.iter().try_for_each(|inside| experiment(&mut page, inside))?;
        }
    }
    if !single.is_empty() {
        transfers(&mut page, &single)?;
    }
    page.title = match page.runs.len() {
        1 => "airtcp: one transfer".to_owned(),
        runs => format!("airtcp: {runs} transfers"),
    };
    Ok(page)
}

/// The experiments in a directory, such as the output of `airtcp demo`, sorted by name.
fn experiments_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut inside: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.join("lab.json").is_file()).collect();
    inside.sort();
    inside
}

fn experiment(page: &mut Page, directory: &Path) -> Result<(), RunDirError> {
    let report = Report::read(directory)?;
    let senders = report.summary.len().max(1);
    let mut table = run_table("All transfers. Click one to display it, or tick several to compare them.");
    let (mut runs_of, mut runs_of_transfers) = (vec![Vec::new(); senders], Vec::new());
    for (index, outcome) in report.transfers.iter().enumerate() {
        let round = index / senders;
        let transfer = directory.join(directory_name(round as u32, &outcome.sender));
        let mut run_indices = Vec::new();
        // The lab creates the directory first, so a transfer that failed early has no capture.
        if transfer.join("fixed.pcap").is_file() {
            let run = run(&transfer, &format!("{}, round {}", outcome.sender, round + 1), Some(outcome))?;
            run_indices.push(page.runs.len());
            runs_of[index % senders].push(page.runs.len());
            page.runs.push(run);
        }
        runs_of_transfers.push(run_indices.first().copied());
        table.rows.push((run_indices, outcome_row(round + 1, outcome)));
    }
    if page.opening.is_empty() {
        page.opening = opening(&report.transfers, senders, &runs_of_transfers);
    }
    let Report { command, versions, scenario, rounds, .. } = &report;
    let toml = airfiles::read_result(directory.join("scenario.toml")).ok();
    let description = toml.as_deref().and_then(description);
    let mut facts = vec![
        ("command".to_owned(), command.clone()),
        ("scenario".to_owned(), scenario.clone()),
        ("transfers".to_owned(), format!("{}, {rounds} per sender", report.describe_transfer())),
    ];
    let left_out = never_together(&report.summary, &report.asked);
    facts.extend(left_out.lines().map(|line| ("left out".to_owned(), line.to_owned())));
    facts.extend(notices(&report.summary).into_iter().map(|line| ("missing".to_owned(), line)));
    facts.extend(invalid(&report.transfers).map(|line| ("invalid".to_owned(), line)));
    facts.extend(report.kernel_differences.iter().map(|line| ("kernel senders".to_owned(), line.clone())));
    for (name, version) in [
        ("airtcp", &versions.airtcp),
        ("airlink", &versions.airlink),
        ("kernel", &versions.kernel),
        ("receiver", &versions.receiver),
    ] {
        facts.push((name.to_owned(), version.clone()));
    }
    let seeds: Vec<_> = report.transfers.iter().map(|outcome| outcome.seed).collect();
    if let (Some(first), Some(last)) = (seeds.iter().min(), seeds.iter().max()) {
        let seeds = if first == last { first.to_string() } else { format!("{first} to {last}") };
        facts.push(("seeds".to_owned(), seeds));
    }
    let scene = demo::read(directory);
    let name = match (&scene, description) {
        (Some(scene), _) => scene.title.clone(),
        (None, Some(description)) => format!("{scenario}: {description}"),
        (None, None) => scenario.clone(),
    };
    page.experiments.push(Experiment {
        name,
        facts,
        scenario: toml,
        sentences: scene.iter().flat_map(|scene| &scene.sentences).map(|it| it.text.clone()).collect(),
        chart: Some(scene.as_ref().map_or_else(|| chart(&report, &runs_of), |scene| scene.chart(&runs_of))),
        summary: Some(match scene {
            Some(scene) => scene.table(&runs_of),
            None => summary(&report, runs_of),
        }),
        runs: table,
        waterfalls: Vec::new(),
    });
    Ok(())
}

/// The runs to display first: the first two senders in the first round in which both count, otherwise every
/// run that counts, in order. `runs` has the run of each transfer.
fn opening(transfers: &[Outcome], senders: usize, runs: &[Option<usize>]) -> Vec<usize> {
    let counting = transfers.iter().zip(runs).map(|(outcome, run)| run.filter(|_| outcome.counts()));
    let counting: Vec<_> = counting.collect();
    let both =
        counting.chunks(senders).find_map(|round| round.iter().copied().take(2).collect::<Option<Vec<_>>>());
    both.unwrap_or_else(|| counting.into_iter().flatten().collect())
}

fn chart(report: &Report, runs_of: &[Vec<usize>]) -> Chart {
    let senders = report.summary.iter().zip(runs_of).enumerate().map(|(index, (row, runs))| {
        let transfers = report.transfers.iter().skip(index).step_by(report.summary.len());
        let valid = transfers.filter(|outcome| outcome.counts());
        chart::Sender {
            name: row.sender.clone(),
            runs: runs.clone(),
            goodput: row.kbit_per_s.map(|mean| interval(mean, 1.0)),
            transfers: valid.map(|outcome| outcome.kbit_per_s).collect(),
            gain: row.against.and_then(|against| against.gain).map(|gain| interval(gain, 100.0)),
            verdict: row.against.map_or_else(String::new, |against| against.verdict.to_string()),
        }
    });
    Chart { against: report.against.clone(), senders: senders.collect() }
}

/// The interval of a mean, multiplied by `factor`.
pub(crate) fn interval(mean: Mean, factor: f64) -> Interval {
    Interval { mean: factor * mean.mean, half_width: mean.half_width.map(|half| factor * half) }
}

/// The table that `lab run` prints.
fn summary(report: &Report, runs: Vec<Vec<usize>>) -> Table {
    let Report { rounds, summary, against, .. } = report;
    let columns = columns(summary);
    let mut caption = format!("means of {rounds} transfers: {}", report.describe_transfer());
    if let Some(profile) = profile(summary.iter().map(|row| row.profile.as_deref())) {
        caption += &format!(", {profile}");
    }
    if summary.iter().any(|row| row.against.is_some()) {
        caption += &format!(", compared with {against}");
    }
    caption += "; retransmissions, timeouts and spurious timeouts are the senders' own counts";
    let cells = |row| columns.iter().map(|column| column.cell(row)).collect();
    Table {
        caption,
        columns: columns.iter().map(|column| (column.name, column.meaning)).collect(),
        rows: summary.iter().zip(runs).map(|(row, runs)| (runs, cells(row))).collect(),
    }
}

/// The sources of the columns. A sender and an observer of its packets may count differently.
const SOURCES: &str = "Packets, retransmissions and idle times are from the capture on the sender's side; timeouts and spurious \
                       timeouts are the sender's own counts.";

fn run_table(caption: &str) -> Table {
    Table {
        caption: format!("{caption} {SOURCES}"),
        columns: vec![
            ("sender", "a recipe, or a kernel sender"),
            ("round", "transfers of one round have the same seed, so they meet the same path"),
            ("kbit/s", "goodput from the first SYN to the last ACK, or during the time given with --for"),
            ("seconds", "time from the first SYN to the last ACK, or the time given with --for"),
            ("packets", "packets with data, in the capture on the sender's side"),
            ("retransmissions", "packets whose data was sent before, in the capture on the sender's side"),
            (
                "timeouts",
                "expiries of the retransmission timer on the open connection, counted by the sender",
            ),
            ("spurious timeouts", "timeouts that the sender itself detected as spurious"),
            (
                "idle s",
                "silence that ended with any retransmission, in the capture on the sender's side. The graphs shade the \
                 silence that ended with a timeout",
            ),
            ("profile", "TCP stack that the sender imitates in everything the recipe does not set"),
            ("seed", "seed of the path"),
            ("outcome", "whether exactly the sent data arrived"),
        ],
        rows: Vec::new(),
    }
}

fn outcome_row(round: usize, outcome: &Outcome) -> Vec<Cell> {
    let counted = |count: fn(&RetransmissionCounts) -> u64| {
        outcome.repair.as_ref().map_or_else(Cell::nothing, |counts| Cell::count(count(counts)))
    };
    vec![
        Cell::text(&outcome.sender),
        Cell::count(round as u64),
        Cell::number(outcome.kbit_per_s, 1),
        Cell::number(outcome.capture.seconds, 2),
        Cell::count(outcome.capture.data_packets),
        Cell::count(outcome.capture.resent_packets),
        counted(|counts| counts.timeouts),
        counted(|counts| counts.spurious),
        Cell::number(outcome.capture.idle_seconds, 2),
        outcome.profile.as_deref().map_or_else(Cell::nothing, Cell::text),
        Cell::count(outcome.seed),
        match (&outcome.failure, &outcome.invalid) {
            (Some(why), _) => Cell::text(why),
            (None, Some(why)) => Cell::text(format!("exact, but left out: {why}")),
            (None, None) => match outcome.repeated.as_slice() {
                [] => Cell::text("exact"),
                why => Cell::text(format!("exact, repeated: {}", why.join("; "))),
            },
        },
    ]
}

/// Adds directories of single transfers. If the enclosing experiment has a `lab.json`, it supplies the rows.
fn transfers(page: &mut Page, directories: &[&Path]) -> Result<(), RunDirError> {
    let mut table = run_table("Click a transfer to display it, or tick several to compare them.");
    for directory in directories {
        // Resolves `.`, which has no file name.
        let directory = directory
            .canonicalize()
            .map_err(|source| RunDirError::File { path: directory.to_path_buf(), source })?;
        let name = directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let report = directory.parent().and_then(|parent| Report::read(parent).ok());
        let known = report.as_ref().and_then(|report| {
            let senders = report.summary.len().max(1);
            let mut transfers = report.transfers.iter().enumerate();
            transfers
                .find(|(index, it)| directory_name((index / senders) as u32, &it.sender) == name)
                .map(|(index, it)| (index / senders + 1, it))
        });
        let run = run(&directory, &name, known.map(|(_, outcome)| outcome))?;
        let row = known.map(|(round, outcome)| outcome_row(round, outcome)).unwrap_or_else(|| {
            let mut row = vec![Cell::nothing(); table.columns.len()];
            row[0] = Cell::text(&run.name);
            row
        });
        table.rows.push((vec![page.runs.len()], row));
        page.runs.push(run);
    }
    let name = match directories.len() {
        1 => "one transfer".to_owned(),
        count => format!("{count} transfers"),
    };
    page.experiments.push(Experiment { name, runs: table, ..Experiment::default() });
    Ok(())
}

fn description(scenario: &str) -> Option<String> {
    let table: toml::Table = scenario.parse().ok()?;
    Some(table.get("description")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rounds of two senders. Only the transfers that `counts` marks are valid.
    fn opening_with(counts: [bool; 4]) -> Vec<usize> {
        let outcome =
            |counts: bool| Outcome { invalid: (!counts).then(|| "late".to_owned()), ..Outcome::default() };
        opening(&counts.map(outcome), 2, &[Some(0), Some(1), Some(2), Some(3)])
    }

    #[test]
    fn page_opens_with_valid_round_of_both_senders() {
        assert_eq!(opening_with([true, true, true, true]), [0, 1]);
        assert_eq!(opening_with([true, false, true, true]), [2, 3]);
        assert_eq!(opening_with([true, false, false, true]), [0, 3]);
        assert_eq!(opening_with([false; 4]), [0; 0]);
    }
}
