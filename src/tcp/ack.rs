//! What an acknowledgment says: sequence space, SACK blocks, window, round-trip time.
//!
//! Everything is put into one [`Ack`] for the recovery machinery, which decides what follows from it.

use airwire::experiment::LossRate;
use airwire::segment::{Flags, Segment};
use airwire::time::{Duration, Instant};

use super::connection::Connection;
use crate::flight::{Delivery, Fate, Sacked};
use crate::recovery::Ack;
use crate::recovery::engine::TimerRule;
use crate::rtt::Sample;

impl Connection {
    /// Returns false if the segment is to be dropped.
    pub(super) fn take_ack(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        let (una, max) = (self.flight.una(), self.flight.max());
        let Some(acked_to) = segment.ack.offset(self.snd.iss, una).filter(|ack| *ack <= max) else {
            // RFC 9293 §3.10.7.4: something not yet sent is acknowledged.
            self.statistics.acks_of_unsent += 1;
            self.challenge_ack(now);
            return false;
        };
        // RFC 5961 §5.2: too old to be a late ACK of this connection.
        if acked_to + self.snd.max_wnd < una {
            self.challenge_ack(now);
            return false;
        }
        if acked_to == una && self.flight.is_empty() && is_bare(segment) {
            self.update_window(segment, acked_to, una);
            return true;
        }
        let mut ack = self.read_blocks(segment, acked_to);
        ack.number = acked_to;
        ack.flight_before = self.flight.outstanding();
        let head_sent = self.flight.head().map(|head| head.first_sent);
        if acked_to > una {
            self.advance(now, segment, acked_to, &mut ack, head_sent);
        }
        self.take_blocks(segment, &mut ack);
        let window_changed = self.update_window(segment, acked_to, una);
        ack.ece = segment.flags.contains(Flags::ECE) && self.ecn_enabled;
        ack.flags = segment.flags;
        ack.loss_report = segment.options.loss_report.map(LossRate::ratio);
        ack.reordered = segment.options.reordered;
        ack.ecr = segment.options.timestamps.filter(|_| self.ts_enabled).map(|ts| ts.ecr);
        ack.delivered.bytes = ack.delivered.bytes.saturating_add(ack.newly_sacked.bytes);
        ack.delivered.segments += ack.newly_sacked.segments;
        self.statistics.segments_delivered += ack.delivered.segments;
        ack.duplicate = self.is_duplicate(segment, acked_to, una, window_changed, &ack);

        // An old ACK without news says nothing about the present.
        if acked_to < una && ack.newly_sacked.bytes == 0 && ack.dsack.is_none() {
            return true;
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        let rule = recovery.on_ack(&mut path, &ack);
        self.apply_timer_rule(now, rule, ack.advances());
        true
    }

    /// The cumulative part.
    fn advance(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        to: u64,
        ack: &mut Ack,
        head_sent: Option<Instant>,
    ) {
        let acked = self.flight.on_ack(to);
        self.timers.refused = 0;
        ack.acked = acked.amount;
        ack.delivered.bytes = acked.amount.bytes - acked.sacked_before.bytes;
        ack.delivered.segments = acked.amount.segments - acked.sacked_before.segments;
        ack.original_delivered = acked.original_delivered;
        ack.any_resent = acked.any_resent;
        ack.newest = acked.newest;
        ack.originals = acked.originals;
        ack.acked_tsval = acked.last_tsval.filter(|_| self.ts_enabled);
        let fin_acked = self.snd.fin.is_some_and(|fin| to > fin);
        self.statistics.bytes_acked += acked.amount.bytes - u64::from(fin_acked);
        self.snd.buffer.release_below(to.min(self.snd.buffer.end()));
        if self.snd.fin.is_none() || fin_acked {
            self.snd.buffer.shrink_if_empty();
        }
        if self.rtt.style().backoff_ends_with_progress() {
            self.rtt.clear_backoff();
        }
        let ecr = segment.options.timestamps.map(|ts| ts.ecr);
        if self.rtt.style().times_one_segment() {
            if let Some((_, sent_at)) = self.timed.take_if(|(end, _)| *end <= to) {
                ack.rtt = Some(now - sent_at);
                self.sample_rtt(now, sent_at);
            }
        } else if !acked.any_resent {
            // Karn (RFC 6298 §3): the oldest segment covered, so that a delayed ACK counts as delay.
            if let Some(sent_at) = acked.oldest_unambiguous {
                ack.rtt = Some(now - sent_at);
                self.sample_rtt(now, sent_at);
            }
        } else if self.ts_enabled
            && let Some(rtt) = ecr.and_then(|ecr| self.rtt_from_echo(now, ecr, head_sent))
        {
            // RFC 7323 §4: the echo tells which copy it was.
            ack.rtt = Some(rtt);
            self.sample_rtt(now, now - rtt);
        }
    }

    /// The time since the echoed value was ours, if that can be true of a segment covered by this ACK.
    pub(super) fn rtt_from_echo(
        &self,
        now: Instant,
        ecr: u32,
        head_sent: Option<Instant>,
    ) -> Option<Duration> {
        let ticks = self.ts_now(now).wrapping_sub(ecr);
        let rtt = self.profile.ts_tick * u64::from(ticks);
        let longest = now - head_sent? + self.profile.ts_tick;
        (ecr != 0 && rtt <= longest).then(|| rtt.max(self.profile.ts_tick / 2))
    }

    pub(super) fn sample_rtt(&mut self, now: Instant, sent_at: Instant) {
        let cwnd = self.recovery.congestion().cwnd;
        let sample = Sample { sent_at, now, una: self.flight.una(), nxt: self.flight.max(), cwnd };
        self.rtt.on_sample(&sample);
    }

    /// RFC 2883 §4: a first block at or below the ACK, or inside the second, reports a duplicate.
    fn read_blocks(&self, segment: &Segment<'_>, acked_to: u64) -> Ack {
        let mut ack = Ack::default();
        if !self.sack_enabled {
            return ack;
        }
        let offset = |seq: airwire::seq::Seq| seq.offset(self.snd.iss, acked_to);
        let mut blocks = segment.options.sack.as_slice().iter();
        let Some((left, right)) = blocks.next() else { return ack };
        let (Some(left), Some(right)) = (offset(*left), offset(*right)) else { return ack };
        let inside_second = blocks.next().is_some_and(
            |(l, r)| matches!((offset(*l), offset(*r)), (Some(l), Some(r)) if l <= left && right <= r),
        );
        if left < right && right <= self.flight.max() && (right <= acked_to || inside_second) {
            ack.dsack = Some((left, right));
        }
        ack
    }

    fn take_blocks(&mut self, segment: &Segment<'_>, ack: &mut Ack) {
        if !self.sack_enabled || !self.recovery.uses_sack() {
            return;
        }
        let (una, max) = (self.flight.una(), self.flight.max());
        // RFC 2018 §8: the ACK stands in the middle of what was reported before: it was taken back.
        if self.flight.head().is_some_and(|head| head.fate == Fate::Sacked) {
            self.statistics.reneged += 1;
            self.flight.forget_sacks();
        }
        let mut news = Sacked::default();
        for (left, right) in segment.options.sack.as_slice() {
            let left = left.offset(self.snd.iss, una);
            let right = right.offset(self.snd.iss, una).map(|right| right + self.fin_behind(right));
            match (left, right) {
                (Some(left), Some(right)) if left < right && right <= max && left > una => {
                    self.flight.on_sack(left..right, &mut news);
                }
                (Some(left), Some(right)) if left < right && right <= una => {}
                _ if ack.dsack.is_some() => {}
                _ => self.statistics.bad_sack_blocks += 1,
            }
        }
        ack.newly_sacked = news.amount;
        ack.highest_sacked = news.highest;
        ack.newest = Delivery::later(ack.newest, news.newest);
        ack.originals.merge(news.originals);
        ack.original_delivered |= news.original_delivered;
    }

    /// Some receivers count only octets of data in a SACK block: a FIN that left in the same segment has arrived too.
    fn fin_behind(&self, right: u64) -> u64 {
        let in_one_segment = |fin| self.flight.segment_at(fin).is_some_and(|sent| sent.start < fin);
        u64::from(self.snd.fin.is_some_and(|fin| fin == right && in_one_segment(fin)))
    }

    /// SND.WND (RFC 9293 §3.10.7.4). Returns whether the window changed.
    pub(super) fn update_window(&mut self, segment: &Segment<'_>, acked_to: u64, una: u64) -> bool {
        let Some(seq) = segment.seq.offset(self.rcv.irs, self.rcv_nxt()) else { return false };
        // An ACK that advances is news whatever its number: one forged segment far into the window must not
        // hide the window for as long as SND.WL1 stands there.
        let newer = acked_to > una || self.snd.wl1 < seq || (self.snd.wl1 == seq && self.snd.wl2 <= acked_to);
        if acked_to < una || !newer {
            return false;
        }
        let wnd = u64::from(segment.window) << self.snd.scale;
        let before = self.snd.wnd;
        if acked_to + wnd < self.snd.wl2 + before && self.snd.wl2 > 0 {
            self.statistics.window_shrunk += 1;
        }
        self.snd.wnd = wnd;
        self.snd.max_wnd = self.snd.max_wnd.max(wnd);
        self.snd.wl1 = seq;
        self.snd.wl2 = acked_to;
        if before == 0 && wnd > 0 {
            self.stop_persist();
            // A probe's octet may have been refused: it has to be sent again.
            if !self.flight.is_empty() && self.timers.rto.is_none() {
                self.flight.rewind();
            }
        }
        before != wnd
    }

    /// RFC 5681 §2; with SACK, RFC 6675 §2: it must bring new information, the window may change.
    fn is_duplicate(
        &self,
        segment: &Segment<'_>,
        acked_to: u64,
        una: u64,
        window_changed: bool,
        ack: &Ack,
    ) -> bool {
        let plain = acked_to == una
            && segment.payload.is_empty()
            && !segment.flags.intersects(Flags::SYN.with(Flags::FIN))
            && !self.flight.is_empty();
        if self.sack_enabled && self.recovery.uses_sack() {
            plain && ack.newly_sacked.bytes > 0
        } else {
            plain && !window_changed && ack.dsack.is_none()
        }
    }

    fn apply_timer_rule(&mut self, now: Instant, rule: TimerRule, advanced: bool) {
        if self.flight.is_empty() {
            self.timers.rto = None;
            return;
        }
        let restart = match self.timers.rto {
            Some(_) => rule == TimerRule::Restart,
            // A closed window is probed, not retransmitted into.
            None => advanced && self.snd.wnd > 0,
        };
        if restart {
            let oldest = self.flight.head().filter(|_| self.rtt.style().counts_from_transmission());
            let since = oldest.map_or(now, |oldest| oldest.last_sent);
            self.restart_rto(since);
            // Acknowledged late enough, the next segment's time has passed already.
            self.timers.rto = self.timers.rto.max(Some(now));
        }
    }
}

/// It has nothing to say about what was sent but its number. With nothing under way it is no business of recovery's:
/// most of what a receiver of data sees.
fn is_bare(segment: &Segment<'_>) -> bool {
    let options = &segment.options;
    !segment.flags.contains(Flags::ECE)
        && options.sack.as_slice().is_empty()
        && options.loss_report.is_none()
        && options.reordered.is_none()
}
