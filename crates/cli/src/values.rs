//! `airtcp values`: a hidden command that completion scripts call.

use std::fs;

use airhelp::completion::{self, Candidate, Kinds, option_of, value_of};
use airlink::scenario::{Scenario, presets};
use airtcp_lab::receiver::{self, KERNEL_PROFILES};
use airtcp_reproduce::figures;
use airtcp_sim::sweep::metric::Metric;
use clap::{Args, ValueEnum};

use crate::lab::Stacks;
use crate::shared::console;
use crate::shared::senders::recipes_like;
use crate::sweep;

/// Print the completions of a word, for completion scripts
#[derive(Debug, Args)]
pub(crate) struct Values {
    kind: Kind,
    /// The word typed until now
    #[arg(default_value = "", allow_hyphen_values = true)]
    word: String,
    #[command(flatten)]
    stacks: Stacks,
    /// All words before the cursor
    #[arg(last = true)]
    line: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Recipe,
    Sender,
    AnySender,
    Scenario,
    Receiver,
    Figure,
    Setting,
    Metric,
    Axis,
    AxisValue,
}

/// The kinds of values, by the value names in the help texts.
pub(crate) const KINDS: &Kinds = &[
    ("RECIPE[@PROFILE]", "recipe"),
    ("OPTIONS", "recipe"),
    ("SENDER", "sender"),
    ("RECIPE|SENDER", "any-sender"),
    ("SCENARIO", "scenario"),
    ("RECEIVER", "receiver"),
    ("FIGURE", "figure"),
    ("STAGE.KEY=VALUE", "setting"),
    ("METRIC", "metric"),
    ("METRIC,…", "metric"),
    ("AXIS", "axis"),
    ("AXIS=VALUE", "axis-value"),
];

impl Values {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let word = value_of(&self.word);
        let all = match self.kind {
            Kind::Recipe => recipes_like(word),
            Kind::Sender => senders(),
            Kind::AnySender => recipes_like(word).into_iter().chain(senders()).collect(),
            Kind::Scenario => candidates(presets::complete_name(word)),
            Kind::Receiver => self.receivers(),
            Kind::Figure => figure_names(),
            Kind::Setting => {
                let scenario =
                    option_of(&self.line, "-s", "--scenario").and_then(|name| Scenario::load(name).ok());
                candidates(scenario.map(|scenario| scenario.complete_setting(word)).unwrap_or_default())
            }
            Kind::Metric => metrics(word),
            Kind::Axis => axes(&self.line, |axis, _| axis.to_owned()),
            Kind::AxisValue => axes(&self.line, |axis, value| format!("{axis}={value}")),
        };
        let meant: Vec<_> = all.into_iter().filter(|candidate| candidate.value.starts_with(word)).collect();
        Ok(completion::print(&meant, &mut console::stdout())?)
    }

    fn receivers(&self) -> Vec<Candidate> {
        let kernels = KERNEL_PROFILES.iter().map(|profile| Candidate::new(profile.name, profile.summary));
        let stacks = receiver::built(&self.stacks.directory());
        let stacks = stacks.iter().map(|stack| Candidate::new(stack.name(), stack.version()));
        kernels.chain(stacks).collect()
    }
}

fn candidates(named: Vec<(String, String)>) -> Vec<Candidate> {
    named.into_iter().map(|(name, meaning)| Candidate::new(name, meaning)).collect()
}

/// Returns all metrics, each after the earlier metrics of the list `word`.
fn metrics(word: &str) -> Vec<Candidate> {
    let before = word.rfind(',').map_or("", |at| &word[..=at]);
    Metric::known().map(|metric| Candidate::new(format!("{before}{metric}"), metric.meaning())).collect()
}

/// Returns a candidate for each axis, or each value of an axis, of the sweep that the line names.
fn axes(line: &[String], candidate: fn(&str, &str) -> String) -> Vec<Candidate> {
    let mut found: Vec<String> = Vec::new();
    for point in sweep::points_in(line) {
        for (axis, value) in &point.0 {
            let candidate = candidate(axis, value);
            if !found.contains(&candidate) {
                found.push(candidate);
            }
        }
    }
    found.into_iter().map(|value| Candidate::new(value, "")).collect()
}

/// Returns the kernel senders.
fn senders() -> Vec<Candidate> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let names = available.unwrap_or_default();
    let control = |name| Candidate::new(format!("linux:{name}"), "the TCP of this kernel");
    names.split_whitespace().map(control).collect()
}

/// Returns the papers, and their figures.
fn figure_names() -> Vec<Candidate> {
    let known = figures();
    let mut papers: Vec<&str> =
        known.iter().filter_map(|figure| Some(figure.id.split_once('-')?.0)).collect();
    papers.dedup();
    let papers = papers.into_iter().map(|paper| Candidate::new(paper, "all figures of this paper"));
    papers.chain(known.iter().map(|figure| Candidate::new(figure.id, figure.title))).collect()
}
