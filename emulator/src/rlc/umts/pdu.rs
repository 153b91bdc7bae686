//! What the PDUs of AM say (§9.2). How they write it in bits is the matter of [`codec`](super::codec).

use std::borrow::Cow;
use std::fmt;

/// "Sequence Number" of an AMD PDU (§9.2.2.3): 12 bits, so arithmetic is modulo 4096.
///
/// §9.4: to compare two numbers, subtract the modulus base from both and compare the distances
/// ([`since`](Self::since)). The base is VT(A) at the Sender and VR(R) at the Receiver. The derived `Ord` compares the
/// bare numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sn(u16);

/// A PDU of AM. What was read borrows its data from the octets that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// AMD PDU (§9.2.1.4): data, perhaps with a piggybacked STATUS PDU.
    Amd(Amd<'a>),
    /// STATUS PDU (§9.2.1.5).
    Status(Status),
    /// RESET PDU (§9.2.1.7).
    Reset(Reset),
    /// RESET ACK PDU (§9.2.1.7).
    ResetAck(Reset),
}

/// AMD PDU: acknowledged mode data (§9.2.1.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amd<'a> {
    /// "Sequence Number".
    pub sn: Sn,
    /// "Polling bit" (§9.2.2.4): requests a status report.
    pub poll: bool,
    /// What the first "Length Indicator" says about the PDU with the previous "Sequence Number".
    pub previous: Previous,
    /// One "Length Indicator" per SDU that ends in this PDU (§9.2.2.8): the octets of `data` up to and including the
    /// SDU's last one. Counted from the beginning of `data` each time, so they ascend.
    pub ends: Vec<u16>,
    /// All octets of SDUs, without padding. One exception: with 15-bit indicators an SDU can end one octet short of
    /// the end of the PDU, and only the next PDU says so (`EndedOneShort`). Then `data` includes the octet that the
    /// Receiver has to ignore.
    pub data: Cow<'a, [u8]>,
    /// What follows `data`.
    pub rest: Rest,
}

/// How the last SDU of the previous PDU ended, if that PDU could not say so (§9.2.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Previous {
    /// No such "Length Indicator": the SDU goes on in this PDU, or its own indicator told its end.
    #[default]
    Unsaid,
    /// LI 0: the SDU exactly filled the previous PDU.
    EndedExactly,
    /// LI 0x7ffb (15 bits only): the SDU was one octet short of exactly filling the previous PDU.
    EndedOneShort,
}

/// What follows the data of an AMD PDU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the data fills the PDU. (With 15-bit indicators one octet may follow an SDU whose indicator is in this
    /// PDU. It is ignored, and no indicator announces it: §9.2.2.8.)
    #[default]
    Nothing,
    /// HE = 10, "special value of the HE field" (§9.2.2.7): the last octet of the PDU is the last octet of an SDU.
    SduEnd,
    /// LI 1111111: padding, possibly of 0 octets.
    Padding,
    /// LI 1111110: a piggybacked STATUS PDU (§9.2.1.6).
    Piggybacked(Status),
}

/// The super-fields (SUFIs) of a STATUS PDU in their order (§9.2.2.11). ACK or NO_MORE is the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status(
    /// At least one.
    pub Vec<Sufi>,
);

