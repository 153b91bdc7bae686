//! The shared channel of one direction (DL-SCH or UL-SCH): its HARQ, its errors, and the slots that the bearer
//! can use.

use airwire::rng::Stream;
use airwire::time::{Duration, Instant, earlier};

use super::config::{Blocks, ChannelSettings};
use crate::mac::drx::Drx;
use crate::mac::grants::{Grant, Report, UplinkGrants};
use crate::mac::grid::{Grid, Slot};
use crate::mac::harq::{Block, Harq, HarqCounters, Outcome, Reception};
use crate::mac::in_flight::InFlight;
use crate::mac::link_adaptation::LinkAdaptation;
use crate::packet::Direction;
use crate::rlc::block_errors::BlockErrorProcess;
use crate::rlc::service::Pdu;

/// The shared channel of one direction.
pub(super) struct SharedChannel {
    direction: Direction,
    harq: Harq<TransportBlock>,
    in_flight: InFlight<TransportBlock>,
    errors: BlockErrorProcess,
    /// Random numbers for the errors of retransmissions and of feedback.
    draws: Stream,
    retx_bler: f64,
    nack_to_ack: f64,
    delay: Duration,
    adaptation: LinkAdaptation,
    blocks_per_slot: usize,
    /// Only in the uplink.
    grants: Option<UplinkGrants>,
    /// End of the last slot that was assigned.
    unassigned_from: Instant,
    /// Number of the next transport block.
    next_block: u64,
    /// Octets of the transport blocks that were transmitted for the first time, and of their PDUs.
    pub(super) capacity: u64,
    pub(super) used: u64,
    /// Granted slots for which the terminal had no data.
    pub(super) padding: u64,
}

/// A transport block.
pub(super) struct TransportBlock {
    pub(super) number: u64,
    /// Octets, including MAC subheaders and padding.
    pub(super) size: usize,
    /// The PDUs of each bearer, in the order of their priority.
    pub(super) pdus: Vec<Vec<Pdu>>,
    /// Only in the uplink.
    pub(super) report: Option<Report>,
}

/// Result of one transmission of a transport block.
pub(super) enum Decision {
    /// HARQ retransmits the block.
    Undecided,
    /// The block arrives.
    Arrives,
    /// HARQ has lost the block.
    Lost(TransportBlock),
}

/// Permission to transmit a new block of up to this many octets.
pub(super) struct Permission {
    pub(super) octets: usize,
    grant: Option<Grant>,
}

impl SharedChannel {
    pub(super) fn new(
        direction: Direction,
        settings: &ChannelSettings,
        blocks: &Blocks,
        seed: u64,
        stream: &str,
    ) -> Self {
        let adaptation = Stream::new(seed, &format!("{stream}/states"));
        let mut channel = Self {
            direction,
            harq: Harq::new(settings.harq),
            in_flight: InFlight::default(),
            errors: BlockErrorProcess::new(settings.bler.clone(), seed, stream),
            draws: Stream::new(seed, &format!("{stream}/harq")),
            retx_bler: settings.retx_bler,
            nack_to_ack: settings.nack_to_ack,
            delay: settings.delay,
            adaptation: LinkAdaptation::new(blocks.states.clone(), Instant::ZERO, adaptation),
            blocks_per_slot: blocks.per_slot,
            grants: (direction == Direction::Up).then(|| UplinkGrants::new(settings.grant)),
            unassigned_from: Instant::ZERO,
            next_block: 0,
            capacity: 0,
            used: 0,
            padding: 0,
        };
        channel.set_processes(settings);
        channel
    }

    /// Sets the number of HARQ processes. In the standards, each transport block of a slot has its own HARQ
    /// entity. Here, the blocks share the processes of all these entities.
    fn set_processes(&mut self, settings: &ChannelSettings) {
        let mut harq = settings.harq;
        harq.processes *= self.blocks_per_slot;
        self.harq.reconfigure(harq);
    }

