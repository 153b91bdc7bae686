//! `airlink run`: runs a program behind a link.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use airlink::addresses::Block;
use airlink::control::{self, Address};
use airlink::driver::FIRST_OBSERVER_TOKEN;
use airlink::netns::{self, Anonymous, NamespaceError};
use airlink::prefix::Prefix;
use airlink::program::{FORWARDED_SIGNALS, Launch, Program, is_from_process};
use airlink::reactor::{Clock, Interest, Token, is_ignored};
use airlink::scenario::Scenario;
use airlink::tun::{self, IPV6_MTU, TunConfig};
use airwire::time::{Duration, Instant};
use airwire::units::typed_time;
use clap::{Args, ValueEnum};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::failure;
use super::session::{self, LinkArgs, RoundTask, Session};

/// Run a program behind a link
///
/// The program runs on the mobile side, in a network namespace of its own.
///
/// The fixed side is the namespace in which this command was started. The program reaches servers there at
/// the address in AIRLINK_FIXED (IPv6: AIRLINK_FIXED_V6). Its own address is in AIRLINK_MOBILE
/// (AIRLINK_MOBILE_V6). To put two links in a row, run `airlink run` inside `airlink run`. When the program
/// ends, all processes that it started end too, and the link is removed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    #[command(flatten)]
    link: LinkArgs,
    /// Run this with `sh -c` on the fixed side until the command ends, in a namespace of its own
    #[arg(long, value_name = "COMMAND LINE")]
    server: Option<OsString>,
    /// Run in a user namespace: needs no privileges, but requires --server; auto: when started without
    /// privileges
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Rootless::Auto)]
    rootless: Rootless,
    /// Name of the control socket for `airlink ctl`, or its path [default: run-PID]
    #[arg(long, value_name = "NAME|PATH")]
    control: Option<Address>,
    /// Keep the link up for this time after the command has ended, so that its last packets arrive
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = typed_time)]
    linger: Duration,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rootless {
    Auto,
    Yes,
    No,
}

const EXAMPLES: &str = "\
Examples:
  A shell on a W-CDMA bearer (try `ping $AIRLINK_FIXED`):
    airlink run --scenario wcdma-384 -- bash
  A download from a server outside, with the fate of every packet:
    iperf3 -s -D
    airlink run -s wcdma-384 --pcapng trace.pcapng -- \\
      sh -c 'iperf3 -R -c $AIRLINK_FIXED'
  As an ordinary user, with both sides in namespaces:
    airlink run -s geo --server 'iperf3 -s' -- \\
      sh -c 'sleep 1; iperf3 -c $AIRLINK_FIXED'
  A radio link behind a satellite link:
    airlink run -s geo -- airlink run -s wcdma-384 -- ping 100.64.0.1

Exit code: the command's own, 128 plus the number of the signal that killed
it, or one of these:
  1    the link failed
  2    usage, or an error in the scenario
  3    environment: privileges, devices, namespaces
  4    the command succeeded, but packets were later than --max-lateness allows
  126  the command could not be started
  127  the command was not found

SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the
command. After SIGTERM and SIGHUP it has 5 s to end. The first four signals
also end --linger.";

/// Default name of the control socket. A number is appended if the name is in use, as in nested runs: the outer
/// run may have the same pid in its own PID namespace.
fn default_name() -> Address {
    let taken = control::running().unwrap_or_default();
    let first = format!("run-{}", std::process::id());
    let others = (2..).map(|n| format!("{first}-{n}"));
    let free = std::iter::once(first.clone()).chain(others).find(|name| !taken.contains(name));
    Address::Named(free.unwrap_or(first))
}

impl Run {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let session = Session::new(self.link)?;
        // Do both before other threads exist. Only a single-threaded process can enter a user namespace, and
        // threads inherit the blocked signals.
        let rootless = match self.rootless {
            Rootless::Yes => true,
            Rootless::No => false,
            Rootless::Auto => !privileged(),
        };
        if self.server.is_none() && (rootless || !owns_network()) {
            return Err(failure::usage(
                "without privileges in this network namespace, the fixed side needs one of its own: use --server to run a \
                 command there, or start airlink as root or inside `unshare --user --map-root-user --net`",
            ));
        }
        if rootless {
            netns::become_root_inside()?;
        }
        let mut mask = SigSet::from_iter(FORWARDED_SIGNALS);
        if is_ignored(Signal::SIGHUP) {
            mask.remove(Signal::SIGHUP);
        }
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;

