//! Scenarios that extend other scenarios.

use super::*;

#[test]
fn extension_changes_only_the_named_settings() {
    let base = Scenario::load("wcdma-384").unwrap();
    let scenario = parse(
        "schema = 1\nextends = 'wcdma-384'\nseed = 7\n\
         [[stage]]\nname = 'radio'\nboth.channel.errors.bler = '3%'\n\
         [[stage]]\nkind = 'station'\nbefore = 'radio'\n\
         [[stage]]\nkind = 'loss'\nname = 'last'\nboth = { model = 'none' }\n\
         [[stage]]\nkind = 'link'\nname = 'second'\nafter = 'wire'\nboth = {}",
    );
    let names: Vec<&str> = scenario.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["wire", "second", "station", "radio", "last"]);
    assert_eq!((scenario.seed, &scenario.description), (7, &base.description));
    assert_eq!(scenario.stages[0], base.stages[0]);
    assert_eq!(scenario.get("radio.up.channel.errors.bler").unwrap(), "3%");
    assert_eq!(scenario.get("radio.up.channel.delay"), base.get("radio.up.channel.delay"));
}

#[test]
fn extension_can_remove_or_replace_a_stage() {
    let scenario = parse(
        "schema = 1\nextends = 'wcdma-384'\n[[stage]]\nname = 'wire'\nremove = true\n\
         [[stage]]\nname = 'radio'\nkind = 'link'\ndown.rate = '384kbit'",
    );
    assert_eq!(scenario.stages.len(), 1);
    assert_eq!(scenario.get("radio.down.rate").unwrap(), "384kbit");
    let wrong =
        problems("schema = 1\nextends = 'wcdma-384'\n[[stage]]\nname = 'wier'\nremove = true\nkind = 'link'");
    assert!(wrong[0].to_string().contains("no stage `wier` to remove"), "{}", wrong[0]);
}

#[test]
fn new_model_replaces_all_old_settings() {
    let scenario = parse(
        "schema = 1\nextends = 'rtt-last-hop'\n[[stage]]\nname = 'radio-errors'\n\
         down = { model = 'list', drop = ['segment 5'] }",
    );
    assert!(scenario.get("radio-errors.down.per").is_err());
}

#[test]
fn extends_is_relative_and_cycles_are_found() {
    let files = directory(
        "extends",
        &[
            ("base.toml", &stage("link", "name = 'wire'\ndown.rate = '1Mbit'\ndown.dely = '1ms'")),
            ("fixed.toml", &stage("link", "name = 'wire'\ndown.rate = '1Mbit'")),
            (
                "over.toml",
                "schema = 1\nextends = 'fixed.toml'\n[[stage]]\nname = 'wire'\ndown.rate = '2Mbit'",
            ),
            ("wrong.toml", "schema = 1\nextends = 'base.toml'"),
            ("a.toml", "schema = 1\nextends = 'b.toml'"),
            ("b.toml", "schema = 1\nextends = 'a.toml'"),
            ("self.toml", "schema = 1\nextends = 'self.toml'"),
        ],
    );
    let scenario = Scenario::load(&files.path("over.toml")).unwrap();
    assert_eq!(scenario.get("wire.down.rate").unwrap(), "2Mbit");
    // An error names the file that contains the mistake.
    let message = Scenario::load(&files.path("wrong.toml")).unwrap_err().to_string();
    assert!(message.contains("base.toml:6:6: unknown key `dely`"), "{message}");
    for name in ["a.toml", "self.toml"] {
        let message = Scenario::load(&files.path(name)).unwrap_err().to_string();
        assert!(message.contains("in a cycle") && message.contains(" → "), "{message}");
    }
}
