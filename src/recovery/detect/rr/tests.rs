use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::decision::What;
use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Ack, Handshake, Phase};

const RTT: Duration = Duration::from_millis(100);

/// Twenty segments are outstanding.
fn under_way(recipe: &str) -> BareSender {
    let mut sender = BareSender::new(recipe);
    sender.rwnd = 1000;
    sender.under_way(20.0, 2.0, RTT)
}

/// The first unacknowledged segment comes after `by` later ones, and if it was sent again the copy is reported.
fn reorder(sender: &mut BareSender, by: u32) {
    let una = sender.flight.una();
    let resent = sender.wait(RTT).dupacks(by).contains('r');
    sender.ack(una / SMSS + u64::from(by) + 1);
    if resent {
        report(sender, una);
    }
    sender.settle(20.0);
}

/// The segment that begins at `start` has arrived twice.
fn report(sender: &mut BareSender, start: u64) {
    let una = sender.flight.una() / SMSS;
    sender.receive(Ack { dsack: Some((start, start + SMSS)), ..Ack::default() }, una, &[]);
}

/// How many duplicate ACKs it takes now to find a lost segment.
fn dup_thresh(sender: &mut BareSender) -> usize {
    sender.wait(RTT);
    let taken = (1..=50).find(|_| sender.dupacks(1).contains('r'));
    sender.settle(20.0);
    taken.expect("a fast retransmit")
}

#[test]
fn a_false_fast_retransmit_teaches_how_many_duplicate_acks_were_needed() {
    let mut sender = under_way("newreno+rr");
    assert_eq!(dup_thresh(&mut sender), 3);
    reorder(&mut sender, 8);
    assert_eq!(sender.recovery.counters().fast_retransmits, 2);
    for _ in 0..5 {
        reorder(&mut sender, 8);
    }
    assert_eq!(sender.recovery.counters().fast_retransmits, 2, "that is waited for now");
    // With eight it would have been sent again.
    assert_eq!(dup_thresh(&mut sender), 9);
}

#[test]
fn with_a_scoreboard_what_is_sacked_counts_however_few_acks_there_are() {
    let mut sender = under_way("sack+rr");
    // Two ACKs for eight segments.
    sender.wait(RTT).sack(&[2..6]);
    assert_eq!(sender.cc().phase(), Phase::Recovery);
    sender.sack(&[2..10]);
    sender.ack(9);
    report(&mut sender, 0);
    sender.settle(20.0);
    let first = sender.flight.una() / SMSS + 1;
    assert!(!sender.sack(&[first + 1..first + 9]).contains('r'), "eight");
    assert!(sender.sack(&[first + 1..first + 10]).contains('r'), "nine");
}

