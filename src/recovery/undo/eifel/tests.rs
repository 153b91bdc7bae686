use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::decision::What;
use crate::recovery::testing::BareSender;
use crate::recovery::undo::testing::{ORIGINAL, RTT, under_way, undone, window};
use crate::recovery::{Ack, Decision, Handshake, Phase};

#[test]
fn a_spurious_timeout_is_taken_back_and_sending_goes_on_at_snd_max() {
    let mut sender = under_way("newreno+eifel");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(window(&sender), (1.0, 5.0));
    // Everything was only late. FlightSize 9 + min(1 acknowledged, IW 10); pipe_prev = max(FlightSize 10, 8).
    assert_eq!(sender.wait(RTT).ack_echoing(1, ORIGINAL), "11");
    assert_eq!(window(&sender), (10.0, 10.0));
    assert_eq!(sender.cc().phase(), Phase::Open);
    assert_eq!(sender.ack_echoing(2, ORIGINAL), "12", "none of the others is sent again");
    assert_eq!((undone(&sender), sender.recovery.counters().spurious_timeouts), (1, 1));
}

#[test]
fn what_one_ack_may_release_is_bounded_by_the_initial_window() {
    let mut sender = BareSender::new("newreno+eifel+iw=2").under_way(10.0, 8.0, RTT);
    sender.timeout();
    // FlightSize 4 + min(6 acknowledged, IW 2): slow start brings the rest back.
    assert_eq!(sender.ack_echoing(6, ORIGINAL), "11 12");
    assert_eq!(window(&sender), (6.0, 10.0));
    assert_eq!(sender.ack_echoing(7, ORIGINAL), "13 14");
}

#[test]
fn pipe_prev_is_ssthresh_where_that_is_more() {
    let mut sender = BareSender::new("newreno+eifel").under_way(10.0, 40.0, RTT);
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    assert_eq!(window(&sender), (10.0, 40.0));
}

#[test]
fn a_real_timeout_stands() {
    for recipe in ["newreno+eifel", "newreno"] {
        let mut sender = under_way(recipe);
        sender.timeout();
        // Its echo is that of the copy.
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r", "{recipe}");
        assert_eq!((window(&sender), undone(&sender)), ((2.0, 5.0), 0), "{recipe}");
    }
}

#[test]
fn a_spurious_fast_retransmit_is_taken_back_too() {
    let mut sender = under_way("newreno+eifel");
    assert_eq!(sender.wait(RTT).dupacks(3), "1r");
    assert_eq!(window(&sender), (5.0, 5.0));
    // FlightSize 6 + 4 acknowledged.
    assert_eq!(sender.ack_echoing(4, ORIGINAL), "11 12 13 14");
    assert_eq!((window(&sender), sender.cc().phase()), ((10.0, 10.0), Phase::Open));
    assert_eq!(sender.recovery.counters().spurious_fast_retransmits, 1);
}

#[test]
fn what_duplicate_acks_have_let_out_makes_the_window_no_larger_than_it_was() {
    for recipe in ["newreno+eifel", "newreno+eifel+limited-transmit"] {
        let mut sender = under_way(recipe);
        sender.wait(RTT).dupacks(9);
        // FlightSize 4 + 10 acknowledged would be 14.
        assert_eq!(sender.flight.max(), 14_000, "{recipe}");
        sender.ack_echoing(10, ORIGINAL);
        assert_eq!(window(&sender), (10.0, 10.0), "{recipe}");
    }
}

#[test]
fn only_the_first_acceptable_ack_is_asked() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    // Segments 1 and 4 were lost: the copy of 1 fills the first hole, and partial ACKs go on with old echoes.
    let copy = sender.now.as_millis() as u32;
    assert!(sender.wait(RTT).ack_echoing(3, copy).starts_with("4r"));
    sender.ack_echoing(4, ORIGINAL);
    assert_eq!(undone(&sender), 0);
    assert_eq!(sender.cc().phase(), Phase::Recovery);
}

