//! The program that runs a sender, on either side of the path.

use std::net::SocketAddr;
use std::path::Path;

use super::{Kind, Sender};
use crate::LabError;
use crate::agent::Output;
use crate::testbed::{PathSide, Running, Start, Testbed, Tools};
use crate::workload::{Amount, Stream};

/// The start of the network of a recipe's sender behind its TUN device. A stream with the index N uses
/// 10.83.N.0/24 on the fixed side, which the mobile side reaches by its default route, and 10.84.N.0/24 on
/// the mobile side.
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
        match self.kind {
            Kind::Recipe { .. } => {
                testbed.side(side).sysctl("net.ipv4.ip_forward", "1")?;
                if side == PathSide::Mobile {
                    let route = ["ip", "route", "replace", MOBILE_NETWORKS, "via", &testbed.mobile.addr];
                    testbed.fixed.run(&route, &directory.join("route-to-senders.log"))?;
                }
                Ok(())
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
        let mut add = |words: &[&str]| argv.extend(words.iter().map(|&word| word.to_owned()));
        let side = PathSide::sending(stream.direction);
        match &self.kind {
            Kind::Recipe { .. } => {
                let net = format!("{}.{}", network(side), stream.index);
                // Name the profile explicitly, because an alias such as `linux` sets its own.
                add(&["send", "--recipe", &self.kind.to_string()]);
                add(&["--addr", &format!("{net}.2"), "--kernel-addr", &format!("{net}.1/24")]);
                let decisions = stream.file(directory, "decisions", "jsonl");
                add(&["--decisions", &decisions.to_string_lossy(), "--interval", "1h"]);
            }
            Kind::Kernel(control) => add(&["source", "--congestion-control", control]),
        }
        match amount {
            Amount::Bytes(bytes) => add(&["--bytes", &bytes.to_string()]),
            Amount::Time(time) => add(&["--for", &format!("{}ns", time.as_nanos())]),
        }
        add(&["--json", &to.to_string()]);
        testbed.side(side).start(Start {
            argv,
            environment: Vec::new(),
            stdout: Output::File(stream.file(directory, "sender", "jsonl")),
            stderr: stream.file(directory, "sender", "log"),
        })
    }
}
