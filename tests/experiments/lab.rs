//! `airtcp lab run` as users run it: the table, the files, and the agreement of both with other sources.

use std::fs;

use airtcp_testkit::machine::airtcp;
use serde_json::Value;

use crate::scratch::{Scratch, ended, refused, rows, succeeded, transfers};

#[test]
fn recipes_and_kernel_senders_share_one_table() {
    let scratch = Scratch::new("table");
    let recipes = ["--recipe", "newreno", "--recipe", "sack+sifest+liw"];
    let kernel = ["--sender", "linux:cubic", "--sender", "linux:reno"];
    let load = ["--runs", "2", "--bytes", "300k", "--jobs", "4"];
    let (run, report) = scratch.run_lab(&[&recipes[..], &kernel, &load].concat());
    assert!(run.stderr.contains("[8/8]") && run.stderr.contains("left"), "{}", run.stderr);

    let senders: Vec<_> = rows(&report).iter().map(|row| row["sender"].as_str().unwrap()).collect();
    assert_eq!(senders, ["newreno", "sack+sifest+liw", "linux:cubic", "linux:reno"]);
    for row in rows(&report) {
        // A busy machine may disturb transfers. The last column has the rounds that count.
        let end = format!("2/2  {}", row["counted"]);
        let is_row = |line: &str| line.starts_with(row["sender"].as_str().unwrap()) && line.ends_with(&end);
        assert!(run.stdout.lines().any(is_row), "{row}: {}", run.stdout);
    }
    assert!(report["command"].as_str().unwrap().contains("--recipe sack+sifest+liw"), "{report}");
    assert_eq!(transfers(&report).len(), 8);
    for transfer in transfers(&report) {
        assert_eq!(transfer["bytes"], 300_000, "{transfer}");
        assert_eq!(transfer["sent"], transfer["received"]["sha256"], "{transfer}");
    }
    // Our senders use the profile `linux`, because the command line does not name one.
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines[0], "recipes with profile linux", "{}", run.stdout);
    let differences = report["kernel_differences"].as_str().unwrap();
    assert!(
        differences.starts_with("differences from the kernel senders: all recipes lack"),
        "{differences}"
    );
    assert!(differences.contains("RACK-TLP") && !differences.contains("profile"), "{differences}");
    assert_eq!(lines.iter().filter(|line| **line == differences).count(), 1, "{}", run.stdout);
    for item in rows(&report).iter().chain(transfers(&report)) {
        let is_ours = !item["sender"].as_str().unwrap().starts_with("linux:");
        assert_eq!(item["profile"].as_str(), is_ours.then_some("linux"), "{item}");
    }
    // 2 % of more than 200 segments are lost, so every sender has retransmissions.
    for row in rows(&report).iter().filter(|row| row["counted"] != 0) {
        assert!(row["resent_packets"].as_f64().unwrap() >= 1.0, "{row}");
        assert!(row["fast"].as_f64().unwrap() + row["timeout"].as_f64().unwrap() >= 1.0, "{row}");
    }
    let directory = scratch.0.join("out/01-sack+sifest+liw");
    for file in [
        "fixed.pcap",
        "mobile.pcap",
        "annotated.pcapng",
        "airlink.json",
        "decisions.jsonl",
        "sender.jsonl",
        "receiver.jsonl",
    ] {
        assert!(fs::metadata(directory.join(file)).unwrap().len() > 0, "{file}");
    }
    let log = fs::read_to_string(directory.join("sender.jsonl")).unwrap();
    let start: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&start["data"]["recipe"], &start["data"]["profile"]),
        (&"sack+sifest+liw".into(), &"linux".into())
    );
    let cubic = fs::read_to_string(scratch.0.join("out/01-linux-cubic/sender.jsonl")).unwrap();
    assert!(cubic.contains("TCP_INFO") || cubic.contains("cubic"), "{cubic}");
}

