//! TCP-PR (Bohacek, Hespanha, Lee, Lim, Obraczka, "A New TCP for Persistent Packet Reordering", 2003 and 2006; one of
//! the senders that P3 compensates): a segment is lost when it has not been acknowledged mxrtt after it left.
//! Duplicate ACKs mean nothing.
//!
//! With every ACK ewrtt = max(alpha^(1/cwnd)·ewrtt, sample), so that the estimate forgets by alpha in a round trip, and
//! mxrtt = beta·ewrtt. A drop halves the window from cwnd(n), the window when segment n left. Everything that is
//! unacknowledged then is *memorized*, and may get lost as well without halving the window again: one burst, one
//! reduction. If more than half of what was memorized is lost, losses are *extreme*: cwnd is 1, mxrtt is at least a
//! second and doubles with every further drop, and nothing is sent for that long.
//!
//! It needs nothing but an unmodified kernel receiver. SACK says which segments have arrived, so it depends on the
//! repair:
//! (a) with `sack` each segment has its own timer, as in the paper, and what is SACKed makes room for new segments
//!     while a hole is waited for;
//! (b) with `newreno` a cumulative ACK says nothing about segments behind a hole: all of them look overdue when the
//!     hole is. Only the first is judged, and the repair finds the others by partial ACKs, as it always does;
//! (c) with `reno` and `tahoe` too only the first is judged. Reno leaves recovery at the next hole of the burst, which
//!     is memorized, and is sent again at once without another reduction. Tahoe starts over at every drop.
//! Extreme losses are therefore seen with `sack` only; with the others they end in a timeout.
//!
//! Choice: the retransmission timer of `restart` stays behind mxrtt, however that grows, as the last resort. If nothing
//! at all was heard since a copy *sent again* left, it is that timer's turn: it backs off, and in the end it gives up;
//! the paper has no such end. It is its turn too while the receiver's window is closed.
//! Choice: mxrtt is 200 ms longer while less than two segments are outstanding, whose single ACK a receiver may delay.
//! Choice: the paper has no recovery, and every ACK of a segment opens the window. So, with (a), does every segment
//! that is SACKed or acknowledged, whatever is missing. With (b) and (c) nobody can tell, and the window stands.
//! Choice: "more than half of the memorized" stands for the paper's cburst > cwnd/2 + 1, the same in a full window.
//! Choice: before the first sample, the smoothed round-trip time of the handshake is ewrtt; mxrtt is 10 ms to 60 s.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use airwire::time::{Duration, Instant};

use super::departures::{Departed, Departures, is_on_its_way};
use super::{Detect, LossEvent, MAX_ACK_DELAY, MIN_PATIENCE, Opens, Traits, Verdict};
use crate::flight::Sent;
use crate::recovery::parameter::{Given, Parameter};
use crate::recovery::{Ack, Departure, Handshake, Transmission, View};

/// By how much ewrtt forgets in a round trip.
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

/// TCP-PR (Bohacek et al. 2006): a segment is lost when it is not acknowledged mxrtt after it left.
#[derive(Debug, Default)]
pub(crate) struct Pr {
    /// mxrtt is this many times ewrtt.
    beta: f64,
    scoreboard: bool,
    /// The largest recent round trip, in seconds.
    ewrtt: Option<f64>,
    /// What is outstanding, by offset, from the head.
    sent: VecDeque<Remembered>,
    by_time: Departures,
    /// New drops so far. What left before the last of them is memorized.
    drops: u64,
    /// How many were memorized at the last drop.
    memorized: u64,
    /// How many of those are lost.
    cburst: u64,
    extreme: Option<Extreme>,
    /// When the receiver last said that something has arrived, new or not.
    heard: Option<Instant>,
    /// When the retransmission timer fired last. What had been SACKed by then may be forgotten.
    timeout: Option<Instant>,
    /// mxrtt, with the allowance for a delayed ACK.
    patience: Duration,
    deadline: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Remembered {
    start: u64,
    /// cwnd(n)
    cwnd: f64,
    /// New drops before it left.
    drops: u64,
}

#[derive(Debug, Clone, Copy)]
struct Extreme {
    /// When the losses were found to be extreme. The paper's timer judges whatever had left by then, so that nothing that
    /// is lost fills the window of one segment.
    since: Instant,
    /// Nothing is sent before this; the first ACK of what left later ends the state.
    until: Instant,
    doublings: u32,
    /// How long nothing leaves; zero once something has.
    hold: Duration,
}

impl Pr {
    /// How long after it is started the retransmission timer may fire at the earliest.
    fn timer_floor(&self) -> Option<Duration> {
        let ewrtt = Duration::from_secs_f64(self.ewrtt?);
        let hold = self.extreme.map_or(Duration::ZERO, |extreme| extreme.hold);
        Some(hold + self.patience + ewrtt.min(MAX_MXRTT))
    }

