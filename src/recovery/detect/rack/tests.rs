//! RFC 8985, rule by rule. A round trip is 100 ms unless a test says otherwise; segments that leave together have
//! one sending time, and then the later one is the one that ends later (§5.2).

use airwire::time::{Duration, Instant};

use crate::profile::Profile;
use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Ack, Handshake, Phase, What};

const RTT: Duration = Duration::from_millis(100);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sender(cwnd: f64) -> BareSender {
    BareSender::new("sack+rack").under_way(cwnd, 8.0, RTT)
}

/// Segment 1 is overtaken by segment 2 and arrives a moment later: reordering has been seen, nothing is lost.
fn after_reordering(cwnd: f64) -> BareSender {
    let mut sender = sender(cwnd);
    sender.wait(RTT).sack(&[2..3]);
    sender.wait(ms(1)).ack(2);
    sender
}

fn waits(sender: &BareSender) -> Option<Duration> {
    sender.recovery.deadline().map(|at| at - sender.now)
}

fn lost(sender: &mut BareSender) -> usize {
    sender.trace().iter().filter(|decision| matches!(decision.what, What::Lost { .. })).count()
}

// ----- §6 -----

#[test]
fn a_segment_that_comes_a_little_late_is_not_lost() {
    let mut sender = sender(10.0);
    assert_eq!(sender.wait(RTT).sack(&[2..3]), "");
    // It is due RACK.rtt + reo_wnd = 100 + 100/4 ms after it left, 100 of which are over.
    assert_eq!(waits(&sender), Some(ms(25)));
    sender.wait(ms(20)).ack(2);
    assert_eq!((lost(&mut sender), sender.recovery.counters().window_reductions), (0, 0));
}

#[test]
fn a_segment_that_comes_no_more_is_lost_a_quarter_of_a_round_trip_later() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..3]);
    let began = sender.now;
    assert_eq!(sender.deadline(), "1r");
    assert_eq!((sender.now - began, sender.cc().phase()), (ms(25), Phase::Recovery));
    // FlightSize 10, halved, and 8 in the pipe.
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (5.0, 5.0));
}

#[test]
fn dup_thresh_is_enough_until_reordering_is_seen() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..4]);
    assert_eq!(sender.sack(&[2..5]), "1r", "three SACKed: reo_wnd is 0");

    let mut sender = after_reordering(10.0);
    // Segments 4 to 9 overtake 3.
    assert_eq!(sender.sack(&[4..10]), "");
    // It left 101 ms ago, and RACK.rtt is now that.
    assert_eq!(waits(&sender), Some(ms(25)));
    assert_eq!(sender.deadline().split(' ').next(), Some("3r"));
}

#[test]
fn several_losses_are_found_at_once_and_reduce_the_window_once() {
    let mut sender = sender(10.0);
    // 1, 3 and 5 are lost.
    sender.wait(RTT).sack(&[2..3, 4..5]);
    // pipe = 10 - 4 - 3 = 3 at a window of 5.
    assert_eq!(sender.sack(&[2..3, 4..5, 6..8]), "1r 3r");
    assert_eq!(sender.sack(&[2..3, 4..5, 6..9]), "5r");
    assert_eq!((sender.recovery.counters().window_reductions, sender.recovery.counters().resent()), (1, 3));
}

#[test]
fn a_lost_retransmission_is_found_by_what_left_after_it() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..5]);
    // pipe: 10 - 3 - 1 + the copy = 7 at a window of 5. Three more SACKed, and new segments leave again.
    assert_eq!(sender.sack(&[2..8]), "11");
    assert_eq!(sender.sack(&[2..11]), "12 13 14");
    // A round trip later 11 is SACKed, which left when the copy of 1 did. It ends later: the copy is lost too.
    assert_eq!(sender.wait(RTT).sack(&[2..12]), "1r 15");
    assert_eq!(sender.recovery.counters().resent_again, 1);
    assert_eq!(sender.recovery.counters().window_reductions, 1, "one loss event");
    assert_eq!(sender.wait(RTT).ack(11), "16");
    assert_eq!(sender.recovery.counters().timeouts, 0);
}

#[test]
fn an_ack_that_may_be_of_the_first_copy_says_nothing_about_the_second() {
    let mut sender = after_reordering(10.0);
    sender.sack(&[4..6]);
    // 3 is sent again, which was a mistake: its first copy arrives 1 ms later.
    let first_copy = 1000_u32;
    assert!(sender.deadline().starts_with("3r"));
    let resent_at = sender.now;
    sender.wait(ms(1)).ack_echoing(5, first_copy);
    // If the copy of 3 had been delivered after 1 ms, everything else that left before it would be overdue.
    assert_eq!(lost(&mut sender), 1);
    assert!(sender.recovery.deadline().is_none_or(|at| at > resent_at + ms(20)), "{:?}", waits(&sender));
    // Without timestamps min_RTT tells: no copy is back after 1 ms.
    let handshake = Handshake { sack: true, ..Handshake::default() };
    let mut sender = BareSender::with("sack+rack", Profile::default(), &handshake).under_way(10.0, 8.0, RTT);
    sender.wait(RTT).sack(&[2..3]);
    sender.deadline();
    sender.wait(ms(1)).receive(Ack::default(), 2, &[]);
    assert_eq!(lost(&mut sender), 1);
}

