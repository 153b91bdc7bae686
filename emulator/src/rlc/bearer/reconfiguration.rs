//! Changes to the settings of a running bearer.

use std::any::Any;

use airwire::time::Instant;

use super::pdus::submit;
use super::{AGREED, Bearer, DirectionState, shared_downlink};
use crate::packet::Direction;
use crate::rlc::config::{DirectionConfig, RlcConfig};
use crate::rlc::switching::RateSwitch;
use crate::rlc::umts::config::Discard;
use crate::stage::{Outbox, ReconfigureError};

impl Bearer {
    pub(super) fn apply_settings(
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
            check(direction, self.config.direction(direction), config.direction(direction))?;
        }
        shared_downlink::check(self.config.hsdpa.as_ref(), config.hsdpa.as_ref())?;
        let old = std::mem::replace(&mut self.config, config.clone());
        self.rrc.reconfigure(now, config.rrc.clone());
        for direction in Direction::BOTH {
            let DirectionConfig { channel, queue, .. } = self.config.direction(direction);
            let state = &mut self.directions[direction];
            if let Some(dedicated) = state.channel.dedicated_mut() {
                dedicated.reconfigure(now, channel);
            }
            state.ledger.set_bounds(queue.bounds);
            state.queue.reconfigure(now, *queue, out);
            if old.direction(direction).channel.switching != channel.switching {
                state.rate_switch = RateSwitch::new(channel.switching.clone(), now);
            }
        }
        self.reconfigure_entities(now);
        for direction in Direction::BOTH {
            let DirectionState { queue, ledger, .. } = &mut self.directions[direction];
            while queue.is_drop_tail()
                && let Some((waited, packet)) = queue.pop(now, out)
            {
                submit(&mut self.entities[direction], ledger, now - waited, packet);
            }
        }
        self.handle_entity_results(now, out);
        self.schedule(now, out);
        Ok(())
    }
}

/// Refuses changes that are impossible while PDUs of the old format are in flight or windows are in use.
fn check(direction: Direction, old: &DirectionConfig, new: &DirectionConfig) -> Result<(), ReconfigureError> {
    // A discard needs one sequence number more than the window. With a full window of 4095, VT(S) would
    // become equal to VT(A) modulo 4096.
    let resets = |config: &DirectionConfig| matches!(config.sender.discard, Discard::ResetAfterMaxDat { .. });
    let cannot_discard = new.sender.window == 4095 && resets(old) && !resets(new);
    let fixed = [
        ("format.pdu", old.format.pdu != new.format.pdu, AGREED),
        ("format.flexible", old.format.flexible != new.format.flexible, AGREED),
        ("format.he_special", old.format.he_special != new.format.he_special, AGREED),
        ("sender.window", old.sender.window != new.sender.window, AGREED),
        (
            "sender.discard",
            cannot_discard,
            "a window of 4095 can use every sequence number, and a discard needs one more: restart the link",
        ),
        ("receiver.window", old.receiver.window != new.receiver.window, AGREED),
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
