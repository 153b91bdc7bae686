//! Real-time driver: runs a machine between TUN devices, in one thread.
//!
//! The machine receives the time for which a deadline was set, not the time at which it is handled. For a
//! packet it receives the time of the read. So the lateness of one packet does not add to the lateness of the
//! next.

mod buffer_pool;
mod endpoint;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::ControlFlow;

use airwire::time::Instant;

use self::buffer_pool::BufferPool;
use self::endpoint::{Departure, Shared};
pub use self::endpoint::{Endpoint, Traffic};
use crate::lateness::Lateness;
use crate::machine::{Machine, Port, catch_up, drain};
use crate::output::OutputError;
use crate::reactor::{Interest, Reactor, Token, Wakeup};

/// Reason why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// A packet could not be read or written, for another reason than a refusal by the kernel.
    #[error("the device `{name}` failed: {source}; was it removed while in use?")]
    Device {
        /// Name of the interface.
        name: String,
        /// Error of the read or write.
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

/// A task that runs in the same thread as a machine: a view, a control socket, or the wait for a program's
/// end.
pub trait Observer<M> {
    /// Called once per round, after its packets have been written. `Break` ends the run.
    fn after(&mut self, round: Round<'_, M>) -> Result<ControlFlow<()>, DriverError>;

    /// The time at which the observer needs a round even if nothing happens. `None`: never.
    /// [`after`](Self::after) must advance it, or rounds follow without a pause.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// State of a run, for an observer.
pub struct Round<'a, M> {
    /// The time up to which the machine has handled its deadlines.
    pub now: Instant,
    /// The machine, which the observer may change. Packets that leave because of a change are written after
    /// this call.
    pub machine: &'a mut M,
    /// The reactor, for the observer's own descriptors. Their tokens start at [`FIRST_OBSERVER_TOKEN`].
    pub reactor: &'a mut Reactor,
    /// The observer's descriptors that are ready.
    pub ready: &'a [Token],
    /// The devices, indexed by port number.
    pub endpoints: &'a [Endpoint],
    /// Lateness of the packets that have left so far.
    pub lateness: &'a Lateness,
    /// A stop signal arrived ([`Reactor::catch_stop_signals`]), so this round is the last one.
    pub stopping: bool,
}

/// The first token that an observer may use. Smaller tokens belong to the devices.
pub const FIRST_OBSERVER_TOKEN: Token = Token(16);

/// The absence of an observer.
impl<M> Observer<M> for () {
    fn after(&mut self, _: Round<'_, M>) -> Result<ControlFlow<()>, DriverError> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Upper bound on the packets read from one device before the next device is read.
const MAX_BATCH: usize = 64;
/// Bytes of the longest IP packet: an IPv6 header plus the largest value of its 16-bit length field. A read
/// into a buffer of this size always returns the whole packet.
pub const MAX_PACKET: usize = 65_575;

/// Whether a failed write to a TUN device means that the kernel refused this one packet: the interface was
/// down, the packet was malformed, or no buffer was available. A network may drop any packet, so the driver
/// counts the refusal and continues.
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::ENOBUFS))
}

impl DriverError {
    /// Creates the error for a failed read or write of the device `name`.
    pub fn device(name: &str, source: io::Error) -> Self {
        Self::Device { name: name.to_owned(), source }
    }
}

/// Runs `machine` between `endpoints` until a stop signal arrives, the observer ends the run, or the clock
/// reaches `until`. Returns the lateness of the packets. Captures are flushed in any case.
pub fn run<M: Machine>(
    machine: &mut M,
    endpoints: &mut [Endpoint],
    reactor: &mut Reactor,
    until: Option<Instant>,
    observer: &mut impl Observer<M>,
) -> Result<Lateness, DriverError> {
    for (endpoint, token) in endpoints.iter().zip(0..) {
        reactor.register(endpoint, Token(token), Interest::Read)?;
    }
    let mut lateness = Lateness::default();
    let mut result = serve(machine, endpoints, reactor, until, observer, &mut lateness);
    for (endpoint, token) in endpoints.iter_mut().zip(0..) {
        let deregistered = reactor.deregister(&*endpoint, Token(token));
        let flushed = endpoint.flush_capture();
        // Clean up all endpoints even after an error, and report the first error.
        result = result.and_then(|()| Ok(deregistered?)).and_then(|()| Ok(flushed?));
    }
    result.map(|()| lateness)
}

/// Writes the packets that leave the machine to the endpoints.
struct Transmitter<'a> {
    endpoints: &'a mut [Endpoint],
    shared: Shared<'a>,
    /// The first failure. It is kept here because the callbacks of `catch_up` and `drain` cannot return it.
    result: Result<(), DriverError>,
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
    let buffers = BufferPool::new(endpoints.iter().map(Endpoint::mtu).max().unwrap_or_default());
    let mut transmitter =
        Transmitter { endpoints, shared: Shared { clock, lateness, buffers }, result: Ok(()) };
    let (mut readable, mut ready) = (Vec::new(), Vec::new());
    // Whether a device may hold more packets than its batch allowed. The next wait then returns at once.
    let mut more = false;
    loop {
        if until.is_some_and(|until| until <= clock.now()) {
            return Ok(());
        }
        let deadlines = [machine.next_deadline(), until, observer.next_deadline()];
        let wait_until = if more { Some(Instant::ZERO) } else { deadlines.into_iter().flatten().min() };
        more = false;
        readable.clear();
        ready.clear();
        let mut stopping = false;
        for event in reactor.wait(wait_until)? {
            match event {
                Wakeup::Stop(_) => stopping = true,
                Wakeup::Readable(token) if *token < FIRST_OBSERVER_TOKEN => readable.push(token.0 as usize),
                Wakeup::Readable(token) | Wakeup::Writable(token) => ready.push(*token),
                Wakeup::Deadline => {}
            }
        }
        // Handle deadlines first: the packets arrived later.
        transmitter.catch_up(machine, clock.now());
        transmitter.write_out();
        for index in &readable {
            let mut taken = 0;
            while taken < MAX_BATCH {
                let now = clock.now();
                let mut arrived = transmitter.endpoints[*index].read(now, &mut transmitter.shared.buffers)?;
                if arrived.is_none() {
                    break;
                }
                while let Some(packet) = arrived {
                    transmitter.catch_up(machine, now);
                    machine.handle_packet(now, Port(*index), packet);
                    transmitter.drain(machine, now);
                    taken += 1;
                    arrived =
                        transmitter.endpoints[*index].next_packet(now, &mut transmitter.shared.buffers)?;
                }
                transmitter.write_out();
            }
            more |= taken >= MAX_BATCH;
        }
        // An observer may change the machine, so the machine must have handled everything up to now.
        let now = clock.now();
        transmitter.catch_up(machine, now);
        transmitter.write_out();
        transmitter.take_result()?;
        let Transmitter { endpoints, shared, .. } = &transmitter;
        let lateness = &*shared.lateness;
        let round = Round { now, machine, reactor, ready: &ready, endpoints, lateness, stopping };
        let verdict = observer.after(round)?;
        transmitter.drain(machine, now);
        transmitter.write_out();
        transmitter.take_result()?;
        if stopping || verdict.is_break() {
            return Ok(());
        }
    }
}

impl Transmitter<'_> {
    fn catch_up(&mut self, machine: &mut impl Machine, now: Instant) {
        catch_up(machine, now, |due, port, packet| {
            let departure = Departure { at: self.shared.clock.now(), due: Some(due) };
            self.send(departure, port, packet);
        });
    }

    fn drain(&mut self, machine: &mut impl Machine, now: Instant) {
        drain(machine, now, |_, port, packet| self.send(Departure { at: now, due: None }, port, packet));
    }

    fn send(&mut self, departure: Departure, Port(index): Port, packet: Vec<u8>) {
        if self.result.is_ok() {
            self.result = self.endpoints[index].send(departure, packet, &mut self.shared);
        }
    }

    /// Writes the packets that devices with offload have collected.
    fn write_out(&mut self) {
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.has_offload()) {
            if self.result.is_ok() {
                self.result = endpoint.write_out(&mut self.shared);
            }
        }
    }

    fn take_result(&mut self) -> Result<(), DriverError> {
        std::mem::replace(&mut self.result, Ok(()))
    }
}
