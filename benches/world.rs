//! CPU cost of the virtual-time world: compared with ns-2 and ns-3 on the same network, of a saturated NR bearer
//! compared with ns-3's LTE, and with many flows.
//!
//! `cargo bench --bench world [-- ROUNDS]`. A simulator that is not installed is left out: ns-2 is the Debian
//! package `ns2`, and `benches/ns3/build.sh target/ns3` installs ns-3.
//!
//! Each run is a separate process with one thread. The benchmark measures CPU time, which other
//! programs disturb less than wall time. Each round runs the simulators in turn.

use std::path::PathBuf;
use std::process::{Command, Output};

use airlink::scenario::Scenario;
use airtcp::profile::{AckPolicy, Profile};
use airtcp::recovery::Recipe;
use airtcp::rtt::TimerStyle;
use airtcp_numbers::statistics::spread;
use airtcp_sim::run::{Run, Until, run};
use airtcp_sim::world::{Flow, HostSpec, Length, World, WorldConfig};
use airwire::time::{Duration, Instant};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ns2");
const SIMULATORS: [Simulator; 3] = [Simulator::Airtcp, Simulator::Ns2, Simulator::Ns3];
/// Durations of a run in seconds: [`SHORT`] as in the paper, [`LONG`] so that the start of the
/// program is negligible.
const SHORT: u64 = 100;
const LONG: u64 = 20_000;
const FLOWS: [usize; 4] = [10, 100, 1000, 10_000];
/// Duration of a run over a radio bearer in seconds.
const RADIO: u64 = 10;
/// Payload of a data packet on the radio bearers.
const RADIO_MSS: u64 = 1448;
/// Data packets of each world with many flows.
const PACKETS: u64 = 2_000_000;

fn main() {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    match (words.first().map(String::as_str), numbers.as_slice()) {
        (Some("p0"), [seconds, seed]) => p0(*seconds, *seed),
        (Some("nr"), [seconds, seed]) => nr(*seconds, *seed),
        (Some("flows"), [flows]) => many_flows(*flows, PACKETS),
        (Some("flows"), [flows, packets]) => many_flows(*flows, *packets),
        (_, rounds) => compare(rounds.first().copied().unwrap_or(11)),
    }
}

const HEADERS: u16 = 40;
const MSS: u16 = 512 - HEADERS;

/// The hosts of paper P0 (Pan, Mark, Shen), with the parameters that fit the paper's numbers:
/// packets of 512 bytes on the wire, ticks of 100 ms, delayed ACKs, a window of 16 segments.
fn hosts() -> [HostSpec; 2] {
    let mut profile = Profile::ns2().with(|it| {
        it.handshake.mss = Some(MSS);
        it.acks.recv_buffer = 16 * usize::from(MSS);
    });
    profile.timers.rto.style = TimerStyle::Ns2 {
        tick: Duration::from_millis(100),
        phase: Duration::from_nanos(55_588_070),
        min_before_backoff: true,
    };
    profile.timers.rto.limits.min = Duration::from_millis(200);
    let ack = AckPolicy { delay: Duration::from_millis(200), ..AckPolicy::DELAYED };
    let receiver = profile.clone().with(|it| it.acks.policy = ack);
    let recipe = "newreno".parse().expect("newreno is in the catalogue");
    [HostSpec { profile, recipe }, HostSpec { profile: receiver, recipe: Recipe::default() }]
}

fn p0(seconds: u64, seed: u64) {
    let [fixed, mobile] = hosts();
    let report = run(&Run {
        scenario: Scenario::load(&format!("{SCRIPTS}/p0.toml")).expect("the scenario is valid"),
        seed,
        fixed,
        mobile,
        flows: vec![Flow::down(Length::Endless)],
        until: Until::At(Instant::from_secs(seconds)),
        from: Instant::ZERO,
        score: false,
    })
    .expect("the run is valid");
    println!("{} {}", report.flows[0].data_segments, report.flows[0].delivered / u64::from(MSS));
}

/// One CUBIC flow that saturates the preset `nr-fr1-100MHz`. HyStart is off, because HARQ would end slow start early.
fn nr(seconds: u64, seed: u64) {
    let host = |recipe: &str| HostSpec {
        profile: Profile::linux(),
        recipe: recipe.parse().expect("the recipe is in the catalogue"),
    };
    let report = run(&Run {
        scenario: Scenario::load("nr-fr1-100MHz").expect("the preset exists"),
        seed,
        fixed: host("sack+rack+cubic+prr"),
        mobile: host("sack"),
        flows: vec![Flow::down(Length::Endless)],
        until: Until::At(Instant::from_secs(seconds)),
        from: Instant::ZERO,
        score: false,
    })
    .expect("the run is valid");
    println!("{}", report.flows[0].delivered / RADIO_MSS);
}

