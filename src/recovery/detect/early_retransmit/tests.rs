use airwire::time::Duration;

use crate::recovery::Recipe;
use crate::recovery::testing::BareSender;

const RTT: Duration = Duration::from_millis(100);

/// All that is written, `segments` of them, is outstanding; the window is larger.
fn tail(recipe: &str, segments: u64) -> BareSender {
    let mut sender = BareSender::new(recipe);
    sender.written = segments;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    sender.wait(RTT);
    sender
}

#[test]
fn as_many_duplicates_as_the_other_segments_can_cause_are_enough() {
    for repair in ["tahoe", "reno", "newreno"] {
        let recipe = format!("{repair}+early-retransmit");
        assert_eq!(tail(&recipe, 2).dupacks(1), "1r", "{repair}");
        let mut three = tail(&recipe, 3);
        assert_eq!(three.dupacks(1), "", "{repair}");
        assert_eq!(three.dupacks(1), "1r", "{repair}");
        assert_eq!(three.recovery.counters().window_reductions, 1, "{repair}");
    }
}

#[test]
fn without_it_they_are_not() {
    assert_eq!(tail("newreno", 2).dupacks(1), "");
    assert_eq!(tail("newreno", 3).dupacks(2), "");
}

#[test]
fn four_segments_can_cause_three_duplicates() {
    let mut four = tail("newreno+early-retransmit", 4);
    assert_eq!(four.dupacks(2), "");
    assert_eq!(four.dupacks(1), "1r");
}

#[test]
fn one_segment_cannot_have_been_overtaken() {
    assert_eq!(tail("newreno+early-retransmit", 1).dupacks(3), "1r", "three are three, whatever they mean");
    assert_eq!(tail("newreno+early-retransmit", 1).dupacks(2), "");
}

#[test]
fn with_a_scoreboard_all_but_the_first_must_be_sacked() {
    let mut sender = tail("sack+early-retransmit", 3);
    assert_eq!(sender.sack(&[3..4]), "");
    assert_eq!(sender.sack(&[2..4]), "1r");
    let mut without = tail("sack", 3);
    assert_eq!(without.sack(&[2..4]), "");
}

#[test]
fn with_a_scoreboard_the_last_report_may_come_with_progress() {
    let mut sender = tail("sack+early-retransmit", 4);
    assert_eq!(sender.sack(&[4..5]), "");
    assert_eq!(sender.ack(1), "", "2 and 3 are missing");
    assert_eq!(sender.ack(2), "3r", "3 is missing, and 4 has arrived");
}

#[test]
fn it_waits_while_something_new_could_be_sent() {
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
fn without_sack_it_counts_duplicates_whatever_the_recipe_wants() {
    let mut sender = BareSender::without_sack("sack+early-retransmit");
    sender.written = 3;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    assert_eq!(sender.wait(RTT).dupacks(2), "1r");
}

#[test]
fn its_name_stands_in_the_recipe() {
    let recipe: Recipe = "early-retransmit+no-rescue".parse().unwrap();
    assert_eq!(recipe.canonical(), "sack+no-rescue+early-retransmit");
    assert_eq!(recipe.canonical().parse::<Recipe>().unwrap(), recipe);
    let error = "newreno+no-rescue".parse::<Recipe>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`no-rescue` works only with `sack`, not with `newreno`; use `sack+no-rescue`"
    );
}
