//! Types for system calls: descriptors, requests and results.

use std::fmt;
use std::net::SocketAddr;

pub use airtcp::tcp::{FastOpenKeys, Push};
use airwire::time::Instant;

use super::errno::Errno;

/// A file descriptor. The caller that opens it chooses the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fd(pub i32);

/// Whether a call waits if it cannot complete at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocking {
    /// Waits until it can complete.
    Wait,
    /// Returns EAGAIN instead (O_NONBLOCK).
    Return,
}

/// The argument of shutdown(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutdownHow {
    /// SHUT_RD.
    Read,
    /// SHUT_WR.
    Write,
    /// SHUT_RDWR.
    Both,
}

/// Whether recv(2) removes the data from the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// The data is removed.
    Consume,
    /// The data remains (MSG_PEEK).
    Peek,
}

/// Whether a write ends a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// Data written later may follow in the same segment.
    Continues,
    /// Data written later starts a new segment (MSG_EOR).
    Ends,
}

/// The value of a socket option, in the types that these calls support.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// An `int`, the type of most options.
    Int(i32),
    /// `struct linger`.
    Linger {
        /// `l_onoff`.
        on: bool,
        /// `l_linger`.
        seconds: i32,
    },
    /// The keys of TCP_FASTOPEN_KEY.
    FastOpenKeys(FastOpenKeys),
}

/// A set of events of poll(2), with the bits of poll.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(pub i16);

impl Events {
    /// A read would not block.
    pub const IN: Self = Self(0x001);
    /// A write would not block.
    pub const OUT: Self = Self(0x004);
    /// SO_ERROR would report an error.
    pub const ERR: Self = Self(0x008);
    /// The connection has ended, or was never opened.
    pub const HUP: Self = Self(0x010);
    /// The descriptor is not open.
    pub const INVALID: Self = Self(0x020);
    /// The peer has shut down its sending direction.
    pub const RDHUP: Self = Self(0x2000);

    pub(crate) const NAMES: [(&str, Self); 7] = [
        ("POLLIN", Self::IN),
        ("POLLOUT", Self::OUT),
        ("POLLERR", Self::ERR),
        ("POLLHUP", Self::HUP),
        ("POLLNVAL", Self::INVALID),
        ("POLLRDHUP", Self::RDHUP),
        ("POLLRDNORM", Self(0x040)),
    ];

    /// Returns whether all events of `other` are included.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A call that may block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// accept(2).
    Accept {
        /// The listening socket.
        fd: Fd,
        /// The new descriptor, chosen by the caller.
        as_fd: Fd,
    },
    /// connect(2).
    Connect {
        /// The socket, bound or not.
        fd: Fd,
        /// The peer.
        to: SocketAddr,
    },
    /// read(2) and recv(2).
    Receive {
        /// The connected socket.
        fd: Fd,
        /// Size of the buffer in bytes.
        len: usize,
        /// Whether the data is removed from the stream.
        mode: ReadMode,
        /// `Return` for MSG_DONTWAIT.
        wait: Blocking,
    },
    /// write(2) and send(2).
    Send {
        /// The connected socket.
        fd: Fd,
        /// The data. A blocking call returns once the buffer has accepted all data.
        data: Vec<u8>,
        /// `Return` for MSG_DONTWAIT.
        wait: Blocking,
        /// `Later` for MSG_MORE.
        push: Push,
        /// `Ends` for MSG_EOR.
        record: Record,
    },
    /// sendto(2) with MSG_FASTOPEN: opens a connection and writes its first data.
    OpenAndSend {
        /// The socket.
        fd: Fd,
        /// The peer.
        to: SocketAddr,
        /// The data. The SYN carries the beginning of the data if a cookie is known.
        data: Vec<u8>,
        /// `Return` for MSG_DONTWAIT.
        wait: Blocking,
        /// `Later` for MSG_MORE.
        push: Push,
        /// `Ends` for MSG_EOR.
        record: Record,
    },
    /// close(2). Waits only if SO_LINGER is set.
    Close {
        /// The socket.
        fd: Fd,
    },
    /// poll(2).
    Poll {
        /// Descriptors, each with the requested events.
        set: Vec<(Fd, Events)>,
        /// Timeout. `None`: waits without a timeout.
        until: Option<Instant>,
    },
}

/// The result of a successful call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The peer's address.
    Accepted(SocketAddr),
    /// The handshake is complete.
    Connected,
    /// The data read. Empty at the end of the stream.
    Received(Vec<u8>),
    /// Number of bytes written.
    Sent(usize),
    /// The descriptor is closed.
    Closed,
    /// The events of each descriptor, in the order of the set.
    Polled(Vec<Events>),
}

/// The outcome of the first attempt of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// The call has returned.
    Done(Result<Reply, Errno>),
    /// The call is blocked.
    Blocked(Ticket),
}

/// Identifies a blocked call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub(super) u64);

/// The result of a blocked call that has returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// The time of the return.
    pub at: Instant,
    /// The result.
    pub result: Result<Reply, Errno>,
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Linger { on, seconds } => write!(f, "{{onoff={}, linger={seconds}}}", i32::from(*on)),
            Self::FastOpenKeys(_) => f.write_str("a key"),
        }
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            Self::NAMES.iter().filter(|(_, event)| self.contains(*event)).map(|(name, _)| *name).collect();
        f.write_str(if names.is_empty() { "0".to_owned() } else { names.join("|") }.as_str())
    }
}
