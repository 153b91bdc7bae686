//! Handovers, and re-establishment after radio link failures (TS 38.331 §5.3.5, §5.3.7).
//!
//! Choices: the model has the duration of the procedure, but not its messages. RLC and PDCP are
//! re-established when the procedure begins, and transport blocks in flight are lost. The first SDU after the
//! re-establishment is the status report of PDCP.

use airwire::time::Instant;

use super::Drb;
use super::bearer::{Bearer, CONTROL, DirectionState};
use super::config::{HandoverConfig, RlcMode};
use super::radio_log::Outcome;
use crate::mac::grid::Grid;
use crate::packet::Direction;
use crate::pdcp::lte_receiver::DeliveredBy;
use crate::pdcp::transmitter::Transmitter;
use crate::rlc::service::Sdu;
use crate::stage::{DropReason, IncidentKind, Outbox};

impl Drb {
    /// Begins a handover if one is due.
    pub(super) fn hand_over(&mut self, now: Instant, out: &mut Outbox) {
        if self.next_handover.is_none_or(|at| at > now) {
            return;
        }
        let Some((times, HandoverConfig { interruption, forwarding, .. })) = &self.settings.handover else {
            return;
        };
        let (until, forwarding) = (now + *interruption, *forwarding);
        self.next_handover = times.after(now);
        self.handovers += 1;
        out.report_incident(IncidentKind::HandoverCommand { until });
        if !forwarding {
            self.bearers.iter_mut().for_each(|bearer| bearer.lose_downlink(now, out));
        }
        self.reestablish(now, until, out);
        self.change_cell(until);
    }

    /// Handles a radio link failure, which the sender of `direction` has reported.
    pub(super) fn fail(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        let until = now + self.settings.rlf.recovery;
        self.radio_link_failures += 1;
        out.report_incident(IncidentKind::RadioLinkFailure { direction, until });
        self.reestablish(now, until, out);
    }

    /// Number of re-establishments.
    pub(super) fn epoch(&self) -> u32 {
        (self.handovers + self.radio_link_failures) as u32
    }

    /// Re-establishes RLC and PDCP. Nothing is transmitted before `until`.
    fn reestablish(&mut self, now: Instant, until: Instant, out: &mut Outbox) {
        self.suspended_until = self.suspended_until.max(until);
        for direction in Direction::BOTH {
            let channel = &mut self.channels[direction];
            for block in channel.shared.reset() {
                channel.radio_log.decide(block, Outcome::Lost, out);
            }
        }
        let forwards = self.settings.handover.as_ref().is_none_or(|(_, config)| config.forwarding);
        for bearer in &mut self.bearers {
            bearer.reestablish(now, forwards, out);
        }
        out.report_incident(IncidentKind::RlcReestablished);
    }

    /// Continues in the other cell.
    fn change_cell(&mut self, until: Instant) {
        self.cell = (self.cell + 1) % self.settings.cells.len();
        let cell = &self.settings.cells[self.cell];
        let old = self.grid.slot();
        self.grid = Grid::new(cell.slot, cell.pattern.clone());
        self.others.change_grid(old, cell.slot);
        for direction in Direction::BOTH {
            let channel = &mut self.channels[direction].shared;
            channel.change_slot(old, cell.slot);
            channel.set_blocks(until, &cell.blocks[direction], &self.settings.channels[direction]);
        }
    }
}

impl Bearer {
    /// Drops the downlink packets that the terminal does not have.
    fn lose_downlink(&mut self, now: Instant, out: &mut Outbox) {
        let state = &mut self.directions.down;
        state.pdcp.clear();
        while let Some((_, packet)) = state.queue.pop(now, out) {
            state.counters.handover += 1;
            out.drop(packet, DropReason::Handover);
        }
        if self.is_unacknowledged() {
            let ledger = &self.directions.down.ledger;
            let waiting: Vec<u64> = ledger.unsettled().filter(|id| !ledger.has_begun(*id)).collect();
            for id in waiting {
                self.drop_packet(Direction::Down, id, DropReason::Handover, out);
            }
        }
    }

