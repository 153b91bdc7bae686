//! Why a segment was sent again: what the capture shows of the ACKs and the silence before it.

use std::ops::Range;

use super::anomalies::Begins;
use super::direction::{Direction, Moment, Repairing};
use super::flight::Sent;

/// A host answers an ACK sooner; a timer waits longer.
const PROMPT: i64 = 10_000_000;

/// Why something was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Why {
    pub(super) cause: Cause,
    pub(super) begins: Begins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Fast,
    Timeout,
    Tail,
    Unexplained,
}

const UNEXPLAINED: Why = Why { cause: Cause::Unexplained, begins: Begins::Nothing };

impl Direction {
    /// An ACK that may have caused what leaves now has come just before.
    pub(super) fn is_prompted(&self, now: &Moment) -> bool {
        self.last_ack.as_time().is_some_and(|ack| now.at - ack <= self.promptly(now))
    }

    fn promptly(&self, now: &Moment) -> i64 {
        PROMPT.min(self.rtt.min().unwrap_or(PROMPT).max(1_000_000)) + 2 * now.sender_answers
    }

    pub(super) fn why(&self, now: &Moment, range: &Range<u64>, first: Option<Sent>) -> Why {
        let fast = |begins| Why { cause: Cause::Fast, begins };
        let timeout = |begins| Why { cause: Cause::Timeout, begins };
        let Some(una) = self.flight.una() else {
            // A capture of one direction: nothing but silence is to be seen.
            return if now.silence >= self.rtt.timeout() { timeout(Begins::Timeout) } else { UNEXPLAINED };
        };
        let at_una = range.start <= una;
        let prompted = self.is_prompted(now);
        // The timer runs since the last ACK for new data, or since this segment left last. If the receiver has it,
        // and its ACK has come past, it was the ACK before that one.
        let advanced = self.advanced[usize::from(range.end <= una)];
        let ran = now.at - advanced.max(first.map_or(i64::MIN, |sent| sent.last_at));
        let expired = ran >= self.rtt.timeout() + now.sender_answers;
        let again_in_pass = first.is_some_and(|sent| sent.times > 1 && sent.pass == self.flight.pass);
        let shown = self.flight.sacked_above(range.start);
        let asked_for = shown || at_una && self.dupacks > 0;
        let overtaken =
            first.is_some_and(|sent| sent.last_at < self.trouble.get().map_or(0, |trouble| trouble.arrived));
        let last = range.end >= self.flight.max;
        let restarted = self.trouble.get().and_then(|trouble| trouble.restarted);
        match self.repairing {
            Repairing::AfterTimeout { recover } if range.start < recover => {
                if at_una && expired && !(prompted && asked_for) {
                    timeout(Begins::Timeout)
                } else if at_una && again_in_pass && asked_for {
                    fast(Begins::FastRetransmit)
                } else if shown && again_in_pass {
                    fast(Begins::Nothing)
                } else {
                    timeout(Begins::Nothing)
                }
            }
            Repairing::Fast { recover, partial, .. } if shown || range.start < recover => {
                // NewReno's timer may run since the first partial ACK (RFC 6582 §4): a second copy without anything
                // to ask for it is the timer's, however soon it comes.
                let unasked = !prompted && again_in_pass && !shown && self.dupacks < 3;
                if at_una && (unasked || expired && (!prompted || again_in_pass && self.dupacks != 3)) {
                    timeout(Begins::Timeout)
                } else if at_una && !shown && partial && self.dupacks >= 3 {
                    // Reno has left its recovery with the partial ACK. Fewer may have come while NewReno's answer left.
                    fast(Begins::FastRetransmit)
                } else {
                    fast(Begins::Nothing)
                }
            }
            // Under way to the device already when the ACK came that made it pointless.
            _ if range.end <= una && restarted.is_some_and(|at| now.at - at <= self.promptly(now)) => {
                timeout(Begins::Nothing)
            }
            _ if prompted && asked_for => fast(Begins::FastRetransmit),
            // Detectors that wait a little, for reordered segments.
            _ if !expired && (shown || at_una && self.dupacks >= 3) => fast(Begins::FastRetransmit),
            // RFC 8985 §6.2, step 5: what left later has arrived.
            _ if prompted && overtaken && !(at_una && expired) => fast(Begins::FastRetransmit),
            _ if prompted && !(at_una && expired) => UNEXPLAINED,
            _ if last && !again_in_pass && (!at_una || !expired) => {
                Why { cause: Cause::Tail, begins: Begins::Nothing }
            }
            _ if at_una => timeout(Begins::Timeout),
            _ => UNEXPLAINED,
        }
    }
}
