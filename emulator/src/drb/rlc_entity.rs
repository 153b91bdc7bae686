//! The RLC entity of either generation and mode.

use airwire::time::Instant;

use super::config::{BearerSettings, RlcMode, RlcSettings, TechnologyKind};
use crate::packet::Direction;
use crate::rlc::am::{AmParameters, AmStats, ReceiveError};
use crate::rlc::service::{BufferStatus, Event, MacSubheaders, Pdu, Sdu};
use crate::rlc::{lte, nr};

#[derive(Debug)]
pub(super) enum RlcEntity {
    LteAm(lte::AmEntity),
    NrAm(nr::AmEntity),
    LteUm(UmPair<lte::UmSender, lte::UmReceiver>),
    NrUm(UmPair<nr::UmSender, nr::UmReceiver>),
}

/// The transmitting and the receiving UM entity of one end.
#[derive(Debug)]
pub(super) struct UmPair<S, R> {
    sender: S,
    receiver: R,
    stats: AmStats,
}

/// Evaluates the first expression for AM of either generation, and the second one for UM.
macro_rules! by_mode {
    ($entity:expr, $am:ident => $am_call:expr, $um:ident => $um_call:expr) => {
        match $entity {
            RlcEntity::LteAm($am) => $am_call,
            RlcEntity::NrAm($am) => $am_call,
            RlcEntity::LteUm($um) => $um_call,
            RlcEntity::NrUm($um) => $um_call,
        }
    };
}

impl RlcEntity {
    /// Creates the entity that sends data in `direction`.
    pub(super) fn new(settings: &BearerSettings, direction: Direction) -> Self {
        let sent = &settings.directions[direction].rlc;
        let received = &settings.directions[direction.reversed()].rlc;
        match sent.mode {
            RlcMode::Am => Self::acknowledged(settings.technology, sent, received),
            RlcMode::Um => Self::unacknowledged(settings.technology, sent, received),
        }
    }

    fn acknowledged(technology: TechnologyKind, sent: &RlcSettings, received: &RlcSettings) -> Self {
        let parameters = AmParameters {
            poll_pdu: sent.poll_pdu,
            poll_byte: sent.poll_byte,
            t_poll_retransmit: sent.t_poll_retransmit,
            max_retx_threshold: sent.max_retx,
            t_status_prohibit: received.t_status_prohibit,
        };
        match technology {
            TechnologyKind::Lte => Self::LteAm(lte::AmEntity::new(lte::AmConfig {
                format: lte::AmFormat {
                    sn: if sent.sn == 10 { lte::AmSnLength::Bits10 } else { lte::AmSnLength::Bits16 },
                    li: lte::LiLength::Bits11,
                },
                parameters,
                t_reordering: received.t_reassembly,
                mac_subheaders: MacSubheaders::Counted,
            })),
            TechnologyKind::Nr => Self::NrAm(nr::AmEntity::new(nr::AmConfig {
                sn_length: if sent.sn == 12 { nr::AmSnLength::Bits12 } else { nr::AmSnLength::Bits18 },
                parameters,
                t_reassembly: received.t_reassembly,
                mac_subheaders: MacSubheaders::Counted,
            })),
        }
    }

    fn unacknowledged(technology: TechnologyKind, sent: &RlcSettings, received: &RlcSettings) -> Self {
        let (mac_subheaders, stats) = (MacSubheaders::Counted, AmStats::default());
        match technology {
            TechnologyKind::Lte => {
                let config = lte::UmConfig {
                    sn_length: if sent.sn == 5 { lte::UmSnLength::Bits5 } else { lte::UmSnLength::Bits10 },
                    t_reordering: received.t_reassembly,
                    mac_subheaders,
                };
                let sender = lte::UmSender::new(config.clone());
                Self::LteUm(UmPair { sender, receiver: lte::UmReceiver::new(config), stats })
            }
            TechnologyKind::Nr => {
                let config = nr::UmConfig {
                    sn_length: if sent.sn == 6 { nr::UmSnLength::Bits6 } else { nr::UmSnLength::Bits12 },
                    t_reassembly: received.t_reassembly,
                    mac_subheaders,
                };
                let sender = nr::UmSender::new(config.clone());
                Self::NrUm(UmPair { sender, receiver: nr::UmReceiver::new(config), stats })
            }
        }
    }

    pub(super) fn submit(&mut self, sdu: Sdu) {
        by_mode!(self, am => am.submit(sdu), um => um.sender.submit(sdu));
    }

    pub(super) fn discard(&mut self, id: u64, events: &mut Vec<Event>) -> bool {
        by_mode!(self, am => am.discard(id, events), um => um.sender.discard(id))
    }

    pub(super) fn buffer_status(&self) -> BufferStatus {
        by_mode!(self, am => am.buffer_status(), um => um.sender.buffer_status())
    }

    pub(super) fn can_send(&self) -> bool {
        by_mode!(self, am => am.can_send(), um => um.sender.buffer_status().new > 0)
    }

    pub(super) fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) -> usize {
        by_mode!(self, am => am.pull(now, octets, pdus), um => {
            let before = pdus.len();
            let used = um.sender.pull(octets, pdus);
            um.stats.pdus_new += (pdus.len() - before) as u64;
            used
        })
    }

    pub(super) fn receive(
        &mut self,
        now: Instant,
        pdu: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), ReceiveError> {
        by_mode!(self, am => am.receive(now, pdu, events), um => {
            let result = um.receiver.receive(now, pdu, events);
            um.stats.refused += u64::from(result.is_err());
            result
        })
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        by_mode!(self, am => am.next_deadline(), um => um.receiver.next_deadline())
    }

    /// Handles the timers that expire at `now` or before.
    pub(super) fn on_deadline(&mut self, now: Instant, events: &mut Vec<Event>) {
        match self {
            Self::LteAm(entity) => entity.on_deadline(now, events),
            Self::NrAm(entity) => entity.on_deadline(now, events),
            Self::LteUm(UmPair { receiver, stats, .. }) => {
                receiver.on_deadline(now, events);
                stats.reassembly_timeouts += 1;
            }
            Self::NrUm(UmPair { receiver, stats, .. }) => {
                receiver.on_deadline(now);
                stats.reassembly_timeouts += 1;
            }
        }
    }

    /// Re-establishes the entity. An LTE entity first delivers the SDUs that are complete.
    pub(super) fn reestablish(&mut self, events: &mut Vec<Event>) {
        match self {
            Self::LteAm(entity) => entity.reestablish(events),
            Self::NrAm(entity) => entity.reestablish(),
            Self::LteUm(UmPair { sender, receiver, .. }) => {
                sender.reestablish();
                receiver.reestablish(events);
            }
            Self::NrUm(UmPair { sender, receiver, .. }) => {
                sender.reestablish();
                receiver.reestablish();
            }
        }
    }

    /// Counters. In unacknowledged mode, the counters of polls, retransmissions and STATUS PDUs are 0.
    pub(super) fn stats(&self) -> AmStats {
        by_mode!(self, am => am.stats(), um => um.stats)
    }
}
