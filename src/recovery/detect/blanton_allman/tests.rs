use crate::profile::Profile;
use crate::recovery::Ack;
use crate::recovery::detect::testing::{dup_thresh, reorder, under_way};
use crate::recovery::testing::{BareSender, RTT, SMSS};

#[test]
fn spurious_retransmission_raises_dup_thresh_by_one() {
    let mut sender = under_way("newreno+blanton-allman");
    // Eight segments overtake one. It is retransmitted with DupThresh 3, 4, … 8, but not with 9.
    let resent: Vec<bool> = (0..8).map(|_| reorder(&mut sender, 8)).collect();
    assert_eq!(resent, [true, true, true, true, true, true, false, false]);
    assert_eq!(dup_thresh(&mut sender), 9);
}

#[test]
fn options_raise_dup_thresh_partway_to_needed_value() {
    // (3 + 11)/2 = 7, (7 + 11)/2 = 9.
    let mut sender = under_way("newreno+blanton-allman+ba-average");
    reorder(&mut sender, 10);
    assert_eq!(dup_thresh(&mut sender), 7);
    reorder(&mut sender, 10);
    assert_eq!(dup_thresh(&mut sender), 9);
    // 3 + (11 - 3)/4 = 5, 5 + (11 - 5)/4 = 6.5.
    let mut sender = under_way("newreno+blanton-allman+ba-ewma");
    reorder(&mut sender, 10);
    assert_eq!(dup_thresh(&mut sender), 5);
    reorder(&mut sender, 10);
    assert_eq!(dup_thresh(&mut sender), 7);
}

#[test]
fn timeout_resets_dup_thresh_to_three() {
    let mut sender = under_way("newreno+blanton-allman");
    reorder(&mut sender, 8);
    assert_eq!(dup_thresh(&mut sender), 4);
    sender.timeout();
    sender.settle(20.0);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn loss_or_short_reordering_keeps_dup_thresh() {
    let mut sender = under_way("newreno+blanton-allman");
    assert!(!reorder(&mut sender, 2));
    assert_eq!(dup_thresh(&mut sender), 3);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn dup_thresh_is_bounded_by_window() {
    let mut sender = under_way("newreno+blanton-allman");
    for _ in 0..10 {
        reorder(&mut sender, 15);
    }
    assert_eq!(dup_thresh(&mut sender), 13);
    sender.recovery.put_window(6.0, 2.0);
    assert_eq!(dup_thresh(&mut sender), 5);
}

#[test]
fn raised_threshold_releases_segment_per_duplicate_ack() {
    let mut sender = under_way("newreno+blanton-allman");
    let next = sender.last() + 1;
    assert_eq!(sender.wait(RTT).dupacks(2), "", "Limited Transmit is off");
    sender.ack(3);
    assert!(next < sender.last());
    for _ in 0..3 {
        reorder(&mut sender, 8);
    }
    let next = sender.last() + 1;
    assert_eq!(
        sender.wait(RTT).dupacks(5),
        (next..next + 5).map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
    );
    assert!(sender.dupacks(1).contains('r'));
    // FlightSize does not include the new segments (RFC 5681 §3.2 step 2).
    assert_eq!(sender.cc().ssthresh, 10.0);
}

#[test]
fn window_is_restored_only_with_dsack() {
    let window_after = |recipe| {
        let mut sender = under_way(recipe);
        sender.wait(RTT).dupacks(8);
        sender.ack(20);
        sender.receive(Ack { dsack: Some((0, SMSS)), ..Ack::default() }, 20, &[]);
        sender.cc().ssthresh
    };
    assert_eq!(window_after("newreno+blanton-allman"), 10.0);
    assert_eq!(window_after("newreno+blanton-allman+dsack"), 20.0);
}

#[test]
fn peer_without_sack_falls_back_to_three_dupacks() {
    let sender = BareSender::without_sack("newreno+blanton-allman+dsack", Profile::default());
    assert_eq!(sender.recovery.answers()[0], "three-dupacks");
    assert_eq!(sender.recovery.answers()[5], "never");
}
