//! `airtcp demo`: plays scenes that each show one recovery mechanism, in real and in virtual time.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use airhelp::options::number;
use airtcp_lab::demo::{self, Demo as Plan, Progress, Scene, SceneResult};
use airtcp_lab::page;
use airtcp_lab::testbed::Tools;
use airtcp_numbers::table::wrapped_lines;
use airtcp_sim::sweep::setup::quoted;
use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::lab::{command_line, failed, output_directory};
use crate::shared::console::{self, LiveLine};
use crate::shared::{failure, stop};

/// Show recovery mechanisms in scenes on a radio link
///
/// Prints tables and writes an HTML page with graphs.
///
/// Each scene runs once over TUN devices to this machine's kernel, with the kernel's CUBIC among the senders, and with many
/// seeds in virtual time. A sentence is printed only if its 95 % confidence interval supports it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    /// Only this scene (repeatable) [default: all]
    #[arg(long, value_name = "NAME", value_parser = demo::find)]
    scene: Vec<&'static Scene>,
    /// Number of seeds: virtual-time runs per sender
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = number::<u64>(2..=100_000))]
    seeds: u64,
    /// Seed of all random numbers (in the first virtual-time run; each later run adds 1, and the real transfers have one of the first 20)
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Output directory, which must be empty [default: the next free lab/NNN-demo]
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Print JSON instead of text: one object
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show every column of the tables, however wide they get
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    wide: bool,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples (as root, or as an ordinary user who can open /dev/net/tun):
  All scenes, in about a minute:
    airtcp demo
  One scene with other seeds, and more of them:
    airtcp demo --scene handover --seed 1000 --seeds 1000

Each scene has a directory as `airtcp lab run` writes it, with an additional
scene.json. report.html covers all scenes.

Exit codes:
  0  every transfer was exact
  1  some transfers were not
  2  usage error
  3  environment error: missing privilege, device or program
  130  stopped with Ctrl-C (128 + N: by signal N)";

impl Demo {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let last = self.seed.checked_add(self.seeds - 1);
        let last = last.ok_or_else(|| failure::usage("--seed and --seeds together are too large"))?;
        let scenes: Vec<&Scene> =
            if self.scene.is_empty() { demo::SCENES.iter().collect() } else { self.scene.clone() };
        let is_repeated = |(index, scene): &(usize, &&Scene)| {
            scenes[..*index].iter().any(|earlier| earlier.name == scene.name)
        };
        if let Some((_, scene)) = scenes.iter().enumerate().find(is_repeated) {
            return Err(failure::usage(format!("--scene {} is given twice: give it once", scene.name)));
        }
        let all = scenes.len();
        let tools = Tools::find().map_err(failed)?;
        let directory = output_directory(self.output.as_ref(), "demo")?;
        let plan = Plan {
            directory: std::path::absolute(&directory)?,
            seeds: self.seed..=last,
            command: command_line(),
        };
        let line = LiveLine::new(!self.quiet);
        // Number of complete scenes. The lock is held while a scene is printed, so a signal handler counts
        // only scenes that were printed completely.
        let complete = Arc::new(Mutex::new(0));
        let (line_to_clear, complete_at_stop, directory_then) = (line, complete.clone(), directory.clone());
        stop::on_signal(move || {
            line_to_clear.clear();
            console::print_status(stop_message(
                *complete_at_stop.lock().unwrap_or_else(PoisonError::into_inner),
                all,
                &directory_then,
            ));
        })?;
        let mut written = Ok(());
        let observe = |progress| line.show(&progress_text(progress));
        let results = demo::play(&tools, &plan, &scenes, observe, |scene| {
            let mut complete = complete.lock().unwrap_or_else(PoisonError::into_inner);
            line.clear();
            if !self.json && written.is_ok() {
                let number = demo::find(&scene.name).map_or(0, Scene::number);
                written = writeln!(console::stdout(), "{number}. {}", scene.text(console::width(self.wide)));
            }
            *complete += 1;
        });
        line.clear();
        let results = results.map_err(|error| {
            if self.output.is_none() {
                // Fails if there are complete scenes.
                let _ = fs::remove_dir(&directory);
            }
            failed(error)
        })?;
        let report = directory.join("report.html");
        let page = page::page(std::slice::from_ref(&directory))?;
        airfiles::write(&report, page.html())
            .with_context(|| format!("cannot write {}", report.display()))?;
        // Failed transfers are reported even if stdout could not be written.
        let written = written.and_then(|()| match self.json {
            true => writeln!(console::stdout(), "{}", json!({ "scenes": results, "page": report })),
            false => {
                write!(
                    console::stdout(),
                    "{}",
                    next_steps(&results, &directory, &report, console::width(self.wide))
                )
            }
        });
        match results.iter().flat_map(SceneResult::failures).count() {
            0 => Ok(written?),
            failures => Err(failure::run(format!("{failures} transfers over TUN failed"))),
        }
    }
}

/// Returns the message for a demo that a signal stops. The complete scenes are already printed.
fn stop_message(complete: usize, all: usize, directory: &Path) -> String {
    let directory = quoted(&directory.display().to_string());
    let page = match complete {
        0 => String::new(),
        _ => format!("; `airtcp report {directory}` makes a page of them"),
    };
    format!("airtcp: stopped by a signal: {complete} of {all} scenes are complete{page}")
}

fn progress_text(progress: Progress) -> String {
    match progress {
        Progress::RealTime(done, all) => format!("{done} of {all} transfers over TUN"),
        Progress::VirtualTime(done, all) => format!("{done} of {all} runs in virtual time"),
    }
}

/// Explains the columns, and suggests the next commands.
fn next_steps(results: &[SceneResult], directory: &Path, report: &Path, width: Option<usize>) -> String {
    let mut text = String::new();
    if let Some(first) = results.first() {
        text += &format!(
            "Virtual time: means of {} seeds with their 95 % intervals; gains compare runs with the same seed.\n\
             TUN devices: one transfer with one of the first 20 seeds, the closest to the medians where the first sender has \
             a timeout; rank: share of the simulated runs that were slower.\n\
             Recipes have profile {}. In virtual time recipe linux, a model of the kernel's sender, replaces linux:cubic.\n\n",
            first.seeds, first.profile
        );
    }
    text += &format!("Tables and graphs on one page, for any browser: {}\n", report.display());
    let mut text = wrapped_lines(&text, width);
    let sample = results.first().and_then(|scene| {
        let recipe = scene.rows.iter().rev().find(|row| row.modelled_by.is_none())?;
        let directory = directory.join(demo::find(&scene.name).ok()?.directory());
        Some((directory.join(format!("01-{}", recipe.sender)), &recipe.sender))
    });
    if let Some((sample, recipe)) = sample {
        let sample = quoted(&sample.display().to_string());
        text += &format!(
            "\nNext steps:\n  \
             airtcp explain {recipe}\n  \
             less {sample}/decisions.jsonl\n  \
             tcpdump -nn -ttt -r {sample}/fixed.pcap\n  \
             airtcp lab run --help\n"
        );
    }
    text
}
