//! `airtcp sim`: executes one run in virtual time, or the same run with several seeds.

mod host_log;
mod origin;
mod seeds;
mod tables;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use airfiles::PathSource;
use airhelp::options::number;
use airlink::capture::{Capture, Tap};
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE};
use airlink::reactor::{Clock, Reactor, Wakeup};
use airlink::scenario;
use airlink::views::summary::Summary;
use airtcp::ProfileName;
use airtcp::recovery::Recipe;
use airtcp::sender::SenderSpec;
use airtcp::tcp::Connection;
use airtcp_numbers::table::wrapped_lines;
use airtcp_numbers::units;
use airtcp_sim::run::{self, Report, Run};
use airtcp_sim::sweep::setup::{self, Setup};
use airtcp_sim::world::{Watch, World, WorldError};
use airwire::time::{Duration, Instant};
use anyhow::Context;
use clap::{ArgGroup, Args};
use host_log::HostLog;
use nix::sys::signal::Signal;
use origin::Origin;
use seeds::Seeds;
use serde::Serialize;
use serde_json::{Value, json};

use crate::shared::decisions::DecisionLog;
use crate::shared::senders::{ProfileParser, RecipeParser, SenderParser};
use crate::shared::{console, failure};

/// Run flows over a scenario in virtual time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("source").args(["scenario", "run_file"]).required(true))]
pub(crate) struct Sim {
    /// A preset's name, or a scenario file; `airlink show` lists the presets
    #[arg(long, short = 's', value_name = "SCENARIO", help_heading = "Path")]
    scenario: Option<String>,
    /// Execute the run in this file, which sets the path, the flows and the hosts; `airtcp reproduce --setups` writes such files
    #[arg(
        long = "run",
        value_name = "FILE",
        conflicts_with_all = [
            "set", "recipe", "flows", "direction", "bytes", "time", "from", "stagger", "profile",
            "receiver_profile", "receiver_options", "receive_buffer", "score",
        ],
        help_heading = "Path"
    )]
    run_file: Option<PathBuf>,
    /// Change one of the scenario's settings, such as wire.down.rate=64kbit, or remove a stage with wire.remove=true (repeatable)
    #[arg(long, value_name = "STAGE.KEY=VALUE", value_parser = scenario::parse_assignment, help_heading = "Path")]
    set: Vec<(String, String)>,
    /// Seed of all random numbers [default: the scenario's, or the run file's]
    #[arg(long, value_name = "NUMBER", help_heading = "Path")]
    seed: Option<u64>,
    /// Memory limit: packets inside the path, and the same amount for recorded decisions and losses
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = units::bytes, help_heading = "Path")]
    memory: u64,
    /// Number of seeds: runs with --seed and the numbers after it; prints means with 95 % intervals and medians
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<u64>(2..=100_000),
        conflicts_with_all = ["score", "decisions", "pcap", "trace"],
        help_heading = "Path"
    )]
    seeds: Option<u64>,

    /// Recipe, optionally with a profile: newreno@linux (repeatable: one flow each; see `airtcp algorithms`) [default: newreno]
    #[arg(long, value_name = "RECIPE[@PROFILE]", value_parser = SenderParser, hide_possible_values = true, help_heading = "Flows")]
    recipe: Vec<SenderSpec>,
    /// Number of parallel connections per recipe; at most a million in total
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Flows")]
    flows: usize,
    /// Direction of the data: down is to the mobile side, up is from it
    #[arg(long, value_name = "down|up", default_value = "down", value_parser = setup::direction, help_heading = "Flows")]
    direction: Direction,
    /// Bytes to send (each flow); the run ends when all flows are complete [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = "Flows")]
    bytes: Option<u64>,
    /// Stop after this time, even if --bytes have not arrived yet [default: 60s, or 1h with --bytes]
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, help_heading = "Flows")]
    time: Option<Duration>,
    /// Start time: measure goodput from here on
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Flows")]
    from: Option<Duration>,
    /// Delay between the starts of consecutive flows
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Flows")]
    stagger: Option<Duration>,

    /// TCP stack to imitate in everything the recipe does not set (timer, options, ACKs)
    #[arg(long, default_value = "default", value_parser = ProfileParser, help_heading = "Hosts")]
    profile: ProfileName,
    /// TCP stack that the receivers imitate; they use SACK if the sender offers it
    #[arg(long, alias = "receiver", default_value = "default", value_parser = ProfileParser, value_name = "PROFILE", help_heading = "Hosts")]
    receiver_profile: ProfileName,
    /// Recipe options for the receivers, such as no-delack
    #[arg(long, value_name = "OPTIONS", value_parser = RecipeParser, hide_possible_values = true, help_heading = "Hosts")]
    receiver_options: Option<Recipe>,
    /// Receive buffer size (of the receivers) [default: the profile's]
    #[arg(long, value_name = "SIZE", value_parser = units::buffer_size, help_heading = "Hosts")]
    receive_buffer: Option<usize>,

    /// Compare each judge of loss causes with the ground truth (see `judges` in `airtcp algorithms`)
    #[arg(long, help_heading = "Output")]
    score: bool,
    /// Write every recovery decision to this file (JSON lines): time, algorithm, action and reason
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    decisions: Option<PathBuf>,
    /// Write every packet to a pcap file (nanosecond timestamps), as seen on the senders' side
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap: Option<PathBuf>,
    /// Write window, timer and flight to this file at every ACK and timeout (JSON lines)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,
    /// Print JSON instead of text: one object per run
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show every column of the tables, however wide they get
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    wide: bool,
    #[arg(from_global)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  Transfer 2 MB over a W-CDMA link with 10 % of the blocks in error:
    airtcp sim -s wcdma-384 --set radio.down.channel.errors.bler=10% \\
      --recipe newreno+eifel --bytes 2M
  The same with 30 seeds, on all cores:
    airtcp sim -s wcdma-384 --set radio.down.channel.errors.bler=10% \\
      --recipe newreno+eifel --bytes 2M --seeds 30
  Two flows that share a path:
    airtcp sim -s sifest-fairness --for 100s --from 10s \\
      --recipe newreno --recipe newreno+sifest
  Compare the judges of loss causes with the ground truth:
    airtcp sim -s rtt-last-hop-congestion --recipe newreno+judges \\
      --for 400s --score
  Show in Wireshark why each packet was sent:
    airtcp sim -s leo --recipe sack --bytes 2M --pcap run.pcap \\
      --decisions run.jsonl
    airtcp analyze run.pcap --decisions run.jsonl --comments run.pcapng
    wireshark run.pcapng
  Repeat a run of a figure bit for bit:
    airtcp reproduce p0-fig6 --seeds 1 --most-seeds 1 --setups runs
    airtcp sim --run runs/p0-fig6-1.json
  Compare the RFCs' retransmission timer with Linux's on one path:
    airtcp sim -s leo --recipe newreno@default --recipe newreno@linux \\
      --for 60s
  Print the window over time:
    airtcp sim -s leo --recipe sack --for 60s --trace trace.jsonl
    jq -r '[.time, .cwnd] | @tsv' trace.jsonl";

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (origin, mut run) = self.plan()?;
        if let Some(count) = self.seeds {
            let Self { json, wide, quiet, .. } = self;
            return Seeds { count, run, origin, json, wide, quiet }.run();
        }
        // Virtual time begins at 1970, as in captures, so the logs of equal runs are identical.
        let log = |path| DecisionLog::create(path, SystemTime::UNIX_EPOCH);
        let mut decisions = self.decisions.as_deref().map(log).transpose()?;
        if decisions.is_some() {
            for flow in &mut run.flows {
                flow.watch = Watch::Decisions;
            }
        }
        let mut trace = self.trace.as_deref().map(|path| Trace::create(path, run.flows.len())).transpose()?;
        let create =
            |path| Capture::create(path, SystemTime::UNIX_EPOCH).map(|it| Shared(Arc::new(Mutex::new(it))));
        let capture = self.pcap.as_deref().map(create).transpose()?;
        let direction = run.flows.first().map_or(self.direction, |flow| flow.direction);
        let senders = if direction == Direction::Down { FIXED } else { MOBILE };
        let memory = self.memory;
        let prepare = |world: &mut World| {
            world.limit_memory(memory, memory);
            if let Some(capture) = capture.clone() {
                world.tap(senders, capture);
            }
            if let Some(log) = HostLog::if_enabled(senders) {
                world.listen(log);
            }
        };
        let mut stop = Stop::watch()?;
        let (report, mut world) = run::run_stoppable(&run, prepare, |world| {
            if let Some(trace) = &mut trace {
                trace.look(world);
            }
            stop.look()
        })
        .map_err(with_advice)?;
        if let Some(Shared(capture)) = &capture {
            capture.lock().unwrap_or_else(PoisonError::into_inner).flush()?;
        }
        if let Some(trace) = trace {
            trace.finish()?;
        }
        if let Some(log) = &mut decisions {
            write_decisions(log, &mut world)?;
        }
        let mut out = console::stdout();
        if self.json {
            writeln!(out, "{}", json(&run, &origin, &report))?;
        } else {
            let end = Instant::ZERO + seconds(&report);
            let summary = Summary::new(&run.scenario.name, run.seed, world.path(), end, None);
            let width = console::width(self.wide);
            let summary = wrapped_lines(&summary.to_string(), width);
            write!(out, "{}\n{summary}", tables::tables(&report, width))?;
        }
        match stop.signal {
            Some(signal) => Err(failure::stopped(signal, self.stopped(&report))),
            None => Ok(()),
        }
    }

    /// Returns the run that the options or the file describe.
    fn plan(&self) -> anyhow::Result<(Origin, Run)> {
        if let Some(file) = &self.run_file {
            let run = origin::read(file)?;
            let seed = self.seed.unwrap_or(run.seed);
            return Ok((Origin::File(file.clone()), Run { seed, ..run }));
        }
        let setup = self.setup();
        setup.check().map_err(failure::usage)?;
        let scenario = setup
            .scenario(Path::new(""), PathSource::User)
            .map_err(|error| failure::usage(error.to_string()))?;
        setup.notices(&scenario).iter().for_each(|notice| tracing::warn!("{notice}"));
        let seed = self.seed.unwrap_or(scenario.seed);
        let run = setup.run(scenario, seed);
        Ok((Origin::Options(setup), run))
    }

    /// Returns the message for a run that a signal stopped: the virtual time, and the files written so far.
    fn stopped(&self, report: &Report) -> String {
        let files = [(&self.decisions, "decisions"), (&self.trace, "trace"), (&self.pcap, "packets")];
        let files: Vec<String> = files
            .iter()
            .filter_map(|(path, what)| Some(format!("{what} in {}", path.as_deref()?.display())))
            .collect();
        let files = if files.is_empty() { String::new() } else { format!(": {}", files.join(", ")) };
        format!(
            "stopped by a signal after {:.3} s of virtual time; the output ends there{files}",
            report.seconds
        )
    }

    fn setup(&self) -> Setup {
        Setup {
            scenario: self.scenario.clone().unwrap_or_default(),
            settings: self.set.clone(),
            recipes: self.recipe.clone(),
            flows: self.flows,
            direction: self.direction,
            bytes: self.bytes,
            time: self.time,
            from: self.from.unwrap_or_default(),
            stagger: self.stagger.unwrap_or_default(),
            profile: self.profile,
            receiver: self.receiver_profile,
            receiver_options: self.receiver_options.clone(),
            receive_buffer: self.receive_buffer,
            score: self.score,
        }
    }
}

