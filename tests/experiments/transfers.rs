//! Transfers other than one download of a fixed size: both directions, several connections, competitors, time
//! limits, slow readers, and corrupted bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use aircaptures::capture::{Capture, Next};
use airtcp_lab::pattern::byte_at;
use airtcp_testkit::machine::{Ended, airtcp};
use airtcp_testkit::programs::program;
use airwire::view::View;
use serde_json::Value;

use crate::scratch::{Scratch, ended, json, number, rows, transfers};

fn connections(transfer: &Value) -> &Vec<Value> {
    transfer["connections"].as_array().unwrap()
}

/// Checks that every byte of every connection arrived unchanged.
fn assert_exact(transfer: &Value) {
    assert_eq!(transfer["failure"], Value::Null, "{transfer}");
    for connection in connections(transfer) {
        assert!(connection["sent"].is_string(), "{connection}");
        assert_eq!(connection["sent"], connection["received"]["sha256"], "{connection}");
        assert_eq!(connection["bytes"], connection["received"]["bytes"], "{connection}");
    }
}

/// The headings of the table, and the words of a sender's row.
fn row<'a>(run: &'a Ended, sender: &str) -> (&'a str, Vec<&'a str>) {
    let heading = run.stdout.lines().find(|line| line.starts_with("sender")).unwrap();
    let row = run.stdout.lines().find(|line| line.starts_with(&format!("{sender} "))).unwrap();
    (heading, row.split_whitespace().collect())
}

// ----- directions -----

#[test]
fn upload_crosses_uplink_with_every_sender() {
    let scratch = Scratch::new("up");
    let senders = ["--recipe", "newreno", "--sender", "linux:cubic", "--direction", "up"];
    let path = ["--set", "link.up.rate=1Mbit", "--runs", "1", "--bytes", "100k", "--jobs", "2"];
    let (run, report) = scratch.run_lab(&[&senders[..], &path].concat());
    assert_eq!(report["asked"]["direction"], "up");
    assert!(run.stdout.contains("each transfer: 100 kB up over"), "{}", run.stdout);
    for (transfer, name) in transfers(&report).iter().zip(["newreno", "linux-cubic"]) {
        assert_exact(transfer);
        assert_eq!(connections(transfer)[0]["direction"], "up");
        let goodput = number(transfer, "/kbit_per_s");
        assert!((100.0..1000.0).contains(&goodput), "the uplink has 1 Mbit/s, the downlink 4: {transfer}");
        let path = json(&scratch.0.join(format!("out/01-{name}/airlink.json")));
        assert!(number(&path, "/up/entered") >= 70.0, "100 kB have 70 segments: {path}");
        assert!(number(transfer, "/capture/data_packets") >= 70.0, "{transfer}");
    }
}

#[test]
fn simultaneous_directions_have_separate_goodputs() {
    let scratch = Scratch::new("both");
    let options = ["--recipe", "sack", "--sender", "linux:reno", "--direction", "both", "--for", "3s"];
    let up = ["--set", "link.up.rate=1Mbit", "--set", "link.up.queue.packets=20"];
    let path = [&up[..], &["--runs", "1", "--jobs", "2"]].concat();
    let (run, report) = scratch.run_lab(&[&options[..], &path].concat());
    for (transfer, name) in transfers(&report).iter().zip(["sack", "linux-reno"]) {
        assert_exact(transfer);
        let directions: Vec<_> =
            connections(transfer).iter().map(|connection| &connection["direction"]).collect();
        assert_eq!(directions, ["down", "up"]);
        // On a busy machine, a direction may deliver nothing in this time. Such a transfer does not count.
        if transfer["invalid"].is_null() {
            let [down, up] = ["down", "up"]
                .map(|direction| number(transfer, &format!("/together/{direction}_kbit_per_s")));
            // ACKs for the downward data wait in the uplink's queue.
            assert!((100.0..1000.0).contains(&up) && (50.0..4000.0).contains(&down), "down {down}, up {up}");
            // Both connections run at the same time, not one after the other.
            for connection in connections(transfer) {
                assert!(number(connection, "/bytes_together") > 0.0, "{transfer}");
            }
        }
        for file in ["sender.jsonl", "sender-up.jsonl", "receiver-up.jsonl"] {
            assert!(scratch.0.join(format!("out/01-{name}")).join(file).is_file(), "{file}");
        }
    }
    // The table has no goodput of transfers that a busy machine disturbed.
    if transfers(&report).iter().any(|transfer| transfer["invalid"].is_null()) {
        let (heading, _) = row(&run, "sack");
        assert!(heading.contains("  down  ") && heading.contains("  up  "), "{heading}");
    }
}

