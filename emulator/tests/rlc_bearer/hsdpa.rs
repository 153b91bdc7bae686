//! A downlink that several mobiles share: each mobile's share, and how RLC recovers its losses.

use airlink::mac::scheduler::Scheduling;
use airlink::rlc::umts::hs::config::{FastFading, HsdpaConfig, Load, OthersConfig};
use airlink::stages::times::Intervals;
use airtcp_testkit::sample::size;

use super::*;

/// RLC for several Mbit/s: a window of 2047 PDUs.
pub(crate) fn cell(hsdpa: HsdpaConfig) -> RlcConfig {
    let mut config = RlcConfig::wcdma_384();
    config.down.channel.delay = ms(10);
    config.down.sender.window = 2047;
    config.down.receiver.window = 2047;
    config.down.receiver.timer_status_prohibit = Some(ms(60));
    config.down.sender.discard = Discard::ResetAfterMaxDat { max_dat: 40 };
    config.up.channel.delay = ms(10);
    RlcConfig { hsdpa: Some(hsdpa), ..config }
}

pub(crate) fn strong_signal() -> HsdpaConfig {
    HsdpaConfig { snr: "40dB".parse().unwrap(), ..HsdpaConfig::default() }
}

pub(crate) fn full_buffers(mobiles: u32) -> Option<OthersConfig> {
    let text = format!("mobiles = {mobiles}\nsource = \"full-buffer\"");
    Some(toml::from_str(&text).unwrap())
}

fn fading() -> Option<FastFading> {
    Some(FastFading { speed: "3km/h".parse().unwrap(), carrier: "2GHz".parse().unwrap() })
}

/// Queues enough 1500-byte packets for `seconds` at 3.6 Mbit/s.
fn fill(run: &mut Run, seconds: u64) {
    for n in 0..seconds as u32 * 300 {
        run.send(Instant::ZERO, Direction::Down, numbered(n, 1500));
    }
}

/// Reads a counter of a mobile. Mobile 0 is the path's own.
pub(crate) fn of(run: &Run, mobile: usize, pointer: &str) -> u64 {
    let stats = run.path.stats();
    let mobile = match mobile.checked_sub(1) {
        None => format!("/radio/down/{pointer}"),
        Some(other) => format!("/radio/others/{other}/{pointer}"),
    };
    stats
        .pointer(&mobile)
        .and_then(serde_json::Value::as_u64)
        .unwrap_or_else(|| panic!("{mobile} in {stats:#}"))
}

#[test]
fn single_mobile_gets_the_rate_of_its_category() {
    let mut run = Run::new(&cell(strong_signal()), 1);
    fill(&mut run, 10);
    run.until(Instant::from_secs(10));
    // One TTI per 2 ms from 0 s to 10 s, both included.
    assert_eq!(of(&run, 0, "hsdpa/transmissions"), 5001);
    assert_eq!(of(&run, 0, "hsdpa/blocks"), 5001);
    assert_eq!(of(&run, 0, "hsdpa/pdus"), 5001 * 21);
    // 21 PDUs of 40 bytes, one byte of each packet for its length indicator. The last block that arrived was sent 12 ms
    // before the end.
    let expected = (4995 * 21 * 40) / 1501 * 1500;
    let delivered = run.path.totals().down.left_bytes;
    assert!(delivered.abs_diff(expected) <= 1500, "{delivered}, expected {expected}");
    assert_eq!(run.counter(Direction::Down, "sender/pdus_resent"), 0);
    run.check_conservation();
}

#[test]
fn mobiles_with_equal_reception_get_equal_shares() {
    for scheduler in [Scheduling::RoundRobin, Scheduling::ProportionalFair, Scheduling::MaxCqi] {
        let hsdpa = HsdpaConfig { scheduler, others: full_buffers(3), ..strong_signal() };
        let mut run = Run::new(&cell(hsdpa), 1);
        fill(&mut run, 10);
        run.until(Instant::from_secs(10));
        let blocks: Vec<u64> = (0..4).map(|mobile| of(&run, mobile, "hsdpa/blocks")).collect();
        assert_eq!(blocks.iter().sum::<u64>(), 5001, "{scheduler:?}");
        assert!(blocks.iter().all(|count| (1250..=1251).contains(count)), "{scheduler:?}: {blocks:?}");
        let pdus: Vec<u64> = (0..4).map(|mobile| of(&run, mobile, "hsdpa/pdus")).collect();
        assert!(
            pdus.iter().zip(&blocks).all(|(pdus, blocks)| *pdus == 21 * blocks),
            "{scheduler:?}: {pdus:?}"
        );
        run.check_conservation();
    }
}

