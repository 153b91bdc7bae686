//! The program that runs a sender, on either side of the path.

use std::net::SocketAddr;
use std::path::Path;

use super::{Kind, Sender};
use crate::LabError;
use crate::agent::Output;
use crate::testbed::{PathSide, Running, Start, Testbed, Tools};
use crate::workload::{Amount, Stream};

/// The network of a recipe's sender behind its TUN device, numbered by its stream: 10.83.N.0/24 on the fixed
/// side, which the mobile side reaches by its default route, and 10.84.N.0/24 on the mobile side.
const fn network(side: PathSide) -> &'static str {
    match side {
        PathSide::Fixed => "10.83",
        PathSide::Mobile => "10.84",
    }
}

/// The networks of all senders on the mobile side.
const MOBILE_NETWORKS: &str = "10.84.0.0/16";

impl Sender {
    /// Sets up the side on which the sender runs.
    pub(crate) fn prepare(
        &self,
        testbed: &mut Testbed,
        side: PathSide,
        directory: &Path,
    ) -> Result<(), LabError> {
        let mobile_addr = testbed.mobile.own.clone();
        match self.kind {
            Kind::Recipe { .. } => {
                testbed.side(side).sysctl("net.ipv4.ip_forward", "1")?;
                match side {
                    PathSide::Fixed => Ok(()),
                    PathSide::Mobile => {
                        let route = ["ip", "route", "replace", MOBILE_NETWORKS, "via", &mobile_addr];
                        testbed.fixed.run(&route, &directory.join("route-to-senders.log"))
                    }
                }
            }
            Kind::Kernel(_) => {
                let side = testbed.side(side);
                // A new namespace inherits some of the machine's settings, which must not affect an
                // experiment.
                side.sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304")?;
                side.sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456")?;
                side.sysctl("net.ipv4.tcp_no_metrics_save", "1")
            }
        }
    }

    pub(crate) fn start(
        &self,
        tools: &Tools,
        testbed: &mut Testbed,
        stream: &Stream<'_>,
        to: SocketAddr,
        amount: Amount,
        directory: &Path,
    ) -> Result<Running, LabError> {
        let mut argv = vec![tools.airtcp.to_string_lossy().into_owned()];
        let mut say = |words: &[&str]| argv.extend(words.iter().map(|&word| word.to_owned()));
        let side = stream.way.sender_side();
        match &self.kind {
            Kind::Recipe { .. } => {
                let net = network(side);
                say(&[
                    "send",
                    "--recipe",
                    // Name the profile explicitly, because an alias such as `linux` sets its own.
                    &self.kind.to_string(),
                    "--addr",
                    &format!("{net}.{}.2", stream.index),
                    "--kernel-addr",
                    &format!("{net}.{}.1/24", stream.index),
                ]);
                say(&[
                    "--decisions",
                    &stream.file(directory, "decisions", "jsonl").to_string_lossy(),
                    "--interval",
                    "1h",
                ]);
            }
            Kind::Kernel(control) => say(&["source", "--congestion-control", control]),
        }
        match amount {
            Amount::Octets(octets) => say(&["--bytes", &octets.to_string()]),
            Amount::Time(time) => say(&["--for", &format!("{}ns", time.as_nanos())]),
        }
        say(&["--json", &to.to_string()]);
        testbed.side(side).start(Start {
            argv,
            environment: Vec::new(),
            stdout: Output::File(stream.file(directory, "sender", "jsonl")),
            stderr: stream.file(directory, "sender", "log"),
        })
    }
}
