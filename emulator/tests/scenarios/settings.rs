//! Reading and changing single settings.

use super::*;

#[test]
fn set_changes_one_setting() {
    let mut scenario = Scenario::load("wcdma-384").unwrap();
    let before = scenario.clone();
    let (index, config) = scenario.set("radio.down.channel.errors.bler", "5%").unwrap();
    assert_eq!((index, &config), (1, &scenario.stages[1].config));
    assert_eq!(scenario.get("radio.down.channel.errors.bler").unwrap(), "5%");
    assert_eq!(scenario.stages[0], before.stages[0]);
    scenario.set("radio.down.channel.errors.bler", "\"1%\"").unwrap();
    assert_eq!(scenario, before);
}

#[test]
fn changed_setting_applies_to_the_running_path() {
    let mut scenario = parse(&stage("loss", "down = { model = 'uniform', per = '0%' }"));
    let mut path = build(&scenario, None);
    assert_eq!(arrivals(&mut path).len(), 500);
    let (index, config) = scenario.set("loss.down.per", "100%").unwrap();
    path.reconfigure(Instant::from_secs(1), index, config.settings()).unwrap();
    path.handle_packet(Instant::from_secs(1), FIXED, vec![0; 40]);
    assert_eq!(path.poll_packet(Instant::from_secs(1)), None);
}

#[test]
fn set_accepts_quoted_and_unquoted_values() {
    let mut scenario = parse(&stage("link", "name = 'wire'\nboth = {}"));
    scenario.set("wire.down.rate", "2Mbit").unwrap();
    scenario.set("wire.down.queue.packets", "50").unwrap();
    scenario.set("wire.down.queue", "{ bytes = \"3kB\" }").unwrap();
    scenario.set("wire.both.delay", " 30 ms ").unwrap();
    assert_eq!(scenario.get("wire.both.delay").unwrap(), "30ms");
    assert_eq!(scenario.get("wire.both").unwrap()["up"], scenario.get("wire.up").unwrap());
    assert_eq!(scenario.get("wire.down.rate").unwrap(), "2Mbit");
    assert_eq!(
        scenario.get("wire.down.queue").unwrap(),
        serde_json::json!({ "packets": 50, "bytes": "3kB" })
    );
    assert_eq!(scenario.get("wire.up.delay").unwrap(), "30ms");
    let mut station = parse(&stage("station", ""));
    station.set("station.transit_marks", "true").unwrap();
    assert_eq!(station.get("station.transit_marks").unwrap(), true);
}

#[test]
fn invalid_value_is_refused_and_changes_nothing() {
    let mut scenario = Scenario::load("wcdma-384").unwrap();
    let before = scenario.clone();
    for (key, value, words) in [
        ("radio.down.channel.errors.bler", "110%", "is not a probability"),
        ("radio.down.channel.errors.blr", "1%", "`bler`"),
        ("radio.down.sender.window", "500", "512"),
        ("radio.down", "5", "is not a table"),
        ("raido.down.queue.packets", "5", "did you mean `radio`?"),
        ("radio", "5", "expected a key after the name"),
        ("radio.", "5", "expected a key after the name"),
        ("radio..x", "5", "not a key"),
        ("wire.rate", "5Mbit", "both = { rate"),
        ("wire.down.rate", "5Mbit\nup.rate = 3", "is not a rate"),
        ("wire.down.trace", "/nowhere", "either a `rate` or a `trace`"),
        ("", "", "unknown stage"),
    ] {
        let message = scenario.set(key, value).unwrap_err().to_string();
        assert!(message.contains(words), "{key} = {value}: {message}");
    }
    assert_eq!(scenario, before);
    let message = scenario.get("radio.down.chanel").unwrap_err().to_string();
    assert!(message.contains("setting:1:12: ") && message.contains("did you mean `channel`?"), "{message}");
}

#[test]
fn edit_removes_stage_as_a_file_does() {
    let mut scenario = Scenario::load("wcdma-384").unwrap();
    let original = scenario.clone();
    scenario.edit("wire.remove", "false").unwrap();
    assert_eq!(scenario, original);
    scenario.edit("wire.remove", "true").unwrap();
    let file = "schema = 1\nextends = 'wcdma-384'\n[[stage]]\nname = 'wire'\nremove = true\n";
    assert_eq!(scenario, Scenario { name: scenario.name.clone(), ..parse(file) });
    assert_eq!(scenario.stages, original.stages[1..]);
    scenario.edit("radio.remove", "true").unwrap();
    assert!(Scenario::parse(&scenario.to_toml(), "x.toml").unwrap().stages.is_empty());
}

