//! The steps of SEGMENT ARRIVES (RFC 9293 §3.10.7.4) that concern the receiver: the acceptability test, the
//! timestamp, the ECN mark, and the limits on answers to unacceptable segments.

use airwire::options::Timestamps;
use airwire::segment::{Ecn, Flags, Segment};
use airwire::time::{Duration, Instant};

use super::linux::Acks;
use super::{AckDue, Dsack, Receiver};
use crate::events::Refusal;
use crate::profile::Profile;
use crate::tcp::context::Context;
use crate::tcp::negotiated::Negotiated;
use crate::tcp::socket::State;
use crate::tcp::statistics::Statistics;

/// Number of unacceptable data segments near RCV.NXT that a new connection acknowledges at once. Linux has no
/// such limit, so the profile `linux` must not reach it within a few segments.
pub(super) const FIRST_DATA_CREDIT: u16 = 16;
/// Maximum of the same number: the segments of a large window, all of which the peer may retransmit.
const MAX_DATA_CREDIT: u16 = 8192;

/// RFC 7323 §5.5: an older TS.Recent is invalid.
pub(in crate::tcp) const PAWS_VALID: Duration = Duration::from_secs(24 * 24 * 3600);

/// Replies that forged segments may have provoked (RFC 5961 §7). They are counted per connection. If
/// connections shared a count, an attacker could derive it from the replies on its own connection
/// (CVE-2016-5696).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenges {
    /// Time of the last challenge ACK, or of the last answer to a repeated SYN.
    last: Option<Instant>,
    /// The second in which `sent` counts.
    second: u64,
    sent: u32,
    /// Time of the last ACK of unacceptable data that [`Receiver::data_credit`] did not cover.
    last_for_data: Option<Instant>,
}

/// The result of the first step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum Acceptability {
    Acceptable,
    /// PAWS: the timestamp is old.
    Old,
    /// The segment must be dropped without an answer.
    Dropped(Refusal),
    /// Outside the window. `copy` is true if the whole segment was received before.
    OutOfWindow {
        copy: bool,
    },
}

impl Receiver {
    /// First step: PAWS (RFC 7323 §5.3 R1 to R3) and the window.
    pub(in crate::tcp) fn check_sequence(
        &self,
        cx: &Context,
        now: Instant,
        segment: &Segment<'_>,
    ) -> Acceptability {
        let reset = segment.flags.contains(Flags::RST);
        if cx.negotiated.timestamps() && !reset {
            match segment.options.timestamps {
                Some(ts) if self.is_old_timestamp(&cx.profile, now, ts.val) => return Acceptability::Old,
                // RFC 7323 §3.2: after negotiation, a segment without the option is not from the peer.
                None if !cx.profile.validation.tolerate_missing_timestamps => {
                    return Acceptability::Dropped(Refusal::MissingTimestamp);
                }
                _ => {}
            }
        }
        match reset {
            true if self.is_reset_in_window(cx, segment) => Acceptability::Acceptable,
            true => Acceptability::Dropped(Refusal::ResetOutOfWindow),
            false if self.in_window(&cx.profile, segment) => Acceptability::Acceptable,
            false => Acceptability::OutOfWindow { copy: self.repeats_received(segment) },
        }
    }

    /// Judges a segment with an old timestamp by tcp_disordered_ack_check() of Linux 6.18. `is_overtaken` returns,
    /// from the offset of an ACK and the age of its timestamp in ticks, whether a later ACK has overtaken it.
    pub(in crate::tcp) fn judge_old(
        &self,
        cx: &Context,
        segment: &Segment<'_>,
        is_overtaken: impl FnOnce(u64, u32) -> bool,
    ) -> Acceptability {
        let Some(ts) = cx.negotiated.timestamps_of(segment) else { return Acceptability::Old };
        if segment.seq_len() > 0 || !segment.flags.contains(Flags::ACK) {
            return Acceptability::Old;
        }
        let (next, age) = (self.nxt(), self.ts_recent.wrapping_sub(ts.val));
        match self.offset_of(segment) {
            Some(start) if start < next => Acceptability::Dropped(Refusal::OldTimestamp),
            Some(start) if start == next && is_overtaken(start, age) => Acceptability::Acceptable,
            _ => Acceptability::Old,
        }
    }

    /// Returns true if the segment repeats received data, whose ACK was lost.
    fn repeats_received(&self, segment: &Segment<'_>) -> bool {
        let len = segment.seq_len();
        len > 0 && self.offset_of(segment).is_some_and(|start| start + len <= self.nxt())
    }

    fn is_old_timestamp(&self, profile: &Profile, now: Instant, val: u32) -> bool {
        let behind = self.ts_recent.wrapping_sub(val) as i32;
        behind > profile.validation.paws_slack && now - self.ts_recent_at < PAWS_VALID
    }