// ----- several connections -----

/// Jain's fairness index of the bytes that the connections carried while all were sending.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) = (shares.iter().sum(), shares.iter().map(|it| it * it).sum());
    sum * sum / (shares.len() as f64 * squares)
}

#[test]
fn several_connections_have_one_goodput_and_fairness_index() {
    let scratch = Scratch::new("flows");
    let senders = ["--recipe", "newreno", "--sender", "linux:reno"];
    let load = ["--flows", "3", "--bytes", "400k", "--runs", "2", "--jobs", "2"];
    let (run, report) = scratch.run_lab(&[&senders[..], &load].concat());
    let mut together_in = 0;
    for transfer in transfers(&report) {
        assert_exact(transfer);
        let connections = connections(transfer);
        let ports: Vec<_> =
            connections.iter().map(|connection| connection["port"].as_u64().unwrap()).collect();
        assert_eq!((ports, &transfer["bytes"]), (vec![9000, 9001, 9002], &1_200_000.into()));
        // The goodput of all bytes in the whole time, not the mean of three goodputs.
        let goodput = 1_200_000.0 * 8.0 / number(transfer, "/capture/seconds") / 1e3;
        assert!((number(transfer, "/kbit_per_s") - goodput).abs() < 1e-6 * goodput, "{transfer}");
        // On a busy machine, one may end before another begins.
        if transfer["together"]["fairness"].is_null() {
            continue;
        }
        together_in += 1;
        let together: Vec<_> =
            connections.iter().map(|connection| number(connection, "/bytes_together")).collect();
        let fairness = number(transfer, "/together/fairness");
        assert!((fairness - jain(&together)).abs() < 1e-9, "{transfer}");
        assert!((1.0 / 3.0..=1.0).contains(&fairness), "{fairness}");
    }
    assert!(together_in > 0, "{report}");
    for row in rows(&report) {
        // Three connections over one path are one run, not three. A run that a busy machine disturbs does not
        // count. A row without valid runs lacks a mean.
        let counted = row["counted"].as_u64().unwrap();
        assert!(counted <= 2, "{row}");
        let samples = |mean: &str| row[mean]["samples"].as_u64().unwrap_or(0);
        assert_eq!(samples("kbit_per_s"), counted, "{row}");
        let is_counted = |transfer: &&Value| {
            transfer["sender"] == row["sender"]
                && transfer["invalid"].is_null()
                && !transfer["together"]["fairness"].is_null()
        };
        assert_eq!(samples("fairness"), transfers(&report).iter().filter(is_counted).count() as u64, "{row}");
    }
    if rows(&report).iter().any(|row| !row["fairness"].is_null()) {
        assert!(row(&run, "newreno").0.contains("  Jain's index  "), "{}", run.stdout);
    }
    assert!(run.stdout.contains("in each of 3 connections"), "{}", run.stdout);
    let directory = scratch.0.join("out/01-newreno");
    for file in ["decisions.jsonl", "decisions-2.jsonl", "decisions-3.jsonl", "receiver-3.jsonl"] {
        assert!(fs::metadata(directory.join(file)).unwrap().len() > 0, "{file}");
    }
    let page = scratch.path("page.html");
    assert_eq!(ended(airtcp(&["report", &scratch.path("out"), "-o", &page])).code, 0);
    assert!(fs::read_to_string(page).unwrap().contains("the graphs show the first of 3 connections"));
}

