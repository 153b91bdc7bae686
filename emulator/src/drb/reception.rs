//! From transport blocks to packets.

use airwire::time::Instant;

use super::Drb;
use super::bearer::{Bearer, CONTROL, DirectionState};
use super::config::CountAt;
use super::radio_log::Outcome;
use crate::packet::{Direction, PacketId};
use crate::pdcp::lte_receiver::DeliveredBy;
use crate::pdcp::nr_receiver::Reception;
use crate::pdcp::pdu::{Pdu, StatusReport, decode};
use crate::rlc::service::Event;
use crate::stage::{DropReason, Outbox};

impl Drb {
    /// Hands the transport blocks that arrive at `now` to the bearers.
    pub(super) fn receive_blocks(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        while let Some(block) = self.channels[direction].shared.take_arrival(now) {
            self.channels[direction].radio_log.decide(block.number, Outcome::Arrives(now), out);
            for (index, pdus) in block.pdus.iter().enumerate() {
                let bearer = &mut self.bearers[index];
                for pdu in pdus {
                    bearer.receive_pdu(now, direction, &pdu.octets);
                }
                if bearer.handle_events(now, direction.reversed(), DeliveredBy::Reception, out) {
                    self.fail(now, direction.reversed(), out);
                    // The MAC reset has discarded the rest of the block.
                    break;
                }
            }
        }
    }
}

impl Bearer {
    fn receive_pdu(&mut self, now: Instant, direction: Direction, pdu: &[u8]) {
        let entity = &mut self.entities[direction.reversed()];
        if entity.receive(now, pdu, &mut self.events).is_err() {
            self.count_unknown(direction);
        }
    }

    /// Counts an SDU or PDU that indicates a bug. Unacknowledged mode has such SDUs without a bug: if a
    /// segment is late by more than a window of sequence numbers, the receiver combines segments of different
    /// SDUs.
    fn count_unknown(&mut self, direction: Direction) {
        if !self.is_unacknowledged() {
            self.directions[direction].counters.unknown_sdus += 1;
        }
    }

    /// Handles the timers of the sender of this direction that expire now, and of the PDCP receiver at its
    /// other end. Returns whether the radio link has failed.
    pub(super) fn handle_timers(&mut self, now: Instant, direction: Direction, out: &mut Outbox) -> bool {
        let mut has_failed = false;
        if self.entities[direction].next_deadline().is_some_and(|at| at <= now) {
            self.entities[direction].on_deadline(now, &mut self.events);
            has_failed |= self.handle_events(now, direction, DeliveredBy::Reception, out);
        }
        if self.directions[direction].receiver.next_deadline().is_some_and(|at| at <= now) {
            self.directions[direction].receiver.handle_deadline(now);
            self.deliver(direction, out);
        }
        let discards = self.settings.directions[direction].pdcp.count_at == CountAt::Submission;
        while let Some(count) = self.directions[direction].pdcp.take_expired(now) {
            // RLC refuses to discard an SDU whose transmission has begun. If PDCP numbers packets only when
            // RLC needs data, an SDU with a COUNT belongs to the next block, and a discard would leave a gap.
            let id = self.directions[direction].base + count;
            if discards && self.entities[direction].discard(id, &mut self.events) {
                self.drop_packet(direction, id, DropReason::PdcpDiscard, out);
            }
        }
        has_failed | self.handle_events(now, direction, DeliveredBy::Reception, out)
    }

    /// Handles the events of the entity that sends data in the direction `sender`. Returns whether the radio
    /// link has failed.
    pub(super) fn handle_events(
        &mut self,
        now: Instant,
        sender: Direction,
        by: DeliveredBy,
        out: &mut Outbox,
    ) -> bool {
        let mut events = std::mem::take(&mut self.events);
        let mut has_failed = false;
        for event in events.drain(..) {
            match event {
                Event::Delivered(pdu) => self.receive_pdcp(now, sender.reversed(), pdu, by, out),
                Event::Confirmed(id) if id < CONTROL => self.directions[sender].pdcp.confirm(id),
                Event::Confirmed(_) => {}
                Event::MaxRetx(_) => has_failed = true,
            }
        }
        events.append(&mut self.events);
        self.events = events;
        has_failed
    }

