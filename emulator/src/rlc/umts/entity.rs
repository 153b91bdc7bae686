//! An AM RLC entity, which implements the protocol at one end (§9.3.3, §11.3 to §11.6).
//!
//! An entity has a Sender for the SDUs of one direction, and a Receiver for the SDUs of the other. It does no
//! I/O. In each TTI, its owner calls [`Entity::pull`] for the PDUs to send. It passes arriving PDUs to
//! [`Entity::handle_pdu`].
//!
//! PDUs are sent in this order: RESET ACK and RESET PDUs (§11.4.1), STATUS PDUs (§11.5.1), retransmissions,
//! new AMD PDUs (§11.3.2.2). In RESET_PENDING (§9.3.3.3), the entity neither sends nor accepts AMD and STATUS
//! PDUs.
//!
//! # Outcome of an SDU
//!
//! The Sender reports exactly one [`SduOutcome`] for every submitted SDU. `Discarded` and `Reset` mean that
//! the Sender discarded the SDU. The SDU may have arrived nevertheless, if only its acknowledgement was lost.
//! The Sender reports an outcome when it is final: an SDU is delivered before its outcome is reported, or
//! never. This requires that PDUs stay in order within each direction and arrive within Timer_RST.

mod discard_signalling;
mod hfn;
mod poll;
mod receiver;
mod reestablishment;
mod reporting;
mod reset;
mod stats;
#[cfg(test)]
mod tests;
mod transmitter;
mod window_advertisement;

use std::sync::Arc;

use airwire::time::{Duration, Instant, earlier};
use discard_signalling::wire;
use hfn::Hfns;
use receiver::{Receiver, Reception};
pub use reporting::Incoming;
pub use reset::ResetCause;
use reset::{ResetProcedure, ResetReceipt};
pub use stats::Stats;
use transmitter::{Transmission, Transmitter};

pub use super::capacity::{OneBlockFewer, Room};
use super::codec::{Format, decode, encode, is_data};
use super::config::{ReceiverConfig, SenderConfig};
use super::pdu::{Amd, Pdu, Reset, Rest, Sn, Status, Sufi};
use super::reassembly::Faults;
use super::status_report;

/// Parameters of an entity (§9.6), and properties of the layer below.
#[derive(Clone, Debug)]
pub struct EntityConfig {
    /// Settings for the SDUs that the entity sends.
    pub sender: SenderConfig,
    /// Settings for the SDUs that the entity receives.
    pub receiver: ReceiverConfig,
    /// Format of the PDUs that the entity sends, including control PDUs.
    pub sends: Format,
    /// Format of the PDUs that the entity receives.
    pub receives: Format,
    /// The start of timers, which depends on whether the entity is in the UE or in UTRAN.
    pub timers: TimersStart,
    /// Capacity of the direction in which the entity receives. Only Timer_EPC needs it.
    pub incoming: Incoming,
}

/// The moment at which the transmission of a PDU starts its timers (§9.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimersStart {
    /// In UTRAN: when the PDU is submitted to the lower layer.
    WhenSubmitted,
    /// In the UE: when the lower layer indicates that it was transmitted, at the end of the TTI.
    WhenTransmitted {
        /// Length of a TTI.
        tti: Duration,
    },
}

/// Identifier of an SDU, chosen by the owner of the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SduId(pub u64);

/// Outcome of an SDU, according to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SduOutcome {
    /// The peer has acknowledged the whole SDU.
    Acknowledged,
    /// Discarded because of MaxDAT or Timer_Discard (§11.6).
    Discarded,
    /// Discarded by a reset (§11.4.3) or an unrecoverable error (§11.4.4a).
    Reset,
}

