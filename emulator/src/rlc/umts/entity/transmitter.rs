//! The Sender: transmission of AMD PDUs (§11.3.2). `acknowledgement` handles received STATUS PDUs, and
//! `discard` decides when SDUs are discarded.

mod acknowledgement;
mod discard;

use std::collections::VecDeque;
use std::sync::Arc;

use airwire::time::Instant;

use super::discard_signalling::{DiscardSignalling, End, Target, wire};
use super::poll::Polling;
use super::reset::ResetCause;
use super::stats::Stats;
use super::{SduId, SduOutcome};
use crate::rlc::umts::codec::{Format, encoded_size, write_amd, write_segment};
use crate::rlc::umts::config::{Discard, SenderConfig};
use crate::rlc::umts::pdu::{Amd, Rest, Status};
use crate::rlc::umts::segmentation::{Carried, SegmentedPdu, Segmenter};

pub(super) struct Transmitter {
    config: SenderConfig,
    format: Format,
    segmenter: Segmenter<u64>,
    /// VT(S) (§9.4 a), unwrapped like all sequence numbers in this module.
    vt_s: u64,
    /// VT(A) (§9.4 b).
    vt_a: u64,
    /// VT(WS) (§9.4 j).
    vt_ws: u16,
    /// PDUs with VT(A) ≤ SN < VT(S).
    pdus: VecDeque<SentPdu>,
    /// Number of `pdus` that are neither acknowledged nor discarded.
    unacknowledged: usize,
    /// Number of `pdus` that are scheduled for retransmission.
    scheduled: usize,
    /// None of the PDUs before this one is scheduled.
    scheduled_from: u64,
    /// SDUs in the order of submission, from the first one without an outcome on.
    sdus: VecDeque<Sdu>,
    /// Index of the first of `sdus` in the order of submission.
    first_sdu: u64,
    /// Number of SDUs at the start of `sdus` that are not `Active`.
    discarded_sdus: usize,
    outcomes: VecDeque<(SduId, SduOutcome)>,
    pub(super) polling: Polling,
    pub(super) signalling: DiscardSignalling,
    /// Number of SDUs whose transmission has not begun, and their bytes.
    unsent_sdus: usize,
    unsent_octets: usize,
    window_state: WindowState,
    /// LOCAL_SUSPEND (§9.3.3.4): the first SN that must not be sent.
    suspended: Option<u64>,
    /// Memory of PDUs that are no longer needed, for new ones. A STATUS PDU can acknowledge a whole window.
    spare: Vec<Arc<[u8]>>,
}

/// Whether VT(S) has reached VT(MS) while new data is waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WindowState {
    Open,
    Full,
    /// The window was still full when the lower layer had a block for the data.
    Stalled,
}

