use airwire::marks::{DB, OB};
use airwire::time::Duration;

use super::*;
use crate::profile::Profile;
use crate::profile::knobs::Knobs;
use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Decision, What};

const RTT: Duration = Duration::from_millis(100);
/// The stations' announcement on the peer's SYN (docs/reference/header-extensions.md).
const FIXED_TO_MOBILE: u16 = DB;
const MOBILE_TO_FIXED: u16 = OB;
const MOBILE_TO_MOBILE: u16 = OB | DB;

/// Ten segments are on their way, in congestion avoidance.
fn sender(recipe: &str, announced: u16) -> BareSender {
    let peer_flags = Flags::SYN.with(Flags::ACK).with(Flags(announced));
    let handshake = Handshake { timestamps: true, peer_flags, ..Handshake::default() };
    let mut sender = BareSender::with(recipe, Profile::default(), &handshake).under_way(10.0, 8.0, RTT);
    sender.rwnd = 100;
    sender.wait(RTT);
    sender
}

/// `n` duplicate ACKs with these marks.
fn dupacks(sender: &mut BareSender, n: u32, marks: u16) -> String {
    let una = sender.flight.una() / SMSS;
    let ack = Ack { duplicate: true, flags: Flags::ACK.with(Flags(marks)), ..Ack::default() };
    let sent: Vec<_> =
        (0..n).map(|_| sender.receive(ack, una, &[])).filter(|sent| !sent.is_empty()).collect();
    sent.join(" ")
}

fn ack(sender: &mut BareSender, segment: u64, marks: u16) -> String {
    sender.receive(Ack { flags: Flags::ACK.with(Flags(marks)), ..Ack::default() }, segment, &[])
}

fn sack(sender: &mut BareSender, block: std::ops::Range<u64>, marks: u16) -> String {
    let una = sender.flight.una() / SMSS;
    sender.receive(Ack { flags: Flags::ACK.with(Flags(marks)), ..Ack::default() }, una, &[block])
}

fn window(sender: &BareSender) -> (f64, f64) {
    (sender.cc().cwnd, sender.cc().ssthresh)
}

fn causes(sender: &mut BareSender) -> Vec<Cause> {
    let cause = |decision: Decision| match decision.what {
        What::Cause { cause, .. } => Some(cause),
        _ => None,
    };
    sender.trace().into_iter().filter_map(cause).collect()
}

#[test]
fn the_three_tables_of_the_paper() {
    use Cause::{Congestion, Radio};
    let tables: [(u16, &[(u16, Cause)]); 3] = [
        // §III D.2; Db is not in use.
        (FIXED_TO_MOBILE, &[(0, Congestion), (OB, Radio)]),
        // §III D.3.
        (MOBILE_TO_FIXED, &[(0, Radio), (OB, Congestion)]),
        // §III D.4, cases 1 to 3, and the combination that it does not mention.
        (MOBILE_TO_MOBILE, &[(0, Radio), (OB, Congestion), (OB | DB, Radio), (DB, Congestion)]),
    ];
    for (announced, table) in tables {
        for &(marks, cause) in table {
            let mut sender = sender("etcp", announced);
            let sent = dupacks(&mut sender, 3, marks);
            assert_eq!(causes(&mut sender), [cause], "announced {announced:#x}, marked {marks:#x}");
            match cause {
                Congestion => {
                    assert_eq!((sent.as_str(), window(&sender)), ("1r", (5.0, 5.0)));
                    assert_eq!(sender.recovery.counters().window_reductions, 1);
                }
                Radio => {
                    // The three duplicate ACKs say that three have left: new segments replace them at once.
                    assert_eq!((sent.as_str(), window(&sender)), ("1r 11 12 13", (10.0, 8.0)));
                    assert_eq!(sender.recovery.counters().window_reductions, 0);
                    assert_eq!(sender.recovery.counters().put_down_to_radio, 1);
                }
            }
        }
    }
}

