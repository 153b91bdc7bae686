//! From bearers to transport blocks.

use airwire::time::Instant;

use super::config::TechnologyKind;
use super::radio_log::Outcome;
use super::shared_channel::{Decision, TransportBlock};
use super::{Channel, Drb};
use crate::mac::grid::Slot;
use crate::mac::harq::Block;
use crate::packet::Direction;
use crate::rlc::lte;
use crate::rlc::service::{Pdu, PduKind};
use crate::stage::{Outbox, RadioLayer, RadioPdu};

impl Drb {
    /// Octets that wait and may be transmitted.
    fn buffered(&self, direction: Direction) -> usize {
        self.bearers.iter().map(|bearer| bearer.buffered(direction)).sum()
    }

    /// Start of the next slot that this direction may use.
    pub(super) fn next_slot(&mut self, now: Instant, direction: Direction) -> Option<Instant> {
        let buffered = self.buffered(direction);
        let now = now.max(self.suspended_until);
        self.channels[direction].shared.next_slot(now, buffered, &self.grid, self.drx.as_ref())
    }

    /// Transmits in the slot that begins now, if the bearer may use it.
    pub(super) fn transmit(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        if now < self.suspended_until {
            return;
        }
        let Some(slot) = self.channels[direction].shared.slot_at(now, &self.grid) else { return };
        let octets = self.channels[direction].shared.octets(slot, &self.grid);
        if octets == 0 {
            return;
        }
        let wins = match direction {
            Direction::Down => self.wins_slot(slot, octets),
            Direction::Up => self.channels.up.shared.is_granted(now, octets),
        };
        if !wins {
            return;
        }
        self.channels[direction].shared.assign(slot, &self.grid);
        for _ in 0..self.channels[direction].shared.blocks_per_slot() {
            let channel = &mut self.channels[direction].shared;
            let block =
                channel.take_retransmission(now).or_else(|| self.new_block(now, direction, octets, out));
            let Some(block) = block else { break };
            self.transmit_block(slot, direction, block, out);
        }
    }

    /// Whether the bearers have something to transmit in this downlink slot, and the scheduler assigns the
    /// slot to them.
    fn wins_slot(&mut self, slot: Slot, octets: usize) -> bool {
        let channel = &self.channels.down.shared;
        let retransmits = channel.has_retransmission(slot.start);
        let is_active = self.drx.is_none_or(|drx| drx.active_from(slot.start) == slot.start);
        let buffered = self.buffered(Direction::Down);
        let channel = &mut self.channels.down.shared;
        if !retransmits && (buffered == 0 || !is_active || !channel.has_free_process(slot.start)) {
            return false;
        }
        let own = if retransmits { octets } else { buffered.min(octets) };
        let wins = self.others.assign(&self.grid, slot, own);
        if !wins {
            self.channels.down.shared.assign(slot, &self.grid);
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
        let permission = self.channels[direction].shared.permission(now, octets)?;
        let mut left = permission.octets;
        let mut pdus = Vec::with_capacity(self.bearers.len());
        // Choice: the bearer of higher priority takes what it needs, without a limit on its rate (TS 38.321
        // §5.4.3.1, TS 36.321 §5.4.3.1, with an infinite prioritised bit rate).
        for bearer in &mut self.bearers {
            // Most packets have about 1 kB or more.
            let mut own = Vec::with_capacity(4 + left / 1024);
            left -= bearer.pull(now, direction, left, &mut own, out);
            left = left.saturating_sub(self.settings.technology.subheader_before_next(&own));
            pdus.push(own);
        }
        if pdus.iter().all(Vec::is_empty) {
            self.channels[direction].shared.waste(now, permission);
            return None;
        }
        let buffered = self.buffered(direction);
        if let Some(drx) = &mut self.drx {
            drx.record_new_data(now);
        }
        let epoch = self.epoch();
        let Channel { shared, radio_log, .. } = &mut self.channels[direction];
        let block = shared.build(permission, pdus, buffered);
        if out.records_radio(RadioLayer::Rlc) {
            radio_log.record(&block.content, now, direction, epoch, &self.bearers);
        }
        Some(block)
    }

    fn transmit_block(
        &mut self,
        slot: Slot,
        direction: Direction,
        block: Block<TransportBlock>,
        out: &mut Outbox,
    ) {
        if out.records_events() && block.transmissions > 0 {
            for (bearer, pdus) in self.bearers.iter().zip(&block.content.pdus) {
                bearer.note_retransmission(direction, pdus, block.transmissions + 1, out);
            }
        }
        let record =
            out.records_radio(RadioLayer::Mac).then(|| self.record_transmission(slot, direction, &block));
        let Channel { shared, radio_log, .. } = &mut self.channels[direction];
        let decision = shared.transmit(slot, &self.grid, block);
        if let Some(record) = record {
            let lost = !matches!(decision, Decision::Arrives);
            out.radio(|at, stage| RadioPdu { at, stage, lost, ..record });
        }
        if let Decision::Lost(block) = decision {
            radio_log.decide(block.number, Outcome::Lost, out);
            for (bearer, pdus) in self.bearers.iter_mut().zip(&block.pdus) {
                bearer.lose(direction, pdus, out);
            }
        }
    }
}

impl TechnologyKind {
    /// Octets that the last subheader gains if a PDU of another bearer follows. In LTE, the subheader of the
    /// last PDU in a block has no length field. It gets one when another PDU follows.
    fn subheader_before_next(self, pdus: &[Pdu]) -> usize {
        match pdus.last() {
            Some(Pdu { octets, kind: PduKind::Data { .. } }) if self == Self::Lte => {
                lte::subheader_length(octets.len())
            }
            _ => 0,
        }
    }
}
