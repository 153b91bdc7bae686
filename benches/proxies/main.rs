//! `airtcp-serve` compared with two proxies that use the kernel's TCP on both sides, in front of
//! the same server.
//!
//! All programs run at the same time in one namespace. Each round takes every measurement from all
//! programs in direct succession, and starts with a different program each time. Other load on the
//! machine therefore affects all programs equally.

mod client;
mod exchange;
mod test_bed;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use airlink::netns::{self, NamespaceError};
use airtcp_numbers::statistics::{median, spread};
use airtcp_numbers::units;
use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::exchange::Request;
use crate::test_bed::{Missing, Program, TestBed};

/// Compare `airtcp-serve` with nginx and HAProxy in front of the same server.
///
/// Needs root (network namespaces), nginx with its module `stream`, and HAProxy. Clients and server are threads of this
/// program; every byte is counted, and a missing byte is an error.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Ratios are those of the same round: their median (least to most).
Examples:
  cargo build --release -p airtcp-serve -p airtcp-benches && cargo run --release --bin airtcp-proxies
  cargo run --release --bin airtcp-proxies -- --rounds 3 --bytes 200M --only nginx --only serve --measure upload"
)]
struct Cli {
    /// How often everything is measured
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Bytes of one download or upload over all its streams
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    bytes: u64,
    /// How many short connections are made for one sample
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    connections: u64,
    /// Run only this program (repeatable) [default: all]
    #[arg(long, value_name = "PROGRAM")]
    only: Vec<Program>,
    /// Measure only this (repeatable) [default: all]
    #[arg(long, value_name = "WHAT")]
    measure: Vec<Measure>,
    /// Workers of nginx, and threads of HAProxy. `serve` has two: one does everything, and one writes to its device
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// MTU of the loopback, over which clients reach nginx and HAProxy, and all programs the server. The device of `serve`
    /// has 1500 [default: the kernel's, 65536]
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u32).range(576..=65536))]
    loopback_mtu: Option<u32>,
    /// The `airtcp-serve` to measure [default: in the directory AIRTCP_PROGRAMS, or next to this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print one JSON object with every sample instead of the tables
    #[arg(long)]
    json: bool,
}

fn size(text: &str) -> Result<u64, String> {
    match units::bytes(text)? {
        size if size >= MANY => Ok(size),
        _ => Err(format!("at least one byte for each of {MANY} streams is needed")),
    }
}

/// Number of concurrent streams.
const MANY: u64 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Measure {
    /// One stream from the server
    Download,
    /// Twenty streams from the server at once
    Downloads,
    /// One stream to the server
    Upload,
    /// New connections, fifty at once, each with a small request and a small answer
    Connections,
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Self::Download => "download, 1 stream",
            Self::Downloads => "download, 20 streams",
            Self::Upload => "upload, 1 stream",
            Self::Connections => "new connections",
        }
    }

    /// Returns the unit for the tables and the size of that unit in units of a sample.
    fn unit(self) -> (&'static str, f64) {
        match self {
            Self::Connections => ("1000/s", 1e3),
            _ => ("Gbit/s", 1e9),
        }
    }

    /// Takes one measurement, in bits or connections per second.
    fn sample(self, cli: &Cli, test_bed: &TestBed, program: Program) -> anyhow::Result<f64> {
        let per_second = |amount: u64, time: Duration| amount as f64 / time.as_secs_f64();
        let streams = |request, count| test_bed.measure(program, |to| client::streams(to, request, count));
        let down = |bytes| Request { up: 0, down: bytes };
        Ok(match self {
            Self::Download => 8.0 * per_second(cli.bytes, streams(down(cli.bytes), 1)?),
            Self::Downloads => {
                let each = cli.bytes / MANY;
                8.0 * per_second(each * MANY, streams(down(each), MANY)?)
            }
            Self::Upload => {
                let request = Request { up: cli.bytes, down: client::ANSWER };
                8.0 * per_second(cli.bytes, streams(request, 1)?)
            }
            Self::Connections => {
                let time = test_bed.measure(program, |to| client::connections(to, cli.connections))?;
                per_second(cli.connections, time)
            }
        })
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match measure(&cli) {
        Ok(results) => {
            results.print(cli.json);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("airtcp-proxies: {error:#}");
            let environment = error.is::<Missing>() || error.is::<NamespaceError>();
            ExitCode::from(if environment { 3 } else { 1 })
        }
    }
}