#[test]
fn stage_that_another_one_names_is_not_removed() {
    let mut scenario = Scenario::load("sifest-random").unwrap();
    let before = scenario.clone();
    for (key, value, words) in [
        ("radio-errors.remove", "true", "because of stage `voice`: `leaves_after` names an unknown stage"),
        ("radio-errors.remove", "true", "remove or change `voice` first"),
        ("radio-errors.remove", "yes", "`remove` is true or false, not `yes`"),
        ("voices.remove", "true", "did you mean `voice`?"),
        ("voice.remove.now", "true", "unknown key `remove`"),
    ] {
        let message = scenario.edit(key, value).unwrap_err().to_string();
        assert!(message.contains(words), "{key} = {value}: {message}");
    }
    assert_eq!(scenario, before);
    scenario.edit("voice.remove", "true").unwrap();
    scenario.edit("radio-errors.remove", "true").unwrap();
    let names: Vec<&str> = scenario.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["to-home-agent", "to-foreign-agent", "radio"]);
}

#[test]
fn running_path_keeps_its_stages() {
    let mut scenario = Scenario::load("wcdma-384").unwrap();
    let before = scenario.clone();
    let mut path = build(&scenario, None);
    let removed = scenario.change(&mut path, Instant::ZERO, "wire.remove", &true.into());
    assert!(removed.unwrap_err().contains("unknown key `remove`"));
    assert_eq!(scenario, before);
}

#[test]
fn queue_has_only_the_settings_of_its_discipline() {
    let queue = |settings: &str| parse(&stage("link", &format!("down.queue = {{ {settings} }}")));
    let value_of = |settings: &str, key: &str| {
        queue(settings)
            .get(&format!("link.down.queue.{key}"))
            .map(|value| value.to_string())
            .unwrap_or_default()
    };
    for (settings, key, value) in [
        ("discipline = 'codel'", "target", "\"5ms\""),
        ("discipline = 'codel', target = '20ms'", "target", "\"20ms\""),
        ("discipline = 'codel'", "ecn", "false"),
        ("discipline = 'codel', packets = 7", "packets", "7"),
        ("discipline = 'codel'", "packets", ""),
        ("discipline = 'fq-codel'", "ecn", "true"),
        ("discipline = 'fq-codel'", "packets", "10240"),
        ("discipline = 'pie'", "target", "\"15ms\""),
        ("discipline = 'pie'", "mark_ecnth", "\"10%\""),
        ("discipline = 'red'", "max", "15"),
        ("discipline = 'red', min = '5kB', max = '15kB'", "max", "\"15kB\""),
        ("discipline = 'drop-tail'", "discipline", ""),
    ] {
        assert_eq!(value_of(settings, key), value, "{settings}: {key}");
    }
    for (settings, message) in [
        (
            "target = '5ms'",
            "`target` is valid only with the discipline \"codel\" or \"fq-codel\" or \"pie\", but the discipline is \"drop-tail\": remove it, or change the discipline",
        ),
        (
            "discipline = 'red', flows = 7",
            "`flows` is valid only with the discipline \"fq-codel\", but the discipline is \"red\": remove it, or change the discipline",
        ),
        (
            "discipline = 'codel', interval = '1ms'",
            "`target`: must be less than `interval` (1.000ms): RFC 8289 uses a twentieth of it",
        ),
        (
            "discipline = 'red', min = 'many'",
            "`many` is not a size: write a number and k, M, G, Ki, Mi or Gi, with or without a B, such as \"64kB\"",
        ),
    ] {
        let problem = problems(&stage("link", &format!("down.queue = {{ {settings} }}"))).remove(0);
        assert_eq!(problem.message, message, "{settings}");
        assert_eq!(problem.position.unwrap().line, 4, "{settings}");
    }
}

#[test]
fn changing_the_discipline_keeps_only_the_bounds() {
    let mut scenario = parse(&stage("link", "down.queue = { packets = 20 }"));
    scenario.set("link.down.queue.discipline", "codel").unwrap();
    assert_eq!(scenario.get("link.down.queue.packets").unwrap().to_string(), "20");
    scenario.set("link.down.queue.target", "9ms").unwrap();
    scenario.set("link.down.queue.discipline", "pie").unwrap();
    assert_eq!(scenario.get("link.down.queue.target").unwrap().to_string(), "\"15ms\"");
    assert_eq!(Scenario::parse(&scenario.to_toml(), "x.toml"), Ok(scenario));
}

#[test]
fn outage_queue_has_bounds_but_no_discipline() {
    let settings =
        "down = { at = ['1s'], lasts = '1s', packets = 'requeued', queue = { discipline = 'codel' } }";
    let problem = problems(&stage("outage", settings)).remove(0);
    assert_eq!(problem.message, "unknown key `discipline`");
}
