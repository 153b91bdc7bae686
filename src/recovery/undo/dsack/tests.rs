use airwire::time::Duration;

use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::undo::testing::{RTT, under_way, undone};
use crate::recovery::{Ack, Phase};

/// An ACK with nothing new but the report that these segments (a range of numbers) have arrived twice.
fn report(sender: &mut BareSender, first: u64, last: u64) -> String {
    let una = sender.flight.una() / SMSS;
    let dsack = Some(((first - 1) * SMSS, last * SMSS));
    sender.receive(Ack { dsack, ..Ack::default() }, una, &[])
}

/// Segment 1 arrives after the nine others, and was sent again meanwhile.
fn reordered(recipe: &str) -> BareSender {
    let mut sender = under_way(recipe);
    assert_eq!(sender.wait(RTT).dupacks(9), "1r 11 12 13 14");
    assert_eq!(sender.ack(10), "15");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh, sender.cc().phase()), (5.0, 5.0, Phase::Open));
    sender
}

#[test]
fn a_fast_retransmit_whose_copy_is_reported_was_a_mistake() {
    let mut sender = reordered("newreno+dsack");
    // FlightSize 5 is not more than cwnd; pipe_prev = max(FlightSize 10, 8).
    assert_eq!(report(&mut sender, 1, 1), "");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (5.0, 10.0));
    // Slow start up to there.
    assert_eq!(sender.wait(RTT).ack(11), "16 17");
    assert_eq!(undone(&sender), 1);
    // The event is over: further reports say nothing about it.
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 1);
}

#[test]
fn never_less_than_the_present_window() {
    let mut sender = reordered("newreno+dsack");
    for segment in 11..60 {
        sender.wait(RTT).ack(segment);
    }
    let before = (sender.cc().cwnd, sender.cc().ssthresh);
    assert!(before.0 > 10.0);
    report(&mut sender, 1, 1);
    assert_eq!(sender.cc().cwnd, before.0);
    assert_eq!(sender.cc().ssthresh, 10.0);
}

#[test]
fn in_the_middle_of_recovery_it_ends() {
    let mut sender = under_way("sack+dsack");
    sender.wait(RTT);
    sender.sack(&[2..3]);
    sender.sack(&[2..4]);
    assert_eq!(sender.sack(&[2..5]), "1r");
    // The original of 1, late; 5 is late too, and 6 to 9 overtake it.
    sender.ack(4);
    for end in 7..=9 {
        sender.sack(&[6..end]);
    }
    assert_eq!(sender.cc().phase(), Phase::Recovery);
    assert!(sender.flight.segment_at(4 * SMSS).unwrap().transmissions == 2, "5r");
    report(&mut sender, 1, 1);
    assert_eq!((undone(&sender), sender.cc().phase()), (0, Phase::Recovery), "what about 5?");
    sender.ack(8);
    report(&mut sender, 5, 5);
    assert_eq!((undone(&sender), sender.cc().phase()), (1, Phase::Open));
    assert_eq!(sender.cc().ssthresh, 10.0);
}

/// The ACK of everything outstanding when the event began reports the last copy.
fn ends_with_the_report(recipe: &str, begin: impl FnOnce(&mut BareSender)) -> BareSender {
    let mut sender = under_way(recipe);
    sender.wait(RTT);
    begin(&mut sender);
    assert_ne!(sender.cc().phase(), Phase::Open);
    let all = sender.flight.max() / SMSS;
    sender.receive(Ack { dsack: Some((0, SMSS)), ..Ack::default() }, all, &[]);
    sender
}

#[test]
fn the_ack_that_ends_the_event_may_bring_the_last_report() {
    for recipe in ["reno+dsack", "newreno+dsack", "tahoe+dsack"] {
        let sender = ends_with_the_report(recipe, |sender| {
            assert!(sender.dupacks(3).starts_with("1r"));
        });
        assert_eq!(
            (undone(&sender), sender.cc().phase(), sender.cc().ssthresh),
            (1, Phase::Open, 10.0),
            "{recipe}"
        );
    }
    let sender = ends_with_the_report("sack+dsack", |sender| {
        sender.sack(&[2..5]);
    });
    assert_eq!((undone(&sender), sender.cc().phase(), sender.cc().ssthresh), (1, Phase::Open, 10.0));
    let sender = ends_with_the_report("newreno+dsack", |sender| {
        assert_eq!(sender.timeout(), "1r");
    });
    assert_eq!((undone(&sender), sender.cc().phase(), sender.cc().ssthresh), (1, Phase::Open, 10.0));
}

