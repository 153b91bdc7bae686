//! The RLC bearer as a stage: its rate, delay and losses, and the outcome of every packet.

mod flexible;
mod hsdpa;
mod random;
mod rates;
mod reestablishment;
mod run;

use std::collections::BTreeMap;

use airlink::machine::Machine;
use airlink::packet::Direction;
use airlink::rlc::config::{BlockErrors, ChannelConfig, Counts, RlcConfig};
use airlink::rlc::umts::config::{Discard, PollConfig, WindowAt};
use airlink::stage::{DropReason, Event, IncidentKind, RadioPdu, Recording};
use airlink::stages::queue::Bounds;
use airtcp_testkit::sample::size;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Size};
use run::{Run, at, bler, ms, number_of, numbered};

/// A downlink that is never idle and never stalls.
///
/// Timer_Status_Prohibit (150 ms) exceeds the RLC round trip: 40 ms to the network, up to 10 ms until the next
/// TTI begins there, a few TTIs for about 20 retransmitted PDUs, and 40 ms back. Therefore no report requests PDUs
/// that are already in flight, and every undamaged block carries new data. The window of 2047 PDUs lasts 1.7 s,
/// which is eight reports. The probability that a PDU needs eight retransmissions is 10^-8.
fn saturated(p: f64) -> RlcConfig {
    let mut config = RlcConfig::wcdma_384();
    config.down.sender.window = 2047;
    config.down.receiver.window = 2047;
    config.down.sender.discard = Discard::ResetAfterMaxDat { max_dat: 40 };
    config.down.channel.errors = bler(p);
    config.up.channel.errors = bler(p);
    config
}

/// Queues enough 1500-byte packets to keep 384 kbit/s busy for `seconds` plus one second.
fn fill(run: &mut Run, seconds: u64) {
    for n in 0..(seconds as u32 + 1) * 32 {
        run.send(Instant::ZERO, Direction::Down, numbered(n, 1500));
    }
}

#[test]
fn goodput_falls_in_proportion_to_block_errors() {
    const SECONDS: u64 = 200;
    for p in size(&[0.0, 0.1][..], &[0.0, 0.01, 0.05, 0.1]) {
        let p = *p;
        let mut run = Run::new(&saturated(p), 7);
        fill(&mut run, SECONDS);
        run.until(Instant::from_secs(SECONDS));

        // 12 blocks of 40 bytes per 10 ms. Each packet needs one more byte for its length indicator. The first
        // blocks arrive after 50 ms.
        let blocks = 1200.0 * (SECONDS as f64 - 0.050);
        let expected = blocks * 40.0 * 1500.0 / 1501.0 * (1.0 - p);
        let delivered = run.path.totals().down.left_bytes as f64;
        let ratio = delivered / expected;
        assert!((ratio - 1.0).abs() < 0.01, "BLER {p}: delivered / expected = {ratio}");

        let stat = |name| run.counter(Direction::Down, name);
        assert_eq!(stat("blocks"), SECONDS * 1200 + 12, "BLER {p}: a TTI was not full");
        assert_eq!(stat("sender/resets"), 0);
        assert_eq!(stat("unknown_sdus"), 0);
        // Hardly any retransmission is unnecessary, so only the packets still in the window are missing.
        let arrived = (stat("blocks") - stat("blocks_lost")) as f64;
        let copies = stat("receiver/duplicates") as f64;
        assert!(copies <= arrived * 0.001, "BLER {p}: {copies} of {arrived} PDUs were duplicates");
        // Binomial distribution, 99.9 % interval.
        let (n, lost) = (stat("blocks") as f64, stat("blocks_lost") as f64);
        assert!((lost - n * p).abs() <= 3.29 * (n * p * (1.0 - p)).sqrt(), "BLER {p}: {lost} of {n}");
        run.check_conservation();
    }
}

