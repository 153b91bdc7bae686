//! The transmitting side of an AM entity (§5.2.3.1): segmentation and retransmission.

use std::ops::Range;

use airwire::time::Instant;
use smallvec::smallvec;

use super::AmConfig;
use crate::rlc::am::send_window::{Change, Retransmission};
use crate::rlc::am::status::Status;
use crate::rlc::am::transmitter::Transmitter;
use crate::rlc::am::{AmStats, Generation, ReceiveError};
use crate::rlc::nr::codec::{AmSnLength, Amd, Position};
use crate::rlc::nr::segmentation::fit;
use crate::rlc::sdu_queue::SduQueue;
use crate::rlc::service::{BufferStatus, Event, Pdu, PduKind, Sdu};

/// TX_Next is `transmitter.window.end()`.
///
/// Choice: an SDU gets its sequence number when its transmission begins, not when PDCP submits it. So a
/// discarded SDU leaves no gap (§5.4).
#[derive(Debug)]
pub(super) struct Sender {
    sn_length: AmSnLength,
    /// SDUs whose transmission has not begun.
    queue: SduQueue,
    transmitter: Transmitter<Sdu>,
}

/// Octets of an SDU that a PDU carries.
struct Content {
    sn: u64,
    range: Range<u32>,
    /// 1 for the first transmission.
    transmission: u32,
}

impl Sender {
    pub(super) fn new(config: &AmConfig) -> Self {
        let bits = config.sn_length.bits();
        Self {
            sn_length: config.sn_length,
            queue: SduQueue::default(),
            transmitter: Transmitter::new(config.parameters.clone(), bits, Generation::Nr),
        }
    }

    pub(super) fn submit(&mut self, sdu: Sdu) {
        self.queue.push(sdu);
    }

    pub(super) fn discard(&mut self, id: u64, events: &mut Vec<Event>) -> bool {
        let discarded = self.queue.discard(id);
        if discarded {
            let max_retx = self.transmitter.handle_discard(has_new(&self.queue, &self.transmitter));
            events.extend(max_retx.map(|sdu| Event::MaxRetx(sdu.id)));
        }
        discarded
    }

    pub(super) fn buffer_status(&self) -> BufferStatus {
        let window = &self.transmitter.window;
        let unfinished = window
            .unfinished()
            .map_or(0, |(_, sdu, transmitted)| sdu.octets.len() as u64 - u64::from(transmitted));
        BufferStatus {
            new: self.queue.octets() + unfinished,
            retransmission: window.pending_octets(),
            status: 0,
            sdus: self.queue.len(),
        }
    }

    pub(super) fn can_send(&self) -> bool {
        let window = &self.transmitter.window;
        window.has_pending() || window.unfinished().is_some() || !window.is_full() && !self.queue.is_empty()
    }

    /// The next AMD PDU of at most `room` octets. Retransmissions have priority.
    pub(super) fn next_pdu(&mut self, now: Instant, room: usize, stats: &mut AmStats) -> Option<Pdu> {
        let header = |position| self.sn_length.header(position);
        let window = &mut self.transmitter.window;
        if let Some((Retransmission { sn, range, retx_count }, sdu)) = window.next_retransmission() {
            let range = fit(range, sdu.octets.len() as u32, room, header)?;
            window.retransmitted(sn, range.end - range.start);
            return self.pdu(now, Content { sn, range, transmission: 2 + retx_count }, 0, stats);
        }
        let (sn, range) = if let Some((sn, sdu, transmitted)) = window.unfinished() {
            let length = sdu.octets.len() as u32;
            let range = fit(transmitted..length, length, room, header)?;
            window.continue_last(range.end - range.start);
            (sn, range)
        } else {
            // "shall not submit to lower layer any AMD PDU whose SN falls outside of the transmitting window"
            let length = self.queue.front().filter(|_| !window.is_full())?.octets.len() as u32;
            let range = fit(0..length, length, room, header)?;
            (window.push(self.queue.pop()?, length, range.end), range)
        };
        let new_octets = range.end - range.start;
        self.pdu(now, Content { sn, range, transmission: 1 }, new_octets, stats)
    }

    /// Encodes an AMD PDU. `new_octets` of its octets had not been transmitted before.
    fn pdu(&mut self, now: Instant, content: Content, new_octets: u32, stats: &mut AmStats) -> Option<Pdu> {
        let Content { sn, range, transmission } = content;
        let has_new = has_new(&self.queue, &self.transmitter);
        let polls = self.transmitter.submit(now, new_octets as usize, has_new, stats);
        let sdu = self.transmitter.window.content(sn)?;
        let amd = Amd {
            poll: polls,
            position: Position::of(range.start, range.end, sdu.octets.len() as u32),
            sn: self.sn_length.bits().wire(sn),
            data: &sdu.octets[range.start as usize..range.end as usize],
        };
        let kind = PduKind::Data { sn, transmission, polls, sdus: smallvec![sdu.id] };
        Some(Pdu { octets: amd.encode(self.sn_length), kind })
    }

    pub(super) fn handle_status(
        &mut self,
        status: Status,
        events: &mut Vec<Event>,
        stats: &mut AmStats,
    ) -> Result<(), ReceiveError> {
        self.transmitter.handle_status(status, |change, sdu| {
            events.push(match change {
                Change::Acknowledged => Event::Confirmed(sdu.id),
                Change::MaxRetx => Event::MaxRetx(sdu.id),
            });
        })?;
        stats.statuses_received += 1;
        Ok(())
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, events: &mut Vec<Event>, stats: &mut AmStats) {
        let has_new = has_new(&self.queue, &self.transmitter);
        let max_retx = self.transmitter.handle_deadline(now, has_new, stats);
        events.extend(max_retx.map(|sdu| Event::MaxRetx(sdu.id)));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.transmitter.next_deadline()
    }
}

/// Whether octets wait for their first transmission.
fn has_new(queue: &SduQueue, transmitter: &Transmitter<Sdu>) -> bool {
    !queue.is_empty() || transmitter.window.unfinished().is_some()
}
