//! Tests of each rule of TCP-PR. The RTT is 100 ms and beta is 3, so mxrtt is 300 ms until a larger sample.

use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::testing::{BareSender, RTT, check_with_arbitrary_acks};
use crate::recovery::{Ack, Handshake, RecoveryState, What};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sender(recipe: &str, cwnd: f64) -> BareSender {
    BareSender::new(recipe).under_way(cwnd, 8.0, RTT)
}

fn until_deadline(sender: &BareSender) -> Option<Duration> {
    sender.recovery.deadline().map(|at| at - sender.now)
}

fn reductions(sender: &BareSender) -> u64 {
    sender.counters().window_reductions
}

#[test]
fn mxrtt_detects_loss_and_duplicate_acks_do_not() {
    for recipe in ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr"] {
        let mut sender = sender(recipe, 10.0);
        sender.wait(RTT);
        let sent = if recipe == "sack+pr" { sender.sack(&[2..11]) } else { sender.dupacks(9) };
        assert!(!sent.contains('r'), "{recipe}: {sent}");
        assert_eq!(until_deadline(&sender), Some(ms(200)), "{recipe}");
        assert!(sender.deadline().starts_with("1r"), "{recipe}");
        assert_eq!(sender.cc().ssthresh, 5.0, "{recipe}");
    }
}

#[test]
fn segment_two_round_trips_late_is_not_lost() {
    for recipe in ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr"] {
        let mut sender = sender(recipe, 10.0);
        sender.wait(RTT);
        if recipe == "sack+pr" {
            sender.sack(&[2..11])
        } else {
            sender.dupacks(9)
        };
        sender.wait(ms(190)).ack(10);
        let counters = sender.counters();
        assert_eq!((counters.resent(), counters.window_reductions), (0, 0), "{recipe}");
    }
}

#[test]
fn ewrtt_is_largest_recent_rtt() {
    let mut sender = sender("sack+pr", 10.0);
    // A sample of 150 ms is the largest, so mxrtt is 450 ms. All outstanding segments were sent 150 ms ago.
    sender.wait(ms(150)).ack(2);
    assert_eq!(until_deadline(&sender), Some(ms(300)));
    // cwnd is now 10.2. Each further acknowledged segment reduces ewrtt by 0.995^(1/cwnd), but the samples of
    // 150 ms keep it constant.
    sender.ack(10);
    // The segments sent 150 ms after the first are acknowledged after 100 ms. Six segments acknowledged at
    // once at a window of 10.3 give ewrtt = 0.995^(6/10.3)·150 = 149.563 ms.
    sender.wait(RTT).ack(16);
    let expected = 0.150 * 0.995_f64.powf(6.0 / sender.cc().cwnd);
    assert!((0.149_56..0.149_57).contains(&expected), "{expected} at {}", sender.cc().cwnd);
    let head_left = sender.flight.head().unwrap().last_sent;
    let mxrtt = (sender.recovery.deadline().unwrap() - head_left).as_secs_f64();
    assert!((mxrtt - 3.0 * expected).abs() < 1e-6, "{mxrtt} {expected}");
}

#[test]
fn mxrtt_is_at_least_ten_milliseconds() {
    let mut sender = BareSender::new("sack+pr").under_way(10.0, 8.0, Duration::ZERO);
    assert_eq!(until_deadline(&sender), Some(ms(10)));
    sender.wait(ms(9)).ack(10);
    assert_eq!(sender.counters().resent(), 0);
}

#[test]
fn pr_beta_sets_mxrtt_factor() {
    let mut sender = sender("sack+pr+pr-beta=5", 10.0);
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(until_deadline(&sender), Some(ms(400)));
}

#[test]
fn lone_segment_waits_for_delayed_ack() {
    let mut sender = sender("sack+pr", 1.0);
    assert_eq!(until_deadline(&sender), Some(ms(500)));
    sender.wait(ms(499)).ack(1);
    assert_eq!(sender.counters().resent(), 0);
}

