//! PDUs of a flexible size over a downlink that is shared: what its blocks carry, and what it is worth.

use airlink::rlc::umts::config::{FlexibleConfig, FormatConfig};
use airlink::rlc::umts::hs::config::HsdpaConfig;
use airtcp_testkit::sample::size;

use super::hsdpa::{bad, cell, full_buffers, loud, of};
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

/// Packets of so many octets, enough to fill so many seconds of 3.6 Mbit/s: all of them wait before the TTI at 2 ms.
fn fill(run: &mut Run, octets: usize, seconds: usize) {
    for n in 0..seconds * 460_000 / octets {
        run.send(at(1), Direction::Down, numbered(n as u32, octets));
    }
}

/// How many PDUs of so many octets so many blocks of 896 octets carry: one octet is TSN and SI, and each part has a header of
/// two.
fn pdus_in(blocks: u64, octets: u64) -> u64 {
    let (mut pdus, mut left) = (0, octets);
    for _ in 0..blocks {
        let mut room = 895;
        while room > 2 {
            let taken = left.min(room - 2);
            room -= taken + 2;
            left -= taken;
            if left == 0 {
                pdus += 1;
                left = octets;
            }
        }
    }
    pdus
}

#[test]
fn blocks_are_full_to_the_octet() {
    // With 15-bit indicators a packet of 1500 octets is a PDU of 1504, with HE = 10 one of 1502. 15 packets of 40 octets share
    // one of 632.
    for (config, octets, packets, pdu) in [
        (flexible(loud()), 1500, 1, 1504),
        (with_he_special(flexible(loud())), 1500, 1, 1502),
        (flexible(loud()), 40, 15, 632),
    ] {
        let mut run = Run::new(&config, 1);
        fill(&mut run, octets, 10);
        run.until(Instant::from_secs(10));
        assert_eq!(of(&run, 0, "hsdpa/blocks"), 5000, "from 2 ms to just at 10 s");
        // The last one that has arrived began 12 ms before the end.
        let expected = pdus_in(4994, pdu) * packets;
        let delivered = run.path.totals().down.left;
        assert_eq!(delivered, expected, "packets of {octets} octets in PDUs of {pdu}");
        assert_eq!(run.counter(Direction::Down, "sender/pdus_resent"), 0);
        assert_eq!(of(&run, 0, "hsdpa/incomplete"), 0);
        assert!(of(&run, 0, "hsdpa/segments") > of(&run, 0, "hsdpa/blocks"));
        run.check_conservation();
    }
}

/// A packet alone in the cell is one PDU, however many blocks it takes.
#[test]
fn a_packet_alone_needs_its_blocks_and_the_delay() {
    for (octets, blocks) in [(20, 1), (889, 1), (890, 2), (1500, 2), (1501, 2)] {
        let mut run = Run::new(&flexible(loud()), 1);
        run.send(at(5), Direction::Down, numbered(0, octets));
        run.until(at(3000));
        // TTIs from 6 ms on, and a delay of 10 ms.
        assert_eq!(run.left, [(at(6 + 2 * blocks + 10), Direction::Down, numbered(0, octets))], "{octets}");
        assert_eq!((of(&run, 0, "hsdpa/blocks"), of(&run, 0, "hsdpa/pdus")), (blocks, 1), "{octets}");
        assert_eq!(run.path.next_deadline(), None);
    }
}

/// CQI 1 has blocks of 17 octets, none of which takes a PDU of 42.
#[test]
fn whoever_receives_too_badly_for_a_pdu_gets_it_in_parts() {
    let hsdpa = HsdpaConfig { snr: "-15.8dB".parse().unwrap(), transmissions: 100, ..HsdpaConfig::default() };
    assert!(cell(hsdpa.clone()).validate().is_err());
    let mut run = Run::new(&flexible(hsdpa), 1);
    run.send(at(0), Direction::Down, numbered(0, 500));
    run.until(Instant::from_secs(10));
    assert_eq!(run.left.len(), 1);
    assert_eq!(run.left[0].2, numbered(0, 500));
    // 504 octets, 14 in each block.
    assert_eq!(of(&run, 0, "hsdpa/segments"), 36);
}

