//! Real time: runs a machine between TUN devices, in one thread.
//!
//! A machine is told the time for which a deadline was set, not the time when it is handled; and of a packet the time
//! when it was read. So one packet's lateness does not add to the next one's.

use std::io;
use std::ops::ControlFlow;

use airwire::time::Instant;
use serde::Serialize;

use crate::capture::Capture;
use crate::lateness::Lateness;
use crate::machine::{Machine, Port, catch_up, drain};
use crate::output::OutputError;
use crate::reactor::{Clock, Interest, Reactor, Token, Wakeup};
use crate::tun::{DeviceError, Tun};

/// A TUN device at one of the machine's ports: the endpoint at index `i` is port `i`.
pub struct Endpoint {
    tun: Tun,
    tap: Option<Capture>,
    traffic: Traffic,
}

/// What went through a device. The kernel behind it has sent and received these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Packets that the kernel sent: read from the device.
    pub sent_packets: u64,
    /// Their octets, IP headers included.
    pub sent_bytes: u64,
    /// Packets that the kernel received: written to the device.
    pub received_packets: u64,
    /// Their octets, IP headers included.
    pub received_bytes: u64,
    /// Packets that the kernel refused; [`is_refusal`] says why it may.
    pub refused_packets: u64,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A packet could not be read or written, and not because the kernel refused it.
    #[error("the device `{name}` failed: {source}; was it removed while in use?")]
    Device {
        /// The interface's name.
        name: String,
        /// What read or write reported.
        source: io::Error,
    },
    /// The reactor failed.
    #[error("cannot wait for packets: {0}")]
    Wait(#[from] io::Error),
    /// A capture could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// An observer failed.
    #[error(transparent)]
    Observer(Box<dyn std::error::Error + Send + Sync>),
}

/// What runs beside a machine in the same thread, such as views, a control socket, or the wait for a program's end.
pub trait Observer<M> {
    /// Called once per round, after its packets have been written. `Break` ends the run.
    fn after(&mut self, round: Round<'_, M>) -> Result<ControlFlow<()>, DriverError>;

    /// When it wants a round even if nothing happens; `None`: never. [`after`](Self::after) must move it on, or rounds
    /// follow without a pause.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// What an observer sees of a run.
pub struct Round<'a, M> {
    /// The time up to which the machine has handled its deadlines.
    pub now: Instant,
    /// The machine, which may be changed. Packets that leave it because of that are written after this call.
    pub machine: &'a mut M,
    /// For descriptors of the observer's own, with tokens from [`OBSERVERS_OWN`] on.
    pub reactor: &'a mut Reactor,
    /// The observer's descriptors that are ready.
    pub ready: &'a [Token],
    /// The devices, by the number of their port.
    pub endpoints: &'a [Endpoint],
    /// How late packets have left so far.
    pub lateness: &'a Lateness,
    /// A stop signal came ([`Reactor::catch_stop_signals`]): this round is the last one.
    pub stopping: bool,
}

/// The first token that an observer may use. The smaller ones belong to the devices.
pub const OBSERVERS_OWN: Token = Token(16);

/// No observer.
impl<M> Observer<M> for () {
    fn after(&mut self, _: Round<'_, M>) -> Result<ControlFlow<()>, DriverError> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Packets read from one device before the others get their turn.
const BATCH: usize = 64;
/// Octets of the longest IP packet: an IPv6 header and what its 16-bit length can say. A read into a buffer of this
/// size gets the whole packet.
pub const MAX_PACKET: usize = 65_575;

/// Whether a failed write to a TUN device means that the kernel refused this one packet: the interface was down, the
/// packet was malformed, or there was no buffer for it. The driver counts it and goes on, since a network may drop any
/// packet.
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::ENOBUFS))
}

impl DriverError {
    /// The device `name` failed to read or write.
    pub fn device(name: &str, source: io::Error) -> Self {
        Self::Device { name: name.to_owned(), source }
    }
}

impl Endpoint {
    /// `tap` gets every packet that crosses the device, in either direction.
    pub fn new(tun: Tun, tap: Option<Capture>) -> Self {
        Self { tun, tap, traffic: Traffic::default() }
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        self.tun.name()
    }

