//! `airtcp lab shell`: opens a shell on either side of a path.

#![expect(clippy::disallowed_methods, reason = "the other side of a path is waited for")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use airtcp_lab::testbed::Tools;
use airtcp_sim::sweep::setup::quoted;
use clap::{Args, ValueEnum};

use super::failed;
use crate::shared::failure::{self, Failure};

/// Open a shell on one side of a path, to run tcpdump, ss or ip there
///
/// Enters the path of a running lab (the latest one, or --lab), or creates a new path with --scenario. `airtcp lab shell` in a
/// second terminal enters the other side of a new path.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Shell {
    /// Side of the path
    #[arg(value_enum)]
    side: PathSide,
    /// A preset's name, or a scenario file, to create a new path
    #[arg(long, short, value_name = "SCENARIO")]
    scenario: Option<String>,
    /// Process ID of the lab, or of the `airtcp lab shell --scenario`, whose path to enter [default: the latest]
    #[arg(long, value_name = "PID", conflicts_with = "scenario")]
    lab: Option<i32>,
    /// Command to run instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PathSide {
    Fixed,
    Mobile,
}

const EXAMPLES: &str = "\
Examples:
  Watch the packets towards the radio link during a lab:
    airtcp lab shell fixed -- tcpdump -ni any 'tcp port 9000'
  Show the sockets of the receiving kernel:
    airtcp lab shell mobile -- ss -tin
  Try out a path, in two terminals:
    airtcp lab shell mobile --scenario wcdma-384
    airtcp lab shell fixed";

impl PathSide {
    fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Mobile => "mobile",
        }
    }
}

impl Shell {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let command = if self.command.is_empty() {
            vec![std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())]
        } else {
            self.command
        };
        match &self.scenario {
            Some(scenario) => make(scenario, self.side, &command),
            None => enter(self.side, self.lab, &command),
        }
    }
}

/// Replaces this process by `airlink run` with the command on the mobile side, which owns the terminal. For
/// the fixed side, that command runs `airtcp lab shell fixed`, which enters the fixed side.
fn make(scenario: &str, side: PathSide, command: &[OsString]) -> anyhow::Result<()> {
    let tools = Tools::find().map_err(failed)?;
    let airtcp = quoted(&tools.airtcp.to_string_lossy());
    let mut airlink = Command::new(&tools.airlink);
    // Commands find the namespace of a side by its agent (see `agents`). These agents never get an order.
    let agent = format!("sleep infinity | {airtcp} lab agent <&0 >/dev/null");
    airlink.args(["run", "--scenario", scenario, "--server", &agent, "--"]);
    let program = match side {
        PathSide::Mobile => String::new(),
        PathSide::Fixed => format!("{airtcp} lab shell fixed -- "),
    };
    airlink.args(["sh", "-c", &format!("{agent} & exec {program}\"$@\""), "sh"]).args(command);
    Err(failure::run(format!("cannot start {}: {}", tools.airlink.display(), airlink.exec())))
}

/// Replaces this process by the command, in the network namespace of an agent.
fn enter(side: PathSide, lab: Option<i32>, command: &[OsString]) -> anyhow::Result<()> {
    let agents = wait_for_agents(side);
    let inside = |agent: &&i32| lab.is_none_or(|lab| **agent == lab || ancestors(**agent).contains(&lab));
    let Some(agent) = agents.iter().filter(inside).max() else {
        return Err(failure::run(match lab {
            Some(lab) => format!("process {lab} has no {} side: is it a running lab?", side.name()),
            None => "no lab is running: start one, or create a path with --scenario (see `airlink show`)"
                .to_owned(),
        }));
    };
    let mut nsenter = Command::new("nsenter");
    nsenter.args(["--target", &agent.to_string(), "--net"]);
    // A lab without privileges has capabilities only inside its own user namespace.
    let user = |process: &str| fs::read_link(Path::new("/proc").join(process).join("ns/user")).ok();
    if user("self") != user(&agent.to_string()) {
        nsenter.args(["--user", "--preserve-credentials"]);
    }
    let error = nsenter.arg("--").args(command).exec();
    Err(Failure::Environment(format!("cannot start nsenter: {error}: install util-linux")).into())
}

/// Returns the agents of one side. Inside a new path, waits up to two seconds for the agent of the other side
/// to start.
fn wait_for_agents(side: PathSide) -> Vec<i32> {
    let is_in_path = std::env::var_os("AIRLINK_CONTROL").is_some();
    for _ in 0..if is_in_path { 200 } else { 0 } {
        let agents = agents(side);
        if !agents.is_empty() {
            return agents;
        }
        thread::sleep(Duration::from_millis(10));
    }
    agents(side)
}

/// Returns the PIDs of a lab's agents on this side, which `airlink run` marks with `AIRLINK_SIDE`.
fn agents(side: PathSide) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_agent = |pid: &i32| {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let arguments = read("cmdline");
        let words: Vec<_> = arguments.split(|byte| *byte == 0).collect();
        let named = words.windows(2).any(|pair| pair == [b"lab", b"agent".as_slice()]);
        let variable = format!("AIRLINK_SIDE={}", side.name());
        named && read("environ").split(|byte| *byte == 0).any(|word| word == variable.as_bytes())
    };
    pids.filter(is_agent).collect()
}

fn ancestors(pid: i32) -> Vec<i32> {
    let parent = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The process name in parentheses may contain any character, including `)`.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok()
    };
    std::iter::successors(parent(pid), |pid| parent(*pid)).take_while(|pid| *pid > 0).collect()
}
