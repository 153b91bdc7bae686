//! setsockopt(2) and getsockopt(2), and what they mean to the host.

use airtcp::tcp::{KeepAlive, Linger};
use airwire::time::Duration;

use super::{Reported, Role, Sockets};
use crate::errno::Errno;
use crate::sockopt::SockOpt;
use crate::syscall::{Fd, OptionValue};

/// Linux's keep-alive before anything else is set (RFC 9293 section 3.8.4: no less than two hours).
const KEEPALIVE: KeepAlive =
    KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };

impl Sockets {
    /// setsockopt(2). A connection that exists takes the change at once.
    pub fn set_option(&mut self, fd: Fd, option: SockOpt, value: OptionValue) -> Result<(), Errno> {
        let now = self.now;
        let socket = self.socket_mut(fd)?;
        let (role, options) = (socket.role, &mut socket.options);
        let (int, seconds) = match value {
            OptionValue::Int(int) => (int, Duration::from_secs(int.max(0) as u64)),
            OptionValue::Linger { .. } => (0, Duration::ZERO),
        };
        let size = int.max(0) as usize;
        match option {
            SockOpt::Accepted => {}
            SockOpt::Error | SockOpt::Info => return Err(Errno::ENOPROTOOPT),
            SockOpt::SendBuffer => options.send_buffer = size,
            SockOpt::ReceiveBuffer => options.recv_buffer = size,
            SockOpt::KeepAlive => {
                options.keepalive = (int != 0).then(|| options.keepalive.unwrap_or(KEEPALIVE))
            }
            SockOpt::KeepIdle => options.keepalive.get_or_insert(KEEPALIVE).idle = seconds,
            SockOpt::KeepInterval => options.keepalive.get_or_insert(KEEPALIVE).interval = seconds,
            SockOpt::KeepCount => options.keepalive.get_or_insert(KEEPALIVE).probes = int as u32,
            SockOpt::Linger => {
                let OptionValue::Linger { on, seconds } = value else { return Err(Errno::EINVAL) };
                options.linger = if on && seconds == 0 { Linger::Abort } else { Linger::Default };
            }
            // Negative: do not stay in FIN-WAIT-2 at all.
            SockOpt::Linger2 => options.linger2 = Some(seconds),
            SockOpt::NoDelay => options.nodelay = int != 0,
            SockOpt::Cork => options.cork = int != 0,
            SockOpt::MaxSeg => options.max_seg = Some(u16::try_from(int).map_err(|_| Errno::EINVAL)?),
            SockOpt::Tos => options.tos = int as u8,
            SockOpt::MtuDiscover => options.pmtu_discovery = int != 0,
        }
        if let Role::Connecting(id) | Role::Connected(id) = role {
            let options = socket.options.clone();
            self.host.set_options(now, id, options);
            // Each time it is set, not only when it was off (Linux 6.18, __tcp_sock_set_nodelay()).
            if option == SockOpt::NoDelay && int != 0 {
                self.host.push(id);
            }
            self.settle();
        }
        Ok(())
    }

    /// getsockopt(2), but for TCP_INFO. To read SO_ERROR clears it.
    pub fn option(&mut self, fd: Fd, option: SockOpt) -> Result<OptionValue, Errno> {
        let socket = self.socket_of(fd)?;
        let options = &socket.options;
        let flag = |on: bool| i32::from(on);
        let keepalive = options.keepalive.unwrap_or(KEEPALIVE);
        // Linux reads back twice what was set: the other half is for its own bookkeeping.
        let doubled = |size: usize| i32::try_from(size.saturating_mul(2)).unwrap_or(i32::MAX);
        Ok(OptionValue::Int(match option {
            SockOpt::Accepted => 0,
            SockOpt::Info => return Err(Errno::ENOPROTOOPT),
            SockOpt::Error => {
                let error = self.pending_error(fd);
                self.socket_mut(fd)?.error =
                    if error.is_some() { Reported::Already } else { Reported::NotYet };
                error.map_or(0, |errno| errno.number)
            }
            SockOpt::SendBuffer => doubled(options.send_buffer),
            SockOpt::ReceiveBuffer => doubled(options.recv_buffer),
            SockOpt::KeepAlive => flag(options.keepalive.is_some()),
            SockOpt::KeepIdle => whole_seconds(keepalive.idle),
            SockOpt::KeepInterval => whole_seconds(keepalive.interval),
            SockOpt::KeepCount => keepalive.probes as i32,
            SockOpt::Linger => {
                return Ok(OptionValue::Linger { on: options.linger == Linger::Abort, seconds: 0 });
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
        }))
    }
}

fn whole_seconds(time: Duration) -> i32 {
    (time.as_millis() / 1000) as i32
}