    /// What went through since the beginning.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Packets that the kernel has dropped because the device's queue was full. No machine has seen them.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        self.tun.kernel_drops()
    }

    /// The next packet, in memory that is used again if there is some. `None`: there is none to read.
    fn recv(&mut self, at: Instant, scratch: &mut Scratch) -> Result<Option<Vec<u8>>, DriverError> {
        let len =
            self.tun.recv(&mut scratch.buffer).map_err(|source| DriverError::device(self.name(), source))?;
        let Some(len) = len else { return Ok(None) };
        let mut packet = scratch.done_with.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(&scratch.buffer[..len]);
        self.traffic.sent_packets += 1;
        self.traffic.sent_bytes += len as u64;
        self.capture(at, &packet)?;
        Ok(Some(packet))
    }

    fn send(&mut self, at: Instant, packet: &[u8]) -> Result<(), DriverError> {
        self.capture(at, packet)?;
        match self.tun.send(packet) {
            Ok(()) => {
                self.traffic.received_packets += 1;
                self.traffic.received_bytes += packet.len() as u64;
                Ok(())
            }
            Err(error) if is_refusal(&error) => {
                self.traffic.refused_packets += 1;
                Ok(())
            }
            Err(source) => Err(DriverError::device(self.name(), source)),
        }
    }

    fn capture(&mut self, at: Instant, packet: &[u8]) -> Result<(), OutputError> {
        self.tap.as_mut().map_or(Ok(()), |tap| tap.write(at, packet))
    }
}

/// Runs `machine` between `endpoints` until a stop signal comes, the observer ends it, or the clock reaches `until`.
/// Returns how late packets left. Captures are written out in any case.
pub fn run<M: Machine>(
    machine: &mut M,
    endpoints: &mut [Endpoint],
    reactor: &mut Reactor,
    until: Option<Instant>,
    observer: &mut impl Observer<M>,
) -> Result<Lateness, DriverError> {
    for (endpoint, token) in endpoints.iter().zip(0..) {
        reactor.register(&endpoint.tun, Token(token), Interest::Read)?;
    }
    let mut lateness = Lateness::default();
    let mut result = serve(machine, endpoints, reactor, until, observer, &mut lateness);
    for (endpoint, token) in endpoints.iter_mut().zip(0..) {
        let deregistered = reactor.deregister(&endpoint.tun, Token(token));
        let flushed = endpoint.tap.as_mut().map_or(Ok(()), Capture::flush);
        // All of it is done even after an error; the first error is reported.
        result = result.and_then(|()| Ok(deregistered?)).and_then(|()| Ok(flushed?));
    }
    result.map(|()| lateness)
}

/// Memory that is used again.
struct Scratch {
    /// For reads.
    buffer: Vec<u8>,
    /// Packets that have left.
    done_with: Vec<Vec<u8>>,
}

/// The most packets whose memory is kept.
const KEPT: usize = 256;

/// Where packets leave the machine.
struct Exits<'a> {
    clock: Clock,
    endpoints: &'a mut [Endpoint],
    lateness: &'a mut Lateness,
    scratch: Scratch,
    /// The first failure. It is kept until the machine has handed out everything, which cannot be interrupted.
    failed: Result<(), DriverError>,
}

fn serve<M: Machine>(
    machine: &mut M,
    endpoints: &mut [Endpoint],
    reactor: &mut Reactor,
    until: Option<Instant>,
    observer: &mut impl Observer<M>,
    lateness: &mut Lateness,
) -> Result<(), DriverError> {
    let clock = reactor.clock();
    let scratch = Scratch { buffer: vec![0; MAX_PACKET], done_with: Vec::new() };
    let mut exits = Exits { clock, endpoints, lateness, scratch, failed: Ok(()) };
    let (mut readable, mut ready) = (Vec::new(), Vec::new());
    loop {
        if until.is_some_and(|until| until <= clock.now()) {
            return Ok(());
        }
        let deadlines = [machine.next_deadline(), until, observer.next_deadline()];
        readable.clear();
        ready.clear();
        let mut stopping = false;
        for event in reactor.wait(deadlines.into_iter().flatten().min())? {
            match event {
                Wakeup::Stop => stopping = true,
                Wakeup::Readable(token) if *token < OBSERVERS_OWN => readable.push(token.0 as usize),
                Wakeup::Readable(token) | Wakeup::Writable(token) => ready.push(*token),
                Wakeup::Deadline => {}
            }
        }
        // Deadlines before the packets that came after them.
        exits.catch_up(machine, clock.now());
        for index in &readable {
            for _ in 0..BATCH {
                let now = clock.now();
                let Some(packet) = exits.endpoints[*index].recv(now, &mut exits.scratch)? else { break };
                exits.catch_up(machine, now);
                machine.handle_packet(now, Port(*index), packet);
                exits.drain(machine, now);
            }
        }
        // An observer may change the machine, which must have handled everything up to now.
        let now = clock.now();
        exits.catch_up(machine, now);
        exits.failure()?;
        let Exits { endpoints, lateness, .. } = &exits;
        let round = Round { now, machine, reactor, ready: &ready, endpoints, lateness, stopping };
        let verdict = observer.after(round)?;
        exits.drain(machine, now);
        exits.failure()?;
        if stopping || verdict.is_break() {
            return Ok(());
        }
    }
}