        let mut reactor = session::reactor()?;
        let mobile = Anonymous::create()?;
        let fixed = if self.server.is_some() { Anonymous::create()? } else { Anonymous::current()? };
        let addresses = Addresses::new(&session.emulation.scenario, &fixed, &mobile)?;
        // Links inside this one must reach hosts beyond it.
        if let Err(error) = mobile.forward_packets() {
            tracing::warn!("links inside this one cannot reach hosts beyond it: {error}");
        }
        let address = self.control.unwrap_or_else(default_name);
        let [fixed_device, mobile_device] =
            addresses.devices(&fixed, &mobile, session.emulation.scenario.mtu);
        let mut environment = addresses.environment();
        environment.push(("AIRLINK_CONTROL", address.to_string()));
        let inside: &[&Anonymous] = if self.server.is_some() { &[&mobile, &fixed] } else { &[&mobile] };
        reactor.register(&signals, SIGNALS, Interest::Read)?;
        let clock = reactor.clock();
        let mut running = session.open(reactor, address, inside, &fixed_device, &mobile_device)?;
        tracing::info!(
            "{}: fixed {}, mobile {}; airlink ctl {}",
            addresses.scenario,
            list(&addresses.fixed),
            list(&addresses.mobile),
            running.address(),
        );

        let launch = Launch {
            mobile: &mobile,
            fixed: &fixed,
            server: self.server,
            command: self.command,
            environment,
        };
        let program = Program::start(launch)?;
        running.reactor.register(program.ended(), ENDED, Interest::Read)?;
        let mut task = ProgramTask { program, signals, clock, linger: self.linger, ending: None };
        // Signals from the terminal that arrived before the program started have not reached it.
        task.forward_signals(SignalSource::Any)?;
        let code = running.run(task, |ProgramTask { program, .. }| Some(program.wait()))?;
        Ok(ExitCode::from(code))
    }
}

const SIGNALS: Token = FIRST_OBSERVER_TOKEN;
const ENDED: Token = Token(FIRST_OBSERVER_TOKEN.0 + 1);

/// Time after SIGTERM or SIGHUP at which a command is killed.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Forwards signals to the program behind the link, and waits for its end.
struct ProgramTask {
    program: Program,
    signals: SignalFd,
    clock: Clock,
    linger: Duration,
    ending: Option<Ending>,
}

/// Step towards the end of a run.
#[derive(Clone, Copy)]
enum Ending {
    /// The command has received SIGTERM or SIGHUP. It is killed at this time.
    Terminating(Instant),
    /// The command has ended. Its last packets may arrive until this time.
    Lingering(Instant),
    /// A signal has ended the linger period.
    Over,
}

/// Source of the signals to forward. Signals from the terminal reach all foreground processes anyway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignalSource {
    Any,
    Process,
}

impl RoundTask for ProgramTask {
    fn after(&mut self, now: Instant, ready: &[Token]) -> io::Result<ControlFlow<()>> {
        if ready.contains(&ENDED) && !matches!(self.ending, Some(Ending::Lingering(_) | Ending::Over)) {
            self.program.acknowledge_end();
            self.ending = Some(Ending::Lingering(now + self.linger));
        }
        // Handle signals last, so that a signal that arrives together with the end of the command ends the
        // linger period.
        if ready.contains(&SIGNALS) {
            self.forward_signals(SignalSource::Process)?;
        }
        match self.ending {
            Some(Ending::Over) => return Ok(ControlFlow::Break(())),
            Some(Ending::Lingering(until)) if until <= now => return Ok(ControlFlow::Break(())),
            Some(Ending::Terminating(until)) if until <= now => {
                self.ending = None;
                self.program.signal(Signal::SIGKILL);
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.ending.map(|ending| match ending {
            Ending::Terminating(at) | Ending::Lingering(at) => at,
            Ending::Over => Instant::ZERO,
        })
    }
}

impl ProgramTask {
    fn forward_signals(&mut self, source: SignalSource) -> io::Result<()> {
        while let Some(info) = self.signals.read_signal()? {
            let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { continue };
            let lingers = matches!(self.ending, Some(Ending::Lingering(_))) || self.program.has_ended();
            if lingers && !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2) {
                self.ending = Some(Ending::Over);
                continue;
            }
            if source == SignalSource::Any || is_from_process(&info) {
                self.program.signal(signal);
            }
            if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) && self.ending.is_none() {
                self.ending = Some(Ending::Terminating(self.clock.now() + TERMINATION_TIMEOUT));
            }
        }
        Ok(())
    }
}