/// Runs `flows` flows of 100 kbit/s each over one link until they have sent about `packets` packets in total.
fn many_flows(flows: u64, packets: u64) {
    let scenario = format!(
        "schema = 1\n\
         [[stage]]\nkind = \"link\"\nboth = {{ rate = \"{}kbit\", delay = \"50ms\", queue = {{ packets = {} }} }}\n\
         [[stage]]\nkind = \"loss\"\ndown = {{ model = \"uniform\", per = \"1%\" }}\n",
        100 * flows,
        20 * flows,
    );
    let [fixed, mobile] = hosts();
    let (empty, before) = (resident(), cpu(UsageWho::RUSAGE_SELF));
    let mut world = World::new(WorldConfig {
        scenario: Scenario::parse(&scenario, "many flows").expect("the scenario is valid"),
        seed: 1,
        fixed,
        mobile,
        flows: vec![Flow::down(Length::Endless); flows as usize],
    })
    .expect("the number of flows is valid");
    let per_second = 100_000.0 / (8.0 * f64::from(MSS + HEADERS));
    let seconds = packets as f64 / (per_second * flows as f64);
    world.run_until(Instant::ZERO + Duration::from_secs_f64(seconds)).expect("the run is valid");
    let spent = cpu(UsageWho::RUSAGE_SELF) - before;
    let packets: u64 = world.results().iter().map(|result| result.statistics.data_segments_out).sum();
    println!("{} {}", spent * 1e9 / packets as f64, (resident() - empty) / flows as f64);
}

fn compare(rounds: u64) {
    let installed: Vec<_> = SIMULATORS.into_iter().filter(|simulator| simulator.is_installed()).collect();
    let radio: Vec<_> = installed.iter().copied().filter(|simulator| simulator.has_radio()).collect();
    let [mut short, mut long]: [Vec<Samples>; 2] =
        [(); 2].map(|()| installed.iter().map(|simulator| (*simulator, Vec::new())).collect());
    for seed in 1..=rounds {
        eprintln!("round {seed} of {rounds}");
        for (seconds, results) in [(SHORT, &mut short), (LONG, &mut long)] {
            for (simulator, samples) in results {
                samples.push(Sample::of(&mut simulator.p0(seconds, seed)));
            }
        }
    }
    println!("P0's network, one NewReno flow next to a voice stream, 8 % of loss; median (least to most)");
    table(&format!("{SHORT} s, runs of whole processes per s of CPU"), &short, |sample| 1.0 / sample.cpu);
    table(&format!("{LONG} s, 1000 data packets per s of CPU"), &long, |sample| {
        sample.numbers[0] / sample.cpu / 1e3
    });
    table(&format!("{LONG} s, packets delivered"), &long, |sample| sample.numbers[1]);

    let mut radio: Vec<Samples> = radio.into_iter().map(|simulator| (simulator, Vec::new())).collect();
    for seed in 1..=rounds.div_ceil(3) {
        for (simulator, samples) in &mut radio {
            samples.push(Sample::of(&mut simulator.radio(RADIO, seed)));
        }
    }
    println!(
        "\nOne CUBIC flow over a saturated bearer with RLC AM, {RADIO} s: nr-fr1-100MHz in airtcp, LTE with 50 \
         resource blocks in ns-3"
    );
    table("data packets per s of CPU", &radio, |sample| sample.numbers[0] / sample.cpu);
    table("Mbit/s", &radio, |sample| sample.numbers[0] * 8.0 * RADIO_MSS as f64 / 1e6 / RADIO as f64);

    println!(
        "\nNewReno flows on one link, windows of 16 segments, {PACKETS} data packets together, 1 % of loss"
    );
    println!(
        "{:>8} {:>28} {:>28} {:>24}",
        "flows", "ns of CPU per data packet", "of that with 10", "bytes of memory per flow"
    );
    let mut costs: [Vec<f64>; FLOWS.len()] = Default::default();
    let mut memory = [0.0; FLOWS.len()];
    for _ in 0..rounds.div_ceil(3) {
        for (index, flows) in FLOWS.into_iter().enumerate() {
            let sample = Sample::of(&mut ours("flows", &[flows as u64]));
            costs[index].push(sample.numbers[0]);
            memory[index] = sample.numbers[1];
        }
    }
    for (index, flows) in FLOWS.into_iter().enumerate() {
        let ratios: Vec<_> = costs[index].iter().zip(&costs[0]).map(|(cost, least)| cost / least).collect();
        println!("{flows:>8} {:>28} {:>28} {:>24.0}", spread(&costs[index]), spread(&ratios), memory[index]);
    }
}

