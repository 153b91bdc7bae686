use airwire::time::Duration;

use crate::recovery::testing::{BareSender, RTT, SMSS};
use crate::recovery::undo::testing::{under_way, undone};
use crate::recovery::{Ack, RecoveryState};

/// Receives an ACK that only reports these segments (a range of numbers) as duplicates.
fn report(sender: &mut BareSender, first: u64, last: u64) -> String {
    let una = sender.una();
    let dsack = Some(((first - 1) * SMSS, last * SMSS));
    sender.receive(Ack { dsack, ..Ack::default() }, una, &[])
}

/// Returns a sender whose segment 1 arrived after the nine others and was retransmitted in the meantime.
fn reordered(recipe: &str) -> BareSender {
    let mut sender = under_way(recipe);
    assert_eq!(sender.wait(RTT).dupacks(9), "1r 11 12 13 14");
    assert_eq!(sender.ack(10), "15");
    assert_eq!(
        (sender.cc().cwnd, sender.cc().ssthresh, sender.cc().state()),
        (5.0, 5.0, RecoveryState::Open)
    );
    sender
}

#[test]
fn dsack_undoes_fast_retransmission() {
    let mut sender = reordered("newreno+dsack");
    // FlightSize 5 does not exceed cwnd; pipe_prev = max(FlightSize 10, 8).
    assert_eq!(report(&mut sender, 1, 1), "");
    assert_eq!(sender.window(), (5.0, 10.0));
    // Slow start continues up to ssthresh.
    assert_eq!(sender.wait(RTT).ack(11), "16 17");
    assert_eq!(undone(&sender), 1);
    // The episode is over, so further reports have no effect.
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 1);
}

#[test]
fn undo_never_reduces_current_window() {
    let mut sender = reordered("newreno+dsack");
    for segment in 11..60 {
        sender.wait(RTT).ack(segment);
    }
    let before = sender.window();
    assert!(before.0 > 10.0);
    report(&mut sender, 1, 1);
    assert_eq!(sender.cc().cwnd, before.0);
    assert_eq!(sender.cc().ssthresh, 10.0);
}

#[test]
fn dsack_during_recovery_ends_episode() {
    let mut sender = under_way("sack+dsack");
    sender.wait(RTT);
    sender.sack(&[2..3]);
    sender.sack(&[2..4]);
    assert_eq!(sender.sack(&[2..5]), "1r");
    // The originals of 1 and 5 are late, and 6 to 8 overtake 5.
    sender.ack(4);
    for end in 7..=9 {
        sender.sack(&[6..end]);
    }
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
    assert!(sender.flight.segment_at(4 * SMSS).unwrap().transmissions == 2, "segment 5 is retransmitted");
    report(&mut sender, 1, 1);
    assert_eq!((undone(&sender), sender.cc().state()), (0, RecoveryState::Recovery), "5 is not reported yet");
    sender.ack(8);
    report(&mut sender, 5, 5);
    assert_eq!((undone(&sender), sender.cc().state()), (1, RecoveryState::Open));
    assert_eq!(sender.cc().ssthresh, 10.0);
}

/// Runs an episode whose last ACK, of everything outstanding at its beginning, reports the only
/// retransmission.
fn end_episode_with_dsack(recipe: &str, begin: impl FnOnce(&mut BareSender)) -> BareSender {
    let mut sender = under_way(recipe);
    sender.wait(RTT);
    begin(&mut sender);
    assert_ne!(sender.cc().state(), RecoveryState::Open);
    let all = sender.last();
    sender.receive(Ack { dsack: Some((0, SMSS)), ..Ack::default() }, all, &[]);
    sender
}

#[test]
fn episode_ending_ack_may_carry_last_dsack() {
    for recipe in ["reno+dsack", "newreno+dsack", "tahoe+dsack"] {
        let sender = end_episode_with_dsack(recipe, |sender| {
            assert!(sender.dupacks(3).starts_with("1r"));
        });
        assert_eq!(
            (undone(&sender), sender.cc().state(), sender.cc().ssthresh),
            (1, RecoveryState::Open, 10.0),
            "{recipe}"
        );
    }
    let sender = end_episode_with_dsack("sack+dsack", |sender| {
        sender.sack(&[2..5]);
    });
    assert_eq!((undone(&sender), sender.cc().state(), sender.cc().ssthresh), (1, RecoveryState::Open, 10.0));
    let sender = end_episode_with_dsack("newreno+dsack", |sender| {
        assert_eq!(sender.timeout(), "1r");
    });
    assert_eq!((undone(&sender), sender.cc().state(), sender.cc().ssthresh), (1, RecoveryState::Open, 10.0));
}

