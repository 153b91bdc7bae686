//! An AM RLC entity: the protocol at one end (§9.3.3, §11.3 to §11.6).
//!
//! It has a Sender, which transmits SDUs in one direction, and a Receiver, which takes those of the other. It does no
//! I/O. Per TTI its owner calls [`Entity::pull`] for PDUs to send, and hands it the PDUs that arrive.
//!
//! Priorities: RESET ACK and RESET PDUs (§11.4.1), STATUS PDUs (§11.5.1), retransmissions, new AMD PDUs (§11.3.2.2). In
//! RESET_PENDING (§9.3.3.3) it neither sends nor takes AMD and STATUS PDUs.
//!
//! # What becomes of an SDU
//!
//! Every SDU that is submitted has exactly one [`SduOutcome`] at its Sender. `Discarded` and `Reset` mean that the
//! Sender gave it up. It may have arrived all the same, if only the acknowledgement was lost. An outcome is told when
//! it is final: if each direction keeps its order and no PDU is slower than Timer_RST, an SDU is delivered before its
//! outcome is told, or never.

mod advertising;
mod discard;
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

use std::sync::Arc;

use airwire::time::{Duration, Instant};
use discard::wire;
use hfn::Hfns;
use receiver::{Arrival, Receiver};
pub use reporting::Incoming;
pub use reset::ResetCause;
use reset::{Expiry, ResetReceipt, Resetting};
use smallvec::SmallVec;
pub use stats::Stats;
use transmitter::{Transmission, Transmitter};

pub use crate::rlc::air::OneLess;

use super::codec::{Format, decode, encode, is_data};
use super::config::{ReceiverConfig, SenderConfig};
use super::pdu::{Pdu, Reset, Rest, Sn, Status, Sufi};
use super::reassembly::Faults;
use super::status_report;

/// The parameters of an entity (§9.6), and what it has to know about the layer below.
#[derive(Clone, Debug)]
pub struct EntityConfig {
    /// For the SDUs that it sends.
    pub sender: SenderConfig,
    /// For the SDUs that it receives.
    pub receiver: ReceiverConfig,
    /// The format of the PDUs that it sends, control PDUs included.
    pub sends: Format,
    /// The format of the PDUs that it receives.
    pub receives: Format,
    /// Whether it is in the UE or in UTRAN, as far as timers can tell.
    pub timers: TimersStart,
    /// The capacity of the direction that it receives. Only Timer_EPC needs it.
    pub incoming: Incoming,
}

/// When a timer starts that the transmission of a PDU starts (§9.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimersStart {
    /// In UTRAN: when the PDU is submitted to the lower layer.
    WhenSubmitted,
    /// In the UE: when the lower layer indicates that it was transmitted, at the end of the TTI.
    WhenTransmitted {
        /// The TTI's length.
        tti: Duration,
    },
}

/// The owner's name for an SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SduId(
    /// The owner's choice.
    pub u64,
);

/// Names of SDUs, seldom more than two.
pub type SduIds = SmallVec<[SduId; 2]>;

/// What became of an SDU, as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SduOutcome {
    /// The peer has acknowledged all of it.
    Acknowledged,
    /// Given up because of MaxDAT or Timer_Discard (§11.6).
    Discarded,
    /// Discarded by a reset (§11.4.3) or an unrecoverable error (§11.4.4a).
    Reset,
}

/// A PDU for the lower layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The PDU, of the configured size, or with a flexible one at most that.
    pub octets: Arc<[u8]>,
    /// What it is.
    pub kind: PduKind,
    /// Grows with every reset and every wrap of the sequence number, and stays the same in a retransmission. So (epoch,
    /// SN) names an AMD PDU uniquely, for 4096 wraps (4 hours of a full 384 kbit/s) after each of 2^20 resets. Control
    /// PDUs have the epoch of VT(S).
    pub epoch: u32,
}

/// What the lower layer takes in a TTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many PDUs.
    Pdus(usize),
    /// PDUs until they have so many octets: the last one may have more, and is not complete within the TTI.
    Octets {
        /// All that there is room for.
        octets: usize,
        /// What the lower layer adds to each PDU.
        header: usize,
        /// At most so many PDUs.
        pdus: usize,
    },
}