#[test]
fn unused_capacity_goes_to_the_busy_mobile() {
    let others: OthersConfig =
        toml::from_str("mobiles = 2\nsource = \"cbr\"\nrate = \"200kbit\"\npacket = \"500B\"").unwrap();
    let mut run = Run::new(&cell(HsdpaConfig { others: Some(others), ..strong_signal() }), 1);
    fill(&mut run, 10);
    run.until(Instant::from_secs(10));
    for mobile in [1, 2] {
        // 50 packets per second. The last ones are still in flight.
        assert_eq!(of(&run, mobile, "packets"), 501);
        assert!((498..=501).contains(&of(&run, mobile, "delivered")));
    }
    let others = of(&run, 1, "hsdpa/transmissions") + of(&run, 2, "hsdpa/transmissions");
    assert_eq!(of(&run, 0, "hsdpa/transmissions"), 5001 - others);
}

#[test]
fn idle_cell_has_no_deadline() {
    let mut run = Run::new(&cell(strong_signal()), 1);
    assert_eq!(run.path.next_deadline(), None);
    run.send(at(5), Direction::Down, numbered(0, 500));
    assert_eq!(run.path.next_deadline(), Some(at(6)), "the next TTI");
    run.until(at(3000));
    assert_eq!(run.path.next_deadline(), None);
    // One TTI of 2 ms plus the delay.
    assert_eq!(run.left, [(at(18), Direction::Down, numbered(0, 500))]);
    assert_eq!((of(&run, 0, "hsdpa/blocks"), of(&run, 0, "hsdpa/pdus")), (1, 13));
}

/// The fading is so fast that CQI reports are outdated: HARQ retransmits often and gives up some blocks.
pub(crate) fn outdated_cqi() -> HsdpaConfig {
    HsdpaConfig {
        fading: Some(FastFading { speed: "50km/h".parse().unwrap(), carrier: "2GHz".parse().unwrap() }),
        cqi_delay: ms(20),
        transmissions: 2,
        ..HsdpaConfig::default()
    }
}

/// Returns the PDUs transmitted down. Checks that each PDU that RLC transmitted is recorded once, and recorded as lost if
/// one of its blocks was lost.
pub(crate) fn take_checked_pdus(run: &mut Run) -> Vec<RadioPdu> {
    let down = run.take_down_pdus();
    assert_eq!(down.len() as u64, of(run, 0, "hsdpa/pdus"));
    let received = run.counter(Direction::Down, "receiver/pdus_received")
        + run.counter(Direction::Down, "receiver/duplicates");
    let late = of(run, 0, "hsdpa/late");
    let data = down.iter().filter(|pdu| !pdu.lost && pdu.bytes[0] & 0x80 != 0).count() as u64;
    assert!(data == received || late > 0 && data > received, "{data} arrived, {received} were received");
    down
}

#[test]
fn rlc_retransmits_blocks_that_harq_gave_up() {
    let runs = [(0, 1), (3, 2), (4, 3), (1, 1), (2, 1)];
    for (seed, transmissions) in runs.into_iter().take(size(3, 5)) {
        let scheduler = Scheduling::ProportionalFair;
        let hsdpa = HsdpaConfig { others: full_buffers(2), scheduler, transmissions, ..outdated_cqi() };
        let mut run = Run::recording(&cell(hsdpa), seed, Recording::Off, true);
        for n in 0..500 {
            run.send(at(u64::from(n) * 10), Direction::Down, numbered(n, 200 + n as usize));
        }
        run.step_through(Instant::from_secs(20));
        let left = run.numbers();
        assert_eq!(left, (0..500).collect::<Vec<_>>(), "seed {seed}: each once and in order");
        assert!(of(&run, 0, "hsdpa/first_damaged") > 10);
        if transmissions == 1 {
            assert!(of(&run, 0, "hsdpa/lost") > 10);
            assert!(run.counter(Direction::Down, "sender/pdus_resent") > 10);
        }
        assert_eq!(run.counter(Direction::Down, "unknown_sdus"), 0);
        let lost = take_checked_pdus(&mut run).iter().filter(|pdu| pdu.lost).count() as u64;
        assert!(lost >= of(&run, 0, "hsdpa/lost"));
    }
}

/// MaxDAT is reached in a TTI that would carry another transmission. That TTI then carries nothing.
#[test]
fn bearer_failing_in_an_unused_tti_is_reestablished() {
    let mut config = cell(strong_signal());
    config.down.sender.window = 1;
    config.down.receiver.window = 1;
    config.down.sender.discard = Discard::ResetAfterMaxDat { max_dat: 1 };
    config.down.sender.max_rst = 1;
    // The outage blocks the STATUS PDU that would answer the first PDU.
    config.up.channel.outage = Some(Intervals { at: vec![ms(0)], lasts: ms(500), every: None });
    let mut run = Run::new(&config, 1);
    run.send(Instant::ZERO, Direction::Down, numbered(0, 1500));
    run.step_through(Instant::from_secs(5));
    assert_eq!(run.counter(Direction::Down, "sender/unrecoverable_errors"), 1);
    assert_eq!(run.path.held(), 0, "{:#}", run.path.stats());

    run.send(Instant::from_secs(5), Direction::Down, numbered(1, 40));
    run.step_through(Instant::from_secs(6));
    assert_eq!(run.numbers(), [1]);
}

