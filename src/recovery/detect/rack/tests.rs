//! Tests of each rule of RFC 8985. The default RTT is 100 ms. Segments sent together have the same sending
//! time. The one with the higher end then counts as sent later (§5.2).

use airwire::time::{Duration, Instant};

use crate::profile::Profile;
use crate::recovery::testing::{BareSender, RTT, SMSS, check_with_arbitrary_acks};
use crate::recovery::{Ack, Handshake, RecoveryState, What};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn sender(cwnd: f64) -> BareSender {
    BareSender::new("sack+rack").under_way(cwnd, 8.0, RTT)
}

/// Segment 2 overtakes segment 1, which arrives a moment later. The detector has observed reordering, and no
/// segment is lost.
fn after_reordering(cwnd: f64) -> BareSender {
    let mut sender = sender(cwnd);
    sender.wait(RTT).sack(&[2..3]);
    sender.wait(ms(1)).ack(2);
    sender
}

fn until_deadline(sender: &BareSender) -> Option<Duration> {
    sender.recovery.deadline().map(|at| at - sender.now)
}

fn lost(sender: &mut BareSender) -> usize {
    sender.trace().iter().filter(|decision| matches!(decision.what, What::Lost { .. })).count()
}

// §6: RACK.

#[test]
fn slightly_reordered_segment_is_not_lost() {
    let mut sender = sender(10.0);
    assert_eq!(sender.wait(RTT).sack(&[2..3]), "");
    // Segment 1 is due at an age of RACK.rtt + reo_wnd = 100 + 100/4 ms, and it is 100 ms old.
    assert_eq!(until_deadline(&sender), Some(ms(25)));
    sender.wait(ms(20)).ack(2);
    assert_eq!((lost(&mut sender), sender.counters().window_reductions), (0, 0));
}

#[test]
fn missing_segment_is_lost_after_reordering_window() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..3]);
    let began = sender.now;
    assert_eq!(sender.deadline(), "1r");
    assert_eq!((sender.now - began, sender.cc().state()), (ms(25), RecoveryState::Recovery));
    // FlightSize 10 is halved, and pipe is 8.
    assert_eq!(sender.window(), (5.0, 5.0));
}

#[test]
fn dup_thresh_suffices_until_reordering_is_seen() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..4]);
    assert_eq!(sender.sack(&[2..5]), "1r", "three SACKed: reo_wnd is 0");

    let mut sender = after_reordering(10.0);
    // Segments 4 to 9 overtake segment 3.
    assert_eq!(sender.sack(&[4..10]), "");
    // Segment 3 was sent 101 ms ago, which is now RACK.rtt.
    assert_eq!(until_deadline(&sender), Some(ms(25)));
    assert_eq!(sender.deadline().split(' ').next(), Some("3r"));
}

#[test]
fn simultaneous_losses_reduce_window_once() {
    let mut sender = sender(10.0);
    // Segments 1, 3 and 5 are lost.
    sender.wait(RTT).sack(&[2..3, 4..5]);
    // pipe = 10 - 4 - 3 = 3 at a window of 5.
    assert_eq!(sender.sack(&[2..3, 4..5, 6..8]), "1r 3r");
    assert_eq!(sender.sack(&[2..3, 4..5, 6..9]), "5r");
    assert_eq!((sender.counters().window_reductions, sender.counters().resent()), (1, 3));
}

#[test]
fn later_segment_reveals_lost_retransmission() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..5]);
    // pipe: 10 - 3 - 1 + the retransmission = 7 at a window of 5. After three more SACKed segments, new ones
    // are sent.
    assert_eq!(sender.sack(&[2..8]), "11");
    assert_eq!(sender.sack(&[2..11]), "12 13 14");
    // One round trip later, segment 11 is SACKed. It was sent together with the retransmission of 1 and has
    // the higher end, so the retransmission is lost too.
    assert_eq!(sender.wait(RTT).sack(&[2..12]), "1r 15");
    assert_eq!(sender.counters().lost_retransmissions, 1);
    assert_eq!(sender.counters().window_reductions, 1, "one episode");
    assert_eq!(sender.wait(RTT).ack(11), "16");
    assert_eq!(sender.counters().timeouts, 0);
}

