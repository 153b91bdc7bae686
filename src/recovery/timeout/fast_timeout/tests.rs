use airwire::time::Duration;

use crate::recovery::testing::BareSender;
use crate::recovery::{Decision, Phase, What};

/// P2 Fig. 10: 50 ms, 500 ms and back, without a queue.
const RTT: Duration = Duration::from_millis(1100);

/// After the retransmission timeout of a window of 22.
fn timed_out(recipe: &str) -> BareSender {
    let mut sender = BareSender::new(recipe).under_way(22.0, 64.0, RTT);
    assert_eq!(sender.timeout(), "1r");
    sender
}

fn whys(trace: &[Decision]) -> Vec<&'static str> {
    trace.iter().filter(|d| d.by == "fast-timeout").map(|d| d.why).collect()
}

#[test]
fn steps_1_to_3_are_those_of_any_timeout() {
    let mut sender = timed_out("newreno+fast-timeout");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh, sender.cc().phase()), (1.0, 11.0, Phase::Restarted));
    assert_eq!(sender.rtt.backoff(), 1);
    assert_eq!(sender.dupacks(2), "");
    assert_eq!((sender.cc().cwnd, sender.cc().phase()), (1.0, Phase::Restarted));
}

#[test]
fn steps_4_to_6_at_the_third_duplicate_ack() {
    let mut sender = timed_out("newreno+fast-timeout");
    let (srtt, rttvar) = (sender.rtt.srtt().unwrap(), sender.rtt.rttvar());
    sender.trace();
    assert_eq!(sender.wait(RTT).dupacks(3), "", "no fast retransmit");
    // Step 4: SND.NXT = SND.MAX.
    assert!(!sender.flight.has_rewound());
    assert!(sender.trace().iter().any(|d| d.what == What::Resume { at: 22_000 }));
    // Step 5: SRTT doubled, the timer from that, without the backoff, and restarted.
    assert_eq!(sender.rtt.srtt(), Some(srtt * 2));
    assert_eq!(sender.rtt.rto().get(), srtt * 2 + rttvar * 4);
    assert_eq!(sender.rto, Some(sender.now + sender.rtt.rto().get()));
    // Step 6: ssthresh = max(22/2, 2), cwnd = ssthresh + 3.
    let cc = sender.cc();
    assert_eq!((cc.ssthresh, cc.cwnd, cc.inflation(), cc.phase()), (11.0, 11.0, 3.0, Phase::Recovery));
}

#[test]
fn new_segments_leave_as_duplicate_acks_say_that_others_have_arrived() {
    let mut sender = timed_out("newreno+fast-timeout");
    // 11 + 11 = 22 outstanding: each further duplicate ACK makes room for one.
    assert_eq!(sender.wait(RTT).dupacks(11), "");
    assert_eq!(sender.dupacks(10), "23 24 25 26 27 28 29 30 31 32");
    // The copy has arrived: half of the old window is left, and the ten on their way fit into it.
    assert_eq!(sender.wait(RTT).ack(22), "33");
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh, sender.cc().phase()), (11.0, 11.0, Phase::Open));
    assert_eq!(sender.recovery.counters().window_reductions, 1);
}

#[test]
fn an_acceptable_ack_first_and_it_was_a_timeout_like_any_other() {
    let run = |recipe| {
        let mut sender = timed_out(recipe);
        sender.trace();
        let mut sent = sender.wait(RTT).dupacks(2);
        sent += &sender.ack(1);
        // Step DONE: later duplicate ACKs mean nothing to it.
        sent += &sender.dupacks(5);
        sent += &sender.wait(RTT).ack(22);
        (sent, sender.cc().cwnd, sender.cc().ssthresh, sender.rtt.rto().get(), sender.trace().len())
    };
    assert_eq!(run("newreno+fast-timeout"), run("newreno"));
}

#[test]
fn alone_it_waits_for_a_second_timeout_which_is_an_ordinary_one() {
    let mut sender = timed_out("newreno+fast-timeout");
    sender.wait(RTT).dupacks(21);
    // The copy is lost: the duplicate ACKs of ten new segments change nothing.
    assert!(!sender.wait(RTT).dupacks(10).contains('r'));
    sender.trace();
    assert_eq!(sender.timeout(), "1r");
    // RFC 5681 §3.1: the same segment, so ssthresh is held.
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (1.0, 11.0));
    assert_eq!(sender.wait(RTT).dupacks(10), "");
    assert_eq!(sender.cc().phase(), Phase::Restarted);
    let whys = whys(&sender.trace());
    assert!(!whys.contains(&"fast timeout: DupThresh duplicate ACKs after the timeout"), "{whys:?}");
    // It is a first timeout again once something new is acknowledged.
    sender.ack(42);
    assert_eq!(sender.cc().phase(), Phase::Open);
    sender.timeout();
    sender.dupacks(3);
    assert_eq!(sender.cc().phase(), Phase::Recovery);
}

#[test]
fn with_a_scoreboard_pipe_takes_the_place_of_the_inflation() {
    let mut sender = timed_out("sack+fast-timeout");
    sender.wait(RTT).sack(&[2..3]);
    sender.sack(&[2..4]);
    assert_eq!(sender.sack(&[2..5]), "");
    assert_eq!(
        (sender.cc().cwnd, sender.cc().inflation(), sender.cc().phase()),
        (11.0, 0.0, Phase::Recovery)
    );
    // pipe = 22 - 11 SACKed = 11, and with the twelfth there is room for one.
    assert_eq!(sender.sack(&[2..13]), "");
    assert_eq!(sender.sack(&[2..14]), "23");
}

#[test]
fn a_repair_that_knows_no_fast_recovery_gets_one_here() {
    let mut sender = timed_out("tahoe+fast-timeout");
    assert_eq!(sender.wait(RTT).dupacks(12), "23");
    sender.ack(22);
    assert_eq!((sender.cc().phase(), sender.cc().ssthresh), (Phase::Open, 11.0));
}

#[test]
fn a_window_of_one_and_duplicate_acks_from_nowhere() {
    let mut sender = BareSender::new("newreno+fast-timeout").under_way(1.0, 64.0, RTT);
    assert_eq!(sender.timeout(), "1r");
    sender.dupacks(3);
    assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (2.0, 2.0));
    for _ in 0..20 {
        sender.timeout();
        sender.dupacks(7);
        assert!(sender.cc().cwnd >= 1.0 && sender.cc().cwnd.is_finite());
    }
}
