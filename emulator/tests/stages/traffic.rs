//! Traffic sources inside the network.

use airlink::packet::{Origin, Purpose};
use airlink::stage::Outbox;
use airlink::stages::duplex::OneWaySettings;
use airlink::stages::traffic::{Begins, Source};
use airwire::units::Size;

use super::*;

pub(super) fn cbr() -> TrafficConfig {
    TrafficConfig {
        source: Source::Cbr,
        sources: 1,
        rate: kbit(80),
        packet: Size::bytes(100),
        shape: None,
        mean_on: None,
        mean_off: None,
        begins: Begins::On,
        leaves_after: "stage-1".to_owned(),
        starts: ms(1000),
    }
}

#[test]
fn background_packets_delay_others_and_reach_no_host() {
    // The source uses half of a link of 160 kbit/s: 5 ms of every 10 ms.
    let slow = LinkConfig { rate: Some(kbit(160)), ..LinkConfig::default() };
    let mut path = path(vec![traffic(&cbr(), 1), link(&slow)]);
    let arrived =
        run(&mut path, &[(at(ms(900)), 100), (at(ms(1002)), 100), (at(ms(1018)), 100)], at(ms(2005)));
    assert_eq!(arrived, [(0, at(ms(905))), (1, at(ms(1010))), (2, at(ms(1023)))]);
    assert_eq!((path.totals().down.entered, path.totals().down.left), (3, 3));
    // Sent at 1000, 1010, …, 2000 ms.
    let background = &path.background().down;
    assert_eq!((background.entered, background.left, background.left_bytes), (101, 101, 10_100));
}

#[test]
fn new_packet_size_applies_to_next_packet() {
    let mut path = path(vec![traffic(&cbr(), 1), link(&LinkConfig::default())]);
    run(&mut path, &[], at(ms(1015)));
    let larger = TrafficConfig { packet: Size::bytes(200), ..cbr() };
    path.reconfigure(at(ms(1015)), 0, &down_only(larger)).unwrap();
    run(&mut path, &[], at(ms(1045)));
    let background = &path.background().down;
    // Two packets of 100 bytes, at 1000 and 1010 ms. One at 1020 ms, and the next after 20 ms at 80 kbit/s.
    assert_eq!((background.left, background.left_bytes), (4, 600));
}

#[test]
fn background_packets_are_valid_udp() {
    let mut out = Outbox::new(Recording::Off, false);
    for (length, sources) in [(28, 3), (1500, 3), (65_535, 1)] {
        let config = TrafficConfig { packet: Size::bytes(length), sources, ..cbr() };
        let mut source = traffic(&config, 7);
        let now = source.next_deadline().unwrap();
        source.handle_deadline(now, &mut out);
        for packet in out.take() {
            assert_eq!(packet.len() as u64, length);
            assert_eq!(packet.origin, Origin::Background { leaves_after: 7 });
            assert_eq!(packet.purpose(), Some(Purpose::Data));
            let ip = smoltcp::wire::Ipv4Packet::new_checked(&packet.bytes[..]).unwrap();
            assert!(ip.verify_checksum());
            let udp = smoltcp::wire::UdpPacket::new_checked(ip.payload()).unwrap();
            assert!(udp.verify_checksum(&ip.src_addr().into(), &ip.dst_addr().into()));
            assert_eq!(udp.dst_port(), 9);
        }
    }
}

/// Times at which a source sends packets until `end`.
fn sent_by(config: &TrafficConfig, end: Instant) -> Vec<Instant> {
    let mut source = traffic(config, 0);
    let mut out = Outbox::new(Recording::Off, false);
    let mut times = Vec::new();
    while let Some(now) = source.next_deadline().filter(|now| *now <= end) {
        source.handle_deadline(now, &mut out);
        times.extend(out.take().iter().map(|_| now));
    }
    times
}

#[test]
fn starts_of_several_sources_are_spread_evenly() {
    let times = sent_by(&TrafficConfig { sources: 4, ..cbr() }, at(ms(1010)));
    assert_eq!(times, [1_000_000, 1_002_500, 1_005_000, 1_007_500, 1_010_000].map(Instant::from_micros));
}

pub(super) fn pareto(shape: f64) -> TrafficConfig {
    TrafficConfig {
        source: Source::ParetoOnOff,
        rate: kbit(800),
        shape: Some(shape),
        mean_on: Some(ms(1000)),
        mean_off: Some(ms(2000)),
        starts: ms(0),
        ..cbr()
    }
}

