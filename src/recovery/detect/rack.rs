//! RACK-TLP (RFC 8985): a segment is lost when one that left sufficiently later has arrived, whichever copy either
//! was; and a probe finds out about the tail, which nothing follows.
//!
//! §6 is here: RACK.segment (`xmit_ts`, `end_seq`), RACK.rtt, RACK.min_RTT, RACK.fack, the reordering window. §7 is
//! in [`tlp`]. Time takes the place of counting: a retransmission that is lost is found like any other segment, and
//! reordering within the window, which starts at a quarter of the smallest round trip, does no harm. Before any
//! reordering is seen, DupThresh SACKed segments are still enough (§6.2 step 4).
//!
//! It works only with the repair `sack`, because the scoreboard says what has arrived. An unmodified kernel receiver
//! sends everything that it needs: SACK, D-SACK (on in every distribution), timestamps.
//!
//! Choice: RACK.min_RTT is the minimum over the whole connection, which §6.2 step 1 permits; D-SACKs widen the
//! window where it has become too small.
//! Choice: TSecr tells which copy arrived (§6.2 step 2) only of what is acknowledged in sequence. With a SACK it is
//! that of an earlier segment (RFC 7323 §4.3): there min_RTT alone has to tell, as in Linux.
//! Choice: a retransmission found lost is sent again without another reduction, as the Linux sender does; the RFC
//! leaves the reaction to congestion control (§9.3).
//! Choice: after a timeout everything goes back (`restart`), not only what §6.3 marks: that is what the question
//! "what does a timeout mean?" is for.
//! Choice: a timeout that empties the scoreboard, because the profile says so, resets RACK.fack too.
//!
//! The RACK of the profile `linux` (Linux 6.18) learns more of reordering than the RFC says:
//!
//! - That an original was late which had been sent again counts as well (tcp_try_undo_partial(); the answer `undo-linux`
//!   tells).
//! - D-SACKs widen the window only where reordering has been seen, and not those of a probe (tcp_dsack_seen()). A recovery
//!   that was a mistake is none of the sixteen that narrow it (tcp_try_undo_recovery()).
//! - The timer for what was overtaken goes by jiffies, two milliseconds late (tcp_rack_mark_lost()); ACKs judge exactly.
//! - If a segment was overtaken by more than DupThresh others, whatever is delivered opens the congestion window, in order or
//!   not (tcp_may_raise_cwnd()).

mod tlp;

#[cfg(test)]
mod tests;

use std::ops::Range;

use airwire::time::{Duration, Instant};
use tlp::Tlp;

use super::departures::{Departed, Departures, is_on_its_way};
use super::{Detect, LossEvent, Opens, Traits, Verdict};
use crate::flight::{Delivery, Sent};
use crate::profile::jiffies;
use crate::profile::knobs::RackDialect;
use crate::recovery::undo::Restore;
use crate::recovery::{Ack, Departure, Phase, Transmission, View};

/// The reordering window is narrow again after this many recoveries (RACK.reo_wnd_persist).
const REO_WND_PERSIST: u32 = 16;

/// TCP_TIMEOUT_MIN_US
const TIMEOUT_MIN: Duration = Duration::from_millis(2);

/// RACK-TLP (RFC 8985): a segment is lost when one that left sufficiently later has arrived.
#[derive(Debug)]
pub(crate) struct Rack {
    dialect: RackDialect,
    /// RACK.xmit_ts and RACK.end_seq: of the segments delivered, the one that had left last.
    newest: Option<(Instant, u64)>,
    /// RACK.rtt
    rtt: Duration,
    /// RACK.min_RTT
    min_rtt: Option<Duration>,
    /// RACK.fack: one past the highest octet delivered.
    fack: u64,
    reordering_seen: bool,
    /// More than DupThresh segments have overtaken one (Linux only).
    reordering_is_high: bool,
    /// RACK.dsack_round: until this is acknowledged, D-SACKs belong to one round trip.
    dsack_round: Option<u64>,
    reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    in_recovery: bool,
    /// Nothing that left later has been delivered.
    on_time: Departures,
    /// Something that left later has been delivered.
    overtaken: Departures,
    /// When the last of those overtaken is due.
    reordering_timer: Option<Instant>,
    tlp: Tlp,
}