/// An AMD PDU that has been sent.
struct SentPdu {
    /// The PDU that was sent, but without P and without a piggybacked STATUS PDU. §11.3.2.1: a retransmission
    /// has the same "Sequence Number". Choice: it has padding in place of a STATUS PDU.
    octets: Arc<[u8]>,
    state: PduState,
    /// Whether the PDU is scheduled for retransmission.
    is_scheduled: bool,
    /// VT(DAT) (§9.4 c): number of times that the PDU was scheduled for transmission.
    vt_dat: u32,
    last_sent: Instant,
    /// Indices of the first and the last SDU that have data in the PDU.
    carries: Option<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PduState {
    Unacknowledged,
    Acknowledged,
    /// §11.6.2: all SDUs in the PDU have been discarded.
    Discarded,
}

struct Sdu {
    id: SduId,
    octets: usize,
    submitted: Instant,
    /// The AMD PDU with the first segment. `None` if nothing of the SDU was sent.
    first_pdu: Option<u64>,
    /// `None` if the last segment was not sent.
    end: Option<End>,
    state: SduState,
    /// Whether VT(SDU) reached Poll_SDU with this SDU. If so, the PDU with its last segment polls.
    polls: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SduState {
    Active,
    /// Discarded after a partial transmission. The SDU has no outcome until the peer has acknowledged the
    /// discard.
    Discarded,
    /// Discarded before its transmission began. Its outcome has been reported.
    Dropped,
}

/// A new AMD PDU, before its submission.
struct NewPdu {
    /// The PDU without a piggybacked STATUS PDU.
    plain: Arc<[u8]>,
    octets: Arc<[u8]>,
    /// Indices of the first and the last SDU that have data in the PDU.
    carries: Option<(u64, u64)>,
    /// Whether the PDU triggers a poll because of Poll_SDU.
    trigger: bool,
}

/// An AMD PDU to transmit.
pub(super) struct Transmission {
    pub(super) octets: Arc<[u8]>,
    pub(super) sn: u64,
    /// VT(DAT).
    pub(super) number: u32,
    pub(super) polls: bool,
    pub(super) carries: Option<(SduId, SduId)>,
}

impl Transmitter {
    pub(super) fn new(config: SenderConfig, format: Format, now: Instant) -> Self {
        Self {
            format,
            segmenter: Segmenter::new(format),
            vt_s: 0,
            vt_a: 0,
            vt_ws: max_vt_ws(&config),
            pdus: VecDeque::new(),
            unacknowledged: 0,
            scheduled: 0,
            scheduled_from: 0,
            sdus: VecDeque::new(),
            first_sdu: 0,
            discarded_sdus: 0,
            outcomes: VecDeque::new(),
            polling: Polling::new(config.poll, now),
            signalling: DiscardSignalling::new(&config, format),
            unsent_sdus: 0,
            unsent_octets: 0,
            window_state: WindowState::Open,
            suspended: config.suspend.map(u64::from),
            spare: Vec::new(),
            config,
        }
    }

    pub(super) fn reconfigure(&mut self, now: Instant, config: &SenderConfig) {
        self.polling.reconfigure(now, config.poll);
        self.signalling.reconfigure(config, self.format);
        if config.suspend != self.config.suspend {
            match config.suspend {
                Some(n) => self.suspend_after(n),
                None => self.resume(),
            }
        }
        let window = self.config.window;
        self.config = SenderConfig { window, ..config.clone() };
        self.vt_ws = self.vt_ws.min(max_vt_ws(&self.config));
    }

    pub(super) fn vt_s(&self) -> u64 {
        self.vt_s
    }

    pub(super) fn vt_ws(&self) -> u16 {
        self.vt_ws
    }

    pub(super) fn poll_outcome(&mut self) -> Option<(SduId, SduOutcome)> {
        self.outcomes.pop_front()
    }

    pub(super) fn submit(&mut self, now: Instant, id: SduId, octets: Vec<u8>, stats: &mut Stats) {
        let index = self.first_sdu + self.sdus.len() as u64;
        self.unsent_sdus += 1;
        self.unsent_octets += octets.len();
        self.sdus.push_back(Sdu {
            id,
            octets: octets.len(),
            submitted: now,
            first_pdu: None,
            end: None,
            state: SduState::Active,
            polls: false,
        });
        self.segmenter.push(index, octets);
        self.update_window_state(stats);
    }

    /// Updates the state of the window, and counts when new data begins to wait.
    fn update_window_state(&mut self, stats: &mut Stats) {
        if self.vt_s < self.vt_ms() || !self.segmenter.has_next() {
            self.window_state = WindowState::Open;
        } else if self.window_state == WindowState::Open {
            self.window_state = WindowState::Full;
            stats.window_full += 1;
        }
    }

    /// Number of SDUs whose transmission has not begun, and their bytes.
    pub(super) const fn unsent(&self) -> (usize, usize) {
        (self.unsent_sdus, self.unsent_octets)
    }

    /// VT(MS) = VT(A) + VT(WS) (§9.4 d).
    fn vt_ms(&self) -> u64 {
        self.vt_a + u64::from(self.vt_ws)
    }

