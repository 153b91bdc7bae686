//! The lab's agent in a namespace (`airtcp lab agent`). It starts programs for the lab and reports their
//! results.
//!
//! Orders arrive on stdin and notices leave on stdout, both as JSON lines. The agent exits when stdin ends.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::counters::{self, Counters, by_name};
use super::pattern::{FirstDifference, PatternCheck};

/// An order from the lab to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Starts a program. The answer is `Started`, and `Ended` follows when the program exits.
    Start(Program),
    /// Writes a file. The answer is `Written`.
    Write { path: PathBuf, text: String },
    /// Reads the kernel's counters. The answer is `Counted`.
    Count,
}

/// A program to start. The lab assigns the `id`, which is unique per agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) id: u32,
    pub(crate) argv: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) stdout: Output,
    pub(crate) stderr: PathBuf,
}

/// The destination of a program's stdout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Output {
    File(PathBuf),
    /// The agent reads the output of a receiver, counts the bytes and computes a digest.
    Digested,
}

/// A message from an agent to the lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Notice {
    /// The agent accepts orders. `airlink run` provided the addresses.
    Ready {
        pid: u32,
        fixed: Option<String>,
        mobile: Option<String>,
    },
    Started {
        id: u32,
    },
    Ended {
        id: u32,
        /// The exit code as a shell reports it: 128 plus the signal's number if the program was killed.
        code: i32,
        received: Option<Received>,
    },
    Written,
    /// The counters of the namespace.
    Counted(Counters),
    /// The order failed.
    Failed(String),
}

/// The output of a receiving program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Number of bytes.
    pub bytes: u64,
    /// SHA-256 of all bytes, as 64 hexadecimal digits.
    pub sha256: String,
    /// The first difference from the test pattern. `None` if all bytes match, or if the file is older than
    /// this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<FirstDifference>,
}

/// Executes orders until the lab closes stdin.
///
/// # Errors
///
/// Returns an error for a line that is not an order, and if stdin or stdout fails.
pub fn serve() -> io::Result<()> {
    let agent = Agent { notices: Arc::new(Mutex::new(io::stdout())) };
    let address = |name| std::env::var(name).ok();
    agent.send_notice(&Notice::Ready {
        pid: std::process::id(),
        fixed: address("AIRLINK_FIXED"),
        mobile: address("AIRLINK_MOBILE"),
    })?;
    for line in io::stdin().lock().lines() {
        let order = serde_json::from_str(&line?).map_err(io::Error::from)?;
        if let Err(error) = agent.execute(order) {
            agent.send_notice(&Notice::Failed(error))?;
        }
    }
    Ok(())
}

#[derive(Clone)]
struct Agent {
    notices: Arc<Mutex<io::Stdout>>,
}

impl Agent {
    fn send_notice(&self, notice: &Notice) -> io::Result<()> {
        let mut line = serde_json::to_string(notice)?;
        line.push('\n');
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.write_all(line.as_bytes())?;
        notices.flush()
    }

    fn execute(&self, order: Order) -> Result<(), String> {
        let notice = match order {
            Order::Start(program) => return self.start(program),
            Order::Write { path, text } => match airfiles::write(&path, text) {
                Ok(()) => Notice::Written,
                Err(error) => return Err(format!("cannot write {}: {error}", path.display())),
            },
            Order::Count => {
                let counters = counters::read()
                    .map_err(|error| format!("cannot read the counters in /proc: {error}"))?;
                Notice::Counted(by_name(counters))
            }
        };
        self.send_notice(&notice).map_err(|error| error.to_string())
    }

    fn start(&self, program: Program) -> Result<(), String> {
        let Program { id, argv, environment, stdout, stderr } = program;
        let (name, arguments) = argv.split_first().ok_or("no program given")?;
        let create = |path: &Path| {
            airfiles::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let mut command = Command::new(name);
        command.args(arguments).envs(environment).stdin(Stdio::null()).stderr(create(&stderr)?);
        match &stdout {
            Output::File(path) => command.stdout(create(path)?),
            Output::Digested => command.stdout(Stdio::piped()),
        };
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("program `{name}` not found; install it, or check PATH"),
            _ => format!("cannot start {name}: {error}"),
        })?;
        self.send_notice(&Notice::Started { id }).map_err(|error| error.to_string())?;
        let agent = self.clone();
        let watch = move || {
            let received = child.stdout.take().map(digest);
            let code = child.wait().map_or(1, code);
            // The lab may have ended.
            let _ = agent.send_notice(&Notice::Ended { id, code, received });
        };
        thread::Builder::new()
            .name(format!("program {id}"))
            .spawn(watch)
            .map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn digest(mut stream: impl Read) -> Received {
    let (mut sha256, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
    let mut comparison = PatternCheck::default();
    // If reading fails, the stream is shorter than the sent data, which the comparison detects.
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        sha256.update(&buffer[..len]);
        comparison.take(&buffer[..len]);
        bytes += len as u64;
    }
    let sha256 = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Received { bytes, sha256, first_difference: comparison.first }
}
