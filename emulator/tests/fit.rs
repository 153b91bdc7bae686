//! `airlink fit`: builds a scenario from captures at both ends of a path, and checks it.

use std::process::{Command, Output};

use airtcp_testkit::temporary::TempDir;
use serde_json::Value;

fn airlink(directory: &TempDir, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlink"));
    command.args(arguments.split_whitespace()).current_dir(directory).output().unwrap()
}

/// Runs a command that must succeed. Returns its stdout.
fn succeed(directory: &TempDir, arguments: &str) -> String {
    let output = airlink(directory, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read(directory: &TempDir, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

const KNOWN: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "path"
down = { rate = "2Mbit", delay = "40ms", queue = { packets = 50 } }
up = { delay = "40ms" }
[[stage]]
kind = "loss"
name = "radio"
down = { model = "uniform", per = "1%" }
"#;

/// Records both ends of a path with the settings of [`KNOWN`].
fn record(name: &str) -> TempDir {
    let directory = TempDir::new(name);
    directory.write("known.toml", KNOWN);
    let sim =
        "sim -s known.toml --for 60s --down poisson:2Mbit --pcap-fixed fixed.pcap --pcap-mobile mobile.pcap";
    succeed(&directory, sim);
    directory
}

#[test]
fn fit_recovers_a_known_path() {
    let directory = record("known");
    let fit: Value =
        serde_json::from_str(&succeed(&directory, "fit fixed.pcap mobile.pcap --output same.toml --json"))
            .unwrap();
    let scenario = read(&directory, "same.toml");
    assert!(scenario.contains(r#"rate = "2Mbit""#), "{scenario}");
    assert!(scenario.contains(r#"delay = "40ms""#), "{scenario}");
    assert!(scenario.contains("queue = { packets = 50 }"), "{scenario}");
    let share = fit["down"]["fitted"]["losses"]["share"].as_f64().unwrap();
    // With 10,000 packets, 99.9 % of all runs are within 0.33 percentage points of 1 %.
    assert!((share - 0.01).abs() < 0.0033, "{share}");
    let check = &fit["down"]["check"];
    let [recorded, replayed] = ["recorded", "replayed"].map(|run| check[run]["lost"].as_f64().unwrap());
    assert!((recorded - replayed).abs() < 0.01, "{check}");
    let text = succeed(&directory, "fit fixed.pcap mobile.pcap --output same.toml");
    assert!(text.contains("Both captures have the same clock."), "{text}");
    // Other commands accept the scenario.
    succeed(&directory, "check same.toml");
    succeed(&directory, "sim -s same.toml --for 2s");
}

#[test]
fn varying_rate_is_written_to_a_schedule_file() {
    let directory = TempDir::new("schedule");
    directory.write("rates.csv", "time s,rate kbit\n0,1000\n10,300\n20,1000\n");
    directory.write(
        "known.toml",
        "schema = 1\n[[stage]]\nkind = \"link\"\ndown = { follow = \"rates.csv\", delay = \"40ms\" }\nup = { delay = \"40ms\" }\n",
    );
    succeed(
        &directory,
        "sim -s known.toml --for 20s --down saturate:20 --pcap-fixed fixed.pcap --pcap-mobile mobile.pcap",
    );
    let output = airlink(&directory, "fit fixed.pcap mobile.pcap -o same.toml");
    assert!(output.status.success());
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(warned.contains("down: no loss shows the limit of the queue"), "{warned}");
    assert!(read(&directory, "same.toml").contains(r#"follow = "same-down.csv", loop = true"#));
    let schedule = read(&directory, "same-down.csv");
    let lines: Vec<Vec<f64>> = schedule
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let at = |ms: f64| lines.iter().rfind(|line| line[0] <= ms).unwrap()[1];
    assert!((at(5000.0) - 1000.0).abs() < 30.0 && (at(15_000.0) - 300.0).abs() < 9.0, "{schedule}");
}

#[test]
fn unusable_captures_are_refused_with_advice() {
    let directory = record("refused");
    succeed(&directory, "sim -s known.toml --for 5s --size 200 --up none --pcap-fixed other.pcap");
    for (arguments, code, message) in [
        (
            "fixed.pcap mobile.pcap --output same.txt",
            2,
            "airlink: --output same.txt: the name of a scenario file must end in .toml\n",
        ),
        (
            "fixed.pcap mobile.pcap -o same.toml --filter icmp",
            1,
            "airlink: fixed.pcap: no IP packet passes the filter\n",
        ),
        ("fixed.pcap missing.pcap -o same.toml", 1, "cannot read missing.pcap"),
        ("other.pcap mobile.pcap -o same.toml", 1, "no packet is in both captures"),
        ("fixed.pcap mobile.pcap -o same.toml --step 1us", 2, "airlink: --step must be at least 1ms\n"),
    ] {
        let output = airlink(&directory, &format!("fit {arguments}"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {error}");
        let is_expected = if message.ends_with('\n') { error == message } else { error.contains(message) };
        assert!(is_expected, "{arguments}: {error}");
    }
    assert!(!directory.join("same.toml").exists());
}
