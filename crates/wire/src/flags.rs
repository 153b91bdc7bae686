//! The flags of the TCP header and the ECN field of the IP header.

/// The flag bits of bytes 12 and 13 of the TCP header, including the reserved bits.
///
/// RFC 9293 §3.1 requires receivers to ignore reserved bits that they do not implement. They are kept here
/// because a transit agent uses them (E-TCP §III.A).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// The sender has no more data.
    pub const FIN: Self = Self(0x001);
    /// The sequence number is the initial one.
    pub const SYN: Self = Self(0x002);
    /// The connection is reset.
    pub const RST: Self = Self(0x004);
    /// The receiver must pass the data to the application without delay.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x020);
    /// The receiver has received a congestion mark (RFC 3168 §6.1). In a SYN: the sender requests ECN.
    pub const ECE: Self = Self(0x040);
    /// The sender has reduced its window in response to an ECE (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x080);
    /// The AE flag of Accurate ECN, formerly NS.
    pub const AE: Self = Self(0x100);
    /// The three bits that are still reserved.
    pub const RESERVED: Self = Self(0xe00);

    /// Returns whether all flags of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether at least one flag of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these flags together with the flags of `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns these flags without the flags of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut any = false;
        for (bit, letter) in [
            (0x002, 'S'),
            (0x001, 'F'),
            (0x004, 'R'),
            (0x008, 'P'),
            (0x040, 'E'),
            (0x080, 'W'),
            (0x020, 'U'),
            (0x010, '.'),
        ] {
            if self.0 & bit != 0 {
                write!(f, "{letter}")?;
                any = true;
            }
        }
        if !any {
            write!(f, "-")?;
        }
        Ok(())
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The sender does not use ECN for this packet.
    #[default]
    NotEct,
    /// ECN-capable, the codepoint ECT(1).
    Ect1,
    /// ECN-capable, the codepoint ECT(0), which RFC 3168 senders use.
    Ect0,
    /// Congestion experienced: a queue has marked the packet instead of dropping it.
    Ce,
}

impl Ecn {
    /// Reads the two lowest bits. The other bits (the DSCP) are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns the two bits as in the IP header.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }
}