impl Rack {
    pub(crate) fn new(dialect: RackDialect) -> Self {
        Self {
            dialect,
            newest: None,
            rtt: Duration::ZERO,
            min_rtt: None,
            fack: 0,
            reordering_seen: false,
            reordering_is_high: false,
            dsack_round: None,
            reo_wnd_mult: 1,
            reo_wnd_persist: REO_WND_PERSIST,
            in_recovery: false,
            on_time: Departures::default(),
            overtaken: Departures::default(),
            reordering_timer: None,
            tlp: Tlp::default(),
        }
    }
}

impl Detect for Rack {
    fn name(&self) -> &'static str {
        "rack"
    }

    fn traits(&self) -> Traits {
        Traits {
            needs_sack: true,
            mistakes_reordering: false,
            judges_each_segment: true,
            opens: if self.reordering_is_high { Opens::OutOfOrder } else { Opens::InOrder },
            ..Traits::default()
        }
    }

    fn on_sent(&mut self, view: &View<'_>, departure: &Departure) {
        self.on_time.push(Departed { sent_at: view.now, start: departure.start });
        self.tlp.on_sent(view, departure.kind == Transmission::New);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        self.update(view, ack);
        self.detect_reordering(view, ack);
        self.update_reo_wnd_mult(view, ack);
        let repaired = self.tlp.on_ack(view, ack);
        match (self.detect_loss(view), repaired) {
            (Verdict::Nothing, Some(window_when_sent)) => {
                Verdict::Repaired { window_when_sent, why: "TLP: the probe repaired a loss" }
            }
            (lost, _) => lost,
        }
    }

    fn on_event(&mut self, _view: &View<'_>) {
        self.in_recovery = true;
        self.tlp.cancel();
    }

    fn on_undo(&mut self, view: &View<'_>, restore: &Restore) {
        if self.dialect != RackDialect::Linux {
            return;
        }
        self.in_recovery &= restore.window.is_none();
        if restore.reordered {
            let una = view.flight.una();
            let highest = view.flight.sacked_ranges().last().map_or(una, |range| range.end);
            self.note_reordering(view, view.cc.previous_una..highest);
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.in_recovery = true;
        self.reordering_timer = None;
        // Linux 6.18, tcp_enter_loss(): so many had overtaken what is lost now.
        if view.cc.phase() == Phase::Open && self.enough_sacked(view) {
            self.reordering_is_high = false;
        }
        if view.knobs.forget_sacks_at_timeout {
            self.fack = view.flight.una();
        }
        self.tlp.cancel();
    }

    fn deadline(&self) -> Option<Instant> {
        self.reordering_timer.into_iter().chain(self.tlp.pto()).min()
    }

    fn on_deadline(&mut self, view: &View<'_>) -> Verdict {
        if self.tlp.is_due(view) {
            return Verdict::Probe { why: "TLP: no ACK for two round trips" };
        }
        self.detect_loss(view)
    }
}

impl Rack {
    /// §6.2 steps 1 and 2.
    fn update(&mut self, view: &View<'_>, ack: &Ack) {
        let sacked = ack.originals.newest.map(|delivery| view.now - delivery.sent_at);
        self.min_rtt = [self.min_rtt, view.rtt.min(), ack.rtt, sacked].into_iter().flatten().min();
        let resent = ack.newest.filter(|delivery| delivery.resent && !self.is_ambiguous(view, ack, delivery));
        let Some(delivery) = Delivery::later(ack.originals.newest, resent) else { return };
        self.rtt = view.now - delivery.sent_at;
        self.newest = self.newest.max(Some((delivery.sent_at, delivery.end)));
    }

    /// What arrived may have been an earlier copy. An echo is about what is in sequence.
    fn is_ambiguous(&self, view: &View<'_>, ack: &Ack, delivery: &Delivery) -> bool {
        let in_sequence = delivery.end <= view.flight.una();
        let earlier = ack.ecr.is_some_and(|ecr| (ecr.wrapping_sub(delivery.tsval) as i32) < 0);
        in_sequence && earlier || self.min_rtt.is_some_and(|min_rtt| view.now - delivery.sent_at < min_rtt)
    }

