//! The two endpoints of a relay: a connection of the kernel's TCP, and one of the userspace host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use airtcp::host::{ConnId, Host, IoError};
use airtcp::relay::{Endpoint, Stop};
use airtcp_tun::{Descriptors, Readiness, Watched};
use airwire::time::Instant;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};

/// The connection to the server, on the kernel's TCP.
pub(crate) struct KernelEndpoint {
    stream: Watched<TcpStream>,
    /// True if a read or a write may succeed, false after the call would have blocked.
    readable: bool,
    writable: bool,
    /// True if an event has occurred, which may be a reset. The first event shows whether the connection was
    /// established.
    has_event: bool,
}

pub(crate) enum Connecting {
    Pending,
    Done,
    Failed(io::Error),
}

impl KernelEndpoint {
    /// Starts to connect.
    pub(crate) fn connect(target: SocketAddr, descriptors: &Descriptors, name: u64) -> io::Result<Self> {
        let family = if target.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let descriptor = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
        match connect(descriptor.as_raw_fd(), &SockaddrStorage::from(target)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(descriptor);
        stream.set_nodelay(true)?;
        let stream = descriptors.watch(stream, name)?;
        Ok(Self { stream, readable: true, writable: true, has_event: false })
    }

    pub(crate) fn connecting(&self) -> Connecting {
        if !self.has_event {
            return Connecting::Pending;
        }
        match self.stream.get().take_error() {
            Ok(Some(error)) | Err(error) => Connecting::Failed(error),
            Ok(None) => Connecting::Done,
        }
    }

    /// Writes the first bytes of the connection. They fit into the send buffer, which is still empty.
    pub(crate) fn begin(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get().write_all(bytes)
    }

    pub(crate) fn ready(&mut self, readiness: Readiness) {
        self.readable |= readiness.includes_read();
        self.writable |= readiness.includes_write();
        self.has_event = true;
    }
}

impl Endpoint for KernelEndpoint {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stop> {
        attempt(&mut self.readable, || self.stream.get().read(buffer))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        attempt(&mut self.writable, || self.stream.get().write(bytes))
    }

    fn room(&self) -> usize {
        if self.writable { usize::MAX } else { 0 }
    }

    fn shutdown(&mut self) {
        // The next read detects a connection that has ended.
        let _ = self.stream.get().shutdown(Shutdown::Write);
    }

    fn reset(&mut self) {
        // With a linger time of zero, close(2) sends a reset.
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let _ = setsockopt(self.stream.get(), sockopt::Linger, &linger);
    }

    fn has_failed(&mut self) -> bool {
        std::mem::take(&mut self.has_event) && !matches!(self.stream.get().take_error(), Ok(None))
    }
}

fn attempt(ready: &mut bool, mut call: impl FnMut() -> io::Result<usize>) -> Result<usize, Stop> {
    while *ready {
        match call() {
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => *ready = false,
            Err(_) => return Err(Stop::Failed),
        }
    }
    Err(Stop::Later)
}

/// Maximum number of unsent bytes in the host. More would only wait in its send buffer, which is much larger
/// than a slow path needs.
const MAX_UNSENT: usize = 64 << 10;

/// The connection to the client on the radio side, on the userspace host, for one turn.
pub(crate) struct RadioEndpoint<'a> {
    now: Instant,
    host: &'a mut Host,
    conn: ConnId,
    /// True if the last write left data that does not fill a segment. This data waits for the next turn,
    /// after the preceding full segments are sent. Until then, more data may be read.
    tail_waits: bool,
}

impl<'a> RadioEndpoint<'a> {
    pub(crate) fn new(now: Instant, host: &'a mut Host, conn: ConnId) -> Self {
        Self { now, host, conn, tail_waits: false }
    }
}

impl Endpoint for RadioEndpoint<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stop> {
        self.host.read(self.conn, buffer).map_err(stop)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        if self.has_failed() {
            return Err(Stop::Failed);
        }
        let Some(connection) = self.host.connection(self.conn) else { return Err(Stop::Failed) };
        let (unsent, segment) = (connection.unsent(), connection.info().snd_mss as usize);
        let room = MAX_UNSENT.saturating_sub(unsent).min(bytes.len());
        let count = match room.saturating_sub((unsent + room) % segment) {
            0 if room == 0 || room < bytes.len() || self.tail_waits => return Err(Stop::Later),
            0 => room,
            full_segments => full_segments,
        };
        self.tail_waits = count < bytes.len();
        self.host.write(self.now, self.conn, &bytes[..count]).map_err(stop)
    }

    fn room(&self) -> usize {
        let Some(connection) = self.host.connection(self.conn) else { return usize::MAX };
        let (unsent, segment) = (connection.unsent(), connection.info().snd_mss as usize);
        // The next write detects a connection that has ended.
        if connection.ended().is_some() {
            return usize::MAX;
        }
        // Wait until half of the limit is free: a few large reads are cheaper than many small ones.
        let ahead = if unsent <= MAX_UNSENT / 2 { MAX_UNSENT - unsent } else { 0 };
        let room = ahead.min(connection.writable());
        match room.saturating_sub((unsent + room) % segment) {
            0 => room,
            full_segments => full_segments,
        }
    }

    fn shutdown(&mut self) {
        // The next read detects a connection that has ended.
        let _ = self.host.shutdown_write(self.conn);
    }

    fn reset(&mut self) {
        self.host.abort(self.conn);
    }

    fn has_failed(&mut self) -> bool {
        self.host.connection(self.conn).is_none_or(|connection| connection.ended().is_some())
    }
}

fn stop(error: IoError) -> Stop {
    match error {
        IoError::WouldBlock => Stop::Later,
        IoError::NotConnected | IoError::Closed | IoError::Ended(_) => Stop::Failed,
    }
}