impl Exits<'_> {
    fn catch_up(&mut self, machine: &mut impl Machine, now: Instant) {
        catch_up(machine, now, |ideal, port, packet| {
            let now = self.clock.now();
            self.lateness.record(now - ideal);
            self.send(now, port, packet);
        });
    }

    fn drain(&mut self, machine: &mut impl Machine, now: Instant) {
        drain(machine, now, |_, port, packet| self.send(now, port, packet));
    }

    fn send(&mut self, at: Instant, Port(index): Port, packet: Vec<u8>) {
        if self.failed.is_ok() {
            self.failed = self.endpoints[index].send(at, &packet);
        }
        if self.scratch.done_with.len() < KEPT {
            self.scratch.done_with.push(packet);
        }
    }

    fn failure(&mut self) -> Result<(), DriverError> {
        std::mem::replace(&mut self.failed, Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::UdpSocket;

    use airwire::time::Duration;

    use super::*;
    use crate::netns::Namespace;
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
            let lateness = run(&mut machine, &mut endpoints, &mut reactor, Some(until), &mut ()).unwrap();
            assert_eq!(lateness.packets(), PACKETS as u64);
            assert!(clock.now() >= until);
            let arrivals = arrivals.join().unwrap();
            assert!(arrivals.iter().all(|(_, at)| *at >= sent + delay), "sent at {sent}: {arrivals:?}");
            arrivals
        });
        assert!(arrivals.iter().map(|(byte, _)| *byte).eq(0..PACKETS as u8), "{arrivals:?}");
        assert_eq!(endpoints[0].traffic().sent_packets, PACKETS as u64);
        assert_eq!(endpoints[1].traffic().received_packets, PACKETS as u64);
    }

    /// Has a deadline every few microseconds, so there is always one that has just passed.
    struct Ticking(Instant);

    impl Machine for Ticking {
        fn handle_packet(&mut self, _: Instant, _: Port, _: Vec<u8>) {}
        fn handle_deadline(&mut self, now: Instant) {
            self.0 = now + Duration::from_micros(5);
        }
        fn poll_packet(&mut self, _: Instant) -> Option<(Port, Vec<u8>)> {
            None
        }
        fn next_deadline(&self) -> Option<Instant> {
            Some(self.0)
        }
    }

    #[test]
    fn an_observer_finds_the_machine_where_the_clock_is() {
        struct Looks(u32);
        impl Observer<Ticking> for Looks {
            fn after(&mut self, round: Round<'_, Ticking>) -> Result<ControlFlow<()>, DriverError> {
                let pending = round.machine.next_deadline().unwrap();
                assert!(pending > round.now, "at {} the deadline {pending} is still to come", round.now);
                self.0 += 1;
                Ok(if self.0 < 1000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            }
        }
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        run(&mut Ticking(Instant::ZERO), &mut [], &mut reactor, None, &mut Looks(0)).unwrap();
    }

    #[test]
    fn a_packet_that_an_observer_lets_out_and_that_fails_ends_the_run() {
        /// Removes the device, and lets something out when the run's time is over: no further round finds it.
        struct Removes(Namespace, String, Instant);
        impl Observer<Delay> for Removes {
            fn after(&mut self, round: Round<'_, Delay>) -> Result<ControlFlow<()>, DriverError> {
                let mut ip = std::process::Command::new("ip");
                self.0.spawn(ip.args(["link", "del", &self.1])).unwrap().wait().unwrap();
                while round.reactor.clock().now() < self.2 {}
                round.machine.handle_packet(round.now, Port(1), vec![0x45; 20]);
                Ok(ControlFlow::Continue(()))
            }
            fn next_deadline(&self) -> Option<Instant> {
                Some(Instant::ZERO)
            }
        }
        let namespace = Namespace::create()
            .unwrap_or_else(|error| panic!("this test makes a network namespace: {error}"));
        let config = TunConfig { namespace: Some(namespace.path().to_path_buf()), ..TunConfig::default() };
        let mut endpoints = [Endpoint::new(Tun::open(&config).unwrap(), None)];
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let until = reactor.clock().now() + Duration::from_millis(200);
        let mut observer = Removes(namespace, endpoints[0].name().to_owned(), until);
        let mut machine = Delay(Duration::ZERO, VecDeque::new());
        let result = run(&mut machine, &mut endpoints, &mut reactor, Some(until), &mut observer);
        assert!(matches!(result, Err(DriverError::Device { .. })), "{result:?}");
    }
}
