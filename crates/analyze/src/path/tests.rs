//! Senders in virtual time, captured at both ends and between: what the captures say against what the path did.

mod changed;

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use airlink::capture::Tap;
use airlink::path::{FIXED, MOBILE};
use airtcp::recovery::What;
use airtcp_sim::world::{Losses, World};
use airwire::Cause;
use airwire::time::{Duration, Instant};

use super::findings::FlowFindings;
use super::judges::verdicts;
use super::*;
use crate::connections::Traces;
use crate::scenarios::LATE;
use crate::survey;
use aircaptures::capture::Capture;

type Packets = Vec<(i64, Vec<u8>)>;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Packets>>);

impl Tap for Captured {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.0.lock().unwrap().push((at.as_nanos() as i64, packet.to_vec()));
    }
}

const MS: i64 = 1_000_000;
/// Where an IPv4 header has its source, and four octets on its destination.
const SOURCE: usize = 12;

struct Run {
    world: World,
    fixed: Packets,
    mobile: Packets,
    directory: PathBuf,
}

impl Drop for Run {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn run(scenario: &str, recipe: &str, octets: u64) -> Run {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut world = World::one_flow(scenario, recipe, octets, 1).unwrap();
    let (fixed, mobile) = (Captured::default(), Captured::default());
    world.tap(FIXED, fixed.clone());
    world.tap(MOBILE, mobile.clone());
    assert!(world.run_to_end(Duration::from_secs(7200)).unwrap());
    let name = format!("airtcp-path-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).unwrap();
    let taken = |tap: &Captured| tap.0.lock().unwrap().clone();
    let (fixed, mobile) = (taken(&fixed), taken(&mobile));
    Run { world, fixed, mobile, directory }
}

impl Run {
    fn losses(&self) -> &Losses {
        self.world.losses(0)
    }

    /// A pcap of IP packets with nanoseconds.
    fn capture(&self, name: &str, packets: &Packets) -> PathBuf {
        let mut file = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            file.extend(word.to_le_bytes());
        }
        for (at, octets) in packets {
            let at = at + 1_000_000_000_000;
            let len = octets.len() as u32;
            for word in [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, len, len] {
                file.extend(word.to_le_bytes());
            }
            file.extend(octets);
        }
        let path = self.directory.join(name);
        fs::write(&path, file).unwrap();
        path
    }

    /// Behind the queue, in front of the radio.
    fn station(&self) -> Packets {
        let congestion = |dropped: &&airtcp_sim::world::Dropped| dropped.cause() == Some(Cause::Congestion);
        let dropped: Vec<_> =
            self.losses().as_slice().iter().filter(congestion).map(|it| it.sent.as_nanos() as i64).collect();
        let mut next = dropped.iter().peekable();
        let source = self.fixed[0].1[SOURCE..SOURCE + 4].to_vec();
        let down = self.fixed.iter().filter(|(_, octets)| octets[SOURCE..SOURCE + 4] == source);
        let mut packets = Packets::new();
        // Of those that left at one moment, a queue drops the last.
        let mut moments: Vec<(i64, Vec<Vec<u8>>)> = Vec::new();
        for (at, octets) in down {
            match moments.last_mut().filter(|(moment, _)| moment == at) {
                Some((_, together)) => together.push(octets.clone()),
                None => moments.push((*at, vec![octets.clone()])),
            }
        }
        for (at, mut together) in moments {
            while next.next_if(|dropped| **dropped == at).is_some() {
                together.pop();
            }
            packets.extend(together.into_iter().map(|octets| (at + MS, octets)));
        }
        let up = self.mobile.iter().filter(|(_, octets)| octets[SOURCE..SOURCE + 4] != source);
        packets.extend(up.map(|(at, octets)| (at + MS, octets.clone())));
        packets.sort_by_key(|(at, _)| *at);
        packets
    }

    fn both(&self) -> Files {
        let captures = vec![self.capture("fixed", &self.fixed), self.capture("mobile", &self.mobile)];
        Files { captures, ..Files::default() }
    }
}

/// Of the data, and of the ACKs.
fn flows(report: &PathFindings) -> [FlowFindings; 2] {
    let directions = &report.connections[0].directions;
    [directions[0].clone(), directions[1].clone()]
}

fn on_path(files: &Files) -> [FlowFindings; 2] {
    flows(&read(files, Keep::Findings).unwrap().0)
}

const LOSSY: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "2Mbit", delay = "50ms", queue = { packets = 20 } }
[[stage]]
kind = "loss"
down = { model = "uniform", per = "2%" }
"#;

