//! Common part of `run` and `up`: a scenario's path between two devices in real time, with views and a
//! control socket.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use airlink::capture::Capture;
use airlink::control::{Address, Control, Request, RequestHandler};
use airlink::driver::{self, DriverError, Endpoint, FIRST_OBSERVER_TOKEN, Observer, Round};
use airlink::lateness::{Lateness, Limit};
use airlink::netns::Anonymous;
use airlink::path::{OutOfMemory, Path};
use airlink::reactor::{Clock, Reactor, Token};
use airlink::scenario::{self, Scenario, StageConfig, StageSettings};
use airlink::stage::RadioLayer;
use airlink::tun::{Tun, TunConfig};
use airlink::views::{self, Views, summary};
use airwire::time::{Duration, Instant};
use airwire::units::{Size, typed_time};
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};

use super::console;
use super::device::{self, DeviceArgs, DeviceSummary};
use super::log::Log;

/// Options that select the scenario.
#[derive(Debug, Args)]
pub(super) struct ScenarioArgs {
    /// A preset's name, or a scenario file; `airlink show` lists the presets
    #[arg(long, short = 's', value_name = "SCENARIO", help_heading = "Link")]
    scenario: String,
    /// Seed of all random numbers [default: the scenario's]
    #[arg(long, value_name = "NUMBER", help_heading = "Link")]
    seed: Option<u64>,
    /// Change one of the scenario's settings, such as wire.down.rate=64kbit, or remove a stage with wire.remove=true (repeatable)
    #[arg(long, value_name = "STAGE.KEY=VALUE", value_parser = scenario::parse_assignment, help_heading = "Link")]
    set: Vec<(String, String)>,
    /// Memory limit: packets inside the link
    #[arg(long, value_name = "SIZE", default_value = "1G", help_heading = "Link")]
    memory: Size,
}

/// A scenario and its path.
pub(super) struct Emulation {
    pub(super) scenario: Scenario,
    pub(super) seed: u64,
    pub(super) path: Path,
}

impl ScenarioArgs {
    /// Loads the scenario with its changed settings, and builds its path.
    pub(super) fn build(&self, files: &views::Files) -> anyhow::Result<Emulation> {
        let mut scenario = Scenario::load(&self.scenario)?;
        for (key, value) in &self.set {
            scenario.edit(key, value)?;
        }
        for warning in scenario.warnings() {
            tracing::warn!("{}: {warning}", self.scenario);
        }
        for warning in radio_capture_warnings(files, &scenario) {
            tracing::warn!("{}: {warning}", self.scenario);
        }
        let seed = self.seed.unwrap_or(scenario.seed);
        let recording = files.recording().max(Log::recording());
        let mut path = scenario.build(Some(seed), recording, false)?;
        files.radio().for_each(|layer| path.record_radio(layer));
        path.limit_memory(self.memory.as_bytes());
        Ok(Emulation { scenario, seed, path })
    }
}

/// Warnings about a radio capture that lacks the PDUs that the user requested.
fn radio_capture_warnings(files: &views::Files, scenario: &Scenario) -> Vec<String> {
    if files.radio_pcap.is_none() {
        return Vec::new();
    }
    let stages = &scenario.stages;
    if !stages
        .iter()
        .any(|stage| matches!(stage.config, StageConfig::Rlc(_) | StageConfig::Lte(_) | StageConfig::Nr(_)))
    {
        return vec![
            "--radio-pcap: the file has no PDUs, because no stage is `rlc`, `lte` or `nr`".to_owned(),
        ];
    }
    let layer = files.radio_layer;
    let layer = layer.to_possible_value().filter(|_| layer != RadioLayer::Rlc);
    let Some(layer) = layer else { return Vec::new() };
    let umts = stages.iter().filter(|stage| matches!(stage.config, StageConfig::Rlc(_)));
    let warning = |stage: &StageSettings| {
        format!(
            "--radio-layer {}: stage `{}` is UMTS, so the capture has its RLC PDUs; the option applies only to LTE \
             and NR",
            layer.get_name(),
            stage.name
        )
    };
    umts.map(warning).collect()
}

impl Emulation {
    /// Creates the output files and the log. `wall_zero` is the wall-clock time of `Instant::ZERO`.
    pub(super) fn create_views(&self, files: &views::Files, wall_zero: SystemTime) -> anyhow::Result<Views> {
        let run = views::RunInfo {
            scenario: self.scenario.name.clone(),
            seed: self.seed,
            stages: self.path.stage_names().map(str::to_owned).collect(),
            wall_zero,
        };
        Ok(Views::create(files, &run)?.with_listener(Log::if_enabled(&run)))
    }

    pub(super) fn summary(&self, now: Instant, lateness: Option<&Lateness>) -> summary::Summary {
        let lateness = lateness.map(Lateness::histogram);
        summary::Summary::new(&self.scenario.name, self.seed, &self.path, now, lateness)
    }
}

/// Adds the option that raises the limit to the error.
pub(super) fn out_of_memory(error: OutOfMemory) -> anyhow::Error {
    anyhow::anyhow!("{error}, or allow more with --memory")
}

