//! P2 §7: the first segment of a window is lost, the rest of the window is held up until the timer has fired, and what
//! the timer sends again is lost too. What does a sender make of the duplicate ACKs that then come?
//!
//! The path of Fig. 10. The paper shows no more of the losses than what the sender sees of them. Choice: a handover
//! holds up what follows the lost segment until the timeout is over.

use airtcp::profile::Profile;
use airtcp_reproduce::p2::handover::{FIRST, SND_HIGH, path};

use super::sequence::{Event, Row, Run, Sequence};

/// It begins when segment 21 is through, and ends after the timeout.
const HANDOVER: Option<&str> = Some("3.3s");

fn run(profile: &Profile, recipe: &str, scenario: String) -> Sequence {
    let recipe = if profile.name == "ns2" { recipe.to_owned() } else { format!("{recipe}+iw=1") };
    Run { profile: profile.clone(), recipe: &recipe, scenario, mss: 1460, segments: 200, rwnd: 128 }.go()
}

fn twice_lost(profile: &Profile, recipe: &str) -> Sequence {
    run(profile, recipe, path(&["segment 22", "segment 22 retransmission 1"], HANDOVER))
}

fn profiles() -> [Profile; 2] {
    [Profile::ns2(), Profile::default()]
}

/// The n-th duplicate ACK after the first timeout.
fn dupack(s: &Sequence, n: u64) -> Row {
    let nth = |row: &&Row| {
        row.at > s.timeouts()[0] && matches!(row.event, Event::Dupack { n: nth, .. } if nth == n)
    };
    *s.rows.iter().find(nth).unwrap_or_else(|| panic!("no duplicate ACK {n}\n{s}"))
}

