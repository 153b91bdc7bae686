//! The examples of RFC 9937 (and RFC 6937), and forbidden behaviour of the window.

use airwire::time::Duration;

use crate::profile::Profile;
use crate::recovery::testing::{BareSender, RTT, SMSS};
use crate::recovery::{Ack, Handshake, RecoveryState};

/// Returns a sender with twenty outstanding segments, at the time when the first ACKs arrive.
fn sender(recipe: &str) -> BareSender {
    let mut sender = BareSender::new(recipe).under_way(20.0, 20.0, RTT);
    sender.wait(RTT);
    sender
}

/// Returns `pipe` in segments.
fn pipe(sender: &BareSender) -> u64 {
    sender.flight.pipe().bytes / SMSS
}

#[test]
fn single_loss_matches_first_rfc_example() {
    let mut sender = sender("sack+limited-transmit+prr");
    // Segment 1 is lost. Limited Transmit responds to the first two ACKs, and the third begins recovery:
    // ssthresh = 10, RecoverFS = 22 outstanding - 3 SACKed + 1 just delivered = 20.
    let sent: Vec<String> = (3..=21).map(|end| sender.sack(&[2..end])).collect();
    // Then sndcnt = CEIL(k·10/20) - prr_out for the k-th ACK of recovery: every other ACK releases a segment,
    // k = 1 (the fast retransmission), 3, 5, … 15. At k = 17, pipe is 22 - 19 - 1 + 8 = 10, which is
    // ssthresh.
    let expected =
        ["21", "22", "1r", "", "23", "", "24", "", "25", "", "26", "", "27", "", "28", "", "29", "", ""];
    assert_eq!(sent, expected);
    assert_eq!((pipe(&sender), sender.cc().cwnd, sender.cc().ssthresh), (10, 10.0, 10.0));
    // Segments 21 and 22 are SACKed and replaced. The ACK of the retransmission ends recovery.
    assert_eq!(sender.sack(&[2..22]), "30");
    assert_eq!(sender.sack(&[2..23]), "31");
    assert_eq!(sender.ack(22), "32");
    assert_eq!((sender.cc().cwnd, sender.cc().state()), (10.0, RecoveryState::Open));
}

#[test]
fn fifteen_losses_match_second_rfc_example() {
    let third = |recipe| {
        let mut sender = sender(recipe);
        assert_eq!(sender.sack(&[16..17]), "21");
        assert_eq!(sender.sack(&[16..18]), "22");
        let sent = sender.sack(&[16..19]);
        (sender, sent)
    };
    // RFC 6675 alone: pipe = 22 - 3 - 15 = 4, and everything that ssthresh = 10 permits is sent at once.
    assert_eq!(third("sack+limited-transmit").1, "1r 2r 3r 4r 5r 6r");
    // Below ssthresh only the delivered amount may be sent: one segment per ACK, and pipe is constant.
    let (mut sender, sent) = third("sack+limited-transmit+prr");
    assert_eq!(sent, "1r");
    for (end, resent) in [(20, "2r"), (21, "3r"), (22, "4r"), (23, "5r")] {
        assert_eq!(sender.sack(&[16..end]), resent);
        assert_eq!(pipe(&sender), 5);
    }
    // The first retransmission arrives and reveals no further loss: each ACK releases one more segment, up to
    // ssthresh.
    sender.wait(RTT);
    let sent: Vec<String> = (1..=6).map(|segment| sender.ack(segment)).collect();
    assert_eq!(sent, ["6r 7r", "8r 9r", "10r 11r", "12r 13r", "14r 15r", "23"]);
    assert_eq!(pipe(&sender), 10);
}

#[test]
fn reduction_follows_configured_ssthresh() {
    // beta = 0.7: ssthresh = 14, so 7 segments are sent for 9 that arrive.
    let mut sender = sender("sack+beta=0.7+prr");
    sender.sack(&[2..3]);
    sender.sack(&[2..4]);
    // RecoverFS = 20 outstanding - 3 SACKed + 1 just delivered = 18. CEIL(k·14/18): 1, 2, 3, 4, 4, 5, 6, 7, 7
    let sent: Vec<String> = (5..=13).map(|end| sender.sack(&[2..end])).collect();
    assert_eq!(sent, ["1r", "21", "22", "23", "", "24", "25", "26", ""]);
}

