//! Entities that cipher (§9.7.8): the HFNs of both directions stay synchronized over wraps and resets
//! (§11.4).

use airwire::rng::Stream;

use super::*;

/// Enciphers or deciphers an AMD PDU after its first two bytes. This is not a real cipher, but each COUNT-C
/// has its own keystream.
pub(super) fn cipher(octets: &mut [u8], hfn: u32, sn: Sn) {
    let count_c = u64::from(hfn) << 12 | u64::from(sn.get());
    let mut keystream = Stream::new(count_c, "ciphering");
    for octet in &mut octets[2..] {
        *octet ^= keystream.bits() as u8;
    }
}

/// SN of an AMD PDU.
pub(super) fn amd_sn(octets: &[u8]) -> Sn {
    Sn::new(u16::from(octets[0] & 0x7f) << 5 | u16::from(octets[1] >> 3))
}

/// An SDU that contains its sender and its number in every eight bytes.
fn sdu(from: usize, number: u64) -> Vec<u8> {
    let eight = (number << 1 | from as u64).to_be_bytes();
    (0..1 + number as usize % 25).flat_map(|_| eight).collect()
}

fn ciphering(config: EntityConfig, blocks: usize, lose: impl FnMut(&LogEntry) -> bool + 'static) -> Pair {
    let mut pair = Pair::new(config).losing(lose);
    (pair.ciphers, pair.blocks) = (true, blocks);
    pair
}

fn send(pair: &mut Pair, from: usize) {
    let number = pair.next_id;
    pair.next_id += 1;
    pair.ends[from].submit(pair.now, SduId(number), sdu(from, number));
}

fn run_tti(pair: &mut Pair) {
    pair.run_for(TTI);
    assert!(pair.ends.iter().all(|end| !end.is_unrecoverable()));
}

/// Passes an erroneous STATUS PDU to the end, which then initiates a reset (§10.1).
fn trigger_reset(pair: &mut Pair, end: usize) {
    let vt_s = pair.ends[end].transmitter.vt_s();
    pair.inject_status(end, vec![Sufi::Ack { lsn: wire(vt_s + 1) }]);
}

/// Checks that the delivered SDUs are unchanged, in order and without duplicates, and that both ends agree on
/// both HFNs.
fn check(pair: &Pair) {
    for (from, to) in [(A, B), (B, A)] {
        let delivered = &pair.delivered[to];
        let number =
            |sdu: &Vec<u8>| u64::from_be_bytes(*sdu.first_chunk().expect("at least eight bytes")) >> 1;
        let unchanged = |delivered: &Vec<u8>| *delivered == sdu(from, number(delivered));
        assert!(delivered.iter().all(unchanged), "an SDU was delivered with different content");
        assert!(
            delivered.is_sorted_by(|a, b| number(a) < number(b)),
            "SDUs were delivered out of order or twice"
        );
        assert!(delivered.len() >= pair.outcomes(from, SduOutcome::Acknowledged).len());
        let (sender, receiver) = (&pair.ends[from], &pair.ends[to]);
        assert_eq!(receiver.stats().decode_errors, 0, "a PDU was deciphered with the wrong HFN");
        assert_eq!(receiver.faults(), Faults::default());
        let last = sender.transmitter.vt_s().saturating_sub(1);
        assert_eq!(receiver.hfn_of(wire(last)), sender.highest_hfn(), "the ends disagree on the HFN");
    }
}

fn config(max_dat: u8) -> EntityConfig {
    let mut config = quiet();
    config.sender.window = 512;
    config.receiver.window = 512;
    config.sender.poll = PollConfig { timer_poll_periodic: Some(ms(100)), ..PollConfig::default() };
    config.receiver.timer_status_prohibit = Some(ms(80));
    config.receiver.missing_pdu_indicator = true;
    config.receiver.piggyback = true;
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat };
    config.sender.max_rst = 255;
    config.sender.timer_rst = ms(150);
    config
}

/// Runs with random losses and with random resets by both sides. RESETs and RESET ACKs are lost more often
/// than data.
fn run(seed: u64, ttis: u64) -> Pair {
    let mut air = Stream::new(seed, "loss");
    let mut chance = Stream::new(seed, "traffic");
    let reset_loss = 0.3 + 0.1 * (seed % 6) as f64;
    let mut pair = ciphering(config(5), 8, move |entry| {
        let resets = matches!(entry.kind, PduKind::Reset | PduKind::ResetAck);
        entry.at < Instant::ZERO + TTI * ttis && air.chance(if resets { reset_loss } else { 0.05 })
    });
    for _ in 0..ttis {
        for end in [A, B] {
            if pair.ends[end].unsent().0 < 20 && chance.chance(0.6) {
                send(&mut pair, end);
            }
            if chance.chance(0.02) {
                trigger_reset(&mut pair, end);
            }
        }
        run_tti(&mut pair);
    }
    (0..500).for_each(|_| run_tti(&mut pair));
    pair
}

#[test]
fn hfns_stay_synchronized_despite_losses_and_resets() {
    let (mut resets, mut delivered) = (0, 0);
    for seed in 0..60 {
        let pair = run(seed, 1_500);
        check(&pair);
        resets += pair.ends.iter().map(|end| end.stats().resets()).sum::<u64>();
        delivered += pair.delivered[A].len() + pair.delivered[B].len();
    }
    assert!(resets > 1_000 && delivered > 10_000, "{resets} resets, {delivered} SDUs");
}

#[test]
fn hfns_count_wraps_independently_per_direction() {
    let mut air = Stream::new(3, "loss");
    let mut pair = ciphering(config(40), 64, move |_| air.chance(0.05));
    for reset in [A, B] {
        for tti in 0..1_000 {
            (0..10).for_each(|_| send(&mut pair, A));
            if tti % 10 == 0 {
                send(&mut pair, B);
            }
            run_tti(&mut pair);
        }
        let hfns = [A, B].map(|end| pair.ends[end].highest_hfn());
        assert!(hfns[A] > hfns[B] + 4, "{hfns:?}: A sends more");
        trigger_reset(&mut pair, reset);
        let lose = std::mem::replace(&mut pair.lose, Box::new(|_| false));
        (0..100).for_each(|_| run_tti(&mut pair));
        pair.lose = lose;
        let after = [A, B].map(|end| pair.ends[end].highest_hfn());
        assert!(after[A] > hfns[A] && after[B] > hfns[B], "{hfns:?}, {after:?}");
        check(&pair);
    }
}
