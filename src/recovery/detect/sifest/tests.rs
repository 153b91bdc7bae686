use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::testing::{BareSender, RTT, resent};
use crate::recovery::{Ack, Decision, Handshake, RecoveryState, What};

const LATER: Duration = Duration::from_millis(110);

fn sender(recipe: &str, cwnd: f64) -> BareSender {
    let mut sender = BareSender::new(recipe).under_way(cwnd, 64.0, RTT);
    sender.wait(RTT);
    sender
}

/// A sender whose application has written only this many segments.
fn session_limited(recipe: &str, cwnd: f64, written: u64) -> BareSender {
    let mut sender = BareSender::new(recipe);
    sender.written = written;
    let mut sender = sender.under_way(cwnd, 64.0, RTT);
    sender.wait(RTT);
    sender
}

#[test]
fn window_of_two_needs_one_duplicate_ack() {
    for repair in ["tahoe", "reno", "newreno", "sack"] {
        let mut with = sender(&format!("{repair}+sifest"), 2.0);
        let mut without = sender(repair, 2.0);
        let first = |sender: &mut BareSender| match repair {
            "sack" => sender.sack(&[2..3]),
            _ => sender.dupacks(1),
        };
        assert_eq!(resent(&first(&mut with), 1), 1, "{repair}");
        assert_eq!(first(&mut without), "", "{repair}");
        assert_eq!(with.counters().fast_retransmits, 1, "{repair}");
        assert_eq!(without.timeout(), "1r", "{repair}");
    }
}

#[test]
fn threshold_is_sifest_minus_one_or_dup_thresh() {
    for (window, needed) in [(2, 1), (3, 2), (4, 3), (5, 3), (16, 3)] {
        let mut sender = sender("newreno+sifest", f64::from(window));
        assert_eq!(sender.dupacks(needed - 1), "", "window {window}");
        assert_eq!(resent(&sender.dupacks(1), 1), 1, "window {window}");
    }
}

#[test]
fn rwnd_or_application_limit_lowers_threshold() {
    let mut small_receiver = BareSender::new("newreno+sifest");
    small_receiver.rwnd = 2;
    let mut small_receiver = small_receiver.under_way(16.0, 64.0, RTT);
    assert_eq!(small_receiver.wait(RTT).dupacks(1), "1r");

    let mut few_octets = session_limited("newreno+sifest", 16.0, 3);
    assert_eq!(few_octets.dupacks(1), "");
    assert_eq!(few_octets.dupacks(1), "1r");
}

#[test]
fn new_ack_subtracts_acked_segments_from_estimate() {
    let mut sender = session_limited("newreno+sifest", 16.0, 8);
    // Eight segments are in flight and six arrive. The seventh is lost. With two segments in flight, one
    // duplicate ACK is enough.
    assert_eq!(sender.ack(6), "");
    assert_eq!(sender.dupacks(1), "7r");
}

#[test]
fn window_update_does_not_trigger_retransmission() {
    let mut sender = sender("newreno+sifest", 1.0);
    // A window update. sifest is 1, so the formula alone would require no duplicate ACK.
    assert_eq!(sender.receive(Ack::default(), 0, &[]), "");
    assert_eq!(sender.counters().fast_retransmits, 0);
}

#[test]
fn single_reordered_segment_is_not_lost() {
    for recipe in ["tahoe+sifest", "reno+sifest", "newreno+sifest"] {
        let mut sender = sender(recipe, 8.0);
        for overtaken in 0..100 {
            assert_eq!(sender.dupacks(1), "", "{recipe}: {overtaken}");
            sender.ack(2 * overtaken + 2);
        }
        assert_eq!(sender.counters().resent(), 0, "{recipe}");
    }
}

#[test]
fn estimate_restarts_at_zero_after_timeout() {
    // Pan et al. 2004, §4.2: two segments after a timeout, the first of which is lost.
    let mut one_lost = sender("newreno+sifest+liw", 16.0);
    assert_eq!(one_lost.timeout(), "1r 2r");
    assert_eq!(one_lost.wait(RTT).dupacks(1), "1r");

    // Only the second segment is lost. The ACK of the first releases two more, and both report the hole.
    let mut other_lost = sender("newreno+sifest+liw", 16.0);
    assert_eq!(other_lost.timeout(), "1r 2r");
    assert_eq!(other_lost.wait(RTT).ack(1), "3r 4r");
    assert_eq!(other_lost.wait(LATER).dupacks(1), "");
    assert_eq!(other_lost.dupacks(1), "2r");

    // Without the estimate, both cases wait for the next timeout.
    let mut without = sender("newreno+liw", 16.0);
    assert_eq!(without.timeout(), "1r 2r");
    assert_eq!(without.wait(RTT).dupacks(1), "");
}

