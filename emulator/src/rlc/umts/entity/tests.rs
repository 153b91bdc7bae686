//! Tests with two entities that are connected to each other. They are named after clauses of TS 25.322 and
//! headings of TS 34.123-1 §7.2.3.

mod ciphering;
mod discard;
mod flexible;
mod hostile;
mod poll;
mod reporting;
mod reset;
mod soak;
mod suspend;
mod wide_window;
mod window;

use std::collections::VecDeque;

use super::*;
use crate::rlc::umts::codec::{IndicatorSize, Sizing};
use crate::rlc::umts::config::{Discard, PollConfig, WindowAt};
use crate::rlc::umts::pdu::{Amd, ListItem, Mrw, MrwAck, Reset};

/// Indices of the two ends. A sends most of the data.
const A: usize = 0;
const B: usize = 1;

const FORMAT: Format = Format::fixed(42);
const FLEXIBLE: Format = Format { sizing: Sizing::Flexible(IndicatorSize::Bits15), ..Format::fixed(1505) };
const TTI: Duration = ms(10);
/// Time from the end of a TTI to the arrival of its PDUs.
const DELAY: Duration = ms(30);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// A PDU, recorded at its transmission.
#[derive(Clone, Debug)]
struct LogEntry {
    at: Instant,
    from: usize,
    pdu: Pdu<'static>,
    kind: PduKind,
    epoch: u32,
    lost: bool,
}

/// Settings without poll triggers, without status triggers except polls, and without prohibit timers.
fn quiet() -> EntityConfig {
    EntityConfig {
        sender: SenderConfig {
            window: 128,
            discard: Discard::ResetAfterMaxDat { max_dat: 40 },
            max_rst: 4,
            poll: PollConfig::NONE,
            ..SenderConfig::default()
        },
        receiver: ReceiverConfig {
            window: 128,
            timer_status_prohibit: None,
            missing_pdu_indicator: false,
            ..ReceiverConfig::default()
        },
        sends: FORMAT,
        receives: FORMAT,
        timers: TimersStart::WhenSubmitted,
        incoming: Incoming { tti: TTI, blocks: 4 },
    }
}

fn polling(poll: PollConfig) -> EntityConfig {
    let mut config = quiet();
    config.sender.poll = poll;
    config
}

type Lose = Box<dyn FnMut(&LogEntry) -> bool>;

/// Two entities and their channel. Both directions share a TTI grid with four blocks per TTI.
struct Pair {
    ends: [Entity; 2],
    /// Formats of the PDUs that each end sends.
    formats: [Format; 2],
    now: Instant,
    blocks: usize,
    next_tti: Instant,
    air: VecDeque<(Instant, usize, Vec<u8>)>,
    lose: Lose,
    log: Vec<LogEntry>,
    /// SDUs that have arrived at each end.
    delivered: [Vec<Vec<u8>>; 2],
    /// Outcomes of the SDUs that each end has sent.
    outcomes: [Vec<(u64, SduOutcome)>; 2],
    next_id: u64,
    /// Whether AMD PDUs are ciphered (`ciphering`).
    ciphers: bool,
}

impl Pair {
    fn new(config: EntityConfig) -> Self {
        Self::of(config.clone(), config)
    }

    fn of(a: EntityConfig, b: EntityConfig) -> Self {
        Self {
            formats: [a.sends, b.sends],
            ends: [a, b].map(|config| Entity::new(config, Instant::ZERO)),
            now: Instant::ZERO,
            blocks: 4,
            next_tti: Instant::ZERO,
            air: VecDeque::new(),
            lose: Box::new(|_| false),
            log: Vec::new(),
            delivered: [const { Vec::new() }; 2],
            outcomes: [const { Vec::new() }; 2],
            next_id: 0,
            ciphers: false,
        }
    }

    /// Loses all PDUs of B. Tests use this when they inject PDUs at B: A has not sent them, and would treat B's
    /// answers as erroneous.
    fn losing_answers(self) -> Self {
        self.losing(|entry| entry.from == B)
    }

    fn losing(mut self, lose: impl FnMut(&LogEntry) -> bool + 'static) -> Self {
        self.lose = Box::new(lose);
        self
    }

