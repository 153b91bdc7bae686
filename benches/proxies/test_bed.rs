//! A namespace with the server and the measured proxies.

#![expect(clippy::disallowed_methods, reason = "programs are given time to start and to end")]

use std::fs::{self, DirBuilder, File};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Serialize;

use crate::client;
use crate::exchange::{Request, SERVER, Server};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Program {
    /// nginx, its module `stream`
    Nginx,
    /// HAProxy, `mode tcp`
    Haproxy,
    /// `airtcp-serve` with its default options
    Serve,
}

/// Path of the module on Debian.
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Serve => "serve",
        }
    }

    /// Address at which clients reach the program.
    pub(crate) fn addr(self) -> SocketAddrV4 {
        match self {
            Self::Nginx => SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8001),
            Self::Haproxy => SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8002),
            // The address of its own host, behind the TUN device.
            Self::Serve => SocketAddrV4::new(Ipv4Addr::new(10, 83, 0, 2), 8003),
        }
    }

    fn command(self, serve: Option<&Path>, threads: u32, directory: &Path) -> anyhow::Result<Command> {
        let here = directory.display();
        let addr = self.addr();
        match self {
            Self::Nginx => {
                let nginx = installed("nginx", "nginx-light libnginx-mod-stream")?;
                if !Path::new(STREAM_MODULE).exists() {
                    return Err(Missing(format!(
                        "nginx has no module `stream` ({STREAM_MODULE}): apt-get install libnginx-mod-stream"
                    ))
                    .into());
                }
                let config = directory.join("nginx.conf");
                // The workers keep running as root: the default user may not exist, and does not
                // affect the times.
                fs::write(
                    &config,
                    format!(
                        "load_module {STREAM_MODULE};\n\
                         daemon off; worker_processes {threads}; user root; pid {here}/nginx.pid; error_log stderr;\n\
                         events {{ worker_connections 1024; }}\n\
                         stream {{ server {{ listen {addr}; proxy_pass {SERVER}; }} }}\n"
                    ),
                )?;
                let mut command = Command::new(nginx);
                command.arg("-p").arg(directory).arg("-c").arg(config).args(["-e", "stderr"]);
                Ok(command)
            }
            Self::Haproxy => {
                let haproxy = installed("haproxy", "haproxy")?;
                let config = directory.join("haproxy.cfg");
                fs::write(
                    &config,
                    format!(
                        "global\n  nbthread {threads}\n  maxconn 1000\n\
                         defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n\
                         listen bench\n  bind {addr}\n  server server {SERVER}\n"
                    ),
                )?;
                let mut command = Command::new(haproxy);
                command.arg("-db").arg("-f").arg(config);
                Ok(command)
            }
            Self::Serve => {
                let mut command = Command::new(ours(serve)?);
                command.args(["--listen", &addr.to_string(), "--forward", &SERVER.to_string()]);
                Ok(command)
            }
        }
    }
}

/// A required program or module is missing. The message explains the installation.
#[derive(Debug)]
pub(crate) struct Missing(String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// Finds a program on the PATH or in the sbin directories, which are not on every user's PATH.
fn installed(name: &str, packages: &str) -> Result<PathBuf, Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    directories
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| Missing(format!("{name} is not installed: apt-get install {packages}")))
}

/// Finds the `airtcp-serve` to measure: the named one, the one in AIRTCP_PROGRAMS, or the one that cargo
/// built next to this program.
fn ours(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let program = match (named, std::env::var_os("AIRTCP_PROGRAMS")) {
        (Some(named), _) => named.to_owned(),
        (None, Some(directory)) => Path::new(&directory).join("airtcp-serve"),
        (None, None) => std::env::current_exe()?.with_file_name("airtcp-serve"),
    };
    if program.is_file() {
        return Ok(program);
    }
    Err(Missing(format!(
        "{} does not exist: cargo build --release -p airtcp-serve, or name the program with --program",
        program.display()
    ))
    .into())
}

