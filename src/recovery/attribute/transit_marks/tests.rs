use super::*;
use crate::profile::Profile;
use crate::recovery::testing::{BareSender, RTT, SMSS, TestView};
use crate::recovery::{Decision, Handshake, What};
use airwire::marks::{DB, OB};

/// The base stations' announcement on the peer's SYN (docs/reference/header-extensions.md).
const FIXED_TO_MOBILE: u16 = DB;
const MOBILE_TO_FIXED: u16 = OB;
const MOBILE_TO_MOBILE: u16 = OB | DB;

/// A sender with ten segments in flight, in congestion avoidance.
fn sender(recipe: &str, announced: u16) -> BareSender {
    let peer_flags = Flags::SYN.with(Flags::ACK).with(Flags(announced));
    let handshake = Handshake { timestamps: true, peer_flags, ..Handshake::default() };
    let mut sender = BareSender::with(recipe, Profile::default(), &handshake).under_way(10.0, 8.0, RTT);
    sender.rwnd = 100;
    sender.wait(RTT);
    sender
}

/// Delivers `n` duplicate ACKs with these marks.
fn dupacks(sender: &mut BareSender, n: u32, marks: u16) -> String {
    let una = sender.una();
    let ack = Ack { duplicate: true, flags: Flags::ACK.with(Flags(marks)), ..Ack::default() };
    let sent: Vec<_> =
        (0..n).map(|_| sender.receive(ack, una, &[])).filter(|sent| !sent.is_empty()).collect();
    sent.join(" ")
}

fn ack(sender: &mut BareSender, segment: u64, marks: u16) -> String {
    sender.receive(Ack { flags: Flags::ACK.with(Flags(marks)), ..Ack::default() }, segment, &[])
}

fn sack(sender: &mut BareSender, block: std::ops::Range<u64>, marks: u16) -> String {
    let una = sender.una();
    sender.receive(Ack { flags: Flags::ACK.with(Flags(marks)), ..Ack::default() }, una, &[block])
}

fn causes(sender: &mut BareSender) -> Vec<Cause> {
    let cause = |decision: Decision| match decision.what {
        What::Cause { cause, .. } => Some(cause),
        _ => None,
    };
    sender.trace().into_iter().filter_map(cause).collect()
}

#[test]
fn marks_determine_cause_on_each_path_type() {
    use Cause::{Congestion, Radio};
    let tables: [(u16, &[(u16, Cause)]); 3] = [
        // §III D.2. Db is not used.
        (FIXED_TO_MOBILE, &[(0, Congestion), (OB, Radio)]),
        // §III D.3.
        (MOBILE_TO_FIXED, &[(0, Radio), (OB, Congestion)]),
        // §III D.4, cases 1 to 3, and the combination that the paper does not mention.
        (MOBILE_TO_MOBILE, &[(0, Radio), (OB, Congestion), (OB | DB, Radio), (DB, Congestion)]),
    ];
    for (announced, table) in tables {
        for &(marks, cause) in table {
            let mut sender = sender("etcp", announced);
            let sent = dupacks(&mut sender, 3, marks);
            assert_eq!(causes(&mut sender), [cause], "announced {announced:#x}, marked {marks:#x}");
            match cause {
                Congestion => {
                    assert_eq!((sent.as_str(), sender.window()), ("1r", (5.0, 5.0)));
                    assert_eq!(sender.counters().window_reductions, 1);
                }
                Radio => {
                    // Three duplicate ACKs mean that three segments left the network. New segments replace
                    // them at once.
                    assert_eq!((sent.as_str(), sender.window()), ("1r 11 12 13", (10.0, 8.0)));
                    assert_eq!(sender.counters().window_reductions, 0);
                    assert_eq!(sender.counters().attributed_to_radio, 1);
                }
            }
        }
    }
}

#[test]
fn radio_loss_keeps_window_full_without_burst() {
    for recipe in ["tahoe+transit-marks", "etcp", "newreno+transit-marks"] {
        let mut sender = sender(recipe, FIXED_TO_MOBILE);
        assert_eq!(dupacks(&mut sender, 3, OB), "1r 11 12 13", "{recipe}");
        // Segments 5 to 10 arrive, too.
        assert_eq!(dupacks(&mut sender, 6, OB), "14 15 16 17 18 19", "{recipe}");
        assert_eq!(ack(sender.wait(RTT), 10, 0), "20", "{recipe}");
        assert_eq!((sender.window(), sender.cc().state()), ((10.0, 8.0), RecoveryState::Open), "{recipe}");
    }
}