#[test]
fn packets_leave_unchanged_and_in_order() {
    let mut config = saturated(0.1);
    config.up.channel.errors = BlockErrors::PerTti { bler: Probability::new(0.1) };
    let mut run = Run::new(&config, 3);
    let mut sent = [Vec::new(), Vec::new()];
    for n in 0..3000 {
        let length = [20, 38, 39, 40, 41, 80, 120, 576, 1499, 1500][n as usize % 10];
        let direction = if n % 3 == 0 { Direction::Up } else { Direction::Down };
        let packet = numbered(n, length);
        run.send(at(u64::from(n) * 20), direction, packet.clone());
        sent[direction as usize].push(packet);
    }
    run.until(at(90_000));
    assert_eq!(run.path.held(), 0);
    for direction in Direction::BOTH {
        let left: Vec<_> =
            run.left.iter().filter(|left| left.1 == direction).map(|left| left.2.clone()).collect();
        assert!(left == sent[direction as usize], "{direction}");
    }
}

/// Delay of a packet that enters an idle bearer `after` ms after the beginning of a TTI.
fn expected_delay(length: u64, after: u64, channel: &ChannelConfig) -> Duration {
    let tti = channel.tti.as_millis();
    // One more byte for the length indicator. If the packet ends exactly at the end of a PDU, the indicator is in
    // the next PDU.
    let mut pdus = (length + 1).div_ceil(40);
    let mut ttis = 0;
    while pdus > 0 {
        pdus -= match channel.counts {
            Counts::Any => pdus.min(channel.max_blocks().into()),
            Counts::Listed => {
                channel.blocks.iter().map(|count| u64::from(*count)).filter(|n| *n <= pdus).max().unwrap()
            }
        };
        ttis += 1;
    }
    let wait = (tti - (after + tti - channel.phase.as_millis() % tti) % tti) % tti;
    ms(wait + ttis * tti) + channel.delay
}

