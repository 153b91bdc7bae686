//! SEGMENT ARRIVES (RFC 9293 §3.10.7): one function per step. Each step calls the half that it concerns.

use std::ops::ControlFlow::{self, Break, Continue};

use airwire::options::Timestamps;
use airwire::segment::{Flags, Segment};
use airwire::time::Instant;

use super::Parts;
use super::{Connection, Opening};
use crate::events::{EventKind, Offer, Refusal};
use crate::profile::{AckRules, Challenge};
use crate::tcp::receiver::Acceptability;
use crate::tcp::socket::{Ended, State};

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

/// The result of a step: the next one follows, or the processing ends with a reaction.
type Step = ControlFlow<Reaction>;

impl Connection {
    /// Creates a connection in SYN-RECEIVED for a SYN to a listening port.
    pub(crate) fn accept(now: Instant, opening: Opening, segment: &Segment<'_>) -> Self {
        let mut connection = Self::new(now, opening, State::SynReceived);
        connection.process_peer_syn(now, segment);
        connection.answer_syn(segment);
        connection
    }

    /// Processes a segment between the addresses of this connection.
    pub(crate) fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        self.statistics.segments_in += 1;
        let state = self.state();
        match state {
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
        if self.is_request()
            && let Some(reaction) = self.check_request(now, segment)
        {
            return reaction;
        }
        let reaction = self.in_other_states(now, segment);
        // The host has already passed a connection that was opened early to its listener.
        let opens = state == State::SynReceived && self.state().is_synchronized() && !self.was_opened_early();
        if reaction == Reaction::Done && opens {
            return Reaction::Established;
        }
        reaction
    }

    /// SYN-SENT (§3.10.7.3).
    fn in_syn_sent(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        let has = |flag| segment.flags.contains(flag);
        // First, the ACK: "If SEG.ACK =< ISS or SEG.ACK > SND.NXT, send a reset (unless the RST bit is set …)".
        if has(Flags::ACK) && !self.sender.acks_our_syn(segment) {
            self.refuse(segment, Refusal::NotOurSyn);
            if self.cx.profile.handshake.repeats_refused_syn {
                self.sender.hasten_first_timeout(now);
            }
            return if has(Flags::RST) { Reaction::Done } else { Reaction::Reset(None) };
        }
        // Second, the RST: an acceptable ACK aborts the connection, without ACK the segment is dropped.
        if has(Flags::RST) {
            if has(Flags::ACK) {
                self.end(Some(Ended::Refused));
            } else {
                self.refuse(segment, Refusal::ResetWithoutAck);
            }
            return Reaction::Done;
        }
        // Fifth: "if neither of the SYN or RST bits is set, then drop the segment".
        if !has(Flags::SYN) {
            self.refuse(segment, Refusal::NoSyn);
            return Reaction::Done;
        }
        // Fourth, the SYN: set RCV.NXT and IRS.
        self.process_peer_syn(now, segment);
        self.note_peer_alive(now);
        if !has(Flags::ACK) {
            // "Otherwise, enter SYN-RECEIVED" (a simultaneous open) and send a SYN,ACK.
            self.enter(State::SynReceived);
            self.answer_syn(segment);
            return Reaction::Done;
        }
        self.cx.negotiated.process_ecn_answer(&self.cx.profile, segment.flags);
        self.establish(now, segment);
        self.process_syn_text(now, segment);
        self.receiver.ack_now();
        // Data of the SYN that was not acknowledged is retransmitted with this ACK (RFC 7413 §4.2.2).
        self.cx.lifecycle.send_lone_ack(self.sender.flight().is_empty());
        Reaction::Done
    }