    /// MaxDAT (§9.6 a). `None`: VT(DAT) has no limit. Choice: MaxDAT = 1 would not permit any transmission,
    /// and is treated as 2.
    fn max_dat(&self) -> Option<u32> {
        match self.config.discard {
            Discard::ResetAfterMaxDat { max_dat } | Discard::MrwAfterMaxDat { max_dat, .. } => {
                Some(u32::from(max_dat).max(2))
            }
            Discard::Timer { .. } => None,
        }
    }

    fn sent(&mut self, sn: u64) -> &mut SentPdu {
        &mut self.pdus[(sn - self.vt_a) as usize]
    }

    /// Identifiers of the first and the last SDU of a PDU that carries the SDUs with these indices. SDUs whose
    /// outcome is known (after an MRW) are left out.
    fn ids(&self, (first, last): (u64, u64)) -> Option<(SduId, SduId)> {
        let id = |index: u64| Some(self.sdus.get(index.checked_sub(self.first_sdu)? as usize)?.id);
        let last_id = id(last)?;
        let first_id = if first == last { last_id } else { id(first.max(self.first_sdu))? };
        Some((first_id, last_id))
    }

    fn sdu(&mut self, index: u64) -> Option<&mut Sdu> {
        self.sdus.get_mut(index.checked_sub(self.first_sdu)? as usize)
    }

    // Selection of the PDUs to transmit.

    /// Number of AMD PDUs that are scheduled and allowed for transmission (§11.3.2.2), but at most `most`.
    pub(super) fn queued(&self, most: usize) -> usize {
        let retransmissions = self.allowed_retransmissions();
        let data = retransmissions + self.new_pdus(most.saturating_sub(retransmissions));
        let polls = self.polling.is_due() && self.unacknowledged > 0 && !self.config.poll.poll_sufi;
        if data == 0 { usize::from(polls) } else { data }
    }

    /// Number of scheduled retransmissions that are allowed. A WINDOW that lowers VT(WS) can exclude some.
    ///
    /// §11.3.2.2: the SN must be less than VT(MS), or equal to VT(S) − 1.
    fn allowed_retransmissions(&self) -> usize {
        let vt_ms = self.vt_ms();
        if self.scheduled == 0 || self.vt_s <= vt_ms {
            return self.scheduled;
        }
        let last = self.vt_s - 1;
        let is_allowed = |sn: u64| sn < vt_ms || sn == last;
        (self.vt_a..).zip(&self.pdus).filter(|(sn, pdu)| pdu.is_scheduled && is_allowed(*sn)).count()
    }

    /// Schedules a PDU for retransmission.
    fn schedule(&mut self, sn: u64) {
        self.sent(sn).is_scheduled = true;
        self.scheduled += 1;
        self.scheduled_from = self.scheduled_from.min(sn);
    }

    /// Removes a PDU from the scheduled PDUs, if it is scheduled.
    fn unschedule(&mut self, sn: u64) {
        if std::mem::take(&mut self.sent(sn).is_scheduled) {
            self.scheduled -= 1;
        }
    }

    /// Stops the transmission of AMD PDUs with SN ≥ VT(S) + N (§9.7.5).
    pub(super) fn suspend_after(&mut self, n: u16) {
        self.suspended = Some(self.vt_s + u64::from(n));
    }

    /// Resumes the transmission of AMD PDUs (§9.7.5).
    pub(super) fn resume(&mut self) {
        self.suspended = None;
    }

    /// Number of new AMD PDUs that may still be sent. `None` if transmission is not suspended.
    pub(super) fn suspended(&self) -> Option<u64> {
        self.suspended.map(|from| from.saturating_sub(self.vt_s))
    }

    fn suspended_from(&self) -> u64 {
        self.suspended.unwrap_or(u64::MAX)
    }

