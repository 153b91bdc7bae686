//! Determines why a segment was retransmitted, from the preceding ACKs and the time since the last packet.

use std::ops::Range;

use super::flight::Segment;
use super::recovery::{Recovery, RecoveryStart};
use super::{DirectionAnalysis, PacketContext};

/// Nanoseconds within which a host responds to an ACK. Timers are longer.
const PROMPT: i64 = 10_000_000;
/// Maximum nanoseconds between two packets that the same ACK triggers.
const SAME_ACK: i64 = 300_000;

/// The cause of a retransmission, and the recovery that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetransmissionCause {
    pub(super) trigger: Trigger,
    pub(super) starts: Option<RecoveryStart>,
}

/// The trigger of a retransmission, as in [`Sending`](crate::trace::Sending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    Fast,
    Timeout,
    Tail,
    Unexplained,
}

impl RetransmissionCause {
    const UNEXPLAINED: Self = Self { trigger: Trigger::Unexplained, starts: None };
    const TAIL_PROBE: Self = Self { trigger: Trigger::Tail, starts: None };
    const FAST_RETRANSMIT: Self = Self::fast(Some(RecoveryStart::FastRetransmit));
    const TIMER_EXPIRY: Self = Self::timeout(Some(RecoveryStart::Timeout));
    /// A further retransmission of a fast recovery.
    const FAST_RECOVERY: Self = Self::fast(None);
    /// A further retransmission of the recovery after a timeout.
    pub(super) const AFTER_TIMEOUT: Self = Self::timeout(None);

    const fn fast(starts: Option<RecoveryStart>) -> Self {
        Self { trigger: Trigger::Fast, starts }
    }

    const fn timeout(starts: Option<RecoveryStart>) -> Self {
        Self { trigger: Trigger::Timeout, starts }
    }
}

/// The circumstances of a retransmission.
struct Circumstances {
    /// Whether the retransmission begins at the first unacknowledged byte.
    at_una: bool,
    /// Whether a recent ACK may have triggered the retransmission.
    prompted: bool,
    /// Nanoseconds since the retransmission timer was started.
    timer_ran: i64,
    /// Whether the retransmission timer may have expired.
    expired: bool,
    /// Whether the segment was already retransmitted since the last timeout.
    again_in_pass: bool,
    /// Whether data above the segment is SACKed.
    sacked_above: bool,
    /// Whether ACKs report the segment as missing.
    reported_missing: bool,
    /// Whether a segment that was sent later has arrived.
    overtaken: bool,
    /// Whether RACK has had enough time after that arrival to retransmit the segment.
    long_overtaken: bool,
    /// Whether only the retransmission timer can have sent the packet, even if the packet is early.
    only_by_timer: bool,
}

impl DirectionAnalysis {
    /// Returns whether a recent ACK may have triggered the packet that is sent now. A packet that is sent
    /// some time after the ACK was already answered was triggered by the retransmission timer, or, if SACK
    /// blocks are hidden, possibly by RACK's reordering timer.
    pub(super) fn may_be_prompted_by_ack(&self, context: &PacketContext) -> bool {
        let limit = self.max_response_time(context);
        let is_prompt = self.ack_times.last.as_time().is_some_and(|ack| context.at - ack <= limit);
        let at_once = context.silence <= SAME_ACK + 2 * context.sender_reply_delay;
        is_prompt && (!self.ack_is_answered || at_once || context.hides_sacks)
    }

    /// Returns the maximum time in nanoseconds between an ACK and a packet that it triggers.
    fn max_response_time(&self, context: &PacketContext) -> i64 {
        PROMPT.min(self.rtt.min().unwrap_or(PROMPT).max(1_000_000)) + 2 * context.sender_reply_delay
    }

    /// Returns the cause of a retransmission of `range`. `first` is the first segment in flight that it
    /// repeats.
    pub(super) fn retransmission_cause(
        &self,
        context: &PacketContext,
        range: &Range<u64>,
        first: Option<Segment>,
    ) -> RetransmissionCause {
        let Some(una) = self.flight.una().filter(|_| self.clock_difference().is_none()) else {
            // The capture does not contain ACKs, or only with another clock, so only the silence is evidence.
            let waited = context.silence >= self.rtt.timeout();
            return if waited { RetransmissionCause::TIMER_EXPIRY } else { RetransmissionCause::UNEXPLAINED };
        };
        let facts = self.circumstances(context, range, first, una);
        match self.recovery {
            Recovery::AfterTimeout { recover } if range.start < recover => facts.cause_after_timeout(),
            Recovery::Fast { recover, partial, after_timeout }
                if facts.sacked_above || range.start < recover =>
            {
                self.cause_in_fast_recovery(context, &facts, partial, after_timeout)
            }
            _ => self.cause_outside_recovery(context, range, una, &facts),
        }
    }

