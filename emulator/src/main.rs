//! The program `airlink`.

use std::process::ExitCode;

use airlink::capture::Capture;
use airlink::cli::{Bridge, Cli, Command};
use airlink::driver::{self, Endpoint, Traffic};
use airlink::machine::Crossover;
use airlink::netns::{self, NamespaceError};
use airlink::reactor::{Clock, Reactor};
use airlink::time::Duration;
use airlink::tun::{DeviceError, Tun, TunConfig};
use anyhow::Context;
use clap::Parser;
use serde::Serialize;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let result = match cli.command {
        Command::Bridge(bridge) => run_bridge(&bridge),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("airlink: {error:#}");
            exit_code(&error)
        }
    }
}

/// 3 when the machine does not let us (privilege, device), 1 for everything else.
fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<DeviceError>() || error.is::<NamespaceError>() {
        ExitCode::from(3)
    } else {
        ExitCode::FAILURE
    }
}

#[derive(Serialize)]
struct Summary {
    schema_version: u32,
    seconds: f64,
    fixed: Side,
    mobile: Side,
}

#[derive(Serialize)]
struct Side {
    device: String,
    #[serde(flatten)]
    traffic: Traffic,
    /// Lost between that kernel and us.
    dropped_by_kernel: u64,
}

fn run_bridge(bridge: &Bridge) -> anyhow::Result<()> {
    for name in netns::sweep() {
        tracing::info!("removed the namespace {name}, left by a process that was killed");
    }
    let clock = Clock::start();
    let mut reactor = Reactor::new(clock)?;
    reactor.catch_stop_signals()?;
    let capture =
        |path: &Option<_>| path.as_ref().map(|path| Capture::create(path, clock.wall_zero())).transpose();
    let endpoint = |config: &TunConfig, pcap| -> anyhow::Result<Endpoint> {
        Ok(Endpoint::new(Tun::open(config)?, capture(pcap)?))
    };
    let mut endpoints =
        [endpoint(&bridge.fixed(), &bridge.pcap_fixed)?, endpoint(&bridge.mobile(), &bridge.pcap_mobile)?];
    tracing::info!("bridging {} (fixed) and {} (mobile)", endpoints[0].name(), endpoints[1].name());

    let until = bridge.duration.map(|seconds| clock.now() + Duration::from_secs_f64(seconds));
    driver::run(&mut Crossover::default(), &mut endpoints, &mut reactor, until)?;

    let [fixed, mobile] = &endpoints;
    let summary = Summary {
        schema_version: 1,
        seconds: clock.now().as_secs_f64(),
        fixed: side(fixed)?,
        mobile: side(mobile)?,
    };
    if bridge.json {
        println!("{}", serde_json::to_string(&summary).context("writing the summary")?);
    } else {
        print_table(&summary);
    }
    Ok(())
}

fn side(endpoint: &Endpoint) -> anyhow::Result<Side> {
    Ok(Side {
        device: endpoint.name().to_owned(),
        traffic: endpoint.traffic(),
        dropped_by_kernel: endpoint.kernel_drops()?,
    })
}

fn print_table(summary: &Summary) {
    println!("{:.1} s", summary.seconds);
    println!(
        "{:<7} {:<15} {:>12} {:>15} {:>12} {:>15} {:>8} {:>8}",
        "side", "device", "packets in", "bytes in", "packets out", "bytes out", "refused", "dropped"
    );
    for (name, side) in [("fixed", &summary.fixed), ("mobile", &summary.mobile)] {
        let Traffic { sent_packets, sent_bytes, received_packets, received_bytes, refused_packets } =
            side.traffic;
        println!(
            "{name:<7} {:<15} {sent_packets:>12} {sent_bytes:>15} {received_packets:>12} {received_bytes:>15} \
             {refused_packets:>8} {:>8}",
            side.device, side.dropped_by_kernel
        );
    }
}
