//! Throughput of the userspace TCP, compared with the ceiling of its path, another userspace stack,
//! and bare devices.
//!
//! Each round runs every candidate once, so that other load on the machine affects all candidates.
//! Each candidate creates its own namespaces and removes them afterwards.

mod addresses;
mod bare;
mod gvisor;
mod kernel;
mod meter;
mod null_sender;
mod packet;
mod smol;
mod test_bed;
mod userspace;

use std::process::ExitCode;

use airlink::netns::{self, NamespaceError};
use airlink::reactor::Clock;
use airlink::tun::DeviceError;
use airwire::time::Duration;
use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::kernel::GIGABIT;
use crate::meter::{Sample, Timing};
use crate::test_bed::Offload;

/// Measure the throughput of TCP senders over a TUN device into the kernel's own TCP.
///
/// Needs root (network namespaces) and two cores: one for the sender, one for the receiver.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Gbit/s is TCP payload that the receiving program has read (for the bare ones: what the packets would carry).
Examples:
  cargo run --release --bin airtcp-throughput
  cargo run --release --bin airtcp-throughput -- --rounds 3 --seconds 1 --only null-sender --only smoltcp --json"
)]
struct Cli {
    /// Number of runs of each candidate
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Length of one run, after its warm-up of a quarter of a second
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// Run only this candidate (repeatable) [default: all that are installed]
    #[arg(long, value_name = "CANDIDATE")]
    only: Vec<Candidate>,
    /// Print one JSON object with every sample instead of the table
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.01 to 600".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Candidate {
    /// Full packets written into a TUN device whose kernel drops them
    BareWrite,
    /// Prebuilt segments into the kernel's receiver, no TCP: the ceiling of the path
    NullSender,
    /// This project's sender: a Host under its real-time driver
    Airtcp,
    /// smoltcp's own TCP sender
    Smoltcp,
    /// One thread copying from one TUN device to another, fed by UDP
    BareCopy,
    /// The null sender with offload: up to 45 prebuilt segments in one write, for the kernel to cut
    NullSenderOffload,
    /// This project's sender with offload
    AirtcpOffload,
    /// The kernel's CUBIC over veth, pieces of up to 64 kB for the device to cut
    Kernel,
    /// gVisor's netstack with GSO over veth, where `make bench` has built it (it needs Go)
    GvisorOffload,
    /// This project's sender `linux` at 1 Gbit/s, paced
    AirtcpPaced,
    /// The paced sender `linux` with offload
    AirtcpPacedOffload,
    /// The kernel's CUBIC over veth at 1 Gbit/s, paced
    KernelPaced,
    /// The paced CUBIC without offload: segment by segment, as a program writes to TUN
    KernelSegments,
}

impl Candidate {
    fn run(self, clock: Clock, timing: Timing) -> anyhow::Result<Sample> {
        match self {
            Self::BareWrite => bare::write(clock, timing),
            Self::NullSender => null_sender::run(clock, timing, Offload::Off),
            Self::Airtcp => userspace::run(clock, timing, Offload::Off),
            Self::Smoltcp => smol::run(clock, timing),
            Self::BareCopy => bare::copy(clock, timing),
            Self::NullSenderOffload => null_sender::run(clock, timing, Offload::On),
            Self::AirtcpOffload => userspace::run(clock, timing, Offload::On),
            Self::Kernel => kernel::run(clock, timing, None, Offload::On),
            Self::GvisorOffload => gvisor::run(clock, timing),
            Self::AirtcpPaced => userspace::paced(clock, timing, Offload::Off),
            Self::AirtcpPacedOffload => userspace::paced(clock, timing, Offload::On),
            Self::KernelPaced => kernel::run(clock, timing, Some(GIGABIT), Offload::On),
            Self::KernelSegments => kernel::run(clock, timing, Some(GIGABIT), Offload::Off),
        }
    }

    /// Whether the program that this candidate needs is installed.
    fn is_available(self) -> bool {
        self != Self::GvisorOffload || gvisor::program().is_some()
    }

    /// Whether the rate is fixed. The result is then the CPU cost.
    fn is_paced(self) -> bool {
        use Candidate::{AirtcpPaced, AirtcpPacedOffload, KernelPaced, KernelSegments};
        matches!(self, AirtcpPaced | AirtcpPacedOffload | KernelPaced | KernelSegments)
    }

    fn has_offload(self) -> bool {
        matches!(self, Self::NullSenderOffload | Self::AirtcpOffload | Self::Kernel | Self::GvisorOffload)
    }

    /// Returns the reference of the same round, and the value to compare.
    fn compared(self) -> (Self, fn(&Sample) -> f64) {
        if self.is_paced() {
            (Self::KernelPaced, Sample::cores_per_gbit)
        } else if self.has_offload() {
            (Self::NullSenderOffload, |sample| sample.gbit_per_s)
        } else {
            (Self::NullSender, |sample| sample.gbit_per_s)
        }
    }

