//! Processing of acknowledgments: sequence numbers, SACK blocks, window and round-trip time. The result is
//! one [`Ack`] for the recovery.

use airwire::experiment::LossRate;
use airwire::segment::{Flags, Segment};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::Sender;
use crate::events::Refusal;
use crate::flight::{Acked, Amount, Delivery, Sacked, SegmentState, Sent};
use crate::profile::recovery::Growth;
use crate::profile::{RtoEvents, SendWindowUpdate, jiffies};
use crate::recovery::Ack;
use crate::recovery::engine::TimerRule;
use crate::rtt::Sample;
use crate::tcp::context::Context;
use crate::tcp::negotiated::Negotiated;
use crate::tcp::statistics::Statistics;

/// The data that an ACK newly acknowledges.
struct NewlyAcked {
    /// The acknowledgment number as an offset.
    number: u64,
    /// SND.UNA and FlightSize before the ACK.
    una: u64,
    flight_before: Amount,
    /// The segments that the ACK acknowledges cumulatively, and the segments that it SACKs.
    acked: Acked,
    sacked: Sacked,
    /// It stops below SACKed data, so the receiver has reneged (Linux, FLAG_SACK_RENEGING).
    reneges: bool,
    /// The range of its D-SACK block, the number of segments in it, and the number of retransmissions among
    /// these.
    dsack: Option<(u64, u64)>,
    reported: u64,
    duplicates: u64,
}

