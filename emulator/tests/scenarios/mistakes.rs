//! Error messages for invalid scenarios, and a check that no input causes a panic.

use std::process::Command;

use airlink::scenario::{TextPosition, presets};
use airtcp_testkit::sample::cases;
use proptest::prelude::*;

use super::*;

/// Each case consists of the scenario, the part of its text that the caret marks, and words of the message.
#[test]
fn every_mistake_is_located_and_explained() {
    let two = "[[stage]]\nkind = 'link'\nname = 'a'\n";
    let cases: &[(String, &str, &[&str])] = &[
        // Keys and words.
        (stage("link", "both = { dely = '5ms' }"), "dely", &["`dely`", "did you mean `delay`", "rate"]),
        (stage("link", "rate = '5Mbit'"), "rate", &["`rate`", "both = { rate"]),
        (stage("lnik", ""), "\"lnik\"", &["unknown kind of stage `lnik`", "did you mean `link`", "station"]),
        (stage("loss", "down = { model = 'unifrom', per = '1%' }"), "'unifrom'", &["did you mean `uniform`"]),
        (stage("station", "transit_mark = true"), "transit_mark", &["did you mean `transit_marks`"]),
        (stage("rlc", "down.sender.wndow = 8"), "wndow", &["did you mean `window`"]),
        (stage("rlc", "down.channel.errors = { model = 'independent', blr = 0 }"), "blr", &["`bler`"]),
        ("schema = 1\nsed = 3\nstage = []".into(), "sed", &["did you mean `seed`"]),
        ("schema = 1\nstage = []\n[link]\nrate = 1".into(), "link", &["[[stage]]", "kind = \"link\""]),
        // Units.
        (stage("link", "both = { rate = '384' }"), "'384'", &["`384` is not a rate", "\"384kbit\""]),
        (stage("link", "both = { rate = 384 }"), "384", &["`384` is not a rate: ", "\"384kbit\""]),
        (stage("link", "both = { delay = '5' }"), "'5'", &["a length of time", "\"150ms\""]),
        (stage("link", "both = { delay = 5 }"), "5", &["`5` is not a length of time: ", "\"150ms\""]),
        (stage("link", "both = { delay = '-5ms' }"), "'-5ms'", &["a length of time"]),
        (stage("link", "both.queue.bytes = '64kbit'"), "'64kbit'", &["a size", "\"64kB\""]),
        (stage("link", "both.queue.bytes = 1500"), "1500", &["`1500` is not a size: ", "\"64kB\""]),
        // Numbers.
        (stage("link", "both = { rate = '0kbit' }"), "'0kbit'", &["a rate"]),
        (stage("link", "both.queue.packets = 0"), "0", &["queue of 0 packets", "write 1 or more"]),
        (stage("link", "both.queue.packets = -1"), "-1", &["whole number"]),
        (
            stage("loss", "down = { model = 'uniform', per = '110%' }"),
            "'110%'",
            &["a probability", "\"10%\""],
        ),
        (stage("loss", "down = { model = 'uniform', per = 1.5 }"), "1.5", &["a probability"]),
        (
            stage("loss", "down = { model = 'uniform', per = true }"),
            "true",
            &["`true` is not a probability: "],
        ),
        (
            stage("loss", "down = { model = 'uniform' }"),
            "{ model = 'uniform' }",
            &["required by the model", "add `per"],
        ),
        (
            stage(
                "loss",
                "down.model = 'markov'\n\
                 down.states = [{ name = 'a', to = { b = '60%', c = '50%' } }, { name = 'b', to = {} }, \
                 { name = 'c', to = {} }]",
            ),
            "'a'",
            &["the state \"a\"", "1.1, more than 1"],
        ),
        (
            stage("loss", "down = { model = 'list', drop = ['segmnt 5'] }"),
            "",
            &["segmnt 5", "\"segment 50\""],
        ),
        (stage("rlc", "down.sender.window = 500"), "500", &["`window`", "512"]),
        (stage("rlc", "down.sender.window = 70000"), "70000", &["65535"]),
        (stage("rlc", "down.sender.discard.max_dat = 0"), "", &["max_dat"]),
        (
            stage("rlc", "down.sender.discard = { mode = 'reset-after-max-dat', max_dat = 0 }"),
            "0",
            &["must be at least 1", "MaxDAT"],
        ),
        (stage("station", "max_flows = 0"), "0", &["`0` is not a whole number from 1"]),
        (stage("station", "max_flight = '2048MiB'"), "'2048MiB'", &["1 GiB", "\"1MB\""]),
        (
            stage("station", "handover = { at = ['9s', '5s'] }"),
            "['9s', '5s']",
            &["`at`", "9s", "5s", "ascending"],
        ),
        (stage("station", "handover = { at = ['1s', '5s'], every = '4s' }"), "'4s'", &["`every`", "longer"]),
        // Top-level keys.
        ("stage = []".into(), "", &["`schema` is missing", "schema = 1"]),
        ("schema = 2\nstage = []".into(), "2", &["version 2", "version 1"]),
        ("schema = 1".into(), "", &["no stages", "[[stage]]"]),
        ("schema = 1\nmtu = 20\nstage = []".into(), "20", &["68"]),
        ("schema = 1\nseed = -1\nstage = []".into(), "-1", &["whole number"]),
        ("schema = 1\nstage = []\naddresses.fixed = ['10.0.0.300']".into(), "'10.0.0.300'", &["10.0.0.1/24"]),
        (
            "schema = 1\nstage = []\n[addresses]\nfixed = '10.0.0.1/24'".into(),
            "",
            &["no address for the mobile side", "10.0.0.2/24"],
        ),
        ("schema = 1\nstage = []\naddresses = { fixed = [], mobile = [] }".into(), "", &["either side"]),
        ("schema = 1\nstage = 5".into(), "5", &["[[stage]]"]),
        ("schema = 1\nmtu = = 4".into(), "=", &["not TOML"]),
        ("schema = 1\n[[stage]]\nname = 'x'".into(), "'x'", &["`x` has no kind", "link"]),
        // Names.
        (format!("schema = 1\n{two}{two}"), "'a'", &["two stages named `a`"]),
        (stage("link", "name = 'a.b'"), "'a.b'", &["not a valid name", "letters"]),
        (
            stage(
                "traffic",
                "down = { source = 'cbr', rate = '1kbit', packet = '100B', leaves_after = 'wrie' }\n\
                 [[stage]]\nkind = 'link'\nname = 'wire'",
            ),
            "'wrie'",
            &["unknown stage `wrie`", "did you mean `wire`"],
        ),
        (
            stage(
                "traffic",
                "up = { source = 'cbr', rate = '1kbit', packet = '100B', leaves_after = 'wire' }\n\
                 [[stage]]\nkind = 'link'\nname = 'wire'",
            ),
            "'wire'",
            &["go up from here do not pass the stage `wire`"],
        ),
        (stage("link", "after = 'x'"), "after", &["extend"]),
        // Files.
        (stage("link", "both.trace = '/nowhere.up'"), "'/nowhere.up'", &["/nowhere.up", "cannot be read"]),
        ("schema = 1\nextends = 'wcdma-348'".into(), "'wcdma-348'", &["did you mean `wcdma-384`"]),
    ];
    for (text, marked, words) in cases {
        let problems = problems(text);
        let [problem] = problems.as_slice() else { panic!("not one problem but {problems:?}\n{text}") };
        let message = problem.to_string();
        for word in *words {
            assert!(message.contains(word), "`{word}` is not in:\n{message}");
        }
        let place = problem.position.as_ref().unwrap_or_else(|| panic!("no place: {message}"));
        assert!(message.starts_with(&format!("x.toml:{}:{}: ", place.line, place.column)), "{message}");
        assert_eq!(place.text.as_deref(), text.lines().nth(place.line - 1).or(Some("")), "{message}");
        if !marked.is_empty() {
            assert_eq!(under_the_caret(place), *marked, "{message}");
        }
    }
}

