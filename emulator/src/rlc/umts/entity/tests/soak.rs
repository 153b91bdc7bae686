//! Long runs with random losses of data and control PDUs in both directions.

use airtcp_testkit::sample::{cases, size};
use airwire::rng::Stream;

use super::*;

/// Sends SDUs of random lengths in both directions while PDUs are lost at random. Then runs without losses
/// for long enough to finish.
fn soak(config: EntityConfig, seed: u64, loss: f64, sdus: usize) -> (Pair, [Vec<Vec<u8>>; 2]) {
    let mut rng = Stream::new(seed, "soak/traffic");
    let mut air = Stream::new(seed, "soak/loss");
    let lossy_until = std::rc::Rc::new(std::cell::Cell::new(Instant::from_nanos(u64::MAX)));
    let until = lossy_until.clone();
    let mut pair = Pair::new(config).losing(move |entry| air.chance(loss) && entry.at < until.get());
    let mut sent = [const { Vec::new() }; 2];
    for n in 0..sdus {
        for from in [A, B] {
            let len = match rng.below(4) {
                0 => 1 + rng.below(45),
                1 => 38 + rng.below(4),
                2 => 40 * (1 + rng.below(5)),
                _ => 1 + rng.below(600),
            };
            let mut sdu = vec![0; len.max(9) as usize];
            sdu[..8].copy_from_slice(&(n as u64).to_be_bytes());
            sdu[8] = from as u8;
            for octet in &mut sdu[9..] {
                *octet = rng.bits() as u8;
            }
            pair.ends[from].submit(pair.now, SduId(n as u64), sdu.clone());
            sent[from].push(sdu);
        }
        pair.run_for(ms(rng.below(60)));
        while pair.ends.iter().any(|end| end.unsent().0 > 20) {
            pair.run_for(ms(10));
            assert!(pair.now < at(10_000_000), "the entities make no progress");
        }
    }
    pair.run_for(ms(5_000));
    lossy_until.set(pair.now);
    pair.run_for(ms(30_000));
    (pair, sent)
}

/// Checks that each SDU was delivered or given up, and no SDU twice. Returns the number of undelivered SDUs
/// in each direction.
fn check_outcomes(pair: &Pair, sent: &[Vec<Vec<u8>>; 2], in_order: bool) -> [usize; 2] {
    [A, B].map(|from| {
        let delivered = &pair.delivered[1 - from];
        let number = |sdu: &Vec<u8>| u64::from_be_bytes(sdu[..8].try_into().expect("at least 8 bytes"));
        let mut arrived = vec![0; sent[from].len()];
        for sdu in delivered {
            let n = number(sdu);
            assert_eq!(*sdu, sent[from][n as usize], "SDU {n} was delivered with different content");
            arrived[n as usize] += 1;
        }
        if in_order {
            assert!(delivered.is_sorted_by_key(number), "SDUs were delivered out of order");
        }
        let mut outcomes = vec![0; sent[from].len()];
        for (id, outcome) in &pair.outcomes[from] {
            outcomes[*id as usize] += 1;
            if *outcome == SduOutcome::Acknowledged {
                assert_eq!(arrived[*id as usize], 1, "SDU {id} was acknowledged but did not arrive");
            }
        }
        assert!(arrived.iter().all(|times| *times <= 1), "an SDU arrived twice");
        let open: Vec<_> = outcomes.iter().enumerate().filter(|(_, times)| **times != 1).collect();
        assert!(
            open.is_empty(),
            "from {from}: SDUs without exactly one outcome: {open:?}\n{:?}\n{:?}",
            pair.ends[from].stats(),
            pair.ends[1 - from].stats()
        );
        arrived.iter().filter(|times| **times == 0).count()
    })
}

fn usual() -> EntityConfig {
    let mut config = quiet();
    config.sender.poll = PollConfig::default();
    config.receiver.timer_status_prohibit = Some(ms(100));
    config.receiver.missing_pdu_indicator = true;
    config.sender.discard = Discard::ResetAfterMaxDat { max_dat: 255 };
    config
}

#[test]
fn sdus_arrive_once_in_order_despite_heavy_loss() {
    for (seed, loss) in [(1, 0.0), (2, 0.01), (3, 0.1), (4, 0.3), (5, 0.5)] {
        let (pair, sent) = soak(usual(), seed, loss, 400);
        assert_eq!(pair.ends[A].stats().resets(), 0, "{loss}");
        assert_eq!(check_outcomes(&pair, &sent, true), [0, 0], "{loss}");
    }
}

