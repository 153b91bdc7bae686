//! A bearer that changes its rate, or has none for a while.

use airlink::rlc::rrc::Inactivity;
use airlink::rlc::switching::{Change, Switching};
use airlink::rlc::umts::dch::Dch;

use super::*;

/// Blocks in each second of the downlink, and the lengths of the TTIs in them: from when each began to the next one.
fn blocks_per_second(run: &mut Run, seconds: u64) -> Vec<usize> {
    let mut blocks = vec![0; seconds as usize];
    for pdu in run.path.take_pdus().into_iter().filter(|pdu| pdu.direction == Direction::Down) {
        blocks[(pdu.at.as_nanos() / 1_000_000_000) as usize] += 1;
    }
    blocks
}

#[test]
fn a_scheduled_change_of_rate_is_one_of_blocks_and_of_ttis() {
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
fn the_new_tti_begins_when_the_old_one_is_over_and_on_its_own_grid() {
    let mut config = saturated(0.0);
    // In the middle of the TTI from 1010 to 1020 ms, and in the middle of the one from 1040 to 1060 ms.
    config.down.channel.switching = Switching::Scheduled {
        changes: vec![Change { at: ms(1015), dch: Dch::Kbit128 }, Change { at: ms(1045), dch: Dch::Kbit384 }],
    };
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    fill(&mut run, 2);
    run.until(at(1100));
    let mut begins: Vec<u64> = run
        .path
        .take_pdus()
        .into_iter()
        .filter(|pdu| pdu.direction == Direction::Down && pdu.at >= at(1000))
        .map(|pdu| pdu.at.as_nanos() / 1_000_000)
        .collect();
    begins.dedup();
    assert_eq!(begins, [1000, 1010, 1020, 1040, 1060, 1070, 1080, 1090, 1100]);
}

#[test]
fn every_packet_is_carried_over_the_changes_in_its_order() {
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

/// Bursts of 40 kB, each behind a pause: it begins at 64 kbit/s, and is promoted when it has waited long enough.
#[test]
fn a_busy_buffer_is_given_a_faster_channel_and_an_idle_one_a_slower() {
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
    // 700 ms at 64 kbit/s, then 384 kbit/s until all is through: 1003 PDUs and a few polls.
    let expected = 4 * 35 + 12 * 30;
    for second in [0, 10] {
        assert!(blocks[second].abs_diff(expected) <= 12, "{blocks:?}");
    }
    assert_eq!(run.left.len(), 80);
    assert_eq!(run.path.stats()["radio"]["down"]["rate"], "64kbit", "slower again, and for good");
}

/// `airlink ctl … set radio.down.channel.dch 64kbit`.
#[test]
fn the_rate_changes_while_it_runs() {
    let mut config = saturated(0.0);
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    fill(&mut run, 4);
    run.until(at(1995));
    config.down.channel.dch = Some(Dch::Kbit64);
    run.path.reconfigure(at(1995), 0, &config).unwrap();
    run.until(at(3999));
    assert_eq!(blocks_per_second(&mut run, 4), [1200, 1200, 200, 200]);
    // TTI and blocks by themselves, too.
    config.down.channel.dch = None;
    config.down.channel.tti = ms(40);
    run.path.reconfigure(at(3999), 0, &config).unwrap();
    run.until(at(5999));
    assert_eq!(blocks_per_second(&mut run, 6)[4..], [300, 300]);
}

#[test]
fn a_terminal_that_was_idle_waits_for_its_channel() {
    let mut config = RlcConfig::wcdma_384();
    let delay = |run: &Run, n: usize, sent: u64| (run.left[n].0 - at(sent)).as_millis();
    let mut plain = Run::new(&config, 1);
    config.rrc.inactivity = Some(Inactivity { after: ms(5000), promotion: ms(700) });
    let mut run = Run::new(&config, 1);
    // The first packet, one soon after it, one after a pause of less than 5 s, and one after more.
    let sent = [0, 1000, 5000, 11_000, 11_300];
    for (n, millis) in sent.into_iter().enumerate() {
        plain.send(at(millis), Direction::Down, numbered(n as u32, 30));
        run.send(at(millis), Direction::Down, numbered(n as u32, 30));
    }
    plain.until(at(20_000));
    run.until(at(20_000));
    let later = |n: usize| delay(&run, n, sent[n]) - delay(&plain, n, sent[n]);
    assert_eq!([0, 1, 2, 3, 4].map(later), [700, 0, 0, 700, 400]);
}

#[test]
fn what_comes_up_keeps_the_channel_too() {
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