/// Addresses of the devices on both sides.
struct Addresses {
    scenario: String,
    fixed: Vec<Prefix>,
    mobile: Vec<Prefix>,
    /// Reserves the addresses.
    _block: Option<Block>,
}

impl Addresses {
    fn new(scenario: &Scenario, fixed: &Anonymous, mobile: &Anonymous) -> anyhow::Result<Self> {
        let mut with_ipv6 = scenario.mtu >= IPV6_MTU;
        let (fixed, mobile, block) = match &scenario.addresses {
            Some(addresses) => (addresses.fixed.clone(), addresses.mobile.clone(), None),
            None => {
                let both_allow =
                    fixed.enter(tun::new_devices_have_ipv6)? && mobile.enter(tun::new_devices_have_ipv6)?;
                if with_ipv6 && !both_allow {
                    tracing::warn!(
                        "IPv6 is disabled here, so the link has IPv4 only (sysctl net.ipv6.conf.default.disable_ipv6)"
                    );
                }
                with_ipv6 &= both_allow;
                let block = fixed.enter(Block::reserve)??;
                (block.fixed().to_vec(), block.mobile().to_vec(), Some(block))
            }
        };
        let fits = |prefix: &Prefix| prefix.addr().is_ipv4() || with_ipv6;
        let keep = |prefixes: Vec<Prefix>| prefixes.into_iter().filter(fits).collect();
        Ok(Self { scenario: scenario.name.clone(), fixed: keep(fixed), mobile: keep(mobile), _block: block })
    }

    fn devices(&self, fixed: &Anonymous, mobile: &Anonymous, mtu: u16) -> [TunConfig; 2] {
        let device = |namespace: &Anonymous, addrs: &[Prefix], routes: Vec<Prefix>| TunConfig {
            name: "airlink%d".to_owned(),
            namespace: Some(namespace.path()),
            addrs: addrs.to_vec(),
            routes,
            mtu,
            ..TunConfig::default()
        };
        let is_reached = |to: &Prefix| self.fixed.iter().any(|own| own.contains(to.addr()));
        let to_mobile = self.mobile.iter().filter(|to| !is_reached(to)).map(|to| to.network());
        let default_routes = self.mobile.iter().map(|own| {
            let all = if own.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" };
            all.parse().expect("this is a prefix")
        });
        [
            device(fixed, &self.fixed, without_duplicates(to_mobile)),
            device(mobile, &self.mobile, without_duplicates(default_routes)),
        ]
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let of = |prefixes: &[Prefix], v4: bool| {
            prefixes.iter().map(|prefix| prefix.addr()).find(|addr| addr.is_ipv4() == v4)
        };
        let variables = [
            ("AIRLINK_FIXED", of(&self.fixed, true)),
            ("AIRLINK_FIXED_V6", of(&self.fixed, false)),
            ("AIRLINK_MOBILE", of(&self.mobile, true)),
            ("AIRLINK_MOBILE_V6", of(&self.mobile, false)),
        ];
        variables.into_iter().filter_map(|(name, addr)| Some((name, addr?.to_string()))).collect()
    }
}

/// Removes duplicate routes. Several addresses in one network need only one route.
fn without_duplicates(routes: impl Iterator<Item = Prefix>) -> Vec<Prefix> {
    routes.fold(Vec::new(), |mut routes, route| {
        if !routes.contains(&route) {
            routes.push(route);
        }
        routes
    })
}

fn list(prefixes: &[Prefix]) -> String {
    prefixes.iter().map(|prefix| prefix.addr().to_string()).collect::<Vec<_>>().join(" ")
}

/// Whether the capabilities of this process apply to its network namespace. After the creation of a user
/// namespace without a network namespace, they do not apply.
fn owns_network() -> bool {
    let entered = Anonymous::current().and_then(|own| own.enter(|| ()));
    !matches!(entered, Err(NamespaceError::NotPermitted(_)))
}

/// Whether this process can create namespaces and devices without its own user namespace.
fn privileged() -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    let status = fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    effective & (NET_ADMIN | SYS_ADMIN) == NET_ADMIN | SYS_ADMIN
}
