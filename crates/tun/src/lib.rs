//! Runs a [`Host`] in real time over a TUN device, in one thread with its application. A second thread writes to
//! the device if [`Driver::start_writer`] was called.
//!
//! Begin with [`Driver::new`], which takes a host, a device (`airlink::tun::Tun`) and a reactor
//! (`airlink::reactor::Reactor`), and implement [`Application`] for the host's task. The example `fetch` is a
//! complete program: `cargo run -p airtcp-tun --example fetch`, as root.
//!
//! ```
//! use airtcp::recovery::Recipe;
//!
//! // A recipe that needs ground truth about losses works only in virtual time.
//! let recipe: Recipe = "sack+oracle".parse()?;
//! assert!(airtcp_tun::check_real_time(&recipe).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The kernel processes a segment inside our `write` to the device, so its ACK can be read immediately afterwards.
//! The driver therefore writes at most one batch of segments between two reads of the device, and sends the
//! host's responses right after each read.
//!
//! On a device with offload ([`airlink::offload`]), one write carries consecutive segments, and one read returns
//! the kernel's unsegmented data. The host still sends and receives segments as on the wire.

#![warn(missing_docs)]

mod descriptors;
pub mod log;
mod writer;

use std::io;
use std::num::NonZero;
use std::ops::{AddAssign, ControlFlow};
use std::sync::Arc;

use airlink::capture::{Capture, Tap};
pub use airlink::driver::DriverError;
use airlink::driver::{MAX_PACKET, is_refusal};
use airlink::offload::Segmenter;
use airlink::reactor::{Clock, Interest, Reactor, Token, Wakeup};
use airlink::tun::{DeviceError, Tun};
use airtcp::host::Host;
use airtcp::recovery::Recipe;
use airwire::piece::Piece;
use airwire::segment::Verified;
use airwire::time::Instant;
pub use descriptors::{Descriptors, Readiness, Watched};
use log::{HostDirection, Log};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::Signal;
use writer::{HostLoad, Writer};

/// The program that uses the host. The driver never interrupts it, and it must not block.
pub trait Application {
    /// Opens, writes, reads and closes until it would have to wait. Returns `Break` when the
    /// application is done. Called after packets and timers, at the application's deadline, when
    /// its own descriptors have become ready, and after a call to its [`Waker`].
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()>;

    /// Called after the host has processed one packet (for a sender, one ACK).
    fn observe(&mut self, _now: Instant, _host: &Host) {}

    /// Returns the time at which `run` must be called without any other event. From this time on, `run` must set
    /// a later one; otherwise the driver never sleeps.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Called when a watched descriptor has become ready, with the name that was passed to
    /// [`Descriptors::watch`]. A call of `run` follows.
    fn ready(&mut self, _name: u64, _readiness: Readiness) {}

    /// Called on SIGINT or SIGTERM, if the reactor catches them. `Break`, the default, ends the run
    /// at once; otherwise the run continues until `run` returns `Break`.
    fn stop(&mut self, _now: Instant, _host: &mut Host) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// The reason why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finished {
    /// [`Application::run`] returned `Break`, and all packets of the host have been written.
    ByApplication,
    /// SIGINT, SIGTERM or SIGHUP arrived.
    BySignal(Signal),
}

/// Counters of the packets through the device, from the host's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Packets read from the device.
    pub packets_in: u64,
    /// Bytes read, including IP headers.
    pub bytes_in: u64,
    /// Packets that the kernel accepted.
    pub packets_out: u64,
    /// Bytes that the kernel accepted, including IP headers.
    pub bytes_out: u64,
    /// Packets that the kernel refused because the interface was down.
    pub refused: u64,
    /// Number of times a packet had to wait because the device was full.
    pub waits: u64,
}

/// The outgoing part of [`Traffic`].
#[derive(Clone, Copy, Default)]
struct SendCounters {
    packets: u64,
    octets: u64,
    refused: u64,
    waits: u64,
}

