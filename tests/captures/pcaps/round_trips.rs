//! RTT samples, compared one by one with tshark and tcptrace. A sample that only one side takes must have a
//! known reason. The statistics are also compared.
//!
//! A sample belongs to the segment that an ACK ends with. All three programs measure from the first copy of
//! the segment. They differ in these points:
//!
//! - We take no sample if the ACK was delayed by a hole (SACK had reported the segment before), or if it
//!   covers retransmitted data. If an echoed timestamp identifies the transmission, we measure from that one
//!   (RFC 7323 §4).
//! - tshark takes a sample from every ACK that ends with a segment, and does not use timestamps. It does not
//!   analyse packets with truncated options.
//! - tcptrace takes no sample if anything below the segment was retransmitted later than the segment, even if
//!   the retransmission was acknowledged meanwhile. It ignores SACK: if a packet was overtaken and not
//!   retransmitted, tcptrace takes the delayed sample. If an ACK covers retransmitted data and a later
//!   segment, it takes the sample of the later segment.
//!
//! The tools also take a sample from the handshake, which we report separately. tcptrace's statistics of
//! full-sized segments are not compared: it treats only the SYN as full-sized, unless the SYN was
//! retransmitted.

use std::collections::BTreeMap;

use airtcp_analyze::trace::{RttSample, Sending, SentSegment, Trace};

use super::tools::*;

/// Times in captures are in microseconds, and the tools round to microseconds.
const TICK: f64 = 1.01e-6;

/// The samples of one capture, by the frame of the ACK.
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
            samples.insert(ack.expect("each sample belongs to an ACK").number, *sample);
        }
        Self { trace, samples }
    }

    /// The data that the ACK in this frame newly acknowledges.
    fn acked(&self, frame: u64) -> std::ops::Range<u64> {
        let at = self.trace.acks.iter().position(|ack| ack.number == frame).expect("the frame is an ACK");
        let before = self.trace.acks[..at].iter().map(|ack| ack.ack).max().unwrap_or(0);
        before..self.trace.acks[at].ack
    }

    /// The first copy of the segment that ends at `end`.
    fn segment(&self, end: u64) -> Option<&SentSegment> {
        self.trace.segments.iter().find(|segment| segment.end == end)
    }

    /// Returns whether the ACK in this frame covers data that was sent twice.
    fn covers_retransmitted(&self, frame: u64) -> bool {
        let acked = self.acked(frame);
        let again = self.trace.segments.iter().filter(|segment| segment.sending != Sending::New);
        let mut before = again.filter(|segment| segment.number < frame);
        before.any(|segment| segment.start < acked.end && acked.start < segment.end)
    }

    /// Returns whether the ACK in this frame covers data that SACK had reported before.
    fn covers_sacked(&self, frame: u64) -> bool {
        let acked = self.acked(frame);
        let before = self.trace.acks.iter().filter(|ack| ack.number < frame);
        before.flat_map(|ack| &ack.sack).any(|(left, right)| *left < acked.end && acked.start < *right)
    }

    /// Returns whether data below the segment was retransmitted after the segment was sent.
    fn was_retransmitted_below(&self, start: u64) -> bool {
        let segments = &self.trace.segments;
        let first = segments.iter().position(|segment| segment.start == start).expect("it was sent");
        let mut below = segments[first..].iter().filter(|other| other.start < start);
        below.any(|other| segments[..first].iter().any(|copy| copy.start == other.start))
    }

    fn is_syn(&self, frame: u64) -> bool {
        self.acked(frame).end == 1
    }
}

/// Differences between tshark's samples and ours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct WithTshark {
    /// Samples that only tshark has: the ACK was delayed, and no timestamp identifies the transmission.
    /// tshark measures from the first copy.
    waited: usize,
    /// Samples of both, where ours starts at the transmission that the timestamp identifies.
    echoed: usize,
    /// Samples that only we have: the ACK's options are truncated.
    cut: usize,
}

