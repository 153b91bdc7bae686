//! What an operating system puts around a TCP: descriptors, error numbers, calls that wait, and the clock.
//!
//! The script runner and the library for packetdrill both drive the host through this. A call that must wait is kept
//! here and tried again after everything that happens to the host, so that it returns at the right instant.

mod options;
mod pending;
mod poll;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airtcp::host::{ConnId, Host, HostConfig, IoError, ListenId};
use airtcp::tcp::{Connection, Ended, KeepAlive, Linger, Push, SocketOptions, State, Unreachable};
use airwire::time::Instant;
use pending::Pending;

use super::errno::Errno;
use super::syscall::{Blocking, Fd, Finished, How, Request, Submitted, Take, Ticket};

/// A packet that left the host.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When it left.
    pub at: Instant,
    /// The IP packet.
    pub bytes: Vec<u8>,
}

/// A host with the sockets on it, and its clock.
pub struct Sockets {
    host: Host,
    now: Instant,
    addrs: Vec<IpAddr>,
    /// What a new socket starts with.
    options: SocketOptions,
    sockets: BTreeMap<Fd, Socket>,
    sent: VecDeque<Sent>,
    blocked: Vec<(Ticket, Pending)>,
    finished: Vec<(Ticket, Finished)>,
    tickets: u64,
    steps_here: usize,
}

#[derive(Debug)]
struct Socket {
    role: Role,
    blocking: Blocking,
    options: SocketOptions,
    /// The times of keep-alive, also while it is off.
    keepalive: KeepAlive,
    /// Connections that poll(2) has seen and accept(2) has not taken yet.
    acceptable: VecDeque<ConnId>,
    local: Option<SocketAddr>,
    error: Reported,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Fresh,
    Listening(ListenId),
    Connecting(ConnId),
    Connected(ConnId),
}

/// The error of a connection is told once; from then on reads are at the end and writes fail with EPIPE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reported {
    NotYet,
    Already,
}

/// A host that keeps asking to be woken at the present instant is broken; this many times is proof.
const MAX_STEPS_AT_ONE_INSTANT: usize = 10_000;

/// A host that keeps asking to be woken at the present instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the host keeps asking to be woken at {0}: one of its timers never clears")]
pub struct Stuck(pub Instant);

impl Sockets {
    /// No sockets yet; the clock stands at `now`.
    pub fn new(config: HostConfig, now: Instant) -> Self {
        Self {
            addrs: config.addrs.clone(),
            options: SocketOptions::of(&config.profile),
            host: Host::new(config),
            now,
            sockets: BTreeMap::new(),
            sent: VecDeque::new(),
            blocked: Vec::new(),
            finished: Vec::new(),
            tickets: 0,
            steps_here: 0,
        }
    }

    /// Nothing is bound or connected, so nobody would notice another host.
    pub fn is_pristine(&self) -> bool {
        self.sockets.values().all(|socket| socket.role == Role::Fresh && socket.local.is_none())
    }

    /// Puts a host with another configuration in the place of a pristine one. Options set on sockets so far are lost.
    pub fn replace_host(&mut self, config: HostConfig) {
        self.addrs.clone_from(&config.addrs);
        self.options = SocketOptions::of(&config.profile);
        self.sockets.values_mut().for_each(|socket| socket.options.clone_from(&self.options));
        self.host = Host::new(config);
    }

    // Time and packets.

    /// Where the clock stands.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The next timer of the host or timeout of poll(2). `None`: nothing happens by itself any more.
    pub fn next_deadline(&self) -> Option<Instant> {
        let polls = self.blocked.iter().filter_map(|(_, pending)| pending.deadline());
        polls.chain(self.host.next_deadline()).min()
    }

    /// Runs the next timer if it expires at or before `limit`; `false` if there is none.
    pub fn step(&mut self, limit: Instant) -> Result<bool, Stuck> {
        let Some(deadline) = self.next_deadline().filter(|deadline| *deadline <= limit) else {
            return Ok(false);
        };
        if deadline > self.now {
            self.now = deadline;
            self.steps_here = 0;
        }
        self.steps_here += 1;
        if self.steps_here > MAX_STEPS_AT_ONE_INSTANT {
            return Err(Stuck(self.now));
        }
        self.host.handle_deadline(self.now);
        self.settle();
        Ok(true)
    }