#[test]
fn d_sacks_widen_the_window_once_per_round_trip_and_sixteen_recoveries_narrow_it() {
    let mut sender = after_reordering(10.0);
    // How long the next hole has to wait, in milliseconds after its successor was SACKed.
    let patience = |sender: &mut BareSender| {
        let una = sender.flight.una() / SMSS;
        sender.wait(RTT);
        sender.sack(&[una + 2..una + 3]);
        let waits = sender.recovery.deadline().expect("a hole") - sender.now;
        sender.ack(una + 2);
        waits.as_millis()
    };
    // Everything outstanding is a round trip old when something is acknowledged.
    let settle = |sender: &mut BareSender| {
        let max = sender.flight.max() / SMSS;
        sender.wait(RTT).ack(max);
    };
    settle(&mut sender);
    assert_eq!(patience(&mut sender), 25);
    let dsack = |sender: &mut BareSender| {
        let una = sender.flight.una();
        let ack = Ack { dsack: Some((una - SMSS, una)), ..Ack::default() };
        sender.receive(ack, una / SMSS, &[]);
    };
    dsack(&mut sender);
    dsack(&mut sender);
    settle(&mut sender);
    assert_eq!(patience(&mut sender), 50, "two in one round trip count once");
    settle(&mut sender);
    dsack(&mut sender);
    settle(&mut sender);
    assert_eq!(patience(&mut sender), 75);
    for _ in 0..8 {
        settle(&mut sender);
        dsack(&mut sender);
    }
    settle(&mut sender);
    // Eleven quarters of min_RTT, but never more than SRTT, which lies between the shortest round trip and the longest.
    assert!((100..=125).contains(&patience(&mut sender)));
    for recovery in 1..=16 {
        assert!(patience(&mut sender) >= 100, "before recovery {recovery}");
        let una = sender.flight.una() / SMSS;
        sender.wait(RTT).sack(&[una + 2..una + 3]);
        sender.deadline();
        assert_eq!(sender.cc().phase(), Phase::Recovery);
        settle(&mut sender);
        assert_eq!(sender.cc().phase(), Phase::Open);
        settle(&mut sender);
    }
    assert_eq!(patience(&mut sender), 25);
}

#[test]
fn without_sack_three_duplicate_acks_take_its_place() {
    let no_sack = Handshake { timestamps: true, ..Handshake::default() };
    let recipe: crate::recovery::Recipe = "sack+rack+prr".parse().unwrap();
    let profile = std::sync::Arc::new(recipe.tune(&Profile::default()));
    let mut recovery = recipe.build(&profile);
    let (mut flight, limits) = (crate::flight::Flight::default(), profile.timer.limits);
    let mut rtt = crate::rtt::RttEstimator::new(profile.timer.style, limits);
    let now = Instant::from_secs(1);
    let mut path = crate::recovery::Path {
        now,
        flight: &mut flight,
        rtt: &mut rtt,
        smss: SMSS,
        rwnd: 100_000,
        unsent: 0,
    };
    recovery.on_established(&mut path, &no_sack);
    assert_eq!(recovery.answers()[..3], ["three-dupacks", "always-congestion", "newreno"]);
}

#[test]
fn after_a_timeout_it_goes_on_finding_what_is_lost() {
    let mut sender = sender(4.0);
    // All four are lost, and the probe (5) too.
    sender.deadline();
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    // 2 is lost again; 3 arrives, which left with it.
    assert_eq!(sender.wait(RTT).sack(&[3..4]), "2r 4r", "in RTO recovery reo_wnd is 0");
    assert_eq!((sender.cc().phase(), waits(&sender)), (Phase::Restarted, None));
    assert_eq!(sender.recovery.counters().resent_again, 1);
    assert_eq!(sender.wait(RTT).ack(4).split(' ').next(), Some("5r"));
    assert_eq!(sender.recovery.counters().timeouts, 1);
}

// ----- Linux -----

fn linux(cwnd: f64) -> BareSender {
    let handshake = Handshake { timestamps: true, ..Handshake::default() };
    BareSender::with("sack+rack+prr+undo-linux", Profile::linux(), &handshake).under_way(cwnd, 8.0, RTT)
}

