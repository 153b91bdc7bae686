//! Virtual time against real time: the same scenario, recipe and seeds over TUN devices to this kernel, and in one
//! process without a clock. `airtcp lab run --virtual` does the same for any scenario.

use airtcp_testkit::machine::TempFile;
use serde_json::Value;

#[test]
fn a_lossy_link_in_virtual_time_is_the_one_over_real_devices() {
    let directory = TempFile::new("virtual");
    let scenario = TempFile::new("scenario.toml");
    let text = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"2Mbit\", delay = \"30ms\", queue = { packets = 30 } }\n\
                [[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"2%\", affects = \"data\" }\n";
    std::fs::write(scenario.path(), text).unwrap();
    let run = airtcp_testkit::machine::run(&[
        "lab",
        "run",
        "--virtual",
        "--json",
        "--quiet",
        "--scenario",
        scenario.path(),
        "--output",
        directory.path(),
        "--recipe",
        "newreno",
        "--recipe",
        "sack+limited-transmit",
        "--runs",
        "16",
        "--jobs",
        "16",
        "--bytes",
        "800k",
    ]);
    let _ = std::fs::remove_dir_all(directory.path());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let compared = run.lines[0]["virtual"].as_array().unwrap().clone();
    assert_eq!(compared.len(), 2);
    for sender in &compared {
        let mean = |which: &str| sender[which]["mean"].as_f64().unwrap();
        let width = |which: &str| sender[which]["half_width"].as_f64().unwrap();
        assert_eq!(sender["agree"], Value::Bool(true), "{sender}");
        // An interval that holds everything would agree with anything.
        for which in ["real", "in_virtual_time"] {
            assert!(width(which) < 0.25 * mean(which), "{which}: {sender}");
        }
    }
}
