//! A bearer whose rate changes, or that has no channel for some time.

use airlink::rlc::rrc::Inactivity;
use airlink::rlc::switching::{Change, Switching};
use airlink::rlc::umts::dch::Dch;

use super::*;

/// Number of downlink blocks in each second.
fn blocks_per_second(run: &mut Run, seconds: u64) -> Vec<usize> {
    let mut blocks = vec![0; seconds as usize];
    for pdu in run.take_down_pdus() {
        blocks[(pdu.at.as_nanos() / 1_000_000_000) as usize] += 1;
    }
    blocks
}

#[test]
fn scheduled_rate_change_sets_blocks_and_ttis() {
    let mut config = saturated(0.0);
    config.down.channel.switching = Switching::Scheduled {
        changes: vec![
            Change { at: ms(2000), dch: Dch::Kbit64 },
            Change { at: ms(4000), dch: Dch::Kbit128 },
            Change { at: ms(6000), dch: Dch::Kbit384 },
        ],
    };
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    fill(&mut run, 8);
    run.until(at(7999));
    let blocks = blocks_per_second(&mut run, 8);
    assert_eq!(blocks, [1200, 1200, 200, 200, 400, 400, 1200, 1200]);
    assert_eq!(run.path.stats()["radio"]["down"]["rate"], "384kbit");
}

#[test]
fn new_tti_length_starts_on_its_own_grid() {
    let mut config = saturated(0.0);
    // The changes fall into the TTI from 1010 to 1020 ms and the TTI from 1040 to 1060 ms.
    config.down.channel.switching = Switching::Scheduled {
        changes: vec![Change { at: ms(1015), dch: Dch::Kbit128 }, Change { at: ms(1045), dch: Dch::Kbit384 }],
    };
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    fill(&mut run, 2);
    run.until(at(1100));
    let pdus = run.take_down_pdus().into_iter().map(|pdu| pdu.at.as_nanos() / 1_000_000);
    let mut begins: Vec<u64> = pdus.filter(|at| *at >= 1000).collect();
    begins.dedup();
    assert_eq!(begins, [1000, 1010, 1020, 1040, 1060, 1070, 1080, 1090, 1100]);
}

#[test]
fn rate_changes_lose_and_reorder_no_packet() {
    let mut config = saturated(0.1);
    let rates = [Dch::Kbit64, Dch::Kbit384, Dch::Kbit128];
    let changes = (1..60).map(|n| Change { at: ms(n * 137), dch: rates[n as usize % 3] }).collect();
    config.down.channel.switching = Switching::Scheduled { changes };
    config.up.channel.switching = config.down.channel.switching.clone();
    let mut run = Run::new(&config, 5);
    for n in 0..400 {
        let direction = if n % 2 == 0 { Direction::Down } else { Direction::Up };
        run.send(at(u64::from(n) * 20), direction, numbered(n, 300));
    }
    run.until(at(60_000));
    for (direction, first) in [(Direction::Down, 0), (Direction::Up, 1)] {
        let left = run.left.iter().filter(|left| left.1 == direction).map(|left| number_of(&left.2));
        assert!(left.eq((0..200).map(|n| 2 * n + first)), "{direction}");
    }
}

/// Two bursts of 40 kB, each after a pause. Each starts at 64 kbit/s and gets the faster channel after the waiting time.
#[test]
fn buffer_occupancy_switches_the_channel_rate() {
    let mut config = RlcConfig::wcdma_64();
    config.down.channel.dch = Some(Dch::Kbit64);
    config.down.channel.switching = Switching::ByOccupancy {
        between: vec![Dch::Kbit64, Dch::Kbit384],
        above: Size::bytes(3000),
        above_for: ms(200),
        below: Size::bytes(0),
        below_for: ms(2000),
        takes: ms(500),
    };
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    for burst in 0..2 {
        for n in 0..40 {
            run.send(at(burst * 10_000), Direction::Down, numbered(n, 1000));
        }
    }
    run.until(at(20_000));
    let blocks = blocks_per_second(&mut run, 20);
    // 700 ms at 64 kbit/s, then 384 kbit/s until the end: 1003 PDUs and a few polls.
    let expected = 4 * 35 + 12 * 30;
    for second in [0, 10] {
        assert!(blocks[second].abs_diff(expected) <= 12, "{blocks:?}");
    }
    assert_eq!(run.left.len(), 80);
    assert_eq!(
        run.path.stats()["radio"]["down"]["rate"],
        "64kbit",
        "the idle channel returns to the low rate"
    );
}

/// `airlink ctl … set radio.down.channel.dch 64kbit`.
#[test]
fn rate_can_be_set_while_running() {
    let mut config = saturated(0.0);
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    fill(&mut run, 4);
    run.until(at(1995));
    config.down.channel.dch = Some(Dch::Kbit64);
    run.path.reconfigure(at(1995), 0, &config).unwrap();
    run.until(at(3999));
    assert_eq!(blocks_per_second(&mut run, 4), [1200, 1200, 200, 200]);
    // TTI and blocks can also be set without `dch`.
    config.down.channel.dch = None;
    config.down.channel.tti = ms(40);
    run.path.reconfigure(at(3999), 0, &config).unwrap();
    run.until(at(5999));
    assert_eq!(blocks_per_second(&mut run, 6)[4..], [300, 300]);
}

#[test]
fn idle_mobile_waits_for_its_channel() {
    let mut config = RlcConfig::wcdma_384();
    let delay = |run: &Run, n: usize, sent: u64| (run.left[n].0 - at(sent)).as_millis();
    let mut plain = Run::new(&config, 1);
    config.rrc.inactivity = Some(Inactivity { after: ms(5000), promotion: ms(700) });
    let mut run = Run::new(&config, 1);
    // The mobile is idle at packet 0 and, after a pause of more than 5 s, at packet 3. Packet 4 is sent during the
    // promotion for packet 3.
    let sent = [0, 1000, 5000, 11_000, 11_300];
    for (n, millis) in sent.into_iter().enumerate() {
        plain.send(at(millis), Direction::Down, numbered(n as u32, 30));
        run.send(at(millis), Direction::Down, numbered(n as u32, 30));
    }
    plain.until(at(20_000));
    run.until(at(20_000));
    let added = |n: usize| delay(&run, n, sent[n]) - delay(&plain, n, sent[n]);
    assert_eq!([0, 1, 2, 3, 4].map(added), [700, 0, 0, 700, 400]);
}

#[test]
fn uplink_packets_also_keep_the_channel() {
    let mut config = RlcConfig::wcdma_384();
    config.rrc.inactivity = Some(Inactivity { after: ms(2000), promotion: ms(700) });
    let mut run = Run::new(&config, 1);
    for n in 0..10 {
        run.send(
            at(u64::from(n) * 1500),
            if n == 9 { Direction::Down } else { Direction::Up },
            numbered(n, 30),
        );
    }
    run.until(at(20_000));
    let took = run.left.last().unwrap().0 - at(9 * 1500);
    assert_eq!((run.left.len(), took), (10, ms(50)));
}
