use airwire::time::Duration;

use crate::recovery::testing::BareSender;
use crate::recovery::{Phase, What};

const RTT: Duration = Duration::from_millis(100);

fn sender(recipe: &str, cwnd: f64) -> BareSender {
    let mut sender = BareSender::new(recipe).under_way(cwnd, 64.0, RTT);
    sender.wait(RTT);
    sender
}

#[test]
fn in_fast_recovery_the_outstanding_segments_and_dup_thresh_more() {
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(3), "1r");
    // The other six of the window. From the sixth on each lets a new segment out: cwnd 5 + 6 dupacks > 10 outstanding.
    assert_eq!(sender.dupacks(6), "11 12 13 14");
    let before = sender.cc().clone();
    // Ten outstanding + DupThresh = 13: the fourth segment that left after the copy.
    assert_eq!(sender.wait(RTT).dupacks(3), "15 16 17");
    assert_eq!(sender.dupacks(1), "1r 18");
    assert_eq!(sender.cc().phase(), Phase::Recovery);
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (before.cwnd, before.ssthresh), "the same event");
    let counters = sender.recovery.counters();
    assert_eq!((counters.resent_again, counters.fast_retransmits, counters.window_reductions), (1, 1, 1));
    let lost: Vec<_> = sender.trace().into_iter().filter(|d| matches!(d.what, What::Lost { .. })).collect();
    assert_eq!(lost.iter().map(|d| d.by).collect::<Vec<_>>(), ["three-dupacks", "loss-retransmission"]);
    // After that it waits for an acceptable ACK, while each duplicate ACK lets out a new segment.
    assert_eq!(sender.dupacks(4), "19 20 21 22");
    // It has arrived, and with it all 17 that had left before: five are outstanding, cwnd is half of ten.
    assert_eq!(sender.wait(RTT).ack(17), "");
    assert_eq!((sender.cc().cwnd, sender.cc().phase()), (5.0, Phase::Open));
}

#[test]
fn reno_waits_in_the_same_place() {
    let mut sender = sender("reno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(9), "1r 11 12 13 14");
    assert_eq!(sender.wait(RTT).dupacks(4), "15 16 17 1r 18");
}

#[test]
fn each_copy_once_and_the_next_one_has_a_limit_of_its_own() {
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(13), "1r 11 12 13 14 15 16 17 1r 18");
    // Seventeen had left before the second copy: with DupThresh that is 20. The first copy does not count.
    assert_eq!(sender.dupacks(6), "19 20 21 22 23 24");
    assert_eq!(sender.dupacks(1), "1r 25");
    assert_eq!(sender.recovery.counters().resent_again, 2);
}

#[test]
fn segments_out_of_order_are_no_reason() {
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(9), "1r 11 12 13 14");
    // The new segments overtake the copy, by no more than three.
    assert_eq!(sender.wait(RTT).dupacks(3), "15 16 17");
    sender.ack(13);
    assert_eq!(sender.recovery.counters().resent(), 1);
}

#[test]
fn after_a_partial_ack_the_next_copy_has_its_own_limit() {
    // Segments 1 and 4 are lost, and the copy of 4.
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(8), "1r 11 12 13");
    assert_eq!(sender.wait(RTT).ack(3), "4r 14");
    // Left before 4r: ten, 1r, three. Heard: eight and the partial ACK. 14 + DupThresh - 9 = 8 to come:
    // 11, 12, 13 from before, and five from after.
    assert_eq!(sender.wait(RTT).dupacks(7), "15 16 17 18 19 20 21");
    assert_eq!(sender.dupacks(1), "4r 22");
    assert_eq!(sender.recovery.counters().window_reductions, 1);
}

