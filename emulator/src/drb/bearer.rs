//! One bearer: PDCP and RLC of both ends.

use airwire::rng::Stream;
use airwire::time::{Instant, earlier};

use super::config::{BearerDirection, BearerSettings, CountAt, RlcMode};
use super::pdcp_receiver::PdcpReceiver;
use super::rlc_entity::RlcEntity;
use crate::packet::{Direction, Packet, PerDirection};
use crate::pdcp::transmitter::Transmitter;
use crate::rlc::ledger::{Ledger, refusal};
use crate::rlc::service::{Event, Pdu, PduKind, Sdu};
use crate::stage::{DropReason, Event as PacketEvent, Outbox};
use crate::stages::queue::Queue;

/// Maximum size of a PDCP SDU in bytes (TS 38.323 §4.3.1).
const MAX_SDU: usize = 9_000;
/// Memory that the entities use for an SDU, without its bytes.
const SDU_OVERHEAD: u64 = 160;
/// Identifier of the first PDCP control PDU in RLC. Smaller identifiers are the ledger's numbers of packets.
pub(super) const CONTROL: u64 = 1 << 63;

/// A bearer with both of its ends.
pub(super) struct Bearer {
    pub(super) settings: BearerSettings,
    /// Indexed by the direction in which an entity sends data: `down` is the network's entity, `up` the
    /// terminal's.
    pub(super) entities: PerDirection<RlcEntity>,
    pub(super) directions: PerDirection<DirectionState>,
    /// Events of RLC that have not been handled. Empty between calls.
    pub(super) events: Vec<Event>,
}

/// One direction, from the PDCP of its sender to the PDCP of its receiver.
pub(super) struct DirectionState {
    /// Packets that PDCP has not numbered.
    pub(super) queue: Queue,
    pub(super) ledger: Ledger,
    pub(super) pdcp: Transmitter,
    pub(super) receiver: PdcpReceiver,
    pub(super) counters: Counters,
    /// The ledger's number of the packet with COUNT 0. A re-establishment in unacknowledged mode restarts
    /// COUNT, and so changes this number.
    pub(super) base: u64,
    /// Number of status reports that the receiver has sent.
    pub(super) reports: u64,
    /// Memory of the copies in PDCP, as last counted.
    counted_memory: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) delivered: u64,
    pub(super) delivered_bytes: u64,
    pub(super) queue_full: u64,
    pub(super) rlc_loss: u64,
    pub(super) pdcp_discard: u64,
    pub(super) pdcp_late: u64,
    pub(super) handover: u64,
    /// Largest number of bytes in the queue.
    pub(super) queue_peak_bytes: u64,
    /// Packets refused because they were empty or too long.
    pub(super) refused: u64,
    /// PDCP PDUs that were submitted to RLC again after a re-establishment.
    pub(super) retransmitted_sdus: u64,
    /// Delivered SDUs that match no submitted packet, and PDUs that a peer refused. A count above 0 indicates
    /// a bug in this code.
    pub(super) unknown_sdus: u64,
}

impl BearerDirection {
    /// Whether packets wait in PDCP, not in RLC. An active queue discipline selects and drops packets, which
    /// is only possible before RLC has them.
    pub(super) fn queues_in_pdcp(&self) -> bool {
        self.pdcp.count_at == CountAt::FirstTransmission || !self.queue.is_drop_tail()
    }
}

impl Bearer {
    /// Creates the bearer. `name` is the name of the stage.
    pub(super) fn new(settings: BearerSettings, seed: u64, name: &str) -> Self {
        let name = if settings.filter.is_some() { format!("{name}/dedicated") } else { name.to_owned() };
        let directions = PerDirection::from_fn(|direction| {
            let BearerDirection { pdcp, queue, .. } = &settings.directions[direction];
            DirectionState {
                queue: Queue::new(*queue, Stream::new(seed, &format!("{name}/{direction}/queue"))),
                ledger: Ledger::new(queue.bounds),
                pdcp: Transmitter::new(pdcp.format, pdcp.discard_timer),
                receiver: PdcpReceiver::new(pdcp),
                counters: Counters::default(),
                base: 0,
                reports: 0,
                counted_memory: 0,
            }
        });
        let entities = PerDirection::from_fn(|direction| RlcEntity::new(&settings, direction));
        Self { entities, directions, events: Vec::new(), settings }
    }

    /// Whether the bearer accepts this packet. The first bearer in the order of priority that accepts a
    /// packet carries it.
    pub(super) fn carries(&self, packet: &Packet) -> bool {
        self.settings.filter.as_ref().is_none_or(|filter| filter.matches(&packet.bytes))
    }

    pub(super) fn is_unacknowledged(&self) -> bool {
        self.settings.mode() == RlcMode::Um
    }

    /// Number of packets inside.
    pub(super) fn held(&self) -> usize {
        self.directions.iter().map(|(_, state)| state.ledger.held() + state.queue.len()).sum()
    }

    pub(super) fn count_memory(&mut self, direction: Direction, out: &mut Outbox) {
        let DirectionState { pdcp, counted_memory, .. } = &mut self.directions[direction];
        let unconfirmed = pdcp.tx_next() - pdcp.first_unconfirmed();
        out.count_memory(direction, counted_memory, pdcp.octets() + SDU_OVERHEAD * unconfirmed);
    }

    /// The next deadline of the sender of this direction, and of the PDCP receiver at its other end.
    pub(super) fn next_deadline(&self, direction: Direction) -> Option<Instant> {
        let state = &self.directions[direction];
        let pdcp = earlier(state.pdcp.next_deadline(), state.receiver.next_deadline());
        earlier(pdcp, self.entities[direction].next_deadline())
    }