#[test]
fn retransmissions_count_once_and_only_after_timeout() {
    // Three segments are in flight. A fast retransmission does not change the estimate, because Tahoe's
    // second pass over them sends no new data.
    let mut fast = session_limited("tahoe+sifest", 3.0, 5);
    assert_eq!(fast.dupacks(2), "1r");
    assert_eq!(fast.wait(RTT).ack(3), "4 5");
    assert_eq!(fast.dupacks(1), "4r", "two segments are in flight");

    // After a timeout, only the pass is in flight. A second retransmission by the estimate does not count
    // again.
    let mut slow = sender("newreno+sifest", 8.0);
    assert_eq!(slow.timeout(), "1r");
    assert_eq!(slow.wait(RTT).ack(1), "2r 3r");
    assert_eq!(slow.wait(LATER).dupacks(1), "2r");
    assert_eq!(slow.wait(LATER).dupacks(1), "2r");
}

#[test]
fn retransmission_is_repeated_after_round_trip() {
    for repair in ["reno", "newreno"] {
        let mut sender = sender(&format!("{repair}+sifest"), 8.0);
        assert_eq!(sender.dupacks(3), "1r", "{repair}");
        let at = sender.now;
        // The rest of the window arrives and releases new segments.
        assert_eq!(sender.dupacks(4), "9 10 11", "{repair}");
        sender.now = at + RTT - Duration::from_millis(1);
        assert_eq!(
            resent(&sender.dupacks(1), 1),
            0,
            "{repair}: the ACK of the retransmission may be in flight"
        );
        sender.now = at + RTT;
        assert_eq!(resent(&sender.dupacks(1), 1), 1, "{repair}");
        let counters = sender.counters();
        assert_eq!(
            (counters.lost_retransmissions, counters.window_reductions),
            (1, 2),
            "{repair}: RFC 5681 §4.3"
        );
        // The next retransmission needs another round trip.
        assert_eq!(resent(&sender.dupacks(5), 1), 0, "{repair}");
    }
}

#[test]
fn queued_retransmission_is_not_repeated_early() {
    let mut sender = sender("newreno+sifest", 8.0);
    assert_eq!(sender.dupacks(3), "1r");
    // The ACKs of the four segments sent before the retransmission take three round trips.
    for _ in 0..4 {
        assert_eq!(resent(&sender.wait(RTT * 3 / 4).dupacks(1), 1), 0);
    }
    // This duplicate ACK is from a segment sent after the retransmission.
    assert_eq!(resent(&sender.dupacks(1), 1), 1);
}

#[test]
fn round_trip_is_rto_before_first_sample() {
    let profile = Profile::default().with(|it| it.timers.samples_handshake = false);
    let mut sender = BareSender::with("newreno+sifest", profile, &Handshake::default());
    sender.send();
    assert_eq!(resent(&sender.wait(RTT).dupacks(9), 1), 1);
    assert_eq!(sender.rtt.srtt(), None);
    assert_eq!(resent(&sender.wait(Duration::from_millis(999)).dupacks(1), 1), 0);
    assert_eq!(resent(&sender.wait(Duration::from_millis(1)).dupacks(1), 1), 1);
}

#[test]
fn dupacks_at_recover_trigger_retransmission_after_timeout() {
    let after_timeout = |recipe| {
        let mut sender = sender(recipe, 4.0);
        assert_eq!(sender.timeout(), "1r");
        // Only the first segment and the duplicate ACKs were lost. SND.UNA is at `recover`, not beyond it.
        assert_eq!(sender.wait(RTT).ack(4), "5 6");
        sender.wait(RTT).dupacks(1)
    };
    assert_eq!(after_timeout("newreno+sifest"), "5r 7");
    assert_eq!(after_timeout("newreno"), "");
}

#[test]
fn duplicate_acks_of_spurious_retransmissions_are_ignored() {
    let mut sender = sender("newreno+sifest", 4.0);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    // 2r fills the hole, and 3r is spurious but still in flight. With ssthresh 2, two new segments are sent.
    assert_eq!(sender.wait(RTT).ack(4), "5 6");
    assert_eq!(sender.dupacks(1), "", "the duplicate ACK is from 3r");
    assert_eq!(sender.cc().state(), RecoveryState::Open);
    assert_eq!(sender.wait(RTT).dupacks(1), "5r 7 8", "the duplicate ACK is not from 3r");
}

#[test]
fn timeout_during_acks_assumes_segments_in_flight() {
    // Segments 1 and 5 of ten are lost. The timer fires after the retransmission of 5, while ACKs continue to
    // arrive.
    let mut sender = sender("newreno+sifest", 10.0);
    assert_eq!(sender.dupacks(8), "1r 11 12 13");
    assert_eq!(sender.wait(RTT).ack(4), "5r 14");
    assert_eq!(sender.dupacks(1), "15");
    sender.rto = Some(sender.now + RTT / 2);
    assert_eq!(sender.timeout(), "5r");
    // Eleven segments are outstanding, so at most ten were sent before the retransmission. Half of these are
    // reported.
    assert_eq!(sender.wait(RTT).dupacks(5), "");
    assert_eq!(sender.counters().lost_retransmissions, 0);
}

