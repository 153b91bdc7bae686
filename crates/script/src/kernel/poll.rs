//! poll(2): what a descriptor is ready for.

use std::fmt;

use airtcp::tcp::State;

use super::{Fd, Kernel, Role};

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

impl Kernel {
    pub(crate) fn poll(&mut self, fd: Fd) -> Events {
        let Ok(socket) = self.socket_of(fd) else {
            return Events::INVALID;
        };
        let id = match socket.role {
            Role::Fresh => return Events(Events::OUT.0 | Events::HUP.0),
            Role::Listening(_) => {
                // Listening was just looked at, so that gathering cannot fail.
                let ready = self.gather(fd).is_ok()
                    && self.socket_of(fd).is_ok_and(|socket| !socket.acceptable.is_empty());
                return if ready { Events(Events::IN.0 | 0x040) } else { Events::default() };
            }
            Role::Connecting(id) | Role::Connected(id) => id,
        };
        let Some(connection) = self.host.connection(id) else {
            return Events::HUP;
        };
        let mut events = 0;
        let state = connection.state();
        if matches!(state, State::SynSent | State::SynReceived) {
            return Events::default();
        }
        if connection.readable() > 0 || connection.at_end_of_stream() {
            events |= Events::IN.0 | 0x040;
        }
        if connection.writable() > 0 {
            events |= Events::OUT.0;
        }
        if matches!(
            state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed
        ) {
            events |= Events::RDHUP.0;
        }
        if state == State::Closed {
            events |= Events::IN.0 | Events::OUT.0 | Events::HUP.0;
        }
        if self.pending_error(fd).is_some() {
            events |= Events::ERR.0;
        }
        Events(events)
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            Self::NAMES.iter().filter(|(_, event)| self.contains(*event)).map(|(name, _)| *name).collect();
        f.write_str(if names.is_empty() { "0".to_owned() } else { names.join("|") }.as_str())
    }
}
