//! One host, several threads of packetdrill, one virtual clock.
//!
//! packetdrill runs a blocking call in a second thread, and continues when that thread sleeps. When
//! an event ends the call, its thread reads the clock, and packetdrill checks the time. Therefore
//! the clock stops for all other threads from the end of a call until its thread has read the clock.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use airtcp_script::Push;
use airtcp_script::errno::Errno;
use airtcp_script::sockets::{Sockets, Stuck};
use airtcp_script::sockopt::SockOpt;
use airtcp_script::syscall::{Blocking, Fd, OptionValue, Reply, Request, ShutdownHow, Submitted};
use airtcp_script::tuning::{SysctlSupport, Tuning};
use airtcp_script::{tcp_info, wire};
use airwire::time::{Duration, Instant};

/// Time of the clock when packetdrill loads the library.
const ORIGIN: Instant = Instant::from_secs(1_000_000);

/// Advance of the clock per reading. packetdrill polls the clock before each event, so each reading
/// must advance it.
const TIME_PER_READING: Duration = Duration::from_micros(1);

/// Maximum time for which a thread that does not read the clock after its call can block all other threads.
const FREEZE_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);

/// Source addresses for a connect without bind.
const LOCAL: [&str; 2] = ["192.168.0.1", "fd3d:a0b:17d6::1"];

/// The host and the clock that all threads of packetdrill share.
pub struct Stack {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    sockets: Sockets,
    tuning: Tuning,
    addrs: Vec<IpAddr>,
    mtu: usize,
    push: Push,
    /// The file with sysctl settings, which is read at each socket().
    control: Option<PathBuf>,
    /// Number of its lines that have been read.
    control_lines: usize,
    /// Threads whose call has ended, and which have not read the clock yet.
    woken: Vec<ThreadId>,
}

/// A packet and the time at which it was sent.
pub struct Departure {
    pub at: Instant,
    pub bytes: Vec<u8>,
}

impl Stack {
    /// Creates a stack. `flags` is the value of `--so_flags`, such as
    /// `profile=linux,recipe=sack+limited-transmit,psh=neutral`.
    pub fn new(flags: &str, control: Option<PathBuf>) -> Result<Self, String> {
        let mut tuning = Tuning::default();
        let mut push = Push::Neutral;
        let mut mtu = 1500;
        let mut addrs: Vec<IpAddr> = LOCAL.iter().filter_map(|addr| addr.parse().ok()).collect();
        for (name, value) in tuning.so_flags(flags)? {
            match (name.as_str(), value.as_str()) {
                ("psh", "neutral") => push = Push::Neutral,
                ("psh", "exact") => push = Push::Exact,
                ("mtu", _) => mtu = value.parse().map_err(|_| format!("`mtu={value}`: expected a number"))?,
                ("local", _) => {
                    addrs.insert(
                        0,
                        value.parse().map_err(|_| format!("`local={value}`: expected an IP address"))?,
                    );
                }
                _ => return Err(format!("unknown setting `{name}={value}`")),
            }
        }
        let mut sockets = Sockets::new(tuning.host_config(addrs.clone(), mtu)?, ORIGIN);
        sockets.set_fast_open_keys(tuning.fast_open_keys());
        let state = State { sockets, tuning, addrs, mtu, push, control, control_lines: 0, woken: Vec::new() };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    // The clock.

    pub fn gettimeofday(&self) -> Instant {
        let mut state = self.lock();
        let me = thread::current().id();
        if state.woken.contains(&me) {
            state.woken.retain(|woken| *woken != me);
            self.changed.notify_all();
            return state.sockets.now();
        }
        let mut state = self.wait_until_running(state);
        let to = state.sockets.now() + TIME_PER_READING;
        state.sockets.advance(to).unwrap_or_else(stuck);
        self.announce(&state);
        state.sockets.now()
    }

    pub fn usleep(&self, time: Duration) {
        let mut state = self.enter();
        let to = state.sockets.now() + time;
        while state.sockets.step(to).unwrap_or_else(stuck_now) {
            self.announce(&state);
            state = self.wait_until_running(state);
        }
        state.sockets.skip_to(to);
    }

    // The network.

    pub fn netdev_send(&self, packet: &[u8]) {
        let mut state = self.enter();
        state.sockets.deliver(packet);
        self.announce(&state);
    }

    /// Returns the next packet, and advances the clock as far as necessary. Returns `None` if there
    /// will never be another packet.
    pub fn netdev_receive(&self) -> Option<Departure> {
        let mut state = self.enter();
        loop {
            if let Some(mut sent) = state.sockets.take_sent() {
                if state.push == Push::Neutral {
                    wire::clear_push(&mut sent.bytes);
                }
                return Some(Departure { at: sent.at, bytes: sent.bytes });
            }
            if !state.sockets.step(Instant::from_nanos(u64::MAX)).unwrap_or_else(stuck_now) {
                return None;
            }
            self.announce(&state);
            state = self.wait_until_running(state);
        }
    }

    // Calls.

    /// Returns whether this descriptor belongs to the stack.
    pub fn owns(&self, fd: Fd) -> bool {
        self.lock().sockets.is_open(fd)
    }

    pub fn socket(&self, fd: Fd) -> Result<(), Errno> {
        let mut state = self.enter();
        state.read_control();
        state.sockets.socket(fd)
    }

    pub fn bind(&self, fd: Fd, addr: SocketAddr) -> Result<(), Errno> {
        let mut state = self.enter();
        // The bind call shows the value of packetdrill's --local_ip.
        if !addr.ip().is_unspecified() && !state.addrs.contains(&addr.ip()) && state.sockets.is_pristine() {
            state.addrs.insert(0, addr.ip());
            state.rebuild();
        }
        state.sockets.bind(fd, addr)
    }

    pub fn listen(&self, fd: Fd, backlog: usize) -> Result<(), Errno> {
        self.enter().sockets.listen(fd, backlog)
    }

    pub fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.call(Request::Close { fd }).map(|_| ())
    }

