//! RACK-TLP (RFC 8985). A segment is lost if a segment sent sufficiently later has been delivered. This
//! applies to originals and retransmissions alike. A tail loss probe covers the last segments, which no other
//! segment follows.
//!
//! This file implements §6: RACK.segment (`xmit_ts`, `end_seq`), RACK.rtt, RACK.min_RTT, RACK.fack and the
//! reordering window. [`tlp`] implements §7. Time replaces counting, so a lost retransmission is detected
//! like any other lost segment, and reordering within the window does no harm. The window is initially a
//! quarter of the smallest RTT. Until reordering is observed, DupThresh SACKed segments are also enough (§6.2
//! step 4).
//!
//! RACK works only with the repair `sack`, because the scoreboard shows which segments have arrived. An
//! unmodified kernel receiver sends everything that RACK needs: SACK, D-SACK (enabled in every distribution)
//! and timestamps.
//!
//! Choice: RACK.min_RTT is the minimum over the whole connection. §6.2 step 1 recommends the minimum over
//! recent samples, because the path may become longer. If the reordering window is then too small, D-SACKs
//! widen it.
//!
//! Choice: TSecr distinguishes the copies of a segment (§6.2 step 2) only if the segment is acknowledged in
//! sequence. An ACK with SACK blocks echoes the timestamp of an earlier segment (RFC 7323 §4.3). For SACKed
//! segments, min_RTT alone decides, as in Linux.
//!
//! Choice: A lost retransmission is retransmitted without another reduction, as in Linux. The RFC leaves the
//! reaction to congestion control (§9.3).
//!
//! Choice: After a timeout, everything is retransmitted (`restart`), not only what §6.3 marks. The answer to
//! *What does a timeout mean?* decides this.
//!
//! Choice: If the profile clears the scoreboard at a timeout, RACK.fack is reset too.
//!
//! In the profile `linux` (Linux 6.18), RACK has rules about reordering that the RFC lacks:
//!
//! - RACK.rtt is the age of the last segment in sequence that an ACK delivers, not of the most recently sent
//!   one (tcp_rack_advance(), called by tcp_sacktag_one() and then by tcp_clean_rtx_queue()). Segments
//!   therefore have more time if a late original follows a retransmission.
//! - A D-SACK for a segment that was SACKed after its retransmission counts as reordering
//!   (tcp_sacktag_one()).
//! - A late original that had already been retransmitted counts as reordering (tcp_try_undo_partial()). The
//!   undo algorithm `undo-linux` reports it.
//! - D-SACKs widen the window only after observed reordering, and only if they are not about a probe
//!   (tcp_dsack_seen()). A spurious recovery does not count towards the sixteen that narrow the window
//!   (tcp_try_undo_recovery()).
//! - A probe that is outstanding does not prevent the timer of the next one, whose expiry sends nothing
//!   (tcp_schedule_loss_probe(), tcp_send_loss_probe()).
//! - An ACK that delivers nothing starts no search for losses (tcp_rack_mark_lost()). The timer finds them.
//! - The timer for overtaken segments counts jiffies and is two milliseconds late (tcp_rack_mark_lost()).
//!   Decisions at ACKs are exact.
//! - A retransmission's age is compared with RACK.min_RTT from before the ACK (tcp_clean_rtx_queue()).
//! - After a timeout, a lost retransmission begins fast recovery (tcp_fastretrans_alert()).
//! - A loss that a probe has repaired reduces cwnd, not FlightSize, and leaves the sender in the state Open
//!   (tcp_process_tlp_ack()).
//! - The largest distance of reordering is measured (tcp_check_sack_reordering()). Once it exceeds DupThresh,
//!   all delivered segments open the congestion window, in order or not (tcp_may_raise_cwnd()).

mod tlp;

#[cfg(test)]
mod tests;

use std::ops::Range;

use airwire::time::{Duration, Instant};
use tlp::Tlp;

use super::send_order::{OrderedTransmission, SendOrder, is_in_flight};
use super::{Correction, Detect, LossEpisode, MAX_REORDERING, MeasuredReordering, Opens, Traits, Verdict};
use crate::flight::{Delivery, SegmentState, Sent};
use crate::profile::jiffies;
use crate::profile::recovery::RackDialect;
use crate::recovery::{Ack, RecoveryState, Transmission, TransmissionKind, View};

/// Number of recoveries after which the reordering window is narrow again (RACK.reo_wnd_persist).
const REO_WND_PERSIST: u32 = 16;