#[test]
fn nothing_is_learnt_without_a_proof() {
    let mut sender = under_way("newreno+rr");
    sender.wait(RTT).dupacks(8);
    sender.settle(20.0);
    assert_eq!(dup_thresh(&mut sender), 3, "no D-SACK: it was lost");
    // Sent again twice: a report does not say which copy it is about.
    let una = sender.flight.una();
    sender.wait(RTT).dupacks(8);
    sender.timeout();
    sender.ack(sender.last());
    report(&mut sender, una);
    sender.settle(20.0);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn the_threshold_is_the_length_that_nine_of_ten_do_not_exceed() {
    let mut sender = under_way("newreno+rr");
    reorder(&mut sender, 14);
    for _ in 0..8 {
        reorder(&mut sender, 4);
    }
    assert_eq!(dup_thresh(&mut sender), 15, "the eight are 89 %");
    reorder(&mut sender, 4);
    assert_eq!(dup_thresh(&mut sender), 5, "the nine are 90 %");
}

#[test]
fn another_share_can_be_chosen() {
    let mut sender = under_way("newreno+rr+fa-ratio=50");
    reorder(&mut sender, 14);
    reorder(&mut sender, 4);
    assert_eq!(dup_thresh(&mut sender), 5);
}

#[test]
fn at_most_what_the_window_can_bring() {
    let mut sender = under_way("newreno+rr");
    reorder(&mut sender, 14);
    sender.recovery.put_window(8.0, 2.0);
    assert_eq!(dup_thresh(&mut sender), 7);
    sender.recovery.put_window(2.0, 2.0);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn a_timeout_that_three_would_have_avoided_lowers_it() {
    let timeout_after = |sender: &mut BareSender, dupacks| {
        assert!(!sender.wait(RTT).dupacks(dupacks).contains('r'));
        sender.timeout();
        sender.settle(20.0);
    };
    let mut sender = under_way("newreno+rr");
    reorder(&mut sender, 14);
    for _ in 0..7 {
        reorder(&mut sender, 4);
    }
    // Of eight lengths seven are 5: 87.5 %. FA goes from 90 to 80 %.
    timeout_after(&mut sender, 2);
    assert_eq!(dup_thresh(&mut sender), 15, "no threshold would have avoided that");
    timeout_after(&mut sender, 10);
    assert_eq!(dup_thresh(&mut sender), 5);
    // False retransmits give it back by points: after eight more of length 15, half of the lengths are.
    for _ in 0..8 {
        reorder(&mut sender, 14);
    }
    assert_eq!(dup_thresh(&mut sender), 15);
    // It never asks for less than the least that was seen.
    for _ in 0..20 {
        timeout_after(&mut sender, 4);
    }
    assert_eq!(dup_thresh(&mut sender), 5);
}

#[test]
fn meanwhile_each_duplicate_ack_releases_a_new_segment() {
    for recipe in ["newreno+rr", "sack+rr"] {
        let mut sender = under_way(recipe);
        overtake(&mut sender, 8);
        report(&mut sender, 0);
        sender.settle(20.0);
        let next = sender.flight.max() / SMSS + 1;
        let sent = overtake(&mut sender, 8);
        let expected: Vec<_> = (next..next + 8).map(|n| n.to_string()).collect();
        assert_eq!(sent[..8], expected, "{recipe}");
        assert_eq!(sender.recovery.counters().fast_retransmits, 1, "{recipe}");
    }
}

/// The first segment comes after `by` others, in whatever way the recipe's receiver says so.
fn overtake(sender: &mut BareSender, by: u64) -> Vec<String> {
    let una = sender.flight.una() / SMSS;
    sender.wait(RTT);
    let mut sent: Vec<_> = (1..=by)
        .map(|n| match sender.recovery.uses_sack() {
            true => sender.sack(&[una + 2..una + 2 + n]),
            false => sender.dupacks(1),
        })
        .collect();
    sent.push(sender.ack(una + by + 1));
    sent
}

#[test]
fn a_flood_of_duplicate_acks_releases_a_window_at_most() {
    let mut sender = under_way("newreno+rr");
    for _ in 0..30 {
        reorder(&mut sender, 19);
    }
    let before = sender.last();
    sender.wait(RTT).dupacks(1000);
    assert!(sender.last() <= before + 18 + 1000, "then fast recovery inflates as ever");
    assert_eq!(sender.recovery.counters().fast_retransmits, 31);
    assert!(sender.cc().cwnd.is_finite());
}

#[test]
fn until_the_first_proof_it_is_three_dupacks() {
    let story = |recipe: &str| {
        let handshake = Handshake { sack: true, timestamps: true, ..Handshake::default() };
        let sender = BareSender::with(recipe, Profile::default(), &handshake);
        let mut sender = sender.under_way(20.0, 2.0, RTT);
        let mut sent = vec![sender.wait(RTT).dupacks(5), sender.ack(20), sender.wait(RTT).dupacks(2)];
        sent.push(sender.ack(sender.last()));
        sent.push(sender.timeout());
        sent.push(sender.dupacks(4));
        let mut trace = sender.trace();
        trace.iter_mut().for_each(|decision| decision.by = "");
        (sent, trace)
    };
    assert_eq!(story("newreno+rr"), story("newreno"));
}

#[test]
fn a_peer_without_sack_gets_three_dupacks() {
    let mut sender = BareSender::without_sack("newreno+rr");
    assert_eq!(sender.recovery.answers()[0], "three-dupacks");
    let trace = sender.trace();
    let said = trace.iter().filter(|decision| decision.what == What::Fallback { to: "three-dupacks" });
    assert_eq!(said.count(), 1);
}
