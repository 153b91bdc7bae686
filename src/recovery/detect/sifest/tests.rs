use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::testing::BareSender;
use crate::recovery::{Ack, Decision, Handshake, Phase, What};

const RTT: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_millis(110);

fn sender(recipe: &str, cwnd: f64) -> BareSender {
    let mut sender = BareSender::new(recipe).under_way(cwnd, 64.0, RTT);
    sender.wait(RTT);
    sender
}

/// An application that has written no more than this.
fn session_limited(recipe: &str, cwnd: f64, written: u64) -> BareSender {
    let mut sender = BareSender::new(recipe);
    sender.written = written;
    let mut sender = sender.under_way(cwnd, 64.0, RTT);
    sender.wait(RTT);
    sender
}

fn resent(sent: &str, segment: u64) -> usize {
    sent.split(' ').filter(|word| *word == format!("{segment}r")).count()
}

#[test]
fn a_window_of_two_needs_one_duplicate_ack() {
    for repair in ["tahoe", "reno", "newreno", "sack"] {
        let mut with = sender(&format!("{repair}+sifest"), 2.0);
        let mut without = sender(repair, 2.0);
        let first = |sender: &mut BareSender| match repair {
            "sack" => sender.sack(&[2..3]),
            _ => sender.dupacks(1),
        };
        assert_eq!(resent(&first(&mut with), 1), 1, "{repair}");
        assert_eq!(first(&mut without), "", "{repair}");
        assert_eq!(with.recovery.counters().fast_retransmits, 1, "{repair}");
        assert_eq!(without.timeout(), "1r", "{repair}");
    }
}

#[test]
fn sifest_less_one_duplicate_acks_up_to_dup_thresh() {
    for (window, needed) in [(2, 1), (3, 2), (4, 3), (5, 3), (16, 3)] {
        let mut sender = sender("newreno+sifest", f64::from(window));
        assert_eq!(sender.dupacks(needed - 1), "", "window {window}");
        assert_eq!(resent(&sender.dupacks(1), 1), 1, "window {window}");
    }
}

#[test]
fn the_receiver_or_the_application_may_be_what_keeps_the_window_small() {
    let mut small_receiver = BareSender::new("newreno+sifest");
    small_receiver.rwnd = 2;
    let mut small_receiver = small_receiver.under_way(16.0, 64.0, RTT);
    assert_eq!(small_receiver.wait(RTT).dupacks(1), "1r");

    let mut few_octets = session_limited("newreno+sifest", 16.0, 3);
    assert_eq!(few_octets.dupacks(1), "");
    assert_eq!(few_octets.dupacks(1), "1r");
}

#[test]
fn a_new_ack_takes_off_what_it_covers() {
    let mut sender = session_limited("newreno+sifest", 16.0, 8);
    // Eight in the path, six of them arrive: the seventh is lost, and of two segments one duplicate ACK is enough.
    assert_eq!(sender.ack(6), "");
    assert_eq!(sender.dupacks(1), "7r");
}

#[test]
fn it_fires_on_nothing_less_than_a_duplicate_ack() {
    let mut sender = sender("newreno+sifest", 1.0);
    // A window update: sifest is 1, and zero duplicate ACKs are enough by the formula alone.
    assert_eq!(sender.receive(Ack::default(), 0, &[]), "");
    assert_eq!(sender.recovery.counters().fast_retransmits, 0);
}

#[test]
fn one_reordered_segment_of_a_full_window_is_not_lost() {
    for recipe in ["tahoe+sifest", "reno+sifest", "newreno+sifest"] {
        let mut sender = sender(recipe, 8.0);
        for overtaken in 0..100 {
            assert_eq!(sender.dupacks(1), "", "{recipe}: {overtaken}");
            sender.ack(2 * overtaken + 2);
        }
        assert_eq!(sender.recovery.counters().resent(), 0, "{recipe}");
    }
}

#[test]
fn a_timeout_begins_at_zero_and_counts_what_it_sends() {
    // P0 §4.2: two segments after a timeout, the first of them is lost.
    let mut one_lost = sender("newreno+sifest+liw", 16.0);
    assert_eq!(one_lost.timeout(), "1r 2r");
    assert_eq!(one_lost.wait(RTT).dupacks(1), "1r");

    // Only the second: the ACK of the first lets out two more, and both of them report the hole.
    let mut other_lost = sender("newreno+sifest+liw", 16.0);
    assert_eq!(other_lost.timeout(), "1r 2r");
    assert_eq!(other_lost.wait(RTT).ack(1), "3r 4r");
    assert_eq!(other_lost.wait(LATER).dupacks(1), "");
    assert_eq!(other_lost.dupacks(1), "2r");

    // Without the estimate both wait for the next timeout.
    let mut without = sender("newreno+liw", 16.0);
    assert_eq!(without.timeout(), "1r 2r");
    assert_eq!(without.wait(RTT).dupacks(1), "");
}

