//! The socket options that scripts set and read, with Linux's names and numbers.

/// An option and its meaning in airtcp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SockOpt {
    /// Accepted. In airtcp, the option is always on.
    Accepted,
    /// Accepted, but airtcp does not implement it.
    Ignored,
    /// SO_ERROR, which is read-only.
    Error,
    /// SO_SNDBUF, in bytes.
    SendBuffer,
    /// SO_RCVBUF, in bytes.
    ReceiveBuffer,
    /// SO_KEEPALIVE.
    KeepAlive,
    /// TCP_KEEPIDLE, in seconds.
    KeepIdle,
    /// TCP_KEEPINTVL, in seconds.
    KeepInterval,
    /// TCP_KEEPCNT.
    KeepCount,
    /// SO_LINGER.
    Linger,
    /// TCP_LINGER2, in seconds.
    Linger2,
    /// TCP_USER_TIMEOUT, in milliseconds; zero means none.
    UserTimeout,
    /// TCP_SYNCNT: retransmissions of a SYN or SYN-ACK.
    SynCount,
    /// TCP_NODELAY.
    NoDelay,
    /// TCP_CORK.
    Cork,
    /// TCP_MAXSEG, in bytes.
    MaxSeg,
    /// IP_TOS and IPV6_TCLASS.
    Tos,
    /// IP_MTU_DISCOVER and IPV6_MTU_DISCOVER; any number except zero switches it on.
    MtuDiscover,
    /// TCP_INFO, which is read with [`tcp_info`](crate::tcp_info).
    Info,
    /// An option of TCP Fast Open.
    FastOpen(FastOpenOption),
}

/// The options of TCP Fast Open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastOpenOption {
    /// TCP_FASTOPEN: maximum number of pending connections of a listener.
    Pending,
    /// TCP_FASTOPEN_CONNECT.
    Connect,
    /// TCP_FASTOPEN_KEY: one key of 16 bytes, or two.
    Key,
    /// TCP_FASTOPEN_NO_COOKIE.
    NoCookie,
}

struct Row {
    level: i32,
    number: i32,
    name: &'static str,
    option: SockOpt,
}

const fn row(level: i32, number: i32, name: &'static str, option: SockOpt) -> Row {
    Row { level, number, name, option }
}

const SOL_IP: i32 = 0;
const SOL_SOCKET: i32 = 1;
const SOL_TCP: i32 = 6;
const SOL_IPV6: i32 = 41;

/// The names of the levels.
const LEVELS: [(&str, i32); 7] = [
    ("SOL_SOCKET", SOL_SOCKET),
    ("SOL_TCP", SOL_TCP),
    ("IPPROTO_TCP", SOL_TCP),
    ("SOL_IP", SOL_IP),
    ("IPPROTO_IP", SOL_IP),
    ("SOL_IPV6", SOL_IPV6),
    ("IPPROTO_IPV6", SOL_IPV6),
];

const TABLE: [Row; 30] = [
    row(SOL_SOCKET, 2, "SO_REUSEADDR", SockOpt::Accepted),
    row(SOL_SOCKET, 4, "SO_ERROR", SockOpt::Error),
    row(SOL_SOCKET, 7, "SO_SNDBUF", SockOpt::SendBuffer),
    row(SOL_SOCKET, 8, "SO_RCVBUF", SockOpt::ReceiveBuffer),
    row(SOL_SOCKET, 9, "SO_KEEPALIVE", SockOpt::KeepAlive),
    row(SOL_SOCKET, 13, "SO_LINGER", SockOpt::Linger),
    row(SOL_SOCKET, 15, "SO_REUSEPORT", SockOpt::Accepted),
    row(SOL_TCP, 1, "TCP_NODELAY", SockOpt::NoDelay),
    row(SOL_TCP, 2, "TCP_MAXSEG", SockOpt::MaxSeg),
    row(SOL_TCP, 3, "TCP_CORK", SockOpt::Cork),
    row(SOL_TCP, 4, "TCP_KEEPIDLE", SockOpt::KeepIdle),
    row(SOL_TCP, 5, "TCP_KEEPINTVL", SockOpt::KeepInterval),
    row(SOL_TCP, 6, "TCP_KEEPCNT", SockOpt::KeepCount),
    row(SOL_TCP, 7, "TCP_SYNCNT", SockOpt::SynCount),
    row(SOL_TCP, 8, "TCP_LINGER2", SockOpt::Linger2),
    row(SOL_TCP, 11, "TCP_INFO", SockOpt::Info),
    // The recipe sets the congestion control algorithm, not the socket.
    row(SOL_TCP, 13, "TCP_CONGESTION", SockOpt::Ignored),
    row(SOL_TCP, 18, "TCP_USER_TIMEOUT", SockOpt::UserTimeout),
    row(SOL_TCP, 23, "TCP_FASTOPEN", SockOpt::FastOpen(FastOpenOption::Pending)),
    row(SOL_TCP, 30, "TCP_FASTOPEN_CONNECT", SockOpt::FastOpen(FastOpenOption::Connect)),
    row(SOL_TCP, 33, "TCP_FASTOPEN_KEY", SockOpt::FastOpen(FastOpenOption::Key)),
    row(SOL_TCP, 34, "TCP_FASTOPEN_NO_COOKIE", SockOpt::FastOpen(FastOpenOption::NoCookie)),
    row(SOL_IP, 1, "IP_TOS", SockOpt::Tos),
    row(SOL_IP, 2, "IP_TTL", SockOpt::Ignored),
    row(SOL_IP, 10, "IP_MTU_DISCOVER", SockOpt::MtuDiscover),
    row(SOL_IP, 11, "IP_RECVERR", SockOpt::Ignored),
    row(SOL_IPV6, 23, "IPV6_MTU_DISCOVER", SockOpt::MtuDiscover),
    row(SOL_IPV6, 25, "IPV6_RECVERR", SockOpt::Ignored),
    row(SOL_IPV6, 26, "IPV6_V6ONLY", SockOpt::Accepted),
    row(SOL_IPV6, 67, "IPV6_TCLASS", SockOpt::Tos),
];

impl SockOpt {
    /// Finds an option by the names of its level and of the option.
    pub(crate) fn by_name(level: &str, name: &str) -> Result<Self, String> {
        let row = TABLE.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| format!("airtcp does not support the socket option `{name}`"))?;
        if !LEVELS.contains(&(level, row.level)) {
            return Err(format!("`{name}` is not an option of `{level}`"));
        }
        Ok(row.option)
    }

    /// Finds an option by the numbers passed to setsockopt(2). `None` if airtcp does not support
    /// it.
    pub fn by_number(level: i32, number: i32) -> Option<Self> {
        TABLE.iter().find(|row| (row.level, row.number) == (level, number)).map(|row| row.option)
    }
}
