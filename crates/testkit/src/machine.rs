//! Helpers for tests of the programs: namespaces, the kernel's TCP as a peer, and the programs themselves.

#![expect(clippy::disallowed_methods, reason = "waits for another program's socket")]

pub mod emulated;

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airlink::netns::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::programs::program;
pub use crate::temporary::{TempDir, TempFile};

/// Time that a test waits for another program or a peer. After this time, the test fails.
pub const TIMEOUT: Duration = Duration::from_secs(100);

/// Kills a program that runs for longer than [`TIMEOUT`], so that a test that reads its output does not
/// hang. The value must be dropped after the program has ended.
pub struct TimeLimit(#[expect(dead_code, reason = "dropping it ends the thread")] mpsc::Sender<()>);

impl TimeLimit {
    /// Starts the time limit of a program.
    pub fn of(child: &Child) -> Self {
        let (sender, ended) = mpsc::channel();
        let pid = Pid::from_raw(child.id() as i32);
        thread::spawn(move || {
            if ended.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("process {pid} has not ended after {TIMEOUT:?}: the test kills it");
                let _ = kill(pid, Signal::SIGKILL);
            }
        });
        Self(sender)
    }
}

/// Limits the time of `accept` on this listener, and of reads from its connections, to [`TIMEOUT`].
fn limit_waits(listener: &TcpListener) {
    let limit = TimeVal::milliseconds(TIMEOUT.as_millis() as i64);
    setsockopt(listener, sockopt::ReceiveTimeout, &limit).unwrap();
}

/// Creates a network namespace.
///
/// # Panics
/// If this process is not allowed to create one.
pub fn namespace() -> Namespace {
    Namespace::create().unwrap_or_else(|error| panic!("this test creates a network namespace: {error}"))
}

/// Returns the SHA-256 in hexadecimal digits.
pub fn digest(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns random bytes, the same in every call.
pub fn data(len: usize) -> Vec<u8> {
    bytes(0, len)
}

/// Returns random bytes, the same for the same seed.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = airwire::rng::Stream::new(seed, "data");
    let mut data = Vec::with_capacity(len + 8);
    while data.len() < len {
        data.extend(rng.bits().to_le_bytes());
    }
    data.truncate(len);
    data
}

/// The data that a receiver has read.
pub struct Received {
    /// Number of bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes, in hexadecimal digits.
    pub digest: String,
}

/// Accepts one connection on the kernel's TCP, and reads it to its end.
pub fn kernel_receiver(namespace: &Namespace, port: u16) -> JoinHandle<Received> {
    let listener = kernel_listener(namespace, ("::", port));
    thread::spawn(move || {
        let mut stream = listener.accept().expect("no connection to the receiver").0;
        let (mut sha256, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 18]);
        loop {
            match stream.read(&mut buffer) {
                Ok(len) if len > 0 => {
                    bytes += len as u64;
                    sha256.update(&buffer[..len]);
                }
                _ => break,
            }
        }
        Received { bytes, digest: hex(&sha256.finalize()) }
    })
}

/// Listens on the kernel's TCP in a namespace, at `addr`. Waits are limited to [`TIMEOUT`].
pub fn kernel_listener(namespace: &Namespace, addr: impl ToSocketAddrs + Send) -> TcpListener {
    let listener = namespace.enter(|| TcpListener::bind(addr).unwrap()).unwrap();
    limit_waits(&listener);
    listener
}

/// Makes the kernel close this connection with a reset.
pub fn reset_on_close(stream: &TcpStream) {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(stream, sockopt::Linger, &linger).unwrap();
}

/// Waits until another program listens on this port, for at most five seconds.
pub fn wait_for_listener(namespace: &Namespace, port: u16) {
    let wanted = format!(":{port:04X} ");
    for _ in 0..500 {
        let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
        let read = || tables.map(|table| std::fs::read_to_string(table).unwrap_or_default()).concat();
        let sockets = namespace.enter(read).unwrap();
        if sockets.lines().any(|line| line.contains(&wanted) && line.contains(" 0A ")) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing listens on port {port}");
}

/// Returns the command `airtcp` with these arguments.
pub fn airtcp(args: &[&str]) -> Command {
    command("airtcp", args)
}

/// Returns the command `airtcp-serve` with these arguments.
pub fn airtcp_serve(args: &[&str]) -> Command {
    command("airtcp-serve", args)
}

fn command(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program(name));
    command.args(args).env_remove("RUST_LOG");
    command
}

