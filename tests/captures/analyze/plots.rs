//! Plots of unusual captures: they are drawn, and the plotting program prints no messages of its own.

use std::fs;

use aircaptures::capture::Capture;
use airtcp_analyze::connections::Traces;
use airtcp_analyze::survey;
use airtcp_analyze::trace::Trace;
use airtcp_report::Gallery;
use airtcp_report::emulation::EmulatedPath;
use airtcp_report::panels::Range;
use airtcp_report::plot::Format;
use airtcp_testkit::frames::{ACK, ETHERNET, Pcap, SYN, SYN_ACK, Tcp, v4};
use airtcp_testkit::machine::{TempDir, run};
use airtcp_testkit::sample::sample;

use super::file;

const SECOND: u64 = 1_000_000_000;
const BEGIN: u64 = 1_700_000_000 * SECOND;

/// Frames with their times in nanoseconds since 1970.
fn capture(frames: impl IntoIterator<Item = (u64, Tcp)>) -> Vec<u8> {
    let mut pcap = Pcap::new(ETHERNET);
    for (at, tcp) in frames {
        let frame = tcp.ethernet();
        pcap.header(at, frame.len() as u32, frame.len() as u32);
        pcap.file.extend(frame);
    }
    pcap.file
}

fn data(sequence: u32, len: u32) -> Tcp {
    Tcp::new(v4(1, 4000), v4(2, 80), ACK, sequence, 501, len as usize)
}

fn ack(sequence: u32) -> Tcp {
    Tcp::new(v4(2, 80), v4(1, 4000), ACK, 501, sequence, 0)
}

/// A handshake, then one segment for each sequence number with its ACK. `at` maps the index of a packet to
/// its time.
fn transfer(sequences: impl IntoIterator<Item = u32>, at: impl Fn(u64) -> u64) -> Vec<u8> {
    let handshake = [
        Tcp::new(v4(1, 4000), v4(2, 80), SYN, 0, 0, 0),
        Tcp::new(v4(2, 80), v4(1, 4000), SYN_ACK, 500, 1, 0),
        data(1, 0),
    ];
    let segments = sequences.into_iter().flat_map(|start| [data(start, 1000), ack(start.wrapping_add(1000))]);
    capture(handshake.into_iter().chain(segments).enumerate().map(|(index, tcp)| (at(index as u64), tcp)))
}

#[test]
fn unusual_captures_are_plotted_without_error_output() {
    let thousands = || (0..20).map(|index| 1 + index * 1000);
    let regular = |index: u64| BEGIN + index * SECOND / 20;
    let captures = [
        ("one packet", capture([(BEGIN, data(1, 1000))])),
        (
            "two packets and a year",
            capture([(BEGIN, data(1, 1000)), (BEGIN + 31_000_000 * SECOND, data(1, 1000))]),
        ),
        ("no data", capture([(BEGIN, ack(1))])),
        ("no packet", capture([])),
        ("all at one time", transfer(thousands(), |_| BEGIN)),
        ("within nanoseconds", transfer(thousands(), |index| BEGIN + index)),
        ("a clock that goes back", transfer(thousands(), |index| BEGIN - index * SECOND)),
        (
            "a clock that was set to 1970 and to 2106",
            transfer(thousands(), |index| match index {
                ..20 => regular(index),
                20..30 => index,
                _ => u64::from(u32::MAX) * SECOND + index,
            }),
        ),
        ("gigabytes missing", transfer((0..20).map(|index| 1 + index / 10 * 1_500_000_000), regular)),
        (
            "half of all numbers at once",
            transfer((0..20u32).map(|index| index.wrapping_mul(1_900_000_000)), regular),
        ),
    ];
    for (name, octets) in &captures {
        let (capture, directory) = (file(octets), TempDir::new("strange"));
        let pictures = directory.path("pictures");
        fs::create_dir(&pictures).unwrap();
        let range = Range { fold: true, ..Range::default() };
        let mut gallery = Gallery::create(pictures.as_ref()).unwrap();
        for trace in traces(capture.path()).iter().filter(|trace| !trace.segments.is_empty()) {
            gallery.pictures(trace, &[Format::Svg], &EmulatedPath::default(), range).unwrap();
        }
        let drawn = fs::read_dir(&pictures).unwrap().count();
        assert_eq!(drawn > 0, is_drawn(name), "{name}: {drawn} files");
        let ended = run(&["report", capture.path(), "-o", &directory.path("page.html")]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{name}");
    }
    // A PNG file takes a hundred times as long to draw as an SVG file and has the same shapes, so a sample is
    // enough.
    for (name, octets) in sample("strange", &captures, 1) {
        let (capture, directory) = (file(octets), TempDir::new("strange"));
        let pictures = directory.path("pictures");
        let ended = run(&["analyze", capture.path(), "--fold", "--plot", &pictures, "--xplot", &pictures]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{name}");
        let files = |kind: &str| {
            let entries = fs::read_dir(&pictures).into_iter().flatten();
            entries.filter(|entry| entry.as_ref().unwrap().path().extension().unwrap() == kind).count()
        };
        let drawn = ["svg", "png", "pdf", "xpl"].map(files);
        assert!(drawn.iter().all(|files| (*files > 0) == is_drawn(name)), "{name}: {drawn:?}");
        assert!(drawn[..3].iter().all(|files| *files == drawn[0]), "{name}: {drawn:?}");
    }
}

fn is_drawn(name: &str) -> bool {
    !["no data", "no packet"].contains(&name)
}

fn traces(path: &str) -> Vec<Trace> {
    let mut capture = Capture::open(path.as_ref(), None).unwrap();
    let mut traces = Vec::new();
    survey::read(&mut capture, Traces::All, &mut |finished| traces.extend(finished.ended.traces.unwrap()));
    traces
}
