//! A blocking call and its attempts.

use std::net::SocketAddr;

use airtcp::host::ConnId;
use airwire::time::Instant;

use super::Sockets;
use super::fast_open::Begun;
use crate::errno::Errno;
use crate::syscall::{Blocking, Events, Fd, Reply, Request};

#[derive(Debug)]
pub(super) struct Pending {
    request: Request,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    NotStarted,
    /// connect(2) has sent a SYN.
    Handshake,
    /// A write has sent the SYN with this number of bytes, and waits for the end of the handshake.
    Opening(usize),
    /// Number of bytes that write(2) has placed in the buffer.
    Written(usize),
    /// close(2) has closed the connection and lingers until this time.
    Closing(ConnId, Instant),
}

/// Whether the connection of a write is open.
enum OpenProgress {
    /// The connection is open, or the request does not write.
    Open,
    /// The write has sent the SYN, and must wait.
    Waiting,
    /// The write has sent the SYN, and returns.
    Returned(Result<Reply, Errno>),
}

impl Pending {
    pub(super) fn new(request: Request) -> Self {
        Self { request, progress: Progress::NotStarted }
    }

    /// Returns the time at which the call ends even without an event.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match (&self.request, self.progress) {
            (Request::Poll { until, .. }, _) => *until,
            (_, Progress::Closing(_, until)) => Some(until),
            _ => None,
        }
    }

    /// Attempts the call. `None` if it must wait.
    pub(super) fn attempt(&mut self, sockets: &mut Sockets) -> Option<Result<Reply, Errno>> {
        let waits = match self.waits(sockets) {
            Ok(waits) => waits,
            Err(errno) => return Some(Err(errno)),
        };
        match self.open(sockets, waits) {
            OpenProgress::Open => {}
            OpenProgress::Waiting => return None,
            OpenProgress::Returned(result) => return Some(result),
        }
        let result = match &self.request {
            Request::Poll { set, until } => return poll(sockets, set, *until).map(Ok),
            Request::Close { fd } => {
                let fd = *fd;
                return self.close(sockets, fd);
            }
            Request::Connect { fd, to } => {
                let (fd, to) = (*fd, *to);
                return self.connect(sockets, fd, to, waits);
            }
            Request::Accept { fd, as_fd } => sockets.accept(*fd, *as_fd).map(Reply::Accepted),
            Request::Receive { fd, len, mode, .. } => sockets.receive(*fd, *len, *mode).map(Reply::Received),
            Request::Send { fd, data, push, record, .. }
            | Request::OpenAndSend { fd, data, push, record, .. } => {
                let before = if let Progress::Written(done) = self.progress { done } else { 0 };
                let send = |data: &[u8]| sockets.send(*fd, data, *push, *record);
                let (result, done) = write_all(data, before, send);
                self.progress = Progress::Written(done);
                // Bytes already in the buffer count as written. The next call reports the error.
                if done > 0 && !(waits && result == Err(Errno::EAGAIN)) {
                    Ok(Reply::Sent(done))
                } else {
                    result
                }
            }
        };
        match result {
            Err(Errno::EAGAIN) if waits => None,
            result => Some(result),
        }
    }

    /// Returns whether the call may wait: neither O_NONBLOCK nor MSG_DONTWAIT is set.
    fn waits(&self, sockets: &Sockets) -> Result<bool, Errno> {
        let (fd, wait) = match &self.request {
            Request::Accept { fd, .. } | Request::Connect { fd, .. } => (*fd, Blocking::Wait),
            Request::Receive { fd, wait, .. }
            | Request::Send { fd, wait, .. }
            | Request::OpenAndSend { fd, wait, .. } => (*fd, *wait),
            Request::Poll { .. } | Request::Close { .. } => return Ok(true),
        };
        Ok(sockets.blocking(fd)? == Blocking::Wait && wait == Blocking::Wait)
    }

    /// Lets a write send the SYN, unless the SYN was sent before. As in Linux, a write that does not wait returns the
    /// number of bytes in the SYN, or EINPROGRESS if there are none; any other write waits for the end of the
    /// handshake.
    fn open(&mut self, sockets: &mut Sockets, waits: bool) -> OpenProgress {
        let (fd, data, to) = match &self.request {
            Request::Send { fd, data, .. } => (*fd, data, None),
            Request::OpenAndSend { fd, data, to, .. } => (*fd, data, Some(*to)),
            _ => return OpenProgress::Open,
        };
        if self.progress == Progress::NotStarted {
            let opened = to.map_or(Ok(()), |to| sockets.open_by_write(fd, to));
            let begun = match opened.and_then(|()| sockets.fill_syn(fd, data)) {
                Ok(begun) => begun,
                Err(errno) => return OpenProgress::Returned(Err(errno)),
            };
            let in_syn = match begun {
                Begun::WithSyn(octets) => octets,
                // The SYN requests a cookie.
                Begun::Ordinary if to.is_some() => 0,
                Begun::Ordinary => return OpenProgress::Open,
            };
            match in_syn {
                0 if !waits => return OpenProgress::Returned(Err(Errno::EINPROGRESS)),
                octets if !waits => return OpenProgress::Returned(Ok(Reply::Sent(octets))),
                octets => self.progress = Progress::Opening(octets),
            }
        }
        let Progress::Opening(in_syn) = self.progress else { return OpenProgress::Open };
        match sockets.connected(fd) {
            Ok(()) => {
                self.progress = Progress::Written(in_syn);
                OpenProgress::Open
            }
            Err(Errno::EAGAIN) => OpenProgress::Waiting,
            Err(errno) => OpenProgress::Returned(Err(errno)),
        }
    }

    /// Closes the descriptor. As in Linux, close(2) succeeds when the linger time is over, and the
    /// connection continues to send its unacknowledged data.
    fn close(&mut self, sockets: &mut Sockets, fd: Fd) -> Option<Result<Reply, Errno>> {
        if self.progress == Progress::NotStarted {
            match sockets.begin_close(fd) {
                Ok(Some((id, until))) => self.progress = Progress::Closing(id, until),
                Ok(None) => {}
                Err(errno) => return Some(Err(errno)),
            }
        }
        match self.progress {
            Progress::Closing(id, until) if until > sockets.now() && sockets.is_closing(id) => None,
            _ => Some(Ok(Reply::Closed)),
        }
    }

    fn connect(
        &mut self,
        sockets: &mut Sockets,
        fd: Fd,
        to: SocketAddr,
        waits: bool,
    ) -> Option<Result<Reply, Errno>> {
        if self.progress == Progress::NotStarted {
            self.progress = Progress::Handshake;
            let already = sockets.connection(fd).is_some();
            match sockets.connect(fd, to) {
                Ok(()) if already || sockets.syn_waits(fd) => return Some(Ok(Reply::Connected)),
                Ok(()) if !waits => return Some(Err(Errno::EINPROGRESS)),
                Ok(()) => {}
                Err(errno) => return Some(Err(errno)),
            }
        }
        match sockets.connected(fd) {
            Err(Errno::EAGAIN) => None,
            result => Some(result.map(|()| Reply::Connected)),
        }
    }
}

fn poll(sockets: &mut Sockets, set: &[(Fd, Events)], until: Option<Instant>) -> Option<Reply> {
    // POSIX: these three are reported even if they are not requested.
    let always = Events::ERR.0 | Events::HUP.0 | Events::INVALID.0;
    let found: Vec<Events> =
        set.iter().map(|(fd, interest)| Events(sockets.poll(*fd).0 & (interest.0 | always))).collect();
    let ready = found.iter().any(|events| *events != Events::default());
    let expired = until.is_some_and(|until| until <= sockets.now());
    (ready || expired).then_some(Reply::Polled(found))
}

/// Writes as much as the buffer accepts. Ends with EAGAIN when the buffer is full.
fn write_all(
    data: &[u8],
    mut done: usize,
    mut send: impl FnMut(&[u8]) -> Result<usize, Errno>,
) -> (Result<Reply, Errno>, usize) {
    loop {
        if done == data.len() && done > 0 {
            return (Ok(Reply::Sent(done)), done);
        }
        match send(&data[done..]) {
            Ok(0) => return (Ok(Reply::Sent(done)), done),
            Ok(n) => done += n,
            Err(errno) => return (Err(errno), done),
        }
    }
}