#[test]
fn recipe_without_its_information_is_reported() {
    let scratch = Scratch::new("notices");
    let mut scenario = fs::read_to_string(scratch.path("lossy.toml")).unwrap();
    scenario += "[[stage]]\nkind = \"station\"\n";
    fs::write(scratch.path("lossy.toml"), scenario).unwrap();
    let recipes = ["--recipe", "reno", "--recipe", "etcp", "--recipe", "sack+eifel"];
    let more = ["--receiver", "linux-bare", "--runs", "1", "--bytes", "50k", "--jobs", "3"];
    let (run, report) = scratch.run_lab(&[&recipes[..], &more].concat());
    for expected in [
        "etcp: transit-marks: no transit marks will arrive: no `station` of the path",
        "sack+eifel: sack: SACK will not be negotiated: the receiver does not accept it",
        "sack+eifel: eifel: timestamps will not be negotiated: the receiver does not accept them",
    ] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    let marks = "transit-marks: 0 transit marks received; it works like `always-congestion`";
    let expected = [
        vec![],
        vec![marks],
        vec![
            "sack: SACK was not negotiated; it works like `newreno`",
            "eifel: timestamps were not negotiated; it works like `never`",
        ],
    ];
    for (index, notices) in expected.iter().enumerate() {
        let (row, transfer) = (&report["summary"][index], &report["transfers"][index]);
        let expected = if notices.is_empty() { Value::Null } else { serde_json::json!(notices) };
        assert_eq!(
            (&row["notices"], &transfer["connections"][0]["notices"]),
            (&expected, &expected),
            "{row}"
        );
        for notice in notices {
            let line = format!("{}: {notice}", row["sender"].as_str().unwrap());
            assert!(run.stdout.lines().any(|printed| printed == line), "{line}: {}", run.stdout);
        }
    }
    let output = scratch.path("out");
    let csv = succeeded(airtcp(&["lab", "show", &output, "--csv"])).stdout;
    let [head, reno, etcp, _] = csv.lines().collect::<Vec<_>>().try_into().unwrap();
    // A busy machine may disturb a transfer.
    let counted = |index: usize| report["summary"][index]["counted"].as_u64().unwrap();
    assert!(head.ends_with(",transfers,n,notices"), "{csv}");
    assert!(reno.ends_with(&format!(",1,1,{},", counted(0))), "{csv}");
    assert!(etcp.ends_with(&format!(",1,1,{},{marks}", counted(1))), "{csv}");
    let page = scratch.path("page.html");
    succeeded(airtcp(&["report", &output, "-o", &page]));
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains(&format!("<dd>etcp: {marks}</dd>")), "the page lacks the notice");
}

#[test]
fn recipe_with_two_profiles_yields_two_senders() {
    let scratch = Scratch::new("profiles");
    let more = ["--recipe", "newreno", "--recipe", "newreno@linux", "--profile", "ns2", "--virtual"];
    let (run, report) =
        scratch.run_lab(&[&more[..], &["--runs", "1", "--bytes", "100k", "--jobs", "2"]].concat());
    // ns-2's agents do not support timestamps, and Linux does.
    for (name, profile, timestamps) in [("newreno@ns2", "ns2", false), ("newreno@linux", "linux", true)] {
        let rows = run.stdout.lines().filter(|line| line.starts_with(&format!("{name} "))).count();
        assert_eq!(rows, 2, "one row in the lab's table and one in the comparison: {}", run.stdout);
        let directory = scratch.0.join("out").join(format!("01-{name}"));
        let log = fs::read_to_string(directory.join("sender.jsonl")).unwrap();
        let end: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_eq!((&end["data"]["recipe"], &end["data"]["profile"]), (&"newreno".into(), &profile.into()));
        assert_eq!(end["data"]["handshake"]["timestamps"], timestamps, "{end}");
    }
    assert!(
        !run.stdout.contains("recipes with profile") && !run.stdout.contains("differences from"),
        "{}",
        run.stdout
    );
    let profiles: Vec<_> = rows(&report).iter().map(|row| &row["profile"]).collect();
    assert_eq!(profiles, ["ns2", "linux"]);
    assert!(report["command"].as_str().unwrap().contains("--profile ns2"), "{report}");
    // A file from an older version, which has no profiles, can still be read.
    let old = serde_json::to_string(&without_profiles(report)).unwrap();
    fs::write(scratch.0.join("out/lab.json"), old).unwrap();
    let page = scratch.path("page.html");
    succeeded(airtcp(&["report", &scratch.path("out"), "-o", &page]));
}

/// Changes a `lab.json` into one from before profiles were added.
fn without_profiles(mut report: Value) -> Value {
    for newer in ["kernel_differences", "in_virtual_time"] {
        report.as_object_mut().unwrap().remove(newer);
    }
    for part in ["summary", "transfers"] {
        for item in report[part].as_array_mut().unwrap() {
            item.as_object_mut().unwrap().remove("profile");
        }
    }
    report
}

