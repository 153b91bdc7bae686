//! What becomes of packets during an outage.

use airlink::stage::Why;
use airlink::stages::duplex::OneWaySettings;
use airlink::stages::link::LinkConfig;
use airlink::stages::outage::{Meanwhile, OutageConfig};
use airlink::stages::queue::Bounds;

use super::*;

fn hole(packets: Meanwhile) -> OutageConfig {
    OutageConfig {
        at: vec![ms(100), ms(300)],
        lasts: ms(50),
        every: Some(ms(1000)),
        packets,
        queue: Bounds::default(),
    }
}

#[test]
fn an_outage_drops_from_its_beginning_until_before_its_end() {
    let times = [99, 100, 149, 150, 299, 300, 350, 1099, 1100, 1149, 1150, 7320, 7350];
    let sent: Vec<_> = times.iter().map(|time| (at(ms(*time)), 100)).collect();
    let mut path = path(vec![outage(&hole(Meanwhile::Dropped))]);
    let arrived = run(&mut path, &sent, HOUR);
    let left: Vec<u64> = arrived.iter().map(|(_, time)| time.as_millis()).collect();
    assert_eq!(left, [99, 150, 299, 350, 1099, 1150, 7350]);
    let dropped = dropped(&mut path);
    assert!(dropped.len() == 6 && dropped.iter().all(|(_, why)| *why == Why::Outage), "{dropped:?}");
}

#[test]
fn a_handover_that_requeues_keeps_everything_in_order_until_its_end() {
    let queue = Bounds { packets: Some(3), bytes: None };
    let config = OutageConfig { queue, ..hole(Meanwhile::Requeued) };
    let slow = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let sent: Vec<_> = [90, 110, 120, 130, 140, 150].map(|time| (at(ms(time)), 100)).into();
    let mut path = path(vec![outage(&config), link(&slow)]);
    // The fourth one does not fit. The one that comes just when it is over goes behind those that waited. The
    // link behind paces them: 10 ms each.
    let arrived = run(&mut path, &sent, HOUR);
    assert_eq!(
        arrived,
        [(0, at(ms(100))), (1, at(ms(160))), (2, at(ms(170))), (3, at(ms(180))), (5, at(ms(190)))]
    );
    assert_eq!(dropped(&mut path), [(4, Why::QueueFull)]);
}

#[test]
fn an_outage_that_follows_at_once_goes_on_keeping() {
    let config = OutageConfig { at: vec![ms(100), ms(150)], every: None, ..hole(Meanwhile::Requeued) };
    assert_eq!(run(&mut path(vec![outage(&config)]), &[(at(ms(120)), 100)], HOUR), [(0, at(ms(200)))]);
}

#[test]
fn an_outage_taken_back_under_way_lets_go_what_it_kept() {
    let mut path = path(vec![outage(&hole(Meanwhile::Requeued))]);
    assert!(run(&mut path, &[(at(ms(110)), 10)], at(ms(120))).is_empty());
    let later = OutageConfig { at: vec![ms(500)], ..hole(Meanwhile::Requeued) };
    path.reconfigure(at(ms(120)), 0, &down_only(later)).unwrap();
    assert_eq!((path.totals().down.left, path.held()), (1, 0));
}

#[test]
fn impossible_outages_are_refused_with_what_was_meant() {
    for (config, hint) in [
        (OutageConfig { at: vec![], ..hole(Meanwhile::Dropped) }, "`at`: no outage"),
        (OutageConfig { lasts: ms(0), ..hole(Meanwhile::Dropped) }, "`lasts`"),
        (
            OutageConfig { lasts: ms(201), ..hole(Meanwhile::Dropped) },
            "is not over when the next one begins at 300.000ms",
        ),
        (OutageConfig { every: Some(ms(249)), ..hole(Meanwhile::Dropped) }, "must be at least 250.000ms"),
        (
            OutageConfig { queue: Bounds { packets: Some(0), bytes: None }, ..hole(Meanwhile::Dropped) },
            "`queue.packets`",
        ),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn a_packet_that_comes_from_the_stage_before_just_when_an_outage_is_over_goes_behind_those_kept() {
    let before = LinkConfig { rate: Some(kbit(80)), ..LinkConfig::default() };
    let config = OutageConfig { at: vec![ms(5)], lasts: ms(25), every: None, ..hole(Meanwhile::Requeued) };
    let arrived = run(&mut path(vec![link(&before), outage(&config)]), &burst(4, 100), HOUR);
    assert_eq!(arrived, [(0, at(ms(30))), (1, at(ms(30))), (2, at(ms(30))), (3, at(ms(40)))]);
}
