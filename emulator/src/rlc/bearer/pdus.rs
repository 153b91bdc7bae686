//! Submission of packets to an entity, and of its PDUs to the channel.

use airwire::time::Instant;

use crate::packet::{Direction, Packet};
use crate::rlc::ledger::Ledger;
use crate::rlc::umts::capacity::{OneBlockFewer, Room};
use crate::rlc::umts::codec::Format;
use crate::rlc::umts::config::FormatConfig;
use crate::rlc::umts::entity::{Entity, Outgoing, PduKind, SduId};
use crate::stage::{Event, Outbox, RadioPdu, Technology};

/// Submits a packet that has waited since `since` to the entity.
pub(super) fn submit(entity: &mut Entity, ledger: &mut Ledger, since: Instant, packet: Packet) {
    let octets = packet.bytes.clone();
    let number = ledger.submit(since, packet);
    entity.submit(since, SduId(number), octets);
}

/// Takes the PDUs for the TTI that begins at `start`, and records the packets whose transmission begins with
/// these PDUs.
pub(super) fn pull(
    entity: &mut Entity,
    ledger: &mut Ledger,
    start: Instant,
    room: Room,
    one_block_fewer: OneBlockFewer,
    out: &mut Outbox,
) -> Vec<Outgoing> {
    let pdus = entity.pull(start, room, one_block_fewer);
    if let Some(SduId(last)) = pdus.iter().filter_map(|pdu| Some(carries(pdu)?.1)).max() {
        ledger.begin_through(last, |packet, since| out.note(packet, Event::Sent { waited: start - since }));
    }
    pdus
}

/// Records a transmitted PDU for the views.
#[inline]
pub(super) fn record_pdu(
    direction: Direction,
    format: &FormatConfig,
    ledger: &Ledger,
    pdu: &Outgoing,
    lost: bool,
    out: &mut Outbox,
) {
    out.radio(|at, stage| RadioPdu {
        at,
        stage,
        bearer: 0,
        direction,
        technology: Technology::Umts { indicators: Format::from(format).indicator_size().bits() },
        bytes: pdu.octets.clone(),
        epoch: pdu.epoch,
        lost,
        arrival: None,
        transmission: if let PduKind::Data { transmission, .. } = pdu.kind { transmission } else { 1 },
        packets: carries(pdu)
            .into_iter()
            .flat_map(|(SduId(first), SduId(last))| first..=last)
            .filter_map(|number| Some(ledger.packet(number)?.id))
            .collect(),
    });
}

/// The first and the last packet that have data in the PDU. The ledger numbers packets in the order in which
/// the entity sends them, and does not have the packets in between that were discarded before their
/// transmission.
fn carries(pdu: &Outgoing) -> Option<(SduId, SduId)> {
    if let PduKind::Data { carries, .. } = pdu.kind { carries } else { None }
}
