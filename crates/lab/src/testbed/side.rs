//! A side of the path: a namespace and its agent.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use airlink::packet::Direction;
use airtcp_sim::sweep::setup::quoted;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::{Airlink, NETWORK_TIMEOUT, POLL, Tools, last_line};
use crate::LabError;
use crate::agent::{Notice, Order, Output, Program, Received};
use crate::counters::Counters;

/// Time limit for an order.
const ORDER_TIMEOUT: Duration = Duration::from_secs(20);

/// The two sides of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathSide {
    Fixed,
    Mobile,
}

impl PathSide {
    /// The side on which data in this direction is sent.
    pub(crate) const fn sending(direction: Direction) -> Self {
        match direction {
            Direction::Down => Self::Fixed,
            Direction::Up => Self::Mobile,
        }
    }

    /// The side on which data in this direction is received.
    pub(crate) const fn receiving(direction: Direction) -> Self {
        Self::sending(direction.reversed())
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Mobile => "mobile",
        }
    }

    /// The capture of the path's device on this side.
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
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) received: Option<Received>,
}

/// The connection to the agent in a namespace.
#[derive(Debug)]
pub(crate) struct AgentHandle {
    side: PathSide,
    /// The address of the path's device on this side.
    pub(crate) addr: String,
    pub(super) orders: Option<PipeWriter>,
    notices: Receiver<Notice>,
    /// The agent has ended: it accepts no orders, or its notices have ended.
    gone: bool,
    /// The number of the program that was started last.
    last_id: u32,
    pub(super) ended: BTreeMap<u32, Exit>,
}

/// An order to start a program.
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
        self.last_id += 1;
        let id = self.last_id;
        self.order(&Order::Start(Program { id, argv, environment, stdout, stderr }))?;
        match self.answer()? {
            Notice::Started { .. } => Ok(Running { side: self.side, id }),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Runs a program to its end. It must exit with code 0.
    pub(crate) fn run(&mut self, argv: &[&str], log: &Path) -> Result<(), LabError> {
        let program = self.start(Start {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            environment: Vec::new(),
            stdout: Output::File(log.with_extension("out")),
            stderr: log.to_path_buf(),
        })?;
        let until = Instant::now() + ORDER_TIMEOUT;
        while !self.ended.contains_key(&program.id) {
            self.handle_notice(POLL)?;
            if Instant::now() > until {
                return Err(LabError::Transfer(format!("`{}` took too long", argv.join(" "))));
            }
        }
        if self.take_exit(program).is_some_and(|exit| exit.code == 0) {
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

    /// The kernel's counters since the namespace was created.
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

    /// Returns the program's exit once, if it has ended.
    pub(crate) fn take_exit(&mut self, program: Running) -> Option<Exit> {
        self.ended.remove(&program.id)
    }

    fn order(&mut self, order: &Order) -> Result<(), LabError> {
        let mut line = serde_json::to_string(order).map_err(|error| LabError::Transfer(error.to_string()))?;
        line.push('\n');
        let orders = self.orders.as_mut();
        let written = orders.and_then(|orders| orders.write_all(line.as_bytes()).ok());
        written.ok_or_else(|| self.mark_gone())
    }

    /// Waits for the next answer. Exits of programs may arrive before the answer.
    fn answer(&mut self) -> Result<Notice, LabError> {
        let until = Instant::now() + ORDER_TIMEOUT;
        loop {
            match self.notices.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Notice::Ended { id, code, received }) => {
                    self.ended.insert(id, Exit { code, received });
                }
                Ok(notice) => return Ok(notice),
                Err(RecvTimeoutError::Timeout) => {
                    let side = self.side.name();
                    return Err(LabError::Transfer(format!("the {side} side does not answer")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.mark_gone()),
            }
        }
    }

    fn mark_gone(&mut self) -> LabError {
        self.gone = true;
        LabError::Transfer(format!("the {} side of the path ended", self.side.name()))
    }

    /// Returns true if the agent has ended. Discards all pending notices.
    pub(super) fn is_gone(&mut self) -> bool {
        while self.notices.try_recv().is_ok() {}
        self.gone || self.notices.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Handles the next notice, which may report the exit of a program. Returns after `timeout` if there is
    /// none.
    pub(super) fn handle_notice(&mut self, timeout: Duration) -> Result<(), LabError> {
        match self.notices.recv_timeout(timeout) {
            Ok(Notice::Ended { id, code, received }) => {
                self.ended.insert(id, Exit { code, received });
                Ok(())
            }
            Ok(other) => Err(self.unexpected(&other)),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(self.mark_gone()),
        }
    }

    pub(super) fn wait_until_ready(&mut self, airlink: &mut Airlink) -> Result<(), LabError> {
        let until = Instant::now() + NETWORK_TIMEOUT;
        loop {
            match self.notices.recv_timeout(POLL) {
                Ok(Notice::Ready { fixed, mobile, .. }) => {
                    let missing = || LabError::Environment("the scenario has no IPv4 addresses".to_owned());
                    let (fixed, mobile) = (fixed.ok_or_else(missing)?, mobile.ok_or_else(missing)?);
                    self.addr = if self.side == PathSide::Fixed { fixed } else { mobile };
                    return Ok(());
                }
                Ok(other) => return Err(self.unexpected(&other)),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => airlink.check()?,
                Err(_) => {
                    let silent = LabError::Transfer(format!("the {} side did not start", self.side.name()));
                    return Err(airlink.exit_reason_or(silent, NETWORK_TIMEOUT));
                }
            }
        }
    }

    fn unexpected(&self, notice: &Notice) -> LabError {
        let side = self.side.name();
        LabError::Transfer(match notice {
            Notice::Failed(why) => format!("on the {side} side: {why}"),
            other => format!("on the {side} side: unexpected notice {other:?}"),
        })
    }
}

/// The pipes between the lab and an agent that is not yet running.
pub(super) struct Pipes {
    orders: (PipeReader, PipeWriter),
    notices: (PipeReader, PipeWriter),
}

impl Pipes {
    pub(super) fn new() -> Result<Self, LabError> {
        let pipe =
            || io::pipe().map_err(|error| LabError::Environment(format!("cannot make a pipe: {error}")));
        Ok(Self { orders: pipe()?, notices: pipe()? })
    }

    /// The ends that the agent inherits.
    fn inherited(&self) -> [BorrowedFd<'_>; 2] {
        [self.orders.0.as_fd(), self.notices.1.as_fd()]
    }

    /// A shell command that connects the pipes to the agent's stdin and stdout. It does not use `<&10`,
    /// because a shell need not support descriptors with two digits.
    pub(super) fn agent(&self, tools: &Tools) -> String {
        let [orders, notices] = self.inherited().map(|fd| fd.as_raw_fd());
        let airtcp = quoted(&tools.airtcp.to_string_lossy());
        format!("exec {airtcp} lab agent </proc/self/fd/{orders} >/proc/self/fd/{notices}")
    }

    pub(super) fn connect(self, side: PathSide) -> Result<AgentHandle, LabError> {
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
            .name(side.name().to_owned())
            .spawn(read)
            .map_err(|error| LabError::Environment(format!("cannot start a thread: {error}")))?;
        Ok(AgentHandle {
            side,
            addr: String::new(),
            orders: Some(orders),
            notices: receiver,
            gone: false,
            last_id: 0,
            ended: BTreeMap::new(),
        })
    }
}

/// Starts a program that inherits these pipes. The lock prevents programs that start at the same time from
/// inheriting them.
pub(super) fn spawn_with(command: &mut Command, pipes: &[&Pipes]) -> io::Result<Child> {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
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