#[test]
fn sack_keeps_pipe_at_window_after_radio_loss() {
    let mut sender = sender("sack+transit-marks", FIXED_TO_MOBILE);
    assert_eq!(sack(&mut sender, 2..3, OB), "");
    assert_eq!(sack(&mut sender, 2..4, OB), "");
    // Segments 2, 3 and 4 were delivered, segment 1 is lost.
    assert_eq!(sack(&mut sender, 2..5, OB), "1r 11 12 13");
    assert_eq!(sack(&mut sender, 2..11, OB), "14 15 16 17 18 19");
    assert_eq!(ack(sender.wait(RTT), 10, 0), "20");
    assert_eq!(sender.window(), (10.0, 8.0));
}

/// Segments 1 and 4 of ten are lost, segment 1 on the radio link.
fn sender_with_two_holes(recipe: &str) -> BareSender {
    let mut sender = sender(recipe, FIXED_TO_MOBILE);
    if recipe.starts_with("sack") {
        sack(&mut sender, 2..4, OB);
        sack(&mut sender, 5..11, OB);
    } else {
        dupacks(&mut sender, 8, OB);
    }
    assert_eq!(sender.window(), (10.0, 8.0), "{recipe}");
    sender.wait(RTT);
    sender
}

const REPAIRS: [&str; 4] = ["tahoe+transit-marks", "etcp", "newreno+transit-marks", "sack+transit-marks"];

#[test]
fn two_radio_losses_keep_window() {
    for recipe in REPAIRS {
        let mut sender = sender_with_two_holes(recipe);
        // Segments 11 to 18 arrive after the second hole. A sender that left recovery needs three more
        // duplicate ACKs.
        let mut sent = vec![ack(&mut sender, 3, OB)];
        sent.push(dupacks(&mut sender, 8, OB));
        let resent = |sent: &[String]| sent.join(" ").split(' ').any(|segment| segment == "4r");
        assert!(resent(&sent) || recipe.starts_with("sack"), "{recipe}: {sent:?}");
        ack(sender.wait(RTT), 18, 0);
        let (cwnd, ssthresh) = sender.window();
        assert!((10.0..12.0).contains(&cwnd) && ssthresh == 8.0, "{recipe}: {cwnd} {ssthresh}");
        assert_eq!(
            (sender.counters().window_reductions, sender.cc().state()),
            (0, RecoveryState::Open),
            "{recipe}"
        );
    }
}

#[test]
fn congestion_at_second_hole_halves_kept_window() {
    for recipe in REPAIRS {
        let mut sender = sender_with_two_holes(recipe);
        ack(&mut sender, 3, 0);
        dupacks(&mut sender, 3, 0);
        // Half of ten, not half of the larger amount that is outstanding.
        assert_eq!(sender.cc().ssthresh, 5.0, "{recipe}");
        assert!(sender.cc().cwnd <= 5.5, "{recipe}: {}", sender.cc().cwnd);
        ack(sender.wait(RTT), 18, 0);
        assert!(sender.cc().cwnd <= 6.0, "{recipe}: {}", sender.cc().cwnd);
        assert_eq!(sender.counters().window_reductions, 1, "{recipe}");
    }
}

#[test]
fn sack_retransmits_hole_once_its_mark_arrives() {
    // Mobile to fixed: the base station saw neither 1 nor 4. A retransmission of 4 would pass it, and the
    // mark would be about the retransmission.
    let mut sender = sender("sack+transit-marks", MOBILE_TO_FIXED);
    sack(&mut sender, 2..4, 0);
    assert_eq!(sack(&mut sender, 5..11, 0), "1r 11 12 13 14 15 16 17 18", "new segments fill the window");
    assert!(ack(sender.wait(RTT), 3, 0).starts_with("4r"));
    assert_eq!(causes(&mut sender), [Cause::Radio, Cause::Radio]);
    assert_eq!(sender.window(), (10.0, 8.0));
}

#[test]
fn holes_do_not_wait_for_marks_after_congestion() {
    let mut sender = sender("sack+transit-marks", FIXED_TO_MOBILE);
    sack(&mut sender, 2..4, 0);
    // Segments 1, 4 and 6 are lost.
    let sent =
        [sack(&mut sender, 5..6, 0), sack(&mut sender, 7..9, 0), sack(&mut sender, 9..11, 0)].join(" ");
    assert!(sent.contains("1r") && sent.contains("4r") && sent.contains("6r"), "{sent}");
    assert_eq!((causes(&mut sender), sender.window().1), (vec![Cause::Congestion], 5.0));
}

