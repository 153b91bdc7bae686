//! Senders for the tests of the judges, and tests that apply to every judge.

use airwire::time::Duration;

use super::Cause;
use crate::recovery::catalogue::Question;
use crate::recovery::testing::BareSender;
use crate::recovery::{Decision, What};

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Delivers three duplicate ACKs for the first outstanding segment and returns the attributed cause.
pub(super) fn judged(sender: &mut BareSender) -> Cause {
    sender.trace();
    sender.dupacks(3);
    let cause = |decision: &Decision| match decision.what {
        What::Cause { cause, .. } => Some(cause),
        _ => None,
    };
    sender.trace().iter().find_map(cause).expect("no attributed loss in the trace")
}

/// Segment 1 alone takes 100 ms. Then the window is two segments, the first of which takes `rtt` ms.
pub(super) fn slow_start_of_one(judge: &str, rtt: u64) -> BareSender {
    let mut sender = BareSender::new(&format!("reno+{judge}")).under_way(1.0, 100.0, ms(100));
    assert_eq!(sender.wait(ms(100)).ack(1), "2 3");
    assert_eq!(sender.wait(ms(rtt)).ack(2), "4 5");
    sender
}

/// Four segments sent together take 200 ms. Then the window is two segments, the first of which takes `rtt`
/// ms.
pub(super) fn window_of_four_becomes_two(judge: &str, rtt: u64) -> BareSender {
    let mut sender = BareSender::new(&format!("reno+{judge}")).under_way(4.0, 2.0, ms(200));
    sender.wait(ms(200));
    sender.recovery.put_window(2.0, 2.0);
    assert_eq!(sender.ack(4), "5 6");
    assert_eq!(sender.wait(ms(rtt)).ack(5), "7");
    sender
}

const JUDGES: [&str; 4] = ["vegas", "ntg", "ndg", "ncpld"];

#[test]
fn loss_before_first_measurement_is_congestion() {
    // `ntg` and `ndg` compare two windows, so one RTT sample is not enough.
    for (judge, acked) in [("vegas", 0), ("ncpld", 0), ("ntg", 1), ("ndg", 1)] {
        let mut sender = BareSender::new(&format!("reno+{judge}")).under_way(10.0, 8.0, ms(100));
        sender.wait(ms(100));
        if acked > 0 {
            sender.ack(acked);
        }
        assert_eq!(judged(&mut sender), Cause::Congestion, "{judge}");
        assert!((5.0..5.2).contains(&sender.cc().cwnd), "{judge}: {}", sender.cc().cwnd);
    }
}

#[test]
fn judges_record_verdicts_without_changing_sender() {
    let play = |recipe: &str| {
        let mut sender = BareSender::new(recipe).under_way(10.0, 8.0, ms(100));
        let mut sent = vec![sender.wait(ms(100)).ack(1), sender.dupacks(9), sender.wait(ms(100)).ack(11)];
        sent.push(sender.timeout());
        (sent, sender.trace())
    };
    let (sent, alone) = play("reno");
    let (sent_watched, watched) = play("reno+judges");
    assert_eq!(sent, sent_watched);
    let judged = |decision: &&Decision| matches!(decision.what, What::Judged { .. });
    let names: Vec<_> = watched.iter().filter(judged).map(|decision| decision.by).collect();
    assert_eq!(names, [JUDGES, JUDGES].concat(), "each judge once at the loss and once at the timeout");
    assert!(watched.iter().filter(judged).all(|decision| decision.question == Question::Attribute));
    let others: Vec<_> = watched.iter().filter(|decision| !judged(decision)).cloned().collect();
    assert_eq!(others, alone);
}

#[test]
fn radio_loss_keeps_window_but_timeout_reduces_it() {
    for judge in JUDGES {
        // The RTT falls while W rises, so no queue builds up.
        let mut sender = slow_start_of_one(judge, 95);
        let before = sender.cc().clone();
        assert_eq!(judged(&mut sender), Cause::Radio, "{judge}");
        let after = sender.cc();
        assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh), "{judge}");
        sender.timeout();
        assert_eq!((sender.cc().cwnd, sender.counters().window_reductions), (1.0, 1), "{judge}");
    }
}

#[test]
fn hostile_acks_keep_cwnd_finite_and_positive() {
    for judge in JUDGES {
        for repair in ["tahoe", "reno", "newreno", "sack"] {
            let mut sender = BareSender::new(&format!("{repair}+{judge}")).under_way(10.0, 8.0, ms(100));
            for round in 0..30 {
                sender.dupacks(50);
                sender.wait(ms(round % 3)).sack(&[2..3, 900..1000]);
                match round % 5 {
                    0 => drop(sender.timeout()),
                    // Acknowledge everything, so that nothing is in flight.
                    1 => drop(sender.ack_all()),
                    _ => drop(sender.ack_echoing(sender.una() + 1, 0)),
                }
                let cwnd = sender.cc().cwnd;
                assert!(cwnd.is_finite() && cwnd >= 1.0, "{repair}+{judge}: {cwnd}");
            }
        }
    }
}
