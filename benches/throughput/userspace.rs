//! This project's own sender: a `Host` under its real-time driver, as `airtcp send` runs it.

use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;

use airlink::reactor::{Clock, Reactor};
use airtcp::host::{ConnId, Host, HostConfig, IoError};
use airtcp::profile::{Profile, ProfileName};
use airtcp::recovery::Recipe;
use airtcp::tcp::SocketOptions;
use airtcp_tun::{Application, Driver};
use airwire::time::Instant;
use anyhow::{Context, anyhow};

use crate::kernel::GIGABIT;
use crate::lab::{KERNEL, Lab, MTU, OURS, Offload, PORT, Receiver};
use crate::meter::{Count, Meter, Sample, Timing};

const CHUNK: usize = 64 << 10;
/// Enough for two batches of segments, and small enough to stay in the cache.
const UNSENT: usize = CHUNK;
/// With offload that is sent before the next ACK comes, a quarter of a millisecond later: the host is always to have something to
/// send, as the null sender has.
const UNSENT_WITH_OFFLOAD: usize = 1 << 20;

pub(crate) fn run(clock: Clock, plan: Timing, offload: Offload) -> anyhow::Result<Sample> {
    // The null sender keeps the receiver's window full; so does this one once slow start is over.
    send(clock, plan, "sack".parse()?, Profile::default(), offload)
}

/// A gigabit a second and no more.
pub(crate) fn paced(clock: Clock, plan: Timing, offload: Offload) -> anyhow::Result<Sample> {
    // Who sets SO_MAX_PACING_RATE has the kernel pace by the window, too.
    let recipe = format!("linux+pacing+max-rate={}kbit/s", GIGABIT * 8 / 1000);
    send(clock, plan, recipe.parse()?, ProfileName::Linux.profile(), offload)
}

fn send(
    clock: Clock,
    plan: Timing,
    recipe: Recipe,
    profile: Profile,
    offload: Offload,
) -> anyhow::Result<Sample> {
    let lab = Lab::new(clock, offload)?;
    let receiver = Receiver::start(&lab.namespace)?;
    let addrs = vec![IpAddr::V4(OURS)];
    let host = Host::new(HostConfig { addrs, mtu: usize::from(MTU), profile, recipe, seed: 1 });
    let mut driver = Driver::new(host, lab.tun, Reactor::new(clock)?, None)?;
    driver.write_apart()?;
    let remote = SocketAddr::new(IpAddr::V4(KERNEL), PORT);
    // No smaller than the receiver's: a window is to end where that one does.
    let options = SocketOptions { send_buffer: 16 << 20, ..SocketOptions::of(driver.host.profile()) };
    let id = driver.host.connect(clock.now(), None, remote, options)?;
    let meter = Meter::start(clock, plan);
    let unsent = match offload {
        Offload::On => UNSENT_WITH_OFFLOAD,
        Offload::Off => UNSENT,
    };
    let mut sender = BulkSender { id, receiver, meter, unsent, chunk: vec![0x5a; CHUNK], failed: None };
    driver.run(&mut sender)?;
    if let Some(error) = sender.failed {
        return Err(anyhow!("the connection ended: {error}"));
    }
    driver.host.abort(clock.now(), id);
    driver.finish()?;
    // The namespace was needed until here.
    drop(lab.namespace);
    sender.meter.sample().context("stopped before the run was over")
}

struct BulkSender {
    id: ConnId,
    receiver: Receiver,
    meter: Meter,
    /// What the host always has to send, in octets.
    unsent: usize,
    chunk: Vec<u8>,
    failed: Option<IoError>,
}

impl Application for BulkSender {
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()> {
        while host.connection(self.id).is_some_and(|c| c.unsent() < self.unsent) {
            match host.write(now, self.id, &self.chunk) {
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
                sent_again: Some(resent),
                receiver: self.receiver.cpu(),
            }
        };
        if self.meter.tick(count) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.meter.deadline())
    }
}
