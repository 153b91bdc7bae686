//! SEGMENT ARRIVES (RFC 9293 §3.10.7): one function per step, in the order of the RFC.

use airwire::options::Timestamps;
use airwire::segment::{Ecn, Flags, Segment};
use airwire::time::{Duration, Instant};

use super::connection::{Connection, Opening};
use super::pacer::Pacer;
use super::socket::{Ended, State};
use super::variables::{AckDue, Queued, Spacing};
use crate::events::{EventKind, Offer, Refusal};
use crate::profile::{Challenge, TextOnSyn};
use crate::recovery::Handshake;

/// The action that a segment requires of the host, after the connection has processed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reaction {
    /// Nothing.
    Done,
    /// Answer with a RST (RFC 9293 §3.5.2, groups 1 and 2), with these timestamps if the connection uses
    /// them.
    Reset(Option<Timestamps>),
    /// A passive open has completed.
    Established,
}

/// Number of unacceptable data segments near RCV.NXT that a new connection acknowledges at once. Linux has no
/// such limit, so the profile `linux` must not reach it within a few segments.
pub(super) const FIRST_DATA_CREDIT: u16 = 16;
/// Maximum of the same number: the segments of a large window, all of which the peer may retransmit.
const MAX_DATA_CREDIT: u16 = 8192;

/// RFC 7323 §5.5: an older TS.Recent is invalid.
pub(super) const PAWS_VALID: Duration = Duration::from_secs(24 * 24 * 3600);

enum Verdict {
    GoOn,
    Stop(Reaction),
}

use Verdict::{GoOn, Stop};

impl Connection {
    /// Creates a connection in SYN-RECEIVED for a SYN to a listening port.
    pub(crate) fn accept(now: Instant, opening: Opening, segment: &Segment<'_>) -> Self {
        let mut connection = Self::new(now, opening, State::SynReceived);
        connection.learn_from_syn(now, segment);
        connection.pending.syn = true;
        connection.queue_text_of_syn(segment);
        connection
    }

