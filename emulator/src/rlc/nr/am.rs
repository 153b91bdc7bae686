//! An AM RLC entity (§5.2.3): its transmitting and its receiving side.

mod sender;
#[cfg(test)]
mod tests;

use airwire::time::{Duration, Instant, earlier};
use sender::Sender;

use super::codec::{self, AmSnLength, Amd};
use super::subheader;
use crate::rlc::am::receive_window::Placement;
use crate::rlc::am::receiver::Receiver;
use crate::rlc::am::{AmParameters, AmStats, Generation, ReceiveError};
use crate::rlc::segments::Segment;
use crate::rlc::service::{BufferStatus, Event, MacSubheaders, Pdu, PduKind, Sdu};

/// Settings of an AM entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmConfig {
    /// Length of the sequence numbers, in both directions.
    pub sn_length: AmSnLength,
    /// Settings that LTE has as well.
    pub parameters: AmParameters,
    /// t-Reassembly: time for which a missing segment may be late, before it is reported.
    pub t_reassembly: Duration,
    /// Whether `pull` counts MAC subheaders.
    pub mac_subheaders: MacSubheaders,
}

impl Default for AmConfig {
    fn default() -> Self {
        Self {
            sn_length: AmSnLength::default(),
            parameters: AmParameters::default(),
            t_reassembly: Duration::from_millis(20),
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
        Self { sender: Sender::new(&config), receiver: receiver(&config), config, stats: AmStats::default() }
    }

    /// Takes an SDU from PDCP.
    ///
    /// # Panics
    ///
    /// If the SDU is empty or exceeds 65 535 octets, which the SO field cannot address.
    pub fn submit(&mut self, sdu: Sdu) {
        self.sender.submit(sdu);
    }

    /// Discards an SDU (§5.4). Returns `false`, and does not discard it, if octets of it have been
    /// transmitted, or if the entity does not have it. A discard can cause a retransmission with a poll, and
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

    /// Appends PDUs for a transport block of `octets` octets that is submitted at `now`: a STATUS PDU, then
    /// retransmissions, then new data (§5.2.3.1.1). Returns the octets that are used, including MAC
    /// subheaders.
    pub fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) -> usize {
        let counted = self.config.mac_subheaders;
        let mut left = octets;
        if let Some(room) = subheader::room(counted, left)
            && let Some(status) = self.receiver.take_status(now, room, &mut self.stats)
        {
            let octets = codec::encode_status(&status, self.config.sn_length);
            left -= subheader::cost(counted, octets.len());
            pdus.push(Pdu { octets, kind: PduKind::Status });
        }
        while let Some(room) = subheader::room(counted, left)
            && let Some(pdu) = self.sender.next_pdu(now, room, &mut self.stats)
        {
            left -= subheader::cost(counted, pdu.octets.len());
            pdus.push(pdu);
        }
        octets - left
    }

    /// Handles a received PDU. Appends the resulting events to `events`. A refused PDU changes nothing.
    pub fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>) -> Result<(), ReceiveError> {
        let result = match codec::decode(pdu, self.config.sn_length) {
            Ok(codec::Pdu::Data(amd)) => self.receive_amd(now, amd, events),
            Ok(codec::Pdu::Status(status)) => self.sender.handle_status(status, events, &mut self.stats),
            Err(error) => Err(error),
        };
        self.stats.refused += u64::from(result.is_err());
        result
    }

    fn receive_amd(
        &mut self,
        now: Instant,
        amd: Amd<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), ReceiveError> {
        let (offset, is_last) = (amd.position.offset(), amd.position.is_last());
        let segment = Segment { offset, octets: amd.data, is_last };
        match self.receiver.receive(now, amd.sn, amd.poll, segment).1 {
            Placement::Stored => {}
            Placement::Whole => events.push(Event::Delivered(amd.data.to_vec())),
            Placement::Completed(octets) => events.push(Event::Delivered(octets)),
            Placement::Discarded => self.stats.duplicates += 1,
            Placement::Contradiction => return Err(ReceiveError::Contradiction(amd.sn)),
        }
        Ok(())
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

    /// Re-establishes the entity (§5.1.2): discards all SDUs and segments, stops all timers, and sets the state
    /// variables to their initial values.
    pub fn reestablish(&mut self) {
        self.sender = Sender::new(&self.config);
        self.receiver = receiver(&self.config);
    }

    /// Counters since the entity was created.
    pub fn stats(&self) -> AmStats {
        self.stats
    }
}

fn receiver(config: &AmConfig) -> Receiver {
    Receiver::new(
        Generation::Nr,
        config.sn_length.bits(),
        config.sn_length.report_format(),
        config.t_reassembly,
        config.parameters.t_status_prohibit,
    )
}