#[test]
fn competitor_shares_path_in_timed_transfer() {
    let scratch = Scratch::new("beside");
    let options = ["--recipe", "newreno", "--sender", "linux:reno", "--competitor", "linux:cubic"];
    // Long enough for both transfers to run at the same time for a while, even if one starts late.
    let (run, report) =
        scratch.run_lab(&[&options[..], &["--for", "3s", "--runs", "2", "--jobs", "2"]].concat());
    assert_eq!((&report["bytes"], &report["asked"]["seconds"]), (&Value::Null, &3.0.into()));
    assert_eq!(report["asked"]["competitors"][0], "linux:cubic");
    for transfer in transfers(&report) {
        assert_exact(transfer);
        let [tested, competitor] = connections(transfer).as_slice() else { panic!("{transfer}") };
        assert_eq!((&tested["role"], &competitor["role"]), (&"tested".into(), &"competitor".into()));
        assert_eq!(competitor["sender"], "linux:cubic");
        for connection in [tested, competitor] {
            assert_eq!(
                connection["capture"]["seconds"], 3.0,
                "data from the queue after the time limit does not count: {connection}"
            );
        }
        let [tested, competing] =
            [tested, competitor].map(|connection| number(connection, "/bytes_together"));
        let share = number(transfer, "/together/share");
        assert!(
            (share - tested / (tested + competing)).abs() < 1e-9 && tested > 0.0 && competing > 0.0,
            "{transfer}"
        );
        // Both share one path with 4 Mbit/s, and send at the same time for at most 3 s. The first one has the
        // whole path until the other one starts.
        assert!((tested + competing) * 8.0 / 3.0 / 1e3 < 4100.0, "{transfer}");
        // Two kernel senders share the kernel's counters, so the counts cannot be attributed to one sender.
        assert_eq!(transfer["repair"].is_null(), transfer["sender"] == "linux:reno", "{transfer}");
    }
    let (heading, newreno) = row(&run, "newreno");
    assert!(heading.contains("  competitor  ") && heading.contains("  share"), "{heading}");
    assert!(row(&run, "linux:reno").1.contains(&"-"), "{}", run.stdout);
    // Transfers that a busy machine has disturbed do not count.
    if transfers(&report).iter().all(|transfer| transfer["invalid"].is_null()) {
        assert!(newreno.contains(&"±") && !newreno.contains(&"-"), "{newreno:?}");
        assert!(run.stdout.contains("linux:reno") && run.stdout.contains("in 2 pairs"), "{}", run.stdout);
    }
    assert!(
        run.stdout.contains("each transfer: 3 s down in 1 connection with competitor linux:cubic"),
        "{}",
        run.stdout
    );
}

/// When the time is up, buffers and queues still contain data. Sending it takes extra time, and more with a
/// larger buffer.
#[test]
fn timed_transfer_measures_goodput_within_its_time() {
    let scratch = Scratch::new("by-time");
    let senders = ["--recipe", "newreno", "--sender", "linux:cubic", "--jobs", "2"];
    let path = ["--set", "link.down.rate=1Mbit", "--runs", "1", "--for", "1s"];
    let (run, report) = scratch.run_lab(&[&senders[..], &path].concat());
    for transfer in transfers(&report) {
        assert_exact(transfer);
        let connection = &connections(transfer)[0];
        let [all, in_time] = ["/bytes", "/bytes_in_time"].map(|field| number(connection, field));
        assert!(all > 1.1 * in_time, "the buffer is full at the end: {transfer}");
        assert_eq!(
            (&transfer["capture"]["seconds"], &transfer["bytes"]),
            (&1.0.into(), &connection["bytes"])
        );
        let goodput = number(transfer, "/kbit_per_s");
        assert!((goodput - in_time * 8.0 / 1e3).abs() < 1e-9 && goodput < 1000.0, "{transfer}");
    }
    assert!(run.stderr.contains("in 1.0 s"), "{}", run.stderr);
}

// ----- slow and faulty receivers -----

#[test]
fn slow_receiver_closes_window_and_transfer_stays_valid() {
    let scratch = Scratch::new("slow");
    let options = ["--recipe", "sack", "--sender", "linux:cubic", "--read-rate", "100kB/s"];
    let load = ["--bytes", "250k", "--runs", "1", "--jobs", "2"];
    let (run, report) = scratch.run_lab(&[&options[..], &load].concat());
    assert_eq!(report["asked"]["read_rate"], 100_000);
    assert!(run.stdout.contains("to linux, which reads at most 100 kB/s"), "{}", run.stdout);
    for transfer in transfers(&report) {
        assert_exact(transfer);
        // The kernel may acknowledge the last window before the application reads it.
        let goodput = number(transfer, "/kbit_per_s");
        assert!((300.0..2000.0).contains(&goodput), "not the path's 4 Mbit/s: {transfer}");
        assert!(number(transfer, "/capture/closed_windows") >= 1.0, "{transfer}");
        // The closed window does not make it invalid. Packets that a busy machine delays may.
        let is_late = |why: &str| why.contains("packets left the path");
        assert!(transfer["invalid"].as_str().is_none_or(is_late), "{transfer}");
    }
}