#[derive(Clone, Copy)]
enum Simulator {
    Airtcp,
    Ns2,
    Ns3,
}

impl Simulator {
    fn name(self) -> &'static str {
        match self {
            Self::Airtcp => "airtcp",
            Self::Ns2 => "ns-2",
            Self::Ns3 => "ns-3",
        }
    }

    fn is_installed(self) -> bool {
        let (installed, how) = match self {
            Self::Airtcp => return true,
            Self::Ns2 => (Command::new("ns").arg("/dev/null").output().is_ok(), "`apt-get install ns2`"),
            Self::Ns3 => (ns3("p0").exists(), "`benches/ns3/build.sh target/ns3`"),
        };
        if !installed {
            eprintln!("{} is not installed ({how}), so it is left out", self.name());
        }
        installed
    }

    /// Whether the simulator has a radio bearer with RLC AM.
    fn has_radio(self) -> bool {
        match self {
            Self::Airtcp => true,
            Self::Ns2 => false,
            Self::Ns3 => {
                let installed = ns3("lte").exists();
                if !installed {
                    eprintln!(
                        "ns-3's LTE is not installed (`benches/ns3/build.sh target/ns3`), so its bearer is left out"
                    );
                }
                installed
            }
        }
    }

    /// A run of P0's network.
    fn p0(self, seconds: u64, seed: u64) -> Command {
        let numbers = [seconds, seed].map(|number| number.to_string());
        let mut command = match self {
            Self::Airtcp => return ours("p0", &[seconds, seed]),
            Self::Ns2 => Command::new("ns"),
            Self::Ns3 => Command::new(ns3("p0")),
        };
        if let Self::Ns2 = self {
            command.arg(format!("{SCRIPTS}/p0.tcl"));
        }
        command.args(numbers);
        command
    }

    /// A run over a radio bearer.
    fn radio(self, seconds: u64, seed: u64) -> Command {
        if let Self::Airtcp = self {
            return ours("nr", &[seconds, seed]);
        }
        let mut command = Command::new(ns3("lte"));
        command.args([seconds, seed].map(|number| number.to_string()));
        command
    }
}

/// A program that `benches/ns3/build.sh` builds in `target/ns3`.
fn ns3(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let target = program.ancestors().nth(3).expect("this program is in target/release/deps");
    target.join("ns3").join(name)
}

/// The samples of one simulator, one per round.
type Samples = (Simulator, Vec<Sample>);

struct Sample {
    /// CPU time in seconds, user and system.
    cpu: f64,
    /// The numbers that the process printed.
    numbers: Vec<f64>,
}

impl Sample {
    fn of(command: &mut Command) -> Self {
        let before = cpu(UsageWho::RUSAGE_CHILDREN);
        let Output { status, stdout, .. } = command.output().expect("the command starts");
        assert!(status.success(), "{command:?}: {status}");
        let text = String::from_utf8_lossy(&stdout);
        let numbers = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        Self { cpu: cpu(UsageWho::RUSAGE_CHILDREN) - before, numbers }
    }
}

fn ours(what: &str, numbers: &[u64]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.arg(what).args(numbers.iter().map(u64::to_string));
    command
}

/// Prints the values of each simulator, and the ratios of our values to each simulator's in the same rounds.
fn table(what: &str, results: &[Samples], of: fn(&Sample) -> f64) {
    println!("{what}");
    let values: Vec<Vec<f64>> = results.iter().map(|(_, samples)| samples.iter().map(of).collect()).collect();
    for ((simulator, _), theirs) in results.iter().zip(&values) {
        let ratios: Vec<_> = values[0].iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        println!("    {:<8} {:>28}   airtcp / this: {}", simulator.name(), spread(theirs), spread(&ratios));
    }
}

/// Returns the CPU time in seconds, user and system.
fn cpu(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("getrusage works");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

/// Returns the resident memory in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc/self/status is readable");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the status has VmRSS");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}
