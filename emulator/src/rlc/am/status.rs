//! Content of a STATUS PDU (36.322 §6.2.1.6, 38.322 §6.2.2.5).

use crate::rlc::sn::SnBits;

/// A STATUS PDU. A decoded one has the sequence numbers of the PDU until `restore` unwraps them. Encoding
/// accepts unwrapped sequence numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// ACK_SN: all units below it have been received, except for the NACKs.
    pub ack_sn: u64,
    /// Missing units and segments, in ascending order.
    pub nacks: Vec<Nack>,
}

/// A set of NACK_SN, NACK range, SOstart and SOend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// NACK_SN.
    pub sn: u64,
    /// NACK range: number of units from NACK_SN on, 1 if the field is absent.
    pub range: u8,
    /// The missing segment. `None` if all octets are missing.
    pub segment: Option<NackSegment>,
}

/// SOstart and SOend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackSegment {
    /// SOstart: first missing octet of the first unit.
    pub start: u32,
    /// SOend: last missing octet of the last unit. `None` is the special value of the field: up to the end.
    pub end: Option<u32>,
}

impl Nack {
    /// A NACK of one whole unit.
    pub const fn of(sn: u64) -> Self {
        Self { sn, range: 1, segment: None }
    }

    /// The sequence number after the last one.
    pub(in crate::rlc) fn end(&self) -> u64 {
        self.sn + u64::from(self.range)
    }
}

impl Status {
    /// Unwraps the sequence numbers of a decoded STATUS PDU: ACK_SN is at or above `base`, and the NACKs are
    /// below ACK_SN. The error is the first NACK_SN that cannot be below ACK_SN.
    pub(in crate::rlc) fn restore(&mut self, bits: SnBits, base: u64) -> Result<(), u32> {
        self.ack_sn = bits.restore(base, self.ack_sn as u32);
        for nack in &mut self.nacks {
            let wire = nack.sn as u32;
            let below = u64::from(bits.wire(self.ack_sn.wrapping_sub(u64::from(wire))));
            if below < u64::from(nack.range) || below > bits.window() {
                return Err(wire);
            }
            // In a late report, a number may lie before the first number of the entity.
            nack.sn = self.ack_sn.checked_sub(below).ok_or(wire)?;
        }
        Ok(())
    }
}
