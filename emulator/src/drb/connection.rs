//! Handovers, and re-establishment after radio link failures (TS 38.331 §5.3.5, §5.3.7).
//!
//! Choices: RLC and PDCP are re-established when the procedure begins, and only its duration is modelled, not
//! its messages. Transport blocks that have not arrived by then are lost. The first SDU after the
//! re-establishment is the status report of PDCP.

use airwire::time::Instant;

use super::Drb;
use super::config::HandoverConfig;
use super::radio_log::Outcome;
use super::transmission::CONTROL;
use crate::mac::grid::Grid;
use crate::packet::Direction;
use crate::pdcp::lte_receiver::DeliveredBy;
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
            self.lose_downlink(now, out);
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

    /// Drops the downlink packets that the terminal does not have.
    fn lose_downlink(&mut self, now: Instant, out: &mut Outbox) {
        let state = &mut self.directions.down;
        state.pdcp.clear();
        while let Some((_, packet)) = state.queue.pop(now, out) {
            state.counters.handover += 1;
            out.drop(packet, DropReason::Handover);
        }
    }

    /// Resets MAC, and re-establishes RLC and PDCP at both ends. Nothing is transmitted before `until`.
    fn reestablish(&mut self, now: Instant, until: Instant, out: &mut Outbox) {
        self.suspended_until = self.suspended_until.max(until);
        for direction in Direction::BOTH {
            let state = &mut self.directions[direction];
            for block in state.channel.reset() {
                state.radio_log.decide(block, Outcome::Lost, out);
            }
        }
        for direction in Direction::BOTH {
            self.entities[direction].reestablish(&mut self.events);
            self.handle_events(now, direction, DeliveredBy::Reestablishment, out);
        }
        for direction in Direction::BOTH {
            self.drop_unrecoverable(direction, out);
            self.send_report(direction);
        }
        for direction in Direction::BOTH {
            let state = &mut self.directions[direction];
            state.ledger.requeue_all(now, |_, _, _| {});
            for (count, octets) in state.pdcp.reestablish() {
                state.counters.retransmitted_sdus += 1;
                self.entities[direction].submit(Sdu { id: count, octets });
            }
        }
        out.report_incident(IncidentKind::RlcReestablished);
    }

    /// Drops the packets that neither end has any more: PDCP has discarded them, or a handover did not forward
    /// them.
    fn drop_unrecoverable(&mut self, direction: Direction, out: &mut Outbox) {
        let forwards = self.settings.handover.as_ref().is_none_or(|(_, config)| config.forwarding);
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

    /// Continues in the other cell.
    fn change_cell(&mut self, until: Instant) {
        self.cell = (self.cell + 1) % self.settings.cells.len();
        let cell = &self.settings.cells[self.cell];
        let old = self.grid.slot();
        self.grid = Grid::new(cell.slot, cell.pattern.clone());
        self.others.change_grid(old, cell.slot);
        for direction in Direction::BOTH {
            let channel = &mut self.directions[direction].channel;
            channel.change_slot(old, cell.slot);
            channel.set_blocks(until, &cell.blocks[direction], &self.settings.directions[direction]);
        }
    }
}
