//! Real time: runs a machine between TUN devices, in one thread.

use std::io;

use serde::Serialize;

use crate::capture::{Capture, CaptureError, Tap};
use crate::machine::{Machine, Port, catch_up, drain};
use crate::reactor::{Event, Interest, Reactor, Token};
use crate::time::{Duration, Instant};
use crate::tun::{DeviceError, Tun};

/// What the machine's port of the same number is connected to.
pub struct Endpoint {
    tun: Tun,
    tap: Option<Capture>,
    traffic: Traffic,
}

/// What went through a device, seen from the kernel behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub received_packets: u64,
    pub received_bytes: u64,
    /// The kernel would not take these (the interface was down, the packet was malformed).
    pub refused_packets: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error("the device `{name}` failed: {source}; was it removed while in use?")]
    Device { name: String, source: io::Error },
    #[error("cannot wait for packets: {0}")]
    Wait(#[from] io::Error),
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// How well time was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuality {
    pub deadlines: u64,
    /// How late the worst deadline was served.
    pub latest: Duration,
}

/// Packets read from one device before the others get their turn.
const BATCH: usize = 64;
/// No IP packet is longer (a v6 header and its 16-bit length).
const MAX_PACKET: usize = 65_575;

impl Endpoint {
    pub fn new(tun: Tun, tap: Option<Capture>) -> Self {
        Self { tun, tap, traffic: Traffic::default() }
    }

    pub fn name(&self) -> &str {
        self.tun.name()
    }

    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Packets lost between the kernel and us, which no machine has seen.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        self.tun.kernel_drops()
    }

    fn recv(&mut self, at: Instant, buffer: &mut [u8]) -> Result<Option<Vec<u8>>, DriverError> {
        let len = self.tun.recv(buffer).map_err(|source| self.device_error(source))?;
        let Some(len) = len else { return Ok(None) };
        let packet = buffer[..len].to_vec();
        self.traffic.sent_packets += 1;
        self.traffic.sent_bytes += len as u64;
        self.tap.packet(at, &packet);
        Ok(Some(packet))
    }

    fn send(&mut self, at: Instant, packet: &[u8]) -> Result<(), DriverError> {
        self.tap.packet(at, packet);
        match self.tun.send(packet) {
            Ok(()) => {
                self.traffic.received_packets += 1;
                self.traffic.received_bytes += packet.len() as u64;
                Ok(())
            }
            // What a kernel does not like it drops; a network does not end of that.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::ENOBUFS)) => {
                self.traffic.refused_packets += 1;
                Ok(())
            }
            Err(source) => Err(self.device_error(source)),
        }
    }

    fn device_error(&self, source: io::Error) -> DriverError {
        DriverError::Device { name: self.name().to_owned(), source }
    }
}

/// Runs `machine` between `endpoints` until somebody stops the program, or until the clock says so.
pub fn run(
    machine: &mut impl Machine,
    endpoints: &mut [Endpoint],
    reactor: &mut Reactor,
    until: Option<Instant>,
) -> Result<Punctuality, DriverError> {
    for (endpoint, token) in endpoints.iter().zip(0..) {
        reactor.register(&endpoint.tun, Token(token), Interest::Read)?;
    }
    let result = serve(machine, endpoints, reactor, until);
    for (endpoint, token) in endpoints.iter_mut().zip(0..) {
        reactor.deregister(&endpoint.tun, Token(token))?;
        if let Some(capture) = &mut endpoint.tap {
            capture.flush()?;
        }
    }
    result
}

fn serve(
    machine: &mut impl Machine,
    endpoints: &mut [Endpoint],
    reactor: &mut Reactor,
    until: Option<Instant>,
) -> Result<Punctuality, DriverError> {
    let clock = reactor.clock();
    let mut punctuality = Punctuality::default();
    let mut buffer = vec![0; MAX_PACKET];
    loop {
        if until.is_some_and(|until| until <= clock.now()) {
            return Ok(punctuality);
        }
        let deadline = machine.next_deadline();
        let mut readable = Vec::new();
        for event in reactor.wait(deadline.into_iter().chain(until).min())? {
            match event {
                Event::Stop => return Ok(punctuality),
                Event::Readable(token) => readable.push(*token),
                Event::Deadline => punctuality.note(deadline, clock.now()),
                Event::Writable(_) => {}
            }
        }
        let mut failed = Ok(());
        catch_up(machine, clock.now(), |_, port, packet| {
            forward(endpoints, clock.now(), port, &packet, &mut failed)
        });
        for Token(index) in readable {
            for _ in 0..BATCH {
                let now = clock.now();
                let Some(packet) = endpoints[index as usize].recv(now, &mut buffer)? else { break };
                catch_up(machine, now, |_, port, packet| forward(endpoints, now, port, &packet, &mut failed));
                machine.handle_packet(now, Port(index as usize), packet);
                drain(machine, now, |_, port, packet| forward(endpoints, now, port, &packet, &mut failed));
            }
        }
        failed?;
    }
}

