//! `airtcp values`: a hidden command that completion scripts call.

use std::fs;

use airhelp::completion::{self, Candidate, Kinds, value_of};
use airlink::scenario::presets;
use airtcp_lab::receiver::{self, KERNEL_PROFILES};
use airtcp_reproduce::figures;
use clap::{Args, ValueEnum};

use crate::lab::Stacks;
use crate::shared::say;
use crate::shared::senders::recipes_like;

/// Print the completions of a word, for completion scripts
#[derive(Debug, Args)]
pub(crate) struct Values {
    kind: Kind,
    /// The word typed until now
    #[arg(default_value = "", allow_hyphen_values = true)]
    word: String,
    #[command(flatten)]
    stacks: Stacks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Recipe,
    Sender,
    AnySender,
    Scenario,
    Receiver,
    Figure,
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
];

impl Values {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let word = value_of(&self.word);
        let all = match self.kind {
            Kind::Recipe => recipes_like(word),
            Kind::Sender => senders(),
            Kind::AnySender => recipes_like(word).into_iter().chain(senders()).collect(),
            Kind::Scenario => {
                let named = presets::named_like(word).into_iter();
                named.map(|(name, meaning)| Candidate::new(name, meaning)).collect()
            }
            Kind::Receiver => self.receivers(),
            Kind::Figure => figure_names(),
        };
        let meant: Vec<_> = all.into_iter().filter(|candidate| candidate.value.starts_with(word)).collect();
        Ok(completion::print(&meant, &mut say::out())?)
    }

    fn receivers(&self) -> Vec<Candidate> {
        let kernels = KERNEL_PROFILES.iter().map(|profile| Candidate::new(profile.name, profile.summary));
        let stacks = receiver::built(&self.stacks.directory());
        let stacks = stacks.iter().map(|stack| Candidate::new(stack.name(), stack.version()));
        kernels.chain(stacks).collect()
    }
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