/// The queue overflows, and behind it the radio loses packets.
const BOTH: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "2Mbit", delay = "50ms", queue = { packets = 6 } }
[[stage]]
kind = "loss"
down = { model = "uniform", per = "1%" }
"#;

const LOSSY_BACK: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "2Mbit", delay = "50ms" }
[[stage]]
kind = "loss"
up = { model = "uniform", per = "10%" }
"#;

#[test]
fn every_loss_lies_between_the_captures_that_have_it_and_those_that_do_not() {
    for recipe in ["newreno", "sack", "newreno+no-timestamps"] {
        let run = run(BOTH, recipe, 1_000_000);
        let [congestion, radio] = [Cause::Congestion, Cause::Radio].map(|why| run.losses().count(why) as u64);
        assert!(congestion > 3 && radio > 3, "{congestion} and {radio}");
        let [data, acks] = on_path(&run.both());
        assert_eq!((data.enters_at, acks.enters_at), (0, 1));
        assert_eq!(
            (data.data.lost, &data.data.lost_between[..]),
            (congestion + radio, &[congestion + radio][..])
        );
        assert_eq!(data.data.entered, data.data.arrived + data.data.lost, "{recipe}: {data:?}");
        assert_eq!(
            (acks.acks.lost, acks.acks.not_told, acks.found),
            (0, 0, acks.acks.entered + acks.data.entered)
        );
        assert_eq!(data.sent_again, run.world.result(0).counters.resent(), "{recipe}");

        let mut files = run.both();
        files.captures.insert(1, run.capture("station", &run.station()));
        let [data, acks] = on_path(&files);
        assert_eq!(data.data.lost_between, [congestion, radio], "{recipe}");
        assert_eq!((data.data.came_from_nowhere, data.data.missed, data.data.reordered), (0, 0, 0));
        assert_eq!((acks.enters_at, acks.acks.lost), (2, 0));
        let first = data.delay_between[0].median_seconds.unwrap();
        assert!((first - 0.001).abs() < 1e-6 && data.delay.min_seconds.unwrap() > 0.05, "{data:?}");
    }
}

