use airwire::time::Duration;

use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Ack, Phase};

const RTT: Duration = Duration::from_millis(100);

/// Ten segments are outstanding, cwnd is 10, ssthresh 8.
fn under_way(recipe: &str) -> BareSender {
    BareSender::new(recipe).under_way(10.0, 8.0, RTT)
}

fn window(sender: &BareSender) -> (f64, f64) {
    (sender.cc().cwnd, sender.cc().ssthresh)
}

/// Cumulative ACK up to a segment, with SACK blocks.
fn ack_with(sender: &mut BareSender, segment: u64, blocks: &[std::ops::Range<u64>]) -> String {
    sender.receive(Ack::default(), segment, blocks)
}

#[test]
fn two_acks_in_a_row_advance_and_the_timeout_was_spurious() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = under_way(recipe);
        assert_eq!(sender.timeout(), "1r", "{recipe}");
        assert_eq!(sender.ack(1), "11 12", "{recipe}: new data, not old");
        // Ten are outstanding.
        assert_eq!(sender.ack(2), "", "{recipe}");
        // As before, and this ACK has opened it.
        assert!(sender.cc().cwnd >= 10.0 && sender.cc().ssthresh == 8.0, "{recipe}: {:?}", window(&sender));
        assert_eq!(sender.cc().phase(), Phase::Open, "{recipe}");
        assert_eq!(sender.ack(3), "13", "{recipe}");
        assert_eq!(sender.recovery.counters().undone, 1, "{recipe}");
    }
}

#[test]
fn without_sack_a_duplicate_ack_decides_at_once() {
    let mut sender = under_way("newreno+frto");
    sender.timeout();
    assert_eq!(sender.dupacks(1), "", "the copy of 1 is on its way");
    assert_eq!(sender.ack(1), "2r 3r");

    let mut sender = under_way("newreno+frto");
    sender.timeout();
    assert_eq!(sender.ack(1), "11 12");
    assert_eq!(sender.dupacks(1), "2r 3r 4r", "step 3a: at most three");
    assert_eq!(window(&sender), (3.0, 5.0));
}

#[test]
fn an_ack_of_the_whole_window_tells_nothing() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = under_way(recipe);
        sender.timeout();
        assert_eq!(sender.ack(10), "11 12", "{recipe}");
        assert_eq!(window(&sender), (2.0, 5.0), "{recipe}");
        assert_eq!(sender.recovery.counters().undone, 0);
    }
}

#[test]
fn with_sack_duplicate_acks_before_the_first_new_one_decide_nothing() {
    let mut sender = under_way("sack+frto");
    sender.timeout();
    assert_eq!(sender.sack(&[3..4]), "");
    assert_eq!(sender.sack(&[3..7]), "", "nor is what IsLost() says believed");
    // The copy of 1 has arrived: two new segments.
    assert_eq!(ack_with(&mut sender, 1, &[3..7]), "11 12");
    // They arrive, and 2 has not: step 3a.
    assert_eq!(sender.sack(&[11..12, 3..7]), "2r 7r 8r");
    assert_eq!((window(&sender), sender.recovery.counters().undone), ((3.0, 5.0), 0));
}

#[test]
fn with_sack_an_original_above_a_hole_is_proof_enough() {
    let mut sender = under_way("sack+frto");
    sender.timeout();
    assert_eq!(ack_with(&mut sender, 1, &[]), "11 12");
    // 2 is lost, 3 arrives. The rest of the window is late, too.
    assert_eq!(sender.sack(&[3..4]), "");
    assert_eq!((sender.cc().phase(), sender.cc().ssthresh), (Phase::Open, 8.0));
    // The loss is found as ever, and halves the window.
    sender.sack(&[3..5]);
    assert!(sender.sack(&[3..6]).starts_with("2r"));
    assert_eq!(sender.cc().phase(), Phase::Recovery);
}

#[test]
fn what_had_been_sacked_before_the_timeout_is_no_news() {
    let mut sender = under_way("sack+frto");
    // 1 and 2 are lost.
    sender.sack(&[3..4]);
    sender.sack(&[3..5]);
    sender.timeout();
    assert_eq!(sender.flight.sacked().segments, 0, "RFC 2018 §8");
    assert_eq!(sender.ack(1), "11 12");
    assert!(sender.sack(&[3..5]).starts_with("2r"));
    assert_eq!(sender.recovery.counters().undone, 0);
}

#[test]
fn with_sack_not_in_fast_recovery() {
    let mut sender = under_way("sack+frto");
    sender.sack(&[4..5]);
    sender.sack(&[4..6]);
    assert_eq!(sender.sack(&[4..7]), "1r");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.ack(1), "2r 3r");
    // Without SACK the sender does not know what has arrived, and looks at ACKs.
    let mut sender = under_way("newreno+frto");
    sender.dupacks(3);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.ack(1), "11 12");
}

#[test]
fn with_sack_an_ack_beyond_recovery_point_proves_nothing() {
    let mut sender = under_way("sack+frto");
    sender.timeout();
    assert_eq!(sender.ack(1), "11 12");
    sender.ack(11);
    assert_eq!(sender.recovery.counters().undone, 0);
    assert_eq!(sender.cc().cwnd, 4.0, "three, and slow start goes on");
}

#[test]
fn with_nothing_new_to_send_conventional_recovery_goes_on() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = BareSender::new(recipe);
        sender.written = 10;
        let mut sender = sender.under_way(10.0, 8.0, RTT);
        assert_eq!(sender.timeout(), "1r", "{recipe}");
        // As the sender without F-RTO: cwnd 2.
        assert_eq!(sender.ack(1), "2r 3r", "{recipe}");
        assert_eq!(window(&sender), (2.0, 5.0), "{recipe}");
        assert_eq!(sender.ack(3), "4r 5r 6r", "{recipe}");
    }
    // A full window is the same.
    let mut sender = BareSender::new("newreno+frto");
    sender.rwnd = 9;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    sender.timeout();
    sender.rwnd = 8;
    assert_eq!(sender.ack(1), "2r 3r");
}

#[test]
fn one_new_segment_is_enough_to_look_on() {
    let mut sender = BareSender::new("newreno+frto");
    sender.written = 11;
    let mut sender = sender.under_way(10.0, 8.0, RTT);
    sender.timeout();
    assert_eq!(sender.ack(1), "11");
    sender.ack(2);
    assert_eq!(sender.recovery.counters().undone, 1);
}

#[test]
fn not_while_an_earlier_timeout_is_being_recovered_from() {
    for recipe in ["newreno+frto", "sack+frto"] {
        let mut sender = under_way(recipe);
        sender.timeout();
        assert_eq!(sender.timeout(), "1r", "{recipe}: the same segment");
        assert_eq!(sender.ack(1), "2r 3r", "{recipe}");
        assert_eq!(sender.timeout(), "2r", "{recipe}: another one of that window");
        assert_eq!(sender.ack(2), "3r 4r", "{recipe}");
        let all = sender.flight.max() / SMSS;
        sender.ack(all);
        sender.timeout();
        let una = sender.flight.una() / SMSS;
        assert!(!sender.ack(una + 1).contains('r'), "{recipe}: that is over");
    }
}
