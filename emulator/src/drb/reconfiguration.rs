//! Changes to the settings of a running bearer.

use std::any::Any;

use airwire::time::Instant;

use super::config::{DirectionSettings, DrbSettings, Lte, Nr};
use super::{DirectionState, Drb, DrbConfig};
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
            let settings = &self.settings.directions[direction];
            let DirectionState { queue, ledger, pdcp, channel, receiver, .. } =
                &mut self.directions[direction];
            channel.reconfigure(settings);
            if slot != cell.slot {
                channel.change_slot(slot, cell.slot);
            }
            channel.set_blocks(now, &cell.blocks[direction], settings);
            pdcp.set_discard_timer(settings.pdcp.discard_timer);
            receiver.reconfigure(now, &settings.pdcp);
            ledger.set_bounds(settings.queue.bounds);
            queue.reconfigure(now, settings.queue, out);
        }
        for direction in Direction::BOTH {
            self.deliver(direction, out);
            self.empty_queue(now, direction, out);
        }
        if slot != self.grid.slot() {
            self.others.change_grid(slot, self.grid.slot());
        }
        self.schedule(now, out);
        Ok(())
    }

    /// Submits the packets that wait in PDCP, if they wait in RLC from now on.
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
    for direction in Direction::BOTH {
        let [old, new]: [&DirectionSettings; 2] = [&old.directions[direction], &new.directions[direction]];
        for (key, changed) in [("rlc", old.rlc != new.rlc), ("pdcp.sn", old.pdcp.format != new.pdcp.format)] {
            if changed {
                return Err(ReconfigureError::new(format!("{direction}.{key}"), AGREED));
            }
        }
    }
    Ok(())
}