    pub fn shutdown(&self, fd: Fd, how: ShutdownHow) -> Result<(), Errno> {
        let mut state = self.enter();
        let result = state.sockets.shutdown(fd, how);
        self.announce(&state);
        result
    }

    /// Executes a call. If the call blocks, this thread sleeps until it ends.
    pub fn call(&self, request: Request) -> Result<Reply, Errno> {
        let mut state = self.enter();
        let ticket = match state.sockets.submit(request) {
            Submitted::Done(result) => {
                self.announce(&state);
                return result;
            }
            Submitted::Blocked(ticket) => ticket,
        };
        loop {
            if let Some(finished) = state.sockets.take_finished(ticket) {
                state.woken.push(thread::current().id());
                return finished.result;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the time at which a poll(2) with this timeout ends, or `None` for a negative
    /// timeout, which means forever.
    pub fn poll_until(&self, timeout_ms: i32) -> Option<Instant> {
        let now = self.lock().sockets.now();
        u64::try_from(timeout_ms).ok().map(|ms| now + Duration::from_millis(ms))
    }

    pub fn blocking(&self, fd: Fd) -> Result<Blocking, Errno> {
        self.lock().sockets.blocking(fd)
    }

    pub fn set_blocking(&self, fd: Fd, blocking: Blocking) -> Result<(), Errno> {
        self.lock().sockets.set_blocking(fd, blocking)
    }

    pub fn unread(&self, fd: Fd) -> Result<usize, Errno> {
        self.lock().sockets.unread(fd)
    }

    pub fn set_option(&self, fd: Fd, option: SockOpt, value: OptionValue) -> Result<(), Errno> {
        let mut state = self.enter();
        let result = state.sockets.set_option(fd, option, value);
        self.announce(&state);
        result
    }

    pub fn option(&self, fd: Fd, option: SockOpt) -> Result<OptionValue, Errno> {
        self.lock().sockets.option(fd, option)
    }

    /// Returns TCP_INFO. It is all zero for a socket without a connection.
    pub fn tcp_info(&self, fd: Fd) -> Result<[u8; tcp_info::LEN], Errno> {
        let state = self.lock();
        if !state.sockets.is_open(fd) {
            return Err(Errno::EBADF);
        }
        let info = state.sockets.connection(fd).map(|connection| connection.info());
        Ok(info.map_or([0; tcp_info::LEN], |info| tcp_info::bytes(&info)))
    }

    // Threads.

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic aborts the process at the C boundary. Until then the state is consistent enough to answer.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state and waits until the clock runs. A thread that makes another call no longer
    /// needs to read the clock.
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let me = thread::current().id();
        if state.woken.contains(&me) {
            state.woken.retain(|woken| *woken != me);
            self.changed.notify_all();
        }
        self.wait_until_running(state)
    }

    fn wait_until_running<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let (mut state, waited) = self
            .changed
            .wait_timeout_while(state, FREEZE_LIMIT, |state| state.is_frozen())
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            state.woken.clear();
        }
        state
    }

    /// Wakes the threads whose calls have ended.
    fn announce(&self, state: &State) {
        if state.is_frozen() {
            self.changed.notify_all();
        }
    }
}

