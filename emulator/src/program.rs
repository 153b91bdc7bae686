//! A program behind a link: it and everything that it starts run in namespaces of their own, and end together.
//!
//! The first process in a process namespace is its init: when it ends, the kernel kills all others. Here this is
//! `airlink inside` (`Inside`), which starts the programs and watches a pipe whose other end only the emulator
//! has. So nothing outlives the emulator, even if that is killed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use airwire::time::Duration;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;

use crate::netns::{Anonymous, NamespaceError};
use crate::reactor::{Clock, Interest, Reactor, Token, Wakeup};

/// What a person or another program may send, and the program behind the link shall get.
pub const PASSED_ON: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error("cannot start the program's first process: {0}")]
    Start(io::Error),
}

/// What shall run, and where.
pub struct Launch<'a> {
    pub mobile: &'a Anonymous,
    /// For `server`.
    pub fixed: &'a Anonymous,
    /// A command line for the shell.
    pub server: Option<OsString>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    pub environment: Vec<(&'static str, String)>,
}

/// It runs.
pub struct Program {
    init: Child,
    ended: Arc<EventFd>,
    watcher: JoinHandle<()>,
    /// Its other end is the init's.
    _alive: PipeWriter,
}

impl Program {
    /// `PASSED_ON` must be blocked already in the calling thread; the init then has them blocked too.
    ///
    /// When this returns the command has been started, or could not be. Signals that came before that have not
    /// reached it.
    pub fn start(launch: Launch<'_>) -> Result<Self, ProgramError> {
        let (alive, keep) = io::pipe().map_err(ProgramError::Start)?;
        let (mut started, tell) = io::pipe().map_err(ProgramError::Start)?;
        let mut inside = Command::new("/proc/self/exe");
        inside.arg0("airlink").arg("inside").arg("--alive").arg(alive.as_raw_fd().to_string());
        inside.arg("--started").arg(tell.as_raw_fd().to_string());
        if let Some(server) = &launch.server {
            inside
                .arg("--fixed")
                .arg(launch.fixed.as_fd().as_raw_fd().to_string())
                .arg("--server")
                .arg(server);
        }
        inside.arg("--").args(&launch.command).envs(launch.environment);
        let spawn = || -> Result<Child, ProgramError> {
            unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)
                .map_err(|errno| ProgramError::Start(errno.into()))?;
            inside.spawn().map_err(ProgramError::Start)
        };
        inherit(alive.as_fd(), true)?;
        inherit(tell.as_fd(), true)?;
        inherit(launch.fixed.as_fd(), launch.server.is_some())?;
        let child = launch.mobile.enter(spawn)?;
        inherit(launch.fixed.as_fd(), false)?;
        drop((alive, tell));

        let init = child?;
        // Its end comes when the other end is closed.
        let _ = started.read(&mut [0]);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let ended = Arc::new(EventFd::from_flags(flags).map_err(|errno| ProgramError::Start(errno.into()))?);
        let watcher = thread::Builder::new()
            .name("program".to_owned())
            .spawn({
                let (ended, init) = (Arc::clone(&ended), pid(&init));
                move || {
                    // It is not reaped here: until `wait` its number belongs to nobody else.
                    let end = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
                    while waitid(Id::Pid(init), end) == Err(Errno::EINTR) {}
                    // The only failure is a full counter.
                    let _ = ended.write(1);
                }
            })
            .map_err(ProgramError::Start)?;
        Ok(Self { init, ended, watcher, _alive: keep })
    }

    /// Readable when the program has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// `ended` is not readable any more.
    pub fn acknowledge_end(&self) {
        // It was readable, or there is nothing to take back.
        let _ = self.ended.read();
    }

    /// It may have, before `ended` says so.
    pub fn has_ended(&self) -> bool {
        let end = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        !matches!(waitid(Id::Pid(pid(&self.init)), end), Ok(WaitStatus::StillAlive))
    }

    pub fn signal(&self, signal: Signal) {
        // It may have ended; then the signal is too late.
        let _ = kill(pid(&self.init), signal);
    }

    /// Waits for it and everything that it started; what does not end by itself is killed. Returns the exit code
    /// as a shell would.
    pub fn wait(self) -> u8 {
        let Self { mut init, watcher, _alive: alive, .. } = self;
        drop(alive);
        // It has nothing that it could panic of.
        let _ = watcher.join();
        // A child that cannot be waited for: nothing is known about it.
        init.wait().map_or(1, code)
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// Whether a child gets this descriptor. Nothing else is started meanwhile.
fn inherit(fd: BorrowedFd<'_>, inherit: bool) -> Result<(), ProgramError> {
    let flags = if inherit { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
    fcntl(fd, FcntlArg::F_SETFD(flags)).map_err(|errno| ProgramError::Start(errno.into()))?;
    Ok(())
}

/// The command's own, or 128 and the signal that killed it.
fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128_u8.saturating_add(signal as u8),
        (None, None) => 1,
    }
}

/// True if a process sent it. What the terminal sends, all processes in front of it have got already.
pub fn from_a_process(info: &siginfo) -> bool {
    const SI_KERNEL: i32 = 0x80;
    info.ssi_code != SI_KERNEL
}

