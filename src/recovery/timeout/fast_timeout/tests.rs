use airwire::time::Duration;

use crate::recovery::testing::BareSender;
use crate::recovery::{Decision, RecoveryState, What};

/// Inamura et al. 2009, Fig. 10: one-way delays of 50 ms and 500 ms, without a queue.
const RTT: Duration = Duration::from_millis(1100);

/// Returns a sender after the retransmission timeout of a window of 22 segments.
fn timed_out(recipe: &str) -> BareSender {
    let mut sender = BareSender::new(recipe).under_way(22.0, 64.0, RTT);
    assert_eq!(sender.timeout(), "1r");
    sender
}

fn reasons(trace: &[Decision]) -> Vec<&'static str> {
    trace.iter().filter(|d| d.by == "fast-timeout").map(|d| d.why).collect()
}

#[test]
fn steps_1_to_3_match_ordinary_timeout() {
    let mut sender = timed_out("newreno+fast-timeout");
    assert_eq!(
        (sender.cc().cwnd, sender.cc().ssthresh, sender.cc().state()),
        (1.0, 11.0, RecoveryState::Loss)
    );
    assert_eq!(sender.rtt.backoff(), 1);
    assert_eq!(sender.dupacks(2), "");
    assert_eq!((sender.cc().cwnd, sender.cc().state()), (1.0, RecoveryState::Loss));
}

#[test]
fn third_duplicate_ack_runs_steps_4_to_6() {
    let mut sender = timed_out("newreno+fast-timeout");
    let (srtt, rttvar) = (sender.rtt.srtt().unwrap(), sender.rtt.rttvar());
    sender.trace();
    assert_eq!(sender.wait(RTT).dupacks(3), "", "no fast retransmission");
    // Step 4: SND.NXT = SND.MAX, so nothing is retransmitted.
    assert!(!sender.flight.has_rewound());
    assert!(sender.trace().iter().any(|d| d.what == What::Resume { at: 22_000 }));
    // Step 5: SRTT is doubled. The timer restarts with the new SRTT, without the backoff.
    assert_eq!(sender.rtt.srtt(), Some(srtt * 2));
    assert_eq!(sender.rtt.rto().get(), srtt * 2 + rttvar * 4);
    assert_eq!(sender.rto, Some(sender.now + sender.rtt.rto().get()));
    // Step 6: ssthresh = max(22/2, 2), cwnd = ssthresh + 3.
    let cc = sender.cc();
    assert_eq!(
        (cc.ssthresh, cc.cwnd, cc.inflation(), cc.state()),
        (11.0, 11.0, 3.0, RecoveryState::Recovery)
    );
}

#[test]
fn further_duplicate_acks_release_new_segments() {
    let mut sender = timed_out("newreno+fast-timeout");
    // 11 + 11 = 22 outstanding: each further duplicate ACK makes room for one segment.
    assert_eq!(sender.wait(RTT).dupacks(11), "");
    assert_eq!(sender.dupacks(10), "23 24 25 26 27 28 29 30 31 32");
    // The retransmission has arrived. Half of the old window is left, and the ten segments in flight fit into
    // it.
    assert_eq!(sender.wait(RTT).ack(22), "33");
    assert_eq!(
        (sender.cc().cwnd, sender.cc().ssthresh, sender.cc().state()),
        (11.0, 11.0, RecoveryState::Open)
    );
    assert_eq!(sender.counters().window_reductions, 1);
}

#[test]
fn early_acceptable_ack_makes_timeout_ordinary() {
    let run = |recipe| {
        let mut sender = timed_out(recipe);
        sender.trace();
        let mut sent = sender.wait(RTT).dupacks(2);
        sent += &sender.ack(1);
        // Step DONE: later duplicate ACKs have no effect.
        sent += &sender.dupacks(5);
        sent += &sender.wait(RTT).ack(22);
        (sent, sender.cc().cwnd, sender.cc().ssthresh, sender.rtt.rto().get(), sender.trace().len())
    };
    assert_eq!(run("newreno+fast-timeout"), run("newreno"));
}

#[test]
fn lost_retransmission_causes_second_ordinary_timeout() {
    let mut sender = timed_out("newreno+fast-timeout");
    sender.wait(RTT).dupacks(21);
    // The retransmission is lost. The duplicate ACKs of ten new segments change nothing.
    assert!(!sender.wait(RTT).dupacks(10).contains('r'));
    sender.trace();
    assert_eq!(sender.timeout(), "1r");
    // RFC 5681 §3.1: the same segment timed out again, so ssthresh keeps its value.
    assert_eq!(sender.window(), (1.0, 11.0));
    assert_eq!(sender.wait(RTT).dupacks(10), "");
    assert_eq!(sender.cc().state(), RecoveryState::Loss);
    let reasons = reasons(&sender.trace());
    assert!(!reasons.contains(&"fast timeout: DupThresh duplicate ACKs after the timeout"), "{reasons:?}");
    // Once new data is acknowledged, the next timeout counts as a first one again.
    sender.ack(42);
    assert_eq!(sender.cc().state(), RecoveryState::Open);
    sender.timeout();
    sender.dupacks(3);
    assert_eq!(sender.cc().state(), RecoveryState::Recovery);
}

#[test]
fn scoreboard_uses_pipe_instead_of_inflation() {
    let mut sender = timed_out("sack+fast-timeout");
    sender.wait(RTT).sack(&[2..3]);
    sender.sack(&[2..4]);
    assert_eq!(sender.sack(&[2..5]), "");
    assert_eq!(
        (sender.cc().cwnd, sender.cc().inflation(), sender.cc().state()),
        (11.0, 0.0, RecoveryState::Recovery)
    );
    // pipe = 22 - 11 SACKed = 11. The twelfth SACKed segment makes room for one.
    assert_eq!(sender.sack(&[2..13]), "");
    assert_eq!(sender.sack(&[2..14]), "23");
}

#[test]
fn tahoe_enters_fast_recovery() {
    let mut sender = timed_out("tahoe+fast-timeout");
    assert_eq!(sender.wait(RTT).dupacks(12), "23");
    sender.ack(22);
    assert_eq!((sender.cc().state(), sender.cc().ssthresh), (RecoveryState::Open, 11.0));
}

#[test]
fn stray_duplicate_acks_keep_cwnd_valid() {
    let mut sender = BareSender::new("newreno+fast-timeout").under_way(1.0, 64.0, RTT);
    assert_eq!(sender.timeout(), "1r");
    sender.dupacks(3);
    assert_eq!(sender.window(), (2.0, 2.0));
    for _ in 0..20 {
        sender.timeout();
        sender.dupacks(7);
        assert!(sender.cc().cwnd >= 1.0 && sender.cc().cwnd.is_finite());
    }
}