/// A PDU for the lower layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The encoded PDU. It has the configured size, or at most that size if the size is flexible.
    pub octets: Arc<[u8]>,
    /// Type of the PDU.
    pub kind: PduKind,
    /// Counter that increases with every reset and every wrap of the sequence number. A retransmission keeps
    /// the epoch of its PDU. So (epoch, SN) identifies an AMD PDU, for 4096 wraps (4 hours at a full 384
    /// kbit/s) after each of 2^20 resets. Control PDUs have the epoch of VT(S).
    pub epoch: u32,
}

/// Type of an outgoing PDU, for the owner's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// An AMD PDU, possibly with a piggybacked STATUS PDU.
    Data {
        /// Sequence Number.
        sn: Sn,
        /// HFN of the PDU's COUNT-C, for ciphering (§9.7.8).
        hfn: u32,
        /// VT(DAT): 1 for the first transmission.
        transmission: u32,
        /// Whether the Polling bit is set.
        polls: bool,
        /// The first and the last SDU that have data in the PDU, except those whose outcome is known.
        carries: Option<(SduId, SduId)>,
    },
    /// A STATUS PDU.
    Status,
    /// A RESET PDU.
    Reset,
    /// A RESET ACK PDU.
    ResetAck,
}

/// An AM RLC entity. Its owner calls it for every event, and at [`next_deadline`](Self::next_deadline).
pub struct Entity {
    sends: Format,
    receives: Format,
    timers: TimersStart,
    transmitter: Transmitter,
    receiver: Receiver,
    resetting: ResetProcedure,
    /// Whether VT(RST) has reached MaxRST. If so, the entity is inactive until `reestablish`.
    unrecoverable: bool,
    hfns: Hfns,
    /// Number of resets and re-establishments of this entity.
    resets: u32,
    stats: Stats,
}

impl Entity {
    /// Creates an entity in DATA_TRANSFER_READY (§9.3.3.1), and starts the periodic timers.
    pub fn new(config: EntityConfig, now: Instant) -> Self {
        Self {
            sends: config.sends,
            receives: config.receives,
            timers: config.timers,
            resetting: ResetProcedure::new(&config.sender),
            transmitter: Transmitter::new(config.sender, config.sends, now),
            receiver: Receiver::new(config.receiver, config.incoming, now),
            unrecoverable: false,
            hfns: Hfns::default(),
            resets: 0,
            stats: Stats::default(),
        }
    }

    /// Applies new values of the parameters (§9.7.9). The formats, the two window sizes and "In-Sequence
    /// Delivery" do not change. With a window of 4095, a change from No_discard to a discard mode is not
    /// allowed: the whole window may be in use, and a discard needs one more sequence number.
    pub fn reconfigure(&mut self, now: Instant, config: &EntityConfig) {
        self.timers = config.timers;
        self.resetting.reconfigure(&config.sender);
        self.transmitter.reconfigure(now, &config.sender);
        self.receiver.reconfigure(now, config.receiver.clone(), config.incoming);
        self.catch_up(now);
    }

    /// Takes an SDU from the upper layer. [`poll_outcome`](Self::poll_outcome) identifies it by `id`.
    ///
    /// # Panics
    ///
    /// If the SDU is empty.
    pub fn submit(&mut self, now: Instant, id: SduId, octets: Vec<u8>) {
        self.stats.sdus_submitted += 1;
        self.transmitter.submit(now, id, octets, &mut self.stats);
    }

    /// Number of SDUs whose transmission has not begun, and their bytes.
    pub fn unsent(&self) -> (usize, usize) {
        self.transmitter.unsent()
    }

    /// Number of PDUs that the entity could send now, but at most `most`. A report that has not been written
    /// yet counts as one.
    pub fn sendable_pdus(&self, most: usize) -> usize {
        if self.unrecoverable {
            return 0;
        }
        let resets = self.resetting.queued();
        if self.is_resetting() {
            return resets.min(most);
        }
        let control = resets + self.sendable_statuses();
        (control + self.transmitter.queued(most.saturating_sub(control))).min(most)
    }

