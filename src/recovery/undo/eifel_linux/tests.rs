use crate::recovery::testing::{BareSender, RTT};
use crate::recovery::undo::testing::{ORIGINAL, under_way, undone};
use crate::recovery::{Ack, RecoveryState};

#[test]
fn undone_timeout_resumes_at_snd_max() {
    let mut sender = under_way("newreno+eifel-linux");
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.window(), (1.0, 5.0));
    // cwnd is twice the reduced ssthresh, which is less than 9 + 3. ssthresh is max(8, 3/4 of 10), from
    // before the timeout.
    assert_eq!(sender.wait(RTT).ack_echoing(1, ORIGINAL), "11");
    assert_eq!((sender.window(), undone(&sender)), ((10.0, 8.0), 1));
    assert_eq!(sender.cc().state(), RecoveryState::Open);
}

#[test]
fn ack_of_everything_undoes_and_releases_three_segments() {
    for (recipe, expected) in [("newreno+eifel-linux", 1), ("newreno+eifel", 0)] {
        let mut sender = under_way(recipe);
        sender.timeout();
        let sent = sender.wait(RTT).ack_echoing(10, ORIGINAL);
        assert_eq!(undone(&sender), expected, "{recipe}: only `eifel` applies RFC 3522 step (5)");
        if expected == 1 {
            assert_eq!(sent, "11 12 13");
            assert_eq!(sender.window(), (3.0, 8.0));
        }
    }
}

#[test]
fn undone_first_window_stays_in_slow_start() {
    let mut sender = BareSender::new("newreno+eifel-linux").under_way(2.0, f64::INFINITY, RTT);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.window(), (1.0, 2.0));
    sender.wait(RTT).ack_echoing(2, ORIGINAL);
    assert_eq!(sender.window(), (3.0, f64::INFINITY));
}

#[test]
fn genuine_timeout_is_not_undone() {
    let mut sender = under_way("newreno+eifel-linux");
    sender.timeout();
    let copy = sender.now.as_millis() as u32;
    // Duplicate ACKs echo an old timestamp while segment 1 is missing.
    let duplicate = Ack { ecr: Some(ORIGINAL), ..Ack::default() };
    sender.wait(RTT).receive(duplicate, 0, &[]);
    sender.ack_echoing(1, copy);
    assert_eq!(undone(&sender), 0);
    assert_eq!(sender.cc().ssthresh, 5.0);
}

#[test]
fn repeated_timeout_is_not_undone() {
    let mut sender = under_way("newreno+eifel-linux");
    sender.timeout();
    sender.timeout();
    sender.ack_echoing(1, ORIGINAL);
    assert_eq!(undone(&sender), 0);
}

#[test]
fn undo_does_not_raise_srtt() {
    let mut sender = under_way("newreno+eifel-linux");
    sender.timeout();
    sender.ack_echoing(10, ORIGINAL);
    let srtt = sender.rtt.srtt();
    sender.wait(RTT).ack(11);
    assert!(sender.rtt.srtt() <= srtt, "RFC 4015 step (11) would set it to the first sample at least");
}

#[test]
fn ecn_or_zero_echo_keeps_window_reduced() {
    for ack in [
        Ack { ecr: Some(ORIGINAL), ece: true, ..Ack::default() },
        Ack { ecr: Some(0), ..Ack::default() },
        Ack::default(),
    ] {
        let mut sender = under_way("newreno+eifel-linux");
        sender.timeout();
        sender.receive(ack, 1, &[]);
        assert_eq!(undone(&sender), 0, "{ack:?}");
    }
}