/// The running programs and the server. The drop order of the fields ends and removes them in turn.
pub(crate) struct TestBed {
    running: Vec<Running>,
    _server: Server,
    namespace: Namespace,
    _directory: Directory,
}

impl TestBed {
    pub(crate) fn start(
        programs: &[Program],
        serve: Option<&Path>,
        threads: u32,
        loopback_mtu: Option<u32>,
    ) -> anyhow::Result<Self> {
        let directory = Directory::create()?;
        let commands = programs
            .iter()
            .map(|program| Ok((*program, program.command(serve, threads, &directory.0)?)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let namespace = Namespace::create()?;
        if let Some(mtu) = loopback_mtu {
            let mut ip = Command::new("ip");
            ip.args(["link", "set", "lo", "mtu", &mtu.to_string()]);
            ensure!(namespace.spawn(&mut ip)?.wait()?.success(), "`ip link set lo mtu {mtu}` failed");
        }
        let server = Server::start(&namespace)?;
        let mut test_bed = Self { running: Vec::new(), _server: server, namespace, _directory: directory };
        for (program, command) in commands {
            let running = Running::start(program, command, &test_bed.namespace, &test_bed._directory.0)?;
            test_bed.running.push(running);
        }
        for running in &mut test_bed.running {
            running.wait(&test_bed.namespace)?;
        }
        Ok(test_bed)
    }

    /// Calls `client` with the address of this program. An error includes the program's last output.
    pub(crate) fn measure(
        &self,
        program: Program,
        client: impl FnOnce(SocketAddrV4) -> anyhow::Result<Duration> + Send,
    ) -> anyhow::Result<Duration> {
        self.namespace.enter(|| client(program.addr()))?.with_context(|| {
            let running = self.running.iter().find(|running| running.program == program);
            format!("{}{}", program.name(), running.map(Running::last_output).unwrap_or_default())
        })
    }
}

struct Running {
    program: Program,
    child: Child,
    stderr: PathBuf,
}

impl Running {
    fn start(
        program: Program,
        mut command: Command,
        namespace: &Namespace,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let stderr = directory.join(format!("{}.stderr", program.name()));
        let stdout = directory.join(format!("{}.stdout", program.name()));
        command.stdin(Stdio::null()).stdout(File::create(stdout)?).stderr(File::create(&stderr)?);
        Ok(Self { program, child: namespace.spawn(&mut command)?, stderr })
    }

    /// Waits until the program forwards a small answer.
    fn wait(&mut self, namespace: &Namespace) -> anyhow::Result<()> {
        let start = Instant::now();
        let small = Request { up: 0, down: client::ANSWER };
        loop {
            let answer = namespace.enter(|| client::streams(self.program.addr(), small, 1))?;
            let Err(failure) = answer else { return Ok(()) };
            if let Some(status) = self.child.try_wait()? {
                bail!("{} has ended ({status}){}", self.program.name(), self.last_output());
            }
            if start.elapsed() > Duration::from_secs(10) {
                return Err(failure).context(format!(
                    "{} does not serve{}",
                    self.program.name(),
                    self.last_output()
                ));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the last lines of stderr, to append to the program's name.
    fn last_output(&self) -> String {
        let text = fs::read_to_string(&self.stderr).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        match &lines[lines.len().saturating_sub(3)..] {
            [] => String::new(),
            last => format!(", which says `{}`", last.join(" / ")),
        }
    }

    fn end(&mut self) -> std::io::Result<ExitStatus> {
        // On SIGTERM nginx also ends its worker.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        for _ in 0..100 {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("airtcp-proxies: {} did not end: {error}", self.program.name());
        }
    }
}

/// A directory for configuration files and the programs' output.
struct Directory(PathBuf);

impl Directory {
    fn create() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("airtcp-proxies-{}", std::process::id()));
        let created = DirBuilder::new().mode(0o700).create(&path);
        created.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("airtcp-proxies: {} is left behind: {error}", self.0.display());
        }
    }
}