#[test]
fn sdus_have_one_outcome_with_every_discard_mode() {
    let (timer_mrw, max_mrw) = (ms(200), 32);
    for (discard, loss) in [
        (Discard::ResetAfterMaxDat { max_dat: 4 }, 0.2),
        (Discard::MrwAfterMaxDat { max_dat: 3, timer_mrw, max_mrw }, 0.2),
        (Discard::Timer { timer_discard: ms(250), timer_mrw, max_mrw }, 0.3),
    ] {
        let mut config = usual();
        config.sender.discard = discard;
        config.sender.max_rst = 32;
        for seed in 0..10 {
            config.sender.send_mrw = seed % 2 == 0;
            let (pair, sent) = soak(config.clone(), seed, loss, 200);
            let stats = pair.ends[A].stats();
            let resets = matches!(discard, Discard::ResetAfterMaxDat { .. });
            assert_eq!((stats.resets() > 0, stats.discards > 0), (resets, !resets), "{discard:?}: {stats:?}");
            check_outcomes(&pair, &sent, true);
        }
    }
}

#[test]
fn small_and_large_windows_lose_no_sdus() {
    for window in [1, 8, 512, 2047] {
        let mut config = usual();
        config.sender.window = window;
        config.receiver.window = window;
        let (pair, sent) = soak(config, u64::from(window), 0.15, 100);
        assert_eq!(check_outcomes(&pair, &sent, true), [0, 0], "{window}");
        assert_eq!(pair.ends[A].stats().resets(), 0);
    }
}

#[test]
fn all_options_together_lose_no_sdus() {
    let mut config = usual();
    config.sender.poll = PollConfig {
        timer_poll_periodic: Some(ms(300)),
        poll_pdu: Some(8),
        poll_sdu: Some(4),
        poll_sufi: true,
        ..PollConfig::default()
    };
    // The round-trip time is at least 80 ms, so a NACK that arrives sooner cannot refer to the last copy.
    config.sender.ignore_nack_within = Some(ms(70));
    config.receiver.timer_status_periodic = Some(ms(500));
    config.receiver.timer_epc = Some(ms(120));
    config.receiver.piggyback = true;
    config.timers = TimersStart::WhenTransmitted { tti: TTI };
    for (seed, in_sequence) in [(1, true), (2, false), (3, true), (4, false)] {
        config.receiver.in_sequence = in_sequence;
        let (pair, sent) = soak(config.clone(), seed, 0.25, 200);
        assert_eq!(check_outcomes(&pair, &sent, in_sequence), [0, 0]);
        assert!(pair.ends[A].stats().piggybacked > 0);
    }
}

/// Formats of every kind that can be configured.
fn formats() -> impl proptest::strategy::Strategy<Value = Format> {
    let short = Format { sizing: Sizing::Flexible(IndicatorSize::Bits7), ..Format::fixed(42) };
    let flexible = |most| Format { pdu_size: most, ..FLEXIBLE };
    let formats = [FORMAT, FORMAT, Format::fixed(127), short, flexible(42), flexible(200), FLEXIBLE];
    let he_special = |format| Format { he_special: true, ..format };
    proptest::sample::select([formats, formats.map(he_special)].concat())
}

proptest::proptest! {
    #![proptest_config(cases(size(48, 96)))]

    #[test]
    fn random_settings_leave_one_outcome_per_sdu(
        seed in 0_u64..1 << 40,
        loss in 0.0..0.5,
        window in proptest::sample::select(vec![1_u16, 8, 32, 128, 512, 2560]),
        discard in 0..3,
        limit in 2_u8..8,
        tsp in proptest::option::of(10_u64..300),
        epc in proptest::option::of(50_u64..300),
        timer_discard in 50_u64..2_000,
        flags in 0_u8..64,
        format in formats(),
    ) {
        let mut config = usual();
        (config.sends, config.receives) = (format, format);
        let flag = |bit: u8| flags >> bit & 1 == 1;
        (config.sender.window, config.receiver.window) = (window, window);
        let timer_mrw = ms(200);
        config.sender.discard = match discard {
            0 => Discard::ResetAfterMaxDat { max_dat: limit },
            1 => Discard::MrwAfterMaxDat { max_dat: limit, timer_mrw, max_mrw: limit },
            _ => Discard::Timer { timer_discard: ms(timer_discard), timer_mrw, max_mrw: limit },
        };
        // Avoids unrecoverable errors, which another test covers.
        config.sender.max_rst = 200;
        config.sender.send_mrw = flag(0);
        config.sender.poll.poll_sufi = flag(1);
        config.receiver.timer_status_prohibit = tsp.map(ms);
        config.receiver.timer_epc = epc.map(ms);
        config.receiver.piggyback = flag(2);
        config.receiver.missing_pdu_indicator = flag(3);
        config.receiver.in_sequence = flag(4);
        if flag(5) {
            config.timers = TimersStart::WhenTransmitted { tti: TTI };
        }
        let (pair, sent) = soak(config, seed, loss, 60);
        check_outcomes(&pair, &sent, flag(4));
        proptest::prop_assert_eq!(pair.ends[A].stats().erroneous_sns + pair.ends[B].stats().erroneous_sns, 0);
        proptest::prop_assert_eq!(pair.ends[A].faults(), Faults::default());
    }
}
