//! TCP Fast Open in a connection (RFC 7413).

use airwire::segment::Segment;
use airwire::time::Instant;

use super::Connection;
use crate::tcp::fast_open::{Answer, FastOpen, OPTION_SPACE, Plan, Report, SynText};
use crate::tcp::socket::State;

impl Connection {
    /// Prepares an active open. The SYN is sent at once, or waits for the first write.
    pub(in crate::tcp) fn plan_fast_open(&mut self, plan: Option<Plan>) {
        if let Some(plan) = plan {
            self.cx.fast_open = FastOpen::of_plan(plan);
        }
        if self.cx.fast_open.sends_syn_at_once() {
            self.cx.lifecycle.send_syn();
        }
    }

    /// Returns true if the data of the peer's SYN was accepted and our SYN,ACK is not acknowledged yet. Data
    /// can then be exchanged in SYN-RECEIVED.
    pub fn is_open_early(&self) -> bool {
        self.cx.is_open_early()
    }

    /// Returns the number of bytes that the SYN can carry, while it waits for the first write. `None`: it
    /// does not wait.
    pub fn room_in_syn(&self) -> Option<usize> {
        Some(self.limit_of_syn_text(self.cx.fast_open.text_while_waiting()?) as usize)
    }

    fn limit_of_syn_text(&self, text: SynText) -> u64 {
        let SynText::UpTo { mss } = text else { return 0 };
        let mtu = u64::from(self.sender.pmtu(&self.cx.negotiated));
        let fits = mtu.saturating_sub(self.cx.negotiated.header_len() as u64);
        let mss = mss.min(self.cx.options.max_seg.unwrap_or(u16::MAX));
        fits.min(mss.into()).saturating_sub(OPTION_SPACE)
    }

    /// Schedules a SYN that waits for data, because the application writes or closes.
    #[inline]
    pub(in crate::tcp) fn release_syn(&mut self) {
        if self.cx.fast_open.release_syn() {
            self.cx.lifecycle.send_syn();
        }
    }

    /// Returns the bytes of data in the SYN that is sent next. A retransmitted SYN has none (RFC 7413
    /// §4.2.2).
    pub(in crate::tcp) fn syn_text_len(&self) -> u64 {
        match self.cx.fast_open.text_when_ready() {
            Some(text) if self.state() == State::SynSent => {
                self.sender.syn_text_len(self.limit_of_syn_text(text))
            }
            _ => 0,
        }
    }

    /// Applies the host's decision about the peer's SYN, whose options were processed before.
    pub(crate) fn answer_fast_open(&mut self, now: Instant, syn: &Segment<'_>, answer: Answer) {
        let option = match answer {
            Answer::Ordinary => return,
            Answer::Offer(option) => {
                self.cx.fast_open = FastOpen::Offering(Box::new(option));
                return;
            }
            Answer::Accept(option) => option,
        };
        self.begin_receiving(now);
        let (receiver, _, mut storing) = self.storing();
        receiver.store_syn_text(&mut storing, syn);
        // Our stream begins after the SYN,ACK.
        self.sender.begin_after_syn_ack(now);
        self.cx.fast_open = FastOpen::accepting(option, !syn.payload.is_empty());
    }

    /// Returns true if data or a FIN is to be sent although the SYN,ACK is not acknowledged. The first time,
    /// this prepares the sender.
    pub(in crate::tcp) fn prepare_early_data(&mut self, now: Instant) -> bool {
        if !self.sender.has_early_data(&self.cx) {
            return false;
        }
        let is_first = self.cx.fast_open.begin_early_data();
        if is_first == Some(true) {
            self.begin_sending(now);
        }
        is_first.is_some()
    }

    /// Prepares the receiver and the sender, unless data in the SYN has already done so.
    pub(in crate::tcp) fn begin_transfer(&mut self, now: Instant) {
        let (is_receiving, is_sending) = self.cx.fast_open.complete();
        if !is_receiving {
            self.begin_receiving(now);
        }
        if !is_sending {
            self.begin_sending(now);
        }
        if !self.sender.flight().is_empty() {
            self.sender.restart_rto(now);
        }
    }

    /// Processes the end of the handshake for Fast Open, and retransmits the data of the SYN that it does not
    /// acknowledge (RFC 7413 §4.2.2).
    pub(in crate::tcp) fn conclude_handshake(&mut self, now: Instant, segment: &Segment<'_>) {
        let is_missing = !self.sender.flight().is_empty();
        let is_resent = self.sender.syn_timeouts() > 0;
        let mss = self.cx.negotiated.peer_mss();
        if self.cx.fast_open.on_syn_acked(segment, mss, is_missing, is_resent) && is_missing {
            self.sender.resend_syn_text(now, self.cx.negotiated.ts_now(&self.cx.profile, now));
        }
    }

    /// Processes the end of the connection for Fast Open.
    pub(in crate::tcp) fn conclude_fast_open(&mut self) {
        if self.state() != State::Closed {
            let has_received = self.statistics.bytes_received > 0 || self.receiver.holds_out_of_order();
            self.cx.fast_open.on_end(has_received, self.receiver.has_early_fin());
        }
    }

    /// Removes and returns the report for the host.
    #[inline]
    pub(crate) fn take_fast_open_report(&mut self) -> Option<Report> {
        self.cx.fast_open.take_report()
    }

    /// Returns true if the data of the peer's SYN was accepted.
    pub(crate) fn was_opened_early(&self) -> bool {
        self.cx.fast_open.is_server()
    }
}
