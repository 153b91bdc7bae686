//! The selection and the order of the connections in the output.

use airtcp_testkit::frames::{ACK, SYN, Tcp, v4};
use airtcp_testkit::machine::{TempFile, airtcp, run};
use serde_json::Value;

use super::builder::{Frames, line, text};
use crate::tools::tshark_text;

/// Three connections: one at 0 s that lasts 1 s and carries 1000 bytes, one at 10 s that lasts 5 s and
/// carries 3000 bytes, and one at 100 s that is not answered.
fn three_connections() -> Frames {
    let mut frames = Frames::default();
    for (at, host, port, len, seconds) in [(0.0, 1, 80, 1000, 1.0), (10.0, 3, 443, 3000, 5.0)] {
        let (client, server) = (v4(host, 4000), v4(2, port));
        frames.open(at, client, server);
        frames.tcp(at + 0.1, &Tcp::new(client, server, ACK, 101, 501, len));
        frames.tcp(at + seconds, &Tcp::new(server, client, ACK, 501, 101 + len as u32, 0));
    }
    frames.tcp(100.0, &Tcp::new(v4(1, 4001), v4(5, 22), SYN, 1, 0, 0));
    frames
}

fn numbers(file: &TempFile, more: &[&str]) -> Vec<u64> {
    let ended = run(&[&["analyze", "--json", file.path()], more].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{more:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let connections = document["captures"][0]["connections"].as_array().unwrap();
    assert_eq!(document["captures"][0]["totals"]["connections"], 3);
    connections.iter().map(|connection| connection["number"].as_u64().unwrap()).collect()
}

#[test]
fn filters_select_connections_and_keep_their_numbers() {
    let file = three_connections().file();
    // The first frame is at 1000000000 s, which is 01:46:40 UTC.
    for (more, chosen) in [
        (&["--host", "10.0.0.3"][..], &[1][..]),
        (&["--host", "10.0.0.1"], &[0, 2]),
        (&["--host", "10.0.0.1", "--host", "10.0.0.3", "--port", "443", "--port", "22"], &[1, 2]),
        (&["--port", "4001"], &[2]),
        (&["--between", "2s", "12s"], &[1]),
        (&["--between", "0s", "12s"], &[0, 1]),
        (&["--between", "1000000012", "1000000200.5"], &[1, 2]),
        (&["--between", "2001-09-09T01:46:52", "2001-09-09T01:46:53"], &[1]),
        (&["--between", "01:46:52", "01:48:30"], &[1, 2]),
        (&["--between", "20s", "30s"], &[]),
    ] {
        let mut command = airtcp(&[&["analyze", "--json", file.path()], more].concat());
        let output = command.env("TZ", "UTC").output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let connections = document["captures"][0]["connections"].as_array().unwrap();
        let numbers: Vec<_> = connections.iter().map(|it| it["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, chosen, "{more:?}");
    }
    line(&text(&file, &["--host", "10.0.0.3"]), &["2 connections left out (--host, --port, --between)"]);
    for more in [&["--between", "9s", "1s"][..], &["--between", "noon", "1s"], &["--host", "10.0.0.1:80"]] {
        let ended = run(&[&["analyze", file.path()], more].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{more:?}: {}", ended.stderr);
    }
}

#[test]
fn connections_are_sorted_and_limited() {
    let file = three_connections().file();
    assert_eq!(numbers(&file, &["--sort", "bytes"]), [1, 0, 2]);
    assert_eq!(numbers(&file, &["--sort", "start"]), [0, 1, 2]);
    assert_eq!(numbers(&file, &["--sort", "duration", "--top", "1"]), [1]);
    assert_eq!(numbers(&file, &["--sort", "goodput", "--most", "2"]), [0, 1]);
    let text = text(&file, &["--sort", "bytes", "--top", "1"]);
    line(&text, &["1  10.0.0.3:4000  10.0.0.2:443"]);
    line(&text, &["and 1 more: --most 2 shows them"]);
}

#[test]
fn overview_lists_connections_in_start_order() {
    let file = three_connections().file();
    let output = airtcp(&["analyze", "--overview", "--wide", file.path()]).env("TZ", "UTC").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().skip(1).take(4).collect();
    let words: Vec<Vec<_>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0][..2], ["began", "2001-09-09"], "{text}");
    assert_eq!(words[1][..5], ["01:46:40.000000", "0", "10.0.0.1:4000", "10.0.0.2:80", "1.000"], "{text}");
    assert_eq!(words[2][..5], ["01:46:50.000000", "1", "10.0.0.3:4000", "10.0.0.2:443", "5.000"], "{text}");
    assert_eq!(words[2][5..], ["3.00", "kB", "0", "B", "undetermined", "not", "closed"], "{text}");
    assert!(lines[3].ends_with("no answer to 1 SYN"), "{text}");
    line(&text, &["the first frame came 2001-09-09 01:46:40.000000 +00:00"]);
    // tshark lists the same conversations.
    let conversations = tshark_text(&["-q", "-z", "conv,tcp", "-r", file.path()]);
    for line in &words[1..] {
        let [from, to] = [line[2], line[3]];
        assert!(conversations.lines().any(|it| it.contains(from) && it.contains(to)), "{conversations}");
    }
    let few = super::builder::text(&file, &["--overview", "--top", "1"]);
    line(&few, &["and 2 more: --most 3 shows them"]);
    assert!(few.contains("10.0.0.1:4000") && !few.contains("10.0.0.3:4000"), "{few}");
}

#[test]
fn connection_start_is_shown_in_local_time() {
    let file = three_connections().file();
    let output = airtcp(&["analyze", "--connection", "1", file.path()]).env("TZ", "EST5").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    line(&text, &["began 2001-09-08 20:46:50.000000 -05:00, 10.000000 s after the first frame"]);
}

#[test]
fn csv_has_row_per_connection_and_per_retransmission() {
    let mut frames = three_connections();
    let (client, server) = (v4(1, 4000), v4(2, 80));
    frames.tcp(1.5, &Tcp::new(client, server, ACK, 101, 501, 1000));
    let file = frames.file();
    let rows = |more: &[&str]| {
        let ended = run(&[&["analyze", "--csv", file.path()], more].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{more:?}");
        ended.stdout.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect::<Vec<Vec<_>>>()
    };
    let connections = rows(&[]);
    let column = |rows: &[Vec<String>], heading: &str| {
        let index = rows[0].iter().position(|name| name == heading).unwrap();
        rows[1..].iter().map(|row| row[index].clone()).collect::<Vec<_>>()
    };
    assert_eq!(connections.len(), 1 + 3);
    let mut numbered: Vec<_> =
        column(&connections, "connection").into_iter().zip(column(&connections, "sent_bytes")).collect();
    numbered.sort();
    assert_eq!(
        numbered,
        [("0", "2000"), ("1", "3000"), ("2", "0")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
    assert!(column(&connections, "cause").contains(&"handshake-failed".to_owned()), "{connections:?}");
    let longest_first = column(&rows(&["--sort", "bytes"]), "connection");
    assert_eq!(longest_first, ["1", "0", "2"]);

    let resent = rows(&["--resent"]);
    assert_eq!(resent.len(), 1 + 1, "{resent:?}");
    for (heading, value) in [("connection", "0"), ("start_byte", "1"), ("from", "10.0.0.1:4000")] {
        assert_eq!(column(&resent, heading), [value], "{heading}");
    }
}
