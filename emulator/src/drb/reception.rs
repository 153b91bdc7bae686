//! From transport blocks to packets.

use airwire::time::Instant;

use super::config::CountAt;
use super::radio_log::Outcome;
use super::transmission::CONTROL;
use super::{DirectionState, Drb};
use crate::packet::Direction;
use crate::pdcp::lte_receiver::DeliveredBy;
use crate::pdcp::nr_receiver::Reception;
use crate::pdcp::pdu::{Pdu, StatusReport, decode};
use crate::rlc::service::Event;
use crate::stage::{DropReason, Outbox};

impl Drb {
    /// Hands the transport blocks that arrive at `now` to RLC.
    pub(super) fn receive_blocks(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        while let Some(block) = self.directions[direction].channel.take_arrival(now) {
            self.directions[direction].radio_log.decide(block.number, Outcome::Arrives(now), out);
            let entity = &mut self.entities[direction.reversed()];
            for pdu in &block.pdus {
                if entity.receive(now, &pdu.octets, &mut self.events).is_err() {
                    self.directions[direction].counters.unknown_sdus += 1;
                }
            }
            self.handle_events(now, direction.reversed(), DeliveredBy::Reception, out);
        }
    }

    /// Handles the timers of the sender of this direction that expire now, and of the PDCP receiver at its
    /// other end.
    pub(super) fn handle_timers(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        if self.entities[direction].next_deadline().is_some_and(|at| at <= now) {
            self.entities[direction].on_deadline(now, &mut self.events);
            self.handle_events(now, direction, DeliveredBy::Reception, out);
        }
        if self.directions[direction].receiver.next_deadline().is_some_and(|at| at <= now) {
            self.directions[direction].receiver.handle_deadline(now);
            self.deliver(direction, out);
        }
        let discards = self.settings.directions[direction].pdcp.count_at == CountAt::Submission;
        while let Some(count) = self.directions[direction].pdcp.take_expired(now) {
            // RLC transmits an SDU nevertheless if its transmission has begun. The other case is that the SDU has
            // been numbered for the next block, and a discard would leave a gap.
            if discards && self.entities[direction].discard(count, &mut self.events) {
                self.drop_packet(direction, count, DropReason::PdcpDiscard, out);
            }
        }
        self.handle_events(now, direction, DeliveredBy::Reception, out);
    }

    /// Handles the events of the entity that sends data in the direction `sender`.
    pub(super) fn handle_events(
        &mut self,
        now: Instant,
        sender: Direction,
        by: DeliveredBy,
        out: &mut Outbox,
    ) {
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
        if has_failed {
            self.fail(now, sender, out);
        }
    }

    fn receive_pdcp(
        &mut self,
        now: Instant,
        direction: Direction,
        pdu: Vec<u8>,
        by: DeliveredBy,
        out: &mut Outbox,
    ) {
        let format = self.settings.directions[direction].pdcp.format;
        match decode(format, &pdu) {
            Ok(Pdu::Data { sn }) => {
                match self.directions[direction].receiver.receive(now, sn, pdu, by) {
                    Reception::Accepted => self.deliver(direction, out),
                    // A duplicate was settled before.
                    Reception::Discarded { count } => {
                        if !self.directions[direction].receiver.holds(count) {
                            self.drop_packet(direction, count, DropReason::PdcpLate, out);
                        }
                    }
                }
            }
            Ok(Pdu::Status(report)) => self.receive_report(direction.reversed(), &report, out),
            Err(_) => self.directions[direction].counters.unknown_sdus += 1,
        }
    }

    /// The sender of `direction` receives a status report. The receiver has the SDUs that the report
    /// confirms, or has stopped waiting for these SDUs.
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
        let DirectionState { receiver, ledger, counters, .. } = &mut self.directions[direction];
        while let Some((count, pdu)) = receiver.poll_pdu() {
            match ledger.settle(count) {
                Some(packet) if packet.bytes == format.sdu(&pdu) => {
                    counters.delivered += 1;
                    counters.delivered_bytes += packet.len() as u64;
                    out.forward(packet);
                }
                Some(packet) => {
                    counters.unknown_sdus += 1;
                    out.drop(packet, DropReason::Malformed);
                }
                None => counters.unknown_sdus += 1,
            }
        }
    }

    /// Drops a packet that can no longer be delivered, if it has not been settled.
    pub(super) fn drop_packet(
        &mut self,
        direction: Direction,
        count: u64,
        why: DropReason,
        out: &mut Outbox,
    ) {
        let DirectionState { ledger, counters, .. } = &mut self.directions[direction];
        let Some(packet) = ledger.settle(count) else { return };
        match why {
            DropReason::PdcpLate => counters.pdcp_late += 1,
            DropReason::Handover => counters.handover += 1,
            _ => counters.pdcp_discard += 1,
        }
        out.drop(packet, why);
    }
}
