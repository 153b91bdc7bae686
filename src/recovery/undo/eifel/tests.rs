use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::decision::What;
use crate::recovery::testing::{BareSender, RTT};
use crate::recovery::undo::testing::{ORIGINAL, under_way, undone};
use crate::recovery::{Ack, Decision, Handshake, RecoveryState};

#[test]
fn undone_timeout_resumes_at_snd_max() {
    let mut sender = under_way("newreno+eifel");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.window(), (1.0, 5.0));
    // All segments were only late.
    // FlightSize 9 + min(1 acknowledged, IW 10); pipe_prev = max(FlightSize 10, 8).
    assert_eq!(sender.wait(RTT).ack_echoing(1, ORIGINAL), "11");
    assert_eq!(sender.window(), (10.0, 10.0));
    assert_eq!(sender.cc().state(), RecoveryState::Open);
    assert_eq!(sender.ack_echoing(2, ORIGINAL), "12", "no other segment is retransmitted");
    assert_eq!((undone(&sender), sender.counters().spurious_timeouts), (1, 1));
}

#[test]
fn undo_burst_is_limited_to_initial_window() {
    let mut sender = BareSender::new("newreno+eifel+iw=2").under_way(10.0, 8.0, RTT);
    sender.timeout();
    // FlightSize 4 + min(6 acknowledged, IW 2). Slow start restores the rest.
    assert_eq!(sender.ack_echoing(6, ORIGINAL), "11 12");
    assert_eq!(sender.window(), (6.0, 10.0));
    assert_eq!(sender.ack_echoing(7, ORIGINAL), "13 14");
}

#[test]
fn pipe_prev_is_at_least_ssthresh() {
    let mut sender = BareSender::new("newreno+eifel").under_way(10.0, 40.0, RTT);
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    assert_eq!(sender.window(), (10.0, 40.0));
}

#[test]
fn genuine_timeout_is_not_undone() {
    for recipe in ["newreno+eifel", "newreno"] {
        let mut sender = under_way(recipe);
        sender.timeout();
        // The ACK echoes the timestamp of the retransmission.
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r", "{recipe}");
        assert_eq!((sender.window(), undone(&sender)), ((2.0, 5.0), 0), "{recipe}");
    }
}

#[test]
fn spurious_fast_retransmission_is_undone() {
    let mut sender = under_way("newreno+eifel");
    assert_eq!(sender.wait(RTT).dupacks(3), "1r");
    assert_eq!(sender.window(), (5.0, 5.0));
    // FlightSize 6 + 4 acknowledged.
    assert_eq!(sender.ack_echoing(4, ORIGINAL), "11 12 13 14");
    assert_eq!((sender.window(), sender.cc().state()), ((10.0, 10.0), RecoveryState::Open));
    assert_eq!(sender.counters().spurious_fast_retransmits, 1);
}

#[test]
fn restored_window_does_not_exceed_previous_window() {
    for recipe in ["newreno+eifel", "newreno+eifel+limited-transmit"] {
        let mut sender = under_way(recipe);
        sender.wait(RTT).dupacks(9);
        // FlightSize 4 + 10 acknowledged would be 14.
        assert_eq!(sender.flight.max(), 14_000, "{recipe}");
        sender.ack_echoing(10, ORIGINAL);
        assert_eq!(sender.window(), (10.0, 10.0), "{recipe}");
    }
}

#[test]
fn only_first_acceptable_ack_can_undo() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    // Segments 1 and 4 were lost: the retransmission of 1 fills the first hole, and later partial ACKs have
    // old echoes.
    let copy = sender.now.as_millis() as u32;
    assert!(sender.wait(RTT).ack_echoing(3, copy).starts_with("4r"));
    sender.ack_echoing(4, ORIGINAL);
    assert_eq!(undone(&sender), 0);
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
}

#[test]
fn repeated_timeouts_keep_first_timestamp_and_window() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    let first_copy = sender.now.as_millis() as u32;
    for _ in 0..3 {
        assert_eq!(sender.timeout(), "1r");
    }
    assert_eq!(sender.ack_echoing(1, ORIGINAL), "11");
    assert_eq!(sender.window(), (10.0, 10.0), "as before the first timeout");
    assert_eq!(sender.rtt.backoff(), 4, "the harness takes no RTT sample of retransmissions");

    // The retransmission of the first timeout arrived, and the later ones were unnecessary: the first timeout
    // was genuine.
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.timeout();
    sender.ack_echoing(1, first_copy);
    assert_eq!(undone(&sender), 0);
}

#[test]
fn timeout_after_fast_retransmission_belongs_to_same_episode() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.window(), (1.0, 5.0));
    sender.ack_echoing(4, ORIGINAL);
    assert_eq!(sender.window(), (10.0, 10.0));
    // The timer was also wrong: max(SRTT_prev, 250) with the first sample of new data.
    sender.ack_echoing(10, ORIGINAL);
    sender.wait(Duration::from_millis(250)).ack(11);
    assert_eq!(sender.rtt.srtt(), Some(Duration::from_millis(250)));
}

#[test]
fn timeout_during_recovery_is_not_undone() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    let copy = sender.now.as_millis() as u32;
    // Segments 1, 3 and others are lost. The repair takes longer than the timer.
    assert!(sender.wait(RTT).ack_echoing(2, copy).starts_with("3r"));
    let copy = sender.now.as_millis() as u32;
    assert_eq!(sender.timeout(), "3r");
    sender.ack_echoing(4, copy);
    assert_eq!(undone(&sender), 0, "the earlier retransmission was in flight, but 5 is missing, too");
    assert_eq!(sender.counters().spurious_timeouts, 1);
}

