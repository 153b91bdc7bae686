//! A [`Host`] in real time: it runs over a TUN device, with the application that uses it, in one thread (and writes to the device
//! in another one, if [`Driver::write_apart`] was called).
//!
//! Begin with [`Driver::new`], which takes a host, a device (`airlink::tun::Tun`) and a reactor
//! (`airlink::reactor::Reactor`), and implement [`Application`] for what the host is to do. The example `fetch` is a
//! whole program: `cargo run -p airtcp-tun --example fetch`, as root.
//!
//! The kernel answers inside our `write`: an ACK can be read as soon as the segment has been written. So at most a
//! batch of segments leaves before the device is read again, and after all that was read at once, what the host has to
//! say leaves at once.
//!
//! Where the device has offload ([`airlink::offload`]), segments that follow each other leave in one write, and what the
//! kernel has not cut is one read. The host knows nothing of it: it sends and gets segments of the wire.

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
use airlink::offload::Pieces;
use airlink::reactor::{Clock, Interest, Reactor, Token, Wakeup};
use airlink::tun::{DeviceError, Tun};
use airtcp::host::Host;
use airtcp::recovery::Recipe;
use airwire::piece::Piece;
use airwire::segment::Verified;
use airwire::time::Instant;
pub use descriptors::{Descriptors, Readiness, Watched};
use log::{Log, Way};
use nix::sys::eventfd::{EfdFlags, EventFd};
use writer::{Pace, Writer};

/// What uses the host. It is never interrupted and must not block.
pub trait Application {
    /// Opens, writes, reads and closes what it can without waiting; `Break` when there is nothing left to do.
    /// Called after packets and timers, at its deadline, when descriptors of its own have become ready, and when
    /// somebody called its [`Waker`].
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()>;

    /// The host has taken in one packet: for a sender, one ACK.
    fn observe(&mut self, _now: Instant, _host: &Host) {}

    /// When it wants to run even if nothing happens. Once that time has come, `run` must set a later one, or the driver
    /// never rests.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// A descriptor that it watches has become ready, under the name that [`Descriptors::watch`] was given; `run` follows.
    fn ready(&mut self, _name: u64, _readiness: Readiness) {}

    /// SIGINT or SIGTERM has come, if the reactor catches them. `Break`, the default, ends the run at once; otherwise
    /// the run goes on until `run` breaks it.
    fn stop(&mut self, _now: Instant, _host: &mut Host) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Who ended a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finished {
    /// [`Application::run`] broke it; everything that the host had to say has been written.
    ByApplication,
    /// SIGINT or SIGTERM.
    BySignal,
}

/// What went through the device, seen from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Read from the device.
    pub packets_in: u64,
    /// IP headers included.
    pub bytes_in: u64,
    /// Taken by the kernel.
    pub packets_out: u64,
    /// IP headers included.
    pub bytes_out: u64,
    /// The kernel would not take these (the interface was down).
    pub refused: u64,
    /// How often the device was full, so that a packet had to wait.
    pub waits: u64,
}

/// The part of [`Traffic`] that leaves.
#[derive(Clone, Copy, Default)]
struct Sending {
    packets: u64,
    octets: u64,
    refused: u64,
    waits: u64,
}

