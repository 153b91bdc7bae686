//! TCP-PR (Bohacek, Hespanha, Lee, Lim, Obraczka, "A New TCP for Persistent Packet Reordering", 2003 and
//! 2006; one of the senders that Lai et al. 2013 compensate). A segment is lost if it is not acknowledged
//! within mxrtt. Duplicate ACKs have no meaning.
//!
//! Each ACK updates ewrtt = max(alpha^(1/cwnd)·ewrtt, sample), so that the estimate decays by the factor
//! alpha per round trip, and mxrtt = beta·ewrtt. A drop halves the window from cwnd(n), the window when
//! segment n was sent. All segments that are unacknowledged at that time are *memorized*. Their losses do not
//! halve the window again, so a burst of losses causes one reduction. If more than half of the memorized
//! segments are lost, the losses are *extreme*: cwnd is 1, mxrtt is at least one second and doubles with
//! every further drop, and nothing is sent for that long.
//!
//! An unmodified kernel receiver is enough. Since SACK shows which segments arrived, the behaviour depends on
//! the repair:
//!
//! - With `sack`, each segment has its own timer, as in the paper. SACKed segments make room for new ones
//!   while the sender waits for a hole.
//! - With `newreno`, a cumulative ACK does not show which segments after a hole arrived, so all look overdue
//!   together with the hole. The detector judges only the first segment, and the repair finds further holes
//!   by partial ACKs.
//! - With `reno` and `tahoe`, the detector also judges only the first segment. Reno leaves recovery at the
//!   next hole of the burst. This hole is memorized, so it is retransmitted at once without another
//!   reduction. Tahoe restarts at every drop.
//!
//! So extreme losses are detected only with `sack`. With the other repairs they end in a timeout.
//!
//! Choice: The retransmission timer of `restart` remains the last resort and always expires after mxrtt. If
//! nothing was received since a *retransmission* was sent, only this timer acts. It backs off and finally
//! gives up; the paper has no such end. The timer also takes over while the receiver's window is closed.
//!
//! Choice: mxrtt is 200 ms longer while fewer than two segments are outstanding, because a receiver may delay
//! their only ACK.
//!
//! Choice: The paper has no recovery state, and every ACK of a segment opens the window. So with `sack`,
//! every segment that is SACKed or acknowledged opens the window, even if others are missing. Other repairs
//! do not know what was SACKed, so the window stays while a segment is missing.
//!
//! Choice: "More than half of the memorized segments" replaces the paper's cburst > cwnd/2 + 1. Both are
//! equal if the window is full.
//!
//! Choice: Before the first sample, ewrtt is the smoothed RTT of the handshake. The range of mxrtt is 10 ms
//! to 60 s.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::send_order::{OrderedTransmission, SendOrder, is_in_flight};
use super::{Correction, Detect, LossEpisode, MAX_ACK_DELAY, MIN_PATIENCE, Opens, Traits, Verdict};
use crate::flight::Sent;
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, Transmission, TransmissionKind, View};

/// Factor by which ewrtt decays per round trip.
const ALPHA: f64 = 0.995;
const EXTREME_MXRTT: Duration = Duration::from_secs(1);
const MAX_MXRTT: Duration = Duration::from_secs(60);

pub(crate) const BETA: Parameter = Parameter {
    subject: "mxrtt",
    ..Parameter::number(
        "pr-beta",
        (1.5, 20.0, ""),
        "pr: a segment is lost after this multiple of the largest recent round-trip time (3)",
        "Bohacek et al. 2006",
    )
};

#[derive(Debug, Default)]
pub(crate) struct Pr {
    /// mxrtt as a multiple of ewrtt.
    beta: f64,
    /// The largest recent RTT, in seconds.
    ewrtt: Option<f64>,
    /// Outstanding segments by offset, starting at the head.
    sent: VecDeque<SentWindow>,
    by_time: SendOrder,
    /// Number of new drops so far. Segments sent before the last one are memorized.
    drops: u64,
    /// Number of segments memorized at the last drop.
    memorized: u64,
    /// Number of memorized segments that are lost.
    cburst: u64,
    extreme: Option<Extreme>,
    /// Time of the last ACK that showed an arrival, whether or not it was of new data.
    last_arrival: Option<Instant>,
    /// Time of the last timeout. The scoreboard may have discarded earlier SACKs.
    timeout: Option<Instant>,
    /// mxrtt plus the allowance for a delayed ACK.
    patience: Duration,
    deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct SentWindow {
    start: u64,
    /// cwnd(n), the window when the segment was sent.
    cwnd: f64,
    /// Number of new drops before the segment was sent.
    drops: u64,
}

#[derive(Debug, Clone, Copy)]
struct Extreme {
    /// Time at which the losses became extreme. As with the paper's timer, segments sent earlier are judged
    /// even if nothing was received since. Otherwise, lost segments would fill the window of one segment.
    since: Instant,
    /// Nothing is sent before this time. The first ACK of a segment sent later ends the state.
    until: Instant,
    doublings: u32,
    /// Length of the pause. Zero after the next transmission.
    pause: Duration,
}

impl Pr {
    /// Returns the minimum time from the start of the retransmission timer to its expiry.
    fn timer_floor(&self) -> Option<Duration> {
        let ewrtt = Duration::from_secs_f64(self.ewrtt?);
        let pause = self.extreme.map_or(Duration::ZERO, |extreme| extreme.pause);
        Some(pause + self.patience + ewrtt.min(MAX_MXRTT))
    }

    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        Self { beta: arguments.number(&BETA).unwrap_or(3.0), ..Self::default() }
    }
}

