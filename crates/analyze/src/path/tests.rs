//! Runs senders in virtual time with captures at both ends and between, and compares the analysis with the
//! path's log.

mod imperfect_captures;
mod modified_packets;

use std::fs;

use aircaptures::capture::Capture;
use airtcp::recovery::What;
use airtcp_sim::world::{Dropped, Losses, World};
use airtcp_testkit::temporary::TempDir;
use airwire::Cause;

use super::findings::{FlowFindings, Transit};
use super::judges::verdicts;
use super::*;
use crate::connections::Traces;
use crate::survey;
use crate::test_support::{LATE, Recording, run_flow, scenario};

type Packets = Vec<(i64, Vec<u8>)>;

const MS: i64 = 1_000_000;
/// Offset of the source address in an IPv4 header. The destination address follows four bytes later.
const SOURCE: usize = 12;

struct Run {
    world: World,
    fixed: Packets,
    mobile: Packets,
    directory: TempDir,
}

fn run(scenario: &str, recipe: &str, bytes: u64) -> Run {
    let (world, recordings) = run_flow(scenario, recipe, bytes, 1);
    let packets = |recording: Recording| {
        recording.into_iter().map(|(at, packet)| (at.as_nanos() as i64, packet)).collect()
    };
    let [fixed, mobile] = recordings.map(packets);
    Run { world, fixed, mobile, directory: TempDir::new("path") }
}

impl Run {
    fn losses(&self) -> &Losses {
        self.world.losses(0)
    }

    /// Writes a pcap file of IP packets with nanosecond timestamps.
    fn capture(&self, name: &str, packets: &Packets) -> PathBuf {
        self.truncated_capture(name, packets, usize::MAX)
    }

    /// Writes a pcap file with at most `snap_length` bytes of each packet.
    fn truncated_capture(&self, name: &str, packets: &Packets, snap_length: usize) -> PathBuf {
        let mut file = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            file.extend(word.to_le_bytes());
        }
        for (at, bytes) in packets {
            let at = at + 1_000_000_000_000;
            let captured = &bytes[..bytes.len().min(snap_length)];
            let lens = [captured.len() as u32, bytes.len() as u32];
            for word in [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, lens[0], lens[1]] {
                file.extend(word.to_le_bytes());
            }
            file.extend(captured);
        }
        let path = self.directory.join(name);
        fs::write(&path, file).unwrap();
        path
    }

    /// Returns the packets at the base station: after the queue and before the radio link.
    fn station(&self) -> Packets {
        let congestion = |dropped: &&Dropped| dropped.cause() == Some(Cause::Congestion);
        let dropped: Vec<_> =
            self.losses().as_slice().iter().filter(congestion).map(|it| it.sent.as_nanos() as i64).collect();
        let mut next = dropped.iter().peekable();
        let source = self.fixed[0].1[SOURCE..SOURCE + 4].to_vec();
        let down = self.fixed.iter().filter(|(_, bytes)| bytes[SOURCE..SOURCE + 4] == source);
        let mut packets = Packets::new();
        // If packets were sent at the same time, the queue drops the last ones.
        let mut moments: Vec<(i64, Vec<Vec<u8>>)> = Vec::new();
        for (at, bytes) in down {
            match moments.last_mut().filter(|(moment, _)| moment == at) {
                Some((_, together)) => together.push(bytes.clone()),
                None => moments.push((*at, vec![bytes.clone()])),
            }
        }
        for (at, mut together) in moments {
            while next.next_if(|dropped| **dropped == at).is_some() {
                together.pop();
            }
            packets.extend(together.into_iter().map(|bytes| (at + MS, bytes)));
        }
        let up = self.mobile.iter().filter(|(_, bytes)| bytes[SOURCE..SOURCE + 4] != source);
        packets.extend(up.map(|(at, bytes)| (at + MS, bytes.clone())));
        packets.sort_by_key(|(at, _)| *at);
        packets
    }

    fn files(&self) -> Files {
        let captures = vec![self.capture("fixed", &self.fixed), self.capture("mobile", &self.mobile)];
        Files { captures, ..Files::default() }
    }
}

