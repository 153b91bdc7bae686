//! Submission of packets to an entity, and of its PDUs to the channel.

use airwire::time::Instant;

use crate::packet::{Direction, Packet};
use crate::rlc::ledger::Ledger;
use crate::rlc::umts::codec::Format;
use crate::rlc::umts::config::FormatConfig;
use crate::rlc::umts::entity::{Entity, Outgoing, PduKind, SduId};
use crate::rlc::umts::room::{OneLess, Room};
use crate::stage::{Event, Outbox, RadioPdu, Technology};

/// Submits a packet that has waited since `since` to the entity.
pub(super) fn submit(entity: &mut Entity, ledger: &mut Ledger, since: Instant, packet: Packet) {
    let octets = packet.bytes.clone();
    let number = ledger.submit(since, packet);
    entity.submit(since, SduId(number), octets);
}

/// Takes the PDUs for the TTI that begins at `begins`, and records the packets whose transmission begins with
/// them.
pub(super) fn pull(
    entity: &mut Entity,
    ledger: &mut Ledger,
    begins: Instant,
    room: Room,
    one_less: OneLess,
    out: &mut Outbox,
) -> Vec<Outgoing> {
    let pdus = entity.pull(begins, room, one_less);
    if let Some(SduId(last)) = pdus.iter().filter_map(|pdu| sdus(pdu).last()).max() {
        let begun = |packet: &Packet, since| out.note(packet, Event::Sent { waited: begins - since });
        ledger.begin_through(*last, begun);
    }
    pdus
}

pub(super) fn technology(format: &FormatConfig) -> Technology {
    Technology::Umts { indicators: Format::from(format).indicator_size().bits() }
}

pub(super) fn put_on_air(
    direction: Direction,
    technology: Technology,
    ledger: &Ledger,
    pdu: &Outgoing,
    lost: bool,
    out: &mut Outbox,
) {
    out.radio(|at, stage| RadioPdu {
        at,
        stage,
        direction,
        technology,
        bytes: pdu.octets.clone(),
        epoch: pdu.epoch,
        lost,
        transmission: match pdu.kind {
            PduKind::Data { transmission, .. } => transmission,
            PduKind::Status | PduKind::Reset | PduKind::ResetAck => 1,
        },
        packets: sdus(pdu).iter().filter_map(|SduId(number)| Some(ledger.packet(*number)?.id)).collect(),
    });
}

/// Packets of which the PDU carries data.
fn sdus(pdu: &Outgoing) -> &[SduId] {
    match &pdu.kind {
        PduKind::Data { sdus, .. } => sdus,
        PduKind::Status | PduKind::Reset | PduKind::ResetAck => &[],
    }
}
