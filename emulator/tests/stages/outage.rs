//! Packets during an outage are dropped or requeued.

use airlink::stages::duplex::OneWaySettings;
use airlink::stages::outage::DuringOutage;
use airlink::stages::queue::Bounds;

use super::*;

fn outages(packets: DuringOutage) -> OutageConfig {
    OutageConfig {
        at: vec![ms(100), ms(300)],
        lasts: ms(50),
        every: Some(ms(1000)),
        packets,
        queue: Bounds::default(),
    }
}

#[test]
fn outage_drops_packets_until_just_before_its_end() {
    let times = [99, 100, 149, 150, 299, 300, 350, 1099, 1100, 1149, 1150, 7320, 7350];
    let sent: Vec<_> = times.iter().map(|time| (at(ms(*time)), 100)).collect();
    let mut path = path(vec![outage(&outages(DuringOutage::Dropped))]);
    let arrived = run(&mut path, &sent, HOUR);
    let left: Vec<u64> = arrived.iter().map(|(_, time)| time.as_millis()).collect();
    assert_eq!(left, [99, 150, 299, 350, 1099, 1150, 7350]);
    let dropped = dropped(&mut path);
    assert!(dropped.len() == 6 && dropped.iter().all(|(_, why)| *why == DropReason::Outage), "{dropped:?}");
}

#[test]
fn requeueing_outage_keeps_packets_in_order() {
    let queue = Bounds { packets: Some(3), bytes: None };
    let config = OutageConfig { queue, ..outages(DuringOutage::Requeued) };
    let slow = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let sent: Vec<_> = [90, 110, 120, 130, 140, 150].map(|time| (at(ms(time)), 100)).into();
    let mut path = path(vec![outage(&config), link(&slow)]);
    // The queue has no room for packet 4. Packet 5 arrives exactly at the end of the outage and follows the waiting
    // packets. The next stage paces them at 10 ms per packet.
    let arrived = run(&mut path, &sent, HOUR);
    assert_eq!(
        arrived,
        [(0, at(ms(100))), (1, at(ms(160))), (2, at(ms(170))), (3, at(ms(180))), (5, at(ms(190)))]
    );
    assert_eq!(dropped(&mut path), [(4, DropReason::QueueFull)]);
}

#[test]
fn adjacent_outages_hold_packets_without_a_gap() {
    let config = OutageConfig { at: vec![ms(100), ms(150)], every: None, ..outages(DuringOutage::Requeued) };
    assert_eq!(run(&mut path(vec![outage(&config)]), &[(at(ms(120)), 100)], HOUR), [(0, at(ms(200)))]);
}

#[test]
fn cancelled_outage_releases_its_packets() {
    let mut path = path(vec![outage(&outages(DuringOutage::Requeued))]);
    assert!(run(&mut path, &[(at(ms(110)), 10)], at(ms(120))).is_empty());
    let later = OutageConfig { at: vec![ms(500)], ..outages(DuringOutage::Requeued) };
    path.reconfigure(at(ms(120)), 0, &down_only(later)).unwrap();
    assert_eq!((path.totals().down.left, path.held()), (1, 0));
}

#[test]
fn invalid_outages_are_refused_with_a_hint() {
    for (config, hint) in [
        (OutageConfig { at: vec![], ..outages(DuringOutage::Dropped) }, "`at`: no outage"),
        (OutageConfig { lasts: ms(0), ..outages(DuringOutage::Dropped) }, "`lasts`"),
        (
            OutageConfig { lasts: ms(201), ..outages(DuringOutage::Dropped) },
            "is not over when the next one begins at 300.000ms",
        ),
        (
            OutageConfig { every: Some(ms(249)), ..outages(DuringOutage::Dropped) },
            "must be at least 250.000ms",
        ),
        (
            OutageConfig {
                queue: Bounds { packets: Some(0), bytes: None },
                ..outages(DuringOutage::Dropped)
            },
            "`queue.packets`",
        ),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn packet_arriving_at_the_end_follows_held_packets() {
    let before = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let config =
        OutageConfig { at: vec![ms(5)], lasts: ms(25), every: None, ..outages(DuringOutage::Requeued) };
    let arrived = run(&mut path(vec![link(&before), outage(&config)]), &burst(4, 100), HOUR);
    assert_eq!(arrived, [(0, at(ms(30))), (1, at(ms(30))), (2, at(ms(30))), (3, at(ms(40)))]);
}
