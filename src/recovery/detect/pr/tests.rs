//! TCP-PR, rule by rule. A round trip is 100 ms and beta is 3: mxrtt is 300 ms until something takes longer.

use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Ack, Handshake, Phase, What};

const RTT: Duration = Duration::from_millis(100);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sender(recipe: &str, cwnd: f64) -> BareSender {
    BareSender::new(recipe).under_way(cwnd, 8.0, RTT)
}

fn waits(sender: &BareSender) -> Option<Duration> {
    sender.recovery.deadline().map(|at| at - sender.now)
}

fn reductions(sender: &BareSender) -> u64 {
    sender.recovery.counters().window_reductions
}

// ----- mxrtt -----

#[test]
fn duplicate_acks_mean_nothing_and_mxrtt_does() {
    for recipe in ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr"] {
        let mut sender = sender(recipe, 10.0);
        sender.wait(RTT);
        let sent = if recipe == "sack+pr" { sender.sack(&[2..11]) } else { sender.dupacks(9) };
        assert!(!sent.contains('r'), "{recipe}: {sent}");
        assert_eq!(waits(&sender), Some(ms(200)), "{recipe}");
        assert!(sender.deadline().starts_with("1r"), "{recipe}");
        assert_eq!(sender.cc().ssthresh, 5.0, "{recipe}");
    }
}

#[test]
fn a_segment_that_comes_two_round_trips_late_is_not_lost() {
    for recipe in ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr"] {
        let mut sender = sender(recipe, 10.0);
        sender.wait(RTT);
        if recipe == "sack+pr" {
            sender.sack(&[2..11])
        } else {
            sender.dupacks(9)
        };
        sender.wait(ms(190)).ack(10);
        let counters = sender.recovery.counters();
        assert_eq!((counters.resent(), counters.window_reductions), (0, 0), "{recipe}");
    }
}

#[test]
fn ewrtt_is_the_largest_round_trip_of_late() {
    let mut sender = sender("sack+pr", 10.0);
    // A sample of 150 ms is the largest: mxrtt = 450 ms for all that is outstanding, which left 150 ms ago.
    sender.wait(ms(150)).ack(2);
    assert_eq!(waits(&sender), Some(ms(300)));
    // cwnd is 10.2 now. Each further segment acknowledged forgets by 0.995^(1/cwnd); samples of 150 ms hold ewrtt.
    sender.ack(10);
    // What was sent 150 ms after the first comes back in 100 ms. Six segments acknowledged at once at a window of
    // 10.3: ewrtt = 0.995^(6/10.3)·150 = 149.563 ms.
    sender.wait(RTT).ack(16);
    let expected = 0.150 * 0.995_f64.powf(6.0 / sender.cc().cwnd);
    assert!((0.149_56..0.149_57).contains(&expected), "{expected} at {}", sender.cc().cwnd);
    let head_left = sender.flight.head().unwrap().last_sent;
    let mxrtt = (sender.recovery.deadline().unwrap() - head_left).as_secs_f64();
    assert!((mxrtt - 3.0 * expected).abs() < 1e-6, "{mxrtt} {expected}");
}

#[test]
fn a_path_without_delay_leaves_the_receiver_ten_milliseconds() {
    let mut sender = BareSender::new("sack+pr").under_way(10.0, 8.0, Duration::ZERO);
    assert_eq!(waits(&sender), Some(ms(10)));
    sender.wait(ms(9)).ack(10);
    assert_eq!(sender.recovery.counters().resent(), 0);
}

#[test]
fn beta_is_an_option() {
    let mut sender = sender("sack+pr+pr-beta=5", 10.0);
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(waits(&sender), Some(ms(400)));
}

#[test]
fn what_may_be_a_single_delayed_ack_has_more_time() {
    let mut sender = sender("sack+pr", 1.0);
    assert_eq!(waits(&sender), Some(ms(500)));
    sender.wait(ms(499)).ack(1);
    assert_eq!(sender.recovery.counters().resent(), 0);
}

#[test]
fn the_retransmission_timer_stays_behind() {
    // RFC 6298 with a floor of 200 ms would fire before mxrtt.
    let mut sender = sender("sack+pr+min-rto=200", 10.0);
    sender.wait(RTT).ack(1);
    sender.sack(&[3..11]);
    let deadline = sender.recovery.deadline().unwrap();
    assert!(sender.rto.unwrap() > deadline, "{:?} {deadline:?}", sender.rto);
    assert!(sender.deadline().starts_with("2r"));
    assert_eq!(sender.recovery.counters().timeouts, 0);
}

