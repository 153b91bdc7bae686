//! The page of `airtcp report`, made from what `airtcp lab run` has kept: directories of experiments, or of single
//! transfers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use airtcp_analyze::capture::{Capture, CaptureError};
use airtcp_analyze::connections::Traces;
use airtcp_analyze::path::{self, PathError};
use airtcp_analyze::survey;
use airtcp_analyze::trace::{Fate, Sending, Trace};
use airtcp_numbers::statistics::Mean;
use airtcp_report::html::chart::{self, Chart, Interval};
use airtcp_report::html::table::{Cell, Shows, Table};
use airtcp_report::html::{Experiment, Page, Run, decisions};
use serde_json::Value;

use crate::experiment::{Report, directory_name};
use crate::sender::Repair;
use crate::summary::{columns, profile};
use crate::transfer::Outcome;
use crate::workload::{PORT, Way};

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// Neither an experiment nor a transfer was kept here.
    #[error(
        "{} is no run directory: it has neither lab.json nor fixed.pcap. Give the directory that `airtcp lab run \
         --output` has made, or one of the transfers in it", .0.display()
    )]
    NotARun(PathBuf),
    #[error("cannot read {}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {source}; was it written by another version? Make the runs again", .path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    OnPath(#[from] PathError),
}

/// Puts all of them on one page. An experiment has a table of its own; single transfers share one.
pub fn page(directories: &[PathBuf]) -> Result<Page, RunDirError> {
    let mut page = Page::default();
    let mut single = Vec::new();
    for directory in directories {
        if directory.join("lab.json").is_file() {
            experiment(&mut page, directory)?;
        } else if directory.join("fixed.pcap").is_file() {
            single.push(directory.as_path());
        } else {
            return Err(RunDirError::NotARun(directory.clone()));
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

fn experiment(page: &mut Page, directory: &Path) -> Result<(), RunDirError> {
    let path = directory.join("lab.json");
    let text = read(&path)?;
    let report: Report =
        serde_json::from_str(&text).map_err(|source| RunDirError::Json { path: path.clone(), source })?;
    let senders = report.summary.len().max(1);
    let mut table = run_table("Every transfer: click to see it, tick several to compare them.");
    let mut runs_of = vec![Vec::new(); senders];
    for (at, outcome) in report.transfers.iter().enumerate() {
        let round = at / senders;
        let transfer = directory.join(directory_name(round as u32, &outcome.sender));
        let mut shows = Shows::default();
        // The lab makes the directory before it starts anything: what failed early has no capture.
        if transfer.join("fixed.pcap").is_file() {
            let run = run(&transfer, &format!("{}, round {}", outcome.sender, round + 1), Some(outcome))?;
            shows.runs.push(page.runs.len());
            runs_of[at % senders].push(page.runs.len());
            page.runs.push(run);
        }
        table.rows.push((shows, outcome_row(round + 1, outcome)));
    }
    let Report { command, versions, scenario, rounds, .. } = &report;
    let toml = fs::read_to_string(directory.join("scenario.toml")).ok();
    let description = toml.as_deref().and_then(description);
    let mut facts = vec![
        ("command".to_owned(), command.clone()),
        ("scenario".to_owned(), scenario.clone()),
        ("transfers".to_owned(), format!("{}, {rounds} for each sender", report.transfer_in_words())),
    ];
    facts.extend(report.unlike_the_kernel.iter().map(|line| ("kernel's senders".to_owned(), line.clone())));
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
        facts.push((
            "seeds".to_owned(),
            if first == last { first.to_string() } else { format!("{first} to {last}") },
        ));
    }
    page.experiments.push(Experiment {
        name: description
            .map_or_else(|| scenario.clone(), |description| format!("{scenario}: {description}")),
        facts,
        scenario: toml,
        chart: Some(chart(&report, &runs_of)),
        summary: Some(summary(&report, runs_of)),
        runs: table,
    });
    Ok(())
}

fn chart(report: &Report, runs_of: &[Vec<usize>]) -> Chart {
    let interval = |mean: Mean| Interval { mean: mean.mean, half_width: mean.half_width };
    let percent =
        |mean: Mean| Interval { mean: 100.0 * mean.mean, half_width: mean.half_width.map(|it| 100.0 * it) };
    let counts = |outcome: &&Outcome| outcome.failure.is_none() && outcome.spoiled.is_none();
    let senders = report.summary.iter().zip(runs_of).enumerate().map(|(at, (row, runs))| {
        let own = report.transfers.iter().skip(at).step_by(report.summary.len());
        chart::Sender {
            name: row.sender.clone(),
            shows: Shows { runs: runs.clone() },
            goodput: row.kbit_per_s.map(interval),
            transfers: own.filter(counts).map(|outcome| outcome.kbit_per_s).collect(),
            gain: row.against.and_then(|against| against.gain).map(percent),
            verdict: row.against.map_or_else(String::new, |against| against.verdict.to_string()),
        }
    });
    Chart { against: report.against.clone(), senders: senders.collect() }
}

/// As `lab run` prints it.
fn summary(report: &Report, runs: Vec<Vec<usize>>) -> Table {
    let Report { rounds, summary, against, .. } = report;
    let columns = columns(summary);
    let mut caption = format!("means of {rounds} transfers: {}", report.transfer_in_words());
    if let Some(profile) = profile(summary.iter().map(|row| row.profile.as_deref())) {
        caption += &format!(", {profile}");
    }
    if summary.iter().any(|row| row.against.is_some()) {
        caption += &format!(", compared with {against}");
    }
    caption += "; what was resent, timeouts and spurious ones are as the senders count them";
    Table {
        caption,
        columns: columns.iter().map(|column| (column.name, column.meaning)).collect(),
        rows: summary
            .iter()
            .zip(runs)
            .map(|(row, runs)| (Shows { runs }, columns.iter().map(|column| column.cell(row)).collect()))
            .collect(),
    }
}

/// The same word may mean something else to a sender and to who looks at its packets.
const SOURCES: &str = "Packets, resent and silence are what the sender's capture shows; timeouts and spurious ones are as the \
                       sender counts them.";

fn run_table(caption: &str) -> Table {
    Table {
        caption: format!("{caption} {SOURCES}"),
        columns: vec![
            ("sender", "a recipe, or the kernel's own"),
            ("round", "transfers of one round have the same seed: they meet the same path"),
            ("kbit/s", "goodput from the first SYN to the last ACK"),
            ("seconds", "from the first SYN to the last ACK"),
            ("packets", "with data: the capture on the sender's side"),
            ("resent", "of these, all of whose data was sent before: the capture on the sender's side"),
            ("timeouts", "of the retransmission timer: as the sender counts them"),
            ("spurious", "timeouts that the sender itself has noticed to be a mistake"),
            (
                "silent s",
                "silence that ended with a retransmission, of whatever cause: the capture on the sender's side. The graphs \
                 shade what ended with the timer",
            ),
            ("profile", "whose TCP a recipe's sender looks like in everything else"),
            ("seed", "of the path"),
            ("outcome", "whether every octet arrived and nothing else"),
        ],
        rows: Vec::new(),
    }
}

fn outcome_row(round: usize, outcome: &Outcome) -> Vec<Cell> {
    vec![
        Cell::text(&outcome.sender),
        Cell::count(round as u64),
        Cell::number(outcome.kbit_per_s, 1),
        Cell::number(outcome.capture.seconds, 2),
        Cell::count(outcome.capture.data_packets),
        Cell::count(outcome.capture.resent_packets),
        outcome.repair.map_or_else(Cell::nothing, |repair| Cell::count(repair.timeouts)),
        outcome.repair.map_or_else(Cell::nothing, |repair| Cell::count(repair.spurious)),
        Cell::number(outcome.capture.idle_seconds, 2),
        outcome.profile.as_deref().map_or_else(Cell::nothing, Cell::text),
        Cell::count(outcome.seed),
        match (&outcome.failure, &outcome.spoiled) {
            (Some(why), _) => Cell::text(why),
            (None, Some(why)) => Cell::text(format!("exact, but left out: {why}")),
            (None, None) => Cell::text("exact"),
        },
    ]
}

/// Directories of single transfers. Their rows come from the `lab.json` of the experiment around them, if it is there.
fn transfers(page: &mut Page, directories: &[&Path]) -> Result<(), RunDirError> {
    let mut table = run_table("Click to see a transfer, tick several to compare them.");
    for directory in directories {
        // `.` has a name, too.
        let directory = directory
            .canonicalize()
            .map_err(|source| RunDirError::File { path: directory.to_path_buf(), source })?;
        let name = directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let report = directory.parent().and_then(|parent| fs::read_to_string(parent.join("lab.json")).ok());
        let report = report.and_then(|text| serde_json::from_str::<Report>(&text).ok());
        let known = report.as_ref().and_then(|report| {
            let senders = report.summary.len().max(1);
            let mut transfers = report.transfers.iter().enumerate();
            transfers
                .find(|(at, it)| directory_name((at / senders) as u32, &it.sender) == name)
                .map(|(at, it)| (at / senders + 1, it))
        });
        let run = run(&directory, &name, known.map(|(_, outcome)| outcome))?;
        let row = match known {
            Some((round, outcome)) => outcome_row(round, outcome),
            None => {
                let mut row = vec![Cell::nothing(); table.columns.len()];
                row[0] = Cell::text(&run.name);
                row
            }
        };
        table.rows.push((Shows { runs: vec![page.runs.len()] }, row));
        page.runs.push(run);
    }
    let name = if directories.len() == 1 {
        "one transfer".to_owned()
    } else {
        format!("{} transfers", directories.len())
    };
    page.experiments.push(Experiment { name, runs: table, ..Experiment::default() });
    Ok(())
}

fn run(directory: &Path, name: &str, outcome: Option<&Outcome>) -> Result<Run, RunDirError> {
    let connections = outcome.map_or(&[][..], |outcome| &outcome.connections);
    let way = connections.first().map_or(Way::Down, |first| first.direction);
    let mut trace = first_trace(&directory.join(way.sender_side().capture()))?;
    let mut facts = Vec::new();
    // Where there are several connections, it would not be known of which this is.
    facts.extend(fates(directory, way, &mut trace)?.filter(|_| connections.len() <= 1));
    let events = events(&directory.join("sender.jsonl"));
    if let (Ok(log), Some(start)) = (fs::read_to_string(directory.join("decisions.jsonl")), start(&events)) {
        let mss = events.iter().find_map(|event| event.pointer("/data/handshake/mss")?.as_f64());
        let mss = mss.unwrap_or_else(|| longest_segment(&trace));
        let laid = decisions::lay_over(&mut trace, &log, start, mss);
        if laid.unreadable > 0 {
            let text = format!("{} lines of decisions.jsonl cannot be read", laid.unreadable);
            facts.push(("log".to_owned(), text));
        }
        facts.push(sent_again(&trace, Some(laid.otherwise)));
    } else {
        facts.push(sent_again(&trace, None));
    }
    if let Some(outcome) = outcome {
        let Outcome { profile, seed, kbit_per_s, capture, failure, repair, .. } = outcome;
        if let Some(Repair { fast, timeout, probe, timeouts, spurious }) = repair {
            let counts = format!(
                "{fast} fast, {timeout} after a timeout, {probe} to provoke an ACK; timeouts: {timeouts}, of these noticed to \
                 be a mistake: {spurious}"
            );
            facts.push(("sent again, as the sender counts".to_owned(), counts));
        }
        let shaded: i64 = trace.idle.iter().map(|idle| idle.to - idle.from).sum();
        let silence = format!(
            "{:.2} s ended with a retransmission; {:.2} s with one by the timer, shaded in the graphs",
            capture.idle_seconds,
            shaded as f64 / 1e9
        );
        facts.push(("silence".to_owned(), silence));
        facts.extend(profile.iter().map(|profile| ("profile".to_owned(), profile.clone())));
        facts.push(("seed".to_owned(), seed.to_string()));
        facts.push(("goodput".to_owned(), format!("{kbit_per_s:.1} kbit/s over {:.2} s", capture.seconds)));
        if let Some(failure) = failure {
            facts.push(("failed".to_owned(), failure.clone()));
        }
    }
    facts.extend(path_facts(&directory.join("airlink.json"), way));
    facts.push(("files".to_owned(), directory.display().to_string()));
    Ok(Run { name: name.to_owned(), facts, trace })
}

/// What the graphs show of retransmissions. `otherwise` are those of which the sender's log, if there is one, says another
/// cause than the capture.
fn sent_again(trace: &Trace, otherwise: Option<usize>) -> (String, String) {
    let of = |sending| trace.segments.iter().filter(move |it| it.sending == sending && it.start > 0).count();
    let mut parts =
        vec![format!("{} fast", of(Sending::Fast)), format!("{} after a timeout", of(Sending::Timeout))];
    for (sending, words) in [
        (Sending::Tail, "as tail probes"),
        (Sending::Probe, "as window probes"),
        (Sending::Unexplained, "unexplained"),
    ] {
        let count = of(sending);
        if count > 0 {
            parts.push(format!("{count} {words}"));
        }
    }
    let syns = trace.segments.iter().filter(|it| it.sending != Sending::New && it.start == 0).count();
    if syns > 0 {
        parts
            .push(format!("the SYN {}", if syns == 1 { "once".to_owned() } else { format!("{syns} times") }));
    }
    let unneeded = trace.segments.iter().filter(|it| matches!(it.fate, Fate::Unneeded { .. })).count();
    let source = match otherwise {
        Some(0) => "causes by the sender's log and by its capture".to_owned(),
        Some(otherwise) => {
            format!("causes by the sender's log, where the capture alone has another one for {otherwise}")
        }
        None => "causes by the capture alone".to_owned(),
    };
    let text = format!("{}; {unneeded} were not needed, by the captures; {source}", parts.join(", "));
    ("sent again, in the graphs".to_owned(), text)
}

/// Of all connections in the capture, and both directions, the lab's first one; in a capture that is not a lab's, the one
/// that carried most.
fn first_trace(path: &Path) -> Result<Trace, RunDirError> {
    let mut longest = Trace::default();
    let sent = |trace: &Trace| {
        let octets = trace.segments.iter().map(|segment| segment.end - segment.start).sum::<u64>();
        (trace.name.ends_with(&format!(":{PORT}")), octets)
    };
    survey::read(&mut Capture::open(path, None)?, Traces::All, &mut |finished| {
        for trace in finished.ended.traces.into_iter().flatten() {
            if sent(&trace) > sent(&longest) {
                longest = trace;
            }
        }
    });
    Ok(longest)
}

/// What became of each packet, by the capture at the other end and, if the lab kept them, airlink's events.
fn fates(directory: &Path, way: Way, trace: &mut Trace) -> Result<Option<(String, String)>, RunDirError> {
    let sides = [way.sender_side(), way.receiver_side()].map(|side| directory.join(side.capture()));
    let truth = directory.join("events.jsonl");
    if !sides[1].is_file() {
        return Ok(None);
    }
    let files = path::Files {
        captures: sides.into(),
        truth: truth.is_file().then_some(truth),
        ..path::Files::default()
    };
    let (report, fates) = path::read(&files, path::Keep::Fates)?;
    fates.lay_over(trace);
    let flows = report.connections.iter().flat_map(|connection| &connection.directions);
    let flow = flows.filter(|flow| flow.enters_at == 0).max_by_key(|flow| flow.bytes);
    Ok(flow.map(|flow| ("on the path".to_owned(), flow.data.to_string())))
}

fn longest_segment(trace: &Trace) -> f64 {
    trace.segments.iter().map(|segment| segment.end - segment.start).max().unwrap_or(1) as f64
}

/// What the path did to packets, in words.
fn path_facts(path: &Path, way: Way) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let totals: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut facts = Vec::new();
    let back = if way == Way::Down { Way::Up } else { Way::Down };
    for (direction, name) in [(way.name(), "path to the receiver"), (back.name(), "path back")] {
        let (Some(entered), Some(left)) =
            (totals[direction]["entered"].as_u64(), totals[direction]["left"].as_u64())
        else {
            continue;
        };
        let mut fact = format!("{entered} packets in, {left} out");
        for (why, packets) in totals[direction]["dropped"].as_object().into_iter().flatten() {
            fact.push_str(&format!(", {packets} dropped: {why}"));
        }
        facts.push((name.to_owned(), fact));
    }
    facts
}

fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The wall time, in nanoseconds since 1970, from which the sender's clock counts.
fn start(events: &[Value]) -> Option<i64> {
    events.iter().find_map(|event| {
        let (time, wall) = (event["time"].as_f64()?, event["wall"].as_f64()?);
        Some(((wall - time) * 1e9).round() as i64)
    })
}

fn description(scenario: &str) -> Option<String> {
    let table: toml::Table = scenario.parse().ok()?;
    Some(table.get("description")?.as_str()?.to_owned())
}

fn read(path: &Path) -> Result<String, RunDirError> {
    fs::read_to_string(path).map_err(|source| RunDirError::File { path: path.to_owned(), source })
}