impl SendCounters {
    /// Counts a piece that was written with this result. Returns any error other than a refusal.
    fn count(&mut self, piece: &Piece, result: io::Result<()>) -> io::Result<()> {
        let count = piece.count() as u64;
        match result {
            Ok(()) => {
                self.packets += count;
                self.octets += piece.wire_bytes() as u64;
            }
            Err(error) if is_refusal(&error) => self.refused += count,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl AddAssign for SendCounters {
    fn add_assign(&mut self, more: Self) {
        let Self { packets, octets, refused, waits } = more;
        self.packets += packets;
        self.octets += octets;
        self.refused += refused;
        self.waits += waits;
    }
}

/// Lets another thread wake the driver, which then runs the application.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    /// Returns at once. Several calls before the application runs count as one.
    pub fn wake(&self) {
        // The only possible error is a full counter, which means that a wake-up is already pending.
        let _ = self.0.write(1);
    }
}

const DEVICE: Token = Token(0);
const WAKER: Token = Token(1);
const DESCRIPTORS: Token = Token(2);
/// Maximum number of segments written before ACKs are read.
const SEND_BATCH: usize = 32;
/// The same maximum when many segments share one write: four pieces of segments of 1500 bytes.
const SEND_BATCH_WITH_OFFLOAD: usize = 180;
/// Packets written between two readings of the clock. A write takes a few microseconds, so recorded
/// sending times are accurate to a few tens of microseconds. With a capture or a log the clock is
/// read for every packet, and with offload for every piece.
const CLOCK_BATCH: usize = 8;
/// Maximum number of packets read before the application runs.
const RECEIVE_BATCH: usize = 64;
/// Number of reads after which the writer thread is woken.
const READS_PER_WAKE: u32 = 8;
/// Number of busy rounds after which the driver checks for signals and wake-ups.
const BUSY_ROUNDS: u32 = 64;
/// The same number for an application with its own descriptors, so that one busy connection does not delay
/// all other connections.
const BUSY_ROUNDS_WITH_DESCRIPTORS: u32 = 8;

/// Result of sending the host's packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Everything,
    Batch,
    /// The device is full.
    Blocked,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Everything,
    /// The device is full.
    Blocked,
}

/// Division of packets into writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriteMode {
    /// One write per packet.
    Single,
    /// One write per run of consecutive segments.
    Joined,
}

/// A host and its device. Between runs, the host may be used directly.
pub struct Driver {
    /// The host. Its methods need times of the driver's clock: pass [`Clock::now`] of
    /// [`Driver::clock`].
    pub host: Host,
    tun: Arc<Tun>,
    reactor: Reactor,
    clock: Clock,
    waker: Waker,
    descriptors: Option<Descriptors>,
    capture: Option<Capture>,
    /// `None` if no subscriber wants the log.
    log: Option<Log>,
    write_mode: WriteMode,
    outgoing: Piece,
    /// Whether the device has refused `outgoing`, which is written first when the device is writable again.
    is_blocked: bool,
    incoming: Segmenter,
    packets_in: u64,
    bytes_in: u64,
    /// Counters of the packets that the driver's own thread has written.
    sent: SendCounters,
    writer: Option<Writer<Tun>>,
    /// As of the last time packets were read.
    load: HostLoad,
}