    /// Number of new AMD PDUs that are allowed, but at most `most`. §11.3.2.2: the SN must be less than VT(MS).
    /// §9.7.5: a suspended entity does not transmit AMD PDUs with SN ≥ VT(S) + N.
    fn new_pdus(&self, most: usize) -> usize {
        let allowed = self.vt_ms().min(self.suspended_from()).saturating_sub(self.vt_s);
        self.segmenter.ready(most.min(allowed as usize))
    }

    /// The next retransmission that is allowed. With SN = VT(S) − 1, a poll can be sent in a full window
    /// (§11.3.2.2).
    fn next_scheduled(&mut self) -> Option<u64> {
        if self.scheduled == 0 {
            return None;
        }
        while !self.sent(self.scheduled_from).is_scheduled {
            self.scheduled_from += 1;
        }
        if self.scheduled_from < self.vt_ms() {
            return Some(self.scheduled_from);
        }
        let last = self.vt_s - 1;
        self.sent(last).is_scheduled.then_some(last)
    }

    /// The AMD PDU that is retransmitted to carry a poll when no PDU is scheduled (§11.3.2):
    ///
    /// - at least one transmitted PDU must be neither discarded nor acknowledged. Otherwise the result is
    ///   `None`;
    /// - if Configured_Tx_Window_Size ≥ 2048: VT(S) − 1;
    /// - if it is less: VT(S) − 1, or another PDU that is neither discarded nor acknowledged.
    fn poll_carrier(&self) -> Option<u64> {
        if self.unacknowledged == 0 {
            return None;
        }
        let last = self.vt_s.checked_sub(1)?;
        let pdu = |sn: u64| sn.checked_sub(self.vt_a).and_then(|index| self.pdus.get(index as usize));
        match pdu(last)?.state {
            PduState::Unacknowledged => return Some(last),
            PduState::Acknowledged if self.config.window >= 2048 => return Some(last),
            _ => {}
        }
        let allowed = self.vt_ms().min(self.vt_s);
        (self.vt_a..allowed).find(|sn| pdu(*sn).is_some_and(|pdu| pdu.state == PduState::Unacknowledged))
    }

    /// Whether a POLL super-field is to be sent instead of a retransmission (§11.3.2): this is configured, and no
    /// AMD PDU is scheduled.
    pub(super) fn has_poll_sufi(&self) -> bool {
        self.config.poll.poll_sufi
            && self.polling.is_due()
            && self.unacknowledged > 0
            && self.allowed_retransmissions() + self.new_pdus(1) == 0
    }

    /// Returns the Poll_SN, VT(S) − 1, if a POLL super-field is to be sent.
    ///
    /// Deviation: §11.3.5 requires VT(DAT) of that AMD PDU to be incremented.
    pub(super) fn take_poll_sufi(&mut self, starts: Instant) -> Option<u64> {
        (self.has_poll_sufi() && self.polling.take(starts, self.vt_s)).then(|| self.vt_s - 1)
    }

    /// Returns the next AMD PDU to submit (§11.3.2.2). Retransmissions have priority over new PDUs. A
    /// retransmission that only carries a poll comes last. A new PDU takes `piggyback` if its padding has
    /// enough room (§11.5.2.1).
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        starts: Instant,
        piggyback: &mut Option<Status>,
        stats: &mut Stats,
    ) -> Result<Option<Transmission>, ResetCause> {
        if let Some(sn) = self.next_scheduled() {
            self.unschedule(sn);
            // §9.7.1, trigger 2, "Last PDU in Retransmission buffer": the last scheduled PDU. Deviation: the
            // last PDU that the window allows does not trigger a poll.
            if self.config.poll.last_retransmission && self.scheduled == 0 {
                self.polling.trigger();
            }
            return Ok(Some(self.retransmit(now, starts, sn, stats)));
        }
        if self.vt_s < self.vt_ms().min(self.suspended_from()) {
            if let Some(new) = self.transmit_new(now, starts, piggyback, stats) {
                self.update_window_state(stats);
                return Ok(Some(new));
            }
        } else if self.vt_s >= self.vt_ms()
            && self.segmenter.has_next()
            && self.window_state != WindowState::Stalled
        {
            self.window_state = WindowState::Stalled;
            stats.window_stalls += 1;
        }
        while self.polling.is_due() {
            let Some(sn) = self.poll_carrier() else {
                self.polling.cancel();
                break;
            };
            // Choice: MaxDAT does not apply to a PDU that the peer has acknowledged.
            if !self.reaches_max_dat(sn) || self.sent(sn).state == PduState::Acknowledged {
                stats.poll_retransmissions += 1;
                return Ok(Some(self.retransmit(now, starts, sn, stats)));
            }
            // If the PDU is discarded, another one must carry the poll.
            self.handle_max_dat(sn, stats)?;
            if self.sent(sn).state == PduState::Unacknowledged {
                break;
            }
        }
        Ok(None)
    }

