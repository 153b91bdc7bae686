//! The cause of a packet loss: congestion or the radio link.

/// The cause of a loss. An emulator knows it; a sender has to estimate it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Cause {
    /// A queue was full. The sender should slow down.
    Congestion,
    /// The radio link lost the packet. The sender should retransmit at the same rate.
    Radio,
}

impl Cause {
    /// Both causes, in declaration order.
    pub const ALL: [Self; 2] = [Self::Congestion, Self::Radio];

    /// Returns the name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Radio => "radio",
        }
    }
}