#[test]
fn the_window_is_kept_in_use_and_there_is_no_burst_at_the_end() {
    for recipe in ["tahoe+transit-marks", "etcp", "newreno+transit-marks"] {
        let mut sender = sender(recipe, FIXED_TO_MOBILE);
        assert_eq!(dupacks(&mut sender, 3, OB), "1r 11 12 13", "{recipe}");
        // Segments 5 to 10 have arrived, too.
        assert_eq!(dupacks(&mut sender, 6, OB), "14 15 16 17 18 19", "{recipe}");
        assert_eq!(ack(sender.wait(RTT), 10, 0), "20", "{recipe}");
        assert_eq!((window(&sender), sender.cc().phase()), ((10.0, 8.0), Phase::Open), "{recipe}");
    }
}

#[test]
fn with_sack_pipe_stays_at_the_window() {
    let mut sender = sender("sack+transit-marks", FIXED_TO_MOBILE);
    assert_eq!(sack(&mut sender, 2..3, OB), "");
    assert_eq!(sack(&mut sender, 2..4, OB), "");
    // 2, 3 and 4 have left, 1 is lost.
    assert_eq!(sack(&mut sender, 2..5, OB), "1r 11 12 13");
    assert_eq!(sack(&mut sender, 2..11, OB), "14 15 16 17 18 19");
    assert_eq!(ack(sender.wait(RTT), 10, 0), "20");
    assert_eq!(window(&sender), (10.0, 8.0));
}

/// Segments 1 and 4 of ten are lost, 1 on the radio.
fn first_of_two_holes(recipe: &str) -> BareSender {
    let mut sender = sender(recipe, FIXED_TO_MOBILE);
    if recipe.starts_with("sack") {
        sack(&mut sender, 2..4, OB);
        sack(&mut sender, 5..11, OB);
    } else {
        dupacks(&mut sender, 8, OB);
    }
    assert_eq!(window(&sender), (10.0, 8.0), "{recipe}");
    sender.wait(RTT);
    sender
}

const REPAIRS: [&str; 4] = ["tahoe+transit-marks", "etcp", "newreno+transit-marks", "sack+transit-marks"];

#[test]
fn two_holes_of_the_radio_cost_nothing() {
    for recipe in REPAIRS {
        let mut sender = first_of_two_holes(recipe);
        // 11 to 18 arrive behind the second hole. A sender that has left recovery needs three of their duplicates
        // again.
        let mut sent = vec![ack(&mut sender, 3, OB)];
        sent.push(dupacks(&mut sender, 8, OB));
        let resent = |sent: &[String]| sent.join(" ").split(' ').any(|segment| segment == "4r");
        assert!(resent(&sent) || recipe.starts_with("sack"), "{recipe}: {sent:?}");
        ack(sender.wait(RTT), 18, 0);
        let (cwnd, ssthresh) = window(&sender);
        assert!((10.0..12.0).contains(&cwnd) && ssthresh == 8.0, "{recipe}: {cwnd} {ssthresh}");
        assert_eq!(
            (sender.recovery.counters().window_reductions, sender.cc().phase()),
            (0, Phase::Open),
            "{recipe}"
        );
    }
}

#[test]
fn a_second_hole_of_the_fixed_network_halves_the_window_that_was_kept() {
    for recipe in REPAIRS {
        let mut sender = first_of_two_holes(recipe);
        ack(&mut sender, 3, 0);
        dupacks(&mut sender, 3, 0);
        // Half of ten, not of the more than ten that are outstanding.
        assert_eq!(sender.cc().ssthresh, 5.0, "{recipe}");
        assert!(sender.cc().cwnd <= 5.5, "{recipe}: {}", sender.cc().cwnd);
        ack(sender.wait(RTT), 18, 0);
        assert!(sender.cc().cwnd <= 6.0, "{recipe}: {}", sender.cc().cwnd);
        assert_eq!(sender.recovery.counters().window_reductions, 1, "{recipe}");
    }
}

