//! A bearer on a shared downlink, whose TTIs the cell assigns.

use airwire::time::Instant;

use super::AGREED;
use super::pdus::{pull, record_pdu};
use super::{Bearer, DirectionState};
use crate::packet::Direction;
use crate::rlc::config::RlcConfig;
use crate::rlc::dedicated_channel::DedicatedChannel;
use crate::rlc::transport_channel::TransportChannel;
use crate::rlc::umts::capacity::{OneBlockFewer, Room};
use crate::rlc::umts::entity::Outgoing;
use crate::rlc::umts::hs::config::HsdpaConfig;
use crate::rlc::umts::hs::framing::Framing;
use crate::rlc::umts::hs::{Link, TTI};
use crate::stage::{Outbox, ReconfigureError};

/// Creates the channel that carries PDUs in `direction`.
pub(super) fn channel(
    config: &RlcConfig,
    direction: Direction,
    snr: f64,
    seed: u64,
    name: &str,
) -> TransportChannel {
    let channel = &config.direction(direction).channel;
    match &config.hsdpa {
        Some(hsdpa) if direction == Direction::Down => {
            let framing = Framing::of(&config.down.format);
            TransportChannel::Shared(Box::new(Link::new(hsdpa, snr, framing, channel.delay, seed, name)))
        }
        Some(_) | None => TransportChannel::Dedicated(DedicatedChannel::new(channel, seed, name)),
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
        ("hsdpa.processes", old.processes != new.processes, AGREED),
        ("hsdpa.window", old.window != new.window, AGREED),
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
    pub(super) fn link(&self) -> Option<&Link> {
        if let TransportChannel::Shared(link) = &self.directions.down.channel { Some(link) } else { None }
    }

    /// Earliest time at which the bearer can use a TTI of the shared downlink. `None` if it has nothing to
    /// send.
    pub(in crate::rlc) fn earliest_tti(&self) -> Option<Instant> {
        let link = self.link()?;
        let new = self.shared_from.and_then(|from| Some(link.ready_at(true)?.max(from)));
        link.ready_at(false).into_iter().chain(new).min()
    }

    /// Bytes of PDUs that a block of this bearer could carry in the TTI that begins now. `None` if the bearer
    /// has nothing to send or the reception is too poor.
    pub(in crate::rlc) fn sendable_octets(&self, now: Instant) -> Option<usize> {
        self.link()?.sendable_octets(now, self.has_new_data(now))
    }

    fn has_new_data(&self, now: Instant) -> bool {
        self.shared_from.is_some_and(|from| from <= now) && self.rrc.is_ready(now)
    }

    /// Sends in the TTI that begins now. Returns the number of PDU bytes that are transmitted for the first
    /// time.
    ///
    /// A PDU is recorded when the transmission begins that decides the outcome of its block: the last one, if
    /// HARQ retransmits the block.
    pub(in crate::rlc) fn use_tti(&mut self, now: Instant, out: &mut Outbox) -> usize {
        let has_new = self.has_new_data(now);
        if has_new {
            self.refill(now, Direction::Down, out);
        }
        let sent = self.transmit_shared(now, has_new, out);
        // Needed even if nothing was sent: the entity may have discarded packets or failed, and have nothing
        // to send for that reason.
        self.handle_entity_results(now, out);
        self.schedule(now, out);
        sent
    }

    fn transmit_shared(&mut self, now: Instant, has_new: bool, out: &mut Outbox) -> usize {
        let entity = &mut self.entities.down;
        let DirectionState { channel: TransportChannel::Shared(link), ledger, .. } =
            &mut self.directions.down
        else {
            return 0;
        };
        let pdus = |room: Room| match entity.sendable_pdus(room.pdus()) {
            count @ 1.. if has_new => {
                pull(entity, ledger, now, room.at_most(count), OneBlockFewer::HasFormat, out)
            }
            _ => Vec::new(),
        };
        let Some(transmission) = link.next_block(now, pdus) else { return 0 };
        let sent = transmission.new_octets;
        let format = &self.config.down.format;
        let record = |pdu: &Outgoing, lost| record_pdu(Direction::Down, format, ledger, pdu, lost, out);
        link.transmit(now, transmission, record);
        self.rrc.record_transmission(now + TTI);
        sent
    }

    /// Bytes of downlink packets whose transmission has not begun.
    pub(in crate::rlc) fn unsent_down(&self) -> u64 {
        let DirectionState { queue, ledger, .. } = &self.directions.down;
        ledger.waiting().1 + queue.bytes()
    }

    /// Maximum number of bytes in a downlink block, including RLC headers.
    pub(in crate::rlc) fn max_block(&self) -> u64 {
        self.max_octets(Direction::Down) as u64
    }

    /// Applies new settings and a new signal-to-noise ratio (`snr`, in dB) to the shared downlink.
    pub(in crate::rlc) fn reconfigure_link(&mut self, config: &RlcConfig, snr: f64) {
        if let (TransportChannel::Shared(link), Some(hsdpa)) =
            (&mut self.directions.down.channel, &config.hsdpa)
        {
            link.reconfigure(hsdpa, snr, config.down.channel.delay);
        }
    }
}
