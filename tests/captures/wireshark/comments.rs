//! The packet comments that `airtcp analyze --comments` writes, read back by tshark and tcpdump.

use std::fs;
use std::process::Command;

use airtcp_testkit::frames::{ACK, ETHERNET, Pcap, SYN, SYN_ACK, Tcp, v4};
use airtcp_testkit::machine::{TempFile, run};
use serde_json::Value;

use super::{fields, tshark};

/// Runs a transfer in virtual time. Returns the sender's capture, its log, and its counters.
fn simulated(recipe: &str, more: &[&str]) -> (TempFile, TempFile, Value) {
    let (pcap, log) = (TempFile::new("run.pcap"), TempFile::new("run.jsonl"));
    let arguments = ["sim", "--recipe", recipe, "--bytes", "400k", "--json", "--seed", "3"];
    let files = ["--pcap", pcap.path(), "--decisions", log.path()];
    let ended = run(&[&arguments[..], &files, more].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let counters = ended.lines[0]["report"]["flows"][0]["counters"].clone();
    (pcap, log, counters)
}

fn annotated(pcap: &str, more: &[&str]) -> TempFile {
    let file = TempFile::new("annotated.pcapng");
    let ended = run(&[&["analyze", pcap, "--comments", file.path()], more].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    file
}

fn matching(file: &TempFile, filter: &str) -> u64 {
    tshark(file.path(), &["-Y", filter]).lines().count() as u64
}

#[test]
fn comments_match_sender_retransmission_counters() {
    for (scenario, recipe) in [
        ("tax-rebate", "newreno"),
        ("tax-rebate", "sack"),
        ("sifest-random", "newreno+eifel"),
        ("sifest-random", "sack"),
    ] {
        let (pcap, log, counters) = simulated(recipe, &["-s", scenario]);
        let number = |name: &str| counters[name].as_u64().unwrap();
        let file = annotated(pcap.path(), &["--decisions", log.path()]);
        let fast = number("resent_fast") + number("resent_recovery");
        assert!(
            fast > 0 && number("timeouts") > 0,
            "{recipe}: no fast retransmissions or no timeouts: {counters}"
        );
        let comments: Vec<String> = fields(file.path(), &["frame.comment"]).concat();
        for (text, expected) in [
            ("resent fast", fast),
            ("fast", fast),
            ("resent timeout", number("resent_timeout")),
            ("retransmission timer expired", number("timeouts")),
            ("(fast retransmission)", number("resent_fast")),
        ] {
            let found = comments.iter().filter(|comment| comment.contains(text)).count() as u64;
            assert_eq!(found, expected, "{scenario}, {recipe}: \"{text}\", {counters}");
        }
        assert_eq!(matching(&file, "frame.comment contains \"resent fast\""), fast, "{scenario}, {recipe}");
        // Each change of the window starts from the result of the previous change.
        let comments = comments.concat();
        let mut last = "1.0".to_owned();
        for change in comments.split("cwnd ").skip(1) {
            if let Some((was, rest)) = change.split_once(" → ").filter(|(was, _)| was.parse::<f64>().is_ok())
            {
                assert!(was == last || last == "1.0", "{scenario}, {recipe}: {last}, then {was}");
                last = rest.split([',', ' ']).next().unwrap().to_owned();
            }
        }
    }
}

#[test]
fn spurious_retransmission_comment_includes_proof() {
    let path = ["-s", "wcdma-384-jitter", "--set", "radio.down.channel.errors.bler=10%"];
    let (pcap, log, counters) = simulated("newreno+eifel", &path);
    assert_eq!(counters["spurious_timeouts"], 1);
    let file = annotated(pcap.path(), &["--decisions", log.path()]);
    let wanted = "frame.comment contains \"spurious proof=timestamp\" and \
                  frame.comment contains \"retransmission timer expired\"";
    assert_eq!(matching(&file, wanted), 1);
    assert_eq!(
        matching(&file, "frame.comment contains \"eifel: cwnd\""),
        counters["undone"].as_u64().unwrap()
    );
}

/// The number, the time and the lengths of every frame, as tshark reads them.
fn raw(file: &str) -> Vec<Vec<String>> {
    fields(file, &["frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "ip.id", "tcp.checksum"])
}

#[test]
fn annotation_preserves_frames_for_tshark_and_tcpdump() {
    let (pcap, log, _) = simulated("sack", &["-s", "tax-rebate"]);
    let more = ["--decisions", log.path()];
    let [file, again] = [annotated(pcap.path(), &more), annotated(pcap.path(), &more)];
    assert!(file.read() == again.read());
    assert_eq!(raw(file.path()), raw(pcap.path()));
    let tcpdump = |file: &str| {
        let output = Command::new("tcpdump").args(["-nn", "-tt", "--nano", "-r", file]).output();
        let output = output.expect("this test needs tcpdump: apt-get install tcpdump");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert!(tcpdump(file.path()) == tcpdump(pcap.path()));
    // The annotated file is a capture itself. Annotating it again does not change it.
    assert_eq!(annotated(file.path(), &more).read(), file.read());
}

/// An Ethernet capture with a lost segment, three duplicate ACKs, an ARP frame, and a snap length that cuts
/// the payload.
fn capture_with_fast_retransmission() -> TempFile {
    let (client, server) = (v4(1, 40_000), v4(2, 9000));
    let data = |seq, ack, len| Tcp::new(client, server, ACK, seq, ack, len);
    let ack = |seq, ack| Tcp::new(server, client, ACK, seq, ack, 0);
    let mut file = Pcap::with_snap_length(ETHERNET, 96);
    let mut at = 0.0;
    let mut add = |packet: Vec<u8>| {
        file.frame(at, &packet);
        at += 0.01;
    };
    add(Tcp::new(client, server, SYN, 100, 0, 0).ethernet());
    add(Tcp::new(server, client, SYN_ACK, 500, 101, 0).ethernet());
    add(data(101, 501, 0).ethernet());
    add([&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 8, 6], &[0; 46]].concat());
    for number in 0..5 {
        add(data(101 + 1000 * number, 501, 1000).ethernet());
    }
    for _ in 0..4 {
        add(ack(501, 101).ethernet());
    }
    add(data(101, 501, 1000).ethernet());
    add(ack(501, 5101).ethernet());
    let path = TempFile::new("anybody.pcap");
    fs::write(path.path(), &file.file).unwrap();
    path
}

#[test]
fn foreign_capture_is_annotated_without_log() {
    let pcap = capture_with_fast_retransmission();
    let file = annotated(pcap.path(), &[]);
    assert_eq!(raw(file.path()), raw(pcap.path()));
    let comments = fields(file.path(), &["frame.number", "frame.comment"]);
    let with: Vec<_> = comments.iter().filter(|row| !row[1].is_empty()).collect();
    assert_eq!(with, [&["14", "resent fast dupacks=4 flight=4"]]);
    let filtered = annotated(pcap.path(), &["--filter", "tcp"]);
    assert_eq!(fields(filtered.path(), &["frame.comment"])[12], ["resent fast dupacks=4 flight=4"]);
    assert_eq!(fields(filtered.path(), &["frame.number"]).len(), 14, "the ARP frame is left out");
}

#[test]
fn comments_accept_any_text() {
    let pcap = capture_with_fast_retransmission();
    let log = TempFile::new("log.jsonl");
    let why = r#"a \"quote\", a tab\t, a line\n, Σ → ∞ 🙂 \\"#;
    let line = |wall: f64, why: &str| {
        let (time, what) = (wall - 1e9, r#""what":"resend","offset":1"#);
        format!(r#"{{"time":{time},"wall":{wall},"question":"repair","by":"ñ","why":"{why}",{what}}}"#)
    };
    fs::write(log.path(), format!("{}\n", line(1e9 + 0.125, why))).unwrap();
    let file = annotated(pcap.path(), &["--decisions", log.path()]);
    let comment = fields(file.path(), &["frame.comment"])[13].concat();
    let expected =
        r#"resent fast dupacks=4 flight=4 | ñ: retransmit 1 (a "quote", a tab , a line , Σ → ∞ 🙂 \)"#;
    // tshark escapes the backslash.
    assert_eq!(comment.replace(r"\\", r"\"), expected);

    // A comment beyond the maximum length is truncated, and the file stays intact.
    let long = vec![line(1e9 + 0.125, &"Σ".repeat(900)); 100].join("\n");
    fs::write(log.path(), long).unwrap();
    let file = annotated(pcap.path(), &["--decisions", log.path()]);
    let comment = fields(file.path(), &["frame.comment"])[13].concat();
    assert!(comment.len() < 4100 && comment.ends_with(" | …"), "{comment}");
    assert_eq!(raw(file.path()), raw(pcap.path()));
}

#[test]
fn annotation_failures_are_reported() {
    let pcap = capture_with_fast_retransmission();
    let (out, log) = (TempFile::new("out.pcapng"), TempFile::new("log.jsonl"));
    let line = |more: &str| {
        format!("{{\"time\":1,\"question\":\"window\",\"by\":\"x\",\"what\":\"y\",\"why\":\"z\"{more}}}\n")
    };
    let decisions = ["--comments", out.path(), "--decisions", log.path()];
    let comments = &decisions[..2];
    let fails = |code: i32, args: &[&str], words: &str| {
        let ended = run(&[&["analyze"], args].concat());
        assert_eq!(ended.code, code, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert!(fs::metadata(out.path()).is_err(), "{args:?}");
    };
    fails(2, &[&[pcap.path(), pcap.path()], comments].concat(), "give one file");
    fails(2, &[&["-"], comments].concat(), "reads the capture twice");
    fails(2, &[pcap.path(), "--comments", pcap.path()], "would overwrite the capture");
    fails(2, &[pcap.path(), "--decisions", log.path()], "--comments");
    fails(2, &[&[pcap.path()], &decisions[..]].concat(), "cannot read");
    for (text, words) in [
        ("nothing\n".to_owned(), "not a log of decisions"),
        (line(""), "no start time (`wall`)"),
        (
            line(",\"wall\":2,\"connection\":1") + &line(",\"wall\":2,\"connection\":2"),
            "select(.connection == 1)",
        ),
    ] {
        fs::write(log.path(), text).unwrap();
        fails(2, &[&[pcap.path()], &decisions[..]].concat(), words);
    }
    fails(1, &[pcap.path(), "--comments", "/nowhere/out.pcapng"], "cannot write /nowhere/out.pcapng");

    fs::write(log.path(), line(",\"wall\":2")).unwrap();
    let ended = run(&[&["analyze", pcap.path()], &decisions[..]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("1 decisions of") && ended.stderr.contains("before or after the connection"),
        "{}",
        ended.stderr
    );
}