    fn sendable_statuses(&self) -> usize {
        let undelayed = self.transmitter.signalling.queued()
            || self.transmitter.has_poll_sufi()
            || self.receiver.has_undelayed();
        // The remaining parts of a written report are sent first, in separate PDUs.
        self.receiver.reporting.parts_left() + usize::from(undelayed || self.receiver.reporting.is_due())
    }

    /// Whether this entity has sent a RESET that is unanswered (RESET_PENDING, §9.3.3.3).
    pub fn is_resetting(&self) -> bool {
        self.resetting.is_pending()
    }

    /// Returns the PDUs for a TTI that begins now. A piggybacked STATUS PDU saves a block. The entity
    /// piggybacks only if `one_block_fewer` permits a TTI with one block fewer.
    pub fn pull(&mut self, now: Instant, room: Room, one_block_fewer: OneBlockFewer) -> Vec<Outgoing> {
        let mut pdus = Vec::with_capacity(room.pdus());
        if self.unrecoverable {
            return pdus;
        }
        let starts = match self.timers {
            TimersStart::WhenSubmitted => now,
            TimersStart::WhenTransmitted { tti } => now + tti,
        };
        // §11.5.2.1: a STATUS PDU that may fit in the padding of an AMD PDU. Until then, a block is reserved
        // for the STATUS PDU.
        let mut piggyback = None;
        let mut first_data = 0;
        while room.takes_another(pdus.iter().map(|pdu| pdu.octets.len()), usize::from(piggyback.is_some())) {
            if let Some(ack) = self.resetting.take_ack() {
                pdus.push(self.control(&Pdu::ResetAck(ack), PduKind::ResetAck));
            } else if let Some(reset) = self.resetting.take_reset(starts) {
                self.stats.reset_pdus += 1;
                pdus.push(self.control(&Pdu::Reset(reset), PduKind::Reset));
            } else if self.is_resetting() {
                break;
            } else if self.sendable_statuses() > 0
                && let Some(status) = self.next_status(starts)
            {
                let alone = piggyback.is_none() && self.sendable_statuses() == 0;
                if alone
                    && one_block_fewer == OneBlockFewer::HasFormat
                    && self.receiver.reporting.config().piggyback
                {
                    piggyback = Some(status);
                    first_data = pdus.len();
                } else {
                    pdus.push(self.control(&Pdu::Status(status), PduKind::Status));
                }
            } else {
                match self.transmitter.transmit(now, starts, &mut piggyback, &mut self.stats) {
                    Ok(Some(sent)) => pdus.push(self.data(sent)),
                    // A discard has replaced the transmission. An MRW must inform the peer.
                    Ok(None) if self.sendable_statuses() > 0 => {}
                    Ok(None) => break,
                    Err(cause) => self.start_reset(cause),
                }
            }
            if self.unrecoverable {
                break;
            }
        }
        if let Some(status) = piggyback {
            let pdu = self.control(&Pdu::Status(status), PduKind::Status);
            pdus.insert(first_data, pdu);
        }
        pdus
    }

    fn data(&self, sent: Transmission) -> Outgoing {
        Outgoing {
            octets: sent.octets,
            epoch: self.epoch(sent.sn),
            kind: PduKind::Data {
                sn: wire(sent.sn),
                hfn: self.hfns.of_own(sent.sn),
                transmission: sent.number,
                polls: sent.polls,
                carries: sent.carries,
            },
        }
    }

    fn control(&self, pdu: &Pdu<'_>, kind: PduKind) -> Outgoing {
        Outgoing { octets: encode(pdu, self.sends).into(), kind, epoch: self.epoch(self.transmitter.vt_s()) }
    }

    fn epoch(&self, sn: u64) -> u32 {
        self.resets << 12 | (sn >> 12) as u32 & 0xfff
    }