    /// Submits an SDU with a length of `octets` bytes. Each byte is the number of the SDU.
    fn send(&mut self, from: usize, octets: usize) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.ends[from].submit(self.now, SduId(id), vec![id as u8; octets]);
        id
    }

    /// Submits SDUs that each fill a PDU, together with the Length Indicator.
    fn send_pdus(&mut self, from: usize, count: usize) {
        for _ in 0..count {
            self.send(from, 39);
        }
    }

    fn send_pdus_at(&mut self, millis: u64, from: usize, count: usize) {
        self.run_until(at(millis));
        self.send_pdus(from, count);
    }

    fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs up to and including `end`. At the same instant, deadlines come first, then arrivals, then a TTI.
    fn run_until(&mut self, end: Instant) {
        loop {
            let deadline = self.ends.iter().filter_map(Entity::next_deadline).min();
            let arrival = self.air.front().map(|(at, ..)| *at);
            let wanted = self.ends.iter().any(|end| end.sendable_pdus(1) > 0);
            let tti = wanted.then(|| {
                let grid = self.now.as_nanos().div_ceil(TTI.as_nanos()) * TTI.as_nanos();
                self.next_tti.max(Instant::from_nanos(grid))
            });
            let Some(now) = [deadline, arrival, tti].into_iter().flatten().min().filter(|now| *now <= end)
            else {
                break;
            };
            assert!(now >= self.now, "time went backwards");
            self.now = now;
            if deadline == Some(now) {
                for end in &mut self.ends {
                    if end.next_deadline().is_some_and(|at| at <= now) {
                        end.handle_deadline(now);
                    }
                }
            } else if arrival == Some(now) {
                let (_, to, mut octets) = self.air.pop_front().expect("the first PDU in flight is due");
                if self.ciphers && is_data(&octets) {
                    let sn = ciphering::amd_sn(&octets);
                    ciphering::cipher(&mut octets, self.ends[to].hfn_of(sn), sn);
                }
                self.ends[to].handle_pdu(now, &octets);
            } else {
                self.tti(now);
            }
            self.collect();
        }
        self.now = end;
    }

    fn tti(&mut self, now: Instant) {
        self.next_tti = now + TTI;
        for from in [A, B] {
            let wanted = self.ends[from].sendable_pdus(self.blocks);
            let discards = self.ends[from].stats().discards;
            let pdus = self.ends[from].pull(now, Room::Pdus(self.blocks), OneBlockFewer::HasFormat);
            assert!(pdus.len() <= self.blocks);
            // If `pull` discards SDUs or fails, there may be nothing left to send.
            let gave_up = self.ends[from].is_unrecoverable() || self.ends[from].stats().discards > discards;
            assert!(wanted == 0 || !pdus.is_empty() || gave_up);
            for outgoing in pdus {
                let format = self.formats[from];
                let pdu =
                    decode(&outgoing.octets, format).expect("an entity sends decodable PDUs").into_owned();
                match format.sizing {
                    Sizing::Fixed => assert_eq!(outgoing.octets.len(), format.pdu_size),
                    Sizing::Flexible(_) => {
                        assert!(outgoing.octets.len() <= format.pdu_size);
                        assert_eq!(encode(&pdu, format), *outgoing.octets, "a flexible PDU contains padding");
                    }
                }
                let mut entry =
                    LogEntry { at: now, from, pdu, kind: outgoing.kind, epoch: outgoing.epoch, lost: false };
                entry.lost = (self.lose)(&entry);
                if !entry.lost {
                    let mut octets = outgoing.octets.to_vec();
                    if let PduKind::Data { sn, hfn, .. } = entry.kind
                        && self.ciphers
                    {
                        ciphering::cipher(&mut octets, hfn, sn);
                    }
                    self.air.push_back((now + TTI + DELAY, 1 - from, octets));
                }
                self.log.push(entry);
            }
        }
    }

    fn collect(&mut self) {
        for end in [A, B] {
            while let Some(sdu) = self.ends[end].poll_sdu() {
                self.delivered[end].push(sdu);
            }
            while let Some((SduId(id), outcome)) = self.ends[end].poll_outcome() {
                self.outcomes[end].push((id, outcome));
            }
        }
    }

    // Recorded PDUs.

    fn from(&self, from: usize) -> impl DoubleEndedIterator<Item = &LogEntry> {
        self.log.iter().filter(move |entry| entry.from == from)
    }

    /// The time and a property of each PDU that an end has sent.
    fn sent<T>(&self, from: usize, property: impl Fn(&Pdu<'_>) -> Option<T>) -> Vec<(u64, T)> {
        self.from(from).filter_map(|entry| Some((entry.at.as_millis(), property(&entry.pdu)?))).collect()
    }

    /// (time, SN, P) of the AMD PDUs that an end has sent.
    fn data(&self, from: usize) -> Vec<(u64, u16, bool)> {
        let amd = |pdu: &Pdu<'_>| if let Pdu::Amd(amd) = pdu { Some((amd.sn.get(), amd.poll)) } else { None };
        self.sent(from, amd).into_iter().map(|(at, (sn, poll))| (at, sn, poll)).collect()
    }

    /// SNs of the AMD PDUs that an end has sent.
    fn sns(&self, from: usize) -> Vec<u16> {
        self.data(from).into_iter().map(|(_, sn, _)| sn).collect()
    }

    /// (time, SN) of the AMD PDUs that an end has sent with a poll.
    fn polls(&self, from: usize) -> Vec<(u64, u16)> {
        self.data(from).into_iter().filter(|(.., polls)| *polls).map(|(at, sn, _)| (at, sn)).collect()
    }

    /// (time, super-fields) of the STATUS PDUs that an end has sent.
    fn statuses(&self, from: usize) -> Vec<(u64, Vec<Sufi>)> {
        self.sent(from, |pdu| if let Pdu::Status(status) = pdu { Some(status.0.clone()) } else { None })
    }

    /// (time, missing PDUs, LSN) of the reports that an end has sent.
    fn reported(&self, from: usize) -> Vec<(u64, Vec<u16>, u16)> {
        let reports = self.statuses(from).into_iter().filter_map(|(at, sufis)| {
            let content = status_report::interpret(&Status(sufis)).expect("an entity's report is consistent");
            Some((at, content.missing.iter().map(|sn| sn.get()).collect(), content.lsn?.get()))
        });
        reports.collect()
    }

    /// Times at which an end sent a STATUS PDU with an ACK.
    fn reports(&self, from: usize) -> Vec<u64> {
        let acknowledges = |sufis: &Vec<Sufi>| sufis.iter().any(|sufi| matches!(sufi, Sufi::Ack { .. }));
        self.statuses(from).into_iter().filter(|(_, sufis)| acknowledges(sufis)).map(|(at, _)| at).collect()
    }

    /// (time, RESET PDU) of the RESETs that an end has sent.
    fn resets(&self, from: usize) -> Vec<(u64, Reset)> {
        self.sent(from, |pdu| if let Pdu::Reset(reset) = pdu { Some(*reset) } else { None })
    }

    fn reset_acks(&self, from: usize) -> Vec<(u64, Reset)> {
        self.sent(from, |pdu| if let Pdu::ResetAck(ack) = pdu { Some(*ack) } else { None })
    }

    /// Number of transmissions of an SN.
    fn transmissions(&self, from: usize, sn: u16) -> usize {
        self.sns(from).into_iter().filter(|sent| *sent == sn).count()
    }

    /// Numbers of the SDUs that have arrived, as returned by `send`.
    fn arrived(&self, to: usize) -> Vec<u64> {
        self.delivered[to].iter().map(|sdu| u64::from(sdu[0])).collect()
    }

    fn outcomes(&self, from: usize, wanted: SduOutcome) -> Vec<u64> {
        self.outcomes[from].iter().filter(|(_, outcome)| *outcome == wanted).map(|(id, _)| *id).collect()
    }

    /// Passes `pdu` to an end as if the other end had sent it.
    fn inject(&mut self, to: usize, pdu: &Pdu<'_>) {
        let octets = encode(pdu, self.formats[1 - to]);
        self.ends[to].handle_pdu(self.now, &octets);
        self.collect();
    }

    fn inject_status(&mut self, to: usize, sufis: Vec<Sufi>) {
        self.inject(to, &Pdu::Status(Status(sufis)));
    }

    fn inject_status_at(&mut self, millis: u64, to: usize, sufis: Vec<Sufi>) {
        self.run_until(at(millis));
        self.inject_status(to, sufis);
    }

    /// Injects an AMD PDU with exactly one SDU.
    fn inject_data(&mut self, to: usize, sn: u16, poll: bool) {
        let amd =
            Amd { sn: Sn::new(sn), poll, ends: vec![39], data: vec![sn as u8; 39].into(), ..Amd::default() };
        self.inject(to, &Pdu::Amd(amd));
    }

    fn inject_data_at(&mut self, millis: u64, to: usize, sn: u16, poll: bool) {
        self.run_until(at(millis));
        self.inject_data(to, sn, poll);
    }
}

