use crate::profile::Profile;
use crate::recovery::testing::{BareSender, RTT};
use crate::recovery::{Ack, RecoveryState};

/// Returns a sender with ten outstanding segments, cwnd 10 and ssthresh 8.
fn under_way(recipe: &str) -> BareSender {
    BareSender::new(recipe).under_way(10.0, 8.0, RTT)
}

/// Receives a cumulative ACK up to a segment, with SACK blocks.
fn ack_with(sender: &mut BareSender, segment: u64, blocks: &[std::ops::Range<u64>]) -> String {
    sender.receive(Ack::default(), segment, blocks)
}

#[test]
fn two_advancing_acks_undo_timeout() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = under_way(recipe);
        assert_eq!(sender.timeout(), "1r", "{recipe}");
        assert_eq!(sender.ack(1), "11 12", "{recipe}: new data, not a retransmission");
        // Ten segments are outstanding.
        assert_eq!(sender.ack(2), "", "{recipe}");
        // The window is restored, and this ACK has opened it further.
        assert!(sender.cc().cwnd >= 10.0 && sender.cc().ssthresh == 8.0, "{recipe}: {:?}", sender.window());
        assert_eq!(sender.cc().state(), RecoveryState::Open, "{recipe}");
        assert_eq!(sender.ack(3), "13", "{recipe}");
        assert_eq!(sender.counters().undone, 1, "{recipe}");
    }
}

#[test]
fn duplicate_ack_without_sack_ends_detection() {
    let mut sender = under_way("newreno+frto");
    sender.timeout();
    assert_eq!(sender.dupacks(1), "", "the retransmission of 1 is in flight");
    assert_eq!(sender.ack(1), "2r 3r");

    let mut sender = under_way("newreno+frto");
    sender.timeout();
    assert_eq!(sender.ack(1), "11 12");
    assert_eq!(sender.dupacks(1), "2r 3r 4r", "step 3a: at most three");
    assert_eq!(sender.window(), (3.0, 5.0));
}

#[test]
fn ack_of_whole_window_does_not_undo() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = under_way(recipe);
        sender.timeout();
        assert_eq!(sender.ack(10), "11 12", "{recipe}");
        assert_eq!(sender.window(), (2.0, 5.0), "{recipe}");
        assert_eq!(sender.counters().undone, 0);
    }
}

#[test]
fn sacks_before_first_new_ack_are_inconclusive() {
    let mut sender = under_way("sack+frto");
    sender.timeout();
    assert_eq!(sender.sack(&[3..4]), "");
    assert_eq!(sender.sack(&[3..7]), "", "IsLost() is ignored, too");
    // The retransmission of 1 has arrived and releases two new segments.
    assert_eq!(ack_with(&mut sender, 1, &[3..7]), "11 12");
    // The new segments arrive, but 2 does not: step 3a.
    assert_eq!(sender.sack(&[11..12, 3..7]), "2r 7r 8r");
    assert_eq!((sender.window(), sender.counters().undone), ((3.0, 5.0), 0));
}

#[test]
fn sacked_original_above_hole_undoes_timeout() {
    let mut sender = under_way("sack+frto");
    sender.timeout();
    assert_eq!(ack_with(&mut sender, 1, &[]), "11 12");
    // Segment 2 is lost, and 3 arrives. The rest of the window is also late.
    assert_eq!(sender.sack(&[3..4]), "");
    assert_eq!((sender.cc().state(), sender.cc().ssthresh), (RecoveryState::Open, 8.0));
    // Duplicate ACKs reveal the loss as usual, and it halves the window.
    sender.sack(&[3..5]);
    assert!(sender.sack(&[3..6]).starts_with("2r"));
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
}

#[test]
fn sacks_from_before_timeout_are_not_proof() {
    let mut sender = under_way("sack+frto");
    // Segments 1 and 2 are lost.
    sender.sack(&[3..4]);
    sender.sack(&[3..5]);
    sender.timeout();
    assert_eq!(sender.flight.sacked().segments, 0, "RFC 2018 §8");
    assert_eq!(sender.ack(1), "11 12");
    assert!(sender.sack(&[3..5]).starts_with("2r"));
    assert_eq!(sender.counters().undone, 0);
}