/// Adds the option that raises the memory limit.
fn with_advice(error: WorldError) -> anyhow::Error {
    match error {
        WorldError::Memory(_) | WorldError::Records { .. } => {
            failure::run(format!("{error}, or allow more with --memory"))
        }
        other => other.into(),
    }
}

fn json(run: &Run, origin: &Origin, report: &Report) -> Value {
    let (name, command) = (&run.scenario.name, origin.command(run.seed));
    json!({ "schema_version": 1, "scenario": name, "seed": run.seed, "command": command, "report": report })
}

fn seconds(report: &Report) -> Duration {
    Duration::from_secs_f64(report.seconds)
}

fn write_decisions(log: &mut DecisionLog, world: &mut World) -> io::Result<()> {
    let flows = world.flows();
    for flow in 0..flows {
        log.write((flows > 1).then_some(flow as u64 + 1), world.decisions(flow))?;
    }
    log.flush()
}

/// A capture that the world writes to. It is flushed after the run, to report write errors.
#[derive(Clone)]
struct Shared(Arc<Mutex<Capture>>);

impl Tap for Shared {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).packet(at, packet);
    }
}

/// Ends the run on SIGINT, SIGTERM or SIGHUP. The run ends between two events, so that no output is
/// truncated.
struct Stop {
    reactor: Reactor,
    events: u32,
    signal: Option<Signal>,
}