/// What is SACKed at first and acknowledged three round trips later, with the hole, was not under way for so long.
#[test]
fn without_timestamps_a_hole_that_a_copy_fills_times_nothing() {
    let mut sender =
        BareSender::with("sack+pr", Profile::default(), &Handshake::default()).under_way(10.0, 8.0, RTT);
    sender.wait(RTT).sack(&[2..11]);
    sender.wait(RTT).sack(&[2..20]);
    assert!(sender.deadline().starts_with("1r"));
    // A stack that times one segment at a time measures this, whatever was sent again before it.
    let timed = Ack { rtt: Some(ms(400)), ..Ack::default() };
    sender.wait(RTT).receive(timed, 19, &[]);
    let waited = waits(&sender).unwrap();
    assert!(waited <= ms(300), "mxrtt has not grown: {waited:?}");
}

// ----- the window -----

#[test]
fn what_arrives_opens_the_window_while_a_hole_is_waited_for_and_while_it_is_repaired() {
    let mut sender = sender("sack+pr", 10.0);
    sender.wait(RTT);
    for end in 3..=11 {
        sender.sack(&[2..end]);
    }
    let opened = sender.cc().cwnd;
    assert!(opened > 10.8 && opened < 11.0, "by one segment in a round trip: {opened}");
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((sender.cc().cwnd, sender.cc().phase()), (5.0, Phase::Recovery));
    sender.wait(RTT).sack(&[2..12]);
    assert_eq!(sender.cc().cwnd, 5.2);
    sender.sack(&[2..13]);
    let before = sender.cc().cwnd;
    sender.ack(12);
    assert_eq!(sender.cc().phase(), Phase::Recovery);
    assert!(sender.cc().cwnd > before);
}

#[test]
fn without_a_scoreboard_nobody_knows_and_the_window_stands() {
    let mut sender = sender("newreno+pr", 10.0);
    sender.wait(RTT).dupacks(9);
    assert_eq!(sender.cc().cwnd, 10.0);
}

#[test]
fn the_window_is_halved_from_what_it_was_when_the_segment_left() {
    let mut sender = sender("sack+pr", 10.0);
    // 1 is lost. No ACK advances meanwhile, but 2 to 10 show that the path is free, and 11 to 19 leave.
    sender.wait(RTT);
    for end in 3..=11 {
        assert_eq!(sender.sack(&[2..end]), (end + 8).to_string(), "what is SACKed makes room");
    }
    sender.wait(RTT).sack(&[2..20]);
    assert!(sender.deadline().starts_with("1r"));
    // Not FlightSize / 2, which would be 14.
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (5.0, 5.0));
    assert_eq!(sender.cc().phase(), Phase::Recovery);
}

#[test]
fn a_window_halved_by_an_echo_since_is_not_halved_again_for_what_left_before() {
    let mut sender = sender("sack+pr", 20.0);
    sender.wait(RTT).receive(Ack { ece: true, ..Ack::default() }, 2, &[]);
    let halved = sender.cc().cwnd;
    assert!((10.0..10.1).contains(&halved), "{halved}");
    // 3 left at a window of 20.
    sender.sack(&[4..21]);
    assert!(sender.deadline().starts_with("3r"));
    assert_eq!(sender.cc().cwnd, 10.0);
}

