//! The vocabulary of system calls: descriptors, what a call asks, and what it comes to.

use std::fmt;
use std::net::SocketAddr;

use airwire::time::Instant;

use super::errno::Errno;

/// A file descriptor; who opens it chooses the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fd(pub i32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocking {
    Wait,
    /// O_NONBLOCK.
    Return,
}

/// The ways of shutdown(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Read,
    Write,
    Both,
}

/// What recv(2) leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Take {
    Consume,
    /// MSG_PEEK.
    Peek,
}

/// The value of a socket option, as far as these calls know shapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionValue {
    Int(i32),
    Linger { on: bool, seconds: i32 },
}

/// What poll(2) can say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(pub i16);

impl Events {
    pub const IN: Self = Self(0x001);
    pub const OUT: Self = Self(0x004);
    pub const ERR: Self = Self(0x008);
    pub const HUP: Self = Self(0x010);
    pub const INVALID: Self = Self(0x020);
    pub const RDHUP: Self = Self(0x2000);

    pub const NAMES: [(&str, Self); 7] = [
        ("POLLIN", Self::IN),
        ("POLLOUT", Self::OUT),
        ("POLLERR", Self::ERR),
        ("POLLHUP", Self::HUP),
        ("POLLNVAL", Self::INVALID),
        ("POLLRDHUP", Self::RDHUP),
        ("POLLRDNORM", Self(0x040)),
    ];

    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

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