/// What all senders meet alike: 22 segments outstanding, a timeout of the first one, and what it sends again is lost.
fn begins_alike(s: &Sequence) {
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
fn figure_12_without_anything_a_second_timeout_and_a_window_of_two() {
    let s = twice_lost(&Profile::ns2(), "newreno");
    begins_alike(&s);
    // 21 duplicate ACKs, and nothing is sent for them.
    let second = s.timeouts()[1];
    assert!(dupack(&s, 21).at < second, "\n{s}");
    assert_eq!(s.sent(SND_HIGH + 1, 1).map(|sent| sent > second), Some(true), "\n{s}");
    assert_eq!(s.sent(FIRST, 3), Some(second), "\n{s}");
    // Exponential backoff: twice the first wait, which began with the last new ACK.
    let wait = s.timeouts()[0] - s.acked(FIRST - 1).unwrap().at;
    assert!((second - s.timeouts()[0] - 2.0 * wait).abs() < 1e-6, "\n{s}");
    // "ssthresh ← max(cwnd/2, 2) = 2", so congestion avoidance from the first acceptable ACK on.
    assert_eq!(s.at(second).map(|row| (row.cwnd, row.ssthresh)), Some((1.0, 2.0)), "\n{s}");
    assert_eq!(s.acked(FIRST).map(|row| row.cwnd), Some(2.0), "\n{s}");
}

#[test]
fn figure_12_fast_timeout_alone_sends_new_segments_and_waits_for_the_second_timeout() {
    for (profile, ssthresh) in [(Profile::ns2(), 5.0), (Profile::default(), 11.0)] {
        let s = twice_lost(&profile, "newreno+fast-timeout");
        begins_alike(&s);
        // Nothing before the third duplicate ACK, and then half of the window and fast recovery.
        assert_eq!((dupack(&s, 2).cwnd, dupack(&s, 3).cwnd), (1.0, 11.0), "\n{s}");
        // 11 + 12 > 22 outstanding.
        assert_eq!(s.sent(SND_HIGH + 1, 1), Some(dupack(&s, 12).at), "\n{s}");
        // The 25th finds it as it was.
        let second = s.timeouts()[1];
        assert!(dupack(&s, 25).at < second, "\n{s}");
        assert_eq!(s.sent(FIRST, 3), Some(second), "\n{s}");
        // Step 5: the timer was restarted by the third duplicate ACK.
        assert!(second - dupack(&s, 3).at > 2.0 * 1.1, "\n{s}");
        // ns-2 halves again, RFC 5681 §3.1 holds ssthresh for the same segment.
        assert_eq!(s.at(second).map(|row| (row.cwnd, row.ssthresh)), Some((1.0, ssthresh)), "\n{s}");
        assert_eq!(s.counters.timeouts, 2, "\n{s}");
    }
}

#[test]
fn figure_13_the_25th_duplicate_ack() {
    for profile in profiles() {
        let s = twice_lost(&profile, "newreno+fast-timeout+loss-retransmission");
        begins_alike(&s);
        // FlightSize 22 + DupThresh.
        assert_eq!(s.sent(FIRST, 3), Some(dupack(&s, 25).at), "\n{s}");
        // And a new segment for this duplicate ACK as for each other.
        for (n, new) in (12..=30).zip(SND_HIGH + 1..) {
            assert_eq!(s.sent(new, 1), Some(dupack(&s, n).at), "duplicate ACK {n}\n{s}");
        }
        // "The sender holds one half of the previous cwnd."
        let over = s.acked(FIRST).unwrap();
        assert_eq!(over.ssthresh, 11.0, "\n{s}");
        assert!((11.0..12.0).contains(&over.cwnd), "\n{s}");
        assert_eq!(s.resent(), [FIRST, FIRST], "\n{s}");
        assert_eq!((s.counters.timeouts, s.counters.window_reductions), (1, 1), "\n{s}");
        // What all this is for.
        for recipe in ["newreno", "newreno+fast-timeout", "newreno+loss-retransmission"] {
            let other = twice_lost(&profile, recipe);
            let end = |s: &Sequence| s.acked(200).unwrap().at;
            assert_eq!(other.counters.timeouts, 2, "{recipe}\n{other}");
            assert!(end(&s) + 1.0 < end(&other), "{recipe}\n{s}\n{other}");
        }
    }
}

#[test]
fn figure_15_with_sack_the_right_edge_even_if_others_are_lost_as_well() {
    for profile in profiles() {
        for others in [&[][..], &["segment 30", "segment 37"]] {
            let drop = [&["segment 22", "segment 22 retransmission 1"], others].concat();
            let s = run(&profile, "sack+fast-timeout+loss-retransmission", path(&drop, HANDOVER));
            begins_alike(&s);
            // The first duplicate ACK with an edge above SND.HIGH: one new segment has arrived.
            let above = |row: &&Row| matches!(row.event, Event::Dupack { edge, .. } if edge > SND_HIGH);
            let first = s.rows.iter().find(above).unwrap();
            assert!(matches!(first.event, Event::Dupack { edge, .. } if edge == SND_HIGH + 1), "\n{s}");
            if others.is_empty() {
                assert!(matches!(first.event, Event::Dupack { n: 22, .. }), "\n{s}");
            }
            assert_eq!(s.sent(FIRST, 3), Some(first.at), "\n{s}");
            // The other holes are repaired once each.
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
fn nothing_lost_twice_and_loss_retransmission_is_quiet() {
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
fn a_timeout_that_an_acceptable_ack_follows_is_no_fast_timeout() {
    // Nothing is lost at all: the originals arrive late, and their ACKs are acceptable (Fig. 8 step 3).
    for profile in profiles() {
        let without = run(&profile, "newreno", path(&["segment 300"], HANDOVER));
        let with =
            run(&profile, "newreno+fast-timeout+loss-retransmission", path(&["segment 300"], HANDOVER));
        assert_eq!(with.counters.timeouts, 1, "{}\n{with}", profile.name);
        assert_eq!(with.rows, without.rows, "{}\n{with}", profile.name);
    }
}

#[test]
fn lin_and_kungs_own_place_is_fast_recovery() {
    // The same two losses without the handover: a fast retransmit is lost. RTT + 1 s, so that the timer can wait.
    let scenario = || path(&["segment 22", "segment 22 retransmission 1"], None);
    for profile in profiles() {
        for repair in ["reno", "newreno"] {
            let context = format!("{} {repair}", profile.name);
            let s = run(&profile, &format!("{repair}+loss-retransmission+min-rto=3000"), scenario());
            // 22 outstanding when recovery began.
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
