//! PDUs of flexible size over a shared downlink: content of the blocks, and gain in goodput.

use airlink::rlc::umts::config::{FlexibleConfig, FormatConfig};
use airlink::rlc::umts::hs::config::HsdpaConfig;
use airtcp_testkit::sample::size;

use super::hsdpa::{cell, full_buffers, of, outdated_cqi, strong_signal, take_checked_pdus};
use super::*;

fn flexible(hsdpa: HsdpaConfig) -> RlcConfig {
    let mut config = cell(hsdpa);
    config.down.format =
        FormatConfig { flexible: Some(FlexibleConfig::default()), ..FormatConfig::default() };
    config
}

fn with_he_special(mut config: RlcConfig) -> RlcConfig {
    config.down.format.he_special = true;
    config
}

/// Queues enough packets of this length for `seconds` at 3.6 Mbit/s, all before the TTI at 2 ms.
fn fill(run: &mut Run, length: usize, seconds: usize) {
    for n in 0..seconds * 460_000 / length {
        run.send(at(1), Direction::Down, numbered(n as u32, length));
    }
}

/// Number of complete PDUs of this length in blocks of 896 bytes. TSN and SI take one byte of a block, and each segment has a
/// header of two bytes.
fn pdus_in(blocks: u64, length: u64) -> u64 {
    let (mut pdus, mut left) = (0, length);
    for _ in 0..blocks {
        let mut room = 895;
        while room > 2 {
            let part = left.min(room - 2);
            room -= part + 2;
            left -= part;
            if left == 0 {
                pdus += 1;
                left = length;
            }
        }
    }
    pdus
}

#[test]
fn blocks_are_filled_completely() {
    // With 15-bit indicators, a 1500-byte packet makes a PDU of 1504 bytes; with HE = 10, one of 1502 bytes. 15 packets of
    // 40 bytes share a PDU of 632 bytes.
    for (config, length, packets, pdu) in [
        (flexible(strong_signal()), 1500, 1, 1504),
        (with_he_special(flexible(strong_signal())), 1500, 1, 1502),
        (flexible(strong_signal()), 40, 15, 632),
    ] {
        let mut run = Run::new(&config, 1);
        fill(&mut run, length, 10);
        run.until(Instant::from_secs(10));
        assert_eq!(of(&run, 0, "hsdpa/blocks"), 5000, "one TTI per 2 ms from 2 ms to 10 s");
        // The last block that arrived was sent 12 ms before the end.
        let expected = pdus_in(4994, pdu) * packets;
        let delivered = run.path.totals().down.left;
        assert_eq!(delivered, expected, "packets of {length} bytes in PDUs of {pdu}");
        assert_eq!(run.counter(Direction::Down, "sender/pdus_resent"), 0);
        assert_eq!(of(&run, 0, "hsdpa/incomplete"), 0);
        assert!(of(&run, 0, "hsdpa/segments") > of(&run, 0, "hsdpa/blocks"));
        run.check_conservation();
    }
}

/// A single packet makes one PDU, regardless of the number of blocks it needs.
#[test]
fn single_packet_takes_its_blocks_plus_the_delay() {
    for (length, blocks) in [(20, 1), (889, 1), (890, 2), (1500, 2), (1501, 2)] {
        let mut run = Run::new(&flexible(strong_signal()), 1);
        run.send(at(5), Direction::Down, numbered(0, length));
        run.until(at(3000));
        // The first TTI begins at 6 ms. The delay is 10 ms.
        assert_eq!(run.left, [(at(6 + 2 * blocks + 10), Direction::Down, numbered(0, length))], "{length}");
        assert_eq!((of(&run, 0, "hsdpa/blocks"), of(&run, 0, "hsdpa/pdus")), (blocks, 1), "{length}");
        assert_eq!(run.path.next_deadline(), None);
    }
}

/// CQI 1 has blocks of 17 bytes, too short for a PDU of 42 bytes.
#[test]
fn poor_reception_segments_a_pdu_over_blocks() {
    let hsdpa = HsdpaConfig { snr: "-15.8dB".parse().unwrap(), transmissions: 100, ..HsdpaConfig::default() };
    assert!(cell(hsdpa.clone()).validate().is_err());
    let mut run = Run::new(&flexible(hsdpa), 1);
    run.send(at(0), Direction::Down, numbered(0, 500));
    run.until(Instant::from_secs(10));
    assert_eq!(run.left.len(), 1);
    assert_eq!(run.left[0].2, numbered(0, 500));
    // 504 bytes, 14 in each block.
    assert_eq!(of(&run, 0, "hsdpa/segments"), 36);
}

