//! The parts of an operating system around TCP: descriptors, error numbers, blocking calls and the
//! clock.
//!
//! The script runner and the library for packetdrill both drive the host through this module. A
//! blocked call is retried after every event of the host.

mod fast_open;
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
use super::syscall::{Blocking, Fd, Finished, ReadMode, Record, Request, ShutdownHow, Submitted, Ticket};

/// A packet that the host has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Sending time.
    pub at: Instant,
    /// The IP packet.
    pub bytes: Vec<u8>,
}

/// A host with its sockets and its clock.
pub struct Sockets {
    host: Host,
    now: Instant,
    addrs: Vec<IpAddr>,
    /// Initial options of new sockets.
    options: SocketOptions,
    sockets: BTreeMap<Fd, Socket>,
    sent: VecDeque<Sent>,
    blocked: Vec<(Ticket, Pending)>,
    finished: Vec<(Ticket, Finished)>,
    tickets: u64,
    steps_at_now: usize,
}

#[derive(Debug)]
struct Socket {
    role: Role,
    blocking: Blocking,
    options: SocketOptions,
    /// Keep-alive settings, which remain while keep-alive is off.
    keepalive: KeepAlive,
    /// Connections that poll(2) has taken from the host, until accept(2) returns them.
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

/// Whether the error of a connection has been reported. It is reported once. After that, reads
/// return the end of the stream and writes fail with EPIPE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reported {
    NotYet,
    Already,
}

/// Maximum number of timer runs at one instant. A larger number means that a timer never clears.
const MAX_STEPS_AT_ONE_INSTANT: usize = 10_000;

/// Error: the host keeps asking to be woken at the current instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the host keeps asking to be woken at {0}: one of its timers never clears")]
pub struct Stuck(pub Instant);

