//! Waiting in real time: one thread, epoll, a timerfd for the deadline and a signalfd for a clean stop.
//!
//! An epoll timeout is whole milliseconds and carries the timer slack; a timerfd has neither fault.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::time::SystemTime;

use airwire::time::{Duration, Instant};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC with a zero of its own, which machines are told, and the wall time of that zero for captures.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds of CLOCK_MONOTONIC at `Instant::ZERO`.
    zero: u64,
    wall_zero: SystemTime,
}

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Self {
        let zero = nanos(ClockId::CLOCK_MONOTONIC);
        let wall = std::time::Duration::from_nanos(nanos(ClockId::CLOCK_REALTIME));
        Self { zero, wall_zero: SystemTime::UNIX_EPOCH + wall }
    }

    /// The time since [`start`](Self::start).
    pub fn now(&self) -> Instant {
        Instant::from_nanos(nanos(ClockId::CLOCK_MONOTONIC).saturating_sub(self.zero))
    }

    /// CLOCK_REALTIME at `Instant::ZERO`. A wall clock that is set later does not change it.
    pub fn wall_zero(&self) -> SystemTime {
        self.wall_zero
    }

    fn timespec(&self, at: Instant) -> TimeSpec {
        TimeSpec::from_duration(std::time::Duration::from_nanos(self.zero.saturating_add(at.as_nanos())))
    }
}

fn nanos(clock: ClockId) -> u64 {
    // Both clocks exist on every Linux.
    let now = clock_gettime(clock).expect("CLOCK_MONOTONIC and CLOCK_REALTIME can be read");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The caller's name for a registered file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(
    /// The caller's choice.
    pub u32,
);

/// What the caller wants to do with a descriptor as soon as it can be done without blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Read from it.
    Read,
    /// Write to it.
    Write,
    /// Read and write.
    Both,
}

impl Interest {
    fn flags(self) -> EpollFlags {
        match self {
            Self::Read => EpollFlags::EPOLLIN,
            Self::Write => EpollFlags::EPOLLOUT,
            Self::Both => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
        }
    }
}

/// Why [`Reactor::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// A read will not block. It may report an error or the end.
    Readable(Token),
    /// A write will not block. It may report an error.
    Writable(Token),
    /// The clock has reached the deadline that was given to `wait`.
    Deadline,
    /// SIGINT, SIGTERM or SIGHUP came, and [`Reactor::catch_stop_signals`] was called.
    Stop,
}

/// Whether this process ignores the signal, as `nohup` has a program ignore SIGHUP. A signalfd reports an ignored
/// signal too, so whoever blocks signals must leave out these.
pub fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    ignored & 1 << (signal as i32 - 1) != 0
}

/// Waits for descriptors, a deadline and stop signals.
pub struct Reactor {
    clock: Clock,
    epoll: Epoll,
    timer: TimerFd,
    /// What the timer is set to.
    armed: Option<Instant>,
    spin: Duration,
    signals: Option<SignalFd>,
    tokens: BTreeSet<Token>,
    buffer: Vec<EpollEvent>,
    events: Vec<Wakeup>,
}

// epoll returns 64 bits per descriptor. The caller's tokens are below 2^32.
const TIMER: u64 = 1 << 32;
const SIGNALS: u64 = TIMER + 1;