#[test]
fn rlc_repeats_what_harq_has_given_up_a_part_of() {
    let runs = [(0, 1), (3, 2), (4, 3), (1, 1), (2, 1)];
    for (seed, transmissions) in runs.into_iter().take(size(3, 5)) {
        let hsdpa = HsdpaConfig { others: full_buffers(2), transmissions, ..bad() };
        let mut run = Run::recording(&flexible(hsdpa), seed, Recording::Off, true);
        for n in 0..500 {
            run.send(at(u64::from(n) * 10), Direction::Down, numbered(n, 200 + 5 * n as usize));
        }
        run.step_through(Instant::from_secs(40));
        let left: Vec<u32> = run.left.iter().map(|(_, _, bytes)| number_of(bytes)).collect();
        assert_eq!(left, (0..500).collect::<Vec<_>>(), "seed {seed}: each once and in order");
        for (n, (_, _, bytes)) in (0..).zip(&run.left) {
            assert_eq!(*bytes, numbered(n, 200 + 5 * n as usize));
        }
        if transmissions == 1 {
            assert!(of(&run, 0, "hsdpa/lost") > 10 && of(&run, 0, "hsdpa/incomplete") > 10);
            assert!(run.counter(Direction::Down, "sender/pdus_resent") > 10);
        }
        assert_eq!(run.counter(Direction::Down, "unknown_sdus"), 0);
        // Each PDU that RLC transmitted was put on record once; it arrives if none of its blocks was lost.
        let pdus = run.path.take_pdus();
        let down: Vec<&RadioPdu> = pdus.iter().filter(|pdu| pdu.direction == Direction::Down).collect();
        assert_eq!(down.len() as u64, of(&run, 0, "hsdpa/pdus"));
        let received = run.counter(Direction::Down, "receiver/pdus_received")
            + run.counter(Direction::Down, "receiver/duplicates");
        let late = of(&run, 0, "hsdpa/late");
        let data = down.iter().filter(|pdu| !pdu.lost && pdu.bytes[0] & 0x80 != 0).count() as u64;
        assert!(data == received || late > 0 && data > received, "{data} arrived, {received} were received");
        assert!(down.iter().all(|pdu| pdu.bytes.len() <= 1505));
    }
}

/// Goodput in octets of 10 s at full rate, with packets of so many octets.
fn goodput(config: &RlcConfig, octets: usize) -> f64 {
    let mut run = Run::new(config, 1);
    fill(&mut run, octets, 10);
    run.until(Instant::from_secs(10));
    run.path.totals().down.left_bytes as f64
}

/// The same cell, with PDUs of 42 octets and with a flexible size. A block of 7168 bits has 21 of those, each with 40 octets
/// of packets and their indicators.
#[test]
fn a_flexible_size_is_worth_what_headers_and_padding_of_blocks_take() {
    let he = |config: RlcConfig| with_he_special(config);
    for (octets, fixed, flexible_octets) in [
        (1500, 840.0 * 1500.0 / 1501.0, 893.0 * 1500.0 / 1506.0),
        (40, 840.0 * 40.0 / 41.0, 893.0 * 600.0 / 634.0),
    ] {
        let [old, new] = [cell(loud()), flexible(loud())].map(|config| goodput(&config, octets));
        let ratio = new / old;
        let expected = flexible_octets / fixed;
        println!("{octets} octets: {ratio:.4}, expected {expected:.4}");
        assert!((ratio / expected - 1.0).abs() < 0.002, "{octets}: {ratio}, expected {expected}");
    }
    let he_special = goodput(&he(flexible(loud())), 1500) / goodput(&flexible(loud()), 1500);
    assert!((he_special - 1506.0 / 1504.0).abs() < 0.001, "{he_special}");
}

/// A window counts PDUs: 128 of 42 octets are 5 kB, 128 of 1504 are more than the channel holds.
#[test]
fn a_window_of_large_pdus_holds_more() {
    let with_window = |mut config: RlcConfig| {
        (config.down.sender.window, config.down.receiver.window) = (128, 128);
        goodput(&config, 1500)
    };
    let full = goodput(&flexible(loud()), 1500);
    assert_eq!(with_window(flexible(loud())), full);
    assert!(with_window(cell(loud())) < full / 2.0);
}

#[test]
fn both_ends_agree_on_the_size_and_others_have_it_too() {
    let config = flexible(HsdpaConfig { others: full_buffers(3), ..loud() });
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