/// The result of a program that has ended.
pub struct Ended {
    /// Exit code, or -1 if a signal ended the program.
    pub code: i32,
    /// Output to stdout.
    pub stdout: String,
    /// Output to stderr.
    pub stderr: String,
    /// The JSON lines of stdout.
    pub lines: Vec<Value>,
}

impl Ended {
    /// Converts the output of a program.
    pub fn of(output: Output) -> Self {
        let stdout = String::from_utf8(output.stdout).unwrap();
        Self {
            code: output.status.code().unwrap_or(-1),
            lines: stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
            stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the result of a program that succeeded.
    ///
    /// # Panics
    /// If the exit code is not 0.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self
    }

    /// Returns the data of all events with this name.
    pub fn events<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter(move |line| line["event"] == name).map(|line| &line["data"])
    }

    /// Returns the data of the only event with this name.
    ///
    /// # Panics
    /// If there is not exactly one.
    pub fn event<'a>(&'a self, name: &'a str) -> &'a Value {
        let mut events = self.events(name);
        let event =
            events.next().unwrap_or_else(|| panic!("no `{name}` in:\n{}{}", self.stdout, self.stderr));
        assert!(events.next().is_none(), "more than one `{name}` in:\n{}", self.stdout);
        event
    }
}

/// Runs a command to its end, without input.
///
/// # Panics
/// If it does not start. A command that runs for longer than [`TIMEOUT`] is killed.
pub fn ended(command: &mut Command) -> Ended {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let _limit = TimeLimit::of(&child);
    Ended::of(child.wait_with_output().unwrap())
}

/// Runs `airtcp` with these arguments to its end.
pub fn run(args: &[&str]) -> Ended {
    ended(&mut airtcp(args))
}

/// Runs `airtcp` with these arguments in a network namespace to its end.
pub fn run_in(namespace: &Namespace, args: &[&str]) -> Ended {
    run(&[args, &["--netns", namespace.name()]].concat())
}

/// A running program, started with `--json`, that has printed its `start` event.
pub struct Running {
    child: Option<Child>,
    stdout: BufReader<ChildStdout>,
    read: String,
    _limit: TimeLimit,
}

impl Running {
    /// Starts `airtcp` with these arguments.
    ///
    /// # Panics
    /// If the program does not print its `start` event.
    pub fn start(args: &[&str]) -> Self {
        let mut child =
            airtcp(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _limit = TimeLimit::of(&child);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut read = String::new();
        stdout.read_line(&mut read).unwrap();
        if !read.contains("\"start\"") {
            let ended = Ended::of(child.wait_with_output().unwrap());
            panic!("{args:?} did not start: {read}{}", ended.stderr);
        }
        Self { child: Some(child), stdout, read, _limit }
    }

    /// Starts `airtcp` with these arguments in a network namespace. Panics like [`Running::start`].
    pub fn start_in(namespace: &Namespace, args: &[&str]) -> Self {
        Self::start(&[args, &["--netns", namespace.name()]].concat())
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().map(Child::id).unwrap();
        kill(Pid::from_raw(id as i32), signal).unwrap();
    }

    /// Waits for an event with this name whose data satisfies `wanted`.
    ///
    /// # Panics
    /// If the program ends before the event.
    pub fn wait_for(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) {
        loop {
            let from = self.read.len();
            let bytes = self.stdout.read_line(&mut self.read).unwrap();
            assert!(bytes > 0, "the program ended before the expected `{name}`:\n{}", self.read);
            let line: Value = serde_json::from_str(&self.read[from..]).unwrap_or_default();
            if line["event"] == name && wanted(&line["data"]) {
                return;
            }
        }
    }

    /// Waits until the program ends.
    pub fn end(mut self) -> Ended {
        let mut stdout = std::mem::take(&mut self.read).into_bytes();
        self.stdout.read_to_end(&mut stdout).unwrap();
        let child = self.child.take().unwrap();
        // `_limit` is dropped after this.
        Ended::of(Output { stdout, ..child.wait_with_output().unwrap() })
    }
}

impl Drop for Running {
    /// Kills the program, which must not outlive a failed assertion.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