    pub(super) fn reconfigure(&mut self, settings: &ChannelSettings) {
        self.errors.set_model(settings.bler.clone());
        self.retx_bler = settings.retx_bler;
        self.nack_to_ack = settings.nack_to_ack;
        self.delay = settings.delay;
        if let Some(grants) = &mut self.grants {
            grants.reconfigure(settings.grant);
        }
        self.set_processes(settings);
    }

    /// Changes the transport blocks at `now`, because the cell or the settings change.
    pub(super) fn set_blocks(&mut self, now: Instant, blocks: &Blocks, settings: &ChannelSettings) {
        self.blocks_per_slot = blocks.per_slot;
        self.adaptation.set(blocks.states.clone(), now);
        self.set_processes(settings);
    }

    /// Changes the length of slots.
    pub(super) fn change_slot(&mut self, old: Duration, new: Duration) {
        self.errors.change_tti(old, new);
    }

    /// MAC reset: discards all blocks. Returns the numbers of the blocks that have not arrived.
    pub(super) fn reset(&mut self) -> impl Iterator<Item = u64> {
        if let Some(grants) = &mut self.grants {
            grants.reset();
        }
        let lost: Vec<u64> =
            self.harq.reset().chain(self.in_flight.clear()).map(|block| block.number).collect();
        lost.into_iter()
    }

    pub(super) fn blocks_per_slot(&self) -> usize {
        self.blocks_per_slot
    }

    pub(super) fn harq_counters(&self) -> &HarqCounters {
        self.harq.counters()
    }

    /// Number of scheduling requests.
    pub(super) fn requests(&self) -> Option<u64> {
        self.grants.as_ref().map(UplinkGrants::requests)
    }

    /// Whether no block awaits its retransmission or its arrival.
    pub(super) fn is_idle(&self) -> bool {
        self.harq.retransmission_from().is_none() && self.in_flight.next_arrival().is_none()
    }

    pub(super) fn in_flight_octets(&self) -> u64 {
        self.in_flight.memory()
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.next_arrival()
    }

    pub(super) fn take_arrival(&mut self, now: Instant) -> Option<TransportBlock> {
        self.in_flight.take(now)
    }

    /// Start of the next slot, at `now` or later, that the bearers may use. `buffered` is the number of
    /// octets that wait and may be transmitted.
    pub(super) fn next_slot(
        &mut self,
        now: Instant,
        buffered: usize,
        grid: &Grid,
        drx: Option<&Drx>,
    ) -> Option<Instant> {
        let mut from = now.max(self.unassigned_from);
        if self.adaptation.octets(from) == 0 {
            from = self.adaptation.next_change()?.max(from);
        }
        let slot = |at: Instant| grid.next(self.direction, at.max(from)).start;
        let retransmission = self.harq.retransmission_from().map(slot);
        let free = self.harq.free_from(from);
        let new = match &mut self.grants {
            Some(grants) => {
                grants.granted_from(now, buffered, grid).zip(free).map(|(at, free)| slot(at.max(free)))
            }
            None => free.filter(|_| buffered > 0).map(|free| active_slot(slot(free), drx, slot)),
        };
        earlier(retransmission, new)
    }

    /// The slot that begins at `now`, if the bearer may use it.
    pub(super) fn slot_at(&self, now: Instant, grid: &Grid) -> Option<Slot> {
        let slot = grid.next(self.direction, now);
        (slot.start == now && self.unassigned_from <= now).then_some(slot)
    }

    /// Size of a transport block in this slot. 0: the channel is blocked.
    pub(super) fn octets(&mut self, slot: Slot, grid: &Grid) -> usize {
        grid.octets(self.direction, slot, self.adaptation.octets(slot.start))
    }

    /// Marks the slot as assigned, to this bearer or to another terminal.
    pub(super) fn assign(&mut self, slot: Slot, grid: &Grid) {
        self.unassigned_from = slot.start + grid.slot();
    }

    pub(super) fn has_retransmission(&self, now: Instant) -> bool {
        self.harq.retransmission_from().is_some_and(|at| at <= now)
    }

