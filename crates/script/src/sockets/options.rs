//! setsockopt(2) and getsockopt(2), and their effects on the host.

use airtcp::profile::WindowUpdate;
use airtcp::tcp::{Connection, Linger, Patience, SocketOptions, Threshold};
use airwire::time::Duration;

use super::{Reported, Role, Sockets};
use crate::errno::Errno;
use crate::sockopt::SockOpt;
use crate::syscall::{Fd, OptionValue};

/// Limits of Linux: MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL (seconds), MAX_TCP_KEEPCNT and
/// MAX_TCP_SYNCNT.
const MAX_SECONDS: i32 = 32_767;
const MAX_COUNT: i32 = 127;
/// Half of SOCK_MIN_RCVBUF in bytes.
const MIN_RECV_BUFFER: usize = 1152;

impl Sockets {
    /// setsockopt(2). An existing connection applies the change at once. A listener applies it to
    /// connections whose handshake completes afterwards.
    pub fn set_option(&mut self, fd: Fd, option: SockOpt, value: OptionValue) -> Result<(), Errno> {
        let now = self.now;
        let recv_buffer_max = self.host.profile().acks.recv_buffer_max;
        let socket = self.socket_mut(fd)?;
        let (role, options, times) = (socket.role, &mut socket.options, &mut socket.keepalive);
        let (int, seconds) = match value {
            OptionValue::Int(int) => (int, Duration::from_secs(int.max(0) as u64)),
            OptionValue::Linger { .. } | OptionValue::FastOpenKeys(_) => (0, Duration::ZERO),
        };
        let size = int.max(0) as usize;
        match option {
            SockOpt::Accepted | SockOpt::Ignored => {}
            SockOpt::Error | SockOpt::Info => return Err(Errno::ENOPROTOOPT),
            SockOpt::SendBuffer => options.send_buffer = size,
            // As in Linux, a negative number is a very large one.
            SockOpt::ReceiveBuffer => {
                options.recv_buffer = Some((int as u32 as usize).min(recv_buffer_max));
            }
            SockOpt::KeepAlive => options.keepalive = (int != 0).then_some(*times),
            SockOpt::KeepIdle | SockOpt::KeepInterval if !(1..=MAX_SECONDS).contains(&int) => {
                return Err(Errno::EINVAL);
            }
            SockOpt::KeepCount | SockOpt::SynCount if !(1..=MAX_COUNT).contains(&int) => {
                return Err(Errno::EINVAL);
            }
            SockOpt::KeepIdle => times.idle = seconds,
            SockOpt::KeepInterval => times.interval = seconds,
            SockOpt::KeepCount => times.probes = int as u32,
            SockOpt::SynCount => {
                patience(options).syn_r2 = Some(Threshold::retransmissions(int as u32));
            }
            SockOpt::UserTimeout => {
                let millis = u64::try_from(int).map_err(|_| Errno::EINVAL)?;
                patience(options).user_timeout = (millis > 0).then_some(Duration::from_millis(millis));
            }
            SockOpt::Linger => {
                let OptionValue::Linger { on, seconds } = value else { return Err(Errno::EINVAL) };
                options.linger = match (on, u64::try_from(seconds)) {
                    (false, _) => Linger::Default,
                    (true, Ok(0)) => Linger::Abort,
                    (true, Ok(seconds)) => Linger::Wait(Duration::from_secs(seconds)),
                    // Linux treats a negative number as a very large one.
                    (true, Err(_)) => Linger::Wait(Duration::from_secs(i32::MAX as u64)),
                };
            }
            // A negative number means no time in FIN-WAIT-2.
            SockOpt::Linger2 => options.linger2 = Some(seconds),
            SockOpt::NoDelay => options.nodelay = int != 0,
            SockOpt::Cork => options.cork = int != 0,
            SockOpt::MaxSeg => options.max_seg = Some(u16::try_from(int).map_err(|_| Errno::EINVAL)?),
            SockOpt::Tos => options.tos = int as u8,
            SockOpt::MtuDiscover => options.pmtu_discovery = int != 0,
            SockOpt::FastOpen(option) => return self.set_fast_open(fd, option, value),
        }
        // Keep-alive settings do not switch keep-alive on.
        options.keepalive = options.keepalive.map(|_| *times);
        let options = socket.options.clone();
        match role {
            Role::Fresh => {}
            Role::Listening(id) => self.host.set_listen_options(id, options),
            Role::Connecting(id) | Role::Connected(id) => {
                self.host.set_options(now, id, options);
                // Setting the option pushes data each time, even if the option was already on
                // (Linux 6.18, __tcp_sock_set_nodelay()).
                if option == SockOpt::NoDelay && int != 0 {
                    self.host.push(id);
                }
                self.settle();
            }
        }
        Ok(())
    }

