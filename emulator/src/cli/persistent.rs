//! `airlink up`, `down` and `status`: links between two network namespaces that run in the background.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use airlink::control::{self, Address, Client, Request};
use airlink::prefix::Prefix;
use airlink::tun::TunConfig;
use anyhow::Context;
use clap::Args;
use nix::unistd::{dup2_stderr, setsid};

use super::console;
use super::session::{self, LinkArgs, Session};

/// Set up a link that stays until `airlink down`
///
/// The name of the link is also the name of its control socket, which belongs to the network namespace in
/// which this command is started. Run `airlink down`, `status` and `ctl` in the same namespace. A link that
/// is killed leaves no files.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Up {
    /// Name of the link for `airlink down`, `status` and `ctl`
    #[arg(long, value_name = "NAME")]
    name: Address,
    #[command(flatten)]
    link: LinkArgs,
    /// Network namespace of the fixed side: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Fixed side")]
    fixed_netns: Option<PathBuf>,
    /// Name of the fixed side's device; %d is replaced by the next free number
    #[arg(long, value_name = "NAME", default_value = "airlink%d", help_heading = "Fixed side")]
    fixed_dev: String,
    /// Address of the kernel on the fixed side (repeatable) [default: the scenario's]
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Fixed side")]
    fixed_addr: Vec<Prefix>,
    /// Additional network that the fixed side's kernel reaches through the device (repeatable)
    #[arg(long, value_name = "NET/LEN", help_heading = "Fixed side")]
    fixed_route: Vec<Prefix>,
    /// Network namespace of the mobile side: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NETNS", help_heading = "Mobile side")]
    mobile_netns: Option<PathBuf>,
    /// Name of the mobile side's device; %d is replaced by the next free number
    #[arg(long, value_name = "NAME", default_value = "airlink%d", help_heading = "Mobile side")]
    mobile_dev: String,
    /// Address of the kernel on the mobile side (repeatable) [default: the scenario's]
    #[arg(long, value_name = "ADDR/LEN", help_heading = "Mobile side")]
    mobile_addr: Vec<Prefix>,
    /// Additional network that the mobile side's kernel reaches through the device (repeatable)
    #[arg(long, value_name = "NET/LEN", help_heading = "Mobile side")]
    mobile_route: Vec<Prefix>,
    /// Stay in the foreground, until SIGINT (Ctrl-C), SIGTERM or SIGHUP
    #[arg(long)]
    foreground: bool,
    /// Go to the background when the link is up; `up` starts itself with this option
    #[arg(long, hide = true)]
    detach: bool,
}

const EXAMPLES: &str = "\
Example:
  A link between two namespaces, changed while it runs:
    ip netns add fixed; ip netns add mobile
    airlink up --name radio --scenario wcdma-384 \\
      --fixed-netns fixed --fixed-addr 10.0.0.1/24 \\
      --mobile-netns mobile --mobile-addr 10.0.0.2/24
    ip netns exec fixed ping 10.0.0.2
    airlink ctl radio set radio.down.channel.errors.bler 5%
    airlink down radio";

/// End a link of `airlink up` or `airlink run`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  airlink down radio")]
pub(crate) struct Down {
    /// Name of the link, as `airlink status` lists it, or path of its control socket
    #[arg(value_name = "NAME|PATH")]
    name: Address,
}

/// List the running links, or print the counters of one
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  airlink status\n  airlink status radio --json | jq .down")]
pub(crate) struct Status {
    /// Name of the link whose counters to print, or path of its control socket [default: list the links]
    #[arg(value_name = "NAME|PATH")]
    name: Option<Address>,
    /// Print JSON instead of text: one array, or object, on one line
    #[arg(long)]
    json: bool,
}

/// Message of the background process on stderr when the link is up.
const IS_UP: &[u8] = b"\0up\n";

impl Up {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        if !self.foreground && !self.detach {
            return run_in_background();
        }
        let session = Session::new(self.link)?;
        let scenario = &session.emulation.scenario;
        let (addresses, mtu) = (scenario.addresses.clone().unwrap_or_default(), scenario.mtu);
        let side = |name, namespace, addrs: Vec<Prefix>, default, routes| TunConfig {
            name,
            namespace,
            addrs: if addrs.is_empty() { default } else { addrs },
            routes,
            mtu,
            ..TunConfig::default()
        };
        let fixed =
            side(self.fixed_dev, self.fixed_netns, self.fixed_addr, addresses.fixed, self.fixed_route);
        let mobile =
            side(self.mobile_dev, self.mobile_netns, self.mobile_addr, addresses.mobile, self.mobile_route);
        let mut reactor = session::reactor()?;
        reactor.catch_stop_signals()?;
        let running = session.open(reactor, self.name, &[], &fixed, &mobile)?;
        if self.detach {
            leave_terminal()?;
        } else {
            tracing::info!("{} is up", running.address());
        }
        let code = running.run((), |()| None)?;
        Ok(ExitCode::from(code))
    }
}

/// Starts the same command in the background, and waits until the link is up or has failed.
fn run_in_background() -> anyhow::Result<ExitCode> {
    let mut up = Command::new("/proc/self/exe");
    up.arg0("airlink").args(std::env::args_os().skip(1)).arg("--detach");
    let mut child = up
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting the link in the background")?;
    let mut messages = Vec::new();
    let mut stderr = child.stderr.take().context("stderr is not a pipe")?;
    // The process closes its stderr when the link is up or has failed.
    stderr.read_to_end(&mut messages)?;
    let is_up = messages.ends_with(IS_UP);
    messages.truncate(messages.len() - if is_up { IS_UP.len() } else { 0 });
    console::print_status(String::from_utf8_lossy(&messages));
    if is_up {
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait()?;
    Ok(ExitCode::from(status.code().unwrap_or(1).try_into().unwrap_or(1)))
}

fn leave_terminal() -> anyhow::Result<()> {
    use std::io::Write;
    setsid()?;
    std::io::stderr().write_all(IS_UP)?;
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    dup2_stderr(&null)?;
    Ok(())
}

impl Down {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut client = Client::connect(&self.name)?;
        client.request(&Request::Stop)?.map_err(anyhow::Error::msg)?;
        // The process cleans up, closes the connection and ends.
        client.take_while(Result::is_ok).for_each(drop);
        Ok(ExitCode::SUCCESS)
    }
}

impl Status {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(name) = &self.name {
            let stats = Client::connect(name)?.request(&Request::Stats)?.map_err(anyhow::Error::msg)?;
            console::print(if self.json { format!("{stats}\n") } else { format!("{stats:#}\n") })?;
            return Ok(ExitCode::SUCCESS);
        }
        let names = control::running().context("cannot list the sockets of this namespace")?;
        console::print(if self.json {
            serde_json::to_string(&names)? + "\n"
        } else {
            names.iter().map(|name| format!("{name}\n")).collect()
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