impl Sender {
    /// Fifth step of RFC 9293 §3.10.7.4: processes the segment's acknowledgment. `seq` is its offset in the
    /// peer's stream, and `is_first` is true for the first ACK. Returns an error if the segment must be dropped.
    pub(in crate::tcp) fn process_ack(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        segment: &Segment<'_>,
        (seq, is_first): (Option<u64>, bool),
    ) -> Result<(), Refusal> {
        let una = self.flight.una();
        let number = self.acceptable_ack(statistics, segment)?;
        if number == una && self.flight.is_empty() && is_bare(segment) {
            let changes_window = self.update_window(cx, statistics, now, segment, (seq, number, una));
            if !changes_window && segment.seq_len() == 0 {
                let (recovery, mut path) = self.recovery_and_path(now);
                recovery.on_repeated_ack(&mut path);
            }
            return Ok(());
        }
        self.reconsider_burst();
        let head_sent = self.flight.head().map(|head| head.first_sent);
        let newly = self.update_flight(cx, statistics, now, segment, number);
        let sacked_sent = self.sacked_sent(cx, &newly.sacked);
        let rtt = if number > una || sacked_sent.is_some() {
            let head_sent = head_sent.filter(|_| newly.dsack.is_none());
            self.measure_rtt(cx, now, segment, number, &newly.acked, (head_sent, sacked_sent))
        } else {
            None
        };
        let changes_window = self.update_window(cx, statistics, now, segment, (seq, number, una));
        // The first ACK acknowledges our SYN, even if early data is outstanding (RFC 7413).
        let adds_nothing = !is_first && self.adds_nothing(segment, number, una);
        let repeats = adds_nothing && !changes_window;
        let duplicate = match self.has_scoreboard(&cx.negotiated) {
            // RFC 6675 §2: it must carry new SACK information; the window may change.
            true => adds_nothing && newly.sacked.amount.bytes > 0,
            // RFC 5681 §2. While the window is closed, such an ACK answers a probe or refused data and is not a
            // duplicate.
            false => repeats && self.wnd > 0 && newly.dsack.is_none(),
        };
        let reneges = newly.reneges;
        let mut ack = Ack { rtt, duplicate, repeats, reneges, ..self.ack_for_recovery(cx, segment, &newly) };
        statistics.segments_delivered += ack.delivered.segments;

        // An old ACK without new information does not describe the present state of the path.
        if number < una && ack.newly_sacked.bytes == 0 && ack.dsack.is_none() {
            return Ok(());
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        let rule = match recovery.on_ack(&mut path, &mut ack) {
            TimerRule::Keep if !ack.advances() && self.is_older_than_copy(now, sacked_sent) => {
                TimerRule::Restart
            }
            rule => rule,
        };
        self.note_lost_mtu_probe(statistics);
        match reneges {
            true => self.await_repetition(now),
            false => self.apply_ack_to_timer(now, rule, ack.advances()),
        }
        Ok(())
    }

    /// Returns the acknowledgment number as an offset, if it is acceptable.
    #[inline]
    fn acceptable_ack(&self, statistics: &mut Statistics, segment: &Segment<'_>) -> Result<u64, Refusal> {
        let (una, max) = (self.flight.una(), self.flight.max());
        let Some(number) = segment.ack.offset(self.iss, una).filter(|ack| *ack <= max) else {
            // "If the ACK acks something not yet sent (SEG.ACK > SND.NXT), then send an ACK, drop the
            // segment".
            statistics.acks_of_unsent += 1;
            return Err(Refusal::AckOfUnsent);
        };
        // RFC 5961 §5.2: too old to be a delayed ACK of this connection.
        if number + self.max_wnd < una || number < self.min_ack {
            return Err(Refusal::AckTooOld);
        }
        Ok(number)
    }

    /// Moves SND.UNA to `number`, and records the SACK blocks.
    #[inline]
    fn update_flight(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        segment: &Segment<'_>,
        number: u64,
    ) -> NewlyAcked {
        let una = self.flight.una();
        let dsack = self.reported_duplicate(&cx.negotiated, segment, number);
        let (reported, duplicates) = self.count_duplicates(statistics, dsack);
        let flight_before = self.flight.outstanding();
        let acked = if number > una { self.advance(statistics, number) } else { Acked::default() };
        let is_linux = cx.profile.timers.rto_events == RtoEvents::Linux;
        if number > una && self.rtt.style().backoff_ends_with_progress() && !is_linux {
            self.rtt.clear_backoff();
        }
        self.confirm_mtu_probe(cx, now);
        // RFC 2018 §8: the ACK stops below SACKed data, so the receiver has reneged.
        let stops_below_sack = || self.flight.head().is_some_and(|head| head.state == SegmentState::Sacked);
        let reneges =
            self.has_scoreboard(&cx.negotiated) && stops_below_sack() && (number > una || !is_linux);
        statistics.reneged += u32::from(reneges);
        if reneges && !is_linux && self.flight.may_forget_sacks() {
            self.forget_sacks(now);
        }
        let sacked = self.process_sack_blocks(&cx.negotiated, statistics, segment, dsack);
        let reneges = reneges && is_linux;
        NewlyAcked { number, una, flight_before, acked, sacked, reneges, dsack, reported, duplicates }
    }

    /// Returns the ACK for the recovery, without the RTT sample and the classification as a duplicate.
    #[inline]
    fn ack_for_recovery(&self, cx: &Context, segment: &Segment<'_>, newly: &NewlyAcked) -> Ack {
        let NewlyAcked { acked, sacked, .. } = newly;
        let mut originals = acked.originals;
        originals.merge(sacked.originals);
        // Linux 6.18, tcp_dsack_seen(): a segment that the peer reports as a duplicate was delivered too. An
        // old ACK delivers nothing (tcp_ack()).
        let counts_duplicates = cx.profile.recovery.growth.amount == Growth::Delivered
            && self.has_scoreboard(&cx.negotiated)
            && newly.number >= newly.una;
        let again = if counts_duplicates { newly.reported } else { 0 };
        let in_sequence = acked.amount.bytes - acked.sacked_before.bytes;
        Ack {
            number: newly.number,
            acked: acked.amount,
            delivered: Amount {
                bytes: in_sequence + sacked.amount.bytes + again * self.smss,
                segments: acked.amount.segments - acked.sacked_before.segments
                    + sacked.amount.segments
                    + again,
            },
            newly_sacked: sacked.amount,
            highest_sacked: sacked.highest.map(|highest| highest.end),
            dsack: newly.dsack,
            duplicates: newly.duplicates,
            any_resent: acked.any_resent,
            ecr: cx.negotiated.timestamps_of(segment).map(|ts| ts.ecr),
            acked_tsval: acked.last_tsval.filter(|_| cx.negotiated.timestamps()),
            // With nothing outstanding, the sender has no sending rate to reduce.
            ece: segment.flags.contains(Flags::ECE) && cx.negotiated.ecn() && newly.flight_before.bytes > 0,
            flags: segment.flags,
            newest: Delivery::later(acked.newest, sacked.newest),
            last: [acked.last, sacked.highest],
            originals,
            loss_report: segment.options.loss_report.map(LossRate::ratio),
            reordered: segment.options.reordered,
            flight_before: newly.flight_before,
            ..Ack::default()
        }
    }

    /// Returns true if the segment repeats the current window and does not acknowledge unsent data.
    pub(in crate::tcp) fn predicts(&self, negotiated: &Negotiated, segment: &Segment<'_>) -> bool {
        let max = self.flight.max();
        offered_window(negotiated, segment) == self.wnd
            && segment.ack.offset(self.iss, max).is_none_or(|ack| ack <= max)
    }

    /// Records a predicted segment at `seq`. From then on, later segments may update the window, even if one with
    /// a higher sequence number has done so before (Linux, tcp_update_wl() in tcp_rcv_established()).
    pub(in crate::tcp) fn note_predicted(&mut self, seq: Option<u64>) {
        self.wl1 = seq.unwrap_or(self.wl1);
    }

    /// Returns true if the segment has the same ACK number as the last one.
    pub(in crate::tcp) fn repeats_number(&self, segment: &Segment<'_>) -> bool {
        segment.ack == self.iss.at(self.flight.una())
    }

    /// Returns true if the segment acknowledges less than an earlier one.
    pub(in crate::tcp) fn is_old_ack(&self, segment: &Segment<'_>) -> bool {
        let una = self.flight.una();
        segment.ack.offset(self.iss, una).is_none_or(|ack| ack < una)
    }

    /// Returns the sending time of the oldest newly SACKed segment, if SACKs yield RTT samples.
    fn sacked_sent(&self, cx: &Context, newly: &Sacked) -> Option<Instant> {
        let measures =
            cx.profile.timers.rto_events == RtoEvents::Linux && !self.rtt.style().times_one_segment();
        newly.oldest_original.filter(|_| measures)
    }

    /// Returns true if the SACKed data was sent before the latest transmission of the first outstanding
    /// segment. The timer must then not expire before the ACK of that transmission can arrive.
    fn is_older_than_copy(&self, now: Instant, sacked_sent: Option<Instant>) -> bool {
        let copy = self.flight.head().map(|head| head.last_sent);
        sacked_sent.is_some() && sacked_sent < copy && self.recovery.waits_until(now).is_none()
    }

    /// Moves SND.UNA to `to`, and returns the newly acknowledged segments.
    pub(super) fn advance(&mut self, statistics: &mut Statistics, to: u64) -> Acked {
        let acked = self.flight.on_ack(to);
        self.closed_window_timeouts = 0;
        let fin_acked = self.fin.is_some_and(|fin| to > fin);
        statistics.bytes_acked += acked.amount.bytes - u64::from(fin_acked);
        self.buffer.release_below(to.min(self.buffer.end()));
        self.release_pushes();
        if self.fin.is_none() || fin_acked {
            self.buffer.shrink_if_empty();
        }
        acked
    }

    /// Passes the round-trip time of the acknowledged data to the estimator, and returns it. `None`: no
    /// segment was timed, or it is unknown which transmission was acknowledged.
    ///
    /// A style that times one segment per window may time a segment whose ACK was delayed until a hole was
    /// filled. Its estimator accepts that sample, but the recovery gets the RTT from the echoed timestamp, if
    /// there is one.
    fn measure_rtt(
        &mut self,
        cx: &Context,
        now: Instant,
        segment: &Segment<'_>,
        to: u64,
        acked: &Acked,
        (head_sent, sacked_sent): (Option<Instant>, Option<Instant>),
    ) -> Option<Duration> {
        // RFC 6298 §3 (Karn): only segments that were sent once give a sample. The oldest one covered
        // includes the delay of a delayed ACK.
        let unambiguous = acked.oldest_unambiguous.filter(|_| !acked.any_resent);
        let (rtt, sent_at) = if self.rtt.style().times_one_segment() {
            let (_, sent_at) = *self.timed.take_if(|timed| timed.0 <= to)?;
            if let Some(timestamps) =
                segment.options.timestamps.filter(|_| cx.negotiated.timestamps() && acked.any_resent)
            {
                self.sample_rtt(now, sent_at);
                return self.rtt_from_echo(cx, now, timestamps.ecr, head_sent);
            }
            (now - sent_at, sent_at)
        } else if let Some(sent_at) = unambiguous.or(sacked_sent) {
            (now - sent_at, sent_at)
        } else if acked.any_resent && cx.negotiated.timestamps() {
            // RFC 7323 §4: the echoed timestamp identifies the transmission, unless the ACK reports a
            // duplicate (D-SACK). In that case the original's ACK was lost, but its timestamp may still be
            // echoed.
            let rtt = self.rtt_from_echo(cx, now, segment.options.timestamps?.ecr, head_sent)?;
            (rtt, now - rtt)
        } else {
            return None;
        };
        self.sample_rtt(now, sent_at);
        Some(rtt)
    }

    /// Returns the age of the echoed timestamp, if a segment that this ACK covers can be that old.
    pub(super) fn rtt_from_echo(
        &self,
        cx: &Context,
        now: Instant,
        ecr: u32,
        head_sent: Option<Instant>,
    ) -> Option<Duration> {
        let ticks = cx.negotiated.ts_now(&cx.profile, now).wrapping_sub(ecr);
        let rtt = cx.profile.timers.timestamp_tick * u64::from(ticks);
        let longest = now - head_sent? + cx.profile.timers.timestamp_tick;
        (ecr != 0 && rtt <= longest).then(|| rtt.max(cx.profile.timers.timestamp_tick / 2))
    }

    pub(super) fn sample_rtt(&mut self, now: Instant, sent_at: Instant) {
        let cwnd = self.recovery.congestion().cwnd;
        let sample = Sample { sent_at, now, una: self.flight.una(), nxt: self.flight.max(), cwnd };
        self.rtt.on_sample(&sample);
    }

    /// Returns the range of a D-SACK block. It is the first block, and lies below the ACK or inside the
    /// second block (RFC 2883 §4).
    fn reported_duplicate(
        &self,
        negotiated: &Negotiated,
        segment: &Segment<'_>,
        acked_to: u64,
    ) -> Option<(u64, u64)> {
        if !negotiated.sack() {
            return None;
        }
        let offset = |seq: Seq| seq.offset(self.iss, acked_to);
        let mut blocks = segment.options.sack.as_slice().iter();
        let (left, right) = blocks.next()?;
        let (left, right) = (offset(*left)?, offset(*right)?);
        let inside_second = blocks.next().is_some_and(
            |(l, r)| matches!((offset(*l), offset(*r)), (Some(l), Some(r)) if l <= left && right <= r),
        );
        let below_or_inside = right <= acked_to || inside_second;
        (left < right && right <= self.flight.max() && below_or_inside).then_some((left, right))
    }

    /// Returns the number of segments that a D-SACK block reports, and the number of retransmissions among
    /// them (Linux 6.18, tcp_dsack_seen(), tcp_check_dsack() and tcp_sacktag_one()). Both are zero once the
    /// peer has reported more segments than were retransmitted, because the network then duplicates packets.
    fn count_duplicates(&mut self, statistics: &mut Statistics, dsack: Option<(u64, u64)>) -> (u64, u64) {
        let plausible = |(left, right): &(u64, u64)| right - left <= self.max_wnd;
        let Some((left, right)) = dsack.filter(plausible) else { return (0, 0) };
        let reported = (right - left).div_ceil(self.smss);
        statistics.duplicates_reported += reported;
        if statistics.duplicates_reported > self.retransmissions() {
            return (0, 0);
        }
        let forgotten = right <= self.flight.una();
        (reported, if forgotten { reported } else { self.flight.resent_within(left..right) })
    }

    /// Returns true if SACK blocks are recorded: SACK was negotiated, and the repair algorithm uses it.
    pub(super) fn has_scoreboard(&self, negotiated: &Negotiated) -> bool {
        negotiated.sack() && self.recovery.uses_sack()
    }

    fn process_sack_blocks(
        &mut self,
        negotiated: &Negotiated,
        statistics: &mut Statistics,
        segment: &Segment<'_>,
        dsack: Option<(u64, u64)>,
    ) -> Sacked {
        let mut newly = Sacked::default();
        if !self.has_scoreboard(negotiated) {
            return newly;
        }
        let (una, max) = (self.flight.una(), self.flight.max());
        for (left, right) in segment.options.sack.as_slice() {
            let left = left.offset(self.iss, una);
            let right = right.offset(self.iss, una).map(|right| right + self.fin_behind(right));
            match (left, right) {
                (Some(left), Some(right)) if left < right && right <= max && left > una => {
                    self.flight.on_sack(left..right, &mut newly);
                }
                (Some(left), Some(right)) if left < right && right <= una => {}
                _ if dsack.is_some() => {}
                _ => statistics.bad_sack_blocks += 1,
            }
        }
        newly
    }

    /// Gives a receiver that has reneged half a round trip to repeat its SACK blocks. Then the timer expires and
    /// clears the scoreboard (Linux 6.18, tcp_check_sack_reneging()).
    fn await_repetition(&mut self, now: Instant) {
        const LEAST: Duration = Duration::from_millis(10);
        let wait = (self.rtt.srtt().unwrap_or_default() / 2).max(LEAST);
        self.rto = Some(jiffies::timer(jiffies::ticks(now) + jiffies::ticks_in(wait)));
    }

    /// Clears the scoreboard after the receiver reneged.
    pub(super) fn forget_sacks(&mut self, now: Instant) {
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.forget_sacks(&mut path);
    }

    /// Returns 1 if a FIN follows `right` in the same segment, else 0. The SACK blocks of some receivers omit
    /// the FIN, although it has arrived.
    fn fin_behind(&self, right: u64) -> u64 {
        let in_one_segment = |fin| self.flight.segment_at(fin).is_some_and(|sent| sent.start < fin);
        u64::from(self.fin.is_some_and(|fin| fin == right && in_one_segment(fin)))
    }

    /// Updates SND.WND (RFC 9293 §3.10.7.4). Returns true if the segment changes the window. In Linux, every
    /// update of SND.WL1 counts as a change (tcp_ack_update_window()).
    pub(super) fn update_window(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        segment: &Segment<'_>,
        (seq, acked_to, una): (Option<u64>, u64, u64),
    ) -> bool {
        let Some(seq) = seq else { return false };
        let wnd = offered_window(&cx.negotiated, segment);
        if acked_to < una || !self.may_update_window(cx, wnd, (seq, acked_to, una)) {
            return cx.profile.sending.send_window_update == SendWindowUpdate::Rfc9293 && wnd != self.wnd;
        }
        let before = self.wnd;
        // SND.WL2 is zero only until the first ACK after the SYN.
        let edge_before = self.wl2.max(1) + before;
        if acked_to + wnd < edge_before && self.wl2 > 0 {
            statistics.window_shrunk += 1;
        }
        self.wnd = wnd;
        if wnd > self.max_wnd {
            self.max_wnd = wnd;
            self.update_smss(cx);
        }
        self.wl1 = seq;
        self.wl2 = acked_to;
        let has_opened = before == 0 && wnd > 0;
        // Linux ends probing when the next buffer fits into the window (tcp_ack_probe()).
        let is_linux = cx.profile.sending.send_window_update == SendWindowUpdate::Linux;
        if has_opened && (!is_linux || self.buffer_end(self.flight.max()) <= acked_to + wnd) {
            self.stop_persist();
        }
        // Linux retransmits refused data only when its timer expires.
        if is_linux {
            return true;
        }
        let includes_head =
            self.flight.head().is_some_and(|h| edge_before < h.end && h.end <= acked_to + wnd);
        if has_opened || includes_head {
            self.resend_refused(now);
        }
        wnd != before
    }

    /// Returns true if a segment is newer than the one that last updated the window.
    fn may_update_window(&self, cx: &Context, wnd: u64, (seq, acked_to, una): (u64, u64, u64)) -> bool {
        let as_new = match cx.profile.sending.send_window_update {
            SendWindowUpdate::Rfc9293 => self.wl2 <= acked_to,
            SendWindowUpdate::Linux => wnd > self.wnd || wnd == 0,
        };
        // An ACK that advances SND.UNA updates the window with any sequence number. Otherwise one forged
        // segment far into the window could block window updates until SND.WL1 is passed.
        acked_to > una || self.wl1 < seq || (self.wl1 == seq && as_new)
    }

    /// Returns true if a pure ACK at `seq`, whose timestamp is `ticks` old, adds nothing because a later one has
    /// overtaken it (tcp_disordered_ack_check() and tcp_tsval_replay() of Linux 6.18).
    pub(in crate::tcp) fn is_overtaken(
        &self,
        cx: &Context,
        segment: &Segment<'_>,
        seq: u64,
        ticks: u32,
    ) -> bool {
        let (una, wnd) = (self.flight.una(), offered_window(&cx.negotiated, segment));
        self.repeats_number(segment)
            && !self.may_update_window(cx, wnd, (seq, una, una))
            && 5 * u64::from(ticks) <= 6 * self.rtt.rto().get().as_millis()
    }

    /// Retransmits data that the peer did not accept, when the window has room: the byte of a window
    /// probe, or data that was outside after the peer shrank its window (RFC 9293 §3.8.6, SHLD-16).
    fn resend_refused(&mut self, now: Instant) {
        let (Some(head), Some(newest)) = (self.flight.head(), self.flight.iter().next_back()) else { return };
        if self.rto.is_none() {
            self.flight.rewind();
            return;
        }
        // Data sent less than a round trip ago had not arrived when the peer sent this ACK, and may still be
        // accepted.
        let round_trip = self.rtt.min().unwrap_or_default();
        let is_on_path = |sent: &Sent| now - sent.last_sent < round_trip;
        let (head_is_on_path, newest_is_on_path) = (is_on_path(head), is_on_path(newest));
        if !newest_is_on_path {
            self.flight.rewind();
            if head_is_on_path {
                self.flight.skip_head();
            }
        } else if self.closed_window_timeouts == 0 {
            return;
        }
        if self.closed_window_timeouts > 0 {
            // The peer has answered the retransmissions, so the backoff is not a sign of congestion.
            self.rtt.clear_backoff();
        }
        self.restart_rto(now);
    }

    /// Returns true if the ACK meets the conditions that both definitions of a duplicate ACK share: same
    /// number as the last ACK, no data, and something outstanding.
    fn adds_nothing(&self, segment: &Segment<'_>, acked_to: u64, una: u64) -> bool {
        acked_to == una
            && segment.payload.is_empty()
            && !segment.flags.intersects(Flags::SYN.with(Flags::FIN))
            && !self.flight.is_empty()
    }

    fn apply_ack_to_timer(&mut self, now: Instant, rule: TimerRule, advanced: bool) {
        if self.flight.is_empty() {
            self.rto = None;
            return;
        }
        let restart = match self.rto {
            Some(_) => rule != TimerRule::Keep,
            // With a closed window, the persist timer sends probes instead of retransmissions.
            None => advanced && self.wnd > 0,
        };
        let since_transmission =
            rule == TimerRule::RestartSinceTransmission || self.rtt.style().counts_from_transmission();
        match restart {
            true if since_transmission => self.restart_rto_since_transmission(now),
            true => self.restart_rto(now),
            false => {}
        }
    }
}

/// Returns SEG.WND in bytes.
fn offered_window(negotiated: &Negotiated, segment: &Segment<'_>) -> u64 {
    u64::from(segment.window) << negotiated.snd_scale()
}

/// Returns true if the segment has no information about sent data besides the acknowledgment number. With
/// nothing outstanding, the recovery does not process such an ACK. Most segments with data are of this kind.
fn is_bare(segment: &Segment<'_>) -> bool {
    let options = &segment.options;
    !segment.flags.contains(Flags::ECE)
        && options.sack.is_empty()
        && options.loss_report.is_none()
        && options.reordered.is_none()
}

#[cfg(test)]
mod tests;