    /// Moves the clock to `to`, running every timer on the way. Never moves it back.
    pub fn advance(&mut self, to: Instant) -> Result<(), Stuck> {
        while self.step(to)? {}
        self.skip_to(to);
        Ok(())
    }

    /// Moves the clock without running timers; the caller has run those before `to`.
    pub fn skip_to(&mut self, to: Instant) {
        if to > self.now {
            self.now = to;
            self.steps_here = 0;
        }
    }

    /// An IP packet arrives at the host.
    pub fn deliver(&mut self, packet: &[u8]) {
        self.host.handle_packet(self.now, packet);
        self.settle();
    }

    /// The oldest packet that has left and was not taken yet.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    // Calls that may have to wait.

    /// Starts a call. If it must wait, it is tried again after everything that happens.
    pub fn submit(&mut self, request: Request) -> Submitted {
        let mut pending = Pending::new(request);
        if let Some(result) = pending.attempt(self) {
            self.settle();
            return Submitted::Done(result);
        }
        self.drain();
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.blocked.push((ticket, pending));
        Submitted::Asleep(ticket)
    }

    /// The end of a call that had to wait, once.
    pub fn take_finished(&mut self, ticket: Ticket) -> Option<Finished> {
        let at = self.finished.iter().position(|(finished, _)| *finished == ticket)?;
        Some(self.finished.swap_remove(at).1)
    }

    /// The end of a call that had to wait has not been taken yet.
    pub fn anything_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Sends what the host has to send, and tries the calls that wait.
    fn settle(&mut self) {
        self.drain();
        for (ticket, mut pending) in std::mem::take(&mut self.blocked) {
            match pending.attempt(self) {
                None => self.blocked.push((ticket, pending)),
                Some(result) => self.finished.push((ticket, Finished { at: self.now, result })),
            }
            // Also a call that goes on waiting may have got somewhere.
            self.drain();
        }
    }

    fn drain(&mut self) {
        let mut bytes = Vec::new();
        while self.host.poll_packet(self.now, &mut bytes) {
            self.sent.push_back(Sent { at: self.now, bytes: std::mem::take(&mut bytes) });
        }
    }

    // Calls that never wait.

    /// Opens a stream socket as `fd`.
    pub fn socket(&mut self, fd: Fd) -> Result<(), Errno> {
        let socket = Socket {
            role: Role::Fresh,
            blocking: Blocking::Wait,
            options: self.options.clone(),
            keepalive: KeepAlive::default(),
            acceptable: VecDeque::new(),
            local: None,
            error: Reported::NotYet,
        };
        self.sockets.insert(fd, socket);
        Ok(())
    }

    /// Whether `fd` is a socket that was not closed.
    pub fn is_open(&self, fd: Fd) -> bool {
        self.sockets.contains_key(&fd)
    }

    /// The wildcard address stands for the host's first address of that version.
    pub fn bind(&mut self, fd: Fd, mut addr: SocketAddr) -> Result<(), Errno> {
        if addr.ip().is_unspecified() {
            let own = self.addrs.iter().find(|own| own.is_ipv4() == addr.is_ipv4());
            addr.set_ip(*own.ok_or(Errno::EADDRNOTAVAIL)?);
        }
        if !self.addrs.contains(&addr.ip()) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        let socket = self.socket_mut(fd)?;
        if socket.role != Role::Fresh || socket.local.is_some() {
            return Err(Errno::EINVAL);
        }
        socket.local = Some(addr);
        Ok(())
    }

    /// Of a bound socket only: `EINVAL` otherwise.
    pub fn listen(&mut self, fd: Fd, backlog: usize) -> Result<(), Errno> {
        let socket = self.socket_mut(fd)?;
        if let Role::Listening(id) = socket.role {
            self.host.set_backlog(id, backlog);
            return Ok(());
        }
        let (Role::Fresh, Some(local)) = (socket.role, socket.local) else {
            return Err(Errno::EINVAL);
        };
        let options = socket.options.clone();
        let id = self.host.listen(local, backlog, options).map_err(|_| Errno::EADDRINUSE)?;
        self.socket_mut(fd)?.role = Role::Listening(id);
        Ok(())
    }