#[test]
fn run_depends_only_on_the_seed() {
    let left = |seed| {
        let hsdpa = HsdpaConfig { others: full_buffers(2), ..outdated_cqi() };
        let mut run = Run::new(&cell(hsdpa), seed);
        for n in 0..200 {
            run.send(at(u64::from(n) * 10), Direction::Down, numbered(n, 1000));
        }
        run.until(Instant::from_secs(5));
        (run.left, run.path.stats())
    };
    assert_eq!(left(7), left(7));
    assert!(left(7).0 != left(8).0);
}

/// Bytes delivered to all mobiles in four seconds.
fn throughput(scheduler: Scheduling, seed: u64) -> f64 {
    let hsdpa = HsdpaConfig {
        scheduler,
        fading: fading(),
        average: 500,
        others: full_buffers(5),
        snr: "5dB".parse().unwrap(),
        ..HsdpaConfig::default()
    };
    let mut run = Run::new(&cell(hsdpa), seed);
    fill(&mut run, 4);
    run.until(Instant::from_secs(4));
    (0..6).map(|mobile| of(&run, mobile, "delivered_bytes") as f64).sum()
}

#[test]
fn proportional_fair_outperforms_round_robin() {
    let gains: Vec<f64> = (0..size(8, 20))
        .map(|seed| {
            throughput(Scheduling::ProportionalFair, seed) / throughput(Scheduling::RoundRobin, seed) - 1.0
        })
        .collect();
    let n = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / n;
    let deviation = (gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    assert!(mean - 3.29 * deviation / n.sqrt() > 0.0, "{mean} ± {deviation}");
}

#[test]
fn only_max_cqi_starves_the_weakest_mobile() {
    let shares = |scheduler| {
        let others: OthersConfig =
            toml::from_str("mobiles = 2\nsource = \"full-buffer\"\nsnr = \"5dB\"\nspread = \"8dB\"").unwrap();
        let hsdpa = HsdpaConfig {
            scheduler,
            others: Some(others),
            snr: "0dB".parse().unwrap(),
            ..HsdpaConfig::default()
        };
        let mut run = Run::new(&cell(hsdpa), 1);
        fill(&mut run, 4);
        run.until(Instant::from_secs(4));
        (0..3).map(|mobile| of(&run, mobile, "hsdpa/transmissions")).collect::<Vec<_>>()
    };
    let all = shares(Scheduling::RoundRobin);
    assert!(all.iter().all(|count| (660..=675).contains(count)), "{all:?}");
    let best = shares(Scheduling::MaxCqi);
    assert!(best[2] > 1900 && best[0] < 100, "{best:?}");
}

#[test]
fn live_settings_change_and_agreed_ones_are_refused() {
    let config = cell(HsdpaConfig { others: full_buffers(1), ..strong_signal() });
    let mut run = Run::new(&config, 1);
    fill(&mut run, 10);
    run.until(at(1000));
    let changed = |change: &dyn Fn(&mut HsdpaConfig)| {
        let mut config = config.clone();
        change(config.hsdpa.as_mut().unwrap());
        config
    };
    let before = of(&run, 0, "hsdpa/pdus");
    // CQI 8: blocks of 792 bits, two PDUs.
    let worse = changed(&|hsdpa| hsdpa.snr = "-8dB".parse().unwrap());
    run.path.reconfigure(at(1000), 0, &worse).unwrap();
    run.until(at(2000));
    let more = of(&run, 0, "hsdpa/pdus") - before;
    assert!((400..=520).contains(&more), "{more}");
    assert_eq!([0, 1].map(|mobile| of(&run, mobile, "hsdpa/cqi")), [8, 8]);
    for (key, refused) in [
        ("hsdpa.processes", changed(&|hsdpa| hsdpa.processes = 5)),
        ("hsdpa.window", changed(&|hsdpa| hsdpa.window = 8)),
        ("hsdpa.others", changed(&|hsdpa| hsdpa.others = None)),
        ("hsdpa", RlcConfig { hsdpa: None, ..config.clone() }),
    ] {
        let error = run.path.reconfigure(at(2000), 0, &refused).unwrap_err().to_string();
        assert!(error.contains(&format!("`{key}`")), "{error}");
    }
    assert_eq!(full_buffers(1).unwrap().source, Load::FullBuffer);
}
