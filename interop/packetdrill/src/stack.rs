//! One host, several threads of packetdrill, one virtual clock.
//!
//! packetdrill runs a call that blocks in a second thread and goes on once that thread sleeps. When something
//! wakes the call, its thread reads the clock, and what it reads is checked. So from the instant at which a call
//! ends until its thread has read the clock, time stands still for everybody else.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use airtcp_script::Push;
use airtcp_script::errno::Errno;
use airtcp_script::sockets::{Sockets, Stuck};
use airtcp_script::sockopt::SockOpt;
use airtcp_script::syscall::{Blocking, Fd, How, OptionValue, Reply, Request, Submitted};
use airtcp_script::tuning::Tuning;
use airtcp_script::{tcp_info, wire};
use airwire::time::{Duration, Instant};

/// Where the clock stands when packetdrill loads the library.
const ORIGIN: Instant = Instant::from_secs(1_000_000);

/// packetdrill spins on the clock before each event, so each reading moves it.
const CREEP: Duration = Duration::from_micros(1);

/// A thread that never reads the clock after its call must not hold up the others for ever.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Source addresses for a connect without bind.
const LOCAL: [&str; 2] = ["192.168.0.1", "fd3d:a0b:17d6::1"];

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
    /// The file of sysctls, read at each socket().
    control: Option<PathBuf>,
    /// Threads whose call has ended and which have not read the clock yet.
    woken: Vec<ThreadId>,
}

/// A packet and when it left.
pub struct Departure {
    pub at: Instant,
    pub bytes: Vec<u8>,
}

impl Stack {
    /// `flags` is what `--so_flags` says: `profile=linux,recipe=sack+limited-transmit,psh=neutral,…`.
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
                _ => return Err(format!("airtcp has no knob `{name}={value}`")),
            }
        }
        let sockets = Sockets::new(tuning.host_config(addrs.clone(), mtu)?, ORIGIN);
        let state = State { sockets, tuning, addrs, mtu, push, control, woken: Vec::new() };
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
        let mut state = self.thaw(state);
        let to = state.sockets.now() + CREEP;
        state.sockets.advance(to).unwrap_or_else(stuck);
        self.announce(&state);
        state.sockets.now()
    }

    pub fn usleep(&self, time: Duration) {
        let mut state = self.enter();
        let to = state.sockets.now() + time;
        while state.sockets.step(to).unwrap_or_else(stuck_now) {
            self.announce(&state);
            state = self.thaw(state);
        }
        state.sockets.skip_to(to);
    }

    // The network.

    pub fn netdev_send(&self, packet: &[u8]) {
        let mut state = self.enter();
        state.sockets.deliver(packet);
        self.announce(&state);
    }

    /// The next packet, jumping over time as needed; `None`: nothing will ever come.
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
            state = self.thaw(state);
        }
    }

    // Calls.

    /// Whether this descriptor is ours.
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
        // packetdrill's --local_ip is learned here.
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

    pub fn shutdown(&self, fd: Fd, how: How) -> Result<(), Errno> {
        let mut state = self.enter();
        let result = state.sockets.shutdown(fd, how);
        self.announce(&state);
        result
    }

    /// A call that may have to wait, and then sleeps.
    pub fn call(&self, request: Request) -> Result<Reply, Errno> {
        let mut state = self.enter();
        let ticket = match state.sockets.submit(request) {
            Submitted::Done(result) => {
                self.announce(&state);
                return result;
            }
            Submitted::Asleep(ticket) => ticket,
        };
        loop {
            if let Some(finished) = state.sockets.take_finished(ticket) {
                state.woken.push(thread::current().id());
                return finished.result;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How long from now a poll(2) with this timeout waits; negative: for ever.
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

    /// TCP_INFO; all zero for a socket without a connection.
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
        // A panic elsewhere aborts at the C boundary; whatever is left is consistent enough to answer.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until time runs. A thread that comes with another call need not read the clock any more.
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let me = thread::current().id();
        if state.woken.contains(&me) {
            state.woken.retain(|woken| *woken != me);
            self.changed.notify_all();
        }
        self.thaw(state)
    }

    fn thaw<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let (mut state, waited) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.is_frozen())
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

    /// `$PD_CTL`: the arguments of the sysctl lines of the script's init command, one or several a line.
    fn read_control(&mut self) {
        let Some(text) = self.control.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) else {
            return;
        };
        for line in text.lines() {
            for (name, value) in assignments(line) {
                if let Err(error) = self.tuning.sysctl(name, value) {
                    eprintln!("airtcp: {error}");
                }
            }
        }
        if self.sockets.is_pristine() {
            self.rebuild();
        }
    }

    /// Only while nothing is bound or connected.
    fn rebuild(&mut self) {
        match self.tuning.host_config(self.addrs.clone(), self.mtu) {
            Ok(config) => self.sockets.replace_host(config),
            Err(error) => eprintln!("airtcp: {error}"),
        }
    }
}

/// `sysctl -q net.ipv4.tcp_rmem=1 2 3` is one assignment, `a=1 b=2` are two.
fn assignments(line: &str) -> Vec<(&str, &str)> {
    let Some(equals) = line.find('=') else { return Vec::new() };
    let start = line[..equals].rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
    let rest = line[start..].trim();
    if rest.matches('=').count() == 1 {
        return rest.split_once('=').into_iter().collect();
    }
    rest.split_whitespace().filter_map(|word| word.split_once('=')).collect()
}

/// A broken timer must not hang packetdrill; the script fails by itself.
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
    fn a_control_line_holds_one_assignment_or_several() {
        assert_eq!(assignments("sysctl -q net.ipv4.tcp_rmem=1 2 3"), [("net.ipv4.tcp_rmem", "1 2 3")]);
        assert_eq!(assignments("-q a=1 b=2"), [("a", "1"), ("b", "2")]);
        assert_eq!(assignments("link set dev tun0 up"), []);
    }

    #[test]
    fn unknown_knobs_are_refused_by_name() {
        let error = |flags| Stack::new(flags, None).err().unwrap_or_default();
        assert_eq!(error("colour=red"), "airtcp has no knob `colour=red`");
        assert_eq!(error("mtu=big"), "`mtu=big`: expected a number");
    }

    #[test]
    fn reading_the_clock_moves_it_and_sleeping_jumps() {
        let stack = Stack::new("profile=linux", None).unwrap();
        let first = stack.gettimeofday();
        assert_eq!(stack.gettimeofday() - first, CREEP);
        stack.usleep(Duration::from_secs(3600));
        assert_eq!(stack.gettimeofday() - first, Duration::from_secs(3600) + CREEP * 2);
    }

    #[test]
    fn a_call_that_ends_stops_the_clock_until_its_thread_has_read_it() {
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
            // Time must not pass the call's instant before the call waits.
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