#[test]
fn rlc_retransmits_pdus_with_segments_lost_by_harq() {
    let runs = [(0, 1), (3, 2), (4, 3), (1, 1), (2, 1)];
    for (seed, transmissions) in runs.into_iter().take(size(3, 5)) {
        let hsdpa = HsdpaConfig { others: full_buffers(2), transmissions, ..outdated_cqi() };
        let mut run = Run::recording(&flexible(hsdpa), seed, Recording::Off, true);
        for n in 0..500 {
            run.send(at(u64::from(n) * 10), Direction::Down, numbered(n, 200 + 5 * n as usize));
        }
        run.step_through(Instant::from_secs(40));
        let left = run.numbers();
        assert_eq!(left, (0..500).collect::<Vec<_>>(), "seed {seed}: each once and in order");
        for (n, (_, _, bytes)) in (0..).zip(&run.left) {
            assert_eq!(*bytes, numbered(n, 200 + 5 * n as usize));
        }
        if transmissions == 1 {
            assert!(of(&run, 0, "hsdpa/lost") > 10 && of(&run, 0, "hsdpa/incomplete") > 10);
            assert!(run.counter(Direction::Down, "sender/pdus_resent") > 10);
        }
        assert_eq!(run.counter(Direction::Down, "unknown_sdus"), 0);
        assert!(take_checked_pdus(&mut run).iter().all(|pdu| pdu.bytes.len() <= 1505));
    }
}

/// Bytes delivered in 10 s at full rate, with packets of this length.
fn goodput(config: &RlcConfig, length: usize) -> f64 {
    let mut run = Run::new(config, 1);
    fill(&mut run, length, 10);
    run.until(Instant::from_secs(10));
    run.path.totals().down.left_bytes as f64
}

/// Compares PDUs of 42 bytes with PDUs of flexible size in the same cell. A block of 7168 bits carries 21 PDUs of 42 bytes, each
/// with 40 bytes of packets and length indicators.
#[test]
fn flexible_size_saves_block_headers_and_padding() {
    let he = |config: RlcConfig| with_he_special(config);
    for (length, fixed, flexible_bytes) in [
        (1500, 840.0 * 1500.0 / 1501.0, 893.0 * 1500.0 / 1506.0),
        (40, 840.0 * 40.0 / 41.0, 893.0 * 600.0 / 634.0),
    ] {
        let [old, new] =
            [cell(strong_signal()), flexible(strong_signal())].map(|config| goodput(&config, length));
        let ratio = new / old;
        let expected = flexible_bytes / fixed;
        println!("{length} bytes: {ratio:.4}, expected {expected:.4}");
        assert!((ratio / expected - 1.0).abs() < 0.002, "{length}: {ratio}, expected {expected}");
    }
    let he_special =
        goodput(&he(flexible(strong_signal())), 1500) / goodput(&flexible(strong_signal()), 1500);
    assert!((he_special - 1506.0 / 1504.0).abs() < 0.001, "{he_special}");
}

/// The window counts PDUs. 128 PDUs of 42 bytes are 5 kB; 128 PDUs of 1504 bytes exceed the channel's capacity.
#[test]
fn window_of_large_pdus_holds_more_data() {
    let with_window = |mut config: RlcConfig| {
        (config.down.sender.window, config.down.receiver.window) = (128, 128);
        goodput(&config, 1500)
    };
    let full = goodput(&flexible(strong_signal()), 1500);
    assert_eq!(with_window(flexible(strong_signal())), full);
    assert!(with_window(cell(strong_signal())) < full / 2.0);
}

#[test]
fn all_mobiles_use_flexible_pdus_permanently() {
    let config = flexible(HsdpaConfig { others: full_buffers(3), ..strong_signal() });
    let mut run = Run::new(&config, 1);
    fill(&mut run, 1500, 10);
    run.until(Instant::from_secs(5));
    let blocks: Vec<u64> = (0..4).map(|mobile| of(&run, mobile, "hsdpa/blocks")).collect();
    assert!(blocks.iter().all(|count| (625..=626).contains(count)), "{blocks:?}");
    let delivered: Vec<u64> = (1..4).map(|mobile| of(&run, mobile, "delivered")).collect();
    let expected = pdus_in(622, 1504);
    assert!(delivered.iter().all(|count| count.abs_diff(expected) <= 2), "{delivered:?}, {expected}");
    for change in [None, Some(FlexibleConfig { most: Size::bytes(700), ..FlexibleConfig::default() })] {
        let mut changed = config.clone();
        changed.down.format.flexible = change;
        let error = run.path.reconfigure(Instant::from_secs(5), 0, &changed).unwrap_err().to_string();
        assert!(error.contains("`down.format.flexible`"), "{error}");
    }
}
