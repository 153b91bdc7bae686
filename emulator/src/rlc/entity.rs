//! RLC acknowledged mode: the protocol at one end (TS 25.322 §9 to §11).
//!
//! An entity sends SDUs in one direction and takes what comes from the other. It is sans-I/O, and knows blocks and
//! TTIs only as far as somebody calls `pull` for each TTI.
//!
//! What it is asked for, in this order: RESET ACK and RESET, STATUS, retransmissions, new data. While it waits for a
//! RESET ACK it neither sends nor takes data and STATUS.
//!
//! # What becomes of an SDU
//!
//! Every SDU that was submitted has exactly one outcome at its sender. `Discarded` and `Reset` say that the sender gave
//! up on it, which it may do although the SDU had arrived and only the acknowledgement was lost. They are told when
//! they are final: provided that each direction keeps its order and PDUs are not slower than Timer_RST, an SDU is
//! delivered before its outcome is told, or never.

mod discard;
mod poll;
mod receiver;
mod reporting;
mod reset;
mod stats;
#[cfg(test)]
mod tests;
mod transmitter;

use airwire::time::{Duration, Instant};
use discard::wire;
use receiver::{Arrival, Receiver};
pub use reporting::Incoming;
pub use reset::ResetCause;
use reset::{Expiry, ResetReceipt, Resetting};
pub use stats::Stats;
use transmitter::{Transmission, Transmitter};

use super::codec::{Format, decode, encode};
use super::config::{ReceiverConfig, SenderConfig};
use super::pdu::{Pdu, Rest, Sn, Status, Sufi};
use super::reassembly::Faults;
use super::status_report;

#[derive(Clone, Debug)]
pub struct EntityConfig {
    /// For the data that this entity sends.
    pub sender: SenderConfig,
    /// For the data that it takes.
    pub receiver: ReceiverConfig,
    /// How PDUs are written in the direction in which it sends, its own STATUS PDUs included.
    pub sends: Format,
    /// How PDUs are written that it receives.
    pub receives: Format,
    pub timers: TimersStart,
    /// What the direction that it receives carries per TTI (EPC alone needs it).
    pub incoming: Incoming,
}

/// When a timer starts that belongs to the transmission of a PDU (§9.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimersStart {
    /// When the PDU is handed to the layer below: in UTRAN.
    WhenSubmitted,
    /// When the layer below says that it has transmitted it, at the end of the TTI: in the UE.
    WhenTransmitted { tti: Duration },
}

/// Whether the transport format set has the number below the one that was chosen (TS 25.321 §11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneLess {
    Fits,
    HasNoFormat,
}

/// The owner's name for an SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SduId(pub u64);

/// What became of an SDU, as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SduOutcome {
    /// The peer has it.
    Acknowledged,
    /// Given up because of MaxDAT or Timer_Discard.
    Discarded,
    /// Thrown away by a RESET, or by an unrecoverable error.
    Reset,
}

/// A PDU for the layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub octets: Vec<u8>,
    pub kind: PduKind,
    /// Grows with every RESET and every wrap of the sequence number: a PDU that is transmitted again keeps its
    /// epoch, so (epoch, SN) is unique, for 4096 wraps (4 hours of a full 384 kbit/s) after each of 2^20 RESETs.
    /// Control PDUs have that of the next new PDU.
    pub epoch: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PduKind {
    Data {
        sn: Sn,
        /// VT(DAT): 1 for the first transmission.
        transmission: u32,
        polls: bool,
        /// The SDUs of which it carries octets and whose outcome is open.
        sdus: Vec<SduId>,
    },
    Status,
    Reset,
    ResetAck,
}

/// What timers may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    DataTransfer,
    ResetPending,
}

pub struct Entity {
    sends: Format,
    receives: Format,
    timers: TimersStart,
    transmitter: Transmitter,
    receiver: Receiver,
    resetting: Resetting,
    /// MaxRST was reached. Nothing goes on until `reestablish`.
    unrecoverable: bool,
    /// The highest hyper frame number that data was sent with, as far as whole resets count. There is no ciphering:
    /// it is kept because RESET PDUs show it.
    hfn: u32,
    /// RESETs that this entity went through.
    resets: u32,
    stats: Stats,
}

impl Entity {
    pub fn new(config: EntityConfig, now: Instant) -> Self {
        Self {
            sends: config.sends,
            receives: config.receives,
            timers: config.timers,
            resetting: Resetting::new(&config.sender),
            transmitter: Transmitter::new(config.sender, config.sends, now),
            receiver: Receiver::new(config.receiver, config.incoming, now),
            unrecoverable: false,
            hfn: 0,
            resets: 0,
            stats: Stats::default(),
        }
    }