/// Returns the findings for the data and for the ACKs.
fn flows(report: &PathFindings) -> [FlowFindings; 2] {
    let directions = &report.connections[0].directions;
    [directions[0].clone(), directions[1].clone()]
}

fn on_path(files: &Files) -> [FlowFindings; 2] {
    flows(&read(files, Keep::Findings).unwrap().0)
}

const LOSSY: &str = scenario!(
    r#"rate = "2Mbit", delay = "50ms", queue = { packets = 20 }"#,
    "kind = \"loss\"\ndown = { model = \"uniform\", per = \"2%\" }"
);
/// A queue that overflows, followed by radio losses.
const BOTH: &str = scenario!(
    r#"rate = "2Mbit", delay = "50ms", queue = { packets = 6 }"#,
    "kind = \"loss\"\ndown = { model = \"uniform\", per = \"1%\" }"
);
const LOSSY_BACK: &str = scenario!(
    r#"rate = "2Mbit", delay = "50ms""#,
    "kind = \"loss\"\nup = { model = \"uniform\", per = \"10%\" }"
);

#[test]
fn losses_are_located_between_adjacent_captures() {
    for recipe in ["newreno", "sack", "newreno+no-timestamps"] {
        let run = run(BOTH, recipe, 1_000_000);
        let [congestion, radio] = [Cause::Congestion, Cause::Radio].map(|why| run.losses().count(why) as u64);
        assert!(congestion > 3 && radio > 3, "{congestion} and {radio}");
        let [data, acks] = on_path(&run.files());
        assert_eq!((data.enters_at, acks.enters_at), (0, 1));
        assert_eq!(
            (data.data.lost, &data.data.lost_between[..]),
            (congestion + radio, &[congestion + radio][..])
        );
        assert_eq!(data.data.entered, data.data.arrived + data.data.lost, "{recipe}: {data:?}");
        assert_eq!(
            (acks.acks.lost, acks.acks.undetermined, acks.matched),
            (0, 0, acks.acks.entered + acks.data.entered)
        );
        let result = run.world.result(0);
        let bytes = [1_000_000 + result.statistics.bytes_resent, 0];
        assert_eq!(data.retransmitted, result.counters.resent(), "{recipe}");
        assert_eq!([data.bytes, acks.bytes], bytes, "{recipe}");

        let mut files = run.files();
        files.captures.insert(1, run.capture("station", &run.station()));
        let [data, acks] = on_path(&files);
        assert_eq!(data.data.lost_between, [congestion, radio], "{recipe}");
        assert_eq!((data.data.unmatched_arrivals, data.data.missed, data.data.reordered), (0, 0, 0));
        assert_eq!((acks.enters_at, acks.acks.lost), (2, 0));
        let first = data.delay_between[0].median_seconds.unwrap();
        assert!((first - 0.001).abs() < 1e-6 && data.delay.min_seconds.unwrap() > 0.05, "{data:?}");
    }
}

#[test]
fn trace_contains_fate_of_each_segment() {
    let run = run(LOSSY, "sack", 500_000);
    let files = run.files();
    let (_, fates) = read(&files, Keep::Fates).unwrap();
    let mut lost = Vec::new();
    survey::read(&mut Capture::open(&files.captures[0], None).unwrap(), Traces::All, &mut |finished| {
        let [mut trace, _] = finished.ended.traces.unwrap();
        fates.apply_to(&mut trace);
        for segment in &trace.segments {
            match segment.fate {
                Fate::Lost(_) => lost.push(segment.start),
                Fate::Arrived { at } => assert!(at - segment.at > 50 * MS),
                Fate::Spurious { .. } => {}
                Fate::Unknown => panic!("{segment:?}"),
            }
        }
    });
    let mut truth: Vec<_> = run.losses().as_slice().iter().map(|dropped| dropped.offset).collect();
    lost.sort_unstable();
    truth.sort_unstable();
    assert_eq!(lost, truth);
}