#[test]
fn ack_of_original_does_not_time_retransmission() {
    let mut sender = after_reordering(10.0);
    sender.sack(&[4..6]);
    // Segment 3 is retransmitted spuriously: the original arrives 1 ms later.
    let first_copy = 1000_u32;
    assert!(sender.deadline().starts_with("3r"));
    let resent_at = sender.now;
    sender.wait(ms(1)).ack_echoing(5, first_copy);
    // If the retransmission of 3 had been delivered after 1 ms, all other earlier segments would be overdue.
    assert_eq!(lost(&mut sender), 1);
    assert!(
        sender.recovery.deadline().is_none_or(|at| at > resent_at + ms(20)),
        "{:?}",
        until_deadline(&sender)
    );
    // Without timestamps, min_RTT decides: a retransmission cannot be acknowledged after 1 ms.
    let handshake = Handshake { sack: true, ..Handshake::default() };
    let mut sender = BareSender::with("sack+rack", Profile::default(), &handshake).under_way(10.0, 8.0, RTT);
    sender.wait(RTT).sack(&[2..3]);
    sender.deadline();
    sender.wait(ms(1)).receive(Ack::default(), 2, &[]);
    assert_eq!(lost(&mut sender), 1);
}

/// SACKs only the segment after the next hole. Returns the milliseconds for which the detector then waits for
/// the hole.
fn patience(sender: &mut BareSender) -> u64 {
    let una = sender.una();
    sender.wait(RTT);
    sender.sack(&[una + 2..una + 3]);
    let waits = sender.recovery.deadline().expect("no reordering timer for the hole") - sender.now;
    sender.ack(una + 2);
    waits.as_millis()
}

/// Acknowledges everything. All segments outstanding are then one round trip old.
fn settle(sender: &mut BareSender) {
    sender.wait(RTT).ack_all();
}

fn receive_dsack(sender: &mut BareSender) {
    let una = sender.flight.una();
    let ack = Ack { dsack: Some((una - SMSS, una)), ..Ack::default() };
    sender.receive(ack, una / SMSS, &[]);
}

/// Recovers from the loss of one segment.
fn recover(sender: &mut BareSender) {
    let una = sender.una();
    sender.wait(RTT).sack(&[una + 2..una + 3]);
    sender.deadline();
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
    settle(sender);
    assert_eq!(sender.cc().state(), RecoveryState::Open);
    settle(sender);
}

#[test]
fn dsacks_widen_reordering_window_until_sixteen_recoveries() {
    let mut sender = after_reordering(10.0);
    settle(&mut sender);
    assert_eq!(patience(&mut sender), 25);
    receive_dsack(&mut sender);
    receive_dsack(&mut sender);
    settle(&mut sender);
    assert_eq!(patience(&mut sender), 50, "two D-SACKs in one round trip count once");
    settle(&mut sender);
    receive_dsack(&mut sender);
    settle(&mut sender);
    assert_eq!(patience(&mut sender), 75);
    for _ in 0..8 {
        settle(&mut sender);
        receive_dsack(&mut sender);
    }
    settle(&mut sender);
    // Eleven quarters of min_RTT, but at most SRTT, which is between the shortest and the longest RTT.
    assert!((100..=125).contains(&patience(&mut sender)));
    for recovery in 1..=16 {
        assert!(patience(&mut sender) >= 100, "before recovery {recovery}");
        recover(&mut sender);
    }
    assert_eq!(patience(&mut sender), 25);
}

/// RFC 8985 §6.2 step 4: RACK.reo_wnd_persist starts again with each D-SACK.
#[test]
fn each_dsack_keeps_reordering_window_for_sixteen_recoveries() {
    let mut sender = after_reordering(10.0);
    settle(&mut sender);
    receive_dsack(&mut sender);
    (0..10).for_each(|_| recover(&mut sender));
    receive_dsack(&mut sender);
    settle(&mut sender);
    for recovery in 1..=16 {
        assert_eq!(patience(&mut sender), 75, "before recovery {recovery}");
        recover(&mut sender);
    }
    assert_eq!(patience(&mut sender), 25);
}

