//! Link-layer retransmission.

use airlink::stages::queue::QueueConfig;

use super::*;

/// A packet of 100 bytes takes 10 ms to send and 5 ms to arrive. Its loss is detected 15 ms later.
fn config(per: f64, retries: u32) -> ArqConfig {
    ArqConfig {
        per: p(per),
        retries,
        rate: kbit(80),
        delay: ms(5),
        feedback: Some(ms(15)),
        queue: QueueConfig::default(),
    }
}

#[test]
fn without_errors_arq_behaves_like_a_link() {
    let arrived = run(&mut path(vec![arq(&config(0.0, 3))]), &burst(3, 100), HOUR);
    assert_eq!(arrived, [(0, at(ms(15))), (1, at(ms(25))), (2, at(ms(35)))]);
}

#[test]
fn packet_is_dropped_after_the_last_retry() {
    let mut path = path(vec![arq(&config(1.0, 3))]);
    assert!(run(&mut path, &burst(1, 100), HOUR).is_empty());
    let records = path.take_records().into_iter().filter(|record| record.stage == Some(0));
    let events: Vec<_> = records.map(|record| (record.at, record.event)).collect();
    assert_eq!(
        events,
        [
            (at(ms(0)), Event::Sent { waited: ms(0) }),
            (at(ms(30)), Event::Resent { attempt: 2 }),
            (at(ms(60)), Event::Resent { attempt: 3 }),
            (at(ms(90)), Event::Resent { attempt: 4 }),
            (at(ms(120)), Event::Dropped { why: DropReason::RetryLimit }),
        ]
    );
}

#[test]
fn later_packets_overtake_a_retransmission() {
    // The channel is bad until 10 ms and good afterwards: only the first transmission of packet 0 is damaged.
    let mut path = path(vec![arq(&config(1.0, 3))]);
    let mut arrived = run(&mut path, &burst(6, 100), at(ms(10)));
    path.reconfigure(at(ms(10)), 0, &down_only(config(0.0, 3))).unwrap();
    arrived.extend(run(&mut path, &[], HOUR));
    // The loss of packet 0 is detected at 30 ms, when packet 2 has been sent. The retransmission precedes packet 3.
    assert_eq!(
        arrived,
        [
            (1, at(ms(25))),
            (2, at(ms(35))),
            (0, at(ms(45))),
            (3, at(ms(55))),
            (4, at(ms(65))),
            (5, at(ms(75)))
        ]
    );
}

#[test]
fn drops_and_reordering_match_the_error_rate() {
    let (per, n) = (0.3, 50_000);
    let sent: Vec<_> = (0..n).map(|i| (at(ms(20) * i), 100)).collect();
    let mut path = path(vec![arq(&config(per, 1))]);
    let arrived = run(&mut path, &sent, Instant::from_secs(7200));
    let lost = n as f64 - arrived.len() as f64;
    let expected = n as f64 * per * per;
    assert!((lost - expected).abs() < 3.2905 * (expected * (1.0 - per * per)).sqrt(), "{lost} of {n}");
    assert_eq!(path.totals().down.dropped_for(DropReason::RetryLimit), lost as u64);
    let overtaken = arrived.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    assert!(overtaken > 5000, "{overtaken}");
}
