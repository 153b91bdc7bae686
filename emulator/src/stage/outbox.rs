//! The outbox, which takes packets and reports from stages.

use airwire::Cause;
use airwire::time::Instant;

use super::{DropReason, Event, Incident, IncidentKind, RadioLayer, RadioPdu, Record, Recording};
use crate::memory::Memory;
use crate::packet::{Content, Direction, Origin, Packet, PacketId};
use crate::totals::Accounts;

/// Takes the packets that leave a stage, and its reports of what happened to each.
#[derive(Debug, Default)]
pub struct Outbox {
    at: Instant,
    stage: Option<usize>,
    recording: Recording,
    /// The layers whose radio PDUs are recorded.
    radio: Vec<RadioLayer>,
    pub(crate) leaving: Vec<Packet>,
    records: Vec<Record>,
    pdus: Vec<RadioPdu>,
    incidents: Vec<Incident>,
    pub(crate) accounts: Accounts,
    pub(crate) memory: Memory,
    /// Directions of the hosts' packets that the radio damaged.
    pub(crate) damaged: Vec<Direction>,
    next_id: u64,
    spare: Spare,
}

/// Memory of packets that are gone, kept for reuse.
#[derive(Debug, Default)]
struct Spare {
    /// Packets whose `bytes` are empty.
    packets: Vec<Packet>,
    buffers: Vec<Vec<u8>>,
}

/// Upper bound on the length of each list in [`Spare`].
const SPARE: usize = 256;

impl Outbox {
    /// Creates an empty outbox. If `radio` is set, the radio PDUs of RLC are also recorded.
    pub fn new(recording: Recording, radio: bool) -> Self {
        let radio = if radio { vec![RadioLayer::Rlc] } else { Vec::new() };
        Self { recording, radio, ..Self::default() }
    }

    /// Sets the stage and the time of all reports that follow.
    pub(crate) fn begin(&mut self, at: Instant, stage: Option<usize>) {
        self.at = at;
        self.stage = stage;
    }

    /// Creates a packet with the next number of its path. The caller must `forward` it.
    pub fn originate(&mut self, direction: Direction, origin: Origin, bytes: Vec<u8>) -> Packet {
        let packet = self.create(direction, origin, bytes);
        self.count_new(packet)
    }

    /// Creates a host's packet that may be [abbreviated](airwire::segment::abbreviate).
    pub(crate) fn originate_abbreviated(&mut self, direction: Direction, bytes: Vec<u8>) -> Packet {
        let mut packet = self.create(direction, Origin::Host, bytes);
        packet.note_omitted();
        self.count_new(packet)
    }

    fn create(&mut self, direction: Direction, origin: Origin, bytes: Vec<u8>) -> Packet {
        let id = PacketId(self.next_id);
        self.next_id += 1;
        let content = Content { id, direction, origin, entered: self.at, bytes };
        match self.spare.packets.pop() {
            Some(mut packet) => {
                packet.replace(content);
                packet
            }
            None => content.into(),
        }
    }

    fn count_new(&mut self, packet: Packet) -> Packet {
        self.accounts.of(packet.direction, packet.origin).enter(packet.len());
        self.memory.add(self.stage, packet.direction, packet.memory());
        self.note(&packet, Event::Entered { bytes: packet.len() });
        packet
    }

    /// Returns an empty buffer for a new packet, reusing the memory of an earlier packet if possible.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.buffers.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Takes the bytes out of a packet and keeps the rest for reuse.
    pub(crate) fn strip(&mut self, mut packet: Packet) -> Vec<u8> {
        let bytes = std::mem::take(&mut packet.bytes);
        if self.spare.packets.len() < SPARE {
            self.spare.packets.push(packet);
        }
        bytes
    }

    /// Keeps the memory of a packet for reuse.
    pub(crate) fn recycle(&mut self, packet: Packet) {
        let bytes = self.strip(packet);
        if self.spare.buffers.len() < SPARE {
            self.spare.buffers.push(bytes);
        }
    }

    /// Discards a packet that has arrived, without counting it as dropped.
    pub(crate) fn release(&mut self, packet: Packet) {
        self.memory.remove(self.stage, packet.direction, packet.memory());
        self.recycle(packet);
    }

