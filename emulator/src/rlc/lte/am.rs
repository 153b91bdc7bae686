//! An AM RLC entity (§5.1.3): its transmitting and its receiving side.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use airwire::time::{Duration, Instant, earlier};
use receiver::Receiver;
use sender::Sender;

use super::codec::{self, AmFormat};
use super::subheader;
use crate::rlc::am::{AmParameters, AmStats, ReceiveError};
use crate::rlc::service::{BufferStatus, Event, MacSubheaders, Pdu, PduKind, Sdu};

/// Settings of an AM entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmConfig {
    /// Lengths of fields, in both directions.
    pub format: AmFormat,
    /// Settings that NR has as well.
    pub parameters: AmParameters,
    /// t-Reordering: time for which a missing PDU may be late, before it is reported.
    pub t_reordering: Duration,
    /// Whether `pull` counts MAC subheaders.
    pub mac_subheaders: MacSubheaders,
}

impl Default for AmConfig {
    fn default() -> Self {
        Self {
            format: AmFormat::default(),
            parameters: AmParameters {
                t_poll_retransmit: Duration::from_millis(60),
                t_status_prohibit: Duration::from_millis(20),
                ..AmParameters::default()
            },
            t_reordering: Duration::from_millis(45),
            mac_subheaders: MacSubheaders::default(),
        }
    }
}

/// An AM RLC entity.
#[derive(Debug)]
pub struct AmEntity {
    config: AmConfig,
    sender: Sender,
    receiver: Receiver,
    stats: AmStats,
}

impl AmEntity {
    /// Creates an entity.
    pub fn new(config: AmConfig) -> Self {
        let (sender, receiver) = (Sender::new(&config), Receiver::new(&config));
        Self { config, sender, receiver, stats: AmStats::default() }
    }

    /// Takes an SDU from PDCP.
    ///
    /// # Panics
    ///
    /// If the SDU is empty or exceeds 65 535 octets.
    pub fn submit(&mut self, sdu: Sdu) {
        self.sender.submit(sdu);
    }

    /// Discards an SDU (§5.3). Returns `false`, and does not discard it, if octets of it have been mapped to
    /// a PDU, or if the entity does not have it. A discard can cause a retransmission with a poll, and
    /// therefore [`Event::MaxRetx`].
    pub fn discard(&mut self, id: u64, events: &mut Vec<Event>) -> bool {
        self.sender.discard(id, events)
    }

    /// Octets that wait for transmission.
    pub fn buffer_status(&self) -> BufferStatus {
        BufferStatus { status: self.receiver.status_octets(), ..self.sender.buffer_status() }
    }

    /// Whether `pull` has something to send, given enough octets. A full window makes new data wait.
    pub fn can_send(&self) -> bool {
        self.sender.can_send() || self.receiver.is_status_due()
    }

    /// Appends PDUs for a transport block of `octets` octets that is submitted at `now`: a STATUS PDU, and one
    /// PDU or segment with data that fills the rest. Retransmissions have priority over new data (§5.1.3.1.1).
    /// Returns the octets that are used, including MAC subheaders.
    pub fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) -> usize {
        let counted = self.config.mac_subheaders;
        let mut left = octets;
        if let Some(room) = subheader::status_room(counted, left)
            && let Some(octets) = self.receiver.take_status(now, room, &mut self.stats)
        {
            left -= subheader::status_cost(counted, octets.len());
            pdus.push(Pdu { octets, kind: PduKind::Status });
        }
        let last_subheader = subheader::last(counted);
        if let Some(room) = left.checked_sub(last_subheader)
            && let Some(pdu) = self.sender.next_pdu(now, room, &mut self.stats)
        {
            left -= pdu.octets.len() + last_subheader;
            pdus.push(pdu);
        }
        octets - left
    }

    /// Handles a received PDU. Appends the resulting events to `events`. A refused PDU changes nothing.
    pub fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>) -> Result<(), ReceiveError> {
        let result = match codec::decode(pdu, self.config.format) {
            Ok(codec::Pdu::Data(amd)) => self.receiver.receive(now, &amd, events, &mut self.stats),
            Ok(codec::Pdu::Status(status)) => self.sender.handle_status(status, events, &mut self.stats),
            Err(error) => Err(error),
        };
        self.stats.refused += u64::from(result.is_err());
        result
    }

    /// The earliest time at which a timer expires.
    pub fn next_deadline(&self) -> Option<Instant> {
        earlier(self.sender.next_deadline(), self.receiver.next_deadline())
    }

    /// Handles the timers that expire at `now` or before.
    pub fn on_deadline(&mut self, now: Instant, events: &mut Vec<Event>) {
        self.sender.handle_deadline(now, events, &mut self.stats);
        self.receiver.handle_deadline(now, &mut self.stats);
    }

    /// Re-establishes the entity (§5.4): delivers the SDUs that can be reassembled in ascending order, discards
    /// everything else, stops all timers, and sets the state variables to their initial values.
    pub fn reestablish(&mut self, events: &mut Vec<Event>) {
        self.receiver.deliver_rest(events);
        self.sender = Sender::new(&self.config);
        self.receiver = Receiver::new(&self.config);
    }

    /// Counters since the entity was created.
    pub fn stats(&self) -> AmStats {
        self.stats
    }
}