    fn next_status(&mut self, starts: Instant) -> Option<Status> {
        // Every part of a report has the LSN of the time when the report was written. After an MRW_ACK, this
        // LSN would be below the peer's VT(A), which is an "erroneous Sequence Number" (§10.1).
        if let Some(part) = self.receiver.reporting.next_part(starts) {
            self.count_sent(&part);
            return Some(part);
        }
        let mut undelayed = Vec::new();
        self.receiver.take_undelayed(&mut undelayed);
        if let Some(mrw) = self.transmitter.signalling.take(starts) {
            self.stats.mrws_sent += 1;
            undelayed.push(mrw);
        }
        if let Some(sn) = self.transmitter.take_poll_sufi(starts) {
            self.stats.polls += 1;
            undelayed.push(Sufi::Poll { sn: wire(sn) });
        }
        if self.receiver.reporting.is_due() {
            let first =
                if self.leaves_room(&undelayed) { std::mem::take(&mut undelayed) } else { Vec::new() };
            self.receiver.begin_report(first, self.sends.pdu_size, starts);
        }
        let status = if undelayed.is_empty() {
            self.receiver.reporting.next_part(starts)?
        } else {
            status_report::without_acknowledgement(undelayed)
        };
        self.count_sent(&status);
        Some(status)
    }

    fn count_sent(&mut self, Status(sufis): &Status) {
        self.stats.statuses_sent += 1;
        let windows = sufis.iter().filter(|sufi| matches!(sufi, Sufi::Window { .. })).count();
        self.stats.windows_sent += windows as u64;
    }

    /// Whether a report fits after `sufis`: the header, ACK, WINDOW, and one gap in any encoding.
    fn leaves_room(&self, sufis: &[Sufi]) -> bool {
        const REPORT: usize = 1 + 4 + 4 + 7;
        sufis.iter().map(Sufi::nibbles).sum::<usize>() + REPORT <= self.sends.pdu_size * 2
    }

    /// Handles a PDU that was received without a CRC error. (The lower layer discards PDUs with errors,
    /// §10.4.)
    pub fn handle_pdu(&mut self, now: Instant, octets: &[u8]) {
        // §11.4.2: in RESET_PENDING, AMD and STATUS PDUs are ignored. AMD PDUs are not even decoded, because
        // they may be ciphered with an HFN that is not known yet.
        let resetting = self.is_resetting();
        if self.unrecoverable || resetting && is_data(octets) {
            self.stats.ignored += 1;
            return;
        }
        match &decode(octets, self.receives) {
            Ok(Pdu::Amd(amd)) => self.handle_amd(now, amd),
            Ok(Pdu::Status(_)) if resetting => self.stats.ignored += 1,
            Ok(Pdu::Status(status)) => self.handle_status(now, status),
            Ok(Pdu::Reset(reset)) => self.handle_reset(now, *reset),
            Ok(Pdu::ResetAck(ack)) => self.handle_reset_ack(now, *ack),
            // §10.3, invalid PDU format: a PDU with reserved or invalid values is discarded.
            Err(_) => self.stats.decode_errors += 1,
        }
    }

    /// Handles the reception of an AMD PDU (§11.3.3). A piggybacked STATUS PDU is handled even if the AMD PDU
    /// is a duplicate (§11.3.4.8). Choice: also if the AMD PDU is outside the reception window.
    fn handle_amd(&mut self, now: Instant, amd: &Amd<'_>) {
        self.stats.polled += u64::from(amd.poll);
        match self.receiver.handle_amd(now, amd) {
            Reception::New => self.stats.pdus_received += 1,
            Reception::Duplicate => self.stats.duplicates += 1,
            Reception::OutsideWindow => self.stats.outside_window += 1,
        }
        if let Rest::Piggybacked(status) = &amd.rest {
            self.handle_status(now, status);
        }
    }