impl Reactor {
    /// A reactor whose deadlines are times of `clock`. Signals still end the process.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer =
            TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        // Edge-triggered: it is reported once each time that it has ended, and nobody has to read it.
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER))?;
        Ok(Self {
            clock,
            epoll,
            timer,
            armed: None,
            spin: Duration::ZERO,
            signals: None,
            tokens: BTreeSet::new(),
            buffer: vec![EpollEvent::empty(); 64],
            events: Vec::new(),
        })
    }

    /// The clock that its deadlines refer to.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How long before a deadline the thread stops sleeping, and looks at descriptors and clock in turn. A timer wakes
    /// a thread some ten microseconds late; this avoids that, and costs the processor `spin` per deadline. Initially
    /// 0.
    pub fn set_spin(&mut self, spin: Duration) {
        self.spin = spin;
    }

    /// From now on `wait` reports `token` whenever the descriptor is ready, again and again as long as it is
    /// (level-triggered). A token can name one descriptor at a time. Deregister a descriptor before it is closed.
    pub fn register(&mut self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        if !self.tokens.insert(token) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{token:?} is taken")));
        }
        self.epoll.add(fd, EpollEvent::new(interest.flags(), u64::from(token.0))).inspect_err(|_| {
            self.tokens.remove(&token);
        })?;
        Ok(())
    }

    /// Changes the interest in a registered descriptor.
    pub fn modify(&mut self, fd: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(self.epoll.modify(fd, &mut EpollEvent::new(interest.flags(), u64::from(token.0)))?)
    }

    /// The descriptor is no longer reported, and its token is free again.
    pub fn deregister(&mut self, fd: impl AsFd, token: Token) -> io::Result<()> {
        self.tokens.remove(&token);
        Ok(self.epoll.delete(fd)?)
    }

    /// From now on SIGINT, SIGTERM and SIGHUP (unless it is ignored) arrive as [`Wakeup::Stop`] instead of ending the
    /// process.
    ///
    /// Call it before other threads are started. They inherit the blocked signals; a signal that a thread does not
    /// block would end the process.
    pub fn catch_stop_signals(&mut self) -> io::Result<()> {
        if self.signals.is_some() {
            return Ok(());
        }
        let mut mask = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        if !is_ignored(Signal::SIGHUP) {
            mask.add(Signal::SIGHUP);
        }
        mask.thread_block()?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        self.epoll.add(&signals, EpollEvent::new(EpollFlags::EPOLLIN, SIGNALS))?;
        self.signals = Some(signals);
        Ok(())
    }

    /// Waits until something happens or the clock reaches `deadline`; `None`: without a limit. With a deadline that has
    /// passed it does not wait, but still reports what is ready. It may return nothing.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<&[Wakeup]> {
        let ready = self.wait_for_descriptors(deadline)?;
        self.events.clear();
        for event in &self.buffer[..ready] {
            match event.data() {
                // Whether the deadline has come, the clock says below.
                TIMER => self.armed = None,
                SIGNALS => {
                    while let Some(Some(_)) = self.signals.as_ref().map(|fd| fd.read_signal()).transpose()? {}
                    self.events.push(Wakeup::Stop);
                }
                token => {
                    let token = Token(token as u32);
                    // The caller finds an error or a hang-up by its next read or write.
                    let failed = event.events().intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
                    let writable = event.events().contains(EpollFlags::EPOLLOUT);
                    if event.events().contains(EpollFlags::EPOLLIN) || (failed && !writable) {
                        self.events.push(Wakeup::Readable(token));
                    }
                    if writable {
                        self.events.push(Wakeup::Writable(token));
                    }
                }
            }
        }
        if deadline.is_some_and(|deadline| deadline <= self.clock.now()) {
            self.events.push(Wakeup::Deadline);
        }
        Ok(&self.events)
    }

    /// Fills `buffer`, and returns how many descriptors are ready; 0 at the deadline.
    fn wait_for_descriptors(&mut self, deadline: Option<Instant>) -> io::Result<usize> {
        // A timer that is still set for an earlier deadline may end one wait early. The next wait sets it anew.
        let Some(deadline) = deadline else {
            self.arm(None)?;
            return self.poll(EpollTimeout::NONE);
        };
        if deadline > self.clock.now() + self.spin {
            self.arm(Some(deadline - self.spin))?;
            let ready = self.poll(EpollTimeout::NONE)?;
            let only_timer = ready == 1 && self.buffer[0].data() == TIMER;
            if self.spin.is_zero() || !only_timer {
                return Ok(ready);
            }
            self.armed = None;
        }
        loop {
            let ready = self.poll(EpollTimeout::ZERO)?;
            if ready > 0 || deadline <= self.clock.now() {
                return Ok(ready);
            }
        }
    }

    fn poll(&mut self, timeout: EpollTimeout) -> io::Result<usize> {
        loop {
            match self.epoll.wait(&mut self.buffer, timeout) {
                Err(nix::errno::Errno::EINTR) => {}
                ready => return Ok(ready?),
            }
        }
    }

    fn arm(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        if self.armed == deadline {
            return Ok(());
        }
        match deadline {
            Some(at) => self
                .timer
                .set(Expiration::OneShot(self.clock.timespec(at)), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?,
            None => self.timer.unset()?,
        }
        self.armed = deadline;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn reactor() -> Reactor {
        Reactor::new(Clock::start()).unwrap()
    }

    #[test]
    fn a_deadline_is_never_early_and_a_past_one_does_not_wait() {
        let mut reactor = reactor();
        let clock = reactor.clock();
        for _ in 0..20 {
            let deadline = clock.now() + Duration::from_micros(700);
            while reactor.wait(Some(deadline)).unwrap().is_empty() {}
            assert!(clock.now() >= deadline);
        }
        assert_eq!(reactor.wait(Some(Instant::ZERO)).unwrap(), [Wakeup::Deadline]);
    }

    #[test]
    fn a_later_deadline_replaces_an_earlier_one() {
        let mut reactor = reactor();
        let (mut a, b) = UnixStream::pair().unwrap();
        reactor.register(&b, Token(7), Interest::Read).unwrap();
        a.write_all(b"x").unwrap();
        let soon = reactor.clock().now() + Duration::from_millis(5);
        assert_eq!(reactor.wait(Some(soon)).unwrap(), [Wakeup::Readable(Token(7))]);
        reactor.deregister(&b, Token(7)).unwrap();
        let later = soon + Duration::from_millis(10);
        while reactor.wait(Some(later)).unwrap().is_empty() {}
        assert!(reactor.clock().now() >= later);
    }

    #[test]
    fn a_timer_that_has_ended_wakes_nobody_again() {
        let mut reactor = reactor();
        let clock = reactor.clock();
        for _ in 0..3 {
            let deadline = clock.now() + Duration::from_millis(1);
            while reactor.wait(Some(deadline)).unwrap().is_empty() {}
            let (mut a, b) = UnixStream::pair().unwrap();
            reactor.register(&b, Token(7), Interest::Read).unwrap();
            let late = std::thread::spawn(move || {
                let mut other = Reactor::new(clock).unwrap();
                while other.wait(Some(deadline + Duration::from_millis(20))).unwrap().is_empty() {}
                a.write_all(b"x").unwrap();
            });
            assert_eq!(reactor.wait(None).unwrap(), [Wakeup::Readable(Token(7))]);
            late.join().unwrap();
            reactor.deregister(&b, Token(7)).unwrap();
        }
    }

    #[test]
    fn readiness_is_level_triggered_and_both_directions_are_told_apart() {
        let mut reactor = reactor();
        let (mut a, mut b) = UnixStream::pair().unwrap();
        reactor.register(&b, Token(1), Interest::Both).unwrap();
        assert_eq!(
            reactor.wait(Some(Instant::ZERO)).unwrap(),
            [Wakeup::Writable(Token(1)), Wakeup::Deadline]
        );
        reactor.modify(&b, Token(1), Interest::Read).unwrap();
        a.write_all(b"x").unwrap();
        for _ in 0..2 {
            assert_eq!(reactor.wait(None).unwrap(), [Wakeup::Readable(Token(1))]);
        }
        b.read_exact(&mut [0]).unwrap();
        drop(a);
        assert_eq!(
            reactor.wait(None).unwrap(),
            [Wakeup::Readable(Token(1))],
            "the end of the stream is readable"
        );
    }

    #[test]
    fn a_spinning_reactor_is_woken_by_a_packet_before_its_deadline_and_by_the_deadline_without_one() {
        let mut reactor = reactor();
        reactor.set_spin(Duration::from_millis(20));
        let (a, mut b) = UnixStream::pair().unwrap();
        reactor.register(&a, Token(1), Interest::Read).unwrap();
        for millis in [5, 40] {
            let deadline = reactor.clock().now() + Duration::from_millis(millis);
            while reactor.wait(Some(deadline)).unwrap().is_empty() {}
            assert_eq!(reactor.events, [Wakeup::Deadline]);
            assert!(reactor.clock().now() >= deadline);
        }
        b.write_all(b"x").unwrap();
        let deadline = reactor.clock().now() + Duration::from_secs(1000);
        while reactor.wait(Some(deadline)).unwrap().is_empty() {}
        assert_eq!(reactor.events, [Wakeup::Readable(Token(1))]);
    }

    #[test]
    fn a_token_is_given_once() {
        let mut reactor = reactor();
        let (a, b) = UnixStream::pair().unwrap();
        reactor.register(&a, Token(1), Interest::Read).unwrap();
        assert_eq!(
            reactor.register(&b, Token(1), Interest::Read).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn a_stop_signal_becomes_an_event() {
        let mut reactor = reactor();
        reactor.catch_stop_signals().unwrap();
        let signals = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT];
        for signal in signals.into_iter().filter(|signal| !is_ignored(*signal)) {
            // To this thread only: the other tests' threads have not blocked it.
            nix::sys::signal::raise(signal).unwrap();
            assert_eq!(reactor.wait(None).unwrap(), [Wakeup::Stop]);
        }
    }
}