/// A receiver that changes the byte at offset 50,000 of the data that it passes on.
pub(crate) fn byte_changing_stack(scratch: &Scratch) -> String {
    let directory = scratch.0.join("stacks/changes");
    fs::create_dir_all(&directory).unwrap();
    let script = format!(
        "#!/bin/sh\nset -e\nip addr add \"$RECEIVER_ADDR/32\" dev lo\n\
         {{ '{}' sink \"$RECEIVER_PORT\" --no-digest --output /dev/fd/3 3>&1 >/dev/null; }} |\n\
         {{ head -c 50000; head -c 1 | tr '\\000-\\377' '\\001-\\377\\000'; cat; }}\n",
        program("airtcp").canonicalize().unwrap().display()
    );
    fs::write(directory.join("version"), "a test\n").unwrap();
    fs::write(directory.join("start"), script).unwrap();
    fs::set_permissions(directory.join("start"), fs::Permissions::from_mode(0o755)).unwrap();
    scratch.path("stacks")
}

#[test]
fn data_difference_names_first_byte_and_packets() {
    let scratch = Scratch::new("changed");
    let stacks = byte_changing_stack(&scratch);
    let options = ["--recipe", "sack", "--runs", "1", "--bytes", "100k"];
    let run =
        ended(scratch.lab("out", &[&options[..], &["--receiver", "changes", "--stacks", &stacks]].concat()));
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let report = scratch.report();
    let transfer = &transfers(&report)[0];
    let difference = &connections(transfer)[0]["difference"];
    let [expected, received] = ["expected", "received"].map(|name| difference[name].as_u64().unwrap());
    assert_eq!((&difference["at"], received), (&50_000.into(), (expected + 1) % 256), "{difference}");
    let failure = transfer["failure"].as_str().unwrap();
    assert!(failure.starts_with("the received data differs: 100000 of 100000 bytes arrived"), "{failure}");
    assert!(
        failure.contains(&format!("byte at offset 50000 is {received:#04x}, expected {expected:#04x}")),
        "{failure}"
    );
    // Both captures contain the original byte, so neither the sender nor the path changed it.
    assert!(failure.ends_with("so the receiver changed or lost it"), "{failure}");
    for (side, file) in [("left", "fixed.pcap"), ("arrived", "mobile.pcap")] {
        let packets = difference[side].as_array().unwrap();
        assert!(!packets.is_empty(), "{difference}");
        for packet in packets {
            assert_eq!(packet["byte"], expected, "{difference}");
            let number = packet["packet"].as_u64().unwrap();
            let payload = payload(&scratch, file, number);
            let len = payload.len() as u64;
            let is_from = |from: &u64| (0..len).all(|index| payload[index as usize] == byte_at(from + index));
            let from = (50_001 - len..=50_000).find(is_from);
            assert!(from.is_some(), "packet {number} of {file} does not contain offset 50000: {payload:?}");
            assert!(failure.contains(&format!("packet {number} with {expected:#04x}")), "{failure}");
        }
    }
}

/// The payload of a packet to the receiver in a capture. Packets are numbered from 1.
fn payload(scratch: &Scratch, file: &str, number: u64) -> Vec<u8> {
    let mut capture = Capture::open(&scratch.0.join("out/01-sack").join(file), None).unwrap();
    for _ in 1..number {
        capture.read();
    }
    let Next::Frame(frame) = capture.read() else { panic!("{file} has no packet {number}") };
    let view = View::of(frame.data).unwrap();
    assert_eq!(view.ports().unwrap()[1], 9000, "to the receiver");
    view.tcp().unwrap().payload.to_vec()
}

#[test]
fn counters_of_both_kernels_are_kept_per_sender() {
    let scratch = Scratch::new("counters");
    let options = ["--recipe", "newreno", "--sender", "linux:reno", "--bytes", "400k", "--runs", "1"];
    let (_, report) = scratch.run_lab(&[&options[..], &["--jobs", "2"]].concat());
    for transfer in transfers(&report) {
        let counter = |side: &str, name: &str| {
            transfer["counters"][side].get(name).map_or(0, |value| value.as_u64().unwrap())
        };
        // The receiver is a kernel in both cases. It counts at least the data segments that left the path.
        assert!(counter("mobile", "TcpInSegs") >= 276, "{transfer}");
        assert_eq!(counter("mobile", "TcpPassiveOpens"), 1);
        let by_kernel = u64::from(transfer["sender"] == "linux:reno");
        assert_eq!(
            counter("fixed", "TcpActiveOpens"),
            by_kernel,
            "the userspace sender does not use the kernel's TCP"
        );
        let resent = transfer["capture"]["resent_packets"].as_u64().unwrap();
        assert!(resent > 0, "2 % of 277 segments are lost");
        assert_eq!(counter("fixed", "TcpRetransSegs"), by_kernel * resent, "{transfer}");
    }
}
