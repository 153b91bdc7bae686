//! `airtcp report` for captures that were not made by `airtcp lab`.

use airtcp_testkit::frames::{ACK, Tcp, v4};
use airtcp_testkit::machine::{TempFile, run};

use super::builder::Frames;

/// A capture with one connection per client, each with the given number of segments of 1000 bytes.
fn capture(segments: &[u32]) -> TempFile {
    let mut frames = Frames::default();
    for (client, segments) in segments.iter().enumerate() {
        let (client, server) = (v4(10 + client as u8, 4000), v4(2, 80));
        frames.open(0.0, client, server);
        for segment in 0..*segments {
            let at = 0.1 + f64::from(segment) * 0.01;
            frames.tcp(at, &Tcp::new(client, server, ACK, 101 + segment * 1000, 501, 1000));
            frames.tcp(at + 0.005, &Tcp::new(server, client, ACK, 501, 1101 + segment * 1000, 0));
        }
    }
    frames.file()
}

fn page(args: &[&str]) -> (String, String) {
    let file = TempFile::new("page");
    let ended = run(&[&["report", "-o", file.path()], args].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{args:?}");
    (ended.stdout, std::fs::read_to_string(file.path()).unwrap())
}

#[test]
fn page_has_row_for_each_connection() {
    let file = capture(&[3, 9, 6]);
    let (output, html) = page(&[file.path()]);
    assert!(output.contains("3 graphs"), "{output}");
    for client in ["10.0.0.10:4000", "10.0.0.11:4000", "10.0.0.12:4000"] {
        assert!(html.contains(&format!("{client} → 10.0.0.2:80</button>")), "{client}");
    }
    assert_eq!(html.matches("class=\"run\" id=").count(), 3);
    assert!(!html.contains("with most data"), "all connections have graphs");
}

#[test]
fn page_graphs_connections_with_most_data() {
    let file = capture(&[3, 9, 6]);
    let (output, html) = page(&[file.path(), "--top", "1"]);
    assert!(output.contains("1 graph"), "{output}");
    assert!(html.contains("Graphs of 1 connection with most data"), "{html}");
    assert!(html.contains("\"name\":\"connection 1: 10.0.0.11:4000 → 10.0.0.2:80\""), "{html}");
    let (output, html) = page(&[file.path(), "-f", "host 10.0.0.10"]);
    assert!(output.contains("1 graph") && !html.contains("10.0.0.11"), "{output}");
}

#[test]
fn non_capture_is_rejected() {
    for (args, code, expected) in [
        (&["report", "/nonexistent.pcap"][..], 2, "or a capture"),
        (&["report", "/etc/hostname"], 1, "not a supported capture"),
    ] {
        let ended = run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
