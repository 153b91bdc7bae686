//! Ground truth that no sender has in reality: why its packets were lost.
//!
//! In virtual time the path records the cause of each loss. The simulation passes it to the connection's
//! [`Recovery`](super::Recovery) at the moment of the loss. Only parts of a recipe with
//! [`Need::Truth`](super::catalogue::Need::Truth) in their row receive it. In real time the causes are
//! unknown, so a host rejects such a recipe.

use airwire::Cause;

/// A fact about the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truth {
    /// From now on, every loss is reported.
    Begins,
    /// A packet was lost.
    Lost {
        /// The position of the packet, counted as in the decision trace: the SYN is at 0, the first data byte
        /// at 1.
        offset: u64,
        /// Length in sequence space.
        len: u64,
        /// Cause of the loss.
        cause: Cause,
    },
}