/// The differences of each capture that has any.
const KNOWN: [(&str, WithTshark); 17] = [
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

pub(super) fn check_rtt_samples_match_tshark(name: &str, ours: &Ours, theirs: &[Dissected]) {
    let known = KNOWN.iter().find(|(one, _)| *one == name).map(|(_, differs)| *differs);
    assert_eq!(WithTshark::count(name, ours, theirs), known.unwrap_or_default(), "{name}");
    check_percentiles_match_samples(name, ours);
}

impl WithTshark {
    /// Counts the differences. Each must have one of the known reasons.
    fn count(name: &str, ours: &Ours, theirs: &[Dissected]) -> Self {
        let acks = || theirs.iter().filter(|packet| !packet.is_from_sender);
        let taken: BTreeMap<u64, f64> = acks()
            .filter(|ack| ack.has("tcp.analysis.ack_rtt") && !ours.is_syn(ack.frame()))
            .map(|ack| (ack.frame(), ack.field("tcp.analysis.ack_rtt").parse().unwrap()))
            .collect();
        let mut differs = Self::default();
        for (frame, rtt) in &taken {
            match ours.samples.get(frame) {
                Some(sample) if (sample.seconds - rtt).abs() <= TICK => {}
                Some(sample) => {
                    assert!(sample.timestamps, "{name}: frame {frame}: {sample:?}, tshark {rtt}");
                    differs.echoed += 1;
                }
                None => {
                    let waited = ours.covers_retransmitted(*frame) || ours.covers_sacked(*frame);
                    assert!(waited, "{name}: frame {frame}: only tshark has a sample: {rtt}");
                    differs.waited += 1;
                }
            }
        }
        // ACKs with truncated options: longer on the wire than in the file, without a payload.
        let cut: Vec<u64> = acks()
            .filter(|ack| ack.payload_len() == Some(0) && ack.is_cut())
            .map(|ack| ack.frame())
            .collect();
        for (frame, sample) in ours.samples.iter().filter(|(frame, _)| !taken.contains_key(frame)) {
            assert!(cut.contains(frame), "{name}: frame {frame}: only we have a sample: {sample:?}");
            differs.cut += 1;
        }
        differs
    }
}

/// Nearest-rank percentiles. With many samples, the analysis uses a histogram that is exact to 1 %.
fn check_percentiles_match_samples(name: &str, ours: &Ours) {
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
            (Some(output), Some(expected)) => {
                assert!(
                    (output / expected - 1.0).abs() < 0.01 + TICK / expected,
                    "{name}: {figure}: {output} instead of {expected}"
                );
            }
            (output, expected) => panic!("{name}: {figure}: {output:?} instead of {expected:?}"),
        }
    }
}

/// An echoed timestamp identifies a transmission that carried it and that the ACK covers.
pub(super) fn check_samples_start_at_echoed_timestamps(name: &str, ours: &Ours, theirs: &[Dissected]) {
    let by_frame: BTreeMap<u64, &Dissected> = theirs.iter().map(|packet| (packet.frame(), packet)).collect();
    for (frame, sample) in ours.samples.iter().filter(|(_, sample)| sample.timestamps) {
        let acked = ours.acked(*frame);
        let sent = ours.trace.segments.iter().find(|segment| {
            let rtt = (sample.at - segment.at) as f64 / 1e9;
            (rtt - sample.seconds).abs() < 1e-9 && segment.start < acked.end && acked.start < segment.end
        });
        let sent = sent.unwrap_or_else(|| panic!("{name}: {sample:?}: no transmission at its start"));
        let (carried, echoed) = (by_frame[&sent.number], by_frame[frame]);
        assert!(carried.is_from_sender && !echoed.is_from_sender, "{name}: {sample:?}");
        let [tsval, tsecr] = ["tsval", "tsecr"].map(|field| format!("tcp.options.timestamp.{field}"));
        assert_eq!(carried.field(&tsval), echoed.field(&tsecr), "{name}: {sample:?}");
    }
}