#[test]
fn the_fates_stand_in_the_trace() {
    let run = run(LOSSY, "sack", 500_000);
    let files = run.both();
    let (_, fates) = read(&files, Keep::Fates).unwrap();
    let mut lost = Vec::new();
    survey::read(&mut Capture::open(&files.captures[0], None).unwrap(), Traces::All, &mut |finished| {
        let [mut trace, _] = finished.ended.traces.unwrap();
        fates.lay_over(&mut trace);
        for segment in &trace.segments {
            match segment.fate {
                Fate::Lost(_) => lost.push(segment.start),
                Fate::Arrived { at } => assert!(at - segment.at > 50 * MS),
                Fate::Unneeded { .. } => {}
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
    let back = |packets: &Packets| {
        let source = &run.fixed[0].1[SOURCE..SOURCE + 4];
        packets.iter().filter(|(_, octets)| &octets[SOURCE..SOURCE + 4] != source).count() as u64
    };
    let (left, came) = (back(&run.mobile), back(&run.fixed));
    let [_, acks] = on_path(&run.both());
    assert!(left > came + 10);
    let (lost, not_told) = (acks.acks.lost + acks.data.lost, acks.acks.not_told + acks.data.not_told);
    assert_eq!(lost + not_told, left - came, "{acks:?}");
    // Nothing comes behind the last ones.
    assert!(not_told <= 2, "{acks:?}");
}

#[test]
fn what_had_arrived_was_sent_again_without_need() {
    for recipe in ["newreno", "newreno+no-timestamps", "sack+eifel"] {
        let run = run(LATE, recipe, 1_000_000);
        let [data, _] = on_path(&run.both());
        assert_eq!((data.data.lost, data.data.not_told), (0, 0), "{recipe}");
        assert!(data.sent_again > 0 && data.unneeded == data.sent_again, "{recipe}: {data:?}");
    }
}

#[test]
fn a_clock_that_is_ahead_is_noticed_and_said() {
    let run = run(LOSSY, "newreno", 500_000);
    let right = on_path(&run.both());
    for ahead in [-5000 * MS, -70 * MS, 70 * MS, 3_600_000 * MS] {
        let shifted = run.mobile.iter().map(|(at, octets)| (at + ahead, octets.clone())).collect();
        let mut files = run.both();
        files.captures[1] = run.capture("shifted", &shifted);
        let report = read(&files, Keep::Findings).unwrap().0;
        let Clock::Estimated { ahead_ns } = report.captures[1].clock else { panic!("{ahead}: {report}") };
        assert!((ahead_ns - ahead).abs() < 10 * MS, "{ahead}: {ahead_ns}");
        assert!(
            report.to_string().contains("because packets would otherwise arrive before they leave"),
            "{report}"
        );
        let [data, acks] = flows(&report);
        assert_eq!((data.data, acks.acks), (right[0].data.clone(), right[1].acks.clone()), "{ahead}");

        files.ahead = Some(vec![ahead]);
        assert_eq!(on_path(&files), right, "said");
    }
    let files = Files { ahead: Some(vec![1, 2]), ..run.both() };
    assert!(matches!(read(&files, Keep::Findings), Err(PathError::Offsets { given: 2, captures: 2 })));
}

#[test]
fn behind_a_translator_of_addresses_nothing_is_called_lost() {
    let mut run = run(LOSSY, "newreno", 200_000);
    for (_, octets) in &mut run.mobile {
        octets[SOURCE + 3] ^= 0x40;
        octets[SOURCE + 7] ^= 0x40;
    }
    let report = read(&run.both(), Keep::Findings).unwrap().0;
    assert_eq!(report.found_again, 0);
    assert!(report.connections.iter().flat_map(|it| &it.directions).all(|flow| flow.data.lost == 0));
    assert!(report.to_string().contains("no packet appears in two captures"), "{report}");
}

#[test]
fn copies_and_overtaking_are_seen() {
    let mut run = run(LATE, "newreno", 200_000);
    let source = run.fixed[0].1[SOURCE..SOURCE + 4].to_vec();
    let data = |(_, octets): &(i64, Vec<u8>)| octets.len() > 1000 && octets[SOURCE..SOURCE + 4] == source;
    let at = run.mobile.iter().skip(60).position(data).unwrap() + 60;
    let copy = run.mobile[at].clone();
    run.mobile.insert(at + 1, copy);
    let place = run.mobile.iter().skip(100).position(data).unwrap() + 100;
    let next = run.mobile.iter().skip(place + 1).position(data).unwrap() + place + 1;
    let (first, second) = (run.mobile[place].1.clone(), run.mobile[next].1.clone());
    (run.mobile[place].1, run.mobile[next].1) = (second, first);
    let [data, _] = on_path(&run.both());
    assert_eq!((data.data.duplicated, data.data.reordered, data.data.lost), (1, 1, 0), "{data:?}");
}

#[test]
fn the_judges_say_of_a_capture_what_they_say_inside_the_sender() {
    let (mut asked, mut told, mut agreed) = (0, 0, 0);
    let mut differences = String::new();
    for recipe in ["newreno+judges", "sack+judges"] {
        let mut run = run(LOSSY, recipe, 3_000_000);
        let files = run.both();
        let (_, fates) = read(&files, Keep::Fates).unwrap();
        let mut found = Vec::new();
        survey::read(&mut Capture::open(&files.captures[0], None).unwrap(), Traces::All, &mut |finished| {
            let segment = finished.ended.findings.directions[0].sender.longest_segment_bytes;
            let [mut trace, _] = finished.ended.traces.unwrap();
            fates.lay_over(&mut trace);
            let zero = trace.origin - 1_000_000_000_000;
            found.extend(verdicts(&trace, u64::from(segment), 2).into_iter().map(|it| (it.at + zero, it)));
        });
        told += found.len();
        for decision in run.world.decisions(0) {
            let What::Judged { cause, .. } = decision.what else { continue };
            asked += 1;
            let at = decision.at.as_nanos() as i64;
            let verdict = found.iter().find(|(when, it)| *when == at && it.judge == decision.by);
            match verdict {
                Some((_, verdict)) if verdict.cause == cause => agreed += 1,
                other => differences += &format!("{recipe} {at} {} {cause:?}: {other:?}\n", decision.by),
            }
        }
    }
    assert!(asked > 100, "{asked}");
    // The window inside fast recovery is not on the wire.
    assert!(
        agreed * 10 >= asked * 9 && told * 10 <= asked * 11,
        "{agreed} of {asked}, {told}:\n{differences}"
    );
}
