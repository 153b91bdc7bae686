//! Two of the three reserved bits of the TCP header, which the base stations of P4 use (Chandra, Harris,
//! Shenoy, "TCP performance for future IP-based wireless networks", §III).
//!
//! ```text
//!   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! |  data offset  | Ob| Db| - | AE|CWR|ECE|URG|ACK|PSH|RST|SYN|FIN|
//! +---------------+---+---+---+---+---+---+---+---+---+---+---+---+
//! ```
//!
//! The paper defines these bits for ACKs. Choice: the same bits on a SYN announce the base stations, and so
//! the path of the data ([`RadioPath::announced`]). In the paper, the sender knows the path "after the
//! handshake process" (§III D). The paper does not say how.

use crate::cause::Cause;

/// Ob: the byte that the ACK asks for has passed the base station of the data sender, or the only base
/// station.
pub const OB: u16 = 0x800;
/// Db: the byte that the ACK asks for has passed the base station of the data receiver, the second of two.
pub const DB: u16 = 0x400;

/// The part of a sender's path that is radio: Table 1 of the paper, without its first case (no agent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioPath {
    /// §III D.2: the data receiver is behind a radio link.
    FixedToMobile,
    /// §III D.3: the data sender is behind a radio link.
    MobileToFixed,
    /// §III D.4: both are behind radio links.
    MobileToMobile,
}

impl RadioPath {
    /// Reads the path from the flags of the peer's SYN (a Choice). Returns `None` if both bits are clear: the
    /// path does not have an agent, and the bits of ACKs have no meaning.
    pub const fn announced(flags: u16) -> Option<Self> {
        match (flags & OB != 0, flags & DB != 0) {
            (false, false) => None,
            (false, true) => Some(Self::FixedToMobile),
            (true, false) => Some(Self::MobileToFixed),
            (true, true) => Some(Self::MobileToMobile),
        }
    }

    /// Returns where the byte that an ACK with these flags asks for was lost, if it was lost.
    pub const fn cause(self, flags: u16) -> Cause {
        match (self, flags & OB != 0, flags & DB != 0) {
            (Self::FixedToMobile, true, _)
            | (Self::MobileToFixed, false, _)
            // Cases 1 and 3 of §III D.4.
            | (Self::MobileToMobile, false, false)
            | (Self::MobileToMobile, true, true) => Cause::Radio,
            // Choice: Db without Ob means that the byte has passed only the second station. The paper does
            // not define this case.
            _ => Cause::Congestion,
        }
    }
}
