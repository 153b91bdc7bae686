//! Names the congestion controls of Linux from captures of real transfers: a kernel in user-mode Linux sends over random
//! paths (`interop/congestion.sh`).

use std::process::Command;
use std::sync::Mutex;
use std::thread;

use airtcp_testkit::machine::{TempDir, ended, run};
use airtcp_testkit::programs::{program, repository};
use airtcp_testkit::sample::{seed, size};
use airwire::rng::Stream;
use serde_json::Value;

/// Names in Linux.
const CONTROLS: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];
/// Transfers that run in parallel. Each needs up to a quarter of a core.
const JOBS: usize = 6;

/// A random path, the same for all congestion controls.
struct RandomPath {
    number: u64,
    scenario: String,
    seconds: u64,
}

impl RandomPath {
    fn draw(number: u64) -> Self {
        let mut stream = Stream::new(seed(), &format!("congestion/{number}"));
        // Uniform in the logarithm.
        let mut between = |least: f64, most: f64| least * (most / least).powf(stream.unit());
        let (mbit, rtt) = (between(2.0, 15.0), between(20.0, 150.0));
        let packets = (mbit * rtt / 12.0 * between(0.4, 3.0)).max(5.0) as u64;
        let loss = [0.0, 0.0, 0.0, 0.1, 0.3, 0.7][stream.below(6) as usize];
        let delay = (rtt / 2.0) as u64;
        let scenario = format!(
            "schema = 1\n\
             [[stage]]\nkind = \"link\"\n\
             down = {{ rate = \"{}kbit\", delay = \"{delay}ms\", queue = {{ packets = {packets} }} }}\n\
             up = {{ delay = \"{delay}ms\" }}\n\
             [[stage]]\nkind = \"loss\"\ndown = {{ model = \"uniform\", per = \"{loss}%\" }}\n",
            (1000.0 * mbit) as u64,
        );
        Self { number, scenario, seconds: 25 + stream.below(15) }
    }
}

/// Comparison of the names with the truth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Judgement {
    /// The right name.
    Named,
    /// Several names, of which the first one is right.
    First,
    /// Several names, with the right one.
    Among,
    Undetermined,
    Wrong,
    ConfidentlyWrong,
}

impl Judgement {
    fn of(control: &str, findings: &Value) -> Self {
        // TCP-LP has the same window as Reno.
        let truth = if control == "lp" { "reno" } else { control };
        let others = findings["or"].as_array().unwrap().iter().filter_map(Value::as_str);
        let names: Vec<_> = findings["name"].as_str().into_iter().chain(others).collect();
        match names.iter().position(|name| *name == truth) {
            _ if names.is_empty() => Self::Undetermined,
            Some(0) if names.len() == 1 => Self::Named,
            Some(0) => Self::First,
            Some(_) => Self::Among,
            None if findings["confidence"] == "high" => Self::ConfidentlyWrong,
            None => Self::Wrong,
        }
    }
}

fn transfer(directory: &TempDir, control: &str, path: &RandomPath) -> (Judgement, String) {
    let RandomPath { number, scenario, seconds } = path;
    let scenario = directory.write(&format!("{control}-{number}.toml"), scenario);
    let capture = directory.path(&format!("{control}-{number}.pcap"));
    let mut command = Command::new(repository().join("interop/congestion.sh"));
    command
        .args([control, &seconds.to_string(), &capture, "-s", &scenario, "--seed", &number.to_string()])
        .env("AIRLINK", program("airlink"));
    let captured = ended(&mut command);
    assert_eq!(captured.code, 0, "{control}: {}", captured.stderr);
    let analyzed = run(&["analyze", "--json", &capture]);
    let document: Value = serde_json::from_str(&analyzed.stdout).unwrap();
    let directions = document["captures"][0]["connections"][0]["directions"].as_array().unwrap();
    let findings = directions.iter().map(|direction| &direction["sender"]["congestion_control"]);
    let findings = findings.max_by_key(|findings| findings["name"].is_string()).unwrap();
    std::fs::remove_file(&capture).unwrap();
    (Judgement::of(control, findings), findings.to_string())
}

#[test]
#[ignore = "nightly: 68 transfers of half a minute by user-mode Linux"]
fn congestion_controls_of_linux_are_named_over_random_paths() {
    let directory = TempDir::new("congestion");
    let paths: Vec<_> = (0..size(1, 4)).map(RandomPath::draw).collect();
    let cases = Mutex::new(paths.iter().flat_map(|path| CONTROLS.map(|control| (control, path))));
    let judged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                loop {
                    let Some((control, path)) = cases.lock().unwrap().next() else { return };
                    let (judgement, findings) = transfer(&directory, control, path);
                    println!("{control} over path {}: {judgement:?} {findings}", path.number);
                    judged.lock().unwrap().push(judgement);
                }
            });
        }
    });
    let judged = judged.into_inner().unwrap();
    let percent = |wanted: &[Judgement]| {
        100 * judged.iter().filter(|judgement| wanted.contains(judgement)).count() / judged.len()
    };
    use Judgement::*;
    for judgement in [Named, First, Among, Undetermined, Wrong, ConfidentlyWrong] {
        println!("{judgement:?}: {} %", percent(&[judgement]));
    }
    assert!(percent(&[Named]) >= 65);
    assert!(percent(&[Named, First, Among]) >= 90);
    assert!(percent(&[ConfidentlyWrong]) <= 2);
}