    /// Takes over every setting but the two window sizes and the order of delivery. (From No_discard to a discard not
    /// with a window of 4095: all of it may be in use, and a discard needs another number.)
    pub fn reconfigure(
        &mut self,
        now: Instant,
        sender: &SenderConfig,
        receiver: ReceiverConfig,
        incoming: Incoming,
    ) {
        self.resetting.reconfigure(sender);
        self.transmitter.reconfigure(now, sender);
        let ReceiverConfig { window, in_sequence, .. } = *self.receiver.reporting.config();
        let receiver = ReceiverConfig { window, in_sequence, ..receiver };
        self.receiver.reporting.reconfigure(now, receiver, incoming);
        self.catch_up(now);
    }

    /// Takes an SDU, of at least one octet. An `id` is the owner's to choose.
    pub fn submit(&mut self, now: Instant, id: SduId, octets: Vec<u8>) {
        self.stats.sdus_submitted += 1;
        self.transmitter.submit(now, id, octets);
    }

    /// SDUs of which nothing was transmitted yet, and their octets.
    pub fn waiting(&self) -> (usize, usize) {
        self.transmitter.waiting()
    }

    /// How many blocks it could fill now, counted up to `most`. (A report counts as one until it is put together.)
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
        // What is left of a report that has begun goes first, and by itself.
        self.receiver.reporting.underway() + usize::from(others || self.receiver.reporting.is_due())
    }

    fn activity(&self) -> Activity {
        if self.resetting.is_pending() { Activity::ResetPending } else { Activity::DataTransfer }
    }

    /// What a TTI that begins now carries: at most so many PDUs. A report in the padding of another PDU saves one:
    /// `one_less` says whether the TTI can be sent with that, too.
    pub fn pull(&mut self, now: Instant, blocks: usize, one_less: OneLess) -> Vec<Outgoing> {
        let mut pdus = Vec::with_capacity(blocks);
        if self.unrecoverable {
            return pdus;
        }
        let starts = match self.timers {
            TimersStart::WhenSubmitted => now,
            TimersStart::WhenTransmitted { tti } => now + tti,
        };
        // A report that may find room in an AMD PDU: a block is kept for it until it has.
        let mut piggyback = None;
        let mut first_data = 0;
        while pdus.len() + usize::from(piggyback.is_some()) < blocks {
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
                    // It may have made a discard instead.
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
                transmission: sent.number,
                polls: sent.polls,
                sdus: sent.sdus,
            },
        }
    }

    fn control(&self, pdu: &Pdu, kind: PduKind) -> Outgoing {
        Outgoing { octets: encode(pdu, self.sends), kind, epoch: self.epoch(self.transmitter.vt_s()) }
    }

    fn epoch(&self, sn: u64) -> u32 {
        self.resets << 12 | (sn >> 12) as u32 & 0xfff
    }

    fn next_status(&mut self, starts: Instant) -> Option<Status> {
        // Each part of a report acknowledges up to VR(R) as it was. If an MRW_ACK overtook one, the peer would find
        // the numbers erroneous, and reset.
        if let Some(part) = self.receiver.reporting.next_part(starts) {
            self.stats.statuses_sent += 1;
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
        self.stats.statuses_sent += 1;
        if self.receiver.reporting.is_due() {
            let others = if self.leaves_room(&others) { std::mem::take(&mut others) } else { Vec::new() };
            self.receiver.begin_report(others, self.sends.pdu_size, starts);
        }
        if !others.is_empty() {
            return Some(status_report::without_acknowledgement(others));
        }
        let part = self.receiver.reporting.next_part(starts);
        self.stats.statuses_sent -= u64::from(part.is_none());
        part
    }

    /// Whether a report fits behind these: ACK, WINDOW and one gap in any coding.
    fn leaves_room(&self, others: &[Sufi]) -> bool {
        const REPORT: usize = 1 + 4 + 4 + 7;
        others.iter().map(Sufi::nibbles).sum::<usize>() + REPORT <= self.sends.pdu_size * 2
    }

    /// A PDU came, undamaged.
    pub fn handle_pdu(&mut self, now: Instant, octets: &[u8]) {
        if self.unrecoverable {
            self.stats.ignored += 1;
            return;
        }
        let Ok(pdu) = decode(octets, self.receives) else {
            self.stats.decode_errors += 1;
            return;
        };
        match pdu {
            Pdu::Reset(reset) => {
                let hfni = self.hfni();
                if self.resetting.handle_reset(reset, hfni) == ResetReceipt::New {
                    self.stats.resets_by_peer += 1;
                    self.reset(now);
                }
            }
            Pdu::ResetAck(ack) => {
                if self.resetting.handle_reset_ack(ack) {
                    self.reset(now);
                } else {
                    self.stats.ignored += 1;
                }
            }
            Pdu::Amd(_) | Pdu::Status(_) if self.activity() == Activity::ResetPending => {
                self.stats.ignored += 1;
            }
            Pdu::Status(status) => self.handle_status(now, &status),
            Pdu::Amd(mut amd) => {
                let piggybacked = match std::mem::take(&mut amd.rest) {
                    Rest::Piggybacked(status) => Some(status),
                    rest => {
                        amd.rest = rest;
                        None
                    }
                };
                self.stats.polled += u64::from(amd.poll);
                match self.receiver.handle_amd(amd) {
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
            self.stats.mrws_obsolete += u64::from(self.receiver.handle_mrw(mrw));
        }
        if let Some(sn) = told.poll {
            self.stats.polled += 1;
            self.receiver.handle_poll(sn);
        }
    }

    /// Tells the peer to use a window of so many PDUs (WINDOW SUFI).
    pub fn advertise_window(&mut self, wsn: u16) {
        self.receiver.advertise_window(wsn);
    }

    /// The next SDU that is complete.
    pub fn poll_sdu(&mut self) -> Option<Vec<u8>> {
        let sdu = self.receiver.poll_sdu()?;
        self.stats.sdus_delivered += 1;
        Some(sdu)
    }

    /// The next SDU whose outcome is known.
    pub fn poll_outcome(&mut self) -> Option<(SduId, SduOutcome)> {
        self.transmitter.poll_outcome()
    }

    pub fn handle_deadline(&mut self, now: Instant) {
        if self.unrecoverable {
            return;
        }
        if self.resetting.handle_deadline(now) == Some(Expiry::Unrecoverable) {
            self.fail();
            return;
        }
        self.receiver.reporting.handle_deadline(now, self.receiver.vr_r());
        if let Err(cause) = self.transmitter.handle_deadline(now, self.activity(), &mut self.stats) {
            self.start_reset(cause);
        }
    }

    /// `None` with nothing to wait for. What there is to transmit is for `blocks_wanted` to tell.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.unrecoverable {
            return None;
        }
        let deadlines = [
            self.resetting.next_deadline(),
            self.receiver.reporting.next_deadline(),
            self.transmitter.next_deadline(self.activity()),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Deadlines that a change has moved into the past.
    fn catch_up(&mut self, now: Instant) {
        while self.next_deadline().is_some_and(|at| at <= now) {
            self.handle_deadline(now);
        }
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// What the peer's PDUs said that makes no sense together.
    pub fn faults(&self) -> Faults {
        self.receiver.faults()
    }

    // RESET.

    fn start_reset(&mut self, cause: ResetCause) {
        if self.activity() == Activity::ResetPending || self.unrecoverable {
            return;
        }
        match cause {
            ResetCause::MaxDat => self.stats.resets_max_dat += 1,
            ResetCause::MaxMrw => self.stats.resets_max_mrw += 1,
            ResetCause::ErroneousSn => self.stats.resets_erroneous_sn += 1,
        }
        self.transmitter.suspend();
        let hfni = self.hfni();
        if self.resetting.start(hfni) == Expiry::Unrecoverable {
            self.fail();
        }
    }

    /// The highest hyper frame number that was used: it grows with each wrap of the sequence number.
    fn hfni(&self) -> u32 {
        (self.hfn + (self.transmitter.vt_s().saturating_sub(1) >> 12) as u32) & 0xf_ffff
    }

    fn reset(&mut self, now: Instant) {
        self.hfn = (self.hfni() + 1) & 0xf_ffff;
        self.resets += 1;
        self.transmitter.reset(&mut self.stats);
        self.receiver.reset();
        self.catch_up(now);
    }

    /// Whether MaxRST RESETs went unanswered. The layers above would release or re-establish the bearer; until
    /// `reestablish` the entity is silent, and keeps the SDUs of which nothing was transmitted.
    pub fn is_unrecoverable(&self) -> bool {
        self.unrecoverable
    }

    fn fail(&mut self) {
        self.stats.unrecoverable_errors += 1;
        self.unrecoverable = true;
        self.transmitter.reset(&mut self.stats);
    }

    /// Re-establishment (§9.7.7), which both ends go through at once. What is still on its way between them must not
    /// arrive any more.
    pub fn reestablish(&mut self, now: Instant) {
        self.unrecoverable = false;
        self.resetting.reestablish();
        self.receiver.reporting.restart(now);
        self.transmitter.polling.restart(now);
        self.reset(now);
    }
}