/// Events between two checks for signals. A check costs as much as several events.
const LOOK: u32 = 1000;

impl Stop {
    fn watch() -> anyhow::Result<Self> {
        let mut reactor = Reactor::new(Clock::start())?;
        reactor.catch_stop_signals()?;
        Ok(Self { reactor, events: 0, signal: None })
    }

    fn look(&mut self) -> ControlFlow<()> {
        self.events += 1;
        if self.events < LOOK {
            return ControlFlow::Continue(());
        }
        self.events = 0;
        // The deadline has passed, so this does not wait.
        self.signal = self.reactor.wait(Some(Instant::ZERO)).ok().and_then(Wakeup::stop_signal);
        if self.signal.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// `--trace`: writes a line after each segment that a flow received and after each timeout.
struct Trace {
    path: PathBuf,
    file: BufWriter<File>,
    /// Numbers of received segments and of timeouts at the last call, for each flow.
    seen: Vec<(u64, u64)>,
    error: Option<io::Error>,
}

/// A line of the trace. Windows are in segments, times in seconds, and amounts of data in bytes.
#[derive(Serialize)]
struct Point {
    time: f64,
    flow: usize,
    acked: u64,
    cwnd: f64,
    // JSON has no infinity: an arbitrarily high threshold becomes null.
    ssthresh: f64,
    srtt_seconds: Option<f64>,
    rto_seconds: f64,
    flight: usize,
}

impl Trace {
    fn create(path: &Path, flows: usize) -> anyhow::Result<Self> {
        let file = airfiles::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), seen: vec![(0, 0); flows], error: None })
    }

    fn look(&mut self, world: &World) {
        for flow in 0..world.flows() {
            let Some(connection) = world.sender(flow) else { continue };
            let now = (connection.statistics().segments_in, connection.recovery().counters().timeouts);
            if std::mem::replace(&mut self.seen[flow], now) != now && self.error.is_none() {
                self.error = self.write(world.now(), flow, connection).err();
            }
        }
    }

    fn write(&mut self, now: Instant, flow: usize, connection: &Connection) -> io::Result<()> {
        let congestion = connection.recovery().congestion();
        let point = Point {
            time: now.as_secs_f64(),
            flow: flow + 1,
            acked: connection.statistics().bytes_acked,
            cwnd: congestion.cwnd + congestion.inflation(),
            ssthresh: congestion.ssthresh,
            srtt_seconds: connection.rtt().srtt().map(|srtt| srtt.as_secs_f64()),
            rto_seconds: connection.rtt().rto().get().as_secs_f64(),
            flight: connection.unacknowledged().saturating_sub(connection.unsent()),
        };
        serde_json::to_writer(&mut self.file, &point)?;
        self.file.write_all(b"\n")
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let written = match self.error.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use airlogs::LogArgs;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
        #[command(flatten)]
        _log: LogArgs,
    }

    #[derive(clap::Subcommand)]
    enum Command {
        Sim(Box<Sim>),
    }

    fn read(arguments: &[String]) -> Setup {
        let words = ["airtcp", "sim"].map(str::to_owned).to_vec();
        let line = Line::try_parse_from([words, arguments.to_vec()].concat());
        let Command::Sim(sim) = line.unwrap_or_else(|error| panic!("{error}")).command;
        sim.setup()
    }

    #[test]
    fn run_file_excludes_options_that_it_contains() {
        let parses = |options: &str| {
            Line::try_parse_from(["airtcp", "sim"].into_iter().chain(options.split_whitespace())).is_ok()
        };
        assert!(parses("--run run.json --seed 2 --seeds 5 --json --memory 2G"));
        assert!(parses("--run run.json --pcap run.pcap --trace trace.jsonl --decisions run.jsonl"));
        for option in [
            "--scenario leo",
            "--set wire.down.rate=1Mbit",
            "--recipe sack",
            "--flows 1",
            "--direction down",
            "--bytes 1M",
            "--for 1s",
            "--from 1s",
            "--stagger 1s",
            "--profile default",
            "--receiver-profile default",
            "--receiver-options no-delack",
            "--receive-buffer 1M",
            "--score",
        ] {
            assert!(!parses(&format!("--run run.json {option}")), "{option}");
        }
        assert!(!parses("--recipe sack"), "a run needs a scenario or a file");
    }

    #[test]
    fn setup_survives_command_line_round_trip() {
        let mut setup = Setup::new("wcdma-384");
        assert_eq!(read(&setup.arguments(3)), setup);
        setup = Setup {
            settings: vec![("radio.down.rate".to_owned(), "64kbit".to_owned())],
            recipes: ["sack+iw=4", "newreno+min-rto=200@linux"].map(|text| text.parse().unwrap()).into(),
            flows: 3,
            direction: Direction::Up,
            bytes: Some(1 << 20),
            time: Some(Duration::from_millis(12_500)),
            from: Duration::from_secs(2),
            stagger: Duration::from_nanos(1_500),
            profile: ProfileName::Ns2,
            receiver: ProfileName::Linux,
            receiver_options: Some("no-delack".parse().unwrap()),
            receive_buffer: Some(8192),
            score: true,
            ..setup
        };
        assert_eq!(read(&setup.arguments(3)), setup);
    }
}