impl Room {
    /// Whether one more PDU goes with these. `reserved`: others that are still to come.
    fn takes_another(self, pdus: &[Outgoing], reserved: usize) -> bool {
        match self {
            Self::Pdus(most) => pdus.len() + reserved < most,
            Self::Octets { octets, header, pdus: most } => {
                let taken: usize = pdus.iter().map(|pdu| header + pdu.octets.len()).sum();
                taken < octets && pdus.len() + reserved < most
            }
        }
    }

    /// How many PDUs there is room for.
    pub const fn pdus(self) -> usize {
        match self {
            Self::Pdus(pdus) | Self::Octets { pdus, .. } => pdus,
        }
    }

    /// The same for fewer PDUs.
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        match self {
            Self::Pdus(pdus) => Self::Pdus(pdus.min(most)),
            Self::Octets { octets, header, pdus } => Self::Octets { octets, header, pdus: pdus.min(most) },
        }
    }
}

/// What an outgoing PDU is, for whoever accounts for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// AMD PDU, perhaps with a piggybacked STATUS PDU.
    Data {
        /// Its "Sequence Number".
        sn: Sn,
        /// The HFN of its COUNT-C, for whoever ciphers it (§9.7.8).
        hfn: u32,
        /// VT(DAT): 1 for the first transmission.
        transmission: u32,
        /// The "Polling bit" is set.
        polls: bool,
        /// The SDUs of which it carries octets, except those that have their outcome.
        sdus: SduIds,
    },
    /// STATUS PDU.
    Status,
    /// RESET PDU.
    Reset,
    /// RESET ACK PDU.
    ResetAck,
}

/// The protocol state (§9.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// DATA_TRANSFER_READY.
    DataTransfer,
    /// RESET_PENDING.
    ResetPending,
}

/// An AM RLC entity. The owner calls it when something happens, and at [`next_deadline`](Self::next_deadline).
pub struct Entity {
    sends: Format,
    receives: Format,
    timers: TimersStart,
    transmitter: Transmitter,
    receiver: Receiver,
    resetting: Resetting,
    /// VT(RST) = MaxRST. Nothing happens until `reestablish`.
    unrecoverable: bool,
    hfns: Hfns,
    /// How often this entity was reset or re-established.
    resets: u32,
    stats: Stats,
}

impl Entity {
    /// Establishes the entity, in DATA_TRANSFER_READY (§9.3.3.1). The periodic timers start.
    pub fn new(config: EntityConfig, now: Instant) -> Self {
        Self {
            sends: config.sends,
            receives: config.receives,
            timers: config.timers,
            resetting: Resetting::new(&config.sender),
            transmitter: Transmitter::new(config.sender, config.sends, now),
            receiver: Receiver::new(config.receiver, config.incoming, now),
            unrecoverable: false,
            hfns: Hfns::default(),
            resets: 0,
            stats: Stats::default(),
        }
    }

    /// §9.7.9: uses new values of all parameters from now on, except the formats, the two window sizes and "In-Sequence
    /// Delivery", which stay. With a window of 4095 it must not change from No_discard to a discard: all of the window may be in
    /// use, and a discard needs one more number.
    pub fn reconfigure(&mut self, now: Instant, config: &EntityConfig) {
        self.timers = config.timers;
        self.resetting.reconfigure(&config.sender);
        self.transmitter.reconfigure(now, &config.sender);
        self.receiver.reconfigure(now, config.receiver.clone(), config.incoming);
        self.catch_up(now);
    }

    /// Takes an SDU from the upper layer. `poll_outcome` will name it by `id`.
    ///
    /// # Panics
    ///
    /// If it is empty.
    pub fn submit(&mut self, now: Instant, id: SduId, octets: Vec<u8>) {
        self.stats.sdus_submitted += 1;
        self.transmitter.submit(now, id, octets, &mut self.stats);
    }

    /// SDUs of which nothing was transmitted yet, and their octets.
    pub fn waiting(&self) -> (usize, usize) {
        self.transmitter.waiting()
    }

    /// How many PDUs it could send now, counted up to `most`. A report that is not written yet counts as one.
    pub fn blocks_wanted(&self, most: usize) -> usize {
        if self.unrecoverable {
            return 0;
        }
        let resets = self.resetting.queued();
        let control = match self.activity() {
            Activity::ResetPending => return resets.min(most),
            Activity::DataTransfer => resets + self.statuses_wanted(),
        };
        (control + self.transmitter.queued(most.saturating_sub(control))).min(most)
    }