/// Segment 1 is sent again when three have overtaken it, and then it arrives itself.
fn after_a_late_original(sender: &mut BareSender) {
    let original = sender.flight.head().unwrap().tsval;
    sender.wait(RTT).sack(&[2..3]);
    sender.sack(&[2..4]);
    assert!(sender.sack(&[2..5]).starts_with("1r"));
    sender.wait(ms(1)).ack_echoing(4, original);
    assert_eq!(sender.cc().phase(), Phase::Open, "undone");
}

#[test]
fn linux_learns_from_an_original_that_was_late() {
    let mut sender = linux(20.0);
    after_a_late_original(&mut sender);
    sender.trace();
    // Segments 6 to 9 overtake 5.
    assert!(!sender.sack(&[6..10]).contains("5r"));
    assert_eq!((lost(&mut sender), waits(&sender)), (0, Some(ms(31))));
    // By the RFC no reordering has been seen: 1 was sent again.
    let mut sender = BareSender::new("sack+rack+eifel").under_way(20.0, 8.0, RTT);
    after_a_late_original(&mut sender);
    sender.trace();
    assert_eq!(sender.sack(&[6..10]).split(' ').next(), Some("5r"));
}

#[test]
fn linux_heeds_d_sacks_only_where_there_is_reordering() {
    let dsack = |sender: &mut BareSender| {
        let una = sender.flight.una() / SMSS;
        sender.receive(Ack { dsack: Some((0, SMSS)), ..Ack::default() }, una, &[]);
    };
    let mut sender = linux(20.0);
    dsack(&mut sender);
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(waits(&sender), Some(ms(32)), "25 and 2, in jiffies, and never early");
    let mut sender = linux(20.0);
    after_a_late_original(&mut sender);
    dsack(&mut sender);
    sender.sack(&[6..10]);
    assert_eq!(waits(&sender), Some(ms(55)));
}

#[test]
fn linux_opens_the_window_out_of_order_once_there_is_much_reordering() {
    let opened = |sender: &mut BareSender, blocks| {
        let before = sender.cc().cwnd;
        sender.recovery.put_window(before, f64::INFINITY);
        sender.sack(blocks);
        sender.cc().cwnd - before
    };
    let mut sender = linux(20.0);
    assert_eq!(opened(sender.wait(RTT), &[2..4]), 0.0);
    let mut sender = linux(20.0);
    after_a_late_original(&mut sender);
    assert_eq!(opened(&mut sender, &[6..8]), 2.0, "four segments were the range of the first");
}

// ----- §7 -----

/// `cwnd` segments are all there is to send.
fn at_the_end(cwnd: u64) -> BareSender {
    let mut sender = BareSender::new("sack+rack");
    sender.written = cwnd;
    sender.under_way(cwnd as f64, 8.0, RTT)
}

#[test]
fn the_loss_of_the_tail_is_found_by_a_probe_after_two_round_trips() {
    let mut sender = at_the_end(10);
    // 9 and 10 are lost.
    sender.wait(RTT).ack(8);
    let began = sender.now;
    assert_eq!(sender.deadline(), "10r");
    assert_eq!(sender.now - began, ms(200), "PTO = 2·SRTT");
    assert_eq!(sender.recovery.counters().resent_probe, 1);
    assert_eq!(sender.cc().cwnd, 10.1, "a probe is no sign of a loss");
    // The probe is SACKed: 9 left long before it.
    assert_eq!(sender.wait(RTT).sack(&[10..11]), "9r");
    assert_eq!(sender.wait(RTT).ack(10), "");
    let counters = sender.recovery.counters();
    assert_eq!((counters.timeouts, counters.window_reductions, counters.resent()), (0, 1, 2));
}

#[test]
fn the_probe_is_new_data_where_there_is_any() {
    let mut sender = sender(10.0);
    assert_eq!(waits(&sender), Some(ms(200)), "from when the last segment left");
    assert_eq!(sender.deadline(), "11", "one segment more than cwnd");
    assert_eq!(sender.recovery.counters().resent(), 0);
    assert_eq!(sender.recovery.deadline(), None, "one probe, then the retransmission timer");
    // 8 to 10 are lost: the probe's SACK shows it.
    sender.wait(RTT).ack(7);
    assert!(sender.sack(&[11..12]).starts_with("8r"));
}

#[test]
fn a_lone_segment_may_wait_for_a_delayed_ack() {
    let mut sender = at_the_end(1);
    assert_eq!(waits(&sender), Some(ms(2 * 100 + 200)));
    assert_eq!(sender.deadline(), "1r");
    let mut sender = at_the_end(2);
    assert_eq!(waits(&sender), Some(ms(200)));
    sender.wait(RTT).ack(1);
    assert_eq!(waits(&sender), Some(ms(400)), "one is left");
}

