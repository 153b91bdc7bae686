//! `airlink fit`: builds a scenario from captures at both ends of a path, and checks it.

use std::process::{Command, Output};

use airtcp_testkit::temporary::TempDir;
use serde_json::Value;

/// A temporary directory that is removed when dropped.
struct Scratch(TempDir);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(TempDir::new(name))
    }

    fn airlink(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airlink"));
        command.args(arguments.split_whitespace()).current_dir(&self.0).output().unwrap()
    }

    /// Runs a command that must succeed. Returns its stdout.
    fn succeed(&self, arguments: &str) -> String {
        let output = self.airlink(arguments);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail. Returns its exit code and stderr.
    fn fail(&self, arguments: &str) -> (i32, String) {
        let output = self.airlink(arguments);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }
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

fn recorded(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("known.toml", KNOWN);
    scratch.succeed(
        "sim -s known.toml --for 60s --down poisson:2Mbit --pcap-fixed fixed.pcap --pcap-mobile mobile.pcap",
    );
    scratch
}

#[test]
fn fit_recovers_a_known_path() {
    let scratch = recorded("known");
    let fit: Value =
        serde_json::from_str(&scratch.succeed("fit fixed.pcap mobile.pcap --output same.toml --json"))
            .unwrap();
    let scenario = scratch.read("same.toml");
    assert!(scenario.contains(r#"rate = "2Mbit""#), "{scenario}");
    assert!(scenario.contains(r#"delay = "40ms""#), "{scenario}");
    assert!(scenario.contains("queue = { packets = 50 }"), "{scenario}");
    let share = fit["down"]["fitted"]["losses"]["share"].as_f64().unwrap();
    // With 10,000 packets, 99.9 % of all runs are within 0.33 percentage points of 1 %.
    assert!((share - 0.01).abs() < 0.0033, "{share}");
    let check = &fit["down"]["check"];
    let [recorded, replayed] = ["recorded", "replayed"].map(|run| check[run]["lost"].as_f64().unwrap());
    assert!((recorded - replayed).abs() < 0.01, "{check}");
    let text = scratch.succeed("fit fixed.pcap mobile.pcap --output same.toml");
    assert!(text.contains("Both captures have the same clock."), "{text}");
    // Other commands accept the scenario.
    scratch.succeed("check same.toml");
    scratch.succeed("sim -s same.toml --for 2s");
}

#[test]
fn varying_rate_is_written_to_a_schedule_file() {
    let scratch = Scratch::new("schedule");
    scratch.write("rates.csv", "time s,rate kbit\n0,1000\n10,300\n20,1000\n");
    scratch.write(
        "known.toml",
        "schema = 1\n[[stage]]\nkind = \"link\"\ndown = { follow = \"rates.csv\", delay = \"40ms\" }\nup = { delay = \"40ms\" }\n",
    );
    scratch.succeed(
        "sim -s known.toml --for 20s --down saturate:20 --pcap-fixed fixed.pcap --pcap-mobile mobile.pcap",
    );
    let output = scratch.airlink("fit fixed.pcap mobile.pcap -o same.toml");
    assert!(output.status.success());
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(warned.contains("down: no loss shows the limit of the queue"), "{warned}");
    assert!(scratch.read("same.toml").contains(r#"follow = "same-down.csv", loop = true"#));
    let schedule = scratch.read("same-down.csv");
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
    let scratch = recorded("refused");
    let (code, error) = scratch.fail("fit fixed.pcap mobile.pcap --output same.txt");
    assert_eq!(
        (code, error.as_str()),
        (2, "airlink: --output same.txt: the name of a scenario file must end in .toml\n")
    );
    let (code, error) = scratch.fail("fit fixed.pcap mobile.pcap -o same.toml --filter icmp");
    assert_eq!((code, error.as_str()), (1, "airlink: fixed.pcap: no IP packet passes the filter\n"));
    let (code, error) = scratch.fail("fit fixed.pcap missing.pcap -o same.toml");
    assert!(code == 1 && error.contains("cannot read missing.pcap"), "{error}");
    scratch.succeed("sim -s known.toml --for 5s --size 200 --up none --pcap-fixed other.pcap");
    let (code, error) = scratch.fail("fit other.pcap mobile.pcap -o same.toml");
    assert!(code == 1 && error.contains("no packet is in both captures"), "{error}");
    let (code, error) = scratch.fail("fit fixed.pcap mobile.pcap -o same.toml --step 1us");
    assert_eq!((code, error.as_str()), (2, "airlink: --step must be at least 1ms\n"));
    assert!(!scratch.0.join("same.toml").exists());
}
