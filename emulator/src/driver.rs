//! Real time: runs a machine between TUN devices, in one thread.
//!
//! A machine is told the time for which a deadline was set, not the time when it is handled; and of a packet the time
//! when it was read. So one packet's lateness does not add to the next one's.

mod endpoint;
mod memory;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::ControlFlow;

use airwire::time::Instant;

use self::endpoint::{Departure, Shared};
pub use self::endpoint::{Endpoint, Traffic};
use self::memory::Memory;
use crate::lateness::Lateness;
use crate::machine::{Machine, Port, catch_up, drain};
use crate::output::OutputError;
use crate::reactor::{Interest, Reactor, Token, Wakeup};

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
        reactor.register(endpoint, Token(token), Interest::Read)?;
    }
    let mut lateness = Lateness::default();
    let mut result = serve(machine, endpoints, reactor, until, observer, &mut lateness);
    for (endpoint, token) in endpoints.iter_mut().zip(0..) {
        let deregistered = reactor.deregister(&*endpoint, Token(token));
        let flushed = endpoint.flush_capture();
        // All of it is done even after an error; the first error is reported.
        result = result.and_then(|()| Ok(deregistered?)).and_then(|()| Ok(flushed?));
    }
    result.map(|()| lateness)
}

/// Where packets leave the machine.
struct Exits<'a> {
    endpoints: &'a mut [Endpoint],
    shared: Shared<'a>,
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
    let memory = Memory::new(endpoints.iter().map(Endpoint::mtu).max().unwrap_or_default());
    let mut exits = Exits { endpoints, shared: Shared { clock, lateness, memory }, failed: Ok(()) };
    let (mut readable, mut ready) = (Vec::new(), Vec::new());
    // A device has more than its turn has taken: then nothing is to be waited for.
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
                Wakeup::Stop => stopping = true,
                Wakeup::Readable(token) if *token < OBSERVERS_OWN => readable.push(token.0 as usize),
                Wakeup::Readable(token) | Wakeup::Writable(token) => ready.push(*token),
                Wakeup::Deadline => {}
            }
        }
        // Deadlines before the packets that came after them.
        exits.catch_up(machine, clock.now());
        exits.write_out();
        for index in &readable {
            let mut taken = 0;
            while taken < BATCH {
                let now = clock.now();
                let mut arrived = exits.endpoints[*index].read(now, &mut exits.shared.memory)?;
                if arrived.is_none() {
                    break;
                }
                while let Some(packet) = arrived {
                    exits.catch_up(machine, now);
                    machine.handle_packet(now, Port(*index), packet);
                    exits.drain(machine, now);
                    taken += 1;
                    arrived = exits.endpoints[*index].next_piece(now, &mut exits.shared.memory)?;
                }
                exits.write_out();
            }
            more |= taken >= BATCH;
        }
        // An observer may change the machine, which must have handled everything up to now.
        let now = clock.now();
        exits.catch_up(machine, now);
        exits.write_out();
        exits.failure()?;
        let Exits { endpoints, shared, .. } = &exits;
        let lateness = &*shared.lateness;
        let round = Round { now, machine, reactor, ready: &ready, endpoints, lateness, stopping };
        let verdict = observer.after(round)?;
        exits.drain(machine, now);
        exits.write_out();
        exits.failure()?;
        if stopping || verdict.is_break() {
            return Ok(());
        }
    }
}

impl Exits<'_> {
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
        if self.failed.is_ok() {
            self.failed = self.endpoints[index].send(departure, packet, &mut self.shared);
        }
    }

    /// Writes what devices with offload have kept back to join it.
    fn write_out(&mut self) {
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.joins()) {
            if self.failed.is_ok() {
                self.failed = endpoint.write_out(&mut self.shared);
            }
        }
    }

    fn failure(&mut self) -> Result<(), DriverError> {
        std::mem::replace(&mut self.failed, Ok(()))
    }
}