#[test]
fn ack_without_delivery_releases_nothing() {
    let mut sender = sender("sack+prr");
    for end in 17..=19 {
        sender.sack(&[16..end]);
    }
    let (cwnd, prr_sent) = (sender.cc().cwnd, pipe(&sender));
    for _ in 0..1000 {
        assert_eq!(sender.sack(&[16..19]), "", "nothing is newly SACKed");
        assert_eq!(sender.dupacks(1), "");
        assert_eq!(sender.receive(Ack { ecr: Some(0), ..Ack::default() }, 0, &[]), "");
    }
    assert_eq!((sender.cc().cwnd, pipe(&sender)), (cwnd, prr_sent));
}

#[test]
fn timer_detected_losses_do_not_burst() {
    // Reordering has been detected, so RACK waits for a quarter of a round trip, 25 ms.
    let mut sender = sender("sack+rack+prr");
    sender.sack(&[2..3]);
    sender.ack(2);
    assert!(sender.sack(&[19..21]).is_empty() || sender.cc().state() == RecoveryState::Open);
    let before = sender.flight.outstanding().segments;
    // Segments 3 to 18 are detected as lost at the same time, when nothing is delivered.
    let sent = sender.deadline();
    assert_eq!(sent, "3r", "only the fast retransmission");
    assert_eq!(sender.flight.outstanding().segments, before);
    // The next ACK delivers one segment: MAX(1 - 1, 1).
    assert_eq!(sender.sack(&[19..22]), "4r");
}

#[test]
fn linux_replaces_timer_detected_losses_at_once() {
    let resent = |profile| {
        let handshake = Handshake::default();
        let mut sender = BareSender::with("sack+rack+prr", profile, &handshake).under_way(20.0, 20.0, RTT);
        // Reordering has been detected, so RACK waits.
        sender.wait(RTT).sack(&[2..3]);
        sender.ack(2);
        sender.sack(&[4..5]);
        assert_eq!(sender.deadline(), "3r");
        sender.sack(&[4..5, 7..8]);
        let (cwnd, sent) = (sender.cc().cwnd, sender.deadline());
        (sent, sender.cc().cwnd - cwnd)
    };
    assert_eq!(resent(Profile::linux()), ("5r 6r".to_owned(), 0.0));
    assert_eq!(resent(Profile::default()), (String::new(), -2.0));
}

#[test]
fn tiny_windows_keep_at_least_one_segment() {
    for cwnd in 1_u64..=4 {
        let mut sender = BareSender::new("sack+rack+prr").under_way(cwnd as f64, 2.0, RTT);
        for _ in 0..50 {
            let una = sender.una();
            let last = sender.last();
            sender.wait(RTT);
            if last > una + 1 {
                sender.sack(&[una + 2..last + 1]);
            }
            let cwnd = sender.cc().cwnd;
            assert!(cwnd.is_finite() && cwnd >= 1.0, "{cwnd}");
            if sender.recovery.deadline().is_some() {
                sender.deadline();
            }
            if sender.recovery.deadline().is_none() && sender.cc().state() != RecoveryState::Recovery {
                sender.timeout();
            }
            sender.wait(RTT).ack(una + 1);
        }
    }
}

#[test]
fn prr_is_inactive_without_loss() {
    let run = |recipe: &str| {
        let mut sender = BareSender::new(recipe).under_way(10.0, 8.0, RTT);
        let sent: Vec<String> = (1..=200)
            .map(|segment| {
                let sent = sender.ack(segment);
                sender.wait(Duration::from_millis(10));
                sent
            })
            .collect();
        (sent, sender.trace())
    };
    assert_eq!(run("sack+prr"), run("sack"));
}

#[test]
fn prr_is_inactive_after_timeout() {
    let mut sender = sender("sack+prr");
    for end in 17..=19 {
        sender.sack(&[16..end]);
    }
    assert_eq!(sender.timeout(), "1r");
    // Slow start, as without PRR: two segments per ACK.
    assert_eq!((sender.cc().cwnd, sender.ack(1).as_str()), (1.0, "2r 3r"));
    assert!(sender.trace().iter().rev().take(4).all(|decision| decision.by != "prr"));
}
