//! A bearer on a shared downlink, whose TTIs the cell assigns.

use airwire::time::Instant;

use super::sending::{pull, put_on_air, technology};
use super::{Bearer, Lane, of};
use crate::packet::Direction;
use crate::rlc::air::Air;
use crate::rlc::carrier::Carrier;
use crate::rlc::config::RlcConfig;
use crate::rlc::umts::entity::Outgoing;
use crate::rlc::umts::hs::config::HsdpaConfig;
use crate::rlc::umts::hs::framing::Framing;
use crate::rlc::umts::hs::{Link, TTI};
use crate::rlc::umts::room::{OneLess, Room};
use crate::stage::{Outbox, ReconfigureError};

/// Creates the channel that carries PDUs in `direction`.
pub(super) fn carrier(config: &RlcConfig, direction: Direction, snr: f64, seed: u64, name: &str) -> Carrier {
    let channel = &of(config, direction).channel;
    match &config.hsdpa {
        Some(hsdpa) if direction == Direction::Down => {
            let framing = Framing::of(&config.down.format);
            Carrier::Shared(Box::new(Link::new(hsdpa, snr, framing, channel.delay, seed, name)))
        }
        Some(_) | None => Carrier::Dedicated(Air::new(channel, seed, name)),
    }
}

/// Refuses changes that are impossible while blocks are in flight.
pub(super) fn check(old: Option<&HsdpaConfig>, new: Option<&HsdpaConfig>) -> Result<(), ReconfigureError> {
    let (old, new) = match (old, new) {
        (None, None) => return Ok(()),
        (Some(old), Some(new)) => (old, new),
        _ => {
            return Err(ReconfigureError::new(
                "hsdpa",
                "this would replace the downlink channel: restart the link",
            ));
        }
    };
    let fixed = [
        (
            "hsdpa.processes",
            old.processes != new.processes,
            "both ends have to agree on it: restart the link",
        ),
        ("hsdpa.window", old.window != new.window, "both ends have to agree on it: restart the link"),
        (
            "hsdpa.others",
            old.others != new.others,
            "the other mobiles are created when the link starts: restart the link",
        ),
    ];
    match fixed.iter().find(|(_, changed, _)| *changed) {
        Some((setting, _, why)) => Err(ReconfigureError::new(*setting, *why)),
        None => Ok(()),
    }
}

impl Bearer {
    /// Earliest time at which the bearer can use a TTI of the shared downlink. `None` if it has nothing to
    /// send.
    pub(in crate::rlc) fn wants_tti(&self) -> Option<Instant> {
        let Carrier::Shared(link) = &self.lanes.down.air else { return None };
        let again = link.ready(false);
        let new = self.shared_from.and_then(|from| Some(link.ready(true)?.max(from)));
        [again, new].into_iter().flatten().min()
    }

    /// Bytes of PDUs that a block of this bearer could carry in the TTI that begins now. `None` if the bearer
    /// has nothing to send or the reception is too poor.
    pub(in crate::rlc) fn bid(&self, now: Instant) -> Option<usize> {
        let Carrier::Shared(link) = &self.lanes.down.air else { return None };
        link.bid(now, self.has_new(now))
    }

    fn has_new(&self, now: Instant) -> bool {
        self.shared_from.is_some_and(|from| from <= now) && self.rrc.is_ready(now)
    }

    /// Sends in the TTI that begins now. Returns the number of PDU bytes that are transmitted for the first
    /// time.
    ///
    /// A PDU is recorded when the transmission begins that decides the fate of its block: the last one, if
    /// HARQ retransmits the block.
    pub(in crate::rlc) fn serve(&mut self, now: Instant, out: &mut Outbox) -> usize {
        let has_new = self.has_new(now);
        if has_new {
            self.fill_up(now, Direction::Down, out);
        }
        let sent = self.send(now, has_new, out);
        // Needed even if nothing was sent: the entity may have discarded packets or failed, and have nothing
        // to send for that reason.
        self.collect(now, out);
        self.schedule(now, out);
        sent
    }

    /// Sends the block of the TTI, if there is one.
    fn send(&mut self, now: Instant, has_new: bool, out: &mut Outbox) -> usize {
        let entity = &mut self.entities.down;
        let Lane { air: Carrier::Shared(link), ledger, .. } = &mut self.lanes.down else { return 0 };
        let pdus = |room: Room| match entity.blocks_wanted(room.pdus()) {
            wanted @ 1.. if has_new => pull(entity, ledger, now, room.at_most(wanted), OneLess::Fits, out),
            _ => Vec::new(),
        };
        let Some(transmission) = link.block(now, pdus) else { return 0 };
        let sent = transmission.new_octets;
        let technology = technology(&self.config.down.format);
        let on_air = |pdu: &Outgoing, lost| put_on_air(Direction::Down, technology, ledger, pdu, lost, out);
        link.transmit(now, transmission, on_air);
        self.rrc.transmits(now + TTI);
        sent
    }

    /// Bytes of downlink packets of which nothing has been transmitted.
    pub(in crate::rlc) fn waiting_down(&self) -> u64 {
        let Lane { front, ledger, .. } = &self.lanes.down;
        ledger.waiting().1 + front.bytes()
    }

    /// Maximum number of bytes in a downlink block, including RLC headers.
    pub(in crate::rlc) fn largest_block(&self) -> u64 {
        self.wanted_octets(Direction::Down) as u64
    }

    /// Applies new settings and a new signal-to-noise ratio (`snr`, in dB) to the shared downlink.
    pub(in crate::rlc) fn share(&mut self, config: &RlcConfig, snr: f64) {
        if let (Carrier::Shared(link), Some(hsdpa)) = (&mut self.lanes.down.air, &config.hsdpa) {
            link.reconfigure(hsdpa, snr, config.down.channel.delay);
        }
    }
}
