//! A path between two hosts: `airlink run` in a process of its own, and an agent on either side of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::LabError;
use super::agent::{Notice, Order, Output, Program, Received};
use super::counters::Counters;

/// The programs that a lab starts.
#[derive(Clone, Debug)]
pub struct Tools {
    /// This program: sender, receiver and agent.
    pub airtcp: PathBuf,
    /// The emulator, which makes the path.
    pub airlink: PathBuf,
}

impl Tools {
    /// This program's own file, and the `airlink` beside it or else on the PATH.
    pub fn find() -> Result<Self, LabError> {
        let airtcp = std::env::current_exe().map_err(|error| {
            LabError::Environment(format!("cannot find this program's own file: {error}"))
        })?;
        let airlink = airtcp.with_file_name("airlink");
        if airlink.is_file() {
            return Ok(Self { airtcp, airlink });
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let airlink = std::env::split_paths(&path).map(|dir| dir.join("airlink")).find(|file| file.is_file());
        let missing = || {
            let beside = airtcp.parent().unwrap_or_else(|| Path::new(".")).display().to_string();
            LabError::Environment(format!(
                "there is no `airlink` in {beside} or on the PATH: build both programs with `cargo build --release \
                 --workspace`"
            ))
        };
        Ok(Self { airlink: airlink.ok_or_else(missing)?, airtcp })
    }
}

/// What `airlink run` is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link<'a> {
    /// A preset's name, or a file.
    pub(crate) scenario: &'a str,
    pub(crate) seed: u64,
    /// Where captures, summaries and logs go.
    pub(crate) directory: &'a Path,
    pub(crate) keep: Keep,
}

/// What is kept beside the captures of the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// `events.jsonl`: a line for everything that happened to a packet.
    pub events: bool,
    /// `radio.pcap`: every radio PDU, for Wireshark.
    pub radio: bool,
}

/// How long an order may take to be carried out.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long everything may take to end when it was asked to.
const GRACE: Duration = Duration::from_secs(5);
const PATIENCE_WITH_AN_END: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(10);

/// A path that is up. Dropping it ends the path and everything that was started on it.
#[derive(Debug)]
pub(crate) struct Testbed {
    pub(crate) fixed: AgentHandle,
    pub(crate) mobile: AgentHandle,
    airlink: Airlink,
}

#[derive(Debug)]
struct Airlink {
    process: Child,
    log: PathBuf,
}

impl Testbed {
    pub(crate) fn start(tools: &Tools, link: &Link<'_>) -> Result<Self, LabError> {
        let file = |name: &str| link.directory.join(name);
        let log = file("airlink.log");
        let mut command = Command::new(&tools.airlink);
        command.args(["run", "--scenario", link.scenario, "--seed", &link.seed.to_string()]);
        command.args(["--linger", "20ms", "--control", &format!("lab-{}-{}", std::process::id(), number())]);
        for (option, name) in
            [("--pcap-fixed", "fixed.pcap"), ("--pcap-mobile", "mobile.pcap"), ("--summary", "airlink.json")]
        {
            command.arg(option).arg(file(name));
        }
        if link.keep.events {
            command.arg("--events").arg(file("events.jsonl"));
        }
        if link.keep.radio {
            command.arg("--radio-pcap").arg(file("radio.pcap"));
        }
        let [fixed, mobile] = [Pipes::new()?, Pipes::new()?];
        command.arg("--server").arg(fixed.agent(tools)).args(["--", "sh", "-c", &mobile.agent(tools)]);
        let out = File::create(&log).map_err(LabError::file(&log))?;
        let also = out.try_clone().map_err(LabError::file(&log))?;
        command.env("RUST_LOG", "warn").stdin(Stdio::null()).stdout(out).stderr(also);
        // Ctrl-C at a terminal is for the lab, which says then where it stands: what it started ends with it.
        command.process_group(0);
        let process = spawn_with(&mut command, &[&fixed, &mobile]).map_err(|error| {
            LabError::Environment(format!("cannot start {}: {error}", tools.airlink.display()))
        })?;
        let mut airlink = Airlink { process, log };
        let (mut fixed, mut mobile) = (fixed.connect(PathSide::Fixed)?, mobile.connect(PathSide::Mobile)?);
        for side in [&mut mobile, &mut fixed] {
            side.be_ready(&mut airlink)?;
        }
        Ok(Self { fixed, mobile, airlink })
    }