    /// EAGAIN: nothing to accept yet. Otherwise `as_fd` is open and connected to the address returned.
    pub(super) fn accept(&mut self, fd: Fd, as_fd: Fd) -> Result<SocketAddr, Errno> {
        self.gather(fd)?;
        let socket = self.socket_mut(fd)?;
        let id = socket.acceptable.pop_front().ok_or(Errno::EAGAIN)?;
        let (times, local) = (socket.keepalive, socket.local);
        let connection = self.host.connection(id).ok_or(Errno::ECONNABORTED)?;
        let (peer, options) = (connection.remote(), connection.options().clone());
        let accepted = Socket {
            role: Role::Connected(id),
            blocking: Blocking::Wait,
            keepalive: options.keepalive.unwrap_or(times),
            options,
            acceptable: VecDeque::new(),
            local,
            error: Reported::NotYet,
        };
        self.sockets.insert(as_fd, accepted);
        Ok(peer)
    }

    /// Takes over what the host has ready for this listener.
    fn gather(&mut self, fd: Fd) -> Result<(), Errno> {
        let Role::Listening(listener) = self.socket_of(fd)?.role else {
            return Err(Errno::EINVAL);
        };
        while let Some(id) = self.host.accept(listener) {
            self.socket_mut(fd)?.acceptable.push_back(id);
        }
        Ok(())
    }

    /// Begins a connection; `connected` tells how it went.
    pub(super) fn connect(&mut self, fd: Fd, to: SocketAddr) -> Result<(), Errno> {
        let now = self.now;
        let socket = self.socket_of(fd)?;
        match socket.role {
            Role::Listening(_) => return Err(Errno::EISCONN),
            Role::Connected(_) => return Err(Errno::EISCONN),
            Role::Connecting(_) => {
                return match self.connected(fd) {
                    Err(Errno::EAGAIN) => Err(Errno::EALREADY),
                    other => other,
                };
            }
            Role::Fresh => {}
        }
        let (local, options) = (socket.local, socket.options.clone());
        let id = self.host.connect(now, local, to, options).map_err(|_| Errno::EADDRNOTAVAIL)?;
        self.socket_mut(fd)?.role = Role::Connecting(id);
        Ok(())
    }

    /// EAGAIN while the handshake is under way.
    pub(super) fn connected(&mut self, fd: Fd) -> Result<(), Errno> {
        let socket = self.socket_of(fd)?;
        let id = match socket.role {
            Role::Connecting(id) => id,
            Role::Connected(_) => return Ok(()),
            Role::Fresh | Role::Listening(_) => return Err(Errno::ENOTCONN),
        };
        if let Some(error) = self.pending_error(fd) {
            self.socket_mut(fd)?.error = Reported::Already;
            return Err(error);
        }
        match self.host.connection(id).map(Connection::state) {
            Some(State::SynSent | State::SynReceived) => Err(Errno::EAGAIN),
            Some(State::Closed) | None => Err(Errno::ECONNABORTED),
            Some(_) => {
                self.socket_mut(fd)?.role = Role::Connected(id);
                Ok(())
            }
        }
    }

    /// EAGAIN: nothing there. An empty result is the end of the stream.
    pub(super) fn receive(&mut self, fd: Fd, len: usize, how: Take) -> Result<Vec<u8>, Errno> {
        let now = self.now;
        let id = self.ready_connection(fd, Errno::ENOTCONN)?;
        // A script may ask for more than there is memory. One octet tells "nothing yet" from the end of the stream.
        let readable = self.host.connection(id).map_or(0, Connection::readable);
        let mut buf = vec![0; len.min(readable.max(1))];
        let result = match how {
            Take::Peek => self.host.peek(id, &mut buf),
            Take::Consume => self.host.read(now, id, &mut buf),
        };
        match result {
            Ok(n) => {
                buf.truncate(n);
                Ok(buf)
            }
            Err(error) => match self.once(fd, error)? {
                Told::First(errno) => Err(errno),
                Told::Before => Ok(Vec::new()),
            },
        }
    }

