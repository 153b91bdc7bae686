use crate::profile::Profile;
use crate::recovery::decision::What;
use crate::recovery::detect::testing::{dup_thresh, reorder, report, under_way};
use crate::recovery::testing::{BareSender, RTT};
use crate::recovery::{Handshake, RecoveryState};

#[test]
fn spurious_retransmission_raises_dup_thresh_to_needed_count() {
    let mut sender = under_way("newreno+rr");
    assert_eq!(dup_thresh(&mut sender), 3);
    reorder(&mut sender, 8);
    assert_eq!(sender.counters().fast_retransmits, 2);
    for _ in 0..5 {
        reorder(&mut sender, 8);
    }
    assert_eq!(sender.counters().fast_retransmits, 2, "the raised threshold prevents more");
    // With a threshold of eight, it would have been retransmitted.
    assert_eq!(dup_thresh(&mut sender), 9);
}

#[test]
fn threshold_counts_sacked_segments_not_acks() {
    let mut sender = under_way("sack+rr");
    // Two ACKs report eight segments.
    sender.wait(RTT).sack(&[2..6]);
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
    sender.sack(&[2..10]);
    sender.ack(9);
    report(&mut sender, 0);
    sender.settle(20.0);
    let first = sender.una() + 1;
    assert!(!sender.sack(&[first + 1..first + 9]).contains('r'), "eight SACKed segments");
    assert!(sender.sack(&[first + 1..first + 10]).contains('r'), "nine SACKed segments");
}

#[test]
fn dup_thresh_stays_without_proof_of_reordering() {
    let mut sender = under_way("newreno+rr");
    sender.wait(RTT).dupacks(8);
    sender.settle(20.0);
    assert_eq!(dup_thresh(&mut sender), 3, "no D-SACK: the segment was lost");
    // After a second retransmission, a D-SACK does not show which copy it is about.
    let una = sender.flight.una();
    sender.wait(RTT).dupacks(8);
    sender.timeout();
    sender.ack_all();
    report(&mut sender, una);
    sender.settle(20.0);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn dup_thresh_is_90th_percentile_of_reordering() {
    let mut sender = under_way("newreno+rr");
    reorder(&mut sender, 14);
    for _ in 0..8 {
        reorder(&mut sender, 4);
    }
    assert_eq!(dup_thresh(&mut sender), 15, "eight of nine lengths are 89 %");
    reorder(&mut sender, 4);
    assert_eq!(dup_thresh(&mut sender), 5, "nine of ten lengths are 90 %");
}

#[test]
fn fa_ratio_sets_percentile() {
    let mut sender = under_way("newreno+rr+fa-ratio=50");
    reorder(&mut sender, 14);
    reorder(&mut sender, 4);
    assert_eq!(dup_thresh(&mut sender), 5);
}

#[test]
fn dup_thresh_is_bounded_by_window() {
    let mut sender = under_way("newreno+rr");
    reorder(&mut sender, 14);
    sender.recovery.put_window(8.0, 2.0);
    assert_eq!(dup_thresh(&mut sender), 7);
    sender.recovery.put_window(2.0, 2.0);
    assert_eq!(dup_thresh(&mut sender), 3);
}

#[test]
fn avoidable_timeout_lowers_dup_thresh() {
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
    // Seven of eight lengths are 5, which is 87.5 %. The second timeout lowers FA from 90 to 80 %.
    timeout_after(&mut sender, 2);
    assert_eq!(dup_thresh(&mut sender), 15, "no threshold would have avoided the timeout");
    timeout_after(&mut sender, 10);
    assert_eq!(dup_thresh(&mut sender), 5);
    // Each spurious retransmission raises FA by one point. After eight more of length 15, half of the lengths
    // are 15.
    for _ in 0..8 {
        reorder(&mut sender, 14);
    }
    assert_eq!(dup_thresh(&mut sender), 15);
    // The threshold never falls below the smallest length measured.
    for _ in 0..20 {
        timeout_after(&mut sender, 4);
    }
    assert_eq!(dup_thresh(&mut sender), 5);
}

#[test]
fn duplicate_ack_below_threshold_releases_new_segment() {
    for recipe in ["newreno+rr", "sack+rr"] {
        let mut sender = under_way(recipe);
        overtake(&mut sender, 8);
        report(&mut sender, 0);
        sender.settle(20.0);
        let next = sender.last() + 1;
        let sent = overtake(&mut sender, 8);
        let expected: Vec<_> = (next..next + 8).map(|n| n.to_string()).collect();
        assert_eq!(sent[..8], expected, "{recipe}");
        assert_eq!(sender.counters().fast_retransmits, 1, "{recipe}");
    }
}

/// Delivers the first segment after `by` others, which SACK blocks or duplicate ACKs report.
fn overtake(sender: &mut BareSender, by: u64) -> Vec<String> {
    let una = sender.una();
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
fn duplicate_ack_flood_causes_one_fast_retransmission() {
    let mut sender = under_way("newreno+rr");
    for _ in 0..30 {
        reorder(&mut sender, 19);
    }
    let before = sender.last();
    sender.wait(RTT).dupacks(1000);
    assert!(sender.last() <= before + 18 + 1000, "each further duplicate ACK releases at most one segment");
    assert_eq!(sender.counters().fast_retransmits, 31);
    assert!(sender.cc().cwnd.is_finite());
}

#[test]
fn rr_behaves_like_three_dupacks_before_reordering() {
    let play = |recipe: &str| {
        let handshake = Handshake { sack: true, timestamps: true, ..Handshake::default() };
        let sender = BareSender::with(recipe, Profile::default(), &handshake);
        let mut sender = sender.under_way(20.0, 2.0, RTT);
        let mut sent = vec![sender.wait(RTT).dupacks(5), sender.ack(20), sender.wait(RTT).dupacks(2)];
        sent.push(sender.ack_all());
        sent.push(sender.timeout());
        sent.push(sender.dupacks(4));
        let mut trace = sender.trace();
        trace.iter_mut().for_each(|decision| decision.by = "");
        (sent, trace)
    };
    assert_eq!(play("newreno+rr"), play("newreno"));
}

#[test]
fn peer_without_sack_falls_back_to_three_dupacks() {
    let mut sender = BareSender::without_sack("newreno+rr", Profile::default());
    assert_eq!(sender.recovery.answers()[0], "three-dupacks");
    let trace = sender.trace();
    let said = trace.iter().filter(|decision| decision.what == What::Fallback { to: "three-dupacks" });
    assert_eq!(said.count(), 1);
}
