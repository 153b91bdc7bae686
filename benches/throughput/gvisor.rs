//! gVisor's netstack with GSO, over veth. The sender is a separate process (`gvisor/main.go`),
//! which `make bench` builds if Go is installed.

#![expect(clippy::disallowed_methods, reason = "the sender works in another process")]

use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use airlink::reactor::Clock;
use anyhow::{Context, ensure};

use crate::addresses::{KERNEL, OURS, PORT};
use crate::kernel::connected_namespaces;
use crate::meter::{Meter, Sample, Timing};
use crate::test_bed::Receiver;

/// Interval at which the meter is queried.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Returns the path of the sender, or `None` if it has not been built.
pub(crate) fn program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("gvisor-sender");
    program.exists().then_some(program)
}

pub(crate) fn run(clock: Clock, timing: Timing) -> anyhow::Result<Sample> {
    let program =
        program().context("gvisor-sender is not next to this program: build it with `make bench`")?;
    let (here, there) = connected_namespaces()?;
    let receiver = Receiver::start(&there)?;
    let words = ["wire".to_owned(), OURS.to_string(), KERNEL.to_string(), PORT.to_string()];
    let mut sender = Sender(here.spawn(Command::new(program).args(words))?);
    let mut meter = Meter::start(clock, timing);
    while meter.tick(|| receiver.count()) {
        ensure!(sender.0.try_wait()?.is_none(), "gvisor-sender has ended");
        thread::sleep(POLL_INTERVAL);
    }
    let sample = meter.sample().context("the run is over")?;
    // The sender is another process, so only `busy_cores` includes its CPU time.
    Ok(Sample { cpu_ns_per_packet: f64::NAN, ..sample })
}

/// The sender's process. Dropping it ends the process.
struct Sender(Child);

impl Drop for Sender {
    fn drop(&mut self) {
        // Errors are ignored: the process may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