#[test]
fn a_segment_sent_again_counts_once_after_a_timeout_and_not_at_all_without_one() {
    // Three in the path; a fast retransmit changes nothing: Tahoe's second pass over them is not new.
    let mut fast = session_limited("tahoe+sifest", 3.0, 5);
    assert_eq!(fast.dupacks(2), "1r");
    assert_eq!(fast.wait(RTT).ack(3), "4 5");
    assert_eq!(fast.dupacks(1), "4r", "two in the path");

    // After a timeout the same pass is all there is. The copy that the estimate sends once more is not counted twice.
    let mut slow = sender("newreno+sifest", 8.0);
    assert_eq!(slow.timeout(), "1r");
    assert_eq!(slow.wait(RTT).ack(1), "2r 3r");
    assert_eq!(slow.wait(LATER).dupacks(1), "2r");
    assert_eq!(slow.wait(LATER).dupacks(1), "2r");
}

#[test]
fn a_copy_is_sent_once_more_when_a_round_trip_has_passed() {
    for repair in ["reno", "newreno"] {
        let mut sender = sender(&format!("{repair}+sifest"), 8.0);
        assert_eq!(sender.dupacks(3), "1r", "{repair}");
        let at = sender.now;
        // The rest of the window, and what its ACKs have let out.
        assert_eq!(sender.dupacks(4), "9 10 11", "{repair}");
        sender.now = at + RTT - Duration::from_millis(1);
        assert_eq!(resent(&sender.dupacks(1), 1), 0, "{repair}: the copy's ACK may be on its way");
        sender.now = at + RTT;
        assert_eq!(resent(&sender.dupacks(1), 1), 1, "{repair}");
        let counters = sender.recovery.counters();
        assert_eq!((counters.resent_again, counters.window_reductions), (1, 2), "{repair}: RFC 5681 §4.3");
        // And not again before another round trip has passed.
        assert_eq!(resent(&sender.dupacks(5), 1), 0, "{repair}");
    }
}

#[test]
fn a_copy_behind_a_queue_is_not_late() {
    let mut sender = sender("newreno+sifest", 8.0);
    assert_eq!(sender.dupacks(3), "1r");
    // The four that left before the copy need three round trips.
    for _ in 0..4 {
        assert_eq!(resent(&sender.wait(RTT * 3 / 4).dupacks(1), 1), 0);
    }
    // And this is one that left after it.
    assert_eq!(resent(&sender.dupacks(1), 1), 1);
}

#[test]
fn before_any_sample_the_round_trip_is_the_timeout() {
    let profile = Profile { time_handshake: false, ..Profile::default() };
    let mut sender = BareSender::with("newreno+sifest", profile, &Handshake::default());
    sender.send();
    assert_eq!(resent(&sender.wait(RTT).dupacks(9), 1), 1);
    assert_eq!(sender.rtt.srtt(), None);
    assert_eq!(resent(&sender.wait(Duration::from_millis(999)).dupacks(1), 1), 0);
    assert_eq!(resent(&sender.wait(Duration::from_millis(1)).dupacks(1), 1), 1);
}

#[test]
fn the_first_window_after_a_timeout_is_not_beyond_recover_and_counts() {
    let after_timeout = |recipe| {
        let mut sender = sender(recipe, 4.0);
        assert_eq!(sender.timeout(), "1r");
        // Only the first was lost (and the duplicate ACKs as well): SND.UNA is at `recover`, not beyond.
        assert_eq!(sender.wait(RTT).ack(4), "5 6");
        sender.wait(RTT).dupacks(1)
    };
    assert_eq!(after_timeout("newreno+sifest"), "5r 7");
    assert_eq!(after_timeout("newreno"), "");
}

#[test]
fn duplicate_acks_of_copies_sent_in_vain_are_no_loss() {
    let mut sender = sender("newreno+sifest", 4.0);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
    // 2r has filled the hole, 3r is still on its way in vain. With ssthresh 2, two new segments leave.
    assert_eq!(sender.wait(RTT).ack(4), "5 6");
    assert_eq!(sender.dupacks(1), "", "that was 3r");
    assert_eq!(sender.cc().phase(), Phase::Open);
    assert_eq!(sender.wait(RTT).dupacks(1), "5r 7 8", "and that was not");
}

