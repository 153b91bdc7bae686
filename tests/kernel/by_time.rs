//! Transfers with a time limit or a slow reader, and a receiver that knows the expected data.

#![expect(clippy::disallowed_methods, reason = "how long another program takes is measured")]

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;
use std::time::Instant;

use airtcp_lab::pattern::byte_at;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{
    Ended, Running, TempFile, airtcp, data, digest, namespace, run_in, wait_for_listener,
};

const V4: &str = "10.83.0.1:9000";

#[test]
fn time_limit_ends_transfer_and_sent_data_arrives() {
    let namespace = namespace();
    let sink = Running::start_in(&namespace, &["sink", "9000", "--json", "--expect-pattern"]);
    let sent = run_in(&namespace, &["send", "--for", "600ms", V4, "--json", "--timeout=10s"]).success();
    let (sent, received) = (sent.event("end"), sink.end());
    let received = received.event("end");
    assert_eq!((&sent["sha256"], &sent["bytes"]), (&received["sha256"], &received["bytes"]));
    assert!(received.get("first_difference").is_none(), "{received}");
    let seconds = sent["seconds"].as_f64().unwrap();
    assert!((0.59..3.0).contains(&seconds), "{sent}");
    assert!(sent["bytes"].as_u64().unwrap() > 1_000_000, "the sender was idle: {sent}");
}

#[test]
fn time_limit_report_excludes_buffered_data() {
    let link = "both = { rate = \"2Mbit\", delay = \"10ms\", queue = { bytes = \"200kB\" } }";
    let path = EmulatedPath::new(&format!("schema = 1\n[[stage]]\nkind = \"link\"\n{link}\n"), 1);
    let sink = Running::start_in(&path.mobile, &["sink", "9000", "--json"]);
    let sent = run_in(&path.fixed, &["send", "--for", "1s", "10.84.0.2:9000", "--json"]);
    assert_eq!((sent.code, sink.end().code), (0, 0), "{}", sent.stderr);
    let end = sent.event("end");
    let in_time = |field: &str| end["in_time"][field].as_f64().unwrap();
    assert_eq!(in_time("seconds"), 1.0);
    assert_eq!(in_time("bit_per_s"), 8.0 * in_time("bytes"));
    assert!((1e6..2e6).contains(&in_time("bit_per_s")), "the path has 2 Mbit/s: {end}");
    assert!(
        end["bytes"].as_f64().unwrap() > in_time("bytes") + 30_000.0,
        "buffered data was counted as acknowledged: {end}"
    );
}

#[test]
fn read_rate_limits_recv_and_sink() {
    let namespace = namespace();
    let sent = data(300_000);
    let recv =
        Running::start_in(&namespace, &["recv", "9000", "--json", "--read-rate=300kB/s", "--timeout=20s"]);
    let start = Instant::now();
    namespace
        .enter(|| {
            let mut stream = TcpStream::connect("10.83.0.2:9000").unwrap();
            stream.write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        })
        .unwrap();
    assert_eq!(recv.end().success().event("end")["sha256"], digest(&sent));
    // Data may be acknowledged before the receiver reads it.
    let seconds = start.elapsed().as_secs_f64();
    assert!((0.9..4.0).contains(&seconds), "300 kB at 300 kB/s took {seconds} s");

    let file = TempFile::new("sent");
    std::fs::write(file.path(), &sent).unwrap();
    let sink = Running::start_in(&namespace, &["sink", "9000", "--json", "--read-rate=2400kbit/s"]);
    run_in(&namespace, &["send", file.path(), V4, "--timeout=10s"]).success();
    let ended = sink.end();
    let end = ended.event("end");
    assert_eq!(end["sha256"], digest(&sent));
    let seconds = end["seconds"].as_f64().unwrap();
    assert!((0.9..3.0).contains(&seconds), "300 kB at 300 kB/s: {end}");
}

#[test]
fn expect_pattern_reports_first_differing_byte() {
    let namespace = namespace();
    let mut bytes: Vec<u8> = (0..60_000).map(byte_at).collect();
    bytes[40_000] ^= 0x11;
    let file = TempFile::new("nearly-the-pattern");
    std::fs::write(file.path(), &bytes).unwrap();
    let sink = ["sink", "9000", "--netns", namespace.name(), "--expect-pattern", "--count=2"];
    let mut text = airtcp(&sink);
    let text = text.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_listener(&namespace, 9000);
    let send = |what: &[&str]| {
        run_in(&namespace, &[&["send", "--timeout=10s"], what].concat()).success();
    };
    send(&[file.path(), V4]);
    send(&["--bytes=60000", V4]);
    let ended = Ended::of(text.wait_with_output().unwrap());
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 of 2 connections did not carry the test pattern"), "{}", ended.stderr);
    let stdout = ended.stdout;
    let [expected, received] = [byte_at(40_000), bytes[40_000]];
    let first = format!("byte at offset 40000 is {received:#04x}, expected {expected:#04x}");
    assert!(stdout.contains(&first), "{stdout}");
    assert_eq!(stdout.matches("all bytes match the test pattern").count(), 1, "{stdout}");

    let json = Running::start(&[&sink[..5], &["--json"]].concat());
    send(&[file.path(), V4]);
    let ended = json.end();
    let expected = serde_json::json!({ "at": 40_000, "expected": expected, "received": received });
    assert_eq!((ended.code, &ended.event("end")["first_difference"]), (1, &expected));
}