/// A super-field (§9.2.2.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sufi {
    /// NO_MORE (§9.2.2.11.1): the last one where there is no ACK.
    NoMore,
    /// WINDOW (§9.2.2.11.3).
    Window {
        /// The value of VT(WS) to be used; 0 is to be discarded.
        wsn: u16,
    },
    /// ACK (§9.2.2.11.2): always the last.
    Ack {
        /// Acknowledges all with a smaller number that the same STATUS PDU does not report missing.
        lsn: Sn,
    },
    /// LIST (§9.2.2.11.4): 1 to 15 items.
    List(Vec<ListItem>),
    /// BITMAP (§9.2.2.11.5).
    Bitmap {
        /// The number that the first bit stands for.
        fsn: Sn,
        /// 1 to 16 octets, most significant bit first. 1: correctly received.
        bits: Vec<u8>,
    },
    /// RLIST (§9.2.2.11.6).
    Rlist {
        /// The first one missing.
        fsn: Sn,
        /// 0 to 15 code words of 4 bits: distances from one that is missing to the next.
        codewords: Vec<u8>,
    },
    /// MRW: move the receiving window (§9.2.2.11.8).
    Mrw {
        /// SN_MRW1 and so on; the last one is SN_MRW_LENGTH.
        sns: Vec<Sn>,
        /// LENGTH = 0: there is one SN_MRW, and the SDU to be discarded extends above the configured window.
        long_distance: bool,
        /// Which "Length Indicator" of the PDU SN_MRW_LENGTH ends the last SDU to be discarded; 0: none.
        nlength: u8,
    },
    /// MRW_ACK (§9.2.2.11.7).
    MrwAck {
        /// NLENGTH of the MRW if `sn_ack` is its SN_MRW_LENGTH, else 0.
        n: u8,
        /// VR(R) after the MRW.
        sn_ack: Sn,
    },
    /// POLL (§9.2.2.11.9).
    Poll {
        /// Poll_SN: VT(S) − 1.
        sn: Sn,
    },
}

/// A pair (SNi, Li) of a LIST (§9.2.2.11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// SNi: not correctly received.
    pub sn: Sn,
    /// Li: how many that follow `sn` were not received either, 0 to 15.
    pub further: u8,
}

/// AMD PDUs with consecutive numbers that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first one missing.
    pub first: Sn,
    /// How many are missing, at least 1.
    pub count: u16,
}

/// RESET and RESET ACK (§9.2.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// RSN (§9.2.2.13), 1 bit. A RESET that is repeated keeps it, a RESET ACK repeats it.
    pub rsn: bool,
    /// HFNI (§9.2.2.14), 20 bits: the highest hyper frame number that the sender of this PDU has used.
    pub hfni: u32,
}

impl Sn {
    /// How many numbers there are.
    pub const MODULUS: u16 = 4096;
    /// The initial value of VT(S), VT(A), VR(R) and VR(H).
    pub const ZERO: Self = Self(0);

    /// `value` modulo 4096.
    pub const fn new(value: u16) -> Self {
        Self(value % Self::MODULUS)
    }

    /// The number, 0 to 4095.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// How far this is ahead of `base`, 0 to 4095.
    pub const fn since(self, base: Self) -> u16 {
        self.0.wrapping_sub(base.0) % Self::MODULUS
    }

    /// The number `n` places later.
    #[must_use]
    pub const fn plus(self, n: u16) -> Self {
        Self(self.0.wrapping_add(n) % Self::MODULUS)
    }

    /// The number after this one; 0 after 4095.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number before this one; 4095 before 0.
    #[must_use]
    pub const fn previous(self) -> Self {
        self.plus(Self::MODULUS - 1)
    }
}

impl Pdu<'_> {
    /// The same with octets of its own, for whoever keeps it.
    pub fn into_owned(self) -> Pdu<'static> {
        match self {
            Self::Amd(amd) => Pdu::Amd(amd.into_owned()),
            Self::Status(status) => Pdu::Status(status),
            Self::Reset(reset) => Pdu::Reset(reset),
            Self::ResetAck(reset) => Pdu::ResetAck(reset),
        }
    }
}

impl Amd<'_> {
    /// The same with octets of its own, for whoever keeps it.
    pub fn into_owned(self) -> Amd<'static> {
        Amd { data: Cow::Owned(self.data.into_owned()), ..self }
    }
}

impl Gap {
    /// Every number of the gap, in ascending order.
    pub fn sns(self) -> impl Iterator<Item = Sn> {
        (0..self.count).map(move |n| self.first.plus(n))
    }
}

impl fmt::Display for Sn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