    /// RFC 9293 §3.10.7.4: the four cases of the acceptability test.
    #[inline]
    pub(in crate::tcp) fn in_window(&self, profile: &Profile, segment: &Segment<'_>) -> bool {
        let next = self.nxt();
        let Some(start) = self.offset_of(segment) else { return false };
        if profile.validation.accepts_unacknowledged {
            return self.is_in_sequence_of_linux(start, segment);
        }
        let window = self.wnd();
        let inside = |offset: u64| offset >= next && offset < next + window;
        match (segment.seq_len(), window) {
            (0, 0) => start == next,
            // A segment exactly at the right edge carries a valid ACK, and real systems accept it.
            (0, _) => inside(start) || start == next + window,
            (_, 0) => false,
            (len, _) => inside(start) || inside(start + len - 1),
        }
    }

    /// tcp_sequence() of Linux 6.18. A segment that begins in the window and ends beyond it is taken whole,
    /// unless the application has data or the peer's FIN to read.
    fn is_in_sequence_of_linux(&self, start: u64, segment: &Segment<'_>) -> bool {
        let end = start + segment.seq_len();
        let edge = self.adv.max(self.nxt());
        let fin = u64::from(segment.flags.contains(Flags::FIN));
        let has_read_all = self.buffer.readable() == 0 && (self.fin_is_read || !self.has_reached_fin());
        end >= self.last_ack_sent && (end <= edge + fin || (start <= edge && has_read_all))
    }

    /// Returns true if a RST is in the window. RFC 5961 §3.2 checks only the sequence number: it is RCV.NXT,
    /// even with a closed window (for which RFC 9293 §3.10.7.4 makes an allowance), or inside the window.
    fn is_reset_in_window(&self, cx: &Context, segment: &Segment<'_>) -> bool {
        let next = self.nxt();
        let Some(start) = self.offset_of(segment) else { return false };
        if cx.profile.validation.accepts_unacknowledged {
            return self.is_in_sequence_of_linux(start, segment) || self.omits_fin(cx.state(), start);
        }
        start == next || (next..self.adv).contains(&start)
    }

    /// Returns true if a RST in the window ends the connection without a challenge (RFC 5961 §3.2): it is at
    /// RCV.NXT. Linux also accepts a RST whose sequence number does not count the peer's FIN, or equals the
    /// right edge of the highest SACK block (tcp_validate_incoming()).
    pub(in crate::tcp) fn is_exact_reset(&self, cx: &Context, segment: &Segment<'_>) -> bool {
        self.offset_of(segment).is_some_and(|start| {
            start == self.nxt()
                || (cx.profile.validation.accepts_unacknowledged
                    && (self.omits_fin(cx.state(), start)
                        || self.last_block_end(&cx.negotiated) == Some(start)))
        })
    }

    /// tcp_reset_check() of Linux 6.18
    fn omits_fin(&self, state: State, start: u64) -> bool {
        let has_fin = matches!(state, State::CloseWait | State::LastAck | State::Closing);
        has_fin && start + 1 == self.nxt()
    }

    /// Records a segment outside the window that is answered with an ACK. A segment without an answer may be
    /// forged, and does not change the next ACK.
    pub(in crate::tcp) fn note_unacceptable(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        segment: &Segment<'_>,
        copy: bool,
    ) {
        self.note_duplicate(cx, statistics, segment);
        // With the original's timestamp, the sender would measure the whole timeout as a round-trip time, and
        // its timeouts would grow (RFC 7323 §4.3 changed RFC 1323 for this case). TS.Recent is not updated,
        // because a forged duplicate with a future timestamp would make all later segments old.
        let echoed = copy && cx.profile.acks.echo_duplicates;
        self.copy_tsval = segment.options.timestamps.map(|ts| ts.val).filter(|_| echoed);
    }

    /// Records that a segment passed every check. `keeps_timestamp` is true if it must not change TS.Recent.
    pub(in crate::tcp) fn note_accepted(
        &mut self,
        cx: &Context,
        now: Instant,
        segment: &Segment<'_>,
        keeps_timestamp: bool,
    ) {
        self.data_credit = (self.data_credit + 1).min(MAX_DATA_CREDIT);
        if !keeps_timestamp {
            self.refresh_ts_recent(cx, now, segment);
        }
    }