#[test]
fn lost_acks_are_counted() {
    let run = run(LOSSY_BACK, "newreno", 500_000);
    let acks_in = |packets: &Packets| {
        let source = &run.fixed[0].1[SOURCE..SOURCE + 4];
        packets.iter().filter(|(_, bytes)| &bytes[SOURCE..SOURCE + 4] != source).count() as u64
    };
    let (sent, arrived) = (acks_in(&run.mobile), acks_in(&run.fixed));
    let [_, acks] = on_path(&run.files());
    assert!(sent > arrived + 10);
    let (lost, undetermined) =
        (acks.acks.lost + acks.data.lost, acks.acks.undetermined + acks.data.undetermined);
    assert_eq!(lost + undetermined, sent - arrived, "{acks:?}");
    // No packet follows the last ACKs, so their loss cannot be detected.
    assert!(undetermined <= 2, "{acks:?}");
}

#[test]
fn retransmissions_of_arrived_data_are_spurious() {
    for recipe in ["newreno", "newreno+no-timestamps", "sack+eifel"] {
        let run = run(LATE, recipe, 1_000_000);
        let [data, _] = on_path(&run.files());
        assert_eq!((data.data.lost, data.data.undetermined), (0, 0), "{recipe}");
        assert!(data.retransmitted > 0 && data.spurious == data.retransmitted, "{recipe}: {data:?}");
    }
}

#[test]
fn simultaneous_captures_show_no_delay_and_no_losses() {
    for recipe in ["newreno", "newreno+no-timestamps"] {
        let run = run(LOSSY, recipe, 500_000);
        for captures in [2, 3] {
            let captures = vec![run.capture("fixed", &run.fixed); captures];
            let report = read(&Files { captures, ..Files::default() }, Keep::Findings).unwrap().0;
            for capture in &report.captures {
                assert_eq!((capture.clock, capture.negative_delays), (Clock::Same, 0), "{recipe}: {report}");
            }
            for flow in flows(&report) {
                assert_eq!(flow.matched, flow.data.entered + flow.acks.entered, "{recipe}: {report}");
                assert_eq!(flow.delay.max_seconds, Some(0.0), "{recipe}: {report}");
                for transit in [flow.data, flow.acks] {
                    let (entered, lost_between) = (transit.entered, vec![0; report.captures.len() - 1]);
                    let expected = Transit { entered, arrived: entered, lost_between, ..Transit::default() };
                    assert_eq!(transit, expected, "{recipe}: {report}");
                }
            }
        }
    }
}

#[test]
fn packets_with_negative_delay_are_not_lost() {
    let run = run(LOSSY, "newreno", 200_000);
    // The difference is too small to be attributed to the clock.
    let early = run.fixed.iter().map(|(at, bytes)| (at - MS / 2, bytes.clone())).collect();
    let captures = vec![run.capture("fixed", &run.fixed), run.capture("early", &early)];
    let report = read(&Files { captures, ..Files::default() }, Keep::Findings).unwrap().0;
    let negative: Vec<_> = report.captures.iter().map(|capture| capture.negative_delays).collect();
    assert!(negative[0] == 0 && negative[1] > 0, "{report}");
    for flow in flows(&report) {
        assert_eq!((flow.data.arrived, flow.data.lost), (flow.data.entered, 0), "{report}");
    }
}

#[test]
fn clock_offset_is_estimated_and_reported() {
    let run = run(LOSSY, "newreno", 500_000);
    let expected = on_path(&run.files());
    for ahead in [-5000 * MS, -70 * MS, 70 * MS, 3_600_000 * MS] {
        let shifted = run.mobile.iter().map(|(at, bytes)| (at + ahead, bytes.clone())).collect();
        let mut files = run.files();
        files.captures[1] = run.capture("shifted", &shifted);
        let report = read(&files, Keep::Findings).unwrap().0;
        let Clock::Estimated { ahead_ns } = report.captures[1].clock else { panic!("{ahead}: {report}") };
        assert!((ahead_ns - ahead).abs() < 10 * MS, "{ahead}: {ahead_ns}");
        assert!(
            report.to_string().contains("because packets would otherwise arrive before they leave"),
            "{report}"
        );
        let [data, acks] = flows(&report);
        assert_eq!((data.data, acks.acks), (expected[0].data.clone(), expected[1].acks.clone()), "{ahead}");

        files.ahead = Some(vec![ahead]);
        assert_eq!(on_path(&files), expected, "offset given by the user");
    }
    let files = Files { ahead: Some(vec![1, 2]), ..run.files() };
    assert!(matches!(read(&files, Keep::Findings), Err(PathError::Offsets { given: 2, captures: 2 })));
}

