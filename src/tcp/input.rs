//! SEGMENT ARRIVES (RFC 9293 §3.10.7), one function per step, in the order of the text.

use airwire::options::Timestamps;
use airwire::segment::{Ecn, Flags, Segment};
use airwire::time::{Duration, Instant};

use super::connection::{Connection, Opening};
use super::pacer::Pacer;
use super::socket::{Ended, State};
use super::variables::{AckDue, Asked, Challenges, Queued, Spacing};
use crate::events::{Offer, Refusal, What};
use crate::profile::{Challenge, TextOnSyn};
use crate::recovery::Handshake;

/// What a segment asks of the host, once the connection has handled it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reaction {
    /// Nothing.
    Done,
    /// To answer with a reset (RFC 9293 §3.5.2, groups 1 and 2), which has these timestamps if the connection has any.
    Reset(Option<Timestamps>),
    /// A passive open has completed.
    Established,
}

/// RFC 7323 §5.5: a TS.Recent older than this says nothing.
const PAWS_VALID: Duration = Duration::from_secs(24 * 24 * 3600);

enum Verdict {
    GoOn,
    Stop(Reaction),
}

use Verdict::{GoOn, Stop};

impl Connection {
    /// A SYN for a listening port: the connection starts in SYN-RECEIVED.
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
            // §3.10.7.1: it has ended, and the host has not noticed yet.
            State::Closed if segment.flags.contains(Flags::RST) => return Reaction::Done,
            State::Closed => return Reaction::Reset(None),
            State::SynSent => return self.in_syn_sent(now, segment),
            _ => {}
        }
        let was_syn_received = self.state == State::SynReceived;
        let reaction = self.in_other_states(now, segment);
        if reaction == Reaction::Done && was_syn_received && self.state.is_synchronized() {
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
            // Simultaneous open: answer with SYN,ACK and wait for the ACK of it.
            self.enter(State::SynReceived);
            self.pending.syn = true;
            self.queue_text_of_syn(segment);
            return Reaction::Done;
        }
        // RFC 3168 §6.1.1: ECE without CWR accepts ECN.
        self.ecn_enabled =
            self.profile.ecn && segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR);
        self.establish(now, segment);
        self.take_text_of_syn(now, segment);
        self.rcv.ack = AckDue::Now;
        self.pending.handshake_ack = true;
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
        // Only a segment that passed every check proves the peer alive and may refresh TS.Recent.
        self.heard_from_peer(now);
        self.refresh_ts_recent(now, segment);
        let Some(offset) = segment.seq.offset(self.rcv.irs, self.rcv_nxt()) else { return Reaction::Done };
        // The mark of a copy, or of what follows a FIN, is no news.
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
            // The fast path of Linux sees nothing in a pure ACK but what it acknowledges.
            if segment.seq_len() > 0 || self.state != State::Established {
                self.settle_ack(now, segment);
            }
        }
        reaction
    }

    /// Fourth step: SYN. It is taken first because RFC 5961 §4.2 answers a SYN whatever its sequence number.
    fn check_syn(&mut self, now: Instant, segment: &Segment<'_>) -> Verdict {
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::RST) {
            return GoOn;
        }
        if self.state == State::SynReceived {
            if segment.seq == self.rcv.irs && !segment.flags.contains(Flags::ACK) {
                // The peer did not see our SYN,ACK.
                self.pending.syn = true;
                return Stop(Reaction::Done);
            }
            if segment.seq == self.rcv.irs && self.acks_our_syn(segment) {
                // Simultaneous open: their SYN,ACK. The SYN in it was seen before.
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
        if self.ts_enabled && !reset {
            match segment.options.timestamps {
                Some(ts) if self.is_old_timestamp(now, ts.val) => {
                    self.statistics.unacceptable += 1;
                    self.refuse(segment, Refusal::OldTimestamp);
                    self.note_duplicate(segment);
                    self.ack_unacceptable(now, segment);
                    return Stop(Reaction::Done);
                }
                // §3.2: once negotiated, a segment without the option is not the peer's.
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
        self.note_duplicate(segment);
        // With the original's timestamp the sender would take the whole timeout for a round trip, and time out later each time
        // (RFC 7323 §4.3 changed RFC 1323 for this case). TS.Recent stays: a forged copy with a timestamp in the future would
        // make all that follows look old.
        let echoed = copy && self.profile.echo_copies;
        self.rcv.copy_tsval = segment.options.timestamps.map(|ts| ts.val).filter(|_| echoed);
        self.ack_unacceptable(now, segment);
        // §3.10.7.4: even with a closed window, acceptable ACKs are taken.
        let at_edge = segment.seq.offset(self.rcv.irs, self.rcv_nxt()).is_some_and(|o| o == self.rcv_nxt());
        if at_edge
            && segment.flags.contains(Flags::ACK)
            && self.state.is_synchronized()
            && self.take_ack(now, segment)
        {
            self.check_fin_acked(now);
        }
        Stop(Reaction::Done)
    }

    /// It repeats something received, whose ACK was lost.
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
            // A segment just at the right edge carries a good ACK, and systems accept it.
            (0, _) => inside(start) || start == next + window,
            (_, 0) => false,
            (len, _) => inside(start) || inside(start + len - 1),
        };
        let not_acknowledged = || start <= next && start + segment.seq_len() >= self.rcv.last_ack_sent;
        acceptable || (self.profile.accepts_unacknowledged && window > 0 && not_acknowledged())
    }

    /// RFC 5961 §3.2 goes by the sequence number alone: RCV.NXT, also of a closed window (RFC 9293 §3.10.7.4 makes
    /// allowance for it), or another one inside the window. Linux' window begins at the last ACK that was sent.
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
            State::SynReceived => self.end(Some(Ended::Refused)),
            // Both sides have closed. If the peer has all data, a reset takes nothing away.
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

    /// Has our FIN been acknowledged?
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

    /// Seventh step: the text of the segment.
    fn check_data(&mut self, now: Instant, segment: &Segment<'_>, offset: u64) -> Reaction {
        if segment.seq_len() == 0 {
            return Reaction::Done;
        }
        if self.state == State::TimeWait {
            // A FIN again: acknowledge it again, and wait again.
            self.rcv.ack = AckDue::Now;
            self.enter_time_wait(now);
            return Reaction::Done;
        }
        if !self.state.may_receive_data() {
            // The peer's FIN has arrived: "Ignore the segment text". What begins below it is a copy, whose ACK was lost.
            if offset < self.rcv_nxt() {
                self.note_duplicate(segment);
                self.rcv.ack = AckDue::Now;
            }
            return Reaction::Done;
        }
        let end = offset + segment.payload.len() as u64;
        if self.refuses_data() && end > self.rcv_nxt() {
            // RFC 9293 §3.6.1: nobody is left to read it, or what is missing before an early FIN.
            self.refuse(segment, Refusal::NobodyReads);
            self.end(Some(Ended::Aborted));
            return Reaction::Reset(self.timestamps_of_reset(now, segment));
        }
        self.take_data(now, segment, offset);
        self.discard_unwanted();
        Reaction::Done
    }

    /// Eighth step: has the FIN's turn come?
    fn check_fin(&mut self, now: Instant, had_holes: bool) {
        if self.rcv.fin.is_none_or(|fin| self.rcv.buffer.next() < fin) {
            return;
        }
        match self.state {
            State::SynReceived | State::Established => {
                self.enter(State::CloseWait);
                // RFC 5681 §4.2: what fills a hole is acknowledged at once, FIN or not.
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

    fn enter_time_wait(&mut self, now: Instant) {
        self.enter(State::TimeWait);
        let delayed = self.rcv.ack;
        self.timers = Default::default();
        self.rcv.ack = if delayed == AckDue::No { AckDue::No } else { AckDue::Now };
        self.timers.linger = Some(now + self.profile.time_wait);
    }

    /// RFC 6191, RFC 9293 §3.6.1: a SYN that is certainly new may take the place of a TIME-WAIT connection.
    pub(crate) fn yields_to(&self, segment: &Segment<'_>) -> bool {
        let syn_only =
            segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK.with(Flags::RST));
        let newer_ts = self.ts_enabled
            && segment
                .options
                .timestamps
                .is_some_and(|ts| ts.val.wrapping_sub(self.rcv.ts_recent) as i32 > 0);
        let newer_seq =
            segment.seq.offset(self.rcv.irs, self.rcv_nxt()).is_some_and(|offset| offset > self.rcv_nxt());
        self.state == State::TimeWait && syn_only && (newer_ts || newer_seq)
    }

    // ----- parts of the steps -----

    fn learn_from_syn(&mut self, now: Instant, segment: &Segment<'_>) {
        let options = &segment.options;
        self.tell(|| What::PeerOffered(Offer::of(options, segment.flags)));
        self.rcv.irs = segment.seq;
        self.rcv.last_ack_sent = 1;
        let least = if self.local.is_ipv4() { 536 } else { 1220 };
        // A peer that offers next to nothing must not make us send a header per octet.
        self.snd.peer_mss = options.mss.unwrap_or(least).max(64);
        match (options.window_scale, self.profile.window_scale) {
            (Some(shift), Some(_)) => {
                self.snd.scale = shift;
                self.scaling_enabled = true;
            }
            _ => self.rcv.scale = 0,
        }
        self.sack_enabled = options.sack_permitted && self.offers_sack();
        self.ts_enabled = options.timestamps.is_some() && self.profile.timestamps;
        if let Some(ts) = options.timestamps.filter(|_| self.ts_enabled) {
            self.rcv.ts_recent = ts.val;
            self.rcv.ts_recent_at = now;
        }
        self.rcv.adv = 1 + self.first_window(self.state == State::SynReceived);
        self.rcv.promised = self.rcv.adv;
        // RFC 3168 §6.1.1: ECE and CWR in a SYN ask for ECN.
        let asks = segment.flags.contains(Flags::ECE) && segment.flags.contains(Flags::CWR);
        let may = self.profile.ecn || (self.profile.ecn_passive && self.state == State::SynReceived);
        self.ecn_enabled = asks && may && !segment.flags.contains(Flags::ACK);
        self.peer_flags = segment.flags;
        // The window of a SYN is never scaled.
        self.snd.wnd = u64::from(segment.window);
        self.snd.max_wnd = self.snd.wnd;
        self.snd.wl1 = 0;
        self.snd.wl2 = 0;
        self.update_smss();
    }

    /// §3.10.7.2, §3.10.7.3: text and FIN that come with a SYN wait until the connection is established.
    fn queue_text_of_syn(&mut self, segment: &Segment<'_>) {
        let has_any = !segment.payload.is_empty() || segment.flags.contains(Flags::FIN);
        if has_any && self.profile.text_on_syn == TextOnSyn::Queued {
            self.rcv.queued = Some(Box::new(Queued::of(segment)));
        }
    }

    /// What came with the peer's SYN has its turn. It has waited for a round trip, so its ACK waits no longer (§3.8.6.3,
    /// MUST-40).
    fn take_queued(&mut self, now: Instant) {
        if let Some(queued) = self.rcv.queued.take() {
            self.take_text_of_syn(now, &queued.segment());
            self.rcv.ack = AckDue::Now;
        }
    }

    /// Text and FIN behind a SYN, from the sixth step on.
    fn take_text_of_syn(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.orphaned && !segment.payload.is_empty() {
            // Nobody will read it. It comes again, and is answered with a reset then.
            return;
        }
        self.take_data(now, segment, 1);
        self.check_fin(now, false);
    }

    pub(super) fn offers_sack(&self) -> bool {
        self.profile.sack.is_offered(self.recovery.wants_sack())
    }

    /// The SYN must have left: a host may take in several packets before it sends.
    fn acks_our_syn(&self, segment: &Segment<'_>) -> bool {
        segment.ack.offset(self.snd.iss, 1) == Some(1) && self.flight.max() >= 1
    }

    /// Our SYN is acknowledged.
    fn establish(&mut self, now: Instant, segment: &Segment<'_>) {
        // §3.10.4: a CLOSE in SYN-RECEIVED waits for this moment.
        self.enter(if self.snd.fin.is_some() { State::FinWait1 } else { State::Established });
        self.timers.rto = None;
        self.pending.syn = false;
        let sent = self.flight.head().map(|syn| (syn.first_sent, syn.transmissions));
        self.flight.on_ack(1);
        if !self.rtt.style().backoff_outlives_handshake() {
            self.rtt.clear_backoff();
        }
        let ecr = segment.options.timestamps.map(|ts| ts.ecr);
        match sent {
            Some((sent_at, 1)) if self.profile.time_handshake => self.sample_rtt(now, sent_at),
            Some((first_sent, 2..)) if self.ts_enabled => {
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
            if self.profile.half_window {
                // Linux makes the socket now: the window of the SYN is forgotten.
                self.snd.max_wnd = 0;
            }
            self.update_window(now, segment, 1, 1);
        }
        let mss = self.expected_mss();
        if let Some(linux) = &mut self.rcv.linux {
            linux.establish(now, self.rcv.scale, mss, self.snd.smss, 1);
        }
        let handshake = Handshake {
            sack: self.sack_enabled,
            scoreboard: self.has_scoreboard(),
            timestamps: self.ts_enabled,
            ecn: self.ecn_enabled,
            peer_flags: self.peer_flags,
            syn_was_lost: self.syn_timeouts > self.profile.recovery.syn_timeouts_forgiven,
        };
        let agreement = self.agreement();
        self.tell(|| What::Agreed(agreement));
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_established(&mut path, &handshake);
        if recovery.paces() {
            self.snd.spacing = Some(Box::new(Spacing { pacer: Some(Pacer::new(now)), piece: None }));
        }
        self.snd.last_sent = now;
        self.heard_from_peer(now);
    }

    /// RFC 7323 §4.3: only a segment that spans Last.ACK.sent may set TS.Recent.
    fn refresh_ts_recent(&mut self, now: Instant, segment: &Segment<'_>) {
        let Some(ts) = segment.options.timestamps.filter(|_| self.ts_enabled) else { return };
        let start = segment.seq.offset(self.rcv.irs, self.rcv_nxt());
        // A copy is acceptable to Linux, and it takes the copy's timestamp: a forged one makes all that follows look old.
        if start.is_some_and(|start| start < self.rcv_nxt() && start + segment.seq_len() <= self.rcv_nxt()) {
            return;
        }
        // §5.5: what has not been refreshed for 24 days gives way to anything.
        let newer =
            ts.val.wrapping_sub(self.rcv.ts_recent) as i32 >= 0 || now - self.rcv.ts_recent_at >= PAWS_VALID;
        if newer && start.is_some_and(|start| start <= self.rcv.last_ack_sent) {
            self.rcv.ts_recent = ts.val;
            self.rcv.ts_recent_at = now;
        }
    }

    /// A CE mark is echoed until CWR answers (RFC 3168 §6.1.3).
    fn note_ecn(&mut self, segment: &Segment<'_>) {
        if !self.ecn_enabled {
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

    /// An unacceptable segment is answered. One without text may be the answer to such an answer: a limit keeps two
    /// stacks from going on for ever (RFC 5961 §7). One that the peer can hardly have sent is answered as long as the host
    /// does not answer too many of them.
    fn ack_unacceptable(&mut self, now: Instant, segment: &Segment<'_>) {
        let near = self.is_near(segment);
        if segment.seq_len() == 0 {
            if !near {
                self.challenge_ack(now);
            } else if self.may_challenge(now) {
                self.statistics.challenge_acks += 1;
                self.rcv.ack = AckDue::Now;
            }
            return;
        }
        if near {
            self.rcv.ack = AckDue::Now;
        } else if self.pending.asked == Asked::Nothing {
            self.pending.asked = Asked::Stray;
        }
        if self.state == State::TimeWait {
            self.enter_time_wait(now);
        }
    }

    /// What a peer sends again, or probes a closed window with, begins less than a window from RCV.NXT. Who does not know
    /// that number guesses so well once in 256 times.
    fn is_near(&self, segment: &Segment<'_>) -> bool {
        const REACH: u64 = 8 << 20;
        let next = self.rcv_nxt();
        let reach = REACH.max(self.options.recv_buffer as u64);
        segment.seq.offset(self.rcv.irs, next).is_some_and(|start| start.abs_diff(next) <= reach)
    }

    /// Whether it leaves the host decides, which hears of it by [`Connection::asks_to_answer`].
    pub(super) fn challenge_ack(&mut self, now: Instant) {
        if self.may_challenge(now) {
            self.pending.asked = Asked::Challenge;
        }
    }

    /// As many a second as the profile allows (RFC 5961 §7).
    fn may_challenge(&mut self, now: Instant) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if self.challenges.as_ref().is_some_and(|it| now - it.last < self.profile.challenge_interval) {
            return false;
        }
        let none = || Box::new(Challenges { last: now, second, sent: 0 });
        let challenges = self.challenges.get_or_insert_with(none);
        challenges.last = now;
        if challenges.second != second {
            (challenges.second, challenges.sent) = (second, 0);
        }
        let allowed = challenges.sent < self.profile.challenge_acks_per_second;
        challenges.sent += u32::from(allowed);
        allowed
    }

    /// An ACK is to leave that a forger may have wanted.
    pub(crate) fn asks_to_answer(&self) -> bool {
        self.pending.asked != Asked::Nothing
    }

    /// What the host says to that.
    pub(crate) fn answer(&mut self, granted: bool) {
        let asked = std::mem::take(&mut self.pending.asked);
        if granted {
            self.statistics.challenge_acks += u64::from(asked == Asked::Challenge);
            self.rcv.ack = AckDue::Now;
        }
    }
}