impl Detect for Pr {
    fn traits(&self) -> Traits {
        Traits {
            mistakes_reordering: false,
            keeps_flowing: true,
            opens: Opens::Always,
            timer_floor: self.timer_floor(),
            ..Traits::default()
        }
    }

    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        let sent = SentWindow { start: transmission.start, cwnd: view.cc.cwnd, drops: self.drops };
        match transmission.kind {
            TransmissionKind::New => self.sent.push_back(sent),
            _ => self.replace_entry(sent),
        }
        if view.handshake.scoreboard {
            self.by_time.push(OrderedTransmission { sent_at: view.now, start: transmission.start });
        }
        if self.ewrtt.is_none() {
            self.ewrtt = view.rtt.srtt().map(Duration::as_secs_f64);
        }
        if let Some(extreme) = &mut self.extreme {
            extreme.pause = Duration::ZERO;
        }
        self.rearm(view, &[]);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        self.update_ewrtt(view, ack);
        if ack.delivered.bytes > 0 || ack.duplicate || ack.dsack.is_some() {
            self.last_arrival = Some(view.now);
        }
        let arrived =
            |extreme: &mut Extreme| ack.newest.is_some_and(|newest| newest.sent_at >= extreme.until);
        self.extreme.take_if(arrived);
        self.forget_acknowledged(view);
        self.judge(view)
    }

    fn on_deadline(&mut self, view: &View<'_>) -> Verdict {
        self.judge(view)
    }

    fn on_correction(&mut self, view: &View<'_>, correction: Correction) {
        if correction == Correction::RefusedCollapse {
            self.extreme = None;
            self.rearm(view, &[]);
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.timeout = Some(view.now);
        // The timeout reduced the window, so the outstanding segments must not reduce it again.
        self.drops += 1;
        (self.memorized, self.cburst) = (0, 0);
        if let Some(extreme) = &mut self.extreme {
            let doublings = extreme.doublings + 1;
            *extreme = Extreme { until: view.now, doublings, pause: Duration::ZERO, ..*extreme };
        }
        self.deadline = None;
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl Pr {
    fn update_ewrtt(&mut self, view: &View<'_>, ack: &Ack) {
        let delivered = view.segments(ack.delivered);
        if delivered <= 0.0 {
            return;
        }
        // An ACK of several segments counts as one ACK per segment.
        let decay = ALPHA.powf(delivered / view.cc.cwnd.max(1.0));
        let sample = if ack.advances() && (ack.ecr.is_some() || !ack.any_resent) {
            // Without a timestamp echo that identifies the copy, the ACK of a filled hole would measure the
            // age of the hole.
            ack.rtt
        } else if view.handshake.scoreboard {
            // The hole does not delay SACKs of later data, so such SACKs are valid samples.
            let newest = ack.originals.newest.map(|delivery| delivery.sent_at);
            newest.filter(|sent_at| self.timeout < Some(*sent_at)).map(|sent_at| view.now - sent_at)
        } else {
            None
        };
        let decayed = self.ewrtt.map(|ewrtt| decay * ewrtt);
        let sample = sample.map(Duration::as_secs_f64);
        self.ewrtt = decayed.into_iter().chain(sample).reduce(f64::max);
    }

    /// Returns beta·ewrtt, raised and doubled in the case of extreme losses.
    fn mxrtt(&self) -> Option<Duration> {
        let mxrtt = Duration::from_secs_f64((self.ewrtt? * self.beta).min(MAX_MXRTT.as_secs_f64()));
        let mxrtt = mxrtt.max(MIN_PATIENCE);
        let extreme = |extreme: Extreme| mxrtt.max(EXTREME_MXRTT) * (1 << extreme.doublings.min(6));
        Some(self.extreme.map_or(mxrtt, extreme).min(MAX_MXRTT))
    }

    fn judge(&mut self, view: &View<'_>) -> Verdict {
        let starts = self.overdue(view);
        let episode = self.episode_of(view, &starts);
        self.rearm(view, &starts);
        match episode {
            Some((episode, why)) => Verdict::Segments { starts, episode, why },
            None => Verdict::Nothing,
        }
    }

    /// Returns the segments to be declared lost, in sending order.
    fn overdue(&mut self, view: &View<'_>) -> Vec<u64> {
        let Some(mxrtt) = self.mxrtt().filter(|_| view.rwnd > 0) else { return Vec::new() };
        self.patience = mxrtt + allowance(view);
        let mut starts = Vec::new();
        while let Some((copy, sent)) = self.by_time.first(view.flight)
            && copy.sent_at + self.patience <= view.now
        {
            self.by_time.pop_first();
            if self.may_judge(sent) {
                starts.push(copy.start);
            }
        }
        // Without a scoreboard, only the head is judged. With one, the head is not on the list if it was
        // declared lost and this later proved wrong.
        if let Some(head) = view.flight.head().filter(|head| is_in_flight(head) && self.may_judge(head))
            && head.last_sent + self.patience <= view.now
            && !starts.contains(&head.start)
        {
            starts.push(head.start);
        }
        starts
    }

    fn may_judge(&self, sent: &Sent) -> bool {
        sent.transmissions == 1
            || self.last_arrival.is_some_and(|last_arrival| last_arrival > sent.last_sent)
            || self.extreme.is_some_and(|extreme| sent.last_sent < extreme.since)
    }

    fn episode_of(&mut self, view: &View<'_>, starts: &[u64]) -> Option<(LossEpisode, &'static str)> {
        let mut window_when_sent = None;
        for start in starts {
            let sent = self.sent_at(*start);
            if sent.is_some_and(|sent| sent.drops < self.drops) {
                self.cburst += 1;
            } else {
                // A loss must not open the window, even if the window has shrunk since segment n was sent.
                let most = view.cc.cwnd / view.rules.decrease.beta;
                window_when_sent = Some(sent.map_or(most, |sent| sent.cwnd.min(most)));
                self.memorize(view);
            }
        }
        Some(match (self.extreme, window_when_sent) {
            _ if starts.is_empty() => return None,
            (Some(_), None) => (LossEpisode::Past, "mxrtt expired, extreme losses"),
            (Some(extreme), Some(_)) => {
                (self.collapse(view, extreme.doublings + 1, None), "extreme losses again")
            }
            (None, then)
                if view.handshake.scoreboard && 2 * self.cburst > self.memorized && self.memorized > 0 =>
            {
                (self.collapse(view, 0, then), "extreme losses: more than half of the memorized")
            }
            (None, Some(window_when_sent)) => (LossEpisode::New { window_when_sent }, "mxrtt expired"),
            (None, None) => (LossEpisode::Past, "mxrtt expired, memorized"),
        })
    }

    /// Records a new drop: all other unacknowledged segments are memorized.
    fn memorize(&mut self, view: &View<'_>) {
        self.drops += 1;
        self.memorized = view.flight.pipe().segments.saturating_sub(1);
        self.cburst = 0;
    }

    fn collapse(&mut self, view: &View<'_>, doublings: u32, window_when_sent: Option<f64>) -> LossEpisode {
        // The collapse covers everything sent until now.
        self.drops += 1;
        (self.memorized, self.cburst) = (0, 0);
        let since = view.now;
        let extreme = Extreme { since, until: since, doublings, pause: Duration::ZERO };
        self.extreme = Some(extreme);
        let pause = self.mxrtt().unwrap_or(EXTREME_MXRTT);
        let until = since + pause;
        self.extreme = Some(Extreme { until, pause, ..extreme });
        LossEpisode::Collapse { window_when_sent, until }
    }

    fn rearm(&mut self, view: &View<'_>, judged: &[u64]) {
        self.deadline = None;
        let Some(mxrtt) = self.mxrtt().filter(|_| view.rwnd > 0) else { return };
        self.patience = mxrtt + allowance(view);
        let head = view.flight.head().filter(|head| is_in_flight(head) && self.may_judge(head));
        let head = head.filter(|head| !judged.contains(&head.start)).map(|head| head.last_sent);
        let first = self.by_time.first(view.flight).filter(|(_, sent)| self.may_judge(sent));
        let first = first.map(|(copy, _)| copy.sent_at);
        self.deadline = head.into_iter().chain(first).min().map(|sent_at| sent_at + self.patience);
    }

    fn index_after(&self, start: u64) -> usize {
        self.sent.partition_point(|sent| sent.start <= start)
    }

    /// Returns the entry of the segment that contains `start`. The segment may have been split since it was
    /// sent.
    fn sent_at(&self, start: u64) -> Option<SentWindow> {
        self.sent.get(self.index_after(start).checked_sub(1)?).copied()
    }

    fn replace_entry(&mut self, sent: SentWindow) {
        let after = self.index_after(sent.start);
        match after.checked_sub(1).and_then(|index| self.sent.get_mut(index)) {
            Some(known) if known.start == sent.start => *known = sent,
            _ => self.sent.insert(after, sent),
        }
    }

    fn forget_acknowledged(&mut self, view: &View<'_>) {
        if view.flight.is_empty() {
            self.sent = VecDeque::new();
        }
        while self.sent.get(1).is_some_and(|next| next.start <= view.flight.una()) {
            self.sent.pop_front();
        }
    }
}

/// Returns the extra wait for a delayed ACK. A receiver may delay the ACK of less than two full-sized
/// segments (RFC 5681 §4.2).
fn allowance(view: &View<'_>) -> Duration {
    let lone = view.flight.outstanding().bytes < 2 * view.smss;
    if lone { MAX_ACK_DELAY } else { Duration::ZERO }
}
