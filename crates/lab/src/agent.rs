//! The lab's hand in a namespace: it starts what it is told to, and says what became of it.
//!
//! Orders come in on stdin as JSON lines, notices go out on stdout likewise. When no more orders can come, it ends.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Answered by `Started` and, when it has ended, by `Ended`.
    Start(Program),
    Signal {
        id: u32,
        signal: i32,
    },
    /// Answered by `Written`.
    Write {
        path: PathBuf,
        text: String,
    },
    /// Answered by `Text`.
    Read {
        path: PathBuf,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub id: u32,
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub stdout: Output,
    pub stderr: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    File(PathBuf),
    /// What a receiver received: counted and digested.
    Digested,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notice {
    /// The agent takes orders. The addresses are those that `airlink run` has told it.
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
        /// As a shell reports it: 128 and the signal's number, if it was killed.
        code: i32,
        received: Option<Received>,
    },
    Written,
    Text(String),
    /// The order could not be carried out.
    Failed(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    pub bytes: u64,
    pub sha256: String,
}

/// Returns when the lab has closed its end.
pub fn serve() -> io::Result<()> {
    let agent = Agent { notices: Arc::new(Mutex::new(io::stdout())), children: Arc::default() };
    let address = |name| std::env::var(name).ok();
    agent.say(&Notice::Ready {
        pid: std::process::id(),
        fixed: address("AIRLINK_FIXED"),
        mobile: address("AIRLINK_MOBILE"),
    })?;
    for line in io::stdin().lock().lines() {
        let order = serde_json::from_str(&line?).map_err(io::Error::from)?;
        if let Err(error) = agent.carry_out(order) {
            agent.say(&Notice::Failed(error))?;
        }
    }
    Ok(())
}

#[derive(Clone)]
struct Agent {
    notices: Arc<Mutex<io::Stdout>>,
    /// Those not waited for yet: their numbers belong to nobody else.
    children: Arc<Mutex<BTreeMap<u32, Pid>>>,
}

impl Agent {
    fn say(&self, event: &Notice) -> io::Result<()> {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.write_all(line.as_bytes())?;
        notices.flush()
    }

    fn carry_out(&self, order: Order) -> Result<(), String> {
        let said = match order {
            Order::Start(program) => return self.start(program),
            Order::Signal { id, signal } => {
                let children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
                if let (Some(pid), Ok(signal)) = (children.get(&id), Signal::try_from(signal)) {
                    // It may have ended.
                    let _ = kill(*pid, signal);
                }
                return Ok(());
            }
            Order::Write { path, text } => match fs::write(&path, text) {
                Ok(()) => Notice::Written,
                Err(error) => return Err(format!("cannot write {}: {error}", path.display())),
            },
            Order::Read { path } => match fs::read_to_string(&path) {
                Ok(text) => Notice::Text(text),
                Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
            },
        };
        self.say(&said).map_err(|error| error.to_string())
    }

    fn start(&self, program: Program) -> Result<(), String> {
        let Program { id, argv, environment, stdout, stderr } = program;
        let (name, arguments) = argv.split_first().ok_or("no program was named")?;
        let create = |path: &Path| {
            File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))
        };
        let mut command = Command::new(name);
        command.args(arguments).envs(environment).stdin(Stdio::null()).stderr(create(&stderr)?);
        match &stdout {
            Output::File(path) => command.stdout(create(path)?),
            Output::Digested => command.stdout(Stdio::piped()),
        };
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("there is no program `{name}`: install it, or look at PATH"),
            _ => format!("cannot start {name}: {error}"),
        })?;
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.insert(id, Pid::from_raw(child.id() as i32));
        drop(children);
        self.say(&Notice::Started { id }).map_err(|error| error.to_string())?;
        let agent = self.clone();
        let watch = move || {
            let received = child.stdout.take().map(digest);
            let code = agent.wait(id, &mut child);
            // Without a lab there is nobody to tell.
            let _ = agent.say(&Notice::Ended { id, code, received });
        };
        thread::Builder::new()
            .name(format!("program {id}"))
            .spawn(watch)
            .map_err(|error| error.to_string())?;
        Ok(())
    }

    fn wait(&self, id: u32, child: &mut Child) -> i32 {
        let status = child.wait();
        self.children.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        status.map_or(1, code)
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

fn digest(mut stream: impl Read) -> Received {
    let (mut sha256, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
    // A stream that breaks is shorter than what was sent, and so found wrong.
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        sha256.update(&buffer[..len]);
        bytes += len as u64;
    }
    let sha256 = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Received { bytes, sha256 }
}