    pub(crate) fn new(given: &Given<'_>) -> Self {
        Self { beta: given.number(&BETA).unwrap_or(3.0), ..Self::default() }
    }
}

impl Detect for Pr {
    fn name(&self) -> &'static str {
        "pr"
    }

    fn traits(&self) -> Traits {
        Traits {
            mistakes_reordering: false,
            judges_each_segment: true,
            keeps_flowing: true,
            opens: if self.scoreboard { Opens::Always } else { Opens::InOrder },
            timer_floor: self.timer_floor(),
            ..Traits::default()
        }
    }

    fn on_established(&mut self, handshake: &Handshake) {
        self.scoreboard = handshake.scoreboard;
    }

    fn on_sent(&mut self, view: &View<'_>, departure: &Departure) {
        let sent = Remembered { start: departure.start, cwnd: view.cc.cwnd, drops: self.drops };
        match departure.kind {
            Transmission::New => self.sent.push_back(sent),
            _ => self.put_down_again(sent),
        }
        if self.scoreboard {
            self.by_time.push(Departed { sent_at: view.now, start: departure.start });
        }
        if self.ewrtt.is_none() {
            self.ewrtt = view.rtt.srtt().map(Duration::as_secs_f64);
        }
        if let Some(extreme) = &mut self.extreme {
            extreme.hold = Duration::ZERO;
        }
        self.rearm(view, &[]);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        self.update_ewrtt(view, ack);
        if ack.delivered.bytes > 0 || ack.duplicate || ack.dsack.is_some() {
            self.heard = Some(view.now);
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

    fn on_refused_collapse(&mut self, view: &View<'_>) {
        self.extreme = None;
        self.rearm(view, &[]);
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.timeout = Some(view.now);
        // It has reduced the window: what is outstanding shall not do so again.
        self.drops += 1;
        (self.memorized, self.cburst) = (0, 0);
        if let Some(extreme) = &mut self.extreme {
            let doublings = extreme.doublings + 1;
            *extreme = Extreme { until: view.now, doublings, hold: Duration::ZERO, ..*extreme };
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
        // An ACK of several segments stands for as many.
        let forgets = ALPHA.powf(delivered / view.cc.cwnd.max(1.0));
        let sample = if ack.advances() && (ack.ecr.is_some() || !ack.any_resent) {
            // Without an echo that tells which copy it answers, the ACK of a filled hole would measure how long the
            // hole was there.
            ack.rtt
        } else if self.scoreboard {
            // What is SACKed behind a hole waits for nothing.
            let newest = ack.originals.newest.map(|delivery| delivery.sent_at);
            newest.filter(|sent_at| self.timeout < Some(*sent_at)).map(|sent_at| view.now - sent_at)
        } else {
            None
        };
        let remembered = self.ewrtt.map(|ewrtt| forgets * ewrtt);
        let sample = sample.map(Duration::as_secs_f64);
        self.ewrtt = remembered.into_iter().chain(sample).reduce(f64::max);
    }

    /// beta·ewrtt, or what extreme losses make of it.
    fn mxrtt(&self) -> Option<Duration> {
        let mxrtt = Duration::from_secs_f64((self.ewrtt? * self.beta).min(MAX_MXRTT.as_secs_f64()));
        let mxrtt = mxrtt.max(MIN_PATIENCE);
        let extreme = |extreme: Extreme| mxrtt.max(EXTREME_MXRTT) * (1 << extreme.doublings.min(6));
        Some(self.extreme.map_or(mxrtt, extreme).min(MAX_MXRTT))
    }

    fn judge(&mut self, view: &View<'_>) -> Verdict {
        let starts = self.overdue(view);
        let event = self.event(view, &starts);
        self.rearm(view, &starts);
        match event {
            Some((event, why)) => Verdict::Segments { starts, event, why },
            None => Verdict::Nothing,
        }
    }

    /// The segments to be taken for lost, in the order in which they left.
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
        // Without a scoreboard the head is all there is to judge. With one it may be on no list, if it was judged lost
        // and that has been proved wrong since.
        if let Some(head) = view.flight.head().filter(|head| is_on_its_way(head) && self.may_judge(head))
            && head.last_sent + self.patience <= view.now
            && !starts.contains(&head.start)
        {
            starts.push(head.start);
        }
        starts
    }

    fn may_judge(&self, sent: &Sent) -> bool {
        sent.transmissions == 1
            || self.heard.is_some_and(|heard| heard > sent.last_sent)
            || self.extreme.is_some_and(|extreme| sent.last_sent < extreme.since)
    }

    fn event(&mut self, view: &View<'_>, starts: &[u64]) -> Option<(LossEvent, &'static str)> {
        let mut window_when_sent = None;
        for start in starts {
            let sent = self.sent_at(*start);
            if sent.is_some_and(|sent| sent.drops < self.drops) {
                self.cburst += 1;
            } else {
                // A loss never opens the window, whatever has happened to it since n left.
                let most = view.cc.cwnd / view.knobs.beta;
                window_when_sent = Some(sent.map_or(most, |sent| sent.cwnd.min(most)));
                self.memorize(view);
            }
        }
        Some(match (self.extreme, window_when_sent) {
            _ if starts.is_empty() => return None,
            (Some(_), None) => (LossEvent::Past, "mxrtt expired, extreme losses"),
            (Some(extreme), Some(_)) => {
                (self.collapse(view, extreme.doublings + 1, None), "extreme losses again")
            }
            (None, then) if self.scoreboard && 2 * self.cburst > self.memorized && self.memorized > 0 => {
                (self.collapse(view, 0, then), "extreme losses: more than half of the memorized")
            }
            (None, Some(window_when_sent)) => (LossEvent::Own { window_when_sent }, "mxrtt expired"),
            (None, None) => (LossEvent::Past, "mxrtt expired, memorized"),
        })
    }

    /// A new drop: everything else that is unacknowledged is memorized.
    fn memorize(&mut self, view: &View<'_>) {
        self.drops += 1;
        self.memorized = view.flight.pipe().segments.saturating_sub(1);
        self.cburst = 0;
    }

    fn collapse(&mut self, view: &View<'_>, doublings: u32, window_when_sent: Option<f64>) -> LossEvent {
        // Everything that has left by now belongs to it.
        self.drops += 1;
        (self.memorized, self.cburst) = (0, 0);
        let since = view.now;
        let extreme = Extreme { since, until: since, doublings, hold: Duration::ZERO };
        self.extreme = Some(extreme);
        let hold = self.mxrtt().unwrap_or(EXTREME_MXRTT);
        let until = since + hold;
        self.extreme = Some(Extreme { until, hold, ..extreme });
        LossEvent::Collapse { window_when_sent, until }
    }

    fn rearm(&mut self, view: &View<'_>, judged: &[u64]) {
        self.deadline = None;
        let Some(mxrtt) = self.mxrtt().filter(|_| view.rwnd > 0) else { return };
        self.patience = mxrtt + allowance(view);
        let head = view.flight.head().filter(|head| is_on_its_way(head) && self.may_judge(head));
        let head = head.filter(|head| !judged.contains(&head.start)).map(|head| head.last_sent);
        let first = self.by_time.first(view.flight).filter(|(_, sent)| self.may_judge(sent));
        let first = first.map(|(copy, _)| copy.sent_at);
        self.deadline = head.into_iter().chain(first).min().map(|sent_at| sent_at + self.patience);
    }

    // ----- cwnd(n) -----

    fn index_after(&self, start: u64) -> usize {
        self.sent.partition_point(|sent| sent.start <= start)
    }

    /// The segment that holds `start`: it may have been cut since it left.
    fn sent_at(&self, start: u64) -> Option<Remembered> {
        self.sent.get(self.index_after(start).checked_sub(1)?).copied()
    }

    fn put_down_again(&mut self, sent: Remembered) {
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

/// Less than two segments may be a single ACK that the receiver delays (RFC 5681 §4.2).
fn allowance(view: &View<'_>) -> Duration {
    let lone = view.flight.outstanding().bytes < 2 * view.smss;
    if lone { MAX_ACK_DELAY } else { Duration::ZERO }
}
