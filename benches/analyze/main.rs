//! What the analysis of a large capture costs, beside tcptrace and tshark on the same file.
//!
//! `cargo bench --bench analyze [-- MEGABYTES [ROUNDS]]`. The capture is made up: bulk transfers over Ethernet with
//! losses, many at a time. What is not installed (Debian's packages `tcptrace` and `tshark`) is left out.
//!
//! Every run is a process of its own. All commands run in every round, in turn; one run before them, which is not
//! counted, puts the file into the page cache.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use airtcp_testkit::frames::bulk::Bulk;
use airtcp_testkit::programs::program;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// The fields of tshark that compare with what ours finds.
const FIELDS: [&str; 7] = [
    "tcp.stream",
    "frame.time_epoch",
    "tcp.seq",
    "tcp.ack",
    "tcp.len",
    "tcp.analysis.retransmission",
    "tcp.analysis.ack_rtt",
];

fn main() {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let Some(("run", command)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return run(command);
    }
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let megabytes = numbers.next().unwrap_or(1000);
    let rounds = numbers.next().unwrap_or(3);
    let file = TempFile(std::env::temp_dir().join(format!("airtcp-bench-{}.pcap", std::process::id())));
    let packets = make(&file.0, megabytes);
    compare(&file.0, rounds, packets);
}

/// A file that is removed in the end.
struct TempFile(PathBuf);

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A segment and its ACK have about so many octets in the file.
const PER_SEGMENT: u64 = 1514 + 66 + 2 * 16;
const SEGMENTS: u64 = 2000;
const PARALLEL: u64 = 50;

fn make(path: &Path, megabytes: u64) -> u64 {
    eprintln!("making {megabytes} MB of capture in {}", path.display());
    let connections = (megabytes * 1_000_000 / PER_SEGMENT / SEGMENTS).max(1);
    let bulk = Bulk { parallel: PARALLEL.min(connections), connections, segments: SEGMENTS, loss: 100 };
    let mut output = BufWriter::new(File::create(path).expect("the temporary directory can be written"));
    bulk.write(&mut output).and_then(|()| output.flush()).expect("there is room for the capture");
    2 * connections * SEGMENTS
}

fn commands(file: &Path) -> Vec<(&'static str, Vec<String>)> {
    let file = file.display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).chain([file.clone()]).collect();
    let airtcp = program("airtcp").display().to_string();
    let mut commands = vec![("airtcp analyze --json", words(&[&airtcp, "analyze", "--json"]))];
    if is_there("tcptrace") {
        commands.push(("tcptrace -n -l", words(&["tcptrace", "-n", "-l"])));
    }
    if is_there("tshark") {
        let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
        let tshark: Vec<&str> =
            ["tshark", "-n", "-T", "fields"].into_iter().chain(fields).chain(["-r"]).collect();
        commands.push(("tshark -T fields", words(&tshark)));
    }
    commands
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("no {program} here (`apt-get install {program}`): without it");
    }
    there
}

// ----- one run -----

/// Runs one command and prints its wall seconds, its processor seconds and its KiB of memory.
fn run(command: &[String]) {
    let begin = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
    let status = Command::new(&command[0])
        .args(&command[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program is there");
    let wall = SystemTime::UNIX_EPOCH.elapsed().expect("after 1970") - begin;
    assert!(status.success(), "{command:?}: {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage works for children");
    let cpu = (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6;
    println!("{} {cpu} {}", wall.as_secs_f64(), usage.max_rss());
}

// ----- the comparison -----

#[derive(Clone, Copy)]
struct Sample {
    wall: f64,
    cpu: f64,
    kib: f64,
}

fn sample(command: &[String]) -> Sample {
    let own = std::env::current_exe().expect("this program has a path");
    let output = Command::new(own).arg("run").args(command).output().expect("this program runs");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [wall, cpu, kib] => Sample { wall, cpu, kib },
        _ => panic!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn compare(file: &Path, rounds: u64, packets: u64) {
    let commands = commands(file);
    let mut samples = vec![Vec::new(); commands.len()];
    sample(&commands[0].1);
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for ((_, command), samples) in commands.iter().zip(&mut samples) {
            samples.push(sample(command));
        }
    }
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    println!("{} MB, about {packets} packets; median of {rounds}", bytes / 1_000_000);
    println!("{:<22} {:>9} {:>11} {:>10} {:>9}", "", "seconds", "processor s", "ns/packet", "MiB");
    for ((name, _), samples) in commands.iter().zip(&samples) {
        let median = |of: fn(&Sample) -> f64| {
            let mut values: Vec<_> = samples.iter().map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let (wall, cpu) = (median(|sample| sample.wall), median(|sample| sample.cpu));
        let (per_packet, mib) = (cpu * 1e9 / packets as f64, median(|sample| sample.kib) / 1024.0);
        println!("{name:<22} {wall:>9.2} {cpu:>11.2} {per_packet:>10.0} {mib:>9.1}");
    }
}
