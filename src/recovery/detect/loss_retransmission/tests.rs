use crate::recovery::testing::{BareSender, RTT};
use crate::recovery::{RecoveryState, What};

fn sender(recipe: &str, cwnd: f64) -> BareSender {
    let mut sender = BareSender::new(recipe).under_way(cwnd, 64.0, RTT);
    sender.wait(RTT);
    sender
}

#[test]
fn retransmission_is_lost_after_flight_plus_dup_thresh() {
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(3), "1r");
    // The other six of the window. From the sixth duplicate ACK on, each one releases a new segment: cwnd 5 +
    // 6 dupacks > 10 outstanding.
    assert_eq!(sender.dupacks(6), "11 12 13 14");
    let before = sender.cc().clone();
    // Ten outstanding + DupThresh = 13 duplicate ACKs. The last is from the fourth segment sent after the
    // retransmission.
    assert_eq!(sender.wait(RTT).dupacks(3), "15 16 17");
    assert_eq!(sender.dupacks(1), "1r 18");
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
    assert_eq!(sender.window(), (before.cwnd, before.ssthresh), "still the same episode");
    let counters = sender.counters();
    assert_eq!(
        (counters.lost_retransmissions, counters.fast_retransmits, counters.window_reductions),
        (1, 1, 1)
    );
    let lost: Vec<_> = sender.trace().into_iter().filter(|d| matches!(d.what, What::Lost { .. })).collect();
    assert_eq!(lost.iter().map(|d| d.by).collect::<Vec<_>>(), ["three-dupacks", "loss-retransmission"]);
    // The detector then waits for an acceptable ACK, while each duplicate ACK releases a new segment.
    assert_eq!(sender.dupacks(4), "19 20 21 22");
    // The retransmission arrives. The ACK covers the 17 segments sent earlier. Five are outstanding, and
    // cwnd is half of ten.
    assert_eq!(sender.wait(RTT).ack(17), "");
    assert_eq!((sender.cc().cwnd, sender.cc().state()), (5.0, RecoveryState::Open));
}

#[test]
fn reno_uses_same_duplicate_ack_limit() {
    let mut sender = sender("reno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(9), "1r 11 12 13 14");
    assert_eq!(sender.wait(RTT).dupacks(4), "15 16 17 1r 18");
}

#[test]
fn each_retransmission_has_its_own_limit() {
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(13), "1r 11 12 13 14 15 16 17 1r 18");
    // Seventeen segments were sent before the second retransmission. With DupThresh that is 20. The first
    // retransmission does not count.
    assert_eq!(sender.dupacks(6), "19 20 21 22 23 24");
    assert_eq!(sender.dupacks(1), "1r 25");
    assert_eq!(sender.counters().lost_retransmissions, 2);
}

#[test]
fn reordered_segments_do_not_repeat_retransmission() {
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(9), "1r 11 12 13 14");
    // Only three new segments overtake the retransmission.
    assert_eq!(sender.wait(RTT).dupacks(3), "15 16 17");
    sender.ack(13);
    assert_eq!(sender.counters().resent(), 1);
}

#[test]
fn partial_ack_starts_new_limit() {
    // Segments 1 and 4 are lost, and the retransmission of 4 too.
    let mut sender = sender("newreno+loss-retransmission", 10.0);
    assert_eq!(sender.dupacks(8), "1r 11 12 13");
    assert_eq!(sender.wait(RTT).ack(3), "4r 14");
    // Sent before 4r: ten segments, 1r and three new segments. Received: eight duplicate ACKs and the partial
    // ACK. 14 + DupThresh - 9 = 8 more are needed: 11, 12 and 13, sent before 4r, and five sent after 4r.
    assert_eq!(sender.wait(RTT).dupacks(7), "15 16 17 18 19 20 21");
    assert_eq!(sender.dupacks(1), "4r 22");
    assert_eq!(sender.counters().window_reductions, 1);
}

#[test]
fn sack_above_snd_high_repeats_retransmission() {
    let mut sender = sender("sack+loss-retransmission", 10.0);
    assert_eq!(sender.sack(&[2..5]), "1r");
    assert_eq!(sender.sack(&[2..11]), "11 12 13 14");
    assert_eq!(sender.wait(RTT).sack(&[2..12]), "1r 15");
    assert_eq!(sender.sack(&[2..13]), "16", "once per retransmission");
    // SND.HIGH was 14 when the second retransmission was sent.
    assert_eq!(sender.sack(&[2..15]), "17 18");
    assert_eq!(sender.sack(&[2..16]), "1r 19");
    assert_eq!(sender.counters().window_reductions, 1);
}

#[test]
fn each_sack_hole_has_its_own_snd_high() {
    // Segments 1 and 2 are lost. 1r arrives, and 2r is lost. The highest segment was 10 when 2r was sent.
    let mut sender = sender("sack+loss-retransmission", 10.0);
    assert_eq!(sender.sack(&[3..11]), "1r 2r 11 12 13");
    assert_eq!(sender.wait(RTT).receive(Default::default(), 1, &[3..11]), "14");
    assert_eq!(sender.sack(&[3..12]), "2r 15");
}

#[test]
fn timeout_sets_limit_to_flight_plus_dup_thresh() {
    let mut sender = sender("newreno+fast-timeout+loss-retransmission", 22.0);
    assert_eq!(sender.timeout(), "1r");
    // cwnd is 11 + 3 and FlightSize 22, so the twelfth duplicate ACK is the first to release a new segment.
    assert_eq!(sender.wait(RTT).dupacks(11), "");
    assert_eq!(sender.dupacks(10), "23 24 25 26 27 28 29 30 31 32");
    // The 21 segments that were not lost caused these duplicate ACKs. Three more are not conclusive, the
    // fourth is.
    assert_eq!(sender.wait(RTT).dupacks(3), "33 34 35");
    assert_eq!(sender.dupacks(1), "1r 36", "the 25th duplicate ACK");
    assert_eq!(sender.window(), (11.0, 11.0));
    assert_eq!(sender.counters().timeouts, 1);
}

#[test]
fn timeout_without_new_data_disables_detector() {
    let mut sender = sender("newreno+loss-retransmission", 22.0);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.wait(RTT).dupacks(21), "");
    assert_eq!(sender.timeout(), "1r");
    // Duplicate ACKs after an acceptable ACK do not count (Fig. 8, step 3).
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    assert!(!sender.dupacks(60).contains('r'));
}

#[test]
fn sack_above_edge_after_timeout_repeats_retransmission() {
    let mut sender = sender("sack+fast-timeout+loss-retransmission", 22.0);
    assert_eq!(sender.timeout(), "1r");
    sender.wait(RTT);
    // Segments 5 and 9 are also lost. Both are ordinary holes. Segment 1 has already been retransmitted.
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
    assert_eq!((sender.cc().cwnd, sender.counters().timeouts), (11.0, 1));
}

#[test]
fn duplicate_ack_flood_causes_few_retransmissions() {
    let mut sender = BareSender::new("newreno+loss-retransmission");
    sender.written = 10;
    let mut sender = sender.under_way(10.0, 64.0, RTT);
    let sent = sender.wait(RTT).dupacks(1000);
    // No new data can be sent, so each further retransmission needs more duplicate ACKs than the ten
    // outstanding segments.
    assert!(sent.split(' ').count() <= 1000 / 10, "{sent}");
    assert!(sender.cc().cwnd >= 1.0);
}
