use airwire::time::Duration;

use super::*;
use crate::profile::Profile;
use crate::recovery::testing::{BareSender, SMSS};
use crate::recovery::{Phase, Recipe};

const RTT: Duration = Duration::from_millis(100);

fn sender(recipe: &str, announced: u16) -> BareSender {
    let peer_flags = Flags::SYN.with(Flags::ACK).with(Flags(announced));
    let handshake = Handshake { timestamps: true, peer_flags, ..Handshake::default() };
    let mut sender = BareSender::with(recipe, Profile::default(), &handshake).under_way(4.0, 8.0, RTT);
    sender.rwnd = 100;
    sender.wait(RTT);
    sender
}

fn dupack(sender: &mut BareSender, marks: u16) -> String {
    let una = sender.flight.una() / SMSS;
    let ack = Ack { duplicate: true, flags: Flags::ACK.with(Flags(marks)), ..Ack::default() };
    sender.receive(ack, una, &[])
}

#[test]
fn the_first_duplicate_marked_by_the_last_station_is_enough() {
    for (announced, marks) in [(DB, OB), (OB, 0), (OB | DB, OB | DB)] {
        for repair in ["tahoe", "reno", "newreno"] {
            let mut sender = sender(&format!("{repair}+early-marks"), announced);
            assert_eq!(dupack(&mut sender, marks), "1r 5", "{repair}");
            assert_eq!((sender.cc().cwnd, sender.cc().ssthresh), (4.0, 8.0), "{repair}");
            // The third duplicate ACK says nothing new.
            assert_eq!(dupack(&mut sender, marks), "6", "{repair}");
            assert_eq!(dupack(&mut sender, marks), "7", "{repair}");
            assert_eq!(sender.recovery.counters().fast_retransmits, 1, "{repair}");
            let sent = sender.wait(RTT).ack(4);
            assert_eq!((sent.as_str(), sender.cc().phase()), ("8", Phase::Open), "{repair}");
        }
    }
}

#[test]
fn a_window_too_small_for_three_duplicates_needs_no_timeout() {
    let mut sender = sender("reno+early-marks", DB).under_way(2.0, 2.0, RTT);
    sender.ack(2);
    assert_eq!(sender.flight.outstanding().segments, 2);
    assert!(dupack(&mut sender, OB).starts_with("3r"));
}

#[test]
fn with_sack_it_does_not_wait_for_is_lost() {
    let mut sender = sender("sack+early-marks", DB);
    let ack = Ack { flags: Flags::ACK.with(Flags(OB)), ..Ack::default() };
    assert_eq!(sender.receive(ack, 0, &[2..3]), "1r 5");
    assert_eq!(sender.cc().cwnd, 4.0);
}

#[test]
fn three_are_waited_for_where_no_mark_proves_anything() {
    // Fixed to mobile, not seen; mobile to fixed, seen; mobile to mobile, not past the second; no station at
    // all.
    for (announced, marks) in [(DB, 0), (OB, OB), (OB | DB, 0), (OB | DB, OB), (OB | DB, DB), (0, OB)] {
        let mut sender = sender("reno+early-marks", announced);
        assert_eq!(dupack(&mut sender, marks), "", "{announced:#x} {marks:#x}");
        assert_eq!(dupack(&mut sender, marks), "", "{announced:#x} {marks:#x}");
        assert!(dupack(&mut sender, marks).starts_with("1r"), "{announced:#x} {marks:#x}");
    }
}

#[test]
fn it_does_not_believe_what_no_later_segment_can_have_caused() {
    // Only segment 1 is outstanding: a path back that duplicates ACKs.
    let mut alone = sender("reno+early-marks", DB);
    alone.written = 5;
    alone.ack(4);
    assert_eq!(alone.flight.outstanding().segments, 1);
    assert_eq!(dupack(&mut alone, OB), "");
    // After a timeout the duplicates come from copies that arrived twice.
    let mut again = sender("reno+early-marks", DB);
    again.timeout();
    again.wait(RTT);
    assert_eq!(dupack(&mut again, OB), "");
    assert_eq!(again.recovery.counters().fast_retransmits, 0);
}

#[test]
fn it_brings_the_marks_and_does_not_work_without() {
    let name = |text: &str| text.parse::<Recipe>().map(|recipe| recipe.canonical());
    assert_eq!(name("sack+early-marks").unwrap(), "sack+early-marks+transit-marks");
    assert_eq!(name("etcp+early-marks").unwrap(), "reno+early-marks+transit-marks");
    let error = name("reno+early-marks+vegas").unwrap_err().to_string();
    assert_eq!(
        error,
        "`early-marks` works only with `transit-marks`, not with `vegas`; use `transit-marks+early-marks`"
    );
}