/// Loses the first transmission of each of these PDUs of `from`.
fn first_of(from: usize, sns: &'static [u16]) -> impl FnMut(&LogEntry) -> bool {
    move |entry| {
        entry.from == from
            && matches!(&entry.kind, PduKind::Data { sn, transmission: 1, .. } if sns.contains(&sn.get()))
    }
}

fn mrw(sns: &[u16], nlength: u8) -> Sufi {
    let sns = sns.iter().map(|sn| Sn::new(*sn)).collect();
    Sufi::Mrw(Mrw { sns, long_distance: false, nlength })
}

/// An MRW with LENGTH = 0.
fn long_mrw(sn: u16) -> Sufi {
    Sufi::Mrw(Mrw { sns: vec![Sn::new(sn)], long_distance: true, nlength: 0 })
}

fn mrw_ack(sn_ack: u16, n: u8) -> Sufi {
    Sufi::MrwAck(MrwAck { n, sn_ack: Sn::new(sn_ack) })
}

fn ack(lsn: u16) -> Sufi {
    Sufi::Ack { lsn: Sn::new(lsn) }
}

/// A LIST that reports these PDUs as missing.
fn list(sns: &[u16]) -> Sufi {
    let items = sns.iter().map(|sn| ListItem { sn: Sn::new(*sn), further: 0 });
    Sufi::List(items.collect())
}