/// TCP_TIMEOUT_MIN_US of Linux.
const TIMEOUT_MIN: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(crate) struct Rack {
    dialect: RackDialect,
    /// RACK.xmit_ts and RACK.end_seq: the delivered segment that was sent last.
    newest: Option<(Instant, u64)>,
    /// RACK.rtt.
    rtt: Duration,
    /// RACK.min_RTT.
    min_rtt: Option<Duration>,
    /// RACK.fack: one past the highest byte delivered.
    fack: u64,
    /// Reordering since the connection began. The degree is measured in Linux only, where a timeout may reset
    /// it.
    reordering: MeasuredReordering,
    /// RACK.dsack_round: D-SACKs before this offset is acknowledged belong to the same round trip.
    dsack_round: Option<u64>,
    reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    in_recovery: bool,
    /// A delivery, or an undo, since the last search for losses (`rack.advanced`).
    advanced: bool,
    /// Transmissions in flight for which no segment sent later has been delivered.
    on_time: SendOrder,
    /// Transmissions in flight for which a segment sent later has been delivered.
    overtaken: SendOrder,
    /// Time at which the last overtaken segment is due.
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
            reordering: MeasuredReordering::default(),
            dsack_round: None,
            reo_wnd_mult: 1,
            reo_wnd_persist: REO_WND_PERSIST,
            in_recovery: false,
            advanced: false,
            on_time: SendOrder::default(),
            overtaken: SendOrder::default(),
            reordering_timer: None,
            tlp: Tlp::new(dialect),
        }
    }
}

impl Detect for Rack {
    fn traits(&self) -> Traits {
        Traits {
            mistakes_reordering: false,
            opens: if self.reordering.degree > 0 { Opens::OutOfOrder } else { Opens::InOrder },
            shares_timer: self.dialect == RackDialect::Linux,
            reordering: self.reordering,
            ..Traits::default()
        }
    }

    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        // The handshake has provided the first sample.
        self.min_rtt = self.min_rtt.or_else(|| view.rtt.min());
        self.on_time.push(OrderedTransmission { sent_at: view.now, start: transmission.start });
        let may_be_last = transmission.kind == TransmissionKind::New && !transmission.is_window_probe;
        self.tlp.on_sent(view, may_be_last);
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Verdict {
        self.update(view, ack);
        self.detect_reordering(view, ack);
        self.update_reo_wnd_mult(view, ack);
        let repaired = self.tlp.on_ack(view, ack);
        let searches = std::mem::take(&mut self.advanced) || self.dialect != RackDialect::Linux;
        let lost = if searches { self.detect_loss(view) } else { Verdict::Nothing };
        match (lost, repaired) {
            (Verdict::Nothing, Some(window_when_sent)) => {
                Verdict::Repaired { window_when_sent, why: "TLP: the probe repaired a loss" }
            }
            (lost, _) => lost,
        }
    }

    fn on_episode(&mut self, _view: &View<'_>) {
        self.in_recovery = true;
        self.tlp.cancel();
    }

