//! The sending side: the window and retransmission (§11.3.2, §11.5.3). When it gives up is in `giving_up`.

mod giving_up;

use std::collections::{BTreeSet, VecDeque};

use airwire::time::{Duration, Instant};

use super::discard::{Discarding, End, Target, wire};
use super::poll::Polling;
use super::reset::ResetCause;
use super::stats::Stats;
use super::{Activity, SduId, SduOutcome};
use crate::rlc::codec::{Format, encode_amd};
use crate::rlc::config::{Discard, SenderConfig};
use crate::rlc::pdu::{Amd, Rest, Status};
use crate::rlc::segmentation::Segmenter;
use crate::rlc::status_report::Interpretation;

pub(super) struct Transmitter {
    config: SenderConfig,
    format: Format,
    segmenter: Segmenter<u64>,
    /// VT(S), without its modulus, like all sequence numbers here.
    vt_s: u64,
    vt_a: u64,
    vt_ws: u16,
    /// VT(A) up to VT(S).
    pdus: VecDeque<Sent>,
    /// Of `pdus`: those that the peer is not known to have and that are worth having.
    unacknowledged: usize,
    /// Scheduled for retransmission, each once.
    scheduled: BTreeSet<u64>,
    /// Every SDU whose fate is open, in the order of submission.
    sdus: VecDeque<Sdu>,
    /// The place of the first of `sdus`.
    first_sdu: u64,
    /// So many of the first of `sdus` are not `Kept`.
    settled: usize,
    outcomes: VecDeque<(SduId, SduOutcome)>,
    pub(super) polling: Polling,
    pub(super) discarding: Discarding,
    /// SDUs of which nothing was transmitted yet, and their octets.
    unbegun: usize,
    unbegun_octets: usize,
    stalled: bool,
}

struct Sent {
    /// As it went out, without P and without a piggybacked STATUS.
    octets: Box<[u8]>,
    state: State,
    /// How often it was scheduled for transmission.
    vt_dat: u32,
    last_sent: Instant,
    /// The places of the first and last SDU that it carries octets of.
    carries: Option<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unacknowledged,
    Acknowledged,
    /// It carries nothing but SDUs that were given up.
    Discarded,
}

struct Sdu {
    id: SduId,
    octets: usize,
    submitted: Instant,
    /// The first PDU that carries octets of it.
    begun_in: Option<u64>,
    end: Option<End>,
    fate: Fate,
    /// It is a Poll_SDU-th one: the PDU with its last octet polls.
    polls: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Begun and given up; open until the peer has taken notice.
    GivenUp,
    /// Given up before it was begun, and its outcome told.
    Dropped,
}

/// What a NACK leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nack {
    /// A retransmission, if none is scheduled and the PDU is still worth one.
    Heeded,
    /// Nothing: it came so soon that it is about an earlier copy.
    TooSoon,
    /// The PDU has been transmitted as often as MaxDAT allows.
    Exhausts,
}

/// An AMD PDU to transmit.
pub(super) struct Transmission {
    pub(super) octets: Vec<u8>,
    pub(super) sn: u64,
    pub(super) number: u32,
    pub(super) polls: bool,
    pub(super) sdus: Vec<SduId>,
}

impl Transmitter {
    pub(super) fn new(config: SenderConfig, format: Format, now: Instant) -> Self {
        Self {
            format,
            segmenter: Segmenter::new(format),
            vt_s: 0,
            vt_a: 0,
            vt_ws: widest(&config),
            pdus: VecDeque::new(),
            unacknowledged: 0,
            scheduled: BTreeSet::new(),
            sdus: VecDeque::new(),
            first_sdu: 0,
            settled: 0,
            outcomes: VecDeque::new(),
            polling: Polling::new(config.poll, now),
            discarding: Discarding::new(&config, format),
            unbegun: 0,
            unbegun_octets: 0,
            stalled: false,
            config,
        }
    }

    pub(super) fn reconfigure(&mut self, now: Instant, config: &SenderConfig) {
        self.polling.reconfigure(now, config.poll);
        self.discarding.reconfigure(config, self.format);
        let window = self.config.window;
        self.config = SenderConfig { window, ..config.clone() };
        self.vt_ws = self.vt_ws.min(widest(&self.config));
    }