    /// Submits a PDU again. §11.3.2.1: it has the same "Sequence Number" and a new "Polling bit".
    fn retransmit(&mut self, now: Instant, starts: Instant, sn: u64, stats: &mut Stats) -> Transmission {
        stats.pdus_resent += 1;
        if self.polling.count_pdu() || self.polling.is_window_trigger(self.vt_a, self.vt_s, self.vt_ws) {
            self.polling.trigger();
        }
        let polls = self.polling.take(starts, self.vt_s);
        let pdu = self.sent(sn);
        pdu.last_sent = now;
        let (octets, number, carries) = (pdu.octets.clone(), pdu.vt_dat, pdu.carries);
        self.transmission(octets, sn, number, polls, carries, stats)
    }

    /// Submits a PDU for the first time. `None` if there is nothing to send.
    fn transmit_new(
        &mut self,
        now: Instant,
        starts: Instant,
        piggyback: &mut Option<Status>,
        stats: &mut Stats,
    ) -> Option<Transmission> {
        let sn = self.vt_s;
        let NewPdu { plain, octets, carries, mut trigger } = match self.fill_with_segment(sn) {
            Some(pdu) => pdu,
            None => self.fill(sn, piggyback, stats)?,
        };
        trigger |= self.polling.count_pdu();
        trigger |= self.polling.is_window_trigger(self.vt_a, self.vt_s, self.vt_ws);
        // §9.7.1, trigger 1, "Last PDU in buffer": no data remains to be segmented, or the PDU is the last
        // one before a suspension. Deviation: the last PDU that the window allows does not poll if more data
        // remains.
        let last = !self.segmenter.has_next() || self.suspended == Some(sn + 1);
        trigger |= self.config.poll.last_pdu && last;
        self.pdus.push_back(SentPdu {
            octets: plain,
            state: PduState::Unacknowledged,
            is_scheduled: false,
            vt_dat: 1,
            last_sent: now,
            carries,
        });
        self.unacknowledged += 1;
        self.vt_s += 1;
        if trigger {
            self.polling.trigger();
        }
        let polls = self.polling.take(starts, self.vt_s);
        stats.pdus_new += 1;
        Some(self.transmission(octets, sn, 1, polls, carries, stats))
    }

    /// Fills a new PDU with a segment, if an SDU fills it and continues in another PDU.
    fn fill_with_segment(&mut self, sn: u64) -> Option<NewPdu> {
        let (carried, data) = self.segmenter.next_segment()?;
        let plain = written(&mut self.spare, self.format.pdu_size, |octets| {
            write_segment(wire(sn), data, octets);
        });
        let trigger = self.record_carried(sn, carried);
        Some(NewPdu { octets: plain.clone(), plain, carries: Some((carried.id, carried.id)), trigger })
    }