    /// EAGAIN: the buffer is full.
    pub(super) fn send(&mut self, fd: Fd, data: &[u8], push: Push) -> Result<usize, Errno> {
        let now = self.now;
        let id = self.ready_connection(fd, Errno::EPIPE)?;
        self.host.write_with(now, id, data, push).or_else(|error| match self.once(fd, error)? {
            Told::First(errno) => Err(errno),
            Told::Before => Err(Errno::EPIPE),
        })
    }

    /// What a read could take now (SIOCINQ).
    pub fn unread(&mut self, fd: Fd) -> Result<usize, Errno> {
        let id = self.ready_connection(fd, Errno::ENOTCONN)?;
        Ok(self.host.connection(id).map_or(0, Connection::readable))
    }

    /// Ends the stream to the peer, or what can be read from it. As Linux, a listener stops listening if it is to read
    /// no more, and an attempt to connect ends.
    pub fn shutdown(&mut self, fd: Fd, how: How) -> Result<(), Errno> {
        let now = self.now;
        let socket = self.socket_mut(fd)?;
        match socket.role {
            Role::Fresh => return Err(Errno::ENOTCONN),
            Role::Listening(_) if how == How::Write => {}
            Role::Listening(id) => {
                socket.role = Role::Fresh;
                let acceptable = std::mem::take(&mut socket.acceptable);
                self.stop_listening(id, acceptable);
            }
            Role::Connecting(id) | Role::Connected(id) => {
                match self.host.connection(id).map(Connection::state) {
                    None | Some(State::Closed) => return Err(Errno::ENOTCONN),
                    Some(State::SynSent) => self.host.abort(now, id),
                    Some(_) => {
                        if how != How::Write {
                            self.host.shutdown_read(now, id).map_err(|_| Errno::ENOTCONN)?;
                        }
                        if how != How::Read {
                            self.host.shutdown_write(now, id).map_err(|_| Errno::ENOTCONN)?;
                        }
                    }
                }
            }
        }
        self.settle();
        Ok(())
    }

    /// Closes it. If SO_LINGER wants the call to wait: for which connection, and how long.
    ///
    /// Choice: a descriptor that does not block does not linger either, as FreeBSD has it (`soclose`, SS_NBIO). POSIX
    /// leaves it open, and Linux's `inet_release` does not ask.
    pub(super) fn begin_close(&mut self, fd: Fd) -> Result<Option<(ConnId, Instant)>, Errno> {
        let now = self.now;
        let socket = self.sockets.remove(&fd).ok_or(Errno::EBADF)?;
        let id = match socket.role {
            Role::Fresh => return Ok(None),
            Role::Listening(id) => {
                self.stop_listening(id, socket.acceptable);
                return Ok(None);
            }
            Role::Connecting(id) | Role::Connected(id) => id,
        };
        self.host.close(now, id);
        // A reset leaves at once, and then nothing is left to wait for.
        self.drain();
        Ok(match socket.options.linger {
            Linger::Wait(time) if socket.blocking == Blocking::Wait => Some((id, now + time)),
            _ => None,
        })
    }

    /// A connection that the application has closed still has something to be acknowledged.
    pub(super) fn is_closing(&self, id: ConnId) -> bool {
        self.host.connection(id).is_some_and(Connection::is_closing)
    }

    /// Connections that poll(2) has taken from the host and accept(2) has not given out are the socket's to reset.
    fn stop_listening(&mut self, id: ListenId, acceptable: VecDeque<ConnId>) {
        self.host.unlisten(id);
        for id in acceptable {
            self.host.abort(self.now, id);
            self.host.close(self.now, id);
        }
    }

    /// Whether calls on it wait.
    pub fn blocking(&self, fd: Fd) -> Result<Blocking, Errno> {
        Ok(self.socket_of(fd)?.blocking)
    }

    /// Whether calls on it wait from now on.
    pub fn set_blocking(&mut self, fd: Fd, blocking: Blocking) -> Result<(), Errno> {
        self.socket_mut(fd)?.blocking = blocking;
        Ok(())
    }

