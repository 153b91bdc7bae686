//! TCP Fast Open: its socket options, and writes that open a connection.

use std::net::SocketAddr;
use std::sync::Arc;

use airtcp::host::ConnId;
use airtcp::tcp::{Connection, FastOpenKeys, SocketOptions};

use super::{Role, Sockets};
use crate::errno::Errno;
use crate::sockopt::FastOpenOption;
use crate::syscall::{Fd, OptionValue};

/// The beginning of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    /// The connection is open, or its SYN was sent before.
    Ordinary,
    /// The write has sent the SYN, with this many bytes of its data.
    WithSyn(usize),
}

impl Sockets {
    /// Sets an option of TCP Fast Open, with the checks of Linux (do_tcp_setsockopt()).
    pub(super) fn set_fast_open(
        &mut self,
        fd: Fd,
        option: FastOpenOption,
        value: OptionValue,
    ) -> Result<(), Errno> {
        let is_client = self.host.profile().handshake.fast_open.client;
        let socket = self.socket_mut(fd)?;
        let is_fresh = socket.role == Role::Fresh;
        let listens = matches!(socket.role, Role::Listening(_));
        let fast_open = Arc::make_mut(socket.options.fast_open.get_or_insert_default());
        match (option, value) {
            (FastOpenOption::Pending, OptionValue::Int(pending)) if is_fresh || listens => {
                fast_open.pending = usize::try_from(pending).map_err(|_| Errno::EINVAL)?;
            }
            (FastOpenOption::Connect, OptionValue::Int(0 | 1)) if !is_client => {
                return Err(Errno::EOPNOTSUPP);
            }
            (FastOpenOption::Connect, OptionValue::Int(on @ (0 | 1))) if is_fresh => {
                fast_open.connect = on == 1;
            }
            (FastOpenOption::NoCookie, OptionValue::Int(on @ (0 | 1))) if is_fresh || listens => {
                fast_open.without_cookie = on == 1;
            }
            (FastOpenOption::Key, OptionValue::FastOpenKeys(keys)) => fast_open.keys = Some(keys),
            _ => return Err(Errno::EINVAL),
        }
        let options = socket.options.clone();
        if let Role::Listening(id) = socket.role {
            self.host.set_listen_options(id, options);
        }
        Ok(())
    }

    /// Returns an option of TCP Fast Open.
    pub(super) fn fast_open_value(
        options: &SocketOptions,
        option: FastOpenOption,
    ) -> Result<OptionValue, Errno> {
        let fast_open = options.fast_open.as_deref().cloned().unwrap_or_default();
        Ok(match option {
            FastOpenOption::Pending => OptionValue::Int(i32::try_from(fast_open.pending).unwrap_or(i32::MAX)),
            FastOpenOption::Connect => OptionValue::Int(fast_open.connect.into()),
            FastOpenOption::NoCookie => OptionValue::Int(fast_open.without_cookie.into()),
            FastOpenOption::Key => OptionValue::FastOpenKeys(fast_open.keys.ok_or(Errno::ENOPROTOOPT)?),
        })
    }

    /// Sets the keys of the host's cookies.
    pub fn set_fast_open_keys(&mut self, keys: FastOpenKeys) {
        self.host.set_fast_open_keys(keys);
    }

    /// Returns whether the SYN of a socket waits for a write, so that connect(2) has returned.
    pub(super) fn syn_waits(&self, fd: Fd) -> bool {
        self.connection(fd).is_some_and(|connection| connection.room_in_syn().is_some())
    }

    /// Starts a connection for sendto(2) with MSG_FASTOPEN. Without a cookie, the SYN only requests one.
    pub(super) fn open_by_write(&mut self, fd: Fd, to: SocketAddr) -> Result<(), Errno> {
        if !self.host.profile().handshake.fast_open.client {
            return Err(Errno::EOPNOTSUPP);
        }
        match self.socket_of(fd)?.role {
            Role::Fresh => {}
            Role::Connecting(_) if self.syn_waits(fd) => return Ok(()),
            Role::Connecting(_) => return Err(Errno::EALREADY),
            Role::Connected(_) | Role::Listening(_) => return Err(Errno::EISCONN),
        }
        let saved = self.socket_of(fd)?.options.clone();
        let mut options = saved.clone();
        Arc::make_mut(options.fast_open.get_or_insert_default()).connect = true;
        self.socket_mut(fd)?.options = options;
        let started = self.connect(fd, to);
        self.socket_mut(fd)?.options = saved;
        started
    }

    /// Begins a write on a connection whose SYN waits for data. The host fills the SYN with the beginning of
    /// the data.
    pub(super) fn fill_syn(&mut self, fd: Fd, data: &[u8]) -> Result<Begun, Errno> {
        let room = self.connection(fd).and_then(Connection::room_in_syn);
        let (Some(room), Some(id)) = (room, self.connecting(fd)) else { return Ok(Begun::Ordinary) };
        let now = self.now;
        let written = self.host.write(now, id, &data[..data.len().min(room)]);
        Ok(Begun::WithSyn(written.unwrap_or(0)))
    }

    fn connecting(&self, fd: Fd) -> Option<ConnId> {
        match self.socket_of(fd).ok()?.role {
            Role::Connecting(id) => Some(id),
            _ => None,
        }
    }
}