    /// Handles the reception of a STATUS PDU (§11.5.3).
    fn handle_status(&mut self, now: Instant, status: &Status) {
        self.stats.statuses_received += 1;
        // §10.2, inconsistent status indication: the STATUS PDU is discarded.
        let Ok(content) = status_report::interpret(status) else {
            self.stats.statuses_refused += 1;
            return;
        };
        if let Err(cause) = self.transmitter.handle_status(now, &content, &mut self.stats) {
            self.start_reset(cause);
            if cause == ResetCause::ErroneousSn {
                return;
            }
        }
        if let Some(mrw) = &content.mrw {
            self.stats.mrws_received += 1;
            let obsolete = self.receiver.handle_mrw(mrw);
            self.stats.mrws_obsolete += u64::from(obsolete);
        }
        if let Some(sn) = content.poll {
            self.stats.polled += 1;
            self.receiver.handle_poll(now, sn);
        }
    }

    /// Handles the reception of a RESET PDU (§11.4.3, §11.4.5.3).
    fn handle_reset(&mut self, now: Instant, Reset { rsn, hfni }: Reset) {
        let receipt = self.resetting.receipt(rsn);
        if receipt == ResetReceipt::Repeated {
            self.resetting.acknowledge(rsn, self.hfns.repeated_hfni());
            return;
        }
        self.resetting.acknowledge(rsn, self.highest_hfn());
        self.stats.resets_by_peer += 1;
        let hfns = self.hfns.restarted(self.transmitter.vt_s()).with_peer(hfni);
        // §11.4.5.3: in RESET_PENDING, only the RESET ACK increases the HFNs.
        let pending = receipt == ResetReceipt::Crossing;
        self.reset(now, if pending { hfns } else { hfns.increased() });
    }

    /// Handles the reception of a RESET ACK PDU (§11.4.4).
    fn handle_reset_ack(&mut self, now: Instant, ack: Reset) {
        if self.resetting.handle_reset_ack(ack) {
            let hfns = self.hfns.restarted(self.transmitter.vt_s()).with_peer(ack.hfni);
            self.reset(now, hfns.increased());
        } else {
            self.stats.ignored += 1;
        }
    }

    /// Advertises a transmission window of `wsn` PDUs to the peer (WINDOW, §9.2.2.11.3).
    pub fn advertise_window(&mut self, wsn: u16) {
        self.receiver.advertisement.advertise(wsn);
    }

    /// VT(WS): the transmission window in use.
    pub fn window(&self) -> u16 {
        self.transmitter.vt_ws()
    }

    /// CRLC-SUSPEND-Req (§9.7.5): suspends the entity (LOCAL_SUSPEND, or RESET_AND_SUSPEND in RESET_PENDING).
    /// It no longer sends AMD PDUs with SN ≥ VT(S) + N. It still sends retransmissions, STATUS and RESET
    /// PDUs, and receives all PDUs. Returns VT(S) for the confirmation.
    pub fn suspend(&mut self, n: u16) -> Sn {
        self.transmitter.suspend_after(n);
        wire(self.transmitter.vt_s())
    }

    /// CRLC-RESUME-Req (§9.7.5): returns the entity to its state before the suspension.
    pub fn resume(&mut self) {
        self.transmitter.resume();
    }

    /// Number of new AMD PDUs that a suspended entity may still send. `None` if it is not suspended.
    pub fn suspended(&self) -> Option<u64> {
        self.transmitter.suspended()
    }

    /// Returns the next complete SDU for the upper layer.
    pub fn poll_sdu(&mut self) -> Option<Vec<u8>> {
        let sdu = self.receiver.poll_sdu()?;
        self.stats.sdus_delivered += 1;
        Some(sdu)
    }

    /// Takes back an SDU that [`poll_sdu`](Self::poll_sdu) returned, to reuse its memory.
    pub fn recycle(&mut self, sdu: Vec<u8>) {
        self.receiver.recycle(sdu);
    }

    /// Returns the next SDU whose outcome is known. Each SDU is returned once.
    pub fn poll_outcome(&mut self) -> Option<(SduId, SduOutcome)> {
        self.transmitter.poll_outcome()
    }