    /// The host's connection. `None`: the socket has none, or the host has forgotten it.
    pub fn connection(&self, fd: Fd) -> Option<&Connection> {
        match self.sockets.get(&fd)?.role {
            Role::Connecting(id) | Role::Connected(id) => self.host.connection(id),
            Role::Fresh | Role::Listening(_) => None,
        }
    }

    // Errors.

    /// What SO_ERROR would tell now.
    fn pending_error(&self, fd: Fd) -> Option<Errno> {
        if self.sockets.get(&fd)?.error == Reported::Already {
            return None;
        }
        self.connection(fd)?.ended().map(ended)
    }

    fn take_soft_error(&mut self, fd: Fd) -> Option<Errno> {
        let (Role::Connecting(id) | Role::Connected(id)) = self.sockets.get(&fd)?.role else { return None };
        match self.host.connection_mut(id)?.take_soft_error()? {
            Unreachable::Port => Some(Errno::ECONNREFUSED),
            why => Some(unreachable(why)),
        }
    }

    /// Errors that end a connection are told once; the others each time.
    fn once(&mut self, fd: Fd, error: IoError) -> Result<Told, Errno> {
        let fatal = matches!(error, IoError::Ended(_));
        let socket = self.socket_mut(fd)?;
        if fatal && socket.error == Reported::Already {
            return Ok(Told::Before);
        }
        if fatal {
            socket.error = Reported::Already;
        }
        Ok(Told::First(errno(error)))
    }

    /// The connection of a socket whose handshake is done; EAGAIN before, `unconnected` without one.
    fn ready_connection(&mut self, fd: Fd, unconnected: Errno) -> Result<ConnId, Errno> {
        let socket = self.socket_of(fd)?;
        match socket.role {
            Role::Fresh | Role::Listening(_) => Err(unconnected),
            Role::Connected(id) => Ok(id),
            // The handshake failed, and that was told: read(2) is at the end, write(2) has no reader.
            Role::Connecting(id) if socket.error == Reported::Already => Ok(id),
            Role::Connecting(id) => self.connected(fd).map(|()| id),
        }
    }

    fn socket_of(&self, fd: Fd) -> Result<&Socket, Errno> {
        self.sockets.get(&fd).ok_or(Errno::EBADF)
    }

    fn socket_mut(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(Errno::EBADF)
    }
}

enum Told {
    First(Errno),
    Before,
}

fn ended(ended: Ended) -> Errno {
    match ended {
        Ended::Refused => Errno::ECONNREFUSED,
        Ended::Reset => Errno::ECONNRESET,
        Ended::TimedOut => Errno::ETIMEDOUT,
        Ended::Unreachable(why) => unreachable(why),
        Ended::Aborted => Errno::ECONNRESET,
    }
}

/// As Linux has them in `icmp_err_convert` and `icmpv6_err_convert`.
fn unreachable(why: Unreachable) -> Errno {
    match why {
        Unreachable::Network
        | Unreachable::NetworkUnknown
        | Unreachable::NetworkProhibited
        | Unreachable::NetworkTos => Errno::ENETUNREACH,
        Unreachable::Host
        | Unreachable::HostProhibited
        | Unreachable::HostTos
        | Unreachable::Prohibited
        | Unreachable::Precedence
        | Unreachable::Scope
        | Unreachable::TimeExceeded
        // Of an open connection, which it has not ended.
        | Unreachable::Port => Errno::EHOSTUNREACH,
        Unreachable::Protocol => Errno::ENOPROTOOPT,
        Unreachable::SourceRoute => Errno::EOPNOTSUPP,
        Unreachable::HostUnknown => Errno::EHOSTDOWN,
        Unreachable::Isolated => Errno::ENONET,
        Unreachable::Policy => Errno::EACCES,
        Unreachable::BadHeader => Errno::EPROTO,
    }
}

fn errno(error: IoError) -> Errno {
    match error {
        IoError::WouldBlock => Errno::EAGAIN,
        IoError::Closed => Errno::EPIPE,
        IoError::Ended(why) => ended(why),
        IoError::NotConnected => Errno::ENOTCONN,
    }
}
