//! A bearer whose downlink is one that mobiles share: the cell says when it has a TTI.

use airwire::time::Instant;

use super::super::air::{Air, OneLess};
use super::super::carrier::Carrier;
use super::super::config::RlcConfig;
use super::super::umts::entity::{Outgoing, Room};
use super::super::umts::hs::config::HsdpaConfig;
use super::super::umts::hs::framing::Framing;
use super::super::umts::hs::{Link, TTI};
use super::sending::{pull, put_on_air, technology};
use super::{Bearer, Lane, of};
use crate::packet::Direction;
use crate::stage::{NotLive, Outbox};

/// What carries PDUs in `direction`.
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

/// What cannot change while blocks are under way.
pub(super) fn check(old: Option<&HsdpaConfig>, new: Option<&HsdpaConfig>) -> Result<(), NotLive> {
    let (old, new) = match (old, new) {
        (None, None) => return Ok(()),
        (Some(old), Some(new)) => (old, new),
        _ => return Err(NotLive::new("hsdpa", "this would replace the downlink channel: restart the link")),
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
        Some((setting, _, why)) => Err(NotLive::new(*setting, *why)),
        None => Ok(()),
    }
}

impl Bearer {
    /// From when on it could use a TTI of the shared downlink. `None`: it has nothing to send.
    pub(in crate::rlc) fn wants_tti(&self) -> Option<Instant> {
        let Carrier::Shared(link) = &self.lanes.down.air else { return None };
        let again = link.ready(false);
        let new = self.shared_from.and_then(|from| Some(link.ready(true)?.max(from)));
        [again, new].into_iter().flatten().min()
    }

    /// How many octets of PDUs a block of its could have in the TTI that begins now. `None`: it has nothing to send, or
    /// receives too badly.
    pub(in crate::rlc) fn bid(&self, now: Instant) -> Option<usize> {
        let Carrier::Shared(link) = &self.lanes.down.air else { return None };
        link.bid(now, self.has_new(now))
    }

    fn has_new(&self, now: Instant) -> bool {
        self.shared_from.is_some_and(|from| from <= now) && self.rrc.is_ready(now)
    }

    /// It has the TTI that begins now. Returned are how many octets of PDUs are sent that were not sent before.
    ///
    /// A PDU is put on record when the transmission begins that decides what becomes of its block: of several, the last.
    pub(in crate::rlc) fn serve(&mut self, now: Instant, out: &mut Outbox) -> usize {
        let has_new = self.has_new(now);
        if has_new {
            self.fill_up(now, Direction::Down, out);
        }
        let sent = self.send(now, has_new, out);
        // The entity may have discarded packets, or failed, and have nothing to send for that very reason.
        self.collect(now, out);
        self.schedule(now, out);
        sent
    }

    /// The block of that TTI, if there is one.
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

    /// Octets of packets for the downlink of which nothing has been transmitted.
    pub(in crate::rlc) fn waiting_down(&self) -> u64 {
        let Lane { front, ledger, .. } = &self.lanes.down;
        ledger.waiting().1 + front.bytes()
    }

    /// The most octets that a block of the downlink carries, headers of RLC among them.
    pub(in crate::rlc) fn largest_block(&self) -> u64 {
        self.wanted_octets(Direction::Down) as u64
    }

    /// New settings of the shared downlink, and of how well it is received.
    pub(in crate::rlc) fn share(&mut self, config: &RlcConfig, snr: f64) {
        if let (Carrier::Shared(link), Some(hsdpa)) = (&mut self.lanes.down.air, &config.hsdpa) {
            link.reconfigure(hsdpa, snr, config.down.channel.delay);
        }
    }
}