    pub(crate) fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        self.statistics.segments_in += 1;
        match self.state {
            // §3.10.7.1: the connection has ended, but the host has not removed it yet.
            State::Closed if segment.flags.contains(Flags::RST) => return Reaction::Done,
            State::Closed => return Reaction::Reset(None),
            State::SynSent => return self.in_syn_sent(now, segment),
            State::FinWait2 | State::TimeWait => {
                if let Some(reaction) = self.in_late_states(now, segment) {
                    return reaction;
                }
            }
            _ => {}
        }
        let was_syn_received = self.state == State::SynReceived;
        let reaction = self.in_other_states(now, segment);
        // The host has already passed a connection that was opened early to its listener.
        let opens = was_syn_received && self.state.is_synchronized() && !self.was_opened_early();
        if reaction == Reaction::Done && opens {
            return Reaction::Established;
        }
        reaction
    }

    /// SYN-SENT (§3.10.7.3).
    fn in_syn_sent(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        if segment.flags.contains(Flags::ACK) && !self.acks_our_syn(segment) {
            self.refuse(segment, Refusal::NotOurSyn);
            let reset = segment.flags.contains(Flags::RST);
            return if reset { Reaction::Done } else { Reaction::Reset(None) };
        }
        if segment.flags.contains(Flags::RST) {
            if segment.flags.contains(Flags::ACK) {
                self.end(Some(Ended::Refused));
            } else {
                self.refuse(segment, Refusal::ResetWithoutAck);
            }
            return Reaction::Done;
        }
        if !segment.flags.contains(Flags::SYN) {
            self.refuse(segment, Refusal::NoSyn);
            return Reaction::Done;
        }
        self.learn_from_syn(now, segment);
        self.heard_from_peer(now);
        if !segment.flags.contains(Flags::ACK) {
            // Simultaneous open: answer with SYN,ACK and wait for its ACK.
            self.enter(State::SynReceived);
            self.pending.syn = true;
            self.queue_text_of_syn(segment);
            return Reaction::Done;
        }
        self.negotiated.learn_ecn_answer(&self.profile, segment.flags);
        self.establish(now, segment);
        self.take_text_of_syn(now, segment);
        self.rcv.ack = AckDue::Now;
        // Data of the SYN that was not acknowledged is retransmitted with this ACK (RFC 7413 §4.2.2).
        self.pending.handshake_ack = self.flight.is_empty();
        Reaction::Done
    }

    /// The other states (§3.10.7.4).
    fn in_other_states(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        let steps: [fn(&mut Self, Instant, &Segment<'_>) -> Verdict; 4] =
            [Self::check_syn, Self::check_sequence, Self::check_rst, Self::check_ack];
        for step in steps {
            if let Stop(reaction) = step(self, now, segment) {
                return reaction;
            }
        }
        // Only a segment that passed every check proves that the peer is alive and may refresh TS.Recent.
        self.heard_from_peer(now);
        self.rcv.data_credit = (self.rcv.data_credit + 1).min(MAX_DATA_CREDIT);
        self.refresh_ts_recent(now, segment);
        let Some(offset) = segment.seq.offset(self.rcv.irs, self.rcv_nxt()) else { return Reaction::Done };
        // The ECN mark of a duplicate segment, or of one after the FIN, is ignored.
        let is_new = segment.seq_len() == 0 || offset + segment.seq_len() > self.rcv_nxt();
        if is_new && self.state.may_receive_data() {
            self.note_ecn(segment);
        }
        let had_holes = !self.rcv.buffer.out_of_order().is_empty();
        if self.rcv.linux.is_some() && !segment.payload.is_empty() {
            self.measure_receive_rtt(now, segment);
        }
        let reaction = self.check_data(now, segment, offset);
        if reaction == Reaction::Done {
            self.check_fin(now, had_holes);
            // Linux's fast path processes only the acknowledgment of a pure ACK.
            if segment.seq_len() > 0 || self.state != State::Established {
                self.settle_ack(now, segment);
            }
        }
        reaction
    }

    /// Fourth step: SYN. It comes first here because RFC 5961 §4.2 answers a SYN whatever its sequence
    /// number.
    fn check_syn(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::RST) {
            return GoOn;
        }
        if self.state == State::SynReceived {
            if segment.seq == self.rcv.irs && !segment.flags.contains(Flags::ACK) {
                // The SYN,ACK was lost: the peer retransmitted its SYN.
                if self.may_challenge(now) {
                    self.pending.syn = true;
                }
                return Stop(Reaction::Done);
            }
            if segment.seq == self.rcv.irs && self.acks_our_syn(segment) {
                // Simultaneous open: the peer's SYN,ACK, whose SYN was processed before.
                self.establish(now, segment);
                self.take_queued(now);
                self.rcv.ack = AckDue::Now;
                return Stop(Reaction::Done);
            }
        }
        if self.profile.challenge_syn == Challenge::Rfc793 && self.in_window(segment) {
            self.end(Some(Ended::Reset));
            return Stop(Reaction::Reset(self.timestamps_of_reset(now, segment)));
        }
        self.refuse(segment, Refusal::SynWhenOpen);
        self.challenge_ack(now);
        Stop(Reaction::Done)
    }

    /// First step: PAWS (RFC 7323 §5.3 R1 to R3) and the window.
    fn check_sequence(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        let reset = segment.flags.contains(Flags::RST);
        if self.negotiated.timestamps() && !reset {
            match segment.options.timestamps {
                Some(ts) if self.is_old_timestamp(now, ts.val) => {
                    self.statistics.unacceptable += 1;
                    self.refuse(segment, Refusal::OldTimestamp);
                    if self.ack_unacceptable(now, segment) {
                        self.note_duplicate(segment);
                    }
                    return Stop(Reaction::Done);
                }
                // §3.2: after negotiation, a segment without the option is not from the peer.
                None if !self.profile.tolerate_missing_timestamps => {
                    self.statistics.unacceptable += 1;
                    self.refuse(segment, Refusal::MissingTimestamp);
                    return Stop(Reaction::Done);
                }
                _ => {}
            }
        }
        let acceptable = if reset { self.is_reset_in_window(segment) } else { self.in_window(segment) };
        if acceptable {
            return GoOn;
        }
        self.statistics.unacceptable += 1;
        if reset {
            self.refuse(segment, Refusal::ResetOutOfWindow);
            return Stop(Reaction::Done);
        }
        let copy = self.repeats_received(segment);
        self.refuse(segment, if copy { Refusal::Copy } else { Refusal::OutOfWindow });
        // A segment that gets no ACK does not change the next one, because it may be forged.
        if self.ack_unacceptable(now, segment) {
            self.note_duplicate(segment);
            // Echoing the original's timestamp would make the sender take the whole timeout for a round trip,
            // and time out later each time (RFC 7323 §4.3 changed RFC 1323 for this case). TS.Recent is not
            // updated: a forged duplicate with a future timestamp would make all later segments look old.
            let echoed = copy && self.profile.echo_copies;
            self.rcv.copy_tsval = segment.options.timestamps.map(|ts| ts.val).filter(|_| echoed);
        }
        // §3.10.7.4: valid ACKs are accepted even with a closed window.
        let at_edge = segment.seq.offset(self.rcv.irs, self.rcv_nxt()).is_some_and(|o| o == self.rcv_nxt());
        let ends_at_next = segment.seq.at(segment.seq_len()) == self.rcv.irs.at(self.rcv_nxt());
        let repeats_fin = copy && ends_at_next && segment.flags.contains(Flags::FIN);
        if (at_edge || (repeats_fin && self.profile.acks_repeat_fin))
            && segment.flags.contains(Flags::ACK)
            && self.state.is_synchronized()
            && self.take_ack(now, segment)
        {
            self.check_fin_acked(now);
        }
        Stop(Reaction::Done)
    }

    /// Returns true if the segment repeats received data, whose ACK was lost.
    fn repeats_received(&self, segment: &Segment<'_>) -> bool {
        let start = segment.seq.offset(self.rcv.irs, self.rcv_nxt());
        let len = segment.seq_len();
        len > 0 && start.is_some_and(|start| start + len <= self.rcv_nxt())
    }

    fn is_old_timestamp(&self, now: Instant, val: u32) -> bool {
        let behind = self.rcv.ts_recent.wrapping_sub(val) as i32;
        behind > self.profile.paws_slack && now - self.rcv.ts_recent_at < PAWS_VALID
    }

    #[inline]
    fn in_window(&self, segment: &Segment<'_>) -> bool {
        let next = self.rcv_nxt();
        let Some(start) = segment.seq.offset(self.rcv.irs, next) else { return false };
        let window = self.rcv.adv.saturating_sub(next);
        let inside = |offset: u64| offset >= next && offset < next + window;
        let acceptable = match (segment.seq_len(), window) {
            (0, 0) => start == next,
            // A segment exactly at the right edge carries a valid ACK, and real systems accept it.
            (0, _) => inside(start) || start == next + window,
            (_, 0) => false,
            (len, _) => inside(start) || inside(start + len - 1),
        };
        let not_acknowledged = || start <= next && start + segment.seq_len() >= self.rcv.last_ack_sent;
        acceptable || (self.profile.accepts_unacknowledged && window > 0 && not_acknowledged())
    }

    /// Returns true if a RST is in the window. RFC 5961 §3.2 checks only the sequence number: it is RCV.NXT,
    /// even with a closed window (for which RFC 9293 §3.10.7.4 makes an allowance), or inside the window. In
    /// Linux the window begins at the last ACK sent.
    fn is_reset_in_window(&self, segment: &Segment<'_>) -> bool {
        let next = self.rcv_nxt();
        let least = if self.profile.accepts_unacknowledged { self.rcv.last_ack_sent.min(next) } else { next };
        let start = segment.seq.offset(self.rcv.irs, next);
        start.is_some_and(|start| start == next || (least..self.rcv.adv).contains(&start))
    }

    /// Second step: RST.
    fn check_rst(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        if !segment.flags.contains(Flags::RST) {
            return GoOn;
        }
        let exact = segment.seq.offset(self.rcv.irs, self.rcv_nxt()) == Some(self.rcv_nxt());
        if !exact && self.profile.challenge_rst == Challenge::Rfc5961 {
            self.refuse(segment, Refusal::ResetNotExact);
            self.challenge_ack(now);
            return Stop(Reaction::Done);
        }
        match self.state {
            State::SynReceived if !self.was_opened_early() => self.end(Some(Ended::Refused)),
            // Both sides have closed. If the peer has acknowledged all data, the RST loses nothing.
            State::Closing | State::LastAck | State::TimeWait if self.snd.buffer.len() == 0 => self.end(None),
            _ => self.end(Some(Ended::Reset)),
        }
        Stop(Reaction::Done)
    }

    /// Fifth step: ACK.
    fn check_ack(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        if !segment.flags.contains(Flags::ACK) {
            self.refuse(segment, Refusal::NoAck);
            return Stop(Reaction::Done);
        }
        if self.state == State::SynReceived {
            if !self.acks_our_syn(segment) {
                self.refuse(segment, Refusal::NotOurSyn);
                return Stop(Reaction::Reset(self.timestamps_of_reset(now, segment)));
            }
            self.establish(now, segment);
            self.take_queued(now);
        }
        if !self.take_ack(now, segment) {
            return Stop(Reaction::Done);
        }
        if self.profile.acks_restart_probes && self.snd.wnd == 0 {
            self.restart_persist(now);
        }
        self.check_fin_acked(now);
        if self.state == State::Closed { Stop(Reaction::Done) } else { GoOn }
    }

    /// Advances the state if our FIN has been acknowledged.
    fn check_fin_acked(&mut self, now: Instant) {
        if self.snd.fin.is_none_or(|fin| self.flight.una() <= fin) {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.enter(State::FinWait2);
                if self.orphaned {
                    let limit = self.orphan_limit();
                    self.timers.start_orphan(now + limit);
                }
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.end(None),
            _ => {}
        }
    }

    /// Seventh step: the segment text.
    fn check_data(&mut self, now: Instant, segment: &Segment<'_>, offset: u64) -> Reaction {
        if self.state == State::TimeWait {
            self.take_in_time_wait(now, segment, offset);
            return Reaction::Done;
        }
        if segment.seq_len() == 0 {
            return Reaction::Done;
        }
        if !self.state.may_receive_data() {
            // The peer's FIN has arrived: "Ignore the segment text". Text below the FIN is a duplicate whose
            // ACK was lost.
            if offset < self.rcv_nxt() {
                self.note_duplicate(segment);
                self.rcv.ack = AckDue::Now;
            }
            return Reaction::Done;
        }
        let end = offset + segment.payload.len() as u64;
        if self.refuses_data() && end > self.rcv_nxt() {
            // RFC 9293 §3.6.1: the application will not read this data, nor the data missing before an early
            // FIN.
            self.refuse(segment, Refusal::NobodyReads);
            self.end(Some(Ended::Aborted));
            return Reaction::Reset(self.timestamps_of_reset(now, segment));
        }
        self.take_data(now, segment, offset);
        self.discard_unwanted();
        Reaction::Done
    }

    /// Eighth step: FIN, once everything before it has arrived.
    fn check_fin(&mut self, now: Instant, had_holes: bool) {
        if self.rcv.fin.is_none_or(|fin| self.rcv.buffer.next() < fin) {
            return;
        }
        match self.state {
            State::SynReceived | State::Established => {
                self.enter(State::CloseWait);
                // RFC 5681 §4.2: a segment that fills a hole is acknowledged at once, with or without FIN.
                if !had_holes {
                    self.ack_fin();
                }
            }
            State::FinWait1 => {
                self.enter(State::Closing);
                self.rcv.ack = AckDue::Now;
            }
            State::FinWait2 => {
                self.rcv.ack = AckDue::Now;
                self.enter_time_wait(now);
            }
            _ => {}
        }
    }

    fn learn_from_syn(&mut self, now: Instant, segment: &Segment<'_>) {
        self.log(|| EventKind::PeerOffered(Offer::of(&segment.options, segment.flags)));
        let offers_sack = self.offers_sack();
        self.negotiated.learn(&self.profile, self.state, offers_sack, segment);
        self.rcv.irs = segment.seq;
        self.rcv.last_ack_sent = 1;
        if let Some(ts) = self.negotiated.timestamps_of(segment) {
            self.rcv.ts_recent = ts.val;
            self.rcv.ts_recent_at = now;
        }
        self.rcv.adv = 1 + self.first_window(self.state == State::SynReceived);
        self.rcv.promised = self.rcv.adv;
        // The window of a SYN is never scaled.
        self.snd.wnd = u64::from(segment.window);
        self.snd.max_wnd = self.snd.wnd;
        self.snd.wl1 = 0;
        self.snd.wl2 = 0;
        self.update_smss();
    }

    /// §3.10.7.2, §3.10.7.3: data and a FIN that arrive with a SYN are queued until the connection is
    /// established.
    fn queue_text_of_syn(&mut self, segment: &Segment<'_>) {
        let has_any = !segment.payload.is_empty() || segment.flags.contains(Flags::FIN);
        if has_any && self.profile.text_on_syn == TextOnSyn::Queued {
            self.rcv.queued = Some(Box::new(Queued::of(segment)));
        }
    }

    /// Processes the data that arrived with the peer's SYN. It has waited for a round trip, so its ACK is not
    /// delayed further (§3.8.6.3, MUST-40).
    fn take_queued(&mut self, now: Instant) {
        if let Some(queued) = self.rcv.queued.take() {
            self.take_text_of_syn(now, &queued.segment());
            self.rcv.ack = AckDue::Now;
        }
    }

    /// Processes the data and FIN after a SYN, from the sixth step on.
    fn take_text_of_syn(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.orphaned && !segment.payload.is_empty() {
            // The application will not read this data. The peer will retransmit it, and a RST will answer it
            // then.
            return;
        }
        self.take_data(now, segment, 1);
        self.check_fin(now, false);
    }

    pub(super) fn offers_sack(&self) -> bool {
        self.profile.sack.is_offered(self.recovery.wants_sack())
    }

    /// Returns true if the segment acknowledges our SYN, and nothing that was not sent. The SYN must have been
    /// sent: a host may process several packets before it sends.
    fn acks_our_syn(&self, segment: &Segment<'_>) -> bool {
        segment.ack.offset(self.snd.iss, 1).is_some_and(|acked| (1..=self.flight.max()).contains(&acked))
    }

    /// Establishes the connection after the ACK of our SYN.
    fn establish(&mut self, now: Instant, segment: &Segment<'_>) {
        // §3.10.4: a CLOSE in SYN-RECEIVED is queued until now.
        self.enter(if self.snd.fin.is_some() { State::FinWait1 } else { State::Established });
        self.timers.rto = None;
        self.pending.syn = false;
        let sent = self.take_ack_of_syn(segment);
        if !self.rtt.style().backoff_outlives_handshake() {
            self.rtt.clear_backoff();
        }
        let ecr = segment.options.timestamps.map(|ts| ts.ecr);
        match sent {
            Some((sent_at, 1)) if self.profile.time_handshake => self.sample_rtt(now, sent_at),
            Some((first_sent, 2..)) if self.negotiated.timestamps() => {
                if let Some(rtt) = ecr.and_then(|ecr| self.rtt_from_echo(now, ecr, Some(first_sent))) {
                    self.sample_rtt(now, now - rtt);
                }
            }
            _ => {}
        }
        if self.syn_timeouts > 0 {
            self.rtt.fall_back_after_lost_syn();
        }
        if !segment.flags.contains(Flags::SYN) {
            self.snd.least_ack = 1;
            if self.profile.half_window && !self.was_opened_early() {
                // Linux creates the socket at this point and does not keep the window of the SYN.
                self.snd.max_wnd = 0;
            }
            self.update_window(now, segment, 1, 1);
        }
        self.start_mtu_search(now);
        let agreement = self.negotiated.agreement(self.snd.smss);
        self.log(|| EventKind::Agreed(agreement));
        self.begin_transfer(now);
        self.conclude_handshake(now, segment);
        self.heard_from_peer(now);
    }

    /// Prepares the receiver for the peer's data.
    pub(super) fn begin_receiving(&mut self, now: Instant) {
        let mss = self.negotiated.expected_mss(&self.profile, &self.options);
        if let Some(linux) = &mut self.rcv.linux {
            linux.establish(now, self.negotiated.rcv_scale(), mss, self.snd.smss, 1);
        }
    }

    /// Prepares the sender for our data.
    pub(super) fn begin_sending(&mut self, now: Instant) {
        let handshake = Handshake {
            sack: self.negotiated.sack(),
            scoreboard: self.has_scoreboard(),
            timestamps: self.negotiated.timestamps(),
            ecn: self.negotiated.ecn(),
            peer_flags: self.negotiated.peer_flags(),
            syn_was_lost: self.syn_timeouts > self.profile.recovery.syn_timeouts_forgiven,
            ..Handshake::default()
        };
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_established(&mut path, &handshake);
        if recovery.paces() {
            self.snd.spacing = Some(Box::new(Spacing { pacer: Some(Pacer::new(now)), piece: None }));
        }
        self.snd.last_sent = now;
    }

    /// RFC 7323 §4.3: only a segment that spans Last.ACK.sent may update TS.Recent.
    fn refresh_ts_recent(&mut self, now: Instant, segment: &Segment<'_>) {
        let Some(ts) = self.negotiated.timestamps_of(segment) else { return };
        let start = segment.seq.offset(self.rcv.irs, self.rcv_nxt());
        // Linux accepts a duplicate and its timestamp. This is not imitated, because a forged duplicate would
        // make all later segments look old.
        if start.is_some_and(|start| start < self.rcv_nxt() && start + segment.seq_len() <= self.rcv_nxt()) {
            return;
        }
        // §5.5: a TS.Recent that was not updated for 24 days is replaced by any timestamp.
        let newer =
            ts.val.wrapping_sub(self.rcv.ts_recent) as i32 >= 0 || now - self.rcv.ts_recent_at >= PAWS_VALID;
        if newer && start.is_some_and(|start| start <= self.rcv.last_ack_sent) {
            self.rcv.ts_recent = ts.val;
            self.rcv.ts_recent_at = now;
        }
    }

    /// Processes ECN marks. A CE mark is echoed until a CWR arrives (RFC 3168 §6.1.3).
    fn note_ecn(&mut self, segment: &Segment<'_>) {
        if !self.negotiated.ecn() {
            return;
        }
        self.hasten_ecn_acks(segment);
        if segment.flags.contains(Flags::CWR) {
            self.rcv.echo_ce = false;
        }
        if segment.ecn == Ecn::Ce {
            self.rcv.echo_ce = true;
        }
    }

    /// Answers an unacceptable segment with an ACK, if the limits permit it. Returns true if they do.
    fn ack_unacceptable(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if segment.seq_len() == 0 {
            return self.challenge_ack(now);
        }
        if self.state == State::TimeWait {
            self.enter_time_wait(now);
        }
        let may_ack = self.may_ack_data(now, segment);
        if may_ack {
            self.rcv.ack = AckDue::Now;
        }
        may_ack
    }

    /// Returns true if unacceptable data may be acknowledged now. A peer that retransmits needs these ACKs:
    /// an earlier one was lost, or a D-SACK block shows that the retransmission was spurious. Data far from
    /// RCV.NXT is probably forged, and three duplicate ACKs would make the peer retransmit. Linux answers it
    /// each time (tcp_oow_rate_limited()).
    fn may_ack_data(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if self.rcv.data_credit > 0 && self.is_near(segment) {
            self.rcv.data_credit -= 1;
            return true;
        }
        let challenges = self.challenges.get_or_insert_default();
        interval_is_over(&mut challenges.last_for_data, now, self.profile.challenge_interval)
    }

    /// Returns true if the segment starts within one window of RCV.NXT, as retransmissions and window probes
    /// do. A blind attacker hits this range with probability 1/256.
    pub(super) fn is_near(&self, segment: &Segment<'_>) -> bool {
        const REACH: u64 = 8 << 20;
        let next = self.rcv_nxt();
        let reach = REACH.max(self.options.recv_limit(&self.profile) as u64);
        segment.seq.offset(self.rcv.irs, next).is_some_and(|start| start.abs_diff(next) <= reach)
    }

    /// Sends a challenge ACK, if the limits permit it. Returns true if they do. They also keep two stacks
    /// from answering each other's ACKs forever.
    pub(super) fn challenge_ack(&mut self, now: Instant) -> bool {
        let may_challenge = self.may_challenge(now);
        if may_challenge {
            self.statistics.challenge_acks += 1;
            self.rcv.ack = AckDue::Now;
        }
        may_challenge
    }

    /// Returns true if the profile's limits on challenge ACKs permit another one now (RFC 5961 §7).
    fn may_challenge(&mut self, now: Instant) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        let challenges = self.challenges.get_or_insert_default();
        if !interval_is_over(&mut challenges.last, now, self.profile.challenge_interval) {
            return false;
        }
        if challenges.second != second {
            (challenges.second, challenges.sent) = (second, 0);
        }
        let allowed = challenges.sent < self.profile.challenge_acks_per_second;
        challenges.sent += u32::from(allowed);
        allowed
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