    /// Copies a packet and gives the copy the next number of its path. The caller must `forward` or `drop`
    /// it.
    pub fn copy(&mut self, packet: &Packet) -> Packet {
        let id = PacketId(self.next_id);
        self.next_id += 1;
        let copy = Packet::from(Content { id, entered: self.at, ..Content::clone(packet) });
        self.accounts.of(copy.direction, copy.origin).copied += 1;
        self.memory.add(self.stage, copy.direction, copy.memory());
        self.note(&copy, Event::Entered { bytes: copy.len() });
        self.note(&copy, Event::Copied { of: packet.id });
        copy
    }

    /// Hands the packet to the next stage now.
    pub fn forward(&mut self, packet: Packet) {
        self.leaving.push(packet);
    }

    /// Drops the packet and counts it, whether or not events are recorded.
    pub fn drop(&mut self, packet: Packet, why: DropReason) {
        self.accounts.of(packet.direction, packet.origin).dropped[why as usize] += 1;
        self.memory.remove(self.stage, packet.direction, packet.memory());
        if packet.origin == Origin::Host && why.cause() == Some(Cause::Radio) {
            self.damaged.push(packet.direction);
        }
        self.note(&packet, Event::Dropped { why });
        self.recycle(packet);
    }

    /// Drops a packet that entered the current stage, because the stage has no memory left.
    pub(crate) fn refuse(&mut self, packet: Packet) {
        self.note_full(packet.direction);
        self.drop(packet, DropReason::QueueFull);
    }

    /// Whether the current stage has memory left for more packets in this direction.
    pub(crate) fn has_room(&self, direction: Direction) -> bool {
        self.stage.is_none_or(|stage| self.memory.has_room(stage, direction))
    }

    /// Records that the current stage has no memory left.
    pub(crate) fn note_full(&mut self, direction: Direction) {
        if let Some(stage) = self.stage {
            self.memory.note_full(self.at, stage, direction);
        }
    }

    /// Counts the memory that the current stage uses for packets of this direction besides the packets
    /// themselves. `known` is the number of bytes that were counted before, and becomes `bytes`.
    pub fn count_memory(&mut self, direction: Direction, known: &mut u64, bytes: u64) {
        if *known != bytes {
            self.memory.remove(self.stage, direction, *known);
            self.memory.add(self.stage, direction, bytes);
            *known = bytes;
        }
    }

    /// Records an event, if events are recorded.
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

    /// Whether events are recorded.
    pub fn records_events(&self) -> bool {
        self.recording >= Recording::Events
    }

    /// Whether incidents are recorded.
    pub fn records_incidents(&self) -> bool {
        self.recording >= Recording::Incidents
    }

    /// Records an incident of the current stage, if incidents are recorded.
    pub fn report_incident(&mut self, kind: IncidentKind) {
        if self.records_incidents() {
            self.incidents.push(Incident { at: self.at, stage: self.stage.unwrap_or_default(), kind });
        }
    }

    /// Starts the recording of the radio PDUs of a layer.
    pub(crate) fn record_radio(&mut self, layer: RadioLayer) {
        self.radio.push(layer);
    }

    /// Whether the radio PDUs of this layer of LTE and NR are recorded.
    pub fn records_radio(&self, layer: RadioLayer) -> bool {
        self.radio.contains(&layer)
    }

    /// Records a radio PDU, if any radio PDUs are recorded. Because building one is expensive, `pdu` is called
    /// only then. Its arguments are the time and the index of the current stage.
    #[inline]
    pub fn radio(&mut self, pdu: impl FnOnce(Instant, usize) -> RadioPdu) {
        if !self.radio.is_empty() {
            self.pdus.push(pdu(self.at, self.stage.unwrap_or_default()));
        }
    }

    /// Returns the packets forwarded since the last call, for callers that run a single stage.
    pub fn take(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.leaving)
    }

    /// Returns the events recorded since the last call, in order.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Returns the incidents recorded since the last call.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        std::mem::take(&mut self.incidents)
    }

    /// Returns the radio PDUs recorded since the last call.
    pub fn take_pdus(&mut self) -> Vec<RadioPdu> {
        std::mem::take(&mut self.pdus)
    }
}
