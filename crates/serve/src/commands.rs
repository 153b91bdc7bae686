//! Manual pages and shell completion.

use std::io::Write;
use std::path::PathBuf;

use airhelp::completion::{self, Kinds, ShellName, value_of};
use airhelp::man::CommonSections;
use airtcp_command::{console, senders};
use anyhow::Context;
use clap::{Args, ValueEnum};

use crate::PROGRAM;

/// Write the manual pages into a directory
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airtcp-serve man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Directory, created if it does not exist
    #[arg(required_unless_present = "markdown")]
    dir: Option<PathBuf>,
    /// Print one Markdown page instead
    #[arg(long, conflicts_with = "dir")]
    markdown: bool,
}

const COMMON: CommonSections<'_> = CommonSections {
    environment: &[
        (
            "RUST_LOG",
            "Log levels of the targets that it names, such as airtcp::recovery=debug. -v and -q set the rest.",
        ),
        ("NO_COLOR", "If set, help and error messages have no colour."),
    ],
    files: &[
        ("/dev/net/tun", "The TUN device is created here."),
        ("/run/netns", "Network namespaces that --netns names."),
    ],
    see_also: &["airtcp(1)", "airlink(1)", "tcpdump(8)", "ip-netns(8)"],
};

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Some(dir) = self.dir else {
            write!(console::stdout(), "{}", airhelp::markdown::page(crate::command()))?;
            return Ok(());
        };
        let failed = || format!("cannot write manual pages into {}", dir.display());
        airhelp::man::write(crate::command(), COMMON, &dir).with_context(failed)
    }
}

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airtcp-serve completions bash > /etc/bash_completion.d/airtcp-serve")]
pub(crate) struct Completions {
    /// Shell that the script is for
    shell: ShellName,
}

/// The kinds of values, by the value names in the help texts.
const KINDS: &Kinds = &[("RECIPE[@PROFILE]", "recipe")];

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let script = completion::script(crate::command(), PROGRAM, self.shell, KINDS);
        console::stdout().write_all(script.as_bytes())?;
        Ok(())
    }
}

/// Print the completions of a word, for completion scripts
#[derive(Debug, Args)]
pub(crate) struct Values {
    kind: Kind,
    /// The word typed until now
    #[arg(default_value = "", allow_hyphen_values = true)]
    word: String,
    /// All words before the cursor
    #[arg(last = true)]
    line: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Recipe,
}

impl Values {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let word = value_of(&self.word);
        let mut candidates = match self.kind {
            Kind::Recipe => senders::recipes_like(word),
        };
        candidates.retain(|candidate| candidate.value.starts_with(word));
        Ok(completion::print(&candidates, &mut console::stdout())?)
    }
}