    /// The other states (§3.10.7.4).
    fn in_other_states(&mut self, now: Instant, segment: &Segment<'_>) -> Reaction {
        // Linux drops a segment without ACK, RST and SYN before any other check (tcp_rcv_state_process()).
        let has_no_control_bit = !segment.flags.intersects(Flags::ACK.with(Flags::RST).with(Flags::SYN));
        if has_no_control_bit && self.cx.profile.validation.accepts_unacknowledged {
            self.refuse(segment, Refusal::NoAck);
            return Reaction::Done;
        }
        let steps: [fn(&mut Self, Instant, &Segment<'_>) -> Step; 4] =
            [Self::check_syn, Self::check_sequence, Self::check_rst, Self::check_ack];
        let is_predicted = self.has_predicted_header(segment);
        let Parts { sender, receiver, cx, .. } = self.parts();
        receiver.choose_path(cx, segment, is_predicted, || sender.memory());
        // Linux does not update TS.Recent from an old ACK (tcp_ack()), except on the fast path.
        let keeps_timestamp = cx.profile.validation.accepts_unacknowledged
            && sender.is_old_ack(segment)
            && !receiver.is_on_fast_path();
        for step in steps {
            if let Break(reaction) = step(self, now, segment) {
                return reaction;
            }
        }
        // Only a segment that has passed all checks shows that the peer is alive, and may update TS.Recent.
        self.note_peer_alive(now);
        let Parts { receiver, cx, .. } = self.parts();
        receiver.note_accepted(cx, now, segment, keeps_timestamp);
        let Some(offset) = receiver.offset_of(segment) else { return Reaction::Done };
        receiver.note_marks(cx, now, segment, offset);
        let had_holes = receiver.holds_out_of_order();
        let reaction = self.check_data(now, segment, offset);
        if reaction == Reaction::Done {
            self.check_fin(now, had_holes);
            // Linux's fast path processes only the acknowledgment of a pure ACK.
            if segment.seq_len() > 0 || self.state() != State::Established {
                let Parts { sender, receiver, cx, .. } = self.parts();
                receiver.decide_ack(cx, now, segment, sender.rtt());
            }
        }
        reaction
    }

    /// Fourth step: SYN. It is checked first, because RFC 5961 §4.2 answers a SYN with any sequence number.
    fn check_syn(&mut self, now: Instant, segment: &Segment<'_>) -> Step {
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::RST) {
            return Continue(());
        }
        if self.state() == State::SynReceived && segment.seq == self.receiver.irs() {
            // In Linux, a simultaneous open has a socket, which challenges the SYN (tcp_validate_incoming()).
            let challenges = self.cx.profile.validation.request_sockets && !self.cx.lifecycle.is_passive();
            if !segment.flags.contains(Flags::ACK) && !challenges {
                // The SYN,ACK was lost: the peer retransmitted its SYN.
                if self.receiver.may_challenge(&self.cx.profile, now) {
                    self.cx.lifecycle.send_syn();
                }
                return Break(Reaction::Done);
            }
            if self.sender.acks_our_syn(segment) {
                // Simultaneous open: the peer's SYN,ACK, whose SYN was processed before.
                self.establish(now, segment);
                self.process_queued(now);
                let Parts { receiver, cx, .. } = self.parts();
                receiver.note_repeated_syn(cx, now, segment);
                receiver.ack_now();
                return Break(Reaction::Done);
            }
        }
        // RFC 793: "If the SYN is in the window it is an error, send a reset", and enter CLOSED.
        if self.cx.profile.validation.challenge_syn == Challenge::Rfc793
            && self.receiver.in_window(&self.cx.profile, segment)
        {
            self.end(Some(Ended::Reset));
            return Break(Reaction::Reset(self.timestamps_of_reset(now, segment)));
        }
        // RFC 5961 §4.2: "If the SYN bit is set, irrespective of the sequence number, TCP MUST send an ACK".
        self.refuse(segment, Refusal::SynWhenOpen);
        self.challenge_ack(now);
        Break(Reaction::Done)
    }

    /// First step: PAWS (RFC 7323 §5.3 R1 to R3) and the window.
    fn check_sequence(&mut self, now: Instant, segment: &Segment<'_>) -> Step {
        let Parts { sender, receiver, cx, .. } = self.parts();
        let acceptability = match receiver.check_sequence(cx, now, segment) {
            Acceptability::Old if cx.profile.validation.accepts_unacknowledged => {
                receiver.judge_old(cx, segment, |seq, ticks| sender.is_overtaken(cx, segment, seq, ticks))
            }
            other => other,
        };
        let (why, copy) = match acceptability {
            Acceptability::Acceptable => return Continue(()),
            Acceptability::Dropped(why) => (why, false),
            Acceptability::Old => (Refusal::OldTimestamp, false),
            Acceptability::OutOfWindow { copy: true } => (Refusal::Copy, true),
            Acceptability::OutOfWindow { copy: false } => (Refusal::OutOfWindow, false),
        };
        self.statistics.unacceptable += 1;
        self.refuse(segment, why);
        if let Acceptability::Dropped(_) = acceptability {
            return Break(Reaction::Done);
        }
        // TIME-WAIT: "a retransmission of the remote FIN. Acknowledge it, and restart the 2 MSL timeout".
        if segment.seq_len() > 0 && self.state() == State::TimeWait {
            self.enter_time_wait(now);
        }
        // "If an incoming segment is not acceptable, an acknowledgment should be sent in reply (unless the RST
        // bit is set …)".
        let Parts { receiver, statistics, cx, .. } = self.parts();
        let answered = receiver.ack_unacceptable(cx, statistics, now, segment);
        match acceptability {
            Acceptability::Old if answered => receiver.note_duplicate(cx, statistics, segment),
            Acceptability::OutOfWindow { .. } => {
                if answered {
                    receiver.note_unacceptable(cx, statistics, segment, copy);
                }
                self.process_ack_of_unacceptable(now, segment, copy);
            }
            _ => {}
        }
        Break(Reaction::Done)
    }

    /// §3.10.7.4: valid ACKs are accepted even with a closed window. `copy` is true if the segment repeats
    /// received data.
    fn process_ack_of_unacceptable(&mut self, now: Instant, segment: &Segment<'_>, copy: bool) {
        let at_edge = self.receiver.offset_of(segment) == Some(self.receiver.nxt());
        let ends_at_next = segment.seq.at(segment.seq_len()) == self.receiver.nxt_seq();
        let repeats_fin = copy && ends_at_next && segment.flags.contains(Flags::FIN);
        if (at_edge || (repeats_fin && self.cx.profile.acks.repeat_fin))
            && segment.flags.contains(Flags::ACK)
            && self.state().is_synchronized()
            && self.process_ack(now, segment, false)
        {
            self.check_fin_acked(now, segment);
        }
    }

    /// Second step: RST.
    fn check_rst(&mut self, now: Instant, segment: &Segment<'_>) -> Step {
        if !segment.flags.contains(Flags::RST) {
            return Continue(());
        }
        let exact = self.receiver.is_exact_reset(&self.cx, segment);
        // RFC 5961 §3.2: a RST inside the window, but not at RCV.NXT, gets a challenge ACK.
        if !exact && self.cx.profile.validation.challenge_rst == Challenge::Rfc5961 {
            self.refuse(segment, Refusal::ResetNotExact);
            self.challenge_ack(now);
            return Break(Reaction::Done);
        }
        match self.state() {
            // A passive open returns to LISTEN, an active one is refused.
            State::SynReceived if !self.was_opened_early() => self.end(Some(Ended::Refused)),
            // Both sides have closed. If the peer has acknowledged all data, no data is lost.
            State::Closing | State::LastAck | State::TimeWait if self.unacknowledged() == 0 => self.end(None),
            // ESTABLISHED, FIN-WAIT-1, FIN-WAIT-2 and CLOSE-WAIT: calls that wait get "reset", and the state
            // becomes CLOSED.
            _ => self.end(Some(Ended::Reset)),
        }
        Break(Reaction::Done)
    }

    /// Fifth step: ACK.
    fn check_ack(&mut self, now: Instant, segment: &Segment<'_>) -> Step {
        // "If the ACK bit is off, drop the segment".
        if !segment.flags.contains(Flags::ACK) {
            self.refuse(segment, Refusal::NoAck);
            return Break(Reaction::Done);
        }
        // SYN-RECEIVED: an acceptable ACK establishes the connection, any other gets a RST.
        let is_first = self.state() == State::SynReceived;
        if is_first {
            if !self.sender.acks_our_syn(segment) {
                self.refuse(segment, Refusal::NotOurSyn);
                return Break(Reaction::Reset(self.timestamps_of_reset(now, segment)));
            }
            self.establish(now, segment);
            self.process_queued(now);
        }
        let on_fast_path = self.receiver.is_on_fast_path();
        if on_fast_path && !segment.payload.is_empty() && self.sender.repeats_number(segment) {
            // On its fast path, Linux skips tcp_ack() for data with the same ACK number, and sends no data.
            let Parts { sender, receiver, .. } = self.parts();
            sender.note_predicted(receiver.offset_of(segment));
            return Continue(());
        }
        if !self.process_ack(now, segment, is_first) {
            return if on_fast_path { Continue(()) } else { Break(Reaction::Done) };
        }
        let Parts { sender, cx, .. } = self.parts();
        if !sender.is_old_ack(segment) {
            sender.postpone_probe(cx, now);
        }
        self.check_fin_acked(now, segment);
        if self.state() == State::Closed { Break(Reaction::Done) } else { Continue(()) }
    }

    /// Returns true if Linux predicts the header (tcp_fast_path_on()).
    fn has_predicted_header(&self, segment: &Segment<'_>) -> bool {
        let options = &segment.options;
        self.cx.profile.validation.accepts_unacknowledged
            && self.state() == State::Established
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && segment.seq == self.receiver.nxt_seq()
            && !self.receiver.has_holes()
            && options.sack.is_empty()
            && options.timestamps.is_some() == self.cx.negotiated.timestamps()
            && self.sender.predicts(&self.cx.negotiated, segment)
    }

    /// Processes the segment's acknowledgment, which is the peer's first one or a later one. Returns false if
    /// the segment must be dropped.
    fn process_ack(&mut self, now: Instant, segment: &Segment<'_>, is_first: bool) -> bool {
        let Parts { sender, receiver, statistics, cx, .. } = self.parts();
        let taken = sender.process_ack(cx, statistics, now, segment, (receiver.offset_of(segment), is_first));
        if let Err(why) = taken {
            self.refuse(segment, why);
            self.challenge_ack(now);
        }
        taken.is_ok()
    }

    /// Advances the state if our FIN has been acknowledged.
    #[inline]
    fn check_fin_acked(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.sender.fin_is_acked() {
            self.on_fin_acked(now, segment);
        }
    }

    fn on_fin_acked(&mut self, now: Instant, segment: &Segment<'_>) {
        match self.state() {
            // "If the FIN segment is now acknowledged, then enter FIN-WAIT-2".
            State::FinWait1 => {
                self.enter(State::FinWait2);
                if self.cx.lifecycle.is_orphaned() {
                    self.cx.lifecycle.limit_fin_wait_2(now, &self.cx.profile, &self.cx.options);
                    // tcp_rcv_state_process() of Linux keeps the socket if the segment has a FIN.
                    if !segment.flags.contains(Flags::FIN) {
                        self.release_socket(now);
                    }
                }
            }
            // "If the ACK acknowledges our FIN, then enter the TIME-WAIT state".
            State::Closing => self.enter_time_wait(now),
            // "If our FIN is now acknowledged, delete the TCB, enter the CLOSED state".
            State::LastAck => self.end(None),
            _ => {}
        }
    }

    /// Seventh step: the segment text.
    fn check_data(&mut self, now: Instant, segment: &Segment<'_>, offset: u64) -> Reaction {
        if self.state() == State::TimeWait {
            self.process_in_time_wait(now, segment, offset);
            return Reaction::Done;
        }
        if segment.seq_len() == 0 {
            return Reaction::Done;
        }
        let (end, next) = (offset + segment.payload.len() as u64, self.receiver.nxt());
        // Linux, tcp_rcv_state_process(): a segment that contains the peer's FIN and text behind the FIN.
        let crosses_fin = self.cx.profile.validation.accepts_unacknowledged && offset < next && end > next;
        if !self.state().may_receive_data() && !crosses_fin {
            let Parts { receiver, statistics, cx, .. } = self.parts();
            receiver.ignore_text(cx, statistics, segment, offset);
            return Reaction::Done;
        }
        if !self.state().may_receive_data() || (self.refuses_data() && end > next) {
            // §3.6.1: the application will read neither this data nor the data missing before an early FIN.
            self.refuse(segment, Refusal::NobodyReads);
            self.end(Some(Ended::Aborted));
            return Reaction::Reset(self.timestamps_of_reset(now, segment));
        }
        let (receiver, cx, mut storing) = self.storing();
        receiver.process_text(cx, &mut storing, now, segment, offset);
        receiver.discard_unwanted(&cx.profile, storing.charge.budget());
        Reaction::Done
    }

    /// Eighth step: FIN, once all data before the FIN has arrived.
    #[inline]
    fn check_fin(&mut self, now: Instant, had_holes: bool) {
        if self.receiver.has_reached_fin() {
            self.on_fin(now, had_holes);
        }
    }

    fn on_fin(&mut self, now: Instant, had_holes: bool) {
        match self.state() {
            State::SynReceived | State::Established => self.enter(State::CloseWait),
            // "Otherwise, enter the CLOSING state". An ACK of our FIN in this segment has already led to FIN-WAIT-2.
            State::FinWait1 => self.enter(State::Closing),
            // "Start the time-wait timer, turn off the other timers".
            State::FinWait2 => self.enter_time_wait(now),
            // CLOSE-WAIT, CLOSING and LAST-ACK keep their state. `check_data` handles TIME-WAIT.
            _ => return,
        }
        let Parts { receiver, cx, .. } = self.parts();
        receiver.ack_fin(cx, had_holes);
        if cx.state() == State::Closing && matches!(cx.profile.acks.policy.rules, AckRules::Linux(_)) {
            // tcp_fin() of Linux sends this ACK at once, before any data.
            self.cx.lifecycle.send_lone_ack(true);
        }
    }

    fn process_peer_syn(&mut self, now: Instant, segment: &Segment<'_>) {
        self.log(|| EventKind::PeerOffered(Offer::of(&segment.options, segment.flags)));
        let (state, offers_sack) = (self.state(), self.offers_sack());
        self.cx.negotiated.process_syn(&self.cx.profile, state, offers_sack, segment);
        let Parts { sender, receiver, cx, .. } = self.parts();
        receiver.process_peer_syn(cx, now, segment);
        sender.process_peer_syn(cx, segment);
    }

    /// Schedules our SYN,ACK, and queues the data that came with the peer's SYN.
    fn answer_syn(&mut self, segment: &Segment<'_>) {
        self.cx.lifecycle.send_syn();
        self.receiver.queue_syn_text(&self.cx.profile, segment);
    }

    /// Processes the data that arrived with the peer's SYN. It has waited for a round trip, so its ACK is not
    /// delayed further (§3.8.6.3, MUST-40).
    fn process_queued(&mut self, now: Instant) {
        if let Some(queued) = self.receiver.take_queued() {
            self.process_syn_text(now, &queued.segment());
            self.receiver.ack_now();
        }
    }

    /// Processes the data and FIN after a SYN, from the sixth step on.
    fn process_syn_text(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.cx.lifecycle.is_orphaned() && !segment.payload.is_empty() {
            // The application will not read this data. The peer will retransmit it, and a RST will answer it
            // then.
            return;
        }
        let (receiver, cx, mut storing) = self.storing();
        receiver.process_text(cx, &mut storing, now, segment, 1);
        self.check_fin(now, false);
    }

    pub(in crate::tcp) fn offers_sack(&self) -> bool {
        self.cx.profile.handshake.sack.is_offered(self.recovery().wants_sack())
    }

    /// Establishes the connection after the ACK of our SYN.
    fn establish(&mut self, now: Instant, segment: &Segment<'_>) {
        let is_crossed = self.state() == State::SynReceived && !self.cx.lifecycle.is_passive();
        // §3.10.4: a CLOSE in SYN-RECEIVED is queued until now.
        self.enter(if self.write_is_shut() { State::FinWait1 } else { State::Established });
        self.cx.lifecycle.on_syn_sent();
        let Parts { sender, receiver, statistics, cx, .. } = self.parts();
        sender.establish(cx, statistics, now, segment, receiver.offset_of(segment));
        let agreement = self.cx.negotiated.agreement(self.smss());
        self.log(|| EventKind::Agreed(agreement));
        self.begin_transfer(now);
        if is_crossed {
            self.receiver.forget_last_arrival(now);
        }
        self.conclude_handshake(now, segment);
        self.note_peer_alive(now);
    }

    /// Prepares the receiver for the peer's data.
    pub(in crate::tcp) fn begin_receiving(&mut self, now: Instant) {
        let Parts { sender, receiver, cx, .. } = self.parts();
        receiver.begin(cx, now, sender.smss());
    }

    /// Prepares the sender for our data.
    pub(in crate::tcp) fn begin_sending(&mut self, now: Instant) {
        let Parts { sender, cx, .. } = self.parts();
        sender.begin(cx, now);
    }

    /// Sends a challenge ACK, if the limits permit it.
    pub(in crate::tcp) fn challenge_ack(&mut self, now: Instant) {
        self.receiver.challenge_ack(&self.cx.profile, &mut self.statistics, now);
    }

    /// Records an acceptable segment, which shows that the peer is alive.
    fn note_peer_alive(&mut self, now: Instant) {
        self.sender.note_peer_alive();
        self.cx.lifecycle.start_keepalive(now, &self.cx.options);
    }
}