    /// Waits until one of the programs has ended, or the time is up.
    pub(crate) fn wait_for_any(
        &mut self,
        programs: &[Running],
        until: Instant,
    ) -> Result<Option<Running>, LabError> {
        loop {
            for program in programs {
                let side = self.side(program.side);
                side.look(POLL)?;
                if side.ended.contains_key(&program.id) {
                    return Ok(Some(*program));
                }
            }
            self.airlink.check()?;
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Waits for a line that begins with this on the program's stderr.
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
                    "the {name} {what} before it said `{start}`{}",
                    last_line(&text)
                )));
            }
        }
    }

    /// Why something failed on this path. Both sides end with `airlink`, whatever they are doing, and its end says more.
    pub(crate) fn reason(&mut self, error: LabError) -> LabError {
        // Its devices and namespaces go before it does, and that takes a while on a busy machine.
        let gone = self.mobile.is_gone() || self.fixed.is_gone();
        self.airlink.instead_of(error, if gone { GRACE } else { PATIENCE_WITH_AN_END })
    }

    pub(crate) fn side(&mut self, which: PathSide) -> &mut AgentHandle {
        match which {
            PathSide::Fixed => &mut self.fixed,
            PathSide::Mobile => &mut self.mobile,
        }
    }

    /// Ends everything, in the order that lets each write out what it has.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.mobile.orders = None;
        self.fixed.orders = None;
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            match self.airlink.process.try_wait() {
                Ok(None) => thread::sleep(POLL),
                Ok(Some(status)) if status.success() => return Ok(()),
                _ => break,
            }
        }
        let text = fs::read_to_string(&self.airlink.log).unwrap_or_default();
        Err(LabError::Transfer(format!("airlink did not end as it should{}", last_line(&text))))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // Both agents end when no more orders can come, and airlink with them.
        self.mobile.orders = None;
        self.fixed.orders = None;
    }
}

impl Airlink {
    fn check(&mut self) -> Result<(), LabError> {
        match self.process.try_wait() {
            Ok(Some(status)) => Err(self.ended(status.code())),
            _ => Ok(()),
        }
    }

    /// How `airlink` has ended, if it has: it may be about to.
    fn instead_of(&mut self, error: LabError, patience: Duration) -> LabError {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Err(why) = self.check() {
                return why;
            }
            thread::sleep(POLL);
        }
        error
    }

    fn ended(&self, code: Option<i32>) -> LabError {
        const ENVIRONMENT: i32 = 3;
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let why = text.lines().rev().find_map(|line| line.strip_prefix("airlink: "));
        match (code, why) {
            (Some(2 | ENVIRONMENT), Some(why)) => LabError::Environment(why.to_owned()),
            (Some(code), _) => {
                LabError::Transfer(format!("airlink ended with code {code}{}", last_line(&text)))
            }
            (None, _) => LabError::Transfer(format!("airlink was killed{}", last_line(&text))),
        }
    }
}

impl Drop for Airlink {
    fn drop(&mut self) {
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(POLL),
                _ => return,
            }
        }
        // It has ended, or is killed: what it started is killed with it.
        let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGKILL);
        let _ = self.process.wait();
    }
}

fn last_line(text: &str) -> String {
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(|line| format!(": {line}"))
        .unwrap_or_default()
}

/// So that two testbeds of one lab have different names.
fn number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

// ----- a side and its agent -----

/// The two sides of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathSide {
    Fixed,
    Mobile,
}

impl PathSide {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Mobile => "mobile",
        }
    }

    /// What crossed the link's device on this side.
    pub(crate) const fn capture(self) -> &'static str {
        match self {
            Self::Fixed => "fixed.pcap",
            Self::Mobile => "mobile.pcap",
        }
    }
}

/// A program on one of the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) side: PathSide,
    pub(crate) id: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) received: Option<Received>,
}