    /// Re-establishes RLC and PDCP of both ends. `forwards`: a handover forwards packets to the target cell.
    fn reestablish(&mut self, now: Instant, forwards: bool, out: &mut Outbox) {
        for direction in Direction::BOTH {
            self.entities[direction].reestablish(&mut self.events);
            // A radio link failure in these events would only cause the same re-establishment again.
            self.handle_events(now, direction, DeliveredBy::Reestablishment, out);
        }
        match self.settings.mode() {
            RlcMode::Am => {
                for direction in Direction::BOTH {
                    self.drop_unrecoverable(direction, forwards, out);
                    self.send_report(direction);
                }
                Direction::BOTH.into_iter().for_each(|direction| self.submit_again(now, direction));
            }
            RlcMode::Um => {
                Direction::BOTH.into_iter().for_each(|direction| self.restart(now, direction, out));
            }
        }
    }

    /// PDCP submits the unconfirmed SDUs again.
    fn submit_again(&mut self, now: Instant, direction: Direction) {
        let DirectionState { ledger, pdcp, counters, .. } = &mut self.directions[direction];
        ledger.requeue_all(now, |_, _, _| {});
        for (id, octets) in pdcp.reestablish() {
            counters.retransmitted_sdus += 1;
            self.entities[direction].submit(Sdu { id, octets });
        }
    }

    /// Re-establishes PDCP in unacknowledged mode (TS 38.323 §5.1.2, TS 36.323 §5.2): the receiver delivers
    /// all SDUs that it holds, and both ends number from 0 again. The sender gives new numbers to the packets
    /// that wait. Packets whose transmission has begun are lost.
    fn restart(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        self.directions[direction].receiver.flush(now);
        self.deliver(direction, out);
        let ledger = &self.directions[direction].ledger;
        let (begun, waiting): (Vec<u64>, Vec<u64>) = ledger.unsettled().partition(|id| ledger.has_begun(*id));
        for id in begun {
            self.drop_packet(direction, id, DropReason::RlcLoss, out);
        }
        let pdcp = &self.settings.directions[direction].pdcp;
        let DirectionState { receiver, pdcp: transmitter, ledger, base, .. } =
            &mut self.directions[direction];
        receiver.restart();
        *transmitter = Transmitter::new(pdcp.format, pdcp.discard_timer);
        *base = ledger.next_number();
        let packets: Vec<_> = waiting.into_iter().filter_map(|id| ledger.take(id)).collect();
        for (since, packet) in packets {
            self.submit(since, direction, packet);
        }
    }

    /// Drops the packets that neither end can deliver: PDCP has discarded them, or a handover did not forward
    /// them.
    fn drop_unrecoverable(&mut self, direction: Direction, forwards: bool, out: &mut Outbox) {
        let why = if direction == Direction::Down && !forwards {
            DropReason::Handover
        } else {
            DropReason::PdcpDiscard
        };
        let state = &self.directions[direction];
        let lost = |count: &u64| !state.pdcp.holds(*count) && !state.receiver.holds(*count);
        let lost: Vec<u64> = state.ledger.unsettled().filter(lost).collect();
        for count in lost {
            self.drop_packet(direction, count, why, out);
        }
    }

    /// The receiver of `direction` reports to the sender which SDUs it has.
    fn send_report(&mut self, direction: Direction) {
        let pdcp = &self.settings.directions[direction].pdcp;
        if pdcp.status_report {
            let state = &mut self.directions[direction];
            let octets = state.receiver.status_report().encode(pdcp.format).into();
            let id = CONTROL + state.reports;
            state.reports += 1;
            self.entities[direction.reversed()].submit(Sdu { id, octets });
        }
    }
}