    /// Whether HARQ has a free process.
    pub(super) fn has_free_process(&mut self, now: Instant) -> bool {
        self.harq.release(now);
        self.harq.free_from(now).is_some_and(|at| at <= now)
    }

    /// Whether the network has granted this uplink slot for a retransmission or a new block.
    pub(super) fn is_granted(&mut self, now: Instant, octets: usize) -> bool {
        self.has_retransmission(now) || self.permission(now, octets).is_some()
    }

    pub(super) fn take_retransmission(&mut self, now: Instant) -> Option<Block<TransportBlock>> {
        self.harq.take_retransmission(now)
    }

    /// Whether a new block of up to `octets` may be transmitted now.
    pub(super) fn permission(&mut self, now: Instant, octets: usize) -> Option<Permission> {
        if !self.has_free_process(now) {
            return None;
        }
        match &mut self.grants {
            None => Some(Permission { octets, grant: None }),
            Some(grants) => {
                let grant = grants.grant(now, octets)?;
                Some(Permission { octets: grant.octets, grant: Some(grant) })
            }
        }
    }

    /// Records that the terminal has nothing to transmit in a granted block.
    pub(super) fn waste(&mut self, now: Instant, permission: Permission) {
        if let Some((grants, grant)) = self.grants.as_mut().zip(permission.grant) {
            self.padding += 1;
            let report = grants.use_grant(grant, 0);
            grants.report_decoded(now, report);
        }
    }

    /// Builds a transport block. `buffered` octets remain in the buffer.
    pub(super) fn build(
        &mut self,
        permission: Permission,
        pdus: Vec<Vec<Pdu>>,
        buffered: usize,
    ) -> Block<TransportBlock> {
        let grants = self.grants.as_mut().zip(permission.grant);
        let report = grants.map(|(grants, grant)| grants.use_grant(grant, buffered));
        let number = self.next_block;
        self.next_block += 1;
        let block = TransportBlock { number, size: permission.octets, pdus, report };
        self.capacity += permission.octets as u64;
        self.used += block.octets();
        self.harq.start(block)
    }

    /// Transmits a block in this slot. A retransmission has the size of the first transmission. In a special
    /// slot, only its code rate is higher.
    pub(super) fn transmit(&mut self, slot: Slot, grid: &Grid, block: Block<TransportBlock>) -> Decision {
        let now = slot.start;
        let reception = self.draw(slot, block.transmissions);
        match self.harq.transmit(now, block, reception) {
            Outcome::Retransmits => Decision::Undecided,
            Outcome::Decoded(block) => {
                if let Some((grants, report)) = self.grants.as_mut().zip(block.report) {
                    grants.report_decoded(now, report);
                }
                self.in_flight.launch(now + grid.slot() + self.delay, block.octets(), block);
                Decision::Arrives
            }
            Outcome::Lost(block) => {
                if let Some((grants, report)) = self.grants.as_mut().zip(block.report) {
                    grants.report_lost(report);
                }
                Decision::Lost(block)
            }
        }
    }

    fn draw(&mut self, slot: Slot, transmissions: u32) -> Reception {
        let fails = if transmissions == 0 {
            self.errors.begin_tti(slot.number, slot.start).damages_next()
        } else {
            self.draws.chance(self.retx_bler)
        };
        match fails {
            false => Reception::Decoded,
            true if self.draws.chance(self.nack_to_ack) => Reception::NackReadAsAck,
            true => Reception::Nack,
        }
    }
}

impl TransportBlock {
    fn octets(&self) -> u64 {
        self.pdus.iter().flatten().map(|pdu| pdu.octets.len() as u64).sum()
    }
}

/// The first slot from `start` on in which the terminal is active.
fn active_slot(start: Instant, drx: Option<&Drx>, slot: impl Fn(Instant) -> Instant) -> Instant {
    let Some(drx) = drx else { return start };
    let mut start = start;
    // A short on-duration can end before the next slot begins. A later cycle has a slot that begins in time.
    for _ in 0..1000 {
        let active = drx.active_from(start);
        if active == start {
            break;
        }
        start = slot(active);
    }
    start
}