fn under_the_caret(place: &TextPosition) -> String {
    place.text.iter().flat_map(|text| text.chars()).skip(place.column - 1).take(place.width).collect()
}

#[test]
fn all_problems_are_reported_in_text_order() {
    let text = "schema = 1\nsed = 2\n[[stage]]\nkind = 'link'\ndown.rate = '5'\nup.dely = '1ms'\n\
                [[stage]]\nkind = 'lnik'\n[[stage]]\nkind = 'loss'\nboth = { model = 'no' }";
    let lines: Vec<usize> =
        problems(text).iter().map(|problem| problem.position.as_ref().unwrap().line).collect();
    assert_eq!(lines, [2, 5, 6, 8, 11]);
}

#[test]
fn unknown_name_suggests_the_nearest_preset() {
    let message = Scenario::load("wcdma384").unwrap_err().to_string();
    assert!(message.contains("no preset or file named `wcdma384`"), "{message}");
    assert!(message.contains("did you mean `wcdma-384`?"), "{message}");
    let message = Scenario::load("./wcdma-384").unwrap_err().to_string();
    assert!(message.contains("cannot be read"), "{message}");
}

#[test]
fn bad_trace_line_is_reported_with_its_place() {
    let files = directory(
        "trace",
        &[
            ("good.up", "1\n5\n5\n9\n"),
            ("bad.up", "1\n2\nfive\n"),
            ("good.toml", &stage("link", "both.trace = 'good.up'")),
            ("bad.toml", &stage("link", "down.trace = 'bad.up'")),
        ],
    );
    // The path is relative to the scenario, not to the working directory.
    build(&Scenario::load(&files.path("good.toml")).unwrap(), None);
    let message = Scenario::load(&files.path("bad.toml")).unwrap_err().to_string();
    assert!(message.contains("bad.up:3: the line is not a time"), "{message}");
    assert!(message.contains("bad.toml:4:14: "), "{message}");
}

