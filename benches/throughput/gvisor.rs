//! gVisor's netstack with GSO, over veth, in a process of its own (`gvisor/main.go`), which `make bench` builds where Go is.

#![expect(clippy::disallowed_methods, reason = "the sender works in another process")]

use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use airlink::reactor::Clock;
use anyhow::{Context, ensure};

use crate::kernel::wire;
use crate::lab::{KERNEL, OURS, PORT, Receiver};
use crate::meter::{Meter, Sample, Timing};

/// How often the meter is asked.
const LOOK: Duration = Duration::from_millis(2);

/// Where the sender is. `None`: nobody has built it.
pub(crate) fn program() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("gvisor-sender");
    beside.exists().then_some(beside)
}

pub(crate) fn run(clock: Clock, plan: Timing) -> anyhow::Result<Sample> {
    let program =
        program().context("there is no gvisor-sender beside this program: `make bench` builds it")?;
    let (here, there) = wire()?;
    let receiver = Receiver::start(&there)?;
    let words = ["wire".to_owned(), OURS.to_string(), KERNEL.to_string(), PORT.to_string()];
    let mut sender = Sender(here.spawn(Command::new(program).args(words))?);
    let mut meter = Meter::start(clock, plan);
    while meter.tick(|| receiver.count()) {
        ensure!(sender.0.try_wait()?.is_none(), "gvisor-sender has ended");
        thread::sleep(LOOK);
    }
    let sample = meter.sample().context("the run is over")?;
    // What another process takes, only `busy_cores` has.
    Ok(Sample { cpu_ns_per_packet: f64::NAN, ..sample })
}

/// Dropping it ends it.
struct Sender(Child);

impl Drop for Sender {
    fn drop(&mut self) {
        // Nothing else can be done, and it may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
