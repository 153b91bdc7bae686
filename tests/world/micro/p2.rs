//! P2 §7: the reaction of a sender to duplicate ACKs after a timeout. The first segment of a window is lost,
//! all other segments are delayed until the timer has expired, and the retransmission is also lost.
//!
//! The path is taken from Fig. 10. The paper shows the losses only from the sender's point of view. Our
//! choice: a handover delays the segments after the lost one until the timeout is over.

use airtcp::profile::Profile;
use airtcp_reproduce::inamura2009::handover::{FIRST, SND_HIGH, path};

use super::sequence::{Event, Row, Run, Sequence};

/// Duration of the handover, which begins after segment 21 and ends after the timeout.
const HANDOVER: Option<&str> = Some("3.3s");

fn run(profile: &Profile, recipe: &str, scenario: String) -> Sequence {
    let recipe = if profile.name == "ns2" { recipe.to_owned() } else { format!("{recipe}+iw=1") };
    Run { profile: profile.clone(), recipe: &recipe, scenario, mss: 1460, segments: 200, rwnd: 128 }
        .sequence()
}

fn run_losing_twice(profile: &Profile, recipe: &str) -> Sequence {
    run(profile, recipe, path(&["segment 22", "segment 22 retransmission 1"], HANDOVER))
}

fn profiles() -> [Profile; 2] {
    [Profile::ns2(), Profile::default()]
}

/// Returns the n-th duplicate ACK after the first timeout.
fn dupack(s: &Sequence, n: u64) -> Row {
    let nth = |row: &&Row| {
        row.at > s.timeouts()[0] && matches!(row.event, Event::Dupack { n: nth, .. } if nth == n)
    };
    *s.rows.iter().find(nth).unwrap_or_else(|| panic!("no duplicate ACK {n}\n{s}"))
}

/// Checks the common beginning: 22 segments are outstanding, the first one times out, and its retransmission
/// is lost.
fn check_common_beginning(s: &Sequence) {
    let timeout = s.timeouts()[0];
    let before = s.rows.iter().rfind(|row| row.at < timeout).unwrap();
    assert_eq!(before.cwnd, 22.0, "\n{s}");
    let left = |segment, at| s.sent(segment, 1).is_some_and(|sent| sent < at);
    assert!(left(SND_HIGH, timeout) && !left(SND_HIGH + 1, timeout), "\n{s}");
    assert_eq!(s.sent(FIRST, 2), Some(timeout), "\n{s}");
    assert!(s.row(Event::Dropped { segment: FIRST, copy: 2 }).is_some(), "\n{s}");
    assert_eq!(s.at(timeout).map(|row| (row.cwnd, row.ssthresh)), Some((1.0, 11.0)), "\n{s}");
}

#[test]
fn figure_12_plain_newreno_needs_second_timeout() {
    let s = run_losing_twice(&Profile::ns2(), "newreno");
    check_common_beginning(&s);
    // 21 duplicate ACKs arrive, and nothing is sent in response.
    let second = s.timeouts()[1];
    assert!(dupack(&s, 21).at < second, "\n{s}");
    assert_eq!(s.sent(SND_HIGH + 1, 1).map(|sent| sent > second), Some(true), "\n{s}");
    assert_eq!(s.sent(FIRST, 3), Some(second), "\n{s}");
    // Exponential backoff: twice the first RTO, whose timer started at the last new ACK.
    let wait = s.timeouts()[0] - s.acked(FIRST - 1).unwrap().at;
    assert!((second - s.timeouts()[0] - 2.0 * wait).abs() < 1e-6, "\n{s}");
    // "ssthresh ← max(cwnd/2, 2) = 2", so congestion avoidance begins with the first acceptable ACK.
    assert_eq!(s.at(second).map(|row| (row.cwnd, row.ssthresh)), Some((1.0, 2.0)), "\n{s}");
    assert_eq!(s.acked(FIRST).map(|row| row.cwnd), Some(2.0), "\n{s}");
}

#[test]
fn figure_12_fast_timeout_alone_needs_second_timeout() {
    for (profile, ssthresh) in [(Profile::ns2(), 5.0), (Profile::default(), 11.0)] {
        let s = run_losing_twice(&profile, "newreno+fast-timeout");
        check_common_beginning(&s);
        // Until the third duplicate ACK nothing happens. Then the window is halved and fast recovery begins.
        assert_eq!((dupack(&s, 2).cwnd, dupack(&s, 3).cwnd), (1.0, 11.0), "\n{s}");
        // 11 + 12 > 22 segments are outstanding.
        assert_eq!(s.sent(SND_HIGH + 1, 1), Some(dupack(&s, 12).at), "\n{s}");
        // The 25th duplicate ACK changes nothing.
        let second = s.timeouts()[1];
        assert!(dupack(&s, 25).at < second, "\n{s}");
        assert_eq!(s.sent(FIRST, 3), Some(second), "\n{s}");
        // Step 5: the third duplicate ACK restarted the timer.
        assert!(second - dupack(&s, 3).at > 2.0 * 1.1, "\n{s}");
        // ns-2 halves again. RFC 5681 §3.1 keeps ssthresh for the same segment.
        assert_eq!(s.at(second).map(|row| (row.cwnd, row.ssthresh)), Some((1.0, ssthresh)), "\n{s}");
        assert_eq!(s.counters.timeouts, 2, "\n{s}");
    }
}

