//! Output of `airlink check`, `airlink show` and `airlink compare`.

use std::process::{Command, Output};

use airlink::scenario::presets;

use super::*;

#[test]
fn compare_lists_the_settings_that_differ() {
    let output = airlink(&["compare", "wcdma-384", "wcdma-384-tsp"]);
    let table = text(&output.stdout);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["wcdma-384", "wcdma-384-tsp"]);
    assert!(rows.contains(&vec!["radio.down.channel.errors.bler", "\"1%\"", "\"10%\""]), "{table}");
    let json = airlink(&["compare", "wcdma-384", "wcdma-384-tsp", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["differences"].as_array().unwrap().len(), rows.len() - 1);
    let same = airlink(&["compare", "leo", "leo"]);
    assert_eq!(text(&same.stdout), "leo and leo describe the same path\n");
    assert_eq!(airlink(&["compare", "leo", "moon"]).status.code(), Some(2));
}

fn airlink(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airlink")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn check_prints_ok_or_exits_with_2() {
    let files = directory(
        "check",
        &[("good.toml", &stage("link", "both = {}")), ("bad.toml", &stage("link", "both = { x = 1 }"))],
    );
    let (good, bad) = (files.path("good.toml"), files.path("bad.toml"));
    let output = airlink(&["check", &good, "wcdma-384"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), format!("{good}: ok (1 stage)\nwcdma-384: ok (2 stages)\n"));
    let output = airlink(&["check", &bad, &good]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), format!("{good}: ok (1 stage)\n"));
    assert!(text(&output.stderr).starts_with(&format!("{bad}:4:10: unknown key `x`\n")));
}

#[test]
fn check_and_sim_warn_about_packet_driven_channel() {
    let loss = |step: &str| {
        let model = "model = 'gilbert-elliott', mean = '2%', burst = 30";
        stage("loss", &format!("name = 'air'\ndown = {{ {model}{step} }}"))
    };
    let files = directory("still", &[("still.toml", &loss("")), ("time.toml", &loss(", step = \"10ms\""))]);
    let (still, time) = (files.path("still.toml"), files.path("time.toml"));
    let output = airlink(&["check", &still, &time]);
    assert_eq!(output.status.code(), Some(0));
    let warnings = text(&output.stderr);
    let beginning =
        format!("{still}: warning: air.down: in the state \"bad\" 30 packets in a row are lost on average");
    assert!(warnings.starts_with(&beginning) && warnings.lines().count() == 1, "{warnings}");
    let sim = |file: &str| text(&airlink(&["sim", "-s", file, "--for", "1ms"]).stderr);
    assert!(sim(&still).contains("air.down: in the state"), "{}", sim(&still));
    assert!(!sim(&time).contains("air.down"));
}

#[test]
fn stage_without_effect_is_reported() {
    let warnings = |kind: &str, settings: &str| parse(&stage(kind, settings)).warnings();
    let ge = "model = 'gilbert-elliott', good = '0%', good_to_bad = '1%', bad_to_good = '10%'";
    let [ge_idle, ge_busy] = ["0%", "50%"].map(|bad| format!("down = {{ {ge}, bad = '{bad}' }}"));
    let markov =
        |per: &str| format!("down = {{ model = 'markov', states = [{{ name = 'one', to = {{}}{per} }}] }}");
    let (markov_idle, markov_busy) = (markov(""), markov(", per = '1%'"));
    for (kind, idle, why, busy) in [
        (
            "station",
            "handover = { at = ['1s'] }",
            "neither `transit_marks` nor `loss_report` is true",
            "transit_marks = true",
        ),
        ("station", "", "neither `transit_marks` nor `loss_report` is true", "loss_report = true"),
        ("loss", "", "it has neither `down` nor `up`", "down = { model = 'uniform', per = '1%' }"),
        (
            "loss",
            "both = { model = 'none' }",
            "it loses no packet",
            "down = { model = 'none' }\nup = { model = 'uniform', per = '1%' }",
        ),
        (
            "loss",
            "down = { model = 'uniform', per = '0%' }",
            "it loses no packet",
            "down = { model = 'bit-errors', ber = '1e-9' }",
        ),
        ("loss", ge_idle.as_str(), "it loses no packet", ge_busy.as_str()),
        ("loss", markov_idle.as_str(), "it loses no packet", markov_busy.as_str()),
        (
            "loss",
            "down = { model = 'list', drop = [] }",
            "it loses no packet",
            "down = { model = 'list', drop = ['packet 7'] }",
        ),
        ("reorder", "down.chance = '0%'", "`chance` is 0", "down.chance = '1%'"),
        ("duplicate", "down.chance = '0%'", "`chance` is 0", "down.chance = '1%'"),
        ("corrupt", "down.chance = '0%'", "`chance` is 0", "down.chance = '1%'"),
        ("truncate", "down.chance = '0%'", "`chance` is 0", "down.chance = '1%'"),
    ] {
        assert_eq!(warnings(kind, idle), [format!("{kind}: the stage does nothing: {why}")], "{idle}");
        assert_eq!(warnings(kind, busy), [""; 0], "{busy}");
    }
    // A link without settings is a perfect wire.
    assert_eq!(warnings("link", "both = {}"), [""; 0]);
    let files = directory("idle", &[("idle.toml", &stage("station", "radio = \"fixed\""))]);
    let idle = files.path("idle.toml");
    let output = airlink(&["check", &idle]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stderr),
        format!(
            "{idle}: warning: station: the stage does nothing: neither `transit_marks` nor `loss_report` is true\n"
        )
    );
}

/// Inamura et al. use ten retransmissions. In the terms of TS 25.322 this is MaxDAT 12, which RRC cannot configure.
#[test]
fn preset_warns_only_about_changed_settings() {
    for preset in presets::ALL {
        assert_eq!(Scenario::load(preset.name).unwrap().warnings(), [""; 0], "{}", preset.name);
        for command in ["check", "show"] {
            assert_eq!(text(&airlink(&[command, preset.name]).stderr), "", "{command} {}", preset.name);
        }
    }
    let changed =
        airlink(&["sim", "-s", "wcdma-384", "--for", "1ms", "--set", "radio.down.sender.max_rst=7"]);
    let changed = text(&changed.stderr);
    assert!(changed.contains("max_rst: 7") && !changed.contains("max_dat"), "{changed}");
    let files = directory("own", &[("own.toml", presets::find("wcdma-384").unwrap().text)]);
    let own = text(&airlink(&["check", &files.path("own.toml")]).stderr);
    assert!(own.contains("max_dat: 12 is not a value that RRC can configure"), "{own}");
}

#[test]
fn show_lists_presets_and_prints_parsable_scenarios() {
    let listed = text(&airlink(&["show"]).stdout);
    let entries = listed.lines().filter(|line| !line.starts_with(' '));
    assert_eq!(entries.count(), presets::ALL.len(), "{listed}");
    let shown = text(&airlink(&["show", "tax-rebate"]).stdout);
    assert_eq!(Scenario::parse(&shown, "tax-rebate").unwrap(), Scenario::load("tax-rebate").unwrap());
    let json: serde_json::Value =
        serde_json::from_slice(&airlink(&["show", "tax-rebate", "--json"]).stdout).unwrap();
    assert_eq!(json["stage"][1]["loss_report"], true);
    assert!(text(&airlink(&["show", "--source", "tax-rebate"]).stdout).contains("# Choice:"));
    assert_eq!(airlink(&["show", "tax-rebat"]).status.code(), Some(2));
}
