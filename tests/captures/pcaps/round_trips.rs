//! Round trips, sample by sample: which ones only we or only a tool takes, and why; then the figures of the rest.
//!
//! A sample is that of the segment that an ACK ends with. All three measure from its first copy. Beyond that:
//!
//! - We take none if the ACK waited for something else: for a hole (SACK had reported the segment), or for something
//!   sent twice. Then we take the transmission that the echoed timestamp names, if one does (RFC 7323 §4).
//! - tshark takes every ACK that ends with a segment, and has no use for timestamps. It looks no further at a packet
//!   whose options are cut.
//! - tcptrace takes none if anything below the segment was sent again after it, acknowledged meanwhile or not. It
//!   does not know what SACK says: where a packet was overtaken and nothing sent again, it takes what waited.
//!   Of an ACK for something sent twice and for something behind it, it takes the latter.
//!
//! The tools also take the handshake's, which we say by itself. tcptrace's figures of full-sized segments are left
//! out: it has the SYN alone for full, unless that was sent again.

use std::collections::BTreeMap;

use airtcp_analyze::trace::{RttSample, Sending, SentSegment, Trace};

use super::tools::*;

/// Times of captures are in microseconds, and tools round to them.
const TICK: f64 = 1.01e-6;

/// One capture's samples by the ACK's frame.
pub(super) struct Ours {
    trace: Trace,
    samples: BTreeMap<u64, RttSample>,
}

impl Ours {
    pub(super) fn of(name: &str) -> Self {
        let trace = trace(name);
        let mut samples = BTreeMap::new();
        for sample in &trace.rtt {
            let ack = trace.acks.iter().find(|ack| ack.at == sample.at && !samples.contains_key(&ack.number));
            samples.insert(ack.expect("a sample is an ACK's").number, *sample);
        }
        Self { trace, samples }
    }

    /// What the ACK of this frame acknowledges, and what had been acknowledged before.
    fn acked(&self, frame: u64) -> std::ops::Range<u64> {
        let at = self.trace.acks.iter().position(|ack| ack.number == frame).expect("an ACK");
        let before = self.trace.acks[..at].iter().map(|ack| ack.ack).max().unwrap_or(0);
        before..self.trace.acks[at].ack
    }

    /// The first copy of the segment that ends here.
    fn segment(&self, end: u64) -> Option<&SentSegment> {
        self.trace.segments.iter().find(|segment| segment.end == end)
    }

    /// Whether the ACK of this frame covers something that was sent twice.
    fn covers_sent_twice(&self, frame: u64) -> bool {
        let acked = self.acked(frame);
        let again = self.trace.segments.iter().filter(|segment| segment.sending != Sending::New);
        let mut before = again.filter(|segment| segment.number < frame);
        before.any(|segment| segment.start < acked.end && acked.start < segment.end)
    }

    /// Whether it covers something that SACK had reported.
    fn covers_sacked(&self, frame: u64) -> bool {
        let acked = self.acked(frame);
        let before = self.trace.acks.iter().filter(|ack| ack.number < frame);
        before.flat_map(|ack| &ack.sack).any(|(left, right)| *left < acked.end && acked.start < *right)
    }

    /// Whether a second copy of anything below the segment left after it.
    fn was_sent_again_below(&self, start: u64) -> bool {
        let segments = &self.trace.segments;
        let first = segments.iter().position(|segment| segment.start == start).expect("it was sent");
        let mut below = segments[first..].iter().filter(|other| other.start < start);
        below.any(|other| segments[..first].iter().any(|copy| copy.start == other.start))
    }

    fn is_syn(&self, frame: u64) -> bool {
        self.acked(frame).end == 1
    }
}

/// What differs between tshark and us.
#[derive(Debug, Default, PartialEq)]
struct WithTshark {
    /// Only tshark's: the ACK waited, and no timestamp tells for what. It measures from the first copy.
    waited: usize,
    /// Both, but ours from the transmission that the timestamp names.
    echoed: usize,
    /// Only ours: the ACK's options are cut.
    cut: usize,
}

