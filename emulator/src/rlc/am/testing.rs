//! Two AM entities of either generation, connected by a channel that loses and delays PDUs.

use std::collections::{BTreeMap, BTreeSet};

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use super::{AmParameters, ReceiveError, Status};
use crate::rlc::service::{Event, Pdu, PduKind, Sdu};
use crate::rlc::sn::SnBits;

pub(in crate::rlc) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(in crate::rlc) fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// Decodes a hexadecimal number. Spaces are ignored.
pub(in crate::rlc) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// An SDU of `length` octets whose content depends on its identifier.
pub(in crate::rlc) fn sdu(id: u64, length: usize) -> Sdu {
    let mut stream = Stream::new(id, "content");
    let mut octets: Vec<u8> = (0..length).map(|_| stream.bits() as u8).collect();
    let number = id.to_be_bytes();
    let named = length.min(8);
    octets[..named].copy_from_slice(&number[8 - named..]);
    Sdu { id, octets: octets.into() }
}

/// Parameters with which a PDU polls only if nothing is left to send or the window is full.
pub(in crate::rlc) fn quiet() -> AmParameters {
    AmParameters {
        poll_pdu: None,
        poll_byte: None,
        t_poll_retransmit: ms(100),
        max_retx_threshold: 4,
        t_status_prohibit: Duration::ZERO,
    }
}

/// The functions that the entities of both generations have.
pub(in crate::rlc) trait Entity {
    fn submit(&mut self, sdu: Sdu);
    fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>);
    fn can_send(&self) -> bool;
    fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>) -> Result<(), ReceiveError>;
    fn next_deadline(&self) -> Option<Instant>;
    fn on_deadline(&mut self, now: Instant, events: &mut Vec<Event>);

    /// The PDUs for a transport block.
    fn pulled(&mut self, now: Instant, octets: usize) -> Vec<Pdu> {
        let mut pdus = Vec::new();
        self.pull(now, octets, &mut pdus);
        assert!(pdus.iter().map(|pdu| pdu.octets.len()).sum::<usize>() <= octets);
        pdus
    }

    /// The events that a PDU causes.
    fn received(&mut self, now: Instant, pdu: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        self.receive(now, pdu, &mut events).unwrap();
        events
    }

    /// The events of the deadlines up to and including `now`.
    fn waited(&mut self, now: Instant) -> Vec<Event> {
        let mut events = Vec::new();
        while self.next_deadline().is_some_and(|at| at <= now) {
            let at = self.next_deadline().unwrap();
            self.on_deadline(at, &mut events);
        }
        events
    }
}

macro_rules! entity {
    ($type:ty) => {
        impl crate::rlc::am::testing::Entity for $type {
            fn submit(&mut self, sdu: Sdu) {
                <$type>::submit(self, sdu);
            }
            fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) {
                <$type>::pull(self, now, octets, pdus);
            }
            fn can_send(&self) -> bool {
                <$type>::can_send(self)
            }
            fn receive(
                &mut self,
                now: Instant,
                pdu: &[u8],
                events: &mut Vec<Event>,
            ) -> Result<(), ReceiveError> {
                <$type>::receive(self, now, pdu, events)
            }
            fn next_deadline(&self) -> Option<Instant> {
                <$type>::next_deadline(self)
            }
            fn on_deadline(&mut self, now: Instant, events: &mut Vec<Event>) {
                <$type>::on_deadline(self, now, events);
            }
        }
    };
}
pub(in crate::rlc) use entity;

/// Indices of the two ends.
pub(in crate::rlc) const A: usize = 0;
pub(in crate::rlc) const B: usize = 1;

/// Properties of the channel.
#[derive(Clone, Debug)]
pub(in crate::rlc) struct Channel {
    pub(in crate::rlc) seed: u64,
    pub(in crate::rlc) slot: Duration,
    pub(in crate::rlc) delay: Duration,
    /// Probability that a transport block is lost.
    pub(in crate::rlc) loss: f64,
    /// Probability that HARQ delivers a transport block only with its second transmission. Blocks with a
    /// retransmission are never late: after a full window, a late copy can have the sequence number of a new
    /// PDU, which neither 36.322 nor 38.322 excludes.
    pub(in crate::rlc) late: f64,
    /// Smallest and largest size of a transport block.
    pub(in crate::rlc) grants: (u64, u64),
}

