//! Time and memory that `airtcp analyze` needs for a large capture, compared with tcptrace and
//! tshark on the same file.
//!
//! `cargo bench --bench analyze [-- WHAT]`, where WHAT is one of
//! - `[MEGABYTES [ROUNDS]]`: a synthetic capture of bulk transfers over Ethernet with losses, 50 at a time;
//! - `many [CONNECTIONS [ROUNDS]]`: a synthetic capture of short transfers, 500 at a time; 100,000
//!   connections yield a gigabyte;
//! - `real [CONNECTIONS [ROUNDS]]`: connections of this machine's kernel over a path with losses,
//!   captured by tcpdump (needs root). Analyses whole packets, and then the first 128 bytes of each;
//! - `open [CONNECTIONS [ROUNDS]]`: a synthetic capture of connections that never close, analysed
//!   by airtcp only;
//! - `file FILE [ROUNDS]`: any capture.
//!
//! Programs that are not installed (Debian packages `tcptrace` and `tshark`) are skipped. tshark is
//! slow and runs only in the first of these cases.
//!
//! `AIRTCP_BEFORE=DIRECTORY` also measures the `airtcp` in that directory, to compare two builds.
//!
//! Each run is a separate process. Every round runs all commands in turn. An uncounted run before
//! the first round reads the file into the page cache.

mod crowd;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use airtcp_numbers::statistics::{median, spread};
use airtcp_testkit::frames::bulk::Bulk;
use airtcp_testkit::frames::{ACK, ETHERNET, Pcap, SYN, SYN_ACK, Tcp};
use airtcp_testkit::machine::TempFile;
use airtcp_testkit::programs::program;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// The fields of tshark that correspond to results of `airtcp analyze`.
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
    let number = |at: usize, otherwise| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(otherwise);
    match words.first().map(String::as_str) {
        Some("real") => {
            let (whole, headers) = (TempFile::new("whole"), TempFile::new("headers"));
            let (connections, rounds) = (number(1, 20_000), number(2, 3));
            eprintln!("{connections} connections, captured in {}", whole.path());
            crowd::capture(Path::new(whole.path()), connections);
            crowd::truncate(Path::new(whole.path()), Path::new(headers.path()), 128)
                .expect("there is room for the capture");
            println!("whole packets");
            compare(whole.path(), rounds, Others::Tcptrace);
            println!("\nthe first 128 bytes of each packet");
            compare(headers.path(), rounds, Others::Tcptrace);
        }
        Some("open") => {
            let file = TempFile::new("open");
            write(file.path(), |output| never_closed(output, number(1, 1_000_000)));
            compare(file.path(), number(2, 1), Others::None);
        }
        Some("many") => {
            let file = TempFile::new("many");
            let (parallel, connections) = (500, number(1, 100_000));
            write(file.path(), |output| Bulk { parallel, connections, segments: 6, loss: 100 }.write(output));
            compare(file.path(), number(2, 3), Others::Tcptrace);
        }
        Some("file") => {
            compare(words.get(1).expect("`file` needs a FILE"), number(2, 9), Others::Tcptrace);
        }
        _ => {
            let file = TempFile::new("bulk");
            write(file.path(), |output| bulk(output, number(0, 1000)));
            compare(file.path(), number(1, 3), Others::Both);
        }
    }
}

fn write(path: &str, write_packets: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
    eprintln!("writing a capture to {path}");
    let mut output = BufWriter::new(File::create(path).expect("the temporary directory can be written"));
    write_packets(&mut output).and_then(|()| output.flush()).expect("there is room for the capture");
}

/// Approximate size of a segment and its ACK in the file, in bytes.
const PER_SEGMENT: u64 = 1514 + 66 + 2 * 16;
const SEGMENTS: u64 = 2000;
const PARALLEL: u64 = 50;

fn bulk(output: &mut impl Write, megabytes: u64) -> io::Result<()> {
    let connections = (megabytes * 1_000_000 / PER_SEGMENT / SEGMENTS).max(1);
    let parallel = PARALLEL.min(connections);
    Bulk { parallel, connections, segments: SEGMENTS, loss: 100 }.write(output)
}

/// Writes connections that never close. One begins every 0.1 ms: the handshake, a request, the
/// answer and its ACK.
fn never_closed(output: &mut impl Write, connections: u64) -> io::Result<()> {
    output.write_all(&Pcap::with_snap_length(ETHERNET, 96).file)?;
    for number in 0..connections {
        let [.., high, middle, low] = number.to_be_bytes();
        let client: SocketAddr = ([10, high, middle, low], 40_000).into();
        let server: SocketAddr = ([192, 0, 2, 1], 80).into();
        let forth = |flags, seq, ack, len| Tcp::new(client, server, flags, seq, ack, len);
        let back = |flags, seq, ack, len| Tcp::new(server, client, flags, seq, ack, len);
        let packets = [
            forth(SYN, 0, 0, 0),
            back(SYN_ACK, 0, 1, 0),
            forth(ACK, 1, 1, 0),
            forth(ACK, 1, 1, 200),
            back(ACK, 1, 201, 1000),
            forth(ACK, 201, 1001, 0),
        ];
        for (index, packet) in packets.into_iter().enumerate() {
            let mut pcap = Pcap::with_snap_length(ETHERNET, 96);
            pcap.file.clear();
            pcap.frame(number as f64 * 1e-4 + index as f64 * 1e-5, &packet.ethernet());
            output.write_all(&pcap.file)?;
        }
    }
    Ok(())
}

