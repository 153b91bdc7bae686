//! From packets to transport blocks.

use airwire::time::Instant;

use super::config::{CountAt, DirectionSettings};
use super::radio_log::Outcome;
use super::shared_channel::{Decision, TransportBlock};
use super::{DirectionState, Drb};
use crate::mac::grid::Slot;
use crate::mac::harq::Block;
use crate::packet::{Direction, Packet};
use crate::rlc::ledger::Ledger;
use crate::rlc::service::{Pdu, PduKind, Sdu};
use crate::stage::{DropReason, Event, Outbox};

/// RLC SDUs with identifiers from here on are PDCP control PDUs. Smaller identifiers are COUNTs.
pub(super) const CONTROL: u64 = 1 << 63;

impl DirectionSettings {
    /// Whether packets wait in PDCP, not in RLC. A queue discipline needs this, because it can only select or
    /// drop packets in PDCP.
    pub(super) fn queues_in_pdcp(&self) -> bool {
        self.pdcp.count_at == CountAt::FirstTransmission || !self.queue.is_drop_tail()
    }
}

impl Drb {
    /// Numbers a packet that has arrived at `since`, and submits it to RLC.
    pub(super) fn submit(&mut self, since: Instant, direction: Direction, packet: Packet) {
        let DirectionState { pdcp, ledger, .. } = &mut self.directions[direction];
        let (count, octets) = pdcp.submit(since, &packet.bytes);
        let number = ledger.submit(since, packet);
        debug_assert_eq!(count, number);
        self.entities[direction].submit(Sdu { id: count, octets });
    }

    /// Octets that wait in PDCP and RLC, and may be transmitted.
    fn buffered(&self, direction: Direction) -> usize {
        let entity = &self.entities[direction];
        let in_rlc = entity.buffer_status().total() as usize;
        if !entity.can_send() && in_rlc > 0 {
            // The window is full, so SDUs in PDCP have to wait too.
            return 0;
        }
        let in_pdcp =
            if self.can_number(direction) { self.directions[direction].queue.bytes() as usize } else { 0 };
        in_rlc + in_pdcp
    }

    /// Whether PDCP may number another packet. With more than half of the number space unconfirmed, the receiver
    /// would mistake the COUNT (TS 38.323 §5.2.1, NOTE).
    pub(super) fn can_number(&self, direction: Direction) -> bool {
        let pdcp = &self.directions[direction].pdcp;
        pdcp.tx_next() - pdcp.first_unconfirmed() < self.settings.directions[direction].pdcp.format.window()
    }

    /// When the next slot begins that this direction may use.
    pub(super) fn next_slot(&mut self, now: Instant, direction: Direction) -> Option<Instant> {
        let buffered = self.buffered(direction);
        let now = now.max(self.suspended_until);
        self.directions[direction].channel.next_slot(now, buffered, &self.grid, self.drx.as_ref())
    }

    /// Transmits in the slot that begins now, if the bearer may use it.
    pub(super) fn transmit(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        if now < self.suspended_until {
            return;
        }
        let Some(slot) = self.directions[direction].channel.slot_at(now, &self.grid) else { return };
        let octets = self.directions[direction].channel.octets(slot, &self.grid);
        if octets == 0 {
            return;
        }
        let wins = match direction {
            Direction::Down => self.wins_slot(slot, octets),
            Direction::Up => self.directions.up.channel.is_granted(now, octets),
        };
        if !wins {
            return;
        }
        self.directions[direction].channel.assign(slot, &self.grid);
        for _ in 0..self.directions[direction].channel.blocks_per_slot() {
            let channel = &mut self.directions[direction].channel;
            let block =
                channel.take_retransmission(now).or_else(|| self.new_block(now, direction, octets, out));
            let Some(block) = block else { break };
            self.transmit_block(slot, direction, block, out);
        }
    }