#[test]
fn figure_13_25th_duplicate_ack_triggers_retransmission() {
    for profile in profiles() {
        let s = run_losing_twice(&profile, "newreno+fast-timeout+loss-retransmission");
        check_common_beginning(&s);
        // FlightSize (22) + DupThresh.
        assert_eq!(s.sent(FIRST, 3), Some(dupack(&s, 25).at), "\n{s}");
        // This duplicate ACK, like all others, also allows a new segment.
        for (n, new) in (12..=30).zip(SND_HIGH + 1..) {
            assert_eq!(s.sent(new, 1), Some(dupack(&s, n).at), "duplicate ACK {n}\n{s}");
        }
        // "The sender holds one half of the previous cwnd."
        let over = s.acked(FIRST).unwrap();
        assert_eq!(over.ssthresh, 11.0, "\n{s}");
        assert!((11.0..12.0).contains(&over.cwnd), "\n{s}");
        assert_eq!(s.resent(), [FIRST, FIRST], "\n{s}");
        assert_eq!((s.counters.timeouts, s.counters.window_reductions), (1, 1), "\n{s}");
        // Compare with the other recipes, which need a second timeout.
        for recipe in ["newreno", "newreno+fast-timeout", "newreno+loss-retransmission"] {
            let other = run_losing_twice(&profile, recipe);
            let end = |s: &Sequence| s.acked(200).unwrap().at;
            assert_eq!(other.counters.timeouts, 2, "{recipe}\n{other}");
            assert!(end(&s) + 1.0 < end(&other), "{recipe}\n{s}\n{other}");
        }
    }
}

#[test]
fn figure_15_sack_edge_triggers_retransmission() {
    for profile in profiles() {
        for others in [&[][..], &["segment 30", "segment 37"]] {
            let drop = [&["segment 22", "segment 22 retransmission 1"], others].concat();
            let s = run(&profile, "sack+fast-timeout+loss-retransmission", path(&drop, HANDOVER));
            check_common_beginning(&s);
            // The first duplicate ACK with a SACK edge above SND.HIGH shows that a new segment has arrived.
            let above = |row: &&Row| matches!(row.event, Event::Dupack { edge, .. } if edge > SND_HIGH);
            let first = s.rows.iter().find(above).unwrap();
            assert!(matches!(first.event, Event::Dupack { edge, .. } if edge == SND_HIGH + 1), "\n{s}");
            if others.is_empty() {
                assert!(matches!(first.event, Event::Dupack { n: 22, .. }), "\n{s}");
            }
            assert_eq!(s.sent(FIRST, 3), Some(first.at), "\n{s}");
            // Each of the other holes is retransmitted once.
            let mut resent = s.resent();
            resent.sort_unstable();
            let expected = if others.is_empty() { vec![22, 22] } else { vec![22, 22, 30, 37] };
            assert_eq!(resent, expected, "\n{s}");
            assert_eq!(s.counters.timeouts, 1, "\n{s}");
            assert_eq!(s.acked(SND_HIGH).map(|row| row.ssthresh), Some(11.0), "\n{s}");
        }
    }
}

#[test]
fn loss_retransmission_stays_passive_without_second_loss() {
    for profile in profiles() {
        for recipe in ["newreno+fast-timeout", "sack+fast-timeout"] {
            let scenario = path(&["segment 22"], HANDOVER);
            let without = run(&profile, recipe, scenario.clone());
            let with = run(&profile, &format!("{recipe}+loss-retransmission"), scenario);
            assert_eq!(with.rows, without.rows, "{} {recipe}\n{with}", profile.name);
            assert_eq!(with.resent(), [FIRST], "{} {recipe}\n{with}", profile.name);
        }
    }
}

#[test]
fn acceptable_ack_after_timeout_prevents_fast_timeout() {
    // Nothing is lost: the originals arrive late, and their ACKs are acceptable (Fig. 8, step 3).
    for profile in profiles() {
        let without = run(&profile, "newreno", path(&["segment 300"], HANDOVER));
        let with =
            run(&profile, "newreno+fast-timeout+loss-retransmission", path(&["segment 300"], HANDOVER));
        assert_eq!(with.counters.timeouts, 1, "{}\n{with}", profile.name);
        assert_eq!(with.rows, without.rows, "{}\n{with}", profile.name);
    }
}

#[test]
fn loss_retransmission_works_in_fast_recovery() {
    // The same two losses without the handover: a fast retransmission is lost. The RTO is RTT + 1 s, so that
    // the timer does not expire first.
    let scenario = || path(&["segment 22", "segment 22 retransmission 1"], None);
    for profile in profiles() {
        for repair in ["reno", "newreno"] {
            let context = format!("{} {repair}", profile.name);
            let s = run(&profile, &format!("{repair}+loss-retransmission+min-rto=3000"), scenario());
            // 22 segments were outstanding when recovery began.
            let nth = s.rows.iter().find(|row| row.event == Event::Dupack { n: 25, edge: 0 }).unwrap();
            assert_eq!(s.sent(FIRST, 3), Some(nth.at), "{context}\n{s}");
            assert_eq!((s.counters.timeouts, s.counters.window_reductions), (0, 1), "{context}\n{s}");
            assert_eq!(s.acked(FIRST).map(|row| row.ssthresh), Some(11.0), "{context}\n{s}");
            let without = run(&profile, &format!("{repair}+min-rto=3000"), scenario());
            assert_eq!(without.timeouts().first().copied(), without.sent(FIRST, 3), "{context}\n{without}");
        }
        let s = run(&profile, "sack+loss-retransmission+min-rto=3000", scenario());
        let above = |row: &&Row| matches!(row.event, Event::Dupack { edge, .. } if edge > SND_HIGH);
        assert_eq!(s.sent(FIRST, 3), s.rows.iter().find(above).map(|row| row.at), "{}\n{s}", profile.name);
        assert_eq!((s.counters.timeouts, s.counters.window_reductions), (0, 1), "{}\n{s}", profile.name);
    }
}
