//! What no sender can know: why its packets were lost.
//!
//! In virtual time the path keeps the record, and whoever drives host and path tells a connection
//! ([`Recovery::tell`](super::Recovery::tell)), at the moment of each loss. Parts of a recipe that go by it have
//! [`Need::Truth`](super::catalogue::Need::Truth) in their row, and only they are told. A host in real time has nobody
//! who could tell, and refuses such a recipe.

use airwire::Cause;

/// Something that is true of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truth {
    /// From here on every loss will be told.
    Begins,
    /// A packet was lost.
    Lost {
        /// Where it begins, counted as in the decision trace: the SYN is at 0, the first octet of data at 1.
        offset: u64,
        /// How much sequence space it occupies.
        len: u64,
        /// Why.
        cause: Cause,
    },
}
