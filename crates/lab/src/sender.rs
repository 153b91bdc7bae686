//! Who sends: a recipe of ours over a TUN device, or this kernel's own TCP.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use airtcp::recovery::Recipe;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LabError;
use super::agent::Output;
use super::testbed::{AgentHandle, Running, Start, Tools};

/// Who sends. It is typed as a recipe, or as `linux:` and a congestion control.
#[derive(Clone, Debug, PartialEq)]
pub enum Sender {
    /// `airtcp send` with this recipe.
    Recipe(Recipe),
    /// `airtcp source`: this kernel with one of the congestion controls that
    /// `sysctl net.ipv4.tcp_available_congestion_control` lists.
    Kernel(String),
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipe(recipe) => recipe.fmt(f),
            Self::Kernel(control) => write!(f, "linux:{control}"),
        }
    }
}

impl FromStr for Sender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("linux", control)) if is_word(control) => Ok(Self::Kernel(control.to_owned())),
            Some(_) => Err(format!(
                "`{text}` is no kernel sender: write for example linux:cubic, linux:reno or linux:bbr"
            )),
            None => text.parse().map(Self::Recipe).map_err(|error| format!("{error}")),
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The sender's own network behind its TUN device: nothing else is there.
const OWN_ADDR: &str = "10.83.0.2";
const KERNEL_ADDR: &str = "10.83.0.1/24";

/// What a sender says about its retransmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// Segments sent again after duplicate ACKs or SACK.
    pub fast: u64,
    /// Segments sent again after a timeout.
    pub timeout: u64,
    /// Segments sent again to provoke an ACK.
    pub probe: u64,
    /// Of the retransmission timer.
    pub timeouts: u64,
    /// Timeouts that were a mistake, as far as the sender has noticed.
    pub spurious: u64,
}

impl Sender {
    pub(crate) fn prepare(&self, side: &mut AgentHandle) -> Result<(), LabError> {
        match self {
            Self::Recipe(_) => side.sysctl("net.ipv4.ip_forward", "1"),
            Self::Kernel(_) => {
                // A new namespace inherits some settings of the machine's; an experiment shall not.
                side.sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304")?;
                side.sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456")?;
                side.sysctl("net.ipv4.tcp_no_metrics_save", "1")
            }
        }
    }

    pub(crate) fn start(
        &self,
        tools: &Tools,
        side: &mut AgentHandle,
        to: SocketAddr,
        bytes: u64,
        directory: &Path,
    ) -> Result<Running, LabError> {
        let mut argv = vec![tools.airtcp.to_string_lossy().into_owned()];
        let mut say = |words: &[&str]| argv.extend(words.iter().map(|&word| word.to_owned()));
        match self {
            Self::Recipe(recipe) => {
                say(&[
                    "send",
                    "--recipe",
                    &recipe.to_string(),
                    "--addr",
                    OWN_ADDR,
                    "--kernel-addr",
                    KERNEL_ADDR,
                ]);
                say(&[
                    "--decisions",
                    &directory.join("decisions.jsonl").to_string_lossy(),
                    "--interval",
                    "1h",
                ]);
            }
            Self::Kernel(control) => say(&["source", "--congestion-control", control]),
        }
        say(&["--bytes", &bytes.to_string(), "--json", &to.to_string()]);
        side.start(Start {
            argv,
            environment: Vec::new(),
            stdout: Output::File(directory.join("sender.jsonl")),
            stderr: directory.join("sender.log"),
        })
    }

    /// What the sender says of its own retransmissions.
    pub(crate) fn repair(&self, end: &Value) -> Repair {
        let number = |path: &str| end.pointer(path).and_then(Value::as_u64).unwrap_or_default();
        match self {
            Self::Recipe(_) => Repair {
                fast: number("/retransmissions/fast") + number("/retransmissions/recovery"),
                timeout: number("/retransmissions/timeout"),
                probe: number("/retransmissions/probe"),
                timeouts: number("/timeouts/timeouts"),
                spurious: number("/timeouts/spurious_timeouts"),
            },
            Self::Kernel(_) => {
                let [resent, fast, probe] = ["RetransSegs", "TCPFastRetrans", "TCPLossProbes"]
                    .map(|name| number(&format!("/kernel/{name}")));
                Repair {
                    fast,
                    // The kernel has no counter of all copies that a timeout causes: they are what is left.
                    timeout: resent.saturating_sub(fast + probe),
                    probe,
                    timeouts: number("/kernel/TCPTimeouts"),
                    spurious: number("/kernel/TCPSpuriousRTOs"),
                }
            }
        }
    }
}