    /// Whether the bearer has something to transmit in this downlink slot, and the scheduler assigns it the
    /// slot.
    fn wins_slot(&mut self, slot: Slot, octets: usize) -> bool {
        let channel = &self.directions.down.channel;
        let retransmits = channel.has_retransmission(slot.start);
        let is_active = self.drx.is_none_or(|drx| drx.active_from(slot.start) == slot.start);
        let buffered = self.buffered(Direction::Down);
        let channel = &mut self.directions.down.channel;
        if !retransmits && (buffered == 0 || !is_active || !channel.has_free_process(slot.start)) {
            return false;
        }
        let own = if retransmits { octets } else { buffered.min(octets) };
        let wins = self.others.assign(&self.grid, slot, own);
        if !wins {
            self.directions.down.channel.assign(slot, &self.grid);
        }
        wins
    }

    /// Fills a new transport block of up to `octets`, if there is data and permission.
    fn new_block(
        &mut self,
        now: Instant,
        direction: Direction,
        octets: usize,
        out: &mut Outbox,
    ) -> Option<Block<TransportBlock>> {
        if direction == Direction::Down && self.drx.is_some_and(|drx| drx.active_from(now) != now) {
            return None;
        }
        let permission = self.directions[direction].channel.permission(now, octets)?;
        self.refill(now, direction, permission.octets, out);
        // Most packets have about 1 kB or more.
        let mut pdus = Vec::with_capacity(4 + permission.octets / 1024);
        self.entities[direction].pull(now, permission.octets, &mut pdus);
        if pdus.is_empty() {
            self.directions[direction].channel.waste(now, permission);
            return None;
        }
        let buffered = self.buffered(direction);
        let epoch = self.epoch();
        let DirectionState { channel, ledger, radio_log, .. } = &mut self.directions[direction];
        let last = pdus.iter().flat_map(sdus).copied().filter(|id| *id < CONTROL).max();
        if let Some(last) = last {
            ledger.begin_through(last, |packet, since| out.note(packet, Event::Sent { waited: now - since }));
        }
        if let Some(drx) = &mut self.drx {
            drx.record_new_data(now);
        }
        let block = channel.build(permission, pdus, buffered);
        if out.records_radio() {
            let technology = self.settings.technology(direction);
            radio_log.record(&block.content, now, direction, technology, epoch, ledger);
        }
        Some(block)
    }

    /// Moves packets from PDCP's queue to RLC until RLC can fill a block of `octets`.
    fn refill(&mut self, now: Instant, direction: Direction, octets: usize, out: &mut Outbox) {
        let discard_timer = self.settings.directions[direction].pdcp.discard_timer;
        while self.entities[direction].buffer_status().new < octets as u64
            && self.can_number(direction)
            && let Some((waited, packet)) = self.directions[direction].queue.pop(now, out)
        {
            if discard_timer.is_some_and(|discard_timer| discard_timer <= waited) {
                self.directions[direction].counters.pdcp_discard += 1;
                out.drop(packet, DropReason::PdcpDiscard);
            } else {
                self.submit(now - waited, direction, packet);
            }
        }
    }

    fn transmit_block(
        &mut self,
        slot: Slot,
        direction: Direction,
        block: Block<TransportBlock>,
        out: &mut Outbox,
    ) {
        let DirectionState { channel, radio_log, ledger, .. } = &mut self.directions[direction];
        if out.records_events() && block.transmissions > 0 {
            note_retransmission(&block.content.pdus, block.transmissions + 1, ledger, out);
        }
        if let Decision::Lost(number) = channel.transmit(slot, &self.grid, block) {
            radio_log.decide(number, Outcome::Lost, out);
        }
    }
}

/// Records a HARQ retransmission for each packet of which the block carries octets.
fn note_retransmission(pdus: &[Pdu], attempt: u32, ledger: &Ledger, out: &mut Outbox) {
    for id in pdus.iter().flat_map(sdus) {
        if let Some(packet) = ledger.packet(*id) {
            out.note(packet, Event::Resent { attempt });
        }
    }
}

/// Identifiers of the SDUs of which the PDU carries octets.
pub(super) fn sdus(pdu: &Pdu) -> &[u64] {
    if let PduKind::Data { sdus, .. } = &pdu.kind { sdus } else { &[] }
}
