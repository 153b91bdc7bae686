//! Calls that may have to wait: what they ask, and one attempt at it.

use std::net::SocketAddr;

use airwire::time::Instant;

use super::errno::Errno;
use super::kernel::{Blocking, Events, Fd, Kernel, Take};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// The new descriptor is chosen by the caller.
    Accept {
        fd: Fd,
        as_fd: Fd,
    },
    Connect {
        fd: Fd,
        to: SocketAddr,
    },
    /// `wait` is `Return` for MSG_DONTWAIT.
    Receive {
        fd: Fd,
        len: usize,
        take: Take,
        wait: Blocking,
    },
    Send {
        fd: Fd,
        data: Vec<u8>,
        wait: Blocking,
    },
    /// No `until`: for ever.
    Poll {
        set: Vec<(Fd, Events)>,
        until: Option<Instant>,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Accepted(SocketAddr),
    Connected,
    Received(Vec<u8>),
    Sent(usize),
    /// One for each of the set.
    Polled(Vec<Events>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Submitted {
    Done(Result<Reply, Errno>),
    Asleep(Ticket),
}

/// A call that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub(super) u64);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    pub at: Instant,
    pub result: Result<Reply, Errno>,
}

#[derive(Debug)]
pub(super) struct Pending {
    request: Request,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    NotStarted,
    /// connect(2) has sent its SYN.
    Handshake,
    /// So many octets of a write(2) are in the buffer.
    Written(usize),
}

impl Pending {
    pub(super) fn new(request: Request) -> Self {
        Self { request, progress: Progress::NotStarted }
    }

    /// When the call ends although nothing happened.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.request {
            Request::Poll { until, .. } => *until,
            _ => None,
        }
    }

    /// `None`: the call has to wait.
    pub(super) fn attempt(&mut self, kernel: &mut Kernel) -> Option<Result<Reply, Errno>> {
        let waits = match self.waits(kernel) {
            Ok(waits) => waits,
            Err(errno) => return Some(Err(errno)),
        };
        let result = match &self.request {
            Request::Poll { set, until } => return poll(kernel, set, *until).map(Ok),
            Request::Connect { fd, to } => {
                let (fd, to) = (*fd, *to);
                return self.connect(kernel, fd, to, waits);
            }
            Request::Accept { fd, as_fd } => kernel.accept(*fd, *as_fd).map(Reply::Accepted),
            Request::Receive { fd, len, take, .. } => kernel.receive(*fd, *len, *take).map(Reply::Received),
            Request::Send { fd, data, .. } => {
                let before = if let Progress::Written(done) = self.progress { done } else { 0 };
                let (result, done) = write_all(kernel, *fd, data, before);
                self.progress = Progress::Written(done);
                // What is in the buffer counts; an error is told by the next call.
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

    /// Neither O_NONBLOCK nor MSG_DONTWAIT.
    fn waits(&self, kernel: &Kernel) -> Result<bool, Errno> {
        let (fd, wait) = match &self.request {
            Request::Accept { fd, .. } | Request::Connect { fd, .. } => (*fd, Blocking::Wait),
            Request::Receive { fd, wait, .. } | Request::Send { fd, wait, .. } => (*fd, *wait),
            Request::Poll { .. } => return Ok(true),
        };
        Ok(kernel.blocking(fd)? == Blocking::Wait && wait == Blocking::Wait)
    }

    fn connect(
        &mut self,
        kernel: &mut Kernel,
        fd: Fd,
        to: SocketAddr,
        waits: bool,
    ) -> Option<Result<Reply, Errno>> {
        if self.progress == Progress::NotStarted {
            self.progress = Progress::Handshake;
            let already = kernel.connection(fd).is_some();
            match kernel.connect(fd, to) {
                Ok(()) if already => return Some(Ok(Reply::Connected)),
                Ok(()) if !waits => return Some(Err(Errno::EINPROGRESS)),
                Ok(()) => {}
                Err(errno) => return Some(Err(errno)),
            }
        }
        match kernel.connected(fd) {
            Err(Errno::EAGAIN) => None,
            result => Some(result.map(|()| Reply::Connected)),
        }
    }
}

fn poll(kernel: &mut Kernel, set: &[(Fd, Events)], until: Option<Instant>) -> Option<Reply> {
    // POSIX: these three are told whether asked for or not.
    let always = Events::ERR.0 | Events::HUP.0 | Events::INVALID.0;
    let found: Vec<Events> =
        set.iter().map(|(fd, interest)| Events(kernel.poll(*fd).0 & (interest.0 | always))).collect();
    let ready = found.iter().any(|events| *events != Events::default());
    let expired = until.is_some_and(|until| until <= kernel.now());
    (ready || expired).then_some(Reply::Polled(found))
}

/// As much as the buffer takes; ends with EAGAIN when it is full.
fn write_all(kernel: &mut Kernel, fd: Fd, data: &[u8], mut done: usize) -> (Result<Reply, Errno>, usize) {
    loop {
        if done == data.len() && done > 0 {
            return (Ok(Reply::Sent(done)), done);
        }
        match kernel.send(fd, &data[done..]) {
            Ok(0) => return (Ok(Reply::Sent(done)), done),
            Ok(n) => done += n,
            Err(errno) => return (Err(errno), done),
        }
    }
}