/// Differences between tcptrace's samples and ours, for segments that were sent once.
#[derive(Debug, Default, PartialEq)]
struct WithTcptrace {
    /// Samples that only we have: data below the segment was retransmitted later.
    sent_again_below: usize,
    /// Samples that only tcptrace has: SACK had reported the segment before, because an overtaken packet was
    /// missing.
    overtaken: usize,
    /// Samples that only tcptrace has: the ACK also covers data below the segment. That data was
    /// retransmitted before this segment was sent, or tcptrace saw only its second copy.
    sent_again_before: usize,
}

#[test]
fn rtt_samples_match_tcptrace() {
    let known = [
        ("eifel", WithTcptrace { sent_again_below: 6, overtaken: 0, sent_again_before: 0 }),
        ("rebate", WithTcptrace { sent_again_below: 0, overtaken: 9, sent_again_before: 0 }),
        ("receiver", WithTcptrace { sent_again_below: 0, overtaken: 0, sent_again_before: 2 }),
        ("reset", WithTcptrace { sent_again_below: 0, overtaken: 0, sent_again_before: 1 }),
    ];
    let mut found = Vec::new();
    for name in names() {
        let (ours, theirs) = (Ours::of(&name), tcptrace(&name));
        // By the segment's first sequence number, as in tcptrace. The SYN has number 0.
        let mut once: BTreeMap<u64, f64> = BTreeMap::new();
        for (frame, sample) in ours.samples.iter().filter(|(_, sample)| !sample.timestamps) {
            let segment = ours.segment(ours.acked(*frame).end).expect("the capture contains the segment");
            once.insert(segment.start, sample.seconds);
        }
        let first = first_number(&name);
        let taken = theirs.samples.iter().map(|(seq, ms)| (u64::from(seq.wrapping_sub(first)), *ms));
        let taken: BTreeMap<u64, u64> = taken.collect();
        // tcptrace's statistics must match these samples.
        let mut samples = Vec::new();
        let mut differs = WithTcptrace::default();
        for (start, ms) in &taken {
            let rtt = match once.get(start) {
                Some(rtt) => *rtt,
                None => {
                    let (segment, ack) = acknowledged(&ours, *start);
                    match (ours.covers_retransmitted(ack.0), ours.covers_sacked(ack.0)) {
                        _ if *start == 0 => {}
                        (true, _) if !ours.was_retransmitted_below(*start) => differs.sent_again_before += 1,
                        (false, true) => differs.overtaken += 1,
                        _ => panic!("{name}: segment {start}: only tcptrace has a sample: {ms} ms"),
                    }
                    (ack.1 - segment) as f64 / 1e9
                }
            };
            let within = *ms as f64 / 1e3 - TICK..=(*ms + 1) as f64 / 1e3 + TICK;
            assert!(within.contains(&rtt), "{name}: segment {start}: {ms} ms, ours {rtt} s");
            samples.push(rtt);
        }
        for start in once.keys().filter(|start| !taken.contains_key(start)) {
            assert!(ours.was_retransmitted_below(*start), "{name}: segment {start}: only we have a sample");
            differs.sent_again_below += 1;
        }
        check_statistics_match_tcptrace(&name, &theirs, &samples);
        if differs != WithTcptrace::default() {
            found.push((name, differs));
        }
    }
    assert_eq!(found, known.map(|(name, differs)| (name.to_owned(), differs)));
}

/// The time at which the segment was first sent, and the frame and the time of the ACK that ends with this
/// segment.
fn acknowledged(ours: &Ours, start: u64) -> (i64, (u64, i64)) {
    let segment = ours.trace.segments.iter().find(|segment| segment.start == start).expect("it was sent");
    let ack = ours.trace.acks.iter().find(|ack| ack.ack == segment.end).expect("it was acknowledged");
    (segment.at, (ack.number, ack.at))
}

/// Compares tcptrace's statistics, which it rounds to 0.1 ms.
fn check_statistics_match_tcptrace(name: &str, theirs: &Tcptrace, samples: &[f64]) {
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
        let output: f64 = theirs.figure(figure);
        assert!(
            (output - expected * 1e3).abs() < 0.06,
            "{name}: {figure}: {output}, ours {}",
            expected * 1e3
        );
    }
}