#[test]
fn retransmission_timer_fires_after_mxrtt() {
    // RFC 6298 with a minimum of 200 ms would fire before mxrtt.
    let mut sender = sender("sack+pr+min-rto=200", 10.0);
    sender.wait(RTT).ack(1);
    sender.sack(&[3..11]);
    let deadline = sender.recovery.deadline().unwrap();
    assert!(sender.rto.unwrap() > deadline, "{:?} {deadline:?}", sender.rto);
    assert!(sender.deadline().starts_with("2r"));
    assert_eq!(sender.counters().timeouts, 0);
}

/// Segments that are SACKed first, and acknowledged three round trips later with the hole, were not in flight
/// for that long.
#[test]
fn filled_hole_without_timestamps_gives_no_sample() {
    let mut sender =
        BareSender::with("sack+pr", Profile::default(), &Handshake::default()).under_way(10.0, 8.0, RTT);
    sender.wait(RTT).sack(&[2..11]);
    sender.wait(RTT).sack(&[2..20]);
    assert!(sender.deadline().starts_with("1r"));
    // A stack that times one segment at a time takes this sample, even if an earlier segment was
    // retransmitted.
    let timed = Ack { rtt: Some(ms(400)), ..Ack::default() };
    sender.wait(RTT).receive(timed, 19, &[]);
    let waited = until_deadline(&sender).unwrap();
    assert!(waited <= ms(300), "mxrtt has not grown: {waited:?}");
}

#[test]
fn sacks_open_window_before_and_during_recovery() {
    let mut sender = sender("sack+pr", 10.0);
    sender.wait(RTT);
    for end in 3..=11 {
        sender.sack(&[2..end]);
    }
    let opened = sender.cc().cwnd;
    assert!(opened > 10.8 && opened < 11.0, "by one segment in a round trip: {opened}");
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((sender.cc().cwnd, sender.cc().state()), (5.0, RecoveryState::Recovery));
    sender.wait(RTT).sack(&[2..12]);
    assert_eq!(sender.cc().cwnd, 5.2);
    sender.sack(&[2..13]);
    let before = sender.cc().cwnd;
    sender.ack(12);
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
    assert!(sender.cc().cwnd > before);
}

#[test]
fn duplicate_acks_without_scoreboard_keep_window() {
    let mut sender = sender("newreno+pr", 10.0);
    sender.wait(RTT).dupacks(9);
    assert_eq!(sender.cc().cwnd, 10.0);
}

#[test]
fn loss_halves_window_at_time_of_sending() {
    let mut sender = sender("sack+pr", 10.0);
    // Segment 1 is lost. No ACK advances in the meantime, but 2 to 10 show that the path is free, and 11 to
    // 19 are sent.
    sender.wait(RTT);
    for end in 3..=11 {
        assert_eq!(sender.sack(&[2..end]), (end + 8).to_string(), "each SACKed segment releases a new one");
    }
    sender.wait(RTT).sack(&[2..20]);
    assert!(sender.deadline().starts_with("1r"));
    // Not FlightSize / 2, which would be 14.
    assert_eq!(sender.window(), (5.0, 5.0));
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
}

#[test]
fn loss_sent_before_ecn_reduction_keeps_window() {
    let mut sender = sender("sack+pr", 20.0);
    sender.wait(RTT).receive(Ack { ece: true, ..Ack::default() }, 2, &[]);
    let halved = sender.cc().cwnd;
    assert!((10.0..10.1).contains(&halved), "{halved}");
    // Segment 3 was sent under a window of 20.
    sender.sack(&[4..21]);
    assert!(sender.deadline().starts_with("3r"));
    assert_eq!(sender.cc().cwnd, 10.0);
}

#[test]
fn loss_burst_halves_window_once() {
    let mut sender = sender("sack+pr", 10.0);
    // Segment 1 was sent at 0 ms and 11 at the first ACK. Both are lost, and 4 too.
    sender.wait(RTT);
    assert_eq!(sender.sack(&[2..3]), "11");
    sender.wait(ms(5)).sack(&[2..4]);
    sender.sack(&[2..4, 5..11]);
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((sender.cc().cwnd, reductions(&sender)), (5.0, 1));
    sender.wait(RTT).sack(&[2..4, 5..11, 12..20]);
    // Segment 11 was sent 100 ms after 1 and was outstanding when the drop of 1 was detected, so it is
    // memorized.
    let sent = sender.deadline();
    assert!(sent.contains("11r"), "{sent}");
    assert_eq!(reductions(&sender), 1);
    let lost = |decision: &crate::recovery::Decision| match decision.what {
        What::Lost { segments, .. } => Some((decision.why, segments)),
        _ => None,
    };
    let lost: Vec<_> = sender.trace().iter().filter_map(lost).collect();
    assert_eq!(lost, [("mxrtt expired", 2), ("mxrtt expired, memorized", 1)]);
}