#[test]
fn path_analysis_of_captures_matches_airlink_events() {
    let scratch = Scratch::new("path");
    let more = ["--recipe", "newreno+judges", "--runs", "1", "--bytes", "400k", "--events"];
    scratch.run_lab(&more);
    let directory = scratch.0.join("out/01-newreno+judges");
    let mut command = airtcp(&["analyze", "--json", "--path", "--judges"]);
    for (option, file) in [
        ("", "fixed.pcap"),
        ("", "mobile.pcap"),
        ("--truth", "events.jsonl"),
        ("--sender-log", "sender.jsonl"),
    ] {
        command.args((!option.is_empty()).then_some(option)).arg(directory.join(file));
    }
    let run = ended(command);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let path = &document["path"];
    let truth = &path["truth"];
    let count = |name: &str| truth[name].as_u64().unwrap();
    assert!(count("losses_found") > 0 && count("arrivals_found") > 300, "{truth}");
    assert_eq!((count("unknown"), count("losses_missed"), count("false_losses")), (0, 0, 0), "{truth}");
    let data = &path["connections"][0]["directions"][0]["data"];
    assert_eq!(data["lost_by_radio"], data["lost"], "{data}");
    let counts = path["sender"]["counts"].as_array().unwrap();
    let resent = counts.iter().find(|count| count["what"] == "retransmitted packets").unwrap();
    assert_eq!(resent["sender"], resent["capture"], "{resent}");
    assert!(path["judges"]["vegas"]["radio"].is_object(), "{path}");
}

/// The retransmissions of a kernel sender that the captures show, and their causes, agree with the kernel's
/// counters.
#[test]
fn kernel_sender_retransmissions_in_captures_match_kernel_counters() {
    let scratch = Scratch::new("counted");
    let senders = ["--sender", "linux:cubic", "--sender", "linux:reno"];
    scratch.run_lab(&[&senders[..], &["--runs", "2", "--bytes", "600k", "--jobs", "2"]].concat());
    let mut fast = 0;
    for name in ["01-linux-cubic", "02-linux-cubic", "01-linux-reno", "02-linux-reno"] {
        let directory = scratch.0.join("out").join(name);
        let log = fs::read_to_string(directory.join("sender.jsonl")).unwrap();
        let end: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        let kernel = |counter: &str| end["data"]["kernel"][counter].as_u64().unwrap_or(0);
        let mut command = airtcp(&["analyze", "--json"]);
        command.arg(directory.join("fixed.pcap"));
        let document: Value = serde_json::from_str(&ended(command).stdout).unwrap();
        let direction = &document["captures"][0]["connections"][0]["directions"][0];
        let resent = &direction["retransmissions"];
        let captured = |field: &str| resent[field].as_u64().unwrap();
        assert_eq!(captured("packets") + captured("syns"), kernel("RetransSegs"), "{name}: {resent}");
        // The causes are compared only if no timer has expired: a tail loss probe can come as late as a
        // timeout, and looks like one.
        if kernel("TCPTimeouts") + kernel("TCPLossProbes") == 0 {
            // A busy machine can delay RACK's timer. The retransmission then looks like one by timeout.
            let late = captured("timeout");
            assert!(late <= 1, "{name}: {resent}");
            assert_eq!(captured("fast") + late, kernel("TCPFastRetrans"), "{name}: {resent}");
            fast += captured("fast");
        }
    }
    assert!(fast > 0, "2 % of about 1600 segments are lost");
}

#[test]
fn senders_are_compared_with_named_reference() {
    let scratch = Scratch::new("against");
    let senders = ["--recipe", "newreno", "--recipe", "sack", "--recipe", "tahoe", "--bytes", "50k"];
    let (run, report) =
        scratch.run_lab(&[&senders[..], &["--against", "sack", "--runs", "2", "--jobs", "3"]].concat());
    assert_eq!(
        (&report["against"], &report["summary"][1]["against"]),
        (&"sack".into(), &Value::Null),
        "{report}"
    );
    // A busy machine may disturb transfers. A pair counts if both of its transfers do.
    let goodputs = |sender: &Value| -> Vec<Option<f64>> {
        let transfers = report["transfers"].as_array().unwrap().iter();
        let own = transfers.filter(|transfer| transfer["sender"] == *sender);
        own.map(|transfer| transfer["kbit_per_s"].as_f64().filter(|_| transfer["invalid"].is_null()))
            .collect()
    };
    for row in [&report["summary"][0], &report["summary"][2]] {
        let theirs = goodputs(&"sack".into());
        let pairs: Vec<(f64, f64)> = goodputs(&row["sender"])
            .into_iter()
            .zip(theirs)
            .filter_map(|(own, theirs)| own.zip(theirs))
            .collect();
        assert_eq!(row["counted"], pairs.len(), "{row}");
        if !pairs.is_empty() {
            let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
            let gain = sum(|(own, _)| *own) / sum(|(_, theirs)| *theirs) - 1.0;
            assert!((row["against"]["gain"]["mean"].as_f64().unwrap() - gain).abs() < 1e-9, "{row}");
        }
        if pairs.len() == 2 {
            let sender = row["sender"].as_str().unwrap();
            let is_comparison = |line: &&str| line.contains(sender) && line.contains("2 pairs");
            assert_eq!(run.stdout.lines().filter(is_comparison).count(), 1, "{}", run.stdout);
        }
    }
    refused(
        &ended(scratch.lab("b", &["--recipe", "newreno", "--against", "sack"])),
        2,
        "unknown sender sack",
    );
}