#[test]
fn address_translation_causes_no_reported_losses() {
    let mut run = run(LOSSY, "newreno", 200_000);
    for (_, bytes) in &mut run.mobile {
        bytes[SOURCE + 3] ^= 0x40;
        bytes[SOURCE + 7] ^= 0x40;
    }
    let report = read(&run.files(), Keep::Findings).unwrap().0;
    assert_eq!(report.matched, 0);
    assert!(report.connections.iter().flat_map(|it| &it.directions).all(|flow| flow.data.lost == 0));
    assert!(report.to_string().contains("no packet appears in two captures"), "{report}");
}

#[test]
fn duplicated_and_reordered_packets_are_counted() {
    let mut run = run(LATE, "newreno", 200_000);
    let source = run.fixed[0].1[SOURCE..SOURCE + 4].to_vec();
    let data = |(_, bytes): &(i64, Vec<u8>)| bytes.len() > 1000 && bytes[SOURCE..SOURCE + 4] == source;
    let at = run.mobile.iter().skip(60).position(data).unwrap() + 60;
    let copy = run.mobile[at].clone();
    run.mobile.insert(at + 1, copy);
    let first_at = run.mobile.iter().skip(100).position(data).unwrap() + 100;
    let next = run.mobile.iter().skip(first_at + 1).position(data).unwrap() + first_at + 1;
    let (first, second) = (run.mobile[first_at].1.clone(), run.mobile[next].1.clone());
    (run.mobile[first_at].1, run.mobile[next].1) = (second, first);
    let [data, _] = on_path(&run.files());
    assert_eq!((data.data.duplicated, data.data.reordered, data.data.lost), (1, 1, 0), "{data:?}");
}

#[test]
fn judges_on_capture_agree_with_judges_inside_sender() {
    let (mut total, mut on_capture, mut agreed) = (0, 0, 0);
    let mut differences = String::new();
    for recipe in ["newreno+judges", "sack+judges"] {
        let mut run = run(LOSSY, recipe, 3_000_000);
        let files = run.files();
        let (_, fates) = read(&files, Keep::Fates).unwrap();
        let mut found = Vec::new();
        survey::read(&mut Capture::open(&files.captures[0], None).unwrap(), Traces::All, &mut |finished| {
            let segment = finished.ended.findings.directions[0].sender.longest_segment_bytes;
            let [mut trace, _] = finished.ended.traces.unwrap();
            fates.apply_to(&mut trace);
            let zero = trace.origin - 1_000_000_000_000;
            found.extend(verdicts(&trace, u64::from(segment), 2).into_iter().map(|it| (it.at + zero, it)));
        });
        on_capture += found.len();
        for decision in run.world.decisions(0) {
            let What::Judged { cause, .. } = decision.what else { continue };
            total += 1;
            let at = decision.at.as_nanos() as i64;
            let verdict = found.iter().find(|(when, it)| *when == at && it.judge == decision.by);
            match verdict {
                Some((_, verdict)) if verdict.cause == cause => agreed += 1,
                other => differences += &format!("{recipe} {at} {} {cause:?}: {other:?}\n", decision.by),
            }
        }
    }
    assert!(total > 100, "{total}");
    // The window during fast recovery is not on the wire, so the verdicts may differ.
    assert!(
        agreed * 10 >= total * 9 && on_capture * 10 <= total * 11,
        "{agreed} of {total}, {on_capture}:\n{differences}"
    );
}