#[test]
fn ecn_reduction_after_episode_is_not_undone() {
    let mut sender = reordered("newreno+dsack");
    sender.wait(RTT);
    sender.receive(Ack { ece: true, ..Ack::default() }, 11, &[]);
    assert_eq!(sender.cc().state(), RecoveryState::Cwr);
    let window = sender.window();
    report(&mut sender, 1, 1);
    assert_eq!((undone(&sender), sender.cc().state()), (0, RecoveryState::Cwr));
    assert_eq!(sender.window(), window);
}

#[test]
fn needed_retransmission_is_not_undone() {
    let mut sender = reordered("newreno+dsack");
    for segment in 11..40 {
        sender.wait(RTT).ack(segment);
    }
    assert_eq!(undone(&sender), 0);
}

#[test]
fn dsack_of_unretransmitted_segment_prevents_undo() {
    let mut sender = reordered("newreno+dsack");
    report(&mut sender, 3, 3);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 0);
}

#[test]
fn more_dsacks_than_retransmissions_prevent_undo() {
    let mut sender = under_way("newreno+dsack");
    sender.timeout();
    assert_eq!(sender.ack(1), "2r 3r");
    report(&mut sender, 2, 2);
    report(&mut sender, 2, 2);
    report(&mut sender, 1, 1);
    report(&mut sender, 3, 3);
    assert_eq!(undone(&sender), 0);
}

#[test]
fn dsacks_of_earlier_data_are_ignored() {
    let mut sender = under_way("newreno+dsack");
    sender.ack(2);
    assert!(sender.wait(RTT).dupacks(3).starts_with("3r"));
    report(&mut sender, 1, 2);
    sender.ack_all();
    report(&mut sender, 3, 3);
    assert_eq!(undone(&sender), 1);
}

#[test]
fn timeout_undo_needs_dsack_of_every_retransmission() {
    let mut sender = under_way("newreno+dsack");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.ack(1), "2r 3r");
    assert_eq!(sender.ack(2), "4r 5r");
    // The originals are faster than the retransmissions.
    assert_eq!(sender.ack(10), "11 12 13 14", "slow start is at 4");
    report(&mut sender, 1, 1);
    report(&mut sender, 2, 2);
    assert_eq!(undone(&sender), 0);
    // One report covers three retransmissions.
    assert_eq!(report(&mut sender, 3, 5), "");
    assert_eq!((undone(&sender), sender.cc().cwnd, sender.cc().ssthresh), (1, 4.0, 10.0));
}

#[test]
fn spurious_timeout_raises_srtt_and_rttvar() {
    let mut sender = under_way("newreno+dsack");
    sender.timeout();
    sender.ack(10);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 1);
    sender.wait(RTT).ack_all();
    // max(SRTT_prev, 300) and max(RTTVAR_prev, 300/2), as in RFC 4015 step (11).
    let (sample, next) = (Duration::from_millis(300), sender.una() + 1);
    sender.wait(sample).ack(next);
    assert_eq!((sender.rtt.srtt(), sender.rtt.rttvar()), (Some(sample), sample / 2));
}

#[test]
fn timeout_in_recovery_belongs_to_same_episode() {
    let mut sender = under_way("newreno+dsack");
    assert_eq!(sender.wait(RTT).dupacks(3), "1r");
    assert_eq!(sender.timeout(), "1r");
    sender.ack(10);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 0, "one of two retransmissions");
    report(&mut sender, 1, 1);
    assert_eq!((undone(&sender), sender.cc().ssthresh), (1, 10.0), "as before the fast retransmission");
}

#[test]
fn partial_dsack_does_not_undo() {
    let mut sender = reordered("newreno+dsack");
    sender.receive(Ack { dsack: Some((0, 400)), ..Ack::default() }, 10, &[]);
    assert_eq!(undone(&sender), 0);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 1);
}

#[test]
fn ecn_echo_prevents_undo() {
    let mut sender = reordered("newreno+dsack");
    sender.receive(Ack { dsack: Some((0, 1000)), ece: true, ..Ack::default() }, 10, &[]);
    assert_eq!(undone(&sender), 0);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 0, "a later D-SACK does not undo it either");
}

#[test]
fn invalid_dsacks_neither_panic_nor_undo() {
    let mut sender = under_way("newreno+dsack");
    sender.wait(RTT).dupacks(3);
    for (left, right) in [(0, 0), (5, 3), (0, u64::MAX), (u64::MAX - 1, u64::MAX), (0, 1), (999, 1001)] {
        sender.receive(Ack { dsack: Some((left, right)), ..Ack::default() }, 0, &[]);
    }
    assert_eq!(undone(&sender), 0);
    assert!(sender.cc().cwnd >= 1.0);
}
