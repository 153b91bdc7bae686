//! What the PDUs of TS 25.322 §9.2 say, apart from how it is written in bits (`codec`).

use std::fmt;

/// A sequence number, modulo 4096.
///
/// Which of two numbers is "greater" depends on where one stands (§9.4): compare the distances from VT(A) at the
/// sender, and from VR(R) at the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sn(u16);

/// One PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu {
    Amd(Amd),
    Status(Status),
    Reset(Reset),
    ResetAck(Reset),
}

/// Acknowledged mode data (§9.2.1.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amd {
    pub sn: Sn,
    /// P: the peer shall report its status.
    pub poll: bool,
    /// What the first length indicator says about the end of the SDU that the PDU before this one carried.
    pub previous: Previous,
    /// Offsets, in octets of `data`, of the end of each SDU that ends in this PDU and says so by a length
    /// indicator. Cumulative: they ascend (§9.2.2.8).
    pub ends: Vec<u16>,
    /// All octets of SDUs, without padding. One exception: with 15-bit indicators an SDU can end one octet short of
    /// the end of the PDU without room to say so. Then the ignored octet is part of `data`, because only the next
    /// PDU tells (`EndedOneShort`).
    pub data: Vec<u8>,
    pub rest: Rest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Previous {
    /// No special length indicator: `data` goes on with it, or begins an SDU because that ended with an indicator.
    #[default]
    Unsaid,
    /// LI 0: it ended with the last octet of the PDU before, which had no room to say so.
    EndedExactly,
    /// LI 0x7ffb (15 bit only): it ended one octet before the end of the PDU before.
    EndedOneShort,
}

/// What follows the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the data fills the PDU (or, with 15-bit indicators, an SDU that says so ends one octet before the
    /// end of the PDU: that octet is ignored, §9.2.2.8).
    #[default]
    Nothing,
    /// HE = 10: the data fills the PDU and ends with the end of an SDU.
    SduEnd,
    /// LI 1111111: padding, possibly of 0 octets.
    Padding,
    /// LI 1111110: a piggybacked STATUS PDU.
    Piggybacked(Status),
}

/// The super-fields (SUFIs) of a STATUS PDU in their order (§9.2.2.11). It ends with ACK or NO_MORE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status(pub Vec<Sufi>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sufi {
    NoMore,
    Window {
        wsn: u16,
    },
    /// Acknowledges everything below `lsn` that the same STATUS PDU does not report missing. Always the last.
    Ack {
        lsn: Sn,
    },
    /// Missing PDUs: each `sn`, and `further` that follow it (0..=15). 1 to 15 items.
    List(Vec<ListItem>),
    /// 1 bits: received. A whole number of octets, 1 to 16 of them; the most significant bit stands for `fsn`.
    Bitmap {
        fsn: Sn,
        bits: Vec<u8>,
    },
    /// Missing PDUs as code words (4 bits each, 0 to 15 of them) of distances.
    Rlist {
        fsn: Sn,
        codewords: Vec<u8>,
    },
    /// Move the receiving window. `sns` as they stand; `long_distance`: LENGTH = 0, one SN beyond the window.
    Mrw {
        sns: Vec<Sn>,
        long_distance: bool,
        nlength: u8,
    },
    MrwAck {
        n: u8,
        sn_ack: Sn,
    },
    Poll {
        sn: Sn,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListItem {
    pub sn: Sn,
    pub further: u8,
}

/// PDUs that are missing one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub first: Sn,
    /// At least 1.
    pub count: u16,
}

/// RESET and RESET ACK (§9.2.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Reset sequence number: 0 or 1.
    pub rsn: bool,
    /// Hyper frame number indicator, 20 bits.
    pub hfni: u32,
}

impl Sn {
    pub const MODULUS: u16 = 4096;
    pub const ZERO: Self = Self(0);

    pub const fn new(value: u16) -> Self {
        Self(value % Self::MODULUS)
    }

    pub const fn get(self) -> u16 {
        self.0
    }

    /// How far this is ahead of `base`, 0 to 4095.
    pub const fn since(self, base: Self) -> u16 {
        self.0.wrapping_sub(base.0) % Self::MODULUS
    }

    #[must_use]
    pub const fn plus(self, n: u16) -> Self {
        Self(self.0.wrapping_add(n) % Self::MODULUS)
    }

    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    #[must_use]
    pub const fn previous(self) -> Self {
        self.plus(Self::MODULUS - 1)
    }
}

impl Gap {
    pub fn sns(self) -> impl Iterator<Item = Sn> {
        (0..self.count).map(move |n| self.first.plus(n))
    }
}

impl fmt::Display for Sn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