    fn statuses_wanted(&self) -> usize {
        let others = self.transmitter.discarding.queued()
            || self.transmitter.wants_poll_sufi()
            || self.receiver.has_others();
        // The rest of a written report goes first, and by itself.
        self.receiver.reporting.underway() + usize::from(others || self.receiver.reporting.is_due())
    }

    /// A RESET of its own has no answer yet (RESET_PENDING, §9.3.3.3).
    pub fn is_resetting(&self) -> bool {
        self.resetting.is_pending()
    }

    fn activity(&self) -> Activity {
        if self.resetting.is_pending() { Activity::ResetPending } else { Activity::DataTransfer }
    }

    /// The PDUs for a TTI that begins now. A STATUS PDU that is piggybacked saves a block, which is done only if `one_less`
    /// says that the TTI can be sent without it.
    pub fn pull(&mut self, now: Instant, room: Room, one_less: OneLess) -> Vec<Outgoing> {
        let mut pdus = Vec::with_capacity(room.pdus());
        if self.unrecoverable {
            return pdus;
        }
        let starts = match self.timers {
            TimersStart::WhenSubmitted => now,
            TimersStart::WhenTransmitted { tti } => now + tti,
        };
        // §11.5.2.1: a STATUS PDU that may fit the padding of an AMD PDU. A block is kept for it until it does.
        let mut piggyback = None;
        let mut first_data = 0;
        while room.takes_another(&pdus, usize::from(piggyback.is_some())) {
            if let Some(ack) = self.resetting.take_ack() {
                pdus.push(self.control(&Pdu::ResetAck(ack), PduKind::ResetAck));
            } else if let Some(reset) = self.resetting.take_reset(starts) {
                self.stats.reset_pdus += 1;
                pdus.push(self.control(&Pdu::Reset(reset), PduKind::Reset));
            } else if self.activity() == Activity::ResetPending {
                break;
            } else if let Some(status) = self.next_status(starts) {
                let alone = piggyback.is_none() && self.statuses_wanted() == 0;
                if alone && one_less == OneLess::Fits && self.receiver.reporting.config().piggyback {
                    piggyback = Some(status);
                    first_data = pdus.len();
                } else {
                    pdus.push(self.control(&Pdu::Status(status), PduKind::Status));
                }
            } else {
                match self.transmitter.transmit(now, starts, &mut piggyback, &mut self.stats) {
                    Ok(Some(sent)) => pdus.push(self.data(sent)),
                    // A discard took the place of the transmission, and has to be told by an MRW.
                    Ok(None) if self.statuses_wanted() > 0 => {}
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
                sdus: sent.sdus,
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
        // Every part of a report has the LSN of the moment when it was written. If an MRW_ACK went ahead of one, LSN
        // would be below the peer's VT(A), an "erroneous Sequence Number".
        if let Some(part) = self.receiver.reporting.next_part(starts) {
            self.count_sent(&part);
            return Some(part);
        }
        let mut others = Vec::new();
        self.receiver.take_others(&mut others);
        if let Some(mrw) = self.transmitter.discarding.take(starts) {
            self.stats.mrws_sent += 1;
            others.push(mrw);
        }
        if let Some(sn) = self.transmitter.take_poll_sufi(starts) {
            self.stats.polls += 1;
            others.push(Sufi::Poll { sn: wire(sn) });
        }
        if self.receiver.reporting.is_due() {
            let others = if self.leaves_room(&others) { std::mem::take(&mut others) } else { Vec::new() };
            self.receiver.begin_report(others, self.sends.pdu_size, starts);
        }
        let status = if others.is_empty() {
            self.receiver.reporting.next_part(starts)?
        } else {
            status_report::without_acknowledgement(others)
        };
        self.count_sent(&status);
        Some(status)
    }

    fn count_sent(&mut self, Status(sufis): &Status) {
        self.stats.statuses_sent += 1;
        let windows = sufis.iter().filter(|sufi| matches!(sufi, Sufi::Window { .. })).count();
        self.stats.windows_told += windows as u64;
    }

    /// Whether a report fits behind `others`: the header, ACK, WINDOW, and one gap in any coding.
    fn leaves_room(&self, others: &[Sufi]) -> bool {
        const REPORT: usize = 1 + 4 + 4 + 7;
        others.iter().map(Sufi::nibbles).sum::<usize>() + REPORT <= self.sends.pdu_size * 2
    }

    /// Reception of a PDU without CRC error. (§10.4: one with an error is discarded, by the lower layer.)
    pub fn handle_pdu(&mut self, now: Instant, octets: &[u8]) {
        if self.unrecoverable {
            self.stats.ignored += 1;
            return;
        }
        // §11.4.2: ignore any incoming AMD PDU, before it is read: it may be enciphered with an HFN that is not known yet.
        if self.activity() == Activity::ResetPending && is_data(octets) {
            self.stats.ignored += 1;
            return;
        }
        // §10.3, invalid PDU format.
        let Ok(pdu) = decode(octets, self.receives) else {
            self.stats.decode_errors += 1;
            return;
        };
        match pdu {
            // §11.4.3, §11.4.5.3.
            Pdu::Reset(Reset { rsn, hfni }) => {
                let receipt = self.resetting.receipt(rsn);
                if receipt == ResetReceipt::Repeated {
                    self.resetting.acknowledge(rsn, self.hfns.told_again());
                    return;
                }
                self.resetting.acknowledge(rsn, self.highest_hfn());
                self.stats.resets_by_peer += 1;
                let hfns = self.hfns.restarted(self.transmitter.vt_s()).told(hfni);
                // In RESET_PENDING only the RESET ACK increases them (§11.4.5.3).
                let pending = receipt == ResetReceipt::Crossing;
                self.reset(now, if pending { hfns } else { hfns.increased() });
            }
            // §11.4.4.
            Pdu::ResetAck(ack) => {
                if self.resetting.handle_reset_ack(ack) {
                    let hfns = self.hfns.restarted(self.transmitter.vt_s()).told(ack.hfni);
                    self.reset(now, hfns.increased());
                } else {
                    self.stats.ignored += 1;
                }
            }
            // §11.4.2: and any STATUS PDU.
            Pdu::Status(_) if self.activity() == Activity::ResetPending => {
                self.stats.ignored += 1;
            }
            // §11.5.3.
            Pdu::Status(status) => self.handle_status(now, &status),
            // §11.3.3. A piggybacked STATUS PDU counts also if the AMD PDU is a duplicate (§11.3.4.8). Choice: and if
            // it is outside the reception window.
            Pdu::Amd(mut amd) => {
                let piggybacked = match std::mem::take(&mut amd.rest) {
                    Rest::Piggybacked(status) => Some(status),
                    rest => {
                        amd.rest = rest;
                        None
                    }
                };
                self.stats.polled += u64::from(amd.poll);
                match self.receiver.handle_amd(now, amd) {
                    Arrival::New => self.stats.pdus_received += 1,
                    Arrival::Duplicate => self.stats.duplicates += 1,
                    Arrival::OutsideWindow => self.stats.outside_window += 1,
                }
                if let Some(status) = piggybacked {
                    self.handle_status(now, &status);
                }
            }
        }
    }

    fn handle_status(&mut self, now: Instant, status: &Status) {
        self.stats.statuses_received += 1;
        // §10.2, inconsistent status indication.
        let Ok(told) = status_report::interpret(status) else {
            self.stats.statuses_refused += 1;
            return;
        };
        if let Err(cause) = self.transmitter.handle_report(now, &told, &mut self.stats) {
            self.start_reset(cause);
            if cause == ResetCause::ErroneousSn {
                return;
            }
        }
        if let Some(mrw) = &told.mrw {
            self.stats.mrws_received += 1;
            let obsolete = self.receiver.handle_mrw(mrw);
            self.stats.mrws_obsolete += u64::from(obsolete);
        }
        if let Some(sn) = told.poll {
            self.stats.polled += 1;
            self.receiver.handle_poll(now, sn);
        }
    }

    /// Tells the peer to use a transmission window of `wsn` PDUs (WINDOW, §9.2.2.11.3).
    pub fn advertise_window(&mut self, wsn: u16) {
        self.receiver.advertising.advertise(wsn);
    }

    /// VT(WS): the transmission window that it uses.
    pub fn window(&self) -> u16 {
        self.transmitter.vt_ws()
    }

    /// §9.7.5, CRLC-SUSPEND-Req: LOCAL_SUSPEND, or in RESET_PENDING RESET_AND_SUSPEND. No AMD PDU with SN ≥ VT(S) + N is
    /// sent any more; retransmissions, STATUS and RESET PDUs are, and everything is received. Returns VT(S), which the
    /// confirmation contains.
    pub fn suspend(&mut self, n: u16) -> Sn {
        self.transmitter.suspend_after(n);
        wire(self.transmitter.vt_s())
    }

    /// §9.7.5, CRLC-RESUME-Req: back to where it was before.
    pub fn resume(&mut self) {
        self.transmitter.resume();
    }

    /// How many new AMD PDUs a suspended entity may still send. `None`: it is not suspended.
    pub fn suspended(&self) -> Option<u64> {
        self.transmitter.suspended()
    }

    /// The next SDU for the upper layer, if one is complete.
    pub fn poll_sdu(&mut self) -> Option<Vec<u8>> {
        let sdu = self.receiver.poll_sdu()?;
        self.stats.sdus_delivered += 1;
        Some(sdu)
    }

    /// The next SDU whose outcome is known; each is returned once.
    pub fn poll_outcome(&mut self) -> Option<(SduId, SduOutcome)> {
        self.transmitter.poll_outcome()
    }

    /// Timers expire. To be called when the clock reaches [`next_deadline`](Self::next_deadline); harmless before.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self.unrecoverable {
            return;
        }
        if self.resetting.handle_deadline(now) == Some(Expiry::Unrecoverable) {
            self.fail();
            return;
        }
        self.receiver.reporting.handle_deadline(now, self.receiver.vr_r());
        self.receiver.advertising.handle_deadline(now);
        if let Err(cause) = self.transmitter.handle_deadline(now, self.activity(), &mut self.stats) {
            self.start_reset(cause);
        }
    }

    /// When the next timer expires; `None`: none is running. Whether there is something to send, `blocks_wanted` tells.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.unrecoverable {
            return None;
        }
        let deadlines = [
            self.resetting.next_deadline(),
            self.receiver.reporting.next_deadline(),
            self.receiver.advertising.next_deadline(),
            self.transmitter.next_deadline(self.activity()),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Handles the deadlines that a change has moved into the past.
    fn catch_up(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|at| at <= now) {
            self.handle_deadline(now);
        }
    }

