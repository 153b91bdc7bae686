//! Entities that cipher (§9.7.8): the HFNs of both directions stay synchronized over wraps and resets
//! (§11.4).

use airwire::rng::Stream;

use super::*;

/// Enciphers or deciphers an AMD PDU after its first two bytes. This is not a real cipher, but each COUNT-C
/// has its own keystream.
fn cipher(octets: &mut [u8], hfn: u32, sn: Sn) {
    let count_c = u64::from(hfn) << 12 | u64::from(sn.get());
    let mut keystream = Stream::new(count_c, "ciphering");
    for octet in &mut octets[2..] {
        *octet ^= keystream.bits() as u8;
    }
}

/// SN of an AMD PDU.
fn amd_sn(octets: &[u8]) -> Sn {
    Sn::new(u16::from(octets[0] & 0x7f) << 5 | u16::from(octets[1] >> 3))
}

/// An entity that enciphers what it sends and deciphers what it receives. It uses only its own state.
struct Ciphering(Entity);

impl Ciphering {
    fn pull(&mut self, now: Instant, blocks: usize) -> Vec<Outgoing> {
        let mut pdus = self.0.pull(now, Room::Pdus(blocks), OneBlockFewer::HasFormat);
        for pdu in &mut pdus {
            if let PduKind::Data { sn, hfn, .. } = pdu.kind {
                cipher(Arc::make_mut(&mut pdu.octets), hfn, sn);
            }
        }
        pdus
    }

    fn handle_pdu(&mut self, now: Instant, mut octets: Vec<u8>) {
        // Control PDUs are not ciphered.
        if is_data(&octets) {
            let sn = amd_sn(&octets);
            cipher(&mut octets, self.0.hfn_of(sn), sn);
        }
        self.0.handle_pdu(now, &octets);
    }
}

/// Two ciphering entities with a common TTI grid.
struct Link {
    ends: [Ciphering; 2],
    now: Instant,
    air: VecDeque<(Instant, usize, Vec<u8>)>,
    blocks: usize,
    delivered: [Vec<Vec<u8>>; 2],
    acknowledged: [u64; 2],
    sent: [u64; 2],
}

impl Link {
    fn new(config: &EntityConfig, blocks: usize) -> Self {
        Self {
            ends: [(), ()].map(|()| Ciphering(Entity::new(config.clone(), Instant::ZERO))),
            now: Instant::ZERO,
            air: VecDeque::new(),
            blocks,
            delivered: [const { Vec::new() }; 2],
            acknowledged: [0; 2],
            sent: [0; 2],
        }
    }

    /// An SDU that contains its sender and its number in every eight bytes.
    fn sdu(from: usize, number: u64) -> Vec<u8> {
        let eight = (number << 1 | from as u64).to_be_bytes();
        (0..1 + number as usize % 25).flat_map(|_| eight).collect()
    }

    fn send(&mut self, from: usize) {
        let number = self.sent[from];
        self.sent[from] += 1;
        self.ends[from].0.submit(self.now, SduId(number), Self::sdu(from, number));
    }

    /// Runs one TTI. `lost` decides whether a PDU is lost.
    fn tti(&mut self, mut lost: impl FnMut(usize, &Outgoing) -> bool) {
        let end = self.now + TTI;
        while self.air.front().is_some_and(|(at, ..)| *at <= self.now) {
            let (_, to, octets) = self.air.pop_front().expect("a PDU is in flight");
            self.ends[to].handle_pdu(self.now, octets);
        }
        for from in [A, B] {
            self.ends[from].0.handle_deadline(self.now);
            for pdu in self.ends[from].pull(self.now, self.blocks) {
                if !lost(from, &pdu) {
                    self.air.push_back((end + DELAY, 1 - from, pdu.octets.to_vec()));
                }
            }
        }
        for end in [A, B] {
            while let Some(sdu) = self.ends[end].0.poll_sdu() {
                self.delivered[end].push(sdu);
            }
            while let Some((_, outcome)) = self.ends[end].0.poll_outcome() {
                self.acknowledged[end] += u64::from(outcome == SduOutcome::Acknowledged);
            }
            assert!(!self.ends[end].0.is_unrecoverable());
        }
        self.now = end;
    }

    /// Passes an erroneous STATUS PDU to the end, which then initiates a reset (§10.1).
    fn trigger_reset(&mut self, end: usize) {
        let vt_s = self.ends[end].0.transmitter.vt_s();
        let beyond = Status(vec![Sufi::Ack { lsn: wire(vt_s + 1) }]);
        self.ends[end].0.handle_pdu(self.now, &encode(&Pdu::Status(beyond), FORMAT));
    }