/// Error for a recipe that needs ground truth about losses, which is not available on a real network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` needs to know why packets were lost, which a real network does not report; use it in virtual time (`airtcp sim`)"
)]
pub struct NeedsVirtualTime(&'static str);

/// Checks that the recipe can be used on a real network.
///
/// # Errors
/// If the recipe needs ground truth about losses.
pub fn check_real_time(recipe: &Recipe) -> Result<(), NeedsVirtualTime> {
    recipe.needs_truth().map_or(Ok(()), |name| Err(NeedsVirtualTime(name)))
}

impl Driver {
    /// Creates a driver. `capture` records every packet, in both directions.
    ///
    /// The host's events are logged with `tracing` if a subscriber wants these events at this time.
    /// Connections that the host already has are not logged.
    pub fn new(
        mut host: Host,
        tun: Tun,
        mut reactor: Reactor,
        capture: Option<Capture>,
    ) -> Result<Self, DriverError> {
        check_real_time(host.recipe()).map_err(|error| DriverError::Observer(Box::new(error)))?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let waker = Waker(Arc::new(EventFd::from_flags(flags).map_err(io::Error::from)?));
        reactor.register(&tun, DEVICE, Interest::Read)?;
        reactor.register(&*waker.0, WAKER, Interest::Read)?;
        let clock = reactor.clock();
        let log = Log::if_enabled(clock.wall_zero());
        if log.is_some() {
            host.note_events();
        }
        // With a capture or a log, each packet needs its own sending time.
        let write_mode = if tun.offloads() && capture.is_none() && log.is_none() {
            WriteMode::Joined
        } else {
            WriteMode::Single
        };
        Ok(Self {
            host,
            tun: Arc::new(tun),
            reactor,
            clock,
            waker,
            descriptors: None,
            capture,
            log,
            write_mode,
            outgoing: Piece::default(),
            is_blocked: false,
            incoming: Segmenter::new(MAX_PACKET),
            packets_in: 0,
            bytes_in: 0,
            sent: SendCounters::default(),
            writer: None,
            load: HostLoad::Low,
        })
    }

    /// Returns the reactor's clock, which is also the host's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns a waker for threads that work for the application.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Returns the set of the application's own descriptors, which the driver waits for together
    /// with the device. Every call returns the same set.
    pub fn descriptors(&mut self) -> Result<Descriptors, DriverError> {
        let descriptors = match &self.descriptors {
            Some(known) => known.clone(),
            None => {
                let new = Descriptors::new()?;
                self.reactor.register(&new, DESCRIPTORS, Interest::Read)?;
                new
            }
        };
        self.descriptors = Some(descriptors.clone());
        Ok(descriptors)
    }

    /// Returns the device's name, such as `airtcp0`.
    pub fn device(&self) -> &str {
        self.tun.name()
    }

    /// Returns the packet counters since the driver was created.
    pub fn traffic(&self) -> Traffic {
        let mut sent = self.sent;
        if let Some(writer) = &self.writer {
            sent += writer.counters();
        }
        let SendCounters { packets: packets_out, octets: bytes_out, refused, waits } = sent;
        let Self { packets_in, bytes_in, .. } = *self;
        Traffic { packets_in, bytes_in, packets_out, bytes_out, refused, waits }
    }

    /// Starts a thread that writes to the device when more than one or two packets leave, with the privileges
    /// of the current thread. This relieves a busy host. The call does nothing on a machine with one core, and
    /// with a capture or a log, which need the sending time of each packet and the order of all events.
    pub fn start_writer(&mut self) -> Result<(), DriverError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        if self.writer.is_none() && self.capture.is_none() && self.log.is_none() && cores > 1 {
            self.writer = Some(Writer::start(Arc::clone(&self.tun), self.waker())?);
        }
        Ok(())
    }

    /// Returns the number of packets for the host that the kernel dropped because the device's
    /// queue was full.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        self.tun.kernel_drops()
    }

    /// Runs until the application is done or a signal stops the program.
    pub fn run(&mut self, application: &mut impl Application) -> Result<Finished, DriverError> {
        let mut rounds: u32 = 0;
        let busy_rounds = if self.descriptors.is_some() { BUSY_ROUNDS_WITH_DESCRIPTORS } else { BUSY_ROUNDS };
        loop {
            if application.run(self.clock.now(), &mut self.host).is_break() {
                self.finish()?;
                return Ok(Finished::ByApplication);
            }
            let sent = self.send()?;
            let received = self.receive(application)?;
            // Handle received packets before timers: a late thread must not time out data whose ACK has arrived.
            let now = self.clock.now();
            if self.host.next_deadline().is_some_and(|deadline| deadline <= now) {
                self.host.handle_deadline(now);
                continue;
            }
            let busy = sent == Sent::Batch || received > 0 || self.host.has_changes();
            rounds = if busy { rounds + 1 } else { 0 };
            if busy && !rounds.is_multiple_of(busy_rounds) {
                continue;
            }
            let until = if busy {
                Some(now)
            } else {
                self.host.next_deadline().into_iter().chain(application.next_deadline()).min()
            };
            if let Wait::Stopped(signal) = self.wait(until, application)? {
                return Ok(Finished::BySignal(signal));
            }
        }
    }

    /// Writes the host's remaining packets, and flushes the capture.
    pub fn finish(&mut self) -> Result<(), DriverError> {
        loop {
            let sent = self.send()?;
            let left = match &self.writer {
                Some(writer) => {
                    writer.flush().map_err(|source| DriverError::device(self.tun.name(), source))?
                }
                None => Written::Everything,
            };
            // After the flush, the writer thread has room again. Give up if the device accepts no packet.
            let has_room = self.writer.is_some() && left == Written::Everything;
            if sent == Sent::Everything || (sent == Sent::Blocked && !has_room) {
                break;
            }
        }
        if let Some(capture) = &mut self.capture {
            capture.flush()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<Sent, DriverError> {
        let sent = self.send_batch()?;
        self.wake_writer()?;
        Ok(sent)
    }

    /// Wakes the writer thread so that it writes the packets queued so far.
    fn wake_writer(&self) -> Result<(), DriverError> {
        let gone = self.writer.as_ref().map_or(Ok(()), |writer| writer.start_writing(self.load));
        gone.map_err(|source| DriverError::device(self.tun.name(), source))
    }

    fn send_batch(&mut self) -> Result<Sent, DriverError> {
        if self.is_blocked && self.write(self.clock.now())? == Written::Blocked {
            return Ok(Sent::Blocked);
        }
        let max_segments = match self.write_mode {
            WriteMode::Single => SEND_BATCH,
            WriteMode::Joined => SEND_BATCH_WITH_OFFLOAD,
        };
        let mut now = self.clock.now();
        let (mut sent, mut writes) = (0, 0);
        while sent < max_segments {
            let own_time = match self.write_mode {
                WriteMode::Single => self.capture.is_some() || self.log.is_some(),
                WriteMode::Joined => true,
            };
            if writes > 0 && (own_time || writes % CLOCK_BATCH == 0) {
                now = self.clock.now();
            }
            let any = match self.write_mode {
                WriteMode::Single => self.outgoing.fill(|packet| self.host.poll_packet(now, packet)),
                WriteMode::Joined => self.host.poll_piece(now, &mut self.outgoing),
            };
            if let Some(log) = &mut self.log {
                log.log_events(&mut self.host);
            }
            if !any {
                return Ok(Sent::Everything);
            }
            sent += self.outgoing.count();
            writes += 1;
            if self.write(now)? == Written::Blocked {
                return Ok(Sent::Blocked);
            }
        }
        Ok(Sent::Batch)
    }

    /// Writes the outgoing piece to the device, or queues it for the writer thread.
    fn write(&mut self, now: Instant) -> Result<Written, DriverError> {
        let result = match &self.writer {
            Some(writer) => writer.queue(&mut self.outgoing),
            None => self.tun.send_piece(&mut self.outgoing),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // A writer thread wakes the driver itself when it has room again.
                if !std::mem::replace(&mut self.is_blocked, true) && self.writer.is_none() {
                    self.sent.waits += 1;
                    self.reactor.modify(&*self.tun, DEVICE, Interest::Both)?;
                }
                return Ok(Written::Blocked);
            }
            Ok(()) if self.writer.is_some() => {}
            result => {
                if let (Ok(()), Some(packet)) = (&result, self.outgoing.single_packet()) {
                    self.capture.packet(now, packet);
                    if let Some(log) = &mut self.log {
                        log.packet(now, HostDirection::Out, packet);
                    }
                }
                let counted = self.sent.count(&self.outgoing, result);
                counted.map_err(|source| DriverError::device(self.tun.name(), source))?;
                self.outgoing.clear();
            }
        }
        if std::mem::take(&mut self.is_blocked) && self.writer.is_none() {
            self.reactor.modify(&*self.tun, DEVICE, Interest::Read)?;
        }
        Ok(Written::Everything)
    }

    /// Reads packets and passes them to the host. Returns the number of packets.
    fn receive(&mut self, application: &mut impl Application) -> Result<usize, DriverError> {
        let mut received = 0;
        let mut reads: u32 = 0;
        // Captures and logs must contain correct checksums.
        let needs_checksums = self.capture.is_some() || self.log.is_some();
        while received < RECEIVE_BATCH {
            let filled = self.tun.fill(&mut self.incoming);
            if !filled.map_err(|source| DriverError::device(self.tun.name(), source))? {
                break;
            }
            let now = self.clock.now();
            while let Some((packet, verified)) = if needs_checksums {
                self.incoming.next_packet().map(|packet| (packet, Verified::NotYet))
            } else {
                self.incoming.next_unsummed()
            } {
                received += 1;
                self.packets_in += 1;
                self.bytes_in += packet.len() as u64;
                self.capture.packet(now, packet);
                if let Some(log) = &mut self.log {
                    log.packet(now, HostDirection::In, packet);
                }
                match verified {
                    Verified::NotYet => self.host.handle_packet(now, packet),
                    Verified::ByDevice => self.host.handle_verified_packet(now, packet),
                }
                application.observe(now, &self.host);
            }
            self.send_batch()?;
            reads += 1;
            if reads.is_multiple_of(READS_PER_WAKE) {
                self.load = HostLoad::High;
                self.wake_writer()?;
            }
        }
        self.load = HostLoad::of(received);
        self.wake_writer()?;
        Ok(received)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        application: &mut impl Application,
    ) -> Result<Wait, DriverError> {
        for event in self.reactor.wait(until)? {
            match event {
                Wakeup::Stop(signal) if application.stop(self.clock.now(), &mut self.host).is_break() => {
                    return Ok(Wait::Stopped(*signal));
                }
                Wakeup::Readable(DESCRIPTORS) => {
                    if let Some(descriptors) = &self.descriptors {
                        descriptors.report(|name, readiness| application.ready(name, readiness))?;
                    }
                }
                Wakeup::Readable(WAKER) => {
                    // Only resets the counter. The application finds out what has changed.
                    let _ = self.waker.0.read();
                }
                _ => {}
            }
        }
        Ok(Wait::Done)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Done,
    Stopped(Signal),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_recipe_is_rejected_in_real_time() {
        assert_eq!(check_real_time(&"newreno+transit-marks".parse().unwrap()), Ok(()));
        for recipe in ["newreno+oracle", "newreno+rebate-ideal"] {
            let error = check_real_time(&recipe.parse().unwrap()).unwrap_err();
            assert!(error.to_string().contains("virtual time"), "{error}");
        }
    }
}
