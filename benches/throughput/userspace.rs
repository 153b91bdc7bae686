//! This project's own sender: a `Host` under its real-time driver, as `airtcp send` runs it.

use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;

use airlink::reactor::{Clock, Reactor};
use airtcp::host::{ConnId, Host, HostConfig, IoError};
use airtcp::profile::{Profile, ProfileName};
use airtcp::recovery::Recipe;
use airtcp::tcp::SocketOptions;
use airtcp_tun::{Application, Driver};
use airwire::time::Instant;
use anyhow::{Context, anyhow};

use crate::addresses::{KERNEL, MTU, OURS, PORT};
use crate::kernel::GIGABIT;
use crate::meter::{Count, Meter, Sample, Timing};
use crate::test_bed::{Offload, Receiver, TestBed};

const CHUNK: usize = 64 << 10;
/// Minimum of unsent data: enough for two batches of segments, and small enough to stay in the CPU cache.
const UNSENT: usize = CHUNK;
/// Minimum of unsent data with offload. The next ACK arrives 0.25 ms later, and the host must have
/// data to send until then, as the null sender does.
const UNSENT_WITH_OFFLOAD: usize = 1 << 20;

pub(crate) fn run(clock: Clock, timing: Timing, offload: Offload) -> anyhow::Result<Sample> {
    // Like the null sender, this sender keeps the receiver's window full once slow start is over.
    send(clock, timing, "sack".parse()?, Profile::default(), offload)
}

/// Runs a sender that is limited to 1 Gbit/s.
pub(crate) fn paced(clock: Clock, timing: Timing, offload: Offload) -> anyhow::Result<Sample> {
    // With SO_MAX_PACING_RATE the kernel also paces according to its window, so `pacing` is on here.
    let recipe = format!("linux+pacing+max-rate={}kbit/s", GIGABIT * 8 / 1000);
    send(clock, timing, recipe.parse()?, ProfileName::Linux.profile(), offload)
}

fn send(
    clock: Clock,
    timing: Timing,
    recipe: Recipe,
    profile: Profile,
    offload: Offload,
) -> anyhow::Result<Sample> {
    let test_bed = TestBed::new(clock, offload)?;
    let receiver = Receiver::start(&test_bed.namespace)?;
    let addrs = vec![IpAddr::V4(OURS)];
    let host = Host::new(HostConfig { addrs, mtu: usize::from(MTU), profile, recipe, seed: 1 });
    let mut driver = Driver::new(host, test_bed.tun, Reactor::new(clock)?, None)?;
    driver.start_writer()?;
    let remote = SocketAddr::new(IpAddr::V4(KERNEL), PORT);
    // At least as large as the receiver's buffer, so that the receiver's window is the limit.
    let options = SocketOptions { send_buffer: 16 << 20, ..SocketOptions::of(driver.host.profile()) };
    let id = driver.host.connect(clock.now(), None, remote, options)?;
    let meter = Meter::start(clock, timing);
    let unsent = match offload {
        Offload::On => UNSENT_WITH_OFFLOAD,
        Offload::Off => UNSENT,
    };
    let mut sender =
        BulkSender { id, receiver, meter, unsent, chunk: Arc::new(vec![0x5a; CHUNK]), failed: None };
    driver.run(&mut sender)?;
    if let Some(error) = sender.failed {
        return Err(anyhow!("the connection ended: {error}"));
    }
    driver.host.abort(id);
    driver.finish()?;
    // The host needs the namespace until here.
    drop(test_bed.namespace);
    sender.meter.sample().context("stopped before the run was over")
}

struct BulkSender {
    id: ConnId,
    receiver: Receiver,
    meter: Meter,
    /// Minimum of unsent data in the host, in bytes.
    unsent: usize,
    chunk: Arc<Vec<u8>>,
    failed: Option<IoError>,
}

impl Application for BulkSender {
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()> {
        while host.connection(self.id).is_some_and(|c| c.unsent() < self.unsent) {
            match host.write_shared(now, self.id, &self.chunk, 0..CHUNK) {
                Ok(_) => {}
                Err(IoError::WouldBlock) => break,
                Err(error) => {
                    self.failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        let count = || {
            let connection = host.connection(self.id);
            let resent = connection.map_or(0, |c| c.recovery().counters().resent());
            let packets = connection.map_or(0, |c| c.statistics().segments_out);
            Count {
                packets,
                payload: self.receiver.bytes(),
                retransmissions: Some(resent),
                receiver: self.receiver.cpu(),
            }
        };
        if self.meter.tick(count) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.meter.deadline())
    }
}