#[derive(Serialize)]
struct Results {
    schema_version: u32,
    rounds: u32,
    bytes: u64,
    connections: u64,
    threads: u32,
    loopback_mtu: Option<u32>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    measure: Measure,
    program: Program,
    /// Bits or connections per second, one value per round.
    samples: Vec<f64>,
    /// The sample of `serve` divided by the sample of this program, for each round.
    serve_over: Vec<f64>,
}

fn measure(cli: &Cli) -> anyhow::Result<Results> {
    netns::sweep();
    let programs = chosen(&cli.only);
    let measures = chosen(&cli.measure);
    let test_bed = TestBed::start(&programs, cli.program.as_deref(), cli.threads, cli.loopback_mtu)?;
    let mut rows = Vec::new();
    for measure in &measures {
        let row = |program: &Program| {
            let (samples, serve_over) = (Vec::new(), Vec::new());
            Row { measure: *measure, program: *program, samples, serve_over }
        };
        rows.extend(programs.iter().map(row));
    }
    for round in 0..cli.rounds as usize {
        for of_measure in rows.chunks_mut(programs.len()) {
            for offset in 0..programs.len() {
                let row = &mut of_measure[(round + offset) % programs.len()];
                let sample = row.measure.sample(cli, &test_bed, row.program)?;
                let (unit, one) = row.measure.unit();
                let (title, name) = (row.measure.title(), row.program.name());
                eprintln!("round {}: {title:<21} {name:<8} {:>6.2} {unit}", round + 1, sample / one);
                row.samples.push(sample);
            }
        }
    }
    for of_measure in rows.chunks_mut(programs.len()) {
        let serve = of_measure.iter().find(|row| row.program == Program::Serve);
        let Some(serve) = serve.map(|row| row.samples.clone()) else { continue };
        for row in of_measure.iter_mut().filter(|row| row.program != Program::Serve) {
            row.serve_over = ratios(&serve, &row.samples);
        }
    }
    let Cli { rounds, bytes, connections, threads, loopback_mtu, .. } = *cli;
    Ok(Results { schema_version: 1, rounds, bytes, connections, threads, loopback_mtu, rows })
}

/// Returns the named values in the order of their declaration, or all values if none is named.
fn chosen<T: ValueEnum + PartialEq>(named: &[T]) -> Vec<T> {
    T::value_variants().iter().filter(|one| named.is_empty() || named.contains(one)).cloned().collect()
}

/// Divides the samples round by round.
fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    over.iter().zip(under).map(|(over, under)| over / under).collect()
}

impl Results {
    fn print(&self, json: bool) {
        if json {
            // Numbers, strings and lists can always be serialised.
            println!("{}", serde_json::to_string(self).expect("plain data becomes JSON"));
            return;
        }
        let programs = Program::value_variants();
        let [nginx, haproxy, serve] = [0, 1, 2].map(|index| programs[index].name());
        println!(
            "{:<22} {:<6} {nginx:>8} {haproxy:>8} {serve:>8}   {:<20} serve / haproxy",
            "", "", "serve / nginx"
        );
        for measure in Measure::value_variants() {
            if self.rows.iter().all(|row| row.measure != *measure) {
                continue;
            }
            let (unit, one) = measure.unit();
            let typical = |program| match self.row(*measure, program).and_then(|row| median(&row.samples)) {
                Some(value) => format!("{:.2}", value / one),
                None => "-".to_owned(),
            };
            let ratio = |program| spread(self.row(*measure, program).map_or(&[], |row| &row.serve_over));
            println!(
                "{:<22} {unit:<6} {:>8} {:>8} {:>8}   {:<20} {}",
                measure.title(),
                typical(Program::Nginx),
                typical(Program::Haproxy),
                typical(Program::Serve),
                ratio(Program::Nginx),
                ratio(Program::Haproxy),
            );
        }
        println!();
        for program in programs {
            let [one, many] = [Measure::Download, Measure::Downloads].map(|it| self.row(it, *program));
            if let (Some(one), Some(many)) = (one, many) {
                let ratios = ratios(&many.samples, &one.samples);
                println!("20 streams / 1 stream, {:<8} {}", program.name(), spread(&ratios));
            }
        }
    }

    fn row(&self, measure: Measure, program: Program) -> Option<&Row> {
        self.rows.iter().find(|row| row.measure == measure && row.program == program)
    }
}
