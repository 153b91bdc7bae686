//! Why a packet was lost, in the one way that matters to a sender.

/// The kind of a loss: an emulator knows it, a sender would like to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Cause {
    /// A queue was full: slow down.
    Congestion,
    /// The radio lost it: send it again at the same speed.
    Radio,
}

impl Cause {
    /// Both, in the order of the enum.
    pub const ALL: [Self; 2] = [Self::Congestion, Self::Radio];

    /// The word for it in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Radio => "radio",
        }
    }
}
