//! Time that users wait: complete commands with the programs as installed, and the speed-up of a
//! sweep by several processes.
//!
//! `cargo bench --bench waits [-- ROUNDS [WHAT]]` runs the rows whose names begin with WHAT. The
//! programs are those in `AIRTCP_PROGRAMS`, or next to this one. `AIRTCP_BEFORE=DIRECTORY` also
//! measures the programs of another build: each round runs both in turn. `demo` needs root, and is skipped
//! without root privileges.

use std::borrow::BorrowMut;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use airtcp_numbers::statistics::{median, spread};
use airtcp_testkit::programs::program;
use airtcp_testkit::temporary::TempDir;

/// Ten thousand runs of a few seconds over a radio link. Each run becomes a row of the results.
const SWEEP: &str = r#"
schema = 1
seeds = 1000
metrics = ["goodput", "timeouts"]

[fixed]
scenario = "sifest-random"
bytes = "20k"

[axes]
recipe = ["newreno", "sack"]
radio-errors.down.good = ["1%", "2%", "3%", "5%", "8%"]
"#;
const RUNS: f64 = 10_000.0;

fn main() {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rounds = words.first().map_or(3, |word| word.parse().expect("ROUNDS is a number"));
    let wanted = |name: &str| words.get(1).is_none_or(|what| name.starts_with(what.as_str()));
    let ours = program("airtcp");
    let before = std::env::var_os("AIRTCP_BEFORE").map(|directory| Path::new(&directory).join("airtcp"));
    println!("{:<34} {:>8}   before / now, same round", "", "seconds");
    for (name, run) in WAITS {
        if !wanted(name) {
            continue;
        }
        if name.starts_with("demo") && !nix::unistd::geteuid().is_root() {
            eprintln!("`demo` is skipped: it needs root");
            continue;
        }
        let mut samples = [Vec::new(), Vec::new()];
        for round in 1..=rounds {
            eprintln!("{name}: round {round} of {rounds}");
            for (program, samples) in [Some(&ours), before.as_ref()].into_iter().zip(&mut samples) {
                samples.extend(program.map(run));
            }
        }
        let [now, then] = samples;
        let ratios: Vec<f64> = now.iter().zip(&then).map(|(now, then)| then / now).collect();
        println!("{name:<34} {:>8.1}   {}", median(&now).unwrap_or(0.0), spread(&ratios));
    }
    if wanted("efficiency") {
        efficiency(&ours, rounds);
    }
}

type Run = fn(&PathBuf) -> f64;

const WAITS: [(&str, Run); 3] = [
    ("reproduce, a figure of each paper", |program| {
        let figures = ["p0-fig11a", "p1-fig8", "p2-fig5", "p3-fairness", "p4-fig8"];
        seconds_until_all_end([Command::new(program).arg("reproduce").args(figures).args([
            "--seeds=10",
            "--most-seeds=10",
            "-q",
        ])])
    }),
    ("sweep of 10,000 runs", |program| {
        let directory = TempDir::new("waits");
        let plan = directory.write("many.toml", SWEEP);
        seconds_until_all_end([Command::new(program).args(["sweep", "run", "-q", &plan])])
    }),
    ("demo", |program| {
        let directory = TempDir::new("waits");
        seconds_until_all_end([Command::new(program).args([
            "demo",
            "-q",
            "--output",
            &directory.path("demo"),
        ])])
    }),
];

/// Fills one store by 1, 2, … processes, up to the number of cores. Each process computes a shard
/// of the runs in one thread, as under Slurm and GNU parallel.
fn efficiency(program: &PathBuf, rounds: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("\n{:<34} {:>8}   runs per core-second / of one process", "efficiency of a sweep", "runs/s");
    let mut samples = vec![Vec::new(); cores];
    for round in 1..=rounds {
        eprintln!("efficiency: round {round} of {rounds}");
        for tasks in 1..=cores {
            // The store is created next to the plan.
            let directory = TempDir::new("waits");
            let plan = directory.write("many.toml", SWEEP);
            let mut commands: Vec<_> = (1..=tasks).map(|_| Command::new(program)).collect();
            for (index, command) in commands.iter_mut().enumerate() {
                let shard = format!("--shard={}/{tasks}", index + 1);
                command.args(["sweep", "run", "-q", "--jobs=1", &shard, &plan]);
            }
            samples[tasks - 1].push(RUNS / seconds_until_all_end(commands.iter_mut()));
        }
    }
    for (index, rates) in samples.iter().enumerate() {
        let tasks = index + 1;
        let ratios =
            rates.iter().zip(&samples[0]).map(|(rate, one)| rate / tasks as f64 / one).collect::<Vec<_>>();
        let name = format!("{tasks} of {cores} cores");
        println!("{name:<34} {:>8.0}   {}", median(rates).unwrap_or(0.0), spread(&ratios));
    }
}

/// Starts all commands at once and returns the seconds until the last one ends.
fn seconds_until_all_end<C: BorrowMut<Command>>(commands: impl IntoIterator<Item = C>) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "the benchmark measures wall time")]
    let begin = Instant::now();
    let start = |mut command: C| {
        let command = command.borrow_mut();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        (format!("{command:?}"), command.spawn().expect("the program starts"))
    };
    let children: Vec<(String, Child)> = commands.into_iter().map(start).collect();
    for (command, mut child) in children {
        let status = child.wait().expect("the program ends");
        assert!(status.success(), "{command}: {status}");
    }
    begin.elapsed().as_secs_f64()
}