    pub(super) fn vt_s(&self) -> u64 {
        self.vt_s
    }

    pub(super) fn poll_outcome(&mut self) -> Option<(SduId, SduOutcome)> {
        self.outcomes.pop_front()
    }

    pub(super) fn submit(&mut self, now: Instant, id: SduId, octets: Vec<u8>) {
        let place = self.first_sdu + self.sdus.len() as u64;
        self.unbegun += 1;
        self.unbegun_octets += octets.len();
        self.sdus.push_back(Sdu {
            id,
            octets: octets.len(),
            submitted: now,
            begun_in: None,
            end: None,
            fate: Fate::Kept,
            polls: false,
        });
        self.segmenter.push(place, octets);
    }

    /// SDUs of which nothing was transmitted yet, and their octets.
    pub(super) const fn waiting(&self) -> (usize, usize) {
        (self.unbegun, self.unbegun_octets)
    }

    fn vt_ms(&self) -> u64 {
        self.vt_a + u64::from(self.vt_ws)
    }

    /// VT(DAT) at which a PDU is given up. With MaxDAT = 1 no PDU could ever be transmitted: it is taken as 2.
    fn max_dat(&self) -> Option<u32> {
        match self.config.discard {
            Discard::ResetAfterMaxDat { max_dat } | Discard::MrwAfterMaxDat { max_dat, .. } => {
                Some(u32::from(max_dat).max(2))
            }
            Discard::Timer { .. } => None,
        }
    }

    fn sent(&mut self, sn: u64) -> &mut Sent {
        &mut self.pdus[(sn - self.vt_a) as usize]
    }

    fn sdu(&mut self, place: u64) -> Option<&mut Sdu> {
        self.sdus.get_mut(place.checked_sub(self.first_sdu)? as usize)
    }

    // What there is to transmit.

    /// How many AMD PDUs could go out now, counted up to `most`.
    pub(super) fn queued(&self, most: usize) -> usize {
        let again = self.sendable();
        let data = again + self.new_pdus(most.saturating_sub(again));
        let carrier = self.polling.wants_to_go() && self.unacknowledged > 0 && !self.config.poll.poll_sufi;
        if data == 0 { usize::from(carrier) } else { data }
    }

    /// Retransmissions that the window allows. A peer that narrowed it may exclude some.
    fn sendable(&self) -> usize {
        let vt_ms = self.vt_ms();
        if self.vt_s <= vt_ms {
            return self.scheduled.len();
        }
        let last = self.vt_s - 1;
        self.scheduled.range(..vt_ms).count() + usize::from(last >= vt_ms && self.scheduled.contains(&last))
    }

    fn new_pdus(&self, most: usize) -> usize {
        let window = self.vt_ms().saturating_sub(self.vt_s) as usize;
        self.segmenter.ready(most.min(window))
    }

    /// VT(S) − 1 may always be transmitted (§9.4, VT(MS)): how else to poll in a full window.
    fn next_scheduled(&self) -> Option<u64> {
        let sn = *self.scheduled.first()?;
        if sn < self.vt_ms() {
            return Some(sn);
        }
        let last = self.vt_s - 1;
        self.scheduled.contains(&last).then_some(last)
    }

    /// A PDU whose only purpose is to carry a poll: VT(S) − 1, or any that is not acknowledged; with windows of 2048
    /// and more VT(S) − 1 alone (§11.3.2). None if there is nothing to ask about.
    fn carrier(&self) -> Option<u64> {
        if self.unacknowledged == 0 {
            return None;
        }
        let last = self.vt_s.checked_sub(1)?;
        let index = |sn: u64| sn.checked_sub(self.vt_a).and_then(|index| self.pdus.get(index as usize));
        match index(last)?.state {
            State::Unacknowledged => return Some(last),
            State::Acknowledged if self.config.window >= 2048 => return Some(last),
            _ => {}
        }
        let allowed = self.vt_ms().min(self.vt_s);
        (self.vt_a..allowed).find(|sn| index(*sn).is_some_and(|pdu| pdu.state == State::Unacknowledged))
    }