    fn name(self) -> String {
        // Every variant has a value, because none is skipped.
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match measure(&cli) {
        Ok(results) => {
            print(&results, cli.json);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("airtcp-throughput: {error:#}");
            let environment = error.is::<DeviceError>() || error.is::<NamespaceError>();
            ExitCode::from(if environment { 3 } else { 1 })
        }
    }
}

#[derive(Serialize)]
struct Results {
    schema_version: u32,
    rounds: u32,
    seconds: f64,
    candidates: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    candidate: Candidate,
    samples: Vec<Sample>,
    /// Throughput relative to `null-sender` in the same round, or with offload relative to
    /// `null-sender-offload`. For paced candidates: cores per Gbit/s relative to `kernel-paced`.
    ratios: Vec<f64>,
}

fn measure(cli: &Cli) -> anyhow::Result<Results> {
    netns::sweep();
    let clock = Clock::start();
    let timing =
        Timing { warm_up: Duration::from_millis(250), measure: Duration::from_secs_f64(cli.seconds) };
    let wanted = |candidate: &Candidate| match &cli.only[..] {
        [] => candidate.is_available(),
        only => only.contains(candidate),
    };
    let candidates = Candidate::value_variants().iter().copied().filter(wanted);
    let mut rows: Vec<Row> =
        candidates.map(|candidate| Row { candidate, samples: Vec::new(), ratios: Vec::new() }).collect();
    for round in 1..=cli.rounds {
        for row in &mut rows {
            let sample = row.candidate.run(clock, timing)?;
            eprintln!("round {round}: {:<16} {:.2} Gbit/s", row.candidate.name(), sample.gbit_per_s);
            row.samples.push(sample);
        }
    }
    for index in 0..rows.len() {
        let (reference, value) = rows[index].candidate.compared();
        let Some(reference) = rows.iter().find(|row| row.candidate == reference) else { continue };
        let pairs = rows[index].samples.iter().zip(&reference.samples);
        rows[index].ratios = pairs.map(|(sample, reference)| value(sample) / value(reference)).collect();
    }
    Ok(Results { schema_version: 1, rounds: cli.rounds, seconds: cli.seconds, candidates: rows })
}

fn print(results: &Results, json: bool) {
    if json {
        // Numbers, strings and lists can always be serialised.
        println!("{}", serde_json::to_string(results).expect("plain data becomes JSON"));
        return;
    }
    let rows = results.candidates.iter();
    let (paced, free): (Vec<_>, Vec<_>) = rows.partition(|row| row.candidate.is_paced());
    let (joined, free): (Vec<_>, Vec<_>) = free.into_iter().partition(|row| row.candidate.has_offload());
    let nanos = |ns: f64| if ns.is_nan() { "-".to_owned() } else { format!("{ns:.0} ns") };
    table(&free, "of null-sender", "CPU/packet", |it| it.cpu_ns_per_packet, nanos);
    table(&joined, "of null.. with it", "CPU/packet", |it| it.cpu_ns_per_packet, nanos);
    table(&paced, "of kernel-paced", "cores/Gbit/s", Sample::cores_per_gbit, |cores| format!("{cores:.2}"));
}

/// Prints a table. `cost` is the heading of the column that shows the median of `cost_of`.
fn table(
    rows: &[&Row],
    reference: &str,
    cost: &str,
    cost_of: fn(&Sample) -> f64,
    show: impl Fn(f64) -> String,
) {
    if rows.is_empty() {
        return;
    }
    println!(
        "{:<16} {:>21}   {reference:>17}   {:>9} {cost:>12} {:>10}",
        "", "Gbit/s", "kpacket/s", "sent again"
    );
    println!(
        "{:<16} {:>6} {:>7} {:>6}   {:>5} {:>5} {:>5}",
        "", "min", "median", "max", "min", "med.", "max"
    );
    for row in rows {
        let of = |value: fn(&Sample) -> f64| Spread::of(row.samples.iter().map(value));
        let (rate, packets) = (of(|sample| sample.gbit_per_s), of(|sample| sample.packets_per_s / 1e3));
        let cost = of(cost_of).median;
        let retransmissions: Option<u64> = row.samples.iter().map(|sample| sample.retransmissions).sum();
        let retransmissions = retransmissions.map_or_else(|| "-".to_owned(), |packets| packets.to_string());
        let ratio = match &row.ratios[..] {
            [] => format!("{:>17}", "-"),
            ratios => {
                let Spread { min, median, max } = Spread::of(ratios.iter().copied());
                format!("{min:>5.2} {median:>5.2} {max:>5.2}")
            }
        };
        println!(
            "{:<16} {:>6.2} {:>7.2} {:>6.2}   {ratio}   {:>9.0} {:>12} {retransmissions:>10}",
            row.candidate.name(),
            rate.min,
            rate.median,
            rate.max,
            packets.median,
            show(cost),
        );
    }
}

struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    /// Computes the spread. Requires at least one value.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self { min: values[0], median: (low + high) / 2.0, max: values[values.len() - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_count_averages_middle_values() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0].into_iter());
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.5, 4.0));
    }

    #[test]
    fn every_candidate_moves_packets_and_cleans_up() {
        let timing = Timing { warm_up: Duration::from_millis(50), measure: Duration::from_millis(100) };
        for candidate in Candidate::value_variants().iter().filter(|candidate| candidate.is_available()) {
            let sample = candidate.run(Clock::start(), timing).unwrap();
            assert!(sample.gbit_per_s > 0.01, "{candidate:?}: {sample:?}");
        }
        let prefix = format!("airtcp-{}-", std::process::id());
        let left = std::fs::read_dir("/run/netns").unwrap().flatten();
        assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count(), 0);
    }
}
