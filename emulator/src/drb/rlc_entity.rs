//! The RLC AM entity of either generation.

use airwire::time::Instant;

use super::config::{AmSettings, DrbSettings, TechnologyKind};
use crate::packet::Direction;
use crate::rlc::am::{AmParameters, AmStats, ReceiveError};
use crate::rlc::service::{BufferStatus, Event, MacSubheaders, Pdu, Sdu};
use crate::rlc::{lte, nr};

#[derive(Debug)]
pub(super) enum AmEntity {
    Lte(lte::AmEntity),
    Nr(nr::AmEntity),
}

/// Calls a method of the entity of either generation.
macro_rules! either {
    ($entity:expr, $name:ident => $call:expr) => {
        match $entity {
            AmEntity::Lte($name) => $call,
            AmEntity::Nr($name) => $call,
        }
    };
}

impl AmEntity {
    /// Creates the entity that sends data in `direction`.
    pub(super) fn new(settings: &DrbSettings, direction: Direction) -> Self {
        let sent: &AmSettings = &settings.directions[direction].rlc;
        let received: &AmSettings = &settings.directions[direction.reversed()].rlc;
        let parameters = AmParameters {
            poll_pdu: sent.poll_pdu,
            poll_byte: sent.poll_byte,
            t_poll_retransmit: sent.t_poll_retransmit,
            max_retx_threshold: sent.max_retx,
            t_status_prohibit: received.t_status_prohibit,
        };
        match settings.technology {
            TechnologyKind::Lte => Self::Lte(lte::AmEntity::new(lte::AmConfig {
                format: lte::AmFormat {
                    sn: if sent.sn == 10 { lte::AmSnLength::Bits10 } else { lte::AmSnLength::Bits16 },
                    li: lte::LiLength::Bits11,
                },
                parameters,
                t_reordering: received.t_reassembly,
                mac_subheaders: MacSubheaders::Counted,
            })),
            TechnologyKind::Nr => Self::Nr(nr::AmEntity::new(nr::AmConfig {
                sn_length: if sent.sn == 12 { nr::AmSnLength::Bits12 } else { nr::AmSnLength::Bits18 },
                parameters,
                t_reassembly: received.t_reassembly,
                mac_subheaders: MacSubheaders::Counted,
            })),
        }
    }

    pub(super) fn submit(&mut self, sdu: Sdu) {
        either!(self, entity => entity.submit(sdu));
    }

    pub(super) fn discard(&mut self, id: u64, events: &mut Vec<Event>) -> bool {
        either!(self, entity => entity.discard(id, events))
    }

    pub(super) fn buffer_status(&self) -> BufferStatus {
        either!(self, entity => entity.buffer_status())
    }

    pub(super) fn can_send(&self) -> bool {
        either!(self, entity => entity.can_send())
    }

    pub(super) fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) -> usize {
        either!(self, entity => entity.pull(now, octets, pdus))
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        pdu: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), ReceiveError> {
        either!(self, entity => entity.receive(now, pdu, events))
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        either!(self, entity => entity.next_deadline())
    }

    pub(super) fn on_deadline(&mut self, now: Instant, events: &mut Vec<Event>) {
        either!(self, entity => entity.on_deadline(now, events));
    }

    /// Re-establishes the entity. LTE first delivers the SDUs that are complete.
    pub(super) fn reestablish(&mut self, events: &mut Vec<Event>) {
        match self {
            Self::Lte(entity) => entity.reestablish(events),
            Self::Nr(entity) => entity.reestablish(),
        }
    }

    pub(super) fn stats(&self) -> AmStats {
        either!(self, entity => entity.stats())
    }
}
