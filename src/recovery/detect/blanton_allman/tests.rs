use airwire::time::Duration;

use crate::recovery::Ack;
use crate::recovery::testing::{BareSender, SMSS};

const RTT: Duration = Duration::from_millis(100);

/// Twenty segments are outstanding.
fn under_way(recipe: &str) -> BareSender {
    let mut sender = BareSender::new(recipe);
    sender.rwnd = 1000;
    sender.under_way(20.0, 2.0, RTT)
}

/// The first unacknowledged segment comes after `by` later ones; if it was sent again the copy is reported.
fn reorder(sender: &mut BareSender, by: u32) -> bool {
    let una = sender.flight.una();
    let resent = sender.wait(RTT).dupacks(by).contains('r');
    sender.ack(una / SMSS + u64::from(by) + 1);
    if resent {
        let last = sender.flight.una() / SMSS;
        sender.receive(Ack { dsack: Some((una, una + SMSS)), ..Ack::default() }, last, &[]);
    }
    sender.settle(20.0);
    resent
}

/// How many duplicate ACKs it takes now to find a lost segment.
fn dup_thresh(sender: &mut BareSender) -> usize {
    sender.wait(RTT);
    let taken = (1..=50).find(|_| sender.dupacks(1).contains('r'));
    sender.settle(20.0);
    taken.expect("a fast retransmit")
}

#[test]
fn each_false_fast_retransmit_raises_it_by_one() {
    let mut sender = under_way("newreno+blanton-allman");
    // A segment that eight overtake is sent again in vain with DupThresh 3, 4, … 8, and no longer with 9.
    let resent: Vec<bool> = (0..8).map(|_| reorder(&mut sender, 8)).collect();
    assert_eq!(resent, [true, true, true, true, true, true, false, false]);
    assert_eq!(dup_thresh(&mut sender), 9);
}

#[test]
fn or_half_or_a_quarter_of_the_way_to_what_was_needed() {
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
fn a_timeout_brings_it_back_to_three() {
    let mut sender = under_way("newreno+blanton-allman");
    reorder(&mut sender, 8);
    assert_eq!(dup_thresh(&mut sender), 4);
    sender.timeout();
    sender.settle(20.0);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn what_was_lost_or_came_in_time_does_not_count() {
    let mut sender = under_way("newreno+blanton-allman");
    assert!(!reorder(&mut sender, 2));
    assert_eq!(dup_thresh(&mut sender), 3);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn at_most_what_the_window_can_bring() {
    let mut sender = under_way("newreno+blanton-allman");
    for _ in 0..10 {
        reorder(&mut sender, 15);
    }
    assert_eq!(dup_thresh(&mut sender), 13);
    sender.recovery.put_window(6.0, 2.0);
    assert_eq!(dup_thresh(&mut sender), 5);
}

#[test]
fn while_it_is_raised_each_duplicate_ack_releases_a_new_segment() {
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
    // FlightSize is what it was without them (RFC 5681 §3.2 step 2).
    assert_eq!(sender.cc().ssthresh, 10.0);
}

#[test]
fn the_window_comes_back_with_dsack_only() {
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
fn a_peer_without_sack_gets_three_dupacks() {
    let sender = BareSender::without_sack("newreno+blanton-allman+dsack");
    assert_eq!(sender.recovery.answers()[0], "three-dupacks");
    assert_eq!(sender.recovery.answers()[5], "never");
}