    /// Step 3.
    fn detect_reordering(&mut self, view: &View<'_>, ack: &Ack) {
        let overtaken = ack.originals.lowest.filter(|end| *end < self.fack);
        self.fack = self.fack.max(view.flight.una()).max(ack.highest_sacked.unwrap_or(0));
        if let Some(end) = overtaken {
            self.note_reordering(view, end.saturating_sub(view.smss)..self.fack);
        }
    }

    /// The rest of `range` has overtaken its beginning (Linux 6.18, tcp_check_sack_reordering()).
    fn note_reordering(&mut self, view: &View<'_>, range: Range<u64>) {
        let segments = (range.end - range.start).div_ceil(view.smss);
        self.reordering_seen = true;
        self.reordering_is_high |=
            self.dialect == RackDialect::Linux && segments > u64::from(view.knobs.dup_thresh);
    }

    /// Step 4: what D-SACKs and recoveries do to the window.
    fn update_reo_wnd_mult(&mut self, view: &View<'_>, ack: &Ack) {
        self.dsack_round.take_if(|round| view.flight.una() >= *round);
        let in_recovery = matches!(view.cc.phase(), Phase::Recovery | Phase::Restarted);
        let over = std::mem::replace(&mut self.in_recovery, in_recovery) && !in_recovery;
        let widens = match (self.dialect, ack.dsack) {
            (_, None) => false,
            (RackDialect::Rfc8985, Some(_)) => true,
            (RackDialect::Linux, Some((_, end))) => self.reordering_seen && !self.tlp.is_probed(end),
        };
        if self.dsack_round.is_none() && widens {
            self.dsack_round = Some(view.flight.max());
            self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if over {
            self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_mult = 1;
            }
        }
    }

    fn enough_sacked(&self, view: &View<'_>) -> bool {
        view.flight.sacked().segments >= u64::from(view.knobs.dup_thresh)
    }

    /// RACK.reo_wnd
    fn reo_wnd(&self, view: &View<'_>) -> Duration {
        if !self.reordering_seen && (self.in_recovery || self.enough_sacked(view)) {
            return Duration::ZERO;
        }
        let window = self.min_rtt.unwrap_or_default() * u64::from(self.reo_wnd_mult) / 4;
        view.rtt.srtt().map_or(window, |srtt| window.min(srtt))
    }

    fn timer_for(&self, now: Instant, due: Instant) -> Instant {
        match self.dialect {
            RackDialect::Rfc8985 => due,
            RackDialect::Linux => {
                jiffies::timer(jiffies::ticks(now) + jiffies::ticks_in(due - now + TIMEOUT_MIN))
            }
        }
    }

    /// Step 5. Both lists are in order of time: what is due stands first, and what is due last stands last.
    fn detect_loss(&mut self, view: &View<'_>) -> Verdict {
        self.reordering_timer = None;
        let Some(newest) = self.newest else { return Verdict::Nothing };
        let flight = view.flight;
        while let Some((copy, _)) = self.on_time.first(flight).filter(|(_, sent)| is_before(sent, newest)) {
            self.on_time.pop_first();
            self.overtaken.push(copy);
        }
        let patience = self.rtt + self.reo_wnd(view);
        let is_due = |copy: Departed| copy.sent_at + patience <= view.now;
        let mut starts = Vec::new();
        while let Some((copy, _)) = self.overtaken.first(flight).filter(|(copy, _)| is_due(*copy)) {
            self.overtaken.pop_first();
            starts.push(copy.start);
        }
        // The head may be on no list, if it was judged lost and that has been proved wrong since.
        let head = flight.head().filter(|head| is_on_its_way(head) && is_before(head, newest));
        let mut head = head.map(Departed::of).filter(|head| !starts.contains(&head.start));
        starts.extend(head.take_if(|head| is_due(*head)).map(|head| head.start));
        let waiting = head.into_iter().chain(self.overtaken.last(flight));
        let due = waiting.map(|copy| copy.sent_at + patience).max();
        self.reordering_timer = due.map(|due| self.timer_for(view.now, due));
        if starts.is_empty() {
            return Verdict::Nothing;
        }
        starts.sort_unstable();
        let why = "RACK: a segment sent later was delivered";
        Verdict::Segments { starts, event: LossEvent::Present, why }
    }
}

/// RACK_sent_after(newest, sent).
fn is_before(sent: &Sent, newest: (Instant, u64)) -> bool {
    (sent.last_sent, sent.end) < newest
}
