use crate::recovery::testing::BareSender;
use crate::recovery::undo::testing::{ORIGINAL, RTT, under_way, undone, window};
use crate::recovery::{Ack, Phase};

#[test]
fn a_spurious_timeout_is_taken_back_and_sending_goes_on_at_snd_max() {
    let mut sender = under_way("newreno+eifel-linux");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(window(&sender), (1.0, 5.0));
    // Twice the reduced ssthresh, and less than 9 + 3. Before it was max(8, 3/4 of 10).
    assert_eq!(sender.wait(RTT).ack_echoing(1, ORIGINAL), "11");
    assert_eq!((window(&sender), undone(&sender)), ((10.0, 8.0), 1));
    assert_eq!(sender.cc().phase(), Phase::Open);
}

#[test]
fn an_ack_of_everything_counts_too_and_releases_three_segments() {
    for (recipe, expected) in [("newreno+eifel-linux", 1), ("newreno+eifel", 0)] {
        let mut sender = under_way(recipe);
        sender.timeout();
        let sent = sender.wait(RTT).ack_echoing(10, ORIGINAL);
        assert_eq!(undone(&sender), expected, "{recipe}: RFC 3522 step (5) is what they differ in");
        if expected == 1 {
            assert_eq!(sent, "11 12 13");
            assert_eq!(window(&sender), (3.0, 8.0));
        }
    }
}

#[test]
fn the_first_window_of_two_segments_goes_on_in_slow_start() {
    let mut sender = BareSender::new("newreno+eifel-linux").under_way(2.0, f64::INFINITY, RTT);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(window(&sender), (1.0, 2.0));
    sender.wait(RTT).ack_echoing(2, ORIGINAL);
    assert_eq!(window(&sender), (3.0, f64::INFINITY));
}

#[test]
fn a_real_timeout_stands() {
    let mut sender = under_way("newreno+eifel-linux");
    sender.timeout();
    let copy = sender.now.as_millis() as u32;
    // Duplicate ACKs beside the hole echo an old timestamp.
    let duplicate = Ack { ecr: Some(ORIGINAL), ..Ack::default() };
    sender.wait(RTT).receive(duplicate, 0, &[]);
    sender.ack_echoing(1, copy);
    assert_eq!(undone(&sender), 0);
    assert_eq!(sender.cc().ssthresh, 5.0);
}

#[test]
fn a_timeout_of_what_was_sent_again_before_is_not_asked_about() {
    let mut sender = under_way("newreno+eifel-linux");
    sender.timeout();
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    assert_eq!(undone(&sender), 0);
}

#[test]
fn the_timer_stays_as_it_is() {
    let mut sender = under_way("newreno+eifel-linux");
    sender.timeout();
    sender.ack_echoing(10, ORIGINAL);
    let srtt = sender.rtt.srtt();
    sender.wait(RTT).ack(11);
    assert!(sender.rtt.srtt() <= srtt, "RFC 4015 step (11) would set it to the first sample at least");
}

#[test]
fn an_ecn_echo_and_an_echo_of_zero_leave_the_window_reduced() {
    for ack in [
        Ack { ecr: Some(ORIGINAL), ece: true, ..Ack::default() },
        Ack { ecr: Some(0), ..Ack::default() },
        Ack::default(),
    ] {
        let mut sender = under_way("newreno+eifel-linux");
        sender.timeout();
        sender.receive(ack, 1, &[]);
        assert_eq!(undone(&sender), 0, "{ack:?}");
    }
}
