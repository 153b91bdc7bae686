//! Size of the MAC subheader of a PDU (38.321 §6.1.2): R, F, LCID, and an L field of 8 or 16 bits.

use crate::rlc::service::MacSubheaders;

/// Longest PDU whose subheader has an L field of 8 bits.
const SHORT: usize = 255;

/// Maximum size of a PDU in `octets` octets of a transport block. `None` if no octet of it fits.
pub(super) fn room(counted: MacSubheaders, octets: usize) -> Option<usize> {
    let room = match counted {
        MacSubheaders::NotCounted => octets,
        MacSubheaders::Counted if octets > SHORT + 3 => octets - 3,
        MacSubheaders::Counted => octets.saturating_sub(2).min(SHORT),
    };
    (room > 0).then_some(room)
}

/// Octets of a transport block that a PDU of `octets` octets takes.
pub(super) fn cost(counted: MacSubheaders, octets: usize) -> usize {
    octets
        + match counted {
            MacSubheaders::NotCounted => 0,
            MacSubheaders::Counted if octets > SHORT => 3,
            MacSubheaders::Counted => 2,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_pdu_fits_every_transport_block() {
        for octets in 3..600 {
            let room = room(MacSubheaders::Counted, octets).unwrap();
            assert!(cost(MacSubheaders::Counted, room) <= octets);
            // A longer PDU would not fit.
            assert!(cost(MacSubheaders::Counted, room + 1) > octets);
        }
        assert_eq!(room(MacSubheaders::Counted, 2), None);
    }
}