    /// A poll that nothing can carry goes as a POLL SUFI, if that is configured.
    pub(super) fn wants_poll_sufi(&self) -> bool {
        self.config.poll.poll_sufi
            && self.polling.wants_to_go()
            && self.unacknowledged > 0
            && self.sendable() + self.new_pdus(1) == 0
    }

    /// POLL_SN.
    pub(super) fn take_poll_sufi(&mut self, starts: Instant) -> Option<u64> {
        (self.wants_poll_sufi() && self.polling.goes(starts, self.vt_s)).then(|| self.vt_s - 1)
    }

    /// The next AMD PDU: retransmissions first, then new ones, then one that carries a poll. `piggyback` is taken if
    /// there is room for it.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        starts: Instant,
        piggyback: &mut Option<Status>,
        stats: &mut Stats,
    ) -> Result<Option<Transmission>, ResetCause> {
        if let Some(sn) = self.next_scheduled() {
            self.scheduled.remove(&sn);
            if self.config.poll.last_retransmission && self.scheduled.is_empty() {
                self.polling.trigger();
            }
            return Ok(Some(self.retransmit(now, starts, sn, stats)));
        }
        if self.vt_s < self.vt_ms() {
            self.stalled = false;
            if let Some(new) = self.transmit_new(now, starts, piggyback, stats) {
                return Ok(Some(new));
            }
        } else if self.segmenter.has_next() && !self.stalled {
            self.stalled = true;
            stats.window_stalls += 1;
        }
        while self.polling.wants_to_go() {
            let Some(sn) = self.carrier() else {
                self.polling.forget();
                break;
            };
            // One that has arrived cannot fail to arrive: MaxDAT is not for it.
            if !self.exhausts(sn) || self.sent(sn).state == State::Acknowledged {
                stats.poll_retransmissions += 1;
                return Ok(Some(self.retransmit(now, starts, sn, stats)));
            }
            // A discard takes it away; then another has to carry the poll.
            self.exhausted(sn, stats)?;
            if self.sent(sn).state == State::Unacknowledged {
                break;
            }
        }
        Ok(None)
    }

    fn retransmit(&mut self, now: Instant, starts: Instant, sn: u64, stats: &mut Stats) -> Transmission {
        stats.pdus_resent += 1;
        if self.polling.pdu_counts() || self.polling.window_triggers(self.vt_a, self.vt_s, self.vt_ws) {
            self.polling.trigger();
        }
        let polls = self.polling.goes(starts, self.vt_s);
        let pdu = self.sent(sn);
        pdu.last_sent = now;
        let (octets, number, carries) = (pdu.octets.to_vec(), pdu.vt_dat, pdu.carries);
        self.transmission(octets, sn, number, polls, carries, stats)
    }

    fn transmit_new(
        &mut self,
        now: Instant,
        starts: Instant,
        piggyback: &mut Option<Status>,
        stats: &mut Stats,
    ) -> Option<Transmission> {
        let sn = self.vt_s;
        let cut = self.segmenter.cut(wire(sn))?;
        let mut trigger = self.polling.pdu_counts();
        trigger |= self.polling.window_triggers(self.vt_a, self.vt_s, self.vt_ws);
        trigger |= self.config.poll.last_pdu && !self.segmenter.has_next();
        for carried in &cut.carried {
            let polls = carried.first && self.polling.sdu_counts();
            let sdu = self.sdu(carried.id).expect("the fate of an SDU that is being segmented is open");
            if carried.first {
                sdu.begun_in = Some(sn);
                sdu.polls = polls;
            }
            trigger |= carried.last && sdu.polls;
            if carried.first {
                let octets = sdu.octets;
                self.unbegun -= 1;
                self.unbegun_octets -= octets;
            }
        }
        for (index, place) in cut.ended.iter().enumerate() {
            let resume = cut.resume_after(index);
            let target = Target { sn: sn + u64::from(resume.sn.since(wire(sn))), nlength: resume.nlength };
            let sdu = self.sdu(*place).expect("the fate of an SDU that has not ended is open");
            sdu.end = Some(End { said_in: sn, target, sdu: *place });
        }
        let carries = cut.carried.first().zip(cut.carried.last()).map(|(first, last)| (first.id, last.id));
        let plain = encode_amd(&cut.amd, self.format);
        let octets = match piggyback.take_if(|status| octets_of(status) <= cut.spare) {
            Some(status) => {
                stats.piggybacked += 1;
                encode_amd(&Amd { rest: Rest::Piggybacked(status), ..cut.amd }, self.format)
            }
            None => plain.clone(),
        };
        self.pdus.push_back(Sent {
            octets: plain.into_boxed_slice(),
            state: State::Unacknowledged,
            vt_dat: 1,
            last_sent: now,
            carries,
        });
        self.unacknowledged += 1;
        self.vt_s += 1;
        if trigger {
            self.polling.trigger();
        }
        let polls = self.polling.goes(starts, self.vt_s);
        stats.pdus_new += 1;
        Some(self.transmission(octets, sn, 1, polls, carries, stats))
    }

    fn transmission(
        &mut self,
        mut octets: Vec<u8>,
        sn: u64,
        number: u32,
        polls: bool,
        carries: Option<(u64, u64)>,
        stats: &mut Stats,
    ) -> Transmission {
        if polls {
            octets[1] |= P;
            stats.polls += 1;
        }
        // What was freed meanwhile (by an MRW) has no name any more.
        let sdus = carries.map_or_else(Vec::new, |(first, last)| {
            (first..=last).filter_map(|place| self.sdu(place).map(|sdu| sdu.id)).collect()
        });
        Transmission { octets, sn, number, polls, sdus }
    }

    // What the peer says.

    /// Acknowledgement and retransmission. A STATUS PDU with an erroneous sequence number is discarded as a whole,
    /// and makes a RESET (§10).
    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        told: &Interpretation,
        stats: &mut Stats,
    ) -> Result<(), ResetCause> {
        let base = wire(self.vt_a);
        let outstanding = self.vt_s - self.vt_a;
        let in_flight = |sn: &crate::rlc::pdu::Sn| u64::from(sn.since(base)) < outstanding;
        if !told.missing.iter().all(in_flight)
            || told.lsn.is_some_and(|lsn| u64::from(lsn.since(base)) > outstanding)
        {
            stats.erroneous_sns += 1;
            return Err(ResetCause::ErroneousSn);
        }
        if let Some(wsn) = told.window.filter(|wsn| *wsn > 0) {
            self.vt_ws = wsn.min(widest(&self.config));
        }

        let vt_a = self.vt_a;
        let mut missing: Vec<u64> = told.missing.iter().map(|sn| vt_a + u64::from(sn.since(base))).collect();
        missing.sort_unstable();
        let mut exhausted = None;
        for sn in &missing {
            stats.nacks += 1;
            match self.negatively_acknowledged(now, *sn) {
                // The poll was not answered: the report does not know the copy.
                Nack::TooSoon => {
                    stats.nacks_ignored += 1;
                    continue;
                }
                Nack::Heeded => {}
                Nack::Exhausts => exhausted = Some(*sn),
            }
            self.polling.negatively_acknowledged(*sn);
        }
        if let Some(lsn) = told.lsn {
            let lsn = vt_a + u64::from(lsn.since(base));
            self.acknowledge(lsn, &missing);
        }
        if let Some(ack) = told.mrw_ack {
            let sn_ack = vt_a + u64::from(ack.sn_ack.since(base));
            // Else it is obsolete (or nonsense): ignored (§11.6.6).
            if (self.vt_a..=self.vt_s).contains(&sn_ack)
                && let Some(through) = self.discarding.acknowledged(sn_ack, ack.n)
            {
                self.advance(sn_ack);
                self.discarded(through);
            }
        }
        self.discarding.start_next(self.vt_a, self.config.window);
        match exhausted {
            // Acknowledged by the same report it cannot be, but an MRW_ACK may have come with it.
            Some(sn) if sn >= self.vt_a => self.exhausted(sn, stats),
            _ => Ok(()),
        }
    }

    fn exhausts(&mut self, sn: u64) -> bool {
        let max_dat = self.max_dat();
        let pdu = self.sent(sn);
        pdu.vt_dat = pdu.vt_dat.saturating_add(1);
        max_dat.is_some_and(|max_dat| pdu.vt_dat >= max_dat)
    }

    fn negatively_acknowledged(&mut self, now: Instant, sn: u64) -> Nack {
        let ignored = self.config.ignore_nack_within;
        let pdu = self.sent(sn);
        // Before the first retransmission there is no earlier copy that it could be about.
        let too_soon = pdu.vt_dat > 1 && ignored.is_some_and(|within: Duration| now - pdu.last_sent < within);
        if pdu.state != State::Unacknowledged || self.scheduled.contains(&sn) {
            return Nack::Heeded;
        }
        if too_soon {
            return Nack::TooSoon;
        }
        if self.exhausts(sn) {
            return Nack::Exhausts;
        }
        self.scheduled.insert(sn);
        Nack::Heeded
    }

    /// LSN, with the missing PDUs of the same STATUS PDU.
    fn acknowledge(&mut self, lsn: u64, missing: &[u64]) {
        let mut missing_below = missing.iter().copied().take_while(|sn| *sn < lsn).peekable();
        let first_missing = missing_below.peek().copied();
        for sn in self.vt_a..lsn {
            if missing_below.next_if_eq(&sn).is_some() {
                continue;
            }
            let pdu = self.sent(sn);
            if pdu.state == State::Unacknowledged {
                pdu.state = State::Acknowledged;
                self.unacknowledged -= 1;
                self.scheduled.remove(&sn);
            }
        }
        self.advance(first_missing.unwrap_or(lsn));
        // Not LSN: a report that lists what is missing goes beyond a PDU that an MRW is about before the MRW has
        // arrived.
        if let Some(through) = self.discarding.acknowledged_up_to(self.vt_a) {
            self.discarded(through);
        }
    }

    /// Moves VT(A), and frees what lies behind it.
    fn advance(&mut self, vt_a: u64) {
        while self.vt_a < vt_a {
            let pdu = self.pdus.pop_front().expect("VT(A) does not pass VT(S)");
            if pdu.state == State::Unacknowledged {
                self.unacknowledged -= 1;
                self.scheduled.remove(&self.vt_a);
            }
            self.vt_a += 1;
        }
        self.polling.acknowledged(self.vt_a);
        while self.sdus.front().is_some_and(|sdu| {
            sdu.fate == Fate::Dropped || sdu.end.is_some_and(|end| end.said_in < self.vt_a)
        }) {
            self.free(SduOutcome::Acknowledged);
        }
    }

    /// An MRW procedure ended.
    fn discarded(&mut self, through: u64) {
        while self.first_sdu <= through && self.settled > 0 {
            self.free(SduOutcome::Discarded);
        }
    }

    /// The first SDU's fate is known: `outcome`, unless it was given up.
    fn free(&mut self, outcome: SduOutcome) {
        let Some(sdu) = self.sdus.pop_front() else { return };
        self.first_sdu += 1;
        if sdu.fate != Fate::Kept {
            self.settled -= 1;
        }
        match sdu.fate {
            Fate::Kept => self.outcomes.push_back((sdu.id, outcome)),
            Fate::GivenUp => self.outcomes.push_back((sdu.id, SduOutcome::Discarded)),
            Fate::Dropped => {}
        }
    }
}

/// The largest VT(WS). A discard can make VT(S) one more than VT(MS), and that must not be VT(A) again.
fn widest(config: &SenderConfig) -> u16 {
    match config.discard {
        Discard::ResetAfterMaxDat { .. } => config.window,
        Discard::MrwAfterMaxDat { .. } | Discard::Timer { .. } => config.window.min(4094),
    }
}

/// The poll bit in the second octet of an AMD PDU.
const P: u8 = 0x04;

/// Of a STATUS PDU without padding.
fn octets_of(status: &Status) -> usize {
    (1 + status.0.iter().map(crate::rlc::pdu::Sufi::nibbles).sum::<usize>()).div_ceil(2)
}
