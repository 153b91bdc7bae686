//! `airtcp report` makes a page from the output of `airtcp lab run`, and reports missing input.

use std::fs;
use std::path::Path;

use airtcp_lab::capture::Findings;
use airtcp_lab::experiment::{Report, Versions};
use airtcp_lab::sender::RetransmissionCounts;
use airtcp_lab::summary::Row;
use airtcp_lab::transfer::Outcome;
use airtcp_lab::workload::WorkloadRecord;
use airtcp_numbers::statistics::Mean;
use airtcp_testkit::machine::{TempDir, airtcp, ended, run};

/// A packet in an IPv4 capture: milliseconds, whether it is from the sender, flags, sequence number,
/// acknowledgement number, payload length.
type Packet = (u32, bool, u8, u32, u32, u16);

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A nanosecond pcap file of raw IP (LINKTYPE_RAW) that begins at 1000 s.
fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for &(at, from_sender, flags, seq, ack, payload) in packets {
        let length = 40 + payload;
        for word in [1000 + at / 1000, at % 1000 * 1_000_000, u32::from(length), u32::from(length)] {
            file.extend(word.to_le_bytes());
        }
        let endpoints = [([10, 83, 0, 2], 5000_u16), ([100, 64, 0, 2], 9000)];
        let [src, dst] = if from_sender { endpoints } else { [endpoints[1], endpoints[0]] };
        file.extend([0x45, 0]);
        file.extend(length.to_be_bytes());
        file.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
        file.extend(src.0);
        file.extend(dst.0);
        file.extend(src.1.to_be_bytes());
        file.extend(dst.1.to_be_bytes());
        file.extend(seq.to_be_bytes());
        file.extend(ack.to_be_bytes());
        file.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        file.extend(std::iter::repeat_n(0x61, usize::from(payload)));
    }
    file
}

/// One transfer of 2000 bytes, whose first segment is retransmitted after a timeout.
fn transfer(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    let packets = [
        (0, true, SYN, 100, 0, 0),
        (100, false, SYN | ACK, 500, 101, 0),
        (101, true, ACK, 101, 501, 0),
        (101, true, ACK, 101, 501, 1000),
        (101, true, ACK, 1101, 501, 1000),
        (1101, true, ACK, 101, 501, 1000),
        (1300, false, ACK, 501, 2101, 0),
    ];
    fs::write(directory.join("fixed.pcap"), pcap(&packets)).unwrap();
    let sender = r#"{"schema_version":1,"event":"start","time":0.5,"wall":1000.0,"data":{}}"#;
    fs::write(directory.join("sender.jsonl"), sender).unwrap();
    let decision =
        r#"{"time":1.6,"question":"timeout","by":"restart<b>","what":"timeout","offset":1,"why":"RTO"}"#;
    fs::write(directory.join("decisions.jsonl"), decision).unwrap();
}

fn report() -> Report {
    Report {
        schema_version: 1,
        command: "airtcp lab run --scenario <script>".to_owned(),
        versions: Versions {
            airtcp: "airtcp 0.1.0".to_owned(),
            airlink: "airlink 0.1.0".to_owned(),
            kernel: "Linux 6.1".to_owned(),
            receiver: "Linux 6.1".to_owned(),
        },
        scenario: "geo".to_owned(),
        receiver: "linux".to_owned(),
        bytes: Some(2000),
        asked: WorkloadRecord::default(),
        rounds: 1,
        margin: 0.05,
        against: "newreno".to_owned(),
        summary: vec![summary()],
        kernel_differences: None,
        in_virtual_time: Vec::new(),
        transfers: vec![outcome()],
    }
}

/// The row of the only sender.
fn summary() -> Row {
    let mean = |mean| Some(Mean { mean, half_width: None, samples: 1 });
    Row {
        sender: "newreno".to_owned(),
        profile: Some("linux".to_owned()),
        succeeded: 1,
        counted: 1,
        kbit_per_s: mean(12.3),
        median_kbit_per_s: Some(12.3),
        timeout: Some(1.0),
        timeouts: Some(1.0),
        resent_packets: Some(1.0),
        idle_seconds: mean(1.0),
        ..Row::default()
    }
}