#[test]
fn lost_retransmission_halves_window_again() {
    let mut sender = sender("sack+pr", 16.0);
    sender.wait(RTT).sack(&[2..17]);
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((sender.cc().cwnd, reductions(&sender)), (8.0, 1));
    // The retransmission is lost too. The segments sent at the same time arrive.
    let max = sender.last();
    sender.wait(RTT).sack(&[2..max + 1]);
    assert!(sender.deadline().starts_with("1r"));
    // The retransmission was sent under a window of 8.
    assert_eq!((sender.cc().cwnd, reductions(&sender)), (4.0, 2));
    assert_eq!(sender.counters().lost_retransmissions, 1);
    assert_eq!(sender.counters().timeouts, 0);
}

#[test]
fn extreme_losses_pause_sender_for_one_second() {
    let mut sender = sender("sack+pr", 10.0);
    // All ten segments are lost, so all nine memorized segments are lost.
    assert_eq!(sender.deadline(), "", "nothing is sent");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh, reductions(&sender)), (1.0, 5.0, 1));
    assert_eq!(sender.cc().state(), RecoveryState::Loss);
    // mxrtt = 300 ms, raised to one second.
    assert_eq!(until_deadline(&sender), Some(ms(1000)));
    assert!(sender.rto.unwrap() > sender.now + ms(2000), "the timer fires after the mxrtt of 1r");
    assert_eq!(sender.deadline(), "1r");
    // The retransmission arrives, and the sender continues as usual in slow start.
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    assert_eq!(sender.cc().ssthresh, 5.0);
    assert_eq!(sender.counters().timeouts, 0);
    assert_eq!(sender.wait(RTT).ack(3), "4r 5r 6r");
    sender.wait(RTT).sack(&[5..6]);
    // ewrtt decays slightly with every acknowledged segment, by 0.995 per round trip.
    let waited = until_deadline(&sender).unwrap();
    assert!((ms(195)..ms(200)).contains(&waited), "mxrtt has its old value: {waited:?}");
}

#[test]
fn losing_half_of_memorized_is_not_extreme() {
    // Segments 1, 2 and 3 of ten are lost. 4 to 10 arrive, and new segments replace them. Segments 2, 3 and
    // the new ones are memorized: with two new segments, two of four are lost.
    let drop = |written: u64| {
        let mut sender = sender("sack+pr", 10.0);
        sender.written = written;
        sender.wait(RTT).sack(&[4..11]);
        let sent = sender.deadline();
        (sent, sender.cc().cwnd, reductions(&sender))
    };
    assert_eq!(drop(12), ("1r 2r 3r".to_owned(), 5.0, 1));
    assert_eq!(drop(11), (String::new(), 1.0, 1), "two of three");
}

#[test]
fn drop_during_extreme_losses_doubles_mxrtt() {
    let mut sender = sender("sack+pr", 4.0);
    assert_eq!(sender.deadline(), "");
    assert_eq!(sender.deadline(), "1r");
    // Segment 2 was only 1400 ms late. This becomes ewrtt, so mxrtt is 4200 ms. The retransmission of 1 is
    // lost.
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(until_deadline(&sender), Some(ms(4200 - 100)));
    assert_eq!(sender.deadline(), "");
    assert_eq!((until_deadline(&sender), sender.cc().cwnd), (Some(ms(8400)), 1.0));
    assert_eq!((sender.deadline().as_str(), reductions(&sender)), ("1r", 1));
}