/// The init of the programs' process namespace.
#[derive(Debug)]
pub struct Inside {
    /// Number of the descriptor that reports the emulator's end.
    pub alive: i32,
    /// Number of the descriptor that is closed when the command has been started.
    pub started: i32,
    /// Number of the descriptor of the fixed side's namespace.
    pub fixed: Option<i32>,
    pub server: Option<OsString>,
    pub command: Vec<OsString>,
}

const SIGNALS: Token = Token(0);
const ALIVE: Token = Token(1);

/// How long what a command leaves running has to end by itself.
const GRACE: Duration = Duration::from_millis(500);

/// As a shell reports them.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

impl Inside {
    /// The exit code for the whole.
    pub fn run(self) -> Result<u8, ProgramError> {
        let failed = |errno: Errno| ProgramError::Start(errno.into());
        let alive = adopt(self.alive, File::options().read(true))?;
        let started = adopt(self.started, File::options().write(true))?;
        let fixed = self.fixed.map(|fixed| adopt(fixed, File::options().read(true))).transpose()?;
        own_proc();

        let mut mask = SigSet::from_iter(PASSED_ON);
        mask.add(Signal::SIGCHLD);
        mask.thread_block().map_err(failed)?;
        let signals =
            SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(failed)?;
        let mut reactor = Reactor::new(Clock::start()).map_err(ProgramError::Start)?;
        reactor.register(&signals, SIGNALS, Interest::Read).map_err(ProgramError::Start)?;
        reactor.register(&alive, ALIVE, Interest::Read).map_err(ProgramError::Start)?;

        if let (Some(server), Some(fixed)) = (&self.server, &fixed) {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(server).env("AIRLINK_SIDE", "fixed");
            let path = PathBuf::from(format!("/proc/self/fd/{}", fixed.as_raw_fd()));
            if let Err(error) = crate::netns::enter(&path, || start(&mut shell))? {
                return Ok(explain("sh", &error));
            }
        }
        let (program, arguments) = self.command.split_first().expect("clap asks for a command");
        let mut command = Command::new(program);
        command.args(arguments).env("AIRLINK_SIDE", "mobile");
        // In a thread, as the unblocking of signals is the thread's.
        let child = thread::scope(|scope| scope.spawn(|| start(&mut command)).join());
        let child = match child.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(child) => pid(&child),
            Err(error) => return Ok(explain(&program.to_string_lossy(), &error)),
        };

        // The thread that did not block signals, and lost them, is gone: now they are passed on.
        drop(started);
        let mut result = None;
        loop {
            // Before the first wait too: while a thread started somebody, the news of an end went to that thread.
            let (left, ended) = reap(child);
            if let Some(code) = ended {
                // What it has left behind, and the server, may write out what they have.
                let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
                result = Some((code, reactor.clock().now() + GRACE));
            }
            if let (Some((code, _)), Left::Nobody) = (result, left) {
                return Ok(code);
            }
            let until = result.map(|(_, until)| until);
            let events = reactor.wait(until).map_err(ProgramError::Start)?;
            // Who started us is gone. The kernel kills whatever is still here when we go.
            if events.contains(&Wakeup::Readable(ALIVE)) || events.contains(&Wakeup::Deadline) {
                return Ok(result.map_or(1, |(code, _)| code));
            }
            while let Ok(Some(info)) = signals.read_signal() {
                match Signal::try_from(info.ssi_signo as i32) {
                    Ok(signal) if PASSED_ON.contains(&signal) && from_a_process(&info) => {
                        // It may have ended meanwhile.
                        let _ = kill(child, signal);
                    }
                    _ => {}
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Somebody,
    Nobody,
}

/// Takes note of processes that have ended: our own children, and orphans, which are an init's.
fn reap(command: Pid) -> (Left, Option<u8>) {
    let mut ended = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => ended = Some(code as u8),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => ended = Some(128 + signal as u8),
            Ok(WaitStatus::StillAlive) => return (Left::Somebody, ended),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return (Left::Nobody, ended),
        }
    }
}

fn start(command: &mut Command) -> io::Result<Child> {
    // A child inherits the blocked signals of the thread that starts it.
    SigSet::all().thread_unblock()?;
    command.spawn()
}

fn explain(program: &str, error: &io::Error) -> u8 {
    // `eprintln!` would panic where nobody listens.
    let _ = writeln!(io::stderr(), "airlink: cannot start {program}: {error}");
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED }
}

/// Our own copy, closed on exec, of a descriptor that we were started with.
fn adopt(number: i32, how: &OpenOptions) -> Result<File, ProgramError> {
    let file = how.open(format!("/proc/self/fd/{number}")).map_err(ProgramError::Start)?;
    nix::unistd::close(number).map_err(|errno| ProgramError::Start(errno.into()))?;
    Ok(file)
}

/// A /proc that shows the processes of this namespace. Without it `ps` and the like show other numbers, which is
/// no reason to give up; in some containers it is not allowed.
fn own_proc() {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let result = mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .and_then(|()| mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>));
    if let Err(errno) = result {
        tracing::debug!("/proc stays the outer one: {errno}");
    }
}
