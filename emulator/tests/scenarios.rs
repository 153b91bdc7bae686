//! Scenarios: the presets, what is said about wrong ones, extending, setting, and the reference in the docs.

use std::path::PathBuf;
use std::process::{Command, Output};

use airlink::machine::{Machine, catch_up};
use airlink::path::{FIXED, MOBILE, Path};
use airlink::scenario::{Place, Problem, Scenario, presets};
use airlink::stage::Recording;
use airwire::time::{Duration, Instant};
use proptest::prelude::*;

fn build(scenario: &Scenario, seed: Option<u64>) -> Path {
    scenario.build(seed, Recording::Off, false).unwrap()
}

/// One stage of this kind, with `settings` below.
fn stage(kind: &str, settings: &str) -> String {
    format!("schema = 1\n[[stage]]\nkind = \"{kind}\"\n{settings}\n")
}

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn problems(text: &str) -> Vec<Problem> {
    match Scenario::parse(text, "x.toml") {
        Ok(scenario) => panic!("this is fine, but should not be: {scenario:?}"),
        Err(error) => error.problems().to_vec(),
    }
}

/// A directory with these files, gone at the end.
struct Files(PathBuf);

impl Files {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let directory = std::env::temp_dir().join(format!("airlink-scenarios-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, content) in files {
            let path = directory.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// ---- presets

/// 0.02 · 0.1 + 0.5 · 0.01, over 0.11.
#[test]
fn a_two_state_channel_says_what_it_loses_on_average() {
    let of = |step: &str| {
        let text = format!(
            "schema = 1\n[[stage]]\nkind = \"loss\"\nname = \"air\"\ndown = {{ model = \"gilbert-elliott\", good = 0.02, bad = 0.5, \
             good_to_bad = 0.01, bad_to_good = 0.1{step} }}\n"
        );
        Scenario::parse(&text, "x").unwrap().remarks()
    };
    let per_packet = of("");
    assert_eq!(
        per_packet[0],
        "air.down: 6.36 % of the packets are lost on average; the bad state lasts 10.0 packets on average"
    );
    assert!(per_packet[1].contains("a burst of losses does not end"), "{per_packet:?}");
    let by_time = of(", step = \"20ms\"");
    assert_eq!(by_time.len(), 1);
    assert!(by_time[0].ends_with("lasts 0.200 s on average"), "{by_time:?}");
    let of_acks = of(", affects = \"acks\"");
    assert!(of_acks[0].starts_with("air.down: 6.36 % of the ACKs without data are lost"), "{of_acks:?}");
}

#[test]
fn a_two_state_channel_of_rlc_says_what_it_damages_on_average() {
    let text = "schema = 1\n[[stage]]\nkind = \"rlc\"\nname = \"radio\"\nup.channel = { tti = \"20ms\", errors = \
                { model = \"gilbert-elliott\", good = 0.02, bad = 0.5, good_to_bad = 0.01, bad_to_good = 0.1 } }\n";
    let expected =
        "radio.up: 6.36 % of the blocks are damaged on average; the bad state lasts 0.200 s on average";
    assert_eq!(Scenario::parse(text, "x").unwrap().remarks(), [expected]);
}

#[test]
fn every_preset_is_read_and_built_and_says_what_it_is() {
    for preset in presets::ALL {
        let scenario = Scenario::load(preset.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, preset.name);
        assert!((10..=110).contains(&scenario.description.len()), "{}", preset.name);
        assert!(preset.text.starts_with("# "), "{} does not say where it is from", preset.name);
        build(&scenario, None);
    }
}

#[test]
fn what_is_shown_of_a_preset_is_the_same_scenario() {
    for preset in presets::ALL {
        let scenario = Scenario::load(preset.name).unwrap();
        let again =
            Scenario::parse(&scenario.to_toml(), preset.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, scenario, "{}", scenario.to_toml());
    }
}

#[test]
fn a_small_packet_crosses_the_w_cdma_preset_and_comes_back_in_400_ms_on_average() {
    // Inamura et al. §5.1. The time depends on where in a TTI it comes.
    let mut path = build(&Scenario::load("wcdma-384").unwrap(), None);
    let mut total = Duration::ZERO;
    let rounds = 400;
    for round in 0..rounds {
        let sent = Instant::from_millis(round * 2_000) + Duration::from_micros(round * 137);
        let arrived = deliver(&mut path, sent, FIXED, vec![0x45; 38]);
        total += deliver(&mut path, arrived, MOBILE, vec![0x45; 38]) - sent;
    }
    let mean = total / rounds;
    // One packet in a hundred and its acknowledgement meet a block error: a few ms on average.
    let wanted = Duration::from_millis(400)..Duration::from_millis(412);
    assert!(wanted.contains(&mean), "{mean}");
}

#[test]
fn a_small_packet_crosses_the_hsdpa_preset_and_comes_back_in_80_ms_on_average() {
    let mut path = build(&Scenario::load("hsdpa-like").unwrap(), None);
    let mut total = Duration::ZERO;
    let rounds = 400;
    for round in 0..rounds {
        let sent = Instant::from_millis(round * 2_000) + Duration::from_micros(round * 137);
        let arrived = deliver(&mut path, sent, FIXED, vec![0x45; 38]);
        total += deliver(&mut path, arrived, MOBILE, vec![0x45; 38]) - sent;
    }
    let mean = total / rounds;
    // HARQ, and fades in which no block gets through.
    let wanted = Duration::from_millis(79)..Duration::from_millis(86);
    assert!(wanted.contains(&mean), "{mean}");
}

/// Hands in a packet and waits until one comes out.
fn deliver(path: &mut Path, at: Instant, port: airlink::machine::Port, packet: Vec<u8>) -> Instant {
    catch_up(path, at, |_, _, _| {});
    path.handle_packet(at, port, packet);
    let mut left = path.poll_packet(at).map(|_| at);
    while left.is_none() {
        let deadline = path.next_deadline().expect("a packet is on its way");
        catch_up(path, deadline, |now, _, _| left = Some(now));
    }
    left.unwrap()
}

// ---- seeds

/// Which of 500 packets arrive.
fn arrivals(path: &mut Path) -> Vec<u16> {
    let mut arrived = Vec::new();
    for number in 0..500_u16 {
        let now = Instant::from_millis(u64::from(number));
        let mut note = |_, _, packet: Vec<u8>| arrived.push(u16::from_be_bytes([packet[0], packet[1]]));
        catch_up(path, now, &mut note);
        path.handle_packet(now, FIXED, number.to_be_bytes().to_vec());
        airlink::machine::drain(path, now, &mut note);
    }
    arrived
}

#[test]
fn the_seed_decides_and_another_one_decides_otherwise() {
    let scenario = parse(&stage("loss", "down = { model = 'uniform', per = '20%' }"));
    let mut own = build(&scenario, None);
    let mut same = build(&scenario, Some(1));
    let mut other = build(&scenario, Some(2));
    let first = arrivals(&mut own);
    assert!((350..450).contains(&first.len()), "{}", first.len());
    assert_eq!(first, arrivals(&mut same));
    assert_ne!(first, arrivals(&mut other));
}

#[test]
fn another_stage_beside_it_changes_nothing_in_what_a_stage_decides() {
    let loss = "down = { model = 'uniform', per = '20%' }";
    let alone = parse(&stage("loss", loss));
    let beside = parse(&format!(
        "{}\n[[stage]]\nkind = 'loss'\nname = 'other'\ndown = {{ model = 'uniform', per = '0%' }}",
        stage("loss", loss)
    ));
    assert_eq!(arrivals(&mut build(&alone, None)), arrivals(&mut build(&beside, None)));
    let renamed = parse(&stage("loss", &format!("name = 'another'\n{loss}")));
    assert_ne!(arrivals(&mut build(&alone, None)), arrivals(&mut build(&renamed, None)));
}

// ---- mistakes

/// Each mistake: the text, what is marked in it (with the caret below), and words of what is said.
#[test]
fn every_mistake_is_marked_at_its_place_with_what_was_meant() {
    let two = "[[stage]]\nkind = 'link'\nname = 'a'\n";
    let cases: &[(String, &str, &[&str])] = &[
        // Keys and words.
        (stage("link", "both = { dely = '5ms' }"), "dely", &["`dely`", "did you mean `delay`", "rate"]),
        (stage("link", "rate = '5Mbit'"), "rate", &["`rate`", "both = { rate"]),
        (stage("lnik", ""), "\"lnik\"", &["no kind of stage `lnik`", "did you mean `link`", "station"]),
        (stage("loss", "down = { model = 'unifrom', per = '1%' }"), "'unifrom'", &["did you mean `uniform`"]),
        (stage("station", "transit_mark = true"), "transit_mark", &["did you mean `transit_marks`"]),
        (stage("rlc", "down.sender.wndow = 8"), "wndow", &["did you mean `window`"]),
        (stage("rlc", "down.channel.errors = { model = 'independent', blr = 0 }"), "blr", &["`bler`"]),
        ("schema = 1\nsed = 3\nstage = []".into(), "sed", &["did you mean `seed`"]),
        ("schema = 1\nstage = []\n[link]\nrate = 1".into(), "link", &["[[stage]]", "kind = \"link\""]),
        // Units.
        (stage("link", "both = { rate = '384' }"), "'384'", &["`384` is not a rate", "\"384kbit\""]),
        (stage("link", "both = { rate = 384 }"), "384", &["a rate", "\"384kbit\""]),
        (stage("link", "both = { delay = '5' }"), "'5'", &["a length of time", "\"150ms\""]),
        (stage("link", "both = { delay = '-5ms' }"), "'-5ms'", &["a length of time"]),
        (stage("link", "both.queue.bytes = '64kbit'"), "'64kbit'", &["a size", "\"64kB\""]),
        // Numbers.
        (stage("link", "both = { rate = '0kbit' }"), "'0kbit'", &["a rate"]),
        (stage("link", "both.queue.packets = 0"), "0", &["queue of 0 packets", "write 1"]),
        (stage("link", "both.queue.packets = -1"), "-1", &["whole number"]),
        (
            stage("loss", "down = { model = 'uniform', per = '110%' }"),
            "'110%'",
            &["a probability", "\"10%\""],
        ),
        (stage("loss", "down = { model = 'uniform', per = 1.5 }"), "1.5", &["a probability"]),
        (stage("loss", "down = { model = 'uniform' }"), "{ model = 'uniform' }", &["needs it: add `per"]),
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
            &["MaxDAT is 1 or more"],
        ),
        (stage("station", "max_flows = 0"), "0", &["`0` is not a whole number from 1"]),
        (stage("station", "max_flight = '2048MiB'"), "'2048MiB'", &["1 GiB", "\"1MB\""]),
        (
            stage("station", "handover = { at = ['9s', '5s'] }"),
            "['9s', '5s']",
            &["`at`", "9s", "5s", "ascending"],
        ),
        (stage("station", "handover = { at = ['1s', '5s'], every = '4s' }"), "'4s'", &["`every`", "longer"]),
        // The top.
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
        (stage("link", "name = 'a.b'"), "'a.b'", &["not a name", "letters"]),
        (
            stage(
                "traffic",
                "down = { source = 'cbr', rate = '1kbit', packet = '100B', leaves_after = 'wrie' }\n\
                 [[stage]]\nkind = 'link'\nname = 'wire'",
            ),
            "'wrie'",
            &["no stage `wrie`", "did you mean `wire`"],
        ),
        (
            stage(
                "traffic",
                "up = { source = 'cbr', rate = '1kbit', packet = '100B', leaves_after = 'wire' }\n\
                 [[stage]]\nkind = 'link'\nname = 'wire'",
            ),
            "'wire'",
            &["go up from here never come to the stage `wire`"],
        ),
        (stage("link", "after = 'x'"), "after", &["extend"]),
        // Files.
        (stage("link", "both.trace = '/nowhere.up'"), "'/nowhere.up'", &["/nowhere.up", "cannot be read"]),
        ("schema = 1\nextends = 'wcdma-348'".into(), "'wcdma-348'", &["did you mean `wcdma-384`"]),
    ];
    for (text, marked, words) in cases {
        let problems = problems(text);
        let [problem] = problems.as_slice() else { panic!("not one problem but {problems:?}\n{text}") };
        let shown = problem.to_string();
        for word in *words {
            assert!(shown.contains(word), "`{word}` is not in:\n{shown}");
        }
        let place = problem.place.as_ref().unwrap_or_else(|| panic!("no place: {shown}"));
        assert!(shown.starts_with(&format!("x.toml:{}:{}: ", place.line, place.column)), "{shown}");
        assert_eq!(place.text.as_deref(), text.lines().nth(place.line - 1).or(Some("")), "{shown}");
        if !marked.is_empty() {
            assert_eq!(under_the_caret(place), *marked, "{shown}");
        }
    }
}

fn under_the_caret(place: &Place) -> String {
    place.text.iter().flat_map(|text| text.chars()).skip(place.column - 1).take(place.width).collect()
}

#[test]
fn all_that_is_wrong_is_said_at_once_in_the_order_of_the_text() {
    let text = "schema = 1\nsed = 2\n[[stage]]\nkind = 'link'\ndown.rate = '5'\nup.dely = '1ms'\n\
                [[stage]]\nkind = 'lnik'\n[[stage]]\nkind = 'loss'\nboth = { model = 'no' }";
    let lines: Vec<usize> =
        problems(text).iter().map(|problem| problem.place.as_ref().unwrap().line).collect();
    assert_eq!(lines, [2, 5, 6, 8, 11]);
}

#[test]
fn a_name_that_is_neither_preset_nor_file_brings_up_the_nearest_preset() {
    let shown = Scenario::load("wcdma384").unwrap_err().to_string();
    assert!(shown.contains("no preset and no file `wcdma384`"), "{shown}");
    assert!(shown.contains("did you mean `wcdma-384`?"), "{shown}");
    let shown = Scenario::load("./wcdma-384").unwrap_err().to_string();
    assert!(shown.contains("cannot be read"), "{shown}");
}

#[test]
fn a_bad_line_of_a_trace_is_told_with_the_trace_s_name_and_line() {
    let files = Files::new(
        "trace",
        &[
            ("good.up", "1\n5\n5\n9\n"),
            ("bad.up", "1\n2\nfive\n"),
            ("good.toml", &stage("link", "both.trace = 'good.up'")),
            ("bad.toml", &stage("link", "down.trace = 'bad.up'")),
        ],
    );
    // Relative to the scenario, not to where the program was started.
    build(&Scenario::load(&files.path("good.toml")).unwrap(), None);
    let shown = Scenario::load(&files.path("bad.toml")).unwrap_err().to_string();
    assert!(shown.contains("bad.up:3: it is not a time"), "{shown}");
    assert!(shown.contains("bad.toml:4:14: "), "{shown}");
}

#[test]
fn what_show_writes_of_a_scenario_with_a_trace_can_be_read_from_elsewhere() {
    let files = Files::new(
        "show",
        &[("sub/trace.up", "1\n5\n"), ("sub/trace.toml", &stage("link", "both.trace = 'trace.up'"))],
    );
    // By a path that is relative to where the program is started.
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

// ---- extending

#[test]
fn an_extending_scenario_changes_what_it_names_and_keeps_the_rest() {
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
fn a_stage_can_be_removed_and_can_become_of_another_kind() {
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
fn another_model_takes_the_place_of_the_old_one_with_all_its_numbers() {
    let scenario = parse(
        "schema = 1\nextends = 'rtt-last-hop'\n[[stage]]\nname = 'radio-errors'\n\
         down = { model = 'list', drop = ['segment 5'] }",
    );
    assert!(scenario.get("radio-errors.down.per").is_err());
}

#[test]
fn files_extend_files_beside_them_and_circles_are_found() {
    let files = Files::new(
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
    // A mistake is shown in the file where it is.
    let shown = Scenario::load(&files.path("wrong.toml")).unwrap_err().to_string();
    assert!(shown.contains("base.toml:6:6: there is no key `dely`"), "{shown}");
    for name in ["a.toml", "self.toml"] {
        let shown = Scenario::load(&files.path(name)).unwrap_err().to_string();
        assert!(shown.contains("in a circle") && shown.contains(" → "), "{shown}");
    }
}

// ---- files that somebody else has written

/// What nobody is to see who only writes scenarios.
const SECRET: &str = "6b1f";

#[test]
fn what_stands_in_a_file_that_is_no_scenario_and_no_trace_is_not_repeated() {
    let trace = |file: &str| stage("link", &format!("both.trace = '{file}'"));
    let files = Files::new(
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
        let shown = Scenario::load(&files.path(name)).unwrap_err().to_string();
        assert!(words.iter().all(|word| shown.contains(word)), "{name}: {shown}");
        assert!(!shown.contains(SECRET), "{name}: {shown}");
    }
}

#[test]
fn a_pipe_or_a_device_that_a_scenario_names_is_neither_waited_for_nor_read() {
    let files = Files::new("kinds", &[]);
    let pipe = files.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (file, what) in [(pipe.as_str(), "a pipe"), ("/dev/zero", "a device"), ("/tmp", "a directory")] {
        for text in
            [format!("schema = 1\nextends = '{file}'"), stage("link", &format!("both.trace = '{file}'"))]
        {
            let shown = Scenario::parse(&text, "x.toml").unwrap_err().to_string();
            let expected = format!("{file} cannot be read: it is {what}, and an ordinary file is wanted");
            assert!(shown.contains(&expected), "{shown}");
        }
    }
    // A person may name a pipe, but neither has an end of what is read.
    let shown = Scenario::load("/dev/zero").unwrap_err().to_string();
    assert!(shown.contains("/dev/zero cannot be read: it is longer than 4 MiB"), "{shown}");
}

#[test]
fn a_chain_that_is_too_long_is_not_called_a_circle() {
    let files: Vec<(String, String)> = (0..18)
        .map(|index| match index {
            0 => ("0.toml".to_owned(), "schema = 1\nstage = []".to_owned()),
            _ => (format!("{index}.toml"), format!("schema = 1\nextends = '{}.toml'", index - 1)),
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let files = Files::new("chain", &files);
    assert!(Scenario::load(&files.path("15.toml")).is_ok());
    for (name, at) in [("16.toml", "1.toml:2:11"), ("17.toml", "2.toml:2:11")] {
        let shown = Scenario::load(&files.path(name)).unwrap_err().to_string();
        assert!(!shown.contains("circle"), "{shown}");
        let expected = format!("{at}: this is the 16th `extends` in a row, and 15 are the limit");
        assert!(shown.contains(&expected) && shown.contains(name), "{shown}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn the_largest_scenarios_are_read_at_once_and_larger_ones_refused() {
    let states = |count: usize| {
        let mut text =
            "schema = 1\n[[stage]]\nkind = 'loss'\n[stage.down]\nmodel = 'markov'\nstates = [".to_owned();
        for state in 0..count {
            text += &format!("{{ name = 's{state}', to = {{ s{} = '1%' }} }},\n", (state + 1) % count);
        }
        text + "]"
    };
    let files = Files::new("large", &[("most.toml", &states(80_000)), ("more.toml", &states(200_000))]);
    // With a search among all states for each transition this takes minutes.
    let begun = std::time::Instant::now();
    let scenario = Scenario::load(&files.path("most.toml")).unwrap();
    build(&scenario, None);
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    let shown = Scenario::load(&files.path("more.toml")).unwrap_err().to_string();
    assert!(shown.contains("longer than 4 MiB"), "{shown}");

    let stages = format!("schema = 1\n{}", "[[stage]]\nkind = 'outage'\n".repeat(1001));
    let shown = Scenario::parse(&stages, "x").unwrap_err().to_string();
    assert!(shown.contains("1001 stages, and 1000 are the limit"), "{shown}");
    let keys: String = (0..10_001).map(|key| format!("k{key} = 1\n")).collect();
    let shown = Scenario::parse(&format!("schema = 1\n{keys}"), "x").unwrap_err().to_string();
    assert!(shown.contains("10002 keys, and 10000 are the limit"), "{shown}");
}

// ---- set and get

#[test]
fn one_setting_changes_and_nothing_else() {
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
fn what_is_set_reaches_the_path_that_runs() {
    let mut scenario = parse(&stage("loss", "down = { model = 'uniform', per = '0%' }"));
    let mut path = build(&scenario, None);
    assert_eq!(arrivals(&mut path).len(), 500);
    let (index, config) = scenario.set("loss.down.per", "100%").unwrap();
    path.reconfigure(Instant::from_secs(1), index, config.settings()).unwrap();
    path.handle_packet(Instant::from_secs(1), FIXED, vec![0; 40]);
    assert_eq!(path.poll_packet(Instant::from_secs(1)), None);
}

#[test]
fn values_are_taken_with_and_without_quotes_and_of_any_type() {
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
fn a_wrong_value_is_refused_as_in_a_file_and_changes_nothing() {
    let mut scenario = Scenario::load("wcdma-384").unwrap();
    let before = scenario.clone();
    for (key, value, words) in [
        ("radio.down.channel.errors.bler", "110%", "is not a probability"),
        ("radio.down.channel.errors.blr", "1%", "`bler`"),
        ("radio.down.sender.window", "500", "512"),
        ("radio.down", "5", "is not a table"),
        ("raido.down.queue.packets", "5", "did you mean `radio`?"),
        ("radio", "5", "a key belongs after the name"),
        ("radio.", "5", "a key belongs after the name"),
        ("radio..x", "5", "not a key"),
        ("wire.rate", "5Mbit", "both = { rate"),
        ("wire.down.rate", "5Mbit\nup.rate = 3", "is not a rate"),
        ("wire.down.trace", "/nowhere", "either a `rate` or a `trace`"),
        ("", "", "no stage"),
    ] {
        let shown = scenario.set(key, value).unwrap_err().to_string();
        assert!(shown.contains(words), "{key} = {value}: {shown}");
    }
    assert_eq!(scenario, before);
    let shown = scenario.get("radio.down.chanel").unwrap_err().to_string();
    assert!(shown.contains("key:1:12: ") && shown.contains("did you mean `channel`?"), "{shown}");
}

// ---- whatever comes

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = Scenario::parse(&text, "x").map_err(|error| error.to_string());
    }

    /// Presets in which something is cut out, doubled or put in: right or wrong, but never a panic; and what is
    /// right is the same after having been written and read.
    #[test]
    fn no_damaged_preset_makes_it_panic(
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

    /// Values of one kind in the place of another.
    #[test]
    fn no_exchanged_value_makes_it_panic(
        preset in 0..presets::ALL.len(),
        line in any::<prop::sample::Index>(),
        value in prop::sample::select(vec!["0", "-1", "1e400", "nan", "''", "'0s'", "'1ns'", "'1GB'", "[]", "[[]]", "{}",
            "{ a = 1 }", "true", "1979-05-27", "9223372036854775807", "'100%'", "'1Gbit'", "'18446744073709551615ns'"]),
    ) {
        let shown = Scenario::load(presets::ALL[preset].name).unwrap().to_toml();
        let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
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
    fn no_key_and_no_value_make_it_panic(key in "(radio|wire)?[a-z.\"'= \n]{0,20}", value in any::<String>()) {
        let mut scenario = Scenario::load("wcdma-384").unwrap();
        let _ = scenario.set(&key, &value).map_err(|error| error.to_string());
        let _ = scenario.get(&key).map_err(|error| error.to_string());
    }
}

// ---- queues

#[test]
fn a_queue_has_every_setting_of_its_discipline_and_no_other() {
    let queue = |settings: &str| parse(&stage("link", &format!("down.queue = {{ {settings} }}")));
    let shown = |settings: &str, key: &str| {
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
        assert_eq!(shown(settings, key), value, "{settings}: {key}");
    }
    for (settings, message) in [
        (
            "target = '5ms'",
            "`target` belongs to the discipline \"codel\" or \"fq-codel\" or \"pie\", but the discipline is \"drop-tail\": leave one out",
        ),
        (
            "discipline = 'red', flows = 7",
            "`flows` belongs to the discipline \"fq-codel\", but the discipline is \"red\": leave one out",
        ),
        (
            "discipline = 'codel', interval = '1ms'",
            "`target`: a queue as long as `interval` (1.000ms) would never be too long: RFC 8289 has a twentieth of it",
        ),
        (
            "discipline = 'red', min = 'many'",
            "`many` is not a size: write a number and k, M, G, Ki, Mi or Gi, with or without a B, such as \"64kB\"",
        ),
    ] {
        let problem = problems(&stage("link", &format!("down.queue = {{ {settings} }}"))).remove(0);
        assert_eq!(problem.message, message, "{settings}");
        assert_eq!(problem.place.unwrap().line, 4, "{settings}");
    }
}

#[test]
fn another_discipline_takes_no_settings_over_and_one_more_keeps_the_bounds() {
    let mut scenario = parse(&stage("link", "down.queue = { packets = 20 }"));
    scenario.set("link.down.queue.discipline", "codel").unwrap();
    assert_eq!(scenario.get("link.down.queue.packets").unwrap().to_string(), "20");
    scenario.set("link.down.queue.target", "9ms").unwrap();
    scenario.set("link.down.queue.discipline", "pie").unwrap();
    assert_eq!(scenario.get("link.down.queue.target").unwrap().to_string(), "\"15ms\"");
    assert_eq!(Scenario::parse(&scenario.to_toml(), "x.toml"), Ok(scenario));
}

#[test]
fn what_is_kept_during_an_outage_has_bounds_and_no_discipline() {
    let settings =
        "down = { at = ['1s'], lasts = '1s', packets = 'requeued', queue = { discipline = 'codel' } }";
    let problem = problems(&stage("outage", settings)).remove(0);
    assert_eq!(problem.message, "there is no key `discipline` here");
}

// ---- the reference

struct Row {
    keys: Vec<String>,
    default: String,
}

/// The rows of the table below this heading.
fn rows(reference: &str, heading: &str) -> Vec<Row> {
    let section =
        reference.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    let section = section.split("\n#").next().unwrap();
    let cells = |line: &str| -> Vec<String> { line.split('|').map(|cell| cell.trim().to_owned()).collect() };
    let rows: Vec<Row> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells = cells(line);
            Row {
                keys: cells[1].split(", ").map(|key| key.trim_matches('`').to_owned()).collect(),
                default: cells[2].clone(),
            }
        })
        .collect();
    assert!(!rows.is_empty(), "no table below {heading}");
    rows
}

/// A heading, and what stands at the place that it is about: kind, the path of keys, and the settings that are needed
/// there, in every shape that knows keys of its own.
const PLACES: &[(&str, &str, &str, &[&str])] = &[
    ("## `link`", "link", "down", &[""]),
    ("### `steps`", "link", "down.steps", &["every = '1s', within = '1ms'"]),
    ("### `queue`", "link", "down.queue", &[""]),
    ("## `loss`", "loss", "down", &["model = 'none'"]),
    ("### a state of `markov`", "loss", "down.states", &["name = 'a', to = {}"]),
    ("## `reorder`", "reorder", "down", &["chance = 0"]),
    ("## `duplicate`", "duplicate", "down", &["chance = 0"]),
    ("## `corrupt`", "corrupt", "down", &["chance = 0"]),
    ("## `truncate`", "truncate", "down", &["chance = 0"]),
    ("## `policer`", "policer", "down", &["rate = '1kbit', burst = '100B'"]),
    ("## `outage`", "outage", "down", &["at = ['1s'], lasts = '1s', packets = 'dropped'"]),
    ("## `arq`", "arq", "down", &["per = '0%', retries = 0, rate = '1Mbit'"]),
    ("## `rlc`", "rlc", "down", &[""]),
    ("### `rlc`: `rrc`", "rlc", "rrc", &[""]),
    ("### `rlc`: `rrc.inactivity`", "rlc", "rrc.inactivity", &["after = '1s', promotion = '1s'"]),
    ("### `rlc`: `rrc.reestablishment`", "rlc", "rrc.reestablishment", &[""]),
    ("### `rlc`: `rrc.reestablishment.scheduled`", "rlc", "rrc.reestablishment.scheduled", &["at = ['1s']"]),
    ("### `rlc`: `hsdpa`", "rlc", "hsdpa", &[""]),
    ("### `rlc`: `hsdpa.fading`", "rlc", "hsdpa.fading", &["speed = '3km/h', carrier = '2GHz'"]),
    ("### `rlc`: `hsdpa.others`", "rlc", "hsdpa.others", &["mobiles = 1, source = 'full-buffer'"]),
    ("### `rlc`: `sender`", "rlc", "down.sender", &[""]),
    (
        "### `rlc`: `sender.discard`",
        "rlc",
        "down.sender.discard",
        &[
            "",
            "mode = 'reset-after-max-dat', max_dat = 2",
            "mode = 'mrw-after-max-dat', max_dat = 2, timer_mrw = '1s', max_mrw = 1",
            "mode = 'timer', timer_discard = '1s', timer_mrw = '1s', max_mrw = 1",
        ],
    ),
    ("### `rlc`: `sender.poll`", "rlc", "down.sender.poll", &[""]),
    ("### `rlc`: `receiver`", "rlc", "down.receiver", &[""]),
    ("### `rlc`: `format`", "rlc", "down.format", &[""]),
    ("### `rlc`: `format.flexible`", "rlc", "down.format.flexible", &[""]),
    ("### `rlc`: `channel`", "rlc", "down.channel", &[""]),
    (
        "### `rlc`: `channel.switching`",
        "rlc",
        "down.channel.switching",
        &[
            "",
            "mode = 'scheduled', changes = []",
            "mode = 'by-occupancy', between = [], above = '1B', above_for = '1s', below = '0B', below_for = '1s', takes = '1s'",
        ],
    ),
    (
        "### `rlc`: `channel.errors`",
        "rlc",
        "down.channel.errors",
        &[
            "",
            "model = 'independent', bler = 0",
            "model = 'per-tti', bler = 0",
            "model = 'gilbert-elliott', good = 0, bad = 0, good_to_bad = 0, bad_to_good = 0",
            "model = 'rayleigh', speed = '1m/s', carrier = '1GHz', margin = '0dB'",
            "model = 'shadowing', speed = '1m/s', margin = '0dB', deviation = '1dB', decorrelation = '1m'",
            "model = 'listed', lost = []",
        ],
    ),
    ("## `station`", "station", "", &[""]),
    ("### `handover`", "station", "handover", &["at = ['1s']"]),
    (
        "## `traffic`",
        "traffic",
        "down",
        &["source = 'cbr', rate = '1kbit', packet = '100B', leaves_after = 'end'"],
    ),
];

/// A scenario with `settings` at the place.
fn with(kind: &str, path: &str, settings: &str) -> String {
    let settings = match path {
        "" => settings.replace(", ", "\n"),
        "down.states" => format!("down = {{ model = 'markov', states = [{{ {settings} }}] }}"),
        // The defaults of all.
        "down.sender.discard" | "down.channel.errors" | "down.channel.switching" if settings.is_empty() => {
            "down = {}".to_owned()
        }
        // It goes with a downlink that is shared.
        "down.format.flexible" => format!("hsdpa = {{}}\n{path} = {{ {settings} }}"),
        _ => format!("{path} = {{ {settings} }}"),
    };
    format!("{}[[stage]]\nkind = 'link'\nname = 'end'", stage(kind, &settings))
}

#[test]
fn the_reference_names_every_key_with_its_default_and_no_other() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/scenarios.md");
    let reference = std::fs::read_to_string(file).unwrap();
    for (heading, kind, path, shapes) in PLACES {
        let rows = rows(&reference, heading);
        let mut documented: Vec<&str> = rows.iter().flat_map(|row| &row.keys).map(String::as_str).collect();
        documented.sort_unstable();
        let mut known: Vec<String> = shapes
            .iter()
            .filter(|shape| shapes.len() == 1 || !shape.is_empty())
            .flat_map(|shape| keys_known(kind, path, shape))
            .collect();
        known.sort_unstable();
        known.dedup();
        assert_eq!(documented, known, "{heading}");

        let minimal = parse(&with(kind, path, shapes[0]));
        for Row { keys, default } in &rows {
            for key in keys {
                let place = [kind, *path, key]
                    .iter()
                    .filter(|step| !step.is_empty())
                    .copied()
                    .collect::<Vec<_>>()
                    .join(".");
                let is_needed = shapes[0].contains(&format!("{key} = "));
                let wanted = match minimal.get(&place) {
                    _ if is_needed => "needed".to_owned(),
                    Err(_) => "–".to_owned(),
                    Ok(serde_json::Value::Object(table)) if table.is_empty() => "`{}`".to_owned(),
                    Ok(serde_json::Value::Object(_)) => String::new(),
                    Ok(value) => format!("`{}`", value.to_string().replace(',', ", ")),
                };
                assert_eq!(*default, wanted, "{heading}: {key}");
            }
        }
        for needed in shapes[0].split(", ").filter(|_| !shapes[0].is_empty()) {
            let rest: Vec<&str> = shapes[0].split(", ").filter(|setting| *setting != needed).collect();
            let shown = problems(&with(kind, path, &rest.join(", ")))[0].to_string();
            assert!(shown.contains("missing"), "{heading}, without {needed}: {shown}");
        }
    }
}

/// What the code says that it knows when it meets a key that it does not know.
fn keys_known(kind: &str, path: &str, shape: &str) -> Vec<String> {
    let settings = if shape.is_empty() { "zzz = 0".to_owned() } else { format!("zzz = 0, {shape}") };
    let problem = problems(&with(kind, path, &settings)).remove(0);
    let help = problem.help.unwrap_or_else(|| panic!("no keys: {}", problem.message));
    let mut keys: Vec<String> = help.rsplit(": ").next().unwrap().split(", ").map(str::to_owned).collect();
    // Which sort a table is of is read before its other keys.
    keys.extend(shape.split(" = ").next().filter(|tag| ["mode", "model"].contains(tag)).map(str::to_owned));
    keys
}

#[test]
fn the_reference_lists_every_preset() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/scenarios.md");
    let reference = std::fs::read_to_string(file).unwrap();
    let listed: Vec<(String, String)> = rows(&reference, "## The presets")
        .into_iter()
        .map(|mut row| (row.keys.remove(0), row.default))
        .collect();
    let all: Vec<(String, String)> = presets::ALL
        .iter()
        .map(|preset| (preset.name.to_owned(), Scenario::load(preset.name).unwrap().description))
        .collect();
    assert_eq!(listed, all);
}

// ---- the commands

#[test]
fn two_scenarios_are_compared_setting_by_setting() {
    let output = airlink(&["compare", "wcdma-384", "wcdma-384-tsp"]);
    let table = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["wcdma-384", "wcdma-384-tsp"]);
    assert!(rows.contains(&vec!["radio.down.channel.errors.bler", "\"1%\"", "\"10%\""]), "{table}");
    let json = airlink(&["compare", "wcdma-384", "wcdma-384-tsp", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["differences"].as_array().unwrap().len(), rows.len() - 1);
    let same = airlink(&["compare", "leo", "leo"]);
    assert_eq!(String::from_utf8(same.stdout).unwrap(), "leo and leo are the same path\n");
    assert_eq!(airlink(&["compare", "leo", "moon"]).status.code(), Some(2));
}

fn airlink(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airlink")).args(arguments).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

#[test]
fn check_says_ok_or_what_is_wrong_and_exits_with_2() {
    let files = Files::new(
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
    assert!(text(&output.stderr).starts_with(&format!("{bad}:4:10: there is no key `x` here\n")));
}

#[test]
fn a_channel_that_stands_still_is_warned_of_where_it_is_checked_and_run() {
    let loss = |step: &str| {
        stage(
            "loss",
            &format!(
                "name = \"air\"\ndown = {{ model = \"gilbert-elliott\", mean = \"2%\", burst = 30{step} }}"
            ),
        )
    };
    let files = Files::new("still", &[("still.toml", &loss("")), ("time.toml", &loss(", step = \"10ms\""))]);
    let (still, time) = (files.path("still.toml"), files.path("time.toml"));
    let output = airlink(&["check", &still, &time]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stderr);
    let beginning =
        format!("{still}: warning: air.down: in the state \"bad\" 30 packets in a row are lost on average");
    assert!(told.starts_with(&beginning) && told.lines().count() == 1, "{told}");
    let sim = |file: &str| text(&airlink(&["sim", "-s", file, "--for", "1ms"]).stderr);
    assert!(sim(&still).contains("air.down: in the state"), "{}", sim(&still));
    assert!(!sim(&time).contains("air.down"));
}

/// Inamura et al. have ten retransmissions, MaxDAT 12 in TS 25.322's terms, which RRC cannot configure.
#[test]
fn what_a_preset_has_of_its_paper_is_warned_of_where_it_is_checked_and_not_in_every_run() {
    let is_max_dat =
        |warning: &String| warning.contains("max_dat: 12 is none of the values that RRC can configure");
    for preset in presets::ALL {
        let warnings = Scenario::load(preset.name).unwrap().warnings();
        assert!(warnings.iter().all(is_max_dat), "{}: {warnings:?}", preset.name);
    }
    assert!(text(&airlink(&["check", "wcdma-384"]).stderr).contains("max_dat: 12"));
    let run =
        |more: &[&str]| text(&airlink(&[&["sim", "-s", "wcdma-384", "--for", "1ms"], more].concat()).stderr);
    assert!(!run(&[]).contains("RRC"), "{}", run(&[]));
    let changed = run(&["--set", "radio.down.sender.max_rst=7"]);
    assert!(changed.contains("max_rst: 7") && !changed.contains("max_dat"), "{changed}");
}

#[test]
fn show_lists_presets_and_prints_scenarios_that_can_be_read_again() {
    let listed = text(&airlink(&["show"]).stdout);
    assert_eq!(listed.lines().count(), presets::ALL.len());
    let shown = text(&airlink(&["show", "tax-rebate"]).stdout);
    assert_eq!(Scenario::parse(&shown, "tax-rebate").unwrap(), Scenario::load("tax-rebate").unwrap());
    let json: serde_json::Value =
        serde_json::from_slice(&airlink(&["show", "tax-rebate", "--json"]).stdout).unwrap();
    assert_eq!(json["stage"][1]["loss_report"], true);
    assert!(text(&airlink(&["show", "--source", "tax-rebate"]).stdout).contains("# Choice:"));
    assert_eq!(airlink(&["show", "tax-rebat"]).status.code(), Some(2));
}