#[test]
fn lost_retransmission_does_not_block_extreme_loss_recovery() {
    let mut sender = sender("sack+pr", 10.0);
    sender.wait(RTT).sack(&[2..11]);
    assert!(sender.deadline().starts_with("1r"));
    // No more ACKs arrive. The segments sent 200 ms before the retransmission are also lost. Their loss is
    // detected 100 ms after the retransmission.
    assert_eq!(sender.deadline(), "");
    assert_eq!((until_deadline(&sender), sender.cc().cwnd), (Some(ms(900)), 1.0));
    // The retransmission is judged when it is one second old. 100 ms later, the sender may send again.
    assert_eq!(sender.deadline(), "");
    assert_eq!(until_deadline(&sender), Some(ms(100)));
    assert_eq!(sender.deadline(), "1r");
    assert_eq!(sender.counters().timeouts, 0);
}

#[test]
fn silence_backs_off_retransmission_timer() {
    let mut sender = sender("sack+pr", 4.0);
    assert_eq!(sender.deadline(), "");
    assert_eq!(sender.deadline(), "1r");
    assert_eq!(sender.recovery.deadline(), None);
    let mut before = sender.now;
    let mut waited = Duration::ZERO;
    for _ in 0..4 {
        assert_eq!(sender.timeout(), "1r");
        assert!(sender.now - before > waited, "the timer backs off");
        (waited, before) = (sender.now - before, sender.now);
    }
    assert_eq!(sender.recovery.congestion().timeouts_in_row, 4);
}

#[test]
fn newreno_retransmits_later_holes_on_partial_acks() {
    let mut sender = sender("newreno+pr", 10.0);
    // Segments 1 and 4 are lost.
    sender.wait(RTT).dupacks(8);
    // At 300 ms, all ten segments are overdue. The window is 5 + 8 dupacks: three new segments.
    assert_eq!(sender.deadline(), "1r 11 12 13");
    assert_eq!(sender.recovery.deadline(), None, "the retransmission is judged at the next ACK");
    assert_eq!(sender.wait(RTT).ack(3), "4r 14");
    sender.wait(RTT).ack(14);
    let counters = sender.counters();
    assert_eq!((counters.resent(), counters.window_reductions, counters.timeouts), (2, 1, 0));
}

#[test]
fn newreno_detects_lost_retransmission() {
    let mut sender = sender("newreno+pr", 10.0);
    sender.wait(RTT).dupacks(9);
    assert!(sender.deadline().starts_with("1r"));
    sender.wait(RTT).dupacks(4);
    // 300 ms after the retransmission was sent.
    assert_eq!(until_deadline(&sender), Some(ms(200)));
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((reductions(&sender), sender.counters().timeouts), (2, 0));
}

#[test]
fn reno_repairs_second_hole_without_halving_again() {
    let mut sender = sender("reno+pr", 10.0);
    // Segments 1 and 4 are lost.
    sender.wait(RTT).dupacks(8);
    assert!(sender.deadline().starts_with("1r"));
    // Reno leaves recovery. Segment 4 was sent 400 ms ago and is memorized.
    let sent = sender.wait(RTT).ack(3);
    assert!(sent.starts_with("4r"), "{sent}");
    assert_eq!((reductions(&sender), sender.cc().state()), (1, RecoveryState::Open));
    let counters = sender.counters();
    assert_eq!((counters.resent(), counters.timeouts), (2, 0));
}

#[test]
fn tahoe_slow_starts_after_drop() {
    let mut sender = sender("tahoe+pr", 10.0);
    sender.wait(RTT).dupacks(9);
    assert_eq!(sender.deadline(), "1r");
    assert_eq!(sender.window(), (1.0, 5.0));
    assert_eq!(sender.wait(RTT).ack(10), "11 12");
    assert_eq!(reductions(&sender), 1);
}

#[test]
fn closed_window_disables_mxrtt_timer() {
    let mut sender = sender("newreno+pr", 4.0);
    sender.wait(RTT);
    sender.rwnd = 0;
    // The receiver's window is closed, and the receiver repeats its ACK.
    for _ in 0..10 {
        sender.wait(ms(90)).dupacks(1);
        assert_eq!(sender.recovery.deadline(), None);
    }
    assert_eq!(sender.counters().resent(), 0);
}

#[test]
fn arbitrary_acks_and_echoes_keep_window_valid() {
    ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr"].into_iter().for_each(check_with_arbitrary_acks);
}