impl Sockets {
    /// Creates a host without sockets. The clock starts at `now`.
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
            steps_at_now: 0,
        }
    }

    /// Returns whether no socket is bound or connected, so that the host can be replaced.
    pub fn is_pristine(&self) -> bool {
        self.sockets.values().all(|socket| socket.role == Role::Fresh && socket.local.is_none())
    }

    /// Replaces a pristine host with one of another configuration. Options that were set on sockets
    /// are lost.
    pub fn replace_host(&mut self, config: HostConfig) {
        self.addrs.clone_from(&config.addrs);
        self.options = SocketOptions::of(&config.profile);
        self.sockets.values_mut().for_each(|socket| socket.options.clone_from(&self.options));
        self.host = Host::new(config);
    }

    /// Returns the current virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the time of the host's next timer or of the next poll(2) timeout. `None` if neither
    /// is pending.
    pub fn next_deadline(&self) -> Option<Instant> {
        let polls = self.blocked.iter().filter_map(|(_, pending)| pending.deadline());
        polls.chain(self.host.next_deadline()).min()
    }

    /// Runs the next timer if it expires at or before `limit`. Returns `false` if no timer does.
    pub fn step(&mut self, limit: Instant) -> Result<bool, Stuck> {
        let Some(deadline) = self.next_deadline().filter(|deadline| *deadline <= limit) else {
            return Ok(false);
        };
        if deadline > self.now {
            self.now = deadline;
            self.steps_at_now = 0;
        }
        self.steps_at_now += 1;
        if self.steps_at_now > MAX_STEPS_AT_ONE_INSTANT {
            return Err(Stuck(self.now));
        }
        self.host.handle_deadline(self.now);
        self.settle();
        Ok(true)
    }

    /// Advances the clock to `to` and runs every timer that expires until then. The clock does not move
    /// backward.
    pub fn advance(&mut self, to: Instant) -> Result<(), Stuck> {
        while self.step(to)? {}
        self.skip_to(to);
        Ok(())
    }

    /// Advances the clock without running timers. The caller has run all timers before `to`.
    pub fn skip_to(&mut self, to: Instant) {
        if to > self.now {
            self.now = to;
            self.steps_at_now = 0;
        }
    }

    /// Delivers an IP packet to the host.
    pub fn deliver(&mut self, packet: &[u8]) {
        self.host.handle_packet(self.now, packet);
        self.settle();
    }

    /// Removes and returns the oldest packet that the host has sent.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// Starts a call. If it must wait, it is retried after every event.
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
        Submitted::Blocked(ticket)
    }

    /// Returns the result of a blocked call that has finished. Each result is returned once.
    pub fn take_finished(&mut self, ticket: Ticket) -> Option<Finished> {
        let at = self.finished.iter().position(|(finished, _)| *finished == ticket)?;
        Some(self.finished.swap_remove(at).1)
    }

    /// Returns whether the result of a finished call can be taken.
    pub fn anything_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Collects the host's packets and retries the blocked calls.
    fn settle(&mut self) {
        self.drain();
        for (ticket, mut pending) in std::mem::take(&mut self.blocked) {
            match pending.attempt(self) {
                None => self.blocked.push((ticket, pending)),
                Some(result) => self.finished.push((ticket, Finished { at: self.now, result })),
            }
            // A call that remains blocked may still have made progress and caused packets.
            self.drain();
        }
    }

    fn drain(&mut self) {
        let mut bytes = Vec::new();
        while self.host.poll_packet(self.now, &mut bytes) {
            self.sent.push_back(Sent { at: self.now, bytes: std::mem::take(&mut bytes) });
        }
    }

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

    /// Returns whether `fd` is an open socket.
    pub fn is_open(&self, fd: Fd) -> bool {
        self.sockets.contains_key(&fd)
    }

    /// Binds a socket. The wildcard address selects the host's first address of the same IP
    /// version.
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

    /// Starts listening on a bound socket. Fails with `EINVAL` on any other socket.
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

    /// Accepts a connection as `as_fd` and returns the peer's address. EAGAIN if there is none to
    /// accept.
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

    /// Takes the connections that the host has ready for this listener.
    fn gather(&mut self, fd: Fd) -> Result<(), Errno> {
        let Role::Listening(listener) = self.socket_of(fd)?.role else {
            return Err(Errno::EINVAL);
        };
        while let Some(id) = self.host.accept(listener) {
            self.socket_mut(fd)?.acceptable.push_back(id);
        }
        Ok(())
    }

    /// Starts a connection. Its outcome is returned by `connected`.
    pub(super) fn connect(&mut self, fd: Fd, to: SocketAddr) -> Result<(), Errno> {
        let now = self.now;
        let socket = self.socket_of(fd)?;
        match socket.role {
            Role::Listening(_) | Role::Connected(_) => return Err(Errno::EISCONN),
            Role::Connecting(_) => {
                return match self.connected(fd) {
                    Err(Errno::EAGAIN) if self.syn_waits(fd) => Err(Errno::EISCONN),
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

    /// Returns the outcome of connect. EAGAIN while the handshake is in progress.
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

    /// Reads from a connection. EAGAIN if no data is available; an empty result is the end of the
    /// stream.
    pub(super) fn receive(&mut self, fd: Fd, len: usize, mode: ReadMode) -> Result<Vec<u8>, Errno> {
        let id = self.ready_connection(fd, Errno::ENOTCONN)?;
        // A script may request more bytes than fit into memory, so the buffer is limited to the
        // available data. It has at least one byte, because a read into an empty buffer cannot
        // distinguish missing data from the end of the stream.
        let readable = self.host.connection(id).map_or(0, Connection::readable);
        let mut buf = vec![0; len.min(readable.max(1))];
        let result = match mode {
            ReadMode::Peek => self.host.peek(id, &mut buf),
            ReadMode::Consume => self.host.read(id, &mut buf),
        };
        match result {
            Ok(n) => {
                buf.truncate(n);
                Ok(buf)
            }
            Err(error) => match self.report_once(fd, error)? {
                Report::New(errno) => Err(errno),
                Report::Repeated => Ok(Vec::new()),
            },
        }
    }

    /// Writes to a connection. EAGAIN if the buffer is full. A record ends only if all of `data` fits.
    pub(super) fn send(&mut self, fd: Fd, data: &[u8], push: Push, record: Record) -> Result<usize, Errno> {
        let now = self.now;
        let id = self.ready_connection(fd, Errno::EPIPE)?;
        match self.host.write_with(now, id, data, push) {
            Ok(written) => {
                if record == Record::Ends && !data.is_empty() && written == data.len() {
                    self.host.end_record(id);
                }
                Ok(written)
            }
            Err(error) => match self.report_once(fd, error)? {
                Report::New(errno) => Err(errno),
                Report::Repeated => Err(Errno::EPIPE),
            },
        }
    }

    /// Returns the number of bytes that can be read now (SIOCINQ).
    pub fn unread(&mut self, fd: Fd) -> Result<usize, Errno> {
        let id = self.ready_connection(fd, Errno::ENOTCONN)?;
        Ok(self.host.connection(id).map_or(0, Connection::readable))
    }

    /// Shuts down one or both directions. As in Linux, a listener stops listening unless only
    /// writing is shut down, and a connection in SYN-SENT is aborted.
    pub fn shutdown(&mut self, fd: Fd, how: ShutdownHow) -> Result<(), Errno> {
        let socket = self.socket_mut(fd)?;
        match socket.role {
            Role::Fresh => return Err(Errno::ENOTCONN),
            Role::Listening(_) if how == ShutdownHow::Write => {}
            Role::Listening(id) => {
                socket.role = Role::Fresh;
                let acceptable = std::mem::take(&mut socket.acceptable);
                self.stop_listening(id, acceptable);
            }
            Role::Connecting(id) | Role::Connected(id) => {
                match self.host.connection(id).map(Connection::state) {
                    None | Some(State::Closed) => return Err(Errno::ENOTCONN),
                    Some(State::SynSent) => self.host.abort(id),
                    Some(_) => {
                        if how != ShutdownHow::Write {
                            self.host.shutdown_read(id).map_err(|_| Errno::ENOTCONN)?;
                        }
                        if how != ShutdownHow::Read {
                            self.host.shutdown_write(id).map_err(|_| Errno::ENOTCONN)?;
                        }
                    }
                }
            }
        }
        self.settle();
        Ok(())
    }

    /// Closes a descriptor. If SO_LINGER makes the call wait, returns the connection and the time
    /// at which the wait ends.
    ///
    /// Choice: closing a non-blocking descriptor does not linger, as in FreeBSD (`soclose`,
    /// SS_NBIO). POSIX leaves this open, and Linux's `inet_release` ignores the blocking mode.
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
        // A reset is sent at once, and ends the wait.
        self.drain();
        Ok(match socket.options.linger {
            Linger::Wait(time) if socket.blocking == Blocking::Wait => Some((id, now + time)),
            _ => None,
        })
    }

    /// Returns whether a closed connection still has unacknowledged data or an unacknowledged FIN.
    pub(super) fn is_closing(&self, id: ConnId) -> bool {
        self.host.connection(id).is_some_and(Connection::is_closing)
    }

    /// Stops listening. Also resets the acceptable connections, which the host no longer knows as
    /// connections of the listener.
    fn stop_listening(&mut self, id: ListenId, acceptable: VecDeque<ConnId>) {
        self.host.unlisten(id);
        for id in acceptable {
            self.host.abort(id);
            self.host.close(self.now, id);
        }
    }

    /// Returns whether calls on this descriptor block.
    pub fn blocking(&self, fd: Fd) -> Result<Blocking, Errno> {
        Ok(self.socket_of(fd)?.blocking)
    }

    /// Sets whether calls on this descriptor block.
    pub fn set_blocking(&mut self, fd: Fd, blocking: Blocking) -> Result<(), Errno> {
        self.socket_mut(fd)?.blocking = blocking;
        Ok(())
    }

    /// Returns the host's connection. `None` if the socket has none, or if the host has already
    /// removed it.
    pub fn connection(&self, fd: Fd) -> Option<&Connection> {
        match self.sockets.get(&fd)?.role {
            Role::Connecting(id) | Role::Connected(id) => self.host.connection(id),
            Role::Fresh | Role::Listening(_) => None,
        }
    }

    /// Returns the error that SO_ERROR would report now.
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

    /// Reports an error that ends a connection only once, and any other error each time.
    fn report_once(&mut self, fd: Fd, error: IoError) -> Result<Report, Errno> {
        let fatal = matches!(error, IoError::Ended(_));
        let socket = self.socket_mut(fd)?;
        if fatal && socket.error == Reported::Already {
            return Ok(Report::Repeated);
        }
        if fatal {
            socket.error = Reported::Already;
        }
        Ok(Report::New(errno(error)))
    }

    /// Returns the connection of a socket after its handshake. Fails with EAGAIN before the handshake, and
    /// with `unconnected` if the socket has no connection.
    fn ready_connection(&mut self, fd: Fd, unconnected: Errno) -> Result<ConnId, Errno> {
        let socket = self.socket_of(fd)?;
        match socket.role {
            Role::Fresh | Role::Listening(_) => Err(unconnected),
            Role::Connected(id) => Ok(id),
            // The handshake failed and its error was reported. Now read(2) returns the end of the
            // stream, and write(2) fails.
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

/// The first report of an error, or a repeated one.
enum Report {
    New(Errno),
    Repeated,
}

fn ended(ended: Ended) -> Errno {
    match ended {
        Ended::Refused => Errno::ECONNREFUSED,
        Ended::TimedOut => Errno::ETIMEDOUT,
        Ended::Unreachable(why) => unreachable(why),
        Ended::Reset | Ended::Aborted => Errno::ECONNRESET,
    }
}

/// Maps ICMP errors like Linux's `icmp_err_convert` and `icmpv6_err_convert`.
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
        // A port-unreachable error on an established connection does not end it. This value is
        // reported if the connection then times out.
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
