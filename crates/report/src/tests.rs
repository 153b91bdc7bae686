use airtcp_analyze::connection::findings::RttOf;
use airtcp_analyze::trace::{
    AckSeen, DecisionSeen, Fate, Loss, Offset, RttSample, Sending, SentSegment, WindowPoint,
};
use airtcp_testkit::temporary::TempDir;
use airwire::Cause;

use super::*;

fn trace() -> Trace {
    let segment = |at: Offset, start: u64, sending, fate| SentSegment {
        at,
        number: 1,
        start,
        end: start + 1000,
        sending,
        dupacks: 0,
        in_flight: 1,
        fate,
    };
    let ack = |at, ack, sack| AckSeen { at, number: 2, ack, edge: ack + 5000, duplicate: ack == 0, sack };
    Trace {
        name: "[fd00::1]:80 → 10.0.0.2:9000".to_owned(),
        origin: 1_700_000_000_000_000_001,
        segments: vec![
            segment(0, 0, Sending::New, Fate::Lost(Loss::Airlink(Cause::Radio))),
            segment(5_000_000, 1000, Sending::New, Fate::Unknown),
            segment(1_200_000_000, 0, Sending::Timeout, Fate::Unknown),
        ],
        acks: vec![ack(50_000_000, 0, vec![(1000, 2000)]), ack(1_250_000_000, 2000, Vec::new())],
        rtt: vec![RttSample { at: 50_000_000, seconds: 0.045, timestamps: true }],
        rtt_of: RttOf::RoundTrip,
        windows: vec![WindowPoint { at: 0, in_flight: 1000, estimated: 1000, cwnd: None, ssthresh: None }],
        idle: Vec::new(),
        episodes: Vec::new(),
        decisions: vec![DecisionSeen {
            at: 1_200_000_000,
            by: "restart".to_owned(),
            what: "timeout".to_owned(),
            text: "timeout at 0".to_owned(),
            about: Some((0, 1000)),
        }],
    }
}

#[test]
fn traces_with_equal_names_get_distinct_files() {
    let dir = TempDir::new("pictures");
    let mut gallery = Gallery::create(&dir).unwrap();
    let write = |gallery: &mut Gallery| {
        let files =
            gallery.pictures(&trace(), &[Format::Svg], &EmulatedPath::default(), Range::default()).unwrap();
        files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (first, second) = (write(&mut gallery), write(&mut gallery));
    assert_eq!(first[0], "_fd00..1_.80-10.0.0.2.9000.all.svg");
    assert_eq!(second[0], "_fd00..1_.80-10.0.0.2.9000_2.all.svg");
    // One picture with all panels and four single ones. The panel of the link needs airlink's data.
    assert_eq!((first.len(), fs::read_dir(&dir).unwrap().count()), (5, 10));
}

#[test]
fn write_error_names_path() {
    let dir = TempDir::new("pictures");
    let file = dir.write("a-file", "");
    let error = Gallery::create(file.as_ref()).unwrap_err();
    assert!(error.to_string().contains("a-file"), "{error}");
}

/// Checks that xplot's own reader would accept the file (xplot's README and demo.0).
fn check(file: &str) {
    const COLOURS: [&str; 9] =
        ["white", "green", "red", "blue", "yellow", "purple", "orange", "magenta", "pink"];
    let mut lines = file.lines();
    assert_eq!(lines.next(), Some("timeval double"));
    for header in ["title", "xlabel", "ylabel"] {
        assert_eq!(lines.next(), Some(header));
        assert!(!lines.next().unwrap().is_empty());
    }
    let number = |word: &str| assert!(word.parse::<f64>().unwrap().is_finite(), "{word}");
    while let Some(line) = lines.next() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["go"] => return assert_eq!(lines.next(), None),
            [colour] => assert!(COLOURS.contains(&colour), "{line}"),
            ["line", x1, y1, x2, y2] => [x1, y1, x2, y2].into_iter().for_each(number),
            ["atext" | "btext" | "ctext" | "rtext", x, y] => {
                [x, y].into_iter().for_each(number);
                assert!(!lines.next().unwrap().is_empty());
            }
            ["darrow" | "uarrow" | "dtick" | "dot" | "x" | "box", x, y] => {
                [x, y].into_iter().for_each(number)
            }
            _ => panic!("{line}"),
        }
    }
    panic!("the file lacks the final `go`");
}

#[test]
fn xplot_files_use_valid_commands_and_colours() {
    let trace = trace();
    for graph in Graph::ALL {
        check(&xplot::xplot(&trace, graph));
    }
    let text = xplot::xplot(&trace, Graph::TimeSequence);
    assert!(text.contains("title\n[fd00::1]:80_==>_10.0.0.2:9000 (time sequence graph)\n"));
    // Wall-clock times keep their nanoseconds.
    assert!(text.contains("white\ndarrow 1700000000.000000001 1000\n"), "{text}");
    assert!(text.contains("red\ndarrow 1700000001.200000001 1000\n") && text.contains("\nTR\n"));
    assert!(text.contains("purple\nline 1700000000.050000001 1000 1700000000.050000001 2000\n"));
    assert!(text.contains("\nx 1700000000.000000001 0\nbtext 1700000000.000000001 0\nradio\n"));
}

#[test]
fn line_break_in_name_keeps_xplot_file_valid() {
    let trace = Trace { name: "a\nline 0 0 1 1".to_owned(), ..trace() };
    check(&xplot::xplot(&trace, Graph::TimeSequence));
}