#[test]
fn peer_without_sack_falls_back_to_three_dupacks() {
    let no_sack = Handshake { timestamps: true, ..Handshake::default() };
    let recipe: crate::recovery::Recipe = "sack+rack+prr".parse().unwrap();
    let profile = std::sync::Arc::new(recipe.tune(&Profile::default()));
    let mut recovery = recipe.build(&profile);
    let (mut flight, limits) = (crate::flight::Flight::default(), profile.timers.rto.limits);
    let mut rtt = crate::rtt::RttEstimator::new(profile.timers.rto.style, limits);
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
fn rack_detects_losses_after_timeout() {
    let mut sender = sender(4.0);
    // All four segments are lost, and the probe (5) too.
    sender.deadline();
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    // Segment 2 is lost again. Segment 3, sent at the same time, arrives.
    assert_eq!(sender.wait(RTT).sack(&[3..4]), "2r 4r", "in RTO recovery reo_wnd is 0");
    assert_eq!((sender.cc().state(), until_deadline(&sender)), (RecoveryState::Loss, None));
    assert_eq!(sender.counters().lost_retransmissions, 1);
    assert_eq!(sender.wait(RTT).ack(4).split(' ').next(), Some("5r"));
    assert_eq!(sender.counters().timeouts, 1);
}

// Profile `linux`.

fn linux(cwnd: f64) -> BareSender {
    BareSender::in_profile("sack+rack+prr+undo-linux", Profile::linux()).under_way(cwnd, 8.0, RTT)
}

/// Segment 1 is retransmitted after three segments have overtaken it. Then the original arrives.
fn receive_late_original(sender: &mut BareSender) {
    let original = sender.flight.head().unwrap().tsval;
    sender.wait(RTT).sack(&[2..3]);
    sender.sack(&[2..4]);
    assert!(sender.sack(&[2..5]).starts_with("1r"));
    sender.wait(ms(1)).ack_echoing(4, original);
    assert_eq!(sender.cc().state(), RecoveryState::Open, "the reduction is undone");
}

#[test]
fn linux_counts_late_original_as_reordering() {
    let mut sender = linux(20.0);
    receive_late_original(&mut sender);
    sender.trace();
    // Segments 6 to 9 overtake segment 5.
    assert!(!sender.sack(&[6..10]).contains("5r"));
    assert_eq!((lost(&mut sender), until_deadline(&sender)), (0, Some(ms(31))));
    // The RFC's rule has not detected reordering, because segment 1 was retransmitted.
    let mut sender = BareSender::new("sack+rack+eifel").under_way(20.0, 8.0, RTT);
    receive_late_original(&mut sender);
    sender.trace();
    assert_eq!(sender.sack(&[6..10]).split(' ').next(), Some("5r"));
}

#[test]
fn linux_ignores_dsack_without_reordering() {
    let dsack = |sender: &mut BareSender| {
        let una = sender.una();
        sender.receive(Ack { dsack: Some((0, SMSS)), ..Ack::default() }, una, &[]);
    };
    let mut sender = linux(20.0);
    dsack(&mut sender);
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(until_deadline(&sender), Some(ms(32)), "25 + 2 ms in jiffies, never early");
    let mut sender = linux(20.0);
    receive_late_original(&mut sender);
    dsack(&mut sender);
    sender.sack(&[6..10]);
    assert_eq!(until_deadline(&sender), Some(ms(55)));
}

#[test]
fn linux_opens_window_on_sack_after_much_reordering() {
    let opened = |sender: &mut BareSender, blocks| {
        let before = sender.cc().cwnd;
        sender.recovery.put_window(before, f64::INFINITY);
        sender.sack(blocks);
        sender.cc().cwnd - before
    };
    let mut sender = linux(20.0);
    assert_eq!(opened(sender.wait(RTT), &[2..4]), 0.0);
    let mut sender = linux(20.0);
    receive_late_original(&mut sender);
    assert_eq!(opened(&mut sender, &[6..8]), 2.0, "the first reordering spans four segments");
}

/// Ten segments without timestamps, of which 1 and 4 to 8 are declared lost. One round trip after the fast
/// retransmission, an ACK reports that it has arrived, and that 4 was only late.
fn after_late_segment(profile: Profile) -> (BareSender, String) {
    let mut sender = BareSender::with("sack+rack+prr", profile, &Handshake::default());
    sender.written = 10;
    let mut sender = sender.under_way(10.0, f64::INFINITY, RTT);
    assert_eq!(sender.wait(RTT).sack(&[2..4]), "");
    assert_eq!(sender.sack(&[2..4, 9..10]), "1r");
    let sent = sender.wait(RTT).receive(Ack::default(), 4, &[9..10]);
    (sender, sent)
}

#[test]
fn linux_takes_rtt_from_last_segment_in_sequence() {
    // RACK.rtt is the age of 4, so 10 has more time, and PRR sends one segment more than was delivered.
    let (mut sender, sent) = after_late_segment(Profile::linux());
    assert_eq!((sent.as_str(), lost(&mut sender)), ("5r 6r 7r", 1));
    // RACK.rtt is the age of the retransmission of 1. Segment 10 was sent one round trip earlier and is lost.
    let (mut sender, _) = after_late_segment(Profile::default());
    assert_eq!(lost(&mut sender), 2);
}

#[test]
fn linux_measures_distance_of_reordering() {
    let measured = |profile| {
        let reordering = after_late_segment(profile).0.recovery.reordering();
        (reordering.degree, reordering.events)
    };
    assert_eq!(measured(Profile::linux()), (6, 1), "4 to 9");
    assert_eq!(measured(Profile::default()), (0, 1));
}

#[test]
fn linux_measures_needless_retransmission_as_reordering() {
    let degree = |dsack| {
        let mut sender = linux(20.0);
        sender.wait(RTT).sack(&[2..3, 4..9]);
        while sender.flight.resent().segments < 2 {
            let top = sender.flight.sacked_ranges().last().unwrap().end / SMSS + 2;
            sender.sack(&[2..3, 4..top]);
        }
        // Segment 3 arrives, then its retransmission. Segment 1 is still missing.
        let top = sender.flight.sacked_ranges().last().unwrap().end / SMSS + 1;
        sender.wait(ms(1)).sack(&[2..top]);
        sender.receive(Ack { dsack, ..Ack::default() }, 0, &[2..top]);
        (u64::from(sender.recovery.reordering().degree), top - 3)
    };
    assert_eq!(degree(None).0, 0);
    let (degree, distance) = degree(Some((2 * SMSS, 3 * SMSS)));
    assert_eq!(degree, distance);
}

// §7: TLP.

/// A sender with exactly `cwnd` segments to send.
fn sender_without_new_data(cwnd: u64) -> BareSender {
    let mut sender = BareSender::new("sack+rack");
    sender.written = cwnd;
    sender.under_way(cwnd as f64, 8.0, RTT)
}

#[test]
fn probe_detects_tail_loss_after_two_rtts() {
    let mut sender = sender_without_new_data(10);
    // Segments 9 and 10 are lost.
    sender.wait(RTT).ack(8);
    let began = sender.now;
    assert_eq!(sender.deadline(), "10r");
    assert_eq!(sender.now - began, ms(200), "PTO = 2·SRTT");
    assert_eq!(sender.counters().resent_probe, 1);
    assert_eq!(sender.cc().cwnd, 10.1, "a probe does not reduce the window");
    // The probe is SACKed. Segment 9 was sent long before the probe.
    assert_eq!(sender.wait(RTT).sack(&[10..11]), "9r");
    assert_eq!(sender.wait(RTT).ack(10), "");
    let counters = sender.counters();
    assert_eq!((counters.timeouts, counters.window_reductions, counters.resent()), (0, 1, 2));
}

#[test]
fn probe_sends_new_data_if_available() {
    let mut sender = sender(10.0);
    assert_eq!(until_deadline(&sender), Some(ms(200)), "2·SRTT after the last transmission");
    assert_eq!(sender.deadline(), "11", "one segment more than cwnd");
    assert_eq!(sender.counters().resent(), 0);
    assert_eq!(sender.recovery.deadline(), None, "one probe, then the retransmission timer");
    // Segments 8 to 10 are lost. The SACK of the probe shows it.
    sender.wait(RTT).ack(7);
    assert!(sender.sack(&[11..12]).starts_with("8r"));
}

#[test]
fn probe_repeats_last_segment_if_window_is_full() {
    let mut sender = sender(10.0);
    sender.rwnd = 10;
    assert_eq!(sender.deadline(), "10r", "new data exceeds the receiver's window");
    assert_eq!(sender.counters().resent_probe, 1);
}

#[test]
fn lone_segment_probe_allows_for_delayed_ack() {
    let mut sender = sender_without_new_data(1);
    assert_eq!(until_deadline(&sender), Some(ms(2 * 100 + 200)));
    assert_eq!(sender.deadline(), "1r");
    let mut sender = sender_without_new_data(2);
    assert_eq!(until_deadline(&sender), Some(ms(200)));
    sender.wait(RTT).ack(1);
    assert_eq!(until_deadline(&sender), Some(ms(400)), "one segment is left");
}

#[test]
fn probe_timeout_has_default_and_rto_limit() {
    let mut sender = BareSender::new("sack+rack+iw=2");
    sender.send();
    assert_eq!(until_deadline(&sender), Some(ms(1000)));

    // With an RTT of 2 s, 2·SRTT exceeds the RTO, SRTT + G.
    let mut sender = BareSender::new("sack+rack").under_way(4.0, 8.0, ms(2000));
    let rto = sender.rto.unwrap();
    assert_eq!(sender.recovery.deadline(), Some(rto));
    assert_eq!(sender.deadline(), "5");
    assert!(sender.rto.unwrap() > rto, "the probe postpones the retransmission timer");
}

#[test]
fn probe_reported_as_duplicate_keeps_window() {
    let mut sender = sender_without_new_data(4);
    sender.wait(RTT).ack(2);
    assert_eq!(sender.deadline(), "4r");
    // The ACK of 3 and 4 was late. Then the receiver reports the probe as a duplicate.
    sender.wait(ms(1)).ack(4);
    let dsack = Ack { dsack: Some((3 * SMSS, 4 * SMSS)), ..Ack::default() };
    sender.wait(RTT).receive(dsack, 4, &[]);
    sender.written = 8;
    sender.send();
    sender.wait(RTT).ack(8);
    assert_eq!(sender.counters().window_reductions, 0, "case 1: a D-SACK reports the probe");
}

#[test]
fn probe_that_repairs_loss_reduces_window_once() {
    let mut sender = sender_without_new_data(8);
    // Only segment 8 is lost. FlightSize is 1 when the probe is sent.
    sender.wait(RTT).ack(4);
    sender.ack(7);
    assert_eq!(sender.deadline(), "8r");
    sender.wait(RTT).ack(8);
    assert_eq!(sender.counters().window_reductions, 0, "segment 8 may have arrived twice");
    sender.written = 12;
    sender.send();
    sender.wait(RTT).ack(10);
    assert_eq!(sender.counters().window_reductions, 1, "case 2: only one copy has arrived");
    assert_eq!((sender.cc().ssthresh, sender.cc().state()), (2.0, RecoveryState::Cwr));
    sender.ack(12);
    assert_eq!((sender.counters().window_reductions, sender.cc().state()), (1, RecoveryState::Open));
}

#[test]
fn bare_duplicate_ack_of_probe_keeps_window() {
    let mut sender = sender_without_new_data(8);
    sender.wait(RTT).ack(6);
    assert_eq!(sender.deadline(), "8r");
    sender.ack(8);
    sender.written = 12;
    sender.send();
    sender.wait(RTT).receive(Ack { repeats: true, ..Ack::default() }, 8, &[]);
    sender.ack(12);
    assert_eq!(sender.counters().window_reductions, 0, "case 3: a bare duplicate ACK reports the probe");
}

#[test]
fn data_or_window_update_does_not_report_probe() {
    let mut sender = sender_without_new_data(8);
    sender.wait(RTT).ack(6);
    assert_eq!(sender.deadline(), "8r");
    sender.ack(8);
    sender.written = 12;
    sender.send();
    sender.wait(RTT).receive(Ack::default(), 8, &[]);
    sender.ack(12);
    assert_eq!(sender.counters().window_reductions, 1, "case 2: the probe has repaired a loss");
}

#[test]
fn probe_is_not_sent_during_loss_recovery() {
    let mut sender = sender(10.0);
    sender.wait(RTT).sack(&[2..3]);
    assert_eq!(until_deadline(&sender), Some(ms(25)), "the reordering timer, not a probe");
    sender.deadline();
    assert_eq!(sender.recovery.deadline(), None);
    let mut sender = sender_without_new_data(1);
    sender.deadline();
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.recovery.deadline(), None, "only the retransmission timer runs");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.counters().timeouts, 2);
}

#[test]
fn probe_is_cancelled_when_all_data_acked() {
    let mut sender = sender_without_new_data(4);
    sender.wait(RTT).ack(3);
    assert_eq!(until_deadline(&sender), Some(ms(400)));
    sender.wait(ms(10)).ack(4);
    assert_eq!(sender.recovery.deadline(), None, "nothing is outstanding");
    sender.written = 20;
    assert!(sender.send().starts_with("5 6"), "new data is sent, not a probe");
    assert_eq!(sender.counters().resent(), 0);
}

#[test]
fn arbitrary_acks_and_echoes_keep_window_valid() {
    check_with_arbitrary_acks("sack+rack");
}