#[test]
fn single_packet_takes_its_ttis_plus_the_delay() {
    for counts in [Counts::Listed, Counts::Any] {
        for phase in [0, 3] {
            let mut config = RlcConfig::wcdma_384();
            for channel in [&mut config.down.channel, &mut config.up.channel] {
                channel.counts = counts;
                channel.phase = ms(phase);
                channel.delay = ms(33);
            }
            let mut run = Run::new(&config, 1);
            let mut now = 20;
            for length in [4, 20, 38, 39, 40, 41, 79, 80, 440, 479, 480, 576, 1499, 1500, 9000, 65_535] {
                for after in [0, 1, 3, 9, 13, 19] {
                    for direction in Direction::BOTH {
                        let packet = numbered(7, length);
                        let start = at(now + after);
                        run.send(start, direction, packet.clone());
                        // STATUS PDUs and Timer_Poll are finished by then.
                        now += 30_000;
                        run.until(at(now));
                        let channel = &config.direction(direction).channel;
                        let expected = start + expected_delay(length as u64, after, channel);
                        let what = format!("{length} bytes {direction}, {after} ms, {counts:?}, {phase} ms");
                        assert_eq!(run.left.len(), 1, "{what}");
                        assert_eq!(run.left.pop().unwrap(), (expected, direction, packet), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn idle_bearer_has_no_deadline() {
    let mut run = Run::new(&RlcConfig::wcdma_384(), 1);
    assert_eq!(run.path.next_deadline(), None);
    run.send(at(5), Direction::Down, numbered(0, 1500));
    assert_eq!(run.path.next_deadline(), Some(at(10)));
    run.until(Instant::from_secs(5));
    assert_eq!(run.left.len(), 1);
    assert_eq!(run.path.next_deadline(), None);
    // One STATUS PDU answered the poll.
    assert_eq!(run.counter(Direction::Up, "blocks"), 1);
}

#[test]
fn lost_block_is_retransmitted_after_a_status_report() {
    let mut config = RlcConfig::wcdma_384();
    config.down.channel.errors = BlockErrors::Listed { lost: vec![2] };
    let mut run = Run::recording(&config, 1, Recording::Off, true);
    run.send(Instant::ZERO, Direction::Down, numbered(0, 400));
    run.until(Instant::from_secs(2));
    // 11 PDUs: 8 in the TTI at 0 ms, 2 at 10 ms and 1 at 20 ms. The first 8 arrive at 50 ms without the third. The
    // STATUS PDU leaves in the uplink TTI at 60 ms and arrives at 120 ms. The retransmission starts immediately and
    // arrives at 170 ms.
    assert_eq!(run.left, [(at(170), Direction::Down, numbered(0, 400))]);
    let pdus = run.path.take_pdus();
    let repeated: Vec<_> = pdus.iter().filter(|pdu| pdu.transmission == 2).collect();
    assert_eq!(repeated.len(), 1);
    assert_eq!((repeated[0].at, repeated[0].direction, repeated[0].lost), (at(120), Direction::Down, false));
    assert_eq!(
        repeated[0].bytes[..2],
        [0x80, 2 << 3 | 1 << 2],
        "SN 2 with the poll of the last retransmission"
    );
    assert_eq!(pdus.iter().filter(|pdu| pdu.lost).count(), 1);
}

#[test]
fn radio_pdus_carry_their_sequence_number_epoch() {
    let mut config = saturated(0.0);
    config.down.sender.discard = Discard::ResetAfterMaxDat { max_dat: 4 };
    config.down.channel.errors = bler(0.1);
    let mut run = Run::recording(&config, 5, Recording::Off, true);
    fill(&mut run, 60);
    run.until(Instant::from_secs(60));
    assert!(run.counter(Direction::Down, "sender/resets") > 0);
    let mut seen = BTreeMap::new();
    let mut last = 0;
    for pdu in run.take_down_pdus().into_iter().filter(|pdu| pdu.bytes[0] & 0x80 != 0) {
        let sn = u16::from_be_bytes([pdu.bytes[0], pdu.bytes[1]]) >> 3 & 0xfff;
        // The P bit may differ between transmissions.
        let content = (pdu.bytes[1] & !4, pdu.bytes[2..].to_vec());
        let (first, times) = seen.entry((pdu.epoch, sn)).or_insert_with(|| (content.clone(), 0));
        *times += 1;
        assert_eq!(*first, content, "epoch {} SN {sn} was used for two different PDUs", pdu.epoch);
        assert_eq!(pdu.transmission, *times, "epoch {} SN {sn}", pdu.epoch);
        assert!(*times <= 3, "MaxDAT = 4 allows three transmissions");
        last = last.max(pdu.epoch);
    }
    assert!(last >> 12 > 20, "every RESET must start a new epoch: {last:#x}");
    run.check_conservation();
}

fn busy_both_ways(seed: u64) -> Vec<RadioPdu> {
    let mut config = RlcConfig::wcdma_384();
    config.down.channel.errors = bler(0.1);
    config.up.channel.errors = bler(0.05);
    let mut run = Run::recording(&config, seed, Recording::Off, true);
    for n in 0..2000 {
        let direction = if n % 4 == 0 { Direction::Up } else { Direction::Down };
        run.send(at(u64::from(n) * 17), direction, numbered(n, 40 + n as usize * 37 % 900));
    }
    run.until(at(60_000));
    run.path.take_pdus()
}

#[test]
fn radio_pdus_depend_only_on_the_seed() {
    let pdus = busy_both_ways(11);
    assert!(pdus.len() > 10_000);
    assert!(pdus == busy_both_ways(11));
    assert!(pdus != busy_both_ways(12));
}

#[test]
fn full_queue_drops_only_arriving_packets() {
    let mut config = RlcConfig::wcdma_384();
    config.down.queue = Bounds { packets: Some(3), bytes: None }.into();
    let mut run = Run::new(&config, 1);
    for n in 0..10 {
        run.send(at(1), Direction::Down, numbered(n, 1500));
    }
    run.until(at(10));
    // The transmission of the first packet has started, so the queue has room for one more.
    run.send(at(11), Direction::Down, numbered(10, 1500));
    run.send(at(11), Direction::Down, numbered(11, 1500));
    run.until(at(2000));
    let left = run.numbers();
    assert_eq!(left, [0, 1, 2, 10]);
    assert_eq!(run.path.totals().down.dropped_for(DropReason::QueueFull), 8);
    assert_eq!(run.path.held(), 0);
}

#[test]
fn non_ip_packets_pass_and_invalid_sdus_drop() {
    let mut run = Run::new(&RlcConfig::wcdma_384(), 1);
    let packets: [&[u8]; 5] = [&[0], &[0xff; 3], b"not IP", &[0x45; 19], &[0; 65_535]];
    for bytes in packets {
        run.send(at(0), Direction::Down, bytes.to_vec());
    }
    run.send(at(0), Direction::Down, Vec::new());
    run.send(at(0), Direction::Up, vec![0; 65_536]);
    run.until(at(5000));
    assert_eq!(run.left.iter().map(|left| left.2.as_slice()).collect::<Vec<_>>(), packets);
    assert_eq!(run.path.totals().down.dropped_for(DropReason::Malformed), 1);
    assert_eq!(run.path.totals().up.dropped_for(DropReason::TooLong), 1);
    run.check_conservation();
}

#[test]
fn live_settings_change_and_structural_ones_are_refused() {
    let config = RlcConfig::wcdma_384();
    let mut run = Run::new(&config, 1);
    let set = |run: &mut Run, now, change: &dyn Fn(&mut RlcConfig)| {
        let mut changed = config.clone();
        change(&mut changed);
        run.until(now);
        run.path.reconfigure(now, 0, &changed).map_err(|error| error.to_string())
    };
    for (name, change) in [
        (
            "down.format.pdu",
            &(|config: &mut RlcConfig| config.down.format.pdu = "82B".parse().unwrap())
                as &dyn Fn(&mut RlcConfig),
        ),
        ("up.sender.window", &|config| config.up.sender.window = 256),
        ("down.receiver.window", &|config| config.down.receiver.window = 256),
        ("down.channel.blocks", &|config| config.down.channel.blocks.clear()),
    ] {
        let error = set(&mut run, at(0), change).unwrap_err();
        assert!(error.contains(name), "{error}");
    }
    // A longer delay applies from the next TTI on.
    run.send(at(0), Direction::Down, numbered(0, 30));
    set(&mut run, at(5), &|config| config.down.channel.delay = ms(90)).unwrap();
    run.send(at(10), Direction::Down, numbered(1, 30));
    // New block errors, too.
    set(&mut run, at(15), &|config| config.down.channel.errors = bler(1.0)).unwrap();
    run.send(at(20), Direction::Down, numbered(2, 30));
    run.until(at(150));
    let left: Vec<_> = run.left.iter().map(|left| (left.0, number_of(&left.2))).collect();
    assert_eq!(left, [(at(50), 0), (at(110), 1)]);
    assert!(run.counter(Direction::Down, "blocks_lost") > 0);
    set(&mut run, at(150), &|_| {}).unwrap();
    run.until(at(3000));
    assert_eq!(run.left.len(), 3);
}

/// TS 25.322 §9.7.5, LOCAL_SUSPEND: the sender sends no new PDU with SN ≥ VT(S) + N until it is resumed.
#[test]
fn sender_can_be_suspended_and_resumed_while_running() {
    let mut config = RlcConfig::wcdma_384();
    let mut run = Run::recording(&config, 1, Recording::Incidents, false);
    fill(&mut run, 2);
    run.until(at(1_000));
    let sent = |run: &Run| run.counter(Direction::Down, "sender/pdus_new");
    let before = sent(&run);
    config.down.sender.suspend = Some(30);
    run.path.reconfigure(at(1_000), 0, &config).unwrap();
    assert_eq!(run.counter(Direction::Down, "sender/suspended"), 30);
    run.send(at(1_001), Direction::Up, numbered(999, 500));
    run.until(at(3_000));
    assert_eq!((sent(&run) - before, run.counter(Direction::Down, "sender/suspended")), (30, 0));
    assert!(run.left.iter().any(|left| left.1 == Direction::Up), "the other direction continues");
    assert_eq!(run.path.next_deadline(), None, "a suspended sender needs no timer");
    assert!(run.path.held() > 0);
    // Setting the same value again does not start a new suspension.
    run.path.reconfigure(at(3_000), 0, &config).unwrap();
    assert_eq!(run.counter(Direction::Down, "sender/suspended"), 0);
    config.down.sender.suspend = None;
    run.path.reconfigure(at(3_000), 0, &config).unwrap();
    assert!(run.path.stats()["radio"]["down"]["sender"]["suspended"].is_null());
    run.until(at(6_000));
    assert_eq!(run.path.held(), 0);
    let incidents: Vec<IncidentKind> =
        run.path.take_incidents().into_iter().map(|incident| incident.kind).collect();
    let direction = Direction::Down;
    assert_eq!(
        incidents,
        [IncidentKind::RlcSuspended { direction, pdus: 30 }, IncidentKind::RlcResumed { direction }]
    );
}

#[test]
fn sender_can_be_suspended_from_the_start() {
    let mut config = RlcConfig::wcdma_384();
    config.down.sender.suspend = Some(5);
    let mut run = Run::new(&config, 1);
    run.send(at(0), Direction::Down, numbered(0, 1500));
    run.until(at(3_000));
    assert_eq!(run.counter(Direction::Down, "sender/pdus_new"), 5);
    assert_eq!((run.left.len(), run.path.held()), (0, 1));
}

/// MRW discards while a report spans several PDUs and the uplink carries one block per TTI. Status PDUs stay in
/// order, so neither side receives an erroneous sequence number.
#[test]
fn discards_during_multi_pdu_reports_cause_no_reset() {
    for (seed, blocks) in [(1, vec![1]), (2, vec![1]), (3, vec![1, 2, 3, 4])] {
        let mut config = saturated(0.3);
        let max_dat = 3;
        config.down.sender.discard = Discard::MrwAfterMaxDat { max_dat, timer_mrw: ms(400), max_mrw: 32 };
        config.up.channel.errors = bler(0.0);
        config.up.channel.blocks = blocks;
        let mut run = Run::new(&config, seed);
        fill(&mut run, 60);
        run.until(Instant::from_secs(60));
        let stat = |name| run.counter(Direction::Down, name);
        // The counter counts every PDU of a report. Timer_Status_Prohibit allows one report per 150 ms.
        assert!(stat("sender/statuses_received") > 800, "{}", stat("sender/statuses_received"));
        assert!(stat("sender/discards") > 50, "{}", stat("sender/discards"));
        assert_eq!(stat("sender/resets"), 0, "seed {seed}");
        run.check_conservation();
    }
}

/// A discard needs a spare sequence number outside the window, which a window of 4095 does not have.
#[test]
fn window_of_4095_refuses_discard_by_mrw() {
    let (max_dat, timer_mrw, max_mrw) = (4, ms(200), 4);
    for (window, live) in [(4095, false), (3584, true)] {
        let mut config = RlcConfig::wcdma_384();
        (config.down.sender.window, config.down.receiver.window) = (window, window);
        let mut run = Run::new(&config, 1);
        config.down.sender.discard = Discard::MrwAfterMaxDat { max_dat, timer_mrw, max_mrw };
        let changed = run.path.reconfigure(at(0), 0, &config);
        match changed.map_err(|error| error.to_string()) {
            Ok(_) => assert!(live),
            Err(error) => assert!(!live && error.contains("down.sender.discard"), "{error}"),
        }
    }
}

/// A poll in the window's last PDU arrives 50 ms after the beginning of its TTI, and waits for the uplink's next TTI.
/// The answer arrives 60 ms later and opens the next window. The sender sends one window per round trip.
#[test]
fn sender_sends_one_advertised_window_per_round_trip() {
    let mut config = RlcConfig::wcdma_384();
    config.down.sender.poll = PollConfig { poll_window: Some(99), ..PollConfig::NONE };
    config.down.receiver.timer_status_prohibit = None;
    for (window, round_trip) in [(12, 120), (24, 120), (36, 140), (48, 140), (60, 160)] {
        config.down.receiver.advertise_window = Some(12);
        config.down.receiver.windows = vec![WindowAt { at: ms(500), window }];
        let mut run = Run::new(&config, 1);
        run.until(at(1_000));
        assert_eq!(run.counter(Direction::Down, "sender/window"), u64::from(window));
        for n in 0..100 {
            run.send(at(1_000), Direction::Down, numbered(n, 1_500));
        }
        run.until(at(1_000 + 10 * round_trip - 1));
        assert_eq!(run.counter(Direction::Down, "sender/pdus_new"), 10 * u64::from(window), "{window}");
        assert_eq!(run.counter(Direction::Down, "sender/window_full"), 10, "{window}");
        assert!(
            run.path.stats()["radio"]["up"]["sender"]["window"].is_null(),
            "the window applies to one direction only"
        );
        // Another window, set while the bearer runs.
        config.down.receiver.windows.clear();
        config.down.receiver.advertise_window = Some(window / 2 + 1);
        run.path.reconfigure(at(1_000 + 10 * round_trip - 1), 0, &config).unwrap();
        run.until(at(1_500 + 10 * round_trip));
        assert_eq!(run.counter(Direction::Down, "sender/window"), u64::from(window / 2 + 1));
    }
}

/// Goodput of a saturated downlink in kbit/s, with 10 % block errors.
fn goodput_with_tsp(tsp: Option<Duration>) -> f64 {
    const SECONDS: u64 = 60;
    let mut config = RlcConfig::wcdma_384();
    config.down.sender.window = 1024;
    config.down.receiver.window = 1024;
    config.down.receiver.timer_status_prohibit = tsp;
    config.down.sender.discard = Discard::ResetAfterMaxDat { max_dat: 40 };
    config.down.channel.errors = bler(0.1);
    config.up.channel.errors = bler(0.1);
    let mut run = Run::new(&config, 1);
    fill(&mut run, SECONDS);
    run.until(Instant::from_secs(SECONDS));
    run.path.totals().down.left_bytes as f64 * 8.0 / 1e3 / SECONDS as f64
}

/// "When TSP is small, many STATUS PDUs are generated … multiple retransmissions of the same PDU decrease the
/// effective link bandwidth, vice versa" (Inamura, Miyake, Okada, §2.2, Fig. 2).
#[test]
fn throughput_has_an_optimum_timer_status_prohibit() {
    // The optimum lies between 60 and 200 ms.
    let times =
        size(&[10, 60, 100, 200, 800][..], &[10, 20, 40, 60, 80, 100, 120, 150, 200, 300, 400, 500, 800]);
    let goodput: Vec<_> = times.iter().map(|tsp| (*tsp, goodput_with_tsp(Some(ms(*tsp))))).collect();
    for (tsp, rate) in &goodput {
        println!("TSP {tsp:3} ms: {rate:5.1} kbit/s");
    }
    let best = goodput.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let (first, last) = (goodput.first().unwrap(), goodput.last().unwrap());
    assert!(best.1 > 1.1 * first.1, "very frequent reports should reduce goodput: {goodput:?}");
    assert!(best.1 > 1.1 * last.1, "very rare reports should reduce goodput: {goodput:?}");
}
