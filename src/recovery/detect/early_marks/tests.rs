use super::*;
use crate::profile::Profile;
use crate::recovery::testing::{BareSender, RTT};
use crate::recovery::{Handshake, Recipe, RecoveryState};

fn sender(recipe: &str, announced: u16) -> BareSender {
    let peer_flags = Flags::SYN.with(Flags::ACK).with(Flags(announced));
    let handshake = Handshake { timestamps: true, peer_flags, ..Handshake::default() };
    let mut sender = BareSender::with(recipe, Profile::default(), &handshake).under_way(4.0, 8.0, RTT);
    sender.rwnd = 100;
    sender.wait(RTT);
    sender
}

fn dupack(sender: &mut BareSender, marks: u16) -> String {
    let una = sender.una();
    let ack = Ack { duplicate: true, flags: Flags::ACK.with(Flags(marks)), ..Ack::default() };
    sender.receive(ack, una, &[])
}

#[test]
fn first_marked_duplicate_ack_triggers_retransmission() {
    for (announced, marks) in [(DB, OB), (OB, 0), (OB | DB, OB | DB)] {
        for repair in ["tahoe", "reno", "newreno"] {
            let mut sender = sender(&format!("{repair}+early-marks"), announced);
            assert_eq!(dupack(&mut sender, marks), "1r 5", "{repair}");
            assert_eq!(sender.window(), (4.0, 8.0), "{repair}");
            // Further duplicate ACKs add no information.
            assert_eq!(dupack(&mut sender, marks), "6", "{repair}");
            assert_eq!(dupack(&mut sender, marks), "7", "{repair}");
            assert_eq!(sender.counters().fast_retransmits, 1, "{repair}");
            let sent = sender.wait(RTT).ack(4);
            assert_eq!((sent.as_str(), sender.cc().state()), ("8", RecoveryState::Open), "{repair}");
        }
    }
}

#[test]
fn small_window_recovers_without_timeout() {
    let mut sender = sender("reno+early-marks", DB).under_way(2.0, 2.0, RTT);
    sender.ack(2);
    assert_eq!(sender.flight.outstanding().segments, 2);
    assert!(dupack(&mut sender, OB).starts_with("3r"));
}

#[test]
fn marked_sack_retransmits_before_is_lost() {
    let mut sender = sender("sack+early-marks", DB);
    let ack = Ack { flags: Flags::ACK.with(Flags(OB)), ..Ack::default() };
    assert_eq!(sender.receive(ack, 0, &[2..3]), "1r 5");
    assert_eq!(sender.cc().cwnd, 4.0);
}

#[test]
fn inconclusive_marks_need_three_duplicate_acks() {
    // Fixed to mobile, without a mark; mobile to fixed, with a mark; mobile to mobile, not past the second
    // base station; no base station.
    for (announced, marks) in [(DB, 0), (OB, OB), (OB | DB, 0), (OB | DB, OB), (OB | DB, DB), (0, OB)] {
        let mut sender = sender("reno+early-marks", announced);
        assert_eq!(dupack(&mut sender, marks), "", "{announced:#x} {marks:#x}");
        assert_eq!(dupack(&mut sender, marks), "", "{announced:#x} {marks:#x}");
        assert!(dupack(&mut sender, marks).starts_with("1r"), "{announced:#x} {marks:#x}");
    }
}

#[test]
fn duplicate_not_caused_by_later_segment_is_ignored() {
    // Only one segment is outstanding, so the return path must have duplicated the ACK.
    let mut alone = sender("reno+early-marks", DB);
    alone.written = 5;
    alone.ack(4);
    assert_eq!(alone.flight.outstanding().segments, 1);
    assert_eq!(dupack(&mut alone, OB), "");
    // After a timeout, segments that arrived twice cause the duplicate ACKs.
    let mut again = sender("reno+early-marks", DB);
    again.timeout();
    again.wait(RTT);
    assert_eq!(dupack(&mut again, OB), "");
    assert_eq!(again.counters().fast_retransmits, 0);
}

#[test]
fn early_marks_requires_transit_marks() {
    let name = |text: &str| text.parse::<Recipe>().map(|recipe| recipe.canonical());
    assert_eq!(name("sack+early-marks").unwrap(), "sack+early-marks+transit-marks");
    assert_eq!(name("etcp+early-marks").unwrap(), "reno+early-marks+transit-marks");
    let error = name("reno+early-marks+vegas").unwrap_err().to_string();
    assert_eq!(
        error,
        "`early-marks` works only with `transit-marks`, not with `vegas`; use `transit-marks+early-marks`"
    );
}
