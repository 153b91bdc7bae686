//! Waiting in real time, with one thread, epoll, a timerfd for the deadline, and a signalfd for a clean stop.
//!
//! A timerfd is used because an epoll timeout has a resolution of 1 ms and is subject to the timer slack.

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

/// CLOCK_MONOTONIC with its own zero, for machines, and the wall-clock time of that zero, for captures.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds of CLOCK_MONOTONIC at `Instant::ZERO`.
    zero: u64,
    wall_zero: SystemTime,
}

impl Clock {
    /// Starts a clock whose zero is now.
    pub fn start() -> Self {
        let zero = nanos(ClockId::CLOCK_MONOTONIC);
        let wall = std::time::Duration::from_nanos(nanos(ClockId::CLOCK_REALTIME));
        Self { zero, wall_zero: SystemTime::UNIX_EPOCH + wall }
    }

    /// Time since [`start`](Self::start).
    pub fn now(&self) -> Instant {
        Instant::from_nanos(nanos(ClockId::CLOCK_MONOTONIC).saturating_sub(self.zero))
    }

    /// CLOCK_REALTIME at `Instant::ZERO`. Later changes of the wall clock do not affect it.
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

/// The caller's identifier of a registered file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(
    /// A number chosen by the caller.
    pub u32,
);

/// Operations for which the caller waits until a descriptor is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Read.
    Read,
    /// Write.
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

/// Reason why [`Reactor::wait`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// A read will not block. It may return an error or the end of the stream.
    Readable(Token),
    /// A write will not block. It may return an error.
    Writable(Token),
    /// The clock has reached the deadline that was passed to `wait`.
    Deadline,
    /// SIGINT, SIGTERM or SIGHUP arrived after [`Reactor::catch_stop_signals`].
    Stop(Signal),
}

impl Wakeup {
    /// Returns the stop signal among these events.
    pub fn stop_signal(events: &[Self]) -> Option<Signal> {
        events.iter().find_map(|event| match event {
            Self::Stop(signal) => Some(*signal),
            _ => None,
        })
    }
}

/// Whether this process ignores the signal, such as SIGHUP under `nohup`. A signalfd reports ignored signals
/// too, so a caller that blocks signals for one must leave these out.
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
    /// The time for which the timer is armed.
    armed: Option<Instant>,
    spin: Duration,
    signals: Option<SignalFd>,
    tokens: BTreeSet<Token>,
    buffer: Vec<EpollEvent>,
    events: Vec<Wakeup>,
}

// epoll stores 64 bits per descriptor. The caller's tokens are below 2^32.
const TIMER: u64 = 1 << 32;
const SIGNALS: u64 = TIMER + 1;

impl Reactor {
    /// Creates a reactor whose deadlines are times of `clock`. Signals still end the process.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer =
            TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        // Edge-triggered: epoll reports each expiry once, so the timer need not be read.
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

    /// The clock that deadlines refer to.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Sets how long before a deadline the thread stops sleeping and polls descriptors and clock instead. A
    /// timer wakes a thread about 10 µs late. Spinning avoids this, at the cost of `spin` of processor time
    /// per deadline. Initially 0.
    pub fn set_spin(&mut self, spin: Duration) {
        self.spin = spin;
    }

    /// Registers a descriptor. `wait` then reports `token` as long as the descriptor is ready
    /// (level-triggered). A token identifies one descriptor at a time. Deregister a descriptor before closing
    /// it.
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

    /// Deregisters a descriptor. Its token becomes free.
    pub fn deregister(&mut self, fd: impl AsFd, token: Token) -> io::Result<()> {
        self.tokens.remove(&token);
        Ok(self.epoll.delete(fd)?)
    }

    /// Makes SIGINT, SIGTERM and SIGHUP (unless ignored) arrive as [`Wakeup::Stop`] instead of ending the
    /// process.
    ///
    /// Call it before starting other threads. They inherit the blocked signals. If a thread does not block a
    /// signal, that signal ends the process.
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

    /// Waits until a descriptor or signal is ready or the clock reaches `deadline` (`None`: no limit). If the
    /// deadline has passed, it does not wait, but still reports what is ready. The result may be empty.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<&[Wakeup]> {
        let ready = self.wait_for_descriptors(deadline)?;
        self.events.clear();
        for event in &self.buffer[..ready] {
            match event.data() {
                // The check of the clock below determines whether the deadline has passed.
                TIMER => self.armed = None,
                SIGNALS => {
                    let mut first = None;
                    while let Some(Some(info)) =
                        self.signals.as_ref().map(|fd| fd.read_signal()).transpose()?
                    {
                        first = first.or_else(|| Signal::try_from(info.ssi_signo as i32).ok());
                    }
                    self.events.extend(first.map(Wakeup::Stop));
                }
                token => {
                    let token = Token(token as u32);
                    // The caller's next read or write returns an error or hang-up.
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

    /// Fills `buffer` and returns the number of ready descriptors, which is 0 at the deadline.
    fn wait_for_descriptors(&mut self, deadline: Option<Instant>) -> io::Result<usize> {
        // A timer still armed for an earlier deadline may end one wait early. The next wait re-arms it.
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
    fn wait_is_never_early_and_skips_past_deadline() {
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
    fn later_deadline_replaces_earlier_one() {
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
    fn expired_timer_does_not_wake_again() {
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
    fn readiness_is_level_triggered_per_direction() {
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
    fn spinning_reactor_wakes_for_packets_and_deadlines() {
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
    fn duplicate_token_is_rejected() {
        let mut reactor = reactor();
        let (a, b) = UnixStream::pair().unwrap();
        reactor.register(&a, Token(1), Interest::Read).unwrap();
        assert_eq!(
            reactor.register(&b, Token(1), Interest::Read).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn stop_signal_becomes_event() {
        let mut reactor = reactor();
        reactor.catch_stop_signals().unwrap();
        let signals = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT];
        for signal in signals.into_iter().filter(|signal| !is_ignored(*signal)) {
            // `raise` signals only this thread. Threads of other tests have not blocked the signals.
            nix::sys::signal::raise(signal).unwrap();
            assert_eq!(reactor.wait(None).unwrap(), [Wakeup::Stop(signal)]);
        }
    }
}