/// The outcome of the transfer that `transfer` writes.
fn outcome() -> Outcome {
    let repair = RetransmissionCounts { timeout: 1, timeouts: 1, ..RetransmissionCounts::default() };
    let capture = Findings {
        seconds: 1.3,
        acked_bytes: 2000,
        data_packets: 3,
        resent_packets: 1,
        ..Findings::default()
    };
    Outcome {
        sender: "newreno".to_owned(),
        profile: Some("linux".to_owned()),
        receiver: "linux".to_owned(),
        seed: 7,
        bytes: 2000,
        kbit_per_s: 12.3,
        repair: Some(repair),
        capture,
        ..Outcome::default()
    }
}

#[test]
fn report_page_shows_table_command_and_runs() {
    let directory = TempDir::new("report");
    transfer(&directory.join("01-newreno"));
    fs::write(directory.join("lab.json"), serde_json::to_string(&report()).unwrap()).unwrap();
    let output = directory.join("report.html");
    let ended = run(&["report", directory.to_str().unwrap(), "-o", output.to_str().unwrap()]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("1 transfer,"), "{}", ended.stdout);
    let html = fs::read_to_string(&output).unwrap();
    for text in [
        r#"data-value="12.3">12.3<"#,
        "airtcp lab run --scenario &lt;script&gt;",
        r#""name":"newreno, round 1""#,
        r#"["restart\u003cb>","timeout","timeout: retransmission timer expired for 1 (RTO)"]"#,
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn single_transfer_report_uses_surrounding_experiment() {
    let directory = TempDir::new("report-one");
    let transfer_directory = directory.join("01-newreno");
    transfer(&transfer_directory);
    fs::write(directory.join("lab.json"), serde_json::to_string(&report()).unwrap()).unwrap();
    let output = directory.join("report.html");
    let ended = run(&["report", transfer_directory.to_str().unwrap(), "-o", output.to_str().unwrap()]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let html = fs::read_to_string(&output).unwrap();
    assert!(html.contains(r#"data-value="7">7<"#), "the seed");

    fs::remove_file(directory.join("lab.json")).unwrap();
    let ended = run(&["report", transfer_directory.to_str().unwrap(), "-o", output.to_str().unwrap()]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(fs::read_to_string(&output).unwrap().contains(r#""name":"01-newreno""#));
}

#[test]
fn results_file_stands_for_its_directory() {
    let directory = TempDir::new("report-file");
    transfer(&directory.join("01-newreno"));
    fs::write(directory.join("lab.json"), serde_json::to_string(&report()).unwrap()).unwrap();
    let [of_directory, of_file] = [".", "lab.json"].map(|source| {
        let mut command = airtcp(&["report", source, "-o", "report.html"]);
        let ended = ended(command.current_dir(&directory));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        fs::read_to_string(directory.join("report.html")).unwrap()
    });
    assert_eq!(of_directory, of_file);
}

#[test]
fn sweep_page_shows_picture_and_table_per_metric() {
    let directory = TempDir::new("report-sweep");
    let sweep = "schema = 1\nseeds = 2\nmetrics = [\"goodput\", \"took\"]\n[fixed]\nscenario = \"lossless\"\n\
                 [axes]\nrecipe = [\"reno\", \"sack\"]\nbytes = [\"20k\", \"40k\"]\n";
    let file = directory.write("s.toml", sweep);
    assert_eq!(run(&["sweep", "run", &file, "--quiet"]).code, 0);
    let store = directory.path("s.results");
    let page = directory.path("s.html");
    let ended = run(&["report", &store, "-o", &page]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("s.html: 4 points, "), "{}", ended.stdout);
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("data:image/svg+xml;base64,").count(), 2, "{html}");
    for text in
        ["<h2>goodput, ", "<h2>took, s", "<td>sack</td><td>40k</td><td>2</td>", "compared with recipe=reno"]
    {
        assert!(html.contains(text), "{text}: {html}");
    }
    let ended = run(&["report", &store, &store, "-o", &page]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("need a page of their own"), "{}", ended.stderr);
}

#[test]
fn directory_without_results_is_rejected_with_hint() {
    let directory = TempDir::new("report-empty");
    let ended = run(&["report", directory.to_str().unwrap()]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("neither lab.json nor fixed.pcap"), "{}", ended.stderr);
    assert!(ended.stderr.contains("airtcp lab run"), "{}", ended.stderr);

    fs::write(directory.join("lab.json"), "{").unwrap();
    let ended = run(&["report", directory.to_str().unwrap()]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("lab.json") && ended.stderr.contains("repeat the experiment"),
        "{}",
        ended.stderr
    );
}