pub(super) fn tshark_takes_the_same_round_trips(name: &str, ours: &Ours, theirs: &[Dissected]) {
    let known = [
        ("cooked", WithTshark { waited: 0, echoed: 8, cut: 0 }),
        ("eifel", WithTshark { waited: 0, echoed: 1, cut: 0 }),
        ("etcp", WithTshark { waited: 1, echoed: 8, cut: 0 }),
        ("fast-timeout", WithTshark { waited: 0, echoed: 1, cut: 0 }),
        ("handover", WithTshark { waited: 3, echoed: 19, cut: 0 }),
        ("ipv6", WithTshark { waited: 0, echoed: 2, cut: 0 }),
        ("judges", WithTshark { waited: 0, echoed: 26, cut: 0 }),
        ("newreno", WithTshark { waited: 1, echoed: 16, cut: 0 }),
        ("rebate", WithTshark { waited: 0, echoed: 47, cut: 0 }),
        ("receiver", WithTshark { waited: 9, echoed: 20, cut: 0 }),
        ("reno", WithTshark { waited: 0, echoed: 16, cut: 0 }),
        ("reset", WithTshark { waited: 0, echoed: 31, cut: 0 }),
        ("sack", WithTshark { waited: 1, echoed: 15, cut: 0 }),
        ("short", WithTshark { waited: 0, echoed: 4, cut: 2 }),
        ("sifest", WithTshark { waited: 0, echoed: 4, cut: 0 }),
        ("tahoe", WithTshark { waited: 0, echoed: 13, cut: 0 }),
        ("vlan", WithTshark { waited: 0, echoed: 11, cut: 0 }),
    ];
    let acks = || theirs.iter().filter(|packet| !packet.is_forth);
    let taken: BTreeMap<u64, f64> = acks()
        .filter(|ack| !ack.ack_rtt.is_empty() && !ours.is_syn(ack.frame))
        .map(|ack| (ack.frame, ack.ack_rtt.parse().unwrap()))
        .collect();
    let mut differs = WithTshark::default();
    for (frame, rtt) in &taken {
        match ours.samples.get(frame) {
            Some(sample) if (sample.seconds - rtt).abs() <= TICK => {}
            Some(sample) => {
                assert!(sample.timestamps, "{name}: frame {frame}: {sample:?}, tshark {rtt}");
                differs.echoed += 1;
            }
            None => {
                let waited = ours.covers_sent_twice(*frame) || ours.covers_sacked(*frame);
                assert!(waited, "{name}: frame {frame}: tshark {rtt}, and we have none");
                differs.waited += 1;
            }
        }
    }
    // Frames whose options are cut: longer on the wire than in the file, without a payload.
    let cut: Vec<u64> = acks().filter(|ack| ack.len == Some(0) && ack.is_cut).map(|ack| ack.frame).collect();
    for (frame, sample) in ours.samples.iter().filter(|(frame, _)| !taken.contains_key(frame)) {
        assert!(cut.contains(frame), "{name}: frame {frame}: {sample:?}, and tshark has none");
        differs.cut += 1;
    }
    percentiles_are_those_of_the_samples(name, ours);
    let known = known.into_iter().find(|(one, _)| *one == name).map(|(_, differs)| differs);
    assert_eq!(differs, known.unwrap_or_default(), "{name}");
}

/// Of the nearest rank; a histogram of many samples is exact to a hundredth.
fn percentiles_are_those_of_the_samples(name: &str, ours: &Ours) {
    let mut samples: Vec<f64> = ours.samples.values().map(|sample| sample.seconds).collect();
    samples.sort_by(f64::total_cmp);
    let rtt = &sender(name)["rtt"];
    assert_eq!(count(rtt, "/samples"), samples.len() as u64, "{name}");
    let echoed = ours.samples.values().filter(|sample| sample.timestamps).count();
    assert_eq!(count(rtt, "/by_timestamps"), echoed as u64, "{name}");
    for (figure, q) in [("median_seconds", 0.5), ("p90_seconds", 0.9), ("p99_seconds", 0.99)] {
        let expected = samples.get(((q * samples.len() as f64).ceil() as usize).saturating_sub(1));
        match (rtt[figure].as_f64(), expected) {
            (None, None) => {}
            (Some(told), Some(expected)) => {
                assert!(
                    (told / expected - 1.0).abs() < 0.01 + TICK / expected,
                    "{name}: {figure}: {told}, not {expected}"
                );
            }
            (told, expected) => panic!("{name}: {figure}: {told:?}, not {expected:?}"),
        }
    }
}

/// What an echoed timestamp names is a transmission that carried it, and the ACK covers.
pub(super) fn what_timestamps_measure_begins_with_the_packet_that_carried_them(
    name: &str,
    ours: &Ours,
    theirs: &[Dissected],
) {
    let by_frame: BTreeMap<u64, &Dissected> = theirs.iter().map(|packet| (packet.frame, packet)).collect();
    for (frame, sample) in ours.samples.iter().filter(|(_, sample)| sample.timestamps) {
        let acked = ours.acked(*frame);
        let sent = ours.trace.segments.iter().find(|segment| {
            let rtt = (sample.at - segment.at) as f64 / 1e9;
            (rtt - sample.seconds).abs() < 1e-9 && segment.start < acked.end && acked.start < segment.end
        });
        let sent = sent.unwrap_or_else(|| panic!("{name}: {sample:?}: from nothing that was sent"));
        let (carried, echoed) = (by_frame[&sent.number], by_frame[frame]);
        assert!(carried.is_forth && !echoed.is_forth, "{name}: {sample:?}");
        assert_eq!(carried.tsval, echoed.tsecr, "{name}: {sample:?}");
    }
}