/// A namespace, seen through its agent.
#[derive(Debug)]
pub(crate) struct AgentHandle {
    which: PathSide,
    /// The address of the link's device, and that of its other end.
    pub(crate) own: String,
    pub(crate) other: String,
    orders: Option<PipeWriter>,
    notices: Receiver<Notice>,
    /// It has ended: it takes no orders, or has nothing more to say.
    gone: bool,
    next: u32,
    ended: BTreeMap<u32, Ended>,
}

/// What an agent is asked to start.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) argv: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) stdout: Output,
    pub(crate) stderr: PathBuf,
}

impl AgentHandle {
    pub(crate) fn start(&mut self, start: Start) -> Result<Running, LabError> {
        let Start { argv, environment, stdout, stderr } = start;
        self.next += 1;
        let id = self.next;
        self.order(&Order::Start(Program { id, argv, environment, stdout, stderr }))?;
        match self.answer()? {
            Notice::Started { .. } => Ok(Running { side: self.which, id }),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Runs it to its end, which is to be a good one.
    pub(crate) fn run(&mut self, argv: &[&str], log: &Path) -> Result<(), LabError> {
        let program = self.start(Start {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            environment: Vec::new(),
            stdout: Output::File(log.with_extension("out")),
            stderr: log.to_path_buf(),
        })?;
        let until = Instant::now() + PATIENCE;
        while !self.ended.contains_key(&program.id) {
            self.look(POLL)?;
            if Instant::now() > until {
                return Err(LabError::Transfer(format!("`{}` takes too long", argv.join(" "))));
            }
        }
        let ended = self.ended(program);
        if ended.is_some_and(|ended| ended.code == 0) {
            return Ok(());
        }
        let text = fs::read_to_string(log).unwrap_or_default();
        Err(LabError::Transfer(format!("`{}` failed{}", argv.join(" "), last_line(&text))))
    }

    pub(crate) fn write(
        &mut self,
        path: impl Into<PathBuf>,
        text: impl Into<String>,
    ) -> Result<(), LabError> {
        self.order(&Order::Write { path: path.into(), text: text.into() })?;
        match self.answer()? {
            Notice::Written => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// What its kernel has counted since the namespace was made.
    pub(crate) fn counters(&mut self) -> Result<Counters, LabError> {
        self.order(&Order::Count)?;
        match self.answer()? {
            Notice::Counted(counters) => Ok(counters),
            other => Err(self.unexpected(&other)),
        }
    }

    pub(crate) fn sysctl(&mut self, name: &str, value: &str) -> Result<(), LabError> {
        self.write(Path::new("/proc/sys").join(name.replace('.', "/")), value)
    }

    /// How the program ended, if it has; told once.
    pub(crate) fn ended(&mut self, program: Running) -> Option<Ended> {
        self.ended.remove(&program.id)
    }

    fn order(&mut self, order: &Order) -> Result<(), LabError> {
        let mut line = serde_json::to_string(order).map_err(|error| LabError::Transfer(error.to_string()))?;
        line.push('\n');
        let orders = self.orders.as_mut();
        let written = orders.and_then(|orders| orders.write_all(line.as_bytes()).ok());
        written.ok_or_else(|| self.note_gone())
    }

    /// The next notice that is an answer; ends of programs may come between.
    fn answer(&mut self) -> Result<Notice, LabError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.notices.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Notice::Ended { id, code, received }) => {
                    self.ended.insert(id, Ended { code, received });
                }
                Ok(notice) => return Ok(notice),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(LabError::Transfer(format!(
                        "the {} side does not answer",
                        self.which.name()
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.note_gone()),
            }
        }
    }

    fn note_gone(&mut self) -> LabError {
        self.gone = true;
        LabError::Transfer(format!("the {} side of the path has ended", self.which.name()))
    }

    /// It has ended. What it had said, and nobody has taken in, is lost.
    fn is_gone(&mut self) -> bool {
        let last = loop {
            match self.notices.try_recv() {
                Ok(_) => {}
                Err(last) => break last,
            }
        };
        self.gone || last == TryRecvError::Disconnected
    }

    /// Takes in a notice, if one comes in time: programs may have ended.
    fn look(&mut self, patience: Duration) -> Result<(), LabError> {
        match self.notices.recv_timeout(patience) {
            Ok(Notice::Ended { id, code, received }) => {
                self.ended.insert(id, Ended { code, received });
                Ok(())
            }
            Ok(other) => Err(self.unexpected(&other)),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(self.note_gone()),
        }
    }

    fn be_ready(&mut self, airlink: &mut Airlink) -> Result<(), LabError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.notices.recv_timeout(POLL) {
                Ok(Notice::Ready { fixed, mobile, .. }) => {
                    let missing = || LabError::Environment("the scenario has no IPv4 addresses".to_owned());
                    let (fixed, mobile) = (fixed.ok_or_else(missing)?, mobile.ok_or_else(missing)?);
                    (self.own, self.other) =
                        if self.which == PathSide::Fixed { (fixed, mobile) } else { (mobile, fixed) };
                    return Ok(());
                }
                Ok(other) => return Err(self.unexpected(&other)),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => airlink.check()?,
                Err(_) => {
                    let silent = LabError::Transfer(format!("the {} side did not start", self.which.name()));
                    return Err(airlink.instead_of(silent, GRACE));
                }
            }
        }
    }