/// The receiver of a transport block, and its PDUs.
type InFlight = (usize, Vec<Vec<u8>>);

/// Two entities and their channel.
pub(in crate::rlc) struct Link<E> {
    pub(in crate::rlc) ends: [E; 2],
    pub(in crate::rlc) now: Instant,
    pub(in crate::rlc) channel: Channel,
    draws: Stream,
    next_slot: Instant,
    /// Transport blocks in flight, by the time of their arrival and their number.
    air: BTreeMap<(Instant, u64), InFlight>,
    blocks: u64,
    /// All PDUs in the order of transmission, with their sender, and whether the channel loses them.
    pub(in crate::rlc) log: Vec<(usize, Pdu, bool)>,
    pub(in crate::rlc) delivered: [Vec<Vec<u8>>; 2],
    pub(in crate::rlc) confirmed: [Vec<u64>; 2],
    pub(in crate::rlc) max_retx: [Vec<u64>; 2],
    pub(in crate::rlc) keeps_log: bool,
}

impl<E: Entity> Link<E> {
    pub(in crate::rlc) fn new(ends: [E; 2], channel: Channel) -> Self {
        Self {
            ends,
            now: Instant::ZERO,
            draws: Stream::new(channel.seed, "channel"),
            channel,
            next_slot: Instant::ZERO,
            air: BTreeMap::new(),
            blocks: 0,
            log: Vec::new(),
            delivered: [const { Vec::new() }; 2],
            confirmed: [const { Vec::new() }; 2],
            max_retx: [const { Vec::new() }; 2],
            keeps_log: true,
        }
    }

    /// Runs up to and including `end`. At the same instant, PDUs arrive first, then timers expire, then
    /// transport blocks are filled.
    pub(in crate::rlc) fn run_until(&mut self, end: Instant) {
        loop {
            let arrival = self.air.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.ends.iter().filter_map(Entity::next_deadline).min();
            let wants_slot = self.ends.iter().any(Entity::can_send);
            let slot = wants_slot.then(|| self.next_slot.max(self.now));
            let next = [arrival, deadline, slot].into_iter().flatten().min();
            let Some(now) = next.filter(|now| *now <= end) else { break };
            assert!(now >= self.now, "time went backwards");
            self.now = now;
            let mut events = Vec::new();
            if arrival == Some(now) {
                let Some((_, (to, pdus))) = self.air.pop_first() else { unreachable!() };
                for pdu in pdus {
                    self.ends[to].receive(now, &pdu, &mut events).expect("an entity sends valid PDUs");
                }
                self.settle(to, events);
            } else if deadline == Some(now) {
                for end in [A, B] {
                    let mut events = Vec::new();
                    self.ends[end].on_deadline(now, &mut events);
                    self.settle(end, events);
                }
            } else {
                self.fill_slot(now);
            }
        }
        self.now = end;
    }

    /// Runs until neither end has anything to send and all timers have expired.
    pub(in crate::rlc) fn run_until_idle(&mut self, limit: Duration) {
        let end = self.now + limit;
        while self.now < end
            && (!self.air.is_empty()
                || self.ends.iter().any(|end| end.can_send() || end.next_deadline().is_some()))
        {
            self.run_until(self.now + ms(10));
        }
        assert!(self.now < end, "the entities are still busy");
    }

    /// Submits SDUs of up to `longest` octets at both ends, and runs until they have arrived. Returns the SDUs of
    /// each end.
    pub(in crate::rlc) fn exchange(&mut self, sdus: u64, longest: u64) -> [Vec<Sdu>; 2] {
        let mut draws = Stream::new(self.channel.seed, "traffic");
        let mut sent = [const { Vec::new() }; 2];
        for id in 0..sdus {
            for end in [A, B] {
                let sdu = sdu(id, 1 + draws.below(longest) as usize);
                self.ends[end].submit(sdu.clone());
                sent[end].push(sdu);
            }
            if draws.chance(0.3) {
                self.run_until(self.now + ms(draws.below(8)));
            }
        }
        self.run_until_idle(Duration::from_secs(3_600));
        sent
    }