    fn on_correction(&mut self, view: &View<'_>, correction: Correction) {
        if correction == Correction::Reneged {
            self.reordering_timer = None;
            self.tlp.cancel();
        }
        if self.dialect != RackDialect::Linux {
            return;
        }
        if correction == Correction::ProbeAnswered {
            self.tlp.end_probe();
        }
        let Correction::Undone(restore) = correction else { return };
        self.in_recovery &= restore.window.is_none();
        self.advanced |= restore.window.is_some();
        if restore.reordered {
            let una = view.flight.una();
            let highest = view.flight.sacked_ranges().last().map_or(una, |range| range.end);
            self.note_reordering(view, view.cc.previous_una..highest);
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.in_recovery = true;
        self.reordering_timer = None;
        // Linux 6.18, tcp_enter_loss(): DupThresh SACKed segments before a timeout suggest that the degree of
        // reordering was overestimated.
        if view.cc.state() == RecoveryState::Open && self.enough_sacked(view) {
            self.reordering.degree = 0;
        }
        if view.rules.timeout.forgets_sacks {
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
    /// Updates RACK.min_RTT and RACK.segment (§6.2 steps 1 and 2).
    fn update(&mut self, view: &View<'_>, ack: &Ack) {
        let sacked = ack.originals.newest.map(|delivery| view.now - delivery.sent_at);
        let min_rtt = [self.min_rtt, view.rtt.min(), ack.rtt, sacked].into_iter().flatten().min();
        let known = match self.dialect {
            RackDialect::Rfc8985 => min_rtt,
            // tcp_clean_rtx_queue() updates the minimum afterwards.
            RackDialect::Linux => self.min_rtt,
        };
        self.min_rtt = min_rtt;
        let certain = |delivery: &Delivery| !delivery.resent || !is_ambiguous(view, ack, delivery, known);
        let newest = Delivery::later(ack.originals.newest, ack.newest.filter(certain));
        let Some(newest) = newest else { return };
        let timed = match self.dialect {
            RackDialect::Rfc8985 => newest,
            RackDialect::Linux => ack.last.into_iter().flatten().find(certain).unwrap_or(newest),
        };
        self.rtt = view.now - timed.sent_at;
        self.newest = self.newest.max(Some((newest.sent_at, newest.end)));
        self.advanced = true;
    }

    /// Detects reordering (§6.2 step 3).
    fn detect_reordering(&mut self, view: &View<'_>, ack: &Ack) {
        let original = ack.originals.lowest.filter(|(_, end)| *end < self.fack).map(|(start, _)| start);
        let overtaken = original.into_iter().chain(self.needless_copy(view, ack)).min();
        self.fack = self.fack.max(view.flight.una()).max(ack.highest_sacked.unwrap_or(0));
        if let Some(start) = overtaken {
            self.note_reordering(view, start..self.fack);
        }
    }

    /// Returns the start of a SACKed segment whose retransmission the ACK reports as a duplicate. The original
    /// was therefore only late (Linux 6.18, tcp_sacktag_one()).
    fn needless_copy(&self, view: &View<'_>, ack: &Ack) -> Option<u64> {
        let (left, right) = ack.dsack.filter(|_| self.dialect == RackDialect::Linux)?;
        let sent = view.flight.segment_at(left).filter(|sent| sent.start == left && sent.end <= right)?;
        // If this ACK is the first to report the segment, the order of arrival is unknown.
        let known = sent.state == SegmentState::Sacked && ack.newly_sacked.segments == 0;
        (known && sent.transmissions > 1).then_some(left)
    }

    /// Records that the end of `range` has overtaken its beginning (Linux 6.18, tcp_check_sack_reordering()).
    fn note_reordering(&mut self, view: &View<'_>, range: Range<u64>) {
        let segments = (range.end - range.start).div_ceil(view.smss).min(MAX_REORDERING) as u32;
        self.reordering.events += 1;
        if self.dialect == RackDialect::Linux && segments > view.rules.detection.dup_thresh {
            self.reordering.degree = self.reordering.degree.max(segments);
        }
    }

    /// Adapts the reordering window to D-SACKs and recoveries (§6.2 step 4).
    fn update_reo_wnd_mult(&mut self, view: &View<'_>, ack: &Ack) {
        self.dsack_round.take_if(|round| view.flight.una() >= *round);
        let in_recovery = matches!(view.cc.state(), RecoveryState::Recovery | RecoveryState::Loss);
        let over = std::mem::replace(&mut self.in_recovery, in_recovery) && !in_recovery;
        let widens = match (self.dialect, ack.dsack) {
            (_, None) => false,
            (RackDialect::Rfc8985, Some(_)) => true,
            (RackDialect::Linux, Some((_, end))) => self.has_seen_reordering() && !self.tlp.is_probed(end),
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

    fn has_seen_reordering(&self) -> bool {
        self.reordering.events > 0
    }

    fn enough_sacked(&self, view: &View<'_>) -> bool {
        view.flight.sacked().segments >= u64::from(view.rules.detection.dup_thresh)
    }

    /// Returns RACK.reo_wnd.
    fn reo_wnd(&self, view: &View<'_>) -> Duration {
        if !self.has_seen_reordering() && (self.in_recovery || self.enough_sacked(view)) {
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

    /// Detects losses (§6.2 step 5). Both lists are in sending order, so their first entry is due first and
    /// their last entry is due last.
    fn detect_loss(&mut self, view: &View<'_>) -> Verdict {
        self.reordering_timer = None;
        let Some(newest) = self.newest else { return Verdict::Nothing };
        let flight = view.flight;
        while let Some((copy, _)) = self.on_time.first(flight).filter(|(_, sent)| is_before(sent, newest)) {
            self.on_time.pop_first();
            self.overtaken.push(copy);
        }
        let patience = self.rtt + self.reo_wnd(view);
        let is_due = |copy: OrderedTransmission| copy.sent_at + patience <= view.now;
        let mut starts = Vec::new();
        while let Some((copy, _)) = self.overtaken.first(flight).filter(|(copy, _)| is_due(*copy)) {
            self.overtaken.pop_first();
            starts.push(copy.start);
        }
        // The head is on neither list if it was declared lost and this later proved wrong. Linux leaves a
        // retransmitted head to the timer (tcp_rack_detect_loss() removes it from its list).
        let is_left = |head: &Sent| self.dialect == RackDialect::Linux && head.state == SegmentState::Resent;
        let head =
            flight.head().filter(|head| is_in_flight(head) && is_before(head, newest) && !is_left(head));
        let mut head = head.map(OrderedTransmission::of).filter(|head| !starts.contains(&head.start));
        starts.extend(head.take_if(|head| is_due(*head)).map(|head| head.start));
        let waiting = head.into_iter().chain(self.overtaken.last(flight));
        let due = waiting.map(|copy| copy.sent_at + patience).max();
        self.reordering_timer = due.map(|due| self.timer_for(view.now, due));
        if starts.is_empty() {
            return Verdict::Nothing;
        }
        starts.sort_unstable();
        let why = "RACK: a segment sent later was delivered";
        Verdict::Segments { starts, episode: LossEpisode::Current, why }
    }
}

/// Returns whether an earlier copy of the segment may have arrived instead. A timestamp echo decides this only for
/// data in sequence.
fn is_ambiguous(view: &View<'_>, ack: &Ack, delivery: &Delivery, min_rtt: Option<Duration>) -> bool {
    let in_sequence = delivery.end <= view.flight.una();
    let earlier = ack.ecr.is_some_and(|ecr| (ecr.wrapping_sub(delivery.tsval) as i32) < 0);
    in_sequence && earlier || min_rtt.is_some_and(|min_rtt| view.now - delivery.sent_at < min_rtt)
}

/// RACK_sent_after(newest, sent).
fn is_before(sent: &Sent, newest: (Instant, u64)) -> bool {
    (sent.last_sent, sent.end) < newest
}
