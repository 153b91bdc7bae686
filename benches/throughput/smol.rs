//! smoltcp's own TCP over the same device: another userspace sender for comparison.
//!
//! Timestamps are on, as in the other senders, so that all packets carry the same payload.

use std::sync::atomic::{AtomicU32, Ordering};

use airlink::reactor::Clock;
use airlink::tun::Tun;
use airwire::time::{Duration, Instant};
use anyhow::{Context, anyhow, ensure};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant as SmolInstant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use crate::addresses::{KERNEL, MTU, OURS, PORT};
use crate::meter::{Count, Meter, Sample, Timing};
use crate::test_bed::{Offload, Receiver, TestBed};

/// Large enough not to limit the throughput.
const SEND_BUFFER: usize = 1 << 20;

pub(crate) fn run(clock: Clock, timing: Timing) -> anyhow::Result<Sample> {
    let mut test_bed = TestBed::new(clock, Offload::Off)?;
    let receiver = Receiver::start(&test_bed.namespace)?;
    let mut device = TunDevice { packets: 0, buffer: vec![0; 2000], out: vec![0; 2000] };
    let mut interface = {
        let mut port = device.on(&test_bed.tun);
        Interface::new(Config::new(HardwareAddress::Ip), &mut port, smol(clock.now()))
    };
    let mut full = Ok(());
    interface.update_ip_addrs(|addrs| full = addrs.push(IpCidr::new(IpAddress::Ipv4(OURS), 24)));
    full.map_err(|_| anyhow!("no room for an address"))?;

    let mut socket =
        Socket::new(SocketBuffer::new(vec![0; 1 << 16]), SocketBuffer::new(vec![0x5a; SEND_BUFFER]));
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(None);
    socket.set_tsval_generator(Some(milliseconds));
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(socket);
    sockets
        .get_mut::<Socket<'_>>(handle)
        .connect(interface.context(), (IpAddress::Ipv4(KERNEL), PORT), 40_000)
        .map_err(|error| anyhow!("smoltcp did not connect: {error}"))?;

    // Data is written in chunks, as applications and this project's sender do.
    let chunk = vec![0x5a; 64 * 1024];
    let mut meter = Meter::start(clock, timing);
    while meter.tick(|| Count {
        packets: device.packets,
        payload: receiver.bytes(),
        retransmissions: None,
        receiver: receiver.cpu(),
    }) {
        let now = clock.now();
        TICKS.store(now.as_millis() as u32, Ordering::Relaxed);
        interface.poll(smol(now), &mut device.on(&test_bed.tun), &mut sockets);
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        ensure!(socket.is_open(), "smoltcp's connection ended");
        if socket.can_send() {
            socket.send_slice(&chunk).map_err(|error| anyhow!("smoltcp did not send: {error}"))?;
        }
        // Wait until a packet arrives or smoltcp's own deadline is due.
        let until = match interface.poll_at(smol(clock.now()), &sockets) {
            Some(at) => Instant::from_micros(at.total_micros().max(0) as u64),
            None => now + Duration::from_millis(100),
        };
        if until > clock.now() {
            test_bed.wait(until.min(meter.deadline()))?;
        }
    }
    sockets.get_mut::<Socket<'_>>(handle).abort();
    interface.poll(smol(clock.now()), &mut device.on(&test_bed.tun), &mut sockets);
    meter.sample().context("the run is over")
}

/// The clock of smoltcp's timestamps. It must be a plain function, so it cannot receive the time as
/// an argument.
fn milliseconds() -> u32 {
    TICKS.load(Ordering::Relaxed)
}

static TICKS: AtomicU32 = AtomicU32::new(1);

fn smol(at: Instant) -> SmolInstant {
    SmolInstant::from_micros(at.as_micros() as i64)
}

/// Buffers for smoltcp's access to a TUN device, which avoid an allocation per packet.
struct TunDevice {
    packets: u64,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl TunDevice {
    fn on<'a>(&'a mut self, tun: &'a Tun) -> TunPort<'a> {
        TunPort { device: self, tun }
    }
}

struct TunPort<'a> {
    device: &'a mut TunDevice,
    tun: &'a Tun,
}

impl Device for TunPort<'_> {
    type RxToken<'t>
        = Rx<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Tx<'t>
    where
        Self: 't;

    fn receive(&mut self, _: SmolInstant) -> Option<(Rx<'_>, Tx<'_>)> {
        let TunDevice { packets, buffer, out } = self.device;
        // An error of the device becomes visible as a stalled run.
        let len = self.tun.recv(buffer).ok().flatten()?;
        Some((Rx(&buffer[..len]), Tx { tun: self.tun, out, packets }))
    }

    fn transmit(&mut self, _: SmolInstant) -> Option<Tx<'_>> {
        let TunDevice { packets, out, .. } = self.device;
        Some(Tx { tun: self.tun, out, packets })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = usize::from(MTU);
        capabilities
    }
}

struct Rx<'a>(&'a [u8]);

impl RxToken for Rx<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

struct Tx<'a> {
    tun: &'a Tun,
    out: &'a mut [u8],
    packets: &'a mut u64,
}

impl TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let packet = &mut self.out[..len];
        let result = f(packet);
        // A packet that the kernel refuses counts as lost.
        let _ = self.tun.send(packet);
        *self.packets += 1;
        result
    }
}
