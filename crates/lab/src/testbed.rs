//! A path between two hosts: `airlink run` as a process, and an agent on each side of the path.

mod side;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use side::{AgentHandle, Pipes, spawn_with};
pub(crate) use side::{PathSide, Running, Start};

use super::LabError;

/// The programs that a lab starts.
#[derive(Clone, Debug)]
pub struct Tools {
    /// This program, which provides the sender, the receiver and the agent.
    pub airtcp: PathBuf,
    /// The emulator, which creates the path.
    pub airlink: PathBuf,
}

impl Tools {
    /// Finds this program's executable, and `airlink` in the same directory or on the PATH.
    ///
    /// # Errors
    ///
    /// Returns an error if `airlink` is missing.
    pub fn find() -> Result<Self, LabError> {
        let airtcp = std::env::current_exe().map_err(|error| {
            LabError::Environment(format!("cannot find the executable of this program: {error}"))
        })?;
        let airlink = airtcp.with_file_name("airlink");
        if airlink.is_file() {
            return Ok(Self { airtcp, airlink });
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let airlink = std::env::split_paths(&path).map(|dir| dir.join("airlink")).find(|file| file.is_file());
        let missing = || {
            let directory = airtcp.parent().unwrap_or_else(|| Path::new(".")).display();
            LabError::Environment(format!(
                "`airlink` found neither in {directory} nor on the PATH; build both programs with `cargo build --release \
                 --workspace`"
            ))
        };
        Ok(Self { airlink: airlink.ok_or_else(missing)?, airtcp })
    }
}

/// Options for `airlink run`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathOptions<'a> {
    /// The name of a preset, or a file.
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    /// The directory for captures, summaries and logs.
    pub(crate) directory: &'a Path,
    pub(crate) keep: ExtraFiles,
}

/// The files to keep in addition to the captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraFiles {
    /// `events.jsonl`: a line for every event of a packet.
    pub events: bool,
    /// `radio.pcap`: every radio PDU, for Wireshark.
    pub radio: bool,
}

/// Time that `airlink` may take to start or exit, and a sender or receiver to exit. The kernel sets up and removes
/// networks and devices one at a time for all programs, which takes many seconds on a busy machine.
pub(crate) const NETWORK_TIMEOUT: Duration = Duration::from_secs(60);
/// Time in which an exit of `airlink` may explain another error.
const EXPLANATION_TIMEOUT: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(10);

/// A running path. Dropping it ends the path and all programs on it.
#[derive(Debug)]
pub(crate) struct Testbed {
    pub(crate) fixed: AgentHandle,
    pub(crate) mobile: AgentHandle,
    /// The start of the path. `airlink` starts its clock first.
    pub(crate) started: Instant,
    airlink: Airlink,
}

#[derive(Debug)]
struct Airlink {
    process: Child,
    log: PathBuf,
}

impl Testbed {
    pub(crate) fn start(tools: &Tools, options: &PathOptions<'_>) -> Result<Self, LabError> {
        let file = |name: &str| options.directory.join(name);
        let log = file("airlink.log");
        let mut command = Command::new(&tools.airlink);
        command.args(["run", "--scenario", options.scenario, "--seed", &options.seed.to_string()]);
        command.args(["--linger", "20ms", "--control", &control_name()]);
        for (option, name) in
            [("--pcap-fixed", "fixed.pcap"), ("--pcap-mobile", "mobile.pcap"), ("--summary", "airlink.json")]
        {
            command.arg(option).arg(file(name));
        }
        if options.keep.events {
            command.arg("--events").arg(file("events.jsonl"));
        }
        if options.keep.radio {
            command.arg("--radio-pcap").arg(file("radio.pcap"));
        }
        let [fixed, mobile] = [Pipes::new()?, Pipes::new()?];
        command.arg("--server").arg(fixed.agent(tools)).args(["--", "sh", "-c", &mobile.agent(tools)]);
        let stdout = airfiles::create(&log).map_err(LabError::file(&log))?;
        let stderr = stdout.try_clone().map_err(LabError::file(&log))?;
        command.env("RUST_LOG", "warn").stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        // With its own process group, `airlink` does not receive Ctrl-C. The lab does: it reports its state,
        // and the programs end when it exits.
        command.process_group(0);
        let started = Instant::now();
        let process = spawn_with(&mut command, &[&fixed, &mobile]).map_err(|error| {
            LabError::Environment(format!("cannot start {}: {error}", tools.airlink.display()))
        })?;
        let mut airlink = Airlink { process, log };
        let (mut fixed, mut mobile) = (fixed.connect(PathSide::Fixed)?, mobile.connect(PathSide::Mobile)?);
        mobile.wait_until_ready(&mut airlink)?;
        fixed.wait_until_ready(&mut airlink)?;
        Ok(Self { fixed, mobile, started, airlink })
    }