#[test]
fn idle_sender_forgets_spurious_retransmissions() {
    let after = |rest| {
        let mut sender = session_limited("newreno+sifest", 4.0, 4);
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        assert_eq!(sender.wait(LATER).ack(4), "");
        sender.written = 6;
        assert_eq!(sender.wait(rest).send(), "5 6");
        sender.wait(RTT).dupacks(1)
    };
    // The two retransmissions were sent together, and the ACK of one has just arrived.
    assert_eq!(after(Duration::ZERO), "");
    assert_eq!(after(LATER), "5r");
}

#[test]
fn is_lost_applies_with_estimated_dup_thresh() {
    let mut wide = sender("sack+sifest", 10.0);
    assert_eq!(wide.sack(&[2..3]), "");
    assert_eq!(wide.sack(&[2..4]), "");
    assert_eq!(wide.sack(&[5..6, 2..4]), "1r");
    let lost: Vec<Decision> =
        wide.trace().into_iter().filter(|d| matches!(d.what, What::Lost { .. })).collect();
    assert_eq!(lost.first().map(|d| (d.by, d.why)), Some(("sifest", "IsLost: DupThresh SACKed above")));

    let mut tiny = session_limited("sack+sifest", 10.0, 3);
    assert_eq!(tiny.sack(&[2..3]), "");
    assert_eq!(tiny.sack(&[2..4]), "1r");
}

#[test]
fn limited_transmit_segments_raise_estimate() {
    let mut two = sender("newreno+sifest+limited-transmit", 2.0);
    assert_eq!(resent(&two.dupacks(1), 1), 1);
    // Three segments are in flight. The first duplicate ACK releases a new segment, so there are four.
    let mut three = sender("newreno+sifest+limited-transmit", 3.0);
    assert_eq!(three.dupacks(1), "4");
    assert_eq!(three.dupacks(1), "5");
    assert_eq!(resent(&three.dupacks(1), 1), 1);
}

#[test]
fn duplicate_ack_flood_retransmits_once_per_rtt() {
    for recipe in ["tahoe+sifest", "reno+sifest", "newreno+sifest"] {
        let mut sender = session_limited(recipe, 8.0, 8);
        let mut copies = 0;
        for _ in 0..50 {
            copies += resent(&sender.dupacks(20), 1);
            sender.wait(LATER / 10);
        }
        // 50 rounds of LATER / 10 are five times LATER.
        assert!((1..=6).contains(&copies), "{recipe}: {copies}");
        assert!(sender.cc().cwnd >= 1.0 && sender.cc().ssthresh >= 2.0, "{recipe}: {:?}", sender.cc());
    }
}

#[test]
fn lost_retransmission_precedes_other_sack_holes() {
    // Segment 1, its retransmission and segment 5 are lost. When the retransmission is overdue, IsLost()
    // holds for segments 1 and 5.
    let mut sender = sender("sack+sifest", 10.0);
    assert_eq!(sender.sack(&[2..5]), "1r");
    assert_eq!(sender.sack(&[2..5, 6..11]), "5r 11 12 13");
    assert_eq!(sender.sack(&[2..5, 6..12]), "14", "the ACK of the retransmission may be in flight");
    // RFC 5681 §4.3: cwnd becomes half of its value after the first reduction. pipe exceeds it, so no new
    // data is sent.
    assert_eq!(sender.wait(RTT).sack(&[2..5, 6..13]), "1r");
    assert_eq!(sender.window(), (2.5, 2.5));
    assert_eq!(sender.counters().lost_retransmissions, 1);
    assert_eq!(resent(&sender.sack(&[2..5, 6..14]), 5), 0, "segment 5 is not retransmitted twice");
}

#[test]
fn timeouts_are_counted_by_duplicate_acks_received() {
    // Pan et al. 2004, §4.1, without sifest: one duplicate ACK while two segments are outstanding.
    let mut sender = sender("newreno+liw", 8.0);
    assert_eq!(sender.timeout(), "1r 2r");
    let counters = sender.counters();
    assert_eq!((counters.timeouts_by_dupacks, counters.failed_dupack), ([1, 0, 0, 0], 0));
    // Only two of the eight segments are outstanding in this pass, and one has arrived.
    sender.wait(RTT).dupacks(1);
    sender.timeout();
    let counters = sender.counters();
    assert_eq!((counters.timeouts_by_dupacks, counters.failed_dupack), ([1, 1, 0, 0], 1));
    // Two duplicate ACKs for two segments do not count as failed-dupack, because the first segment has
    // arrived too.
    sender.wait(RTT).dupacks(2);
    sender.timeout();
    let counters = sender.counters();
    assert_eq!((counters.timeouts_by_dupacks, counters.failed_dupack), ([1, 1, 1, 0], 1));
    assert_eq!((counters.fast_retransmits, counters.failed_alone), (0, 0));
    // x = 0: only one segment is outstanding, so a duplicate ACK cannot arrive.
    let mut alone = self::sender("newreno", 1.0);
    alone.timeout();
    let counters = alone.counters();
    assert_eq!((counters.failed_dupack, counters.failed_alone), (0, 1));
}