    /// Fills a new PDU with all data that fits. `None` if there is nothing to send.
    fn fill(&mut self, sn: u64, piggyback: &mut Option<Status>, stats: &mut Stats) -> Option<NewPdu> {
        let mut pdu = self.segmenter.next_pdu(wire(sn))?;
        let mut trigger = false;
        for carried in &pdu.carried {
            trigger |= self.record_carried(sn, *carried);
        }
        self.record_ends(sn, &pdu);
        let carries = pdu.carried.first().zip(pdu.carried.last()).map(|(first, last)| (first.id, last.id));
        let plain = self.write(&pdu.amd);
        let octets = match piggyback.take_if(|status| status.octets() <= pdu.piggyback_room) {
            Some(status) => {
                stats.piggybacked += 1;
                pdu.amd.rest = Rest::Piggybacked(status);
                self.write(&pdu.amd)
            }
            None => plain.clone(),
        };
        self.segmenter.reuse(pdu);
        Some(NewPdu { plain, octets, carries, trigger })
    }

    /// Records that a new PDU carries an SDU. Returns `true` if the PDU polls because of Poll_SDU.
    fn record_carried(&mut self, sn: u64, Carried { id, first, last }: Carried<u64>) -> bool {
        if !first && !last {
            return false;
        }
        let polls = first && self.polling.count_sdu();
        let sdu = self.sdu(id).expect("an SDU that is being segmented has no outcome");
        if first {
            sdu.first_pdu = Some(sn);
            sdu.polls = polls;
        }
        // §9.7.1, trigger 5: the AMD PDU with the last segment of the SDU.
        let trigger = last && sdu.polls;
        if first {
            let octets = sdu.octets;
            self.unsent_sdus -= 1;
            self.unsent_octets -= octets;
        }
        trigger
    }

    /// Records which SDUs end in a new PDU.
    fn record_ends(&mut self, sn: u64, pdu: &SegmentedPdu<u64>) {
        for (index, id) in pdu.ended.iter().enumerate() {
            let resume = pdu.resume_after(index);
            let target = Target { sn: sn + u64::from(resume.sn.since(wire(sn))), nlength: resume.nlength };
            let sdu = self.sdu(*id).expect("an SDU that has not ended has no outcome");
            sdu.end = Some(End { indicated_in: sn, target, sdu: *id });
        }
    }

    fn write(&mut self, amd: &Amd<'_>) -> Arc<[u8]> {
        let format = self.format;
        written(&mut self.spare, encoded_size(amd, format), |octets| write_amd(amd, format, octets))
    }

    fn transmission(
        &mut self,
        mut octets: Arc<[u8]>,
        sn: u64,
        number: u32,
        polls: bool,
        carries: Option<(u64, u64)>,
        stats: &mut Stats,
    ) -> Transmission {
        if polls {
            octets = written(&mut self.spare, octets.len(), |copy| {
                copy.copy_from_slice(&octets);
                copy[1] |= P;
            });
            stats.polls += 1;
        }
        Transmission { octets, sn, number, polls, carries: carries.and_then(|indices| self.ids(indices)) }
    }
}

/// Returns a PDU of `size` bytes, which `write` writes. It reuses the memory of a PDU of `spare` that has this
/// size and is no longer in use.
fn written(spare: &mut Vec<Arc<[u8]>>, size: usize, write: impl FnOnce(&mut [u8])) -> Arc<[u8]> {
    if let Some(mut reused) = spare.pop()
        && let Some(octets) = Arc::get_mut(&mut reused)
        && octets.len() == size
    {
        write(octets);
        return reused;
    }
    let mut octets = vec![0; size];
    write(&mut octets);
    octets.into()
}

/// Maximum of VT(WS): Configured_Tx_Window_Size. Choice: at most 4094 with a discard, which can make VT(S)
/// one greater than VT(MS). Modulo 4096, VT(S) must not become equal to VT(A).
fn max_vt_ws(config: &SenderConfig) -> u16 {
    match config.discard {
        Discard::ResetAfterMaxDat { .. } => config.window,
        Discard::MrwAfterMaxDat { .. } | Discard::Timer { .. } => config.window.min(4094),
    }
}

/// The Polling bit in the second byte of an AMD PDU.
const P: u8 = 0x04;