#[test]
fn a_burst_halves_the_window_once() {
    let mut sender = sender("sack+pr", 10.0);
    // 1 left at 0 ms, 11 with the first ACK: both are lost, and 4 too.
    sender.wait(RTT);
    assert_eq!(sender.sack(&[2..3]), "11");
    sender.wait(ms(5)).sack(&[2..4]);
    sender.sack(&[2..4, 5..11]);
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((sender.cc().cwnd, reductions(&sender)), (5.0, 1));
    sender.wait(RTT).sack(&[2..4, 5..11, 12..20]);
    // 11 left 100 ms after 1 and was outstanding when the drop of 1 was found: memorized.
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
fn what_left_after_the_drop_and_is_lost_in_its_turn_is_a_new_drop() {
    let mut sender = sender("sack+pr", 16.0);
    sender.wait(RTT).sack(&[2..17]);
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((sender.cc().cwnd, reductions(&sender)), (8.0, 1));
    // The copy is lost too; what left with it arrives.
    let max = sender.flight.max() / SMSS;
    sender.wait(RTT).sack(&[2..max + 1]);
    assert!(sender.deadline().starts_with("1r"));
    // It left at a window of 8.
    assert_eq!((sender.cc().cwnd, reductions(&sender)), (4.0, 2));
    assert_eq!(sender.recovery.counters().resent_again, 1);
    assert_eq!(sender.recovery.counters().timeouts, 0);
}

// ----- extreme losses -----

#[test]
fn extreme_losses_stop_the_sender_for_a_second_and_start_over() {
    let mut sender = sender("sack+pr", 10.0);
    // All ten are lost: nine of nine memorized.
    assert_eq!(sender.deadline(), "", "nothing is sent");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh, reductions(&sender)), (1.0, 5.0, 1));
    assert_eq!(sender.cc().phase(), Phase::Restarted);
    // mxrtt = 300 ms, raised to a second.
    assert_eq!(waits(&sender), Some(ms(1000)));
    assert!(sender.rto.unwrap() > sender.now + ms(2000), "a timeout comes after the copy's own mxrtt");
    assert_eq!(sender.deadline(), "1r");
    // It arrives, and all is as usual: slow start.
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    assert_eq!(sender.cc().ssthresh, 5.0);
    assert_eq!(sender.recovery.counters().timeouts, 0);
    assert_eq!(sender.wait(RTT).ack(3), "4r 5r 6r");
    sender.wait(RTT).sack(&[5..6]);
    // ewrtt forgets a little with every segment acknowledged: 0.995 in a round trip.
    let waited = waits(&sender).unwrap();
    assert!((ms(195)..ms(200)).contains(&waited), "mxrtt is what it was, {waited:?}");
}