#[test]
fn a_timeout_while_others_are_still_heard_of_is_no_empty_path() {
    // Segments 1 and 5 are lost of ten: the timer fires when 5 has been sent again, with ACKs arriving all the time.
    let mut sender = sender("newreno+sifest", 10.0);
    assert_eq!(sender.dupacks(8), "1r 11 12 13");
    assert_eq!(sender.wait(RTT).ack(4), "5r 14");
    assert_eq!(sender.dupacks(1), "15");
    sender.rto = Some(sender.now + RTT / 2);
    assert_eq!(sender.timeout(), "5r");
    // Eleven are outstanding: the segments before that copy are ten at most, and half of them are reported.
    assert_eq!(sender.wait(RTT).dupacks(5), "");
    assert_eq!(sender.recovery.counters().resent_again, 0);
}

#[test]
fn what_went_in_vain_is_forgotten_when_the_path_has_rested() {
    let after = |rest| {
        let mut sender = session_limited("newreno+sifest", 4.0, 4);
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        assert_eq!(sender.wait(LATER).ack(4), "");
        sender.written = 6;
        assert_eq!(sender.wait(rest).send(), "5 6");
        sender.wait(RTT).dupacks(1)
    };
    // The two copies left together, and the ACK of one has come just now.
    assert_eq!(after(Duration::ZERO), "");
    assert_eq!(after(LATER), "5r");
}

#[test]
fn a_scoreboard_is_asked_as_ever() {
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
fn with_limited_transmit_the_estimate_grows_with_what_it_sends() {
    let mut two = sender("newreno+sifest+limited-transmit", 2.0);
    assert_eq!(resent(&two.dupacks(1), 1), 1);
    // Three in the path: a new segment for the first duplicate ACK, and then there are four.
    let mut three = sender("newreno+sifest+limited-transmit", 3.0);
    assert_eq!(three.dupacks(1), "4");
    assert_eq!(three.dupacks(1), "5");
    assert_eq!(resent(&three.dupacks(1), 1), 1);
}

#[test]
fn a_flood_of_duplicate_acks_sends_one_copy_a_round_trip_and_leaves_a_window() {
    for recipe in ["tahoe+sifest", "reno+sifest", "newreno+sifest"] {
        let mut sender = session_limited(recipe, 8.0, 8);
        let mut copies = 0;
        for _ in 0..50 {
            copies += resent(&sender.dupacks(20), 1);
            sender.wait(LATER / 10);
        }
        // 50 rounds of LATER / 10 are five of LATER.
        assert!((1..=6).contains(&copies), "{recipe}: {copies}");
        assert!(sender.cc().cwnd >= 1.0 && sender.cc().ssthresh >= 2.0, "{recipe}: {:?}", sender.cc());
    }
}

#[test]
fn a_lost_copy_comes_before_the_other_holes_of_a_scoreboard() {
    // 1 is lost, and its copy; so is 5. By the time the copy is overdue, IsLost() holds for both.
    let mut sender = sender("sack+sifest", 10.0);
    assert_eq!(sender.sack(&[2..5]), "1r");
    assert_eq!(sender.sack(&[2..5, 6..11]), "5r 11 12 13");
    assert_eq!(sender.sack(&[2..5, 6..12]), "14", "the copy's ACK may be on its way");
    // RFC 5681 §4.3: half of what the first loss has left, and pipe is above it.
    assert_eq!(sender.wait(RTT).sack(&[2..5, 6..13]), "1r");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (2.5, 2.5));
    assert_eq!(sender.recovery.counters().resent_again, 1);
    assert_eq!(resent(&sender.sack(&[2..5, 6..14]), 5), 0, "nor has 5 been forgotten, or sent twice");
}

#[test]
fn timeouts_are_counted_by_what_would_have_avoided_them() {
    // P0 §4.1, without sifest: one duplicate ACK while two segments are outstanding.
    let mut sender = sender("newreno+liw", 8.0);
    assert_eq!(sender.timeout(), "1r 2r");
    let counters = sender.recovery.counters();
    assert_eq!((counters.timeouts_by_dupacks, counters.failed_dupack), ([1, 0, 0, 0], 0));
    // Of the eight only two are outstanding in this pass, and one of them has arrived.
    sender.wait(RTT).dupacks(1);
    sender.timeout();
    let counters = sender.recovery.counters();
    assert_eq!((counters.timeouts_by_dupacks, counters.failed_dupack), ([1, 1, 0, 0], 1));
    // Two duplicate ACKs for two segments are not failed-dupack: the first has arrived too.
    sender.wait(RTT).dupacks(2);
    sender.timeout();
    let counters = sender.recovery.counters();
    assert_eq!((counters.timeouts_by_dupacks, counters.failed_dupack), ([1, 1, 1, 0], 1));
    assert_eq!((counters.fast_retransmits, counters.failed_alone), (0, 0));
    // x = 0: only one is outstanding, and nothing could have come.
    let mut alone = self::sender("newreno", 1.0);
    alone.timeout();
    let counters = alone.recovery.counters();
    assert_eq!((counters.failed_dupack, counters.failed_alone), (0, 1));
}