    /// RFC 7323 §4.3: only a segment that starts at or below Last.ACK.sent may update TS.Recent. Choice: a
    /// segment that only repeats received data does not update it, except in Linux (tcp_replace_ts_recent()).
    fn refresh_ts_recent(&mut self, cx: &Context, now: Instant, segment: &Segment<'_>) {
        let Some(ts) = cx.negotiated.timestamps_of(segment) else { return };
        let (start, next) = (self.offset_of(segment), self.nxt());
        let repeats = start.is_some_and(|start| start < next && start + segment.seq_len() <= next);
        if repeats && !cx.profile.validation.accepts_unacknowledged {
            return;
        }
        // §5.5: a TS.Recent that was not updated for 24 days is replaced by any timestamp.
        let newer = ts.val.wrapping_sub(self.ts_recent) as i32 >= 0 || now - self.ts_recent_at >= PAWS_VALID;
        if newer && start.is_some_and(|start| start <= self.last_ack_sent) {
            self.set_ts_recent(now, ts);
        }
    }

    /// Processes the SYN,ACK of a simultaneous open. Linux takes TS.Recent from the SYN,ACK, and treats its
    /// SYN as a duplicate (tcp_data_queue()).
    pub(in crate::tcp) fn note_repeated_syn(&mut self, cx: &Context, now: Instant, segment: &Segment<'_>) {
        if !self.policy.is_linux() {
            return;
        }
        let newer = |ts: &Timestamps| ts.val.wrapping_sub(self.ts_recent) as i32 >= 0;
        if let Some(ts) = cx.negotiated.timestamps_of(segment).filter(newer) {
            self.set_ts_recent(now, ts);
        }
        self.dsack = cx.profile.acks.dsack.then(|| Dsack::new((0, 1)));
        self.policy.enter_quick_ack_mode(&cx.profile, u32::MAX);
    }

    /// Updates TS.Recent in states without the checks of [`Self::refresh_ts_recent`].
    pub(in crate::tcp) fn replace_ts_recent(
        &mut self,
        negotiated: &Negotiated,
        now: Instant,
        segment: &Segment<'_>,
    ) {
        if let Some(ts) = negotiated.timestamps_of(segment) {
            self.set_ts_recent(now, ts);
        }
    }

    /// Returns TS.Recent and the time of its last update.
    pub(in crate::tcp) fn ts_recent(&self) -> (u32, Instant) {
        (self.ts_recent, self.ts_recent_at)
    }

    /// Processes the ECN marks of an acceptable segment at `offset`, and measures the round-trip time.
    pub(in crate::tcp) fn note_marks(
        &mut self,
        cx: &Context,
        now: Instant,
        segment: &Segment<'_>,
        offset: u64,
    ) {
        if cx.profile.validation.accepts_unacknowledged && segment.flags.contains(Flags::CWR) {
            // tcp_ecn_accept_cwr() of Linux, which tcp_ack() calls for all segments.
            self.echo_ce = false;
        }
        // The ECN mark of a duplicate segment, or of one after the FIN, is ignored.
        let is_new = || {
            (segment.seq_len() == 0 || offset + segment.seq_len() > self.nxt())
                && !(self.policy.is_linux() && self.starts_beyond_window(offset))
        };
        if cx.negotiated.ecn() && cx.state().may_receive_data() && is_new() {
            self.note_ecn(&cx.profile, segment);
        }
        if !segment.payload.is_empty() {
            self.policy.measure_rtt(cx, now, segment, self.buffer.readable() == 0);
        }
    }

    /// Returns true if data at `offset` is beyond the window.
    pub(super) fn starts_beyond_window(&self, offset: u64) -> bool {
        offset > self.nxt() && offset >= self.adv
    }

    /// RFC 3168 §6.1.3: a CE mark is echoed until a CWR arrives.
    fn note_ecn(&mut self, profile: &Profile, segment: &Segment<'_>) {
        self.quicken_ecn_acks(profile, segment);
        if segment.flags.contains(Flags::CWR) {
            self.echo_ce = false;
        }
        if segment.ecn == Ecn::Ce {
            self.echo_ce = true;
        }
    }

    /// Returns true if `segment`, which starts at `start`, is in the window by tcp_in_window() of Linux 6.18.
    pub(in crate::tcp) fn overlaps_window(&self, start: u64, segment: &Segment<'_>) -> bool {
        let (len, next) = (segment.seq_len(), self.nxt());
        let edge = next + self.wnd();
        start == next || (start + len > next && start < edge) || (start == edge && len == 0)
    }

    /// Restarts the limits on answers to forged segments.
    pub(in crate::tcp) fn forget_challenges(&mut self) {
        self.challenges = None;
    }

    /// Answers an unacceptable segment with an ACK, if the limits permit it. Returns true if they do.
    pub(in crate::tcp) fn ack_unacceptable(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        segment: &Segment<'_>,
    ) -> bool {
        if segment.seq_len() == 0 {
            return self.challenge_ack(&cx.profile, statistics, now);
        }
        let may_ack = self.may_ack_data(cx, now, segment);
        if may_ack {
            self.ack = AckDue::Now;
        }
        may_ack
    }