    fn circumstances(
        &self,
        context: &PacketContext,
        range: &Range<u64>,
        first: Option<Segment>,
        una: u64,
    ) -> Circumstances {
        let at_una = range.start <= una;
        let prompted = self.may_be_prompted_by_ack(context);
        // The timer was started by the last ACK for new data, or by the last transmission of this segment. If
        // that ACK acknowledges this segment, the sender had not received the ACK yet, so the previous ACK
        // started the timer.
        let advanced = self.ack_times.advanced[usize::from(range.end <= una)];
        let timer_ran = context.at - advanced.max(first.map_or(i64::MIN, |segment| segment.last_at));
        // A range that the current pass has not reached may be the rest of a segment that is being
        // resegmented.
        let again_in_pass = range.start < self.flight.pass_next
            && first.is_some_and(|segment| segment.times > 1 && segment.pass == self.flight.pass);
        let sacked_above = self.flight.sacked_above(range.start);
        let anomalies = self.anomalies.get();
        // RFC 8985 §6.2: RACK declares an overtaken segment lost within a fraction of a round trip, or not at
        // all.
        let overtaken_for = anomalies.and_then(|anomalies| {
            let [sent_at, since] = anomalies.oldest_overtaken?;
            (Some(sent_at) == first.map(|segment| segment.last_at)).then_some(context.at - since)
        });
        let rack_delay = self.rtt.min().unwrap_or(0) / 2 + PROMPT;
        let just_overtaken = overtaken_for.is_some_and(|waited| waited <= rack_delay);
        // A second copy within one pass that no ACK requests is sent only by the retransmission timer, even
        // if the copy is early, or by RACK's timer. The retransmission timer may have been reset last by the
        // first partial ACK (RFC 6582 §3.2 step 3).
        let uses_rack = anomalies.is_some_and(|anomalies| anomalies.sender.repeated_retransmissions > 0);
        let newest_arrived = anomalies.map_or(0, |anomalies| anomalies.newest_arrived);
        Circumstances {
            at_una,
            prompted,
            timer_ran,
            expired: timer_ran >= self.rtt.timeout() + context.sender_reply_delay,
            again_in_pass,
            sacked_above,
            reported_missing: sacked_above || at_una && self.dupacks > 0,
            overtaken: first.is_some_and(|segment| segment.last_at < newest_arrived),
            long_overtaken: overtaken_for.is_some_and(|waited| waited > rack_delay),
            only_by_timer: at_una && again_in_pass && !prompted && !(just_overtaken && uses_rack),
        }
    }

    fn cause_in_fast_recovery(
        &self,
        context: &PacketContext,
        facts: &Circumstances,
        partial: bool,
        after_timeout: bool,
    ) -> RetransmissionCause {
        let Circumstances { at_una, prompted, sacked_above, .. } = *facts;
        // Reno leaves recovery at the partial ACK, and then needs three duplicate ACKs again. Without
        // duplicate ACKs, the timer sent the retransmission. The timer is at least as long as a round trip.
        let reported = sacked_above || context.hides_sacks || self.dupacks >= 3;
        let waited =
            at_una && !prompted && !reported && facts.timer_ran >= self.rtt.min().unwrap_or_default();
        let expired = at_una && facts.expired && (!prompted || facts.again_in_pass && self.dupacks != 3);
        if facts.only_by_timer || waited || expired {
            RetransmissionCause::TIMER_EXPIRY
        } else if after_timeout && !at_una && !sacked_above {
            // No ACK reports this segment as lost. The retransmissions after the timeout continue next to the
            // fast recovery.
            RetransmissionCause::AFTER_TIMEOUT
        } else if at_una && !sacked_above && partial && self.dupacks >= 3 {
            // Reno left recovery at the partial ACK, so this is another fast retransmit. A NewReno sender
            // responds to the partial ACK before three duplicate ACKs arrive.
            RetransmissionCause::FAST_RETRANSMIT
        } else {
            RetransmissionCause::FAST_RECOVERY
        }
    }

    fn cause_outside_recovery(
        &self,
        context: &PacketContext,
        range: &Range<u64>,
        una: u64,
        facts: &Circumstances,
    ) -> RetransmissionCause {
        let Circumstances { at_una, prompted, expired, sacked_above, .. } = *facts;
        let recovered = self.anomalies.get().and_then(|anomalies| anomalies.timeout_recovered.as_time());
        let just_recovered = recovered.is_some_and(|at| context.at - at <= self.max_response_time(context));
        // Spurious retransmissions after a timeout cause duplicate ACKs, which do not start a fast retransmit
        // (RFC 6582 §3.2, step 2). A retransmission right after such an ACK is a fast retransmit
        // nevertheless.
        let has_own_dupacks = recovered != Some(self.ack_times.advanced[0]);
        let enough_dupacks = at_una && self.dupacks >= 3 && has_own_dupacks;
        match () {
            // The segment was already on its way to the device when the ACK for its data arrived.
            _ if range.end <= una && just_recovered => RetransmissionCause::AFTER_TIMEOUT,
            _ if prompted && facts.reported_missing => RetransmissionCause::FAST_RETRANSMIT,
            // The sender's loss detector waits briefly for reordered segments.
            _ if !expired && (sacked_above && !(at_una && facts.long_overtaken) || enough_dupacks) => {
                RetransmissionCause::FAST_RETRANSMIT
            }
            // RFC 8985 §6.2, step 5: a segment that was sent later has arrived.
            _ if prompted && facts.overtaken && !(at_una && expired) => RetransmissionCause::FAST_RETRANSMIT,
            _ if prompted && !(at_una && expired) => RetransmissionCause::UNEXPLAINED,
            _ if range.end >= self.flight.max && !facts.again_in_pass && !(at_una && expired) => {
                RetransmissionCause::TAIL_PROBE
            }
            _ if at_una => RetransmissionCause::TIMER_EXPIRY,
            _ => RetransmissionCause::UNEXPLAINED,
        }
    }
}

impl Circumstances {
    fn cause_after_timeout(&self) -> RetransmissionCause {
        if self.only_by_timer || self.at_una && self.expired && !(self.prompted && self.reported_missing) {
            RetransmissionCause::TIMER_EXPIRY
        } else if self.at_una && self.again_in_pass && self.reported_missing {
            RetransmissionCause::FAST_RETRANSMIT
        } else if self.sacked_above && self.again_in_pass {
            RetransmissionCause::FAST_RECOVERY
        } else {
            RetransmissionCause::AFTER_TIMEOUT
        }
    }
}
