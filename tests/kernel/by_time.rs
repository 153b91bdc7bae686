//! Transfers with a time limit or a slow reader, and a receiver that knows the expected data.

#![expect(clippy::disallowed_methods, reason = "how long another program takes is measured")]

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;
use std::time::Instant;

use airtcp_lab::pattern::byte_at;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{
    Ended, Running, TempFile, airtcp, data, digest, namespace, run, wait_for_listener,
};

const V4: &str = "10.83.0.1:9000";

#[test]
fn time_limit_ends_transfer_and_sent_data_arrives() {
    let namespace = namespace();
    let sink = Running::start(&["sink", "9000", "--netns", namespace.name(), "--json", "--expect-pattern"]);
    let sent = run(&["send", "--for", "600ms", V4, "--netns", namespace.name(), "--json", "--timeout=10s"]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
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
    let sink = Running::start(&["sink", "9000", "--netns", path.mobile.name(), "--json"]);
    let sent = run(&["send", "--for", "1s", "10.84.0.2:9000", "--netns", path.fixed.name(), "--json"]);
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
    let ours =
        ["recv", "9000", "--netns", namespace.name(), "--json", "--read-rate", "300kB/s", "--timeout=20s"];
    let recv = Running::start(&ours);
    let start = Instant::now();
    namespace
        .enter(|| {
            let mut stream = TcpStream::connect("10.83.0.2:9000").unwrap();
            stream.write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        })
        .unwrap();
    let ended = recv.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let end = ended.event("end");
    assert_eq!(end["sha256"], digest(&sent));
    // Data may be acknowledged before the receiver reads it.
    let seconds = start.elapsed().as_secs_f64();
    assert!((0.9..4.0).contains(&seconds), "300 kB at 300 kB/s took {seconds} s");

    let file = TempFile::new("sent");
    std::fs::write(file.path(), &sent).unwrap();
    let kernels = ["sink", "9000", "--netns", namespace.name(), "--json", "--read-rate", "2400kbit/s"];
    let sink = Running::start(&kernels);
    let ended = run(&["send", file.path(), V4, "--netns", namespace.name(), "--timeout=10s"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let ended = sink.end();
    let end = ended.event("end");
    assert_eq!(end["sha256"], digest(&sent));
    let seconds = end["seconds"].as_f64().unwrap();
    assert!((0.9..3.0).contains(&seconds), "300 kB at 300 kB/s: {end}");
}

#[test]
fn expect_pattern_reports_first_differing_byte() {
    let namespace = namespace();
    let mut octets: Vec<u8> = (0..60_000).map(byte_at).collect();
    octets[40_000] ^= 0x11;
    let file = TempFile::new("nearly-the-pattern");
    std::fs::write(file.path(), &octets).unwrap();
    let sink = ["sink", "9000", "--netns", namespace.name(), "--expect-pattern", "--count=2"];
    let mut text = airtcp(&sink);
    let text = text.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_listener(&namespace, 9000);
    let send = |what: &[&str]| {
        let ended = run(&[&["send", "--netns", namespace.name(), "--timeout=10s"], what].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    };
    send(&[file.path(), V4]);
    send(&["--bytes=60000", V4]);
    let ended = Ended::of(text.wait_with_output().unwrap());
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 of 2 connections did not carry the test pattern"), "{}", ended.stderr);
    let said = ended.stdout;
    let [expected, received] = [byte_at(40_000), octets[40_000]];
    let first = format!("byte at offset 40000 is {received:#04x}, expected {expected:#04x}");
    assert!(said.contains(&first), "{said}");
    assert_eq!(said.matches("all bytes match the test pattern").count(), 1, "{said}");

    let json = Running::start(&[&sink[..5], &["--json"]].concat());
    send(&[file.path(), V4]);
    let ended = json.end();
    let expected = serde_json::json!({ "at": 40_000, "expected": expected, "received": received });
    assert_eq!((ended.code, &ended.event("end")["first_difference"]), (1, &expected));
}
