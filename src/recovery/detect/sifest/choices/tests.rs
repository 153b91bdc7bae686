//! Tests of each parameter alone, where it differs from `sifest`.

use airwire::time::Duration;

use crate::recovery::Ack;
use crate::recovery::testing::{BareSender, RTT};

const LATER: Duration = Duration::from_millis(110);

/// Plays the same events with the choice and with the paper's wording.
fn sent_without_and_with(with: &str, cwnd: f64, what: impl Fn(&mut BareSender) -> String) -> [String; 2] {
    ["newreno+sifest".to_owned(), format!("newreno+{with}")].map(|recipe| {
        let mut sender = BareSender::new(&recipe).under_way(cwnd, 64.0, RTT);
        sender.wait(RTT);
        what(&mut sender)
    })
}

#[test]
fn any_ack_retransmits_lone_segment() {
    // A window update.
    let sent = sent_without_and_with("sifest-any-ack", 1.0, |sender| sender.receive(Ack::default(), 0, &[]));
    assert_eq!(sent, ["", "1r 2"]);
}

#[test]
fn idle_clock_counts_waiting_sender_as_idle() {
    let sent = sent_without_and_with("sifest-idle-clock", 8.0, |sender| {
        assert_eq!(sender.wait(RTT).ack(1), "9 10");
        sender.dupacks(1)
    });
    assert_eq!(sent, ["", "2r"]);
}

#[test]
fn by_clock_repeats_queued_retransmission() {
    let sent = sent_without_and_with("sifest-by-clock", 8.0, |sender| {
        assert_eq!(sender.dupacks(3), "1r");
        // A duplicate ACK from a segment sent before the retransmission.
        sender.wait(RTT + RTT / 2).dupacks(1)
    });
    assert_eq!(sent, ["", "1r"]);
}

#[test]
fn new_data_choice_ignores_retransmissions_in_estimate() {
    let sent_by = |recipe: &str| {
        let mut sender = BareSender::new(recipe).under_way(16.0, 64.0, RTT);
        sender.wait(RTT);
        assert_eq!(sender.timeout(), "1r 2r");
        assert_eq!(sender.wait(RTT).ack(1), "3r 4r");
        sender.wait(LATER).dupacks(1)
    };
    assert_eq!(sent_by("newreno+sifest+liw"), "", "two of three segments in flight have to arrive");
    assert_eq!(sent_by("newreno+sifest+liw+sifest-new-data"), "2r");
}

#[test]
fn all_copies_choice_counts_only_passes_after_timeout() {
    let sent_by = |recipe: &str| {
        let mut sender = BareSender::new(recipe).under_way(16.0, 64.0, RTT);
        sender.wait(RTT);
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        // The retransmission of 2 is lost, too. Tahoe begins another pass, which a timeout did not cause.
        assert_eq!(sender.wait(LATER).dupacks(1), "2r");
        assert_eq!(sender.wait(RTT).ack(3), "4r 5r");
        for segment in 4..=6 {
            sender.wait(RTT).ack(segment);
        }
        assert_eq!(sender.wait(RTT).ack(7), "10r");
        sender.wait(LATER).dupacks(1)
    };
    assert_eq!(sent_by("tahoe+sifest"), "", "8, 9 and 10 are in flight");
    assert_eq!(sent_by("tahoe+sifest+sifest-all-copies"), "8r");
}

#[test]
fn empty_path_choice_mistakes_old_dupacks_for_loss() {
    let sent = sent_without_and_with("sifest-empty-path", 10.0, |sender| {
        // Segments 1 and 5 are lost. The timer fires after the retransmission of 5, while ACKs continue to
        // arrive.
        assert_eq!(sender.dupacks(8), "1r 11 12 13");
        assert_eq!(sender.wait(RTT).ack(4), "5r 14");
        assert_eq!(sender.dupacks(1), "15");
        sender.rto = Some(sender.now + RTT / 2);
        assert_eq!(sender.timeout(), "5r");
        sender.wait(RTT).dupacks(5)
    });
    assert_eq!(sent[0], "");
    assert!(sent[1].starts_with("5r"), "{sent:?}");
}

#[test]
fn in_vain_choice_mistakes_spurious_retransmission_for_loss() {
    let sent = sent_without_and_with("sifest-in-vain", 4.0, |sender| {
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        // 2r fills the hole, so 3r is spurious.
        assert_eq!(sender.wait(RTT).ack(4), "5 6");
        sender.dupacks(1)
    });
    assert_eq!(sent, ["", "5r 7"]);
}

#[test]
fn three_in_vain_lets_three_dupacks_suffice() {
    let sent = sent_without_and_with("sifest-3-in-vain", 16.0, |sender| {
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        assert_eq!(sender.wait(RTT).ack(2), "4r 5r");
        // Segment 3 was not lost, so its retransmission is spurious.
        assert_eq!(sender.ack(4), "6r 7r 8r");
        sender.wait(LATER).dupacks(3)
    });
    assert_eq!(sent, ["", "5r"]);
}

#[test]
fn no_recover_lets_three_dupacks_suffice() {
    let sent = sent_without_and_with("sifest-no-recover", 16.0, |sender| {
        assert_eq!(sender.timeout(), "1r");
        for segment in 1..=16 {
            sender.wait(RTT).ack(segment);
        }
        sender.wait(RTT).dupacks(3)
    });
    assert!(!sent[0].contains('r') && sent[1].contains("17r"), "{sent:?}");
}