/// The first failure is kept: a machine cannot be stopped in the middle of handing out.
fn forward(
    endpoints: &mut [Endpoint],
    at: Instant,
    port: Port,
    packet: &[u8],
    failed: &mut Result<(), DriverError>,
) {
    let result = endpoints[port.0].send(at, packet);
    if failed.is_ok() {
        *failed = result;
    }
}

impl Punctuality {
    fn note(&mut self, deadline: Option<Instant>, now: Instant) {
        // It may have been the end of the run that was waited for.
        let Some(deadline) = deadline.filter(|deadline| *deadline <= now) else { return };
        self.deadlines += 1;
        self.latest = self.latest.max(now - deadline);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::UdpSocket;

    use super::*;
    use crate::netns::Namespace;
    use crate::reactor::Clock;
    use crate::tun::TunConfig;

    /// What comes in by one port leaves by the other, later.
    struct Delay(Duration, VecDeque<(Instant, Port, Vec<u8>)>);

    impl Machine for Delay {
        fn handle_packet(&mut self, now: Instant, Port(from): Port, packet: Vec<u8>) {
            self.1.push_back((now + self.0, Port(1 - from), packet));
        }
        fn handle_deadline(&mut self, _: Instant) {}
        fn poll_packet(&mut self, now: Instant) -> Option<(Port, Vec<u8>)> {
            self.1.pop_front_if(|(at, ..)| *at <= now).map(|(_, port, packet)| (port, packet))
        }
        fn next_deadline(&self) -> Option<Instant> {
            self.1.front().map(|(at, ..)| *at)
        }
    }

    #[test]
    fn packets_leave_in_order_and_not_before_their_deadline() {
        const PACKETS: usize = 5;
        let namespaces: [_; 2] = std::array::from_fn(|_| {
            Namespace::create().unwrap_or_else(|error| panic!("this test makes network namespaces: {error}"))
        });
        let addrs = ["10.0.0.1/24", "10.0.0.2/24"];
        let mut endpoints: Vec<_> = std::iter::zip(&namespaces, addrs)
            .map(|(namespace, addr)| {
                let namespace = Some(namespace.path().to_path_buf());
                let addrs = vec![addr.parse().unwrap()];
                Endpoint::new(
                    Tun::open(&TunConfig { namespace, addrs, ..TunConfig::default() }).unwrap(),
                    None,
                )
            })
            .collect();
        let [from, to] = ["10.0.0.1:7", "10.0.0.2:7"];
        let sender = namespaces[0].enter(|| UdpSocket::bind(from).unwrap()).unwrap();
        let receiver = namespaces[1].enter(|| UdpSocket::bind(to).unwrap()).unwrap();
        // A packet that never arrives is a failure, not a wait.
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();

        let clock = Clock::start();
        let mut reactor = Reactor::new(clock).unwrap();
        let delay = Duration::from_millis(20);
        let mut machine = Delay(delay, VecDeque::new());
        let arrivals = std::thread::scope(|scope| {
            let arrivals = scope.spawn(|| {
                let mut byte = [0];
                let arrival = |_| receiver.recv(&mut byte).map(|_| (byte[0], clock.now())).unwrap();
                (0..PACKETS).map(arrival).collect::<Vec<_>>()
            });
            let sent = clock.now();
            for byte in 0..PACKETS as u8 {
                sender.send_to(&[byte], to).unwrap();
            }
            // Two seconds: a busy machine may not let us run for one.
            let until = sent + Duration::from_secs(2);
            let punctuality = run(&mut machine, &mut endpoints, &mut reactor, Some(until)).unwrap();
            assert!(punctuality.deadlines >= 1, "{punctuality:?}");
            assert!(clock.now() >= until);
            let arrivals = arrivals.join().unwrap();
            assert!(arrivals.iter().all(|(_, at)| *at >= sent + delay), "sent at {sent}: {arrivals:?}");
            arrivals
        });
        assert!(arrivals.iter().map(|(byte, _)| *byte).eq(0..PACKETS as u8), "{arrivals:?}");
        assert_eq!(endpoints[0].traffic().sent_packets, PACKETS as u64);
        assert_eq!(endpoints[1].traffic().received_packets, PACKETS as u64);
    }
}
