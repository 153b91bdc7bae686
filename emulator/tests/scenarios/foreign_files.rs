//! Files that another user may have written.

use std::process::Command;

use nix::time::{ClockId, clock_gettime};

use super::*;

/// File contents that error messages must not reveal to the author of a scenario.
const SECRET: &str = "6b1f";

#[test]
fn errors_do_not_quote_contents_of_other_files() {
    let trace = |file: &str| stage("link", &format!("both.trace = '{file}'"));
    let files = directory(
        "secrets",
        &[
            ("shadow", &format!("root:{SECRET}:19000:0:99999:7:::\n")),
            ("keys.toml", &format!("# keys\npassword-{SECRET} = '{SECRET}'\n[{SECRET}]\n")),
            ("columns", &format!("5\n{SECRET} {SECRET}\n")),
            ("extends-shadow.toml", "schema = 1\nextends = 'shadow'"),
            ("extends-keys.toml", "schema = 1\nextends = 'keys.toml'"),
            ("trace-shadow.toml", &trace("shadow")),
            ("trace-columns.toml", &trace("columns")),
        ],
    );
    for (name, words) in [
        ("shadow", ["shadow:1:", "this is not TOML"]),
        ("extends-shadow.toml", ["shadow:1:", "this is not TOML"]),
        ("extends-keys.toml", ["keys.toml:1:1", "`schema` is missing"]),
        ("trace-shadow.toml", ["shadow:1", "not a time"]),
        ("trace-columns.toml", ["columns:2", "2 columns"]),
    ] {
        let message = Scenario::load(&files.path(name)).unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{name}: {message}");
        assert!(!message.contains(SECRET), "{name}: {message}");
    }
}

#[test]
fn pipes_and_devices_in_a_scenario_are_refused() {
    let files = directory("kinds", &[]);
    let pipe = files.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (file, what) in [(pipe.as_str(), "a pipe"), ("/dev/zero", "a device"), ("/tmp", "a directory")] {
        for text in
            [format!("schema = 1\nextends = '{file}'"), stage("link", &format!("both.trace = '{file}'"))]
        {
            let message = Scenario::parse(&text, "x.toml").unwrap_err().to_string();
            let expected = format!("{file} cannot be read: it is {what}, and an ordinary file is wanted");
            assert!(message.contains(&expected), "{message}");
        }
    }
    // On the command line, pipes and devices are allowed, but the size limit still applies.
    let message = Scenario::load("/dev/zero").unwrap_err().to_string();
    assert!(message.contains("/dev/zero cannot be read: it is longer than 4 MiB"), "{message}");
}

#[test]
fn too_long_chain_is_not_reported_as_cycle() {
    let files: Vec<(String, String)> = (0..18)
        .map(|index| match index {
            0 => ("0.toml".to_owned(), "schema = 1\nstage = []".to_owned()),
            _ => (format!("{index}.toml"), format!("schema = 1\nextends = '{}.toml'", index - 1)),
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let files = directory("chain", &files);
    assert!(Scenario::load(&files.path("15.toml")).is_ok());
    for (name, at) in [("16.toml", "1.toml:2:11"), ("17.toml", "2.toml:2:11")] {
        let message = Scenario::load(&files.path(name)).unwrap_err().to_string();
        assert!(!message.contains("cycle"), "{message}");
        let expected = format!("{at}: this is the 16th `extends` in the chain; the limit is 15");
        assert!(message.contains(&expected) && message.contains(name), "{message}");
    }
}

/// Returns the processor time in seconds that this thread spends in `work`. Other programs hardly change it.
fn cpu_time(work: impl FnOnce()) -> f64 {
    let now = || -> std::time::Duration {
        clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has this clock").into()
    };
    let begun = now();
    work();
    (now() - begun).as_secs_f64()
}

#[test]
fn large_scenarios_load_quickly_and_larger_are_refused() {
    let states = |count: usize| {
        let mut text =
            "schema = 1\n[[stage]]\nkind = 'loss'\n[stage.down]\nmodel = 'markov'\nstates = [".to_owned();
        for state in 0..count {
            text += &format!("{{ name = 's{state}', to = {{ s{} = '1%' }} }},\n", (state + 1) % count);
        }
        text + "]"
    };
    let files = directory(
        "large",
        &[("tenth.toml", &states(8_000)), ("most.toml", &states(80_000)), ("more.toml", &states(200_000))],
    );
    let [tenth, most] = ["tenth.toml", "most.toml"].map(|name| {
        cpu_time(|| {
            build(&Scenario::load(&files.path(name)).unwrap(), None);
        })
    });
    // A linear search among the states for each transition would take a hundred times as long.
    assert!(most < 35.0 * tenth, "{most} s for ten times the states, {tenth} s for a tenth");
    let message = Scenario::load(&files.path("more.toml")).unwrap_err().to_string();
    assert!(message.contains("longer than 4 MiB"), "{message}");

    let stages = format!("schema = 1\n{}", "[[stage]]\nkind = 'outage'\n".repeat(1001));
    let message = Scenario::parse(&stages, "x").unwrap_err().to_string();
    assert!(message.contains("1001 stages; the limit is 1000"), "{message}");
    let keys: String = (0..10_001).map(|key| format!("k{key} = 1\n")).collect();
    let message = Scenario::parse(&format!("schema = 1\n{keys}"), "x").unwrap_err().to_string();
    assert!(message.contains("10002 keys; the limit is 10000"), "{message}");
}