    fn settle(&mut self, end: usize, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Delivered(octets) => self.delivered[end].push(octets),
                Event::Confirmed(id) => self.confirmed[end].push(id),
                Event::MaxRetx(id) => self.max_retx[end].push(id),
            }
        }
    }

    fn fill_slot(&mut self, now: Instant) {
        self.next_slot = now + self.channel.slot;
        let Channel { slot, delay, loss, late, grants: (least, most), .. } = self.channel;
        for from in [A, B] {
            let octets = least + self.draws.below(most - least + 1);
            let pdus = self.ends[from].pulled(now, octets as usize);
            let is_lost = self.draws.chance(loss);
            let is_new = pdus.iter().all(|pdu| !matches!(pdu.kind, PduKind::Data { transmission: 2.., .. }));
            let extra = if self.draws.chance(late) && is_new { slot * 8 } else { Duration::ZERO };
            if !is_lost && !pdus.is_empty() {
                let block = pdus.iter().map(|pdu| pdu.octets.clone()).collect();
                self.air.insert((now + delay + extra, self.blocks), (1 - from, block));
                self.blocks += 1;
            }
            if self.keeps_log {
                self.log.extend(pdus.into_iter().map(|pdu| (from, pdu, is_lost)));
            }
        }
    }

    /// Checks that `to` has received each of `sent` exactly once, and that the sender knows it.
    pub(in crate::rlc) fn check_complete(&self, to: usize, sent: &[Sdu], in_sequence: bool) {
        let from = 1 - to;
        assert_eq!(self.max_retx[from], [0_u64; 0], "no SDU should reach maxRetxThreshold");
        let mut delivered = self.delivered[to].clone();
        let mut expected: Vec<Vec<u8>> = sent.iter().map(|sdu| sdu.octets.to_vec()).collect();
        if !in_sequence {
            delivered.sort();
            expected.sort();
        }
        assert_eq!(delivered.len(), expected.len(), "number of delivered SDUs");
        assert!(delivered == expected, "the delivered SDUs differ from the submitted ones");
        let mut confirmed = self.confirmed[from].clone();
        confirmed.sort_unstable();
        assert_eq!(confirmed, sent.iter().map(|sdu| sdu.id).collect::<Vec<_>>(), "confirmed SDUs");
    }
}

impl<E> Link<E> {
    /// Checks that each STATUS PDU acknowledges only units that were transmitted before and not lost. Returns
    /// the number of NACKs.
    pub(in crate::rlc) fn check_reports(&self, bits: SnBits, decode: impl Fn(&[u8]) -> Status) -> usize {
        let mut nacks = 0;
        for to in [A, B] {
            let mut base = 0;
            let mut arrived = BTreeSet::new();
            for (from, pdu, is_lost) in &self.log {
                match &pdu.kind {
                    PduKind::Data { sn, .. } if *from != to && !is_lost => {
                        arrived.insert(*sn);
                    }
                    PduKind::Status if *from == to => {
                        let mut status = decode(&pdu.octets);
                        status.restore(bits, base).expect("each NACK_SN is below ACK_SN");
                        nacks += status.nacks.len();
                        let mut from = base;
                        for nack in &status.nacks {
                            assert!((from..nack.sn).all(|sn| arrived.contains(&sn)));
                            from = from.max(nack.end());
                        }
                        assert!((from..status.ack_sn).all(|sn| arrived.contains(&sn)));
                        base = status.nacks.first().map_or(status.ack_sn, |nack| nack.sn);
                    }
                    _ => {}
                }
            }
        }
        nacks
    }
}

/// The sequence number of a data PDU, and whether it polls.
pub(in crate::rlc) fn data(pdu: &Pdu) -> (u64, bool) {
    match pdu.kind {
        PduKind::Data { sn, polls, .. } => (sn, polls),
        PduKind::Status => panic!("a STATUS PDU"),
    }
}
