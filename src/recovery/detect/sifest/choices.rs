//! Choices where Pan et al. 2004, §4.2, leave something open. For each choice, a parameter selects the
//! paper's wording instead, so that its effect can be measured separately.
//!
//! Choice without a parameter: During a go-back-N pass after a timeout or after Tahoe's fast retransmission,
//! a first unacknowledged segment that the pass has not reached waits for its turn. The paper resends it
//! "immediately". But the ACK that made the segment the first one also releases it, before a duplicate of
//! that ACK can arrive.

use crate::recovery::parameter::{Arguments, Parameter};

/// Minimum number of duplicate ACKs for the condition "(*sifest_* − 1)".
///
/// Choice: At least one. With one segment in flight, the formula alone requires none, and any ACK would
/// retransmit that segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Least {
    #[default]
    OneDupack,
    AnyAck,
}

/// "If [...] the sender has been idle for more than one *rtt*".
///
/// Choice: Idle means that nothing is outstanding. A sender that waits for ACKs longer than its smoothed RTT
/// still has segments in flight. If it counted as idle, one reordered segment of a full window would look
/// like a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Idle {
    #[default]
    NothingOutstanding,
    NothingSent,
}

/// "if the most unacknowledged packet has not been resent in the last *rtt*".
///
/// Choice: Time alone is not sufficient. A retransmission follows a whole window, whose duplicate ACKs take
/// longer than the smoothed RTT while a queue fills. After a restart, a round trip is much shorter than that.
/// So a segment sent after the retransmission must have arrived, according to the count or to SACK, and at
/// least the shortest RTT must have passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Overdue {
    #[default]
    Overtaken,
    ByClock,
}

/// "When a new data packet is sent, *sifest_* is increased by one. [...] If the sender retransmits a packet
/// triggered by schemes other than a timeout, *sifest_* remains the same".
///
/// Choice: Segments of the go-back-N pass after a timeout count when they are sent, but only once each: they
/// are additional segments in flight. A retransmission caused by duplicate ACKs replaces the earlier copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Counted {
    #[default]
    EachOnce,
    /// Each retransmission after a timeout counts.
    EachCopy,
    /// Only the first of the two sentences applies.
    NewData,
}

/// "If a timeout occurs [...], *sifest_* is zero again since the sender is going to re-probe the network."
///
/// Choice: To decide whether a retransmission was overtaken, the path counts as empty after a timeout only if
/// no ACK arrived in the last round trip. In a long recovery (RFC 3782 §4, Impatient), the timer fires while
/// a full window is in flight, and the duplicate ACKs of that window say nothing about the retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum AfterTimeout {
    #[default]
    RecentAck,
    Empty,
}

/// Duplicate ACKs caused by retransmissions that arrive after an earlier one has filled the hole. The paper
/// does not mention them.
///
/// Choice: For each retransmission beyond the first that one ACK covers, the estimate and the fixed threshold
/// of three both require one more duplicate ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum InVain {
    #[default]
    RaisesBoth,
    RaisesEstimate,
    Ignored,
}

/// RFC 6582 §3.2 step 2, "careful": no fast retransmission before `recover` is acknowledged. The paper does
/// not mention it.
///
/// Choice: The rule applies to three duplicate ACKs, but not to the estimate. It would forbid the fast
/// retransmission in the first window after every timeout, which is the smallest window. [`InVain`] handles
/// the duplicate ACKs that the rule guards against.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Recover {
    #[default]
    Holds,
    Ignored,
}

/// The selected alternative of each choice.
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
    pub(super) fn new(arguments: &Arguments<'_>) -> Self {
        let or = |word: &Parameter| arguments.has(word);
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