#[test]
fn holes_after_radio_loss_are_attributed_until_congestion() {
    // Segments 1, 4, 6 and 8 are lost: 1 and 4 on the radio link, the others in the fixed network.
    let mut sender = sender("sack+transit-marks", FIXED_TO_MOBILE);
    for block in [9..11, 7..8, 5..6, 2..4] {
        sack(&mut sender, block, OB);
    }
    ack(sender.wait(RTT), 3, OB);
    assert_eq!(sender.window(), (10.0, 8.0));
    let sent = ack(sender.wait(RTT), 5, 0);
    assert!(sent.contains("6r") || sent.is_empty(), "{sent}");
    assert_eq!(sender.window(), (5.0, 5.0), "half of the window before, not of FlightSize");
    ack(sender.wait(RTT), 7, 0);
    assert_eq!(causes(&mut sender), [Cause::Radio, Cause::Radio, Cause::Congestion]);
    assert_eq!(sender.counters().window_reductions, 1);
}

#[test]
fn late_reduction_covers_all_segments_sent_before_it() {
    for recipe in ["newreno+transit-marks", "sack+transit-marks"] {
        let mut sender = sender_with_two_holes(recipe);
        ack(&mut sender, 3, 0);
        dupacks(&mut sender, 3, 0);
        assert_eq!(sender.counters().window_reductions, 1, "{recipe}");
        // Segment 11 was sent under the full window before the reduction, and is also lost.
        let last = sender.last();
        assert!(last > 14, "{recipe}: {last}");
        sender.wait(RTT);
        if recipe.starts_with("sack") {
            sender.receive(Ack::default(), 10, &[12..last + 1]);
        } else {
            ack(&mut sender, 10, 0);
            dupacks(&mut sender, 3, 0);
        }
        assert_eq!(sender.counters().window_reductions, 1, "{recipe}");
        // Segments sent from here on belong to the next window.
        ack(sender.wait(RTT), last, 0);
        assert_eq!(sender.cc().state(), RecoveryState::Open, "{recipe}");
    }
}

#[test]
fn congestion_then_radio_loss_reduces_window_once() {
    for recipe in ["newreno+transit-marks", "sack+transit-marks"] {
        let mut sender = sender(recipe, FIXED_TO_MOBILE);
        sack(&mut sender, 2..4, 0);
        sack(&mut sender, 5..11, 0);
        dupacks(&mut sender, 3, 0);
        ack(sender.wait(RTT), 3, OB);
        assert_eq!(sender.window().1, 5.0, "{recipe}");
        assert_eq!(causes(&mut sender), [Cause::Congestion], "{recipe}: the second hole is not attributed");
        assert_eq!(sender.counters().window_reductions, 1, "{recipe}");
    }
}

#[test]
fn radio_loss_after_recovery_begins_new_episode() {
    let mut sender = sender("newreno+transit-marks", FIXED_TO_MOBILE);
    dupacks(&mut sender, 9, OB);
    ack(sender.wait(RTT), 11, 0);
    dupacks(sender.wait(RTT), 9, OB);
    assert_eq!(causes(&mut sender), [Cause::Radio, Cause::Radio]);
    assert_eq!(sender.counters().attributed_to_radio, 2);
}

#[test]
fn radio_loss_does_not_end_slow_start() {
    let mut sender = sender("etcp", FIXED_TO_MOBILE).under_way(20.0, f64::INFINITY, RTT);
    dupacks(&mut sender, 9, OB);
    assert_eq!(sender.window(), (20.0, f64::INFINITY));
}

#[test]
fn timeout_is_congestion_despite_radio_marks() {
    let mut sender = sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, OB);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.window(), (1.0, 5.0));
    // The same applies to a timeout after a loss attributed to the radio link.
    let mut sender = self::sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 3, OB);
    sender.timeout();
    assert_eq!(sender.cc().cwnd, 1.0);
    ack(sender.wait(RTT), 13, 0);
    assert!(sender.cc().cwnd <= 2.0, "the kept window is not restored: {}", sender.cc().cwnd);
}

/// Linux reduces the window once per window of data (tcp_enter_loss()). A loss attributed to the radio link
/// has not reduced it.
#[test]
fn linux_timeout_after_radio_loss_reduces_window() {
    let peer_flags = Flags::SYN.with(Flags::ACK).with(Flags(FIXED_TO_MOBILE));
    let handshake = Handshake { timestamps: true, peer_flags, ..Handshake::default() };
    for (marks, ssthresh) in [(OB, 7.0), (0, 7.0)] {
        let mut sender = BareSender::with("sack+transit-marks", Profile::linux(), &handshake);
        sender = sender.under_way(10.0, 8.0, RTT);
        sender.wait(RTT);
        sack(&mut sender, 2..6, marks);
        sender.wait(RTT * 10).timeout();
        assert_eq!(sender.window(), (1.0, ssthresh), "marked {marks:#x}");
        assert_eq!(sender.counters().window_reductions, 1, "marked {marks:#x}");
    }
}