#[test]
fn undo_resumes_tahoe_at_snd_max() {
    let mut sender = under_way("tahoe+eifel");
    assert_eq!(sender.wait(RTT).dupacks(3), "1r");
    assert_eq!(sender.ack_echoing(4, ORIGINAL), "11 12 13 14");
    assert_eq!((sender.window(), sender.cc().state()), ((10.0, 10.0), RecoveryState::Open));
}

#[test]
fn ecn_echo_keeps_reduction_but_stops_retransmission() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    let echo = Ack { ecr: Some(ORIGINAL), ece: true, ..Ack::default() };
    assert_eq!(sender.receive(echo, 1, &[]), "");
    assert_eq!((sender.window(), undone(&sender)), ((2.0, 5.0), 0));
    assert!(!sender.flight.has_rewound());
    // 9 segments are outstanding, and the window grows by one per ACK, so they meet at 5.
    assert_eq!(sender.ack_echoing(5, ORIGINAL), "");
    assert_eq!(sender.ack_echoing(8, ORIGINAL), "11 12");
}

#[test]
fn ack_of_everything_undoes_only_with_dsack() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(10, ORIGINAL);
    assert_eq!(undone(&sender), 0, "the ACK may answer the originals or the retransmission");

    let mut sender = under_way("newreno+eifel");
    sender.receive(Ack { dsack: Some((0, 1)), ..Ack::default() }, 0, &[]);
    sender.timeout();
    sender.ack_echoing(10, ORIGINAL);
    assert_eq!(undone(&sender), 1, "a D-SACK would have reported the retransmission");

    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    let report = Ack { ecr: Some(ORIGINAL), dsack: Some((0, 1000)), ..Ack::default() };
    sender.receive(report, 5, &[]);
    assert_eq!(undone(&sender), 0, "the ACK answers the retransmission");
}

#[test]
fn single_segment_timeout_is_not_undone() {
    let mut sender = BareSender::new("newreno+eifel").under_way(1.0, 8.0, RTT);
    assert_eq!(sender.timeout(), "1r");
    sender.ack_echoing(1, ORIGINAL);
    assert_eq!(undone(&sender), 0);
    assert!(sender.cc().cwnd >= 1.0);
}

#[test]
fn zero_or_missing_echo_does_not_undo() {
    for ecr in [Some(0), None] {
        let mut sender = under_way("newreno+eifel");
        sender.timeout();
        sender.receive(Ack { ecr, ..Ack::default() }, 1, &[]);
        assert_eq!(undone(&sender), 0, "{ecr:?}");
    }
}

#[test]
fn echo_comparison_handles_timestamp_wrap() {
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
fn timer_restarts_from_first_new_data_sample() {
    let mut sender = under_way("newreno+eifel");
    let rttvar = sender.rtt.rttvar();
    sender.timeout();
    assert_eq!(sender.ack_echoing(1, ORIGINAL), "11");
    // A sample of old data measures its delay: SRTT = 7/8·100 + 1/8·1000.
    sender.ack_echoing(2, ORIGINAL);
    assert!(sender.rtt.srtt() > Some(RTT * 2));
    sender.ack_echoing(10, ORIGINAL);
    // max(SRTT_prev 100 + 2G, 250) and max(RTTVAR_prev, 250/2).
    let sample = Duration::from_millis(250);
    sender.wait(sample).ack(11);
    assert_eq!((sender.rtt.srtt(), sender.rtt.rttvar()), (Some(sample), sample / 2));
    // This happens only once. The next sample counts as usual: 7/8·250 + 1/8·350.
    sender.wait(RTT).ack(12);
    assert_eq!(sender.rtt.srtt(), Some(Duration::from_micros(262_500)));

    // The path is as fast as before. Nevertheless, the timer becomes slightly more cautious.
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    sender.ack_echoing(10, ORIGINAL);
    sender.wait(Duration::from_millis(2)).ack(11);
    let srtt_prev = RTT + Duration::from_millis(2);
    assert_eq!((sender.rtt.srtt(), sender.rtt.rttvar()), (Some(srtt_prev), rttvar));
}

#[test]
fn undone_fast_retransmission_keeps_timer() {
    let mut sender = under_way("newreno+eifel");
    sender.wait(RTT).dupacks(3);
    sender.ack_echoing(10, ORIGINAL);
    let srtt = sender.rtt.srtt();
    sender.wait(RTT).ack(11);
    assert!(sender.rtt.srtt() <= srtt);
}

#[test]
fn loss_after_undo_is_detected() {
    let mut sender = under_way("newreno+eifel");
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    sender.ack_echoing(3, ORIGINAL);
    // Segment 4 is missing: three duplicate ACKs are enough, despite `recover`.
    assert!(sender.dupacks(3).starts_with("4r"));
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
}

/// Runs a spurious timeout, a spurious fast retransmission and a genuine one. Returns the decisions and the
/// segments sent.
fn play(recipe: &str, timestamps: bool) -> (Vec<Decision>, Vec<String>) {
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
    let next = sender.last();
    sent.push(sender.receive(Ack { ecr, ..Ack::default() }, next, &[]));
    let mut trace = start;
    trace.extend(sender.trace());
    (trace, sent)
}

#[test]
fn eifel_is_disabled_without_timestamps() {
    let (trace, sent) = play("newreno+eifel", false);
    let is_fallback = |decision: &&Decision| matches!(decision.what, What::Fallback { .. });
    let said: Vec<_> = trace.iter().filter(is_fallback).collect();
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].by, said[0].why), ("eifel", "no timestamps on this connection"));
    let others: Vec<_> = trace.iter().filter(|decision| !is_fallback(decision)).cloned().collect();
    assert_eq!((others, sent), play("newreno", false));
    assert_ne!(play("newreno+eifel", true).1, play("newreno", true).1, "eifel is active with timestamps");
}