/// Options of a link in real time.
#[derive(Debug, Args)]
pub(super) struct LinkArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    device: DeviceArgs,

    /// Write the packets at the fixed side to a pcap file (nanosecond timestamps)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap_fixed: Option<PathBuf>,
    /// Write the packets at the mobile side to a pcap file (nanosecond timestamps)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap_mobile: Option<PathBuf>,
    #[command(flatten)]
    files: views::Files,
    /// Print JSON instead of text: one object, at the end; it goes to stdout, the table to stderr
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write the JSON object of --json to a file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    summary: Option<PathBuf>,
    /// Show a line with rates, packets inside and block errors on the terminal while the link runs
    #[arg(long, help_heading = "Output")]
    live: bool,
    #[arg(from_global)]
    quiet: bool,

    /// Exit with code 4 if packets leave later than this bound, such as p99=300us or max=2ms (repeatable)
    #[arg(long, value_name = "PERCENTILE=TIME", help_heading = "Timing")]
    max_lateness: Vec<Limit>,
    /// Poll the clock for this time before a packet is due, instead of sleeping; 0us: only sleep
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = typed_time, help_heading = "Timing")]
    spin: Duration,
    /// Request real-time scheduling (SCHED_FIFO); without permission, warn and continue
    #[arg(long, help_heading = "Timing")]
    realtime: bool,
}

/// A scenario that is checked and built. No device or file is open yet.
pub(super) struct Session {
    link: LinkArgs,
    pub(super) emulation: Emulation,
}

/// A link that is up.
pub(super) struct RunningLink {
    link: LinkArgs,
    emulation: Emulation,
    pub(super) reactor: Reactor,
    endpoints: [Endpoint; 2],
    views: Views,
    control: Control,
}

/// The control socket uses this token and all later ones. The command uses the tokens between
/// `FIRST_OBSERVER_TOKEN` and this one.
const CONTROL: Token = Token(FIRST_OBSERVER_TOKEN.0 + 16);

/// Task of a command in every round, in addition to the common part of `run` and `up`.
pub(super) trait RoundTask {
    fn after(&mut self, now: Instant, ready: &[Token]) -> io::Result<ControlFlow<()>>;
    fn next_deadline(&self) -> Option<Instant>;
}

impl RoundTask for () {
    fn after(&mut self, _: Instant, _: &[Token]) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

impl Session {
    pub(super) fn new(link: LinkArgs) -> anyhow::Result<Self> {
        let emulation = link.scenario.build(&link.files)?;
        Ok(Self { link, emulation })
    }

    pub(super) fn open(
        self,
        mut reactor: Reactor,
        address: Address,
        inside: &[&Anonymous],
        fixed: &TunConfig,
        mobile: &TunConfig,
    ) -> anyhow::Result<RunningLink> {
        device::check_addresses(fixed, mobile)?;
        let Self { link, emulation } = self;
        let clock = reactor.clock();
        let control = Control::listen(address, inside, CONTROL, &mut reactor)?;
        let endpoint = |config: &TunConfig, pcap: &Option<PathBuf>| -> anyhow::Result<Endpoint> {
            let capture = pcap.as_ref().map(|path| Capture::create(path, clock.wall_zero())).transpose()?;
            Ok(Endpoint::new(Tun::open(&link.device.apply_to(config))?, capture))
        };
        let endpoints = [endpoint(fixed, &link.pcap_fixed)?, endpoint(mobile, &link.pcap_mobile)?];
        let mut views = emulation.create_views(&link.files, clock.wall_zero())?;
        if link.live {
            views = views.with_live_line();
        }
        reactor.set_spin(link.spin);
        if link.realtime {
            request_real_time();
        }
        Ok(RunningLink { link, emulation, reactor, endpoints, views, control })
    }
}

impl RunningLink {
    pub(super) fn address(&self) -> &Address {
        self.control.address()
    }

    /// Runs until the link is stopped, and then completes all output. `end` ends the command behind the link
    /// and returns its exit code, or `None` if the link has no command. Returns the exit code for this process.
    pub(super) fn run<T: RoundTask>(
        mut self,
        mut task: T,
        end: impl FnOnce(T) -> Option<u8>,
    ) -> anyhow::Result<u8> {
        let clock = self.reactor.clock();
        let Emulation { scenario, seed, path } = &mut self.emulation;
        let mut observer = LinkObserver {
            scenario,
            seed: *seed,
            views: &mut self.views,
            control: &mut self.control,
            task: &mut task,
            is_full: false,
        };
        let result = driver::run(path, &mut self.endpoints, &mut self.reactor, None, &mut observer);
        let now = clock.now();
        // The command ends with the link, for any reason.
        let command = end(task);
        // Read the counters before they disappear with the namespaces.
        let summary = self.summary(now, command, result.as_ref().ok());
        self.views.finish(&mut self.emulation.path, now)?;
        let lateness = result?;
        self.link.print(&summary)?;
        let code = command.unwrap_or(0);
        for limit in &self.link.max_lateness {
            if let Some(late) = limit.exceeded_by(&lateness) {
                console::print_status(format_args!(
                    "airlink: packets left too late: --max-lateness requires {limit}, and it was {late}\n"
                ));
                if code == 0 {
                    return Ok(super::TIMING);
                }
            }
        }
        Ok(code)
    }