    /// Handles expired timers. The owner calls it at [`next_deadline`](Self::next_deadline). Earlier calls
    /// are harmless.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self.unrecoverable {
            return;
        }
        if self.resetting.handle_deadline(now).is_err() {
            self.fail();
            return;
        }
        let resetting = self.is_resetting();
        self.receiver.reporting.handle_deadline(now, self.receiver.vr_r());
        self.receiver.advertisement.handle_deadline(now);
        if let Err(cause) = self.transmitter.handle_deadline(now, resetting, &mut self.stats) {
            self.start_reset(cause);
        }
    }

    /// Time at which the next timer expires. `None` if no timer is running.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.unrecoverable {
            return None;
        }
        let receiver =
            earlier(self.receiver.reporting.next_deadline(), self.receiver.advertisement.next_deadline());
        let transmitter = self.transmitter.next_deadline(self.is_resetting());
        earlier(self.resetting.next_deadline(), earlier(receiver, transmitter))
    }

    /// Handles deadlines that a change has moved into the past.
    fn catch_up(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|at| at <= now) {
            self.handle_deadline(now);
        }
    }

    /// Counters since the entity was created.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Number of reset procedures that this side has initiated, by cause.
    pub fn resets(&self) -> [u64; ResetCause::ALL.len()] {
        let Stats { resets_max_dat, resets_max_mrw, resets_erroneous_sn, .. } = self.stats;
        [resets_max_dat, resets_max_mrw, resets_erroneous_sn]
    }

    /// Contradictions between well-formed PDUs of the peer.
    pub fn faults(&self) -> Faults {
        self.receiver.faults()
    }

    // RESET.

    /// Initiates the reset procedure, unless it is pending (§11.4.2).
    fn start_reset(&mut self, cause: ResetCause) {
        if self.is_resetting() || self.unrecoverable {
            return;
        }
        match cause {
            ResetCause::MaxDat => self.stats.resets_max_dat += 1,
            ResetCause::MaxMrw => self.stats.resets_max_mrw += 1,
            ResetCause::ErroneousSn => self.stats.resets_erroneous_sn += 1,
        }
        self.transmitter.stop_timers();
        if self.resetting.start(self.highest_hfn()).is_err() {
            self.fail();
        }
    }

    /// Highest HFN used in the sending direction. It is the HFNI of RESET and RESET ACK PDUs (§11.4.2.1,
    /// §11.4.3.1).
    pub fn highest_hfn(&self) -> u32 {
        self.hfns.highest(self.transmitter.vt_s())
    }

    /// HFN of the peer's AMD PDU with this sequence number, for deciphering.
    pub fn hfn_of(&self, sn: Sn) -> u32 {
        self.hfns.of_peer(self.receiver.full_sn(sn))
    }

    /// Resets the entity, which continues with `hfns` (§11.4.3, §11.4.4).
    fn reset(&mut self, now: Instant, hfns: Hfns) {
        self.hfns = hfns;
        self.resets += 1;
        self.transmitter.reset(&mut self.stats);
        self.receiver.reset();
        self.catch_up(now);
    }

    /// Whether VT(RST) has reached MaxRST (§11.4.4a). Upper layers then release or re-establish the bearer.
    /// Until [`reestablish`](Self::reestablish), the entity sends nothing, and keeps the SDUs whose
    /// transmission has not begun.
    pub fn is_unrecoverable(&self) -> bool {
        self.unrecoverable
    }

    /// Indicates an unrecoverable error (§11.4.4a), and discards the SDUs whose transmission has begun.
    fn fail(&mut self) {
        self.stats.unrecoverable_errors += 1;
        self.unrecoverable = true;
        self.hfns = self.hfns.restarted(self.transmitter.vt_s());
        self.transmitter.reset(&mut self.stats);
    }
}