#[test]
fn sack_disables_frto_in_fast_recovery() {
    let mut sender = under_way("sack+frto");
    sender.sack(&[4..5]);
    sender.sack(&[4..6]);
    assert_eq!(sender.sack(&[4..7]), "1r");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.ack(1), "2r 3r");
    // Without SACK the sender does not know which segments have arrived, so it can only use the ACKs.
    let mut sender = under_way("newreno+frto");
    sender.dupacks(3);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.ack(1), "11 12");
}

#[test]
fn ack_beyond_recovery_point_does_not_undo() {
    let mut sender = under_way("sack+frto");
    sender.timeout();
    assert_eq!(sender.ack(1), "11 12");
    sender.ack(11);
    assert_eq!(sender.counters().undone, 0);
    assert_eq!(sender.cc().cwnd, 4.0, "three segments, and slow start continues");
}

#[test]
fn conventional_recovery_continues_without_new_data() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = BareSender::new(recipe);
        sender.written = 10;
        let mut sender = sender.under_way(10.0, 8.0, RTT);
        assert_eq!(sender.timeout(), "1r", "{recipe}");
        // Like the sender without F-RTO: cwnd is 2.
        assert_eq!(sender.ack(1), "2r 3r", "{recipe}");
        assert_eq!(sender.window(), (2.0, 5.0), "{recipe}");
        assert_eq!(sender.ack(3), "4r 5r 6r", "{recipe}");
    }
    // A full receiver window has the same effect.
    let mut sender = BareSender::new("newreno+frto");
    sender.rwnd = 9;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    sender.timeout();
    sender.rwnd = 8;
    assert_eq!(sender.ack(1), "2r 3r");
}

#[test]
fn one_new_segment_suffices_for_detection() {
    let mut sender = BareSender::new("newreno+frto");
    sender.written = 11;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    sender.timeout();
    assert_eq!(sender.ack(1), "11");
    sender.ack(2);
    assert_eq!(sender.counters().undone, 1);
}

#[test]
fn repeated_timeout_in_recovery_disables_frto() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = under_way(recipe);
        sender.timeout();
        assert_eq!(sender.timeout(), "1r", "{recipe}: the same segment");
        assert_eq!(sender.ack(1), "2r 3r", "{recipe}");
        assert_eq!(sender.timeout(), "2r", "{recipe}: another segment of that window");
        assert_eq!(sender.ack(2), "3r 4r", "{recipe}");
        let all = sender.last();
        sender.ack(all);
        sender.timeout();
        let una = sender.una();
        assert!(!sender.ack(una + 1).contains('r'), "{recipe}: that recovery is over");
    }
}

fn linux_under_way(recipe: &str) -> BareSender {
    BareSender::in_profile(recipe, Profile::linux()).under_way(10.0, 8.0, RTT)
}

/// Without SACK, the ACK also covers the retransmission, so it does not show which of them arrived.
#[test]
fn linux_undoes_timeout_at_first_ack_of_original() {
    for timeouts in [1, 2] {
        for (recipe, state, undone) in
            [("newreno+frto", RecoveryState::Loss, 0), ("sack+frto", RecoveryState::Open, 1)]
        {
            let mut sender = linux_under_way(recipe);
            for _ in 0..timeouts {
                sender.timeout();
            }
            sender.ack(3);
            assert_eq!(sender.cc().state(), state, "{recipe}, {timeouts} timeouts");
            assert_eq!(sender.counters().undone, undone, "{recipe}, {timeouts} timeouts");
        }
    }
}

#[test]
fn linux_does_not_undo_timeout_in_fast_recovery() {
    let mut sender = linux_under_way("newreno+frto");
    sender.dupacks(3);
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
    sender.timeout();
    sender.ack(3);
    assert_eq!((sender.cc().state(), sender.counters().undone), (RecoveryState::Loss, 0));
}