#[test]
fn marked_timeout_keeps_window_and_limits_burst() {
    for recipe in ["etcp+marked-timeout", "newreno+marked-timeout", "sack+marked-timeout"] {
        let mut sender = sender(recipe, FIXED_TO_MOBILE);
        dupacks(&mut sender, 2, OB);
        assert_eq!(sender.timeout(), "1r", "{recipe}");
        assert_eq!(sender.window(), (10.0, 8.0), "{recipe}");
        assert_eq!(sender.counters().window_reductions, 0, "{recipe}");
        assert_eq!(ack(sender.wait(RTT), 1, 0), "2r 3r", "{recipe}: two segments per ACK");
        ack(sender.wait(RTT), 10, 0);
        assert!(sender.window().0 >= 10.0 && sender.cc().state() == RecoveryState::Open, "{recipe}");
    }
}

#[test]
fn unmarked_timeout_is_congestion() {
    let mut sender = sender("etcp+marked-timeout", FIXED_TO_MOBILE);
    assert_eq!(sender.timeout(), "1r");
    assert_eq!(sender.window(), (1.0, 5.0), "no ACK carries a mark about the segment");
    let mut sender = self::sender("etcp+marked-timeout", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, 0);
    sender.timeout();
    assert_eq!(sender.window(), (1.0, 5.0), "the marks show a loss in the fixed network");
}

#[test]
fn second_timeout_without_ack_is_congestion() {
    let mut sender = sender("etcp+marked-timeout", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, OB);
    sender.timeout();
    sender.timeout();
    assert_eq!(sender.window(), (1.0, 5.0));
    assert_eq!(sender.counters().window_reductions, 1);
}

/// Plays losses, a partial ACK and timeouts, with these bits in the ACKs.
fn play(recipe: &str, announced: u16, marks: [u16; 3]) -> (Vec<String>, Vec<Decision>) {
    let mut sender = sender(recipe, announced);
    let mut sent = vec![ack(&mut sender, 1, marks[0]), dupacks(&mut sender, 8, marks[1])];
    sent.push(sack(&mut sender, 7..9, marks[1]));
    sent.push(ack(sender.wait(RTT), 4, marks[2]));
    sent.push(dupacks(&mut sender, 4, marks[0]));
    sent.push(sender.timeout());
    sent.push(sender.timeout());
    let all = sender.last();
    sent.push(ack(sender.wait(RTT), all, marks[1]));
    sent.push(dupacks(sender.wait(RTT), 5, marks[2]));
    (sent, sender.trace())
}

#[test]
fn marks_are_ignored_without_base_station() {
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
fn mark_counts_only_if_later_segment_caused_it() {
    let test = TestView::new(sender("etcp", MOBILE_TO_FIXED));
    let (view, una) = (test.view(), test.sender.flight.una());
    let cause_after = |ack: Ack| {
        let mut marks = TransitMarks::default();
        marks.on_ack(&view, &ack);
        marks.cause(&view, una).map(|(cause, _)| cause)
    };
    let mut news = Ack { number: una, flags: Flags::ACK, ..Ack::default() };
    assert_eq!(cause_after(news), Some(Cause::Congestion), "a window update: the segment may be in flight");
    news.acked.bytes = SMSS;
    assert_eq!(cause_after(news), Some(Cause::Congestion), "a new ACK: the segment may be in flight");
    let duplicate = Ack { number: una, flags: Flags::ACK, duplicate: true, ..Ack::default() };
    let seen_later = "the base station saw a later segment, but not this one";
    assert_eq!(cause_after(duplicate), Some(Cause::Radio), "{seen_later}");
    let mut old = Ack { number: una.wrapping_sub(SMSS), ..duplicate };
    old.newly_sacked.segments = 1;
    assert_eq!(cause_after(old), Some(Cause::Congestion), "an old ACK is about another segment");
    let mut marks = TransitMarks::default();
    marks.on_ack(&view, &duplicate);
    assert_eq!(marks.cause(&view, una + SMSS), None, "no mark is about the segment after it");
}

#[test]
fn ack_of_segment_discards_its_mark() {
    let mut sender = sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 1, OB);
    ack(&mut sender, 2, 0);
    // Segment 3 never reached the base station, and the marks show it.
    dupacks(&mut sender, 3, 0);
    assert_eq!(causes(&mut sender), [Cause::Congestion]);
}

#[test]
fn last_mark_about_segment_counts() {
    // A base station that no longer remembers the byte does not mark it, which means congestion.
    let mut sender = sender("etcp", FIXED_TO_MOBILE);
    dupacks(&mut sender, 2, OB);
    dupacks(&mut sender, 1, 0);
    assert_eq!(causes(&mut sender), [Cause::Congestion]);
}