    /// getsockopt(2), except TCP_INFO. Reading SO_ERROR clears it. Without a pending error it
    /// returns a soft error, as in Linux.
    pub fn option(&mut self, fd: Fd, option: SockOpt) -> Result<OptionValue, Errno> {
        let socket = self.socket_of(fd)?;
        let options = &socket.options;
        let flag = |on: bool| i32::from(on);
        let keepalive = socket.keepalive;
        let patience = options.patience.as_deref().copied().unwrap_or_default();
        Ok(OptionValue::Int(match option {
            SockOpt::Accepted | SockOpt::Ignored => 0,
            SockOpt::Info => return Err(Errno::ENOPROTOOPT),
            SockOpt::Error => {
                let error = self.pending_error(fd);
                if error.is_some() {
                    self.socket_mut(fd)?.error = Reported::Already;
                }
                error.or_else(|| self.take_soft_error(fd)).map_or(0, |errno| errno.number)
            }
            SockOpt::SendBuffer => doubled(options.send_buffer),
            SockOpt::ReceiveBuffer => self.receive_buffer(fd, options),
            SockOpt::KeepAlive => flag(options.keepalive.is_some()),
            SockOpt::KeepIdle => whole_seconds(keepalive.idle),
            SockOpt::KeepInterval => whole_seconds(keepalive.interval),
            SockOpt::KeepCount => keepalive.probes as i32,
            SockOpt::SynCount => {
                let default = self.host.profile().handshake.syn_retries;
                patience.syn_r2.map_or(default, |r2| r2.retransmissions) as i32
            }
            SockOpt::UserTimeout => patience.user_timeout.map_or(0, |time| time.as_millis() as i32),
            SockOpt::Linger => {
                let (on, seconds) = match options.linger {
                    Linger::Default => (false, 0),
                    Linger::Abort => (true, 0),
                    Linger::Wait(time) => (true, whole_seconds(time)),
                };
                return Ok(OptionValue::Linger { on, seconds });
            }
            SockOpt::Linger2 => options.linger2.map_or(60, whole_seconds),
            SockOpt::NoDelay => flag(options.nodelay),
            SockOpt::Cork => flag(options.cork),
            SockOpt::MaxSeg => match self.connection(fd) {
                Some(connection) => connection.info().snd_mss as i32,
                None => i32::from(options.max_seg.unwrap_or(536)),
            },
            SockOpt::Tos => i32::from(options.tos),
            SockOpt::MtuDiscover => flag(options.pmtu_discovery),
            SockOpt::FastOpen(option) => return Self::fast_open_value(options, option),
        }))
    }

    /// Returns SO_RCVBUF. Linux's receive memory grows until the size is set.
    fn receive_buffer(&self, fd: Fd, options: &SocketOptions) -> i32 {
        let profile = self.host.profile();
        let memory = self.connection(fd).and_then(Connection::receive_memory);
        match (memory, options.recv_buffer, profile.acks.window_update) {
            (Some(memory), ..) => i32::try_from(memory).unwrap_or(i32::MAX),
            (None, None, WindowUpdate::Tuned(memory)) => i32::try_from(memory.initial).unwrap_or(i32::MAX),
            (None, Some(size), WindowUpdate::Tuned(_)) => doubled(size.max(MIN_RECV_BUFFER)),
            (None, size, _) => doubled(size.unwrap_or(profile.acks.recv_buffer)),
        }
    }
}

/// Linux returns twice the size that was set; it reserves the other half for bookkeeping.
fn doubled(size: usize) -> i32 {
    i32::try_from(size.saturating_mul(2)).unwrap_or(i32::MAX)
}

fn patience(options: &mut SocketOptions) -> &mut Patience {
    options.patience.get_or_insert_default()
}

fn whole_seconds(time: Duration) -> i32 {
    (time.as_millis() / 1000) as i32
}
