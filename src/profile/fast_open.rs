//! Which ends may use TCP Fast Open (RFC 7413).

use airwire::time::Duration;

/// Which ends may use TCP Fast Open if the application asks for it, and how: `net.ipv4.tcp_fastopen` and
/// `net.ipv4.tcp_fastopen_blackhole_timeout_sec`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FastOpenRules {
    /// Active opens may use it (0x1).
    pub client: bool,
    /// Listeners may use it (0x2).
    pub server: bool,
    /// A SYN carries data even if no cookie of the server is known, and never a cookie (0x4).
    pub client_without_cookie: bool,
    /// Data in a SYN is accepted without a cookie (0x200).
    pub server_without_cookie: bool,
    /// Every listener uses it, whether or not its options ask for it (0x400).
    pub all_listeners: bool,
    /// How long active opens do without it after connections that used it timed out three times in a row, or
    /// received only a FIN, which suggests that a firewall drops their packets. The time doubles with each
    /// further case, up to 64 times this value. Zero: they are never suspended.
    pub black_hole: Duration,
}

impl FastOpenRules {
    /// Neither end.
    pub const NONE: Self = Self::of_bits(0);
    /// Active opens only: the default of Linux and FreeBSD.
    pub const CLIENT: Self = Self::of_bits(0x1);
    /// Both ends.
    pub const BOTH: Self = Self::of_bits(0x3);

    /// Returns the rules for a value of `net.ipv4.tcp_fastopen`. Unknown bits are ignored.
    pub const fn of_bits(bits: u32) -> Self {
        Self {
            client: bits & 0x1 != 0,
            server: bits & 0x2 != 0,
            client_without_cookie: bits & 0x4 != 0,
            server_without_cookie: bits & 0x200 != 0,
            all_listeners: bits & 0x400 != 0,
            black_hole: Duration::ZERO,
        }
    }
}