/// What differs between tcptrace and our samples from segments that were sent once.
#[derive(Debug, Default, PartialEq)]
struct WithTcptrace {
    /// Only ours: something below was sent again later.
    sent_again_below: usize,
    /// Only tcptrace's: SACK had reported it, because an overtaken packet was missing.
    overtaken: usize,
    /// Only tcptrace's: the ACK covers something below as well, which had been sent again before this segment left, or
    /// of which tcptrace saw the second copy only.
    sent_again_before: usize,
}

#[test]
fn tcptrace_takes_the_same_round_trips() {
    let known = [
        ("eifel", WithTcptrace { sent_again_below: 6, overtaken: 0, sent_again_before: 0 }),
        ("rebate", WithTcptrace { sent_again_below: 0, overtaken: 9, sent_again_before: 0 }),
        ("receiver", WithTcptrace { sent_again_below: 0, overtaken: 0, sent_again_before: 2 }),
        ("reset", WithTcptrace { sent_again_below: 0, overtaken: 0, sent_again_before: 1 }),
    ];
    let mut found = Vec::new();
    for name in names() {
        let (ours, theirs) = (Ours::of(&name), tcptrace(&name));
        // By the segment's first number, as tcptrace has it: that of the SYN is 0.
        let mut once: BTreeMap<u64, f64> = BTreeMap::new();
        for (frame, sample) in ours.samples.iter().filter(|(_, sample)| !sample.timestamps) {
            let segment = ours.segment(ours.acked(*frame).end).expect("it was seen");
            once.insert(segment.start, sample.seconds);
        }
        let first = first_number(&name);
        let taken = theirs.samples.iter().map(|(seq, ms)| (u64::from(seq.wrapping_sub(first)), *ms));
        let taken: BTreeMap<u64, u64> = taken.collect();
        // Its figures are those of these samples.
        let mut samples = Vec::new();
        let mut differs = WithTcptrace::default();
        for (start, ms) in &taken {
            let rtt = match once.get(start) {
                Some(rtt) => *rtt,
                None => {
                    let (segment, ack) = acknowledged(&ours, *start);
                    match (ours.covers_sent_twice(ack.0), ours.covers_sacked(ack.0)) {
                        _ if *start == 0 => {}
                        (true, _) if !ours.was_sent_again_below(*start) => differs.sent_again_before += 1,
                        (false, true) => differs.overtaken += 1,
                        _ => panic!("{name}: segment {start}: {ms} ms, and we have none"),
                    }
                    (ack.1 - segment) as f64 / 1e9
                }
            };
            let within = *ms as f64 / 1e3 - TICK..=(*ms + 1) as f64 / 1e3 + TICK;
            assert!(within.contains(&rtt), "{name}: segment {start}: {ms} ms, ours {rtt} s");
            samples.push(rtt);
        }
        for start in once.keys().filter(|start| !taken.contains_key(start)) {
            assert!(ours.was_sent_again_below(*start), "{name}: segment {start}: tcptrace has none");
            differs.sent_again_below += 1;
        }
        figures_are_those_of(&name, &theirs, &samples);
        if differs != WithTcptrace::default() {
            found.push((name, differs));
        }
    }
    assert_eq!(found, known.map(|(name, differs)| (name.to_owned(), differs)));
}

/// When the segment left first, and the frame and time of the ACK that ends with it.
fn acknowledged(ours: &Ours, start: u64) -> (i64, (u64, i64)) {
    let segment = ours.trace.segments.iter().find(|segment| segment.start == start).expect("it was sent");
    let ack = ours.trace.acks.iter().find(|ack| ack.ack == segment.end).expect("it was acknowledged");
    (segment.at, (ack.number, ack.at))
}

/// To a tenth of a millisecond.
fn figures_are_those_of(name: &str, theirs: &Tcptrace, samples: &[f64]) {
    let n = samples.len() as f64;
    assert_eq!(theirs.figure::<usize>("RTT samples"), samples.len(), "{name}");
    let mean = if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / n };
    let squares: f64 = samples.iter().map(|rtt| (rtt - mean).powi(2)).sum();
    let deviation = if samples.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
    let least = samples.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let most = samples.iter().copied().reduce(f64::max).unwrap_or(0.0);
    for (figure, expected) in
        [("RTT min", least), ("RTT max", most), ("RTT avg", mean), ("RTT stdev", deviation)]
    {
        let told: f64 = theirs.figure(figure);
        assert!((told - expected * 1e3).abs() < 0.06, "{name}: {figure}: {told}, ours {}", expected * 1e3);
    }
}
