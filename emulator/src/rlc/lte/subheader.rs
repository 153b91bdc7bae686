//! Sizes of the MAC subheaders of RLC PDUs (36.321 §6.1.2). One octet contains R, R, E and LCID. All
//! subheaders except the last also have F and an L field of 7 or 15 bits.

use crate::rlc::service::MacSubheaders;

/// Longest PDU whose subheader has an L field of 7 bits.
const SHORT: usize = 127;

/// Maximum size of a STATUS PDU in `octets` octets of a transport block. `None` if no octet of it fits.
pub(super) fn status_room(counted: MacSubheaders, octets: usize) -> Option<usize> {
    let room = match counted {
        MacSubheaders::NotCounted => octets,
        MacSubheaders::Counted if octets > SHORT + 3 => octets - 3,
        MacSubheaders::Counted => octets.saturating_sub(2).min(SHORT),
    };
    (room > 0).then_some(room)
}

/// Octets of a transport block that a STATUS PDU of `octets` octets takes.
pub(super) fn status_cost(counted: MacSubheaders, octets: usize) -> usize {
    octets
        + match counted {
            MacSubheaders::NotCounted => 0,
            MacSubheaders::Counted => 1 + length(octets),
        }
}

/// Octets of the F and L fields of a PDU that is not the last one.
pub(crate) fn length(octets: usize) -> usize {
    1 + usize::from(octets > SHORT)
}

/// Octets of the last subheader.
pub(super) fn last(counted: MacSubheaders) -> usize {
    usize::from(counted == MacSubheaders::Counted)
}