#[test]
fn repeated_timeouts_keep_the_first_retransmit_ts_and_the_first_window() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    let first_copy = sender.now.as_millis() as u32;
    for _ in 0..3 {
        assert_eq!(sender.timeout(), "1r");
    }
    assert_eq!(sender.ack_echoing(1, ORIGINAL), "11");
    assert_eq!(window(&sender), (10.0, 10.0), "from before the first");
    assert_eq!(sender.rtt.backoff(), 4, "the harness takes no sample of what was sent again");

    // The copy of the first timeout arrived, the later ones were in vain: the first timeout was real.
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.timeout();
    sender.ack_echoing(1, first_copy);
    assert_eq!(undone(&sender), 0);
}

#[test]
fn a_timeout_of_what_was_fast_retransmitted_belongs_to_the_same_event() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(window(&sender), (1.0, 5.0));
    sender.ack_echoing(4, ORIGINAL);
    assert_eq!(window(&sender), (10.0, 10.0));
    // The timer was wrong too: max(SRTT_prev, 250) with the first sample of new data.
    sender.ack_echoing(10, ORIGINAL);
    sender.wait(Duration::from_millis(250)).ack(11);
    assert_eq!(sender.rtt.srtt(), Some(Duration::from_millis(250)));
}

#[test]
fn a_timeout_in_the_middle_of_a_repair_is_not_asked_about() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    let copy = sender.now.as_millis() as u32;
    // 1, 3 and more are lost. The repair takes longer than the timer.
    assert!(sender.wait(RTT).ack_echoing(2, copy).starts_with("3r"));
    let copy = sender.now.as_millis() as u32;
    assert_eq!(sender.timeout(), "3r");
    sender.ack_echoing(4, copy);
    assert_eq!(undone(&sender), 0, "the one before was under way, but 5 is missing, too");
    assert_eq!(sender.recovery.counters().spurious_timeouts, 1);
}

#[test]
fn a_sender_that_starts_over_goes_on_where_it_was() {
    let mut sender = under_way("tahoe+eifel");
    assert_eq!(sender.wait(RTT).dupacks(3), "1r");
    assert_eq!(sender.ack_echoing(4, ORIGINAL), "11 12 13 14");
    assert_eq!((window(&sender), sender.cc().phase()), ((10.0, 10.0), Phase::Open));
}

#[test]
fn an_ecn_echo_leaves_the_window_reduced_but_nothing_is_sent_again() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    let echo = Ack { ecr: Some(ORIGINAL), ece: true, ..Ack::default() };
    assert_eq!(sender.receive(echo, 1, &[]), "");
    assert_eq!((window(&sender), undone(&sender)), ((2.0, 5.0), 0));
    assert!(!sender.flight.has_rewound());
    // 9 outstanding against a window that grows by one per ACK: they meet at 5.
    assert_eq!(sender.ack_echoing(5, ORIGINAL), "");
    assert_eq!(sender.ack_echoing(8, ORIGINAL), "11 12");
}

#[test]
fn an_ack_of_everything_proves_something_only_if_duplicates_are_reported() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(10, ORIGINAL);
    assert_eq!(undone(&sender), 0, "the ACK of the originals, or of the copy after all other ACKs were lost");

    let mut sender = under_way("newreno+eifel");
    sender.receive(Ack { dsack: Some((0, 1)), ..Ack::default() }, 0, &[]);
    sender.timeout();
    sender.ack_echoing(10, ORIGINAL);
    assert_eq!(undone(&sender), 1, "the copy would have been reported");

    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    let report = Ack { ecr: Some(ORIGINAL), dsack: Some((0, 1000)), ..Ack::default() };
    sender.receive(report, 5, &[]);
    assert_eq!(undone(&sender), 0, "it answers the copy");
}

#[test]
fn a_single_segment_tells_nothing() {
    let mut sender = BareSender::new("newreno+eifel").under_way(1.0, 8.0, RTT);
    assert_eq!(sender.timeout(), "1r");
    sender.ack_echoing(1, ORIGINAL);
    assert_eq!(undone(&sender), 0);
    assert!(sender.cc().cwnd >= 1.0);
}

