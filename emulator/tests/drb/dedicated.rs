//! A second bearer with priority: which packets it carries, and how long they wait while the other bearer's
//! queue is full.

use airlink::drb::config::{DedicatedConfig, LteConfig, Nr, NrConfig, RlcMode};
use airlink::packet::Direction;
use airlink::settings::Settings;
use airlink::stage::DropReason;
use airwire::time::{Duration, Instant};
use airwire::units::Size;

use crate::run::{Run, at, ms, number_of};
use crate::set_bler;

/// Expedited forwarding.
const EF: u8 = 46;
const SLOT: Duration = Duration::from_micros(500);

/// A UDP packet over IPv4 or IPv6, whose payload begins with its number.
fn udp(version: u8, dscp: u8, ports: [u16; 2], number: u32, length: usize) -> Vec<u8> {
    let header: usize = if version == 4 { 20 } else { 40 };
    let mut packet = vec![0; length.max(header + 12)];
    let total = packet.len() as u16;
    if version == 4 {
        packet[..4].copy_from_slice(&[0x45, dscp << 2, (total >> 8) as u8, total as u8]);
        packet[8..20].copy_from_slice(&[64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    } else {
        let class = dscp << 2;
        packet[..8].copy_from_slice(&[0x60 | class >> 4, class << 4, 0, 0, 0, 0, 17, 64]);
        packet[4..6].copy_from_slice(&(total - 40).to_be_bytes());
    }
    packet[header..header + 2].copy_from_slice(&ports[0].to_be_bytes());
    packet[header + 2..header + 4].copy_from_slice(&ports[1].to_be_bytes());
    packet[header + 4..header + 6].copy_from_slice(&(total - header as u16).to_be_bytes());
    packet[header + 8..header + 12].copy_from_slice(&number.to_be_bytes());
    packet
}

fn with_dscp() -> DedicatedConfig<Nr> {
    DedicatedConfig { dscp: vec![EF], ..DedicatedConfig::default() }
}

/// Delays of packets with DSCP EF, one every 13.7 ms, in this direction. `bulk`: the default bearer has a
/// full queue; otherwise it is idle.
fn delays(config: &dyn Settings, direction: Direction, bulk: bool) -> Vec<Duration> {
    let mut run = Run::new(config, 5);
    let mut entered = Vec::new();
    let last = Instant::from_secs(2);
    let mut now = Instant::ZERO;
    while now < last {
        // More than the link carries.
        for _ in 0..if bulk { 4 } else { 0 } {
            run.send(now, direction, udp(4, 0, [5001, 5002], u32::MAX, 1500));
        }
        if now.as_micros() % 13_700 < 100 {
            let now = now + Duration::from_micros(30);
            run.send(now, direction, udp(4, EF, [4000, 4001], entered.len() as u32, 200));
            entered.push(now);
        }
        now += Duration::from_micros(100);
    }
    run.until(last + Duration::from_secs(60));
    let mut delays = vec![None; entered.len()];
    for (at, _, bytes) in &run.left {
        if bytes[1] >> 2 == EF {
            let number = number_of(&bytes[28..]) as usize;
            delays[number] = Some(*at - entered[number]);
        }
    }
    delays.into_iter().map(|delay| delay.expect("a packet with priority arrives")).collect()
}

/// Settings with and without the second bearer.
fn pair(bler: f64) -> [NrConfig; 2] {
    let mut config = NrConfig::default();
    for direction in [&mut config.down, &mut config.up] {
        direction.tbs = Some(Size::bytes(10_000));
        set_bler(&mut direction.harq, bler, 0.0);
    }
    let mut dedicated = with_dscp();
    dedicated.rlc.mode = RlcMode::Um;
    [config.clone(), NrConfig { dedicated: Some(dedicated), ..config }]
}

#[test]
fn bulk_data_does_not_delay_priority() {
    let [_, config] = pair(0.0);
    for direction in Direction::BOTH {
        let (idle, busy) = (delays(&config, direction, false), delays(&config, direction, true));
        for (idle, busy) in idle.iter().zip(&busy) {
            // In the uplink, the buffer reports of bulk data make requests unnecessary.
            assert!(busy <= idle, "{direction}: {busy} instead of {idle}");
        }
    }
}

#[test]
fn priority_waits_for_at_most_harq() {
    let [single, config] = pair(0.1);
    let round_trip = config.down.harq.round_trip;
    for direction in Direction::BOTH {
        let idle = delays(&config, direction, false).into_iter().max().unwrap();
        let busy = delays(&config, direction, true).into_iter().max().unwrap();
        // A retransmission of bulk data can occupy the next slot of the direction.
        assert!(busy <= idle + SLOT * 5 + round_trip, "{direction}: {busy} instead of {idle}");
        assert!(busy < ms(30), "{direction}: {busy}");
        let without = delays(&single, direction, true).into_iter().max().unwrap();
        assert!(without > ms(200), "{direction}: {without} without a second bearer");
    }
}

#[test]
fn lte_bearers_share_transport_blocks() {
    let mut config = LteConfig { dedicated: Some(DedicatedConfig::default()), ..LteConfig::default() };
    config.dedicated.as_mut().unwrap().ports = vec![4001];
    let mut run = Run::new(&config, 5);
    let before = Instant::from_nanos(999_999);
    run.send(before, Direction::Down, udp(4, 0, [1, 2], 0, 1400));
    run.send(before, Direction::Down, udp(4, 0, [1, 4001], 1, 200));
    run.until(at(100));
    let left: Vec<_> = run.left.iter().map(|(at, _, bytes)| (*at, number_of(&bytes[28..]))).collect();
    assert_eq!(left, [(at(4), 1), (at(4), 0)], "both in the second subframe, priority first");
    assert_eq!(run.counter(Direction::Down, "harq/transport_blocks"), 1);
    // On each bearer, the PDCP header and the RLC header take two octets each.
    assert_eq!(run.counter(Direction::Down, "harq/pdu_bytes"), 1600 + 4 * 2);
}

#[test]
fn dscp_and_ports_select_the_bearer() {
    let dedicated = DedicatedConfig { ports: vec![53, 5060], ..with_dscp() };
    let config = NrConfig { dedicated: Some(dedicated), ..NrConfig::default() };
    let mut later = udp(4, 0, [5060, 9], 0, 100);
    later[7] = 1;
    for (packet, is_dedicated) in [
        (udp(4, 0, [1, 2], 0, 100), false),
        (udp(4, EF, [1, 2], 0, 100), true),
        (udp(6, EF, [1, 2], 0, 100), true),
        (udp(6, EF - 1, [1, 2], 0, 100), false),
        (udp(4, 0, [53, 2], 0, 100), true),
        (udp(6, 0, [1, 5060], 0, 100), true),
        (udp(4, EF + 1, [54, 5061], 0, 100), false),
        // A later fragment has no ports.
        (later, false),
        (b"not IP".to_vec(), false),
    ] {
        let mut run = Run::new(&config, 5);
        run.send(Instant::ZERO, Direction::Down, packet.clone());
        run.until(at(100));
        assert_eq!(run.left.len(), 1);
        let stats = run.path.stats();
        let count = |pointer| stats.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap();
        let counts = [count("/radio/dedicated/down/packets"), count("/radio/down/packets")];
        assert_eq!(counts, [u64::from(is_dedicated), u64::from(!is_dedicated)], "{packet:?}");
    }
}

#[test]
fn queues_of_the_bearers_are_separate() {
    let [_, mut config] = pair(0.0);
    config.down.queue.bounds.packets = Some(10);
    config.dedicated.as_mut().unwrap().queue.bounds.packets = Some(3);
    let mut run = Run::new(&config, 5);
    for n in 0..20 {
        run.send(Instant::from_nanos(1), Direction::Down, udp(4, 0, [1, 2], n, 1500));
        run.send(Instant::from_nanos(1), Direction::Down, udp(4, EF, [1, 2], n, 1500));
    }
    run.until(at(100));
    run.check_conservation();
    let dropped = run.path.totals().down.dropped_for(DropReason::QueueFull);
    assert_eq!((run.left.len() as u64, dropped), (13, 27));
}
