//! Content of the PDUs of AM (§9.2). [`codec`](super::codec) encodes and decodes them.

use std::borrow::Cow;
use std::fmt;

/// "Sequence Number" of an AMD PDU (§9.2.2.3). It has 12 bits, so arithmetic is modulo 4096.
///
/// §9.4: to compare two numbers, subtract the modulus base from both and compare the distances
/// ([`since`](Self::since)). The base is VT(A) at the Sender and VR(R) at the Receiver. The derived `Ord`
/// compares the numbers without a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sn(u16);

/// A PDU of AM. A decoded PDU borrows its data from the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// AMD PDU (§9.2.1.4): data, possibly with a piggybacked STATUS PDU.
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
    /// Information in the first Length Indicator about the PDU with the previous Sequence Number.
    pub previous: Previous,
    /// One Length Indicator per SDU that ends in this PDU (§9.2.2.8): number of bytes in `data` up to and
    /// including the last byte of the SDU. All are counted from the beginning of `data`, so they ascend.
    pub ends: Vec<u16>,
    /// All bytes of SDUs, without padding. There is one exception: with 15-bit indicators, an SDU can end one
    /// byte before the end of the PDU, and only the next PDU indicates this (`EndedOneShort`). In this case
    /// `data` includes the byte that the Receiver must ignore.
    pub data: Cow<'a, [u8]>,
    /// Content of the PDU after `data`.
    pub rest: Rest,
}

/// The end of the last SDU of the previous PDU, if that PDU had no room to indicate it (§9.2.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Previous {
    /// No such Length Indicator: the SDU continues in this PDU, or the previous PDU indicated its end.
    #[default]
    NotIndicated,
    /// LI 0: the SDU exactly filled the previous PDU.
    EndedExactly,
    /// LI 0x7ffb (15 bits only): the SDU was one byte short of exactly filling the previous PDU.
    EndedOneShort,
}

/// Content of an AMD PDU after its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the data fills the PDU. (With 15-bit indicators, one byte may follow an SDU whose indicator
    /// is in this PDU. This byte is ignored, and does not have an indicator: §9.2.2.8.)
    #[default]
    Nothing,
    /// HE = 10, "special value of the HE field" (§9.2.2.7): the last byte of the PDU is the last byte of an
    /// SDU.
    SduEnd,
    /// LI 1111111: padding, possibly of 0 bytes.
    Padding,
    /// LI 1111110: a piggybacked STATUS PDU (§9.2.1.6).
    Piggybacked(Status),
}

/// The super-fields (SUFIs) of a STATUS PDU, in order (§9.2.2.11). The last one is ACK or NO_MORE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status(pub Vec<Sufi>);

/// A super-field (§9.2.2.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sufi {
    /// NO_MORE (§9.2.2.11.1): the last super-field if there is no ACK.
    NoMore,
    /// WINDOW (§9.2.2.11.3).
    Window {
        /// New value of VT(WS). 0 is discarded.
        wsn: u16,
    },
    /// ACK (§9.2.2.11.2): always the last super-field.
    Ack {
        /// Acknowledges all PDUs with a smaller SN that the same STATUS PDU does not report as missing.
        lsn: Sn,
    },
    /// LIST (§9.2.2.11.4): 1 to 15 items.
    List(Vec<ListItem>),
    /// BITMAP (§9.2.2.11.5).
    Bitmap {
        /// SN of the first bit.
        fsn: Sn,
        /// 1 to 16 bytes, most significant bit first. 1 means that the PDU was correctly received.
        bits: Vec<u8>,
    },
    /// RLIST (§9.2.2.11.6).
    Rlist {
        /// SN of the first missing PDU.
        fsn: Sn,
        /// 0 to 15 code words of 4 bits: distances from one missing PDU to the next.
        codewords: Vec<u8>,
    },
    /// MRW: move the receiving window (§9.2.2.11.8).
    Mrw(Mrw),
    /// MRW_ACK (§9.2.2.11.7).
    MrwAck(MrwAck),
    /// POLL (§9.2.2.11.9).
    Poll {
        /// Poll_SN: VT(S) − 1.
        sn: Sn,
    },
}

/// A pair (SNi, Li) of a LIST (§9.2.2.11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// SNi: a PDU that was not correctly received.
    pub sn: Sn,
    /// Li: number of PDUs directly after `sn` that were not correctly received either, 0 to 15.
    pub further: u8,
}

/// MRW super-field (§9.2.2.11.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mrw {
    /// SN_MRW1 and so on. The last one is SN_MRW_LENGTH.
    pub sns: Vec<Sn>,
    /// LENGTH = 0: there is one SN_MRW, and it is ≥ VT(A) + Configured_Tx_Window_Size.
    pub long_distance: bool,
    /// Number of the Length Indicator in the PDU SN_MRW_LENGTH that ends the last SDU to be discarded. 0:
    /// none.
    pub nlength: u8,
}

/// MRW_ACK super-field (§9.2.2.11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrwAck {
    /// NLENGTH of the MRW if `sn_ack` is its SN_MRW_LENGTH, else 0.
    pub n: u8,
    /// VR(R) after the MRW.
    pub sn_ack: Sn,
}

/// Missing AMD PDUs with consecutive SNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// SN of the first missing PDU.
    pub first: Sn,
    /// Number of missing PDUs, at least 1.
    pub count: u16,
}

/// Content of a RESET or RESET ACK PDU (§9.2.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// RSN (§9.2.2.13), 1 bit. A repeated RESET and the RESET ACK have the RSN of the first RESET.
    pub rsn: bool,
    /// HFNI (§9.2.2.14), 20 bits: the highest hyper frame number that the sender of this PDU has used.
    pub hfni: u32,
}

impl Sn {
    /// Number of different sequence numbers.
    pub const MODULUS: u16 = 4096;
    /// Initial value of VT(S), VT(A), VR(R) and VR(H).
    pub const ZERO: Self = Self(0);

    /// Returns the number `value` modulo 4096.
    pub const fn new(value: u16) -> Self {
        Self(value % Self::MODULUS)
    }

    /// Value of the number, 0 to 4095.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Distance from `base` to this number, 0 to 4095.
    pub const fn since(self, base: Self) -> u16 {
        self.0.wrapping_sub(base.0) % Self::MODULUS
    }

    /// Returns the number `n` places later.
    #[must_use]
    pub const fn plus(self, n: u16) -> Self {
        Self(self.0.wrapping_add(n) % Self::MODULUS)
    }

    /// Returns the number after this one, which is 0 after 4095.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// Returns the number before this one, which is 4095 before 0.
    #[must_use]
    pub const fn previous(self) -> Self {
        self.plus(Self::MODULUS - 1)
    }
}

impl Pdu<'_> {
    /// Returns the same PDU with its own copy of the data.
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
    /// Returns the same PDU with its own copy of the data.
    pub fn into_owned(self) -> Amd<'static> {
        Amd { data: Cow::Owned(self.data.into_owned()), ..self }
    }
}

impl Gap {
    /// SNs of the gap, in ascending order.
    pub fn sns(self) -> impl Iterator<Item = Sn> {
        (0..self.count).map(move |n| self.first.plus(n))
    }
}

impl fmt::Display for Sn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