/// On and off times in seconds. Their resolution is the packet interval of 1 ms.
fn on_and_off(times: &[Instant]) -> (Vec<f64>, Vec<f64>) {
    let (mut on, mut off, mut begin) = (Vec::new(), Vec::new(), times[0]);
    for pair in times.windows(2) {
        if pair[1] - pair[0] > ms(100) {
            on.push((pair[0] - begin).as_secs_f64());
            off.push((pair[1] - pair[0]).as_secs_f64());
            begin = pair[1];
        }
    }
    (on, off)
}

#[test]
fn pareto_sources_have_the_configured_mean_times() {
    // With shape a = 3, the variance is finite, mean² / (a (a − 2)), which bounds the error of the mean.
    let times = sent_by(&pareto(3.0), Instant::from_secs(12_000));
    let (on, off) = on_and_off(&times);
    for (lengths, mean) in [(on, 1.0), (off, 2.0)] {
        let n = lengths.len() as f64;
        let found = lengths.iter().sum::<f64>() / n;
        let deviation = mean / 3.0_f64.sqrt() / n.sqrt();
        // Packets are 1 ms apart, which limits the resolution.
        assert!((found - mean).abs() < 3.2905 * deviation + 0.001, "{found} over {n}");
    }
    // 1000 packets/s for a third of the time. Variance of a renewal reward process with on times X and off times Y:
    // Var ≈ (t / E[X+Y]) · Var(X − (X + Y)/3) · 1000².
    let (x, y) = (1.0 / 3.0, 4.0 / 3.0);
    let deviation = 1000.0 * (12_000.0_f64 / 3.0 * (x * 4.0 / 9.0 + y / 9.0)).sqrt();
    let found = times.len() as f64;
    assert!((found - 4_000_000.0).abs() < 3.2905 * deviation, "{found} packets");
}

#[test]
fn pareto_sources_have_the_configured_tail() {
    // With shape 1.5, the variance is infinite, so check quantiles: P(X > x) = (m / x)^1.5 with m = mean / 3.
    let (on, off) = on_and_off(&sent_by(&pareto(1.5), Instant::from_secs(20_000)));
    for (lengths, minimum) in [(on, 1.0 / 3.0), (off, 2.0 / 3.0)] {
        let n = lengths.len() as f64;
        assert!(n > 4000.0 && lengths.iter().all(|length| *length > minimum - 0.002));
        for factor in [1.5, 3.0, 10.0, 30.0_f64] {
            let share = factor.powf(-1.5);
            let beyond = lengths.iter().filter(|length| **length > minimum * factor).count() as f64;
            let interval = 3.2905 * (n * share * (1.0 - share)).sqrt();
            assert!((beyond - n * share).abs() < interval, "{beyond} of {n} above {factor} × the minimum");
        }
    }
}

/// The first packet comes after an off time, whose minimum is 2/3 s and whose mean is 2 s.
#[test]
fn source_can_start_with_an_off_time() {
    let first = |begins, seed| {
        let mut source = traffic_of(&TrafficConfig { begins, ..pareto(1.5) }, 0, &format!("traffic/{seed}"));
        let mut out = Outbox::new(Recording::Off, false);
        loop {
            let now = source.next_deadline().unwrap();
            source.handle_deadline(now, &mut out);
            if !out.take().is_empty() {
                return now;
            }
        }
    };
    assert_eq!(first(Begins::On, 1), Instant::ZERO);
    let waits: Vec<_> = (1..=50).map(|seed| first(Begins::Off, seed)).collect();
    assert!(waits.iter().all(|wait| *wait > at(ms(666))), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait > at(ms(1500))), "{waits:?}");
}

#[test]
fn invalid_sources_are_refused_with_a_hint() {
    for (config, hint) in [
        (TrafficConfig { packet: Size::bytes(27), ..cbr() }, "`packet`"),
        (TrafficConfig { sources: 0, ..cbr() }, "`sources`"),
        (TrafficConfig { shape: Some(1.5), ..cbr() }, "valid only with"),
        (TrafficConfig { begins: Begins::Off, ..cbr() }, "valid only with"),
        (
            TrafficConfig { mean_on: None, ..pareto(1.5) },
            "`mean_on`: required by the source \"pareto-on-off\"",
        ),
        (TrafficConfig { shape: Some(1.0), ..pareto(1.5) }, "`shape`"),
        (TrafficConfig { shape: Some(f64::NAN), ..pareto(1.5) }, "`shape`"),
        (TrafficConfig { mean_off: Some(ms(0)), ..pareto(1.5) }, "`mean_off`"),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}
