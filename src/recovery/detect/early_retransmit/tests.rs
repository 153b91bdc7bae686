use crate::profile::Profile;
use crate::recovery::Recipe;
use crate::recovery::testing::{BareSender, RTT};

/// A sender with `segments` segments, all in flight. The window is larger.
fn tail(recipe: &str, segments: u64) -> BareSender {
    let mut sender = BareSender::new(recipe);
    sender.written = segments;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    sender.wait(RTT);
    sender
}

#[test]
fn small_flight_lowers_duplicate_ack_threshold() {
    for repair in ["tahoe", "reno", "newreno"] {
        let recipe = format!("{repair}+early-retransmit");
        assert_eq!(tail(&recipe, 2).dupacks(1), "1r", "{repair}");
        let mut three = tail(&recipe, 3);
        assert_eq!(three.dupacks(1), "", "{repair}");
        assert_eq!(three.dupacks(1), "1r", "{repair}");
        assert_eq!(three.counters().window_reductions, 1, "{repair}");
    }
}

#[test]
fn threshold_is_unchanged_without_early_retransmit() {
    assert_eq!(tail("newreno", 2).dupacks(1), "");
    assert_eq!(tail("newreno", 3).dupacks(2), "");
}

#[test]
fn four_segments_need_three_duplicate_acks() {
    let mut four = tail("newreno+early-retransmit", 4);
    assert_eq!(four.dupacks(2), "");
    assert_eq!(four.dupacks(1), "1r");
}

#[test]
fn single_segment_needs_three_duplicate_acks() {
    assert_eq!(tail("newreno+early-retransmit", 1).dupacks(3), "1r", "three duplicate ACKs always suffice");
    assert_eq!(tail("newreno+early-retransmit", 1).dupacks(2), "");
}

#[test]
fn scoreboard_requires_sack_of_all_other_segments() {
    let mut sender = tail("sack+early-retransmit", 3);
    assert_eq!(sender.sack(&[3..4]), "");
    assert_eq!(sender.sack(&[2..4]), "1r");
    let mut without = tail("sack", 3);
    assert_eq!(without.sack(&[2..4]), "");
}

#[test]
fn advancing_ack_can_trigger_early_retransmit() {
    let mut sender = tail("sack+early-retransmit", 4);
    assert_eq!(sender.sack(&[4..5]), "");
    assert_eq!(sender.ack(1), "", "2 and 3 are missing");
    assert_eq!(sender.ack(2), "3r", "3 is missing, and 4 has arrived");
}

#[test]
fn new_data_to_send_disables_early_retransmit() {
    for (window, sent) in [(2, "1r"), (3, "")] {
        let mut sender = BareSender::new("newreno+early-retransmit");
        sender.written = 5;
        sender.rwnd = 2;
        let mut sender = sender.under_way(2.0, 8.0, RTT);
        sender.rwnd = window;
        assert_eq!(sender.wait(RTT).dupacks(1), sent, "the receiver's window is {window} segments");
    }
}

#[test]
fn peer_without_sack_uses_duplicate_acks() {
    let mut sender = BareSender::without_sack("sack+early-retransmit", Profile::default());
    sender.written = 3;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    assert_eq!(sender.wait(RTT).dupacks(2), "1r");
}

#[test]
fn recipe_with_early_retransmit_round_trips() {
    let recipe: Recipe = "early-retransmit+no-rescue".parse().unwrap();
    assert_eq!(recipe.canonical(), "sack+no-rescue+early-retransmit");
    assert_eq!(recipe.canonical().parse::<Recipe>().unwrap(), recipe);
    let error = "newreno+no-rescue".parse::<Recipe>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`no-rescue` works only with `sack`, not with `newreno`; use `sack+no-rescue`"
    );
}