/// The programs to compare airtcp with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    None,
    Tcptrace,
    Both,
}

fn commands(file: &str, others: Others) -> Vec<(&'static str, Vec<String>)> {
    let words = |words: &[&str]| words.iter().chain([&file]).map(|word| (*word).to_owned()).collect();
    let airtcp = program("airtcp").display().to_string();
    let mut commands = vec![("airtcp analyze --json", words(&[&airtcp, "analyze", "--json"]))];
    if let Some(before) = std::env::var_os("AIRTCP_BEFORE") {
        let airtcp = Path::new(&before).join("airtcp").display().to_string();
        commands.push(("the same before", words(&[&airtcp, "analyze", "--json"])));
    }
    if others != Others::None && is_installed("tcptrace") {
        commands.push(("tcptrace -n -l", words(&["tcptrace", "-n", "-l"])));
    }
    if others == Others::Both && is_installed("tshark") {
        let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
        let tshark: Vec<&str> =
            ["tshark", "-n", "-T", "fields"].into_iter().chain(fields).chain(["-r"]).collect();
        commands.push(("tshark -T fields", words(&tshark)));
    }
    commands
}

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    let starts = command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !starts {
        eprintln!("{program} is skipped: it is not installed (`apt-get install {program}`)");
    }
    starts
}

/// Runs one command and prints its wall time in s, CPU time in s and peak memory in KiB.
fn run(command: &[String]) {
    let begin = SystemTime::UNIX_EPOCH.elapsed().expect("the clock is after 1970");
    let status = Command::new(&command[0])
        .args(&command[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program starts");
    let wall = SystemTime::UNIX_EPOCH.elapsed().expect("the clock is after 1970") - begin;
    assert!(status.success(), "{command:?}: {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage works for children");
    let cpu = (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6;
    println!("{} {cpu} {}", wall.as_secs_f64(), usage.max_rss());
}

#[derive(Clone, Copy)]
struct Sample {
    wall: f64,
    cpu: f64,
    kib: f64,
}

fn sample(command: &[String]) -> Sample {
    let own = std::env::current_exe().expect("this program has a path");
    let output = Command::new(own).arg("run").args(command).output().expect("this program starts");
    let text = String::from_utf8(output.stdout).expect("the output is text");
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [wall, cpu, kib] => Sample { wall, cpu, kib },
        _ => panic!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn compare(file: &str, rounds: u64, others: Others) {
    let commands = commands(file, others);
    let mut samples = vec![Vec::new(); commands.len()];
    let packets = packets(&commands[0].1);
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for ((_, command), samples) in commands.iter().zip(&mut samples) {
            samples.push(sample(command));
        }
    }
    let bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    println!("{} MB, {packets} packets; median of {rounds}", bytes / 1_000_000);
    println!(
        "{:<22} {:>8} {:>11} {:>10} {:>7}   {:<20} of processor time",
        "", "seconds", "processor s", "ns/packet", "MiB", "ours / this, seconds"
    );
    let ours = samples[0].clone();
    for ((name, _), samples) in commands.iter().zip(&samples) {
        let middle =
            |of: fn(&Sample) -> f64| median(&samples.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
        let ratios = |of: fn(&Sample) -> f64| -> Vec<f64> {
            ours.iter().zip(samples).map(|(ours, this)| of(ours) / of(this)).collect()
        };
        let (wall, cpu) = (middle(|sample| sample.wall), middle(|sample| sample.cpu));
        let (per_packet, mib) = (cpu * 1e9 / packets as f64, middle(|sample| sample.kib) / 1024.0);
        println!(
            "{name:<22} {wall:>8.2} {cpu:>11.2} {per_packet:>10.0} {mib:>7.1}   {:<20} {}",
            spread(&ratios(|sample| sample.wall)),
            spread(&ratios(|sample| sample.cpu)),
        );
    }
}

/// Returns the number of TCP packets, which airtcp prints at the end of its output.
fn packets(command: &[String]) -> u64 {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
    let last = lines.map_while(Result::ok).filter(|line| line.contains("\"tcp_packets\":")).last();
    assert!(child.wait().expect("the program ends").success(), "{command:?} has failed");
    let last = last.unwrap_or_default();
    let count = last.split_once("\"tcp_packets\":").map(|(_, rest)| rest);
    count.and_then(|rest| rest.split(|end: char| !end.is_ascii_digit()).next()?.parse().ok()).unwrap_or(1)
}
