//! Each parameter by itself, where it differs from `sifest`.

use airwire::time::Duration;

use crate::recovery::Ack;
use crate::recovery::testing::BareSender;

const RTT: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_millis(110);

/// The same with the choice and with the paper's words.
fn both(with: &str, cwnd: f64, what: impl Fn(&mut BareSender) -> String) -> [String; 2] {
    ["newreno+sifest".to_owned(), format!("newreno+{with}")].map(|recipe| {
        let mut sender = BareSender::new(&recipe).under_way(cwnd, 64.0, RTT);
        sender.wait(RTT);
        what(&mut sender)
    })
}

#[test]
fn any_ack_sends_again_what_is_alone_in_the_path() {
    // A window update.
    let sent = both("sifest-any-ack", 1.0, |sender| sender.receive(Ack::default(), 0, &[]));
    assert_eq!(sent, ["", "1r 2"]);
}

#[test]
fn idle_by_the_clock_is_a_sender_that_waits_for_acks() {
    let sent = both("sifest-idle-clock", 8.0, |sender| {
        assert_eq!(sender.wait(RTT).ack(1), "9 10");
        sender.dupacks(1)
    });
    assert_eq!(sent, ["", "2r"]);
}

#[test]
fn by_the_clock_a_copy_behind_a_queue_is_late() {
    let sent = both("sifest-by-clock", 8.0, |sender| {
        assert_eq!(sender.dupacks(3), "1r");
        // One that left before the copy.
        sender.wait(RTT + RTT / 2).dupacks(1)
    });
    assert_eq!(sent, ["", "1r"]);
}

#[test]
fn where_only_new_data_counts_the_pass_after_a_timeout_is_no_estimate() {
    let of = |recipe: &str| {
        let mut sender = BareSender::new(recipe).under_way(16.0, 64.0, RTT);
        sender.wait(RTT);
        assert_eq!(sender.timeout(), "1r 2r");
        assert_eq!(sender.wait(RTT).ack(1), "3r 4r");
        sender.wait(LATER).dupacks(1)
    };
    assert_eq!(of("newreno+sifest+liw"), "", "of three in the path two have to arrive");
    assert_eq!(of("newreno+sifest+liw+sifest-new-data"), "2r");
}

#[test]
fn copies_count_as_a_timeout_sends_them() {
    let of = |recipe: &str| {
        let mut sender = BareSender::new(recipe).under_way(16.0, 64.0, RTT);
        sender.wait(RTT);
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        // The copy of 2 is lost, too: Tahoe begins another pass, and this one is no timeout's.
        assert_eq!(sender.wait(LATER).dupacks(1), "2r");
        assert_eq!(sender.wait(RTT).ack(3), "4r 5r");
        for segment in 4..=6 {
            sender.wait(RTT).ack(segment);
        }
        assert_eq!(sender.wait(RTT).ack(7), "10r");
        sender.wait(LATER).dupacks(1)
    };
    assert_eq!(of("tahoe+sifest"), "", "8, 9 and 10 are in the path");
    assert_eq!(of("tahoe+sifest+sifest-all-copies"), "8r");
}

#[test]
fn an_empty_path_makes_old_segments_speak_for_a_copy() {
    let sent = both("sifest-empty-path", 10.0, |sender| {
        // 1 and 5 are lost: the timer fires when 5 has been sent again, with ACKs arriving all the time.
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
fn in_vain_a_copy_is_taken_for_a_loss() {
    let sent = both("sifest-in-vain", 4.0, |sender| {
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        // 2r has filled the hole, and 3r arrives in vain.
        assert_eq!(sender.wait(RTT).ack(4), "5 6");
        sender.dupacks(1)
    });
    assert_eq!(sent, ["", "5r 7"]);
}

#[test]
fn three_in_vain_are_three() {
    let sent = both("sifest-3-in-vain", 16.0, |sender| {
        assert_eq!(sender.timeout(), "1r");
        assert_eq!(sender.wait(RTT).ack(1), "2r 3r");
        assert_eq!(sender.wait(RTT).ack(2), "4r 5r");
        // 3 had not been lost: its copy arrives in vain.
        assert_eq!(sender.ack(4), "6r 7r 8r");
        sender.wait(LATER).dupacks(3)
    });
    assert_eq!(sent, ["", "5r"]);
}

#[test]
fn before_recover_three_are_enough() {
    let sent = both("sifest-no-recover", 16.0, |sender| {
        assert_eq!(sender.timeout(), "1r");
        for segment in 1..=16 {
            sender.wait(RTT).ack(segment);
        }
        sender.wait(RTT).dupacks(3)
    });
    assert!(!sent[0].contains('r') && sent[1].contains("17r"), "{sent:?}");
}
