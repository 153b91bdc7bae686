//! The path without TCP: the cost of writing to a device, and of copying between two devices.

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use airlink::reactor::Clock;
use airlink::tun::{Tun, TunConfig};
use anyhow::Context;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, connect, send, setsockopt, socket, sockopt,
};

use crate::addresses::{MSS, MTU, NOWHERE};
use crate::meter::{Count, Meter, Sample, Timing};
use crate::packet::{ACK, Segment, timestamps};
use crate::test_bed::{Offload, TestBed};

const BATCH: usize = 64;

/// Writes full packets to a device whose kernel drops them.
pub(crate) fn write(clock: Clock, timing: Timing) -> anyhow::Result<Sample> {
    let test_bed = TestBed::new(clock, Offload::Off)?;
    let mut segment = Segment::new(NOWHERE, 0, ACK, &timestamps(0), &[0; MSS]);
    let packet = segment.stamped(0, 0);
    let mut meter = Meter::start(clock, timing);
    let mut packets = 0;
    while meter.tick(|| count(packets)) {
        for _ in 0..BATCH {
            test_bed.tun.send(packet).context("writing into the device")?;
        }
        packets += BATCH as u64;
    }
    meter.sample().context("the run is over")
}

/// Copies in one thread from a device whose kernel sends at full speed to a device whose kernel drops.
pub(crate) fn copy(clock: Clock, timing: Timing) -> anyhow::Result<Sample> {
    let mut from = TestBed::new(clock, Offload::Off)?;
    let to = TestBed::new(clock, Offload::Off)?;
    // Packets to `NOWHERE` leave the first namespace through this device.
    let source = Tun::open(&TunConfig {
        namespace: Some(from.namespace.path().to_path_buf()),
        routes: vec!["10.99.0.0/16".parse()?],
        ..TunConfig::default()
    })?;
    let sender = from.namespace.enter(datagram_socket)??;
    from.watch(&source)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| send_datagrams(&sender, &stop));
        let sample = copy_until_done(clock, timing, &mut from, &source, &to.tun);
        stop.store(true, Ordering::Relaxed);
        sample
    })
}

fn copy_until_done(
    clock: Clock,
    timing: Timing,
    from: &mut TestBed,
    source: &Tun,
    to: &Tun,
) -> anyhow::Result<Sample> {
    let mut meter = Meter::start(clock, timing);
    let mut buffer = [0; MTU as usize];
    let mut packets = 0;
    while meter.tick(|| count(packets)) {
        let mut idle = true;
        for _ in 0..BATCH {
            let Some(len) = source.recv(&mut buffer)? else { break };
            to.send(&buffer[..len])?;
            packets += 1;
            idle = false;
        }
        if idle {
            from.wait(meter.deadline())?;
        }
    }
    meter.sample().context("the run is over")
}

fn count(packets: u64) -> Count {
    Count { packets, payload: packets * MSS as u64, retransmissions: None, receiver: None }
}

fn datagram_socket() -> nix::Result<OwnedFd> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(NOWHERE, 9)))?;
    // UDP GSO: each call sends many packets. Otherwise the sender would be slower than the copying thread.
    setsockopt(&socket, sockopt::UdpGsoSegment, &(i32::from(MTU) - 28))?;
    Ok(socket)
}

fn send_datagrams(socket: &OwnedFd, stop: &AtomicBool) {
    let datagrams = vec![0; (usize::from(MTU) - 28) * 40];
    while !stop.load(Ordering::Relaxed) {
        // A full queue drops datagrams, which is expected here.
        let _ = send(socket.as_raw_fd(), &datagrams, MsgFlags::empty());
    }
}