    fn summary(&self, now: Instant, command: Option<u8>, lateness: Option<&Lateness>) -> Summary {
        // If the device was removed, its counter is gone too.
        let device =
            |endpoint: &Endpoint| DeviceSummary::new(endpoint, endpoint.kernel_drops().unwrap_or_default());
        let [fixed, mobile] = &self.endpoints;
        Summary {
            path: self.emulation.summary(now, lateness),
            exit_code: command,
            fixed: device(fixed),
            mobile: device(mobile),
        }
    }
}

impl LinkArgs {
    fn print(&self, summary: &Summary) -> anyhow::Result<()> {
        let text = serde_json::to_string(summary).context("writing the summary")?;
        if let Some(path) = &self.summary {
            airfiles::write(path, format!("{text}\n"))
                .with_context(|| format!("cannot write the summary {}", path.display()))?;
        }
        if self.json {
            console::print(text + "\n")?;
        } else if !self.quiet {
            console::print_status(&summary.path);
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    path: summary::Summary,
    /// Exit code of the command, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    fixed: DeviceSummary,
    mobile: DeviceSummary,
}

/// The common part of `run` and `up` in every round.
struct LinkObserver<'a, T> {
    scenario: &'a mut Scenario,
    seed: u64,
    views: &'a mut Views,
    control: &'a mut Control,
    task: &'a mut T,
    /// Whether the warning about the memory of the link was logged.
    is_full: bool,
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> DriverError {
    DriverError::Observer(Box::new(error))
}

impl<T: RoundTask> Observer<Path> for LinkObserver<'_, T> {
    fn after(&mut self, round: Round<'_, Path>) -> Result<ControlFlow<()>, DriverError> {
        let Round { now, machine, reactor, ready, endpoints, lateness, stopping: _ } = round;
        self.views.after(machine).map_err(failed)?;
        // A full network drops packets. A running program must not lose its link for this reason.
        if !self.is_full
            && let Err(error) = machine.check_memory()
        {
            self.is_full = true;
            tracing::warn!("{}; packets without room are dropped", out_of_memory(error));
        }
        self.views.draw_live_line(now, machine, || lateness.at(99.0));
        let mut state = LinkState {
            now,
            scenario: self.scenario,
            seed: self.seed,
            path: machine,
            endpoints,
            lateness,
            stop: false,
        };
        if !ready.is_empty() || self.control.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.control.handle_events(now, ready, reactor, &mut state)?;
        }
        if state.stop {
            return Ok(ControlFlow::Break(()));
        }
        Ok(self.task.after(now, ready)?)
    }

    fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [self.views.next_tick(), self.control.next_deadline(), self.task.next_deadline()];
        deadlines.into_iter().flatten().min()
    }
}

/// State of a link that clients of its control socket can read and change.
struct LinkState<'a> {
    now: Instant,
    scenario: &'a mut Scenario,
    seed: u64,
    path: &'a mut Path,
    endpoints: &'a [Endpoint],
    lateness: &'a Lateness,
    stop: bool,
}

impl RequestHandler for LinkState<'_> {
    fn answer(&mut self, request: &Request) -> Result<Value, String> {
        match request {
            Request::Get { key: None } => Ok(self.scenario.to_json()),
            Request::Get { key: Some(key) } => self.scenario.get(key).map_err(|error| error.to_string()),
            Request::Set { key, value } => self.scenario.change(self.path, self.now, key, value),
            Request::Stats | Request::Watch { .. } => Ok(self.stats()),
            Request::Stop => {
                self.stop = true;
                Ok(Value::Null)
            }
        }
    }
}

impl LinkState<'_> {
    fn stats(&self) -> Value {
        let lateness = Some(self.lateness.histogram());
        let summary = summary::Summary::new(&self.scenario.name, self.seed, self.path, self.now, lateness);
        // This cannot fail: the summary consists of numbers, strings and lists.
        let mut stats = serde_json::to_value(summary).unwrap_or_default();
        for (endpoint, side) in self.endpoints.iter().zip(["fixed", "mobile"]) {
            stats[side] = json!({"device": endpoint.name(), "traffic": endpoint.traffic()});
        }
        stats
    }
}

/// Requests real-time scheduling with `chrt`, because nix does not have a safe wrapper for the system call.
fn request_real_time() {
    let pid = std::process::id().to_string();
    // -R: child processes are scheduled normally.
    let mut chrt = Command::new("chrt");
    chrt.args(["-R", "-f", "-p", "1", &pid]).stdin(Stdio::null()).stdout(Stdio::null());
    let result = chrt.stderr(Stdio::null()).status();
    if !result.is_ok_and(|status| status.success()) {
        tracing::warn!(
            "no real-time scheduling: it needs root or CAP_SYS_NICE, and the program chrt (util-linux)"
        );
    }
}

/// Creates a reactor whose clock starts now. The run starts at this time, so call this first.
pub(super) fn reactor() -> anyhow::Result<Reactor> {
    Ok(Reactor::new(Clock::start())?)
}
