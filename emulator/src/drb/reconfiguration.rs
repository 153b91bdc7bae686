//! Changes to the settings of a running bearer.

use std::any::Any;

use airwire::time::Instant;

use super::bearer::{Bearer, DirectionState};
use super::config::{BearerSettings, DrbConfig, DrbSettings, Lte, Nr};
use super::{Channel, Drb};
use crate::mac::drx::Drx;
use crate::mac::grid::Grid;
use crate::packet::Direction;
use crate::rlc::bearer::AGREED;
use crate::stage::{Outbox, ReconfigureError};

impl Drb {
    pub(super) fn apply_settings(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError> {
        let new = read(settings)?;
        check(&self.settings, &new)?;
        let old = std::mem::replace(&mut self.settings, new);
        if old.handover.as_ref().map(|(times, _)| times)
            != self.settings.handover.as_ref().map(|(times, _)| times)
        {
            self.next_handover = self.settings.handover.as_ref().and_then(|(times, _)| times.after(now));
        }
        self.cell = self.cell.min(self.settings.cells.len() - 1);
        self.drx = match (self.drx, self.settings.drx) {
            (Some(mut drx), Some(config)) => {
                drx.reconfigure(config);
                Some(drx)
            }
            (_, config) => config.map(Drx::new),
        };
        let cell = &self.settings.cells[self.cell];
        let slot = self.grid.slot();
        self.grid = Grid::new(cell.slot, cell.pattern.clone());
        for direction in Direction::BOTH {
            let settings = &self.settings.channels[direction];
            let Channel { shared, .. } = &mut self.channels[direction];
            shared.reconfigure(settings);
            if slot != cell.slot {
                shared.change_slot(slot, cell.slot);
            }
            shared.set_blocks(now, &cell.blocks[direction], settings);
        }
        for (bearer, settings) in self.bearers.iter_mut().zip(&self.settings.bearers) {
            bearer.reconfigure(now, settings.clone(), out);
        }
        if slot != self.grid.slot() {
            self.others.change_grid(slot, self.grid.slot());
        }
        self.schedule(now, out);
        Ok(())
    }
}

impl Bearer {
    fn reconfigure(&mut self, now: Instant, settings: BearerSettings, out: &mut Outbox) {
        self.settings = settings;
        for direction in Direction::BOTH {
            let settings = &self.settings.directions[direction];
            let DirectionState { queue, ledger, pdcp, receiver, .. } = &mut self.directions[direction];
            pdcp.set_discard_timer(settings.pdcp.discard_timer);
            receiver.reconfigure(now, &settings.pdcp);
            ledger.set_bounds(settings.queue.bounds);
            queue.reconfigure(now, settings.queue, out);
        }
        for direction in Direction::BOTH {
            self.deliver(direction, out);
            self.empty_queue(now, direction, out);
        }
    }

    /// Moves the waiting packets from PDCP to RLC, if they belong in RLC with the new settings.
    fn empty_queue(&mut self, now: Instant, direction: Direction, out: &mut Outbox) {
        while !self.settings.directions[direction].queues_in_pdcp()
            && self.can_number(direction)
            && let Some((waited, packet)) = self.directions[direction].queue.pop(now, out)
        {
            self.submit(now - waited, direction, packet);
        }
    }
}

fn read(settings: &dyn Any) -> Result<DrbSettings, ReconfigureError> {
    if let Some(config) = settings.downcast_ref::<DrbConfig<Nr>>() {
        config.validate()?;
        return Ok(config.settings());
    }
    if let Some(config) = settings.downcast_ref::<DrbConfig<Lte>>() {
        config.validate()?;
        return Ok(config.settings());
    }
    Err(other_kind())
}

fn other_kind() -> ReconfigureError {
    ReconfigureError::new("kind", "packets inside the stage cannot move to another kind of stage")
}

/// Refuses changes that are impossible while PDUs are in flight.
fn check(old: &DrbSettings, new: &DrbSettings) -> Result<(), ReconfigureError> {
    if old.technology != new.technology {
        return Err(other_kind());
    }
    if old.others != new.others {
        let why = "the other terminals are created when the link starts: restart the link";
        return Err(ReconfigureError::new("others", why));
    }
    if old.bearers.len() != new.bearers.len() {
        let why = "bearers are created when the link starts: restart the link";
        return Err(ReconfigureError::new("dedicated", why));
    }
    for (old, new) in old.bearers.iter().zip(&new.bearers) {
        for direction in Direction::BOTH {
            let table = if old.filter.is_some() { "dedicated".to_owned() } else { direction.to_string() };
            let [old, new] = [&old.directions[direction], &new.directions[direction]];
            for (key, changed) in
                [("rlc", old.rlc != new.rlc), ("pdcp.sn", old.pdcp.format != new.pdcp.format)]
            {
                if changed {
                    return Err(ReconfigureError::new(format!("{table}.{key}"), AGREED));
                }
            }
        }
    }
    Ok(())
}