#[test]
fn a_sack_block_above_snd_high_is_enough() {
    let mut sender = sender("sack+loss-retransmission", 10.0);
    assert_eq!(sender.sack(&[2..5]), "1r");
    assert_eq!(sender.sack(&[2..11]), "11 12 13 14");
    assert_eq!(sender.wait(RTT).sack(&[2..12]), "1r 15");
    assert_eq!(sender.sack(&[2..13]), "16", "once for each copy");
    // SND.HIGH was 14 when the second copy left.
    assert_eq!(sender.sack(&[2..15]), "17 18");
    assert_eq!(sender.sack(&[2..16]), "1r 19");
    assert_eq!(sender.recovery.counters().window_reductions, 1);
}

#[test]
fn each_hole_of_a_scoreboard_has_the_snd_high_of_its_own_copy() {
    // 1 and 2 are lost; 1r arrives, 2r is lost, and was sent when 10 was the highest.
    let mut sender = sender("sack+loss-retransmission", 10.0);
    assert_eq!(sender.sack(&[3..11]), "1r 2r 11 12 13");
    assert_eq!(sender.wait(RTT).receive(Default::default(), 1, &[3..11]), "14");
    assert_eq!(sender.sack(&[3..12]), "2r 15");
}

#[test]
fn after_a_timeout_flight_size_and_dup_thresh() {
    let mut sender = sender("newreno+fast-timeout+loss-retransmission", 22.0);
    assert_eq!(sender.timeout(), "1r");
    // cwnd 11 + 3, and FlightSize 22: the twelfth duplicate ACK is the first to let a new segment out.
    assert_eq!(sender.wait(RTT).dupacks(11), "");
    assert_eq!(sender.dupacks(10), "23 24 25 26 27 28 29 30 31 32");
    // These were the 21 that had not been lost. After three more, the next one makes it clear.
    assert_eq!(sender.wait(RTT).dupacks(3), "33 34 35");
    assert_eq!(sender.dupacks(1), "1r 36", "the 25th");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (11.0, 11.0));
    assert_eq!(sender.recovery.counters().timeouts, 1);
}

#[test]
fn after_a_timeout_that_nothing_new_follows_it_is_quiet() {
    let mut sender = sender("newreno+loss-retransmission", 22.0);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.wait(RTT).dupacks(21), "");
    assert_eq!(sender.timeout(), "1r");
    // Duplicate ACKs of the pass that an acceptable ACK begins are none of its business (Fig. 8, step 3).
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    assert!(!sender.dupacks(60).contains('r'));
}

#[test]
fn after_a_timeout_with_a_scoreboard_the_edge() {
    let mut sender = sender("sack+fast-timeout+loss-retransmission", 22.0);
    assert_eq!(sender.timeout(), "1r");
    sender.wait(RTT);
    // Segments 5 and 9 are lost as well. They are holes like any other; segment 1 has been sent again.
    let mut sent = Vec::new();
    for last in 2..=22 {
        if last != 5 && last != 9 {
            sent.push(sender.sack(&[2..last.min(4) + 1, 6..last.clamp(6, 8) + 1, 10..last.max(9) + 1]));
        }
    }
    sent.retain(|words| !words.is_empty());
    let sent = sent.join(" ");
    assert!(sent.starts_with("5r 9r 23"), "{sent}");
    assert_eq!(sent.matches("1r").count(), 0, "{sent}");
    assert_eq!(sender.wait(RTT).sack(&[2..5, 6..9, 10..24]).split(' ').next(), Some("1r"));
    assert_eq!((sender.cc().cwnd, sender.recovery.counters().timeouts), (11.0, 1));
}

#[test]
fn duplicate_acks_that_nothing_caused_send_few_copies() {
    let mut sender = BareSender::new("newreno+loss-retransmission");
    sender.written = 10;
    let mut sender = sender.under_way(10.0, 64.0, RTT);
    let sent = sender.wait(RTT).dupacks(1000);
    // Nothing new can be sent, so after the first copy every further one takes more than the ten outstanding.
    assert!(sent.split(' ').count() <= 1000 / 10, "{sent}");
    assert!(sender.cc().cwnd >= 1.0);
}
