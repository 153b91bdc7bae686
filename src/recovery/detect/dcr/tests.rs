use crate::recovery::RecoveryState;
use crate::recovery::testing::{BareSender, RTT};

/// A sender with ten segments in flight.
fn under_way(recipe: &str) -> BareSender {
    BareSender::new(recipe).under_way(10.0, 8.0, RTT)
}

#[test]
fn segment_missing_after_round_trip_is_lost() {
    let mut sender = under_way("newreno+dcr");
    let third = {
        sender.wait(RTT).dupacks(3);
        sender.now
    };
    assert_eq!(sender.recovery.deadline(), Some(third + RTT));
    sender.wait(RTT / 2);
    assert_eq!(sender.dupacks(6), "14 15 16 17 18 19", "each duplicate ACK releases a new segment");
    assert_eq!((sender.cc().state(), sender.cc().cwnd), (RecoveryState::Open, 10.0));
    assert_eq!(sender.deadline(), "1r");
    // FlightSize is 10 without the nine new segments.
    assert_eq!((sender.cc().state(), sender.cc().ssthresh), (RecoveryState::Recovery, 5.0));
    assert_eq!(sender.recovery.deadline(), None);
    sender.wait(RTT).ack(19);
    assert_eq!(sender.cc().state(), RecoveryState::Open);
}

#[test]
fn reordering_within_round_trip_is_not_loss() {
    for recipe in ["newreno+dcr", "sack+dcr"] {
        let mut sender = under_way(recipe);
        sender.wait(RTT);
        match sender.recovery.uses_sack() {
            true => (2..10).for_each(|n| drop(sender.sack(&[2..n + 1]))),
            false => drop(sender.dupacks(8)),
        }
        sender.wait(RTT / 2);
        sender.ack(9);
        assert_eq!(sender.recovery.deadline(), None, "{recipe}");
        assert!(sender.cc().cwnd >= 10.0, "{recipe}");
        let counters = sender.counters();
        assert_eq!((counters.resent(), counters.window_reductions), (0, 0), "{recipe}");
        // Eight new segments were sent in the meantime, so the window is as full as before.
        assert!(sender.flight.outstanding().segments >= 10, "{recipe}");
    }
}

#[test]
fn two_duplicate_acks_do_not_start_timer() {
    let mut sender = under_way("newreno+dcr");
    assert_eq!(sender.wait(RTT).dupacks(2), "11 12");
    assert_eq!(sender.recovery.deadline(), None);
}

#[test]
fn scoreboard_reports_all_losses_in_one_episode() {
    let mut sender = under_way("sack+dcr");
    // Segments 1, 2 and 5 are lost.
    sender.wait(RTT).sack(&[3..4]);
    sender.sack(&[3..5]);
    assert_eq!(sender.recovery.deadline(), None);
    sender.sack(&[6..7, 3..5]);
    assert!(sender.recovery.deadline().is_some());
    for n in 8..=11 {
        sender.sack(&[6..n, 3..5]);
    }
    assert_eq!(sender.cc().state(), RecoveryState::Open);
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!(sender.flight.lost().segments, 3);
    // Nothing is delayed in recovery: segment 11 is also lost, and no wait begins.
    sender.sack(&[12..16, 6..11, 3..5]);
    assert_eq!(sender.recovery.deadline(), None);
    assert_eq!(sender.counters().window_reductions, 1);
}

#[test]
fn next_hole_restarts_timer() {
    let mut sender = under_way("sack+dcr");
    // Segments 1 and 3 are late.
    sender.wait(RTT).sack(&[4..7, 2..3]);
    let first = sender.recovery.deadline();
    sender.wait(RTT / 2).sack(&[4..9, 2..3]);
    assert_eq!(sender.recovery.deadline(), first, "more duplicate ACKs do not postpone the timer");
    sender.ack(2);
    assert_eq!(sender.recovery.deadline(), Some(sender.now + sender.rtt.srtt().unwrap()));
    sender.ack(8);
    assert_eq!((sender.recovery.deadline(), sender.counters().resent()), (None, 0));
}

#[test]
fn retransmission_timeout_cancels_detector_timer() {
    let mut sender = BareSender::new("newreno+dcr+min-rto=1").under_way(10.0, 8.0, RTT);
    // The timer fires SRTT + 4·RTTVAR after the first segment was sent, before the wait is over.
    sender.wait(RTT).dupacks(3);
    let wait = sender.recovery.deadline().unwrap();
    assert!(sender.rto.unwrap() < wait);
    sender.timeout();
    assert_eq!(sender.recovery.deadline(), None);
}

#[test]
fn retransmission_is_immediate_without_rtt_sample() {
    let mut sender = BareSender::new("newreno+dcr");
    assert_eq!(sender.rtt.srtt(), None);
    sender.send();
    assert!(sender.dupacks(3).contains("1r"));
}

#[test]
fn duplicate_ack_flood_releases_at_most_one_window() {
    let mut sender = under_way("newreno+dcr");
    sender.wait(RTT).dupacks(1000);
    assert_eq!(sender.last(), 20);
    assert_eq!(sender.cc().cwnd, 10.0);
}

#[test]
fn tahoe_and_reno_retransmit_after_wait() {
    for recipe in ["tahoe+dcr", "reno+dcr"] {
        let mut sender = under_way(recipe);
        sender.wait(RTT).dupacks(3);
        assert!(sender.deadline().contains("1r"), "{recipe}");
        assert_eq!(sender.counters().window_reductions, 1, "{recipe}");
    }
}
