//! What made the sender send a segment again, as far as the ACKs and the silence before it show.

use std::ops::Range;

use super::anomalies::Begins;
use super::direction::{Direction, Moment, Repairing};
use super::flight::Sent;

/// Nanoseconds: a host answers an ACK sooner than this, and a timer waits longer.
const PROMPT: i64 = 10_000_000;
/// Nanoseconds between two packets that leave upon the same ACK.
const ANSWERING: i64 = 300_000;

/// How a retransmission is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Explanation {
    pub(super) trigger: Trigger,
    pub(super) begins: Begins,
}

/// What made the sender send again, in the words of [`Sending`](crate::trace::Sending).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    Fast,
    Timeout,
    Tail,
    Unexplained,
}

const UNEXPLAINED: Explanation = Explanation { trigger: Trigger::Unexplained, begins: Begins::Nothing };

impl Direction {
    /// Whether an ACK came just before, which may have made the sender send what leaves now. What leaves a while after
    /// the ACK was answered, a timer has sent: that of retransmissions, or of RACK where SACK blocks are hidden.
    pub(super) fn is_prompted(&self, now: &Moment) -> bool {
        let prompt = self.ack_times.last.as_time().is_some_and(|ack| now.at - ack <= self.promptly(now));
        let at_once = now.silence <= ANSWERING + 2 * now.sender_replies;
        prompt && (!self.ack_is_answered || at_once || now.hides_sacks)
    }

    /// Nanoseconds within which something leaves upon an ACK.
    fn promptly(&self, now: &Moment) -> i64 {
        PROMPT.min(self.rtt.min().unwrap_or(PROMPT).max(1_000_000)) + 2 * now.sender_replies
    }

    pub(super) fn explain(&self, now: &Moment, range: &Range<u64>, first: Option<Sent>) -> Explanation {
        let fast = |begins| Explanation { trigger: Trigger::Fast, begins };
        let timeout = |begins| Explanation { trigger: Trigger::Timeout, begins };
        let Some(una) = self.flight.una() else {
            // The capture has no ACKs: the silence alone tells.
            return if now.silence >= self.rtt.timeout() { timeout(Begins::Timeout) } else { UNEXPLAINED };
        };
        let at_una = range.start <= una;
        let prompted = self.is_prompted(now);
        // The timer runs since the last ACK for new data, or since this segment left last. If that ACK acknowledges
        // this segment, the sender did not have it yet: the timer ran since the ACK before.
        let advanced = self.ack_times.advanced[usize::from(range.end <= una)];
        let ran = now.at - advanced.max(first.map_or(i64::MIN, |sent| sent.last_at));
        let expired = ran >= self.rtt.timeout() + now.sender_replies;
        // What the present pass has not come to yet may be the rest of a segment that is cut anew.
        let again_in_pass = range.start < self.flight.pass_next
            && first.is_some_and(|sent| sent.times > 1 && sent.pass == self.flight.pass);
        let shown = self.flight.sacked_above(range.start);
        let asked_for = shown || at_una && self.dupacks > 0;
        let overtaken = first.is_some_and(|sent| {
            sent.last_at < self.anomalies.get().map_or(0, |anomalies| anomalies.newest_arrived)
        });
        // RFC 8985 §6.2: what is overtaken is lost within a part of a round trip, if it is to be found lost so at all.
        let overtaken_for = self.anomalies.get().and_then(|anomalies| {
            let [left, since] = anomalies.oldest_overtaken?;
            (Some(left) == first.map(|sent| sent.last_at)).then_some(now.at - since)
        });
        let patience = self.rtt.min().unwrap_or(0) / 2 + PROMPT;
        let just_overtaken = overtaken_for.is_some_and(|waited| waited <= patience);
        let long_overtaken = overtaken_for.is_some_and(|waited| waited > patience);
        // A second copy in one pass, though no ACK asks for it now: nothing but the timer sends that, however soon, or
        // RACK's. It may run since the first partial ACK (RFC 6582 §4).
        let like_rack = self.anomalies.get().is_some_and(|anomalies| anomalies.guess.resent_copies > 0);
        let unasked = at_una && again_in_pass && !prompted && !(just_overtaken && like_rack);
        let last = range.end >= self.flight.max;
        let repaired = self.anomalies.get().and_then(|anomalies| anomalies.timeout_repaired);
        // Duplicate ACKs of what was sent again after a timeout and had arrived before: they begin no fast retransmit
        // (RFC 6582 §3.2, step 2), unless it leaves with one of them.
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
                // Reno has left its recovery with the partial ACK, and waits for as many duplicate ACKs as it takes. No
                // timer is shorter than a round trip.
                let asked = shown || now.hides_sacks || self.dupacks >= 3;
                let waited = at_una && !prompted && !asked && ran >= self.rtt.min().unwrap_or_default();
                if unasked || waited || at_una && expired && (!prompted || again_in_pass && self.dupacks != 3)
                {
                    timeout(Begins::Timeout)
                } else if after_timeout && !at_una && !shown {
                    // Nothing says that it is lost: going back goes on beside what was found lost on the way.
                    timeout(Begins::Nothing)
                } else if at_una && !shown && partial && self.dupacks >= 3 {
                    // Reno has left its recovery with the partial ACK. Fewer may have come while NewReno's answer left.
                    fast(Begins::FastRetransmit)
                } else {
                    fast(Begins::Nothing)
                }
            }
            // It was on its way to the device when the ACK came that made it pointless.
            _ if range.end <= una && repaired.is_some_and(|at| now.at - at <= self.promptly(now)) => {
                timeout(Begins::Nothing)
            }
            _ if prompted && asked_for => fast(Begins::FastRetransmit),
            // A loss detector that waits a little for reordered segments.
            _ if !expired
                && (shown && !(at_una && long_overtaken) || at_una && self.dupacks >= 3 && !caused) =>
            {
                fast(Begins::FastRetransmit)
            }
            // RFC 8985 §6.2, step 5: what left later has arrived.
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