#[test]
fn sack_sends_a_hole_again_once_a_mark_about_it_has_come() {
    // From mobile to fixed the station has seen neither 1 nor 4. A copy of 4 would pass it, and the mark be about that.
    let mut sender = sender("sack+transit-marks", MOBILE_TO_FIXED);
    sack(&mut sender, 2..4, 0);
    assert_eq!(sack(&mut sender, 5..11, 0), "1r 11 12 13 14 15 16 17 18", "the window is in use meanwhile");
    assert!(ack(sender.wait(RTT), 3, 0).starts_with("4r"));
    assert_eq!(causes(&mut sender), [Cause::Radio, Cause::Radio]);
    assert_eq!(window(&sender), (10.0, 8.0));
}

#[test]
fn nothing_waits_for_a_mark_once_one_hole_is_congestion() {
    let mut sender = sender("sack+transit-marks", FIXED_TO_MOBILE);
    sack(&mut sender, 2..4, 0);
    // Segments 1, 4 and 6 are lost.
    let sent =
        [sack(&mut sender, 5..6, 0), sack(&mut sender, 7..9, 0), sack(&mut sender, 9..11, 0)].join(" ");
    assert!(sent.contains("1r") && sent.contains("4r") && sent.contains("6r"), "{sent}");
    assert_eq!((causes(&mut sender), window(&sender).1), (vec![Cause::Congestion], 5.0));
}

#[test]
fn every_hole_behind_one_of_the_radio_is_asked_about_and_the_window_reduced_once() {
    // Segments 1, 4, 6 and 8 are lost: 1 and 4 on the radio, the others in the fixed network.
    let mut sender = sender("sack+transit-marks", FIXED_TO_MOBILE);
    for block in [9..11, 7..8, 5..6, 2..4] {
        sack(&mut sender, block, OB);
    }
    ack(sender.wait(RTT), 3, OB);
    assert_eq!(window(&sender), (10.0, 8.0));
    let sent = ack(sender.wait(RTT), 5, 0);
    assert!(sent.contains("6r") || sent.is_empty(), "{sent}");
    assert_eq!(window(&sender), (5.0, 5.0), "half of what it was before, not of what is outstanding");
    ack(sender.wait(RTT), 7, 0);
    assert_eq!(causes(&mut sender), [Cause::Radio, Cause::Radio, Cause::Congestion]);
    assert_eq!(sender.recovery.counters().window_reductions, 1);
}

#[test]
fn what_left_before_a_late_reduction_is_of_the_window_that_is_reduced_for() {
    for recipe in ["newreno+transit-marks", "sack+transit-marks"] {
        let mut sender = first_of_two_holes(recipe);
        ack(&mut sender, 3, 0);
        dupacks(&mut sender, 3, 0);
        assert_eq!(sender.recovery.counters().window_reductions, 1, "{recipe}");
        // 11 left at the full window before the reduction, and is lost as well.
        let last = sender.last();
        assert!(last > 14, "{recipe}: {last}");
        sender.wait(RTT);
        if recipe.starts_with("sack") {
            sender.receive(Ack::default(), 10, &[12..last + 1]);
        } else {
            ack(&mut sender, 10, 0);
            dupacks(&mut sender, 3, 0);
        }
        assert_eq!(sender.recovery.counters().window_reductions, 1, "{recipe}");
        // What leaves from here on is of the next window.
        ack(sender.wait(RTT), last, 0);
        assert_eq!(sender.cc().phase(), Phase::Open, "{recipe}");
    }
}

#[test]
fn congestion_first_and_the_radio_second_is_one_reduction() {
    for recipe in ["newreno+transit-marks", "sack+transit-marks"] {
        let mut sender = sender(recipe, FIXED_TO_MOBILE);
        sack(&mut sender, 2..4, 0);
        sack(&mut sender, 5..11, 0);
        dupacks(&mut sender, 3, 0);
        ack(sender.wait(RTT), 3, OB);
        assert_eq!(window(&sender).1, 5.0, "{recipe}");
        assert_eq!(causes(&mut sender), [Cause::Congestion], "{recipe}: once is enough");
        assert_eq!(sender.recovery.counters().window_reductions, 1, "{recipe}");
    }
}

