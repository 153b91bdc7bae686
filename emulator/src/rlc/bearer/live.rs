//! Changes to the settings of a running bearer.

use std::any::Any;

use airwire::time::Instant;

use super::sending::submit;
use super::{Bearer, Lane, of, shared};
use crate::packet::Direction;
use crate::rlc::carrier::Carrier;
use crate::rlc::config::{DirectionConfig, RlcConfig};
use crate::rlc::switching::Switcher;
use crate::rlc::umts::config::Discard;
use crate::stage::{Outbox, ReconfigureError};

impl Bearer {
    pub(super) fn adopt(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError> {
        let Some(config) = settings.downcast_ref::<RlcConfig>() else {
            return Err(ReconfigureError::new(
                "kind",
                "packets inside the stage cannot move to another kind of stage",
            ));
        };
        config.validate().map_err(|invalid| ReconfigureError::new(invalid.key, invalid.message))?;
        for direction in Direction::BOTH {
            self.check(direction, of(config, direction))?;
        }
        shared::check(self.config.hsdpa.as_ref(), config.hsdpa.as_ref())?;
        let old = std::mem::replace(&mut self.config, config.clone());
        self.rrc.reconfigure(now, config.rrc.clone());
        for direction in Direction::BOTH {
            let DirectionConfig { channel, queue, .. } = of(&self.config, direction);
            let lane = &mut self.lanes[direction];
            if let Carrier::Dedicated(air) = &mut lane.air {
                air.reconfigure(now, channel);
            }
            lane.ledger.set_bounds(queue.bounds);
            lane.front.reconfigure(now, *queue, out);
            if of(&old, direction).channel.switching != channel.switching {
                lane.switcher = Switcher::new(channel.switching.clone(), now);
            }
        }
        self.adapt_entities(now);
        for direction in Direction::BOTH {
            let Lane { front, ledger, .. } = &mut self.lanes[direction];
            while front.is_drop_tail()
                && let Some((waited, packet)) = front.pop(now, out)
            {
                submit(&mut self.entities[direction], ledger, now - waited, packet);
            }
        }
        self.collect(now, out);
        self.schedule(now, out);
        Ok(())
    }

    /// Refuses changes that are impossible while PDUs of the old format are in flight or windows are in use.
    fn check(&self, direction: Direction, new: &DirectionConfig) -> Result<(), ReconfigureError> {
        let old = of(&self.config, direction);
        let at_both_ends = "both ends have to agree on it: restart the link";
        // A discard needs one sequence number more than the window. With a full window of 4095, VT(S) would
        // become equal to VT(A) modulo 4096.
        let resets =
            |config: &DirectionConfig| matches!(config.sender.discard, Discard::ResetAfterMaxDat { .. });
        let cannot_discard = new.sender.window == 4095 && resets(old) && !resets(new);
        let fixed = [
            ("format.pdu", old.format.pdu != new.format.pdu, at_both_ends),
            ("format.flexible", old.format.flexible != new.format.flexible, at_both_ends),
            ("format.he_special", old.format.he_special != new.format.he_special, at_both_ends),
            ("sender.window", old.sender.window != new.sender.window, at_both_ends),
            (
                "sender.discard",
                cannot_discard,
                "a window of 4095 can use every sequence number, and a discard needs one more: restart the link",
            ),
            ("receiver.window", old.receiver.window != new.receiver.window, at_both_ends),
            (
                "receiver.in_sequence",
                old.receiver.in_sequence != new.receiver.in_sequence,
                "packets that wait for earlier ones would leave out of order: restart the link",
            ),
            (
                "channel.phase",
                old.channel.phase != new.channel.phase,
                "the TTI grid is fixed when the link starts: restart the link",
            ),
        ];
        match fixed.iter().find(|(_, changed, _)| *changed) {
            Some((setting, _, why)) => Err(ReconfigureError::new(format!("{direction}.{setting}"), *why)),
            None => Ok(()),
        }
    }
}
