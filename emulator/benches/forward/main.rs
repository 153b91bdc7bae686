//! Throughput and punctuality of a path in real time, compared with loops that copy from one device to another
//! and with the kernel's own emulator.
//!
//! Each round measures every row once, so that other load on the machine affects all rows. Each measurement has
//! its own devices. If other programs share the processors, compare processor times instead of rates.
//!
//! Needs root and two cores: `cargo bench -p airlink --bench forward [-- [datagrams|bulk|lateness] [ROUNDS
//! SECONDS] [ROW…]]`. By default `datagrams` and `bulk` run. ROW selects rows by a part of their names, such as
//! `delay`.

mod bulk;
mod datagrams;
mod lateness;

use airlink::driver::{self, Endpoint};
use airlink::machine::{Crossover, Machine};
use airlink::netns::Namespace;
use airlink::reactor::{Clock, Reactor};
use airlink::scenario::Scenario;
use airlink::stage::Recording;
use airlink::tun::{Tun, TunConfig};
use airwire::time::{Duration, Instant};
use nix::time::{ClockId, clock_gettime};

const MTU: u16 = 1500;

/// A queue and a wire that is faster than the devices.
fn wire(delay: &str) -> String {
    format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\n\
         both = {{ rate = \"100Gbit\", delay = \"{delay}\", queue = {{ packets = 10000 }} }}\n"
    )
}

/// The command line.
struct Arguments {
    rounds: usize,
    duration: Duration,
    rows: Vec<String>,
}

impl Arguments {
    /// Whether to measure the row.
    fn is_wanted(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|wanted| row.contains(wanted.as_str()))
    }

    /// Measures every row in every round. Returns the samples of each row.
    fn compare<R, S: std::fmt::Debug>(&self, rows: &[(&str, R)], sample: impl Fn(&R) -> S) -> Vec<Vec<S>> {
        let mut samples: Vec<Vec<S>> = rows.iter().map(|_| Vec::new()).collect();
        for round in 1..=self.rounds {
            for ((name, row), samples) in rows.iter().zip(&mut samples) {
                let sample = sample(row);
                eprintln!("round {round}: {name:<30} {sample:.2?}");
                samples.push(sample);
            }
        }
        samples
    }
}

/// Prints for each row the medians of a rate and of its cost, and their ratios to the first row of the same
/// round. In both ratios more is better. `columns`: names and numbers of decimals.
fn table<R, S>(
    what: &str,
    columns: [(&str, usize); 2],
    rows: &[(&str, R)],
    samples: &[Vec<S>],
    of: impl Fn(&S) -> [f64; 2],
) {
    let (Some((against, _)), Some(first)) = (rows.first(), samples.first()) else { return };
    let [(rate, _), (cost, _)] = columns;
    println!("{what:<30} {rate:>11} {against:>24}   {cost:>15} {against:>24}");
    for ((name, _), samples) in rows.iter().zip(samples) {
        let median = |at: usize| spread(samples.iter().map(|sample| of(sample)[at]).collect())[1];
        let ratios = |of: &dyn Fn(&S) -> f64| {
            shown(spread(samples.iter().zip(first).map(|(sample, first)| of(sample) / of(first)).collect()))
        };
        let [(_, rate_digits), (_, cost_digits)] = columns;
        println!(
            "{name:<30} {:>11.rate_digits$} {:>24}   {:>15.cost_digits$} {:>24}",
            median(0),
            ratios(&|sample| of(sample)[0]),
            median(1),
            ratios(&|sample| 1.0 / of(sample)[1]),
        );
    }
}

fn main() {
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (numbers, words): (Vec<String>, Vec<String>) =
        arguments.partition(|argument| argument.parse::<f64>().is_ok());
    let mut numbers = numbers.iter().filter_map(|number| number.parse::<f64>().ok());
    let (modes, rows): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|word| ["datagrams", "bulk", "lateness"].contains(&word.as_str()));
    let arguments = Arguments {
        rounds: numbers.next().unwrap_or(11.0) as usize,
        duration: Duration::from_secs_f64(numbers.next().unwrap_or(1.0)),
        rows,
    };
    let is_selected = |mode: &str| modes.iter().any(|name| name == mode);
    if modes.is_empty() || is_selected("datagrams") {
        datagrams::run(&arguments);
    }
    if modes.is_empty() || is_selected("bulk") {
        bulk::run(&arguments);
    }
    if is_selected("lateness") {
        lateness::run(&arguments);
    }
}

fn namespaces() -> [Namespace; 2] {
    std::array::from_fn(|_| Namespace::create().expect("this needs root"))
}

fn device(namespace: &Namespace, addr: &str, routes: &[&str], offload: bool) -> Tun {
    Tun::open(&TunConfig {
        namespace: Some(namespace.path().to_path_buf()),
        addrs: vec![addr.parse().expect("an address")],
        routes: routes.iter().map(|route| route.parse().expect("a network")).collect(),
        mtu: MTU,
        offload,
        ..TunConfig::default()
    })
    .expect("this needs root and /dev/net/tun")
}

/// The machine that airlink runs between the devices.
#[derive(Clone, Debug)]
enum Emulated {
    Nothing,
    Scenario(String),
}

impl Emulated {
    /// Forwards until `until`. Returns the lateness of packets, and the endpoints.
    fn drive(
        &self,
        devices: [Tun; 2],
        reactor: &mut Reactor,
        until: Instant,
    ) -> (airlink::lateness::Lateness, [Endpoint; 2]) {
        let mut endpoints = devices.map(|device| Endpoint::new(device, None));
        let lateness = match self {
            Self::Nothing => drive(&mut Crossover::default(), &mut endpoints, reactor, until),
            Self::Scenario(text) => {
                let scenario = Scenario::parse(text, "bench").expect("the scenario is valid");
                let mut path =
                    scenario.build(None, Recording::Off, false).expect("the scenario can be built");
                drive(&mut path, &mut endpoints, reactor, until)
            }
        };
        (lateness, endpoints)
    }
}

fn drive<M: Machine>(
    machine: &mut M,
    endpoints: &mut [Endpoint],
    reactor: &mut Reactor,
    until: Instant,
) -> airlink::lateness::Lateness {
    driver::run(machine, endpoints, reactor, Some(until), &mut ()).expect("the devices are there")
}

fn reactor() -> Reactor {
    Reactor::new(Clock::start()).expect("epoll")
}

/// Returns a processor time in nanoseconds.
fn cpu_time(of: ClockId) -> f64 {
    let now = clock_gettime(of).expect("every Linux has this clock");
    now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64
}

/// Returns the minimum, the median and the maximum.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

/// Formats as `median (minimum to maximum)`.
fn shown([min, median, max]: [f64; 3]) -> String {
    format!("{median:.2} ({min:.2} to {max:.2})")
}