#[test]
fn an_echo_of_zero_or_none_proves_nothing() {
    for ecr in [Some(0), None] {
        let mut sender = under_way("newreno+eifel");
        sender.timeout();
        sender.receive(Ack { ecr, ..Ack::default() }, 1, &[]);
        assert_eq!(undone(&sender), 0, "{ecr:?}");
    }
}

#[test]
fn echoes_are_compared_across_the_wrap() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL.wrapping_sub(5000));
    assert_eq!(undone(&sender), 1);
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL.wrapping_add(1 << 30));
    assert_eq!(undone(&sender), 0);
}

#[test]
fn the_timer_goes_on_from_the_first_sample_of_new_data() {
    let mut sender = under_way("newreno+eifel");
    let rttvar = sender.rtt.rttvar();
    sender.timeout();
    assert_eq!(sender.ack_echoing(1, ORIGINAL), "11");
    // A sample of old data measures how late it was: SRTT = 7/8·100 + 1/8·1000.
    sender.ack_echoing(2, ORIGINAL);
    assert!(sender.rtt.srtt() > Some(RTT * 2));
    sender.ack_echoing(10, ORIGINAL);
    // max(SRTT_prev 100 + 2G, 250) and max(RTTVAR_prev, 250/2).
    let sample = Duration::from_millis(250);
    sender.wait(sample).ack(11);
    assert_eq!((sender.rtt.srtt(), sender.rtt.rttvar()), (Some(sample), sample / 2));
    // Only once: 7/8·250 + 1/8·350, as ever.
    sender.wait(RTT).ack(12);
    assert_eq!(sender.rtt.srtt(), Some(Duration::from_micros(262_500)));

    // The path is as fast as before, and the timer is a little more cautious all the same.
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    sender.ack_echoing(10, ORIGINAL);
    sender.wait(Duration::from_millis(2)).ack(11);
    let srtt_prev = RTT + Duration::from_millis(2);
    assert_eq!((sender.rtt.srtt(), sender.rtt.rttvar()), (Some(srtt_prev), rttvar));
}

#[test]
fn a_fast_retransmit_says_nothing_about_the_timer() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    sender.ack_echoing(10, ORIGINAL);
    let srtt = sender.rtt.srtt();
    sender.wait(RTT).ack(11);
    assert!(sender.rtt.srtt() <= srtt);
}

#[test]
fn a_loss_beside_the_late_ones_is_found() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    sender.ack_echoing(3, ORIGINAL);
    // 4 is missing: three duplicate ACKs, in spite of `recover`.
    assert!(sender.dupacks(3).starts_with("4r"));
    assert_eq!(sender.cc().phase(), Phase::Recovery);
}

/// A spurious timeout, a spurious fast retransmit and a real one.
fn story(recipe: &str, timestamps: bool) -> (Vec<Decision>, Vec<String>) {
    let handshake = Handshake { timestamps, ..Handshake::default() };
    let mut sender = BareSender::with(recipe, Profile::default(), &handshake);
    let start = sender.trace();
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    let mut sent = vec![sender.timeout()];
    let ecr = timestamps.then_some(ORIGINAL);
    for segment in [1, 2, 10, 12] {
        sent.push(sender.receive(Ack { ecr, ..Ack::default() }, segment, &[]));
    }
    sent.push(sender.wait(RTT).dupacks(3));
    let next = sender.flight.max() / 1000;
    sent.push(sender.receive(Ack { ecr, ..Ack::default() }, next, &[]));
    let mut trace = start;
    trace.extend(sender.trace());
    (trace, sent)
}

#[test]
fn without_timestamps_it_says_so_once_and_is_not_there() {
    let (trace, sent) = story("newreno+eifel", false);
    let is_fallback = |decision: &&Decision| matches!(decision.what, What::Fallback { .. });
    let said: Vec<_> = trace.iter().filter(is_fallback).collect();
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].by, said[0].why), ("eifel", "no timestamps on this connection"));
    let others: Vec<_> = trace.iter().filter(|decision| !is_fallback(decision)).cloned().collect();
    assert_eq!((others, sent), story("newreno", false));
    assert_ne!(story("newreno+eifel", true).1, story("newreno", true).1, "with them it is");
}
