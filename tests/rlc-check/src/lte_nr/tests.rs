//! A capture without violations, and variants with one violation each.

use super::capture::Frame;
use super::*;
use crate::findings::Invariant;
use crate::trace::Direction;

const MS: u64 = 1_000_000;

fn frame(at: u64, direction: Direction, transmission: u16, pdu: &str) -> Frame {
    let pdu: Vec<u8> =
        (0..pdu.len()).step_by(2).map(|at| u8::from_str_radix(&pdu[at..at + 2], 16).unwrap()).collect();
    Frame {
        number: at,
        at: at * MS,
        delay: Some(0),
        lost: false,
        transmission,
        direction,
        ue: 1,
        bearer: 1,
        generation: Generation::Nr(12),
        mode: Mode::Acknowledged,
        pdu,
    }
}

/// SN 1 is lost. t-Reassembly starts when SN 2 arrives. SN 3 polls, and the answer follows when t-Reassembly
/// expires.
fn clean() -> Vec<Frame> {
    let down = |at, transmission, pdu| frame(at, Direction::Down, transmission, pdu);
    let up = |at, pdu| frame(at, Direction::Up, 1, pdu);
    let lost = Frame { lost: true, ..down(2, 1, "80015a5b5c") };
    vec![
        down(0, 1, "80005a5b5c"),
        lost,
        down(2, 1, "80025a5b5c"),
        down(3, 1, "c0035a5b5c"),
        up(22, "0004800010"),
        down(23, 2, "c0015a5b5c"),
        up(24, "000400"),
    ]
}

/// The invariants that a variant of the capture violates.
fn violated(change: impl FnOnce(&mut Vec<Frame>)) -> Vec<Invariant> {
    let settings = "poll-pdu=4,poll-retransmit=100ms,reassembly=20ms,status-prohibit=2ms,patience=5ms";
    let settings: DirectionSettings = settings.parse().unwrap();
    let mut frames = clean();
    change(&mut frames);
    let findings =
        check_frames(&frames, settings.clone(), settings, End::After(60 * MS)).expect("one bearer");
    let mut violated: Vec<_> = findings.violations.iter().map(|violation| violation.invariant).collect();
    violated.dedup();
    violated
}

#[test]
fn clean_capture_has_no_violations() {
    assert_eq!(violated(|_| ()), []);
}

#[test]
fn violations_of_receiver_are_found() {
    let replaced = |index: usize, pdu: &'static str| {
        violated(move |frames| {
            frames[index] = Frame { pdu: frame(0, Direction::Up, 1, pdu).pdu, ..frames[index].clone() }
        })
    };
    assert_eq!(replaced(4, "000400")[0], Invariant::Acknowledgement, "a missing NACK");
    assert_eq!(replaced(4, "0004800020")[0], Invariant::Acknowledgement, "a NACK of SN 2");
    assert_eq!(replaced(4, "0005800010")[0], Invariant::Reassembly, "ACK_SN 5");
    assert_eq!(replaced(4, "000401")[0], Invariant::Format, "a reserved bit");
    assert_eq!(
        violated(|frames| frames[4].at = 10 * MS)[0],
        Invariant::Reporting,
        "before the timer expires"
    );
    assert_eq!(violated(|frames| frames[6].at = 40 * MS), [Invariant::Reporting], "late");
    assert_eq!(violated(|frames| frames.truncate(6)), [Invariant::Reporting], "missing");
    let early = |frames: &mut Vec<Frame>| (frames[5].at, frames[6].at) = (22 * MS, 23 * MS);
    assert_eq!(violated(early), [Invariant::StatusProhibit], "1 ms after another");
}

#[test]
fn violations_of_sender_are_found() {
    assert_eq!(violated(|frames| frames[1].pdu[0] |= 0x40), [Invariant::Polling], "poll without a reason");
    assert_eq!(violated(|frames| frames[3].pdu[0] &= !0x40)[0], Invariant::Polling, "missing poll");
    assert_eq!(violated(|frames| frames[5].transmission = 3), [Invariant::RetxCount], "RETX_COUNT");
    assert_eq!(violated(|frames| frames[5].pdu[2] ^= 1), [Invariant::Segmentation], "other octets");
    let unrequested = |frames: &mut Vec<Frame>| frames[5].pdu[1] = 2;
    assert_eq!(violated(unrequested)[0], Invariant::Retransmission, "not reported missing");
    assert_eq!(violated(|frames| _ = frames.remove(2))[0], Invariant::Format, "SN 2 is missing");
}