    fn receive_pdcp(
        &mut self,
        now: Instant,
        direction: Direction,
        pdu: Vec<u8>,
        by: DeliveredBy,
        out: &mut Outbox,
    ) {
        self.record_pdcp(now, direction, &pdu, out);
        let format = self.settings.directions[direction].pdcp.format;
        let by = if self.is_unacknowledged() { DeliveredBy::Unacknowledged } else { by };
        match decode(format, &pdu) {
            Ok(Pdu::Data { sn }) => {
                match self.directions[direction].receiver.receive(now, sn, pdu, by) {
                    Reception::Accepted => self.deliver(direction, out),
                    // If the PDU is a duplicate, its packet was delivered before, and `drop_packet` does
                    // nothing.
                    Reception::Discarded { count } => {
                        let state = &self.directions[direction];
                        if let Some(id) = state.base.checked_add(count)
                            && !state.receiver.holds(count)
                        {
                            self.drop_packet(direction, id, DropReason::PdcpLate, out);
                        }
                    }
                }
            }
            Ok(Pdu::Status(report)) => self.receive_report(direction.reversed(), &report, out),
            Err(_) => self.count_unknown(direction),
        }
    }

    /// Handles a status report at the sender of `direction`. The report confirms SDUs that the receiver has,
    /// or for which it has stopped waiting.
    fn receive_report(&mut self, direction: Direction, report: &StatusReport, out: &mut Outbox) {
        let mut confirmed = Vec::new();
        self.directions[direction].pdcp.receive_report(report, |count| confirmed.push(count));
        for count in confirmed {
            self.entities[direction].discard(count, &mut self.events);
            if !self.directions[direction].receiver.holds(count) {
                self.drop_packet(direction, count, DropReason::PdcpLate, out);
            }
        }
    }

    /// Forwards the packets that PDCP has delivered.
    pub(super) fn deliver(&mut self, direction: Direction, out: &mut Outbox) {
        let format = self.settings.directions[direction].pdcp.format;
        while let Some((count, pdu)) = self.directions[direction].receiver.poll_pdu() {
            let DirectionState { ledger, counters, base, .. } = &mut self.directions[direction];
            match ledger.settle(*base + count) {
                Some(packet) if packet.bytes == format.sdu(&pdu) => {
                    counters.delivered += 1;
                    counters.delivered_bytes += packet.len() as u64;
                    out.forward(packet);
                }
                Some(packet) if self.is_unacknowledged() => {
                    self.directions[direction].counters.rlc_loss += 1;
                    out.drop(packet, DropReason::RlcLoss);
                }
                Some(packet) => {
                    self.count_unknown(direction);
                    out.drop(packet, DropReason::Malformed);
                }
                None => self.count_unknown(direction),
            }
        }
    }

    /// In unacknowledged mode, drops the packets for which the receiver no longer waits. `is_idle`: the channel
    /// carries no block of this direction.
    pub(super) fn drop_lost(&mut self, direction: Direction, is_idle: bool, out: &mut Outbox) {
        let state = &self.directions[direction];
        if !self.is_unacknowledged() || state.ledger.held() == 0 {
            return;
        }
        let passed = state.base + state.receiver.next_count();
        // Without blocks in flight and running timers, a packet whose transmission has begun cannot arrive.
        let is_silent = is_idle
            && self.entities[direction].buffer_status().new == 0
            && self.entities[direction.reversed()].next_deadline().is_none()
            && state.receiver.next_deadline().is_none();
        let late = if state.receiver.reorders() { DropReason::PdcpLate } else { DropReason::RlcLoss };
        let lost: Vec<(u64, DropReason)> = state
            .ledger
            .unsettled()
            .take_while(|id| *id < passed || is_silent && state.ledger.has_begun(*id))
            .filter(|id| id.checked_sub(state.base).is_none_or(|count| !state.receiver.holds(count)))
            .map(|id| (id, if id < passed { late } else { DropReason::RlcLoss }))
            .collect();
        for (id, why) in lost {
            self.drop_packet(direction, id, why, out);
        }
    }

    /// The packets with these numbers that are neither delivered nor dropped.
    pub(super) fn packets(&self, direction: Direction, ids: &[u64]) -> Vec<PacketId> {
        let ledger = &self.directions[direction].ledger;
        ids.iter().filter_map(|id| Some(ledger.packet(*id)?.id)).collect()
    }

    /// Drops a packet that cannot be delivered. Does nothing if the packet was delivered or dropped before.
    pub(super) fn drop_packet(&mut self, direction: Direction, id: u64, why: DropReason, out: &mut Outbox) {
        let DirectionState { ledger, counters, .. } = &mut self.directions[direction];
        let Some(packet) = ledger.settle(id) else { return };
        match why {
            DropReason::RlcLoss => counters.rlc_loss += 1,
            DropReason::PdcpLate => counters.pdcp_late += 1,
            DropReason::Handover => counters.handover += 1,
            _ => counters.pdcp_discard += 1,
        }
        out.drop(packet, why);
    }
}