#[test]
fn the_radio_after_recovery_is_an_event_of_its_own() {
    let mut sender = sender("newreno+transit-marks", FIXED_TO_MOBILE);
    dupacks(&mut sender, 9, OB);
    ack(sender.wait(RTT), 11, 0);
    dupacks(sender.wait(RTT), 9, OB);
    assert_eq!(causes(&mut sender), [Cause::Radio, Cause::Radio]);
    assert_eq!(sender.recovery.counters().put_down_to_radio, 2);
}

#[test]
fn in_slow_start_the_radio_does_not_end_it() {
    let mut sender = sender("etcp", FIXED_TO_MOBILE).under_way(20.0, f64::INFINITY, RTT);
    dupacks(&mut sender, 9, OB);
    assert_eq!(window(&sender), (20.0, f64::INFINITY));
}

#[test]
fn a_timeout_is_congestion_whatever_was_marked() {
    let mut sender = sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, OB);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(window(&sender), (1.0, 5.0));
    // The same for one that follows a loss put down to the radio.
    let mut sender = self::sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 3, OB);
    sender.timeout();
    assert_eq!(sender.cc().cwnd, 1.0);
    ack(sender.wait(RTT), 13, 0);
    assert!(sender.cc().cwnd <= 2.0, "the window that was kept does not come back: {}", sender.cc().cwnd);
}

/// Linux reduces once for a window (tcp_enter_loss()). What was put down to the radio has reduced nothing.
#[test]
fn a_timeout_after_the_radio_pays_for_its_window_in_profile_linux_too() {
    let peer_flags = Flags::SYN.with(Flags::ACK).with(Flags(FIXED_TO_MOBILE));
    let handshake = Handshake { timestamps: true, peer_flags, ..Handshake::default() };
    for (marks, ssthresh) in [(OB, 7.0), (0, 7.0)] {
        let mut sender = BareSender::with("sack+transit-marks", Profile::linux(), &handshake);
        sender = sender.under_way(10.0, 8.0, RTT);
        sender.wait(RTT);
        sack(&mut sender, 2..6, marks);
        sender.wait(RTT * 10).timeout();
        assert_eq!(window(&sender), (1.0, ssthresh), "marked {marks:#x}");
        assert_eq!(sender.recovery.counters().window_reductions, 1, "marked {marks:#x}");
    }
}

#[test]
fn a_marked_timeout_keeps_the_window_and_starts_the_ack_clock_slowly() {
    for recipe in ["etcp+marked-timeout", "newreno+marked-timeout", "sack+marked-timeout"] {
        let mut sender = sender(recipe, FIXED_TO_MOBILE);
        dupacks(&mut sender, 2, OB);
        assert_eq!(sender.timeout(), "1r", "{recipe}");
        assert_eq!(window(&sender), (10.0, 8.0), "{recipe}");
        assert_eq!(sender.recovery.counters().window_reductions, 0, "{recipe}");
        assert_eq!(ack(sender.wait(RTT), 1, 0), "2r 3r", "{recipe}: two for each ACK");
        ack(sender.wait(RTT), 10, 0);
        assert!(window(&sender).0 >= 10.0 && sender.cc().phase() == Phase::Open, "{recipe}");
    }
}

#[test]
fn a_timeout_that_no_mark_explains_is_congestion() {
    let mut sender = sender("etcp+marked-timeout", FIXED_TO_MOBILE);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(window(&sender), (1.0, 5.0), "no ACK has marks for it");
    let mut sender = self::sender("etcp+marked-timeout", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, 0);
    sender.timeout();
    assert_eq!(window(&sender), (1.0, 5.0), "it was lost in the fixed network");
}

#[test]
fn a_second_timeout_without_an_ack_between_is_congestion() {
    let mut sender = sender("etcp+marked-timeout", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, OB);
    sender.timeout();
    sender.timeout();
    assert_eq!(window(&sender), (1.0, 5.0));
    assert_eq!(sender.recovery.counters().window_reductions, 1);
}