#[test]
fn before_a_round_trip_is_known_a_probe_waits_a_second_and_never_longer_than_the_timer() {
    let mut sender = BareSender::new("sack+rack+iw=2");
    sender.send();
    assert_eq!(waits(&sender), Some(ms(1000)));

    // Round trips of 2 s: 2·SRTT is more than the RTO, SRTT + G.
    let mut sender = BareSender::new("sack+rack").under_way(4.0, 8.0, ms(2000));
    let rto = sender.rto.unwrap();
    assert_eq!(sender.recovery.deadline(), Some(rto));
    assert_eq!(sender.deadline(), "5");
    assert!(sender.rto.unwrap() > rto, "the probe puts the timer off");
}

#[test]
fn a_probe_whose_original_had_arrived_changes_nothing() {
    let mut sender = at_the_end(4);
    sender.wait(RTT).ack(2);
    assert_eq!(sender.deadline(), "4r");
    // The ACK of 3 and 4 was late; then the receiver reports the probe as a duplicate.
    sender.wait(ms(1)).ack(4);
    let dsack = Ack { dsack: Some((3 * SMSS, 4 * SMSS)), ..Ack::default() };
    sender.wait(RTT).receive(dsack, 4, &[]);
    sender.written = 8;
    sender.send();
    sender.wait(RTT).ack(8);
    assert_eq!(sender.recovery.counters().window_reductions, 0, "case 1");
}

#[test]
fn a_probe_that_repaired_the_loss_reduces_the_window_once() {
    let mut sender = at_the_end(8);
    // Only 8 is lost. FlightSize is 1 when the probe leaves.
    sender.wait(RTT).ack(4);
    sender.ack(7);
    assert_eq!(sender.deadline(), "8r");
    sender.wait(RTT).ack(8);
    assert_eq!(sender.recovery.counters().window_reductions, 0, "8 may have arrived twice");
    sender.written = 12;
    sender.send();
    sender.wait(RTT).ack(10);
    assert_eq!(sender.recovery.counters().window_reductions, 1, "case 2");
    assert_eq!((sender.cc().ssthresh, sender.cc().phase()), (2.0, Phase::Reduced));
    sender.ack(12);
    assert_eq!((sender.recovery.counters().window_reductions, sender.cc().phase()), (1, Phase::Open));
}

#[test]
fn a_receiver_without_d_sack_answers_a_needless_probe_with_a_bare_duplicate() {
    let mut sender = at_the_end(8);
    sender.wait(RTT).ack(6);
    assert_eq!(sender.deadline(), "8r");
    sender.ack(8);
    sender.written = 12;
    sender.send();
    sender.wait(RTT).receive(Ack::default(), 8, &[]);
    sender.ack(12);
    assert_eq!(sender.recovery.counters().window_reductions, 0, "case 3");
}

#[test]
fn no_probe_while_losses_are_known_or_repaired() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(waits(&sender), Some(ms(25)), "the reordering timer, no probe");
    sender.deadline();
    assert_eq!(sender.recovery.deadline(), None);
    let mut sender = at_the_end(1);
    sender.deadline();
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.recovery.deadline(), None, "the timer backs off alone");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.recovery.counters().timeouts, 2);
}

#[test]
fn a_closed_window_gets_no_probe_out_and_the_wish_for_one_is_forgotten() {
    let mut sender = at_the_end(4);
    sender.wait(RTT).ack(3);
    assert_eq!(waits(&sender), Some(ms(400)));
    sender.wait(ms(10)).ack(4);
    assert_eq!(sender.recovery.deadline(), None, "nothing is outstanding");
    sender.written = 20;
    assert!(sender.send().starts_with("5 6"), "and what is sent after it is no probe");
    assert_eq!(sender.recovery.counters().resent(), 0);
}

#[test]
fn acks_of_everything_and_echoes_of_nothing_do_no_harm() {
    let mut sender = sender(10.0);
    for step in 0..2000_u64 {
        sender.wait(ms(step % 7));
        let (una, max) = (sender.flight.una() / SMSS, sender.flight.max() / SMSS);
        let far = una + 1 + step % (max - una).max(1);
        match step % 5 {
            0 => sender.receive(Ack { ecr: Some(0), ..Ack::default() }, far, &[]),
            1 => sender.sack(&[far..max + 1]),
            2 => sender.receive(
                Ack { ecr: Some(u32::MAX), dsack: Some((0, SMSS)), ..Ack::default() },
                una,
                &[],
            ),
            3 => sender.ack(max),
            _ => sender.dupacks(3),
        };
        let cc = sender.cc();
        assert!(cc.cwnd >= 1.0 && cc.cwnd.is_finite() && cc.ssthresh >= 2.0, "{} {}", cc.cwnd, cc.ssthresh);
    }
}
