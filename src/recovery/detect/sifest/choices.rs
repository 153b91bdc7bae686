//! What P0 §4.2 leaves open, and what was chosen. A parameter each puts back the paper's words, alone: so each choice has
//! an effect that can be measured.
//!
//! Choice without a parameter: in the pass over the window that follows a timeout or Tahoe's fast retransmit, a first
//! unacknowledged segment that has yet to leave again waits for its turn. By the paper it is resent "immediately"; but
//! the ACK that made it the first one has let it out, before any duplicate of that ACK can come.

use crate::recovery::parameter::{Given, Parameter};

/// With how many duplicate ACKs "(*sifest_* − 1)" may be met.
///
/// Choice: with one at least. The formula alone is met by none when one segment is in the path, and then any ACK would
/// send that segment again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Least {
    #[default]
    OneDupack,
    AnyAck,
}

/// "If [...] the sender has been idle for more than one *rtt*".
///
/// Choice: idle means that nothing was outstanding. A sender that waits for ACKs longer than its smoothed round trip
/// still has them in the path, and would take one reordered segment of a full window for a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Idle {
    #[default]
    NothingOutstanding,
    NothingSent,
}

/// "if the most unacknowledged packet has not been resent in the last *rtt*".
///
/// Choice: no clock alone tells. A copy leaves behind a whole window, whose duplicate ACKs take longer than any smoothed
/// round trip while a queue fills; after a restart a round trip is much shorter than that. So something that left after
/// the copy must have arrived, by count or by SACK, and at least the shortest round trip must have passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Overdue {
    #[default]
    Overtaken,
    ByClock,
}

/// "When a new data packet is sent, *sifest_* is increased by one. [...] If the sender retransmits a packet triggered by
/// schemes other than a timeout, *sifest_* remains the same".
///
/// Choice: segments of the pass that follows a timeout count when they leave, each once: what a timeout sends again is
/// in the path, and a copy that duplicate ACKs have found takes the place of the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Counted {
    #[default]
    EachOnce,
    /// As often as a timeout sends them.
    EachCopy,
    /// The first of the two sentences alone.
    NewData,
}

/// "If a timeout occurs [...], *sifest_* is zero again since the sender is going to re-probe the network."
///
/// Choice: for the question whether a copy was overtaken, the path is empty after a timeout only if nothing was heard in
/// the last round trip. In the middle of a long recovery (RFC 6582 §4, Impatient) the timer fires while a window full of
/// segments is on its way, and their duplicate ACKs say nothing about the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum AfterTimeout {
    #[default]
    WhatIsHeard,
    Empty,
}

/// Copies that arrive when an earlier one has filled the hole cause duplicate ACKs; the paper does not mention them.
///
/// Choice: for each copy beyond the first that one ACK has covered, one duplicate ACK more is waited for, by the
/// estimate and by the fixed threshold of three.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum InVain {
    #[default]
    RaisesBoth,
    RaisesEstimate,
    Ignored,
}

/// RFC 6582 §3.2 step 1, "careful": no fast retransmit before `recover` is acknowledged. The paper does not mention it.
///
/// Choice: it holds back three duplicate ACKs as ever, but not the estimate: it would forbid the fast retransmit in the
/// first window after every timeout, the very window that is tiny. What it guards against is seen to by [`InVain`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Recover {
    #[default]
    Holds,
    Ignored,
}

/// One of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Choices {
    pub(super) least: Least,
    pub(super) idle: Idle,
    pub(super) overdue: Overdue,
    pub(super) counted: Counted,
    pub(super) after_timeout: AfterTimeout,
    pub(super) in_vain: InVain,
    pub(super) recover: Recover,
}

impl Choices {
    pub(super) fn new(given: &Given<'_>) -> Self {
        let or = |word: &Parameter| given.has(word);
        Self {
            least: if or(&ANY_ACK) { Least::AnyAck } else { Least::default() },
            idle: if or(&IDLE_BY_CLOCK) { Idle::NothingSent } else { Idle::default() },
            overdue: if or(&BY_CLOCK) { Overdue::ByClock } else { Overdue::default() },
            counted: match () {
                () if or(&COUNTS_ALL_COPIES) => Counted::EachCopy,
                () if or(&COUNTS_NEW_DATA) => Counted::NewData,
                () => Counted::default(),
            },
            after_timeout: if or(&PATH_IS_EMPTY) { AfterTimeout::Empty } else { AfterTimeout::default() },
            in_vain: match () {
                () if or(&IN_VAIN) => InVain::Ignored,
                () if or(&IN_VAIN_AT_THREE) => InVain::RaisesEstimate,
                () => InVain::default(),
            },
            recover: if or(&BEFORE_RECOVER) { Recover::Ignored } else { Recover::default() },
        }
    }
}

const LETTER: &str = "Pan et al. 2004, §4.2 to the letter";

pub(crate) const ANY_ACK: Parameter = Parameter::word(
    "sifest-any-ack",
    "sifest least",
    "sifest: \"sifest - 1\" can be zero duplicate ACKs; then any ACK suffices",
    LETTER,
);

pub(crate) const IDLE_BY_CLOCK: Parameter = Parameter::word(
    "sifest-idle-clock",
    "sifest idle",
    "sifest: \"idle for more than one rtt\" means that nothing was sent for that time, whatever is outstanding",
    LETTER,
);

pub(crate) const BY_CLOCK: Parameter = Parameter::word(
    "sifest-by-clock",
    "sifest overdue",
    "sifest: \"not been resent in the last rtt\" by the smoothed round-trip time only",
    LETTER,
);

pub(crate) const COUNTS_ALL_COPIES: Parameter = Parameter::word(
    "sifest-all-copies",
    "sifest counted",
    "sifest: every retransmission by a timeout counts",
    LETTER,
);

pub(crate) const COUNTS_NEW_DATA: Parameter = Parameter::word(
    "sifest-new-data",
    "sifest counted",
    "sifest: only \"a new data packet\" counts, no retransmissions",
    LETTER,
);

pub(crate) const PATH_IS_EMPTY: Parameter = Parameter::word(
    "sifest-empty-path",
    "sifest after timeout",
    "sifest: the path is empty after a timeout, whatever was acknowledged just before",
    LETTER,
);

pub(crate) const IN_VAIN_AT_THREE: Parameter = Parameter::word(
    "sifest-3-in-vain",
    "sifest in vain",
    "sifest: duplicate ACKs caused by spurious retransmissions count towards the fixed threshold of three",
    LETTER,
);

pub(crate) const IN_VAIN: Parameter = Parameter::word(
    "sifest-in-vain",
    "sifest in vain",
    "sifest: duplicate ACKs caused by spurious retransmissions count like any other",
    LETTER,
);

pub(crate) const BEFORE_RECOVER: Parameter = Parameter::word(
    "sifest-no-recover",
    "sifest recover",
    "sifest: three duplicate ACKs count even below `recover`",
    LETTER,
);

#[cfg(test)]
mod tests;
