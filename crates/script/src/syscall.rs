//! The vocabulary of system calls: descriptors, what a call asks, and what it comes to.

use std::fmt;
use std::net::SocketAddr;

pub use airtcp::tcp::Push;
use airwire::time::Instant;

use super::errno::Errno;

/// A file descriptor; who opens it chooses the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fd(pub i32);

/// Whether a call waits for what it cannot do at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocking {
    /// Until it can.
    Wait,
    /// It returns EAGAIN instead: O_NONBLOCK.
    Return,
}

/// The ways of shutdown(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// SHUT_RD.
    Read,
    /// SHUT_WR.
    Write,
    /// SHUT_RDWR.
    Both,
}

/// What recv(2) leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Take {
    /// Nothing: what was read is gone.
    Consume,
    /// Everything: MSG_PEEK.
    Peek,
}

/// The value of a socket option, as far as these calls know shapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// An `int`, which most options are.
    Int(i32),
    /// `struct linger`.
    Linger {
        /// `l_onoff`.
        on: bool,
        /// `l_linger`.
        seconds: i32,
    },
}

/// A set of events of poll(2), in the bits of poll.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(pub i16);

impl Events {
    /// A read would not wait.
    pub const IN: Self = Self(0x001);
    /// A write would not wait.
    pub const OUT: Self = Self(0x004);
    /// SO_ERROR has something to tell.
    pub const ERR: Self = Self(0x008);
    /// The connection is over, or was never opened.
    pub const HUP: Self = Self(0x010);
    /// There is no such descriptor.
    pub const INVALID: Self = Self(0x020);
    /// The peer sends nothing more.
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

    /// All events of `other` are in it.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A call that may have to wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// accept(2).
    Accept {
        /// The listening socket.
        fd: Fd,
        /// What the new descriptor is to be: the caller chooses.
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
        /// How many octets there is room for.
        len: usize,
        /// What stays to be read.
        take: Take,
        /// `Return` for MSG_DONTWAIT.
        wait: Blocking,
    },
    /// write(2) and send(2).
    Send {
        /// The connected socket.
        fd: Fd,
        /// What to write. A call that waits waits until the buffer has taken all of it.
        data: Vec<u8>,
        /// `Return` for MSG_DONTWAIT.
        wait: Blocking,
        /// `Later` for MSG_MORE.
        push: Push,
    },
    /// close(2). It waits only where SO_LINGER says so.
    Close {
        /// The socket.
        fd: Fd,
    },
    /// poll(2).
    Poll {
        /// Descriptors, each with the events that it is asked for.
        set: Vec<(Fd, Events)>,
        /// When it returns although nothing is ready. `None`: never.
        until: Option<Instant>,
    },
}

/// What a call returns that did not fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// By whom: the peer's address.
    Accepted(SocketAddr),
    /// The handshake is over.
    Connected,
    /// The octets read. Empty: the end of the stream.
    Received(Vec<u8>),
    /// How many octets were written.
    Sent(usize),
    /// The descriptor is gone.
    Closed,
    /// The events of each descriptor of the set, in its order.
    Polled(Vec<Events>),
}

/// What became of a call at its first attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// It has returned.
    Done(Result<Reply, Errno>),
    /// It waits.
    Asleep(Ticket),
}

/// Names a call that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(pub(super) u64);

/// A call that waited has returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// When.
    pub at: Instant,
    /// With what.
    pub result: Result<Reply, Errno>,
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Linger { on, seconds } => write!(f, "{{onoff={}, linger={seconds}}}", i32::from(*on)),
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
