//! Where stages put their packets, and say what happened to each.

use airwire::Cause;
use airwire::time::Instant;

use super::{Event, Incident, Mishap, RadioPdu, Record, Recording, Why};
use crate::packet::{Content, Direction, Origin, Packet, PacketId};
use crate::totals::Accounts;

/// Where a stage puts the packets that leave it, and reports what happened to each.
#[derive(Debug, Default)]
pub struct Outbox {
    at: Instant,
    stage: Option<usize>,
    recording: Recording,
    radio: bool,
    pub(crate) leaving: Vec<Packet>,
    records: Vec<Record>,
    pdus: Vec<RadioPdu>,
    incidents: Vec<Incident>,
    pub(crate) accounts: Accounts,
    /// Of each packet of a host that the radio damaged, which way it went.
    pub(crate) damaged: Vec<Direction>,
    next_id: u64,
    spare: Spare,
}

/// The memory of packets that are gone, to be used again.
#[derive(Debug, Default)]
struct Spare {
    /// Without octets.
    packets: Vec<Packet>,
    buffers: Vec<Vec<u8>>,
}

/// The most that is kept of each.
const SPARE: usize = 256;

impl Outbox {
    /// `radio`: radio PDUs are recorded too.
    pub fn new(recording: Recording, radio: bool) -> Self {
        Self { recording, radio, ..Self::default() }
    }

    /// From now on it is `stage` that speaks, at the time `at`.
    pub(crate) fn begin(&mut self, at: Instant, stage: Option<usize>) {
        self.at = at;
        self.stage = stage;
    }

    /// A packet that comes into being now, with the next number of its path. Somebody has to `forward` it.
    pub fn originate(&mut self, direction: Direction, origin: Origin, bytes: Vec<u8>) -> Packet {
        let id = PacketId(self.next_id);
        self.next_id += 1;
        let content = Content { id, direction, origin, entered: self.at, bytes };
        let packet = match self.spare.packets.pop() {
            Some(mut packet) => {
                *packet = content;
                packet
            }
            None => content.into(),
        };
        self.accounts.of(direction, origin).enter(packet.len());
        self.note(&packet, Event::Entered { bytes: packet.len() });
        packet
    }

    /// A buffer for a packet that comes into being: empty, and not new if a packet has gone.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.buffers.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// The octets of a packet of which nobody needs anything else any more.
    pub(crate) fn strip(&mut self, mut packet: Packet) -> Vec<u8> {
        let bytes = std::mem::take(&mut packet.bytes);
        if self.spare.packets.len() < SPARE {
            self.spare.packets.push(packet);
        }
        bytes
    }

    /// Nobody needs the packet any more.
    pub(crate) fn recycle(&mut self, packet: Packet) {
        let bytes = self.strip(packet);
        if self.spare.buffers.len() < SPARE {
            self.spare.buffers.push(bytes);
        }
    }

    /// A copy of the packet, with the next number of its path. Somebody has to `forward` or `drop` it.
    pub fn copy(&mut self, packet: &Packet) -> Packet {
        let id = PacketId(self.next_id);
        self.next_id += 1;
        let copy = Packet::from(Content { id, entered: self.at, ..Content::clone(packet) });
        self.accounts.of(copy.direction, copy.origin).copied += 1;
        self.note(&copy, Event::Entered { bytes: copy.len() });
        self.note(&copy, Event::Copied { of: packet.id });
        copy
    }

    /// To the next stage, now.
    pub fn forward(&mut self, packet: Packet) {
        self.leaving.push(packet);
    }

    /// The packet goes no further. It is counted whether or not events are recorded.
    pub fn drop(&mut self, packet: Packet, why: Why) {
        self.accounts.of(packet.direction, packet.origin).dropped[why as usize] += 1;
        if packet.origin == Origin::Host && why.cause() == Some(Cause::Radio) {
            self.damaged.push(packet.direction);
        }
        self.note(&packet, Event::Dropped { why });
        self.recycle(packet);
    }

    /// Records what happened to a packet, if events are recorded.
    #[inline]
    pub fn note(&mut self, packet: &Packet, event: Event) {
        if self.recording >= Recording::Events {
            self.record(packet, event);
        }
    }

    fn record(&mut self, packet: &Packet, event: Event) {
        let visible = matches!(event, Event::Entered { .. } | Event::Dropped { .. } | Event::Left);
        let bytes = (visible && self.recording == Recording::Bytes).then(|| packet.bytes.as_slice().into());
        self.records.push(Record {
            at: self.at,
            stage: self.stage,
            packet: packet.id,
            direction: packet.direction,
            event,
            bytes,
        });
    }

    /// Whether anybody wants to know what happens to packets.
    pub fn tells_events(&self) -> bool {
        self.recording >= Recording::Events
    }

    /// Whether anybody wants to know of incidents.
    pub fn tells_incidents(&self) -> bool {
        self.recording >= Recording::Incidents
    }

    /// Something has befallen the stage that speaks.
    pub fn befall(&mut self, what: Mishap) {
        if self.tells_incidents() {
            self.incidents.push(Incident { at: self.at, stage: self.stage.unwrap_or_default(), what });
        }
    }

    /// From now on radio PDUs are recorded.
    pub(crate) fn record_radio(&mut self) {
        self.radio = true;
    }

    /// Puts a radio PDU on record, if radio PDUs are recorded. `pdu` makes it from the time and the index of the
    /// stage that speaks, and is not called if nobody wants it: it is not cheap.
    pub fn radio(&mut self, pdu: impl FnOnce(Instant, usize) -> RadioPdu) {
        if self.radio {
            self.pdus.push(pdu(self.at, self.stage.unwrap_or_default()));
        }
    }

    /// The packets that were forwarded since the last call. For whoever runs a stage alone.
    pub fn take(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.leaving)
    }

    /// The events that were recorded since the last call, in their order.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// What has befallen stages since the last call.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        std::mem::take(&mut self.incidents)
    }

    /// The radio PDUs that were recorded since the last call.
    pub fn take_pdus(&mut self) -> Vec<RadioPdu> {
        std::mem::take(&mut self.pdus)
    }
}