impl Sending {
    /// The piece was written with this result. An error that is no refusal is returned.
    fn note(&mut self, piece: &Piece, result: io::Result<()>) -> io::Result<()> {
        let count = piece.count() as u64;
        match result {
            Ok(()) => {
                self.packets += count;
                self.octets += piece.octets_on_the_wire() as u64;
            }
            Err(error) if is_refusal(&error) => self.refused += count,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl AddAssign for Sending {
    fn add_assign(&mut self, more: Self) {
        let Self { packets, octets, refused, waits } = more;
        self.packets += packets;
        self.octets += octets;
        self.refused += refused;
        self.waits += waits;
    }
}

/// Lets another thread make the application run.
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    /// Returns at once; several calls before the application runs are one.
    pub fn wake(&self) {
        // The only failure is a full counter, and then the wake-up is pending anyway.
        let _ = self.0.write(1);
    }
}

const DEVICE: Token = Token(0);
const WAKER: Token = Token(1);
const DESCRIPTORS: Token = Token(2);
/// Segments written before ACKs are read.
const SEND_BATCH: usize = 32;
/// The same where many of them are one write: four pieces of segments of 1500 octets.
const SEND_BATCH_WITH_OFFLOAD: usize = 180;
/// Packets written between two looks at the clock: a few microseconds each, so that a sending time is right
/// within some ten of them. With a capture every packet has its own time, and so has every piece.
const CLOCK_BATCH: usize = 8;
/// Packets read before the application gets its turn.
const RECEIVE_BATCH: usize = 64;
/// Reads after which a thread that writes is woken, if it sleeps.
const READS_APART: u32 = 8;
/// Rounds without a rest before signals and wake-ups are looked at.
const BUSY_ROUNDS: u32 = 64;
/// The same for an application with descriptors of its own: a busy connection must not keep those of others waiting.
const BUSY_ROUNDS_WITH_DESCRIPTORS: u32 = 8;

/// Whether the host has more to send than it could.
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

/// How what the host says leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaves {
    /// Packet by packet.
    Alone,
    /// Segments that follow each other in one piece.
    Joined,
}

/// A host on its device. Between runs the host may be used directly.
pub struct Driver {
    /// It is handed the driver's clock: pass [`Clock::now`] of [`Driver::clock`] to it.
    pub host: Host,
    tun: Arc<Tun>,
    reactor: Reactor,
    clock: Clock,
    waker: Waker,
    descriptors: Option<Descriptors>,
    capture: Option<Capture>,
    /// `None`: nobody wants to read it.
    log: Option<Log>,
    leaves: Leaves,
    leaving: Piece,
    /// The device did not take it: it goes first when the device is writable again.
    held: bool,
    arriving: Pieces,
    packets_in: u64,
    bytes_in: u64,
    /// What the driver has written by itself.
    sending: Sending,
    writer: Option<Writer<Tun>>,
    /// As of the last time when packets were read.
    pace: Pace,
}

/// A recipe goes by what only the path knows, and no real network tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` needs to know why packets were lost, which a real network does not report; use it in virtual time (`airtcp sim`)"
)]
pub struct NeedsVirtualTime(&'static str);

fn in_real_time(recipe: &Recipe) -> Result<(), NeedsVirtualTime> {
    recipe.needs_truth().map_or(Ok(()), |name| Err(NeedsVirtualTime(name)))
}

impl Driver {
    /// `capture` gets every packet, in both directions. What the host has to say becomes events of `tracing`, if a
    /// subscriber that wants them is there by now; connections that it has already say nothing.
    pub fn new(
        mut host: Host,
        tun: Tun,
        mut reactor: Reactor,
        capture: Option<Capture>,
    ) -> Result<Self, DriverError> {
        in_real_time(host.recipe()).map_err(|error| DriverError::Observer(Box::new(error)))?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let waker = Waker(Arc::new(EventFd::from_flags(flags).map_err(io::Error::from)?));
        reactor.register(&tun, DEVICE, Interest::Read)?;
        reactor.register(&*waker.0, WAKER, Interest::Read)?;
        let clock = reactor.clock();
        let log = Log::wanted(clock.wall_zero());
        if log.is_some() {
            host.note_events();
        }
        // With a capture or a log every packet leaves at its own time.
        let leaves =
            if tun.offloads() && capture.is_none() && log.is_none() { Leaves::Joined } else { Leaves::Alone };
        Ok(Self {
            host,
            tun: Arc::new(tun),
            reactor,
            clock,
            waker,
            descriptors: None,
            capture,
            log,
            leaves,
            leaving: Piece::default(),
            held: false,
            arriving: Pieces::new(MAX_PACKET),
            packets_in: 0,
            bytes_in: 0,
            sending: Sending::default(),
            writer: None,
            pace: Pace::Calm,
        })
    }

    /// The reactor's clock, which tells the host's time.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// For threads that the application works with.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// For an application that has descriptors of its own: they are waited for together with the device. Every call
    /// gives the same set.
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

    /// The device's name, such as `airtcp0`.
    pub fn device(&self) -> &str {
        self.tun.name()
    }

    /// Since the driver was made.
    pub fn traffic(&self) -> Traffic {
        let mut sending = self.sending;
        if let Some(writer) = &self.writer {
            sending += writer.done();
        }
        let Sending { packets: packets_out, octets: bytes_out, refused, waits } = sending;
        let Self { packets_in, bytes_in, .. } = *self;
        Traffic { packets_in, bytes_in, packets_out, bytes_out, refused, waits }
    }

    /// From now on a thread of its own, with the rights that this one has, writes to the device whatever is more than a packet or
    /// two: where there is more than one core, a busy host does more. Not with a capture or a log, which want each packet's
    /// own time, and the order in which all happened.
    pub fn write_apart(&mut self) -> Result<(), DriverError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        if self.writer.is_none() && self.capture.is_none() && self.log.is_none() && cores > 1 {
            self.writer = Some(Writer::start(Arc::clone(&self.tun), self.waker())?);
        }
        Ok(())
    }

    /// Packets for the host that the kernel dropped because the device's queue was full.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        self.tun.kernel_drops()
    }

    /// Runs until the application is done or somebody stops the program.
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
            // Timers come after what has arrived: being late is no reason to take an ACK for lost.
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
            if self.wait(until, application)? == Wait::Stopped {
                return Ok(Finished::BySignal);
            }
        }
    }

    /// Writes what the host has left to say, and the capture.
    pub fn finish(&mut self) -> Result<(), DriverError> {
        loop {
            let sent = self.send()?;
            let left = match &self.writer {
                Some(writer) => {
                    writer.flush().map_err(|source| DriverError::device(self.tun.name(), source))?
                }
                None => Written::Everything,
            };
            // What a thread had no room for, it has now; a device that takes nothing is given up.
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
        let sent = self.say()?;
        self.hand_over()?;
        Ok(sent)
    }

    /// A thread that writes begins with what it has been given.
    fn hand_over(&self) -> Result<(), DriverError> {
        let gone = self.writer.as_ref().map_or(Ok(()), |writer| writer.go(self.pace));
        gone.map_err(|source| DriverError::device(self.tun.name(), source))
    }

    fn say(&mut self) -> Result<Sent, DriverError> {
        if self.held && self.write(self.clock.now())? == Written::Blocked {
            return Ok(Sent::Blocked);
        }
        let most = match self.leaves {
            Leaves::Alone => SEND_BATCH,
            Leaves::Joined => SEND_BATCH_WITH_OFFLOAD,
        };
        let mut now = self.clock.now();
        let (mut sent, mut writes) = (0, 0);
        while sent < most {
            let own_time = match self.leaves {
                Leaves::Alone => self.capture.is_some() || self.log.is_some(),
                Leaves::Joined => true,
            };
            if writes > 0 && (own_time || writes % CLOCK_BATCH == 0) {
                now = self.clock.now();
            }
            let any = match self.leaves {
                Leaves::Alone => self.leaving.fill(|packet| self.host.poll_packet(now, packet)),
                Leaves::Joined => self.host.poll_piece(now, &mut self.leaving),
            };
            if let Some(log) = &mut self.log {
                log.tell(&mut self.host);
            }
            if !any {
                return Ok(Sent::Everything);
            }
            sent += self.leaving.count();
            writes += 1;
            if self.write(now)? == Written::Blocked {
                return Ok(Sent::Blocked);
            }
        }
        Ok(Sent::Batch)
    }

    /// Hands the kernel what leaves.
    fn write(&mut self, now: Instant) -> Result<Written, DriverError> {
        let result = match &self.writer {
            Some(writer) => writer.take(&mut self.leaving),
            None => self.tun.send_piece(&mut self.leaving),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // A thread that writes wakes the driver by itself.
                if !std::mem::replace(&mut self.held, true) && self.writer.is_none() {
                    self.sending.waits += 1;
                    self.reactor.modify(&*self.tun, DEVICE, Interest::Both)?;
                }
                return Ok(Written::Blocked);
            }
            Ok(()) if self.writer.is_some() => {}
            result => {
                if let (Ok(()), Some(packet)) = (&result, self.leaving.whole()) {
                    self.capture.packet(now, packet);
                    if let Some(log) = &mut self.log {
                        log.packet(now, Way::Out, packet);
                    }
                }
                let noted = self.sending.note(&self.leaving, result);
                noted.map_err(|source| DriverError::device(self.tun.name(), source))?;
                self.leaving.clear();
            }
        }
        if std::mem::take(&mut self.held) && self.writer.is_none() {
            self.reactor.modify(&*self.tun, DEVICE, Interest::Read)?;
        }
        Ok(Written::Everything)
    }

    /// Returns how many packets came in.
    fn receive(&mut self, application: &mut impl Application) -> Result<usize, DriverError> {
        let mut received = 0;
        let mut reads: u32 = 0;
        // Whoever sees packets is to see their checksums.
        let is_seen = self.capture.is_some() || self.log.is_some();
        while received < RECEIVE_BATCH {
            let filled = self.tun.fill(&mut self.arriving);
            if !filled.map_err(|source| DriverError::device(self.tun.name(), source))? {
                break;
            }
            let now = self.clock.now();
            while let Some((packet, verified)) = if is_seen {
                self.arriving.next_packet().map(|packet| (packet, Verified::NotYet))
            } else {
                self.arriving.next_unsummed()
            } {
                received += 1;
                self.packets_in += 1;
                self.bytes_in += packet.len() as u64;
                self.capture.packet(now, packet);
                if let Some(log) = &mut self.log {
                    log.packet(now, Way::In, packet);
                }
                match verified {
                    Verified::NotYet => self.host.handle_packet(now, packet),
                    Verified::ByDevice => self.host.handle_verified_packet(now, packet),
                }
                application.observe(now, &self.host);
            }
            self.say()?;
            reads += 1;
            if reads.is_multiple_of(READS_APART) {
                self.pace = Pace::Busy;
                self.hand_over()?;
            }
        }
        self.pace = Pace::of(received);
        self.hand_over()?;
        Ok(received)
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        application: &mut impl Application,
    ) -> Result<Wait, DriverError> {
        for event in self.reactor.wait(until)? {
            match event {
                Wakeup::Stop if application.stop(self.clock.now(), &mut self.host).is_break() => {
                    return Ok(Wait::Stopped);
                }
                Wakeup::Readable(DESCRIPTORS) => {
                    if let Some(descriptors) = &self.descriptors {
                        descriptors.report(|name, readiness| application.ready(name, readiness))?;
                    }
                }
                Wakeup::Readable(WAKER) => {
                    // Only empties the counter; the application looks for itself what has changed.
                    let _ = self.waker.0.read();
                }
                _ => {}
            }
        }
        Ok(Wait::Over)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Over,
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_that_only_virtual_time_can_serve_is_refused() {
        assert_eq!(in_real_time(&"newreno+transit-marks".parse().unwrap()), Ok(()));
        for recipe in ["newreno+oracle", "newreno+rebate-ideal"] {
            let error = in_real_time(&recipe.parse().unwrap()).unwrap_err();
            assert!(error.to_string().contains("virtual time"), "{error}");
        }
    }
}