    /// Everything counted since the entity was made.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Reset procedures that this side has initiated, by the number of their cause.
    pub fn resets(&self) -> [u64; ResetCause::ALL.len()] {
        let Stats { resets_max_dat, resets_max_mrw, resets_erroneous_sn, .. } = self.stats;
        [resets_max_dat, resets_max_mrw, resets_erroneous_sn]
    }

    /// What well-formed PDUs of the peer said that contradicts the ones before them.
    pub fn faults(&self) -> Faults {
        self.receiver.faults()
    }

    // RESET.

    /// §11.4.2: initiates the reset procedure, unless it is pending.
    fn start_reset(&mut self, cause: ResetCause) {
        if self.activity() == Activity::ResetPending || self.unrecoverable {
            return;
        }
        match cause {
            ResetCause::MaxDat => self.stats.resets_max_dat += 1,
            ResetCause::MaxMrw => self.stats.resets_max_mrw += 1,
            ResetCause::ErroneousSn => self.stats.resets_erroneous_sn += 1,
        }
        self.transmitter.pause();
        if self.resetting.start(self.highest_hfn()) == Expiry::Unrecoverable {
            self.fail();
        }
    }

    /// The highest HFN used for what it sends: HFNI of its RESET and RESET ACK PDUs (§11.4.2.1, §11.4.3.1).
    pub fn highest_hfn(&self) -> u32 {
        self.hfns.highest(self.transmitter.vt_s())
    }

    /// The HFN of the peer's AMD PDU with this number, for whoever deciphers it.
    pub fn hfn_of(&self, sn: Sn) -> u32 {
        self.hfns.of_peer(self.receiver.place(sn))
    }

    /// §11.4.3, §11.4.4: the entity is reset, and goes on with these HFNs.
    fn reset(&mut self, now: Instant, hfns: Hfns) {
        self.hfns = hfns;
        self.resets += 1;
        self.transmitter.reset(&mut self.stats);
        self.receiver.reset();
        self.catch_up(now);
    }

    /// §11.4.4a: VT(RST) has reached MaxRST. The upper layers would release or re-establish the bearer. Until
    /// [`reestablish`](Self::reestablish) the entity is silent, and keeps the SDUs of which nothing was transmitted.
    pub fn is_unrecoverable(&self) -> bool {
        self.unrecoverable
    }

    /// §11.4.4a: indicates an unrecoverable error. What was sent in part is discarded.
    fn fail(&mut self) {
        self.stats.unrecoverable_errors += 1;
        self.unrecoverable = true;
        self.hfns = self.hfns.restarted(self.transmitter.vt_s());
        self.transmitter.reset(&mut self.stats);
    }
}