impl State {
    fn is_frozen(&self) -> bool {
        !self.woken.is_empty() || self.sockets.anything_finished()
    }

    /// Reads `$PD_CTL`, which contains the arguments of the `sysctl` calls in the script's init
    /// command. A line may contain several settings.
    fn read_control(&mut self) {
        let Some(text) = self.control.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) else {
            return;
        };
        for line in text.lines().skip(self.control_lines) {
            self.control_lines += 1;
            let assignments = assignments(line);
            if assignments.is_empty() && !line.trim().is_empty() {
                eprintln!("airtcp: `{line}` sets nothing: expected NAME=VALUE");
            }
            for (name, value) in assignments {
                match self.tuning.sysctl(name, &value) {
                    Ok(SysctlSupport::Applied) => {}
                    Ok(SysctlSupport::Unsupported) => {
                        eprintln!("airtcp: `{name}` was not set: airtcp does not support it");
                    }
                    Err(error) => eprintln!("airtcp: {error}"),
                }
            }
        }
        if self.sockets.is_pristine() {
            self.rebuild();
        }
    }

    /// Replaces the host. Allowed only while no socket is bound or connected.
    fn rebuild(&mut self) {
        match self.tuning.host_config(self.addrs.clone(), self.mtu) {
            Ok(config) => {
                self.sockets.replace_host(config);
                self.sockets.set_fast_open_keys(self.tuning.fast_open_keys());
            }
            Err(error) => eprintln!("airtcp: {error}"),
        }
    }
}

/// Splits a line into assignments: `sysctl -q net.ipv4.tcp_rmem=1 2 3` is one, `a=1 b=2` are two.
/// The shell has removed quotes, so a word without `=` continues the previous value.
fn assignments(line: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for word in line.split_whitespace() {
        if let Some((name, value)) = word.split_once('=') {
            found.push((name, value.to_owned()));
        } else if let Some((_, value)) = found.last_mut() {
            value.extend([" ", word]);
        }
    }
    found
}

/// Reports a timer that does not advance. packetdrill continues, and its script fails.
fn stuck(stuck: Stuck) {
    eprintln!("airtcp: {stuck}");
}

fn stuck_now(error: Stuck) -> bool {
    stuck(error);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_line_holds_one_or_several_assignments() {
        let pairs = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
        };
        assert_eq!(
            assignments("sysctl -q net.ipv4.tcp_rmem=1 2 3"),
            pairs(&[("net.ipv4.tcp_rmem", "1 2 3")])
        );
        assert_eq!(assignments("-q a=1 2 3 b=2 c=4 5"), pairs(&[("a", "1 2 3"), ("b", "2"), ("c", "4 5")]));
        assert_eq!(assignments("link set dev tun0 up"), []);
    }

    #[test]
    fn unknown_settings_are_refused_by_name() {
        let error = |flags| Stack::new(flags, None).err().unwrap_or_default();
        assert_eq!(error("colour=red"), "unknown setting `colour=red`");
        assert_eq!(error("mtu=big"), "`mtu=big`: expected a number");
    }

    #[test]
    fn clock_advances_on_reads_and_jumps_on_sleep() {
        let stack = Stack::new("profile=linux", None).unwrap();
        let first = stack.gettimeofday();
        assert_eq!(stack.gettimeofday() - first, TIME_PER_READING);
        stack.usleep(Duration::from_secs(3600));
        assert_eq!(stack.gettimeofday() - first, Duration::from_secs(3600) + TIME_PER_READING * 2);
    }

    #[test]
    fn clock_stops_until_returning_thread_reads_it() {
        let stack = Stack::new("", None).unwrap();
        let fd = Fd(1000);
        stack.socket(fd).unwrap();
        stack.bind(fd, "192.168.0.1:8080".parse().unwrap()).unwrap();
        stack.listen(fd, 1).unwrap();
        let began = stack.gettimeofday();
        let until = stack.poll_until(50);
        let set = vec![(fd, airtcp_script::syscall::Events::IN)];
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let polled = stack.call(Request::Poll { set, until });
                (polled, stack.gettimeofday())
            });
            // The clock must not pass the deadline of the call before the call waits.
            while stack.lock().sockets.next_deadline() != until {
                thread::yield_now();
            }
            stack.usleep(Duration::from_secs(10));
            let (polled, read) = sleeper.join().unwrap();
            assert_eq!(polled, Ok(Reply::Polled(vec![Default::default()])));
            assert_eq!(read - began, Duration::from_millis(50));
            assert!(stack.gettimeofday() - began >= Duration::from_secs(10));
        });
    }
}