    /// Waits until one of the programs has ended or the time is over.
    pub(crate) fn wait_for_any(
        &mut self,
        programs: &[Running],
        until: Instant,
    ) -> Result<Option<Running>, LabError> {
        loop {
            // Poll each side once, for any number of programs.
            for side in [PathSide::Fixed, PathSide::Mobile] {
                if programs.iter().any(|program| program.side == side) {
                    self.side(side).handle_notice(POLL)?;
                }
            }
            for program in programs {
                if self.side(program.side).ended.contains_key(&program.id) {
                    return Ok(Some(*program));
                }
            }
            self.airlink.check()?;
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Waits until a line of the program's output file `log` starts with `start`.
    pub(crate) fn wait_for_line(
        &mut self,
        program: Running,
        log: &Path,
        start: &str,
        until: Instant,
    ) -> Result<(), LabError> {
        loop {
            let text = fs::read_to_string(log).unwrap_or_default();
            if text.lines().any(|line| line.starts_with(start)) {
                return Ok(());
            }
            let ended = self.wait_for_any(&[program], Instant::now())?.is_some();
            if ended || Instant::now() >= until {
                let what = if ended { "ended" } else { "took too long" };
                let name = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                return Err(LabError::Transfer(format!(
                    "the {name} {what} before it printed `{start}`{}",
                    last_line(&text)
                )));
            }
        }
    }

    /// The reason for a failure on this path. If `airlink` ends, both sides also end, and its message
    /// explains more.
    pub(crate) fn reason(&mut self, error: LabError) -> LabError {
        // The exit of `airlink` takes long on a busy machine, because it first removes its devices and
        // namespaces.
        let gone = self.mobile.is_gone() || self.fixed.is_gone();
        self.airlink.exit_reason_or(error, if gone { NETWORK_TIMEOUT } else { EXPLANATION_TIMEOUT })
    }

    pub(crate) fn side(&mut self, side: PathSide) -> &mut AgentHandle {
        match side {
            PathSide::Fixed => &mut self.fixed,
            PathSide::Mobile => &mut self.mobile,
        }
    }

    /// Ends all programs, in an order that lets each one write its remaining output.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.close_pipes();
        let until = Instant::now() + NETWORK_TIMEOUT;
        loop {
            match self.airlink.process.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.airlink.exit_error(status.code())),
                _ if Instant::now() < until => thread::sleep(POLL),
                _ => break,
            }
        }
        let seconds = NETWORK_TIMEOUT.as_secs();
        Err(LabError::Transfer(format!(
            "airlink was still running {seconds} s after the end of the transfer"
        )))
    }

    /// Ends the agents. `airlink` then also exits.
    fn close_pipes(&mut self) {
        self.mobile.orders = None;
        self.fixed.orders = None;
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.close_pipes();
    }
}

impl Airlink {
    fn check(&mut self) -> Result<(), LabError> {
        match self.process.try_wait() {
            Ok(Some(status)) => Err(self.exit_error(status.code())),
            _ if is_stopped(self.process.id()) => Err(LabError::Transfer(
                "airlink was stopped by a signal (SIGSTOP, SIGTSTP), so no packet moved".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the reason for the exit of `airlink` if it exits within `timeout`, and `error` otherwise.
    fn exit_reason_or(&mut self, error: LabError, timeout: Duration) -> LabError {
        let until = Instant::now() + timeout;
        while Instant::now() < until {
            if let Err(why) = self.check() {
                return why;
            }
            thread::sleep(POLL);
        }
        error
    }

    fn exit_error(&self, code: Option<i32>) -> LabError {
        const ENVIRONMENT: i32 = 3;
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let why = text.lines().rev().find_map(|line| line.strip_prefix("airlink: "));
        match (code, why) {
            (Some(2 | ENVIRONMENT), Some(why)) => LabError::Environment(why.to_owned()),
            (Some(code), _) => {
                LabError::Transfer(format!("airlink exited with code {code}{}", last_line(&text)))
            }
            (None, _) => LabError::Transfer(format!("airlink was killed{}", last_line(&text))),
        }
    }
}

impl Drop for Airlink {
    fn drop(&mut self) {
        let until = Instant::now() + NETWORK_TIMEOUT;
        while Instant::now() < until {
            match self.process.try_wait() {
                Ok(None) if is_stopped(self.process.id()) => break,
                Ok(None) => thread::sleep(POLL),
                _ => return,
            }
        }
        // The end of `airlink` also ends its children.
        let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGKILL);
        let _ = self.process.wait();
    }
}

/// Returns true if the process is stopped: it runs again only after SIGCONT.
fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The process name may contain any characters, so search for its closing parenthesis from the end.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

pub(crate) fn last_line(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map(|line| format!(": {line}")).unwrap_or_default()
}

/// A unique name for the control socket of a path.
fn control_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("lab-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