/// Losses, a partial ACK, a timeout and an idle time, with whatever bits the ACKs carry.
fn play(recipe: &str, announced: u16, marks: [u16; 3]) -> (Vec<String>, Vec<Decision>) {
    let mut sender = sender(recipe, announced);
    let mut sent = vec![ack(&mut sender, 1, marks[0]), dupacks(&mut sender, 8, marks[1])];
    sent.push(sack(&mut sender, 7..9, marks[1]));
    sent.push(ack(sender.wait(RTT), 4, marks[2]));
    sent.push(dupacks(&mut sender, 4, marks[0]));
    sent.push(sender.timeout());
    sent.push(sender.timeout());
    let all = sender.flight.max() / SMSS;
    sent.push(ack(sender.wait(RTT), all, marks[1]));
    sent.push(dupacks(sender.wait(RTT), 5, marks[2]));
    (sent, sender.trace())
}

#[test]
fn without_an_agent_it_is_always_congestion_whatever_bits_turn_up() {
    for repair in ["tahoe", "reno", "newreno", "sack"] {
        let (sent, decisions) = play(repair, 0, [0; 3]);
        for marks in [[0; 3], [OB, OB, OB], [OB | DB, DB, 0], [DB, OB | DB, OB]] {
            for extra in ["transit-marks", "early-marks"] {
                let (sent_marked, mut marked) = play(&format!("{repair}+{extra}"), 0, marks);
                for decision in marked.iter_mut().filter(|decision| decision.by == "transit-marks") {
                    decision.by = "always-congestion";
                    decision.why = "every loss is treated as congestion";
                }
                assert_eq!((&sent_marked, &marked), (&sent, &decisions), "{repair}+{extra} {marks:x?}");
            }
        }
    }
}

#[test]
fn only_a_mark_that_a_later_segment_has_caused_counts() {
    let sender = sender("etcp", MOBILE_TO_FIXED);
    let knobs = Knobs::rfc();
    let view = sender.view(sender.cc(), &knobs);
    let una = sender.flight.una();
    let cause_after = |ack: Ack| {
        let mut marks = TransitMarks { path: Some(RadioPath::MobileToFixed), ..TransitMarks::default() };
        marks.on_ack(&view, &ack);
        marks.cause(&view, una).map(|(cause, _)| cause)
    };
    let mut news = Ack { number: una, flags: Flags::ACK, ..Ack::default() };
    assert_eq!(cause_after(news), Some(Cause::Congestion), "a window update: the octet may be under way");
    news.acked.bytes = SMSS;
    assert_eq!(cause_after(news), Some(Cause::Congestion), "a new ACK: so may it be here");
    let duplicate = Ack { number: una, flags: Flags::ACK, duplicate: true, ..Ack::default() };
    let seen_later = "not seen by the station, and something later was";
    assert_eq!(cause_after(duplicate), Some(Cause::Radio), "{seen_later}");
    let mut old = Ack { number: una.wrapping_sub(SMSS), ..duplicate };
    old.newly_sacked.segments = 1;
    assert_eq!(cause_after(old), Some(Cause::Congestion), "an old ACK speaks of another octet");
    let mut marks = TransitMarks { path: Some(RadioPath::MobileToFixed), ..TransitMarks::default() };
    marks.on_ack(&view, &duplicate);
    assert_eq!(marks.cause(&view, una + SMSS), None, "nothing is known yet of the octets behind it");
}

#[test]
fn a_mark_is_forgotten_when_its_octet_is_acknowledged() {
    let mut sender = sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 1, OB);
    ack(&mut sender, 2, 0);
    // Segment 3 never reached the station, and the marks say so.
    dupacks(&mut sender, 3, 0);
    assert_eq!(causes(&mut sender), [Cause::Congestion]);
}

#[test]
fn the_last_mark_about_the_octet_counts() {
    // A station that has forgotten the octet does not mark it: that is read as congestion.
    let mut sender = sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, OB);
    dupacks(&mut sender, 1, 0);
    assert_eq!(causes(&mut sender), [Cause::Congestion]);
}
