//! Determines why a segment was retransmitted, from the preceding ACKs and the time since the last packet.

use std::ops::Range;

use super::anomalies::Begins;
use super::direction::{Direction, Moment, Repairing};
use super::flight::Sent;

/// Nanoseconds. A host responds to an ACK faster than this, and timers are longer.
const PROMPT: i64 = 10_000_000;
/// Maximum nanoseconds between two packets that the same ACK triggers.
const ANSWERING: i64 = 300_000;

/// The explanation of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Explanation {
    pub(super) trigger: Trigger,
    pub(super) begins: Begins,
}

/// The trigger of a retransmission, as in [`Sending`](crate::trace::Sending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    Fast,
    Timeout,
    Tail,
    Unexplained,
}

const UNEXPLAINED: Explanation = Explanation { trigger: Trigger::Unexplained, begins: Begins::Nothing };

impl Direction {
    /// Returns whether a recent ACK may have triggered the packet that is sent now. A packet that is sent
    /// some time after the ACK was already answered was triggered by the retransmission timer, or, if SACK
    /// blocks are hidden, possibly by RACK's reordering timer.
    pub(super) fn is_prompted(&self, now: &Moment) -> bool {
        let prompt = self.ack_times.last.as_time().is_some_and(|ack| now.at - ack <= self.promptly(now));
        let at_once = now.silence <= ANSWERING + 2 * now.sender_replies;
        prompt && (!self.ack_is_answered || at_once || now.hides_sacks)
    }

    /// Returns the maximum time in nanoseconds between an ACK and a packet that it triggers.
    fn promptly(&self, now: &Moment) -> i64 {
        PROMPT.min(self.rtt.min().unwrap_or(PROMPT).max(1_000_000)) + 2 * now.sender_replies
    }

    pub(super) fn explain(&self, now: &Moment, range: &Range<u64>, first: Option<Sent>) -> Explanation {
        let fast = |begins| Explanation { trigger: Trigger::Fast, begins };
        let timeout = |begins| Explanation { trigger: Trigger::Timeout, begins };
        let Some(una) = self.flight.una() else {
            // The capture does not contain ACKs, so only the silence is evidence.
            return if now.silence >= self.rtt.timeout() { timeout(Begins::Timeout) } else { UNEXPLAINED };
        };
        let at_una = range.start <= una;
        let prompted = self.is_prompted(now);
        // The timer was started by the last ACK for new data, or by the last transmission of this segment. If
        // that ACK acknowledges this segment, the sender had not received it yet, so the ACK before it
        // started the timer.
        let advanced = self.ack_times.advanced[usize::from(range.end <= una)];
        let ran = now.at - advanced.max(first.map_or(i64::MIN, |sent| sent.last_at));
        let expired = ran >= self.rtt.timeout() + now.sender_replies;
        // A range that the current pass has not reached may be the rest of a segment that is being
        // resegmented.
        let again_in_pass = range.start < self.flight.pass_next
            && first.is_some_and(|sent| sent.times > 1 && sent.pass == self.flight.pass);
        let shown = self.flight.sacked_above(range.start);
        let asked_for = shown || at_una && self.dupacks > 0;
        let overtaken = first.is_some_and(|sent| {
            sent.last_at < self.anomalies.get().map_or(0, |anomalies| anomalies.newest_arrived)
        });
        // RFC 8985 §6.2: RACK declares an overtaken segment lost within a fraction of a round trip, or not at
        // all.
        let overtaken_for = self.anomalies.get().and_then(|anomalies| {
            let [left, since] = anomalies.oldest_overtaken?;
            (Some(left) == first.map(|sent| sent.last_at)).then_some(now.at - since)
        });
        let patience = self.rtt.min().unwrap_or(0) / 2 + PROMPT;
        let just_overtaken = overtaken_for.is_some_and(|waited| waited <= patience);
        let long_overtaken = overtaken_for.is_some_and(|waited| waited > patience);
        // A second copy within one pass that no ACK requests is sent only by the retransmission timer,
        // however early it is, or by RACK's timer. The retransmission timer may have been reset last by the
        // first partial ACK (RFC 6582 §4).
        let like_rack = self.anomalies.get().is_some_and(|anomalies| anomalies.guess.resent_copies > 0);
        let unasked = at_una && again_in_pass && !prompted && !(just_overtaken && like_rack);
        let last = range.end >= self.flight.max;
        let repaired = self.anomalies.get().and_then(|anomalies| anomalies.timeout_repaired);
        // Spurious retransmissions after a timeout cause duplicate ACKs. They do not start a fast retransmit
        // (RFC 6582 §3.2, step 2), unless it is sent together with one of them.
        let caused = repaired == Some(self.ack_times.advanced[0]);
        match self.repairing {
            Repairing::AfterTimeout { recover } if range.start < recover => {
                if unasked || at_una && expired && !(prompted && asked_for) {
                    timeout(Begins::Timeout)
                } else if at_una && again_in_pass && asked_for {
                    fast(Begins::FastRetransmit)
                } else if shown && again_in_pass {
                    fast(Begins::Nothing)
                } else {
                    timeout(Begins::Nothing)
                }
            }
            Repairing::Fast { recover, partial, after_timeout } if shown || range.start < recover => {
                // Reno leaves recovery at the partial ACK, and then needs three duplicate ACKs again. A
                // retransmission without them was sent by the timer, which is at least as long as a round
                // trip.
                let asked = shown || now.hides_sacks || self.dupacks >= 3;
                let waited = at_una && !prompted && !asked && ran >= self.rtt.min().unwrap_or_default();
                if unasked || waited || at_una && expired && (!prompted || again_in_pass && self.dupacks != 3)
                {
                    timeout(Begins::Timeout)
                } else if after_timeout && !at_una && !shown {
                    // No ACK reports this segment as lost. The retransmissions after the timeout continue
                    // next to the fast recovery.
                    timeout(Begins::Nothing)
                } else if at_una && !shown && partial && self.dupacks >= 3 {
                    // Reno left recovery at the partial ACK, so this is another fast retransmit. A NewReno
                    // sender responds to the partial ACK before three duplicate ACKs arrive.
                    fast(Begins::FastRetransmit)
                } else {
                    fast(Begins::Nothing)
                }
            }
            // The segment was already on its way to the device when the ACK for its data arrived.
            _ if range.end <= una && repaired.is_some_and(|at| now.at - at <= self.promptly(now)) => {
                timeout(Begins::Nothing)
            }
            _ if prompted && asked_for => fast(Begins::FastRetransmit),
            // The sender's loss detector waits briefly for reordered segments.
            _ if !expired
                && (shown && !(at_una && long_overtaken) || at_una && self.dupacks >= 3 && !caused) =>
            {
                fast(Begins::FastRetransmit)
            }
            // RFC 8985 §6.2, step 5: a segment that was sent later has arrived.
            _ if prompted && overtaken && !(at_una && expired) => fast(Begins::FastRetransmit),
            _ if prompted && !(at_una && expired) => UNEXPLAINED,
            _ if last && !again_in_pass && (!at_una || !expired) => {
                Explanation { trigger: Trigger::Tail, begins: Begins::Nothing }
            }
            _ if at_una => timeout(Begins::Timeout),
            _ => UNEXPLAINED,
        }
    }
}