    fn unexpected(&self, notice: &Notice) -> LabError {
        match notice {
            Notice::Failed(why) => LabError::Transfer(format!("on the {} side: {why}", self.which.name())),
            other => {
                LabError::Transfer(format!("on the {} side: {other:?} comes unasked", self.which.name()))
            }
        }
    }
}

/// Between the lab and an agent that is about to be started.
struct Pipes {
    orders: (PipeReader, PipeWriter),
    notices: (PipeReader, PipeWriter),
}

impl Pipes {
    fn new() -> Result<Self, LabError> {
        let pipe =
            || io::pipe().map_err(|error| LabError::Environment(format!("cannot make a pipe: {error}")));
        Ok(Self { orders: pipe()?, notices: pipe()? })
    }

    /// The ends that the agent gets.
    fn inherited(&self) -> [BorrowedFd<'_>; 2] {
        [self.orders.0.as_fd(), self.notices.1.as_fd()]
    }

    /// A command line for the shell that puts the pipes where the agent wants them. (Not `<&10`: a shell need not
    /// know descriptors of two digits.)
    fn agent(&self, tools: &Tools) -> String {
        let [orders, notices] = self.inherited().map(|fd| fd.as_raw_fd());
        let airtcp = quoted(&tools.airtcp.to_string_lossy());
        format!("exec {airtcp} lab agent </proc/self/fd/{orders} >/proc/self/fd/{notices}")
    }

    fn connect(self, which: PathSide) -> Result<AgentHandle, LabError> {
        let Self { orders: (_, orders), notices: (notices, _) } = self;
        let (sender, receiver) = mpsc::channel();
        let read = move || {
            for line in BufReader::new(notices).lines().map_while(Result::ok) {
                let notice = serde_json::from_str(&line).unwrap_or(Notice::Failed(line));
                if sender.send(notice).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name(which.name().to_owned())
            .spawn(read)
            .map_err(|error| LabError::Environment(format!("cannot start a thread: {error}")))?;
        let (own, other) = (String::new(), String::new());
        Ok(AgentHandle {
            which,
            own,
            other,
            orders: Some(orders),
            notices: receiver,
            gone: false,
            next: 0,
            ended: BTreeMap::new(),
        })
    }
}

/// Starts the program with these pipes; no other program that is started at the same time inherits them.
fn spawn_with(command: &mut Command, pipes: &[&Pipes]) -> io::Result<Child> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let inherit = |flags: FdFlag| -> io::Result<()> {
        for fd in pipes.iter().flat_map(|pipes| pipes.inherited()) {
            fcntl(fd, FcntlArg::F_SETFD(flags))?;
        }
        Ok(())
    };
    inherit(FdFlag::empty())?;
    let child = command.spawn();
    inherit(FdFlag::FD_CLOEXEC)?;
    child
}

/// The word, in quotes if a shell needs them.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