#[test]
fn an_ecn_echo_after_the_event_stands() {
    let mut sender = reordered("newreno+dsack");
    sender.wait(RTT);
    sender.receive(Ack { ece: true, ..Ack::default() }, 11, &[]);
    assert_eq!(sender.cc().phase(), Phase::Reduced);
    let window = (sender.cc().cwnd, sender.cc().ssthresh);
    report(&mut sender, 1, 1);
    assert_eq!((undone(&sender), sender.cc().phase()), (0, Phase::Reduced));
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), window);
}

#[test]
fn what_was_needed_is_not_taken_back() {
    let mut sender = reordered("newreno+dsack");
    for segment in 11..40 {
        sender.wait(RTT).ack(segment);
    }
    assert_eq!(undone(&sender), 0);
}

#[test]
fn a_report_of_what_was_sent_once_means_that_the_network_duplicates() {
    let mut sender = reordered("newreno+dsack");
    report(&mut sender, 3, 3);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 0);
}

#[test]
fn more_reports_than_copies_mean_the_same() {
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
fn reports_about_earlier_data_say_nothing_about_this_event() {
    let mut sender = under_way("newreno+dsack");
    sender.ack(2);
    assert!(sender.wait(RTT).dupacks(3).starts_with("3r"));
    report(&mut sender, 1, 2);
    sender.ack(sender.flight.max() / SMSS);
    report(&mut sender, 3, 3);
    assert_eq!(undone(&sender), 1);
}

#[test]
fn after_a_timeout_every_copy_has_to_be_reported() {
    let mut sender = under_way("newreno+dsack");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.ack(1), "2r 3r");
    assert_eq!(sender.ack(2), "4r 5r");
    // The originals are faster than the copies.
    assert_eq!(sender.ack(10), "11 12 13 14", "slow start is at 4");
    report(&mut sender, 1, 1);
    report(&mut sender, 2, 2);
    assert_eq!(undone(&sender), 0);
    // Three copies in one report.
    assert_eq!(report(&mut sender, 3, 5), "");
    assert_eq!((undone(&sender), sender.cc().cwnd, sender.cc().ssthresh), (1, 4.0, 10.0));
}

#[test]
fn after_a_spurious_timeout_the_timer_is_more_cautious() {
    let mut sender = under_way("newreno+dsack");
    sender.timeout();
    sender.ack(10);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 1);
    let before = sender.flight.max() / SMSS;
    sender.wait(RTT).ack(before);
    // max(SRTT_prev, 300) and max(RTTVAR_prev, 300/2), as in RFC 4015 step (11).
    let sample = Duration::from_millis(300);
    sender.wait(sample).ack(before + 1);
    assert_eq!((sender.rtt.srtt(), sender.rtt.rttvar()), (Some(sample), sample / 2));
}

#[test]
fn a_timeout_in_recovery_belongs_to_the_same_event() {
    let mut sender = under_way("newreno+dsack");
    assert_eq!(sender.wait(RTT).dupacks(3), "1r");
    assert_eq!(sender.timeout(), "1r");
    sender.ack(10);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 0, "one copy of two");
    report(&mut sender, 1, 1);
    assert_eq!((undone(&sender), sender.cc().ssthresh), (1, 10.0), "as before the fast retransmit");
}

#[test]
fn a_copy_of_which_the_receiver_needed_a_part_was_no_mistake() {
    let mut sender = reordered("newreno+dsack");
    sender.receive(Ack { dsack: Some((0, 400)), ..Ack::default() }, 10, &[]);
    assert_eq!(undone(&sender), 0);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 1);
}

#[test]
fn an_ecn_echo_stands_in_the_way() {
    let mut sender = reordered("newreno+dsack");
    sender.receive(Ack { dsack: Some((0, 1000)), ece: true, ..Ack::default() }, 10, &[]);
    assert_eq!(undone(&sender), 0);
    report(&mut sender, 1, 1);
    assert_eq!(undone(&sender), 0, "and it does not come back");
}

#[test]
fn garbage_neither_panics_nor_undoes() {
    let mut sender = under_way("newreno+dsack");
    sender.wait(RTT).dupacks(3);
    for (left, right) in [(0, 0), (5, 3), (0, u64::MAX), (u64::MAX - 1, u64::MAX), (0, 1), (999, 1001)] {
        sender.receive(Ack { dsack: Some((left, right)), ..Ack::default() }, 0, &[]);
    }
    assert_eq!(undone(&sender), 0);
    assert!(sender.cc().cwnd >= 1.0);
}