    /// Returns true if unacceptable data may be acknowledged now. A peer that retransmits needs these ACKs,
    /// because an earlier one was lost, or for the D-SACK block that shows that the retransmission was
    /// spurious. Data far from RCV.NXT is probably forged, and three duplicate ACKs would cause a
    /// retransmission. Linux answers it each time (tcp_oow_rate_limited()).
    fn may_ack_data(&mut self, cx: &Context, now: Instant, segment: &Segment<'_>) -> bool {
        if self.data_credit > 0 && self.is_near(cx, segment) {
            self.data_credit -= 1;
            return true;
        }
        let challenges = self.challenges.get_or_insert_default();
        interval_is_over(&mut challenges.last_for_data, now, cx.profile.validation.challenge_interval)
    }

    /// Returns true if the segment starts within one window of RCV.NXT, as retransmissions and window probes
    /// do. A blind attacker hits this range with probability 1/256.
    fn is_near(&self, cx: &Context, segment: &Segment<'_>) -> bool {
        const REACH: u64 = 8 << 20;
        let reach = REACH.max(cx.options.recv_limit(&cx.profile) as u64);
        self.offset_of(segment).is_some_and(|start| start.abs_diff(self.nxt()) <= reach)
    }

    /// Answers a segment in TIME-WAIT with an ACK. The limit on challenge ACKs applies to a segment without
    /// data, which may itself be such an answer, and to one far outside the window, which is probably forged.
    pub(in crate::tcp) fn ack_late_segment(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        now: Instant,
        segment: &Segment<'_>,
    ) {
        let has_text = segment.seq_len() > 0 && !segment.flags.contains(Flags::SYN);
        if has_text && self.is_near(cx, segment) {
            self.ack = AckDue::Now;
        } else {
            self.challenge_ack(&cx.profile, statistics, now);
        }
    }

    /// Sends a challenge ACK, if the limits permit it. Returns true if they do. They also keep two stacks
    /// from answering each other's ACKs forever.
    pub(in crate::tcp) fn challenge_ack(
        &mut self,
        profile: &Profile,
        statistics: &mut Statistics,
        now: Instant,
    ) -> bool {
        let may_challenge = self.may_challenge(profile, now);
        if may_challenge {
            statistics.challenge_acks += 1;
            self.ack = AckDue::Now;
        }
        may_challenge
    }

    /// Returns true if the profile's limits on challenge ACKs permit another one now (RFC 5961 §7).
    pub(in crate::tcp) fn may_challenge(&mut self, profile: &Profile, now: Instant) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        let challenges = self.challenges.get_or_insert_default();
        if !interval_is_over(&mut challenges.last, now, profile.validation.challenge_interval) {
            return false;
        }
        if challenges.second != second {
            (challenges.second, challenges.sent) = (second, 0);
        }
        let allowed = challenges.sent < profile.validation.challenge_acks_per_second;
        challenges.sent += u32::from(allowed);
        allowed
    }

    /// Seventh step in a state that receives no data: "Ignore the segment text". Text below the FIN is a
    /// duplicate whose ACK was lost.
    pub(in crate::tcp) fn ignore_text(
        &mut self,
        cx: &Context,
        statistics: &mut Statistics,
        segment: &Segment<'_>,
        offset: u64,
    ) {
        if offset < self.nxt() {
            self.note_duplicate(cx, statistics, segment);
            self.ack = AckDue::Now;
        }
    }

    /// Eighth step: acknowledges the peer's FIN, which RCV.NXT has just passed.
    pub(in crate::tcp) fn ack_fin(&mut self, cx: &Context, had_holes: bool) {
        if self.policy.is_linux() && cx.state() == State::CloseWait {
            // tcp_fin() resets all blocks (tcp_sack_reset()). In other states, it sends the ACK before.
            self.dsack.take_if(|dsack| !dsack.is_sent);
        }
        match cx.state() {
            // RFC 5681 §4.2: a segment that fills a hole is acknowledged at once, with or without FIN.
            State::CloseWait if had_holes && !self.policy.is_linux() => {}
            // Linux delays the ACK, because data or a FIN from the application may carry it.
            State::CloseWait => self.schedule_ack(&cx.profile, Acks::on_fin),
            _ => self.ack = AckDue::Now,
        }
    }
}

/// Returns true if at least `interval` has passed since `last`, and begins the next interval.
fn interval_is_over(last: &mut Option<Instant>, now: Instant, interval: Duration) -> bool {
    let is_over = last.is_none_or(|last| now - last >= interval);
    if is_over {
        *last = Some(now);
    }
    is_over
}