#[test]
fn shown_scenario_with_a_trace_works_elsewhere() {
    let files = directory(
        "show",
        &[("sub/trace.up", "1\n5\n"), ("sub/trace.toml", &stage("link", "both.trace = 'trace.up'"))],
    );
    // The path of the scenario is relative to the working directory.
    let show = Command::new(env!("CARGO_BIN_EXE_airlink"))
        .args(["show", "sub/trace.toml"])
        .current_dir(files.path("."))
        .output()
        .unwrap();
    let copy = files.path("sub/copy.toml");
    std::fs::write(&copy, show.stdout).unwrap();
    let copy = Scenario::load(&copy).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(copy.stages, Scenario::load(&files.path("sub/trace.toml")).unwrap().stages);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        let _ = Scenario::parse(&text, "x").map_err(|error| error.to_string());
    }

    /// Presets with random replacements are valid or invalid, but never cause a panic. Writing and parsing a
    /// valid preset does not change it.
    #[test]
    fn damaged_preset_does_not_panic(
        preset in 0..presets::ALL.len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..30_usize, "[a-z0-9%'\"={}\\[\\]., \n-]{0,6}"), 1..4),
    ) {
        let mut text: Vec<char> = presets::ALL[preset].text.chars().collect();
        for (at, length, new) in cuts {
            let at = at.index(text.len() + 1);
            text.splice(at..(at + length).min(text.len()), new.chars());
        }
        let text: String = text.into_iter().collect();
        match Scenario::parse(&text, "x") {
            Ok(scenario) => prop_assert_eq!(Scenario::parse(&scenario.to_toml(), "x"), Ok(scenario)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    /// Replaces a value by one of another type.
    #[test]
    fn exchanged_value_does_not_panic(
        preset in 0..presets::ALL.len(),
        line in any::<prop::sample::Index>(),
        value in prop::sample::select(vec!["0", "-1", "1e400", "nan", "''", "'0s'", "'1ns'", "'1GB'", "[]", "[[]]", "{}",
            "{ a = 1 }", "true", "1979-05-27", "9223372036854775807", "'100%'", "'1Gbit'", "'18446744073709551615ns'"]),
    ) {
        let text = Scenario::load(presets::ALL[preset].name).unwrap().to_toml();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let index = line.index(lines.len());
        if let Some((key, _)) = lines[index].clone().split_once(" = ") {
            lines[index] = format!("{key} = {value}");
        }
        if let Ok(scenario) = Scenario::parse(&lines.join("\n"), "x") {
            prop_assert!(scenario.build(None, Recording::Off, false).is_ok());
            prop_assert_eq!(Scenario::parse(&scenario.to_toml(), "x"), Ok(scenario));
        }
    }

    #[test]
    fn arbitrary_key_and_value_do_not_panic(key in "(radio|wire)?[a-z.\"'= \n]{0,20}", value in any::<String>()) {
        let mut scenario = Scenario::load("wcdma-384").unwrap();
        let _ = scenario.set(&key, &value).map_err(|error| error.to_string());
        let _ = scenario.get(&key).map_err(|error| error.to_string());
    }
}