    /// Checks that the delivered SDUs are unchanged, in order and without duplicates, and that both ends
    /// agree on both HFNs.
    fn check(&self) {
        for to in [A, B] {
            let number = |sdu: &Vec<u8>| {
                u64::from_be_bytes(sdu[..8].try_into().expect("every SDU has at least eight bytes")) >> 1
            };
            for sdu in &self.delivered[to] {
                assert!(
                    *sdu == Self::sdu(1 - to, number(sdu)),
                    "an SDU was delivered with different content"
                );
            }
            assert!(
                self.delivered[to].is_sorted_by(|a, b| number(a) < number(b)),
                "SDUs were delivered out of order or twice"
            );
            assert!(self.delivered[to].len() as u64 >= self.acknowledged[1 - to]);
            let (sender, receiver) = (&self.ends[1 - to].0, &self.ends[to].0);
            assert_eq!(receiver.stats().decode_errors, 0, "a PDU was deciphered with the wrong HFN");
            assert_eq!(receiver.faults(), Faults::default());
            let last = sender.transmitter.vt_s().saturating_sub(1);
            assert_eq!(receiver.hfn_of(wire(last)), sender.highest_hfn(), "the ends disagree on the HFN");
        }
    }
}

fn ciphering() -> EntityConfig {
    let mut config = quiet();
    config.sender.window = 512;
    config.receiver.window = 512;
    config.sender.poll = PollConfig { timer_poll_periodic: Some(ms(100)), ..PollConfig::default() };
    config.receiver.timer_status_prohibit = Some(ms(80));
    config.receiver.missing_pdu_indicator = true;
    config.receiver.piggyback = true;
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 5 };
    config.sender.max_rst = 255;
    config.sender.timer_rst = ms(150);
    config
}

/// Runs with random losses and with random resets by both sides. RESETs and RESET ACKs are lost more often
/// than data.
fn run(seed: u64, ttis: u64, config: &EntityConfig) -> Link {
    let mut air = Stream::new(seed, "loss");
    let mut chance = Stream::new(seed, "traffic");
    let mut link = Link::new(config, 8);
    let resets = 0.3 + 0.1 * (seed % 6) as f64;
    for tti in 0..ttis + 500 {
        let storm = tti < ttis;
        for end in [A, B] {
            if storm && link.ends[end].0.unsent().0 < 20 && chance.chance(0.6) {
                link.send(end);
            }
            if storm && chance.chance(0.02) {
                link.trigger_reset(end);
            }
        }
        link.tti(|_, pdu| {
            let loss = match pdu.kind {
                PduKind::Reset | PduKind::ResetAck => resets,
                PduKind::Data { .. } | PduKind::Status => 0.05,
            };
            storm && air.chance(loss)
        });
    }
    link
}

#[test]
fn hfns_stay_synchronized_despite_losses_and_resets() {
    let (mut resets, mut delivered) = (0, 0);
    for seed in 0..60 {
        let link = run(seed, 1_500, &ciphering());
        link.check();
        resets += link.ends.iter().map(|end| end.0.stats().resets()).sum::<u64>();
        delivered += link.delivered[A].len() + link.delivered[B].len();
    }
    assert!(resets > 1_000 && delivered > 10_000, "{resets} resets, {delivered} SDUs");
}

#[test]
fn hfns_count_wraps_independently_per_direction() {
    let mut config = ciphering();
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 40 };
    let mut link = Link::new(&config, 64);
    let mut air = Stream::new(3, "loss");
    for reset in [A, B] {
        for tti in 0..1_000 {
            for _ in 0..10 {
                link.send(A);
            }
            if tti % 10 == 0 {
                link.send(B);
            }
            link.tti(|_, _| air.chance(0.05));
        }
        let hfns = [A, B].map(|end| link.ends[end].0.highest_hfn());
        assert!(hfns[A] > hfns[B] + 4, "{hfns:?}: A sends more");
        link.trigger_reset(reset);
        for _ in 0..100 {
            link.tti(|_, _| false);
        }
        let after = [A, B].map(|end| link.ends[end].0.highest_hfn());
        assert_eq!(after.map(|hfn| hfn > 0), [true; 2]);
        assert!(after[A] > hfns[A] && after[B] > hfns[B], "{hfns:?}, {after:?}");
        link.check();
    }
}
