//! What P4's base stations write into the TCP header (Chandra, Harris, Shenoy, "TCP performance for future IP-based
//! wireless networks", §III): two of its three reserved bits.
//!
//! ```text
//!   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! |  data offset  | Ob| Db| - | AE|CWR|ECE|URG|ACK|PSH|RST|SYN|FIN|
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! ```
//!
//! The bits of ACKs are the paper's. Choice: that the same bits on a SYN announce the stations, and so the way of the
//! data ([`RadioPath::announced`]). The paper has the sender know it "after the handshake process" (§III D), and does not
//! say how.

use crate::cause::Cause;

/// Ob: the octet asked for has gone past the base station that serves the data sender, or the only one.
pub const OB: u16 = 0x800;
/// Db: the octet asked for has gone past the base station that serves the data receiver, the second of two.
pub const DB: u16 = 0x400;

/// Where a sender's data travel over radio: the paper's Table 1, without its first case (no agent: plain TCP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioPath {
    /// §III D.2.
    FixedToMobile,
    /// §III D.3.
    MobileToFixed,
    /// §III D.4.
    MobileToMobile,
}

impl RadioPath {
    /// From the flags of the peer's SYN (a Choice). `None`: there is no agent, and no bit means anything.
    pub const fn announced(flags: u16) -> Option<Self> {
        match (flags & OB != 0, flags & DB != 0) {
            (false, false) => None,
            (false, true) => Some(Self::FixedToMobile),
            (true, false) => Some(Self::MobileToFixed),
            (true, true) => Some(Self::MobileToMobile),
        }
    }

    /// Where the octet that an ACK with these flags asks for was lost, if it was lost.
    pub const fn cause(self, flags: u16) -> Cause {
        match (self, flags & OB != 0, flags & DB != 0) {
            (Self::FixedToMobile, true, _)
            | (Self::MobileToFixed, false, _)
            // Cases 1 and 3.
            | (Self::MobileToMobile, false, false)
            | (Self::MobileToMobile, true, true) => Cause::Radio,
            // Choice: the paper has no case of Db without Ob. The first station has missed what the second has seen.
            _ => Cause::Congestion,
        }
    }
}