#[test]
fn half_of_the_memorized_lost_is_not_extreme() {
    // 1, 2 and 3 of ten are lost; 4 to 10 arrive, and new segments leave for them. Memorized are 2 and 3 and the new
    // ones: two lost of four.
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
fn a_further_drop_in_extreme_losses_doubles_mxrtt() {
    let mut sender = sender("sack+pr", 4.0);
    assert_eq!(sender.deadline(), "");
    assert_eq!(sender.deadline(), "1r");
    // 2 was only late, by 1400 ms: ewrtt is that, and mxrtt 4200 ms. The copy of 1 is lost.
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(waits(&sender), Some(ms(4200 - 100)));
    assert_eq!(sender.deadline(), "");
    assert_eq!((waits(&sender), sender.cc().cwnd), (Some(ms(8400)), 1.0));
    assert_eq!((sender.deadline().as_str(), reductions(&sender)), ("1r", 1));
}

#[test]
fn a_lost_copy_does_not_fill_the_window_that_extreme_losses_leave() {
    let mut sender = sender("sack+pr", 10.0);
    sender.wait(RTT).sack(&[2..11]);
    assert!(sender.deadline().starts_with("1r"));
    // Nothing is heard any more: what left 200 ms before the copy is lost as well, and that is seen 100 ms after it.
    assert_eq!(sender.deadline(), "");
    assert_eq!((waits(&sender), sender.cc().cwnd), (Some(ms(900)), 1.0));
    // The copy is judged a second after it left, and 100 ms later something may leave.
    assert_eq!(sender.deadline(), "");
    assert_eq!(waits(&sender), Some(ms(100)));
    assert_eq!(sender.deadline(), "1r");
    assert_eq!(sender.recovery.counters().timeouts, 0);
}

#[test]
fn when_nothing_at_all_is_heard_the_timer_backs_off_and_not_pr() {
    let mut sender = sender("sack+pr", 4.0);
    assert_eq!(sender.deadline(), "");
    assert_eq!(sender.deadline(), "1r");
    assert_eq!(sender.recovery.deadline(), None);
    let mut before = sender.now;
    let mut waited = Duration::ZERO;
    for _ in 0..4 {
        assert_eq!(sender.timeout(), "1r");
        assert!(sender.now - before > waited, "it backs off");
        (waited, before) = (sender.now - before, sender.now);
    }
    assert_eq!(sender.recovery.congestion().timeouts_in_row, 4);
}

// ----- without a scoreboard -----

#[test]
fn newreno_sends_only_the_head_and_partial_acks_name_the_rest() {
    let mut sender = sender("newreno+pr", 10.0);
    // 1 and 4 are lost.
    sender.wait(RTT).dupacks(8);
    // At 300 ms all ten are overdue. Window 5 + 8 dupacks: three new ones.
    assert_eq!(sender.deadline(), "1r 11 12 13");
    assert_eq!(sender.recovery.deadline(), None, "the copy is judged when something is heard");
    assert_eq!(sender.wait(RTT).ack(3), "4r 14");
    sender.wait(RTT).ack(14);
    let counters = sender.recovery.counters();
    assert_eq!((counters.resent(), counters.window_reductions, counters.timeouts), (2, 1, 0));
}

#[test]
fn newreno_finds_a_lost_retransmission() {
    let mut sender = sender("newreno+pr", 10.0);
    sender.wait(RTT).dupacks(9);
    assert!(sender.deadline().starts_with("1r"));
    sender.wait(RTT).dupacks(4);
    // 300 ms after the copy left.
    assert_eq!(waits(&sender), Some(ms(200)));
    assert!(sender.deadline().starts_with("1r"));
    assert_eq!((reductions(&sender), sender.recovery.counters().timeouts), (2, 0));
}

#[test]
fn reno_sends_a_second_hole_of_the_burst_at_once_and_does_not_halve_again() {
    let mut sender = sender("reno+pr", 10.0);
    // 1 and 4 are lost.
    sender.wait(RTT).dupacks(8);
    assert!(sender.deadline().starts_with("1r"));
    // Reno leaves recovery; 4 left 400 ms ago and was memorized.
    let sent = sender.wait(RTT).ack(3);
    assert!(sent.starts_with("4r"), "{sent}");
    assert_eq!((reductions(&sender), sender.cc().phase()), (1, Phase::Open));
    let counters = sender.recovery.counters();
    assert_eq!((counters.resent(), counters.timeouts), (2, 0));
}

#[test]
fn tahoe_starts_over_at_a_drop() {
    let mut sender = sender("tahoe+pr", 10.0);
    sender.wait(RTT).dupacks(9);
    assert_eq!(sender.deadline(), "1r");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (1.0, 5.0));
    assert_eq!(sender.wait(RTT).ack(10), "11 12");
    assert_eq!(reductions(&sender), 1);
}

#[test]
fn a_closed_window_is_the_timers_business() {
    let mut sender = sender("newreno+pr", 4.0);
    sender.wait(RTT);
    sender.rwnd = 0;
    // The receiver refuses everything and says so again and again.
    for _ in 0..10 {
        sender.wait(ms(90)).dupacks(1);
        assert_eq!(sender.recovery.deadline(), None);
    }
    assert_eq!(sender.recovery.counters().resent(), 0);
}

#[test]
fn acks_of_everything_and_echoes_of_nothing_do_no_harm() {
    for recipe in ["sack+pr", "newreno+pr", "reno+pr", "tahoe+pr"] {
        let handshake = Handshake { timestamps: true, ..Handshake::default() };
        let mut sender = BareSender::with(recipe, Profile::default(), &handshake).under_way(10.0, 8.0, RTT);
        for step in 0..2000_u64 {
            sender.wait(ms(step % 7));
            let (una, max) = (sender.flight.una() / SMSS, sender.flight.max() / SMSS);
            let far = una + 1 + step % (max - una).max(1);
            match step % 5 {
                0 => sender.receive(Ack { ecr: Some(0), ..Ack::default() }, far, &[]),
                1 if recipe == "sack+pr" => sender.sack(&[far..max + 1]),
                2 => sender.receive(Ack { ecr: Some(u32::MAX), ..Ack::default() }, una, &[]),
                3 if step % 3 == 0 => sender.ack(max),
                4 if sender.recovery.deadline().is_some() => sender.deadline(),
                _ => sender.dupacks(3),
            };
            let cc = sender.cc();
            let sane = cc.cwnd >= 1.0 && cc.cwnd.is_finite() && cc.ssthresh >= 2.0;
            assert!(sane, "{recipe}: {} {}", cc.cwnd, cc.ssthresh);
        }
    }
}
