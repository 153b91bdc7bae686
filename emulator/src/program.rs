//! The program behind a link. It runs in its own namespaces. When the program ends, all its processes end.
//!
//! The first process of a PID namespace is its init. When the init ends, the kernel kills all other
//! processes. Here the init is `airlink inside` ([`Init`]). It starts the programs, and ends when the emulator
//! closes a pipe. So no process outlives the emulator, even if the emulator is killed.

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

/// The signals that are forwarded to the program behind the link.
pub const FORWARDED_SIGNALS: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Reason why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// A namespace could not be created or entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The init could not be started.
    #[error("cannot start the program's first process: {0}")]
    Start(io::Error),
}

/// The programs to run, and their namespaces.
pub struct Launch<'a> {
    /// The namespace for `command`.
    pub mobile: &'a Anonymous,
    /// The namespace for `server`.
    pub fixed: &'a Anonymous,
    /// A command line for `sh -c`, which runs until `command` ends. `None`: no server.
    pub server: Option<OsString>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Environment variables for both, in addition to the emulator's environment.
    pub environment: Vec<(&'static str, String)>,
}

/// Path of this executable: `/proc/self/exe` only if the file has been replaced, because in another mount
/// namespace the kernel ignores the file capabilities (`setcap`) of that path.
fn executable_path() -> PathBuf {
    std::env::current_exe()
        .ok()
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// A running program.
pub struct Program {
    init: Child,
    /// Becomes readable when the init has ended.
    ended: Arc<EventFd>,
    watcher: JoinHandle<()>,
    /// The init has the other end, and ends when this one is closed.
    _alive: PipeWriter,
}

impl Program {
    /// Starts the init, which starts the programs. The calling thread must have blocked [`FORWARDED_SIGNALS`], which
    /// the init inherits.
    ///
    /// When this returns, the command has been started or has failed to start. Signals that arrived before
    /// have not reached it.
    pub fn start(launch: Launch<'_>) -> Result<Self, ProgramError> {
        let (alive, alive_writer) = io::pipe().map_err(ProgramError::Start)?;
        let (mut started, started_writer) = io::pipe().map_err(ProgramError::Start)?;
        let mut inside = Command::new(executable_path());
        inside.arg0("airlink").arg("inside").arg("--alive").arg(alive.as_raw_fd().to_string());
        inside.arg("--started").arg(started_writer.as_raw_fd().to_string());
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
        inherit(started_writer.as_fd(), true)?;
        inherit(launch.fixed.as_fd(), launch.server.is_some())?;
        let child = launch.mobile.enter(spawn)?;
        inherit(launch.fixed.as_fd(), false)?;
        drop((alive, started_writer));

        let init = child?;
        // The init closes the other end when it has started the command, or when it ends.
        let _ = started.read(&mut [0]);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let ended = Arc::new(EventFd::from_flags(flags).map_err(|errno| ProgramError::Start(errno.into()))?);
        let watcher = thread::Builder::new()
            .name("program".to_owned())
            .spawn({
                let (ended, init) = (Arc::clone(&ended), pid(&init));
                move || {
                    // WNOWAIT: the pid of the init is not reused until `wait` reaps it.
                    let end = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
                    while waitid(Id::Pid(init), end) == Err(Errno::EINTR) {}
                    // The only possible failure is a full counter, which is also readable.
                    let _ = ended.write(1);
                }
            })
            .map_err(ProgramError::Start)?;
        Ok(Self { init, ended, watcher, _alive: alive_writer })
    }

    /// A descriptor that is readable when the program has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Makes `ended` unreadable again.
    pub fn acknowledge_end(&self) {
        // Does nothing if `ended` was not readable.
        let _ = self.ended.read();
    }

    /// Whether the program has ended. `ended` may become readable later.
    pub fn has_ended(&self) -> bool {
        let end = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        !matches!(waitid(Id::Pid(pid(&self.init)), end), Ok(WaitStatus::StillAlive))
    }

    /// Sends a signal to the init, which forwards it. SIGKILL ends all processes.
    pub fn signal(&self, signal: Signal) {
        // If the init has ended, the signal is too late.
        let _ = kill(pid(&self.init), signal);
    }

    /// Ends the remaining processes and waits until all have ended. Returns the command's exit code, or 128
    /// plus the number of the signal that killed it.
    pub fn wait(self) -> u8 {
        let Self { mut init, watcher, _alive: alive, .. } = self;
        drop(alive);
        // The thread cannot panic.
        let _ = watcher.join();
        // If the wait fails, the exit code is unknown.
        init.wait().map_or(1, exit_code)
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// Sets whether child processes inherit this descriptor. No other process is started meanwhile.
fn inherit(fd: BorrowedFd<'_>, inherit: bool) -> Result<(), ProgramError> {
    let flags = if inherit { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
    fcntl(fd, FcntlArg::F_SETFD(flags)).map_err(|errno| ProgramError::Start(errno.into()))?;
    Ok(())
}

/// The exit code as in a shell: the process's own code, or 128 plus the number of the signal that killed it.
fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128_u8.saturating_add(signal as u8),
        (None, None) => 1,
    }
}

/// Whether a process sent the signal. A signal from the terminal has already reached all foreground
/// processes, so it is not forwarded.
pub fn is_from_process(info: &siginfo) -> bool {
    const SI_KERNEL: i32 = 0x80;
    info.ssi_code != SI_KERNEL
}

/// The init of the programs' PID namespace, which [`Program::start`] starts as `airlink inside`.
#[derive(Debug)]
pub struct Init {
    /// Number of the descriptor that reports the emulator's end.
    pub alive: i32,
    /// Number of the descriptor to close when the command has been started.
    pub started: i32,
    /// Number of the descriptor of the fixed side's namespace. `None`: no server.
    pub fixed: Option<i32>,
    /// See [`Launch`].
    pub server: Option<OsString>,
    /// See [`Launch`].
    pub command: Vec<OsString>,
}

const SIGNALS: Token = Token(0);
const ALIVE: Token = Token(1);

/// Time after SIGTERM at which the processes that a command left behind are killed.
const GRACE: Duration = Duration::from_millis(500);

/// Exit codes of a command that could not be started, as in a shell.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

impl Init {
    /// Starts the programs, forwards signals and reaps processes until the command or the emulator ends.
    /// Returns the exit code for this process.
    pub fn run(self) -> Result<u8, ProgramError> {
        let failed = |errno: Errno| ProgramError::Start(errno.into());
        let alive = reopen(self.alive, File::options().read(true))?;
        let started = reopen(self.started, File::options().write(true))?;
        let fixed = self.fixed.map(|fixed| reopen(fixed, File::options().read(true))).transpose()?;
        mount_proc();

        let mut mask = SigSet::from_iter(FORWARDED_SIGNALS);
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
                return Ok(report_start_error("sh", &error));
            }
        }
        let (program, arguments) = self.command.split_first().expect("clap asks for a command");
        let mut command = Command::new(program);
        command.args(arguments).env("AIRLINK_SIDE", "mobile");
        // `start` unblocks the signals of its thread, so it runs in a separate one.
        let child = thread::scope(|scope| scope.spawn(|| start(&mut command)).join());
        let child = match child.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(child) => pid(&child),
            Err(error) => return Ok(report_start_error(&program.to_string_lossy(), &error)),
        };

        // The thread above received signals without forwarding them. It has ended, so later signals are forwarded.
        drop(started);
        let mut result = None;
        loop {
            // Also reap before the first wait, since that thread may have received the SIGCHLD.
            let (children, ended) = reap(child);
            if let Some(code) = ended {
                // Give the server, and the processes that the command left behind, time to finish.
                let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
                result = Some((code, reactor.clock().now() + GRACE));
            }
            if let (Some((code, _)), Children::None) = (result, children) {
                return Ok(code);
            }
            let until = result.map(|(_, until)| until);
            let events = reactor.wait(until).map_err(ProgramError::Start)?;
            // The emulator is gone, or GRACE is over. When this process ends, the kernel kills the other processes.
            if events.contains(&Wakeup::Readable(ALIVE)) || events.contains(&Wakeup::Deadline) {
                return Ok(result.map_or(1, |(code, _)| code));
            }
            while let Ok(Some(info)) = signals.read_signal() {
                match Signal::try_from(info.ssi_signo as i32) {
                    Ok(signal) if FORWARDED_SIGNALS.contains(&signal) && is_from_process(&info) => {
                        // If the command has ended, the signal is too late.
                        let _ = kill(child, signal);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Whether this process has children.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    Running,
    None,
}

/// Reaps all ended processes: our children, and orphans, which an init inherits. Returns the exit code of
/// `command` if it is among them.
fn reap(command: Pid) -> (Children, Option<u8>) {
    let mut ended = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => ended = Some(code as u8),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => ended = Some(128 + signal as u8),
            Ok(WaitStatus::StillAlive) => return (Children::Running, ended),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return (Children::None, ended),
        }
    }
}

/// Starts a process that does not block signals.
fn start(command: &mut Command) -> io::Result<Child> {
    // A child inherits the blocked signals of the thread that starts it.
    SigSet::all().thread_unblock()?;
    command.spawn()
}

/// Reports on stderr why a program could not be started, and returns the matching exit code.
fn report_start_error(program: &str, error: &io::Error) -> u8 {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "; check its name, or give its path",
        io::ErrorKind::PermissionDenied => "; check that the file is executable",
        _ => "",
    };
    // `eprintln!` would panic if stderr is closed.
    let _ = writeln!(io::stderr(), "airlink: cannot start {}: {error}{advice}", airfiles::Escaped(&program));
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED }
}

/// Reopens an inherited descriptor with close-on-exec, and closes the inherited one.
fn reopen(number: i32, how: &OpenOptions) -> Result<File, ProgramError> {
    let file = how.open(format!("/proc/self/fd/{number}")).map_err(ProgramError::Start)?;
    nix::unistd::close(number).map_err(|errno| ProgramError::Start(errno.into()))?;
    Ok(file)
}

/// Mounts a /proc that shows the processes of this namespace. Some containers do not allow that. Then only
/// the pids in tools such as `ps` are wrong.
fn mount_proc() {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let result = mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .and_then(|()| mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>));
    if let Err(errno) = result {
        tracing::debug!("cannot mount a new /proc, the outer one remains: {errno}");
    }
}
