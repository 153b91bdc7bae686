//! `airlink sim`: a link in virtual time between simple packet sources.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use airlink::capture::{Capture, Tap};
use airlink::machine::Port;
use airlink::packet::PerDirection;
use airlink::path::{FIXED, Path};
use airlink::scenario::StageConfig;
use airlink::simulate::{self, Arrived, Family, Load, PacketObserver, Sizes, Workload};
use airlink::views::summary::Summary;
use airlink::views::{self, Views};
use airwire::time::{Duration, Instant};
use airwire::units::typed_time;
use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::session::{self, ScenarioArgs};
use super::{console, failure};

/// Run a link in virtual time with simple packet sources
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sim {
    #[command(flatten)]
    scenario: ScenarioArgs,

    /// Stop after this time: no more packets are sent
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = typed_time, help_heading = "Load")]
    duration: Duration,
    /// Time after that in which packets can still leave the link
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = typed_time, help_heading = "Load")]
    drain: Duration,
    /// Load from the fixed side: none, saturate, saturate:PACKETS, cbr:RATE, poisson:RATE or acks
    #[arg(long, value_name = "LOAD", default_value = "saturate", help_heading = "Load")]
    down: Load,
    /// Load from the mobile side, with the same values
    #[arg(long, value_name = "LOAD", default_value = "acks", help_heading = "Load")]
    up: Load,
    /// Size of every packet in bytes with its IP header, or mix: sizes that are difficult for a radio link
    #[arg(long, value_name = "BYTES|mix", default_value = "1500", help_heading = "Load")]
    size: Sizes,
    /// Send IPv6 packets instead of IPv4
    #[arg(long, help_heading = "Load")]
    ipv6: bool,

    /// Write the packets at the fixed side to a pcap file (nanosecond timestamps)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap_fixed: Option<PathBuf>,
    /// Write the packets at the mobile side to a pcap file (nanosecond timestamps)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap_mobile: Option<PathBuf>,
    #[command(flatten)]
    files: views::Files,
    /// Print JSON instead of text: one object
    #[arg(long, help_heading = "Output")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  A W-CDMA bearer that loses 10 % of its blocks, in Wireshark:
    airlink sim -s wcdma-384 --set radio.down.channel.errors.bler=10% \\
      --radio-pcap radio.pcap
    tshark -r radio.pcap --enable-heuristic rlc_udp
  The fate of each packet:
    airlink sim -s wcdma-384 --size mix --pcapng trace.pcapng \\
      --events trace.jsonl
    tshark -r trace.pcapng -T fields -e frame.time_epoch \\
      -e frame.interface_name -e frame.comment";

/// Upper bound on the time of a run. It fits into the 64 bits of a time.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Sim {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        if self.duration > LONGEST || self.drain > LONGEST {
            return Err(failure::usage("--for and --drain must not be longer than 10 years"));
        }
        if let (true, Sizes::Fixed(..40)) = (self.ipv6, self.size) {
            return Err(failure::usage("--size: an IPv6 packet has at least 40 bytes"));
        }
        let mut emulation = self.scenario.build(&self.files)?;
        let capture = |path: &Option<PathBuf>| {
            path.as_ref().map(|path| Capture::create(path, SystemTime::UNIX_EPOCH)).transpose()
        };
        let mut outputs = Outputs {
            views: emulation.create_views(&self.files, SystemTime::UNIX_EPOCH)?,
            fixed: capture(&self.pcap_fixed)?,
            mobile: capture(&self.pcap_mobile)?,
        };
        let workload = Workload {
            loads: PerDirection { down: self.down, up: self.up },
            sizes: self.size,
            family: if self.ipv6 { Family::V6 } else { Family::V4 },
            seed: emulation.seed,
            until: Instant::ZERO + self.duration,
            drain: self.drain,
        };
        let (now, arrived) = simulate::run(&mut emulation.path, &workload, &mut outputs)?;
        for capture in [&mut outputs.fixed, &mut outputs.mobile].into_iter().flatten() {
            capture.flush()?;
        }
        outputs.views.finish(&mut emulation.path, now)?;
        self.print(emulation.summary(now, None), arrived)?;
        let damaged = arrived.down.damaged + arrived.up.damaged;
        let mut stages = emulation.scenario.stages.iter().map(|stage| &stage.config);
        let is_expected =
            stages.any(|config| matches!(config, StageConfig::Corrupt(_) | StageConfig::Truncate(_)));
        anyhow::ensure!(
            damaged == 0 || is_expected,
            "{damaged} packets arrived damaged, although no stage damages packets"
        );
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, summary: Summary, arrived: PerDirection<Arrived>) -> anyhow::Result<()> {
        if self.json {
            let PerDirection { down, up } = arrived;
            let json = Output { summary, arrived: Arrivals { down, up } };
            console::print(serde_json::to_string(&json).context("writing the summary")? + "\n")?;
        } else {
            console::print(summary)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Output {
    #[serde(flatten)]
    summary: Summary,
    arrived: Arrivals,
}

#[derive(Serialize)]
struct Arrivals {
    down: Arrived,
    up: Arrived,
}

struct Outputs {
    views: Views,
    fixed: Option<Capture>,
    mobile: Option<Capture>,
}

impl PacketObserver for Outputs {
    type Error = anyhow::Error;

    fn packet(&mut self, at: Instant, end: Port, packet: &[u8]) {
        if end == FIXED { &mut self.fixed } else { &mut self.mobile }.packet(at, packet);
    }

    fn after(&mut self, _now: Instant, path: &mut Path) -> anyhow::Result<()> {
        self.views.after(path)?;
        path.check_memory().map_err(session::out_of_memory)
    }
}
