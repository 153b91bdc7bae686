//! poll(2): the readiness of a descriptor.

use airtcp::tcp::State;

use super::{Role, Sockets};
use crate::syscall::{Events, Fd};

impl Sockets {
    pub(crate) fn poll(&mut self, fd: Fd) -> Events {
        let Ok(socket) = self.socket_of(fd) else {
            return Events::INVALID;
        };
        let id = match socket.role {
            Role::Fresh => return Events(Events::OUT.0 | Events::HUP.0),
            Role::Listening(_) => {
                // The socket is known to listen, so gathering cannot fail.
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
        if connection.room_in_syn().is_some() {
            // The first write sends the SYN.
            return Events::OUT;
        }
        if matches!(state, State::SynSent | State::SynReceived) && !connection.is_open_early() {
            return Events::default();
        }
        // As in Linux's tcp_poll: each direction may be shut down by either side or by the end of
        // the connection.
        let closed = state == State::Closed;
        let peer_closed = matches!(
            state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed
        );
        let read_shut = connection.read_is_shut() || peer_closed;
        let write_shut = connection.write_is_shut() || closed;
        if connection.readable() > 0 || read_shut {
            events |= Events::IN.0 | 0x040;
        }
        if connection.writable() > 0 || write_shut {
            events |= Events::OUT.0;
        }
        if read_shut {
            events |= Events::RDHUP.0;
        }
        if read_shut && write_shut {
            events |= Events::HUP.0;
        }
        if self.pending_error(fd).is_some() {
            events |= Events::ERR.0;
        }
        Events(events)
    }
}