    /// Takes a packet that arrives at the sender.
    pub(super) fn accept(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        let direction = packet.direction;
        let can_number = self.can_number(direction);
        let DirectionState { queue, ledger, counters, .. } = &mut self.directions[direction];
        counters.packets += 1;
        counters.bytes += packet.len() as u64;
        if let Some(why) = refusal(packet.len(), MAX_SDU) {
            counters.refused += 1;
            out.drop(packet, why);
            return;
        }
        let settings = &self.settings.directions[direction];
        let (waiting, waiting_bytes) = ledger.waiting();
        let (packets, bytes) = (waiting + queue.len(), waiting_bytes + queue.bytes());
        if settings.queues_in_pdcp() {
            queue.push(now, packet, out);
        } else if !settings.queue.bounds.have_room(packets, bytes, packet.len()) {
            counters.queue_full += 1;
            out.drop(packet, DropReason::QueueFull);
        } else if can_number && queue.is_empty() {
            out.note(&packet, PacketEvent::Queued { packets, bytes });
            self.submit(now, direction, packet);
        } else {
            queue.push(now, packet, out);
        }
        let DirectionState { queue, ledger, counters, .. } = &mut self.directions[direction];
        counters.queue_peak_bytes = counters.queue_peak_bytes.max(ledger.waiting().1 + queue.bytes());
    }

    /// Numbers a packet that has arrived at `since`, and submits it to RLC.
    pub(super) fn submit(&mut self, since: Instant, direction: Direction, packet: Packet) {
        let DirectionState { pdcp, ledger, base, .. } = &mut self.directions[direction];
        let (count, octets) = pdcp.submit(since, &packet.bytes);
        let id = ledger.submit(since, packet);
        debug_assert_eq!(*base + count, id);
        self.entities[direction].submit(Sdu { id, octets });
    }

    /// Octets that wait in PDCP and RLC, and may be transmitted.
    pub(super) fn buffered(&self, direction: Direction) -> usize {
        let entity = &self.entities[direction];
        let in_rlc = entity.buffer_status().total() as usize;
        if !entity.can_send() && in_rlc > 0 {
            // The window is full, so SDUs in PDCP have to wait too.
            return 0;
        }
        let in_pdcp =
            if self.can_number(direction) { self.directions[direction].queue.bytes() as usize } else { 0 };
        in_rlc + in_pdcp
    }

    /// Whether PDCP may number another packet. If more than half of the number space were unconfirmed, the
    /// receiver would derive wrong COUNTs (TS 38.323 §5.2.1, NOTE).
    pub(super) fn can_number(&self, direction: Direction) -> bool {
        let pdcp = &self.directions[direction].pdcp;
        pdcp.tx_next() - pdcp.first_unconfirmed() < self.settings.directions[direction].pdcp.format.window()
    }

    /// Appends PDUs for a transport block with `octets` free octets. Returns the octets that are used.
    pub(super) fn pull(
        &mut self,
        now: Instant,
        direction: Direction,
        octets: usize,
        pdus: &mut Vec<Pdu>,
        out: &mut Outbox,
    ) -> usize {
        self.refill(now, direction, octets, out);
        let used = self.entities[direction].pull(now, octets, pdus);
        let is_unacknowledged = self.is_unacknowledged();
        let DirectionState { ledger, pdcp, base, .. } = &mut self.directions[direction];
        let last = pdus.iter().flat_map(sdus).copied().filter(|id| *id < CONTROL).max();
        if let Some(last) = last {
            ledger.begin_through(last, |packet, since| {
                out.note(packet, PacketEvent::Sent { waited: now - since });
            });
            if is_unacknowledged {
                // No confirmation follows.
                pdcp.confirm_through(last - *base);
            }
        }
        used
    }

    /// Moves as many packets from PDCP's queue to RLC as it needs for a block of `octets`.
    fn refill(&mut self, now: Instant, direction: Direction, octets: usize, out: &mut Outbox) {
        let discard_timer = self.settings.directions[direction].pdcp.discard_timer;
        while self.entities[direction].buffer_status().new < octets as u64
            && self.can_number(direction)
            && let Some((waited, packet)) = self.directions[direction].queue.pop(now, out)
        {
            if discard_timer.is_some_and(|discard_timer| discard_timer <= waited) {
                self.directions[direction].counters.pdcp_discard += 1;
                out.drop(packet, DropReason::PdcpDiscard);
            } else {
                self.submit(now - waited, direction, packet);
            }
        }
    }

    /// Records a HARQ retransmission for each packet that has octets in these PDUs.
    pub(super) fn note_retransmission(
        &self,
        direction: Direction,
        pdus: &[Pdu],
        attempt: u32,
        out: &mut Outbox,
    ) {
        for id in pdus.iter().flat_map(sdus) {
            if let Some(packet) = self.directions[direction].ledger.packet(*id) {
                out.note(packet, PacketEvent::Resent { attempt });
            }
        }
    }

    /// Handles PDUs that HARQ has lost. In unacknowledged mode, their SDUs are lost as well.
    pub(super) fn lose(&mut self, direction: Direction, pdus: &[Pdu], out: &mut Outbox) {
        if self.is_unacknowledged() {
            for id in pdus.iter().flat_map(sdus) {
                self.drop_packet(direction, *id, DropReason::RlcLoss, out);
            }
        }
    }
}

/// Identifiers of the SDUs that have octets in the PDU.
pub(super) fn sdus(pdu: &Pdu) -> &[u64] {
    if let PduKind::Data { sdus, .. } = &pdu.kind { sdus } else { &[] }
}
